"""Add points until the stopping rule holds (2001 Sec. 3.3), from large ridges to small ones (Sec. 3.4, C1–C5)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ...data.folds import stratified_folds
from ...data.hashing import ranking, row_keys
from ...data.rows import Rows
from ...progress import Progress
from .model import NEGLIGIBLE_LOSS, Addition, ImportModel, Task
from .search import JointStep, Pool

#: Gain in log-loss, summed over the tuning rows, that a path must have over its first point.
NOTICEABLE_GAIN = 3.0
#: An automatic path ends once the log-loss of the tuning rows has not decreased by the share NOTICEABLE for PATIENCE
#: ridges in a row.
NOTICEABLE, PATIENCE = 0.01, 2
#: Mean log-losses below this count as equal: with separable classes the few tuning rows cannot tell how confident a
#: model may be, and would choose the smallest ridge.
LOSS_FLOOR = 0.01
#: A model has learnt something once its objective is below that of the best constants by the share LEARNT. Before that,
#: points are still added if all candidates together promise the share PROMISING.
LEARNT, PROMISING = 0.05, 0.25
#: Maximum number of copies that a row counts for.
MOST_COPIES = 1e6


@dataclass(frozen=True)
class Settings:
    """How points are added, and the stopping rule |H_k − H_{k−r}|/|H_k| < tol with r = ``lookback``.

    The first r points are judged in proportion: with k < r points the threshold is k/r·tol. With ``persists``, a model
    that has learnt nothing yet continues if many points together would help: in a parity problem, no single row is
    informative.
    """

    search: Callable[[ImportModel, Pool], Addition | None]
    tol: float = 1e-3
    lookback: int = 1
    max_points: int | None = None
    persists: bool = False


@dataclass(frozen=True)
class Tuning:
    """Rows that judge a model by error rate and mean log-loss (averaged over tags if there are tags)."""

    rows: Rows

    def __call__(self, model: ImportModel) -> tuple[float, float]:
        return self.judge(model.task, self.columns(model.task, model.chosen) @ model.coef + model.beta[0])

    def columns(self, task: Task, points) -> np.ndarray:
        """Kernel values between the tuning rows and some training rows."""
        return task.kernel(self.rows.X, task.points(points), task.workers)

    def judge(self, task: Task, U: np.ndarray) -> tuple[float, float]:
        rows = self.rows
        loss, P = task.loss.evaluate(U, rows.labels, rows.weight)
        if rows.is_multilabel:
            return rows.mean_over_tags((P > 0.5) != rows.labels), loss / max(rows.tag_weight.sum(), 1e-300)
        error = float(rows.weight @ (P.argmax(axis=1) != rows.labels) / rows.total_weight)
        return error, loss / rows.total_weight


class PathPoint(NamedTuple):
    """The model at one ridge λ; errors and losses are NaN without tuning rows.

    ``gain`` is the last |H_k − H_{k−r}|/|H_k|; ``is_cut`` tells whether ``max_points`` was reached first.
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
    """The objective after every added point, with its ridge."""

    entries: list[tuple[float, int, float]] = field(default_factory=list)

    def columns(self) -> dict[str, np.ndarray]:
        return {name: np.array(column) for name, column in zip(("ridge", "n_points", "objective"), zip(*self.entries))}


def grow(model: ImportModel, pool: Pool, settings: Settings, note: Callable[[], None]) -> tuple[float, bool]:
    """Add points until the rule holds or none is left; returns the last relative change and if ``max_points`` was
    hit."""
    values, gain = [model.value], np.nan
    while settings.max_points is None or len(model.chosen) < settings.max_points:
        is_perfect = model.value <= NEGLIGIBLE_LOSS * model.task.rows.total_weight
        new = None if is_perfect else settings.search(model, pool)
        if new is None:
            return gain, False
        model.add(new)
        note()
        values.append(model.value)
        gain, share = change(values, settings.lookback)
        if gain < share * settings.tol and not (settings.persists and _may_yet_learn(model, pool)):
            return gain, False
    return gain, True


def _has_learnt(model: ImportModel) -> bool:
    return model.value <= (1.0 - LEARNT) * model.task.constant_loss


def _may_yet_learn(model: ImportModel, pool: Pool) -> bool:
    """Whether the model is almost constant although all candidates together would improve it."""
    enough = PROMISING * model.value
    if _has_learnt(model) or not pool.max_joint_gain(model) > enough:
        return False
    return JointStep.of_pool(model, pool).decrease() > enough


def change(values: Sequence[float], lookback: int) -> tuple[float, float]:
    """|H_k − H_{k−r}|/|H_k|, and 1; with only k < r points so far, the change over those, and k/r."""
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
    """The models for decreasing ridges λ, each starting from the points and coefficients of the one before.

    A path that ends without having learnt anything is repeated with ``persists=True``. This is not done at first,
    because points added early stay, and most tables need few.
    """
    arguments = ridges, tuning, may_stop, growth, progress
    fresh = pool.copy()  # a pool belongs to one model
    found = _follow_once(task, settings, pool, *arguments)
    if _has_learnt(found[0]):
        return found
    if growth is not None:
        growth.entries.clear()
    return _follow_once(task, replace(settings, persists=True), fresh, *arguments)


