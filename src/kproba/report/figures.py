"""Figures of a report as inline SVG and tables. Colours come from the page, so that they follow light and dark mode."""

from __future__ import annotations

import numpy as np

from ..decisions.risk_coverage import RiskCoverage
from .baselines import BASE_RATES
from .facts import ClassFacts, Facts, PathFacts, Score
from .learnt import Importances, LearningCurve
from .markup import Axis, Frame, count, escaped, label, linear_axis, log_axis, number, share, shortened, svg
from .measures import Histogram, Interval, Reliability, thinned
from .search_map import SearchPanel

#: Index of the last colour of a colour scale.
STEPS = 8
#: Largest number of classes in a confusion matrix; if there are more, those with the most errors are shown.
MOST_CLASSES = 40
CURVE_POINTS = 400
#: Height of the row of a model in the score figures.
ROW_HEIGHT = 26
#: Height of the row of a column in the figure of importances.
BAR_HEIGHT = 18
#: The error rate with the strongest colour is at least this.
FAINTEST = 0.1


def reliability_figure(found: Reliability, lowest: float) -> str:
    x = linear_axis(lowest, 1.0, "probability of the predicted class")
    frame = Frame(x, linear_axis(0.0, 1.0, "share of correct ones"), height=300)
    inside = np.mean((found.low <= found.confidence) & (found.confidence <= found.high))
    return frame.svg(
        "reliability",
        "Reliability diagram",
        f"{len(found.rows)} bins; the diagonal is inside the band for {share(float(inside))} of them.",
        frame.line([lowest, 1.0], [lowest, 1.0], "ideal"),
        frame.band(found.confidence, found.low, found.high, "band"),
        frame.line(found.confidence, found.frequency, "line"),
        *(_reliability_dot(frame, found, place) for place in range(len(found.rows))),
    )


def _reliability_dot(frame: Frame, found: Reliability, place: int) -> str:
    """The dot and the interval of one bin; the size of the dot reflects the number of rows."""
    predicted, observed, low, high = (
        float(part[place]) for part in (found.confidence, found.frequency, found.low, found.high)
    )
    x, (y, bottom, top) = float(frame.px(predicted)), frame.py([observed, low, high])
    radius = 2.5 + 3.5 * np.sqrt(found.rows[place] / found.rows.max())
    rows = count(int(found.rows[place]))
    tooltip = f"predicted {predicted:.3f}, observed {observed:.3f} ({low:.3f} to {high:.3f}), {rows} rows"
    return (
        f'<path class="whisker" d="M{x:.1f} {bottom:.1f}V{top:.1f}"/><circle class="dot" cx="{x:.1f}" cy="{y:.1f}" '
        f'r="{radius:.1f}"><title>{tooltip}</title></circle>'
    )


def histogram_figure(found: Histogram) -> str:
    """Counts on a square-root scale, because one bin often has nearly all rows and errors are few."""
    most = float(max(found.right.max(), found.wrong.max()))
    frame = Frame(linear_axis(found.edges[0], 1.0, "probability of the predicted class"), _root_axis(most), height=300)
    parts = []
    for low, high, right, wrong in zip(found.edges[:-1], found.edges[1:], found.right, found.wrong):
        if right + wrong:
            title = f"<title>{low:.3g} to {high:.3g}: {count(right)} right, {count(wrong)} wrong</title>"
            x, width = float(frame.px(low)), float(frame.px(high) - frame.px(low))
            parts.append(_bar(frame, x + 0.6, width - 1.2, right, "right", title))
            parts.append(_bar(frame, x + 0.27 * width, 0.46 * width, wrong, "wrong", title))
    about = f"{count(int(found.right.sum()))} rows are right and {count(int(found.wrong.sum()))} are wrong."
    return frame.svg("confidence", "Histogram of confidence", about, *parts)


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
    ends = f"{frame.px(0):.1f} {frame.px(1):.1f} {frame.py(0):.1f} {frame.py(highest):.1f} {highest:.6g}"
    marker = (
        f'<path class="guide" id="risk-guide" d="M{frame.px(1):.1f} {frame.py(0):.1f}V{frame.top}"/>'
        f'<circle class="marker" id="risk-marker" cx="{frame.px(1):.1f}" cy="{frame.py(found.error[-1]):.1f}" r="6"/>'
    )
    about = f"Error with all rows kept: {share(float(found.error[-1]))}. Mean over all coverages: {share(found.area)}."
    more = f' data-ends="{ends}"'
    return frame.svg("risk", "Risk–coverage curve", about, frame.line(x, y, "line"), marker, more=more)


