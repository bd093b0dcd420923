"""Choose a kernel, a width and a ridge from the user's parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data.rows import Rows
from ..data.sampling import sample_rows, subsample
from ..data.scaling import Scaling, scaled_rows
from ..kernels import Kernel, Precomputed
from .candidates import Candidate
from .learnt.outer_folds import LearntKernel
from .staged import Search, most_informative_tags
from .widths import TimesMedian, width_candidates

#: A user's grid of widths is searched on at most this many distinct rows.
GRID_ROWS = 2000
#: Rows whose k(x, x) give the scale of a kernel without a width.
UNIT_ROWS = 100

#: The fully automatic search: ``staged(rows, kernels)`` returns the winner and its scaling.
Staged = Callable[[Rows, list[Kernel]], tuple[Candidate, Scaling | None]]


class Prepared(NamedTuple):
    """Scaled rows, the subset used in the search, the candidate kernels, the scaling, and the learnt kernel if any."""

    rows: Rows
    few: Rows
    kernels: list[Kernel]
    scaling: Scaling | None
    learnt: LearntKernel | None = None

    def scaled_by(self, scaling: Scaling | None, unscaled: Rows) -> Rows:
        """All rows under the scaling that the search has chosen, which may be the one they have."""
        return self.rows if scaling is self.scaling else scaled_rows(unscaled, scaling)


def choose(
    search: Search,
    table: Prepared,
    width: Any,
    staged: Staged,
    *,
    folds: int | None = None,
    grid_rows: int = GRID_ROWS,
) -> tuple[Candidate | Kernel, Scaling | None]:
    """The best kernel, width and ridge, possibly from a sample of the scaled rows, and the matching scaling.

    Returns just the kernel if there is nothing to choose. With ``folds``, candidates are compared by cross-validation.
    """
    rows, scaling = table.rows, table.scaling
    is_open = isinstance(width, str) and width == "auto"
    widths = TimesMedian() if is_open else TimesMedian((1.0,)) if isinstance(width, str) else width
    candidates = width_candidates(table.kernels, widths, rows, search.seed)
    if len(candidates) == 1 and len(search.ridges) == 1:
        return candidates[0], scaling
    if folds is not None:
        return search.by_folds(subsample(rows, GRID_ROWS, search.seed), candidates, folds), scaling
    if width is widths or len(candidates) == 1:
        return search.grid(subsample(rows, grid_rows, search.seed), candidates)[0], scaling
    return staged(most_informative_tags(rows), candidates)


def ridge_candidates(
    ridge: Any, grid: Sequence[float], kernel: Kernel, rows: Rows, seed: int, unit: Callable[[float], float]
) -> list[float]:
    """The user's ridges, or a grid multiplied by the scale of the kernel, which is 1 if k(x, x) = 1."""
    if not isinstance(ridge, str):
        return [float(each) for each in np.atleast_1d(ridge)]
    if kernel.has_width:
        return list(grid)
    sample = rows.take(sample_rows(rows, UNIT_ROWS, seed))
    points = sample.number if isinstance(kernel, Precomputed) else sample.X
    size = float(np.abs(np.diagonal(kernel(sample.X, points))).mean())
    return [each * (unit(size) if size > 0 else 1.0) for each in grid]
