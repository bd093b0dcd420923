"""How good the probabilities of the predicted classes are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..data.labels import check_labels_and_proba
from ..report.measures import Histogram, Reliability, confidence_histogram, reliability, top_class
from ..typing import Inputs, Targets
from ._drawing import axes_for, legend


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

    _argument = ("bins", reliability)

    def __init__(self, *, bins: Reliability) -> None:
        self.bins = bins

    def plot(self, ax: Any = None, *, name: str | None = None, **options: Any) -> Self:
        """Plot into ``ax``; ``options`` are passed to ``ax.plot``."""
        self.ax_, self.figure_ = axes_for(ax)
        bins = self.bins
        (line,) = self.ax_.plot(bins.confidence, bins.frequency, **{"marker": "o", "label": name, **options})
        self.ax_.fill_between(bins.confidence, bins.low, bins.high, color=line.get_color(), alpha=0.15, linewidth=0)
        self.ax_.axline((0, 0), slope=1, color="grey", linestyle=":", zorder=0)
        self.ax_.set(xlabel="probability of the predicted class", ylabel="share of correct ones", ylim=(-0.02, 1.02))
        legend(self.ax_, name)
        return self


class ConfidenceHistogramDisplay(_TopClassDisplay):
    """Histogram of the probabilities of the predicted classes, split into right and wrong predictions.

    Parameters
    ----------
    counts : :class:`~kproba.report.measures.Histogram`

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.
    """

    _argument = ("counts", confidence_histogram)

    def __init__(self, *, counts: Histogram) -> None:
        self.counts = counts

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
