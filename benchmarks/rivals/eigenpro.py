"""EigenPro 2.0 in NumPy after S. Ma and M. Belkin (2019), Kernel machines that adapt to GPUs.

The package cannot be installed from the index; this follows the paper's Algorithm 1 and, for the sizes of subsample and
batch and for the step, the authors' published defaults. The kernel matrix is computed once and kept in float32.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import linalg

#: Rows of the subsample whose eigenvectors precondition, how many of these at most, and the power of their eigenvalues.
SUBSAMPLE, MOST_VECTORS, POWER = 2000, 1000, 0.95


class Preconditioner:
    """The leading eigenvectors of a subsample's kernel matrix, flattened to the eigenvalue that follows them."""

    def __init__(self, K: np.ndarray):
        s = len(K)
        values, vectors = linalg.eigh(K, subset_by_index=[max(0, s - MOST_VECTORS), s - 1])
        values, vectors = values[::-1] / s, vectors[:, ::-1]
        # as many as let batches of the subsample's size still pay
        q = max(int(np.sum(values**-POWER < s)) - 1, 5)
        lead, self.tail = values[: q - 1], values[q - 1]
        share = 1.0 - (self.tail / lead) ** POWER
        self.vectors, self.factors = vectors[:, : q - 1].astype(np.float32), (share / (s * lead)).astype(np.float32)
        self.top = lead[0] * (self.tail / lead[0]) ** POWER
        self.beta = float(np.max(np.diagonal(K) - np.square(vectors[:, : q - 1]) @ (share * s * lead)))
        self.batch = int(min(s, self.beta / self.top + 1))

    def __call__(self, pull: np.ndarray) -> np.ndarray:
        """V D Vᵀ of the batch's gradient as the subsample sees it."""
        return self.vectors @ (self.factors[:, None] * (self.vectors.T @ pull))

    def step(self, n: int) -> float:
        """The published step for this batch, divided by its size."""
        m = self.batch
        if m < self.beta / self.top + 1:
            return 1.0 / self.beta
        return (2.0 / (self.beta + (m - 1) * self.top)) if m < n else 1.9 / self.top / m


def epochs(kernel, X: np.ndarray, targets: np.ndarray, seed: int = 0) -> Iterator[np.ndarray]:
    """Coefficients (n, c) after every pass over the rows, all of which are centres; from zero."""
    random, n = np.random.default_rng(seed), len(X)
    K = kernel(X.astype(np.float32), X.astype(np.float32))
    sample = random.permutation(n)[: min(SUBSAMPLE, n)]
    precondition = Preconditioner(K[np.ix_(sample, sample)].astype(np.float64))
    step, coef = np.float32(precondition.step(n)), np.zeros(targets.shape, np.float32)
    targets = targets.astype(np.float32)
    while True:
        order = random.permutation(n)
        for batch in (order[i : i + precondition.batch] for i in range(0, n, precondition.batch)):
            features = K[batch]
            gradient = features @ coef - targets[batch]
            coef[batch] -= step * gradient
            coef[sample] += step * precondition(features[:, sample].T @ gradient)
        yield coef
