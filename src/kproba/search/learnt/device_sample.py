"""Exact leave-one-out scores of a sample and their gradient on a device: the counterpart of :mod:`.sample`.

Everything is over all m × m pairs, in float32 up to the kernel matrix and in float64 from there on. Only the scores
and their gradient travel between the device and the CPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Device
from ...kernels.additive import LEAST_PAIRS, room_for_pairs
from ...kernels.codes import differ
from .pairs import shares
from .parameters import Layout


class DeviceLeaveOneOut(NamedTuple):
    """Γ = G⁻¹, α = ΓY and the leave-one-out scores, all on the device."""

    inverse: Any
    diagonal: Any
    alpha: Any
    scores: Any

    @classmethod
    def of(cls, device: Device, G, Y, one=None) -> DeviceLeaveOneOut:
        """METHODS §7: s = Y − α/γ with γ = diag Γ; ``one`` is the identity, if it is there."""
        lower = device.cholesky(G)
        if lower is None:
            raise np.linalg.LinAlgError("The kernel matrix of a sample is not positive definite.")
        half = device.solve_lower(lower, device.eye(G.shape[0]) if one is None else one)
        inverse, diagonal = half.mT @ half, device.xp.sum(half * half, axis=0)[:, None]
        alpha = inverse @ Y
        return cls(inverse, diagonal, alpha, Y - alpha / diagonal)

    def gradient(self, xp, R):
        """∂L/∂K (m, m), from R = ∂L/∂s: see :meth:`.sample.LeaveOneOut.gradient`."""
        B, e = R / self.diagonal, self.alpha / self.diagonal
        pulled = xp.sum(B * e, axis=1, keepdims=True) * self.inverse
        whole = self.inverse @ (B @ self.alpha.mT - pulled)
        return 0.5 * (whole + whole.mT)


class PlainPairs:
    """All pairs of rows X (m, d) and what the gradient needs of them, column by column."""

    def __init__(self, device: Device, X, layout: Layout):
        self.device, self.m, self.has_sums = device, X.shape[0], layout.has_sums
        differences = device.xp.abs(X[:, None, :] - X[None, :, :])
        for j in layout.categorical:
            differences[:, :, j] = differ(device.xp, X[:, None, j], X[None, :, j])
        self._D = device.xp.reshape(differences, (-1, X.shape[1]))

    def values(self, rates: np.ndarray, share: np.ndarray):
        """The four kernels (4, m, m), or the first two with too many columns."""
        device, xp, D = self.device, self.device.xp, self._D
        there = [device.put(rate, np.float32) for rate in rates]
        found = [xp.exp(-device.product(D, there[0])), xp.exp(-device.product(D * D, there[1] * there[1]))]
        if self.has_sums:
            self._powers = xp.exp(-D * there[2])
            additive = device.product(self._powers, device.put(share, np.float32))
            squares = device.product(self._powers * self._powers, device.put(share**2, np.float32))
            found += [additive, (additive * additive - squares) / room_for_pairs(share)]
        return xp.reshape(xp.stack(found), (-1, self.m, self.m))

    def sums(self, weights):
        """For every column (6, d): Σw₁Δ, Σw₂Δ², ΣpEΔ, ΣrE²Δ, ΣpE and ΣrE², for weights (w₁, w₂, p, r) of the pairs."""
        xp, D = self.device.xp, self._D
        flat = xp.reshape(weights, (weights.shape[0], -1))
        terms = [(flat[0, :], D), (flat[1, :], D * D)]
        if self.has_sums:
            E = self._powers
            terms += [(flat[2, :], E * D), (flat[3, :], E * E * D), (flat[2, :], E), (flat[3, :], E * E)]
        found = [self.device.product(weight, column) for weight, column in terms]
        found += [xp.zeros_like(found[0])] * (6 - len(found))
        return self.device.to_float64(xp.stack(found))


class FusedPairs:
    """The same by kernels for a GPU."""

    def __init__(self, device: Device, X, layout: Layout):
        self._turned, self._layout = X.mT.contiguous(), layout

    def values(self, rates: np.ndarray, share: np.ndarray):
        from ...kernels.device_learnt import column_table, each_kernel  # imported here because Triton requires CUDA

        self._columns = column_table(rates, share, self._layout.categorical, self._turned)
        return each_kernel(self._turned, self._columns, room_for_pairs(share), self._layout.has_sums)

    def sums(self, weights):
        from ...kernels.device_learnt import gradient_sums

        return gradient_sums(self._turned, self._columns, weights, self._layout.has_sums)


class DeviceSample:
    """Some rows on a device."""

    def __init__(self, device: Device, layout: Layout):
        self.device, self.layout, self._one = device, layout, None

    def load(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, blocks: None = None) -> None:
        """Take other rows; there are no blocks on a device."""
        X = self.device.put(X, np.float32)
        self._pairs: Any = (FusedPairs if self.device.has_triton else PlainPairs)(self.device, X, self.layout)
        if self._one is None or self._one.shape[0] != X.shape[0]:
            self._one = self.device.eye(X.shape[0])
        self._Y, self._inverse_weight = self.device.put(Y, np.float64), self.device.put(1.0 / weight)

    def scores(self, part: dict[str, np.ndarray]) -> np.ndarray:
        """Leave-one-out scores (m, c) under some parameters."""
        device = self.device
        rates, share = np.exp(part["widths"][:, None] + part["weights"]), shares(part["weights"])
        self._each = self._pairs.values(rates, share)
        self._noise = float(np.exp(part["noise"][0])) * self._inverse_weight
        amplitudes = device.put(np.exp(part["mixture"])[: self._each.shape[0]], np.float32)
        K = device.xp.sum(self._each * amplitudes[:, None, None], axis=0)
        G = device.to_float64(K) + self._one * self._noise
        self._found = DeviceLeaveOneOut.of(device, G, self._Y, self._one)
        return device.get(self._found.scores)

    def gradient(self, part: dict[str, np.ndarray], R: np.ndarray) -> dict[str, np.ndarray]:
        """∂L by weights, widths, mixture and noise, from R = ∂L/∂s of the scores that were computed last."""
        a, rates = np.exp(part["mixture"]), np.exp(part["widths"][:, None] + part["weights"])
        share = shares(part["weights"])
        room = room_for_pairs(share)
        trace, by_mixture, sums = self._sums(R, a, room)
        of_pairs = by_mixture[3] if len(by_mixture) == 4 and room > LEAST_PAIRS else 0.0
        by_width = np.array(
            [-rates[0] * a[0] * sums[0], -2.0 * rates[1] ** 2 * a[1] * sums[1], np.zeros(rates.shape[1])]
        )
        by_weights = np.zeros_like(part["weights"])
        if self.layout.has_sums:
            # of the additive and pairs kernels; a row with itself adds a constant to ∂L/∂u, which the softmax ignores
            by_width[2] = -rates[2] * share * (sums[2] - share * sums[3])
            by_share = sums[4] - share * sums[5] + 2.0 * a[3] / room * of_pairs * share
            by_weights = 2.0 * share * (by_share - share @ by_share)  # u = softmax(2·weights)
        return {
            "weights": by_weights + by_width.sum(axis=0),
            "widths": by_width.sum(axis=1),
            "mixture": a * np.pad(by_mixture, (0, len(a) - len(by_mixture))),
            "noise": trace,
        }

    def _sums(self, R: np.ndarray, a: np.ndarray, room: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Σνv over the diagonal, Σvk of each kernel, and the sums over pairs of every column, with v = ∂L/∂K."""
        device, xp, each = self.device, self.device.xp, self._each
        V = self._found.gradient(xp, device.put(R, np.float64))
        v = xp.astype(V, xp.float32)
        weights = [v * each[0, ...], v * each[1, ...]]
        if self.layout.has_sums:
            r = (2.0 * float(a[3]) / room) * v
            weights += [float(a[2]) * v + r * each[2, ...], r]
        sums = self._pairs.sums(xp.stack(weights))
        trace = xp.sum(xp.linalg.diagonal(V) * self._noise)
        by_mixture = device.to_float64(xp.sum(each * v[None, ...], axis=(1, 2)))
        parts = [xp.reshape(part, (-1,)) for part in (trace, by_mixture, sums)]  # one transfer for all of them
        found, k = device.get(xp.concat(parts)), 1 + each.shape[0]
        return float(found[0]), found[1:k], found[k:].reshape(6, -1)


