"""Stochastic gradients beside the exact solution of LSPC: loss against passes over the rows (2010 Sec. 4).

Centres are shared by all classes (2010 Eq. 5), or belong to one each (Eq. 7).
"""

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
from kproba.papers.stochastic import averaged_sgd
from kproba.problems.least_squares import LeastSquares

PASSES, CENTERS, RIDGES = 30, 300, (1e-2, 1e-4)


def rows_of(options) -> tuple[Rows, dict]:
    """Scaled rows, and the kernel and centres of LSPC with a median width, shared by the classes or their own."""
    if options.quick:
        toy = clouds_2013(600, random_state=options.seed)
        X, y = toy.X, toy.y
    else:
        table = load("letter", options.data_dir)
        X, y = np.asarray(table.X, dtype=np.float64)[:4000], np.asarray(table.y)[:4000]
    b, classes = min(CENTERS, len(y) // 10), np.unique(y)
    given = {"kernel": "gaussian", "width": "median", "ridge": 1e-2, "link": "clip", "random_state": options.seed}
    choices = {"shared": b, "of classes": ("class", b // len(classes))}
    models = {name: LSPC(centers=centers, **given).fit(X, y) for name, centers in choices.items()}
    rows = Rows.of(models["shared"].scaling_(X), np.searchsorted(classes, y), np.ones(len(y)), len(classes))
    return rows, {name: model.basis_ for name, model in models.items()}


def follow(rows: Rows, basis, rkhs: bool, ridge: float, options) -> dict:
    """The objective after every pass over its smallest value, and the seconds of both solvers."""
    phi, Y = basis(rows.X), rows.targets()
    penalty = basis.gram() if rkhs else None

    same = 1.0 if basis.owner is None else basis.owner[:, None] == basis.owner

    def objective(theta):
        pull = theta if penalty is None else (penalty * same) @ theta
        return float(np.square(phi @ theta - Y).sum() / (2 * len(Y)) + 0.5 * ridge * np.sum(theta * pull))

    start = time.perf_counter()
    (solution,) = LeastSquares(rows, basis, rkhs).path([ridge], loo=False)
    best, exact = objective(solution.coef()), time.perf_counter() - start
    seen: list[float] = []
    start, passes = time.perf_counter(), 4 if options.quick else PASSES
    watch = {"watch": lambda theta: seen.append(objective(theta)), "owner": basis.owner}
    averaged_sgd(rows, basis, penalty, ridge, passes, options.seed, **watch)
    seconds = time.perf_counter() - start
    return {"excess": [value / best - 1.0 for value in seen], "exact_seconds": exact, "sgd_seconds": seconds}


def draw(found: dict) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
    for panel, (title, paths) in zip(panels, found.items(), strict=True):
        for (name, path), colour, marker in zip(paths.items(), colours, "os^D", strict=True):
            passes = np.arange(1, len(path["excess"]) + 1)
            panel.semilogy(passes, path["excess"], color=colour, marker=marker, markersize=4, label=name)
        panel.set(title=f"centres {title}", xlabel="passes over the rows")
    panels[0].set_ylabel("loss above the exact solution's, relative")
    panels[1].legend(frameon=False, fontsize=8)
    return figure


def main(argv=None) -> None:
    options = results.parse(argv, __doc__)
    rows, bases = rows_of(options)
    found = {
        which: {
            f"{name}, λ = {ridge:g}": follow(rows, basis, rkhs, ridge, options)
            for name, rkhs in (("RKHS penalty", True), ("penalty of the papers", False))
            for ridge in RIDGES
        }
        for which, basis in bases.items()
    }
    results.picture(draw(found), "sgd_2010", options.out)
    centers = {which: basis.n_centers for which, basis in bases.items()}
    results.write("sgd_2010", {"rows": len(rows), "centers": centers, "paths": found}, options)


if __name__ == "__main__":
    main(sys.argv[1:])
