"""Values, weights and widths at the ends of what numbers can hold: the right answer, or an error that names them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import log_loss

from kproba import LSPC, Gaussian, ImportVectorMachine, KernelLogisticRegression, Matern, SurfaceKernelClassifier
from kproba.basis.moments import Moments
from kproba.data.rows import Rows
from kproba.data.scaling import FARTHEST, SQUASH_AT, fit_scaling
from kproba.data.sources import ArraySource
from kproba.kernels import Intersection, Laplacian
from kproba.kernels.radial import squared_distances
from oracles import gaussian

ALL = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)


def two_clouds(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 2.5 * y[:, None], y


def rows_of(X, y=None):
    n = X.shape[0]
    return Rows.of(X, np.arange(n) % 2 if y is None else y, np.ones(n), 2)


class TestDistances:
    @pytest.mark.parametrize("far", [0.0, 1e6, 1e9, 1e12])
    @pytest.mark.parametrize("share", [0.02, 0.5])
    def test_rows_far_away_leave_the_others_exact(self, far, share):
        """One row, or half of them, at a distance at which the terms of the product cancel."""
        X = two_clouds()[0]
        X[: max(1, int(share * len(X)))] += far
        found = np.empty((len(X), len(X)))
        squared_distances(X)(X, found)
        exact = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-5)

    @pytest.mark.parametrize("classifier", ALL)
    def test_one_row_far_away_spoils_no_model(self, classifier):
        X, y = two_clouds()
        far = X.copy()
        far[0] = 1e12
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = classifier(scaling=None, random_state=0).fit(far, y)
        assert (clf.predict(X[1:]) == y[1:]).mean() > 0.9

    @pytest.mark.parametrize("largest", [1e200, 1e-200])
    @pytest.mark.parametrize("classifier", ALL)
    def test_units_without_squares_are_refused(self, classifier, largest):
        X, y = two_clouds()
        with pytest.raises(ValueError, match=r"X has .* use scaling='robust' or rescale X"):
            classifier(scaling=None).fit(X * largest, y)
        assert (classifier(random_state=0).fit(X * largest, y).predict(X * largest) == y).mean() > 0.9


@pytest.mark.parametrize("classifier", [LSPC, KernelLogisticRegression])
def test_learning_where_float32_cannot_tell_rows_apart(classifier):
    """Seconds since 1970: folds held few rows of many copies, or learning failed."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.permutation(np.arange(300.0)), rng.normal(size=(300, 2))])
    y = ((X[:, 1] > 0) ^ (np.sin(X[:, 0] / 30) > 0) ^ (rng.random(300) < 0.1)).astype(int)
    near, far = (classifier(random_state=0).fit(X + shift, y) for shift in ([0, 0, 0], [1.7e9, 1e8, 1e8]))
    losses = [[log_loss(y, proba) for proba in (clf.oof_proba_, clf.loo_proba_)] for clf in (near, far)]
    assert losses[1] == pytest.approx(losses[0], rel=0.15)  # folds are others


class TestScaling:
    @pytest.mark.parametrize("mode", ["robust", "standard"])
    def test_rows_far_away_stay_far(self, mode):
        """A square that overflowed put them back into the middle."""
        X = np.random.default_rng(0).normal(size=(30, 2)) * [1e-200, 1.0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            far = fit_scaling(mode, rows_of(X))(np.array([[1.0, 0.0], [-1.0, 1e308]]))
        expected = SQUASH_AT if mode == "robust" else FARTHEST
        np.testing.assert_allclose(far[:, 0], [expected, -expected])
        assert np.isfinite(far).all()

    @pytest.mark.parametrize("n", range(2, 40))
    def test_constant_columns_are_constant(self, n):
        X = np.column_stack([np.arange(n, dtype=float), np.full(n, 0.1)])
        scaling = fit_scaling("standard", rows_of(X))
        assert scaling.scale[1] == 1.0
        np.testing.assert_array_equal(scaling(X)[:, 1], 0.0)

    @pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200])
    def test_sparse_columns_of_any_size(self, size):
        X = np.random.default_rng(0).normal(size=(20, 3)) * [1.0, size, 0.0]
        scaled = fit_scaling("auto", rows_of(sparse.csr_array(X)))(sparse.csr_array(X)).toarray()
        np.testing.assert_allclose(np.sqrt((scaled[:, :2] ** 2).mean(axis=0)), 1.0, rtol=1e-4)

    @pytest.mark.parametrize("classifier", ALL)
    def test_denormal_columns(self, classifier):
        X, y = two_clouds()
        rng = np.random.default_rng(1)
        spread = np.where(rng.random(80) < 0.9, rng.random(80) * 5e-322, rng.normal(size=80))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            proba = (
                classifier(random_state=0)
                .fit(np.c_[X, rng.random(80) * 1e-310, spread], y)
                .predict_proba(np.c_[X, np.full((80, 2), 1e300)])
            )
        assert np.isfinite(proba).all()


