"""Rejection and sets of labels: exact bounds, promises kept in simulations, and scikit-learn's manners."""

import pickle
import warnings
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kproba import (
    LSPC,
    FewRowsWarning,
    ImportVectorMachine,
    KernelLogisticRegression,
    NothingKeptWarning,
    RejectOption,
    SurfaceKernelClassifier,
    conformal_sets,
    displays,
)
from kproba.data.sources import ArraySource
from kproba.data.toys import three_classes_2010
from kproba.decisions.reject import fewest_rows, safe_rank
from kproba.decisions.risk_coverage import error_upper_bound, risk_coverage


def quick(**options):
    return LSPC(**{"kernel": "gaussian", "width": 1.0, "ridge": 0.01, "n_jobs": 1, **options})


@pytest.fixture(scope="module")
def toy():
    toy = three_classes_2010(300, random_state=0)
    order = np.random.default_rng(0).permutation(300)  # rows come class by class
    return replace(toy, X=toy.X[order], y=toy.y[order])


# --- bounds and ranks


@pytest.mark.parametrize(("wrong", "kept"), [(0, 1), (0, 50), (3, 50), (49, 50), (50, 50)])
def test_bound_is_clopper_pearson(wrong, kept):
    oracle = binomtest(wrong, kept, alternative="less").proportion_ci(0.9, method="exact").high
    assert error_upper_bound(wrong, kept, 0.9) == pytest.approx(oracle)


@pytest.mark.parametrize(
    ("max_error", "level", "errors"), [(0.01, 0.05, 0), (0.3, 0.1, 2), (0.9, 0.5, 0), (0.05, 0.01, 7)]
)
def test_fewest_rows_is_the_first_that_passes(max_error, level, errors):
    k = fewest_rows(max_error, level, errors)
    assert binom.cdf(errors, k, max_error) <= level
    assert k == errors + 1 or binom.cdf(errors, k - 1, max_error) > level


def rank_by_loop(certainty, wrong, max_error, level, start):
    kept = 0
    for t in np.unique(certainty)[::-1]:
        chosen = certainty >= t
        if chosen.sum() < start:
            continue
        if binom.cdf(wrong[chosen].sum(), chosen.sum(), max_error) > level:
            break
        kept = int(chosen.sum())
    return kept


@pytest.mark.parametrize("seed", range(8))
def test_safe_rank_is_the_plain_loop(seed):
    random = np.random.default_rng(seed)
    certainty = random.beta(4, 1, size=300).round(2 if seed % 2 else 9)  # with and without ties
    wrong = random.random(300) < 0.6 * (1 - certainty)
    start = fewest_rows(0.1, 0.05, 4)
    start = start if start <= 60 else max(k for e in range(5) if (k := fewest_rows(0.1, 0.05, e)) <= 60)
    assert safe_rank(certainty, wrong, 0.1, 0.05) == rank_by_loop(certainty, wrong, 0.1, 0.05, start)


def test_safe_rank_at_the_ends():
    certainty = np.linspace(1, 0, 200)
    assert safe_rank(certainty, np.zeros(200, bool), 0.05, 0.05) == 200
    assert safe_rank(certainty, np.ones(200, bool), 0.05, 0.05) == 0
    assert safe_rank(certainty, np.zeros(200, bool), 0.01, 0.05) == 0  # 299 rows would be needed
    assert safe_rank(np.ones(200), np.zeros(200, bool), 0.05, 0.05) == 200


def simulated(random, n, sharpness=1.0):
    """Sureness and errors of rows whose probabilities are what they say, or are off by a power."""
    p = 0.5 + 0.5 * random.beta(2, 0.7, size=n)
    return p**sharpness, random.random(n) < 1 - p


@pytest.mark.parametrize("sharpness", [1.0, 5.0])
def test_promised_error_holds_in_simulations(sharpness):
    """Calibrated or not: the promise needs the order of the probabilities alone."""
    random = np.random.default_rng(0)
    certainty, wrong = simulated(random, 200_000, sharpness)
    order = np.argsort(-certainty)
    truth_at, risk = -certainty[order], np.cumsum(wrong[order]) / np.arange(1, len(order) + 1)
    broken, kept = 0, 0
    for _ in range(400):
        certainty, wrong = simulated(random, 400, sharpness)
        k = safe_rank(certainty, wrong, 0.08, 0.1)
        kept += k
        if k:
            threshold = np.sort(certainty)[-k]
            broken += risk[np.searchsorted(truth_at, -threshold, side="right") - 1] > 0.08
    assert kept / 400 > 0.4 * 400
    assert broken <= binom.ppf(0.999, 400, 0.1)


