"""The learnt kernel: a mixture of four kernels over weighted columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .additive import additive_sums, additive_sums_on_device, onnx_sums, room_for_pairs
from .base import Kernel, mirrored
from .by_column import ByColumn, gaussian_columns, laplacian_columns
from .codes import code_columns, onnx_with_codes, with_codes, with_codes_on_device
from .radial import manhattan, manhattan_on_device, onnx_manhattan, squared_distances, squared_distances_on_device
from .scratch import Scratch

TERMS = ("laplacian", "gaussian", "additive", "pairs")


@dataclass(frozen=True)
class Learnt(Kernel):
    r"""A mixture :math:`\sum_i a_i k_i` of a Laplacian, a Gaussian, an additive and a pairs kernel.

    Column j has the weight :math:`w_{ij} = w_j g_{ij}` in the Laplacian (i = 1), in the Gaussian (2) and in the last
    two (3), where w are the ``weights`` and g the ``factors``; without factors g = 1. With
    :math:`\Delta_j = |x_j - z_j|`, the kernels are :math:`\exp(-\sum_j w_{1j}\Delta_j/\sigma_1)`,
    :math:`\exp(-\sum_j (w_{2j}\Delta_j/\sigma_2)^2)`, :math:`\sum_j u_j E_j` and
    :math:`\sum_{j\neq k} u_j u_k E_j E_k / (1 - \sum_j u_j^2)` with :math:`E_j = \exp(-w_{3j}\Delta_j/\sigma_3)` and
    shares :math:`u_j = w_{3j}^2/\sum_k w_{3k}^2`. In ``categorical`` columns :math:`\Delta_j` is 1 if the codes differ
    and 0 if they are equal.

    >>> import numpy as np
    >>> kernel = Learnt(weights=(1.0, 0.5), widths=(1.0, 1.0, 1.0), mixture=(0.5, 0.5, 0.0, 0.0))
    >>> kernel(np.zeros((1, 2)), np.array([[0.0, 0.0], [0.0, 1.0]])).round(4)
    array([[1.    , 0.6927]])
    """

    weights: tuple[float, ...]
    widths: tuple[float, float, float]
    mixture: tuple[float, float, float, float]
    factors: tuple[tuple[float, ...], ...] = ()
    categorical: tuple[int, ...] = code_columns()
    name: ClassVar[str] = "learnt"
    n_buffers: ClassVar[int] = 2  # more are in use, but threads would wait for each other between smaller tiles

    def __post_init__(self):
        for field, length in (("weights", len(self.weights)), ("widths", 3), ("mixture", 4)):
            values = np.asarray(getattr(self, field), dtype=np.float64)
            least = 0.0 if field == "mixture" else np.finfo(float).tiny
            if values.shape != (length,) or not length or not (np.isfinite(values) & (values >= least)).all():
                raise ValueError(f"Learnt: {field} must be {length or 'some'} positive numbers, got {values}.")
        d = len(self.weights)
        if not (_are_factors(self.factors, d) or (isinstance(self.factors, tuple) and not self.factors)):
            raise ValueError(f"Learnt: factors must be three tuples of {d} positive numbers each, got {self.factors}.")
        with np.errstate(over="ignore"):
            weights = self._weights
        if not (np.isfinite(weights) & (weights >= np.finfo(float).tiny)).all():
            raise ValueError("Learnt: weights times factors are too large or too small for floating-point numbers.")

    @property
    def _weights(self) -> np.ndarray:
        """The weight of each column in the Laplacian, in the Gaussian, and in the last two (3, d)."""
        return np.asarray(self.weights) * (np.asarray(self.factors) if self.factors else np.ones((3, 1)))

    @property
    def rates(self) -> np.ndarray:
        """The weights in each kernel, divided by its width (3, d): Δ_j is measured in units of 1/rate_j."""
        return self._weights / np.asarray(self.widths)[:, None]

    def _scale(self, rates: np.ndarray) -> np.ndarray:
        """Factors of the columns: the rates, but one for codes, which are compared as they are."""
        factors = rates.copy()
        factors[list(self.categorical)] = 1.0
        return factors

    @property
    def shares(self) -> np.ndarray:
        """u (d,): the share of each column in the additive kernel."""
        weights = self._weights[2]
        squares = np.square(weights / weights.max())
        return squares / squares.sum()

    def column_weights(self, d):
        a = np.asarray(self.mixture)
        return np.array([a[0], a[1], a[2] + a[3]]) @ self._weights / a.sum() if a.any() else np.asarray(self.weights)

    @property
    def _has_sums(self) -> bool:
        return self.mixture[2] > 0 or self.mixture[3] > 0

    @property
    def largest(self) -> float:  # type: ignore[override]
        """k(x, x); that of the pairs is one, or less if a single column has nearly all of the weight."""
        share = self.shares
        pairs = (1.0 - float(share @ share)) / room_for_pairs(share)
        return float(sum(self.mixture[:3]) + self.mixture[3] * pairs)

    def wider(self, factor: float) -> Learnt:
        """All widths times a factor."""
        first, second, third = self.widths
        return replace(self, widths=(factor * first, factor * second, factor * third))

    def normalised(self) -> Learnt:
        """The same mixture with k(x, x) = 1."""
        a, height = self.mixture, self.largest
        return replace(self, mixture=(a[0] / height, a[1] / height, a[2] / height, a[3] / height))

    def against(self, Z):
        """Writes kernel values at once: the widths are inside the sums over columns."""
        rates, a, codes = self.rates.astype(Z.dtype), self.mixture, self.categorical
        scales = [self._scale(rate) for rate in rates[:2]]
        laplacian = with_codes(manhattan, Z * scales[0], codes, rates[0])
        gaussian = with_codes(squared_distances, Z * scales[1], codes, rates[1] ** 2)
        sums = additive_sums(Z, rates[2], self.shares, codes) if self._has_sums else None
        room, scratch = room_for_pairs(self.shares), Scratch()

        def write(X, out):
            work = scratch.like("work", out)
            if sums is None:
                out[:] = 0.0
            else:
                squares = scratch.like("squares", out)
                sums(X, work, squares)
                np.multiply(work, a[2], out=out)
                work *= work
                work -= squares
                work *= a[3] / room
                out += work
            for amplitude, distances, scale in ((a[0], laplacian, scales[0]), (a[1], gaussian, scales[1])):
                if amplitude > 0:
                    distances(X * scale, work)
                    np.negative(work, out=work)
                    np.exp(work, out=work)
                    work *= amplitude
                    out += work

        return write

    def gram(self, Z, workers: int = 1):
        K = mirrored(self, Z, workers)
        np.fill_diagonal(K, self.largest)
        return K

    def onnx_scores(self, X, Z, coef):
        a, (first, second, third), codes = self.mixture, self.rates, self.categorical
        scales = self._scale(first), self._scale(second)
        distances = onnx_with_codes(onnx_manhattan, X * scales[0], Z * scales[0], codes, first)
        total = (distances * -1.0).exp() * a[0]
        squared = onnx_with_codes(lambda X, Z: X.squared_distances(Z), X * scales[1], Z * scales[1], codes, second**2)
        total = total + (squared * -1.0).exp() * a[1]
        if self._has_sums:
            sums, squares = onnx_sums(X, Z, third, self.shares, codes)
            total = total + sums * a[2] + (sums * sums - squares) * (a[3] / room_for_pairs(self.shares))
        return total @ coef

    def by_column(self, d):
        a, (first, second, third), share = self.mixture, self.rates, self.shares
        columns = laplacian_columns(third, share, self.categorical)
        terms = (
            ByColumn("product", laplacian_columns(first, categorical=self.categorical), a[0]),
            ByColumn("product", gaussian_columns(second, self.categorical), a[1]),
            ByColumn("sum", columns, a[2]),
            ByColumn("pairs", columns, a[3] / room_for_pairs(share)),
        )
        return tuple(term for term in terms if term.amplitude > 0)

    def pairs_on_device(self, device, X, Z):
        if device.has_triton:
            from .device_learnt import column_table, mixture  # imported here because Triton requires CUDA

            *others, pairs = self.mixture
            columns = column_table(self.rates, self.shares, self.categorical, X)
            return mixture(X, Z, columns, (*others, pairs / room_for_pairs(self.shares)))
        xp, a, codes = device.xp, self.mixture, self.categorical
        total = xp.zeros((X.shape[0], Z.shape[0]), dtype=X.dtype, device=X.device)
        for k, distances in enumerate((manhattan_on_device, squared_distances_on_device)):
            rate = self.rates[k]
            scale = xp.astype(device.put(self._scale(rate)), X.dtype, copy=False)
            total += a[k] * xp.exp(
                -with_codes_on_device(distances, device, X * scale, Z * scale, codes, rate ** (k + 1))
            )
        if self._has_sums:
            sums, squares = additive_sums_on_device(device, X, Z, self.rates[2], self.shares, codes)
            total += a[2] * sums + (a[3] / room_for_pairs(self.shares)) * (sums * sums - squares)
        return total

    def gram_on_device(self, device, Z):
        K = self.pairs_on_device(device, Z, Z)
        device.set_diagonal(K, np.full(Z.shape[0], self.largest))
        return K


def _are_factors(factors: Any, d: int) -> bool:
    """Whether these are three tuples of d positive numbers."""
    rows = factors if isinstance(factors, tuple) else ()
    if len(rows) != 3 or not all(isinstance(row, tuple) and len(row) == d for row in rows):
        return False
    return all(isinstance(g, float | int) and np.finfo(float).tiny <= g < np.inf for row in rows for g in row)
