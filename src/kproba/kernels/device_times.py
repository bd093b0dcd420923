"""k(X, Z)·V on a GPU without storing k(X, Z), for the Gaussian and the Laplacian kernel, in a single Triton kernel.

A tile of kernel values is computed, multiplied and forgotten, as in FlashAttention: memory traffic, which would
otherwise take most of the time, is that of X, Z and V alone. Products run on tensor cores in three TF32 passes, whose
result is about as accurate as float32.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

#: Tile of one program, its warps, and the points whose values are summed in float32; their sums are added in float64.
ROWS, POINTS, WARPS, STAGES, SUMMED = 128, 64, 4, 2, 65_536
#: Most columns of the data that fit into a tile, and columns of V that are multiplied at a time.
MOST_COLUMNS, WIDTH = 128, 64


@triton.jit
def _times(
    X, Z, V, out, n, b, d, IS_GAUSSIAN: tl.constexpr, D: tl.constexpr, K: tl.constexpr, R: tl.constexpr, C: tl.constexpr
):
    """One tile of rows of 2^(−dist(X, Z))·V: squared Euclidean distances for the Gaussian, else Manhattan ones.

    X (n, D), Z (b, D) and V (K, b) are padded with zeros to whole tiles, those of the Laplacian kernel transposed to
    (D, n) and (D, b); the data has d columns.
    """
    i = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    column, k = tl.arange(0, D), tl.arange(0, K)
    total = tl.zeros((R, K), dtype=tl.float32)
    if IS_GAUSSIAN:
        x = tl.load(X + i[:, None] * D + column[None, :])
        xx = tl.sum(x * x, axis=1)
    for start in range(0, b, C):
        j = start + tl.arange(0, C)
        v = tl.load(V + k[None, :].to(tl.int64) * b + j[:, None])
        if IS_GAUSSIAN:
            z = tl.load(Z + j[None, :].to(tl.int64) * D + column[:, None])
            zz = tl.sum(z * z, axis=0)
            away = xx[:, None] + zz[None, :] - 2.0 * tl.dot(x, z, input_precision="tf32x3")
            away = tl.maximum(away, 0.0)
        else:
            away = tl.zeros((R, C), dtype=tl.float32)
            x_column, z_column = X + i, Z + j
            for _ in range(d):
                away += tl.abs(tl.load(x_column)[:, None] - tl.load(z_column)[None, :])
                x_column += n
                z_column += b
        total = tl.dot(tl.exp2(-away), v, total, input_precision="tf32x3")
    tl.store(out + i[:, None] * K + k[None, :], total)


def exponential_times(X, Z, V, rate: float, is_gaussian: bool):
    """exp(−rate·dist(X, Z))·V (n, k) in float64, for rows X (n, d), points Z (b, d) and V (b, k) in float32."""
    rate = rate * math.log2(math.e)
    scale, origin = math.sqrt(rate) if is_gaussian else rate, Z.mean(dim=0)
    X, Z = ((part - origin) * scale for part in (X, Z))
    out = torch.zeros((len(X), V.shape[1]), dtype=torch.float64, device=X.device)
    for first in range(0, V.shape[1], WIDTH):
        columns = slice(first, first + WIDTH)
        for start in range(0, len(Z), SUMMED):
            points = slice(start, start + SUMMED)
            out[:, columns] += _summed(X, Z[points], V[points, columns], is_gaussian)
    return out


def _summed(X, Z, V, is_gaussian: bool):
    (n, d), k = X.shape, V.shape[1]
    D, K = (max(16, triton.next_power_of_2(size)) for size in (d, k))
    X, Z = _padded(X, ROWS, D), _padded(Z, POINTS, D)
    V = _padded(V, POINTS, K).T.contiguous()
    if not is_gaussian:
        X, Z = X.T.contiguous(), Z.T.contiguous()
    n_padded, b = triton.cdiv(n, ROWS) * ROWS, V.shape[1]
    out = torch.empty((n_padded, K), dtype=torch.float32, device=X.device)
    options = {"num_warps": WARPS, "num_stages": STAGES}
    with torch.cuda.device(X.device):
        _times[(n_padded // ROWS,)](X, Z, V, out, n_padded, b, d, is_gaussian, D, K, ROWS, POINTS, **options)
    return out[:n, :k]


def _padded(matrix, rows: int, columns: int):
    """The matrix with zeros up to a multiple of ``rows`` and to ``columns``."""
    (n, d), n_rows = matrix.shape, triton.cdiv(matrix.shape[0], rows) * rows
    if (n, d) == (n_rows, columns):
        return matrix.contiguous()
    padded = torch.zeros((n_rows, columns), dtype=matrix.dtype, device=matrix.device)
    padded[:n, :d] = matrix
    return padded
