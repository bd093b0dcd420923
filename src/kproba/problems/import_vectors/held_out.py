"""Leave-one-out scores of an import vector machine.

The import points stay the same, except that a row that is an import point is removed together with its point, which
would not have been chosen without it. Only a new search could tell which points would have been chosen instead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from ...threads import row_slices
from ..leave_one_out import FullSolution
from .model import ImportModel, lower_factor

#: Maximum operations per iteration towards the refits of all rows; beyond, one Newton step from the model is used.
STEP_FLOPS = 2e8
#: Maximum operations for refits without an import point, and Newton steps per refit; beyond, the points are kept.
REFIT_FLOPS, REFIT_STEPS = 5e9, 6


def leave_one_out(model: ImportModel) -> np.ndarray:
    """U (n, k) of each row by the model without one unit of its weight."""
    (n, k), q = model.U.shape, len(model.chosen)
    factors, out = model.full_factors(), model.U.copy()
    for group, C, lower in zip(model.task.groups, model.task.unit_curvatures(model.P), factors.lowers):
        g = C.shape[1]
        is_small = 2.0 * (n * g) ** 2 * n <= STEP_FLOPS
        out[:, group] += _refitted(model, group, lower) if is_small else _one_step(model, group, C, lower)
    if 2.0 * REFIT_STEPS * q * n * (q * k) ** 2 <= REFIT_FLOPS:
        _leave_out_points(model, out)
    return out


def _refitted(model: ImportModel, group: slice, lower: np.ndarray) -> np.ndarray:
    """How far U of each row moves when it is left out, iterated to the refits, from the full M = ΨH⁻¹Ψᵀ."""
    task, psi, g = model.task, model.psi, group.stop - group.start
    n, a = psi.shape
    loss = task.loss if g == task.loss.n_columns else type(task.loss)(g)
    columns = np.einsum("ia,jk->ijak", psi, np.eye(g)).reshape(n * g, a * g)
    half = linalg.solve_triangular(lower, columns.T, lower=True, check_finite=False)
    is_tag = task.rows.labels.ndim == 2
    labels, P = (task.rows.labels[:, group], model.P[:, group]) if is_tag else (task.rows.labels, model.P)
    influence = (half.T @ half).reshape(n, g, n, g)
    everything = np.arange(len(model.chosen))
    return FullSolution(loss, model.U[:, group], P, task.rows, labels).refitted(
        influence, lambda row: _fit_without(model, row, everything)[group] - model.U[row, group]
    )


def _one_step(model: ImportModel, group: slice, C: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """The same by one Newton step: (I − A_iW_i)⁻¹A_i·rᵢ with A_i = ψᵢᵀH⁻¹ψᵢ (g, g), and r and W per unit."""
    unit, a, g = model.task.rows.unit, model.psi.shape[1], C.shape[1]
    slope = unit[:, None] * model.task.loss.residual(model.P, model.task.rows.labels)[:, group]
    inverse = linalg.cho_solve((lower, True), np.eye(a * g), check_finite=False).reshape(a, g, a, g)
    moved = np.empty_like(slope)
    for rows in row_slices(len(slope), 8 * (a + 3 * g * g)):
        A = _row_forms(model.psi[rows], inverse)
        system = np.eye(g) - A @ (unit[rows, None, None] * C[rows])
        moved[rows] = np.linalg.solve(system, A @ slope[rows, :, None])[:, :, 0]
    return moved


def _row_forms(psi: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """ψᵢᵀ M_pr ψᵢ (n, g, g) for every row, for M (a, g, a, g)."""
    g = inverse.shape[1]
    out = np.empty((len(psi), g, g))
    for p in range(g):
        for r in range(p + 1):
            out[:, p, r] = out[:, r, p] = np.einsum("ij,ij->i", psi @ inverse[:, p, :, r], psi)
    return out


def _leave_out_points(model: ImportModel, out: np.ndarray) -> None:
    """For import points without a copy, set U by a refit without the row and the point, in place."""
    rows = model.task.rows
    for place, row in enumerate(model.chosen):
        # whether no copy of the row is left after removing one unit of its weight
        if rows.unit[row] >= rows.weight[row] and np.count_nonzero(rows.keys == rows.keys[row]) == 1:
            out[row] = _fit_without(model, row, np.delete(np.arange(len(model.chosen)), place))


def _fit_without(model: ImportModel, row: int, points: np.ndarray) -> np.ndarray:
    """U (k,) of a row by a refit of some of the points, without one unit of the row's weight."""
    gram = model.lower @ model.lower.T
    lower = lower_factor(gram[np.ix_(points, points)])
    psi = linalg.solve_triangular(lower, model.lower[points] @ model.psi[:, 1:].T, lower=True, check_finite=False).T
    weight = model.task.rows.weight.copy()
    weight[row] -= model.task.rows.unit[row]
    task = replace(model.task, rows=replace(model.task.rows, weight=weight))
    nearest = linalg.solve_triangular(lower, gram[points] @ model.coef, lower=True, check_finite=False)
    start, chosen = np.vstack([model.beta[:1], nearest]), [model.chosen[place] for place in points]
    return ImportModel(task, model.ridge, chosen, lower, start, psi).converge().U[row]
