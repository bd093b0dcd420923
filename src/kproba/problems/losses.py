"""Negative log-likelihoods of scores, with their first and second derivatives.

A loss takes U (n, k), the columns that the solvers work on, and maps them to the scores that links use. For classes,
adding a constant to all c scores of a row changes nothing, so U has k = c − 1 columns and the scores F = UCᵀ sum to
zero. C (c, c − 1) is orthonormal, so the penalty on U equals that on F. Two classes have one column. Tags are
independent two-class problems.

In the base-class form (2001 Eqs 7–9) the columns are the log-odds of all classes but the last against the last one,
whose score is zero. It is the same model with another penalty, which treats the last class differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import helmert
from scipy.special import expit

from ..arrays import Device, is_tensor


@dataclass(frozen=True)
class Multinomial:
    """−Σ wᵢ log pᵢ(yᵢ) with p = softmax(F) over ``c`` exclusive classes (2001 Eq. 7, textbook Eq. 28.1).

    ``contrast=False`` keeps one column per class: if classes have their own centres, no column is redundant. With
    ``base`` the columns are log-odds against the last class.
    """

    c: int
    contrast: bool = True
    base: bool = False

    @cached_property
    def _contrasts(self) -> np.ndarray:
        """C: orthonormal contrasts between the classes, orthogonal to the constant vector."""
        if self.base:
            return np.eye(self.c, self.c - 1)
        if not self.contrast:
            return np.eye(self.c)
        # this sign makes the single column of two classes positive for the second class
        return -helmert(self.c).T

    @property
    def n_columns(self) -> int:
        return self._contrasts.shape[1]

    def scores(self, U: np.ndarray) -> np.ndarray:
        """Scores F (n, c) from columns U; also maps coefficients of U to those of F."""
        return U @ self._contrasts.T

    def columns(self, F: np.ndarray) -> np.ndarray:
        """Columns U (n, k) from scores F; a constant common to all classes is dropped."""
        return F[:, :-1] - F[:, -1:] if self.base else F @ self._contrasts

    def evaluate(self, U, labels, weight) -> tuple[float, np.ndarray]:
        """The loss, and the probabilities P (n, c) from which its derivatives are computed.

        The largest score is subtracted before the exponential (textbook p. 324), so that nothing overflows.
        """
        F = self.scores(U)
        F -= F.max(axis=1, keepdims=True)
        own = F[np.arange(len(F)), labels]
        P = np.exp(F, out=F)
        total = P.sum(axis=1)
        P /= total[:, None]
        return float(weight @ (np.log(total) - own)), P

    def residual(self, P, labels) -> np.ndarray:
        """∂loss/∂U (n, k) per unit of weight: (p − y)C."""
        R = P.copy()
        R[np.arange(len(R)), labels] -= 1.0
        return R @ self._contrasts

    def curvature_product(self, P, V) -> np.ndarray:
        """∂²loss/∂U² applied to V (n, k), per unit of weight: V Cᵀ(diag p − ppᵀ)C row by row."""
        if is_tensor(V):
            return self._curvature_product_on(Device.of(V), P, V)
        D = V @ self._contrasts.T
        D *= P
        D -= P * D.sum(axis=1, keepdims=True)
        return D @ self._contrasts

    def _curvature_product_on(self, device: Device, P, V):
        C = device.xp.astype(device.put(self._contrasts), V.dtype)
        D = device.product(V, C.mT) * P
        return device.product(D - P * device.xp.sum(D, axis=1, keepdims=True), C)

    def curvature(self, P) -> np.ndarray:
        """∂²loss/∂U² (n, k, k) per unit of weight."""
        T = self._contrasts
        turned = P @ T
        if self.n_columns == 1:
            return np.maximum(P @ T**2 - turned**2, 0.0)[:, :, None]
        out = (P @ np.einsum("jk,jl->jkl", T, T).reshape(self.c, -1)).reshape(len(P), *[T.shape[1]] * 2)
        out -= turned[:, :, None] * turned[:, None, :]
        diagonal = np.einsum("ijj->ij", out)
        np.maximum(diagonal, 0.0, out=diagonal)  # rounding may make it negative if a class is certain
        return out

    def mean_curvature(self, P) -> np.ndarray:
        """The mean (n,) of the diagonal of the curvature: tr(diag p − ppᵀ)/k."""
        if self.base:
            return np.einsum("ij,ij->i", P[:, :-1], 1.0 - P[:, :-1]) / self.n_columns
        return (1.0 - np.einsum("ij,ij->i", P, P)) / self.n_columns

    def is_separated(self, P, labels) -> bool:
        """Whether every row has its largest probability at its own class: scores that grow without bound then fit
        best."""
        own, others = P[np.arange(len(P)), labels], P.copy()
        others[np.arange(len(P)), labels] = -1.0
        return bool((own > others.max(axis=1)).all())


@dataclass(frozen=True)
class Tags:
    """Independent two-class losses: tag l has log-odds √2·U_l, as two classes have in one column.

    With ``base`` the columns are the log-odds themselves, as for two classes in the base-class form.
    A missing label (NaN) has no loss: P is set to zero there, like the label, and every derivative vanishes.
    """

    n_columns: int
    base: bool = False

    contrast = True

    @property
    def _root(self) -> float:
        return 1.0 if self.base else np.sqrt(2.0)

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
        return self._own_curvature(P) * V

    def curvature(self, P) -> np.ndarray:
        out = np.zeros((len(P), self.n_columns, self.n_columns))
        np.einsum("ijj->ij", out)[:] = self._own_curvature(P)
        return out

    def mean_curvature(self, P) -> np.ndarray:
        return self._own_curvature(P).mean(axis=1)

    def is_separated(self, P, labels) -> bool:
        """Whether the rows of some tag all have its probability on the right side of one half."""
        return bool((((P > 0.5) == (labels == 1)) & (P != 0.5) | np.isnan(labels)).all(axis=0).any())

    def _own_curvature(self, P) -> np.ndarray:
        return (1.0 if self.base else 2.0) * P * (1.0 - P)
