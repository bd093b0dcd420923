"""Evaluation of a model on a labelled table; rows that the model was fitted on are recognised."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data.formats import SEPARATORS
from ..data.kinds import TEXT, pandas
from ..data.labels import label_codes
from ..data.tables import LabelledTable
from ..estimators._honest import Honest, rows_with_probabilities
from ..report.facts import Facts, describe
from ..report.judged import BY_NAME, HELD_OUT, TRAINING, about_rows, judged
from . import _frames, _models, _text
from ._columns import NewRows
from ._target import label_named
from ._training import Recognition, row_digests

#: Number of columns that the model does not use, such as identifiers, to show beside the rows of a report.
MOST_BESIDE = 4
#: The warning for a model saved from Python or by an earlier version.
UNKNOWN = (
    "This model does not record which rows it was fitted on. If some of these rows are among them, the results above "
    "are too optimistic; fit the model again with kproba fit so that training rows are recognised."
)


def add_options(command) -> None:
    """Add the options for a model and the labelled table to judge it by."""
    _frames.add_data(command, "labelled table")
    _models.add_model(command, "model file written by kproba fit")
    command.add_argument("--target", help="column with the classes (default: named as in the training table)")
    command.add_argument("--positive", metavar="LABEL", help="class of interest (default: as in the fit)")
    _frames.add_chunk_rows(command)


def positive_of(args, model: _models.TableModel) -> Any:
    """The class of interest: the given one, that of the fit or, of two classes, the second."""
    if args.positive is not None:
        return label_named("--positive", args.positive, model.classes_)
    known = (model.about or {}).get("positive")
    return known if known in model.classes_.tolist() else model.classes_[-1] if len(model.classes_) == 2 else None


def judge(model: _models.TableModel, args) -> Rows:
    """The rows of ``args.data`` with the probabilities to evaluate; notes columns that look different."""
    compared = NewRows((model.about or {}).get("profile"))
    rows = _judge(model, labelled(model, args.data, args), compared)
    compared.show(args)
    return rows


def facts_of_rows(model: _models.TableModel, args, rows: Rows, **options) -> tuple[Facts, dict]:
    """The facts of a report on some rows, and a machine-readable description of these rows."""
    said = about_rows(rows.on, rows.n_training, len(rows.y), rows.n_skipped)
    about: dict[str, Any] = {"rows": len(rows.y), "on": rows.on, "training_rows": rows.n_training}
    if rows.n_skipped:
        about["training_rows_skipped"] = rows.n_skipped
    if rows.on == TRAINING:
        about["warning"] = said
    elif model.seen is None:
        about["warning"] = UNKNOWN
    elif rows.on != HELD_OUT:
        _text.remark(args, f"{args.data}: {said}")
    found = judged(model.pipeline, rows.X, rows.y, rows.proba)._replace(n_skipped=rows.n_skipped)
    options |= {"names": model.columns, "n_training": rows.n_training, "beside": rows.beside}
    options |= {"row_names": rows.numbers, "about_names": rows.about_numbers}
    return describe(model.pipeline, found, rows.on, **options), about


def with_warning(text: str, about: dict) -> str:
    """The text of the answer with the warning, which is shown even with --quiet."""
    return f"{text}\n\n{about['warning']}" if "warning" in about else text


class Rows(NamedTuple):
    """Input columns, classes, probabilities to evaluate, and the kind of these probabilities; see :data:`TRAINING`.

    ``numbers`` are those of the rows in the file, as ``about_numbers`` says; ``beside`` are columns that the model does
    not use. ``n_skipped`` further training rows took part in learning the kernel and are not evaluated.
    """

    X: Any
    y: np.ndarray
    proba: np.ndarray
    numbers: np.ndarray
    about_numbers: str
    beside: dict[str, Any]
    on: str = HELD_OUT
    n_training: int = 0
    n_skipped: int = 0

    def take(self, which: np.ndarray) -> Rows:
        """Some of the rows, which are in memory."""
        X, beside = self.X.iloc[which], {name: values.iloc[which] for name, values in self.beside.items()}
        return self._replace(X=X, y=self.y[which], proba=self.proba[which], numbers=self.numbers[which], beside=beside)


def _judge(model: _models.TableModel, table: LabelledTable, compared: NewRows) -> Rows:
    """One pass over a table. Training rows are evaluated out of fold or by leave-one-out if the model has either."""
    recognition = None if model.seen is None else Recognition(model.seen)
    frames, labels, predicted, numbers, places, others = [], [], [], [], [], []
    is_large = _frames.is_large(table.table)
    unused = [] if is_large else [name for name in table.table.columns if name not in (*table.columns, table.target)]
    for frame, y in table.frames(*unused[:MOST_BESIDE], title="probabilities"):
        places.append(frame.index.to_numpy())
        others.append(frame[unused[:MOST_BESIDE]])
        frame = frame[table.columns]
        y = model.classes_[label_codes(y, model.classes_)]  # as in the fit: 1 equals True, but is written differently
        compared.add(frame)
        frames += [] if is_large else [frame]
        labels.append(y)
        predicted.append(model.predict_proba(frame))
        if recognition is not None:
            numbers.append(recognition.numbers(row_digests(model.pipeline, frame, y, recognition.by_blake2b)))
    first, about = _numbering(table)
    rows = Rows(
        pandas().concat(frames, ignore_index=True) if frames else table,
        np.concatenate(labels),
        np.concatenate(predicted),
        np.concatenate(places) + first,
        about,
        dict(pandas().concat(others, ignore_index=True)),
    )
    if recognition is None or not recognition.n_training:
        return rows
    left_out = model.left_out
    if left_out is None:
        return rows._replace(on=TRAINING, n_training=recognition.n_training)
    return _with_left_out(rows, np.concatenate(numbers), left_out)


def _with_left_out(rows: Rows, known: np.ndarray, left_out: Honest) -> Rows:
    """The rows with honest probabilities of training rows, whose numbers are ``known``; −1 for new rows."""
    in_training = known >= 0
    rows.proba[in_training] = left_out.proba[known[in_training]]
    n_training, evaluated = int(in_training.sum()), rows_with_probabilities(rows.proba)
    n_skipped = len(known) - len(evaluated)
    if n_skipped and (not len(evaluated) or isinstance(rows.X, LabelledTable)):
        raise ValueError(
            f"{n_skipped:,} of these rows took part in learning the kernel of the model, which has no honest "
            "probabilities for them; evaluate it on other rows."
        )
    rows = rows.take(evaluated) if n_skipped else rows
    alone, among_others = BY_NAME[left_out.name]
    on = alone if in_training.all() else among_others
    return rows._replace(on=on, n_training=n_training - n_skipped, n_skipped=n_skipped)


def _numbering(table: LabelledTable) -> tuple[int, str]:
    """The number of the first row of a table, and a sentence that says how rows are counted."""
    if len(table.table.files) > 1:
        return 0, "Row numbers start at 0 and go on through all files."
    if table.table.format in (*SEPARATORS, "excel"):
        return 2, "Rows are numbered as in a spreadsheet: the header is row 1."
    return 0, "Row numbers start at 0."


def labelled(model: _models.TableModel, path: str, args) -> LabelledTable:
    """The labelled rows of a table."""
    target = args.target or model.target
    if not target:
        raise ValueError("--target is required: the model does not record the name of its target column.")
    table = model.opened(args, path)
    _frames.check_target(table.columns, target, path)
    if table.format in SEPARATORS and model.classes_.dtype.kind not in "iufb":
        table = table.typed({target: TEXT})
    rows = _frames.labelled_rows(args, table, model.columns, target, path)
    _refuse_unknown(rows, model.classes_.tolist(), path)
    return rows


def _refuse_unknown(rows: LabelledTable, classes: list, path: str) -> None:
    """Raise an error for classes that the model does not know, or that have another type than those it knows."""
    known = set(map(str, classes))
    unknown = sorted(set(rows.counts) - set(classes), key=lambda label: (str(label) in known, str(label)))
    if not unknown:
        return
    if str(unknown[0]) not in known:
        raise ValueError(
            f"{path}: {rows.target!r} has the class {unknown[0]!r}, which the model does not know; it knows "
            f"{_frames.messages.listing(classes, 12)}."
        )
    kinds = ["text" if isinstance(label, str) else "numbers or booleans" for label in (unknown[0], classes[0])]
    raise ValueError(
        f"{path}: {rows.target!r} holds {kinds[0]} such as {unknown[0]!r}, but the classes of the model are {kinds[1]} "
        f"such as {classes[0]!r}; convert the column to the type that it had in the training table."
    )
