"""The calibrated softmax, fitted on held-out scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from ..arrays import Device, Replayed
from ..data.hashing import first_in_order
from ..threads import one_blas_thread
from .base import Link, by_row, complete_by_prior, log_softplus, onnx_rise, positive_prior, rise, softmax

#: The link has few parameters, so it is fitted on at most this many rows, and about this many rows times classes.
LINK_ROWS, LINK_CELLS = 20_000, 100_000
#: Fewer rows times classes are not worth a device.
CELLS_ON_DEVICE = 1 << 14


@dataclass(frozen=True)
class CalibratedSoftmax(Link):
    """p ∝ exp(log π + a·(ψ(q) − ψ(π)) + o·g), fitted on leave-one-out scores.

    g = ΣS is near one within the data and zero far away; q = S + (1 − g)π completes the scores with the class prior π,
    so that they sum to one. ψ(q) = log softplus(κq) is linear in q for small κ, where p ∝ exp(βq), and log q₊ for large
    κ, where p ∝ q₊^a, a smooth version of the papers' clipping. There is one slope a and one offset o per class. Scores
    of zero give exactly the prior. Just outside the data, scores may exceed the range the link was fitted on, so q is
    clipped to that range, ``span``, and g to [0, 1].

    Finally p becomes (1 − ε)p + επ, where ε = ``doubt`` is the share of one more row among those of the fit: even if
    all of n rows agree, the next one may not (Laplace's rule of succession).
    """

    prior: np.ndarray
    slope: np.ndarray
    sharpness: float
    offset: np.ndarray
    span: tuple[float, float] = (-np.inf, np.inf)
    doubt: float = 0.0
    is_calibrated: ClassVar[bool] = True

    @classmethod
    def fit(cls, held_out, rows, device=None):
        """``device`` computes the loss, if there are enough rows to be worth it."""
        most = min(LINK_ROWS, max(1000, LINK_CELLS // rows.n_classes))
        some = first_in_order(rows.keys, most) if len(rows) > most else slice(None)
        parts = held_out[some], rows.targets(some), rows.weight[some], positive_prior(rows)
        if device is None or parts[0].size < CELLS_ON_DEVICE:
            return SoftmaxFit(*parts).run()
        return DeviceSoftmaxFit(*parts, device).run()

    def decision(self, scores):
        g = np.clip(scores.sum(axis=1, keepdims=True), 0.0, 1.0)
        q = np.clip(complete_by_prior(scores, self.prior), *self.span)
        rise = log_softplus(self.sharpness * q) - log_softplus(self.sharpness * self.prior)
        logits = np.log(self.prior) + self.slope * rise + g * self.offset
        if not self.doubt:
            return logits
        return np.logaddexp(log_softmax(logits, axis=1) + np.log1p(-self.doubt), np.log(self._of_next_row))

    @property
    def _of_next_row(self) -> np.ndarray:
        """επ; rare classes have a little more than their share in ``prior``, which therefore need not sum to one."""
        return self.doubt * self.prior / self.prior.sum()

    def probabilities(self, scores):
        return softmax(self.decision(scores))

    def log_probabilities(self, scores):
        return log_softmax(self.decision(scores), axis=1)

    def explained(self, scores):
        """q, the estimates of the class probabilities before calibration."""
        return complete_by_prior(scores, self.prior)

    def onnx_probabilities(self, scores):
        g = scores.sum()
        q = (scores + (1.0 - g) * self.prior).maximum(self.span[0]).minimum(self.span[1])
        risen = onnx_rise(self.sharpness, q, self.prior)
        p = (risen * self.slope + np.log(self.prior) + g.maximum(0.0).minimum(1.0) * self.offset).softmax()
        return p * (1.0 - self.doubt) + self._of_next_row if self.doubt else p


class SoftmaxFit:
    """The penalised log-loss of the calibrated softmax, minimised over x = (log a, log κ, δ, o).

    The slope of a class is a·e^δ. Two things keep the fit finite on separable scores: targets are shrunk towards the
    prior by the weight of one row, and slopes, offsets and κ have penalties worth about one row.
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
        self.doubt = 1.0 / (float(self.total) + 1.0)
        self.targets = (1.0 - self.doubt) * targets + self.doubt * prior
        self.share = (weight / self.total)[:, None]

    def run(self) -> CalibratedSoftmax:
        c = len(self.prior)
        start = np.concatenate([self.start, np.zeros(2 * c)])
        bounds = [*self.bounds[:2], *[self.bounds[2]] * c, *[self.bounds[3]] * c]
        options = {"maxiter": 200 if c <= 100 else 50}
        found = minimize(self.loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        log_a, log_k, delta, offset = self._split(found.x)
        span = float(min(self.q.min(), self.prior.min())), float(max(self.q.max(), self.prior.max()))
        return CalibratedSoftmax(self.prior, np.exp(log_a + delta), float(np.exp(log_k)), offset, span, self.doubt)

    def _split(self, x):
        c = len(self.prior)
        return x[0], x[1], x[2 : 2 + c], x[2 + c :]

    def loss(self, x) -> tuple[float, np.ndarray]:
        """Penalised mean log-loss and its gradient."""
        log_a, log_k, delta, offset = self._split(x)
        slope, kappa = np.exp(log_a + delta), np.exp(log_k)
        risen, by_kappa = rise(kappa, self.q, self.prior)
        logits = np.log(self.prior) + slope * risen + self.g * offset
        logits -= by_row(np.maximum, logits)
        p = np.exp(logits)
        norm = by_row(np.add, p)
        p /= norm
        value = np.sum(self.share * (np.log(norm) - by_row(np.add, self.targets * logits)))

        residual = self.share * (p - self.targets)
        by_slope = slope * np.einsum("ij,ij->j", residual, risen)
        by_sharpness = slope @ np.einsum("ij,ij->j", residual, by_kappa)
        by_offset = residual.T @ self.g[:, 0]

        penalty = np.array([self.sharpness_penalty, self.slope_penalty, self.offset_penalty]) / self.total
        shift = log_k - self.start[1]
        value += penalty @ [shift**2, delta @ delta, offset @ offset]
        parts = [[by_slope.sum(), by_sharpness + 2 * penalty[0] * shift], by_slope + 2 * penalty[1] * delta]
        return float(value), np.concatenate([*parts, by_offset + 2 * penalty[2] * offset])


class DeviceSoftmaxFit(SoftmaxFit):
    """The same with the rows on a device."""

    def __init__(self, scores, targets, weight, prior, device: Device):
        super().__init__(scores, targets, weight, prior)
        parts = self.q, self.g, self.targets, self.share, self.prior
        self._sums = Replayed(device, partial(_sums_over_rows, device.xp, *map(device.put, parts)))

    def run(self):
        with one_blas_thread():  # others would spin between the few numbers of a step, and slow down everything else
            return super().run()

    def loss(self, x):
        c = len(self.prior)
        log_a, log_k, delta, offset = self._split(x)
        value, by_log_k, *slopes = self._sums(np.concatenate([np.exp(log_a + delta), [np.exp(log_k)], offset])).tolist()
        by_slope, by_offset = np.array(slopes[:c]), np.array(slopes[c:])
        penalty = np.array([self.sharpness_penalty, self.slope_penalty, self.offset_penalty]) / self.total
        shift = log_k - self.start[1]
        value += penalty @ [shift**2, delta @ delta, offset @ offset]
        parts = [[by_slope.sum(), by_log_k + 2 * penalty[0] * shift], by_slope + 2 * penalty[1] * delta]
        return float(value), np.concatenate([*parts, by_offset + 2 * penalty[2] * offset])


def _sums_over_rows(xp, q, g, targets, share, prior, x):
    """The mean loss and its derivatives by log κ, log slope and offset, from x: the slopes, κ and offsets."""
    c = q.shape[1]
    slope, kappa, offset = x[:c], x[c], x[c + 1 :]
    value, of_q = _log_softplus_and_slope(xp, kappa * q)
    value_there, of_prior = _log_softplus_and_slope(xp, kappa * prior)
    risen = value - value_there
    logits = xp.log(prior) + slope * risen + g * offset
    logits = logits - xp.max(logits, axis=1, keepdims=True)
    p = xp.exp(logits)
    norm = xp.sum(p, axis=1, keepdims=True)
    loss = xp.sum(share * (xp.log(norm) - xp.sum(targets * logits, axis=1, keepdims=True)))
    residual = share * (p / norm - targets)
    by_slope = slope * xp.sum(residual * risen, axis=0)
    by_log_k = xp.sum(slope * xp.sum(residual * (of_q - of_prior), axis=0))
    by_offset = xp.sum(residual * g, axis=0)
    return xp.concat([xp.reshape(each, (-1,)) for each in (loss, by_log_k, by_slope, by_offset)])


def _log_softplus_and_slope(xp, z):
    """:func:`.base.log_softplus_and_slope` of tensors."""
    bounded, is_low = xp.clip(z, -30.0, None), z < -30.0
    small = xp.exp(-xp.abs(bounded))
    softplus = xp.clip(bounded, 0.0, None) + xp.log1p(small)
    slope = bounded * xp.where(bounded > 0, xp.ones_like(z), small) / ((1.0 + small) * softplus)
    return xp.where(is_low, z, xp.log(softplus)), xp.where(is_low, z, slope)
