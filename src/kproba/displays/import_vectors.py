"""The search path of an import vector machine."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._drawing import axes_in_a_row


class ImportPathDisplay:
    """The search path of an import vector machine, as in figure 2 of 2001.

    Shows the losses on the tuning rows and the number of import points as functions of λ, and the objective as a
    function of the number of points.

    Parameters
    ----------
    path, growth : ``path_`` and ``growth_`` of an :class:`~kproba.ImportVectorMachine`
    chosen : float, the chosen λ

    Attributes
    ----------
    figure_, axes_ : the figure and its three axes, after ``plot``.
    """

    def __init__(self, *, path: dict[str, np.ndarray], growth: dict[str, np.ndarray], chosen: float) -> None:
        self.path = path
        self.growth = growth
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> Self:
        """Plot the path of a fitted machine, into three ``axes`` if given."""
        check_is_fitted(estimator)
        return cls(path=estimator.path_, growth=estimator.growth_, chosen=estimator.ridge_).plot(axes)

    def plot(self, axes: Any = None) -> Self:
        self.axes_, self.figure_ = axes, _ = axes_in_a_row(axes, 3)
        for name, label in [("tuning_log_loss", "log-loss"), ("tuning_error", "error")]:
            axes[0].plot(self.path["ridge"], self.path[name], marker="o", markersize=3, label=label)
        axes[0].set(ylabel="tuning rows")
        axes[0].legend()
        axes[1].plot(self.path["ridge"], self.path["n_points"], marker="o", markersize=3)
        axes[1].set(ylabel="import points")
        for ax in axes[:2]:
            ax.set(xscale="log", xlabel="ridge λ")
            ax.invert_xaxis()  # the path goes from large to small
            ax.axvline(self.chosen, color="grey", linestyle=":")
        axes[2].plot(self.growth["n_points"], self.growth["objective"], marker="o", markersize=3)
        axes[2].set(xlabel="import points", ylabel="objective")
        return self
