"""A candidate of the search: a kernel with its width and ridge, and its loss."""

from __future__ import annotations

from typing import NamedTuple

from ..kernels import Kernel
from ..problems.base import Problem, Solution


class Candidate(NamedTuple):
    """A kernel with its width, its best ridge, and the held-out loss."""

    loss: float
    kernel: Kernel
    solution: Solution
    problem: Problem

    @property
    def rank(self) -> tuple[float, float, float]:
        """Smaller is better: the loss to six digits; ties go to the wider kernel, then to the larger ridge.

        Without rounding to six digits, rounding errors would decide ties, e.g. if all held-out scores are zero.
        """
        return float(f"{self.loss:.6g}"), -(self.kernel.width or 0.0), -self.solution.ridge

    def with_computed_coef(self) -> Candidate:
        """The candidate with its coefficients computed, so that the problem can free its matrices."""
        coef = self.solution.coef()
        self.problem.clear_cache()
        return self._replace(solution=self.solution._replace(coef=lambda: coef))
