"""Inner-product kernels: linear and polynomial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .base import Kernel, dot
from .by_column import ByColumn


class DotProduct(Kernel):
    """A function of x·z."""

    def against(self, Z):
        return lambda X, out: np.copyto(out, dot(X, Z), casting="same_kind")

    def pairs_on_device(self, device, X, Z):
        return device.product(X, Z.mT)


@dataclass(frozen=True)
class Linear(DotProduct):
    """x·z. This kernel has no width.

    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    name: ClassVar[str] = "linear"

    def onnx_scores(self, X, Z, coef):
        """A linear model has one coefficient per column and needs no centres."""
        return X.product(Z.astype(np.float64).T @ coef)

    def by_column(self, d):
        return (ByColumn("sum", lambda j, x, z: x * z),)


@dataclass(frozen=True)
class Polynomial(DotProduct):
    """(x·z/σ² + coef0)^degree.

    >>> import numpy as np
    >>> Polynomial(width=1.0, degree=2)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    width: Any = None
    degree: int = 3
    coef0: float = 1.0
    name: ClassVar[str] = "polynomial"
    has_width: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        if int(self.degree) != self.degree or self.degree < 1:
            raise ValueError(f"degree must be an int in the range [1, inf), got {self.degree!r}.")

    def of_pairs(self, pairs):
        pairs *= 1.0 / self.width**2
        pairs += self.coef0
        pairs **= self.degree
        return pairs

    def width_unit(self, pairs):
        """The square root of the median ``|x·z|``, so that scaled products are of order one."""
        positive = np.abs(pairs[pairs != 0])
        return float(np.sqrt(np.median(positive))) if positive.size else 1.0

    def onnx_scores(self, X, Z, coef):
        # divide the centres by the width: onnxruntime rounds a scalar factor next to a matrix product
        return (X.product((Z.astype(np.float64) / self.width**2).T) + self.coef0) ** float(self.degree) @ coef
