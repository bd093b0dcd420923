"""The simple models that stand beside the one reported on."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline, make_pipeline

from ..data.tables import LabelledTable

#: The logistic regression is fitted on no more rows than these, and judged by so many folds where none are held out.
MOST_ROWS, FOLDS = 20_000, 5
BASE_RATES, REGRESSION = "base rates", "logistic regression"
LEFT_OUT = "Logistic regression is left out: "


class Rival(NamedTuple):
    """A model by its name and its probabilities (n, n_classes) of the judged rows."""

    name: str
    proba: np.ndarray


def rivals(model, rows, y_train, X_train, leave_one_out: bool, seed: int) -> tuple[list[Rival], list[str]]:
    """Class shares and a logistic regression, and notes on what is missing or special."""
    if leave_one_out:
        notes: list[str] = []
        shares = _shares(rows.codes, len(model.classes_))
        regression, more = _by_folds(model, rows, seed)
    else:
        shares, notes = _training_shares(model, rows, y_train)
        regression, more = _held_out(model, rows, X_train, y_train, seed)
    found = [Rival(BASE_RATES, np.tile(shares, (len(rows.codes), 1)))]
    if regression is not None:
        found.append(Rival(REGRESSION, regression))
    return found, notes + more


def _shares(codes: np.ndarray, n_classes: int) -> np.ndarray:
    return np.bincount(codes, minlength=n_classes) / len(codes)


def _training_shares(model, rows, y_train) -> tuple[np.ndarray, list[str]]:
    if y_train is not None:
        known = [np.asarray(y_train) == label for label in model.classes_]
        return np.mean(known, axis=1), []
    note = "Base rates are the class shares of these rows themselves, since y_train was not given; that flatters them."
    return _shares(rows.codes, len(model.classes_)), [note]


def _held_out(model, rows, X_train, y_train, seed: int):
    if X_train is None or y_train is None:
        return None, [LEFT_OUT + "it needs X_train and y_train."]
    (table, notes), (new, _) = _table(model, X_train), _table(model, rows.X)
    if table is None or new is None:
        return None, [LEFT_OUT + "the rows are not a table of finite numbers."]
    labels = np.asarray(y_train)
    if table.shape[0] > MOST_ROWS:
        some = np.random.default_rng(seed).permutation(table.shape[0])[:MOST_ROWS]
        table, labels = table[some], labels[some]
        notes.append(f"Logistic regression was fitted on {MOST_ROWS:,} of the training rows.")
    fitted = _quietly(lambda: _regression(table).fit(table, labels))
    return _in_order(fitted.predict_proba(new), fitted.classes_, model.classes_), notes


def _by_folds(model, rows, seed: int):
    from sklearn.model_selection import StratifiedKFold, cross_val_predict  # slow to import, seldom needed

    table, notes = _table(model, rows.X)
    if table is None:
        reason = "it needs X." if rows.X is None else "the rows are not a table of finite numbers."
        return None, [LEFT_OUT + reason]
    folds = min(FOLDS, int(np.bincount(rows.codes, minlength=len(model.classes_)).min()))
    if folds < 2 or len(rows.codes) > MOST_ROWS:
        reason = "a class has fewer than two rows." if folds < 2 else f"there are more than {MOST_ROWS:,} rows."
        return None, [LEFT_OUT + reason]
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    predict = {"cv": split, "method": "predict_proba"}
    proba = _quietly(lambda: cross_val_predict(_regression(table), table, rows.codes, **predict))
    return proba, [*notes, f"Base rates are of all training rows; logistic regression is judged by {folds} folds."]


def _regression(table):
    from sklearn.linear_model import LogisticRegression  # slow to import, seldom needed
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=not sparse.issparse(table)), LogisticRegression(max_iter=300))


def _table(model, X) -> tuple[Any, list[str]]:
    """X as a table of numbers, if need be by the first steps of a pipeline, and a note on that."""
    table = _numeric(X)
    if table is not None or X is None or isinstance(X, LabelledTable):  # the last is larger than memory
        return table, []
    if not isinstance(model, Pipeline) or len(model) == 1:
        return None, []
    return _numeric(model[:-1].transform(X)), ["Logistic regression sees the columns that the pipeline makes."]


def _numeric(X):
    """X as a table of numbers; None if it is not one."""
    if sparse.issparse(X):
        return X.tocsr() if np.isfinite(X.data).all() else None
    try:
        table = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return table if table.ndim == 2 and table.shape[1] and np.isfinite(table).all() else None


def _quietly(fit):
    """A rival that did not quite converge is still a rival."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


def _in_order(proba: np.ndarray, own, classes) -> np.ndarray:
    """Columns in the order of the model's classes; one the rival never saw gets nothing."""
    found = np.zeros((len(proba), len(classes)))
    place = {label: k for k, label in enumerate(classes.tolist())}
    for column, label in enumerate(own.tolist()):
        if label in place:
            found[:, place[label]] = proba[:, column]
    return found
