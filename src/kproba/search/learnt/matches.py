"""Columns in which two rows of a sample either agree or differ: category codes, and numbers with two values.

Whatever a kernel does with such a column is linear in δ, which is 1 for rows that differ and 0 for others. So sums over
these columns, and over the pairs of rows in their gradients, are matrix products instead of exponentials of all pairs.
"""

from __future__ import annotations

import numpy as np

#: If no column holds codes and fewer have two values than this, they are treated as numbers, which is faster, unless
#: their values are so far apart that squared distances would lose the digits of the other columns.
FEWEST, FAR_APART = 3, 1e3


class Matches:
    """δ of all pairs of rows in the columns ``places`` of a sample, where rows that differ are ``gap`` apart.

    δ_j = b_j·(1 − Σ_f S_if·S_lf) over the features f of column j. Two values are one sign, with b = ½; more codes are
    an indicator of each code that occurs more than once, with b = 1.
    """

    def __init__(self, X: np.ndarray, categorical: tuple[int, ...]):
        low, high = X.min(axis=0), X.max(axis=0)
        is_high, is_code = np.equal(X, high), np.zeros(X.shape[1], dtype=bool)
        is_code[list(categorical)] = True
        has_two = (is_high | np.equal(X, low)).all(axis=0)
        if not is_code.any() and np.count_nonzero(has_two) < FEWEST:
            has_two &= high - low > FAR_APART
        self.places, self.others = np.flatnonzero(has_two | is_code), np.flatnonzero(~(has_two | is_code))
        self.gap = np.where(is_code, np.minimum(high - low, 1.0), high - low)[self.places].astype(np.float64)
        self._b = np.where(has_two, 0.5, 1.0)[self.places]
        parts = [_signs(is_high[:, j]) if has_two[j] else _indicators(X[:, j]) for j in self.places]
        self._of = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        self._S = np.hstack([np.empty((len(X), 0)), *parts])

    def sums(self, c: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Σ_j c_j δ_j of all pairs (m, m)."""
        c = self._b * c
        np.matmul(self._S * -c[self._of], self._S.T, out=out)
        out += c.sum()
        return out

    def totals(self, V: np.ndarray) -> np.ndarray:
        """Σ v·δ_j over all pairs, with v in the upper triangle of V (m, m), which is zero elsewhere."""
        products = np.einsum("if,if->f", self._S, V @ self._S)
        return self._b * (V.sum() - np.bincount(self._of, products, len(self._b)))


def _signs(is_high: np.ndarray) -> np.ndarray:
    return np.where(is_high, 1.0, -1.0)[:, None]


def _indicators(codes: np.ndarray) -> np.ndarray:
    """An indicator of every code that two rows share (m, k)."""
    values, counts = np.unique(codes, return_counts=True)
    return np.equal(codes[:, None], values[counts > 1]).astype(np.float64)
