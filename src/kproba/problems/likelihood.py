"""Kernel logistic regression for many ridges in one basis, with approximate leave-one-out scores.

The objective is Σ wᵢ·loss(Uᵢ) + ρ/2·tr(XᵀKX) with U = ΦX, ρ = nλ, and K the kernel matrix of the centres (2001 Eqs 4
and 9) or the identity (2010). The last column of Φ is constant 1; its coefficients, the intercept, are not penalised.
Without an intercept there is no such column. X has the columns that the loss works on (see :mod:`.losses`); if classes
have their own centres, X is zero elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from ..arrays import Device, dot, is_tensor
from ..basis.basis import Basis
from ..basis.moments import Moments
from ..data.folds import stratified_folds
from ..data.rows import Rows
from ..exceptions import ConvergenceWarning
from ..links import positive_prior
from ..messages import warn
from ..solvers.cholesky import CholeskyFactor, factor
from ..solvers.newton import Optimum, newton, search_ray
from ..solvers.registry import LIKELIHOOD
from ..threads import row_slices
from .base import CpuProblem, Solution, with_scores
from .leave_one_out import leave_one_out
from .losses import Multinomial, Tags
from .own_centers import drop_held_out_centers

#: Features up to this size are kept; larger ones are recomputed in every pass.
KEEP_BYTES = 1 << 30
#: Size of a block of features used twice while in the cache, and of a block in one triangular solve.
BLOCK_BYTES, SOLVE_BYTES = 2 << 20, 8 << 20
#: With more entries than this, the features used to compute a step direction are kept in float32.
LOW_PRECISION = 1 << 20
#: A preconditioner uses at most about this many rows per centre.
ROWS_PER_CENTER = 2
#: A factor is reused at ridges that differ from its own by at most this factor.
SIMILAR_RIDGE = 30.0
#: Maximum operations for leave-one-out; beyond, folds are used instead.
LOO_FLOPS = 4e10
#: Number of folds.
FOLDS = 5


class Point(NamedTuple):
    """Coefficients X (b + 1, k), columns U (n, k), probabilities, the penalty gradient ρKX, and the objective."""

    X: np.ndarray
    U: np.ndarray
    P: np.ndarray
    penalty_gradient: np.ndarray
    value: float


class Design:
    """Φ (n, b + 1) of the rows, with a last column of ones; kept if it fits, otherwise recomputed in every pass.

    Without an intercept it has only the b columns of the centres.
    """

    def __init__(self, rows: Rows, basis: Basis, intercept: bool = True):
        self.rows, self.basis, self.intercept = rows, basis, intercept
        self.n_columns = basis.n_centers + intercept
        self._kept = self._all() if 8 * len(rows) * self.n_columns <= KEEP_BYTES else None

    def gram_of_centers(self) -> np.ndarray:
        """K of the centres."""
        return self.basis.gram()

    def moved(self, objective: Objective) -> Any:
        """The objective where Newton's method minimises it."""
        return objective

    @property
    def basis_for_scores(self) -> Basis:
        """The basis that computes the scores of other rows."""
        return self.basis

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows in blocks, with their features."""
        if self._kept is not None:
            for where in row_slices(len(self._kept), 8 * self.n_columns, BLOCK_BYTES):
                yield where, self._kept[where]
        else:
            for batch in self.basis.batches(self.rows):
                yield batch.where, self.of(batch.X)

    def of(self, X) -> np.ndarray:
        features = self.basis(X)
        return np.hstack([features, np.ones((len(features), int(self.intercept)), features.dtype)])

    def columns(self, X: np.ndarray) -> np.ndarray:
        """U = ΦX (n, k)."""
        if self._kept is not None:
            return self._kept @ X
        coef, intercept = split_intercept(X, self.basis)
        return self.basis.scores(self.rows.X, coef) + intercept

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        """ΦᵀR (b + 1, k)."""
        if self._kept is not None:
            return self._kept.T @ R
        return sum(phi.T @ R[where] for where, phi in self.blocks())

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """The lower triangle of Σ wφφᵀ."""
        total, used = Moments.zeros(self.n_columns, 0), np.flatnonzero(weight)
        for some in row_slices(len(used), 8 * self.n_columns):
            phi = self.some(used[some])
            total.add(phi, np.empty((len(phi), 0)), weight[used[some]])
        return total.H

    def solved(self, factor: CholeskyFactor) -> Any:
        """ψ = L⁻¹φ of every row if Φ is kept; in float32 if that saves time."""
        if self._kept is None:
            return None
        psi = np.empty(self._kept.shape, dtype=np.float32 if self._kept.size > LOW_PRECISION else np.float64)
        for where in row_slices(len(psi), 8 * self.n_columns, SOLVE_BYTES):
            half = np.array(self._kept[where].T, order="F")
            psi[where] = linalg.blas.dtrsm(1.0, factor.lower, half, lower=1, overwrite_b=1).T
        return psi

    def some(self, rows) -> np.ndarray:
        """The features of some rows."""
        return self.of(self.rows.X[rows]) if self._kept is None else self._kept[rows]

    def coefficients(self, X: np.ndarray) -> np.ndarray:
        """The coefficients of the centres and the intercept (b + 1, k), given those of the columns."""
        return X

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        """The coefficients of the columns, given those of the centres and the intercept."""
        return X

    def _all(self) -> np.ndarray:
        features = np.empty((len(self.rows), self.n_columns))
        features[:, self.basis.n_centers :] = 1.0
        centers = _in_double(self.basis.centers)
        basis = self.basis if centers is self.basis.centers else replace(self.basis, centers=centers)
        for batch in self.basis.batches(self.rows):
            features[batch.where, : self.basis.n_centers] = basis(_in_double(batch.X))
        return features


class RowSpace(Design):
    """Φ of fewer rows than centres, in coordinates of its row space.

    With Φᵀ = QR, the minimum under the penalty tr(XᵀX) is at some X = QZ. There, ΦX = RᵀZ and tr(XᵀX) = tr(ZᵀZ), so the
    problem keeps its form with as many columns as rows.
    """

    def __init__(self, rows: Rows, basis: Basis, intercept: bool = True):
        super().__init__(rows, basis, intercept)
        assert self._kept is not None
        b = basis.n_centers
        self._axes, upper = linalg.qr(self._kept[:, :b].T, mode="economic", check_finite=False)
        self._kept = np.hstack([upper.T, self._kept[:, b:]])
        self.n_columns = self._kept.shape[1]

    @staticmethod
    def serves(rows: Rows, basis: Basis) -> bool:
        """Whether it saves more than the decomposition costs, and Φ fits into memory."""
        n, b = len(rows), basis.n_centers
        return 4 * n <= 3 * b and 8 * n * (b + 1) <= KEEP_BYTES

    def coefficients(self, X: np.ndarray) -> np.ndarray:
        n = self._axes.shape[1]
        return np.vstack([self._axes @ X[:n], X[n:]])

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        b = self._axes.shape[0]
        return np.vstack([self._axes.T @ X[:b], X[b:]])


def split_intercept(X: np.ndarray, basis: Basis) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients (b, k) of the centres, and the intercept (k,), which is zero for models without one."""
    b = basis.n_centers
    return X[:b], X[b:].sum(axis=0)


