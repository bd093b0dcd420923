"""Dates in text columns: their place in time, and whether the day or the month comes first."""

from __future__ import annotations

import re
from typing import NamedTuple

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


class Times(NamedTuple):
    """How a column of numbers, dates or times is read, which only all of its values together show."""

    are_numbers: bool
    order: str | None = None

    @classmethod
    def of(cls, parts) -> Times:
        """Look at all parts of a column."""
        words = (column for column in parts if _numbers(column) is None)
        are_numbers, orders = True, set[str]()
        for column in words:
            are_numbers = False
            orders |= {order for order in {DAY_FIRST, MONTH_FIRST} - orders if example_of(column, order)}
        return cls(are_numbers, orders.pop() if len(orders) == 1 else None)


def moments(column, times: Times | None = None) -> np.ndarray:
    """The values of a column of numbers, dates or times as numbers that grow with time; NaN where they are missing.

    ``times`` says how to read it if it is part of a longer one.
    """
    times = times or Times.of([column])
    numbers = _numbers(column) if times.are_numbers else None
    if numbers is not None:
        return numbers
    try:
        dates = pandas().to_datetime(column, utc=True, format="mixed", dayfirst=times.order == DAY_FIRST)
    except (ValueError, TypeError) as error:
        found = column.dropna().iloc[0]
        raise ValueError(f"--order {column.name}: {found!r} is neither a number nor a date ({error}).") from None
    nanoseconds = dates.astype("datetime64[ns, UTC]").astype("int64").to_numpy(dtype=np.float64)
    return np.where(dates.isna(), np.nan, nanoseconds)


def _numbers(column) -> np.ndarray | None:
    """The values as numbers; None if some are no numbers, or if they are dates, whose unit depends on the part."""
    if column.dtype.kind == "M":
        return None
    numbers = column if column.dtype.kind in "iufb" else pandas().to_numeric(column, errors="coerce")
    if numbers.notna().sum() != column.notna().sum():
        return None
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)
