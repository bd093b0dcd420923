"""The surface loss maximised by a particle swarm: 2013 Algorithm 2, with all particles moved at once.

The paper leaves three things open. First, the random factors r_p and r_g are drawn for every coordinate of the feasible
space (q − 1 per centre), so that velocities preserve the sums over classes. One factor per particle would preserve them
too, but then no particle ever leaves the span of the initial 2 · 16 vectors. Second, if a coefficient is clipped to the
box, the others of its centre are adjusted so that the sums still hold. Third, all particles of a step see the same best
position, while the printed loop may update it between two of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..solvers.surface_loss import SurfaceLoss, nearest_with_sum

#: 2013 Sec. 4.2: weights of the velocity, of a particle's best position and of the swarm's; number of particles.
INERTIA, TOWARDS_OWN, TOWARDS_ALL, PARTICLES = 0.72, 1.494, 1.494, 16


@dataclass
class Swarm:
    """Positions and velocities (particles, m, q), and the best position of each particle."""

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
