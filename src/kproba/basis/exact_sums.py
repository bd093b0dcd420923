"""Sums of products of features in integers, in which no rounding error grows with the number of rows.

A feature ψ = φ − μ of a bounded kernel is rounded to 24 bits, ψ ≈ step·q, as float32 does, and Σqqᵀ is exact within a
batch: it is the matrix of slightly different features, so it has no negative eigenvalue. On a GPU q is split into three
8-bit integers, which tensor cores multiply faster than floating-point numbers
(docs/decisions/0010-full-precision-on-devices.md).
"""

from __future__ import annotations

import numpy as np

from ..arrays import Device

#: Largest q: the highest of its three bytes is at most 127, the others lie between −128 and 127.
LARGEST = 127 * 65536


class ExactSums:
    """Σψψᵀ (b, b; lower triangle) and Σψ[t, 1]ᵀ (b, k + 1) for the mean features μ (b,) of a kernel in [0, largest]."""

    def __init__(self, device: Device, mean, largest: float, k: int):
        b = mean.shape[0]
        self.device, self.mean = device, mean
        self.step = device.xp.maximum(mean, largest - mean) / LARGEST
        self._squares, self._products = device.zeros((b, b)), device.zeros((b, k + 1))

    def add(self, phi, codes: np.ndarray) -> None:
        """Add the features (b, m) of rows with class codes (m,)."""
        k = self._products.shape[1] - 1
        there = self.device.put(codes.astype(np.uint8 if k <= 255 else np.int32))  # small to transfer
        if self.device.has_triton:
            from .integer_products import add_products  # imported here because Triton requires CUDA

            add_products(self._squares, self._products, phi, self.mean, self.step, there)
            return
        xp = self.device.xp
        q = self.device.to_float64(xp.round((phi - self.mean[:, None]) / self.step[:, None]))
        targets = self.device.to_float64(there[:, None] == self.device.put(np.arange(k + 1)))
        targets[:, k] = 1.0
        self._squares += q @ q.mT
        self._products += q @ targets

    @property
    def H(self):
        """Σψψᵀ; only the lower triangle is valid."""
        step = self.device.to_float64(self.step)
        return self._squares * step[:, None] * step[None, :]

    @property
    def h(self):
        return self._products * self.device.to_float64(self.step)[:, None]
