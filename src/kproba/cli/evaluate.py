"""Evaluate a saved model on labelled rows.

Prints error, log-loss, Brier score and calibration error with 90 % intervals, next to those of the class shares alone.
Training rows are recognised and evaluated out of fold, by models that never saw them, or else by leave-one-out; if the
model has neither, the output says so.

examples:
  kproba evaluate test.csv --model income.kproba
  kproba evaluate test.parquet --model income.kproba --target income --json
"""

from __future__ import annotations

from ..report.measures import MEASURES
from . import _frames, _models, _text
from ._judging import facts_of, with_warning


def add_options(command) -> None:
    _frames.add_data(command, "labelled table")
    _models.add_model(command, "model file written by kproba fit")
    command.add_argument("--target", help="column with the classes (default: named as in the training table)")
    _frames.add_chunk_rows(command)


def run(args) -> None:
    model = _models.load(args.model)
    facts, about = facts_of(model, args)
    scores = {score.name: _plain(score) for score in facts.scores}
    own, base = (scores[score.name] for score in facts.scores[:2])
    text = with_warning(_table(facts.scores[:2], facts.n_rows), about)
    _text.answer(args, {**about, "classes": facts.classes, **own, "base_rates": base}, text)


def _plain(score) -> dict:
    found = {name: getattr(score, name) for name in MEASURES}
    plain = {name: {"value": each.value, "interval": [each.low, each.high]} for name, each in found.items()}
    return plain | {"calibration_by_chance": score.calibration_by_chance}


def _table(scores, n_rows: int) -> str:
    rows = [[words, *(_shown(getattr(score, name)) for score in scores)] for name, words in MEASURES.items()]
    chance = ["  by chance", *(f"{score.calibration_by_chance:.4f}" for score in scores)]
    header = [f"{n_rows:,} rows (90 % intervals)", scores[0].name, "class shares of these rows"]
    return _text.columns(header, [*rows, chance])


def _shown(found) -> str:
    return f"{found.value:.4f} ({found.low:.4f} … {found.high:.4f})"
