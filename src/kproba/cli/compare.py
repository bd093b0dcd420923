"""Compare kproba with other installed classifiers on the same folds of a table.

All use their default settings and columns encoded by skrub, except CatBoost, which handles categories itself.

examples:
  kproba compare people.csv --target income
  kproba compare people.csv --target income --folds 10 --only "kproba LSPC" CatBoost --json
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .. import LSPC
from ..data.labels import label_codes
from ..report.measures import MEASURES, measured
from . import _frames, _models, _text


def add_options(command) -> None:
    _frames.add_data(command, "table")
    command.add_argument("--target", required=True, help="column with the classes")
    command.add_argument("--folds", type=int, default=5, help="number of folds (default: %(default)s)")
    command.add_argument("--only", nargs="+", metavar="NAME", help="only these classifiers, named as in the results")
    command.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")


def run(args) -> None:
    X, y, dropped = _frames.split_target(_frames.opened(args.data, args.format).whole(), args.target, args.data)
    _frames.report_skipped(args, dropped, args.target)
    _check_folds(y, args.folds)
    methods = _wanted(contenders(args.seed), args.only)
    folds = list(StratifiedKFold(args.folds, shuffle=True, random_state=args.seed).split(X, y))
    found = {}
    for name, fit in methods.items():
        found[name] = _measured(fit, X, y, folds)
        _text.remark(
            args, f"{name}: log-loss {found[name]['log_loss']:.4f}, {found[name]['fit_seconds']:.2f} s per fit"
        )
    ranked = dict(sorted(found.items(), key=lambda item: item[1]["log_loss"]))
    _text.answer(args, {"rows": len(y), "folds": args.folds, "methods": ranked}, _table(ranked, args))


def contenders(seed: int) -> dict[str, Callable]:
    """Name -> a function (X, y) that returns a model fitted on a frame."""
    found = {
        "kproba LSPC": _behind_vectorizer(lambda: LSPC(random_state=seed)),
        "logistic regression": _scaled(lambda: LogisticRegression(max_iter=2000)),
        "calibrated SVC": _scaled(lambda: CalibratedClassifierCV(SVC(), ensemble=False)),
        "random forest": _behind_vectorizer(lambda: RandomForestClassifier(300, n_jobs=-1, random_state=seed)),
        "hist gradient boosting": _behind_vectorizer(lambda: HistGradientBoostingClassifier(random_state=seed)),
    }
    if find_spec("lightgbm"):
        found["LightGBM"] = _behind_vectorizer(lambda: _lightgbm(seed))
    if find_spec("catboost"):
        found["CatBoost"] = lambda X, y: _CatBoost(seed).fit(X, y)
    return found


def _behind_vectorizer(make: Callable) -> Callable:
    return lambda X, y: _models.for_tables(make()).fit(X, y)


def _scaled(make: Callable) -> Callable:
    return lambda X, y: _models.for_tables(make_pipeline(StandardScaler(), make())).fit(X, y)


def _lightgbm(seed: int):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, verbose=-1)


class _CatBoost:
    """CatBoost with its defaults on the original frame: all columns that are not numeric are categories."""

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, X, y):
        from catboost import CatBoostClassifier

        self.words = [name for name in X.columns if X[name].dtype.kind not in "iufb"]
        self.model = CatBoostClassifier(verbose=0, random_seed=self.seed, allow_writing_files=False)
        self.model.fit(self._read(X), y, cat_features=self.words)
        self.classes_ = self.model.classes_
        return self

    def _read(self, X):
        X = X.copy(deep=False)
        for name in self.words:
            X[name] = X[name].astype(object).where(X[name].notna(), "").astype(str)
        return X

    def predict_proba(self, X) -> np.ndarray:
        return self.model.predict_proba(self._read(X))


def _wanted(methods: dict[str, Callable], only) -> dict[str, Callable]:
    unknown = [name for name in only or () if name not in methods]
    if unknown:
        raise ValueError(f"--only {unknown[0]}: not installed or not known; use {_frames.listing(methods)}.")
    return {name: methods[name] for name in only or methods}


def _check_folds(y, folds: int) -> None:
    classes, counts = np.unique(y, return_counts=True)
    if folds < 2:
        raise ValueError(f"--folds {folds}: it must be at least 2.")
    if counts.min() < folds:
        few = classes[np.argmin(counts)]
        raise ValueError(
            f"--folds {folds}: the class {few!r} has {counts.min()} row(s), but every fold needs one; use fewer folds, "
            "or leave the class out."
        )


def _measured(fit: Callable, X, y, folds) -> dict[str, float]:
    """The measures of the out-of-fold probabilities of all rows."""
    classes = np.unique(y)
    proba, seconds, predicting = np.empty((len(y), len(classes))), [], 0.0
    for train, test in folds:
        start = perf_counter()
        model = fit(X.iloc[train], y[train])
        seconds.append(perf_counter() - start)
        start = perf_counter()
        proba[test] = model.predict_proba(X.iloc[test])
        predicting += perf_counter() - start
    return measures(y, proba, classes) | {"fit_seconds": float(np.median(seconds)), "predict_seconds": predicting}


def measures(y, proba, classes) -> dict[str, float]:
    """The measures of the report; the calibration error by its whole name."""
    found = measured(label_codes(y, classes), np.asarray(proba, dtype=np.float64))
    return {"calibration_error" if name == "calibration" else name: value for name, value in found.items()}


def _table(ranked: dict[str, dict], args) -> str:
    rows = [
        [name, _text.percent(f["error"]), *(f"{f[each]:.4f}" for each in ("log_loss", "brier", "calibration_error")),
         f"{f['fit_seconds']:.2f}"]
        for name, f in ranked.items()
    ]  # fmt: skip
    return _text.columns([f"{args.folds} folds", *MEASURES.values(), "s per fit"], rows)
