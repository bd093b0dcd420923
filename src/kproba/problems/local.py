"""Local least squares: every region has a model of its own, with its own rows as centres.

A sharp kernel needs a centre near every row, but a dense system of n rows costs n³. Rows that are far apart hardly
influence each other under such a kernel, and what they have in common is smooth. So the rows are split into overlapping
regions of at most m rows. A region treats its own rows exactly, and all others through the features v(x) = L⁻¹k(z, x)
of some shared centres z with kernel matrix LLᵀ, as in the partially independent conditional approximation of Gaussian
processes (Snelson and Ghahramani, 2007, Local and global sparse Gaussian process approximations). The rows outside
enter by A = Σ vvᵀ/Λ and b = Σ vtᵀ/Λ with Λ = ν/w + k(x, x) − vᵀv, the noise that v leaves. The model of the region is
then ridge regression of t − vᵀC⁻¹b with the kernel k(x, x') − v(x)ᵀ(I − C⁻¹)v(x'), where C = I + A.

The score of a row is a weighted mean over its regions: f(x) = Σ_r g_r(x)·f_r(x). Leaving out a row changes the models
of its regions but neither the weights nor what is outside, so the leave-one-out score of the whole is the weighted mean
of exact leave-one-out scores. The cost is n·m².
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ..basis.basis import Basis
from ..basis.centers import subset_centers
from ..basis.local_basis import LocalBasis
from ..basis.regions import Inside, Regions
from ..data.all_rows import AllRows, SumsOverRows
from ..data.collected import collected
from ..data.hashing import distinct, exact_keys, stacked
from ..data.rows import Rows
from ..data.scaling import scaled_rows
from ..kernels import Kernel
from ..solvers import unlocked
from ..solvers.cholesky import kernel_factor
from ..solvers.dual import Dual
from ..threads import fill_tiles, map_independent, row_slices
from .base import CpuProblem, Problem, Solution, with_scores
from .least_squares import leave_one_out
from .local_sums import SummedLocalProblem

#: A region has at most this many distinct rows, and all regions share this many centres.
REGION_ROWS, SHARED_CENTERS = 1500, 1000
#: Rows whose regions exceed their limit by more than this factor are not split at all.
TOO_LARGE = 2
#: k(x, x) is the diagonal of the kernel matrices of so many rows.
DIAGONAL_ROWS = 32


class Outside(NamedTuple):
    """What a region knows of the rows of others: the Cholesky factor of C = I + A, and b."""

    factor: np.ndarray
    b: np.ndarray

    @classmethod
    def of(cls, A: np.ndarray, b: np.ndarray) -> Outside:
        """A is overwritten by the factor of I + A, which always exists."""
        A[np.diag_indices_from(A)] += 1.0
        return cls(unlocked.factor_or_raise(A) if len(A) else A, b)


@dataclass(frozen=True)
class LocalProblem(CpuProblem):
    """Rows in memory with a model for each region; ``shared`` (m, d) are the centres that all regions have.

    All regions have the same noise ν = nλ. ``make(rows, basis, seed)`` poses the problem of a region for sums over more
    rows.
    """

    rows: Rows
    kernel: Kernel
    regions: Regions
    shared: np.ndarray
    make: Callable[[Rows, Basis, int], Problem]
    seed: int = 0
    workers: int = 1

    @classmethod
    def of(
        cls,
        rows: Rows,
        kernel: Kernel,
        make: Callable[[Rows, Basis, int], Problem],
        seed: int,
        workers: int,
        scale: float = 1.0,
        share_centers: bool = True,
    ) -> LocalProblem | None:
        """Split the rows along the columns that the kernel resolves most finely, into regions times a ``scale``.

        Regions of a sharp kernel need not share centres, which takes a fraction of the time. None if a region stays
        too large because no column divides its rows, as with categories or rare indicators.
        """
        most, m = round(scale * REGION_ROWS), round(scale * SHARED_CENTERS)
        first, weights = distinct(rows.keys)[0], kernel.column_weights(rows.X.shape[1])
        regions = Regions.of(rows.X[first], weights, most, rows.categorical)
        if max(len(where) for where, _ in regions.inside(rows.X[first])) > TOO_LARGE * most:
            return None
        none = regions.n_regions == 1 or not share_centers
        shared = rows.X[:0] if none else subset_centers(rows, kernel, m, seed).points
        return cls(rows, kernel, regions, shared, make, seed, workers)

    has_cheap_loo = has_all_loo = True

    @cached_property
    def _merged(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The distinct rows: one index each, the number of every row among them, their weights and mean targets."""
        first, number = distinct(self.rows.keys)
        weight = np.bincount(number, self.rows.weight, len(first))
        sums = np.zeros((len(first), self.rows.n_targets))
        np.add.at(sums, number, self.rows.targets() * self.rows.weight[:, None])
        return first, number, weight, sums / weight[:, None]

    @cached_property
    def _points(self) -> np.ndarray:
        return self.rows.X[self._merged[0]]

    @cached_property
    def _inside(self) -> list[Inside]:
        """The distinct rows of each region."""
        return list(self.regions.inside(self._points))

    @cached_property
    def basis(self) -> LocalBasis:
        centers = [np.concatenate([self.shared, self._points[where]]) for where, _ in self._inside]
        return LocalBasis.of(self.kernel, centers, self.regions, self.workers)

    @cached_property
    def _shared_factor(self) -> np.ndarray:
        """L with LLᵀ the kernel matrix of the shared centres."""
        return kernel_factor(Basis(self.kernel, self.shared, workers=self.workers).gram())

    @cached_property
    def _features(self) -> np.ndarray:
        """V (n, m): the rows as v(x)."""
        if not len(self.shared):
            return np.empty((len(self._points), 0))
        phi, lower = self.kernel(self._points, self.shared, self.workers), np.asfortranarray(self._shared_factor)

        def fill(rows: slice) -> None:
            unlocked.solve_lower(lower, phi[rows])

        fill_tiles(fill, len(phi), phi[0].nbytes, self.workers)
        return phi

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge λ, with the leave-one-out scores of all rows or of ``loo_rows``."""
        _, number, weight, means = self._merged
        for ridge in ridges:
            coef, fitted, leverage = self._solve(self.total_weight * ridge)
            held_out = self._left_out(fitted, leverage, self.rows.targets(), self.rows.unit) if loo else None
            held_out = held_out if loo_rows is None or held_out is None else held_out[loo_rows]
            alone = partial(self._left_out, fitted, leverage, means[number], weight[number])
            yield Solution(ridge, held_out, partial(np.concatenate, coef), without_copies=alone)

    def _left_out(self, fitted: list, leverage: list, targets: np.ndarray, unit: np.ndarray) -> np.ndarray:
        """The scores of all rows without ``unit`` of their weight, blended over the regions."""
        out = np.zeros_like(targets)
        for (where, gate), own, h in zip(self._inside_of_rows, fitted, leverage):
            out[where] += gate[:, None] * leave_one_out(own, h[:, None], targets[where], unit[where])
        return out

    @cached_property
    def _inside_of_rows(self) -> list[Inside]:
        return list(self.regions.inside(self.rows.X))

    def _solve(self, noise: float) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        """For each region its coefficients, and the fitted values (n_r, k) and leverages (n_r,) of its rows."""
        V, (_, number, weight, means) = self._features, self._merged
        left = np.maximum(self._at_zero - np.einsum("ij,ij->i", V, V), 0.0) + noise / weight
        root = np.sqrt(left)[:, None]
        scaled, targets = V / root, means / root
        A, b = scaled.T @ scaled, scaled.T @ targets

        def solve(region: int):
            where = self._inside[region].where
            own = scaled[where]
            outside = Outside.of(A - own.T @ own, b - own.T @ targets[where])
            coef, fitted, leverage = self._solve_region(where, outside, noise)
            place = np.empty(len(weight), dtype=int)
            place[where] = np.arange(len(where))
            of_rows = place[number[self._inside_of_rows[region].where]]
            return coef, fitted[of_rows], leverage[of_rows]

        found = map_independent(solve, range(self.regions.n_regions), self.workers)
        return tuple(map(list, zip(*found)))  # type: ignore[return-value]

    @cached_property
    def _at_zero(self) -> np.ndarray:
        """k(x, x) of every distinct row, which is the largest value of a kernel that has one."""
        if self.kernel.largest is not None:
            return np.full(len(self._points), self.kernel.largest)
        blocks = [self._points[rows] for rows in row_slices(len(self._points), 1, DIAGONAL_ROWS)]
        return np.concatenate([np.diagonal(self.kernel(block, block)) for block in blocks])

    def _solve_region(self, where: np.ndarray, outside: Outside, noise: float):
        """Ridge regression of what the rows outside leave open."""
        if not len(where):  # all rows of the region are held out
            none = np.zeros((0, self.rows.n_targets))
            return self._coef_of_shared(np.zeros_like(outside.b), outside), none, none[:, 0]
        V, (_, _, weight, means) = self._features[where], self._merged
        K, shift = Basis(self.kernel, self._points[where], workers=self.workers).gram(), np.zeros_like(means[where])
        if V.shape[1]:
            K -= V @ V.T
            shift = V @ unlocked.solve_factored(outside.factor, outside.b)
            half = unlocked.solve_lower(outside.factor, V.copy())
            K += half @ half.T
        own = weight[where]
        (at,) = Dual(K, own, own[:, None] * (means[where] - shift)).path([noise])
        alpha = at.coef()
        coef = np.concatenate([self._coef_of_shared(V.T @ alpha, outside), alpha])
        return coef, at.fitted + shift, at.leverage

    def _coef_of_shared(self, pull: np.ndarray, outside: Outside) -> np.ndarray:
        """L⁻ᵀ(C⁻¹(b + Vᵀα) − Vᵀα): what the shared centres add to the scores."""
        if not len(self.shared):
            return pull
        w = unlocked.solve_factored(outside.factor, outside.b + pull) - pull
        return linalg.solve_triangular(self._shared_factor, w, lower=True, trans=1, check_finite=False)

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without the rows ``inside``, and the scores of these rows."""
        rest = LocalProblem(
            self.rows.without(inside), self.kernel, self.regions, self.shared, self.make, self.seed, self.workers
        )
        return with_scores(rest.path(ridges, loo=False), rest.basis, self.rows.X[inside])

    def _of_more(self, rows: Rows) -> LocalProblem | None:
        """Local models of more rows, which share no centres."""
        return LocalProblem.of(rows, self.kernel, self.make, self.seed, self.workers, share_centers=False)

    def with_sums(self, everything: SumsOverRows, scaling, ridge: float) -> Problem:
        """The problem on all rows, of which ``rows`` is a sample.

        Regions that share no centres have one in each row if all rows fit in memory, otherwise in each of the sample.
        """
        if not len(self.shared) and isinstance(everything, AllRows):
            found = collected(everything, self.rows.categorical)
            whole = None if found is None else self._of_more(scaled_rows(found, scaling))
            if whole is not None:
                return JudgedBySample(self.rows, whole, places_among(self.rows, whole.rows))
        problem = SummedLocalProblem.of(self.rows, self.kernel, self.regions, self.make, self.seed, self.workers)
        return problem.with_sums(everything, scaling)


