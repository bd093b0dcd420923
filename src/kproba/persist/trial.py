"""A trial prediction of one row, so that parts of a model that do not match are detected when it is loaded.

The row costs no more than reading the model: it is narrow or as wide as the centres, starts no process, runs no regular
expression from the file and uses no device. If no such row can be generated, for example for frames and pictures, only
the checks of ``audit.py`` apply.
"""

import warnings
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..basis.basis import Basis
from ..data.items import Items, as_objects
from ..data.scaling import Scaling
from ..estimators._base import KernelClassifier
from ..exceptions import ModelFileError
from ..kernels import ChiSquared, Intersection, Precomputed, Spectrum

#: Maximum columns of a generated row for a pipeline: a wider row could be larger than the file.
MOST_COLUMNS = 1 << 16
#: These turn text into numbers, so that no other step can come before them.
OF_TEXT = ("CountVectorizer", "HashingVectorizer", "TfidfVectorizer")
#: scikit-learn's default word pattern; another one might search a short text forever.
_WORDS = r"(?u)\b\w\w+\b"
#: Transformers that accept any finite row of the right width, and return about as many numbers.
_UNDEMANDING = {
    *("Binarizer", "FunctionTransformer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "PCA", "QuantileTransformer"),
    *("RobustScaler", "StandardScaler", "TfidfTransformer", "TruncatedSVD", "VarianceThreshold"),
}


# ---------------------------------------------------------------- classifiers


def check_scores(clf: KernelClassifier, k: int) -> None:
    """Check the scores of one row, and the result of the link."""
    scores = _features(clf) @ clf.coef_ + clf.intercept_
    if scores.shape != (1, k) or not np.isfinite(scores).all():
        raise ModelFileError(f"{type(clf).__name__}: it has no finite score for a central row.")
    decision = clf.link_.decision(scores)
    proba = clf.link_.probabilities(scores) if clf.link_.gives_probabilities else None
    for found in (decision, proba):
        if found is not None and (found.shape != (1, len(clf.classes_)) or not np.isfinite(found).all()):
            raise ModelFileError(f"{type(clf).__name__}: its link does not match its classes.")


def _features(clf: KernelClassifier) -> np.ndarray:
    """Features (1, b) of a central row, or zeros for most items and for precomputed kernels."""
    basis, scaling = clf.basis_, clf.scaling_
    if isinstance(basis.centers, Items):
        return _features_of_text(basis)
    if isinstance(basis.kernel, Precomputed):
        return np.zeros((1, basis.n_centers))
    if sparse.issparse(basis.centers):
        basis, scaling = _narrowed(basis, scaling)
        row = sparse.csr_array((1, basis.centers.shape[1]))
    else:
        row = np.zeros((1, basis.centers.shape[1])) if scaling is None else scaling.center[None, :]
    return replace(basis, workers=1)(row if scaling is None else scaling(row))


def _features_of_text(basis: Basis) -> np.ndarray:
    """Features of a text, if the counts of the centres are cached; models of sequences would have to be fitted."""
    kernel: Any = basis.kernel
    centers: Any = basis.centers
    known = isinstance(kernel, Spectrum) and ("bags", kernel._lengths, bool(kernel.positions))
    if known and known in centers.memory.entries:
        return kernel(["a"], centers)
    return np.zeros((1, basis.n_centers))


def _narrowed(basis: Basis, scaling: Scaling | None) -> tuple[Basis, Scaling | None]:
    """The same without empty columns, of which there may be many more than bytes in the file."""
    centers: Any = basis.centers
    used, places = np.unique(centers.indices, return_inverse=True)
    shape = centers.shape[0], max(1, len(used))
    centers = sparse.csr_array((centers.data, places.astype(centers.indices.dtype), centers.indptr), shape=shape)
    if scaling is not None:
        some = used if len(used) else [0]
        parts = {name: getattr(scaling, name)[some] for name in ("center", "scale", "squashed", "relevance")}
        scaling = Scaling(**parts)  # sparse rows have no curves
    return replace(basis, centers=centers), scaling


# ---------------------------------------------------------------- pipelines


def check_pipeline(pipeline: Any) -> None:
    """Pass one row through all steps."""
    steps = [step for _, step in pipeline.steps if step is not None and not isinstance(step, str)]
    if not steps or not is_fitted(steps[-1]):
        return
    for step in steps:
        check_is_fitted(step)
    row = _sample(steps[0]) if all(map(_is_undemanding, steps[1:])) else None
    if row is not None:
        through(steps, row)


def through(steps: list[Any], row: Any) -> None:
    """Raise an error if a step does not accept the output of the previous one. A frame keeps its column names."""
    last, has_names = steps[-1], hasattr(row, "columns")
    for step in steps[: -1 if isinstance(last, KernelClassifier) else None]:
        step = copy(step)  # some change their state in transform
        if "n_jobs" in vars(step):
            step.n_jobs = None  # no processes for one row
        if not has_names:
            vars(step).pop("feature_names_in_", None)
            row = np.asarray(row) if hasattr(row, "columns") else row
        row = step.transform(row)
    if isinstance(last, KernelClassifier) and not _accepts(last, row):
        raise ModelFileError(
            f"{type(last).__name__} needs {last.n_features_in_} columns, but the steps before return others."
        )


def _accepts(classifier: KernelClassifier, row: Any) -> bool:
    """Whether a row has the right width, and only finite numbers unless the classifier reads other values."""
    if row.shape != (1, classifier.n_features_in_) or classifier.columns_ is not None:
        return row.shape == (1, classifier.n_features_in_)
    values = row.data if sparse.issparse(row) else np.asarray(row, dtype=np.float64)
    return bool(np.isfinite(values).all())


def is_fitted(step: Any) -> bool:
    return any(name.endswith("_") and not name.startswith("_") for name in vars(step))


def _is_undemanding(step: Any) -> bool:
    """Whether a step accepts any row, with time and memory at most proportional to its own size."""
    name = type(step).__name__
    if isinstance(step, KernelClassifier):
        return not isinstance(getattr(vars(step).get("basis_"), "kernel", None), ChiSquared | Intersection)
    if name == "PowerTransformer":
        return step.method == "yeo-johnson"
    if name == "SimpleImputer":
        return np.asarray(vars(step).get("statistics_", 0.0)).dtype.kind == "f"
    if name == "OneHotEncoder":
        return step.handle_unknown == "ignore"
    return name in _UNDEMANDING


def _sample(step: Any) -> Any:
    """A row that the first step of a pipeline accepts; None if none can be generated."""
    name = type(step).__name__
    maker = _SAMPLES.get(name)
    if maker is None and not _is_undemanding(step):
        return None
    width = vars(step).get("n_features_in_", 0)
    if width > MOST_COLUMNS:
        return None
    return np.ones((1, width)) if maker is None else maker(step)


def is_plain_text(step: Any) -> bool:
    """Whether a text is tokenized without a regular expression from the file."""
    return step.analyzer in ("char", "char_wb") or (step.analyzer == "word" and step.token_pattern == _WORDS)


def _first_categories(step: Any) -> Any:
    row = as_objects(known[0] for known in step.categories_)[None]
    kinds = {known.dtype.kind for known in step.categories_}
    return None if kinds & set("mM") else row if kinds & set("OUS") else row.astype(np.float64)


def _statistics(step: Any) -> Any:
    found = step.statistics_
    return np.ones((1, len(found))) if found.dtype.kind == "f" else found.astype(object)[None, :]


def _columns(transformer: Any) -> Any:
    """A row for a transformer with numbered columns, with values that the transformer of each column accepts."""
    d = transformer.n_features_in_
    if hasattr(transformer, "feature_names_in_"):
        return None
    row, n_taken = np.ones((1, d), dtype=object), 0
    for _, step, columns in transformer.transformers_:
        places = _places(columns, d)
        n_taken += d if places is None else len(places)
        if places is None or n_taken > MOST_COLUMNS:
            return None
        if isinstance(step, BaseEstimator) and len(places):
            if not _is_undemanding(step) and type(step).__name__ not in _OF_COLUMNS:
                return None
            sample = _sample(step)
            if sample is None:
                return None
            row[0, places] = sample[0]
    return row if any(isinstance(value, str) for value in row[0]) else row.astype(np.float64)


def _places(columns: Any, d: int) -> Any:
    """Column numbers, or None if columns are specified in another way."""
    if isinstance(columns, slice):
        return range(d)[columns]
    columns = np.atleast_1d(np.asarray(columns))
    if columns.dtype.kind == "b" and len(columns) == d:
        return np.flatnonzero(columns)
    return columns.astype(np.int64) if columns.dtype.kind in "iu" or not columns.size else None


#: Steps of a ColumnTransformer whose state determines which values they accept.
_OF_COLUMNS = {"OneHotEncoder", "OrdinalEncoder", "SimpleImputer"}
_SAMPLES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(OF_TEXT, lambda step: ["an example"] if is_plain_text(step) else None),
    "OneHotEncoder": _first_categories,
    "OrdinalEncoder": _first_categories,
    "SimpleImputer": _statistics,
    "BagOfFeatures": lambda step: [np.ones((1, step.n_features_in_))],
    "ColumnTransformer": _columns,
}


# ---------------------------------------------------------------- table models


#: Reviewed steps. Not among them are fitted encoders whose parameters determine how much they compute (GapEncoder,
#: MinHashEncoder), and durations, for which a column without values has another type.
_RUN = {
    *("ApplyToCols", "ApplyToEachCol", "CheckInputDataFrame", "CleanCategories", "CleanNullStrings", "ColumnKinds"),
    *("DatetimeEncoder", "Drop", "DropUninformative", "MissingIndicator", "OneHotEncoder", "PCA", "PassThrough"),
    *("Pipeline", "SimpleImputer", "StandardScaler", "StringEncoder", "TableModel", "TableVectorizer", "TextColumn"),
    "PlainTable",
    *("TfidfTransformer", "ToCategorical", "ToDatetime", "ToFloat", "ToStr", "TruncatedSVD", "_CircularEncoder"),
}


def check_frame(model: Any, objects: Iterable[Any]) -> None:
    """Raise an error for a table model, as created by ``kproba fit``, whose steps do not match.

    Such models accept a row of missing values, since a column of a new file may be empty. Only steps that were reviewed
    for what a malicious state could do with one row are run; models with other steps are only checked attribute by
    attribute.
    """
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
