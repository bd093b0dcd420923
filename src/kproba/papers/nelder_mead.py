"""The surface loss maximised by the Nelder–Mead simplex: 2013 Algorithm 1, within the constraints.

Reflections, expansions and contractions combine points with weights that sum to one, so the sums over classes are
preserved, and a simplex of (q − 1)(r + 1) + 1 points spans the feasible space; the paper's q(r + 1) + 1 points would
lie in the same space. A point outside the box is replaced by the nearest one inside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..solvers.surface_loss import SurfaceLoss


@dataclass
class Simplex:
    """Points (N + 1, m, q), sorted by decreasing value."""

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
