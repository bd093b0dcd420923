"""Groups of rows that are predicted worse than others, and columns whose values have changed since training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp

from .columns import MISSING, Column, as_categories, column_of, text_of, values_of_column
from .judged import Judged, some_rows
from .markup import share
from .measures import Interval, off_by_chance, share_of, tails

#: Groups of fewer rows are left out, as are all but the largest groups of a column.
FEWEST_ROWS, MOST_VALUES = 20, 12
#: A group or column that fewer of them than this would be expected to match by chance stands out.
STANDS_OUT = 0.05


#: Smaller distances are not worth attention, however many rows make them certain.
NOTABLE = 0.1
#: Number of rows and columns that are compared at most; more rows are sampled.
MOST_ROWS, MOST_COLUMNS = 50_000, 50
#: Name of the classes among the columns that may drift.
CLASSES = "(classes)"


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


@dataclass(frozen=True)
class Drift:
    """One column in the training rows and in the evaluated rows.

    ``distance`` is the largest difference of the distribution functions of numbers (Kolmogorov–Smirnov), or half of the
    sum of the differences of shares of categories (total variation): 0 if they are the same, 1 if they have nothing in
    common. ``by_chance`` is the number of columns, among all, that would differ as much if nothing had changed.
    """

    column: str
    train: str
    evaluated: str
    distance: float
    by_chance: float

    @property
    def stands_out(self) -> bool:
        return self.by_chance < STANDS_OUT and self.distance >= NOTABLE


def drift_facts(pairs: Sequence[tuple[Column, Column]]) -> tuple[Drift, ...]:
    """The drift between both columns of each pair, columns that stand out and large distances first."""
    found = [_drift(old, new, len(pairs)) for old, new in pairs]
    return tuple(sorted(found, key=lambda drift: (not drift.stands_out, -drift.distance)))


def _drift(old: Column, new: Column, n_columns: int) -> Drift:
    if old.is_number and new.is_number and (as_categories(old) is None or as_categories(new) is None):
        distance, chance = numbers_distance(old.values, new.values)
        before, after = (_summary(column) for column in (old, new))
    else:
        old, new = (as_categories(column) or _texts(column) for column in (old, new))
        names = list(dict.fromkeys([*(old.names or ()), *(new.names or ())]))
        counts = np.array([_counts(column, names) for column in (old, new)])
        distance, chance = shares_distance(counts)
        before, after = (_largest(count, names, counts) for count in counts)
    return Drift(old.name, before, after, distance, n_columns * chance)


def numbers_distance(old: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """The largest of the Kolmogorov–Smirnov distance and the difference of the missing shares, and its p-value."""
    lost = np.array([[np.isnan(part).sum(), (~np.isnan(part)).sum()] for part in (old, new)])
    distance, chance = shares_distance(lost)
    old, new = old[~np.isnan(old)], new[~np.isnan(new)]
    if not len(old) or not len(new):
        return distance, chance
    found = ks_2samp(old, new, method="asymp")
    return max(distance, float(found.statistic)), min(1.0, 2.0 * min(chance, float(found.pvalue)))


def shares_distance(counts: np.ndarray) -> tuple[float, float]:
    """Total variation between the shares of two rows of counts, rare values pooled, and Pearson's p-value.

    >>> distance, chance = shares_distance(np.array([[10, 30], [30, 10]]))
    >>> distance, chance < 0.001
    (0.5, True)
    """
    expected = counts.sum(axis=0) * counts.sum(axis=1).min() / counts.sum()
    few = expected < 5.0  # pooled: their shares are mostly chance, and the test needs larger expected counts
    pooled = np.column_stack([counts[:, ~few], counts[:, few].sum(axis=1)])
    pooled = pooled[:, pooled.sum(axis=0) > 0]
    shares = pooled / pooled.sum(axis=1, keepdims=True)
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2.0)
    return distance, float(chi2_contingency(pooled).pvalue) if pooled.shape[1] > 1 else 1.0


def _texts(column: Column) -> Column:
    """Numbers as categories, to compare them with categories."""
    values, codes = np.unique(
        [text_of(v, column.is_date) if v == v else MISSING for v in column.values], return_inverse=True
    )
    return Column(column.name, codes, tuple(values.tolist()))


def _counts(column: Column, names: list[str]) -> np.ndarray:
    own = dict(zip(column.names or (), np.bincount(column.values, minlength=len(column.names or ())).tolist()))
    return np.array([own.get(name, 0) for name in names])


def _summary(column: Column) -> str:
    known = column.values[~np.isnan(column.values)]
    lost = 1.0 - len(known) / len(column.values)
    text = f"median {text_of(float(np.median(known)), column.is_date)}" if len(known) else "no values"
    return text + (f", {share(lost)} missing" if lost >= 0.005 else "")


def _largest(count: np.ndarray, names: list[str], counts: np.ndarray) -> str:
    """The shares of the two values that differ most."""
    gap = np.abs(counts[0] / counts[0].sum() - counts[1] / counts[1].sum())
    return ", ".join(f"{names[k]}: {share(count[k] / count.sum())}" for k in np.argsort(-gap, kind="stable")[:2])


class GroupFacts(NamedTuple):
    """All groups that were compared, worst first, among so many rows."""

    groups: tuple[Group, ...]
    n_rows: int


def groups_of(rows: Judged, outcomes: Outcomes, columns, beside, seed: int) -> GroupFacts:
    """Groups by the columns of X, and by those that the model does not use."""
    part = _sample(len(rows.codes), seed)
    found = _read(rows.X, part, columns) + [column_of(name, values[part]) for name, values in beside.items()]
    return GroupFacts(group_facts(found, Outcomes(*(each[part] for each in outcomes))), len(part))


def drift_of(rows: Judged, X_train, codes_train, labels, columns, seed: int) -> tuple[Drift, ...]:
    """How the evaluated rows differ from the training rows, in classes and columns; empty without training rows."""
    if codes_train is None:
        return ()
    pairs = [(Column(CLASSES, codes_train, tuple(labels)), Column(CLASSES, rows.codes, tuple(labels)))]
    shape: tuple[int, ...] = getattr(X_train, "shape", ())
    if columns and len(shape) == 2 and shape[1] == rows.X.shape[1]:
        old = _read(X_train, _sample(shape[0], seed), columns)
        pairs += zip(old, _read(rows.X, _sample(len(rows.codes), seed), columns))
    return drift_facts(pairs)


def _sample(n_rows: int, seed: int) -> np.ndarray:
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:MOST_ROWS])


def _read(X, part: np.ndarray, columns) -> list[Column]:
    """The first columns of some rows."""
    if not columns:
        return []
    table = some_rows(X, part)
    return [column_of(name, values_of_column(table, j)) for name, j in columns[:MOST_COLUMNS]]
