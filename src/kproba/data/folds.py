"""Folds of rows for cross-validation."""

from __future__ import annotations

import numpy as np

from .hashing import distinct, ranking
from .rows import Rows


def stratified_folds(rows: Rows, k: int, seed: int) -> np.ndarray:
    """The fold number of each row: copies of a row share a fold, and classes are spread over the folds."""
    first, number = distinct(rows.keys)
    labels = np.zeros(len(rows), dtype=int) if rows.is_multilabel else rows.labels
    order = np.lexsort([ranking(rows.keys[first], seed), labels[first]])
    fold = np.empty(len(first), dtype=int)
    fold[order] = np.arange(len(first)) % k
    return fold[number]
