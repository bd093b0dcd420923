"""Rows to review: the least confident predictions and the most confident errors, with reasons and values."""

from ..facts import Facts
from ..markup import count, escaped, label, number
from ..rows import RowFacts
from .html import Section, number_cell, small, sortable


def rows(facts: Facts) -> Section:
    about_errors = "There are none."
    if facts.mistakes:
        which = f"The {len(facts.mistakes)} most confident of {count(facts.n_mistakes)} errors"
        about_errors = f"{which}: they may have wrong labels or unusual values, or need information the model lacks."
    parts = [
        small(" ".join(filter(None, (escaped(facts.about_names), "Click a heading to sort.", _about(facts))))),
        f"<h3>Uncertain rows</h3>{small(f'The {len(facts.doubtful)} least confident predictions.')}",
        _table(facts, "doubtful", "Uncertain rows", facts.doubtful),
        f"<h3>Confident errors</h3>{small(about_errors)}",
        _table(facts, "mistakes-table", "Confident errors", facts.mistakes) if facts.mistakes else "",
    ]
    return Section("rows", "Rows to review", "".join(parts))


def _about(facts: Facts) -> str:
    shown = "The columns on the right are values of these rows." if facts.columns else ""
    if _has_reasons(facts):
        shown = f"Reasons are the columns that add most to the score of the prediction, or take most away. {shown}"
    return shown


def _has_reasons(facts: Facts) -> bool:
    return any(row.reasons for row in (*facts.doubtful, *facts.mistakes))


def _table(facts: Facts, identity: str, caption: str, found: tuple[RowFacts, ...]) -> str:
    reasons = ("reasons",) if _has_reasons(facts) else ()
    if facts.positive is None:
        given: tuple[str, ...] = ("probability", "second", "its probability")
    else:
        given = (f"P({facts.positive.name})",)
    head = ("row", "true", "predicted", *given, *reasons, *facts.columns)
    return sortable(identity, caption, head, [_row(facts, row, bool(reasons)) for row in found])


def _row(facts: Facts, row: RowFacts, has_reasons: bool) -> str:
    css = "" if row.true == row.predicted else ' class="miss"'
    reasons = "<br>".join(label(reason, 60) for reason in row.reasons)  # one per line
    reasons = f'<td class="reasons">{reasons}</td>' if has_reasons else ""
    return (
        f"<tr>{_value_cell(row.name)}<td>{label(row.true, 24)}</td><td{css}>{label(row.predicted, 24)}</td>"
        f"{_probabilities(facts, row)}{reasons}{''.join(map(_value_cell, row.values))}</tr>"
    )


def _probabilities(facts: Facts, row: RowFacts) -> str:
    """The two largest probabilities or, of two classes, that of the positive one."""
    if facts.positive is None:
        first, second = (number_cell(p, number(p)) for p in (row.probability, row.second_probability))
        return f"{first}<td>{label(row.second, 24)}</td>{second}"
    p = row.probability if row.predicted == facts.positive.name else row.second_probability
    return number_cell(p, number(p))


def _value_cell(value: str | None) -> str:
    if value is None:
        return '<td class="missing" data-v="nan">missing</td>'
    try:
        return number_cell(float(value), escaped(value))
    except ValueError:
        return f"<td>{label(value, 24)}</td>"
