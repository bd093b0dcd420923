"""All distinct rows as centres, on a device: the counterpart of :mod:`kproba.solvers.dual`, one factor per ridge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Device
from .cholesky import warn_singular
from .dual import DualSolution, resolvable

#: Columns of the inverse factor computed at a time.
COLUMNS = 2048
#: Peak memory in float64 matrices: the matrix, its factor and a working copy.
COPIES = 3.3


def fits(device: Device, b: int) -> bool:
    """Whether the dense form with b centres fits into the memory of the device."""
    return COPIES * 8.0 * b * b <= device.free_bytes


@dataclass(frozen=True)
class DeviceDual:
    """K (b, b) on the device, weight Ω (b,) and weighted target sums Ωt̄ (b, k) of the distinct rows."""

    device: Device
    K: Any
    weight: np.ndarray
    sums: np.ndarray

    def path(self, ridges: Sequence[float]) -> Iterator[DualSolution]:
        """The solution for every total ridge ρ. With B = (M + ρI)⁻¹ the hat matrix is I − ρB."""
        M, root = self._weighted(), np.sqrt(self.weight)[:, None]
        diagonal = np.array(self.device.get(self.device.xp.linalg.diagonal(M)))  # a copy, because M is modified
        for ridge in (resolvable(ridge, diagonal) for ridge in ridges):
            lower, ridge = self._factored(M, diagonal, ridge)
            half = self.device.solve_lower(lower, self.device.put(self.sums / root))
            scaled = self.device.get(self.device.solve_lower(lower, half, transposed=True))
            leverage = (1.0 - ridge * self._inverse_diagonal(lower)) / self.weight
            del lower, half
            fitted = self.sums / self.weight[:, None] - ridge * scaled / root

            def coef(scaled=scaled):
                return root * scaled

            yield DualSolution(fitted, leverage, coef)

    def _weighted(self):
        if (self.weight == 1.0).all():
            return self.K
        root = self.device.put(np.sqrt(self.weight))
        return self.K * root[:, None] * root[None, :]

    def _factored(self, M, diagonal: np.ndarray, ridge: float):
        """The factor of M + ρI, and ρ, increased if M is more indefinite than rounding errors explain.

        M is modified temporarily, because a copy would double the memory.
        """
        while True:
            self.device.set_diagonal(M, diagonal + ridge)
            lower = self.device.cholesky(M)
            self.device.set_diagonal(M, diagonal)
            if lower is not None:
                return lower, ridge
            ridge *= 10.0
            warn_singular(len(self.weight), ridge)

    def _inverse_diagonal(self, lower) -> np.ndarray:
        """diag((LLᵀ)⁻¹), the squared column norms of L⁻¹, which is lower triangular."""
        b, parts = lower.shape[0], []
        for start in range(0, b, COLUMNS):
            width = min(COLUMNS, b - start)
            unit = self.device.zeros((b - start, width))
            unit[:width, :] = self.device.eye(width)
            columns = self.device.solve_lower(lower[start:, start:], unit)
            parts.append(self.device.get(self.device.xp.sum(columns * columns, axis=0)))
        return np.concatenate(parts)
