"""LSPC in onnxruntime beside predict_proba: differences, sizes and times -> results/onnx_graphs.json."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

from kproba import LSPC, to_onnx
from kproba.data.real import load

from . import results

GENERATED = {"iris": load_iris, "digits": load_digits, "breast_cancer": load_breast_cancer}
SETS = (*GENERATED, "letter", "satimage")
MOST_ROWS, BATCH = 2000, 1000
NOTE = (
    "LSPC(random_state=0) on two thirds of the rows, 2,000 at most; probabilities of these and of as many new ones. "
    "Differences are from predict_proba of the same numbers in float64; own is that of predict_proba when it is given "
    "the type itself. Times are medians of repeats, of 1,000 rows and of one."
)


def rows_of(name: str, data_dir) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, their labels, and new rows."""
    if name in GENERATED:
        X, y = GENERATED[name](return_X_y=True)
    else:
        data = load(name, data_dir)
        X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    order = np.random.default_rng(0).permutation(len(y))
    n = min(MOST_ROWS, 2 * len(y) // 3)
    return X[order[:n]], y[order[:n]], X[order[n : 2 * n]]


def session_of(model):
    import onnxruntime  # here, so that the module can be imported without it

    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def differences(clf, X: np.ndarray, dtype: str) -> dict:
    """The largest difference of a probability, and how many labels differ."""
    given = X.astype(dtype)
    label, proba = session_of(to_onnx(clf, dtype=dtype)).run(None, {"X": given})
    same = given.astype(np.float64)
    expected = clf.predict_proba(same)
    found = {"largest": np.abs(proba - expected).max(), "labels": int((label != clf.predict(same)).sum())}
    return found | {"own": np.abs(clf.predict_proba(given) - expected).max()}


def compare(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, repeats: int) -> dict:
    clf, everything = LSPC(random_state=0).fit(X, y), np.concatenate([X, X_new])
    cell = {dtype: differences(clf, everything, dtype) for dtype in ("float32", "float64")}
    model = to_onnx(clf, dtype="float64")
    session, many = session_of(model), np.resize(everything, (BATCH, X.shape[1]))
    seconds = {}
    for n in (BATCH, 1):
        seconds[n] = results.interleaved(
            {
                "onnxruntime": lambda n=n: session.run(None, {"X": many[:n]}),
                "predict_proba": lambda n=n: clf.predict_proba(many[:n]),
            },
            repeats,
        )
    about = {"kernel": clf.kernel_.name, "centers": len(clf.coef_), "columns": X.shape[1], "bytes": model.ByteSize()}
    return cell | about | {"largest_coefficient": np.abs(clf.coef_).max(), "seconds": seconds}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args(argv)
    cells = {}
    for name in args.sets:
        cells[name] = compare(*rows_of(name, args.data_dir), args.repeats)
        print(f"{name}: {cells[name]}", file=sys.stderr, flush=True)
    results.write("onnx_graphs", {"note": NOTE, "cells": cells}, args.out)


if __name__ == "__main__":
    main()
