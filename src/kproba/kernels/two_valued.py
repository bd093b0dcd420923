"""Manhattan distances to points whose columns have two values, as most do that hold categories or words."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

#: From so many such columns on, a matrix product is faster than to go through them.
MANY = 16


def manhattan_by_product(Z: np.ndarray):
    """A function that writes ‖x − z‖₁ to all rows of Z, or None where too few of its columns have two values.

    In a column where z is low or high, |x − z| = |x − low| + t·(|x − high| − |x − low|) with t = 1 where z is high:
    for all such columns one product with the matrix of t, whatever x is.
    """
    if Z.shape[1] < MANY or not len(Z):
        return None
    low, high = Z.min(axis=0), Z.max(axis=0)
    is_high = np.equal(Z, high)
    two = (is_high | np.equal(Z, low)).all(axis=0)
    if np.count_nonzero(two) < MANY:
        return None
    low, high = low[two].astype(np.float64), high[two].astype(np.float64)
    right = np.vstack([is_high[:, two].T, np.ones(len(Z))]).astype(np.float64)
    others = np.ascontiguousarray(Z[:, ~two])

    def write(X, out):
        part = X[:, two]
        below = np.abs(part - low)
        left = np.column_stack([np.abs(part - high) - below, below.sum(axis=1)])
        total = left @ right
        if others.shape[1]:
            total += cdist(X[:, ~two], others, "cityblock")
        np.maximum(total, 0.0, out=total)  # rounding may leave less than nothing
        out[:] = total

    return write
