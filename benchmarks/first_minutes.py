"""The first minutes with kproba, in a fresh environment without any extra -> first_minutes.json.

``pip install .``, then ``kproba demo`` cut off from the network, and ``import kproba`` beside ``import sklearn``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from . import results

#: A first look must take no longer on two cores, and the import no more times that of scikit-learn.
MOST_SECONDS, MOST_TIMES = 30.0, 1.5
#: Python's own word on connections: whatever opens one beyond this machine's own sockets fails.
GUARD = """
import sys

def refuse(event, arguments):
    if event == "socket.getaddrinfo" or (event == "socket.connect" and isinstance(arguments[1], tuple)):
        raise OSError(f"there is no network here, and {event} was called")

sys.addaudithook(refuse)
"""
TIMED = (
    "import time; wall, cpu = time.perf_counter(), time.process_time(); import {module}; "
    "print(time.perf_counter() - wall, time.process_time() - cpu)"
)


def fresh_environment(folder: Path) -> Path:
    """The interpreter of a new environment with kproba and what it cannot do without."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", results.ROOT]
    subprocess.run(install, check=True, env=_clean())
    return python


def demo(python: Path, repeats: int) -> dict:
    """Seconds of ``kproba demo`` without a network, and the size of the page that it writes."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "sitecustomize.py").write_text(GUARD)
        env, cut_off = _clean() | {"PYTHONPATH": place}, _network_cutter()
        refused = subprocess.run([python, "-c", "import socket; socket.create_connection(('localhost', 9))"], env=env,
                                 capture_output=True, text=True, check=False)  # fmt: skip
        assert "there is no network here" in refused.stderr, refused.stderr
        command = [*cut_off, python.with_name("kproba"), "demo"]
        run = lambda: subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)  # noqa: E731
        before = _cpu_of_children()
        seconds = [results.timed(run)[1] for _ in range(repeats)]
        page = folder / "kproba-demo.html"
        return {
            "seconds": seconds,
            "median_seconds": median(seconds),
            "mean_cpu_seconds": (_cpu_of_children() - before) / repeats,
            "page_bytes": page.stat().st_size,
            "network_cut_by": ["an audit hook of Python", *(["a namespace of the kernel"] if cut_off else [])],
        }


def _cpu_of_children() -> float:
    """CPU seconds of all processes that were started and have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _network_cutter() -> list[str]:
    """The command that starts another one without a network, where the system lets us."""
    command = ["unshare", "--map-root-user", "--net"]
    try:
        allowed = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        allowed = False
    return command if allowed else []


def imports(python: Path, repeats: int, modules=("kproba", "sklearn")) -> dict:
    """Median wall and CPU seconds of imports in processes of their own, taken in turn after one that does not count."""
    found: dict[str, list] = {module: [] for module in modules}
    for _ in range(repeats + 1):
        for module in modules:
            command = [python, "-c", TIMED.format(module=module)]
            told = subprocess.run(command, env=_clean(), check=True, capture_output=True, text=True)
            found[module].append([float(each) for each in told.stdout.split()])
    times = {module: dict(zip(("wall", "cpu"), map(median, zip(*runs[1:])))) for module, runs in found.items()}
    ours, theirs = (times[module] for module in modules)
    return {"repeats": repeats, "seconds": times, "ratios": {kind: ours[kind] / theirs[kind] for kind in ours}}


def _clean() -> dict[str, str]:
    """The environment variables without those that would show the interpreter other packages."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}


def packages(python: Path) -> list[str]:
    listed = [python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    return subprocess.run(listed, env=_clean(), check=True, capture_output=True, text=True).stdout.split()


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=15, help="imports of each module")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        python, seconds = results.timed(lambda: fresh_environment(Path(folder) / "env"))
        payload = {"install_seconds": seconds, "packages": [each for each in packages(python) if "@" not in each]}
        payload |= {"imports": imports(python, args.repeats), "demo": demo(python, 3)}
    payload |= {"limits": {"demo_seconds": MOST_SECONDS, "import_ratio": MOST_TIMES}}
    results.write("first_minutes", payload, args.out)


if __name__ == "__main__":
    main()
