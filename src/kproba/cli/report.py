"""Write a report on a model: one HTML file that works offline.

It shows how good the probabilities are, where they are wrong, which rows are uncertain, and what rejecting those costs.

examples:
  kproba report test.csv --model income.kproba --out report.html
  kproba report test.csv --model income.kproba --train people.csv      (adds a logistic regression)
  kproba report people.csv --model income.kproba      (the training table: evaluated out of fold)
"""

import os

from . import _frames, _judging, _models, _text
from ._judging import facts_of_rows, judge, labelled, positive_of, with_warning


def add_options(command) -> None:
    _judging.add_options(command)
    command.add_argument("--train", help="training table, for the base rates and a logistic regression to compare with")
    command.add_argument("--out", default="report.html", help="HTML report to write (default: %(default)s)")
    command.add_argument("--title", help="title of the report (default: the name of the data)")


def run(args) -> None:
    from ..report import write_facts

    _frames.check_output("--out", args.out)
    model = _models.load(args.model)
    read = [args.data, args.model, *([args.train] if args.train else [])]
    _frames.refuse_overwriting("--out", args.out, read)
    options = {"positive": _positive(args, model), "title": args.title or os.path.basename(args.data)}
    if args.train:
        known = labelled(model, args.train, args)
        in_memory = known if _frames.is_large(known.table) else known.whole()
        options |= {"X_train": in_memory, "y_train": known.labels()}
    facts, about = facts_of_rows(model, args, judge(model, args), **options)
    write_facts(facts, args.out)
    text = f"wrote {_text.printable(args.out)} about {facts.n_rows:,} rows"
    _text.answer(args, about | {"report": args.out, "notes": args.notes}, with_warning(text, about))


def _positive(args, model: _models.TableModel):
    """The class of interest of two; a report on more classes shows each of them."""
    if len(model.classes_) == 2:
        return positive_of(args, model)
    if args.positive is not None:
        raise ValueError(
            f"--positive {args.positive}: the model has {len(model.classes_)} classes, not two; leave it out."
        )
    return None
