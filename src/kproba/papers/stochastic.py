"""The least-squares problem solved by stochastic gradients, with held-out scores from folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..basis.basis import Basis
from ..data.folds import stratified_folds
from ..data.rows import Rows
from ..problems.base import CpuProblem, Solution
from ..problems.own_centers import drop_held_out_centers
from ..search.folds import cross_validate
from .averaged_sgd import averaged_sgd


@dataclass(frozen=True)
class StochasticLeastSquares(CpuProblem):
    """Averaged stochastic gradients (2010 Sec. 4), with ``passes`` over the rows."""

    rows: Rows
    basis: Basis
    rkhs: bool
    passes: int = 20
    seed: int = 0
    folds: int = 5
    has_cheap_loo = False

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge; with ``loo``, also the held-out scores from folds."""
        fold = stratified_folds(self.rows, self.folds, self.seed)
        for ridge in ridges:
            held_out = cross_validate(self, fold, [ridge])[0] if loo else None
            if held_out is not None and loo_rows is not None:
                held_out = held_out[loo_rows]
            yield Solution(
                ridge, held_out, partial(np.copy, self._solve(self.rows, self.basis, ridge)), n_iter=self.passes
            )

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without the rows ``inside``, and the scores of these rows."""
        rest = self.rows.without(inside)
        # centres that belong to classes reveal the labels of their rows, so those of held-out rows are removed
        basis = self.basis if self.basis.owner is None else drop_held_out_centers(rest, self.basis)
        for ridge in ridges:
            # if no row is left, scores are zero, which links interpret as the prior
            has_any = len(rest) and basis.n_centers
            coef = self._solve(rest, basis, ridge) if has_any else np.zeros((basis.n_centers, self.rows.n_targets))
            yield Solution(ridge, basis.scores(self.rows.X[inside], coef), partial(np.copy, coef))

    def _solve(self, rows: Rows, basis: Basis, ridge: float) -> np.ndarray:
        penalty = basis.gram() if self.rkhs else None
        return averaged_sgd(rows, basis, penalty, ridge, self.passes, self.seed, owner=basis.owner)
