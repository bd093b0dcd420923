"""Everything that a report says, as plain numbers and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy
from ..data.dask import is_dask
from ..data.tables import LabelledTable
from ..decisions.risk_coverage import RiskCoverage, risk_coverage
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
    summed_up,
    thinned,
    top_class,
    unit_losses,
)
from .rivals import Rival, rivals
from .search_map import SearchPanel, search_panels

#: Rows of the tables, and columns of X that they show.
MOST_ROWS, MOST_COLUMNS = 50, 6
#: Points of a curve.
MOST_POINTS = 150
#: Thresholds are exact to the first number; with more rows than the second, to the third.
FINE, FINE_ROWS, COARSE = 1e-6, 20_000, 1e-4
#: Links as people say them.
LINKS = {
    "CalibratedSoftmax": "softmax, calibrated by leave-one-out",
    "Softmax": "softmax of the model itself",
    "Clip": "rounded outputs",
}
#: Classifiers whose leave-one-out is not exact.
APPROXIMATE = ("KernelLogisticRegression", "ImportVectorMachine")
#: What rows are judged by: predictions of new rows; leave-one-out; leave-one-out for those that the model was fitted on
#: and predictions for others; or, where there is nothing better, predictions of rows that the model was fitted on.
HELD_OUT, LEAVE_ONE_OUT, MIXED, TRAINING = "held-out", "leave-one-out", "leave-one-out and held-out", "training"


#: The measures of a score as people call them.
MEASURES = {"error": "error", "log_loss": "log-loss", "brier": "Brier score", "calibration": "calibration error"}


@dataclass(frozen=True)
class Score:
    """How one model does. ``excess`` is its log-loss above that of the model reported on, on the same resamples."""

    name: str
    error: Interval
    log_loss: Interval
    brier: Interval
    calibration: Interval
    calibration_by_chance: float
    excess: Interval | None


@dataclass(frozen=True)
class ClassFacts:
    """One class against all others; curves and their areas are None and NaN where a side has no rows."""

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
    """One row of X: where it stands, what it is, what the model says, and some of its values."""

    number: int
    true: str
    predicted: str
    probability: float
    second: str
    second_probability: float
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
    """What a report says of a model.

    ``on`` is "held-out", "leave-one-out", "leave-one-out and held-out" or "training"; ``fitted`` has pairs of what was
    fitted; ``notes`` say what the reader has to know about the rows and the rivals.
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


