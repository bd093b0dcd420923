"""Leaving doubtful rows undecided: thresholds with a promise, costs, and sets of labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import bdtr
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..data.labels import check_weights
from ..estimators._base import KernelClassifier, is_source
from ..exceptions import NothingKeptWarning
from ..typing import Inputs, Method, RandomState, Targets, available_if
from ..validation import check_choice, check_fraction, check_lengths
from .conformal import check_options, label_codes, sets_from_codes
from .risk_coverage import error_upper_bound, errors_by_rank, risk_coverage

#: The tests begin where so many errors may be forgiven, if that is at most this share of the rows: one unlucky row
#: among the surest must not end them, and few rows must not be spent on the beginning.
FORGIVEN, BEGINNING = 4, 0.2


def _passed_on(name: str) -> Callable[[Method], Method]:
    def has(self) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)  # its own AttributeError says why it is not there
        return True

    return available_if(has)


class RejectOption(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""A classifier that leaves doubtful rows undecided.

    ``predict`` gives ``reject_label`` for rows whose largest probability is below ``threshold_`` (textbook ch. 28,
    opening). With ``max_error`` the threshold is the smallest for which the error among the rows kept is at most
    ``max_error``, with probability ``confidence`` over the calibration rows. These are the training rows with their
    leave-one-out probabilities: nothing is fitted twice, nothing is held out.

    **The promise.** Rows are sorted from the surest down. Of the k surest, e were wrong; the test of "their error is
    above ``max_error``" has the p-value :math:`P(\mathrm{Bin}(k, \text{max\_error}) \le e)`. Starting from a rank that
    depends on the number of rows alone, ranks are tested one after the other at level 1 − ``confidence`` until one
    fails: fixed-sequence testing, which needs no correction for the number of tests (Angelopoulos et al., 2021, *Learn
    then test*). It is exact for rows that the classifier has not seen (``FrozenEstimator``), if the error among the
    rows kept does not fall as the threshold falls. Leave-one-out probabilities are not independent of each other, and
    they chose the parameters, so that there the promise is approximate; ``docs/reject.md`` has the proof and measures
    both.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        It is cloned and fitted; in a ``FrozenEstimator`` it is used as it is, and the rows given to ``fit`` must be
        others than those it was fitted on.
    max_error : float, optional
        The largest error among the rows kept. Give this, ``cost`` or ``threshold``.
    cost : float or array of shape (n_classes, n_classes + 1), optional
        Cost of a rejection where an error costs one: rows with 1 − max p > cost are rejected (Chow, 1970). A matrix has
        the cost of deciding for class j (the column) where i is true (the row), and in its last column that of a
        rejection; what is expected to cost least is decided.
    threshold : float, optional
        Rows whose largest probability is below it are rejected; 0 keeps all.
    confidence : float, default=0.95
        Probability of ``max_error``, and of ``error_bound_`` and the bounds of ``risk_coverage_curve_``.
    reject_label : optional
        What ``predict`` says of a doubtful row. None is "reject" where the classes are strings or other objects, and −1
        for numbers, or one below the smallest class if that is negative. It must not be a class.
    calibration : {"auto", "loo", "cv"}, default="auto"
        Where the probabilities of rows that the model has not seen come from: ``loo_proba_`` of the fitted estimator,
        which chose its parameters and flatters a little, or ``cross_val_predict``, which refits it. ``"auto"`` takes
        the first where the estimator has it.
    cv : int or splitter, default=5
        Folds of ``calibration="cv"``.

    Attributes
    ----------
    estimator_, classes_ : the fitted classifier and its classes.
    threshold_ : float; infinite where nothing may be kept. For a matrix of costs it is 0, and rows are kept whose
        cheapest decision is expected to cost no more than a rejection.
    coverage_, error_ : share of the calibration rows kept, and of errors among them.
    error_bound_ : what the error among the rows kept is at most, with probability ``confidence``: ``max_error``, or the
        bound of Clopper and Pearson where the threshold did not depend on the rows.
    reject_label_ : what stands for a rejection.
    calibrated_by_ : "loo", "cv" or "frozen".
    calibration_proba_, calibration_labels_ : arrays (n, n_classes) and (n,) that all this was computed from.
    risk_coverage_curve_ : dict of arrays thresholds, coverage, error and upper_bound, from the surest row down; each
        bound holds on its own with probability ``confidence``.

    Notes
    -----
    ``sample_weight`` goes to the estimator. Rows of weight zero are left out of the calibration; all others count once:
    errors of weighted rows are not binomial.

    ``score`` is the share of rows that are kept and right. scikit-learn's checks hold with ``threshold=0``; where rows
    are rejected, ``predict`` cannot be the argmax of ``predict_proba``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from kproba import LSPC, RejectOption
    >>> X, X_new, y, y_new = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> clf = RejectOption(LSPC(random_state=0), max_error=0.02).fit(X, y)
    >>> kept = ~clf.rejects(X_new)
    >>> bool((clf.predict(X_new) != y_new)[kept].mean() < 0.02), bool(kept.mean() > 0.7)
    (True, True)
    >>> clf.predict_set(X_new[:1], coverage=0.99, as_labels=True)
    [array([0])]
    """

    def __init__(
        self,
        estimator: Any,
        *,
        max_error: float | None = None,
        cost: Any = None,
        threshold: float | None = None,
        confidence: float = 0.95,
        reject_label: Any = None,
        calibration: Literal["auto", "loo", "cv"] | str = "auto",
        cv: Any = 5,
    ) -> None:
        self.estimator = estimator
        self.max_error = max_error
        self.cost = cost
        self.threshold = threshold
        self.confidence = confidence
        self.reject_label = reject_label
        self.calibration = calibration
        self.cv = cv

    def fit(self, X: Inputs, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier and choose the threshold; with a ``FrozenEstimator``, choose it on these rows."""
        self._check_parameters()
        frozen = isinstance(self.estimator, FrozenEstimator)
        if is_source(X) and not frozen:
            raise TypeError(
                "X is a source of rows, which has no leave-one-out probabilities; fit the classifier on it, and give "
                "RejectOption(FrozenEstimator(classifier), ...) some other rows in memory."
            )
        y = _one_column(y)
        proba = self._calibrate(X, y, sample_weight, frozen)
        self.classes_ = np.asarray(self.estimator_.classes_)
        check_lengths(proba, y)
        counted = check_weights(sample_weight, len(y)) > 0
        self.calibration_proba_ = np.asarray(proba, dtype=np.float64)[counted]
        self.calibration_labels_ = y[counted]
        self.reject_label_ = _label_of_rejection(self.reject_label, self.classes_)
        self._check_cost(len(self.classes_))
        self._choose(label_codes(self.calibration_labels_, self.classes_))
        return self

    def predict(self, X: Inputs) -> np.ndarray:
        """The class of each row, or ``reject_label_`` for the doubtful."""
        codes, certainty = self._decide(np.asarray(self._proba(X)))
        labels = self.classes_.astype(_dtype_with(self.reject_label_, self.classes_))[codes]
        labels[certainty < self.threshold_] = self.reject_label_
        return labels

    def rejects(self, X: Inputs) -> np.ndarray:
        """Whether each row is left undecided."""
        return self._decide(np.asarray(self._proba(X)))[1] < self.threshold_

    @_passed_on("predict_proba")
    def predict_proba(self, X: Inputs) -> np.ndarray:
        """The classifier's probabilities, of all rows."""
        return self._proba(X)

    @_passed_on("predict_proba")
    def predict_log_proba(self, X: Inputs) -> np.ndarray:
        """Their natural logarithms: the classifier's own, where it has them."""
        check_is_fitted(self)
        if hasattr(self.estimator_, "predict_log_proba"):
            return self.estimator_.predict_log_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(self._proba(X))

    @_passed_on("decision_function")
    def decision_function(self, X: Inputs) -> np.ndarray:
        """The classifier's decision function, of all rows."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    def predict_set(
        self,
        X: Inputs,
        coverage: float = 0.95,
        *,
        method: Literal["lac", "aps"] | str = "lac",
        by_class: bool = False,
        allow_empty: bool = False,
        randomize: bool = False,
        random_state: RandomState = None,
        as_labels: bool = False,
    ) -> Any:
        """Sets of labels that hold the truth of a new row with probability ``coverage``.

        They come from the scores of the calibration rows; nothing is fitted. With a ``FrozenEstimator`` the coverage is
        guaranteed. With leave-one-out it is what a stable classifier has: one whose prediction of a row changes
        little when a single other row is left out of the fit. See :func:`kproba.conformal_sets` for the options.

        Returns
        -------
        bool array of shape (n, n_classes) in the order of ``classes_``; with ``as_labels`` a list of arrays of labels.
        """
        check_is_fitted(self)
        check_options(coverage, method, by_class, allow_empty, randomize)
        known, codes = self.calibration_proba_, label_codes(self.calibration_labels_, self.classes_)
        new = np.asarray(self._proba(X), dtype=np.float64)
        found = sets_from_codes(known, codes, new, coverage, method, by_class, allow_empty, randomize, random_state)
        return [self.classes_[row] for row in found] if as_labels else found

    def curve_of(self, X: Inputs = None, y: Targets = None, confidence: float | None = None) -> dict[str, np.ndarray]:
        """Like ``risk_coverage_curve_``, of other rows or with bounds of another confidence."""
        check_is_fitted(self)
        confidence = self.confidence if confidence is None else confidence
        check_fraction("confidence", confidence)
        if (X is None) != (y is None):
            raise ValueError("give X and y, or neither for the calibration rows.")
        proba, y = (self.calibration_proba_, self.calibration_labels_) if X is None else (np.asarray(self._proba(X)), y)
        decided, certainty = self._decide(proba)
        return risk_coverage(certainty, decided != label_codes(y, self.classes_)).with_bounds(confidence)

    def _calibrate(self, X, y, sample_weight, frozen: bool) -> np.ndarray:
        """Fit, and find what the classifier says of each row without having seen it."""
        _need_probabilities(self.estimator)
        if frozen:
            self.estimator_, self.calibrated_by_ = self.estimator, "frozen"
            check_is_fitted(self.estimator.estimator)
            return self._proba(X)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = _asked_for_loo(clone(self.estimator), self.calibration).fit(X, y, **weights)
        self.calibrated_by_ = "cv" if self.calibration == "cv" else "loo"
        if self.calibrated_by_ == "loo" and not hasattr(self.estimator_, "loo_proba_"):
            if self.calibration == "loo":
                raise ValueError(
                    f"calibration='loo': {type(self.estimator_).__name__} has no loo_proba_; use calibration='cv'."
                )
            self.calibrated_by_ = "cv"
        if self.calibrated_by_ == "loo":
            return self.estimator_.loo_proba_
        from sklearn.model_selection import cross_val_predict  # slow to import, seldom needed

        return cross_val_predict(
            clone(self.estimator), X, y, cv=self.cv, method="predict_proba", params=weights or None
        )

    def _choose(self, codes: np.ndarray) -> None:
        """The threshold, and what it does to the calibration rows."""
        decided, certainty = self._decide(self.calibration_proba_)
        wrong = decided != codes
        self.risk_coverage_curve_ = risk_coverage(certainty, wrong).with_bounds(float(self.confidence))
        if self.max_error is not None:
            k = safe_rank(certainty, wrong, self.max_error, 1.0 - self.confidence)
            self.threshold_ = float(np.sort(certainty)[-k]) if k else np.inf
        elif self.threshold is not None:
            self.threshold_ = float(self.threshold)
        else:
            self.threshold_ = 0.0 if np.ndim(self.cost) else 1.0 - float(self.cost)
        kept = certainty >= self.threshold_
        n_kept, n_wrong = int(kept.sum()), int(wrong[kept].sum())
        self.coverage_ = n_kept / len(wrong)
        self.error_ = n_wrong / n_kept if n_kept else 0.0
        self.error_bound_ = float(error_upper_bound(n_wrong, n_kept, self.confidence))
        if self.max_error is not None and n_kept:
            self.error_bound_ = float(self.max_error)  # the tests allow this one, and no tighter one
        elif self.max_error is not None:
            self._warn_of_nothing_kept(self.max_error, len(wrong))

    def _warn_of_nothing_kept(self, max_error: float, n: int) -> None:
        least = fewest_rows(max_error, 1.0 - self.confidence)
        if least > n:
            why = f"even without an error that takes {least} calibration rows, and there are {n}"
        else:
            bounds = self.risk_coverage_curve_["upper_bound"]
            why = f"the lowest bound of any threshold on {n} calibration rows is {bounds.min():.3g}"
        warnings.warn(
            f"max_error={max_error} at confidence={self.confidence}: no threshold was shown to keep it ({why}), "
            "so every row is rejected. Allow more errors, ask for less confidence, or give more rows.",
            NothingKeptWarning,
            stacklevel=4,
        )

    def _proba(self, X) -> np.ndarray:
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)

    def _decide(self, proba) -> tuple[np.ndarray, np.ndarray]:
        """The number of the class that each row would get, and how sure that is."""
        if np.ndim(self.cost) == 0:
            return proba.argmax(axis=1), proba.max(axis=1)
        expected = proba @ np.asarray(self.cost, dtype=np.float64)
        return expected[:, :-1].argmin(axis=1), expected[:, -1] - expected[:, :-1].min(axis=1)

    def _check_parameters(self) -> None:
        given = [name for name in ("max_error", "cost", "threshold") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give one of max_error, cost and threshold; got {' and '.join(given) or 'none'}. "
                "threshold=0 keeps every row, for those who only want sets of labels."
            )
        check_fraction("confidence", self.confidence)
        check_choice("calibration", self.calibration, ("auto", "loo", "cv"))
        if self.max_error is not None:
            check_fraction("max_error", self.max_error)
        if self.threshold is not None:
            _check_share("threshold", self.threshold)
        if self.cost is not None and np.ndim(self.cost) == 0:
            check_fraction("cost", self.cost)

    def _check_cost(self, c: int) -> None:
        """A matrix of costs has a row for every class, and a column more."""
        if self.cost is None or np.ndim(self.cost) == 0:
            return
        matrix = np.asarray(self.cost)
        if matrix.shape != (c, c + 1):
            raise ValueError(
                f"cost has shape {matrix.shape}; {c} classes need a number, or shape ({c}, {c + 1}): a row for every "
                "true class, a column for every decision, and the cost of a rejection in the last column."
            )
        if matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
            raise ValueError("cost: every entry of the matrix must be a finite number.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "threshold_")

    @property
    def n_features_in_(self) -> int:
        """Columns that the classifier was fitted on."""
        return self._of_fitted("n_features_in_")

    @property
    def feature_names_in_(self):
        """Their names."""
        return self._of_fitted("feature_names_in_")

    def _of_fitted(self, name: str):
        if "estimator_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return getattr(self.estimator_, name)

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        tags.classifier_tags.poor_score = inner.classifier_tags is not None and inner.classifier_tags.poor_score
        return tags


def safe_rank(certainty, wrong, max_error: float, level: float) -> int:
    """How many of the surest rows may be kept: their error is above ``max_error`` with probability ``level`` at most.

    Ranks are tested from the surest rows down until one fails (fixed-sequence testing); rows that are equally sure are
    kept or left together. 0 if none may be kept.

    >>> import numpy as np
    >>> certainty, wrong = np.linspace(1, 0, 100), np.arange(100) >= 60
    >>> safe_rank(certainty, wrong, max_error=0.05, level=0.05)
    60
    """
    n_wrong, last = errors_by_rank(certainty, wrong)
    start = _first_rank(len(n_wrong), max_error, level)
    ranks = (last + 1)[last + 1 >= start]  # rows that are equally sure count by the last of them
    passed = bdtr(n_wrong[ranks - 1].astype(float), ranks, max_error) <= level
    n_passed = len(passed) if passed.all() else int(passed.argmin())
    return int(ranks[n_passed - 1]) if n_passed else 0


def fewest_rows(max_error: float, level: float, errors: int = 0) -> int:
    """Rows that it takes to show an error of at most ``max_error`` when so many of them were wrong.

    >>> fewest_rows(0.01, 0.05), fewest_rows(0.01, 0.05, errors=1)
    (299, 473)
    """
    k = errors + 1
    while bdtr(float(errors), 2 * k, max_error) > level:
        k *= 2
    some = np.arange(k, 2 * k + 1)
    return int(some[np.argmax(bdtr(float(errors), some, max_error) <= level)])


def _first_rank(n: int, max_error: float, level: float) -> int:
    """Where the tests begin, from the number of rows alone; see ``FORGIVEN``."""
    starts = [fewest_rows(max_error, level, errors) for errors in range(FORGIVEN + 1)]
    return max([start for start in starts if start <= BEGINNING * n], default=starts[0])


def _asked_for_loo(estimator, calibration: str):
    if calibration != "cv" and isinstance(estimator, KernelClassifier) and "loo" in estimator.get_params(deep=False):
        estimator.set_params(loo=True)
    return estimator


def _one_column(y) -> np.ndarray:
    """One label a row; tags are refused before anything is fitted."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    shape = y.shape if sparse.issparse(y) else np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            "y is a matrix of tags: rejection is for exclusive classes. Wrap one classifier for every tag, or use the "
            "probabilities of the tags."
        )
    return column_or_1d(y, warn=True)


def _need_probabilities(estimator) -> None:
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"estimator={estimator!r} has no predict_proba; use a classifier, or a setting of it, with probabilities."
        )


def _label_of_rejection(label, classes: np.ndarray):
    """The user's label, or one that suits the classes."""
    if label is None:
        is_number = classes.dtype.kind in "iufb"
        label = min(-1, int(np.floor(classes.min())) - 1) if is_number else "reject"
    if any(label == each for each in classes.tolist()):
        raise ValueError(f"reject_label: {label!r} is one of the classes {classes.tolist()}; name another one.")
    return label


def _dtype_with(label, classes: np.ndarray):
    """A type that holds the classes and the label, and changes neither."""
    kind, kinds = classes.dtype.kind, {np.asarray(label).dtype.kind, classes.dtype.kind}
    if kind == "U" and isinstance(label, str):
        return np.result_type(classes.dtype, np.asarray(label).dtype)
    if kinds <= set("iufb") and np.ndim(label) == 0:
        return np.result_type(classes.dtype, np.min_scalar_type(label))
    return np.dtype(object)


def _check_share(name: str, value) -> None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"{name}={value!r} must be a number from 0 to 1.")
