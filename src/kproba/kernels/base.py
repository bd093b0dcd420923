"""The kernel interface: an immutable object that maps rows X (n, d) and centres Z (b, d) to features (n, b)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from ..arrays import BLOCK_BYTES
from ..threads import fill_tiles, map_independent, row_slices
from .by_column import ByColumn

#: Beyond these widths, σ² or 1/σ² overflows.
NARROWEST, WIDEST = 1e-153, 1e153
#: Rows of the blocks in which half of a kernel matrix is computed.
GRAM_ROWS = 256


class Kernel:
    """Base class of all kernels. A subclass evaluates one tile; this class takes care of threads and blocks.

    Evaluation has two steps: :meth:`against` computes a distance or product that does not depend on the width, and
    :meth:`of_pairs` applies an elementwise function to it, so the first step can be shared between widths.
    """

    #: the name shown in search results and messages
    name: ClassVar[str]
    #: what the rows are, and the extra that the kernel needs, for the docs
    compares: ClassVar[str] = "vectors"
    extra: ClassVar[str] = ""
    #: whether the kernel has a width to choose from the data
    has_width: ClassVar[bool] = False
    #: whether every kernel matrix is positive semi-definite; if False, matrices used as a penalty are checked
    is_definite: ClassVar[bool] = True
    #: whether an indefinite matrix is projected to PSD; otherwise it raises an error
    is_projected: ClassVar[bool] = False
    #: whether columns may be scaled beforehand
    takes_scaling: ClassVar[bool] = True
    #: whether the kernel can be computed on a device, from the tensors of another array library
    runs_on_devices: ClassVar[bool] = True
    #: k(x, x) of every x, the largest value of a symmetric kernel without negative values; None if there is none
    largest: ClassVar[float | None] = None
    #: arrays of the size of a tile that are in use at a time, and should fit into the cache together
    n_buffers: ClassVar[int] = 1
    #: the width, None if it is still to be chosen
    width: Any = None
    #: the numbers of the columns that hold codes of categories, see :mod:`.codes`
    categorical: tuple[int, ...] = ()

    def __post_init__(self):
        check_width(self.width)

    def read(self, X) -> Any:
        """X as the items this kernel compares if they are not vectors; None for a numeric table."""
        return None

    def prepared(self, X, workers: int = 1, verbose: int = 0) -> Kernel:
        """The kernel for a fit on rows X, with everything that all evaluations share already computed."""
        return self

    def against(self, Z) -> Callable[[Any, np.ndarray], Any]:
        """A function ``(X, out)`` that writes the width-independent statistic of rows X and centres Z into ``out``."""
        raise NotImplementedError

    def of_pairs(self, pairs: np.ndarray) -> np.ndarray:
        """Kernel values of ``pairs``, computed in place; by default the statistic is the value."""
        return pairs

    def pairs_on_device(self, device, X, Z):
        """The same statistic for tensors on a device, as a tensor on that device."""
        raise NotImplementedError

    def on_device(self, device, X, Z):
        """Features of tensors X and Z, as a tensor on their device."""
        return self.of_pairs(self.pairs_on_device(device, X, Z))

    def times_on_device(self, device, X, Z, V):
        """k(X, Z)·V (n, k) in float64 for tensors in one precision, tile by tile: k(X, Z) is never stored."""
        out, side = [], max(1, math.isqrt(BLOCK_BYTES // 8))
        for rows in row_slices(X.shape[0], 1, side):
            total = device.zeros((rows.stop - rows.start, V.shape[1]))
            for points in row_slices(Z.shape[0], 1, side):
                total += device.product(self.on_device(device, X[rows, ...], Z[points, ...]), V[points, ...])
            out.append(total)
        return device.xp.concat(out)

    def gram_on_device(self, device, Z):
        """The kernel matrix of the centres; only its lower triangle is used."""
        return self.on_device(device, Z, Z)

    def onnx_scores(self, X, Z: np.ndarray, coef: np.ndarray) -> Any:
        """k(X, Z)·coef for an ``onnx_export.graph.Value`` X, which has NumPy's operators; optional."""
        raise NotImplementedError

    def by_column(self, d: int) -> tuple[ByColumn, ...]:
        """The kernel of d columns as a sum of functions of one column at a time, for explanations; optional."""
        raise NotImplementedError

    def column_weights(self, d: int) -> np.ndarray:
        """How finely the kernel resolves each of d columns, up to a common factor."""
        return np.ones(d)

    def width_unit(self, pairs: np.ndarray) -> float:
        """The median heuristic: a width that suits a sample of pairs."""
        raise NotImplementedError(f"The {self.name} kernel has no width.")

    def median_width(self, X) -> float:
        """The median heuristic for a sample of rows."""
        return self.width_unit(self.pairs(X, X))

    def for_codes(self, categorical: tuple[int, ...]) -> Kernel:
        """A copy for rows in which these columns hold codes of categories; an error if it cannot compare them."""
        if categorical == self.categorical:
            return self
        if not is_dataclass(self) or all(field.name != "categorical" for field in fields(self)):
            raise ValueError(
                f"the {self.name} kernel cannot compare categories; use kernel='auto', 'laplacian', 'gaussian', "
                "'matern32', 'additive' or 'pairs', or encode the categories as numbers, for example with skrub's "
                "TableVectorizer (pip install 'kproba[tables]')."
            )
        return replace(self, categorical=categorical)

    def with_width(self, width: float) -> Self:
        """A copy with another width; kernels without a width are returned unchanged."""
        return replace(self, width=float(width)) if self.has_width else self  # type: ignore[type-var]

    def evaluator(self, Z) -> Callable[[Any], np.ndarray]:
        """A function that maps rows X to features, with everything that depends only on Z precomputed."""
        write_pairs = self._pairs_with(Z)

        def evaluate(X):
            features = np.empty((n_rows(X), n_rows(Z)), dtype=np.result_type(X.dtype, np.float32))
            write_pairs(X, features)
            return self.of_pairs(features)

        return evaluate

    def _pairs_with(self, Z) -> Callable:
        """The function that writes the statistic; it does nothing for a model without centres."""
        return self.against(Z) if n_rows(Z) else lambda X, out: None

    def __call__(self, X, Z, workers: int = 1) -> np.ndarray:
        """Features k(x, z) for every row of ``X`` and every centre of ``Z``."""
        return self._in_tiles(X, Z, workers, self.of_pairs)

    def pairs(self, X, Z, workers: int = 1) -> np.ndarray:
        """The width-independent statistic alone."""
        return self._in_tiles(X, Z, workers, lambda tile: tile)

    def gram(self, Z, workers: int = 1) -> np.ndarray:
        """The kernel matrix of the centres, exactly symmetric."""
        return symmetrised(self(Z, Z, workers))

    def _in_tiles(self, X, Z, workers, finish):
        dtype = np.result_type(X.dtype, np.float32)
        features = np.empty((n_rows(X), n_rows(Z)), dtype=dtype)
        write_pairs = self._pairs_with(Z)

        def fill(rows):
            tile = features[rows]
            write_pairs(X[rows], tile)
            finish(tile)

        fill_tiles(fill, len(features), self.n_buffers * features.shape[1] * dtype.itemsize, workers)
        return features


