"""Tags with missing labels: one problem per group of tags, on the rows where they are known, in a shared basis.

Tags known in the same rows form a group and share all work. The coefficients of all groups are put side by side, first
those of the tags and then one constant per group, which makes an ordinary model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ..basis.basis import Basis
from ..data.rows import Rows
from .base import CpuProblem, Problem, Solution, with_scores
from .least_squares import LeastSquares
from .own_centers import drop_held_out_centers, own_centers

#: The matrices of up to this many groups are kept.
KEPT_GROUPS = 4


class Part(NamedTuple):
    """A group of tags: its target columns, the rows where it is known, their problem, and its centres."""

    columns: np.ndarray
    where: np.ndarray
    problem: Any
    centers: np.ndarray


def parts_of(rows: Rows, pose: Callable[[Rows, np.ndarray, np.ndarray], tuple[Any, np.ndarray]]) -> Iterator[Part]:
    """The parts of all groups; ``pose(rows, tags, where)`` returns the problem and the indices of its centres.

    A sample of the rows may have no label for a tag, which then has no part and no coefficients.
    """
    for number in range(rows.n_groups):
        tags, where, own = rows.of_group(number)
        if len(where):
            yield Part(np.append(tags, rows.n_classes + number), where, *pose(own, tags, where))


def least_squares(rows: Rows, basis: Basis, *args, **kwargs) -> Problem:
    """The least-squares problem of rows and a basis, with or without missing tags."""
    if rows.group is None:
        return LeastSquares(rows, basis, *args, **kwargs)
    return TagsLeastSquares(rows, basis, LeastSquares(rows, basis, *args, **kwargs))


@dataclass(frozen=True)
class TagsLeastSquares(CpuProblem):
    """One :class:`~kproba.problems.least_squares.LeastSquares` per group of tags, combined into one Problem.

    ``like`` holds the settings. The total ridge of a group is λ times the weight of the rows where it is known.
    """

    rows: Rows
    basis: Basis
    like: LeastSquares
    device: Any = None
    has_cheap_loo = True

    @property
    def rows_for_ridge(self) -> int | None:
        return self.like.rows_for_ridge if self.device is None else None

    def on(self, device) -> TagsLeastSquares:
        """The same problem with its parts on a device."""
        return replace(self, device=device)

    @cached_property
    def _kept(self) -> list[Part]:
        return list(parts_of(self.rows, self._pose))

    def _parts(self) -> Iterable[Part]:
        """All parts: a few are kept between ridges; if there are many, only one at a time holds its matrices."""
        return self._kept if self.rows.n_groups <= KEPT_GROUPS else parts_of(self.rows, self._pose)

    def path(self, ridges: Sequence[float], loo: bool = True, loo_rows=None) -> Iterator[Solution]:
        """The solution for every ridge; where a tag is unknown, the held-out score is that of the model itself."""
        judged = np.arange(len(self.rows)) if loo_rows is None else loo_rows
        coefs, held_out, known = self._solve(ridges, judged if loo else judged[:0])
        for ridge, coef, scores in zip(ridges, coefs, held_out):
            if loo and not known.all():
                scores = np.where(known, scores, self.basis.scores(self.rows.X[judged], coef))
            yield Solution(ridge, scores if loo else None, partial(np.copy, coef))

    def _solve(self, ridges: Sequence[float], judged: np.ndarray):
        """Coefficients and leave-one-out scores of all parts for every ridge, and a mask of the scores that exist."""
        shape, place = (self.basis.n_centers, self.like.n_scores), np.full(len(self.rows), -1)
        place[judged] = np.arange(len(judged))
        coefs, held_out = ([np.zeros(size) for _ in ridges] for size in (shape, (len(judged), shape[1])))
        known = np.zeros((len(judged), shape[1]), dtype=bool)
        for part in self._parts():
            columns = part.columns
            if self.like.clip_parameters:  # one constant per tag
                columns = np.append(columns[:-1], self.rows.n_classes + columns[:-1])
            own = np.flatnonzero(place[part.where] >= 0)
            cells = np.ix_(place[part.where[own]], columns)
            known[cells] = True
            for coef, scores, found in zip(coefs, held_out, part.problem.path(ridges, len(own) > 0, own)):
                coef[np.ix_(part.centers, columns)] = found.coef()
                if len(own):
                    scores[cells] = found.held_out
        return coefs, held_out, known

    def hold_out(self, inside: np.ndarray, ridges: Sequence[float]) -> Iterator[Solution]:
        """Solutions without the rows ``inside``, and the scores of these rows for all tags."""
        rest = self.rows.without(inside)
        basis = replace(self.basis, row_center=None)  # some centres are held-out rows
        if basis.owner is not None:
            basis = drop_held_out_centers(rest, basis)
        without = TagsLeastSquares(rest, basis, replace(self.like, rows=rest, basis=basis), self.device)
        return with_scores(without.path(ridges, loo=False), basis, self.rows.X[inside])

    def _pose(self, rows: Rows, tags: np.ndarray, where: np.ndarray) -> tuple[LeastSquares, np.ndarray]:
        """The problem of one group. In the dual form, centres that are not among its rows would get no weight."""
        basis, own = self.basis, None
        centers = np.arange(basis.n_centers)
        if self.like.is_dual:
            centers, row_center = np.unique(basis.row_center[where], return_inverse=True)
            basis = replace(basis, centers=basis.centers[centers], row_center=row_center.ravel())
        else:
            owner = None
            if basis.owner is not None:  # a row also removes its centres of tags in other groups
                is_own, own = basis.owner[:, None] == tags, self._own_centers[where]
                owner = np.where(is_own.any(axis=1), is_own.argmax(axis=1), -1)  # positions among the tags
            basis = replace(basis, owner=owner, row_center=None)
        return replace(self.like, rows=rows, basis=basis, own=own).on(self.device), centers

    @cached_property
    def _own_centers(self) -> np.ndarray:
        return own_centers(self.rows, self.basis)
