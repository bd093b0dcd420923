"""The model of the commands: a pipeline for tables with mixed columns, and the columns it was fitted on."""

import os
from collections import Counter
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline

from .. import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from ..data.formats import SEPARATORS
from ..data.kinds import TEXT
from ..data.mixed import marks_of_table
from ..data.tables import Table
from ..estimators._honest import Honest, honest_probabilities
from ..messages import did_you_mean
from . import _frames
from ._training import SeenRows

ESTIMATORS = {
    "lspc": LSPC,
    "klr": KernelLogisticRegression,
    "ivm": ImportVectorMachine,
    "surface": SurfaceKernelClassifier,
}
AUTO = "auto"
#: With at most this many rows and at least this fraction of 0/1 columns, the likelihood can do much better than least
#: squares, namely if classes follow rules on categories.
FEW_ROWS, MOSTLY = 2_000, 0.5
#: skrub's names of column kinds -> ours.
WORDS = {"numeric": "numbers", "datetime": "dates", "low_cardinality": "categories", "high_cardinality": "text"}


def add_model(command, what: str) -> None:
    """Add the option for the model file, with the same default in all commands."""
    command.add_argument("--model", default="model.kproba", help=f"{what} (default: %(default)s)")


class TableModel(ClassifierMixin, BaseEstimator):
    """A fitted classifier for frames, its input columns, and the name of its target column: what ``kproba fit`` writes.

    ``seen`` recognises the rows it was fitted on; None if they are not known. ``about`` may have the name of the
    "positive" class and the "profile" of the columns that new rows are compared with. ``pipeline`` is that of
    :func:`kproba.tabular`. Frames may have further columns, in any order.
    """

    def __init__(
        self, pipeline, target: str, columns: list[str], seen: SeenRows | None = None, about: dict | None = None
    ):
        self.pipeline = pipeline
        self.target = target
        self.columns = columns
        self.seen = seen
        self.about = about

    @property
    def left_out(self) -> Honest | None:
        """Probabilities of all training rows by models without them, out of fold or by leave-one-out, if available."""
        found = honest_probabilities(self.classifier)
        if found is None or self.seen is None or not self.seen.has_all or len(found.proba) != self.seen.n_rows:
            return None
        return found

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of ``predict_proba``."""
        return self.pipeline.classes_

    classes = classes_  # the name that earlier versions used

    def predict(self, frame) -> np.ndarray:
        """The most probable class of each row."""
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]

    @property
    def classifier(self):
        return self.pipeline[-1] if hasattr(self.pipeline, "steps") else self.pipeline

    @property
    def words(self) -> list[str]:
        """Columns to read as text, not as numbers: 01 is not 1, and 1.234 may be 1234."""
        steps = getattr(self.pipeline, "named_steps", {})
        kinds = getattr(steps.get("tablevectorizer"), "kind_to_columns_", {})
        written = getattr(steps.get("columnkinds"), "styles_", {})
        return [*written, *(name for kind in WORDS if kind != "numeric" for name in kinds.get(kind, []))]

    def opened(self, args, path: str) -> Table:
        """Open a table with the model's columns, in any order and possibly with others."""
        table = _frames.opened(args, path)
        missing = [name for name in self.columns if name not in table.columns]
        if missing:
            has, hint = _frames.listing(table.columns), did_you_mean(missing[0], map(str, table.columns))
            raise ValueError(
                f"{path}: the columns {_frames.listing(missing)}, which the model was fitted on, are missing{hint}; "
                f"it has {has}."
            )
        _frames.refuse_nested(table, self.columns, path)
        return table.typed(dict.fromkeys(self.words, TEXT)) if table.format in SEPARATORS else table

    def settled(self, table: Table, verbose: int = 0) -> Table:
        """The table, of which this model reads each column of numbers in one notation from now on, in all parts."""
        marks = _marks(self.pipeline)
        if not marks or not table.has_parts():
            return table
        if unknown := [name for name in marks if name not in table.types]:
            table = table.settled(unknown, verbose)
        texts = {name: mark for name, mark in marks.items() if table.types[name] == TEXT}
        if texts:
            self.pipeline = with_marks(self.pipeline, marks_of_table(table.frames([*texts], verbose, "columns"), texts))
        return table

    def predict_proba(self, frame) -> np.ndarray:
        """Probabilities that sum to one in double precision, even if the columns are in single precision."""
        proba = np.asarray(self.pipeline.predict_proba(frame[self.columns]), dtype=np.float64)
        return proba / proba.sum(axis=1, keepdims=True)


def _marks(pipeline) -> dict[str, str]:
    """The decimal mark of each column that is read as numbers; none if the model does not read tables itself."""
    if hasattr(pipeline, "steps"):
        return getattr(pipeline.named_steps.get("columnkinds"), "marks", {})
    columns = getattr(pipeline, "columns_", None)
    return {} if columns is None else columns.marks(pipeline.feature_names_in_)


def with_marks(pipeline, marks: dict[str, str]):
    """The same pipeline, or classifier of a table, for rows whose columns of numbers have these decimal marks."""
    if hasattr(pipeline, "steps"):
        (name, reader), *rest = pipeline.steps
        return Pipeline([(name, reader.settled(marks)), *rest])
    found = copy(pipeline)
    found.columns_ = pipeline.columns_.settled(pipeline.feature_names_in_, marks)
    return found


def contenders(name: str, X: np.ndarray, **options) -> list[Any]:
    """The named classifier, or the candidates to select from by out-of-fold or leave-one-out loss."""
    if name != AUTO:
        return [ESTIMATORS[name](**options)]
    binary = np.mean([len(np.unique(column)) <= 2 for column in np.asarray(X).T])
    if len(X) > FEW_ROWS or binary < MOSTLY:
        return [LSPC(**options)]
    return [LSPC(**options), KernelLogisticRegression(loo=True, **options)]


def kinds_of_columns(pipeline) -> dict[str, str]:
    """Whether each column is read as numbers, categories, dates or text; those that are dropped are left out."""
    table = pipeline["tablevectorizer"]
    used = {name for name, outputs in table.input_to_outputs_.items() if outputs}
    found = table.kind_to_columns_
    return {name: word for kind, word in WORDS.items() for name in found.get(kind, ()) if name in used}


def kinds_of(pipeline) -> dict[str, int]:
    """The number of columns read as numbers, categories, dates and text."""
    found = Counter(kinds_of_columns(pipeline).values())
    return {word: found[word] for word in WORDS.values() if found[word]}


def load(path: str) -> TableModel:
    """Load a model; one saved from Python knows its columns only if it was fitted on a frame."""
    from .. import load as load_model

    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path}: no such file; create it with kproba fit, or use --model to name another one.")
    model = load_model(path)
    if isinstance(model, TableModel):
        return model
    if not hasattr(model, "predict_proba"):
        raise ValueError(f"{path}: the file contains a {type(model).__name__}, which has no predict_proba.")
    columns = getattr(model, "feature_names_in_", None)
    if columns is None:
        raise ValueError(f"{path}: the model was fitted on an array, so its column names are not known; use a frame.")
    return TableModel(model, "", [str(name) for name in columns])
