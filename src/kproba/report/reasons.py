"""The columns that moved a prediction most, for rows of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from ..estimators._base import KernelClassifier
from ..explanations import explain
from ..explanations.columns import final_step
from ..explanations.shapley import quadrature
from ..kernels.by_column import split_by_column

#: Number of columns to name for a row, and the number of products that explanations may take: some seconds.
REASONS, MOST_PRODUCTS = 3, 2e9


def reasons_of(model, X, classes: np.ndarray, names: Sequence[str] | None) -> list[str]:
    """The reasons for class number ``classes[i]`` of row i of X as text, empty if the model cannot be explained."""
    if not len(classes) or sparse.issparse(X) or n_products(model, len(classes)) > MOST_PRODUCTS:
        return [""] * len(classes)
    found = explain(model, X)
    if names is not None and found.data.shape == np.shape(X):  # otherwise the columns are not those of X
        found = replace(found, feature_names=tuple(map(str, names)))
    rows = zip(range(len(classes)), classes.tolist())
    return ["; ".join(map(str, found.row_reasons(i, k, REASONS))) for i, k in rows]


def n_products(model, n_rows: int) -> float:
    """Number of products that explanations take; infinite if the model has none."""
    final = final_step(model)
    d = getattr(final, "n_features_in_", 0)
    if not isinstance(final, KernelClassifier) or not d or split_by_column(final.basis_.kernel, d) is None:
        return np.inf
    return float(n_rows * d * final.basis_.n_centers * len(quadrature(d)))
