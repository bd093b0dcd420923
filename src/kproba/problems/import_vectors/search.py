"""Choose the next import point from all candidates at once.

The residual column of a candidate l is its kernel column φ_l minus its projection on the model's columns,
r_l = φ_l − ΨΨ_lᵀ, whose squared RKHS norm is r_l(x_l) = K_ll − ‖Ψ_l‖². ψ_l = r_l/‖r_l‖ would be the next column of Ψ.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from ...basis.basis import indefinite
from ...data.hashing import distinct, ranking
from ...kernels.projected import INDEFINITE
from ...threads import BATCH_BYTES, fill_tiles, row_slices
from .by_class import ClassFactors, first_steps
from .model import (
    CONVERGED,
    MAX_HALVINGS,
    MAX_STEPS,
    NEGLIGIBLE_LOSS,
    ROUNDING,
    Addition,
    Factors,
    ImportModel,
    Task,
    bordered,
    lower_factor,
    weighted_products,
)

#: Up to ALL_ROWS distinct rows are all candidates at every step; with more, only CANDIDATES of them.
ALL_ROWS, CANDIDATES = 1000, 100
#: The share of candidates that is replaced at every step.
FRESH = 0.25
#: Columns of candidates are kept up to this size; beyond, they are recomputed at every step.
KEPT_BYTES = 256 << 20
#: The one-step search computes the objective of this many candidates, those with the largest predicted decrease.
FINALISTS = 8
#: The same for many classes, where each costs more.
FINALISTS_BY_CLASS = 4


class Residuals(NamedTuple):
    """Candidate rows (m,), residual columns r (n, m), their squared norms (m,), and a mask of those not yet spanned."""

    rows: np.ndarray
    columns: np.ndarray
    squared_norm: np.ndarray
    is_open: np.ndarray

    def normalised(self) -> Residuals:
        """Only the open candidates, with columns ψ of norm one."""
        keep = self.is_open
        squared_norm = self.squared_norm[keep]
        return Residuals(self.rows[keep], self.columns[:, keep] / np.sqrt(squared_norm), squared_norm, keep[keep])


class Pool:
    """Candidates for the next import point: all distinct rows, or a subset that changes from step to step.

    ``candidates`` is "auto", "all" or the size of the subset. The best candidates of a subset stay for the next step;
    the others are replaced by the rows that have waited longest. The queue depends on the content of the rows and the
    seed, not on their order. Residual columns are kept, and updated when a point is added, while memory allows.
    """

    def __init__(self, task: Task, candidates="auto", seed: int = 0):
        self.task = task
        first, self._group = distinct(task.rows.keys)  # equal rows are a single candidate
        self._order = np.argsort(ranking(task.rows.keys[first], seed), kind="stable")
        queue = first[self._order]
        auto = len(queue) if len(queue) <= ALL_ROWS else CANDIDATES
        self.size = min(len(queue), {"auto": auto, "all": len(queue)}.get(candidates, candidates))
        self.rows, self._waiting = queue[: self.size].copy(), queue[self.size :]
        self._stale = np.arange(0)
        self._keeps = 8 * len(task) * self.size <= KEPT_BYTES
        self._kept: np.ndarray | None = None
        self._spanned = 0

    def copy(self) -> Pool:
        """A pool with the same candidates for another model."""
        new = copy(self)
        new.rows = self.rows.copy()
        return new

    def draw(self, model: ImportModel) -> int:
        """Draw the candidates of the next step; returns their number."""
        if len(self._stale):
            queue = np.concatenate([self._waiting, self.rows[self._stale]])
            self.rows[self._stale], self._waiting = np.split(queue, [len(self._stale)])
        self.bring_up_to_date(model)
        return self.size

    def rate(self, merit: np.ndarray) -> None:
        """Rate the candidates (m,): those with the least merit are replaced."""
        fresh = max(1, round(FRESH * self.size)) if self._keeps else self.size
        self._stale = np.argsort(merit, kind="stable")[: min(fresh, len(self._waiting))]

    def bring_up_to_date(self, model: ImportModel) -> None:
        """Project the points added since the last call out of the kept columns."""
        if not self._keeps:
            return
        if self._kept is None:
            self._kept = self._computed(model, self.rows)
        else:
            self._project(self._kept, model.psi[:, self._spanned + 1 :], self.rows)
            if len(self._stale):
                self._kept[:, self._stale] = self._computed(model, self.rows[self._stale])
        self._spanned = len(model.chosen)

    def _computed(self, model: ImportModel, rows: np.ndarray) -> np.ndarray:
        columns = self.task.columns(rows)
        self._project(columns, model.psi[:, 1:], rows)
        return columns

    def _project(self, columns: np.ndarray, psi: np.ndarray, rows: np.ndarray) -> None:
        """Project ``psi`` out of the columns of ``rows``, in place."""
        at_rows = psi[rows].T

        def fill(tile):
            columns[tile] -= psi[tile] @ at_rows

        fill_tiles(fill, len(columns), 16 * columns.shape[1], self.task.workers)

    def residuals(self, model: ImportModel, which) -> Residuals:
        """The residual columns of some candidates, given by a slice or by indices."""
        rows, psi = self.rows[which], model.psi[:, 1:]
        columns = self._computed(model, rows) if self._kept is None else self._kept[:, which]
        squared_norm = columns[rows, np.arange(len(rows))]
        side = psi[rows]
        size = np.abs(squared_norm + np.square(side).sum(axis=1))
        quotient = squared_norm / (1.0 + _squared_weights(model.lower, side))
        _check_definite(model, rows, columns, squared_norm, quotient, size)
        is_open = (squared_norm > self.task.resolution * size) & (quotient > self.task.rounding * size)
        return Residuals(rows, columns, squared_norm, is_open)

    def max_joint_gain(self, model: ImportModel) -> float:
        """An upper bound on the joint gain of all candidates, if the penalty were the only curvature: sᵀK̃s/2ρ."""
        if self.size < len(self._order):
            return np.inf  # the bound would need the other rows too
        self.bring_up_to_date(model)
        slope = model.task.slope(model.P)
        own = np.zeros((self.size, slope.shape[1]))
        np.add.at(own, np.argsort(self._order)[self._group], slope)
        columns = self.residuals(model, slice(0, self.size)).columns
        return 0.5 * float(np.vdot(own, columns.T @ slope)) / model.ridge


def _squared_weights(lower: np.ndarray, side: np.ndarray) -> np.ndarray:
    """‖c‖² (m,) of the weights c = K_SS⁻¹k(x_S, x_l) = L⁻ᵀΨ_l with which the points interpolate the candidates.

    A residual has the squared norm vᵀKv with v = (c, −1), so its rounding error grows with ‖v‖² = 1 + ‖c‖². That is
    huge for a smooth kernel on one column; vᵀKv/vᵀv is as exact as an eigenvalue.
    """
    if not len(lower):
        return np.zeros(len(side))
    weights = side @ linalg.lapack.dtrtri(lower, lower=1)[0]
    return np.einsum("ij,ij->i", weights, weights)


def _check_definite(model: ImportModel, rows, columns, squared_norm, quotient, size: np.ndarray) -> None:
    """Raise an error if J has no minimum under this kernel.

    For the candidates, ``size`` (m,) is k(x, x), and ``quotient`` (m,) is at least the smallest eigenvalue of the
    kernel matrix of the points and the candidate.
    """
    rounding = max(INDEFINITE, model.task.resolution)
    level, own = rounding * float(size.max(initial=0.0)), np.square(model.lower).sum(axis=1)
    if (np.square(columns[model.chosen]) > rounding**2 * np.outer(own, size)).any():  # k(x_S, x_l) − k(x_l, x_S)
        raise ValueError(
            "kernel: k(x, z) and k(z, x) differ; the kernel matrix of the training rows must be symmetric."
        )
    worst = int(np.argmin(quotient))
    if quotient[worst] >= -level:
        return
    side = model.psi[rows[worst], 1:]
    corner = np.array([[squared_norm[worst] + side @ side]])
    product = model.lower @ side[:, None]
    values = np.linalg.eigvalsh(np.block([[model.lower @ model.lower.T, product], [product.T, corner]]))
    raise indefinite(values, "import points")


def one_step(model: ImportModel, pool: Pool) -> Addition | None:
    """The candidate with the smallest objective after one Newton step from the current model (2001 B2*).

    All candidates are ranked by predicted decrease; the objective (6) is computed for the best few.
    """
    which, factors = np.arange(pool.draw(model)), model.factors()
    most = FINALISTS_BY_CLASS if isinstance(factors, ClassFactors) else FINALISTS
    if len(which) > most:
        curvature, lower = _mean_curvature(model, factors)
        parts = row_slices(len(which), 16 * len(model.task), BATCH_BYTES)
        decrease = np.concatenate(
            [_predicted_decrease(model, pool.residuals(model, part), curvature, lower) for part in parts]
        )
        pool.rate(decrease)
        which = np.argsort(-decrease, kind="stable")[:most]
        which = which[decrease[which] > 0.0]
    wide = 8 * len(model.task) * 4 * (model.task.loss.n_columns + 1)
    parts = row_slices(len(which), wide, BATCH_BYTES)
    finalists = (pool.residuals(model, which[part]).normalised() for part in parts)
    steps_of: Any = _class_steps if isinstance(factors, ClassFactors) else _newton_steps
    found = [steps_of(model, new, factors) for new in finalists if len(new.rows)]
    return min(found, key=lambda steps: steps.value.min()).best(factors) if found else None


def _mean_curvature(model: ImportModel, factors: Factors | ClassFactors) -> tuple[np.ndarray, np.ndarray]:
    """The curvature as one number per row (n,), and the matching factor."""
    if isinstance(factors, Factors) and model.beta.shape[1] == 1:
        return factors.curvatures[0][:, 0, 0], factors.lowers[0]
    curvature = model.task.rows.weight * model.task.loss.mean_curvature(model.P)
    return curvature, model.factor(curvature[:, None, None])


def _predicted_decrease(model: ImportModel, new: Residuals, curvature: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """½ g̃ᵀS_l⁻¹g̃ of every candidate (m,), −∞ in the span; S_l is the Schur complement of the current Hessian.

    ``curvature`` (n,) is the mean over the columns of U, so that S_l is a number. This is exact for two classes; for
    more, it takes one product with Ψ instead of one for each pair of classes. ``lower`` is the factor of the Hessian
    with this curvature.
    """
    task, psi, R, slope = model.task, model.psi, new.columns, model.task.slope(model.P)

    def part(rows):
        columns = R[rows]
        weighted = columns * curvature[rows, None]
        return psi[rows].T @ weighted, np.einsum("ij,ij->j", weighted, columns), columns.T @ slope[rows]

    B, own, pull = task.total(part, 8 * (2 * R.shape[1] + psi.shape[1]))
    own += model.ridge * new.squared_norm
    half = linalg.solve_triangular(lower, B, lower=True, overwrite_b=True, check_finite=False)
    schur = own - np.einsum("ij,ij->j", half, half)
    is_open = new.is_open & (schur > task.resolution * np.abs(own))
    decrease = 0.5 * np.einsum("ij,ij->i", pull, pull) / np.where(is_open, schur, 1.0)
    return np.where(is_open, decrease, -np.inf)


class JointStep:
    """One Newton step of the model with many candidates at once, to detect gains that no single candidate shows.

    The curvature is averaged over the columns of U, as in :func:`_predicted_decrease`.
    """

    def __init__(self, model: ImportModel, new: Residuals):
        self.model, task, psi, slope = model, model.task, model.psi, model.task.slope(model.P)
        curvature, self._lower = _mean_curvature(model, model.factors())
        self.rows, R = new.rows[new.is_open], new.columns[:, new.is_open]

        def part(rows):
            weighted = R[rows] * curvature[rows, None]
            return psi[rows].T @ weighted, R[rows].T @ weighted, R[rows].T @ slope[rows]

        B, squares, self._pull = task.total(part, 8 * (2 * R.shape[1] + psi.shape[1]))
        self._half = linalg.solve_triangular(self._lower, B, lower=True, check_finite=False)
        self._schur, self._gram = squares - self._half.T @ self._half, R[self.rows]
        self._slack = task.resolution

    @classmethod
    def of_pool(cls, model: ImportModel, pool: Pool) -> JointStep:
        """With the first thousand candidates of the next step."""
        pool.bring_up_to_date(model)
        return cls(model, pool.residuals(model, slice(0, ALL_ROWS)))

    @classmethod
    def from_constants(cls, task: Task, pool: Pool) -> JointStep:
        """The same for a model without points."""
        rows = pool.rows[:ALL_ROWS]
        columns = task.columns(rows)
        squared_norm = columns[rows, np.arange(len(rows))]
        return cls(ImportModel(task, 0.0).converge(), Residuals(rows, columns, squared_norm, squared_norm > 0.0))

    def decrease(self) -> float:
        """The predicted decrease of the objective."""
        return 0.5 * float(np.vdot(self._pull, self._step(self.model.ridge)))

    def coefficients(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """The change in β, and the coefficients of the candidates."""
        step = self._step(ridge)
        back = linalg.solve_triangular(self._lower, self._half @ step, lower=True, trans="T", check_finite=False)
        return back, -step

    def _step(self, ridge: float) -> np.ndarray:
        S = self._schur + ridge * self._gram
        np.einsum("ii->i", S)[:] += self._slack * np.diagonal(S).max(initial=0.0)
        return linalg.solve(S, self._pull, assume_a="sym", check_finite=False) if len(S) else self._pull


class _Border(NamedTuple):
    """The border that each of m candidates adds to the factor of a group of g columns: L⁻¹B (ag, m, g), S (m, g, g)."""

    half: np.ndarray
    schur: np.ndarray


class _Steps(NamedTuple):
    """m candidates after one Newton step each: coefficients (m, q + 2, k) and objectives (m,)."""

    new: Residuals
    beta: np.ndarray
    value: np.ndarray
    borders: Any  # a _Border for each group, or a ClassBorder

    def best(self, factors: Factors | ClassFactors) -> Addition:
        b = int(np.argmin(self.value))
        larger = self._larger(factors, b)
        return Addition(self.new.rows[b], self.new.columns[:, b], self.new.squared_norm[b], self.beta[b], larger)

    def _larger(self, factors: Factors | ClassFactors, b: int) -> Factors | ClassFactors:
        """The factors of the model with candidate b."""
        if isinstance(factors, ClassFactors):
            return factors.extended(self.borders, b)
        corners = [lower_factor(border.schur[b]) for border in self.borders]
        edges = [border.half[:, b] for border in self.borders]
        lowers = [bordered(*parts) for parts in zip(factors.lowers, edges, corners)]
        return Factors(factors.curvatures, lowers, factors.age + 1)


def _newton_steps(model: ImportModel, new: Residuals, factors: Factors) -> _Steps:
    """One Newton step of every augmented model, with the current factor bordered by the candidate."""
    task, gradient, slope = model.task, model.gradient(), model.task.slope(model.P)
    m, (a, k) = len(new.rows), model.beta.shape
    beta, borders = np.zeros((m, a + 1, k)), []
    beta[:, :a] = model.beta
    for group, C, lower in zip(task.groups, *factors[:2]):
        border = _border(model, new, C, lower)
        rest = linalg.solve_triangular(lower, gradient[:, group].ravel(), lower=True, check_finite=False)
        pull = new.columns.T @ slope[:, group] - np.tensordot(rest, border.half, 1)
        step = np.linalg.solve(border.schur, pull[:, :, None])[:, :, 0]
        back = rest[:, None] - np.einsum("amg,mg->am", border.half, step)
        change = linalg.solve_triangular(lower, back, lower=True, trans="T", check_finite=False)
        beta[:, :a, group] -= change.reshape(a, -1, m).transpose(2, 0, 1)
        beta[:, a, group] = -step
        borders.append(border)
    return _evaluated(model, new, beta, borders)


def _class_steps(model: ImportModel, new: Residuals, factors: ClassFactors) -> _Steps:
    """The same for many classes, with the step length that the Hessian of all classes gives to their own steps."""
    border = factors.border(model, new.columns)
    return _evaluated(model, new, first_steps(model, new.columns, border, factors), border)


def _evaluated(model: ImportModel, new: Residuals, beta: np.ndarray, borders) -> _Steps:
    """The objectives of every augmented model with its coefficients (m, a + 1, k)."""
    task, m, (a, k) = model.task, len(new.rows), model.beta.shape
    U = (model.psi @ beta[:, :a].transpose(1, 0, 2).reshape(a, m * k)).reshape(-1, m, k).transpose(1, 0, 2)
    U = U + new.columns.T[:, :, None] * beta[:, a, None]
    value = _stacked_losses(task, U) + 0.5 * model.ridge * np.square(beta[:, 1:]).sum(axis=(1, 2))
    return _Steps(new, beta, np.where(np.isfinite(value), value, np.inf), borders)


def _border(model: ImportModel, new: Residuals, C: np.ndarray, lower: np.ndarray) -> _Border:
    """B_l = ΨᵀWψ_l and S_l = ψ_lᵀWψ_l + ρI − B_lᵀA⁻¹B_l of every candidate."""
    m, g = len(new.rows), C.shape[1]
    B = weighted_products(model.psi, C, new.columns).reshape(len(lower), m * g)
    half = linalg.solve_triangular(lower, B, lower=True, check_finite=False).reshape(-1, m, g)
    own = (np.square(new.columns).T @ C.reshape(len(C), -1)).reshape(m, g, g)
    # the second term is at rounding level, as in the factor
    own += (model.ridge + len(lower) * np.finfo(np.float64).eps * own.max(initial=0.0)) * np.eye(g)
    turned = half.transpose(1, 2, 0)
    return _Border(half, own - turned @ turned.transpose(0, 2, 1))


def _stacked_losses(task: Task, U: np.ndarray) -> np.ndarray:
    """Σwloss (m,) of m models' columns U (m, n, k); scores are transposed, as sums over few columns are slow."""
    m, n, k = U.shape
    labels, weight = task.rows.labels, task.rows.weight
    F = task.loss.scores(np.eye(k)).T @ U.transpose(2, 0, 1).reshape(k, m * n)
    if labels.ndim == 2:
        F *= np.tile(1.0 - 2.0 * labels.T, m)
        F[np.tile(np.isnan(labels.T), m)] = -np.inf  # a missing tag has no loss
        return np.logaddexp(0.0, F, out=F).sum(axis=0).reshape(m, n) @ weight
    F -= F[np.tile(labels, m), np.arange(m * n)]
    largest = F.max(axis=0)
    F -= largest
    return (largest + np.log(np.exp(F, out=F).sum(axis=0))).reshape(m, n) @ weight


