"""Stochastic gradient descent for the penalised likelihood (textbook Fig. 28.1), averaged.

One step takes some rows, moves the coefficients of each class along (y − q)φ, and shrinks them by their part of the
penalty. As in :mod:`.lbfgs` the coordinates are those of the least-squares factor, in which one step size suits all.
"""

from __future__ import annotations

import numpy as np

from .newton import Optimum

#: Rows in one step, and how fast the steps shrink by the pass.
STEP_ROWS, DECAY = 32, 0.05


def sgd(objective, start, tol: float, max_iter: int, seed: int = 0) -> Optimum:
    """``max_iter`` passes over the rows at most; converged when the averages of two passes agree far below ``tol``."""
    factor, shape = objective.preconditioner(start), start.X.shape
    random, n = np.random.default_rng(seed), objective.n_rows
    z, before, best = np.zeros(shape), start, start
    n_steps = -(-n // STEP_ROWS)
    for epoch in range(1, max_iter + 1):
        order, average = random.permutation(n), np.zeros(shape)
        # about one for the whole gradient in these coordinates, shared out and falling by the pass
        rate = 1.0 / (n_steps * (1.0 + DECAY * epoch))
        for step in range(n_steps):
            rows = order[step * STEP_ROWS : (step + 1) * STEP_ROWS]
            X = start.X + factor.half(z)
            z -= rate * factor.half_transposed(objective.gradient_of_rows(X, rows))
            average += z / n_steps
        point = objective.at(start.X + factor.half(average))
        best = point if point.value < best.value else best
        if abs(point.value - before.value) <= 0.01 * tol * abs(point.value):
            return Optimum(best, True, epoch)
        before = point
    return Optimum(best, False, max_iter)
