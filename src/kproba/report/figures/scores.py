"""One measure of all models, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..baselines import BASE_RATES
from ..markup import Axis, Frame, escaped, linear_axis, svg
from ..measures import Interval

#: Height of the row of a model.
ROW_HEIGHT = 26
Text = Callable[[float], str]


def score_figure(names: Sequence[str], values: Sequence[Interval], title: str, text: Text) -> str:
    """One measure of all models, on an axis from zero that may end before the base rates."""
    near = _highest([value for name, value in zip(names, values) if name != BASE_RATES])
    far = _highest(values)
    end = (far if far < 3.0 * near else near * 1.25) or 1.0
    height = 8 + ROW_HEIGHT * len(names) + 26
    axis = linear_axis(0.0, end * 1.03, "", about=4)
    frame = Frame(axis, Axis(0.0, 1.0, ""), 360, height, left=122, right=16, top=8, bottom=26)
    rows = [_mark(frame, place, *each, text) for place, each in enumerate(zip(names, values))]
    said = "; ".join(f"{name} {text(value.value)}" for name, value in zip(names, values))
    return svg(f"score-{title.replace(' ', '-')}", 360, height, title, said, score_ticks(frame), *rows)


def _highest(values: Sequence[Interval]) -> float:
    ends = [value.high for value in values]
    return float(np.nanmax(ends)) if ends and not np.isnan(ends).all() else 0.0


def _mark(frame: Frame, place: int, name: str, value: Interval, text: Text) -> str:
    y, edge = frame.top + ROW_HEIGHT * (place + 0.5), frame.width - frame.right
    shown = name if place else "this model"
    title = f'<text x="{frame.left - 10}" y="{y + 4:.1f}" text-anchor="end">{escaped(shown)}</text>'
    return f'<g class="model m{place}">{title}{_interval(frame, y, edge, value, text)}</g>'


def _interval(frame: Frame, y: float, edge: float, value: Interval, text: Text) -> str:
    if np.isnan(value.value):
        return f'<text x="{frame.left + 4}" y="{y + 4:.1f}">–</text>'
    low, middle, high = frame.px([value.low, value.value, value.high])
    if middle > edge:
        mark = f'<path class="beyond" d="M{edge - 8:.1f} {y - 5:.1f}l9 5l-9 5z"/>'
        return mark + f'<text x="{edge - 14:.1f}" y="{y + 4:.1f}" text-anchor="end">{text(value.value)}</text>'
    mark = f'<path class="span" d="M{low:.1f} {y:.1f}H{min(max(high, low + 0.5), edge):.1f}"/>'
    return mark + f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="4.5"/>'


def score_ticks(frame: Frame) -> str:
    base = frame.height - frame.bottom
    ticks = [
        f'<path class="grid" d="M{x:.1f} {frame.top}V{base}"/><text x="{x:.1f}" y="{base + 15}" text-anchor="middle">'
        f"{text}</text>"
        for x, text in ((float(frame.px(value)), text) for value, text in frame.x.ticks)
    ]
    return "".join(ticks)
