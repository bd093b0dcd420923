"""Kernel logistic regression against dense textbook versions."""

import warnings

import numpy as np
import pytest
import sklearn.exceptions
from scipy import sparse
from scipy.special import logsumexp

import kproba.problems.leave_one_out as left_out
import kproba.problems.likelihood as likelihood
from kproba import ConvergenceWarning, Gaussian, KernelLogisticRegression
from kproba.basis.basis import Basis
from kproba.data.folds import stratified_folds
from kproba.data.rows import Rows
from kproba.problems.likelihood import Likelihood
from kproba.problems.losses import Multinomial, Tags
from kproba.search.folds import cross_validate
from kproba.search.losses import LogLoss
from oracles import fitted_klr, klr_objective


def classes(n=300, c=3, d=4, noise=0.7, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, (X[:, :c] + noise * random.normal(size=(n, c))).argmax(axis=1)


def model(**changes):
    given = {"kernel": "gaussian", "width": 2.0, "ridge": 1e-3, "scaling": None, "tol": 1e-10, "max_iter": 1000}
    return KernelLogisticRegression(**{**given, **changes})


def scores_of(fitted, X):
    return fitted.basis_.scores(X, fitted.coef_) + fitted.intercept_


def _softmax(F):
    return np.exp(F - logsumexp(F, axis=1, keepdims=True))


def reached(fitted, X, y):
    return klr_objective(scores_of(fitted, X), y, fitted.coef_, fitted.basis_.gram(), fitted.ridge_)


class TestObjective:
    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "matern32"])
    @pytest.mark.parametrize("ridge", [1e-2, 1e-4])
    @pytest.mark.parametrize("solver", ["newton", "lbfgs", "sgd"])
    def test_against_scipy_on_the_dense_problem(self, kernel, ridge, solver):
        X, y = classes()
        fitted = model(kernel=kernel, ridge=ridge, solver=solver).fit(X, y)
        best = fitted_klr(fitted.basis_(X), fitted.basis_.gram(), y, ridge)
        assert -1e-9 <= reached(fitted, X, y) / best - 1.0 <= 1e-8

    @pytest.mark.parametrize("solver", ["newton", "lbfgs", "sgd"])
    @pytest.mark.parametrize("ridge", [1e-1, 1e-3, 1e-6])
    @pytest.mark.parametrize("width", [0.5, 10.0])
    @pytest.mark.parametrize("tol", [1e-3, 1e-6])
    def test_who_claims_to_have_converged_has(self, solver, ridge, width, tol):
        """Passes that gain nothing, or steps that gain little, say nothing about what is left to gain."""
        X, y = classes(n=120, c=3 if ridge > 1e-5 else 2, noise=0.3)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            fitted = model(solver=solver, ridge=ridge, width=width, tol=tol, max_iter=60).fit(X, y)
        best = fitted_klr(fitted.basis_(X), fitted.basis_.gram(), y, ridge)
        gave_up = any(issubclass(warning.category, ConvergenceWarning) for warning in told)
        assert gave_up or reached(fitted, X, y) / best - 1.0 <= tol
        assert not (gave_up and solver == "newton")

    def test_a_fit_that_ends_early_says_so_in_terms_of_scikit_learn(self):
        X, y = classes(n=120)
        with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="did not converge in max_iter=1 steps"):
            model(solver="sgd", ridge=1e-6, max_iter=1).fit(X, y)

    @pytest.mark.parametrize("c", [2, 5])
    def test_a_subset_of_centres(self, c):
        X, y = classes(c=c, d=5)
        fitted = model(centers=40, random_state=0).fit(X, y)
        best = fitted_klr(fitted.basis_(X), fitted.basis_.gram(), y, fitted.ridge_)
        assert reached(fitted, X, y) == pytest.approx(best, rel=1e-8)

    @pytest.mark.parametrize("solver", ["newton", "lbfgs"])
    def test_centres_of_each_class(self, solver):
        X, y = classes(n=120)
        fitted = model(centers="class", solver=solver).fit(X, y)
        own = fitted.basis_.owner[:, None] == np.arange(3)
        assert (fitted.coef_[~own] == 0).all()
        best = fitted_klr(fitted.basis_(X), fitted.basis_.gram(), y, fitted.ridge_, own)
        assert reached(fitted, X, y) == pytest.approx(best, rel=1e-8)

    def test_default_tolerance(self):
        X, y = classes()
        tight, default = model().fit(X, y), model(tol=1e-4).fit(X, y)
        assert reached(default, X, y) <= (1.0 + 1e-4) * reached(tight, X, y)

    def test_features_that_are_not_kept(self, monkeypatch):
        X, y = classes(n=200)
        kept = model(centers=50, random_state=0).fit(X, y)
        monkeypatch.setattr(likelihood, "KEEP_BYTES", 0)
        swept = model(centers=50, random_state=0).fit(X, y)
        np.testing.assert_allclose(swept.predict_proba(X), kept.predict_proba(X), atol=1e-6)

    def test_scores_of_the_classes_sum_to_zero(self):
        X, y = classes()
        fitted = model().fit(X, y)
        np.testing.assert_allclose(scores_of(fitted, X).sum(axis=1), 0.0, atol=1e-10)

    def test_constant_alone_for_a_large_ridge(self):
        X, y = classes()
        fitted = model(ridge=1e6).fit(X, y)
        np.testing.assert_allclose(fitted.predict_proba(X[:1])[0], np.bincount(y) / len(y), atol=1e-5)


