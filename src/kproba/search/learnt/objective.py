"""The leave-one-out log-loss of a sample as a function of all parameters, and its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ...arrays import Device
from ...data.rows import Rows
from ...links import log_softplus, positive_prior
from .device_losses import DeviceClassLoss, DeviceTagLoss
from .device_sample import DeviceSample
from .parameters import START, Layout
from .sample import Sample, blocks_of

#: Widths (standard deviations) of the prior of weights, factors, widths and mixture around their start. Those of the
#: link are the penalties of :class:`~kproba.links.SoftmaxFit`.
SPREAD = {"weights": 1.0, "factors": 0.25, "widths": 2**0.5, "mixture": 2.0}
LINK_PENALTY = {"tilt": 1.0, "offset": 0.2, "sharpness": 0.1}


#: The loss of each row, the gradient of their weighted mean by the scores, and by the parameters of the link.
Losses = tuple[np.ndarray, np.ndarray, dict]


@dataclass(frozen=True)
class ClassLoss:
    """Log-loss of class scores through the calibrated softmax (:class:`~kproba.links.CalibratedSoftmax`)."""

    prior: np.ndarray
    n: float

    def __call__(self, part: dict, s: np.ndarray, Y: np.ndarray, share: np.ndarray) -> Losses:
        """Of scores s (m, c), targets Y and the shares of the rows in the mean."""
        prior, kappa = self.prior, float(np.exp(part["sharpness"][0]))
        slope = np.exp(part["slope"] + part["tilt"])
        q = s + (1.0 - s.sum(axis=1, keepdims=True)) * prior
        rise = log_softplus(kappa * q) - log_softplus(kappa * prior)
        logits = np.log(prior) + slope * rise + part["offset"]
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        targets = Y + (prior - Y) / (self.n + 1.0)
        losses = np.log(total[:, 0]) - np.einsum("ik,ik->i", targets, logits)

        residual = share[:, None] * (p - targets)
        of_q, of_prior = slope_of_log_softplus(kappa * q), slope_of_log_softplus(kappa * prior)
        by_q = residual * slope * (kappa * of_q)
        by_slope = slope * np.einsum("ik,ik->k", residual, rise)
        by_sharpness = slope @ np.einsum("ik,ik->k", residual, kappa * (q * of_q - prior * of_prior))
        by_link = {"sharpness": by_sharpness, "slope": by_slope.sum(), "tilt": by_slope, "offset": residual.sum(axis=0)}
        return losses, by_q - (by_q @ prior)[:, None], by_link


@dataclass(frozen=True)
class TagLoss:
    """Mean log-loss over tags, with one slope and sharpness for all of them; the last score is the constant's."""

    prior: np.ndarray
    n: float

    def __call__(self, part: dict, s: np.ndarray, Y: np.ndarray, share: np.ndarray) -> Losses:
        prior, kappa, slope = self.prior, float(np.exp(part["sharpness"][0])), float(np.exp(part["slope"][0]))
        q = s[:, :-1] + (1.0 - s[:, -1:]) * prior
        both = ((q, 1.0), (1.0 - q, -1.0), (prior, -1.0), (1.0 - prior, 1.0))
        rise = sum(sign * log_softplus(kappa * z) for z, sign in both)
        by_kappa = sum(sign * kappa * z * slope_of_log_softplus(kappa * z) for z, sign in both)
        odds = slope * rise + np.log(prior / (1.0 - prior))
        targets = Y[:, :-1] + (prior - Y[:, :-1]) / (self.n + 1.0)
        losses = (np.logaddexp(0.0, odds) - targets * odds).mean(axis=1)

        residual = share[:, None] / len(prior) * (expit(odds) - targets)
        by_q = residual * slope * kappa * (slope_of_log_softplus(kappa * q) + slope_of_log_softplus(kappa * (1.0 - q)))
        by_scores = np.hstack([by_q, -(by_q @ prior)[:, None]])
        by_link = {"sharpness": slope * np.sum(residual * by_kappa), "slope": slope * np.sum(residual * rise)}
        return losses, by_scores, by_link


def loss_of(rows: Rows, n: float) -> ClassLoss | TagLoss:
    """The loss of the rows; targets are drawn towards the prior by the weight of one row among n."""
    return (TagLoss if rows.is_multilabel else ClassLoss)(positive_prior(rows), n)


def slope_of_log_softplus(z: np.ndarray) -> np.ndarray:
    """d/dz log log(1 + eᶻ), which is 1 to working precision below −30."""
    bounded = np.maximum(z, -30.0)
    small = np.exp(-np.abs(bounded))
    softplus = np.maximum(bounded, 0.0) + np.log1p(small)
    return np.where(z < -30.0, 1.0, np.where(bounded > 0, 1.0, small) / ((1.0 + small) * softplus))


class Objective:
    """Leave-one-out log-loss of samples of ``rows``, minus the logarithm of the prior over their number."""

    def __init__(
        self,
        rows: Rows,
        start: np.ndarray,
        layout: Layout,
        m: int,
        device: Device | None = None,
        kept: dict[int, Any] | None = None,
    ):
        """``kept`` are the samples of earlier objectives of the same rows, by their size, to use their memory again."""
        self.rows, self.layout, self.start = rows, layout, layout.split(start)
        self.loss = loss_of(rows, rows.total_weight)
        kept = {} if kept is None else kept
        if m not in kept:
            kept[m] = self._new_sample(m, device)
        self.sample: Any = kept[m]

    def _new_sample(self, m: int, device: Device | None) -> Any:
        if device is None or self.rows.together is not None:  # groups are left out on the CPU
            return Sample(m, self.layout)
        loss = (DeviceTagLoss if self.rows.is_multilabel else DeviceClassLoss)(device, self.loss)
        return DeviceSample(device, self.layout, loss)

    def load(self, numbers: np.ndarray) -> None:
        """Take the rows with these numbers as the sample."""
        rows = self.rows
        self._Y, self._weight = rows.targets(numbers), rows.weight[numbers]
        self.sample.load(rows.X[numbers], self._Y, self._weight, blocks_of(rows.together, numbers))

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and gradient of the sample that is loaded."""
        part = self.layout.split(x)
        loss, gradient = self.sample(x) if isinstance(self.sample, DeviceSample) else self._on_cpu(part)
        surprise, by_prior = self._surprise(part)
        n = self.rows.total_weight
        return loss + surprise / n, gradient + by_prior / n

    def _on_cpu(self, part: dict) -> tuple[float, np.ndarray]:
        """Loss and gradient without the prior."""
        scores = self.sample.scores(part)
        share = self._weight / self._weight.sum()
        losses, R, by_link = self.loss(part, scores, self._Y, share)
        return float(share @ losses), self.layout.join({**self.sample.gradient(part, R), **by_link})

    def _surprise(self, part: dict) -> tuple[float, np.ndarray]:
        """Minus the logarithm of the prior, and its gradient."""
        value, gradient = 0.0, {}
        for name, spread in SPREAD.items():
            away = part[name] - (part[name].mean() if name == "weights" else self.start[name])
            value += float(away @ away) / (2.0 * spread**2)
            gradient[name] = away / spread**2
        for name, penalty in LINK_PENALTY.items():
            away = part[name] - (START["sharpness"] if name == "sharpness" else 0.0)
            value += penalty * float(away @ away)
            gradient[name] = 2.0 * penalty * away
        return value, self.layout.join(gradient)
