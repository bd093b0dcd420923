"""The verdict: what the numbers of a report mean, in a few plain sentences."""

from typing import NamedTuple

import numpy as np

from .baselines import REGRESSION
from .facts import Facts, Score
from .groups import Drift, Group
from .judged import TRAINING
from .markup import count, number, share, shortened
from .two_classes import RARE, PositiveFacts

#: Deviations from face value that are less likely than this are no chance; smaller errors than CLOSE matter little.
UNLIKELY, CLOSE = 0.05, 0.01
#: With fewer rows, face value is a statement about large gaps only: those above the error by chance.
COARSE = 0.03
#: A class with a lower recall is hardly found.
POORLY_FOUND, FEWEST_ROWS = 0.5, 5
#: Predictions with a lower probability are called uncertain.
UNCERTAIN = 0.7


class Verdict(NamedTuple):
    """Sentences about usefulness, face value, the logistic regression and caution; all but the first may be empty."""

    useful: str
    face_value: str
    rival: str
    caution: str


def verdict(facts: Facts) -> Verdict:
    """The verdict on a model.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from kproba.report.facts import collect
    >>> X, y = load_iris(return_X_y=True)
    >>> facts = collect(LogisticRegression(max_iter=500).fit(X[::2], y[::2]), X[1::2], y[1::2], y_train=y[::2])
    >>> verdict(facts).useful.split(",")[0]
    'LogisticRegression is wrong for 4.0 % of these 75 rows'
    """
    if facts.on == TRAINING:
        return Verdict(
            "These are training rows, so nothing on this page says how the model does on new rows.", "", "", ""
        )
    return Verdict(_useful(facts), _face_value(facts), _rival(facts), _caution(facts))


def _useful(facts: Facts) -> str:
    positive = facts.positive
    if positive is not None and positive.is_rare:
        return _rare(facts)
    own, base = facts.scores[:2]
    always = f"always answering {_quoted(facts.majority)}"
    if not _is_better(base):
        return (
            f"{facts.model} is not clearly better than the class shares: it is wrong for {share(own.error.value)} of "
            f"these {count(facts.n_rows)} rows, {always} for {share(base.error.value)}."
        )
    if own.error.value < base.error.value:
        return (
            f"{facts.model} is wrong for {share(own.error.value)} of these {count(facts.n_rows)} rows, where "
            f"{always} is wrong for {share(base.error.value)}."
        )
    return (
        f"{facts.model} is right no more often than {always} (error {share(own.error.value)} and "
        f"{share(base.error.value)}), but its probabilities say more than the class shares "
        f"(log-loss {number(own.log_loss.value)} instead of {number(base.log_loss.value)})."
    )


def _rare(facts: Facts) -> str:
    """A class of few rows: the error would look good whatever the model does."""
    found = facts.positive
    assert found is not None
    own, name, base = found.own, _quoted(found.name), found.share
    alarms = own.flagged - own.hits
    flagged = f", with {count(alarms)} false alarm{'' if alarms == 1 else 's'}" if own.flagged else ""
    first = (
        f"Of the {count(found.rows)} {name} rows among {count(facts.n_rows)}, {facts.model} finds "
        f"{count(own.hits) if own.hits else 'none'} if it answers with the more probable class{flagged}."
    )
    average = own.average_precision
    if not _ranks_better_than_chance(found):
        return f"{first} Its ranking of the rows is not clearly better than chance."
    times = f"{found.lift:.0f}" if found.lift >= 9.5 else f"{found.lift:.1f}"
    return (
        f"{first} Its ranking of the rows is {times} times as good as chance: the average precision is "
        f"{number(average.value)}, and {number(base)} for guessing"
        + ("; choose a lower threshold to find them." if own.recall.value < POORLY_FOUND else ".")
    )


def _ranks_better_than_chance(found: PositiveFacts) -> bool:
    """Whether the interval of the ROC area and Mann and Whitney's test agree: few resampled rows look too sure."""
    n, others, area = found.thresholds.n_rows, found.thresholds.n_rows - found.rows, found.own.auc
    return area.low > 0.5 and area.value - 0.5 > 1.96 * np.sqrt((n + 1) / (12.0 * found.rows * others))


def _is_better(other: Score) -> bool:
    """Whether the log-loss of another model is clearly higher."""
    return other.excess is not None and other.excess.low > 0


