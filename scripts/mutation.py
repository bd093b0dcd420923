"""Mutation testing of the numerical core with mutmut: how many small changes of the code do the unit tests notice?

    python scripts/mutation.py                    # every module; results are cached in mutants/
    python scripts/mutation.py links data.rows    # some modules, tested again
    python scripts/mutation.py --survivors links  # what the last run left, as lines for tests/mutation_survivors.md
    python scripts/mutation.py --again links      # test only the survivors of the last run again

Prints a table, and fails if a module has less than 90 % of its mutants killed or a survivor that
tests/mutation_survivors.md does not list. Which modules are mutated, and by which tests, is in pyproject.toml.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is loaded: mutants run side by side

from mutmut.__main__ import cli
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.runners.harness import PytestRunner
from mutmut.stats import status_by_exit_code

ROOT = Path(__file__).parents[1]
KNOWN = ROOT / "tests" / "mutation_survivors.md"
LEAST = 0.9


class NodeIds:
    """mutmut reads an attribute that pytest 9.2 no longer has."""

    @staticmethod
    def pytest_itemcollected(item) -> None:
        if not hasattr(item, "_nodeid"):
            item._nodeid = item.nodeid


class CompatibleRunner(PytestRunner):
    def execute_pytest(self, params, **kwargs) -> int:
        return super().execute_pytest(params, **{**kwargs, "plugins": [*kwargs.get("plugins", ()), NodeIds()]})


def modules() -> dict[str, Path]:
    """The files that are mutated, by the name of their module below ``kproba``."""
    paths = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]["only_mutate"]
    return {str(Path(p).with_suffix("").relative_to("src/kproba")).replace("/", "."): Path(p) for p in paths}


def results(path: Path) -> dict[str, str]:
    """What became of each mutant of a file. One that never ends is noticed too."""
    data = SourceFileMutationData(path=path)
    data.load()
    return {name: status_by_exit_code[code] for name, code in data.exit_code_by_key.items()}


def is_killed(status: str) -> bool:
    return status in ("killed", "timeout", "segfault")


def survivors(path: Path) -> Iterator[tuple[str, str, str]]:
    """Name, function and changed line of every mutant that no test noticed."""
    for name, status in results(path).items():
        if not is_killed(status):
            diff = get_diff_for_mutant(name, path=path).splitlines()[3:]
            changed = next((line[1:].strip() for line in diff if line.startswith("+")), "")
            function = name.rpartition("__mutmut_")[0].rpartition(".")[2].removeprefix("x_").removeprefix("xǁ")
            yield name, function.replace("ǁ", "."), changed


def run(names: list[str], processes: int) -> None:
    """mutmut itself."""
    import mutmut.workers.isolation as isolation

    isolation.PytestRunner = CompatibleRunner
    cli(["run", "--max-children", str(processes), *names], standalone_mode=False)


def report(chosen: dict[str, Path]) -> bool:
    """The table and the survivors that are not listed; whether all is well."""
    known, good = KNOWN.read_text() if KNOWN.exists() else "", True
    print("\n| module | mutants | killed | share |\n| --- | --- | --- | --- |")
    for module, path in chosen.items():
        found = results(path)
        killed = sum(map(is_killed, found.values()))
        good &= killed >= LEAST * len(found)
        print(f"| `{module}` | {len(found)} | {killed} | {killed / max(1, len(found)):.1%} |")
    for module, path in chosen.items():
        for name, function, line in survivors(path):
            if f"`{function}`: `{line}`" not in known:
                print(f"not listed in {KNOWN.name}: {module}: `{function}`: `{line}`  ({name})")
                good = False
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help=f"some of {', '.join(modules())}; all if none is named")
    parser.add_argument("--survivors", action="store_true", help="run nothing, print the survivors of the last run")
    parser.add_argument("--again", action="store_true", help="test the survivors of the last run again, nothing else")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="mutants that are tested side by side")
    args = parser.parse_args()
    os.chdir(ROOT)
    if unknown := set(args.modules) - set(modules()):
        parser.error(f"{', '.join(sorted(unknown))}: not among the modules that are mutated, {', '.join(modules())}")
    chosen = {name: path for name, path in modules().items() if not args.modules or name in args.modules}
    if args.survivors:
        for path in chosen.values():
            for _, function, line in survivors(path):
                print(f"- `{function}`: `{line}`")
        return 0
    if args.again:
        run([name for path in chosen.values() for name, *_ in survivors(path)], args.processes)
    else:
        run([f"kproba.{name}.*" for name in args.modules], args.processes)
    return 0 if report(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
