"""How far leverages are from exact ones, and what that does to the calibrated probabilities: a part of all_centers."""

from __future__ import annotations

import numpy as np

from kproba.data.rows import Rows
from kproba.links import fit_link
from kproba.problems.least_squares import leave_one_out
from kproba.solvers import iterative_dual
from kproba.solvers.cg import LocalInverse, Probes, solve
from kproba.solvers.dual import Dual, DualSolution
from kproba.solvers.iterative_dual import IterativeDual
from kproba.solvers.packed_dual import PackedDual

from . import results
from .tables_quality import measure

#: Random right-hand sides from which conjugate gradients estimate the leverages.
PROBES = (8, 16, 32, 64, 128)


class Distinct:
    """Distinct rows with their weights and sums, and the scores of the exact solution."""

    def __init__(self, X, y, kernel, ridge: float):
        self.rows = Rows.of(X, y, np.ones(len(X)), int(y.max()) + 1)
        self.points, self.center = np.unique(X, axis=0, return_inverse=True)
        self.weight = np.bincount(self.center).astype(np.float64)
        self.sums = np.zeros((len(self.points), self.rows.n_targets))
        np.add.at(self.sums, self.center, self.rows.targets())
        self.kernel, self.ridge = kernel, ridge * len(X)

    def exact(self) -> DualSolution:
        return next(Dual(self.kernel.gram(self.points), self.weight, self.sums).path([self.ridge]))

    def packed(self) -> DualSolution:
        return next(PackedDual(self.points, self.kernel, self.kernel.gram, self.weight, self.sums).path([self.ridge]))

    def estimated(self) -> dict[int, np.ndarray]:
        """Leverages by conjugate gradients, for every number of probes."""
        dual = IterativeDual(self.points, self.kernel, self.weight, self.sums)
        near, probes = dual._preconditioner, Probes.draw(len(self.points), max(PROBES))
        solved = solve(dual._product, near, probes.rhs(near), self.ridge, iterative_dual.PROBE_TOL).coef
        local = LocalInverse.of(dual._gram_of, dual._neighbours, self.ridge, self.weight)
        some = {q: Probes(probes.signs[:, :q]) for q in PROBES}
        return {q: found.leverages(solved[:, :q], near, self.ridge, local).estimate for q, found in some.items()}

    def link(self, exact: DualSolution, leverage: np.ndarray):
        """The link from leave-one-out scores by these leverages, and the log-loss of these scores."""
        taken = leverage[self.center, None]
        scores = leave_one_out(exact.fitted[self.center], taken, self.rows.targets(), self.rows.unit)
        link = fit_link("auto", scores, self.rows)
        return link, _log_loss(self.rows.labels, link.probabilities(scores))


def compared(X, y, X_test, y_test, kernel, ridge: float) -> dict:
    """Exact leverages beside float32 ones and estimates: errors of 1 − h in shares, log-losses after calibration."""
    problem = Distinct(X, y, kernel, ridge)
    exact, exact_seconds = results.timed(problem.exact)
    packed, packed_seconds = results.timed(problem.packed)
    found = {"exact": exact.leverage, "float32": packed.leverage}
    found |= {f"{q} probes": leverage for q, leverage in problem.estimated().items()}
    scores = kernel(X_test, problem.points) @ exact.coef()
    left, cells = 1.0 - exact.leverage, {}  # of one copy of a row, as leave-one-out leaves out one
    for name, leverage in found.items():
        error = (1.0 - leverage) / left - 1.0
        link, held_out = problem.link(exact, leverage)
        test = _log_loss(y_test, link.probabilities(scores))
        errors = {"rms": np.sqrt(np.mean(error**2)), "mean": error.mean(), "worst": np.abs(error).max()}
        cells[name] = errors | {"loo_log_loss": held_out, "test_log_loss": test}
    seconds = {"float64": exact_seconds, "float32": packed_seconds}
    about = {"rows": len(X), "distinct": len(problem.points), "mean_leverage": float(1.0 - left.mean())}
    return about | {"seconds": seconds, "cells": cells}


def _log_loss(y, proba) -> float:
    return measure(y, proba, np.arange(proba.shape[1]))["log_loss"]
