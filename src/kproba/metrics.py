"""Metrics of probabilities that scikit-learn lacks, or has for two classes only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_array

from .data.labels import check_labels_and_proba, check_weights, tag_values
from .typing import Inputs, Targets
from .validation import check_choice

#: Number of tags that printing a report shows; ``columns`` has all of them.
PRINTED = 20


def brier_score(
    y_true: Targets, proba: Inputs, *, labels: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Mean over rows of Σ_y (p_y − 1[y is the label])²; 0 is perfect and 2 is worst.

    For two classes this is twice scikit-learn's ``brier_score_loss``.

    >>> brier_score([0, 1], [[1.0, 0.0], [0.5, 0.5]])
    0.25
    """
    codes, proba = check_labels_and_proba(y_true, proba, labels)
    return float(np.average(_row_brier(codes, proba), weights=check_weights(sample_weight, len(codes))))


def _row_brier(codes: np.ndarray, proba: np.ndarray) -> np.ndarray:
    """Brier score of each row."""
    own = proba[np.arange(len(codes)), codes]
    return np.square(proba).sum(axis=1) - 2.0 * own + 1.0


def surface_loss(
    y_true: Targets, proba: Inputs, *, labels: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Loss_surf, equation 1 of 2013, to be maximised: half of one minus the Brier score.

    It is the mean over rows of p_own − ½ Σ_y p_y²; a perfect prediction reaches ½.

    >>> surface_loss([0, 1], [[1.0, 0.0], [0.5, 0.5]])
    0.375
    """
    return 0.5 * (1.0 - brier_score(y_true, proba, labels=labels, sample_weight=sample_weight))


class ReliabilityBins(NamedTuple):
    """Mean confidence, observed frequency and total weight of each non-empty bin."""

    confidence: np.ndarray
    frequency: np.ndarray
    weight: np.ndarray


def reliability_bins(
    y_true: Targets,
    proba: Inputs,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Literal["quantile", "uniform"] | str = "quantile",
    of: Literal["top", "all"] | str = "top",
    sample_weight: ArrayLike | None = None,
) -> ReliabilityBins:
    """How often predictions with a given confidence are right.

    ``of="top"`` uses the predicted class of each row, ``of="all"`` every class of every row.
    ``strategy="quantile"`` makes bins of about equal weight, ``"uniform"`` bins of equal width on [0, 1].

    >>> bins = reliability_bins([0, 0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]], n_bins=1)
    >>> bins.confidence.round(2), bins.frequency
    (array([0.75]), array([0.75]))
    """
    codes, proba = check_labels_and_proba(y_true, proba, labels)
    if proba.min(initial=0.0) < 0 or proba.max(initial=1.0) > 1:
        raise ValueError("proba has values outside [0, 1]; reliability is only defined for probabilities.")
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins} must be at least 1.")
    weight = check_weights(sample_weight, len(codes))
    confidence, hit, weight = _events(codes, proba, weight, of)
    return _binned(confidence, hit, weight, n_bins, strategy)


def _binned(confidence, hit, weight, n_bins: int, strategy: str) -> ReliabilityBins:
    """Mean confidence and share of hits in each non-empty bin."""
    number = _bin_numbers(confidence, weight, n_bins, strategy)
    mass = np.bincount(number, weight, n_bins)
    kept = mass > 0
    means = [np.bincount(number, weight * values, n_bins)[kept] / mass[kept] for values in (confidence, hit)]
    return ReliabilityBins(means[0], means[1], mass[kept])


def calibration_error(
    y_true: Targets,
    proba: Inputs,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Literal["quantile", "uniform"] | str = "quantile",
    of: Literal["top", "all"] | str = "top",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Expected calibration error: the weighted mean of ``|confidence − frequency|`` over the bins.

    >>> calibration_error([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    0.0
    """
    bins = reliability_bins(
        y_true, proba, labels=labels, n_bins=n_bins, strategy=strategy, of=of, sample_weight=sample_weight
    )
    return float(np.average(np.abs(bins.confidence - bins.frequency), weights=bins.weight))


def _events(codes, proba, weight, of):
    if of == "top":
        best = proba.argmax(axis=1)
        return proba[np.arange(len(codes)), best], (best == codes).astype(float), weight
    if of == "all":
        hits = codes[:, None] == np.arange(proba.shape[1])
        return proba.ravel(), hits.ravel().astype(float), np.repeat(weight, proba.shape[1])
    raise ValueError(f"of must be 'top' or 'all', got {of!r}.")


def _bin_numbers(confidence, weight, n_bins: int, strategy: str) -> np.ndarray:
    """The bin of each confidence."""
    if strategy == "uniform":
        place = confidence
    elif strategy == "quantile":
        _, tie = np.unique(confidence, return_inverse=True)  # ties share a bin, whatever their order
        mass = np.bincount(tie, weight)
        place = ((np.cumsum(mass) - mass / 2) / mass.sum())[tie]
    else:
        raise ValueError(f"strategy must be 'quantile' or 'uniform', got {strategy!r}.")
    return np.clip((place * n_bins).astype(int), 0, n_bins - 1)


