"""Results of the search, ready to plot: one panel per kernel, with losses by width and ridge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


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
    is_weighted = _has_column_weights(model)
    weighted = _weighted_entries(found["stage"], is_weighted)
    panels = []
    for name, by_relevance in dict.fromkeys(zip(found["kernel"].tolist(), weighted.tolist())):
        inside = (found["kernel"] == name) & (weighted == by_relevance) & np.isfinite(found["loss"])
        is_winner = name == model.kernel_.name and by_relevance == is_weighted
        if inside.any():
            title = f"{name}, columns weighted" if by_relevance else name
            panels.append(_panel(title, found, inside, _choice(model) if is_winner else None))
    return tuple(panels)


def _has_column_weights(model) -> bool:
    relevance = getattr(getattr(model, "scaling_", None), "relevance", None)
    return relevance is not None and bool(np.ptp(relevance) > 0)


def _weighted_entries(stage: np.ndarray, is_weighted: bool) -> np.ndarray:
    """Entries with weighted columns: those of the relevance stage, and all later ones if the weights were kept."""
    trial = stage == "relevance"
    after = np.arange(len(stage)) > (np.flatnonzero(trial).max() if trial.any() else len(stage))
    return trial | (after & is_weighted)


def _choice(model) -> tuple[float, float]:
    width = model.width_
    return (np.nan if width is None else float(width)), float(getattr(model, "ridge_", 0.0))


def _panel(title: str, found, inside: np.ndarray, chosen) -> SearchPanel:
    columns = [found[name][inside].tolist() for name in ("width", "ridge", "loss")]
    last = {(f"{width:.6g}", f"{ridge:.6g}"): (width, ridge, loss) for width, ridge, loss in zip(*columns)}
    width, ridge, loss = (np.array(column) for column in zip(*last.values()))
    return SearchPanel(title, width, ridge, loss, chosen)
