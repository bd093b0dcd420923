"""Columns of a table as numbers or categories, to compare groups of rows."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..data.mixed import as_floats
from ..explanations.explanation import shown

#: Numbers with at most this many distinct values are compared value by value.
FEW_VALUES = 6
MISSING = "missing"


class Column(NamedTuple):
    """A column: numbers (NaN if missing), or codes of the categories in ``names`` (one of which may be missing)."""

    name: str
    values: np.ndarray
    names: tuple[str, ...] | None = None
    is_date: bool = False

    @property
    def is_number(self) -> bool:
        return self.names is None


def column_of(name: str, values: Any) -> Column:
    """Numbers and dates as numbers, everything else as categories.

    >>> column_of("size", np.array([1.5, np.nan])).values
    array([1.5, nan])
    >>> found = column_of("city", np.array(["Graz", None, "Graz"], dtype=object))
    >>> found.names, found.values
    (('Graz', 'missing'), array([0, 1, 0]))
    """
    numbers, is_date = _numbers(values)
    if numbers is not None:
        return Column(name, numbers, None, is_date)
    texts = [
        shown(value) for value in (values.to_list() if hasattr(values, "to_list") else np.asarray(values).tolist())
    ]
    names = sorted(set(texts), key=lambda text: (text == MISSING, text))
    code = {text: place for place, text in enumerate(names)}
    return Column(name, np.array([code[text] for text in texts], dtype=int), tuple(names))


def _numbers(values: Any) -> tuple[np.ndarray | None, bool]:
    """The values as float64 and whether they are dates; None if they are neither numbers nor dates."""
    kind = str(getattr(values, "dtype", "")).lower()
    if "datetime" in kind or kind == "date":
        days = np.asarray(values, dtype="datetime64[s]")
        return np.where(np.isnat(days), np.nan, days.astype(np.int64).astype(float)), True
    return as_floats(values), False


def values_of_column(X: Any, j: int) -> Any:
    """Column number j of an array, a sparse matrix or a data frame."""
    if sparse.issparse(X):
        return X[:, [j]].toarray().ravel()
    if hasattr(X, "iloc"):
        return X.iloc[:, j]
    return X[:, j]


def as_categories(column: Column) -> Column | None:
    """A column of few distinct numbers as categories; None if there are more."""
    if not column.is_number:
        return column
    missing = np.isnan(column.values)
    distinct = np.unique(column.values[~missing])
    if len(distinct) > FEW_VALUES or column.is_date:
        return None
    names = [f"{value:.6g}" for value in (distinct + 0.0).tolist()] + [MISSING] * bool(missing.any())
    return Column(column.name, np.where(missing, len(distinct), np.searchsorted(distinct, column.values)), tuple(names))


def text_of(value: float, is_date: bool = False) -> str:
    """A number or a date as text.

    >>> text_of(12345.678), text_of(0.123456), text_of(86400.0, is_date=True)
    ('12345.7', '0.1235', '1970-01-02')
    """
    if is_date:
        return str(np.datetime64(int(value), "s"))[:10]
    return f"{value + 0.0:.{4 if abs(value) < 1e4 else 6}g}"
