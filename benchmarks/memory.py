"""Peak memory of a fit, each in a process of its own -> results/memory.json."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from kproba import LSPC
from kproba.threads import BATCH_BYTES

from . import results

CENTERS, ROWS = (1000, 2000, 3000), (10_000, 20_000, 40_000)
COLUMNS, CLASSES = 16, 10
GIVEN = {"kernel": "gaussian", "width": 4.0, "ridge": 1e-4}
MODES = {"clip": {**GIVEN, "link": "clip"}, "calibrated": GIVEN, "search": {}}
NOTE = (
    "Peak resident memory of the process during fit minus what it held right before (the data and a small "
    "warm-up fit included). Allowance: 4·b²·8 bytes and one block of features. per_row: bytes that a further "
    "row adds, from the fewest rows to the most."
)


def generated(n: int):
    """Ten noisy classes in 16 columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, COLUMNS))
    scores = X[:, :4] @ rng.standard_normal((4, CLASSES)) + 0.5 * rng.standard_normal((n, CLASSES))
    return X, scores.argmax(axis=1)


def resident() -> tuple[int, int]:
    """Bytes that the process holds now, and the most it ever held."""
    status = Path("/proc/self/status")
    if not status.exists():  # no current value there: the peak has to do for both
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return peak, peak
    # VmHWM and not ru_maxrss: the latter is handed down from the parent, however large it was
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return tuple(int(fields[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM"))


def point(mode: str, b: int, n: int) -> dict:
    """One fit in this process."""
    X, y = generated(n)
    LSPC(**MODES[mode], centers=50, random_state=0).fit(X[:400], y[:400])
    before, peak_before = resident()
    _, seconds = results.timed(lambda: LSPC(**MODES[mode], centers=b, random_state=0).fit(X, y))
    extra = resident()[1] - before
    return {"extra_bytes": extra, "peak_before_fit": peak_before - before, "seconds": seconds}


def in_fresh_process(mode: str, b: int, n: int) -> dict:
    command = [sys.executable, "-m", "benchmarks.memory", "--point", mode, str(b), str(n)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=results.ROOT, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def against_allowance(cell: dict, b: int) -> dict:
    """The same with what the memory amounts to."""
    square, allowed = 8 * b * b, 4 * 8 * b * b + BATCH_BYTES
    return cell | {
        "in_b_squared_8": cell["extra_bytes"] / square,
        "allowed_bytes": allowed,
        "over_allowance": cell["extra_bytes"] / allowed,
    }


def growth(cells: dict, rows) -> dict:
    """Bytes a further row costs, for every mode and number of centres."""
    few, many = min(rows), max(rows)
    if few == many:
        return {}
    ends = [key for key in cells if key.endswith(f"/{many}")]
    pairs = {key.rsplit("/", 1)[0]: (cells[key], cells[key.rsplit("/", 1)[0] + f"/{few}"]) for key in ends}
    return {key: (a["extra_bytes"] - z["extra_bytes"]) / (many - few) for key, (a, z) in pairs.items()}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--point", nargs=3, metavar=("MODE", "B", "N"), help="measure this process alone")
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=list(MODES))
    parser.add_argument("--centers", type=int, nargs="+", default=CENTERS)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    args = parser.parse_args(argv)
    if args.point:
        mode, b, n = args.point
        print(json.dumps(point(mode, int(b), int(n))))
        return
    cells: dict[str, dict] = {}
    for mode, b, n in ((m, b, n) for m in args.modes for b in args.centers for n in args.rows):
        cells[f"{mode}/{b}/{n}"] = against_allowance(in_fresh_process(mode, b, n), b)
        print(f"{mode} b={b} n={n}: {cells[f'{mode}/{b}/{n}']}", file=sys.stderr, flush=True)
    payload = {"note": NOTE, "columns": COLUMNS, "classes": CLASSES, "block_bytes": BATCH_BYTES}
    results.write("memory", payload | {"cells": cells, "per_row": growth(cells, args.rows)}, args.out)


if __name__ == "__main__":
    main()
