"""Additive kernels: sums of one-column Laplacians, and of products of two of them.

With E_j = exp(−|x_j − z_j|/σ) and shares u_j that sum to one, the additive kernel is Σ u_j E_j and the pairs kernel
((Σ u_j E_j)² − Σ u_j² E_j²)/(1 − Σ u_j²), the second elementary symmetric polynomial: main effects and interactions
of two columns, as in shallow trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import in_place
from .base import Kernel, dense, mirrored
from .by_column import ByColumn, laplacian_columns
from .codes import code_columns, differ, onnx_unequal, split_columns, unequal
from .radial import positive_median
from .scratch import Scratch

#: Smallest 1 − Σu² by which the pairs kernel is divided, if one column has nearly all of the weight.
LEAST_PAIRS = 2e-3
#: Exponents stay this far below half of the largest one, so that products of two exponentials are normal numbers.
MARGIN = 4.0


def room_for_pairs(share: np.ndarray) -> float:
    """1 − Σu², the value of Σ_{j≠k} u_j u_k E_j E_k for equal rows; infinite for one column, which has no pairs."""
    return max(1.0 - float(share @ share), LEAST_PAIRS) if len(share) > 1 else np.inf


def additive_sums(Z: np.ndarray, rates: np.ndarray, share: np.ndarray, categorical: tuple[int, ...] = ()) -> Callable:
    """A function ``(X, total, squares)`` that writes Σ u_j E_j and Σ u_j² E_j², E_j = exp(−rate_j·|x_j − z_j|).

    Codes differ or not, so that E_j = 1 − (1 − exp(−rate_j))·[x_j ≠ z_j].
    """
    if not categorical:
        return _sums_of_numbers(Z, rates, share)
    numbers, codes = split_columns(Z.shape[1], categorical)
    of_numbers = _sums_of_numbers(Z[:, numbers], rates[numbers], share[numbers])
    u, rate = share[codes], rates[codes].astype(np.float64)
    lost, lost_squares = (unequal(Z[:, codes], -(u**k) * np.expm1(-k * rate)) for k in (1, 2))

    def write(X, total, squares):
        of_numbers(X[:, numbers], total, squares)
        total += u.sum() - lost(X[:, codes])
        squares += u @ u - lost_squares(X[:, codes])

    return write


def _sums_of_numbers(Z: np.ndarray, rates: np.ndarray, share: np.ndarray) -> Callable:
    """The same for columns of numbers.

    In a column where all z are low or high, E_j takes two values for each x: one matrix product covers these columns.
    """
    low, high = Z.min(axis=0), Z.max(axis=0)
    is_high = np.equal(Z, high)
    two = (is_high | np.equal(Z, low)).all(axis=0)
    marks = np.vstack([is_high[:, two].T, np.ones(len(Z))]).astype(Z.dtype)
    is_sharp = ~two & ~(rates * (high / 2 - low / 2) <= np.log(np.finfo(Z.dtype).max) / 2 - MARGIN)
    smooth, sharp, scratch = np.flatnonzero(~two & ~is_sharp), np.flatnonzero(is_sharp), Scratch()
    write_products = _shared_products(Z[:, smooth], rates[smooth], share[smooth], scratch)
    others = [(j, _shared_differences(Z[:, j], float(rates[j]), float(share[j]))) for j in sharp]

    def write(X, total, squares):
        _write_two_valued(X[:, two], low[two], high[two], marks, rates[two], share[two], total, squares)
        work = scratch.like("work", total)
        for _ in write_products(X[:, smooth], work):
            _add_with_square(work, total, squares)
        for j, column in others:
            column(X[:, j], work)
            _add_with_square(work, total, squares)

    return write


def _add_with_square(work: np.ndarray, total: np.ndarray, squares: np.ndarray) -> None:
    total += work
    work *= work
    squares += work


def _shared_products(Z: np.ndarray, rates: np.ndarray, share: np.ndarray, scratch: Scratch) -> Callable:
    """A function ``(X, out)`` that writes u_j·exp(−r_j·|x_j − z_j|) of one column after the other.

    exp(−r·|x − z|) is the smaller one of exp(−r·x)·exp(r·z) and exp(r·x)·exp(−r·z), so that products of vectors replace
    most exponentials. An x outside the range of z is moved to its end, and the distance becomes a factor.
    """
    low, high = (edge.astype(np.float64) for edge in (Z.min(axis=0), Z.max(axis=0)))
    middle, rates = low / 2 + high / 2, rates.astype(np.float64)
    exponents = rates * (Z.astype(np.float64) - middle)
    rising, falling = (np.ascontiguousarray(np.exp(each).astype(Z.dtype).T) for each in (exponents, -exponents))

    def write(X, out):
        inside = np.clip(X.astype(np.float64), low, high)
        factors, exponents = share * np.exp(-rates * np.abs(X - inside)), rates * (inside - middle)
        columns = (
            np.ascontiguousarray((factors * np.exp(each)).astype(out.dtype).T) for each in (-exponents, exponents)
        )
        other = scratch.like("other", out)
        for up, down, left, right in zip(*columns, rising, falling):
            # matmul would not use BLAS for an outer product
            np.dot(up[:, None], left[None], out=out)
            np.dot(down[:, None], right[None], out=other)
            np.minimum(out, other, out=out)
            yield

    return write


def _shared_differences(z: np.ndarray, rate: float, share: float) -> Callable:
    """The same without products, which would overflow if the kernel is very sharp."""
    z = np.ascontiguousarray(z) * z.dtype.type(rate)

    def write(x, out):
        np.subtract((x * x.dtype.type(rate))[:, None], z, out=out)
        np.abs(out, out=out)
        np.negative(out, out=out)
        np.exp(out, out=out)
        out *= out.dtype.type(share)

    return write


def _write_two_valued(X, low, high, marks, rates, share, total, squares) -> None:
    if not len(low):
        total[:], squares[:] = 0.0, 0.0
        return
    below, above = (share * np.exp(-rates * np.abs(X - edge)) for edge in (low, high))
    for out, at_low, at_high in ((total, below, above), (squares, below**2, above**2)):
        # the last row of the marks is one throughout
        np.matmul(np.column_stack([at_high - at_low, at_low.sum(axis=1)]).astype(out.dtype), marks, out=out)


def additive_sums_on_device(device, X, Z, rates, share, categorical: tuple[int, ...] = ()):
    """The same sums for tensors, column by column."""
    xp = device.xp
    total = xp.zeros((X.shape[0], Z.shape[0]), dtype=X.dtype, device=X.device)
    squares = xp.zeros_like(total)
    for j in range(X.shape[1]):
        x, z = X[:, j, None], Z[None, :, j]
        part = differ(xp, x, z) if j in categorical else in_place("abs", x - z)
        part *= -float(rates[j])
        part = in_place("exp", part)
        part *= float(share[j])
        total += part
        part *= part
        squares += part
    return total, squares


@dataclass(frozen=True)
class Additive(Kernel):
    """The mean over the columns of exp(−|x_j − z_j|/σ).

    >>> import numpy as np
    >>> Additive(width=1.0)(np.zeros((1, 2)), np.array([[0.0, 0.0], [0.0, 1.0]])).round(4)
    array([[1.    , 0.6839]])
    """

    width: Any = None
    categorical: tuple[int, ...] = code_columns()
    has_width: ClassVar[bool] = True
    largest: ClassVar[float | None] = 1.0
    name: ClassVar[str] = "additive"

    def _of_sums(self, total, squares, share):
        return total

    def against(self, Z):
        """The width is inside the sum over columns, so this writes kernel values, and ``of_pairs`` keeps them."""
        Z = dense(Z)
        share = np.full(Z.shape[1], 1.0 / Z.shape[1])
        sums = additive_sums(Z, share * Z.shape[1] / self.width, share, self.categorical)

        def write(X, out):
            squares = np.empty_like(out)
            sums(dense(X), out, squares)
            out[:] = self._of_sums(out, squares, share)

        return write

    def pairs_on_device(self, device, X, Z):
        d = X.shape[1]
        share = np.full(d, 1.0 / d)
        total, squares = additive_sums_on_device(device, X, Z, share * d / self.width, share, self.categorical)
        return self._of_sums(total, squares, share)

    def gram(self, Z, workers: int = 1):
        K = mirrored(self, Z, workers)
        np.fill_diagonal(K, 1.0)
        return K

    def onnx_scores(self, X, Z, coef):
        share = np.full(Z.shape[1], 1.0 / Z.shape[1])
        sums = onnx_sums(X, Z, np.full(Z.shape[1], 1.0 / self.width), share, self.categorical)
        return self._of_sums(*sums, share) @ coef

    def by_column(self, d):
        return (ByColumn("sum", self._columns(d)),)

    def _columns(self, d: int) -> Callable:
        return laplacian_columns(np.full(d, 1.0 / self.width), np.full(d, 1.0 / d), self.categorical)

    def median_width(self, X) -> float:
        """The median difference in a column, taken over all pairs of rows and averaged over the columns."""
        X = dense(X)
        differences = (x[:, None] != x if j in self.categorical else np.abs(x[:, None] - x) for j, x in enumerate(X.T))
        return float(np.mean([positive_median(each.astype(np.float64, copy=False)) for each in differences]))


class Pairs(Additive):
    """The mean over pairs of columns of exp(−(|x_j − z_j| + |x_k − z_k|)/σ).

    >>> import numpy as np
    >>> Pairs(width=1.0)(np.zeros((1, 2)), np.array([[0.0, 0.0], [0.0, 1.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    name: ClassVar[str] = "pairs"

    def _of_sums(self, total, squares, share):
        return (total * total - squares) / room_for_pairs(share)

    def against(self, Z):
        if Z.shape[1] < 2:
            raise ValueError("kernel='pairs' needs at least two columns in X; use kernel='laplacian' for one.")
        return super().against(Z)

    onnx_scores = Additive.onnx_scores  # of its own ``_of_sums``

    def by_column(self, d):
        return (ByColumn("pairs", self._columns(d), 1.0 / room_for_pairs(np.full(d, 1.0 / d))),)


def onnx_sums(X, Z, rates, share, categorical: tuple[int, ...] = ()) -> tuple[Any, Any]:
    """The sums of :func:`additive_sums` as values of an ONNX graph."""
    if categorical:
        return _onnx_sums_with_codes(X, Z, rates, share, categorical)
    rates, share = (np.asarray(each, dtype=np.float64)[:, None] for each in (rates, share))
    total = X.compared_with(Z, lambda x, z: ((x - z).abs() * -rates).exp() * share)
    return total, X.compared_with(Z, lambda x, z: ((x - z).abs() * (-2.0 * rates)).exp() * share**2)


def _onnx_sums_with_codes(X, Z, rates, share, categorical) -> tuple[Any, Any]:
    numbers, codes = split_columns(Z.shape[1], categorical)
    u, rate = share[codes], rates[codes]
    of_codes = X.taken_columns(codes)
    total, squares = (
        onnx_unequal(of_codes, Z[:, codes], u**k * np.expm1(-k * rate)) + float((u**k).sum()) for k in (1, 2)
    )
    if not len(numbers):
        return total, squares
    rest = onnx_sums(X.taken_columns(numbers), Z[:, numbers], rates[numbers], share[numbers])
    return total + rest[0], squares + rest[1]