class Untiled:
    """Mixin for kernels that evaluate all rows against all centres at once, in ``pairs``."""

    def evaluator(self: Any, Z):
        return lambda X: self(X, Z)

    def __call__(self: Any, X, Z, workers: int = 1):
        return self.of_pairs(self.pairs(X, Z, workers))


def check_width(width) -> None:
    """Raise an error unless the width is a positive number or None (chosen later)."""
    if width is not None and not (isinstance(width, float | int | np.number) and NARROWEST <= width <= WIDEST):
        raise ValueError(
            f"width={width!r} of a kernel must be a positive number between {NARROWEST:g} and {WIDEST:g}, or None to "
            "choose it from the data."
        )


def n_rows(X) -> int:
    """The number of rows of a dense or sparse matrix, or of items in a collection."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def symmetrised(matrix: np.ndarray) -> np.ndarray:
    """(M + Mᵀ)/2, in place."""
    matrix += matrix.T.copy()
    matrix *= 0.5
    return matrix


def mirrored(evaluate: Callable, Z, workers: int = 1) -> np.ndarray:
    """``evaluate(Z, Z)`` of a symmetric function of two rows; only blocks from the diagonal on are computed."""
    K = np.empty((n_rows(Z),) * 2, dtype=np.result_type(Z.dtype, np.float32))

    def fill(rows: slice) -> None:
        size, block = rows.stop - rows.start, evaluate(Z[rows], Z[rows.start :])
        symmetrised(block[:, :size])
        K[rows, rows.start :] = block
        K[rows.stop :, rows] = block[:, size:].T

    map_independent(fill, row_slices(len(K), 1, GRAM_ROWS), workers)
    return K


def dense(X):
    """A matrix as it is, unless it is sparse."""
    return X.toarray() if sparse.issparse(X) else X


def dot(X, Z) -> np.ndarray:
    """X Zᵀ as a dense array, even if X or Z is sparse."""
    return np.asarray(dense(X @ Z.T))


def same_format(X, Z):
    """X and Z unchanged if both are dense or both sparse, otherwise both as CSR."""
    if sparse.issparse(X) == sparse.issparse(Z):
        return X, Z
    return sparse.csr_array(X), sparse.csr_array(Z)
