"""Import points and their coefficients.

J(S, θ, o) = Σ wᵢ loss(Uᵢ) + ρ/2 Σ_j θ_jᵀ K_SS θ_j  with  U = Φ_S θ + 1oᵀ                       (2001 Eq. 6 and 9)

Computations use a basis that is orthonormal in the RKHS: with K_SS = LLᵀ, Ψ = Φ_S L⁻ᵀ and β = Lᵀθ the penalty is
ρ/2‖β‖², whatever the condition of K_SS. A new point appends one column to Ψ and leaves the others unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ...data.rows import Rows
from ...kernels import Kernel, Precomputed
from ...solvers.cholesky import jittered_factor
from ...threads import TILE_BYTES, map_independent, row_slices
from ..losses import Multinomial, Tags
from .by_class import MAX_AGE, ClassFactors, has_many_classes, newton_step

#: Newton's method has converged when the next step would decrease J by less than this share; the second number is used
#: while points are still being added.
CONVERGED, NEARLY_CONVERGED = 1e-14, 1e-8
#: The same for many classes, whose steps are inexact, so that the last one leaves far less than it gains.
CONVERGED_BY_CLASS, NEARLY_CONVERGED_BY_CLASS = 1e-12, 1e-6
#: A factor is reused as long as the predicted decrease shrinks to less than this share with every step.
SLOW = 0.1
#: The factor is always recomputed after this many points.
MAX_FACTOR_AGE = 4
#: Objectives that differ by less than this share count as equal.
ROUNDING = 1e-13
#: A mean loss below this counts as zero.
NEGLIGIBLE_LOSS = 1e-6
MAX_STEPS, MAX_HALVINGS = 200, 40
#: A larger step counts as unbounded.
STEP_LIMIT = 1e100
#: Sums over rows are split into this many parts, which may run on as many threads.
N_PARTIAL_SUMS = 8
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Task:
    """Labelled rows, the loss of their scores, and the kernel, for which import points are chosen."""

    rows: Rows
    kernel: Kernel
    loss: Multinomial | Tags
    workers: int = 1

    def __len__(self) -> int:
        return len(self.rows)

    def points(self, index):
        """The rows of ``index`` as centres of the kernel."""
        return self.rows.number[index] if isinstance(self.kernel, Precomputed) else self.rows.X[index]

    def columns(self, index) -> np.ndarray:
        """k(x_i, x_l) for all rows i and the rows l of ``index``, (n, m)."""
        return self.kernel(self.rows.X, self.points(index), self.workers).astype(np.float64, copy=False)

    @cached_property
    def resolution(self) -> float:
        """The share of k(x, x) below which a difference of kernel values is a rounding error."""
        return self._eps ** (2 / 3)

    @property
    def rounding(self) -> float:
        """The share of k(x, x) below which an eigenvalue of a kernel matrix is a rounding error."""
        return 10.0 * self._eps

    @cached_property
    def _eps(self) -> float:
        """The precision of kernel values."""
        one = np.zeros(1, dtype=int)
        values = self.kernel(self.rows.X[one], self.points(one))
        return float(np.finfo(np.result_type(values.dtype, np.float32)).eps)

    @cached_property
    def constant_loss(self) -> float:
        """The loss of the best constant model, the baseline."""
        prior = np.clip(self.rows.prior, _EPS, 1.0 - _EPS)
        scores = np.log(prior) - (np.log1p(-prior) if isinstance(self.loss, Tags) else 0.0)
        return self.evaluate(np.broadcast_to(self.loss.columns(scores), (len(self), self.loss.n_columns)))[0]

    @property
    def groups(self) -> list[slice]:
        """Columns of U that the curvature couples: all of them for classes, each separately for tags."""
        k = self.loss.n_columns
        return [slice(j, j + 1) for j in range(k)] if isinstance(self.loss, Tags) else [slice(0, k)]

    def total(self, part: Callable[[slice], Sequence[np.ndarray]], row_bytes: int) -> list[np.ndarray]:
        """Sums over rows of the arrays that ``part(rows)`` returns for tiles of rows that fit into the cache.

        The order of summation does not depend on the number of threads.
        """
        tiles = row_slices(len(self), row_bytes, TILE_BYTES)
        shares = [tiles[start::N_PARTIAL_SUMS] for start in range(min(N_PARTIAL_SUMS, len(tiles)))]

        def add(share):
            sums = list(part(share[0]))
            for rows in share[1:]:
                for total, more in zip(sums, part(rows)):
                    total += more
            return sums

        return [sum(parts) for parts in zip(*map_independent(add, shares, self.workers))]

    def evaluate(self, U) -> tuple[float, np.ndarray]:
        return self.loss.evaluate(U, self.rows.labels, self.rows.weight)

    def slope(self, P) -> np.ndarray:
        """∂Σwloss/∂U (n, k)."""
        return self.rows.weight[:, None] * self.loss.residual(P, self.rows.labels)

    def unit_curvatures(self, P) -> list[np.ndarray]:
        """∂²loss/∂U² (n, g, g) per unit of weight, for every group of g columns."""
        if isinstance(self.loss, Tags):
            own = self.loss.curvature_product(P, np.ones_like(P))
            return [own[:, group, None] for group in self.groups]
        return [self.loss.curvature(P)]

    def curvatures(self, P) -> list[np.ndarray]:
        """The same multiplied by the weights of the rows."""
        return [self.rows.weight[:, None, None] * C for C in self.unit_curvatures(P)]


class Factors(NamedTuple):
    """Cholesky factors of ∂²J/∂β², one for every group of g columns; β_jp has index jg + p.

    ``curvatures`` (n, g, g) are the weights used to compute them, ``age`` the number of points added since.
    """

    curvatures: list[np.ndarray]
    lowers: list[np.ndarray]
    age: int = 0


class Addition(NamedTuple):
    """A point to add to the model: its row, its basis column ψ (n,), and ``squared_norm`` K_ll − ‖Ψ_l‖².

    ``start`` (q + 2, k) are initial coefficients; ``factors`` are those of the enlarged Hessian, if known.
    """

    row: int
    column: np.ndarray
    squared_norm: float
    start: np.ndarray
    factors: Factors | ClassFactors | None


class ImportModel:
    """The import points ``chosen`` and β (q + 1, k), whose first row is the constants; ``ridge`` is the total ridge ρ.

    ``lower`` (q, q) is L. A model of given points starts from the L and β of an earlier model; ``psi`` (n, q) are its
    columns, if known.
    """

    def __init__(self, task: Task, ridge: float, chosen: Iterable[int] = (), lower=None, beta=None, psi=None):
        self.task, self.ridge, self.chosen = task, ridge, [int(row) for row in chosen]
        q = len(self.chosen)
        self.lower = np.zeros((0, 0)) if lower is None else lower
        self._columns = np.ones((len(task), q + 16))  # with room for more points
        if q and psi is None:
            psi = linalg.solve_triangular(self.lower, task.columns(self.chosen).T, lower=True).T
        if q:
            self._columns[:, 1 : q + 1] = psi
        self._factors: Factors | ClassFactors | None = None
        self._move_to(np.zeros((1, task.loss.n_columns)) if beta is None else beta)

    @property
    def psi(self) -> np.ndarray:
        """Ψ (n, q + 1), with a column of ones first."""
        return self._columns[:, : len(self.chosen) + 1]

    @property
    def coef(self) -> np.ndarray:
        """θ (q, k) = L⁻ᵀβ."""
        return (
            linalg.solve_triangular(self.lower, self.beta[1:], lower=True, trans="T") if self.chosen else self.beta[1:]
        )

    def _move_to(self, beta: np.ndarray) -> None:
        """Set β, and compute U, the probabilities and the objective there."""
        self.beta, self.U = beta, self.psi @ beta
        loss, self.P = self.task.evaluate(self.U)
        self.value = loss + 0.5 * self.ridge * float(np.vdot(beta[1:], beta[1:]))

    @property
    def _scale(self) -> float:
        """The objective, but at least the negligible loss, because separable rows have almost none."""
        return max(self.value, NEGLIGIBLE_LOSS * self.task.rows.total_weight)

    def set_ridge(self, ridge: float) -> None:
        """Set another ρ for the same points and coefficients."""
        self.ridge, self._factors = ridge, None
        self._move_to(self.beta)

    def gradient(self) -> np.ndarray:
        """∂J/∂β (q + 1, k)."""
        gradient = self.psi.T @ self.task.slope(self.P)
        gradient[1:] += self.ridge * self.beta[1:]
        return gradient

    @property
    def _is_by_class(self) -> bool:
        return has_many_classes(self.task.loss)

    def factors(self) -> Factors | ClassFactors:
        """Factors of the Hessian, recomputed only every few points, since one point hardly changes the curvature."""
        if self._factors is None or self._factors.age >= (MAX_AGE if self._is_by_class else MAX_FACTOR_AGE):
            return self.renew_factors()
        return self._factors

    def renew_factors(self) -> Factors | ClassFactors:
        """Factors with the curvature at the current coefficients; for many classes, one for each class."""
        self._factors = ClassFactors.of(self) if self._is_by_class else self.full_factors()
        return self._factors

    def full_factors(self) -> Factors:
        """Factors of the whole Hessian, however many classes there are."""
        curvatures = self.task.curvatures(self.P)
        return Factors(curvatures, [self.factor(C) for C in curvatures])

    def factor(self, C: np.ndarray) -> np.ndarray:
        """The factor for a curvature C (n, g, g)."""
        a, g, psi = self.psi.shape[1], C.shape[1], self.psi
        (H,) = self.task.total(lambda rows: [_weighted_squares(psi[rows], C[rows])], 24 * a)
        H = H.reshape(a * g, a * g)
        diagonal = np.einsum("ii->i", H)
        # the constants are not penalised: if a class is certain, only this rounding-level term determines them
        diagonal[g:] += self.ridge
        diagonal += a * g * _EPS * diagonal.max()
        return lower_factor(H)

    def _newton_step(self, gradient: np.ndarray, factors: Factors | ClassFactors) -> np.ndarray:
        """H⁻¹ applied to the gradient (q + 1, k)."""
        if isinstance(factors, ClassFactors):
            step, is_stale = newton_step(self, gradient, factors)
            self._factors = None if is_stale else factors
            return step
        out = np.empty_like(gradient)
        for group, lower in zip(self.task.groups, factors.lowers):
            part = gradient[:, group]
            out[:, group] = linalg.cho_solve((lower, True), part.ravel(), check_finite=False).reshape(part.shape)
        return out

    def converge(self) -> ImportModel:
        """Newton's method to convergence (2001 Eq. 5)."""
        self._descend_until(CONVERGED_BY_CLASS if self._is_by_class else CONVERGED)
        self._factors = None  # they belong to the starting point
        return self

    def settle(self) -> ImportModel:
        """The same, but for many classes only as far as the points of a path need it."""
        if not self._is_by_class:
            return self.converge()
        self._descend_until(NEARLY_CONVERGED_BY_CLASS)
        return self

    def _descend_until(self, share: float) -> None:
        """Take Newton steps until the predicted decrease is below a share of J; reuse a factor while they shrink
        fast."""
        promised = np.inf
        for _ in range(MAX_STEPS):
            gradient = self.gradient()
            step = self._newton_step(gradient, self.factors())
            if 0.5 * np.vdot(gradient, step) > SLOW * promised and not self._is_by_class:
                step = self._newton_step(gradient, self.renew_factors())
            if not np.abs(step).max() < STEP_LIMIT:  # every row is certain, so there is no curvature left
                break
            promised = 0.5 * float(np.vdot(gradient, step))
            if not self._descend(step) or promised <= share * self._scale:
                break

    def _descend(self, step: np.ndarray) -> bool:
        """Take the step, halved until the objective does not increase; returns whether to continue."""
        beta, value = self.beta, self.value
        for halving in range(MAX_HALVINGS):
            self._move_to(beta - step * 0.5**halving)
            if self.value <= value + ROUNDING * self._scale:
                if halving:
                    self._factors = None  # the curvature has changed too much
                return not halving or self.value < value
        self._move_to(beta)
        return False

    def add(self, new: Addition) -> None:
        """Add an import point and refit the coefficients of all points."""
        q = len(self.chosen)
        self.lower = bordered(self.lower, self.psi[new.row, 1:, None], np.array([[np.sqrt(new.squared_norm)]]))
        if q + 2 > self._columns.shape[1]:
            larger = np.empty((len(self.task), 2 * self._columns.shape[1]))
            larger[:, : q + 1] = self.psi
            self._columns = larger
        self._columns[:, q + 1] = new.column
        self.chosen.append(int(new.row))
        self._factors = new.factors
        before, beta = self.value, np.vstack([self.beta, np.zeros_like(self.beta[:1])])
        self._move_to(new.start)
        if not self.value < before:  # a single Newton step can overshoot
            self._move_to(beta)
        self._descend_until(NEARLY_CONVERGED_BY_CLASS if self._is_by_class else NEARLY_CONVERGED)


