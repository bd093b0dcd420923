"""The calibrated softmax of every tag against "not this tag", fitted on held-out scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit

from .base import TAG_CELLS, Link, complete_tags, log_softplus, onnx_rise, positive_prior, rise
from .calibrated import CalibratedSoftmax, SoftmaxFit


@dataclass(frozen=True)
class CalibratedTags(Link):
    """The calibrated softmax of every tag against "not this tag", all tags at once.

    ``prior`` and ``sharpness`` are (L,). ``slope`` (2, L) is for not-tag and tag, ``span`` (2, L) the smallest and
    largest q. ``offset`` (L,) is added to the log-odds. ``constant`` (L,) is the column of the constant for each tag.
    ``doubt`` (L,) is the share of the prior in the probabilities, or None.
    """

    prior: np.ndarray
    slope: np.ndarray
    sharpness: np.ndarray
    offset: np.ndarray
    span: np.ndarray
    constant: np.ndarray
    doubt: np.ndarray | None = None
    is_calibrated: ClassVar[bool] = True

    @classmethod
    def fit(cls, held_out, rows):
        """Fit tags in groups small enough for the arrays of a step to stay in the cache."""
        prior, width = positive_prior(rows), max(1, TAG_CELLS // len(rows))
        found = []
        for tags in (np.arange(start, min(start + width, len(prior))) for start in range(0, len(prior), width)):
            known = 1.0 if rows.known is None else rows.known[:, tags]
            weight = rows.weight[:, None] * known * np.ones(len(tags))
            columns = held_out[:, tags], held_out[:, rows.constant[tags]]
            found.append(TagsFit(*columns, rows.filled_labels[:, tags], weight, prior[tags]).run())
        slope, sharpness, offset, span = (np.concatenate(parts, axis=-1) for parts in zip(*found))
        return cls(prior, slope, sharpness, offset, span, rows.constant, 1.0 / (rows.tag_weight + 1.0))

    def decision(self, scores):
        """Log-odds of the tags (n, L)."""
        g = np.clip(scores[:, self.constant], 0.0, 1.0)
        q = complete_tags(scores, self.prior, self.constant)
        # not-tag is completed to 1 − q, and both are clipped to the same span
        pairs = (np.clip(1.0 - q, *self.span), 1.0 - self.prior), (np.clip(q, *self.span), self.prior)
        rises = [log_softplus(self.sharpness * x) - log_softplus(self.sharpness * prior) for x, prior in pairs]
        odds = self.slope[1] * rises[1] - self.slope[0] * rises[0] + g * self.offset
        odds = odds + np.log(self.prior / (1.0 - self.prior))
        if self.doubt is None:
            return odds
        return _log_mixed(odds, self.prior, self.doubt) - _log_mixed(-odds, 1.0 - self.prior, self.doubt)

    def probabilities(self, scores):
        return expit(self.decision(scores))

    def log_probabilities(self, scores):
        return log_expit(self.decision(scores))

    def explained(self, scores):
        """q, the estimates of the tags' probabilities before calibration."""
        return complete_tags(scores, self.prior, self.constant)

    def onnx_probabilities(self, scores):
        tags, constants = scores.columns(0, len(self.constant)), scores.taken_columns(self.constant)
        q = tags + (1.0 - constants) * self.prior
        pairs = (1.0 - q, 1.0 - self.prior), (q, self.prior)
        low, high = self.span
        rises = [onnx_rise(self.sharpness, x.maximum(low).minimum(high), prior) for x, prior in pairs]
        odds = rises[1] * self.slope[1] - rises[0] * self.slope[0] + constants.maximum(0.0).minimum(1.0) * self.offset
        p = (odds + np.log(self.prior / (1.0 - self.prior))).sigmoid()
        return p if self.doubt is None else p * (1.0 - self.doubt) + self.doubt * self.prior


def _log_mixed(odds: np.ndarray, prior: np.ndarray, doubt: np.ndarray) -> np.ndarray:
    """The logarithm of (1 − ε)p + επ for the log-odds of p."""
    return np.logaddexp(log_expit(odds) + np.log1p(-doubt), np.log(doubt * prior))


class Calibrated(Link):
    """The softmax calibrated on held-out scores: :class:`CalibratedSoftmax`, or for tags :class:`CalibratedTags`."""

    is_calibrated: ClassVar[bool] = True

    @classmethod
    def fit(cls, held_out, rows, device=None):
        return (
            CalibratedTags.fit(held_out, rows) if rows.is_multilabel else CalibratedSoftmax.fit(held_out, rows, device)
        )


