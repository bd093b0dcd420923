"""Equal rows: what leave-one-out removes of them, and what follows for new rows -> results/copies.json."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple
from unittest import mock

import numpy as np

from kproba import LSPC, KernelLogisticRegression
from kproba.data.copies import odds_of_variables, with_units
from kproba.data.rows import Rows
from kproba.estimators import _base

from . import results

SEEDS, NEW_ROWS = 3, 3000
NOTE = (
    "Means over the seeds of generated tables. new: log-loss of NEW_ROWS other rows; oof: of oof_proba_, weighted; "
    "truth: that of the true probabilities. odds: the least over the variables of the odds that two rows agree in it "
    "if they agree in all others, over those of all pairs; null is infinite. Rules: one copy of each row is left out, "
    "all copies of equal rows, or what the table decides."
)


class Table(NamedTuple):
    """Rows, labels and weights, and new rows with their probabilities of the second class."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    X_new: np.ndarray
    p_new: np.ndarray


def cells(rng) -> Table:
    of_cell = np.where(rng.random((12, 12)) < 0.5, 0.1, 0.9)
    X, X_new = rng.integers(0, 12, (3000, 2)), rng.integers(0, 12, (NEW_ROWS, 2))
    return _drawn(rng, X, of_cell[tuple(X.T)], X_new, of_cell[tuple(X_new.T)])


def answers(rng) -> Table:
    """Eight answers, yes or no, that depend on each other strongly."""

    def draw(n):
        common = rng.normal(size=(n, 1))
        return (2.0 * common + rng.normal(size=(n, 8)) > 0).astype(float)

    X, X_new = draw(2000), draw(NEW_ROWS)
    p, p_new = (0.1 + 0.1 * each.sum(axis=1) for each in (X, X_new))
    return _drawn(rng, X, p, X_new, p_new)


def smooth(rng) -> Table:
    X, X_new = rng.normal(size=(500, 3)), rng.normal(size=(NEW_ROWS, 3))
    p, p_new = (1.0 / (1.0 + np.exp(-4.0 * each[:, 0])) for each in (X, X_new))
    return _drawn(rng, X, p, X_new, p_new)


def weighted_twice(rng) -> Table:
    return smooth(rng)._replace(weight=np.full(500, 2.0))


def bootstrapped(rng) -> Table:
    table, picked = smooth(rng), rng.integers(0, 500, 500)
    return table._replace(X=table.X[picked], y=table.y[picked])


def noise_twice(rng) -> Table:
    return _copied(_noise(rng, lambda n: rng.normal(size=(n, 3)), 300), 2)


def noise_weighted(rng) -> Table:
    table = _noise(rng, lambda n: rng.integers(1, 6, (n, 12)), 300)
    return table._replace(weight=np.full(300, 3.0))


def noise_survey(rng) -> Table:
    table = _noise(rng, lambda n: rng.integers(0, [6, 2, 10], (n, 3)), 600)
    weight = np.exp(0.8 * rng.normal(size=600))
    return table._replace(weight=4.0 * weight / weight.mean())


def noise_opinions(rng) -> Table:
    """Five people say what they think of each of 150 rows of rounded numbers."""
    table = _copied(_noise(rng, lambda n: np.round(rng.normal(size=(n, 3)), 1), 150), 5)
    return table._replace(y=np.where(rng.random(750) < 0.9, table.y, 1 - table.y))


CASES = {
    "3,000 rows in 144 cells": cells,
    "2,000 times eight answers that depend on each other": answers,
    "500 rows of weight 2": weighted_twice,
    "a bootstrap sample of 500 rows": bootstrapped,
    "noise, 300 rows twice": noise_twice,
    "noise, 300 times twelve answers from 1 to 5, of weight 3": noise_weighted,
    "noise, 600 rows in 120 cells, survey weights of 4 on average": noise_survey,
    "noise, five opinions of 150 rows of three rounded columns": noise_opinions,
}
ESTIMATORS: dict[str, Callable] = {
    "LSPC": lambda: LSPC(random_state=0),
    "KLR": lambda: KernelLogisticRegression(kernel="gaussian", random_state=0),
}


def one_copy(rows: Rows, **_) -> tuple[Rows, np.ndarray]:
    return replace(rows, unit=np.minimum(rows.weight, 1.0), copies_are_draws=True), np.arange(len(rows))


def all_copies(rows: Rows, **_) -> tuple[Rows, np.ndarray]:
    return replace(rows, together=rows.distinct[1]), np.arange(len(rows))


RULES = {"one copy": one_copy, "all copies": all_copies, "the table decides": with_units}


def _drawn(rng, X, p, X_new, p_new) -> Table:
    y = (rng.random(len(X)) < p).astype(int)
    return Table(X.astype(float), y, np.ones(len(X)), X_new.astype(float), p_new)


def _noise(rng, draw: Callable, n: int) -> Table:
    return _drawn(rng, draw(n), np.full(n, 0.5), draw(NEW_ROWS), np.full(NEW_ROWS, 0.5))


def _copied(table: Table, times: int) -> Table:
    return table._replace(**{name: np.repeat(getattr(table, name), times, axis=0) for name in ("X", "y", "weight")})


def log_loss(y, p, weight=None) -> float:
    return float(-np.average(np.log(np.clip(np.where(y == 1, p, 1.0 - p), 1e-15, 1.0)), weights=weight))


def measure(table: Table, y_new: np.ndarray, make: Callable, rule: Callable) -> dict[str, float]:
    with mock.patch.object(_base, "with_units", rule), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few rows
        model = make().fit(table.X, table.y, table.weight)
    found = {"new": log_loss(y_new, model.predict_proba(table.X_new)[:, 1])}
    honest = model.oof_proba_ if hasattr(model, "oof_proba_") else model.loo_proba_
    known = ~np.isnan(honest[:, 1])  # of very many rows, some are held out
    return found | {"oof": log_loss(table.y[known], honest[known, 1], table.weight[known])}


def least_odds(table: Table) -> float | None:
    """The least odds of a variable of a table; None if they are infinite."""
    rows = Rows.of(table.X, table.y, table.weight, 2)
    copies = np.bincount(rows.distinct[1], rows.n_copies)
    least = min(odds_of_variables(table.X[rows.distinct[0]], copies))
    return float(least) if np.isfinite(least) else None


def case(make_table: Callable, seeds: int) -> dict:
    cell: dict = {"odds": [], "truth": [], **{f"{name}, {rule}": [] for name in ESTIMATORS for rule in RULES}}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        table = make_table(rng)
        y_new = (rng.random(NEW_ROWS) < table.p_new).astype(int)
        cell["odds"].append(least_odds(table))
        cell["truth"].append(log_loss(y_new, table.p_new))
        for name, make in ESTIMATORS.items():
            for rule, decide in RULES.items():
                cell[f"{name}, {rule}"].append(measure(table, y_new, make, decide))
    odds = None if None in cell["odds"] else float(np.mean(cell["odds"]))
    means = {key: {part: float(np.mean([one[part] for one in found])) for part in found[0]}
             for key, found in cell.items() if key not in ("odds", "truth")}  # fmt: skip
    return {"odds": odds, "truth": float(np.mean(cell["truth"])), **means}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    args = parser.parse_args(argv)
    found = {}
    for name in args.cases:
        found[name] = case(CASES[name], args.seeds)
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    results.write("copies", {"note": NOTE, "seeds": args.seeds, "cases": found}, args.out)


if __name__ == "__main__":
    main()
