"""Promises of the reject option and of sets of labels over random splits -> reject.json.

LSPC with kernel, width and ridge chosen once a set, then refitted on every split: calibrated by leave-one-out, on rows
that are held out, and by MAPIE. On the generated problem errors come from the true posterior, so that a promise is
broken by the threshold and not by the luck of the test rows.
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib.util import find_spec

import numpy as np
from scipy.special import bdtr
from sklearn.frozen import FrozenEstimator

from kproba import (
    LSPC,
    ConvergenceWarning,
    ImportVectorMachine,
    KernelLogisticRegression,
    NothingKeptWarning,
    RejectOption,
    SurfaceKernelClassifier,
)
from kproba.data.real import load
from kproba.data.toys import three_classes_2010
from kproba.decisions.reject import safe_rank

from . import results

COVERAGE, CONFIDENCE = 0.95, 0.95
#: Classifiers whose leave-one-out is approximate, or not that of everything the fit did.
FAMILY = (KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)
#: Sureness of simulated rows: parameters of the beta distribution.
SIMULATED = {"easy": (6, 0.5), "medium": (2, 0.7), "hard": (1, 1)}
#: Set -> training rows and the error that is promised.
TOYS = {"three classes, 200 rows": 200, "three classes, 500 rows": 500, "three classes, 1,000 rows": 1000}
REAL = {"pima": (500, 0.15), "vehicle": (500, 0.1), "satimage": (700, 0.05), "magic": (700, 0.1)}
TOY_ERROR, TOY_TEST_ROWS, MOST_TEST_ROWS = 0.1, 5000, 2000


class Counted(LSPC):
    """Counts its fits, those of its clones included."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counted.fits += 1
        return super().fit(X, y, sample_weight)


class Split:
    """Training and test rows, and how probable each label of the test rows is: known, or one for the label it has."""

    def __init__(self, X, y, X_new, truth, classes):
        self.X, self.y, self.X_new, self.truth, self.classes = X, y, X_new, truth, classes

    def halves(self):
        half = len(self.y) // 2
        return (self.X[:half], self.y[:half]), (self.X[half:], self.y[half:])


def toy_splits(n: int, repeats: int, first: int = 0):
    for seed in range(first, first + repeats):
        toy, order = three_classes_2010(n, random_state=seed), np.random.default_rng(seed).permutation(n)
        test = three_classes_2010(TOY_TEST_ROWS, random_state=10**6 + seed)
        yield Split(toy.X[order], toy.y[order], test.X, test.posterior(test.X), np.array([1, 2, 3]))


def real_splits(name: str, n: int, repeats: int, data_dir):
    data = load(name, data_dir)
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    classes, n = np.unique(y), min(n, 2 * len(y) // 3)
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:n], order[n:][:MOST_TEST_ROWS]
        yield Split(X[train], y[train], X[test], (y[test][:, None] == classes).astype(float), classes)


def chosen(split: Split, classifier=LSPC) -> dict:
    """Kernel, width and ridge of one fit."""
    model = classifier(kernel="gaussian", random_state=0, n_jobs=1).fit(split.X, split.y)
    found = {"kernel": model.kernel_.name, "width": model.width_, "ridge": getattr(model, "ridge_", None)}
    given = {key: value for key, value in found.items() if key in model.get_params()}
    return {**given, "scaling": "robust", "n_jobs": 1, "random_state": 0}


def kept_and_sets(model: RejectOption, split: Split) -> dict:
    proba = model.predict_proba(split.X_new)
    found = model.predict_set(split.X_new, COVERAGE, allow_empty=True)  # MAPIE's may be empty
    return told(split, proba.argmax(axis=1), ~model.rejects(split.X_new)) | told_of_sets(split, found)


def told(split: Split, codes, kept) -> dict:
    wrong = 1.0 - split.truth[np.arange(len(codes)), codes]
    return {"kept": kept.mean(), "error": float(wrong[kept].mean()) if kept.any() else 0.0}


def told_of_sets(split: Split, found) -> dict:
    return {"covered": (split.truth * found).sum(axis=1).mean(), "size": found.sum(axis=1).mean()}


def by_loo(split: Split, options: dict, max_error: float):
    return RejectOption(Counted(**options), max_error=max_error, confidence=CONFIDENCE).fit(split.X, split.y)


def by_split(split: Split, options: dict, max_error: float):
    (X, y), held_out = split.halves()
    frozen = FrozenEstimator(Counted(**options).fit(X, y))
    return RejectOption(frozen, max_error=max_error, confidence=CONFIDENCE).fit(*held_out)


