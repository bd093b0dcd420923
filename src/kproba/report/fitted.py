"""The fitted model: its parameters, the candidates of the search, the path, and what was learnt about the kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from ..explanations.columns import column_names, final_step

#: Descriptions of links.
LINKS = {
    "CalibratedSoftmax": "softmax, calibrated by leave-one-out",
    "Softmax": "softmax",
    "Clip": "outputs clipped at zero",
}
#: Number of columns that are shown.
MOST_COLUMNS = 20


@dataclass(frozen=True)
class PathFacts:
    """The path of an import vector machine."""

    ridge: np.ndarray
    log_loss: np.ndarray
    error: np.ndarray
    n_points: np.ndarray
    chosen: float


def fitted_of(model) -> tuple[tuple[str, str], ...]:
    final = final_step(model)
    pairs = [("model", repr(final))]
    if isinstance(model, Pipeline) and len(model) > 1:
        pairs.append(("earlier steps", " → ".join(type(step).__name__ for _, step in model.steps[:-1])))
    kernel = getattr(final, "kernel_", None)
    if kernel is not None:
        pairs += _fitted_kernel(final, kernel)
    return tuple(pairs)


def _fitted_kernel(final, kernel) -> list[tuple[str, str]]:
    pairs = [("kernel", kernel.name)]
    if final.width_ is not None:
        pairs.append(("width", f"{final.width_:.4g}"))
    if hasattr(final, "ridge_"):
        pairs.append(("ridge", f"{final.ridge_:.3g}"))
    kind = "import points" if hasattr(final, "import_indices_") else "centres"
    pairs.append((kind, f"{np.shape(final.coef_)[0]:,}"))
    kind = type(final.link_).__name__
    pairs.append(("link", LINKS.get(kind, kind)))
    if final.scaling_ is not None:
        pairs.append(("columns", "scaled, weighted by relevance" if _has_column_weights(final) else "scaled"))
    return pairs


def path_of(final) -> PathFacts | None:
    path = getattr(final, "path_", None)
    if not path or len(path["ridge"]) < 2 or not np.isfinite(path["tuning_log_loss"]).all():
        return None
    names = ("ridge", "tuning_log_loss", "tuning_error", "n_points")
    ridge, log_loss, error, n_points = (np.asarray(path[name]) for name in names)
    return PathFacts(ridge, log_loss, error, n_points, float(final.ridge_))


class SearchLine(NamedTuple):
    """Losses as a function of width or ridge, and the chosen value."""

    name: str
    x: np.ndarray
    loss: np.ndarray
    chosen: float | None


@dataclass(frozen=True)
class SearchPanel:
    """The candidates of one kernel; a candidate that was evaluated again on more rows has its last loss.

    ``width`` is NaN for kernels without one, ``ridge`` is zero for models without one. ``chosen`` is (width, ridge) of
    the model if it has this kernel.
    """

    title: str
    width: np.ndarray
    ridge: np.ndarray
    loss: np.ndarray
    chosen: tuple[float, float] | None

    @property
    def is_map(self) -> bool:
        """Whether both width and ridge vary; otherwise the losses are plotted as a line."""
        return self._varies_in_width and len(np.unique(self.ridge)) > 1

    @property
    def _varies_in_width(self) -> bool:
        return len(np.unique(self.width[~np.isnan(self.width)])) > 1

    @property
    def line(self) -> SearchLine:
        """Losses by width or, for kernels without one, by ridge."""
        name, place = ("width", 0) if self._varies_in_width else ("ridge", 1)
        x = (self.width, self.ridge)[place]
        order = np.argsort(x, kind="stable")
        return SearchLine(name, x[order], self.loss[order], None if self.chosen is None else self.chosen[place])


def search_panels(model) -> tuple[SearchPanel, ...]:
    """Panels for ``search_results_`` of a fitted model; none if fewer than two candidates were compared.

    >>> from sklearn.datasets import load_iris
    >>> from kproba import LSPC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LSPC(kernel="gaussian", width=[0.5, 1.0], ridge=[0.01, 0.1], random_state=0).fit(X, y)
    >>> [(panel.title, len(panel.loss), panel.is_map) for panel in search_panels(clf)]
    [('gaussian', 4, True)]
    """
    found = getattr(model, "search_results_", None)
    if not found or len(found["loss"]) < 2:
        return ()
    is_weighted, width = _has_column_weights(model), model.width_
    choice = (np.nan if width is None else float(width)), float(getattr(model, "ridge_", 0.0))
    weighted = _weighted_entries(found["stage"], is_weighted)
    panels = []
    for name, by_relevance in dict.fromkeys(zip(found["kernel"].tolist(), weighted.tolist())):
        inside = (found["kernel"] == name) & (weighted == by_relevance) & np.isfinite(found["loss"])
        is_winner = name == model.kernel_.name and by_relevance == is_weighted
        if inside.any():
            title = f"{name}, columns weighted" if by_relevance else name
            panels.append(_panel(title, found, inside, choice if is_winner else None))
    return tuple(panels)


def _has_column_weights(model) -> bool:
    relevance = getattr(getattr(model, "scaling_", None), "relevance", None)
    return relevance is not None and bool(np.ptp(relevance) > 0)


def _weighted_entries(stage: np.ndarray, is_weighted: bool) -> np.ndarray:
    """Entries with weighted columns: those of the relevance stage, and all later ones if the weights were kept."""
    trial = stage == "relevance"
    after = np.arange(len(stage)) > (np.flatnonzero(trial).max() if trial.any() else len(stage))
    return trial | (after & is_weighted)


def _panel(title: str, found, inside: np.ndarray, chosen) -> SearchPanel:
    columns = [found[name][inside].tolist() for name in ("width", "ridge", "loss")]
    last = {(f"{width:.6g}", f"{ridge:.6g}"): (width, ridge, loss) for width, ridge, loss in zip(*columns)}
    width, ridge, loss = (np.array(column) for column in zip(*last.values()))
    return SearchPanel(title, width, ridge, loss, chosen)


class Importances(NamedTuple):
    """Columns from the most important down, their share, and its range over the kernels learnt without each fold."""

    names: tuple[str, ...]
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_columns: int


class LearningCurve(NamedTuple):
    """Losses after so many steps; ``chosen`` is the number of steps with the smallest out-of-fold loss."""

    steps: np.ndarray
    leave_one_out: np.ndarray
    out_of_fold: np.ndarray
    chosen: int


def importances_of(model, names: Sequence[str] | None = None, most: int = MOST_COLUMNS) -> Importances | None:
    """The columns with the largest ``feature_importances_`` of a fitted model; None if its kernel was not learnt."""
    final = final_step(model)
    folds = getattr(final, "fold_importances_", None)
    if folds is None:
        return None
    share = final.feature_importances_
    order = np.argsort(-share, kind="stable")[:most]
    known = column_names(model, len(share), names)
    low, high = np.minimum(folds.min(axis=0), share), np.maximum(folds.max(axis=0), share)
    return Importances(tuple(known[j] for j in order), share[order], low[order], high[order], len(share))


def learning_curve_of(model) -> LearningCurve | None:
    """``learning_curve_`` of a fitted model; None if its kernel was not learnt or has fewer than two finite losses."""
    found = getattr(final_step(model), "learning_curve_", None)
    if found is None or np.isfinite(found["out_of_fold"]).sum() < 2:
        return None
    steps, loo, oof = (np.asarray(found[name], dtype=float) for name in ("steps", "leave_one_out", "out_of_fold"))
    return LearningCurve(steps.astype(int), loo, oof, int(steps[np.nanargmin(oof)]))
