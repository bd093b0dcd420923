"""How a model was fitted: its search, its path, and what it learnt about the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..report.fitted import (
    MOST_COLUMNS,
    Importances,
    LearningCurve,
    SearchPanel,
    final_step,
    importances_of,
    learning_curve_of,
    search_panels,
)
from ..validation import check_count
from ._drawing import axes_for, axes_in_a_row


@dataclass(kw_only=True, eq=False, repr=False)
class SearchMapDisplay:
    """Loss of every candidate of the search, as a function of width and ridge, with one plot per kernel.

    Parameters
    ----------
    panels : sequence of :class:`~kproba.report.fitted.SearchPanel`

    Attributes
    ----------
    figure_, axes_ : the figure and its axes, after ``plot``.
    """

    panels: tuple[SearchPanel, ...]

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


@dataclass(kw_only=True, eq=False, repr=False)
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

    path: dict[str, np.ndarray]
    growth: dict[str, np.ndarray]
    chosen: float

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


@dataclass(kw_only=True, eq=False, repr=False)
class ImportanceDisplay:
    """Importances of the columns under a learnt kernel, with their range over the outer folds.

    Parameters
    ----------
    importances : :class:`~kproba.report.fitted.Importances`

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from kproba import LSPC
    >>> from kproba.displays import ImportanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> clf = LSPC(random_state=0).fit(X, np.sin(4 * X[:, 1]) + X[:, 0] > 0)
    >>> found = ImportanceDisplay.from_estimator(clf, names=["age", "income", "noise"]).importances
    >>> print(f"{found.names[0]} {found.share[0]:.1f}")
    income 0.6
    """

    importances: Importances

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, names: Sequence[str] | None = None, most: int = MOST_COLUMNS, ax: Any = None
    ) -> Self:
        """Plot the ``most`` important columns of a fitted classifier, or of a pipeline that ends in one.

        ``names`` are those of all columns that the classifier sees; by default the names it was fitted with.
        """
        check_is_fitted(estimator)
        check_count("most", most)
        found = importances_of(estimator, names, most)
        if found is None:
            raise _not_learnt(estimator)
        n_columns = found.n_columns
        if names is not None and len(names) != n_columns:
            raise ValueError(f"names has {len(names)} entries, but the classifier was fitted on {n_columns} columns.")
        return cls(importances=found).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        self.ax_, self.figure_ = ax, _ = axes_for(ax)
        found, places = self.importances, np.arange(len(self.importances.names))
        reach = [found.share - found.low, found.high - found.share]
        ax.barh(places, found.share, xerr=reach, capsize=3, error_kw={"ecolor": "0.3", "linewidth": 1})
        ax.set_yticks(places, found.names)
        ax.invert_yaxis()
        ax.set(xlabel="share of the kernel's distances")
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class KernelLearningDisplay:
    """Losses of a learnt kernel by number of steps: leave-one-out, which is minimised, and out of fold, which chooses.

    Parameters
    ----------
    curve : :class:`~kproba.report.fitted.LearningCurve`

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from kproba import LSPC
    >>> from kproba.displays import KernelLearningDisplay
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> clf = LSPC(random_state=0).fit(X, np.sin(4 * X[:, 1]) + X[:, 0] > 0)
    >>> curve = KernelLearningDisplay.from_estimator(clf).curve
    >>> print(f"{curve.out_of_fold[0]:.1f} {curve.out_of_fold.min():.1f}")     # equal weights, and at best
    0.4 0.3
    """

    curve: LearningCurve

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Plot ``learning_curve_`` of a fitted classifier, or of a pipeline that ends in one."""
        check_is_fitted(estimator)
        curve = learning_curve_of(estimator)
        if curve is None:
            raise _not_learnt(estimator)
        return cls(curve=curve).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        self.ax_, self.figure_ = ax, _ = axes_for(ax)
        curve = self.curve
        ax.plot(curve.steps, curve.leave_one_out, marker="o", markersize=3, label="leave-one-out, samples of rows")
        ax.plot(curve.steps, curve.out_of_fold, marker="o", markersize=3, label="out of fold")
        ax.axvline(curve.chosen, color="grey", linestyle=":")
        ax.set(xlabel="steps", ylabel="log-loss")
        ax.legend()
        return self


def _not_learnt(estimator) -> ValueError:
    return ValueError(
        f"estimator: this {type(final_step(estimator)).__name__} has not learnt its kernel, so there is nothing to "
        "plot; fit it with kernel='auto' on 100 distinct rows or more."
    )
