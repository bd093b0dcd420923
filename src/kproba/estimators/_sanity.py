"""Fits that are possible but hardly meant: rows and parameters are looked at once, before the work begins.

Nothing here changes a model. Each check looks at a sample, and only where the user left the defaults that make it
needless: columns are scaled and widths are chosen unless somebody says otherwise.
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
from ..kernels.dot import Linear, Polynomial
from ..kernels.radial import DivergenceKernel, Radial
from ..messages import listing, warn
from ..search.widths import TimesMedian, median_width, width_candidates

#: Rows that are looked at, and rows that they are met with.
SOME_ROWS, OTHER_ROWS = 200, 1000
#: A column has all of a distance if it has this share of its square.
DOMINANT = 0.99
#: Kernel values nearer than this to 0, or to 1, tell no rows apart.
NOTHING = 1e-6
#: Kernel values beyond this have squares whose products overflow.
LARGEST_PRODUCT = 1e75
#: Tags of fewer rows than this may exclude each other by chance.
FEW_TAGGED = 20
#: Where Linux says how much memory a container may have.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def warn_of_few_rows(rows: Rows, classes: np.ndarray) -> None:
    """Warn of classes of which nothing is left once a row is left out: nothing tells how well they are told apart."""
    mass, one = np.bincount(rows.labels, rows.weight, rows.n_classes), np.zeros(rows.n_classes)
    np.maximum.at(one, rows.labels, rows.unit)
    single = classes[(mass > 0) & (mass <= one)].tolist()
    if single:
        which = f"the class {single[0]!r}" if len(single) == 1 else f"{len(single)} classes ({listing(single)})"
        warn(
            f"y has a single row of {which}: no other row says what it looks like, so that its probabilities are not "
            "calibrated and no choice of parameters is based on it. Give more rows of it, join it with another class, "
            "or leave it out.",
            FewRowsWarning,
        )


def warn_of_one_hot(rows: Rows) -> None:
    """Warn of tags of which every row has exactly one: exclusive classes, most likely, as other libraries want them."""
    if len(rows) >= FEW_TAGGED and (rows.labels.sum(axis=1) == 1.0).all():  # a missing tag is NaN, which is not one
        warn(
            f"y has a single 1 in every row: its {rows.n_classes} columns are taken for tags that do not exclude each "
            "other, and predict gives a matrix. For exclusive classes give y.argmax(axis=1), or y.idxmax(axis=1) of a "
            "frame.",
            TargetWarning,
        )


def warn_of_units(rows: Rows, kernels: Sequence[Kernel], width, is_scaled: bool, names, seed: int) -> None:
    """Warn of rows, as the kernels see them, whose units or those of a given width leave next to nothing to see."""
    if isinstance(rows.X, Items):
        return
    if not is_scaled and all(isinstance(kernel, Radial) for kernel in kernels):
        _warn_of_one_column(rows, names)
    is_given = not isinstance(width, str | TimesMedian)
    tried = width_candidates(kernels, width, rows, seed) if is_given else kernels
    if all(isinstance(kernel, Radial | DivergenceKernel) and kernel.width is not None for kernel in tried):
        _warn_of_width(rows, tried, is_scaled, seed)


def refuse_overflow(rows: Rows, kernels: Sequence[Kernel], width, seed: int) -> None:
    """Refuse rows so far away that sums over products of kernel values are no numbers."""
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
                f"X has rows so far from the others that values of the {kernel.name} kernel reach {largest:.0e}, whose "
                "products overflow; rescale X or leave those rows out, or use kernel='gaussian'."
            )


def _some(rows: Rows, size: int) -> np.ndarray:
    """Which rows have the smallest keys: these are hashes, so that it is a random sample, and takes no time."""
    return np.argpartition(rows.keys, size)[:size] if len(rows) > size else np.arange(len(rows))


def _warn_of_one_column(rows: Rows, names) -> None:
    column, share, n_others = widest_column(rows.X[_some(rows, SOME_ROWS)])
    if n_others and share > DOMINANT:
        others = "column that varies" if n_others == 1 else f"{n_others} columns that vary"
        warn(
            f"scaling=None: the column {column if names is None else names[column]!r} has more than {DOMINANT:.0%} of "
            f"the squared distance between rows, so that the kernel sees hardly anything of the other {others}. Leave "
            "scaling='auto', or bring the columns of X to one unit.",
            UnitsWarning,
        )


def widest_column(X) -> tuple[int, float, int]:
    """The column with most of the squared distances between rows, its share of them, and how many others vary.

    The share is that of all distances or that of a typical one, whichever is less: an outlier makes up the first alone,
    and a column beside others that are nearly constant the second.

    >>> import numpy as np
    >>> widest_column(np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 0.0], [3.0, 3.0]]))
    (1, 0.75, 1)
    """
    X = X.astype(np.float64)
    difference = X - X[np.roll(np.arange(X.shape[0]), 1)]  # every row and the one before it
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
    values = [kernel(rows.X[some], rows.X[others])[apart] for kernel in kernels]
    if all(each.max() < NOTHING for each in values):
        found = f"below {NOTHING:g}: to the model no row is like another"
    elif all(each.min() > 1.0 - NOTHING for each in values):
        found = f"1 but for less than {NOTHING:g}: to the model all rows are alike"
    else:
        return
    unit = median_width(kernels[0], rows, seed)
    widths = ", ".join(f"{width:g}" for width in dict.fromkeys(kernel.width for kernel in kernels))
    warn(
        f"width={widths}: rows are about {unit:.3g} apart {'once scaled' if is_scaled else 'in the units of X'} (the "
        f"median), so that the kernel of any two rows is {found}. Leave width='auto', or give one of about {unit:.3g}.",
        UnitsWarning,
    )


def refuse_more_than_memory(n_centers: int) -> None:
    """Refuse to begin what takes a matrix of all centres, in single precision at least, that memory cannot hold."""
    needed, there = 4 * n_centers**2, memory_bytes()
    if needed > there:
        raise MemoryError(
            f"centers: a matrix of {n_centers:,} by {n_centers:,} numbers takes {needed / 2**30:,.0f} GiB or more, and "
            f"there are {there / 2**30:,.0f} GiB of memory; use centers='auto' or a number of some thousands."
        )


def memory_bytes() -> float:
    """Memory of this machine, or of the container that this runs in; infinite where the system does not say."""
    limit = np.inf
    try:
        limit = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        return min(limit, float(CONTAINER_LIMIT.read_text()))
    except (AttributeError, OSError, ValueError):  # no such names on Windows; "max" in a container without a limit
        return limit
