"""Kernel logistic regression by passes over all rows: where Newton's method in memory ends, in few passes."""

import numpy as np
import pytest

from kproba import ConvergenceWarning, KernelLogisticRegression
from kproba.data.checkpoint import Checkpoint
from kproba.data.sources import ArraySource
from kproba.estimators import _reading
from kproba.problems.streamed_likelihood import SlopeOf

N, SAMPLE = 4000, 600


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(_reading, "sample_size", lambda d: SAMPLE)


def rows_of(c, n=N, d=5):
    """Rows of c classes, the last of which is rare, and their weights."""
    random = np.random.default_rng(c)
    X = random.normal(size=(n, d))
    F = 2.0 * np.sin(X @ random.normal(size=(d, c))) - 2.0 * (np.arange(c) == c - 1)
    return X, (F + random.gumbel(size=F.shape)).argmax(axis=1), random.integers(1, 4, n).astype(float)


def given(X, **changes):
    options = {"kernel": "gaussian", "width": 2.0, "ridge": 1e-4, "scaling": None, "centers": X[:60], "tol": 1e-14}
    return KernelLogisticRegression(**{**options, **changes}, random_state=0)


def scores_of(model, X):
    return model.basis_.scores(X, model.coef_) + model.intercept_


class TestSameOptimum:
    """With everything given, ``loo=True`` keeps the rows in memory, where Newton's method has them all."""

    @pytest.mark.parametrize("c", [2, 3, 10])
    @pytest.mark.parametrize("ridge", [1e-2, 1e-4])
    def test_as_in_memory(self, c, ridge, small_sample):
        X, y, _ = rows_of(c)
        streamed = given(X, ridge=ridge).fit(X, y)
        exact = given(X, ridge=ridge, loo=True, tol=1e-15).fit(X, y)
        np.testing.assert_allclose(scores_of(streamed, X), scores_of(exact, X), atol=1e-6)
        assert not hasattr(streamed, "loo_scores_") and streamed.n_iter_ < 20

    @pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
    def test_weights(self, class_weight, small_sample):
        X, y, weight = rows_of(3)
        model = given(X, class_weight=class_weight)
        exact = given(X, class_weight=class_weight, loo=True).fit(X, y, weight)
        np.testing.assert_allclose(scores_of(model.fit(X, y, weight), X), scores_of(exact, X), atol=1e-6)

    def test_centres_of_each_class(self, small_sample):
        """The same centres by their classes: the optimum has no slope where coefficients exist."""
        X, y, _ = rows_of(3)
        model = given(X, centers=("class", 15)).fit(ArraySource(X, y))
        owner, phi = model.basis_.owner, model.basis_(X)
        residual = model.predict_proba(X) - np.eye(3)[y]
        slope = phi.T @ residual / N + model.ridge_ * model.basis_.gram() @ model.coef_
        own = owner[:, None] == np.arange(3)
        assert np.abs(slope[own]).max() < 1e-6 and not model.coef_[~own].any()
        assert np.abs(residual.mean(axis=0)).max() < 1e-6

    def test_float32(self, small_sample):
        X, y, _ = rows_of(2)
        model = given(X, tol=1e-8)
        double = model.fit(X, y).predict_proba(X)
        np.testing.assert_allclose(model.fit(X.astype(np.float32), y).predict_proba(X), double, atol=1e-3)

    def test_a_sample_that_knows_too_little(self, small_sample):
        """Hardly any penalty and few rows to the centre: the sample's Hessian misleads, and steps have to be cut."""
        X, y, _ = rows_of(2)
        options = {"ridge": 1e-6, "centers": X[:150]}
        streamed = given(X, **options, tol=1e-8, max_iter=200).fit(X, y)
        exact = given(X, **options, loo=True, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(streamed.predict_proba(X), exact.predict_proba(X), atol=1e-2)


def test_few_passes(small_sample):
    X, y, _ = rows_of(3)
    assert given(X, ridge=1e-3, tol=1e-4).fit(X, y).n_iter_ <= 4


def test_the_slope_is_the_derivative(small_sample):
    """Of the loss of chunks, by differences."""
    X, y, weight = rows_of(3)
    passes = []

    class Kept(SlopeOf):
        def add(self, total, chunk):
            passes.append((self, chunk))
            return super().add(total, chunk)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kproba.problems.streamed_likelihood.SlopeOf", Kept)
        patch.setattr("kproba.problems.streamed_likelihood.KEPT_BYTES", 0)
        given(X, tol=1e-4).fit(X, y, weight)
    statistic, chunk = passes[0]
    slope, turn = statistic.add(statistic.zero(), chunk), np.random.default_rng(0).normal(size=statistic.X.shape)
    ends = [Kept(statistic.basis, statistic.encoding, statistic.loss, statistic.X + h * turn) for h in (1e-5, -1e-5)]
    up, down = (end.add(end.zero(), chunk).loss for end in ends)
    assert np.vdot(slope.gradient, turn) == pytest.approx((up - down) / 2e-5, rel=1e-6)
    half = statistic.add(statistic.add(statistic.zero(), chunk), chunk)
    assert (slope + slope).loss == pytest.approx(half.loss)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kept_features_change_nothing(small_sample, monkeypatch, dtype):
    X, y, weight = rows_of(3)
    model, source = given(X, ridge=1e-3, tol=1e-8), ArraySource(X.astype(dtype), y, weight, chunk_bytes=40_000)
    kept = model.fit(source).coef_.copy()
    monkeypatch.setattr("kproba.problems.streamed_likelihood.KEPT_BYTES", 0)
    np.testing.assert_array_equal(model.fit(source).coef_, kept)


class TestRidge:
    def test_the_penalty_stays_what_it_is(self, small_sample):
        X, y, _ = rows_of(2)
        model = KernelLogisticRegression(kernel="gaussian", width=2.0, centers=60, random_state=0).fit(X, y)
        tried = model.search_results_
        settled = tried["stage"] == "ridge"
        assert np.isclose(model.ridge_, (tried["ridge"] * tried["rows"])[settled] / N, rtol=1e-9).any()

    def test_one_of_those_given(self, small_sample):
        X, y, _ = rows_of(2)
        ridges = [1e-1, 1e-3, 1e-5]
        model = KernelLogisticRegression(kernel="gaussian", width=2.0, ridge=ridges, centers=60, random_state=0)
        assert model.fit(X, y).ridge_ in ridges

    def test_by_folds(self, small_sample):
        X, y, _ = rows_of(2)
        model = given(X, ridge=[1e-2, 1e-4], selection="cv", tol=1e-4).fit(X, y)
        assert model.ridge_ in (1e-2, 1e-4) and set(model.search_results_["stage"]) == {"folds"}


def test_goes_on_in_a_later_pass(small_sample, tmp_path, monkeypatch):
    """Interrupted in the second and in the third pass, it ends with the same coefficients to the last bit."""
    monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))
    X, y, _ = rows_of(3)
    source, model = ArraySource(X, y, chunk_bytes=40_000), given(X, ridge=1e-3, tol=1e-8)
    whole = model.set_params(random_state=7).fit(source).coef_.copy()
    add, seen = SlopeOf.add, {}

    def interrupted(self, total, chunk):
        seen["n"] += 1
        if seen["n"] == seen["stop"]:
            raise KeyboardInterrupt
        return add(self, total, chunk)

    monkeypatch.setattr(SlopeOf, "add", interrupted)
    for stop, complete in ((6, 1), (5, 2)):
        seen.update(n=0, stop=stop)
        with pytest.raises(KeyboardInterrupt):
            model.fit(source, checkpoint=tmp_path)
        assert len(list(tmp_path.glob("sums-*.npz"))) == complete + 1
    seen.update(n=0, stop=-1)
    np.testing.assert_array_equal(model.set_params(random_state=99).fit(source, checkpoint=tmp_path).coef_, whole)
    assert seen["n"] < 4 * model.n_iter_ and not list(tmp_path.iterdir())


