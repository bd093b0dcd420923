"""Checks that every pass over a source reads the same rows: a fit on two versions of them would be silently wrong."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..arrays import is_tensor
from .sources import Chunk, Source


class Checksum(NamedTuple):
    """CRC-32 of inputs, labels and weights in order.

    A changed chunk goes unnoticed with a probability of 2⁻³². The CRC reads a few GB/s, far more than any reader or
    kernel. The inputs of tensors are not checked, since they stay on their device.
    """

    inputs: int
    labels: int
    weights: int

    @classmethod
    def of(cls, X, y, weight) -> Checksum:
        return cls(0 if is_tensor(X) else _crc(X), _crc(y), _crc(weight))


def _crc(values) -> int:
    if values is None:
        return 0
    values = np.ascontiguousarray(values)
    if values.dtype.kind in "biufcmMSU":
        return zlib.crc32(values.view(np.uint8) if values.size else b"")
    labels = values.ravel().tolist()
    try:
        text = "\n".join(labels)
    except TypeError:  # not all of them are strings
        text = repr(labels)
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


class PassRecord:
    """Checksums of the parts of a source in its first pass, with which later passes are compared.

    Inputs in memory can be skipped (``inputs=False``), since a checksum takes almost as long as the kernel there.
    Labels and weights take almost no time in comparison.
    """

    def __init__(self, inputs: bool = True) -> None:
        self._inputs = inputs
        self._parts: dict[int, Checksum] = {}
        self._end: int | None = None

    @property
    def identity(self) -> list[tuple[int, Checksum]]:
        """Identifies these rows in these chunks."""
        return sorted(self._parts.items())

    def chunks(self, source: Source, start_row: int = 0) -> Iterator[Chunk]:
        """The chunks of a source from ``start_row`` on, each compared with the first pass."""
        end = start_row
        for chunk in source.chunks(start_row):
            end = chunk.start + chunk.n_rows
            where = f"{source.name}: rows {chunk.start} to {end - 1} (counted from 0)"
            if source.is_in_memory:  # whoever waits for these rows need not wait for their checksum
                yield chunk
            self.compare(chunk.start, Checksum.of(chunk.X if self._inputs else None, chunk.y, chunk.weight), where)
            if not source.is_in_memory:
                yield chunk
        if self._end not in (None, end):
            raise ValueError(f"{source.name} had {self._end} rows and now has {end}; {_ADVICE}")
        self._end = end

    def compare(self, part: int, found: Checksum, where: str) -> None:
        """Record the checksum of a new part; raise an error if it differs from an earlier one."""
        known = self._parts.setdefault(part, found)
        changed = [name for name in Checksum._fields if getattr(known, name) != getattr(found, name)]
        if changed:
            raise ValueError(f"{where} have other {' and '.join(changed)} than in the first pass; {_ADVICE}")


_ADVICE = (
    "a fit reads its rows several times, and every pass must yield the same rows in the same order. Do not change "
    "files during a fit; use a fixed seed for random steps, or write their result to a file (Dask: persist it) first."
)
