"""Passes over rows: sums of a statistic over batches in memory, or over the chunks of a source."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Any, cast

from .sources import ahead, check_chunk


class Statistic:
    """What a pass over a source sums up: ``add(zero(), chunk)`` of every chunk, in place, and ``+`` of such totals.

    A total is a dataclass of arrays and numbers. Where it is kept elsewhere while it grows, ``finish`` brings it here
    and ``resume`` takes it back. ``identity`` holds everything that the sum depends on beside the rows.
    """

    identity: Any
    #: where rows are wanted, if not here
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
        """The same for a place where every thread has a part of the rows to itself."""
        return self


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
    """One pass over a source: the sum of the statistic over its rows, from ``start_row`` on beside ``total``.

    A source that lies elsewhere reduces itself there. Reading, and sending to a device, run ahead of computing;
    ``after_chunk(total, row)`` is told what has been summed before which row. Rows are checked, unless they were
    (``checked``) and cannot have changed since. A ``record`` refuses rows that differ from those of an earlier pass.
    """
    if hasattr(source, "reduce"):
        return source.reduce(statistic)
    total = statistic.zero() if total is None else statistic.resume(total)
    read = source.chunks(start_row) if record is None else record.chunks(source, start_row)
    with closing(cast(Generator, ahead(_sent(read, statistic.device)))) as chunks:
        for chunk in chunks:
            # to ask a device means to wait for it
            chunk = chunk if checked and source.is_in_memory else check_chunk(chunk, source)
            total = statistic.add(total, chunk)
            if progress is not None:
                progress.rows(chunk.n_rows)
            if after_chunk is not None:
                after_chunk(total, chunk.start + chunk.n_rows)
    return statistic.finish(total)


def _sent(chunks: Iterable[Any], device) -> Iterator[Any]:
    """The chunks, with their inputs on the device."""
    for chunk in chunks:
        yield chunk if device is None else chunk._replace(X=device.put_ahead(chunk.X))


def sweep(batches: Iterable[Any], total: Any, add: Callable[[Any, Any], Any]) -> Any:
    """One pass over the rows: ``total = add(total, batch)`` for every batch.

    ``total`` starts as the neutral element of its ``+`` (as :meth:`~kproba.basis.moments.Moments.zeros`), so that
    the totals of parts of the rows, swept wherever they lie, add up to the total of all.
    """
    for batch in batches:
        total = add(total, batch)
    return total
