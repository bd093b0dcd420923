"""Passes over rows: sums of a statistic over batches in memory, or over the chunks of a source."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, cast

from .sources import ahead, check_chunk


class Statistic:
    """A statistic that a pass over a source sums: ``add(total, chunk)`` adds a chunk in place, and totals have ``+``.

    A total is a dataclass of arrays and numbers. If it is kept on a device while it grows, ``finish`` transfers it to
    NumPy and ``resume`` transfers it back. ``identity`` contains everything that the sum depends on besides the rows.
    """

    identity: Any
    #: the device on which rows are needed; None for NumPy
    device: Any = None

    def zero(self) -> Any:
        raise NotImplementedError

    def add(self, total: Any, chunk: Any) -> Any:
        raise NotImplementedError

    def finish(self, total: Any) -> Any:
        return total

    def resume(self, total: Any) -> Any:
        return total

    def on_one_thread(self) -> Statistic:
        """The same statistic for workers in which every thread has its own part of the rows."""
        made: Any = self
        return replace(made, basis=replace(made.basis, workers=1)) if hasattr(self, "basis") else self


def sweep_source(
    source,
    statistic: Statistic,
    *,
    progress=None,
    start_row: int = 0,
    total=None,
    after_chunk=None,
    checked=False,
    record=None,
):
    """One pass over a source: the sum of the statistic over its rows from ``start_row`` on, added to ``total``.

    A distributed source reduces itself. Reading and transfers to a device run ahead of the computation.
    ``after_chunk(total, row)`` is called with the total over all rows before ``row``. Rows are checked unless they have
    been (``checked``) and cannot have changed since. A ``record`` raises an error if rows differ from an earlier pass.
    """
    if hasattr(source, "reduce"):
        return source.reduce(statistic)
    total = statistic.zero() if total is None else statistic.resume(total)
    read = source.chunks(start_row) if record is None else record.chunks(source, start_row)
    with closing(cast(Generator, ahead(_sent(read, statistic.device)))) as chunks:
        for chunk in chunks:
            # checking rows on a device would wait for it
            chunk = chunk if checked and source.is_in_memory else check_chunk(chunk, source)
            total = statistic.add(total, chunk)
            if progress is not None:
                progress.rows(chunk.n_rows)
            if after_chunk is not None:
                after_chunk(total, chunk.start + chunk.n_rows)
    return statistic.finish(total)


def _sent(chunks: Iterable[Any], device) -> Iterator[Any]:
    """The chunks with their inputs transferred to the device."""
    for chunk in chunks:
        yield chunk if device is None else chunk._replace(X=device.put_ahead(chunk.X))


def sweep(batches: Iterable[Any], total: Any, add: Callable[[Any, Any], Any]) -> Any:
    """One pass over the rows: ``total = add(total, batch)`` for every batch.

    ``total`` starts as the neutral element of its ``+`` (such as :meth:`~kproba.basis.moments.Moments.zeros`), so that
    the totals of parts of the rows add up to the total over all rows.
    """
    for batch in batches:
        total = add(total, batch)
    return total
