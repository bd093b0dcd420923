"""Least squares by averaged stochastic gradient descent (2010 Sec. 4), without forming H.

    minimise (1/2W) Σ w‖ψᵀz − t‖² + (λ/2)‖z‖²,    ψ = L⁻¹φ,    P = LLᵀ,    θ = L⁻ᵀz

In these coordinates the penalty is the identity, and for the RKHS penalty ‖ψ(x)‖² ≤ k(x, x), so one constant step size
suits all kernels and widths. The average of the iterates of the second half converges at the optimal rate without a
decreasing or tuned step size (Bach and Moulines, 2013). If centres belong to classes (2010 Eq. 7), P has a block for
each class and the other coefficients of a class stay zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import linalg

from ..basis.basis import Basis
from ..data.folds import stratified_folds
from ..data.rows import Rows
from ..problems.base import CpuProblem, Solution
from ..problems.own_centers import drop_held_out_centers
from ..search.folds import cross_validate
from ..solvers.cholesky import kernel_factor

#: Rows per step, and rows used to compute the step size.
STEP_ROWS, PROBE_ROWS = 64, 500


@dataclass(frozen=True)
class StochasticLeastSquares(CpuProblem):
    """Averaged stochastic gradients (2010 Sec. 4), with ``passes`` over the rows."""

    rows: Rows
    basis: Basis
    rkhs: bool
    passes: int = 20
    seed: int = 0
    folds: int = 5
    has_cheap_loo = False

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge; with ``loo``, also the held-out scores from folds."""
        fold = stratified_folds(self.rows, self.folds, self.seed)
        for ridge in ridges:
            held_out = cross_validate(self, fold, [ridge])[0] if loo else None
            if held_out is not None and loo_rows is not None:
                held_out = held_out[loo_rows]
            yield Solution(
                ridge, held_out, partial(np.copy, self._solve(self.rows, self.basis, ridge)), n_iter=self.passes
            )

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without the rows ``inside``, and the scores of these rows."""
        rest = self.rows.without(inside)
        # centres that belong to classes reveal the labels of their rows, so those of held-out rows are removed
        basis = self.basis if self.basis.owner is None else drop_held_out_centers(rest, self.basis)
        for ridge in ridges:
            # if no row is left, scores are zero, which links interpret as the prior
            has_any = len(rest) and basis.n_centers
            coef = self._solve(rest, basis, ridge) if has_any else np.zeros((basis.n_centers, self.rows.n_targets))
            yield Solution(ridge, basis.scores(self.rows.X[inside], coef), partial(np.copy, coef))

    def _solve(self, rows: Rows, basis: Basis, ridge: float) -> np.ndarray:
        penalty = basis.gram() if self.rkhs else None
        return averaged_sgd(rows, basis, penalty, ridge, self.passes, self.seed, owner=basis.owner)


def averaged_sgd(
    rows: Rows,
    features: Callable,
    penalty: np.ndarray | None,
    ridge: float,
    passes: int,
    seed: int,
    watch=None,
    owner: np.ndarray | None = None,
) -> np.ndarray:
    """θ (b, k) after ``passes`` passes over the rows; ``watch(θ)`` is called with the current average after each.

    ``features(X)`` computes Φ; ``penalty`` is P, None for the identity; ``owner`` (b,) is the class of each centre,
    None if all classes share them.
    """
    random, n = np.random.default_rng(seed), len(rows)
    # the factor of a matrix of blocks has the same blocks, so classes stay apart in the coordinates z too
    blocks = penalty if penalty is None or owner is None else penalty * (owner[:, None] == owner)
    lower = None if blocks is None else kernel_factor(blocks)
    inside = True if owner is None else owner[:, None] == np.arange(rows.n_targets)
    scale = rows.weight * (n / rows.total_weight)  # makes a mean over sampled rows a weighted mean

    def whitened(index):
        phi = features(rows.X[index]).astype(np.float64, copy=False)
        return phi if lower is None else linalg.solve_triangular(lower, phi.T, lower=True, check_finite=False).T

    def coefficients(z):
        return z if lower is None else linalg.solve_triangular(lower, z, lower=True, trans="T", check_finite=False)

    rate = _rate(whitened(random.permutation(n)[:PROBE_ROWS]), owner, float(scale.max()), ridge)
    z, average, n_averaged = None, None, 0
    for epoch in range(passes):
        order = random.permutation(n)
        for start in range(0, n, STEP_ROWS):
            index = order[start : start + STEP_ROWS]
            psi, targets = whitened(index), rows.targets(index)
            z = np.zeros((psi.shape[1], targets.shape[1])) if z is None else z
            residual = scale[index, None] * (psi @ z - targets)
            z -= rate * inside * (psi.T @ residual / len(index) + ridge * z)
            if 2 * epoch >= passes - 1:
                n_averaged += 1
                average = z.copy() if average is None else average + (z - average) / n_averaged
        if watch is not None:
            watch(coefficients(z if average is None else average))
    return coefficients(average)


def _rate(psi: np.ndarray, owner: np.ndarray | None, largest_weight: float, ridge: float) -> float:
    """Half the largest stable step size for STEP_ROWS rows: their mean has the spectrum of H plus the noise of a
    row."""
    parts = [psi] if owner is None else [psi[:, owner == y] for y in np.unique(owner)]
    steepest = max((_steepness(part, largest_weight) for part in parts), default=1.0)
    return 1.0 / (steepest + ridge)


def _steepness(psi: np.ndarray, largest_weight: float) -> float:
    top = float(linalg.eigvalsh(psi.T @ psi / len(psi))[-1]) if len(psi) else 1.0
    single = float(np.einsum("ij,ij->i", psi, psi).max(initial=0.0)) * largest_weight
    return top + single / STEP_ROWS
