"""Kernel logistic regression on a device: the counterparts of :class:`.likelihood.Design` and its objective.

Newton's method and its conjugate gradients run there with all their vectors; only numbers that decide what comes next
travel to the CPU. Other solvers, tags and leave-one-out of two classes ask the design for single products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Device, dot, is_tensor
from ..basis.basis import Basis
from ..basis.device_basis import DeviceBasis
from ..data.items import Items
from ..data.rows import Rows
from ..solvers.cholesky import CholeskyFactor, rounding_level, smallest_jitter, with_jitter
from .likelihood import KEEP_BYTES, LOW_PRECISION, Design, Objective, Point, Preconditioner
from .losses import Multinomial

#: Fewer entries of Φ times classes are not worth the transfers.
FEWEST = 1 << 18


def design_on(device: Device, rows: Rows, basis: Basis, intercept: bool) -> DeviceDesign | None:
    """The design of the rows on a device, if it serves them."""
    return DeviceDesign(rows, basis, intercept, device) if DeviceDesign.serves(rows, basis) else None


class DeviceDesign(Design):
    """Φ (n, b + 1) in float64 on a device, and a copy in memory for those who ask for it."""

    def __init__(self, rows: Rows, basis: Basis, intercept: bool, device: Device):
        self.device, self.rows, self.basis, self.intercept = device, rows, basis, intercept
        self.n_columns = basis.n_centers + intercept
        self._penalty: Any = None

    @staticmethod
    def serves(rows: Rows, basis: Basis) -> bool:
        """Whether the rows can be computed there, fit, and are many enough to be worth the transfers."""
        is_plain = basis.kernel.runs_on_devices and not isinstance(rows.X, Items) and not rows.is_sparse
        is_plain = is_plain and basis.owner is None
        size = len(rows) * basis.n_centers
        return is_plain and size * rows.n_classes >= FEWEST and size <= KEEP_BYTES // 8 - len(rows)

    @cached_property
    def _kept(self) -> np.ndarray:  # type: ignore[override]
        return self.device.get(self.there)

    @cached_property
    def basis_for_scores(self) -> DeviceBasis:
        return DeviceBasis.of(self.basis, self.device, use_float64=True)

    def gram_of_centers(self) -> np.ndarray:
        lower = self.device.xp.tril(self.basis_for_scores.gram_on_device())  # the only part that is promised
        return self.device.get(lower + self.device.xp.tril(lower, k=-1).mT)

    def penalty(self, gram: np.ndarray) -> Any:
        """The matrix of the penalty on the device; one is kept."""
        if self._penalty is None or self._penalty[0] is not gram:
            self._penalty = gram, self.device.put(gram)
        return self._penalty[1]

    def moved(self, objective: Objective) -> Any:
        """The objective with vectors on the device; without a penalty, and for tags, it stays as it is."""
        if objective.rho == 0.0 or not isinstance(objective.loss, Multinomial):
            return objective
        return DeviceObjective(self, objective)

    @cached_property
    def there(self) -> Any:
        """Φ on the device."""
        basis = self.basis_for_scores
        parts = [basis(batch.X) for batch in basis.batches(self.rows)]
        constant = self.device.zeros((len(self.rows), int(self.intercept))) + 1.0
        return self.device.xp.concat([self.device.xp.concat(parts), constant], axis=1)

    def columns(self, X: np.ndarray) -> np.ndarray:
        return self.device.get(self.there @ self.device.put(X))

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        return self.device.get(self.there.mT @ self.device.put(R))

    def gram(self, weight: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(weight)
        phi = self.device.xp.take(self.there, self.device.put(used), axis=0)
        return self.device.get(phi.mT @ (phi * self.device.put(weight[used])[:, None]))

    def solved(self, factor) -> Any:
        """ψ = L⁻¹φ of every row, on the device; in float32 where the CPU uses it too."""
        return self.solved_by(self.device.put(np.tril(factor.lower)))  # LAPACK leaves other numbers above the diagonal

    def solved_by(self, lower) -> Any:
        """The same, from a factor on the device."""
        xp, psi = self.device.xp, self.device.solve_lower(lower, self.there.mT).mT
        return xp.astype(psi, xp.float32) if len(self.rows) * self.n_columns > LOW_PRECISION else psi

    def spread_of_classes(self, objective, P: np.ndarray, weight: np.ndarray, rows: np.ndarray, base: bool):
        """Diagonal blocks (m, c, c) of M for some rows, before the contrasts: see :func:`.leave_one_out._coupling`.

        All classes are solved together: one after the other would leave most of a GPU idle.
        """
        device, xp, root = self.device, self.device.xp, np.sqrt(weight)
        n, c = P.shape
        halves = self._halves(objective, (np.maximum(P, 1e-12) * weight[:, None]).T)
        inner = device.eye(n)
        if self.intercept and not base:
            inner = inner + device.put(np.outer(root, root / (root @ root)))
        scaled = halves * device.put((P * root[:, None]).T)[:, None, :]
        inner = inner - xp.sum(scaled.mT @ scaled, axis=0)
        lower = smallest_jitter(lambda jitter: device.cholesky(inner + jitter * device.eye(n)), 1e-10, 1e-10)[0]
        some = xp.take(halves, device.put(rows), axis=2)
        image = xp.permute_dims(scaled.mT @ some, (1, 2, 0))  # (n, m, c)
        cross = xp.reshape(device.solve_lower(lower, xp.reshape(image, (n, -1))), (n, len(rows), c))
        blocks = xp.permute_dims(cross, (1, 2, 0))
        spread = device.get(blocks @ blocks.mT)
        np.einsum("ijj->ij", spread)[:] += device.get(xp.sum(some * some, axis=1).mT)
        return spread

    def _halves(self, objective, weights: np.ndarray) -> Any:
        """L⁻¹φ of all rows (c, b + 1, n), where LLᵀ = Σ wφφᵀ + ρK, for the weights (c, n) of every class."""
        device, xp, phi = self.device, self.device.xp, self.there
        H = phi.mT @ (phi * device.put(weights)[:, :, None])
        system, one = H + objective.rho * self.penalty(objective.gram), device.eye(self.n_columns)
        diagonals = device.get(xp.linalg.diagonal(H))
        lower = self._factored(objective, system, diagonals)
        if lower is None:  # some class needs more than the usual diagonal
            size = float(np.diagonal(objective.gram).mean())

            def one_by_one(k: int):
                own = system[k, ...]
                return with_jitter(lambda e: device.cholesky(own + e * one), diagonals[k], size, objective.rho)

            lower = xp.stack([one_by_one(k) for k in range(len(weights))])
        return device.solve_lower(lower, xp.broadcast_to(phi.mT, (len(weights), *phi.mT.shape)))

    def _factored(self, objective, system, diagonals: np.ndarray) -> Any:
        """The factors of all systems with a diagonal at rounding level, as in ``with_jitter``; None if one fails."""
        penalty = objective.rho * float(np.diagonal(objective.gram).mean())
        levels = np.array([rounding_level(diagonal + penalty) for diagonal in diagonals])
        if (penalty < levels).any():
            return None
        return self.device.cholesky(system + self.device.put(levels)[:, None, None] * self.device.eye(self.n_columns))


class DevicePreconditioner(Preconditioner):
    """A factor on a device, for vectors there and for those of NumPy."""

    design: Any
    lower: Any
    taken: Any

    def __init__(self, lower, weight, design: DeviceDesign, rho: float):
        for name, value in {"lower": lower, "taken": weight, "design": design, "rho": rho, "own": None}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def factors(self) -> list[CholeskyFactor]:
        return [CholeskyFactor(np.asfortranarray(self.design.device.get(self.lower)))]

    @cached_property
    def weight(self) -> np.ndarray:
        return self.design.device.get(self.taken)

    @cached_property
    def psi(self) -> Any:
        return self.design.solved_by(self.lower)

    def whiten(self, G):
        return self.design.device.solve_lower(self.lower, G) if is_tensor(G) else super().whiten(G)

    def unwhiten(self, Z):
        return self.design.device.solve_lower(self.lower, Z, transposed=True) if is_tensor(Z) else super().unwhiten(Z)

    def solve(self, G):
        return self.unwhiten(self.whiten(G)) if is_tensor(G) else super().solve(G)


@dataclass(frozen=True)
class DeviceObjective:
    """What Newton's method asks of an :class:`.likelihood.Objective`, with all vectors in float64 on a device."""

    design: DeviceDesign
    here: Objective

    @property
    def rho(self) -> float:
        return self.here.rho

    def take_in(self, X: np.ndarray) -> Any:
        return self.design.device.put(X, np.float64)

    def hand_out(self, point: Point) -> Point:
        """The point in NumPy."""
        get = self.design.device.get
        return Point(get(point.X), get(point.U), get(point.P), get(point.penalty_gradient), point.value)

    def zero(self) -> Point:
        return self.at(self.design.device.zeros((self.design.n_columns, self.here.loss.n_columns)))

    def at(self, X) -> Point:
        pull, U = self._penalty_gradient(X), self.design.there @ X
        loss, P = self._evaluate(U)
        return Point(X, U, P, pull, float(loss) + 0.5 * dot(X, pull))

    def is_exhausted(self, point: Point, tol: float) -> bool:
        return self.here.is_exhausted(point, tol)

    def gradient(self, point: Point) -> Any:
        return self.design.there.mT @ self._residual(point.P) + point.penalty_gradient

    def whitened_product(self, point: Point, factor: DevicePreconditioner, V) -> Any:
        """See :meth:`.likelihood.Objective.whitened_product`."""
        xp, psi = self.design.device.xp, factor.psi
        other = self.rho / factor.rho if self.rho != factor.rho else 1.0
        if self._low.get("point") is not point:  # all products of a step share the probabilities
            parts = {"P": point.P, "weight": self._weight, "taken": factor.taken[:, None]}
            self._low.update({name: xp.astype(part, psi.dtype) for name, part in parts.items()}, point=point)
        P, weight, taken = (self._low[name] for name in ("P", "weight", "taken"))
        U = self.design.device.product(psi, xp.astype(V, psi.dtype))
        weighted = self.here.loss.curvature_product(P, U) * weight - (other * taken) * U
        return other * V + self.design.device.to_float64(self.design.device.product(psi.mT, weighted))

    @cached_property
    def _low(self) -> dict[str, Any]:
        """The probabilities of a point and the weights in the precision of ψ."""
        return {}

    def preconditioner(self, point: Point) -> DevicePreconditioner:
        device, design, gram = self.design.device, self.design, self.here.gram
        thinned = device.put(self.here.design.rows.weight * self.here._thinned)
        weight = device.xp.clip(self._mean_curvature(point.P), 1e-8, None) * thinned
        phi = design.there
        if (used := np.flatnonzero(self.here._thinned)).size < self.here.n_rows:
            phi, kept = (device.xp.take(part, device.put(used), axis=0) for part in (phi, weight))
        else:
            kept = weight
        H = phi.mT @ (phi * kept[:, None])
        system, one = H + self.rho * design.penalty(gram), device.eye(design.n_columns)
        diagonal, size = device.get(device.xp.linalg.diagonal(H)), float(np.diagonal(gram).mean())
        lower = with_jitter(lambda jitter: device.cholesky(system + jitter * one), diagonal, size, self.rho)
        return DevicePreconditioner(lower, weight, design, self.rho)

    def ray(self, point: Point, direction):
        """See :meth:`.likelihood.Objective.ray`; the three numbers of a point travel together."""
        along, pull = self.design.there @ direction, self._penalty_gradient(direction)
        cross, square = dot(direction, point.penalty_gradient), dot(direction, pull)
        base, xp = 0.5 * dot(point.X, point.penalty_gradient), self.design.device.xp

        def at(t: float):
            U = point.U + t * along
            loss, P = self._evaluate(U)
            bent = self.here.loss.curvature_product(P, along) * self._weight
            found = xp.stack([loss, xp.sum(self._residual(P) * along), xp.sum(bent * along)])
            loss, slope, curvature = self.design.device.get(found).tolist()
            value = loss + base + t * cross + 0.5 * t * t * square
            moved = Point(point.X + t * direction, U, P, point.penalty_gradient + t * pull, value)
            return moved, slope + cross + t * square, curvature + square

        return at

    def _penalty_gradient(self, X) -> Any:
        return self.rho * (self.design.penalty(self.here.gram) @ X)

    @cached_property
    def _weight(self) -> Any:
        return self.design.device.put(self.design.rows.weight[:, None])

    @cached_property
    def _targets(self) -> Any:
        return self.design.device.put(self.design.rows.targets())

    @cached_property
    def _contrasts(self) -> Any:
        loss: Any = self.here.loss
        return self.design.device.put(loss._contrasts)

    def _evaluate(self, U) -> tuple[Any, Any]:
        """The loss, a tensor, and the probabilities: see :meth:`.losses.Multinomial.evaluate`."""
        xp = self.design.device.xp
        F = U @ self._contrasts.mT
        F = F - xp.max(F, axis=1, keepdims=True)
        P = xp.exp(F)
        total = xp.sum(P, axis=1, keepdims=True)
        own = xp.sum(F * self._targets, axis=1, keepdims=True)
        return xp.sum(self._weight * (xp.log(total) - own)), P / total

    def _residual(self, P) -> Any:
        """∂loss/∂U (n, k)."""
        return ((P - self._targets) @ self._contrasts) * self._weight

    def _mean_curvature(self, P) -> Any:
        xp, loss = self.design.device.xp, self.here.loss
        P = P[:, :-1] if loss.base else P
        return (xp.sum(P * (1.0 - P), axis=1) if loss.base else 1.0 - xp.sum(P * P, axis=1)) / loss.n_columns
