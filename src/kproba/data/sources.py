"""Sources of rows that may not fit in memory: a source yields its rows chunk by chunk, as often as needed.

Every pass over a source yields the same rows in the same order, and a chunk is a plain C-contiguous array of about
``chunk_bytes``. Chunk boundaries depend only on the shape of the rows, so an array, a memory map and files with the
same rows give the same sums to the last bit.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..arrays import Device, is_tensor, to_numpy
from ..threads import row_slices
from .kinds import NotPlainNumbers
from .labels import LARGEST_WEIGHT, SMALLEST_WEIGHT, is_missing
from .look import Look

#: Approximate size of a chunk of inputs: large enough that the overhead per chunk does not matter.
CHUNK_BYTES = 16 << 20
#: The same for rows on a device, where every chunk waits for the device.
DEVICE_CHUNK_BYTES = 256 << 20
#: Maximum number of rows of a chunk with few columns, since progress and checkpoints are updated once per chunk.
CHUNK_ROWS = 100_000

Item = TypeVar("Item")


class Chunk(NamedTuple):
    """Consecutive rows: ``X`` (m, d), labels ``y`` (m,), ``weight`` (m,), and the index of the first row.

    Labels are not encoded. ``y`` and ``weight`` are None if the source has none. ``X`` is a matrix of numbers, or a
    frame if it comes from ``Source.tables``.
    """

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    start: int

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]


class CheckedInputs(np.ndarray):
    """Inputs known to be finite or missing, with columns in the model's order: they need not be checked again."""


