"""Tables of numbers, categories, dates and text that may be larger than memory, read as pandas frames of some rows at a
time, or as numeric rows through a fitted transformer.

The type of a column depends on all of its rows: one that starts with numbers and continues with strings is text.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..progress import RowProgress
from .formats import SEPARATORS, Paths, columns_of, reader_of, reading, resolve, schema_of
from .kinds import EMPTY, NULLABLE_BOOLEAN, NUMBER, WHOLE, kind_of_column, loses_digits, pandas, pyarrow, wider
from .sources import CHUNK_BYTES, Chunk, Source

#: Maximum rows and cells of a frame: skrub hardly takes longer for 10,000 rows than for 2,000.
FRAME_ROWS, FRAME_CELLS = 50_000, 1_500_000
#: Maximum rows and cells to fit a transformer on.
SAMPLE_ROWS, SAMPLE_CELLS = 50_000, 5_000_000
#: Minimum number of rows of a frame or sample, however wide the table is.
FEWEST_ROWS = 1_000


def open_table(
    paths: Paths, format: str | None = None, frame_rows: int | None = None, encoding: str | None = None
) -> Table:
    """Open the table in a CSV, TSV, Parquet, Arrow or Excel file, or in several files of the same format.

    Parameters
    ----------
    paths : a path, a glob such as ``"train/*.parquet"``, a directory, or a list of these
    format : "csv", "tsv", "parquet", "arrow" or "excel"; by default inferred from the suffix
    frame_rows : number of rows to read at a time; by default as many as take about 100 MB
    encoding : encoding of text files; by default detected
    """
    files, format = resolve(paths, format, tables=True)
    names = [columns_of(file, format, encoding) for file in files]
    for file, found in zip(files, names):
        missing = [name for name in names[0] if name not in found]
        if missing:
            raise ValueError(f"{file} lacks the column {missing[0]!r} of {files[0]}; all files need the same columns.")
    frame_rows = frame_rows or _bounded(FRAME_ROWS, FRAME_CELLS, len(names[0]))
    return Table(tuple(files), format, names[0], frame_rows, encoding=encoding)


@dataclass(frozen=True)
class Table:
    """Columns of files; ``types`` are the known column types, ``is_read`` is True once all lines have been checked.

    ``holds`` keeps temporary files alive while the table is in use.
    """

    files: tuple[str, ...]
    format: str
    columns: list[str]
    frame_rows: int
    types: dict[str, str] = field(default_factory=dict)
    is_read: bool = False
    holds: Any = None
    encoding: str | None = None

    @property
    def name(self) -> str:
        return self.files[0] if len(self.files) == 1 else f"{len(self.files)} files from {self.files[0]}"

    def frames(self, columns: Sequence[str] | None = None, verbose: int = 0, title: str = "reading") -> Iterator:
        """All rows, some at a time, with all or the given columns; can be called repeatedly.

        The index of a frame counts the rows of all files from 0.
        """
        wanted, start = self.columns if columns is None else list(columns), 0
        with RowProgress(verbose, None, title) as progress:
            for file in self.files:
                for frame in self._frames_of(file, wanted, self.frame_rows):
                    progress.rows(len(frame))
                    yield frame.set_axis(pandas().RangeIndex(start, start + len(frame)), axis=0)
                    start += len(frame)

    def whole(self, exact: Sequence[str] = ()):
        """All rows as one frame, with the types that :meth:`settled` finds."""
        if self.format in SEPARATORS and len(self.files) == 1 and not self.types:
            frames = self._at_once(self.columns)
            if rounded := [name for name in exact if frames and loses_digits(frames[0][name])]:
                frames = [frames[0].assign(**self.typed(dict.fromkeys(rounded, WHOLE))._at_once(rounded)[0])]
        else:
            frames = list(self.settled(exact=exact).frames())
        if not frames:
            raise ValueError(f"{self.name}: the table has no rows.")
        return pandas().concat(frames, ignore_index=True)

    def nested(self) -> dict[str, str]:
        """The columns whose cells are lists or records, with their types."""
        if self.format not in ("parquet", "arrow"):
            return {}
        types = {name: type_ for file in self.files for name, type_ in schema_of(file, self.format).types.items()}
        return {name: str(type_) for name, type_ in types.items() if pyarrow().types.is_nested(type_)}

    def has_parts(self) -> bool:
        """Whether there are more rows than a frame holds."""
        return len(list(islice(self.frames(self.columns[:1]), 2))) > 1

    def settled(self, columns: Sequence[str] | None = None, verbose: int = 0, exact: Sequence[str] = ()) -> Table:
        """The same table after a pass over all rows, with the type of every column, or of the given ones.

        ``exact`` names columns whose integers keep all digits even if some are missing, as labels and identifiers do.
        """
        found: dict[str, str] = {}
        for frame in self.frames(columns, verbose, "columns"):
            for name in frame.columns:
                seen = kind_of_column(frame[name], name in exact)
                found[name] = seen if name not in found else wider(found[name], seen)
        known = {name: NUMBER if seen == EMPTY else seen for name, seen in found.items()}
        return replace(self, types={**self.types, **known}, is_read=self.is_read or len(found) > 1)

    def typed(self, types: dict[str, str]) -> Table:
        """The same with types for some columns: with "str", 01 is read as "01"."""
        return replace(self, types={**self.types, **types})

    def _at_once(self, columns: list[str]) -> list:
        """Columns of the only file, if it has rows; the parser sees all of them before it decides on types."""
        return list(self._frames_of(self.files[0], columns, sys.maxsize))

    def _frames_of(self, file: str, columns: list[str], rows: int) -> Iterator:
        with reading(file, self.format):
            for frame in reader_of(self.format, self.encoding).frames(file, columns, rows, self.types, self.is_read):
                if len(frame):
                    yield frame[columns]


class Labelled(NamedTuple):
    """Rows of a frame that have a label, with their labels."""

    frame: Any
    y: np.ndarray


def labelled(frame, target: str) -> Labelled:
    """The rows that have a label; labels other than numbers and booleans are converted to strings."""
    known = frame[frame[target].notna().to_numpy()]
    labels = known[target].infer_objects()
    if str(labels.dtype) in (NULLABLE_BOOLEAN, WHOLE):
        labels = labels.astype(bool if labels.dtype.kind == "b" else np.int64)
    if labels.dtype == np.float64 and (labels % 1 == 0).all():
        labels = labels.astype(np.int64)  # a missing value had turned integers into floats
    if isinstance(labels.dtype, np.dtype) and labels.dtype.kind in "iufb":
        return Labelled(known.drop(columns=target), labels.to_numpy())
    codes, distinct = pandas().factorize(labels)
    strings = np.array([str(label).strip() for label in distinct], dtype=object)  # one string per label, not per row
    return Labelled(known.drop(columns=target), strings[codes])


def row_weights(column) -> np.ndarray:
    """The weights in a column, NaN where they are missing; raises an error that shows the first word."""
    weight = pandas().to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    words = column[np.isnan(weight) & column.notna().to_numpy()]
    if len(words):
        raise ValueError(f"the weight column {column.name!r} has {words.iloc[0]!r}; weights must be numbers.")
    return weight


class Rule(NamedTuple):
    """Divides the rows of a table: ``holds(frame, start)`` says which rows it selects, ``columns`` what it has to see.

    ``start`` is the number of the first row among those with a label.
    """

    columns: tuple[str, ...]
    holds: Callable[[Any, int], np.ndarray]

    def inverse(self) -> Rule:
        return Rule(self.columns, lambda frame, start: ~self.holds(frame, start))


@dataclass(frozen=True)
class LabelledTable:
    """The rows of a table that have a label in ``target`` and obey ``rule``, with some of its columns.

    ``n_rows`` rows have a label and ``n_missing`` have none; ``counts`` is the number of rows of each label.
    """

    table: Table
    columns: list[str]
    target: str
    counts: dict[Any, int]
    n_missing: int
    verbose: int = 0
    rule: Rule | None = None

    @classmethod
    def of(cls, table: Table, columns: Sequence[str], target: str, verbose: int = 0) -> LabelledTable:
        """Read the labels of a table."""
        counts: Counter = Counter()
        n_seen = 0
        for frame in table.frames([target], verbose, "classes"):
            n_seen += len(frame)
            counts.update(labelled(frame, target).y.tolist())
        return cls(table, list(columns), target, dict(counts), n_seen - sum(counts.values()), verbose)

    @property
    def n_rows(self) -> int:
        return sum(self.counts.values())

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, len(self.columns)

    def frames(self, *beside: str, title: str = "reading") -> Iterator[Labelled]:
        """All rows, some at a time; ``beside`` names additional columns."""
        return self._read([*self.columns, *beside], title)

    def _read(self, columns: Sequence[str], title: str = "reading") -> Iterator[Labelled]:
        wanted, start = dict.fromkeys([*columns, *(self.rule.columns if self.rule else ()), self.target]), 0
        for part in self.table.frames(list(wanted), self.verbose, title):
            frame, y = labelled(part, self.target)
            start += len(y)
            if self.rule is not None:
                inside = self.rule.holds(frame, start - len(y))
                frame, y = frame[inside], y[inside]
            if len(y):
                yield Labelled(frame, y)

    def labels(self) -> np.ndarray:
        """The labels of all rows."""
        return np.concatenate([y for _, y in self._read([])])

    def where(self, rule: Rule) -> LabelledTable:
        """The rows that a rule selects; reads the columns that it needs."""
        found, counts = replace(self, rule=rule), Counter[Any]()
        for _, y in found._read([]):
            counts.update(y.tolist())
        return replace(found, counts=dict(counts))

    def whole(self):
        """All rows as one frame."""
        return pandas().concat([frame for frame, _ in self.frames()], ignore_index=True)

    def take(self, numbers: np.ndarray):
        """Some rows as a frame, in the order of ``numbers``."""
        return self._take(numbers).frame

    def _take(self, numbers: np.ndarray) -> Labelled:
        """Some rows with their labels, in the order of ``numbers``."""
        order, start, found = np.argsort(numbers), 0, []
        places = np.asarray(numbers)[order]
        for frame, y in self.frames(title="rows to show"):
            inside = places[(places >= start) & (places < start + len(frame))] - start
            found.append((frame.iloc[inside], y[inside]))
            start += len(frame)
            if start > places[-1]:
                break
        frames, labels = zip(*found)
        back = np.argsort(order)
        frame = pandas().concat(frames, ignore_index=True)[self.columns].iloc[back]
        return Labelled(frame, np.concatenate(labels)[back])

    def labelled_sample(self, seed: int, size: int | None = None) -> Labelled:
        """A random sample of rows with their labels, in table order; all rows if there are no more than ``size``."""
        size = size or _bounded(SAMPLE_ROWS, SAMPLE_CELLS, len(self.columns))
        drawn = np.random.default_rng(seed).choice(self.n_rows, min(size, self.n_rows), replace=False)
        return self._take(np.sort(drawn))


class TableSource(Source):
    """Rows of a table, converted to numbers by a fitted transformer.

    ``watch(frame, labels, start)`` is called with each part of the rows before it is transformed.
    """

    def __init__(self, rows: LabelledTable, transformer, weight: str | None = None, watch: Callable | None = None):
        self._rows, self._transformer, self._weight = replace(rows, verbose=0), transformer, weight
        self._watch = watch
        first = next(rows.frames())
        X = self._numbers(first.frame[rows.columns].iloc[:1])
        self.name, self.n_rows = rows.table.name, rows.n_rows
        self.n_features, self.dtype, self.chunk_bytes = X.shape[1], X.dtype, CHUNK_BYTES

    def chunks(self, start_row: int = 0, columns_only: bool = False) -> Iterator[Chunk]:
        self._check_start(start_row)
        row, beside = 0, () if self._weight is None else (self._weight,)
        for frame, y in self._rows.frames(*beside):
            if self._watch is not None:
                self._watch(frame[self._rows.columns], y, row)
            surplus = min(max(start_row - row, 0), len(y))
            if surplus < len(y):
                yield self._chunk(frame.iloc[surplus:], y[surplus:], row + surplus, columns_only)
            row += len(y)
        if row != self.n_rows:
            raise ValueError(f"{self.name} had {self.n_rows} rows and now has {row}; do not change files during a fit.")

    def _chunk(self, frame, y: np.ndarray, start: int, columns_only: bool) -> Chunk:
        X = self._numbers(frame[self._rows.columns])
        if columns_only:
            return Chunk(X, None, None, start)
        weight = None if self._weight is None else row_weights(frame[self._weight])
        return Chunk(X, y, weight, start)

    def _numbers(self, frame) -> np.ndarray:
        return np.ascontiguousarray(self._transformer.transform(frame))

    def where(self, row: int) -> str:
        return f"row {row} among the rows of {self.name} with a value in {self._rows.target!r}"


def _bounded(rows: int, cells: int, n_columns: int) -> int:
    return int(np.clip(cells // n_columns, FEWEST_ROWS, rows))