class TestLosses:
    @pytest.mark.parametrize("loss", [Multinomial(2), Multinomial(4), Multinomial(3, contrast=False), Tags(3)], ids=str)
    def test_derivatives(self, loss):
        random = np.random.default_rng(0)
        U, V = random.normal(size=(2, 6, loss.n_columns))
        labels = random.integers(0, 2, size=(6, 3)) if isinstance(loss, Tags) else random.integers(0, loss.c, size=6)
        one, step = np.ones(6), 1e-6
        (up, P_up), (down, P_down) = (loss.evaluate(U + s * V, labels, one) for s in (step, -step))
        P = loss.evaluate(U, labels, one)[1]
        assert np.vdot(loss.residual(P, labels), V) == pytest.approx((up - down) / (2 * step), rel=1e-6)
        bend = (loss.residual(P_up, labels) - loss.residual(P_down, labels)) / (2 * step)
        np.testing.assert_allclose(loss.curvature_product(P, V), bend, atol=1e-8)
        np.testing.assert_allclose(np.einsum("ijk,ik->ij", loss.curvature(P), V), bend, atol=1e-8)
        trace = np.einsum("ijj->i", loss.curvature(P)) / loss.n_columns
        if loss.contrast:
            np.testing.assert_allclose(loss.mean_curvature(P), trace, atol=1e-12)

    @pytest.mark.parametrize("size", [1e4, -1e4])
    def test_no_overflow(self, size):
        U, labels = np.array([[size, 0.0], [0.0, size]]), np.array([0, 1])
        with np.errstate(all="raise", under="ignore"):
            value, P = Multinomial(3).evaluate(U, labels, np.ones(2))
        assert np.isfinite(value) and np.isfinite(P).all()
        assert np.isfinite(Tags(2).evaluate(U, np.eye(2), np.ones(2))[0])


