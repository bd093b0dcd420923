"""Measures of probabilities, with intervals."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtr

from ..metrics import _bin_numbers, _binned, _row_brier

#: Confidence level of all intervals and bands.
LEVEL = 0.90
#: Number of bootstrap resamples. With more rows than MOST_UNITS, random groups of rows are resampled.
RESAMPLES, MOST_UNITS = 1000, 10_000
#: Number of bins of the calibration error, as in :func:`kproba.metrics.calibration_error`, and of the figures.
ERROR_BINS, FIGURE_BINS, HISTOGRAM_BINS = 15, 10, 20
#: Number of resampling counts in memory at once.
BLOCK = 4_000_000
#: Number of outcomes to draw, over all rows, to see what calibrated probabilities would do.
MOST_DRAWN = 20_000_000
#: The measures of probabilities and their names, in the order of :func:`summarize`.
MEASURES = {"error": "error", "log_loss": "log-loss", "brier": "Brier score", "calibration": "calibration error"}
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its interval."""

    value: float
    low: float
    high: float


class TopClass(NamedTuple):
    """The predicted class of each row, its probability, and whether it is right."""

    predicted: np.ndarray
    confidence: np.ndarray
    correct: np.ndarray


def top_class(codes: np.ndarray, proba: np.ndarray) -> TopClass:
    predicted = proba.argmax(axis=1)
    return TopClass(predicted, proba[np.arange(len(codes)), predicted], predicted == codes)


