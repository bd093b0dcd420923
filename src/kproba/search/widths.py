"""Candidate widths: multiples of the median heuristic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.rows import Rows
from ..data.sampling import sample_rows
from ..kernels import Kernel

#: 2010 Sec. 3: multiples of the median distance, and ridges.
WIDTHS_2010 = (1 / 10, 1 / 5, 1 / 2, 2 / 3, 1.0, 3 / 2, 2.0, 5.0, 10.0)
RIDGES_2010 = tuple(10.0**e for e in (-2, -1.5, -1, -0.5, 0))
#: The default grids; the RKHS penalty needs smaller ridges than 2010.
WIDTHS = (0.3, 0.6, 1.2, 2.5, 5.0)
RIDGES = tuple(10.0**e for e in np.arange(-7.0, 0.5, 0.5))
#: The median distance is computed from pairs of at most this many distinct rows.
MEDIAN_ROWS = 500


@dataclass(frozen=True)
class TimesMedian:
    """Widths as multiples of the median distance between rows.

    >>> TimesMedian((0.5, 1.0, 2.0)).multiples
    (0.5, 1.0, 2.0)
    """

    multiples: Sequence[float] = WIDTHS

    def __post_init__(self):
        values = np.asarray(self.multiples, dtype=np.float64)
        if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values > 0)).all():
            raise ValueError(
                f"TimesMedian: the multiples of the width must be positive numbers, got {self.multiples!r}."
            )

    def widths(self, unit: float) -> list[float]:
        return [float(unit * m) for m in self.multiples]


def median_width(kernel: Kernel, rows: Rows, seed: int) -> float:
    """The median heuristic of 2010 Sec. 3, over pairs of distinct rows."""
    return kernel.median_width(rows.X[sample_rows(rows, MEDIAN_ROWS, seed)])


def width_candidates(kernels: Sequence[Kernel], width, rows: Rows, seed: int) -> list[Kernel]:
    """Every kernel with every width to try; a width that is set on a Kernel object is kept."""
    candidates = []
    for kernel in kernels:
        if not kernel.has_width or kernel.width is not None:
            candidates.append(kernel)
        elif isinstance(width, TimesMedian):
            candidates += [kernel.with_width(w) for w in width.widths(median_width(kernel, rows, seed))]
        else:
            candidates += [kernel.with_width(w) for w in np.atleast_1d(width)]
    return candidates
