"""User-supplied kernels: a precomputed matrix, or a function of rows, alone or together with their classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..data.items import Items, as_items, is_table
from ..threads import row_slices
from .base import Kernel, Untiled, n_rows, symmetrised


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
class FromCallable(Untiled, Kernel):
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


@dataclass(frozen=True)
class JointKernel(FromCallable):
    """A function ``K(X, y, Z, z) -> (n, b)`` that compares rows *with their classes*, as in equation 4 of 2010.

    X (n, d) and Z (b, d) are rows, y (n,) and z (b,) a class label for each of them. The score of class y is

        q(y | x) = Σ_y' Σ_l α_l^(y') K'(x, x_l, y, y'),

    with one coefficient for every centre and class. Only :class:`~kproba.LSPC` takes such a kernel. A product
    k(x, x')·L(y, y') is far cheaper as ``LSPC(kernel=k, class_similarity=L)``.

    >>> import numpy as np
    >>> def by_class(X, y, Z, z):
    ...     return np.exp(-np.abs(X - Z.T)) * (y[:, None] == z)
    >>> kernel = JointKernel(by_class).bound(["a", "b"])
    >>> kernel.features(np.zeros((1, 1)), 0, np.array([[0.0], [np.log(2)]])).round(2)  # (x_1, a), (x_1, b), (x_2, a), …
    array([[1. , 0. , 0.5, 0. ]])
    """

    #: the labels of the classes, known once the classifier has seen y
    classes: Any = None
    name: ClassVar[str] = "joint"

    def bound(self, classes) -> JointKernel:
        """The kernel that knows the labels of the classes."""
        return replace(self, classes=tuple(classes))

    def of_classes(self, X, y: int, Z, z: int) -> np.ndarray:
        """The matrix (n, b) of rows as members of class number y and centres as members of class number z."""
        own, other = (np.full(n_rows(part), self.classes[k]) for part, k in ((X, y), (Z, z)))
        return self.checked(lambda X, Z: self.function(X, own, Z, other), X, Z).astype(np.float64, copy=False)

    def features(self, X, y: int, Z) -> np.ndarray:
        """φ(x, y) (n, bc): every centre with every class, the class changing fastest."""
        parts = [self.of_classes(X, y, Z, z) for z in range(len(self.classes))]
        return np.stack(parts, axis=2).reshape(n_rows(X), -1)

    def scores(self, X, Z, coef: np.ndarray) -> np.ndarray:
        """q (n, c) for coefficients α (b, c), in blocks of rows."""
        c, flat = coef.shape[1], coef.ravel()
        blocks = row_slices(n_rows(X), 8 * max(1, coef.size)) or [slice(0, 0)]
        return np.concatenate([np.column_stack([self.features(X[s], y, Z) @ flat for y in range(c)]) for s in blocks])

    def __call__(self, X, Z, workers: int = 1) -> np.ndarray:
        """The mean over the classes of K'(x, z, y, y): what x and z have in common as members of the same class."""
        return np.mean([self.of_classes(X, y, Z, y) for y in range(len(self.classes))], axis=0)
