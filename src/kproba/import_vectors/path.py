"""Adding points until the stopping rule holds (2001 Sec. 3.3), from large ridges to small ones (Sec. 3.4, C1–C5)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..data.hashing import distinct, ranking
from ..data.rows import Rows
from ..progress import Progress
from .model import PERFECT, Addition, ImportModel, Task
from .search import Pool

#: A path that is not the user's own ends once the log-loss of the tuning rows has not fallen by so large a share for so
#: many ridges in a row.
NOTICEABLE, PATIENCE = 0.01, 2


@dataclass(frozen=True)
class Settings:
    """How points are added, and when no more are: once |H_k − H_{k−r}|/|H_k| < tol with r = ``lookback``.

    The first r points are judged in proportion: k of them must not change H by k/r·tol.
    """

    search: Callable[[ImportModel, Pool], Addition | None]
    tol: float = 1e-3
    lookback: int = 1
    max_points: int | None = None


@dataclass(frozen=True)
class Tuning:
    """Rows that judge a model: their share of errors and their mean log-loss (per tag where there are tags)."""

    rows: Rows

    def __call__(self, model: ImportModel) -> tuple[float, float]:
        task, rows = model.task, self.rows
        U = task.kernel(rows.X, task.points(model.chosen), task.workers) @ model.coef + model.beta[0]
        loss, P = task.loss.evaluate(U, rows.labels, rows.weight)
        if rows.is_multilabel:
            return rows.mean_over_tags((P > 0.5) != rows.labels), loss / max(rows.tag_weight.sum(), 1e-300)
        return _mean(rows, P.argmax(axis=1) != rows.labels), loss / rows.total_weight


def _mean(rows: Rows, values: np.ndarray) -> float:
    return float(rows.weight @ values / rows.total_weight)


class PathPoint(NamedTuple):
    """The model of one ridge λ; errors and losses are NaN without tuning rows.

    ``gain`` is the last |H_k − H_{k−r}|/|H_k|, and ``is_cut`` whether ``max_points`` came before the stopping rule.
    """

    ridge: float
    objective: float
    n_points: int
    tuning_error: float
    tuning_log_loss: float
    seconds: float
    beta: np.ndarray
    gain: float
    is_cut: bool


@dataclass
class Growth:
    """The objective after every point that was added, and under which ridge."""

    entries: list[tuple[float, int, float]] = field(default_factory=list)

    def columns(self) -> dict[str, np.ndarray]:
        return {name: np.array(column) for name, column in zip(("ridge", "n_points", "objective"), zip(*self.entries))}


def grow(model: ImportModel, pool: Pool, settings: Settings, note: Callable[[], None]) -> tuple[float, bool]:
    """Add points until the rule holds or none is left: the last relative change, and whether ``max_points`` cut in."""
    values, gain = [model.value], np.nan
    while settings.max_points is None or len(model.chosen) < settings.max_points:
        is_perfect = model.value <= PERFECT * model.task.rows.total_weight
        new = None if is_perfect else settings.search(model, pool)
        if new is None:
            return gain, False
        model.add(new)
        note()
        values.append(model.value)
        gain, share = change(values, settings.lookback)
        if gain < share * settings.tol:
            return gain, False
    return gain, True


def change(values: Sequence[float], lookback: int) -> tuple[float, float]:
    """|H_k − H_{k−r}|/|H_k|, and 1; with k < r points so far, the change by those and their share k/r."""
    steps = min(lookback, len(values) - 1)
    return abs(values[-1] - values[-1 - steps]) / abs(values[-1]), steps / lookback


def follow(
    task: Task,
    pool: Pool,
    ridges: Sequence[float],
    settings: Settings,
    tuning: Tuning | None = None,
    may_stop: bool = False,
    growth: Growth | None = None,
    progress: Progress | None = None,
) -> tuple[ImportModel, list[PathPoint]]:
    """The models of decreasing ridges λ, each starting from the points and coefficients of the one before."""
    total = task.rows.total_weight
    model, points = ImportModel(task, total * ridges[0]), []
    for ridge in ridges:
        start = time.perf_counter()
        model.set_ridge(total * ridge)
        model.settle()
        note = _recorder(model, ridge, growth)
        note()
        gain, is_cut = grow(model, pool, settings, note)
        model.settle()
        error, loss = tuning(model) if tuning else (np.nan, np.nan)
        seconds = time.perf_counter() - start
        points.append(
            PathPoint(ridge, model.value, len(model.chosen), error, loss, seconds, model.beta.copy(), gain, is_cut)
        )
        if progress:
            progress.step(f"{len(model.chosen)} points")
        if may_stop and _has_stalled([point.tuning_log_loss for point in points]):
            break
    return model, points


def _recorder(model: ImportModel, ridge: float, growth: Growth | None) -> Callable[[], None]:
    return lambda: None if growth is None else growth.entries.append((ridge, len(model.chosen), model.value))


def _has_stalled(losses: Sequence[float]) -> bool:
    """Whether the loss has not fallen noticeably for some ridges.

    Noticeable is a share of the loss or of its whole fall, whichever is less: at the largest ridges it hardly moves.
    """
    best, stalled = losses[0], 0
    for loss in losses[1:]:
        falls = best - loss > NOTICEABLE * min(best, losses[0] - loss)
        stalled = 0 if falls else stalled + 1
        best = min(best, loss)
    return stalled >= PATIENCE


def best_of(points: Sequence[PathPoint], loss: str) -> PathPoint:
    """The point of the smallest loss on the tuning rows; the largest ridge of those that are level."""
    return min(points, key=lambda p: p.tuning_error if loss == "error" else p.tuning_log_loss)


def tuning_split(rows: Rows, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows train and which tune: about a ``fraction`` of every class tunes, one row of it trains at least.

    Copies of a row stay together. Where no row can be spared, all rows do both.
    """
    first, number = distinct(rows.keys)
    labels = np.zeros(len(first), dtype=int) if rows.is_multilabel else rows.labels[first]
    order = np.lexsort([ranking(rows.keys[first], seed), labels])
    place = np.arange(len(first)) - np.searchsorted(labels[order], labels[order])  # within the class
    tunes = np.empty(len(first), dtype=bool)
    tunes[order] = (np.floor((place + 1) * fraction + 0.5) > np.floor(place * fraction + 0.5)) & (place > 0)
    if not tunes.any():
        return np.arange(len(rows)), np.arange(len(rows))
    return np.flatnonzero(~tunes[number]), np.flatnonzero(tunes[number])
