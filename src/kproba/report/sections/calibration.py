"""Calibration: whether probabilities are what they say, and how often each occurs."""

from functools import partial

import numpy as np

from ..facts import Facts
from ..markup import Axis, Frame, count, escaped, label, linear_axis, log_axis, number, share, shortened, span
from ..measures import Histogram, Reliability
from ..two_classes import PositiveFacts
from .html import Section, figure, pair, small

BAND = "The band is a 90 % Jeffreys interval; larger dots have more rows."


def calibration(facts: Facts) -> Section:
    body = _of_confidence(facts) if facts.positive is None else _of_positive(facts.positive)
    return Section("calibration", "Calibration", body)


def _of_confidence(facts: Facts) -> str:
    """Several classes: the probability of the predicted one."""
    name = "probability of the predicted class"
    axes = linear_axis(0.0, 1.0, name), linear_axis(0.0, 1.0, "share of correct ones")
    return pair(
        figure(
            reliability_figure(facts.reliability, *axes),
            "How many of the predictions with a given probability are correct? On the dotted line, probabilities are "
            f"calibrated; below it the model is overconfident, above it underconfident. {BAND}",
            "Reliability diagram",
        ),
        figure(
            histogram_figure(facts.histogram, linear_axis(0.0, 1.0, name), ("right", "wrong")),
            'Number of <span class="ink right">right</span> and <span class="ink wrong">wrong</span> predictions by '
            "probability. Errors should be on the left.",
            "Confidence",
        ),
    )


def _of_positive(found: PositiveFacts) -> str:
    """Two classes: the probability of the positive one over its whole range."""
    name, other, edges = label(found.name, 24), label(found.other, 24), found.histogram.edges
    title, observed = "predicted probability", "observed share"
    axis = partial(log_axis, float(edges[0])) if found.is_rare else partial(linear_axis, 0.0)
    x, y = axis(1.0, title), axis(1.0, observed)
    scale = " Both axes are logarithmic, because the class is rare." if found.is_rare else ""
    drawings = pair(
        figure(
            reliability_figure(found.reliability, x, y),
            f"Of the rows with a given probability of {name}, how many are {name}? On the dotted line, probabilities "
            f"are calibrated; below it they are too high, above it too low. {BAND}{scale}",
            f"Reliability of the probability of {name}",
        ),
        figure(
            histogram_figure(found.histogram, x, (found.name, found.other)),
            f'Number of <span class="ink right">{name}</span> and <span class="ink wrong">{other}</span> '
            "rows by probability. The better the model, the less they overlap.",
            f"Probability of {name}",
        ),
    )
    return drawings + small(
        f"The probabilities of {name} add up to {number(found.expected, 1)} rows; there are {count(found.rows)}."
    )


def reliability_figure(found: Reliability, x: Axis, y: Axis) -> str:
    """Observed against predicted shares; on logarithmic axes, what is below the axis is drawn at its end."""
    frame = Frame(x, y, height=300)
    inside = np.mean((found.low <= found.confidence) & (found.confidence <= found.high))
    ends = [max(x.low, y.low), 1.0]
    at, low, high, middle = (
        np.maximum(values, axis.low)
        for values, axis in ((found.confidence, x), (found.low, y), (found.high, y), (found.frequency, y))
    )
    return frame.svg(
        "reliability",
        "Reliability diagram",
        f"{len(found.rows)} bins; the diagonal is inside the band for {share(float(inside))} of them.",
        frame.line(ends, ends, "ideal"),
        frame.band(at, low, high, "band"),
        frame.line(at, middle, "line"),
        *(_reliability_dot(frame, found, place) for place in range(len(found.rows))),
    )


def _reliability_dot(frame: Frame, found: Reliability, place: int) -> str:
    """The dot and the interval of one bin; the size of the dot reflects the number of rows."""
    predicted, observed, low, high = (
        float(part[place]) for part in (found.confidence, found.frequency, found.low, found.high)
    )
    x = float(frame.px(max(predicted, frame.x.low)))
    y, bottom, top = frame.py(np.maximum([observed, low, high], frame.y.low))
    radius = 2.5 + 3.5 * np.sqrt(found.rows[place] / found.rows.max())
    rows = count(int(found.rows[place]))
    tooltip = f"predicted {number(predicted)}, observed {number(observed)} ({span(low, high)}), {rows} rows"
    return (
        f'<path class="whisker" d="M{x:.1f} {bottom:.1f}V{top:.1f}"/><circle class="dot" cx="{x:.1f}" cy="{y:.1f}" '
        f'r="{radius:.1f}"><title>{tooltip}</title></circle>'
    )


def histogram_figure(found: Histogram, x: Axis, names: tuple[str, str]) -> str:
    """Counts on a square-root scale, because one bin often has nearly all rows and the others are few."""
    frame = Frame(x, _root_axis(float(max(found.right.max(), found.wrong.max()))), height=300)
    first, second = (escaped(shortened(name, 24)) for name in names)
    parts = []
    for low, high, right, wrong in zip(found.edges[:-1], found.edges[1:], found.right, found.wrong):
        if right + wrong:
            title = f"<title>{low:.3g} to {high:.3g}: {count(right)} {first}, {count(wrong)} {second}</title>"
            at, width = float(frame.px(low)), float(frame.px(high) - frame.px(low))
            bars = [("right", right), ("wrong", wrong)]
            for place, (css, rows) in enumerate(sorted(bars, key=lambda bar: -bar[1])):  # the smaller one in front
                inset = (0.6, 0.27 * width)[place]
                parts.append(_bar(frame, at + inset, width - 2 * inset, rows, css, title))
    about = f"{names[0]}: {count(int(found.right.sum()))} rows; {names[1]}: {count(int(found.wrong.sum()))} rows."
    return frame.svg("confidence", "Histogram of probabilities", about, *parts)


def _root_axis(most: float) -> Axis:
    """Square-root axis from zero, with well separated ticks at 1, 2 and 5 times powers of ten."""
    ticks, gap = [(0.0, "0")], 0.12 * np.sqrt(most)
    for value in (m * 10**e for e in range(9) for m in (1, 2, 5)):
        if value <= most and np.sqrt(value) - ticks[-1][0] > gap:
            ticks.append((float(np.sqrt(value)), count(value)))
    return Axis(0.0, 1.05 * np.sqrt(max(most, 1.0)), "rows (square-root scale)", tuple(ticks))


def _bar(frame: Frame, x: float, width: float, rows: int, css: str, title: str) -> str:
    if not rows:
        return ""
    top, base = float(frame.py(np.sqrt(rows))), float(frame.py(0.0))
    place = f'x="{x:.1f}" y="{top:.2f}" width="{width:.1f}" height="{base - top:.2f}"'
    return f'<rect class="{css}" {place}>{title}</rect>'
