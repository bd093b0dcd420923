"""``kproba fit`` and ``kproba predict`` on a table larger than the memory they use -> results/command_stream.json."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kproba import cli

from . import many_rows, results
from .memory import resident

ROWS, QUICK_ROWS, TEST_ROWS, SMALL_ROWS = 500_000, 2_400, 20_000, 50_000
#: Rows that are generated at a time, and the words of a note that nobody needs.
BLOCK_ROWS, NOTE_WORDS = 50_000, 500
FORMATS = ("csv", "parquet")
NOTE = (
    "A table of 10 columns of numbers, 2 of categories, 2 of dates, with gaps in many, an identifier, a note of some "
    "3,000 letters that is ignored, and the class; the same rows as CSV and as Parquet. Every command in a fresh "
    "process with one thread, by default options; other work shared the machine. peak_bytes is the largest resident "
    "memory of the process, imports included; frame_bytes is what the rows take as a pandas frame. log_loss: of rows "
    "that no file has, by the model of the streamed fit; beside it that of a fit in memory of the first rows."
)


def table(number: int, n_rows: int):
    """A block of rows, which depends on its number alone."""
    import pandas as pd

    rng = np.random.default_rng(number)
    numbers = rng.standard_normal((n_rows, 8))
    job, town = rng.integers(0, 6, n_rows), rng.integers(0, 30, n_rows)
    days = rng.integers(0, 1500, n_rows)
    age, children = rng.integers(18, 90, n_rows), rng.integers(0, 6, n_rows)
    score = numbers[:, 0] * numbers[:, 1] + numbers[:, 2] + (job == 2) + np.sin(town) + np.cos(days / 365 * 2 * np.pi)
    frame = pd.DataFrame({"id": number * BLOCK_ROWS + np.arange(n_rows)})
    for j, column in enumerate(numbers.T):
        frame[f"x{j}"] = np.where(rng.random(n_rows) < 0.1 * (j % 2), np.nan, column)
    frame["age"], frame["children"] = age, children
    frame["job"] = np.where(rng.random(n_rows) < 0.05, None, np.array([f"job {k}" for k in range(6)], object)[job])
    frame["town"] = np.array([f"town {k}" for k in range(30)], object)[town]
    moments = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D")
    frame["since"] = moments.strftime("%Y-%m-%d").where(rng.random(n_rows) > 0.05)
    frame["seen"] = (moments + pd.to_timedelta(rng.integers(0, 86_400, n_rows), unit="s")).astype(str)
    words = np.array(["again", "before", "castle", "dinner", "early"], object)
    notes = [" ".join(words[rng.integers(0, 5, NOTE_WORDS)]) for _ in range(200)]
    frame["note"] = np.array(notes, object)[rng.integers(0, 200, n_rows)]
    frame["bought"] = np.where(score + rng.logistic(size=n_rows) > 0.5, "yes", "no")
    return frame


def blocks(n_rows: int, first: int = 0) -> Iterator:
    for number, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        yield table(first + number, min(BLOCK_ROWS, n_rows - start))


def written(folder: Path, name: str, n_rows: int, first: int = 0) -> int:
    """Write both files block by block; the bytes that all rows take as a frame."""
    from kproba.cli import _frames

    taken = 0
    with (
        _frames.writing(str(folder / f"{name}.csv")) as to_csv,
        _frames.writing(str(folder / f"{name}.parquet")) as to_parquet,
    ):
        for frame in blocks(n_rows, first):
            taken += int(frame.memory_usage(deep=True).sum())
            to_csv(frame)
            to_parquet(frame)
    return taken


def command(task: dict) -> dict:
    """One command in this process, its seconds and the memory of the process at its peak."""
    status, seconds = results.timed(lambda: cli.main([*task["words"], "--json"]))
    if status:
        raise RuntimeError(f"{task['words']} ended with {status}")
    return {"seconds": seconds, "peak_bytes": resident()[1]}


def measure(folder: Path, args) -> dict:
    """Fits and predictions from both files, and what the models are worth."""

    def run(*words) -> dict:
        return many_rows.in_fresh_process("command_stream", {"words": list(map(str, words))}, args.threads)

    def fit(name: str, model: str, *more) -> dict:
        words = ("fit", folder / name, "--target", "bought", "--ignore", "id", "note", "--model", folder / model)
        return run(*words, *more)

    cells = {"fit, a quarter of the rows": fit("quarter.csv", "quarter.kproba", "--stream")}
    for kind in FORMATS:
        file, out = folder / f"all.{kind}", folder / f"out.{kind}"
        size = {"file_bytes": file.stat().st_size}
        model = f"{kind}.kproba"
        cells[f"fit, {kind}"] = fit(file.name, model, "--stream") | size | judged(folder, model)
        words = ("predict", file, "--model", folder / model, "--keep", "id", "--out", out)
        cells[f"predict, {kind}"] = run(*words) | size
    cells["fit in memory"] = fit("small.csv", "small.kproba") | judged(folder, "small.kproba")
    return cells


def judged(folder: Path, model: str) -> dict:
    """Log-loss of rows that no training file has."""
    import pandas as pd
    from sklearn.metrics import log_loss

    out = folder / "test-out.csv"
    cli.main(["predict", str(folder / "test.csv"), "--model", str(folder / model), "--out", str(out), "--quiet"])
    said, true = pd.read_csv(out), pd.read_csv(folder / "test.csv", usecols=["bought"])["bought"]
    return {"log_loss": log_loss(true, said[["proba_no", "proba_yes"]].to_numpy(), labels=["no", "yes"])}


def main(argv=None) -> None:
    parser = many_rows.parser(__doc__)
    parser.add_argument("--rows", type=int)
    args = parser.parse_args(argv)
    if args.task:
        print(json.dumps(command(args.task)))
        return
    args.rows = args.rows or (QUICK_ROWS if args.quick else ROWS)
    with tempfile.TemporaryDirectory(dir=args.folder) as parent:
        folder, n_blocks = Path(parent), -(-args.rows // BLOCK_ROWS)
        frame_bytes = written(folder, "all", args.rows)
        written(folder, "quarter", args.rows // 4)
        written(folder, "small", min(SMALL_ROWS, args.rows))
        written(folder, "test", min(TEST_ROWS, args.rows), first=n_blocks)
        cells = measure(folder, args)
    payload = {"note": NOTE, "rows": args.rows, "threads": args.threads, "frame_bytes": frame_bytes}
    results.write("command_stream", payload | {"small_rows": min(SMALL_ROWS, args.rows), "cells": cells}, args.out)


if __name__ == "__main__":
    main()
