"""Kernel logistic regression out of core: a sample gives the Hessian, passes over all rows the exact gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
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

    def on_one_thread(self) -> SlopeOf:
        return replace(self, basis=replace(self.basis, workers=1))

    def zero(self) -> Slope:
        return Slope(0.0, np.zeros_like(self.X))

    def add(self, total: Slope, chunk: Any) -> Slope:
        basis, chunk = self.basis, chunk._replace(X=self.basis.to_device(chunk.X))
        coef, intercept = split_intercept(self.X, basis)
        for part in self.encoding.parts(chunk, 8 * basis.n_centers, basis.block_bytes):
            phi = basis(part.X)
            loss, P = self.loss.evaluate(basis.apply(phi, coef) + intercept, part.codes, part.weight)
            residual = self.loss.residual(P, part.codes) * part.weight[:, None]
            total.loss += loss
            total.gradient[: len(coef)] += basis.adjoint(phi, residual)
            total.gradient[len(coef) :] += residual.sum(axis=0)  # no row without an intercept
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
        slope = self.all_rows.sum(SlopeOf(self.basis, self.encoding, self.sample.loss, X), "gradient")
        return Evaluation(X, *self.sample.with_penalty(X, self.share * slope.loss, self.share * slope.gradient))


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
            few = self.sample.objective(ridge)
            found = self._solve(few)
            if ridge == 0.0 and self._separates_sample(few, found.point.X):
                warn_separable()
            elif not found.converged:
                warn_not_converged(f"max_iter={self.sample.max_iter} passes over all rows", ridge)
            coef, intercept = split_intercept(self.sample.loss.scores(found.point.X), self.basis)
            yield Solution(ridge, None, partial(np.copy, coef), intercept, found.n_iter)

    def _separates_sample(self, few: Objective, X: np.ndarray) -> bool:
        """Whether the sample says nothing about the size of the coefficients, even if a few of all rows do."""
        return self.sample.loss.is_separated(few.at(X).P, self.rows.labels)

    def _solve(self, few: Objective) -> Optimum:
        share = self.sample.total_weight / self.total_weight
        whole = StreamedObjective(few, share, basis_on(self.basis, self.device), self.encoding, self.all_rows)
        return subsampled_newton(whole, few, self.sample.solve(few), self.sample.tol, self.sample.max_iter)

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions of the sample without the rows ``inside``, and the scores of these rows."""
        return self.sample.hold_out(inside, ridges)

    def clear_cache(self) -> None:
        """Free the features and the kernel matrix."""
        self.sample.clear_cache()

    def on(self, device: Device | None) -> StreamedLikelihood:
        """The same problem with passes over all rows on a device; the sample stays on the CPU."""
        return replace(self, device=device)
