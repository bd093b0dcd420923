"""EigenPro 2.0 in NumPy after S. Ma and M. Belkin (2019), Kernel machines that adapt to GPUs.

The package cannot be installed from the index; this follows the paper's Algorithm 1, with the authors' subsample and
power. Their step takes the largest preconditioned eigenvalue from the subsample; with the Laplacian kernel and 16,000
rows of letter that step diverged here, so the eigenvalue is computed from all rows. The kernel matrix is computed once
and kept in float32.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import linalg

#: Rows of the subsample whose eigenvectors precondition, how many of these at most, and the power of their eigenvalues.
SUBSAMPLE, MOST_VECTORS, POWER = 2000, 1000, 0.95
#: Steps by which the largest eigenvalue is found, and how far below it they may end.
POWER_STEPS, MARGIN = 15, 1.1


class Preconditioner:
    """The leading eigenvectors of a subsample's kernel matrix, flattened to the eigenvalue that follows them."""

    def __init__(self, K: np.ndarray):
        s = len(K)
        values, vectors = linalg.eigh(K, subset_by_index=[max(0, s - MOST_VECTORS), s - 1])
        values, vectors = values[::-1] / s, vectors[:, ::-1]
        # as many as let batches of the subsample's size still pay
        q = max(int(np.sum(values**-POWER < s)) - 1, 5)
        lead, tail = values[: q - 1], values[q - 1]
        share = 1.0 - (tail / lead) ** POWER
        self.vectors, self.factors = vectors[:, : q - 1].astype(np.float32), (share / (s * lead)).astype(np.float32)
        self.beta = float(np.max(np.diagonal(K) - np.square(vectors[:, : q - 1]) @ (share * s * lead)))

    def __call__(self, pull: np.ndarray) -> np.ndarray:
        """V D Vᵀ of the gradient as the subsample sees it."""
        return self.vectors @ (self.factors[:, None] * (self.vectors.T @ pull))

    def batch_and_step(self, K: np.ndarray, sample: np.ndarray) -> tuple[int, float]:
        """The batch beyond which larger ones no longer pay, and the best step for it divided by its size."""
        along = np.random.default_rng(0).standard_normal((len(K), 1)).astype(np.float32)
        for _ in range(POWER_STEPS):
            along /= np.linalg.norm(along)
            moved = along.copy()
            moved[sample] -= self(K[sample] @ along)
            along = K @ moved
        top = MARGIN * float(np.linalg.norm(along)) / len(K)
        batch = int(min(len(sample), self.beta / top + 1))
        return batch, 1.0 / (self.beta + (batch - 1) * top)


def epochs(kernel, X: np.ndarray, targets: np.ndarray, seed: int = 0) -> Iterator[np.ndarray]:
    """Coefficients (n, c) after every pass over the rows, all of which are centres; from zero."""
    random, n = np.random.default_rng(seed), len(X)
    K = kernel(X.astype(np.float32), X.astype(np.float32))
    sample = random.permutation(n)[: min(SUBSAMPLE, n)]
    precondition = Preconditioner(K[np.ix_(sample, sample)].astype(np.float64))
    size, step = precondition.batch_and_step(K, sample)
    coef, step, targets = np.zeros(targets.shape, np.float32), np.float32(step), targets.astype(np.float32)
    while True:
        order = random.permutation(n)
        for batch in (order[i : i + size] for i in range(0, n, size)):
            features = K[batch]
            gradient = features @ coef - targets[batch]
            coef[batch] -= step * gradient
            coef[sample] += step * precondition(features[:, sample].T @ gradient)
        yield coef
