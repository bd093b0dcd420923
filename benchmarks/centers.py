"""What more centres buy: log-loss and seconds of LSPC(centers=b) -> results/centers.json."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.model_selection import train_test_split

from kproba import LSPC

from . import results
from .letter import load_letter
from .tables_quality import measure

CENTERS = (500, 1000, 2000, 3000, 4000, "auto")
#: Training rows of the sets without an official split; at most MOST_TEST of the rest are the test.
TRAIN = {"magic": 15_000, "covertype_93k": 40_000}
MOST_TEST = 10_000


def load_split(name: str, data_dir):
    """X_train, y_train, X_test, y_test."""
    if name == "letter":
        return load_letter(data_dir)
    from kproba.data.real import load

    table = load(name, data_dir)
    X, y = np.asarray(table.X, dtype=np.float64), np.asarray(table.y)
    sizes = {"train_size": TRAIN[name], "test_size": min(MOST_TEST, len(y) - TRAIN[name])}
    X, X_test, y, y_test = train_test_split(X, y, **sizes, random_state=0, stratify=y)
    return X, y, X_test, y_test


def run(b, X, y, X_test, y_test) -> dict:
    model, seconds = results.timed(lambda: LSPC(centers=b, random_state=0).fit(X, y))
    chosen = {"b": len(model.coef_), "kernel": model.kernel_.name, "fit_seconds": seconds}
    return measure(y_test, model.predict_proba(X_test), model.classes_) | chosen


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=["letter", *TRAIN])
    parser.add_argument("--centers", nargs="+", default=[str(b) for b in CENTERS])
    args = parser.parse_args(argv)
    payload: dict = {"sets": {}, "cells": {}}
    for name in args.sets:
        data = load_split(name, args.data_dir)
        payload["sets"][name] = {"train": len(data[1]), "test": len(data[3])}
        LSPC(random_state=0).fit(data[0][:300], data[1][:300])  # threads start before the clock does
        for b in args.centers:
            cell = payload["cells"][f"{name}/{b}"] = run(b if b == "auto" else int(b), *data)
            print(f"{name} centers={b}: {cell}", file=sys.stderr, flush=True)
            results.write("centers", payload, args.out)


if __name__ == "__main__":
    main()
