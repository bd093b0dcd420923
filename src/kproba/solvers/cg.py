"""(K + ρΩ⁻¹)θ = t̄ by conjugate gradients with a Nyström preconditioner: :mod:`.dual` without a factor of K.

Symmetrically (M + ρI)α = Ω^½t̄ with M = Ω^½KΩ^½ and θ = Ω^½α. K is met only through ``product(V)`` = KV, so it may be
stored, computed tile by tile, or live on a device; a product with all right-hand sides costs one pass over it. The
preconditioner knows the m leading directions of M, as in Falkon (Rudi et al., 2017), in the form of Frangella, Tropp
and Udell (2023): what they leave is a system of condition number near λ_m/ρ.

Leverages come from random signs z, solved for beside the targets: with B = (M + ρI)⁻¹ the mean of z∘Bz is the
diagonal of B, and the hat matrix has the diagonal 1 − ρB_ii. Two matrices near B whose diagonals are known take most of
the noise away: the preconditioner, near B where M is smooth, and rows of B from nearest neighbours, near B where the
kernel is narrow. The neighbours' own diagonal has no noise, but an error of the same sign in every row, which
leave-one-out scores pass on to the log-loss; errors that average to zero do far less harm.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from ..exceptions import ConvergenceWarning
from ..progress import Progress
from ..threads import one_blas_thread, row_slices
from .cholesky import rounding_level

Product = Callable[[np.ndarray], np.ndarray]

#: Neighbourhoods whose systems are solved in one call.
LOCAL_BATCH = 256


class CGSolution(NamedTuple):
    """θ (n, k); how many iterations, of one product each; ‖Ω^½t̄ − (M + ρI)α‖/‖Ω^½t̄‖ (k,); whether all met ``tol``."""

    coef: np.ndarray
    n_iter: int
    residual: np.ndarray
    converged: bool


@dataclass(frozen=True)
class Nystrom:
    """M ≈ U diag(λ) Uᵀ from some sampled rows, λ falling; Ω^½ (n,) is kept as ``root``. No ridge enters."""

    vectors: np.ndarray
    values: np.ndarray
    root: np.ndarray

    @classmethod
    def of(cls, cross: np.ndarray, sample: np.ndarray, weight: np.ndarray | None = None) -> Nystrom:
        """From K_nm (n, m), float64, whose columns are the rows ``sample``. ``cross`` is overwritten.

        With K_mm = LLᵀ and A = Ω^½K_nm L⁻ᵀ the approximation is AAᵀ, and the eigenvectors V of AᵀA give U = AVλ^-½.
        """
        root = np.ones(len(cross)) if weight is None else np.sqrt(weight)
        lower = jittered_factor(cross[sample])
        cross *= root[:, None]
        _in_place(cross, lambda rows: linalg.solve_triangular(lower, rows.T, lower=True, check_finite=False).T)
        values, rotation = linalg.eigh(cross.T @ cross, driver="evd", overwrite_a=True, check_finite=False)
        values, rotation = values[::-1], rotation[:, ::-1]
        kept = values > rounding_level(values)  # vectors of smaller ones are rounding errors, not orthogonal
        rotation = rotation[:, kept] / np.sqrt(values[kept])
        _in_place(cross, lambda rows: rows @ rotation)
        return cls(cross[:, : rotation.shape[1]], values[kept].copy(), root)

    def precondition(self, residual: np.ndarray, ridge: float) -> np.ndarray:
        """(λ_m + ρ) U(Λ + ρ)⁻¹Uᵀr + (I − UUᵀ)r, as r − U diag((λ − λ_m)/(λ + ρ)) Uᵀr: positive definite."""
        share = (self.values - self.values[-1]) / (self.values + ridge)
        return residual - self.vectors @ (share[:, None] * (self.vectors.T @ residual))

    def precondition_diagonal(self, ridge: float) -> np.ndarray:
        """The diagonal (n,) of what :meth:`precondition` multiplies by."""
        return 1.0 - np.square(self.vectors) @ ((self.values - self.values[-1]) / (self.values + ridge))


def jittered_factor(K: np.ndarray) -> np.ndarray:
    """The lower Cholesky factor of K plus as little of the identity as lets it exist."""
    jitter = rounding_level(np.diagonal(K))
    while True:
        lower, info = linalg.lapack.dpotrf(K + jitter * np.eye(len(K)), lower=1, overwrite_a=1)
        if info == 0:
            return lower
        jitter *= 10.0


def _in_place(matrix: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> None:
    """Put ``function`` of some rows at a time, which may be narrower, in place of them: no second (n, m) matrix."""
    for rows in row_slices(len(matrix), matrix.shape[1] * matrix.itemsize):
        new = function(matrix[rows])
        matrix[rows, : new.shape[1]] = new


def solve(
    product: Product,
    preconditioner: Nystrom,
    rhs: np.ndarray,
    ridge: float,
    tol: float | np.ndarray = 1e-4,
    max_iter: int = 500,
    start: np.ndarray | None = None,
    progress: Progress | None = None,
) -> CGSolution:
    """θ of (K + ρΩ⁻¹)θ = t̄ for all columns of ``rhs`` t̄ (n, k), from ``start`` (n, k) where given.

    ``tol`` bounds the relative residual, of all columns or of each. Columns share every product and leave it when they
    have met it. Rounding errors, above all those of a float32 product, part the residual that the recurrence carries
    from the true one; so the true one is computed where the recurrence ends, and the columns that do not meet the
    tolerance start again from there.
    """
    root = preconditioner.root[:, None]
    run = _Run(product, preconditioner, ridge, max_iter, progress)
    target, tol = root * rhs, np.broadcast_to(tol, rhs.shape[1])
    size = np.maximum(np.linalg.norm(target, axis=0), np.finfo(np.float64).tiny)
    alpha = np.zeros_like(target) if start is None else start / root
    residual = target.copy() if start is None else target - run.times(alpha)
    left = np.linalg.norm(residual, axis=0) / size
    missing = np.flatnonzero(left > tol)
    while len(missing) and run.n_iter < max_iter:
        before = left[missing]
        alpha[:, missing] += run.correction(residual[:, missing], (tol * size)[missing])
        residual[:, missing] = target[:, missing] - run.times(alpha[:, missing])
        left[missing] = np.linalg.norm(residual[:, missing], axis=0) / size[missing]
        # a column that gains little in a whole round is where the product's precision ends
        missing = missing[(left[missing] > tol[missing]) & (left[missing] < 0.1 * before)]
    converged = bool((left <= tol).all())
    if not converged:
        _warn(left, tol, run.n_iter)
    return CGSolution(root * alpha, run.n_iter, left, converged)


@dataclass
class _Run:
    """The system at one ridge, and the count of products that iterations have taken."""

    product: Product
    preconditioner: Nystrom
    ridge: float
    max_iter: int
    progress: Progress | None
    n_iter: int = 0

    def times(self, V: np.ndarray) -> np.ndarray:
        """(M + ρI)V."""
        root = self.preconditioner.root[:, None]
        return root * self.product(root * V) + self.ridge * V

    def correction(self, residual: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """(M + ρI)⁻¹ of the residual's columns, until the norm of what is left is below ``goal`` (k,)."""
        found, active = np.zeros_like(residual), np.arange(residual.shape[1])
        residual = residual.copy()
        along = preconditioned = self.preconditioner.precondition(residual, self.ridge)
        fall = _dots(residual, preconditioned)
        while len(active) and self.n_iter < self.max_iter:
            image = self.times(along)
            bend = _dots(along, image)
            flat = ~(bend > 0.0)  # all that is left of the residual is rounding errors
            step = np.where(flat, 0.0, fall / np.where(flat, 1.0, bend))
            found[:, active] += step * along
            residual -= step * image
            self._count(left := np.linalg.norm(residual, axis=0) / goal[active])
            if (done := flat | (left <= 1.0)).any():
                active, residual, along, fall = active[~done], residual[:, ~done], along[:, ~done], fall[~done]
            preconditioned = self.preconditioner.precondition(residual, self.ridge)
            fall, before = _dots(residual, preconditioned), fall
            along = preconditioned + (fall / before) * along
        return found

    def _count(self, left: np.ndarray) -> None:
        self.n_iter += 1
        if self.progress is not None:
            self.progress.step(f"{left.max():.1e} times the tolerance")


