"""A basis is a kernel with its centres; :mod:`.centers` has the ways to choose them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from ..data.encoding import Encoding
from ..data.items import Items
from ..data.rows import Batch, Rows
from ..data.sweep import Statistic, sweep
from ..kernels import JointKernel, Kernel, Precomputed
from ..kernels.base import n_rows
from ..kernels.projected import INDEFINITE, ProjectedKernel, project_indefinite
from ..threads import BATCH_BYTES, fill_tiles, map_independent, row_slices
from .centers import Centers
from .moments import Moments

#: Up to this many centres, sums on each thread are faster than products on several threads.
MOST_IN_THREADS = 256


@dataclass(frozen=True)
class Basis:
    """Φ(x) = (k(x, z_1), …, k(x, z_b)), evaluated on ``workers`` threads."""

    kernel: Kernel
    centers: np.ndarray
    owner: np.ndarray | None = None
    row_center: Any = None
    workers: int = 1
    #: the device that computes features, None for the CPU, and the memory for the features of one batch
    device: ClassVar[Any] = None
    block_bytes: ClassVar[int] = BATCH_BYTES

    @classmethod
    def definite(cls, kernel: Kernel, centers: Centers, workers: int) -> Basis:
        """A basis whose kernel matrix serves as a penalty: indefinite kernels that allow it are projected to PSD."""
        return cls(project_indefinite(kernel, centers.points, workers), *centers, workers=workers)

    def detached(self) -> Basis:
        """The basis as a fitted model stores it: without references to the training rows."""
        kernel, centers = self.kernel, self.centers
        if isinstance(centers, Items):
            own = centers.detached()
            kernel = kernel.detached(centers, own) if isinstance(kernel, ProjectedKernel) else kernel
            centers = own
        return Basis(kernel, centers, self.owner, workers=self.workers)

    @property
    def n_centers(self) -> int:
        return n_rows(self.centers)

    def __call__(self, X) -> np.ndarray:
        """Features Φ (n, b) of the rows of ``X``."""
        return self.kernel(X, self.centers, self.workers)

    def gram(self) -> np.ndarray:
        """K_zz (b, b), the kernel matrix of the centres, always in float64 because it may be indefinite in float32."""
        centers = self.centers if isinstance(self.kernel, Precomputed) else self.centers.astype(np.float64)
        K = self.kernel.gram(centers, self.workers)
        if not self.kernel.is_definite:
            refuse_indefinite(K)
        return K

    def batches(self, rows: Rows, copies: int = 1) -> Iterator[Batch]:
        """The rows in blocks, such that ``copies`` copies of their features fit into the block size."""
        return rows.batches(copies * self.row_bytes(rows.X), self.block_bytes)

    def row_bytes(self, X) -> int:
        """Memory for the features of one row of X."""
        return np.result_type(X.dtype, np.float32).itemsize * self.n_centers

    def to_device(self, X):
        """The rows where features are computed; here the CPU, so they are unchanged."""
        return X

    def apply(self, phi, coef: np.ndarray) -> np.ndarray:
        """Φ·coef in float64, because large coefficients of both signs may cancel."""
        return phi.astype(np.float64, copy=False) @ coef

    def adjoint(self, phi, values: np.ndarray) -> np.ndarray:
        """Φᵀ·values in float64."""
        return phi.astype(np.float64, copy=False).T @ values

    def for_sums(self, ridge: float, rkhs: bool) -> Basis:
        """This basis in the precision that sums for a ridge need: float64, as always on the CPU."""
        return self

    def for_scores(self, coef: np.ndarray) -> Basis:
        """This basis in the precision that scores with these coefficients need: float64, as always on the CPU."""
        return self

    def running_moments(self, k: int, before: Moments | None = None) -> Any:
        """Running sums to which rows are added, starting at zero or at the sums ``before``."""
        return Moments.zeros(self.n_centers, k) if before is None else before

    def add_part(self, total, part) -> Any:
        """Add some rows of a source to the sums.

        With few centres, each thread has sums of its own: a product on several threads is so short then that they would
        spend much of the time waiting for each other, above all if other programs use the cores.
        """
        if self.workers == 1 or self.n_centers > MOST_IN_THREADS or type(self.kernel).__call__ is not Kernel.__call__:
            return total.add(self(part.X), part.targets, part.weight)
        for own in map_independent(self._moments_of_part, part.split(self.workers), self.workers):
            total += own
        return total

    def _moments_of_part(self, part) -> Moments:
        return Moments.zeros(self.n_centers, part.n_classes).add(self(part.X), part.targets, part.weight)

    def moments(self, rows: Rows) -> Moments:
        """H, h and n of the rows, in one pass."""
        blocks = None if rows.is_multilabel else self.class_blocks
        return sweep(
            self.batches(rows),
            Moments.zeros(self.n_centers, rows.n_targets),
            lambda total, batch: total.add(self(batch.X), batch.targets, batch.weight, blocks),
        )

    @property
    def class_blocks(self) -> list[slice] | None:
        """The slice of centres of each class, in order; None for shared centres."""
        if self.owner is None:
            return None
        ends = np.flatnonzero(np.diff(self.owner, append=-1)) + 1
        return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends)]

    def scores(self, X, coef: np.ndarray) -> np.ndarray:
        """Φ(X)·coef. Each tile of Φ is used while it is in the cache; the whole of Φ is never stored."""
        if isinstance(self.kernel, JointKernel):
            return self.kernel.scores(X, self.centers, coef)
        if isinstance(X, Items):
            blocks = row_slices(len(X), 8 * self.n_centers)
            return np.concatenate([self(X[rows]) @ coef for rows in blocks] or [np.empty((0, coef.shape[1]))])
        evaluate = self.kernel.evaluator(self.centers)
        dtype = np.result_type(X.dtype, np.float32)
        out, coef = np.empty((n_rows(X), coef.shape[1]), dtype), coef.astype(dtype, copy=False)

        def fill(rows):
            np.matmul(evaluate(X[rows]), coef, out=out[rows])

        fill_tiles(fill, len(out), self.kernel.n_buffers * dtype.itemsize * self.n_centers, self.workers)
        return out

    def scores_of_each(self, X, coefs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Φ(X)·coef for each of the coefficients, with Φ computed once."""
        if isinstance(self.kernel, JointKernel):
            return [self.scores(X, coef) for coef in coefs]
        return np.split(self.scores(X, np.hstack(coefs)), len(coefs), axis=1)


