"""Dot plots as SVG text: a row for each dataset, a mark for each method, on a logarithmic axis.

The same numbers give the same bytes on every machine, and the pictures follow the reader's light or dark mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import log
from typing import NamedTuple

WIDTH, LEFT, RIGHT, STEP = 560, 178, 24, 22
#: Colour and shape of the first, second, ... method; the colours can be told apart by colour-blind readers.
MARKS = (
    ("#0072B2", "circle"),
    ("#D55E00", "square"),
    ("#CC79A7", "up"),
    ("#009E73", "diamond"),
    ("#E69F00", "down"),
    ("#56B4E9", "cross"),
    ("#7F7F7F", "bar"),
)
SHAPES = {
    "circle": '<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/>',
    "square": '<path d="M{x:.1f} {y:.1f}m-4.5-4.5h9v9h-9z"/>',
    "up": '<path d="M{x:.1f} {y:.1f}m0-6l5.5 10h-11z"/>',
    "down": '<path d="M{x:.1f} {y:.1f}m0 6l5.5-10h-11z"/>',
    "diamond": '<path d="M{x:.1f} {y:.1f}m0-6.2l6.2 6.2l-6.2 6.2l-6.2-6.2z"/>',
    "cross": '<path d="M{x:.1f} {y:.1f}m-5-3l2-2l3 3l3-3l2 2l-3 3l3 3l-2 2l-3-3l-3 3l-2-2l3-3z"/>',
    "bar": '<path d="M{x:.1f} {y:.1f}m-2.5-6h5v12h-5z"/>',
    "above": '<path d="M{x:.1f} {y:.1f}m-4-5.5l10 5.5l-10 5.5l3-5.5z"/>',
    "below": '<path d="M{x:.1f} {y:.1f}m4-5.5l-10 5.5l10 5.5l-3-5.5z"/>',
}
STYLE = """  <style>
    svg { --paper: #ffffff; --ink: #1f2328; --soft: #57606a; --line: #d8dee4; }
    @media (prefers-color-scheme: dark) { svg { --paper: #16191d; --ink: #e6e8ea; --soft: #a9b1ba; --line: #363d45; } }
    text { font: 14px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: var(--ink); }
    .end { text-anchor: end; } .middle { text-anchor: middle; } .soft { fill: var(--soft); font-size: 13px; }
    .paper { fill: var(--paper); } .line { stroke: var(--line); } .reference { stroke: var(--ink); stroke-width: 1.5; }
    .marks { stroke: var(--paper); stroke-width: 0.8; }
  </style>"""


class Axis(NamedTuple):
    """A logarithmic axis: what it shows, its ends and ticks, and where a reference line stands."""

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    reference: float | None = None

    def place(self, value: float) -> float:
        """The x coordinate; a value beyond an end is drawn at this end."""
        share = log(min(max(value, self.low), self.high) / self.low) / log(self.high / self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def beyond(self, value: float) -> str:
        """The arrow in place of the mark of a value that the axis does not reach."""
        return "above" if value > self.high else "below" if value < self.low else ""


def plot(title: str, rows: Mapping[str, Mapping[str, float]], names: Mapping[str, str], axis: Axis) -> str:
    """A picture of ``rows`` (dataset -> method -> value); ``names`` are the methods in the order of their marks."""
    styles = dict(zip(names, MARKS))
    legend, top = _legend(names, styles)
    bottom = top + STEP * len(rows)
    body = [*_ruler(axis, top, bottom), *legend]
    for number, (label, values) in enumerate(rows.items()):
        body += _row(label, values, top + STEP * (number + 0.5), axis, styles)
    text = "\n".join(f"  {line}" for line in body)
    height = bottom + 52
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" aria-labelledby="title">
  <title id="title">{escape(title)}</title>
{STYLE}
  <rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>
{text}
</svg>
"""


def _legend(names: Mapping[str, str], styles: Mapping[str, tuple[str, str]]) -> tuple[list[str], float]:
    """Marks and names in lines above the plot, and where the plot begins."""
    lines, x, y = [], 20.0, 26.0
    for key, name in names.items():
        width = 34 + 7.2 * len(name)  # about the width of the text in most fonts
        if x + width > WIDTH and x > 20:
            x, y = 20.0, y + 22
        lines += [_mark(x, y, styles[key]), f'<text x="{x + 11:.0f}" y="{y + 5:.0f}">{escape(name)}</text>']
        x += width
    return lines, y + 24


def _ruler(axis: Axis, top: float, bottom: float) -> list[str]:
    """Ticks, the label of the axis and the reference line."""
    lines = []
    for tick in axis.ticks:
        x = axis.place(tick)
        kind = "reference" if tick == axis.reference else "line"
        lines.append(f'<path class="{kind}" d="M{x:.1f} {top:.0f}V{bottom:.0f}"/>')
        lines.append(f'<text class="soft middle" x="{x:.1f}" y="{bottom + 18:.0f}">{tick:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*lines, f'<text class="middle" x="{middle:.0f}" y="{bottom + 40:.0f}">{escape(axis.label)}</text>']


def _row(label: str, values: Mapping[str, float], y: float, axis: Axis, styles) -> list[str]:
    """The name of a dataset and its marks; the first method is drawn first, so that it hides none of the others."""
    marks = [
        _mark(axis.place(values[key]), y, (colour, axis.beyond(values[key]) or shape))
        for key, (colour, shape) in styles.items()
        if key in values
    ]
    name = f'<text class="end" x="{LEFT - 14}" y="{y + 5:.0f}">{escape(label.replace("_", " "))}</text>'
    return [name, f'<path class="line" d="M{LEFT} {y:.0f}H{WIDTH - RIGHT}"/>', *marks]


def _mark(x: float, y: float, style: tuple[str, str]) -> str:
    colour, shape = style
    return f'<g class="marks" fill="{colour}">{SHAPES[shape].format(x=x, y=y)}</g>'
