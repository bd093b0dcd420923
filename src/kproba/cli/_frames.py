"""Tables for the commands: CSV, Parquet, Arrow and Excel files, and standard input."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

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
#: Files that are larger are read chunk by chunk, which takes columns of numbers.
LARGE_BYTES = 1 << 30
#: How CSV files are read: what pandas takes for missing is, and "?", with spaces before it or not.
CSV: dict[str, Any] = {"na_values": ["?"], "skipinitialspace": True}
#: Rows of a CSV file that are predicted at a time.
CHUNK_ROWS = 50_000


def add_data(command, what: str) -> None:
    """The options that say what table to read."""
    command.add_argument("data", help=f"{what}: .csv, .tsv, .parquet, .arrow, .feather or .xlsx; - is standard input")
    command.add_argument("--format", choices=FORMATS, help="kind of the file, where its name does not tell")


def kind_of(path: str, given: str | None) -> str:
    """csv, tsv, parquet, arrow or excel."""
    if given:
        return given
    if path == "-":
        return "csv"
    suffixes = [suffix for suffix in Path(path).suffixes if suffix not in (".gz", ".bz2", ".zst", ".xz")]
    kind = KINDS.get(suffixes[-1].lower()) if suffixes else None
    if kind is None:
        raise ValueError(f"{path}: its name does not tell what it is; add --format with one of {', '.join(FORMATS)}.")
    return kind


def is_large(path: str) -> bool:
    return path != "-" and os.path.isfile(path) and os.path.getsize(path) > LARGE_BYTES


def read(path: str, given: str | None = None):
    """The whole table as a pandas frame."""
    pandas, kind = _pandas(), kind_of(path, given)
    file: Any = path
    if path == "-":
        file = io.BytesIO(sys.stdin.buffer.read())
    elif not os.path.isfile(path):
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        frame = _READERS[kind](pandas, file)
    except ImportError as error:
        raise ImportError(f"{path}: reading it needs more libraries ({error}): pip install 'kproba[tables]'") from error
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"{path}: it could not be read as {kind} ({_first_line(error)}).") from error
    if not len(frame):
        raise ValueError(f"{path}: it has no rows.")
    frame.columns = frame.columns.map(str)
    if frame.columns.duplicated().any():
        name = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"{path}: there are two columns named {name!r}; rename one.")
    return frame


def chunks(path: str, given: str | None = None) -> Iterator:
    """The table some rows at a time, where the file allows that; as a whole otherwise."""
    if path != "-" and kind_of(path, given) in ("csv", "tsv") and os.path.isfile(path):
        separator = "\t" if kind_of(path, given) == "tsv" else ","
        try:
            for frame in _pandas().read_csv(path, sep=separator, chunksize=CHUNK_ROWS, **CSV):
                frame.columns = frame.columns.map(str)
                yield frame
        except ValueError as error:
            raise ValueError(f"{path}: it could not be read as CSV ({_first_line(error)}).") from error
        return
    yield read(path, given)


def split_target(frame, target: str, path: str):
    """The columns and the labels; rows without a label are left out, and how many these were."""
    if target not in frame.columns:
        found = f"it has {listing(frame.columns)}.{_semicolons(frame)}"
        raise ValueError(f"{path}: there is no column {target!r} for --target; {found}")
    known = frame[target].notna()
    frame = frame[known]
    if not len(frame):
        raise ValueError(f"{path}: the column {target!r} is empty in every row.")
    if frame.shape[1] < 2:
        raise ValueError(f"{path}: there is no column beside {target!r} to predict it from.")
    labels = frame[target]
    if str(labels.dtype) == "category" or labels.dtype.kind not in "iufb":
        labels = labels.astype(str)
    return frame.drop(columns=target), labels.to_numpy(), int((~known).sum())


def _semicolons(frame) -> str:
    """What to say of a file whose header was not taken apart."""
    if len(frame.columns) > 1 or ";" not in frame.columns[0]:
        return ""
    return " Its fields seem to be set off by semicolons; write it with commas, or with tabs as a .tsv file."


def listing(names, most: int = 12) -> str:
    """Names for a message, not too many."""
    shown = ", ".join(repr(str(name)) for name in list(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def write(frame, path: str) -> None:
    """A frame to a .csv, .parquet, .arrow or .xlsx file that appears once it is complete; - is standard output."""
    if path == "-":
        frame.to_csv(sys.stdout, index=False)
        return
    kind, temporary = kind_of(path, None), f"{path}.part"
    try:
        _WRITERS[kind](frame, temporary)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _pandas():
    try:
        return import_module("pandas")
    except ImportError as error:
        raise ImportError("The command reads tables by pandas: pip install 'kproba[tables]'") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _read_csv(pandas, file, separator: str):
    return pandas.read_csv(file, sep=separator, compression="infer" if isinstance(file, str) else None, **CSV)


_READERS = {
    "csv": lambda pandas, file: _read_csv(pandas, file, ","),
    "tsv": lambda pandas, file: _read_csv(pandas, file, "\t"),
    "parquet": lambda pandas, file: pandas.read_parquet(file),
    "arrow": lambda pandas, file: pandas.read_feather(file),
    "excel": lambda pandas, file: pandas.read_excel(file),
}
_WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "arrow": lambda frame, path: frame.to_feather(path),
    "excel": lambda frame, path: frame.to_excel(path, index=False, engine="openpyxl"),
}
