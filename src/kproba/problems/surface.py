"""The surface problem: the maximum of the surface loss for rows and a basis, and held-out scores.

Every solver starts from the moments. Held-out scores are exact leave-one-out scores if the box is inactive, otherwise
from folds, whose moments are subtracted from those of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ..arrays import Device, to_numpy
from ..basis.basis import Basis, MomentsOf
from ..basis.device_basis import basis_on
from ..basis.moments import Moments
from ..data.all_rows import SumsOverRows
from ..data.folds import stratified_folds
from ..data.items import Items
from ..data.rows import Rows
from ..progress import Progress
from ..solvers import box_qp
from ..solvers.cholesky import jittered_factor, rounding_level
from ..solvers.surface_loss import Certificate, SurfaceLoss
from .base import CpuProblem, Solution
from .least_squares import leave_one_out
from .missing_tags import Part, parts_of

#: Φ is computed once if it takes at most this much memory.
FEATURE_BYTES = 32 << 20


@dataclass(frozen=True)
class Settings:
    """How to maximise: exactly, or by an approach with up to ``max_iter`` steps and some restarts.

    An approach takes a loss and these settings; it returns coefficients, the number of steps, and the history of best
    values.
    """

    approach: Callable[[SurfaceLoss, Settings], tuple[np.ndarray, int, list[float]]] | None = None
    max_iter: int = 100_000
    restarts: int = 5
    seed: int = 0
    progress: Progress | None = None


class Maximum(NamedTuple):
    """Coefficients (r + 1, k), whether the box is inactive, their certificate, and the record of the solver.

    ``optimum`` is the value of the global maximum, ``history`` the best value after every hundredth of the steps.
    """

    coef: np.ndarray
    is_free: bool
    certificate: Certificate
    optimum: float
    n_iter: int
    history: np.ndarray


@dataclass(frozen=True)
class Surface(CpuProblem):
    """The problem of rows and a basis, as a :class:`~kproba.problems.base.Problem` without a ridge.

    ``given`` are moments of more rows, of which ``rows`` is a sample.
    """

    rows: Rows
    basis: Basis
    settings: Settings = Settings()
    folds: int = 5
    only_folds: bool = False
    given: Moments | None = None
    has_cheap_loo = True

    @property
    def total_weight(self) -> float:
        return self.moments.n

    def path(self, ridges: Sequence[float] = (0.0,), loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The only solution; with ``loo`` it includes the held-out scores of all rows, or of ``loo_rows``."""
        found = self.maximum
        held_out = self.held_out if loo else None
        held_out = held_out if held_out is None or loo_rows is None else held_out[loo_rows]
        yield Solution(0.0, held_out, lambda: found.coef[:-1], found.coef[-1], found.n_iter)

    @cached_property
    def moments(self) -> Moments:
        return self._moments_of(self.rows, slice(None)) if self.given is None else self.given

    @cached_property
    def _features(self) -> np.ndarray | None:
        """Φ (n, r), which every fold needs twice; None if it takes much memory."""
        if self.rows.weight.nbytes * self.basis.n_centers > FEATURE_BYTES:
            return None
        return np.ascontiguousarray(to_numpy(self.basis(self.rows.X)), dtype=np.float64)

    def _moments_of(self, rows: Rows, index) -> Moments:
        """The moments of some rows, which are those of ``index`` with their weights."""
        if self._features is None:
            return self.basis.moments(rows)
        total = Moments.zeros(self.basis.n_centers, rows.n_targets)
        return total.add(self._features[index], rows.targets(), rows.weight)

    def _scores_of(self, index: np.ndarray, coef: np.ndarray) -> np.ndarray:
        if self._features is None:
            return self._scores(self.rows.X[index], coef)
        return self._features[index] @ coef[:-1] + coef[-1]

    def with_sums(self, everything: SumsOverRows, scaling, device: Device | None) -> Surface:
        """The problem on all rows, of which ``rows`` is a sample.

        The sums are in float64 on a device too: without a ridge, float32 sums are too inaccurate.
        """
        basis = basis_on(self.basis, device, use_float64=True)
        return replace(self, given=everything.sum(MomentsOf(basis, everything.encoding(scaling))))

    def on(self, device: Device | None) -> Surface:
        """The same with features on a device, in float64 like the sums."""
        is_plain = self.basis.kernel.runs_on_devices and not isinstance(self.rows.X, Items) and not self.rows.is_sparse
        return replace(self, basis=basis_on(self.basis, device, use_float64=True)) if is_plain else self

    @cached_property
    def maximum(self) -> Maximum:
        if self.rows.group is None:
            return maximise(self.losses(self.moments), self.settings, self.rows.is_multilabel)
        found, coef = [], np.zeros((self.basis.n_centers + 1, self.rows.n_targets))
        for part in self._parts:
            found.append(part.problem.maximum)
            coef[:, part.columns] = found[-1].coef
        return combine(found, coef)

    @cached_property
    def _parts(self) -> list[Part]:
        """If tags are missing: one problem per group of tags, on the rows where it is known."""
        every = np.arange(self.basis.n_centers)
        return list(parts_of(self.rows, lambda rows, *_: (replace(self, rows=rows), every)))

    @cached_property
    def held_out(self) -> np.ndarray:
        """Scores (n, k) of all rows by models without them, or by the model itself where a tag is missing."""
        if self.rows.group is not None:
            scores = self._scores(self.rows.X, self.maximum.coef).astype(np.float64, copy=False)
            for part in self._parts:
                scores[np.ix_(part.where, part.columns)] = part.problem.held_out
            return scores
        if self.maximum.is_free and not self.only_folds and self.rows.together is None:
            return self._leave_one_out()
        return self._by_folds()

    def _by_folds(self) -> np.ndarray:
        """Held-out scores from folds. A row with a copy for every fold is held out in each, and its scores are
        averaged.

        Otherwise, in a table with few distinct rows, each would be judged by models that have never seen it. The rows
        of a group are always held out together.
        """
        fold = stratified_folds(self.rows, self.folds, self.settings.seed)
        mass = self.rows.weight if self.rows.mass is None else self.rows.mass
        everywhere = (mass >= self.folds * self.rows.unit) & (self.rows.together is None)
        share = np.where(everywhere, 1.0 / self.folds, 1.0)
        out = np.zeros((len(self.rows), self.rows.n_targets))
        for number in range(self.folds):
            inside = np.flatnonzero((fold == number) | everywhere)
            coef = self._without(inside, share[inside])
            out[inside] += share[inside, None] * self._scores_of(inside, coef)
        return out

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float] = (0.0,)) -> Iterator[Solution]:
        """The solution without the rows ``inside``, and the scores of these rows."""
        coef = self._without(inside, 1.0)
        yield Solution(0.0, self._scores_of(inside, coef), lambda: coef[:-1], coef[-1])

    def _without(self, inside: np.ndarray, share) -> np.ndarray:
        """Coefficients from the moments of all rows minus a share of those of ``inside``."""
        apart = self.rows.take(inside)
        weight = apart.weight if self.given is None or apart.mass is None else apart.mass
        rest = self.moments - self._moments_of(replace(apart, weight=share * weight), inside)
        if rest.n <= 0.0:  # no row is left: scores are zero, which links interpret as the prior
            return np.zeros((self.basis.n_centers + 1, self.rows.n_targets))
        return maximise(self.losses(rest), self.settings, self.rows.is_multilabel).coef

    def clear_cache(self) -> None:
        """Nothing to free: r is about a hundred, and Φ is stored only if it is small."""

    def losses(self, moments: Moments) -> list[SurfaceLoss]:
        """One loss for all classes, or one per tag."""
        if not self.rows.is_multilabel:
            return [SurfaceLoss.of(moments)]
        return [SurfaceLoss.of(moments.of_tag(tag)) for tag in range(self.rows.n_classes)]

    def _scores(self, X, coef: np.ndarray) -> np.ndarray:
        return self.basis.scores(X, coef[:-1]) + coef[-1]

    def _leave_one_out(self) -> np.ndarray:
        """Exact scores, as in LSPC: without the box this is least squares with a constant column and no ridge."""
        rows, H = self.rows, self.losses(self.moments)[0].H * self.moments.n
        lower = jittered_factor(H, rounding_level(np.diagonal(H)))  # singular if there are few distinct rows
        scores = np.empty((len(rows), rows.n_targets))
        for batch in self.basis.batches(rows, copies=3):
            phi = to_numpy(self.basis(batch.X))
            phi = np.hstack([phi, np.ones((len(phi), 1), phi.dtype)])
            half = linalg.solve_triangular(lower, phi.T.astype(np.float64), lower=True, overwrite_b=True)
            leverage = np.einsum("ij,ij->j", half, half)[:, None]
            fitted = phi @ self.maximum.coef.astype(phi.dtype)
            scores[batch.where] = leave_one_out(fitted, leverage, batch.targets, rows.unit[batch.where])
        return scores


