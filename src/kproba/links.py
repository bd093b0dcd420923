"""From scores to probabilities: rows that are at least zero and sum to one, always.

A link sees raw scores S (n, c), the least-squares estimates of the class posteriors. ``decision`` gives the
numbers whose order it decides by, ``probabilities`` normalises them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from .data.rows import Rows

NAMES = ("auto", "clip", "clip-parameters", "none", "softmax")
#: Those that are fitted on held-out scores.
CALIBRATED = ("auto", "softmax")


@dataclass(frozen=True)
class Clip:
    """Negative scores become zero, then rows are normalised; all zero gives 1/c (2011 Eq. 6, 2010 Eq. 3).

    >>> import numpy as np
    >>> Clip().probabilities(np.array([[0.6, 0.2, -0.1], [-1.0, -1.0, -2.0]])).round(3)
    array([[0.75 , 0.25 , 0.   ],
           [0.333, 0.333, 0.333]])
    """

    def decision(self, scores: np.ndarray) -> np.ndarray:
        return self.probabilities(scores)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        positive = np.maximum(scores, 0.0)
        largest = positive.max(axis=1, keepdims=True)
        # dividing by the largest first keeps scores near the smallest float from vanishing in the sum
        positive = np.divide(positive, largest, out=np.ones_like(positive), where=largest > 0)
        return positive / positive.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Ratio:
    """Scores over their sum (LSPC′, 2011 Eq. 5): not probabilities, they may be negative or exceed one.

    >>> import numpy as np
    >>> Ratio().decision(np.array([[0.8, -0.3]]))
    array([[ 1.6, -0.6]])
    """

    def decision(self, scores: np.ndarray) -> np.ndarray:
        total = scores.sum(axis=1, keepdims=True)
        uniform = np.full_like(scores, 1.0 / scores.shape[1])
        return np.divide(scores, total, out=uniform, where=np.abs(total) > np.finfo(scores.dtype).tiny)


@dataclass(frozen=True)
class Softmax:
    """p = exp(f)/Σexp(f): scores that were fitted as logarithms of probabilities (2001 Eq. 7, textbook Eq. 28.1).

    >>> import numpy as np
    >>> Softmax().probabilities(np.array([[0.0, np.log(3.0)]])).round(2)
    array([[0.25, 0.75]])
    """

    def decision(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        return softmax(scores)


@dataclass(frozen=True)
class Sigmoid:
    """p = 1/(1 + exp(−f)) for each tag by itself: scores are log-odds.

    >>> import numpy as np
    >>> Sigmoid().probabilities(np.array([[0.0, np.log(3.0)]])).round(2)
    array([[0.5 , 0.75]])
    """

    def decision(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        return expit(scores)


@dataclass(frozen=True)
class CalibratedSoftmax:
    """p ∝ exp(log π + a·(ψ(q) − ψ(π)) + o·g), fitted on leave-one-out scores.

    g = ΣS is near one among the data and zero far away; q = S + (1 − g)π completes the scores by the class
    prior π, so that they sum to one. ψ(q) = log softplus(κq) is linear in q for small κ, where p ∝ exp(βq), and
    log q₊ for large κ, where p ∝ q₊^a: the papers' rounding, made smooth. Slopes a and offsets o are one a
    class. A score of zero gives exactly the prior. Just outside the data scores may swing further than any that
    the link was fitted on; q is held within ``span``, the range it has seen, and g within [0, 1].
    """

    prior: np.ndarray
    slope: np.ndarray
    sharpness: float
    offset: np.ndarray
    span: tuple[float, float] = (-np.inf, np.inf)

    def decision(self, scores: np.ndarray) -> np.ndarray:
        g = np.clip(scores.sum(axis=1, keepdims=True), 0.0, 1.0)
        q = np.clip(complete_by_prior(scores, self.prior), *self.span)
        rise = log_softplus(self.sharpness * q) - log_softplus(self.sharpness * self.prior)
        return np.log(self.prior) + self.slope * rise + g * self.offset

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        return softmax(self.decision(scores))


@dataclass(frozen=True)
class PerTag:
    """One two-class link a tag. Scores (n, L + 1): the tags', then the constant's, which is tag plus not-tag."""

    links: tuple

    def _pairs(self, scores):
        constant = scores[:, -1]
        for link, tag in zip(self.links, scores[:, :-1].T):
            yield link, np.column_stack([constant - tag, tag])

    def decision(self, scores: np.ndarray) -> np.ndarray:
        """Positive where a tag is more likely than not."""
        return np.column_stack([np.diff(link.decision(pair), axis=1)[:, 0] for link, pair in self._pairs(scores)])

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The probability of each tag (n, L)."""
        return np.column_stack([link.probabilities(pair)[:, 1] for link, pair in self._pairs(scores)])


def in_blocks(function, scores: np.ndarray, n_rows: int = 4096) -> np.ndarray:
    """``function`` of scores, some rows at a time: a link needs several temporaries of the size of its input."""
    if len(scores) <= n_rows:
        return function(scores)
    return np.concatenate([function(scores[start : start + n_rows]) for start in range(0, len(scores), n_rows)])


def complete_by_prior(scores: np.ndarray, prior: np.ndarray, multilabel: bool = False) -> np.ndarray:
    """q = S + (1 − g)π: scores completed by the prior. Rows of classes then sum to one."""
    g = scores[:, -1:] if multilabel else scores.sum(axis=1, keepdims=True)
    return (scores[:, :-1] if multilabel else scores) + (1.0 - g) * prior


