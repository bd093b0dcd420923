"""The dual form of :mod:`.dual` for more rows than a dense factor allows, by conjugate gradients (:mod:`.cg`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from ..progress import Progress
from ..threads import row_slices
from .cg import LocalInverse, Nystrom, Probes, neighbours_of, solve
from .dual import DualSolution

#: Rows of the preconditioner, neighbours per row, and random sign vectors for the leverages.
SAMPLED, NEIGHBOURS, PROBES = 1000, 64, 32
#: Tolerated relative residuals of the targets and of the sign vectors, which are noisier anyway.
TARGET_TOL, PROBE_TOL = 1e-4, 1e-3
#: A float32 kernel matrix of up to this size is kept; a larger one is recomputed for every product.
KEEP_BYTES = 1500 << 20
#: Largest coordinate whose squares, summed over many columns, do not overflow float32.
FARTHEST_IN_FLOAT32 = 1e16


@dataclass(frozen=True)
class IterativeDual:
    """Preconditioned conjugate gradients for ``centers="all"``, which never form the kernel matrix.

    Points (b, d), ``kernel(X, Z)``, weight Ω (b,) and weighted target sums Ωt̄ (b, k) are those of the distinct rows.
    """

    points: np.ndarray
    kernel: Callable[[np.ndarray, np.ndarray], np.ndarray]
    weight: np.ndarray
    sums: np.ndarray
    seed: int = 0
    workers: int = 1
    progress: Progress | None = None

    def path(self, ridges: Sequence[float]) -> Iterator[DualSolution]:
        """The solution for every total ridge ρ, each warm-started from the one before; leverages are estimates.

        Only ρΩ⁻¹ matters, so both are divided by the largest weight to stay within the range of float32.
        """
        unit = float(self.weight.max())
        if unit == 1.0:
            return self._path(ridges)
        alike = replace(self, weight=self.weight / unit, sums=self.sums / unit)
        found = alike.path([ridge / unit for ridge in ridges])
        return (at._replace(leverage=at.leverage / unit) for at in found)

    def _path(self, ridges: Sequence[float]) -> Iterator[DualSolution]:
        means, probes = self.sums / self.weight[:, None], Probes.draw(self.n_points, PROBES, self.seed)
        k, start = means.shape[1], None
        rhs = np.hstack([means, probes.rhs(self._preconditioner)])
        tol = np.repeat([TARGET_TOL, PROBE_TOL], [k, PROBES])
        for ridge in ridges:
            found = solve(self._product, self._preconditioner, rhs, ridge, tol, start=start, progress=self.progress)
            start = found.coef
            local = LocalInverse.of(self._gram_of, self._neighbours, ridge, self.weight)
            leverage = probes.leverages(start[:, k:], self._preconditioner, ridge, local).estimate
            coef = start[:, :k]
            yield DualSolution(means - ridge * coef / self.weight[:, None], leverage, partial(np.copy, coef))

    @property
    def n_points(self) -> int:
        return self.points.shape[0]

    @cached_property
    def _preconditioner(self) -> Nystrom:
        random = np.random.RandomState(self.seed)
        sample = np.sort(random.permutation(self.n_points)[:SAMPLED])
        return Nystrom.of(self.kernel(self.points, self.points[sample]), sample, self.weight)

    @cached_property
    def _neighbours(self) -> np.ndarray:
        return neighbours_of(self.points, NEIGHBOURS, self.workers)

    def _gram_of(self, rows: np.ndarray) -> np.ndarray:
        return self.kernel(self.points[rows], self.points[rows])

    @cached_property
    def _rounded_points(self) -> np.ndarray:
        """The points in float32 if their squares do not overflow."""
        return self.points.astype(np.float32 if abs(self.points).max() < FARTHEST_IN_FLOAT32 else np.float64)

    @cached_property
    def _kept(self) -> np.ndarray | None:
        return self.kernel(self._rounded_points, self._rounded_points) if 4 * self.n_points**2 <= KEEP_BYTES else None

    def _product(self, V: np.ndarray) -> np.ndarray:
        """KV in float32, which is enough for a residual of 1e-4."""
        V32 = np.ascontiguousarray(V, dtype=np.float32)
        if self._kept is not None:
            return (self._kept @ V32).astype(np.float64)
        out = np.empty_like(V)
        for rows in row_slices(self.n_points, 4 * self.n_points):
            out[rows] = self.kernel(self._rounded_points[rows], self._rounded_points) @ V32
        return out
