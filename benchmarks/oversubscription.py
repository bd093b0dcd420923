"""Threads of a fit beside those of joblib: what ``n_jobs=None`` should mean -> results/oversubscription.json."""

from __future__ import annotations

import sys

import joblib
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.model_selection import cross_val_score

from kproba import LSPC

from . import results

FOLDS = 4
BACKENDS = ("loky", "threading")
#: -1 is all cores in every worker, which None meant until it yielded to joblib.
JOBS = {"n_jobs=None": None, "n_jobs=1": 1, "n_jobs=-1": -1}
GIVEN = {"kernel": "gaussian", "width": 2.0, "ridge": 1e-3, "centers": 2000, "link": "clip"}
NOTE = (
    f"Seconds. Cross-validation: cross_val_score(LSPC(n_jobs=...), cv={FOLDS}, n_jobs=-1) on 569 rows of breast "
    "cancer, by joblib's worker processes (loky) and worker threads. Fits by themselves: LSPC(n_jobs=...) on these "
    "rows, which chooses everything, and with kernel, width and ridge given on more. Medians of interleaved repeats."
)


def validations(X, y, backend: str, repeats: int) -> dict:
    """Seconds of a cross-validation on all cores for each number of threads in its workers."""

    def validate(n_jobs):
        with joblib.parallel_config(backend):
            return cross_val_score(LSPC(n_jobs=n_jobs, random_state=0), X, y, cv=FOLDS, n_jobs=-1)

    return results.interleaved({name: lambda jobs=jobs: validate(jobs) for name, jobs in JOBS.items()}, repeats)


def fits(model: LSPC, X, y, repeats: int) -> dict:
    """Seconds of one fit for each number of threads."""

    def fit(n_jobs):
        return model.set_params(n_jobs=n_jobs).fit(X, y)

    return results.interleaved({name: lambda jobs=jobs: fit(jobs) for name, jobs in JOBS.items()}, repeats)


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=50_000, help="of the larger fit")
    args = parser.parse_args(argv)
    X, y = load_breast_cancer(return_X_y=True)
    more = make_classification(args.rows, 20, n_informative=10, random_state=0)
    payload: dict = {"note": NOTE, "folds": FOLDS, "rows": args.rows, "cells": {}}
    cells = payload["cells"]
    for backend in BACKENDS:
        cells[backend] = validations(X, y, backend, args.repeats)
    cells["fit"] = fits(LSPC(random_state=0), X, y, args.repeats)
    cells["large fit"] = fits(LSPC(**{**GIVEN, "centers": min(2000, args.rows)}, random_state=0), *more, args.repeats)
    print(cells, file=sys.stderr, flush=True)
    results.write("oversubscription", payload, args.out)


if __name__ == "__main__":
    main()