def test_promise_survives_surest_rows_that_are_the_worst():
    """The proof assumes that surer rows are better; where they are not, the first tests fail and nothing is kept."""
    random, broken = np.random.default_rng(0), 0
    for _ in range(400):
        certainty = random.random(400)
        wrong = random.random(400) < np.where(certainty > 0.85, 0.3, 0.05)
        k = safe_rank(certainty, wrong, 0.15, 0.1)
        kept = 1 - np.sort(certainty)[-k] if k else 1.0
        broken += (0.3 * min(kept, 0.15) + 0.05 * max(kept - 0.15, 0.0)) / kept > 0.15
    assert broken <= binom.ppf(0.999, 400, 0.1)


def test_curve_counts(toy):
    model = RejectOption(quick(), threshold=0.7).fit(toy.X, toy.y)
    curve = model.risk_coverage_curve_
    sure, wrong = model.calibration_proba_.max(axis=1), model.calibration_proba_.argmax(axis=1) + 1 != toy.y
    for t, coverage, error, bound in zip(*curve.values()):
        assert coverage == pytest.approx((sure >= t).mean())
        assert error == pytest.approx(wrong[sure >= t].mean())
        assert bound == pytest.approx(error_upper_bound(wrong[sure >= t].sum(), (sure >= t).sum(), 0.95))
    assert (np.diff(curve["thresholds"]) < 0).all() and curve["coverage"][-1] == 1


# --- the three ways to say what is doubtful


def test_threshold_and_cost_are_chows_rule(toy):
    by_threshold = RejectOption(quick(), threshold=0.75).fit(toy.X, toy.y)
    by_cost = RejectOption(quick(), cost=0.25).fit(toy.X, toy.y)
    matrix = np.column_stack([1 - np.eye(3), np.full(3, 0.25)])
    by_matrix = RejectOption(quick(), cost=matrix).fit(toy.X, toy.y)
    proba = by_cost.predict_proba(toy.X)
    expected = np.where(1 - proba.max(axis=1) > 0.25, -1, proba.argmax(axis=1) + 1)
    for model in (by_threshold, by_cost, by_matrix):
        assert np.array_equal(model.predict(toy.X), expected)
        assert np.array_equal(model.rejects(toy.X), expected == -1)
    kept = by_cost.estimator_.loo_proba_.max(axis=1) >= 0.75
    wrong = by_cost.estimator_.loo_proba_.argmax(axis=1)[kept] + 1 != toy.y[kept]
    assert by_cost.coverage_ == kept.mean() and by_cost.error_ == wrong.mean()
    assert by_cost.error_bound_ == pytest.approx(error_upper_bound(wrong.sum(), kept.sum(), 0.95))


def test_cost_matrix_is_brute_force(toy):
    cost = np.array([[0, 1, 5, 0.5], [2, 0, 1, 0.7], [1, 3, 0, 0.2]])
    model = RejectOption(quick(), cost=cost).fit(toy.X, toy.y)
    for p, found in zip(model.predict_proba(toy.X[:50]), model.predict(toy.X[:50])):
        each = [sum(p[i] * cost[i, j] for i in range(3)) for j in range(4)]
        assert found == (-1 if each[3] < min(each[:3]) else 1 + int(np.argmin(each[:3])))
    assert 0 < model.coverage_ < 1


def test_cost_of_chow_is_the_cheapest_threshold():
    random = np.random.default_rng(0)
    p = 0.5 + 0.5 * random.random(4000)
    for cost in (0.1, 0.3):
        expected = [np.where(p < t, cost, 1 - p).mean() for t in np.linspace(0.5, 1, 501)]
        assert np.linspace(0.5, 1, 501)[int(np.argmin(expected))] == pytest.approx(1 - cost, abs=0.003)


