"""Tables for the commands: CSV, TSV, Parquet, Arrow and Excel files, folders of these, and standard input."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from .. import wording
from ..data.files import SEPARATORS, TableWriter
from ..data.tables import Table, labelled, open_table

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
    if path != "-" and any(os.path.realpath(path) == os.path.realpath(each) for each in read):
        raise ValueError(f"{option} {path} is the file that is read; name another one.")


def listing(names) -> str:
    """Names of columns or classes for a message, whatever type they are of."""
    return wording.listing(map(str, names), most=12)


@contextmanager
def writing(path: str) -> Iterator[Callable]:
    """A function that appends a frame to a file, which appears once it is complete; - is standard output."""
    if path == "-":
        yield _Separated(sys.stdout, ",")
        return
    kind = kind_of(path, None)
    if kind in ("parquet", "arrow"):
        with TableWriter(path) as writer:
            yield lambda frame: writer.write_table(_arrow(frame))
        return
    temporary = str(Path(path).with_name(f".part-{Path(path).name}"))  # Excel's writer goes by the suffix
    try:
        if kind == "excel":
            parts: list = []
            yield parts.append
            import_module("pandas").concat(parts).to_excel(temporary, index=False, engine="openpyxl")
        else:
            yield _Separated(temporary, SEPARATORS[kind], COMPRESSIONS.get(Path(path).suffix))
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


class _Separated:
    """Appends frames to a text file, under one line of names."""

    def __init__(self, file, separator: str, compression: str | None = None):
        self._file, self._options = file, {"sep": separator, "compression": compression}
        self._is_first = True

    def __call__(self, frame) -> None:
        mode = "w" if self._is_first else "a"
        frame.to_csv(self._file, index=False, header=self._is_first, mode=mode, **self._options)
        self._is_first = False


def _arrow(frame):
    """A frame as an Arrow table; a column that is empty so far may hold words later on."""
    pa = import_module("pyarrow")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))
