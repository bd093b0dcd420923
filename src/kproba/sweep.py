"""The only loops over rows, and the only place that knows about threads.

``sweep`` adds up a function of the batches of rows in memory, ``sweep_source`` a statistic of the rows of a source,
wherever they lie; ``fill_tiles`` fills one batch of features tile by tile, each small enough for a core's cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import lru_cache
from numbers import Integral
from typing import Any, cast

from threadpoolctl import ThreadpoolController

#: A tile of features is about this large: the second-level cache of today's cores.
TILE_BYTES = 1 << 20
#: A batch of features is about this large; peak memory is the moments plus one such block.
BATCH_BYTES = 32 << 20


def n_workers(n_jobs: int | None) -> int:
    """Threads to use: ``None`` means every core that this process may use, negative counts back from there.

    >>> n_workers(1)
    1
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs={n_jobs!r} must be a whole number, or None for all cores.")
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning: give a positive number, -1 for all cores, or None.")
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + n_jobs)


@lru_cache(maxsize=1)
def _thread_pools() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes longer than a small product."""
    return ThreadpoolController()


def one_blas_thread():
    """A context in which BLAS uses one thread, because ours run beside it: pools inside pools wait for each other."""
    return _thread_pools().limit(limits=1, user_api="blas")


def row_slices(n_rows: int, row_bytes: int, target_bytes: int = BATCH_BYTES) -> list[slice]:
    """Consecutive slices of about ``target_bytes`` each that cover ``n_rows`` rows."""
    step = max(1, target_bytes // max(1, row_bytes))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def fill_tiles(fill: Callable[[slice], None], n_rows: int, row_bytes: int, workers: int = 1) -> None:
    """Call ``fill(rows)`` for cache-sized tiles of ``n_rows`` rows, on ``workers`` threads.

    NumPy and SciPy release the interpreter lock inside distances, products and exponentials, so threads
    are enough, and they share the output without a copy.
    """
    tiles = row_slices(n_rows, row_bytes, TILE_BYTES)
    if workers == 1 or len(tiles) == 1:
        for tile in tiles:
            fill(tile)
        return
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(fill, tiles):
            pass


def map_independent(function: Callable[[Any], Any], items: Sequence[Any], workers: int = 1) -> list:
    """``function`` of every item, in order, on ``workers`` threads with one BLAS thread each.

    For problems of a thousand rows or less: two decompositions side by side finish sooner than two in turn on
    two threads that wait for each other at every step.
    """
    if workers == 1 or len(items) == 1:
        return [function(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


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
    from .data.sources import ahead, check_chunk  # here, because rows in memory are cut by this module too

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

    ``total`` starts as the neutral element of its ``+`` (as :meth:`~kproba.moments.Moments.zeros`), so that
    the totals of parts of the rows, swept wherever they lie, add up to the total of all.
    """
    for batch in batches:
        total = add(total, batch)
    return total
