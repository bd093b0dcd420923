"""Encoding of text columns that does not depend on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

#: Number of decimals to keep, in columns whose variances sum to one.
DECIMALS = 6


class TextColumn(TransformerMixin, BaseEstimator):
    """Frequencies of character 3- and 4-grams, reduced to a few columns (latent semantic analysis).

    It replaces skrub's ``StringEncoder`` in a ``TableVectorizer``, which computes in float32: another BLAS changes its
    values by 1e-4, and since samples of rows depend on the bits of their values, the same file would give a different
    model on another processor. Here everything is computed in float64 and rounded to far more digits than matter.

    >>> import pandas
    >>> column = pandas.Series(["red car", "red cart", "blue boat", None], name="what")
    >>> TextColumn(n_components=2).fit_transform(column).round(3) + 0.0
       what_0  what_1
    0   1.443   0.000
    1   1.443   0.000
    2   0.000   1.599
    3   0.000   0.000
    """

    __single_column_transformer__ = True  # tells skrub to pass a series

    def __init__(self, n_components: int = 30, random_state: int = 0):
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, column, y=None) -> TextColumn:
        self.fit_transform(column)
        return self

    def fit_transform(self, column, y=None) -> Any:
        self.words_ = TfidfVectorizer(ngram_range=(3, 4), analyzer="char_wb")
        counts = self.words_.fit_transform(_as_text(column))
        n_components = min(self.n_components, *counts.shape)
        self.reduction_ = TruncatedSVD(n_components, random_state=self.random_state)
        values = self.reduction_.fit_transform(counts)
        self.scale_ = float(np.sqrt(values.var(axis=0).sum())) or 1.0
        self.all_outputs_ = [f"{column.name}_{number:0{len(str(n_components - 1))}d}" for number in range(n_components)]
        return self._framed(column, values)

    def transform(self, column) -> Any:
        return self._framed(column, self.reduction_.transform(self.words_.transform(_as_text(column))))

    def get_feature_names_out(self, input_features=None) -> list[str]:
        return self.all_outputs_

    def _framed(self, column, values: np.ndarray) -> Any:
        from pandas import DataFrame

        rounded = np.round(values / self.scale_, DECIMALS) + 0.0  # turns −0 into +0
        return DataFrame(rounded, columns=self.all_outputs_, index=column.index)


def _as_text(column) -> list[str]:
    return ["" if missing else str(cell) for cell, missing in zip(column, column.isna())]
