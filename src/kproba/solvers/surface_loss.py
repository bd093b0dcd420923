"""The surface loss of 2013 as a concave quadratic in the coefficients, its constraints, and optimality certificates.

With A (r + 1, q) holding α_l^j, and the constants in its last row, the sums NB, K_j^l, K_l and K_{s,l} of 2013 Sec. 3.2
are the moments of the features with a constant column: H = Σ w φφᵀ and h = Σ w φtᵀ. Then Loss_surf (Eq. 4), as a mean
over rows, is F(A) = ⟨h, A⟩ − ½⟨A, HA⟩, so the rows themselves are no longer needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..basis.moments import Moments


class Certificate(NamedTuple):
    """How close coefficients are to the optimum.

    ``objective`` is the mean surface loss on the training rows; no feasible coefficients exceed it by more than
    ``duality_gap``. ``kkt_residual`` is how far a projected gradient step moves the coefficients; it is zero only at
    the maximum. ``n_active`` coefficients lie on the boundary of the box.
    """

    objective: float
    duality_gap: float
    kkt_residual: float
    n_active: int


@dataclass(frozen=True)
class SurfaceLoss:
    """H (m, m) and h (m, q) as means over rows, and the required sum (m,) of each row of A: 0, and 1 for the
    constants."""

    H: np.ndarray
    h: np.ndarray
    total: np.ndarray

    @classmethod
    def of(cls, moments: Moments) -> SurfaceLoss:
        """The loss for one label per row: class targets sum to one, so Σ_j K_j^l = K_l and Σ_j NB_j = n."""
        K_l = moments.h.sum(axis=1)
        H = np.block([[moments.symmetric(), K_l[:, None]], [K_l, moments.n]])
        total = np.zeros(len(H))
        total[-1] = 1.0
        return cls(H / moments.n, np.vstack([moments.h, moments.totals]) / moments.n, total)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the coefficients A."""
        return self.h.shape

    def value(self, A: np.ndarray) -> np.ndarray:
        """F of one A, or of a stack (…, m, q): 2013 Eq. 4 divided by n, in O(q r²)."""
        return np.einsum("mq,...mq->...", self.h, A) - 0.5 * np.einsum("...mq,...mq->...", A, self.H @ A)

    def gradient(self, A: np.ndarray) -> np.ndarray:
        return self.h - self.H @ A

    def nearest(self, A: np.ndarray) -> np.ndarray:
        """The projection of A, or of a stack, onto the constraints."""
        return nearest_with_sum(A, self.total)

    def certificate(self, A: np.ndarray) -> Certificate:
        """The certificate of A, from its gradient alone, however A was found."""
        slope = self.gradient(A)
        # F is concave: F(B) ≤ F(A) + ⟨slope, B − A⟩, and sorting finds the B that maximises the right-hand side
        best = np.sum(np.sort(slope, axis=1)[:, ::-1] * _greedy_rows(self.total, self.shape[1]))
        gap = max(float(best - np.sum(slope * A)), 0.0)
        residual = float(np.abs(self.nearest(A + slope) - A).max())
        return Certificate(float(self.value(A)), gap, residual, int(np.count_nonzero(np.abs(A) > 1.0 - 1e-6)))


def _greedy_rows(total: np.ndarray, q: int) -> np.ndarray:
    """Rows (m, q) with values in [−1, 1] and the given sums, filled greedily from the left."""
    return np.clip(total[:, None] + q - 2.0 * np.arange(q), 0.0, 2.0) - 1.0


def nearest_with_sum(A: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The nearest array with values in [−1, 1] whose sums over the last axis are ``total``.

    The projection is A minus one shift per row, clipped. The sum decreases piecewise linearly with it, with kinks where
    a value reaches the boundary, so the shift is interpolated between two kinks.
    """
    centred = A + ((total - A.sum(axis=-1)) / A.shape[-1])[..., None]
    outside = (np.abs(centred) > 1.0).any(axis=-1)
    if not outside.any():
        return centred
    rows, wanted = centred[outside], np.broadcast_to(total, outside.shape)[outside]
    kinks = np.sort(np.concatenate([rows - 1.0, rows + 1.0], axis=-1))
    sums = np.clip(rows[:, None, :] - kinks[:, :, None], -1.0, 1.0).sum(axis=-1)
    after = np.clip((sums >= wanted[:, None]).sum(axis=-1), 1, kinks.shape[-1] - 1)[:, None]
    low, high = (np.take_along_axis(kinks, after - k, axis=-1)[:, 0] for k in (1, 0))
    more, less = (np.take_along_axis(sums, after - k, axis=-1)[:, 0] for k in (1, 0))
    share = np.divide(more - wanted, more - less, out=np.zeros_like(more), where=more > less)
    centred[outside] = np.clip(rows - (low + share * (high - low))[:, None], -1.0, 1.0)
    return centred
