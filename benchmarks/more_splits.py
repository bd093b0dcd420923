"""More splits of the tables whose splits differ most, LSPC() beside CatBoost -> results/more_splits.json.

Five splits of a table of a few hundred rows say little about which of two methods is better, and neither does one split
of a large one. A run can be interrupted and started again: cells (set, rows, seed, rival) that the JSON file holds are
kept.
"""

from __future__ import annotations

import sys
from statistics import mean, stdev
from typing import NamedTuple

from . import more_rows, results, rivals, tables_quality

#: Tables of up to 500 training rows in the protocol of tables_quality, on splits that no constant was chosen on.
SMALL = ("breast_cancer_original", "credit_a", "esl_mixture", "glass", "ionosphere", "saheart", "sonar")
SMALL_SEEDS = tuple(range(30, 45))
#: Tables of many rows in the protocol of more_rows, on the splits of tables_quality.
LARGE, LARGE_ROWS, LARGE_SEEDS = more_rows.SETS, 10_000, (2, 3, 4, 5, 6)
NOTE = (
    "Means over the splits. error is the standard error of the mean difference of the log-losses, from its spread over "
    "the splits, which share rows. Every method has its defaults and may use all cores."
)


class Case(NamedTuple):
    """A table and its splits; rows is the number of training rows, 0 for two thirds."""

    name: str
    rows: int
    seeds: tuple[int, ...]

    def splits(self) -> list[str]:
        return [f"{self.name}/{self.rows}/{seed}" for seed in self.seeds]

    def split(self, table, seed: int):
        return more_rows.split(table, self.rows, seed) if self.rows else tables_quality.split(table, seed)


def compare(cells: dict, case: Case, pair: list[str]) -> dict | None:
    """Two methods on the splits that both have finished."""
    found = [[cells.get(f"{key}/{rival}") for rival in pair] for key in case.splits()]
    ours, theirs = zip(*[row for row in found if all(row)] or [(), ()])
    if len(ours) < 2:
        return None
    losses = [[cell["log_loss"] for cell in column] for column in (ours, theirs)]
    gaps = [a - b for a, b in zip(*losses)]
    seconds = [mean(cell["fit_seconds"] for cell in column) for column in (ours, theirs)]
    return {
        "splits": len(gaps),
        "log_loss": dict(zip(pair, map(mean, losses))),
        "ratio": mean(losses[0]) / mean(losses[1]),
        "error": stdev(gaps) / len(gaps) ** 0.5,
        "lower": sum(gap < 0 for gap in gaps),
        "seconds": dict(zip(pair, seconds)),
        "time_ratio": seconds[0] / seconds[1],
    }


def measure(args, cases: list[Case], payload: dict) -> None:
    """Run the cells that are still open."""
    from kproba.data.real import load

    cells = payload["cells"]
    for case in cases:
        table = load(case.name, args.data_dir)
        for key, seed in zip(case.splits(), case.seeds):
            for rival in args.rivals:
                if f"{key}/{rival}" in cells:
                    continue
                cell = cells[f"{key}/{rival}"] = tables_quality.run_cell(rivals.get(rival), case.split(table, seed))
                print(f"{key}/{rival}: {cell['log_loss']:.4f}, {cell['fit_seconds']:.1f} s", file=sys.stderr)
                results.write("more_splits", payload, args.out)


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--small", nargs="*", default=SMALL, metavar="SET")
    parser.add_argument("--small-seeds", type=int, nargs="+", default=SMALL_SEEDS, metavar="SEED")
    parser.add_argument("--large", nargs="*", default=LARGE, metavar="SET")
    parser.add_argument("--rivals", nargs=2, default=("kproba", "catboost"), choices=rivals.EVERYONE, metavar="RIVAL")
    args = parser.parse_args(argv)
    cases = [Case(name, 0, tuple(args.small_seeds)) for name in args.small]
    cases += [Case(name, LARGE_ROWS, LARGE_SEEDS) for name in args.large]
    payload = results.read("more_splits", args.out) or {"cells": {}}
    payload |= {"note": NOTE, "rivals": {rival: rivals.get(rival).name for rival in args.rivals}}
    tables_quality.warm_up(args.rivals)
    measure(args, cases, payload)
    found = {case: compare(payload["cells"], case, args.rivals) for case in cases}
    titles = {case: f"{case.name}, {case.rows:,} rows" if case.rows else case.name for case in cases}
    payload["summary"] = {titles[case]: each for case, each in found.items() if each}
    results.write("more_splits", payload, args.out)


if __name__ == "__main__":
    main()
