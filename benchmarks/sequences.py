"""Sequences: the hidden Markov kernel in all classifiers beside k-NN with DTW and a calibrated SVC -> sequences.json.

Japanese vowels and spoken digits by their official splits, and spoken digits with one speaker after the other held out,
as they are and, for all methods, without the mean of a sequence and with slopes.
The SVC has the same kernel matrix, with width and C by a grid search; k-NN has dynamic time warping of frames that were
standardised, its k and the smoothing of its votes by leave-one-out on some training rows. Times of methods are CPU
times of everything but the kernel's models and likelihoods, which they share and whose time is given once.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from kproba import (
    LSPC,
    HiddenMarkovKernel,
    ImportVectorMachine,
    IndefiniteKernelWarning,
    KernelLogisticRegression,
    SequenceFeatures,
    Sequences,
    SurfaceKernelClassifier,
)
from kproba.data.real import load

from . import results
from .rivals import dtw
from .tables_quality import measure

OURS = {
    "LSPC": LSPC,
    "KernelLogisticRegression": KernelLogisticRegression,
    "ImportVectorMachine": ImportVectorMachine,
    "SurfaceKernelClassifier": SurfaceKernelClassifier,
}
#: The grid of the SVC: multiples of the median divergence, and C.
WIDTHS, COSTS = (0.3, 0.6, 1.2, 2.5), (1.0, 10.0, 100.0)
MATRIX_ROWS = 640


class Split:
    """Sequences and labels of one split, scaled by the training frames."""

    def __init__(self, X: Sequences, y: np.ndarray, train: np.ndarray):
        frames = X[train].frames
        self.X = X.with_frames((X.frames - frames.mean(axis=0)) / frames.std(axis=0))
        self.y, self.train, self.test = y, np.flatnonzero(train), np.flatnonzero(~train)
        self.labels, self.truth = y[self.train], y[self.test]


def splits(data_dir) -> dict[str, list[Split]]:
    """Every task, some of which are made of several splits."""
    tasks = {}
    for name in ("seq_JapaneseVowels", "fsdd_mfcc"):
        data = load(name, data_dir)
        X, y = Sequences(np.asarray(data.X, dtype=np.float64), data.extra["lengths"]), np.asarray(data.y)
        tasks[name] = [Split(X, y, np.asarray(data.is_train, dtype=bool))]
        if "speaker" in data.extra:
            speaker = data.extra["speaker"]
            tasks[f"{name}, other speakers"] = [Split(X, y, speaker != each) for each in np.unique(speaker)]
            X = SequenceFeatures().transform(X)
            tasks[f"{name}, other speakers, slopes"] = [Split(X, y, speaker != each) for each in np.unique(speaker)]
    return tasks


def by_kernel(estimator, split: Split) -> np.ndarray:
    """Frames are scaled already, so that all classifiers find the same models where the first one left them."""
    model = estimator(kernel=HiddenMarkovKernel(), scaling=None, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)
        return model.fit(split.X[split.train], split.labels).predict_proba(split.X[split.test])


def svc(split: Split) -> np.ndarray:
    """A calibrated SVC on the same kernel matrix, of the width and C that a grid search finds."""
    D = HiddenMarkovKernel().pairs(split.X, split.X[split.train], 2)
    own = D[split.train]
    unit, best = np.median(own[own > 0]), None
    for width in WIDTHS:
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": COSTS})
        search.fit(np.exp(-own / (2 * width**2 * unit)), split.labels)
        if best is None or search.best_score_ > best[0]:
            best = search.best_score_, width, search.best_params_["C"]
    K = np.exp(-D / (2 * best[1] ** 2 * unit))
    model = CalibratedClassifierCV(SVC(kernel="precomputed", C=best[2]), ensemble=False)
    return model.fit(K[split.train], split.labels).predict_proba(K[split.test])


def nearest(split: Split) -> np.ndarray:
    """k-NN by dynamic time warping."""
    return dtw.predict_proba(list(split.X[split.train]), split.labels, list(split.X[split.test]))


def matrix_seconds(split: Split) -> float:
    """The kernel matrix of all sequences from nothing: models, likelihoods, exponentials."""
    fresh = split.X.with_frames(split.X.frames.copy())[:MATRIX_ROWS]
    return results.timed(lambda: HiddenMarkovKernel(width=1.0)(fresh, fresh, 2))[1]


def run_task(name: str, task: list[Split], rivals: bool) -> dict:
    methods = {key: lambda split, each=each: by_kernel(each, split) for key, each in OURS.items()}
    if rivals:
        methods |= {"svc": svc, "dtw": nearest}
    cells: dict[str, list[dict]] = {key: [] for key in methods}
    models = []
    for split in task:
        kernel = HiddenMarkovKernel()  # its models and likelihoods come once, before the clocks of those who share them
        compare = partial(kernel.pairs, split.X, split.X[split.train], 2)
        models.append(results.timed(compare)[1])
        for key, method in methods.items():
            start = time.process_time()
            found = measure(split.truth, method(split), np.unique(split.labels))
            cells[key].append(found | {"cpu_seconds": time.process_time() - start})
            print(f"{name}: {key} {cells[key][-1]}", file=sys.stderr, flush=True)
    return {
        "train": len(task[0].train),
        "test": len(task[0].test),
        "splits": len(task),
        "kernel_seconds": float(np.mean(models)),
        "cells": {
            key: {k: float(np.mean([cell[k] for cell in found])) for k in found[0]} for key, found in cells.items()
        },
    }


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--skip-rivals", action="store_true", help="without SVC and DTW")
    parser.add_argument("--tasks", nargs="+", help="only these, added to what there is")
    args = parser.parse_args(argv)
    tasks = splits(args.data_dir)
    # some tasks are added to what there is
    payload: dict = (results.read("sequences", args.out) if args.tasks else None) or {"tasks": {}}
    for name, task in tasks.items():
        if args.tasks and name not in args.tasks:
            continue
        if name == "seq_JapaneseVowels":
            payload["matrix"] = {"rows": MATRIX_ROWS, "seconds": [matrix_seconds(task[0]) for _ in range(3)]}
        payload["tasks"][name] = run_task(name, task, not args.skip_rivals)
        results.write("sequences", payload, args.out)


if __name__ == "__main__":
    main()