class TestLeaveOneOut:
    @pytest.mark.parametrize("c", [2, 3])
    @pytest.mark.parametrize("ridge", [1e-2, 1e-4])
    @pytest.mark.parametrize("centers", ["all", 60], ids=str)
    def test_against_refits(self, c, ridge, centers):
        X, y = classes(n=100, c=c, d=3, noise=1.0)
        fitted = model(ridge=ridge, centers=centers, loo=True, random_state=0, tol=1e-9).fit(X, y)
        refits = np.array([self.without(fitted, X, y, i) for i in range(len(y))])
        assert log_loss(fitted.loo_scores_, y) == pytest.approx(log_loss(refits, y), rel=0.01)

    @pytest.mark.parametrize("c", [2, 3])
    def test_closed_form(self, c):
        """What is left for many rows: one Newton step, which misses little where the ridge is not too small."""
        X, y = classes(n=200, c=c, d=3, noise=1.0)
        problem = Likelihood(Rows.of(X, y, np.ones(200), c), Basis(Gaussian(2.0), X), tol=1e-9)
        objective = problem.objective(2e-3)
        point = problem.solve(objective).point
        closed, refitted = (left_out.leave_one_out(objective, point, np.arange(200), flops) for flops in (0, 1e12))
        assert log_loss(closed, y) == pytest.approx(log_loss(refitted, y), rel=0.01)
        assert log_loss(closed, y) != log_loss(refitted, y)

    def without(self, fitted, X, y, i):
        """The score of row i by the model without it: the same basis, and the same penalty of the sum."""
        rest = np.arange(len(y)) != i
        rows = Rows.of(X[rest], y[rest], np.ones(len(y) - 1), len(fitted.classes_))
        ridge = fitted.ridge_ * len(y) / (len(y) - 1)
        (solution,) = Likelihood(rows, fitted.basis_, tol=1e-9).path([ridge], loo=False)
        return fitted.basis_.scores(X[[i]], solution.coef())[0] + solution.intercept

    @pytest.mark.parametrize("c", [2, 3])
    def test_centres_of_classes_are_held_out_in_folds_with_their_rows(self, c):
        X, y = classes(n=60, c=c, d=3, noise=1.0)
        rows = Rows.of(X, y, np.ones(60), c)
        problem = Likelihood(rows, Basis(Gaussian(2.0), X, owner=y), tol=1e-10)
        (found,) = problem.path([1e-2])
        fold = stratified_folds(rows, likelihood.FOLDS, problem.seed)
        for number in range(likelihood.FOLDS):
            rest, inside = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            basis = Basis(Gaussian(2.0), X[rest], owner=y[rest])
            (without,) = Likelihood(rows.take(rest), basis, tol=1e-10).path([1e-2], loo=False)
            scores = basis.scores(X[inside], without.coef()) + without.intercept
            np.testing.assert_allclose(
                log_loss(found.held_out[inside], y[inside]), log_loss(scores, y[inside]), rtol=1e-4
            )

    @pytest.mark.parametrize("afford", [True, False], ids=["newton", "closed form"])
    def test_rows_that_the_steps_lose(self, monkeypatch, afford):
        """Without a row that holds its place alone the curvature is another, and the steps overshoot: a row that is
        left out seemed sure of its own class."""
        X, y = classes(n=60, c=2, d=2, noise=0.6)
        monkeypatch.setattr(left_out, "NEWTON_FLOPS", 1e10 if afford else 0.0)
        fitted = model(ridge=1e-6, width=0.7, loo=True).fit(X, y)
        refits = np.array([self.without(fitted, X, y, i) for i in range(len(y))])
        found, exact, inside = (
            _softmax(F)[np.arange(60), y] for F in (fitted.loo_scores_, refits, scores_of(fitted, X))
        )
        assert (found <= inside + 1e-6).all()
        assert np.abs(found - exact).max() < (0.01 if afford else 0.6)

    def test_curvature_of_all_classes_against_the_dense_inverse(self):
        X, y = classes(n=60, c=4)
        weight = np.random.default_rng(1).integers(1, 4, size=60).astype(float)
        problem = Likelihood(Rows.of(X, y, weight, 4), Basis(Gaussian(1.5), X[:20]), tol=1e-10)
        objective = problem.objective(1e-2)
        point = problem.solve(objective).point
        phi, loss = objective.design.some(slice(None)), Multinomial(4)
        H = np.einsum("i,ijk,ia,ib->jakb", weight, loss.curvature(point.P), phi, phi)
        for j in range(3):
            H[j, :, j] += objective.rho * objective.gram
        inverse = np.linalg.inv(H.reshape(63, 63)).reshape(3, 21, 3, 21)
        expected = np.einsum("ia,jakb,ib->ijk", phi, inverse, phi)
        halves = [left_out._half_features(objective, p) for p in point.P.T]
        rows = np.arange(60)
        found = left_out._spread_of_classes(halves, point.P, weight, rows)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)
        influence = left_out._influence_of_classes(halves, point.P, weight)
        np.testing.assert_allclose(influence[rows, :, rows], expected, rtol=1e-5, atol=1e-8)

    def test_folds_stand_in_where_it_costs_too_much(self, monkeypatch):
        X, y = classes(n=150)
        monkeypatch.setattr(likelihood, "LOO_FLOPS", 0)
        fitted = model(loo=True, random_state=0).fit(X, y)
        assert fitted.loo_proba_.shape == (150, 3)
        refits = model(loo=True, random_state=0)
        monkeypatch.undo()
        exact = refits.fit(X, y)
        assert log_loss(fitted.loo_scores_, y) == pytest.approx(log_loss(exact.loo_scores_, y), rel=0.1)

    def test_folds_against_refits(self):
        X, y = classes(n=90)
        rows = Rows.of(X, y, np.ones(90), 3)
        problem, fold = Likelihood(rows, Basis(Gaussian(2.0), X[:30]), tol=1e-8), stratified_folds(rows, 3, 0)
        (found,) = cross_validate(problem, fold, [1e-2])
        outside = rows.take(np.flatnonzero(fold != 1))
        (solution,) = Likelihood(outside, problem.basis, tol=1e-8).path([1e-2], loo=False)
        expected = problem.basis.scores(X[fold == 1], solution.coef()) + solution.intercept
        np.testing.assert_allclose(found[fold == 1], expected, atol=1e-10)


