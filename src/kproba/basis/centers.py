"""Ways to choose the centres of a basis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..data.hashing import distinct
from ..data.rows import Rows
from ..data.sampling import class_quotas, sample_rows, smallest_keys, with_copies
from ..kernels import Kernel, Precomputed
from ..threads import one_blas_thread

#: k-means uses Lloyd's algorithm up to the first number of rows, and mini-batches of a sample of the second size
#: beyond.
LLOYD_ROWS, CLUSTER_ROWS = 10_000, 20_000


class Centers(NamedTuple):
    """Basis points, and how they relate to the training rows.

    ``owner`` (b,), if given, is the class that each centre belongs to: then the score of a class uses only its own
    centres (2010 Eq. 7). ``row_center`` (n,), if given, means that the centres are all distinct training rows, and
    holds the centre of each row.
    """

    points: np.ndarray
    owner: np.ndarray | None = None
    row_center: np.ndarray | None = None


def all_centers(rows: Rows, kernel: Kernel) -> Centers:
    """Every distinct row (2010 Eq. 5)."""
    first, number = rows.distinct
    return Centers(_points(rows, first, kernel), row_center=number)


def class_centers(rows: Rows, kernel: Kernel, per_class: int | None = None, seed: int = 0) -> Centers:
    """The distinct rows of every class as its own centres (2010 Eq. 7), or at most ``per_class`` of them (Sec. 4)."""
    chosen, owner = [], []
    for y in range(rows.n_classes):
        inside = np.flatnonzero(rows.labels[:, y] == 1 if rows.is_multilabel else rows.labels == y)
        first = inside[distinct(rows.keys[inside])[0]]
        own = first if per_class is None else smallest_keys(rows.keys[first], per_class, seed, first)
        chosen.append(own)
        owner.append(np.full(len(own), y))
    return Centers(_points(rows, np.concatenate(chosen), kernel), owner=np.concatenate(owner))


def subset_centers(rows: Rows, kernel: Kernel, b: int, seed: int) -> Centers:
    """``b`` distinct rows, drawn from the classes in proportion, with at least one per class if b allows."""
    first, number = rows.distinct
    if b >= len(first):
        return Centers(_points(rows, first, kernel), row_center=number)
    return Centers(_points(rows, sample_rows(rows, b, seed), kernel))


def kmeans_centers(rows: Rows, b: int, seed: int, by_class: bool = False) -> Centers:
    """Centres of ``b`` clusters by scikit-learn's k-means, of all rows or of each class in proportion.

    Uses Lloyd's algorithm while it is cheap, and mini-batches of a sample beyond.
    """
    b, mini_batch = min(b, rows.n_distinct), rows.n_distinct > LLOYD_ROWS
    if mini_batch:
        rows = rows.take(with_copies(rows, sample_rows(rows, max(CLUSTER_ROWS, 2 * b), seed)))
    if not by_class:
        return Centers(_clusters(rows, b, seed, mini_batch))
    quotas = class_quotas(np.bincount(rows.labels, minlength=rows.n_classes), b)
    groups = [(rows.take(np.flatnonzero(rows.labels == y)), quotas[y]) for y in np.flatnonzero(quotas)]
    points = [_clusters(own, min(quota, own.n_distinct), seed, mini_batch) for own, quota in groups]
    return Centers(sparse.vstack(points, format="csr") if rows.is_sparse else np.concatenate(points))


def _clusters(rows: Rows, k: int, seed: int, mini_batch: bool):
    """The centres of k clusters."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # slow to import, rarely needed

    if mini_batch:
        clusters = MiniBatchKMeans(k, n_init=1, max_iter=10, compute_labels=False, random_state=seed)
    else:
        clusters = KMeans(k, n_init=1, random_state=seed)
    with one_blas_thread():  # otherwise k-means sets and restores its own limit
        points = clusters.fit(rows.X, sample_weight=rows.weight).cluster_centers_
    return sparse.csr_array(points) if rows.is_sparse else points


def _points(rows: Rows, index: np.ndarray, kernel: Kernel) -> np.ndarray:
    return rows.number[index] if isinstance(kernel, Precomputed) else rows.X[index]
