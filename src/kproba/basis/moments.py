"""The sums over rows that a least-squares solution needs. They are small and additive.

H = Σ wφφᵀ (b, b), h = Σ wφtᵀ (b, k), Σ wt (k,) and n = Σ w: 2010 Eq. 2 without the factor 1/n, so that ``Moments.of(a)
+ Moments.of(b)`` equals ``Moments.of(a and b together)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas


@dataclass
class Moments:
    """H (b, b; only the lower triangle is valid), h (b, k), the weight of each target, and the total weight n."""

    H: np.ndarray
    h: np.ndarray
    totals: np.ndarray
    n: float

    @classmethod
    def zeros(cls, b: int, k: int) -> Moments:
        """The neutral element of ``+``. Fortran order lets products accumulate in place."""
        return cls(np.zeros((b, b), order="F"), np.zeros((b, k)), np.zeros(k), 0.0)

    @classmethod
    def of(cls, phi: np.ndarray, targets: np.ndarray, weight: np.ndarray | None = None) -> Moments:
        """The moments of one batch."""
        return cls.zeros(phi.shape[1], targets.shape[1]).add(phi.copy(), targets, weight)

    def add(self, phi: np.ndarray, targets: np.ndarray, weight: np.ndarray | None = None, blocks=None) -> Moments:
        """Add a batch of float64 features in place.

        With ``blocks``, slices of centres, only these diagonal blocks of H are computed: the class-wise form needs no
        more (2010 Fig. 1).
        """
        self.totals += targets.sum(axis=0) if weight is None else weight @ targets
        self.n += float(len(phi) if weight is None else weight.sum())
        if not phi.shape[1]:  # no centres: BLAS rejects empty matrices
            return self
        if weight is not None and not (weight == 1.0).all():
            phi = phi * np.sqrt(weight)[:, None]
            targets = targets * np.sqrt(weight)[:, None]
        if blocks is not None:
            for own in blocks:
                self.H[own, own] += blas.dsyrk(1.0, np.ascontiguousarray(phi[:, own]).T, lower=1)
        else:
            # Φᵀ of a C-ordered Φ is Fortran-ordered, so the rank-k update reads it without a copy
            blas.dsyrk(1.0, phi.T, beta=1.0, c=self.H, lower=1, overwrite_c=1)
        # SciPy's BLAS here too: NumPy has its own, and two thread pools would compete for the cores
        self.h += blas.dgemm(1.0, phi.T, targets.T, trans_b=1)
        return self

    def to_numpy(self) -> Moments:
        """The sums themselves, as for moments that are summed on a device."""
        return self

    def __iadd__(self, other: Moments) -> Moments:
        self.H += other.H
        self.h += other.h
        self.totals += other.totals
        self.n += other.n
        return self

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.H + other.H, self.h + other.h, self.totals + other.totals, self.n + other.n)

    def __sub__(self, other: Moments) -> Moments:
        """The moments without the rows of ``other``, e.g. the training part of a fold."""
        H, h = _difference(self.H, other.H), _difference(self.h, other.h)
        return Moments(H, h, _difference(self.totals, other.totals), self.n - other.n)

    def of_tag(self, tag: int) -> Moments:
        """Moments of the two classes "not this tag" and "this tag"; the last target of multi-label moments is constant
        1."""
        h, totals = (np.stack([x[..., -1] - x[..., tag], x[..., tag]], axis=-1) for x in (self.h, self.totals))
        return Moments(self.H, h, totals, self.n)

    def symmetric(self, centers: np.ndarray | None = None) -> np.ndarray:
        """H with both triangles filled; for a subset of centres (increasing) it is H⁽ʸ⁾ of 2010 Eq. 9."""
        lower = np.tril(self.H if centers is None else self.H[np.ix_(centers, centers)])
        lower += np.tril(lower, -1).T
        return lower


def _difference(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """whole − part, with differences at rounding level set to zero, because normalising links would magnify them."""
    rest = whole - part
    rest[np.abs(rest) <= 16 * np.finfo(np.float64).eps * np.abs(whole)] = 0.0
    return rest
