"""The leave-one-out loss of a sample and its gradient on a device: the counterpart of :mod:`.sample`.

Everything is over all m × m pairs, in float32 up to the kernel matrix and in float64 from there on. A step of learning
is some fifty small operations, which a GPU replays; only rows, parameters and the gradient travel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Device, Replayed
from ...kernels.additive import LEAST_PAIRS
from ...kernels.codes import differ
from .device_losses import Slopes
from .parameters import Layout

NOT_DEFINITE = "The kernel matrix of a sample is not positive definite."


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
            raise np.linalg.LinAlgError(NOT_DEFINITE)
        return cls.by_factor(device, lower, Y, device.eye(G.shape[0]))

    @classmethod
    def by_factor(cls, device: Device, lower, Y, one) -> DeviceLeaveOneOut:
        """The same from a Cholesky factor and the identity."""
        half = device.solve_lower(lower, one)
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
    """All pairs of rows and what the gradient needs of them, column by column; ``turned`` (d, m) are the columns."""

    def __init__(self, device: Device, turned, layout: Layout):
        self.device, self.m, self.has_sums = device, turned.shape[1], layout.has_sums
        X = turned.mT
        differences = device.xp.abs(X[:, None, :] - X[None, :, :])
        for j in layout.categorical:
            differences[:, :, j] = differ(device.xp, X[:, None, j], X[None, :, j])
        self._D = device.xp.reshape(differences, (-1, X.shape[1]))

    def values(self, columns, one_over_room):
        """The four kernels (4, m, m), or the first two with too many columns; ``columns`` are rates, shares, codes."""
        product, xp, D = self.device.product, self.device.xp, self._D
        first, second, third, share = (columns[k, :] for k in range(4))
        found = [xp.exp(-product(D, first)), xp.exp(-product(D * D, second * second))]
        if self.has_sums:
            self._powers = xp.exp(-D * third)
            additive = product(self._powers, share)
            squares = product(self._powers * self._powers, share * share)
            found += [additive, (additive * additive - squares) * one_over_room]
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

    def __init__(self, device: Device, turned, layout: Layout):
        self._turned, self._has_sums = turned, layout.has_sums

    def values(self, columns, one_over_room):
        from ...kernels.device_learnt import each_kernel  # imported here because Triton requires CUDA

        self._columns = columns
        return each_kernel(self._turned, columns, one_over_room, self._has_sums)

    def sums(self, weights):
        from ...kernels.device_learnt import gradient_sums

        return gradient_sums(self._turned, self._columns, weights, self._has_sums)


class DeviceSample:
    """Some rows on a device, always the same number of them.

    ``loss(part, scores, Y, share)`` gives the mean loss and its gradients as tensors (:mod:`.device_losses`).
    """

    def __init__(self, device: Device, layout: Layout, loss: Callable[..., Slopes]):
        self._replayed = Replayed(device, _Step(device, layout, loss))

    def load(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, blocks: None = None) -> None:
        """Take other rows; there are no blocks on a device."""
        self._rows = np.ascontiguousarray(X.T, dtype=np.float32), Y.astype(np.float64, copy=False), weight

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss, without the prior of the parameters, and its gradient."""
        failed, loss, *gradient = self._replayed(*self._rows, x).tolist()
        if failed:
            raise np.linalg.LinAlgError(NOT_DEFINITE)
        return loss, np.array(gradient)


