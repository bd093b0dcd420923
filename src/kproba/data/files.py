"""Rows of Parquet, CSV, TSV and Arrow files, read batch by batch.

Memory does not grow with the number of rows: a reader holds a batch of a few MiB and the chunk being filled.
"""

from __future__ import annotations

import glob
import gzip
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np

from .sources import CHUNK_BYTES, Chunk, Source

#: pyarrow's CSV reader keeps some forty blocks in flight; this size was as fast as any and needs 20 MB.
_CSV_BLOCK_BYTES = 1 << 19
#: A Parquet column is read through a buffer of this size, not a row group at once, which may be the whole file.
_PARQUET_BUFFER_BYTES = 1 << 16

Paths = str | os.PathLike | Sequence[str | os.PathLike]


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
    immediately. Missing values raise an error when they are read; in a CSV file these are empty cells, NA, NaN, null
    and similar.

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
    chunk_bytes : size of a chunk of inputs in bytes
    """
    pyarrow()
    files, name = resolve(paths, format)
    kind = _KINDS[name]
    first = _read_schema(files[0], kind)
    layout = _choose_layout(first, target, weight, columns)
    parts, is_single, label_types = [], True, []
    for path in files:
        seen = first if path == files[0] else _read_schema(path, kind)
        _check_fits(seen, first, layout, exactly=columns is None)
        parts.append(_part(seen, layout))
        is_single &= all(str(seen.types[name]) in ("float", "null") for name in layout.features)
        label_types.append((path, parts[-1].label_type))
    if all(part.counts is not None and not sum(part.counts) for part in parts):
        raise ValueError(f"{listing(files)}: no file has any rows.")
    inputs = _float_type(dtype, np.float32 if is_single else np.float64)
    return FileSource(parts, kind, layout._replace(dtype=inputs, labels=_label_dtype(label_types)), chunk_bytes)


class FileSource(Source):
    """Rows of files, as returned by :func:`open_rows`."""

    def __init__(self, parts: list[_Part], kind: _Kind, layout: _Layout, chunk_bytes: int):
        self.name = parts[0].path if len(parts) == 1 else f"{len(parts)} files from {parts[0].path}"
        self.feature_names, self.n_features = list(layout.features), len(layout.features)
        self.dtype, self.chunk_bytes = layout.dtype, chunk_bytes
        self._parts, self._kind, self._layout = parts, kind, layout
        #: number of rows of each file; for a CSV file, known once a pass has reached its end
        self._rows = [None if part.counts is None else sum(part.counts) for part in parts]
        self.n_rows = None if None in self._rows else sum(rows or 0 for rows in self._rows)

    @property
    def paths(self) -> list[str]:
        """The files in reading order."""
        return [part.path for part in self._parts]

    def chunks(self, start_row: int = 0, columns_only: bool = False) -> Iterator[Chunk]:
        self._check_start(start_row)
        layout = self._layout._replace(target=None, weight=None) if columns_only else self._layout
        filling = _Filling(start_row, self.chunk_rows, layout)
        for batch in self._batches(start_row, layout):
            taken = 0
            while taken < batch.num_rows:
                taken += filling.take(batch, taken)
                if filling.is_full:
                    yield filling.chunk()
                    filling = _Filling(filling.start + filling.n_filled, self.chunk_rows, layout)
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
        with _reading(part.path, self._kind):
            for batch in self._kind.batches(part, block, size, layout):
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


class _Layout(NamedTuple):
    """The roles of the columns, and the types to convert them to."""

    features: tuple[str, ...]
    target: str | None
    weight: str | None
    dtype: np.dtype = np.dtype(np.float64)
    labels: np.dtype = np.dtype(object)

    @property
    def columns(self) -> list[str]:
        return [*self.features, *(name for name in (self.target, self.weight) if name is not None)]


class _Schema(NamedTuple):
    """Metadata of a file: the type of each column, and the number of rows of each block (None if not known)."""

    path: str
    types: dict[str, Any]
    counts: tuple[int, ...] | None


class _Part(NamedTuple):
    """What we keep of a file: little, since there may be thousands of files with thousands of columns each."""

    path: str
    counts: tuple[int, ...] | None
    booleans: frozenset[str]
    label_type: Any


def _part(seen: _Schema, layout: _Layout) -> _Part:
    booleans = frozenset(name for name in layout.features if str(seen.types[name]) == "bool")
    label_type = None if layout.target is None else seen.types[layout.target]
    return _Part(seen.path, seen.counts, booleans, label_type)


class _Filling:
    """A chunk being filled by batches of any size."""

    def __init__(self, start: int, n_rows: int, layout: _Layout):
        self.X = np.empty((n_rows, len(layout.features)), layout.dtype)
        self.start, self.n_filled, self.layout = start, 0, layout
        self.labels: list[np.ndarray] = []
        self.weights: list[np.ndarray] = []

    @property
    def is_full(self) -> bool:
        return self.n_filled == len(self.X)

    def take(self, batch, begin: int) -> int:
        """Copy as many rows of the batch from ``begin`` on as fit; returns their number."""
        batch = batch.slice(begin, len(self.X) - self.n_filled)
        place = {name: j for j, name in enumerate(batch.schema.names)}
        rows = self.X[self.n_filled : self.n_filled + batch.num_rows]
        with np.errstate(over="ignore"):  # 1e300 becomes infinity in float32, which check_chunk reports
            for j, name in enumerate(self.layout.features):
                rows[:, j] = _numbers(batch.column(place[name]))
        if self.layout.target is not None:
            self.labels.append(_labels(batch.column(place[self.layout.target]), self.layout.labels))
        if self.layout.weight is not None:
            self.weights.append(_numbers(batch.column(place[self.layout.weight])).astype(np.float64, copy=False))
        self.n_filled += batch.num_rows
        return batch.num_rows

    def chunk(self) -> Chunk:
        """The filled part; labels and weights are copied, since they may be views of the file's memory."""
        y = np.concatenate(self.labels) if self.labels else None
        weight = np.concatenate(self.weights) if self.weights else None
        return Chunk(self.X[: self.n_filled], y, weight, self.start)


