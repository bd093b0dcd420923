"""Conformal prediction: sets of labels that contain the true label with a given probability."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from ..data.labels import check_one_column_per_label, label_codes
from ..exceptions import FewRowsWarning
from ..messages import warn
from ..typing import RandomState, Targets
from ..validation import check_choice, check_fraction

#: Scores of a label: one minus its probability, or the probability of all labels that are at least as probable.
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
    """Sets of labels that contain the true label of a new row with probability ``coverage``.

    A label is in the set if its score is at most the ⌈(n + 1)·coverage⌉-th smallest score that the n calibration rows
    have for their own labels. If a new row is exchangeable with these, its set contains the true label with at least
    that probability. This holds for any classifier that was not fitted on the calibration rows.

    Parameters
    ----------
    proba_calibration : array of shape (n, n_classes)
        Probabilities of rows that the classifier was not fitted on. For the training rows of a classifier whose
        kernel was learnt, use ``oof_proba_``.
    y : array of shape (n,)
        Their labels.
    proba_new : array of shape (m, n_classes)
        Probabilities of new rows.
    coverage : float, default=0.95
        Share of new rows whose set should contain the true label.
    labels : array of shape (n_classes,), optional
        The classes of the columns, in order. By default the sorted labels of ``y``.
    method : {"lac", "aps"}, default="lac"
        ``"lac"`` scores a label by 1 − p, which gives the smallest sets on average (Sadinle, Lei and Wasserman, 2019).
        ``"aps"`` scores it by the probability of all labels that are at least as probable, which gives larger sets
        whose size reflects the difficulty of a row (Romano, Sesia and Candès, 2020).
    by_class : bool, default=False
        Guarantee the coverage within each class (*Mondrian*). A class with fewer than coverage/(1 − coverage)
        calibration rows is in every set.
    allow_empty : bool, default=False
        Return empty sets for rows with no plausible label. By default these contain the most probable label, which
        can only increase the coverage.
    randomize : bool, default=False
        With ``"aps"``, subtract a random share of a label's probability from its score, as in the paper. This makes
        the sets smaller.
    random_state : int, RandomState or None, default=None
        Seed for these shares.

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
        check_array(p, dtype=(np.float64, np.float32), input_name=name, ensure_min_samples=least)
        for p, name, least in ((proba_calibration, "proba_calibration", 1), (proba_new, "proba_new", 0))
    )
    # rounded alike: otherwise rows with the same probabilities have scores on either side of a quantile
    digits = min(known.dtype, new.dtype, key=lambda dtype: dtype.itemsize)
    known, new = (p.astype(digits).astype(np.float64) for p in (known, new))
    labels = np.unique(np.asarray(y)) if labels is None else np.asarray(labels)
    codes = label_codes(y, labels)
    for proba, name in ((known, "proba_calibration"), (new, "proba_new")):
        check_one_column_per_label(name, proba, labels)
    if len(codes) != len(known):
        raise ValueError(f"proba_calibration has {len(known)} rows but y has {len(codes)} labels.")
    return sets_from_codes(known, codes, new, coverage, method, by_class, allow_empty, randomize, random_state)


def sets_from_codes(
    known, codes, new, coverage, method, by_class, allow_empty, randomize=False, random_state=None
) -> np.ndarray:
    """Like ``conformal_sets``, for checked arguments and class indices instead of labels."""
    random = check_random_state(random_state) if randomize else None
    own = _scores(known, method, random)[np.arange(len(codes)), codes]
    parts = [own[codes == c] for c in range(known.shape[1])] if by_class else [own]
    most = np.array([_quantile(part, coverage) for part in parts])
    _warn_about_few_rows(parts, most, coverage)
    found = _scores(new, method, random) <= most
    if not allow_empty:
        empty = np.flatnonzero(~found.any(axis=1))
        found[empty, new[empty].argmax(axis=1)] = True
    return found


def _warn_about_few_rows(parts: list[np.ndarray], most: np.ndarray, coverage: float) -> None:
    """Warn if there are too few calibration rows to exclude a label from any set."""
    few = [len(part) for part, quantile in zip(parts, most) if np.isinf(quantile)]
    if few:
        least, which = int(np.ceil(coverage / (1.0 - coverage) - 1e-9)), "every label"
        if len(parts) > 1:
            which = f"the labels of {len(few)} classes" if len(few) > 1 else "the label of one class"
        warn(
            f"coverage={coverage:g} needs {least} calibration rows{' of each class' if len(parts) > 1 else ''}, but "
            f"there are {min(few)}: {which} will be in every set. Use more rows or a lower coverage.",
            FewRowsWarning,
        )


def check_options(coverage, method, by_class, allow_empty, randomize) -> None:
    """Check the options of ``conformal_sets``."""
    check_fraction("coverage", coverage)
    check_choice("method", method, SCORES)
    for name, value in (("by_class", by_class), ("allow_empty", allow_empty), ("randomize", randomize)):
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name}={value!r} must be True or False.")
    if randomize and method != "aps":
        raise ValueError("randomize=True requires method='aps'; the scores of 'lac' are not randomized.")


def _quantile(own: np.ndarray, coverage: float) -> float:
    """The ⌈(n + 1)·coverage⌉-th smallest score, or infinity if there are fewer."""
    # a whole number up to rounding must not be rounded up to the next one
    place = int(np.ceil((len(own) + 1) * float(coverage) - 1e-9))
    return np.inf if place > len(own) else float(np.partition(own, place - 1)[place - 1])


def _scores(proba: np.ndarray, method: str, random) -> np.ndarray:
    """How implausible each label of each row is."""
    if method == "lac":
        return 1.0 - proba
    order = np.argsort(-proba, axis=1, kind="stable")
    down_to = np.cumsum(np.take_along_axis(proba, order, axis=1), axis=1)
    # all labels together have the probability 1, which rounding must not put on either side of a quantile of 1
    total = down_to[:, -1:].copy()
    np.divide(down_to, total, out=down_to, where=total > 0)
    scores = np.empty_like(proba)
    np.put_along_axis(scores, order, down_to, axis=1)
    return scores if random is None else scores - random.uniform(size=(len(proba), 1)) * proba
