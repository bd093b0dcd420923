"""Rejecting uncertain rows: how many errors remain among the rows kept, and what that costs."""

from ..facts import Facts
from ..markup import amount, count, number, share
from .curves import risk_figure
from .html import Section, cost_inputs, figure, numbers, pair

#: Initial threshold and costs; for a calibrated model, the best threshold at these costs is 1 − 1/10.
THRESHOLD, COST_OF_ERROR, COST_OF_REJECTION = 0.9, 10, 1


def rejection(facts: Facts) -> Section:
    title = "Rejecting uncertain rows"
    if facts.positive is not None and facts.positive.is_rare:
        return Section("reject", title, "")  # nearly all rows are certain, whatever the rare class does
    caption = (
        "The most confident predictions are kept; the other rows are rejected, for example for a person to decide. If "
        "the curve falls to the left, the probabilities show which predictions are safe. If they are calibrated, the "
        "cheapest threshold is close to 1 − cost of a rejection / cost of an error. A threshold chosen on these rows "
        "does slightly worse on new rows."
    )
    parts = pair(
        figure(risk_figure(facts.risk), "", "Risk and coverage"),
        f'<div class="panel">{_controls(facts)}{_results(facts)}</div>',
    )
    return Section("reject", title, f'{parts}<p class="small below">{caption}</p>')


def _controls(facts: Facts) -> str:
    step = "any" if facts.risk.unit < 1e-5 else f"{facts.risk.unit:g}"
    costs = (
        ("cost-error", "Cost of an error", COST_OF_ERROR),
        ("cost-rejection", "Cost of a rejection", COST_OF_REJECTION),
    )
    return (
        '<div class="controls"><label for="threshold">Keep predictions with a probability of at least</label>'
        f'<div class="together"><input type="range" id="threshold" min="0" max="1" step="0.001" value="{THRESHOLD}" '
        f'aria-describedby="decision"><input type="number" id="exact" min="0" max="1.0001" step="{step}" '
        f'value="{THRESHOLD}" aria-label="Exact threshold"></div><div class="together">{cost_inputs(costs)}</div>'
        '<button type="button" class="action" id="cheapest">Go to the cheapest threshold</button></div>'
    )


def _results(facts: Facts) -> str:
    """The numbers at the initial threshold; the script updates them."""
    n, (kept, wrong) = facts.risk.n, facts.risk.at(THRESHOLD)
    cost = wrong * COST_OF_ERROR + (n - kept) * COST_OF_REJECTION
    entries = (
        ("coverage", "coverage", share(kept / n)),
        ("risk-kept", "error among rows kept", share(wrong / kept) if kept else "–"),
        ("mistakes", "errors among rows kept", count(wrong)),
        ("rejected", "rejected rows", count(n - kept)),
        ("cost", "cost per row", number(cost / n)),
        ("cost-all", "total cost", amount(cost)),
    )
    return (
        f'{numbers(entries)}<output id="decision" class="small" for="threshold exact cost-error '
        'cost-rejection"></output><noscript><p class="small">The slider needs JavaScript; the numbers above are for a '
        "threshold of 0.9.</p></noscript>"
    )
