"""Exact leave-one-out scores of a sample under a learnt kernel, and the gradient through them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from .pairs import SamplePairs
from .parameters import Layout


class LeaveOneOut(NamedTuple):
    """Exact leave-one-out of ridge regression with kernel matrix G = K + ν/w (METHODS §7): Γ = G⁻¹, α = ΓY."""

    scores: np.ndarray
    inverse: np.ndarray
    alpha: np.ndarray
    blocks: list[np.ndarray] | None

    @classmethod
    def of(cls, G: np.ndarray, Y: np.ndarray, blocks: list[np.ndarray] | None = None) -> LeaveOneOut:
        """Leave out single rows, s = Y − α/γ with γ = diag Γ, or the rows of each block together: Y − Γ_gg⁻¹α_g.

        Only the upper triangle of G is read; G is overwritten by its inverse.
        """
        factor, info = linalg.lapack.dpotrf(G.T, lower=1, overwrite_a=1, clean=0)
        if info:
            raise np.linalg.LinAlgError("The kernel matrix of a sample is not positive definite.")
        inverse = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)[0].T
        np.copyto(inverse, inverse.T, where=np.tri(len(Y), k=-1, dtype=bool))
        found = cls(Y, inverse, inverse @ Y, blocks)
        return found._replace(scores=Y - found._divided(found.alpha))

    def _divided(self, values: np.ndarray) -> np.ndarray:
        """values/γ, or Γ_gg⁻¹·values_g for every block."""
        if self.blocks is None:
            return values / np.diagonal(self.inverse)[:, None]
        out = np.empty_like(values)
        for rows in self.blocks:
            out[rows] = linalg.solve(self.inverse[np.ix_(rows, rows)], values[rows], assume_a="pos")
        return out

    def gradient(self, R: np.ndarray) -> np.ndarray:
        """∂L/∂K (m, m), from R = ∂L/∂s: Γ(Bαᵀ − (Beᵀ)Γ), made symmetric, with B = R/γ and e = α/γ.

        METHODS §7. Of Beᵀ only the diagonal counts, or its blocks, because the rest never meets a row's own score.
        """
        B, e = self._divided(R), self._divided(self.alpha)
        if self.blocks is None:
            pulled = np.einsum("ik,ik->i", B, e)[:, None] * self.inverse
        else:
            pulled = np.empty_like(self.inverse)
            for rows in self.blocks:
                pulled[rows] = (B[rows] @ e[rows].T) @ self.inverse[rows]
        whole = self.inverse @ (B @ self.alpha.T - pulled)
        return 0.5 * (whole + whole.T)


class Sample:
    """Some rows on the CPU; the memory is kept from one sample to the next."""

    def __init__(self, m: int, layout: Layout):
        self.pairs = SamplePairs(m, layout.n_columns, layout.has_sums)
        self._G = np.empty((m, m))

    def load(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, blocks: list[np.ndarray] | None) -> None:
        """Take other rows."""
        self.pairs.load(X)
        self._Y, self._weight, self._blocks = Y, weight, blocks

    def scores(self, part: dict[str, np.ndarray]) -> np.ndarray:
        """Leave-one-out scores (m, c) under some parameters."""
        pairs, G = self.pairs, self._G
        self._values = pairs.values(part["weights"], part["widths"])
        amplitudes = np.exp(part["mixture"])
        self._noise = float(np.exp(part["noise"][0])) / self._weight
        G.reshape(-1)[pairs.upper] = np.einsum("k,kp->p", amplitudes.astype(np.float32), self._values.each)
        np.fill_diagonal(G, amplitudes @ self._values.at_zero + self._noise)
        self._found = LeaveOneOut.of(G, self._Y, self._blocks)
        return self._found.scores

    def gradient(self, part: dict[str, np.ndarray], R: np.ndarray) -> dict[str, np.ndarray]:
        """∂L by weights, widths, mixture and noise, from R = ∂L/∂s of the scores that were computed last."""
        V = self._found.gradient(R)
        diagonal = np.diagonal(V)
        v, trace = 2.0 * V.reshape(-1)[self.pairs.upper], float(diagonal.sum())
        kernel = self.pairs.gradient(self._values, v, trace, part["weights"], part["widths"], part["mixture"])
        return {**kernel, "noise": diagonal @ self._noise}


def blocks_of(together: np.ndarray | None, rows=slice(None)) -> list[np.ndarray] | None:
    """The places of each group among some rows; None if there are no groups."""
    if together is None:
        return None
    number = np.unique(together[rows], return_inverse=True)[1].ravel()
    return np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])