def weighted_products(left: np.ndarray, C: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Σ_i left_ij C_i,pr right_il as (a, g, m, g), for symmetric C (n, g, g): one product for every pair p ≥ r."""
    g = C.shape[1]
    out = np.empty((left.shape[1], g, right.shape[1], g))
    for p in range(g):
        for r in range(p + 1):
            out[:, p, :, r] = left.T @ (right * C[:, p, r, None])
            out[:, r, :, p] = out[:, p, :, r]
    return out


def _weighted_squares(psi: np.ndarray, C: np.ndarray) -> np.ndarray:
    """The same with Ψ on both sides; the diagonal of C is positive, and a symmetric product costs half as much."""
    a, g = psi.shape[1], C.shape[1]
    out = np.empty((a, g, a, g))
    for p in range(g):
        root = psi * np.sqrt(C[:, p, p, None])
        out[:, p, :, p] = root.T @ root
        for r in range(p):
            out[:, p, :, r] = out[:, r, :, p] = (psi * C[:, p, r, None]).T @ psi
    return out


def lower_factor(H: np.ndarray) -> np.ndarray:
    """The Cholesky factor of H, with jitter added to the diagonal if rounding requires it.

    If row weights differ by orders of magnitude, the curvature along the constants may consist of rounding errors.
    """
    return jittered_factor(H, 10.0 * _EPS * float(np.diagonal(H).max())) if len(H) else H


def bordered(lower: np.ndarray, side: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """The lower factor with rows [sideᵀ, corner] appended."""
    return np.block([[lower, np.zeros(side.shape)], [side.T, corner]])
