"""Tables with strings and missing values left in: LSPC() on the frame beside its rivals -> results/mixed.json.

A run can be interrupted and started again: cells (set, seed, method) that the JSON file holds are kept. Delete the file
to measure all of them anew.
"""

from __future__ import annotations

import io
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from itertools import product
from statistics import mean, median

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from tests import messy

from kproba import LSPC
from kproba.cli import _scores, compare
from kproba.data.mixed import MixedColumns
from kproba.data.real import load

from . import results
from .command import OURS, TARGET, frame_of

REAL, MESSY = ("attrition", "credit_a", "car"), ("patients", "machines", "sales")
SKRUB = "LSPC behind skrub"
METHODS = ("LSPC", SKRUB, "CatBoost", "hist gradient boosting")
#: Rows of a messy table, and of the column with very many levels.
MESSY_ROWS, MANY_ROWS, MANY_LEVELS = 1500, 50_000, 10_000
PROTOCOL = (
    "Two thirds of the rows to fit, one third to score, stratified. Categories are strings and gaps stay gaps; the "
    f"messy tables ({', '.join(MESSY)}, {MESSY_ROWS:,} rows) are read as pandas reads them from CSV files. LSPC and "
    "CatBoost take the frame as it is, CatBoost with all columns that are not numeric as categories; hist gradient "
    "boosting takes what skrub makes of it. Everybody has the default settings and all cores."
)


def table_of(name: str, seed: int, data_dir) -> pd.DataFrame:
    """A frame with the class in its last column, named ``class``."""
    if name in REAL:
        return frame_of(load(name, data_dir))
    made = messy.TABLES[name](MESSY_ROWS, seed)
    frame = pd.read_csv(io.StringIO(made.to_csv(index=False))).rename(columns={made.columns[-1]: TARGET})
    return frame[frame[TARGET].map(frame[TARGET].value_counts()) >= 6]  # a class in both parts


def methods(seed: int) -> dict[str, Callable]:
    """Name -> a function (frame, classes) that returns a fitted model."""
    others = compare.contenders(seed)
    ours = {"LSPC": lambda X, y: LSPC(random_state=seed).fit(X, y), SKRUB: others[OURS]}
    return ours | {name: others[name] for name in METHODS[2:]}


def run_cell(fit: Callable, train: pd.DataFrame, new: pd.DataFrame) -> dict:
    X, y, classes = train.drop(columns=TARGET), train[TARGET].to_numpy(), np.unique(train[TARGET])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, seconds = results.timed(lambda: fit(X, y))
        proba = model.predict_proba(new.drop(columns=TARGET))
    return _scores.measures(new[TARGET].to_numpy(), proba, classes) | {"fit_seconds": seconds}


def memory() -> dict:
    """Peak memory of encoding a column of very many levels, as strings and as a categorical column."""
    rng = np.random.default_rng(0)
    words = rng.permutation(np.resize([f"level number {i}" for i in range(MANY_LEVELS)], MANY_ROWS))
    found = {}
    for kind in ("str", "category"):
        frame = pd.DataFrame({"level": pd.Series(words, dtype=kind), "x": rng.normal(size=MANY_ROWS)})
        tracemalloc.start()
        MixedColumns.of(frame, "from_dtype")(frame)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        found[kind] = {"frame_mib": frame.memory_usage(deep=True).sum() / 2**20, "peak_mib": peak / 2**20}
    return found


def summary(cells: dict) -> dict:
    """Mean log-loss of every set and method, means over the sets, and median seconds."""
    every = sorted({tuple(key.split("/")[:2]) for key in cells})
    every = [(name, seed) for name, seed in every if all(f"{name}/{seed}/{m}" in cells for m in METHODS)]
    sets = [name for name in (*REAL, *MESSY) if any(each == name for each, _ in every)]

    def of(method: str, key: str, sets: list[str]) -> list[float]:
        return [cells[f"{name}/{seed}/{method}"][key] for name, seed in every if name in sets]

    return {
        "means": {name: {m: mean(of(m, "log_loss", [name])) for m in METHODS} for name in sets},
        "splits": {name: len(of("LSPC", "log_loss", [name])) for name in sets},
        "mean": {m: mean(of(m, "log_loss", sets) or [0.0]) for m in METHODS},
        "median_fit_seconds": {m: median(of(m, "fit_seconds", sets) or [0.0]) for m in METHODS},
        "median_fit_ratio": {
            m: median(a / b for a, b in zip(of(m, "fit_seconds", sets), of("CatBoost", "fit_seconds", sets)))
            for m in METHODS
            if every
        },
    }


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=(*REAL, *MESSY), metavar="SET")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=METHODS, metavar="METHOD", help="forget what these did")
    args = parser.parse_args(argv)
    payload = results.read("mixed", args.out) or {"sets": {}, "cells": {}}
    payload |= {"protocol": PROTOCOL, "memory": memory()}
    cells = {key: cell for key, cell in payload["cells"].items() if key.split("/")[2] not in (args.only or ())}
    for seed, name in product(range(args.splits), args.sets):
        frame = table_of(name, seed, args.data_dir)
        train, new = train_test_split(frame, test_size=1 / 3, stratify=frame[TARGET], random_state=seed)
        payload["sets"][name] = {"train": len(train), "test": len(new), "columns": frame.shape[1] - 1}
        for method, fit in methods(seed).items():
            key = f"{name}/{seed}/{method}"
            if key not in cells and method in (args.only or METHODS):
                cells[key] = run_cell(fit, train, new)
                print(f"{key}: {cells[key]['log_loss']:.4f}", file=sys.stderr, flush=True)
        results.write("mixed", payload | {"cells": cells, "summary": summary(cells)}, args.out)


if __name__ == "__main__":
    main()
