"""From the winner of a search to the solution on all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..data.rows import Rows
from ..data.sampling import subsample
from ..kernels import Kernel
from ..problems.base import Problem
from .candidates import Candidate
from .staged import Search


def shrink_by_root_of_rows(ridge: float, few: float, many: float) -> float:
    """Where to start on rows of weight ``many`` from the ridge that was best for ``few``: least squares."""
    return ridge * np.sqrt(few / many)


def keep_total_penalty(ridge: float, few: float, many: float) -> float:
    """The same for a likelihood: the penalty of the sum, nλ, is a prior for the scores and stays what it is."""
    return ridge * few / many


@dataclass(frozen=True)
class FinalSolve:
    """What a solution on all rows needs beside the winner of the search.

    ``rows`` are those in memory, scaled as the winner wants them; ``pose(kernel, ridge)`` is the problem of all rows,
    which may be more (``is_sample``). ``for_more_rows(ridge, few, many)`` takes a ridge from few rows to many.
    ``needs_scores`` asks for leave-one-out scores even where no ridge has to be chosen, and ``by_folds`` keeps the
    ridge that cross-validation has chosen.
    """

    search: Search
    rows: Rows
    pose: Callable[[Kernel, float], Problem]
    is_sample: bool
    for_more_rows: Callable[[float, float, float], float]
    needs_scores: bool = False
    by_folds: bool = False

    def solve(self, best: Candidate | Kernel) -> Candidate:
        """The chosen kernel and width on all rows, with its ridge."""
        if isinstance(best, Kernel):
            ridge = self.search.ridges[0]
            return self.solve_at(self.pose(best, ridge), ridge)
        if self._was_compared_on_all_rows(best):
            return best
        problem = self.pose(best.kernel, best.solution.ridge)
        if self.by_folds:
            return self.solve_at(problem, best.solution.ridge)
        if not self.search.any_ridge:
            return replace(self.search, pose=lambda *_: problem).grid(self.rows, [best.kernel], "ridge")[0]
        return self._with_best_ridge(best, problem)

    def solve_at(self, problem: Problem, ridge: float) -> Candidate:
        """One ridge and no comparison; leave-one-out only if somebody needs it, or where a search makes it cheap."""
        is_cheap = len(self.search.record.entries) > 0 and problem.has_cheap_loo
        (solution,) = problem.path([ridge], loo=self.needs_scores or is_cheap)
        return Candidate(np.nan, problem.basis.kernel, solution, problem)

    def _was_compared_on_all_rows(self, best: Candidate) -> bool:
        """Whether the winner was compared on all rows and tags already."""
        seen = best.problem.rows
        is_whole = len(seen) == len(self.rows) and seen.n_classes == self.rows.n_classes
        return not self.is_sample and is_whole and best.solution.held_out is not None

    def _with_best_ridge(self, best: Candidate, problem: Problem) -> Candidate:
        few, many = best.problem.rows.total_weight, problem.total_weight
        size = problem.rows_for_ridge
        if size is not None and self.rows.n_distinct > size:
            some = self.search.pose(subsample(self.rows, size, self.search.seed), best.kernel)
            ridge = self._climb(some, best.solution.ridge, few).solution.ridge
            some.clear_cache()
            return self.solve_at(problem, self.for_more_rows(ridge, some.total_weight, many))
        climbed = self._climb(problem, best.solution.ridge, few)
        if len(climbed.solution.held_out) == len(self.rows):
            return climbed
        return self.solve_at(problem, climbed.solution.ridge)

    def _climb(self, problem: Problem, ridge: float, few: float) -> Candidate:
        """The best ridge of a problem, from the one that was best for ``few`` rows."""
        return self.search.climb(problem, self.for_more_rows(ridge, few, problem.total_weight))
