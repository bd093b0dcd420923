"""How long every example takes from start to end, in a process of its own -> results/examples.json."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import results


def seconds(path: Path) -> float:
    """Wall-clock time without a screen; examples without options do not look at the folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(path), "--out", folder]
        options = {"cwd": results.ROOT, "env": os.environ | {"MPLBACKEND": "Agg"}, "check": True}
        return results.timed(lambda: subprocess.run(command, capture_output=True, **options))[1]


def main(argv=None) -> None:
    args = results.parser(__doc__).parse_args(argv)
    paths = sorted((results.ROOT / "examples").glob("*.py"))
    results.write("examples", {"seconds": {path.stem: seconds(path) for path in paths}}, args.out)


if __name__ == "__main__":
    main()
