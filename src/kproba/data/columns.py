"""Errors for tables that are not matrices of finite numbers: which columns, what they contain, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..messages import listing

ENCODE = (
    "encode them first, for example with make_pipeline(skrub.TableVectorizer(), {}()), which handles all column types "
    "(pip install 'kproba[tables]'), or with scikit-learn's OneHotEncoder."
)
FILL = "fill such values first, for example with make_pipeline(SimpleImputer(), {}()), or drop the rows."

REPLACE = "replace infinite values by NaN, which counts as missing, or drop the rows."


def refuse_times(X, estimator: str) -> None:
    """Raise an error for dates and durations: NumPy would convert a table of them to counts of a time unit."""
    _refuse_types(X, estimator, _is_time, "dates or durations")


def _refuse_types(X, estimator: str, is_refused: Callable[[Any], bool], what: str) -> None:
    dtypes = list(X.dtypes) if hasattr(X, "columns") and hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    found = [j for j, dtype in enumerate(dtypes) if is_refused(dtype)]
    if found:
        names = _names(X) or list(range(len(dtypes)))
        raise TypeError(f"X holds {what} in {_the_columns([names[j] for j in found])}; {ENCODE.format(estimator)}")


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
    return (
        kind(f"{message}. X has values that are not numbers in {_the_columns(wrong)}; {ENCODE.format(estimator)}")
        if wrong
        else error
    )


def _the_columns(names: Iterable) -> str:
    names = list(names)
    return f"the column{'s' if len(names) > 1 else ''} {listing(names)}"


def _names(X) -> list | None:
    """Column names of a frame or an Arrow table."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return None if names is None else list(names)


def _columns(X) -> Iterator[tuple[Any, np.ndarray]]:
    """Name or number, and values, of each column of a frame or a matrix; nothing for other types."""
    names = _names(X)
    if names is not None:
        at = X.iloc.__getitem__ if hasattr(X, "iloc") else None
        yield from ((name, np.asarray(X[name] if at is None else at((slice(None), j)))) for j, name in enumerate(names))
    elif not sparse.issparse(X) and np.ndim(X) == 2:
        yield from enumerate(np.asarray(X).T)


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
