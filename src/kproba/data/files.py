"""Rows of Parquet, CSV, TSV and Arrow files, read batch by batch as matrices of numbers or as frames.

Memory does not grow with the number of rows: a reader holds a batch of a few MiB and the chunk being filled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..messages import listing
from .formats import FORMATS, SEPARATORS, Paths, Schema, reading, repeated, resolve, schema_of
from .kinds import BOOLEAN, EMPTY, INTEGER, NUMBER, NUMERIC, TEXT, kind_of_type, pandas, plain, pyarrow
from .look import joined
from .mixed import as_floats, marks_of_table
from .sources import CHUNK_BYTES, Chunk, Source, ahead
from .text_cells import as_numbers, capitalized_booleans, without_spaces

#: Maximum number of columns or files listed in a message.
MOST_LISTED = 20


def open_rows(
    paths: Paths,
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    dtype: Any = None,
    *,
    chunk_bytes: int = CHUNK_BYTES,
) -> FileSource:
    """Open Parquet, CSV, TSV or Arrow files, which may be larger than memory, as a source of rows.

    The columns of all files are checked before the first row is read, so a file that does not match raises an error
    immediately. Columns may hold numbers, strings, categories and booleans, and values may be missing: classifiers take
    them as they take a frame of the same rows. Their categories are those of a sample of up to 50,000 rows. Such files
    need pandas (``pip install 'kproba[tables]'``).

    In a CSV file, missing values are empty cells, ?, NA, NaN, null and similar. If the first line has no comma, fields
    may be separated by semicolons, tabs or bars. Text files may be compressed (.gz, .bz2, .zst or .xz).

    Parameters
    ----------
    paths : a path, a glob such as ``"train/*.parquet"``, a directory, or a list of these
        Files of a glob or a directory are sorted by name; a list keeps its order.
    target, weight : names of the label and weight columns; None if there are none
    columns : names of the feature columns, in the order you want
        By default all except ``target`` and ``weight``, in the order of the first file. Other files may have them in
        a different order.
    format : "parquet", "csv", "tsv" or "arrow"; by default inferred from the suffix
    dtype : "float32" or "float64"; by default float32 if all feature columns are, and float64 otherwise
        Rows with categories or missing values are always float64.
    chunk_bytes : size of a chunk of inputs in bytes
    """
    pyarrow()
    files, format = resolve(paths, format)
    first = schema_of(files[0], format)
    layout = _choose_layout(first, target, weight, columns)
    parts, is_single, label_types = [], True, {}
    for path in files:
        seen = first if path == files[0] else schema_of(path, format)
        _check_fits(seen, first, layout, exactly=columns is None)
        label_types[path] = None if target is None else seen.types[target]
        parts.append(_Part.of(seen, layout, label_types[path]))
        is_single &= all(str(seen.types[name]) in ("float", "null") for name in layout.features)
    if all(part.counts is not None and not sum(part.counts) for part in parts):
        raise ValueError(f"{listing(files, MOST_LISTED)}: no file has any rows.")
    inputs = _float_type(dtype, np.float32 if is_single else np.float64)
    labels = np.dtype(object) if target is None else _label_dtype(label_types)
    return FileSource(parts, format, layout._replace(dtype=inputs, labels=labels), chunk_bytes)


class FileSource(Source):
    """Rows of files, as returned by :func:`open_rows`."""

    def __init__(self, parts: list[_Part], format: str, layout: _Layout, chunk_bytes: int):
        self.name = parts[0].path if len(parts) == 1 else f"{len(parts)} files from {parts[0].path}"
        self.feature_names, self.n_features = list(layout.features), len(layout.features)
        self.dtype, self.chunk_bytes = layout.dtype, chunk_bytes
        self._parts, self._format, self._layout = parts, format, layout
        #: number of rows of each file; for a CSV file, known once a pass has reached its end
        self._rows = [None if part.counts is None else sum(part.counts) for part in parts]
        self.n_rows = None if None in self._rows else sum(rows or 0 for rows in self._rows)

    @property
    def paths(self) -> list[str]:
        """The files in reading order."""
        return [part.path for part in self._parts]

    @property
    def has_categories(self) -> bool:  # type: ignore[override]
        return any(part.categories for part in self._parts)

    def chunks(self, start_row: int = 0, columns_only: bool = False) -> Iterator[Chunk]:
        for part in self._parts:
            for name in part.categories:
                raise ValueError(
                    f"the column {name!r} of {part.path} holds strings or categories, not numbers; pass the source to "
                    "the fit or predict of a classifier, or select the numeric columns with columns=."
                )
        return self._filled(_Filling, start_row, self.chunk_rows, self._roles(columns_only))

    def tables(
        self, start_row: int = 0, columns_only: bool = False, numbers: Collection[str] | None = None, rows: int = 0
    ) -> Iterator[Chunk]:
        how = _Reading(
            is_text=self._format in SEPARATORS,
            booleans=frozenset().union(*(part.booleans for part in self._parts)),
            numbers=numbers,
        )
        layout = self._roles(columns_only)._replace(reading=how)
        return self._filled(_FillingTable, start_row, rows or self.chunk_rows, layout)

    def marks(self, first: Mapping[str, str]) -> dict[str, str]:
        texts = self._with_text([name for name in first if name in self._layout.features], first)
        if not texts:
            return {}
        frames = (chunk.X for chunk in ahead(self._only(texts).tables(columns_only=True, numbers=())))
        return marks_of_table(frames, {name: first[name] for name in texts})

    def _with_text(self, names: list[str], marks: Mapping[str, str]) -> list[str]:
        """The columns that are not numbers with decimal points throughout; takes a pass if their types do not tell."""
        strings = {name for part in self._parts for name in part.categories}
        names = [name for name in names if self._format in SEPARATORS or name in strings]
        found = {name for name in names if marks[name] != "."}
        if len(found) < len(names):
            for chunk in ahead(self._only(names).tables(columns_only=True, numbers=set(names) - found)):
                found |= {name for name in names if as_floats(chunk.X[name]) is None}
        return [name for name in names if name in found]

    def _only(self, columns: list[str]) -> FileSource:
        """The same rows with some of the columns, without labels."""
        layout = self._layout._replace(features=tuple(columns), target=None, weight=None)
        return FileSource(self._parts, self._format, layout, self.chunk_bytes)

    def _roles(self, columns_only: bool) -> _Layout:
        return self._layout._replace(target=None, weight=None) if columns_only else self._layout

    def _filled(self, kind: type[_Filling], start_row: int, n_rows: int, layout: _Layout) -> Iterator[Chunk]:
        self._check_start(start_row)
        filling = kind(start_row, n_rows, layout)
        for batch in self._batches(start_row, layout):
            taken = 0
            while taken < batch.num_rows:
                taken += filling.take(batch, taken)
                if filling.n_filled == n_rows:
                    yield filling.chunk()
                    filling = kind(filling.start + filling.n_filled, n_rows, layout)
        if filling.n_filled:
            yield filling.chunk()

    def _batches(self, skip: int, layout: _Layout) -> Iterator[Any]:
        for number in range(len(self._parts)):
            rows = self._rows[number]
            if rows is None or skip < rows:
                yield from self._batches_of(number, skip, layout)
            skip = max(0, skip - (self._rows[number] or 0))
        if skip:
            raise ValueError(f"start_row is {skip} rows beyond the end of {self.name}.")

    def _batches_of(self, number: int, skip: int, layout: _Layout) -> Iterator[Any]:
        """Record batches of one file from row ``skip`` on, starting with the block that contains it."""
        part = self._parts[number]
        block, row = _seek(part.counts, skip)
        size = max(1, self.chunk_rows // 4)  # a batch is in memory together with the chunk it fills, so keep it small
        types = part.types(layout)
        with reading(part.path, self._format):
            for batch in FORMATS[self._format].batches(part.path, layout.columns, size, block, types):
                surplus = min(max(skip - row, 0), batch.num_rows)
                row += batch.num_rows
                if surplus < batch.num_rows:
                    yield batch.slice(surplus)
        if self._rows[number] not in (None, row):
            raise ValueError(
                f"{part.path} had {self._rows[number]} rows and now has {row}; do not change files during a fit."
            )
        self._rows[number] = row

    def where(self, row: int) -> str:
        """The file that contains a row, and the number of the row in it."""
        for part, rows in zip(self._parts, self._rows):
            if rows is None or row < rows:
                return f"row {row} of {part.path}"
            row -= rows
        return f"row {row} after the end of {self.name}"


class _Reading(NamedTuple):
    """How the cells of a table are read.

    Every cell of a text file is read as a string, since what a column holds depends on all its rows. ``booleans`` are
    the columns of truth values, and ``numbers`` those that are known to hold numbers; None if nothing is known yet.
    """

    is_text: bool
    booleans: frozenset[str]
    numbers: Collection[str] | None

    def cells(self, name: str, column):
        """A column as it becomes part of a frame: categories stay categories."""
        types = pyarrow().types
        if types.is_dictionary(column.type):
            return column
        column = plain(column)
        if self.is_text:
            column = without_spaces(column)
            column = capitalized_booleans(column) if name in self.booleans else column
        if self.numbers is None or kind_of_type(column.type) != TEXT:
            return column
        # as a dictionary, distinct strings need not be found again
        return as_numbers(column) if name in self.numbers else column.dictionary_encode()


class _Layout(NamedTuple):
    """The roles of the columns, and the types to convert them to."""

    features: tuple[str, ...]
    target: str | None
    weight: str | None
    dtype: np.dtype = np.dtype(np.float64)
    labels: np.dtype = np.dtype(object)
    reading: _Reading | None = None

    @property
    def columns(self) -> list[str]:
        return [*self.features, *(name for name in (self.target, self.weight) if name is not None)]


class _Part(NamedTuple):
    """What we keep of a file: little, since there may be thousands of files with thousands of columns each."""

    path: str
    counts: tuple[int, ...] | None
    booleans: frozenset[str]
    categories: tuple[str, ...]
    label_type: Any

    @classmethod
    def of(cls, seen: Schema, layout: _Layout, label_type: Any) -> _Part:
        kinds = {name: kind_of_type(seen.types[name]) for name in layout.features}
        booleans = frozenset(name for name, kind in kinds.items() if kind == BOOLEAN)
        categories = tuple(name for name in kinds if kinds[name] not in NUMERIC)
        return cls(seen.path, seen.counts, booleans, categories, label_type)

    def types(self, layout: _Layout) -> dict[str, Any]:
        """The Arrow types in which to parse the columns of a text file."""
        pa = pyarrow()
        number = pa.from_numpy_dtype(layout.dtype)
        types = {name: pa.bool_() if name in self.booleans else number for name in layout.features}
        if layout.reading is not None:
            types = dict.fromkeys(layout.features, pa.string())
        if layout.weight is not None:
            types[layout.weight] = pa.float64()
        if layout.target is not None:
            types[layout.target] = pa.string() if pa.types.is_null(self.label_type) else self.label_type
        return types


class _Filling:
    """A chunk being filled by batches of any size."""

    def __init__(self, start: int, n_rows: int, layout: _Layout):
        self.start, self.n_filled, self.n_rows, self.layout = start, 0, n_rows, layout
        self.X: Any = np.empty((n_rows, len(layout.features)), layout.dtype)
        self.labels: list[np.ndarray] = []
        self.weights: list[np.ndarray] = []

    def take(self, batch, begin: int) -> int:
        """Copy as many rows of the batch from ``begin`` on as fit; returns their number."""
        batch = batch.slice(begin, self.n_rows - self.n_filled)
        column = dict(zip(batch.schema.names, batch.columns))
        self._put([column[name] for name in self.layout.features], batch.num_rows)
        if self.layout.target is not None:
            self.labels.append(_labels(column[self.layout.target], self.layout.labels))
        if self.layout.weight is not None:
            self.weights.append(_numbers(column[self.layout.weight]).astype(np.float64, copy=False))
        self.n_filled += batch.num_rows
        return batch.num_rows

    def _put(self, columns: list, n_rows: int) -> None:
        rows = self.X[self.n_filled : self.n_filled + n_rows]
        with np.errstate(over="ignore"):  # 1e300 becomes infinity in float32, which check_chunk reports
            for j, column in enumerate(columns):
                rows[:, j] = _numbers(column)

    def _inputs(self):
        return self.X[: self.n_filled]

    def chunk(self) -> Chunk:
        """The filled part; labels and weights are copied, since they may be views of the file's memory."""
        y = np.concatenate(self.labels) if self.labels else None
        weight = np.concatenate(self.weights) if self.weights else None
        return Chunk(self._inputs(), y, weight, self.start)


