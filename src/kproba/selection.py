"""Choosing kernel, width and ridge: grids, the median heuristic, and the losses that compare candidates.

Candidates are compared by how well scores of rows that did not take part (exact leave-one-out, or folds)
would predict once they are calibrated. The comparison must be cheap and add up over rows, so it takes the
best of a few fixed calibrations; the winner's link is fitted afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp

from .basis import sample_rows
from .data.hashing import distinct, ranking
from .data.rows import Rows
from .kernels import Kernel
from .links import CALIBRATED, complete_by_prior, complete_tags, fit_link, log_softplus, positive_prior

#: 2010 Sec. 3: multiples of the median distance, and ridges.
WIDTHS_2010 = (1 / 10, 1 / 5, 1 / 2, 2 / 3, 1.0, 3 / 2, 2.0, 5.0, 10.0)
RIDGES_2010 = tuple(10.0**e for e in (-2, -1.5, -1, -0.5, 0))
#: The default grids: wide for the RKHS penalty, whose ridges reach further down.
WIDTHS = (0.3, 0.6, 1.2, 2.5, 5.0)
RIDGES = tuple(10.0**e for e in np.arange(-7.0, 0.5, 0.5))
#: The median distance is taken over pairs of at most this many distinct rows.
MEDIAN_ROWS = 500
#: The losses of more labels of tags than this are computed in float32: their mean is as good, in half the time.
LOW_PRECISION = 100_000


@dataclass(frozen=True)
class TimesMedian:
    """Widths as multiples of the median distance between rows.

    >>> TimesMedian((0.5, 1.0, 2.0)).multiples
    (0.5, 1.0, 2.0)
    """

    multiples: Sequence[float] = WIDTHS

    def __post_init__(self):
        values = np.asarray(self.multiples, dtype=np.float64)
        if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values > 0)).all():
            raise ValueError(
                f"TimesMedian: the multiples of the width must be positive numbers, got {self.multiples!r}."
            )

    def widths(self, unit: float) -> list[float]:
        return [float(unit * m) for m in self.multiples]


@dataclass
class SearchRecord:
    """Every candidate that was tried, as columns of equal length."""

    entries: list[tuple] = field(default_factory=list)
    names = ("stage", "kernel", "width", "ridge", "rows", "loss")

    def add(self, stage: str, kernel: Kernel, ridges: Sequence[float], losses: Sequence[float], n_rows: int) -> None:
        width = np.nan if kernel.width is None else kernel.width
        self.entries += [(stage, kernel.name, width, ridge, n_rows, loss) for ridge, loss in zip(ridges, losses)]

    def columns(self) -> dict[str, np.ndarray]:
        """A dict of arrays, in an order that does not depend on which thread came first."""
        order = {stage: i for i, stage in enumerate(dict.fromkeys(entry[0] for entry in self.entries))}
        entries = sorted(self.entries, key=lambda entry: (order[entry[0]], *entry[1:]))
        columns = zip(*entries) if entries else ([] for _ in self.names)
        return {name: np.array(column) for name, column in zip(self.names, columns)}


def median_width(kernel: Kernel, rows: Rows, seed: int) -> float:
    """The median heuristic of 2010 Sec. 3, over pairs of distinct rows."""
    sample = rows.X[sample_rows(rows, MEDIAN_ROWS, seed)]
    return kernel.width_unit(kernel.pairs(sample, sample))


def stratified_folds(rows: Rows, k: int, seed: int) -> np.ndarray:
    """A fold number for every row: copies of a row share a fold, classes are spread over the folds."""
    first, number = distinct(rows.keys)
    labels = np.zeros(len(rows), dtype=int) if rows.is_multilabel else rows.labels
    order = np.lexsort([ranking(rows.keys[first], seed), labels[first]])
    fold = np.empty(len(first), dtype=int)
    fold[order] = np.arange(len(first)) % k
    return fold[number]


class CalibratedLogLoss:
    """Mean log-loss of held-out scores after the best of a few fixed calibrations.

    Each calibration is (κ, slopes, power of the prior) of :class:`~kproba.links.CalibratedSoftmax`, from nearly
    linear, p ∝ exp(βq), to nearly logarithmic, p ∝ q₊^a.
    """

    calibrations = ((1.0, (3.0, 6.0, 12.0, 24.0), 0.0), (10.0, (1.0, 1.5, 2.5), 1.0))

    def __call__(self, scores: np.ndarray, rows: Rows) -> float:
        prior = positive_prior(rows)
        if rows.is_multilabel:
            dtype = np.float32 if scores.size > LOW_PRECISION else np.float64
            prior, labels = prior.astype(dtype), rows.filled_labels.astype(dtype)
            q = complete_tags(np.clip(scores.astype(dtype), -1e3, 1e3), prior, rows.constant)
            return min(map(rows.mean_over_tags, self._of_tags(q, prior, labels)))
        scores = np.clip(scores, -1e3, 1e3)
        of_rows = self._of_classes(complete_by_prior(scores, prior), prior, rows.labels)
        return float(min(rows.weight @ loss for loss in of_rows) / rows.total_weight)

    def _of_classes(self, q, prior, labels):
        own = np.arange(len(q)), labels
        for kappa, slopes, power in self.calibrations:
            rise = log_softplus(kappa * q) - log_softplus(kappa * prior)
            for slope in slopes:
                logits = power * np.log(prior) + slope * rise
                logits -= logits.max(axis=1, keepdims=True)
                yield np.log(np.exp(logits).sum(axis=1)) - logits[own]

    def _of_tags(self, q, prior, labels):
        sign = 1 - 2 * labels
        for kappa, slopes, power in self.calibrations:
            rise = log_softplus(kappa * q) - log_softplus(kappa * (1.0 - q))
            rise -= log_softplus(kappa * prior) - log_softplus(kappa * (1.0 - prior))
            for slope in slopes:
                odds = power * np.log(prior / (1.0 - prior)) + slope * rise
                yield _log_loss(sign * odds)


def _log_loss(against: np.ndarray) -> np.ndarray:
    """log(1 + eᶻ) in place, for log-odds z of what did not happen: half the time of NumPy's own logaddexp."""
    small = np.exp(-np.abs(against))
    small += 1.0
    np.maximum(against, 0.0, out=against)
    against += np.log(small, out=small)
    return against


