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
from ..solvers.cholesky import smallest_jitter, with_jitter
from .likelihood import KEEP_BYTES, Design

#: Fewer entries of Φ are not worth the transfers.
FEWEST = 1 << 17


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
        return is_plain and FEWEST <= len(rows) * basis.n_centers <= KEEP_BYTES // 8 - len(rows)

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

    def spread_of_classes(self, objective, P: np.ndarray, weight: np.ndarray, rows: np.ndarray, base: bool):
        """Diagonal blocks (m, c, c) of M for some rows, before the contrasts: see :func:`.leave_one_out._coupling`."""
        device, xp, root = self.device, self.device.xp, np.sqrt(weight)
        halves = [self._half(objective, np.maximum(p, 1e-12) * weight) for p in P.T]
        inner = device.eye(len(P))
        if self.intercept and not base:
            inner = inner + device.put(np.outer(root, root / (root @ root)))
        scaled = [half * device.put(p * root)[None, :] for p, half in zip(P.T, halves)]
        for part in scaled:
            inner = inner - part.mT @ part
        lower = smallest_jitter(lambda jitter: device.cholesky(inner + jitter * device.eye(len(P))), 1e-10, 1e-10)[0]
        there, cross, own = device.put(rows), [], []
        for part, half in zip(scaled, halves):
            some = xp.take(half, there, axis=1)
            cross.append(device.solve_lower(lower, part.mT @ some).mT)
            own.append(xp.sum(some * some, axis=0))
        blocks = xp.stack(cross, axis=1)
        spread = device.get(blocks @ blocks.mT)
        np.einsum("ijj->ij", spread)[:] += device.get(xp.stack(own, axis=1))
        return spread

    def _half(self, objective, weight: np.ndarray):
        """L⁻¹φ of all rows (b + 1, n), where LLᵀ = Σ wφφᵀ + ρK."""
        device, phi = self.device, self.there
        H, penalty = phi.mT @ (phi * device.put(weight)[:, None]), device.put(objective.gram)
        system, one = H + objective.rho * penalty, device.eye(self.n_columns)
        diagonal, size = device.get(device.xp.linalg.diagonal(H)), float(np.diagonal(objective.gram).mean())
        lower = with_jitter(lambda jitter: device.cholesky(system + jitter * one), diagonal, size, objective.rho)
        return device.solve_lower(lower, phi.mT)
