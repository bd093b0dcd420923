"""Reject uncertain rows: thresholds with an error guarantee, costs, and sets of labels."""

from __future__ import annotations

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

from ..data.labels import check_weights, label_codes
from ..estimators._base import KernelClassifier, is_source
from ..estimators._honest import ATTRIBUTES, Honest, honest_probabilities
from ..exceptions import NothingKeptWarning
from ..messages import warn
from ..typing import Inputs, Method, RandomState, Targets, available_if
from ..validation import check_choice, check_fraction, check_lengths
from .conformal import check_options, sets_from_codes
from .risk_coverage import error_upper_bound, errors_by_rank, risk_coverage

#: Testing starts at the rank where up to this many errors still pass, if that rank is at most this share of the rows.
#: One unlucky row among the most certain ones must not end the tests, and small samples must not start too late.
FORGIVEN, LATEST_START = 4, 0.2


def _delegated(name: str) -> Callable[[Method], Method]:
    def has(self) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)  # raises an AttributeError that says why
        return True

    return available_if(has)


class RejectOption(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""A classifier that rejects uncertain rows instead of deciding on them.

    ``predict`` returns ``reject_label`` for rows whose largest probability is below ``threshold_`` (textbook ch. 28,
    opening). With ``max_error``, the threshold is the smallest for which the error among the rows kept is at most
    ``max_error``, with probability ``confidence`` over the calibration rows. By default these are the training rows
    with their out-of-fold or leave-one-out probabilities, so nothing is held out.

    **The guarantee.** Rows are sorted from the most to the least certain. If e of the k most certain rows are wrong,
    the test of "their error is above ``max_error``" has the p-value
    :math:`P(\mathrm{Bin}(k, \text{max\_error}) \le e)`. Starting from a rank that depends only on the number of rows,
    ranks are tested in turn at level 1 − ``confidence`` until one fails. This is fixed-sequence testing, which needs
    no correction for the number of tests (Angelopoulos et al., 2021, *Learn then test*). The guarantee is exact for
    rows that the classifier was not fitted on (``FrozenEstimator``), if the error among the rows kept does not fall as
    the threshold falls. Out-of-fold probabilities come from several models, and leave-one-out probabilities were also
    used to choose the parameters, so with them it is approximate; ``docs/reject.md`` has the proof, and
    measures leave-one-out.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        It is cloned and fitted. A ``FrozenEstimator`` is used as it is; the rows passed to ``fit`` must then not be
        those it was fitted on.
    max_error : float, optional
        The largest error among the rows kept. Set exactly one of ``max_error``, ``cost`` and ``threshold``.
    cost : float or array of shape (n_classes, n_classes + 1), optional
        Cost of a rejection, where an error costs one: rows with 1 − max p > cost are rejected (Chow, 1970). A matrix
        holds the cost of predicting class j (column) when class i is true (row), and of a rejection in its last column;
        the decision with the lowest expected cost is taken.
    threshold : float, optional
        Rows whose largest probability is below this are rejected; 0 keeps all rows.
    confidence : float, default=0.95
        Probability with which ``max_error``, ``error_bound_`` and the bounds of ``risk_coverage_curve_`` hold.
    reject_label : optional
        What ``predict`` returns for a rejected row. The default is "reject" if the classes are strings or other objects
        and −1 if they are numbers, or one less than the smallest class if that is negative. It must not be a class.
    calibration : {"auto", "oof", "loo", "cv"}, default="auto"
        Source of the calibration probabilities: ``oof_proba_`` of the fitted estimator; its ``loo_proba_``, which is
        slightly optimistic because it was used to choose the parameters; or ``cross_val_predict``, which refits the
        estimator. ``"auto"`` uses the first of these that the estimator has. Rows without an out-of-fold probability
        are left out.
    cv : int or splitter, default=5
        Folds for ``calibration="cv"``.

    Attributes
    ----------
    estimator_, classes_ : the fitted classifier and its classes.
    threshold_ : float; infinite if no row may be kept. With a cost matrix it is 0, and rows are kept if their cheapest
        decision is expected to cost no more than a rejection.
    coverage_, error_ : share of the calibration rows that are kept, and the error among these.
    error_bound_ : upper bound on the error among the rows kept that holds with probability ``confidence``:
        ``max_error``, or the bound of Clopper and Pearson if the threshold did not depend on the rows.
    reject_label_ : the label of a rejected row.
    calibrated_by_ : "oof", "loo", "cv" or "frozen".
    calibration_proba_, calibration_labels_ : arrays (n, n_classes) and (n,) used for the calibration.
    risk_coverage_curve_ : dict of arrays thresholds, coverage, error and upper_bound, from the most certain row down;
        each bound alone holds with probability ``confidence``.

    Notes
    -----
    ``sample_weight`` is passed to the estimator. Calibration ignores rows of weight zero and counts all others once,
    because errors of weighted rows are not binomial.

    ``score`` is the share of rows that are kept and predicted correctly. scikit-learn's estimator checks pass with
    ``threshold=0``; if rows are rejected, ``predict`` cannot be the argmax of ``predict_proba``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from kproba import LSPC, RejectOption
    >>> X, X_new, y, y_new = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> clf = RejectOption(LSPC(random_state=0), max_error=0.02).fit(X, y)
    >>> kept = ~clf.rejects(X_new)
    >>> print(f"{kept.mean():.2f} kept, error {(clf.predict(X_new) != y_new)[kept].mean():.2f}")
    0.87 kept, error 0.00
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
        calibration: Literal["auto", "oof", "loo", "cv"] | str = "auto",
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
        """Fit the classifier and choose the threshold; a ``FrozenEstimator`` is not fitted again."""
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
        counted = (check_weights(sample_weight, len(y)) > 0) & ~np.isnan(proba).any(axis=1)
        self.calibration_proba_ = np.asarray(proba, dtype=np.float64)[counted]
        self.calibration_labels_ = y[counted]
        self.reject_label_ = _reject_label(self.reject_label, self.classes_)
        self._check_cost(len(self.classes_))
        self._choose(label_codes(self.calibration_labels_, self.classes_))
        return self

    def predict(self, X: Inputs) -> np.ndarray:
        """The class of each row, or ``reject_label_`` for rejected rows."""
        codes, certainty = self._decide(np.asarray(self._proba(X)))
        labels = self.classes_.astype(_dtype_with(self.reject_label_, self.classes_))[codes]
        labels[certainty < self.threshold_] = self.reject_label_
        return labels

    def rejects(self, X: Inputs) -> np.ndarray:
        """Whether each row is rejected."""
        return self._decide(np.asarray(self._proba(X)))[1] < self.threshold_

    @_delegated("predict_proba")
    def predict_proba(self, X: Inputs) -> np.ndarray:
        """Probabilities of the classifier, for rejected rows too."""
        return self._proba(X)

    @_delegated("predict_proba")
    def predict_log_proba(self, X: Inputs) -> np.ndarray:
        """Logarithms of the probabilities, from the classifier itself if it has ``predict_log_proba``."""
        check_is_fitted(self)
        if hasattr(self.estimator_, "predict_log_proba"):
            return self.estimator_.predict_log_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(self._proba(X))

    @_delegated("decision_function")
    def decision_function(self, X: Inputs) -> np.ndarray:
        """Decision function of the classifier, for rejected rows too."""
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
        """Sets of labels that contain the true label of a new row with probability ``coverage``.

        They are computed from the scores of the calibration rows; nothing is fitted. With a ``FrozenEstimator``, the
        coverage is guaranteed. Out of fold and with leave-one-out, it holds for stable classifiers: those whose
        prediction for a row changes little when other rows are left out of the fit. See
        :func:`kproba.conformal_sets` for the options.

        Returns
        -------
        bool array of shape (n, n_classes), in the order of ``classes_``; with ``as_labels`` a list of label arrays.
        """
        check_is_fitted(self)
        check_options(coverage, method, by_class, allow_empty, randomize)
        known, codes = self.calibration_proba_, label_codes(self.calibration_labels_, self.classes_)
        new = np.asarray(self._proba(X), dtype=np.float64)
        found = sets_from_codes(known, codes, new, coverage, method, by_class, allow_empty, randomize, random_state)
        return [self.classes_[row] for row in found] if as_labels else found

    def curve_of(self, X: Inputs = None, y: Targets = None, confidence: float | None = None) -> dict[str, np.ndarray]:
        """Like ``risk_coverage_curve_``, for other rows or another confidence."""
        check_is_fitted(self)
        confidence = self.confidence if confidence is None else confidence
        check_fraction("confidence", confidence)
        if (X is None) != (y is None):
            raise ValueError("pass both X and y, or neither to use the calibration rows.")
        proba, y = (self.calibration_proba_, self.calibration_labels_) if X is None else (np.asarray(self._proba(X)), y)
        decided, certainty = self._decide(proba)
        return risk_coverage(certainty, decided != label_codes(y, self.classes_)).with_bounds(confidence)

    def _calibrate(self, X, y, sample_weight, frozen: bool) -> np.ndarray:
        """Fit the classifier, and return the probabilities of each row from a model that was not fitted on it."""
        _check_predict_proba(self.estimator)
        if frozen:
            self.estimator_, self.calibrated_by_ = self.estimator, "frozen"
            check_is_fitted(self.estimator.estimator)
            return self._proba(X)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = _with_loo(clone(self.estimator), self.calibration).fit(X, y, **weights)
        found = self._of_training_rows()
        if found is not None:
            self.calibrated_by_, proba = found
            return proba
        self.calibrated_by_ = "cv"
        from sklearn.model_selection import cross_val_predict  # slow to import and rarely needed

        return cross_val_predict(
            clone(self.estimator), X, y, cv=self.cv, method="predict_proba", params=weights or None
        )

    def _of_training_rows(self) -> Honest | None:
        """The probabilities that came with the fit, unless the estimator is to be cross-validated."""
        if self.calibration in ("auto", "cv"):
            return honest_probabilities(self.estimator_) if self.calibration == "auto" else None
        name, attribute = type(self.estimator_).__name__, ATTRIBUTES[self.calibration]
        proba = getattr(self.estimator_, attribute, None)
        if proba is None:
            raise ValueError(f"calibration={self.calibration!r}: {name} has no {attribute}; use calibration='cv'.")
        return Honest(self.calibration, proba)

    def _choose(self, codes: np.ndarray) -> None:
        """Choose the threshold, and evaluate it on the calibration rows."""
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
            self.error_bound_ = float(self.max_error)  # the tests show this bound and no tighter one
        elif self.max_error is not None:
            self._warn_about_nothing_kept(self.max_error, len(wrong))

    def _warn_about_nothing_kept(self, max_error: float, n: int) -> None:
        least = fewest_rows(max_error, 1.0 - self.confidence)
        if least > n:
            why = f"even without errors, this needs {least} calibration rows, but there are {n}"
        else:
            least_bound = self.risk_coverage_curve_["upper_bound"].min()
            why = f"the lowest error bound at any threshold on {n} calibration rows is {least_bound:.3g}"
            if least_bound <= max_error:
                why += ", but tests begin with the most certain rows, and too many of these are wrong"
        warn(
            f"No threshold guarantees max_error={max_error} at confidence={self.confidence} ({why}), so every row is "
            "rejected. Increase max_error, lower confidence, or use more rows.",
            NothingKeptWarning,
        )

    def _proba(self, X) -> np.ndarray:
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)

    def _decide(self, proba) -> tuple[np.ndarray, np.ndarray]:
        """The class index of each row if it were kept, and how certain that decision is."""
        if np.ndim(self.cost) == 0:
            return proba.argmax(axis=1), proba.max(axis=1)
        expected = proba @ np.asarray(self.cost, dtype=np.float64)
        return expected[:, :-1].argmin(axis=1), expected[:, -1] - expected[:, :-1].min(axis=1)

    def _check_parameters(self) -> None:
        given = [name for name in ("max_error", "cost", "threshold") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"set exactly one of max_error, cost and threshold; got {' and '.join(given) or 'none'}. "
                "Use threshold=0 to keep every row, for example if you only need predict_set."
            )
        check_fraction("confidence", self.confidence)
        check_choice("calibration", self.calibration, ("auto", *ATTRIBUTES, "cv"))
        if self.max_error is not None:
            check_fraction("max_error", self.max_error)
        if self.threshold is not None:
            _check_unit_interval("threshold", self.threshold)
        if self.cost is not None and np.ndim(self.cost) == 0:
            check_fraction("cost", self.cost)

    def _check_cost(self, c: int) -> None:
        """Check the shape and the values of a cost matrix."""
        if self.cost is None or np.ndim(self.cost) == 0:
            return
        matrix = np.asarray(self.cost)
        if matrix.shape != (c, c + 1):
            raise ValueError(
                f"cost has shape {matrix.shape}; with {c} classes use a number or shape ({c}, {c + 1}): a row for each "
                "true class, a column for each predicted class, and the cost of a rejection in the last column."
            )
        if matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
            raise ValueError("cost has entries that are not finite numbers.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "threshold_")

    @property
    def n_features_in_(self) -> int:
        """Number of columns that the classifier was fitted on."""
        return self._of_fitted("n_features_in_")

    @property
    def feature_names_in_(self):
        """Names of the columns that the classifier was fitted on."""
        return self._of_fitted("feature_names_in_")

    def _of_fitted(self, name: str):
        if "estimator_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name} until it is fitted.")
        return getattr(self.estimator_, name)

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        tags.classifier_tags.poor_score = inner.classifier_tags is not None and inner.classifier_tags.poor_score
        return tags


