"""Classifiers compared on the same rows, as an HTML page: what they achieve, and by how much they differ."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..data.labels import label_codes
from ..report.markup import escaped, label
from ..report.measures import MEASURES, Interval, intervals, resampled_means, resampling_units
from . import _scores, _text

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
#: Sizes of the figure of differences: the width of the names and of the axis, and the height of a line.
NAMES, AXIS, LINE = 190, 420, 30
STYLE = """
:root { color-scheme: light dark; --ink: #1b2430; --soft: #55606f; --line: #dde1e6; --page: #ffffff; --good: #0f8a72;
  --bad: #c2500c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --soft: #a0acba; --line: #303a47; --page: #11151b;
  --good: #57d3b6; --bad: #ff9a62; } }
body { margin: 0 auto; max-width: 1040px; padding: 1.5rem 1rem 3rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; } h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; }
.scroll { overflow-x: auto; } .soft, figcaption { color: var(--soft); } figure { margin: 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: bottom; }
td { white-space: nowrap; } .many { display: flex; flex-wrap: wrap; gap: 0 3rem; }
h3 { font-size: 1rem; margin: 1rem 0 0; }
th:first-child, td:first-child { text-align: left; } thead th { color: var(--soft); font-weight: 600; }
.best { font-weight: 700; } svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 13px; }
.zero { stroke: var(--soft); stroke-dasharray: 3 3; } .bar { stroke-width: 2; }
.good { stroke: var(--good); fill: var(--good); } .bad { stroke: var(--bad); fill: var(--bad); }
.even { stroke: var(--soft); fill: var(--soft); }
@media print { body { max-width: none; } h2, figure, table { break-inside: avoid; } }
"""


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
    body = [f"<h1>{escaped(title)}</h1>", _verdict(compared), _measures(compared), _differences(compared)]
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escaped(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<link rel="icon" href="data:,">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n{''.join([*body, _confusions(compared)])}</main>\n</body>\n</html>\n"
    )


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
    return f'{said}</p>\n<p class="soft">{rows} ({compared.n_folds} folds). All use their default settings.</p>\n'


def _measures(compared: Comparison) -> str:
    names = {("calibration_error" if name == "calibration" else name): words for name, words in MEASURES.items()}
    names |= _scores.DECISIONS | {"fit_seconds": "seconds per fit"}
    head = "".join(f"<th>{words}</th>" for words in ("", *names.values()))
    least = {name: _best(name, [each.measures[name] for each in compared.found.values()]) for name in names}
    lines = [
        f"<tr><td>{label(method)}</td>{''.join(_cell(about[name], least[name], name) for name in names)}</tr>"
        for method, about in ((method, compared.found[method].measures) for method in compared.ranked())
    ]
    of = escaped(_scores.averaged(compared.positive))
    note = f"AUC, average precision and F1 {of}. The best of each column is bold."
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    return f'<h2>Measures</h2>\n{table}\n<p class="soft">{note}</p>\n'


def _best(name: str, values: list[float]) -> float:
    return max(values) if name in _scores.DECISIONS else min(values)


def _cell(value: float, best: float, name: str) -> str:
    text = _text.percent(value) if name == "error" else f"{value:.2f}" if name == "fit_seconds" else f"{value:.4f}"
    return f"<td{' class=best' if value == best else ''}>{text}</td>"


def _differences(compared: Comparison) -> str:
    found = compared.differences()
    if not found:
        return ""
    low, high = min(0.0, *(each.low for each in found.values())), max(0.0, *(each.high for each in found.values()))
    low, high = (low, high) if high > low else (-1.0, 1.0)

    def x(value: float) -> float:
        return NAMES + 10 + (value - low) / (high - low) * (AXIS - 20)

    height = LINE * (len(found) + 1)
    lines = "".join(_line(name, each, LINE * (k + 0.5), x) for k, (name, each) in enumerate(found.items()))
    zero = f'<line class="zero" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="0" y2="{height - LINE}"/>'
    width = NAMES + AXIS + 240
    figure = (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="differences">{zero}{lines}</svg>'
    )
    caption = (
        f"How much larger the log-loss is than that of {label(compared.reference)}, with 90 % intervals of the paired "
        "differences, row by row. Right of the dashed line is worse; an interval that crosses it may be chance."
    )
    return f"<h2>Differences in log-loss</h2>\n<figure>{figure}<figcaption>{caption}</figcaption></figure>\n"


def _line(name: str, each: Interval, y: float, x) -> str:
    kind = "bad" if each.low > 0 else "good" if each.high < 0 else "even"
    said = f"{each.value:+.4f} ({each.low:+.4f} … {each.high:+.4f})"
    return (
        f'<text x="0" y="{y + 4:.1f}">{escaped(name)}</text>'
        f'<line class="bar {kind}" x1="{x(each.low):.1f}" x2="{x(each.high):.1f}" y1="{y}" y2="{y}"/>'
        f'<circle class="{kind}" cx="{x(each.value):.1f}" cy="{y}" r="4"/>'
        f'<text x="{NAMES + AXIS + 5}" y="{y + 4:.1f}">{said}</text>'
    )


def _confusions(compared: Comparison) -> str:
    parts = []
    for name in compared.ranked():
        text = escaped(_scores.confusion_table(compared.classes, compared.found[name].measures["confusion"]))
        parts.append(f'<div><h3>{label(name)}</h3><pre class="scroll">{text.replace("␊", chr(10))}</pre></div>')
    return f'<h2>Confusion matrices</h2>\n<div class="many">{"".join(parts)}</div>\n'
