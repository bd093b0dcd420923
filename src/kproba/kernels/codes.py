"""Columns of category codes: two rows have the same code or not, and the size of a code means nothing.

In such a column Δ_j = |x_j − z_j| is replaced by 0 or 1, so that |Δ_j| = Δ_j². Codes are integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist


def code_columns() -> Any:
    """The field of a kernel for the numbers of the columns that hold codes."""
    return field(default=(), kw_only=True, repr=False)


def split_columns(d: int, categorical: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the columns with numbers, and of those with codes."""
    codes = np.asarray(categorical, dtype=np.intp)
    return np.setdiff1d(np.arange(d), codes), codes


def unequal(Z: np.ndarray, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that returns Σ_j w_j·[x_j ≠ z_j] (n, b) for rows X."""
    total = float(weights.sum())
    if not total:
        return lambda X: np.zeros((len(X), len(Z)))
    return lambda X: cdist(X, Z, "hamming", w=weights) * total


def with_codes(
    distances: Callable, Z: np.ndarray, categorical: tuple[int, ...], weights: np.ndarray | float = 1.0
) -> Callable:
    """A function ``(X, out)`` that writes ``distances`` between the numbers, plus w_j for each code that differs.

    ``weights`` (d,) has the cost of a different code in each column.
    """
    if not categorical:
        return distances(Z)
    numbers, codes = split_columns(Z.shape[1], categorical)
    of_numbers = distances(Z[:, numbers]) if len(numbers) else lambda X, out: out.fill(0.0)
    of_codes = unequal(Z[:, codes], np.broadcast_to(weights, Z.shape[1])[codes].astype(np.float64))

    def write(X, out):
        of_numbers(X[:, numbers], out)
        out += of_codes(X[:, codes])

    return write


def with_codes_on_device(distances: Callable, device, X, Z, categorical: tuple[int, ...], weights=1.0):
    """The same for tensors, as a tensor (n, b)."""
    if not categorical:
        return distances(device, X, Z)
    xp, (numbers, codes) = device.xp, split_columns(X.shape[1], categorical)
    cost = np.broadcast_to(weights, X.shape[1])
    if len(numbers):
        total = distances(device, *(device.take_columns(part, numbers) for part in (X, Z)))
    else:
        total = xp.zeros((X.shape[0], Z.shape[0]), dtype=X.dtype, device=X.device)
    for j in codes.tolist():
        total += float(cost[j]) * differ(xp, X[:, j, None], Z[None, :, j])
    return total


def differ(xp, x, z):
    """1 where codes differ and 0 elsewhere, in the type of x."""
    return xp.astype(x != z, x.dtype)


def onnx_unequal(X, Z: np.ndarray, weights: np.ndarray) -> Any:
    """Σ_j w_j·[x_j ≠ z_j] (n, b) as a value of an ONNX graph."""
    cost = np.asarray(weights, dtype=np.float64)[:, None]
    return X.compared_with(Z, lambda x, z: (x - z).abs().minimum(1.0) * cost)


def onnx_with_codes(distances: Callable, X, Z: np.ndarray, categorical: tuple[int, ...], weights=1.0) -> Any:
    """``distances`` between the numbers, plus w_j for each code that differs, as a value of an ONNX graph."""
    if not categorical:
        return distances(X, Z)
    numbers, codes = split_columns(Z.shape[1], categorical)
    cost = np.broadcast_to(weights, Z.shape[1])[codes]
    total = onnx_unequal(X.taken_columns(codes), Z[:, codes], cost)
    return total + distances(X.taken_columns(numbers), Z[:, numbers]) if len(numbers) else total
