"""Column types of a table, independent of the file format: numbers as people write them (1,234.50 or 1.234,50, € 12,
7 %, a dash for a missing value), booleans, and strings that look like numbers."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from ..data.mixed import as_text
from ..data.text_numbers import MISSING, Style, style_of, to_numbers
from ..exceptions import UnreadableWarning
from ..messages import listing, warn

#: Booleans as text files and spreadsheets write them.
BOOLEANS = {"true": 1.0, "false": 0.0}


class ColumnKinds(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Keeps the type of each column seen at fit time: numbers in any format, booleans or strings.

    ``styles_`` has the decimal marks of text columns in which all values, or all but a few words, are numbers in the
    same format, ``numbers_`` and ``truths_`` the names of numeric and boolean columns, ``words_`` those of all other
    text columns. In new rows, a value that is not a number or boolean where one is expected counts as missing, and a
    number in a text column becomes a string.

    >>> import pandas
    >>> frame = pandas.DataFrame({"price": ["€ 1.200,50", "3,5", "?"], "name": ["1a", "2b", "3c"]})
    >>> ColumnKinds().fit_transform(frame)
        price name
    0  1200.5   1a
    1     3.5   2b
    2     NaN   3c
    """

    def fit(self, frame, y=None):
        frame = _as_pandas(frame)
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        named = [name for name in frame.columns if isinstance(name, str)]
        self.truths_ = [name for name in named if _is_boolean(frame[name])]
        self.numbers_ = [name for name in named if frame[name].dtype.kind in "iuf"]
        texts = [name for name in named if _is_text(frame[name]) and name not in self.truths_]
        styles = {name: _style(frame[name]) for name in texts}
        self.styles_ = {name: style.mark for name, style in styles.items() if style}
        self.words_ = [name for name, style in styles.items() if not style]
        for name, style in styles.items():
            if style and style.words:
                _warn_of_words(name, style)
        return self

    @property
    def input_to_outputs_(self) -> dict[str, list[str]]:
        """The columns computed from each column, as skrub's TableVectorizer has them: itself."""
        return {name: [name] for name in self.feature_names_in_}

    def transform(self, frame):
        frame = self._in_order(_as_pandas(frame)).copy(deep=False)
        for name in self.truths_:
            frame[name] = _warned(frame[name], _as_booleans(frame[name]), "booleans")
        for name, mark in {**dict.fromkeys(self.numbers_, "."), **self.styles_}.items():
            if _is_text(frame[name]):
                style = _style(frame[name], mark, words_allowed=False)
                found = _numbers(frame[name], mark if style is None else style.mark)
                frame[name] = _warned(frame[name], found, "numbers")
        for name in self.words_:
            if frame[name].dtype.kind in "iuf":
                frame[name] = frame[name].map(as_text, na_action="ignore").astype(object)
        return frame

    def _in_order(self, frame):
        """The columns of the training rows; further ones are left out."""
        wanted = self.feature_names_in_.tolist()
        if missing := [name for name in wanted if name not in frame.columns]:
            raise ValueError(
                f"X lacks the columns {listing(missing)}, which the pipeline was fitted on; it has "
                f"{listing(list(frame.columns))}."
            )
        return frame if list(frame.columns) == wanted else frame[wanted]


def _as_pandas(X):
    """A frame of pandas or Polars, or the columns 0, 1, … of a matrix, as a frame of pandas."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return X
    if hasattr(X, "columns") and hasattr(X, "to_pandas"):
        return X.to_pandas()
    matrix = np.asarray(X)
    if matrix.ndim != 2:
        raise TypeError(f"X must be a data frame or a matrix, got {type(X).__name__} of {matrix.ndim} dimension(s).")
    return import_module("pandas").DataFrame(matrix, columns=list(map(str, range(matrix.shape[1])))).infer_objects()


def _warned(column, found, kind: str):
    """The converted values; warns if there are values but none could be converted."""
    text = _present(column)
    if len(text) and found.isna().all():
        warn(
            f"column {column.name!r}: the model was fitted on {kind}, but none of the {len(text)} values, such as "
            f"{text.iloc[0]!r}, can be read as such; they are treated as missing.",
            UnreadableWarning,
        )
    return found


def _is_text(column) -> bool:
    return column.dtype.kind == "O" and str(column.dtype) != "category"


def _is_boolean(column) -> bool:
    if column.dtype.kind == "b":
        return True
    return _is_text(column) and import_module("pandas").api.types.infer_dtype(column, skipna=True) == "boolean"


def _as_booleans(column):
    if column.dtype.kind in "iuf":
        return column
    return column.astype(object).map(lambda value: BOOLEANS.get(str(value).strip().lower())).astype(float)


def _present(column):
    """The values that are not missing, as text, indexed by row number."""
    text = column.reset_index(drop=True).dropna().astype(str).str.strip()
    return text[~text.str.lower().isin(MISSING)]


def _style(column, first: str = ".", words_allowed: bool = True) -> Style | None:
    """How the values of a column are written as numbers; None if they are not."""
    return style_of(_present(column).value_counts(sort=False).to_dict(), first, words_allowed)


def _warn_of_words(name: str, style: Style) -> None:
    warn(
        f"column {name!r}: a few values are not numbers as the others are ({listing(style.words)}); they count as "
        "missing.",
        UnreadableWarning,
    )


def _numbers(column, mark: str):
    """The values as numbers; NaN for those that are missing or not numbers."""
    text = _present(column)
    distinct = text.unique().tolist()
    found = np.full(len(column), np.nan)
    found[text.index] = text.map(dict(zip(distinct, to_numbers(distinct, mark)))).to_numpy(dtype=float)
    return import_module("pandas").Series(found, index=column.index)
