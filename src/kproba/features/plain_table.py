"""Numbers and categories of a table as numeric columns, just as skrub's TableVectorizer and an imputer make them.

Importing those takes longer than most predictions, so that the commands replace a fitted vectoriser where they can.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline

from ..data.formats import MISSING as MISSING_CELLS
from ..data.kinds import pandas

#: Words for a missing value: those of text files, and two more that skrub knows.
MISSING = {*MISSING_CELLS, "...", "none"}
#: Values of categories for which this and the vectoriser have to agree, and rows of the table.
TRIED, TRIED_ROWS = (None, "", " \t", "N/A", "never seen before", " a"), 200
#: Columns of up to so many strings may be categories, and a vectoriser is fitted to rows with all values of a table if
#: it has this many times as many rows.
MOST_WORDS, FEWER = 60, 4


class PlainTable(TransformerMixin, BaseEstimator):
    """Numbers, with their median where one is missing, and 0/1 columns for values of categories and for gaps.

    ``levels_`` has the values of each category that have a column, where "" is a missing value, and None for a number;
    columns that are not used are not in it. ``medians_`` belong to the columns made of these, and ``gaps_`` are the
    numbers of those that get a column for their missing values, at the end. ``input_to_outputs_`` has all their names.
    """

    @classmethod
    def of(cls, prepared: Pipeline) -> PlainTable | None:
        """What a fitted vectoriser does with numbers and short lists of words; None if it does more than that."""
        words = prepared["columnkinds"].words_
        table, imputer = prepared["tablevectorizer"], prepared["simpleimputer"]
        kinds, outputs = table.kind_to_columns_, list(table.get_feature_names_out())
        if kinds["datetime"] or kinds["high_cardinality"] or not set(kinds["low_cardinality"]) <= set(words):
            return None
        made = cls()
        made.feature_names_in_ = np.asarray(list(table.input_to_outputs_), dtype=object)
        made.n_features_in_ = len(made.feature_names_in_)
        made.medians_ = np.asarray(imputer.statistics_, dtype=np.float32)
        made.gaps_ = imputer.indicator_.features_.astype(np.int64)
        marks = {outputs[j]: f"missingindicator_{outputs[j]}" for j in made.gaps_}
        made.input_to_outputs_ = {
            name: [*found, *(marks[each] for each in found if each in marks)]
            for name, found in table.input_to_outputs_.items()
        }
        levels = {name: _levels(table.transformers_[name]) for name in kinds["low_cardinality"]}
        used = {**dict.fromkeys(kinds["numeric"]), **levels}
        made.levels_ = {name: used[name] for name in made.input_to_outputs_ if name in used}
        return made

    def fit(self, frame, y=None):
        """Nothing to learn: :meth:`of` makes a fitted one."""
        return self

    @property
    def kind_to_columns_(self) -> dict[str, list[str]]:
        """The columns of each kind, as the TableVectorizer has them."""
        numbers = [name for name, levels in self.levels_.items() if levels is None]
        words = [name for name, levels in self.levels_.items() if levels is not None]
        return {"numeric": numbers, "datetime": [], "low_cardinality": words, "high_cardinality": []}

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        counts = {name: 1 if levels is None else len(levels) for name, levels in self.levels_.items()}
        names = [each for name, count in counts.items() for each in self.input_to_outputs_[name][:count]]
        return np.array([*names, *(f"missingindicator_{names[j]}" for j in self.gaps_)], dtype=object)

    def transform(self, frame) -> np.ndarray:
        return self.filled(self.with_gaps(frame))

    def with_gaps(self, frame) -> np.ndarray:
        """The numbers and 0/1 columns (n, k), NaN where a number is missing."""
        made = np.empty((len(frame), len(self.medians_)), dtype=np.float32)
        start = 0
        for name, levels in self.levels_.items():
            end = start + (1 if levels is None else len(levels))
            made[:, start:end] = _number(frame[name]) if levels is None else _indicators(frame[name], levels)
            start = end
        return made

    def filled(self, made: np.ndarray) -> np.ndarray:
        """The median in place of each missing number, and 0/1 columns for the gaps."""
        missing = np.isnan(made)
        if not missing.any() and not len(self.gaps_):
            return made
        return np.column_stack([np.where(missing, self.medians_, made), missing[:, self.gaps_].astype(np.float32)])


def fitted(prepared: Pipeline, frame) -> tuple[Pipeline, np.ndarray]:
    """A vectoriser fitted to all rows of a frame, without skrub where that is the same, and the numbers of the rows."""
    reader = prepared["columnkinds"].fit(frame)
    read, rest = reader.transform(frame), prepared[1:]
    if (rows := _showing_all_values(read, reader.words_)) is not None:
        rest.fit(read.iloc[rows])
        found = _of_all_rows(prepared, frame, read)
        if found is not None:
            return found
    numbers = rest.fit_transform(read)
    return without_skrub(prepared, frame), numbers


def _showing_all_values(read, words: list[str]) -> np.ndarray | None:
    """Numbers of rows that have every value of the words, a gap of each column and the extremes of the numbers.

    A vectoriser learns from them what it would from all rows, except the medians. None if there are columns of which
    this is not known, or not many more rows than these.
    """
    found: set[int] = set()
    for name in read.columns:
        column = read[name]
        is_text = name in words and pandas().api.types.infer_dtype(column, skipna=True) == "string"
        if is_text and column.nunique() <= MOST_WORDS:  # skrub may make a column of each; True and 1 would be equal
            found.update(_first_of_each(pandas().factorize(column)[0]))
        elif isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb":
            found.update(_extremes(column.to_numpy()))
        else:
            return None
    return np.sort(list(found)) if FEWER * len(found) <= len(read) else None


def _first_of_each(codes: np.ndarray) -> list[int]:
    """The number of the first row of each code, and of the first without one."""
    first = np.full(codes.max(initial=-1) + 2, -1)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first[first >= 0].tolist()


def _extremes(values: np.ndarray) -> list[int]:
    """The numbers of a row with the least value, one with the largest and one without a value, if there are such."""
    if values.dtype.kind != "f":
        return [int(values.argmin()), int(values.argmax())]
    missing = np.isnan(values)
    least, largest = (np.where(missing, end, values) for end in (np.inf, -np.inf))
    return [int(missing.argmax()), int(least.argmin()), int(largest.argmax())]


def _of_all_rows(prepared: Pipeline, frame, read) -> tuple[Pipeline, np.ndarray] | None:
    """The vectoriser with the medians of all rows, and their numbers; None if it is not that of a PlainTable."""
    plain = PlainTable.of(prepared)
    if plain is None:
        return None
    made = plain.with_gaps(read)
    known = (column[~np.isnan(column)] for column in made.T)  # copies, which the search for the median moves around
    plain.medians_ = np.array([np.median(values, overwrite_input=True) for values in known], dtype=np.float32)
    prepared["simpleimputer"].statistics_ = plain.medians_
    found = _replaced(prepared, plain, frame)
    return None if found is prepared else (found, plain.filled(made))


def without_skrub(prepared: Pipeline, frame) -> Pipeline:
    """The same fitted vectoriser of a frame, without skrub if there are only numbers and categories of few values."""
    plain = PlainTable.of(prepared)
    return prepared if plain is None else _replaced(prepared, plain, frame)


def _replaced(prepared: Pipeline, plain: PlainTable, frame) -> Pipeline:
    """The vectoriser with a plain table if both agree on some rows."""
    reader = prepared["columnkinds"]
    found = Pipeline([("columnkinds", reader), ("tablevectorizer", plain)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the values that we try
        tried = _tried(frame, reader.words_)
        return found if np.array_equal(found.transform(tried), prepared.transform(tried)) else prepared


def _tried(frame, words: list[str]):
    """Some rows, and some more whose values need care."""
    frame = frame[:TRIED_ROWS]
    odd = frame[: len(TRIED)].copy()
    for name in words:
        odd[name] = np.array(TRIED[: len(odd)], dtype=object)
    return pandas().concat([frame, odd], ignore_index=True)


def _levels(encoder: Any) -> list[str]:
    """The values with a column of their own: one of two has none."""
    (values,), dropped = encoder.categories_, encoder.drop_idx_
    left_out = None if dropped is None else dropped[0]
    return ["" if value != value or value is None else str(value) for i, value in enumerate(values) if i != left_out]


def _number(column) -> np.ndarray:
    found = pandas().to_numeric(column, errors="coerce")
    with np.errstate(over="ignore"):
        return found.to_numpy(dtype=np.float64, na_value=np.nan).astype(np.float32)[:, None]


def _indicators(column, levels: list[str]) -> np.ndarray:
    """A column for each level; a value that is not among them has zeros everywhere."""
    codes, distinct = pandas().factorize(column)
    place = {level: k for k, level in enumerate(levels)}
    found = np.array([place.get(_cleaned(value), -1) for value in (*distinct, "")])  # missing values have code -1
    return np.eye(len(levels) + 1, len(levels), dtype=np.float32)[found[codes]]  # the last row is zero


def _cleaned(value: Any) -> str:
    """A value as text, "" for a missing one."""
    text = str(value)
    return "" if text in MISSING or not text.strip() else text
