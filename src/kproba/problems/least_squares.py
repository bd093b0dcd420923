"""The least-squares problem: coefficients and exact leave-one-out scores for many ridges in one basis.

A problem is a set of independent systems. The shared form (2010 Eq. 5) is one system for all classes; the class-wise
form (Eq. 7) is one per class, on the block of H that belongs to the class's own centres. A class-similarity kernel L
(Eq. 4) rotates the targets by L's eigenvectors; then each eigenvalue has its own ridge, and one decomposition of H
serves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from ..arrays import Device
from ..basis.basis import Basis, MomentsOf
from ..basis.device_basis import DeviceBasis
from ..basis.moments import Moments
from ..data.all_rows import SumsOverRows
from ..data.rows import Batch, Rows
from ..progress import Progress
from ..solvers.cholesky import CholeskyPath
from ..solvers.device_cholesky import DevicePath
from ..solvers.device_dual import DeviceDual, fits
from ..solvers.device_iterative_dual import DeviceIterativeDual
from ..solvers.dual import Dual
from ..solvers.iterative_dual import IterativeDual
from ..solvers.packed_dual import PackedDual
from ..solvers.path import Path
from ..solvers.registry import PATHS
from .base import Solution, with_scores
from .own_centers import coefficients_without, drop_held_out_centers, own_centers

#: Features up to this size are kept between ridges; larger ones are recomputed.
KEEP_BYTES = 8 << 20
#: Up to DENSE_CENTERS, the dual form stores a kernel matrix and its factor in float64; up to PACKED_CENTERS, both share
#: one square array, in float32 if the ridge allows (1.5 GiB); beyond, conjugate gradients need no matrix.
DENSE_CENTERS, PACKED_CENTERS = 4096, 20_000
#: With more centres than this, the ridge is chosen on a sample of this many rows, on the CPU and on a device.
RIDGE_CENTERS, RIDGE_CENTERS_ON_DEVICE = 8192, 20_000


class Group(NamedTuple):
    """Target columns that share a ridge, and the factor that multiplies it."""

    columns: np.ndarray
    ridge_factor: float = 1.0


class System(NamedTuple):
    """Centres of one independent system (None for all) and the targets it solves for."""

    centers: np.ndarray | None
    groups: list[Group]

    def of_centers(self, phi: np.ndarray) -> np.ndarray:
        return phi if self.centers is None else phi[:, self.centers]


@dataclass(frozen=True)
class ClassSimilarity:
    """L = VΛVᵀ over the classes: in the basis V, every direction is an ordinary ridge problem.

    With L²⊗H + λI (or λL⊗K for the RKHS penalty) the direction of eigenvalue ℓ has ridge λ/ℓ² (or λ/ℓ).
    """

    vectors: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, L: np.ndarray) -> ClassSimilarity:
        values, vectors = linalg.eigh(L)
        return cls(vectors, np.where(values > 1e-12 * values.max(), values, 0.0))

    def groups(self, power: int) -> list[Group]:
        """Directions grouped by eigenvalue; those with eigenvalue zero have no score and are omitted."""
        levels = np.unique(self.values[self.values > 0].round(12))
        return [Group(np.flatnonzero(np.isclose(self.values, v, atol=1e-11)), float(v) ** -power) for v in levels]


def leave_one_out(scores, leverage, targets, unit) -> np.ndarray:
    """(F − u·h·T)/(1 − u·h): the score of each row by the model without u of the row's weight.

    The basis and the total ridge nλ stay the same; h are the leverages per unit of weight.
    """
    taken = unit[:, None] * leverage
    floor = 1e-12  # leverage one: the model without the row does not exist at this ridge
    return (scores - taken * targets) / np.maximum(1.0 - taken, floor)


@dataclass(frozen=True)
class LeastSquares:
    """Rows, basis and penalty: everything but the ridge.

    ``given`` are moments of more rows, of which ``rows`` is a sample. Then coefficients are those of all rows, and
    leave-one-out scores, still exact, are those of the sample. ``own`` (n, k), for centres that belong to classes, are
    the centres to remove with each row, if they cannot be found from the rows.
    """

    rows: Rows
    basis: Basis
    rkhs: bool
    similarity: ClassSimilarity | None = None
    solver: str | type[Path] = "auto"
    clip_parameters: bool = False
    given: Moments | None = None
    seed: int = 0
    progress: Progress | None = None
    own: np.ndarray | None = None

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge λ, in the order given.

        With ``loo`` it includes the exact leave-one-out scores of all rows or of ``loo_rows``.
        """
        if self.is_dual:
            return self._dual_path(ridges, loo_rows)
        return self._primal_path(ridges, loo, loo_rows)

    has_cheap_loo = True

    @property
    def has_all_loo(self) -> bool:
        """The dual form computes the leverages of all rows anyway."""
        return self.is_dual

    @property
    def total_weight(self) -> float:
        return self.rows.total_weight if self.given is None else self.given.n

    def with_sums(self, everything: SumsOverRows, scaling, ridge: float) -> LeastSquares:
        """The problem on all rows, of which ``rows`` is a sample, for ridges near the given one."""
        basis = self.basis.for_sums(ridge, self.rkhs)
        return replace(self, basis=basis, given=everything.sum(MomentsOf(basis, everything.encoding(scaling))))

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions from the moments of all rows minus those of ``inside``, and the scores of these rows."""
        if self.basis.owner is not None:
            return self._hold_out_with_centers(inside, ridges)
        rest = self.moments - self.basis.moments(self.rows.take(inside))
        paths = self._paths(rest, self._path_type(len(ridges)))
        coefs = [self._finish(self._solve(rest, self._factors(paths, rest.n * ridge))) for ridge in ridges]
        found = (Solution(ridge, None, partial(np.copy, coef)) for ridge, coef in zip(ridges, coefs))
        return with_scores(found, self.basis, self.rows.X[inside])

    def _hold_out_with_centers(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """The same if centres belong to classes: the centres of the held-out rows are removed too."""
        rest = self.rows.without(inside)
        without = replace(self, rows=rest, basis=drop_held_out_centers(rest, self.basis))
        return with_scores(without.path(ridges, loo=False), without.basis, self.rows.X[inside])

    def on(self, device: Device | None) -> LeastSquares:
        """The same problem on a device, if classes share the centres, without similarity, clipping or own solver."""
        is_plain = self.basis.owner is None and self.similarity is None and not self.clip_parameters
        if device is None or not is_plain or not isinstance(self.solver, str):
            return self
        return replace(self, basis=DeviceBasis.of(self.basis, device))

    @property
    def _device(self) -> Device | None:
        return self.basis.device if isinstance(self.basis, DeviceBasis) else None

    def clear_cache(self) -> None:
        """Free the matrices; they are recomputed when needed."""
        for name in ("moments", "_gram", "_dual", "_kept_features", "_device_path"):
            self.__dict__.pop(name, None)

    @cached_property
    def moments(self) -> Moments:
        return self.basis.moments(self.rows) if self.given is None else self.given

    @cached_property
    def systems(self) -> list[System]:
        columns = np.arange(self.rows.n_targets)
        if self.similarity is not None:
            return [System(None, self.similarity.groups(power=1 if self.rkhs else 2))]
        owner = self.basis.owner
        if owner is None:
            return [System(None, [Group(columns)])]
        # centres of tags missing here (owner below zero) only serve the constant
        own = [System(np.flatnonzero(owner == y), [Group(columns[[y]])]) for y in np.unique(owner[owner >= 0])]
        constant = [System(None, [Group(columns[[-1]])])] if self.rows.is_multilabel else []
        return own + constant

    @property
    def is_dual(self) -> bool:
        """Whether the dual form applies: all distinct rows are centres, with the RKHS penalty and no other solver."""
        return (
            self.rkhs
            and self.given is None
            and self.basis.row_center is not None
            and self.basis.owner is None
            and self.similarity is None
            and not self.clip_parameters
            and self.solver in ("auto", "cg")
        )

    @property
    def n_scores(self) -> int:
        """Number of columns of coefficients and scores: with clipping every tag has its own constant, see
        ``_finish``."""
        apart = self.clip_parameters and self.rows.is_multilabel
        return 2 * self.rows.n_classes if apart else self.rows.n_targets

    @property
    def rows_for_ridge(self) -> int | None:
        """Number of distinct rows used to choose the ridge if a ridge has cubic cost; None for all."""
        if not self.is_dual:
            return None
        return RIDGE_CENTERS if self._device is None else RIDGE_CENTERS_ON_DEVICE

    @cached_property
    def is_iterative(self) -> bool:
        """Whether the dual form is solved by conjugate gradients, with estimated leverages."""
        if self._device is None or self.solver == "cg":
            return self.is_dual and (self.solver == "cg" or self._has_more_centers(PACKED_CENTERS))
        return self.is_dual and not fits(self._device, self.basis.n_centers)

    def _has_more_centers(self, number: int) -> bool:
        # a kernel that may be indefinite needs its matrix to be formed, because it is checked there
        return self.basis.n_centers > number and self.basis.kernel.is_definite

    def _path_type(self, n_ridges: int) -> type[Path]:
        """The solver by name, or the user's own; "auto" decomposes once if there are many ridges."""
        if not isinstance(self.solver, str):
            return self.solver
        # with a subset of centres, the RKHS penalty needs smaller ridges than the whitened form resolves
        is_resolved = not self.rkhs or self.similarity is not None or self.basis.row_center is not None
        pays = self.solver == "auto" and n_ridges > 3 and is_resolved
        name = "eigen" if pays else self.solver
        return PATHS.get(name, CholeskyPath) if self._device is None else CholeskyPath

    @cached_property
    def _gram(self) -> Any:
        if isinstance(self.basis, DeviceBasis):
            return self.basis.gram_on_device() if self.rkhs else None
        return self.basis.gram() if self.rkhs else None

    def _paths(self, moments: Moments, kind: type[Path]) -> list:
        if self._device is not None:
            of_all = moments is self.moments
            return [self._device_path if of_all else DevicePath(self._device, moments.H, self._gram)]
        return [kind.of(moments, centers, self._penalty_of(centers)) for centers, _ in self.systems]

    def _penalty_of(self, centers: np.ndarray | None) -> np.ndarray | None:
        return self._gram if self._gram is None or centers is None else self._gram[np.ix_(centers, centers)]

    @cached_property
    def _device_path(self) -> DevicePath:
        """H and the penalty on the device: copying them for every ridge would take longer than solving."""
        assert self._device is not None
        return DevicePath(self._device, self.moments.H, self._gram)

    def _factors(self, paths, rho: float) -> list[list]:
        return [
            [path.at(rho * group.ridge_factor) for group in system.groups] for path, system in zip(paths, self.systems)
        ]

    def _solve(self, moments: Moments, factors) -> np.ndarray:
        """Coefficients of all systems for the rotated targets."""
        h, coef = self._rotate(moments.h), np.zeros_like(moments.h)
        for (centers, groups), of_groups in zip(self.systems, factors):
            rows = np.arange(len(h)) if centers is None else centers
            for group, factor in zip(groups, of_groups):
                where = np.ix_(rows, group.columns)
                coef[where] = factor.solve(h[where])
        return coef

    def _primal_path(self, ridges, loo: bool, loo_rows):
        judged = None if not loo else self.rows if loo_rows is None else self.rows.take(loo_rows)
        kind = self._path_type(len(ridges))
        paths = self._paths(self.moments, kind)
        # One decomposition serves all ridges in one pass; factors, one per ridge, are held one at a time.
        for chunk in [ridges] if kind.serves_all_ridges else [[ridge] for ridge in ridges]:
            factors = [self._factors(paths, self.moments.n * ridge) for ridge in chunk]
            coefs = [self._solve(self.moments, f) for f in factors]
            held_out: list[Any] = [None] * len(chunk)
            if judged is not None and self.basis.owner is not None:
                held_out = self._loo_with_own_centers(judged, loo_rows, factors, coefs)
            elif judged is not None:
                held_out = self._sweep_loo(judged, paths, factors, coefs)
            for ridge, coef, scores in zip(chunk, coefs, held_out):
                yield Solution(ridge, scores, partial(self._finish, coef))

    def _device_loo(self, basis: DeviceBasis, rows: Rows, factors, coefs) -> list[np.ndarray]:
        """The same with features and factors on a device, where there is only one system."""
        out = [np.empty((len(rows), rows.n_targets)) for _ in coefs]
        for batch in basis.batches(rows, copies=4):
            phi = basis(batch.X)
            for scores, coef, (factor,) in zip(out, coefs, (of_ridge[0] for of_ridge in factors)):
                leverage, fitted = factor.leverage(phi)[:, None], basis.apply(phi, coef)
                scores[batch.where] = leave_one_out(fitted, leverage, batch.targets, rows.unit[batch.where])
        return out

    def _sweep_loo(self, rows: Rows, paths, factors, coefs) -> list[np.ndarray]:
        """Leave-one-out scores for every ridge in one pass over the rows."""
        if isinstance(self.basis, DeviceBasis):
            return self._device_loo(self.basis, rows, factors, coefs)
        out = [np.empty((len(rows), self.n_scores)) for _ in coefs]
        for batch, phi in self._batches_with_features(rows):
            targets = self._rotate(batch.targets)
            projected = [path.project(system.of_centers(phi)) for path, system in zip(paths, self.systems)]
            for r, coef in enumerate(coefs):
                leverage = self._leverage(projected, factors[r])
                scores = phi @ coef.astype(phi.dtype, copy=False)
                loo = leave_one_out(scores, leverage, targets, rows.unit[batch.where])
                if self.clip_parameters:
                    pull = rows.unit[batch.where, None] * (targets - loo)
                    loo = self._rounded_scores(phi, self._without_rows(phi, coef, factors[r], pull))
                out[r][batch.where] = self._rotate_back(loo)
        return out

    def _batches_with_features(self, rows: Rows) -> Iterator[tuple[Batch, np.ndarray]]:
        """Batches with their features, which are kept for the next ridge if they are small."""
        if rows is not self.rows or len(rows) * self.basis.n_centers * 8 > KEEP_BYTES:
            # leverages need a float64 copy of the features, besides two matrices and a factor
            return ((batch, self.basis(batch.X)) for batch in self.basis.batches(rows, copies=4))
        return iter(self._kept_features)

    @cached_property
    def _kept_features(self) -> list[tuple[Batch, np.ndarray]]:
        return [(batch, self.basis(batch.X)) for batch in self.basis.batches(self.rows)]

    def _leverage(self, projected, factors) -> np.ndarray:
        """The leverage of every row for every target column (m, k)."""
        leverage = np.zeros((len(projected[0]), self.rows.n_targets))
        for system, phi, of_groups in zip(self.systems, projected, factors):
            for group, factor in zip(system.groups, of_groups):
                leverage[:, group.columns] = factor.leverage(phi)[:, None]
        return leverage

    def _loo_with_own_centers(self, rows: Rows, loo_rows, factors, coefs) -> list[np.ndarray]:
        """Leave-one-out scores if centres belong to classes: rows are removed together with their own centres."""
        own = self._own_centers if loo_rows is None else self._own_centers[loo_rows]
        out = [np.empty((len(rows), self.n_scores)) for _ in coefs]
        for scores, coef, of_ridge in zip(out, coefs, factors):
            inverses = [[factor.inverse() for factor in of_groups] for of_groups in of_ridge]
            for batch, phi in self._batches_with_features(rows):
                there = batch.targets, rows.unit[batch.where], own[batch.where]
                without = self._without_rows_and_centers(phi.astype(np.float64), coef, inverses, *there)
                if self.clip_parameters:
                    scores[batch.where] = self._rounded_scores(phi, without)
                else:
                    columns = [np.einsum("ij,ij->i", phi, without(k)) for k in range(coef.shape[1])]
                    scores[batch.where] = np.column_stack(columns)
        return out

    @cached_property
    def _own_centers(self) -> np.ndarray:
        return own_centers(self.rows, self.basis) if self.own is None else self.own

    def _without_rows_and_centers(self, phi, coef, inverses, targets, unit, own) -> Callable[[int], np.ndarray]:
        """A function of a column: its coefficients (m, b) in the models without each row and its own centres."""
        found: dict[int, np.ndarray] = {}
        for (centers, groups), of_groups in zip(self.systems, inverses):
            inside = np.arange(phi.shape[1]) if centers is None else centers
            place = np.full(phi.shape[1] + 1, -1)  # the last entry is for −1, no centre
            place[inside] = np.arange(len(inside))
            for group, inverse in zip(groups, of_groups):
                for column in group.columns.tolist():
                    theta = coef[inside, column], targets[:, column], unit, place[own]
                    found[column] = np.zeros(phi.shape)
                    found[column][:, inside] = coefficients_without(inverse, phi[:, inside], *theta)
        return lambda column: found.get(column, np.zeros(phi.shape))  # a class may have no centres

    def _without_rows(self, phi, coef, factors, pull) -> Callable[[int], np.ndarray]:
        """A function of a column: its coefficients (m, b) in the models without each row.

        Without u of row i, the coefficients are θ − A⁻¹φᵢ·u(tᵢ − f₋ᵢ); ``pull`` is the last factor.
        """
        ((factor,),) = factors  # shared centres and no similarity: one system
        moved = factor.solve(phi.T.astype(np.float64)).T
        return lambda column: coef[:, column] - moved * pull[:, [column]]

    def _rounded_scores(self, phi, without: Callable[[int], np.ndarray]) -> np.ndarray:
        """Scores of rows by the clipped coefficients of the models without them.

        Clipping is not linear, so each row needs its own coefficients.
        """

        def rounded(theta: np.ndarray) -> np.ndarray:
            return np.einsum("ij,ij->i", phi, np.maximum(theta, 0.0))

        if not self.rows.is_multilabel:
            return np.column_stack([rounded(without(column)) for column in range(self.rows.n_targets)])
        tags, constant = range(self.rows.n_classes), without(self.rows.n_classes)
        scores = np.column_stack([rounded(without(tag)) for tag in tags])
        return np.hstack([scores, scores + np.column_stack([rounded(constant - without(tag)) for tag in tags])])

    @cached_property
    def _dual(self) -> Dual | PackedDual | DeviceDual | IterativeDual:
        rows, basis, b = self.rows, self.basis, self.basis.n_centers
        sums, weight = np.zeros((b, rows.n_targets)), np.bincount(basis.row_center, rows.weight, b)
        np.add.at(sums, basis.row_center, rows.targets() * rows.weight[:, None])
        if not self.is_iterative and isinstance(basis, DeviceBasis):
            return DeviceDual(basis.device, basis.gram_on_device(), weight, sums)
        if isinstance(basis, DeviceBasis) and basis.kernel.runs_on_devices:
            options = {"seed": self.seed, "progress": self.progress, "device": basis.device}
            return DeviceIterativeDual(basis.centers, basis.kernel, weight, sums, **options)
        kernel = partial(basis.kernel, workers=basis.workers)
        if self.is_iterative:
            return IterativeDual(basis.centers, kernel, weight, sums, self.seed, basis.workers, self.progress)
        if self._has_more_centers(DENSE_CENTERS):
            return PackedDual(basis.centers, basis.kernel, basis.kernel.gram, weight, sums, basis.workers)
        return Dual(basis.gram(), weight, sums)

    def _dual_path(self, ridges, loo_rows):
        rows, center, targets = self.rows, self.basis.row_center, self.rows.targets()
        weight, means = self._dual.weight, self._dual.sums / self._dual.weight[:, None]
        for ridge, at in zip(ridges, self._dual.path([rows.total_weight * ridge for ridge in ridges])):
            fitted, leverage = at.fitted[center], at.leverage[center, None]
            loo = leave_one_out(fitted, leverage, targets, rows.unit)
            alone = partial(leave_one_out, fitted, leverage, means[center], weight[center])
            yield Solution(ridge, loo if loo_rows is None else loo[loo_rows], at.coef, without_copies=alone)

    def _finish(self, coef: np.ndarray) -> np.ndarray:
        """Coefficients as the model uses them: rotated back, and clipped at zero if requested (2011 Eq. 4).

        Tag and not-tag are clipped like two classes, and their sum is a separate constant for each tag.
        """
        coef = self._rotate_back(coef)
        if not self.clip_parameters:
            return coef
        if not self.rows.is_multilabel:
            return np.maximum(coef, 0.0)
        tags = np.maximum(coef[:, :-1], 0.0)
        return np.hstack([tags, tags + np.maximum(coef[:, -1:] - coef[:, :-1], 0.0)])

    def _rotate(self, targets: np.ndarray) -> np.ndarray:
        return targets if self.similarity is None else targets @ self.similarity.vectors

    def _rotate_back(self, turned: np.ndarray) -> np.ndarray:
        return turned if self.similarity is None else turned @ self.similarity.vectors.T