def safe_rank(certainty, wrong, max_error: float, level: float) -> int:
    """How many of the most certain rows to keep: P(their error exceeds ``max_error``) is at most ``level``.

    Ranks are tested from the most certain rows down until one fails (fixed-sequence testing). Ties are kept or rejected
    together. Returns 0 if no rows may be kept.

    >>> import numpy as np
    >>> certainty, wrong = np.linspace(1, 0, 100), np.arange(100) >= 60
    >>> safe_rank(certainty, wrong, max_error=0.05, level=0.05)
    60
    """
    n_wrong, last = errors_by_rank(certainty, wrong)
    start = _first_rank(len(n_wrong), max_error, level)
    ranks = (last + 1)[last + 1 >= start]  # the last row of each group of ties
    passed = bdtr(n_wrong[ranks - 1].astype(float), ranks, max_error) <= level
    n_passed = len(passed) if passed.all() else int(passed.argmin())
    return int(ranks[n_passed - 1]) if n_passed else 0


def fewest_rows(max_error: float, level: float, errors: int = 0) -> int:
    """Number of rows needed to show an error of at most ``max_error`` if ``errors`` of them are wrong.

    >>> fewest_rows(0.01, 0.05), fewest_rows(0.01, 0.05, errors=1)
    (299, 473)
    """
    k = errors + 1
    while bdtr(float(errors), 2 * k, max_error) > level:
        k *= 2
    some = np.arange(k, 2 * k + 1)
    return int(some[np.argmax(bdtr(float(errors), some, max_error) <= level)])


