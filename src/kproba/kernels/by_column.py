"""Kernels as functions of one column at a time: what explanations and partial dependence need to know of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..arrays import in_place, namespace_of
from .codes import differ


@dataclass(frozen=True)
class ByColumn:
    """amplitude · Π_j e_j, Σ_j e_j or Σ_{i≠j} e_i·e_j, where e_j compares column j of a row and a centre.

    ``of_column(j, x, z)`` returns e_j for values x (n, 1) and z (1, b) of any array library. The factors of a product
    must not be negative. Each column may have a function of its own.
    """

    combine: Literal["product", "sum", "pairs"]
    of_column: Callable[[int, Any, Any], Any]
    amplitude: float = 1.0


def split_by_column(kernel: Any, d: int) -> tuple[ByColumn, ...] | None:
    """The kernel of d columns as a sum of functions of one column at a time; None if it has no such form.

    A subclass may compute something else than its base class, so it has to define the method ``by_column`` itself.
    """
    return kernel.by_column(d) if "by_column" in vars(type(kernel)) else None


def laplacian_columns(
    rates: np.ndarray, share: np.ndarray | None = None, categorical: tuple[int, ...] = ()
) -> Callable[[int, Any, Any], Any]:
    """share_j·exp(−rate_j·|x_j − z_j|)."""

    def of_column(j, x, z):
        values = _differ(x, z) if j in categorical else in_place("abs", x - z)
        values *= -float(rates[j])
        values = in_place("exp", values)
        return values if share is None else values * float(share[j])

    return of_column


def gaussian_columns(rates: np.ndarray, categorical: tuple[int, ...] = ()) -> Callable[[int, Any, Any], Any]:
    """exp(−(rate_j·(x_j − z_j))²)."""

    def of_column(j, x, z):
        values = (_differ(x, z) if j in categorical else x - z) * float(rates[j])
        return in_place("exp", -(values * values))

    return of_column


def _differ(x, z):
    return differ(namespace_of(x, z), x, z)
