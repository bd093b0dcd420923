"""Compare models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..data.labels import check_labels_and_proba
from ..report.baselines import ModelProba
from ..report.facts import Score, collect, scores_of
from ..report.measures import MEASURES
from ..typing import Inputs, Targets
from ._drawing import axes_in_a_row


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
