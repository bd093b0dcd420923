"""Stochastic gradient steps: each draws some rows and moves all parameters down the gradient of their loss."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...arrays import Device
from ...data.rows import Rows
from ...threads import map_independent
from .objective import Objective
from .parameters import OF_COLUMNS, Layout, rounded

#: Rows of a sample for up to so many rows, and beyond; a sample of very many columns has fewer rows, so that the number
#: of pairs times columns stays below MOST_DIFFERENCES.
SAMPLES, SAMPLE_ROWS, MOST_DIFFERENCES = ((450, 150), (1000, 250), (3000, 400)), 640, 20_000_000
#: The first steps only find the rough shape of the kernel, for which fewer rows are enough: their number for up to so
#: many rows, and beyond only those that keep all weights equal, because many rows resolve a sharper kernel.
EARLY_STEPS, EARLY_ROWS = ((3000, 60),), 250
#: Step length of Adam in units of the logarithms; the first WARM_UP steps keep all weights equal.
STEP, WARM_UP, RAMP = 0.12, 20, 5
#: Runs that share threads take this many steps at once.
STEPS_AT_ONCE = 5
#: The result is the mean over this many steps.
AVERAGED = 20
#: The logarithms are rounded to a fraction of this after each step.
GRID = 1024
#: log ν stays within these bounds, relative to its start.
LEAST_NOISE, MOST_NOISE = -11.0, 8.0


def sample_size(n: int, d: int) -> int:
    """Number of rows of a sample."""
    return min(n, affordable(next((m for most, m in SAMPLES if n <= most), SAMPLE_ROWS), d))


def affordable(m: int, d: int) -> int:
    """At most m rows, and fewer of very many columns."""
    return min(m, max(2, int((2 * MOST_DIFFERENCES / d) ** 0.5)))


class Adam:
    """Adam (Kingma and Ba, 2015): steps of about unit length in each coordinate."""

    decay = 0.9, 0.999

    def __init__(self, size: int):
        self.mean, self.square, self.n_steps = np.zeros(size), np.zeros(size), 0

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        self.n_steps += 1
        first, second = self.decay
        self.mean += (1.0 - first) * (gradient - self.mean)
        self.square += (1.0 - second) * (gradient**2 - self.square)
        mean, square = self.mean / (1.0 - first**self.n_steps), self.square / (1.0 - second**self.n_steps)
        return mean / (np.sqrt(square) + 1e-8)


class Steps:
    """A run of steps on some rows; ``take`` may be called again to take more."""

    def __init__(self, rows: Rows, seed: int, device: Device | None = None):
        self.rows, self.device = rows, device
        self.layout = Layout(rows.X.shape[1], 0 if rows.is_multilabel else rows.n_classes, rows.categorical)
        self.start = self.layout.start(rows.X, float(rows.weight.mean()))
        self.x, self.adam = self.start.copy(), Adam(len(self.start))
        self._rng = np.random.default_rng(seed)
        self._kept: dict[int, Any] = {}
        self._recent: deque[np.ndarray] = deque([self.x], maxlen=AVERAGED)
        self._losses: deque[float] = deque(maxlen=AVERAGED)

    def take(self, n_steps: int) -> Iterator[None]:
        """Go on until ``n_steps`` have been taken in all; between two items, another run may use the thread."""
        done, n = self.adam.n_steps, len(self.rows)
        early = min(next((steps for most, steps in EARLY_STEPS if n <= most), WARM_UP), n_steps)
        yield from self._on_samples(range(done, early), most=EARLY_ROWS)
        yield from self._on_samples(range(max(done, early), n_steps), most=SAMPLE_ROWS)

    def _on_samples(self, numbers: range, most: int) -> Iterator[None]:
        """Steps on samples of at most so many rows."""
        if not numbers:
            return
        n, d = self.rows.X.shape
        m = min(most, sample_size(n, d))
        objective = Objective(self.rows, self.start, self.layout, m, self.device, self._kept)
        for number in numbers:
            objective.load(np.sort(self._rng.choice(n, m, replace=False, shuffle=False)))
            self._step(objective, number)
            if number % STEPS_AT_ONCE == 0:
                yield

    def _step(self, objective: Objective, number: int) -> None:
        loss, gradient = _finite(objective, self.x)
        rates = np.full(len(self.x), STEP)
        for name in OF_COLUMNS:
            self.layout.split(rates)[name][:] *= min(1.0, max(0.0, (number - WARM_UP + 1) / RAMP))
        self.x = rounded(self.x - rates * self.adam.direction(np.where(rates > 0, gradient, 0.0)), GRID)
        noise = self.layout.split(self.x)["noise"]
        noise[:] = np.clip(noise, *(self.layout.split(self.start)["noise"] + [[LEAST_NOISE], [MOST_NOISE]]))
        self._recent.append(self.x)
        self._losses.append(loss)

    @property
    def mean(self) -> np.ndarray:
        """The parameters, averaged over the last steps."""
        return np.mean(self._recent, axis=0)

    @property
    def loss(self) -> float:
        """The leave-one-out loss, averaged over the samples of the last steps."""
        return float(np.mean(self._losses)) if self._losses else np.nan


#: Rows that refine the parameters, the steps taken and their length; with more than FEW_ROWS, those of each chain, in
#: which each step is shorter than the one before.
REFINE_ROWS, REFINE_STEPS, REFINE_STEP = 1000, 12, 0.05
FEW_ROWS, CHAINS, CHAIN_ROWS, CHAIN_STEPS, CHAIN_STEP = 1000, 2, 800, 32, 0.12


def refine(x: np.ndarray, rows: Rows, layout: Layout, seed: int, workers: int = 1, device: Device | None = None):
    """The parameters, adapted to more rows than a sample.

    Few rows have a say in the widths, the mixture, the noise and the link only, because the folds decided how far the
    weights may go. Many rows are drawn anew in each step, so that they move the weights as well.
    """
    if len(rows) <= FEW_ROWS:
        return _refined_on_one_sample(x, rows, layout, device, seed)
    chain = partial(_refined_on_fresh_samples, x, rows, layout, device)
    return np.mean(map_independent(chain, [seed + i for i in range(CHAINS)], workers), axis=0)


def _refined_on_one_sample(x: np.ndarray, rows: Rows, layout: Layout, device: Device | None, seed: int) -> np.ndarray:
    m = affordable(min(len(rows), REFINE_ROWS), layout.n_columns)
    objective = Objective(rows, x.copy(), layout, m, device)
    objective.load(np.sort(np.random.default_rng(seed).permutation(len(rows))[:m]))
    adam, best, least = Adam(len(x)), x, np.inf
    for _ in range(REFINE_STEPS):
        loss, gradient = _finite(objective, x)
        if loss < least:
            best, least = x, loss
        for name in OF_COLUMNS:
            layout.split(gradient)[name][:] = 0.0
        x = rounded(x - REFINE_STEP * adam.direction(gradient), GRID)
    return best


def _refined_on_fresh_samples(
    x: np.ndarray, rows: Rows, layout: Layout, device: Device | None, seed: int
) -> np.ndarray:
    m, rng, adam = affordable(CHAIN_ROWS, layout.n_columns), np.random.default_rng(seed), Adam(len(x))
    objective, recent = Objective(rows, x.copy(), layout, m, device), deque([x], maxlen=AVERAGED)
    for step in np.linspace(CHAIN_STEP, 0.0, CHAIN_STEPS, endpoint=False):
        objective.load(np.sort(rng.choice(len(rows), m, replace=False, shuffle=False)))
        x = rounded(x - step * adam.direction(_finite(objective, x)[1]), GRID)
        recent.append(x)
    return np.mean(recent, axis=0)


def _finite(objective: Objective, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Loss and gradient; a sample whose kernel matrix is not positive definite in float64 has no say."""
    try:
        loss, gradient = objective(x)
    except np.linalg.LinAlgError:
        return np.inf, np.zeros_like(x)
    return (loss, gradient) if np.isfinite(gradient).all() else (np.inf, np.zeros_like(x))
