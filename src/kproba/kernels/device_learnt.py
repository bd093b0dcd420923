"""The learnt kernel and its gradient on a GPU, each in a single Triton kernel; Triton comes with PyTorch for CUDA.

In plain PyTorch every column of the data takes several passes over all pairs of rows.
"""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

#: Side of the tile of one program, that of a small matrix, which would leave most of the GPU idle, and the entries of a
#: matrix that is not small; and the side for the gradient.
LARGE, SMALL, MANY, SIDE = 64, 32, 1 << 21, 32


@triton.jit(do_not_specialize=["n", "b", "d"])  # a kernel for every kind of size would have to be compiled
def _fill(X, Z, columns, out, n, b, d, a, MIXED: tl.constexpr, SUMS: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    """One tile of the mixture (n, b), or of the four kernels (4, n, b).

    X (d, n) and Z (d, b) are transposed; ``columns`` (5, d) has the three rates, the share and whether it holds codes,
    and ``a`` the four amplitudes.
    """
    i = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    j = tl.program_id(1) * C + tl.arange(0, C)
    first = tl.zeros((R, C), dtype=out.dtype.element_ty)
    second = tl.zeros((R, C), dtype=out.dtype.element_ty)
    sums = tl.zeros((R, C), dtype=out.dtype.element_ty)
    squares = tl.zeros((R, C), dtype=out.dtype.element_ty)
    for k in range(d):
        x, z = tl.load(X + i, mask=i < n, other=0.0), tl.load(Z + j, mask=j < b, other=0.0)
        away = tl.abs(x[:, None] - z[None, :])
        away = tl.where((tl.load(columns + 4 * d + k) > 0) & (away > 0), 1.0, away).to(out.dtype.element_ty)
        first += tl.load(columns + k) * away
        scaled = tl.load(columns + d + k) * away
        second += scaled * scaled
        if SUMS:
            part = tl.load(columns + 3 * d + k) * tl.exp(-tl.load(columns + 2 * d + k) * away)
            sums += part
            squares += part * part
        X += n
        Z += b
    place, inside = i[:, None] * b + j[None, :], (i[:, None] < n) & (j[None, :] < b)
    first, second, pairs = tl.exp(-first), tl.exp(-second), sums * sums - squares
    if MIXED:
        total = tl.load(a) * first + tl.load(a + 1) * second + tl.load(a + 2) * sums + tl.load(a + 3) * pairs
        tl.store(out + place, total, mask=inside)
    else:
        size = n.to(tl.int64) * b
        tl.store(out + place, first, mask=inside)
        tl.store(out + size + place, second, mask=inside)
        if SUMS:
            tl.store(out + 2 * size + place, sums, mask=inside)
            tl.store(out + 3 * size + place, tl.load(a + 3) * pairs, mask=inside)


@triton.jit(do_not_specialize=["m", "d"])
def _reduce(X, columns, weights, out, m, d, SUMS: tl.constexpr, SIDE: tl.constexpr):
    """The sums over one tile of pairs of :func:`gradient_sums`, for every column (6, d)."""
    i, j = tl.program_id(0) * SIDE + tl.arange(0, SIDE), tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    place, inside = i[:, None] * m + j[None, :], (i[:, None] < m) & (j[None, :] < m)
    by_first = tl.load(weights + place, mask=inside, other=0.0)
    by_second = tl.load(weights + m * m + place, mask=inside, other=0.0)
    if SUMS:
        p = tl.load(weights + 2 * m * m + place, mask=inside, other=0.0)
        r = tl.load(weights + 3 * m * m + place, mask=inside, other=0.0)
    out += (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * 6 * d
    for k in range(d):
        x, z = tl.load(X + i, mask=i < m, other=0.0), tl.load(X + j, mask=j < m, other=0.0)
        away = tl.abs(x[:, None] - z[None, :])
        away = tl.where((tl.load(columns + 4 * d + k) > 0) & (away > 0), 1.0, away)
        tl.store(out + k, tl.sum(by_first * away))
        tl.store(out + d + k, tl.sum(by_second * away * away))
        if SUMS:
            power = tl.exp(-tl.load(columns + 2 * d + k) * away)
            of_p, of_r = p * power, r * power * power
            tl.store(out + 2 * d + k, tl.sum(of_p * away))
            tl.store(out + 3 * d + k, tl.sum(of_r * away))
            tl.store(out + 4 * d + k, tl.sum(of_p))
            tl.store(out + 5 * d + k, tl.sum(of_r))
        X += m


def column_table(rates: np.ndarray, share: np.ndarray, categorical: tuple[int, ...], like):
    """What the kernels need to know of the columns (5, d): three rates, the share, and whether they hold codes."""
    codes = np.isin(np.arange(len(share)), categorical)
    return torch.asarray(np.vstack([rates, share, codes]), dtype=like.dtype, device=like.device)


def mixture(X, Z, columns, amplitudes):
    """Σ_i a_i k_i (n, b) of rows X (n, d) and centres Z (b, d); the last amplitude is divided by the room for pairs."""
    has_sums = bool(amplitudes[2] > 0 or amplitudes[3] > 0)
    return _filled(X.T.contiguous(), Z.T.contiguous(), columns, amplitudes, True, has_sums)[0]


def each_kernel(turned, columns, one_over_room, has_sums: bool):
    """The four kernels (4, m, m) of all pairs of rows, or only the first two; ``turned`` (d, m) are the columns."""
    amplitudes = torch.cat([torch.ones(3, dtype=turned.dtype, device=turned.device), one_over_room.reshape(1)])
    return _filled(turned, turned, columns, amplitudes, False, has_sums)


def _filled(X, Z, columns, amplitudes, is_mixed: bool, has_sums: bool):
    """From rows X (d, n) and centres Z (d, b), transposed."""
    (d, n), b = X.shape, Z.shape[1]
    # large tiles of float64 would not fit into the registers
    is_large = n * b >= MANY and X.dtype == torch.float32
    planes, side = 1 if is_mixed else 4 if has_sums else 2, LARGE if is_large else SMALL
    out = torch.empty((planes, n, b), dtype=X.dtype, device=X.device)
    a = torch.asarray(amplitudes, dtype=X.dtype, device=X.device)
    grid = (triton.cdiv(n, side), triton.cdiv(b, side))
    with torch.cuda.device(X.device):
        _fill[grid](X, Z, columns, out, n, b, d, a, is_mixed, has_sums, side, side)
    return out


def gradient_sums(turned, columns, weights, has_sums: bool):
    """For every column (6, d): Σw₁Δ, Σw₂Δ², ΣpEΔ, ΣrE²Δ, ΣpE and ΣrE² over all pairs, for weights (w₁, w₂, p, r).

    The sums of the tiles are added in float64 and always in the same order.
    """
    d, m = turned.shape
    n_tiles = triton.cdiv(m, SIDE)
    out = torch.zeros((n_tiles * n_tiles, 6, d), dtype=turned.dtype, device=turned.device)
    with torch.cuda.device(turned.device):
        _reduce[(n_tiles, n_tiles)](turned, columns, weights, out, m, d, has_sums, SIDE)
    return out.sum(dim=0, dtype=torch.float64)