def unit_losses(codes: np.ndarray, proba: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Sums over the rows of each unit (n_units, 3 + bins): error, log-loss, Brier score, and confidence minus success.

    The last has a column per bin; the absolute column sums, divided by n, add up to the calibration error.
    """
    top, n_units = top_class(codes, proba), int(unit.max()) + 1
    own = proba[np.arange(len(codes)), codes]
    losses = (~top.correct, -np.log(np.maximum(own, _EPS)), _row_brier(codes, proba))
    place = unit * ERROR_BINS + _error_bins(top.confidence)
    gaps = np.bincount(place, top.confidence - top.correct, n_units * ERROR_BINS)
    return np.column_stack([*(np.bincount(unit, loss) for loss in losses), gaps.reshape(n_units, ERROR_BINS)])


def _error_bins(confidence: np.ndarray) -> np.ndarray:
    return _bin_numbers(confidence, np.ones(len(confidence)), ERROR_BINS, "quantile")


def summarize(means: np.ndarray) -> np.ndarray:
    """Error, log-loss, Brier score and calibration error from means of :func:`unit_losses`, on the last axis."""
    return np.concatenate([means[..., :3], np.abs(means[..., 3:]).sum(axis=-1, keepdims=True)], axis=-1)


def measured(codes: np.ndarray, proba: np.ndarray) -> dict[str, float]:
    """The measures of all rows.

    >>> measured(np.array([0, 1]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    {'error': 0.0, 'log_loss': 0.0, 'brier': 0.0, 'calibration': 0.0}
    """
    sums = unit_losses(codes, proba, np.zeros(len(codes), dtype=int))[0]
    return dict(zip(MEASURES, (summarize(sums / len(codes)) + 0.0).tolist()))


def calibration_by_chance(confidence: np.ndarray) -> float:
    """Expected calibration error of a perfectly calibrated model on this many rows: E|Σ(p − hit)| of each bin.

    >>> round(calibration_by_chance(np.full(100, 0.5)), 3)
    0.04
    """
    spread = np.bincount(_error_bins(confidence), confidence * (1.0 - confidence))
    return float(np.sqrt(2.0 / np.pi * spread).sum() / len(confidence))


def resampling_units(n_rows: int, seed: int) -> np.ndarray:
    """The resampling unit of each row: the row itself or, with many rows, a random group."""
    if n_rows <= MOST_UNITS:
        return np.arange(n_rows)
    return np.random.default_rng(seed).permutation(n_rows) % MOST_UNITS


def resampled_means(sums: np.ndarray, size: np.ndarray, seed: int, resamples: int = RESAMPLES) -> np.ndarray:
    """Bootstrap means (resamples, k) from the sums (n_units, k) and sizes of units drawn with replacement.

    >>> resampled_means(np.ones((5, 2)), np.ones(5), seed=0, resamples=3)
    array([[1., 1.],
           [1., 1.],
           [1., 1.]])
    """
    rng, n, found = np.random.default_rng(seed), len(sums), []
    for left in range(resamples, 0, -max(1, BLOCK // n)):
        counts = rng.multinomial(n, np.full(n, 1.0 / n), size=min(left, max(1, BLOCK // n)))
        found.append(counts @ sums / (counts @ size)[:, None])
    return np.concatenate(found)


def intervals(values: np.ndarray, resampled: np.ndarray) -> tuple[Interval, ...]:
    """Percentile interval of each column.

    Intervals are extended to contain the estimate: resampling noise increases the calibration error, so all resamples
    may lie above it.
    """
    low, high = np.quantile(resampled, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0], axis=0)
    low, high = np.minimum(low, values), np.maximum(high, values)
    return tuple(Interval(*map(float, triple)) for triple in zip(values, low, high))


def jeffreys(hits: np.ndarray, n: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Jeffreys interval of a proportion; its ends are 0 and 1 if there are no hits or only hits.

    >>> [end.round(3).tolist() for end in jeffreys(np.array([0, 5]), np.array([10, 10]))]
    [[0.0, 0.262], [0.171, 0.738]]
    """
    tail = (1.0 - level) / 2.0
    low = np.where(hits > 0, betaincinv(hits + 0.5, n - hits + 0.5, tail), 0.0)
    high = np.where(hits < n, betaincinv(hits + 0.5, n - hits + 0.5, 1.0 - tail), 1.0)
    return low, high


def share_of(hits: int, n: int) -> Interval:
    """A share with its interval; NaN if there is nothing.

    >>> found = share_of(5, 10)
    >>> round(found.low, 3), found.value, round(found.high, 3)
    (0.262, 0.5, 0.738)
    """
    if not n:
        return Interval(np.nan, np.nan, np.nan)
    low, high = jeffreys(np.array(hits), np.array(n))
    return Interval(hits / n, float(low), float(high))


@dataclass(frozen=True)
class Reliability:
    """Mean confidence, share of correct predictions with its band, and number of rows of each non-empty bin."""

    confidence: np.ndarray
    frequency: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rows: np.ndarray


def reliability(confidence, correct, n_bins: int = FIGURE_BINS, strategy: str = "uniform") -> Reliability:
    """How often predictions with a given confidence are right, with 90 % bands.

    >>> reliability(np.array([0.9, 0.9, 0.3, 0.3]), np.array([True, True, True, False])).frequency
    array([0.5, 1. ])
    """
    bins = _binned(confidence, correct, np.ones(len(confidence)), n_bins, strategy)
    rows = bins.weight.astype(int)
    return Reliability(bins.confidence, bins.frequency, *jeffreys(bins.frequency * rows, rows), rows)


def binned(p: np.ndarray, hit: np.ndarray, edges: np.ndarray) -> Reliability:
    """How often what has a given probability happens, in bins between ``edges``; those below the first are in its bin.

    >>> binned(np.array([0.1, 0.3, 0.9]), np.array([False, True, True]), np.array([0.0, 0.5, 1.0])).frequency
    array([0.5, 1. ])
    """
    number = np.searchsorted(edges[1:-1], p, side="right")
    rows = np.bincount(number, minlength=len(edges) - 1)
    sums = [np.bincount(number, values, len(edges) - 1)[rows > 0] for values in (p, hit)]
    rows = rows[rows > 0]
    return Reliability(sums[0] / rows, sums[1] / rows, *jeffreys(sums[1], rows), rows)


def off_by_chance(p: np.ndarray, hits: int) -> float:
    """Probability of a number of hits at least as far from the sum of calibrated probabilities, on either side."""
    return min(1.0, 2.0 * min(tails(p, hits)))


def tails(p: np.ndarray, hits: int) -> tuple[float, float]:
    """Probabilities of at most and of at least so many hits, if the probabilities are calibrated.

    The sum of independent hits is nearly normal; with a correction for its skewness (Volkova 1996), tails are right to
    a factor of about two even if few hits are expected.
    """
    mean, variance = p.sum(), (p * (1.0 - p)).sum()
    if variance < 1e-12:
        return float(hits > mean - 0.5), float(hits < mean + 0.5)
    skewness = (p * (1.0 - p) * (1.0 - 2.0 * p)).sum() / variance**1.5

    def below(count: float) -> float:
        z = (count + 0.5 - mean) / np.sqrt(variance)
        return float(
            np.clip(ndtr(z) + skewness * (1.0 - z * z) * np.exp(-z * z / 2.0) / np.sqrt(72.0 * np.pi), 0.0, 1.0)
        )

    return below(hits), 1.0 - below(hits - 1)


@dataclass(frozen=True)
class FaceValue:
    """Whether probabilities match what happens.

    ``p_value`` is small if calibrated probabilities would hardly have a calibration error as large as this one, or a
    number of hits as far from their sum; ``by_chance`` is the error to expect of calibrated probabilities.
    """

    error: float
    by_chance: float
    p_value: float


def face_value(p: np.ndarray, hit: np.ndarray, seed: int) -> FaceValue:
    """Compare the calibration error with those of outcomes drawn from the probabilities.

    Drawing them is right for few and for rare hits too, where a normal approximation is not.

    >>> p = np.full(200, 0.5)
    >>> face_value(p, np.arange(200) % 2 == 0, 0).p_value, face_value(p, np.ones(200), 0).p_value < 0.01
    (1.0, True)
    """
    rng, bins = np.random.default_rng(seed), _error_bins(p)
    draws = int(np.clip(MOST_DRAWN // len(p), 100, 500))

    def error(hits: np.ndarray) -> float:
        return float(np.abs(np.bincount(bins, p - hits)).sum() / len(p))

    drawn = np.array([error(rng.random(len(p)) < p) for _ in range(draws)])
    found = error(np.asarray(hit, dtype=float))
    by_bins = (1 + (drawn >= found - 1e-12).sum()) / (1 + draws)
    by_sum = off_by_chance(p, int(np.sum(hit)))  # finds a small shift of all probabilities, which bins do not
    return FaceValue(found, float(drawn.mean()), float(min(1.0, 2.0 * min(by_bins, by_sum))))


@dataclass(frozen=True)
class Histogram:
    """Counts of right and wrong predictions by the probability of the predicted class, or of positive and negative
    rows by the probability of the positive one."""

    edges: np.ndarray
    right: np.ndarray
    wrong: np.ndarray


def confidence_histogram(confidence, correct, low: float = 0.0, n_bins: int = HISTOGRAM_BINS) -> Histogram:
    """Counts in bins of equal width from ``low`` to 1.

    >>> found = confidence_histogram(np.array([0.5, 0.95, 1.0]), np.array([True, False, True]), n_bins=2)
    >>> found.right, found.wrong
    (array([0, 2]), array([0, 1]))
    """
    edges = np.linspace(low, 1.0, n_bins + 1)
    confidence, correct = np.clip(confidence, low, 1.0), np.asarray(correct, dtype=bool)
    return Histogram(edges, *(np.histogram(confidence[part], edges)[0] for part in (correct, ~correct)))


def thinned(x: np.ndarray, y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most ``most`` points of a curve, evenly spaced along it and including both ends.

    >>> thinned(np.arange(101.0), np.zeros(101), 3)[0]
    array([  0.,  50., 100.])
    """
    if len(x) <= most:
        return x, y
    along = np.append(0.0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y))))
    kept = np.unique(np.searchsorted(along, np.linspace(0.0, along[-1], most)).clip(0, len(x) - 1))
    kept[0], kept[-1] = 0, len(x) - 1
    return x[kept], y[kept]
