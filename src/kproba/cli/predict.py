"""Predict the probabilities of new rows by a model that was kept.

The answer has a column of the prediction and one of the probability of each class. Rows are read, predicted and written
chunk by chunk: memory does not grow with them, but for Excel files.

examples:
  kproba predict new.csv --model income.kproba --out answers.csv
  kproba predict new.csv --model income.kproba --keep id name > answers.csv
  cat new.csv | kproba predict - --model income.kproba
  kproba predict huge.parquet --model m.kproba --out answers.parquet --keep id
"""

from __future__ import annotations

import numpy as np

from ..data.files import SEPARATORS
from ..data.tables import TEXT, Table
from . import _frames, _models, _text

NAME = "predict"


def add_options(command) -> None:
    _frames.add_data(command, "table of new rows")
    _models.add_model(command, "file that kproba fit wrote")
    command.add_argument("--out", default="-", help=".csv, .parquet, .arrow or .xlsx file (default: standard output)")
    command.add_argument("--keep", nargs="+", default=[], metavar="COLUMN", help="columns of the data to keep in front")
    _frames.add_chunk_rows(command)


def run(args) -> None:
    if args.json and args.out == "-":
        raise ValueError("--json is for what the command says of itself; write the predictions to a file by --out.")
    _frames.check_table_output("--out", args.out)
    model = _models.load(args.model)
    args.keep = list(dict.fromkeys(args.keep))
    table = _kept(args, model, model.opened(args, args.data))
    _frames.refuse_overwriting("--out", args.out, (*table.files, args.model))
    n_rows, columns = 0, list(dict.fromkeys([*model.columns, *args.keep]))
    with _frames.writing(args.out) as write:
        for frame in table.frames(columns, _text.wants_progress(args), NAME):
            write(_answers(args, model, frame))
            n_rows += len(frame)
        if not n_rows:
            raise ValueError(f"{args.data}: it has no rows.")
    if args.out != "-":
        _text.answer(args, {"rows": n_rows, "out": args.out}, f"wrote {n_rows:,} rows to {args.out}")


def _kept(args, model: _models.TableModel, table: Table) -> Table:
    """The same table, with the columns to keep as they stand in a text file, or else of one type throughout."""
    lacking = [name for name in args.keep if name not in table.columns]
    if lacking:
        raise ValueError(f"{args.data}: there is no column {lacking[0]!r} for --keep.")
    answers = {"prediction", *(f"proba_{label}" for label in model.classes)}
    taken = [name for name in args.keep if name in answers]
    if taken:
        raise ValueError(f"--keep {taken[0]}: the answers have a column of that name; rename it in the data.")
    others = [name for name in args.keep if name not in table.types]
    if not others:
        return table
    is_text = args.out == "-" or _frames.kind_of(args.out, None) in SEPARATORS
    if is_text and table.format in SEPARATORS:
        return table.typed(dict.fromkeys(others, TEXT))
    return table.settled(others)


def _answers(args, model: _models.TableModel, frame):
    proba = model.predict_proba(frame)
    answers = frame[args.keep].reset_index(drop=True)
    answers["prediction"] = np.asarray(model.classes)[proba.argmax(axis=1)]
    for label, column in zip(model.classes, proba.T):
        answers[f"proba_{label}"] = column
    return answers
