"""Rows that occur several times: draws of a point that new rows share, or duplicates of one row.

Equal rows with equal labels are merged into one with their total weight. What should leave-one-out remove of it? Where
the rows fill most of the combinations of few values, new rows will equal known ones, so one copy is removed and the
others stay. Otherwise the copies are duplicates or a weight, and all of them are removed: every row would predict
itself. Labels tell as well: copies of draws often contradict each other, duplicates hardly ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from scipy import sparse

from .hashing import column_sums, column_term, exact_keys, mix, row_sums
from .items import Items
from .rows import Rows
from .sampling import canonical_order

#: Equal rows are draws if at least this share of all rows have an equal one, and of the distinct rows with copies, the
#: labels of this share contradict each other.
COMMON, CONTRADICTING = 0.5, 0.1
#: They are draws as well if there are at least so many copies of each row on average, and the distinct rows are no more
#: than so few, or at least this share of all combinations of values, of which no column has many.
LEAST_COPIES, FEW_ROWS, FILLED, FEW_VALUES = 3, 10, 0.5, 50
#: Duplicates with contradicting labels that do not repeat by chance are left out like groups if they are at least this
#: share of all copies, of so many distinct rows that models without a fold say enough about the model of all.
LEFT_OUT_TOGETHER, LEAST_ROWS = 0.05, 100
#: Labels that contradict each other do not make draws if all variables agree more often in equal rows than elsewhere by
#: more than this factor of their odds. Some dozens are common if variables are strongly correlated. At most so many
#: columns are looked at.
MOST_ODDS, COLUMNS = 50.0, 100
#: And rows are never draws if a column tells more than this share of them apart, unless its values lie on a regular
#: grid with up to so many places for each value: then copies of continuous rows are duplicates.
APART, PLACES = 0.5, 10
#: Columns of sparse rows that are made dense at a time.
SPARSE_COLUMNS = 256
#: Draws are split into at most about this many parts.
MOST_PARTS = 10_000
_ROUNDING = 1e-9


def with_units(rows: Rows, with_groups: bool = False) -> tuple[Rows, np.ndarray]:
    """Merged rows with the weight that leave-one-out removes of each, and the index of each given row among them.

    Duplicates are one row even if their weights differ. With ``with_groups``, those that contradict each other are a
    group, unless they are few or repeat by chance: any that were left would reveal the labels of the others.
    """
    number, units = rows.distinct[1], rows.n_copies
    copies = np.bincount(number, units)
    is_repeated = copies > 1.0 + _ROUNDING
    if rows.together is not None or not is_repeated.any():
        return rows, np.arange(len(rows))
    contradicts, by_chance = _n_labels(rows) > 1, cache(partial(_by_chance, rows, copies))
    if _are_draws(rows, copies, is_repeated, contradicts, by_chance):
        return replace(rows, copies_are_draws=True), np.arange(len(rows))
    contradicts = contradicts[number]
    entry = np.where(contradicts, rows.n_distinct + np.arange(len(rows)), number)
    _, first, place = np.unique(entry, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.argsort(order)[place.ravel()]
    weight, kept = np.bincount(place, rows.weight), rows.take(first[order])
    kept = replace(kept, weight=weight, unit=np.where(contradicts[first[order]], kept.unit, weight))
    share = units[contradicts].sum() / units.sum()
    if with_groups and share >= LEFT_OUT_TOGETHER and rows.n_distinct >= LEAST_ROWS and not by_chance():
        kept = replace(kept, together=kept.distinct[1])
    return kept, place


def _n_labels(rows: Rows) -> np.ndarray:
    """The number of different labels of each distinct row."""
    number, labels = rows.distinct[1], rows.label_numbers
    different = np.unique(number.astype(np.int64) * (int(labels.max()) + 1) + labels)
    return np.bincount(different // (int(labels.max()) + 1), minlength=rows.n_distinct)


def _are_draws(
    rows: Rows, copies: np.ndarray, is_repeated: np.ndarray, contradicts: np.ndarray, by_chance: Callable[[], bool]
) -> bool:
    """Whether new rows may equal known ones, from the copies and labels of each distinct row."""
    many = bool(copies.mean() >= LEAST_COPIES - _ROUNDING)
    if many and len(copies) <= FEW_ROWS:
        return True
    are_common = copies[is_repeated].sum() >= COMMON * copies.sum()
    disagree = bool(are_common and contradicts.sum() >= CONTRADICTING * is_repeated.sum())
    if isinstance(rows.X, Items) or not (many or disagree):
        return disagree
    X = rows.X[rows.distinct[0]]
    disagree = disagree and by_chance()
    if _tell_rows_apart(X):  # of a single column, each value does
        return disagree and many and sum(len(np.unique(column)) > 1 for column in _columns(X)) == 1
    return disagree or (many and _fill_combinations(X))


def _columns(X) -> Iterator[np.ndarray]:
    """The columns of a dense or sparse matrix, one after the other."""
    if not sparse.issparse(X):
        yield from X.T
        return
    for start in range(0, X.shape[1], SPARSE_COLUMNS):
        yield from X[:, start : start + SPARSE_COLUMNS].toarray().T


def _by_chance(rows: Rows, copies: np.ndarray) -> bool:
    """Whether a variable agrees in equal rows hardly more often than elsewhere, as it does in draws."""
    if isinstance(rows.X, Items):
        return True  # nothing is known of their parts
    return any(odds <= MOST_ODDS for odds in odds_of_variables(rows.X[rows.distinct[0]], copies))


def odds_of_variables(X, copies: np.ndarray) -> Iterator[float]:
    """For each variable, its odds to agree in pairs of rows that agree in all others, over those in all pairs.

    X are distinct rows. Those that were judged several times, or rounded, hardly have pairs that differ in a single
    variable. Hashes suffice for counting.
    """
    n, same = copies.sum(), np.square(copies).sum()
    equal, sums = (same - n) / 2, row_sums(X)
    for term in _variables(X, copies):
        others, own = (np.unique(part, return_inverse=True)[1].ravel() for part in (sums - term, term))
        differ = (np.square(np.bincount(others, copies)).sum() - same) / 2
        agree = np.square(np.bincount(own, copies)).sum() / n**2
        gain = equal * (1.0 - agree) / agree
        yield gain / differ if differ else np.inf if gain else 0.0


def _variables(X, copies: np.ndarray) -> Iterator[np.ndarray]:
    """The terms (n,) of some variables in the sums that hash the rows.

    A variable is a column that varies, or an indicator with all others that no row has beside it, such as those of the
    levels of a category.
    """
    columns = X.tocsc() if sparse.issparse(X) else X
    chosen = _some_columns(X, copies)
    terms, has = np.empty((len(chosen), X.shape[0]), dtype=np.uint64), np.ones((len(chosen), X.shape[0]), np.float32)
    for k, j in enumerate(chosen):
        column = columns[:, [j]].toarray()[:, 0] if sparse.issparse(X) else X[:, j]
        terms[k], high = column_term(column, j, X.shape[1]), column == column.max()
        if (column[~high] == column.min()).all():  # an indicator; nothing excludes columns of more values
            has[k] = high
    parts = (has @ has.T == 0) | np.eye(len(chosen), dtype=bool)
    for part in np.unique(parts, axis=0):
        yield terms[part].sum(axis=0, dtype=np.uint64)


def _some_columns(X, copies: np.ndarray) -> np.ndarray:
    """Some of the columns that vary, drawn by their contents, so that the order of columns and rows has no say."""
    low, high = (np.ravel(each.toarray() if sparse.issparse(each) else each) for each in (X.min(axis=0), X.max(axis=0)))
    varying = np.flatnonzero(low != high)
    return varying[np.argsort(mix(column_sums(X, copies))[varying], kind="stable")][:COLUMNS]


def _tell_rows_apart(X) -> bool:
    """Whether a column of distinct rows has nearly as many values as there are rows, and no regular grid of them."""
    for values in map(np.unique, _columns(X)):
        if len(values) > max(2, APART * X.shape[0]):
            with np.errstate(all="ignore"):
                steps = np.diff(values) / np.diff(values).min()
                is_grid = steps.sum() <= PLACES * len(values) and np.abs(steps - steps.round()).max() <= 1e-3
            if not is_grid:
                return True
    return False


def _fill_combinations(X) -> bool:
    """Whether distinct rows are a good part of all combinations of the values of their columns.

    Indicators of which no row has two, such as those of the levels of a category, are one column together.
    """
    most, n_combinations = X.shape[0] / FILLED, 1.0
    marks: list[np.ndarray] = []
    sizes: list[int] = []
    for column in _columns(X):
        values = np.unique(column)
        if len(values) != 2:
            n_combinations *= len(values)
        else:
            own = column == values[1]
            k = next((k for k, others in enumerate(marks) if not (others & own).any()), len(marks))
            if k == len(marks):
                marks.append(own)
                sizes.append(1)
            else:
                marks[k] = marks[k] | own
                sizes[k] += 1
        if len(values) > FEW_VALUES or n_combinations * 2.0 ** len(marks) > most:
            return False
    if max(sizes, default=0) > FEW_VALUES:
        return False
    return n_combinations * np.prod([size + (not each.all()) for size, each in zip(sizes, marks)], dtype=float) <= most


@dataclass(frozen=True)
class Parts:
    """Draws as single rows again: part p is one of ``n_parts[row[p]]`` equal parts of the merged row ``row[p]``.

    ``place`` (p,) tells parts with equal inputs apart.
    """

    row: np.ndarray
    n_parts: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, rows: Rows) -> Parts:
        """A part for each copy, or of very many copies for some of them; rows that are not draws stay whole."""
        number, n_parts = rows.distinct[1], np.ones(len(rows), dtype=int)
        if not rows.copies_are_draws:
            return cls(np.arange(len(rows)), n_parts, np.zeros(len(rows), dtype=int))
        units = rows.n_copies
        size = max(1.0, units.sum() / MOST_PARTS)
        n_parts = np.maximum(np.floor(units / size + _ROUNDING), 1.0).astype(int)
        row = np.repeat(np.arange(len(rows)), n_parts)
        return cls(row, n_parts, _places(number, canonical_order(rows), n_parts)[row] + _within(n_parts))

    def split(self, rows: Rows) -> Rows:
        """The parts as rows that count as different, although inputs may be equal."""
        if not rows.copies_are_draws:
            return rows
        parts, share = rows.take(self.row), 1.0 / self.n_parts[self.row]
        weight, mass = parts.weight * share, None if parts.mass is None else parts.mass * share
        return replace(parts, weight=weight, mass=mass, keys=_keys(parts.keys, self.place), copies_are_draws=False)

    def to_rows(self, values: np.ndarray, row: np.ndarray) -> np.ndarray:
        """The mean (n, c) of the known values of the parts (p, c) of each given row, whose merged row is ``row`` (n,).

        If some parts are NaN, so are as many of the given rows, or else rare labels would seldom have a value.
        """
        known = ~np.isnan(values).any(axis=1)
        count = np.bincount(self.row[known], minlength=len(self.n_parts))[:, None]
        sums = [np.bincount(self.row[known], column, len(self.n_parts)) for column in values[known].T]
        mean = np.divide(np.stack(sums, axis=1), count, out=np.full((len(count), len(sums)), np.nan), where=count > 0)
        order, copies = np.argsort(row, kind="stable"), np.bincount(row, minlength=len(self.n_parts))
        part = np.empty(len(row), dtype=int)  # the first one that belongs to each given row
        part[order] = _within(copies) * self.n_parts[row[order]] // copies[row[order]]
        part += (np.cumsum(self.n_parts) - self.n_parts)[row]
        return np.where(known[part, None], mean[row], np.nan)


def _keys(keys: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Keys that are equal if and only if the keys and places are."""
    halves = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF), place
    return exact_keys(np.column_stack([half.astype(np.float64) for half in halves]))


def _places(number: np.ndarray, order: np.ndarray, n_parts: np.ndarray) -> np.ndarray:
    """The number of parts with the same inputs in rows before each row, in an order that the user's does not change."""
    order = order[np.argsort(number[order], kind="stable")]
    before = np.cumsum(n_parts[order]) - n_parts[order]
    out = np.empty(len(number), dtype=int)
    out[order] = before - before[np.searchsorted(number[order], number[order])]
    return out


def _within(n_parts: np.ndarray) -> np.ndarray:
    """0, 1, … for the parts of each row."""
    return np.arange(n_parts.sum()) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
