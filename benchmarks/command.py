"""What ``kproba fit`` and ``kproba predict`` are worth on files, beside what ``kproba compare`` knows -> command.json.

Real tables as CSV files with their categories as words: the command fits two thirds of the rows in a process of its
own, with no option but the target, and predicts the others. The rivals get the same two files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean, median

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.model_selection import train_test_split

from kproba.cli import _frames, _scores, compare
from kproba.data.real import RealSet, load
from kproba.data.tables import open_table

from . import results

SETS = ("attrition", "breast_cancer_original", "car", "covertype_93k", "credit_a", "electricity", "saheart")
OURS, TARGET = "kproba LSPC", "class"
#: Larger sets give so many rows, drawn anew for every split.
MOST_ROWS = 1500
#: Electricity has a row for every half hour from here on.
FIRST_HALF_HOUR = "1996-05-07"
PROTOCOL = (
    f"At most {MOST_ROWS} rows of a set, stratified: two thirds to fit, one third to score. Categories are words; "
    "where a set has no names for them, c0, c1 and so on. Covertype's 0/1 columns are two columns of words again, and "
    "electricity's date, day and half hour are one timestamp. Everybody has the default settings and all cores; "
    "CatBoost takes the words as they are, the others what skrub makes of them. fit_seconds of the command are those "
    "it reports: reading the file, choosing everything, fitting."
)


def frame_of(data: RealSet) -> pd.DataFrame:
    """The table with categories as words and the class in the last column."""
    names = [f"x{i}" for i in range(data.X.shape[1])] if data.feature_names is None else data.feature_names
    frame = pd.DataFrame(np.asarray(data.X, dtype=float), columns=[str(name) for name in names])
    flags = np.zeros(len(names), dtype=bool) if data.is_categorical is None else data.is_categorical
    words = data.extra.get("categories", np.full(len(names), ""))
    for name, named in zip(frame.columns[flags], words[flags]):
        frame[name] = in_words(frame[name], str(named))
    return RESTORED.get(data.name, lambda frame: frame)(frame).assign(**{TARGET: data.y})


def in_words(codes: pd.Series, names: str = "") -> pd.Series:
    """Categories by their names, which are a|b|c; c0, c1 and so on without them."""
    known = dict(enumerate(names.split("|"))) if names else {}
    return codes.map(lambda code: None if np.isnan(code) else known.get(int(code), f"c{int(code)}")).astype(object)


def with_family_history(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(famhist=in_words(frame["famhist"]))


def with_time(frame: pd.DataFrame) -> pd.DataFrame:
    times = pd.date_range(FIRST_HALF_HOUR, periods=len(frame), freq="30min").strftime("%Y-%m-%d %H:%M")
    return frame.drop(columns=["date", "day", "period"]).assign(time=times)


def with_soil_in_words(frame: pd.DataFrame) -> pd.DataFrame:
    for block in ("Wilderness_Area", "Soil_Type"):
        columns = [name for name in frame.columns if name.startswith(block)]
        words = frame[columns].idxmax(axis=1)
        frame = frame.drop(columns=columns).assign(**{block: words})
    return frame


RESTORED = {"saheart": with_family_history, "electricity": with_time, "covertype_93k": with_soil_in_words}


def write_split(frame: pd.DataFrame, seed: int, folder: Path) -> dict:
    """train.csv and new.csv in the folder, and what they hold."""
    if len(frame) > MOST_ROWS:
        frame, _ = train_test_split(frame, train_size=MOST_ROWS, stratify=frame[TARGET], random_state=seed)
    train, new = train_test_split(frame, test_size=1 / 3, stratify=frame[TARGET], random_state=seed)
    train.to_csv(folder / "train.csv", index=False)
    new.to_csv(folder / "new.csv", index=False)
    columns = frame.drop(columns=TARGET)
    words = sum(columns[name].dtype.kind not in "iuf" for name in columns)
    about = {"train": len(train), "test": len(new), "columns": columns.shape[1], "columns_of_words": words}
    return about | {"gaps": int(columns.isna().sum().sum()), "classes": frame[TARGET].nunique()}


def by_command(folder: Path, y: np.ndarray) -> dict:
    """The measures of the command: two processes, as a user would start them."""
    told, whole = results.timed(lambda: kproba(folder, "fit", "train.csv", "--target", TARGET, "--json"))
    kproba(folder, "predict", "new.csv", "--out", "answers.csv")
    answers = pd.read_csv(folder / "answers.csv")
    classes = np.unique(y)
    proba = answers[[f"proba_{label}" for label in classes]].to_numpy()
    return _scores.measures(y, proba, classes) | {
        "fit_seconds": json.loads(told)["seconds"],
        "process_seconds": whole,
        "leave_one_out": json.loads(told)["leave_one_out"]["log_loss"],
    }


def kproba(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "kproba.cli", *words]
    return subprocess.run(command, cwd=folder, env=os.environ, check=True, capture_output=True, text=True).stdout


def by_rival(fit: Callable, folder: Path, y: np.ndarray) -> dict:
    """The measures of a rival on the same files, in this process."""
    read = (
        _frames.split_target(open_table(str(folder / name)).whole(), TARGET, name) for name in ("train.csv", "new.csv")
    )
    (X, y_train, _), (X_new, _, _) = read
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, seconds = results.timed(lambda: fit(X, y_train))
        proba = model.predict_proba(X_new)
    return _scores.measures(y, proba, np.unique(y)) | {"fit_seconds": seconds}


def contenders() -> dict[str, Callable]:
    """Name -> a function (folder, classes of its new rows) that gives the measures; the command comes first."""
    rivals = {name: partial(by_rival, fit) for name, fit in compare.contenders(0).items() if name != OURS}
    return {OURS: by_command} | rivals


def run_split(frame: pd.DataFrame, seed: int, methods: dict[str, Callable]) -> tuple[dict, dict[str, dict]]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        about = write_split(frame, seed, folder)
        _, y, _ = _frames.split_target(open_table(str(folder / "new.csv")).whole(), TARGET, "new.csv")
        return about, {name: measured(folder, y) for name, measured in methods.items()}


def summary(cells: dict, methods: list[str]) -> dict:
    """Means of every set, ranks over the sets, and in how many splits the command's log-loss is below a rival's.

    Only splits that all methods have finished count.
    """
    every = sorted({tuple(key.split("/")[:2]) for key in cells})
    every = [(name, seed) for name, seed in every if all(f"{name}/{seed}/{m}" in cells for m in methods)]
    sets = sorted({name for name, _ in every})

    def of(name: str, method: str, key: str) -> list[float]:
        return [cells[f"{n}/{seed}/{method}"][key] for n, seed in every if n == name]

    keys = ("log_loss", "error")
    means = {name: {m: {key: mean(of(name, m, key)) for key in keys} for m in methods} for name in sets}
    ranks = np.mean([rankdata([means[name][m]["log_loss"] for m in methods]) for name in sets], axis=0)

    def wins(method: str, name: str) -> int:
        return sum(a < b for a, b in zip(of(name, OURS, "log_loss"), of(name, method, "log_loss")))

    return {
        "means": means,
        "mean_rank": dict(zip(methods, ranks)),
        "splits": {name: len(of(name, OURS, "log_loss")) for name in sets},
        "wins": {m: {name: wins(m, name) for name in sets} for m in methods if m != OURS},
        "median_fit_seconds": {m: median(s for name in sets for s in of(name, m, "fit_seconds")) for m in methods},
    }


def options(argv):
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="SET")
    parser.add_argument("--splits", type=int, default=5)
    help_only = "forget what these did and run them alone; names as in kproba compare"
    parser.add_argument("--only", nargs="+", choices=contenders(), metavar="NAME", help=help_only)
    return parser.parse_args(argv)


def main(argv=None) -> None:
    """What the file holds is kept, so that a run can be interrupted and started again."""
    args = options(argv)
    payload = results.read("command", args.out) or {"sets": {}, "cells": {}}
    payload |= {"protocol": PROTOCOL}
    kept = {key: cell for key, cell in payload["cells"].items() if key.split("/")[2] not in (args.only or ())}
    methods = {name: measured for name, measured in contenders().items() if name in (args.only or contenders())}
    for name in args.sets:
        frame = frame_of(load(name, args.data_dir))
        for seed in range(args.splits):
            todo = {each: measured for each, measured in methods.items() if f"{name}/{seed}/{each}" not in kept}
            payload["sets"][name], found = run_split(frame, seed, todo)
            kept |= {f"{name}/{seed}/{method}": cell for method, cell in found.items()}
            ran = [each for each in contenders() if any(key.endswith(f"/{each}") for key in kept)]
            results.write("command", payload | {"cells": kept, "summary": summary(kept, ran)}, args.out)
            losses = ", ".join(f"{method} {cell['log_loss']:.4f}" for method, cell in found.items())
            print(f"{name}, split {seed}: {losses}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
