"""Newton's method for many classes.

With a columns and c classes the Hessian of J has (a(c − 1))² entries, and its factor costs more than everything else.
Instead, conjugate gradients solve each Newton system with the current curvature, and every class has a factor of its
own as preconditioner. The curvature diag p − ppᵀ of a row is the Laplacian of a graph with weights p_j p_l, and so at
most twice its diagonal p_j(1 − p_j).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from ...solvers.newton import conjugate_gradients
from ..losses import Multinomial

#: With at least this many columns of U, Newton systems are solved by conjugate gradients.
MANY_COLUMNS = 10
#: Conjugate gradients stop when the square of this share of the decrement is missing.
MISSING_SHARE = 0.1
#: The preconditioner is recomputed after a step with more products than this, or after so many points.
STALE_AFTER, MAX_AGE = 15, 12
_EPS = np.finfo(np.float64).eps


def has_many_classes(loss) -> bool:
    """Whether the Hessian of all classes is too large to factor."""
    return isinstance(loss, Multinomial) and loss.n_columns >= MANY_COLUMNS


class ClassBorder(NamedTuple):
    """What each of m candidates adds to the factors of c classes: L⁻¹b (c, a, m) and the Schur complement (c, m)."""

    half: np.ndarray
    schur: np.ndarray


class ClassFactors(NamedTuple):
    """L⁻¹ (c, a, a) of each class's own block LLᵀ = Ψᵀdiag(wp(1 − p))Ψ + ρI of the Hessian of the scores.

    ``curvature`` (n, c) are the weights wp(1 − p) used to compute them, ``age`` the number of points added since.
    """

    loss: Multinomial
    curvature: np.ndarray
    inverse: np.ndarray
    age: int = 0

    @classmethod
    def of(cls, model) -> ClassFactors:
        """The factors at the current coefficients of a model."""
        curvature = model.task.rows.weight[:, None] * model.P * (1.0 - model.P)
        lowers = (model.factor(own[:, None, None]) for own in curvature.T)
        return cls(model.task.loss, curvature, np.stack([linalg.lapack.dtrtri(lower, lower=1)[0] for lower in lowers]))

    def whiten(self, gradient: np.ndarray) -> np.ndarray:
        """L⁻¹ of every class applied to a gradient (a, k): (c, a)."""
        return np.matmul(self.inverse, self.loss.scores(gradient).T[:, :, None])[:, :, 0]

    def unwhiten(self, Z: np.ndarray) -> np.ndarray:
        """From (c, a) to coefficients (a, k)."""
        return self.loss.columns(np.matmul(Z[:, None], self.inverse)[:, 0].T)

    def border(self, model, columns: np.ndarray) -> ClassBorder:
        """The border of every candidate column ψ (n, m)."""
        B = np.stack([(model.psi * column[:, None]).T @ self.curvature for column in columns.T], axis=2)
        half = np.matmul(self.inverse, B.transpose(1, 0, 2))
        own = self.curvature.T @ np.square(columns) + model.ridge
        return ClassBorder(half, np.maximum(own - np.square(half).sum(axis=1), model.task.resolution * own))

    def extended(self, border: ClassBorder, b: int) -> ClassFactors:
        """The factors with candidate b of the border as an additional point."""
        c, a, _ = self.inverse.shape
        root, larger = np.sqrt(border.schur[:, b]), np.zeros((c, a + 1, a + 1))
        larger[:, :a, :a] = self.inverse
        larger[:, a, :a] = -np.matmul(border.half[:, None, :, b], self.inverse)[:, 0] / root[:, None]
        larger[:, a, a] = 1.0 / root
        return self._replace(inverse=larger, age=self.age + 1)


class Curvature:
    """Products with the Hessian of J at the current coefficients of a model, as conjugate gradients need them."""

    def __init__(self, model):
        self.psi, self.ridge, self.P, self.loss = model.psi, model.ridge, model.P, model.task.loss
        self.weighted = model.task.rows.weight[:, None] * model.P

    def product(self, V: np.ndarray) -> np.ndarray:
        """The Hessian applied to coefficients V (a, k)."""
        along = self.psi @ self.loss.scores(V)
        out = self.loss.columns(self.psi.T @ self.weigh(along))
        out[1:] += self.ridge * V[1:]
        return out

    def weigh(self, along: np.ndarray) -> np.ndarray:
        """w(diag p − ppᵀ) applied to each row of ``along`` (n, c)."""
        return self.weighted * (along - np.einsum("ij,ij->i", self.P, along)[:, None])

    def whitened_product(self, _, factors: ClassFactors, V: np.ndarray) -> np.ndarray:
        return factors.whiten(self.product(factors.unwhiten(V)))


def newton_step(model, gradient: np.ndarray, factors: ClassFactors) -> tuple[np.ndarray, bool]:
    """H⁻¹ applied to the gradient (a, k), and whether the factors are too old for it."""
    direction, n_products, _ = conjugate_gradients(Curvature(model), model, factors, gradient, 0.0, MISSING_SHARE)
    return -direction, n_products > STALE_AFTER


def first_steps(model, columns: np.ndarray, border: ClassBorder, factors: ClassFactors) -> np.ndarray:
    """Coefficients (m, a + 1, k) with each candidate added: the first conjugate gradient step of the Newton system."""
    loss, gradient = model.task.loss, model.gradient()
    rest, pull = factors.whiten(gradient), columns.T @ model.task.slope(model.P)
    own = (loss.scores(pull).T - np.einsum("ca,cam->cm", rest, border.half)) / border.schur
    back = rest[:, :, None] - border.half * own[:, None]
    steps = loss.columns(np.concatenate([np.matmul(factors.inverse.transpose(0, 2, 1), back), own[:, None]], 1).T)
    curvature, beta = Curvature(model), np.zeros_like(steps)
    beta[:, :-1] = model.beta
    for each, step, column, force in zip(beta, steps, columns.T, pull):
        along = model.psi @ loss.scores(step[:-1]) + column[:, None] * loss.scores(step[-1])
        bend = float(np.vdot(along, curvature.weigh(along))) + model.ridge * float(np.vdot(step[1:], step[1:]))
        gain = float(np.vdot(gradient, step[:-1]) + force @ step[-1])
        each -= gain / bend * step if bend > 0.0 else 0.0
    return beta
