"""Rows of any kind of table."""

from __future__ import annotations

from sklearn.utils import _safe_indexing

from ..data.tables import LabelledTable


def some_rows(X, numbers):
    """The rows with these numbers; those of a table on disk are read."""
    return X.take(numbers) if isinstance(X, LabelledTable) else _safe_indexing(X, numbers)
