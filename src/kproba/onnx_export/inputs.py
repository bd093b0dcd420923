"""Inputs of a graph: one tensor with all columns, or one per column: strings for categories, numbers otherwise."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data.labels import is_missing
from ..data.mixed import UNSEEN, Category, MixedColumns, Number
from .graph import Graph, Value, concatenated


class Input(NamedTuple):
    """An input with ``width`` columns. ``type`` is named as in ``onnx.TensorProto``; None means floating point."""

    name: str
    width: int
    type: str | None = None


def inputs_of(first, X, name: str, has_steps: bool) -> list[Input]:
    """The inputs of the first step, for rows like X if it is given."""
    columns, width = getattr(first, "feature_names_in_", None), getattr(first, "n_features_in_", None)
    if X is None:
        if width is None or (has_steps and columns is not None):
            raise ValueError(
                "X is needed for a pipeline that was fitted on a data frame or on data that is not a table: pass a few "
                "rows, as a data frame for one input per column or as an array for one input with all columns."
            )
        return [Input(name, int(width))]
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        return _of_frame(X, list(X.columns) if columns is None else list(columns), width)
    shape = np.shape(X)
    if len(shape) != 2 or width not in (None, shape[1]):
        raise ValueError(f"X has shape {shape}; the model was fitted on {width} columns.")
    is_text = np.asarray(X).dtype.kind in "OUT"
    return [Input(name, shape[1], "STRING" if is_text else None)]


def _of_frame(X, columns: list, width: int | None) -> list[Input]:
    absent = [each for each in columns if each not in list(X.columns)]
    if absent:
        raise ValueError(f"X has no column {absent[0]!r}, which the model was fitted on.")
    if width not in (None, len(columns)):
        raise ValueError(f"X has {len(columns)} columns; the model was fitted on {width}.")
    return [Input(str(each), 1, _type_of(X[each], each)) for each in columns]


def _type_of(column, name) -> str | None:
    """INT64, BOOL or STRING; None for floating point, and for integers or booleans with missing values."""
    values = np.asarray(column)
    if values.dtype.kind in "OUT":
        values = np.array([each for each in values.tolist() if not is_missing(each)])
    kinds = {"f": None, "i": "INT64", "u": "INT64", "b": "BOOL", "U": "STRING"}
    if values.dtype.kind not in kinds:
        raise TypeError(f"X: column {name!r} has dtype {values.dtype}; ONNX supports numbers, booleans and strings.")
    has_gaps = len(values) < len(column)
    return None if has_gaps and values.dtype.kind in "iub" else kinds[values.dtype.kind]


#: Version of the operators for categories.
ML_OPSET = 3


def inputs_of_mixed(classifier: Any, X: Any, name: str) -> list[Input]:
    """One input per column; numbers in an array or without an example are one input."""
    columns: MixedColumns = classifier.columns_
    names = getattr(classifier, "feature_names_in_", None)
    has_categories = any(isinstance(column, Category) for column in columns.columns)
    if not has_categories and (names is None or not hasattr(X, "columns")):
        return [Input(name, len(columns.columns))]
    names = [f"{name}{j}" for j in range(len(columns.columns))] if names is None else names
    return [
        Input(str(each), 1, "STRING" if isinstance(column, Category) else None)
        for each, column in zip(names, columns.columns)
    ]


def encoded(graph: Graph, given: Sequence[Input], columns: MixedColumns) -> Value:
    """The matrix that the kernel compares: ``MixedColumns.__call__``."""
    if len(given) == 1 and len(columns.columns) > 1:
        table = graph.value(given[0].name).cast("DOUBLE")
        values = [table.columns(j, j + 1) for j in range(len(columns.columns))]
    else:
        values = [graph.value(each.name) for each in given]
    parts = [
        _codes(graph, value, column) if isinstance(column, Category) else _numbers(value.cast("DOUBLE"), column)
        for value, column in zip(values, columns.columns)
    ]
    return concatenated(parts)


def _numbers(value: Value, column: Number) -> Value:
    """Numbers with the centre where one is missing, and which are."""
    missing = value.graph.node("IsNaN", value)
    filled = missing.where(column.center, value)
    return filled.joined(missing.cast("DOUBLE")) if column.has_gaps else filled


def _codes(graph: Graph, value: Value, column: Category) -> Value:
    """The code of each level, or which level it is.

    ONNX has no missing strings: an empty one takes their place, unless it is a level.
    """
    graph.domains.setdefault("ai.onnx.ml", ML_OPSET)
    codes = {"": column.missing} | column.codes
    found = graph.node(
        "LabelEncoder",
        value,
        domain="ai.onnx.ml",
        keys_strings=list(codes),
        values_int64s=np.array(list(codes.values()), dtype=np.int64).tolist(),
        default_int64=UNSEEN,
    )
    found = found.cast("DOUBLE")
    return found.equals(np.array([column.marked])).cast("DOUBLE") if column.marked else found
