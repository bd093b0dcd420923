"""A basis is a kernel and its centres; this file also holds the ways to choose centres."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import linalg, sparse

from .data.encoding import Encoding
from .data.hashing import distinct, ranking
from .data.items import Items
from .data.rows import Batch, Rows
from .kernels import Kernel, Precomputed
from .kernels.base import n_rows
from .kernels.mended import INDEFINITE, Mended, definite
from .moments import Moments
from .sweep import BATCH_BYTES, Statistic, fill_tiles, one_blas_thread, row_slices, sweep

#: k-means sees all rows at every step while they are at most so many; then mini-batches of a sample of the second size.
LLOYD_ROWS, CLUSTER_ROWS = 10_000, 20_000


class Centers(NamedTuple):
    """Basis points, and how they relate to the training rows.

    ``owner`` (b,), where given, is the class to which each centre belongs: then a class's score uses its own
    centres alone (2010 Eq. 7). ``row_center`` (n,), where given, says that the centres are all the distinct
    training rows, and which of them each row is.
    """

    points: np.ndarray
    owner: np.ndarray | None = None
    row_center: np.ndarray | None = None


@dataclass(frozen=True)
class Basis:
    """Φ(x) = (k(x, z_1), …, k(x, z_b)), evaluated on ``workers`` threads."""

    kernel: Kernel
    centers: np.ndarray
    owner: np.ndarray | None = None
    row_center: Any = None
    workers: int = 1
    #: where features are computed, if not here, and what those of one batch may take
    device: ClassVar[Any] = None
    block_bytes: ClassVar[int] = BATCH_BYTES

    @classmethod
    def definite(cls, kernel: Kernel, centers: Centers, workers: int) -> Basis:
        """The basis of a kernel whose matrix of the centres penalises: positive semi-definite if that can be had."""
        return cls(definite(kernel, centers.points, workers), *centers, workers=workers)

    def detached(self) -> Basis:
        """The basis as a model keeps it: without the training rows, and without what it would share with them."""
        kernel, centers = self.kernel, self.centers
        if isinstance(centers, Items):
            own = centers.detached()
            kernel = kernel.detached(centers, own) if isinstance(kernel, Mended) else kernel
            centers = own
        return Basis(kernel, centers, self.owner, workers=self.workers)

    @property
    def n_centers(self) -> int:
        return n_rows(self.centers)

    def __call__(self, X) -> np.ndarray:
        """Features Φ (n, b) of the rows of ``X``."""
        return self.kernel(X, self.centers, self.workers)

    def gram(self) -> np.ndarray:
        """K_zz (b, b), the kernel matrix of the centres: float64 always, for in float32 it may be indefinite."""
        centers = self.centers if isinstance(self.kernel, Precomputed) else self.centers.astype(np.float64)
        K = self.kernel.gram(centers, self.workers)
        if not self.kernel.is_definite:
            refuse_indefinite(K)
        return K

    def batches(self, rows: Rows, copies: int = 1) -> Iterator[Batch]:
        """The rows in blocks such that so many copies of their features fit the block size."""
        return rows.batches(copies * self.row_bytes(rows.X), self.block_bytes)

    def row_bytes(self, X) -> int:
        """What the features of one row of X take."""
        return np.result_type(X.dtype, np.float32).itemsize * self.n_centers

    def sent(self, X):
        """Rows where features are computed: here."""
        return X

    def apply(self, phi, coef: np.ndarray) -> np.ndarray:
        """Φ·coef in float64: coefficients may be large and of both signs, and little is left of their sum."""
        return phi.astype(np.float64, copy=False) @ coef

    def adjoint(self, phi, values: np.ndarray) -> np.ndarray:
        """Φᵀ·values in float64."""
        return phi.astype(np.float64, copy=False).T @ values

    def running_moments(self, k: int, before: Moments | None = None) -> Any:
        """Sums to which parts of the rows are added: of none yet, or of those that came before."""
        return Moments.zeros(self.n_centers, k) if before is None else before

    def add_part(self, total, part) -> Any:
        """The sums with those of a part of a source's rows."""
        return total.add(self(part.X), part.targets, part.weight)

    def moments(self, rows: Rows) -> Moments:
        """H, h and n of the rows, in one sweep."""
        blocks = None if rows.is_multilabel else self.class_blocks
        return sweep(
            self.batches(rows),
            Moments.zeros(self.n_centers, rows.n_targets),
            lambda total, batch: total.add(self(batch.X), batch.targets, batch.weight, blocks),
        )

    @property
    def class_blocks(self) -> list[slice] | None:
        """Where each class's own centres lie, one class after the other; None for shared centres."""
        if self.owner is None:
            return None
        ends = np.flatnonzero(np.diff(self.owner, append=-1)) + 1
        return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends)]

    def scores(self, X, coef: np.ndarray) -> np.ndarray:
        """Φ(X)·coef. A tile of Φ is used while it is in the cache; Φ as a whole never exists."""
        if isinstance(X, Items):
            blocks = row_slices(len(X), 8 * self.n_centers)
            return np.concatenate([self(X[rows]) @ coef for rows in blocks] or [np.empty((0, coef.shape[1]))])
        evaluate = self.kernel.evaluator(self.centers)
        dtype = np.result_type(X.dtype, np.float32)
        out, coef = np.empty((n_rows(X), coef.shape[1]), dtype), coef.astype(dtype, copy=False)

        def fill(rows):
            np.matmul(evaluate(X[rows]), coef, out=out[rows])

        fill_tiles(fill, len(out), dtype.itemsize * self.n_centers, self.workers)
        return out


