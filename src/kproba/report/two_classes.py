"""Two classes: how well the probability of the positive one ranks, decides and matches what happens."""

from dataclasses import dataclass

import numpy as np

from ..decisions.risk_coverage import errors_by_rank
from ..messages import did_you_mean
from .baselines import ModelProba
from .measures import RESAMPLES, Histogram, Interval, Reliability, binned, intervals, share_of

#: A positive class with a smaller share is rare: the error says little about it, so other measures lead.
RARE = 0.1
#: The first class is positive if its share is smaller than this; otherwise the second one is, as in scikit-learn.
RARER = 0.2
#: Number of thresholds that the page knows, and the resolution of probabilities.
MOST_THRESHOLDS, UNIT = 10_000, 1e-6
#: Number of cells in all resamples of the areas under the curves.
MOST_RESAMPLED = 4_000_000
BINS = 10


@dataclass(frozen=True)
class Thresholds:
    """Rows flagged as positive and positive rows among them, from the highest threshold down."""

    thresholds: np.ndarray
    flagged: np.ndarray
    hits: np.ndarray
    n_rows: int
    n_positive: int

    def at(self, threshold: float) -> tuple[int, int]:
        """Rows with a probability of at least the threshold, and positive rows among them."""
        number = int(np.count_nonzero(self.thresholds >= threshold - 1e-3 * UNIT))
        return (int(self.flagged[number - 1]), int(self.hits[number - 1])) if number else (0, 0)


@dataclass(frozen=True)
class Ranking:
    """How well a model finds the positive rows.

    It flags ``flagged`` rows, for which the positive class is the more probable one; ``hits`` of these are positive.
    The areas are NaN if a class has no rows, recall and precision if there is nothing to find or nothing is flagged.
    """

    flagged: int
    hits: int
    recall: Interval
    precision: Interval
    auc: Interval
    average_precision: Interval


@dataclass(frozen=True)
class PositiveFacts:
    """The positive class: ``rankings`` of all models, the evaluated one first, and the probability of the class.

    ``expected`` is the sum of its probabilities.
    """

    place: int
    name: str
    other: str
    rows: int
    share: float
    expected: float
    rankings: tuple[Ranking, ...]
    thresholds: Thresholds
    reliability: Reliability
    histogram: Histogram

    @property
    def own(self) -> Ranking:
        return self.rankings[0]

    @property
    def is_rare(self) -> bool:
        return 0.0 < self.share < RARE

    @property
    def lift(self) -> float:
        """How many times the average precision exceeds that of guessing, which is the share of the class."""
        return self.own.average_precision.value / self.share if self.share else np.nan


def positive_facts(models: list[ModelProba], codes: np.ndarray, labels: list, positive, seed: int):
    """The facts of the positive class; None unless there are two classes."""
    place = positive_place(codes, labels, positive)
    if place is None:
        return None
    own, p = codes == place, models[0].proba[:, place]
    edges = probability_edges(p, float(own.mean()))
    return PositiveFacts(
        place=place,
        name=str(labels[place]),
        other=str(labels[1 - place]),
        rows=int(own.sum()),
        share=float(own.mean()),
        expected=float(p.sum()),
        rankings=tuple(ranking_of(each.proba, place, own, seed) for each in models),
        thresholds=thresholds_of(p, own),
        reliability=binned(p, own, edges),
        histogram=Histogram(edges, *(np.histogram(part.clip(edges[0]), edges)[0] for part in (p[own], p[~own]))),
    )


def ranking_of(proba: np.ndarray, place: int, own: np.ndarray, seed: int) -> Ranking:
    chosen = proba.argmax(axis=1) == place
    flagged, hits = int(chosen.sum()), int((own & chosen).sum())
    decided = share_of(hits, int(own.sum())), share_of(hits, flagged)
    return Ranking(flagged, hits, *decided, *ranking_intervals(proba[:, place], own, seed))


