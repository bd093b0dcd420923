r"""Exact Shapley values of sums over centres.

The game of one row x and one centre z is v(S) = Π_{j∈S} p_j · Π_{j∉S} a_j for a product kernel, with factors
p_j = e_j(x_j, z_j) of columns that are present and a_j of columns that are absent. Its Shapley values are integrals
over the share t of present columns (Owen, 1972, Multilinear extensions of games),

.. math:: \varphi_j = (p_j - a_j)\int_0^1 \prod_{i\neq j} \big((1-t)\,a_i + t\,p_i\big)\,dt.

Gauss–Legendre quadrature of the polynomial is exact, and the factors are positive, so nothing cancels. Sums and sums
over pairs are the same integral with fewer factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, sqrt
from typing import Any

import numpy as np
from scipy.special import roots_legendre

from ..arrays import Device
from ..kernels.by_column import ByColumn
from ..threads import map_independent, row_slices

#: Memory for the factors of one tile, on the CPU (part of the cache) and on a device.
TILE_BYTES, DEVICE_TILE_BYTES = 1 << 19, 1 << 28
#: A column with more values is represented by this many quantiles.
MOST_VALUES = 500
TINY = float(np.finfo(np.float64).tiny)


@lru_cache(maxsize=32)
def quadrature(d: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights on [0, 1] for products of d − 1 linear functions that are positive there.

    ⌈d/2⌉ nodes are exact. With x = cos θ each factor is (a + p)/2 + (p − a)/2·cos θ, so the k-th Chebyshev coefficient
    of the product is at most the probability that a random walk of d − 1 steps ends in ±k, times Π max(a, p). By
    Hoeffding's inequality q nodes leave an error of at most 4·exp(−4q²/(d − 1)) times Π max(a, p): with 3√(d − 1) nodes
    less than 1e-15, which is rounding error.
    """
    nodes, weights = roots_legendre(max(1, min(ceil(d / 2), ceil(3 * sqrt(d - 1)))))
    return tuple(zip((0.5 + 0.5 * nodes).tolist(), (0.5 * weights).tolist()))


def of_products(xp, present, absent):
    """Shapley values (d, n, b) of Π_j for factors (d, n, b)."""
    change = present - absent
    total = xp.zeros_like(change)
    for t, weight in quadrature(change.shape[0]):
        mixed = absent + t * change
        product = weight * xp.prod(mixed, axis=0)
        # change/mixed is at most 1/t or 1/(1 − t); where both factors are zero it is zero
        mixed = change / (mixed + TINY)
        mixed *= product
        total += mixed
    return total


def of_pairs(xp, present, absent):
    """Shapley values of Σ_{i≠j} e_i·e_j: every pair is shared by its two columns."""
    mixed = 0.5 * (present + absent)
    return 2.0 * (present - absent) * (xp.sum(mixed, axis=0) - mixed)


@dataclass(frozen=True)
class Game:
    """How the functions of the columns (d, n, b) are combined, and how that is shared among the columns."""

    combined: Callable[[Any, Any], Any]
    shared: Callable[[Any, Any, Any], Any]


GAMES = {
    "product": Game(lambda xp, e: xp.prod(e, axis=0), of_products),
    "sum": Game(lambda xp, e: xp.sum(e, axis=0), lambda xp, present, absent: present - absent),
    "pairs": Game(lambda xp, e: xp.sum(e, axis=0) ** 2 - xp.sum(e * e, axis=0), of_pairs),
}
GAMES["inner pairs"] = GAMES["sum"]


@dataclass(frozen=True)
class Arrays:
    """Where arrays are: NumPy on ``workers`` threads, or a device."""

    device: Device | None = None
    workers: int = 1

    @property
    def xp(self) -> Any:
        return np if self.device is None else self.device.xp

    @property
    def tile_bytes(self) -> int:
        return TILE_BYTES if self.device is None else DEVICE_TILE_BYTES

    def put(self, array):
        return np.asarray(array, dtype=np.float64) if self.device is None else self.device.put(array, np.float64)

    def get(self, array) -> np.ndarray:
        return array if self.device is None else self.device.get(array)

    def map(self, function: Callable, items: list) -> list:
        return map_independent(function, items, self.workers if self.device is None else 1)


@dataclass(frozen=True)
class Term:
    """A term of the kernel as a game of players, each of which is a group of columns."""

    combine: str
    within: Callable[[Any, Any], Any]
    of_column: Callable[[int, Any, Any], Any]
    groups: tuple[tuple[int, ...], ...]
    amplitude: float

    @property
    def function(self) -> tuple[Any, Any]:
        """What :meth:`of_player` depends on; terms that share it share their means."""
        return self.of_column, self.within

    def of_player(self, xp, g: int, X, Z):
        """The function of the columns of player g (n, b) for rows X (n, d) and centres Z (b, d)."""
        with np.errstate(over="ignore"):  # of distances between remote values, whose kernel is zero
            columns = [self.of_column(j, X[:, j, None], Z[None, :, j]) for j in self.groups[g]]
        return columns[0] if len(columns) == 1 and self.combine != "inner pairs" else self.within(xp, xp.stack(columns))


def as_games(terms: tuple[ByColumn, ...], groups: tuple[tuple[int, ...], ...]) -> Iterator[Term]:
    """The terms of a kernel as games. Pairs of columns of the same player are a part of their own, a plain sum."""
    for term in terms:
        rest = term.of_column, groups, term.amplitude
        yield Term(term.combine, GAMES["sum" if term.combine == "pairs" else term.combine].combined, *rest)
        if term.combine == "pairs" and max(map(len, groups)) > 1:
            yield Term("inner pairs", GAMES["pairs"].combined, *rest)


