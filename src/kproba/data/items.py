"""Data that is not a table: strings, sets, graphs, sequences, or any object that a kernel can compare.

A subset of items is a view that shares a ``memory`` with the whole collection: what a kernel computes for an item (such
as its hidden Markov model) is computed once, however often a search or a cross-validation needs it.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .hashing import by_place, mix, row_keys

#: Attributes that are not pickled.
ORIGIN = ("_origin", "_places_there")


class Memory:
    """A cache that kernels keep for the items of one collection, with one entry per computation."""

    def __init__(self):
        self.entries, self.lock = {}, threading.RLock()

    def entry(self, key, make: Callable[[], Any]) -> Any:
        with self.lock:
            if key not in self.entries:
                self.entries[key] = make()
            return self.entries[key]

    def __getstate__(self):
        with self.lock:
            return self.entries.copy()

    def __setstate__(self, entries):
        self.entries, self.lock = entries, threading.RLock()


class Table:
    """Values for pairs of the n items of a collection: computed once and cached, if the n × n matrix is not large."""

    #: the most items for which it is cached
    most = 6000

    def __init__(self, n: int):
        self.n = n
        self._values: np.ndarray | None = None

    def block(self, X, Z, compute: Callable[[Any, Any], np.ndarray]) -> np.ndarray:
        """``compute(X, Z)`` for items X and Z of the collection (n, b), from the cache if possible."""
        if self.n > self.most:
            return compute(X, Z)
        where = np.ix_(X.places, Z.places)
        with X.memory.lock:
            if self._values is None:
                self._values = np.full((self.n, self.n), np.nan)
            unknown = np.isnan(self._values[where])
            if unknown.any():
                some, others = X[unknown.any(axis=1)], Z[unknown.any(axis=0)]
                self._values[np.ix_(some.places, others.places)] = compute(some, others)
            return self._values[where]

    def taken(self, places: np.ndarray) -> Table:
        """An empty table for a collection of some of the items."""
        return Table(len(places))

    def __getstate__(self):
        return {"n": self.n, "_values": None}


class Items:
    """A collection of objects, or a view of some of them."""

    #: the type of the features that kernels compute from them
    dtype = np.dtype(np.float64)
    ndim = 1
    #: the memory of the collection that these were detached from, and their positions in it
    _origin: Any = None
    _places_there: Any = None

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = as_objects(values)
        self._index = np.arange(len(self._values))
        self.memory = Memory()

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"<{len(self)} items>"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self),)

    def __iter__(self) -> Iterator[Any]:
        return (self._value(i) for i in self._index)

    def __getitem__(self, key: Any) -> Any:
        """One item by its index; a view of several by a slice, indices or a boolean mask."""
        if isinstance(key, tuple):  # X[rows, ...]
            key = key[0]
        if isinstance(key, Integral):
            return self._value(self._index[key])
        return self._view(self._index[key if isinstance(key, slice) else np.asarray(key)])

    def _value(self, i):
        return self._values[i]

    def _view(self, index: np.ndarray) -> Self:
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__, _index=index)
        return view

    def astype(self, dtype: Any, copy: bool = True) -> Self:
        """Returns the items unchanged, since they have no precision."""
        return self

    @property
    def places(self) -> np.ndarray:
        """The positions of the items in their collection, whose memory they share."""
        return self._index

    @property
    def collection(self) -> Self:
        """All items of the collection."""
        return self._view(np.arange(self._n_all))

    @property
    def _n_all(self) -> int:
        return len(self._values)

    def detached(self) -> Any:
        """The same items as a separate collection with a copy of what is cached for them.

        It keeps a weak reference to its origin, so that a model can reuse the cached values of its training rows.
        """
        own = self._copied()
        with self.memory.lock:
            known = {key: entry.taken(self._index) for key, entry in self.memory.entries.items()}
        own.memory.entries.update(known)
        own._origin, own._places_there = weakref.ref(self.memory), self._index
        return own

    def within(self, other: Items) -> Any:
        """The same items as a view of the other's collection if they were detached from it; otherwise ``self``."""
        if self._origin is None or self._origin() is not other.memory:
            return self
        return other._view(self._places_there[self._index])

    def _copied(self):
        return Items(self)

    def __reduce__(self):
        state = self.detached().__dict__
        return _rebuilt, (type(self), {key: value for key, value in state.items() if key not in ORIGIN})

    def row_keys(self) -> np.ndarray:
        """One 64-bit key per item, equal for equal items."""
        return mix(np.fromiter(map(_item_key, self), dtype=np.uint64, count=len(self)))

    def joined(self, other: Items) -> Items:
        """These items followed by the others, as a new collection."""
        return Items([*self, *other])

    def equal_items(self, i: np.ndarray, other: Items, j: np.ndarray) -> np.ndarray:
        """Whether item i[k] equals item j[k] of the other collection, for each k."""
        return np.fromiter((_are_equal(self[a], other[b]) for a, b in zip(i, j)), dtype=bool, count=len(i))