class Source(ABC):
    """Rows of ``n_features`` columns in chunks; ``n_rows`` is None if it takes a whole pass to count them."""

    name: str
    n_features: int
    feature_names: list[str] | None = None
    n_rows: int | None
    dtype: np.dtype
    chunk_bytes: int
    #: whether the rows are in memory and cannot change between passes
    is_in_memory = False
    #: whether some columns hold more than numbers by their types, so that there are only ``tables``
    has_categories = False
    #: whether numbers may be missing
    takes_gaps = True

    @abstractmethod
    def chunks(self, start_row: int = 0, columns_only: bool = False) -> Iterator[Chunk]:
        """The rows from ``start_row`` on; ``columns_only`` skips labels and weights."""

    def tables(
        self, start_row: int = 0, columns_only: bool = False, numbers: Collection[str] | None = None, rows: int = 0
    ) -> Iterator[Chunk]:
        """The rows as frames in chunks of ``rows``, if the source has columns of several types; else like ``chunks``.

        ``numbers`` are the columns that are read as numbers where possible, if that is known already.
        """
        return self.chunks(start_row, columns_only)

    def marks(self, first: Mapping[str, str]) -> dict[str, str]:
        """The decimal marks of columns of numbers that are written as text, which may depend on all rows.

        ``first`` are those of the training rows.
        """
        return {}

    def look(self, size: int, seed: int) -> Look:
        """A sample of the rows of the table, and which columns have gaps; takes a pass."""
        total = None
        for chunk in ahead(self.tables(columns_only=True)):
            found = Look.at(chunk.X, chunk.start, size, seed)
            total = found if total is None else total + found
        if total is None:
            raise ValueError(f"{self.name} has no rows.")
        return total

    def encoded(self, columns) -> Source:
        """The rows as the matrix that ``columns``, a ``MixedColumns``, makes of the table."""
        return EncodedSource(self, columns)

    @property
    def chunk_rows(self) -> int:
        """Number of rows of each chunk except the last."""
        return max(1, min(CHUNK_ROWS, self.chunk_bytes // max(1, self.n_features * self.dtype.itemsize)))

    def __repr__(self) -> str:
        rows = "rows" if self.n_rows is None else f"{self.n_rows:,} rows"
        return f"<{self.name}: {rows} of {self.n_features} columns>"

    def where(self, row: int) -> str:
        """A description of where to find a row, counted from 0."""
        return f"row {row} of {self.name}"

    def _check_start(self, start_row: int) -> None:
        if start_row < 0 or (self.n_rows is not None and start_row > self.n_rows):
            raise ValueError(f"start_row={start_row} is outside the {self.n_rows} rows of {self.name}.")


class ArraySource(Source):
    """Rows of an array or a memory map, which is never copied as a whole.

    float32 stays float32; all other numeric types become float64, one chunk at a time.

    >>> import numpy as np
    >>> source = ArraySource(np.arange(6).reshape(3, 2), y=["a", "b", "a"], chunk_bytes=32)
    >>> [(chunk.start, chunk.X.tolist()) for chunk in source.chunks()]
    [(0, [[0.0, 1.0], [2.0, 3.0]]), (2, [[4.0, 5.0]])]
    """

    def __init__(self, X, y=None, weight=None, *, chunk_bytes: int = CHUNK_BYTES):
        self._X = np.asarray(X)
        if self._X.ndim != 2 or self._X.dtype.kind not in "biuf":
            raise ValueError(
                f"X must be a numeric matrix, got {self._X.ndim} dimension(s) of type {self._X.dtype}; "
                "reshape or convert it first."
            )
        self.n_rows, self.n_features = self._X.shape
        self.dtype = np.dtype(np.float32 if self._X.dtype.kind + str(self._X.itemsize) == "f4" else np.float64)
        self.name = f"the memory map {X.filename}" if isinstance(X, np.memmap) and X.filename else "X"
        self.is_in_memory = not isinstance(X, np.memmap)
        self.chunk_bytes = chunk_bytes
        self.labels = self._beside("y", y)
        self._weight = self._beside("weight", weight)

    def _beside(self, name: str, values) -> np.ndarray | None:
        if values is None:
            return None
        values = np.asarray(values)
        if values.ndim == 0 or len(values) != self.n_rows:
            raise ValueError(f"X has {self.n_rows} rows but {name} has shape {values.shape}; pass one value per row.")
        if name == "weight" and (values.ndim > 1 or values.dtype.kind not in "biuf"):
            raise ValueError(f"weight must contain one number per row, got {values.dtype} of shape {values.shape}.")
        return values

    def chunks(self, start_row: int = 0, columns_only: bool = False) -> Iterator[Chunk]:
        self._check_start(start_row)
        beside = (None, None) if columns_only else (self.labels, self._weight)
        for rows in row_slices(self._X.shape[0] - start_row, 1, self.chunk_rows):
            rows = slice(start_row + rows.start, start_row + rows.stop)
            y, weight = (None if part is None else part[rows] for part in beside)
            weight = None if weight is None else weight.astype(np.float64, copy=False)
            yield Chunk(self._part(rows), y, weight, rows.start)

    def _part(self, rows: slice) -> np.ndarray:
        return np.ascontiguousarray(self._X[rows], dtype=self.dtype)


class TensorSource(ArraySource):
    """Rows of a tensor, which stay on their device; labels and weights are NumPy arrays."""

    is_in_memory, takes_gaps = True, False

    def __init__(self, X, y: np.ndarray, weight: np.ndarray | None, *, chunk_bytes: int = DEVICE_CHUNK_BYTES):
        device = Device.of(X)
        self._X, self.labels, self._weight = device.floats(X), y, weight
        self.n_rows, self.n_features = X.shape
        self.dtype = np.dtype(np.float32 if self._X.dtype == device.xp.float32 else np.float64)
        self.name, self.chunk_bytes = f"X on {device.name}", chunk_bytes

    @property
    def chunk_rows(self) -> int:
        return max(1, self.chunk_bytes // max(1, self.n_features * self.dtype.itemsize))

    def _part(self, rows: slice):
        return self._X[rows, ...]


class EncodedSource(Source):
    """The rows of a table with categories or missing values as a matrix, encoded chunk by chunk."""

    def __init__(self, source: Source, columns):
        self._source, self._columns = source, columns
        self.name, self.n_rows, self.chunk_bytes = source.name, source.n_rows, source.chunk_bytes
        self.n_features, self.dtype = len(columns.origins), np.dtype(np.float64)
        self.is_in_memory, self.where = source.is_in_memory, source.where  # type: ignore[method-assign]

    def chunks(self, start_row: int = 0, columns_only: bool = False) -> Iterator[Chunk]:
        numbers = self._columns.numbers(self._source.feature_names)
        for chunk in self._source.tables(start_row, columns_only, numbers, self.chunk_rows):
            yield chunk._replace(X=self._columns(chunk.X, is_new=False))


def as_source(X, y=None, weight=None) -> Source | None:
    """``X`` as a source if it is a source or a memory map; None otherwise."""
    if isinstance(X, np.memmap):
        return ArraySource(X, y, weight)
    if not isinstance(X, Source):
        return None
    for name, values in (("y", y), ("sample_weight", weight)):
        if values is not None:
            raise ValueError(
                f"{name} cannot be passed together with a source, which has its own labels and weights; leave {name} "
                "out and name the columns when you open the source: open_rows(..., target=..., weight=...)."
            )
    return X


def check_chunk(chunk: Chunk, source: Source | str, allow_nan: bool = False) -> Chunk:
    """The same chunk, or a ValueError that locates a NaN, an infinity, a missing label or an invalid weight."""
    where = source.where if isinstance(source, Source) else f"row {{}} of {source}".format
    if not all_finite(chunk.X):
        _refuse_first(np.isinf(to_numpy(chunk.X)), "infinity", chunk, source, where)
        if not allow_nan:
            _refuse_first(np.isnan(to_numpy(chunk.X)), "NaN", chunk, source, where)
    _check_labels(chunk, where)
    _check_weight(chunk, where)
    return chunk


def _refuse_first(is_bad: np.ndarray, found: str, chunk: Chunk, source: Source | str, where) -> None:
    """Raise an error for the first bad value, if there is one."""
    if not is_bad.any():
        return
    row, column = np.argwhere(is_bad)[0]
    names = source.feature_names if isinstance(source, Source) else None
    name = repr(names[column]) if names is not None else str(column)
    kind = NotPlainNumbers if found == "NaN" else ValueError
    raise kind(
        f"Input X contains {found} in column {name}, {where(chunk.start + row)} (counted from 0); "
        "drop or fill such rows first."
    )


def in_double(X):
    """Rows in float64, since kernel values of float32 rows make systems indefinite. Tensors are left unchanged.

    Rows are stored and read in float32; call this just before a block of rows is used.
    """
    return X if is_tensor(X) else X.astype(np.float64, copy=False)


def all_finite(X) -> bool:
    """Whether all values are finite; a tensor is checked on its device."""
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
    """Which labels are missing; None if their type has no missing values or none of the distinct labels is missing."""
    if y.dtype.kind == "f":
        return ~np.isfinite(y)
    # millions of labels have few distinct values, and finding these with a set is ten times faster than checking all
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
            f"the weight {chunk.weight[row]:g} in {where(chunk.start + row)} (counted from 0) is invalid; "
            f"every weight must be 0 or a finite number between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}."
        )


def ahead(items: Iterable[Item], depth: int = 2) -> Iterator[Item]:
    """The items in order, produced by a background thread that runs up to ``depth`` items ahead.

    Reading and parsing release the interpreter lock, so they overlap with the consumer's computations. Exceptions of
    the iterator are raised here. If the consumer stops early, the thread ends after its current item and closes the
    iterator.
    """
    if depth < 1:
        raise ValueError(f"depth={depth!r} must be at least 1.")
    return _run_ahead(items, depth)


def _run_ahead(items: Iterable[Item], depth: int) -> Iterator[Item]:
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1, initializer=_name_thread) as reader:
        produced: deque[Future] = deque(reader.submit(next, iterator, end) for _ in range(depth))
        try:
            while (item := produced.popleft().result()) is not end:
                produced.append(reader.submit(next, iterator, end))
                yield item
                del item  # otherwise the last chunk would stay in memory while we wait for the next
        finally:
            for each in produced:
                each.cancel()
            with suppress(RuntimeError):  # the interpreter exits, and has ended the thread
                reader.submit(getattr(iterator, "close", lambda: None))


def _name_thread() -> None:
    threading.current_thread().name = "kproba-ahead"


def settled(clf: Any, source: Source) -> Any:
    """The classifier, reading the numbers in all chunks of new rows in the same notation."""
    columns = getattr(clf, "columns_", None)
    if columns is None:
        return clf
    names = getattr(clf, "feature_names_in_", source.feature_names)
    marks = source.marks(columns.marks(names))
    if not marks:
        return clf
    clf = copy(clf)
    clf.columns_ = columns.settled(names, marks)
    return clf


def inputs(source: Source, names=None, columns=None) -> Iterator[Any]:
    """The inputs without labels, chunk by chunk; columns in the order of ``names`` if both have names.

    For a model of a table, which knows its ``columns``, these are frames if the source has columns of several types.
    """
    order = None
    if names is not None and source.feature_names is not None and list(names) != source.feature_names:
        missing = [name for name in names if name not in source.feature_names]
        if missing:
            raise ValueError(f"{source.name} has no column {missing[0]!r}, which the model was fitted on.")
        order = [source.feature_names.index(name) for name in names]
    for chunk in ahead(
        source.chunks(columns_only=True) if columns is None else source.tables(0, True, columns.numbers(names))
    ):
        X = chunk.X
        if isinstance(X, np.ndarray):
            X = check_chunk(chunk, source, allow_nan=source.takes_gaps).X
            yield (X if order is None else X[:, order]).view(CheckedInputs)
        else:
            yield X if order is None else X.iloc[:, order]
