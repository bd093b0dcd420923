"""Measures of the model beside those of the class shares and of a logistic regression."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..baselines import BASE_RATES
from ..facts import Facts
from ..markup import Axis, Frame, escaped, linear_axis, number, share, signed, span, svg
from ..measures import MEASURES, Interval
from .html import Section, figure, scrolled

EXCESS = "excess log-loss"
#: Height of the row of a model.
ROW_HEIGHT = 26
Text = Callable[[float], str]


class Measure(NamedTuple):
    """A measure of all models: name, how to write it, whether higher is better, and the values."""

    title: str
    text: Text
    is_gain: bool
    values: list[Interval]


def comparison(facts: Facts) -> Section:
    shown = measures_shown(facts)
    names = ("model", *(measure.title for measure in shown), EXCESS)
    head = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in names)
    rows = "".join(_row(facts, place, shown) for place in range(len(facts.scores)))
    # explicit roles survive the stacked layout on phones
    css = "scores many" if len(shown) > 5 else "scores"
    table = f'<table class="{css}" role="table"><thead><tr role="row">{head}</tr></thead><tbody>{rows}</tbody></table>'
    models = [score.name for score in facts.scores]
    drawings = "".join(f"<div><h4>{_heading(each)}</h4>{score_figure(models, each)}</div>" for each in shown)
    caption = (
        "Bars are 90 % intervals from resampled rows. These are the same for all models, so differences are more "
        "precise than the bars suggest: excess log-loss is the difference from the evaluated model. “By chance” is the "
        "calibration error of a perfectly calibrated model on this many rows. Arrows mark values beyond the axis."
    )
    body = scrolled(table, "Scores of all models") + figure(f'<div class="panels two">{drawings}</div>', caption)
    return Section("beside", "Comparison with baselines", body)


def measures_shown(facts: Facts) -> list[Measure]:
    """What finds a rare class and ranks rows first, if there are two classes; the error only if it says something."""
    found = [
        Measure(title, share if name == "error" else number, False, [getattr(score, name) for score in facts.scores])
        for name, title in MEASURES.items()
    ]
    if facts.positive is None:
        return found
    ranks = facts.positive.rankings
    areas = Measure("AUC", number, True, [rank.auc for rank in ranks])
    if not facts.positive.is_rare:
        return [*found, areas]
    return [
        Measure("recall", share, True, [rank.recall for rank in ranks]),
        Measure("precision", share, True, [rank.precision for rank in ranks]),
        Measure("average precision", number, True, [rank.average_precision for rank in ranks]),
        areas,
        found[1],
        found[3],
    ]


def _heading(measure: Measure) -> str:
    better = "higher" if measure.is_gain else "lower"
    return f"{measure.title} <small>({better} is better)</small>"


def _row(facts: Facts, place: int, shown: list[Measure]) -> str:
    score, cells = facts.scores[place], [_cell(measure.values[place], measure.text) for measure in shown]
    titles = [measure.title for measure in shown]
    cells[titles.index(MEASURES["calibration"])] += f"<small>by chance {number(score.calibration_by_chance)}</small>"
    cells.append("–" if score.excess is None else _cell(score.excess, signed))
    body = "".join(f'<td role="cell" data-name="{title}">{cell}</td>' for title, cell in zip([*titles, EXCESS], cells))
    name = f'<span class="key m{place}"></span>{escaped(score.name)}'
    return f'<tr role="row"><th scope="row" role="rowheader">{name}</th>{body}</tr>'


def _cell(value: Interval, text: Text) -> str:
    return f"<b>{text(value.value)}</b> <small>{span(value.low, value.high, text)}</small>"


def score_figure(names: Sequence[str], measure: Measure) -> str:
    """One measure of all models, on an axis from zero that may end before the base rates."""
    title, text, _, values = measure
    near = _highest([value for name, value in zip(names, values) if name != BASE_RATES])
    far = _highest(values)
    end = (far if far < 3.0 * near else near * 1.25) or 1.0
    height = 8 + ROW_HEIGHT * len(names) + 26
    axis = linear_axis(0.0, end * 1.03, "", about=4)
    frame = Frame(axis, Axis(0.0, 1.0, ""), 360, height, left=122, right=16, top=8, bottom=26)
    rows = [_mark(frame, place, *each, text) for place, each in enumerate(zip(names, values))]
    said = "; ".join(f"{name} {text(value.value)}" for name, value in zip(names, values))
    return svg(f"score-{title.replace(' ', '-')}", 360, height, title, said, frame.grid(), *rows)


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
