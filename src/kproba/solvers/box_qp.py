"""The global maximum of the surface loss: a convex quadratic programme, solved by a primal-dual interior-point method.

    minimise Σ_j ½ a_jᵀQ a_j − g_jᵀa_j   over   lower ≤ a ≤ upper,   Σ_j a_j = total if classes are coupled.

Each step is Mehrotra's predictor and corrector. Q is the same for every class, so a step factors one (m, m) matrix per
class, plus Σ_j (Q + D_j)⁻¹ for the coupling. The box plays the role of LSPC's ridge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from .cholesky import jittered_factor
from .surface_loss import SurfaceLoss

#: Interior-point methods converge in 10 to 30 steps on any problem.
MAX_STEPS = 60
#: Tolerances for the mean product of a distance to the box and its multiplier, and for the gradient of the Lagrangian,
#: relative to the initial gradient.
GAP_TOL, GRADIENT_TOL = 1e-13, 1e-10
#: If the diagonal of H's Cholesky factor spans more than this ratio, rounding affects it and the box decides.
RESOLVED = 1e-6
#: A step covers at most this share of the way to the box.
STEP_FRACTION = 0.995


def maximise(loss: SurfaceLoss) -> tuple[np.ndarray, bool, int]:
    """The global maximum: A = H⁻¹h if the box allows, otherwise by a primal-dual interior-point method.

    Returns the coefficients A (m, q), whether the box is inactive, and the number of steps.
    """
    inside = unconstrained(loss)
    if inside is not None:
        return inside, True, 1
    A, n_iter = _two_classes(loss) if loss.shape[1] == 2 else _many_classes(loss)
    return loss.nearest(A), False, n_iter


def unconstrained(loss: SurfaceLoss) -> np.ndarray | None:
    """A = H⁻¹h if it exists and lies inside the box. Its rows have the required sums because h1 = H·total."""
    lower, info = linalg.lapack.dpotrf(loss.H, lower=1)
    if info or np.diagonal(lower).min() < RESOLVED * np.diagonal(lower).max():
        return None
    A = loss.nearest(linalg.cho_solve((lower, True), loss.h))
    return A if np.abs(A).max() < 1.0 else None


def _two_classes(loss: SurfaceLoss) -> tuple[np.ndarray, int]:
    """a and total − a: one uncoupled column, with the box in which both satisfy theirs."""
    g = loss.h[:, :1] - loss.h[:, 1:] + (loss.H @ loss.total)[:, None]
    total = loss.total[:, None]
    lower, upper = np.maximum(-1.0, total - 1.0), np.minimum(1.0, total + 1.0)
    a, n_iter = _Interior(2.0 * loss.H, g, lower, upper, None).run()
    return np.hstack([a, total - a]), n_iter


def _many_classes(loss: SurfaceLoss) -> tuple[np.ndarray, int]:
    box = np.ones(loss.shape)
    return _Interior(loss.H, loss.h, -box, box, loss.total).run()


class _Point(NamedTuple):
    """Coefficients strictly inside the box, their distances to its two sides with multipliers (all positive), and the
    multipliers of the coupling. Distances are stored because near the box a − lower would round to zero."""

    a: np.ndarray
    lower_gap: np.ndarray
    upper_gap: np.ndarray
    lower_dual: np.ndarray
    upper_dual: np.ndarray
    nu: np.ndarray

    def moved(self, length: float, step: _Point) -> _Point:
        return _Point(*(x + length * dx for x, dx in zip(self, step)))


@dataclass
class _Interior:
    """An interior-point solver for one problem."""

    Q: np.ndarray
    g: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    total: np.ndarray | None

    def run(self) -> tuple[np.ndarray, int]:
        """The optimum, and the number of steps."""
        point, size = self._start()
        n_iter, steep = 0, np.inf
        while n_iter < MAX_STEPS:
            # the gradient of the Lagrangian, zero at the optimum
            slope = self.Q @ point.a - self.g - point.lower_dual + point.upper_dual + point.nu[:, None]
            mu, steep, steeper = _complementarity(point), float(np.abs(slope).max()), steep
            if mu < GAP_TOL * size and (steep < GRADIENT_TOL * size or steep > 0.5 * steeper):
                break  # the gradient shrinks with every step until only rounding errors are left
            newton = self._newton(point, slope)
            predictor = newton(0.0, 0.0)
            ahead = _complementarity(point.moved(_length(point, predictor), predictor))
            target = mu * (ahead / mu) ** 3
            step = newton(target - predictor.a * predictor.lower_dual, target + predictor.a * predictor.upper_dual)
            point = point.moved(STEP_FRACTION * _length(point, step), step)
            n_iter += 1
        return point.a, n_iter

    def _start(self) -> tuple[_Point, float]:
        """The middle of the box, shifted to the required sums, and the size of the gradient there."""
        a = 0.5 * (self.lower + self.upper)
        if self.total is not None:
            a = a + (self.total / a.shape[1])[:, None]
        size = max(1e-3, float(np.abs(self.Q @ a - self.g).max()))
        multiplier = np.full_like(a, size)
        return _Point(a, a - self.lower, self.upper - a, multiplier, multiplier, np.zeros(len(a))), size

    def _newton(self, point: _Point, slope: np.ndarray) -> Callable[..., _Point]:
        """A function from target products of gaps and multipliers to the Newton step towards them."""
        solve = self._factor(point.lower_dual / point.lower_gap + point.upper_dual / point.upper_gap)
        short = 0.0 if self.total is None else self.total - point.a.sum(axis=1)

        def step(lower_product, upper_product) -> _Point:
            lower = lower_product / point.lower_gap - point.lower_dual
            upper = upper_product / point.upper_gap - point.upper_dual
            da, dnu = solve(lower - upper - slope, short)
            lower = lower - point.lower_dual / point.lower_gap * da
            upper = upper + point.upper_dual / point.upper_gap * da
            return _Point(da, da, -da, lower, upper, dnu)

        return step

    def _factor(self, D: np.ndarray) -> Callable:
        """Factor Q + D_j; returns a function that solves for a step and the multipliers of the coupling."""
        below = np.tri(len(D), dtype=bool)
        inverses = [_inverse(self.Q, d, below) for d in D.T]
        if self.total is None:
            return lambda rhs, short: (np.column_stack([M @ r for M, r in zip(inverses, rhs.T)]), np.zeros(len(rhs)))
        schur = _lower(np.sum(inverses, axis=0)), True

        def solve(rhs, short):
            free = np.column_stack([M @ r for M, r in zip(inverses, rhs.T)])
            nu = linalg.cho_solve(schur, free.sum(axis=1) - short, check_finite=False)
            return free - np.column_stack([M @ nu for M in inverses]), nu

        return solve


def _complementarity(point: _Point) -> float:
    """μ, the mean product of a distance to the box and its multiplier; zero at the optimum."""
    return float((point.lower_gap * point.lower_dual + point.upper_gap * point.upper_dual).mean()) / 2.0


def _length(point: _Point, step: _Point) -> float:
    """The largest step length, at most 1, that keeps distances and multipliers positive.

    Primal and dual variables take the same length because the quadratic term couples them.
    """
    positive = slice(1, 5)
    return min(1.0, *(_max_steps(gap, change) for gap, change in zip(point[positive], step[positive])))


def _inverse(Q: np.ndarray, d: np.ndarray, below: np.ndarray) -> np.ndarray:
    """(Q + diag d)⁻¹, where ``below`` is the mask of the lower triangle."""
    system = Q.copy()
    system.flat[:: len(d) + 1] += d
    inverse, _ = linalg.lapack.dpotri(_lower(system), lower=1, overwrite_c=1)
    return np.where(below, inverse, inverse.T)  # LAPACK writes one triangle only


def _lower(system: np.ndarray) -> np.ndarray:
    """The Cholesky factor of a barely positive definite matrix, with jitter added if rounding requires it."""
    return jittered_factor(system, 1e-15 * float(np.diagonal(system).max()))


def _max_steps(gap: np.ndarray, step: np.ndarray) -> float:
    """How many times the step fits into the gap."""
    shrinking = step < 0
    with np.errstate(over="ignore"):  # for a vanishing step any number fits
        return float(np.min(gap[shrinking] / -step[shrinking], initial=np.inf))