def _rival(facts: Facts) -> str:
    for score in facts.scores[1:]:
        if score.name == REGRESSION and score.excess is not None:
            losses = f"log-loss {number(score.log_loss.value)} instead of {number(facts.scores[0].log_loss.value)}"
            if score.excess.high < 0:
                return f"A logistic regression does better ({losses})."
            if not _is_better(score):
                return f"A logistic regression does about as well ({losses})."
    return ""


def _face_value(facts: Facts) -> str:
    found = facts.face_value
    if _is_calibrated(facts):
        limit = f"; on this few rows, gaps of {_points(found.by_chance)} would go unnoticed"
        rest = limit if found.by_chance > COARSE else ""
        return f"You can take its probabilities at face value: they match what happened as well as chance allows{rest}."
    rate = 1.0 if facts.positive is None else min(1.0, facts.positive.share / RARE)
    if found.error < CLOSE * rate:
        return f"Its probabilities are close to face value: they are off by {_points(found.error)} on average."
    return f"Do not take its probabilities at face value: {_largest_gap(facts)}."


def _is_calibrated(facts: Facts) -> bool:
    return facts.face_value.p_value >= UNLIKELY


def _points(value: float) -> str:
    text = f"{100 * value:.1f}" if value < 0.0995 else f"{100 * value:.0f}"
    return f"{text} percentage points"


def _largest_gap(facts: Facts) -> str:
    """The bin whose frequency is the least likely one."""
    positive = facts.positive
    bins = facts.reliability if positive is None else positive.reliability
    spread = np.sqrt(np.maximum(bins.confidence * (1 - bins.confidence) / bins.rows, 1e-12))
    worst = int(np.argmax(np.abs(bins.frequency - bins.confidence) / spread))
    predicted, observed = share(float(bins.confidence[worst])), share(float(bins.frequency[worst]))
    if positive is not None and positive.is_rare:
        expected = number(positive.expected, 1)
        return f"they add up to {expected} {_quoted(positive.name)} rows, and there are {count(positive.rows)}"
    if positive is None:
        return f"predictions with a probability of about {predicted} are right {observed} of the time"
    return f"where it says {predicted} for {_quoted(positive.name)}, {observed} are"


def _caution(facts: Facts) -> str:
    said = [_of_groups(facts), _of_classes(facts), _of_drift(facts.drift), _of_uncertain(facts)]
    return " ".join(list(filter(None, said))[:2])


def _of_groups(facts: Facts) -> str:
    found = [group for group in facts.groups.groups if group.stands_out and (_is_calibrated(facts) or group.is_worse)]
    return f"Trust it less where {_named(found[0])}: {_fault(found[0])}." if found else ""


def _named(group: Group) -> str:
    column, value = shortened(group.column, 30), shortened(group.value, 30)
    return f"{column} {value}" if value[:1] in "≤>" else f"{column} is {value}"


def _fault(group: Group) -> str:
    if not group.observed.low <= group.predicted <= group.observed.high:
        return f"{share(group.predicted)} predicted, {share(group.observed.value)} observed"
    return f"an error of {share(group.error.value)}, where its probabilities announce {share(group.expected_error)}"


def _of_classes(facts: Facts) -> str:
    if facts.positive is not None:
        return ""
    poor = [one for one in facts.by_class if one.rows >= FEWEST_ROWS and one.recall < POORLY_FOUND]
    if not poor:
        return ""
    worst = min(poor, key=lambda one: one.recall)
    others = f", and fewer than half of those of {len(poor) - 1} other classes" if len(poor) > 1 else ""
    return f"It finds {share(worst.recall)} of the {_quoted(worst.name)} rows{others}."


def _of_uncertain(facts: Facts) -> str:
    if facts.positive is not None and facts.positive.is_rare:
        return ""
    kept, wrong = facts.risk.at(UNCERTAIN)
    rows, errors = facts.risk.n - kept, int(facts.risk.wrong[-1]) - wrong
    if rows < FEWEST_ROWS or not errors:
        return ""
    are = "is" if errors == 1 else "are"
    return f"{count(errors)} of the {count(rows)} predictions with a probability below {UNCERTAIN} {are} wrong."


def _of_drift(drift: tuple[Drift, ...]) -> str:
    found = [shortened(each.column, 30) for each in drift if each.stands_out]
    if not found:
        return ""
    more = f" and {len(found) - 3} other columns" if len(found) > 3 else ""
    return f"These rows differ from the training rows in {', '.join(found[:3])}{more}."


def _quoted(name: str) -> str:
    return f"“{shortened(name, 30)}”"
