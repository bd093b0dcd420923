"""The confusion matrix as a table with colours."""

from __future__ import annotations

import numpy as np

from ..facts import Facts
from ..markup import label, share

#: Index of the last colour of a colour scale.
STEPS = 8
#: Largest number of classes; if there are more, those with the most errors are shown.
MOST_CLASSES = 40
#: The error rate with the strongest colour is at least this.
FAINTEST = 0.1


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
