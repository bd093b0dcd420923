"""Reading and writing tables in the commands: CSV, TSV, Parquet, Arrow and Excel files, folders, and standard input."""

import glob
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BufferedIOBase
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from .. import io, messages
from ..data.encodings import check_encoding
from ..data.formats import COMPRESSIONS, FORMATS, SEPARATORS, format_of
from ..data.kinds import pandas, pyarrow
from ..data.tables import LabelledTable, Table, labelled, open_table
from ..data.writers import TableWriter
from . import _text

#: Maximum rows of an Excel sheet, maximum characters of a cell, and characters that a cell cannot contain.
SHEET_ROWS, CELL_CHARACTERS = 1 << 20, 32_767
_NOT_IN_CELLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
#: Characters that start a formula in spreadsheets.
FORMULA_STARTS = "=+-@\t\r"
#: Larger tables are never loaded into memory as a whole; each byte of a compressed file counts as several.
LARGE_BYTES, PACKED = 1 << 28, 8


def add_data(command, what: str) -> None:
    """Add the options for the input table."""
    command.add_argument(
        "data",
        help=f"{what}: .csv, .tsv, .parquet, .arrow, .feather or .xlsx; a folder or a quoted glob of such files; "
        "or - for standard input",
    )
    command.add_argument("--format", choices=list(FORMATS), help="file format (default: inferred from the suffix)")
    command.add_argument(
        "--encoding", metavar="NAME", help="encoding of text files, such as utf-16 or cp1252 (default: detected)"
    )


def add_chunk_rows(command) -> None:
    """Add the option that limits memory."""
    command.add_argument(
        "--chunk-rows",
        type=int,
        metavar="N",
        help="number of rows of a large table to hold in memory at a time (default: 50000)",
    )


def kind_of(path: str, given: str | None) -> str:
    """The format of a file; standard input and output are CSV by default."""
    return given or ("csv" if path == "-" else format_of(path, tables=True))


def opened(args, path: str) -> Table:
    """Open the table; only the column names are read."""
    chunk_rows = getattr(args, "chunk_rows", None)
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"--chunk-rows {chunk_rows}: it must be at least 1.")
    encoding = None if args.encoding is None else check_encoding(args.encoding, "--encoding")
    if path == "-":
        return _standard_input(kind_of(path, args.format), chunk_rows, encoding)
    if not glob.has_magic(path) and not os.path.exists(path):
        raise FileNotFoundError(f"{path}: no such file{_did_you_mean_file(path)}.")
    return open_table(path, args.format, chunk_rows, encoding)


def _did_you_mean_file(path: str) -> str:
    """A file with a similar name in the same folder."""
    folder, name = os.path.split(path)
    found = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    return messages.did_you_mean(name, [each for each in found if not each.startswith(".")])


def _standard_input(kind: str, chunk_rows: int | None, encoding: str | None) -> Table:
    """Copy standard input to a file, since a table is read more than once."""
    copy = tempfile.NamedTemporaryFile(prefix="kproba-standard-input-")  # noqa: SIM115 - deleted together with the table
    shutil.copyfileobj(sys.stdin.buffer, copy)
    copy.flush()
    return replace(open_table(copy.name, kind, chunk_rows, encoding), holds=copy)


def is_large(table: Table) -> bool:
    """Whether a table should not be loaded into memory as a whole, if there is a choice."""
    is_packed = table.format not in SEPARATORS or Path(table.files[0]).suffix in COMPRESSIONS
    n_bytes = sum(map(os.path.getsize, table.files)) * (PACKED if is_packed else 1)
    return table.format != "excel" and n_bytes > LARGE_BYTES


def split_target(frame, target: str, path: str):
    """The other columns, the labels, and the number of rows dropped because they have no label."""
    check_target(frame.columns, target, path)
    found, labels = labelled(frame, target)
    if not len(found):
        raise ValueError(f"{path}: the column {target!r} is empty in every row.")
    return found, labels, len(frame) - len(found)


def labelled_rows(args, table: Table, columns: list[str], target: str, path: str) -> LabelledTable:
    """The same for a table that need not fit in memory; reports the rows without a label."""
    rows = LabelledTable.of(table, columns, target, _text.wants_progress(args))
    if not rows.n_rows:
        raise ValueError(f"{path}: the column {target!r} is empty in every row.")
    report_skipped(args, rows.n_missing, target)
    return rows


