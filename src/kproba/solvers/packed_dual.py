"""The dual form of :mod:`.dual` with one square array for both the kernel matrix and its factor, to halve the memory.

The array holds M = Ω^½KΩ^½ below its diagonal, and R of M + ρI = RᵀR, later R⁻¹, above it. With B = (M + ρI)⁻¹ =
R⁻¹R⁻ᵀ, the diagonal of B, which is all that leverages need, is the squared row norms of R⁻¹: exact, and a third cheaper
than B itself. The array is float32 if the ridge is large enough, which takes less than half the time and half the
memory; iterative refinement with residuals summed in float64 corrects the solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import linalg

from ..data.items import Items
from ..kernels.base import dense
from ..threads import map_independent, row_slices
from .cholesky import warn_singular
from .dual import DualSolution, resolvable

#: Rows and columns of the tiles in which the array is copied and multiplied.
TILE = 1024
#: Bytes of the float64 kernel values that a thread computes at a time.
BLOCK_BYTES = 8 << 20
#: float32 is used if the rounding errors of M are below this share of the ridge: then the diagonal of B and the fitted
#: values are accurate to 1e-3 or better (tests/test_packed_dual.py).
SINGLE_SHARE = 0.01
#: Power iterations for the largest eigenvalue, which for positive kernel values is far above the others.
POWER_STEPS = 4
#: Kernel values are computed in float32 as well if this changes none of a sample by more than so many roundings. The
#: sample has so many points from all over, and as many that are farthest from the origin.
ROUNDINGS, SAMPLE = 4.0, 200
#: Steps of iterative refinement.
CORRECTIONS = 2


@dataclass
class PackedDual:
    """Points (b, d), kernel, weight Ω (b,) and weighted target sums Ωt̄ (b, k) of the distinct rows."""

    points: np.ndarray
    kernel: Callable
    gram: Callable[[np.ndarray], np.ndarray]
    weight: np.ndarray
    sums: np.ndarray
    workers: int = 1
    _square: Square | None = field(default=None, init=False)

    def path(self, ridges: Sequence[float]) -> Iterator[DualSolution]:
        """The solution for every total ridge ρ."""
        return map(self._at, ridges)

    def _at(self, ridge: float) -> DualSolution:
        square, ridge = self._factored(ridge)
        root = np.sqrt(self.weight)[:, None]
        scaled = square.solve(self.sums / root)
        inverse = square.inverse_diagonal()
        means = self.sums / self.weight[:, None]
        leverage = (1.0 - ridge * inverse) / self.weight
        return DualSolution(means - ridge * scaled / root, leverage, partial(np.multiply, root, scaled))

    def _factored(self, ridge: float) -> tuple[Square, float]:
        """A factored square for this ridge, and the ridge, increased if even float64 does not resolve it."""
        square = self._of(np.float32) if self._square is None else self._square
        if square.dtype == np.float32:
            if square.resolves(ridge) and square.factor(ridge):
                return square, ridge
            self._square = None
            del square  # free the float32 matrix before allocating the float64 one
            square = self._of(np.float64)
        ridge = resolvable(ridge, square.diagonal)
        while not square.factor(ridge):
            ridge *= 10.0
            warn_singular(len(self.weight), ridge)
        return square, ridge

    def _of(self, dtype) -> Square:
        self._square = Square.of(self.points, self.kernel, self.gram, np.sqrt(self.weight), dtype, self.workers)
        return self._square


@dataclass
class Square:
    """M (n, n) below the diagonal of ``packed``, its ``diagonal`` (n,) separately, and a factor of M + ρI above."""

    packed: np.ndarray
    diagonal: np.ndarray
    ridge: float = np.nan

    @classmethod
    def of(cls, points, kernel: Callable, gram: Callable, root: np.ndarray, dtype, workers: int = 1) -> Square:
        """Compute kernel values, each pair once: the matrix is symmetric, and definite up to unsystematic rounding
        errors."""
        n, points = len(root), points.astype(dtype if loses_no_digits(kernel, points, dtype) else np.float64)
        packed, diagonal, is_weighted = np.empty((n, n), dtype), np.empty(n), not (root == 1.0).all()
        root = root.astype(points.dtype)

        def put(rows: slice, columns: slice, values: np.ndarray) -> None:
            if is_weighted:
                values *= root[rows, None]
                values *= root[columns]
            packed[rows, columns] = values

        def fill(rows: slice) -> None:
            put(rows, rows, own := gram(points[rows]))
            diagonal[rows] = np.diagonal(own)
            if rows.start:
                put(rows, before := slice(0, rows.start), kernel(points[rows], points[before]))

        map_independent(fill, row_slices(n, 8 * n, BLOCK_BYTES), workers)
        return cls(packed, diagonal)

    @property
    def dtype(self):
        return self.packed.dtype

    @property
    def _column_major(self) -> np.ndarray:
        """The same memory in LAPACK's column-major view, in which R is a lower factor."""
        return self.packed.T

    @property
    def _tiles(self) -> list[slice]:
        return row_slices(len(self.packed), 1, TILE)

    @cached_property
    def _own(self) -> list[np.ndarray]:
        """The tiles of M on the diagonal."""
        own = [np.tril(self.packed[rows, rows], -1) for rows in self._tiles]
        for rows, tile in zip(self._tiles, own):
            tile += tile.T
            np.fill_diagonal(tile, self.diagonal[rows])
        return own

    def resolves(self, ridge: float) -> bool:
        """Whether rounding errors of M are small compared to the ridge."""
        return resolves(self._largest, ridge, self.dtype)

    @cached_property
    def _largest(self) -> float:
        return largest_eigenvalue(self.times, len(self.packed))

    def factor(self, ridge: float) -> bool:
        """Write R above the diagonal; False if M + ρI is not positive definite in this precision."""
        for rows, own in zip(self._tiles, self._own):
            self.packed[rows, rows] = own
            for before in row_slices(rows.start, 1, TILE):
                self.packed[before, rows] = self.packed[rows, before].T
        np.einsum("ii->i", self.packed)[:] = self.diagonal + ridge
        self.ridge = ridge
        (potrf,) = linalg.get_lapack_funcs(("potrf",), dtype=self.dtype)
        return potrf(self._column_major, lower=1, overwrite_a=1, clean=0)[1] == 0

    def solve(self, target: np.ndarray) -> np.ndarray:
        """(M + ρI)⁻¹ applied to ``target`` (n, k), in float64."""
        found = self._by_factor(target)
        for _ in range(CORRECTIONS):
            found += self._by_factor(target - self.times(found) - self.ridge * found)
        return found

    def _by_factor(self, target: np.ndarray) -> np.ndarray:
        (potrs,) = linalg.get_lapack_funcs(("potrs",), dtype=self.dtype)
        return potrs(self._column_major, np.asfortranarray(target, self.dtype), lower=1)[0].astype(np.float64)

    def times(self, V: np.ndarray) -> np.ndarray:
        """MV, summed in float64 over tiles."""
        out, rounded = np.zeros_like(V), V.astype(self.dtype)
        for rows, own in zip(self._tiles, self._own):
            out[rows] += own @ rounded[rows]
            for before in row_slices(rows.start, 1, TILE):
                tile = self.packed[rows, before]
                out[rows] += tile @ rounded[before]
                out[before] += tile.T @ rounded[rows]
        return out

    def inverse_diagonal(self) -> np.ndarray:
        """The diagonal of (M + ρI)⁻¹. Overwrites the factor R with R⁻¹."""
        (trtri,) = linalg.get_lapack_funcs(("trtri",), dtype=self.dtype)
        trtri(self._column_major, lower=1, overwrite_c=1)
        out = np.empty(len(self.packed))
        for rows in self._tiles:
            after = self.packed[rows, rows.stop :]
            own = np.triu(self.packed[rows, rows])
            out[rows] = np.einsum("ij,ij->i", own, own) + np.einsum("ij,ij->i", after, after)
        return out


