"""Fits by passes over all rows beside fits in memory -> results/passes.json.

Kernel logistic regression and import vectors, which go over the rows several times.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from kproba import ImportVectorMachine, KernelLogisticRegression
from kproba.data.real import load
from kproba.data.toys import clouds_2013
from kproba.estimators import _reading

from . import results

NOTE = (
    "The same rows by passes, with a sample of so many of them in memory, and all in memory; one fit each. Import "
    "vectors: defaults. Kernel logistic regression: 500 centres, Gaussian kernel, width and ridge given. The last "
    "fifth of the rows tests, of clouds_2013 20,000 others. The rounds of the import vector machine were settled while "
    "looking at magic."
)
GIVEN = {"kernel": "gaussian", "ridge": 1e-5, "centers": 500, "random_state": 0}
MODELS = {
    "import vectors": lambda width: ImportVectorMachine(random_state=0),
    "logistic regression": lambda width: KernelLogisticRegression(**GIVEN, width=width),
}
#: Rows in the sample, and the width for kernel logistic regression. Of sets with fewer than 50,000 rows it is cut.
SETS = {"clouds_2013": (50_000, 4.0), "magic": (5_000, 3.0), "covertype_93k": (50_000, 4.0)}

#: Fits in memory that take more than ten minutes.
TOO_LONG = {("import vectors", "covertype_93k")}


def rows_of(name: str, data_dir, n: int | None):
    """Training and test rows."""
    if name == "clouds_2013":
        train, test = (clouds_2013(size, random_state=seed) for seed, size in enumerate((n or 200_000, 20_000)))
        return train.X, test.X, train.y, test.y
    table = load(name, data_dir)
    X, y = np.asarray(table.X, dtype=np.float64)[:n], np.asarray(table.y)[:n]
    return train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)


@contextmanager
def sample_of(size: int):
    """Samples of so many rows: of more than there are, everything is in memory."""
    original = _reading.sample_size
    _reading.sample_size = lambda d: size
    try:
        yield
    finally:
        _reading.sample_size = original


def fitted(make, rows, sample: int) -> dict:
    """One fit, and what became of it."""
    X, X_test, y, y_test = rows
    with sample_of(sample):
        model, seconds = results.timed(lambda: make().fit(X, y))
    cell = {"seconds": seconds, "log_loss": log_loss(y_test, model.predict_proba(X_test)), "points": len(model.coef_)}
    return cell | {"passes": int(getattr(model, "n_passes_", model.n_iter_))}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--rows", type=int, help="only so many rows, for a trial")
    parser.add_argument("--sample", type=int, help="only so many of them in the sample")
    args = parser.parse_args(argv)
    cells = {}
    for name in args.sets:
        sample, width = SETS[name]
        rows = rows_of(name, args.data_dir, args.rows)
        for model, make in MODELS.items():
            sizes = {"by_passes": args.sample or sample, "in_memory": 10**9}
            if (model, name) in TOO_LONG:
                del sizes["in_memory"]
            about = {"rows": len(rows[0]), "sample": args.sample or sample, "classes": len(np.unique(rows[2]))}
            cells[f"{model}, {name}"] = about | {
                where: fitted(lambda: make(width), rows, size)  # noqa: B023
                for where, size in sizes.items()
            }
            print(model, name, cells[f"{model}, {name}"], file=sys.stderr, flush=True)
    results.write("passes", {"note": NOTE, "cells": cells}, args.out)


if __name__ == "__main__":
    main()
