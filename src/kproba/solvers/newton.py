"""Newton's method for a penalised likelihood: 2001 Eq. 5, its systems solved by preconditioned conjugate gradients.

The preconditioner is a least-squares factor, Σ w̄φφᵀ + ρK with one weight w̄ a row: LSPC's system with other
weights. For one column and fresh weights it is the Hessian itself, and a step is the weighted least squares of Eq. 5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

#: Conjugate gradients stop when the share that is missing is below the first number, near the optimum below less, but
#: not below the second: products may be in float32.
LOOSEST, TIGHTEST = 0.25, 1e-3
#: After so many products in one step the weights of the preconditioner are brought up to date.
STALE_AFTER = 25
#: Products in one step at most.
MAX_PRODUCTS = 500
#: A step is long enough when the slope along it has fallen to this share.
RAY_SLOPE = 0.1
#: Share of the Newton step's gain that may be missing where convergence is checked.
CHECK_SHARE = 0.1


class Optimum(NamedTuple):
    """Where a solver stopped: the point, whether it converged, how many steps it took, a factor that still serves."""

    point: Any
    converged: bool
    n_iter: int
    factor: Any = None


def newton(objective, start, tol: float, max_iter: int) -> Optimum:
    """Minimise from the point ``start`` until what is left to gain is below ``tol`` times the objective."""
    point, factor = start, None
    for step in range(1, max_iter + 1):
        gradient = objective.gradient(point)
        factor = objective.preconditioner(point) if factor is None else factor
        direction, n_products, shrunk = conjugate_gradients(objective, point, factor, gradient, tol)
        factor = None if n_products > STALE_AFTER else factor
        decrement = -float(np.vdot(gradient, direction))
        if not decrement > np.finfo(float).eps * abs(point.value):
            return Optimum(point, True, step, factor)
        point = search_ray(objective, point, direction, decrement)
        # a Newton step leaves some times the square of the decrement; an inexact one a share of the decrement
        left = decrement * min(1.0, 10.0 * decrement / point.value + shrunk**2) if point.value > 0 else 0.0
        if left <= tol * point.value:
            return Optimum(point, True, step, factor)
    return Optimum(point, False, max_iter)


def conjugate_gradients(
    objective, point, factor, gradient, tol: float, share: float | None = None
) -> tuple[np.ndarray, int, float]:
    """The Newton direction, the number of products it took, and the share that is missing: its square is the part of
    the decrement that more products would add.

    It is found in the coordinates of the factor, where the Hessian is near the identity. The nearer the optimum the
    smaller the share, for quadratic convergence; but not smaller than ``tol`` asks for, unless it is given. What is
    missing is judged by what products gain, not by the residual: a factor that underrates some curvature makes the
    residual large where there is nothing to gain, and its fall says nothing about the rest.
    """
    residual = -factor.whiten(gradient)
    step, along = np.zeros_like(residual), residual.copy()
    norm = first = float(np.vdot(residual, residual))
    # to first order this is the decrement; what rounding leaves of it may lie where the Hessian is zero (a constant
    # that all classes share), and no product makes it smaller
    if not first > (np.finfo(float).eps * abs(point.value) if share is None else 0.0):
        return np.zeros_like(gradient), 0, 0.0
    if share is None:
        near = np.sqrt(first / abs(point.value)) if point.value else LOOSEST
        share = min(LOOSEST, max(near, 0.5 * np.sqrt(tol) / near, TIGHTEST))
    gained, left = 0.0, 1.0
    for n_products in range(1, MAX_PRODUCTS + 1):
        image = objective.whitened_product(point, factor, along)
        bend = float(np.vdot(along, image))
        if bend <= 0.0:  # rounding: there is nothing left to gain in this direction
            break
        length = norm / bend
        step += length * along
        residual -= length * image
        gained += length * norm
        norm, before = float(np.vdot(residual, residual)), norm
        # the residual would gain its square if the factor were the Hessian, and more where that is flatter
        left = n_products * max(length, 1.0) * norm / gained
        if left <= share**2:
            break
        along *= norm / before
        along += residual
    return factor.unwhiten(step), n_products, float(np.sqrt(left))


def search_ray(objective, point, direction, decrement: float, max_steps: int = 12):
    """The point along ``direction`` where the objective is nearly smallest. It costs no product with the features."""
    ray, best = objective.ray(point, direction), point
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(max_steps):
        tried, slope, bend = ray(t)
        best = tried if tried.value < best.value else best
        if abs(slope) <= RAY_SLOPE * decrement:
            break
        low, high = (t, high) if slope < 0 else (low, t)
        t = min(t - slope / bend, 4.0 * t) if bend > 0 else 2.0 * t
        if not low < t < high:
            t = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low
    return best


def is_optimal(objective, point, factor, gradient, tol: float) -> bool:
    """Whether less than ``tol`` times the objective is left to gain, by the gradient and the Hessian of all rows.

    A Newton step gains half of its decrement; comparing all of it leaves room for what the quadratic model misses.
    """
    enough = max(tol, np.finfo(float).eps) * abs(point.value)
    direction, _, missing = conjugate_gradients(objective, point, factor, gradient, tol, CHECK_SHARE)
    return missing <= CHECK_SHARE and -float(np.vdot(gradient, direction)) <= enough