def report_skipped(args, dropped: int, target: str) -> None:
    if dropped:
        _text.remark(args, f"{dropped} row(s) without {target!r} skipped")


def check_target(columns, target: str, path: str) -> None:
    """Raise an error if the table does not have the target column, or no other column."""
    check_column(columns, target, "--target", path)
    if len(columns) < 2:
        raise ValueError(f"{path}: there is no column besides {target!r} to predict it from.")


def check_column(columns, name: str, option: str, path: str) -> None:
    """Raise an error if the table does not have the column that an option names."""
    if name not in columns:
        hint = messages.did_you_mean(name, map(str, columns))
        raise ValueError(f"{path}: there is no column {name!r} for {option}{hint}; it has {listing(columns)}.")


def refuse_overwriting(option: str, path: str, read: Iterable[str]) -> None:
    """Raise an error if the output would overwrite an input file."""
    if path != "-" and any(io.is_same_file(path, each) for each in read):
        raise ValueError(f"{option} {path} is also an input file; use another one.")


def listing(names) -> str:
    """Names of columns or classes, of any type, for a message."""
    return messages.listing(map(str, names), most=12)


def check_output(option: str, path: str) -> None:
    """Raise an error if the path cannot be written, before any work is done; - is standard output."""
    if path == "-":
        return
    io.check_output(path, f"{option} {path}")


def check_table_output(option: str, path: str) -> None:
    """The same for a file to be written by :func:`writing`."""
    check_output(option, path)
    try:
        kind_of(path, None)
    except ValueError:
        raise ValueError(
            f"{option} {path}: no table is written with this suffix; use .csv, .tsv, .parquet, .arrow or .xlsx."
        ) from None
    if Path(path).suffix.lower() == ".xls":
        raise ValueError(f"{option} {path}: the old Excel format cannot be written; use a .xlsx file.")


@contextmanager
def writing(path: str) -> Iterator[Callable]:
    """A function that appends a frame to a file, which only appears once it is complete; - is standard output."""
    kind = kind_of(path, None)
    if path == "-":
        yield _separated(_text.Screen(sys.stdout) if sys.stdout.isatty() else sys.stdout, ",")
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
            yield _separated(file, SEPARATORS[kind], COMPRESSIONS.get(Path(path).suffix))


def _separated(file, separator: str, compression: str | None = None) -> Callable:
    """A function that appends frames to a text file with a single header line."""
    has_header = chain([True], repeat(False))
    options = {"sep": separator, "compression": compression, "index": False}
    options["mode"] = "wb" if isinstance(file, BufferedIOBase) else "w"
    return lambda frame: frame.to_csv(file, header=next(has_header), **options)


class _Sheet:
    """Collects frames for an Excel file; text from the data is always written as text, never as a formula or error."""

    def __init__(self, path: str):
        self._path, self._frames, self._n_rows = path, list[Any](), 0

    def append(self, frame) -> None:
        """Add a frame; raises an error immediately for anything a sheet cannot hold."""
        self._n_rows += len(frame)
        if self._n_rows >= SHEET_ROWS:
            raise ValueError(f"{self._path}: a sheet has at most {SHEET_ROWS:,} rows; write a .csv or .parquet file.")
        texts = {text for name in frame.columns for text in [name, *_texts(frame[name])]}
        unfit = sorted(text for text in texts if len(text) > CELL_CHARACTERS or _NOT_IN_CELLS.search(text))
        if unfit:
            raise ValueError(
                f"{self._path}: {unfit[0][:40]!r} cannot be written to an Excel file, whose cells hold up to "
                f"{CELL_CHARACTERS:,} characters and no control characters; write a .csv or .parquet file."
            )
        self._frames.append(frame)

    def write(self, file) -> None:
        with pandas().ExcelWriter(file, engine="openpyxl") as writer:
            pandas().concat(self._frames).to_excel(writer, index=False)
            for row in next(iter(writer.sheets.values())).iter_rows():
                for cell in row:
                    if isinstance(cell.value, str) and cell.value:
                        cell.data_type = "s"
                        cell.quotePrefix = cell.value[0] in FORMULA_STARTS  # stays text even if the cell is edited


def _texts(column) -> Iterable[str]:
    return (value for value in column.unique() if isinstance(value, str)) if column.dtype.kind == "O" else ()


def _arrow(frame):
    """A frame as an Arrow table; a column that is empty so far becomes strings, since later rows may have some."""
    pa = pyarrow()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))
