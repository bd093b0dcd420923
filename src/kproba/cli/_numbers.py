"""Numbers as people write them: 1,234.50 or 1.234,50, € 12, 7 %, and a dash where there is none."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

_SPACE = "\\s\u00a0\u202f"
#: One way of writing: {t} between thousands, {d} before the decimals. A group of thousands does not start with 0.
_NUMBER = (
    r"[-+\u2212]?[{s}]*[$€£¥]?[{s}]*(?:[1-9]\d{{0,2}}(?:[{t}{s}'’]\d{{3}})+(?:[{d}]\d+)?|\d+(?:[{d}]\d*)?(?:[eE][-+]?\d+)?)"
    r"[{s}]*[$€£¥%]?"
)
#: Decimal mark -> what a number looks like. The first one that fits all of a column is taken.
STYLES = {
    ".": _NUMBER.format(s=_SPACE, t=",", d="."),
    ",": _NUMBER.format(s=_SPACE, t=".", d=","),
}
#: What stands for no number.
GAPS = ("", "?", "-", "–", "—", "...")
#: So many values show that a column is no number, before all of it is looked at.
FEW = 200


class WrittenNumbers(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns of a frame in which every value is a number in one way of writing become numbers.

    ``styles_`` has their decimal marks. Of new rows, what is no number is missing.

    >>> import pandas
    >>> frame = pandas.DataFrame({"price": ["€ 1.200,50", "3,5", "?"], "name": ["1a", "2b", "3c"]})
    >>> WrittenNumbers().fit_transform(frame)
        price name
    0  1200.5   1a
    1     3.5   2b
    2     NaN   3c
    """

    def fit(self, frame, y=None):
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        found = {str(name): _style(frame[name]) for name in frame.columns if _is_text(frame[name])}
        self.styles_ = {name: style for name, style in found.items() if style}
        return self

    def transform(self, frame):
        frame = frame.copy(deep=False)
        for name, mark in self.styles_.items():
            if _is_text(frame[name]):
                frame[name] = _numbers(frame[name], mark)
        return frame


def _is_text(column) -> bool:
    return column.dtype.kind == "O" and str(column.dtype) != "category"


def _written(column):
    """The values that are there, as text."""
    text = column.dropna().astype(str).str.strip()
    return text[~text.isin(GAPS)]


def _style(column) -> str | None:
    text = _written(column)
    for mark, pattern in STYLES.items():
        if len(text) and text[:FEW].str.fullmatch(pattern).all() and text.str.fullmatch(pattern).all():
            return mark
    return None


def _numbers(column, mark: str):
    text = _written(column)
    text = text[text.str.fullmatch(STYLES[mark])].str.replace("\u2212", "-")
    plain = text.str.replace(rf"[^\d{mark}eE+-]", "", regex=True).str.replace(mark, ".", regex=False)
    return import_module("pandas").to_numeric(plain).astype(float).reindex(column.index)
