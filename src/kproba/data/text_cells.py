"""Arrow columns of strings as they are found in text files: spaces, words for truth values, and numbers."""

from .formats import MISSING
from .kinds import pyarrow


def without_spaces(column):
    """Strings without the spaces before them, which may be followed by nothing but a sign for a missing value."""
    pa, compute = pyarrow(), pyarrow("compute")
    if not compute.any(compute.starts_with(column, " ")).as_py():
        return column
    column = compute.utf8_ltrim(column, " ")
    return compute.if_else(compute.is_in(column, pa.array(MISSING)), pa.scalar(None, pa.string()), column)


def capitalized_booleans(column):
    """Strings in which true and FALSE are written like the truth values True and False of Python."""
    compute, is_word = pyarrow("compute"), pyarrow().array(["true", "false"])
    return compute.if_else(compute.is_in(compute.utf8_lower(column), is_word), compute.utf8_capitalize(column), column)


def as_numbers(column):
    """Strings as numbers; the same strings if some are not plain finite numbers, which the model reads one by one."""
    pa, compute = pyarrow(), pyarrow("compute")
    try:
        found = column.cast(pa.float64())
    except pa.ArrowInvalid:
        return column.dictionary_encode()
    return column.dictionary_encode() if compute.any(compute.is_inf(found)).as_py() else found
