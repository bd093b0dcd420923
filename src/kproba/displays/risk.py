"""Risk–coverage curves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..data.labels import check_labels_and_proba
from ..decisions.reject import RejectOption
from ..decisions.risk_coverage import risk_coverage
from ..report.measures import top_class
from ..typing import Inputs, Targets
from ._drawing import axes_for, legend

#: Errors at a lower coverage do not influence the limits of the y-axis.
LEAST_COVERAGE = 0.1


class RiskCoverageDisplay:
    """Risk–coverage curve: the error among the rows kept as a function of their share.

    The band reaches up to the upper bound of each threshold on its own. The threshold of a
    :class:`~kproba.RejectOption` is shown as a dotted line.

    Parameters
    ----------
    curve : dict of arrays thresholds, coverage, error and upper_bound, as ``risk_coverage_curve_``
    threshold : float, optional; the chosen threshold
    max_error : float, optional; the guaranteed error
    name : str, optional; the label in the legend

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.
    """

    def __init__(
        self,
        *,
        curve: dict[str, np.ndarray],
        threshold: float | None = None,
        max_error: float | None = None,
        name: str | None = None,
    ) -> None:
        self.curve = curve
        self.threshold = threshold
        self.max_error = max_error
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Inputs = None,
        y: Targets = None,
        *,
        confidence: float | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Plot a fitted classifier on the rows X with labels y.

        Without X and y, the calibration rows of a :class:`~kproba.RejectOption` are plotted.
        """
        check_is_fitted(estimator)
        name = type(estimator).__name__ if name is None else name
        if not isinstance(estimator, RejectOption):
            if X is None or y is None:
                raise ValueError("pass X and y; only a fitted RejectOption has a curve of its own.")
            proba = estimator.predict_proba(X)
            options = {"labels": estimator.classes_, "confidence": 0.95 if confidence is None else confidence}
            return cls.from_predictions(y, proba, **options, name=name, ax=ax)
        confidence = estimator.confidence if confidence is None else confidence
        curve = estimator.curve_of(X, y, confidence)
        options = {"threshold": estimator.threshold_, "max_error": estimator.max_error, "name": name}
        return cls(curve=curve, **options).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Targets,
        proba: Inputs,
        *,
        labels: ArrayLike | None = None,
        confidence: float = 0.95,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Plot probabilities (n, n_classes); ``labels`` are the classes of the columns, by default sorted."""
        top = top_class(*check_labels_and_proba(y_true, proba, labels))
        return cls(curve=risk_coverage(top.confidence, ~top.correct).with_bounds(confidence), name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        self.ax_, self.figure_ = ax, _ = axes_for(ax)
        used = ax.get_ylim()[1] if ax.lines else 0.0
        coverage, error, bound = (self.curve[key] for key in ("coverage", "error", "upper_bound"))
        (line,) = ax.plot(coverage, error, drawstyle="steps-post", label=self.name)
        ax.fill_between(coverage, error, bound, step="post", color=line.get_color(), alpha=0.2, linewidth=0)
        if self.threshold is not None:
            kept = coverage[self.curve["thresholds"] >= self.threshold].max(initial=0.0)
            ax.axvline(kept, color="grey", linestyle=":")
        if self.max_error is not None:
            ax.axhline(self.max_error, color="grey", linestyle="--")
        ax.set(xlabel="share of rows kept", ylabel="error among them")
        # the bounds of the first few rows are close to one and would flatten the curve
        top = 1.5 * max(error[coverage >= LEAST_COVERAGE].max(), bound[-1])
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, min(1.0, max(top, used))))
        legend(ax, self.name)
        return self
