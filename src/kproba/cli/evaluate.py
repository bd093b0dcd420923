"""Evaluate a saved model on labelled rows.

Prints error, log-loss, Brier score and calibration error with 90 % intervals, next to those of the class shares alone,
AUC, average precision, F1 and the confusion matrix.
Training rows are recognised and evaluated out of fold, by models that never saw them, or else by leave-one-out; if the
model has neither, the output says so.

examples:
  kproba evaluate test.csv --model income.kproba
  kproba evaluate test.csv --model income.kproba --positive high
  kproba evaluate test.parquet --model income.kproba --target income --json
"""

from ..data.labels import label_codes
from ..report.measures import MEASURES
from . import _models, _scores, _text
from ._judging import add_options as add_options
from ._judging import facts_of_rows, judge, positive_of, with_warning


def run(args) -> None:
    model = _models.load(args.model)
    positive = positive_of(args, model)
    rows = judge(model, args)
    facts, about = facts_of_rows(model, args, rows)
    scores = {score.name: _plain(score) for score in facts.scores}
    own, base = (scores[score.name] for score in facts.scores[:2])
    decided = _scores.decisions(label_codes(rows.y, model.classes_), rows.proba, model.classes_, positive)
    text = f"{_table(facts.scores[:2], facts.n_rows)}\n\n{_decisions(decided)}\n\n"
    text = with_warning(text + _scores.confusion_table(model.classes_, decided["confusion"]), about)
    _text.answer(
        args, {**about, "classes": facts.classes, **own, **decided, "base_rates": base, "notes": args.notes}, text
    )


def _decisions(decided: dict) -> str:
    rows = [[words, _text.figure(decided[name])] for name, words in _scores.DECISIONS.items()]
    return _text.columns([_scores.averaged(decided["positive"]).strip("()"), ""], rows)


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
