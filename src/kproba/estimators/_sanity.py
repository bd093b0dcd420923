"""Checks for fits that are possible but probably unintended, made once before the work begins.

Nothing here changes a model. Each check looks at a sample of rows, and only if the user departs from the defaults,
which scale the columns and select the width.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..data.items import Items
from ..data.rows import Rows
from ..exceptions import FewRowsWarning, TargetWarning, UnitsWarning
from ..kernels import Kernel
from ..kernels.codes import split_columns
from ..kernels.dot import Linear, Polynomial
from ..kernels.radial import DivergenceKernel, Radial
from ..messages import listing, warn
from ..search.widths import TimesMedian, median_width, width_candidates
from ..threads import one_blas_thread

#: Numbers of rows whose kernel values with each other are checked.
SOME_ROWS, OTHER_ROWS = 200, 1000
#: A column that accounts for this fraction of the squared distances dominates them.
DOMINANT = 0.99
#: Kernel values closer than this to 0 or 1 do not distinguish rows.
NOTHING = 1e-6
#: Products of squares of kernel values beyond this overflow.
LARGEST_PRODUCT = 1e75
#: Rows that are read in passes and whose mean weight is below this count as very few.
LIGHT = 0.1
#: In fewer rows than this, tags may be mutually exclusive by chance.
FEW_TAGGED = 20
#: The memory limit of a Linux container.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def warn_of_few_rows(rows: Rows, classes: np.ndarray) -> None:
    """Warn of classes with a single row: leave-one-out cannot tell how well they are separated."""
    mass, one = np.bincount(rows.labels, rows.weight, rows.n_classes), np.zeros(rows.n_classes)
    np.maximum.at(one, rows.labels, rows.unit)
    single = classes[(mass > 0) & (mass <= one)].tolist()
    if single:
        which = f"the class {single[0]!r}" if len(single) == 1 else f"{len(single)} classes ({listing(single)})"
        warn(
            f"y has only one row of {which}, so its probabilities cannot be calibrated and it has no influence on the "
            "selection of parameters. Add more rows of it, merge it with another class, or leave it out.",
            FewRowsWarning,
        )


def warn_of_light_rows(n_rows: int, weight: float) -> None:
    """Warn if rows that are read in passes have tiny weights, as boosting uses them: the largest is not known."""
    if weight < LIGHT * n_rows:
        warn(
            f"the weights of {n_rows:,} rows sum to {weight:.3g}. A weight counts copies of a row, so the model knows "
            "little more than the class shares; divide the weights by their mean.",
            FewRowsWarning,
        )


def warn_of_one_hot(rows: Rows) -> None:
    """Warn if every row has exactly one tag: probably one-hot encoded classes, as other libraries expect them."""
    if len(rows) >= FEW_TAGGED and (rows.labels.sum(axis=1) == 1.0).all():  # a missing tag is NaN, which is not one
        warn(
            f"y has a single 1 in every row: its {rows.n_classes} columns are treated as tags that can occur together, "
            "and predict returns a matrix. For exclusive classes pass y.argmax(axis=1), or y.idxmax(axis=1) for a "
            "frame.",
            TargetWarning,
        )


def warn_of_units(rows: Rows, kernels: Sequence[Kernel], width, is_scaled: bool, names, seed: int) -> None:
    """Warn if the units of the columns or of a fixed width make the kernel nearly constant."""
    if isinstance(rows.X, Items):
        return
    if not is_scaled and all(isinstance(kernel, Radial) for kernel in kernels):
        _warn_of_one_column(rows, names)
    is_given = not isinstance(width, str | TimesMedian)
    tried = width_candidates(kernels, width, rows, seed) if is_given else kernels
    if all(isinstance(kernel, Radial | DivergenceKernel) and kernel.width is not None for kernel in tried):
        _warn_of_width(rows, tried, is_scaled, seed)


def refuse_overflow(rows: Rows, kernels: Sequence[Kernel], width, seed: int) -> None:
    """Raise an error for rows so far away that sums over products of kernel values overflow."""
    if isinstance(rows.X, Items) or not all(isinstance(kernel, Linear | Polynomial) for kernel in kernels):
        return
    widths = TimesMedian() if isinstance(width, str) else width
    X: Any = rows.X
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.square(X).sum(axis=1)
    far = X[[int(np.argmax(squares))]]
    for kernel in width_candidates(kernels, widths, rows, seed):
        with np.errstate(over="ignore"):
            largest = float(np.abs(kernel(far, far)).max())
        if not largest <= LARGEST_PRODUCT:
            raise ValueError(
                f"X has rows so far from the others that values of the {kernel.name} kernel reach {largest:.0e} and "
                "their products overflow; rescale X, drop those rows, or use kernel='gaussian'."
            )


def _some(rows: Rows, size: int) -> np.ndarray:
    """Indices of the rows with the smallest keys: keys are hashes, so this is a cheap random sample."""
    return np.argpartition(rows.keys, size)[:size] if len(rows) > size else np.arange(len(rows))


def _warn_of_one_column(rows: Rows, names) -> None:
    numbers, _ = split_columns(rows.X.shape[1], rows.categorical)
    if not len(numbers):
        return
    place, share, n_others = widest_column(rows.X[_some(rows, SOME_ROWS)][:, numbers])
    column = int(numbers[place])
    if n_others and share > DOMINANT:
        others = "column that varies" if n_others == 1 else f"{n_others} columns that vary"
        warn(
            f"scaling=None: the column {column if names is None else names[column]!r} accounts for more than "
            f"{DOMINANT:.0%} of the squared distance between rows, so the kernel nearly ignores the other {others}. "
            "Use scaling='auto', or scale the columns of X to comparable units.",
            UnitsWarning,
        )


def widest_column(X) -> tuple[int, float, int]:
    """The column with the largest share of the squared distances between rows, that share, and how many others vary.

    The share is that of the total or that of a typical pair of rows, whichever is smaller: an outlier alone can
    dominate the first, and a column next to nearly constant ones the second.

    >>> import numpy as np
    >>> widest_column(np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 0.0], [3.0, 3.0]]))
    (1, 0.75, 1)
    """
    X = X.astype(np.float64)
    difference = X - X[np.roll(np.arange(X.shape[0]), 1)]  # between each row and the previous one
    squares: Any = difference.power(2).tocsc() if sparse.issparse(X) else np.square(difference)
    of_columns, of_pairs = (np.asarray(squares.sum(axis=axis)).ravel() for axis in (0, 1))
    widest = int(of_columns.argmax())
    own = (squares[:, [widest]].toarray() if sparse.issparse(X) else squares[:, [widest]]).ravel()
    differ = of_pairs > 0
    if not differ.any():
        return widest, 0.0, 0
    share = min(of_columns[widest] / of_columns.sum(), np.median(own[differ] / of_pairs[differ]))
    return widest, float(share), int(np.count_nonzero(of_columns)) - 1


def _warn_of_width(rows: Rows, kernels: Sequence[Kernel], is_scaled: bool, seed: int) -> None:
    some, others = (_some(rows, size) for size in (SOME_ROWS, OTHER_ROWS))
    apart = rows.keys[some][:, None] != rows.keys[others]
    if not apart.any():
        return
    with one_blas_thread():  # so few rows take one thread less time than it takes to wake the others
        values = [kernel(rows.X[some], rows.X[others])[apart] for kernel in kernels]
    if all(each.max() < NOTHING for each in values):
        found = f"below {NOTHING:g} and no two rows look similar to the model"
    elif all(each.min() > 1.0 - NOTHING for each in values):
        found = f"within {NOTHING:g} of 1 and all rows look alike to the model"
    else:
        return
    unit = median_width(kernels[0], rows, seed)
    widths = ", ".join(f"{width:g}" for width in dict.fromkeys(kernel.width for kernel in kernels))
    warn(
        f"width={widths}: the median distance between rows is {unit:.3g} "
        f"{'after scaling' if is_scaled else 'in the units of X'}, so the kernel of any two rows is {found}. "
        f"Use width='auto', or a width of about {unit:.3g}.",
        UnitsWarning,
    )


def refuse_more_than_memory(n_centers: int) -> None:
    """Raise an error if the square matrix over the centres does not fit in memory, even in single precision."""
    needed, there = 4 * n_centers**2, memory_bytes()
    if needed > there:
        raise MemoryError(
            f"centers: a matrix of {n_centers:,} by {n_centers:,} numbers needs at least {needed / 2**30:,.0f} GiB, "
            f"but there are {there / 2**30:,.0f} GiB of memory; use centers='auto' or a few thousand centres."
        )


def memory_bytes() -> float:
    """Memory of this machine, or of its container; infinite if the system does not report it."""
    limit = np.inf
    try:
        limit = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        return min(limit, float(CONTAINER_LIMIT.read_text()))
    except (AttributeError, OSError, ValueError):  # not available on Windows; "max" in a container without a limit
        return limit
