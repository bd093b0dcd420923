"""Kernel logistic regression out of core: a sample gives the Hessian, passes over all rows the exact gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..arrays import Device
from ..basis.basis import Basis
from ..basis.device_basis import basis_on
from ..data.all_rows import AllRows
from ..data.encoding import Encoding
from ..data.rows import Rows
from ..data.sweep import Statistic
from ..solvers.newton import Optimum
from ..solvers.subsampled_newton import Evaluation, subsampled_newton
from .base import Solution
from .likelihood import Likelihood, Objective, split_intercept, warn_not_converged, warn_separable
from .losses import Multinomial, Tags

#: The features of all rows of a table in memory are kept up to this size; beyond, every pass computes them.
KEPT_BYTES = 3 << 29


@dataclass
class Slope:
    """Σ w·loss of some rows, and its derivative (b + 1, k) with respect to the coefficients."""

    loss: float
    gradient: np.ndarray

    def __add__(self, other: Slope) -> Slope:
        return Slope(self.loss + other.loss, self.gradient + other.gradient)


@dataclass(frozen=True)
class SlopeOf(Statistic):
    """The statistic Σ w·loss and ΦᵀR of the rows of a source, at coefficients X (2001 Eqs 4 and 9)."""

    basis: Basis
    encoding: Encoding
    loss: Multinomial | Tags
    X: np.ndarray

    @property
    def device(self):
        return self.basis.device

    @property
    def identity(self):
        return "slope", self.basis.kernel, self.basis.centers, self.encoding, self.loss, self.X

    def zero(self) -> Slope:
        return Slope(0.0, np.zeros_like(self.X))

    def add(self, total: Slope, chunk: Any) -> Slope:
        basis, chunk = self.basis, chunk._replace(X=self.basis.to_device(chunk.X))
        for part in self.encoding.parts(chunk, 8 * basis.n_centers, basis.block_bytes):
            self._add_part(total, basis(part.X), part.codes, part.weight)
        return total

    def _add_part(self, total: Slope, phi, codes: np.ndarray, weight: np.ndarray) -> None:
        coef, intercept = split_intercept(self.X, self.basis)
        loss, P = self.loss.evaluate(self.basis.apply(phi, coef) + intercept, codes, weight)
        residual = self.loss.residual(P, codes) * weight[:, None]
        total.loss += loss
        total.gradient[: len(coef)] += self.basis.adjoint(phi, residual)
        total.gradient[len(coef) :] += residual.sum(axis=0)  # no row without an intercept

    def of_kept(self, kept: Features) -> Slope:
        """The same sum over features in memory, to the last bit."""
        total = self.zero()
        for rows in kept.parts:
            self._add_part(total, kept.phi[rows], kept.codes[rows], kept.weight[rows])
        return total


@dataclass
class Features:
    """The features Φ (n, b), class codes and weights of the rows of a source; ``parts`` are added one by one."""

    phi: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    parts: list[slice] = field(default_factory=list)


@dataclass(frozen=True)
class FeaturesOf(Statistic):
    """The features of all rows of a source that is in memory, for passes that need not compute them again."""

    basis: Basis
    encoding: Encoding
    n_rows: int

    def zero(self) -> Features:
        n = self.n_rows
        return Features(np.empty((n, self.basis.n_centers)), np.empty(n, dtype=np.intp), np.empty(n))

    def add(self, total: Features, chunk: Any) -> Features:
        start = chunk.start
        for part in self.encoding.parts(chunk, 8 * self.basis.n_centers, self.basis.block_bytes):
            rows = slice(start, start + len(part.codes))
            total.phi[rows], total.codes[rows], total.weight[rows] = self.basis(part.X), part.codes, part.weight
            total.parts.append(rows)
            start = rows.stop
        return total


@dataclass(frozen=True)
class StreamedObjective:
    """The objective of all rows, scaled to a sample that has the given share of their weight.

    The sample's objective Σ w·loss + ρ/2·tr(XᵀKX) approximates it, with ρ = nλ for the sample's n and the same λ.
    """

    sample: Objective
    share: float
    basis: Basis
    encoding: Encoding
    all_rows: AllRows

    def at(self, X: np.ndarray) -> Evaluation:
        """The objective and its gradient, in one pass."""
        statistic = SlopeOf(self.basis, self.encoding, self.sample.loss, X)
        slope = self.all_rows.sum(statistic, "gradient") if self._kept is None else statistic.of_kept(self._kept)
        return Evaluation(X, *self.sample.with_penalty(X, self.share * slope.loss, self.share * slope.gradient))

    @cached_property
    def _kept(self) -> Features | None:
        """The features of all rows, if both rows and features fit into memory."""
        rows, b = self.all_rows, self.basis.n_centers
        fits = rows.source.is_in_memory and 8 * rows.n_rows * b <= KEPT_BYTES
        if not fits or rows.saved is not None or self.basis.device is not None:
            return None
        return rows.sum(FeaturesOf(self.basis, self.encoding, rows.n_rows), "features")


@dataclass(frozen=True)
class StreamedLikelihood:
    """A kernel logistic regression with only a sample in memory; everything but the ridge.

    A solution costs several passes over all rows, so nothing is held out: ridges are compared on the sample.
    """

    sample: Likelihood
    all_rows: AllRows
    encoding: Encoding
    device: Device | None = None
    has_cheap_loo = False
    has_all_loo = False
    rows_for_ridge = None

    @property
    def rows(self) -> Rows:
        return self.sample.rows

    @property
    def basis(self) -> Basis:
        return self.sample.basis

    @property
    def total_weight(self) -> float:
        return self.all_rows.total_weight

    def path(self, ridges: Sequence[float], loo: bool = False, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge λ, starting from the optimum of the sample at the same λ."""
        for ridge in ridges:
            few = self.sample.solved_part.objective(ridge)
            found = self._solve(few)
            # the sample may say nothing about the size of the coefficients, even if a few of all rows do
            if ridge == 0.0 and self.sample.loss.is_separated(few.at(found.point.X).P, few.design.rows.labels):
                warn_separable()
            elif not found.converged:
                warn_not_converged(f"max_iter={self.sample.max_iter} passes over all rows", ridge)
            coef, intercept = split_intercept(self.sample.loss.scores(found.point.X), self.basis)
            yield Solution(ridge, None, partial(np.copy, coef), intercept, found.n_iter)

    def _solve(self, few: Objective) -> Optimum:
        sample = self.sample.solved_part  # the part that has chosen the ridge knows its Hessian already
        share = sample.total_weight / self.total_weight
        whole = StreamedObjective(few, share, basis_on(self.basis, self.device), self.encoding, self.all_rows)
        return subsampled_newton(whole, few, sample.resume(few), sample.tol, sample.max_iter)

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions of the sample without the rows ``inside``, and the scores of these rows."""
        return self.sample.hold_out(inside, ridges)

    def clear_cache(self) -> None:
        """Free the features and the kernel matrix."""
        self.sample.clear_cache()

    def on(self, device: Device | None) -> StreamedLikelihood:
        """The same problem with passes over all rows on a device; the sample stays on the CPU."""
        return replace(self, device=device)
