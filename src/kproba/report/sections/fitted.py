"""The fitted model: its parameters, how its kernel was learnt, and the candidates of the search."""

import numpy as np

from ..facts import Facts
from ..fitted import LearningCurve, PathFacts, SearchPanel
from ..markup import Frame, count, escaped, label, linear_axis, log_axis, number
from .html import STEPS, Section, figure


def fitted(facts: Facts) -> Section:
    pairs = "".join(f"<div><dt>{escaped(name)}</dt><dd>{label(text, 200)}</dd></div>" for name, text in facts.fitted)
    body = f'<dl class="facts">{pairs}</dl>{_curve(facts)}{_search(facts)}{_path(facts)}'
    return Section("fitted", "Fitted model", body)


def _curve(facts: Facts) -> str:
    if facts.curve is None:
        return ""
    caption = (
        'The <span class="ink right">leave-one-out loss</span> of samples of rows is what the steps minimise, and the '
        '<span class="ink wrong">out-of-fold loss</span>, of rows that took no part in them, decides how many to take: '
        "the dotted line. The first number of steps weights all columns equally."
    )
    return figure(curve_figure(facts.curve), caption, "Losses by number of steps")


def _search(facts: Facts) -> str:
    if not facts.panels:
        return ""
    n = sum(len(panel.loss) for panel in facts.panels)
    drawings = "".join(
        f"<div><h4>{escaped(panel.title)}</h4>{drawing}</div>"
        for panel, drawing in zip(facts.panels, search_figures(facts.panels))
        if drawing
    )
    is_map = any(panel.is_map for panel in facts.panels)
    caption = (
        f"{count(n)} candidates were compared by leave-one-out or on held-out training rows. "
        + ("Each cell is one candidate, coloured by its loss; " if is_map else "Each point is one candidate; ")
        + ("the ring marks the choice. " if is_map else "the dotted line marks the choice. ")
        + "Widths refer to scaled columns. If a candidate was evaluated again on more rows, the last loss is shown."
    )
    legend = search_legend(facts.panels) if is_map else ""
    return figure(f'<div class="panels">{drawings}</div>{legend}', caption, "Hyperparameter search")


def _path(facts: Facts) -> str:
    if facts.path is None:
        return ""
    drawings = "".join(f"<div>{drawing}</div>" for drawing in path_figures(facts.path))
    caption = (
        "The path goes from the largest ridge λ (right) to the smallest. The dotted line marks the λ chosen on "
        "held-out tuning rows."
    )
    return figure(f'<div class="panels">{drawings}</div>', caption, "Number of import points")


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
    about = (
        f"{curve.chosen} steps were taken; the out-of-fold loss is then {number(float(np.nanmin(curve.out_of_fold)))}."
    )
    return frame.svg("learning", "Losses by number of steps", about, guide, *lines)


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
    # strongest for the smallest loss; the square root spreads the good candidates
    step = round(STEPS * (1.0 - np.sqrt(np.log(loss / low) / np.log(high / low)))) if high > low > 0 else STEPS
    return (
        f'<rect class="cell q s{step}" x="{x0:.1f}" y="{y1:.1f}" width="{x1 - x0:.1f}" height="{y0 - y1:.1f}"><title>'
        f"width about {middle[0]:.3g}, ridge about {middle[1]:.2g}: {number(loss, 4)}</title></rect>"
    )


def _description(panel: SearchPanel) -> str:
    best = int(panel.loss.argmin())
    at = "" if np.isnan(panel.width[best]) else f" at width {panel.width[best]:.3g}"
    lowest = number(float(panel.loss[best]), 4)
    return f"{len(panel.loss)} candidates; the lowest loss is {lowest}{at}, ridge {panel.ridge[best]:.2g}."


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
        f'<p class="legend"><span>loss {number(low)}</span><span class="ramp">{"".join(swatches[:half])}</span>'
        f'<span>{number(middle)}</span><span class="ramp">{"".join(swatches[half:])}</span>'
        f"<span>{number(high)}</span></p>"
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