class TagAverage(NamedTuple):
    """Metrics averaged over tags, or computed over all labels at once."""

    auc: float
    average_precision: float
    log_loss: float


@dataclass(frozen=True)
class TagReport:
    """Metrics of each tag, as arrays with one entry per tag, and their averages.

    ``n`` is the number of rows with a value for the tag, and ``prevalence`` the share of these that have the tag.
    ``auc`` is NaN for tags without both values, ``average_precision`` for tags that no row has. ``macro`` is the mean
    over the tags for which a metric is defined, ``n_defined`` the number of tags with both values, ``weighted`` the
    mean weighted by how often tags occur, and ``micro`` the metric of all labels of all tags pooled.
    """

    name: np.ndarray
    n: np.ndarray
    prevalence: np.ndarray
    auc: np.ndarray
    average_precision: np.ndarray
    log_loss: np.ndarray
    macro: TagAverage
    micro: TagAverage
    weighted: TagAverage
    n_defined: int

    def columns(self) -> dict[str, np.ndarray]:
        """The arrays by name, for example for ``pandas.DataFrame``."""
        names = ("name", "n", "prevalence", "auc", "average_precision", "log_loss")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        head = ["tag", "n", "prevalence", "auc", "average precision", "log-loss"]
        each = list(zip(*self.columns().values()))
        lines = [[str(tag), str(n), *(f"{value:.3f}" for value in rest)] for tag, n, *rest in each[:PRINTED]]
        if len(each) > PRINTED:
            lines.append([f"and {len(each) - PRINTED} more", *[""] * 5])
        for kind in ("macro", "micro", "weighted"):
            lines.append([kind, "", "", *(f"{value:.3f}" for value in getattr(self, kind))])
        widths = [max(map(len, column)) for column in zip(head, *lines)]
        texts = ([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in [head, *lines])
        return "\n".join("  ".join(text).rstrip() for text in texts)


def tag_report(
    y_true: Targets, proba: Inputs, *, names: Any = None, sample_weight: ArrayLike | None = None
) -> TagReport:
    """AUC, average precision and log-loss of each tag, and their averages; missing tags (NaN) are ignored.

    Parameters
    ----------
    y_true : matrix (n, n_tags) of 0, 1 and missing values
    proba : array (n, n_tags), such as ``predict_proba(X)`` or ``loo_proba_``
    names : sequence of tag names, optional; by default the columns of a data frame
    sample_weight : array (n,), optional

    >>> proba = [[0.9, 0.2], [0.4, 0.5], [0.3, 0.8]]
    >>> report = tag_report([[1, 0], [0, None], [1, 1]], proba, names=["sun", "sea"])
    >>> report.auc, report.n, round(report.macro.auc, 2)
    (array([0.5, 1. ]), array([3, 2]), 0.75)
    >>> print(report)
    tag       n  prevalence    auc  average precision  log-loss
    sun       3       0.667  0.500              0.833     0.607
    sea       2       0.500  1.000              1.000     0.223
    macro                    0.750              0.917     0.415
    micro                    0.833              0.917     0.453
    weighted                 0.667              0.889     0.479
    """
    names, labels, proba = _checked_tags(y_true, proba, names)
    weight = np.where(np.isnan(labels), 0.0, check_weights(sample_weight, len(labels))[:, None])
    figures = np.array([_tag_figures(*columns) for columns in zip(labels.T, proba.T, weight.T)]).reshape(-1, 3)
    mass, positive = weight.sum(axis=0), (weight * (labels == 1)).sum(axis=0)
    prevalence = np.divide(positive, mass, out=np.full_like(mass, np.nan), where=mass > 0)
    auc, precision, loss = figures.T
    return TagReport(
        name=names,
        n=(weight > 0).sum(axis=0),
        prevalence=prevalence,
        auc=auc,
        average_precision=precision,
        log_loss=loss,
        macro=TagAverage(*(_mean(column, mass > 0) for column in figures.T)),
        micro=TagAverage(*_tag_figures(labels.ravel(), proba.ravel(), weight.ravel())),
        weighted=TagAverage(*(_mean(column, positive) for column in figures.T)),
        n_defined=int(np.count_nonzero(~np.isnan(auc))),
    )


def tag_thresholds(
    y_true: Targets,
    proba: Inputs,
    *,
    maximize: Literal["f1", "accuracy", "youden"] | str = "f1",
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """The best threshold t of each tag for the decision ``proba >= t``; missing tags (NaN) are ignored.

    Use probabilities of rows that the model was not fitted on, or ``loo_proba_``, which are close to these. Thresholds
    lie half way between neighbouring probabilities; ties go to the one closest to 0.5. A tag without both values gets
    0.5.

    Parameters
    ----------
    y_true : matrix (n, n_tags) of 0, 1 and missing values
    proba : array (n, n_tags)
    maximize : {"f1", "accuracy", "youden"}, default="f1"
        2·TP/(2·TP + FP + FN), the share of correct decisions, or true positive rate minus false positive rate.
    sample_weight : array (n,), optional

    >>> tag_thresholds([[1, 0], [0, 0], [1, 1], [0, None]], [[0.3, 0.1], [0.1, 0.2], [0.7, 0.8], [0.2, 0.9]])
    array([0.25, 0.5 ])
    """
    check_choice("maximize", maximize, _GAINS)
    _, labels, proba = _checked_tags(y_true, proba, None)
    weight = np.where(np.isnan(labels), 0.0, check_weights(sample_weight, len(labels))[:, None])
    return np.array([_threshold(*columns, _GAINS[maximize]) for columns in zip(labels.T, proba.T, weight.T)])


def _checked_tags(y_true, proba, names):
    tags = getattr(y_true, "columns", None) if names is None else names
    proba = check_array(proba, dtype=np.float64, input_name="proba")
    values = y_true.toarray() if sparse.issparse(y_true) else np.asarray(y_true)
    if values.shape != proba.shape:
        raise ValueError(f"y_true has shape {values.shape} and proba {proba.shape}; both need one column per tag.")
    if proba.min(initial=0.0) < 0 or proba.max(initial=1.0) > 1:
        raise ValueError("proba has values outside [0, 1]; pass the probability of each tag.")
    if names is not None and len(names) != proba.shape[1]:
        raise ValueError(f"names has {len(names)} entries, but there are {proba.shape[1]} tags.")
    names = np.arange(proba.shape[1]) if tags is None else np.asarray(tags)
    return names, tag_values(values, names, "y_true"), proba


def _mean(values: np.ndarray, weight: np.ndarray) -> float:
    """Weighted mean of the values that are not NaN."""
    defined = ~np.isnan(values) & (weight > 0)
    return float(np.average(values[defined], weights=weight[defined])) if defined.any() else np.nan


def _tag_figures(labels, proba, weight) -> tuple[float, float, float]:
    """AUC, average precision and log-loss of one tag."""
    labels, proba, weight = (part[weight > 0] for part in (labels, proba, weight))
    if not len(labels):
        return np.nan, np.nan, np.nan
    clipped = np.clip(proba, _EPS, 1.0 - _EPS)
    loss = -np.average(np.where(labels == 1, np.log(clipped), np.log1p(-clipped)), weights=weight)
    _, hits, misses = _cuts(labels, proba, weight)
    auc = precision = np.nan
    if hits[-1] > 0:
        precision = np.diff(hits) @ (hits[1:] / (hits[1:] + misses[1:])) / hits[-1]
    if hits[-1] > 0 and misses[-1] > 0:
        auc = np.diff(misses) @ (hits[1:] + hits[:-1]) / (2.0 * hits[-1] * misses[-1])
    return float(auc), float(precision), float(loss)


def _cuts(labels, proba, weight) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct probabilities, largest first, and the weight of rows with and without the tag above each cut.

    The first cut lies above all probabilities, so there is one cut more than probabilities.
    """
    order = np.argsort(-proba, kind="stable")
    proba, labels, weight = proba[order], labels[order], weight[order]
    last = np.flatnonzero(np.append(np.diff(proba) != 0, True))  # the last of each group of ties
    hits, misses = (np.append(0.0, np.cumsum(part)[last]) for part in (weight * labels, weight * (1.0 - labels)))
    return proba[last], hits, misses


def _threshold(labels, proba, weight, gain) -> float:
    labels, proba, weight = (part[weight > 0] for part in (labels, proba, weight))
    if len(np.unique(labels)) != 2:
        return 0.5
    values, hits, misses = _cuts(labels, proba, weight)
    ends = np.concatenate([[1.0 if values[0] < 1 else 1.0 + 2.0 * _EPS], values, [0.0]])
    cuts = 0.5 * (ends[:-1] + ends[1:])
    cuts = np.where(cuts > ends[1:], cuts, ends[:-1])  # for neighbours without a float between them
    gains = gain(hits, misses, hits[-1], misses[-1])
    level = gains >= gains.max() - 1e-12 * np.abs(gains).max()
    return float(min(cuts[level], key=lambda cut: abs(cut - 0.5)))


#: Functions of the weight of true and false positives at each cut, and of all rows with and without the tag.
_GAINS = {
    "f1": lambda hits, misses, positive, negative: 2.0 * hits / (hits + misses + positive),
    "accuracy": lambda hits, misses, positive, negative: (hits + negative - misses) / (positive + negative),
    "youden": lambda hits, misses, positive, negative: hits / positive - misses / negative,
}
_EPS = np.finfo(np.float64).eps