class Sequences(Items):
    """Sequences of frames: stacked (frames × coefficients) arrays of any length.

    You can pass it wherever a list of 2-D arrays is accepted. It caches what kernels compute for the sequences: if you
    pass the same object to several fits with ``scaling=None``, or to a cross-validation, nothing is computed twice.

    Parameters
    ----------
    frames : array of shape (sum of lengths, d)
        The frames of all sequences, one sequence after the other.
    lengths : array of shape (n,)
        Number of frames of each sequence.

    >>> import numpy as np
    >>> X = Sequences(np.arange(10.0).reshape(5, 2), lengths=[2, 3])
    >>> len(X), X[1].shape, X[[1, 0]].lengths
    (2, (3, 2), array([3, 2]))
    """

    def __init__(self, frames: ArrayLike, lengths: ArrayLike) -> None:
        frames, lengths = np.asarray(frames), np.asarray(lengths)
        if frames.ndim != 2 or frames.dtype.kind not in "fiub":
            raise ValueError(
                f"frames has shape {frames.shape} and type {frames.dtype}; it must be a numeric matrix with one row "
                "per frame."
            )
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
            raise ValueError(f"lengths={lengths!r} must be a list of integers, one per sequence.")
        _check_lengths(lengths)
        if lengths.sum() != len(frames):
            raise ValueError(f"lengths add up to {lengths.sum()}, but frames has {len(frames)} rows.")
        _check_finite(frames, lengths)
        self._frames = frames.astype(np.float64, copy=False)
        self._ends = np.cumsum(lengths)
        self._index = np.arange(len(lengths))
        self.memory = Memory()

    @classmethod
    def of(cls, X: Any) -> Sequences:
        """Convert X, a list of 2-D arrays, a 3-D array or sequences, to sequences."""
        if isinstance(X, Sequences):
            return X
        if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub":
            raise ValueError(
                f"X is a single array of shape {X.shape}; pass a list of 2-D arrays (frames × coefficients), or "
                "kproba.Sequences(frames, lengths) for stacked frames."
            )
        parts = [_as_frames(item, number) for number, item in enumerate(X)]
        if not parts:
            raise ValueError("X has no sequences: found 0 sample(s), a minimum of 1 is required.")
        widths = [part.shape[1] for part in parts]
        wrong = next((i for i, width in enumerate(widths) if width != widths[0]), None)
        if wrong is not None:
            raise ValueError(
                f"X: sequence {wrong} has {widths[wrong]} coefficients per frame and sequence 0 has {widths[0]}; all "
                "sequences must have the same number of coefficients."
            )
        return cls(np.concatenate(parts), np.array([len(part) for part in parts]))

    def __repr__(self) -> str:
        lengths = self.lengths
        frames = f"{lengths.min()} to {lengths.max()}" if len(self) else "no"
        return f"<{len(self)} sequences of {frames} frames, {self.n_coefficients} coefficients each>"

    @property
    def n_coefficients(self) -> int:
        return self._frames.shape[1]

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self._ends, prepend=0)[self._index]

    @property
    def frames(self) -> np.ndarray:
        """The frames of these sequences, one after the other (sum of lengths, d)."""
        if len(self) == len(self._ends) and (self._index == np.arange(len(self))).all():
            return self._frames
        return self._frames[self.frame_numbers()]

    def frame_numbers(self) -> np.ndarray:
        lengths = self.lengths
        starts = self._ends[self._index] - lengths
        return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())

    def with_frames(self, frames: np.ndarray) -> Sequences:
        """Sequences of the same lengths with other frames."""
        return Sequences(frames, self.lengths)

    def _value(self, i) -> np.ndarray:
        start = self._ends[i - 1] if i else 0
        return self._frames[start : self._ends[i]]

    @property
    def _n_all(self) -> int:
        return len(self._ends)

    def _copied(self) -> Sequences:
        return self.with_frames(self.frames.copy())

    def joined(self, other: Items) -> Sequences:
        return Sequences.of([*self, *other])

    def row_keys(self) -> np.ndarray:
        """Keys of the sequences, from their frames, the positions of the frames, and the lengths."""
        lengths = self.lengths
        place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        sums = np.add.reduceat(by_place(row_keys(self.frames), place), np.cumsum(lengths) - lengths)
        return mix(sums ^ mix(lengths.astype(np.uint64)))


