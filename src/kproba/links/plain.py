"""Links without parameters: clipping and the ratio of least-squares scores, softmax and sigmoid of log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_softmax

from .base import Link, PerTag, softmax


@dataclass(frozen=True)
class Clip(Link):
    """Sets negative scores to zero and normalises rows; all zeros give 1/c (2011 Eq. 6, 2010 Eq. 3).

    >>> import numpy as np
    >>> Clip().probabilities(np.array([[0.6, 0.2, -0.1], [-1.0, -1.0, -2.0]])).round(3)
    array([[0.75 , 0.25 , 0.   ],
           [0.333, 0.333, 0.333]])
    """

    def decision(self, scores):
        return self.probabilities(scores)

    def probabilities(self, scores):
        positive = np.maximum(scores, 0.0)
        largest = positive.max(axis=1, keepdims=True)
        # dividing by the largest first keeps tiny scores from underflowing in the sum
        positive = np.divide(positive, largest, out=np.ones_like(positive), where=largest > 0)
        return positive / positive.sum(axis=1, keepdims=True)

    def onnx_probabilities(self, scores):
        positive = scores.maximum(0.0)
        largest = positive.max()
        some = largest > 0.0
        positive = some.where(positive / some.where(largest, 1.0), 1.0)
        return positive / positive.sum()


class ClipParameters(Link):
    """Sets negative coefficients to zero instead of scores (2011 Eq. 4), then clips as ``"clip"`` does."""

    rounds_coefficients: ClassVar[bool] = True

    @classmethod
    def fit(cls, held_out, rows):
        # every tag has its own constant, because it is rounded too
        return PerTag(Clip(), rows.n_classes + np.arange(rows.n_classes)) if rows.is_multilabel else Clip()


@dataclass(frozen=True)
class Ratio(Link):
    """Scores divided by their sum (LSPC′, 2011 Eq. 5), which may be negative or exceed one: there are no probabilities.

    >>> import numpy as np
    >>> Ratio().decision(np.array([[0.8, -0.3]]))
    array([[ 1.6, -0.6]])
    """

    gives_probabilities = False

    def decision(self, scores):
        total = scores.sum(axis=1, keepdims=True)
        uniform = np.full_like(scores, 1.0 / scores.shape[1])
        return np.divide(scores, total, out=uniform, where=np.abs(total) > np.finfo(scores.dtype).tiny)


@dataclass(frozen=True)
class Softmax(Link):
    """p = exp(f)/Σexp(f), for scores fitted as log-probabilities (2001 Eq. 7, textbook Eq. 28.1).

    >>> import numpy as np
    >>> Softmax().probabilities(np.array([[0.0, np.log(3.0)]])).round(2)
    array([[0.25, 0.75]])
    """

    def probabilities(self, scores):
        return softmax(scores)

    def log_probabilities(self, scores):
        return log_softmax(scores, axis=1)

    def explained(self, scores):
        """Log-odds against the average other class: the log-odds themselves if there are two classes."""
        c = scores.shape[1]
        return (scores - scores.mean(axis=1, keepdims=True)) * (c / (c - 1))

    def onnx_probabilities(self, scores):
        return scores.softmax()


@dataclass(frozen=True)
class Sigmoid(Link):
    """p = 1/(1 + exp(−f)) for each tag independently; scores are log-odds.

    >>> import numpy as np
    >>> Sigmoid().probabilities(np.array([[0.0, np.log(3.0)]])).round(2)
    array([[0.5 , 0.75]])
    """

    def probabilities(self, scores):
        return expit(scores)

    def log_probabilities(self, scores):
        return log_expit(scores)

    def onnx_probabilities(self, scores):
        return scores.sigmoid()
