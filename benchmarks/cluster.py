"""LSPC on a local Dask cluster of two processes beside one process of two threads -> results/cluster.json.

And on the cluster again while one of its workers is killed.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import tempfile
import threading
from pathlib import Path

import numpy as np

from kproba import LSPC
from kproba.data.all_rows import AllRows

from . import many_rows, results

ROWS, CENTERS, WORKERS = 5_000_000, 500, 2
QUICK_ROWS, QUICK_CENTERS = 60_000, 20
NOTE = (
    "The same rows in float64, in partitions of 50,000: on the cluster they are made by workers and kept there, one "
    "process has them as an array in memory, so that neither reads. Each worker has one thread, the one process as "
    "many threads as there are workers, for BLAS and for features. Width and ridge given. Generating the rows and "
    "starting the cluster are not timed. Medians of the repeats after a small fit that does not count. Then a worker "
    "is killed by SIGKILL when half of the time of the sums has passed; Dask starts another one and generates the "
    "lost partitions anew, which is timed."
)


def model(args_or_task: dict, n_jobs: int) -> LSPC:
    return LSPC(**many_rows.GIVEN, centers=args_or_task["centers"], link=args_or_task["link"], n_jobs=n_jobs)


def partitions(n_rows: int):
    """The rows as Dask arrays of blocks that the workers generate."""
    import dask
    import dask.array as da

    sizes = many_rows.block_sizes(n_rows)
    both = [dask.delayed(many_rows.block, nout=2)(number, size, np.float64) for number, size in enumerate(sizes)]
    X = [da.from_delayed(pair[0], (size, many_rows.COLUMNS), np.float64) for pair, size in zip(both, sizes)]
    y = [da.from_delayed(pair[1], (size,), np.int64) for pair, size in zip(both, sizes)]
    return da.concatenate(X), da.concatenate(y)


def one_process(task: dict) -> dict:
    """Fits of the same rows as an array."""
    sizes = many_rows.block_sizes(task["rows"])
    blocks = [many_rows.block(number, size, np.float64) for number, size in enumerate(sizes)]
    X, y = (np.concatenate(parts) for parts in zip(*blocks))
    del blocks
    return repeated_fits(task, task["threads"], X, y)


def repeated_fits(task: dict, n_jobs: int, X, y) -> dict:
    """Median seconds of fits and of their passes; the coefficients are stored."""
    small = task["small_rows"]
    model(task, n_jobs).fit(X[:small], y[:small])
    cells = [many_rows.fit_cell(fitted := model(task, n_jobs), X, y) for _ in range(task["repeats"])]
    np.save(task["coef"], fitted.coef_)
    return many_rows.median_cells(cells)


def on_cluster(task: dict) -> dict:
    """Fits of the rows on a cluster, the last one while a worker dies."""
    import dask
    import distributed

    # workers too would tell at length of the one we kill
    dask.config.set({"distributed.logging.distributed": "critical"})
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    options = {"n_workers": task["threads"], "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        tempfile.TemporaryDirectory() as folder,
        distributed.LocalCluster(**options, local_directory=folder) as cluster,
        cluster.get_client() as client,
    ):
        X, y = partitions(task["rows"])
        X, y = client.persist([X, y])
        distributed.wait([X, y])
        undisturbed = repeated_fits(task, 1, X, y)
        return {"undisturbed": undisturbed, "killed": fit_while_killing(task, client, X, y, undisturbed)}


def fit_while_killing(task: dict, client, X, y, undisturbed: dict) -> dict:
    """A fit whose cluster loses a worker when half of the sums are done."""
    before = client.run(os.getpid)
    sums_begin, sum_of = threading.Event(), AllRows.sum

    def announced(self, *args, **options):
        sums_begin.set()
        return sum_of(self, *args, **options)

    def kill():
        sums_begin.wait()
        threading.Event().wait(undisturbed["sums_seconds"] / 2)
        os.kill(next(iter(before.values())), signal.SIGKILL)

    AllRows.sum = announced
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    try:
        cell = many_rows.fit_cell(fitted := model(task, 1), X, y)
    finally:
        AllRows.sum = sum_of
    killer.join()
    np.save(task["killed_coef"], fitted.coef_)
    client.wait_for_workers(task["threads"], timeout=60)
    return cell | {"workers_replaced": len(set(before.values()) - set(client.run(os.getpid).values()))}


TASKS = {"one process": one_process, "cluster": on_cluster}


def largest_difference(paths) -> float:
    one, other = map(np.load, paths)
    return float(np.abs(one - other).max())


def measure(args, work: Path) -> dict:
    coefs = {name: str(work / f"{name}.npy") for name in ("one", "cluster", "killed")}
    task = {"rows": args.rows, "centers": args.centers, "link": args.link, "repeats": args.repeats}
    task |= {"small_rows": min(args.rows, 60_000), "killed_coef": coefs["killed"]}

    def run(what: str, coef: str) -> dict:
        return many_rows.in_fresh_process("cluster", task | {"what": what, "coef": coef}, args.threads)

    one, cluster = run("one process", coefs["one"]), run("cluster", coefs["cluster"])
    seconds = {"one process": one["seconds"], "cluster": cluster["undisturbed"]["seconds"]}
    seconds["cluster, a worker killed"] = cluster["killed"]["seconds"]
    scale = float(np.abs(np.load(coefs["one"])).max())
    return {
        "seconds": seconds,
        "ratios": {name: value / seconds["one process"] for name, value in seconds.items()},
        "differences": {
            "cluster and one process": largest_difference([coefs["one"], coefs["cluster"]]),
            "a worker killed and undisturbed": largest_difference([coefs["cluster"], coefs["killed"]]),
        },
        "largest_coefficient": scale,
        "cells": {"one process": one, **cluster},
    }


def main(argv=None) -> None:
    parser = many_rows.parser(__doc__)
    parser.set_defaults(threads=WORKERS)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--centers", type=int)
    parser.add_argument("--link", default="clip")
    parser.add_argument("--repeats", type=int)
    args = parser.parse_args(argv)
    if args.task:
        print(json.dumps(TASKS[args.task["what"]](args.task)))
        return
    args.rows = args.rows or (QUICK_ROWS if args.quick else ROWS)
    args.centers = args.centers or (QUICK_CENTERS if args.quick else CENTERS)
    args.repeats = args.repeats or (1 if args.quick else 3)
    with tempfile.TemporaryDirectory() as work:
        found = measure(args, Path(work))
    payload = {"note": NOTE, "rows": args.rows, "columns": many_rows.COLUMNS, "centers": args.centers}
    payload |= {"link": args.link, "workers": args.threads, "repeats": args.repeats}
    payload["partitions"] = len(many_rows.block_sizes(args.rows))
    results.write("cluster", payload | found, args.out)


if __name__ == "__main__":
    main()
