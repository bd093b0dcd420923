"""Results as JSON files that say when, on what and with which versions they were measured."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
LIBRARIES = (
    *("kproba", "numpy", "scipy", "scikit-learn"),
    *("lightgbm", "catboost", "pandas", "skrub", "pyarrow", "dask", "mapie", "shap"),
)


def write(name: str, payload: dict, folder: Path | str = RESULTS, stamped: dict | None = None) -> Path:
    """Write ``payload`` and the stamp to NAME.json; a reader never sees half of a file.

    ``stamped`` is the stamp of what was measured before and is only added to.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    content = {"stamp": stamped or stamp(), **{k: v for k, v in payload.items() if k != "stamp"}}
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(_rounded(content), file, indent=1, allow_nan=False)
            file.write("\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def read(name: str, folder: Path | str = RESULTS) -> dict | None:
    """What was written under the name, or None."""
    path = Path(folder) / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def stamp() -> dict:
    """Where and with what: enough to judge a number, nothing that names the machine or its folders."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": _memory_gib(),
        "python": platform.python_version(),
        "libraries": {name: version for name in LIBRARIES if (version := _version(name))},
        "commit": commit(),
    }


def commit() -> str | None:
    """The commit of the library, marked where its sources differ from it; $KPROBA_COMMIT where there is no history."""
    if named := os.environ.get("KPROBA_COMMIT"):
        return named
    head = _git("rev-parse", "--short=12", "HEAD")
    if head is None or head.returncode:
        return None
    # only the library counts: the results themselves change while a benchmark writes them
    changed = _git("diff", "--quiet", "HEAD", "--", "src").returncode != 0
    return head.stdout.strip() + ("-modified" if changed else "")


def timed(f: Callable) -> tuple:
    """The value of ``f()`` and its seconds."""
    start = time.perf_counter()
    value = f()
    return value, time.perf_counter() - start


def median_time(f: Callable, repeats: int) -> float:
    """Median seconds of ``f()``, after one call that does not count."""
    return interleaved({"f": f}, repeats)["f"]


def interleaved(functions: dict[str, Callable], repeats: int) -> dict[str, float]:
    """Median seconds of each function, called in turn so that a slow minute hits all of them alike."""
    for f in functions.values():
        f()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, f in functions.items():
            seconds[name].append(timed(f)[1])
    return {name: statistics.median(values) for name, values in seconds.items()}


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--data-dir", default=os.environ.get("KPROBA_DATA"), help="default: $KPROBA_DATA")
    options.add_argument("--out", type=Path, default=RESULTS, help="folder of the JSON files")
    return options


def _rounded(value):
    """Plain Python numbers, floats with six digits: more would only be noise in a diff."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): _rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str):
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
