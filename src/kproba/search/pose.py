"""Build the problem for given rows and kernel: choose the centres and the basis."""

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
from ..problems.local import LocalProblem

#: With at most ALL_ROWS distinct rows, centers="auto" takes them all. Beyond, the number of centres grows with the
#: power GROWTH of the rows, up to MOST_CENTERS (measured in benchmarks/centers.py).
ALL_ROWS, MOST_CENTERS, GROWTH = 2000, 4000, 1 / 12
#: Minimum number of centres for a sample of the rows.
FEWEST_CENTERS = 200
#: Rough number of centres per row if only some rows are centres, but their number is not known beforehand.
SOME = 0.2


def auto_centers(n: int) -> int:
    """Number of centres that ``centers="auto"`` uses for n rows.

    >>> [auto_centers(n) for n in (500, 2_000, 16_000, 10**6)]
    [500, 2000, 2378, 3357]
    """
    return n if n <= ALL_ROWS else min(MOST_CENTERS, round(ALL_ROWS * (n / ALL_ROWS) ** GROWTH))


@dataclass(frozen=True)
class CenterChoice:
    """The parameter ``centers``; ``points`` are user-given centres in the form that the basis needs.

    ``are_shared`` says whether local models have centres in common beside their own.
    """

    centers: Any
    points: Any = None
    are_shared: bool = True

    def density(self, n: int) -> float:
        """Number of centres per distinct row, given n distinct rows."""
        if isinstance(self.centers, Integral):
            return min(1.0, int(self.centers) / n)
        if isinstance(self.centers, str):
            return auto_centers(n) / n if self.centers == "auto" else 1.0
        return SOME

    @property
    def is_local(self) -> bool:
        """Whether every region of the rows has a model and centres of its own."""
        return isinstance(self.centers, str) and self.centers == "local"

    def density_in_sample(self, n: int, n_sample: int) -> float:
        """Centres per row of a sample that has all the centres of n rows, as far as it has that many."""
        return min(1.0, self.density(n) * n / n_sample)

    def choose(self, rows: Rows, kernel: Kernel, density: float, seed: int) -> Centers:
        """The centres for all rows, or for a sample of them with as many centres per row as in the whole problem."""
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
    """Whether ``centers`` is a set of points rather than a way to choose them."""
    return not isinstance(centers, str | Integral | tuple)


@dataclass(frozen=True)
class Pose:
    """``pose(rows, kernel)`` builds the problem ``make(rows, basis, seed)`` of these rows.

    ``is_definite`` requires a positive semi-definite kernel matrix of the centres, because it is used as the penalty.
    """

    make: Callable[[Rows, Basis, int], Problem]
    centers: CenterChoice
    density: float
    seed: int
    workers: int = 1
    is_definite: bool = True

    def __call__(self, rows: Rows, kernel: Kernel) -> Problem:
        if self.centers.is_local:
            shares = self.centers.are_shared
            local = LocalProblem.of(rows, kernel, self.make, self.seed, self.workers, share_centers=shares)
            if local is not None:
                return local
            centers = subset_centers(rows, kernel, auto_centers(rows.n_distinct), self.seed)
        else:
            centers = self.centers.choose(rows, kernel, self.density, self.seed)
        if self.is_definite:
            return self.make(rows, Basis.definite(kernel, centers, self.workers), self.seed)
        return self.make(rows, Basis(kernel, *centers, workers=self.workers), self.seed)
