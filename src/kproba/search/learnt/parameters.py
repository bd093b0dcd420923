"""The learnt numbers as one vector: logarithms of weights, factors, widths, mixture and noise, and the link."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...kernels.learnt import TERMS, Learnt

#: Logarithms at the start: amplitudes of the four kernels, noise ν, sharpness and slope of the link.
START = {"mixture": (0.0, 0.0, -1.0, -1.0), "noise": np.log(0.3), "sharpness": 2.0, "slope": 0.5}
#: The groups that tell columns apart.
OF_COLUMNS = ("weights", "factors")
#: Rows whose median distance gives the widths at the start.
WIDTH_ROWS = 300
#: With more columns, the additive and pairs kernels are left out: each costs one exponential per column and pair.
MOST_ADDITIVE = 128


@dataclass(frozen=True)
class Layout:
    """The place of each group of parameters in the vector, for d columns and c classes.

    Tags share one slope, so they have no tilt and no offset: c = 0. ``categorical`` columns hold codes. The
    logarithms of the factors say by how much the weight of a column differs in the Laplacian, in the Gaussian, and in
    the other two (3·d numbers).
    """

    n_columns: int
    n_classes: int
    categorical: tuple[int, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        columns = {"weights": self.n_columns, "factors": 3 * self.n_columns}
        kernel = {"widths": 3, "mixture": len(TERMS), "noise": 1}
        return {**columns, **kernel, "sharpness": 1, "slope": 1, "tilt": self.n_classes, "offset": self.n_classes}

    @property
    def has_sums(self) -> bool:
        """Whether the additive and pairs kernels take part."""
        return self.n_columns <= MOST_ADDITIVE

    @cached_property
    def places(self) -> dict[str, slice]:
        """The place of each group in the vector."""
        ends = np.cumsum(list(self.sizes.values())).tolist()
        return {name: slice(end - size, end) for (name, size), end in zip(self.sizes.items(), ends)}

    def split(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Views of the groups of a vector, by name."""
        return {name: x[place] for name, place in self.places.items()}

    def join(self, parts: dict[str, Any]) -> np.ndarray:
        """The vector of some groups; the others are zero."""
        x = np.zeros(sum(self.sizes.values()))
        for name, part in parts.items():
            x[self.places[name]] = part
        return x

    def start(self, X: np.ndarray, noise_unit: float) -> np.ndarray:
        """Equal weights, and widths at which rows of median distance are about equally similar in all four kernels."""
        some, d = X[:WIDTH_ROWS].astype(np.float64), self.n_columns
        largest = np.where(np.isin(np.arange(d), self.categorical), 1.0, np.inf)
        distances = sum(np.minimum(np.abs(column[:, None] - column), most) for column, most in zip(some.T, largest))
        apart = distances[distances > 0]
        unit = float(np.median(apart)) if apart.size else 1.0
        widths = np.log(np.array([1.0, np.sqrt(d) / 1.5, max(d, 1.0) / 4.0]) / unit)
        return self.join({**START, "noise": START["noise"] + np.log(noise_unit), "widths": widths})

    def kernel(self, x: np.ndarray) -> Learnt:
        """The kernel that a vector describes; its largest weight is one."""
        part = self.split(rounded(x))
        largest = part["weights"].max()
        mixture = np.exp(part["mixture"]) * (1.0 if self.has_sums else np.array([1.0, 1.0, 0.0, 0.0]))
        parts = np.exp(part["weights"] - largest), np.exp(-part["widths"] - largest), mixture
        weights, widths, amplitudes = (tuple(values.tolist()) for values in parts)
        factors = tuple(map(tuple, np.exp(part["factors"]).reshape(3, -1).tolist()))
        return Learnt(weights, widths, amplitudes, factors, categorical=self.categorical)

    def noise(self, x: np.ndarray) -> float:
        """ν = nλ, which carries over from a sample to all rows, where λ does not."""
        return float(np.exp(self.split(rounded(x))["noise"][0]))


def rounded(x: np.ndarray, per_unit: int = 32) -> np.ndarray:
    """Logarithms to 1/32, or after each step to 1/1024.

    Rounding errors depend on the processor, and many steps magnify them. Parameters on a grid are the same
    everywhere, unless one of them lies on the border between two values.
    """
    return np.round(per_unit * x) / per_unit
