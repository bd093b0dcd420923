"""Leave-one-out scores for a penalised likelihood without n refits.

Without u of row i, the solution moves by δ, and every row m by Δₘ = φₘᵀδ. Let H be the Hessian of all rows, Wₘ and rₘ
the curvature and residual of row m at the solution, and w′ the weights without u of row i. Then the gradient vanishes
at Hδ = −Σ sₘφₘ with sₘ = w′ₘr(uₘ + Δₘ) − wₘ(rₘ + WₘΔₘ). One Newton step keeps the part linear in Δ: the closed form of
Cawley and Talbot (2008). In terms of M = ΦH⁻¹Φᵀ this is a fixed-point equation, Δ = −Ms(Δ). A few accelerated
iterations from the closed form solve it, and the scores are then those of n refits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy import linalg

from ..solvers.cholesky import factor
from .losses import Multinomial, Tags

#: Maximum operations per iteration towards the refits; beyond, the closed form is used.
STEP_FLOPS = 2e9
#: Maximum number of iterations, and how many of the last ones the acceleration combines.
MAX_STEPS, DEPTH = 8, 3
#: Scores that move by less than this have converged.
ARRIVED = 1e-3
#: For rows that have not: maximum Newton steps, halvings of a step, and operations for all rows.
NEWTON_STEPS, MAX_HALVINGS, NEWTON_FLOPS = 20, 10, 1e10


def leave_one_out(objective, point, rows: np.ndarray, step_flops: float = STEP_FLOPS) -> np.ndarray:
    """Scores of some rows by the models without them; iterated to the refits if a step takes at most ``step_flops``.

    All classes must share the centres: otherwise a row's own centre is removed with it, which requires refits.
    """
    if isinstance(objective.loss, Tags):
        return np.column_stack([_of_tag(objective, point, rows, t, step_flops) for t in range(point.U.shape[1])])
    # without a penalty both forms are the same model, and only in the base-class form is its Hessian regular
    loss = Multinomial(point.P.shape[1], base=objective.loss.base or objective.rho == 0.0)
    scores = objective.loss.scores(point.U)
    k, n = loss.n_columns, len(scores)
    at = FullSolution(loss, loss.columns(scores), point.P, objective.design.rows)
    is_iterated = 2.0 * (n * k) ** 2 * n <= step_flops
    if not is_iterated and k > 1 and hasattr(objective.design, "spread_of_classes"):
        turn = _turn(_weights(loss, point).shape[1], loss.base)
        spread = objective.design.spread_of_classes(objective, _weights(loss, point), at.weight, rows, loss.base)
        return _moved(objective, loss, scores[rows], at.first_step(turn.T @ spread @ turn, rows))
    halves = [_half_features(objective, p) for p in _weights(loss, point).T]
    several = halves, point.P[:, : len(halves)], at.weight
    form = {"base": loss.base, "intercept": objective.design.intercept}
    if is_iterated:
        influence = _influence_of_one(halves[0]) if k == 1 else _influence_of_classes(*several, **form)
        return _moved(objective, loss, scores[rows], at.refitted(influence)[rows])
    spread = _spread_of_one(halves[0], rows) if k == 1 else _spread_of_classes(*several, rows, **form)
    return _moved(objective, loss, scores[rows], at.first_step(spread, rows))


def _moved(objective, loss, scores: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The scores after a change of the columns of ``loss``."""
    change = loss.scores(change)
    is_same_form = loss.base == objective.loss.base
    return scores + (change if is_same_form else objective.loss.scores(objective.loss.columns(change)))


def _weights(loss, point) -> np.ndarray:
    """The row weights in the system of every class: p of each class, or for two classes the single curvature."""
    if loss.n_columns == 1:
        return loss.mean_curvature(point.P)[:, None]
    return point.P[:, :-1] if loss.base else point.P


def _of_tag(objective, point, rows: np.ndarray, tag: int, step_flops: float) -> np.ndarray:
    """The same for one tag, a two-class problem independent of the other tags."""
    loss, P, design = replace(objective.loss, n_columns=1), point.P[:, [tag]], objective.design
    half = _half_features(objective, loss.mean_curvature(P))
    at = FullSolution(loss, point.U[:, [tag]], P, design.rows, design.rows.labels[:, [tag]])
    n = len(P)
    if 2.0 * n**3 <= step_flops:
        moved = at.refitted(_influence_of_one(half))[rows]
    else:
        moved = at.first_step(_spread_of_one(half, rows), rows)
    return loss.scores(at.U[rows] + moved)[:, 0]


