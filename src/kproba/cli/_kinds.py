"""What columns of a table are, whatever file they come from: numbers as people write them (1,234.50 or 1.234,50, € 12,
7 %, a dash where there is none), truth values, and words that look like numbers."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from ..exceptions import UnreadableWarning
from ..messages import warn

_SPACE = "\\s\u00a0\u202f"
#: One way of writing: {t} between thousands, {d} before the decimals. A group of thousands does not start with 0.
_NUMBER = (
    "[-+\u2212]?[{s}]*[$€£¥]?[{s}]*(?:[1-9][0-9]{{0,2}}(?:[{t}{s}'’][0-9]{{3}})+(?:[{d}][0-9]+)?|[0-9]+(?:[{d}][0-9]*)?(?:[eE][-+]?[0-9]+)?)"
    r"[{s}]*[$€£¥%]?"
)
#: Decimal mark -> what a number looks like. The first one that fits all of a column is taken.
STYLES = {
    ".": _NUMBER.format(s=_SPACE, t=",", d="."),
    ",": _NUMBER.format(s=_SPACE, t=".", d=","),
}
#: What stands for no number.
GAPS = ("", "?", "-", "–", "—", "...")
#: Truth values as text files and spreadsheets write them.
TRUTHS = {"true": 1.0, "false": 0.0}
#: So many values show that a column is no number, before all of it is looked at.
FEW = 200


class ColumnKinds(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns of a frame are of one kind for good: numbers in whatever way of writing, truth values, words.

    ``styles_`` has the decimal marks of columns of text in which every value is a number in one way of writing,
    ``numbers_`` and ``truths_`` name the columns of numbers and of truth values as such, ``words_`` the others of text.
    Of new rows, what is no number, or neither true nor false, is missing, and a number in a column of words is a word.

    >>> import pandas
    >>> frame = pandas.DataFrame({"price": ["€ 1.200,50", "3,5", "?"], "name": ["1a", "2b", "3c"]})
    >>> ColumnKinds().fit_transform(frame)
        price name
    0  1200.5   1a
    1     3.5   2b
    2     NaN   3c
    """

    def fit(self, frame, y=None):
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        named = [name for name in frame.columns if isinstance(name, str)]
        self.truths_ = [name for name in named if _is_truth(frame[name])]
        self.numbers_ = [name for name in named if frame[name].dtype.kind in "iuf"]
        texts = [name for name in named if _is_text(frame[name]) and name not in self.truths_]
        styles = {name: _style(frame[name]) for name in texts}
        self.styles_ = {name: style for name, style in styles.items() if style}
        self.words_ = [name for name, style in styles.items() if not style]
        return self

    def transform(self, frame):
        frame = frame.copy(deep=False)
        for name in self.truths_:
            frame[name] = _told(frame[name], _truths(frame[name]), "truth values")
        for name, mark in {**dict.fromkeys(self.numbers_, "."), **self.styles_}.items():
            if _is_text(frame[name]):
                frame[name] = _told(frame[name], _numbers(frame[name], _style(frame[name], mark) or mark), "numbers")
        for name in self.words_:
            if frame[name].dtype.kind in "iuf":
                frame[name] = frame[name].map(_word, na_action="ignore").astype(object)
        return frame


def _told(column, found, kind: str):
    """The values that were found; a warning where there are some and none could be read."""
    text = _written(column)
    if len(text) and found.isna().all():
        warn(
            f"column {column.name!r}: none of its {len(text)} values, such as {text.iloc[0]!r}, is what the model was "
            f"fitted on, {kind}; they count as missing.",
            UnreadableWarning,
        )
    return found


def _is_text(column) -> bool:
    return column.dtype.kind == "O" and str(column.dtype) != "category"


def _is_truth(column) -> bool:
    if column.dtype.kind == "b":
        return True
    return _is_text(column) and import_module("pandas").api.types.infer_dtype(column, skipna=True) == "boolean"


def _truths(column):
    if column.dtype.kind in "iuf":
        return column
    return (
        column.astype(object)
        .map(lambda value: TRUTHS.get(str(value).strip().lower()), na_action="ignore")
        .astype(float)
    )


def _word(value) -> str:
    """A number as it was written before a gap made a fraction of it."""
    return str(int(value)) if float(value).is_integer() else str(value)


def _written(column):
    """The values that are there, as text, by the number of their row."""
    text = column.reset_index(drop=True).dropna().astype(str).str.strip()
    return text[~text.isin(GAPS)]


def _style(column, first: str = ".") -> str | None:
    """The decimal mark with which all of a column is numbers; ``first`` where both would do."""
    text = _written(column)
    for mark, pattern in sorted(STYLES.items(), key=lambda style: style[0] != first):
        if len(text) and text[:FEW].str.fullmatch(pattern).all() and text.str.fullmatch(pattern).all():
            return mark
    return None


def _numbers(column, mark: str):
    text = _written(column)
    text = text[text.str.fullmatch(STYLES[mark])].str.replace("\u2212", "-")
    plain = text.str.replace(rf"[^0-9{mark}eE+-]", "", regex=True).str.replace(mark, ".", regex=False)
    pandas, found = import_module("pandas"), np.full(len(column), np.nan)
    found[text.index] = pandas.to_numeric(plain).astype(float)
    return pandas.Series(np.where(np.isinf(found), np.nan, found), index=column.index)