class TestChoice:
    @pytest.mark.parametrize("options", [{}, {"selection": "cv", "folds": 3}, {"kernel": "linear", "width": "auto"}])
    def test_finds_a_good_model(self, options):
        X, y = classes(n=200, d=3, noise=0.5)
        X_test, y_test = classes(n=1000, d=3, noise=0.5, seed=1)
        fitted = KernelLogisticRegression(random_state=0, **options).fit(X, y)
        assert log_loss(np.log(fitted.predict_proba(X_test)), y_test) < 0.62
        assert len(fitted.search_results_["loss"]) > 1

    def test_losses_that_rise_before_they_fall(self):
        """On a checkerboard, leave-one-out is first worse at a smaller ridge, which used to end the path."""
        X = np.random.default_rng(2).uniform(-1.0, 1.0, (90, 1))
        y = (np.floor(6.0 * X[:, 0]) % 2 == 0).astype(int)
        fitted = KernelLogisticRegression(kernel="gaussian", random_state=0).fit(X, y)
        assert log_loss(np.log(fitted.loo_proba_), y) < 0.3

    def test_a_hopeless_path_of_ridges_ends(self):
        random = np.random.default_rng(0)
        X, y = random.normal(size=(200, 10)), random.integers(0, 3, 200)
        fitted = KernelLogisticRegression(kernel="gaussian", width=2.0, random_state=0).fit(X, y)
        assert len(fitted.search_results_["ridge"]) < 5
        assert log_loss(np.log(fitted.loo_proba_), y) < 1.05 * np.log(3.0)

    def test_the_loss_of_the_shares(self):
        rows = Rows.of(np.zeros((4, 1)), np.array([0, 0, 0, 1]), np.ones(4), 2)
        assert LogLoss().of_shares(rows) == pytest.approx(-0.75 * np.log(0.75) - 0.25 * np.log(0.25))
        tags = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        rows = Rows.of(np.zeros((4, 1)), tags, np.ones(4), 2)
        assert LogLoss().of_shares(rows) == pytest.approx(
            (-0.75 * np.log(0.75) - 0.25 * np.log(0.25) + np.log(2.0)) / 2
        )

    def test_ridge_by_held_out_rows_where_leave_one_out_costs_too_much(self):
        X, y = classes(n=900, c=10, d=10)
        fitted = model(ridge="auto", tol=1e-3, centers=100, random_state=0).fit(X, y)
        assert {"grid", "ridge"} <= set(fitted.search_results_["stage"])
        assert (fitted.predict(X) == y).mean() > 0.5


