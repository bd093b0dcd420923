"""Time and log-loss against the number of rows, as an array and as a CSV file -> results/time_of_rows.json and .png.

Every fit runs in a fresh process. A run can be interrupted and started again: cells that the JSON file holds are kept.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import log_loss

from kproba import cli

from . import many_rows, results, rivals
from .memory import resident

ROWS, CSV_ROWS, QUICK_ROWS = (10**3, 10**4, 10**5, 10**6, 10**7), (10**6,), (300,)
RIVALS = ("kproba", "lightgbm", "catboost")
#: More rows than this take a rival about ten minutes and are left out.
MOST_ROWS = {"catboost": 10**6}
#: Up to so many rows, the median of several runs counts.
MOST_REPEATED, REPEATS = 10**6, 3
TEST_ROWS, BLOCK_ROWS, TEST_BLOCK = 50_000, 100_000, 1_000_000
JOBS, TOWNS = 6, 12
NAMES = ["x0", "x1", "x2", "x3", "job", "town", "days"]
#: What a town adds to the log-odds.
OF_TOWN = np.array([0.0, 0.8, -0.5, 0.3, -0.9, 1.0, 0.0, 0.2, -0.3, 0.6, -0.7, 0.1])
#: The cluster that the last point is estimated for, and the assumed price of a core for an hour in dollars.
ESTIMATED_ROWS, CLUSTER_CORES, CORE_HOUR = 10**12, 1000, 0.05
COLOURS = {"kproba": "#0072B2", "lightgbm": "#009E73", "catboost": "#D55E00"}
NOTE = (
    "Seven columns: four of numbers, of which two interact, one adds to the log-odds and one has no effect; codes of "
    "six jobs and twelve towns; and days, with a yearly season. An array holds them as numbers; in the CSV file, jobs "
    "and towns are words. Defaults of every method, all threads. array: the seconds of fit. csv: the seconds from the "
    "path to the model, by `kproba fit`, or pandas.read_csv and a fit on categorical columns. Up to a million rows, "
    "medians of three runs in turn. truth is the log-loss of the true probabilities of the test "
    "rows. The estimate takes the core-seconds per row between the two largest numbers of rows, as sums over rows are "
    "spread over a Dask cluster without loss (cluster.json). CatBoost is left out at ten million rows, which would "
    "take it about ten minutes."
)


class Drawn(NamedTuple):
    """Inputs, labels, and the probabilities of the second class."""

    X: np.ndarray
    y: np.ndarray
    p: np.ndarray


def block(number: int, n: int) -> Drawn:
    """Rows that depend on the number of their block alone."""
    rng = np.random.default_rng(number)
    x = rng.standard_normal((n, 4))
    job, town, days = (rng.integers(0, most, n) for most in (JOBS, TOWNS, 1500))
    odds = x[:, 0] * x[:, 1] + x[:, 2] + (job == 2) + OF_TOWN[town] + np.cos(days / 365 * 2 * np.pi) - 0.3
    p = 1.0 / (1.0 + np.exp(-odds))
    return Drawn(np.column_stack([x, job, town, days]), (rng.random(n) < p).astype(int), p)


def sizes(n: int) -> list[int]:
    return [min(BLOCK_ROWS, n - start) for start in range(0, n, BLOCK_ROWS)]


def array(n: int) -> tuple[np.ndarray, np.ndarray]:
    parts = [block(number, size) for number, size in enumerate(sizes(n))]
    return np.concatenate([part.X for part in parts]), np.concatenate([part.y for part in parts])


def frame(drawn: Drawn):
    """The rows as a mixed table."""
    import pandas as pd

    words = {k: np.array([f"{NAMES[k]} {i}" for i in range(TOWNS)], object)[drawn.X[:, k].astype(int)] for k in (4, 5)}
    columns = {name: words.get(k, drawn.X[:, k]) for k, name in enumerate(NAMES)}
    return pd.DataFrame(columns | {"bought": np.where(drawn.y == 1, "yes", "no")})


def write_csv(path: Path, n: int) -> None:
    for number, size in enumerate(sizes(n)):
        frame(block(number, size)).to_csv(path, mode="a" if number else "w", header=not number, index=False)


def fit_array(task: dict) -> dict:
    X, y = array(task["rows"])
    rival, before = rivals.get(task["rival"]), resident()[0]
    model, seconds = results.timed(lambda: rival.fit(X, y, np.zeros(len(NAMES), dtype=bool)))
    memory = {"growth_bytes": resident()[1] - before}
    test = block(TEST_BLOCK, task["test_rows"])
    return {"seconds": seconds, "log_loss": log_loss(test.y, model.predict_proba(test.X)), **memory}


def fit_csv(task: dict) -> dict:
    """From the path of the file to the model."""
    return (_command if task["rival"] == "kproba" else _lightgbm)(Path(task["folder"]), task)


def _command(folder: Path, task: dict) -> dict:
    import pandas as pd

    model, test, out = (str(folder / name) for name in ("model.kproba", "test.csv", "out.csv"))
    words = ["fit", str(folder / "rows.csv"), "--target", "bought", "--model", model, "--quiet"]
    seconds = results.timed(lambda: cli.main(words))[1]
    drawn = block(TEST_BLOCK, task["test_rows"])
    frame(drawn).to_csv(test, index=False)
    cli.main(["predict", test, "--model", model, "--out", out, "--quiet"])
    return {"seconds": seconds, "log_loss": log_loss(drawn.y, pd.read_csv(out)[["proba_no", "proba_yes"]].to_numpy())}


def _lightgbm(folder: Path, task: dict) -> dict:
    def fitted():
        import pandas as pd
        from lightgbm import LGBMClassifier

        table = pd.read_csv(folder / "rows.csv")
        words = dict.fromkeys(("job", "town"), "category")
        return LGBMClassifier(verbose=-1).fit(table[NAMES].astype(words), table["bought"]), words

    (model, words), seconds = results.timed(fitted)
    drawn = block(TEST_BLOCK, task["test_rows"])
    return {
        "seconds": seconds,
        "log_loss": log_loss(drawn.y, model.predict_proba(frame(drawn)[NAMES].astype(words))),
    }


TASKS = {"array": fit_array, "csv": fit_csv}


def wanted(args) -> dict[tuple[str, int], list[str]]:
    """The rivals for every kind and number of rows."""
    found = {("array", n): [rival for rival in args.rivals if n <= MOST_ROWS.get(rival, n)] for n in args.rows}
    return found | {("csv", n): [rival for rival in args.rivals if rival != "catboost"] for n in args.csv_rows}


def measure(args, payload: dict, folder: Path) -> None:
    """Run the cells that are still open; the methods take turns."""
    written = None
    for (what, n), names in wanted(args).items():
        runs: dict[str, list[dict]] = {name: [] for name in names if f"{what}/{n}/{name}" not in payload["cells"]}
        if runs and what == "csv" and written != n:
            write_csv(folder / "rows.csv", n)
            written = n
        for _ in range(REPEATS if n <= MOST_REPEATED and not args.quick else 1):
            for rival, cells in runs.items():
                task = {"what": what, "rows": n, "rival": rival, "folder": str(folder), "test_rows": args.test_rows}
                cells.append(many_rows.in_fresh_process("time_of_rows", task, args.threads))
        payload["cells"] |= {f"{what}/{n}/{rival}": many_rows.median_cells(cells) for rival, cells in runs.items()}
        results.write("time_of_rows", payload, args.out)


def ratios(cells: dict) -> dict:
    """How many times as long as LightGBM, and the quotient of the log-losses."""
    found = {}
    for key, cell in cells.items():
        other = cells.get(key.replace("/kproba", "/lightgbm"))
        if key.endswith("/kproba") and other:
            found[key.rsplit("/", 1)[0]] = {name: cell[name] / other[name] for name in ("seconds", "log_loss")}
    return found


def estimate(cells: dict, threads: int) -> dict | None:
    """Hours and dollars for very many rows on a cluster, from the two largest arrays."""
    seconds = curve(cells, "kproba")
    if len(seconds) < 2:
        return None
    (few, at_few), (many, at_many) = list(seconds.items())[-2:]
    core_hours = ESTIMATED_ROWS * max(at_many - at_few, 0.0) * threads / (many - few) / 3600
    return {
        "rows": ESTIMATED_ROWS,
        "cores": CLUSTER_CORES,
        "core_hours": core_hours,
        "hours": core_hours / CLUSTER_CORES,
        "dollars": core_hours * CORE_HOUR,
        "dollars_per_core_hour": CORE_HOUR,
    }


def curve(cells: dict, rival: str) -> dict[int, float]:
    """Number of rows -> seconds for arrays, in ascending order."""
    found = {int(key.split("/")[1]): cell["seconds"] for key, cell in cells.items() if key.startswith("array/")
             and key.endswith(f"/{rival}")}  # fmt: skip
    return dict(sorted(found.items()))


def draw(payload: dict, folder: Path) -> None:
    """Seconds against rows on logarithmic axes -> time_of_rows.png."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for rival, colour in COLOURS.items():
        seconds = curve(payload["cells"], rival)
        axes.loglog(list(seconds), list(seconds.values()), "o-", color=colour, label=payload["rivals"][rival])
    last, far = curve(payload["cells"], "kproba"), payload["estimate"]
    if far is not None:
        ends = [max(last), far["rows"]], [last[max(last)], 3600 * far["hours"]]
        label = f"{far['cores']:,} cores, estimated"
        axes.loglog(*ends, "o:", color=COLOURS["kproba"], markerfacecolor="white", label=label)
    axes.set(xlabel="rows of seven columns", ylabel="seconds")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(folder / "time_of_rows.png", dpi=110)


