"""The rules of RejectOption on probabilities that are given: the classifier here says what its rows hold."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import beta, binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from kproba import LSPC, RejectOption, conformal_sets
from kproba.data.sources import ArraySource
from kproba.decisions.reject import (
    _delegated,
    _dtype_with,
    _first_rank,
    _reject_label,
    fewest_rows,
    safe_rank,
)
from kproba.decisions.risk_coverage import errors_by_rank, risk_coverage
from kproba.exceptions import NothingKeptWarning

PROBA = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6], [0.55, 0.45]])
LABELS = np.array(["a", "b", "b", "b", "a"])


class Says(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are the probabilities."""

    def __init__(self, loo=False):
        self.loo = loo

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.weight_ = sample_weight
        self.n_features_in_ = np.shape(X)[1]
        if self.loo:
            self.loo_proba_ = np.asarray(X)[:, ::-1]
        return self

    def predict_proba(self, X):
        return np.asarray(X, dtype=float)

    def predict(self, X):
        return self.classes_[np.argmax(X, axis=1)]

    def decision_function(self, X):
        return np.asarray(X)[:, 1] - 0.5


def frozen(**options):
    return RejectOption(FrozenEstimator(Says().fit(PROBA, LABELS)), **options)


class TestThresholds:
    def test_a_given_threshold(self):
        clf = frozen(threshold=0.7).fit(PROBA, LABELS)
        assert clf.predict(PROBA).tolist() == ["a", "b", "a", "reject", "reject"]
        assert clf.rejects(PROBA).tolist() == [False, False, False, True, True]
        assert clf.threshold_ == 0.7 and clf.coverage_ == 0.6 and clf.error_ == pytest.approx(1 / 3)
        assert clf.error_bound_ == pytest.approx(beta.ppf(0.95, 2, 2))
        assert clf.calibrated_by_ == "frozen" and clf.reject_label_ == "reject"
        np.testing.assert_array_equal(clf.calibration_proba_, PROBA)
        np.testing.assert_array_equal(clf.calibration_labels_, LABELS)
        assert clf.score(PROBA, LABELS) == 0.4

    def test_nothing_above_the_threshold(self):
        clf = frozen(threshold=1.0).fit(PROBA, LABELS)
        assert clf.coverage_ == 0.0 and clf.error_ == 0.0 and clf.error_bound_ == 1.0
        assert clf.rejects(PROBA).all()

    def test_a_cost_is_chows_rule(self):
        clf = frozen(cost=0.3).fit(PROBA, LABELS)
        assert clf.threshold_ == pytest.approx(0.7) and clf.coverage_ == 0.6

    def test_a_matrix_of_costs(self):
        cost = np.array([[0.0, 1.0, 0.3], [5.0, 0.0, 0.3]])
        clf = frozen(cost=cost.tolist()).fit(PROBA, LABELS)
        expected = PROBA @ cost
        assert clf.threshold_ == 0.0
        # the first row: .5 for "a", .9 for "b", .3 for a rejection
        decided = np.where(expected[:, -1] < expected[:, :2].min(axis=1), 2, expected[:, :2].argmin(axis=1))
        assert clf.predict(PROBA).tolist() == np.array(["a", "b", "reject"])[decided].tolist()
        assert clf.predict(PROBA).tolist() == ["reject", "b", "reject", "reject", "reject"]
        assert clf.coverage_ == 0.2

    def test_max_error(self):
        n = 100
        sure = np.linspace(0.999, 0.501, n)
        proba, labels = np.column_stack([sure, 1 - sure]), np.where(np.arange(n) < 70, "a", "b")
        clf = frozen(max_error=0.05, confidence=0.9).fit(proba, labels)
        # one error in 71 would do at this confidence only from 77 rows on
        assert safe_rank(sure, np.arange(n) >= 70, 0.05, 1.0 - 0.9) == 70
        assert clf.threshold_ == sure[69] and clf.coverage_ == 0.7 and clf.error_ == 0.0
        assert clf.error_bound_ == 0.05
        np.testing.assert_allclose(clf.risk_coverage_curve_["upper_bound"][9], beta.ppf(0.9, 1, 10))

    def test_nothing_can_be_shown(self):
        ends = "so every row is rejected. Increase max_error, lower confidence, or use more rows."
        with pytest.warns(NothingKeptWarning) as caught:
            clf = frozen(max_error=0.1).fit(PROBA, LABELS)
        why = "even without errors, this needs 29 calibration rows, but there are 5"
        starts = "No threshold guarantees max_error=0.1 at confidence=0.95"
        assert [str(w.message) for w in caught] == [f"{starts} ({why}), {ends}"]
        assert clf.threshold_ == np.inf and clf.error_bound_ == 1.0 and clf.rejects(PROBA).all()
        many = np.repeat(PROBA[:1], 29, axis=0)
        with pytest.warns(NothingKeptWarning) as caught:
            frozen(max_error=0.1).fit(many, ["b"] * 28 + ["a"])
        bound = beta.ppf(0.95, 29, 1)
        why = f"the lowest error bound at any threshold on 29 calibration rows is {bound:.3g}"
        assert [str(w.message) for w in caught] == [f"{starts} ({why}), {ends}"]

    def test_the_most_certain_rows_are_wrong(self):
        """More rows would satisfy the bound, but the tests must not skip those that are more certain."""
        sure = np.linspace(0.99, 0.6, 400)
        labels = np.where((np.arange(400) < 10) & (np.arange(400) % 2 == 0), "b", "a")
        with pytest.warns(NothingKeptWarning, match=r"is 0\.0\d+, but tests begin with the most certain rows"):
            frozen(max_error=0.1).fit(np.column_stack([sure, 1 - sure]), labels)

    def test_just_enough_rows(self):
        many = np.repeat(PROBA[:1], 29, axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert frozen(max_error=0.1).fit(many, ["a"] * 29).coverage_ == 1.0


class TestCurves:
    def test_of_the_calibration_rows(self):
        curve = frozen(threshold=0.5, confidence=0.8).fit(PROBA, LABELS).risk_coverage_curve_
        np.testing.assert_array_equal(curve["thresholds"], [0.9, 0.8, 0.7, 0.6, 0.55])
        np.testing.assert_allclose(curve["coverage"], [0.2, 0.4, 0.6, 0.8, 1.0])
        np.testing.assert_allclose(curve["error"], [0, 0, 1 / 3, 1 / 4, 1 / 5])
        np.testing.assert_allclose(curve["upper_bound"], beta.ppf(0.8, [1, 1, 2, 2, 2], [1, 2, 2, 3, 4]))

    def test_of_other_rows_and_confidences(self):
        clf = frozen(threshold=0.5).fit(PROBA, LABELS)
        for name, values in clf.curve_of().items():
            np.testing.assert_array_equal(values, clf.risk_coverage_curve_[name])
        np.testing.assert_allclose(clf.curve_of(confidence=0.5)["upper_bound"][0], 0.5)
        other = clf.curve_of(PROBA[:2], ["b", "b"])
        np.testing.assert_allclose(other["error"], [1.0, 0.5])
        for given in ((PROBA, None), (None, LABELS)):
            with pytest.raises(ValueError, match=r"^pass both X and y, or neither to use the calibration rows\.$"):
                clf.curve_of(*given)
        with pytest.raises(ValueError, match=r"^confidence must be .*\(0, 1\), got 2\.$"):
            clf.curve_of(confidence=2)
        with pytest.raises(NotFittedError):
            frozen(threshold=0.5).curve_of()

    def test_rows_that_are_equally_sure_count_together(self):
        curve = risk_coverage([0.9, 0.6, 0.6, 0.9], [False, True, False, True]).with_bounds()
        np.testing.assert_array_equal(curve["thresholds"], [0.9, 0.6])
        np.testing.assert_array_equal(curve["coverage"], [0.5, 1.0])
        np.testing.assert_array_equal(curve["error"], [0.5, 0.5])
        np.testing.assert_allclose(curve["upper_bound"], beta.ppf(0.95, [2, 3], [1, 2]))
        assert risk_coverage([1], [1]).with_bounds()["upper_bound"] == [1.0]

    def test_numbers_of_any_type(self):
        curve = risk_coverage(np.array([1, 3, 2], np.uint8), [1.0, 0.0, 0.0])
        assert curve.thresholds.dtype == np.float64 and curve.thresholds.tolist() == [3.0, 2.0, 1.0]
        np.testing.assert_allclose(curve.error, [0, 0, 1 / 3])
        assert risk_coverage([True, False], [0, 1]).thresholds.tolist() == [1.0, 0.0]
        n_wrong, last = errors_by_rank([1, 2], [1.0, 0.0])
        assert n_wrong.tolist() == [0, 1] and n_wrong.dtype.kind == "i" and last.tolist() == [0, 1]

    def test_counts_at_a_threshold(self):
        curve = risk_coverage([0.9, 0.6, 0.8], [False, True, False])
        assert [curve.at(t) for t in (0.95, 0.9, 0.8, 0.7, 0.0)] == [(0, 0), (1, 0), (2, 0), (2, 0), (3, 1)]

    def test_thresholds_are_rounded_down_to_a_unit(self):
        curve = risk_coverage([0.29, 0.25, 0.3], [True, False, False], 0.1)  # 0.3/0.1 is slightly below 3
        np.testing.assert_allclose(curve.thresholds, [0.3, 0.2])
        assert curve.kept.tolist() == [1, 3] and curve.wrong.tolist() == [0, 1] and curve.unit == 0.1
        assert curve.at(0.3) == (1, 0) and curve.at(0.2) == (3, 1) and curve.at(0.300001) == (0, 0)


class TestRanks:
    @pytest.mark.parametrize("max_error", [0.05, 0.3, 0.9])
    @pytest.mark.parametrize("errors", [0, 1, 4])
    def test_fewest_rows(self, max_error, errors):
        passes = [k for k in range(errors + 1, 500) if binom.cdf(errors, k, max_error) <= 0.05]
        assert fewest_rows(max_error, 0.05, errors) == passes[0]

    def test_fewest_rows_where_the_level_is_met_exactly(self):
        assert fewest_rows(0.5, 0.25) == 2 and fewest_rows(0.5, 0.5) == 1 and fewest_rows(0.5, 0.125) == 3

    def test_tests_begin_where_errors_are_forgiven(self):
        # 29, 46, 61, 76 and 89 rows show an error of 0.1 with none to four wrong
        assert [fewest_rows(0.1, 0.05, e) for e in range(6)] == [29, 46, 61, 76, 89, 103]
        sizes = [144, 145, 229, 230, 304, 305, 379, 380, 444, 445, 10_000]
        assert [_first_rank(n, 0.1, 0.05) for n in sizes] == [29, 29, 29, 46, 46, 61, 61, 76, 76, 89, 89]

    def test_safe_ranks(self):
        sure = np.linspace(1, 0, 145)
        wrong = np.zeros(145, bool)
        assert safe_rank(sure, wrong, 0.1, 0.05) == 145
        assert safe_rank(sure[:29], wrong[:29], 0.1, 0.05) == 29
        assert safe_rank(sure[:28], wrong[:28], 0.1, 0.05) == 0
        wrong[29] = True  # rank 30 has one error: 46 rows would be needed
        assert safe_rank(sure, wrong, 0.1, 0.05) == 29
        tied = sure.copy()
        tied[20:50] = sure[20]
        assert safe_rank(tied, wrong, 0.1, 0.05) == 145  # ranks 21 to 49 are not tested
        assert safe_rank(sure[::-1], wrong[::-1], 0.1, 0.05) == 29
        # a level that is met exactly passes
        assert safe_rank([0.9, 0.8], [False, False], 0.5, 0.25) == 2


class TestLabels:
    @pytest.mark.parametrize(
        ("classes", "label"),
        [
            ([0, 1], -1), ([5, 9], -1), ([-1, 1], -2), ([-7, 1], -8), ([-2.5, 1.0], -4), ([False, True], -1),
            ([-0.5, 1.0], -2),
            (["a", "b"], "reject"), (np.array([1, "a"], dtype=object), "reject"), ([0.0, 2.0], -1),
        ],
    )  # fmt: skip
    def test_a_label_that_suits(self, classes, label):
        found = _reject_label(None, np.asarray(classes))
        assert found == label and type(found) is type(label)

    def test_a_class_is_no_rejection(self):
        assert _reject_label("z", np.array(["a", "b"])) == "z"
        with pytest.raises(ValueError, match=r"^reject_label=2 is one of the classes \[1, 2\]; choose another"):
            _reject_label(2, np.array([1, 2]))
        with pytest.raises(ValueError, match="reject_label='reject' is one of the classes"):
            _reject_label(None, np.array(["keep", "reject"]))

    @pytest.mark.parametrize(
        ("label", "classes", "dtype"),
        [
            ("reject", ["a", "b"], "<U6"), ("r", ["abc", "b"], "<U3"), (-1, np.array([0, 1], np.uint8), np.int16),
            (-1, [0, 1], np.int64), (0.5, [0, 1], np.float64), ("r", [0, 1], object), (1, ["a", "b"], object),
            ((1, 2), [0, 1], object), (None, ["a"], object), (-1, [True, False], np.int8), (True, ["a"], object),
        ],
    )  # fmt: skip
    def test_a_type_that_holds_both(self, label, classes, dtype):
        assert _dtype_with(label, np.asarray(classes)) == np.dtype(dtype)

    def test_given_label_in_predictions(self):
        found = frozen(threshold=0.7, reject_label="undecided").fit(PROBA, LABELS).predict(PROBA)
        assert found.tolist() == ["a", "b", "a", "undecided", "undecided"]
        assert found.dtype == np.dtype("<U9")


class TestCalibration:
    def test_leave_one_out_where_the_estimator_has_it(self):
        estimator = Says(loo=True)
        clf = RejectOption(estimator, threshold=0.5).fit(PROBA, LABELS)
        assert clf.calibrated_by_ == "loo" and clf.estimator_ is not estimator
        np.testing.assert_array_equal(clf.calibration_proba_, PROBA[:, ::-1])
        assert not hasattr(estimator, "classes_") and clf.estimator_.weight_ is None

    def test_folds_where_it_has_not(self):
        X, y = np.tile(PROBA, (4, 1)), np.tile(LABELS, 4)
        clf = RejectOption(Says(), threshold=0.5).fit(X, y)
        assert clf.calibrated_by_ == "cv"
        np.testing.assert_array_equal(clf.calibration_proba_, X)
        clf = RejectOption(Says(loo=True), threshold=0.5, calibration="cv", cv=2).fit(X, y)
        assert clf.calibrated_by_ == "cv"
        np.testing.assert_array_equal(clf.calibration_proba_, X)
        with pytest.raises(ValueError, match=r"^calibration='loo': Says has no loo_proba_; use calibration='cv'\.$"):
            RejectOption(Says(), threshold=0.5, calibration="loo").fit(X, y)
        assert RejectOption(Says(loo=True), threshold=0.5, calibration="loo").fit(X, y).calibrated_by_ == "loo"

    def test_folds_are_the_ones_given_and_weights_go_along(self):
        X, y = np.tile(PROBA, (4, 1)), np.tile(LABELS, 4)
        seen = []

        class Spy(Says):
            def fit(self, X, y, sample_weight=None):
                seen.append((len(X), None if sample_weight is None else sample_weight.tolist()))
                return super().fit(X, y, sample_weight)

        RejectOption(Spy(), threshold=0.5).fit(X, y)
        assert seen == [(20, None)] + [(16, None)] * 5
        seen.clear()
        RejectOption(Spy(), threshold=0.5, cv=4).fit(X, y)
        assert seen == [(20, None)] + [(15, None)] * 4
        seen.clear()
        RejectOption(Spy(), threshold=0.5, cv=2).fit(X, y, sample_weight=np.full(20, 3.0))
        assert seen == [(20, [3.0] * 20)] + [(10, [3.0] * 10)] * 2

    def test_kernel_classifiers_are_asked_for_it(self):
        X = np.random.default_rng(0).normal(size=(30, 2))
        y = (X[:, 0] > 0).astype(int)
        estimator = LSPC(width=1.0, ridge=0.1, loo="auto")
        clf = RejectOption(estimator, threshold=0.5).fit(X, y)
        assert clf.calibrated_by_ == "loo" and estimator.loo == "auto" and clf.estimator_.loo is True
        np.testing.assert_array_equal(clf.calibration_proba_, clf.estimator_.loo_proba_)
        folds = RejectOption(estimator, threshold=0.5, calibration="cv", cv=2).fit(X, y)
        assert folds.estimator_.loo == "auto" and folds.calibrated_by_ == "cv"

    def test_others_are_not(self):
        clf = RejectOption(Says(loo=False), threshold=0.5).fit(np.tile(PROBA, (4, 1)), np.tile(LABELS, 4))
        assert clf.estimator_.loo is False

    def test_rows_of_weight_zero_are_left_out(self):
        weight = np.array([1.0, 0.0, 2.0, 0.5, 0.0])
        clf = RejectOption(Says(loo=True), threshold=0.5).fit(PROBA, LABELS, sample_weight=weight)
        np.testing.assert_array_equal(clf.calibration_proba_, PROBA[[0, 2, 3], ::-1])
        assert clf.calibration_labels_.tolist() == ["a", "b", "b"]
        assert clf.estimator_.weight_ is weight

    def test_low_precision_is_counted_in_float64(self):
        clf = frozen(threshold=0.5)
        clf.estimator.estimator.predict_proba = lambda X: np.asarray(X, dtype=np.float16)
        assert clf.fit(PROBA, LABELS).calibration_proba_.dtype == np.float64
        p = PROBA.astype(np.float16).astype(float)
        for coverage in (0.3, 0.5, 0.6, 0.8):
            found = clf.predict_set(PROBA, coverage, allow_empty=True)
            np.testing.assert_array_equal(found, conformal_sets(p, LABELS, p, coverage, allow_empty=True))

    def test_estimators_that_know_no_weights(self):
        class Unweighted(Says):
            def fit(self, X, y):
                return super().fit(X, y)

        assert RejectOption(Unweighted(loo=True), threshold=0.5).fit(PROBA, LABELS).calibrated_by_ == "loo"

    def test_frozen_classifier_must_be_fitted(self):
        with pytest.raises(NotFittedError):
            RejectOption(FrozenEstimator(Says()), threshold=0.5).fit(PROBA, LABELS)


class TestPassedOn:
    def test_what_the_classifier_has(self):
        clf = frozen(threshold=0.5).fit(PROBA, LABELS)
        np.testing.assert_array_equal(clf.predict_proba(PROBA), PROBA)
        np.testing.assert_array_equal(clf.decision_function(PROBA), PROBA[:, 1] - 0.5)
        assert clf.n_features_in_ == 2 and not hasattr(clf, "feature_names_in_")

    def test_methods_exist_where_the_classifier_has_them(self):
        class Wrapper:
            estimator = Says()

            @_delegated("predict_proba")
            def predict_proba(self):
                return "its own"

        wrapper = Wrapper()
        assert wrapper.predict_proba() == "its own"
        wrapper.estimator_ = BaseEstimator()  # the fitted one counts
        assert not hasattr(wrapper, "predict_proba")
        wrapper.estimator, wrapper.estimator_ = BaseEstimator(), Says()
        assert wrapper.predict_proba() == "its own"

    def test_nothing_before_the_fit(self):
        clf = RejectOption(Says(), threshold=0.5)
        with pytest.raises(AttributeError, match=r"^RejectOption has no n_features_in_ until it is fitted\.$"):
            clf.n_features_in_  # noqa: B018
        for call in (clf.predict, clf.rejects, clf.predict_proba, clf.decision_function, clf.predict_set):
            with pytest.raises(NotFittedError):
                call(PROBA)
        assert hasattr(clf, "predict_proba") and hasattr(clf, "decision_function")
        assert not hasattr(RejectOption(BaseEstimator(), threshold=0.5), "predict_proba")

    def test_tags(self):
        class Odd(Says):
            def __sklearn_tags__(self):
                tags = super().__sklearn_tags__()
                tags.input_tags.sparse, tags.non_deterministic, tags.classifier_tags.poor_score = True, True, True
                return tags

        tags = RejectOption(Odd(), threshold=0.5).__sklearn_tags__()
        assert tags.input_tags.sparse and tags.non_deterministic and tags.classifier_tags.poor_score
        tags = RejectOption(Says(), threshold=0.5).__sklearn_tags__()
        assert not (tags.input_tags.sparse or tags.non_deterministic or tags.classifier_tags.poor_score)
        tags = RejectOption(BaseEstimator(), threshold=0.5).__sklearn_tags__()
        assert tags.classifier_tags.poor_score is False

    @pytest.mark.parametrize(
        "options", [{}, {"method": "aps", "randomize": True, "random_state": 1}, {"by_class": True}]
    )
    def test_sets(self, options):
        X, y = np.tile(PROBA, (6, 1)), np.tile(LABELS, 6)
        clf = frozen(threshold=0.5).fit(X, y)
        expected = conformal_sets(X, y, PROBA, 0.6, allow_empty=True, **options)
        np.testing.assert_array_equal(clf.predict_set(PROBA, 0.6, allow_empty=True, **options), expected)
        filled = clf.predict_set(PROBA, 0.6, as_labels=True, **options)
        expected = conformal_sets(X, y, PROBA, 0.6, **options)
        assert [found.tolist() for found in filled] == [np.array(["a", "b"])[row].tolist() for row in expected]

    def test_defaults_of_sets(self):
        X, y = np.tile(PROBA, (6, 1)), np.tile(LABELS, 6)
        found = frozen(threshold=0.5).fit(X, y).predict_set(PROBA)
        np.testing.assert_array_equal(found, conformal_sets(X, y, PROBA, 0.95))
        with pytest.raises(ValueError, match=r"^coverage must be .*\(0, 1\), got 2\.$"):
            frozen(threshold=0.5).fit(X, y).predict_set(PROBA, 2)
        assert frozen(threshold=0.5).fit(X, y).predict_set(PROBA, 0.6, allow_empty=True).sum() < found.sum()


ONE_OF = "set exactly one of max_error, cost and threshold;"
ENDS = "Use threshold=0 to keep every row, for example if you only need predict_set."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, f"{ONE_OF} got none. {ENDS}"),
        ({"max_error": 0.1, "cost": 0.1, "threshold": 0.0}, f"{ONE_OF} got max_error and cost and threshold. {ENDS}"),
        ({"threshold": 1.1}, "threshold=1.1 must be a number from 0 to 1."),
        ({"threshold": -0.1}, "threshold=-0.1 must be a number from 0 to 1."),
        ({"threshold": True}, "threshold=True must be a number from 0 to 1."),
        ({"threshold": "1"}, "threshold='1' must be a number from 0 to 1."),
        ({"cost": np.ones((2, 2))},
         "cost has shape (2, 2); with 2 classes use a number or shape (2, 3): a row for each true class, a column for "
         "each predicted class, and the cost of a rejection in the last column."),
        ({"cost": np.full((2, 3), np.nan)}, "cost has entries that are not finite numbers."),
        ({"cost": np.full((2, 3), "a")}, "cost has entries that are not finite numbers."),
    ],
)  # fmt: skip
def test_parameters_are_checked(options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        frozen(**options).fit(PROBA, LABELS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.5, "confidence": 1.0}, r"^confidence must be .*\(0, 1\), got 1\.0\.$"),
        ({"threshold": 0.5, "calibration": "jackknife"}, "^calibration must be one of .*, got 'jackknife'"),
        ({"max_error": 0.0}, r"^max_error must be .*\(0, 1\), got 0\.0\.$"),
        ({"cost": 1.0}, r"^cost must be .*\(0, 1\), got 1\.0\.$"),
    ],
)
def test_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        frozen(**options).fit(PROBA, LABELS)


