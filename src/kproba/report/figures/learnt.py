"""What was learnt: importances of columns, and losses by number of steps."""

from __future__ import annotations

import numpy as np

from ..learnt import Importances, LearningCurve
from ..markup import Axis, Frame, escaped, linear_axis, number, share, shortened, svg
from .scores import score_ticks

#: Height of the row of a column.
BAR_HEIGHT = 18


def importance_figure(found: Importances, identity: str) -> str:
    """The share of each column, with its range."""
    height = 8 + BAR_HEIGHT * len(found.names) + 40
    end = float(found.high.max()) * 1.03 or 1.0
    axis = linear_axis(0.0, end, "share, %", percent=True, about=4)
    frame = Frame(axis, Axis(0.0, 1.0, ""), 360, height, left=122, right=16, top=8, bottom=40)
    bars = [_importance_bar(frame, place, found) for place in range(len(found.names))]
    base, middle = height - frame.bottom, (frame.left + frame.width - frame.right) / 2
    below = f'<text class="name" x="{middle:.1f}" y="{base + 32}" text-anchor="middle">{axis.name}</text>'
    about = f"{found.names[0]} has the largest share, {share(float(found.share[0]))}."
    return svg(identity, 360, height, "Importances of the columns", about, score_ticks(frame), *bars, below)


def _importance_bar(frame: Frame, place: int, found: Importances) -> str:
    name, y = found.names[place], frame.top + BAR_HEIGHT * (place + 0.5)
    start, low, middle, high = frame.px([0.0, found.low[place], found.share[place], found.high[place]])
    values = (share(float(part[place])) for part in (found.share, found.low, found.high))
    title = "<title>{}: {} ({} to {})</title>".format(escaped(shortened(name, 100)), *values)
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
    about = (
        f"{curve.chosen} steps were taken; the out-of-fold loss is then {number(float(np.nanmin(curve.out_of_fold)))}."
    )
    return frame.svg("learning", "Losses by number of steps", about, guide, *lines)
