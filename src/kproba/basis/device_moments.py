"""H, h and n summed on a device, such that float32 products are accurate enough.

Features of a radial kernel are all positive, so H has one huge eigenvalue, and the rounding errors of a float32 product
are relative to that one. Subtracting the mean μ of the features removes this direction: with φ = ψ + μ, Σwφφᵀ = Σwψψᵀ +
sμᵀ + μsᵀ + nμμᵀ, where s = Σwψ, and everything but the products of ψ is float64.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import Device
from .exact_sums import ExactSums
from .moments import Moments

#: With at least the first number of centres, H is computed in this many strips that end at the diagonal, which saves
#: nearly half the work.
MANY_CENTERS, STRIPS = 2048, 16


class DeviceMoments:
    """Running sums Σwψψᵀ (lower triangle), Σwψ[t, 1]ᵀ and Σwt, to be added to the moments ``before``.

    Rows of unit weight can also be summed in integers (:mod:`.exact_sums`).
    """

    def __init__(self, device: Device, b: int, k: int, before: Moments | None = None):
        self.device, self.before = device, before
        self.h = device.zeros((b, k + 1))
        self.totals, self.n = np.zeros(k), 0.0
        self.mean: Any = None
        self._exact: ExactSums | None = None

    @cached_property
    def H(self):
        return self.device.zeros((self.h.shape[0], self.h.shape[0]))

    def add_exactly(self, phi, codes: np.ndarray, largest: float) -> DeviceMoments:
        """Add features (b, m) between 0 and ``largest`` on the device, in integers, with class codes (m,)."""
        k = len(self.totals)
        if self.mean is None:
            self.mean = self.device.xp.mean(phi, axis=1)
        if self._exact is None:
            self._exact = ExactSums(self.device, self.mean, largest, k)
        self.n += float(len(codes))
        self.totals += np.bincount(codes, minlength=k)
        self._exact.add(phi, codes)
        return self

    def _absorb_exact(self) -> None:
        """Move the sums in integers into those in floating point."""
        if self._exact is not None:
            self.H += self._exact.H
            self.h += self._exact.h
            self._exact = None

    def add(self, phi, targets: np.ndarray, weight: np.ndarray) -> DeviceMoments:
        """Add a batch of features (m, b) on the device, which are overwritten, with targets (m, k) or class codes."""
        if self.mean is None:
            self.mean = self.device.xp.mean(phi, axis=0)
        phi -= self.mean
        self.n += float(weight.sum())
        weighted = not (weight == 1.0).all()
        self.h += self.device.product(phi.mT, self._weighted_targets(phi, targets, weight if weighted else None))
        if weighted:
            phi *= self._like(phi, np.sqrt(weight)[:, None])
        for strip in self._strips(phi.shape[1]):
            self.H[strip, : strip.stop] += self.device.product(phi[:, strip].mT, phi[:, : strip.stop])
        return self

    def _weighted_targets(self, phi, targets: np.ndarray, weight: np.ndarray | None):
        """w[t, 1] (m, k + 1) on the device; also adds the targets to the totals. ``weight=None`` means unit weights."""
        xp, k = self.device.xp, len(self.totals)
        if targets.ndim == 1:
            self.totals += np.bincount(targets, weight, k)
            codes = self.device.put(targets.astype(np.uint8 if k <= 256 else np.int32))  # small to transfer
            there = xp.astype(codes[:, None] == self.device.put(np.arange(k, dtype=np.int32)), phi.dtype)
        else:
            self.totals += targets.sum(axis=0) if weight is None else weight @ targets
            there = self._like(phi, targets)
        there = xp.concat([there, xp.ones_like(there[:, :1])], axis=1)
        return there if weight is None else there * self._like(phi, weight[:, None])

    def to_numpy(self) -> Moments:
        """The sums so far as NumPy arrays."""
        self._absorb_exact()
        k, mean = len(self.totals), self._mean_float64()
        own = self.h[:, k:]
        turned = own @ mean.mT + mean @ own.mT + self.n * (mean @ mean.mT)
        turned += self.H.mT  # Hᵀ in row-major order is H in column-major order, as Moments stores it
        h = self.device.get(self.h[:, :k] + mean * self.device.put(self.totals))
        total = Moments(self.device.get(turned).T, h, self.totals.copy(), self.n)
        return total if self.before is None else total + self.before

    def _mean_float64(self):
        if self.mean is None:
            return self.device.zeros((self.H.shape[0], 1))
        return self.device.to_float64(self.mean)[:, None]

    def _like(self, phi, array: np.ndarray):
        return self.device.xp.astype(self.device.put(array), phi.dtype, copy=False)

    @staticmethod
    def _strips(b: int) -> list[slice]:
        n = STRIPS if b >= MANY_CENTERS else 1
        edges = [round(b * k / n) for k in range(n + 1)]
        return [slice(start, stop) for start, stop in pairwise(edges)]
