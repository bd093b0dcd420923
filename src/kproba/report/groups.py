"""Groups of rows, by the values of each category and the terciles of each number, and how well each is predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .columns import MISSING, Column, as_categories, text_of
from .measures import Interval, off_by_chance, share_of, tails

#: Groups of fewer rows are left out, as are all but the largest groups of a column.
FEWEST_ROWS, MOST_VALUES = 20, 12
#: A group that fewer groups than this would be expected to match by chance stands out.
STANDS_OUT = 0.05


@dataclass(frozen=True)
class Group:
    """A group of rows: its error, and the mean probability beside what happened.

    ``expected_error`` is the error that the probabilities announce. ``by_chance`` is the number of groups, among all
    that were compared, that would look at least this bad if all probabilities were right.
    """

    column: str
    value: str
    rows: int
    error: Interval
    expected_error: float
    predicted: float
    observed: Interval
    by_chance: float

    @property
    def stands_out(self) -> bool:
        return self.by_chance < STANDS_OUT

    @property
    def is_worse(self) -> bool:
        """Whether the error is clearly higher than the probabilities announce."""
        return self.error.low > self.expected_error

    @property
    def is_off(self) -> bool:
        """Whether the mean probability is outside the interval of what happened."""
        return not self.observed.low <= self.predicted <= self.observed.high


class Outcomes(NamedTuple):
    """Whether each row is predicted wrong, the probability of that, and another probability with what happened."""

    wrong: np.ndarray
    doubt: np.ndarray
    p: np.ndarray
    hit: np.ndarray


class Members(NamedTuple):
    """Name and rows of a group."""

    column: str
    value: str
    inside: np.ndarray


def group_facts(columns: Sequence[Column], outcomes: Outcomes) -> tuple[Group, ...]:
    """All groups, those that chance explains least first."""
    members = [each for column in columns for each in members_of(column)]
    found = [_group(each, outcomes, len(members)) for each in members]
    return tuple(sorted(found, key=lambda group: (group.by_chance, -group.rows)))


def members_of(column: Column) -> list[Members]:
    """The groups of a column with enough rows; none if fewer than two have."""
    codes, names = _codes(column)
    sizes = np.bincount(codes, minlength=len(names))
    kept = np.argsort(-sizes, kind="stable")[:MOST_VALUES]
    kept = np.sort(kept[sizes[kept] >= FEWEST_ROWS])
    return [Members(column.name, names[k], codes == k) for k in kept.tolist()] if len(kept) > 1 else []


def _codes(column: Column) -> tuple[np.ndarray, tuple[str, ...]]:
    found = as_categories(column)
    if found is not None and found.names is not None:
        return found.values, found.names
    missing = np.isnan(column.values)
    cuts = np.quantile(column.values[~missing], [1 / 3, 2 / 3], method="inverted_cdf")
    codes = np.where(missing, 3, np.searchsorted(cuts, column.values))
    low, high = (text_of(float(cut), column.is_date) for cut in cuts)
    return codes, (f"≤ {low}", f"{low} to {high}", f"> {high}", MISSING)


def _group(group: Members, outcomes: Outcomes, n_groups: int) -> Group:
    inside, n = group.inside, int(group.inside.sum())
    wrong, hits = int(outcomes.wrong[inside].sum()), int(outcomes.hit[inside].sum())
    error, observed = share_of(wrong, n), share_of(hits, n)
    doubt, p = outcomes.doubt[inside], outcomes.p[inside]
    chance = min(1.0, 2.0 * min(tails(doubt, wrong)[1], off_by_chance(p, hits)))
    announced = float(doubt.mean()), float(p.mean())
    return Group(group.column, group.value, n, error, *announced, observed, n_groups * chance)
