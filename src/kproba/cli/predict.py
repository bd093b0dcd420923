"""Predict the probabilities of new rows by a model that was kept.

The answer has a column of the prediction and one of the probability of each class.

examples:
  kproba predict new.csv --model income.kproba --out answers.csv
  kproba predict new.csv --model income.kproba --keep id name > answers.csv
  cat new.csv | kproba predict - --model income.kproba
  kproba predict huge.parquet --model m.kproba --out answers.parquet --stream
"""

from __future__ import annotations

import os
from importlib import import_module

import numpy as np

from . import _frames, _models, _text

NAME = "predict"


def add_options(command) -> None:
    _frames.add_data(command, "table of new rows")
    _models.add_model(command, "file that kproba fit wrote")
    command.add_argument("--out", default="-", help=".csv, .parquet, .arrow or .xlsx file (default: standard output)")
    command.add_argument("--keep", nargs="+", default=[], metavar="COLUMN", help="columns of the data to keep in front")
    command.add_argument(
        "--stream", action="store_true", help="read and write chunk by chunk: columns of numbers alone"
    )


def run(args) -> None:
    if args.json and args.out == "-":
        raise ValueError("--json is for what the command says of itself; write the predictions to a file by --out.")
    if (
        args.out != "-"
        and os.path.exists(args.out)
        and os.path.samefile(args.out, args.data if args.data != "-" else args.model)
    ):
        raise ValueError(f"--out {args.out} is the file that is read; name another one.")
    model = _models.load(args.model)
    if args.stream or _frames.is_large(args.data):
        n = _stream(args, model)
    else:
        parts = [_answers(args, model, frame) for frame in _frames.chunks(args.data, args.format)]
        found = import_module("pandas").concat(parts, ignore_index=True)
        _frames.write(found, args.out)
        n = len(found)
    if args.out != "-":
        _text.answer(args, {"rows": n, "out": args.out}, f"wrote {n:,} rows to {args.out}")


def _answers(args, model: _models.TableModel, frame):
    lacking = [name for name in args.keep if name not in frame.columns]
    if lacking:
        raise ValueError(f"{args.data}: there is no column {lacking[0]!r} for --keep.")
    proba = model.predict_proba(frame, args.data)
    answers = frame[args.keep].reset_index(drop=True)
    answers["prediction"] = np.asarray(model.classes)[proba.argmax(axis=1)]
    for label, column in zip(model.classes, proba.T):
        answers[f"proba_{label}"] = column
    return answers


def _stream(args, model: _models.TableModel) -> int | None:
    from .. import open_rows, write_probabilities

    if args.out == "-" or args.data == "-" or args.keep:
        raise ValueError("--stream goes from a file to a file: name both, without --keep.")
    source = open_rows(args.data, columns=model.columns, format=args.format)
    write_probabilities(model.pipeline, source, args.out, verbose=_text.wants_progress(args))
    return source.n_rows