def _follow_once(
    task: Task,
    settings: Settings,
    pool: Pool,
    ridges: Sequence[float],
    tuning: Tuning | None,
    may_stop: bool,
    growth: Growth | None,
    progress: Progress | None,
) -> tuple[ImportModel, list[PathPoint]]:
    total = task.rows.total_weight
    model, points, hopes = ImportModel(task, total * ridges[0]), [], None
    for ridge in ridges:
        start = time.perf_counter()
        model.set_ridge(total * ridge)
        model.settle()
        note = _recorder(model, ridge, growth)
        note()
        gain, is_cut = grow(model, pool, settings, note)
        model.settle() if len(ridges) > 1 else model.converge()
        error, loss = tuning(model) if tuning else (np.nan, np.nan)
        seconds = time.perf_counter() - start
        points.append(
            PathPoint(ridge, model.value, len(model.chosen), error, loss, seconds, model.beta.copy(), gain, is_cut)
        )
        if progress:
            progress.step(f"{len(model.chosen)} points")
        if may_stop and tuning and _has_stalled([point.tuning_log_loss for point in points]):
            if _has_learnt(model) or not settings.persists:
                break
            hopes = _all_would_learn(task, pool, ridges, tuning) if hopes is None else hopes
            if not hopes:
                break
    return model, points


def _all_would_learn(task: Task, pool: Pool, ridges: Sequence[float], tuning: Tuning) -> bool:
    """Whether the model of all candidates, one Newton step from the constants, separates the tuning rows."""
    joint = JointStep.from_constants(task, pool)
    constants, columns = joint.model.beta[0], tuning.columns(task, joint.rows)

    def loss(ridge: float) -> float:
        change, coef = joint.coefficients(task.rows.total_weight * ridge)
        return tuning.judge(task, columns @ coef + (constants + change[0]))[1]

    none = tuning.judge(task, np.broadcast_to(constants, (len(columns), len(constants))))[1]
    return min(map(loss, ridges)) < (1.0 - LEARNT) * none


def _recorder(model: ImportModel, ridge: float, growth: Growth | None) -> Callable[[], None]:
    return lambda: None if growth is None else growth.entries.append((ridge, len(model.chosen), model.value))


def _has_stalled(losses: Sequence[float]) -> bool:
    """Whether the loss has not decreased noticeably for some ridges.

    The threshold is a share of the loss or of its total decrease, whichever is less, because it hardly changes at the
    largest ridges.
    """
    best, stalled = losses[0], 0
    for loss in losses[1:]:
        falls = best - loss > NOTICEABLE * min(best, losses[0] - loss)
        stalled = 0 if falls else stalled + 1
        best = min(best, loss)
    return stalled >= PATIENCE


def best_of(points: Sequence[PathPoint], loss: str) -> PathPoint:
    """The point with the smallest loss on the tuning rows; ties go to the largest ridge."""
    return min(points, key=lambda p: p.tuning_error if loss == "error" else max(p.tuning_log_loss, LOSS_FLOOR))


def noticeable_best_of(points: Sequence[PathPoint], loss: str, n_rows: float) -> PathPoint:
    """The best point, or the first one if so many tuning rows gain no more than they do in pure noise."""
    first, best = points[0].tuning_log_loss, best_of(points, loss)
    gain = first - best.tuning_log_loss
    return points[0] if loss != "error" and gain * n_rows < NOTICEABLE_GAIN and 2.0 * gain < first else best


def tuning_split(rows: Rows, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Split into training and tuning rows: about a ``fraction`` of every class tunes, and at least one row trains.

    Copies of a row are split individually and may be on both sides, just as a new row may equal a known one. If no row
    can be spared, all rows are used for both. The user's groups stay on one side.
    """
    if rows.together is not None:
        is_tuning = stratified_folds(rows, max(2, round(1.0 / fraction)), seed) == 0
        return _part(rows, 1.0 - is_tuning), _part(rows, 1.0 * is_tuning)
    copies = np.minimum((rows.weight if rows.mass is None else rows.mass) / rows.unit, MOST_COPIES)
    labels = np.zeros(len(rows), dtype=int) if rows.is_multilabel else rows.labels
    content = row_keys(np.column_stack([rows.labels, rows.unit]))  # orders rows with equal inputs
    order = np.lexsort([content, ranking(rows.keys, seed), labels])
    ends = np.cumsum(copies[order])
    ends -= (ends - copies[order])[np.searchsorted(labels[order], labels[order])]  # within the class
    tuning = np.empty(len(rows))
    tuning[order] = _tuning_copies(ends, fraction) - _tuning_copies(ends - copies[order], fraction)
    if not tuning.any():
        return rows, rows
    share = np.minimum(tuning / copies, 1.0)
    return _part(rows, 1.0 - share), _part(rows, share)


def _tuning_copies(n: np.ndarray, fraction: float) -> np.ndarray:
    """How many of the first n copies of a class are tuning rows; the first one trains."""
    return np.floor(np.maximum(n, 1.0) * fraction + 0.5)


def _part(rows: Rows, share: np.ndarray) -> Rows:
    """The rows with a share of their weights, without those whose share is zero."""
    some = np.flatnonzero(share > 0.0)
    part = rows.take(some)
    mass = None if part.mass is None else part.mass * share[some]
    return replace(part, weight=part.weight * share[some], mass=mass)
