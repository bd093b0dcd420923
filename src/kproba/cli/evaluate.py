"""Measure a model that was kept on rows whose classes are known.

Prints error, log-loss, Brier score and calibration error with 90 % intervals, beside those of the class shares alone.

examples:
  kproba evaluate test.csv --model income.kproba
  kproba evaluate test.parquet --model income.kproba --target income --json
"""

from __future__ import annotations

from . import _frames, _models, _text
from .report import labelled

NAME = "evaluate"


def add_options(command) -> None:
    _frames.add_data(command, "table with the classes")
    command.add_argument("--model", required=True, help="file that kproba fit wrote")
    command.add_argument("--target", help="column of the classes, if it is not named as in the training table")


def run(args) -> None:
    from ..report.facts import collect

    model = _models.load(args.model)
    X, y = labelled(model, args.data, args)
    raise NotImplementedError(collect)
