"""What was learnt about the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..report.learnt import MOST_COLUMNS, Importances, LearningCurve, final_step, importances_of, learning_curve_of
from ..validation import check_count
from ._drawing import axes_for


class ImportanceDisplay:
    """Importances of the columns under a learnt kernel, with their range over the outer folds.

    Parameters
    ----------
    importances : :class:`~kproba.report.learnt.Importances`

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

    def __init__(self, *, importances: Importances) -> None:
        self.importances = importances

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


class KernelLearningDisplay:
    """Losses of a learnt kernel by number of steps: leave-one-out, which is minimised, and out of fold, which chooses.

    Parameters
    ----------
    curve : :class:`~kproba.report.learnt.LearningCurve`

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

    def __init__(self, *, curve: LearningCurve) -> None:
        self.curve = curve

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