@dataclass(frozen=True)
class KernelSum:
    """f(x) = Σ_b coef_b·k(x, z_b) with a kernel that is a sum of ``terms``; centers (b, d) and coef (b, c)."""

    terms: tuple[ByColumn, ...]
    centers: Any
    coef: Any
    arrays: Arrays

    @classmethod
    def of(cls, terms: tuple[ByColumn, ...], centers: np.ndarray, coef: np.ndarray, arrays: Arrays) -> KernelSum:
        return cls(terms, arrays.put(centers), arrays.put(coef), arrays)

    def explain(
        self, X: np.ndarray, background: np.ndarray, independent: bool, groups: Sequence[Sequence[int]] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Shapley values (n, p, c) of the players and base values (c,), the outputs if all players are absent.

        Players are groups of columns, by default single columns. Absent ones are averaged over the background, each
        player on its own if ``independent``, otherwise as whole rows.
        """
        groups = [(j,) for j in range(X.shape[1])] if groups is None else groups
        players = [g for g, group in enumerate(groups) if len(group)]  # columns that the model does not use get zero
        parts = tuple(tuple(groups[g]) for g in players)
        absent = ColumnByColumn(self, background, parts) if independent else WholeRows(self, background)
        found, base = np.zeros((len(X), len(players), self.coef.shape[1])), np.zeros(self.coef.shape[1])
        for term in as_games(self.terms, parts) if self.centers.shape[0] else ():
            for usual, share in absent.functions(term):
                base += share * self._base(term, usual)
                self._add(found, term, self.arrays.put(X), usual, share * term.amplitude)
        values = np.zeros((len(X), len(groups), self.coef.shape[1]))
        values[:, players] = found
        return values, base

    def factors(self, term: Term, X, centers: slice = slice(None)):
        """The functions of all players (p, n, b) for rows X and some centres."""
        Z = self.centers[centers, ...]
        return self.arrays.xp.stack([term.of_player(self.arrays.xp, g, X, Z) for g in range(len(term.groups))])

    def _base(self, term: Term, absent) -> np.ndarray:
        combined = GAMES[term.combine].combined(self.arrays.xp, absent)
        return term.amplitude * self.arrays.get(combined @ self.coef)[0]

    def _add(self, values: np.ndarray, term: Term, X, absent, amplitude: float) -> None:
        """Add the Shapley values of one term to ``values``, tile by tile."""
        (p, _, b), game = absent.shape, GAMES[term.combine]
        blocks = row_slices(b, 8 * p, self.arrays.tile_bytes)

        def fill(rows: slice) -> None:
            for centers in blocks:
                present = self.factors(term, X[rows, ...], centers)
                shared = game.shared(self.arrays.xp, present, absent[:, :, centers])
                part = self.arrays.get(shared @ self.coef[centers, ...])
                values[rows] += amplitude * np.moveaxis(part, 0, 1)

        self.arrays.map(fill, row_slices(X.shape[0], 8 * p * min(b, blocks[0].stop), self.arrays.tile_bytes))


@dataclass(frozen=True)
class WholeRows:
    """Absent columns take their values from the rows of the background, one row at a time."""

    score: KernelSum
    background: np.ndarray

    def functions(self, term: Term) -> Iterator[tuple[Any, float]]:
        """The functions of absent players (p, 1, b), and the share of each background row."""
        for row in self.background:
            yield self.score.factors(term, self.score.arrays.put(row[None, :])), 1.0 / len(self.background)


class ColumnByColumn:
    """Every absent player takes its values from the background on its own: the mean functions say it all."""

    def __init__(self, score: KernelSum, background: np.ndarray, groups: tuple[tuple[int, ...], ...]) -> None:
        self.score, self.background = score, background
        self.shares = [distribution(background[:, group]) for group in groups]
        self.means: dict[Any, Any] = {}

    def functions(self, term: Term) -> Iterator[tuple[Any, float]]:
        if term.function not in self.means:
            arrays, players = self.score.arrays, list(range(len(term.groups)))
            self.means[term.function] = arrays.xp.stack(arrays.map(lambda g: self._mean(term, g), players))
        yield self.means[term.function], 1.0

    def _mean(self, term: Term, g: int):
        """The mean function of a player (1, b)."""
        arrays, centers, (rows, share) = self.score.arrays, self.score.centers, self.shares[g]
        X, share = arrays.put(self.background[rows]), arrays.put(share)
        blocks = row_slices(len(rows), 8 * centers.shape[0], arrays.tile_bytes)
        return sum(share[None, part] @ term.of_player(arrays.xp, g, X[part, ...], centers) for part in blocks)


def distribution(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the distinct rows of ``values`` (m, k) and their shares, or that many quantiles of them."""
    flat = values[:, 0] if values.shape[1] == 1 else values  # sorts numbers, which is faster than rows
    _, rows, counts = np.unique(flat, axis=0, return_index=True, return_counts=True)
    if len(rows) <= MOST_VALUES:
        return rows, counts / len(values)
    places = ((np.arange(MOST_VALUES) + 0.5) * len(values) / MOST_VALUES).astype(int)
    return np.lexsort(values.T[::-1])[places], np.full(MOST_VALUES, 1.0 / MOST_VALUES)
