"""Where rows live when they are more than memory holds: a source gives them chunk by chunk, as often as asked.

A source promises that every pass gives the same rows in the same order, and that a chunk is a plain
C-contiguous array of about ``chunk_bytes``. The edges of the chunks depend on the shape of the rows alone, so an
array, a memory map and files of the same rows give the same sums to the last bit.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

import numpy as np

from ..arrays import Device, is_tensor, to_numpy
from ..threads import row_slices
from .labels import LARGEST_WEIGHT, SMALLEST_WEIGHT, is_missing

#: A chunk of inputs is about this large: reading it costs far more than asking for it.
CHUNK_BYTES = 16 << 20
#: Of few columns it has no more rows than this: progress and checkpoints go from chunk to chunk.
CHUNK_ROWS = 100_000

Item = TypeVar("Item")


class Chunk(NamedTuple):
    """Some consecutive rows: ``X`` (m, d), labels ``y`` (m,), ``weight`` (m,), and the number of the first one.

    Labels are as the user has them. ``y`` and ``weight`` are None where the source has none.
    """

    X: np.ndarray
    y: np.ndarray | None
    weight: np.ndarray | None
    start: int

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]


class CheckedInputs(np.ndarray):
    """Finite inputs whose columns are in the model's order: nobody need look at them again."""