@dataclass(frozen=True)
class JudgedBySample(CpuProblem):
    """Local models of all rows (``whole``), of which only the ``rows`` of a sample have leave-one-out scores.

    ``place`` (n,) are the places of the sample among all rows.
    """

    rows: Rows
    whole: LocalProblem
    place: np.ndarray

    has_cheap_loo = has_all_loo = True

    @property
    def basis(self) -> LocalBasis:
        return self.whole.basis

    @property
    def total_weight(self) -> float:
        return self.whole.total_weight

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge, with the leave-one-out scores of the sample or of ``loo_rows``."""
        place = self.place if loo_rows is None else self.place[loo_rows]
        for solution in self.whole.path(ridges, loo, place):
            yield solution._replace(without_copies=None)

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without the rows ``inside`` of the sample, and the scores of these rows."""
        return self.whole.hold_out(self.place[inside], ridges)


def places_among(some: Rows, rows: Rows) -> np.ndarray:
    """The index of each of some rows among all rows: the inputs and the labels are equal."""
    number = distinct(exact_keys(stacked(some.X, rows.X)))[1] * rows.n_classes
    number += np.concatenate([some.labels, rows.labels])
    wanted, present = np.split(number, [len(some)])
    order = np.argsort(present, kind="stable")
    return order[np.searchsorted(present, wanted, sorter=order)]
