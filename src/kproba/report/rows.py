"""Rows to review: what they are called, what is predicted for them, why, and some of their values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from ..data.tables import LabelledTable
from ..explanations.explanation import shown
from .columns import MISSING, text_of
from .fitted import final_step
from .judged import Judged, some_rows
from .reasons import reasons_of

#: Number of rows in the tables, and of columns of X that they show.
MOST_ROWS, MOST_COLUMNS = 50, 6


@dataclass(frozen=True)
class RowFacts:
    """One row: its position, name, true and predicted class, probabilities, reasons, and some of its values.

    A value is None if it is missing.
    """

    number: int
    name: str
    true: str
    predicted: str
    probability: float
    second: str
    second_probability: float
    reasons: tuple[str, ...]
    values: tuple[str | None, ...]


class Shown(NamedTuple):
    """Names and numbers of the columns of X to show, and columns that the model does not use, beside these."""

    columns: list[tuple[str, int]]
    beside: dict[str, np.ndarray]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.beside, *(name for name, _ in self.columns))


class RowNames(NamedTuple):
    """What rows are called, and a sentence that says so."""

    names: Sequence[Any]
    about: str


def names_of_rows(X: Any, names: Any, n_rows: int, about: str | None = None) -> RowNames:
    """The given names, the index of a data frame, or numbers from 0.

    >>> names_of_rows(None, None, 2)
    RowNames(names=range(0, 2), about='Row numbers start at 0.')
    """
    if names is not None:
        names = np.asarray(names).tolist()
        if len(names) != n_rows:
            raise ValueError(f"row_names has {len(names)} entries, but there are {n_rows} rows; pass one per row.")
        return RowNames(names, about or "")
    index = getattr(X, "index", None)
    if hasattr(X, "iloc") and index is not None and len(index) == n_rows and index.tolist() != list(range(n_rows)):
        return RowNames(index.tolist(), "Rows are named by the index of X.")
    return RowNames(range(n_rows), "Row numbers start at 0.")


def checked_beside(beside: Mapping[str, Any] | None, n_rows: int) -> dict[str, np.ndarray]:
    """Columns to show that the model does not use, as arrays."""
    found = {str(name): np.asarray(beside[name], dtype=object) for name in beside} if beside is not None else {}
    for name, values in found.items():
        if values.shape != (n_rows,):
            raise ValueError(
                f"beside[{name!r}] has shape {values.shape}, but there are {n_rows} rows; pass one value per row."
            )
    return found


def row_facts(model, numbers, rows: Judged, labels, called: RowNames, show: Shown, names) -> tuple[RowFacts, ...]:
    """The facts of the first of the rows with these numbers."""
    numbers = numbers[:MOST_ROWS]
    part = some_rows(rows.X, numbers) if show.columns and len(numbers) else None
    own = _values(part, [column for _, column in show.columns], len(numbers))
    beside = [tuple(_value(values[number]) for values in show.beside.values()) for number in numbers.tolist()]
    classes = rows.proba[numbers].argmax(axis=1)
    reasons: list[tuple[str, ...]] = [()] * len(numbers) if part is None else reasons_of(model, part, classes, names)
    found = []
    for number, because, first_values, values in zip(numbers.tolist(), reasons, beside, own):
        p = rows.proba[number]
        first = int(p.argmax())
        second = int(np.where(np.arange(len(p)) == first, -1.0, p).argmax())
        top_two = labels[first], float(p[first]), labels[second], float(p[second])
        name, true = str(called.names[number]), labels[rows.codes[number]]
        found.append(RowFacts(number, name, true, *top_two, because, (*first_values, *values)))
    return tuple(found)


def _values(rows, columns, n_rows: int) -> list[tuple[str | None, ...]]:
    """Some columns of rows, as strings; none if ``rows`` is None."""
    if rows is None:
        return [()] * n_rows
    part = _safe_indexing(rows, columns, axis=1)
    part = part.toarray() if hasattr(part, "toarray") else np.asarray(part, dtype=object)
    return [tuple(map(_value, row)) for row in part.tolist()]


def _value(value) -> str | None:
    if not isinstance(value, str) and shown(value) == MISSING:
        return None
    return text_of(value) if isinstance(value, float) else str(value)


def named_columns(model, X, names) -> list[tuple[str, int]]:
    """Name and index of all columns of a table, the most relevant first if the model weights columns."""
    shape: tuple = getattr(X, "shape", ())
    is_table = isinstance(X, LabelledTable) or hasattr(X, "__array__") or hasattr(X, "tocsr")
    if len(shape) != 2 or not shape[1] or not is_table:
        return []
    given = getattr(model, "feature_names_in_", getattr(X, "columns", None)) if names is None else names
    given = [f"x{j}" for j in range(shape[1])] if given is None else list(map(str, given))
    if len(given) != shape[1]:
        raise ValueError(f"names has {len(given)} entries, but X has {shape[1]} columns.")
    relevance = _relevance(model)
    order = np.arange(shape[1])
    if relevance is not None and len(relevance) == shape[1]:
        order = np.argsort(-relevance, kind="stable")
    return [(given[j], int(j)) for j in order]


def _relevance(model) -> np.ndarray | None:
    """The weights of the columns of X, unless earlier pipeline steps may have changed the columns."""
    if isinstance(model, Pipeline) and len(model) > 1:
        return None
    final = final_step(model)
    return getattr(final, "feature_importances_", getattr(getattr(final, "scaling_", None), "relevance", None))
