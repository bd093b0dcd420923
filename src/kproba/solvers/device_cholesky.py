"""(H + ρP)θ = h and leverages on a device in float64: the counterpart of :mod:`kproba.solvers.cholesky`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Device
from .cholesky import with_jitter


@dataclass(frozen=True)
class DeviceFactor:
    """The lower factor L of the system."""

    device: Device
    lower: Any

    def solve(self, h: np.ndarray) -> np.ndarray:
        """θ for several right-hand sides."""
        half = self.device.solve_lower(self.lower, self.device.put(h))
        return self.device.get(self.device.solve_lower(self.lower, half, transposed=True))

    def leverage(self, phi) -> np.ndarray:
        """φᵀ(H + ρP)⁻¹φ = ‖L⁻¹φ‖² of every row of features, which are on the device."""
        half = self.device.solve_lower(self.lower, self.device.to_float64(phi).mT)
        return self.device.get(self.device.xp.sum(half * half, axis=0))


class DevicePath:
    """H (NumPy, lower triangle) and P (on the device, None for the identity) of a system without its ridge."""

    def __init__(self, device: Device, H: np.ndarray, penalty):
        self.device, self._diagonal, self._one = device, np.diagonal(H), device.eye(len(H))
        self._H = device.put(H.T).mT  # keeps the memory layout
        self._penalty = self._one if penalty is None else penalty
        self._size = None if penalty is None else float(device.get(device.xp.linalg.trace(penalty))) / len(H)

    def at(self, ridge: float) -> DeviceFactor:
        """The factor at one ridge, with jitter on the diagonal if it is needed."""
        system = self._H + float(ridge) * self._penalty

        def decompose(jitter: float):
            return self.device.cholesky(system + jitter * self._one)

        return DeviceFactor(self.device, with_jitter(decompose, self._diagonal, self._size, ridge))