@dataclass(frozen=True)
class MomentsOf(Statistic):
    """The statistic H, h, n of rows as they come from a source: encoded, and met with the basis."""

    basis: Basis
    encoding: Encoding

    @property
    def device(self):
        return self.basis.device

    @property
    def identity(self):
        return "moments", self.basis.kernel, self.basis.centers, self.encoding

    def zero(self):
        return self.basis.running_moments(len(self.encoding.classes))

    def add(self, total, chunk):
        chunk = chunk._replace(X=self.basis.sent(chunk.X))
        for part in self.encoding.parts(chunk, self.basis.row_bytes(chunk.X), self.basis.block_bytes):
            total = self.basis.add_part(total, part)
        return total

    def finish(self, total) -> Moments:
        return total.here()

    def on_one_thread(self) -> MomentsOf:
        return replace(self, basis=replace(self.basis, workers=1))

    def resume(self, total: Moments):
        return self.basis.running_moments(len(self.encoding.classes), total)


def refuse_indefinite(K: np.ndarray) -> None:
    """A kernel matrix that penalises must not have negative eigenvalues: the objective would have no minimum."""
    slack = INDEFINITE * float(np.abs(K).sum(axis=1).max())  # a share of what bounds the largest eigenvalue
    _, info = linalg.lapack.dpotrf(K + slack * np.eye(len(K)), lower=1, overwrite_a=1)
    if info:
        raise indefinite(np.linalg.eigvalsh(K), "centres")


def indefinite(eigenvalues: np.ndarray, points: str) -> ValueError:
    """The error for a kernel matrix with these eigenvalues, in increasing order."""
    return ValueError(
        f"kernel: the matrix of {len(eigenvalues)} {points} is not positive definite: its smallest eigenvalue is "
        f"{eigenvalues[0]:.3g}, its largest {eigenvalues[-1]:.3g}. Use a positive definite kernel, or set the negative "
        "eigenvalues of the kernel matrix to zero."
    )


def all_centers(rows: Rows, kernel: Kernel) -> Centers:
    """Every distinct row (2010 Eq. 5)."""
    first, number = distinct(rows.keys)
    return Centers(_points(rows, first, kernel), row_center=number)


def class_centers(rows: Rows, kernel: Kernel, per_class: int | None = None, seed: int = 0) -> Centers:
    """Every class's own distinct rows (2010 Eq. 7), or at most ``per_class`` of them (Sec. 4)."""
    chosen, owner = [], []
    for y in range(rows.n_classes):
        inside = np.flatnonzero(rows.labels[:, y] == 1 if rows.is_multilabel else rows.labels == y)
        first = inside[distinct(rows.keys[inside])[0]]
        own = first if per_class is None else _smallest(rows.keys[first], per_class, seed, first)
        chosen.append(own)
        owner.append(np.full(len(own), y))
    return Centers(_points(rows, np.concatenate(chosen), kernel), owner=np.concatenate(owner))


