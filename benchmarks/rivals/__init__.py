"""One rival a file: ``name`` and ``fit(X, y, categorical)``, which returns classes_ and predict_proba.

``X`` is the raw table: a number in a column that ``categorical`` flags names a category, NaN is missing.
Each file prepares it as its users would, inside ``fit``, and imports its library there: a missing one stops
nobody else.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

#: The methods that are ranked.
RANKED = ("kproba", "svc", "nystroem", "lightgbm", "catboost")
#: Shown, but not ranked: a variant of one that is.
EXTRA = ("svc_untuned",)
EVERYONE = (*RANKED, *EXTRA)


def get(key: str):
    """The rival's module."""
    return import_module(f".{key}", __name__)


class Prepared:
    """A fitted model behind the preparation of its inputs."""

    def __init__(self, prepare, model):
        self.prepare, self.model = prepare, model
        self.classes_ = np.ravel(model.classes_)

    def predict_proba(self, X) -> np.ndarray:
        return self.model.predict_proba(self.prepare(X))


class OneHot:
    """Categories as 0/1 columns (one for two values), numbers with the training median where they miss."""

    def __init__(self, X, categorical):
        self.median = np.nanmedian(X, axis=0)
        self.levels = [_levels(column) if flag else None for column, flag in zip(X.T, categorical)]

    def __call__(self, X) -> np.ndarray:
        columns = []
        for j, levels in enumerate(self.levels):
            x = X[:, [j]]
            columns.append(np.where(np.isnan(x), self.median[j], x) if levels is None else (x == levels) * 1.0)
        return np.hstack(columns)


def _levels(column: np.ndarray) -> np.ndarray:
    levels = np.unique(column[~np.isnan(column)])
    return levels[1:] if len(levels) == 2 else levels