def positive_place(codes: np.ndarray, labels: list, positive) -> int | None:
    """The number of the positive class: the given one, or the second class unless the first is rarer by far."""
    if positive is not None:
        if len(labels) != 2:
            raise ValueError(f"positive={positive!r} needs two classes, but the model has {len(labels)}; leave it out.")
        if positive not in labels:
            known = f"{labels[0]!r} or {labels[1]!r}"
            raise ValueError(f"positive must be {known}, got {positive!r}{did_you_mean(positive, labels)}.")
        return labels.index(positive)
    if len(labels) != 2:
        return None
    return 0 if 0 < (codes == 0).mean() < RARER else 1


def probability_edges(p: np.ndarray, share: float) -> np.ndarray:
    """Edges of the bins from 0 to 1: equally wide or, for a rare class, equally wide on a logarithmic scale."""
    if share >= RARE:
        return np.linspace(0.0, 1.0, BINS + 1)
    lowest = np.floor(np.log10(np.clip(np.quantile(p, 0.01), 1e-6, 0.1)))
    return 10.0 ** np.linspace(lowest, 0.0, int(-2 * lowest) + 1)


def thresholds_of(p: np.ndarray, own: np.ndarray, most: int = MOST_THRESHOLDS) -> Thresholds:
    """Counts at every threshold that separates rows or, if there are too many, at some, with those of positive rows.

    >>> found = thresholds_of(np.array([0.9, 0.6, 0.6, 0.1]), np.array([True, False, True, False]))
    >>> found.thresholds, found.at(0.5), found.at(0.95)
    (array([0.9, 0.6, 0.1]), (3, 2), (0, 0))
    """
    level = np.floor(p / UNIT + 1e-6) * UNIT
    hits, last = errors_by_rank(level, own)
    if len(last) > most:
        last = _some(hits, last, most)
    return Thresholds(np.sort(level)[::-1][last], last + 1, hits[last], len(p), int(own.sum()))


def _some(hits: np.ndarray, last: np.ndarray, most: int) -> np.ndarray:
    """Evenly spaced thresholds and, if the positive rows are few, all thresholds where one of them is flagged."""
    kept = np.linspace(0, len(last) - 1, most // 2).round().astype(int)
    gains = np.flatnonzero(np.diff(hits[last], prepend=0))
    return last[np.union1d(kept, gains[np.linspace(0, len(gains) - 1, most // 2).round().astype(int)])]


def ranking_intervals(p: np.ndarray, own: np.ndarray, seed: int) -> tuple[Interval, Interval]:
    """Area under the ROC curve and average precision, with bootstrap intervals.

    Drawing rows one by one is the same as drawing how many come from each cell, so cells are drawn: the positive and
    the other rows of each step of the ranking, which are few if the class is rare.
    """
    if own.all() or not own.any():
        return (Interval(np.nan, np.nan, np.nan),) * 2
    cells, n = ranking_cells(p, own), len(p)
    rng, chances = np.random.default_rng(seed), (cells / n).ravel()
    draws = int(np.clip(MOST_RESAMPLED // chances.size, 50, RESAMPLES))
    drawn = [_areas(rng.multinomial(n, chances).reshape(cells.shape)) for _ in range(draws)]
    resampled = np.array([areas for areas in drawn if np.isfinite(areas).all()])
    area, average = intervals(_areas(cells), resampled)
    return area, average


def ranking_cells(p: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Positive and other rows (2, n_steps) from the highest probability down.

    A step is a group of ties; consecutive groups without positive rows are one step, as neither area depends on their
    order.

    >>> ranking_cells(np.array([0.9, 0.8, 0.7, 0.7, 0.1]), np.array([False, False, True, False, False]))
    array([[0, 1, 0],
           [2, 1, 1]])
    """
    _, tie = np.unique(-p, return_inverse=True)
    hits, others = np.bincount(tie, own), np.bincount(tie, ~own)
    step = np.cumsum(np.diff(hits > 0, prepend=False) | (hits > 0))
    return np.array([np.bincount(step, each)[step[0] :] for each in (hits, others)]).astype(int)


def _areas(cells: np.ndarray) -> np.ndarray:
    """ROC area and average precision of the cells of a ranking; NaN if it lacks a class."""
    hits, false = np.cumsum(cells, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        average = np.nansum(cells[0] * (hits / (hits + false))) / hits[-1]
        area = (cells[1] * (hits - cells[0] / 2.0)).sum() / (hits[-1] * false[-1])
    return np.array([area, average])
