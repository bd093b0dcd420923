"""Cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..data.folds import stratified_folds
from ..data.rows import Rows
from ..kernels import Kernel
from ..problems.base import Problem, Solution, with_scores
from .candidates import Candidate


@dataclass(frozen=True)
class RefitWithoutFold:
    """Holds rows out by building the problem of the other rows from scratch."""

    pose: Callable[[Rows, Kernel], Problem]
    rows: Rows
    kernel: Kernel

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without the rows ``inside``, and the scores of these rows."""
        problem = self.pose(self.rows.without(inside), self.kernel)
        return with_scores(problem.path(ridges, loo=False), problem.basis, self.rows.X[inside])


def cross_validate(problem: Problem | RefitWithoutFold, fold: np.ndarray, ridges: Sequence[float]) -> list[np.ndarray]:
    """Held-out scores (n, k) for every ridge, each fold scored by the solution without it; ``fold`` (n,) assigns
    rows."""
    held_out: list[np.ndarray] = []
    for number in np.unique(fold):
        inside = np.flatnonzero(fold == number)
        found = [solution.held_out for solution in problem.hold_out(inside, ridges)]
        held_out = held_out or [np.empty((len(fold), scores.shape[1])) for scores in found]
        for whole, scores in zip(held_out, found):
            whole[inside] = scores
    return held_out


def leave_groups_out(solved: Candidate, rows: Rows, k: int, seed: int) -> Candidate:
    """The candidate with the scores of ``k`` folds that keep the user's groups together, if there are groups."""
    if rows.together is None or solved.solution.held_out is None:
        return solved
    (held_out,) = cross_validate(solved.problem, stratified_folds(rows, k, seed), [solved.solution.ridge])
    return solved._replace(solution=solved.solution._replace(held_out=held_out, without_copies=None))
