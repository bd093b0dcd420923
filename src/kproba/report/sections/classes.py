"""Several classes: which are confused, and how well each is told from the others."""

from __future__ import annotations

import numpy as np

from ..classes import ClassFacts
from ..facts import Facts
from ..figures.confusion import confusion_table, shown_classes
from ..figures.curves import class_figures, first_class
from ..markup import count, escaped, label, number, share
from .html import Section, figure, number_cell, pair, scrolled, sortable

#: Number of pairs of classes listed as most often confused.
MOST_PAIRS = 5
HEAD = ("rows", "recall", "precision", "AUC", "average precision")


def by_class(facts: Facts) -> Section:
    """The section; left out for two classes, which share one threshold, matrix and curve."""
    if facts.positive is not None:
        return Section("classes", "Classes", "")
    roc, recall = class_figures(facts)
    chosen = first_class(facts)
    options = "".join(_option(place, one, chosen) for place, one in enumerate(facts.by_class))
    chooser = (
        f'<p class="chooser"><label for="class">Class</label> <select id="class">{options}</select> '
        f'<output id="class-numbers" for="class">{escaped(class_texts(facts)[chosen])}</output></p>'
    )
    matrix = scrolled(confusion_table(facts), "Confusion matrix")
    base = "The dashed line is the share of the selected class, which is the precision of guessing."
    curves = pair(
        figure(roc, "The selected class against all others; thin lines are the other classes.", "ROC"),
        figure(recall, base, "Precision–recall"),
    )
    drawing = figure(matrix, _confusion_caption(facts), "Confusion matrix", "wide")
    return Section("classes", "Classes", f"{drawing}{chooser}{curves}{_table(facts)}")


def class_texts(facts: Facts) -> list[str]:
    """The numbers of each class, as the script shows them."""
    return [", ".join(f"{name} {text}" for name, text in zip(HEAD, _texts(one))) for one in facts.by_class]


def _texts(one: ClassFacts) -> tuple[str, ...]:
    return count(one.rows), share(one.recall), share(one.precision), number(one.auc), number(one.average_precision)


def _option(place: int, one: ClassFacts, chosen: int) -> str:
    state = " selected" if place == chosen else ""
    state += "" if one.roc is not None else " disabled"
    return f'<option value="{place}"{state}>{escaped(one.name[:60])}</option>'


def _confusion_caption(facts: Facts) -> str:
    text = (
        "Rows are true classes, columns predicted ones. Colours show shares of a row: blue is right, orange is wrong."
    )
    shown = shown_classes(facts.confusion)
    if len(shown) < len(facts.classes):
        text += f" Only the {len(shown)} of {len(facts.classes)} classes with the most errors are shown."
    off = facts.confusion - np.diag(np.diagonal(facts.confusion))
    pairs = [divmod(int(k), len(off)) for k in np.argsort(-off, axis=None, kind="stable")[:MOST_PAIRS]]
    named = [
        f"{label(facts.classes[i], 24)} predicted as {label(facts.classes[j], 24)} ({count(int(off[i, j]))})"
        for i, j in pairs
        if off[i, j]
    ]
    return text + (f" Most often: {', '.join(named)}." if named else "")


def _table(facts: Facts) -> str:
    body = []
    for one in facts.by_class:
        values = (one.rows, one.recall, one.precision, one.auc, one.average_precision)
        cells = "".join(number_cell(value, text) for value, text in zip(values, _texts(one)))
        body.append(f'<tr><th scope="row">{label(one.name)}</th>{cells}</tr>')
    return f"<h3>Class by class</h3>{sortable('class-table', 'Metrics of each class', ('class', *HEAD), body)}"
