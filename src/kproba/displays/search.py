"""Results of the hyperparameter search."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..report.search_map import SearchPanel, search_panels
from ._drawing import axes_in_a_row


class SearchMapDisplay:
    """Loss of every candidate of the search, as a function of width and ridge, with one plot per kernel.

    Parameters
    ----------
    panels : sequence of :class:`~kproba.report.search_map.SearchPanel`

    Attributes
    ----------
    figure_, axes_ : the figure and its axes, after ``plot``.
    """

    def __init__(self, *, panels: tuple[SearchPanel, ...]) -> None:
        self.panels = panels

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> Self:
        """Plot ``search_results_`` of a fitted classifier, into one of ``axes`` per panel if given."""
        check_is_fitted(estimator)
        panels = search_panels(estimator)
        if not panels:
            name = type(estimator).__name__
            raise ValueError(
                f"estimator: this {name} compared no candidates for width and ridge, so there is nothing to plot."
            )
        return cls(panels=panels).plot(axes)

    def plot(self, axes: Any = None) -> Self:
        self.axes_, self.figure_ = axes, _ = axes_in_a_row(axes, len(self.panels))
        losses = np.concatenate([panel.loss for panel in self.panels])
        for ax, panel in zip(axes, self.panels):
            (self._draw_map if panel.is_map else self._draw_line)(ax, panel, losses.min(), losses.max())
            ax.set_title(panel.title)
        return self

    def _draw_map(self, ax, panel: SearchPanel, low: float, high: float) -> None:
        ends = {"vmin": low, "vmax": high, "norm": "log"} if low > 0 else {}
        shown = ax.scatter(panel.width, panel.ridge, c=panel.loss, marker="s", s=60, cmap="viridis_r", **ends)
        if panel.chosen is not None:
            ax.plot(*panel.chosen, "o", markersize=12, markerfacecolor="none", color="red", markeredgewidth=2)
        ax.set(xscale="log", yscale="log", xlabel="width", ylabel="ridge")
        widths = np.unique(panel.width)
        some = widths[:: -(-len(widths) // 4)]
        ax.set_xticks(some, [np.format_float_positional(width, 2, fractional=False, trim="-") for width in some])
        ax.set_xticks([], minor=True)
        self.figure_.colorbar(shown, ax=ax, label="leave-one-out loss")

    def _draw_line(self, ax, panel: SearchPanel, low: float, high: float) -> None:
        """Plot the loss as a line if only width or only ridge varies."""
        name, x, loss, chosen = panel.line
        ax.plot(x, loss, marker="o", markersize=3)
        if chosen is not None:
            ax.axvline(chosen, color="grey", linestyle=":")
        ax.set(xlabel=name, ylabel="leave-one-out loss", ylim=(0.0, 1.05 * high))
        if x.min() > 0:
            ax.set_xscale("log")