def scores_of_others(device: Device, kernel, noise: np.ndarray, X: np.ndarray, Y: np.ndarray, others: np.ndarray):
    """Scores of other rows by the ridge regression of rows X (m, d) with targets Y (m, k) and noise (m,)."""
    X, others = (device.put(part.astype(np.float32), np.float64) for part in (X, others))
    lower = device.cholesky(kernel.gram_on_device(device, X) + device.eye(X.shape[0]) * device.put(noise))
    if lower is None:
        raise np.linalg.LinAlgError("The kernel matrix of a sample is not positive definite.")
    coef = device.solve_lower(lower, device.solve_lower(lower, device.put(Y)), transposed=True)
    return device.get(kernel.on_device(device, others, X) @ coef)


def scores_with_centers(device: Device, kernel, noise: float, weight: np.ndarray, X, centers, Y) -> np.ndarray:
    """Leave-one-out scores with some rows as centres, by leverages: y − (y − f)/(1 − h)."""
    points, Z = device.put(X, np.float64), device.put(X[centers], np.float64)
    root = device.put(np.sqrt(weight))[:, None]
    Phi = kernel.on_device(device, points, Z) * root
    lower = device.cholesky(Phi.mT @ Phi + noise * kernel.gram_on_device(device, Z))
    if lower is None:
        raise np.linalg.LinAlgError("The matrix of a sample is not positive definite.")
    half, targets = device.solve_lower(lower, Phi.mT), device.put(Y)
    fitted = half.mT @ (half @ (root * targets)) / root
    leverage = device.xp.sum(half * half, axis=0)[:, None]
    return device.get(targets - (targets - fitted) / (1.0 - leverage))