def collect(
    model,
    X=None,
    y=None,
    *,
    on: str = HELD_OUT,
    X_train=None,
    y_train=None,
    names=None,
    title: str | None = None,
    random_state: int = 0,
) -> Facts:
    """The facts of a report; parameters as in :func:`kproba.write_report`.

    >>> from sklearn.datasets import load_iris
    >>> from kproba import LSPC
    >>> X, y = load_iris(return_X_y=True)
    >>> facts = collect(LSPC(random_state=0).fit(X, y), X, y, on="leave-one-out")
    >>> facts.on, facts.n_rows, [score.name for score in facts.scores]
    ('leave-one-out', 150, ['LSPC', 'base rates', 'logistic regression'])
    """
    check_is_fitted(model)
    rows = _judged(model, X, y, on, X_train, y_train)
    options = {"X_train": X_train, "y_train": y_train, "names": names, "title": title, "random_state": random_state}
    return describe(model, rows, on, **options)


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
    """The facts of rows that were judged; the model was fitted on ``n_training`` of them, by default on none or all."""
    if n_training is None:
        n_training = 0 if on == HELD_OUT else len(rows.codes)
    others, notes = rivals(model, rows, y_train, X_train, on == LEAVE_ONE_OUT, random_state)
    top = top_class(rows.codes, rows.proba)
    labels = tuple(map(str, model.classes_.tolist()))
    columns = _shown_columns(model, rows.X, names)
    n_train = len(rows.codes) if on == LEAVE_ONE_OUT else None if y_train is None else len(y_train)
    lowest = 0.5 if len(labels) == 2 else 0.0
    wrong, order = np.flatnonzero(~top.correct), np.argsort(top.confidence, kind="stable")
    final = final_step(model)
    return Facts(
        title=title or f"{type(final).__name__}: what its probabilities are worth",
        model=type(final).__name__,
        on=on,
        n_rows=len(rows.codes),
        n_columns=getattr(model, "n_features_in_", None),
        n_train=n_train,
        classes=labels,
        fitted=_fitted(model),
        panels=search_panels(final),
        path=_path(final),
        scores=scores_of([Rival(type(final).__name__, rows.proba), *others], rows.codes, random_state),
        reliability=reliability(top.confidence, top.correct),
        histogram=confidence_histogram(top.confidence, top.correct, lowest),
        risk=risk_coverage(top.confidence, ~top.correct, FINE if len(order) <= FINE_ROWS else COARSE),
        confusion=_confusion(rows.codes, top.predicted, len(labels)),
        by_class=tuple(class_facts(k, name, rows, top.predicted) for k, name in enumerate(labels)),
        columns=tuple(name for name, _ in columns),
        doubtful=_row_facts(order[:MOST_ROWS], rows, labels, columns),
        mistakes=_row_facts(
            wrong[np.argsort(-top.confidence[wrong], kind="stable")][:MOST_ROWS], rows, labels, columns
        ),
        n_mistakes=len(wrong),
        notes=(*_notes(model, on, n_training, len(rows.codes)), *notes),
    )