def test_max_error_keeps_less_the_less_is_allowed(toy):
    models = [RejectOption(quick(), max_error=e).fit(toy.X, toy.y) for e in (0.1, 0.15, 0.25)]
    coverage = [model.coverage_ for model in models]
    assert coverage == sorted(coverage) and coverage[0] > 0
    for model, allowed in zip(models, (0.1, 0.15, 0.25)):
        assert model.error_ <= allowed == model.error_bound_
        assert (model.calibration_proba_.max(axis=1) >= model.threshold_).mean() == model.coverage_
    surer = RejectOption(quick(), max_error=0.15, confidence=0.999).fit(toy.X, toy.y)
    assert surer.coverage_ <= models[1].coverage_


def test_nothing_kept_warns_and_rejects(toy):
    with pytest.warns(NothingKeptWarning, match="needs 299 calibration rows, but there are 200") as caught:
        model = RejectOption(quick(), max_error=0.01).fit(toy.X[:200], toy.y[:200])
    assert caught[0].filename == __file__
    assert model.coverage_ == 0 and model.threshold_ == np.inf and model.error_bound_ == 1
    assert (model.predict(toy.X) == -1).all()
    with pytest.warns(NothingKeptWarning, match="lowest error bound"):
        RejectOption(quick(), max_error=0.06).fit(toy.X, np.random.default_rng(0).permutation(toy.y))


# --- where the probabilities come from


@pytest.mark.parametrize(
    "estimator",
    [
        quick(link="clip"),
        quick(selection="cv"),
        KernelLogisticRegression(kernel="gaussian", width=1.0, ridge=0.01),
        ImportVectorMachine(kernel="gaussian", width=1.0, ridge=0.1),
        SurfaceKernelClassifier(kernel="gaussian", width=1.0, n_centers=10, random_state=0),
    ],
)
def test_kproba_classifiers_need_no_refit(estimator, toy):
    model = RejectOption(estimator, max_error=0.3).fit(toy.X, toy.y)
    assert model.calibrated_by_ == "loo"
    assert np.array_equal(model.calibration_proba_, model.estimator_.loo_proba_)
    assert np.array_equal(estimator.get_params()["kernel"], "gaussian") and not hasattr(estimator, "coef_")


def test_other_classifiers_are_cross_validated(toy):
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    model = RejectOption(inner, threshold=0.6, cv=3).fit(toy.X, toy.y)
    assert model.calibrated_by_ == "cv"
    oracle = cross_val_predict(inner, toy.X, toy.y, cv=3, method="predict_proba")
    assert np.array_equal(model.calibration_proba_, oracle)
    folds = RejectOption(quick(), threshold=0.6, calibration="cv").fit(toy.X, toy.y)
    assert folds.calibrated_by_ == "cv" and not np.array_equal(folds.calibration_proba_, folds.estimator_.loo_proba_)


def test_frozen_estimator_is_left_alone(toy):
    fitted = quick().fit(toy.X[:100], toy.y[:100])
    model = RejectOption(FrozenEstimator(fitted), max_error=0.3).fit(toy.X[100:], toy.y[100:])
    assert model.calibrated_by_ == "frozen"
    assert np.array_equal(model.calibration_proba_, fitted.predict_proba(toy.X[100:]))
    assert np.array_equal(clone(model).fit(toy.X[100:], toy.y[100:]).predict(toy.X), model.predict(toy.X))
    one_class = RejectOption(FrozenEstimator(fitted), threshold=0.5).fit(toy.X[:5], np.full(5, 2))
    assert len(one_class.classes_) == 3
    with pytest.raises(ValueError, match="label 7, which is not among"):
        model.fit(toy.X, np.full(300, 7))
    with pytest.raises(NotFittedError):
        RejectOption(FrozenEstimator(quick()), threshold=0.5).fit(toy.X, toy.y)


def test_weights_go_to_the_classifier_and_zero_leaves_out(toy):
    weight = np.r_[np.zeros(50), np.full(250, 2.0)]
    model = RejectOption(quick(), max_error=0.3).fit(toy.X, toy.y, sample_weight=weight)
    fewer = RejectOption(quick(), max_error=0.3).fit(toy.X[50:], toy.y[50:], sample_weight=weight[50:])
    assert len(model.calibration_labels_) == 250
    assert model.threshold_ == pytest.approx(fewer.threshold_) and model.coverage_ == fewer.coverage_
    rest = RejectOption(LogisticRegression(), max_error=0.4).fit(toy.X, toy.y, sample_weight=weight)
    assert len(rest.calibration_labels_) == 250


