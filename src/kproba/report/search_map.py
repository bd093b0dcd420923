"""What a search tried, ready to be drawn: one panel a kernel, losses over width and ridge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SearchPanel:
    """The candidates of one kernel; a candidate that met more rows later counts by its last loss.

    ``width`` is NaN for kernels without one, ``ridge`` zero for models without one. ``chosen`` is (width, ridge) of the
    model, in the panel that it comes from.
    """

    title: str
    width: np.ndarray
    ridge: np.ndarray
    loss: np.ndarray
    rows: np.ndarray
    chosen: tuple[float, float] | None

    @property
    def is_map(self) -> bool:
        """Whether both width and ridge vary: otherwise the losses make a line."""
        return len(np.unique(self.width[~np.isnan(self.width)])) > 1 and len(np.unique(self.ridge)) > 1


def search_panels(model) -> tuple[SearchPanel, ...]:
    """Panels of a fitted model with ``search_results_``; none where fewer than two candidates were compared.

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
    is_weighed = _is_weighed(model)
    weighed = _weighed_entries(found["stage"], is_weighed)
    panels = []
    for name, by_relevance in dict.fromkeys(zip(found["kernel"].tolist(), weighed.tolist())):
        inside = (found["kernel"] == name) & (weighed == by_relevance) & np.isfinite(found["loss"])
        is_winner = name == model.kernel_.name and by_relevance == is_weighed
        if inside.any():
            title = f"{name}, columns weighed" if by_relevance else name
            panels.append(_panel(title, found, inside, _choice(model) if is_winner else None))
    return tuple(panels)


def _is_weighed(model) -> bool:
    relevance = getattr(getattr(model, "scaling_", None), "relevance", None)
    return relevance is not None and bool(np.ptp(relevance) > 0)


def _weighed_entries(stage: np.ndarray, is_weighed: bool) -> np.ndarray:
    """Widths count in columns that are weighed from the stage of relevance on, if the weights were kept."""
    trial = stage == "relevance"
    after = np.arange(len(stage)) > (np.flatnonzero(trial).max() if trial.any() else len(stage))
    return trial | (after & is_weighed)


def _choice(model) -> tuple[float, float]:
    width = model.width_
    return (np.nan if width is None else float(width)), float(getattr(model, "ridge_", 0.0))


def _panel(title: str, found, inside: np.ndarray, chosen) -> SearchPanel:
    columns = [found[name][inside].tolist() for name in ("width", "ridge", "loss", "rows")]
    last = {(f"{width:.6g}", f"{ridge:.6g}"): (width, ridge, loss, rows) for width, ridge, loss, rows in zip(*columns)}
    width, ridge, loss, rows = (np.array(column) for column in zip(*last.values()))
    return SearchPanel(title, width, ridge, loss, rows, chosen)