def _numbers(column) -> np.ndarray:
    """A numeric column as an array, without a copy if its type allows; nulls become NaN."""
    pa = pyarrow()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy(zero_copy_only=False)


def _labels(column, dtype: np.dtype) -> np.ndarray:
    """Labels in the common type of all files; NaN or None if missing."""
    pa = pyarrow()
    if dtype.kind == "O":
        return _text_labels(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if dtype.kind == "b":
        return column.to_numpy(zero_copy_only=False)
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


class _Kind(Protocol):
    """A file format: how to read the schema of a file, and its rows from a given block on."""

    name: str
    suffixes: tuple[str, ...]
    advice: str

    def schema(self, path: str) -> _Schema: ...

    def batches(self, part: _Part, block: int, size: int, layout: _Layout) -> Iterator[Any]: ...


class _Parquet:
    name = "Parquet"
    suffixes: tuple[str, ...] = (".parquet", ".pq")
    advice = "It may be truncated, damaged or in another format: write it again or leave it out."

    def schema(self, path: str) -> _Schema:
        with pyarrow("parquet").ParquetFile(path) as file:
            counts = tuple(file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups))
            return _Schema(path, _types(path, file.schema_arrow), counts)

    def batches(self, part: _Part, block: int, size: int, layout: _Layout) -> Iterator[Any]:
        groups = range(block, len(part.counts or ()))
        if not groups:
            return
        # use a buffer without pre-buffering, otherwise a whole row group is in memory at once
        options = {"buffer_size": _PARQUET_BUFFER_BYTES, "pre_buffer": False}
        with pyarrow("parquet").ParquetFile(part.path, **options) as file:
            yield from file.iter_batches(batch_size=size, row_groups=list(groups), columns=layout.columns)


