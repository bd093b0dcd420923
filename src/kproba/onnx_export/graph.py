"""ONNX graphs written like NumPy code: values with overloaded operators that append nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..messages import needed


def library(name: str) -> Any:
    """A module of the extra ``kproba[onnx]``."""
    return needed(name, f"to_onnx needs {name.split('.')[0]}", "onnx")


class Graph:
    """Nodes and constants of a graph under construction. All its numbers are float64."""

    def __init__(self, opset: int, prefix: str = "kproba"):
        self.opset, self.prefix = opset, prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        #: functions that nodes call, and the opset version of each operator domain
        self.functions: list[Any] = []
        self.domains = {"": opset}
        self._n_names = 0

    def value(self, name: str) -> Value:
        """An existing value with this name."""
        return Value(self, name)

    def constant(self, array) -> Value:
        """An array stored in the graph."""
        name = self._new_name("constant")
        self.constants.append(library("onnx.numpy_helper").from_array(np.asarray(array, order="C"), name))
        return Value(self, name)

    def strings(self, words) -> Value:
        """A vector of strings stored in the graph."""
        name, onnx = self._new_name("constant"), library("onnx")
        encoded = [word.encode() for word in words]
        self.constants.append(onnx.helper.make_tensor(name, onnx.TensorProto.STRING, [len(encoded)], encoded))
        return Value(self, name)

    def node(self, operator: str, *inputs, output: str | None = None, **attributes) -> Value:
        """The output of an operator; inputs that are numbers or arrays become constants."""
        names = [(each if isinstance(each, Value) else self.constant(each)).name for each in inputs]
        output = output or self._new_name(operator.lower())
        node = library("onnx.helper").make_node(operator, names, [output], name=f"{output}/node", **attributes)
        self.nodes.append(node)
        return Value(self, output)

    def for_each_row(self, rows: Value, n_out: int, body: Callable[[Value], Value]) -> Value:
        """Compute a vector for each row in a Loop, so that temporary memory does not grow with the number of rows.

        A Scan would be shorter, but in onnxruntime it fails on empty input.
        """
        helper, types = library("onnx.helper"), library("onnx").TensorProto
        info = helper.make_tensor_value_info
        inner = Graph(self.opset, self._new_name("row"))
        number, on, still = (inner.value(f"{inner.prefix}/{name}") for name in ("number", "on", "still"))
        result = body(number.taken_from(rows))
        inner.node("Identity", on, output=still.name)
        inputs = [info(number.name, types.INT64, []), info(on.name, types.BOOL, [])]
        outputs = [info(still.name, types.BOOL, []), info(result.name, types.DOUBLE, [n_out])]
        graph = helper.make_graph(inner.nodes, inner.prefix, inputs, outputs, inner.constants)
        n_rows = self.node("Gather", self.node("Shape", rows), np.array(0))
        return self.node("Loop", n_rows, np.array(True), body=graph)

    def _new_name(self, kind: str) -> str:
        self._n_names += 1
        return f"{self.prefix}/{kind}{self._n_names}"


def _unary(operator: str) -> Callable[[Value], Value]:
    return lambda value: value._node(operator, value)


def _binary(operator: str, swapped: bool = False) -> Callable[[Value, Any], Value]:
    """A method of Value; other operands become float64 constants."""

    def method(self: Value, other: Any) -> Value:
        other = other if isinstance(other, Value) else _double(other)
        return self._node(operator, *((other, self) if swapped else (self, other)))

    return method


class Value:
    """A tensor of a graph, with NumPy's operators."""

    def __init__(self, graph: Graph, name: str):
        self.graph, self.name = graph, name

    def _node(self, operator: str, *inputs, **attributes) -> Value:
        return self.graph.node(operator, *inputs, **attributes)

    __add__, __radd__ = _binary("Add"), _binary("Add", swapped=True)
    __sub__, __rsub__ = _binary("Sub"), _binary("Sub", swapped=True)
    __mul__, __rmul__ = _binary("Mul"), _binary("Mul", swapped=True)
    __truediv__, __rtruediv__ = _binary("Div"), _binary("Div", swapped=True)
    __pow__, __matmul__, __gt__, __lt__ = map(_binary, ("Pow", "MatMul", "Greater", "Less"))
    equals, maximum, minimum = map(_binary, ("Equal", "Max", "Min"))
    exp, log, sqrt, abs = map(_unary, ("Exp", "Log", "Sqrt", "Abs"))

    def softmax(self) -> Value:
        return self._node("Softmax", self, axis=1)

    def sigmoid(self) -> Value:
        return 1.0 / ((self * -1.0).exp() + 1.0)

    def argmax(self) -> Value:
        """The index of the largest entry of each row, the first one of ties as in NumPy."""
        return self._node("ArgMax", self, axis=1, keepdims=0)

    def where(self, yes, no) -> Value:
        """``yes`` where this is true, ``no`` elsewhere."""
        return self._node("Where", self, *(each if isinstance(each, Value) else _double(each) for each in (yes, no)))

    def sum(self, axis: int = 1, keepdims: bool = True) -> Value:
        return self._node("ReduceSum", self, np.array([axis]), keepdims=int(keepdims))

    def max(self) -> Value:
        """The largest entry of each row (n, 1)."""
        if self.graph.opset < 18:
            return self._node("ReduceMax", self, axes=[1], keepdims=1)
        return self._node("ReduceMax", self, np.array([1]), keepdims=1)

    def columns(self, start: int, end: int) -> Value:
        return self._node("Slice", self, *(np.array([each]) for each in (start, end, 1)))

    def reshaped(self, *shape: int) -> Value:
        return self._node("Reshape", self, np.array(shape))

    def taken_from(self, values: Value) -> Value:
        """The entries of ``values`` at these indices."""
        return self._node("Gather", values, self)

    def taken_columns(self, columns: np.ndarray) -> Value:
        return self._node("Gather", self, columns.astype(np.int64), axis=1)

    def nonzero(self) -> Value:
        """The places where a vector is true."""
        return self._node("NonZero", self).reshaped(-1)

    def with_added(self, rows: Value, values: Value) -> Value:
        """A copy with ``values`` added to these rows."""
        return self._node("ScatterND", self, rows.reshaped(-1, 1), values, reduction="add")

    def joined(self, other: Value) -> Value:
        return concatenated([self, other])

    def product(self, matrix: np.ndarray) -> Value:
        """self·matrix, without a matrix product if there is one column.

        onnxruntime fuses a matrix product with a scalar factor before or after it, and rounds the factor to float32.
        The scaling of a single column is such a factor.
        """
        return self * matrix if len(matrix) == 1 else self @ matrix

    def squared_distances(self, Z: np.ndarray) -> Value:
        """``kernels.radial.squared_distances``, including its shift of the origin to the mean of the centres."""
        origin = Z.mean(axis=0)
        X, Z = self - origin, Z - origin
        right = np.column_stack([-2.0 * Z, np.ones(len(Z), Z.dtype)])
        return (X.joined((X * X).sum()) @ right.T + np.einsum("ij,ij->i", Z, Z)).maximum(0.0)

    def compared_with(self, Z: np.ndarray, compare: Callable[[Value, Value], Value]) -> Value:
        """Σ_j compare(x_j, z_j) (n, b), one row at a time: all rows at once would need n·b·d numbers."""
        b, d = Z.shape
        columns = np.asarray(Z.T, dtype=np.float64)

        def of_row(x: Value) -> Value:
            return compare(x.reshaped(d, 1), x.graph.constant(columns)).sum(axis=0, keepdims=False)

        return self.graph.for_each_row(self, b, of_row)

    def cast(self, dtype: str, output: str | None = None) -> Value:
        """Convert to a type, named as in ``onnx.TensorProto``."""
        to = getattr(library("onnx").TensorProto, dtype)
        return self._node("Cast", self, to=to, output=output)


def concatenated(parts: list[Value]) -> Value:
    """Concatenate columns."""
    return parts[0] if len(parts) == 1 else parts[0].graph.node("Concat", *parts, axis=1)


def _double(array) -> np.ndarray:
    return np.asarray(array, dtype=np.float64)
