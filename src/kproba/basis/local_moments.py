"""The moments of local models: for each region, those of its rows in the basis of its centres."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..data.encoding import Encoding, Part
from ..data.sweep import Statistic
from ..threads import BATCH_BYTES, map_independent, row_slices
from .basis import Basis
from .local_basis import LocalBasis
from .moments import Moments
from .regions import Inside


@dataclass
class LocalMoments:
    """The moments of all regions, one after the other: H flattened, h (b, k), totals (r, k) and n (r,)."""

    H: np.ndarray
    h: np.ndarray
    totals: np.ndarray
    n: np.ndarray

    @classmethod
    def zeros(cls, ends: np.ndarray, k: int) -> LocalMoments:
        sizes = np.diff(ends, prepend=0)
        return cls(
            np.zeros(int(sizes @ sizes)), np.zeros((int(ends[-1]), k)), np.zeros((len(ends), k)), np.zeros(len(ends))
        )

    def of_regions(self, ends: np.ndarray) -> Iterator[Moments]:
        """The moments of each region, whose arrays are views: products accumulate in place."""
        stop, start = 0, 0
        for region, end in enumerate(ends.tolist()):
            b = end - start
            stop += b * b
            H = self.H[stop - b * b : stop].reshape((b, b), order="F")
            yield Moments(H, self.h[start:end], self.totals[region], float(self.n[region]))
            start = end

    def __add__(self, other: LocalMoments) -> LocalMoments:
        return LocalMoments(self.H + other.H, self.h + other.h, self.totals + other.totals, self.n + other.n)


@dataclass(frozen=True)
class LocalMomentsOf(Statistic):
    """The moments of all regions over the rows of a source, after encoding."""

    basis: LocalBasis
    encoding: Encoding

    @property
    def identity(self):
        regions = self.basis.regions
        splits = regions.column, regions.low, regions.high, regions.children
        return "local moments", self.basis.kernel, self.basis.centers, self.basis.ends, *splits, self.encoding

    def zero(self) -> LocalMoments:
        return LocalMoments.zeros(self.basis.ends, len(self.encoding.classes))

    def add(self, total: LocalMoments, chunk) -> LocalMoments:
        for part in self.encoding.parts(chunk, 8 * chunk.X.shape[1]):
            regions = zip(self.basis.slices(), self.basis.regions.inside(part.X), total.of_regions(self.basis.ends))
            total.n[:] = map_independent(partial(self._add_region, part), list(regions), self.basis.workers)
        return total

    def _add_region(self, part: Part, region: tuple[slice, Inside, Moments]) -> float:
        """Add the rows of a region to its moments in place, on one thread; returns their total weight."""
        own, (where, _), moments = region
        basis = Basis(self.basis.kernel, self.basis.centers[own])
        for rows in row_slices(len(where), 8 * basis.n_centers, BATCH_BYTES):
            some = where[rows]
            moments.add(basis(part.X[some]), part.targets[some], part.weight[some])
        return moments.n
