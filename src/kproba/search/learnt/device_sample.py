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
    def of(cls, device: Device, G, Y) -> DeviceLeaveOneOut:
        """METHODS §7: s = Y − α/γ with γ = diag Γ."""
        lower = device.cholesky(G)
        if lower is None:
            raise np.linalg.LinAlgError("The kernel matrix of a sample is not positive definite.")
        half = device.solve_lower(lower, device.eye(G.shape[0]))
        inverse, diagonal = half.mT @ half, device.xp.sum(half * half, axis=0)[:, None]
        alpha = inverse @ Y
        return cls(inverse, diagonal, alpha, Y - alpha / diagonal)

    def gradient(self, xp, R):
        """∂L/∂K (m, m), from R = ∂L/∂s: see :meth:`.sample.LeaveOneOut.gradient`."""
        B, e = R / self.diagonal, self.alpha / self.diagonal
        pulled = xp.sum(B * e, axis=1, keepdims=True) * self.inverse
        whole = self.inverse @ (B @ self.alpha.mT - pulled)
        return 0.5 * (whole + whole.mT)


class DeviceSample:
    """Some rows on a device."""

    def __init__(self, device: Device, layout: Layout):
        self.device, self.layout = device, layout

    def load(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, blocks: None = None) -> None:
        """Take other rows; there are no blocks on a device."""
        X = self.device.put(X, np.float32)
        differences = self.device.xp.abs(X[:, None, :] - X[None, :, :])
        for j in self.layout.categorical:
            differences[:, :, j] = differ(self.device.xp, X[:, None, j], X[None, :, j])
        self._D = self.device.xp.reshape(differences, (-1, X.shape[1]))
        self._Y, self._weight = self.device.put(Y, np.float64), weight

    def scores(self, part: dict[str, np.ndarray]) -> np.ndarray:
        """Leave-one-out scores (m, c) under some parameters."""
        device, m = self.device, len(self._weight)
        self._each = self._kernels(part)
        amplitudes = np.exp(part["mixture"])
        self._noise = float(np.exp(part["noise"][0])) / self._weight
        K = sum(float(a) * k for a, k in zip(amplitudes, self._each))
        G = device.to_float64(device.xp.reshape(K, (m, m))) + device.eye(m) * device.put(self._noise)
        self._found = DeviceLeaveOneOut.of(device, G, self._Y)
        return device.get(self._found.scores)

    def _kernels(self, part: dict[str, np.ndarray]) -> list:
        """The four kernels of all pairs (m²,); the last two are left out with too many columns."""
        device, xp, D = self.device, self.device.xp, self._D
        rates = [self._put(rate) for rate in np.exp(part["widths"][:, None] + part["weights"])]
        found = [xp.exp(-device.product(D, rates[0])), xp.exp(-device.product(D * D, rates[1] * rates[1]))]
        if self.layout.has_sums:
            share = shares(part["weights"])
            self._powers = xp.exp(-D * rates[2])
            additive = device.product(self._powers, self._put(share))
            squares = device.product(self._powers * self._powers, self._put(share**2))
            found += [additive, (additive * additive - squares) / room_for_pairs(share)]
        return found

    def _put(self, values: np.ndarray):
        return self.device.put(values, np.float32)

    def gradient(self, part: dict[str, np.ndarray], R: np.ndarray) -> dict[str, np.ndarray]:
        """∂L by weights, widths, mixture and noise, from R = ∂L/∂s of the scores that were computed last."""
        device, xp = self.device, self.device.xp
        V = self._found.gradient(xp, device.put(R, np.float64))
        trace = device.get(xp.linalg.diagonal(V)) @ self._noise
        v = xp.reshape(xp.astype(V, xp.float32), (-1,))
        a, rates = np.exp(part["mixture"]), np.exp(part["widths"][:, None] + part["weights"])
        by_width = np.zeros_like(rates)
        by_width[0] = -rates[0] * a[0] * self._total(v * self._each[0], self._D)
        by_width[1] = -2.0 * rates[1] ** 2 * a[1] * self._total(v * self._each[1], self._D * self._D)
        by_weights = np.zeros_like(part["weights"])
        if self.layout.has_sums:
            share = shares(part["weights"])
            by_rate, by_share = self._gradient_of_sums(v, share, a)
            by_width[2] = -rates[2] * by_rate
            by_weights = 2.0 * share * (by_share - share @ by_share)  # u = softmax(2·weights)
        by_mixture = np.zeros(len(a))
        by_mixture[: len(self._each)] = [float(xp.sum(v * each)) for each in self._each]
        return {
            "weights": by_weights + by_width.sum(axis=0),
            "widths": by_width.sum(axis=1),
            "mixture": a * by_mixture,
            "noise": trace,
        }

    def _gradient_of_sums(self, v, share: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the additive and pairs kernels: −∂L/∂rate_j, and ∂L/∂u_j up to a constant, which the softmax ignores.

        A row with itself adds such a constant to ∂L/∂u, so the diagonal needs no case of its own.
        """
        E, D, room = self._powers, self._D, room_for_pairs(share)
        _, _, additive, pairs = self._each
        r = (2.0 * float(a[3]) / room) * v
        p = float(a[2]) * v + r * additive
        by_rate = share * (self._total(p, E * D) - share * self._total(r, E * E * D))
        by_room = 0.0 if room == LEAST_PAIRS else float(self.device.xp.sum(v * pairs))
        by_share = self._total(p, E) - share * self._total(r, E * E) + 2.0 * a[3] / room * by_room * share
        return by_rate, by_share

    def _total(self, weights, columns) -> np.ndarray:
        """The weighted sum of the rows (m²,) × (m², d)."""
        return self.device.get(self.device.product(weights, columns)).astype(np.float64)
