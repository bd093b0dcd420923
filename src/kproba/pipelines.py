"""The pipeline of the command line: dates, text, currencies and categories of any number, encoded by skrub."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline, make_pipeline

from .estimators import LSPC
from .messages import needed


def tabular(estimator: Any = None) -> Pipeline:
    """A pipeline for data frames with dates, text, amounts of money and categories, as ``kproba fit`` uses it.

    Numbers are read as people write them (``1,234.50``, ``€ 12``, ``7 %``), dates are split into their parts, strings
    with at most 40 different values become 0/1 columns and others the main components of their 3- and 4-grams. Missing
    values are imputed and marked. Frames of numbers, categories and missing values alone need no pipeline: the
    classifiers of kproba take them as they are.

    Parameters
    ----------
    estimator : classifier, default=None
        The last step; None is ``LSPC()``.

    Returns
    -------
    sklearn.pipeline.Pipeline
        It clones, pickles and can be saved with :func:`kproba.save`. :func:`kproba.to_onnx` refuses it, because ONNX
        has no counterpart of the steps that read dates and text.

    Examples
    --------
    >>> import pandas as pd
    >>> from kproba import LSPC, tabular
    >>> frame = pd.DataFrame({"price": ["€ 12", "€ 1,200", "€ 15", "€ 1,100"] * 10, "day": ["2026-01-05"] * 40})
    >>> model = tabular(LSPC(kernel="laplacian", width=1.0, ridge=0.01)).fit(frame, ["low", "high"] * 20)
    >>> model.predict(pd.DataFrame({"price": ["€ 14"], "day": ["2026-02-01"]})).tolist()
    ['low']
    """
    estimator = LSPC() if estimator is None else estimator
    if not isinstance(estimator, BaseEstimator) or not is_classifier(estimator):
        raise TypeError(f"estimator must be a classifier, got {estimator!r}.")
    return behind(vectorizer(), estimator)


def vectorizer() -> Pipeline:
    """A pipeline that converts numbers, categories, dates and text to numeric columns and imputes missing values."""
    skrub = needed("skrub", "tables with dates or text need skrub", "tables")
    from sklearn.impute import SimpleImputer  # slow to import, as is what encodes text

    from .features.column_kinds import ColumnKinds
    from .features.text_column import TextColumn

    table = skrub.TableVectorizer(high_cardinality=TextColumn(), drop_if_constant=True)
    return make_pipeline(ColumnKinds(), table, SimpleImputer(strategy="median", add_indicator=True))


def behind(prepared: Pipeline, classifier: Any) -> Pipeline:
    """A pipeline, fitted or not, with a classifier as its last step."""
    return Pipeline([*prepared.steps, (type(classifier).__name__.lower(), classifier)])