class _FillingTable(_Filling):
    """A chunk of a table, with columns of several types."""

    def __init__(self, start: int, n_rows: int, layout: _Layout):
        pandas()
        super().__init__(start, 0, layout)
        self.n_rows, self.X = n_rows, []

    def _put(self, columns: list, n_rows: int) -> None:
        assert self.layout.reading is not None
        cells = [self.layout.reading.cells(name, column) for name, column in zip(self.layout.features, columns)]
        self.X.append(pyarrow().table(cells, names=list(self.layout.features)).to_pandas(ignore_metadata=True))

    def _inputs(self):
        return joined(self.X)


def _numbers(column) -> np.ndarray:
    """A numeric column as an array, without a copy if its type allows; nulls become NaN."""
    column = plain(column)
    if pyarrow().types.is_boolean(column.type):
        column = column.cast(pyarrow().uint8())
    return column.to_numpy(zero_copy_only=False)


def _labels(column, dtype: np.dtype) -> np.ndarray:
    """Labels in the common type of all files; NaN or None if missing."""
    if dtype.kind == "O":
        return _text_labels(column)
    if dtype.kind == "b":
        return plain(column).to_numpy(zero_copy_only=False)
    values = _numbers(column)
    return values if column.null_count else values.astype(dtype, copy=False)


