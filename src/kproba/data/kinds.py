"""Kinds of columns, whatever the file format: integers, numbers, booleans, strings, or no value at all."""

from typing import Any

import numpy as np

from ..messages import needed

#: Integers without missing values, numbers, booleans without and with missing values, and strings: names of pandas.
INTEGER, NUMBER, BOOLEAN, NULLABLE_BOOLEAN, TEXT = "int64", "float64", "bool", "boolean", "str"
#: Integers with or without missing values, where floats would round large ones; and text in which NA is no sign.
WHOLE, VERBATIM = "Int64", "verbatim"
#: A column without any value, which is compatible with all kinds but makes them nullable.
EMPTY = "empty"
#: The kinds that can be converted to numbers.
NUMERIC = (INTEGER, NUMBER, BOOLEAN, NULLABLE_BOOLEAN, EMPTY)


class NotPlainNumbers(ValueError):
    """Columns of numbers have missing values, or words where the first rows have numbers."""


def pyarrow(module: str | None = None) -> Any:
    """pyarrow or one of its modules, imported on demand because it is optional."""
    name = "pyarrow" if module is None else f"pyarrow.{module}"
    return needed(name, "reading and writing files needs pyarrow", "files")


def pandas() -> Any:
    """pandas, imported on demand because it is optional."""
    return needed("pandas", "reading tables with mixed columns needs pandas", "tables")


def kind_of_column(column, exact: bool = False) -> str:
    """The kind of part of a pandas column; for types other than those above, the name of its dtype.

    If it is ``exact``, integers with and without missing values are :data:`WHOLE`, and those too large for it text.
    """
    if column.isna().all():
        return EMPTY
    kind = column.dtype.kind
    if exact and kind in "iuf":
        return TEXT if column.dtype == np.uint64 else WHOLE if _is_whole(column) else NUMBER
    if kind in "iuf":
        is_whole = kind != "f" and column.dtype != np.uint64 and not column.isna().any()
        return INTEGER if is_whole else NUMBER
    if kind == "b":
        return NULLABLE_BOOLEAN if column.isna().any() else BOOLEAN
    if column.dtype == object and pandas().api.types.infer_dtype(column, skipna=True) == "boolean":
        return NULLABLE_BOOLEAN
    return TEXT if kind == "O" else str(column.dtype)


def _is_whole(column) -> bool:
    """Whether a column of numbers holds integers, or floats that were integers before some were missing."""
    values = column.dropna()
    is_float = column.dtype.kind == "f"
    return not is_float or bool(len(values) < len(column) and (values % 1 == 0).all() and values.abs().max() < 2**63)


def loses_digits(column) -> bool:
    """Whether a pandas column of integers has become one of floats that cannot tell all of them apart."""
    return kind_of_column(column, exact=True) == WHOLE and column.dtype.kind == "f" and column.abs().max() >= 2**53


def kind_of_type(type_) -> str:
    """The kind of an Arrow type; for types other than those above, its name."""
    types = pyarrow().types
    if types.is_null(type_):
        return EMPTY
    if types.is_boolean(type_):
        return BOOLEAN
    if types.is_integer(type_):
        return INTEGER
    if types.is_floating(type_) or types.is_decimal(type_):
        return NUMBER
    return TEXT if str(type_) in ("string", "large_string", "string_view") else str(type_)


def wider(one: str, other: str) -> str:
    """The narrowest kind that covers both."""
    both = {one, other}
    if len(both) == 1:
        return one
    if both <= {INTEGER, WHOLE, NUMBER, EMPTY} and both != {WHOLE, EMPTY}:
        return NUMBER
    if both <= {BOOLEAN, NULLABLE_BOOLEAN, EMPTY}:
        return NULLABLE_BOOLEAN
    return next(iter(both - {EMPTY})) if EMPTY in both else TEXT


def plain(column):
    """An Arrow column in a type that NumPy has: categories are decoded, dates become timestamps at midnight."""
    pa = pyarrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_date(column.type):
        return column.cast(pa.timestamp("ms"))
    is_number = pa.types.is_decimal(column.type) or pa.types.is_null(column.type)
    return column.cast(pa.float64()) if is_number else column


def nullable(column):
    """An Arrow column of integers as a pandas array that keeps all digits although some are missing."""
    numbers = column.cast(pyarrow().int64())
    return pandas().arrays.IntegerArray(
        numbers.fill_null(0).to_numpy(), column.is_null().to_numpy(zero_copy_only=False)
    )


def cast(frame, types: dict[str, str]):
    """Convert the columns to the given types; missing values stay missing."""
    wanted = {name: types[name] for name in frame.columns if name in types and types[name] != str(frame[name].dtype)}
    texts = [name for name, type_ in wanted.items() if type_ == TEXT]
    others = {name: type_ for name, type_ in wanted.items() if type_ != TEXT}
    return frame.astype(others).assign(**{name: frame[name].map(str, na_action="ignore") for name in texts})
