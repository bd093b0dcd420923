"""Argument checks, with errors that name the argument, what was found and what to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from .data.sources import all_finite
from .messages import did_you_mean

#: Squares of larger values overflow when summed over columns; squares of smaller values underflow.
LARGEST, SMALLEST = 1e150, 1e-150
#: A larger ridge may overflow when multiplied by the weight of all rows.
LARGEST_RIDGE = 1e100
#: A kernel matrix may differ from its transpose by this share of its largest value, because of float32 rounding.
ASYMMETRY = 1e-5


def check_choice(name: str, value, known: Collection, otherwise: str = "") -> None:
    """Check that a value is one of the known ones; the error lists them, and what is accepted otherwise."""
    if not any(value is k or (isinstance(value, str) and value == k) for k in known):
        choices = ", ".join(map(repr, known)) + (f", or {otherwise}" if otherwise else "")
        raise ValueError(f"{name} must be one of {choices}, got {value!r}{did_you_mean(value, known)}.")


def look_up(name: str, value, known: Mapping[str, Any], accepts: Callable[[Any], bool], otherwise: str) -> Any:
    """The registered object with this name, or the value itself if it is an object of the user that is accepted."""
    if not isinstance(value, str) and accepts(value):
        return value
    check_choice(name, value, known, otherwise)
    return known[value]


def is_subclass(value, base: type) -> bool:
    return isinstance(value, type) and issubclass(value, base)


def check_fraction(name: str, value) -> None:
    """Check that a value is a number strictly between 0 and 1."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        raise ValueError(f"{name} must be a float in the range (0, 1), got {value!r}.")


def check_flag(name: str, value) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def check_count(name: str, value, least: int = 1) -> None:
    """Check that a value is an integer of at least ``least``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an int in the range [{least}, inf), got {value!r}.")


def check_positive(name: str, value, words, largest: float = np.inf, or_zero: bool = False) -> None:
    """Check for a positive number of at most ``largest``, a non-empty sequence of these, or one of the strings."""
    number = "a positive number or zero" if or_zero else "a positive number"
    must_be = f"{name} must be {number}, a list of these, or {' or '.join(map(repr, words))}, got {value!r}"
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f"{must_be}{did_you_mean(value, words)}.")
        return
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"{must_be}.") from None
    is_positive = (
        numbers.ndim == 1
        and numbers.size
        and (np.isfinite(numbers) & ((numbers > 0) | (or_zero & (numbers == 0)))).all()
    )
    if isinstance(value, bool) or not is_positive:
        raise ValueError(f"{must_be}.")
    if numbers.max() > largest:
        raise ValueError(f"{name} must be at most {largest:g}, because products overflow beyond it, got {value!r}.")


def check_tensor(X, estimator):
    """Check that a tensor is a matrix of finite numbers with the model's number of columns."""
    if len(X.shape) != 2:
        raise ValueError(f"X has {len(X.shape)} dimension(s); it must be a matrix with one row per sample.")
    check_columns(X.shape[1], estimator)
    if not all_finite(X):
        raise ValueError("Input X contains NaN or infinity; drop or fill such rows first.")
    return X


def check_columns(n_features: int, estimator, what: str = "features") -> None:
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} {what}, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            f"{what} as input."
        )


def check_square(X: np.ndarray) -> None:
    """Check that X is a symmetric kernel matrix."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"kernel='precomputed': X must be the square kernel matrix of the training rows, got shape {X.shape}."
        )
    tolerance = ASYMMETRY * float(np.abs(X).max(initial=0.0))
    for i in range(len(X)):
        j = int(np.argmax(np.abs(X[i] - X[:, i])))
        if abs(X[i, j] - X[j, i]) > tolerance:
            raise ValueError(
                f"kernel='precomputed': X is not symmetric: X[{i}, {j}] = {X[i, j]:.6g}, X[{j}, {i}] = {X[j, i]:.6g}. "
                "A kernel is symmetric, k(x, z) = k(z, x); pass (X + X.T)/2 if that is what you want."
            )


def check_lengths(X, labels) -> None:
    if len(labels) != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows but y has {len(labels)}: inconsistent numbers of samples.")


def check_given_centers(centers, d: int, precomputed: bool) -> None:
    """Check centres given as points with d columns, or as column indices of a precomputed kernel."""
    if not sparse.issparse(centers) and np.asarray(centers).dtype.kind not in "fiub":
        raise TypeError("centers must be numbers, with one row per centre.")
    if precomputed:
        index = np.asarray(centers)
        if index.ndim != 1 or index.dtype.kind not in "iu" or not len(index) or index.min() < 0 or index.max() >= d:
            raise ValueError(f"centers: with kernel='precomputed' pass column indices below {d}, got {centers!r}.")
        return
    shape = np.shape(centers)
    if len(shape) != 2 or shape[1] != d or not shape[0]:
        raise ValueError(f"centers has shape {shape}; it must have shape (b, {d}), with the columns of X.")
    values = centers.data if sparse.issparse(centers) else np.asarray(centers, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("centers contains NaN or infinity; all values must be finite.")


def check_magnitude(name: str, values: Any, smallest: float = 0.0) -> None:
    """Check that squares do not overflow, and not all underflow; rows to predict may well be nearly zero."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest > LARGEST:
        raise ValueError(
            f"{name} has values above {LARGEST:g}, whose squares overflow; use scaling='robust' or rescale {name}."
        )
    if 0.0 < largest < smallest:
        raise ValueError(
            f"{name} has no value above {largest:g}, so all squares underflow; use scaling='robust' or rescale {name}."
        )
