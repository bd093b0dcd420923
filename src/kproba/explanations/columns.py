"""Which columns a classifier sees, which columns of the user's table they come from, and what they are called."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn import impute, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from ..arrays import to_numpy
from ..kernels.base import dense

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
)


class Columns(NamedTuple):
    """What is explained: the input of the final classifier, and for each explained column its values and name.

    ``groups`` are the columns of the classifier that belong to each explained column; some may have none.
    """

    inputs: Any
    data: np.ndarray
    names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]


def final_step(model):
    """The classifier at the end of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def transformed(model, X):
    """The rows as the final classifier sees them."""
    for step in _steps(model)[:-1]:  # a pipeline of these alone may not know that it is fitted
        X = step.transform(X)
    return X


def columns_of(model, X, names: Sequence[str] | None = None) -> Columns:
    """The user's own columns if each column of the classifier comes from one of them, otherwise the classifier's."""
    steps = _steps(model)
    inputs, n_inputs = transformed(model, X), steps[-1].n_features_in_
    origin = _composed(steps[:-1], getattr(steps[0], "n_features_in_", 0))
    if origin is None:
        origin, data, known = list(range(n_inputs)), inputs, column_names(model, n_inputs)
    else:
        data, known = X, column_names(steps[0], steps[0].n_features_in_)
    d, mixed = len(known), getattr(steps[-1], "columns_", None)
    origin = origin if mixed is None else [origin[j] for j in mixed.origins]
    groups = tuple(tuple(np.flatnonzero(np.equal(origin, j)).tolist()) for j in range(d))
    if names is not None and len(names) != d:
        raise ValueError(f"feature_names has {len(names)} entries, but there are {d} columns to explain.")
    return Columns(
        inputs, np.asarray(to_numpy(dense(data))), tuple(known if names is None else map(str, names)), groups
    )


def origins(step) -> list[int] | None:
    """For each column that a fitted transformer computes, the number of the input column that it comes from.

    None if a column may depend on several, or if we do not know the transformer. Transformers of other libraries are
    known by their attribute ``input_to_outputs_``, as skrub's TableVectorizer has it.
    """
    n = getattr(step, "n_features_in_", 0)
    if isinstance(step, ONE_TO_ONE) or (isinstance(step, preprocessing.FunctionTransformer) and step.func is None):
        return list(range(n))
    if isinstance(step, Pipeline):
        steps = _steps(step)
        return _composed(steps, getattr(steps[0], "n_features_in_", 0)) if steps else None
    if isinstance(step, ColumnTransformer):
        return _of_column_transformer(step)
    if isinstance(step, impute.SimpleImputer):
        return _of_imputer(step, n)
    if isinstance(step, preprocessing.OneHotEncoder):
        return np.repeat(np.arange(n), step._n_features_outs).tolist()
    if hasattr(step, "input_to_outputs_"):
        return _by_names(step)
    return None


def _steps(model) -> list[Any]:
    """The steps of a pipeline that do something, or the model itself."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    return [step for step in steps if step is not None and step != "passthrough"]


def _composed(steps: list[Any], n: int) -> list[int] | None:
    """The origins of the columns after several transformers of n columns."""
    found = list(range(n))
    for step in steps:
        here = origins(step)
        if here is None or max(here, default=0) >= len(found):
            return None  # the second only happens after steps that do not say how many columns they have
        found = [found[j] for j in here]
    return found


def _of_column_transformer(step: ColumnTransformer) -> list[int] | None:
    found: dict[int, int] = {}
    for name, part, _ in step.transformers_:
        places, columns = range(*step.output_indices_[name].indices(10**9)), step._transformer_to_input_indices[name]
        if not places:
            continue
        here = list(range(len(columns))) if part == "passthrough" else origins(part)
        if here is None or len(here) != len(places):
            return None
        found.update((place, columns[j]) for place, j in zip(places, here))
    return [found[place] for place in sorted(found)]


def _of_imputer(step: impute.SimpleImputer, n: int) -> list[int]:
    """The columns that are not empty, then the indicators of missing values."""
    empty = [value != value for value in step.statistics_]  # NaN, for columns of any type
    kept = [j for j in range(n) if not empty[j] or step.keep_empty_features]
    return kept + (step.indicator_.features_.tolist() if step.add_indicator else [])


def _by_names(step) -> list[int] | None:
    names = list(step.input_to_outputs_)
    origin = {output: j for j, name in enumerate(names) for output in step.input_to_outputs_[name]}
    outputs = list(step.get_feature_names_out())
    return [origin[output] for output in outputs] if all(output in origin for output in outputs) else None


def column_names(model, n_columns: int, names: Sequence[str] | None = None) -> list[str]:
    """Names of the columns that the classifier sees: those given, its own, those of earlier steps, or x0, x1, …"""
    for found in (names, getattr(final_step(model), "feature_names_in_", None), _names_out(model)):
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
