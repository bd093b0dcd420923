"""The interface of links, the link that serves every tag, and functions of scores that links share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from ..data.rows import Rows

#: Rows times tags whose links are fitted together, and rows times columns to which a link is applied at a time.
TAG_CELLS = 1 << 16
#: NumPy adds fewer numbers than this in their order, so adding columns gives the same sums.
FEW_COLUMNS = 8


class Link:
    """Base class of links, which turn scores S (n, c), least-squares estimates of the posteriors, into probabilities.

    The parameter ``link`` is a name or a subclass; :meth:`fit` returns the object that predictions use.
    """

    #: whether the link is fitted on held-out scores; candidates are then compared by their log-loss
    is_calibrated: ClassVar[bool] = False
    #: whether the coefficients of the model are rounded up to zero (2011 Eq. 4)
    rounds_coefficients: ClassVar[bool] = False
    #: False if the outputs may lie outside [0, 1], so that there is no ``predict_proba``
    gives_probabilities = True

    @classmethod
    def fit(cls, held_out: np.ndarray | None, rows: Rows) -> Link:
        """The link for scores like ``held_out`` (n, k), the held-out scores of the rows; None if not calibrated."""
        return PerTag(cls(), rows.constant) if rows.is_multilabel else cls()

    def decision(self, scores: np.ndarray) -> np.ndarray:
        """Values (n, c) whose largest is the predicted class; for tags (n, L), positive if more likely than not."""
        return scores

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities (n, c) whose rows sum to one; for tags, the probability of each tag (n, L)."""
        raise NotImplementedError

    def log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities, −inf for zero; override it if they can be computed without underflow."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities(scores))

    def explained(self, scores: np.ndarray) -> np.ndarray:
        """The affine function (n, c) of the scores that explanations are about; by default the scores themselves."""
        return scores

    def onnx_probabilities(self, scores: Any) -> Any:
        """``probabilities`` of an ``onnx_export.graph.Value``, which has NumPy's operators; optional."""
        raise NotImplementedError


@dataclass(frozen=True)
class PerTag(Link):
    """A two-class link for every tag. Scores (n, L + G) are those of the tags, then the constants (tag plus not-tag).

    ``constant`` (L,) is the column of the constant for each tag.
    """

    link: Link
    constant: np.ndarray

    @property
    def gives_probabilities(self) -> bool:  # type: ignore[override]
        return self.link.gives_probabilities

    def _each(self, function: Callable, scores: np.ndarray) -> np.ndarray:
        tags = scores[:, : len(self.constant)]
        pairs = np.stack([scores[:, self.constant] - tags, tags], axis=2)
        return function(pairs.reshape(-1, 2)).reshape(pairs.shape)

    def decision(self, scores):
        return np.diff(self._each(self.link.decision, scores), axis=2)[:, :, 0]

    def probabilities(self, scores):
        return self._each(self.link.probabilities, scores)[:, :, 1]

    def explained(self, scores):
        return scores[:, : len(self.constant)]

    def onnx_probabilities(self, scores):
        """Tags become rows of two columns: (constant − tag) and tag."""
        tags, constants = scores.columns(0, len(self.constant)), scores.taken_columns(self.constant)
        pairs = (constants - tags).reshaped(-1, 1).joined(tags.reshaped(-1, 1))
        return self.link.onnx_probabilities(pairs).columns(1, 2).reshaped(-1, len(self.constant))


def in_blocks(function: Callable, scores: np.ndarray, n_rows: int = 4096) -> np.ndarray:
    """Apply ``function`` to scores in blocks of rows, because links need several temporaries of the size of their
    input."""
    n_rows = min(n_rows, max(16, TAG_CELLS // max(1, scores.shape[1])))
    if len(scores) <= n_rows:
        return function(scores)
    return np.concatenate([function(scores[start : start + n_rows]) for start in range(0, len(scores), n_rows)])


def complete_by_prior(scores: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """q = S + (1 − g)π: scores completed with the prior, so that rows sum to one."""
    return scores + (1.0 - scores.sum(axis=1, keepdims=True)) * prior


def complete_tags(scores: np.ndarray, prior: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """The same for tags (n, L): g is the constant's score, and not-tag is completed to 1 − q."""
    return scores[:, : len(prior)] + (1.0 - scores[:, constant]) * prior


def by_row(function: np.ufunc, values: np.ndarray) -> np.ndarray:
    """``function.reduce`` over the columns, (n, 1); of few columns one after the other, as NumPy's rows are slow."""
    if not 0 < values.shape[1] < FEW_COLUMNS:
        return function.reduce(values, axis=1, keepdims=True)
    return reduce(function, values.T)[:, None]


def positive_prior(rows: Rows) -> np.ndarray:
    """The prior, kept half a row away from zero (and, for tags, from one) so that its logarithm is finite."""
    edge = 0.5 / ((rows.tag_weight if rows.is_multilabel else rows.total_weight) + 1.0)
    return np.clip(rows.prior, edge, 1.0 - edge)


def softmax(logits: np.ndarray) -> np.ndarray:
    """exp(f)/Σexp(f), with the largest f subtracted first (textbook, p. 324)."""
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def log_softplus(z: np.ndarray) -> np.ndarray:
    """log log(1 + eᶻ), which is z to working precision below −30."""
    bounded = np.maximum(z, -30.0)
    return np.where(z < -30.0, z, np.log(np.maximum(bounded, 0.0) + np.log1p(np.exp(-np.abs(bounded)))))


def log_softplus_and_slope(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``log_softplus`` and z·d/dz of it, the derivative with respect to log κ for z = κq, from one exponential."""
    bounded = np.maximum(z, -30.0)
    small = np.exp(-np.abs(bounded))
    softplus = np.maximum(bounded, 0.0) + np.log1p(small)
    slope = bounded * np.where(bounded > 0, 1.0, small) / ((1.0 + small) * softplus)
    return np.where(z < -30.0, z, np.log(softplus)), np.where(z < -30.0, z, slope)


def rise(kappa: Any, q: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ψ(q) − ψ(π) with ψ(q) = log softplus(κq), and its derivative with respect to log κ."""
    (value, slope), (value_there, slope_there) = (
        log_softplus_and_slope(kappa * q),
        log_softplus_and_slope(kappa * prior),
    )
    return value - value_there, slope - slope_there


def onnx_rise(sharpness: Any, q: Any, prior: np.ndarray) -> Any:
    """The value of ``rise``; the prior takes the same operations, so that q = π gives exactly zero, as in NumPy."""
    return onnx_log_softplus(q * sharpness) - onnx_log_softplus(q.graph.constant(prior) * sharpness)


def onnx_log_softplus(z: Any) -> Any:
    """``log_softplus``. log(1 + u) is u·log(w)/(w − 1) with w the rounded 1 + u: accurate even for tiny u."""
    bounded = z.maximum(-30.0)
    u = (bounded.abs() * -1.0).exp()
    w = u + 1.0
    lost = w.equals(1.0)
    log1p = lost.where(u, u * w.log() / lost.where(1.0, w - 1.0))
    return (z < -30.0).where(z, (bounded.maximum(0.0) + log1p).log())
