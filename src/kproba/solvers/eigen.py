"""Solutions for all ridges from one eigendecomposition (2010, Sec. 4).

With Q such that QᵀHQ = diag(γ) and QᵀPQ = I, the solution for any ρ is θ = Q (Qᵀh / (γ + ρ)), and the
leverage of a row is Σ_k (φᵀQ)²_k / (γ_k + ρ).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import linalg

from .dual import resolvable
from .path import Path

#: Added to the kernel matrix of the centres before whitening H. Rounding errors of H are divided by it, so it must stay
#: well above them (see docs/decisions).
WHITENING_FLOOR = 1e-9


@dataclass(frozen=True)
class EigenFactor:
    """The system at one ridge ρ, in the basis of its eigenvectors."""

    path: EigenPath
    ridge: float

    def solve(self, h: np.ndarray) -> np.ndarray:
        return self.path.vectors @ ((self.path.vectors.T @ h) / (self.path.values + self.ridge)[:, None])

    def inverse(self) -> np.ndarray:
        """(H + ρP)⁻¹."""
        return (self.path.vectors / (self.path.values + self.ridge)) @ self.path.vectors.T

    def leverage(self, projected: np.ndarray) -> np.ndarray:
        """Leverage of rows of features projected by :meth:`EigenPath.project`."""
        return np.square(projected) @ (1.0 / (self.path.values + self.ridge))


@dataclass(frozen=True)
class EigenPath(Path):
    """One eigendecomposition for all ridges (2010 Sec. 4).

    These are the eigenvalues γ (b,) and vectors Q (b, b) of H relative to P.
    """

    values: np.ndarray
    vectors: np.ndarray
    serves_all_ridges: ClassVar[bool] = True

    @classmethod
    def of(cls, moments, centers, penalty):
        return cls.decomposed(moments.symmetric(centers), penalty)

    @classmethod
    def decomposed(cls, H: np.ndarray, penalty: np.ndarray | None) -> EigenPath:
        if penalty is None:
            values, vectors = linalg.eigh(H, driver="evd", check_finite=False)
            return cls(np.maximum(values, 0.0), vectors)
        floor = max(WHITENING_FLOOR * len(H) * np.diagonal(penalty).mean(), np.finfo(float).tiny)
        lower = linalg.cholesky(penalty + floor * np.eye(len(H)), lower=True)
        half = linalg.solve_triangular(lower, H, lower=True)
        white = linalg.solve_triangular(lower, half.T, lower=True)
        values, vectors = linalg.eigh((white + white.T) / 2, driver="evd", check_finite=False)
        return cls(np.maximum(values, 0.0), linalg.solve_triangular(lower, vectors, lower=True, trans="T"))

    def at(self, ridge: float) -> EigenFactor:
        """The factor at one ridge; a ridge below the rounding level of H is increased to it, with a warning."""
        return EigenFactor(self, resolvable(ridge, self.values))

    def project(self, phi: np.ndarray) -> np.ndarray:
        """ΦQ, which the leverages of all ridges share."""
        return phi @ self.vectors.astype(phi.dtype, copy=False)