@dataclass(frozen=True)
class Preconditioner:
    """Least-squares factors LLᵀ = Σ wφφᵀ + ρK: one shared by all columns, or one per column for its own centres.

    In the coordinates Z = LᵀX the Hessian is I + Σ(W − w)⊗ψψᵀ with ψ = L⁻¹φ, near the identity as long as the weights
    are near the curvature. If ``psi`` (n, b + 1) is kept, a product needs neither K nor a solve. At another ridge ρ'
    the penalty is ρ'L⁻¹KL⁻ᵀ = ρ'/ρ·(I − Σwψψᵀ), so the same ψ serves for all of them.
    """

    factors: list[CholeskyFactor]
    own: list[np.ndarray] | None
    weight: np.ndarray
    design: Design
    rho: float

    @cached_property
    def psi(self) -> Any:
        return self.design.solved(self.factors[0]) if self.own is None else None

    def serves(self, rho: float) -> bool:
        """Whether the factor is good enough for another ridge."""
        return rho > 0.0 and rho / SIMILAR_RIDGE <= self.rho <= rho * SIMILAR_RIDGE

    def solve(self, G: np.ndarray) -> np.ndarray:
        return self._apply(lambda f, g: f.solve(g), G)

    def unwhiten(self, Z: np.ndarray) -> np.ndarray:
        """L⁻ᵀZ, from whitened coordinates to coefficients."""
        return self._apply(lambda f, z: linalg.solve_triangular(f.lower, z, lower=True, trans="T"), Z)

    def whiten(self, G: np.ndarray) -> np.ndarray:
        """L⁻¹G, the gradient in whitened coordinates."""
        return self._apply(lambda f, g: linalg.solve_triangular(f.lower, g, lower=True), G)

    def _apply(self, solve, G):
        if self.own is None:
            return solve(self.factors[0], G)
        out = np.zeros_like(G)
        for column, (own, each) in enumerate(zip(self.own, self.factors)):
            out[own, column] = solve(each, G[own, column])
        return out


