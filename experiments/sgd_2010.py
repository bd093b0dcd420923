"""Stochastic gradients beside the exact solution of LSPC: loss against passes over the rows (2010 Sec. 4)."""

from __future__ import annotations

import sys
import time

import numpy as np
from matplotlib.figure import Figure

from experiments import results
from kproba import LSPC
from kproba.data.real import load
from kproba.data.rows import Rows
from kproba.data.toys import clouds_2013
from kproba.papers.averaged_sgd import averaged_sgd
from kproba.problems.least_squares import LeastSquares

PASSES, CENTERS, RIDGES = 30, 300, (1e-2, 1e-4)


def rows_of(options):
    """Scaled rows, and the kernel and centres of LSPC with a median width."""
    if options.quick:
        toy = clouds_2013(600, random_state=options.seed)
        X, y = toy.X, toy.y
    else:
        table = load("letter", options.data_dir)
        X, y = np.asarray(table.X, dtype=np.float64)[:4000], np.asarray(table.y)[:4000]
    b = min(CENTERS, len(y) // 10)
    model = LSPC(kernel="gaussian", width="median", ridge=1e-2, centers=b, link="clip", random_state=options.seed)
    model.fit(X, y)
    classes, codes = np.unique(y, return_inverse=True)
    return Rows.of(model.scaling_(X), codes, np.ones(len(y)), len(classes)), model.basis_


def follow(rows: Rows, basis, rkhs: bool, ridge: float, options) -> dict:
    """The objective after every pass over its smallest value, and the seconds of both solvers."""
    phi, Y = basis(rows.X), rows.targets()
    penalty = basis.gram() if rkhs else None

    def objective(theta):
        pull = theta if penalty is None else penalty @ theta
        return float(np.square(phi @ theta - Y).sum() / (2 * len(Y)) + 0.5 * ridge * np.sum(theta * pull))

    start = time.perf_counter()
    (solution,) = LeastSquares(rows, basis, rkhs).path([ridge], loo=False)
    best, exact = objective(solution.coef()), time.perf_counter() - start
    seen: list[float] = []
    start, passes = time.perf_counter(), 4 if options.quick else PASSES
    averaged_sgd(rows, basis, penalty, ridge, passes, options.seed, watch=lambda theta: seen.append(objective(theta)))
    seconds = time.perf_counter() - start
    return {"excess": [value / best - 1.0 for value in seen], "exact_seconds": exact, "sgd_seconds": seconds}


def draw(found: dict) -> Figure:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
    for (name, path), colour, marker in zip(found.items(), colours, "os^D"):
        passes = np.arange(1, len(path["excess"]) + 1)
        axes.semilogy(passes, path["excess"], color=colour, marker=marker, markersize=4, label=name)
    axes.set(xlabel="passes over the rows", ylabel="loss above the exact solution's, relative")
    axes.legend(frameon=False)
    return figure


def main(argv=None) -> None:
    options = results.parse(argv, __doc__)
    rows, basis = rows_of(options)
    found = {
        f"{name}, λ = {ridge:g}": follow(rows, basis, rkhs, ridge, options)
        for name, rkhs in (("RKHS penalty", True), ("penalty of the papers", False))
        for ridge in RIDGES
    }
    results.picture(draw(found), "sgd_2010", options.out)
    results.write("sgd_2010", {"rows": len(rows), "centers": basis.n_centers, "paths": found}, options)


if __name__ == "__main__":
    main(sys.argv[1:])
