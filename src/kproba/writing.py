"""Probabilities of more rows than memory holds, written to a file as they come."""

from __future__ import annotations

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .data.files import ProbabilityWriter
from .data.sources import as_source, inputs
from .progress import RowProgress
from .typing import Inputs, PathLike


def write_probabilities(clf: Any, rows: Inputs, path: PathLike, *, verbose: int = 0) -> None:
    """Write the probability of every class, and the predicted class, of every row to ``path``.

    Parameters
    ----------
    clf : a fitted classifier of kproba
    rows : what :func:`kproba.open_rows` returns, or a memory map
    path : file that ends in ``.parquet``, ``.csv``, ``.csv.gz``, ``.tsv``, ``.arrow`` or ``.feather``
        It is there when all rows are written, and not before.
    verbose : int, default=0
        Show rows a second and the time left.
    """
    check_is_fitted(clf)
    source = as_source(rows)
    if source is None:
        raise TypeError(f"rows must come from kproba.open_rows or be a memory map, got {type(rows).__name__}.")
    if any(os.path.realpath(path) == os.path.realpath(read) for read in getattr(source, "paths", ())):
        raise ValueError(f"path={str(path)!r} is one of the files that rows are read from; name another one.")
    with (
        RowProgress(verbose, source.n_rows, "probabilities") as progress,
        ProbabilityWriter(path, clf.classes_) as writer,
    ):
        for X in inputs(source, getattr(clf, "feature_names_in_", None)):
            proba = clf.predict_proba(X)
            writer.write(proba, clf.classes_[proba.argmax(axis=1)])
            progress.rows(len(X))
