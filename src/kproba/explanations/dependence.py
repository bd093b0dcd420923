"""Partial dependence: the average prediction if a column had another value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ..arrays import is_tensor
from ..basis.local_basis import LocalBasis
from ..data.mixed import (
    Category,
    Number,
    as_floats,
    as_text,
    cells_of,
    chosen_columns,
    columns_of,
    is_rectangular,
)
from ..data.sources import Source
from ..kernels.by_column import ByColumn, split_by_column
from ..threads import fill_tiles, one_blas_thread
from ..typing import Inputs
from .columns import transformed
from .model import ColumnModel, check_classifier, n_columns
from .shapley import KernelSum

#: Largest size of the products over all other columns, for every row and centre; larger models predict as usual.
MOST_BYTES = 1 << 30


def partial_dependence(model: Any, X: Inputs, features: Any, **options: Any) -> Bunch:
    """:func:`sklearn.inspection.partial_dependence` of a fitted classifier, with the same result but faster.

    scikit-learn predicts all rows again for every value of the grid. Here the other columns' part of the kernel is
    computed once, and every value of the grid takes one product with the coefficients.

    Parameters
    ----------
    model : fitted classifier of kproba, or pipeline that ends in one
    X : array or data frame of shape (n, n_features)
        The rows over which predictions are averaged.
    features : int, str, or list of one or two of these
        The columns that vary.
    **options
        The other parameters of :func:`sklearn.inspection.partial_dependence`, such as ``kind``, ``grid_resolution``,
        ``percentiles``, ``custom_values``, ``response_method`` and ``sample_weight``.

    Returns
    -------
    sklearn.utils.Bunch
        ``grid_values``, ``average`` and ``individual``, as from scikit-learn.

    See Also
    --------
    kproba.explanations.fix_rows : prepares a model for :class:`sklearn.inspection.PartialDependenceDisplay`.

    Examples
    --------
    >>> import numpy as np
    >>> from kproba import LSPC, partial_dependence
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> clf = LSPC(kernel="gaussian", random_state=0).fit(X, X[:, 0] > 0)
    >>> found = partial_dependence(clf, X, [0], grid_resolution=3)
    >>> found.average.shape
    (1, 3)
    >>> print(f"{found.average[0, 0]:.1f} {found.average[0, 2]:.1f}")
    0.0 1.0
    """
    from sklearn.inspection import partial_dependence as by_prediction  # slow to import

    own = mixed_grids(model, X, features, **options)
    if own:
        options["custom_values"] = own | (options.get("custom_values") or {})
    return by_prediction(fix_rows(model, X), X, features, **options)


def mixed_grids(
    model: Any,
    X: Any,
    features: Any,
    grid_resolution: int = 100,
    percentiles: Any = (0.05, 0.95),
    custom_values: Any = None,
    categorical_features: Any = None,
    **_: Any,
) -> dict[Any, np.ndarray]:
    """The values at which columns with gaps and those that are not numbers vary, except those with custom values.

    scikit-learn cannot sort missing ones, and would turn truth values beside numbers into numbers.
    """
    if not is_rectangular(X):
        return {}
    columns, found = getattr(model, "columns_", None), {}
    listed = features.tolist() if hasattr(features, "tolist") else features
    wanted = list(listed) if isinstance(listed, list | tuple) else [listed]
    for j, ((name, values), is_code) in enumerate(zip(columns_of(X), chosen_columns(X, categorical_features))):
        key = next((each for each in wanted if each == name or (type(each) is int and each == j)), None)
        if key is None or key in (custom_values or {}):
            continue
        column = None if columns is None else columns.columns[j]
        floats = column.floats(name, values) if isinstance(column, Number) else _as_numbers(name, values)
        if isinstance(column, Category) or floats is None:
            found[key] = _levels(name, values, np.inf if is_code or column is not None else grid_resolution)
        elif np.isnan(floats).any() or (column is not None and column.has_gaps):
            found[key] = _spread(floats, np.inf if is_code else grid_resolution, percentiles)
    return found


def _as_numbers(name: Any, values: Any) -> np.ndarray | None:
    """A column of numbers or objects that are numbers as floats; None if it holds something else."""
    if getattr(values.dtype, "kind", "") != "O":
        return as_floats(values)
    cells = cells_of(name, values)
    if not all(isinstance(value, Real) and not isinstance(value, bool) for value in cells.values):
        return None
    return np.array([*cells.values, np.nan], dtype=np.float64)[cells.place]


def _levels(name: Any, values: Any, most: float) -> np.ndarray:
    """The distinct values of a column that does not hold numbers, without missing ones."""
    distinct = cells_of(name, values).values
    if len(distinct) >= most:
        raise ValueError(
            f"the column {name!r} has {len(distinct)} different values that are not numbers; say with custom_values "
            "which of them to show, or set a larger grid_resolution."
        )
    is_time = getattr(getattr(distinct, "dtype", None), "kind", "") in ("m", "M")
    levels = np.array(sorted(distinct, key=None if is_time else as_text))
    return levels.astype(object) if levels.dtype == bool else levels


def _spread(values: np.ndarray, n_values: float, percentiles: Any) -> np.ndarray:
    """All distinct numbers if they are few, otherwise equally spaced ones between the percentiles."""
    there = values[~np.isnan(values)]
    distinct = np.unique(there)
    if len(distinct) < n_values:
        return distinct
    low, high = np.quantile(there, percentiles)
    return np.linspace(low, high, int(n_values))


def fix_rows(model: Any, X: Inputs) -> Any:
    """A copy of a fitted model that predicts faster for rows that differ from ``X`` in few columns.

    Its predictions are the same. Use it where the same rows are predicted many times with a column replaced, as in
    ``PartialDependenceDisplay.from_estimator`` or ``permutation_importance`` of :mod:`sklearn.inspection`. The copy
    needs memory for up to three numbers per row of ``X`` and centre.

    Parameters
    ----------
    model : fitted classifier of kproba, or pipeline that ends in one
    X : array or data frame of shape (n, n_features)

    Returns
    -------
    An object of the type of ``model``.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from sklearn.inspection import PartialDependenceDisplay
    >>> from kproba import LSPC
    >>> from kproba.explanations import fix_rows
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> clf = LSPC(kernel="gaussian", random_state=0).fit(X, X[:, 0] > 0)
    >>> display = PartialDependenceDisplay.from_estimator(fix_rows(clf, X), X, [0, 1])
    """
    classifier = check_classifier(model, "fix_rows")
    check_is_fitted(model)
    rows = transformed(model, X)
    if not _splits(classifier, rows):
        return model
    fixed = copy(classifier)
    # decision_function, predict_proba and predict all start from the scores
    fixed.__dict__["_scores"] = FixedScores.of(ColumnModel.of(classifier, "fix_rows"), rows)
    return Pipeline([*model.steps[:-1], (model.steps[-1][0], fixed)]) if isinstance(model, Pipeline) else fixed


def _splits(classifier, rows) -> bool:
    """Whether the kernel splits by column, and its features of all rows fit into memory."""
    kernel, centers = classifier.basis_.kernel, classifier.basis_.centers
    if (
        isinstance(rows, Source)
        or is_tensor(rows)
        or classifier.device is not None
        or not isinstance(centers, np.ndarray)
        or isinstance(classifier.basis_, LocalBasis)
    ):
        return False
    terms = split_by_column(kernel, n_columns(classifier))
    return terms is not None and 8 * len(terms) * len(rows) * len(centers) <= MOST_BYTES


@dataclass(frozen=True)
class Parts:
    """How a term splits between two sets of columns: alone(A) + alone(B) + cross·times(A)·times(B)."""

    alone: Callable[[np.ndarray], np.ndarray] | None
    times: Callable[[np.ndarray], np.ndarray] | None
    cross: float = 1.0


def _sum(e):
    return e.sum(axis=0)


PARTS = {
    "product": Parts(None, lambda e: e.prod(axis=0)),
    "sum": Parts(_sum, None),
    "pairs": Parts(lambda e: _sum(e) ** 2 - _sum(e * e), _sum, 2.0),
}


@dataclass
class FixedScores:
    """The scores of a classifier, with the part of the columns that stay the same computed once."""

    model: ColumnModel
    score: KernelSum
    rows: np.ndarray
    #: the columns that vary, and for each term the scores and the products of all others
    others: dict[tuple[int, ...], list[tuple[Any, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: ColumnModel, rows) -> FixedScores:
        score = KernelSum.of(model.terms, model.centers, model.coef, model.arrays(None))
        return cls(model, score, model.scaled(rows))

    def __call__(self, X) -> np.ndarray:
        """Raw scores (n, k)."""
        if is_tensor(X):
            return self.model.classifier._scores(X)
        rows = self.model.scaled(X)
        changed = self._changed(rows)
        if changed is None:
            return self.model.classifier._scores(X)
        if changed not in self.others:
            self.others.clear()  # columns are varied one after the other
            self.others[changed] = [self._of_others(term, changed) for term in self.score.terms]
        if (rows[:, changed] == rows[:1, changed]).all():
            rows = rows[:1]  # all rows have the same values there
        parts = zip(self.score.terms, self.others[changed])
        with one_blas_thread():  # threads would wait for each other longer than such narrow products take
            return self.model.intercept + sum(self._scores(term, rows, changed, *others) for term, others in parts)

    def _changed(self, rows: np.ndarray) -> tuple[int, ...] | None:
        """The columns that differ from the fixed rows; None if that is not a small part of them."""
        if rows.shape != self.rows.shape or not len(rows) or not len(self.model.centers):
            return None
        changed = np.flatnonzero((rows != self.rows).any(axis=0))
        return tuple(changed.tolist()) or (0,) if 2 * max(1, len(changed)) <= rows.shape[1] else None

    def _of_others(self, term: ByColumn, changed: tuple[int, ...]) -> tuple[Any, Any]:
        """Scores (n, k) and products (n, b) of the columns that stay the same; zero and None where there are none."""
        parts, coef = PARTS[term.combine], self.score.coef
        (n, d), b = self.rows.shape, len(coef)
        columns = [j for j in range(d) if j not in changed]
        scores = np.zeros((n, coef.shape[1]))
        products = None if parts.times is None else np.empty((n, b))

        def fill(tile: slice) -> None:
            factors = self._factors(term, self.rows[tile], columns)
            if parts.alone is not None:
                scores[tile] = term.amplitude * (parts.alone(factors) @ coef)
            if products is not None and parts.times is not None:
                products[tile] = parts.cross * term.amplitude * parts.times(factors)

        fill_tiles(fill, n, 8 * d * b, self.score.arrays.workers)
        return scores, products

    def _scores(self, term: ByColumn, rows: np.ndarray, changed, scores, products) -> np.ndarray:
        """The scores of one term for the values of the changed columns, one row of them or as many as fixed rows."""
        parts, coef = PARTS[term.combine], self.score.coef
        factors = self._factors(term, rows, changed)
        if parts.alone is not None:
            scores = scores + term.amplitude * (parts.alone(factors) @ coef)
        if parts.times is None:
            return scores
        times = parts.times(factors)
        return scores + (products @ (times.T * coef) if len(times) == 1 else (products * times) @ coef)

    def _factors(self, term: ByColumn, rows: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """The functions of some columns (d, n, b)."""
        Z = self.score.centers
        with np.errstate(over="ignore"):  # of distances between remote values, whose kernel is zero
            return np.stack([term.of_column(j, rows[:, j, None], Z[None, :, j]) for j in columns])