def _text_labels(column) -> np.ndarray:
    """Strings as an object array in which equal labels share one object: creating one per row is far slower."""
    pa = pyarrow()
    if pa.types.is_null(column.type):
        return np.full(len(column), None)
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    return values[coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)]


def _seek(counts: tuple[int, ...] | None, skip: int) -> tuple[int, int]:
    """The block that contains row ``skip`` and the number of its first row; the start if the blocks are unknown."""
    if counts is None:
        return 0, 0
    ends = np.cumsum(counts)
    block = int(np.searchsorted(ends, skip, side="right"))
    return block, int(ends[block - 1]) if block else 0


def _choose_layout(first: Schema, target: str | None, weight: str | None, columns) -> _Layout:
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r} must be a list of names; for one column use [{columns!r}].")
    for role, name in (("target", target), ("weight", weight)):
        if name is not None and name in (columns or ()):
            raise ValueError(f"columns contains {name!r}, which is the {role}; a column can only have one role.")
    if target is not None and target == weight:
        raise ValueError(f"target and weight are both {target!r}; a column can only have one role.")
    features = [name for name in first.types if name not in (target, weight)] if columns is None else columns
    if twice := repeated(features):
        raise ValueError(f"columns contains {twice[0]!r} more than once.")
    if not len(features):
        raise ValueError(
            f"there are no feature columns: {first.path} has the columns {listing(first.types, MOST_LISTED)}."
        )
    return _Layout(tuple(features), target, weight)


