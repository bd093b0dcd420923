"""Fit a classifier to a table and save it to a file.

Columns may be numbers, categories, dates or text, with missing values; skrub encodes them. A table of the columns shows
what each is taken for and what looks odd. The kernel is learnt from the rows; the error and log-loss out of fold say
what to expect of new rows, beside those of always giving the same answer. For a large table, the encoding is fitted on
a sample, all rows are read chunk by chunk, and some are set aside to judge the model by.

examples:
  kproba fit people.csv --target income --model income.kproba
  kproba fit visits.csv --target ill --groups patient      (folds never divide a patient)
  kproba fit loans.csv --target default --order signed      (judged by the latest fifth of the loans)
  kproba fit people.csv --target income --seconds 20 --positive high --class-weight high=5
  kproba fit sales.parquet --target bought --weight count --model m.kproba --estimator klr
  cat people.csv | kproba fit - --target income --model income.kproba --json
  kproba fit huge.parquet --target y --model m.kproba --checkpoint sums      (repeat to resume)
"""

from __future__ import annotations

import os
from collections import Counter
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..data.mixed import columns_like_codes
from ..data.tables import LabelledTable, TableSource, row_weights
from ..estimators import LSPC
from ..estimators._honest import honest_probabilities, rows_with_probabilities
from ..features.plain_table import fitted
from ..io import check_folder
from ..pipelines import behind, vectorizer
from . import _columns, _frames, _models, _scores, _splits, _text
from ._budget import OutOfTime, time_limit
from ._dates import moments
from ._target import check_classes, class_weights
from ._training import RowSketch

#: How training rows are left out, the most honest first: the key in --json and the words for it.
LEFT_OUT = {"oof": ("out_of_fold", "out of fold"), "loo": ("leave_one_out", "leave-one-out")}
OPTIMISTIC = " (optimistic, since it selected the model)"