def maximise(losses: list[SurfaceLoss], settings: Settings, of_tags: bool = False) -> Maximum:
    """The maximum of one loss for all classes, or of one per tag."""
    found = [_maximise_one(loss, settings) for loss in losses]
    if not of_tags:
        return found[0]
    # PerTag expects the tags, then the constant
    return combine(found, np.column_stack([*(f.coef[:, 1] for f in found), losses[0].total]))


def combine(found: Sequence[Maximum], coef: np.ndarray) -> Maximum:
    """Combine several maxima into one, with the coefficients of all."""
    each = [f.certificate for f in found]
    certificate = Certificate(
        objective=sum(one.objective for one in each),
        duality_gap=sum(one.duality_gap for one in each),
        kkt_residual=max(one.kkt_residual for one in each),
        n_active=sum(one.n_active for one in each),
    )
    optimum, n_iter = sum(f.optimum for f in found), max(f.n_iter for f in found)
    history = np.array([certificate.objective])  # tags are maximised separately, so there is no common history
    return Maximum(coef, all(f.is_free for f in found), certificate, optimum, n_iter, history)


def _maximise_one(loss: SurfaceLoss, settings: Settings) -> Maximum:
    A, is_free, n_iter = box_qp.maximise(loss)
    best = loss.certificate(A)
    if settings.approach is None:
        return Maximum(A, is_free, best, best.objective, n_iter, np.array([best.objective]))
    A, n_iter, history = settings.approach(loss, settings)
    return Maximum(A, False, loss.certificate(A), best.objective, n_iter, np.array(history))
