"""The global alignment kernel of time series, computed by tslearn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from ..data.items import Sequences, Table
from .base import Untiled, check_width
from .radial import DivergenceKernel, positive_median

#: Sequences from which the bandwidth is taken.
BANDWIDTH_ROWS = 100


@dataclass(frozen=True)
class GlobalAlignment(Untiled, DivergenceKernel):
    """g(x, z)^(1/σ²), where g is Cuturi's global alignment kernel (2011), normalised so that g(x, x) = 1.

    g sums over all alignments of two sequences the products of local kernels of bandwidth ``sigma``; with σ = 1 it is
    the kernel itself. Rows are sequences: a list of (frames × coefficients) arrays, or :class:`kproba.Sequences`.
    Needs tslearn (``kproba[alignment]``), whose sums overflow beyond some 400 frames.

    Parameters
    ----------
    width : float, optional
        The σ above; None has it chosen.
    sigma : float, optional
        Bandwidth of the local kernel; None is the median distance of frames times the root of the median length.

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
    is_definite: ClassVar[bool] = False
    is_projected: ClassVar[bool] = True
    runs_on_devices: ClassVar[bool] = False

    def __post_init__(self):
        check_width(self.width)
        check_width(self.sigma)

    def read(self, X) -> Sequences:
        return Sequences.of(X)

    def prepared(self, X, workers: int = 1, verbose: int = 0):
        return self if self.sigma is not None else replace(self, sigma=_bandwidth(X))

    def pairs(self, X, Z, workers: int = 1):
        """−2 log g (n, b)."""
        if self.sigma is None:
            raise ValueError("sigma is chosen from the rows of a fit; give a number to call the kernel yourself.")
        X, Z, compute = self.read(X), self.read(Z), partial(self._distances, workers=workers)
        X, Z = X.within(Z), Z.within(X)
        if X.memory is not Z.memory:
            return compute(X, Z)
        return X.memory.entry(("alignment", self.sigma), lambda: Table(len(X.collection))).block(X, Z, compute)

    def _distances(self, X: Sequences, Z: Sequences, workers: int) -> np.ndarray:
        with np.errstate(all="ignore"):
            values = _tslearn().cdist_gak(list(X), list(Z), sigma=float(self.sigma), n_jobs=workers)
            distances = np.maximum(-2.0 * np.log(values), 0.0)
        if not np.isfinite(distances).all():
            i, j = np.argwhere(~np.isfinite(distances))[0]
            raise ValueError(
                f"kernel: global alignments of sequences of {len(X[int(i)])} and {len(Z[int(j)])} frames are beyond "
                f"the range of float64 with sigma={self.sigma:.3g}; take every second frame, say, or a larger sigma."
            )
        return distances


def _bandwidth(X: Sequences) -> float:
    """The median distance of frames times the root of the median length, by some of the sequences."""
    some = X[np.argsort(X.row_keys(), kind="stable")[:BANDWIDTH_ROWS]]
    frames = some.frames[:: max(1, len(some.frames) // 1000)]
    square = np.square(frames[:, None] - frames[None]).sum(axis=2)
    return float(np.sqrt(positive_median(square) * np.median(some.lengths)))


def _tslearn():
    try:
        return import_module("tslearn.metrics")
    except ImportError as error:
        raise ImportError("GlobalAlignment is computed by tslearn: pip install 'kproba[alignment]'") from error
