"""Stochastic gradient descent for the penalised likelihood (textbook Fig. 28.1), averaged.

One step takes some rows, moves the coefficients of each class along (y − q)φ, and shrinks them by their part of the
penalty. As in :mod:`.lbfgs` the coordinates are those of the least-squares factor, in which one step size suits all.
"""

from __future__ import annotations

import numpy as np

from .newton import Optimum

#: Rows in one step, and how fast the steps shrink by the pass.
STEP_ROWS, DECAY = 32, 0.05
#: Passes whose mean objective is compared with that of as many before: two single ones may agree by chance.
WINDOW = 10


def sgd(objective, start, tol: float, max_iter: int, seed: int = 0) -> Optimum:
    """``max_iter`` passes over the rows at most; converged when some of them have gained next to nothing."""
    factor, shape = objective.preconditioner(start), start.X.shape
    random, n = np.random.default_rng(seed), objective.n_rows
    z, best, values = np.zeros(shape), start, [start.value]
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
        values.append(point.value)
        if epoch >= 2 * WINDOW:
            before, now = np.mean(values[-2 * WINDOW : -WINDOW]), np.mean(values[-WINDOW:])
            if before - now <= 0.5 * tol * abs(now):
                return Optimum(best, True, epoch)
    return Optimum(best, False, max_iter)
