"""Fit a classifier to a table and keep it in a file.

Columns may be numbers, categories, dates or text, with gaps; skrub makes numbers of them. Kernel, width, ridge and the
calibration of the probabilities are chosen by leave-one-out.

examples:
  kproba fit people.csv --target income --model income.kproba
  kproba fit sales.parquet --target bought --weight count --model m.kproba --estimator klr
  cat people.csv | kproba fit - --target income --model income.kproba --json
  kproba fit huge.parquet --target y --model m.kproba --stream      (numbers alone, larger than memory)
"""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from . import _frames, _models, _text

NAME = "fit"


def add_options(command) -> None:
    _frames.add_data(command, "training table")
    command.add_argument("--target", required=True, help="column of the classes")
    _models.add_model(command, "file to keep the model in")
    command.add_argument("--weight", help="column of weights")
    command.add_argument("--ignore", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    command.add_argument("--estimator", choices=sorted(_models.ESTIMATORS), default="lspc", help="default: %(default)s")
    command.add_argument("--stream", action="store_true", help="read the file chunk by chunk: columns of numbers alone")
    command.add_argument("--checkpoint", help="folder where a fit from --stream keeps its sums, to go on from there")
    command.add_argument("--seed", type=int, default=0, help="default: %(default)s")


def run(args) -> None:
    from .. import save

    _refuse_early(args)
    streamed = args.stream or _frames.is_large(args.data)
    classifier = _models.ESTIMATORS[args.estimator](random_state=args.seed, verbose=_text.wants_progress(args))
    start = perf_counter()
    model, facts = (_fit_stream if streamed else _fit_table)(args, classifier)
    facts |= {"seconds": perf_counter() - start, "model": args.model, **_chosen(model.classifier)}
    model.classifier.set_params(verbose=0)
    save(model, args.model)
    facts["bytes"] = os.path.getsize(args.model)
    _text.answer(args, facts, _summary(args, facts))


def _refuse_early(args) -> None:
    """What would fail after a long fit fails before it."""
    folder = os.path.dirname(os.path.abspath(args.model))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"--model {args.model}: there is no folder {folder}.")
    if args.model == args.data:
        raise ValueError("--model names the file of the data; name another one.")


def _fit_table(args, classifier) -> tuple[_models.TableModel, dict]:
    frame = _frames.read(args.data, args.format)
    weight = _taken(frame, args.weight, args.data)
    frame = frame.drop(columns=[name for name in (*args.ignore, args.weight) if name in frame.columns])
    known = frame[args.target].notna().to_numpy() if args.target in frame.columns else slice(None)
    X, y, dropped = _frames.split_target(frame, args.target, args.data)
    if dropped:
        _text.remark(args, f"{dropped} row(s) without {args.target!r} left out")
    pipeline = _models.for_tables(classifier)
    name = pipeline.steps[-1][0]
    options = {} if weight is None else {f"{name}__sample_weight": weight[known]}
    pipeline.fit(X, y, **options)
    model = _models.TableModel(pipeline, args.target, list(X.columns))
    return model, _about(len(X), X.shape[1], y) | {"kinds": _models.kinds_of(pipeline)} | _left_out(classifier, y)


def _fit_stream(args, classifier) -> tuple[_models.TableModel, dict]:
    from .. import open_rows

    source = open_rows(args.data, target=args.target, weight=args.weight, format=_arrow_kind(args))
    classifier.fit(source, checkpoint=args.checkpoint)
    model = _models.TableModel(classifier, args.target, [str(name) for name in classifier.feature_names_in_])
    return model, {"rows": source.n_rows, "columns": source.n_features, "classes": list(classifier.classes_)}


def _arrow_kind(args) -> str | None:
    if args.data == "-":
        raise ValueError("--stream reads a file more than once, which standard input does not allow; name a file.")
    return args.format


def _taken(frame, column: str | None, path: str) -> np.ndarray | None:
    if column is None:
        return None
    if column not in frame.columns:
        raise ValueError(f"{path}: there is no column {column!r} for --weight.")
    return frame[column].to_numpy(dtype=float)


def _about(n: int, d: int, y: np.ndarray) -> dict:
    classes, counts = np.unique(y, return_counts=True)
    shares = {str(label): int(count) for label, count in zip(classes, counts)}
    return {"rows": n, "columns": d, "classes": list(shares), "class_rows": shares}


def _left_out(classifier, y) -> dict:
    """How the model does on rows that it did not see: leave-one-out."""
    proba = getattr(classifier, "loo_proba_", None)
    if proba is None:
        return {}
    error = float((classifier.classes_[proba.argmax(axis=1)] != y).mean())
    return {"leave_one_out": {"error": error, "log_loss": float(log_loss(y, proba, labels=classifier.classes_))}}


def _chosen(classifier) -> dict:
    names = {"kernel": "kernel_", "width": "width_", "ridge": "ridge_"}
    found = {name: getattr(classifier, attribute, None) for name, attribute in names.items()}
    kernel: Any = found.pop("kernel")
    return {"estimator": type(classifier).__name__, "kernel": kernel.name, **found, "centers": len(classifier.coef_)}


def _summary(args, facts: dict) -> str:
    kinds = ", ".join(f"{count} {word}" for word, count in facts.get("kinds", {}).items())
    shares = facts.get("class_rows") or dict.fromkeys(facts["classes"], "")
    classes = ", ".join(f"{label} {count}".strip() for label, count in list(shares.items())[:8])
    more = f" and {len(shares) - 8} more" if len(shares) > 8 else ""
    lines = [
        f"{args.data}: {facts['rows']:,} rows, {facts['columns']} columns{f' ({kinds})' if kinds else ''}",
        f"{args.target}: {classes}{more}",
        f"{facts['estimator']} in {facts['seconds']:.1f} s: {facts['kernel']} kernel, {facts['centers']} centres",
    ]
    if "leave_one_out" in facts:
        found = facts["leave_one_out"]
        lines.append(f"leave-one-out: error {_text.percent(found['error'])}, log-loss {found['log_loss']:.3f}")
    return "\n".join([*lines, f"wrote {facts['model']} ({facts['bytes'] / 1024:,.0f} kB)"])
