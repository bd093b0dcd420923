"""Reasons: the columns that the predictions depend on."""

from ..facts import Facts
from ..fitted import Importances
from ..markup import Axis, Frame, count, escaped, linear_axis, share, shortened, svg
from .html import Section, figure, pair

#: Title and caption of each figure.
FIGURES = {
    "contributions": (
        "What moves the predictions",
        "The share of each column in what moves the scores of these rows: the mean of its absolute Shapley values. "
        "Whiskers are 90 % intervals from resampled rows.",
    ),
    "importances": (
        "Importances of the columns",
        "The share of each column in the distances of the kernel. Whiskers are the range over kernels learnt without "
        "one of the folds each.",
    ),
}
#: Height of the row of a column.
BAR_HEIGHT = 18


def reasons(facts: Facts) -> Section:
    parts = [_figure(name, found) for name in FIGURES if (found := getattr(facts, name)) is not None]
    return Section("reasons", "Reasons", pair(*parts) if parts else "")


def _figure(name: str, found: Importances) -> str:
    (title, caption), n_shown = FIGURES[name], len(found.names)
    which = f"The {n_shown} most important of {count(found.n_columns)} columns. " if n_shown < found.n_columns else ""
    return figure(importance_figure(found, name), which + caption, title)


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
    return svg(identity, 360, height, "Importances of the columns", about, frame.grid(), *bars, below)


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
