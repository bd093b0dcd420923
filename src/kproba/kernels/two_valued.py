"""Manhattan distances to points whose columns have two values, as most do that hold categories or words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

#: From so many such columns on, a matrix product is faster than to go through them.
MIN_COLUMNS = 16
#: Where fewer of the values than this share are high, the product is a sparse one.
SPARSE_SHARE = 0.1


def manhattan_by_product(Z: np.ndarray):
    """A function that writes ‖x − z‖₁ to all rows of Z, or None where too few of its columns have two values.

    In a column where z is low or high, |x − z| = |x − low| + t·(|x − high| − |x − low|) with t = 1 where z is high:
    for all such columns one product with the matrix of t, whatever x is.
    """
    if Z.shape[1] < MIN_COLUMNS or not len(Z):
        return None
    low, high = Z.min(axis=0), Z.max(axis=0)
    is_high = np.equal(Z, high)
    two = (is_high | np.equal(Z, low)).all(axis=0)
    if np.count_nonzero(two) < MIN_COLUMNS:
        return None
    low, high, marks = low[two].astype(np.float64), high[two].astype(np.float64), is_high[:, two].astype(np.float64)
    others = np.ascontiguousarray(Z[:, ~two])
    if marks.mean() < SPARSE_SHARE:
        marks = sparse.csr_array(marks)

    def write(X, out):
        part = X[:, two]
        below = np.abs(part - low)
        total = marks @ (np.abs(part - high) - below).T
        total += below.sum(axis=1)
        np.maximum(total, 0.0, out=total)  # rounding may leave less than nothing
        out[:] = total.T
        if others.shape[1]:
            out += cdist(X[:, ~two], others, "cityblock")

    return write


def signed_sums(X: np.ndarray, Z: np.ndarray, features: np.ndarray, coef: np.ndarray) -> Iterator[np.ndarray]:
    """(features·sign(x_j − z_j))·coef (n, k) for every column j, up to the signs of its rows.

    Where a column has two values, only points of the other value count: the fewer of the two sorts are summed, and
    what they leave of all is the other sum.
    """
    whole = features @ coef
    for x, z in zip(X.T, Z.T):
        low, high = min(x.min(), z.min()), max(x.max(), z.max())
        of_points, of_rows = z == high, x == high
        if (of_points | (z == low)).all() and (of_rows | (x == low)).all():
            few = np.flatnonzero(of_points if 2 * np.count_nonzero(of_points) < len(z) else ~of_points)
            part = features[:, few] @ coef[few]
            are_other = of_rows != of_points[few[0]] if len(few) else np.full(len(x), low == high)
            yield np.where(are_other[:, None], part, whole - part)
        else:
            yield (features * np.sign(x[:, None] - z)) @ coef
