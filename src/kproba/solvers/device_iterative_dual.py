"""The dual form of :mod:`.iterative_dual` on a device, for more rows than a stored kernel matrix allows.

(M + ρI)α = Ω^½t̄ is solved by conjugate gradients for the targets and random signs together. K is computed anew for
every product, in tiles and in float32. The preconditioner is the Nyström approximation M ≈ AK_mm⁻¹Aᵀ with A = Ω^½K_nm
from m sampled rows, which is inverted as ρ(AK_mm⁻¹Aᵀ + ρI)⁻¹ = I − A(AᵀA + ρK_mm)⁻¹Aᵀ. This difference cancels where
an eigenvalue of M is far above ρ, so A is in float64. With K never stored, m can be ten times that of the CPU, and the
preconditioned system has a condition number near 1 + λ_m/ρ.

Leverages are estimated from the signs as in :mod:`.cg`. The second control variate is the inverse of M restricted to
leaves, small groups of near rows, instead of nearest neighbours: they are found without all distances.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np

from ..arrays import BLOCK_BYTES, Device
from ..kernels import Kernel
from ..progress import Progress
from ..threads import row_slices
from .cg import warn_not_converged
from .cholesky import rounding_level, smallest_jitter
from .dual import DualSolution
from .iterative_dual import FARTHEST_IN_FLOAT32, PROBE_TOL, TARGET_TOL, IterativeDual

#: Rows of the preconditioner, rows of a leaf, and the largest number of products.
SAMPLED, LEAF_ROWS, MOST_PRODUCTS = 10_000, 512, 500
#: A true residual that float32 leaves this near to its tolerance is not worth a product in float64, which takes ten
#: times as long.
NEAR = 3.0
#: The number of random signs fills the columns of a product up to a multiple of the first; the second is the least.
COLUMNS, FEWEST_PROBES = 32, 16
#: Share of the free memory that the features of the preconditioner may take; otherwise they are computed anew.
KEPT_SHARE = 0.4


@dataclass(frozen=True)
class DeviceIterativeDual(IterativeDual):
    """Preconditioned conjugate gradients on a device; ``kernel`` is a :class:`~kproba.kernels.Kernel`."""

    device: Any = None

    def _path(self, ridges: Sequence[float]) -> Iterator[DualSolution]:
        means, k = self.sums / self.weight[:, None], self.sums.shape[1]
        n_probes = FEWEST_PROBES + (-k - FEWEST_PROBES) % COLUMNS
        signs = self._signs(n_probes)
        target = self.device.xp.concat([self._root * self.device.put(means), signs], axis=1)
        tol, start = np.repeat([TARGET_TOL, PROBE_TOL], [k, n_probes]), None
        for ridge in ridges:
            nystrom = self._nystrom.at(ridge)
            products = partial(self._times, ridge, self._rounded), partial(self._times, ridge, self._points)
            system = System(self.device, *products, nystrom.precondition, self.progress)
            start = system.solve(target, tol, start)
            leverage = self._leverages(signs, start[:, k:], nystrom, ridge) / self.weight
            coef = self.device.get(self._root * start[:, :k])
            yield DualSolution(means - ridge * coef / self.weight[:, None], leverage, partial(np.copy, coef))

    @cached_property
    def _root(self):
        return self.device.put(np.sqrt(self.weight))[:, None]

    @cached_property
    def _points(self):
        return self.device.put(self.points, np.float64)

    @cached_property
    def _rounded(self):
        """The points in float32 if their squares do not overflow."""
        return self.device.put(self.points, np.float32 if abs(self.points).max() < FARTHEST_IN_FLOAT32 else np.float64)

    @cached_property
    def _nystrom(self) -> Nystrom:
        sample = np.random.RandomState(self.seed).permutation(self.n_points)[:SAMPLED]
        return Nystrom(self.device, self.kernel, self._points, self._root, np.sort(sample))

    def _signs(self, n_probes: int):
        drawn = np.random.default_rng(self.seed).integers(0, 2, (self.n_points, n_probes), dtype=np.int8)
        return 2.0 * self.device.to_float64(self.device.put(drawn)) - 1.0

    def _times(self, ridge: float, points, V):
        """(M + ρI)V in the precision of the points."""
        right, kernel = self.device.xp.astype(self._root * V, points.dtype), cast(Kernel, self.kernel)
        return self._root * kernel.times_on_device(self.device, points, points, right) + ridge * V

    def _leverages(self, signs, solved, nystrom: AtRidge, ridge: float) -> np.ndarray:
        """The diagonal (n,) of the hat matrix I − ρB with B = (M + ρI)⁻¹, from the solutions BZ for the signs Z."""
        xp, local = self.device.xp, self._local_inverse(ridge, signs)
        near = nystrom.diagonal()
        controls = [signs * nystrom.precondition(signs) - near[:, None], signs * local.image - local.diagonal[:, None]]
        draws = _without_controls(self.device, signs * solved, controls, local.diagonal)
        # B is at most I/ρ, and its diagonal at least that of a leaf alone
        inverse = xp.minimum(xp.maximum(xp.mean(draws, axis=1), local.diagonal), xp.ones_like(near) / ridge)
        return self.device.get(1.0 - ridge * inverse)

    def _local_inverse(self, ridge: float, signs) -> LocalInverse:
        """The inverse of M + ρI as if rows of other leaves did not exist."""
        device, xp, kernel = self.device, self.device.xp, cast(Kernel, self.kernel)
        images, diagonals = [], []
        for rows in self._leaves:
            X, root, own = (xp.take(part, device.put(rows), axis=0) for part in (self._points, self._root, signs))
            M, one = kernel.gram_on_device(device, X) * root * root.mT, device.eye(len(rows))
            level = rounding_level(device.get(xp.linalg.diagonal(M)))

            def decompose(shift: float, M=M, one=one):
                return device.cholesky(M + shift * one)

            half = device.solve_lower(smallest_jitter(decompose, level, max(ridge, level))[0], one)
            images.append(half.mT @ (half @ own))
            diagonals.append(xp.sum(half * half, axis=0))
        place = device.put(np.argsort(np.concatenate(self._leaves)))
        return LocalInverse(*(xp.take(xp.concat(parts), place, axis=0) for parts in (images, diagonals)))

    @cached_property
    def _leaves(self) -> list[np.ndarray]:
        return leaves(self.points, LEAF_ROWS)


class LocalInverse(NamedTuple):
    """The image (n, q) of the signs and the diagonal (n,) of a block-diagonal inverse."""

    image: Any
    diagonal: Any


def leaves(X: np.ndarray, most: int) -> list[np.ndarray]:
    """Indices of the rows in groups of at most ``most``: halves of halves along the widest column."""
    found, pending = [], [np.arange(len(X))]
    while pending:
        rows = pending.pop()
        if len(rows) <= most:
            found.append(rows)
            continue
        part, middle = X[rows], len(rows) // 2
        order = np.argpartition(part[:, part.std(axis=0).argmax()], middle)
        pending += [rows[order[middle:]], rows[order[:middle]]]
    return found


class Nystrom:
    """A = Ω^½K_nm (n, m) of some points, in blocks of rows, and AᵀA."""

    def __init__(self, device: Device, kernel, points, root, sample: np.ndarray):
        self.device, self.kernel, self._points, self._root = device, kernel, points, root
        self._centers = device.xp.take(points, device.put(sample), axis=0)
        self.n, self.m = points.shape[0], len(sample)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Rows and their features; these are kept if they fit into memory."""
        if self._kept is not None:
            return iter(self._kept)
        return ((rows, self._features(rows)) for rows in self._slices)

    @cached_property
    def _kept(self) -> list[tuple[slice, Any]] | None:
        fits = 8.0 * self.n * self.m <= KEPT_SHARE * self.device.free_bytes
        return [(rows, self._features(rows)) for rows in self._slices] if fits else None

    @property
    def _slices(self) -> list[slice]:
        return row_slices(self.n, 8 * self.m, BLOCK_BYTES)

    def _features(self, rows: slice):
        features = self.kernel.on_device(self.device, self._points[rows, ...], self._centers)
        features *= self._root[rows, ...]
        return features

    @cached_property
    def _squares(self):
        total = self.device.zeros((self.m, self.m))
        for _, A in self.blocks():
            total += A.mT @ A
        return total

    @cached_property
    def _gram(self):
        return self.kernel.gram_on_device(self.device, self._centers)

    def at(self, ridge: float) -> AtRidge:
        """The preconditioner for a total ridge ρ; jitter at rounding level keeps it positive definite."""
        system, one = self._squares + ridge * self._gram, self.device.eye(self.m)
        level = rounding_level(self.device.get(self.device.xp.linalg.diagonal(system)))

        def decompose(jitter: float):
            return self.device.cholesky(system + jitter * one)

        return AtRidge(self, smallest_jitter(decompose, level, level)[0])


