"""All rows of a source in memory, if they are few enough for each to become a centre."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import to_numpy
from .all_rows import AllRows
from .copies import with_units
from .encoding import Encoding
from .rows import Rows
from .sweep import Statistic

#: Most rows, and most bytes of their float64 values.
MOST_ROWS, MOST_BYTES = 250_000, 128 << 20


@dataclass
class Collected:
    """Encoded inputs (n, d), class codes and weights (n,) of the rows read so far."""

    X: np.ndarray
    codes: np.ndarray
    weight: np.ndarray

    def __add__(self, other: Collected) -> Collected:
        parts = ((self.X, other.X), (self.codes, other.codes), (self.weight, other.weight))
        return Collected(*map(np.concatenate, parts))


@dataclass(frozen=True)
class CollectedOf(Statistic):
    """The rows themselves as a statistic for a pass over a source."""

    encoding: Encoding
    n_features: int

    @property
    def identity(self):
        return "rows", self.encoding

    def zero(self) -> Collected:
        return Collected(np.empty((0, self.n_features)), np.empty(0, dtype=np.intp), np.empty(0))

    def add(self, total: Collected, chunk) -> Collected:
        for part in self.encoding.parts(chunk, 0):
            total = total + Collected(to_numpy(part.X), part.codes, part.weight)
        return total


def collected(everything: AllRows, categorical: tuple[int, ...] = ()) -> Rows | None:
    """The distinct rows of a source, sorted by their keys and not scaled; None if they are too many."""
    n, d = everything.n_rows, everything.source.n_features
    if n > MOST_ROWS or 8 * n * d > MOST_BYTES:
        return None
    classes, factors = everything.classes, everything.factors
    found = everything.sum(CollectedOf(Encoding(classes, np.ones_like(factors)), d), "rows")
    factor = factors[found.codes]
    rows = Rows.of(found.X, found.codes, found.weight, len(classes), factor, categorical=categorical)
    return with_units(rows.merged(by_key=True)[0])[0]
