"""All single-label tables with at most 2,000 training rows: LSPC() beside its rivals -> results/quality.json.

A run can be interrupted and started again: cells (set, seed, rival) that the JSON file holds are kept.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from statistics import mean, median
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import train_test_split

from kproba.metrics import brier_score, calibration_error

from . import results, rivals

SETS = (
    "attrition",
    "breast_cancer_original",
    "car",
    "covertype_93k",
    "credit_a",
    "electricity",
    "esl_mixture",
    "glass",
    "ionosphere",
    "letter",
    "magic",
    "pima",
    "saheart",
    "satimage",
    "shuttle",
    "skin",
    "sonar",
    "spambase",
    "susy_subset",
    "usps",
    "vehicle",
    "vowel_uci",
)
MOST_TRAIN, MOST_TEST = 2000, 3000
#: Classes with fewer training rows are left out for everybody: every rival can then calibrate by folds.
FEWEST = 8
PROTOCOL = (
    f"Stratified split: {MOST_TRAIN} training rows, or two thirds where there are fewer; the rest up to "
    f"{MOST_TEST} for the test. Classes with fewer than {FEWEST} training rows are left out for everybody "
    "(named in 'sets'). Log-loss clips at 1e-15. Means over the seeds. Every method may use all cores; "
    "fit_seconds includes tuning and calibration."
)


class Split(NamedTuple):
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    categorical: np.ndarray
    dropped: list[str]


def split(table, seed: int) -> Split:
    """The protocol's training and test rows; labels become numbers."""
    names, y = np.unique(table.y, return_inverse=True)
    counts = np.bincount(y)
    kept = counts * train_size(len(y)) / len(y) >= FEWEST
    rows = np.flatnonzero(kept[y])
    X, y = np.asarray(table.X, dtype=np.float64)[rows], (np.cumsum(kept) - 1)[y[rows]]
    sizes = {"train_size": train_size(len(y)), "test_size": min(MOST_TEST, len(y) - train_size(len(y)))}
    X_train, X_test, y_train, y_test = train_test_split(X, y, **sizes, random_state=seed, stratify=y)
    flags = table.is_categorical
    categorical = np.zeros(X.shape[1], dtype=bool) if flags is None else np.asarray(flags, dtype=bool)
    return Split(X_train, y_train, X_test, y_test, categorical, [str(name) for name in names[~kept]])


def train_size(n: int) -> int:
    return min(MOST_TRAIN, round(2 * n / 3))


def measure(y, proba, labels) -> dict[str, float]:
    """Log-loss, error, Brier score and calibration error of probabilities in the order of ``labels``."""
    proba = np.clip(np.asarray(proba, dtype=np.float64), 1e-15, 1.0)
    proba /= proba.sum(axis=1, keepdims=True)
    codes = np.searchsorted(labels, y)
    return {
        "log_loss": float(-np.log(proba[np.arange(len(codes)), codes]).mean()),
        "error": float((proba.argmax(axis=1) != codes).mean()),
        "brier": brier_score(y, proba, labels=labels),
        "calibration_error": calibration_error(y, proba, labels=labels),
    }


def run_cell(rival, data: Split) -> dict:
    """Fit one rival on one split and measure it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, seconds = results.timed(lambda: rival.fit(data.X_train, data.y_train, data.categorical))
        proba = model.predict_proba(data.X_test)
    return {**measure(data.y_test, proba, model.classes_), "fit_seconds": seconds, "commit": results.commit()}


def warm_up(keys: Iterable[str]) -> None:
    """Imports and worker processes are started before the clock is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 2] = rng.integers(0, 3, 60)
    y = np.arange(60) % 2
    for key in keys:
        run_cell(rivals.get(key), Split(X, y, X, y, np.array([False, False, True]), []))


def describe(data: Split) -> dict:
    return {
        "train": len(data.y_train),
        "test": len(data.y_test),
        "columns": data.X_train.shape[1],
        "classes": len(np.unique(data.y_train)),
        "dropped_classes": data.dropped,
    }


def means(cells: dict, set_name: str, rival: str, key: str) -> dict[str, float]:
    """The finished seeds of one set and rival."""
    found = (k.split("/") for k in cells if k.startswith(f"{set_name}/") and k.endswith(f"/{rival}"))
    return {seed: cells[f"{set_name}/{seed}/{rival}"][key] for _, seed, _ in found}


