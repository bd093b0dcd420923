"""ASkotch (Rathore et al., arXiv 2407.10070, Algorithm 2): accelerated sketch-and-project for (K + ρI)α = Y.

Each step solves a block of randomly drawn rows approximately, with a Nyström preconditioner of the block. This is an
implementation of our own, with one setting of its parameters and not compared with the authors': its residuals say
little about what theirs would reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator


def steps(torch, block: Callable, n: int, Y, ridge: float, rows: int, rank: int = 100) -> Iterator:
    """The solution after every step. ``block(i, V)`` computes K_iV of the rows i, or K_ii if V is None."""
    generator = torch.Generator(Y.device).manual_seed(0)
    mu, nu = ridge, n / rows
    beta, gamma = 1.0 - math.sqrt(mu / nu), 1.0 / math.sqrt(mu * nu)
    alpha = 1.0 / (1.0 + gamma * nu)
    w, v, z = (torch.zeros_like(Y) for _ in range(3))
    while True:
        i = torch.randperm(n, device=Y.device, generator=generator)[:rows]
        K = block(i, None)
        U, values = _nystrom(torch, K, rank, generator)
        damping = ridge + float(values[-1])
        residual = block(i, z) + ridge * z[i] - Y[i]
        length = 1.0 / _largest(torch, K, U, values, ridge, damping, generator)
        step = length * _inverse(U, values, damping, residual)
        w = z.clone()
        w[i] -= step
        v = beta * v + (1.0 - beta) * z
        v[i] -= gamma * step
        z = alpha * v + (1.0 - alpha) * w
        yield w


def _nystrom(torch, K, rank: int, generator):
    """Vectors and eigenvalues, in decreasing order, of the Nyström approximation from a random sketch."""
    sketch = torch.linalg.qr(torch.randn(len(K), rank, dtype=K.dtype, device=K.device, generator=generator))[0]
    image = K @ sketch
    shift = 1e-14 * float(torch.trace(K))
    image = image + shift * sketch
    lower = torch.linalg.cholesky(sketch.T @ image)
    half = torch.linalg.solve_triangular(lower, image.T, upper=False).T
    U, root, _ = torch.linalg.svd(half, full_matrices=False)
    return U, (root**2 - shift).clamp(min=0.0)


def _inverse(U, values, damping: float, R):
    """(UΛUᵀ + ρI)⁻¹R."""
    inside = U.T @ R
    return U @ (inside / (values + damping)[:, None]) + (R - U @ inside) / damping


def _largest(torch, K, U, values, ridge: float, damping: float, generator, n_steps: int = 10) -> float:
    """The largest eigenvalue of the preconditioned block, by power iteration."""
    along = torch.randn(len(K), 1, dtype=K.dtype, device=K.device, generator=generator)
    size = 1.0
    for _ in range(n_steps):
        along = along / along.norm()
        along = _inverse(U, values, damping, K @ along + ridge * along)
        size = float(along.norm())
    return size
