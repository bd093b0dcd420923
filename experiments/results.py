"""What the experiments share: the command line, the stamp, JSON and picture files, and how methods look."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import scipy
import sklearn
from matplotlib.figure import Figure

import kproba

FOLDER = Path(__file__).parent / "results"
#: Colours that the colour-blind can tell apart (Okabe and Ito), and a line and a marker for each method.
STYLES = {
    "truth": {"color": "#000000", "linestyle": "-", "marker": ""},
    "LSPC": {"color": "#D55E00", "linestyle": "--", "marker": "o"},
    "LSPC(full)": {"color": "#0072B2", "linestyle": "-.", "marker": "s"},
    "LSPC-new": {"color": "#0072B2", "linestyle": "-.", "marker": "s"},
    "LSPC'": {"color": "#CC79A7", "linestyle": ":", "marker": "v"},
    "LSPC() default": {"color": "#009E73", "linestyle": (0, (5, 1)), "marker": "D"},
    "KLR": {"color": "#CC79A7", "linestyle": "-", "marker": "^"},
    "KLR, plain L-BFGS": {"color": "#7F7F7F", "linestyle": ":", "marker": "x"},
}
CLASS_COLOURS = ("#0072B2", "#D55E00", "#009E73")
CLASS_MARKERS = ("o", "s", "^")


def parse(argv, description: str, more=None) -> argparse.Namespace:
    """The options that every experiment has; ``more(parser)`` adds its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data-dir", help="folder of NAME.npz files; else the variable KPROBA_DATA, else OpenML")
    parser.add_argument("--quick", action="store_true", help="a small run that only shows that everything works")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where results go (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commit", help="the commit of the sources, if they are not in a checkout of their own")
    if more is not None:
        more(parser)
    options = parser.parse_args(argv)
    options.stamp = stamp(options.commit)  # now, because the checkout may move on during a long run
    return options


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


class Stopwatch:
    """Progress of a long run: what was done, and the time left by the share of work that was done."""

    def __init__(self, name: str, work: float, minutes: float | None = None):
        self.name, self.work, self.done = name, work, 0.0
        self.start, self.limit = time.perf_counter(), np.inf if minutes is None else 60.0 * minutes

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    @property
    def is_up(self) -> bool:
        return self.seconds > self.limit

    def tick(self, work: float, text: str) -> None:
        self.done += work
        left = min(self.seconds * (self.work / self.done - 1.0), self.limit - self.seconds)
        say(f"{self.name}: {text}; {self.seconds / 60:.1f} min, about {max(left, 0.0) / 60:.1f} left")


def add_workers(parser) -> None:
    """The option of experiments that make many draws."""
    parser.add_argument("--workers", type=int, default=1, help="draws made side by side, one thread each (default: 1)")


def stamp(commit: str | None = None) -> dict:
    """When, with what and where the numbers were made."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "kproba": kproba.__version__,
        "commit": commit or _commit(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
    }


def write(name: str, content: dict, options: argparse.Namespace) -> Path:
    """``name.json`` in the folder of results, with the stamp in front."""
    folder = options.out
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"stamp": options.stamp, **plain(content)}, indent=1, ensure_ascii=False) + "\n")
    say(f"wrote {path}")
    return path


def picture(figure: Figure, name: str, folder: Path) -> Path:
    """``folder/name.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=110)
    say(f"wrote {path}")
    return path


def mean_and_error(values) -> dict:
    """The mean of repeats and its standard error, which one repeat alone does not have."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
    return {"mean": values.mean(), "standard_error": error}


def plain(value):
    """JSON's own types, floats to six digits: more would be noise."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}")
    return value.item() if isinstance(value, np.generic) else value


def _commit() -> str | None:
    """The commit of this checkout, marked if there are changes on top other than results; None outside a checkout."""
    here = Path(__file__).parent
    try:
        ask = {"cwd": here, "capture_output": True, "text": True, "check": True}
        commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], **ask).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "-uno", "--", ":/", ":!results"], **ask
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+changes" if changed else "")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
