"""Threads: how many to use, the limit of one BLAS thread beside them, and tasks on a pool of them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from numbers import Integral
from typing import Any

from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

#: A tile of features is about this large: the second-level cache of today's cores.
TILE_BYTES = 1 << 20
#: A batch of features is about this large; peak memory is the moments plus one such block.
BATCH_BYTES = 32 << 20


def n_workers(n_jobs: int | None) -> int:
    """Threads to use: negative numbers count back from all cores; ``None`` takes the cores that are free for us.

    >>> n_workers(1)
    1
    """
    if n_jobs is None:
        n_jobs = _default_jobs()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs={n_jobs!r} must be a whole number, or None for the cores that are free.")
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning: give a positive number, -1 for all cores, or None.")
    return int(n_jobs) if n_jobs > 0 else max(1, _n_cores() + 1 + int(n_jobs))


def _default_jobs() -> int:
    """What ``n_jobs=None`` means: all cores, but not those of others (measured in benchmarks/oversubscription.py).

    As many threads as BLAS may use, because environment variables, ``threadpool_limits`` and joblib's worker processes
    restrict BLAS; one inside joblib's worker threads, whose siblings use the other cores; and what
    ``joblib.parallel_config(n_jobs=...)`` says, as in scikit-learn.
    """
    backend, n_jobs = get_active_backend()
    if backend.nesting_level and threading.current_thread() is not threading.main_thread():
        return 1  # worker processes run their tasks in their main thread
    if n_jobs is not None and not backend.nesting_level:
        return n_jobs
    return min(_n_cores(), _one_blas_thread.n_threads_outside)


def _n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class OneBlasThread:
    """A context in which BLAS uses one thread, because ours run beside it: pools inside pools wait for each other.

    The OpenBLAS of NumPy's and SciPy's wheels has one number of threads for the whole process; there is no other way
    to limit it. Everyone who needs the limit therefore shares it: the first to enter sets it, the last to leave
    restores what was there, in whatever order and by whatever exception they leave. If instead each caller restored
    what it had found, two fits that overlap in time would leave the process with one thread for good.

    Other libraries (MKL, BLIS, OpenBLAS with OpenMP) have a number for each thread. Which kind a library is, the
    limit itself tells: it is set in a thread that ends at once, and a library that still has more threads here keeps a
    number for each thread, which every thread then sets and restores for itself. That short-lived thread also keeps
    threadpoolctl (3.8 and later) from reserving the right to restore the limit for whoever entered first.

    A caller's own ``threadpool_limits`` keeps its effect if it surrounds our work, and a limit that someone else sets
    during our work is left alone. Only a ``threadpool_limits`` block that is entered in another thread during our
    work and left after it restores the one thread that it found; threadpoolctl cannot tell whose limit that was.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside = threading.Lock(), 0
        self._outside: list[tuple[Any, int]] = []

    def __enter__(self) -> list[Any]:
        """Returns the libraries that every new thread has to limit for itself."""
        with self._lock:
            if self._n_inside == 0:
                self._outside = _multithreaded_libraries()
                if self._outside:
                    _run_in_short_lived_thread(lambda: [library.set_num_threads(1) for library, _ in self._outside])
            self._n_inside += 1
        own = _multithreaded_libraries()
        for library, _ in own:
            library.set_num_threads(1)
        _thread_state.limits = [*getattr(_thread_state, "limits", []), own]
        return [library for library, _ in own]

    def __exit__(self, *_) -> None:
        _restore(_thread_state.limits.pop())
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0 and self._outside:
                _run_in_short_lived_thread(lambda: _restore(self._outside))
                self._outside = []

    @property
    def n_threads_outside(self) -> int:
        """Threads that BLAS has outside this context."""
        with self._lock:
            found = self._outside or _multithreaded_libraries()
        return max((n_threads for _, n_threads in found), default=1 if _blas_libraries() else sys.maxsize)

    def after_fork(self) -> None:
        """A forked process has none of the threads that are inside, so nobody would ever leave."""
        _restore(self._outside)
        self.__init__()  # type: ignore[misc]


#: What each thread knows about itself: the limits it has set, and whether it is one of our workers.
_thread_state = threading.local()
_one_blas_thread = OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_blas_thread.after_fork)


def one_blas_thread() -> OneBlasThread:
    """The context in which BLAS uses one thread; there is one for the process."""
    return _one_blas_thread


@lru_cache(maxsize=1)
def _blas_libraries() -> list[Any]:
    """The BLAS libraries of this process; looking for them takes longer than a small product."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _multithreaded_libraries() -> list[tuple[Any, int]]:
    """The BLAS libraries that use several threads here, each with their number."""
    found = ((library, library.num_threads) for library in _blas_libraries())
    return [(library, n_threads) for library, n_threads in found if n_threads and n_threads > 1]


def _restore(numbers: list[tuple[Any, int]]) -> None:
    for library, n_threads in numbers:
        if library.num_threads == 1:  # otherwise someone else has set it since
            library.set_num_threads(n_threads)


def _run_in_short_lived_thread(function: Callable[[], Any]) -> None:
    thread = threading.Thread(target=function, name="kproba-limit-blas")
    thread.start()
    thread.join()


@contextmanager
def _workers(number: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads that have one BLAS thread each."""
    with one_blas_thread() as libraries, ThreadPoolExecutor(number, "kproba", _init_worker, (libraries,)) as pool:
        yield pool


def _init_worker(libraries: list[Any]) -> None:
    """What a new worker does first; it ends with its pool, so nothing needs to be restored."""
    _thread_state.is_worker = True
    for library in libraries:
        library.set_num_threads(1)


def _runs_sequentially(workers: int, n_tasks: int) -> bool:
    """Whether tasks are done one after the other: inside a worker they are, because the others use the other cores."""
    return workers == 1 or n_tasks == 1 or getattr(_thread_state, "is_worker", False)


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
    if _runs_sequentially(workers, len(tiles)):
        for tile in tiles:
            fill(tile)
        return
    with _workers(workers) as pool:
        for _ in pool.map(fill, tiles):
            pass


def map_independent(function: Callable[[Any], Any], items: Sequence[Any], workers: int = 1) -> list:
    """``function`` of every item, in order, on ``workers`` threads with one BLAS thread each.

    For problems of a thousand rows or less: two decompositions side by side finish sooner than two in turn on
    two threads that wait for each other at every step.
    """
    if _runs_sequentially(workers, len(items)):
        return [function(item) for item in items]
    with _workers(workers) as pool:
        return list(pool.map(function, items))
