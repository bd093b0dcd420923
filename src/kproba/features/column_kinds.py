"""Column types of a table, independent of the file format: numbers as people write them (1,234.50 or 1.234,50, € 12,
7 %, a dash for a missing value), durations, booleans, dates, and strings that look like numbers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from ..data.mixed import as_text
from ..data.text_numbers import MISSING, Style, style_of, to_numbers
from ..exceptions import UnreadableWarning
from ..messages import listing, needed, warn

#: Booleans as text files and spreadsheets write them.
BOOLEANS = {"true": 1.0, "false": 0.0}
#: Dates, with or without a time, as ISO 8601 writes them: they can be read in one way only.
ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}\S*)?"
DATES = "dates"
#: If at most this share of the dates in new rows can be read, a note says so.
HARDLY_ANY = 0.1
#: Numbers are centred if float32 then tells more of them apart by this share of the distinct ones among so many rows.
CENTER_GAIN, CENTER_ROWS = 0.01, 10_000

#: Kinds of NumPy types that are read as numbers: integers, unsigned ones, floats and durations.
NUMERIC = "iufm"


def check_cells(frame) -> None:
    """Raise an error that names the first column with lists or other objects that are no single value."""
    for name, column in frame.items():
        kinds = {kind.__name__ for kind in set(map(type, column)) if kind.__hash__ is None} if _is_text(column) else ()
        if kinds:
            raise TypeError(
                f"the column {name!r} holds {listing(sorted(kinds))} objects; a cell is a number, a string, a boolean, "
                "a date, a duration or missing. Make a column of each part, or leave the column out."
            )


class ColumnKinds(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Keeps the type of each column seen at fit time: numbers in any format, booleans or strings.

    Durations are numbers of seconds.

    ``styles_`` has the decimal marks of text columns in which all values, or all but a few words, are numbers in the
    same format, ``numbers_`` and ``truths_`` the names of numeric and boolean columns, ``words_`` those of all other
    text columns. ``dates_`` has the format of the dates among these, "" if they were no text. In new rows, a value that
    is not a number, boolean or date where one is expected counts as missing, but dates may also be written as
    2024-12-31, and a number in a text column becomes a string. Blanks around a text do not count; models of earlier
    versions, which may know categories with blanks, have no ``strips_``. ``centers_`` is subtracted from numbers that
    are too far from zero for the float32 of the next steps to tell them apart.

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
        check_cells(frame)
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        named = [name for name in frame.columns if isinstance(name, str)]
        self.truths_ = [name for name in named if _is_boolean(frame[name])]
        self.numbers_ = [name for name in named if frame[name].dtype.kind in NUMERIC]
        texts = [name for name in named if _is_text(frame[name]) and name not in self.truths_]
        styles = {name: _style(frame[name]) for name in texts}
        self.styles_ = {name: style.mark for name, style in styles.items() if style}
        self.words_ = [name for name, style in styles.items() if not style]
        for name, style in styles.items():
            if style and style.words:
                _warn_of_words(name, style)
        self.strips_ = True
        formats = {name: _date_format(frame[name], name in self.words_) for name in named}
        centers = {name: _center(frame[name], mark) for name, mark in self.marks.items()}
        self.centers_ = {name: center for name, center in centers.items() if center}
        self.dates_ = {name: found for name, found in formats.items() if found is not None}
        return self

    @property
    def input_to_outputs_(self) -> dict[str, list[str]]:
        """The columns computed from each column, as skrub's TableVectorizer has them: itself."""
        return {name: [name] for name in self.feature_names_in_}

    @property
    def marks(self) -> dict[str, str]:
        """The decimal mark of each column of numbers in the training rows."""
        return {**dict.fromkeys(self.numbers_, "."), **self.styles_}

    def settled(self, marks: Mapping[str, str]) -> ColumnKinds:
        """The same for rows in which text columns have these marks, whatever a part of the rows looks like."""
        found = copy(self)
        found._settled = dict(marks)
        return found

    def _mark(self, column, first: str) -> str:
        """The decimal mark of a text column, which in new rows is that of the training rows if possible."""
        settled = getattr(self, "_settled", {})
        style = None if column.name in settled else _style(column, first, words_allowed=False)
        return settled.get(column.name, first) if style is None else style.mark

    def _as_numbers(self, column, mark: str):
        """A column of numbers: texts are read with a decimal mark, durations are seconds."""
        if _is_text(column):
            return _warned(column, _numbers(column, self._mark(column, mark)), "numbers")
        return _seconds(column)

    def transform(self, frame):
        frame = self._in_order(_as_pandas(frame)).copy(deep=False)
        check_cells(frame)
        for name in self.truths_:
            frame[name] = _warned(frame[name], _as_booleans(frame[name]), "booleans")
        centers = getattr(self, "centers_", {})  # models of earlier versions have none
        for name, mark in self.marks.items():
            numbers = self._as_numbers(frame[name], mark)
            frame[name] = numbers - centers[name] if name in centers else numbers
            _refuse_infinite(frame[name])
        for name in self.words_:
            if frame[name].dtype.kind in "iuf":
                frame[name] = frame[name].map(as_text, na_action="ignore").astype(object)
            elif getattr(self, "strips_", False) and _is_text(frame[name]):
                frame[name] = _stripped(frame[name])
        for name, written in getattr(self, "dates_", {}).items():  # models of earlier versions have none
            if _is_text(frame[name]):
                frame[name] = _as_dates(frame[name], written)
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


