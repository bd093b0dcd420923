"""Types of what users pass, for annotations of their own code too, as in :mod:`numpy.typing`.

Names are listed so that editors can complete them, beside ``str``, because the items of a list of names are plain
strings to a type checker. ``fit`` refuses names that are not known and suggests the one you may mean.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import metaestimators

from .kernels import Kernel
from .search.widths import TimesMedian

__all__ = [
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

#: Arrays, sparse matrices, frames of pandas, polars or Dask, tensors, lists of what the kernel compares, sources of
#: rows: they have no type in common.
Inputs: TypeAlias = Any
#: Labels, or a matrix of tags: whatever holds one or several values a row.
Targets: TypeAlias = Any

KernelLike: TypeAlias = (
    Literal[
        "auto",
        "gaussian",
        "laplacian",
        "matern12",
        "matern32",
        "matern52",
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
RidgeLike: TypeAlias = Literal["auto"] | str | _Numbers
CentersLike: TypeAlias = Literal["auto", "all", "class"] | str | tuple[str, int] | int | ArrayLike | Inputs
LinkName: TypeAlias = Literal["auto", "softmax", "clip", "clip-parameters", "none"] | str
ScalingName: TypeAlias = Literal["auto", "robust", "standard"] | str | None
#: A name, or PyTorch's object of a device.
DeviceLike: TypeAlias = Literal["cpu", "cuda"] | str | Any | None
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | str | None
RandomState: TypeAlias = int | np.integer[Any] | np.random.RandomState | None
PathLike: TypeAlias = str | os.PathLike[str]

Method = TypeVar("Method", bound=Callable[..., Any])


def available_if(check: Callable[[Any], Any]) -> Callable[[Method], Method]:
    """scikit-learn's ``available_if``, which keeps the signature of the method that it decorates."""
    return metaestimators.available_if(check)
