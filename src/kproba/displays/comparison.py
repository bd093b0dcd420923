"""Models beside each other, and classes beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..metrics import _checked
from ..report.facts import MEASURES, ClassFacts, Judged, Score, class_facts, collect, scores_of
from ..report.rivals import Rival
from ..typing import Inputs, Targets
from ._drawing import axes_in_a_row

#: Classes that are drawn in colours, those told apart worst, where there are more.
MOST_COLOURED = 8


class ScoresDisplay:
    """Error, log-loss, Brier score and calibration error of some models, with bootstrap intervals of 90 %.

    Parameters
    ----------
    scores : sequence of :class:`~kproba.report.facts.Score`

    Attributes
    ----------
    figure_, axes_ : the figure and its four axes, after ``plot``.

    Examples
    --------
    ``ScoresDisplay.from_estimator(clf, X_new, y_new, X_train=X, y_train=y)`` has the class shares and a logistic
    regression beside the classifier; ``ScoresDisplay.from_predictions(y_new, {"ours": p, "theirs": q})`` any others.
    """

    def __init__(self, *, scores: tuple[Score, ...]) -> None:
        self.scores = scores

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
        """Draw a fitted classifier on the rows X with classes y beside the simple models of a report."""
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
        """Draw a dict of names and probabilities (n, n_classes) of the same rows."""
        if not isinstance(proba, dict) or not proba:
            raise TypeError(f"proba: a dict of names and probabilities is needed, got {type(proba).__name__}.")
        checked = {name: _checked(y_true, each, labels) for name, each in proba.items()}
        codes = next(iter(checked.values()))[0]
        models = [Rival(str(name), values) for name, (_, values) in checked.items()]
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


class ClassCurvesDisplay:
    """ROC and precision–recall curves of every class against all others.

    Where there are more than eight classes, those that are told apart worst have colours and the others are grey.

    Parameters
    ----------
    by_class : sequence of :class:`~kproba.report.facts.ClassFacts`

    Attributes
    ----------
    figure_, axes_ : the figure and its two axes, after ``plot``.
    """

    def __init__(self, *, by_class: tuple[ClassFacts, ...]) -> None:
        self.by_class = by_class

    @classmethod
    def from_estimator(cls, estimator: Any, X: Inputs, y: Targets, *, axes: Any = None) -> Self:
        """Draw a fitted classifier on the rows X with classes y."""
        check_is_fitted(estimator)
        return cls.from_predictions(y, estimator.predict_proba(X), labels=estimator.classes_, axes=axes)

    @classmethod
    def from_predictions(
        cls, y_true: Targets, proba: Inputs, *, labels: ArrayLike | None = None, axes: Any = None
    ) -> Self:
        """Draw probabilities (n, n_classes); ``labels`` are the classes of the columns."""
        codes, proba = _checked(y_true, proba, labels)
        rows, predicted = Judged(None, codes, proba), proba.argmax(axis=1)
        names = np.sort(np.unique(y_true) if labels is None else np.asarray(labels))
        found = (class_facts(k, str(name), rows, predicted) for k, name in enumerate(names))
        return cls(by_class=tuple(found)).plot(axes)

    def plot(self, axes: Any = None) -> Self:
        self.axes_, self.figure_ = axes_in_a_row(axes, 2)
        drawn = [one for one in self.by_class if one.roc is not None]
        worst = {one.name for one in sorted(drawn, key=lambda one: one.auc)[:MOST_COLOURED]}
        for one in drawn:
            pairs: Any = (one.roc, one.auc), (one.precision_recall, one.average_precision)
            for ax, (curve, area) in zip(self.axes_, pairs):
                own = {"label": f"{one.name} ({area:.3f})"} if one.name in worst else {"color": "0.8", "zorder": 0}
                ax.plot(*curve, **own)
        roc, precision = self.axes_
        roc.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC (area)")
        precision.set(xlabel="recall", ylabel="precision", title="precision–recall (average precision)")
        for ax, corner in zip(self.axes_, ("lower right", "lower left")):
            ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
            ax.legend(fontsize="small", loc=corner)
        return self
