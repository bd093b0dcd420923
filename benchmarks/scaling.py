"""Time and memory of LSPC against rows and centres (Parquet files), columns and classes -> results/scaling.json."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path

import joblib
import numpy as np

import kproba
from kproba import LSPC
from kproba.data.sources import CHUNK_BYTES
from kproba.data.summary import sample_size
from kproba.threads import BATCH_BYTES

from . import many_rows, results
from .memory import resident

ROWS, CENTERS_OF_ROWS = (10_000, 100_000, 1_000_000, 10_000_000), 200
CENTERS, ROWS_OF_CENTERS = (100, 250, 500, 1000, 2000, 4000), 100_000
#: Arrays with other numbers of columns and of classes, and the centres of their fits.
COLUMNS, CLASSES, CENTERS_OF_ARRAYS = (4, 16, 64, 256), (2, 8, 32, 128), 500
QUICK_ROWS, QUICK_CENTERS, QUICK_COLUMNS, QUICK_CLASSES = (60_000,), (50,), (4,), (2,)
LINKS = ("clip", "auto")
#: Below so many rows the fit goes on in memory, which is another cost.
MANY_ROWS = 100_000
NOTE = (
    "Each in a fresh process; width and ridge given. Growth: peak resident memory minus that right before, imports "
    "included; promised: four matrices of the centres, four blocks of features, four chunks of rows, and four copies "
    "of the sample. Exponents are slopes of a line through the logarithms: over rows from 100,000 on, over all "
    "centres, columns and classes. Columns and classes: 100,000 rows in an array, 500 centres. "
    "Probabilities are written to a Parquet file by write_probabilities with a model that was fitted before."
)


def fit(task: dict) -> dict:
    rows = kproba.open_rows(task["folder"], target="label")
    model = LSPC(**many_rows.GIVEN, centers=task["centers"], link=task["link"], n_jobs=task["threads"])
    cell = many_rows.fit_cell(model, rows)
    if "model" in task:
        joblib.dump(model, task["model"])
    return cell


def fit_array(task: dict) -> dict:
    """Rows of any number of columns and classes."""
    rng, d, c = np.random.default_rng(0), task["columns"], task["classes"]
    X = rng.standard_normal((task["rows"], d))
    y = (X[:, :3] @ rng.standard_normal((3, c)) + rng.gumbel(size=(task["rows"], c))).argmax(axis=1)
    width = {"width": float(np.sqrt(2 * d))}
    model = LSPC(**many_rows.GIVEN | width, centers=task["centers"], link=task["link"], n_jobs=task["threads"])
    return many_rows.fit_cell(model, X, y)


def promised(b: int, d: int) -> int:
    """Bytes that a fit of many rows may add, whatever their number."""
    return 4 * (8 * b * b + BATCH_BYTES + CHUNK_BYTES + 8 * d * sample_size(d))


def predict(task: dict) -> dict:
    """Probabilities of all rows from files to a file."""
    model = joblib.load(task["model"])
    rows = kproba.open_rows(task["folder"], columns=[f"x{k}" for k in range(many_rows.COLUMNS)])
    before = resident()[0]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "probabilities.parquet"
        seconds = results.timed(lambda: kproba.write_probabilities(model, rows, out))[1]
    memory = {"peak_bytes": resident()[1], "growth_bytes": resident()[1] - before}
    return {"seconds": seconds, "rows_per_second": task["rows"] / seconds, **memory}


TASKS = {"fit": fit, "array": fit_array, "predict": predict}


def exponent(sizes, values) -> float | None:
    """The slope of log value over log size; None where there are fewer than two sizes."""
    if len(sizes) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1)), 1)[0])


def exponents(cells: dict, sizes: dict[int, str]) -> dict:
    """How time and memory grow over the cells of these sizes."""
    found = [cells[key] for key in sizes.values()]
    milliseconds, growth = [1000 * cell["seconds"] for cell in found], [cell["growth_bytes"] for cell in found]
    return {"seconds": exponent(list(sizes), milliseconds), "growth": exponent(list(sizes), growth)}


def measure(args, work: Path) -> tuple[dict, dict]:
    """Cells by what is done, and exponents."""
    model = str(work / "model.joblib")
    cells: dict[str, dict] = {}

    def run(what: str, folder: Path, **task) -> dict:
        task = {"what": what, "folder": str(folder), **task}
        return many_rows.in_fresh_process("scaling", task, args.threads)

    def rows_of(n: int) -> Path:
        # those of several numbers of centres are written once
        if n not in folders:
            folders[n] = files.enter_context(many_rows.generated_files(n, args.folder))
        return folders[n]

    with ExitStack() as files:
        folders: dict[int, Path] = {}
        for n in args.rows:
            for link in LINKS:
                task = {"centers": CENTERS_OF_ROWS, "link": link, "model": model}
                cells[f"rows/{link}/{n}"] = run("fit", rows_of(n), **task)
            cells[f"rows/write_probabilities/{n}"] = run("predict", rows_of(n), model=model, rows=n)
        few = ROWS_OF_CENTERS if not args.quick else max(QUICK_ROWS)
        for b in args.centers:
            for link in LINKS:
                cells[f"centres/{link}/{b}"] = run("fit", rows_of(few), centers=b, link=link)
    for axis, sizes in (("columns", args.columns), ("classes", args.classes)):
        for size in sizes:
            task = {"rows": few, "columns": 8, "classes": 2, "centers": CENTERS_OF_ARRAYS} | {axis: size}
            cells[f"{axis}/auto/{size}"] = run("array", work, link="auto", **task)
    add_promises(cells)
    return cells, slopes(cells, args)


def add_promises(cells: dict) -> None:
    for key, cell in cells.items():
        axis, what, size = key.split("/")
        given = {"rows": (CENTERS_OF_ROWS, many_rows.COLUMNS), "centres": (int(size), many_rows.COLUMNS)}
        given |= {"columns": (CENTERS_OF_ARRAYS, int(size)), "classes": (CENTERS_OF_ARRAYS, 8)}
        if what in LINKS:
            cell["promised_bytes"] = promised(*given[axis])


def slopes(cells: dict, args) -> dict:
    rows, centers, found = [n for n in args.rows if n >= MANY_ROWS], args.centers, {}
    for axis, sizes in (("columns", args.columns), ("classes", args.classes)):
        found[f"{axis}/auto"] = exponents(cells, {size: f"{axis}/auto/{size}" for size in sizes})
    for what in (*LINKS, "write_probabilities"):
        found[f"rows/{what}"] = exponents(cells, {n: f"rows/{what}/{n}" for n in rows})
    for link in LINKS:
        found[f"centres/{link}"] = exponents(cells, {b: f"centres/{link}/{b}" for b in centers})
    return found


def main(argv=None) -> None:
    parser = many_rows.parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--centers", type=int, nargs="+")
    parser.add_argument("--columns", type=int, nargs="+")
    parser.add_argument("--classes", type=int, nargs="+")
    args = parser.parse_args(argv)
    if args.task:
        print(json.dumps(TASKS[args.task["what"]](args.task)))
        return
    args.rows = args.rows or list(QUICK_ROWS if args.quick else ROWS)
    args.centers = args.centers or list(QUICK_CENTERS if args.quick else CENTERS)
    args.columns = args.columns or list(QUICK_COLUMNS if args.quick else COLUMNS)
    args.classes = args.classes or list(QUICK_CLASSES if args.quick else CLASSES)
    with tempfile.TemporaryDirectory() as work:
        cells, found = measure(args, Path(work))
    payload = {"note": NOTE, "columns": many_rows.COLUMNS, "threads": args.threads, "cells": cells, "exponents": found}
    results.write("scaling", payload, args.out)


if __name__ == "__main__":
    main()
