"""The number of centres for more rows than a sample holds: doubled while leave-one-out of the sample gains enough.

Sums over n rows take n·b² operations for b centres, so twice as many centres take four times as long. How many are
worth it depends on the kernel: a smooth one needs a few hundred for any number of rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from ..data.rows import Rows
from ..data.sampling import sample_rows, subsample
from ..kernels import Kernel
from ..problems.least_squares import leave_one_out

#: Rows on which numbers of centres are compared, and the smallest number.
JUDGED_ROWS, FEWEST_CENTERS = 10_000, 200
#: Twice as many centres, and four times the time, must lower the leave-one-out loss by this share.
GAIN_OF_DOUBLING = 0.003
#: With more degrees of freedom per centre than this, the kernel is so sharp that the sample has too few rows to judge.
SHARP = 0.5


class NestedFit:
    """Exact leave-one-out scores of rows in a basis that grows.

    With the first centres first, the Cholesky factor L of A = ΦᵀΦ + νK has the factor of fewer centres as its leading
    block. More centres append rows to L and to B = L⁻¹Φᵀ; fitted values are Bᵀ(By), and leverages are sums over the
    columns of B². So all numbers of centres together cost as much as the largest.
    """

    def __init__(self, kernel: Kernel, noise: float, rows: Rows, workers: int = 1):
        self.kernel, self.noise, self.rows, self.workers = kernel, noise, rows, workers
        self.root, self.targets = np.sqrt(rows.weight), rows.targets()
        self.fitted, self.leverage = np.zeros(self.targets.shape), np.zeros(len(rows))
        self.freedom = 0.0
        self.Z = rows.X[:0]
        self.lower, self.B = np.empty((0, 0)), np.empty((0, len(rows)))

    def add(self, Z: np.ndarray) -> np.ndarray:
        """The leave-one-out scores with these centres in addition; LinAlgError if they add nothing new."""
        phi = self.kernel(self.rows.X, Z, self.workers).T * self.root
        across = linalg.solve_triangular(self.lower, self.noise * self.kernel(self.Z, Z, self.workers), lower=True)
        across += self.B @ phi.T
        own = phi @ phi.T + self.noise * self.kernel.gram(Z, self.workers) - across.T @ across
        lower = linalg.cholesky(own, lower=True)
        B = linalg.solve_triangular(lower, phi - across.T @ self.B, lower=True)
        self.lower = np.block([[self.lower, np.zeros_like(across)], [across.T, lower]])
        self.Z, self.B = np.concatenate([self.Z, Z]), np.concatenate([self.B, B])
        self.fitted += B.T @ (B @ (self.root[:, None] * self.targets)) / self.root[:, None]
        self.leverage += np.einsum("bi,bi->i", B, B) / self.rows.weight
        self.freedom = float(self.leverage @ self.rows.weight)
        return leave_one_out(self.fitted, self.leverage[:, None], self.targets, self.rows.unit)


def center_count(
    kernel: Kernel,
    noise: float,
    rows: Rows,
    most: int,
    judge: Callable[[np.ndarray, Rows], float],
    seed: int,
    workers: int = 1,
) -> int:
    """The number of centres, up to ``most``, beyond which a doubling gains too little.

    ``rows`` are a sample of all rows, and ``noise`` is nλ, which is the same for both; ``judge`` is the loss of scores.

    With a sharp kernel, nearly every centre is a degree of freedom. More centres then need more rows than the sample
    has, and are worth it if there are: leave-one-out of the sample alone would stop too early.
    """
    sample = subsample(rows, JUDGED_ROWS, seed)
    fit, taken, best = NestedFit(kernel, noise, sample, workers), np.empty(0, dtype=int), np.inf
    for size in doublings(most):
        chosen = sample_rows(rows, size, seed)
        try:
            loss = judge(fit.add(rows.X[np.setdiff1d(chosen, taken)]), sample)
        except np.linalg.LinAlgError:  # to working precision, more centres are combinations of these
            break
        if not loss < (1.0 - GAIN_OF_DOUBLING) * best and fit.freedom < SHARP * size:
            break
        taken, best = chosen, loss
    return len(taken) or doublings(most)[0]


def doublings(most: int) -> list[int]:
    """Numbers of centres of which each is twice the one before, from about FEWEST_CENTERS up to ``most``.

    >>> doublings(3357)
    [209, 419, 839, 1678, 3357]
    """
    halvings = range(most.bit_length())
    return [most >> k for k in reversed(halvings) if k == 0 or most >> k >= FEWEST_CENTERS]
