"""Groups of the evaluated rows, and how these differ from the training rows: columns are read once for both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .columns import Column, column_of, values_of_column
from .drift import Drift, drift_facts
from .groups import Group, Outcomes, group_facts
from .judged import Judged, some_rows

#: Number of rows and columns that are compared at most; more rows are sampled.
MOST_ROWS, MOST_COLUMNS = 50_000, 50
#: Name of the classes among the columns that may drift.
CLASSES = "(classes)"


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
