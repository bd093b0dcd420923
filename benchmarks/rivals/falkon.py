"""Falkon in NumPy after A. Rudi, L. Carratino and L. Rosasco (2017), FALKON: An optimal large scale kernel method.

The package cannot be installed from the index; this is the paper's Algorithm 1 with centres drawn uniformly. The kernel
values of rows and centres are computed once and kept in float32, M × M matrices are float64.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

#: Steps of conjugate gradients; the paper's experiments take 7 to 20.
ITERATIONS = 20


def solve(kernel, X: np.ndarray, targets: np.ndarray, ridge: float, n_centers: int, seed: int = 0):
    """Centres (M, d) and coefficients (M, c)."""
    n = len(X)
    centers = X[np.random.default_rng(seed).permutation(n)[:n_centers]]
    K, features = kernel.gram(centers), kernel(X.astype(np.float32), centers.astype(np.float32))
    T = linalg.cholesky(K + np.finfo(float).eps * len(K) * np.eye(len(K)), overwrite_a=True, check_finite=False)
    del K
    A = linalg.cholesky(T @ T.T / len(T) + ridge * np.eye(len(T)), overwrite_a=True, check_finite=False)

    def back(matrix, V, transposed=0):
        return linalg.solve_triangular(matrix, V, trans=transposed, check_finite=False)

    def times(V):
        u = back(A, V)
        rows = features.T @ (features @ back(T, u).astype(np.float32))
        return back(A, back(T, rows.astype(np.float64) / n, 1) + ridge * u, 1)

    start = (features.T @ targets.astype(np.float32)).astype(np.float64) / n
    return centers, back(T, back(A, conjugate_gradients(times, back(A, back(T, start, 1), 1))))


def conjugate_gradients(times, rhs: np.ndarray) -> np.ndarray:
    """The paper's, all columns side by side."""
    found, residual, along = np.zeros_like(rhs), rhs.copy(), rhs.copy()
    size = np.square(residual).sum(axis=0)
    for _ in range(ITERATIONS):
        image = times(along)
        step = size / np.einsum("ij,ij->j", along, image)
        found += step * along
        residual -= step * image
        size, before = np.square(residual).sum(axis=0), size
        along = residual + (size / before) * along
    return found