class FullSolution:
    """The solution with all rows: columns U (n, k), probabilities, and residuals R and curvature W of every row."""

    def __init__(self, loss, U, P, rows, labels=None):
        self.loss, self.U, self.P = loss, U, P
        self.labels = rows.labels if labels is None else labels
        self.weight, self.unit = rows.weight, rows.unit
        self.R, self.W = loss.residual(P, self.labels), loss.curvature(P)

    def first_step(self, spread: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(I − uAW)⁻¹A·u·r (m, k) for some rows, where A (m, k, k) is their diagonal block of M."""
        return (spread @ self._pull(spread, rows)[:, :, None])[:, :, 0]

    def _pull(self, spread, rows) -> np.ndarray:
        """u(I − uWA)⁻¹r: the pull of the row, measured at the model without it."""
        unit = self.unit[rows, None, None]
        system = np.eye(self.R.shape[1]) - unit * (self.W[rows] @ spread)
        return np.linalg.solve(system, unit * self.R[rows, :, None])[:, :, 0]

    def refitted(self, influence: np.ndarray, refit: Callable[[int], np.ndarray] | None = None) -> np.ndarray:
        """How far the columns of each row move when it is left out (n, k), from M (n, k, n, k).

        If the curvature changes much without a row, the iteration does not converge. Then ``refit(row)`` is used if
        given, otherwise Newton's method while it is affordable, otherwise the closed form.
        """
        n, k = self.R.shape
        own = np.arange(n)
        pull = self._pull(influence[own, :, own], own)
        moves = np.einsum("mjil,il->mji", influence, pull)  # Δ (n, k) of all rows, for each row left out
        first, M = moves[own, :, own], influence.reshape(n * k, n * k)
        seen: list[tuple[np.ndarray, np.ndarray]] = []
        for _ in range(MAX_STEPS):
            image = -(M @ self._remainder(moves).reshape(n * k, n)).reshape(n, k, n)
            seen = [*seen, (image, image - moves)][-DEPTH - 1 :]
            change = np.abs(image - moves)[own, :, own].max(axis=1)
            if change.max() < ARRIVED:
                break
            moves = _accelerated(seen)
        found, affordable = moves[own, :, own], NEWTON_FLOPS / (NEWTON_STEPS * (n * k) ** 3)
        lost = np.flatnonzero(~(change < ARRIVED))
        for number, row in enumerate(lost[np.argsort(-change[lost], kind="stable")]):
            if refit is not None:
                found[row] = refit(int(row))
            else:
                found[row] = self._newton(M, row) if number < affordable else first[row]
        return found

    def _newton(self, M: np.ndarray, row: int) -> np.ndarray:
        """How far the columns of a row move when it is left out: Δ + Ms(Δ) = 0 by damped Newton steps from Δ = 0."""
        n, k = self.R.shape
        moves, blocks = np.zeros((n, k, 1)), M.reshape(n * k, n, k)
        rest = (M @ self._remainder(moves, [row]).ravel()).reshape(n, k, 1)
        for _ in range(NEWTON_STEPS):
            jacobian = self._remainder_jacobian(moves, row)
            J = np.einsum("aml,mlj->amj", blocks, jacobian).reshape(n * k, n * k)
            J.flat[:: n * k + 1] += 1.0
            step = np.linalg.solve(J, rest.ravel()).reshape(n, k, 1)
            moves, rest = self._shortened(M, row, moves, rest, step)
            if np.abs(step).max() < ARRIVED:
                break
        return moves[row, :, 0]

    def _shortened(self, M, row: int, moves, rest, step):
        """The new point and its residual after a step, halved until the residual decreases."""
        size = np.linalg.norm(rest)
        for halving in range(MAX_HALVINGS):
            tried = moves - 0.5**halving * step
            left = tried + (M @ self._remainder(tried, [row]).ravel()).reshape(tried.shape)
            if np.linalg.norm(left) <= (1.0 - 0.25 * 0.5**halving) * size:
                return tried, left
        return tried, left

    def _remainder_jacobian(self, moves: np.ndarray, row: int) -> np.ndarray:
        """∂s/∂Δ (n, k, k) for the model without a row."""
        _, P = self.loss.evaluate(self.U + moves[:, :, 0], self.labels, np.zeros(len(moves)))
        without = self.weight.copy()
        without[row] -= self.unit[row]
        return without[:, None, None] * self.loss.curvature(P) - self.weight[:, None, None] * self.W

    def _remainder(self, moves: np.ndarray, rows=None) -> np.ndarray:
        """s (n, k, m): the contribution of every row to the gradient of the models without each of ``rows``, or all."""
        n, k, m = moves.shape
        rows = np.arange(n) if rows is None else rows
        labels = np.repeat(self.labels, m, axis=0)
        moved = (self.U[:, :, None] + moves).transpose(0, 2, 1).reshape(n * m, k)
        _, P = self.loss.evaluate(moved, labels, np.zeros(n * m))
        there = self.loss.residual(P, labels).reshape(n, m, k).transpose(0, 2, 1)
        without = np.repeat(self.weight[:, None], m, axis=1)
        without[rows, np.arange(m)] -= self.unit[rows]
        linear = self.R[:, :, None] + np.einsum("mjl,mli->mji", self.W, moves)
        return without[:, None] * there - self.weight[:, None, None] * linear


def _accelerated(seen: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Anderson acceleration: for each model, the combination of the last images with the smallest remaining change."""
    image, change = seen[-1]
    if len(seen) == 1:
        return image
    images, changes = (np.stack([b - a for a, b in pairwise(part)]) for part in zip(*seen))
    square = np.einsum("amji,bmji->iab", changes, changes)
    slack = 1e-10 * np.trace(square, axis1=1, axis2=2) + np.finfo(float).tiny
    square += slack[:, None, None] * np.eye(len(changes))
    share = np.linalg.solve(square, np.einsum("amji,mji->ia", changes, change)[:, :, None])[:, :, 0]
    return image - np.einsum("amji,ia->mji", images, share)


def _half_features(objective, p: np.ndarray) -> np.ndarray:
    """L⁻¹φ of all rows (b, n), where LLᵀ = Σ wpφφᵀ + ρK."""
    design = objective.design
    lower = factor(design.gram(np.maximum(p, 1e-12) * design.rows.weight), objective.gram, objective.rho).lower
    return linalg.solve_triangular(lower, design.some(slice(None)).T, lower=True, check_finite=False)


def _spread_of_one(half: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The diagonal of M (m, 1, 1) for a single column."""
    return np.einsum("ij,ij->j", half[:, rows], half[:, rows])[:, None, None]


def _influence_of_one(half: np.ndarray) -> np.ndarray:
    """M (n, 1, n, 1) for a single column."""
    return (half.T @ half)[:, None, :, None]


def _spread_of_classes(halves, P, weight, rows: np.ndarray, base: bool = False, intercept: bool = True) -> np.ndarray:
    """The diagonal blocks of M (m, k, k) for some rows."""
    cross = _coupling(halves, P, weight, rows, intercept and not base)
    spread = cross @ cross.transpose(0, 2, 1)
    np.einsum("ijj->ij", spread)[:] += np.column_stack([np.einsum("ij,ij->j", h[:, rows], h[:, rows]) for h in halves])
    turn = _turn(len(halves), base)
    return turn.T @ spread @ turn


def _influence_of_classes(halves, P, weight, base: bool = False, intercept: bool = True) -> np.ndarray:
    """All of M (n, k, n, k)."""
    n, turn = len(P), _turn(len(halves), base)
    k = turn.shape[1]
    cross = (turn.T @ _coupling(halves, P, weight, np.arange(n), intercept and not base)).reshape(n * k, n)
    M = (cross @ cross.T).reshape(n, k, n, k)
    for j, half in enumerate(halves):
        M += (half.T @ half)[:, None, :, None] * np.outer(turn[j], turn[j])[:, None, :]
    return M


def _turn(n_halves: int, base: bool) -> np.ndarray:
    """From the classes of the halves to the columns: in the base-class form they are the same."""
    return np.eye(n_halves) if base else Multinomial(n_halves).columns(np.eye(n_halves))


def _coupling(halves, P, weight, rows: np.ndarray, is_singular: bool) -> np.ndarray:
    """The coupling of the classes (m, c, n); M is block-diagonal plus the square of it.

    The Hessian is G − ΨΨᵀ: G is block-diagonal with G_j = Σᵢ wᵢp_ijφᵢφᵢᵀ + ρK, and column i of Ψ stacks √wᵢ·p_ijφᵢ. By
    Woodbury its inverse is G⁻¹ + G⁻¹Ψ(I − ΨᵀG⁻¹Ψ)⁻¹ΨᵀG⁻¹, and I − ΨᵀG⁻¹Ψ is only n × n. It is singular if every class
    has an unpenalised constant: adding the same number to all of them changes nothing, and that direction is fixed.
    """
    root, n = np.sqrt(weight), len(P)
    inner = np.outer(root, root / (root @ root)) if is_singular else np.zeros((n, n))
    inner.flat[:: n + 1] += 1.0
    for p, half in zip(P.T, halves):
        scaled = half * (p * root)
        inner -= scaled.T @ scaled
    lower = factor(inner, None, 1e-10).lower
    cross = np.empty((len(rows), len(halves), n))
    for j, (p, half) in enumerate(zip(P.T, halves)):
        image = (half * (p * root)).T @ half[:, rows]
        cross[:, j] = linalg.solve_triangular(lower, image, lower=True, check_finite=False).T
    return cross
