"""A summary of all rows in one pass, before any model is fitted: their number, their labels, and a sample.

Summaries add up: those of two parts of the rows, wherever they are, sum to the summary of both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays import Device, is_tensor, to_numpy
from .copies import with_units
from .hashing import equal_rows, keys_of_ranking, ranking, ranking_on_device, row_keys
from .labels import are_strings, class_factors, encode, numbered
from .rows import Rows
from .sources import Chunk, in_double
from .sweep import Statistic

#: Maximum rows of the sample, maximum bytes of their inputs, and rows kept of every class, however rare.
SAMPLE_ROWS, SAMPLE_BYTES, CLASS_ROWS = 50_000, 256 << 20, 200


def sample_size(n_features: int) -> int:
    """Number of distinct rows of the sample: as many as its bytes allow, from 2,000 to 50,000."""
    return int(np.clip(SAMPLE_BYTES // (8 * n_features), 2_000, SAMPLE_ROWS))


@dataclass
class Summary:
    """The number of rows, the weight of each label, all rows while they are few, and a sample of distinct rows.

    The sample has the ``size`` distinct rows with the smallest keyed hash, and a minimum number from each class. It
    depends on the rows and the seed, but not on their order or on how often a row is repeated.
    """

    size: int
    seed: int
    n_rows: int = 0
    label_weight: dict[Any, float] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    sample: _Sample | None = None

    def add(self, chunk: Chunk, device: Device | None = None) -> Summary:
        """Add a checked chunk; its keys are computed on the device, if given."""
        return self.collect(chunk, device).settled()

    def collect(self, chunk: Chunk, device: Device | None = None) -> Summary:
        """Add a checked chunk, but leave its part of the sample aside: joining every one of them would copy too much.

        ``settled`` joins them.
        """
        y = np.asarray(chunk.y)
        if y.dtype.kind == "f" and (y != np.floor(y)).any():
            raise ValueError("Unknown label type: y has fractional numbers (continuous); a classifier needs classes.")
        labels = _label_weights(y, chunk.weight)
        for label, total in labels.items():
            self.label_weight[label] = self.label_weight.get(label, 0.0) + total
        part = None
        parts = self._parts
        if not parts and chunk.weight is None:
            part = _first_on_device(chunk.X, y, self.seed, self.size, labels)
        if part is None:
            before = _threshold_of(parts)
            keys = row_keys(chunk.X if device is None else device.put(chunk.X))
            weight = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
            part = _Sample.of(chunk.X, keys, y, weight, self.seed, self.size, *before)
        parts.append(part)
        self._count(chunk.n_rows, [chunk])
        if sum(len(part.rank) for part in parts) > 2 * self.size:
            parts[:] = [_Sample.joined(parts).reduced(self.size)]
        return self

    @property
    def _parts(self) -> list[_Sample]:
        """The parts of the sample, only while chunks are collected."""
        return self.__dict__.setdefault("_aside", [] if self.sample is None else [self.sample])

    def settled(self) -> Summary:
        """The same with all parts of the sample joined."""
        parts = self.__dict__.pop("_aside", None)
        if parts:
            self.sample = _Sample.joined(parts)
        return self

    def __add__(self, other: Summary) -> Summary:
        self.settled()
        other.settled()
        total = Summary(self.size, self.seed, self.n_rows, dict(self.label_weight), list(self.chunks))
        for label, weight in other.label_weight.items():
            total.label_weight[label] = total.label_weight.get(label, 0.0) + weight
        parts = [part for part in (self.sample, other.sample) if part is not None]
        total.sample = _Sample.joined(parts).reduced(self.size) if parts else None
        total._count(other.n_rows, other.chunks)
        return total

    def _count(self, n_rows: int, chunks: list[Chunk]) -> None:
        """Count rows, and keep all of them in order while they are no more than the sample."""
        self.n_rows += n_rows
        self.chunks = [*self.chunks, *chunks] if self.n_rows <= self.size else []

    @property
    def has_all(self) -> bool:
        return len(self.chunks) > 0

    def everything(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """X, y and weights of all rows in order, if they are few."""
        X, y = (np.concatenate([np.asarray(to_numpy(chunk[k])) for chunk in self.chunks]) for k in (0, 1))
        if all(chunk.weight is None for chunk in self.chunks):
            return X, y, None
        return X, y, np.concatenate([chunk.weight for chunk in self.chunks if chunk.weight is not None])

    def classes(self, named=None) -> np.ndarray:
        """The sorted labels; ``named`` are classes that the user passed in addition."""
        labels = np.array(sorted(label for label, weight in self.label_weight.items() if weight > 0))
        if not len(labels):
            raise ValueError("the weight of every row is zero; at least one weight must be positive.")
        if named is not None:
            labels = np.union1d(labels, np.asarray(named))
        if len(labels) < 2:
            raise ValueError(f"y has only one class ({labels.tolist()[0]!r}); a classifier needs at least 2 classes.")
        return labels

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return sum(self.label_weight.values())

    def class_weights(self, classes: np.ndarray) -> np.ndarray:
        """The total weight of the rows of each class."""
        return np.array([self.label_weight.get(label, 0.0) for label in classes.tolist()])

    def rows(self, classes: np.ndarray, class_weight, categorical: tuple[int, ...] = ()) -> tuple[Rows, np.ndarray]:
        """The sample as rows with the class frequencies of all rows, and the weight factor of each class."""
        assert self.sample is not None
        part = self.sample.reduced(self.size)
        codes, totals = encode(part.y, classes), self.class_weights(classes)
        # one row per class with the total weight of the class gives the same factors as all rows
        factors = class_factors(class_weight, classes, np.arange(len(classes)), totals) * np.ones(len(classes))
        found = np.bincount(codes, part.weight, len(classes))
        share = np.divide(totals, found, out=np.zeros_like(totals), where=found > 0) * found.sum() / totals.sum()
        given = Rows.of(
            in_double(part.X),
            codes,
            part.weight,
            len(classes),
            factors[codes],
            categorical=categorical,
            hashes=keys_of_ranking(part.rank, self.seed),
        )
        rows = with_units(given.merged()[0])[0]
        # only the weights are corrected, not the unit that leave-one-out and folds remove
        return replace(rows, weight=rows.weight * share[rows.labels], mass=rows.weight), factors


@dataclass
class _Sample:
    """Unordered rows with the rank of their hash; may contain copies of a row until it is reduced.

    Rows that rank behind ``threshold`` are only needed for their class.
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    rank: np.ndarray
    threshold: np.uint64 | None = None
    #: labels with enough rows before the threshold
    settled: tuple = ()

    @classmethod
    def of(cls, X, keys, y, weight, seed: int, size: int, threshold, settled: tuple = ()) -> _Sample:
        """Rows of positive weight; once there is a threshold, rows behind it only if their class needs them."""
        rank, kept = ranking(keys, seed), weight > 0
        threshold = _first_threshold(rank[kept], size) if threshold is None else threshold
        if threshold is not None:
            kept &= _needed(y, rank, threshold, settled)
        X = Device.of(X).take(X, np.flatnonzero(kept)) if is_tensor(X) else X[kept]
        return cls(X, y[kept], weight[kept], rank[kept], threshold, settled)

    @classmethod
    def joined(cls, parts: list[_Sample]) -> _Sample:
        """The rows of all parts."""
        if len(parts) == 1:
            return parts[0]
        names = "X", "y", "weight", "rank"
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        threshold, settled = _threshold_of(parts)
        return cls(**columns, threshold=threshold, settled=settled)

    def reduced(self, size: int) -> _Sample:
        """Merge copies of a row, adding their weights, and keep the first distinct rows of all and of each class."""
        order = np.argsort(self.rank, kind="stable")
        if (np.diff(self.rank[order]) == 0).any():
            order, is_new = self._tied()
        else:
            is_new = np.ones(len(order), dtype=bool)
        first, group = order[is_new], np.cumsum(is_new) - 1
        weight = np.bincount(group, self.weight[order])
        rank, y = self.rank[first], self.y[first]
        distinct = rank[np.append(True, np.diff(rank) > 0)[: len(rank)]]  # already sorted
        threshold = distinct[size - 1] if len(distinct) > size else self.threshold
        kept = np.full(len(rank), True) if threshold is None else _needed(y, rank, threshold)
        settled = () if threshold is None else _frequent(y[rank <= threshold])
        return _Sample(self.X[first[kept]], y[kept], weight[kept], rank[kept], threshold, settled)

    def _tied(self) -> tuple[np.ndarray, np.ndarray]:
        """The order by rank, then by label, and which of the rows are no copies of the one before.

        Rows that share a hash are merged only if their values are equal; copies separated by another row with the same
        hash stay separate until ``Rows.merged``.
        """
        codes = np.unique(self.y, return_inverse=True)[1].ravel()
        order = np.lexsort([codes, self.rank])
        same_rank = np.append(False, (np.diff(self.rank[order]) == 0) & (np.diff(codes[order]) == 0))
        tied = np.flatnonzero(same_rank)
        same_rank[tied] = equal_rows(self.X, order[tied - 1], self.X, order[tied])
        return order, ~same_rank