# --- labels


@pytest.mark.parametrize(
    ("classes", "label", "dtype"),
    [
        (np.array([0, 1]), -1, np.int64),
        (np.array([-1, 1]), -2, np.int64),
        (np.array([0, 1], dtype=np.uint8), -1, np.int16),
        (np.array([0, 1], dtype=np.int32), -1, np.int32),
        (np.array([0.0, 1.0]), -1, np.float64),
        (np.array([False, True]), -1, np.int8),
        (np.array(["a", "b"]), "reject", np.dtype("U6")),
        (np.array(["a", "b"], dtype=object), "reject", object),
    ],
)
def test_reject_label_suits_the_classes(classes, label, dtype, toy):
    y = classes[(toy.y > 2).astype(int)]
    model = RejectOption(quick(), threshold=0.9).fit(toy.X, y)
    found = model.predict(toy.X)
    assert model.reject_label_ == label and found.dtype == dtype
    assert set(found.tolist()) == {label, *classes.tolist()}
    assert model.score(toy.X, y) == np.mean([a == b for a, b in zip(found.tolist(), y.tolist())])


def test_given_reject_label(toy):
    found = RejectOption(quick(), threshold=0.9, reject_label="?").fit(toy.X, toy.y).predict(toy.X)
    assert found.dtype == object and set(found.tolist()) == {"?", 1, 2, 3}
    with pytest.raises(ValueError, match="reject_label=2 is one of the classes"):
        RejectOption(quick(), threshold=0.9, reject_label=2).fit(toy.X, toy.y)
    with pytest.raises(ValueError, match="reject_label='reject' is one of the classes"):
        RejectOption(quick(), threshold=0.9).fit(toy.X, np.where(toy.y == 1, "reject", "keep"))


# --- sets


def sets_by_loop(known, y, new, coverage, method):
    def score(p, c):
        return 1 - p[c] if method == "lac" else sum(v for v in p if v >= p[c])

    own = sorted(score(p, c) for p, c in zip(known, y))
    place = int(np.ceil((len(own) + 1) * coverage))
    most = own[place - 1] if place <= len(own) else np.inf
    return np.array([[score(p, c) <= most + 1e-12 for c in range(len(p))] for p in new])


@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.999])
def test_sets_are_the_plain_loop(method, coverage):
    random = np.random.default_rng(0)
    known, new = random.dirichlet(np.ones(4), size=100), random.dirichlet(np.ones(4), size=50)
    y = np.array([random.choice(4, p=p) for p in known])
    few = coverage == 0.999
    with pytest.warns(FewRowsWarning, match="needs 999 calibration rows, but there are 100") if few else nullcontext():
        found = conformal_sets(known, y, new, coverage, method=method, allow_empty=True)
        filled = conformal_sets(known, y, new, coverage, method=method)
    assert np.array_equal(found, sets_by_loop(known, y, new, coverage, method))
    assert filled.any(axis=1).all() and (filled >= found).all()


