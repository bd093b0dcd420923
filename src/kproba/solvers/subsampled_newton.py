"""Newton's method where a pass over all rows gives no more than a value and a gradient: the Hessian is a sample's.

The Newton system (2001 Eq. 5) of the sample is solved in memory. What its Hessian misses of that of all rows, the
passes so far have shown: limited-memory BFGS corrects the solution by them, so that the last digits cost few passes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .newton import Optimum, conjugate_gradients

#: Passes whose steps are kept for corrections.
KEPT_STEPS = 20
#: The last step needs no pass to check it where the one before left less than this share of the decrement.
SURE = 0.25
#: Shares of the residual at which conjugate gradients stop, by the precision of their products.
CG_TOLERANCE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
#: Sums over all rows are not known to a smaller share.
ROUNDING = 1e-14


class Evaluation(NamedTuple):
    """Coefficients with the objective of all rows and its gradient there."""

    X: np.ndarray
    value: float
    gradient: np.ndarray


class Corrections:
    """Steps and what they changed in the gradient: the two-loop recursion of limited-memory BFGS."""

    def __init__(self) -> None:
        self._pairs: deque = deque(maxlen=KEPT_STEPS)

    def note(self, step: np.ndarray, change: np.ndarray) -> None:
        bend = float(np.vdot(step, change))
        if bend > 0.0:  # a convex function has no other; rounding may
            self._pairs.append((step, change, bend))

    def solve(self, gradient: np.ndarray, solve: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """What ``solve`` says, put right along the steps that were taken."""
        rest, shares = gradient.copy(), []
        for step, change, bend in reversed(self._pairs):
            shares.append(float(np.vdot(step, rest)) / bend)
            rest -= shares[-1] * change
        found = solve(rest)
        for (step, change, bend), share in zip(self._pairs, reversed(shares)):
            found += (share - float(np.vdot(change, found)) / bend) * step
        return found


class SampleNewton:
    """Newton systems of a sample.

    They are solved until rounding ends it: sums over all rows differ in their last digits with the order in which they
    are made, and a solve that stops early would magnify that.
    """

    def __init__(self, objective, start: Optimum):
        self.objective, self._factor = objective, start.factor
        if objective.loss.n_columns == 1 or start.factor is None:
            self._factor = objective.newton_factor(start.point)

    def at(self, X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """The solve for a right-hand side: one column by the factor at the start, several with the Hessian at X."""
        if self.objective.loss.n_columns == 1:
            return self._factor.solve
        point = self.objective.at(X)
        share = CG_TOLERANCE[np.dtype(np.float64 if self._factor.psi is None else self._factor.psi.dtype)]
        return lambda G: conjugate_gradients(self.objective, point, self._factor, -G, 0.0, share)[0]


def subsampled_newton(whole, sample, start: Optimum, tol: float, max_iter: int) -> Optimum:
    """Minimise ``whole``, whose ``at(X)`` is a pass, from the optimum of the objective ``sample`` in the same units.

    A step that did not lower the objective is not taken, but shows the curvature along it; the next one is shorter.
    """
    newton, corrections = SampleNewton(sample, start), Corrections()
    best, decrement, failures = whole.at(start.point.X), np.inf, 0
    for n_passes in range(1, max_iter + 1):
        direction = -corrections.solve(best.gradient, newton.at(best.X))
        decrement, before = -float(np.vdot(best.gradient, direction)), decrement
        shrunk = decrement / before if n_passes > 1 and not failures else 1.0
        last = _last(best, direction, decrement, shrunk, max(tol, ROUNDING))
        if last is not None or n_passes == max_iter:
            break
        tried = whole.at(best.X + 0.5**failures * direction)
        corrections.note(tried.X - best.X, tried.gradient - best.gradient)
        best, failures = (tried, 0) if tried.value < best.value else (best, failures + 1)
    return Optimum(best if last is None else last, last is not None, n_passes)


def _last(best: Evaluation, direction: np.ndarray, decrement: float, shrunk: float, tol: float) -> Evaluation | None:
    """Where to stop; None if more than ``tol`` times the objective may be left to gain.

    By the sample's curvature that is half the decrement; all of it to be on the safe side. The last step leaves the
    same share of it as the step before, where that one went well.
    """
    if shrunk < SURE:
        best, decrement = best._replace(X=best.X + direction), decrement * shrunk
    return best if decrement <= tol * abs(best.value) else None
