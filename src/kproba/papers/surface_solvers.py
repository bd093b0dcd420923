"""The solvers of 2013: the Nelder–Mead simplex (Algorithm 1) and a particle swarm (Algorithm 2)."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from ..exceptions import ConvergenceWarning
from ..problems.surface import Settings
from ..solvers.surface_loss import SurfaceLoss
from .nelder_mead import Simplex
from .swarm import Swarm

#: A simplex is abandoned if its best value grows by less than NOTICEABLE in PATIENCE steps per point.
PATIENCE, NOTICEABLE = 5, 1e-5
#: Number of values recorded in the history.
HISTORY_LENGTH = 100


def by_swarm(loss: SurfaceLoss, settings: Settings) -> tuple[np.ndarray, int, list[float]]:
    """The particle swarm of 2013 Algorithm 2: 16 particles, ω = 0.72, φ = 1.494, ``max_iter`` steps."""
    swarm = Swarm(loss, np.random.RandomState(settings.seed))
    n_iter, history, _ = _run_steps("swarm", swarm.step, lambda: swarm.leader_value, settings)
    return swarm.leader, n_iter, history


def by_simplex(loss: SurfaceLoss, settings: Settings) -> tuple[np.ndarray, int, list[float]]:
    """The Nelder–Mead simplex of 2013 Algorithm 1, from ``n_restarts`` random starts."""
    random, best, n_iter = np.random.RandomState(settings.seed), None, 0
    history: list[float] = []
    for _ in range(settings.restarts):
        simplex = Simplex(loss, random)
        patience = PATIENCE * len(simplex.points)
        watched = _run_steps("nelder-mead", simplex.step, lambda: simplex.best_value, settings, patience)  # noqa: B023
        steps, values, stopped = watched
        n_iter, history = n_iter + steps, history + values
        if best is None or simplex.best_value > best.best_value:
            best = simplex
        if stopped:
            break
    assert best is not None
    return best.best.copy(), n_iter, list(np.maximum.accumulate(history))


def _run_steps(
    title: str, step: Callable[[], None], value: Callable[[], float], settings: Settings, patience: int | None = None
) -> tuple[int, list[float], bool]:
    """Run up to ``max_iter`` steps, or until ``patience`` steps bring no noticeable improvement.

    Returns the number of steps, the history, and whether it was interrupted from the keyboard, in which case the best
    coefficients so far are kept.
    """
    history, last, done, stopped = [value()], value(), 0, False
    every = max(1, settings.max_iter // HISTORY_LENGTH)
    try:
        while done < settings.max_iter:
            step()
            done += 1
            if done % every == 0:
                history.append(value())
                if settings.progress is not None:
                    settings.progress.step(f"{title}: {history[-1]:.5f}")
            if patience and done % patience == 0:
                if value() - last < NOTICEABLE:
                    break
                last = value()
    except KeyboardInterrupt:
        stopped = True
        warnings.warn(
            f"solver={title!r} was interrupted after {done} steps; the best coefficients so far are kept.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return done, history, stopped


#: The names that the parameter ``solver`` takes, functions of a loss and settings; None is the exact solver.
SOLVERS = {
    "exact": None,
    "nelder-mead": by_simplex,
    "swarm": by_swarm,
}