def _rebuilt(kind: type, state: dict):
    items: Any = object.__new__(kind)
    items.__dict__.update(state)
    return items


def as_objects(values: Iterable) -> np.ndarray:
    """A 1-D array of arbitrary objects; NumPy would turn lists of equal length into a matrix."""
    return np.fromiter(values, dtype=object)


def is_table(X) -> bool:
    """Whether X is to be read as a numeric table, valid or not: anything but a list of other objects."""
    if isinstance(X, Items):
        return False
    if sparse.issparse(X) or hasattr(X, "columns"):
        return True
    try:
        found = np.asarray(X)
    except (ValueError, TypeError):  # lists of unequal lengths
        return False
    return found.ndim <= 2 and found.dtype.kind in "fiubc"


def as_items(X: Sequence) -> Items:
    """X as items; raises an error if X has no length or is empty."""
    if isinstance(X, Items):
        return X
    if isinstance(X, str | bytes) or not hasattr(X, "__len__"):
        raise TypeError(f"X is a {type(X).__name__}; pass a list with one entry per row.")
    if hasattr(X, "columns"):
        raise TypeError(f"X is a frame; pass a single column, such as X[{X.columns[0]!r}], or a list.")
    if not len(X):
        raise ValueError("X is empty: found 0 sample(s), a minimum of 1 is required.")
    return Items(X)


def _item_key(item) -> int:
    """A 64-bit digest: of the text of a string, of the pickled object otherwise."""
    text = item if isinstance(item, str) else joblib.hash(item)
    return int.from_bytes(hashlib.blake2b(str(text).encode(), digest_size=8).digest(), "little")


def _are_equal(a, b) -> bool:
    """Whether two arbitrary objects are equal, by their own comparison or, failing that, by their pickled contents."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype != object:
        return np.array_equal(a, b)
    try:
        if (a == b) is True:
            return True
    except (TypeError, ValueError):  # objects that cannot be compared
        pass
    return pickle.dumps(a) == pickle.dumps(b)


def _as_frames(item, number: int) -> np.ndarray:
    try:
        frames = np.asarray(item, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"X: sequence {number} is not a numeric array ({type(item).__name__}).") from None
    if frames.ndim == 1 and frames.size:
        raise ValueError(
            f"X: sequence {number} is 1-D, but must be 2-D (frames × coefficients); use x.reshape(-1, 1) for one "
            "coefficient per frame."
        )
    if frames.ndim != 2 or not frames.size:
        raise ValueError(
            f"X: sequence {number} is empty (shape {frames.shape}); every sequence needs at least one frame."
        )
    return frames


def _check_lengths(lengths: np.ndarray) -> None:
    if not len(lengths):
        raise ValueError("X has no sequences: found 0 sample(s), a minimum of 1 is required.")
    if lengths.min() < 1:
        number = int(np.argmin(lengths))
        raise ValueError(
            f"X: sequence {number} is empty (length {lengths[number]}); every sequence needs at least one frame."
        )


def _check_finite(frames: np.ndarray, lengths: np.ndarray) -> None:
    if frames.dtype.kind != "f" or np.isfinite(frames).all():
        return
    row = int(np.flatnonzero(~np.isfinite(frames).all(axis=1))[0])
    number = int(np.searchsorted(np.cumsum(lengths), row, side="right"))
    found = "NaN" if np.isnan(frames[row]).any() else "infinity"
    place = row - int(lengths[:number].sum())
    raise ValueError(
        f"Input X contains {found}: sequence {number}, frame {place} (counted from 0); drop or fill such frames first."
    )
