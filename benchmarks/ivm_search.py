"""The ways of the import vector machine to search, beside each other -> results/ivm_search.json.

Exact (2001 B2) against one-step (B2*) on 20 problems of at most 300 rows; subsets of candidates against all of them;
and how the time of a step grows with rows and import points.
"""

from __future__ import annotations

import sys
import warnings
from statistics import mean, median

import numpy as np

from kproba import ConvergenceWarning, ImportVectorMachine

from . import results
from .klr_loo import drawn

SETS = ("pima", "magic", "spambase", "ionosphere", "sonar", "saheart", "electricity", "vehicle", "satimage", "glass")
ROWS = 150
#: Rows, candidates and points of the two further measurements.
CANDIDATE_ROWS, CANDIDATES = 2000, (20, 59, 200, 500, "all")
COST_ROWS, COST_POINTS = (1000, 2000, 4000, 8000), (10, 20, 40, 80)


def fitted(X, y, **changes):
    """A model with given width and ridge, and its seconds."""
    given = {"kernel": "gaussian", "width": "median", "ridge": 1.0 / len(X), "random_state": 0}
    model = ImportVectorMachine(**{**given, **changes})
    return results.timed(lambda: model.fit(X, y))


def exact_and_one_step(X, y) -> dict:
    (exact, slow), (quick, fast) = (fitted(X, y, search=search) for search in ("exact", "one-step"))
    objectives = [float(model.path_["objective"][-1]) for model in (exact, quick)]
    return {
        "rows": len(y),
        "classes": len(exact.classes_),
        "objective_exact": objectives[0],
        "objective_one_step": objectives[1],
        "excess": objectives[1] / objectives[0] - 1.0,
        "points": [len(model.import_indices_) for model in (exact, quick)],
        "seconds": [slow, fast],
        "time_ratio": fast / slow,
    }


def problems(sets, data_dir, n: int):
    for name in sets:
        for seed in (0, 1):
            yield f"{name}/{seed}", *drawn(name, data_dir, n, seed)


def subsets(X, y, points: int) -> dict:
    """The objective with as many points, by the number of candidates looked at in a step."""
    cells = {}
    for size in (size for size in CANDIDATES if size == "all" or size < len(y)):
        model, seconds = fitted(X, y, candidates=size, max_points=points, tol=1e-9, ridge=1e-4)
        cells[str(size)] = {"objective": float(model.path_["objective"][-1]), "seconds": seconds}
    best = cells["all"]["objective"]
    return {key: cell | {"excess": cell["objective"] / best - 1.0} for key, cell in cells.items()}


def noisy(n: int, d: int = 8):
    """Two classes that no number of points exhausts."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d))
    return X, (X[:, 0] * X[:, 1] + 0.5 * random.standard_normal(n) > 0).astype(int)


def cost(rows, points, candidates) -> dict:
    """Seconds of one step by n and q, and the exponents a, b of n^a·q^b that fit them, on one core.

    The time of a step near q points is the difference of two fits, with q and with q/2 points.
    """
    table = {}
    for n in rows:
        X, y = noisy(n)
        given = {"candidates": candidates, "tol": 1e-9, "ridge": 1e-4, "n_jobs": 1}
        seconds = [median(fitted(X, y, max_points=q, **given)[1] for _ in range(3)) for q in (points[0] // 2, *points)]
        for q, before, after in zip(points, seconds, seconds[1:]):
            table[f"{n}/{q}"] = max(after - before, 1e-6) / (q - q // 2)
    keys = np.array([[int(part) for part in key.split("/")] for key in table], dtype=float)
    design = np.column_stack([np.log(keys), np.ones(len(keys))])
    exponents = np.linalg.lstsq(design, np.log(list(table.values())), rcond=None)[0]
    return {"seconds_a_step": table, "exponent_of_n": float(exponents[0]), "exponent_of_q": float(exponents[1])}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--quick", action="store_true", help="a small run that only shows that everything works")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore", ConvergenceWarning)
    cells = {}
    for key, X, y in problems(args.sets, args.data_dir, 60 if args.quick else ROWS):
        cells[key] = exact_and_one_step(X, y)
        print(f"{key}: {cells[key]}", file=sys.stderr, flush=True)
    rows, points = ((100, 200), (4, 8)) if args.quick else (COST_ROWS, COST_POINTS)
    payload = {
        "exact_and_one_step": cells,
        "worst_excess": max(cell["excess"] for cell in cells.values()),
        "mean_excess": mean(cell["excess"] for cell in cells.values()),
        "median_time_ratio": median(cell["time_ratio"] for cell in cells.values()),
        "candidates": subsets(*noisy(300 if args.quick else CANDIDATE_ROWS), 5 if args.quick else 40),
        "cost_all_candidates": cost([n for n in rows if n <= 2000], points, "all"),
        "cost_subset": cost(rows, points, 100 if args.quick else 200),
    }
    print(payload, file=sys.stderr)
    results.write("ivm_search", payload, args.out)


if __name__ == "__main__":
    main()
