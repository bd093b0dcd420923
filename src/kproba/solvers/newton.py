"""Newton's method for a penalised likelihood (2001 Eq. 5), with preconditioned conjugate gradients.

The preconditioner is a least-squares factor of Σ w̄φφᵀ + ρK with one weight w̄ per row, i.e. LSPC's system with other
weights. With a single column and current weights it is the Hessian itself, and a step is the weighted least squares of
Eq. 5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import copied, dot, zeros_like

#: Conjugate gradients stop when the missing share is below a threshold: the first number far from the optimum, less
#: near it, but never below the second, because products may be in float32.
LOOSEST, TIGHTEST = 0.25, 1e-3
#: If a step takes more products than this, and many times as many as the first one with the same preconditioner, its
#: weights are updated.
STALE_AFTER, STALE_GROWTH = 25, 3
#: Maximum number of products per step.
MAX_PRODUCTS = 500
#: The line search ends once the slope has fallen to this share.
RAY_SLOPE = 0.1
#: Share of the Newton step's gain that may be missing in a convergence check.
CHECK_SHARE = 0.1


class Optimum(NamedTuple):
    """Result of a solver: the final point, whether it converged, the number of steps, and a factor that can be
    reused."""

    point: Any
    converged: bool
    n_iter: int
    factor: Any = None


def newton(objective, start, tol: float, max_iter: int, factor=None) -> Optimum:
    """Newton's method (2001 Eq. 5), with steps by conjugate gradients in the coordinates of a least-squares factor.

    It stops once the remaining gain is below ``tol`` times the objective. A ``factor`` may come from another ridge.
    """
    point, few = start, 0
    for step in range(1, max_iter + 1):
        gradient = objective.gradient(point)
        factor = objective.preconditioner(point) if factor is None else factor
        direction, n_products, shrunk = conjugate_gradients(objective, point, factor, gradient, tol)
        few = few or n_products
        if n_products > max(STALE_AFTER, STALE_GROWTH * few):
            factor, few = None, 0
        decrement = -dot(gradient, direction)
        if not decrement > np.finfo(float).eps * abs(point.value):
            return Optimum(point, True, step, factor)
        point = search_ray(objective, point, direction, decrement)
        # an exact Newton step leaves a multiple of the squared decrement, an inexact one a share of the decrement
        left = decrement * min(1.0, 10.0 * decrement / point.value + shrunk**2) if point.value > 0 else 0.0
        if left <= tol * point.value or objective.is_exhausted(point, tol):
            return Optimum(point, True, step, factor)
    return Optimum(point, False, max_iter)


def conjugate_gradients(
    objective, point, factor, gradient, tol: float, share: float | None = None, most: int = MAX_PRODUCTS
) -> tuple[np.ndarray, int, float]:
    """The Newton direction, the number of products, and the missing share.

    The square of the missing share is the relative amount that more products would add to the decrement. The system is
    solved in the coordinates of the factor, where the Hessian is near the identity. The tolerated ``share`` shrinks
    towards the optimum, for quadratic convergence, but not below what ``tol`` requires, unless it is given. The missing
    share is judged by the gain of each product, not by the residual: a factor that underestimates some curvature makes
    the residual large where nothing can be gained, and its decrease says nothing about the rest.
    """
    residual = -factor.whiten(gradient)
    step, along = zeros_like(residual), copied(residual)
    norm = first = dot(residual, residual)
    # to first order this is the decrement; a remainder due to rounding may lie in the null space of the Hessian (a
    # constant that all classes share), where no product reduces it
    if not first > (np.finfo(float).eps * abs(point.value) if share is None else 0.0):
        return zeros_like(gradient), 0, 0.0
    if share is None:
        near = np.sqrt(first / abs(point.value)) if point.value else LOOSEST
        share = min(LOOSEST, max(near, 0.5 * np.sqrt(tol) / near, TIGHTEST))
    gained, left = 0.0, 1.0
    for n_products in range(1, most + 1):
        image = objective.whitened_product(point, factor, along)
        curvature = dot(along, image)
        if curvature <= 0.0:  # rounding: nothing can be gained in this direction
            break
        length = norm / curvature
        step += length * along
        residual -= length * image
        gained += length * norm
        norm, before = dot(residual, residual), norm
        # the residual would gain its square if the factor were the Hessian, and more in flatter directions
        left = n_products * max(length, 1.0) * norm / gained
        if left <= share**2:
            break
        along *= norm / before
        along += residual
    return factor.unwhiten(step), n_products, float(np.sqrt(left))


def search_ray(objective, point, direction, decrement: float, max_steps: int = 12):
    """A line search: the point along ``direction`` that nearly minimises the objective, without feature products."""
    ray, best = objective.ray(point, direction), point
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(max_steps):
        tried, slope, curvature = ray(t)
        best = tried if tried.value < best.value else best
        if abs(slope) <= RAY_SLOPE * decrement:
            break
        low, high = (t, high) if slope < 0 else (low, t)
        t = min(t - slope / curvature, 4.0 * t) if curvature > 0 else 2.0 * t
        if not low < t < high:
            t = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low
    return best


def is_optimal(objective, point, factor, gradient, tol: float) -> bool:
    """Whether the remaining gain is below ``tol`` times the objective, by the gradient and the Hessian of all rows.

    A Newton step gains half its decrement; comparing the whole decrement allows for errors of the quadratic model.
    """
    if objective.is_exhausted(point, tol):
        return True
    enough = max(tol, np.finfo(float).eps) * abs(point.value)
    direction, _, missing = conjugate_gradients(objective, point, factor, gradient, tol, CHECK_SHARE)
    return missing <= CHECK_SHARE and -dot(gradient, direction) <= enough