class _Step:
    """Whether the Cholesky factor failed, the loss and the gradient, as one vector."""

    def __init__(self, device: Device, layout: Layout, loss: Callable[..., Slopes]):
        self.device, self.layout, self.loss = device, layout, loss
        codes = np.isin(np.arange(layout.n_columns), layout.categorical)
        self._codes = device.put(codes[None].astype(np.float64))

    def __call__(self, turned, Y, weight, x):
        """Of rows (d, m) in float32, targets, weights and parameters."""
        device, xp, part = self.device, self.device.xp, self.layout.split(x)
        table, one = _Table.of(xp, part, self.layout.n_columns), device.eye(turned.shape[1])
        pairs: Any = (FusedPairs if device.has_triton else PlainPairs)(device, turned, self.layout)
        columns = xp.concat([table.rates, table.share[None, :], self._codes])
        each = pairs.values(xp.astype(columns, xp.float32), xp.astype(table.one_over_room, xp.float32))
        amplitudes = xp.astype(table.a[: each.shape[0]], xp.float32)
        K = xp.sum(each * amplitudes[:, None, None], axis=0)
        noise = xp.exp(part["noise"]) / weight
        lower, failed = device.cholesky_and_flag(device.to_float64(K) + one * noise)
        found = DeviceLeaveOneOut.by_factor(device, lower, Y, one)
        loss, R, by_link = self.loss(part, found.scores, Y, weight / xp.sum(weight))
        V = found.gradient(xp, R)
        v = xp.astype(V, xp.float32)
        by_mixture = device.to_float64(xp.sum(each * v[None, ...], axis=(1, 2)))
        sums = pairs.sums(self._weights_of_pairs(each, v, table))
        slopes = {**table.gradient(xp, self.layout, by_mixture, sums), **by_link}
        slopes["noise"] = xp.sum(xp.linalg.diagonal(V) * noise)
        parts = [failed, loss, *(slopes[name] for name in self.layout.places if name in slopes)]
        return xp.concat([xp.reshape(each, (-1,)) for each in parts])

    def _weights_of_pairs(self, each, v, table: _Table):
        """v·k₁, v·k₂, and ∂L by the sums over columns of which the additive and pairs kernels consist."""
        xp = self.device.xp
        weights = [v * each[0, ...], v * each[1, ...]]
        if self.layout.has_sums:
            a, room = xp.astype(table.a, xp.float32), xp.astype(table.one_over_room, xp.float32)
            r = (2.0 * a[3] * room) * v
            weights += [a[2] * v + r * each[2, ...], r]
        return xp.stack(weights)


class _Table(NamedTuple):
    """What the parameters say about the columns and the mixture, as tensors in float64."""

    rates: Any
    share: Any
    a: Any
    room: Any
    one_over_room: Any

    @classmethod
    def of(cls, xp, part: dict[str, Any], d: int) -> _Table:
        """See :func:`.pairs.shares` and :func:`kproba.kernels.additive.room_for_pairs`."""
        weights = part["weights"][None, :] + xp.reshape(part["factors"], (3, d))
        share = xp.exp(2.0 * (weights[2, :] - xp.max(weights[2, :])))
        share = share / xp.sum(share)
        room = xp.clip(1.0 - xp.sum(share * share), LEAST_PAIRS, None)
        one_over_room = 1.0 / room if d > 1 else xp.zeros_like(room)  # one column has no pairs
        rates = xp.exp(part["widths"][:, None] + weights)
        return cls(rates, share, xp.exp(part["mixture"]), room, one_over_room)

    def gradient(self, xp, layout: Layout, by_mixture, sums) -> dict[str, Any]:
        """∂L by weights, factors, widths and mixture, from Σvk of each kernel and sums over pairs of each column."""
        rates, share, a, room, one_over_room = self
        by_rate = [-rates[0, :] * a[0] * sums[0, :], -2.0 * rates[1, :] ** 2 * a[1] * sums[1, :]]
        missing = xp.zeros_like(a)[by_mixture.shape[0] :]
        by_share = of_third = xp.zeros_like(share)
        if layout.has_sums:
            # of the additive and pairs kernels; a row with itself adds a constant to ∂L/∂u, which the softmax ignores
            of_pairs = xp.where(room > LEAST_PAIRS, by_mixture[3], xp.zeros_like(room)) * one_over_room
            of_third = -rates[2, :] * share * (sums[2, :] - share * sums[3, :])
            by_share = sums[4, :] - share * sums[5, :] + 2.0 * a[3] * of_pairs * share
        of_share = 2.0 * share * (by_share - xp.sum(share * by_share))  # u = softmax(2·weights)
        by_weights = xp.stack([*by_rate, of_third + of_share])
        return {
            "weights": xp.sum(by_weights, axis=0),
            "factors": xp.reshape(by_weights, (-1,)),
            "widths": xp.sum(xp.stack([*by_rate, of_third]), axis=1),
            "mixture": a * xp.concat([by_mixture, missing]),
        }


def scores_of_others(device: Device, kernel, noise: np.ndarray, X: np.ndarray, Y: np.ndarray, others: np.ndarray):
    """Scores of other rows by the ridge regression of rows X (m, d) with targets Y (m, k) and noise (m,)."""
    X, others = (device.put(part.astype(np.float32), np.float64) for part in (X, others))
    lower = device.cholesky(kernel.gram_on_device(device, X) + device.eye(X.shape[0]) * device.put(noise))
    if lower is None:
        raise np.linalg.LinAlgError(NOT_DEFINITE)
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
