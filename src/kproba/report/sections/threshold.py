"""Two classes: a threshold for the positive one, with its costs, confusion matrix, and place on the curves."""

import numpy as np

from ..facts import Facts
from ..markup import amount, count, escaped, label, number, share
from ..two_classes import UNIT, PositiveFacts
from .curves import positive_figures
from .html import Section, cost_inputs, figure, numbers, pair, small


def decisions(facts: Facts) -> Section:
    found = facts.positive
    if found is None:
        return Section("decide", "Decisions", "")
    name, one = label(found.name, 24), facts.by_class[found.place]
    body = small(
        f"Rows with a probability of {name} of at least the threshold are flagged as {name}. Choose the threshold by "
        "what mistakes cost. A threshold chosen on these rows does slightly worse on new rows."
    )
    body += pair(f'<div class="panel">{_controls(found)}</div>', f'<div class="panel">{_results(found)}</div>')
    if one.roc is not None:
        roc, recall = positive_figures(found, one, first_threshold(found))
        body += pair(
            figure(roc, f"Area under the curve: {number(one.auc)}. The dot is the threshold above.", "ROC"),
            figure(
                recall,
                f"Average precision: {number(one.average_precision)}. The dashed line is the share of {name}, which "
                "is the precision of guessing.",
                "Precision–recall",
            ),
        )
    return Section("decide", "Decisions", body)


def first_costs(found: PositiveFacts) -> tuple[float, float]:
    """Costs of a false alarm and of a miss to start with: equal ones, or those that make up for a rare class."""
    return (1.0, 10.0 ** round(-np.log10(found.share))) if found.is_rare else (1.0, 1.0)


def first_threshold(found: PositiveFacts) -> float:
    """The cheapest threshold of calibrated probabilities at these costs: false alarm / (false alarm + miss)."""
    alarm, miss = first_costs(found)
    return float(f"{alarm / (alarm + miss):.2g}")


def _controls(found: PositiveFacts) -> str:
    """The slider is logarithmic for a rare class, whose thresholds are small."""
    value, (alarm, miss) = first_threshold(found), first_costs(found)
    lowest = np.log10(found.histogram.edges[0]) if found.is_rare else 0.0
    ends = f'min="{lowest:g}" max="0" step="0.01" data-log="1"' if found.is_rare else 'min="0" max="1" step="0.001"'
    place = np.log10(value) if found.is_rare else value
    costs = (("cost-alarm", "Cost of a false alarm", alarm), ("cost-miss", "Cost of a miss", miss))
    note = " At first, the costs make up for the rarity of the class; enter your own." if found.is_rare else ""
    return (
        f'<div class="controls"><label for="cut">Flag rows as {label(found.name, 24)} with a probability of at least'
        "</label>"
        f'<div class="together"><input type="range" id="cut" {ends} value="{place:.4g}" aria-describedby="cut-said">'
        f'<input type="number" id="cut-exact" min="0" max="1.0001" step="{UNIT:g}" value="{value:g}" '
        f'aria-label="Exact threshold for {escaped(found.name[:60])}"></div>'
        f'<div class="together">{cost_inputs(costs)}</div>'
        '<button type="button" class="action" id="cut-cheapest">Go to the cheapest threshold</button></div>'
        f'<p class="small">If the probabilities are calibrated, the cheapest threshold is near cost of a false alarm '
        f'/ (cost of a false alarm + cost of a miss) = <span id="cut-best">{number(alarm / (alarm + miss))}</span>.'
        f"{note}</p>"
    )


def _results(found: PositiveFacts) -> str:
    """The matrix and numbers at the first threshold; the script updates them."""
    threshold, (alarm, miss) = first_threshold(found), first_costs(found)
    flagged, hits = found.thresholds.at(threshold)
    n, missed, alarms = facts_counts(found, flagged, hits)
    cost = alarm * alarms + miss * missed
    negatives = n - found.rows
    entries = (
        ("cut-recall", "recall", share(hits / found.rows) if found.rows else "–"),
        ("cut-precision", "precision", share(hits / flagged) if flagged else "–"),
        ("cut-alarms", "false alarm rate", share(alarms / negatives) if negatives else "–"),
        ("cut-flagged", "flagged rows", count(flagged)),
        ("cut-cost", "cost per row", number(cost / n)),
        ("cut-cost-all", "total cost", amount(cost)),
    )
    return (
        f"{_matrix(found, flagged, hits)}{numbers(entries)}"
        '<output id="cut-said" class="small" for="cut cut-exact cost-alarm cost-miss"></output><noscript>'
        f'<p class="small">The slider needs JavaScript; the numbers above are for a threshold of {threshold:g}.</p>'
        "</noscript>"
    )


def facts_counts(found: PositiveFacts, flagged: int, hits: int) -> tuple[int, int, int]:
    """Number of rows, missed positive rows, and false alarms."""
    return found.thresholds.n_rows, found.rows - hits, flagged - hits


def _matrix(found: PositiveFacts, flagged: int, hits: int) -> str:
    n, missed, alarms = facts_counts(found, flagged, hits)
    right = n - found.rows - alarms
    name, other = label(found.name, 16), label(found.other, 16)
    rows = (
        (name, ("q", "hits", hits), ("w", "missed", missed)),
        (other, ("w", "alarms", alarms), ("q", "right", right)),
    )
    body = "".join(
        f'<tr><th scope="row">{true}</th>'
        + "".join(f'<td class="{css} s2" id="cut-n-{key}">{count(value)}</td>' for css, key, value in cells)
        + "</tr>"
        for true, *cells in rows
    )
    return (
        '<table id="confusion" class="confusion few"><caption>Rows are true classes, columns what the threshold says'
        f'</caption><thead><tr><th scope="col"><span class="unseen">true class</span></th><th scope="col">{name}</th>'
        f'<th scope="col">{other}</th></tr></thead><tbody>{body}</tbody></table>'
    )