def test_a_class_that_no_row_has():
    X, y, _ = rows_of(2, n=500)
    model = given(X, tol=1e-4).fit(X, y, classes=[7])
    assert list(model.classes_) == [0, 1, 7] and model.predict_proba(X)[:, 2].max() < 0.01


def test_says_that_it_did_not_converge(small_sample):
    X, y, _ = rows_of(3)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 passes over all rows at ridge=1e-06; increase max_iter"):
        assert given(X, ridge=1e-6, max_iter=2, tol=1e-9).fit(X, y).n_iter_ == 2


class TestRefused:
    @pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
    def test_solvers_that_need_all_rows(self, solver):
        X, y, _ = rows_of(2, n=200)
        with pytest.raises(ValueError, match=f"solver='{solver}' needs all rows in memory"):
            KernelLogisticRegression(solver=solver).fit(ArraySource(X, y))

    @pytest.mark.parametrize("centers", ["all", "class"])
    def test_centres_that_need_all_rows(self, centers):
        X, y, _ = rows_of(2, n=200)
        with pytest.raises(ValueError, match=f"centers='{centers}' makes every row a centre"):
            KernelLogisticRegression(centers=centers).fit(ArraySource(X, y))

    def test_partial_fit(self):
        assert not hasattr(KernelLogisticRegression(), "partial_fit")
