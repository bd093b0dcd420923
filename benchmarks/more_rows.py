"""Log-loss and time against the number of training rows, beside boosting -> results/more_rows.json and .png.

A run can be interrupted and started again: cells (set, rows, rival) that the JSON file holds are kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from . import results, rivals
from .gpu import normal_rows, posterior
from .tables_quality import Split, run_cell, warm_up

SETS = ("electricity", "covertype_93k", "letter", "magic")
ROWS = (500, 1000, 2000, 5000, 10_000, 16_000, 30_000, 50_000, 70_000)
RIVALS = ("kproba", "catboost", "lightgbm")
MOST_TEST, MILLION = 3000, 1_000_000
NOTE = (
    "Stratified splits: ROWS training rows and up to MOST_TEST others, the same for everybody. Log-loss clips at "
    "1e-15. million: 28 normal columns of which four matter; truth is the log-loss of the true probabilities. Every "
    "method has its defaults and may use all cores; fit_seconds includes learning, tuning and calibration."
)
COLOURS = {"kproba": "#0072B2", "catboost": "#D55E00", "lightgbm": "#009E73"}


def split(table, n: int, seed: int) -> Split | None:
    """n training rows, or None if too few would be left for the test."""
    X, y = np.asarray(table.X, dtype=np.float64), np.unique(table.y, return_inverse=True)[1]
    n_test = min(MOST_TEST, len(y) - n)
    if n_test < min(MOST_TEST, n // 20):
        return None
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=n, test_size=n_test, random_state=seed, stratify=y
    )
    return Split(X_train, y_train, X_test, y_test, np.zeros(X.shape[1], dtype=bool), [])


def million(rows: int) -> tuple[Split, float]:
    """The rows of the GPU benchmark, and the log-loss of the truth."""
    (X, y), (X_test, y_test) = normal_rows(rows, 28), normal_rows(50_000, 28, seed=1)
    p = posterior(X_test.astype(np.float64))
    truth = -np.log(np.where(y_test == 1, p, 1.0 - p)).mean()
    return Split(X, y, X_test, y_test, np.zeros(28, dtype=bool), []), float(truth)


def pending(args, cells: dict):
    """The data and key of every cell that is still to be run."""
    from kproba.data.real import load

    for name in args.sets:
        table = load(name, args.data_dir)
        for n in args.rows:
            open_cells = [key for key in (f"{name}/{n}/{rival}" for rival in args.rivals) if key not in cells]
            data = split(table, n, args.seed) if open_cells else None
            yield from ((key, data) for key in open_cells if data is not None)


def draw(payload: dict, folder: Path) -> None:
    """A panel for each set -> more_rows.png."""
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys(key.split("/")[0] for key in payload["cells"]))
    figure = Figure(figsize=(3.2 * len(sets), 3.2), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(sets)))
    for axes, name in zip(panels, sets):
        for rival, colour in COLOURS.items():
            curve = curve_of(payload["cells"], name, rival)
            axes.loglog(list(curve), [cell["log_loss"] for cell in curve.values()], "o-", color=colour, markersize=4)
        axes.set(title=name, xlabel="training rows")
        axes.yaxis.set_major_formatter("{x:.2g}")
        axes.yaxis.set_minor_formatter("{x:.2g}")
        axes.tick_params(which="minor", labelsize=7)
    panels[0].set_ylabel("test log-loss")
    labels = [payload["rivals"].get(rival, rival) for rival in COLOURS]
    panels[-1].legend(labels, frameon=False)
    figure.savefig(folder / "more_rows.png", dpi=110)


def curve_of(cells: dict, name: str, rival: str) -> dict[int, dict]:
    """Number of rows -> cell, in ascending order."""
    found = {
        int(key.split("/")[1]): cell
        for key, cell in cells.items()
        if key.startswith(f"{name}/") and key.endswith(f"/{rival}")
    }
    return dict(sorted(found.items()))


def run_million(args, payload: dict) -> None:
    """Every rival on a million rows."""
    data, truth = million(args.million)
    found = payload.setdefault("million", {"rows": args.million, "truth": truth, "cells": {}})
    for rival in args.rivals:
        if rival not in found["cells"]:
            found["cells"][rival] = run_cell(rivals.get(rival), data)
            print(f"million/{rival}: {found['cells'][rival]}", file=sys.stderr, flush=True)
            results.write("more_rows", payload, args.out)


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--rivals", nargs="+", default=RIVALS, choices=rivals.EVERYONE)
    parser.add_argument("--again", action="store_true", help="forget what the JSON file holds of these cells")
    parser.add_argument("--million", type=int, default=MILLION, help="rows of the generated table; 0 leaves it out")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    payload = results.read("more_rows", args.out) or {"cells": {}}
    payload |= {"note": NOTE, "rivals": {key: rivals.get(key).name for key in RIVALS}}
    if args.again:
        wanted = {f"{name}/{n}/{rival}" for name in args.sets for n in args.rows for rival in args.rivals}
        payload["cells"] = {key: cell for key, cell in payload["cells"].items() if key not in wanted}
    warm_up(args.rivals)
    for key, data in pending(args, payload["cells"]):
        cell = payload["cells"][key] = run_cell(rivals.get(key.rsplit("/", 1)[1]), data)
        print(f"{key}: {cell['log_loss']:.4f}, {cell['fit_seconds']:.1f} s", file=sys.stderr, flush=True)
        results.write("more_rows", payload, args.out)
    if args.million:
        run_million(args, payload)
    draw(payload, args.out)


if __name__ == "__main__":
    main()
