"""Variance-reduced stochastic gradient descent for the penalised likelihood, after textbook Fig. 28.1.

Fig. 28.1 itself, one row a step without a factor, is :mod:`kproba.papers.plain_sgd`.

A step takes a mini-batch, moves the coefficients of each class along (y − q)φ, and shrinks them by their share of the
penalty. The gradient of the same rows at the start of the pass is replaced by the full gradient there (SVRG; Johnson
and Zhang, 2013). The noise vanishes with the steps, so every pass gains a share of what is left, down to the optimum.
As in :mod:`.lbfgs`, the coordinates are those of the least-squares factor, where one step size suits all.
"""

from __future__ import annotations

import numpy as np

from .newton import Optimum, is_optimal

#: Mini-batch size.
STEP_ROWS = 32
#: After a successful pass the step size grows by this factor; after an unsuccessful one it is halved.
LONGER = 1.5
#: The factor is updated after this many passes.
STALE_AFTER = 10
#: Convergence is checked, with an updated factor, once the gain predicted by the old one is below this multiple of tol.
NEAR = 10.0


def sgd(objective, start, tol: float, max_iter: int) -> Optimum:
    """Variance-reduced stochastic gradients (after textbook Fig. 28.1), at most ``max_iter`` passes over the rows.

    Convergence is judged by the gradient and the Hessian of all rows, not by the gain of a pass, which noise may keep
    small.
    """
    random, n = np.random.default_rng(objective.seed), objective.n_rows
    point, gradient, factor = start, objective.gradient(start), objective.preconditioner(start)
    rate = STEP_ROWS / max(n, STEP_ROWS)  # stable even if the rows of a step are all alike
    for epoch in range(max_iter + 1):
        half = factor.whiten(gradient)
        # twice the gain of a Newton step if the factor were that of the Hessian
        is_near = float(np.vdot(half, half)) <= NEAR * tol * abs(point.value)
        if is_near or epoch % STALE_AFTER == STALE_AFTER - 1:
            factor = objective.preconditioner(point)
        if is_near and is_optimal(objective, point, factor, gradient, tol):
            return Optimum(point, True, max(epoch, 1))
        if epoch == max_iter:
            break
        tried = objective.at(_one_pass(objective, point, gradient, factor, rate, random.permutation(n)))
        if tried.value < point.value:
            point, gradient, rate = tried, objective.gradient(tried), min(LONGER * rate, 1.0)
        else:
            rate *= 0.5
    return Optimum(point, False, max_iter)


def _one_pass(objective, point, gradient, factor, rate: float, order: np.ndarray) -> np.ndarray:
    """Coefficients after one pass of mini-batch steps, in the order given."""
    z = np.zeros_like(point.X)
    for start in range(0, len(order), STEP_ROWS):
        rows = order[start : start + STEP_ROWS]
        noise = objective.gradient_of_rows(point.X, rows) - gradient
        X = point.X + factor.unwhiten(z)
        z -= rate * factor.whiten(objective.gradient_of_rows(X, rows) - noise)
    return point.X + factor.unwhiten(z)
