"""Exact leave-one-out scores of a sample under a learnt kernel, and the gradient through them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from ...solvers import unlocked
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
        inverse = unlocked.inverse(G)
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

    def gradient(self, R: np.ndarray, room: np.ndarray) -> np.ndarray:
        """∂L/∂K (m, m), from R = ∂L/∂s: Γ(Bαᵀ − (Beᵀ)Γ), made symmetric, with B = R/γ and e = α/γ.

        METHODS §7. Of Beᵀ only the diagonal counts, or its blocks, because the rest never meets a row's own score. The
        result is the upper triangle of the first matrix of ``room`` (3, m, m); new memory for each step would take
        longer than the products.
        """
        B, e = self._divided(R), self._divided(self.alpha)
        pulled, out = 0.5 * (self.inverse @ B), room[0]
        np.matmul(np.hstack([pulled, self.alpha]), np.hstack([self.alpha, pulled]).T, out=out)
        if self.blocks is None:
            return self._subtract_by_rows(np.einsum("ik,ik->i", B, e), room)
        for rows in self.blocks:
            room[1, rows] = (B[rows] @ e[rows].T) @ self.inverse[rows]
        whole = np.matmul(self.inverse, room[1], out=room[2])
        out -= 0.5 * (whole + whole.T)
        return out

    def _subtract_by_rows(self, t: np.ndarray, room: np.ndarray) -> np.ndarray:
        """Subtract Γ·diag(t)·Γ from the upper triangle of the first matrix.

        A matrix AᵀA is symmetric, which halves the work, so there is one product for each sign of t.
        """
        out, roots = room[:2]
        order, n_plus = np.argsort(t < 0, kind="stable"), np.count_nonzero(t >= 0)
        np.take(self.inverse, order, axis=0, out=roots, mode="clip")
        roots *= np.sqrt(np.abs(t[order]))[:, None]
        unlocked.add_gram(roots[:n_plus], -1.0, out)
        unlocked.add_gram(roots[n_plus:], 1.0, out)
        return out


def leave_one_out_scores(G: np.ndarray, Y: np.ndarray, blocks: list[np.ndarray] | None = None) -> np.ndarray:
    """The scores alone: the squared column norms of a triangular inverse are the diagonal of G⁻¹, for less work."""
    if blocks is not None:
        return LeaveOneOut.of(G, Y, blocks).scores
    lower = unlocked.factor_or_raise(G)
    alpha = unlocked.solve_factored(lower, Y)
    return Y - alpha / unlocked.diagonal_of_inverse(lower)[:, None]


class Sample:
    """Some rows on the CPU; the memory is kept from one sample to the next."""

    def __init__(self, m: int, layout: Layout):
        self.pairs = SamplePairs(m, layout.n_columns, layout.has_sums, layout.categorical)
        self._G, self._room = np.empty((m, m)), np.empty((3, m, m))

    def load(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, blocks: list[np.ndarray] | None) -> None:
        """Take other rows."""
        self.pairs.load(X)
        self._Y, self._weight, self._blocks = Y, weight, blocks

    def scores(self, part: dict[str, np.ndarray]) -> np.ndarray:
        """Leave-one-out scores (m, c) under some parameters."""
        pairs, G = self.pairs, self._G
        self._values = pairs.values(weights_of_kernels(part), part["widths"])
        amplitudes = np.exp(part["mixture"])
        self._noise = float(np.exp(part["noise"][0])) / self._weight
        pairs.put(np.einsum("k,kp->p", amplitudes.astype(np.float32), self._values.each), G)
        np.fill_diagonal(G, amplitudes @ self._values.at_zero + self._noise)
        self._found = LeaveOneOut.of(G, self._Y, self._blocks)
        return self._found.scores

    def gradient(self, part: dict[str, np.ndarray], R: np.ndarray) -> dict[str, np.ndarray]:
        """∂L by weights, factors, widths, mixture and noise, from R = ∂L/∂s of the scores that were computed last."""
        V = self._found.gradient(R, self._room)
        diagonal = np.diagonal(V)
        v, trace = 2.0 * self.pairs.taken_once(V), float(diagonal.sum())
        weights = weights_of_kernels(part)
        kernel = self.pairs.gradient(self._values, v, trace, weights, part["widths"], part["mixture"])
        columns = {"weights": kernel["weights"].sum(axis=0), "factors": kernel["weights"].ravel()}
        return {**kernel, **columns, "noise": diagonal @ self._noise}


def weights_of_kernels(part: dict[str, np.ndarray]) -> np.ndarray:
    """Logarithms of the weights in the Laplacian, in the Gaussian, and in the other two kernels (3, d)."""
    return part["weights"] + part["factors"].reshape(3, -1)


def blocks_of(together: np.ndarray | None, rows=slice(None)) -> list[np.ndarray] | None:
    """The places of each group among some rows; None if there are no groups."""
    if together is None:
        return None
    number = np.unique(together[rows], return_inverse=True)[1].ravel()
    return np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])