class _Arrow:
    name = "Arrow"
    suffixes: tuple[str, ...] = (".arrow", ".feather", ".ipc")
    advice = "It may be truncated, damaged or in another format (such as a stream): write it again or leave it out."

    def schema(self, path: str) -> _Schema:
        with pyarrow().memory_map(path) as memory:
            schema = pyarrow("ipc").open_file(memory).schema
            types = _types(path, schema)
            # the number of rows is in the header of a batch, but a batch is only read with columns: read one of them
            reader = self._reader(memory, [0])
            counts = tuple(reader.get_batch(b).num_rows for b in range(reader.num_record_batches))
            return _Schema(path, types, counts)

    def batches(self, part: _Part, block: int, size: int, layout: _Layout) -> Iterator[Any]:
        with pyarrow().memory_map(part.path) as memory:
            names = pyarrow("ipc").open_file(memory).schema.names
            reader = self._reader(memory, [names.index(name) for name in layout.columns])
            for number in range(block, reader.num_record_batches):
                yield reader.get_batch(number)

    @staticmethod
    def _reader(memory, fields: list[int]):
        ipc = pyarrow("ipc")
        return ipc.open_file(memory, options=ipc.IpcReadOptions(included_fields=fields))


class _Csv:
    advice = "Every line must have the same number of cells and every column one type; fix the file or leave it out."

    def __init__(self, name: str, separator: str):
        self.name, self._separator = name, separator
        self.suffixes: tuple[str, ...] = (f".{name.lower()}", f".{name.lower()}.gz")

    def schema(self, path: str) -> _Schema:
        with self._open(path) as reader:
            inferred = _types(path, reader.schema)
            has_rows = any(batch.num_rows for batch in reader)
        # a date or time is treated as text, which is fine for labels
        types = {name: type_ if _is_number(type_) else pyarrow().string() for name, type_ in inferred.items()}
        return _Schema(path, types, None if has_rows else (0,))

    def batches(self, part: _Part, block: int, size: int, layout: _Layout) -> Iterator[Any]:
        pa = pyarrow()
        number = pa.from_numpy_dtype(layout.dtype)
        types = {name: pa.bool_() if name in part.booleans else number for name in layout.features}
        if layout.weight is not None:
            types[layout.weight] = pa.float64()
        if layout.target is not None:
            types[layout.target] = pa.string() if pa.types.is_null(part.label_type) else part.label_type
        with self._open(part.path, include_columns=layout.columns, column_types=types) as reader:
            yield from reader

    def _open(self, path: str, **convert):
        csv = pyarrow("csv")
        return csv.open_csv(
            path,
            parse_options=csv.ParseOptions(delimiter=self._separator),
            read_options=csv.ReadOptions(block_size=_csv_block_bytes(path)),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, **convert),
        )


def _csv_block_bytes(path: str) -> int:
    """A block must hold a whole line; a line of values may be several times as long as the header."""
    with gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb") as file:
        return max(_CSV_BLOCK_BYTES, 32 * len(file.readline()))


#: The separator of the cells of a line.
SEPARATORS = {"csv": ",", "tsv": "\t"}
_KINDS: dict[str, _Kind] = {
    "parquet": _Parquet(),
    "csv": _Csv("CSV", SEPARATORS["csv"]),
    "tsv": _Csv("TSV", SEPARATORS["tsv"]),
    "arrow": _Arrow(),
}
_FORMATS = {**{name: name for name in _KINDS}, "feather": "arrow", "ipc": "arrow"}


def pyarrow(module: str | None = None) -> Any:
    """pyarrow or one of its modules, imported on demand because it is optional."""
    try:
        return import_module("pyarrow" if module is None else f"pyarrow.{module}")
    except ImportError as error:
        raise ImportError("reading and writing files needs pyarrow: pip install 'kproba[files]'") from error