def final_step(model):
    """The classifier at the end of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


class Judged(NamedTuple):
    """Rows as they are judged: inputs if there are any, codes of the true classes, probabilities."""

    X: Any
    codes: np.ndarray
    proba: np.ndarray


def _judged(model, X, y, on: str, X_train, y_train) -> Judged:
    if on == LEAVE_ONE_OUT:
        X, y = (X_train, y_train) if y is None else (X, y)
        proba, how = _leave_one_out(model, y), "loo_proba_"
    elif on in (HELD_OUT, TRAINING):
        proba, how = _predicted(model, X, y), "predict_proba"
    else:
        raise ValueError(f"on={on!r} is not known; use {HELD_OUT!r}, {LEAVE_ONE_OUT!r} or {TRAINING!r}.")
    return judged(model, X, y, proba, how)


def judged(model, X, y, proba, how: str = "predict_proba") -> Judged:
    """Rows with the probabilities that they are judged by, which ``how`` gave."""
    _refuse_tags(model, y)
    proba, labels = np.asarray(proba, dtype=np.float64), np.asarray(to_numpy(y))
    if proba.shape != (len(labels), len(model.classes_)):
        raise ValueError(
            f"y has {len(labels)} rows, but {how} has shape {proba.shape}; give one label for every row, in order."
        )
    if not len(labels):
        raise ValueError("X has no rows; a report needs some.")
    if not np.isfinite(proba).all() or proba.min() < 0 or proba.max() > 1 + 1e-6:
        raise ValueError(f"{how} has values that are no probabilities; a report needs numbers from 0 to 1.")
    return Judged(None if is_dask(X) else to_numpy(X), _codes(labels, model.classes_), np.minimum(proba, 1.0))


def _leave_one_out(model, y):
    found = getattr(final_step(model), "loo_proba_", None)
    if found is None:
        raise ValueError(
            f"on='leave-one-out' needs loo_proba_, which {type(final_step(model)).__name__} does not have; fit a "
            "classifier of kproba (with loo=True above 50,000 rows), or give X and y that it was not fitted on."
        )
    if y is None:
        raise ValueError("on='leave-one-out' needs y, the classes of the training rows: a model does not keep them.")
    return found


def _predicted(model, X, y):
    if X is None or y is None:
        raise ValueError("X and y are needed: rows the model was not fitted on; or use on='leave-one-out' with y.")
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"model: {type(model).__name__} has no predict_proba; a report is about probabilities.")
    _refuse_tags(model, y)
    if isinstance(X, LabelledTable):  # its rows are more than memory holds, their probabilities are not
        return np.concatenate([model.predict_proba(frame) for frame, _ in X.frames(title="probabilities")])
    return model.predict_proba(X)


def _refuse_tags(model, y) -> None:
    several = getattr(final_step(model), "_multilabel", False) or isinstance(model.classes_, list)
    if several or np.ndim(y) != 1:
        raise ValueError(
            "y: a report is for exclusive classes, one label a row; for tags see kproba.metrics.tag_report."
        )


def _codes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    number = {label: k for k, label in enumerate(classes.tolist())}
    codes = np.array([number.get(label, -1) for label in labels.tolist()])
    if (codes < 0).any():
        unknown = list(dict.fromkeys(map(repr, labels[codes < 0].tolist())))
        raise ValueError(f"y has labels that the model does not know: {', '.join(unknown[:5])}; leave these rows out.")
    return codes


def scores_of(models: list[Rival], codes: np.ndarray, seed: int) -> tuple[Score, ...]:
    """All models on the same resamples, so that their differences have intervals too."""
    unit = resampling_units(len(codes), seed)
    losses = [unit_losses(codes, rival.proba, unit) for rival in models]
    means, width = [loss.sum(axis=0) / len(codes) for loss in losses], losses[0].shape[1]
    resampled = resampled_means(np.hstack(losses), np.bincount(unit), seed)
    found = []
    for number, rival in enumerate(models):
        part = slice(number * width, (number + 1) * width)
        error, log_loss, brier, calibration = intervals(summed_up(means[number]), summed_up(resampled[:, part]))
        more = means[number][1] - means[0][1], resampled[:, part.start + 1] - resampled[:, 1]
        (excess,) = intervals(np.array([more[0]]), more[1][:, None])
        chance = calibration_by_chance(rival.proba.max(axis=1))
        found.append(Score(rival.name, error, log_loss, brier, calibration, chance, excess if number else None))
    return tuple(found)


def _confusion(codes, predicted, n_classes: int) -> np.ndarray:
    return np.bincount(codes * n_classes + predicted, minlength=n_classes**2).reshape(n_classes, n_classes)


def class_facts(k: int, name: str, rows: Judged, predicted: np.ndarray) -> ClassFacts:
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    own, said = rows.codes == k, predicted == k
    recall = float(said[own].mean()) if own.any() else np.nan
    precision = float(own[said].mean()) if said.any() else np.nan
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


def _row_facts(numbers, rows: Judged, labels, columns) -> tuple[RowFacts, ...]:
    values = _values(rows.X, numbers, [column for _, column in columns])
    found = []
    for number, shown in zip(numbers.tolist(), values):
        p = rows.proba[number]
        first = int(p.argmax())
        second = int(np.where(np.arange(len(p)) == first, -1.0, p).argmax())
        said = labels[first], float(p[first]), labels[second], float(p[second])
        found.append(RowFacts(number, labels[rows.codes[number]], *said, shown))
    return tuple(found)


def _values(X, numbers, columns) -> list[tuple[str, ...]]:
    """Some columns of some rows, as text."""
    if not columns or not len(numbers):
        return [()] * len(numbers)
    rows = X.take(numbers) if isinstance(X, LabelledTable) else _safe_indexing(X, numbers)
    part = _safe_indexing(rows, columns, axis=1)
    part = part.toarray() if hasattr(part, "toarray") else np.asarray(part, dtype=object)
    return [tuple(map(_value, row)) for row in part.tolist()]


def _value(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shown_columns(model, X, names) -> list[tuple[str, int]]:
    """Name and number of the columns that tables show: the most relevant ones where the model weighs them."""
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
    """The weights of the columns of X; behind other steps of a pipeline the columns may be others."""
    is_first = not isinstance(model, Pipeline) or len(model) == 1
    return getattr(getattr(final_step(model), "scaling_", None), "relevance", None) if is_first else None


def _fitted(model) -> tuple[tuple[str, str], ...]:
    final = final_step(model)
    said = [("model", repr(final))]
    if isinstance(model, Pipeline) and len(model) > 1:
        said.append(("steps before it", " → ".join(type(step).__name__ for _, step in model.steps[:-1])))
    kernel = getattr(final, "kernel_", None)
    if kernel is not None:
        said += _fitted_kernel(final, kernel)
    return tuple(said)


def _fitted_kernel(final, kernel) -> list[tuple[str, str]]:
    said = [("kernel", kernel.name)]
    if final.width_ is not None:
        said.append(("width", f"{final.width_:.4g}"))
    if hasattr(final, "ridge_"):
        said.append(("ridge", f"{final.ridge_:.3g}"))
    kind = "import points" if hasattr(final, "import_indices_") else "centres"
    said.append((kind, f"{np.shape(final.coef_)[0]:,}"))
    kind = type(final.link_).__name__
    said.append(("link", LINKS.get(kind, kind)))
    relevance = getattr(final.scaling_, "relevance", None)
    if final.scaling_ is not None:
        is_weighed = relevance is not None and np.ptp(relevance) > 0
        said.append(("columns", "scaled, weighed by relevance" if is_weighed else "scaled"))
    return said


def _path(final) -> PathFacts | None:
    path = getattr(final, "path_", None)
    if not path or len(path["ridge"]) < 2 or not np.isfinite(path["tuning_log_loss"]).all():
        return None
    names = ("ridge", "tuning_log_loss", "tuning_error", "n_points")
    ridge, log_loss, error, n_points = (np.asarray(path[name]) for name in names)
    return PathFacts(ridge, log_loss, error, n_points, float(final.ridge_))


def about_rows(on: str, n_training: int, n_rows: int) -> str:
    """Which rows the figures are of, and what that means for new ones."""
    which = "All of these rows" if n_training == n_rows else f"{n_training:,} of these {n_rows:,} rows"
    if on == TRAINING and n_training < n_rows:  # an estimate, where a sample of many training rows is known
        return (
            f"About {which} are rows that the model was fitted on, and it has no leave-one-out probabilities of them: "
            "the figures are better than those of new rows. Leave these rows out."
        )
    if on == TRAINING:
        return (
            f"{which} are rows that the model was fitted on, and it has no leave-one-out probabilities of them: the "
            "figures say nothing about new rows. Judge the model by rows that were set aside."
        )
    if on == MIXED:
        return (
            f"{which} equal rows that the model was fitted on. Each of these is judged by the model without it "
            "(leave-one-out), the others by predictions."
        )
    if on == LEAVE_ONE_OUT:
        return "All figures are of the training rows: each row is judged by the model without that row (leave-one-out)."
    return "All figures are of rows that were given as held out. If the model saw them in its fit, they flatter it."


def _notes(model, on: str, n_training: int, n_rows: int) -> list[str]:
    """What the reader has to know of the rows before anything else."""
    final = final_step(model)
    notes = [about_rows(on, n_training, n_rows)]
    if on in (LEAVE_ONE_OUT, MIXED):
        notes.append(
            "The scores of leave-one-out also chose the parameters and calibrated the probabilities: on small tables "
            "they are better than new rows will be."
        )
        if type(final).__name__ in APPROXIMATE:
            notes.append(f"Leave-one-out of {type(final).__name__} is an approximation.")
        if isinstance(model, Pipeline) and len(model) > 1:
            notes.append("The steps before the classifier were fitted on all rows, the judged one included.")
    if getattr(final, "class_weight", None) is not None:
        notes.append("class_weight moves the prior that the probabilities refer to: calibration on these rows suffers.")
    return notes
