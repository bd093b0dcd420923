"""k nearest neighbours by dynamic time warping. numba, which comes with tslearn, compiles it: tslearn's own loop over
pairs takes a hundred times as long."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

#: Neighbours that are tried, and the weight of one vote that all classes share, on so many training sequences.
NEIGHBOURS, SHARED_VOTES, TUNING_ROWS = (1, 3, 5, 9), (0.01, 0.03, 0.1, 0.3, 1.0), 500


def distances(A, B) -> np.ndarray:
    """DTW of two lists of sequences (n, m): the root of the smallest sum of squares over all alignments."""
    packed = [(np.concatenate(part), np.cumsum([0, *map(len, part)])) for part in (A, B)]
    return _distances(*packed[0], *packed[1])


@njit(parallel=True, cache=False)
def _distances(frames_a, ends_a, frames_b, ends_b):
    out = np.empty((len(ends_a) - 1, len(ends_b) - 1))
    for i in prange(len(ends_a) - 1):
        a = frames_a[ends_a[i] : ends_a[i + 1]]
        for j in range(len(ends_b) - 1):
            out[i, j] = _dtw(a, frames_b[ends_b[j] : ends_b[j + 1]])
    return out


@njit
def _dtw(a, b):
    row = np.full(len(b) + 1, np.inf)
    row[0] = 0.0
    for i in range(len(a)):
        corner, row[0] = row[0], np.inf
        for j in range(len(b)):
            cost = 0.0
            for k in range(a.shape[1]):
                cost += (a[i, k] - b[j, k]) ** 2
            best = min(corner, row[j], row[j + 1])
            corner, row[j + 1] = row[j + 1], cost + best
    return np.sqrt(row[-1])


def predict_proba(train, labels, test) -> np.ndarray:
    """Votes of the nearest; their number and how much they are smoothed by leave-one-out log-loss of training rows."""
    some = np.random.default_rng(0).permutation(len(train))[:TUNING_ROWS]
    among = distances([train[i] for i in some], [train[i] for i in some])
    np.fill_diagonal(among, np.inf)
    classes, codes = np.unique(labels, return_inverse=True)

    def loss(setting):
        p = _votes(among, codes[some], len(classes), *setting)
        return -np.log(p[np.arange(len(some)), codes[some]]).mean()

    best = min(((k, shared) for k in NEIGHBOURS for shared in SHARED_VOTES), key=loss)
    return _votes(distances(test, train), codes, len(classes), *best)


def _votes(D, codes, c: int, k: int, shared: float) -> np.ndarray:
    found = codes[np.argsort(D, axis=1, kind="stable")[:, :k]]
    counts = (found[:, :, None] == np.arange(c)).sum(axis=1) + shared / c
    return counts / counts.sum(axis=1, keepdims=True)
