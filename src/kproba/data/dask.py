"""Rows of a Dask array or frame: statistics are computed where the rows are, and only their sums are transferred."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..threads import one_blas_thread
from .kinds import NotPlainNumbers
from .look import ROWS_OF_A_PARTITION, Look
from .mixed import is_mixed
from .passes import Checksum, PassRecord
from .sources import CHUNK_BYTES, Chunk, Source, check_chunk

#: Number of partial totals per thread of a cluster: more of them balance the work better.
GROUPS = 4


def is_dask(X) -> bool:
    """Whether X is a Dask collection, without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def computed(*values) -> tuple:
    """The values, with all Dask collections replaced by their results, in a single computation."""
    if not any(map(is_dask, values)):
        return values
    import dask

    return dask.compute(*values)


def _encoded(X, columns):
    """A Dask collection with the matrix that ``columns`` makes of each partition."""
    if hasattr(X, "map_partitions"):
        return X.map_partitions(_encoded_part, columns, meta=_encoded_part(X._meta, columns))
    X = _rows_of(X, "X", 2)
    shape = (X.chunks[0], (len(columns.origins),))
    return X.map_blocks(columns, is_new=False, dtype=np.float64, chunks=shape, meta=np.empty((0, 0)))


def _encoded_part(part, columns):
    from pandas import DataFrame

    return DataFrame(columns(part, is_new=False), index=part.index)


class DaskSource(Source):
    """Partitions of rows, with labels and weights partitioned in the same way."""

    def __init__(self, X, y=None, weight=None, *, chunk_bytes: int = CHUNK_BYTES):
        self.name, self.chunk_bytes = "the Dask collection X", chunk_bytes
        names = list(getattr(X, "columns", []))  # only strings count as names, as in scikit-learn
        self.feature_names = names if names and all(isinstance(name, str) for name in names) else None
        self.has_categories = hasattr(X, "columns") and is_mixed(X._meta, "from_dtype")
        self._given = X, y, weight
        X = _rows_of(X, "X", 2)
        self.n_features, self.dtype = int(X.shape[1]), np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        known = not np.isnan(X.shape[0])
        self.n_rows = int(X.shape[0]) if known else None
        self._rows, self._parts = X, [part for (part,) in X.to_delayed()]
        self._y = self._beside(y, "y", X)
        self._weight = self._beside(weight, "sample_weight", X)
        self._record = PassRecord()

    def _beside(self, values, name: str, X) -> list:
        """The partitions of y or the weights that correspond to those of X."""
        if values is None:
            return [None] * len(self._parts)
        if not is_dask(values):
            raise TypeError(f"{name} must be a Dask collection partitioned like X, got {type(values).__name__}.")
        values = _rows_of(values, name, 1)
        if not np.isnan(X.shape[0]) and not np.isnan(values.shape[0]):
            if values.shape[0] != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows but {name} has {values.shape[0]}.")
            values = values.rechunk((X.chunks[0],))
        if len(values.chunks[0]) != len(self._parts):
            raise ValueError(
                f"{name} has {len(values.chunks[0])} partitions but X has {len(self._parts)}; repartition one of them."
            )
        return list(values.to_delayed())

    def reduce(self, statistic) -> Any:
        """The sum of the statistic over all rows: computed where the partitions are, and added up in a tree."""
        import dask

        shipped = dask.delayed(statistic.on_one_thread(), pure=False)
        group_total, add = (dask.delayed(f, pure=False) for f in (_group_total, _sum))
        parts = list(enumerate(zip(self._parts, self._y, self._weight)))
        totals = [
            group_total(shipped, [parts[k] for k in group], self.name, self.chunk_rows)
            for group in _groups([part.key for part in self._parts], self._rows)
        ]
        while len(totals) > 1:
            totals = [add(totals[k : k + 2]) for k in range(0, len(totals), 2)]
        ((total, found),) = dask.compute(totals[0])
        for number, checksum in found:
            self._record.compare(number, checksum, f"{self.name}: the rows of partition {number}")
        return total

    def look(self, size: int, seed: int) -> Look:
        """A sample of the rows of the table, and which columns have gaps; only the sample is transferred."""
        import dask

        X, at, add = self._given[0], dask.delayed(Look.at, pure=False), dask.delayed(_sum_of_looks)
        parts = X.to_delayed() if hasattr(X, "map_partitions") else self._parts
        looks = [at(part, number * ROWS_OF_A_PARTITION, size, seed) for number, part in enumerate(parts)]
        while len(looks) > 1:
            looks = [add(looks[k : k + 2]) for k in range(0, len(looks), 2)]
        return dask.compute(looks[0])[0]

    def encoded(self, columns) -> DaskSource:
        X, y, weight = self._given
        return DaskSource(_encoded(X, columns), y, weight, chunk_bytes=self.chunk_bytes)

    def chunks(self, start_row: int = 0, columns_only: bool = False) -> Iterator[Chunk]:
        """The partitions one by one, transferred to this process."""
        import dask

        start = 0
        for triple in zip(self._parts, self._y, self._weight):
            X, y, weight = dask.compute(*triple)
            for chunk in _pieces(X, y, weight, self.chunk_rows, start):
                if chunk.start >= start_row:
                    yield chunk
            start += len(X)