def loses_no_digits(kernel: Callable, points, dtype) -> bool:
    """Whether kernel values of points in ``dtype`` are those of float64 up to rounding, in a sample of pairs.

    Squared distances of points that are far from the origin, beside the width, are differences of large numbers. Items
    have no precision.
    """
    if isinstance(points, Items):
        return True
    extent = dense(abs(points).max(axis=1)).ravel()
    n, k = len(extent), min(SAMPLE, len(extent))
    some = points[np.union1d(np.linspace(0, n - 1, k, dtype=int), np.argsort(extent)[n - k :])]
    with np.errstate(all="ignore"):  # what overflows in float32 is no number, and compares as false
        exact, found = (kernel(X, X) for X in (some.astype(np.float64), some.astype(dtype)))
        return bool(np.abs(found - exact).max() <= ROUNDINGS * np.finfo(dtype).eps * np.abs(exact).max())


def resolves(largest: float, ridge: float, dtype: Any = np.float32) -> bool:
    """Whether rounding errors of a matrix with this largest eigenvalue are small compared to the ridge."""
    return bool(np.finfo(dtype).eps * largest <= SINGLE_SHARE * ridge)


def largest_eigenvalue(times: Callable[[np.ndarray], np.ndarray], n: int) -> float:
    """The largest eigenvalue of a matrix (n, n) of kernel values, by power iteration."""
    along = np.ones((n, 1))
    for _ in range(POWER_STEPS):
        along = times(along / np.linalg.norm(along))
    return float(np.linalg.norm(along))