def _first_rank(n: int, max_error: float, level: float) -> int:
    """Rank at which testing starts, which depends only on the number of rows; see ``FORGIVEN``."""
    starts = [fewest_rows(max_error, level, errors) for errors in range(FORGIVEN + 1)]
    return max([start for start in starts if start <= LATEST_START * n], default=starts[0])


def _with_loo(estimator, calibration: str):
    if calibration != "cv" and isinstance(estimator, KernelClassifier) and "loo" in estimator.get_params(deep=False):
        estimator.set_params(loo=True)
    return estimator


def _one_column(y) -> np.ndarray:
    """``y`` as one label per row; a multi-label ``y`` is refused before anything is fitted."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    shape = y.shape if sparse.issparse(y) else np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            "y is multi-label, but rejection is for exclusive classes. Use one RejectOption per tag, or threshold the "
            "probabilities of the tags yourself."
        )
    return column_or_1d(y, warn=True)


def _check_predict_proba(estimator) -> None:
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(f"estimator={estimator!r} has no predict_proba; use a classifier that predicts probabilities.")


def _reject_label(label, classes: np.ndarray):
    """The label given, or a default that matches the type of the classes."""
    if label is None:
        is_number = classes.dtype.kind in "iufb"
        label = min(-1, int(np.floor(classes.min())) - 1) if is_number else "reject"
    if any(label == each for each in classes.tolist()):
        raise ValueError(f"reject_label={label!r} is one of the classes {classes.tolist()}; choose another label.")
    return label


def _dtype_with(label, classes: np.ndarray):
    """A dtype that holds the classes and the label without changing either."""
    kind, kinds = classes.dtype.kind, {np.asarray(label).dtype.kind, classes.dtype.kind}
    if kind == "U" and isinstance(label, str):
        return np.result_type(classes.dtype, np.asarray(label).dtype)
    if kinds <= set("iufb") and np.ndim(label) == 0:
        return np.result_type(classes.dtype, np.min_scalar_type(label))
    return np.dtype(object)


def _check_unit_interval(name: str, value) -> None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"{name}={value!r} must be a number from 0 to 1.")
