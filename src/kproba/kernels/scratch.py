"""Buffers of the size of a tile that a thread uses again for the next tile."""

from __future__ import annotations

import threading

import numpy as np


class Scratch(threading.local):
    """Named buffers, separate for each thread.

    An array of a megabyte that is freed goes back to the system, and page faults of the next one cost more than filling
    it: kernels with several steps per tile would spend half of their time there.
    """

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] = {}

    def like(self, name: str, out: np.ndarray, dtype=None) -> np.ndarray:
        """An array of the shape of ``out``, and of its type unless another is given, with arbitrary values."""
        dtype = out.dtype if dtype is None else np.dtype(dtype)
        kept = self._kept.get(name)
        if kept is None or kept.dtype != dtype or kept.size < out.size:
            kept = self._kept[name] = np.empty(out.size, dtype)
        return kept[: out.size].reshape(out.shape)