def _check_has(seen: Schema, target: str | None, weight: str | None, columns: Sequence[str]) -> None:
    roles = [("target", target), ("weight", weight), *(("columns", name) for name in columns)]
    for role, name in roles:
        if name is not None and name not in seen.types:
            raise ValueError(
                f"{role} refers to the column {name!r}, which {seen.path} does not have; "
                f"it has the columns {listing(seen.types, MOST_LISTED)}."
            )


def _check_fits(seen: Schema, first: Schema, layout: _Layout, exactly: bool) -> None:
    """Raise an error if the columns of a file differ from those of the first file or are not numeric where needed."""
    _check_has(seen, layout.target, layout.weight, () if exactly else layout.features)
    for name in sorted(set(first.types) ^ set(seen.types)) if exactly else ():
        has, lacks = (first.path, seen.path) if name in first.types else (seen.path, first.path)
        raise ValueError(
            f"{has} has the column {name!r}, but {lacks} does not; all files need the same columns, or set columns=."
        )
    for name in layout.features:
        type_ = seen.types[name]
        if kind_of_type(type_.value_type if pyarrow().types.is_dictionary(type_) else type_) not in (*NUMERIC, TEXT):
            raise ValueError(
                f"the column {name!r} of {seen.path} holds {type_}, neither numbers nor categories; convert "
                "it first, or select other columns with columns=. For dates, use kproba.tabular or kproba fit."
            )
    if layout.weight is not None and kind_of_type(seen.types[layout.weight]) not in NUMERIC:
        found = seen.types[layout.weight]
        raise ValueError(f"the weight column {layout.weight!r} of {seen.path} holds {found}, not numbers.")


#: Kinds of labels -> their names in messages; integers and other numbers can be mixed.
_FAMILIES = {INTEGER: "number", NUMBER: "number", BOOLEAN: "boolean", TEXT: "text"}


def _label_dtype(types: dict[str, Any]) -> np.dtype:
    """The common type of the labels of all files; integers only if they are integers in every file."""
    values = {path: getattr(type_, "value_type", type_) for path, type_ in types.items()}  # those of a dictionary
    kinds = {path: kind for path, type_ in values.items() if (kind := kind_of_type(type_)) != EMPTY}
    families = {_FAMILIES.get(kind, kind): path for path, kind in kinds.items()}
    for family, path in families.items():
        if family not in _FAMILIES.values():
            raise ValueError(f"the target of {path} holds {family}; labels must be integers, booleans or text.")
    if len(families) > 1:
        found = ", ".join(f"{family} in {path}" for family, path in families.items())
        raise ValueError(f"the target has different types in different files ({found}); write all with the same type.")
    if "number" not in families:
        return np.dtype(bool if "boolean" in families else object)
    if set(kinds.values()) != {INTEGER}:
        return np.dtype(np.float64)
    return np.result_type(*(values[path].to_pandas_dtype() for path in kinds))


def _float_type(dtype, default) -> np.dtype:
    if dtype is None:
        return np.dtype(default)
    try:
        chosen = np.dtype(dtype)
    except TypeError:
        chosen = np.dtype(object)
    if chosen not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} is not known; use 'float32' or 'float64'.")
    return chosen
