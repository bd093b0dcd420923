"""A first look at a table that may be larger than memory: a sample of its rows, and which columns have gaps.

Looks add up: those of two parts of the rows, wherever they are, sum to the look at both. So every chunk, file and
partition is encoded with the same levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .hashing import ranking
from .kinds import pandas

#: Numbers of rows of this many partitions do not overlap: a partition has fewer rows than that.
ROWS_OF_A_PARTITION = 1 << 40
#: Kinds of NumPy types that can be joined without a loss.
NUMBERS = "iuf"


@dataclass(frozen=True)
class Look:
    """A sample of at most ``size`` rows, drawn by their numbers in the source, and which columns have gaps in any row.

    ``parts`` are frames or matrices with the rows so far, at most twice as many as needed: joining them costs more than
    looking at them.
    """

    size: int
    parts: tuple[Any, ...]
    rank: np.ndarray
    gaps: np.ndarray

    @classmethod
    def at(cls, rows: Any, start: int, size: int, seed: int) -> Look:
        """Look at consecutive rows, of which the first has the number ``start``."""
        rank = ranking(np.arange(start, start + len(rows), dtype=np.uint64), seed)
        gaps = np.isnan(rows).any(axis=0) if isinstance(rows, np.ndarray) else rows.isna().any().to_numpy()
        return cls(size, (rows,), rank, np.asarray(gaps)).reduced()

    def __add__(self, other: Look) -> Look:
        rank = np.concatenate([self.rank, other.rank])
        total = Look(self.size, self.parts + other.parts, rank, self.gaps | other.gaps)
        return total.reduced() if len(rank) > 2 * self.size else total

    def reduced(self) -> Look:
        """The rows that rank first, in their order."""
        rows, rank = joined(self.parts), self.rank
        if len(rank) > self.size:
            kept = np.sort(np.argpartition(rank, self.size)[: self.size])
            rows, rank = (rows[kept] if isinstance(rows, np.ndarray) else rows.iloc[kept]), rank[kept]
        return replace(self, parts=(rows,), rank=rank)

    @property
    def table(self) -> Any:
        """The sample."""
        return self.reduced().parts[0]


def joined(parts: Sequence[Any]) -> Any:
    """The rows of several matrices or frames; a column of several types becomes one of objects or categories."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    columns = [_joined_column([part.iloc[:, j] for part in parts]) for j in range(parts[0].shape[1])]
    return pandas().concat(columns, axis=1, ignore_index=True).set_axis(parts[0].columns, axis=1)


def _joined_column(parts: Sequence[Any]) -> Any:
    """pandas ignores the type of a part without any value, takes booleans for numbers beside such, and forgets that
    strings are categories if one part has others than another.
    """
    types = {part.dtype for part in parts}
    if len(types) == 1 or all(isinstance(each, np.dtype) and each.kind in NUMBERS for each in types):
        return pandas().concat(parts, ignore_index=True)
    whole = pandas().concat([part.astype(object) for part in parts], ignore_index=True)
    return whole.astype("category") if any(str(each) == "category" for each in types) else whole
