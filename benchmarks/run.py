"""Run benchmarks, each in a process of its own so that none inherits another's memory or threads.

python -m benchmarks.run --data-dir DIR [names]
"""

from __future__ import annotations

import os
import subprocess
import sys

from . import results

#: Name of the result -> module. The short ones first.
MODULES = {
    "fit_floor": "fit_floor",
    "predict_floor": "predict_floor",
    "explain": "explain",
    "oversubscription": "oversubscription",
    "memory": "memory",
    "random_problems": "random_problems",
    "onnx_graphs": "onnx_graphs",
    "klr_loo": "klr_loo",
    "loo_trust": "loo_trust",
    "klr_letter": "klr_letter",
    "likelihood_seconds": "likelihood_seconds",
    "ivm_search": "ivm_search",
    "ivm_svc": "ivm_svc",
    "family": "family",
    "surface_floor": "surface_floor",
    "surface_centers": "surface_centers",
    "centers": "centers",
    "interruptions": "interruptions",
    "cluster": "cluster",
    "scaling": "scaling",
    "out_of_core": "out_of_core",
    "command_stream": "command_stream",
    "quality": "tables_quality",
    "letter": "letter",
    "more_rows": "more_rows",
    "more_splits": "more_splits",
    "copies": "copies",
    "time_of_rows": "time_of_rows",
    "tags": "tags",
    "all_centers": "all_centers",
    "passes": "passes",
    "sequences": "sequences",
    "examples": "examples",
    "reject": "reject",
    "command": "command",
    "first_minutes": "first_minutes",
    "fuzzing": "fuzzing",
}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(MODULES)}; default: all")
    args = parser.parse_args(argv)
    unknown = set(args.names) - set(MODULES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(MODULES)}")
    shared = ["--out", str(args.out.resolve())]
    if args.data_dir:
        shared += ["--data-dir", os.path.abspath(args.data_dir)]
    failed = []
    for name in args.names or MODULES:
        print(f"== {name}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", f"benchmarks.{MODULES[name]}", *shared]
        if subprocess.run(command, cwd=results.ROOT, check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
