"""Local least squares by sums over more rows than fit in memory: a sample's rows are the centres of each region."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..basis.basis import Basis
from ..basis.centers import all_centers
from ..basis.local_basis import LocalBasis
from ..basis.local_moments import LocalMomentsOf
from ..basis.regions import Inside, Regions
from ..data.all_rows import SumsOverRows
from ..data.rows import Rows
from ..kernels import Kernel
from ..threads import map_independent
from .base import CpuProblem, Problem, Solution


@dataclass(frozen=True)
class SummedLocalProblem(CpuProblem):
    """The problems of all regions, each with the moments of all its rows; they share the noise nλ.

    Unlike those of rows in memory, regions have no shared centres: their moments would take several times the memory.
    """

    rows: Rows
    basis: LocalBasis
    inside: list[Inside]
    problems: list[Any]
    workers: int = 1
    everything: SumsOverRows | None = None

    @classmethod
    def of(
        cls,
        rows: Rows,
        kernel: Kernel,
        regions: Regions,
        make: Callable[[Rows, Basis, int], Problem],
        seed: int,
        workers: int,
    ) -> SummedLocalProblem:
        inside = list(regions.inside(rows.X))
        problems = []
        for where, _ in inside:
            own = rows.take(where)
            problems.append(make(own, Basis.definite(kernel, all_centers(own, kernel), workers=1), seed))
        basis = LocalBasis.of(kernel, [problem.basis.centers for problem in problems], regions, workers)
        return cls(rows, basis, inside, problems, workers)

    has_cheap_loo = has_all_loo = True

    @property
    def total_weight(self) -> float:
        return self.rows.total_weight if self.everything is None else self.everything.total_weight

    def with_sums(self, everything: SumsOverRows, scaling) -> SummedLocalProblem:
        """The problem on all rows, of which ``rows`` is a sample."""
        moments = everything.sum(LocalMomentsOf(self.basis, everything.encoding(scaling)))
        given = moments.of_regions(self.basis.ends)
        problems = [replace(problem, given=own) for problem, own in zip(self.problems, given)]
        return replace(self, problems=problems, everything=everything)

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge λ, with the leave-one-out scores of the sample or of ``loo_rows``."""
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
            solution._replace(coef=partial(np.copy, solution.coef()))
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
        """Folds and groups need all rows in memory, where :class:`~kproba.problems.local.LocalProblem` has them."""
        raise NotImplementedError("sums over regions cannot hold rows out")