def _dots(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Inner products of columns."""
    return np.einsum("ij,ij->j", A, B)


def _warn(left: np.ndarray, tol: np.ndarray, n_iter: int) -> None:
    warnings.warn(
        f"Conjugate gradients stopped after {n_iter} products with {np.sum(left > tol)} of {len(left)} columns above "
        f"their tolerance, {tol.min():.1e} at the least: the largest relative residual is {left.max():.1e}. Raise "
        "max_iter, the ridge or the number of sampled rows; with a float32 product a tolerance below 1e-5 "
        "may be out of reach.",
        ConvergenceWarning,
        stacklevel=3,
    )


def neighbours_of(X, n_neighbours: int, workers: int = 1) -> np.ndarray:
    """Numbers (n, p) of the nearest other rows in Euclidean distance; any choice is right, near ones help most."""
    from sklearn.neighbors import NearestNeighbors  # slow to import, seldom needed

    n_neighbours = min(n_neighbours, X.shape[0] - 1)
    if not n_neighbours:
        return np.empty((X.shape[0], 0), dtype=int)
    with one_blas_thread():  # scikit-learn would set and restore a limit of its own
        return NearestNeighbors(n_neighbors=n_neighbours, n_jobs=workers).fit(X).kneighbors(return_distance=False)


@dataclass(frozen=True)
class LocalInverse:
    """Rows of B = (M + ρI)⁻¹ as they would be if each row of the data had no others than its neighbours.

    With v the conditional variance of row i given its neighbours N and w = (M_NN + ρI)⁻¹M_Ni, B_ii = 1/(v + ρ) and
    B_iN = −wᵀB_ii. More neighbours can only lower v, so ``diagonal`` (n,) is never above that of B.
    """

    diagonal: np.ndarray
    weights: sparse.csr_array

    @classmethod
    def of(
        cls,
        gram: Callable[[np.ndarray], np.ndarray],
        neighbours: np.ndarray,
        ridge: float,
        weight: np.ndarray | None = None,
    ) -> LocalInverse:
        """From ``gram(rows)``, the kernel matrix of some rows, and each row's ``neighbours`` (n, p)."""
        n, p = neighbours.shape
        root = np.ones(n) if weight is None else np.sqrt(weight)
        members = np.column_stack([neighbours, np.arange(n)])
        diagonal, w = np.empty(n), np.empty((n, p))
        for some in row_slices(n, 1, LOCAL_BATCH):
            scale = root[members[some]]
            M = np.stack([gram(rows) for rows in members[some]]) * scale[:, :, None] * scale[:, None, :]
            diagonals = np.einsum("bii->bi", M)
            # a ridge that rounding swallows leaves equal rows singular
            diagonals += np.maximum(ridge, 10 * p * np.finfo(float).eps * diagonals.max(axis=1, keepdims=True))
            w[some] = np.linalg.solve(M[:, :p, :p], M[:, :p, p:])[:, :, 0]
            diagonal[some] = 1.0 / np.maximum(M[:, p, p] - np.einsum("bi,bi->b", w[some], M[:, :p, p]), ridge)
        weights = sparse.csr_array((w.ravel(), neighbours.ravel(), np.arange(n + 1) * p), shape=(n, n))
        return cls(diagonal, weights)

    def times(self, V: np.ndarray) -> np.ndarray:
        return self.diagonal[:, None] * (V - self.weights @ V)


class Leverages(NamedTuple):
    """Leverages (n,) of one unit of weight of every row, and their standard errors (n,)."""

    estimate: np.ndarray
    standard_error: np.ndarray


@dataclass(frozen=True)
class Probes:
    """Random signs Z (n, q), and what the diagonal of B = (M + ρI)⁻¹ is once BZ is known."""

    signs: np.ndarray

    @classmethod
    def draw(cls, n: int, n_probes: int, seed: int = 0) -> Probes:
        return cls(np.random.default_rng(seed).choice([-1.0, 1.0], size=(n, n_probes)))

    def rhs(self, preconditioner: Nystrom) -> np.ndarray:
        """Columns for :func:`solve`, beside those of the targets."""
        return self.signs / preconditioner.root[:, None]

    def leverages(
        self, coef: np.ndarray, preconditioner: Nystrom, ridge: float, local: LocalInverse | None = None
    ) -> Leverages:
        """G_zz/Ω_z of G = M(M + ρI)⁻¹ from the solution ``coef`` (n, q) for :meth:`rhs`, as :mod:`.dual` has them."""
        root, known = preconditioner.root, preconditioner.precondition_diagonal(ridge)
        draws = self.signs * (coef / root[:, None])
        controls = [self.signs * preconditioner.precondition(self.signs, ridge) - known[:, None]]
        if local is not None:
            controls.append(self.signs * local.times(self.signs) - local.diagonal[:, None])
        scale = known if local is None else local.diagonal
        draws = _without_controls(draws, controls, scale)
        with np.errstate(over="ignore"):  # a ridge next to zero, with which the error is as good as infinite
            error = draws.std(axis=1, ddof=1) / np.sqrt(draws.shape[1])
        # B is at most I/ρ, and at least what the neighbours alone make of it
        least = np.finfo(np.float64).eps / ridge if local is None else local.diagonal
        inverse = np.clip(draws.mean(axis=1), least, 1.0 / ridge)
        return Leverages((1.0 - ridge * inverse) / root**2, ridge * error / root**2)


def _without_controls(draws: np.ndarray, controls: list[np.ndarray], scale: np.ndarray) -> np.ndarray:
    """Draws (n, q) less the combination of controls, of mean zero, that leaves least variance over all rows."""
    centred = [((C - C.mean(axis=1, keepdims=True)) / scale[:, None]).ravel() for C in [draws, *controls]]
    share = np.linalg.lstsq(np.column_stack(centred[1:]), centred[0], rcond=None)[0]
    return draws - sum(s * C for s, C in zip(share, controls))
