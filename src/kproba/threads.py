"""Thread pools: how many workers to use, limiting BLAS to one thread meanwhile, and running tasks on a pool."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import lru_cache
from numbers import Integral
from typing import Any

from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

#: Size of a tile of features: about the L2 cache of current cores, and so large that threads seldom wait for the
#: interpreter lock between the operations on a tile. It does not depend on their number, or results would.
TILE_BYTES = 2 << 20
#: Size of a batch of features; peak memory is the moments plus one such block.
BATCH_BYTES = 32 << 20


def n_workers(n_jobs: int | None) -> int:
    """Number of threads: negative values count back from all cores, ``None`` uses the available cores.

    >>> n_workers(1)
    1
    """
    if n_jobs is None:
        n_jobs = _default_jobs()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be an int, or None for all available cores, got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning: use a positive number, -1 for all cores, or None.")
    return int(n_jobs) if n_jobs > 0 else max(1, _n_cores() + 1 + int(n_jobs))


def _default_jobs() -> int:
    """The meaning of ``n_jobs=None``: all cores that nobody else is using (measured in benchmarks/oversubscription.py).

    As many threads as BLAS may use, because environment variables, ``threadpool_limits`` and joblib's worker processes
    limit BLAS; one inside joblib's worker threads, whose siblings use the other cores; and the value of
    ``joblib.parallel_config(n_jobs=...)`` if it is set, as in scikit-learn.
    """
    backend, n_jobs = get_active_backend()
    if backend.nesting_level and threading.current_thread() is not threading.main_thread():
        return 1  # worker processes run their tasks in their main thread
    if n_jobs is not None and not backend.nesting_level:
        return n_jobs
    return min(_n_cores(), _one_blas_thread.n_threads_outside)


def _n_cores() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class OneBlasThread:
    """A context in which BLAS uses one thread, because nested thread pools would compete for the cores.

    The OpenBLAS in NumPy's and SciPy's wheels has one thread count for the whole process, so all callers share the
    limit: the first to enter sets it, and the last to leave restores the previous value, in any order and even after
    exceptions. If each caller restored the value it had found, two overlapping fits would leave the process with one
    thread for good.

    Other libraries (MKL, BLIS, OpenBLAS with OpenMP) have one thread count per thread. To tell them apart, the limit is
    set in a short-lived thread: a library that still uses several threads in the calling thread has per-thread counts,
    which every thread then sets and restores for itself. The short-lived thread also keeps threadpoolctl (3.8 and
    later) from reserving the right to restore the limit for the first caller.

    A surrounding ``threadpool_limits`` keeps its effect, and a limit set by other code inside this context is left
    alone. The only exception is a ``threadpool_limits`` block that another thread enters during this context and leaves
    after it: it restores the one thread it found, because threadpoolctl cannot know whose limit that was.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside = threading.Lock(), 0
        self._outside: list[tuple[Any, int]] = []

    def __enter__(self) -> list[Any]:
        """Return the libraries that every new thread has to limit for itself."""
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
        """Number of BLAS threads outside this context."""
        with self._lock:
            found = self._outside or _multithreaded_libraries()
        return max((n_threads for _, n_threads in found), default=1 if _blas_libraries() else sys.maxsize)

    def after_fork(self) -> None:
        """Reset in a forked process, which has none of the threads inside the context, so none would ever leave."""
        _restore(self._outside)
        self.__init__()  # type: ignore[misc]


#: Per-thread state: the limits this thread has set, and whether it is one of our workers.
_thread_state = threading.local()
_one_blas_thread = OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_blas_thread.after_fork)


def one_blas_thread() -> OneBlasThread:
    """The context in which BLAS uses one thread; there is one per process."""
    return _one_blas_thread


@lru_cache(maxsize=1)
def _blas_libraries() -> list[Any]:
    """The BLAS libraries of this process, cached because finding them takes longer than a small product."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _multithreaded_libraries() -> list[tuple[Any, int]]:
    """The BLAS libraries that use several threads in this thread, with the thread count of each."""
    found = ((library, library.num_threads) for library in _blas_libraries())
    return [(library, n_threads) for library, n_threads in found if n_threads and n_threads > 1]


def _restore(numbers: list[tuple[Any, int]]) -> None:
    for library, n_threads in numbers:
        if library.num_threads == 1:  # otherwise other code has changed it since
            library.set_num_threads(n_threads)


def _run_in_short_lived_thread(function: Callable[[], Any]) -> None:
    thread = threading.Thread(target=function, name="kproba-limit-blas")
    thread.start()
    thread.join()


@contextmanager
def _workers(number: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads with one BLAS thread each."""
    with one_blas_thread() as libraries, ThreadPoolExecutor(number, "kproba", _init_worker, (libraries,)) as pool:
        yield pool


def _init_worker(libraries: list[Any]) -> None:
    """Initialise a worker thread; it ends with its pool, so nothing needs to be restored."""
    _thread_state.is_worker = True
    for library in libraries:
        library.set_num_threads(1)


def _runs_sequentially(workers: int, n_tasks: int) -> bool:
    """Whether tasks run one after the other. Inside a worker they do, because its siblings use the other cores."""
    return workers == 1 or n_tasks <= 1 or getattr(_thread_state, "is_worker", False)


def row_slices(n_rows: int, row_bytes: int, target_bytes: int = BATCH_BYTES) -> list[slice]:
    """Consecutive slices of about ``target_bytes`` each, covering ``n_rows`` rows."""
    step = max(1, target_bytes // max(1, row_bytes))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def fill_tiles(fill: Callable[[slice], None], n_rows: int, row_bytes: int, workers: int = 1) -> None:
    """Call ``fill(rows)`` for cache-sized tiles of ``n_rows`` rows, on ``workers`` threads.

    NumPy and SciPy release the GIL inside distances, products and exponentials, so threads are enough, and they write
    to the shared output without a copy.
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
    """Apply ``function`` to every item on ``workers`` threads with one BLAS thread each; results are in order.

    Meant for problems of up to about a thousand rows, where two single-threaded decompositions in parallel finish
    sooner than two multi-threaded ones in sequence.
    """
    if _runs_sequentially(workers, len(items)):
        return [function(item) for item in items]
    with _workers(workers) as pool:
        return list(pool.map(function, items))


def run_in_turns(tasks: Sequence[Iterator[None]], workers: int = 1) -> None:
    """Run iterators to their ends on threads as :func:`map_independent` does, one item at a time.

    A thread that has computed an item goes on with the task that has waited longest. So two threads finish three equal
    tasks in one and a half times the time of one instead of twice that time. After an error or an interrupt, no further
    items are computed.
    """
    if _runs_sequentially(workers, len(tasks)):
        for task in tasks:
            deque(task, maxlen=0)
        return
    waiting, ended, stopped = deque(tasks), object(), threading.Event()

    def work() -> None:
        while not stopped.is_set():
            try:
                task = waiting.popleft()
            except IndexError:  # the other threads have the rest
                return
            if next(task, ended) is not ended:
                waiting.append(task)

    with _workers(min(workers, len(tasks))) as pool:
        try:
            for done in as_completed([pool.submit(work) for _ in range(min(workers, len(tasks)))]):
                done.result()
        finally:
            stopped.set()  # before the pool waits for its threads
