"""Types of arguments, which you can use to annotate your own code, as in :mod:`numpy.typing`.

Valid strings are listed so that editors can complete them. ``str`` is allowed too, because a type checker infers plain
``str`` for the items of a list. ``fit`` raises an error for unknown strings and suggests the closest known one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import metaestimators

from .kernels import Kernel
from .links import Link
from .search.widths import TimesMedian

__all__ = [
    "CategoricalFeatures",
    "CentersLike",
    "ClassWeight",
    "DeviceLike",
    "Inputs",
    "KernelLike",
    "LinkName",
    "PathLike",
    "RandomState",
    "RidgeLike",
    "ScalingName",
    "Targets",
    "WidthLike",
]

#: Arrays, sparse matrices, data frames (pandas, polars, Dask), tensors, lists of objects that the kernel compares, and
#: sources of rows: these have no common type.
Inputs: TypeAlias = Any
#: Labels or a matrix of tags: any container with one or several values per row.
Targets: TypeAlias = Any

KernelLike: TypeAlias = (
    Literal[
        "auto",
        "gaussian",
        "laplacian",
        "matern12",
        "matern32",
        "matern52",
        "additive",
        "pairs",
        "linear",
        "polynomial",
        "precomputed",
        "chi2",
        "intersection",
        "hidden-markov",
        "alignment",
        "spectrum",
    ]
    | str
    | Kernel
    | Callable[[Any, Any], Any]
)
_Number: TypeAlias = float | np.floating[Any] | np.integer[Any]
_Numbers: TypeAlias = _Number | Sequence[float] | np.ndarray[Any, Any]
WidthLike: TypeAlias = Literal["auto", "median"] | str | _Numbers | TimesMedian
CategoricalFeatures: TypeAlias = Literal["from_dtype"] | str | ArrayLike | None
RidgeLike: TypeAlias = Literal["auto"] | str | _Numbers
CentersLike: TypeAlias = Literal["auto", "all", "local", "class"] | str | tuple[str, int] | int | ArrayLike | Inputs
LinkName: TypeAlias = Literal["auto", "softmax", "clip", "clip-parameters", "none"] | str | type[Link]
ScalingName: TypeAlias = Literal["auto", "robust", "quantile", "standard"] | str | None
#: A name or a ``torch.device``.
DeviceLike: TypeAlias = Literal["cpu", "cuda"] | str | Any | None
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | str | None
RandomState: TypeAlias = int | np.integer[Any] | np.random.RandomState | None
PathLike: TypeAlias = str | os.PathLike[str]

Method = TypeVar("Method", bound=Callable[..., Any])


def available_if(check: Callable[[Any], Any]) -> Callable[[Method], Method]:
    """scikit-learn's ``available_if``, typed to keep the signature of the decorated method."""
    return metaestimators.available_if(check)
