"""Classifiers compared on the same rows, as an HTML page: what they achieve, and by how much they differ."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..data.labels import label_codes
from ..report.markup import Axis, Frame, escaped, label, linear_axis, svg
from ..report.measures import MEASURES, Interval, intervals, resampled_means, resampling_units
from ..report.page import document
from ..report.sections.html import Section, figure, pair, scrolled, small
from . import _scores, _text

#: Sizes of the figure of differences: the width of the names, of the axis and of the numbers, and the height of a line.
NAMES, AXIS, NUMBERS, LINE = 190, 420, 240, 30


class Result(NamedTuple):
    """The probabilities of a classifier for the rows that are judged, and its measures."""

    proba: np.ndarray
    measures: dict[str, Any]


class Comparison:
    """Classifiers by name, with the classes of the rows that judge them."""

    def __init__(self, data: str, target: str, classes, y, n_folds: int, found: dict[str, Result], positive=None):
        self.data, self.target, self.classes, self.y = data, target, classes, y
        self.n_folds, self.found, self.positive = n_folds, found, positive

    def ranked(self) -> list[str]:
        """The names, the smallest log-loss first."""
        return sorted(self.found, key=lambda name: self.found[name].measures["log_loss"])

    @property
    def reference(self) -> str:
        """The classifier that the others are compared with: the first, which is kproba's if it takes part."""
        return next(iter(self.found))

    @cached_property
    def losses(self) -> dict[str, np.ndarray]:
        """The log-loss of each row."""
        codes = label_codes(self.y, self.classes)
        eps = np.finfo(float).eps
        return {n: -np.log(np.maximum(each.proba[np.arange(len(codes)), codes], eps)) for n, each in self.found.items()}

    def differences(self, seed: int = 0) -> dict[str, Interval]:
        """How much larger the log-loss of each other classifier is than the reference's, with a 90 % interval.

        The rows are resampled together, so that rows that are hard for all classifiers cancel.
        """
        others = [name for name in self.ranked() if name != self.reference]
        if not others:
            return {}
        gaps = np.column_stack([self.losses[name] - self.losses[self.reference] for name in others])
        unit = resampling_units(len(gaps), seed)
        sums = np.column_stack([np.bincount(unit, gap) for gap in gaps.T])
        drawn = resampled_means(sums, np.bincount(unit).astype(float), seed)
        return dict(zip(others, intervals(gaps.mean(axis=0), drawn)))


def page(compared: Comparison) -> str:
    """The comparison as an HTML document that works offline."""
    title = f"{compared.target}: classifiers compared"
    sections = [
        Section("measures", "Measures", _measures(compared)),
        Section("differences", "Differences in log-loss", _differences(compared)),
        Section("confusions", "Confusion matrices", _confusions(compared)),
    ]
    shown = "".join(section.html for section in sections if section.body)
    return document(title, f"<header><h1>{escaped(title)}</h1>{_verdict(compared)}</header>{shown}")


def _verdict(compared: Comparison) -> str:
    best, found = compared.ranked()[0], compared.differences()
    worse = sum(each.low > 0 for each in found.values())
    better = sum(each.high < 0 for each in found.values())
    said = f"<p>{label(best)} has the smallest log-loss, {_text.figure(compared.found[best].measures['log_loss'])}."
    if found:
        even = len(found) - worse - better
        said += (
            f" Compared with {label(compared.reference)}, {worse} of {len(found)} classifiers are clearly worse, "
            f"{better} clearly better, and {even} too close to tell."
        )
    rows = f"{len(compared.y):,} rows of {label(compared.data)}, each judged by models that were not fitted on it"
    return f"{said}</p>{small(f'{rows} ({compared.n_folds} folds). All use their default settings.')}"


def _measures(compared: Comparison) -> str:
    names = {("calibration_error" if name == "calibration" else name): words for name, words in MEASURES.items()}
    names |= _scores.DECISIONS | {"fit_seconds": "seconds per fit"}
    head = "".join(f'<th scope="col" role="columnheader">{words}</th>' for words in ("classifier", *names.values()))
    least = {name: _best(name, [each.measures[name] for each in compared.found.values()]) for name in names}
    lines = "".join(
        f'<tr role="row"><th scope="row" role="rowheader">{label(method)}</th>'
        + "".join(
            _cell(words, compared.found[method].measures[name], least[name], name) for name, words in names.items()
        )
        + "</tr>"
        for method in compared.ranked()
    )
    head = f'<thead><tr role="row">{head}</tr></thead>'
    table = f'<table class="scores many" role="table">{head}<tbody>{lines}</tbody></table>'
    of = escaped(_scores.averaged(compared.positive))
    note = small(f"AUC, average precision and F1 {of}. The best of each column is bold.")
    return scrolled(table, "Measures of all classifiers") + note


def _best(name: str, values: list[float]) -> float:
    return max(values) if name in _scores.DECISIONS else min(values)


def _cell(words: str, value: float, best: float, name: str) -> str:
    text = _text.percent(value) if name == "error" else f"{value:.2f}" if name == "fit_seconds" else f"{value:.4f}"
    return f'<td role="cell" data-name="{words}">{f"<strong>{text}</strong>" if value == best else text}</td>'


def _differences(compared: Comparison) -> str:
    found = compared.differences()
    if not found:
        return ""
    axis = linear_axis(
        min(0.0, *(each.low for each in found.values())), max(0.0, *(each.high for each in found.values())), ""
    )
    size = {"width": NAMES + AXIS + NUMBERS, "height": LINE * len(found) + 34, "left": NAMES, "right": NUMBERS}
    frame = Frame(axis, Axis(0.0, 1.0, ""), **size, top=8, bottom=26)
    lines = [_line(frame, k, name, each) for k, (name, each) in enumerate(found.items())]
    zero, about = frame.line([0.0, 0.0], [0.0, 1.0], "guide"), f"compared with {compared.reference}"
    title = "Differences in log-loss"
    drawing = svg("differences-drawing", frame.width, frame.height, title, about, frame.grid(), zero, *lines)
    caption = (
        f"How much larger the log-loss is than that of {label(compared.reference)}, with 90 % intervals of the paired "
        "differences, row by row. Right of the dotted line is worse; an interval that crosses it may be chance."
    )
    return figure(drawing, caption)


def _line(frame: Frame, place: int, name: str, each: Interval) -> str:
    """Name, interval and numbers of a classifier, coloured by whether it is clearly better or worse."""
    colour = "m3" if each.low > 0 else "m2" if each.high < 0 else "m1"
    y, (low, middle, high) = frame.top + LINE * (place + 0.5), frame.px([each.low, each.value, each.high])
    said = f"{each.value:+.4f} ({each.low:+.4f} … {each.high:+.4f})"
    return (
        f'<g class="model {colour}">'
        f'<text x="{frame.left - 10}" y="{y + 4:.1f}" text-anchor="end">{escaped(name)}</text>'
        f'<path class="span" d="M{low:.1f} {y:.1f}H{high:.1f}"/><circle cx="{middle:.1f}" cy="{y:.1f}" r="4.5"/>'
        f'<text x="{frame.width - frame.right + 8}" y="{y + 4:.1f}">{said}</text></g>'
    )


def _confusions(compared: Comparison) -> str:
    parts = []
    for name in compared.ranked():
        text = escaped(_scores.confusion_table(compared.classes, compared.found[name].measures["confusion"]))
        parts.append(f'<div><h3>{label(name)}</h3><pre class="scroll">{text.replace("␊", chr(10))}</pre></div>')
    return pair(*parts)
