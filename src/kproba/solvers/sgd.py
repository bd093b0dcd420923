"""Stochastic gradient descent for the penalised likelihood (textbook Fig. 28.1), with reduced variance.

One step takes some rows, moves the coefficients of each class along (y − q)φ, and shrinks them by their part of the
penalty. What the same rows said at the start of the pass is replaced by what all rows said there (Johnson and Zhang,
2013): the noise vanishes as the steps do, so a pass gains a share of what is left, down to the optimum. As in
:mod:`.lbfgs` the coordinates are those of the least-squares factor, in which one step size suits all.
"""

from __future__ import annotations

import numpy as np

from .newton import Optimum, is_optimal

#: Rows in one step.
STEP_ROWS = 32
#: A pass that gains lengthens the steps of the next one by this factor; one that does not halves them.
LONGER = 1.5
#: After so many passes the factor is brought up to date.
STALE_AFTER = 10
#: Convergence is checked, which takes an up-to-date factor, once the old one promises no more than so many times tol.
NEAR = 10.0


def sgd(objective, start, tol: float, max_iter: int, seed: int = 0) -> Optimum:
    """``max_iter`` passes over the rows at most.

    Whether it has converged is not judged by what passes gain, which noise may keep small, but by the gradient and
    the Hessian of all rows.
    """
    random, n = np.random.default_rng(seed), objective.n_rows
    point, gradient, factor = start, objective.gradient(start), objective.preconditioner(start)
    rate = STEP_ROWS / max(n, STEP_ROWS)  # stable however much the rows of a step have in common
    for epoch in range(max_iter + 1):
        is_near = _promise(factor, gradient) <= NEAR * tol * abs(point.value)
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


def _promise(factor, gradient: np.ndarray) -> float:
    """Twice what a step along the gradient would gain if the factor were that of the Hessian."""
    half = factor.whiten(gradient)
    return float(np.vdot(half, half))


def _one_pass(objective, point, gradient, factor, rate: float, order: np.ndarray) -> np.ndarray:
    """Coefficients after one step for every few rows, in the order given."""
    z = np.zeros_like(point.X)
    for start in range(0, len(order), STEP_ROWS):
        rows = order[start : start + STEP_ROWS]
        noise = objective.gradient_of_rows(point.X, rows) - gradient
        X = point.X + factor.unwhiten(z)
        z -= rate * factor.whiten(objective.gradient_of_rows(X, rows) - noise)
    return point.X + factor.unwhiten(z)
