"""Scaling, kernels and links as graphs; each function mirrors the NumPy code that its docstring names."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import sparse

from ..data.scaling import SQUASH_AT, Scaling
from ..kernels import ChiSquared, Gaussian, Intersection, Kernel, Laplacian, Linear, Matern, Polynomial
from ..links import CalibratedSoftmax, CalibratedTags, Clip, PerTag, Sigmoid, Softmax, log_softplus
from .graph import Value, concatenated


def scaled(X: Value, scaling: Scaling | None) -> Value:
    """``Scaling.__call__``."""
    if scaling is None:
        return X
    Z = (X - scaling.center) / scaling.scale
    if scaling.squashed.any():
        bend = (Z / SQUASH_AT) * scaling.squashed
        Z = Z / (bend * bend + 1.0).sqrt()
    return Z * scaling.relevance


def scores(X: Value, kernel: Kernel, centers, coef: np.ndarray, intercept) -> Value:
    """``Basis.scores`` plus the intercept."""
    Z = centers.toarray() if sparse.issparse(centers) else np.asarray(centers)
    if isinstance(kernel, Linear):  # a linear model has one coefficient per column and needs no centres
        return _product(X, Z.astype(np.float64).T @ coef) + intercept
    return FEATURES[type(kernel)](X, Z, kernel) @ coef + intercept


def check_kernel(kernel: Kernel) -> None:
    """Refuse kernels that cannot be converted."""
    kinds: tuple[type[Kernel], ...] = (*FEATURES, Linear)
    if type(kernel) in kinds:
        return
    known = ", ".join(repr(each.name) for each in kinds)
    raise TypeError(
        f"kernel: the {kernel.name} kernel ({type(kernel).__name__}) cannot be converted to ONNX; fit the model with "
        f"one of {known}, or predict in Python."
    )


def _squared_distances(X: Value, Z: np.ndarray) -> Value:
    """``kernels.radial.squared_distances``, including its shift of the origin to the mean of the centres."""
    origin = Z.mean(axis=0)
    Z = Z - origin
    zz = np.einsum("ij,ij->i", Z, Z)
    X = X - origin
    both = concatenated([X, (X * X).sum()])
    right = np.column_stack([-2.0 * Z, np.ones(len(Z), Z.dtype)])
    return (both @ right.T + zz).maximum(0.0)


def _row_by_row(X: Value, Z: np.ndarray, compare: Callable[[Value, Value], Value]) -> Value:
    """Σ_j compare(x_j, z_j) (n, b), one row at a time: all rows at once would need n·b·d numbers."""
    b, d = Z.shape
    columns = np.asarray(Z.T, dtype=np.float64)

    def of_row(x: Value) -> Value:
        return compare(x.reshaped(d, 1), x.graph.constant(columns)).sum(axis=0, keepdims=False)

    return X.graph.for_each_row(X, b, of_row)


def _gaussian(X: Value, Z: np.ndarray, kernel: Gaussian) -> Value:
    return (_squared_distances(X, Z) * (-0.5 / kernel.width**2)).exp()


def _laplacian(X: Value, Z: np.ndarray, kernel: Laplacian) -> Value:
    return (_row_by_row(X, Z, lambda x, z: (x - z).abs()) * (-1.0 / kernel.width)).exp()


def _matern(X: Value, Z: np.ndarray, kernel: Matern) -> Value:
    r = _squared_distances(X, Z).sqrt() * (math.sqrt(2.0 * kernel.nu) / kernel.width)
    falling = (r * -1.0).exp()
    if kernel.nu == 0.5:
        return falling
    return falling * (r + 1.0 if kernel.nu == 1.5 else r * r / 3.0 + r + 1.0)


def _polynomial(X: Value, Z: np.ndarray, kernel: Polynomial) -> Value:
    # divide the centres by the width: a scalar factor next to a matrix product is rounded, see _product
    return (_product(X, (Z.astype(np.float64) / kernel.width**2).T) + kernel.coef0) ** float(kernel.degree)


def _product(X: Value, matrix: np.ndarray) -> Value:
    """X·matrix, without a matrix product if X has one column.

    onnxruntime fuses a matrix product with a scalar factor before or after it, and rounds the factor to float32. The
    scaling of a single column is such a factor.
    """
    return X * matrix if len(matrix) == 1 else X @ matrix


def _chi_squared(X: Value, Z: np.ndarray, kernel: ChiSquared) -> Value:
    def compare(x: Value, z: Value) -> Value:
        difference, total = x - z, x + z
        return difference * difference / total.maximum(np.finfo(np.float64).tiny)  # empty bins contribute nothing

    return (_row_by_row(X, Z, compare) * (-0.5 / kernel.width**2)).exp()


def _intersection(X: Value, Z: np.ndarray, kernel: Intersection) -> Value:
    return _row_by_row(X, Z, lambda x, z: x.minimum(z))


#: Features (n, b) of rows and centres by exact type of the kernel, because a subclass may compute something else.
FEATURES: dict[type[Kernel], Callable] = {
    Gaussian: _gaussian,
    Laplacian: _laplacian,
    Matern: _matern,
    Polynomial: _polynomial,
    ChiSquared: _chi_squared,
    Intersection: _intersection,
}


def probabilities(scores: Value, link) -> Value:
    """``link.probabilities``."""
    if type(link) not in LINKS:
        known = ", ".join(each.__name__ for each in LINKS)
        raise TypeError(f"link: {type(link).__name__} cannot be converted to ONNX; supported are {known}.")
    return LINKS[type(link)](scores, link)


def _clip(S: Value, link: Clip) -> Value:
    positive = S.maximum(0.0)
    largest = positive.max()
    positive = (largest > 0.0).where(positive / (largest > 0.0).where(largest, 1.0), 1.0)
    return positive / positive.sum()


def _calibrated(S: Value, link: CalibratedSoftmax) -> Value:
    span = tuple(np.asarray(end) for end in link.span)
    return _decision(S, S.sum(), link.prior, link.slope, np.asarray(link.sharpness), link.offset, span).softmax()


def _decision(S: Value, g: Value, prior, slope, sharpness, offset, span) -> Value:
    """``CalibratedSoftmax.decision``, for arrays that may have one entry per column."""
    q = (S + (1.0 - g) * prior).maximum(span[0]).minimum(span[1])
    start = np.log(prior) - slope * log_softplus(sharpness * prior)
    return _log_softplus(q * sharpness) * slope + start + g.maximum(0.0).minimum(1.0) * offset


def _log_softplus(z: Value) -> Value:
    """``links.log_softplus``. log(1 + u) is u·log(w)/(w − 1) with w the rounded 1 + u: accurate even for tiny u."""
    bounded = z.maximum(-30.0)
    u = (bounded.abs() * -1.0).exp()
    w = u + 1.0
    lost = w.equals(1.0)
    log1p = lost.where(u, u * w.log() / lost.where(1.0, w - 1.0))
    return (z < -30.0).where(z, (bounded.maximum(0.0) + log1p).log())


def _tags_and_constants(S: Value, constant: np.ndarray) -> tuple[Value, Value]:
    """The scores of the tags, and of the constant of each tag."""
    n_tags = len(constant)
    chosen = S.graph.constant(constant.astype(np.int64))
    return S.columns(0, n_tags), S.graph.node("Gather", S, chosen, axis=1)


def _per_tag(S: Value, link: PerTag) -> Value:
    """Two columns for each tag, all tags at once: (constant − tag) and tag."""
    yes, g = _tags_and_constants(S, link.constant)
    return _clipped_pair(g - yes, yes)


def _calibrated_tags(S: Value, link: CalibratedTags) -> Value:
    """``CalibratedTags.decision``, turned into probabilities."""
    yes, g = _tags_and_constants(S, link.constant)
    q = yes + (1.0 - g) * link.prior
    sides = ((1.0 - q, 1.0 - link.prior), (q, link.prior))
    rises = []
    for x, prior in sides:
        held = x.maximum(link.span[0]).minimum(link.span[1])
        rises.append(_log_softplus(held * link.sharpness) - log_softplus(link.sharpness * prior))
    odds = rises[1] * link.slope[1] - rises[0] * link.slope[0] + g.maximum(0.0).minimum(1.0) * link.offset
    return _sigmoid(odds + np.log(link.prior / (1.0 - link.prior)))


def _clipped_pair(no: Value, yes: Value) -> Value:
    no, yes = no.maximum(0.0), yes.maximum(0.0)
    largest = no.maximum(yes)
    some = largest > 0.0
    divisor = some.where(largest, 1.0)
    no, yes = some.where(no / divisor, 1.0), some.where(yes / divisor, 1.0)
    return yes / (no + yes)


def _sigmoid(f: Value) -> Value:
    return 1.0 / ((f * -1.0).exp() + 1.0)


LINKS: dict[type, Callable] = {
    Clip: _clip,
    Softmax: lambda S, link: S.softmax(),
    Sigmoid: lambda S, link: _sigmoid(S),
    CalibratedSoftmax: _calibrated,
    PerTag: _per_tag,
    CalibratedTags: _calibrated_tags,
}
