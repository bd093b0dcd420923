"""Steps of a pipeline before the classifier, converted by skl2onnx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .extra import needed
from .graph import Graph, Value, concatenated
from .inputs import Input

_PREFIX = "steps/"


def after_steps(graph: Graph, steps: Sequence[Any], given: Sequence[Input], dtype: str) -> Value:
    """Rows as the classifier sees them, in float64."""
    from sklearn.compose import ColumnTransformer  # slow to import, seldom needed

    if not steps:
        if _join(given).type == "STRING":
            raise TypeError(f"X: column {given[0].name!r} holds text, and no step before the classifier encodes it.")
        return _joined(graph, given, "DOUBLE")
    # what chooses columns by name wants them one by one; for other steps skl2onnx would join them in float32
    apart = len(given) == 1 or isinstance(steps[0], ColumnTransformer)
    wanted = given if apart else [_join(given)]
    model, kind = _converted(steps, wanted, graph.opset, dtype)
    part = needed("onnx.compose").add_prefix(model, _PREFIX, rename_functions=False)
    for each, inside in zip(wanted, part.graph.input, strict=True):  # by place: skl2onnx changes names with spaces
        value = _typed(graph, each, kind) if apart else _joined(graph, given, kind)
        graph.node("Identity", value, output=inside.name)
    graph.nodes += part.graph.node
    graph.constants += part.graph.initializer
    graph.functions += part.functions
    # skl2onnx notes the lowest version that would do, and makes nodes that suit the one it was asked for
    graph.domains = {each.domain: each.version for each in part.opset_import} | graph.domains
    return graph.value(part.graph.output[0].name).cast("DOUBLE")


def _typed(graph: Graph, given: Input, kind: str) -> Value:
    value = graph.value(given.name)
    return value if given.type == "STRING" else value.cast(kind)


def _joined(graph: Graph, given: Sequence[Input], kind: str) -> Value:
    """All inputs side by side."""
    _join(given)
    return concatenated([_typed(graph, each, kind) for each in given])


def _join(given: Sequence[Input]) -> Input:
    """The input that all of them make side by side."""
    texts = [each.name for each in given if each.type == "STRING"]
    if texts and len(texts) < len(given):
        raise TypeError(
            f"X: column {texts[0]!r} holds text and others hold numbers; a ColumnTransformer as first step treats them "
            "apart."
        )
    return Input("rows", sum(each.width for each in given), "STRING" if texts else None)


def _converted(steps, given: Sequence[Input], opset: int, dtype: str) -> tuple[Any, str]:
    """The model of the steps and the type of its numbers: float64, or float32 where that alone can be had."""
    try:
        model = _convert(steps, given, opset, "DOUBLE")
        if dtype == "float64":
            _refuse_float32(model)
        return model, "DOUBLE"
    except ImportError:
        raise
    except Exception as error:  # skl2onnx raises whatever its converters run into
        if dtype == "float32":
            try:
                return _convert(steps, given, opset, "FLOAT"), "FLOAT"
            except Exception:
                pass  # the first error says more
        names = ", ".join(type(each).__name__ for each in steps)
        raise ValueError(
            f"model: skl2onnx does not convert its first steps ({names}) to a {dtype} graph: {error} Other steps may "
            f"do{', or dtype=float32' if dtype == 'float64' else ''}; the classifier can be converted alone."
        ) from error


def _convert(steps, given: Sequence[Input], opset: int, kind: str):
    from sklearn.impute import SimpleImputer  # slow to import, seldom needed

    types = needed("skl2onnx.common.data_types")
    number = {"DOUBLE": types.DoubleTensorType, "FLOAT": types.FloatTensorType}[kind]
    model = needed("skl2onnx").convert_sklearn(
        Pipeline([(f"step{i}", step) for i, step in enumerate(steps)]),
        initial_types=[
            (each.name, (types.StringTensorType if each.type == "STRING" else number)([None, each.width]))
            for each in given
        ],
        target_opset=opset,
        custom_conversion_functions={SimpleImputer: _convert_imputer},
        custom_shape_calculators={SimpleImputer: _imputed_shape},
    )
    if len(model.graph.output) != 1:
        raise ValueError(f"they have {len(model.graph.output)} outputs, and the classifier takes one table.")
    needed("onnx.shape_inference").infer_shapes(model, check_type=True)  # numbers of two types may have been mixed
    return model


def _refuse_float32(model) -> None:
    """Refuse steps that go through float32 on their way; of zeros and ones that is no loss."""
    types = needed("onnx").TensorProto
    graph = needed("onnx.shape_inference").infer_shapes(model).graph
    known = {each.name: each.type.tensor_type.elem_type for each in (*graph.input, *graph.value_info, *graph.output)}
    for node in graph.node:
        narrows = any(known.get(each) == types.DOUBLE for each in node.input) and any(
            known.get(each) == types.FLOAT for each in node.output
        )
        if node.op_type in ("FeatureVectorizer", "Scaler") or (narrows and node.op_type != "OneHotEncoder"):
            raise ValueError(f"the operator {node.op_type} computes in float32.")


def _convert_imputer(scope, operator, container) -> None:
    """SimpleImputer of numbers by plain operators: the one of ONNX, which skl2onnx takes, knows float32 alone."""
    types = needed("skl2onnx.common.data_types")
    if isinstance(operator.inputs[0].type, types.StringTensorType):
        needed("skl2onnx.operator_converters.imputer_op").convert_sklearn_imputer(scope, operator, container)
        return
    imputer, is_double = operator.raw_operator, isinstance(operator.inputs[0].type, types.DoubleTensorType)
    fill = np.asarray(imputer.statistics_, dtype=np.float64 if is_double else np.float32)
    graph = Graph(container.target_opset, scope.get_unique_variable_name("imputer"))
    X = concatenated([graph.value(each.full_name) for each in operator.inputs])
    missing = np.asarray(imputer.missing_values, dtype=fill.dtype)
    absent = graph.node("IsNaN", X) if np.isnan(missing) else graph.node("Equal", X, missing)
    kept, marked = _imputed_columns(imputer)
    parts = [graph.node("Gather", graph.node("Where", absent, fill, X), kept, axis=1)]
    if len(marked):
        flags = graph.node("Gather", absent, marked, axis=1)
        parts.append(flags.cast("DOUBLE" if is_double else "FLOAT"))
    graph.node("Identity", concatenated(parts), output=operator.outputs[0].full_name)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)


def _imputed_columns(imputer) -> tuple[np.ndarray, np.ndarray]:
    """Columns that stay, because there was a value to fill their gaps with, and those whose gaps are marked."""
    kept = np.flatnonzero(~np.isnan(np.asarray(imputer.statistics_, dtype=np.float64)))
    return kept, imputer.indicator_.features_ if imputer.add_indicator else np.array([], dtype=np.int64)


def _imputed_shape(operator) -> None:
    """As many columns as the imputer gives; skl2onnx itself knows none that marks gaps or leaves columns out."""
    types = needed("skl2onnx.common.data_types")
    given, output = operator.inputs[0], operator.outputs[0]
    if isinstance(given.type, types.StringTensorType):
        if operator.raw_operator.add_indicator:
            raise ValueError("SimpleImputer of text with add_indicator=True has no graph.")
        n_columns = sum(each.type.shape[1] for each in operator.inputs)
    else:
        n_columns = sum(map(len, _imputed_columns(operator.raw_operator)))
    output.type = type(given.type)([given.get_first_dimension(), n_columns])
