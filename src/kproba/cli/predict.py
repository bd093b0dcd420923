"""Predict the probabilities of new rows with a saved model.

The output has a column with the prediction and one with the probability of each class. With --reasons 3 it also names
the three columns that moved the score of the prediction most, with their values and contributions. Rows are read,
predicted and written chunk by chunk, so memory does not grow with their number, except for Excel files.

examples:
  kproba predict new.csv --model income.kproba --out answers.csv
  kproba predict new.csv --model income.kproba --keep id name > answers.csv
  kproba predict new.csv --model income.kproba --reasons 3
  cat new.csv | kproba predict - --model income.kproba
  kproba predict huge.parquet --model m.kproba --out answers.parquet --keep id
"""

import numpy as np

from ..data.formats import SEPARATORS
from ..data.kinds import TEXT
from ..data.tables import Table
from . import _frames, _models, _text
from ._columns import NewRows


def add_options(command) -> None:
    _frames.add_data(command, "table of new rows")
    _models.add_model(command, "model file written by kproba fit")
    command.add_argument("--out", default="-", help=".csv, .parquet, .arrow or .xlsx file (default: standard output)")
    command.add_argument(
        "--keep", nargs="+", default=[], metavar="COLUMN", help="columns of the data to copy to the output"
    )
    command.add_argument(
        "--reasons", type=int, default=0, metavar="N", help="add the N columns that moved each prediction most"
    )
    _frames.add_chunk_rows(command)


def run(args) -> None:
    if args.json and args.out == "-":
        raise ValueError("--json prints a summary, not the predictions; write those to a file with --out.")
    if args.reasons < 0:
        raise ValueError(f"--reasons {args.reasons}: the number of reasons cannot be negative.")
    _frames.check_table_output("--out", args.out)
    model = _models.load(args.model)
    args.keep = list(dict.fromkeys(args.keep))
    table = _kept(args, model, model.opened(args, args.data))
    _frames.refuse_overwriting("--out", args.out, (*table.files, args.model))
    n_rows, columns = 0, list(dict.fromkeys([*model.columns, *args.keep]))
    compared = NewRows((model.about or {}).get("profile"))
    with _frames.writing(args.out) as write:
        for frame in table.frames(columns, _text.wants_progress(args), "predict"):
            compared.add(frame)
            write(_answers(args, model, frame))
            n_rows += len(frame)
        if not n_rows:
            raise ValueError(f"{args.data}: the table has no rows.")
    compared.show(args)
    if args.out != "-":
        facts = {"rows": n_rows, "out": args.out, "notes": args.notes}
        _text.answer(args, facts, f"wrote {n_rows:,} rows to {args.out}")


def _kept(args, model: _models.TableModel, table: Table) -> Table:
    """The same table, with the columns to keep as text if both files are text, and otherwise with one type each."""
    for name in args.keep:
        _frames.check_column(table.columns, name, "--keep", args.data)
    answers = {"prediction", *(f"proba_{label}" for label in model.classes_), *_reason_names(args)}
    taken = [name for name in args.keep if name in answers]
    if taken:
        raise ValueError(f"--keep {taken[0]}: the output has a column with this name; rename it in the data.")
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
    answers["prediction"] = np.asarray(model.classes_)[proba.argmax(axis=1)]
    for label, column in zip(model.classes_, proba.T):
        answers[f"proba_{label}"] = column
    if args.reasons:
        from ..explanations import explain

        found = explain(model.pipeline, frame[model.columns]).reasons(args.reasons)
        for k, name in enumerate(_reason_names(args)):
            answers[name] = [str(reasons[k]) if k < len(reasons) else "" for reasons in found]
    return answers


def _reason_names(args) -> list[str]:
    return [f"reason_{k + 1}" for k in range(args.reasons)]