class TestAround:
    def test_weights_equal_repeated_rows(self):
        X, y = classes(n=60)
        count = np.random.default_rng(0).integers(1, 4, size=60)
        weighted = KernelLogisticRegression(random_state=0).fit(X, y, count)
        repeated = KernelLogisticRegression(random_state=0).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-10)
        np.testing.assert_allclose(np.repeat(weighted.loo_proba_, count, axis=0), repeated.loo_proba_, atol=1e-10)

    def test_tags_equal_two_class_problems(self):
        X, _ = classes(n=120)
        Y = (X[:, :2] + 0.3 * np.random.default_rng(1).normal(size=(120, 2)) > 0.3).astype(int)
        tags = model(loo=True).fit(X, Y)
        for tag in range(2):
            alone = model(loo=True).fit(X, Y[:, tag])
            np.testing.assert_allclose(tags.predict_proba(X)[:, tag], alone.predict_proba(X)[:, 1], atol=1e-5)
            np.testing.assert_allclose(tags.loo_proba_[:, tag], alone.loo_proba_[:, 1], atol=1e-4)

    def test_tags_have_a_search_too(self):
        X, _ = classes(n=100)
        fitted = KernelLogisticRegression(random_state=0).fit(X, (X[:, :2] > 0).astype(int))
        assert (fitted.predict(X) == (X[:, :2] > 0)).mean() > 0.9

    @pytest.mark.parametrize("kernel", ["gaussian", "linear"])
    def test_sparse_equals_dense(self, kernel):
        X, y = classes(n=80)
        X[np.abs(X) < 0.5] = 0.0
        dense, thin = model(kernel=kernel).fit(X, y), model(kernel=kernel).fit(sparse.csr_array(X), y)
        np.testing.assert_allclose(thin.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-7)

    def test_precomputed_equals_gaussian(self):
        X, y = classes(n=80)
        K = Gaussian(2.0)(X, X)
        given = model(kernel="precomputed", width="auto").fit(K, y)
        np.testing.assert_allclose(given.predict_proba(K), model().fit(X, y).predict_proba(X), atol=1e-7)

    def test_float32(self):
        X, y = classes(n=100)
        fitted = model(tol=1e-4).fit(X.astype(np.float32), y)
        proba = fitted.predict_proba(X.astype(np.float32))
        assert proba.dtype == np.float64
        np.testing.assert_allclose(proba, model(tol=1e-4).fit(X, y).predict_proba(X), atol=1e-2)

    @pytest.mark.parametrize("width", [6.0, 20.0])
    def test_small_ridge_does_not_fit_the_rounding_errors_of_float32(self, width):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3)).astype(np.float32)
        y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
        options = {"kernel": "gaussian", "width": width, "ridge": [1e-8, 1e-3], "random_state": 0}
        low, high = (KernelLogisticRegression(**options).fit(X.astype(dtype), y) for dtype in (np.float32, np.float64))
        assert low.ridge_ == high.ridge_
        np.testing.assert_allclose(low.loo_proba_, high.loo_proba_, atol=1e-3)

    @pytest.mark.parametrize("ridge", [1e-1, 1e-2, 1e-3, 1e-4])
    def test_float32_rows_that_are_all_centres(self, ridge):
        """A number and a truth value: rows near each other, whose features differ by less than float32 has digits."""
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.normal(size=300), rng.random(300) < 0.5]).astype(np.float32)
        y = (X[:, 0] + 2 * X[:, 1] + 0.3 * rng.normal(size=300) > 1).astype(int)
        options = {"kernel": "gaussian", "width": 0.6, "ridge": ridge, "centers": "all", "loo": True}
        low, high = (KernelLogisticRegression(**options).fit(X.astype(dtype), y) for dtype in (np.float32, np.float64))
        np.testing.assert_allclose(low.predict_proba(X), high.predict_proba(X.astype(float)), atol=1e-3)
        np.testing.assert_allclose(low.loo_proba_, high.loo_proba_, atol=1e-3)

    def test_separable_classes(self):
        X = np.vstack([np.zeros((20, 2)), np.full((20, 2), 9.0)]) + np.random.default_rng(0).normal(size=(40, 2))
        y = np.repeat(["a", "b"], 20)
        fitted = KernelLogisticRegression(random_state=0).fit(X, y)
        assert np.isfinite(fitted.predict_proba(X * 1e3)).all()
        assert (fitted.predict(X) == y).all()

    @pytest.mark.parametrize("solver", ["newton", "lbfgs", "sgd"])
    def test_says_that_it_did_not_converge(self, solver):
        X, y = classes()
        with pytest.warns(ConvergenceWarning, match="max_iter=1 .*increase max_iter"):
            model(solver=solver, ridge=1e-6, max_iter=1, tol=1e-12).fit(X, y)

    @pytest.mark.parametrize("name", ["tol", "max_iter"])
    @pytest.mark.parametrize("value", [0, -1, "many", None, np.nan, True])
    def test_bad_numbers(self, name, value):
        X, y = classes(n=30)
        with pytest.raises(ValueError, match=rf"{name} must be an? (float|int) in the range .*, got {value!r}"):
            model(**{name: value}).fit(X, y)

    def test_unknown_solver(self):
        X, y = classes(n=30)
        with pytest.raises(ValueError, match=r"solver must be one of 'auto', 'newton', 'lbfgs', 'sgd'.*, got 'cg'"):
            model(solver="cg").fit(X, y)


def log_loss(scores, y):
    return float(np.mean(logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]))


@pytest.mark.filterwarnings("ignore::kproba.FewRowsWarning")
def test_a_start_that_is_the_optimum_takes_one_step():
    """Its gradient is a rounding error along the constant that all classes share, where the Hessian is zero."""
    model = KernelLogisticRegression(kernel="laplacian", width=1.5, ridge=1e-2, tol=1e-8, centers="class")
    model.fit(np.full((3, 1), -1.8125), [0, 1, 2])
    assert model.n_iter_ == 1
    np.testing.assert_allclose(model.predict_proba([[0.0]]), 1 / 3, rtol=0, atol=1e-12)
