"""The surface loss to its global maximum: a convex quadratic programme by a primal-dual interior-point method.

    minimise Σ_j ½ a_jᵀQ a_j − g_jᵀa_j   over   lower ≤ a ≤ upper,   Σ_j a_j = total where classes are coupled.

Each step is Mehrotra's predictor and corrector. Q is the same for every class, so a step factors one (m, m) matrix a
class; the coupling adds one more, Σ_j (Q + D_j)⁻¹. The box takes the place that a ridge has in LSPC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from .surface_loss import SurfaceLoss

#: Interior points converge in 10 to 30 steps whatever the problem.
MAX_STEPS = 60
#: A point counts as optimal when the mean product of a distance to the box and its multiplier, and the slope, are
#: these parts of the slope at the start.
GAP_TOL, GRADIENT_TOL = 1e-13, 1e-10
#: A pivot of H, as a root and a share of the largest, below which rounding has a say in it: then the box decides.
RESOLVED = 1e-6
#: A step goes this far of the way to the box.
STEP_FRACTION = 0.995


def maximise(loss: SurfaceLoss) -> tuple[np.ndarray, bool, int]:
    """The best coefficients A (m, q), whether the box plays no part in them, and the number of steps."""
    inside = unconstrained(loss)
    if inside is not None:
        return inside, True, 1
    A, n_iter = _two_classes(loss) if loss.shape[1] == 2 else _many_classes(loss)
    return loss.nearest(A), False, n_iter


def unconstrained(loss: SurfaceLoss) -> np.ndarray | None:
    """A = H⁻¹h where that exists and lies inside the box. Its rows have the right sums by themselves: h1 = H·total."""
    lower, info = linalg.lapack.dpotrf(loss.H, lower=1)
    if info or np.diagonal(lower).min() < RESOLVED * np.diagonal(lower).max():
        return None
    A = loss.nearest(linalg.cho_solve((lower, True), loss.h))
    return A if np.abs(A).max() < 1.0 else None


def _two_classes(loss: SurfaceLoss) -> tuple[np.ndarray, int]:
    """a and total − a: one column, uncoupled, whose box is where both of them are in theirs."""
    g = loss.h[:, :1] - loss.h[:, 1:] + (loss.H @ loss.total)[:, None]
    total = loss.total[:, None]
    lower, upper = np.maximum(-1.0, total - 1.0), np.minimum(1.0, total + 1.0)
    a, n_iter = _Interior(2.0 * loss.H, g, lower, upper, None).run()
    return np.hstack([a, total - a]), n_iter


def _many_classes(loss: SurfaceLoss) -> tuple[np.ndarray, int]:
    box = np.ones(loss.shape)
    return _Interior(loss.H, loss.h, -box, box, loss.total).run()


class _Point(NamedTuple):
    """Coefficients strictly inside the box, their distances to its two sides, the multipliers of these, all positive,
    and those of the coupling. Distances are kept beside a, because near the box a − lower would round to zero."""

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
    """A problem, and the way to its optimum."""

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
            mu, slope, steeper = _complementarity(point), self._slope(point), steep
            steep = float(np.abs(slope).max())
            if mu < GAP_TOL * size and (steep < GRADIENT_TOL * size or steep > 0.5 * steeper):
                break  # the slope falls with every step until it is made of rounding errors
            newton = self._newton(point, slope)
            predictor = newton(0.0, 0.0)
            ahead = _complementarity(point.moved(_length(point, predictor), predictor))
            target = mu * (ahead / mu) ** 3
            step = newton(target - predictor.a * predictor.lower_dual, target + predictor.a * predictor.upper_dual)
            point = point.moved(STEP_FRACTION * _length(point, step), step)
            n_iter += 1
        return point.a, n_iter

    def _start(self) -> tuple[_Point, float]:
        """The middle of the box, where the sums are right, and the size of the slope there."""
        a = 0.5 * (self.lower + self.upper)
        if self.total is not None:
            a = a + (self.total / a.shape[1])[:, None]
        size = max(1e-3, float(np.abs(self.Q @ a - self.g).max()))
        multiplier = np.full_like(a, size)
        return _Point(a, a - self.lower, self.upper - a, multiplier, multiplier, np.zeros(len(a))), size

    def _slope(self, point: _Point) -> np.ndarray:
        """The gradient of the Lagrangian, zero at the optimum."""
        return self.Q @ point.a - self.g - point.lower_dual + point.upper_dual + point.nu[:, None]

    def _newton(self, point: _Point, slope: np.ndarray) -> Callable[..., _Point]:
        """A function of the products that lower_gap and multipliers are to have, which gives the step towards them."""
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
        """Factors of Q + D_j, as a function that solves for a step and the multipliers of the coupling."""
        inverses = [_inverse(self.Q, d) for d in D.T]
        if self.total is None:
            return lambda rhs, short: (np.column_stack([M @ r for M, r in zip(inverses, rhs.T)]), np.zeros(len(rhs)))
        schur = _lower(np.sum(inverses, axis=0)), True

        def solve(rhs, short):
            free = np.column_stack([M @ r for M, r in zip(inverses, rhs.T)])
            nu = linalg.cho_solve(schur, free.sum(axis=1) - short, check_finite=False)
            return free - np.column_stack([M @ nu for M in inverses]), nu

        return solve


def _complementarity(point: _Point) -> float:
    """μ: the mean product of a distance to the box and its multiplier, zero at the optimum."""
    return float((point.lower_gap * point.lower_dual + point.upper_gap * point.upper_dual).mean()) / 2.0


def _length(point: _Point, step: _Point) -> float:
    """The part of the step, all of it at most, that keeps distances and multipliers positive.

    A quadratic ties coefficients and multipliers, so both take the same.
    """
    positive = slice(1, 5)
    return min(1.0, *(_max_steps(gap, change) for gap, change in zip(point[positive], step[positive])))


def _inverse(Q: np.ndarray, d: np.ndarray) -> np.ndarray:
    """(Q + diag d)⁻¹."""
    inverse, _ = linalg.lapack.dpotri(_lower(Q + np.diag(d)), lower=1, overwrite_c=1)
    inverse = np.tril(inverse)
    return inverse + np.tril(inverse, -1).T


def _lower(system: np.ndarray) -> np.ndarray:
    """The Cholesky factor of a matrix that is positive definite, if only just: rounding may need a little help."""
    jitter = 1e-15 * float(np.diagonal(system).max())
    while np.isfinite(jitter):
        lower, info = linalg.lapack.dpotrf(system, lower=1)
        if info == 0:
            return lower
        system = system + jitter * np.eye(len(system))
        jitter *= 10.0
    raise linalg.LinAlgError("The sums over rows have values that are no numbers.")


def _max_steps(gap: np.ndarray, step: np.ndarray) -> float:
    """How many such steps fit into the gap."""
    shrinking = step < 0
    with np.errstate(over="ignore"):  # a step next to nothing: as many as you like
        return float(np.min(gap[shrinking] / -step[shrinking], initial=np.inf))
