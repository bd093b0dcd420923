"""The products of a kernel logistic regression on a device: the counterpart of :class:`.likelihood.Design`.

Newton's steps and their conjugate gradients stay on the CPU, where their vectors are small.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Device
from ..basis.basis import Basis
from ..basis.device_basis import DeviceBasis
from ..data.items import Items
from ..data.rows import Rows
from .likelihood import KEEP_BYTES, LOW_PRECISION, Design


def design_on(device: Device, rows: Rows, basis: Basis, intercept: bool) -> DeviceDesign | None:
    """The design of the rows on a device, if it serves them."""
    return DeviceDesign(rows, basis, intercept, device) if DeviceDesign.serves(rows, basis) else None


class DeviceDesign(Design):
    """Φ (n, b + 1) in float64 on a device, and a copy in memory for leave-one-out."""

    def __init__(self, rows: Rows, basis: Basis, intercept: bool, device: Device):
        self.device = device
        super().__init__(rows, basis, intercept)

    @staticmethod
    def serves(rows: Rows, basis: Basis) -> bool:
        """Whether the rows can be computed there, fit, and are many enough to be worth the transfers."""
        is_plain = basis.kernel.runs_on_devices and not isinstance(rows.X, Items) and not rows.is_sparse
        is_plain = is_plain and basis.owner is None
        return is_plain and LOW_PRECISION <= len(rows) * basis.n_centers <= KEEP_BYTES // 8 - len(rows)

    @cached_property
    def there(self) -> Any:
        """Φ on the device."""
        basis = DeviceBasis.of(self.basis, self.device, use_float64=True)
        parts = [basis(batch.X) for batch in basis.batches(self.rows)]
        constant = self.device.zeros((len(self.rows), int(self.intercept))) + 1.0
        return self.device.xp.concat([self.device.xp.concat(parts), constant], axis=1)

    def _all(self) -> np.ndarray:
        return self.device.get(self.there)

    def columns(self, X: np.ndarray) -> np.ndarray:
        return self.device.get(self.there @ self.device.put(X))

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        return self.device.get(self.there.mT @ self.device.put(R))

    def gram(self, weight: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(weight)
        phi = self.device.xp.take(self.there, self.device.put(used), axis=0)
        return self.device.get(phi.mT @ (phi * self.device.put(weight[used])[:, None]))

    def solved(self, factor) -> Any:
        """ψ = L⁻¹φ of every row, on the device and in float32."""
        lower = self.device.put(np.tril(factor.lower))  # LAPACK leaves other numbers above the diagonal
        psi = self.device.solve_lower(lower, self.there.mT).mT
        return self.device.xp.astype(psi, self.device.xp.float32)