@pytest.mark.parametrize("options", [{"threshold": 0}, {"threshold": 1}, {"threshold": 0.5, "calibration": "cv"}])
def test_parameters_at_the_ends(options):
    assert frozen(**options).fit(PROBA, LABELS).threshold_ == options["threshold"]


def test_integers_are_costs_too():
    cost = np.array([[0, 9, 1], [9, 0, 1]])
    assert frozen(cost=cost).fit(PROBA, LABELS).coverage_ == 0.2
    assert frozen(cost=cost.astype(np.uint8)).fit(PROBA, LABELS).coverage_ == 0.2


class TestInput:
    def test_sources_have_no_leave_one_out(self):
        message = (
            "X is a source of rows, which has no leave-one-out probabilities; fit the classifier on it, and give "
            "RejectOption(FrozenEstimator(classifier), ...) some other rows in memory."
        )
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            RejectOption(Says(), threshold=0.5).fit(ArraySource(PROBA, LABELS), None)

    def test_labels(self):
        with pytest.raises(ValueError, match=r"^requires y to be passed, but the target y is None\.$"):
            frozen(threshold=0.5).fit(PROBA, None)
        message = (
            "y is multi-label, but rejection is for exclusive classes. Use one RejectOption per tag, or threshold the "
            "probabilities of the tags yourself."
        )
        for tags in (np.eye(5)[:, :2], sparse.csr_array(np.eye(5)[:, :2]), np.eye(5)[:, :2].tolist()):
            with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
                frozen(threshold=0.5).fit(PROBA, tags)
        with pytest.warns(UserWarning, match="column-vector y"):
            clf = frozen(threshold=0.5).fit(PROBA, LABELS[:, None])
        assert clf.calibration_labels_.tolist() == LABELS.tolist()
        with pytest.raises(ValueError, match="y has the label 'c'"):
            frozen(threshold=0.5).fit(PROBA, ["a", "b", "c", "a", "b"])
        with pytest.raises(ValueError, match=r"5.*4|4.*5"):
            frozen(threshold=0.5).fit(PROBA, LABELS[:4])

    def test_probabilities_are_needed(self):
        message = "estimator=BaseEstimator() has no predict_proba; use a classifier that predicts probabilities."
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            RejectOption(BaseEstimator(), threshold=0.5).fit(PROBA, LABELS)
