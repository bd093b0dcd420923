"""The least-squares problem solved by stochastic gradients, with held-out scores from folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..basis.basis import Basis
from ..data.folds import stratified_folds
from ..data.rows import Rows
from ..problems.base import Solution
from ..search.folds import cross_validate
from .averaged_sgd import averaged_sgd


@dataclass(frozen=True)
class StochasticLeastSquares:
    """Averaged stochastic gradients (2010 Sec. 4) for centres that all classes share, with ``passes`` over the rows."""

    rows: Rows
    basis: Basis
    rkhs: bool
    passes: int = 20
    seed: int = 0
    folds: int = 5
    has_cheap_loo = False
    has_all_loo = False
    rows_for_ridge = None

    @property
    def total_weight(self) -> float:
        return self.rows.total_weight

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge; with ``loo``, also the held-out scores from folds."""
        fold = stratified_folds(self.rows, self.folds, self.seed)
        for ridge in ridges:
            held_out = cross_validate(self, fold, [ridge])[0] if loo else None
            if held_out is not None and loo_rows is not None:
                held_out = held_out[loo_rows]
            yield Solution(ridge, held_out, partial(np.copy, self._solve(self.rows, ridge)), n_iter=self.passes)

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without the rows ``inside``, and the scores of these rows."""
        rest = self.rows.without(inside)
        for ridge in ridges:
            # if no row is left, scores are zero, which links interpret as the prior
            coef = self._solve(rest, ridge) if len(rest) else np.zeros((self.basis.n_centers, self.rows.n_targets))
            yield Solution(ridge, self.basis.scores(self.rows.X[inside], coef), partial(np.copy, coef))

    def clear_cache(self) -> None:
        """Nothing is cached."""

    def on(self, device) -> StochasticLeastSquares:
        """Unchanged: mini-batches are too small for a device."""
        return self

    def _solve(self, rows: Rows, ridge: float) -> np.ndarray:
        penalty = self.basis.gram() if self.rkhs else None
        return averaged_sgd(rows, self.basis, penalty, ridge, self.passes, self.seed)
