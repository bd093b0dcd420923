"""Metrics against cases worked by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from kproba.metrics import brier_score, calibration_error, reliability_bins, surface_loss

Y = ["a", "b", "c", "a"]
PROBA = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
METRICS = [brier_score, surface_loss, calibration_error]


@pytest.fixture
def random_case():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1.0, 2.0, 1.5, 0.5], size=60)
    y = np.array([rng.choice(4, p=p) for p in proba])
    y[:4] = range(4)
    return y, proba, rng


@pytest.mark.parametrize(
    "y, proba, expected",
    [
        ([0, 1], [[1.0, 0.0], [0.0, 1.0]], 0.0),
        ([0, 1], [[0.0, 1.0], [1.0, 0.0]], 2.0),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], 0.5),
        # .25 + .09 + .04 = .38; .04 + .16 + .04 = .24; .01 + .04 + .09 = .14; .49 + .09 + .16 = .74
        (Y, PROBA, (0.38 + 0.24 + 0.14 + 0.74) / 4),
    ],
)
def test_brier_score_by_hand(y, proba, expected):
    assert brier_score(y, proba) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    "y, proba, expected",
    [
        ([0, 1], [[1.0, 0.0], [0.0, 1.0]], 0.5),
        ([0, 1], [[0.0, 1.0], [1.0, 0.0]], -0.5),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], 0.25),
        # own − ½Σp²: 0.5 − 0.19; 0.6 − 0.22; 0.7 − 0.27; 0.3 − 0.17
        (Y, PROBA, (0.31 + 0.38 + 0.43 + 0.13) / 4),
    ],
)
def test_surface_loss_by_hand(y, proba, expected):
    """2013 Eq. 1."""
    assert surface_loss(y, proba) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
def test_surface_loss_is_half_of_one_minus_brier(weighted, random_case):
    y, proba, rng = random_case
    weight = rng.uniform(size=len(y)) if weighted else None
    half = (1 - brier_score(y, proba, sample_weight=weight)) / 2
    assert surface_loss(y, proba, sample_weight=weight) == pytest.approx(half, abs=1e-14)


def test_surface_loss_is_largest_at_the_true_probabilities():
    """A proper score: with frequencies 1/4 and 3/4 no other constant prediction does better."""
    y = [0, 1, 1, 1]
    losses = {p: surface_loss(y, [[1 - p, p]] * 4) for p in np.linspace(0, 1, 21)}
    assert max(losses, key=losses.get) == pytest.approx(0.75)


def test_brier_of_two_classes_is_twice_scikit_learns(random_case):
    y, proba, _ = random_case
    y, p = y % 2, proba[:, 0]
    both = np.column_stack([1 - p, p])
    assert brier_score(y, both) == pytest.approx(2 * brier_score_loss(y, p), abs=1e-14)
    assert brier_score(y, both) == pytest.approx(brier_score_loss(y, p, scale_by_half=False), abs=1e-14)


def test_brier_of_many_classes_equals_scikit_learns(random_case):
    y, proba, rng = random_case
    weight = rng.uniform(size=len(y))
    ours = brier_score(y, proba, sample_weight=weight)
    assert ours == pytest.approx(brier_score_loss(y, proba, sample_weight=weight), abs=1e-14)


BINS = [{"n_bins": n, "strategy": s, "of": of} for n, s, of in [(5, "uniform", "top"), (4, "quantile", "top")]]
BINS += [
    {"n_bins": 5, "strategy": "uniform", "of": "all"},
    {"n_bins": 4, "strategy": "quantile", "of": "all"},
]


@pytest.mark.parametrize(
    "metric, options", [(brier_score, {}), (surface_loss, {}), *((calibration_error, bins) for bins in BINS)]
)
def test_weights_equal_repetition(metric, options, random_case):
    y, proba, rng = random_case
    weight = rng.integers(1, 4, size=len(y))
    weighted = metric(y, proba, sample_weight=weight, **options)
    repeated = metric(np.repeat(y, weight), np.repeat(proba, weight, axis=0), **options)
    assert weighted == pytest.approx(repeated, abs=1e-13)
    assert weighted != pytest.approx(metric(y, proba, **options), abs=1e-6)


@pytest.mark.parametrize("options", BINS)
def test_order_of_rows_does_not_matter(options, random_case):
    """Not even where confidences are tied."""
    y, proba, rng = random_case
    proba = proba.round(1)
    order = rng.permutation(len(y))
    expected = calibration_error(y, proba, **options)
    assert calibration_error(y[order], proba[order], **options) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("metric", METRICS)
def test_rows_of_weight_zero_do_not_count(metric, random_case):
    y, proba, _ = random_case
    weight = np.ones(len(y))
    weight[40:] = 0
    ours = metric(y, proba, sample_weight=weight)
    assert ours == pytest.approx(metric(y[:40], proba[:40], labels=[0, 1, 2, 3]), abs=1e-13)


@pytest.mark.parametrize("metric", METRICS)
def test_labels_name_classes_that_do_not_occur(metric):
    proba = [[0.6, 0.1, 0.3], [0.1, 0.2, 0.7]]
    assert np.isfinite(metric(["a", "c"], proba, labels=["a", "b", "c"]))
    with pytest.raises(ValueError, match=r"proba has 3 columns but there are 2 labels.*`labels`"):
        metric(["a", "c"], proba)


@pytest.mark.parametrize("metric", METRICS)
def test_labels_in_any_order(metric):
    """Columns follow `labels`, also where these are not sorted."""
    expected = metric(Y, PROBA, labels=["a", "b", "c"])
    assert metric(Y, PROBA[:, [2, 0, 1]], labels=["c", "a", "b"]) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("metric", [*METRICS, reliability_bins])
@pytest.mark.parametrize(
    "y, proba, options, message",
    [
        ([0, 1], [[0.5, 0.5]], {}, "inconsistent"),
        ([0, 2], [[0.5, 0.5], [0.5, 0.5]], {"labels": [0, 1]}, "y_true has the label 2, which is not among"),
        ([0, 1], [[0.5, np.nan], [0.5, 0.5]], {}, "proba contains NaN"),
        ([0, 1], [0.5, 0.5], {}, "2D array"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], {"sample_weight": [1.0]}, "sample_weight"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], {"sample_weight": [1.0, -1.0]}, "sample_weight"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], {"sample_weight": [0.0, 0.0]}, "sample_weight"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], {"sample_weight": [1.0, np.nan]}, "sample_weight"),
    ],
    ids=["rows", "label", "nan", "1-d", "short", "negative", "zero", "nan-weight"],
)
def test_errors_name_the_argument(metric, y, proba, options, message):
    with pytest.raises(ValueError, match=message):
        metric(y, proba, **options)


@pytest.mark.parametrize("metric", [calibration_error, reliability_bins])
def test_confidence_must_be_a_probability(metric):
    with pytest.raises(ValueError, match=r"proba.*outside"):
        metric([0, 1], [[1.5, -0.5], [0.5, 0.5]])


@pytest.mark.parametrize("metric", [brier_score, surface_loss])
def test_squared_losses_take_any_output(metric):
    """2013: the surface loss is defined for outputs outside [0, 1] too."""
    assert np.isfinite(metric([0, 1], [[1.5, -0.5], [0.5, 0.5]]))


@pytest.mark.parametrize("metric", [calibration_error, reliability_bins])
@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_bins": 0}, "n_bins=0 must be at least 1"),
        ({"strategy": "deciles"}, "strategy must be 'quantile' or 'uniform', got 'deciles'"),
        ({"of": "second"}, "of must be 'top' or 'all', got 'second'"),
    ],
)
def test_unknown_options(metric, options, message):
    with pytest.raises(ValueError, match=message):
        metric(Y, PROBA, **options)


class TestBins:
    """Four rows of two classes, top confidences 0.6, 0.7, 0.8, 0.9, of which the second is wrong."""

    y = (1, 0, 1, 0)
    proba = ((0.1, 0.9), (0.3, 0.7), (0.4, 0.6), (0.8, 0.2))

    def test_quantile_bins_of_equal_weight(self):
        bins = reliability_bins(self.y, self.proba, n_bins=2)
        np.testing.assert_allclose(bins.confidence, [0.65, 0.85])
        np.testing.assert_allclose(bins.frequency, [0.5, 1.0])
        np.testing.assert_allclose(bins.weight, [2.0, 2.0])

    def test_uniform_bins_leave_out_empty_ones(self):
        bins = reliability_bins(self.y, self.proba, n_bins=4, strategy="uniform")
        np.testing.assert_allclose(bins.confidence, [0.65, 0.85])  # [0.5, 0.75) and [0.75, 1]
        np.testing.assert_allclose(bins.frequency, [0.5, 1.0])

    def test_the_two_strategies_differ(self):
        quantile = reliability_bins(self.y, self.proba, n_bins=4)
        assert len(quantile.confidence) == 4
        assert len(reliability_bins(self.y, self.proba, n_bins=4, strategy="uniform").confidence) == 2

    def test_all_classes_of_all_rows(self):
        bins = reliability_bins(self.y, self.proba, n_bins=2, strategy="uniform", of="all")
        np.testing.assert_allclose(bins.confidence, [0.25, 0.75])
        np.testing.assert_allclose(bins.frequency, [0.25, 0.75])  # row 2 is wrong on both sides
        np.testing.assert_allclose(bins.weight, [4.0, 4.0])

    def test_calibration_error_by_hand(self):
        # (|0.65 − 0.5| + |0.85 − 1|)/2
        assert calibration_error(self.y, self.proba, n_bins=2) == pytest.approx(0.15)
        # |0.75 − 0.75|
        assert calibration_error(self.y, self.proba, n_bins=1) == pytest.approx(0.0, abs=1e-15)
        # 0.1, 0.2, 0.7, 0.4 off
        assert calibration_error(self.y, self.proba, n_bins=4) == pytest.approx((0.4 + 0.7 + 0.2 + 0.1) / 4)

    def test_weights_move_the_bins(self):
        bins = reliability_bins(self.y, self.proba, n_bins=2, sample_weight=[3.0, 1.0, 1.0, 1.0])
        np.testing.assert_allclose(bins.weight, [3.0, 3.0])
        np.testing.assert_allclose(bins.confidence, [0.7, 0.9])
        np.testing.assert_allclose(bins.frequency, [2 / 3, 1.0])

    def test_probabilities_of_zero_and_one_fall_into_the_outer_bins(self):
        bins = reliability_bins([0, 1], [[1.0, 0.0], [0.0, 1.0]], n_bins=10, strategy="uniform", of="all")
        np.testing.assert_array_equal(bins.confidence, [0.0, 1.0])
        np.testing.assert_array_equal(bins.frequency, [0.0, 1.0])
        np.testing.assert_array_equal(bins.weight, [2.0, 2.0])


@pytest.mark.parametrize("n_bins", [1, 6])
def test_bins_of_all_classes_equal_scikit_learns_calibration_curve(n_bins, random_case):
    """Every class of every row is a two-class problem of its own."""
    y, proba, _ = random_case
    bins = reliability_bins(y, proba, n_bins=n_bins, strategy="uniform", of="all")
    hits = (y[:, None] == np.arange(4)).ravel()
    frequency, confidence = calibration_curve(hits, proba.ravel(), n_bins=n_bins)
    np.testing.assert_allclose(bins.frequency, frequency, atol=1e-12)
    np.testing.assert_allclose(bins.confidence, confidence, atol=1e-12)


def test_top_bins_equal_scikit_learns_calibration_curve(random_case):
    """Being right is a two-class problem of its own, whose probability is the confidence."""
    y, proba, _ = random_case
    bins = reliability_bins(y, proba, n_bins=6, strategy="uniform")
    frequency, confidence = calibration_curve(proba.argmax(axis=1) == y, proba.max(axis=1), n_bins=6)
    np.testing.assert_allclose(bins.frequency, frequency, atol=1e-12)
    np.testing.assert_allclose(bins.confidence, confidence, atol=1e-12)


def test_a_calibrated_forecast_has_a_small_error_and_an_overconfident_one_a_large():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.5, 1.0, size=4000)
    y = (rng.uniform(size=4000) > p).astype(int)
    assert calibration_error(y, np.column_stack([p, 1 - p])) < 0.04
    sharp = p**4 / (p**4 + (1 - p) ** 4)
    assert calibration_error(y, np.column_stack([sharp, 1 - sharp])) > 0.08
