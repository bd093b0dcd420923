"""File formats of tables: their suffixes, and how to read the columns and rows of a file.

Every format reads record batches of Arrow, for matrices of numbers, or pandas frames, for tables with mixed columns;
Excel only the latter. What a separator, a missing value or a damaged file is does not depend on which.
"""

from __future__ import annotations

import csv
import glob
import io
import lzma
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from ..exceptions import EncodingGuessWarning
from ..messages import warn
from .encodings import BLOCK_BYTES, MOST_BLOCKS, WESTERN, detect
from .kinds import (
    NUMERIC,
    TEXT,
    VERBATIM,
    WHOLE,
    NotPlainNumbers,
    cast,
    kind_of_type,
    nullable,
    pandas,
    plain,
    pyarrow,
)

#: pyarrow's CSV reader keeps some forty blocks in flight; this size was as fast as any and needs 20 MB.
_CSV_BLOCK_BYTES = 1 << 19
#: A Parquet column is read through a buffer of this size, not a row group at once, which may be the whole file.
_PARQUET_BUFFER_BYTES = 1 << 16
#: Suffix of a compressed text file -> the name of the compression.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": "xz"}
#: Cells of a text file that stand for a missing value, with or without spaces before them.
MISSING = ["", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
           "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]  # fmt: skip

Paths = str | os.PathLike | Sequence[str | os.PathLike]


class Schema(NamedTuple):
    """Metadata of a file: the type of each column, and the number of rows of each block (None if not known)."""

    path: str
    types: dict[str, Any]
    counts: tuple[int, ...] | None


class Columnar:
    """Formats that store columns with their types."""

    name: str
    advice = "It may be truncated, damaged or in another format: write it again or leave it out."
    #: ``schema(path)`` is the Arrow schema and the number of rows of each block; ``batches`` yields record batches of
    #: about ``rows`` rows, or as stored in the file, from a block on
    schema: Callable[[str], tuple[Any, tuple[int, ...]]]
    batches: Callable[..., Iterator[Any]]

    def columns(self, path: str) -> list[str]:
        """All columns except those that hold a pandas index."""
        schema, _ = self.schema(path)
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        return [name for name in schema.names if name not in index]

    def frames(self, path: str, columns: list[str], rows: int, types: dict[str, str], is_read: bool) -> Iterator:
        for batch in self.batches(path, columns, rows):
            names, plainly = batch.schema.names, list(map(plain, batch.columns))
            for start in range(0, batch.num_rows, rows):
                part = pyarrow().RecordBatch.from_arrays([each.slice(start, rows) for each in plainly], names=names)
                whole = [name for name in names if types.get(name) == WHOLE and _is_integer(part.schema.field(name))]
                frame = part.to_pandas().assign(**{name: nullable(part.column(name)) for name in whole})
                yield cast(frame, {name: type_ for name, type_ in types.items() if type_ != WHOLE})


def _is_integer(field) -> bool:
    return pyarrow().types.is_integer(field.type)


class Parquet(Columnar):
    name = "Parquet"

    def schema(self, path: str):
        with pyarrow("parquet").ParquetFile(path) as file:
            groups = map(file.metadata.row_group, range(file.num_row_groups))
            return file.schema_arrow, tuple(group.num_rows for group in groups)

    def batches(self, path: str, columns: Sequence[str], rows: int, block: int = 0, types=None) -> Iterator[Any]:
        # use a buffer without pre-buffering, otherwise a whole row group is in memory at once
        options = {"buffer_size": _PARQUET_BUFFER_BYTES, "pre_buffer": False}
        with pyarrow("parquet").ParquetFile(path, **options) as file:
            if groups := list(range(block, file.num_row_groups)):
                yield from file.iter_batches(batch_size=rows, row_groups=groups, columns=list(columns))


class Arrow(Columnar):
    name = "Arrow"
    advice = "It may be truncated, damaged or in another format (such as a stream): write it again or leave it out."

    def schema(self, path: str):
        with pyarrow().memory_map(path) as memory:
            schema = pyarrow("ipc").open_file(memory).schema
            if not schema.names:
                return schema, ()
            # the number of rows is in the header of a batch, but a batch is only read with columns: read one of them
            reader = self._reader(memory, [0])
            return schema, tuple(reader.get_batch(b).num_rows for b in range(reader.num_record_batches))

    def batches(self, path: str, columns: Sequence[str], rows: int, block: int = 0, types=None) -> Iterator[Any]:
        with pyarrow().memory_map(path) as memory:
            names = pyarrow("ipc").open_file(memory).schema.names
            reader = self._reader(memory, [names.index(name) for name in columns])
            yield from map(reader.get_batch, range(block, reader.num_record_batches))

    @staticmethod
    def _reader(memory, fields: list[int]):
        ipc = pyarrow("ipc")
        return ipc.open_file(memory, options=ipc.IpcReadOptions(included_fields=fields))


class Text:
    """Lines of cells.

    Matrices of numbers are read by pyarrow, which uses all cores and refuses lines with too few cells; tables with
    mixed columns by pandas, which fills such lines up with missing values.
    """

    advice = "Every line must have the same number of cells and every column one type; fix the file or leave it out."

    def __init__(self, name: str, separator: str, encoding: str | None = None):
        self.name, self._separator, self._encoding = name, separator, encoding

    def encoding(self, path: str) -> str:
        """The given encoding or the detected one."""
        return self._encoding or _encoding(path, os.path.getmtime(path), os.path.getsize(path))

    def header(self, path: str) -> tuple[list[str], str]:
        """The names in the first line and their separator: without commas in it, a semicolon, tab or bar."""
        encoding = self.encoding(path)
        names = _first_cells(path, self._separator, encoding)
        others = [mark for mark in ";\t|" if len(names) == 1 and mark in names[0]]
        return (_first_cells(path, others[0], encoding), others[0]) if others else (names, self._separator)

    def schema(self, path: str):
        with self._open(path) as reader:
            has_rows = any(batch.num_rows for batch in reader)
            # a date or time is treated as text, which is fine for labels
            fields = [
                field if kind_of_type(field.type) in NUMERIC else field.with_type(pyarrow().string())
                for field in reader.schema
            ]
            return pyarrow().schema(fields), None if has_rows else (0,)

    def batches(self, path: str, columns: Sequence[str], rows: int, block: int = 0, types=None) -> Iterator[Any]:
        with self._open(path, include_columns=list(columns), column_types=types) as reader:
            yield from reader

    def _open(self, path: str, **convert):
        parser, (names, separator) = pyarrow("csv"), self.header(path)
        # a block must hold a whole line, and a line of values may be several times as long as the header
        block_size = max(_CSV_BLOCK_BYTES, 32 * len(separator.join(names)))
        return parser.open_csv(
            _stream(path),
            parse_options=parser.ParseOptions(delimiter=separator),
            read_options=parser.ReadOptions(block_size=block_size, encoding=self.encoding(path)),
            convert_options=parser.ConvertOptions(strings_can_be_null=True, null_values=MISSING, **convert),
        )

    def columns(self, path: str) -> list[str]:
        return [name or f"Unnamed: {j}" for j, name in enumerate(self.header(path)[0])]

    def frames(self, path: str, columns: list[str], rows: int, types: dict[str, str], is_read: bool) -> Iterator:
        verbatim = {name for name in columns if types.get(name) == VERBATIM}
        known = {name: TEXT if name in verbatim else types[name] for name in columns if name in types}
        options = {
            "sep": self.header(path)[1],
            "encoding": self.encoding(path),
            # this saves time, but hides lines with too many cells: use it only if another pass reads all columns
            "usecols": columns if is_read or len(columns) == 1 else None,
            "dtype": known,
            "na_values": {name: [""] if name in verbatim else MISSING for name in columns} if verbatim else MISSING,
            "keep_default_na": False,
            "skipinitialspace": True,
            "low_memory": False,
            "index_col": False,
        }
        with pandas().read_csv(path, chunksize=rows, **options) as reader:
            while (frame := _next(reader)) is not None:
                yield frame


def _first_cells(path: str, separator: str, encoding: str) -> list[str]:
    """The cells of the first line that is not empty."""
    encoding = "utf-8-sig" if encoding == "utf-8" else encoding  # a mark may follow even if the name has none
    with _stream(path) as stream, io.TextIOWrapper(stream, encoding=encoding, newline="") as file:
        return next(filter(None, csv.reader(file, delimiter=separator, skipinitialspace=True)), [])


def _stream(path: str):
    """The bytes of a text file, unpacked if its suffix says that it is compressed."""
    return lzma.open(path) if path.lower().endswith(".xz") else pyarrow().input_stream(path)


@lru_cache(maxsize=1024)
def _encoding(path: str, changed: float, size: int) -> str:
    """The detected encoding; cached because every pass over a file asks for it, and it may have been guessed."""
    with _stream(path) as stream:
        found = detect(islice(iter(lambda: stream.read(BLOCK_BYTES), b""), MOST_BLOCKS))
    if found in WESTERN:
        warn(
            f"{path} is not UTF-8 text; it is read as {found} (Western European). If accents come out wrong, "
            "save the file as UTF-8, or in a command set --encoding, for example to cp1250.",
            EncodingGuessWarning,
        )
    return found


def _next(reader):
    """The next frame; raises an error for lines with more fields than the header, unless they are empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pandas().errors.ParserWarning)
        try:
            return next(reader, None)
        except pandas().errors.ParserWarning as error:
            raise ValueError("some lines have more fields than the first line has names") from error


class Excel:
    """The first sheet of a workbook, which can only be read as a whole."""

    name, advice = "Excel", Columnar.advice

    def columns(self, path: str) -> list[str]:
        return list(_sheet(path, os.path.getmtime(path)).columns)

    def frames(self, path: str, columns: list[str], rows: int, types: dict[str, str], is_read: bool) -> Iterator:
        frame = _sheet(path, os.path.getmtime(path))
        for start in range(0, len(frame), rows):
            yield cast(frame.iloc[start : start + rows], types)


@lru_cache(maxsize=1)
def _sheet(path: str, changed: float):
    """The sheet as a frame; cached because reading it is slow."""
    return pandas().read_excel(path).rename(columns=str)


#: The separator of the cells of a line.
SEPARATORS = {"csv": ",", "tsv": "\t"}
#: All have ``columns`` and ``frames``, for tables; all but Excel also ``schema`` and ``batches``, for numbers.
FORMATS: dict[str, Any] = {
    "parquet": Parquet(),
    **{name: Text(name.upper(), separator) for name, separator in SEPARATORS.items()},
    "arrow": Arrow(),
    "excel": Excel(),
}
_ALIASES = {"feather": "arrow", "ipc": "arrow"}
#: Suffix -> format.
_IN_FOLDERS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "tsv", ".arrow": "arrow",
               ".feather": "arrow", ".ipc": "arrow"}  # fmt: skip
#: The same for tables only; a folder may have such files for other reasons, so they count only if they are named.
_IF_NAMED = {".txt": "csv", ".xlsx": "excel", ".xls": "excel"}


def _suffix(path: str) -> str:
    """The suffix in lower case, before that of a compression."""
    stem, suffix = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if suffix in COMPRESSIONS else suffix


def format_of(path: str, tables: bool = False) -> str:
    """The format that belongs to the suffix of a file of numbers, or of a table with mixed columns."""
    known = _IN_FOLDERS | (_IF_NAMED if tables else {})
    if _suffix(path) not in known:
        raise ValueError(
            f"{path}: no format is known for this suffix; use {', '.join(known)}, or set format= "
            "(in a command, --format)."
        )
    return known[_suffix(path)]


def resolve(paths: Paths, format: str | None, tables: bool = False) -> tuple[list[str], str]:
    """The files that ``paths`` stands for, and the name of their format."""
    names = {name: name for name in FORMATS if tables or name != "excel"} | _ALIASES
    if format is not None and format not in names:
        raise ValueError(f"format={format!r} is not known; use one of {', '.join(map(repr, names))}.")
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise ValueError("paths is empty; give at least one file, glob or directory.")
    format = None if format is None else names[format]
    files = [file for path in given for file in _files_at(os.path.expanduser(os.fspath(path)), format)]
    if twice := repeated(files):
        raise ValueError(f"paths names {twice[0]} more than once, so its rows would count twice.")
    formats = {format or format_of(file, tables): file for file in files}
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
        known = ", ".join(suffix for suffix, name in _IN_FOLDERS.items() if format in (None, name))
        raise FileNotFoundError(f"paths: no file matches {path!r}; in a directory, files end in {known}.")
    return files


def _files_in_directory(path: str, format: str | None) -> list[str]:
    """Files with a known suffix; if there are none and a format is given, all files that are not hidden."""
    visible = sorted(entry.path for entry in os.scandir(path) if entry.is_file() and entry.name[0] not in "._")
    known = [file for file in visible if _IN_FOLDERS.get(_suffix(file), "") in ([format] if format else FORMATS)]
    return known or (visible if format else [])


def repeated(names: Sequence[str]) -> list[str]:
    """The names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


@contextmanager
def reading(path: str, format: str) -> Iterator[None]:
    """Convert errors of the readers to ValueErrors that name the file, except those that do so already."""
    if os.path.getsize(path) == 0:
        raise ValueError(f"{path} is empty (0 bytes); write it again or leave it out.")
    try:
        yield
    except (FileNotFoundError, PermissionError, MemoryError):
        raise
    except ImportError as error:
        if "pip install" in str(error):
            raise
        raise ImportError(f"{path}: reading it needs more libraries ({error}): pip install 'kproba[tables]'") from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: it is not {error.encoding} text ({error.reason}); save it as UTF-8, or in a "
            "command set --encoding."
        ) from error
    except (ValueError, OSError, EOFError, KeyError, csv.Error, pyarrow().ArrowException) as error:
        said = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
        kind, is_word = FORMATS[format], "conversion error" in said
        raise (NotPlainNumbers if is_word else ValueError)(
            f"{path} cannot be read as {kind.name}: {said}. {kind.advice}"
        ) from error


def schema_of(path: str, format: str) -> Schema:
    """The columns and blocks of a file of numbers."""
    with reading(path, format):
        schema, counts = FORMATS[format].schema(path)
    _check_names(path, schema.names)
    return Schema(path, dict(zip(schema.names, schema.types)), counts)


def reader_of(format: str, encoding: str | None) -> Any:
    """The reader of a format; an encoding only matters for text."""
    if encoding is None or format not in SEPARATORS:
        return FORMATS[format]
    return Text(format.upper(), SEPARATORS[format], encoding)


def columns_of(path: str, format: str, encoding: str | None = None) -> list[str]:
    """The column names of a table."""
    with reading(path, format):
        names = reader_of(format, encoding).columns(path)
    _check_names(path, names)
    return names


def _check_names(path: str, names: Sequence[str]) -> None:
    if twice := repeated(names):
        raise ValueError(f"{path} has more than one column {twice[0]!r}; give every column a unique name.")
    if not names:
        raise ValueError(f"{path} has no columns; write it again or leave it out.")