class LogLoss:
    """Mean log-loss of scores that are logarithms of probabilities, or log-odds of tags.

    No row counts for more than if it had the probability of half a row among all: without the last row of a class, the
    likelihood has no bound, and one such row would choose the ridge.
    """

    def __call__(self, scores: np.ndarray, rows: Rows) -> float:
        most = np.log(2.0 * (len(rows) + 1.0))
        if rows.is_multilabel:
            loss = np.logaddexp(0.0, scores) - rows.filled_labels * scores
            return rows.mean_over_tags(np.minimum(loss, most))
        loss = logsumexp(scores, axis=1) - scores[np.arange(len(scores)), rows.labels]
        return float(rows.weight @ np.minimum(loss, most) / rows.total_weight)


@dataclass(frozen=True)
class SquaredLoss:
    """Mean squared distance between the link's output and the targets: the Brier score of a rounding link."""

    output: Callable[[np.ndarray], np.ndarray]

    def __call__(self, scores: np.ndarray, rows: Rows) -> float:
        targets = rows.targets()[:, : rows.n_classes]
        # scores estimate probabilities; less than this is what rounding left of zero, and rounding links would
        # normalise it into a decision
        scores = np.where(np.abs(scores) < 1e-12, 0.0, scores)
        distance = np.square(self.output(scores) - targets)
        if rows.is_multilabel:
            return rows.n_classes * rows.mean_over_tags(distance)
        return float(rows.weight @ distance.sum(axis=1) / rows.total_weight)


def loss_for_link(link: str, rows: Rows) -> Callable[[np.ndarray, Rows], float]:
    """What compares held-out scores: log-loss for the calibrated link, squared error of the probabilities otherwise."""
    if link in CALIBRATED:
        return CalibratedLogLoss()
    if link == "none":
        return SquaredLoss(lambda scores: scores[:, : rows.n_classes])
    return SquaredLoss(fit_link(link, None, rows).probabilities)
