"""Parts that sections share: figures, scrolling boxes, sortable tables, lists of numbers."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..markup import escaped, label

NO_BREAK = "\u00a0"
#: Index of the last colour of a colour scale.
STEPS = 8
#: Number of rows of a table that the style prints.
MOST_PRINTED = 20


class Section(NamedTuple):
    """The identifier, title and content of a section; without content it is left out."""

    identity: str
    title: str
    body: str

    @property
    def html(self) -> str:
        return (
            f'<section id="{self.identity}" aria-labelledby="{self.identity}-h"><h2 id="{self.identity}-h">{self.title}'
            f"</h2>{self.body}</section>"
        )


def figure(drawing: str, caption: str, title: str = "", css: str = "") -> str:
    head = f"<h3>{title}</h3>" if title else ""
    below = f"<figcaption>{caption.replace(' %', NO_BREAK + '%')}</figcaption>" if caption else ""
    return f'<figure class="{css}">{head}{drawing}{below}</figure>'


def pair(*parts: str) -> str:
    """Two parts side by side, or below each other on a phone."""
    return f'<div class="pair">{"".join(parts)}</div>'


def small(text: str) -> str:
    return f'<p class="small">{text}</p>' if text else ""


def scrolled(table: str, name: str, css: str = "scroll") -> str:
    """A scrollable, keyboard-accessible box for tables that are too wide; the script shows the cue if it is."""
    return (
        f'<div class="{css}" tabindex="0" role="region" aria-label="{escaped(name)}">{table}</div>'
        '<p class="cue" aria-hidden="true" hidden>There are more columns: scroll sideways →</p>'
    )


def number_cell(value: float, text: str) -> str:
    return f'<td class="n" data-v="{value:.9g}">{text}</td>'


def sortable(identity: str, caption: str, head: Iterable[str], body: Sequence[str]) -> str:
    cells = "".join(
        f'<th scope="col" aria-sort="none"><button type="button">{label(name, 24)}</button></th>' for name in head
    )
    table = (
        f'<table id="{identity}" class="sortable"><caption class="unseen">{escaped(caption)}; click a heading to sort'
        f"</caption><thead><tr>{cells}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )
    more = '<p class="small paper">Only the first 20 are printed.</p>' if len(body) > MOST_PRINTED else ""
    return scrolled(table, caption, "scroll tall") + more


def numbers(entries: Iterable[tuple[str, str, str]]) -> str:
    """Named numbers that the script updates: (identifier, title, text)."""
    cells = "".join(f'<div><dt>{title}</dt><dd id="{name}">{text}</dd></div>' for name, title, text in entries)
    return f'<dl class="numbers">{cells}</dl>'


def cost_inputs(entries: Iterable[tuple[str, str, float]]) -> str:
    """Inputs for costs: (identifier, title, value)."""
    return "".join(
        f'<label>{title} <input type="number" id="{name}" min="0" step="any" value="{value:g}"></label>'
        for name, title, value in entries
    )
