"""Minus log-likelihoods of scores, with their first and second derivatives.

A loss sees U (n, k), the columns that the solvers work on, and turns them into the scores that links see. For
classes the c scores of a row may all be moved by the same amount without any change, so U has k = c − 1 columns
and the scores F = UCᵀ sum to zero; C (c, c − 1) is orthonormal, so that the penalty of U is that of F. Two
classes have one column. Tags are two-class problems side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import helmert
from scipy.special import expit


@dataclass(frozen=True)
class Multinomial:
    """−Σ wᵢ log pᵢ(yᵢ) with p = softmax(F) over ``c`` exclusive classes (2001 Eq. 7, textbook Eq. 28.1).

    ``contrast=False`` keeps one column a class: where classes have centres of their own, nothing is redundant.
    """

    c: int
    contrast: bool = True

    @cached_property
    def _contrasts(self) -> np.ndarray:
        """C: the directions among the classes, orthonormal and orthogonal to the constant one."""
        if not self.contrast:
            return np.eye(self.c)
        # the sign makes a two-class column positive for the second class
        return -helmert(self.c).T

    @property
    def n_columns(self) -> int:
        return self._contrasts.shape[1]

    def scores(self, U: np.ndarray) -> np.ndarray:
        """F (n, c) of columns U; also the coefficients of F from those of U."""
        return U @ self._contrasts.T

    def columns(self, F: np.ndarray) -> np.ndarray:
        """U (n, k) of scores F, whatever is common to all classes left out."""
        return F @ self._contrasts

    def evaluate(self, U, labels, weight) -> tuple[float, np.ndarray]:
        """The loss, and the probabilities P (n, c) that its derivatives are made of.

        The largest score is taken out before the exponential (textbook p. 324): no score overflows.
        """
        F = self.scores(U)
        F -= F.max(axis=1, keepdims=True)
        own = F[np.arange(len(F)), labels]
        P = np.exp(F, out=F)
        total = P.sum(axis=1)
        P /= total[:, None]
        return float(weight @ (np.log(total) - own)), P

    def residual(self, P, labels) -> np.ndarray:
        """∂loss/∂U (n, k) of one unit of weight: (p − y)C."""
        R = P.copy()
        R[np.arange(len(R)), labels] -= 1.0
        return R @ self._contrasts

    def curvature_product(self, P, V) -> np.ndarray:
        """∂²loss/∂U² applied to V (n, k), of one unit of weight: V Cᵀ(diag p − ppᵀ)C row by row."""
        D = V @ self._contrasts.T
        D *= P
        D -= P * D.sum(axis=1, keepdims=True)
        return D @ self._contrasts

    def curvature(self, P) -> np.ndarray:
        """∂²loss/∂U² (n, k, k) of one unit of weight."""
        T = self._contrasts
        turned = P @ T
        if self.n_columns == 1:
            return np.maximum(P @ T**2 - turned**2, 0.0)[:, :, None]
        out = (P @ np.einsum("jk,jl->jkl", T, T).reshape(self.c, -1)).reshape(len(P), *[T.shape[1]] * 2)
        out -= turned[:, :, None] * turned[:, None, :]
        diagonal = np.einsum("ijj->ij", out)
        np.maximum(diagonal, 0.0, out=diagonal)  # rounding may leave less than nothing of a sure class
        return out

    def mean_curvature(self, P) -> np.ndarray:
        """The mean (n,) of the diagonal of the curvature: tr(diag p − ppᵀ)/k."""
        return (1.0 - np.einsum("ij,ij->i", P, P)) / self.n_columns


@dataclass(frozen=True)
class Tags:
    """Two-class losses side by side: tag l has log-odds √2·U_l, which is what two classes have in one column.

    A missing label (NaN) has no loss: there P is zero as the label is taken to be, and every derivative vanishes.
    """

    n_columns: int

    contrast = True
    _root = np.sqrt(2.0)

    def scores(self, U: np.ndarray) -> np.ndarray:
        """Log-odds (n, L) of the tags."""
        return self._root * U

    def columns(self, F: np.ndarray) -> np.ndarray:
        return F / self._root

    def evaluate(self, U, labels, weight) -> tuple[float, np.ndarray]:
        """The loss, and the probabilities (n, L) of the tags."""
        odds, missing = self.scores(U), np.isnan(labels)
        loss, P = np.logaddexp(0.0, odds) - labels * odds, expit(odds)
        if missing.any():
            loss[missing] = P[missing] = 0.0
        return float(weight @ loss.sum(axis=1)), P

    def residual(self, P, labels) -> np.ndarray:
        residual = self._root * (P - labels)
        return np.nan_to_num(residual, copy=False, nan=0.0)

    def curvature_product(self, P, V) -> np.ndarray:
        return 2.0 * P * (1.0 - P) * V

    def curvature(self, P) -> np.ndarray:
        out = np.zeros((len(P), self.n_columns, self.n_columns))
        np.einsum("ijj->ij", out)[:] = 2.0 * P * (1.0 - P)
        return out

    def mean_curvature(self, P) -> np.ndarray:
        return (2.0 * P * (1.0 - P)).mean(axis=1)
