"""Inputs of a graph: one tensor with all columns, or one per column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.labels import is_missing


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
