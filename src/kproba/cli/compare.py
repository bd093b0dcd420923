"""Compare kproba with other installed classifiers on the same folds of a table.

All use their default settings and columns encoded by skrub, except CatBoost, which handles categories itself.

examples:
  kproba compare people.csv --target income
  kproba compare people.csv --target income --out comparison.html
  kproba compare visits.csv --target ill --groups patient
  kproba compare people.csv --target income --folds 10 --only "kproba LSPC" CatBoost --json
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .. import LSPC, tabular
from ..io import AtomicFile
from ..messages import did_you_mean
from ..report.measures import MEASURES
from . import _frames, _scores, _splits, _text
from ._comparison import Comparison, Result, page
from ._dates import moments
from ._target import check_classes


def add_options(command) -> None:
    _frames.add_data(command, "table")
    command.add_argument("--target", required=True, help="column with the classes")
    command.add_argument("--folds", type=int, default=5, help="number of folds (default: %(default)s)")
    command.add_argument("--only", nargs="+", metavar="NAME", help="only these classifiers, named as in the results")
    command.add_argument("--ignore", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    command.add_argument("--positive", metavar="LABEL", help="class of interest (default: the rarer of two)")
    command.add_argument("--out", metavar="PAGE", help="HTML page to write, with intervals of the paired differences")
    _splits.add_options(command, "a fold")
    command.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")


def run(args) -> None:
    if args.out is not None:
        _frames.check_output("--out", args.out)
    _splits.check_seed(args)
    X, y, folds = _read(args)
    classes, counts = np.unique(y, return_counts=True)
    positive = _scores.positive_class(args.positive, dict(zip(classes.tolist(), counts)))
    found, rows = {}, np.concatenate([test for _, test in folds])
    methods = _wanted(contenders(args.seed), args.only)
    for name, fit in methods.items():
        proba, seconds = _probabilities(fit, X, y, folds)
        found[name] = Result(proba[rows], _scores.measures(y[rows], proba[rows], classes, positive) | seconds)
        about = found[name].measures
        _text.remark(args, f"{name}: log-loss {about['log_loss']:.4f}, {about['fit_seconds']:.2f} s per fit")
    _answer(args, Comparison(args.data, args.target, classes, y[rows], len(folds), found, positive))


def _read(args) -> tuple[Any, np.ndarray, list]:
    """The input columns, the classes and the folds: pairs of the rows to fit on and the rows to judge by."""
    table = _frames.opened(args, args.data)
    beside = {f"--{name}": getattr(args, name) for name in ("groups", "order")}
    for option, name in [*beside.items(), *(("--ignore", name) for name in args.ignore)]:
        if name is not None:
            _frames.check_column(table.columns, name, option, args.data)
    frame, y, dropped = _frames.split_target(table.whole(), args.target, args.data)
    _frames.report_skipped(args, dropped, args.target)
    check_classes(args, dict(zip(*(each.tolist() for each in np.unique(y, return_counts=True)))))
    folds = _folds(args, frame, y)
    return frame.drop(columns=list({*args.ignore, *filter(None, beside.values())})), y, folds


def _folds(args, frame, y) -> list:
    """Stratified folds; folds of whole groups; or, in an order, each part of the rows after all before it."""
    if args.order is not None:
        return _later_parts(args, moments(frame[args.order]), y)
    _check_folds(y, args.folds)
    options = {"shuffle": True, "random_state": args.seed}
    if args.groups is None:
        return list(StratifiedKFold(args.folds, **options).split(frame, y))
    groups = frame[args.groups].astype(str)
    if groups.nunique() < args.folds:
        raise ValueError(
            f"--folds {args.folds}: --groups {args.groups} has {groups.nunique()} group(s); use fewer folds."
        )
    return _checked(args, list(StratifiedGroupKFold(args.folds, **options).split(frame, y, groups)), y)


def _later_parts(args, times: np.ndarray, y) -> list:
    order = np.argsort(np.where(np.isnan(times), -np.inf, times), kind="stable")
    if args.folds < 2 or len(y) <= args.folds:
        raise ValueError(f"--folds {args.folds}: it must be at least 2 and less than the number of rows, {len(y):,}.")
    parts = np.array_split(order, args.folds + 1)
    return _checked(args, [(np.concatenate(parts[: k + 1]), parts[k + 1]) for k in range(args.folds)], y)


def _checked(args, folds: list, y) -> list:
    """Raise an error if a model would not see all classes."""
    n_classes = len(np.unique(y))
    if any(len(np.unique(y[train])) < n_classes for train, _ in folds):
        raise ValueError(f"--folds {args.folds}: the rows of a fit lack one of the classes; use fewer folds.")
    return folds


def _answer(args, compared: Comparison) -> None:
    best, *_ = ranked = compared.ranked()
    text = _table(compared, ranked)
    text += f"\n\n{best}:\n{_scores.confusion_table(compared.classes, compared.found[best].measures['confusion'])}"
    if args.out is not None:
        with AtomicFile(args.out) as file:
            file.write(page(compared).encode("utf-8"))
        text += f"\n\nwrote {_text.printable(args.out)}"
    facts = {"rows": len(compared.y), "folds": compared.n_folds, "classes": compared.classes}
    facts |= {"methods": {name: compared.found[name].measures for name in ranked}}
    facts |= {"differences": {name: interval.__dict__ for name, interval in compared.differences().items()}}
    _text.answer(args, facts | ({} if args.out is None else {"page": args.out}), text)


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
        options = {"random_state": seed, "verbose": -1}
        found["LightGBM"] = _behind_vectorizer(lambda: import_module("lightgbm").LGBMClassifier(**options))
    if find_spec("catboost"):
        found["CatBoost"] = lambda X, y: _catboost(X, y, seed)
    return found


def _behind_vectorizer(make: Callable) -> Callable:
    return lambda X, y: tabular(make()).fit(X, y)


def _scaled(make: Callable) -> Callable:
    return lambda X, y: tabular(make_pipeline(StandardScaler(), make())).fit(X, y)


def _catboost(X, y, seed: int) -> SimpleNamespace:
    """CatBoost with its defaults on the original frame: all columns that are not numeric are categories."""
    words = [name for name in X.columns if X[name].dtype.kind not in "iufb"]

    def read(X):
        X = X.copy(deep=False)
        for name in words:
            X[name] = X[name].astype(object).where(X[name].notna(), "").astype(str)
        return X

    options = {"verbose": 0, "random_seed": seed, "allow_writing_files": False}
    model = import_module("catboost").CatBoostClassifier(**options).fit(read(X), y, cat_features=words)
    return SimpleNamespace(predict_proba=lambda X: model.predict_proba(read(X)))


def _wanted(methods: dict[str, Callable], only) -> dict[str, Callable]:
    unknown = [name for name in only or () if name not in methods]
    if unknown:
        hint = did_you_mean(unknown[0], methods)
        raise ValueError(f"--only {unknown[0]}: not installed or not known{hint}; use {_frames.listing(methods)}.")
    return {name: methods[name] for name in only or methods}


def _check_folds(y, folds: int) -> None:
    classes, counts = np.unique(y, return_counts=True)
    if folds < 2:
        raise ValueError(f"--folds {folds}: it must be at least 2.")
    if counts.min() < folds:
        few = classes.tolist()[np.argmin(counts)]
        raise ValueError(
            f"--folds {folds}: the class {few!r} has {counts.min()} row(s), but every fold needs one; use fewer folds, "
            "or leave the class out."
        )


def _probabilities(fit: Callable, X, y, folds) -> tuple[np.ndarray, dict[str, float]]:
    """The probabilities of all rows that are judged, each by a model that was not fitted on it, and the times."""
    proba, seconds, predicting = np.full((len(y), len(np.unique(y))), np.nan), [], 0.0
    for train, test in folds:
        start = perf_counter()
        model = fit(X.iloc[train], y[train])
        seconds.append(perf_counter() - start)
        start = perf_counter()
        proba[test] = model.predict_proba(X.iloc[test])
        predicting += perf_counter() - start
    return proba, {"fit_seconds": float(np.median(seconds)), "predict_seconds": predicting}


def _table(compared: Comparison, ranked: list[str]) -> str:
    shown = ("log_loss", "brier", "calibration_error", *_scores.DECISIONS)
    rows = [
        [name, _text.percent(f["error"]), *(f"{f[each]:.4f}" for each in shown), f"{f['fit_seconds']:.2f}"]
        for name, f in ((name, compared.found[name].measures) for name in ranked)
    ]
    names = [*MEASURES.values(), *_scores.DECISIONS.values()]
    note = f"\nAUC, average precision and F1 {_scores.averaged(compared.positive).strip('()')}"
    return _text.columns([f"{compared.n_folds} folds", *names, "s per fit"], rows) + note
