"""What a graph is fed with: one tensor of all columns, or one a column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.labels import is_missing


class Input(NamedTuple):
    """An input of ``width`` columns. ``type`` is that of ``onnx.TensorProto``; None for floating numbers."""

    name: str
    width: int
    type: str | None = None


def inputs_of(model, X, name: str, has_steps: bool) -> list[Input]:
    """The inputs for rows such as X, where it is given."""
    columns = getattr(model, "feature_names_in_", None)
    if X is None:
        if has_steps and columns is not None:
            raise ValueError(
                "X is needed, for the pipeline was fitted on a frame: give some rows of it for one input a column, or "
                "an array for one input of all columns."
            )
        return [Input(name, int(model.n_features_in_))]
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        return _of_frame(X, X.columns if columns is None else columns, int(model.n_features_in_))
    width = np.shape(X)[1] if np.ndim(X) == 2 else None
    if width != model.n_features_in_:
        raise ValueError(f"X has shape {np.shape(X)}; the model was fitted on {model.n_features_in_} columns.")
    is_text = np.asarray(X).dtype.kind in "OU"
    return [Input(name, int(model.n_features_in_), "STRING" if is_text else None)]


def _of_frame(X, columns, n_columns: int) -> list[Input]:
    absent = [each for each in columns if each not in list(X.columns)]
    if absent:
        raise ValueError(f"X has no column {absent[0]!r}, which the model was fitted on.")
    if len(columns) != n_columns:
        raise ValueError(f"X has {len(columns)} columns; the model was fitted on {n_columns}.")
    return [Input(str(each), 1, _type_of(X[each], each)) for each in columns]


def _type_of(column, name) -> str | None:
    """INT64, BOOL or STRING; None for floating numbers, and for whole ones some of which are missing."""
    values = np.asarray(column)
    if values.dtype.kind in "OUT":
        values = np.array([each for each in values.tolist() if not is_missing(each)])
    kinds = {"f": None, "i": "INT64", "u": "INT64", "b": "BOOL", "U": "STRING"}
    if values.dtype.kind not in kinds:
        raise TypeError(f"X: column {name!r} holds {values.dtype} values; ONNX takes numbers, booleans and strings.")
    has_gaps = len(values) < len(column)
    return None if has_gaps and values.dtype.kind in "iub" else kinds[values.dtype.kind]
