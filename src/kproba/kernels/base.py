"""What a kernel is: a frozen value that turns rows X (n, d) and centres Z (b, d) into features (n, b)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from ..threads import fill_tiles

#: Widths beyond these have squares or inverse squares that are no numbers.
NARROWEST, WIDEST = 1e-153, 1e153


class Kernel:
    """Base of all kernels. A subclass says how to evaluate a tile; threads and blocks come from here.

    The two steps of :meth:`against` (a distance or a product, free of the width) and :meth:`of_pairs` (an
    elementwise function of it) are kept apart so that a search over widths computes the first one once.
    """

    #: the name by which estimators find the kernel
    name: ClassVar[str]
    #: whether the kernel has a width that can be chosen from the data
    has_width: ClassVar[bool] = False
    #: whether every kernel matrix is sure to be positive semi-definite; one that is not is checked where it penalises
    is_definite: ClassVar[bool] = True
    #: whether one that is not is made so; otherwise it is refused
    is_projected: ClassVar[bool] = False
    #: whether columns may be scaled before
    takes_scaling: ClassVar[bool] = True
    #: whether tensors of other libraries can be met with each other where they lie
    runs_on_devices: ClassVar[bool] = True
    #: the width, None while it is to be chosen
    width: Any = None

    def read(self, X) -> Any:
        """X as the rows that this kernel compares where they are no vectors; None for a table of numbers."""
        return None

    def prepared(self, X, workers: int = 1, verbose: int = 0) -> Kernel:
        """The kernel for a fit on rows X, with done what all evaluations share."""
        return self

    def against(self, Z) -> Callable[[Any, np.ndarray], Any]:
        """A function ``(X, out)`` that writes the width-free statistic of rows X and centres Z into ``out``."""
        raise NotImplementedError

    def of_pairs(self, pairs: np.ndarray) -> np.ndarray:
        """Kernel values of ``pairs``, computed in place."""
        raise NotImplementedError

    def pairs_on_device(self, device, X, Z):
        """The same statistic of tensors that lie on a device, as a tensor there."""
        raise NotImplementedError

    def on_device(self, device, X, Z):
        """Features of tensors X and Z, as a tensor on their device."""
        return self.of_pairs(self.pairs_on_device(device, X, Z))

    def gram_on_device(self, device, Z):
        """The kernel matrix of the centres, of which the lower triangle counts."""
        return self.on_device(device, Z, Z)

    def width_unit(self, pairs: np.ndarray) -> float:
        """The median heuristic: the width that fits a sample of pairs."""
        raise NotImplementedError(f"The {self.name} kernel has no width.")

    def with_width(self, width: float) -> Self:
        """The same kernel with another width; kernels without one are returned as they are."""
        return replace(self, width=float(width)) if self.has_width else self  # type: ignore[type-var]

    def evaluator(self, Z) -> Callable[[Any], np.ndarray]:
        """A function of rows X that returns their features, with everything that Z alone needs done before."""
        write_pairs = self._pairs_with(Z)

        def evaluate(X):
            features = np.empty((n_rows(X), n_rows(Z)), dtype=np.result_type(X.dtype, np.float32))
            write_pairs(X, features)
            return self.of_pairs(features)

        return evaluate

    def _pairs_with(self, Z) -> Callable:
        """What writes the statistic; a model may have no centre at all, and then there is nothing to write."""
        return self.against(Z) if n_rows(Z) else lambda X, out: None

    def __call__(self, X, Z, workers: int = 1) -> np.ndarray:
        """Features k(x, z) of every row of ``X`` and every centre of ``Z``."""
        return self._in_tiles(X, Z, workers, self.of_pairs)

    def pairs(self, X, Z, workers: int = 1) -> np.ndarray:
        """The width-free statistic alone."""
        return self._in_tiles(X, Z, workers, lambda tile: tile)

    def gram(self, Z, workers: int = 1) -> np.ndarray:
        """The kernel matrix of the centres with themselves, exactly symmetric."""
        return symmetrised(self(Z, Z, workers))

    def _in_tiles(self, X, Z, workers, finish):
        dtype = np.result_type(X.dtype, np.float32)
        features = np.empty((n_rows(X), n_rows(Z)), dtype=dtype)
        write_pairs = self._pairs_with(Z)

        def fill(rows):
            tile = features[rows]
            write_pairs(X[rows], tile)
            finish(tile)

        fill_tiles(fill, len(features), features.shape[1] * dtype.itemsize, workers)
        return features


class Untiled:
    """A kernel that meets all rows with all centres at once, in its ``pairs``."""

    def evaluator(self: Any, Z):
        return lambda X: self(X, Z)

    def __call__(self: Any, X, Z, workers: int = 1):
        return self.of_pairs(self.pairs(X, Z, workers))


def check_width(width) -> None:
    """Refuse a width that is not a positive number; None stands for one that is still to be chosen."""
    if width is not None and not (isinstance(width, float | int | np.number) and NARROWEST <= width <= WIDEST):
        raise ValueError(
            f"width={width!r} of a kernel must be a positive number between {NARROWEST:g} and {WIDEST:g}, or None to "
            "have it chosen."
        )


def n_rows(X) -> int:
    """Rows of a dense or sparse matrix, or items of a sequence."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def symmetrised(matrix: np.ndarray) -> np.ndarray:
    """(M + Mᵀ)/2, in place."""
    matrix += matrix.T.copy()
    matrix *= 0.5
    return matrix


def dot(X, Z) -> np.ndarray:
    """X Zᵀ as a dense array, whichever of the two is sparse."""
    product = X @ Z.T
    return product.toarray() if sparse.issparse(product) else np.asarray(product)


def same_format(X, Z):
    """Both dense, or both CSR when one of them is sparse."""
    if sparse.issparse(X) == sparse.issparse(Z):
        return X, Z
    return sparse.csr_array(X), sparse.csr_array(Z)
