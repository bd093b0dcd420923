"""Newton's method with a subsampled Hessian: passes over all rows give values and gradients, a sample the Hessian.

The Newton system (2001 Eq. 5) of the sample is solved in memory. Limited-memory BFGS corrects its solution by what
earlier passes revealed about the Hessian of all rows, so that the last digits cost few passes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .newton import MAX_PRODUCTS, Optimum, conjugate_gradients

#: Number of past steps kept for corrections.
KEPT_STEPS = 20
#: The last step is not checked by a pass if the one before left less than this share of the decrement.
SURE = 0.25
#: Relative residual at which conjugate gradients stop, by the precision of their products.
CG_TOLERANCE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
#: Unless ``tol`` is below the first number, so many products are enough: the sample's Hessian differs from that of all
#: rows by more than they leave.
LOOSE_TOL, ENOUGH_PRODUCTS = 1e-6, 60
#: Relative accuracy of sums over all rows.
ROUNDING = 1e-14


class Evaluation(NamedTuple):
    """The objective of all rows and its gradient at coefficients X."""

    X: np.ndarray
    value: float
    gradient: np.ndarray


class Corrections:
    """Past steps and the gradient changes they caused: the two-loop recursion of limited-memory BFGS."""

    def __init__(self) -> None:
        self._pairs: deque = deque(maxlen=KEPT_STEPS)

    def note(self, step: np.ndarray, change: np.ndarray) -> None:
        curvature = float(np.vdot(step, change))
        if curvature > 0.0:  # always true for a convex function, up to rounding
            self._pairs.append((step, change, curvature))

    def solve(self, gradient: np.ndarray, solve: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The solution of ``solve``, corrected along the past steps."""
        rest, shares = gradient.copy(), []
        for step, change, curvature in reversed(self._pairs):
            shares.append(float(np.vdot(step, rest)) / curvature)
            rest -= shares[-1] * change
        found = solve(rest)
        for (step, change, curvature), share in zip(self._pairs, reversed(shares)):
            found += (share - float(np.vdot(change, found)) / curvature) * step
        return found


class SampleNewton:
    """Newton systems of a sample.

    They are solved to rounding level or by a fixed number of products: sums over all rows differ in their last digits
    with the order of summation, and a solve that stops early because of what it finds would magnify that.
    """

    def __init__(self, objective, start: Optimum, tol: float):
        self.objective, self._factor = objective, start.factor
        self._most = ENOUGH_PRODUCTS if tol >= LOOSE_TOL else MAX_PRODUCTS
        if objective.loss.n_columns == 1 or start.factor is None:
            self._factor = objective.newton_factor(start.point)

    def at(self, X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A solver for right-hand sides: the initial factor for a single column, the Hessian at X for several."""
        if self.objective.loss.n_columns == 1:
            return self._factor.solve
        point = self.objective.at(X)
        psi = self._factor.psi
        share = CG_TOLERANCE[np.dtype("float64" if psi is None else str(psi.dtype).rpartition(".")[2])]
        return lambda G: conjugate_gradients(self.objective, point, self._factor, -G, 0.0, share, self._most)[0]


def subsampled_newton(whole, sample, start: Optimum, tol: float, max_iter: int) -> Optimum:
    """Minimise ``whole``, whose ``at(X)`` is a pass, from the optimum of ``sample``, an objective on the same scale.

    A step that does not decrease the objective is rejected, but reveals the curvature along it; the next one is
    shorter.
    """
    newton, corrections = SampleNewton(sample, start, tol), Corrections()
    best, decrement, failures = whole.at(start.point.X), np.inf, 0
    for n_passes in range(1, max_iter + 1):
        direction = -corrections.solve(best.gradient, newton.at(best.X))
        decrement, before = -float(np.vdot(best.gradient, direction)), decrement
        shrunk = decrement / before if n_passes > 1 and not failures else 1.0
        last = best if sample.is_exhausted(best, tol) else _last(best, direction, decrement, shrunk, max(tol, ROUNDING))
        if last is not None or n_passes == max_iter:
            break
        tried = whole.at(best.X + 0.5**failures * direction)
        corrections.note(tried.X - best.X, tried.gradient - best.gradient)
        best, failures = (tried, 0) if tried.value < best.value else (best, failures + 1)
    return Optimum(best if last is None else last, last is not None, n_passes)


def _last(best: Evaluation, direction: np.ndarray, decrement: float, shrunk: float, tol: float) -> Evaluation | None:
    """The final point; None if the remaining gain may exceed ``tol`` times the objective.

    By the sample's curvature the remaining gain is half the decrement; the whole decrement is used to be safe. The last
    step is assumed to leave the same share of it as the step before, if that one succeeded.
    """
    if shrunk < SURE:
        best, decrement = best._replace(X=best.X + direction), decrement * shrunk
    return best if decrement <= tol * abs(best.value) else None