class AtRidge(NamedTuple):
    """I − A(LLᵀ)⁻¹Aᵀ for the features A of a Nyström approximation."""

    nystrom: Nystrom
    lower: Any

    def precondition(self, residual):
        device, blocks = self.nystrom.device, self.nystrom.blocks
        pulled = device.zeros((self.nystrom.m, residual.shape[1]))
        for rows, A in blocks():
            pulled += A.mT @ residual[rows, ...]
        half = device.solve_lower(self.lower, pulled)
        coef = device.solve_lower(self.lower, half, transposed=True)
        return device.xp.concat([residual[rows, ...] - A @ coef for rows, A in blocks()])

    def diagonal(self):
        """The diagonal (n,): one minus the leverages of the model with m centres."""
        device = self.nystrom.device
        halves = (device.solve_lower(self.lower, A.mT) for _, A in self.nystrom.blocks())
        return 1.0 - device.xp.concat([device.xp.sum(half * half, axis=0) for half in halves])


@dataclass
class System:
    """``times(V)`` = (M + ρI)V in float32 and in float64, and its preconditioner; all columns share every product."""

    device: Device
    times: Any
    times_exactly: Any
    precondition: Any
    progress: Progress | None = None
    n_products: int = 0

    def solve(self, target, tol: np.ndarray, start=None):
        """(M + ρI)⁻¹ applied to ``target`` (n, k), to relative residuals of ``tol`` (k,); see :func:`.cg.solve`.

        The residual of the recurrence drifts from the true one in float32. So the true residual is computed when the
        recurrence ends, and columns that miss the tolerance restart from there. If float32 does not resolve the true
        residual, which takes an eigenvalue far above ρ, it is computed in float64, while corrections stay in float32.
        """
        size = np.maximum(self._norms(target), np.finfo(np.float64).tiny)
        alpha = self.device.xp.zeros_like(target) if start is None else start
        residual = target if start is None else target - self.times(alpha)
        left, times = self._norms(residual) / size, self.times
        missing = left > tol
        while missing.any() and self.n_products < MOST_PRODUCTS:
            before = left
            alpha = alpha + self._correction(residual, tol * size, missing)
            residual, left = self._true_residual(times, target, alpha, size)
            missing = left > tol
            stalled = missing & (left > 0.1 * before)
            if stalled.any() and (left <= NEAR * tol).all():
                break
            if stalled.any() and times is self.times:
                times = self.times_exactly
                residual, left = self._true_residual(times, target, alpha, size)
                missing = left > tol
            elif (stalled & (left > 0.5 * before)).any():
                break
        if (left > NEAR * tol).any():
            warn_not_converged(left, tol, self.n_products)
        return alpha

    def _true_residual(self, times, target, alpha, size: np.ndarray):
        residual = target - times(alpha)
        return residual, self._norms(residual) / size

    def _correction(self, residual, goal: np.ndarray, active: np.ndarray):
        """Solutions for the residuals of the active columns, until their norms are below ``goal`` (k,); zero for the
        others."""
        along = preconditioned = self.precondition(residual)
        found, fall = self.device.xp.zeros_like(residual), self._dots(residual, preconditioned)
        while active.any() and self.n_products < MOST_PRODUCTS:
            image = self.times(along)
            curvature = self._dots(along, image)
            active = active & (curvature > 0.0)  # otherwise only rounding errors are left of the residual
            step = self._scalars(np.divide(fall, curvature, out=np.zeros_like(fall), where=active))
            found += step * along
            residual = residual - step * image
            left = self._norms(residual) / goal
            self._count(left[active].max(initial=0.0))
            active = active & (left > 1.0)
            preconditioned = self.precondition(residual)
            fall, before = self._dots(residual, preconditioned), fall
            turn = np.divide(fall, before, out=np.zeros_like(fall), where=active)
            along = preconditioned + self._scalars(turn) * along
        return found

    def _count(self, left: float) -> None:
        self.n_products += 1
        if self.progress is not None:
            self.progress.step(f"{left:.1e} times the tolerance")

    def _dots(self, A, B) -> np.ndarray:
        return self.device.get(self.device.xp.sum(A * B, axis=0))

    def _norms(self, A) -> np.ndarray:
        return np.sqrt(self._dots(A, A))

    def _scalars(self, values: np.ndarray):
        return self.device.put(values)[None, :]


def _without_controls(device: Device, draws, controls: list, scale):
    """Draws (n, q) minus the combination of zero-mean controls that minimises the variance over all rows."""
    xp = device.xp
    centred = [(C - xp.mean(C, axis=1, keepdims=True)) / scale[:, None] for C in (draws, *controls)]
    inner = np.array([[float(xp.sum(A * B)) for B in centred] for A in centred[1:]])
    share = np.linalg.lstsq(inner[:, 1:], inner[:, 0], rcond=None)[0]
    for part, C in zip(share.tolist(), controls):
        draws = draws - part * C
    return draws
