"""Leave-one-out with centres that belong to classes (2010 Eq. 7): a row is left out together with its own centre.

If the centres of a class are its own rows, their positions reveal the labels of these rows. If a row stayed a centre of
its class while it is left out, the model would still have seen its label.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..basis.basis import Basis
from ..data.hashing import distinct, exact_keys, stacked
from ..data.rows import Rows
from ..kernels import Precomputed

#: Memory for the rows of the inverse needed by one block of rows.
BLOCK_BYTES = 32 << 20
#: Leverage one: the model without the row does not exist at this ridge.
FLOOR = 1e-12


def own_centers(rows: Rows, basis: Basis) -> np.ndarray:
    """For every row, the indices of the centres to remove when it is left out (n, k), padded with −1.

    A centre of class y is removed with the last unit of weight of the rows of class y that are equal to it.
    """
    of_rows, of_points = _numbers(rows, basis)
    assert basis.owner is not None
    found = []
    for y in np.unique(basis.owner[basis.owner >= 0]):
        found.append(np.full(len(rows), -1))
        _add_class(found[-1], rows, _inside(rows, y), of_rows, of_points, np.flatnonzero(basis.owner == y))
    return _compressed(np.column_stack(found) if found else np.empty((len(rows), 0), dtype=int))


def drop_held_out_centers(rows: Rows, basis: Basis) -> Basis:
    """The basis without the centres of held-out rows: the centres that ``rows`` alone would have."""
    of_rows, of_points = _numbers(rows, basis)
    assert basis.owner is not None
    kept = np.zeros(basis.n_centers, dtype=bool)
    for y in np.unique(basis.owner[basis.owner >= 0]):
        kept |= (basis.owner == y) & np.isin(of_points, of_rows[_inside(rows, y)])
    which = np.flatnonzero(kept)
    return replace(basis, centers=basis.centers[which], owner=basis.owner[which], row_center=None)


def _numbers(rows: Rows, basis: Basis) -> tuple[np.ndarray, np.ndarray]:
    """Identifiers of the rows and of the centres, the same for equal ones."""
    if isinstance(basis.kernel, Precomputed):
        return rows.number, np.asarray(basis.centers)
    numbers = distinct(exact_keys(stacked(rows.X, basis.centers)))[1]
    return numbers[: len(rows)], numbers[len(rows) :]


def _inside(rows: Rows, y: int) -> np.ndarray:
    """A mask of the rows that belong to a class, or have a tag."""
    return rows.labels[:, y] == 1 if rows.is_multilabel else rows.labels == y


def _add_class(out, rows: Rows, inside: np.ndarray, of_rows, of_points, centers: np.ndarray) -> None:
    """Record the centre of every row of one class that no other row shares."""
    own = np.flatnonzero(inside)
    values, group = np.unique(of_rows[own], return_inverse=True)
    mass = rows.weight if rows.mass is None else rows.mass
    total = np.bincount(group.ravel(), mass[own], len(values))[group.ravel()]
    last = own[total - rows.unit[own] <= FLOOR * total]
    order = np.argsort(of_points[centers], kind="stable")
    sorted_points = of_points[centers][order]
    place = np.minimum(np.searchsorted(sorted_points, of_rows[last]), max(0, len(order) - 1))
    if len(order):
        is_center = sorted_points[place] == of_rows[last]
        out[last[is_center]] = centers[order[place[is_center]]]


def _compressed(found: np.ndarray) -> np.ndarray:
    """The same with the entries of every row moved to the front, and only as many columns as needed."""
    longest = int((found >= 0).sum(axis=1).max(initial=0))
    return -np.sort(-found, axis=1)[:, :longest]


def coefficients_without(inverse, phi, theta, targets, unit, own: np.ndarray) -> np.ndarray:
    """The coefficients (m, b) of one target in the models without each row of features ``phi`` (m, b).

    With A = H + ρP, B = A⁻¹ (``inverse``), v = Bφ and u the ``unit`` of the row, the system without the row has the
    inverse B₁ = B + uvvᵀ/(1 − uφᵀv) and the solution θ₁ = θ − v·u(t − f₁), where f₁ is the score of the row by θ₁.
    Without the centres C = ``own`` (m, k; −1 for none) it is θ₁ − B₁E(EᵀB₁E)⁻¹Eᵀθ₁ with E the columns of the identity
    that belong to C: an exact downdate, of rank two for one centre.
    """
    V = phi @ inverse
    taken = unit * np.einsum("ij,ij->i", V, phi)
    room = np.maximum(1.0 - taken, FLOOR)
    score = (phi @ theta - taken * targets) / room
    out = theta - V * (unit * (targets - score))[:, None]
    leaving = np.flatnonzero((own >= 0).any(axis=1))
    step = max(1, BLOCK_BYTES // (8 * max(1, own.shape[1] * len(theta))))
    for some in (leaving[start : start + step] for start in range(0, len(leaving), step)):
        out[some] = _without_centers(inverse, out[some], V[some], (unit / room)[some], own[some])
    return out


def _without_centers(inverse, theta, V, factor, own) -> np.ndarray:
    """θ₁ − B₁E(EᵀB₁E)⁻¹Eᵀθ₁ for every row, zero at its own centres."""
    there = own >= 0
    at = np.where(there, own, 0)
    of_V = np.take_along_axis(V, at, axis=1)
    columns = inverse[at] + (factor[:, None] * of_V)[:, :, None] * V[:, None, :]  # (m, k, b); B is symmetric
    small = np.take_along_axis(columns, at[:, None, :].repeat(at.shape[1], axis=1), axis=2)
    small = np.where(there[:, :, None] & there[:, None, :], small, np.eye(at.shape[1]))
    pull = np.where(there, np.take_along_axis(theta, at, axis=1), 0.0)
    share = np.where(there, np.linalg.solve(small, pull[:, :, None])[:, :, 0], 0.0)
    theta = theta - np.einsum("mk,mkb->mb", share, columns)
    rows, which = np.nonzero(there)
    theta[rows, own[rows, which]] = 0.0
    return theta
