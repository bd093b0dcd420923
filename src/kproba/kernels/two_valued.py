"""Manhattan distances to points whose columns have two values, such as indicators of categories or words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

#: With at least this many such columns, a matrix product is faster than a loop over columns.
MIN_COLUMNS = 16
#: If fewer values than this share are high, the product is sparse.
SPARSE_SHARE = 0.1


def manhattan_by_product(Z: np.ndarray):
    """A function that writes ‖x − z‖₁ for all rows z of Z, or None if too few columns have two values.

    If z is either low or high in a column, |x − z| = |x − low| + t·(|x − high| − |x − low|) with t = 1 where z is high.
    One product with the matrix of t covers all such columns, for any x.
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
        np.maximum(total, 0.0, out=total)  # rounding may make it slightly negative
        out[:] = total.T
        if others.shape[1]:
            out += cdist(X[:, ~two], others, "cityblock")

    return write


def signed_sums(X: np.ndarray, Z: np.ndarray, features: np.ndarray, coef: np.ndarray) -> Iterator[np.ndarray]:
    """(features·sign(x_j − z_j))·coef (n, k) for every column j, up to the sign of each row.

    In a two-valued column only points with the other value contribute. The smaller of the two groups is summed; the
    other sum is the total minus it.
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