class Source(ABC):
    """Rows of ``n_features`` columns in chunks; ``n_rows`` is None where only a whole pass would tell."""

    name: str
    n_features: int
    feature_names: list[str] | None
    n_rows: int | None
    dtype: np.dtype
    chunk_bytes: int
    #: whether the rows stay what they are from one pass to the next
    is_in_memory = False

    @abstractmethod
    def chunks(self, start_row: int = 0, columns_only: bool = False) -> Iterator[Chunk]:
        """The rows from ``start_row`` on; ``columns_only`` leaves labels and weights unread."""

    @property
    def chunk_rows(self) -> int:
        """Rows of every chunk but the last."""
        return max(1, min(CHUNK_ROWS, self.chunk_bytes // max(1, self.n_features * self.dtype.itemsize)))

    def __repr__(self) -> str:
        rows = "rows" if self.n_rows is None else f"{self.n_rows:,} rows"
        return f"<{self.name}: {rows} of {self.n_features} columns>"

    def where(self, row: int) -> str:
        """Words that let a user find a row, which is counted from 0."""
        return f"row {row} of {self.name}"

    def _check_start(self, start_row: int) -> None:
        if start_row < 0 or (self.n_rows is not None and start_row > self.n_rows):
            raise ValueError(f"start_row={start_row} lies outside the {self.n_rows} rows of {self.name}.")


class ArraySource(Source):
    """Rows of an array or a memory map, which is never copied as a whole.

    float32 stays float32; every other type of number becomes float64, one chunk at a time.

    >>> import numpy as np
    >>> source = ArraySource(np.arange(6).reshape(3, 2), y=["a", "b", "a"], chunk_bytes=32)
    >>> [(chunk.start, chunk.X.tolist()) for chunk in source.chunks()]
    [(0, [[0.0, 1.0], [2.0, 3.0]]), (2, [[4.0, 5.0]])]
    """

    feature_names = None

    def __init__(self, X, y=None, weight=None, *, chunk_bytes: int = CHUNK_BYTES):
        self._X = np.asarray(X)
        if self._X.ndim != 2 or self._X.dtype.kind not in "biuf":
            raise ValueError(
                f"X must be a matrix of numbers, got {self._X.ndim} dimension(s) of type {self._X.dtype}; "
                "reshape or convert it first."
            )
        self.n_rows, self.n_features = self._X.shape
        self.dtype = np.dtype(np.float32 if self._X.dtype.kind + str(self._X.itemsize) == "f4" else np.float64)
        self.name = f"the memory map {X.filename}" if isinstance(X, np.memmap) and X.filename else "X"
        self.is_in_memory = not isinstance(X, np.memmap)
        self.chunk_bytes = chunk_bytes
        self._y = self._beside("y", y)
        self._weight = self._beside("weight", weight)

    @property
    def labels(self) -> np.ndarray | None:
        return self._y

    def _beside(self, name: str, values) -> np.ndarray | None:
        if values is None:
            return None
        values = np.asarray(values)
        if values.ndim == 0 or len(values) != self.n_rows:
            raise ValueError(f"X has {self.n_rows} rows but {name} has shape {values.shape}: one for every row.")
        if name == "weight" and (values.ndim > 1 or values.dtype.kind not in "biuf"):
            raise ValueError(f"weight must hold one number for every row, got {values.dtype} of shape {values.shape}.")
        return values

    def chunks(self, start_row: int = 0, columns_only: bool = False) -> Iterator[Chunk]:
        self._check_start(start_row)
        y, weight = (None, None) if columns_only else (self._y, self._weight)
        for rows in row_slices(len(self._X) - start_row, 1, self.chunk_rows):
            rows = slice(start_row + rows.start, start_row + rows.stop)
            yield Chunk(
                np.ascontiguousarray(self._X[rows], dtype=self.dtype),
                None if y is None else y[rows],
                None if weight is None else weight[rows].astype(np.float64, copy=False),
                rows.start,
            )


class TensorSource(Source):
    """Rows of a tensor, which stay where they lie; labels and weights are NumPy arrays."""

    feature_names, is_in_memory = None, True

    def __init__(self, X, y: np.ndarray, weight: np.ndarray | None, *, chunk_bytes: int = CHUNK_BYTES):
        device = Device.of(X)
        self._X, self._y, self._weight = device.floats(X), y, weight
        self.n_rows, self.n_features = X.shape
        self.dtype = np.dtype(np.float32 if self._X.dtype == device.xp.float32 else np.float64)
        self.name, self.chunk_bytes = f"X on {device.name}", chunk_bytes

    def chunks(self, start_row: int = 0, columns_only: bool = False) -> Iterator[Chunk]:
        self._check_start(start_row)
        y, weight = (None, None) if columns_only else (self._y, self._weight)
        for rows in row_slices(self._X.shape[0] - start_row, 1, self.chunk_rows):
            rows = slice(start_row + rows.start, start_row + rows.stop)
            own, beside = (None if part is None else part[rows] for part in (y, weight))
            yield Chunk(self._X[rows, ...], own, beside, rows.start)


def as_source(X, y=None, weight=None) -> Source | None:
    """``X`` as a source if it is one or is a memory map; None for anything else, which is read as a whole."""
    if isinstance(X, np.memmap):
        return ArraySource(X, y, weight)
    if not isinstance(X, Source):
        return None
    for name, values in (("y", y), ("sample_weight", weight)):
        if values is not None:
            raise ValueError(
                f"{name} was given beside a source, which brings its own labels and weights; leave {name} out and "
                "name the columns when the source is made: open_rows(..., target=..., weight=...)."
            )
    return X


def check_chunk(chunk: Chunk, source: Source | str) -> Chunk:
    """The same chunk, or a ValueError that names the place of a NaN, an infinity, a missing label or a bad weight."""
    where = source.where if isinstance(source, Source) else f"row {{}} of {source}".format
    if not all_finite(chunk.X):
        X = to_numpy(chunk.X)
        row, column = np.argwhere(~np.isfinite(X))[0]
        found = "NaN" if np.isnan(X[row, column]) else "infinity"
        names = source.feature_names if isinstance(source, Source) else None
        name = repr(names[column]) if names is not None else str(column)
        raise ValueError(
            f"Input X contains {found} in column {name}, {where(chunk.start + row)} (counted from 0); "
            "drop or fill such rows first."
        )
    _check_labels(chunk, where)
    _check_weight(chunk, where)
    return chunk


def in_double(X):
    """Rows in float64: kernel values of float32 rows make systems indefinite. Tensors stay as they are.

    float32 is what rows are stored and read in; the copy is made where a block of rows is about to be used.
    """
    return X if is_tensor(X) else X.astype(np.float64, copy=False)


def all_finite(X) -> bool:
    """Whether every value is a finite number; a tensor is asked where it lies."""
    if not is_tensor(X):
        return bool(np.isfinite(X).all())
    xp = Device.of(X).xp
    return bool(xp.all(xp.isfinite(X)))


def _check_labels(chunk: Chunk, where) -> None:
    if chunk.y is None or not len(chunk.y):
        return
    missing = _missing_labels(chunk.y)
    if missing is not None and missing.any():
        row = int(np.argmax(missing.reshape(len(chunk.y), -1).any(axis=1)))
        raise ValueError(
            f"Input y contains a missing label (NaN, infinity or None) in {where(chunk.start + row)} (counted from 0); "
            "drop or fill such rows first."
        )


def _missing_labels(y: np.ndarray) -> np.ndarray | None:
    """Which labels are missing; None if their type has no missing ones or a look at the distinct ones finds none."""
    if y.dtype.kind == "f":
        return ~np.isfinite(y)
    # millions of labels are few distinct ones, and a set finds these ten times sooner than asking every label
    if y.dtype.kind != "O" or not any(map(is_missing, set(y.ravel().tolist()))):
        return None
    return np.fromiter(map(is_missing, y.ravel()), dtype=bool, count=y.size)


def _check_weight(chunk: Chunk, where) -> None:
    if chunk.weight is None:
        return
    sound = (chunk.weight == 0) | ((chunk.weight >= SMALLEST_WEIGHT) & (chunk.weight <= LARGEST_WEIGHT))
    if not sound.all():
        row = int(np.argmin(sound))
        raise ValueError(
            f"the weight {chunk.weight[row]:g} in {where(chunk.start + row)} (counted from 0) is refused; "
            f"every weight must be a finite number of at least 0, and if it is not 0 between {SMALLEST_WEIGHT:g} and "
            f"{LARGEST_WEIGHT:g}."
        )


class _Produced(NamedTuple):
    """What the reading thread hands over: an item, an error to raise, or the end."""

    item: object = None
    error: BaseException | None = None
    is_last: bool = False


def ahead(items: Iterable[Item], depth: int = 2) -> Iterator[Item]:
    """The items in their order, made by one background thread that runs up to ``depth`` of them ahead.

    Reading and parsing release the interpreter lock, so they overlap with the consumer's arithmetic. An exception
    of the iterator is raised here. When the consumer stops early, the thread ends after the item it is at, and
    closes the iterator.
    """
    if depth < 1:
        raise ValueError(f"depth={depth!r} must be at least 1.")
    return _run_ahead(items, depth)


def _run_ahead(items: Iterable[Item], depth: int) -> Iterator[Item]:
    ready: SimpleQueue[_Produced] = SimpleQueue()
    slots, stop = threading.Semaphore(depth), threading.Event()
    # a daemon, because an abandoned generator must not keep the interpreter from ending
    thread = threading.Thread(target=_produce, args=(items, ready, slots, stop), name="kproba-ahead", daemon=True)
    thread.start()
    try:
        while True:
            produced = ready.get()
            slots.release()
            if produced.error is not None:
                raise produced.error
            if produced.is_last:
                return
            yield produced.item  # type: ignore[misc]
            del produced  # else the consumer's last chunk would stay in memory while this waits for the next
    finally:
        stop.set()
        slots.release()  # the thread may be waiting for a free place
        thread.join()


def _produce(items: Iterable, ready: SimpleQueue[_Produced], slots: threading.Semaphore, stop: threading.Event) -> None:
    """Put items in the queue, each once there is a free place for it, until they end or the consumer stops."""
    last = _Produced(is_last=True)
    try:
        iterator = iter(items)
        try:
            while slots.acquire() and not stop.is_set():
                ready.put(_Produced(next(iterator)))
        except StopIteration:
            pass
        finally:
            getattr(iterator, "close", lambda: None)()
    except BaseException as error:  # whatever it is, the consumer waits for it
        last = _Produced(error=error)
    ready.put(last)


def inputs(source: Source, names=None) -> Iterator[np.ndarray]:
    """The inputs alone, chunk by chunk; columns in the order of ``names`` where both know theirs."""
    order = None
    if names is not None and source.feature_names is not None and list(names) != source.feature_names:
        missing = [name for name in names if name not in source.feature_names]
        if missing:
            raise ValueError(f"{source.name} has no column {missing[0]!r}, which the model was fitted on.")
        order = [source.feature_names.index(name) for name in names]
    for chunk in ahead(source.chunks(columns_only=True)):
        X = check_chunk(chunk, source).X
        yield (X if order is None else X[:, order]).view(CheckedInputs)
