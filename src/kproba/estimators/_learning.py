"""Learning the kernel inside a fit: when it applies, out-of-fold probabilities, and what is stored of it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from ..data.items import Items
from ..data.rows import Rows
from ..data.sampling import sample_rows
from ..kernels.learnt import Learnt
from ..links import positive_prior
from ..progress import Progress
from ..search.choose import Prepared
from ..search.learnt.outer_folds import LEAST_ROWS, LearntKernel, learn
from ..search.pose import is_given
from ..search.staged import most_informative_tags
from ..threads import map_independent, n_workers
from ._reading import Training

#: A sharp learnt kernel uses all rows as centres up to this number; their kernel matrix takes 0.8 GB.
DENSE_ROWS = 10_000
#: Rows whose differences give the spread of the columns.
SPREAD_ROWS = 300


def learns_kernel(model, rows: Rows) -> bool:
    """Whether ``kernel="auto"`` is learnt: dense columns, enough distinct rows, and nothing that fixes the basis."""
    is_open = _is_auto(model.kernel) and _is_auto(model.width)
    has_columns = not isinstance(rows.X, Items) and not rows.is_sparse
    centers: Any = getattr(model, "centers", "auto")
    owned = isinstance(centers, tuple) or (isinstance(centers, str) and centers == "class")
    plain = model._learns and not is_given(centers) and not owned and rows.group is None
    return is_open and plain and has_columns and rows.n_distinct >= LEAST_ROWS and bool(rows.X.shape[1])


def learn_kernel(model, scaled: Rows, data: Training) -> LearntKernel:
    """Learn the kernel on scaled rows."""
    with Progress(model.verbose, title=f"{type(model).__name__}: kernel") as progress:
        return learn(most_informative_tags(scaled), data.seed, n_workers(model.n_jobs), progress.step)


def out_of_fold(model, learnt: LearntKernel, scaled: Rows) -> np.ndarray:
    """Probabilities (n, c) of every row by a model fitted without its fold, under the kernel learnt without it."""

    def of_fold(number: int) -> tuple[np.ndarray, np.ndarray]:
        inside, outside = (np.flatnonzero((learnt.fold == number) == side) for side in (False, True))
        kernel, noise = learnt.of_folds[number]
        return outside, _proba_without_fold(
            model, kernel, noise, learnt.all_rows and len(inside) <= DENSE_ROWS, scaled.take(inside), scaled.X[outside]
        )

    proba = np.empty((len(scaled), scaled.n_classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit of all rows has warned already
        for rows, found in map_independent(of_fold, range(len(learnt.of_folds)), n_workers(model.n_jobs)):
            proba[rows] = found
    return proba


def _proba_without_fold(model, kernel: Learnt, noise: float, all_rows: bool, rows: Rows, X_new) -> np.ndarray:
    """Probabilities of the rows of a fold, by a model of all other rows with a given kernel."""
    if not rows.is_multilabel and len(np.unique(rows.labels)) == 1:
        return np.tile(positive_prior(rows), (len(X_new), 1))
    fold_model = clone(model).set_params(kernel=kernel, scaling=None, class_weight=None, verbose=0, random_state=0)
    if _is_auto(model.ridge) and model._ridge_is_noise:
        fold_model.set_params(ridge=noise / rows.total_weight)
    if all_rows and _is_auto(getattr(model, "centers", None)):
        fold_model.set_params(centers="all")
    groups = {} if rows.together is None else {"groups": rows.together}
    fold_model.fit(rows.X, rows.labels, rows.weight, **groups)
    return _aligned(fold_model.predict_proba(X_new), fold_model.classes_, rows)


def _aligned(proba: np.ndarray, classes: np.ndarray, rows: Rows) -> np.ndarray:
    """Probabilities in the order of all classes; a class that the fold's model has not seen has probability zero."""
    if rows.is_multilabel:
        return proba
    whole = np.zeros((len(proba), rows.n_classes))
    whole[:, classes] = proba
    return whole


def importances(kernel: Learnt, rows: Rows, seed: int) -> np.ndarray:
    """The share of each column in the distances of the learnt kernel, weighted by its mixture."""
    some = rows.X[sample_rows(rows, SPREAD_ROWS, seed)]
    differences = np.array([np.abs(column[:, None] - column).mean() for column in some.T])
    along = np.asarray(kernel.weights) * differences
    parts = np.array([along, along**2, along**2, along**2])
    totals = parts.sum(axis=1, keepdims=True)
    shares = np.divide(parts, totals, out=np.full_like(parts, 1.0 / len(along)), where=totals > 0)
    mixture = np.asarray(kernel.mixture)
    return mixture @ shares / mixture.sum()


def store_learnt(model, table: Prepared, data: Training) -> None:
    """Set what the learnt kernel adds to the fitted attributes."""
    model._forget("feature_importances_", "learning_curve_", "oof_proba_")
    learnt = table.learnt
    if learnt is None:
        return
    model.feature_importances_ = importances(learnt.kernel, table.rows, data.seed)
    model.learning_curve_ = learnt.curve
    if data.place is None or not hasattr(model, "predict_proba"):
        return
    model.oof_proba_ = out_of_fold(model, learnt, table.rows)[data.place]


def _is_auto(value) -> bool:
    return isinstance(value, str) and value == "auto"