def score_figure(scores: tuple[Score, ...], name: str, title: str) -> str:
    """One measure of all models with intervals, on an axis from zero that may end before the base rates."""
    found = [getattr(score, name) for score in scores]
    near = max(value.high for score, value in zip(scores, found) if score.name != BASE_RATES)
    far = max(value.high for value in found)
    end = (far if far < 3.0 * near else near * 1.25) or 1.0
    height = 8 + ROW_HEIGHT * len(found) + 26
    axis = linear_axis(0.0, end * 1.03, "", about=4)
    frame = Frame(axis, Axis(0.0, 1.0, ""), 360, height, left=122, right=16, top=8, bottom=26)
    rows = [_score_mark(frame, place, *pair) for place, pair in enumerate(zip(scores, found))]
    values = "; ".join(f"{score.name} {value.value:.3f}" for score, value in zip(scores, found))
    return svg(f"score-{name.replace('_', '-')}", 360, height, title, values, _score_ticks(frame), *rows)


def _score_mark(frame: Frame, place: int, score: Score, value: Interval) -> str:
    y, edge = frame.top + ROW_HEIGHT * (place + 0.5), frame.width - frame.right
    low, middle, high = frame.px([value.low, value.value, value.high])
    if middle > edge:
        mark = f'<path class="beyond" d="M{edge - 8:.1f} {y - 5:.1f}l9 5l-9 5z"/>'
        mark += f'<text x="{edge - 14:.1f}" y="{y + 4:.1f}" text-anchor="end">{value.value:.3f}</text>'
    else:
        mark = f'<path class="span" d="M{low:.1f} {y:.1f}H{min(max(high, low + 0.5), edge):.1f}"/>'
        mark += f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="4.5"/>'
    shown = score.name if place else "this model"
    name = f'<text x="{frame.left - 10}" y="{y + 4:.1f}" text-anchor="end">{escaped(shown)}</text>'
    return f'<g class="model m{place}">{name}{mark}</g>'


def _score_ticks(frame: Frame) -> str:
    base = frame.height - frame.bottom
    ticks = [
        f'<path class="grid" d="M{x:.1f} {frame.top}V{base}"/><text x="{x:.1f}" y="{base + 15}" text-anchor="middle">'
        f"{text}</text>"
        for x, text in ((float(frame.px(value)), text) for value, text in frame.x.ticks)
    ]
    return "".join(ticks)


def search_figures(panels: tuple[SearchPanel, ...]) -> list[str]:
    """Panels with a common colour or loss scale."""
    losses = np.concatenate([panel.loss for panel in panels])
    ends = float(losses.min()), float(losses.max())
    return [
        (_search_map if panel.is_map else _search_line)(f"search-{place}", panel, *ends)
        for place, panel in enumerate(panels)
    ]


def _search_map(identity: str, panel: SearchPanel, low: float, high: float) -> str:
    valid = ~np.isnan(panel.width) & (panel.ridge > 0)
    widths, ridges, losses = np.log10(panel.width[valid]), np.log10(panel.ridge[valid]), panel.loss[valid]
    columns = _cells(np.unique(widths.round(6)))
    cells, edges = [], []
    for width, (left, right) in columns.items():
        inside = np.isclose(widths, width, atol=2e-6)
        rows = _cells(np.unique(ridges[inside].round(6)))
        edges += [end for span in rows.values() for end in span]
        cells += [
            (left, right, *rows[float(r.round(6))], loss) for r, loss in zip(ridges[inside], losses[inside].tolist())
        ]
    spans = np.array(list(columns.values()))
    x = log_axis(10.0 ** spans.min(), 10.0 ** spans.max(), "width")
    frame = Frame(x, log_axis(10.0 ** min(edges), 10.0 ** max(edges), "ridge"), width=300, height=260)
    parts = [_candidate_cell(frame, *cell, low, high) for cell in cells]
    return frame.svg(
        identity, f"Losses with the {panel.title} kernel", _description(panel), *parts, _chosen(frame, panel)
    )