def by_loo_of(classifier):
    def fit(split: Split, options: dict, max_error: float):
        Counted.fits += 1
        return RejectOption(classifier(**options), max_error=max_error, confidence=CONFIDENCE).fit(split.X, split.y)

    return fit


def mapie_cross(folds: int):
    def fit(split: Split, options: dict, max_error: float):
        from mapie.classification import CrossConformalClassifier

        model = CrossConformalClassifier(
            Counted(**options), confidence_level=COVERAGE, conformity_score="lac", cv=folds, random_state=0
        )
        return model.fit_conformalize(split.X, split.y)

    return fit


def mapie_split(split: Split, options: dict, max_error: float):
    """Sets and a threshold on the same held-out rows."""
    from mapie.classification import SplitConformalClassifier
    from mapie.risk_control import BinaryRisk, MultiClassificationLTTController

    (X, y), held_out = split.halves()
    model = Counted(**options).fit(X, y)
    sets = SplitConformalClassifier(model, confidence_level=COVERAGE, conformity_score="lac", prefit=True)
    sets.conformalize(*held_out)
    right = BinaryRisk(
        risk_occurrence=lambda y_true, y_pred: y_pred == y_true,
        risk_condition=lambda y_true, y_pred: ~np.isnan(y_pred),
        higher_is_better=True,
    )
    codes = np.searchsorted(split.classes, held_out[1])
    control = MultiClassificationLTTController(
        model.predict_proba,
        [right],
        [1 - max_error],
        confidence_level=CONFIDENCE,
        classes=np.arange(len(split.classes)),
    )
    control.calibrate(held_out[0], codes)
    return sets, model, min(control.valid_predict_params, default=np.inf)  # the one that keeps most


def sets_of_mapie(model, split: Split) -> dict:
    return told_of_sets(split, model.predict_set(split.X_new)[1][:, :, 0])


def sets_and_control(models, split: Split) -> dict:
    sets, model, threshold = models
    proba = model.predict_proba(split.X_new)
    return told(split, proba.argmax(axis=1), proba.max(axis=1) >= threshold) | sets_of_mapie(sets, split)


METHODS = {
    "leave-one-out": (by_loo, kept_and_sets),
    "half held out": (by_split, kept_and_sets),
    "MAPIE, 5 folds": (mapie_cross(5), sets_of_mapie),
    "MAPIE, 10 folds": (mapie_cross(10), sets_of_mapie),
    "MAPIE, half held out": (mapie_split, sets_and_control),
}
METHODS |= {f"leave-one-out, {each.__name__}": (by_loo_of(each), kept_and_sets) for each in FAMILY}


def selective(wrong: np.ndarray, max_error: float, level: float) -> int:
    """Rows kept by the guaranteed selection of Geifman and El-Yaniv (2017): halving, each bound at level/log2 n."""
    n_wrong, steps, low, high, kept = np.cumsum(wrong), int(np.ceil(np.log2(len(wrong)))), 0, len(wrong) - 1, 0
    for _ in range(steps):
        middle = int(np.ceil((low + high) / 2))
        if bdtr(float(n_wrong[middle]), middle + 1, max_error) <= level / steps:
            low = middle
            kept = max(kept, middle + 1)
        else:
            high = middle
    return kept


def simulate(repeats: int = 1000) -> dict:
    """Rows whose probabilities are exactly right: shares kept, and how often the error of all such rows is too high."""
    random, cells = np.random.default_rng(0), {}
    for title, shape in SIMULATED.items():
        everybody = 0.5 + 0.5 * np.sort(random.beta(*shape, 400_000))[::-1]
        risk = np.cumsum(1 - everybody) / np.arange(1, len(everybody) + 1)
        for n in (200, 500, 1000, 3000):
            for max_error in (0.02, 0.05, 0.1):
                kept: dict[str, list[tuple[float, bool]]] = {"ours": [], "Geifman and El-Yaniv": []}
                for _ in range(repeats):
                    sure = np.sort(random.choice(everybody, n))[::-1]
                    wrong = random.random(n) < 1 - sure
                    found = {"ours": safe_rank(sure, wrong, max_error, 0.05)}
                    found["Geifman and El-Yaniv"] = selective(wrong, max_error, 0.05)
                    for name, k in found.items():
                        place = np.searchsorted(-everybody, -sure[k - 1], side="right") - 1
                        kept[name].append((k / n, k == 0 or risk[place] <= max_error))
                means = {name: np.mean(pairs, axis=0).tolist() for name, pairs in kept.items()}
                cells[f"{title} (error {risk[-1]:.3f})/{n}/{max_error}"] = means
    return cells


