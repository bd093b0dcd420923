"""Writers of tables and of a model's probabilities, batch by batch, to Parquet, CSV, TSV and Arrow files."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..io import AtomicFile, check_output, is_same_file
from ..messages import listing
from ..progress import RowProgress
from .formats import SEPARATORS, format_of
from .kinds import pyarrow
from .sources import as_source, inputs, settled

if TYPE_CHECKING:
    from ..typing import Inputs, PathLike


def write_probabilities(clf: Any, rows: Inputs, path: PathLike, *, verbose: int = 0) -> None:
    """Write the class probabilities and the predicted class of every row to ``path``.

    Parameters
    ----------
    clf : a fitted kproba classifier
    rows : the result of :func:`kproba.open_rows`, or a memory map
    path : file that ends in ``.parquet``, ``.csv``, ``.csv.gz``, ``.tsv``, ``.arrow`` or ``.feather``
        It only appears once all rows are written.
    verbose : int, default=0
        Show rows per second and the remaining time.
    """
    check_is_fitted(clf)
    source = as_source(rows)
    if source is None:
        raise TypeError(f"rows must come from kproba.open_rows or be a memory map, got {type(rows).__name__}.")
    if any(is_same_file(path, read) for read in getattr(source, "paths", ())):
        raise ValueError(f"path={str(path)!r} is one of the files that rows are read from; use another one.")
    clf = settled(clf, source)
    with (
        RowProgress(verbose, source.n_rows, "probabilities") as progress,
        ProbabilityWriter(path, clf.classes_) as writer,
    ):
        for X in inputs(source, getattr(clf, "feature_names_in_", None), getattr(clf, "columns_", None)):
            proba = clf.predict_proba(X)
            writer.write(proba, clf.classes_[proba.argmax(axis=1)])
            progress.rows(len(X))


class TableWriter:
    """Writes Arrow tables one by one to a .parquet, .csv, .tsv or .arrow file that only appears once it is complete.

    An exception inside the ``with`` block leaves an existing file at ``path`` unchanged.
    """

    def __init__(self, path: str | os.PathLike):
        pyarrow()
        self.path = os.path.expanduser(os.fspath(path))
        self._kind = format_of(self.path)
        check_output(path)
        self._schema: Any = None
        self._sink: Any = None
        self._writer: Any = None
        self._file: AtomicFile | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind, error, traceback) -> None:
        self.close() if kind is None else self.discard()

    def write_table(self, table) -> None:
        """Append the rows of an Arrow table; the first table determines the column types."""
        if self._writer is None:
            self._start(table.schema)
        self._writer.write_table(table.cast(self._schema))

    def _start(self, schema) -> None:
        pa = pyarrow()
        compression = "gzip" if self.path.lower().endswith(".gz") else None
        self._file, self._schema = AtomicFile(self.path), schema
        # a separate descriptor, because a pyarrow stream closes the file it writes to
        own = os.fdopen(os.dup(self._file.file.fileno()), "wb")
        self._sink = pa.output_stream(own, compression=compression)
        if self._kind == "parquet":
            self._writer = pyarrow("parquet").ParquetWriter(self._sink, schema)
        elif self._kind == "arrow":
            self._writer = pyarrow("ipc").new_file(self._sink, schema)
        else:
            options = pyarrow("csv").WriteOptions(delimiter=SEPARATORS[self._kind])
            self._writer = pyarrow("csv").CSVWriter(self._sink, schema, write_options=options)

    def _before_rows(self) -> None:
        """Called when a file is closed before it has any rows."""
        raise ValueError(f"{self.path}: there are no rows to write.")

    def close(self) -> None:
        """Finish the file and move it to its final path."""
        if self._is_closed:
            return
        try:
            if self._writer is None:
                self._before_rows()
            self._writer.close()
            self._sink.close()
            assert self._file is not None  # the writer writes to it
            self._file.commit()
            self._is_closed = True
        finally:
            self.discard()

    def discard(self) -> None:
        """Discard everything written so far; does nothing after ``close``."""
        if self._is_closed:
            return
        self._is_closed = True
        for open_one in (self._writer, self._sink):
            with suppress(Exception):  # a full disk fails again here, and the first failure is the one to report
                open_one.close()
        if self._file is not None:
            self._file.discard()


class ProbabilityWriter(TableWriter):
    """Writes predictions chunk by chunk to a file that only appears once it is complete.

    The columns are ``proba_<class>`` for each class, and ``prediction`` if the first ``write`` has one. Without any
    ``write`` the file has columns but no rows.

    Examples
    --------
    ``with ProbabilityWriter("out.parquet", model.classes_) as out:`` and inside, for each chunk of a source,
    ``out.write(model.predict_proba(chunk.X))``.
    """

    def __init__(self, path: str | os.PathLike, classes):
        self._columns = [f"proba_{label}" for label in classes]
        if len(set(self._columns)) < len(self._columns):
            raise ValueError(f"classes has labels with the same column name: {listing(self._columns)}.")
        super().__init__(path)

    def write(self, proba, prediction=None) -> None:
        """Append rows: ``proba`` (m, n_classes) and ``prediction`` (m,), which must be in all calls or in none."""
        if self._is_closed:
            raise ValueError(f"{self.path} is closed; create a new ProbabilityWriter.")
        table = self._table(np.asarray(proba), prediction)
        if not table.num_rows:
            return  # without rows, the type of the predictions is unknown
        if self._schema is not None and table.schema.names != self._schema.names:
            raise ValueError("prediction must be passed in every write or in none.")
        self.write_table(table)

    def _before_rows(self) -> None:
        self._start(self._table(np.empty((0, len(self._columns))), None).schema)

    def _table(self, proba: np.ndarray, prediction):
        pa = pyarrow()
        if proba.ndim != 2 or proba.shape[1] != len(self._columns):
            raise ValueError(
                f"proba has shape {proba.shape}, expected (rows, {len(self._columns)}): one column per class."
            )
        columns = {name: pa.array(np.ascontiguousarray(proba[:, j])) for j, name in enumerate(self._columns)}
        if prediction is not None:
            prediction = np.asarray(prediction)
            if prediction.shape != (len(proba),):
                raise ValueError(f"prediction has shape {prediction.shape}, expected ({len(proba)},).")
            columns["prediction"] = pa.array(prediction.tolist() if prediction.dtype.kind in "UO" else prediction)
        return pa.table(columns)
