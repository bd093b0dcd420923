"""Scaling, kernel and link of a model as a graph. Kernels and links write their own nodes."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from ..basis.basis import Basis
from ..basis.local_basis import LocalBasis
from ..basis.regions import Regions, smooth_step
from ..data.scaling import SQUASH_AT, Scaling
from ..kernels import KERNELS, Kernel
from ..links import Link, PerTag
from .graph import Value

#: The first opset in which a tensor can be added to some rows of another one.
ADDS_TO_ROWS = 16


def scaled(X: Value, scaling: Scaling | None) -> Value:
    """``Scaling.__call__``."""
    if scaling is None:
        return X
    Z = (X - scaling.center) / scaling.scale
    if scaling.squashed.any():
        bend = (Z / SQUASH_AT) * scaling.squashed
        Z = Z / (bend * bend + 1.0).sqrt()
    return Z * scaling.relevance


def scores(X: Value, basis: Basis, coef: np.ndarray) -> Value:
    """``Basis.scores``."""
    if isinstance(basis, LocalBasis):
        return local_scores(X, basis, coef)
    Z: Any = basis.centers
    return basis.kernel.onnx_scores(X, Z.toarray() if sparse.issparse(Z) else np.asarray(Z), coef)


def local_scores(X: Value, basis: LocalBasis, coef: np.ndarray) -> Value:
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


def check_parts(kernel: Kernel, link: Link) -> None:
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
