"""A basis whose features are computed, summed and used on a device."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..arrays import BLOCK_BYTES, Device, is_tensor
from ..data.rows import Rows
from ..data.sweep import sweep
from ..threads import row_slices
from .basis import Basis, refuse_indefinite
from .device_moments import DeviceMoments
from .moments import Moments

#: float32 sums are used if every eigenvalue of λP is above the first, exact sums of float32 features if it is above the
#: second, and float32 features for scores if these lose at most the third.
RESOLVED, RESOLVED_EXACTLY, LOST = 1e-6, 1e-10, 1e-5
#: Fewer centres are summed in floating point: a tile of the products in integers would be mostly empty.
FEWEST_EXACT = 32


@dataclass(frozen=True)
class DeviceBasis(Basis):
    """Φ(x) on a device. Calling it returns tensors; moments, matrices and scores are NumPy arrays, as for a Basis.

    Kernels that only NumPy can compute, such as a user function, are computed on the CPU and copied to the device.
    Features of float32 rows are float32 unless ``use_float64`` is set.
    """

    device: Any = None  # type: ignore[misc]
    use_float64: bool = False
    block_bytes: ClassVar[int] = BLOCK_BYTES

    @classmethod
    def of(cls, basis: Basis, device: Device, use_float64: bool = False) -> DeviceBasis:
        return cls(basis.kernel, basis.centers, basis.owner, basis.row_center, basis.workers, device, use_float64)

    def __getstate__(self):
        """Without the cached tensors; the receiver creates its own."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def on_cpu(self) -> Basis:
        """The same basis on NumPy."""
        return Basis(self.kernel, self.centers, self.owner, self.row_center, self.workers)

    def __call__(self, X):
        if not self.kernel.runs_on_devices:
            return self.device.put(self.on_cpu(self.device.get(X) if is_tensor(X) else X))
        X = self.to_device(X)
        return self.kernel.on_device(self.device, X, self._centers_like(X))

    def gram_on_device(self):
        """K_zz (b, b) in float64 on the device; only its lower triangle is used."""
        if not self.kernel.runs_on_devices:
            return self.device.put(self.gram())
        centers = self.device.put(self.centers, np.float64)
        K = self.kernel.gram_on_device(self.device, centers)
        if not self.kernel.is_definite:
            refuse_indefinite(self.device.get(K))
        return K

    def _centers_like(self, X):
        return self._centers_32 if X.dtype == self.device.xp.float32 else self._centers_64

    @cached_property
    def _centers_32(self):
        return self.device.put(self.centers, np.float32)

    @cached_property
    def _centers_64(self):
        return self.device.put(self.centers, np.float64)

    def moments(self, rows: Rows) -> Moments:
        def add(total: DeviceMoments, batch) -> DeviceMoments:
            return total.add(self(batch.X), batch.targets, batch.weight)

        return sweep(self.batches(rows), self.running_moments(rows.n_targets), add).to_numpy()

    def row_bytes(self, X) -> int:
        return (4 if str(X.dtype).endswith("float32") and not self.use_float64 else 8) * self.n_centers

    def to_device(self, X):
        there = X if is_tensor(X) else self.device.put(X)
        return self.device.to_float64(there) if self.use_float64 else there

    def for_sums(self, ridge: float, rkhs: bool) -> DeviceBasis:
        """This basis in the precision that sums for a ridge λ need.

        Rounding errors of float32 sums are about 1e-8 of n in every direction, those of float32 features in exact sums
        about 1e-14. They are harmless if the penalty λP is far larger in all directions, which is tested by trying to
        factor λP − τI.
        """
        least = RESOLVED_EXACTLY if self._can_sum_exactly else RESOLVED
        if not rkhs:
            return replace(self, use_float64=ridge < least)
        left = float(ridge) * self.gram_on_device() - least * self.device.eye(self.n_centers)
        return replace(self, use_float64=self.device.cholesky(left) is None)

    def running_moments(self, k: int, before: Moments | None = None) -> DeviceMoments:
        return DeviceMoments(self.device, self.n_centers, k, before)

    def add_part(self, total: DeviceMoments, part) -> DeviceMoments:
        X = self.to_device(part.X)
        if not self._can_sum_exactly or X.dtype != self.device.xp.float32:
            return total.add(self(X), part.codes, part.weight)
        if not (part.weight == 1.0).all():  # integers have no weights, and float32 sums would be less accurate
            return total.add(self(self.device.to_float64(X)), part.codes, part.weight)
        assert self.kernel.largest is not None
        phi = self.kernel.on_device(self.device, self._centers_like(X), X)
        return total.add_exactly(phi, part.codes, self.kernel.largest)

    @property
    def _can_sum_exactly(self) -> bool:
        """Whether the features of float32 rows can be summed in integers, which is faster and more accurate."""
        is_bounded = self.kernel.runs_on_devices and self.kernel.largest is not None
        return self.device.has_integer_products and is_bounded and self.n_centers >= FEWEST_EXACT

    def for_scores(self, coef: np.ndarray) -> DeviceBasis:
        """This basis in the precision that scores need: with large coefficients, float32 loses too many digits."""
        lost = np.finfo(np.float32).eps * float(np.abs(coef).sum(axis=0).max(initial=0.0))
        return replace(self, use_float64=bool(lost > LOST))

    def scores(self, X, coef: np.ndarray) -> np.ndarray:
        blocks = row_slices(X.shape[0], 2 * 8 * self.n_centers, BLOCK_BYTES)
        out = [self.apply(self(X[rows, ...]), coef) for rows in blocks]
        return np.concatenate(out) if out else np.empty((0, coef.shape[1]))

    def apply(self, phi, coef: np.ndarray) -> np.ndarray:
        return self.device.get(self.device.to_float64(phi) @ self.device.put(coef))

    def adjoint(self, phi, values: np.ndarray) -> np.ndarray:
        return self.device.get(self.device.to_float64(phi).mT @ self.device.put(values))


def basis_on(basis: Basis, device: Device | None, use_float64: bool = False) -> Basis:
    """The basis on a device, or unchanged if ``device`` is None."""
    return basis if device is None else DeviceBasis.of(basis, device, use_float64)
