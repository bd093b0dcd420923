"""Groups of rows that are predicted worse than others, and columns that changed since training."""

from ..facts import Facts
from ..groups import Drift, Group
from ..markup import count, label, number, share, span
from ..measures import Interval
from .html import Section, number_cell, small, sortable

#: Number of groups and columns in the tables.
MOST_SHOWN = 40


def groups(facts: Facts) -> Section:
    found = facts.groups.groups
    if not found:
        return Section("groups", "Groups of rows", "")
    body = small(_about_groups(facts)) + small(_how_many(found))
    titles = ["mean probability", "share right"]
    if facts.positive is not None:
        titles = [f"{word} {facts.positive.name}" for word in ("predicted", "observed")]
    head = ("column", "value", "rows", "error", *titles, "by chance")
    body += sortable("group-table", "Groups of rows", head, [_group_row(group) for group in found[:MOST_SHOWN]])
    if len(found) > MOST_SHOWN:
        body += small(f"The {MOST_SHOWN} groups at the top of {count(len(found))} are shown.")
    return Section("groups", "Groups of rows", body)


def _about_groups(facts: Facts) -> str:
    what = "the mean probability of the predictions beside the share that is right"
    if facts.positive is not None:
        what = f"the mean probability of {label(facts.positive.name, 24)} beside the observed share"
    sample = (
        f" They are those of a sample of {count(facts.groups.n_rows)} rows."
        if facts.groups.n_rows < facts.n_rows
        else ""
    )
    return (
        f"Error and calibration of groups of rows: each value of a category, and the lower, middle and upper third "
        f"of each number; {what}, with 90 % intervals. Groups of fewer than 20 rows are left out.{sample}"
    )


def _how_many(found: tuple[Group, ...]) -> str:
    """Some of many groups look bad by chance, so the page says how many to expect."""
    worst, out = found[0], sum(group.stands_out for group in found)
    rule = (
        "“By chance” is the number of groups that would look at least this bad, in error or calibration, if all "
        "probabilities were right."
    )
    if not out:
        return (
            f"{count(len(found))} groups are compared, worst first. {rule} No group stands out: the first one looks "
            f"as bad as {number(worst.by_chance, 1)} of {count(len(found))} groups would by chance."
        )
    verb = "group stands" if out == 1 else "groups stand"
    return (
        f"{count(len(found))} groups are compared, worst first. {rule} {count(out)} {verb} out: fewer than 0.05 such "
        "groups are expected by chance."
    )


def _group_row(group: Group) -> str:
    css = ' class="miss"' if group.stands_out else ""
    return (
        f"<tr><td{css}>{label(group.column, 24)}</td><td{css}>{label(group.value, 24)}</td>"
        f"{number_cell(group.rows, count(group.rows))}{_interval_cell(group.error)}"
        f"{number_cell(group.predicted, share(group.predicted))}{_interval_cell(group.observed)}"
        f"{number_cell(group.by_chance, by_chance(group.by_chance))}</tr>"
    )


def _interval_cell(value: Interval) -> str:
    return number_cell(value.value, f"{share(value.value)} <small>{span(value.low, value.high, share)}</small>")


def by_chance(value: float) -> str:
    """An expected number of groups or columns.

    >>> by_chance(3.14), by_chance(0.012), by_chance(1e-7)
    ('3.1', '0.012', '&lt; 0.001')
    """
    return "&lt; 0.001" if value < 0.001 else number(value, 1)


def drift(facts: Facts) -> Section:
    if not facts.drift:
        return Section("drift", "Drift since training", "")
    out = sum(each.stands_out for each in facts.drift)
    said = (
        "No column differs noticeably." if not out else f"{count(out)} of {count(len(facts.drift))} differ noticeably."
    )
    body = small(
        f"How the values of each column differ from those of the training rows. {said} The distance is 0 if nothing "
        "has changed and 1 if no value is left in common: the largest difference of the distribution functions of "
        "numbers, half of the sum of the differences of shares of categories. “By chance” is the number of columns "
        "that would differ as much if nothing had changed."
    )
    head = ("column", "training rows", "these rows", "distance", "by chance")
    rows = [_drift_row(each) for each in facts.drift[:MOST_SHOWN]]
    return Section("drift", "Drift since training", body + sortable("drift-table", "Drift of the columns", head, rows))


def _drift_row(each: Drift) -> str:
    css = ' class="miss"' if each.stands_out else ""
    return (
        f"<tr><td{css}>{label(each.column, 24)}</td><td>{label(each.train, 60)}</td>"
        f"<td>{label(each.evaluated, 60)}</td>{number_cell(each.distance, number(each.distance, 2))}"
        f"{number_cell(each.by_chance, by_chance(each.by_chance))}</tr>"
    )
