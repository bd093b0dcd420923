"""The learnt kernel of all pairs of rows of a sample, and its gradient.

Everything is float32 and of size P = m(m − 1)/2 for m rows, once for each column. The loops run over columns, so that
what they touch stays in the cache. Sums of float32 products are taken by ``einsum``, whose order of additions, unlike
that of BLAS, is the same on every processor: many steps would magnify the differences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels.additive import LEAST_PAIRS, room_for_pairs


@dataclass(frozen=True)
class Values:
    """The four kernels of all pairs (4, P) and of equal rows (4,), the columns' shares u, and max(1 − Σu², tiny)."""

    each: np.ndarray
    at_zero: np.ndarray
    share: np.ndarray
    room: float


class SamplePairs:
    """|x_ij − x_lj| for all pairs i < l of a sample and all columns j, with room for what is computed from them."""

    def __init__(self, m: int, d: int, has_sums: bool):
        first, second = np.triu_indices(m, 1)
        self.upper = (
            first * m + second
        )  # the place of every pair in an m × m matrix, in the order in which ``load`` writes them
        n_pairs = len(self.upper)
        self.m, self.has_sums = m, has_sums
        self.differences = np.empty((d, n_pairs), np.float32)
        self.powers = np.empty((d if has_sums else 0, n_pairs), np.float32)
        self.each, self.work = np.empty((4, n_pairs), np.float32), np.empty((2, n_pairs), np.float32)

    def load(self, X: np.ndarray) -> None:
        """Take the rows of another sample."""
        columns = np.ascontiguousarray(X.T, dtype=np.float32)
        start = 0
        for i in range(self.m - 1):
            stop = start + self.m - 1 - i
            np.subtract(columns[:, i + 1 :], columns[:, i : i + 1], out=self.differences[:, start:stop])
            start = stop
        np.abs(self.differences, out=self.differences)

    def values(self, weights: np.ndarray, widths: np.ndarray) -> Values:
        """The four kernels under column weights and widths, which are logarithms of rates: exp(widths + weights)."""
        rates, share = np.exp(widths[:, None] + weights).astype(np.float32), shares(weights)
        room = room_for_pairs(share)
        each = self.each
        each[:] = 0.0
        laplacian, gaussian, additive, squares = each
        work = self.work[0]
        for D, first, second in zip(self.differences, rates[0], rates[1]):
            np.multiply(D, first, out=work)
            laplacian -= work
            np.multiply(D, second, out=work)
            work *= work
            gaussian -= work
        np.exp(each[:2], out=each[:2])
        for D, E, rate, u in zip(self.differences, self.powers, rates[2], share.astype(np.float32)):
            np.multiply(D, -rate, out=E)
            np.exp(E, out=E)
            np.multiply(E, u, out=work)
            additive += work
            work *= work
            squares += work
        np.subtract(additive * additive, squares, out=squares)
        squares /= np.float32(room)  # now the pairs kernel
        sums = np.array([1.0, (1.0 - share @ share) / room]) * self.has_sums
        return Values(each, np.concatenate([np.ones(2), sums]), share, room)

    def gradient(self, values: Values, v: np.ndarray, trace: float, weights, widths, mixture) -> dict[str, np.ndarray]:
        """∂L by weights, widths and mixture, from v = ∂L/∂k of each pair (P,) and the sum of ∂L/∂k(x, x).

        METHODS §7, with the chain rule through each of the four kernels.
        """
        v, a, u = v.astype(np.float32), np.exp(mixture), values.share
        rates = np.exp(widths[:, None] + weights)
        along = [np.float32(a[i]) * v * values.each[i] for i in range(2)]
        by_width = np.zeros((3, len(weights)))
        work = self.work[0]
        for j, D in enumerate(self.differences):
            by_width[0, j] = _dot(D, along[0])
            np.multiply(D, D, out=work)
            by_width[1, j] = _dot(work, along[1])
        by_width[:2] *= np.stack([-rates[0], -2.0 * rates[1] ** 2])
        by_weights = np.zeros(len(weights))
        if self.has_sums:
            by_width[2], by_share = self._gradient_of_sums(values, v, trace, a)
            by_width[2] *= -rates[2]
            by_weights = 2.0 * u * (by_share - u @ by_share)  # u = softmax(2·weights)
        by_mixture = a * (np.array([_dot(each, v) for each in values.each]) + trace * values.at_zero)
        return {
            "weights": by_weights + by_width.sum(axis=0),
            "widths": by_width.sum(axis=1),
            "mixture": by_mixture * np.array([1.0, 1.0, self.has_sums, self.has_sums]),
        }

    def _gradient_of_sums(self, values: Values, v, trace: float, a) -> tuple[np.ndarray, np.ndarray]:
        """Of the additive and pairs kernels: −∂L/∂rate_j, and ∂L/∂u_j."""
        u, room, pairs = values.share, values.room, values.each[3]
        r = np.float32(2.0 * a[3] / room) * v
        p = np.float32(a[2]) * v + r * values.each[2]
        sums = np.empty((4, len(u)))
        squares, with_difference = self.work
        for j, (D, E) in enumerate(zip(self.differences, self.powers)):
            np.multiply(E, E, out=squares)
            np.multiply(E, D, out=with_difference)
            sums[:2, j] = _dot(p, E), _dot(p, with_difference)
            with_difference *= E
            sums[2:, j] = _dot(r, squares), _dot(r, with_difference)
        by_room = -trace if room == LEAST_PAIRS else _dot(v, pairs)
        return u * (sums[1] - u * sums[3]), sums[0] - u * sums[2] + 2.0 * a[3] / room * by_room * u


def _dot(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.einsum("i,i->", one, other))


def shares(weights: np.ndarray) -> np.ndarray:
    """u = softmax(2·weights): the share of each column in the additive kernel."""
    u = np.exp(2.0 * (weights - weights.max()))
    return u / u.sum()
