"""All 374 tags of corel5k by LSPC at once, beside one calibrated SVC a tag -> results/tags.json.

The SVCs are timed on some tags drawn at random among those with enough rows of both kinds for their folds, and their
time is scaled to all tags; figures are compared on the tags that both have.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from kproba import LSPC
from kproba.metrics import tag_report

from . import results

#: The SVC's folds need so many rows with a tag and as many without.
FEWEST = 5
RIVALS = {
    "svc": lambda: CalibratedClassifierCV(SVC(), ensemble=False),
    "svc_ensemble": lambda: CalibratedClassifierCV(SVC()),
}


def load_corel5k(data_dir):
    """X and tags of the official training images, and those of the test images."""
    from kproba.data.real import load

    table = load("ml_corel5k", data_dir)
    X, Y, train = np.asarray(table.X, dtype=np.float64), np.asarray(table.y), np.asarray(table.is_train, dtype=bool)
    return X[train], Y[train], X[~train], Y[~train]


def has_enough(Y, fewest: int) -> np.ndarray:
    """Which tags have so many rows of both kinds."""
    counts = Y.sum(axis=0)
    return (counts >= fewest) & (len(Y) - counts >= fewest)


def figures(Y, proba) -> dict:
    """Means over tags, all of which have both values."""
    report = tag_report(Y, proba)
    return {"tags": len(report.n), **report.macro._asdict()}


def seconds_and_proba(model, X, Y, X_test) -> tuple[dict, np.ndarray]:
    """Seconds of fit and predict_proba, and the CPU time of both, which a busy machine moves less."""
    start = time.process_time()
    _, fit = results.timed(lambda: model.fit(X, Y))
    proba, predict = results.timed(lambda: model.predict_proba(X_test))
    return {"fit_seconds": fit, "predict_seconds": predict, "cpu_seconds": time.process_time() - start}, proba


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--tags", type=int, default=20, help="tags that the SVCs are timed on (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="fits of LSPC; the median counts (default: %(default)s)")
    parser.add_argument("--rows", type=int, help="only so many training rows, for a trial")
    args = parser.parse_args(argv)
    X, Y, X_test, Y_test = load_corel5k(args.data_dir)
    X, Y = X[: args.rows], Y[: args.rows]
    LSPC(random_state=0).fit(X[:300], Y[:300])  # threads start before the clock
    both = has_enough(Y, 1) & has_enough(Y_test, 1)
    eligible = np.flatnonzero(has_enough(Y, FEWEST) & both)
    drawn = np.sort(np.random.RandomState(0).permutation(eligible)[: args.tags])
    cells: dict[str, dict] = {}
    payload = {"train": len(Y), "test": len(Y_test), "columns": X.shape[1], "tags": Y.shape[1], "drawn": drawn}
    for name in ("kproba", *RIVALS):
        if name == "kproba":
            runs = [seconds_and_proba(LSPC(random_state=0), X, Y, X_test) for _ in range(args.repeats)]
            seconds = {key: statistics.median(run[0][key] for run in runs) for key in runs[0][0]}
            proba = runs[0][1]
            cells[name] = seconds | {"of_tags": Y.shape[1], "both_halves": figures(Y_test[:, both], proba[:, both])}
            proba = proba[:, drawn]
        else:
            model = OneVsRestClassifier(RIVALS[name]())
            seconds, proba = seconds_and_proba(model, X, Y[:, drawn], X_test)
            cells[name] = seconds | {"of_tags": len(drawn)}
        scale = Y.shape[1] / cells[name]["of_tags"]
        wall = scale * (seconds["fit_seconds"] + seconds["predict_seconds"])
        cells[name]["of_all_tags"] = {"seconds": wall, "cpu_seconds": scale * seconds["cpu_seconds"]}
        cells[name]["over_kproba"] = {
            key: value / cells["kproba"]["of_all_tags"][key] for key, value in cells[name]["of_all_tags"].items()
        }
        cells[name]["drawn"] = figures(Y_test[:, drawn], proba)
        print(f"{name}: {cells[name]}", file=sys.stderr, flush=True)
        results.write("tags", payload | {"cells": cells}, args.out)


if __name__ == "__main__":
    main()
