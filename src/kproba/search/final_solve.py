"""Solve on all rows with the kernel, width and ridge that the search has found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..data.rows import Rows
from ..data.sampling import subsample
from ..kernels import Kernel
from ..problems.base import Problem
from ..problems.local import JudgedBySample
from .candidates import Candidate
from .staged import Search


def shrink_by_root_of_rows(ridge: float, few: float, many: float) -> float:
    """For least squares: the initial ridge for rows of weight ``many``, given the best ridge for ``few``."""
    return ridge * np.sqrt(few / many)


def keep_total_penalty(ridge: float, few: float, many: float) -> float:
    """The same for a likelihood: the total penalty nλ acts as a prior on the scores, so it stays constant."""
    return ridge * few / many


@dataclass(frozen=True)
class FinalSolve:
    """Solves the winner of a search on all rows.

    ``rows`` are the rows in memory, with the winner's scaling. ``pose(kernel, ridge)`` builds the problem of all rows,
    of which ``rows`` may be a sample (``is_sample``). ``for_more_rows(ridge, few, many)`` converts a ridge from few
    rows to many. ``needs_scores`` requests leave-one-out scores even if no ridge has to be chosen; ``by_folds`` keeps
    the ridge chosen by cross-validation.
    """

    search: Search
    rows: Rows
    pose: Callable[[Kernel, float], Problem]
    is_sample: bool
    for_more_rows: Callable[[float, float, float], float]
    needs_scores: bool = False
    by_folds: bool = False

    def solve(self, best: Candidate | Kernel) -> Candidate:
        """The solution on all rows for the chosen kernel and width, with its ridge."""
        if isinstance(best, Kernel):
            ridge = self.search.ridges[0]
            problem = self.pose(best, ridge)
            has_every_row = not self.is_sample or isinstance(problem, JudgedBySample)
            if self.search.any_ridge and not has_every_row:  # the ridge of a learnt kernel is for a centre in every row
                ridge = self.search.climb(problem, ridge, directions=[1]).solution.ridge
            return self.solve_at(problem, ridge)
        if self._was_compared_on_all_rows(best):
            return best
        problem = self.pose(best.kernel, best.solution.ridge)
        if self.by_folds:
            return self.solve_at(problem, best.solution.ridge)
        if not self.search.any_ridge:
            return replace(self.search, pose=lambda *_: problem).grid(self.rows, [best.kernel], "ridge")[0]
        return self._with_best_ridge(best, problem)

    def solve_at(self, problem: Problem, ridge: float) -> Candidate:
        """Solve at a single ridge. Leave-one-out scores are computed if needed, or if they are cheap after a search."""
        is_cheap = len(self.search.record.entries) > 0 and problem.has_cheap_loo
        (solution,) = problem.path([ridge], loo=self.needs_scores or is_cheap)
        return Candidate(np.nan, problem.basis.kernel, solution, problem)

    def _was_compared_on_all_rows(self, best: Candidate) -> bool:
        """Whether the search already compared the winner on all rows and tags."""
        seen = best.problem.rows
        is_whole = len(seen) == len(self.rows) and seen.n_classes == self.rows.n_classes
        return not self.is_sample and is_whole and best.solution.held_out is not None

    def _with_best_ridge(self, best: Candidate, problem: Problem) -> Candidate:
        few, many = best.problem.rows.total_weight, problem.total_weight
        size = problem.rows_for_ridge
        if size is not None and self.rows.n_distinct > size:
            few_rows = subsample(self.rows, size, self.search.seed)
            some: Problem = self.search.pose(few_rows, best.kernel).on(problem.basis.device)
            ridge = self._climb(some, best.solution.ridge, few).solution.ridge
            some.clear_cache()
            return self.solve_at(problem, self.for_more_rows(ridge, some.total_weight, many))
        climbed = self._climb(problem, best.solution.ridge, few)
        if len(climbed.solution.held_out) == len(self.rows):
            return climbed
        return self.solve_at(problem, climbed.solution.ridge)

    def _climb(self, problem: Problem, ridge: float, few: float) -> Candidate:
        """The best ridge of a problem, searched from the one that was best for ``few`` rows."""
        return self.search.climb(problem, self.for_more_rows(ridge, few, problem.total_weight))