def add_options(command) -> None:
    _frames.add_data(command, "training table")
    command.add_argument("--target", required=True, help="column with the classes")
    _models.add_model(command, "model file to write")
    command.add_argument("--weight", help="column with row weights")
    command.add_argument("--ignore", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    command.add_argument(
        "--estimator",
        choices=[_models.AUTO, *sorted(_models.ESTIMATORS)],
        default=_models.AUTO,
        help="auto is lspc, or for small, mostly categorical tables the better of lspc and klr (default: %(default)s)",
    )
    command.add_argument("--ridge", type=float, help="regularisation strength (default: selected by leave-one-out)")
    command.add_argument(
        "--class-weight",
        nargs="+",
        metavar="WORD",
        help="balanced, or factors such as yes=5: rows of the class count that many times; shifts the probabilities",
    )
    command.add_argument("--positive", metavar="LABEL", help="class of interest (default: the rarer of two)")
    command.add_argument(
        "--seconds",
        type=float,
        metavar="N",
        help="time for the fit: a plain Gaussian kernel comes first, and is kept if a better one is not learnt in time",
    )
    _splits.add_options(command, "cross-validation")
    _splits.add_holdout(command)
    command.add_argument(
        "--stream",
        action="store_true",
        help="read chunk by chunk, as is done for tables above 256 MiB (compressed: 32 MiB)",
    )
    command.add_argument(
        "--sample-rows",
        type=int,
        metavar="N",
        help="rows of a streamed table to fit the encoding on (default: 50000, fewer with many columns)",
    )
    _frames.add_chunk_rows(command)
    command.add_argument("--checkpoint", help="folder in which a streamed fit saves its state, to resume from")
    command.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")


def run(args) -> None:
    from .. import save

    args.start, args.is_late = perf_counter(), False
    _refuse_early(args)
    table = _frames.opened(args, args.data)
    _frames.refuse_overwriting("--model", args.model, table.files)
    _check_options(args, table)
    model, facts = (_fit_stream if _is_streamed(args, table) else _fit_whole)(args, table)
    facts |= {"seconds": perf_counter() - args.start, "model": args.model, **_chosen(model.classifier)}
    model.classifier.set_params(verbose=0)
    save(model, args.model)
    facts["bytes"] = os.path.getsize(args.model)
    _text.answer(args, facts, _summary(args, facts))


def _refuse_early(args) -> None:
    """Raise errors before a long fit that would otherwise come after it."""
    _frames.check_output("--model", args.model)
    _splits.check_seed(args)
    if args.checkpoint is not None:
        check_folder(args.checkpoint, f"--checkpoint {args.checkpoint}")
    if args.ridge is not None and args.estimator == "surface":
        raise ValueError("--ridge: the surface estimator has none; use another --estimator.")
    if args.seconds is not None and not args.seconds > 0:
        raise ValueError(f"--seconds {args.seconds:g}: it must be more than 0.")


def _is_streamed(args, table) -> bool:
    if table.format == "excel" and (args.stream or args.checkpoint):
        raise ValueError(
            f"{args.data}: Excel files cannot be read in chunks; save it as CSV to use --stream or --checkpoint."
        )
    return args.stream or args.checkpoint is not None or _frames.is_large(table)


def _check_options(args, table) -> None:
    """Raise an error for missing columns and invalid options before a long fit."""
    named = {f"--{name}": [column] for name, column in _beside(args).items()} | {"--ignore": args.ignore}
    for option, names in named.items():
        for name in names:
            if name == args.target:
                raise ValueError(f"{option} {name}: this is the --target column.")
            _frames.check_column(table.columns, name, option, args.data)
    _frames.check_target(table.columns, args.target, args.data)
    if not _inputs(args, table):
        others = [*args.ignore, *_beside(args).values(), args.target]
        raise ValueError(f"{args.data}: there is no column besides {_frames.listing(others)} to predict from.")
    if args.sample_rows is not None and args.sample_rows < 1:
        raise ValueError(f"--sample-rows {args.sample_rows}: it must be at least 1.")


def _beside(args) -> dict[str, str]:
    """Columns with a role of their own, by option."""
    found = {name: getattr(args, name) for name in ("weight", "groups", "order")}
    return {name: column for name, column in found.items() if column is not None}


def _inputs(args, table) -> list[str]:
    others = {args.target, *args.ignore, *_beside(args).values()}
    return [name for name in table.columns if name not in others]


class Rows(NamedTuple):
    """Rows in memory: the input columns, the classes, and the weights and groups if there are any."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None

    def take(self, chosen: np.ndarray) -> Rows:
        weight, groups = (None if each is None else each[chosen] for each in (self.weight, self.groups))
        return Rows(self.X[chosen], self.y[chosen], weight, groups)


def _fit_whole(args, table) -> tuple[_models.TableModel, dict]:
    frame, y, dropped = _frames.split_target(table.whole(), args.target, args.data)
    _frames.report_skipped(args, dropped, args.target)
    counts = _counts(y)
    check_classes(args, counts)
    rule = _splits.rule_of(args, lambda: moments(frame[args.order]), len(y))
    held = np.zeros(len(y), dtype=bool) if rule is None else rule.holds(frame, 0)
    rows = _rows(args, frame, y, _inputs(args, table))
    _remark_codes(args, rows.X)
    train = rows.take(~held)
    if rule is not None:
        _splits.check_parts(args, _counts(train.y), _counts(y[held]))
    model, facts = _fit_rows(args, train, counts)
    if rule is not None:
        facts |= _held_out(model, [(rows.X[held], y[held])], rows.take(held).weight)
    return model, _about(model, len(y), dropped, counts) | facts


def _rows(args, frame, y, inputs: list[str]) -> Rows:
    weight = None if args.weight is None else _weights(args, frame[args.weight])
    return Rows(frame[inputs], y, weight, None if args.groups is None else _group_labels(args, frame[args.groups]))


def _weights(args, column) -> np.ndarray:
    weight = row_weights(column)
    wrong = np.flatnonzero(~(weight >= 0) | np.isinf(weight))
    if len(wrong):
        found = "missing values" if np.isnan(weight[wrong[0]]) else f"{weight[wrong[0]]:g}"
        raise ValueError(f"--weight {args.weight}: it has {found}; give every row a finite weight of at least 0.")
    return weight


def _group_labels(args, column) -> np.ndarray:
    if column.isna().any():
        raise ValueError(
            f"--groups {args.groups}: {int(column.isna().sum()):,} row(s) have no group; give each row one."
        )
    return column.astype(str).to_numpy(dtype=object)


def _fit_rows(args, train: Rows, counts: dict) -> tuple[_models.TableModel, dict]:
    _refuse_constant(args, train.X)
    prepared, numbers = fitted(vectorizer(), train.X)
    about, facts = _look_at_columns(args, prepared, train.X, train.y, counts)
    classifier, found = _best(args, numbers, train, list(counts), about["positive"])
    sketch = RowSketch(prepared)
    sketch.add(train.X, train.y)
    pipeline = behind(prepared, classifier)
    return _models.TableModel(pipeline, args.target, list(train.X.columns), sketch.finish(), about), facts | found


def _refuse_constant(args, X) -> None:
    if all(X[name].nunique(dropna=False) <= 1 for name in X.columns):
        raise ValueError(
            f"{args.data}: there is nothing to predict {args.target!r} from: {_frames.listing(X.columns)} "
            f"{'has' if X.shape[1] == 1 else 'have'} the same value in every row."
        )


def _look_at_columns(args, prepared, X, y, counts: dict) -> tuple[dict, dict]:
    """What a model remembers of the columns, and the table of the columns, which is shown before the fit begins."""
    kinds = _models.kinds_of_columns(prepared)
    found = _columns.overview(X, y, kinds, args.seed)
    _text.show(args, _columns.table(found) + "\n")
    about = {"positive": _scores.positive_class(args.positive, counts), "profile": _columns.profile(X, kinds)}
    return about, {"column_table": [each._asdict() for each in found]}


def _best(args, X, train: Rows, classes: list, positive) -> tuple[Any, dict]:
    """The classifier with the smallest loss out of fold, or else by leave-one-out, and the losses of all candidates."""
    options = _options(args, classes)
    models = [_fitted(args, each, X, train) for each in _models.contenders(args.estimator, X, **options)]
    found = [_left_out(each, train, positive) for each in models]
    if len(models) == 1:
        return models[0], found[0]
    key, words = next(pair for pair in LEFT_OUT.values() if all(pair[0] in about for about in found))
    losses = {type(each).__name__: about[key]["log_loss"] for each, about in zip(models, found)}
    best = int(np.argmin(list(losses.values())))
    listed = ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items())
    _text.remark(args, f"{words} log-loss: {listed}")
    return models[best], found[best] | {"compared": losses}


def _fitted(args, classifier, X, train: Rows):
    """The fitted classifier; with --seconds, one with a plain kernel if there is no time to learn a better one."""
    rows = {"sample_weight": train.weight, "groups": train.groups}
    if args.seconds is None:
        return classifier.fit(X, train.y, **rows)
    plain = clone(classifier).set_params(kernel="gaussian").fit(X, train.y, **rows)
    try:
        with time_limit(args.start + args.seconds - perf_counter()):
            return classifier.fit(X, train.y, **rows)
    except OutOfTime:
        if not args.is_late:  # two classifiers may have been compared
            _text.remark(
                args, f"{args.seconds:g} s are over: keeping the Gaussian kernel; more time may give a better model"
            )
        args.is_late = True
        return plain


def _options(args, classes) -> dict:
    given = {"random_state": args.seed, "verbose": _text.wants_progress(args)}
    given |= {} if args.ridge is None else {"ridge": args.ridge}
    weights = class_weights(args.class_weight, classes)
    return given | ({} if weights is None else {"class_weight": weights})


def _fit_stream(args, table) -> tuple[_models.TableModel, dict]:
    needed = [name for name in table.columns if name not in args.ignore]
    settled = table.settled(needed, _text.wants_progress(args))
    rows = _frames.labelled_rows(args, settled, _inputs(args, table), args.target, args.data)
    check_classes(args, rows.counts)
    _splits.check_streamed_groups(args, rows.n_rows)
    train, held = _splits.divided(args, rows)
    counts = dict(sorted(rows.counts.items()))
    model, facts = _fit_source(args, train, counts)
    if held is not None:
        facts |= _held_out(model, ((frame[rows.columns], y) for frame, y in held.frames(title="judging")))
    return model, _about(model, rows.n_rows, rows.n_missing, counts) | facts


def _fit_source(args, train: LabelledTable, counts: dict) -> tuple[_models.TableModel, dict]:
    prepared, sample, y = _prepared(args, train)
    about, facts = _look_at_columns(args, prepared, sample, y, counts)
    classifier = _models.ESTIMATORS.get(args.estimator, LSPC)(**_options(args, list(counts)))
    if args.seconds is not None:
        classifier.set_params(kernel="gaussian")
        _text.remark(
            args, "--seconds: a streamed fit uses a Gaussian kernel instead of learning one, and is not cut off"
        )
    sketch = RowSketch(prepared)
    classifier.fit(TableSource(train, prepared, args.weight, sketch.add), checkpoint=args.checkpoint)
    pipeline = behind(prepared, classifier)
    facts |= {"sample_rows": len(sample)}
    found = honest_probabilities(classifier)
    if args.weight is None and args.groups is None and found is not None and len(found.proba) == train.n_rows:
        facts |= _left_out(classifier, Rows(None, train.labels(), None, None), about["positive"])
    return _models.TableModel(pipeline, args.target, train.columns, sketch.finish(), about), facts


def _remark_codes(args, frame) -> None:
    """Say which integer columns may be codes; only the user knows."""
    if found := columns_like_codes(frame):
        listed = _frames.listing(found)
        _text.remark(args, f"{listed}: read as numbers; if these are codes, write them as words, such as c1 and c2")


def _prepared(args, rows: LabelledTable):
    """The vectoriser, fitted on a sample that need not stay in memory, and the sample with its classes."""
    sample, y = rows.labelled_sample(args.seed, args.sample_rows)
    _text.remark(args, f"fitting the encoding of the columns on {len(sample):,} of {rows.n_rows:,} rows")
    _refuse_constant(args, sample)
    return fitted(vectorizer(), sample)[0], sample, y


def _counts(y: np.ndarray) -> dict[Any, int]:
    """The number of rows of each class, in the order of the classes."""
    return dict(sorted(Counter(y.tolist()).items()))


def _about(model: _models.TableModel, n_rows: int, dropped: int, counts: dict) -> dict:
    class_rows = {str(label): int(count) for label, count in counts.items()}
    found = {"rows": n_rows, "rows_left_out": dropped, "columns": len(model.columns), "classes": list(class_rows)}
    return found | {"class_rows": class_rows, "kinds": _models.kinds_of(model.pipeline)}


def _left_out(classifier, train: Rows, positive) -> dict:
    """The scores of the training rows by each way of leaving them out that the classifier has."""
    found = {}
    for name, (key, _) in LEFT_OUT.items():
        proba = getattr(classifier, f"{name}_proba_", None)
        if proba is not None:
            found[key] = _scores_of_known(train, proba, classifier.classes_, positive)
    return found


def _scores_of_known(train: Rows, proba: np.ndarray, classes, positive) -> dict:
    """The scores of the rows that have probabilities; of many rows, these are only some."""
    known = rows_with_probabilities(proba)
    weight = None if train.weight is None else np.asarray(train.weight)[known]
    found = _scores.scores(np.asarray(train.y)[known], proba[known], classes, positive, weight)
    return found if len(known) == len(proba) else found | {"rows": len(known)}


def _held_out(model: _models.TableModel, parts, weight=None) -> dict:
    """The scores of rows that were set aside."""
    judged = [(y, model.predict_proba(X)) for X, y in parts]
    y, proba = (np.concatenate(each) for each in zip(*judged))
    found = _scores.scores(y, proba, model.classes_, (model.about or {}).get("positive"), weight)
    return {"held_out": found | {"rows": len(y)}}


def _chosen(classifier) -> dict:
    names = {"kernel": "kernel_", "width": "width_", "ridge": "ridge_"}
    found = {name: getattr(classifier, attribute, None) for name, attribute in names.items()}
    kernel: Any = found.pop("kernel")
    return {"estimator": type(classifier).__name__, "kernel": kernel.name, **found, "centers": len(classifier.coef_)}


def _summary(args, facts: dict) -> str:
    kinds = ", ".join(f"{count} {word}" for word, count in facts["kinds"].items())
    shares = list(facts["class_rows"].items())
    classes = ", ".join(f"{_text.printable(label)} {count}" for label, count in shares[:8])
    more = f" and {len(shares) - 8} more" if len(shares) > 8 else ""
    data, target, model = map(_text.printable, (args.data, args.target, facts["model"]))
    lines = [
        f"{data}: {facts['rows']:,} rows, {facts['columns']} columns{f' ({kinds})' if kinds else ''}",
        f"{target}: {classes}{more}",
        f"{facts['estimator']} in {facts['seconds']:.1f} s: {facts['kernel']} kernel, {facts['centers']} centres",
        *_judgement(facts),
        f"wrote {model} ({facts['bytes'] / 1024:,.0f} kB)",
    ]
    return "\n".join(lines)


def _judgement(facts: dict) -> list[str]:
    """The most honest scores beside the class shares, and a remark if they are no better."""
    ways = {"held_out": "set aside", **dict(LEFT_OUT.values())}
    key = next((key for key in ways if key in facts), None)
    if key is None:
        return []
    found = facts[key]
    first, second = _scores.in_words(found)
    words = f"{found['rows']:,} rows {ways[key]}" if "rows" in found else ways[key]
    lines = [f"{words}: {first}{OPTIMISTIC if key == 'leave_one_out' else ''}", f"  {second}"]
    if found["log_loss"] >= found["class_shares"]["log_loss"]:
        lines.append("  no better than the class shares: these columns say little about new rows")
    return lines
