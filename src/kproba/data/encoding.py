"""Encoding the chunks of a source for a model: class codes, class weights and scaled columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays import is_tensor
from ..threads import BATCH_BYTES, row_slices
from .labels import encode
from .sources import Chunk, in_double


class Part(NamedTuple):
    """Some rows of a chunk: scaled inputs (m, d), class codes (m,) below ``n_classes`` and weights (m,)."""

    X: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    n_classes: int

    @property
    def targets(self) -> np.ndarray:
        """One-hot columns (m, c)."""
        return (self.codes[:, None] == np.arange(self.n_classes)).astype(np.float64)

    def split(self, number: int) -> list[Part]:
        """Up to ``number`` consecutive parts of about the same size."""
        rows = row_slices(len(self.codes), 1, -(-len(self.codes) // number))
        return [Part(self.X[each], self.codes[each], self.weight[each], self.n_classes) for each in rows]


@dataclass(frozen=True)
class Encoding:
    """The sorted classes, the weight factor of each class, and the scaling of the columns, if any."""

    classes: np.ndarray
    factors: np.ndarray
    scaling: Any = None

    def parts(self, chunk: Chunk, row_bytes: int, block_bytes: int = BATCH_BYTES) -> Iterator[Part]:
        """The rows of a chunk in blocks such that ``row_bytes`` per row stay within ``block_bytes``."""
        codes = encode(np.asarray(chunk.y), self.classes)
        if chunk.weight is None and is_tensor(chunk.X) and (self.factors == 1.0).all():
            weight = np.broadcast_to(1.0, codes.shape)  # a device takes less time for its rows than these would
        else:
            weight = self.factors[codes] if chunk.weight is None else self.factors[codes] * chunk.weight
        for rows in row_slices(chunk.n_rows, row_bytes, block_bytes):
            X = in_double(chunk.X[rows, ...])
            X = X if self.scaling is None else self.scaling(X)
            yield Part(X, codes[rows], weight[rows], len(self.classes))
