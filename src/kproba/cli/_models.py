"""What the commands fit and keep: a pipeline for tables of mixed columns, and what it was told about them."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from .. import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from ..data.files import SEPARATORS
from ..data.tables import TEXT, Table
from . import _frames
from ._kinds import ColumnKinds
from ._training import SeenRows
from ._words import TextColumn

ESTIMATORS = {
    "lspc": LSPC,
    "klr": KernelLogisticRegression,
    "ivm": ImportVectorMachine,
    "surface": SurfaceKernelClassifier,
}
AUTO = "auto"
#: Tables of so many rows at most, with so large a share of 0/1 columns, are where the likelihood may do much better
#: than least squares: classes that follow rules on categories.
FEW_ROWS, MOSTLY = 2_000, 0.5
#: What skrub calls the kinds of columns -> what we call them.
WORDS = {"numeric": "numbers", "datetime": "dates", "low_cardinality": "categories", "high_cardinality": "text"}


def add_model(command, what: str) -> None:
    """The option that names the file of the model: the same everywhere, so that it can be left out everywhere."""
    command.add_argument("--model", default="model.kproba", help=f"{what} (default: %(default)s)")


class TableModel(BaseEstimator):
    """A fitted classifier of frames, the columns it reads, and the name of the column it predicts.

    ``seen`` recognises the rows that it was fitted on; None where these are not known.
    """

    def __init__(self, pipeline, target: str, columns: list[str], seen: SeenRows | None = None):
        self.pipeline = pipeline
        self.target = target
        self.columns = columns
        self.seen = seen

    @property
    def left_out(self) -> np.ndarray | None:
        """Leave-one-out probabilities of all rows that it was fitted on, if there are any."""
        proba = getattr(self.classifier, "loo_proba_", None)
        if proba is None or self.seen is None or not self.seen.has_all or len(proba) != self.seen.n_rows:
            return None
        return proba

    @property
    def classes(self) -> np.ndarray:
        return self.pipeline.classes_

    @property
    def classifier(self):
        return self.pipeline[-1] if hasattr(self.pipeline, "steps") else self.pipeline

    @property
    def words(self) -> list[str]:
        """Columns that a text file must not take for numbers: 01 is 01 and not 1, and 1.234 may be a thousand."""
        steps = getattr(self.pipeline, "named_steps", {})
        kinds = getattr(steps.get("tablevectorizer"), "kind_to_columns_", {})
        written = getattr(steps.get("columnkinds"), "styles_", {})
        return [*written, *(name for kind in WORDS if kind != "numeric" for name in kinds.get(kind, []))]

    def opened(self, args, path: str) -> Table:
        """A table that has the model's columns, in any order and others beside them."""
        table = _frames.opened(path, args.format, args.chunk_rows)
        missing = [name for name in self.columns if name not in table.columns]
        if missing:
            has = _frames.listing(table.columns)
            raise ValueError(
                f"{path}: it lacks {_frames.listing(missing)}, which the model was fitted on; it has {has}."
            )
        return table.typed(dict.fromkeys(self.words, TEXT)) if table.format in SEPARATORS else table

    def predict_proba(self, frame) -> np.ndarray:
        """Rows that sum to one in double precision, whatever the columns were reckoned in."""
        proba = np.asarray(self.pipeline.predict_proba(frame[self.columns]), dtype=np.float64)
        return proba / proba.sum(axis=1, keepdims=True)


def contenders(name: str, X: np.ndarray, **options) -> list[Any]:
    """Classifiers for rows of numbers: the one that was named, or those that leave-one-out shall choose between."""
    if name != AUTO:
        return [ESTIMATORS[name](**options)]
    binary = np.mean([len(np.unique(column)) <= 2 for column in np.asarray(X).T])
    if len(X) > FEW_ROWS or binary < MOSTLY:
        return [LSPC(**options)]
    return [LSPC(**options), KernelLogisticRegression(loo=True, **options)]


def vectorizer():
    """Numbers, categories, dates and text as columns of numbers, missing ones filled and marked."""
    try:
        skrub = import_module("skrub")
    except ImportError as error:
        raise ImportError("Tables of mixed columns need skrub: pip install 'kproba[tables]'") from error
    table = skrub.TableVectorizer(high_cardinality=TextColumn(), drop_if_constant=True)
    return make_pipeline(ColumnKinds(), table, SimpleImputer(strategy="median", add_indicator=True))


def for_tables(classifier):
    """The classifier behind the vectoriser."""
    return behind(vectorizer(), classifier)


def behind(prepared, classifier):
    """A classifier behind the steps of a pipeline, fitted or not."""
    return make_pipeline(*(step for _, step in prepared.steps), classifier)


def kinds_of(pipeline) -> dict[str, int]:
    """How many columns were read as numbers, categories, dates and text."""
    found = pipeline["tablevectorizer"].kind_to_columns_
    return {word: len(found[kind]) for kind, word in WORDS.items() if found.get(kind)}


def load(path: str) -> TableModel:
    """The model in a file; one that Python saved alone knows its columns if it was fitted on a frame."""
    from .. import load as load_model

    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path}: there is no such file; kproba fit writes it, and --model names another one.")
    model = load_model(path)
    if isinstance(model, TableModel):
        return model
    if not hasattr(model, "predict_proba"):
        raise ValueError(f"{path}: it holds a {type(model).__name__}, which predicts no probabilities.")
    columns = getattr(model, "feature_names_in_", None)
    if columns is None:
        raise ValueError(f"{path}: its model was fitted on an array and does not know the names of its columns.")
    return TableModel(model, "", [str(name) for name in columns])
