"""How good predictions are: calibration, confidence, rejection, and models beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..data.labels import check_labels_and_proba
from ..decisions.reject import RejectOption
from ..decisions.risk_coverage import risk_coverage
from ..report.baselines import ModelProba
from ..report.facts import Score, collect, scores_of
from ..report.measures import MEASURES, Histogram, Reliability, confidence_histogram, reliability, top_class
from ..typing import Inputs, Targets
from ._drawing import axes_for, axes_in_a_row

#: Errors at a lower coverage do not influence the limits of the y-axis.
LEAST_COVERAGE = 0.1


class _TopClassDisplay:
    """Base of displays that need the probability of each predicted class, and whether it is right."""

    #: the argument of the constructor, and the function of both that computes it
    _argument: tuple[str, Callable]

    def plot(self, ax: Any = None, *, name: str | None = None, **options: Any) -> Self:
        raise NotImplementedError

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Inputs, y: Targets, *, ax: Any = None, name: str | None = None, **options: Any
    ) -> Self:
        """Plot a fitted classifier on the rows X with labels y."""
        check_is_fitted(estimator)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(
            y, estimator.predict_proba(X), labels=estimator.classes_, ax=ax, name=name, **options
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Targets,
        proba: Inputs,
        *,
        labels: ArrayLike | None = None,
        ax: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Plot probabilities (n, n_classes), such as ``loo_proba_``; ``labels`` are the classes of the columns."""
        codes, proba = check_labels_and_proba(y_true, proba, labels)
        top = top_class(codes, proba)
        made, (argument, compute) = cast(Any, cls), cls._argument
        return made(**{argument: compute(top.confidence, top.correct)}).plot(ax, name=name, **options)


@dataclass(kw_only=True, eq=False, repr=False)
class ReliabilityDisplay(_TopClassDisplay):
    """Reliability diagram: how often predictions with a given probability are right, with a 90 % band.

    Unlike scikit-learn's ``CalibrationDisplay``, it supports several classes and has a confidence band.

    Parameters
    ----------
    bins : :class:`~kproba.report.measures.Reliability`

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.

    Examples
    --------
    Use ``ReliabilityDisplay.from_estimator(clf, X_new, y_new)``, or without held-out rows
    ``ReliabilityDisplay.from_predictions(y, clf.loo_proba_)``. Pass ``ax`` to compare several models.
    """

    bins: Reliability
    _argument = ("bins", reliability)

    def plot(self, ax: Any = None, *, name: str | None = None, **options: Any) -> Self:
        """Plot into ``ax``; ``options`` are passed to ``ax.plot``."""
        self.ax_, self.figure_ = axes_for(ax)
        bins = self.bins
        (line,) = self.ax_.plot(bins.confidence, bins.frequency, **{"marker": "o", "label": name, **options})
        self.ax_.fill_between(bins.confidence, bins.low, bins.high, color=line.get_color(), alpha=0.15, linewidth=0)
        self.ax_.axline((0, 0), slope=1, color="grey", linestyle=":", zorder=0)
        self.ax_.set(xlabel="probability of the predicted class", ylabel="share of correct ones", ylim=(-0.02, 1.02))
        if name is not None:
            self.ax_.legend()
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class ConfidenceHistogramDisplay(_TopClassDisplay):
    """Histogram of the probabilities of the predicted classes, split into right and wrong predictions.

    Parameters
    ----------
    counts : :class:`~kproba.report.measures.Histogram`

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.
    """

    counts: Histogram
    _argument = ("counts", confidence_histogram)

    def plot(self, ax: Any = None, *, name: str | None = None, **options: Any) -> Self:
        """Plot into ``ax``; ``options`` are passed to ``ax.bar``."""
        self.ax_, self.figure_ = axes_for(ax)
        edges, right, wrong = self.counts.edges, self.counts.right, self.counts.wrong
        shape = {"width": np.diff(edges), "align": "edge", **options}
        self.ax_.bar(edges[:-1], wrong, label="wrong", color="#D55E00", **shape)
        self.ax_.bar(edges[:-1], right, bottom=wrong, label="right", color="#0072B2", **shape)
        self.ax_.set(xlabel="probability of the predicted class", ylabel="rows", title=name)
        self.ax_.legend()
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class ScoresDisplay:
    """Error, log-loss, Brier score and calibration error of several models, with 90 % bootstrap intervals.

    Parameters
    ----------
    scores : sequence of :class:`~kproba.report.facts.Score`

    Attributes
    ----------
    figure_, axes_ : the figure and its four axes, after ``plot``.

    Examples
    --------
    ``ScoresDisplay.from_estimator(clf, X_new, y_new, X_train=X, y_train=y)`` compares the classifier with the class
    shares and a logistic regression; ``ScoresDisplay.from_predictions(y_new, {"ours": p, "theirs": q})`` compares any
    models.
    """

    scores: tuple[Score, ...]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Inputs,
        y: Targets,
        *,
        X_train: Inputs = None,
        y_train: Targets = None,
        axes: Any = None,
        random_state: int = 0,
    ) -> Self:
        """Plot a fitted classifier and the baselines of the report on the rows X with labels y."""
        found = collect(estimator, X, y, X_train=X_train, y_train=y_train, random_state=random_state)
        return cls(scores=found.scores).plot(axes)

    @classmethod
    def from_predictions(
        cls,
        y_true: Targets,
        proba: Mapping[str, ArrayLike],
        *,
        labels: ArrayLike | None = None,
        axes: Any = None,
        random_state: int = 0,
    ) -> Self:
        """Plot a dict that maps names to probabilities (n, n_classes) of the same rows."""
        if not isinstance(proba, dict) or not proba:
            raise TypeError(f"proba must be a non-empty dict of names and probabilities, got {type(proba).__name__}.")
        checked = {name: check_labels_and_proba(y_true, each, labels) for name, each in proba.items()}
        codes = next(iter(checked.values()))[0]
        models = [ModelProba(str(name), values) for name, (_, values) in checked.items()]
        return cls(scores=scores_of(models, codes, random_state)).plot(axes)

    def plot(self, axes: Any = None) -> Self:
        self.axes_, self.figure_ = axes_in_a_row(axes, len(MEASURES), width=3.0)
        places = np.arange(len(self.scores))
        for ax, (name, words) in zip(self.axes_, MEASURES.items()):
            found = [getattr(score, name) for score in self.scores]
            reach = [[each.value - each.low for each in found], [each.high - each.value for each in found]]
            ax.errorbar([each.value for each in found], places, xerr=reach, fmt="o", capsize=3)
            ax.set(xlabel=words, ylim=(len(places) - 0.5, -0.5))
            ax.set_xlim(left=0.0)
            ax.set_yticks(places, [score.name for score in self.scores] if ax is self.axes_[0] else [])
        return self


@dataclass(kw_only=True, eq=False, repr=False)
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

    curve: dict[str, np.ndarray]
    threshold: float | None = None
    max_error: float | None = None
    name: str | None = None

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
        if self.name is not None:
            ax.legend()
        return self