def _warned(column, found, kind: str, few: float = 0.0):
    """The converted values; warns if there are values but at most a few, as a share, could be converted."""
    text = _present(column)
    unread = text[found.isna().to_numpy()[text.index]]
    if len(unread) and len(text) - len(unread) <= few * len(text):
        share = "none" if len(unread) == len(text) else "hardly any"
        advice = "; write dates as 2024-12-31" if kind == DATES else ""
        warn(
            f"column {column.name!r}: the model was fitted on {kind}, but {share} of the values, such as "
            f"{unread.iloc[0]!r}, can be read as such; they are treated as missing{advice}.",
            UnreadableWarning,
        )
    return found


def _stripped(column):
    """The column without blanks around its texts."""
    texts = {cell for cell in column.unique() if isinstance(cell, str)}
    padded = {text: text.strip() for text in texts if text != text.strip()}
    if not padded:
        return column
    cells = [padded.get(cell, cell) if isinstance(cell, str) else cell for cell in column]
    return import_module("pandas").Series(cells, column.index, column.dtype, column.name)


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


def _date_format(column, is_text: bool) -> str | None:
    """The format of a column of dates, "" if they are no text; None if they are no dates."""
    if not is_text or import_module("pandas").api.types.infer_dtype(column, skipna=True) != "string":
        return "" if column.dtype.kind == "M" else None
    skrub = needed("skrub", "tables with dates need skrub", "tables")
    try:
        return skrub.ToDatetime().fit(_present(column).drop_duplicates()).format_
    except skrub.core.RejectColumn:
        return None


def _as_dates(column, written: str):
    """The texts of a column as dates, in the given format or else ISO 8601; NaT for those that are missing or no dates.

    They have no time zone unless the format has one, and are then in UTC.
    """
    pandas, text = import_module("pandas"), _present(column)
    codes, distinct = pandas.factorize(text)
    distinct, place = pandas.Series(distinct, dtype=text.dtype), np.full(len(column), -1)
    place[text.index] = codes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about formats that pandas does not know
        read = pandas.to_datetime(distinct, errors="coerce", format=written or None, utc=True)
    if (is_iso := read.isna() & distinct.str.fullmatch(ISO_DATE)).any():
        iso = pandas.to_datetime(distinct[is_iso], errors="coerce", format="ISO8601", utc=True)
        read = read.dt.as_unit("us")  # has seconds only if nothing was read
        read[is_iso] = iso.dt.as_unit("us")
    read = read if "%z" in written else read.dt.tz_localize(None)
    found = pandas.Series(read.array.take(place, allow_fill=True), column.index, name=column.name)
    return _warned(column, found, DATES, HARDLY_ANY)


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


def _refuse_infinite(column) -> None:
    """Raise an error for numbers that become infinite in float32, which names one of them."""
    if column.dtype.kind != "f":
        return
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max)
    if len(wrong):
        raise ValueError(
            f"Input X contains infinity or a value too large for dtype('float32'): {values[wrong[0]]:g} in the column "
            f"{column.name!r}, in the row with the index {column.index[wrong[0]]}. Leave the cell empty, or set it to "
            "NaN: it then counts as missing."
        )


def _center(column, mark: str) -> float:
    """The median of numbers of which float32 tells noticeably more apart without it; 0 for others."""
    some = column.iloc[:: max(1, len(column) // CENTER_ROWS)]
    values = (_numbers(some, mark) if _is_text(some) else _seconds(some)).to_numpy(dtype=np.float64, na_value=np.nan)
    values = values[np.isfinite(values)]
    n_distinct = len(np.unique(values))
    lost = n_distinct - _n_distinct(values)
    center = float(np.median(values)) if lost else 0.0
    return center if lost and _n_distinct(values - center) - n_distinct + lost > CENTER_GAIN * n_distinct else 0.0


def _n_distinct(values: np.ndarray) -> int:
    """The number of values that float32 tells apart."""
    with np.errstate(over="ignore"):
        return len(np.unique(values.astype(np.float32)))


def _seconds(column):
    """Durations in seconds; other numbers as they are."""
    return column.dt.total_seconds() if column.dtype.kind == "m" else column


def _numbers(column, mark: str):
    """The values as numbers; NaN for those that are missing or not numbers."""
    text = _present(column)
    distinct = text.unique().tolist()
    found = np.full(len(column), np.nan)
    found[text.index] = text.map(dict(zip(distinct, to_numbers(distinct, mark)))).to_numpy(dtype=float)
    return import_module("pandas").Series(found, index=column.index)
