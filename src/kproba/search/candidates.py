"""A kernel with its width and ridge, and how it did."""

from __future__ import annotations

from typing import NamedTuple

from ..kernels import Kernel
from ..problems.base import Problem, Solution


class Candidate(NamedTuple):
    """A kernel with its width, the best of its ridges, and how it did."""

    loss: float
    kernel: Kernel
    solution: Solution
    problem: Problem

    @property
    def rank(self) -> tuple[float, float, float]:
        """Smaller is better: the loss, and where it is level to six digits, the wider kernel and the larger ridge.

        Without the rounding, ties (all held-out scores zero, say) would be decided by rounding errors.
        """
        return float(f"{self.loss:.6g}"), -(self.kernel.width or 0.0), -self.solution.ridge

    def with_computed_coef(self) -> Candidate:
        """The same with its coefficients computed, so that the matrices behind them can go."""
        coef = self.solution.coef()
        self.problem.clear_cache()
        return self._replace(solution=self.solution._replace(coef=lambda: coef))
