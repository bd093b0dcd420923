"""Least squares with a kernel over rows and classes together (2010 Eq. 4): one system with a coefficient for every
centre and class.

With φ(x, y) (bc,) the features of a row as a member of class y, the system is (H + λI)α = h, where
H = (1/n) Σ_i Σ_y φ(x_i, y)φ(x_i, y)ᵀ and h = (1/n) Σ_i φ(x_i, y_i): ordinary least squares in which every row
stands for c equations. Leaving a row out leaves out all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import linalg

from ..basis.basis import Basis
from ..data.rows import Rows
from .base import CpuProblem, Solution, with_scores


@dataclass(frozen=True)
class JointLeastSquares(CpuProblem):
    """Rows and a basis whose kernel is a :class:`~kproba.kernels.JointKernel` that knows its classes."""

    rows: Rows
    basis: Basis
    has_cheap_loo = True

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge, from one eigendecomposition of H."""
        values, vectors = self._spectrum
        # nh: the weighted sum of the features of rows as members of their own class
        h = vectors.T @ (self.rows.weight @ self._features[np.arange(len(self.rows)), self.rows.labels])
        for ridge in ridges:
            alpha = h / (values + self.total_weight * ridge)
            held_out = self._leave_one_out(alpha, self.total_weight * ridge) if loo else None
            held_out = held_out if held_out is None or loo_rows is None else held_out[loo_rows]
            yield Solution(ridge, held_out, partial(self._coefficients, alpha))

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without the rows ``inside``, and the scores of these rows."""
        without = replace(self, rows=self.rows.without(inside))
        return with_scores(without.path(ridges, loo=False), self.basis, self.rows.X[inside])

    @cached_property
    def _features(self) -> np.ndarray:
        """φ(x_i, y) of every row and class (n, c, bc)."""
        kernel: Any = self.basis.kernel
        c = self.rows.n_classes
        return np.stack([kernel.features(self.rows.X, y, self.basis.centers) for y in range(c)], axis=1)

    @cached_property
    def _spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors of nH."""
        weighted = self._features * np.sqrt(self.rows.weight)[:, None, None]
        flat = weighted.reshape(-1, weighted.shape[2])
        values, vectors = linalg.eigh(flat.T @ flat)
        return np.maximum(values, 0.0), vectors

    @cached_property
    def _turned(self) -> np.ndarray:
        """The features in the coordinates of the eigenvectors (n, c, bc)."""
        return self._features @ self._spectrum[1]

    def _coefficients(self, alpha: np.ndarray) -> np.ndarray:
        """α (b, c) from the coordinates of the eigenvectors."""
        return (self._spectrum[1] @ alpha).reshape(-1, self.rows.n_classes)

    def _leave_one_out(self, alpha: np.ndarray, rho: float) -> np.ndarray:
        """t − (I − uS)⁻¹(t − F) with S = φA⁻¹φᵀ (c, c): the scores of each row without u of its weight.

        The basis and the total ridge ρ stay the same.
        """
        turned, targets = self._turned, self.rows.targets()
        S = turned @ (turned / (self._spectrum[0] + rho)).transpose(0, 2, 1)
        room = np.eye(targets.shape[1]) - self.rows.unit[:, None, None] * S
        residual = targets - turned @ alpha
        return targets - np.linalg.solve(room, residual[:, :, None])[:, :, 0]
