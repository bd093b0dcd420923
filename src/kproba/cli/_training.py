"""Recognition of the rows a model was fitted on: in any order, in any file, in part and among other rows.

A row is identified by a 64-bit digest of its values and its class. With n training rows, another row is taken for one
of them with a probability of n · 2⁻⁶⁴, less than 10⁻¹³ for a million. Numbers are compared in float32, as the
classifier sees them, so that a CSV file and the Parquet file it was converted from have the same rows.
"""

from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module

import numpy as np

from ..data.hashing import mix
from ..threads import row_slices

#: Maximum number of digests in a model, 1 MB. With more rows it keeps the smallest, a random sample of distinct rows.
MOST_KEPT = 1 << 17
#: The number of rows that equal training rows by chance may exceed its expectation by this many standard deviations.
DEVIATIONS = 3.0
_DIGEST_BYTES = 8
_MISSING = np.uint64(0x7FF8DEAD7FF8DEAD)  # not a float32, and the digest of a text only with a probability of 2⁻⁶⁴
_MASK = (1 << 63) - 1
_ODD = np.uint64(0x9E3779B97F4A7C15)
_TILE = 1 << 15  # rows whose digests stay in a core's cache


@dataclass(frozen=True)
class SeenRows:
    """Digests of the rows that a model was fitted on.

    ``digests`` are those of all rows in order, or the smallest, sorted, if there are too many. ``total`` is the sum of
    all digests modulo 2⁶³, which does not depend on the order of the rows and, unlike an XOR, does not cancel for
    pairs of equal rows. ``repeated`` is the fraction of rows that equal another one. ``by_blake2b`` says that the
    digests are those of earlier versions, which took a second for a million rows.
    """

    digests: np.ndarray
    n_rows: int
    total: int
    repeated: float
    by_blake2b: bool = False

    @property
    def has_all(self) -> bool:
        return len(self.digests) == self.n_rows


class RowSketch:
    """Collects the digests of the rows of a fit part by part, once each even if they are read repeatedly."""

    def __init__(self, prepared):
        self._prepared, self._is_cut = prepared, False
        self._digests, self._counts = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        self._n_rows, self._total = 0, 0

    def add(self, frame, labels: np.ndarray, start: int = 0) -> None:
        """Add rows, the first of which has index ``start``."""
        if start < self._n_rows:
            return
        digests = row_digests(self._prepared, frame, labels)
        self._n_rows += len(digests)
        self._total = (self._total + _sum(digests)) & _MASK
        self._digests.append(digests)
        self._counts.append(np.ones(len(digests), np.int64))
        if self._n_rows > MOST_KEPT and sum(map(len, self._digests)) > 2 * MOST_KEPT:
            self._cut()

    def _cut(self) -> None:
        """Keep the smallest distinct digests and their counts."""
        digests, place = np.unique(np.concatenate(self._digests), return_inverse=True)
        counts = np.bincount(place, np.concatenate(self._counts)).astype(np.int64)
        self._digests, self._counts, self._is_cut = [digests[:MOST_KEPT]], [counts[:MOST_KEPT]], True

    def finish(self) -> SeenRows:
        if self._n_rows > MOST_KEPT:
            self._cut()
        digests = np.concatenate(self._digests)
        counts = np.concatenate(self._counts) if self._is_cut else np.unique(digests, return_counts=True)[1]
        repeated = float(counts[counts > 1].sum() / max(1, counts.sum()))
        return SeenRows(digests, self._n_rows, self._total, repeated)


