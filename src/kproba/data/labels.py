"""Encoding of labels and checks of weights, with errors that name the argument."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from ..messages import did_you_mean

#: The sums, squares or quotients of weights outside this range overflow or underflow.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-15, 1e15
#: Rows with less than this fraction of the largest weight vanish in every sum and are treated as rows of weight zero.
LOST_SHARE = 1e-15


def encode_labels(y) -> tuple[np.ndarray, np.ndarray]:
    """Classes and labels: ``(classes, codes)``, or ``(tags, 0/1 matrix)`` for a multi-label y.

    A matrix of tags may have missing values (NaN, None, pandas' NA); they are returned as NaN.

    >>> encode_labels(["b", "a", "b"])
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    >>> encode_labels([[0, 1], [None, 0]])[1]
    array([[ 0.,  1.],
           [nan,  0.]])
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    if _is_empty(y):
        raise ValueError("y is empty; pass one label for each row of X.")
    tags = getattr(y, "columns", None)
    if sparse.issparse(y):
        y = y.toarray()
    _refuse_lists_of_tags(y)
    if _may_have_missing_tags(values := np.asarray(y)):
        return _encode_missing_tags(values, tags)
    _refuse_missing(y)
    _refuse_mixed_labels(y)
    check_classification_targets(y)
    if type_of_target(y, input_name="y") == "multilabel-indicator":
        return _encode_tags(np.asarray(y), tags)
    classes, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has only one class ({classes.tolist()[0]!r}); a classifier needs at least 2 classes.")
    return classes, codes.ravel()


def _is_empty(y) -> bool:
    if hasattr(y, "shape"):
        return tuple(y.shape[:1]) == (0,)
    return hasattr(y, "__len__") and not len(y)


def _refuse_lists_of_tags(y) -> None:
    """Raise an error for lists of tags, and name scikit-learn's helper that converts them to a matrix."""
    if isinstance(y, list | tuple) and len({len(each) for each in y if isinstance(each, list | tuple | set)}) > 1:
        raise ValueError(
            "y is a list of lists of different lengths; tags must be a 0/1 matrix: use "
            "MultiLabelBinarizer().fit_transform(y)."
        )


def _refuse_mixed_labels(y) -> None:
    """Raise an error for labels that cannot be sorted, such as strings and numbers."""
    values = np.asarray(y)
    kinds = {str if isinstance(v, str) else type(v) for v in values.ravel()} if values.dtype.kind == "O" else set()
    if len(kinds) > 1 and str in kinds:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(f"y mixes labels of different types ({names}); convert them to one type, such as strings.")


def _encode_tags(y, tags):
    if not np.isin(y, (0, 1)).all():
        found = ", ".join(map(str, np.unique(y)[:4]))
        raise ValueError(f"y is a matrix of tags with values {found}; a multi-label y must only contain 0 and 1.")
    return _tag_names(tags, y.shape[1]), y.astype(np.float64)


def _tag_names(tags, n_tags: int) -> np.ndarray:
    return np.asarray(tags) if tags is not None and len(tags) == n_tags else np.arange(n_tags)


def _may_have_missing_tags(y: np.ndarray) -> bool:
    """Whether y has several columns with NaN or Python objects, which scikit-learn does not accept as a target."""
    if y.ndim != 2 or y.shape[1] < 2:
        return False
    return y.dtype.kind == "O" or (y.dtype.kind == "f" and bool(np.isnan(y).any()))


def _encode_missing_tags(y: np.ndarray, tags):
    """Encode tags with missing values; each tag must be known in at least one row."""
    names, labels = _tag_names(tags, y.shape[1]), tag_values(y, tags)
    refuse_unknown_tags(labels, names)
    return names, labels


def tag_values(y: np.ndarray, tags=None, where: str = "y") -> np.ndarray:
    """A matrix of 0, 1 and missing values as floats with NaN."""
    labels, kind = np.full(y.shape, np.nan), y.dtype.kind
    known = ~(np.isnan(y) if kind == "f" else np.vectorize(is_missing, otypes=[bool])(y)) if kind in "fO" else y == y
    labels[known] = [value if value in (0, 1) else np.nan for value in y[known].tolist()]
    wrong = np.argwhere(known & np.isnan(labels))
    if len(wrong):
        row, column = wrong[0]
        value, name = y[[row], column].tolist()[0], _tag_names(tags, y.shape[1]).tolist()[column]
        raise ValueError(f"{where} has the value {value!r} for the tag {name!r}; a tag must be 0, 1 or missing.")
    return labels


def refuse_unknown_tags(labels: np.ndarray, names: np.ndarray) -> None:
    """Raise an error for tags that are missing in all rows."""
    unknown = names[np.isnan(labels).all(axis=0)]
    if len(unknown):
        raise ValueError(
            f"y has no value for the tag {unknown.tolist()[0]!r}: it is missing in every row of positive weight; leave "
            "the column out."
        )


def _refuse_missing(y) -> None:
    values = np.asarray(y)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("Input y contains NaN or infinity; drop or fill those rows first.")
    if values.dtype.kind == "O" and any(is_missing(v) for v in values.ravel()):
        raise ValueError("Input y contains missing labels (None or NaN); drop or fill those rows first.")


def is_missing(value) -> bool:
    """Whether a value is None, NaN or pandas' NA, whose comparison with itself is neither true nor false."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return True


def are_strings(y: np.ndarray) -> bool:
    """Whether an array of objects holds nothing but strings."""
    return y.dtype.kind == "O" and set(map(type, y.ravel().tolist())) == {str}


def numbered(y: np.ndarray) -> tuple[list, np.ndarray]:
    """The distinct labels of strings in any order, and the number of each: faster than sorting them."""
    values = y.tolist()
    number = {label: k for k, label in enumerate(dict.fromkeys(values))}
    return list(number), np.fromiter(map(number.__getitem__, values), dtype=np.intp, count=len(values))


UNKNOWN = "y has the label {!r}, which is not among the classes {}; pass all classes with classes= in the first call."


def encode(y: np.ndarray, classes: np.ndarray, message: str = UNKNOWN) -> np.ndarray:
    """The index of each label in the classes; ``message`` is the error about a label that is not among them."""
    kinds = {y.dtype.kind, classes.dtype.kind}
    if kinds <= set("iu") and (np.diff(classes) == 1).all():  # counting is faster than searching
        codes = y.astype(np.intp)
        codes -= np.intp(classes[0])
        if not len(y) or (codes.min() >= 0 and codes.max() < len(classes)):
            return codes
        unknown = (codes < 0) | (codes >= len(classes))
    elif kinds <= set("iufb") or kinds == {"U"}:
        order = np.argsort(classes, kind="stable")
        codes = order[np.minimum(np.searchsorted(classes, y, sorter=order), len(classes) - 1)]
        unknown = classes[codes] != y
    else:  # objects need not be comparable, and looking them up is faster than sorting them in
        number = {label: k for k, label in enumerate(classes.tolist())}
        codes = np.fromiter((number.get(label, -1) for label in y.tolist()), dtype=np.intp, count=len(y))
        unknown = codes < 0
    if unknown.any():
        raise ValueError(message.format(y[unknown].tolist()[0], classes.tolist()))
    return codes


def check_labels_and_proba(y_true, proba, labels) -> tuple[np.ndarray, np.ndarray]:
    """The column of each row's label, and the probabilities as a float64 array."""
    proba = check_array(proba, dtype=np.float64, input_name="proba")
    y_true = np.asarray(y_true)
    check_consistent_length(y_true, proba)
    labels = np.unique(y_true) if labels is None else np.asarray(labels)
    check_one_column_per_label("proba", proba, labels)
    return label_codes(y_true, labels, "y_true"), proba


def check_one_column_per_label(name: str, proba: np.ndarray, labels: np.ndarray) -> None:
    if proba.shape[1] != len(labels):
        raise ValueError(
            f"{name} has {proba.shape[1]} columns but there are {len(labels)} labels; list all classes in `labels`."
        )


def label_codes(y, labels: np.ndarray, name: str = "y") -> np.ndarray:
    """The index of each entry of ``y`` in ``labels``, which need not be sorted."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"{name} has shape {y.shape}; give one label per row. Multi-label targets are not supported.")
    return encode(y, labels, f"{name} has the label {{!r}}, which is not among {{}}.")


def check_groups(groups, n: int) -> np.ndarray:
    """The number of each row's group, from one label per row."""
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups must have shape ({n},), one label per row of X, got shape {labels.shape}.")
    if any(label is None or label != label for label in labels.tolist()):
        raise ValueError("groups has missing values; give each row a group, a single row one of its own.")
    number = np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)[1].ravel()
    if number.max(initial=0) == 0:
        raise ValueError("groups puts all rows into one group; at least 2 are needed to leave one out.")
    return number


