"""Scaling of columns inside the estimator, so that one width suits them all.

``"standard"`` is 2010 Sec. 3. ``"robust"`` subtracts the median, divides by the interquartile range and smoothly
squashes outliers; columns with two values become 0/1, because scaling a rare category to unit variance would move its
rows far away from all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import Device, is_tensor
from ..threads import fill_tiles, map_independent
from .curves import MANY_VALUES, Curves, few, normal_scores
from .hashing import distinct
from .items import Sequences
from .rows import Rows

MODES = ("auto", "standard", "robust", "quantile", None)
#: Values of this many interquartile ranges from the median are pulled in to 1/√2 of their distance.
SQUASH_AT = 3.0
#: Scaled values are clipped to this: their squares do not overflow, and no kernel distinguishes rows farther away.
FARTHEST = 1e100
#: Quartiles are computed from at most this many distinct rows.
QUANTILE_ROWS = 50_000


@dataclass(frozen=True)
class Scaling:
    """x → relevance · curve(squash((x − center)/scale)), column by column."""

    center: np.ndarray
    scale: np.ndarray
    squashed: np.ndarray
    relevance: np.ndarray
    curves: Curves | None = None

    def __call__(self, X):
        """Scaled rows, in the precision of ``X``; a sparse X stays sparse and is only scaled, not shifted."""
        if sparse.issparse(X):
            return _divided(X, self.scale, self.relevance)
        if isinstance(X, Sequences):
            return X.with_frames(self(X.frames))
        if is_tensor(X):
            return self._on_device(Device.of(X), X)
        Z = np.empty_like(X)
        fill_tiles(lambda rows: self._scale_tile(X[rows], Z[rows]), len(Z), 4 * X.shape[1] * X.dtype.itemsize)
        return Z

    def _scale_tile(self, X, Z) -> None:
        """Scale rows that fit in the cache, so that several passes over them cost as much as one."""
        with np.errstate(over="ignore"):  # overflows are clipped in the next line
            scaled = (X - self.center) / self.scale
        np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)
        bend = np.where(self.squashed, scaled / SQUASH_AT, 0.0)
        scaled /= np.sqrt(1.0 + np.square(bend))
        if self.curves is not None:
            self.curves.apply(scaled)
        np.multiply(scaled, self.relevance, out=Z, casting="same_kind")

    def _on_device(self, device: Device, X):
        xp = device.xp
        center, scale, relevance = (device.put(part) for part in (self.center, self.scale, self.relevance))
        squash = device.put(self.squashed / SQUASH_AT)
        scaled = xp.clip((xp.astype(X, xp.float64, copy=False) - center) / scale, -FARTHEST, FARTHEST)
        scaled = scaled / xp.sqrt(1.0 + (scaled * squash) ** 2)
        scaled = scaled if self.curves is None else self.curves.on_device(device, scaled)
        return xp.astype(scaled * relevance, X.dtype, copy=False)

    def inverse(self, Z):
        """Rows in the user's units, up to rounding."""
        if isinstance(Z, Sequences):
            return Z.with_frames(self.inverse(Z.frames))
        if sparse.issparse(Z):
            return sparse.csr_array(Z.multiply((self.scale / self.relevance)[None, :]))
        X = Z / self.relevance
        if self.curves is not None:
            self.curves.undo(X)
        columns = X[:, self.squashed]
        room = np.maximum(1.0 - np.square(columns / SQUASH_AT), np.finfo(X.dtype).eps)
        X[:, self.squashed] = columns / np.sqrt(room)
        return X * self.scale + self.center

    def leaving(self, columns: tuple[int, ...]) -> Scaling:
        """The same scaling, except that some columns stay as they are: codes of categories have no scale."""
        if not columns:
            return self
        same = np.isin(np.arange(len(self.center)), columns)
        center, scale = np.where(same, 0.0, self.center), np.where(same, 1.0, self.scale)
        curves = None if self.curves is None else self.curves.leaving(columns)
        return replace(self, center=center, scale=scale, squashed=self.squashed & ~same, curves=curves)

    def weighted(self, relevance: np.ndarray) -> Scaling:
        """The same scaling with the columns weighted further."""
        return replace(self, relevance=self.relevance * relevance)


def fit_scaling(mode: str | None, rows: Rows, workers: int = 1) -> Scaling | None:
    """The scaling of ``mode`` for these rows; None if there is nothing to scale."""
    if mode not in MODES:
        raise ValueError(f"scaling must be one of {', '.join(map(repr, MODES))}, got {mode!r}.")
    if mode is None:
        return None
    if isinstance(rows.X, Sequences):
        mode, rows = "standard" if mode == "auto" else mode, _frames_of(rows)
    if rows.is_sparse:
        return _scale_only(rows)
    if mode == "standard":
        return _standard(rows).leaving(rows.categorical)
    fit = _quantile if mode == "quantile" else _robust
    return fit(rows, workers).leaving(rows.categorical)


def _frames_of(rows: Rows) -> Rows:
    """The frames of all sequences as rows, each with the weight of its sequence."""
    X: Any = rows.X
    return Rows.of(X.frames, np.zeros(len(X.frames), dtype=int), np.repeat(rows.weight, X.lengths), 1)


def _plain(center, scale, squashed=None) -> Scaling:
    d = len(center)
    squashed = np.zeros(d, dtype=bool) if squashed is None else squashed
    return Scaling(center, np.where(scale > 0, scale, 1.0), squashed, np.ones(d))


