"""Baselines: class shares and logistic regression."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline, make_pipeline

from ..data.tables import LabelledTable

#: Largest number of rows that logistic regression is fitted on, and folds to evaluate it without held-out rows.
MOST_ROWS, FOLDS = 20_000, 5
BASE_RATES, REGRESSION = "base rates", "logistic regression"
OMITTED = "Logistic regression is omitted: "


class ModelProba(NamedTuple):
    """A model's name and its probabilities (n, n_classes) for the evaluated rows."""

    name: str
    proba: np.ndarray


def baselines(model, rows, y_train, X_train, only_training: bool, seed: int) -> tuple[list[ModelProba], list[str]]:
    """Class shares, logistic regression, and notes about how they were obtained or why they are missing.

    If the rows are ``only_training`` rows, logistic regression is evaluated by folds of these.
    """
    if only_training:
        notes: list[str] = []
        shares = _shares(rows.codes, len(model.classes_))
        regression, more = _by_folds(model, rows, seed)
    else:
        shares, notes = _training_shares(model, rows, y_train)
        regression, more = _held_out(model, rows, X_train, y_train, seed)
    found = [ModelProba(BASE_RATES, np.tile(shares, (len(rows.codes), 1)))]
    if regression is not None:
        found.append(ModelProba(REGRESSION, regression))
    return found, notes + more


def _shares(codes: np.ndarray, n_classes: int) -> np.ndarray:
    return np.bincount(codes, minlength=n_classes) / len(codes)


def _training_shares(model, rows, y_train) -> tuple[np.ndarray, list[str]]:
    if y_train is not None:
        known = [np.asarray(y_train) == label for label in model.classes_]
        return np.mean(known, axis=1), []
    note = (
        "Base rates are the class shares of the evaluated rows, because y_train was not given (--train in the "
        "command); this favours them."
    )
    return _shares(rows.codes, len(model.classes_)), [note]


def _held_out(model, rows, X_train, y_train, seed: int):
    if X_train is None or y_train is None:
        return None, [OMITTED + "it needs X_train and y_train (--train in the command)."]
    (table, notes), (new, _) = _table(model, X_train), _table(model, rows.X)
    if table is None or new is None:
        return None, [OMITTED + "X is not a table of finite numbers."]
    labels = np.asarray(y_train)
    if table.shape[0] > MOST_ROWS:
        some = np.random.default_rng(seed).permutation(table.shape[0])[:MOST_ROWS]
        table, labels = table[some], labels[some]
        notes.append(f"Logistic regression was fitted on a sample of {MOST_ROWS:,} training rows.")
    fitted = _quietly(lambda: _regression(table).fit(table, labels))
    return _in_order(fitted.predict_proba(new), fitted.classes_, model.classes_), notes


def _by_folds(model, rows, seed: int):
    from sklearn.model_selection import StratifiedKFold, cross_val_predict  # slow to import and rarely needed

    table, notes = _table(model, rows.X)
    if table is None:
        reason = "it needs X." if rows.X is None else "X is not a table of finite numbers."
        return None, [OMITTED + reason]
    folds = min(FOLDS, int(np.bincount(rows.codes, minlength=len(model.classes_)).min()))
    if folds < 2 or len(rows.codes) > MOST_ROWS:
        reason = "a class has fewer than two rows." if folds < 2 else f"there are more than {MOST_ROWS:,} rows."
        return None, [OMITTED + reason]
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    predict = {"cv": split, "method": "predict_proba"}
    proba = _quietly(lambda: cross_val_predict(_regression(table), table, rows.codes, **predict))
    note = (
        f"Base rates are those of all training rows; logistic regression is evaluated by {folds}-fold cross-validation."
    )
    return proba, [*notes, note]


def _regression(table):
    from sklearn.linear_model import LogisticRegression  # slow to import and rarely needed
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=not sparse.issparse(table)), LogisticRegression(max_iter=300))


def _table(model, X) -> tuple[Any, list[str]]:
    """X as a numeric table, transformed by the first steps of a pipeline if necessary, and a note about that."""
    table = _numeric(X)
    if table is not None or X is None or isinstance(X, LabelledTable):  # a LabelledTable may not fit in memory
        return table, []
    if not isinstance(model, Pipeline) or len(model) == 1:
        return None, []
    return _numeric(model[:-1].transform(X)), ["Logistic regression uses the columns that the pipeline computes."]


def _numeric(X):
    """X as a numeric table, or None if it is not one."""
    if sparse.issparse(X):
        return X.tocsr() if np.isfinite(X.data).all() else None
    try:
        table = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return table if table.ndim == 2 and table.shape[1] and np.isfinite(table).all() else None


def _quietly(fit):
    """Fit without warnings: a baseline need not fully converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


def _in_order(proba: np.ndarray, own, classes) -> np.ndarray:
    """Columns in the order of the model's classes, with zeros for classes that the baseline has not seen."""
    found = np.zeros((len(proba), len(classes)))
    for label, column in zip(own.tolist(), proba.T):
        found[:, classes == label] = column[:, None]
    return found
