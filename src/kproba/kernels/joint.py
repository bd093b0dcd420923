"""A kernel over rows and classes together (2010 Eq. 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..threads import row_slices
from .base import n_rows
from .given import FromCallable


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

    function: Callable
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