class TagsFit:
    """The loss of :class:`SoftmaxFit` for many tags at once, each minimised separately.

    For two classes only the log-odds matter. For given slopes e^(m−e) and e^(m+e) and a given offset d of the log-odds,
    the best log a, δ and o are m, ∓e and ∓d/2, which leaves x = (m, log κ, e, d) for every tag. Damped Newton steps
    with the expected curvature find the minimum; parameters pushed against a bound stay there.
    """

    start = (*SoftmaxFit.start, 0.0, 0.0)
    bounds = np.array([*SoftmaxFit.bounds[:3], (2 * SoftmaxFit.bounds[3][0], 2 * SoftmaxFit.bounds[3][1])]).T[
        :, :, None
    ]
    most_steps, promised, damping = 60, 1e-10, 0.1

    def __init__(self, tag, constant, labels, weight, prior):
        # one row per tag, so that sums run over contiguous memory
        tag, constant, labels, weight = (np.ascontiguousarray(part.T) for part in (tag, constant, labels, weight))
        tag, constant = (np.clip(part, -1e3, 1e3) for part in (tag, constant))
        total = weight.sum(axis=1)
        self.prior, self.total = prior, np.where(total > 0, total, 1.0)  # only penalties, if a tag has no rows
        self.g = np.clip(constant, 0.0, 1.0)
        self.q = tag + (1.0 - constant) * prior[:, None]
        shrinkage = (1.0 / (self.total + 1.0))[:, None]
        self.targets = (1.0 - shrinkage) * labels + shrinkage * prior[:, None]
        self.share = weight / self.total[:, None]
        penalties = SoftmaxFit.sharpness_penalty, 2.0 * SoftmaxFit.slope_penalty, 0.5 * SoftmaxFit.offset_penalty
        self.penalty = np.stack([np.zeros_like(self.total), *(each / self.total for each in penalties)])

    def run(self) -> tuple[np.ndarray, ...]:
        """Slopes (2, L), sharpness (L,), offset (L,) and span (2, L)."""
        x = self._minimum()
        known, less = self.share > 0, np.minimum(self.prior, 1.0 - self.prior)
        smallest, largest = np.minimum(self.q, 1.0 - self.q), np.maximum(self.q, 1.0 - self.q)
        low = np.minimum(smallest.min(axis=1, where=known, initial=0.5), less)
        high = np.maximum(largest.max(axis=1, where=known, initial=0.5), 1.0 - less)
        return np.exp([x[0] - x[2], x[0] + x[2]]), np.exp(x[1]), x[3], np.stack([low, high])

    def _minimum(self) -> np.ndarray:
        n_tags = len(self.prior)
        x, damping = np.tile(np.array(self.start)[:, None], n_tags), np.full(n_tags, self.damping)
        best, todo = np.full((4, n_tags), np.nan), np.arange(n_tags)
        value, gradient, curvature = self.loss(x, todo)
        for _ in range(self.most_steps):
            step = _bounded_step(gradient, curvature, damping, x, self.bounds)
            tried = np.clip(x + step, *self.bounds)
            found = self.loss(tried, todo)
            better = found[0] <= value
            gain = -np.einsum("it,it->t", gradient, tried - x)
            x[:, better], damping = tried[:, better], np.where(better, 0.2 * damping, 10.0 * damping)
            for old, new in zip((value, gradient, curvature), found):
                old[..., better] = new[..., better]
            more = (np.abs(gain) > self.promised) & (damping < 1e8)
            best[:, todo[~more]] = x[:, ~more]
            todo, x, damping, value = todo[more], x[:, more], damping[more], value[more]
            gradient, curvature = gradient[..., more], curvature[..., more]
            if not len(todo):
                break
        best[:, todo] = x
        return best

    def loss(self, x: np.ndarray, tags) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Penalised mean log-loss (t,) of some tags at x (4, t), its gradient (4, t) and expected curvature (4, 4,
        t)."""
        q, share, g, targets = self.q[tags], self.share[tags], self.g[tags], self.targets[tags]
        low, high, kappa = (np.exp(each)[:, None] for each in (x[0] - x[2], x[0] + x[2], x[1]))
        prior = self.prior[tags][:, None]
        up, up_by_kappa = rise(kappa, q, prior)
        down, down_by_kappa = rise(kappa, 1.0 - q, 1.0 - prior)
        up, down = high * up, low * down
        difference = up - down
        odds = difference + g * x[3][:, None] + np.log(prior / (1.0 - prior))
        slopes = difference, high * up_by_kappa - low * down_by_kappa, up + down, g  # ∂odds/∂x
        small = np.exp(-np.abs(odds))
        p = np.where(odds > 0, 1.0, small) / (1.0 + small)
        value = np.einsum("ti,ti->t", share, np.maximum(odds, 0.0) + np.log(1.0 + small) - targets * odds)
        residual, spread = share * (p - targets), share * p * (1.0 - p)
        gradient = np.stack([np.einsum("ti,ti->t", residual, slope) for slope in slopes])
        curvature = np.empty((4, 4, len(q)))
        for i, slope in enumerate(slopes):
            weighted = spread * slope
            for j in range(i + 1):
                curvature[i, j] = curvature[j, i] = np.einsum("ti,ti->t", weighted, slopes[j])
        penalty, shift = self.penalty[:, tags], x - np.array([0.0, self.start[1], 0.0, 0.0])[:, None]
        np.einsum("iit->it", curvature)[:] += 2.0 * penalty
        return value + (penalty * shift**2).sum(axis=0), gradient + 2.0 * penalty * shift, curvature


def _bounded_step(gradient, curvature, damping, x, bounds) -> np.ndarray:
    """The damped Newton step (4, t) of the parameters that are not pushed against their bounds."""
    is_free = ~(((x <= bounds[0]) & (gradient > 0)) | ((x >= bounds[1]) & (gradient < 0)))
    H = np.moveaxis(curvature * is_free[:, None] * is_free[None], 2, 0)
    diagonal = np.einsum("tii->ti", H)
    diagonal += damping[:, None] * (diagonal + 1e-3 * diagonal.max(axis=1, keepdims=True)) + 1e-300
    diagonal[~is_free.T] = 1.0
    return -np.linalg.solve(H, (gradient * is_free).T[:, :, None])[:, :, 0].T
