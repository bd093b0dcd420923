"""A trial prediction with a row of missing values for table models, as created by ``kproba fit``.

Such models accept it, since a column of a new file may be empty. Only steps that were reviewed for what a malicious
state could do with one row are run; models with other steps are only checked attribute by attribute.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..estimators._base import KernelClassifier
from ..exceptions import ModelFileError
from .trial import OF_TEXT, is_fitted, is_plain_text, through

#: Reviewed steps. Not among them are fitted encoders whose parameters determine how much they compute (GapEncoder,
#: MinHashEncoder), and durations, for which a column without values has another type.
_RUN = {
    *("ApplyToCols", "ApplyToEachCol", "CheckInputDataFrame", "CleanCategories", "CleanNullStrings", "ColumnKinds"),
    *("DatetimeEncoder", "Drop", "DropUninformative", "MissingIndicator", "OneHotEncoder", "PCA", "PassThrough"),
    *(
        "Pipeline",
        "PlainTable",
        "SimpleImputer",
        "StandardScaler",
        "StringEncoder",
        "TableModel",
        "TableVectorizer",
        "TextColumn",
    ),
    *("TfidfTransformer", "ToCategorical", "ToDatetime", "ToFloat", "ToStr", "TruncatedSVD", "_CircularEncoder"),
}


def check_frame(model: Any, objects: Iterable[Any]) -> None:
    """Raise an error for a table model whose steps do not match."""
    pipeline = model.pipeline if type(model).__name__ == "TableModel" else model
    steps = [step for _, step in getattr(pipeline, "steps", [])]
    parts = [part for part in objects if isinstance(part, BaseEstimator)]
    if not steps or type(steps[0]).__name__ != "ColumnKinds" or not all(map(_is_run, parts)):
        return
    if not isinstance(steps[-1], KernelClassifier) or "feature_names_in_" not in vars(steps[0]):
        return
    names = list(steps[0].feature_names_in_)
    _check_names(model, names, [part for part in parts if type(part).__name__ == "CheckInputDataFrame"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        through(steps, _empty_row(steps[0], names))


def _is_run(part: Any) -> bool:
    name = type(part).__name__
    if getattr(part, "n_jobs", None) not in (None, 1) and not isinstance(part, KernelClassifier):
        return False  # would start processes
    if name in OF_TEXT:
        return is_plain_text(part)
    return isinstance(part, KernelClassifier) or name in _RUN or not is_fitted(part)


def _check_names(model: Any, names: list[str], readers: list[Any]) -> None:
    """Check that names agree: for names that differ, skrub takes a time that grows with the cube of their number."""
    asked = getattr(model, "columns", names)
    same = list(asked) == names and all(list(reader.feature_names_in_) == names for reader in readers)
    if not same or len(set(names)) != len(names):
        raise ModelFileError(f"{type(model).__name__}: its parts have different columns.")
    if any(reader.module_name_ != "pandas" for reader in readers):
        raise ModelFileError(f"{type(model).__name__}: it was fitted on frames of a library other than pandas.")


def _empty_row(kinds: Any, names: list[str]) -> Any:
    numbers = {*kinds.numbers_, *kinds.truths_}
    nothing = np.array([None], dtype=object)
    return import_module("pandas").DataFrame({name: [np.nan] if name in numbers else nothing for name in names})
