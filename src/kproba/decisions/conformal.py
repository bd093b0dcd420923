"""Sets of labels that hold the truth as often as promised, from probabilities of rows whose labels are known."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from ..exceptions import FewRowsWarning
from ..messages import warn
from ..typing import RandomState, Targets
from ..validation import check_choice, check_fraction

#: Scores of a label: how far its probability is from one, or the probability of all labels down to it.
SCORES = ("lac", "aps")


def conformal_sets(
    proba_calibration: ArrayLike,
    y: Targets,
    proba_new: ArrayLike,
    coverage: float = 0.95,
    *,
    labels: ArrayLike | None = None,
    method: Literal["lac", "aps"] | str = "lac",
    by_class: bool = False,
    allow_empty: bool = False,
    randomize: bool = False,
    random_state: RandomState = None,
) -> np.ndarray:
    """Sets of labels that hold the truth of a new row with probability ``coverage``.

    A label belongs to the set if its score is at most the ⌈(n + 1)·coverage⌉-th smallest of the scores that the n
    calibration rows have for their own labels. A new row that is exchangeable with them has its true label in the set
    with at least that probability, whatever the classifier, as long as the classifier did not learn from those rows.

    Parameters
    ----------
    proba_calibration : array of shape (n, n_classes)
        Probabilities of rows that the classifier has not seen.
    y : array of shape (n,)
        Their labels.
    proba_new : array of shape (m, n_classes)
        Probabilities of new rows.
    coverage : float, default=0.95
        Share of new rows whose set is to hold the truth.
    labels : array of shape (n_classes,), optional
        What the columns stand for, in their order. None takes the sorted labels of ``y``.
    method : {"lac", "aps"}, default="lac"
        ``"lac"`` scores a label by 1 − p: the smallest sets on average (Sadinle, Lei and Wasserman, 2019). ``"aps"``
        scores it by the probability of all labels that are at least as probable: larger sets, whose size follows the
        difficulty of a row (Romano, Sesia and Candès, 2020).
    by_class : bool, default=False
        Promise the coverage within each class (*mondrian*); a class with fewer than coverage/(1 − coverage) calibration
        rows is in every set.
    allow_empty : bool, default=False
        Leave sets empty where no label is plausible. Otherwise they hold the most probable one, which only adds to the
        coverage.
    randomize : bool, default=False
        With ``"aps"``, take a random share of a label's own probability off its score, as in the paper: smaller sets.
    random_state : int, RandomState or None, default=None
        Seed of those shares.

    Returns
    -------
    bool array of shape (m, n_classes): whether each label is in the set.

    Examples
    --------
    >>> known = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> conformal_sets(known, ["a", "a", "b", "b"], [[0.95, 0.05], [0.5, 0.5]], coverage=0.6)
    array([[ True, False],
           [ True, False]])
    """
    check_options(coverage, method, by_class, allow_empty, randomize)
    known, new = (
        check_array(p, dtype=np.float64, input_name=name, ensure_min_samples=least)
        for p, name, least in ((proba_calibration, "proba_calibration", 1), (proba_new, "proba_new", 0))
    )
    labels = np.unique(np.asarray(y)) if labels is None else np.asarray(labels)
    codes = label_codes(y, labels)
    for proba, name in ((known, "proba_calibration"), (new, "proba_new")):
        if proba.shape[1] != len(labels):
            raise ValueError(
                f"{name} has {proba.shape[1]} columns but there are {len(labels)} labels; name all of them by `labels`."
            )
    if len(codes) != len(known):
        raise ValueError(f"proba_calibration has {len(known)} rows but y has {len(codes)} labels.")
    return sets_from_codes(known, codes, new, coverage, method, by_class, allow_empty, randomize, random_state)


def sets_from_codes(
    known, codes, new, coverage, method, by_class, allow_empty, randomize=False, random_state=None
) -> np.ndarray:
    """The same with class numbers instead of labels, all of them checked."""
    random = check_random_state(random_state) if randomize else None
    own = _scores(known, method, random)[np.arange(len(codes)), codes]
    parts = [own[codes == c] for c in range(known.shape[1])] if by_class else [own]
    most = np.array([_quantile(part, coverage) for part in parts])
    _warn_of_few_rows(parts, most, coverage)
    found = _scores(new, method, random) <= most
    if not allow_empty:
        empty = np.flatnonzero(~found.any(axis=1))
        found[empty, new[empty].argmax(axis=1)] = True
    return found


def _warn_of_few_rows(parts: list[np.ndarray], most: np.ndarray, coverage: float) -> None:
    """Warn where a label is in every set because no score of so few rows could keep it out."""
    few = [len(part) for part, quantile in zip(parts, most) if np.isinf(quantile)]
    if few:
        least, which = int(np.ceil(coverage / (1.0 - coverage) - 1e-9)), "every label"
        if len(parts) > 1:
            which = f"the labels of {len(few)} classes" if len(few) > 1 else "the label of one class"
        warn(
            f"coverage={coverage:g} takes {least} calibration rows{' of every class' if len(parts) > 1 else ''}, and "
            f"there are {min(few)}: {which} will be in every set. Give more rows, or ask for less coverage.",
            FewRowsWarning,
        )


def label_codes(y, labels: np.ndarray) -> np.ndarray:
    """Which of the labels each entry of y is."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}; one label for every row is needed, tags have no set of their own.")
    order = np.argsort(labels, kind="stable")
    place = np.minimum(np.searchsorted(labels[order], y), len(labels) - 1)
    codes = order[place]
    unknown = labels[codes] != y
    if unknown.any():
        raise ValueError(f"y has the label {y[unknown].tolist()[0]!r}, which is not among {labels.tolist()}.")
    return codes


def check_options(coverage, method, by_class, allow_empty, randomize) -> None:
    """Refuse what is no way to make sets."""
    check_fraction("coverage", coverage)
    check_choice("method", method, SCORES)
    for name, value in (("by_class", by_class), ("allow_empty", allow_empty), ("randomize", randomize)):
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name}={value!r} must be True or False.")
    if randomize and method != "aps":
        raise ValueError("randomize=True belongs to method='aps'; the scores of 'lac' have nothing to take off.")


def _quantile(own: np.ndarray, coverage: float) -> float:
    """The ⌈(n + 1)·coverage⌉-th smallest score; infinite where there are too few of them."""
    # what is a whole number but for rounding must not become the next one
    place = int(np.ceil((len(own) + 1) * float(coverage) - 1e-9))
    return np.inf if place > len(own) else float(np.partition(own, place - 1)[place - 1])


def _scores(proba: np.ndarray, method: str, random) -> np.ndarray:
    """How implausible each label of each row is."""
    if method == "lac":
        return 1.0 - proba
    order = np.argsort(-proba, axis=1, kind="stable")
    down_to = np.cumsum(np.take_along_axis(proba, order, axis=1), axis=1)
    scores = np.empty_like(proba)
    np.put_along_axis(scores, order, down_to, axis=1)
    return scores if random is None else scores - random.uniform(size=(len(proba), 1)) * proba