def check_weights(sample_weight, n: int) -> np.ndarray:
    """Weights as float64 (n,); None becomes ones, and a scalar applies to all rows."""
    if sample_weight is None:
        return np.ones(n)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("sample_weight must contain numbers, one for each row of X.") from None
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected ({n},): one weight for each row of X.")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity; every weight must be a finite number.")
    if (weight < 0).any():
        raise ValueError(f"sample_weight has negative values (smallest: {weight.min():g}); weights must be at least 0.")
    if not (weight > 0).any():
        raise ValueError("sample_weight is zero for every row; at least one weight must be positive.")
    largest = float(weight.max())
    if not SMALLEST_WEIGHT <= largest <= LARGEST_WEIGHT:
        raise ValueError(
            f"the largest sample_weight is {largest:g}; it must be between {SMALLEST_WEIGHT:g} and "
            f"{LARGEST_WEIGHT:g}, since a weight counts copies of a row: rescale the weights."
        )
    return np.where(weight < LOST_SHARE * largest, 0.0, weight)


def row_weights(sample_weight, n: int) -> np.ndarray:
    """The checked weights of a fit. If the largest is below one, they are divided by it.

    A weight counts copies of a row, so weights that sum to one would stand for a single row.
    """
    weight = check_weights(sample_weight, n)
    return _at_least_one(weight)


