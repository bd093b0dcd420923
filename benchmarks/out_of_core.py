"""LSPC on ten million rows of Parquet files beside reading and the bare products -> results/out_of_core.json."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy.linalg import blas
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

import kproba
from kproba import LSPC

from . import many_rows, results
from .fit_floor import features

ROWS, CENTERS = 10_000_000, 1000
QUICK_ROWS, QUICK_CENTERS = 60_000, 50
MODES = {"width and ridge given": many_rows.GIVEN, "default": {"random_state": 0}}
#: Batches of the bare products that stand for those of all rows, and the bytes of the features of each.
BATCHES, BATCH_BYTES, TILE_BYTES = 20, 32 << 20, 1 << 20
GIB = 1 << 30
#: The precisions of the bare products: float32, as the rows are stored, and float64, in which the CPU sums.
PRODUCTS = {"float32": "", "float64": " in float64"}
NOTE = (
    "Every fit and every part of the floor in a fresh process with the same threads. Floor: reading all files once "
    "with pyarrow into float32 arrays, and features (distances by one product, exp) and ΦᵀΦ in float32 of batches of "
    "32 MiB, measured on 20 of them and scaled to all rows; and the same products in float64, in which the CPU sums. "
    "The fit reads twice: a look at all rows, and the sums. "
    "Features of the floor are computed in tiles of 1 MiB on all threads. Files were written just before, so they "
    "come from the page cache; they are read and not mapped, so that resident memory holds no page of theirs. "
    "peak_bytes is the largest resident memory of the whole process, before_bytes that right before the fit, imports "
    "included."
)


def fit(task: dict) -> dict:
    rows = kproba.open_rows(task["folder"], target="label")
    model = LSPC(**{"kernel": "gaussian"} | task["parameters"], centers=task["centers"], n_jobs=task["threads"])
    cell = many_rows.fit_cell(model, rows)
    chosen = {"kernel": model.kernel_.name, "width": model.width_, "ridge": model.ridge_}
    return cell | chosen | many_rows.judged(model)


def read(task: dict) -> dict:
    """All files into arrays, a batch at a time."""
    import pyarrow.parquet as pq

    def once():
        for path in sorted(Path(task["folder"]).glob("*.parquet")):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=many_rows.BLOCK_ROWS):
                    X = np.empty((batch.num_rows, many_rows.COLUMNS), np.float32)
                    for k in range(many_rows.COLUMNS):
                        X[:, k] = batch.column(k)
                    batch.column(many_rows.COLUMNS).to_numpy()

    return {"seconds": results.timed(once)[1]}


def laplacian_features(X, Z, width, out):
    np.copyto(out, cdist(X, Z, "cityblock"), casting="same_kind")
    out *= -1.0 / width
    return np.exp(out, out=out)


FEATURES = {"gaussian": features, "laplacian": laplacian_features}


def products(task: dict) -> dict:
    """Features and ΦᵀΦ of some batches, scaled to all rows."""
    b, dtype = task["centers"], np.dtype(task["dtype"])
    step, tile = (max(1, size // (dtype.itemsize * b)) for size in (BATCH_BYTES, TILE_BYTES))
    random, phi = np.random.default_rng(0), np.empty((step, b), dtype)
    X, Z = (random.standard_normal((size, many_rows.COLUMNS)).astype(dtype) for size in (step, b))
    (syrk,) = blas.get_blas_funcs(["syrk"], dtype=dtype)
    tiles = [slice(start, start + tile) for start in range(0, step, tile)]

    def fill(rows):
        FEATURES[task["kernel"]](X[rows], Z, 4.0, out=phi[rows])

    def all_features():
        with threadpool_limits(1, user_api="blas"):
            list(pool.map(fill, tiles))

    with ThreadPoolExecutor(task["threads"]) as pool:
        times = results.interleaved(
            {"features": all_features, "product": lambda: syrk(1.0, phi.T, lower=1)}, task["batches"]
        )
    scaled = {f"{name}_seconds": value * task["rows"] / step for name, value in times.items()}
    return scaled | {"seconds": sum(scaled.values())}


TASKS = {"fit": fit, "read": read, "products": products}


def measure(folder: Path, args) -> dict:
    """Medians of the repeats of every task, one after the other so that a slow minute hits all of them."""

    def run(what: str, **task) -> dict:
        task |= {"what": what, "folder": str(folder), "rows": args.rows, "centers": args.centers}
        return many_rows.in_fresh_process("out_of_core", task, args.threads)

    found: dict[str, list[dict]] = {}
    for _ in range(args.repeats):
        for mode in args.modes:
            found.setdefault(mode, []).append(run("fit", parameters=MODES[mode]))
        kernels = {cells[-1]["kernel"] for cells in found.values() if "kernel" in cells[-1]}
        found.setdefault("reading", []).append(run("read"))
        for kernel in sorted(kernels & set(FEATURES)):
            batches = 2 if args.quick else BATCHES
            for dtype, name in PRODUCTS.items():
                task = {"kernel": kernel, "batches": batches, "dtype": dtype}
                found.setdefault(f"products{name}, {kernel}", []).append(run("products", **task))
    return {name: many_rows.median_cells(cells) for name, cells in found.items()}


def against_floor(cells: dict, modes, rows: int) -> dict:
    """The fits with what they amount to."""
    out = {}
    for mode in modes:
        cell = cells[mode]
        floor = cells["reading"]["seconds"] + cells[f"products, {cell['kernel']}"]["seconds"]
        in_double = cells["reading"]["seconds"] + cells[f"products in float64, {cell['kernel']}"]["seconds"]
        shares = {
            "floor_seconds": floor,
            "over_floor": cell["seconds"] / floor,
            "over_float64_floor": cell["seconds"] / in_double,
            "rows_per_second": rows / cell["seconds"],
        }
        out[mode] = cell | shares | {"peak_gib": cell["peak_bytes"] / GIB}
    return cells | out


def main(argv=None) -> None:
    parser = many_rows.parser(__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--centers", type=int)
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=list(MODES))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--name", default="out_of_core", help="of the result, for another size")
    args = parser.parse_args(argv)
    if args.task:
        print(json.dumps(TASKS[args.task["what"]](args.task)))
        return
    args.rows = args.rows or (QUICK_ROWS if args.quick else ROWS)
    args.centers = args.centers or (QUICK_CENTERS if args.quick else CENTERS)
    with many_rows.generated_files(args.rows, args.folder) as folder:
        file_bytes = sum(os.path.getsize(path) for path in folder.iterdir())
        cells = against_floor(measure(folder, args), args.modes, args.rows)
    payload = {"note": NOTE, "rows": args.rows, "columns": many_rows.COLUMNS, "centers": args.centers}
    payload |= {"threads": args.threads, "file_bytes": file_bytes, "modes": args.modes, "cells": cells}
    results.write(args.name, payload, args.out)


if __name__ == "__main__":
    main()
