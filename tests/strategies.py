"""Tables that break shortcuts: few distinct rows, ties, zeros, copies under other labels, one-row classes."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

#: What the values of a column are drawn from. All of them are exact in float16, so that every type holds the same rows.
PALETTES = (
    (0.0, 1.0),
    (0.0,),
    (1.0,),
    (-1.0, 0.0, 1.0),
    (0.0, 0.0, 0.0, 1.0),
    (-0.0, 0.0, 2.0),
    tuple(np.arange(-8, 9) / 4),
    tuple(np.arange(-64, 65) / 32),
)


class Table(NamedTuple):
    """Rows, their class numbers (every class has a row of positive weight) and their weights."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def counted(self) -> Table:
        """The rows of positive weight."""
        return Table(*(part[self.weight > 0] for part in self))

    @property
    def repeated(self) -> Table:
        """Every row as often as its weight says."""
        again = np.repeat(np.arange(len(self.y)), self.weight.astype(int))
        return Table(self.X[again], self.y[again], np.ones(len(again)))


#: Weights are ones, counts with zeros among them, or fractions on both sides of one.
WEIGHTS = {"none": (1.0,), "counts": (0.0, 1.0, 2.0, 3.0), "fractions": (0.0, 0.25, 1.0, 1.75, 3.5)}


@st.composite
def tables(draw, rows=(4, 14), columns=(1, 3), classes=(2, 4), weights=("none", "counts", "fractions")):
    """A table of any kind."""
    n, d, c = (draw(st.integers(*between)) for between in (rows, columns, classes))
    c = min(c, n)
    values = [draw(st.sampled_from(PALETTES)) for _ in range(d)]
    X = np.column_stack([draw(arrays(float, n, elements=st.sampled_from(palette))) for palette in values])
    y = draw(arrays(int, n, elements=st.integers(0, c - 1)))
    weight = draw(arrays(float, n, elements=st.sampled_from(WEIGHTS[draw(st.sampled_from(weights))])))
    y[:c], weight[:c] = np.arange(c), np.maximum(weight[:c], 1.0)
    return Table(X, y, weight)


@st.composite
def tag_tables(draw, rows=(4, 12), missing: bool = True):
    """X, tags with missing values (every tag has a 0 and a 1 somewhere), weights."""
    table = draw(tables(rows=rows, weights=("none", "counts")))
    n, tags = len(table.y), draw(st.integers(2, 3))
    Y = draw(arrays(float, (n, tags), elements=st.sampled_from((0.0, 1.0, np.nan) if missing else (0.0, 1.0))))
    Y[0], Y[1] = 0.0, 1.0
    return table.X, Y, np.maximum(table.weight, [1.0, 1.0, *[0.0] * (n - 2)])


def orders(n: int):
    """A permutation of n things."""
    return st.permutations(range(n)).map(np.array)


@st.composite
def cuts(draw, n: int, most: int = 4):
    """n rows in a few chunks, as slices."""
    ends = sorted({0, n, *draw(st.lists(st.integers(1, n - 1), max_size=most - 1))})
    return [slice(*pair) for pair in pairwise(ends)]
