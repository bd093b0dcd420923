"""Histogram kernels: χ² and intersection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from .base import Kernel
from .by_column import ByColumn
from .radial import DivergenceKernel, manhattan


def _dense(X) -> np.ndarray:
    """X as scikit-learn's compiled kernels need it: dense, C-contiguous and writable."""
    return X.toarray() if sparse.issparse(X) else np.require(X, requirements=["C", "W"])


def check_histograms(X, name: str) -> None:
    """Raise an error if X has negative values."""
    least = X.min() if X.shape[0] and X.shape[1] else 0.0
    if least < 0:
        raise ValueError(
            f"X has negative values (smallest: {least:g}); the {name} kernel compares histograms, whose bins must "
            "be at least 0."
        )


@dataclass(frozen=True)
class ChiSquared(DivergenceKernel):
    """exp(−D/2σ²) with D = Σ_j (x_j − z_j)²/(x_j + z_j), for histograms.

    >>> import numpy as np
    >>> ChiSquared(width=1.0)(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
    array([[1.    , 0.7165]])
    """

    width: Any = None
    name: ClassVar[str] = "chi-squared"
    compares: ClassVar[str] = "histograms"
    takes_scaling: ClassVar[bool] = False

    def against(self, Z):
        from sklearn.metrics.pairwise import additive_chi2_kernel  # slow to import, rarely needed

        check_histograms(Z, self.name)
        Z = _dense(Z)

        def write(X, out):
            check_histograms(X, self.name)
            np.negative(additive_chi2_kernel(_dense(X), Z), out=out)

        return write

    def onnx_scores(self, X, Z, coef):
        def compare(x, z):
            difference, total = x - z, x + z
            return difference * difference / total.maximum(np.finfo(np.float64).tiny)  # empty bins contribute nothing

        return (X.compared_with(Z, compare) * (-0.5 / self.width**2)).exp() @ coef

    def by_column(self, d):
        def of_column(j, x, z):
            divergence = (x - z) ** 2 / np.maximum(x + z, np.finfo(np.float64).tiny)
            return np.exp(divergence * (-0.5 / self.width**2))

        return (ByColumn("product", of_column),)


@dataclass(frozen=True)
class Intersection(Kernel):
    """Σ_j min(x_j, z_j), the overlap of two histograms. This kernel has no width.

    >>> import numpy as np
    >>> Intersection()(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5], [1.0, 0.0]]))
    array([[1. , 0.5]])
    """

    name: ClassVar[str] = "intersection"
    compares: ClassVar[str] = "histograms"
    takes_scaling: ClassVar[bool] = False
    runs_on_devices: ClassVar[bool] = False

    def against(self, Z):
        """``½(|x|₁ + |z|₁ − |x − z|₁)``."""
        check_histograms(Z, self.name)
        write_distances, size = manhattan(Z), _sums(Z)

        def write(X, out):
            check_histograms(X, self.name)
            write_distances(X, out)
            np.subtract(_sums(X)[:, None] + size, out, out=out)
            out *= 0.5

        return write

    def onnx_scores(self, X, Z, coef):
        return X.compared_with(Z, lambda x, z: x.minimum(z)) @ coef

    def by_column(self, d):
        return (ByColumn("sum", lambda j, x, z: np.minimum(x, z)),)


def _sums(X) -> np.ndarray:
    return np.asarray(X.sum(axis=1)).ravel()
