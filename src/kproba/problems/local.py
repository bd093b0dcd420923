"""Local least squares: every region has a model of its own, with its own rows as centres.

A sharp kernel needs a centre near every row, but a dense system of n rows costs n³. Rows that are far apart hardly
influence each other under such a kernel. So the rows are split into overlapping regions of at most m rows, each solved
exactly, which costs n·m². The score of a row is a weighted mean over its regions: f(x) = Σ_r g_r(x)·f_r(x). Leaving out
a row changes the models of its regions but not the weights, so the leave-one-out score of the whole is the weighted
mean of exact leave-one-out scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Device
from ..basis.basis import Basis
from ..basis.centers import subset_centers
from ..basis.local_basis import LocalBasis
from ..basis.local_moments import LocalMomentsOf
from ..basis.regions import Inside, Regions
from ..data.all_rows import SumsOverRows
from ..data.hashing import distinct
from ..data.rows import Rows
from ..kernels import Kernel
from ..threads import map_independent
from .base import Problem, Solution

#: A region has at most this many distinct rows; one that cannot be split has as many of its rows as centres.
REGION_ROWS = 2000


@dataclass(frozen=True)
class LocalProblem:
    """The problems of all regions, which are independent of each other; ``inside`` has the rows of each region.

    All share the noise nλ, which carries over from many rows to few.
    """

    rows: Rows
    basis: LocalBasis
    inside: list[Inside]
    problems: list[Any]
    total_weight: float
    workers: int = 1

    @classmethod
    def of(
        cls, rows: Rows, kernel: Kernel, make: Callable[[Rows, Basis, int], Problem], seed: int, workers: int
    ) -> LocalProblem:
        """Split the rows along the columns that the kernel resolves most finely; ``make`` poses each problem."""
        first = distinct(rows.keys)[0]
        weights = kernel.column_weights(rows.X.shape[1])
        regions = Regions.of(rows.X[first], weights, REGION_ROWS, rows.categorical)
        inside = list(regions.inside(rows.X))
        problems = []
        for where, _ in inside:
            own = rows.take(where)
            centers = subset_centers(own, kernel, REGION_ROWS, seed)
            problems.append(make(own, Basis.definite(kernel, centers, workers=1), seed))
        points = [problem.basis.centers for problem in problems]
        basis = LocalBasis.of(kernel, points, regions, workers)
        return cls(rows, basis, inside, problems, rows.total_weight, workers)

    has_cheap_loo = True
    has_all_loo = True
    rows_for_ridge = None

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge λ, with the leave-one-out scores of all rows or of ``loo_rows``."""
        solve = partial(self._solve_region, ridges=ridges, loo=loo)
        found = map_independent(solve, range(len(self.problems)), self.workers)
        for r, ridge in enumerate(ridges):
            coef = [solutions[r].coef() for solutions in found]
            held_out = self._blended([solutions[r].held_out for solutions in found]) if loo else None
            if held_out is not None and loo_rows is not None:
                held_out = held_out[loo_rows]
            yield Solution(ridge, held_out, partial(np.concatenate, coef))

    def _solve_region(self, region: int, ridges: Sequence[float], loo: bool) -> list[Solution]:
        problem = self.problems[region]
        share = self.total_weight / problem.total_weight
        # coefficients are computed at once, so that the region's matrices can go
        found = [
            solution._replace(coef=partial(_given, solution.coef()))
            for solution in problem.path([ridge * share for ridge in ridges], loo)
        ]
        problem.clear_cache()
        return found

    def _blended(self, scores: list[np.ndarray]) -> np.ndarray:
        """Σ_r g_r·s_r over the regions of each row."""
        out = np.zeros((len(self.rows), scores[0].shape[1]))
        for (where, gate), own in zip(self.inside, scores):
            out[where] += gate[:, None] * own
        return out

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without the rows ``inside``, and the scores of these rows."""
        is_out = np.zeros(len(self.rows), dtype=bool)
        is_out[inside] = True
        rest = self.total_weight - float(self.rows.weight[inside].sum())
        scores = [np.zeros((len(self.rows), self.rows.n_targets)) for _ in ridges]
        coefs: list[list[np.ndarray]] = [[] for _ in ridges]
        for (where, gate), problem in zip(self.inside, self.problems):
            out = np.flatnonzero(is_out[where])
            if len(out) == len(where):  # no row of the region is left, so it says nothing
                coefs = [[*coef, np.zeros((problem.basis.n_centers, self.rows.n_targets))] for coef in coefs]
                continue
            share = rest / (problem.total_weight - float(problem.rows.weight[out].sum()))
            for r, solution in enumerate(problem.hold_out(out, [ridge * share for ridge in ridges])):
                scores[r][where[out]] += gate[out, None] * solution.held_out
                coefs[r].append(solution.coef())
            problem.clear_cache()
        for ridge, of_ridge, coef in zip(ridges, scores, coefs):
            yield Solution(ridge, of_ridge[inside], partial(np.concatenate, coef))

    def with_sums(self, everything: SumsOverRows, scaling, ridge: float) -> LocalProblem:
        """The problem on all rows, of which ``rows`` is a sample: its rows are the centres of the regions."""
        moments = everything.sum(LocalMomentsOf(self.basis, everything.encoding(scaling)))
        given = moments.of_regions(self.basis.ends)
        problems = [replace(problem, given=own) for problem, own in zip(self.problems, given)]
        return replace(self, problems=problems, total_weight=everything.total_weight)

    def clear_cache(self) -> None:
        """Nothing is kept."""

    def on(self, device: Device | None) -> LocalProblem:
        """The same problem with the systems of the regions on a device, one after the other."""
        if device is None:
            return self
        return replace(self, problems=[problem.on(device) for problem in self.problems], workers=1)


def _given(value: np.ndarray) -> np.ndarray:
    return value