@dataclass(frozen=True)
class Objective:
    """The penalised likelihood at one ρ, which the solvers minimise."""

    design: Design
    loss: Multinomial | Tags
    gram: np.ndarray
    rho: float
    own: list[np.ndarray] | None = None
    seed: int = 0

    @property
    def n_rows(self) -> int:
        return len(self.design.rows)

    def take_in(self, X: np.ndarray) -> Any:
        """Coefficients where the objective computes, which for this one is here."""
        return X

    def hand_out(self, point: Point) -> Point:
        """A point in NumPy."""
        return point

    def zero(self) -> Point:
        return self.at(np.zeros((self.design.n_columns, self.loss.n_columns)))

    def at(self, X: np.ndarray) -> Point:
        rows, U = self.design.rows, self.design.columns(X)
        loss, P = self.loss.evaluate(U, rows.labels, rows.weight)
        pull = self._penalty_gradient(X)
        return Point(X, U, P, pull, loss + 0.5 * float(np.vdot(X, pull)))

    def is_exhausted(self, point: Point, tol: float) -> bool:
        """Whether an unpenalised likelihood has less than ``tol`` per row left to gain, since it is never negative.

        If classes are separable, it has no minimum but tends to zero.
        """
        return self.rho == 0.0 and point.value <= tol * self.design.rows.total_weight

    def gradient(self, point: Point) -> np.ndarray:
        rows = self.design.rows
        residual = self.loss.residual(point.P, rows.labels) * rows.weight[:, None]
        return self.masked(self.design.adjoint(residual) + point.penalty_gradient)

    def with_penalty(self, X: np.ndarray, loss: float, slope: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its gradient, given the loss of the rows and its derivative with respect to X."""
        pull = self._penalty_gradient(X)
        return loss + 0.5 * float(np.vdot(X, pull)), self.masked(slope + pull)

    def gradient_of_rows(self, X: np.ndarray, index: np.ndarray) -> np.ndarray:
        """An unbiased estimate of the gradient from randomly drawn rows."""
        rows, phi, share = self.design.rows, self.design.some(index), len(index) / self.n_rows
        _, P = self.loss.evaluate(phi @ X, rows.labels[index], rows.weight[index])
        residual = self.loss.residual(P, rows.labels[index]) * rows.weight[index, None]
        return self.masked(phi.T @ residual / share + self._penalty_gradient(X))

    def hessian_product(self, point: Point, V: np.ndarray) -> np.ndarray:
        """The Hessian at the point applied to V, in one pass."""
        product, weight = self._penalty_gradient(V), self.design.rows.weight[:, None]
        for where, phi in self.design.blocks():
            product += phi.T @ (self.loss.curvature_product(point.P[where], phi @ V) * weight[where])
        return self.masked(product)

    def whitened_product(self, point: Point, factor: Preconditioner, V: np.ndarray) -> np.ndarray:
        """L⁻¹(Hessian)L⁻ᵀ applied to V, in the precision of ψ, which is enough for the direction of a step."""
        if factor.psi is None:
            return factor.whiten(self.hessian_product(point, factor.unwhiten(V)))
        other = self.rho / factor.rho if self.rho != factor.rho else 1.0  # the ridge, in units of the factor's
        if is_tensor(factor.psi):
            return other * V + self._product_on_device(point, factor, V, other)
        product, low = other * V, V.astype(factor.psi.dtype)
        weight, taken = self.design.rows.weight[:, None], other * factor.weight[:, None]
        for where in row_slices(len(factor.psi), factor.psi.itemsize * self.design.n_columns, BLOCK_BYTES):
            psi = factor.psi[where]
            U = psi @ low
            weighted = self.loss.curvature_product(point.P[where], U) * weight[where] - taken[where] * U
            product += psi.T @ weighted.astype(psi.dtype, copy=False)
        return product

    def _product_on_device(self, point: Point, factor: Preconditioner, V: np.ndarray, other: float) -> np.ndarray:
        psi = factor.psi
        device = Device.of(psi)

        def put(part: np.ndarray):
            return device.xp.astype(device.put(part), psi.dtype)

        U = device.product(psi, put(V))
        kept: Any = self.__dict__.get("_moved")
        if kept is None or kept[0] is not point:  # all products of a step share the probabilities
            parts = point.P, self.design.rows.weight[:, None], factor.weight[:, None]
            kept = self.__dict__["_moved"] = (point, *map(put, parts))
        _, P, weight, taken = kept
        weighted = self.loss.curvature_product(P, U) * weight - (other * taken) * U
        return device.get(device.product(psi.mT, weighted)).astype(np.float64)

    def preconditioner(self, point: Point, weight: np.ndarray | None = None) -> Preconditioner:
        """Least-squares factors, weighted by the mean curvature of a subset of rows or by the given weights."""
        if weight is None:
            weight = np.maximum(self.loss.mean_curvature(point.P), 1e-8) * self.design.rows.weight * self._thinned
        H = self.design.gram(weight)
        if self.own is not None:
            blocks = [np.ix_(own, own) for own in self.own]
            factors = [factor(H[block], self.gram[block], self.rho) for block in blocks]
            return Preconditioner(factors, self.own, weight, self.design, self.rho)
        return Preconditioner([factor(H, self.gram, self.rho)], None, weight, self.design, self.rho)

    def newton_factor(self, point: Point) -> Preconditioner:
        """The factor with the curvature of every row; for a single column it is that of the Hessian (2001 Eq. 5)."""
        return self.preconditioner(point, self.loss.mean_curvature(point.P) * self.design.rows.weight)

    @cached_property
    def _thinned(self) -> np.ndarray:
        """Weight factors that keep every m-th row, since a few rows per centre are enough for a preconditioner."""
        every = max(1, self.n_rows // (ROWS_PER_CENTER * self.design.n_columns))
        return np.where(np.arange(self.n_rows) % every == 0, float(every), 0.0)

    def ray(self, point: Point, direction: np.ndarray):
        """A function of t: the point X + tD with the slope and the curvature of the objective there."""
        rows, along, pull = self.design.rows, self.design.columns(direction), self._penalty_gradient(direction)
        cross, square = float(np.vdot(direction, point.penalty_gradient)), float(np.vdot(direction, pull))
        base = 0.5 * float(np.vdot(point.X, point.penalty_gradient))

        def at(t: float):
            U = point.U + t * along
            loss, P = self.loss.evaluate(U, rows.labels, rows.weight)
            value = loss + base + t * cross + 0.5 * t * t * square
            slope = float(rows.weight @ np.einsum("ij,ij->i", self.loss.residual(P, rows.labels), along))
            curvature = float(rows.weight @ np.einsum("ij,ij->i", self.loss.curvature_product(P, along), along))
            moved = Point(point.X + t * direction, U, P, point.penalty_gradient + t * pull, value)
            return moved, slope + cross + t * square, curvature + square

        return at

    def _penalty_gradient(self, X: np.ndarray) -> np.ndarray:
        return self.rho * (self.gram @ X)

    def masked(self, G: np.ndarray) -> np.ndarray:
        """Zero where there is no coefficient, if classes have their own centres."""
        return G if self.own is None else G * self._free

    @cached_property
    def _free(self) -> np.ndarray:
        """A mask of the coefficients (b + 1, k) that exist."""
        free = np.full((self.design.n_columns, self.loss.n_columns), self.own is None)
        for column, own in enumerate(self.own or ()):
            free[own, column] = True
        return free


@dataclass(frozen=True)
class Likelihood(CpuProblem):
    """Rows and basis of a kernel logistic regression; everything but the ridge.

    The penalty is that of the functions, tr(XᵀKX), or with ``rkhs=False`` that of the coefficients, tr(XᵀX). With
    ``base``, scores are log-odds against the last class (2001 Eqs 7–9). A problem that ``is_warm`` remembers its last
    solution for other ridges. With ``row_space``, much fewer rows than centres are solved in their row space.
    ``elsewhere(rows, basis, intercept)`` returns a design on a device, or None if the CPU is better.
    """

    rows: Rows
    basis: Basis
    solver: str | Callable[..., Optimum] = "newton"
    tol: float = 1e-4
    max_iter: int = 100
    seed: int = 0
    intercept: bool = True
    rkhs: bool = True
    base: bool = False
    is_warm: bool = False
    row_space: bool = False
    elsewhere: Callable[[Rows, Basis, bool], Design | None] | None = None

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None, start=None) -> Iterator[Solution]:
        """The solution for every ridge λ, in the order given, each warm-started from the one before."""
        self._parts.clear()  # their matrices are large
        point = start
        for ridge in ridges:
            objective = self.objective(ridge)
            found = self.resume(objective, point)
            point = found.point
            if ridge == 0.0 and self.loss.is_separated(point.P, self.rows.labels):
                warn_separable()
            elif not found.converged:
                warn_not_converged(f"max_iter={self.max_iter} steps of solver={self.solver!r}", ridge)
            held_out = self._held_out(objective, point, loo_rows) if loo else None
            X = self._design.coefficients(self.loss.scores(point.X))
            coef, intercept = split_intercept(X, self.basis)
            yield Solution(ridge, held_out, partial(np.copy, coef), intercept, found.n_iter)

    @property
    def has_cheap_loo(self) -> bool:
        """Whether leave-one-out costs about as much as a fit: always for two classes and for tags.

        It does not if centres belong to classes: then a row's own centre is removed with it, which requires refits.
        """
        if self.basis.owner is not None:
            return False
        n, b, c = float(len(self.rows)), self.basis.n_centers, self.rows.n_classes
        return self.rows.is_multilabel or c == 2 or c * (2 * n * b * b + 3 * n * n * b + n**3) <= LOO_FLOPS

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float], start=None) -> Iterator[Solution]:
        """Solutions without the rows ``inside``, and the scores of these rows."""
        rest = self._without(inside)
        if not rest.basis.n_centers:
            yield from (Solution(ridge, rest._constant_scores(len(inside)), lambda: None) for ridge in ridges)
            return
        start = start if rest.basis is self.basis else None
        start = start and start._replace(X=rest._design.coordinates(start.X))
        yield from with_scores(
            rest.path(ridges, loo=False, start=start), rest._design.basis_for_scores, self.rows.X[inside]
        )

    def _without(self, inside: np.ndarray) -> Likelihood:
        """The problem without the rows ``inside``, kept for other ridges."""
        if self._parts and np.array_equal(self._parts[0][0], inside):
            return self._parts[0][1]
        rest = replace(self, rows=self.rows.without(inside), is_warm=True, row_space=True)
        if self.basis.owner is not None:  # the centres of held-out rows are removed too
            rest = replace(rest, basis=drop_held_out_centers(rest.rows, self.basis))
        self._parts[:] = [(inside, rest)]
        return rest

    @property
    def solved_part(self) -> Likelihood:
        """The problem without the rows that were held out last, which has been solved; else the problem itself."""
        same = (rest for _, rest in self._parts if rest.basis is self.basis and not rest._is_in_row_space)
        return next(same, self)

    @cached_property
    def _parts(self) -> list[tuple[np.ndarray, Likelihood]]:
        """The rows that were held out last, and the problem without them."""
        return []

    @cached_property
    def _latest(self) -> list[Optimum]:
        """The solution at the last ridge, if the problem is warm."""
        return []

    def _constant_scores(self, n: int) -> np.ndarray:
        """Scores of n rows by the frequencies of the classes or tags alone: the model without centres."""
        prior = positive_prior(self.rows)
        scores = np.log(prior / (1.0 - prior) if self.rows.is_multilabel else prior)
        return np.tile(scores if self.intercept else np.zeros_like(scores), (n, 1))

    @cached_property
    def loss(self) -> Multinomial | Tags:
        if self.rows.is_multilabel:
            return Tags(self.rows.n_classes, self.base)
        return Multinomial(self.rows.n_classes, self.basis.owner is None, self.base)

    @cached_property
    def _design(self) -> Design:
        if self._is_in_row_space:
            return RowSpace(self.rows, self.basis, self.intercept)
        there = None if self.elsewhere is None else self.elsewhere(self.rows, self.basis, self.intercept)
        return Design(self.rows, self.basis, self.intercept) if there is None else there

    @property
    def _is_in_row_space(self) -> bool:
        # gradient methods depend on the coordinates, Newton's method does not
        is_free = self.row_space and not self.rkhs and self.basis.owner is None and self.solver in ("auto", "newton")
        return is_free and RowSpace.serves(self.rows, self.basis)

    @cached_property
    def _gram(self) -> np.ndarray:
        """K of the centres or the identity, bordered by zeros for the intercept."""
        b = self._design.n_columns - self.intercept
        gram = np.zeros((b + self.intercept, b + self.intercept))
        gram[:b, :b] = self._design.gram_of_centers() if self.rkhs else np.eye(b)
        return gram

    def _held_out(self, objective: Objective, point: Point, rows) -> np.ndarray:
        """Scores of all rows, or of some, by models without them."""
        if self.has_cheap_loo:
            return leave_one_out(objective, point, np.arange(len(self.rows)) if rows is None else rows)
        ridge, out = objective.rho / self.rows.total_weight, np.empty((len(self.rows), self.rows.n_classes))
        fold = stratified_folds(self.rows, FOLDS, self.seed)
        for inside in (np.flatnonzero(fold == number) for number in range(FOLDS)):
            (found,) = self.hold_out(inside, [ridge], start=point)
            out[inside] = found.held_out
        return out if rows is None else out[rows]

    def objective(self, ridge: float) -> Objective:
        """The objective at one ridge λ."""
        owner, k, own = self.basis.owner, self.loss.n_columns, None
        if owner is not None:
            constant = range(len(owner), len(owner) + self.intercept)
            own = [np.append(np.flatnonzero(owner == y), constant).astype(int) for y in range(k)]
        return Objective(self._design, self.loss, self._gram, self.rows.total_weight * ridge, own, self.seed)

    def resume(self, objective: Objective, start: Point | None = None) -> Optimum:
        """Minimise the objective; a warm problem starts from its solution at the last ridge, and keeps its factor."""
        latest = next(iter(self._latest), Optimum(start, False, 0))
        found = self.solve(objective, latest.point if start is None else start, latest.factor)
        if self.is_warm:
            self._latest[:] = [found]
        return found

    def solve(self, objective: Objective, start: Point | None = None, factor: Preconditioner | None = None) -> Optimum:
        """Minimise the objective, from the least-squares solution if no start is given and the solver needs one.

        Newton's method reuses the factor of a similar ridge.
        """
        minimise = LIKELIHOOD[self.solver] if isinstance(self.solver, str) else self.solver
        where: Any = objective.design.moved(objective) if minimise is newton else objective
        if start is None:
            start = self._least_squares(where) if getattr(minimise, "needs_start", True) else where.zero()
        else:
            start = where.at(where.take_in(start.X))
        if minimise is newton and factor is not None and factor.serves(objective.rho):
            found = newton(where, start, self.tol, self.max_iter, factor)
        else:
            found = minimise(where, start, self.tol, self.max_iter)
        return found._replace(point=where.hand_out(found.point))

    def _least_squares(self, objective: Any) -> Point:
        """The initial point of the solvers: a line search along LSPC's direction.

        At zero all rows have the same curvature, and a Newton step is a least-squares fit of the centred targets.
        """
        zero = objective.zero()
        gradient = objective.gradient(zero)
        direction = -objective.preconditioner(zero).solve(gradient)
        return search_ray(objective, zero, direction, -dot(gradient, direction))


def _in_double(X):
    """Rows or centres in float64. If features were rounded differently from K, the model would fit the difference,
    which K does not penalise, and leave-one-out would not notice."""
    return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X


def warn_separable() -> None:
    warn(
        "The classes are separable in this basis, so the likelihood without a penalty (ridge=0) has no maximum: the "
        "coefficients would grow without bound, and were stopped on the way. Use a positive ridge or fewer centers.",
        ConvergenceWarning,
    )


def warn_not_converged(steps: str, ridge: float) -> None:
    warn(
        f"Kernel logistic regression did not converge in {steps} at ridge={ridge:.3g}; increase max_iter, tol or "
        "the ridge, or use solver='newton'.",
        ConvergenceWarning,
    )
