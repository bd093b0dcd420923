"""Steps of a pipeline before the classifier, converted by skl2onnx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from .extra import needed
from .graph import Graph, Value, concatenated
from .inputs import Input

_PREFIX = "steps/"


def after_steps(graph: Graph, steps: Sequence[Any], given: Sequence[Input], dtype: str) -> tuple[Value, dict[str, int]]:
    """Rows as the classifier sees them, in float64, and the versions of the operators in use."""
    if not steps:
        texts = [each.name for each in given if each.type == "STRING"]
        if texts:
            raise TypeError(f"X: column {texts[0]!r} holds text, and no step of the model makes numbers of it.")
        return concatenated([graph.value(each.name).cast("DOUBLE") for each in given]), {"": graph.opset}
    converted, kind = _converted(steps, given, graph.opset, dtype)
    domains = {each.domain: each.version for each in converted.opset_import}
    graph.opset = domains[""]
    for each in given:
        value, inside = graph.value(each.name), _PREFIX + each.name
        graph.node("Identity", value, output=inside) if each.type == "STRING" else value.cast(kind, output=inside)
    part = needed("onnx.compose").add_prefix(converted, _PREFIX).graph
    graph.nodes += part.node
    graph.constants += part.initializer
    return graph.value(part.output[0].name).cast("DOUBLE"), domains


def _converted(steps, given: Sequence[Input], opset: int, dtype: str) -> tuple[Any, str]:
    """The model of the steps and the type of its numbers: float64, or float32 where that alone can be had."""
    try:
        return _convert(steps, given, opset, "DOUBLE"), "DOUBLE"
    except Exception as error:
        if dtype == "float32":
            try:
                return _convert(steps, given, opset, "FLOAT"), "FLOAT"
            except Exception:  # the first error says more
                pass
        names = ", ".join(type(each).__name__ for each in steps)
        raise ValueError(
            f"model: skl2onnx cannot convert the steps {names} for {dtype}: {error} Put another step in its place, or "
            "convert the classifier alone."
        ) from error


def _convert(steps, given: Sequence[Input], opset: int, kind: str):
    types = needed("skl2onnx.common.data_types")
    number = {"DOUBLE": types.DoubleTensorType, "FLOAT": types.FloatTensorType}[kind]
    pipeline = Pipeline([(f"step{i}", step) for i, step in enumerate(steps)])
    model = needed("skl2onnx").convert_sklearn(
        pipeline,
        initial_types=[
            (each.name, (types.StringTensorType if each.type == "STRING" else number)([None, each.width]))
            for each in given
        ],
        target_opset=opset,
        custom_conversion_functions={SimpleImputer: _convert_imputer},
    )
    if len(model.graph.output) != 1:
        raise ValueError(f"they have {len(model.graph.output)} outputs; the classifier takes one table.")
    onnx = needed("onnx")
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)  # skl2onnx may mix types of numbers
    return model


def _convert_imputer(scope, operator, container) -> None:
    """SimpleImputer of numbers by plain operators: the one of ONNX, which skl2onnx takes, knows float32 alone."""
    types = needed("skl2onnx.common.data_types")
    if isinstance(operator.inputs[0].type, types.StringTensorType):
        needed("skl2onnx.operator_converters.imputer_op").convert_sklearn_imputer(scope, operator, container)
        return
    imputer, is_double = operator.raw_operator, isinstance(operator.inputs[0].type, types.DoubleTensorType)
    fill = np.asarray(imputer.statistics_, dtype=np.float64 if is_double else np.float32)
    if imputer.add_indicator or np.isnan(fill).any():
        raise ValueError("SimpleImputer with add_indicator=True, or with a column of no values, is not supported.")
    graph = Graph(container.target_opset, scope.get_unique_variable_name("imputer"))
    X = concatenated([graph.value(each.full_name) for each in operator.inputs])
    missing = imputer.missing_values
    absent = graph.node("IsNaN", X) if missing is None or missing != missing else graph.node("Equal", X, fill.dtype.type(missing))
    graph.node("Where", absent, fill, X, output=operator.outputs[0].full_name)
    _add_to(container, graph)


def _add_to(container, graph: Graph) -> None:
    """Nodes and constants of a graph, given to skl2onnx."""
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
