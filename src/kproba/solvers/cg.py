"""(K + ρΩ⁻¹)θ = t̄ by conjugate gradients with a Nyström preconditioner: :mod:`.dual` without factoring K.

In symmetric form, (M + ρI)α = Ω^½t̄ with M = Ω^½KΩ^½ and θ = Ω^½α. K is used only through ``product(V)`` = KV, so it
may be stored, computed tile by tile, or live on a device; one pass over K serves all right-hand sides. The
preconditioner approximates the m leading directions of M, as in Falkon (Rudi et al., 2017), in the form of Frangella,
Tropp and Udell (2023). The preconditioned system has a condition number near λ_m/ρ.

Leverages are estimated from random signs z, solved for together with the targets: with B = (M + ρI)⁻¹ the mean of z∘Bz
is the diagonal of B, and the hat matrix has the diagonal 1 − ρB_ii. Two approximations of B with known diagonals serve
as control variates and remove most of the noise: the preconditioner, accurate if M is smooth, and rows of B from
nearest neighbours, accurate if the kernel is narrow. The neighbours' diagonal alone has no noise, but an error of the
same sign in every row, which biases the leave-one-out log-loss; errors that average to zero do far less harm.
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
from .cholesky import kernel_factor, rounding_level

Product = Callable[[np.ndarray], np.ndarray]

#: Number of neighbourhood systems solved in one call.
LOCAL_BATCH = 256


class CGSolution(NamedTuple):
    """θ (n, k), the number of products, relative residuals ‖Ω^½t̄ − (M + ρI)α‖/‖Ω^½t̄‖ (k,), and if all met ``tol``."""

    coef: np.ndarray
    n_iter: int
    residual: np.ndarray
    converged: bool


@dataclass(frozen=True)
class Nystrom:
    """M ≈ U diag(λ) Uᵀ from sampled rows, with decreasing λ; ``root`` is Ω^½ (n,). It does not depend on the ridge."""

    vectors: np.ndarray
    values: np.ndarray
    root: np.ndarray

    @classmethod
    def of(cls, cross: np.ndarray, sample: np.ndarray, weight: np.ndarray | None = None) -> Nystrom:
        """From K_nm (n, m) in float64, whose columns belong to the rows ``sample``. ``cross`` is overwritten.

        With K_mm = LLᵀ and A = Ω^½K_nm L⁻ᵀ the approximation is AAᵀ, and the eigenvectors V of AᵀA give U = AVλ^-½.
        """
        root = np.ones(len(cross)) if weight is None else np.sqrt(weight)
        lower = kernel_factor(cross[sample])
        cross *= root[:, None]
        _in_place(cross, lambda rows: linalg.solve_triangular(lower, rows.T, lower=True, check_finite=False).T)
        values, rotation = linalg.eigh(cross.T @ cross, driver="evd", overwrite_a=True, check_finite=False)
        values, rotation = values[::-1], rotation[:, ::-1]
        kept = values > rounding_level(values)  # smaller ones have vectors made of rounding errors, not orthogonal
        rotation = rotation[:, kept] / np.sqrt(values[kept])
        _in_place(cross, lambda rows: rows @ rotation)
        return cls(cross[:, : rotation.shape[1]], values[kept].copy(), root)

    def precondition(self, residual: np.ndarray, ridge: float) -> np.ndarray:
        """(λ_m + ρ) U(Λ + ρ)⁻¹Uᵀr + (I − UUᵀ)r, as r − U diag((λ − λ_m)/(λ + ρ)) Uᵀr: positive definite."""
        share = (self.values - self.values[-1]) / (self.values + ridge)
        return residual - self.vectors @ (share[:, None] * (self.vectors.T @ residual))

    def precondition_diagonal(self, ridge: float) -> np.ndarray:
        """The diagonal (n,) of the matrix that :meth:`precondition` applies."""
        return 1.0 - np.square(self.vectors) @ ((self.values - self.values[-1]) / (self.values + ridge))


def _in_place(matrix: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> None:
    """Replace blocks of rows by ``function`` of them, which may have fewer columns, without a second (n, m) matrix."""
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
    """Solve (K + ρΩ⁻¹)θ = t̄ for all columns of ``rhs`` t̄ (n, k), from ``start`` (n, k) if given.

    ``tol`` bounds the relative residual, one value for all columns or one per column. Columns share every product and
    drop out once they meet their tolerance. Rounding errors, especially of float32 products, make the residual of the
    recurrence drift from the true one. So the true residual is computed when the recurrence ends, and columns that miss
    the tolerance restart from there.
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
        # a column that hardly improves in a whole round has reached the precision of the product
        missing = missing[(left[missing] > tol[missing]) & (left[missing] < 0.1 * before)]
    converged = bool((left <= tol).all())
    if not converged:
        warn_not_converged(left, tol, run.n_iter)
    return CGSolution(root * alpha, run.n_iter, left, converged)


@dataclass
class _Run:
    """The system at one ridge, and the number of products used so far."""

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
        """(M + ρI)⁻¹ applied to the columns of the residual, until the new residual norms are below ``goal`` (k,)."""
        found, active = np.zeros_like(residual), np.arange(residual.shape[1])
        residual = residual.copy()
        along = preconditioned = self.preconditioner.precondition(residual, self.ridge)
        fall = _dots(residual, preconditioned)
        while len(active) and self.n_iter < self.max_iter:
            image = self.times(along)
            curvature = _dots(along, image)
            flat = ~(curvature > 0.0)  # only rounding errors are left of the residual
            step = np.where(flat, 0.0, fall / np.where(flat, 1.0, curvature))
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


