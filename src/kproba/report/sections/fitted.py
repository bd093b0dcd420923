"""The fitted model: its parameters, how its kernel was learnt, and the candidates of the search."""

from __future__ import annotations

from ..facts import Facts
from ..figures.learnt import curve_figure
from ..figures.search import path_figures, search_figures, search_legend
from ..markup import count, escaped, label
from .html import Section, figure


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
