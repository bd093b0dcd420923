"""Tables with categories or missing values: one input per column, strings for categories and numbers otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.mixed import UNSEEN, Category, MixedColumns, Number
from .graph import Graph, Value, concatenated
from .inputs import Input

#: Version of the operators for categories.
ML_OPSET = 3


def inputs_of_mixed(classifier: Any, X: Any, name: str) -> list[Input]:
    """One input per column; numbers in an array or without an example are one input."""
    columns: MixedColumns = classifier.columns_
    names = getattr(classifier, "feature_names_in_", None)
    if not columns.categorical and (names is None or not hasattr(X, "columns")):
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