def _standard(rows: Rows) -> Scaling:
    share = rows.weight / rows.total_weight
    low, high = rows.X.min(axis=0), rows.X.max(axis=0)
    # shares sum to one only up to rounding, which must not move the centre of a constant column
    center = np.where(low == high, low, share @ rows.X)
    size = np.maximum(high - center, center - low)  # divided out before squaring, so that 1e200 does not overflow
    safe = np.where(size > 0, size, 1.0)
    return _plain(center, safe * np.sqrt(share @ np.square((rows.X - center) / safe)))


def _scale_only(rows: Rows) -> Scaling:
    """Scale by the root mean square of each column, without a shift, so that zeros stay zeros."""
    share = rows.weight / rows.total_weight
    X = sparse.csr_array(rows.X, dtype=np.float64)
    size = abs(X).max(axis=0).toarray().ravel()  # divided out before squaring
    safe = np.where(size > 0, size, 1.0)
    unit = _divided(X, safe)
    return _plain(np.zeros(X.shape[1]), safe * np.sqrt(np.asarray(unit.multiply(unit).T @ share).ravel()))


def _divided(X, scale: np.ndarray, factor: np.ndarray | float = 1.0) -> sparse.csr_array:
    """A sparse matrix with columns divided by ``scale``, whose inverse may overflow, and multiplied by ``factor``."""
    X = sparse.csr_array(X, dtype=np.float64)
    with np.errstate(over="ignore"):
        values = np.clip(X.data / scale[X.indices], -FARTHEST, FARTHEST)
    return sparse.csr_array((values * np.broadcast_to(factor, X.shape[1])[X.indices], X.indices, X.indptr), X.shape)


def _robust(rows: Rows, workers: int = 1) -> Scaling:
    X = rows.X
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    two_valued = ((low == X) | (high == X)).all(axis=0)
    quartiles = _weighted_quantiles(rows, (0.25, 0.5, 0.75), workers)
    spread = quartiles[2] - quartiles[0]
    spread = np.where(spread > 0, spread, (high / 2 - low / 2))
    center = np.where(two_valued, low, quartiles[1])
    return _plain(center, np.where(two_valued, high - low, spread), ~two_valued)


def _quantile(rows: Rows, workers: int = 1) -> Scaling:
    return with_normal_scores(_robust(rows, workers), rows, workers)


def with_normal_scores(robust: Scaling, rows: Rows, workers: int = 1) -> Scaling:
    """A robust scaling that continues with the normal scores of all columns but those with two values."""
    X, weight = _quantile_rows(rows)
    columns = np.flatnonzero(robust.squashed)
    if not len(columns):
        return robust
    return replace(robust, curves=normal_scores(robust(X), weight, columns, SQUASH_AT, workers))


def bent_scaling(scaling: Scaling | None, share: float) -> Scaling | None:
    """The scaling with a share of its curves, if it has any."""
    if scaling is None or scaling.curves is None or share == 1:
        return scaling
    return replace(scaling, curves=scaling.curves.at(share) if share else None)


def _weighted_quantiles(rows: Rows, levels, workers: int = 1) -> np.ndarray:
    """The smallest values whose cumulative weight reaches each level; repeating a row is the same as weighting it."""
    X, weight = _quantile_rows(rows)
    columns = list(X.T)
    found = map_independent(lambda column: _quantiles_of_column(column, weight, levels), columns, few(workers, X.size))
    return np.array(found, dtype=np.float64).reshape(X.shape[1], len(levels)).T


def _quantile_rows(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """The rows from which quantiles are computed, and their weights."""
    if len(rows) <= QUANTILE_ROWS:
        return rows.X, rows.weight
    first, number = distinct(rows.keys)
    first = first[:QUANTILE_ROWS]  # sorted by key: a random sample that does not depend on weights
    return rows.X[first], np.bincount(number, rows.weight)[: len(first)]


def _quantiles_of_column(values: np.ndarray, weight: np.ndarray, levels) -> np.ndarray:
    values = np.ascontiguousarray(values)
    order = np.argsort(values)  # not stable: among equal values, any will do
    reached = np.cumsum(weight[order])
    # the slack is there because sums of weights and counts of repeated rows must give the same result
    picks = [np.argmax(reached >= level * reached[-1] - 1e-12 * reached[-1]) for level in levels]
    return values[order[picks]]


def relevance_weights(sensitivity: np.ndarray, n: int) -> np.ndarray:
    """Column weights from the mean squared derivatives of a fitted model; the largest is one.

    The fourth root is half of what the derivatives suggest: two small steps, each checked by leave-one-out, do better
    than one large step. With few rows per column the derivatives are noisy, so they are shrunk towards their mean. The
    weights are rounded to eighths of an octave, so that rounding errors do not change them.
    """
    d = len(sensitivity)
    mean = sensitivity.mean()
    if not np.isfinite(mean) or mean <= 0:
        return np.ones(d)
    shrunk = sensitivity + mean * 5.0 * d / n
    octaves = 0.25 * np.log2(shrunk / shrunk.max())
    return np.exp2(np.round(8.0 * octaves) / 8.0)


def scaled_rows(rows: Rows, scaling: Scaling | None, device: Device | None = None) -> Rows:
    """The rows with their columns scaled, by a device if they are many; None leaves them unchanged."""
    if scaling is None:
        return rows
    if device is None or not isinstance(rows.X, np.ndarray) or rows.X.size < MANY_VALUES:
        return rows.replace_inputs(scaling(rows.X))
    return rows.replace_inputs(device.get(scaling(device.put(rows.X))))
