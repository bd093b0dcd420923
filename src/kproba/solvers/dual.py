"""All distinct rows as centres with the RKHS penalty: kernel ridge regression in dual form.

Here Φ is the kernel matrix K itself, and (KΩK + ρK)θ = K Ωt̄ becomes (K + ρΩ⁻¹)θ = t̄, where Ω holds the weight of each
distinct row and t̄ its mean target. H is never formed, so the condition number is not squared. In symmetric form, with
M = Ω^½KΩ^½ and G = M(M + ρI)⁻¹, fitted values are Ω^-½GΩ^½t̄, and the leverage of one unit of weight of row z is
G_zz/Ω_z.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import linalg

from . import unlocked
from .cholesky import rounding_level, warn_singular

#: With fewer ridges than this, one Cholesky inverse per ridge is cheaper than an eigendecomposition.
RIDGES_WORTH_EIGEN = 4


class DualSolution(NamedTuple):
    """Fitted values (b, k) and leverages (b,) at the centres for one ridge; θ (b, k) is computed on call."""

    fitted: np.ndarray
    leverage: np.ndarray
    coef: Callable[[], np.ndarray]


def resolvable(ridge: float, diagonal: np.ndarray) -> float:
    """The total ridge, increased to the rounding level of a matrix M with this diagonal if it is smaller."""
    level = rounding_level(diagonal)
    if ridge >= level:
        return ridge
    warn_singular(len(diagonal), level)
    return level


@dataclass(frozen=True)
class Dual:
    """K (b, b), weight Ω (b,) and weighted target sums Ωt̄ (b, k) of the distinct rows."""

    K: np.ndarray
    weight: np.ndarray
    sums: np.ndarray

    def path(self, ridges: Sequence[float]) -> Iterator[DualSolution]:
        """The solution for every total ridge ρ."""
        diagonal = np.diagonal(self.K) * self.weight
        ridges = [resolvable(ridge, diagonal) for ridge in ridges]
        return self._by_eigen(ridges) if len(ridges) >= RIDGES_WORTH_EIGEN else self._by_cholesky(ridges)

    def _by_eigen(self, ridges):
        root = np.sqrt(self.weight)[:, None]
        values, vectors = linalg.eigh(self._weighted_gram(), driver="evd", overwrite_a=True, check_finite=False)
        values = np.maximum(values, 0.0)
        turned = vectors.T @ (self.sums / root)
        shrink = values[:, None] / (values[:, None] + ridges)  # (b, r): all ridges in two products
        leverage = (np.square(vectors) @ shrink) / self.weight[:, None]
        fitted = vectors @ (shrink[:, :, None] * turned[:, None, :]).reshape(len(values), -1)
        fitted = (fitted / root).reshape(len(values), len(ridges), -1)
        for r, ridge in enumerate(ridges):

            def coef(inverse=1.0 / (values + ridge)):
                return root * (vectors @ (turned * inverse[:, None]))

            yield DualSolution(fitted[:, r], leverage[:, r], coef)

    def _by_cholesky(self, ridges):
        """With B = (M + ρI)⁻¹ the hat matrix is G = I − ρB; B's diagonal is the squared column norms of L⁻¹."""
        root = np.sqrt(self.weight)[:, None]
        for ridge in ridges:
            lower, ridge = self._factored(ridge)
            scaled = unlocked.solve_factored(lower, self.sums / root)
            leverage = (1.0 - ridge * unlocked.diagonal_of_inverse(lower)) / self.weight
            fitted = self.sums / self.weight[:, None] - ridge * scaled / root
            yield DualSolution(fitted, leverage, partial(np.multiply, root, scaled))

    def _factored(self, ridge: float) -> tuple[np.ndarray, float]:
        """The factor of M + ρI, and ρ, increased if K is more indefinite than rounding errors explain."""
        while True:
            system = self._weighted_gram()
            np.einsum("ii->i", system)[:] += ridge
            lower = unlocked.factor(system)
            if lower is not None:
                return lower, ridge
            ridge *= 10.0
            warn_singular(len(system), ridge)

    def _weighted_gram(self) -> np.ndarray:
        root = np.sqrt(self.weight)
        system = np.array(self.K, order="C", dtype=np.float64)
        if not (self.weight == 1.0).all():
            system *= root[:, None]
            system *= root
        return system
