"""Import points and the coefficients that go with them.

J(S, θ, o) = Σ wᵢ loss(Uᵢ) + ρ/2 Σ_j θ_jᵀ K_SS θ_j  with  U = Φ_S θ + 1oᵀ                       (2001 Eq. 6 and 9)

The work is done in a basis that is orthonormal in the space of the kernel: with K_SS = LLᵀ, Ψ = Φ_S L⁻ᵀ and β = Lᵀθ
the penalty is ρ/2‖β‖², whatever the condition of K_SS. A new point adds one column to Ψ and changes no other.
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
from ...threads import TILE_BYTES, map_independent, row_slices
from ..losses import Multinomial, Tags

#: Newton's method has converged where its next step would lower J by less than this share; the second number is what
#: is enough while points are still being added.
CONVERGED, NEARLY_CONVERGED = 1e-14, 1e-8
#: A factor is used again as long as every step promises less than this share of what the one before promised.
SLOW = 0.1
#: After so many points the factor is made anew in any case.
MAX_FACTOR_AGE = 4
#: Objectives that differ by less than this share are level.
ROUNDING = 1e-13
#: A mean loss below this is as good as none.
NEGLIGIBLE_LOSS = 1e-6
MAX_STEPS, MAX_HALVINGS = 200, 40
#: A step that nothing bounds.
STEP_LIMIT = 1e100
#: Sums over rows are made in so many parts, each on a thread of its own where there are as many.
N_PARTIAL_SUMS = 8
_EPS, _TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Task:
    """Labelled rows, the loss of their scores, and the kernel: what import points are chosen for."""

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
        """k(x_i, x_l) of all rows i and the rows l of ``index``, (n, m)."""
        return self.kernel(self.rows.X, self.points(index), self.workers).astype(np.float64, copy=False)

    @cached_property
    def resolution(self) -> float:
        """The share of k(x, x) below which a difference of kernel values is rounding."""
        one = np.zeros(1, dtype=int)
        values = self.kernel(self.rows.X[one], self.points(one))
        return float(np.finfo(np.result_type(values.dtype, np.float32)).eps ** (2 / 3))

    @cached_property
    def constant_loss(self) -> float:
        """The loss of the best constants: what there is to gain on."""
        prior = np.clip(self.rows.prior, _EPS, 1.0 - _EPS)
        scores = np.log(prior) - (np.log1p(-prior) if isinstance(self.loss, Tags) else 0.0)
        return self.evaluate(np.broadcast_to(self.loss.columns(scores), (len(self), self.loss.n_columns)))[0]

    @property
    def groups(self) -> list[slice]:
        """Columns of U that the curvature ties together: all of them for classes, each by itself for tags."""
        k = self.loss.n_columns
        return [slice(j, j + 1) for j in range(k)] if isinstance(self.loss, Tags) else [slice(0, k)]

    def total(self, part: Callable[[slice], Sequence[np.ndarray]], row_bytes: int) -> list[np.ndarray]:
        """The sums over rows of the arrays that ``part(rows)`` returns for tiles of rows that fit the cache.

        The order of the sums does not depend on the number of threads.
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
        """∂²loss/∂U² (n, g, g) of one unit of weight, for every group of g columns."""
        if isinstance(self.loss, Tags):
            own = self.loss.curvature_product(P, np.ones_like(P))
            return [own[:, group, None] for group in self.groups]
        return [self.loss.curvature(P)]

    def curvatures(self, P) -> list[np.ndarray]:
        """The same with the weights of the rows."""
        return [self.rows.weight[:, None, None] * C for C in self.unit_curvatures(P)]


class Factors(NamedTuple):
    """Cholesky factors of ∂²J/∂β², one for every group of g columns; β_jp stands at place jg + p.

    ``curvatures`` (n, g, g) are the weights that they were made with, and ``age`` how many points were added since.
    """

    curvatures: list[np.ndarray]
    lowers: list[np.ndarray]
    age: int = 0


class Addition(NamedTuple):
    """A point that joins the model: its row, its column ψ (n,) of the basis and K_ll − ‖Ψ_l‖², the square of its norm.

    ``start`` (q + 2, k) are coefficients to start from; ``factors`` are those of the larger Hessian, if known.
    """

    row: int
    column: np.ndarray
    squared_norm: float
    start: np.ndarray
    factors: Factors | None


