"""Folds of rows for cross-validation."""

import numpy as np

from .hashing import ranking
from .rows import Rows


def stratified_folds(rows: Rows, k: int, seed: int) -> np.ndarray:
    """The fold number of each row: copies of a row, or the user's groups, share a fold, and classes are spread out."""
    if rows.together is not None:
        return _folds_of_groups(rows, k, seed)
    first, number = rows.distinct
    labels = np.zeros(len(rows), dtype=int) if rows.is_multilabel else rows.labels
    order = np.lexsort([ranking(rows.keys[first], seed), labels[first]])
    fold = np.empty(len(first), dtype=int)
    fold[order] = np.arange(len(first)) % k
    return fold[number]


def _folds_of_groups(rows: Rows, k: int, seed: int) -> np.ndarray:
    """Large groups first, each to the fold that has the least weight of the group's classes."""
    number = np.unique(np.asarray(rows.together), return_inverse=True)[1].ravel()
    n_groups = int(number.max()) + 1
    targets = rows.targets()[:, : rows.n_classes] * rows.weight[:, None]
    counts = np.stack([np.bincount(number, column, n_groups) for column in targets.T], axis=1)
    counts = np.hstack([counts, np.bincount(number, rows.weight, n_groups)[:, None]])
    counts = counts / np.maximum(counts.sum(axis=0), np.finfo(float).tiny)
    smallest = np.full(n_groups, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(smallest, number, ranking(rows.keys, seed))
    totals, fold = np.zeros((min(k, n_groups), counts.shape[1])), np.empty(n_groups, dtype=int)
    for group in np.lexsort([smallest, -counts[:, -1]]):
        fold[group] = np.argmin(np.round(totals @ counts[group], 12))
        totals[fold[group]] += counts[group]
    return fold[number]
