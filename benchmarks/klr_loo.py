"""Leave-one-out of kernel logistic regression beside n refits, 200 rows a set -> results/klr_loo.json."""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import logsumexp
from sklearn.preprocessing import StandardScaler

from kproba import Gaussian
from kproba.basis.basis import Basis
from kproba.data.real import load
from kproba.data.rows import Rows
from kproba.problems.leave_one_out import leave_one_out
from kproba.problems.likelihood import Likelihood
from kproba.search.widths import median_width

from . import results

SETS = ("pima", "magic", "vehicle", "satimage", "vowel_uci", "usps")
ROWS, MULTIPLES, RIDGES = 200, (0.5, 1.0), tuple(10.0**e for e in (-1, -1.5, -2, -2.5, -3, -3.5, -4))
NOTE = (
    "Mean log-loss of every row by the model without it, all rows as centres, Gaussian kernel, standardised columns: "
    "by n refits with the same penalty of the sum (refits), as the library has it (approximate), and by one Newton "
    "step, which is what it has for many rows (closed). Differences are relative, for every ridge; best: the ridge "
    "with the smallest log-loss by refits. chosen_excess: how much more the ridge that each chooses costs by refits "
    "than the best one, relative. seconds: of all ridges."
)


def log_loss(scores, labels) -> float:
    return float(np.mean(logsumexp(scores, axis=1) - scores[np.arange(len(labels)), labels]))


def refitted(problem: Likelihood, ridge: float) -> np.ndarray:
    """Scores of all rows, each by a fit without it."""
    n = len(problem.rows)
    found = [problem.hold_out(np.array([i]), [ridge * n / (n - 1)]) for i in range(n)]
    return np.vstack([next(solutions).held_out for solutions in found])


def measure(X, labels, multiple: float) -> dict:
    rows = Rows.of(StandardScaler().fit_transform(X), labels, np.ones(len(labels)), int(labels.max()) + 1)
    width = multiple * median_width(Gaussian(), rows, seed=0)
    problem = Likelihood(rows, Basis(Gaussian(width), rows.X), tol=1e-8)
    ways = {
        "approximate": lambda: [log_loss(solution.held_out, labels) for solution in problem.path(RIDGES)],
        "closed": lambda: [log_loss(closed_form(problem, ridge), labels) for ridge in RIDGES],
        "refits": lambda: [log_loss(refitted(problem, ridge), labels) for ridge in RIDGES],
    }
    losses, seconds = {}, {}
    for name, way in ways.items():
        losses[name], seconds[name] = results.timed(way)
    exact = np.array(losses.pop("refits"))
    best = int(exact.argmin())
    cell = {"classes": rows.n_classes, "width": width, "refits": exact, "best_ridge": RIDGES[best], "seconds": seconds}
    for name, found in losses.items():
        differences = np.array(found) / exact - 1.0
        cell[name] = {
            "log_loss": found,
            "differences": differences,
            "difference_at_best": differences[best],
            "chosen_excess": exact[int(np.argmin(found))] / exact[best] - 1.0,
        }
    return cell


def closed_form(problem: Likelihood, ridge: float) -> np.ndarray:
    (solution,) = problem.path([ridge], loo=False)
    objective = problem.objective(ridge)
    X = objective.loss.columns(np.vstack([solution.coef(), solution.intercept]))
    return leave_one_out(objective, objective.at(X), np.arange(len(problem.rows)), step_flops=0)


def drawn(name: str, data_dir, n: int, seed: int = 0):
    """Some rows of a set at random."""
    table = load(name, data_dir)
    chosen = np.random.default_rng(seed).permutation(len(table.y))[:n]
    X, y = np.asarray(table.X, dtype=np.float64)[chosen], np.asarray(table.y)[chosen]
    return X[:, X.std(axis=0) > 0], np.unique(y, return_inverse=True)[1]


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--rows", type=int, default=ROWS)
    args = parser.parse_args(argv)
    cells = {}
    for name, multiple in ((name, multiple) for name in args.sets for multiple in MULTIPLES):
        X, labels = drawn(name, args.data_dir, args.rows)
        key = f"{name}/{multiple:g}"
        cells[key] = measure(X, labels, multiple)
        print(f"{key}: {cells[key]}", file=sys.stderr, flush=True)
    results.write("klr_loo", {"note": NOTE, "rows": args.rows, "ridges": RIDGES, "cells": cells}, args.out)


if __name__ == "__main__":
    main()