def _rows_of(values, name: str, ndim: int):
    """A Dask array with whole rows in every block."""
    if hasattr(values, "to_dask_array"):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Dask currently has limited support")  # strings become objects, as needed
            values = values.to_dask_array()  # a frame: the lengths of its partitions are unknown, but not needed
    elif np.isnan(values.shape[0]):
        raise ValueError(f"{name} is a Dask array with unknown chunk sizes; call {name}.compute_chunk_sizes() first.")
    if values.ndim != ndim:
        raise ValueError(f"{name} is a Dask collection with {values.ndim} dimension(s); it must have {ndim}.")
    return values.rechunk({1: -1}) if ndim == 2 and len(values.chunks[1]) > 1 else values


def floats_of(part) -> np.ndarray:
    """A partition as floats; it may have other types than Dask was told."""
    X = np.asarray(part)
    try:
        return X if X.dtype == np.float32 else X.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise NotPlainNumbers(f"a partition of X has values that are not numbers: {error}.") from error


def _pieces(X, y, weight, rows: int, start: int = 0) -> Iterator[Chunk]:
    X = floats_of(X)
    y = None if y is None else np.asarray(y)
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    for name, beside in (("y", y), ("sample_weight", weight)):
        if beside is not None and len(beside) != len(X):
            raise ValueError(
                f"a partition of X has {len(X)} rows but that of {name} has {len(beside)}: align them first."
            )
    for k in range(0, len(X), rows):
        part = slice(k, k + rows)
        piece = np.ascontiguousarray(X[part])
        yield Chunk(piece, None if y is None else y[part], None if weight is None else weight[part], start + k)


def _groups(keys: list, X) -> list[list[int]]:
    """Groups of partitions that share a total: partitions in the memory of the same worker, otherwise one each.

    A total per partition would cost more to compute, store and transfer than the rows of a small partition. The order
    of summation depends on where the partitions are at the start.
    """
    threads, holder = _cluster(X)
    groups = [[k] for k, key in enumerate(keys) if key not in holder]
    places: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        if key in holder:
            places.setdefault(holder[key], []).append(number)
    for place, numbers in places.items():
        n_groups = min(len(numbers), GROUPS * threads.get(place, 1))
        groups += [part.tolist() for part in np.array_split(numbers, n_groups)]
    return groups


def _cluster(X) -> tuple[dict, dict]:
    """Number of threads per worker, and the worker that holds each partition; both empty without a cluster."""
    try:
        from distributed import futures_of, get_client

        client = get_client()
    except (ImportError, ValueError):
        return {}, {}
    held = client.who_has(futures_of(X))
    return client.nthreads(), {key: min(workers) for key, workers in held.items() if workers}


def _group_total(statistic, parts, name: str, rows: int):
    """Runs on a worker: the statistic of some partitions, on one thread since the others have their own partitions.

    Also returns the checksum of each partition by its number, since a partition may be recomputed for every pass.
    """
    total, found = statistic.zero(), []
    with one_blas_thread():
        for number, (X, y, weight) in parts:
            found.append((number, Checksum.of(X, y, weight)))
            for chunk in _pieces(X, y, weight, rows):
                total = statistic.add(total, check_chunk(chunk, f"a partition of {name}"))
    return statistic.finish(total), found


def _sum_of_looks(looks: list[Look]) -> Look:
    """The sum of two looks, or the only one, with no more rows than are needed."""
    return sum(looks[1:], looks[0]).reduced()


def _sum(pairs):
    """The sum of two totals with their checksums, or the only one."""
    if len(pairs) == 1:
        return pairs[0]
    (one, some), (other, more) = pairs
    return one + other, some + more
