"""Radial kernels: Gaussian, Laplacian and the Matérn family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from ..arrays import clip_negative, in_place
from .base import Kernel, dense, dot, mirrored, same_format
from .by_column import ByColumn, gaussian_columns, laplacian_columns
from .codes import code_columns, onnx_with_codes, with_codes, with_codes_on_device
from .scratch import Scratch

#: Rows sampled to check whether the terms of squared distances cancel, and the relative error that is acceptable.
CANCEL_ROWS, CANCEL_SHARE = 50, 1e-6
#: exp(−r) underflows to zero beyond this r, while polynomials of r are still finite.
VANISHED = 1e4
#: With at least this many columns of two values, a matrix product is faster than a loop over columns.
MIN_COLUMNS = 16
#: If fewer values than this share are high, the product is sparse.
SPARSE_SHARE = 0.1


def squared_distances(Z):
    """‖x − z‖² as one matrix product, [−2x, ‖x‖², 1]·[z, 1, ‖z‖²], with the origin shifted into the data.

    The shift keeps the three terms from cancelling when the data is far from zero. If rows are so far apart that the
    terms cancel anyway, differences are computed directly.
    """
    if sparse.issparse(Z):
        return _sparse_squared_distances(Z)
    origin = Z.mean(axis=0)
    if _terms_cancel(Z, origin):
        return lambda X, out: np.copyto(out, cdist(dense(X), Z, "sqeuclidean"), casting="same_kind")
    right = np.empty((Z.shape[0], Z.shape[1] + 2), dtype=Z.dtype)
    np.subtract(Z, origin, out=right[:, :-2])
    right[:, -2], right[:, -1] = 1.0, np.einsum("ij,ij->i", right[:, :-2], right[:, :-2])

    def write(X, out):
        X = dense(X) - origin
        left = np.empty((X.shape[0], X.shape[1] + 2), dtype=X.dtype)
        np.multiply(X, -2.0, out=left[:, :-2])
        left[:, -2], left[:, -1] = np.einsum("ij,ij->i", X, X), 1.0
        np.matmul(left, right.T, out=out)
        np.maximum(out, 0.0, out=out)

    return write


def _terms_cancel(Z: np.ndarray, origin: np.ndarray) -> bool:
    """Whether the rounding error of the product is more than a small share of the distance between nearby rows."""
    some = Z[:: max(1, len(Z) // CANCEL_ROWS)].astype(np.float64)
    between = cdist(some, some, "sqeuclidean")
    apart = between[between > 0]
    if not apart.size:
        return False
    # a single distant row moves the origin, whether it is in the sample or not
    largest = np.square(some - origin).sum(axis=1).max()
    return np.finfo(Z.dtype).eps * largest > CANCEL_SHARE * float(np.quantile(apart, 0.1))


def _sparse_squared_distances(Z):
    zz = np.asarray(Z.multiply(Z).sum(axis=1)).reshape(1, -1)

    def write(X, out):
        X = sparse.csr_array(X)
        xx = np.asarray(X.multiply(X).sum(axis=1)).reshape(-1, 1)
        np.maximum(xx + zz - 2.0 * dot(X, Z), 0.0, out=out)

    return write


def squared_distances_on_device(device, X, Z):
    """The same product for tensors."""
    xp, origin = device.xp, device.xp.mean(Z, axis=0)
    X, Z = X - origin, Z - origin
    xx, zz = (xp.sum(part * part, axis=1)[:, None] for part in (X, Z))
    left = xp.concat([-2.0 * X, xx, xp.ones_like(xx)], axis=1)
    right = xp.concat([Z, xp.ones_like(zz), zz], axis=1)
    return clip_negative(device.product(left, right.mT))


def manhattan_on_device(device, X, Z):
    """‖x − z‖₁ for tensors: one kernel on a GPU, elsewhere column by column, as all columns at once would not fit."""
    if device.has_triton:
        from .device_manhattan import manhattan  # imported here because Triton requires CUDA

        return manhattan(X, Z)
    total = device.xp.zeros((X.shape[0], Z.shape[0]), dtype=X.dtype, device=X.device)
    for j in range(X.shape[1]):
        total += in_place("abs", X[:, j, None] - Z[None, :, j])
    return total


def manhattan(Z):
    """‖x − z‖₁."""
    by_product = None if sparse.issparse(Z) else manhattan_by_product(Z)
    scratch = Scratch()

    def write(X, out):
        if by_product is not None and not sparse.issparse(X):
            by_product(X, out)
        elif sparse.issparse(X) or sparse.issparse(Z):
            from sklearn.metrics.pairwise import manhattan_distances  # slow to import, rarely needed

            out[:] = manhattan_distances(*same_format(X, Z))
        else:
            _write_city_block(X, Z, out, scratch)

    return write


def _write_city_block(X: np.ndarray, Z: np.ndarray, out: np.ndarray, scratch: Scratch) -> None:
    """‖x − z‖₁ in float64, without a new array for it."""
    if out.dtype == np.float64 and out.flags.c_contiguous:
        cdist(X, Z, "cityblock", out=out)
    else:
        out[:] = cdist(X, Z, "cityblock", out=scratch.like("distances", out, np.float64))


def onnx_manhattan(X, Z):
    """‖x − z‖₁ as a value of an ONNX graph."""
    return X.compared_with(Z, lambda x, z: (x - z).abs())


@dataclass(frozen=True)
class Radial(Kernel):
    """A kernel that is a function of ‖x − z‖/width; codes of categories are at distance one if they differ."""

    width: Any = None
    categorical: tuple[int, ...] = code_columns()
    has_width: ClassVar[bool] = True

    @property
    def largest(self) -> float:  # type: ignore[override]
        return float(self.of_pairs(np.zeros(1))[0])

    def against(self, Z):
        return with_codes(squared_distances, Z, self.categorical)

    def pairs_on_device(self, device, X, Z):
        return with_codes_on_device(squared_distances_on_device, device, X, Z, self.categorical)

    def _onnx_pairs(self, X, Z):
        return onnx_with_codes(lambda X, Z: X.squared_distances(Z), X, Z, self.categorical)

    def gram_on_device(self, device, Z):
        pairs = self.pairs_on_device(device, Z, Z)
        device.set_diagonal(pairs, np.zeros(Z.shape[0]))
        return self.of_pairs(pairs)

    def gram(self, Z, workers: int = 1):
        K = mirrored(self, Z, workers)
        np.fill_diagonal(K, self.largest)
        return K

    def _fused_times(self, device, X, Z, V, rate: float, is_gaussian: bool):
        """exp(−rate·dist(X, Z))·V by a kernel for GPUs; None if that does not apply."""
        if not device.has_triton or self.categorical or X.dtype != device.xp.float32:
            return None
        from .device_times import MOST_COLUMNS, exponential_times  # imported here because Triton requires CUDA

        return exponential_times(X, Z, V, rate, is_gaussian) if X.shape[1] <= MOST_COLUMNS else None

    def width_unit(self, pairs):
        return float(np.sqrt(positive_median(pairs)))

    def slope(self, pairs: np.ndarray) -> np.ndarray:
        """m such that ∂k(x, z)/∂x = −m·(x − z)."""
        raise NotImplementedError

    def sensitivity(self, X, Z, coef) -> np.ndarray:
        """Mean over rows of Σ_y (∂f_y/∂x_j)² for every column j, where f = Φ·coef."""
        slopes = self.slope(self.pairs(X, Z))
        pull = slopes @ coef
        squares = np.zeros(X.shape[1])
        for column, weights in zip(pull.T, coef.T):
            gradient = slopes @ (weights[:, None] * Z) - column[:, None] * X
            squares += np.einsum("ij,ij->j", gradient, gradient)
        return squares / len(X)


@dataclass(frozen=True)
class Gaussian(Radial):
    """exp(−‖x − z‖²/2σ²), equation 6 of 2010.

    >>> import numpy as np
    >>> Gaussian(width=1.0)(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 1.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    name: ClassVar[str] = "gaussian"

    def of_pairs(self, pairs):
        return _exp_of_product(pairs, -0.5 / self.width**2)

    def slope(self, pairs):
        return self.of_pairs(pairs) / self.width**2

    def onnx_scores(self, X, Z, coef):
        return (self._onnx_pairs(X, Z) * (-0.5 / self.width**2)).exp() @ coef

    def times_on_device(self, device, X, Z, V):
        found = self._fused_times(device, X, Z, V, 0.5 / self.width**2, is_gaussian=True)
        return super().times_on_device(device, X, Z, V) if found is None else found

    def by_column(self, d):
        rates = np.full(d, math.sqrt(0.5) / self.width)
        return (ByColumn("product", gaussian_columns(rates, self.categorical)),)


@dataclass(frozen=True)
class Laplacian(Radial):
    """exp(−‖x − z‖₁/σ): scikit-learn's Laplacian kernel with γ = 1/σ.

    >>> import numpy as np
    >>> Laplacian(width=2.0)(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 1.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    name: ClassVar[str] = "laplacian"

    def against(self, Z):
        return with_codes(manhattan, Z, self.categorical)

    def pairs_on_device(self, device, X, Z):
        return with_codes_on_device(manhattan_on_device, device, X, Z, self.categorical)

    def of_pairs(self, pairs):
        return _exp_of_product(pairs, -1.0 / self.width)

    def width_unit(self, pairs):
        return positive_median(pairs)

    def sensitivity(self, X, Z, coef):
        features = self.of_pairs(self.pairs(X, Z)) / self.width
        return np.array([np.sum(np.square(pull)) for pull in signed_sums(X, Z, features, coef)]) / len(X)

    def onnx_scores(self, X, Z, coef):
        return (onnx_with_codes(onnx_manhattan, X, Z, self.categorical) * (-1.0 / self.width)).exp() @ coef

    def times_on_device(self, device, X, Z, V):
        found = self._fused_times(device, X, Z, V, 1.0 / self.width, is_gaussian=False)
        return super().times_on_device(device, X, Z, V) if found is None else found

    def by_column(self, d):
        return (ByColumn("product", laplacian_columns(np.full(d, 1.0 / self.width), categorical=self.categorical)),)


@dataclass(frozen=True)
class Matern(Radial):
    """Matérn kernel of smoothness ν = 1/2, 3/2 or 5/2; ν = 1/2 is exp(−‖x − z‖₂/σ).

    >>> import numpy as np
    >>> Matern(width=1.0, nu=0.5)(np.zeros((1, 1)), np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    nu: float = 1.5
    name: ClassVar[str] = "matern"

    def __post_init__(self):
        super().__post_init__()
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"Matern: nu must be 0.5, 1.5 or 2.5, got {self.nu!r}.")

    def _scaled(self, pairs):
        """√(2ν)·r/σ, in place."""
        pairs = in_place("sqrt", pairs)
        with np.errstate(over="ignore"):
            pairs *= math.sqrt(2.0 * self.nu) / self.width
        if isinstance(pairs, np.ndarray):
            np.minimum(pairs, VANISHED, out=pairs)
        return pairs

    def of_pairs(self, pairs):
        r = self._scaled(pairs)
        polynomial = 1.0 if self.nu == 0.5 else 1.0 + r if self.nu == 1.5 else 1.0 + r + r * r / 3.0
        r *= -1.0
        r = in_place("exp", r)
        r *= polynomial
        return r

    def slope(self, pairs):
        r = self._scaled(pairs)
        if self.nu == 0.5:
            # the derivative does not exist at a centre; rounding errors must not replace it
            return np.exp(-r) / self.width**2 * np.divide(1.0, r, out=np.zeros_like(r), where=r > 1e-6)
        if self.nu == 1.5:
            return np.exp(-r) * (3.0 / self.width**2)
        return (1.0 + r) * np.exp(-r) * (5.0 / (3.0 * self.width**2))

    def onnx_scores(self, X, Z, coef):
        r = self._onnx_pairs(X, Z).sqrt() * (math.sqrt(2.0 * self.nu) / self.width)
        falling = (r * -1.0).exp()
        if self.nu == 0.5:
            return falling @ coef
        return (falling * (r + 1.0 if self.nu == 1.5 else r * r / 3.0 + r + 1.0)) @ coef


class DivergenceKernel(Kernel):
    """exp(−D/2σ²) with a divergence D ≥ 0 that need not be a squared distance."""

    has_width: ClassVar[bool] = True
    runs_on_devices: ClassVar[bool] = False

    def of_pairs(self, pairs):
        return _exp_of_product(pairs, -0.5 / self.width**2)

    def width_unit(self, pairs):
        return float(np.sqrt(positive_median(pairs)))


def _exp_of_product(pairs, factor: float):
    """exp(factor·pairs) in place; the result is zero if the product overflows."""
    if isinstance(pairs, np.ndarray):
        factor = max(factor, float(np.finfo(pairs.dtype).min))  # infinity times a distance of zero is NaN
    with np.errstate(over="ignore"):
        pairs *= factor
    return in_place("exp", pairs)


def positive_median(pairs: np.ndarray) -> float:
    """Median of the pairs, ignoring pairs of equal rows, which are zero up to rounding."""
    positive = pairs[pairs > 1e-12 * pairs.max(initial=0.0)]
    return float(np.median(positive)) if positive.size else 1.0


def manhattan_by_product(Z: np.ndarray):
    """A function that writes ‖x − z‖₁ for all rows z of Z, or None if too few columns have two values.

    If z is either low or high in a column, |x − z| = |x − low| + t·(|x − high| − |x − low|) with t = 1 where z is high.
    One product with the matrix of t covers all such columns, for any x.
    """
    if Z.shape[1] < MIN_COLUMNS or not len(Z):
        return None
    low, high = Z.min(axis=0), Z.max(axis=0)
    is_high = np.equal(Z, high)
    two = (is_high | np.equal(Z, low)).all(axis=0)
    if np.count_nonzero(two) < MIN_COLUMNS:
        return None
    low, high, others = low[two].astype(np.float64), high[two].astype(np.float64), np.ascontiguousarray(Z[:, ~two])
    write_two_valued, scratch = _two_valued(is_high[:, two].astype(np.float64)), Scratch()

    def write(X, out):
        part = X[:, two]
        below = np.abs(part - low)
        total = out if out.dtype == np.float64 else scratch.like("total", out, np.float64)
        write_two_valued(np.abs(part - high) - below, below.sum(axis=1), total)
        np.maximum(total, 0.0, out=total)  # rounding may make it slightly negative
        if others.shape[1]:
            rest = scratch.like("rest", out, np.float64)
            _write_city_block(X[:, ~two], others, rest, scratch)
            total += rest
        if total is not out:
            out[:] = total

    return write


def _two_valued(marks: np.ndarray):
    """A function that writes changes·marksᵀ + start, for changes (n, k) and start (n,), by one product."""
    is_sparse = marks.mean() < SPARSE_SHARE
    few, right = sparse.csr_array(marks if is_sparse else marks[:0]), np.vstack([marks.T, np.ones(len(marks))])

    def write(changes, start, out):
        if is_sparse:
            out[:] = (few @ changes.T + start).T
        else:
            np.matmul(np.column_stack([changes, start]), right, out=out)

    return write


def signed_sums(X: np.ndarray, Z: np.ndarray, features: np.ndarray, coef: np.ndarray) -> Iterator[np.ndarray]:
    """(features·sign(x_j − z_j))·coef (n, k) for every column j, up to the sign of each row.

    In a two-valued column only points with the other value contribute. The smaller of the two groups is summed; the
    other sum is the total minus it.
    """
    whole = features @ coef
    for x, z in zip(X.T, Z.T):
        low, high = min(x.min(), z.min()), max(x.max(), z.max())
        of_points, of_rows = z == high, x == high
        if (of_points | (z == low)).all() and (of_rows | (x == low)).all():
            few = np.flatnonzero(of_points if 2 * np.count_nonzero(of_points) < len(z) else ~of_points)
            part = features[:, few] @ coef[few]
            are_other = of_rows != of_points[few[0]] if len(few) else np.full(len(x), low == high)
            yield np.where(are_other[:, None], part, whole - part)
        else:
            yield (features * np.sign(x[:, None] - z)) @ coef
