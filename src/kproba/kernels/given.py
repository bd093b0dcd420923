"""User-supplied kernels: a precomputed matrix or a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from ..data.items import Items, as_items, is_table
from .base import Kernel, n_rows, symmetrised


@dataclass(frozen=True, eq=False, repr=False)
class Precomputed(Kernel):
    """``X`` is the kernel matrix itself, with one column per training row. Centres are column indices.

    ``training`` is the square matrix of the training rows; it is available only during fit.
    """

    training: np.ndarray | None = None
    name: ClassVar[str] = "precomputed"
    compares: ClassVar[str] = "kernel matrices"
    is_definite = False
    runs_on_devices = False

    def evaluator(self, Z):
        return lambda X: X[:, Z]

    def __call__(self, X, Z, workers: int = 1):
        return X[:, Z]

    def gram(self, Z, workers: int = 1):
        if self.training is None:
            raise ValueError("The kernel matrix of the training rows is only available during fit.")
        return symmetrised(np.array(self.training[np.ix_(Z, Z)], dtype=np.float64))


@dataclass(frozen=True)
class FromCallable(Kernel):
    """A user function ``k(X, Z) -> (n, b)``; the shape and finiteness of its output are checked.

    If the data is not a numeric table, X and Z are lists of the objects you passed.

    >>> import numpy as np
    >>> FromCallable(lambda X, Z: X @ Z.T)(np.ones((2, 3)), np.ones((1, 3)))
    array([[3.],
           [3.]])
    """

    function: Callable
    name: ClassVar[str] = "callable"
    is_definite = False
    runs_on_devices = False

    def read(self, X) -> Items | None:
        return None if is_table(X) else as_items(X)

    def evaluator(self, Z):
        return lambda X: self(X, Z)

    def __call__(self, X, Z, workers: int = 1):
        return self.checked(self.function, X, Z)

    @staticmethod
    def checked(function: Callable, X, Z) -> np.ndarray:
        """``function(X, Z)`` as an array of finite floats of shape (n, b)."""
        expected = (n_rows(X), n_rows(Z))
        found = function(*(list(part) if isinstance(part, Items) else part for part in (X, Z)))
        values = found.toarray() if sparse.issparse(found) else np.asarray(found)
        if values.shape != expected:
            raise ValueError(
                f"kernel: the callable returned shape {values.shape} for {expected[0]} rows and {expected[1]} "
                f"centres; it must return shape {expected}, because it receives all rows and all centres at once."
            )
        if values.dtype.kind not in "fiub":
            raise TypeError(f"kernel: the callable returned {values.dtype} values; it must return real numbers.")
        values = values.astype(np.result_type(values.dtype, np.float32), copy=False)
        if not np.isfinite(values).all():
            raise ValueError("kernel: the callable returned NaN or infinity; it must return finite values.")
        return values
