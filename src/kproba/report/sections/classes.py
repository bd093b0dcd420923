"""Several classes: which are confused, and how well each is told from the others."""

import numpy as np

from ..classes import ClassFacts
from ..facts import Facts
from ..markup import count, escaped, label, number, share
from .curves import class_figures, first_class
from .html import STEPS, Section, figure, number_cell, pair, scrolled, sortable

#: Number of pairs of classes listed as most often confused.
MOST_PAIRS = 5
HEAD = ("rows", "recall", "precision", "AUC", "average precision")
#: Largest number of classes; if there are more, those with the most errors are shown.
MOST_CLASSES = 40
#: The error rate with the strongest colour is at least this.
FAINTEST = 0.1


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


def confusion_table(facts: Facts) -> str:
    shown = shown_classes(facts.confusion)
    part = facts.confusion[np.ix_(shown, shown)]
    of_row = facts.confusion.sum(axis=1)[shown]
    shares = part / np.maximum(of_row, 1)[:, None]
    off = shares * (1 - np.eye(len(shown)))
    worst = max(off.max(), FAINTEST)
    names = [facts.classes[k] for k in shown]
    head = "".join(f'<th scope="col"><span>{label(name, 16)}</span></th>' for name in names)
    body = []
    for i, name in enumerate(names):
        cells = "".join(_cell(part[i, j], shares[i, j], off[i, j] / worst, i == j) for j in range(len(names)))
        body.append(f'<tr><th scope="row">{label(name, 16)}</th>{cells}</tr>')
    css = "few" if len(names) <= 4 else "many" if len(names) > 12 else "some"
    css += " short" if max(map(len, names)) <= 2 else ""
    return (
        f'<table id="confusion" class="confusion {css}"><caption class="unseen">Confusion matrix: rows are the true '
        f'classes, columns the predicted ones</caption><thead><tr><th scope="col"><span class="unseen">true class'
        f"</span></th>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def _cell(rows: int, part: float, strength: float, is_right: bool) -> str:
    if not rows:
        return "<td></td>"
    ramp, step = ("q", round(STEPS * part)) if is_right else ("w", max(1, round(STEPS * strength)))
    return f'<td class="{ramp} s{step}" title="{share(part)} of the row">{rows}</td>'


def shown_classes(confusion: np.ndarray) -> np.ndarray:
    """All classes, or those involved in the most errors."""
    if len(confusion) <= MOST_CLASSES:
        return np.arange(len(confusion))
    wrong = confusion.sum(axis=0) + confusion.sum(axis=1) - 2 * np.diagonal(confusion)
    return np.sort(np.argsort(-wrong, kind="stable")[:MOST_CLASSES])
