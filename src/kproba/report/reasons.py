"""The columns that moved a prediction most, for rows of a report."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from ..basis.local_basis import LocalBasis
from ..estimators._base import KernelClassifier
from ..explanations import Explanation, explain
from ..explanations.columns import final_step
from ..explanations.shapley import quadrature
from ..kernels.by_column import split_by_column
from .fitted import MOST_COLUMNS, Importances
from .judged import some_rows

#: Number of columns to name for a row, and the number of products that explanations may take: some seconds.
REASONS, MOST_PRODUCTS = 3, 2e9
#: Number of rows that mean contributions are those of, and of resamples for their intervals.
EXPLAINED_ROWS, RESAMPLES = 100, 200


def reasons_of(model, X, classes: np.ndarray, names: Sequence[str] | None) -> list[tuple[str, ...]]:
    """The reasons for class number ``classes[i]`` of row i of X as text, empty if the model cannot be explained."""
    if not len(classes) or sparse.issparse(X) or n_products(model, len(classes)) > MOST_PRODUCTS:
        return [()] * len(classes)
    found = _explained(model, X, names)
    rows = zip(range(len(classes)), classes.tolist())
    return [tuple(map(str, found.row_reasons(i, k, REASONS))) for i, k in rows]


def mean_contributions(model, X, names: Sequence[str] | None, seed: int) -> Importances | None:
    """The share of each column in the contributions to the scores of some rows; None if the model cannot be explained.

    The ends of its interval are those of resampled rows.
    """
    n = min(np.shape(X)[0], EXPLAINED_ROWS)
    if sparse.issparse(X) or n_products(model, n) > MOST_PRODUCTS:
        return None
    rng = np.random.default_rng(seed)
    found = _explained(model, some_rows(X, np.sort(rng.permutation(np.shape(X)[0])[:n])), names)
    by_row = np.abs(found.values).sum(axis=2)
    drawn = np.array([_shares(by_row[rng.integers(n, size=n)]) for _ in range(RESAMPLES)])
    share, (low, high) = _shares(by_row), np.quantile(drawn, [0.05, 0.95], axis=0)
    order = np.argsort(-share, kind="stable")[:MOST_COLUMNS]
    shown = tuple(found.feature_names[j] for j in order)
    return Importances(shown, share[order], np.minimum(low, share)[order], np.maximum(high, share)[order], len(share))


def _shares(by_row: np.ndarray) -> np.ndarray:
    total = by_row.sum(axis=0)
    return total / (total.sum() or 1.0)


def _explained(model, X, names: Sequence[str] | None) -> Explanation:
    found = explain(model, X)
    if names is not None and found.data.shape == np.shape(X):  # otherwise the columns are not those of X
        found = replace(found, feature_names=tuple(map(str, names)))
    return found


def n_products(model, n_rows: int) -> float:
    """Number of products that explanations take; infinite if the model has none."""
    final = final_step(model)
    d = getattr(final, "n_features_in_", 0)
    if not isinstance(final, KernelClassifier) or not d or split_by_column(final.basis_.kernel, d) is None:
        return np.inf
    n_models = final.basis_.regions.n_regions if isinstance(final.basis_, LocalBasis) else 1  # a row has one or two
    return float(n_rows * d * final.basis_.n_centers / n_models * len(quadrature(d)))
