"""The rows that a report evaluates: labels and probabilities, checked, and what they say about new rows."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from ..arrays import to_numpy
from ..data.dask import is_dask
from ..data.labels import encode
from ..data.tables import LabelledTable
from ..estimators._honest import ATTRIBUTES, rows_with_probabilities
from ..explanations.columns import final_step

#: Classifiers whose leave-one-out is not exact.
APPROXIMATE = ("KernelLogisticRegression", "ImportVectorMachine")
#: How rows are evaluated: predictions for new rows; training rows by models that never saw their fold, or by
#: leave-one-out; these among new rows, for which there are predictions; or, as a last resort, predictions for training
#: rows.
HELD_OUT, OUT_OF_FOLD, LEAVE_ONE_OUT, TRAINING = "held-out", "out-of-fold", "leave-one-out", "training"
OUT_OF_FOLD_MIXED, LEAVE_ONE_OUT_MIXED = f"{OUT_OF_FOLD} and {HELD_OUT}", f"{LEAVE_ONE_OUT} and {HELD_OUT}"
#: Source of the probabilities of training rows -> how rows are evaluated if all are training rows, and if some are.
BY_NAME = {"oof": (OUT_OF_FOLD, OUT_OF_FOLD_MIXED), "loo": (LEAVE_ONE_OUT, LEAVE_ONE_OUT_MIXED)}
#: How rows are evaluated -> the attribute that has the probabilities of all training rows.
OF_TRAINING_ROWS = {on: ATTRIBUTES[name] for name, (on, _) in BY_NAME.items()}


def some_rows(X, numbers):
    """The rows with these numbers; those of a table on disk are read."""
    return X.take(numbers) if isinstance(X, LabelledTable) else _safe_indexing(X, numbers)


class Judged(NamedTuple):
    """Evaluated rows: inputs if there are any, indices of the true classes, and probabilities.

    ``n_skipped`` further training rows took part in learning the kernel and have no honest probabilities.
    """

    X: Any
    codes: np.ndarray
    proba: np.ndarray
    n_skipped: int = 0


def judged_rows(model, X, y, on: str, X_train, y_train) -> tuple[Judged, np.ndarray]:
    """The rows to evaluate, and their numbers among those given."""
    if on in OF_TRAINING_ROWS:
        X, y = (X_train, y_train) if y is None else (X, y)
        proba, how = _of_training_rows(model, y, on), OF_TRAINING_ROWS[on]
    elif on in (HELD_OUT, TRAINING):
        proba, how = _predicted(model, X, y), "predict_proba"
    else:
        ways = ", ".join(map(repr, (HELD_OUT, *OF_TRAINING_ROWS, TRAINING)))
        raise ValueError(f"on must be one of {ways}, got {on!r}.")
    known = rows_with_probabilities(proba) if on == OUT_OF_FOLD else np.arange(len(proba))
    if len(known) in (0, len(proba)) or len(proba) != len(y):  # the latter is refused
        return judged(model, X, y, proba, how), known
    y = np.asarray(to_numpy(y))[known]
    found = judged(model, None if X is None else some_rows(X, known), y, proba[known], how)
    return found._replace(n_skipped=len(proba) - len(known)), known


def judged(model, X, y, proba, how: str = "predict_proba") -> Judged:
    """Check the rows and the probabilities to evaluate; ``how`` is the source of the latter in error messages."""
    _check_exclusive(model, y)
    proba, labels = np.asarray(proba, dtype=np.float64), np.asarray(to_numpy(y))
    if proba.shape != (len(labels), len(model.classes_)):
        raise ValueError(
            f"y has {len(labels)} rows, but {how} has shape {proba.shape}; pass one label per row, in the same order."
        )
    if not len(labels):
        raise ValueError("X has no rows; a report needs at least one.")
    if not np.isfinite(proba).all() or proba.min() < 0 or proba.max() > 1 + 1e-6:
        raise ValueError(f"{how} has values that are not probabilities; a report needs numbers from 0 to 1.")
    codes = encode(labels, model.classes_, "y has labels that are not classes of the model: {!r}; drop these rows.")
    return Judged(None if is_dask(X) else to_numpy(X), codes, np.minimum(proba, 1.0))


def _of_training_rows(model, y, on: str):
    attribute, kind = OF_TRAINING_ROWS[on], type(final_step(model)).__name__
    found = getattr(final_step(model), attribute, None)
    if found is None and on == OUT_OF_FOLD:
        raise ValueError(
            f"on={on!r} needs {attribute}, which {kind} does not have; fit a classifier of kproba with kernel='auto' "
            f"on 100 distinct rows or more, use on={LEAVE_ONE_OUT!r}, or pass rows X and y that it was not fitted on."
        )
    if found is None:
        raise ValueError(
            f"on={on!r} needs {attribute}, which {kind} does not have; fit a classifier of kproba (with loo=True above "
            "50,000 rows), or pass rows X and y that it was not fitted on."
        )
    if y is None:
        raise ValueError(f"on={on!r} needs y, the labels of the training rows, which a model does not store.")
    return found


def _predicted(model, X, y):
    if X is None or y is None:
        raise ValueError(
            "X and y are needed: rows that the model was not fitted on. Or use on='out-of-fold' "
            "or on='leave-one-out' with y, the labels of the training rows."
        )
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"model: {type(model).__name__} has no predict_proba, which a report needs.")
    _check_exclusive(model, y)
    if isinstance(X, LabelledTable):  # its rows may not fit in memory, but their probabilities do
        return np.concatenate([model.predict_proba(frame) for frame, _ in X.frames(title="probabilities")])
    return model.predict_proba(X)


def _check_exclusive(model, y) -> None:
    several = getattr(final_step(model), "_multilabel", False) or isinstance(model.classes_, list)
    if several or np.ndim(y) != 1:
        raise ValueError(
            "y is multi-label, but a report needs one label per row; for tags use kproba.metrics.tag_report."
        )


def about_rows(on: str, n_training: int, n_rows: int, n_skipped: int = 0) -> str:
    """Which rows the results are for, and what they mean for new rows."""
    said = _about_evaluated(on, n_training, n_rows)
    if not n_skipped:
        return said
    said = said.replace("All results are for the training rows", f"All results are for {n_training:,} training rows")
    return f"{said} Another {n_skipped:,} training rows took part in learning the kernel and are not evaluated."


def _about_evaluated(on: str, n_training: int, n_rows: int) -> str:
    which = "All of these rows" if n_training == n_rows else f"{n_training:,} of these {n_rows:,} rows"
    if on == TRAINING and n_training < n_rows:  # an estimate: only a sample of the training rows is known
        return (
            f"About {which} are training rows of the model, for which it has neither out-of-fold nor leave-one-out "
            "probabilities: the results are better than they would be on new rows. Remove these rows."
        )
    if on == TRAINING:
        return (
            f"{which} are training rows of the model, for which it has neither out-of-fold nor leave-one-out "
            "probabilities: the results say nothing about new rows. Evaluate the model on other rows."
        )
    if on in (OUT_OF_FOLD_MIXED, LEAVE_ONE_OUT_MIXED):
        how = "out of fold" if on == OUT_OF_FOLD_MIXED else "by leave-one-out"
        return (
            f"{which} equal training rows of the model. These are evaluated {how}, the others by ordinary predictions."
        )
    if on == OUT_OF_FOLD:
        return "All results are for the training rows, each evaluated by a model that never saw its fold (out of fold)."
    if on == LEAVE_ONE_OUT:
        return "All results are for the training rows, each evaluated by the model without that row (leave-one-out)."
    return "All results are for rows passed as held-out. If the model was fitted on them, they are too optimistic."


def notes_of(model, on: str, n_training: int, n_rows: int, n_skipped: int = 0) -> list[str]:
    """Caveats that the reader should know first."""
    final = final_step(model)
    notes = [about_rows(on, n_training, n_rows, n_skipped)]
    if on in BY_NAME["loo"]:
        notes.append(
            "Leave-one-out scores were also used to choose the parameters and to calibrate the probabilities, so on "
            "small data sets they are better than on new rows."
        )
        if type(final).__name__ in APPROXIMATE:
            notes.append(f"Leave-one-out of {type(final).__name__} is approximate.")
    if on not in (HELD_OUT, TRAINING) and isinstance(model, Pipeline) and len(model) > 1:
        notes.append("The steps before the classifier were fitted on all rows, including those left out.")
    if getattr(final, "class_weight", None) is not None:
        notes.append("class_weight changes the prior of the probabilities, so calibration on these rows suffers.")
    return notes
