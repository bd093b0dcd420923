"""Convert the pipeline steps before the classifier with skl2onnx."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .graph import Graph, Value, concatenated, library
from .inputs import Input

_PREFIX = "steps/"


def after_steps(graph: Graph, steps: Sequence[Any], given: Sequence[Input], dtype: str) -> Value:
    """The input of the classifier in float64."""
    from sklearn.compose import ColumnTransformer  # slow to import and rarely needed

    if not steps:
        if _join(given).type == "STRING":
            raise TypeError(
                f"X: column {given[0].name!r} contains strings, and no step before the classifier encodes them."
            )
        return _joined(graph, given, "DOUBLE")
    # a ColumnTransformer needs separate columns; for other steps skl2onnx would join the columns in float32
    apart = len(given) == 1 or isinstance(steps[0], ColumnTransformer)
    wanted = given if apart else [_join(given)]
    model, kind = _converted(steps, wanted, graph.opset, dtype)
    part = library("onnx.compose").add_prefix(model, _PREFIX, rename_functions=False)
    for each, inside in zip(wanted, part.graph.input, strict=True):  # by position: skl2onnx renames inputs with spaces
        value = _typed(graph, each, kind) if apart else _joined(graph, given, kind)
        graph.node("Identity", value, output=inside.name)
    graph.nodes += part.graph.node
    graph.constants += part.graph.initializer
    graph.functions += part.functions
    # skl2onnx declares the lowest version that works, but creates nodes for the version requested
    graph.domains = {each.domain: each.version for each in part.opset_import} | graph.domains
    return graph.value(part.graph.output[0].name).cast("DOUBLE")


def _typed(graph: Graph, given: Input, kind: str) -> Value:
    value = graph.value(given.name)
    return value if given.type == "STRING" else value.cast(kind)


def _joined(graph: Graph, given: Sequence[Input], kind: str) -> Value:
    """All inputs concatenated."""
    _join(given)
    return concatenated([_typed(graph, each, kind) for each in given])


def _join(given: Sequence[Input]) -> Input:
    """The input that results from concatenating all of them."""
    texts = [each.name for each in given if each.type == "STRING"]
    if texts and len(texts) < len(given):
        raise TypeError(
            f"X: column {texts[0]!r} contains strings and others numbers; use a ColumnTransformer as the first step "
            "to treat them separately."
        )
    return Input("rows", sum(each.width for each in given), "STRING" if texts else None)


def _converted(steps, given: Sequence[Input], opset: int, dtype: str) -> tuple[Any, str]:
    """The converted steps and the type of their numbers: float64, or float32 if float64 is not supported."""
    try:
        model = _convert(steps, given, opset, "DOUBLE")
        if dtype == "float64":
            _refuse_float32(model)
        return model, "DOUBLE"
    except ImportError:
        raise
    except Exception as error:  # converters of skl2onnx raise all kinds of errors
        if dtype == "float32":
            try:
                return _convert(steps, given, opset, "FLOAT"), "FLOAT"
            except Exception:
                pass  # the first error is more informative
        names = ", ".join(type(each).__name__ for each in steps)
        raise ValueError(
            f"model: skl2onnx cannot convert the steps before the classifier ({names}) to {dtype}: {error} Use other "
            f"steps{' or dtype=float32' if dtype == 'float64' else ''}, or convert the classifier alone."
        ) from error


def _convert(steps, given: Sequence[Input], opset: int, kind: str):
    from sklearn.impute import SimpleImputer  # slow to import and rarely needed

    types = library("skl2onnx.common.data_types")
    number = {"DOUBLE": types.DoubleTensorType, "FLOAT": types.FloatTensorType}[kind]
    model = library("skl2onnx").convert_sklearn(
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
        raise ValueError(f"they have {len(model.graph.output)} outputs, but the classifier takes one.")
    library("onnx.shape_inference").infer_shapes(model, check_type=True)  # fails if types were mixed
    return model


def _refuse_float32(model) -> None:
    """Refuse steps that compute in float32; one-hot encoders may, because 0 and 1 are exact."""
    types = library("onnx").TensorProto
    graph = library("onnx.shape_inference").infer_shapes(model).graph
    known = {each.name: each.type.tensor_type.elem_type for each in (*graph.input, *graph.value_info, *graph.output)}
    for node in graph.node:
        narrows = any(known.get(each) == types.DOUBLE for each in node.input) and any(
            known.get(each) == types.FLOAT for each in node.output
        )
        if node.op_type in ("FeatureVectorizer", "Scaler") or (narrows and node.op_type != "OneHotEncoder"):
            raise ValueError(f"the operator {node.op_type} computes in float32.")


def _convert_imputer(scope, operator, container) -> None:
    """Convert a numeric SimpleImputer to basic operators, because ONNX's own Imputer only supports float32."""
    types = library("skl2onnx.common.data_types")
    if isinstance(operator.inputs[0].type, types.StringTensorType):
        library("skl2onnx.operator_converters.imputer_op").convert_sklearn_imputer(scope, operator, container)
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
    """Indices of the columns that are kept (those with a fill value) and of those with a missing indicator."""
    kept = np.flatnonzero(~np.isnan(np.asarray(imputer.statistics_, dtype=np.float64)))
    return kept, imputer.indicator_.features_ if imputer.add_indicator else np.array([], dtype=np.int64)


def _imputed_shape(operator) -> None:
    """Shape of an imputer's output; skl2onnx does not support indicators and dropped columns."""
    types = library("skl2onnx.common.data_types")
    given, output = operator.inputs[0], operator.outputs[0]
    if isinstance(given.type, types.StringTensorType):
        if operator.raw_operator.add_indicator:
            raise ValueError("SimpleImputer of strings with add_indicator=True is not supported.")
        n_columns = sum(each.type.shape[1] for each in operator.inputs)
    else:
        n_columns = sum(map(len, _imputed_columns(operator.raw_operator)))
    output.type = type(given.type)([given.get_first_dimension(), n_columns])
