"""Measures of probabilities that the ecosystem lacks, or has for two classes only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

from .data.labels import check_weights


def _checked(y_true, proba, labels):
    proba = check_array(proba, dtype=np.float64, input_name="proba")
    y_true = np.asarray(y_true)
    check_consistent_length(y_true, proba)
    labels = np.unique(y_true) if labels is None else np.asarray(labels)
    order = np.argsort(labels, kind="stable")
    labels, proba = labels[order], proba[:, order] if len(labels) == proba.shape[1] else proba
    if len(labels) != proba.shape[1]:
        raise ValueError(
            f"proba has {proba.shape[1]} columns but there are {len(labels)} labels; name all classes by `labels`."
        )
    codes = np.searchsorted(labels, y_true)
    if (codes >= len(labels)).any() or (labels[np.minimum(codes, len(labels) - 1)] != y_true).any():
        raise ValueError("y_true has labels that `labels` does not name.")
    return codes, proba


def brier_score(y_true, proba, *, labels=None, sample_weight=None) -> float:
    """Mean over rows of Σ_y (p_y − 1[y is the label])²: 0 is perfect, 2 the worst.

    For two classes it is twice scikit-learn's ``brier_score_loss``.

    >>> brier_score([0, 1], [[1.0, 0.0], [0.5, 0.5]])
    0.25
    """
    codes, proba = _checked(y_true, proba, labels)
    own = proba[np.arange(len(codes)), codes]
    return float(
        np.average(np.square(proba).sum(axis=1) - 2.0 * own + 1.0, weights=check_weights(sample_weight, len(codes)))
    )


def surface_loss(y_true, proba, *, labels=None, sample_weight=None) -> float:
    """Loss_surf of 2013 Eq. 1, a mean over rows to be maximised: 1 − Brier score, up to its constants.

    Each row contributes p_own − ½ Σ_y p_y²; a perfect prediction reaches ½.

    >>> surface_loss([0, 1], [[1.0, 0.0], [0.5, 0.5]])
    0.375
    """
    codes, proba = _checked(y_true, proba, labels)
    own = proba[np.arange(len(codes)), codes]
    return float(np.average(own - 0.5 * np.square(proba).sum(axis=1), weights=check_weights(sample_weight, len(codes))))


class ReliabilityBins(NamedTuple):
    """One entry a bin that is not empty: mean confidence, observed frequency and total weight."""

    confidence: np.ndarray
    frequency: np.ndarray
    weight: np.ndarray


def reliability_bins(
    y_true, proba, *, labels=None, n_bins=15, strategy="quantile", of="top", sample_weight=None
) -> ReliabilityBins:
    """How often predictions of a given confidence come true.

    ``of="top"`` looks at the predicted class of each row; ``of="all"`` at every class of every row.
    ``strategy="quantile"`` makes bins of about equal weight, ``"uniform"`` bins of equal width on [0, 1].

    >>> bins = reliability_bins([0, 0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]], n_bins=1)
    >>> bins.confidence.round(2), bins.frequency
    (array([0.75]), array([0.75]))
    """
    codes, proba = _checked(y_true, proba, labels)
    if proba.min(initial=0.0) < 0 or proba.max(initial=1.0) > 1:
        raise ValueError("proba has values outside [0, 1]; reliability is defined for probabilities alone.")
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins}: at least one bin is needed.")
    weight = check_weights(sample_weight, len(codes))
    confidence, hit, weight = _events(codes, proba, weight, of)
    order = np.argsort(confidence, kind="stable")
    confidence, hit, weight = confidence[order], hit[order], weight[order]
    number = _bin_numbers(confidence, weight, n_bins, strategy)
    mass = np.bincount(number, weight, n_bins)
    kept = mass > 0
    means = [np.bincount(number, weight * values, n_bins)[kept] / mass[kept] for values in (confidence, hit)]
    return ReliabilityBins(means[0], means[1], mass[kept])


def calibration_error(
    y_true, proba, *, labels=None, n_bins=15, strategy="quantile", of="top", sample_weight=None
) -> float:
    """Expected calibration error: mean |confidence − frequency| over the bins, by weight.

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
    raise ValueError(f"of={of!r} is not known; use 'top' or 'all'.")


def _bin_numbers(confidence, weight, n_bins, strategy):
    """Bin of each of the sorted confidences."""
    if strategy == "uniform":
        place = confidence
    elif strategy == "quantile":
        _, tie = np.unique(confidence, return_inverse=True)  # equal confidences share one place, whatever their order
        mass = np.bincount(tie, weight)
        place = ((np.cumsum(mass) - mass / 2) / mass.sum())[tie]
    else:
        raise ValueError(f"strategy={strategy!r} is not known; use 'quantile' or 'uniform'.")
    return np.clip((place * n_bins).astype(int), 0, n_bins - 1)
