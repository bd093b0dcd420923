"""Errors for tables that are not matrices of finite numbers: which columns, what they contain, and how to fix it."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..messages import listing
from .mixed import columns_of, is_rectangular

ENCODE = (
    "encode them first, for example with make_pipeline(skrub.TableVectorizer(), {}()), which handles all column types "
    "(pip install 'kproba[tables]'), or with scikit-learn's OneHotEncoder."
)
FILL = "fill such values first, for example with make_pipeline(SimpleImputer(), {}()), or drop the rows."

REPLACE = "replace infinite values by NaN, which counts as missing, or drop the rows."


def refuse_times(X, estimator: str) -> None:
    """Raise an error for dates and durations: NumPy would convert a table of them to counts of a time unit."""
    is_frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    types = list(zip(X.columns, X.dtypes)) if is_frame else [(0, getattr(X, "dtype", None))]
    found = [name for name, dtype in types if _is_time(dtype)]
    if found:
        raise TypeError(f"X holds dates or durations in {_the_columns(found)}; {ENCODE.format(estimator)}")


def _is_time(dtype) -> bool:
    if hasattr(dtype, "is_temporal"):  # a Polars type
        return bool(dtype.is_temporal())
    return getattr(dtype, "kind", "") in ("m", "M")


def explained(error: Exception, X, estimator: str) -> Exception:
    """scikit-learn's error for X, with the names of the columns and a hint on how to fix them."""
    kind, message = TypeError if isinstance(error, TypeError) else ValueError, str(error).partition("\n")[0].rstrip(".")
    if message.startswith("Input X contains"):
        where = [name for name, values in _columns(X) if not _is_finite(values)]
        fix = FILL.format(estimator) if message == "Input X contains NaN" else REPLACE
        return kind(f"{message}{f' ({_the_columns(where)})' if where else ''}; {fix}")
    wrong = [name for name, values in _columns(X) if not _are_numbers(values)]
    if not wrong:
        return error
    return kind(f"{message}. X has values that are not numbers in {_the_columns(wrong)}; {ENCODE.format(estimator)}")


def _the_columns(names: Iterable) -> str:
    names = list(names)
    return f"the column{'s' if len(names) > 1 else ''} {listing(names)}"


def _columns(X) -> Iterator[tuple[Any, np.ndarray]]:
    """Name or number, and values, of each column of a frame or a matrix; nothing for other types."""
    if not is_rectangular(X):
        X = np.asarray(X) if not sparse.issparse(X) and np.ndim(X) == 2 else np.empty((0, 0))
    return ((name, np.asarray(column)) for name, column in columns_of(X))


def _are_numbers(values: np.ndarray) -> bool:
    if values.dtype.kind == "c":
        return True
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _is_finite(values: np.ndarray) -> bool:
    return bool(np.isfinite(values.astype(np.float64)).all()) if _are_numbers(values) else True