def positive_prior(rows: Rows) -> np.ndarray:
    """The prior, kept half a row away from zero (and, for tags, from one) where its logarithm would be infinite."""
    edge = 0.5 / (rows.total_weight + 1.0)
    return np.clip(rows.prior, edge, 1.0 - edge)


def softmax(logits: np.ndarray) -> np.ndarray:
    """exp(f)/Σexp(f) with the largest f taken out first (textbook, p. 324)."""
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def log_softplus(z: np.ndarray) -> np.ndarray:
    """log log(1 + eᶻ); below −30 it is z to working precision."""
    return np.where(z < -30.0, z, np.log(_softplus(np.maximum(z, -30.0))))


def _softplus(z: np.ndarray) -> np.ndarray:
    return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))


def _log_softplus_slope(z: np.ndarray) -> np.ndarray:
    """z·d/dz log softplus(z): the derivative by the logarithm of κ."""
    bounded = np.maximum(z, -30.0)
    return np.where(z < -30.0, z, bounded * expit(bounded) / _softplus(bounded))


#: The link is fitted on at most this many rows, and about this many rows times classes: its parameters are few.
LINK_ROWS, LINK_CELLS = 20_000, 100_000


def fit_link(name: str, held_out: np.ndarray | None, rows: Rows):
    """The link of that name; the calibrated softmax is fitted on held-out scores (n, k) of the rows."""
    if name in CALIBRATED:
        return _fit_tags(held_out, rows) if rows.is_multilabel else _fit_classes(held_out, rows)
    plain = Ratio() if name == "none" else Clip()
    return PerTag((plain,) * rows.n_classes) if rows.is_multilabel else plain


def _fit_classes(held_out, rows: Rows) -> CalibratedSoftmax:
    most = min(LINK_ROWS, max(1000, LINK_CELLS // rows.n_classes))
    some = np.argsort(rows.keys, kind="stable")[:most] if len(rows) > most else slice(None)
    return SoftmaxFit(held_out[some], rows.targets(some), rows.weight[some], positive_prior(rows)).run()


def _fit_tags(held_out, rows: Rows) -> PerTag:
    links, constant = [], held_out[:, -1]
    for tag, prior in enumerate(positive_prior(rows)):
        scores = np.column_stack([constant - held_out[:, tag], held_out[:, tag]])
        targets = np.column_stack([1.0 - rows.labels[:, tag], rows.labels[:, tag]])
        links.append(SoftmaxFit(scores, targets, rows.weight, np.array([1.0 - prior, prior])).run())
    return PerTag(tuple(links))


class SoftmaxFit:
    """The penalised log-loss that the calibrated softmax minimises over x = (log a, log κ, δ, o).

    The slope of a class is a·e^δ. Two things keep the fit finite on separable scores: targets are drawn towards
    the prior by the weight of one row, and slopes, offsets and κ are held by penalties worth about a row.
    """

    slope_penalty = 1.0
    offset_penalty = 0.2
    sharpness_penalty = 0.1
    start = (0.5, 2.0)
    bounds = ((-5.0, 6.0), (-1.0, 6.0), (-4.0, 4.0), (-8.0, 8.0))

    def __init__(self, scores, targets, weight, prior):
        scores = np.clip(scores, -1e3, 1e3)
        self.prior, self.total = prior, weight.sum()
        self.g = np.clip(scores.sum(axis=1, keepdims=True), 0.0, 1.0)
        self.q = complete_by_prior(scores, prior)
        drawn = 1.0 / (self.total + 1.0)
        self.targets = (1.0 - drawn) * targets + drawn * prior
        self.share = (weight / self.total)[:, None]

    def run(self) -> CalibratedSoftmax:
        c = len(self.prior)
        start = np.concatenate([self.start, np.zeros(2 * c)])
        bounds = [*self.bounds[:2], *[self.bounds[2]] * c, *[self.bounds[3]] * c]
        options = {"maxiter": 200 if c <= 100 else 50}
        found = minimize(self.loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        log_a, log_k, delta, offset = self._split(found.x)
        span = float(min(self.q.min(), self.prior.min())), float(max(self.q.max(), self.prior.max()))
        return CalibratedSoftmax(self.prior, np.exp(log_a + delta), float(np.exp(log_k)), offset, span)

    def _split(self, x):
        c = len(self.prior)
        return x[0], x[1], x[2 : 2 + c], x[2 + c :]

    def loss(self, x) -> tuple[float, np.ndarray]:
        """Penalised mean log-loss and its gradient."""
        log_a, log_k, delta, offset = self._split(x)
        slope, kappa = np.exp(log_a + delta), np.exp(log_k)
        rise = log_softplus(kappa * self.q) - log_softplus(kappa * self.prior)
        logits = np.log(self.prior) + slope * rise + self.g * offset
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        norm = p.sum(axis=1, keepdims=True)
        p /= norm
        value = np.sum(self.share * (np.log(norm) - np.sum(self.targets * logits, axis=1, keepdims=True)))

        residual = self.share * (p - self.targets)
        by_slope = slope * np.einsum("ij,ij->j", residual, rise)
        turn = _log_softplus_slope(kappa * self.q) - _log_softplus_slope(kappa * self.prior)
        by_sharpness = slope @ np.einsum("ij,ij->j", residual, turn)
        by_offset = residual.T @ self.g[:, 0]

        held = np.array([self.sharpness_penalty, self.slope_penalty, self.offset_penalty]) / self.total
        away = log_k - self.start[1]
        value += held @ [away**2, delta @ delta, offset @ offset]
        parts = [[by_slope.sum(), by_sharpness + 2 * held[0] * away], by_slope + 2 * held[1] * delta]
        return float(value), np.concatenate([*parts, by_offset + 2 * held[2] * offset])
