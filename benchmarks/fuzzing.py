"""Fuzzing of model files, guided by coverage -> results/fuzzing.json.

Every seed is a run of ``scripts/fuzz_model_files.py`` in a process of its own, which needs ``kproba[fuzz]``. Runs that
are complete are kept in a folder, so that an interrupted benchmark goes on where it was.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from . import results

SCRIPT = results.ROOT / "scripts" / "fuzz_model_files.py"
#: What may become of a file, in the order of the table; the last kind would be a defect.
KINDS = ("refused", "predicts", "unfitted", "too wide", "violations")
NOTE = (
    "Mutations of one small model file of each kind, with checksums computed anew. 'refused' is a ModelFileError, "
    "'predicts' a model that loads and predicts two rows, 'too wide' one that wants more than a million columns, "
    "'unfitted' one that was never fitted, and 'violations' everything else. slowest_s is processor time."
)


def run_of(seed: int, runs: int, folder: Path, plain: bool) -> dict:
    """The counts of one seed, by a run that is there already or by a new one."""
    path = folder / f"r{seed}.json"
    if not path.exists() or json.loads(path.read_text())["inputs"] < runs:
        options = ["--runs", str(runs), "--seed", str(seed), "--result", str(path), "--keep", str(folder / "keep")]
        subprocess.run([sys.executable, str(SCRIPT), *options, *(["--plain"] if plain else [])], check=False)
    return json.loads(path.read_text())


def total(found: list[dict]) -> dict:
    """The sums over all runs."""
    counts: Counter[str] = Counter()
    for one in found:
        counts.update({kind: one.get(kind, 0) for kind in ("inputs", *KINDS)})
    return {**counts, "slowest_s": max(one["slowest_s"] for one in found)}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--runs", type=int, default=100_000, help="inputs of each seed")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=results.ROOT / "out" / "fuzz", help="of the runs of each seed")
    parser.add_argument("--plain", action="store_true", help="random mutations, without atheris")
    args = parser.parse_args(argv)
    args.folder.mkdir(parents=True, exist_ok=True)
    found = [run_of(seed, args.runs, args.folder, args.plain) for seed in range(1, args.seeds + 1)]
    payload = {"note": NOTE, "guided": not args.plain, "seeds": args.seeds, **total(found)}
    print(payload, file=sys.stderr, flush=True)
    results.write("fuzzing", payload, args.out)


if __name__ == "__main__":
    main()