class ImportModel:
    """The import points ``chosen`` and β (q + 1, k), whose first row are the constants; ``ridge`` is ρ, for the sum.

    ``lower`` (q, q) is L. A model of given points starts from the L and the β of the model they come from; ``psi``
    (n, q) are its columns where they are known.
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
        self._factors: Factors | None = None
        self._move_to(np.zeros((1, task.loss.n_columns)) if beta is None else beta)

    @property
    def psi(self) -> np.ndarray:
        """Ψ (n, q + 1), a column of ones first."""
        return self._columns[:, : len(self.chosen) + 1]

    @property
    def coef(self) -> np.ndarray:
        """θ (q, k) = L⁻ᵀβ."""
        return (
            linalg.solve_triangular(self.lower, self.beta[1:], lower=True, trans="T") if self.chosen else self.beta[1:]
        )

    def _move_to(self, beta: np.ndarray) -> None:
        """Stand at β: U, the probabilities and the objective there."""
        self.beta, self.U = beta, self.psi @ beta
        loss, self.P = self.task.evaluate(self.U)
        self.value = loss + self._penalty(beta)

    @property
    def _scale(self) -> float:
        """The objective, or what counts as none where it is smaller still: rows that separate leave no loss."""
        return max(self.value, NEGLIGIBLE_LOSS * self.task.rows.total_weight)

    def _penalty(self, beta) -> float:
        return 0.5 * self.ridge * float(np.vdot(beta[1:], beta[1:]))

    def set_ridge(self, ridge: float) -> None:
        """Another ρ for the same points and coefficients."""
        self.ridge, self._factors = ridge, None
        self._move_to(self.beta)

    def gradient(self) -> np.ndarray:
        """∂J/∂β (q + 1, k)."""
        gradient = self.psi.T @ self.task.slope(self.P)
        gradient[1:] += self.ridge * self.beta[1:]
        return gradient

    def factors(self) -> Factors:
        """Factors of the Hessian, made anew after a few points: one more changes the curvature little."""
        if self._factors is None or self._factors.age >= MAX_FACTOR_AGE:
            return self.renew_factors()
        return self._factors

    def renew_factors(self) -> Factors:
        """Factors with the curvature of where the model stands."""
        curvatures = self.task.curvatures(self.P)
        self._factors = Factors(curvatures, [self.factor(C) for C in curvatures])
        return self._factors

    def factor(self, C: np.ndarray) -> np.ndarray:
        """The factor for a curvature C (n, g, g)."""
        a, g, psi = self.psi.shape[1], C.shape[1], self.psi
        (H,) = self.task.total(lambda rows: [_weighted_squares(psi[rows], C[rows])], 24 * a)
        H = H.reshape(a * g, a * g)
        diagonal = np.einsum("ii->i", H)
        # the constants are not penalised: where a class is certain, rounding is all that holds them
        diagonal[g:] += self.ridge
        diagonal += a * g * _EPS * diagonal.max()
        return lower_factor(H)

    def _newton_step(self, gradient: np.ndarray, factors: Factors) -> np.ndarray:
        """H⁻¹ times the gradient (q + 1, k)."""
        out = np.empty_like(gradient)
        for group, lower in zip(self.task.groups, factors.lowers):
            part = gradient[:, group]
            out[:, group] = linalg.cho_solve((lower, True), part.ravel(), check_finite=False).reshape(part.shape)
        return out

    def converge(self) -> ImportModel:
        """Newton's method to convergence (2001 Eq. 5)."""
        self._descend_until(CONVERGED)
        self._factors = None  # they belong to where it started
        return self

    def _descend_until(self, share: float) -> None:
        """Newton steps until the next promises less than a share of J; a factor serves while they shrink fast."""
        promised = np.inf
        for _ in range(MAX_STEPS):
            gradient = self.gradient()
            step = self._newton_step(gradient, self.factors())
            if 0.5 * np.vdot(gradient, step) > SLOW * promised:
                step = self._newton_step(gradient, self.renew_factors())
            if not np.abs(step).max() < STEP_LIMIT:  # every row is certain: no curvature is left that could end it
                break
            promised = 0.5 * float(np.vdot(gradient, step))
            if not self._descend(step) or promised <= share * self._scale:
                break

    def _descend(self, step: np.ndarray) -> bool:
        """The step, halved until the objective does not rise; whether it fell, or did not need a shorter step."""
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
        """One more import point, and the coefficients that are best for all of them."""
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
        if not self.value < before:  # a single Newton step may overshoot
            self._move_to(beta)
        self._descend_until(NEARLY_CONVERGED)


def weighted_products(left: np.ndarray, C: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Σ_i left_ij C_i,pr right_il as (a, g, m, g), for symmetric C (n, g, g): a product for every pair p ≥ r."""
    g = C.shape[1]
    out = np.empty((left.shape[1], g, right.shape[1], g))
    for p in range(g):
        for r in range(p + 1):
            out[:, p, :, r] = left.T @ (right * C[:, p, r, None])
            out[:, r, :, p] = out[:, p, :, r]
    return out


def _weighted_squares(psi: np.ndarray, C: np.ndarray) -> np.ndarray:
    """The same with Ψ on both sides; the diagonal of C is positive, and a square costs half of a product."""
    a, g = psi.shape[1], C.shape[1]
    out = np.empty((a, g, a, g))
    for p in range(g):
        root = psi * np.sqrt(C[:, p, p, None])
        out[:, p, :, p] = root.T @ root
        for r in range(p):
            out[:, p, :, r] = out[:, r, :, p] = (psi * C[:, p, r, None]).T @ psi
    return out


def lower_factor(H: np.ndarray) -> np.ndarray:
    """The Cholesky factor of H, with as much added to its diagonal as rounding makes necessary.

    Where rows have weights of many sizes, the curvature along the constants may be all rounding.
    """
    if not len(H):
        return H
    level = _EPS * float(np.diagonal(H).max())
    while True:
        lower, info = linalg.lapack.dpotrf(H, lower=1, clean=1)
        if info == 0:
            return lower
        level = 10.0 * max(level, _TINY)
        if not np.isfinite(level):
            raise np.linalg.LinAlgError("The Hessian of the import points has values that are no numbers.")
        H = H + level * np.eye(len(H))


def bordered(lower: np.ndarray, side: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """The lower factor with rows [sideᵀ, corner] below."""
    q, m = len(lower), len(corner)
    out = np.zeros((q + m, q + m))
    out[:q, :q], out[q:, :q], out[q:, q:] = lower, side.T, corner
    return out
