"""Curves of columns: monotone piecewise linear functions, such as the normal scores of ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from ..arrays import Device
from ..threads import map_independent

#: Scores of training rows lie within this many standard deviations and are interpolated between N_KNOTS values.
FARTHEST_SCORE, N_KNOTS = 3.0, 17
#: Values that are equal after rounding to a multiple of this are ties: ranks must not depend on rounding errors.
TIED = 2.0**-30
#: The interquartile range of the normal distribution. Scores are divided by it, as robust scaling would do.
QUARTILES_APART = 1.3489795003921634
#: Columns of more values in all are sorted on several threads, and scaled on a device if there is one.
MANY_VALUES = 1 << 18


@dataclass(frozen=True)
class Curves:
    """Maps ``knots`` to ``values`` in some columns, linearly between the knots and constantly beyond them.

    Both are (m, k) for ``columns`` (k,) and ascend in each column; a column with fewer knots repeats its last one.
    """

    columns: np.ndarray
    knots: np.ndarray
    values: np.ndarray

    def apply(self, Z: np.ndarray) -> None:
        """Replace columns of Z by their values."""
        for column, knots, values in zip(self.columns, self.knots.T, self.values.T):
            Z[:, column] = np.interp(Z[:, column], knots, values)

    def undo(self, Z: np.ndarray) -> None:
        """Replace values in columns of Z by what lies between the first and the last knot."""
        for column, knots, values in zip(self.columns, self.knots.T, self.values.T):
            Z[:, column] = np.interp(Z[:, column], values, knots)

    def on_device(self, device: Device, Z):
        """A copy of Z with the columns replaced."""
        xp = device.xp
        is_curved, start, *pieces = (device.put(part) for part in self.pieces(Z.shape[1]))
        low, high, slope = pieces
        curved = start + sum(slope[i, :] * (xp.clip(Z, low[i, :], high[i, :]) - low[i, :]) for i in range(low.shape[0]))
        return xp.where(is_curved, curved, Z)

    def pieces(self, n_columns: int) -> tuple[np.ndarray, ...]:
        """Which columns (d,) have curves, and these as sums start + Σ slope·(clip(x, low, high) − low).

        The least values are (d,), the ends and slopes of the pieces (m − 1, d).
        """
        knots, values = (np.zeros((len(self.knots), n_columns)) for _ in range(2))
        knots[:, self.columns], values[:, self.columns] = self.knots, self.values
        widths = np.diff(knots, axis=0)
        slope = np.divide(np.diff(values, axis=0), widths, out=np.zeros_like(widths), where=widths > 0)
        return np.isin(np.arange(n_columns), self.columns), values[0], knots[:-1], knots[1:], slope

    def at(self, share: float) -> Curves:
        """Curves between the values without a curve (0) and these (1)."""
        return replace(self, values=self.knots + share * (self.values - self.knots))

    def leaving(self, columns: tuple[int, ...]) -> Curves:
        """The same without some columns."""
        kept = ~np.isin(self.columns, columns)
        return Curves(self.columns[kept], self.knots[:, kept], self.values[:, kept])


def few(workers: int, n_values: int) -> int:
    """One worker for columns that take less time than it takes to start more."""
    return workers if n_values > MANY_VALUES else 1


def normal_scores(X: np.ndarray, weight: np.ndarray, columns: np.ndarray, farthest: float, workers: int = 1) -> Curves:
    """The quantiles of a normal distribution at the weighted ranks of the values in some columns of X.

    Beyond them the slope is one up to ±``farthest``: rows far from all others must not look like the outermost ones.
    """

    def of(column: int):
        return _continued(*_scores_of_column(X[:, column], weight), farthest)

    found = map_independent(of, list(columns), few(workers, X.size))
    most = max((len(knots) for knots, _ in found), default=1)
    padded = [np.pad(part, (0, most - len(part)), mode="edge") for pair in found for part in pair]
    both = np.array(padded, dtype=np.float64).reshape(len(columns), 2, most)
    return Curves(np.asarray(columns), *(np.ascontiguousarray(both[:, i].T) for i in range(2)))


def _scores_of_column(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some values and their scores. Tied values have the rank in the middle of their ties."""
    x = np.round(x / TIED) * TIED
    order = np.argsort(x)
    x, reached = x[order], np.cumsum(weight[order])
    last = np.flatnonzero(np.append(x[1:] != x[:-1], True))
    x, reached = x[last], reached[last] / reached[-1]
    # rounded, because sums of weights and counts of repeated rows must give the same result
    scores = np.round(ndtri((np.append(0.0, reached[:-1]) + reached) / 2), 9)
    scores = np.clip(scores, -FARTHEST_SCORE, FARTHEST_SCORE)
    picks = np.arange(len(x))
    if len(x) > N_KNOTS:  # the first and the last score, and some between them that are about equally far apart
        picks = np.unique(np.searchsorted(scores, np.linspace(scores[0], scores[-1], N_KNOTS)))
    return x[picks], scores[picks] / QUARTILES_APART


def _continued(x: np.ndarray, scores: np.ndarray, farthest: float) -> tuple[np.ndarray, np.ndarray]:
    ends = np.array([-farthest, farthest])
    first, last = scores[[0, -1]] + ends - x[[0, -1]]
    return np.concatenate([ends[:1], x, ends[1:]]), np.concatenate([[first], scores, [last]])