def main(argv=None) -> None:
    parser = many_rows.parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--csv-rows", type=int, nargs="*")
    parser.add_argument("--rivals", nargs="+", default=RIVALS, choices=RIVALS)
    parser.add_argument("--again", action="store_true", help="forget the cells that are to be run")
    args = parser.parse_args(argv)
    if args.task:
        print(json.dumps(TASKS[args.task["what"]](args.task)))
        return
    args.rows = args.rows or list(QUICK_ROWS if args.quick else ROWS)
    args.csv_rows = args.csv_rows if args.csv_rows is not None else list(QUICK_ROWS if args.quick else CSV_ROWS)
    args.test_rows = 500 if args.quick else TEST_ROWS
    payload = results.read("time_of_rows", args.out) or {"cells": {}}
    if args.again:
        again = {f"{what}/{n}/{rival}" for (what, n), names in wanted(args).items() for rival in names}
        payload["cells"] = {key: cell for key, cell in payload["cells"].items() if key not in again}
    test = block(TEST_BLOCK, args.test_rows)
    payload |= {"note": NOTE, "threads": args.threads, "rivals": {key: rivals.get(key).name for key in RIVALS}}
    payload |= {"truth": log_loss(test.y, test.p)}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        measure(args, payload, Path(folder))
    payload |= {"ratios": ratios(payload["cells"]), "estimate": estimate(payload["cells"], args.threads)}
    print(payload["ratios"], file=sys.stderr)
    results.write("time_of_rows", payload, args.out)
    draw(payload, args.out)


if __name__ == "__main__":
    main()
