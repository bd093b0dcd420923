"""Products of 24-bit integers on the tensor cores of a GPU, as products of their bytes, by Triton kernels."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

#: Height and width of a tile of the result, rows of one step, warps of a program and steps that are loaded ahead.
HEIGHT, WIDTH, STEP, WARPS, STAGES = 128, 64, 64, 8, 4
#: Rows whose sums of products of bytes cannot overflow 32 bits, and rows that are worth a program of their own.
MOST_ROWS, FEWEST_ROWS = 32_768, 4096
#: Programs per multiprocessor that keep it busy.
PROGRAMS = 3
#: Values split by one program.
VALUES = 4096


@triton.jit(do_not_specialize=["m", "n_left"])  # a kernel for every kind of size would have to be compiled
def _split(phi, mean, step, bytes_, m, n_left, stride, VALUES: tl.constexpr):
    """The bytes (3, n_left, stride) of round((φ − μ)/step) of one centre, with zeros from row m to the stride."""
    row = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * VALUES + tl.arange(0, VALUES)
    q = (tl.load(phi + row * m + k, mask=k < m, other=0.0) - tl.load(mean + row)) / tl.load(step + row)
    q = tl.minimum(tl.maximum(tl.floor(q + 0.5), -8323072.0), 8323072.0)  # rounding may exceed the bound of the kernel
    q = tl.where(k < m, q, 0.0).to(tl.int32)
    plane = n_left.to(tl.int64) * stride
    place = bytes_ + row * stride + k
    for byte in tl.static_range(2, 0, -1):
        rest = (q + 128) >> 8
        tl.store(place + byte * plane, (q - rest * 256).to(tl.int8), mask=k < stride)
        q = rest
    tl.store(place, q.to(tl.int8), mask=k < stride)


@triton.jit(do_not_specialize=["b"])
def _squares(bytes_, out, b, stride, n_rows, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, STEP: tl.constexpr):
    """One tile of the lower triangle of qqᵀ over some of the rows, with q = 2¹⁶·x + 2⁸·y + z.

    The tiles of row i, of which there are r·(i + 1) for r = height/width, come after r·i(i + 1)/2 others.
    """
    r: tl.constexpr = HEIGHT // WIDTH
    t = tl.program_id(0)
    i = ((tl.sqrt(8.0 * t / r + 1.0) - 1.0) / 2.0).to(tl.int32)
    i = tl.where(r * i * (i + 1) // 2 > t, i - 1, i)  # the root may be rounded
    i = tl.where(r * (i + 1) * (i + 2) // 2 <= t, i + 1, i)
    j = t - r * i * (i + 1) // 2
    left = (i * HEIGHT + tl.arange(0, HEIGHT)).to(tl.int64)
    right = (j * WIDTH + tl.arange(0, WIDTH)).to(tl.int64)
    k = tl.program_id(1) * n_rows + tl.arange(0, STEP)
    at_left, at_right = left[:, None] * stride + k[None, :], right[None, :] * stride + k[:, None]
    is_left, is_right = (left < b)[:, None], (right < b)[None, :]
    plane = b.to(tl.int64) * stride
    xx = tl.zeros((HEIGHT, WIDTH), dtype=tl.int32)
    xy = tl.zeros((HEIGHT, WIDTH), dtype=tl.int32)
    yy = tl.zeros((HEIGHT, WIDTH), dtype=tl.int32)
    yz = tl.zeros((HEIGHT, WIDTH), dtype=tl.int32)
    zz = tl.zeros((HEIGHT, WIDTH), dtype=tl.int32)
    for _ in range(0, n_rows, STEP):
        x = tl.load(bytes_ + at_left, mask=is_left, other=0)
        y = tl.load(bytes_ + plane + at_left, mask=is_left, other=0)
        z = tl.load(bytes_ + 2 * plane + at_left, mask=is_left, other=0)
        u = tl.load(bytes_ + at_right, mask=is_right, other=0)
        v = tl.load(bytes_ + plane + at_right, mask=is_right, other=0)
        w = tl.load(bytes_ + 2 * plane + at_right, mask=is_right, other=0)
        xx = tl.dot(x, u, xx, out_dtype=tl.int32)
        xy = tl.dot(x, v, xy, out_dtype=tl.int32)
        xy = tl.dot(y, u, xy, out_dtype=tl.int32)
        yy = tl.dot(x, w, yy, out_dtype=tl.int32)
        yy = tl.dot(y, v, yy, out_dtype=tl.int32)
        yy = tl.dot(z, u, yy, out_dtype=tl.int32)
        yz = tl.dot(y, w, yz, out_dtype=tl.int32)
        yz = tl.dot(z, v, yz, out_dtype=tl.int32)
        zz = tl.dot(z, w, zz, out_dtype=tl.int32)
        at_left += STEP
        at_right += STEP
    total = (((xx.to(tl.int64) * 256 + xy) * 256 + yy) * 256 + yz) * 256 + zz  # below 2⁶²
    out += tl.program_id(1).to(tl.int64) * b * b
    tl.store(out + left[:, None] * b + right[None, :], total.to(tl.float64), mask=is_left & is_right)


def add_products(squares, products, phi, mean, step, codes) -> None:
    """Add Σqqᵀ (lower triangle) and Σq[t, 1]ᵀ, in place, for q = round((φ − μ)/step) of features (b, m).

    Targets are integers as well: they take the place of further centres, whose products with q are the second sum.
    """
    (b, m), k = phi.shape, products.shape[1]
    n_left = b + k
    n_tall = triton.cdiv(n_left, HEIGHT)
    n_tiles = HEIGHT // WIDTH * n_tall * (n_tall + 1) // 2
    n_processors = torch.cuda.get_device_properties(phi.device).multi_processor_count
    wanted = min(triton.cdiv(m, FEWEST_ROWS), triton.cdiv(PROGRAMS * n_processors, n_tiles))
    n_parts = max(triton.cdiv(m, MOST_ROWS), wanted)
    part = triton.cdiv(triton.cdiv(m, n_parts), STEP) * STEP
    stride = n_parts * part
    bytes_ = torch.empty((3, n_left, stride), dtype=torch.int8, device=phi.device)
    bytes_[:, b:] = 0
    _write_targets(bytes_[2, b:], codes)
    sums = torch.zeros((n_parts, n_left, n_left), dtype=torch.float64, device=phi.device)
    with torch.cuda.device(phi.device):
        _split[(b, triton.cdiv(stride, VALUES))](phi.contiguous(), mean, step, bytes_, m, n_left, stride, VALUES)
        shape = {"HEIGHT": HEIGHT, "WIDTH": WIDTH, "STEP": STEP, "num_warps": WARPS, "num_stages": STAGES}
        _squares[(n_tiles, n_parts)](bytes_, sums, n_left, stride, part, **shape)
    for each in sums:
        squares += each[:b, :b]
        products += each[b:, :b].mT


def _write_targets(out, codes) -> None:
    """[t, 1]ᵀ (k, stride) in 8 bits; zeros from row m on stay."""
    every = torch.arange(len(out) - 1, device=codes.device)[:, None]
    out[:-1, : len(codes)] = codes[None, :] == every
    out[-1, : len(codes)] = 1
