"""What the probabilities of predictions are worth."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..data.labels import check_labels_and_proba
from ..report.measures import Histogram, Reliability, confidence_histogram, reliability, top_class
from ..typing import Inputs, Targets
from ._drawing import axes_for, legend


class _OfPredictions:
    """A display of the predicted classes of rows: their probabilities, and whether they are right."""

    @classmethod
    def _found(cls, confidence: np.ndarray, correct: np.ndarray) -> dict:
        """What the display is made of."""
        raise NotImplementedError

    def plot(self, ax: Any = None, *, name: str | None = None, **options: Any) -> Self:
        raise NotImplementedError

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Inputs, y: Targets, *, ax: Any = None, name: str | None = None, **options: Any
    ) -> Self:
        """Draw what a fitted classifier says of the rows X, whose classes are y."""
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
        """Draw probabilities (n, n_classes), such as ``loo_proba_``; ``labels`` are the classes of the columns."""
        codes, proba = check_labels_and_proba(y_true, proba, labels)
        top = top_class(codes, proba)
        made: Any = cls
        return made(**cls._found(top.confidence, top.correct)).plot(ax, name=name, **options)


class ReliabilityDisplay(_OfPredictions):
    """How often predictions of a given probability are right, with a band of 90 %.

    Parameters
    ----------
    bins : :class:`~kproba.report.measures.Reliability`

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.

    Examples
    --------
    ``ReliabilityDisplay.from_estimator(clf, X_new, y_new)``, or without held-out rows
    ``ReliabilityDisplay.from_predictions(y, clf.loo_proba_)``; several models share an ``ax``.
    """

    def __init__(self, *, bins: Reliability) -> None:
        self.bins = bins

    @classmethod
    def _found(cls, confidence, correct) -> dict:
        return {"bins": reliability(confidence, correct)}

    def plot(self, ax: Any = None, *, name: str | None = None, **options: Any) -> Self:
        """Draw into ``ax``; ``options`` go to the line."""
        self.ax_, self.figure_ = axes_for(ax)
        bins = self.bins
        (line,) = self.ax_.plot(bins.confidence, bins.frequency, **{"marker": "o", "label": name, **options})
        self.ax_.fill_between(bins.confidence, bins.low, bins.high, color=line.get_color(), alpha=0.15, linewidth=0)
        self.ax_.axline((0, 0), slope=1, color="grey", linestyle=":", zorder=0)
        self.ax_.set(xlabel="probability of the predicted class", ylabel="share that is right", ylim=(-0.02, 1.02))
        legend(self.ax_, name)
        return self


class ConfidenceHistogramDisplay(_OfPredictions):
    """How sure a model is of its predictions, right ones and wrong ones.

    Parameters
    ----------
    counts : :class:`~kproba.report.measures.Histogram`

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.
    """

    def __init__(self, *, counts: Histogram) -> None:
        self.counts = counts

    @classmethod
    def _found(cls, confidence, correct) -> dict:
        return {"counts": confidence_histogram(confidence, correct)}

    def plot(self, ax: Any = None, *, name: str | None = None, **options: Any) -> Self:
        """Draw into ``ax``; ``options`` go to the bars."""
        self.ax_, self.figure_ = axes_for(ax)
        edges, right, wrong = self.counts.edges, self.counts.right, self.counts.wrong
        shape = {"width": np.diff(edges), "align": "edge", **options}
        self.ax_.bar(edges[:-1], wrong, label="wrong", color="#D55E00", **shape)
        self.ax_.bar(edges[:-1], right, bottom=wrong, label="right", color="#0072B2", **shape)
        self.ax_.set(xlabel="probability of the predicted class", ylabel="rows", title=name)
        self.ax_.legend()
        return self
