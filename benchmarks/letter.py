"""Defaults on letter's 16,000 official training rows beside calibrated SVCs -> results/letter.json."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kproba import LSPC, SurfaceKernelClassifier

from . import results
from .rivals.svc import calibrated, tuned
from .tables_quality import measure


def load_letter(data_dir):
    """X_train, y_train, X_test, y_test of the official split."""
    from kproba.data.real import load

    table = load("letter", data_dir)
    X, y = np.asarray(table.X, dtype=np.float64), np.asarray(table.y)
    # OpenML does not tell the split, but it is the first 16,000 rows
    train = np.arange(len(y)) < 16_000 if table.is_train is None else np.asarray(table.is_train, dtype=bool)
    return X[train], y[train], X[~train], y[~train]


def svc(n_jobs=None):
    """What people write who leave SVC(probability=True)."""
    model = make_pipeline(StandardScaler(), SVC(C=10, gamma=0.1))
    return CalibratedClassifierCV(model, ensemble=False, n_jobs=n_jobs)


def contenders(X, y, skip_grid: bool) -> dict:
    """Name -> a function that fits. The SVC comes on one core, as it is written, and on all of them."""
    found = {
        "kproba": lambda: LSPC(random_state=0).fit(X, y),
        "surface": lambda: SurfaceKernelClassifier(random_state=0).fit(X, y),
        "svc": lambda: svc().fit(X, y),
        "svc_all_cores": lambda: svc(n_jobs=-1).fit(X, y),
    }
    if not skip_grid:
        found["svc_grid"] = lambda: calibrated(tuned(X, y, None), X, y, None)
        found["svc_grid_all_cores"] = lambda: calibrated(tuned(X, y), X, y)
    return found


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--skip-grid", action="store_true", help="without the grid search, which takes many minutes")
    parser.add_argument("--rows", type=int, help="only so many training rows, for a trial")
    args = parser.parse_args(argv)
    X, y, X_test, y_test = load_letter(args.data_dir)
    X, y = X[: args.rows], y[: args.rows]
    for model in (
        LSPC(random_state=0),
        svc(n_jobs=-1),
    ):  # threads and worker processes start before the clock
        model.fit(X[:600], y[:600])
    cells: dict[str, dict] = {}
    for name, fit in contenders(X, y, args.skip_grid).items():
        model, seconds = results.timed(fit)
        proba, predict_seconds = results.timed(lambda model=model: model.predict_proba(X_test))
        cells[name] = measure(y_test, proba, model.classes_)
        cells[name] |= {"fit_seconds": seconds, "predict_seconds": predict_seconds}
        if name == "kproba":
            cells[name] |= {"kernel": model.kernel_.name, "centers": len(model.coef_)}
        print(f"{name}: {cells[name]}", file=sys.stderr, flush=True)
        ratios = {key: cells["kproba"]["fit_seconds"] / cell["fit_seconds"] for key, cell in cells.items()}
        results.write("letter", {"train": len(y), "test": len(y_test), "cells": cells, "time_ratios": ratios}, args.out)


if __name__ == "__main__":
    main()
