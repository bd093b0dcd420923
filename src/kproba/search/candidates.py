"""A candidate of the search, a kernel with its width and ridge and its loss, and the record of all that were tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

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


@dataclass
class SearchRecord:
    """All candidates that were tried, available as columns of equal length."""

    entries: list[tuple] = field(default_factory=list)
    names = ("stage", "kernel", "width", "ridge", "rows", "loss")

    def add(self, stage: str, kernel: Kernel, ridges: Sequence[float], losses: Sequence[float], n_rows: int) -> None:
        width = np.nan if kernel.width is None else kernel.width
        self.entries += [(stage, kernel.name, width, ridge, n_rows, loss) for ridge, loss in zip(ridges, losses)]

    def columns(self) -> dict[str, np.ndarray]:
        """A dict of arrays, in an order that does not depend on the timing of threads."""
        order = {stage: i for i, stage in enumerate(dict.fromkeys(entry[0] for entry in self.entries))}
        entries = sorted(self.entries, key=lambda entry: (order[entry[0]], *entry[1:]))
        columns = zip(*entries) if entries else ([] for _ in self.names)
        return {name: np.array(column) for name, column in zip(self.names, columns)}
