"""How far ``loo_proba_`` and ``oof_proba_`` can be trusted on small tables -> results/loo_trust.json."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier

from . import results
from .klr_loo import drawn

SETS = (
    *("attrition", "breast_cancer_original", "credit_a", "esl_mixture", "glass", "ionosphere"),
    *("magic", "pima", "saheart", "sonar", "vehicle", "vowel_uci"),
)
ESTIMATORS = {
    "LSPC": LSPC,
    "KernelLogisticRegression": KernelLogisticRegression,
    "ImportVectorMachine": ImportVectorMachine,
    "SurfaceKernelClassifier": SurfaceKernelClassifier,
}
REFIT_ROWS, TRAIN, MOST_TEST, SPLITS = 80, 400, 2000, 5
#: Probabilities are clipped here before their logarithm: one row that is sure and wrong would decide the mean.
CLIP = 1e-6
NOTE = (
    "refits: REFIT_ROWS rows of each set. Kernel, width, ridge and scaling are chosen once and then given, so that "
    "loo_proba_ can be compared with n fits without one row each: the mean and the largest difference of a "
    "probability, and both log-losses. estimate: fits with the defaults on TRAIN rows, or two thirds where there are "
    "fewer. loo: log-loss of loo_proba_, which also chose parameters; oof: of oof_proba_, by models that never saw the "
    "fold of a row; new: of up to MOST_TEST other rows; shares: of the class shares, on the same rows. Means over the "
    "splits; worse_than_shares counts those where new is above shares."
)


def log_loss(P: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.log(np.clip(P[np.arange(len(labels)), labels], CLIP, 1.0)).mean())


def given(fitted, n: int) -> dict:
    """What a fit chose as parameters for fits of one of n rows less: λ stands before a mean, its prior before a sum."""
    options = {"kernel": fitted.kernel_, "scaling": None, "random_state": 0}
    if isinstance(fitted, SurfaceKernelClassifier):
        return options | {"n_centers": len(fitted.centers_)}
    by_sum = isinstance(fitted, KernelLogisticRegression | ImportVectorMachine)
    return options | {"ridge": fitted.ridge_ * (n / (n - 1) if by_sum else 1.0)}


def refits(name: str, X: np.ndarray, labels: np.ndarray) -> dict:
    """loo_proba_ with given parameters beside n fits without one row each."""
    n, estimator = len(labels), ESTIMATORS[name]
    chosen = estimator(random_state=0).fit(X, labels)
    scaled, options = chosen.scaling_(X), given(chosen, n)
    with_loo = {} if name == "ImportVectorMachine" else {"loo": True}
    whole = options | ({"ridge": chosen.ridge_} if "ridge" in options else {})
    approximate = estimator(**whole, **with_loo).fit(scaled, labels).loo_proba_
    exact = np.zeros_like(approximate)
    for i in range(n):
        rest = np.arange(n) != i
        fitted = estimator(**options).fit(scaled[rest], labels[rest])
        exact[i, fitted.classes_] = fitted.predict_proba(scaled[[i]])[0]
    off = np.abs(approximate - exact)
    losses = {"loo": log_loss(approximate, labels), "refits": log_loss(exact, labels)}
    return {"largest": off.max(), "mean": off.mean(), **losses}


def estimate(name: str, X: np.ndarray, labels: np.ndarray, train: int) -> dict:
    """The log-loss of loo_proba_ and oof_proba_ after a fit with the defaults, and that of new rows."""
    train = min(train, 2 * len(labels) // 3)
    fitted = ESTIMATORS[name](random_state=0).fit(X[:train], labels[:train])
    new = labels[train : train + MOST_TEST]
    proba = np.zeros((len(new), labels.max() + 1))
    proba[:, fitted.classes_] = fitted.predict_proba(X[train : train + MOST_TEST])
    own = np.searchsorted(fitted.classes_, labels[:train])
    shares = np.bincount(labels[:train], minlength=labels.max() + 1) / train
    found = {"loo": log_loss(fitted.loo_proba_, own), "new": log_loss(proba, new)}
    if hasattr(fitted, "oof_proba_"):
        found["oof"] = log_loss(fitted.oof_proba_, own)
    return found | {"shares": log_loss(np.tile(shares, (len(new), 1)), new)}


def measure(name: str, table: str, args) -> dict:
    cell = {"refits": refits(name, *drawn(table, args.data_dir, args.refit_rows))}
    splits = [drawn(table, args.data_dir, args.train + MOST_TEST, seed) for seed in range(args.splits)]
    found = [estimate(name, X, labels, args.train) for X, labels in splits]
    cell["estimate"] = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    cell["estimate"]["worse_than_shares"] = sum(one["new"] > one["shares"] for one in found)
    return cell


def summary(cells: dict) -> dict:
    """For each estimator, over the sets: how far from refits, and how far from new rows."""
    out = {}
    measured = {key.split("/")[1] for key in cells}
    for name in (each for each in ESTIMATORS if each in measured):
        mine = [cell for key, cell in cells.items() if key.endswith(f"/{name}")]
        by_refit, judged = ([cell[part] for cell in mine] for part in ("refits", "estimate"))
        out[name] = {
            "largest": max(one["largest"] for one in by_refit),
            "mean": float(np.mean([one["mean"] for one in by_refit])),
            "loo_over_refits": float(np.mean([one["loo"] / one["refits"] for one in by_refit])),
            "worse_than_shares": sum(one["worse_than_shares"] for one in judged),
        }
        for key in ("loo", "oof", "new"):
            out[name][key] = float(np.mean([one.get(key, np.nan) for one in judged]))
        for key in ("loo", "oof"):
            ratios = [one.get(key, np.nan) / one["new"] for one in judged]
            out[name][f"{key}_over_new"] = {"mean": np.mean(ratios), "least": min(ratios), "most": max(ratios)}
    return out


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--refit-rows", type=int, default=REFIT_ROWS)
    parser.add_argument("--train", type=int, default=TRAIN)
    parser.add_argument("--splits", type=int, default=SPLITS)
    help_only = "run these again and keep the cells of the others"
    parser.add_argument("--only", nargs="+", default=list(ESTIMATORS), choices=ESTIMATORS, help=help_only)
    args = parser.parse_args(argv)
    before = (results.read("loo_trust", args.out) or {"cells": {}})["cells"]
    cells = {key: cell for key, cell in before.items() if key.split("/")[1] not in args.only}
    for key in (f"{table}/{name}" for table in args.sets for name in args.only):
        table, name = key.split("/")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes of a single row, and fits that need no more steps
            cells[key] = measure(name, table, args) | {"commit": results.commit()}
        print(f"{key}: {cells[key]}", file=sys.stderr, flush=True)
    sizes = {"refit_rows": args.refit_rows, "train": args.train, "splits": args.splits}
    results.write("loo_trust", {"note": NOTE, **sizes, "summary": summary(cells), "cells": cells}, args.out)


if __name__ == "__main__":
    main()
