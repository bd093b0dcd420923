"""A basis of local models: the centres of a region only count for the rows of that region."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Device, is_tensor
from ..kernels import Kernel
from .basis import Basis
from .device_basis import DeviceBasis, basis_on
from .regions import Regions


@dataclass(frozen=True)
class LocalBasis(Basis):
    """Φ(x) = (g_r(x)·k(x, z)) over all regions r and their centres z, with the regions' weights g_r.

    The centres of region r end at ``ends[r]`` in ``centers``, where those of the next one begin. A row has to be
    compared with the centres of its own regions only. ``device`` computes the features, None is the CPU.
    """

    regions: Regions = None  # type: ignore[assignment]
    ends: np.ndarray = None  # type: ignore[assignment]
    device: Any = None  # type: ignore[misc]

    @classmethod
    def of(cls, kernel: Kernel, centers: list[np.ndarray], regions: Regions, workers: int) -> LocalBasis:
        ends = np.cumsum([len(points) for points in centers])
        return cls(kernel, np.concatenate(centers), workers=workers, regions=regions, ends=ends)

    def detached(self) -> LocalBasis:
        return replace(self, device=None)

    def slices(self) -> list[slice]:
        """The centres of each region."""
        return [slice(start, end) for start, end in zip([0, *self.ends[:-1].tolist()], self.ends.tolist())]

    def __call__(self, X) -> np.ndarray:
        phi = np.zeros((len(X), self.n_centers))
        for own, (where, gate) in zip(self.slices(), self.regions.inside(X)):
            phi[where, own] = gate[:, None] * self.kernel(X[where], self.centers[own], self.workers)
        return phi

    def scores(self, X, coef: np.ndarray) -> np.ndarray:
        X = self.device.get(X) if is_tensor(X) else X
        out = np.zeros((len(X), coef.shape[1]))
        for own, (where, gate) in zip(self.slices(), self.regions.inside(X)):
            if len(where):
                basis = basis_on(Basis(self.kernel, self.centers[own], workers=self.workers), self.device)
                basis = basis.for_scores(coef[own])
                out[where] += gate[:, None] * basis.scores(X[where], coef[own])
        return out


def on_device(basis: Basis, device: Device) -> Basis:
    """The basis with features computed on a device."""
    return replace(basis, device=device) if isinstance(basis, LocalBasis) else DeviceBasis.of(basis, device)
