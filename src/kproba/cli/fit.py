"""Fit a classifier to a table and save it to a file.

Columns may be numbers, categories, dates or text, with missing values; skrub encodes them. The kernel is
learnt from the rows; the error and log-loss out of fold say what to expect of new rows. For a large table, the encoding
is fitted on a sample, and all rows are read chunk by chunk, so memory does not grow with their number.

examples:
  kproba fit people.csv --target income --model income.kproba
  kproba fit sales.parquet --target bought --weight count --model m.kproba --estimator klr
  cat people.csv | kproba fit - --target income --model income.kproba --json
  kproba fit huge.parquet --target y --model m.kproba --checkpoint sums      (repeat to resume)
  kproba fit "parts/*.csv" --target y --model m.kproba --stream
"""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from ..data.mixed import columns_like_codes
from ..data.tables import LabelledTable, TableSource
from ..estimators import LSPC
from ..estimators._honest import ATTRIBUTES
from ..io import check_folder
from . import _frames, _models, _text
from ._training import RowSketch

NAME = "fit"
#: Results of the training rows, the most honest first: the key in --json, and the attribute and the words for it.
LEFT_OUT = {"out_of_fold": (ATTRIBUTES["oof"], "out of fold"), "leave_one_out": (ATTRIBUTES["loo"], "leave-one-out")}


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

    _refuse_early(args)
    table = _frames.opened(args.data, args.format, args.chunk_rows)
    _frames.refuse_overwriting("--model", args.model, table.files)
    _check_options(args, table)
    start = perf_counter()
    model, facts = (_fit_stream if _is_streamed(args, table) else _fit_whole)(args, table)
    facts |= {"seconds": perf_counter() - start, "model": args.model, **_chosen(model.classifier)}
    model.classifier.set_params(verbose=0)
    save(model, args.model)
    facts["bytes"] = os.path.getsize(args.model)
    _text.answer(args, facts, _summary(args, facts))


def _refuse_early(args) -> None:
    """Raise errors before a long fit that would otherwise come after it."""
    _frames.check_output("--model", args.model)
    if args.checkpoint is not None:
        check_folder(args.checkpoint, f"--checkpoint {args.checkpoint}")


def _is_streamed(args, table) -> bool:
    if table.format == "excel" and (args.stream or args.checkpoint):
        raise ValueError(
            f"{args.data}: Excel files cannot be read in chunks; save it as CSV to use --stream or --checkpoint."
        )
    return args.stream or args.checkpoint is not None or _frames.is_large(table)


def _check_options(args, table) -> None:
    """Raise an error for missing columns and invalid options before a long fit."""
    named = {"--weight": [args.weight] if args.weight else [], "--ignore": args.ignore}
    for option, names in named.items():
        for name in names:
            if name == args.target:
                raise ValueError(f"{option} {name}: this is the --target column.")
            if name not in table.columns:
                has = _frames.listing(table.columns)
                raise ValueError(f"{args.data}: there is no column {name!r} for {option}; it has {has}.")
    _frames.check_target(table.columns, args.target, args.data)
    if not _inputs(args, table):
        raise ValueError(f"{args.data}: there is no column besides {_frames.listing(_beside(args))} to predict from.")
    if args.sample_rows is not None and args.sample_rows < 1:
        raise ValueError(f"--sample-rows {args.sample_rows}: it must be at least 1.")


def _beside(args) -> list[str]:
    """Columns that are not inputs."""
    return [*args.ignore, *([args.weight] if args.weight else []), args.target]


def _inputs(args, table) -> list[str]:
    return [name for name in table.columns if name not in _beside(args)]


def _fit_whole(args, table) -> tuple[_models.TableModel, dict]:
    frame, y, dropped = _frames.split_target(table.whole(), args.target, args.data)
    _frames.report_skipped(args, dropped, args.target)
    _refuse_identifiers(args, len(np.unique(y)), len(y))
    X = frame[_inputs(args, table)]
    weight = None if args.weight is None else frame[args.weight].to_numpy(dtype=float)
    _remark_codes(args, X)
    prepared = _models.vectorizer()
    classifier, found = _best(args, prepared.fit_transform(X), y, weight)
    sketch = RowSketch(prepared)
    sketch.add(X, y)
    model = _models.TableModel(_models.behind(prepared, classifier), args.target, list(X.columns), sketch.finish())
    counts = {str(label): int(count) for label, count in zip(*np.unique(y, return_counts=True))}
    return model, _about(model, len(X), dropped, counts) | found


def _best(args, X, y, weight) -> tuple[Any, dict]:
    """The classifier with the smallest loss out of fold, or else by leave-one-out, and the losses of all candidates."""
    fitted = [each.fit(X, y, weight) for each in _models.contenders(args.estimator, X, **_options(args))]
    found = [_left_out(each, y, weight) for each in fitted]
    if len(fitted) == 1:
        return fitted[0], found[0]
    key = next(key for key in LEFT_OUT if all(key in about for about in found))
    losses = {type(each).__name__: about[key]["log_loss"] for each, about in zip(fitted, found)}
    best = int(np.argmin(list(losses.values())))
    listed = ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items())
    _text.remark(args, f"{LEFT_OUT[key][1]} log-loss: {listed}")
    return fitted[best], found[best] | {"compared": losses}