@dataclass(frozen=True)
class MomentsOf(Statistic):
    """The statistic H, h, n of the rows of a source, after encoding, in this basis."""

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
        chunk = chunk._replace(X=self.basis.to_device(chunk.X))
        for part in self.encoding.parts(chunk, self.basis.row_bytes(chunk.X), self.basis.block_bytes):
            total = self.basis.add_part(total, part)
        return total

    def finish(self, total) -> Moments:
        return total.to_numpy()

    def resume(self, total: Moments):
        return self.basis.running_moments(len(self.encoding.classes), total)


def refuse_indefinite(K: np.ndarray) -> None:
    """Raise an error if K has negative eigenvalues: used as a penalty, the objective would have no minimum."""
    slack = INDEFINITE * float(np.abs(K).sum(axis=1).max())  # a share of an upper bound of the largest eigenvalue
    _, info = linalg.lapack.dpotrf(K + slack * np.eye(len(K)), lower=1, overwrite_a=1)
    if info:
        raise indefinite(np.linalg.eigvalsh(K), "centres")


def indefinite(eigenvalues: np.ndarray, points: str) -> ValueError:
    """The error for an indefinite kernel matrix with these eigenvalues, in increasing order."""
    return ValueError(
        f"kernel: the matrix of {len(eigenvalues)} {points} is not positive definite: its smallest eigenvalue is "
        f"{eigenvalues[0]:.3g}, its largest {eigenvalues[-1]:.3g}. Use a positive definite kernel, or set the negative "
        "eigenvalues of the kernel matrix to zero."
    )
