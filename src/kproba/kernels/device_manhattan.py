"""‖x − z‖₁ on a GPU in a single Triton kernel; Triton comes with PyTorch for CUDA.

In plain PyTorch every column of the data takes a pass over all distances: tens of times slower (benchmarks/gpu.py).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

#: Tile size of one program: rows × centres.
ROWS, CENTERS = 64, 128


@triton.jit
def _fill(X, Z, out, n, b, d, ROWS: tl.constexpr, CENTERS: tl.constexpr):
    """One tile of the distances (n, b). X (d, n) and Z (d, b) are transposed, so each data column is contiguous."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * CENTERS + tl.arange(0, CENTERS)
    total = tl.zeros((ROWS, CENTERS), dtype=out.dtype.element_ty)
    for _ in range(d):
        x, z = tl.load(X + i, mask=i < n, other=0.0), tl.load(Z + j, mask=j < b, other=0.0)
        total += tl.abs(x[:, None] - z[None, :])
        X += n
        Z += b
    tl.store(out + i[:, None] * b + j[None, :], total, mask=(i[:, None] < n) & (j[None, :] < b))


def manhattan(X, Z):
    """Distances (n, b) between rows X (n, d) and centres Z (b, d), tensors on the same GPU."""
    (n, d), b = X.shape, Z.shape[0]
    out = torch.empty((n, b), dtype=X.dtype, device=X.device)
    grid = (triton.cdiv(n, ROWS), triton.cdiv(b, CENTERS))
    with torch.cuda.device(X.device):
        _fill[grid](X.T.contiguous(), Z.T.contiguous(), out, n, b, d, ROWS, CENTERS)
    return out