def _cells(values: np.ndarray) -> dict[float, tuple[float, float]]:
    """The interval around each of the sorted values, half way to its neighbours."""
    if len(values) == 1:
        return {float(values[0]): (float(values[0]) - 0.1, float(values[0]) + 0.1)}
    middle = (values[1:] + values[:-1]) / 2
    edges = np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])
    return {float(value): (float(a), float(b)) for value, a, b in zip(values, edges[:-1], edges[1:])}


def _candidate_cell(frame: Frame, left, right, bottom, top, loss: float, low: float, high: float) -> str:
    x0, x1 = frame.px([10.0**left, 10.0**right])
    y0, y1 = frame.py([10.0**bottom, 10.0**top])
    middle = 10.0 ** ((left + right) / 2), 10.0 ** ((bottom + top) / 2)
    step = _colour_index(loss, low, high)
    return (
        f'<rect class="cell q s{step}" x="{x0:.1f}" y="{y1:.1f}" width="{x1 - x0:.1f}" height="{y0 - y1:.1f}"><title>'
        f"width about {middle[0]:.3g}, ridge about {middle[1]:.2g}: {loss:.4f}</title></rect>"
    )


def _colour_index(loss: float, low: float, high: float) -> int:
    """Colour index of a loss, strongest for the smallest; the square root spreads the good candidates."""
    return round(STEPS * (1.0 - np.sqrt(np.log(loss / low) / np.log(high / low)))) if high > low > 0 else STEPS


def _description(panel: SearchPanel) -> str:
    best = int(panel.loss.argmin())
    at = "" if np.isnan(panel.width[best]) else f" at width {panel.width[best]:.3g}"
    return (
        f"{len(panel.loss)} candidates; the lowest loss is {panel.loss[best]:.4f}{at}, ridge {panel.ridge[best]:.2g}."
    )


def _chosen(frame: Frame, panel: SearchPanel) -> str:
    if panel.chosen is None or np.isnan(panel.chosen[0]) or panel.chosen[1] <= 0:
        return ""
    x, y = np.clip(frame.x.share(panel.chosen[0]), 0, 1), np.clip(frame.y.share(panel.chosen[1]), 0, 1)
    at = frame.left + x * (frame.width - frame.left - frame.right)
    up = frame.height - frame.bottom - y * (frame.height - frame.top - frame.bottom)
    return (
        f'<g class="chosen"><circle cx="{at:.1f}" cy="{up:.1f}" r="7"/><circle cx="{at:.1f}" cy="{up:.1f}" r="7"/></g>'
    )


