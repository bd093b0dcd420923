"""A fit that is killed three times and goes on, beside one that is left alone -> results/interruptions.json."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import kproba
from kproba import LSPC
from kproba.data import all_rows
from kproba.data.checkpoint import EVERY, Checkpoint
from kproba.estimators import _sources
from kproba.progress import RowProgress

from . import many_rows, results

ROWS, CENTERS, KILLS = 2_000_000, 1000, 3
QUICK_ROWS, QUICK_CENTERS = 200_000, 100
NOTE = (
    "Fresh processes; width and ridge given, link='clip'. A process is killed by SIGKILL when its sums have come to a "
    "row that was drawn at random, by the pace of the fit that was left alone; the next one goes on from the "
    "checkpoint, which is written every so many seconds. Seconds are those from the beginning of fit to its end or to "
    "the kill; the start of a process is left out. Lost: seconds of all processes beyond those of the fit that was "
    "left alone. Repeated: rows that were looked at or summed again, over all rows."
)


class NotedProgress(RowProgress):
    """Writes what has been done to a file, for whoever watches from outside."""

    def __init__(self, notes: Path, verbose, total, title: str, done: int = 0):
        super().__init__(verbose, total, title, done)
        self._notes, self._what, self._row = notes, title.rsplit(" ", 1)[-1], done
        self.rows(0)

    def rows(self, n: int) -> None:
        super().rows(n)
        self._row += n
        with self._notes.open("a") as file:
            file.write(f"{self._what} {n} {self._row} {time.time()}\n")


def fit(task: dict) -> dict:
    """A fit that notes its progress and stores its coefficients."""
    notes = Path(task["notes"])
    for module in (_sources, all_rows):
        module.RowProgress = partial(NotedProgress, notes)
    _sources.Checkpoint = partial(Checkpoint, every=task["every"])
    rows = kproba.open_rows(task["folder"], target="label")
    model = LSPC(**many_rows.GIVEN, centers=task["centers"], link="clip", n_jobs=task["threads"])
    notes.write_text(f"begin 0 0 {time.time()}\n")
    model.fit(rows, checkpoint=task["checkpoint"])
    with notes.open("a") as file:
        file.write(f"end 0 0 {time.time()}\n")
    np.save(task["coef"], model.coef_)
    return {}


class Note(NamedTuple):
    """What was done to how many rows, up to which row, when."""

    what: str
    n_rows: int
    row: int
    moment: float


def notes_of(path: Path) -> list[Note]:
    """The notes that are complete."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    split = [line.split() for line in lines if line.endswith("\n")]
    return [Note(what, int(n), int(row), float(moment)) for what, n, row, moment in split]


def pace(notes: list[Note]) -> float:
    """Rows a second of the sums."""
    sums = [note for note in notes if note.what == "sums"]
    return (sums[-1].row - sums[0].row) / (sums[-1].moment - sums[0].moment)


def has_come_to(row: float, notes: list[Note], rows_per_second: float) -> bool:
    """Whether the sums are at a row by now, which may lie inside a chunk."""
    sums = [note for note in notes if note.what == "sums"]
    return bool(sums) and sums[-1].row + rows_per_second * (time.time() - sums[-1].moment) >= row


def attempt(task: dict, threads: int, kill_row: float = math.inf, rows_per_second: float = 0.0) -> dict:
    """Fit in a process, and kill it once its sums have come to a row; what it did."""
    path, checkpoint = Path(task["notes"]), Path(task["checkpoint"] or "")
    path.unlink(missing_ok=True)
    process = subprocess.Popen(
        many_rows.command("interruptions", task | {"threads": threads}),
        cwd=results.ROOT,
        env=many_rows.environment(threads),
        stdout=subprocess.DEVNULL,
    )
    is_killed = False
    while process.poll() is None:
        if not is_killed and has_come_to(kill_row, notes_of(path), rows_per_second):
            process.kill()
            is_killed = True
        time.sleep(0.005)
    if process.returncode and not is_killed:
        raise RuntimeError(f"interruptions failed on {task}")
    held = sum(file.stat().st_size for file in checkpoint.iterdir()) if task["checkpoint"] else 0
    found = work_done(notes_of(path)) | {"killed": is_killed, "checkpoint_bytes": held}
    print(found, file=sys.stderr, flush=True)
    return found


