"""Stochastic gradient ascent for logistic regression, to the letter of textbook Figs 28.1 and 28.2.

From a random start, each step draws one row at random, with replacement, and moves the coefficients of every class y by
ε(δ − q)φ, where δ is 1 for the row's class and 0 for the others, and q is the model's probability. There is no
preconditioner, no mini-batch and no decreasing step size. The solvers work on contrasts between the classes, which are
orthonormal: each step there is the textbook's, without the constant that all classes share, which cancels in q.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..solvers.newton import Optimum

#: ε of Fig. 28.2.
STEP_SIZE = 0.1
#: The ascent has converged if no step of a pass is longer than this. Fig. 28.2 checks single steps, so that one row
#: that is sure of its class would end it.
SHORTEST_STEP = 1e-6


@dataclass(frozen=True)
class PlainSGD:
    """Stochastic gradient ascent to the letter of textbook Fig. 28.1: one row a step, of constant size.

    It takes ``max_iter`` · n steps from the random start of Fig. 28.2. Constant steps do not settle, so there is no
    convergence to promise, and ``tol`` is not used.
    """

    step_size: float = STEP_SIZE
    needs_start = False

    def __call__(self, objective, start, tol: float, max_iter: int) -> Optimum:
        random = np.random.default_rng(objective.seed)
        X = objective.masked(random.standard_normal(start.X.shape))
        longest, epoch = np.inf, 0
        while longest >= SHORTEST_STEP and epoch < max_iter:
            longest, epoch = 0.0, epoch + 1
            for row in _draws(random, objective):
                step = self.step_size * _slope(objective, X, row)
                X, longest = X - step, max(longest, float(np.linalg.norm(step)))
        return Optimum(objective.at(X), True, epoch)


def _draws(random: np.random.Generator, objective) -> Iterator[np.ndarray]:
    """As many row numbers as there are rows, each drawn in proportion to the weights, as arrays of length one."""
    weight = objective.design.rows.weight
    yield from random.choice(len(weight), size=(len(weight), 1), p=weight / weight.sum())


def _slope(objective, X: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The derivative (b, k) of one row's negative log-likelihood, with its share of the penalty if there is one."""
    design, labels = objective.design, objective.design.rows.labels[row]
    phi, total = design.some(row), design.rows.total_weight
    _, P = objective.loss.evaluate(phi @ X, labels, np.ones(1))
    slope = phi.T @ objective.loss.residual(P, labels)
    return objective.with_penalty(X, 0.0, total * slope)[1] / total
