"""Scaling, kernel and link of a model as a graph. Kernels and links write their own nodes."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..data.scaling import SQUASH_AT, Scaling
from ..kernels import KERNELS, Kernel
from ..links import Link, PerTag
from .graph import Value


def scaled(X: Value, scaling: Scaling | None) -> Value:
    """``Scaling.__call__``."""
    if scaling is None:
        return X
    Z = (X - scaling.center) / scaling.scale
    if scaling.squashed.any():
        bend = (Z / SQUASH_AT) * scaling.squashed
        Z = Z / (bend * bend + 1.0).sqrt()
    return Z * scaling.relevance


def scores(X: Value, kernel: Kernel, centers, coef: np.ndarray, intercept) -> Value:
    """``Basis.scores`` plus the intercept."""
    Z = centers.toarray() if sparse.issparse(centers) else np.asarray(centers)
    return kernel.onnx_scores(X, Z, coef) + intercept


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
