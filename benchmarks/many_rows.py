"""What the benchmarks of many rows share: generated Parquet files, fresh processes, and the memory of each.

Rows come in blocks, and a block depends on its number alone: files, arrays and workers of a cluster have the same rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss

from kproba.data.all_rows import AllRows
from kproba.data.sources import ArraySource
from kproba.data.toys import Toy, clouds_2013
from kproba.estimators import _reading

from . import results
from .memory import resident

COLUMNS, SPREAD = 28, 0.35
#: Rows of a generated block, which is a row group too, and of a file.
BLOCK_ROWS, FILE_ROWS = 50_000, 500_000
#: Width in scaled columns and ridge for fits that search for neither.
GIVEN = {"kernel": "gaussian", "width": 4.0, "ridge": 1e-5, "random_state": 0}
#: Numbers of blocks that no file has: their rows test.
TEST_BLOCK, TEST_ROWS = 1_000_000, 20_000


def drawn(number: int, n_rows: int = BLOCK_ROWS) -> Toy:
    """Two classes, six clouds each, whose posterior is known."""
    return clouds_2013(n_rows, d=COLUMNS, spread=SPREAD, random_state=number)


def block(number: int, n_rows: int = BLOCK_ROWS, dtype=np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of a block."""
    toy = drawn(number, n_rows)
    return toy.X.astype(dtype), toy.y


def block_sizes(n_rows: int) -> list[int]:
    """Rows of every block of so many rows."""
    return [min(BLOCK_ROWS, n_rows - start) for start in range(0, n_rows, BLOCK_ROWS)]


def write_files(folder: Path, n_rows: int) -> None:
    """Write Parquet files block by block, so that no more than one is in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [(f"x{k}", pa.float32()) for k in range(COLUMNS)]
    schema, writer, per_file = pa.schema([*fields, ("label", pa.int64())]), None, FILE_ROWS // BLOCK_ROWS
    for number, size in enumerate(block_sizes(n_rows)):
        if number % per_file == 0:
            if writer is not None:
                writer.close()
            writer = pq.ParquetWriter(folder / f"part-{number // per_file:04d}.parquet", schema)
        X, y = block(number, size)
        columns = [pa.array(np.ascontiguousarray(column)) for column in X.T]
        writer.write_table(pa.table([*columns, pa.array(y)], schema=schema))
    writer.close()


@contextlib.contextmanager
def generated_files(n_rows: int, keep: Path | None = None) -> Iterator[Path]:
    """A folder of Parquet files with so many rows: deleted at the end, or kept and used again under ``keep``."""
    with tempfile.TemporaryDirectory() if keep is None else contextlib.nullcontext(keep) as parent:
        folder = Path(parent) / f"rows-{n_rows}"
        if not folder.exists():
            # under another name until it is whole: half of the rows must not be taken for all
            unfinished = Path(parent) / f"unfinished-{n_rows}"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            write_files(unfinished, n_rows)
            unfinished.rename(folder)
        yield folder


def available_threads() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options of the benchmarks of many rows."""
    options = results.parser(description)
    options.add_argument("--folder", type=Path, help="keep the generated files here, and use those that are here")
    options.add_argument("--threads", type=int, default=available_threads(), help="of BLAS and of kproba alike")
    options.add_argument("--quick", action="store_true", help="a small size, to see that it works")
    options.add_argument("--task", type=json.loads, help=argparse.SUPPRESS)
    return options


def command(module: str, task: dict) -> list[str]:
    """What does one task of a benchmark in a process of its own."""
    return [sys.executable, "-m", f"benchmarks.{module}", "--task", json.dumps(task)]


def environment(threads: int) -> dict[str, str]:
    """Ours, with so many threads for every BLAS that there may be."""
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(threads))}


def in_fresh_process(module: str, task: dict, threads: int) -> dict:
    """What a task prints last, done in a process that inherits neither memory nor threads."""
    done = subprocess.run(
        command(module, task | {"threads": threads}),
        stdout=subprocess.PIPE,
        text=True,
        cwd=results.ROOT,
        env=environment(threads),
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} failed on {task}")
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"{task}: {found}", file=sys.stderr, flush=True)
    return found


def median_cells(cells: list[dict]) -> dict:
    """The median of every number of repeated cells, and the largest of every memory."""
    first = cells[0]
    pick = {key: max if key.endswith("bytes") else statistics.median for key in first}
    numbers = {key for key, value in first.items() if isinstance(value, int | float)}
    return first | {key: pick[key]([cell[key] for cell in cells]) for key in numbers}


@contextlib.contextmanager
def timing(owner, name: str) -> Iterator[list[float]]:
    """Seconds of every call of a function or method while this is open."""
    seconds: list[float] = []
    original = getattr(owner, name)

    def timed(*args, **options):
        value, spent = results.timed(lambda: original(*args, **options))
        seconds.append(spent)
        return value

    setattr(owner, name, timed)
    try:
        yield seconds
    finally:
        setattr(owner, name, original)


def fit_cell(model, rows, *more) -> dict:
    """Fit, and say how long it took, what its passes took, and the memory of this process before and at its peak."""
    before = resident()[0]
    with timing(_reading, "summarise") as look, timing(AllRows, "sum") as sums:
        seconds = results.timed(lambda: model.fit(rows, *more))[1]
    peak = resident()[1]
    passes = {"look_seconds": sum(look), "sums_seconds": sum(sums)}
    return {"seconds": seconds, **passes, "peak_bytes": peak, "before_bytes": before, "growth_bytes": peak - before}


def judged(model) -> dict:
    """Log-loss of rows that no file has, beside that of their true posterior."""
    toy = drawn(TEST_BLOCK, TEST_ROWS)
    inputs = toy.X.astype(np.float32)
    proba = model.predict_proba(ArraySource(inputs))
    return {"log_loss": log_loss(toy.y, proba), "bayes_log_loss": log_loss(toy.y, toy.posterior(toy.X))}
