"""The import vector machine beside calibrated support vector machines -> results/ivm_svc.json."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kproba import ImportVectorMachine
from kproba.data.real import load

from . import results
from .rivals.svc import calibrated, tuned
from .tables_quality import measure

#: Training rows of every set; satimage has an official split.
SETS = {"magic": 15_000, "spambase": 3000, "satimage": None}
NOTE = (
    "kproba: ImportVectorMachine() with its defaults, which choose width and penalty. kproba_given: the same with "
    "these given. The SVCs have C given and gamma='scale' (svc_all_cores: C=10 with n_jobs=-1), or are tuned by a "
    "20-point grid search in 3 folds on all cores; all are calibrated by CalibratedClassifierCV(ensemble=False). "
    "points: import points, or support vectors of the final SVC. Predict: probabilities of all test rows, median of "
    "repeats."
)


def split(name: str, n_train, data_dir):
    table = load(name, data_dir)
    X, y = np.asarray(table.X, dtype=np.float64), np.asarray(table.y)
    if n_train is None and table.is_train is not None:
        train = np.asarray(table.is_train, dtype=bool)
        return X[train], X[~train], y[train], y[~train]
    return train_test_split(X, y, train_size=n_train or 0.7, stratify=y, random_state=0)


def svc(C, n_jobs=None):
    model = make_pipeline(StandardScaler(), SVC(C=C))
    return CalibratedClassifierCV(model, ensemble=False, n_jobs=n_jobs)


def given(fitted):
    """The same model with nothing left to choose."""
    width = "auto" if fitted.width_ is None else fitted.width_
    return clone(fitted).set_params(kernel=fitted.kernel_, width=width, ridge=fitted.ridge_)


def points(model) -> int:
    if isinstance(model, ImportVectorMachine):
        return len(model.import_indices_)
    return len(model.calibrated_classifiers_[0].estimator[-1].support_)


def compare(X, X_test, y, y_test, repeats: int, skip_tuned: bool) -> dict:
    contenders = {
        "kproba": lambda: ImportVectorMachine(random_state=0).fit(X, y),
        "kproba_given": lambda: given(models["kproba"]).fit(X, y),
        "svc C=1": lambda: svc(1.0).fit(X, y),
        "svc C=10": lambda: svc(10.0).fit(X, y),
        "svc_all_cores": lambda: svc(10.0, n_jobs=-1).fit(X, y),
        "svc_tuned": lambda: calibrated(tuned(X, y), X, y),
    }
    models: dict = {}
    fits = {}
    for name in [name for name in contenders if name != "svc_tuned" or not skip_tuned]:
        models[name], fits[name] = results.timed(contenders[name])
    predictions = {name: lambda model=model: model.predict_proba(X_test) for name, model in models.items()}
    seconds = results.interleaved(predictions, repeats)
    cells = {}
    for name, model in models.items():
        cells[name] = measure(y_test, model.predict_proba(X_test), model.classes_)
        cells[name] |= {"fit_seconds": fits[name], "predict_seconds": seconds[name], "points": points(model)}
    ours = cells["kproba"]
    for name, cell in cells.items():
        # like with like: who chooses against who chooses, given against given
        mine = ours if name in ("kproba", "svc_tuned") else cells["kproba_given"]
        cell |= {
            "fit_ratio": mine["fit_seconds"] / cell["fit_seconds"],
            "predict_ratio": cell["predict_seconds"] / ours["predict_seconds"],
            "points_ratio": ours["points"] / cell["points"],
        }
    return cells


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--rows", type=int, help="only so many training rows, for a trial")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--skip-tuned", action="store_true", help="without the grid searches, which take minutes")
    args = parser.parse_args(argv)
    found = {}
    for name in args.sets:
        X, X_test, y, y_test = split(name, SETS.get(name), args.data_dir)
        X, y = X[: args.rows], y[: args.rows]
        ImportVectorMachine(random_state=0).fit(X[:100], y[:100])  # threads start before the clock
        cells = compare(X, X_test, y, y_test, args.repeats, args.skip_tuned)
        found[name] = {"train": len(y), "test": len(y_test), "cells": cells}
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    results.write("ivm_svc", {"note": NOTE, "sets": found}, args.out)


if __name__ == "__main__":
    main()