def exact(model: ImportModel, pool: Pool) -> Addition | None:
    """The candidate with the smallest objective after fitting its model to convergence (2001 B2, basic algorithm)."""
    merit, (a, k) = np.full(pool.draw(model), -np.inf), model.beta.shape
    best = None
    for part in row_slices(len(merit), 8 * len(model.task) * (2 * a + (k + 1) ** 2), BATCH_BYTES):
        found = pool.residuals(model, part)
        new = found.normalised()
        if not len(new.rows):
            continue
        fits = _Stack.extending(model, new.columns).converged()
        b, lowest = int(np.argmin(fits.value)), -merit.max()
        if fits.value[b] < lowest:
            best = Addition(new.rows[b], new.columns[:, b], new.squared_norm[b], fits.beta[b], None)
        merit[part][found.is_open] = -fits.value
    pool.rate(merit)
    return best


class _Stack(NamedTuple):
    """A stack of m models of the same rows, each with its own columns: features (m, n, a), β (m, a, k)."""

    task: Task
    ridge: float
    features: np.ndarray
    beta: np.ndarray
    value: np.ndarray
    P: np.ndarray

    @classmethod
    def extending(cls, model: ImportModel, columns: np.ndarray) -> _Stack:
        """The model extended by each of the columns (n, m), not yet fitted."""
        n, m = columns.shape
        a, k = model.beta.shape
        features = np.concatenate([np.broadcast_to(model.psi, (m, n, a)), columns.T[:, :, None]], axis=2)
        beta = np.concatenate([np.broadcast_to(model.beta, (m, a, k)), np.zeros((m, 1, k))], axis=1)
        return cls(model.task, model.ridge, features, *_stacked_values(model.task, model.ridge, features, beta))

    def converged(self) -> _Stack:
        """Newton's method, for every model until it has converged."""
        active = np.arange(len(self.beta))
        for _ in range(MAX_STEPS):
            part = _Stack(self.task, self.ridge, *(each[active] for each in self[2:]))
            step, promised = part._newton()
            for mine, moved in zip(self[3:], part._descend(step)):
                mine[active] = moved
            active = active[promised > CONVERGED * self._scale[active]]
            if not len(active):
                break
        return self

    @property
    def _scale(self) -> np.ndarray:
        return np.maximum(self.value, NEGLIGIBLE_LOSS * self.task.rows.total_weight)

    def _newton(self) -> tuple[np.ndarray, np.ndarray]:
        """The step (m, a, k) and the predicted decrease (m,)."""
        m, n, a = self.features.shape
        turned = self.features.transpose(0, 2, 1)
        weight, labels = self.task.rows.weight, self.task.rows.labels
        flat = self.P.reshape(m * n, -1)
        slope = self.task.loss.residual(flat, np.concatenate([labels] * m)).reshape(m, n, -1)
        gradient = turned @ (weight[:, None] * slope)
        gradient[:, 1:] += self.ridge * self.beta[:, 1:]
        step = np.empty_like(gradient)
        for group, C in zip(self.task.groups, self.task.unit_curvatures(flat)):
            g = C.shape[1]
            H = self._hessian(turned, C.reshape(m, n, g, g) * weight[:, None, None])
            pull = gradient[:, :, group].reshape(m, a * g, 1)
            step[:, :, group] = np.linalg.solve(H, pull).reshape(m, a, g)
        return step, 0.5 * np.einsum("mak,mak->m", gradient, step)

    def _hessian(self, turned: np.ndarray, C: np.ndarray) -> np.ndarray:
        m, a, _ = turned.shape
        g = C.shape[2]
        blocks = np.empty((m, a, g, a, g))
        for p in range(g):
            for r in range(p + 1):
                blocks[:, :, p, :, r] = blocks[:, :, r, :, p] = (turned * C[:, None, :, p, r]) @ self.features
        H = blocks.reshape(m, a * g, a * g)
        diagonal = np.einsum("mii->mi", H)
        diagonal[:, g:] += self.ridge
        diagonal += a * g * np.finfo(np.float64).eps * diagonal.max(axis=1, keepdims=True)
        return H

    def _descend(self, step: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """β, objectives and probabilities after the steps, each halved until its objective does not increase."""
        beta, value, P = self.beta.copy(), self.value.copy(), self.P.copy()
        todo = np.arange(len(beta))
        for halving in range(MAX_HALVINGS):
            tried = self.beta[todo] - step[todo] * 0.5**halving
            moved = _stacked_values(self.task, self.ridge, self.features[todo], tried)
            good = moved[1] <= value[todo] + ROUNDING * self._scale[todo]
            beta[todo[good]], value[todo[good]], P[todo[good]] = (part[good] for part in moved)
            todo = todo[~good]
            if not len(todo):
                break
        return beta, value, P


def _stacked_values(task: Task, ridge: float, features, beta) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """β unchanged, J (m,) and the probabilities (m, n, c)."""
    U = features @ beta
    labels = np.concatenate([task.rows.labels] * len(U))
    P = task.loss.evaluate(U.reshape(-1, U.shape[2]), labels, np.zeros(len(labels)))[1]
    value = _stacked_losses(task, U) + 0.5 * ridge * np.square(beta[:, 1:]).sum(axis=(1, 2))
    return beta, value, P.reshape(*U.shape[:2], -1)


#: The searches, by the names that the estimator uses.
SEARCHES: dict[str, Callable[[ImportModel, Pool], Addition | None]] = {"one-step": one_step, "exact": exact}