def work_done(notes: list[Note]) -> dict:
    """Rows that were looked at, rows between which sums were made, and seconds until the end or else until now."""
    sums = [note.row for note in notes if note.what == "sums"]
    rows = {
        "look_rows": sum(note.n_rows for note in notes if note.what == "look"),
        "from_row": sums[0],
        "to_row": sums[-1],
    }
    end = notes[-1].moment if notes[-1].what == "end" else time.time()
    return rows | {"seconds": end - notes[0].moment}


def repeated(attempts: list[dict], moments) -> float:
    """Rows that were summed before a kill and had to be summed again, the begun chunk included."""
    reached = (max(row, killed["to_row"]) for row, killed in zip(moments, attempts))
    return sum(row - after["from_row"] for row, after in zip(reached, attempts[1:]))


def measure(folder: Path, work: Path, args) -> dict:
    def task(name: str, checkpoint: bool) -> dict:
        paths = {"notes": str(work / f"{name}.txt"), "coef": str(work / f"{name}.npy")}
        paths["checkpoint"] = str(work / f"{name}-checkpoint") if checkpoint else None
        return {"folder": str(folder), "centers": args.centers, "every": args.every, **paths}

    alone = attempt(task("alone", False), args.threads)["seconds"]
    watched, rows_per_second = (
        attempt(task("watched", True), args.threads)["seconds"],
        pace(notes_of(work / "watched.txt")),
    )
    moments = np.sort(np.random.default_rng(args.seed).uniform(0, args.rows, args.kills))
    killed_fit = task("killed", True)
    attempts = [attempt(killed_fit, args.threads, row, rows_per_second) for row in moments]
    attempts.append(attempt(killed_fit, args.threads))
    coefs = {name: np.load(work / f"{name}.npy") for name in ("alone", "watched", "killed")}
    return {
        "seconds": {"no checkpoint": alone, "checkpoint": watched, "killed": sum(a["seconds"] for a in attempts)},
        "attempts": attempts,
        "moments": moments / args.rows,
        "kills": sum(a["killed"] for a in attempts),
        "largest_difference": max(float(np.abs(coef - coefs["alone"]).max()) for coef in coefs.values()),
        "identical": all(np.array_equal(coef, coefs["alone"]) for coef in coefs.values()),
        "sums_repeated": repeated(attempts, moments) / args.rows,
        "look_repeated": sum(a["look_rows"] for a in attempts) / args.rows - 1,
        "lost_seconds": sum(a["seconds"] for a in attempts) - watched,
        "checkpoint_bytes": max(a["checkpoint_bytes"] for a in attempts),
    }


def main(argv=None) -> None:
    parser = many_rows.parser(__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--centers", type=int)
    parser.add_argument("--every", type=float, help="seconds between two checkpoints; the library's own are longer")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    args = parser.parse_args(argv)
    if args.task:
        print(json.dumps(fit(args.task)))
        return
    args.rows = args.rows or (QUICK_ROWS if args.quick else ROWS)
    args.centers = args.centers or (QUICK_CENTERS if args.quick else CENTERS)
    args.kills = args.kills or (1 if args.quick else KILLS)
    args.every = args.every or (0.2 if args.quick else 5.0)
    with many_rows.generated_files(args.rows, args.folder) as folder, tempfile.TemporaryDirectory() as work:
        found = measure(folder, Path(work), args)
    payload = {"note": NOTE, "rows": args.rows, "columns": many_rows.COLUMNS, "centers": args.centers}
    payload |= {"threads": args.threads, "every_seconds": args.every, "usual_every_seconds": EVERY, "seed": args.seed}
    results.write("interruptions", payload | found, args.out)


if __name__ == "__main__":
    main()
