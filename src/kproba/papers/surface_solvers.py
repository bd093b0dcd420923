"""The solvers of 2013: the Nelder–Mead simplex (Algorithm 1) and a particle swarm (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..exceptions import ConvergenceWarning
from ..messages import warn
from ..problems.surface import Settings
from ..solvers.surface_loss import SurfaceLoss, nearest_with_sum

#: A simplex is abandoned if its best value grows by less than NOTICEABLE in PATIENCE steps per point.
PATIENCE, NOTICEABLE = 5, 1e-5
#: Number of values recorded in the history.
HISTORY_LENGTH = 100
#: 2013 Sec. 4.2: weights of the velocity, of a particle's best position and of the swarm's; number of particles.
INERTIA, TOWARDS_OWN, TOWARDS_ALL, PARTICLES = 0.72, 1.494, 1.494, 16


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
        warn(
            f"solver={title!r} was interrupted after {done} steps; the best coefficients so far are kept.",
            ConvergenceWarning,
        )
    return done, history, stopped


@dataclass
class Simplex:
    """The Nelder–Mead simplex (2013 Algorithm 1), within the constraints: points (N + 1, m, q), by decreasing value.

    Reflections, expansions and contractions combine points with weights that sum to one, so the sums over classes are
    preserved, and a simplex of (q − 1)(r + 1) + 1 points spans the feasible space; the paper's q(r + 1) + 1 points
    would lie in the same space. A point outside the box is replaced by the nearest one inside.
    """

    loss: SurfaceLoss
    random: np.random.RandomState

    def __post_init__(self):
        m, q = self.loss.shape
        points = self.loss.nearest(self.random.uniform(-1.0, 1.0, ((q - 1) * m + 1, m, q)))
        self._order(points, self.loss.value(points))

    @property
    def best(self) -> np.ndarray:
        return self.points[0]

    @property
    def best_value(self) -> float:
        return float(self.values[0])

    def step(self) -> None:
        """One deformation of the simplex (the body of Algorithm 1)."""
        worst = self.points[-1]
        centre = (self._sum - worst) / (len(self.points) - 1)
        reflected, value = self._at(2.0 * centre - worst)
        if value > self.values[-2]:
            expanded, further = self._at(centre + 2.0 * (centre - worst))
            self._replace_worst(*((expanded, further) if further > value else (reflected, value)))
            return
        contracted, value = self._at(worst + 0.5 * (centre - worst))
        if value >= self.values[-2]:
            self._replace_worst(contracted, value)
        else:
            points = self.best + 0.5 * (self.points - self.best)
            self._order(points, self.loss.value(points))

    def _at(self, point: np.ndarray) -> tuple[np.ndarray, float]:
        point = self.loss.nearest(point)
        return point, float(self.loss.value(point))

    def _replace_worst(self, point: np.ndarray, value: float) -> None:
        """Replace the worst point by a new one, inserted in order."""
        self._sum += point - self.points[-1]
        place = len(self.values) - 1 - int(np.searchsorted(self.values[-2::-1], value))
        for held, new in ((self.points, point), (self.values, value)):
            held[place + 1 :] = held[place:-1].copy()
            held[place] = new

    def _order(self, points: np.ndarray, values: np.ndarray) -> None:
        order = np.argsort(-values, kind="stable")
        self.points, self.values, self._sum = points[order], values[order], points.sum(axis=0)


@dataclass
class Swarm:
    """The particle swarm (2013 Algorithm 2): positions and velocities (particles, m, q), and each particle's best.

    The paper leaves three things open. First, the random factors r_p and r_g are drawn for every coordinate of the
    feasible space (q − 1 per centre), so that velocities preserve the sums over classes. One factor per particle would
    preserve them too, but then no particle ever leaves the span of the initial 2 · 16 vectors. Second, if a coefficient
    is clipped to the box, the others of its centre are adjusted so that the sums still hold. Third, all particles of a
    step see the same best position, while the printed loop may update it between two of them.
    """

    loss: SurfaceLoss
    random: np.random.RandomState
    n_particles: int = PARTICLES

    def __post_init__(self):
        shape = (self.n_particles, *self.loss.shape)
        self._coordinates = linalg.helmert(self.loss.shape[1]).T  # (q, q − 1), orthonormal, columns sum to zero
        self.position = self.loss.nearest(self.random.uniform(-1.0, 1.0, shape))
        self.velocity = self._bounded(self.random.uniform(-1.0, 1.0, shape))
        self.best, self.best_value = self.position.copy(), self.loss.value(self.position)
        self._note_leader()

    def step(self) -> None:
        """Move every particle once (the body of Algorithm 2)."""
        V = self._coordinates
        own, towards_all = self.random.uniform(size=(2, *self.position.shape[:2], V.shape[1]))
        pull = TOWARDS_OWN * own * ((self.best - self.position) @ V)
        pull += TOWARDS_ALL * towards_all * ((self.leader - self.position) @ V)
        self.velocity = self._bounded(INERTIA * self.velocity + pull @ V.T)
        self.position = self.loss.nearest(self.position + self.velocity)
        value = self.loss.value(self.position)
        better = value > self.best_value
        if better.any():
            self.best[better], self.best_value[better] = self.position[better], value[better]
            self._note_leader()

    def _note_leader(self) -> None:
        first = int(self.best_value.argmax())
        self.leader, self.leader_value = self.best[first].copy(), float(self.best_value[first])

    def _bounded(self, velocity: np.ndarray) -> np.ndarray:
        """Velocities within [−1, 1] that sum to zero over the classes."""
        return nearest_with_sum(velocity, np.zeros(self.loss.shape[0]))


#: The names that the parameter ``solver`` takes, functions of a loss and settings; None is the exact solver.
SOLVERS = {
    "exact": None,
    "nelder-mead": by_simplex,
    "swarm": by_swarm,
}
