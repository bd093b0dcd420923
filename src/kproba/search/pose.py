"""How rows and a kernel become a problem: which centres, which basis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from ..basis.basis import Basis
from ..basis.centers import Centers, all_centers, class_centers, subset_centers
from ..data.rows import Rows
from ..kernels import Kernel
from ..problems.base import Problem

#: With at most this many distinct rows, centers="auto" takes them all; then it grows by the twelfth root, up to
#: the last number (measured in benchmarks/centers.py).
ALL_ROWS, MOST_CENTERS, GROWTH = 2000, 4000, 1 / 12
#: A sample of the rows has at least so many centres.
FEWEST_CENTERS = 200
#: Centres to the row, roughly, where only some rows are centres but their number is not known beforehand.
SOME = 0.2


def auto_centers(n: int) -> int:
    """Centres of ``centers="auto"`` for n rows.

    >>> [auto_centers(n) for n in (500, 2_000, 16_000, 10**6)]
    [500, 2000, 2378, 3357]
    """
    return n if n <= ALL_ROWS else min(MOST_CENTERS, round(ALL_ROWS * (n / ALL_ROWS) ** GROWTH))


@dataclass(frozen=True)
class CenterChoice:
    """What the parameter ``centers`` says; ``points`` are those that the user gave, as the basis takes them."""

    centers: Any
    points: Any = None

    def density(self, n: int) -> float:
        """Centres to the distinct row, of which there are n."""
        if isinstance(self.centers, Integral):
            return min(1.0, int(self.centers) / n)
        if isinstance(self.centers, str):
            return auto_centers(n) / n if self.centers == "auto" else 1.0
        return SOME

    def choose(self, rows: Rows, kernel: Kernel, density: float, seed: int) -> Centers:
        """Centres of all rows, or of a sample of them: as many to the row there as in the whole problem."""
        if self.points is not None:
            return Centers(self.points)
        if isinstance(self.centers, tuple):
            return class_centers(rows, kernel, self.centers[1], seed)
        if self.centers == "class":
            return class_centers(rows, kernel)
        if self.centers == "all":
            return all_centers(rows, kernel)
        b = max(round(density * rows.n_distinct), FEWEST_CENTERS)
        most = self.centers if isinstance(self.centers, Integral) else b
        return subset_centers(rows, kernel, min(b, int(most)), seed)


def is_given(centers) -> bool:
    """Whether ``centers`` is a list of points rather than a way to choose them."""
    return not isinstance(centers, str | Integral | tuple)


@dataclass(frozen=True)
class Pose:
    """``pose(rows, kernel)`` is the problem ``make(rows, basis, seed)`` of these rows.

    ``is_definite`` asks for a kernel matrix of the centres that is positive semi-definite, because it penalises.
    """

    make: Callable[[Rows, Basis, int], Problem]
    centers: CenterChoice
    density: float
    seed: int
    workers: int = 1
    is_definite: bool = True

    def __call__(self, rows: Rows, kernel: Kernel) -> Problem:
        centers = self.centers.choose(rows, kernel, self.density, self.seed)
        if self.is_definite:
            return self.make(rows, Basis.definite(kernel, centers, self.workers), self.seed)
        return self.make(rows, Basis(kernel, *centers, workers=self.workers), self.seed)