def warn_not_converged(left: np.ndarray, tol: np.ndarray, n_iter: int) -> None:
    warnings.warn(
        f"Conjugate gradients stopped after {n_iter} products with {np.sum(left > tol)} of {len(left)} columns above "
        f"their tolerance ({tol.min():.1e} or more); the largest relative residual is {left.max():.1e}. Increase "
        "max_iter, the ridge or the number of sampled rows; with float32 products a tolerance below 1e-5 may not be "
        "reachable.",
        ConvergenceWarning,
        stacklevel=3,
    )


def neighbours_of(X, n_neighbours: int, workers: int = 1) -> np.ndarray:
    """Indices (n, p) of the nearest other rows in Euclidean distance; any choice is valid, near ones help most."""
    from sklearn.neighbors import NearestNeighbors  # slow to import, rarely needed

    n_neighbours = min(n_neighbours, X.shape[0] - 1)
    if not n_neighbours:
        return np.empty((X.shape[0], 0), dtype=int)
    with one_blas_thread():  # otherwise scikit-learn sets and restores its own limit
        return NearestNeighbors(n_neighbors=n_neighbours, n_jobs=workers).fit(X).kneighbors(return_distance=False)


@dataclass(frozen=True)
class LocalInverse:
    """Rows of B = (M + ρI)⁻¹, approximated as if each row of the data had only its neighbours.

    With v the conditional variance of row i given its neighbours N, and w = (M_NN + ρI)⁻¹M_Ni, B_ii = 1/(v + ρ) and
    B_iN = −wᵀB_ii. More neighbours can only decrease v, so ``diagonal`` (n,) never exceeds that of B.
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
        """From ``gram(rows)``, which computes the kernel matrix of some rows, and the ``neighbours`` (n, p) of each
        row."""
        n, p = neighbours.shape
        root = np.ones(n) if weight is None else np.sqrt(weight)
        members = np.column_stack([neighbours, np.arange(n)])
        diagonal, w = np.empty(n), np.empty((n, p))
        for some in row_slices(n, 1, LOCAL_BATCH):
            scale = root[members[some]]
            M = np.stack([gram(rows) for rows in members[some]]) * scale[:, :, None] * scale[:, None, :]
            diagonals = np.einsum("bii->bi", M)
            # with a ridge below rounding, equal rows would make the system singular
            diagonals += np.maximum(ridge, 10 * p * np.finfo(float).eps * diagonals.max(axis=1, keepdims=True))
            w[some] = np.linalg.solve(M[:, :p, :p], M[:, :p, p:])[:, :, 0]
            diagonal[some] = 1.0 / np.maximum(M[:, p, p] - np.einsum("bi,bi->b", w[some], M[:, :p, p]), ridge)
        weights = sparse.csr_array((w.ravel(), neighbours.ravel(), np.arange(n + 1) * p), shape=(n, n))
        return cls(diagonal, weights)

    def times(self, V: np.ndarray) -> np.ndarray:
        return self.diagonal[:, None] * (V - self.weights @ V)


class Leverages(NamedTuple):
    """Leverages (n,) per unit of weight of every row, and their standard errors (n,)."""

    estimate: np.ndarray
    standard_error: np.ndarray


@dataclass(frozen=True)
class Probes:
    """Random signs Z (n, q), used to estimate the diagonal of B = (M + ρI)⁻¹ from BZ."""

    signs: np.ndarray

    @classmethod
    def draw(cls, n: int, n_probes: int, seed: int = 0) -> Probes:
        return cls(np.random.default_rng(seed).choice([-1.0, 1.0], size=(n, n_probes)))

    def rhs(self, preconditioner: Nystrom) -> np.ndarray:
        """Right-hand sides for :func:`solve`, to be appended to the targets."""
        return self.signs / preconditioner.root[:, None]

    def leverages(
        self, coef: np.ndarray, preconditioner: Nystrom, ridge: float, local: LocalInverse | None = None
    ) -> Leverages:
        """G_zz/Ω_z of G = M(M + ρI)⁻¹ from the solution ``coef`` (n, q) for :meth:`rhs`, as in :mod:`.dual`."""
        root, known = preconditioner.root, preconditioner.precondition_diagonal(ridge)
        draws = self.signs * (coef / root[:, None])
        controls = [self.signs * preconditioner.precondition(self.signs, ridge) - known[:, None]]
        if local is not None:
            controls.append(self.signs * local.times(self.signs) - local.diagonal[:, None])
        scale = known if local is None else local.diagonal
        draws = _without_controls(draws, controls, scale)
        with np.errstate(over="ignore"):  # with a ridge near zero the error is practically infinite
            error = draws.std(axis=1, ddof=1) / np.sqrt(draws.shape[1])
        # B is at most I/ρ, and its diagonal at least that from the neighbours alone
        least = np.finfo(np.float64).eps / ridge if local is None else local.diagonal
        inverse = np.clip(draws.mean(axis=1), least, 1.0 / ridge)
        return Leverages((1.0 - ridge * inverse) / root**2, ridge * error / root**2)


def _without_controls(draws: np.ndarray, controls: list[np.ndarray], scale: np.ndarray) -> np.ndarray:
    """Draws (n, q) minus the combination of zero-mean controls that minimises the variance over all rows."""
    centred = [((C - C.mean(axis=1, keepdims=True)) / scale[:, None]).ravel() for C in [draws, *controls]]
    share = np.linalg.lstsq(np.column_stack(centred[1:]), centred[0], rcond=None)[0]
    return draws - sum(s * C for s, C in zip(share, controls))
