"""The learnt kernel: a mixture of four kernels over weighted columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .additive import additive_sums, additive_sums_on_device, onnx_sums, room_for_pairs
from .base import Kernel, symmetrised
from .by_column import ByColumn, gaussian_columns, laplacian_columns
from .radial import manhattan, manhattan_on_device, squared_distances, squared_distances_on_device

TERMS = ("laplacian", "gaussian", "additive", "pairs")


@dataclass(frozen=True)
class Learnt(Kernel):
    r"""A mixture :math:`\sum_i a_i k_i` of a Laplacian, a Gaussian, an additive and a pairs kernel.

    All four share the column weights w. With :math:`\Delta_j = |x_j - z_j|`, the kernels are
    :math:`\exp(-\sum_j w_j\Delta_j/\sigma_1)`, :math:`\exp(-\sum_j (w_j\Delta_j/\sigma_2)^2)`,
    :math:`\sum_j u_j E_j` and :math:`\sum_{j\neq k} u_j u_k E_j E_k / (1 - \sum_j u_j^2)` with
    :math:`E_j = \exp(-w_j\Delta_j/\sigma_3)` and shares :math:`u_j = w_j^2/\sum_k w_k^2`.

    >>> import numpy as np
    >>> kernel = Learnt(weights=(1.0, 0.5), widths=(1.0, 1.0, 1.0), mixture=(0.5, 0.5, 0.0, 0.0))
    >>> kernel(np.zeros((1, 2)), np.array([[0.0, 0.0], [0.0, 1.0]])).round(4)
    array([[1.    , 0.6927]])
    """

    weights: tuple[float, ...]
    widths: tuple[float, float, float]
    mixture: tuple[float, float, float, float]
    name: ClassVar[str] = "learnt"

    def __post_init__(self):
        for field, length in (("weights", len(self.weights)), ("widths", 3), ("mixture", 4)):
            values = np.asarray(getattr(self, field), dtype=np.float64)
            least = 0.0 if field == "mixture" else np.finfo(float).tiny
            if values.shape != (length,) or not length or not (np.isfinite(values) & (values >= least)).all():
                raise ValueError(f"Learnt: {field} must be {length or 'some'} positive numbers, got {values}.")

    @property
    def _rates(self) -> np.ndarray:
        """w_j/σ of the three widths (3, d)."""
        return np.asarray(self.weights) / np.asarray(self.widths)[:, None]

    @property
    def shares(self) -> np.ndarray:
        """u (d,): the share of each column in the additive kernel."""
        squares = np.square(np.asarray(self.weights) / max(self.weights))
        return squares / squares.sum()

    @property
    def _has_sums(self) -> bool:
        return self.mixture[2] > 0 or self.mixture[3] > 0

    @property
    def at_zero(self) -> float:
        """k(x, x)."""
        return float(sum(self.mixture[:3]) + self.mixture[3] * _mean_pair(self.shares))

    def against(self, Z):
        """Writes kernel values at once: the widths are inside the sums over columns."""
        rates, a = self._rates.astype(Z.dtype), self.mixture
        laplacian, gaussian = manhattan(Z * rates[0]), squared_distances(Z * rates[1])
        sums = additive_sums(Z, rates[2], self.shares) if self._has_sums else None
        room = room_for_pairs(self.shares)

        def write(X, out):
            work = np.empty_like(out)
            out[:] = 0.0
            if sums is not None:
                squares = np.empty_like(out)
                sums(X, work, squares)
                out += a[2] * work
                work *= work
                work -= squares
                out += (a[3] / room) * work
            for amplitude, distances, rate in ((a[0], laplacian, rates[0]), (a[1], gaussian, rates[1])):
                if amplitude > 0:
                    distances(X * rate, work)
                    np.negative(work, out=work)
                    np.exp(work, out=work)
                    work *= amplitude
                    out += work

        return write

    def of_pairs(self, pairs):
        return pairs

    def gram(self, Z, workers: int = 1):
        K = symmetrised(self(Z, Z, workers))
        np.fill_diagonal(K, self.at_zero)
        return K

    def onnx_scores(self, X, Z, coef):
        a, (first, second, third) = self.mixture, self._rates
        distances = (X * first).compared_with(Z * first, lambda x, z: (x - z).abs())
        total = (distances * -1.0).exp() * a[0]
        total = total + ((X * second).squared_distances(Z * second) * -1.0).exp() * a[1]
        if self._has_sums:
            sums, squares = onnx_sums(X, Z, third, self.shares)
            total = total + sums * a[2] + (sums * sums - squares) * (a[3] / room_for_pairs(self.shares))
        return total @ coef

    def by_column(self, d):
        a, (first, second, third), share = self.mixture, self._rates, self.shares
        columns = laplacian_columns(third, share)
        terms = (
            ByColumn("product", laplacian_columns(first), a[0]),
            ByColumn("product", gaussian_columns(second), a[1]),
            ByColumn("sum", columns, a[2]),
            ByColumn("pairs", columns, a[3] / room_for_pairs(share)),
        )
        return tuple(term for term in terms if term.amplitude > 0)

    def pairs_on_device(self, device, X, Z):
        xp, a = device.xp, self.mixture
        rates = [device.put(rate.astype(np.float64)) for rate in self._rates[:2]]
        first, second = (xp.astype(rate, X.dtype, copy=False) for rate in rates)
        total = a[0] * xp.exp(-manhattan_on_device(device, X * first, Z * first))
        total += a[1] * xp.exp(-squared_distances_on_device(device, X * second, Z * second))
        if self._has_sums:
            sums, squares = additive_sums_on_device(device, X, Z, self._rates[2], self.shares)
            total += a[2] * sums + (a[3] / room_for_pairs(self.shares)) * (sums * sums - squares)
        return total

    def gram_on_device(self, device, Z):
        K = self.pairs_on_device(device, Z, Z)
        device.set_diagonal(K, np.full(Z.shape[0], self.at_zero))
        return K


def _mean_pair(share: np.ndarray) -> float:
    """The pairs kernel of a row with itself: one, or less if a single column has nearly all of the weight."""
    return (1.0 - float(share @ share)) / room_for_pairs(share)