@contextmanager
def _reading(path: str, kind: _Kind) -> Iterator[None]:
    """Convert pyarrow errors to ValueErrors that name the file; missing files and permissions are clear already."""
    try:
        yield
    except (FileNotFoundError, PermissionError, MemoryError):
        raise
    except (pyarrow().ArrowException, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as {kind.name}: {str(error).rstrip('.')}. {kind.advice}") from error


def _read_schema(path: str, kind: _Kind) -> _Schema:
    if os.path.getsize(path) == 0:
        raise ValueError(f"{path} is empty (0 bytes); write it again or leave it out.")
    with _reading(path, kind):
        return kind.schema(path)


def columns_of(path: str, format: str) -> list[str]:
    """The column names of a Parquet or Arrow file, without those that hold a pandas index."""
    if format == "parquet":
        schema = pyarrow("parquet").read_schema(path)
    else:
        with pyarrow().memory_map(path) as memory:
            schema = pyarrow("ipc").open_file(memory).schema
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in _types(path, schema) if name not in index]


def batches_of(path: str, format: str, columns: Sequence[str], size: int) -> Iterator[Any]:
    """Record batches of some columns of a Parquet or Arrow file, of about ``size`` rows or as stored in the file."""
    kind = _KINDS[format]
    part = _Part(path, kind.schema(path).counts, frozenset(), None)
    return kind.batches(part, 0, size, _Layout(tuple(columns), None, None))


def _types(path: str, schema) -> dict[str, Any]:
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise ValueError(f"{path} has more than one column {twice[0]!r}; give every column a unique name.")
    if not schema.names:
        raise ValueError(f"{path} has no columns; write it again or leave it out.")
    return dict(zip(schema.names, schema.types))


def resolve(paths: Paths, format: str | None) -> tuple[list[str], str]:
    """The files that ``paths`` stands for, and the name of their format."""
    if format is not None and format not in _FORMATS:
        raise ValueError(f"format={format!r} is not known; use one of {', '.join(map(repr, _FORMATS))}.")
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise ValueError("paths is empty; give at least one file, glob or directory.")
    files = [file for path in given for file in _files_at(os.path.expanduser(os.fspath(path)), format)]
    twice = [file for file, count in Counter(files).items() if count > 1]
    if twice:
        raise ValueError(f"paths names {twice[0]} more than once, so its rows would count twice.")
    formats = {_FORMATS[format] if format else format_of(file): file for file in files}
    if len(formats) > 1:
        found = ", ".join(f"{file} is {name}" for name, file in formats.items())
        raise ValueError(f"paths mixes formats ({found}); open one format at a time, or set format=.")
    return files, next(iter(formats))


def _files_at(path: str, format: str | None) -> list[str]:
    if os.path.isdir(path):
        files = _files_in_directory(path, format)
    elif os.path.exists(path) or not glob.has_magic(path):
        files = [path] if os.path.exists(path) else []
    else:
        files = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
    if not files:
        known = ", ".join(_suffixes(format))
        raise FileNotFoundError(f"paths: no file matches {path!r}; in a directory, files end in {known}.")
    return files


def _files_in_directory(path: str, format: str | None) -> list[str]:
    """Files with a known suffix; if there are none and a format is given, all files that are not hidden."""
    visible = sorted(entry.path for entry in os.scandir(path) if entry.is_file() and entry.name[0] not in "._")
    return [file for file in visible if file.lower().endswith(_suffixes(format))] or (visible if format else [])


def _suffixes(format: str | None) -> tuple[str, ...]:
    kinds = _KINDS.values() if format is None else [_KINDS[_FORMATS[format]]]
    return tuple(suffix for kind in kinds for suffix in kind.suffixes)


def format_of(path: str) -> str:
    for name, kind in _KINDS.items():
        if path.lower().endswith(kind.suffixes):
            return name
    raise ValueError(f"{path}: no format is known for this suffix; use {', '.join(_suffixes(None))}, or set format=.")


