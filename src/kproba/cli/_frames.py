"""Tables for the commands: CSV, TSV, Parquet, Arrow and Excel files, folders of these, and standard input."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from .. import io, messages
from ..data.files import SEPARATORS
from ..data.tables import Table, labelled, open_table
from ..data.writers import TableWriter
from . import _text

#: Suffix -> kind of file.
KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".xlsx": "excel",
    ".xls": "excel",
}
FORMATS = ("csv", "tsv", "parquet", "arrow", "excel")
#: Suffix of what a compressed file is -> what pandas calls it.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": "xz"}
#: Rows of an Excel sheet, characters of a cell, and those that no cell may have.
SHEET_ROWS, CELL_CHARACTERS, _NOT_IN_CELLS = (
    1 << 20,
    32_767,
    re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]"),
)
#: What spreadsheets take for the beginning of a formula.
FORMULA_STARTS = "=+-@\t\r"
#: Larger tables are never in memory as a whole; a byte of a compressed file stands for more of them.
LARGE_BYTES, PACKED = 1 << 28, 8


def add_data(command, what: str) -> None:
    """The options that say what table to read."""
    command.add_argument(
        "data",
        help=f"{what}: .csv, .tsv, .parquet, .arrow, .feather or .xlsx; a folder or a quoted glob of such files; "
        "- is standard input",
    )
    command.add_argument("--format", choices=FORMATS, help="kind of the file, where its name does not tell")


def add_chunk_rows(command) -> None:
    """The option that bounds memory."""
    command.add_argument(
        "--chunk-rows",
        type=int,
        metavar="N",
        help="rows of a large table that are in memory at a time (default: 50000)",
    )


def kind_of(path: str, given: str | None) -> str:
    """csv, tsv, parquet, arrow or excel."""
    if given:
        return given
    if path == "-":
        return "csv"
    suffixes = [suffix for suffix in Path(path).suffixes if suffix not in COMPRESSIONS]
    kind = KINDS.get(suffixes[-1].lower()) if suffixes else None
    if kind is None:
        raise ValueError(f"{path}: its name does not tell what it is; add --format with one of {', '.join(FORMATS)}.")
    return kind


def opened(path: str, given: str | None = None, chunk_rows: int | None = None) -> Table:
    """The table, of which no more than the names of the columns has been read."""
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"--chunk-rows {chunk_rows}: at least 1 is needed.")
    if path == "-":
        return _standard_input(kind_of(path, given), chunk_rows)
    if os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path)):
        return open_table(path, given, chunk_rows)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path}: there is no such file.")
    return open_table(path, kind_of(path, given), chunk_rows)


def _standard_input(kind: str, chunk_rows: int | None) -> Table:
    """A table is read more than once, so it is copied to a file."""
    copy = tempfile.NamedTemporaryFile(prefix="kproba-standard-input-")  # noqa: SIM115 - it is deleted when the table is
    shutil.copyfileobj(sys.stdin.buffer, copy)
    copy.flush()
    return replace(open_table(copy.name, kind, chunk_rows), holds=copy)


def is_large(table: Table) -> bool:
    """Whether a table had better not be in memory as a whole, if there is a choice."""
    is_packed = table.format not in SEPARATORS or Path(table.files[0]).suffix in COMPRESSIONS
    n_bytes = sum(map(os.path.getsize, table.files)) * (PACKED if is_packed else 1)
    return table.format != "excel" and n_bytes > LARGE_BYTES


def read(path: str, given: str | None = None):
    """The whole table as a pandas frame."""
    return whole(opened(path, given), path)


def whole(table: Table, path: str):
    """A table as a pandas frame."""
    if not any(True for _ in table.frames(table.columns[:1])):
        raise ValueError(f"{path}: it has no rows.")
    return table.whole()


def joined(frames: list):
    """Parts of a table as one frame."""
    return import_module("pandas").concat(frames, ignore_index=True)


def split_target(frame, target: str, path: str):
    """The columns and the labels; rows without a label are left out, and how many these were."""
    check_target(frame.columns, target, path)
    found, labels = labelled(frame, target)
    if not len(found):
        raise ValueError(f"{path}: the column {target!r} is empty in every row.")
    return found, labels, len(frame) - len(found)


def check_target(columns, target: str, path: str) -> None:
    """Refuse a table that has no such column, or no other."""
    if target not in columns:
        raise ValueError(f"{path}: there is no column {target!r} for --target; it has {listing(columns)}.")
    if len(columns) < 2:
        raise ValueError(f"{path}: there is no column beside {target!r} to predict it from.")


def refuse_overwriting(option: str, path: str, read: Iterable[str]) -> None:
    """Refuse to write to a file that is read."""
    if path != "-" and any(io.is_same_file(path, each) for each in read):
        raise ValueError(f"{option} {path} is the file that is read; name another one.")


def listing(names) -> str:
    """Names of columns or classes for a message, whatever type they are of."""
    return messages.listing(map(str, names), most=12)


def check_output(option: str, path: str) -> None:
    """Refuse what cannot be written, before the work; - is standard output."""
    if path == "-":
        return
    io.check_output(path, f"{option} {path}")


def check_table_output(option: str, path: str) -> None:
    """The same for a file that :func:`writing` shall write."""
    check_output(option, path)
    kind_of(path, None)
    if Path(path).suffix.lower() == ".xls":
        raise ValueError(f"{option} {path}: the old Excel format is read, not written; name a .xlsx file.")


@contextmanager
def writing(path: str) -> Iterator[Callable]:
    """A function that appends a frame to a file, which appears once it is complete; - is standard output."""
    kind = kind_of(path, None)
    if path == "-":
        yield _Separated(_text.Screen(sys.stdout) if sys.stdout.isatty() else sys.stdout, ",")
    elif kind in ("parquet", "arrow"):
        with TableWriter(path) as writer:
            yield lambda frame: writer.write_table(_arrow(frame))
    elif kind == "excel":
        sheet = _Sheet(path)
        yield sheet.append
        with io.AtomicFile(path) as file:
            sheet.write(file)
    else:
        with io.AtomicFile(path) as file:
            yield _Separated(file, SEPARATORS[kind], COMPRESSIONS.get(Path(path).suffix))


class _Separated:
    """Appends frames to a text file, under one line of names."""

    def __init__(self, file, separator: str, compression: str | None = None):
        self._file, self._options = file, {"sep": separator, "compression": compression}
        self._is_first = True

    def __call__(self, frame) -> None:
        mode = "wb" if isinstance(self._file, BufferedIOBase) else "w"
        frame.to_csv(self._file, index=False, header=self._is_first, mode=mode, **self._options)
        self._is_first = False


class _Sheet:
    """Collects frames for an Excel file, in which text from the data is text and never a formula or an error value."""

    def __init__(self, path: str):
        self._path, self._frames, self._n_rows = path, list[Any](), 0

    def append(self, frame) -> None:
        """Refuse at once what a sheet cannot hold."""
        self._n_rows += len(frame)
        if self._n_rows >= SHEET_ROWS:
            raise ValueError(f"{self._path}: a sheet has {SHEET_ROWS:,} rows at most; write a .csv or .parquet file.")
        texts = {text for name in frame.columns for text in [name, *_texts(frame[name])]}
        unfit = sorted(text for text in texts if len(text) > CELL_CHARACTERS or _NOT_IN_CELLS.search(text))
        if unfit:
            raise ValueError(
                f"{self._path}: {unfit[0][:40]!r} cannot stand in an Excel file, whose cells hold {CELL_CHARACTERS:,} "
                "characters and no control characters; write a .csv or .parquet file."
            )
        self._frames.append(frame)

    def write(self, file) -> None:
        pandas = import_module("pandas")
        with pandas.ExcelWriter(file, engine="openpyxl") as writer:
            pandas.concat(self._frames).to_excel(writer, index=False)
            for row in next(iter(writer.sheets.values())).iter_rows():
                for cell in row:
                    if isinstance(cell.value, str) and cell.value:
                        cell.data_type = "s"
                        cell.quotePrefix = cell.value[0] in FORMULA_STARTS  # text even after somebody has edited it


def _texts(column) -> Iterable[str]:
    return (value for value in column.unique() if isinstance(value, str)) if column.dtype.kind == "O" else ()


def _arrow(frame):
    """A frame as an Arrow table; a column that is empty so far may hold words later on."""
    pa = import_module("pyarrow")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))
