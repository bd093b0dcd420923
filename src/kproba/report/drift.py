"""Drift: columns whose values in the evaluated rows differ from those in the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp

from .columns import MISSING, Column, as_categories, text_of
from .markup import share

#: Smaller distances are not worth attention, however many rows make them certain.
NOTABLE = 0.1
#: A distance that fewer columns than this would be expected to reach by chance is no chance.
STANDS_OUT = 0.05


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
