"""Convert a fitted classifier, or a pipeline that ends in one, to an ONNX model."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..basis.basis import Basis
from ..basis.local_basis import LocalBasis
from ..basis.regions import Regions, smooth_step
from ..data.scaling import SQUASH_AT, Scaling
from ..estimators._base import KernelClassifier
from ..kernels import KERNELS, Kernel
from ..links import Link, PerTag
from ..typing import Inputs
from ..validation import check_choice
from .graph import Graph, Value, library
from .inputs import Input, encoded, inputs_of, inputs_of_mixed
from .steps import after_steps

if TYPE_CHECKING:
    import onnx

#: Default and lowest opset; onnxruntime supports the default since 1.14.
OPSET, LOWEST_OPSET = 18, 13
#: The first opset in which a tensor can be added to some rows of another one.
ADDS_TO_ROWS = 16
OUTPUTS = ("label", "probabilities")
_TYPES = {"float32": "FLOAT", "float64": "DOUBLE"}


def to_onnx(
    model: Any,
    X: Inputs = None,
    *,
    dtype: Literal["float32", "float64"] | str = "float32",
    input_name: str = "X",
    target_opset: int | None = None,
) -> onnx.ModelProto:
    """Convert a fitted classifier, alone or at the end of a pipeline, to an ONNX model.

    The model has two outputs: ``label``, which is what ``predict`` returns, and ``probabilities``, which is what
    ``predict_proba`` returns. Both are plain tensors for any number of rows. Intermediate results are float64 whatever
    ``dtype`` is, because coefficients may be large and of both signs, so that float32 sums would lose most digits.

    Parameters
    ----------
    model : fitted classifier of kproba, or a pipeline that ends in one
        skl2onnx converts the earlier steps of a pipeline. For a search such as ``GridSearchCV``, its best estimator is
        converted.
    X : array or frame, optional
        A few example rows. A data frame gives one input per column, with its name and type; an array or None gives one
        input for all columns. Pipelines that were fitted on a data frame need X. A classifier that was fitted on a
        table with categories always has one input per column: strings for categories, where an empty string is a
        missing value, and numbers otherwise, where NaN is one.
    dtype : {"float32", "float64"}, default="float32"
        Type of floating-point inputs and of the probabilities.
    input_name : str, default="X"
        Name of the input if there is only one.
    target_opset : int, optional
        Version of the ONNX operators, 18 by default.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> from kproba import LSPC, to_onnx
    >>> X, y = load_iris(return_X_y=True, as_frame=False)
    >>> clf = LSPC(random_state=0).fit(X, y)
    >>> graph = to_onnx(clf).SerializeToString()      # write these bytes to iris.onnx
    >>> session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    >>> label, proba = session.run(None, {"X": X.astype(np.float32)})
    >>> print(label[70], proba[70].round(2), clf.predict_proba(X[70:71])[0].round(2))
    1 [0.01 0.5  0.49] [0.01 0.5  0.49]
    """
    dtype, opset = _check_options(dtype, input_name, target_opset)
    *steps, classifier = _steps_of(model)
    _check_classifier(classifier)
    graph, is_mixed = Graph(opset), classifier.columns_ is not None and not steps
    if is_mixed:
        given = inputs_of_mixed(classifier, X, input_name)
    else:
        given = inputs_of([*steps, classifier][0], X, input_name, has_steps=bool(steps))
    _check_names(given)
    if is_mixed:
        rows = encoded(graph, given, classifier.columns_)
    else:
        rows = _encoded_after(graph, after_steps(graph, steps, given, dtype), classifier)
    label_type = _write_outputs(rows, classifier, dtype)
    return _make_model(graph, given, dtype, classifier, label_type)


def _encoded_after(graph: Graph, rows: Value, classifier) -> Value:
    """The input of the kernel after other steps, which may leave gaps in numbers."""
    columns = classifier.columns_
    if columns is None:
        return rows
    if columns.categorical:
        raise TypeError(
            "model: a pipeline whose classifier compares categories cannot be converted to ONNX; convert the "
            "classifier alone, fitted on the table itself."
        )
    return encoded(graph, [Input(rows.name, len(columns.columns))], columns)


def _check_options(dtype, input_name, target_opset) -> tuple[str, int]:
    dtype = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    check_choice("dtype", dtype, tuple(_TYPES))
    if not isinstance(input_name, str) or not input_name:
        raise TypeError(f"input_name={input_name!r} must be a non-empty string.")
    newest = library("onnx").defs.onnx_opset_version()
    opset = OPSET if target_opset is None else target_opset
    if isinstance(opset, bool) or not isinstance(opset, int | np.integer) or not LOWEST_OPSET <= opset <= newest:
        raise ValueError(
            f"target_opset must be None or an int in the range [{LOWEST_OPSET}, {newest}], whose end is the newest "
            f"opset of the installed onnx, got {target_opset!r}."
        )
    return dtype, int(opset)


def _steps_of(model) -> list[Any]:
    """The steps of a model as a flat list without passthrough steps; searches are replaced by their best estimator."""
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, Pipeline):
        return [model]
    steps = [step for _, step in model.steps if step is not None and not isinstance(step, str)]
    if len(steps) == 0:
        raise TypeError("model is a pipeline without steps; its last step must be a classifier of kproba.")
    return [part for step in steps for part in _steps_of(step)]


def _check_classifier(classifier) -> None:
    if not isinstance(classifier, KernelClassifier):
        kind = type(classifier).__name__
        if isinstance(classifier, BaseEstimator):
            kind += ", which skl2onnx.to_onnx may convert"
        raise TypeError(f"model must be a classifier of kproba or a pipeline that ends in one, got {kind}.")
    check_is_fitted(classifier)
    if not classifier.link_.gives_probabilities:
        raise ValueError(f"model has link={classifier.link!r}, which gives no probabilities; fit it with link='auto'.")
    _check_parts(classifier.basis_.kernel, classifier.link_)


def _check_names(given: Sequence[Input]) -> None:
    for each in given:
        if each.name in OUTPUTS:
            raise ValueError(f"An input is named {each.name!r}, which is the name of an output; rename it.")


def _scaled(X: Value, scaling: Scaling | None) -> Value:
    """``Scaling.__call__``."""
    if scaling is None:
        return X
    Z = (X - scaling.center) / scaling.scale
    if scaling.squashed.any():
        bend = (Z / SQUASH_AT) * scaling.squashed
        Z = Z / (bend * bend + 1.0).sqrt()
    return _curved(Z, scaling) * scaling.relevance


def _curved(Z: Value, scaling: Scaling) -> Value:
    """``Curves.apply``."""
    if scaling.curves is None:
        return Z
    is_curved, start, *pieces = scaling.curves.pieces(len(scaling.center))
    parts = [(Z.maximum(low).minimum(high) - low) * slope for low, high, slope in zip(*pieces)]
    return Z.graph.constant(is_curved).where(reduce(operator.add, parts, Z * 0.0 + start), Z)


def _scores(X: Value, basis: Basis, coef: np.ndarray) -> Value:
    """``Basis.scores``."""
    if isinstance(basis, LocalBasis):
        return _local_scores(X, basis, coef)
    Z: Any = basis.centers
    return basis.kernel.onnx_scores(X, Z.toarray() if sparse.issparse(Z) else np.asarray(Z), coef)


def _local_scores(X: Value, basis: LocalBasis, coef: np.ndarray) -> Value:
    """``LocalBasis.scores``: every region sees its own rows only, if the opset can add to some rows of a tensor."""
    total = X.columns(0, 1) * np.zeros((1, coef.shape[1]))
    for own, path in zip(basis.slices(), basis.regions.paths()):
        if not path:
            return basis.kernel.onnx_scores(X, basis.centers[own], coef[own])
        gate = reduce(operator.mul, (_share(X, basis.regions, *step) for step in path))
        if X.graph.opset < ADDS_TO_ROWS:
            total = total + basis.kernel.onnx_scores(X, basis.centers[own], coef[own]) * gate
        else:
            where = (gate.reshaped(-1) > 0.0).nonzero()
            part = basis.kernel.onnx_scores(where.taken_from(X), basis.centers[own], coef[own])
            total = total.with_added(where, part * where.taken_from(gate))
    return total


def _share(X: Value, regions: Regions, split: int, side: int) -> Value:
    """The weight (n, 1) of a child of a split."""
    low, high = regions.low[split], regions.high[split]
    values = X.taken_columns(regions.column[[split]]).maximum(low).minimum(high)
    second = smooth_step((values - low) / (high - low))
    return second if side else 1.0 - second


def _check_parts(kernel: Kernel, link: Link) -> None:
    """Refuse kernels and links that cannot be converted.

    A subclass may compute something else than its base class, so it has to define the method itself.
    """
    if "onnx_scores" not in vars(type(kernel)):
        known = ", ".join(repr(name) for name, each in KERNELS.items() if "onnx_scores" in vars(type(each)))
        raise TypeError(
            f"kernel: the {kernel.name} kernel ({type(kernel).__name__}) cannot be converted to ONNX; fit the model "
            f"with one of {known}, give your kernel a method onnx_scores, or predict in Python."
        )
    for each in (link, link.link) if isinstance(link, PerTag) else (link,):
        if "onnx_probabilities" not in vars(type(each)):
            raise TypeError(
                f"link: {type(each).__name__} cannot be converted to ONNX; give your link a method onnx_probabilities, "
                "or predict in Python."
            )


def _write_outputs(rows: Value, clf: KernelClassifier, dtype: str) -> str:
    """Write the nodes from the input of the classifier to the two outputs, and return the type of the labels."""
    S = _scores(_scaled(rows, clf.scaling_), clf.basis_, clf.coef_) + clf.intercept_
    proba = clf.link_.onnx_probabilities(S)
    proba.cast(_TYPES[dtype], output="probabilities")
    if clf._multilabel:
        (proba > 0.5).cast("INT64", output="label")
        return "INT64"
    label_type, classes = _class_values(rows.graph, clf.classes_)
    rows.graph.node("Gather", classes, proba.argmax(), output="label")
    return label_type


def _class_values(graph: Graph, classes: np.ndarray) -> tuple[str, Value]:
    """The type of the classes, and the classes as a constant."""
    if all(isinstance(each, str) for each in classes.tolist()):
        return "STRING", graph.strings(map(str, classes))
    kinds = {"b": ("BOOL", bool), "i": ("INT64", np.int64), "u": ("INT64", np.int64), "f": ("DOUBLE", np.float64)}
    if classes.dtype.kind not in kinds:
        raise TypeError(f"model has classes of type {classes.dtype}; ONNX supports numbers, booleans and strings.")
    name, kind = kinds[classes.dtype.kind]
    return name, graph.constant(classes.astype(kind))


def _make_model(graph: Graph, given: Sequence[Input], dtype: str, clf, label_type: str):
    """The ONNX model of a complete graph."""
    onnx = library("onnx")
    helper, types, n_outputs = onnx.helper, onnx.TensorProto, len(clf.classes_)
    info = helper.make_tensor_value_info
    inputs = [info(each.name, getattr(types, each.type or _TYPES[dtype]), ["n", each.width]) for each in given]
    outputs = [
        info("label", getattr(types, label_type), ["n", n_outputs][: 1 + clf._multilabel]),
        info("probabilities", getattr(types, _TYPES[dtype]), ["n", n_outputs]),
    ]
    body = helper.make_graph(graph.nodes, type(clf).__name__, inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid(domain, version) for domain, version in graph.domains.items()]
    from ..version import __version__

    notes = {"producer_name": "kproba", "producer_version": __version__}
    model = helper.make_model(body, opset_imports=opsets, functions=graph.functions, **notes)
    model.ir_version = helper.find_min_ir_version_for(opsets, ignore_unknown=True)  # so that older runtimes can read it
    onnx.checker.check_model(model)
    return model
