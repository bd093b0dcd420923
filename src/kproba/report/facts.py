"""The content of a report, as plain numbers and strings."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..decisions.risk_coverage import RiskCoverage, risk_coverage
from .baselines import BASE_RATES, ModelProba, baselines
from .classes import ClassFacts, class_facts
from .fitted import (
    Importances,
    LearningCurve,
    PathFacts,
    SearchPanel,
    final_step,
    fitted_of,
    importances_of,
    learning_curve_of,
    path_of,
    search_panels,
)
from .groups import Drift, GroupFacts, Outcomes, drift_of, groups_of
from .judged import HELD_OUT, OF_TRAINING_ROWS, Judged, judged_rows, notes_of
from .measures import (
    FaceValue,
    Histogram,
    Interval,
    Reliability,
    TopClass,
    calibration_by_chance,
    confidence_histogram,
    face_value,
    intervals,
    reliability,
    resampled_means,
    resampling_units,
    summarize,
    top_class,
    unit_losses,
)
from .reasons import mean_contributions
from .rows import MOST_COLUMNS, RowFacts, RowNames, Shown, checked_beside, named_columns, names_of_rows, row_facts
from .two_classes import PositiveFacts, positive_facts

#: Resolution of thresholds, which is coarser with more than FINE_ROWS rows.
FINE, FINE_ROWS, COARSE = 1e-6, 20_000, 1e-4


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
class Facts:
    """The content of a report.

    ``on`` is "held-out", "out-of-fold", "leave-one-out", one of the last two with " and held-out", or "training".
    ``positive`` has the facts of two classes; ``majority`` is the class that the class shares predict. ``columns`` are
    those shown beside rows, the ones that the model does not use first.
    ``importances`` are those of a learnt kernel; ``contributions`` are mean Shapley values of some rows.
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
    contributions: Importances | None
    curve: LearningCurve | None
    scores: tuple[Score, ...]
    reliability: Reliability
    histogram: Histogram
    risk: RiskCoverage
    confusion: np.ndarray
    by_class: tuple[ClassFacts, ...]
    positive: PositiveFacts | None
    face_value: FaceValue
    majority: str
    groups: GroupFacts
    drift: tuple[Drift, ...]
    about_names: str
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
    rows, known = judged_rows(model, X, y, on, X_train, y_train)
    options = _for_some_rows(options, rows, known) if rows.n_skipped else options
    return describe(model, rows, on, X_train=X_train, y_train=y_train, **options)


def _for_some_rows(options: dict, rows: Judged, known: np.ndarray) -> dict:
    """The options with the names and the columns of the rows that are evaluated."""
    n, names, beside = len(known) + rows.n_skipped, options.get("row_names"), options.get("beside")
    called = names_of_rows(rows.X, None if names is None else np.asarray(names), n, options.get("about_names"))
    if names is not None or not hasattr(rows.X, "iloc"):  # a frame keeps its index
        options |= {"row_names": [called.names[k] for k in known], "about_names": called.about}
    if beside is not None:
        options |= {"beside": {name: values[known] for name, values in checked_beside(beside, n).items()}}
    return options


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
    positive=None,
    row_names=None,
    about_names: str | None = None,
    beside=None,
    random_state: int = 0,
) -> Facts:
    """The facts for evaluated rows; ``n_training`` of them are training rows, by default none or all.

    ``about_names`` is a sentence that says how ``row_names`` count.
    """
    from sklearn.metrics import confusion_matrix  # slow to import

    n_training = n_training if n_training is not None else 0 if on == HELD_OUT else len(rows.codes)
    only_training = on in OF_TRAINING_ROWS
    others, notes = baselines(model, rows, y_train, X_train, only_training, random_state)
    final, top, labels = final_step(model), top_class(rows.codes, rows.proba), tuple(map(str, model.classes_.tolist()))
    columns, beside = named_columns(model, rows.X, names), checked_beside(beside, len(rows.codes))
    called = names_of_rows(rows.X, row_names, len(rows.codes), about_names)
    models = [ModelProba(type(final).__name__, rows.proba), *others]
    of_positive = positive_facts(models, rows.codes, model.classes_.tolist(), positive, random_state)
    outcomes = _outcomes(rows, top, of_positive)
    codes_train = None if y_train is None or only_training else _codes(y_train, model.classes_)
    review = _review(model, rows, top, labels, called, Shown(columns[:MOST_COLUMNS], beside), names)
    return Facts(
        title=title or f"{type(final).__name__}: evaluation report",
        model=type(final).__name__,
        on=on,
        n_rows=len(rows.codes),
        n_columns=getattr(model, "n_features_in_", None),
        n_train=len(rows.codes) if only_training else None if y_train is None else len(y_train),
        classes=labels,
        fitted=fitted_of(model),
        panels=search_panels(final),
        path=path_of(final),
        importances=importances_of(model, names),
        contributions=mean_contributions(model, rows.X, names, random_state) if columns else None,
        curve=learning_curve_of(model),
        scores=scores_of(models, rows.codes, random_state),
        reliability=reliability(top.confidence, top.correct),
        histogram=confidence_histogram(top.confidence, top.correct, 0.5 if len(labels) == 2 else 0.0),
        risk=risk_coverage(top.confidence, ~top.correct, FINE if len(top.correct) <= FINE_ROWS else COARSE),
        confusion=confusion_matrix(rows.codes, top.predicted, labels=range(len(labels))),
        by_class=tuple(class_facts(k, name, rows, top.predicted) for k, name in enumerate(labels)),
        positive=of_positive,
        face_value=face_value(outcomes.p, outcomes.hit, random_state),
        majority=labels[int(next(each for each in others if each.name == BASE_RATES).proba[0].argmax())],
        groups=groups_of(rows, outcomes, columns, beside, random_state),
        drift=drift_of(rows, X_train, codes_train, labels, columns, random_state),
        about_names=called.about,
        **review,
        notes=(*notes_of(model, on, n_training, len(rows.codes), rows.n_skipped), *notes),
    )


def _codes(y, classes) -> np.ndarray:
    """The numbers of the classes of training rows; labels that are not classes are left out."""
    found = np.asarray(y)[:, None] == classes
    return found.argmax(axis=1)[found.any(axis=1)]


def _outcomes(rows: Judged, top: TopClass, positive: PositiveFacts | None) -> Outcomes:
    """What has a probability: that a row is positive or, with more classes, that its prediction is right."""
    if positive is None:
        return Outcomes(~top.correct, 1.0 - top.confidence, top.confidence, top.correct)
    p = rows.proba[:, positive.place]
    return Outcomes(~top.correct, 1.0 - top.confidence, p, rows.codes == positive.place)


def _review(model, rows: Judged, top: TopClass, labels, called: RowNames, show: Shown, names) -> dict:
    """The least confident rows and the most confident errors."""
    order, wrong = np.argsort(top.confidence, kind="stable"), np.flatnonzero(~top.correct)
    surest = wrong[np.argsort(-top.confidence[wrong], kind="stable")]
    return {
        "columns": show.names,
        "doubtful": row_facts(model, order, rows, labels, called, show, names),
        "mistakes": row_facts(model, surest, rows, labels, called, show, names),
        "n_mistakes": len(wrong),
    }


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