@pytest.mark.parametrize("options", [{}, {"method": "aps"}, {"method": "aps", "randomize": True}, {"by_class": True}])
def test_coverage_holds_in_simulations(options):
    """Probabilities that are far too sure still give sets that cover."""
    random = np.random.default_rng(1)
    hits, by_class = [], []
    for seed in range(200):
        p = random.dirichlet([2.0, 1.0, 0.3], size=160)
        y = (random.random((160, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
        told = p**3 / (p**3).sum(axis=1, keepdims=True)
        found = conformal_sets(
            told[:100], y[:100], told[100:], 0.8, labels=range(3), allow_empty=True, random_state=seed, **options
        )
        inside = found[np.arange(60), y[100:]]
        hits.append(inside.mean())
        by_class += list(zip(y[100:], inside))
    mean, error = np.mean(hits), np.std(hits) / np.sqrt(200)
    assert mean > 0.8 - 3 * error
    if options.get("by_class"):
        assert all(np.mean([i for c, i in by_class if c == k]) > 0.79 for k in range(3))
    else:
        assert mean < 0.8 + 1 / 101 + 3 * error + (0.02 if options == {"method": "aps"} else 0)


def test_randomised_sets_are_smaller_and_repeatable(toy):
    model = RejectOption(quick(), threshold=0).fit(toy.X, toy.y)
    plain = model.predict_set(toy.X, 0.8, method="aps")
    shaken = [model.predict_set(toy.X, 0.8, method="aps", randomize=True, random_state=0) for _ in range(2)]
    assert np.array_equal(*shaken) and shaken[0].sum() < plain.sum()


def test_predict_set_is_the_function(toy):
    model = RejectOption(quick(), threshold=0).fit(toy.X[:250], np.array(["", "a", "b", "c"])[toy.y[:250]])
    new = model.predict_proba(toy.X[250:])
    y = model.calibration_labels_
    for options in ({"coverage": 0.7}, {"coverage": 0.9, "by_class": True}, {"coverage": 0.9, "method": "aps"}):
        found = model.predict_set(toy.X[250:], **options)
        assert np.array_equal(found, conformal_sets(model.calibration_proba_, y, new, **options))
        labels = model.predict_set(toy.X[250:], as_labels=True, **options)
        assert [list(each) for each in labels] == [list(model.classes_[row]) for row in found]
    sizes = [model.predict_set(toy.X[250:], c).sum() for c in (0.5, 0.8, 0.95)]
    with pytest.warns(FewRowsWarning, match="every label will be in every set"):
        sizes.append(model.predict_set(toy.X[250:], 0.9999).sum())
    assert sizes == sorted(sizes) and sizes[-1] == 150  # too few rows for 0.9999: every label


# --- manners


def test_pickle_clone_and_search(toy):
    model = RejectOption(quick(), max_error=0.2, reject_label=0).fit(toy.X, toy.y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(toy.X), model.predict(toy.X))
    assert clone(model).get_params()["estimator__width"] == 1.0 and not hasattr(clone(model), "threshold_")
    pipeline = make_pipeline(StandardScaler(), RejectOption(quick(), max_error=0.2))
    search = GridSearchCV(pipeline, {"rejectoption__max_error": [0.1, 0.4], "rejectoption__estimator__width": [1.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingKeptWarning)
        search.fit(toy.X, toy.y)
    assert search.best_params_["rejectoption__max_error"] == 0.4  # accuracy counts what was rejected as missed


def test_passes_on_what_the_classifier_has(toy):
    model = RejectOption(quick(), threshold=0.5).fit(toy.X, toy.y)
    assert np.array_equal(model.decision_function(toy.X), model.estimator_.decision_function(toy.X))
    assert model.n_features_in_ == 2 and not hasattr(model, "feature_names_in_")
    assert not hasattr(RejectOption(quick(), threshold=0.5), "n_features_in_")
    assert not hasattr(RejectOption(LinearSVC(), threshold=0.5), "predict_proba")
    strings = ["abc", "abd", "xyz", "xyw"] * 10
    from kproba import Spectrum

    rows = RejectOption(LSPC(kernel=Spectrum(2), ridge=0.1), threshold=0.5).fit(strings, [0, 0, 1, 1] * 10)
    assert rows.predict(strings[:3]).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "set exactly one of max_error, cost and threshold; got none"),
        ({"max_error": 0.1, "cost": 0.1}, "got max_error and cost"),
        ({"max_error": 0.0}, r"max_error must be a float in the range \(0, 1\), got 0.0"),
        ({"max_error": True}, r"max_error must be a float in the range \(0, 1\), got True"),
        ({"cost": 1.0}, r"cost must be a float in the range \(0, 1\), got 1.0"),
        ({"cost": np.ones((3, 3))}, r"cost has shape \(3, 3\); with 3 classes use"),
        ({"cost": np.full((3, 4), np.nan)}, "cost has entries that are not finite"),
        ({"threshold": 1.1}, "threshold=1.1 must be a number from 0 to 1"),
        ({"threshold": 0.5, "confidence": 1}, r"confidence must be a float in the range \(0, 1\), got 1"),
        ({"threshold": 0.5, "calibration": "jackknife"}, "calibration must be .*, got 'jackknife'"),
    ],
)
def test_bad_parameters(options, message, toy):
    with pytest.raises(ValueError, match=message):
        RejectOption(quick(), **options).fit(toy.X, toy.y)


def test_source_is_refused_but_predicted(toy):
    source = ArraySource(toy.X, toy.y)
    with pytest.raises(TypeError, match="X is a source of rows, which has no leave-one-out probabilities"):
        RejectOption(quick(), threshold=0.5).fit(source, None)
    model = RejectOption(quick(), threshold=0.8).fit(toy.X, toy.y)
    assert np.array_equal(model.predict(source), model.predict(toy.X))
    assert np.array_equal(model.predict_set(source), model.predict_set(toy.X))


def test_bad_input(toy):
    with pytest.raises(ValueError, match="y is multi-label"):
        RejectOption(quick(), threshold=0.5).fit(toy.X, np.eye(3)[toy.y - 1])
    with pytest.raises(ValueError, match="has no predict_proba"):
        RejectOption(quick(link="none"), threshold=0.5).fit(toy.X, toy.y)
    with pytest.raises(ValueError, match="has no loo_proba_; use calibration='cv'"):
        RejectOption(LogisticRegression(), threshold=0.5, calibration="loo").fit(toy.X, toy.y)
    with pytest.raises(NotFittedError):
        RejectOption(quick(), threshold=0.5).predict(toy.X)
    model = RejectOption(quick(), threshold=0.5).fit(toy.X, toy.y)
    for options, message in [
        ({"coverage": 1.0}, r"coverage must be a float in the range \(0, 1\), got 1.0"),
        ({"method": "raps"}, "method must be .*, got 'raps'"),
        ({"randomize": True}, "randomize=True requires method='aps'"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.predict_set(toy.X, **options)
    with pytest.raises(TypeError, match="by_class=1 must be True or False"):
        model.predict_set(toy.X, by_class=1)
    p = np.full((4, 2), 0.5)
    for arguments, message in [
        ((p, [0, 1, 2, 0], p), "proba_calibration has 2 columns but there are 3 labels"),
        ((p, [0, 1, 0, 1], p[:, :1]), "proba_new has 1 columns but there are 2 labels"),
        ((p, [0, 1, 0], p), "4 rows but y has 3 labels"),
        ((p, p, p), "one label per row"),
    ]:
        with pytest.raises(ValueError, match=message):
            conformal_sets(*arguments)


def test_display(toy):
    pytest.importorskip("matplotlib").use("Agg")
    model = RejectOption(quick(), max_error=0.2).fit(toy.X, toy.y)
    new = three_classes_2010(200, random_state=1)
    display = displays.RiskCoverageDisplay.from_estimator(model, new.X, new.y)
    error = (model.predict_proba(new.X).argmax(axis=1) + 1 != new.y).mean()
    assert display.curve["error"][-1] == pytest.approx(error)
    assert display.threshold == model.threshold_ and len(display.ax_.lines) >= 3
    plain = displays.RiskCoverageDisplay.from_estimator(model.estimator_, new.X, new.y, ax=display.ax_)
    assert np.array_equal(plain.curve["error"], display.curve["error"]) and plain.threshold is None
    given = displays.RiskCoverageDisplay.from_predictions(new.y, model.predict_proba(new.X), labels=[1, 2, 3])
    assert np.array_equal(given.curve["upper_bound"], plain.curve["upper_bound"])
    own = displays.RiskCoverageDisplay.from_estimator(model)
    assert np.array_equal(own.curve["error"], model.risk_coverage_curve_["error"])
    with pytest.raises(ValueError, match="pass X and y"):
        displays.RiskCoverageDisplay.from_estimator(model.estimator_)


def test_curve_of_iris_falls_with_the_threshold():
    X, y = load_iris(return_X_y=True)
    model = RejectOption(quick(), threshold=0).fit(X, y)
    curve = risk_coverage(model.calibration_proba_.max(axis=1), model.calibration_proba_.argmax(axis=1) != y)
    assert curve.error[0] == 0 < curve.error[-1] < 0.1


def cannot_hold(estimator):
    reason = "the label of a rejected row is not the argmax of its probabilities"
    return {} if estimator.threshold == 0 else {"check_classifiers_train": reason}


@pytest.mark.filterwarnings("ignore::kproba.FewRowsWarning")  # tables of categories are rounded to few values
@parametrize_with_checks(
    [
        RejectOption(LogisticRegression(), threshold=0.0, cv=2),
        RejectOption(quick(), threshold=0.0),
        RejectOption(quick(), cost=0.49),
    ],
    expected_failed_checks=cannot_hold,
)
def test_estimator_contract(estimator, check):
    check(estimator)
