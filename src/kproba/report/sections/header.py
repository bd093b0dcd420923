"""The top of the page: title, verdict, key figures beside those of the class shares, and caveats."""

from typing import NamedTuple

from ..facts import Facts
from ..judged import (
    HELD_OUT,
    LEAVE_ONE_OUT,
    LEAVE_ONE_OUT_MIXED,
    OF_TRAINING_ROWS,
    OUT_OF_FOLD,
    OUT_OF_FOLD_MIXED,
    TRAINING,
)
from ..markup import count, escaped, label, number, share, span
from ..measures import MEASURES, Interval
from ..two_classes import PositiveFacts
from ..verdict import verdict
from .html import NO_BREAK, Section, small

#: Description of the rows.
_WHICH = {
    HELD_OUT: "held-out rows",
    OUT_OF_FOLD: "training rows (out of fold)",
    OUT_OF_FOLD_MIXED: "rows (training rows out of fold)",
    LEAVE_ONE_OUT: "training rows (leave-one-out)",
    LEAVE_ONE_OUT_MIXED: "rows (training rows by leave-one-out)",
    TRAINING: "<strong>training rows: results do not apply to new rows</strong>",
}


class Card(NamedTuple):
    """A key figure: title, value, interval, and what it is compared with."""

    title: str
    value: str
    between: str
    beside: str


def header(facts: Facts, sections: list[Section]) -> str:
    trained = f" · fitted on {count(facts.n_train)} rows" if facts.n_train and facts.on not in OF_TRAINING_ROWS else ""
    columns = f" · {count(facts.n_columns)} columns" if facts.n_columns else ""
    notes = "".join(f"<li>{escaped(note)}</li>" for note in facts.notes)
    links = "".join(f'<a href="#{section.identity}">{section.title}</a>' for section in sections)
    return (
        f'<header><p class="kicker">kproba report</p><h1>{label(facts.title, 120)}</h1>'
        f'<p class="lead">{count(facts.n_rows)} {_WHICH[facts.on]} · {len(facts.classes)} classes{columns}{trained}</p>'
        f'{_verdict(facts)}<div class="cards">{"".join(map(_card, cards(facts)))}</div>'
        f"{small('Small numbers are 90 % intervals.')}"
        f'<ul class="notes">{notes}</ul><nav aria-label="Sections">{links}</nav></header>'
    )


def _verdict(facts: Facts) -> str:
    found = verdict(facts)
    parts = "".join(f"<p>{escaped(text).replace(' %', NO_BREAK + '%')}</p>" for text in found if text)
    return f'<div id="verdict" class="verdict"><h2 class="unseen">Verdict</h2>{parts}</div>'


def _card(card: Card) -> str:
    return (
        f'<div class="card"><h2>{card.title}</h2><p class="big">{card.value}</p><p class="between">{card.between}</p>'
        f'<p class="between">{card.beside}</p></div>'
    )


def cards(facts: Facts) -> list[Card]:
    """The key figures; those of a rare class start with how many of its rows are found."""
    if facts.positive is not None and facts.positive.is_rare:
        return [*_rare_cards(facts.positive), _measure_card(facts, "log_loss")]
    return [_measure_card(facts, name) for name in MEASURES]


def _measure_card(facts: Facts, name: str) -> Card:
    own, base = facts.scores[:2]
    value, text = getattr(own, name), share if name == "error" else number
    beside = f"base rates {text(getattr(base, name).value)}"
    if name == "calibration":
        beside = f"by chance {number(own.calibration_by_chance)}"
    return Card(MEASURES[name], text(value.value), span(value.low, value.high, text), beside)


def _rare_cards(found: PositiveFacts) -> list[Card]:
    own, name = found.own, label(found.name, 24)

    def card(title: str, value: Interval, text, beside: str) -> Card:
        between = "" if value.value != value.value else span(value.low, value.high, text)
        return Card(title, text(value.value), between, beside)

    right = f"{count(own.hits)} of {count(own.flagged)} flagged rows are {name}"
    lift = f"guessing {number(found.share)}; lift {number(found.lift, 1)}"
    return [
        card("recall", own.recall, share, f"{count(own.hits)} of {count(found.rows)} {name} rows found"),
        card("precision", own.precision, share, right if own.flagged else "no row is flagged"),
        card("average precision", own.average_precision, number, lift),
    ]