class Recognition:
    """Compares rows with those that a model was fitted on, part by part."""

    def __init__(self, seen: SeenRows):
        self._seen, self.by_blake2b, self._order = seen, seen.by_blake2b, np.argsort(seen.digests, kind="stable")
        self._sorted = seen.digests[self._order]
        self.n_rows, self._n_known, self._n_compared, self._total = 0, 0, 0, 0

    def numbers(self, digests: np.ndarray) -> np.ndarray:
        """The index of the training row that each row equals; -1 if there is none, or it is not kept."""
        place = np.searchsorted(self._sorted, digests)
        inside = place < len(self._sorted)
        place[~inside] = 0
        found = np.where(inside & (self._sorted[place] == digests), self._order[place], -1)
        same = self._seen.digests[self.n_rows : self.n_rows + len(digests)]
        if self._seen.has_all and np.array_equal(same, digests):  # same order: duplicates keep their own index
            found = self.n_rows + np.arange(len(digests))
        self.n_rows += len(digests)
        self._total = (self._total + _sum(digests)) & _MASK
        self._n_known += int((found >= 0).sum())
        self._n_compared += len(digests) if self._seen.has_all else int(inside.sum())
        return found

    @property
    def n_training(self) -> int:
        """Number of training rows among the rows, estimated if not all digests are kept; 0 if chance explains them.

        If rows are repeated, new rows can equal training rows by chance: by the Good–Turing estimate, with a
        probability equal to the fraction of repeated rows. Only an excess over that, or the whole table, is evidence.
        """
        if (self.n_rows, self._total) == (self._seen.n_rows, self._seen.total):
            return self.n_rows
        p, n = self._seen.repeated, self._n_compared
        if not n or self._n_known <= p * n + DEVIATIONS * np.sqrt(p * (1 - p) * n):
            return 0
        return max(1, round(self._n_known / n * self.n_rows))


def row_digests(prepared, frame, labels: np.ndarray, by_blake2b: bool = False) -> np.ndarray:
    """A 64-bit digest per row, of its class and its values as the steps before the classifier read them."""
    frame = prepared["columnkinds"].transform(frame)
    dates = _date_readers(prepared)
    columns = [_date_words(frame[name], dates[name]) if name in dates else _words(frame[name]) for name in frame]
    columns.append(_text_words(import_module("pandas").Series(labels)))
    return (_blake2b if by_blake2b else _mixed)(columns)


def _blake2b(columns: list[np.ndarray]) -> np.ndarray:
    words = np.column_stack(columns)
    rows = np.ascontiguousarray(words).view(f"V{words.itemsize * words.shape[1]}").ravel().tolist()
    digests = [blake2b(row, digest_size=_DIGEST_BYTES).digest() for row in rows]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _mixed(columns: list[np.ndarray]) -> np.ndarray:
    """A chain of bijections, one for each column, so that rows which differ in one column stay different."""
    digests = np.zeros(len(columns[0]), np.uint64)
    for rows in row_slices(len(digests), 1, _TILE):
        for column in columns:
            digests[rows] = mix(digests[rows] * _ODD ^ column[rows]) + _ODD
    return digests


def _date_readers(prepared) -> dict:
    """The fitted date parser of each date column."""
    table = prepared["tablevectorizer"]
    steps = {name: table.all_processing_steps_[name] for name in table.kind_to_columns_["datetime"]}
    return {name: step for name, found in steps.items() for step in found if type(step).__name__ == "ToDatetime"}


def _words(column) -> np.ndarray:
    """64 bits per value: numbers as float32, everything else as stripped text."""
    if column.dtype.kind not in "iufb":
        return _text_words(column)
    with np.errstate(over="ignore"):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan).astype(np.float32) + np.float32(0)  # no −0
    return np.where(np.isnan(values), _MISSING, values.view(np.uint32).astype(np.uint64))


def _text_words(column) -> np.ndarray:
    codes, distinct = import_module("pandas").factorize(column)
    texts = (blake2b(str(each).strip().encode("utf-8", "surrogatepass"), digest_size=8).digest() for each in distinct)
    words = np.append(np.frombuffer(b"".join(texts), dtype="<u8").astype(np.uint64), _MISSING)
    return words[codes]  # missing values have code −1


def _date_words(column, reader) -> np.ndarray:
    """Timestamps in nanoseconds, independent of the date format."""
    moments = import_module("pandas").to_datetime(reader.transform(column), utc=True).astype("datetime64[ns, UTC]")
    return np.where(moments.isna(), _MISSING, moments.astype("int64").to_numpy().view(np.uint64))


def _sum(digests: np.ndarray) -> int:
    return int(digests.sum(dtype=np.uint64)) & _MASK
