"""The regularisation path of least squares (2010 Sec. 4): the solutions for many ridges in one basis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..problems.base import Problem, Solution
from ..problems.least_squares import LeastSquares
from ..search.losses import loss_for_link
from ._reading import Training

if TYPE_CHECKING:
    from .lspc import LSPC


class RidgePath(NamedTuple):
    """The solutions of :meth:`LSPC.path` for m ridges, all with the same kernel, width and centres.

    ``coef[k]``, ``scores[k]`` and ``loo_scores[k]`` are what ``coef_``, the raw scores of the training rows and
    ``loo_scores_`` would be after a fit with ``ridge=ridges[k]``.
    """

    #: (m,)
    ridges: np.ndarray
    #: (m, b, n_classes); multi-label problems have an extra last column, as in ``LSPC.coef_``
    coef: np.ndarray
    #: (m, n, n_classes): Φθ of the training rows, before the link
    scores: np.ndarray
    #: (m, n, n_classes): the same by models without each row
    loo_scores: np.ndarray
    #: (m,): the loss of ``loo_scores`` that selects a ridge, smaller is better
    loo_loss: np.ndarray

    @property
    def best(self) -> int:
        """The index of the ridge with the smallest leave-one-out loss."""
        return int(self.loo_loss.argmin())


def ridge_path(model: LSPC, problem: Problem, ridges: Sequence[float], data: Training) -> RidgePath:
    """Solve a problem of rows in memory at every ridge; the model is the one fitted to it."""
    if isinstance(problem, LeastSquares) and problem.rkhs and not problem.is_dual and problem.solver == "auto":
        # one eigendecomposition for all ridges would resolve small eigenvalues of the kernel matrix less well
        problem = replace(problem, solver="cholesky")
    judge = loss_for_link(model.link, data.rows)
    parts, losses = [], []
    for solution in problem.path(ridges):
        losses.append(judge(solution.held_out, data.rows))
        parts.append(_of_rows(model, solution, data))
    coef, scores, loo_scores = map(np.stack, zip(*parts))
    return RidgePath(np.asarray(ridges), coef, scores, loo_scores, np.array(losses))


def _of_rows(model: LSPC, solution: Solution, data: Training) -> tuple[np.ndarray, ...]:
    """Coefficients, scores and leave-one-out scores of the rows of X; rows of weight zero have plain scores."""
    model.coef_ = solution.coef()
    scores = model._scores_of_checked(data.inputs)
    assert data.place is not None  # rows in memory have one
    there = data.place >= 0
    held_out = np.where(there[:, None], solution.held_out[data.place], scores)
    c = len(model.classes_)
    return model.coef_, scores[:, :c], held_out[:, :c]
