"""Which columns a classifier sees, what they are called, and what the user gave for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import impute, preprocessing
from sklearn.pipeline import Pipeline

from ..arrays import is_tensor, to_numpy

#: Transformers that compute every column from the column in the same place.
ONE_TO_ONE = (
    preprocessing.StandardScaler,
    preprocessing.RobustScaler,
    preprocessing.MinMaxScaler,
    preprocessing.MaxAbsScaler,
    preprocessing.QuantileTransformer,
    preprocessing.PowerTransformer,
    preprocessing.Binarizer,
    preprocessing.OrdinalEncoder,
    impute.SimpleImputer,
)


class Columns(NamedTuple):
    """The input of the final classifier, the values to show beside explanations (n, d), and the column names."""

    inputs: Any
    data: np.ndarray
    names: tuple[str, ...]


def final_step(model):
    """The classifier at the end of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def transformed(model, X):
    """The rows as the final classifier sees them."""
    return model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X


def columns_of(model, X, names: Sequence[str] | None = None) -> Columns:
    """The columns to explain: the user's own if every step keeps them in place, otherwise those of the classifier."""
    inputs = transformed(model, X)
    n_columns = final_step(model).n_features_in_
    if names is not None and len(names) != n_columns:
        raise ValueError(
            f"feature_names has {len(names)} entries, but the classifier was fitted on {n_columns} columns."
        )
    data = values_of(X if keeps_columns(model) else inputs)
    return Columns(inputs, data, tuple(column_names(model, n_columns, names)))


def keeps_columns(model) -> bool:
    """Whether column j of the classifier is computed from column j of the user's table alone."""
    if not isinstance(model, Pipeline) or len(model) == 1:
        return True
    same_number = getattr(model, "n_features_in_", None) == model[-1].n_features_in_
    steps = [step for _, step in model.steps[:-1]]
    return same_number and all(step is None or step == "passthrough" or isinstance(step, ONE_TO_ONE) for step in steps)


def values_of(X) -> np.ndarray:
    """The values of a table of any kind."""
    if sparse.issparse(X):
        return X.toarray()
    return to_numpy(X) if is_tensor(X) else np.asarray(X)


def column_names(model, n_columns: int, names: Sequence[str] | None = None) -> list[str]:
    """Names of the columns that the classifier sees: those given, its own, those of earlier steps, or x0, x1, …"""
    own = getattr(final_step(model), "feature_names_in_", None)
    users = getattr(model, "feature_names_in_", None) if keeps_columns(model) else None
    for found in (names, users, own, _names_out(model)):
        if found is not None and len(found) == n_columns:
            return list(map(str, found))
    return [f"x{j}" for j in range(n_columns)]


def _names_out(model):
    """Names of the columns that the steps before the classifier compute, if they know them."""
    if not isinstance(model, Pipeline) or len(model) == 1:
        return None
    try:
        return model[:-1].get_feature_names_out()
    except (AttributeError, ValueError, NotImplementedError):  # a step does not name its columns
        return None