def subset_centers(rows: Rows, kernel: Kernel, b: int, seed: int) -> Centers:
    """``b`` distinct rows spread over the classes in proportion, at least one each where b allows."""
    first, number = distinct(rows.keys)
    if b >= len(first):
        return Centers(_points(rows, first, kernel), row_center=number)
    return Centers(_points(rows, sample_rows(rows, b, seed), kernel))


def kmeans_centers(rows: Rows, b: int, seed: int, by_class: bool = False) -> Centers:
    """Centres of ``b`` clusters by scikit-learn's k-means, of all rows or of each class's own in proportion.

    Lloyd's algorithm while it is cheap, then mini-batches of a sample.
    """
    b, mini_batch = min(b, rows.n_distinct), rows.n_distinct > LLOYD_ROWS
    if mini_batch:
        rows = rows.take(with_copies(rows, sample_rows(rows, max(CLUSTER_ROWS, 2 * b), seed)))
    if not by_class:
        return Centers(_clusters(rows, b, seed, mini_batch))
    quotas = _quotas(np.bincount(rows.labels, minlength=rows.n_classes), b)
    groups = [(rows.take(np.flatnonzero(rows.labels == y)), quotas[y]) for y in np.flatnonzero(quotas)]
    points = [_clusters(own, min(quota, own.n_distinct), seed, mini_batch) for own, quota in groups]
    return Centers(sparse.vstack(points, format="csr") if rows.is_sparse else np.concatenate(points))


def _clusters(rows: Rows, k: int, seed: int, mini_batch: bool):
    """The centres of k clusters."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # slow to import, seldom needed

    if mini_batch:
        clusters = MiniBatchKMeans(k, n_init=1, max_iter=10, compute_labels=False, random_state=seed)
    else:
        clusters = KMeans(k, n_init=1, random_state=seed)
    with one_blas_thread():  # k-means would set and restore a limit of its own
        points = clusters.fit(rows.X, sample_weight=rows.weight).cluster_centers_
    return sparse.csr_array(points) if rows.is_sparse else points


def with_copies(rows: Rows, sample: np.ndarray) -> np.ndarray:
    """The sampled rows and all their copies, in order."""
    return np.flatnonzero(np.isin(rows.keys, rows.keys[sample]))


def sample_rows(rows: Rows, size: int, seed: int) -> np.ndarray:
    """One index for each of ``size`` distinct rows, spread over the classes.

    The sample depends on the rows and the seed, not on their order nor on repetitions.
    """
    first, number = distinct(rows.keys)
    if size >= len(first):
        return first
    if rows.is_multilabel:
        return _smallest(rows.keys[first], size, seed, first)
    label = np.full(len(first), rows.n_classes)
    np.minimum.at(label, number, rows.labels)
    counts = np.bincount(label, minlength=rows.n_classes)
    quotas = _quotas(counts, size)
    groups = (np.flatnonzero(label == y) for y in np.flatnonzero(quotas))
    picks = [_smallest(rows.keys[first[g]], quotas[label[g[0]]], seed, first[g]) for g in groups]
    return np.concatenate(picks)


def _smallest(keys: np.ndarray, size: int, seed: int, values: np.ndarray) -> np.ndarray:
    """The ``values`` of the ``size`` keys that rank first."""
    return values[np.argsort(ranking(keys, seed), kind="stable")[:size]]


def _quotas(counts: np.ndarray, size: int) -> np.ndarray:
    """Shares of ``size`` in proportion to counts: one each first, the rest by largest remainder."""
    present = counts > 0
    quotas = present.astype(int) if present.sum() <= size else np.zeros(len(counts), int)
    ideal = counts * (size / counts.sum())
    quotas = np.maximum(quotas, np.minimum(np.floor(ideal).astype(int), counts))
    while quotas.sum() > size:  # the guaranteed ones took more than their share: take it from the largest
        quotas[np.argmax(quotas)] -= 1
    short = size - quotas.sum()
    order = np.argsort(np.where(quotas < counts, quotas - ideal, np.inf), kind="stable")
    quotas[order[:short]] += 1
    return quotas


def _points(rows: Rows, index: np.ndarray, kernel: Kernel) -> np.ndarray:
    return rows.number[index] if isinstance(kernel, Precomputed) else rows.X[index]
