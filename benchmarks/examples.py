"""How long every example takes from start to end, in a process of its own -> results/examples.json."""

from __future__ import annotations

import subprocess
import sys
import tempfile

from . import results

EXAMPLES = ("demo", "image_tags", "sound_events", "spoken_digits", "splice_junctions")


def seconds(name: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        out = [folder] if name == "demo" else ["--out", folder]
        command = [sys.executable, f"examples/{name}.py", *out]
        return results.timed(lambda: subprocess.run(command, cwd=results.ROOT, check=True, capture_output=True))[1]


def main(argv=None) -> None:
    args = results.parser(__doc__).parse_args(argv)
    results.write("examples", {"seconds": {name: seconds(name) for name in EXAMPLES}}, args.out)


if __name__ == "__main__":
    main()
