"""The interface of a problem: rows, a basis and a penalty, with everything fixed but the ridge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from ..basis.basis import Basis
from ..data.rows import Rows


class Solution(NamedTuple):
    """The solution at a ridge λ: held-out scores (n, k) if requested, and a function that computes coefficients (b, k).

    ``intercept`` (k,) is zero for models without one; ``n_iter`` is the number of steps of iterative solvers.
    ``without_copies`` computes the scores (n, k) of each row by the model without the row and all copies of it, where
    these cost nothing more; ``held_out`` leaves the copies in.
    """

    ridge: float
    held_out: Any
    coef: Callable[[], Any]
    intercept: Any = 0.0
    n_iter: int | None = None
    without_copies: Callable[[], np.ndarray] | None = None


def with_scores(solutions: Iterable[Solution], basis: Basis, X) -> Iterator[Solution]:
    """The solutions with their scores of rows X that they have not seen, whose features serve all of them."""
    found = list(solutions)
    scores = basis.scores_of_each(X, [solution.coef() for solution in found])
    for solution, each in zip(found, scores):
        yield solution._replace(held_out=each + solution.intercept)


class Problem(Protocol):
    """Rows and a basis with everything fixed but the ridge: the object that a search compares."""

    @property
    def rows(self) -> Rows: ...

    @property
    def basis(self) -> Basis: ...

    @property
    def total_weight(self) -> float:
        """The weight of all rows in the problem."""

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge, with the leave-one-out scores of all rows or of ``loo_rows``."""

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without the rows ``inside``, and the scores of these rows."""

    @property
    def has_cheap_loo(self) -> bool:
        """Whether leave-one-out scores cost about as much as a solution."""

    @property
    def has_all_loo(self) -> bool:
        """Whether leave-one-out scores of all rows cost no more than those of some."""

    @property
    def rows_for_ridge(self) -> int | None:
        """Number of distinct rows used to choose the ridge if using all would take too long; None for all."""

    def clear_cache(self) -> None:
        """Free large matrices."""

    def on(self, device) -> Problem:
        """The same problem on a device, as far as supported; None is the CPU."""


class CpuProblem:
    """What most problems share: their rows are in memory, and they are solved on the CPU."""

    rows: Rows
    has_all_loo = False

    @property
    def rows_for_ridge(self) -> int | None:
        return None

    @property
    def total_weight(self) -> float:
        return self.rows.total_weight

    def clear_cache(self) -> None:
        """Free everything that is computed once."""
        for name, member in vars(type(self)).items():
            if isinstance(member, cached_property):
                vars(self).pop(name, None)

    def on(self, device) -> Self:
        """Unchanged: the problem is solved on the CPU."""
        return self