def _search_line(identity: str, panel: SearchPanel, low: float, high: float) -> str:
    """Losses by width, or by ridge for kernels without a width."""
    name, x, loss, chosen = panel.line
    x, loss = x[x > 0], loss[x > 0]
    if not len(x):
        return ""
    frame = Frame(
        log_axis(x.min() / 1.2, x.max() * 1.2, name),
        linear_axis(0.0, high * 1.05, "leave-one-out loss", about=4),
        width=300,
        height=260,
    )
    dots = [f'<circle class="dot" cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in zip(frame.px(x), frame.py(loss))]
    parts = [frame.line(x, loss, "line"), *dots]
    if chosen is not None:
        parts.insert(0, frame.line([chosen, chosen], [0.0, high * 1.05], "guide"))
    return frame.svg(identity, f"Losses with the {panel.title} kernel", _description(panel), *parts)


def search_legend(panels: tuple[SearchPanel, ...]) -> str:
    losses = np.concatenate([panel.loss for panel in panels])
    low, high = float(losses.min()), float(losses.max())
    middle = low * (high / low) ** 0.25 if low > 0 else (low + high) / 2
    swatches = [f'<span class="swatch q s{step}"></span>' for step in range(STEPS, -1, -1)]
    half = (len(swatches) + 1) // 2
    return (
        f'<p class="legend"><span>loss {low:.3f}</span><span class="ramp">{"".join(swatches[:half])}</span>'
        f'<span>{middle:.3f}</span><span class="ramp">{"".join(swatches[half:])}</span><span>{high:.3f}</span></p>'
    )


def path_figures(path: PathFacts) -> list[str]:
    """Losses on the tuning rows and number of import points by λ (2001 Fig. 2)."""
    x = log_axis(path.ridge.min(), path.ridge.max(), "ridge λ")
    highest = float(max(path.log_loss.max(), path.error.max())) * 1.05
    first = Frame(x, linear_axis(0.0, highest, "tuning rows"), width=300, height=260)
    second = Frame(x, linear_axis(0.0, float(path.n_points.max()) * 1.05, "import points"), width=300, height=260)
    guides = [frame.line([path.chosen] * 2, [0.0, frame.y.high], "guide") for frame in (first, second)]
    best = f"The chosen λ is {path.chosen:.3g}."
    lines = first.line(path.ridge, path.log_loss, "line") + first.line(path.ridge, path.error, "line second")
    end, last = first.px(path.ridge[0]), first.py([path.log_loss[0], path.error[0]])
    names = "".join(
        f'<text x="{end:.1f}" y="{y - 5:.1f}" text-anchor="end">{name}</text>'
        for y, name in zip(last, ("log-loss", "error"))
    )
    points = second.line(path.ridge, path.n_points, "line")
    return [
        first.svg("path-loss", "Losses along the path", best, guides[0], lines, names),
        second.svg("path-points", "Import points along the path", best, guides[1], points),
    ]


def importance_figure(found: Importances) -> str:
    """The share of each column, with its range over the folds."""
    height = 8 + BAR_HEIGHT * len(found.names) + 40
    end = float(found.high.max()) * 1.03 or 1.0
    axis = linear_axis(0.0, end, "share, %", percent=True, about=4)
    frame = Frame(axis, Axis(0.0, 1.0, ""), 360, height, left=122, right=16, top=8, bottom=40)
    bars = [_importance_bar(frame, place, found) for place in range(len(found.names))]
    base, middle = height - frame.bottom, (frame.left + frame.width - frame.right) / 2
    below = f'<text class="name" x="{middle:.1f}" y="{base + 32}" text-anchor="middle">{axis.name}</text>'
    about = f"{found.names[0]} has the largest share, {share(float(found.share[0]))}."
    return svg("importances", 360, height, "Importances of the columns", about, _score_ticks(frame), *bars, below)


def _importance_bar(frame: Frame, place: int, found: Importances) -> str:
    name, y = found.names[place], frame.top + BAR_HEIGHT * (place + 0.5)
    start, low, middle, high = frame.px([0.0, found.low[place], found.share[place], found.high[place]])
    values = (share(float(part[place])) for part in (found.share, found.low, found.high))
    title = "<title>{}: {} ({} to {} over the folds)</title>".format(escaped(shortened(name, 100)), *values)
    return (
        f'<g><text x="{frame.left - 8}" y="{y + 4:.1f}" text-anchor="end">{escaped(shortened(name, 18))}</text>'
        f'<rect class="right" x="{start:.1f}" y="{y - 5:.1f}" width="{middle - start:.1f}" height="10">{title}</rect>'
        f'<path class="reach" d="M{low:.1f} {y:.1f}H{high:.1f}M{low:.1f} {y - 3:.1f}v6M{high:.1f} {y - 3:.1f}v6"/></g>'
    )


def curve_figure(curve: LearningCurve) -> str:
    """Losses by number of steps; the dotted line marks the chosen number."""
    losses = {"line": curve.leave_one_out, "line second": curve.out_of_fold}
    finite = np.concatenate([loss[np.isfinite(loss)] for loss in losses.values()])
    margin = 0.08 * float(np.ptp(finite)) or 0.01
    y = linear_axis(max(0.0, float(finite.min()) - margin), float(finite.max()) + margin, "log-loss")
    x = linear_axis(float(curve.steps[0]), float(curve.steps[-1]), "steps")
    frame = Frame(x, y, height=300)
    guide = frame.line([curve.chosen] * 2, [y.low, y.high], "guide")
    lines = [
        frame.line(curve.steps[np.isfinite(loss)], loss[np.isfinite(loss)], css)
        for css, loss in losses.items()
        if np.isfinite(loss).any()
    ]
    about = f"{curve.chosen} steps were taken; the out-of-fold loss is then {np.nanmin(curve.out_of_fold):.4f}."
    return frame.svg("learning", "Losses by number of steps", about, guide, *lines)


def class_figures(facts: Facts) -> tuple[str, str]:
    """ROC and precision–recall curves of all classes, with one of them highlighted."""
    chosen = first_class(facts)
    roc = Frame(linear_axis(0.0, 1.0, "false positive rate"), linear_axis(0.0, 1.0, "true positive rate"), height=320)
    recall = Frame(linear_axis(0.0, 1.0, "recall"), linear_axis(0.0, 1.0, "precision"), height=320)
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
    """The class highlighted at first: the second of two, or the one with the lowest average precision."""
    if len(facts.by_class) == 2:
        return 1
    areas = [one.average_precision for one in facts.by_class]
    return int(np.nanargmin(areas)) if not np.isnan(areas).all() else 0


def confusion_table(facts: Facts) -> str:
    shown = shown_classes(facts.confusion)
    part = facts.confusion[np.ix_(shown, shown)]
    of_row = facts.confusion.sum(axis=1)[shown]
    shares = part / np.maximum(of_row, 1)[:, None]
    off = shares * (1 - np.eye(len(shown)))
    worst = max(off.max(), FAINTEST)
    names = [facts.classes[k] for k in shown]
    head = "".join(f'<th scope="col"><span>{label(name, 16)}</span></th>' for name in names)
    body = []
    for i, name in enumerate(names):
        cells = "".join(_cell(part[i, j], shares[i, j], off[i, j] / worst, i == j) for j in range(len(names)))
        body.append(f'<tr><th scope="row">{label(name, 16)}</th>{cells}</tr>')
    css = "few" if len(names) <= 4 else "many" if len(names) > 12 else "some"
    css += " short" if max(map(len, names)) <= 2 else ""
    return (
        f'<table id="confusion" class="confusion {css}"><caption class="unseen">Confusion matrix: rows are the true '
        f'classes, columns the predicted ones</caption><thead><tr><th scope="col"><span class="unseen">true class'
        f"</span></th>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def _cell(rows: int, part: float, strength: float, is_right: bool) -> str:
    if not rows:
        return "<td></td>"
    ramp, step = ("q", round(STEPS * part)) if is_right else ("w", max(1, round(STEPS * strength)))
    return f'<td class="{ramp} s{step}" title="{100 * part:.1f} % of the row">{rows}</td>'


def shown_classes(confusion: np.ndarray) -> np.ndarray:
    """All classes, or those involved in the most errors."""
    if len(confusion) <= MOST_CLASSES:
        return np.arange(len(confusion))
    wrong = confusion.sum(axis=0) + confusion.sum(axis=1) - 2 * np.diagonal(confusion)
    return np.sort(np.argsort(-wrong, kind="stable")[:MOST_CLASSES])


def class_option(place: int, one: ClassFacts, chosen: int) -> str:
    state = " selected" if place == chosen else ""
    state += "" if one.roc is not None else " disabled"
    return f'<option value="{place}"{state}>{escaped(one.name[:60])}</option>'
