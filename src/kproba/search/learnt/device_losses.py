"""The losses of :mod:`.objective` on a device: values, and gradients by scores and by the parameters of the link."""

from __future__ import annotations

from typing import Any

from ...arrays import Device

#: The weighted mean loss, its gradient by the scores, and by the parameters of the link.
Slopes = tuple[Any, Any, dict[str, Any]]


class DeviceClassLoss:
    """See :class:`.objective.ClassLoss`."""

    def __init__(self, device: Device, loss):
        self.device, self.prior, self.n = device, device.put(loss.prior), loss.n

    def __call__(self, part: dict[str, Any], s, Y, share) -> Slopes:
        xp, prior = self.device.xp, self.prior
        kappa, slope = xp.exp(part["sharpness"]), xp.exp(part["slope"] + part["tilt"])
        q = s + (1.0 - xp.sum(s, axis=1, keepdims=True)) * prior
        value, of_q = log_softplus_and_slope(xp, kappa * q)
        value_of_prior, of_prior = log_softplus_and_slope(xp, kappa * prior)
        rise = value - value_of_prior
        logits = xp.log(prior) + slope * rise + part["offset"]
        logits = logits - xp.max(logits, axis=1, keepdims=True)
        p = xp.exp(logits)
        total = xp.sum(p, axis=1, keepdims=True)
        targets = Y + (prior - Y) / (self.n + 1.0)
        losses = xp.log(total) - xp.sum(targets * logits, axis=1, keepdims=True)

        residual = share[:, None] * (p / total - targets)
        by_q = residual * slope * (kappa * of_q)
        by_slope = slope * xp.sum(residual * rise, axis=0)
        by_sharpness = slope * xp.sum(residual * (kappa * (q * of_q - prior * of_prior)), axis=0)
        by_link = {"sharpness": xp.sum(by_sharpness), "slope": xp.sum(by_slope), "tilt": by_slope}
        by_link["offset"] = xp.sum(residual, axis=0)
        by_scores = by_q - xp.sum(by_q * prior, axis=1, keepdims=True)
        return xp.sum(share[:, None] * losses), by_scores, by_link


class DeviceTagLoss(DeviceClassLoss):
    """See :class:`.objective.TagLoss`."""

    def __call__(self, part: dict[str, Any], s, Y, share) -> Slopes:
        xp, prior, c = self.device.xp, self.prior, self.prior.shape[0]
        kappa, slope = xp.exp(part["sharpness"]), xp.exp(part["slope"])
        q = s[:, :-1] + (1.0 - s[:, -1:]) * prior
        (up, of_up), (down, of_down), (there, of_there), (away, of_away) = (
            log_softplus_and_slope(xp, kappa * z) for z in (q, 1.0 - q, prior, 1.0 - prior)
        )
        rise = up - down - there + away
        by_kappa = kappa * (q * of_up - (1.0 - q) * of_down - prior * of_there + (1.0 - prior) * of_away)
        odds = slope * rise + xp.log(prior / (1.0 - prior))
        targets = Y[:, :-1] + (prior - Y[:, :-1]) / (self.n + 1.0)
        small = xp.exp(-xp.abs(odds))
        softplus = xp.clip(odds, 0.0, None) + xp.log1p(small)
        expit = xp.where(odds > 0, xp.ones_like(small), small) / (1.0 + small)

        residual = share[:, None] / c * (expit - targets)
        by_q = residual * slope * kappa * (of_up + of_down)
        by_link = {"sharpness": xp.sum(slope * residual * by_kappa), "slope": xp.sum(slope * residual * rise)}
        by_scores = xp.concat([by_q, -xp.sum(by_q * prior, axis=1, keepdims=True)], axis=1)
        return xp.sum(share[:, None] * (softplus - targets * odds)) / c, by_scores, by_link


def log_softplus_and_slope(xp, z) -> tuple[Any, Any]:
    """log log(1 + eᶻ) and its derivative, which are z and 1 to working precision below −30."""
    bounded, is_low = xp.clip(z, -30.0, None), z < -30.0
    small, one = xp.exp(-xp.abs(bounded)), xp.ones_like(z)
    softplus = xp.clip(bounded, 0.0, None) + xp.log1p(small)
    slope = xp.where(bounded > 0, one, small) / ((1.0 + small) * softplus)
    return xp.where(is_low, z, xp.log(softplus)), xp.where(is_low, one, slope)
