"""The losses used to compare candidates.

Candidates are compared by how well held-out scores (exact leave-one-out, or folds) predict after calibration. The
comparison must be cheap and additive over rows, so it uses the best of a few fixed calibrations; the winner's link is
fitted afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ..data.rows import Rows
from ..links import as_link, by_row, complete_by_prior, complete_tags, log_softplus, positive_prior

#: With more tag scores than this, losses are computed in float32: the mean is accurate enough, in half the time.
LOW_PRECISION = 100_000


class CalibratedLogLoss:
    """Mean log-loss of held-out scores after the best of a few fixed calibrations.

    Each calibration is (κ, slopes, power of the prior) of :class:`~kproba.links.CalibratedSoftmax`, ranging from nearly
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
                logits -= by_row(np.maximum, logits)
                yield np.log(by_row(np.add, np.exp(logits))[:, 0]) - logits[own]

    def _of_tags(self, q, prior, labels):
        sign = 1 - 2 * labels
        for kappa, slopes, power in self.calibrations:
            rise = log_softplus(kappa * q) - log_softplus(kappa * (1.0 - q))
            rise -= log_softplus(kappa * prior) - log_softplus(kappa * (1.0 - prior))
            for slope in slopes:
                odds = power * np.log(prior / (1.0 - prior)) + slope * rise
                yield _log_loss(sign * odds)


def _log_loss(against: np.ndarray) -> np.ndarray:
    """log(1 + eᶻ) in place, with z the log-odds of the wrong outcome; takes half the time of NumPy's logaddexp."""
    small = np.exp(-np.abs(against))
    small += 1.0
    np.maximum(against, 0.0, out=against)
    against += np.log(small, out=small)
    return against


class LogLoss:
    """Mean log-loss of scores that are log-probabilities, or log-odds of tags.

    The loss of a row is capped at that of a probability of half a row among all, in which each draw counts. Without the
    last row of a class, the likelihood is unbounded, and that one row would determine the ridge.
    """

    def __call__(self, scores: np.ndarray, rows: Rows) -> float:
        most = np.log(2.0 * ((rows.n_copies.sum() if rows.copies_are_draws else len(rows)) + 1.0))
        if rows.is_multilabel:
            loss = np.logaddexp(0.0, scores) - rows.filled_labels * scores
            return rows.mean_over_tags(np.minimum(loss, most))
        loss = logsumexp(scores, axis=1) - scores[np.arange(len(scores)), rows.labels]
        return float(rows.weight @ np.minimum(loss, most) / rows.total_weight)

    def of_shares(self, rows: Rows) -> float:
        """The loss of the frequencies of the classes or tags."""
        prior = positive_prior(rows)
        scores = np.log(prior / (1.0 - prior) if rows.is_multilabel else prior)
        return self(np.tile(scores, (len(rows), 1)), rows)


@dataclass(frozen=True)
class SquaredLoss:
    """Mean squared distance between the link's output and the targets, e.g. the Brier score of a clipping link."""

    output: Callable[[np.ndarray], np.ndarray]

    def __call__(self, scores: np.ndarray, rows: Rows) -> float:
        targets = rows.targets()[:, : rows.n_classes]
        # scores estimate probabilities; smaller values are rounding errors of zero, which clipping links would
        # normalise into a decision
        scores = np.where(np.abs(scores) < 1e-12, 0.0, scores)
        distance = np.square(self.output(scores) - targets)
        if rows.is_multilabel:
            return rows.n_classes * rows.mean_over_tags(distance)
        return float(rows.weight @ distance.sum(axis=1) / rows.total_weight)


def loss_for_link(name, rows: Rows) -> Callable[[np.ndarray, Rows], float]:
    """The loss for held-out scores: log-loss for calibrated links, otherwise the squared error of the probabilities."""
    link = as_link(name)
    if link.is_calibrated:
        return CalibratedLogLoss()
    if not link.gives_probabilities:
        return SquaredLoss(lambda scores: scores[:, : rows.n_classes])
    return SquaredLoss(link.fit(None, rows).probabilities)