def _at_least_one(weight: np.ndarray) -> np.ndarray:
    """Weights divided by the largest, if that is below one."""
    return weight / min(1.0, float(weight.max(initial=0.0)) or 1.0)


def class_factors(class_weight, classes, labels, weight) -> np.ndarray | float:
    """The factor for each row's weight that follows from ``class_weight`` (None, "balanced", or a dict).

    Only the ratios of factors that are all below one matter, as for weights.
    """
    if class_weight is None:
        return 1.0
    if labels.ndim == 2:
        raise ValueError("class_weight does not apply to a multi-label y; use sample_weight.")
    if isinstance(class_weight, str):
        return _balanced(class_weight, labels, weight, len(classes))[labels]
    if not isinstance(class_weight, Mapping):
        raise TypeError(f"class_weight must be None, 'balanced' or a dict from class to factor, got {class_weight!r}.")
    factors = np.ones(len(classes))
    for label, factor in class_weight.items():
        found = np.flatnonzero(classes == label)
        if not len(found):
            raise ValueError(f"class_weight has the class {label!r}, which does not occur in y.")
        if not (isinstance(factor, float | int | np.number) and np.isfinite(factor) and factor >= 0):
            raise ValueError(f"class_weight[{label!r}] = {factor!r}; a factor must be finite and at least 0.")
        if factor != 0 and not SMALLEST_WEIGHT <= factor <= LARGEST_WEIGHT:
            raise ValueError(
                f"class_weight[{label!r}] = {factor!r}; a factor must be 0 or a number between {SMALLEST_WEIGHT:g} and "
                f"{LARGEST_WEIGHT:g}."
            )
        factors[found] = factor
    return _at_least_one(factors)[labels]


def _balanced(class_weight, labels, weight, c: int) -> np.ndarray:
    if class_weight != "balanced":
        hint = did_you_mean(class_weight, ["balanced"])
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}{hint}.")
    mass = np.bincount(labels, weight, c)
    return weight.sum() / (np.count_nonzero(mass) * np.where(mass > 0, mass, np.inf))