def _threshold_of(parts: list[_Sample]) -> tuple[np.uint64 | None, tuple]:
    """The lowest threshold of some parts, and the labels that have enough rows before it."""
    least = min((part.threshold for part in parts if part.threshold is not None), default=None)
    return least, tuple({label for part in parts if part.threshold == least for label in part.settled})


def _first_on_device(X, y: np.ndarray, seed: int, size: int, labels: dict[Any, float]) -> _Sample | None:
    """The sample of the first chunk of a tensor, ordered on its device; None if the usual way is needed.

    That is the case if there are few rows, many copies, or a label that is rare among the rows before the threshold.
    """
    device = Device.of(X) if is_tensor(X) else None
    if device is None or device.library != "torch" or X.shape[0] <= 4 * size:
        return None
    ranks, order = ranking_on_device(device, X, seed).sort()
    rank = device.get(ranks[: 2 * size]).view(np.uint64) ^ np.uint64(2**63)
    n_near = int((ranks <= ranks[2 * size - 1]).sum())  # copies of the last of them are before the threshold too
    if n_near != 2 * size or 1 + np.count_nonzero(rank[1:] != rank[:-1]) < size:
        return None
    near = order[: 2 * size]
    y = y[device.get(near)]
    if not set(labels) <= set(_frequent(y)):
        return None
    return _Sample(device.get(X[near]), y, np.ones(2 * size), rank, rank[-1])


