"""The learnt kernel of all pairs of rows of a sample, and its gradient.

Differences of numbers are float32 and of size P, about m²/2 for m rows, once for each column. The loops run over blocks
of pairs with all of their columns. Sums of float32 products are taken by ``einsum``, whose order of additions, unlike
that of BLAS, is the same on every processor: many steps would magnify the differences. The Gaussian, and columns of two
values or of codes (:mod:`.matches`), are matrix products in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels.additive import LEAST_PAIRS, room_for_pairs
from ...threads import row_slices
from .matches import Matches

#: Pairs times columns of a block. Smaller ones would fit into a faster cache, but threads would wait for the
#: interpreter's lock more often.
BLOCK = 1 << 18


@dataclass(frozen=True)
class Values:
    """The four kernels of all pairs (4, P) and of equal rows (4,), the columns' shares u, and max(1 − Σu², tiny)."""

    each: np.ndarray
    at_zero: np.ndarray
    share: np.ndarray
    room: float


class SamplePairs:
    """All pairs of rows of a sample, with room for what is computed from them.

    A pair is a row and one of the m // 2 rows after it, the first row following the last one. If m is even, the pairs
    that are m/2 apart occur twice, and ``taken_once`` counts them once.
    """

    def __init__(self, m: int, d: int, has_sums: bool, categorical: tuple[int, ...] = ()):
        self.m, self.n_after, self.has_sums, self.categorical = m, m // 2, has_sums, categorical
        first = np.arange(m)[:, None]
        second = (first + np.arange(1, self.n_after + 1)) % m
        self._upper = (np.minimum(first, second) * m + np.maximum(first, second)).ravel()
        self._repeated = np.arange(m // 2 if m % 2 == 0 else 0) * self.n_after + self.n_after - 1
        n_pairs = len(self._upper)
        self._differences = np.empty((d, n_pairs), np.float32)
        self._powers = np.empty((d if has_sums else 0, n_pairs), np.float32)
        self._block = np.empty(max(BLOCK, d), np.float32)
        self.each, self.work = np.empty((4, n_pairs), np.float32), np.empty((3, n_pairs), np.float32)
        self._matrix, self._triangle, self._taken = np.empty((m, m)), np.zeros((m, m)), np.empty(n_pairs)

    def taken(self, A: np.ndarray) -> np.ndarray:
        """The pairs (P,) in the upper triangle of a matrix (m, m), valid until the next call."""
        return np.take(A.reshape(-1), self._upper, out=self._taken, mode="clip")

    def taken_once(self, A: np.ndarray) -> np.ndarray:
        """The same, but of pairs that occur twice the first one is zero."""
        values = self.taken(A)
        values[self._repeated] = 0.0
        return values

    def put(self, values: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write values of pairs (P,) into the upper triangle of a matrix (m, m); the second of two is what counts."""
        out.reshape(-1)[self._upper] = values
        return out

    def load(self, X: np.ndarray) -> None:
        """Take the rows of another sample."""
        X = X.astype(np.float32)
        self.matches = Matches(X, self.categorical)
        self.numbers = self.matches.others
        self._X = X[:, self.numbers].astype(np.float64)
        self._X -= self._X.mean(axis=0)  # or squared distances would be differences of large numbers
        columns = np.ascontiguousarray(X[:, self.numbers].T)
        k = len(columns)
        self.differences, self.powers = self._differences[:k], self._powers[:k]
        self._blocks = row_slices(self._differences.shape[1], k, BLOCK) if k else []
        if k and self.n_after:
            around = np.concatenate([columns[:, 1:], columns[:, : self.n_after]], axis=1)
            after = np.lib.stride_tricks.sliding_window_view(around, self.n_after, axis=1)
            np.subtract(after, columns[:, :, None], out=self.differences.reshape(k, self.m, self.n_after))
            np.abs(self.differences, out=self.differences)

    def values(self, weights: np.ndarray, widths: np.ndarray) -> Values:
        """The four kernels under column weights (3, d) and widths (3,); their sums are logarithms of rates."""
        rates, share = np.exp(widths[:, None] + weights), shares(weights[2])
        room, each = room_for_pairs(share), self.each
        laplacian, gaussian, additive, squares = each
        self._write_distances(rates, laplacian, gaussian)
        np.exp(np.negative(each[:2], out=each[:2]), out=each[:2])
        each[2:] = 0.0
        if self.has_sums:
            self._write_sums(rates[2], share, additive, squares)
            np.subtract(np.multiply(additive, additive, out=self.work[0]), squares, out=squares)
            squares /= np.float32(room)  # now the pairs kernel
        sums = np.array([1.0, (1.0 - share @ share) / room]) * self.has_sums
        return Values(each, np.concatenate([np.ones(2), sums]), share, room)

    def _write_distances(self, rates: np.ndarray, manhattan: np.ndarray, squared: np.ndarray) -> None:
        """Σ_j rate_j·Δ_j and Σ_j (rate_j·Δ_j)², with the rates of the first and second kernel."""
        matches, numbers = self.matches, self.numbers
        np.einsum("j,jp->p", rates[0, numbers].astype(np.float32), self.differences, out=manhattan)
        X = self._X * rates[1, numbers]
        norms = np.einsum("ij,ij->i", X, X)
        squares = np.matmul(-2.0 * X, X.T, out=self._matrix)
        squares += norms
        squares += norms[:, None]
        squared[:] = self.taken(squares)
        if len(matches.places):
            costs = rates[:2, matches.places] * matches.gap
            manhattan += self.taken(matches.sums(costs[0], self._matrix))
            squared += self.taken(matches.sums(costs[1] ** 2, self._matrix))

    def _write_sums(self, rates: np.ndarray, share: np.ndarray, total: np.ndarray, squares: np.ndarray) -> None:
        """Σ_j u_j·E_j and Σ_j (u_j·E_j)², with E_j = exp(−rate_j·Δ_j)."""
        numbers, matches = self.numbers, self.matches
        rate, u = rates[numbers, None].astype(np.float32), share[numbers, None].astype(np.float32)
        for block in self._blocks:
            weighed = np.multiply(self.differences[:, block], -rate, out=self.powers[:, block])
            np.exp(weighed, out=weighed)
            weighed *= u
            np.sum(weighed, axis=0, out=total[block])
            np.sum(np.multiply(weighed, weighed, out=self._like(weighed)), axis=0, out=squares[block])
        if len(matches.places):
            u, cost = share[matches.places], rates[matches.places] * matches.gap
            for k, out in ((1, total), (2, squares)):  # (u·E)ᵏ = uᵏ·(1 − (1 − exp(−k·cost))·δ)
                out += np.float32(np.sum(u**k))
                out += self.taken(matches.sums(u**k * np.expm1(-k * cost), self._matrix))

    def gradient(self, values: Values, v: np.ndarray, trace: float, weights, widths, mixture) -> dict[str, np.ndarray]:
        """∂L by weights (3, d), widths and mixture, from v = ∂L/∂k of each pair (P,) and the sum of ∂L/∂k(x, x).

        METHODS §7, with the chain rule through each of the four kernels.
        """
        v, a, u = v.astype(np.float32), np.exp(mixture), values.share
        rates, by_rate = np.exp(widths[:, None] + weights), np.zeros(weights.shape)
        along = np.multiply(values.each[:2], v, out=self.work[:2])
        along *= a[:2, None].astype(np.float32)
        by_rate[:2] = self._gradient_of_distances(*along) * np.stack([-rates[0], -2.0 * rates[1] ** 2])
        by_share = np.zeros(len(u))
        if self.has_sums:
            by_rate[2], by_share = self._gradient_of_sums(values, v, trace, a, rates[2])
            by_rate[2] *= -rates[2]
        by_weights = by_rate.copy()
        by_weights[2] += 2.0 * (by_share - u * by_share.sum())  # u = softmax(2·weights)
        by_mixture = a * (np.array([_dot(each, v) for each in values.each]) + trace * values.at_zero)
        return {
            "weights": by_weights,
            "widths": by_rate.sum(axis=1),
            "mixture": by_mixture * np.array([1.0, 1.0, self.has_sums, self.has_sums]),
        }

    def _gradient_of_distances(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Σ first·Δ_j and Σ second·Δ_j² over all pairs, for each column (2, d)."""
        X, numbers, matches = self._X, self.numbers, self.matches
        found = np.empty((2, len(numbers) + len(matches.places)))
        found[0, numbers] = np.einsum("jp,p->j", self.differences, first)
        W = self.put(second, self._triangle)
        found[1, numbers] = (W.sum(axis=0) + W.sum(axis=1)) @ X**2 - 2.0 * np.einsum("ij,ij->j", X, W @ X)
        if len(matches.places):
            found[1, matches.places] = matches.totals(W) * matches.gap**2
            found[0, matches.places] = matches.totals(self.put(first, W)) * matches.gap
        return found

    def _gradient_of_sums(self, values: Values, v, trace: float, a, rates) -> tuple[np.ndarray, np.ndarray]:
        """Of the additive and pairs kernels: −∂L/∂rate_j, and u_j·∂L/∂u_j."""
        u, room, pairs = values.share, values.room, values.each[3]
        by_rate, by_share, (r, p, of_additive) = np.zeros(len(u)), np.zeros(len(u)), self.work
        np.multiply(v, np.float32(2.0 * a[3] / room), out=r)
        np.multiply(r, values.each[2], out=p)
        p += np.multiply(v, np.float32(a[2]), out=of_additive)
        for block in self._blocks:  # Σ u·E·(p − r·u·E), and the same times Δ
            weighed = self.powers[:, block]
            by_pair = np.multiply(weighed, r[block], out=self._like(weighed))
            np.subtract(p[block], by_pair, out=by_pair)
            by_pair *= weighed
            by_share[self.numbers] += np.einsum("jp->j", by_pair)
            by_rate[self.numbers] += np.einsum("jp,jp->j", by_pair, self.differences[:, block])
        if len(self.matches.places):
            sums, of_these = self._sums_of_matches(p, r, rates), u[self.matches.places]
            by_share[self.matches.places] = of_these * (sums[0] - of_these * sums[2])
            by_rate[self.matches.places] = of_these * (sums[1] - of_these * sums[3])
        by_room = -trace if room == LEAST_PAIRS else _dot(v, pairs)
        return by_rate, by_share + 2.0 * a[3] / room * by_room * u**2

    def _like(self, block: np.ndarray) -> np.ndarray:
        """Room for intermediate results of the size of a block."""
        return self._block[: block.size].reshape(block.shape)

    def _sums_of_matches(self, p: np.ndarray, r: np.ndarray, rates: np.ndarray) -> list[np.ndarray]:
        """Σ p·E, Σ p·E·Δ, Σ r·E² and Σ r·E²·Δ, where E = 1 − (1 − e)·δ and Δ = gap·δ."""
        matches, out = self.matches, []
        for k, v in ((1, p), (2, r)):
            lost = np.expm1(-k * rates[matches.places] * matches.gap)
            W = self.put(v, self._triangle)
            apart = matches.totals(W)
            out += [W.sum() + lost * apart, matches.gap * (1.0 + lost) * apart]
        return out


def _dot(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.einsum("i,i->", one, other))


def shares(weights: np.ndarray) -> np.ndarray:
    """u = softmax(2·weights): the share of each column in the additive kernel."""
    u = np.exp(2.0 * (weights - weights.max()))
    return u / u.sum()