def table(cells: dict, sets: Iterable[str], keys: Iterable[str], key: str) -> dict[str, dict[str, float]]:
    """Means over seeds: set -> rival -> value. Only seeds that all these rivals have finished count."""
    out, keys = {}, list(keys)
    for name in sets:
        by_rival = {rival: means(cells, name, rival, key) for rival in keys}
        seeds = set.intersection(*(set(found) for found in by_rival.values()))
        if seeds:
            out[name] = {rival: mean(by_rival[rival][s] for s in sorted(seeds)) for rival in keys}
    return out


def summary(payload: dict) -> dict:
    """Mean ranks, wins and times over the sets that every ranked method has finished."""
    cells, sets = payload["cells"], payload["sets"]
    losses = table(cells, sets, rivals.RANKED, "log_loss")
    if not losses:
        return {}
    ranks = np.array([rankdata([row[rival] for rival in rivals.RANKED]) for row in losses.values()])
    seconds = table(cells, sets, rivals.RANKED, "fit_seconds")
    full = {name: row for name, row in seconds.items() if sets[name]["train"] == MOST_TRAIN}
    return {
        "sets": len(losses),
        "incomplete": [name for name in sets if name not in losses],
        "mean_rank": dict(zip(rivals.RANKED, ranks.mean(axis=0))),
        "below_svc": sum(row["kproba"] < row["svc"] for row in losses.values()),
        "below_catboost": sum(row["kproba"] < row["catboost"] for row in losses.values()),
        "median_fit_seconds": {r: median(row[r] for row in seconds.values()) for r in rivals.RANKED},
        "fit_time_over_svc": time_ratios({name: row["kproba"] / row["svc"] for name, row in full.items()}),
    }


def time_ratios(ratios: dict[str, float]) -> dict:
    """kproba's fit time over the tuned SVC's on the sets with the full number of training rows."""
    if not ratios:
        return {}
    worst = max(ratios, key=ratios.__getitem__)
    return {
        "median": median(ratios.values()),
        "worst": ratios[worst],
        "worst_set": worst,
        "sets": len(ratios),
    }


def pending(args, cells: dict):
    """The (set, seed, rivals) that still have to be run."""
    for name in args.sets:
        for seed in args.seeds:
            todo = [rival for rival in args.rivals if f"{name}/{seed}/{rival}" not in cells]
            if todo:
                yield name, seed, todo


def options(argv):
    parser = results.parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    help_only = "forget what these rivals did and run them alone"
    parser.add_argument("--only", nargs="+", choices=rivals.EVERYONE, metavar="RIVAL", help=help_only)
    args = parser.parse_args(argv)
    args.rivals = args.only or rivals.EVERYONE
    return args


def forget(cells: dict, args) -> dict:
    """The cells without those that are to be run anew."""
    again = {f"{n}/{s}/{r}" for n in args.sets for s in args.seeds for r in args.only or ()}
    return {key: cell for key, cell in cells.items() if key not in again}


def main(argv=None) -> None:
    from kproba.data.real import load

    args = options(argv)
    payload = results.read("quality", args.out) or {"sets": {}, "cells": {}}
    payload |= {"protocol": PROTOCOL, "rivals": {key: rivals.get(key).name for key in rivals.EVERYONE}}
    cells = payload["cells"] = forget(payload["cells"], args)
    todo = list(pending(args, cells))
    if todo:
        warm_up(args.rivals)
    for number, (name, seed, keys) in enumerate(todo, 1):
        data = split(load(name, args.data_dir), seed)
        payload["sets"][name] = describe(data)
        for key in keys:
            place = f"[{number}/{len(todo)}] {name:22s} seed {seed}  {key:12s}"
            try:
                cell = cells[f"{name}/{seed}/{key}"] = run_cell(rivals.get(key), data)
            except Exception as error:  # the others go on; the cell stays open and is tried again next time
                say(f"{place} FAILED: {error!r}")
                continue
            say(f"{place} {cell['log_loss']:.4f} log-loss  {cell['fit_seconds']:6.2f} s")
            save(payload, args.out)
    save(payload, args.out)


def save(payload: dict, folder) -> None:
    """Everything so far, in the order of SETS whatever order it was run in."""
    payload["sets"] = {name: payload["sets"][name] for name in SETS if name in payload["sets"]}
    payload["summary"] = summary(payload)
    results.write("quality", payload, folder)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
