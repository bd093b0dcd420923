"""Samples of distinct rows, drawn by their keys: see :mod:`kproba.data.hashing`."""

import numpy as np

from .hashing import first_in_order, ranking
from .rows import Rows


def with_copies(rows: Rows, sample: np.ndarray) -> np.ndarray:
    """The sampled rows and all their copies, in order."""
    return np.flatnonzero(np.isin(rows.keys, rows.keys[sample]))


def sample_rows(rows: Rows, size: int, seed: int) -> np.ndarray:
    """One index for each of ``size`` distinct rows, spread over the classes.

    The sample depends on the rows and the seed, but not on their order or on repetitions.
    """
    first, number = rows.distinct
    if size >= len(first):
        return first
    if rows.is_multilabel:
        return smallest_keys(rows.keys[first], size, seed, first)
    label = np.full(len(first), rows.n_classes)
    np.minimum.at(label, number, rows.labels)
    counts = np.bincount(label, minlength=rows.n_classes)
    quotas = class_quotas(counts, size)
    groups = (np.flatnonzero(label == y) for y in np.flatnonzero(quotas))
    picks = [smallest_keys(rows.keys[first[g]], quotas[label[g[0]]], seed, first[g]) for g in groups]
    return np.concatenate(picks)


def smallest_keys(keys: np.ndarray, size: int, seed: int, values: np.ndarray) -> np.ndarray:
    """The ``values`` of the ``size`` keys that rank first."""
    return values[first_in_order(ranking(keys, seed), size)]


def class_quotas(counts: np.ndarray, size: int) -> np.ndarray:
    """Split ``size`` in proportion to counts: first one each, then the rest by largest remainder."""
    present = counts > 0
    quotas = present.astype(int) if present.sum() <= size else np.zeros(len(counts), int)
    ideal = counts * (size / counts.sum())
    quotas = np.maximum(quotas, np.minimum(np.floor(ideal).astype(int), counts))
    while quotas.sum() > size:  # the guaranteed rows exceed the total: reduce the largest quotas
        quotas[np.argmax(quotas)] -= 1
    short = size - quotas.sum()
    order = np.argsort(np.where(quotas < counts, quotas - ideal, np.inf), kind="stable")
    quotas[order[:short]] += 1
    return quotas


def subsample(rows: Rows, size: int, seed: int) -> Rows:
    """All copies of ``size`` distinct rows, spread over the classes; all rows if there are no more than that."""
    return rows if rows.n_distinct <= size else rows.take(with_copies(rows, sample_rows(rows, size, seed)))


def canonical_order(rows: Rows) -> np.ndarray:
    """An order of the rows that does not depend on the order in which they were given."""
    labels = rows.labels.T if rows.is_multilabel else rows.labels[None]
    return np.lexsort([*labels, rows.weight, ranking(rows.keys, 0)])
