"""The global alignment kernel for time series, computed by tslearn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..data.items import Sequences, Table
from ..messages import needed
from .base import Untiled, check_width
from .radial import DivergenceKernel, positive_median

#: Number of sequences used to choose the bandwidth.
BANDWIDTH_ROWS = 100


@dataclass(frozen=True)
class GlobalAlignment(Untiled, DivergenceKernel):
    """g(x, z)^(1/σ²), where g is Cuturi's global alignment kernel (2011) normalised to g(x, x) = 1.

    g sums the products of local kernels of bandwidth ``sigma`` over all alignments of two sequences; with σ = 1 the
    kernel is g itself. Rows are sequences: a list of (frames × coefficients) arrays, or :class:`kproba.Sequences`.
    Requires tslearn (``kproba[alignment]``), whose sums overflow beyond about 400 frames.

    Parameters
    ----------
    width : float, optional
        The σ above; chosen from the data if None.
    sigma : float, optional
        Bandwidth of the local kernel. If None, the median distance between frames times the square root of the median
        length.

    Examples
    --------
    >>> import numpy as np
    >>> up, down = np.arange(4.0)[:, None], np.arange(4.0)[::-1, None]
    >>> GlobalAlignment(width=1.0, sigma=2.0)([up, down], [up]).round(2)
    array([[1.  ],
           [0.02]])
    """

    width: Any = None
    sigma: Any = None
    name: ClassVar[str] = "global alignment"
    compares: ClassVar[str] = "time series"
    extra: ClassVar[str] = "alignment"
    is_definite: ClassVar[bool] = False
    is_projected: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        check_width(self.sigma)

    def read(self, X) -> Sequences:
        return Sequences.of(X)

    def prepared(self, X, workers: int = 1, verbose: int = 0):
        return self if self.sigma is not None else replace(self, sigma=_bandwidth(X))

    def pairs(self, X, Z, workers: int = 1):
        """−2 log g (n, b)."""
        if self.sigma is None:
            raise ValueError("sigma=None is chosen during fit; set sigma to a number to call the kernel directly.")
        X, Z, compute = self.read(X), self.read(Z), partial(self._distances, workers=workers)
        X, Z = X.within(Z), Z.within(X)
        if X.memory is not Z.memory:
            return compute(X, Z)
        return X.memory.entry(("alignment", self.sigma), lambda: Table(len(X.collection))).block(X, Z, compute)

    def _distances(self, X: Sequences, Z: Sequences, workers: int) -> np.ndarray:
        with np.errstate(all="ignore"):
            tslearn = needed("tslearn.metrics", "GlobalAlignment requires tslearn", "alignment")
            values = tslearn.cdist_gak(list(X), list(Z), sigma=float(self.sigma), n_jobs=workers)
            distances = np.maximum(-2.0 * np.log(values), 0.0)
        if not np.isfinite(distances).all():
            i, j = np.argwhere(~np.isfinite(distances))[0]
            raise ValueError(
                f"kernel: the global alignment of sequences of {len(X[int(i)])} and {len(Z[int(j)])} frames exceeds "
                f"the range of float64 with sigma={self.sigma:.3g}; subsample the frames or increase sigma."
            )
        return distances


def _bandwidth(X: Sequences) -> float:
    """The median distance between frames times the square root of the median length, from a sample of sequences."""
    some = X[np.argsort(X.row_keys(), kind="stable")[:BANDWIDTH_ROWS]]
    frames = some.frames[:: max(1, len(some.frames) // 1000)]
    square = np.square(frames[:, None] - frames[None]).sum(axis=2)
    return float(np.sqrt(positive_median(square) * np.median(some.lengths)))
