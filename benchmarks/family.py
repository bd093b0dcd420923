"""The classifiers of the library beside each other, with their defaults -> results/family.json."""

from __future__ import annotations

import sys

import numpy as np

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.data.real import load

from . import results, tables_quality
from .rivals import OneHot

SETS = ("pima", "saheart", "magic", "spambase", "electricity", "vehicle", "vowel_uci", "satimage")
MODELS = {
    "LSPC": LSPC,
    "KLR": KernelLogisticRegression,
    "IVM": ImportVectorMachine,
    "surface": SurfaceKernelClassifier,
}
NOTE = (
    "Defaults, random_state=0; the splits of the quality benchmark, seed 0. points: centres or import points that the "
    "model keeps. Predict: probabilities of all test rows, median of repeats."
)


def compare(data, repeats: int) -> dict:
    prepare = OneHot(data.X_train, data.categorical)
    X, X_test = prepare(data.X_train), prepare(data.X_test)
    models, cells = {}, {}
    for name, make in MODELS.items():
        models[name], seconds = results.timed(lambda make=make: make(random_state=0).fit(X, data.y_train))
        cells[name] = tables_quality.measure(data.y_test, models[name].predict_proba(X_test), models[name].classes_)
        cells[name] |= {"fit_seconds": seconds, "points": len(models[name].coef_)}
    predict = results.interleaved({n: lambda m=m: m.predict_proba(X_test) for n, m in models.items()}, repeats)
    return {name: cell | {"predict_seconds": predict[name]} for name, cell in cells.items()}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args(argv)
    found = {}
    for name in args.sets:
        data = tables_quality.split(load(name, args.data_dir), seed=0)
        cells = compare(data, args.repeats)
        found[name] = {"train": len(data.y_train), "classes": len(np.unique(data.y_train)), "cells": cells}
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    results.write("family", {"note": NOTE, "sets": found}, args.out)


if __name__ == "__main__":
    main()
