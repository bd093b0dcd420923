"""Curves over thresholds: risk and coverage, ROC, precision and recall."""

import numpy as np

from ...decisions.risk_coverage import RiskCoverage
from ..classes import ClassFacts
from ..facts import Facts
from ..markup import Frame, linear_axis, number, share
from ..measures import thinned
from ..two_classes import PositiveFacts

#: Number of points of a curve, and of classes that a description lists.
CURVE_POINTS, MOST_CLASSES = 400, 40


def risk_figure(found: RiskCoverage) -> str:
    """The curve and a marker, which the script moves using the coordinates in the data attributes."""
    stable = found.coverage >= min(0.02, found.coverage[-1])
    highest = max(float(found.error[stable].max()) * 1.15, 0.01)
    frame = Frame(
        linear_axis(0.0, 1.0, "coverage: share of rows kept, %", percent=True),
        linear_axis(0.0, highest, "error among rows kept, %", percent=True),
        height=300,
    )
    x, y = thinned(
        np.append(0.0, found.coverage), np.append(found.error[0], found.error).clip(0, highest), CURVE_POINTS
    )
    guide = f'<path class="guide" id="risk-guide" d="M{frame.px(1):.1f} {frame.py(0):.1f}V{frame.top}"/>'
    marker = guide + _marker("risk-marker", frame, 1, found.error[-1])
    about = f"Error with all rows kept: {share(float(found.error[-1]))}. Mean over all coverages: {share(found.area)}."
    return frame.svg("risk", "Risk–coverage curve", about, frame.line(x, y, "line"), marker, more=_ends(frame))


def positive_figures(found: PositiveFacts, one: ClassFacts, threshold: float) -> tuple[str, str]:
    """ROC and precision–recall curve of the positive class, with the threshold marked; the script moves the markers."""
    assert one.roc is not None and one.precision_recall is not None
    highest = _highest_precision(*one.precision_recall)
    roc, recall = _roc_frame(), _recall_frame(highest)
    x, y = one.precision_recall
    flagged, hits = found.thresholds.at(threshold)
    rate, false = hits / found.rows, (flagged - hits) / (found.thresholds.n_rows - found.rows)
    base = recall.line([0.0, 1.0], [found.share, found.share], "base chosen")
    return (
        roc.svg(
            "roc",
            f"ROC curve of {found.name}",
            f"Area {number(one.auc)}.",
            roc.line([0, 1], [0, 1], "ideal"),
            roc.line(*one.roc, "curve chosen"),
            _marker("roc-marker", roc, false, rate),
            more=_ends(roc),
        ),
        recall.svg(
            "precision-recall",
            f"Precision–recall curve of {found.name}",
            f"Average precision {number(one.average_precision)}.",
            base,
            recall.line(x, y.clip(0.0, highest), "curve chosen"),
            _marker("recall-marker", recall, rate, min(hits / flagged if flagged else 1.0, highest)),
            more=_ends(recall),
        ),
    )


def _highest_precision(recall: np.ndarray, precision: np.ndarray) -> float:
    """The end of the precision axis: below 1 if a rare class is found with little precision, except at the very top."""
    most = float(precision[recall > 0.05].max(initial=0.0))
    return 1.0 if most > 0.4 else 1.2 * most


def _ends(frame: Frame) -> str:
    """Where the axes end, for the script: from 0 to 1 on x, to the last number on y."""
    ends = (*frame.px([0.0, 1.0]), *frame.py([0.0, frame.y.high]))
    return f' data-ends="{" ".join(f"{end:.1f}" for end in ends)} {frame.y.high:.6g}"'


def _marker(identity: str, frame: Frame, x: float, y: float) -> str:
    return f'<circle class="marker" id="{identity}" cx="{frame.px(x):.1f}" cy="{frame.py(y):.1f}" r="6"/>'


def _roc_frame() -> Frame:
    return Frame(linear_axis(0.0, 1.0, "false positive rate"), linear_axis(0.0, 1.0, "true positive rate"), height=320)


def _recall_frame(highest: float = 1.0) -> Frame:
    return Frame(linear_axis(0.0, 1.0, "recall"), linear_axis(0.0, highest, "precision"), height=320)


def class_figures(facts: Facts) -> tuple[str, str]:
    """ROC and precision–recall curves of all classes, with one of them highlighted."""
    chosen = first_class(facts)
    roc, recall = _roc_frame(), _recall_frame()
    lines: list[str] = []
    below: list[str] = []
    for place, one in enumerate(facts.by_class):
        css = "curve chosen" if place == chosen else "curve"
        if one.roc is not None and one.precision_recall is not None:
            mark, base = f' data-class="{place}"', one.rows / facts.n_rows
            lines.append(roc.line(*one.roc, css, mark))
            below.append(recall.line([0.0, 1.0], [base, base], css.replace("curve", "base"), mark))
            below.append(recall.line(*one.precision_recall, css, mark))
    areas = "; ".join(f"{one.name}: {number(one.auc)}" for one in facts.by_class[:MOST_CLASSES])
    average = "; ".join(f"{one.name}: {number(one.average_precision)}" for one in facts.by_class[:MOST_CLASSES])
    return (
        roc.svg("roc", "ROC curves by class", f"Areas: {areas}", roc.line([0, 1], [0, 1], "ideal"), *lines),
        recall.svg("precision-recall", "Precision–recall curves by class", f"Average precision: {average}", *below),
    )


def first_class(facts: Facts) -> int:
    """The class highlighted at first: the one with the lowest average precision."""
    areas = [one.average_precision for one in facts.by_class]
    return int(np.nanargmin(areas)) if not np.isnan(areas).all() else 0