def _choose_layout(first: _Schema, target: str | None, weight: str | None, columns) -> _Layout:
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r} must be a list of names; for one column use [{columns!r}].")
    for role, name in (("target", target), ("weight", weight)):
        if name is not None and name in (columns or ()):
            raise ValueError(f"columns contains {name!r}, which is the {role}; a column can only have one role.")
    if target is not None and target == weight:
        raise ValueError(f"target and weight are both {target!r}; a column can only have one role.")
    _check_has(first, target, weight, columns or ())
    features = [name for name in first.types if name not in (target, weight)] if columns is None else columns
    twice = [name for name, count in Counter(features).items() if count > 1]
    if twice:
        raise ValueError(f"columns contains {twice[0]!r} more than once.")
    if not len(features):
        raise ValueError(f"there are no feature columns: {first.path} has the columns {listing(first.types)}.")
    return _Layout(tuple(features), target, weight)


def _check_has(seen: _Schema, target: str | None, weight: str | None, columns: Sequence[str]) -> None:
    roles = [("target", target), ("weight", weight), *(("columns", name) for name in columns)]
    for role, name in roles:
        if name is not None and name not in seen.types:
            raise ValueError(
                f"{role} refers to the column {name!r}, which {seen.path} does not have; "
                f"it has the columns {listing(seen.types)}."
            )


def _check_fits(seen: _Schema, first: _Schema, layout: _Layout, exactly: bool) -> None:
    """Raise an error if the columns of a file differ from those of the first file or are not numeric where needed."""
    _check_has(seen, layout.target, layout.weight, () if exactly else layout.features)
    for name in sorted(set(first.types) ^ set(seen.types)) if exactly else ():
        has, lacks = (first.path, seen.path) if name in first.types else (seen.path, first.path)
        raise ValueError(
            f"{has} has the column {name!r}, but {lacks} does not; all files need the same columns, or set columns=."
        )
    for name in layout.features:
        if not _is_number(seen.types[name]):
            raise ValueError(
                f"the column {name!r} of {seen.path} holds {seen.types[name]}, not numbers; encode it first "
                "(for example with skrub's TableVectorizer), or select the numeric columns with columns=."
            )
    if layout.weight is not None and not _is_number(seen.types[layout.weight]):
        found = seen.types[layout.weight]
        raise ValueError(f"the weight column {layout.weight!r} of {seen.path} holds {found}, not numbers.")


def _is_number(type_) -> bool:
    """Also true for a column of nulls: it may be empty, and if not, its first row raises an error as NaN."""
    types = pyarrow().types
    kinds: list[Callable] = [
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_decimal,
        types.is_null,
    ]
    return any(is_kind(type_) for is_kind in kinds)


def _label_family(type_) -> str:
    """The kind of the labels: "number", "boolean", "text" or "empty"; otherwise the name of their type."""
    types = pyarrow().types
    if types.is_dictionary(type_):
        return _label_family(type_.value_type)
    if types.is_null(type_):
        return "empty"
    if types.is_boolean(type_):
        return "boolean"
    if _is_number(type_):
        return "number"
    return "text" if str(type_) in ("string", "large_string", "string_view") else str(type_)


def _label_dtype(label_types: list[tuple[str, Any]]) -> np.dtype:
    """The common type of the labels of all files; integers only if they are integers in every file."""
    typed = [(path, type_) for path, type_ in label_types if type_ is not None and _label_family(type_) != "empty"]
    if not typed:
        return np.dtype(object)
    families = {_label_family(type_): path for path, type_ in typed}
    for family, path in families.items():
        if family not in ("boolean", "number", "text"):
            raise ValueError(f"the target of {path} holds {family}; labels must be integers, booleans or text.")
    if len(families) > 1:
        found = ", ".join(f"{family} in {path}" for family, path in families.items())
        raise ValueError(f"the target has different types in different files ({found}); write all with the same type.")
    if "number" not in families:
        return np.dtype(bool if "boolean" in families else object)
    numbers = [getattr(type_, "value_type", type_) for _, type_ in typed]
    if not all(map(pyarrow().types.is_integer, numbers)):
        return np.dtype(np.float64)
    return np.result_type(*(number.to_pandas_dtype() for number in numbers))


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


def listing(names, most: int = 20) -> str:
    names = list(names)
    rest = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + rest