class TestWeightsAndWidths:
    @pytest.mark.parametrize("weight", [1e308, 1e16, 1e-16, 5e-324])
    @pytest.mark.parametrize("classifier", ALL)
    def test_weights_whose_sums_are_no_numbers(self, classifier, weight):
        X, y = two_clouds(20)
        with pytest.raises(ValueError, match=r"the largest sample_weight is .* between 1e-15 and 1e\+15"):
            classifier().fit(X, y, np.full(20, weight))
        with pytest.raises(ValueError, match=r"class_weight\[0\] = .* between 1e-15 and 1e\+15"):
            classifier(class_weight={0: weight}).fit(X, y)

    @pytest.mark.parametrize("weight", [1e-300, 1e-12, 1e14])
    @pytest.mark.parametrize("classifier", ALL)
    def test_weights_of_any_size_that_is_allowed(self, classifier, weight):
        X, y = two_clouds(40)
        clf = classifier(random_state=0).fit(X, y, np.where(np.arange(40) % 3, weight, 1.0))
        proba = clf.predict_proba(X)
        assert np.isfinite(proba).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)

    def test_weights_of_sources(self):
        X, y = two_clouds(20)
        with pytest.raises(ValueError, match=r"the weight 1e\+60 in row 3 .* between 1e-15 and 1e\+15"):
            LSPC().fit(ArraySource(X, y, np.r_[1.0, 1.0, 1.0, 1e60, np.ones(16)]))

    @pytest.mark.parametrize("width", [1e-300, 1e300, 0.0, -1.0, np.inf, np.nan])
    def test_widths_whose_squares_are_no_numbers(self, width):
        X, y = two_clouds(20)
        extreme = width in (1e-300, 1e300)
        message = r"width=.* must be a positive number between" if extreme else rf"width must be a .*, got {width}\."
        for classifier in ALL:
            with pytest.raises(ValueError, match=message):
                classifier(width=width).fit(X, y)
        with pytest.raises(ValueError, match=r"width=.* must be a positive number"):
            Gaussian(width=width)

    @pytest.mark.parametrize("width", [1e-153, 1e153])
    @pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
    def test_the_narrowest_and_the_widest_kernel(self, width, nu):
        X = two_clouds(6)[0]
        expected = np.eye(6) if width < 1 else np.ones((6, 6))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(Matern(width=width, nu=nu).gram(X), expected)
            np.testing.assert_array_equal(Gaussian(width=width).gram(X), expected)


def test_a_kernel_matrix_that_is_hardly_definite_raises_the_ridge():
    """The dual form warned of nothing and failed where the primal one raised the ridge."""
    X, y = two_clouds(40, d=1)
    K = gaussian(X, X, 50.0)
    K -= 1e-10 * np.eye(40)
    with pytest.warns(UserWarning, match="singular to working precision"):
        clf = LSPC(kernel="precomputed", ridge=1e-14, centers="all").fit(K, y)
    assert np.isfinite(clf.predict_proba(K)).all()


class TestArgumentsAreNamed:
    X, y = two_clouds(20)

    @pytest.mark.parametrize("classifier", ALL)
    @pytest.mark.parametrize("seed", [-1, 1.5, "one", [1.0, -1.0], {}])
    def test_random_state(self, classifier, seed):
        with pytest.raises(ValueError, match="random_state="):
            classifier(random_state=seed).fit(self.X, self.y)

    @pytest.mark.parametrize("classifier", ALL[:3])
    def test_ridge_whose_products_overflow(self, classifier):
        with pytest.raises(ValueError, match=r"ridge must be at most 1e\+100, .* got 1e\+300"):
            classifier(ridge=1e300).fit(self.X, self.y)
        classifier(ridge=1e100, kernel="gaussian", width=1.0).fit(self.X, self.y)

    @pytest.mark.parametrize("classifier", [LSPC, KernelLogisticRegression, SurfaceKernelClassifier])
    def test_centers_whose_squares_overflow(self, classifier):
        with pytest.raises(ValueError, match="centers has values above"):
            classifier(centers=np.full((2, 3), 1e200), scaling=None).fit(self.X, self.y)

    def test_class_weights_that_leave_nothing(self):
        with pytest.raises(ValueError, match="class_weight="):
            LSPC(class_weight={0: 0.0, 1: 0.0}).partial_fit(self.X, self.y, [0, 1])


class TestNoCenters:
    @pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.0, 1.5), Laplacian(1.0), Intersection()])
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_features(self, kernel, form):
        X = form(np.eye(3))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert kernel(X, X[:0]).shape == kernel.evaluator(X[:0])(X).shape == (3, 0)

    def test_moments(self):
        found = Moments.of(np.empty((3, 0)), np.eye(3), np.arange(3.0))
        assert found.n == 3.0 and found.totals.tolist() == [0.0, 1.0, 2.0] and found.H.shape == (0, 0)


@pytest.mark.parametrize("classifier", ALL)
def test_new_rows_may_be_nearly_zero(classifier):
    """Rows that are all tiny are no ground for a fit without scaling, but a fine place to predict at."""
    X, y = two_clouds()
    clf = classifier(scaling=None, kernel="gaussian", width=1.0, random_state=0).fit(X, y)
    near, zero = np.full((1, 3), 1e-200), np.zeros((1, 3))
    np.testing.assert_array_equal(clf.predict_proba(near), clf.predict_proba(zero))


def test_rows_whose_sum_is_no_number():
    """The largest float32 of both signs: scikit-learn's check adds them up."""
    X, y = two_clouds()
    X = X.astype(np.float32)
    X[:40, 0], X[40:, 0] = np.finfo(np.float32).max, -np.finfo(np.float32).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LSPC(kernel="gaussian", width=1.0, ridge=0.1).fit(X, y).predict_proba(X)