def _label_weights(y: np.ndarray, weight: np.ndarray | None) -> dict[Any, float]:
    """The weight of each label; strings and integers close to each other are counted, which is faster than sorting."""
    if y.dtype.kind in "iu" and len(y) and int(y.max()) - (low := int(y.min())) < len(y):
        codes = (y - y.dtype.type(low) if low else y).astype(np.intp, copy=False)
        counts = np.bincount(codes)
        totals = counts if weight is None else np.bincount(codes, weight)
        return {low + k: float(totals[k]) for k in np.flatnonzero(counts).tolist()}
    if are_strings(y):
        names, codes = numbered(y)
        return dict(zip(names, np.bincount(codes, weight, len(names)).tolist()))
    labels, codes = np.unique(y, return_inverse=True)
    return dict(zip(labels.tolist(), np.bincount(codes.ravel(), weight, len(labels)).tolist()))


def _first_threshold(rank: np.ndarray, size: int) -> np.uint64 | None:
    """A rank with at least ``size`` distinct rows before it, to skip the rest; None if there are not many more rows."""
    if len(rank) <= 4 * size:
        return None
    first = np.partition(rank, 2 * size)[: 2 * size]
    first.sort()  # numpy.unique is several times slower
    return first[-1] if 1 + np.count_nonzero(first[1:] != first[:-1]) >= size else None


def _needed(y: np.ndarray, rank: np.ndarray, threshold: np.uint64, settled: tuple = ()) -> np.ndarray:
    """Which rows rank before the threshold, or are among the first of a label that has few before it."""
    kept = rank <= threshold
    rest = ~np.isin(y, [*settled, *_frequent(y[kept])])
    if rest.any():
        rare = np.flatnonzero(rest)
        kept[rare] |= _first_of_each(y[rare], rank[rare], CLASS_ROWS)
    return kept


def _frequent(y: np.ndarray) -> tuple:
    """The labels that occur often enough."""
    if y.dtype.kind in "iu" and len(y) and int(y.max()) - (low := int(y.min())) < len(y):  # faster than one by one
        counts = np.bincount((y - y.dtype.type(low)).astype(np.intp))
        return tuple(low + k for k in np.flatnonzero(counts >= CLASS_ROWS).tolist())
    return tuple(label for label, count in Counter(y.tolist()).items() if count >= CLASS_ROWS)


def _first_of_each(y: np.ndarray, rank: np.ndarray, size: int) -> np.ndarray:
    """Which rows are among the first ``size`` of their label by rank."""
    kept = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        kept[own if len(own) <= size else own[np.argpartition(rank[own], size)[:size]]] = True
    return kept


@dataclass(frozen=True)
class SummaryOf(Statistic):
    """The summary as a statistic for :func:`kproba.data.sweep.sweep_source`."""

    size: int
    seed: int
    device: Device | None = None

    def zero(self) -> Summary:
        return Summary(self.size, self.seed)

    def add(self, total: Summary, chunk: Chunk) -> Summary:
        if chunk.y is None:
            raise ValueError("the rows have no labels; use open_rows(..., target=...) to name their column, or pass y.")
        return total.collect(chunk, self.device)

    def finish(self, total: Summary) -> Summary:
        return total.settled()
