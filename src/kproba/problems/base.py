"""What every problem offers: rows, a basis and a penalty, with everything chosen but the ridge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..basis.basis import Basis
from ..data.rows import Rows


class Solution(NamedTuple):
    """A ridge λ, the scores (n, k) of rows that did not take part if asked for, and coefficients (b, k) on call.

    ``intercept`` (k,) is the constant of models that have one, ``n_iter`` the steps of those that take some.
    """

    ridge: float
    held_out: Any
    coef: Callable[[], Any]
    intercept: Any = 0.0
    n_iter: int | None = None


class Problem(Protocol):
    """Rows and a basis with everything but the ridge: what a search compares."""

    @property
    def rows(self) -> Rows: ...

    @property
    def basis(self) -> Basis: ...

    @property
    def total_weight(self) -> float:
        """Of all rows that the problem sums up."""

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge, with leave-one-out scores of all rows or of some."""

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without some rows, with the scores of these."""

    @property
    def has_cheap_loo(self) -> bool:
        """Whether leave-one-out scores cost no more than a solution or so."""

    @property
    def has_all_loo(self) -> bool:
        """Whether the scores of all rows cost no more than those of some."""

    @property
    def rows_for_ridge(self) -> int | None:
        """Distinct rows on which the ridge is chosen, where all of them would take too long; None for all."""

    def clear_cache(self) -> None:
        """Let go of large matrices."""

    def on(self, device) -> Problem:
        """The same problem computed on a device, as far as it can be; None is here."""