def methods_for(n: int) -> list[str]:
    """Ten folds of many rows take too long to be done 200 times, and MAPIE need not be there."""
    has_mapie = find_spec("mapie") is not None
    methods = [name for name in METHODS if (has_mapie or "MAPIE" not in name) and "one-out, " not in name]
    return [name for name in methods if n <= 500 or "10 folds" not in name]


def measure(method: str, split: Split, options: dict, max_error: float) -> dict:
    fit, tell = METHODS[method]
    Counted.fits, start = 0, time.perf_counter()
    model = fit(split, options, max_error)
    fitted = time.perf_counter()
    cell = tell(model, split)
    return cell | {"fits": Counted.fits, "fit_s": fitted - start, "predict_s": time.perf_counter() - fitted}


def summary(cells: list[dict], max_error: float, n_test: int, exact: bool) -> dict:
    """Means over the splits, and how often the promise held."""
    out = {key: float(np.mean([cell[key] for cell in cells])) for key in cells[0]}
    covered = [cell["covered"] for cell in cells]
    out["covered_se"] = float(np.std(covered) / np.sqrt(len(cells)))
    out["fit_s"] = float(np.median([cell["fit_s"] for cell in cells]))
    if "error" in out:
        out["held"] = sum(cell["error"] <= max_error for cell in cells)
        out["nothing_kept"] = sum(cell["kept"] == 0 for cell in cells)
        some = [cell["error"] for cell in cells if cell["kept"] > 0]
        out["error"] = float(np.mean(some)) if some else None
        if not exact:
            out["clearly_broken"] = sum(_clearly_above(cell, max_error, n_test) for cell in cells)
    return out


def _clearly_above(cell: dict, max_error: float, n_test: int) -> bool:
    """Whether so many errors among the test rows would be seen once in twenty if the promise held."""
    kept = round(cell["kept"] * n_test)
    wrong = round(cell["error"] * kept)
    return bool(kept and wrong and 1.0 - bdtr(float(wrong - 1), kept, max_error) <= 0.05)


def run(name: str, splits, max_error: float, exact: bool, methods, choose=chosen) -> dict:
    options, cells = None, {method: [] for method in methods}
    for number, split in enumerate(splits):
        options = choose(split) if options is None else options
        for method in methods:
            cells[method].append(measure(method, split, options, max_error))
        if number % 20 == 19:
            print(f"{name}: {number + 1}", file=sys.stderr, flush=True)
    n_test = len(split.X_new)
    found = {method: summary(each, max_error, n_test, exact) for method, each in cells.items()}
    about = {"train": len(split.y), "test": n_test, "splits": number + 1, "max_error": max_error, "exact": exact}
    return about | {"options": options, "methods": found}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--sets", nargs="+", help="only these")
    args = parser.parse_args(argv)
    for each in (NothingKeptWarning, ConvergenceWarning):
        warnings.simplefilter("ignore", each)
    warnings.filterwarnings("ignore", module="mapie")
    payload = results.read("reject", args.out) or {"sets": {}}
    stamp = results.stamp()
    payload |= {"coverage": COVERAGE, "confidence": CONFIDENCE}
    if not args.sets or "simulated" in args.sets:
        payload["simulated"] = simulate()
        results.write("reject", payload, args.out, stamp)
    for name, task in tasks(args).items():
        if not args.sets or name in args.sets:
            payload["sets"][name] = run(name, **task)
            results.write("reject", payload, args.out, stamp)


def tasks(args) -> dict[str, dict]:
    """Every set, with what is done to it."""
    found: dict[str, dict] = {}
    toy = {"max_error": TOY_ERROR, "exact": True}
    for name, n in TOYS.items():
        found[name] = {**toy, "splits": toy_splits(n, args.splits), "methods": methods_for(n)}
    few = {**toy, "methods": ["leave-one-out"]}
    found["three classes, 200 rows, everything chosen anew"] = {
        **few,
        "splits": toy_splits(200, args.splits),
        "choose": lambda split: {"random_state": 0, "n_jobs": 1},
    }
    # 200 splits tell 95 % from 92 % badly
    found["three classes, 1,000 rows, other splits"] = {
        **few,
        "splits": toy_splits(1000, 4 * args.splits, first=args.splits),
    }
    for each in FAMILY:
        found[f"three classes, 200 rows, {each.__name__}"] = {
            **toy,
            "methods": [f"leave-one-out, {each.__name__}"],
            "splits": toy_splits(200, args.splits),
            "choose": lambda split, each=each: chosen(split, each),
        }
    for name, (n, max_error) in REAL.items():
        splits = real_splits(name, n, args.splits, args.data_dir)
        found[name] = {"max_error": max_error, "exact": False, "splits": splits, "methods": methods_for(n)}
    return found


if __name__ == "__main__":
    main()