def _options(args) -> dict:
    return {"random_state": args.seed, "verbose": _text.wants_progress(args)}


def _fit_stream(args, table) -> tuple[_models.TableModel, dict]:
    classifier = _models.ESTIMATORS.get(args.estimator, LSPC)(**_options(args))
    needed = [name for name in table.columns if name not in args.ignore]
    settled = table.settled(needed, _text.wants_progress(args))
    rows = _frames.labelled_rows(args, settled, _inputs(args, table), args.target, args.data)
    _refuse_identifiers(args, len(rows.counts), rows.n_rows)
    prepared, n_sample = _prepared(args, rows)
    sketch = RowSketch(prepared)
    classifier.fit(TableSource(rows, prepared, args.weight, sketch.add), checkpoint=args.checkpoint)
    model = _models.TableModel(_models.behind(prepared, classifier), args.target, rows.columns, sketch.finish())
    counts = {str(label): count for label, count in sorted(rows.counts.items())}
    return model, _about(model, rows.n_rows, rows.n_missing, counts) | {"sample_rows": n_sample}


def _prepared(args, rows: LabelledTable):
    """The vectoriser, fitted on a sample that need not stay in memory, and the size of the sample."""
    sample = rows.sample(args.seed, args.sample_rows)
    _text.remark(args, f"fitting the encoding of the columns on {len(sample):,} of {rows.n_rows:,} rows")
    return _models.vectorizer().fit(sample), len(sample)


def _remark_codes(args, frame) -> None:
    """Say which integer columns may be codes; only the user knows."""
    if found := columns_like_codes(frame):
        listed = _frames.listing(found)
        _text.remark(args, f"{listed}: read as numbers; if these are codes, write them as words, such as c1 and c2")


def _refuse_identifiers(args, n_classes: int, n_rows: int) -> None:
    if n_classes > n_rows / 2 and n_classes > 1:
        raise ValueError(
            f"--target {args.target}: it has {n_classes:,} classes in {n_rows:,} rows, fewer than two rows per class; "
            "it looks like a numeric quantity or an identifier, not a class."
        )


def _about(model: _models.TableModel, n_rows: int, dropped: int, class_rows: dict[str, int]) -> dict:
    found = {"rows": n_rows, "rows_left_out": dropped, "columns": len(model.columns), "classes": list(class_rows)}
    return found | {"class_rows": class_rows, "kinds": _models.kinds_of(model.pipeline)}


def _left_out(classifier, y, weight) -> dict:
    """Error and log-loss of the training rows by each way of leaving them out that the classifier has."""
    found = {}
    for key, (attribute, _) in LEFT_OUT.items():
        proba = getattr(classifier, attribute, None)
        if proba is not None:
            error = np.average(classifier.classes_[proba.argmax(axis=1)] != y, weights=weight)
            loss = log_loss(y, proba, labels=classifier.classes_, sample_weight=weight)
            found[key] = {"error": float(error), "log_loss": float(loss)}
    return found


def _chosen(classifier) -> dict:
    names = {"kernel": "kernel_", "width": "width_", "ridge": "ridge_"}
    found = {name: getattr(classifier, attribute, None) for name, attribute in names.items()}
    kernel: Any = found.pop("kernel")
    return {"estimator": type(classifier).__name__, "kernel": kernel.name, **found, "centers": len(classifier.coef_)}


def _summary(args, facts: dict) -> str:
    kinds = ", ".join(f"{count} {word}" for word, count in facts.get("kinds", {}).items())
    shares = facts.get("class_rows") or dict.fromkeys(facts["classes"], "")
    classes = ", ".join(f"{_text.printable(label)} {count}".strip() for label, count in list(shares.items())[:8])
    more = f" and {len(shares) - 8} more" if len(shares) > 8 else ""
    data, target, model = map(_text.printable, (args.data, args.target, facts["model"]))
    lines = [
        f"{data}: {facts['rows']:,} rows, {facts['columns']} columns{f' ({kinds})' if kinds else ''}",
        f"{target}: {classes}{more}",
        f"{facts['estimator']} in {facts['seconds']:.1f} s: {facts['kernel']} kernel, {facts['centers']} centres",
    ]
    key = next((key for key in LEFT_OUT if key in facts), None)
    if key is not None:
        found, is_optimistic = facts[key], key == "leave_one_out"
        measured = f"error {_text.percent(found['error'])}, log-loss {found['log_loss']:.3f}"
        caveat = " (optimistic, since it selected the model)" if is_optimistic else ""
        lines.append(f"{LEFT_OUT[key][1]}: {measured}{caveat}")
    return "\n".join([*lines, f"wrote {model} ({facts['bytes'] / 1024:,.0f} kB)"])
