"""Write a page about a model: one HTML file that works offline.

How good the probabilities are, where they are wrong, which rows are doubtful, and what it costs to leave these out.

examples:
  kproba report test.csv --model income.kproba --out report.html
  kproba report test.csv --model income.kproba --train people.csv      (with a logistic regression beside it)
  kproba report people.csv --model income.kproba      (the training table itself: by leave-one-out, optimistic)
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from ..data.files import SEPARATORS
from ..data.tables import TEXT, LabelledTable
from ..report.facts import HELD_OUT, LEAVE_ONE_OUT
from . import _frames, _models, _text

NAME = "report"


def add_options(command) -> None:
    _frames.add_data(command, "table with the classes that the page is about")
    _models.add_model(command, "file that kproba fit wrote")
    command.add_argument("--target", help="column of the classes, if it is not named as in the training table")
    command.add_argument(
        "--train", help="training table, for the base rates and a logistic regression beside the model"
    )
    command.add_argument("--out", default="report.html", help="page to write (default: %(default)s)")
    command.add_argument("--title", help="default: the name of the data")
    _frames.add_chunk_rows(command)


def run(args) -> None:
    from .. import write_report

    model = _models.load(args.model)
    read = [args.data, args.model, *([args.train] if args.train else [])]
    _frames.refuse_overwriting("--out", args.out, read)
    rows = labelled(model, args.data, args)
    train: dict = {}
    if args.train:
        known = labelled(model, args.train, args, as_training=True)
        train = {"X_train": known.X, "y_train": known.y}
    title = args.title or os.path.basename(args.data)
    write_report(model.pipeline, rows.X, rows.y, args.out, on=rows.on, names=model.columns, title=title, **train)
    n_rows = len(rows.y)
    _text.answer(args, {"rows": n_rows, "on": rows.on, "report": args.out}, f"wrote {args.out} about {n_rows:,} rows")


class Judged(NamedTuple):
    """Rows to judge a model by: the columns it reads, in memory unless they are large, their classes, and how."""

    X: Any
    y: np.ndarray
    on: str


def labelled(model: _models.TableModel, path: str, args, as_training: bool = False) -> Judged:
    """The rows of a table whose classes are known; those that the model was fitted on are judged by leave-one-out."""
    target = args.target or model.target
    if not target:
        raise ValueError("--target is needed: the model does not know the name of the column that it predicts.")
    table = model.opened(args, path)
    _frames.check_target(table.columns, target, path)
    if table.format in SEPARATORS and model.classes.dtype.kind not in "iufb":
        table = table.typed({target: TEXT})
    rows = LabelledTable.of(table, model.columns, target, _text.wants_progress(args))
    if not rows.n_rows:
        raise ValueError(f"{path}: the column {target!r} is empty in every row.")
    if rows.n_missing:
        _text.remark(args, f"{path}: {rows.n_missing} row(s) without {target!r} left out")
    unknown = sorted(set(rows.counts) - set(model.classes.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"{path}: {target!r} has the class {unknown[0]!r}, which the model does not know; it knows "
            f"{_frames.listing(model.classes)}."
        )
    on = HELD_OUT
    if not as_training and target == model.target and model.saw(table):
        on = LEAVE_ONE_OUT
        _text.remark(args, f"{path}: the model was fitted on these rows: figures are by leave-one-out, which is optimistic")
    return Judged(rows if _frames.is_large(table) else rows.whole(), rows.labels(), on)
