"""Dates in text columns: their place in time, and whether the day or the month comes first."""

import re

import numpy as np

from ..data.kinds import pandas

#: Two numbers of which one is the day and the other the month, before a year.
_NUMBERS = re.compile(r"\s*(\d{1,2})\s*[/.\-]\s*(\d{1,2})\s*[/.\-]\s*\d{2,4}\b")
DAY_FIRST, MONTH_FIRST = "day/month", "month/day"
#: Number of months.
MONTHS = 12


def example_of(values, order: str) -> str | None:
    """The first date that can only be read in an order.

    >>> example_of(["01/02/2024", "31/12/2024"], DAY_FIRST), example_of(["31.12.2024", None], MONTH_FIRST)
    ('31/12/2024', None)
    """
    day = 0 if order == DAY_FIRST else 1
    for value in values:
        found = _NUMBERS.match(value) if isinstance(value, str) else None
        if found and int(found[day + 1]) > MONTHS >= int(found[2 - day]):
            return value.strip()
    return None


def order_of(values) -> str | None:
    """The only order in which all dates can be read; None if they can be read in both or none."""
    found = [order for order in (DAY_FIRST, MONTH_FIRST) if example_of(values, order)]
    return found[0] if len(found) == 1 else None


def moments(column) -> np.ndarray:
    """The values of a column of numbers, dates or times as numbers that grow with time; NaN where they are missing."""
    if column.dtype.kind in "iufb":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = pandas().to_numeric(column, errors="coerce")
    if numbers.notna().sum() == column.notna().sum():
        return numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    try:
        is_day_first = order_of(column) == DAY_FIRST
        dates = pandas().to_datetime(column, utc=True, format="mixed", dayfirst=is_day_first)
    except (ValueError, TypeError) as error:
        found = column.dropna().iloc[0]
        raise ValueError(f"--order {column.name}: {found!r} is neither a number nor a date ({error}).") from None
    nanoseconds = dates.astype("datetime64[ns, UTC]").astype("int64").to_numpy(dtype=np.float64)
    return np.where(dates.isna(), np.nan, nanoseconds)
