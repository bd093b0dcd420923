"""Calibration: whether probabilities are what they say, and how often each occurs."""

from __future__ import annotations

from ..facts import Facts
from ..figures.calibration import histogram_figure, reliability_figure
from ..markup import count, label, linear_axis, log_axis, number
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
    if found.is_rare:
        lowest = float(edges[0])
        x, y = log_axis(lowest, 1.0, title), log_axis(lowest, 1.0, observed)
    else:
        x, y = linear_axis(0.0, 1.0, title), linear_axis(0.0, 1.0, observed)
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
