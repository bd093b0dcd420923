"""The content of a report, as plain numbers and strings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy
from ..data.dask import is_dask
from ..data.labels import encode
from ..data.tables import LabelledTable
from ..decisions.risk_coverage import RiskCoverage, risk_coverage
from ..estimators._honest import ATTRIBUTES
from .baselines import ModelProba, baselines
from .learnt import Importances, LearningCurve, final_step, importances_of, learning_curve_of
from .measures import (
    Histogram,
    Interval,
    Reliability,
    calibration_by_chance,
    confidence_histogram,
    intervals,
    reliability,
    resampled_means,
    resampling_units,
    summarize,
    thinned,
    top_class,
    unit_losses,
)
from .reasons import reasons_of
from .search_map import SearchPanel, search_panels

#: Number of rows in the tables, and of columns of X that they show.
MOST_ROWS, MOST_COLUMNS = 50, 6
#: Number of points of a curve.
MOST_POINTS = 150
#: Resolution of thresholds, which is coarser with more than FINE_ROWS rows.
FINE, FINE_ROWS, COARSE = 1e-6, 20_000, 1e-4
#: Descriptions of links.
LINKS = {
    "CalibratedSoftmax": "softmax, calibrated by leave-one-out",
    "Softmax": "softmax",
    "Clip": "outputs clipped at zero",
}
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


@dataclass(frozen=True)
class Score:
    """Measures of one model. ``excess`` is its log-loss minus that of the evaluated model, on the same resamples."""

    name: str
    error: Interval
    log_loss: Interval
    brier: Interval
    calibration: Interval
    calibration_by_chance: float
    excess: Interval | None


@dataclass(frozen=True)
class ClassFacts:
    """One class against all others; curves are None and areas NaN if either side has no rows."""

    name: str
    rows: int
    recall: float
    precision: float
    auc: float
    average_precision: float
    roc: tuple[np.ndarray, np.ndarray] | None
    precision_recall: tuple[np.ndarray, np.ndarray] | None


@dataclass(frozen=True)
class RowFacts:
    """One row of X: its index, true and predicted class, probabilities, reasons, and some of its values."""

    number: int
    true: str
    predicted: str
    probability: float
    second: str
    second_probability: float
    reasons: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class PathFacts:
    """The path of an import vector machine."""

    ridge: np.ndarray
    log_loss: np.ndarray
    error: np.ndarray
    n_points: np.ndarray
    chosen: float


@dataclass(frozen=True)
class Facts:
    """The content of a report.

    ``on`` is "held-out", "out-of-fold", "leave-one-out", one of the last two with " and held-out", or "training".
    ``fitted`` has (name, value) pairs that describe the model, and ``notes`` are caveats about the rows and the
    baselines.
    """

    title: str
    model: str
    on: str
    n_rows: int
    n_columns: int | None
    n_train: int | None
    classes: tuple[str, ...]
    fitted: tuple[tuple[str, str], ...]
    panels: tuple[SearchPanel, ...]
    path: PathFacts | None
    importances: Importances | None
    curve: LearningCurve | None
    scores: tuple[Score, ...]
    reliability: Reliability
    histogram: Histogram
    risk: RiskCoverage
    confusion: np.ndarray
    by_class: tuple[ClassFacts, ...]
    columns: tuple[str, ...]
    doubtful: tuple[RowFacts, ...]
    mistakes: tuple[RowFacts, ...]
    n_mistakes: int
    notes: tuple[str, ...]


def collect(model, X=None, y=None, *, on: str = HELD_OUT, X_train=None, y_train=None, **options) -> Facts:
    """Collect the facts of a report; parameters as in :func:`kproba.write_report`.

    >>> from sklearn.datasets import load_iris
    >>> from kproba import LSPC
    >>> X, y = load_iris(return_X_y=True)
    >>> facts = collect(LSPC(random_state=0).fit(X, y), X, y, on="leave-one-out")
    >>> facts.on, facts.n_rows, [score.name for score in facts.scores]
    ('leave-one-out', 150, ['LSPC', 'base rates', 'logistic regression'])
    """
    check_is_fitted(model)
    rows = _judged(model, X, y, on, X_train, y_train)
    return describe(model, rows, on, X_train=X_train, y_train=y_train, **options)


def describe(
    model,
    rows: Judged,
    on: str,
    *,
    n_training: int | None = None,
    X_train=None,
    y_train=None,
    names=None,
    title: str | None = None,
    random_state: int = 0,
) -> Facts:
    """The facts for evaluated rows; ``n_training`` of them are training rows, by default none or all."""
    if n_training is None:
        n_training = 0 if on == HELD_OUT else len(rows.codes)
    only_training = on in OF_TRAINING_ROWS
    others, notes = baselines(model, rows, y_train, X_train, only_training, random_state)
    top = top_class(rows.codes, rows.proba)
    labels = tuple(map(str, model.classes_.tolist()))
    columns = _shown_columns(model, rows.X, names)
    n_train = len(rows.codes) if only_training else None if y_train is None else len(y_train)
    lowest = 0.5 if len(labels) == 2 else 0.0
    wrong, order = np.flatnonzero(~top.correct), np.argsort(top.confidence, kind="stable")
    final = final_step(model)

    def row_facts(numbers: np.ndarray) -> tuple[RowFacts, ...]:
        return _row_facts(model, numbers[:MOST_ROWS], rows, labels, columns, names)

    return Facts(
        title=title or f"{type(final).__name__}: evaluation report",
        model=type(final).__name__,
        on=on,
        n_rows=len(rows.codes),
        n_columns=getattr(model, "n_features_in_", None),
        n_train=n_train,
        classes=labels,
        fitted=_fitted(model),
        panels=search_panels(final),
        path=_path(final),
        importances=importances_of(model, names),
        curve=learning_curve_of(model),
        scores=scores_of([ModelProba(type(final).__name__, rows.proba), *others], rows.codes, random_state),
        reliability=reliability(top.confidence, top.correct),
        histogram=confidence_histogram(top.confidence, top.correct, lowest),
        risk=risk_coverage(top.confidence, ~top.correct, FINE if len(order) <= FINE_ROWS else COARSE),
        confusion=_confusion(rows.codes, top.predicted, len(labels)),
        by_class=tuple(class_facts(k, name, rows, top.predicted) for k, name in enumerate(labels)),
        columns=tuple(name for name, _ in columns),
        doubtful=row_facts(order),
        mistakes=row_facts(wrong[np.argsort(-top.confidence[wrong], kind="stable")]),
        n_mistakes=len(wrong),
        notes=(*_notes(model, on, n_training, len(rows.codes)), *notes),
    )


class Judged(NamedTuple):
    """Evaluated rows: inputs if there are any, indices of the true classes, and probabilities."""

    X: Any
    codes: np.ndarray
    proba: np.ndarray


def _judged(model, X, y, on: str, X_train, y_train) -> Judged:
    if on in OF_TRAINING_ROWS:
        X, y = (X_train, y_train) if y is None else (X, y)
        proba, how = _of_training_rows(model, y, on), OF_TRAINING_ROWS[on]
    elif on in (HELD_OUT, TRAINING):
        proba, how = _predicted(model, X, y), "predict_proba"
    else:
        known = ", ".join(map(repr, (HELD_OUT, *OF_TRAINING_ROWS, TRAINING)))
        raise ValueError(f"on must be one of {known}, got {on!r}.")
    return judged(model, X, y, proba, how)


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


def scores_of(models: list[ModelProba], codes: np.ndarray, seed: int) -> tuple[Score, ...]:
    """Scores of all models on the same resamples, so that differences have intervals too."""
    unit = resampling_units(len(codes), seed)
    losses = [unit_losses(codes, each.proba, unit) for each in models]
    means, width = [loss.sum(axis=0) / len(codes) for loss in losses], losses[0].shape[1]
    resampled = resampled_means(np.hstack(losses), np.bincount(unit), seed)
    found = []
    for number, each in enumerate(models):
        part = slice(number * width, (number + 1) * width)
        error, log_loss, brier, calibration = intervals(summarize(means[number]), summarize(resampled[:, part]))
        more = means[number][1] - means[0][1], resampled[:, part.start + 1] - resampled[:, 1]
        (excess,) = intervals(np.array([more[0]]), more[1][:, None])
        chance = calibration_by_chance(each.proba.max(axis=1))
        found.append(Score(each.name, error, log_loss, brier, calibration, chance, excess if number else None))
    return tuple(found)


def _confusion(codes, predicted, n_classes: int) -> np.ndarray:
    return np.bincount(codes * n_classes + predicted, minlength=n_classes**2).reshape(n_classes, n_classes)


def class_facts(k: int, name: str, rows: Judged, predicted: np.ndarray) -> ClassFacts:
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    own, chosen = rows.codes == k, predicted == k
    recall = float(chosen[own].mean()) if own.any() else np.nan
    precision = float(own[chosen].mean()) if chosen.any() else np.nan
    if own.all() or not own.any():
        return ClassFacts(name, int(own.sum()), recall, precision, np.nan, np.nan, None, None)
    p = rows.proba[:, k]
    false, true, _ = roc_curve(own, p)
    precisions, recalls, _ = precision_recall_curve(own, p)
    return ClassFacts(
        name,
        int(own.sum()),
        recall,
        precision,
        float(roc_auc_score(own, p)),
        float(average_precision_score(own, p)),
        thinned(false, true, MOST_POINTS),
        thinned(recalls[::-1], precisions[::-1], MOST_POINTS),
    )


def _row_facts(model, numbers, rows: Judged, labels, columns, names) -> tuple[RowFacts, ...]:
    part = _some_rows(rows.X, numbers) if columns and len(numbers) else None
    values = _values(part, [column for _, column in columns], len(numbers))
    classes = rows.proba[numbers].argmax(axis=1)
    reasons = [""] * len(numbers) if part is None else reasons_of(model, part, classes, names)
    found = []
    for number, because, shown in zip(numbers.tolist(), reasons, values):
        p = rows.proba[number]
        first = int(p.argmax())
        second = int(np.where(np.arange(len(p)) == first, -1.0, p).argmax())
        top_two = labels[first], float(p[first]), labels[second], float(p[second])
        found.append(RowFacts(number, labels[rows.codes[number]], *top_two, because, shown))
    return tuple(found)


def _some_rows(X, numbers):
    return X.take(numbers) if isinstance(X, LabelledTable) else _safe_indexing(X, numbers)


def _values(rows, columns, n_rows: int) -> list[tuple[str, ...]]:
    """Some columns of rows, as strings; none if ``rows`` is None."""
    if rows is None:
        return [()] * n_rows
    part = _safe_indexing(rows, columns, axis=1)
    part = part.toarray() if hasattr(part, "toarray") else np.asarray(part, dtype=object)
    return [tuple(map(_value, row)) for row in part.tolist()]


def _value(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shown_columns(model, X, names) -> list[tuple[str, int]]:
    """Name and index of the columns shown in tables: the most relevant ones if the model weights columns."""
    shape: tuple = getattr(X, "shape", ())
    is_table = isinstance(X, LabelledTable) or hasattr(X, "__array__") or hasattr(X, "tocsr")
    if len(shape) != 2 or not shape[1] or not is_table:
        return []
    given = getattr(model, "feature_names_in_", getattr(X, "columns", None)) if names is None else names
    given = [f"x{j}" for j in range(shape[1])] if given is None else list(map(str, given))
    if len(given) != shape[1]:
        raise ValueError(f"names has {len(given)} entries, but X has {shape[1]} columns.")
    relevance = _relevance(model)
    order = np.arange(shape[1])
    if relevance is not None and len(relevance) == shape[1]:
        order = np.argsort(-relevance, kind="stable")
    return [(given[j], int(j)) for j in order[:MOST_COLUMNS]]


def _relevance(model) -> np.ndarray | None:
    """The weights of the columns of X, unless earlier pipeline steps may have changed the columns."""
    if isinstance(model, Pipeline) and len(model) > 1:
        return None
    final = final_step(model)
    return getattr(final, "feature_importances_", getattr(getattr(final, "scaling_", None), "relevance", None))


def _fitted(model) -> tuple[tuple[str, str], ...]:
    final = final_step(model)
    pairs = [("model", repr(final))]
    if isinstance(model, Pipeline) and len(model) > 1:
        pairs.append(("earlier steps", " → ".join(type(step).__name__ for _, step in model.steps[:-1])))
    kernel = getattr(final, "kernel_", None)
    if kernel is not None:
        pairs += _fitted_kernel(final, kernel)
    return tuple(pairs)


def _fitted_kernel(final, kernel) -> list[tuple[str, str]]:
    pairs = [("kernel", kernel.name)]
    if final.width_ is not None:
        pairs.append(("width", f"{final.width_:.4g}"))
    if hasattr(final, "ridge_"):
        pairs.append(("ridge", f"{final.ridge_:.3g}"))
    kind = "import points" if hasattr(final, "import_indices_") else "centres"
    pairs.append((kind, f"{np.shape(final.coef_)[0]:,}"))
    kind = type(final.link_).__name__
    pairs.append(("link", LINKS.get(kind, kind)))
    relevance = getattr(final.scaling_, "relevance", None)
    if final.scaling_ is not None:
        is_weighted = relevance is not None and np.ptp(relevance) > 0
        pairs.append(("columns", "scaled, weighted by relevance" if is_weighted else "scaled"))
    return pairs


def _path(final) -> PathFacts | None:
    path = getattr(final, "path_", None)
    if not path or len(path["ridge"]) < 2 or not np.isfinite(path["tuning_log_loss"]).all():
        return None
    names = ("ridge", "tuning_log_loss", "tuning_error", "n_points")
    ridge, log_loss, error, n_points = (np.asarray(path[name]) for name in names)
    return PathFacts(ridge, log_loss, error, n_points, float(final.ridge_))


def about_rows(on: str, n_training: int, n_rows: int) -> str:
    """Which rows the results are for, and what they mean for new rows."""
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


def _notes(model, on: str, n_training: int, n_rows: int) -> list[str]:
    """Caveats that the reader should know first."""
    final = final_step(model)
    notes = [about_rows(on, n_training, n_rows)]
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
