"""The import vector machine against plain loops, and what the estimator promises."""

import sys
import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import oracles
from kproba import ConvergenceWarning, Gaussian, ImportVectorMachine, Laplacian, TimesMedian, displays
from kproba.data.rows import Rows
from kproba.data.sources import ArraySource
from kproba.estimators import ivm
from kproba.kernels import Linear
from kproba.problems.import_vectors import held_out
from kproba.problems.import_vectors import model as model_module
from kproba.problems.import_vectors import search as search_module
from kproba.problems.import_vectors.held_out import leave_one_out
from kproba.problems.import_vectors.model import ImportModel, Task
from kproba.problems.import_vectors.path import Growth, PathPoint, Settings, follow, tuning_split
from kproba.problems.import_vectors.search import SEARCHES, Pool
from kproba.problems.losses import Multinomial, Tags


def problem(n=40, c=2, d=2, seed=0, weights=False):
    """Overlapping classes in two columns."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    X = rng.normal(size=(n, d)) + 1.2 * np.column_stack([np.cos(y), np.sin(2 * y)] + [0 * y] * (d - 2))
    weight = rng.uniform(0.3, 2.0, n) if weights else np.ones(n)
    return X, y, weight


GAUSSIAN = Gaussian(width=1.0)


def task_of(X, y, weight, kernel=GAUSSIAN):
    tags = y.ndim == 2
    c = y.shape[1] if tags else y.max() + 1
    return Task(Rows.of(X, y.astype(float) if tags else y, weight, c), kernel, Tags(c) if tags else Multinomial(c))


def gram(X, width=1.0):
    return oracles.gaussian(X, X, width)


def model_with(task, rho, points):
    """A settled model of these import points."""
    K = task.columns(points)[points]
    start = np.zeros((len(points) + 1, task.loss.n_columns))
    return ImportModel(task, rho, points, np.linalg.cholesky(K), start).converge()


class TestCoefficients:
    @pytest.mark.parametrize("c", [2, 3])
    @pytest.mark.parametrize("rho", [3.0, 0.01])
    def test_newton_finds_the_minimum(self, c, rho):
        X, y, weight = problem(c=c, weights=True)
        model = model_with(task_of(X, y, weight), rho, [3, 11, 20, 31])
        expected = oracles.ivm_by_scipy(gram(X), [3, 11, 20, 31], y, weight, rho)
        assert model.value == pytest.approx(expected, rel=1e-8)

    def test_coefficients_are_those_of_the_kernel_columns(self):
        X, y, weight = problem(c=3)
        model = model_with(task_of(X, y, weight), 0.3, [3, 11, 20])
        np.testing.assert_allclose(gram(X)[:, [3, 11, 20]] @ model.coef + model.beta[0], model.U, atol=1e-10)

    def test_points_added_one_by_one_or_given_at_once(self):
        X, y, weight = problem(c=3)
        task = task_of(X, y, weight)
        grown, _ = follow(task, Pool(task), [0.01], Settings(SEARCHES["one-step"]))
        given = model_with(task, 0.01 * len(X), grown.chosen)
        assert given.value == pytest.approx(grown.value, rel=1e-11)
        np.testing.assert_allclose(given.U, grown.U, atol=1e-6)

    def test_tags_are_two_class_problems_on_the_same_points(self):
        X, y, weight = problem()
        tags = np.column_stack([y, X[:, 1] > 0.5]).astype(int)
        together = model_with(task_of(X, tags, weight), 0.2, [3, 11, 20])
        apart = [model_with(task_of(X, tag, weight), 0.2, [3, 11, 20]) for tag in tags.T]
        assert together.value == pytest.approx(sum(model.value for model in apart), rel=1e-10)
        np.testing.assert_allclose(together.U, np.hstack([model.U for model in apart]), atol=1e-7)

    def test_a_class_without_rows_does_not_diverge(self):
        X, y, weight = problem()
        rows = Rows.of(X, 2 * y, weight, 3)
        model = ImportModel(Task(rows, Gaussian(width=1.0), Multinomial(3)), 1.0).converge()
        assert np.isfinite(model.U).all() and model.P[:, 1].max() < 1e-6

    @pytest.mark.parametrize("c", [2, 3, "tags"])
    def test_leave_one_out_is_that_of_refits(self, monkeypatch, c):
        X, y, weight = problem(n=60, c=2 if c == "tags" else c)
        labels = np.column_stack([y, X[:, 1] > 0.5]).astype(int) if c == "tags" else y
        points = [0, 7, 14, 21, 28, 35]
        model = model_with(task_of(X, labels, weight), 0.6, points)
        refitted = np.empty_like(model.U)
        for i in range(len(X)):
            rows = Rows.of(
                X, model.task.rows.labels, np.where(np.arange(len(X)) == i, 1e-300, 1.0), model.task.rows.n_classes
            )
            others = [point for point in points if point != i]  # a row leaves with its point
            refitted[i] = model_with(Task(rows, model.task.kernel, model.task.loss), 0.6, others).U[i]
        np.testing.assert_allclose(leave_one_out(model), refitted, atol=2e-3)
        monkeypatch.setattr(held_out, "STEP_FLOPS", 0.0)  # many rows: one Newton step has to do
        exact, close = (model.task.evaluate(U)[0] for U in (refitted, leave_one_out(model)))
        assert close == pytest.approx(exact, rel=0.01)
        assert abs(exact - model.task.evaluate(model.U)[0]) > 3 * abs(exact - close)

    @pytest.mark.parametrize(("flops", "within"), [(0.0, 1e-9), (1e9, 2e-3)], ids=["one step", "refits"])
    def test_leave_one_out_leaves_out_one_unit_of_weight(self, monkeypatch, flops, within):
        monkeypatch.setattr(held_out, "STEP_FLOPS", flops)
        X, y, _ = problem(n=30)
        copies = np.where(np.arange(30) % 3 == 0, 2, 1)
        once = leave_one_out(model_with(task_of(X, y, copies.astype(float)), 0.6, [0, 7, 14]))
        many = np.repeat(np.arange(30), copies)
        points = [int(np.flatnonzero(many == row)[0]) for row in (0, 7, 14)]
        repeated = leave_one_out(model_with(task_of(X[many], y[many], np.ones(len(many))), 0.6, points))
        np.testing.assert_allclose(once[many], repeated, atol=within)


class TestSearch:
    @pytest.mark.parametrize("name, steps", [("one-step", 1), ("exact", 15)])
    @pytest.mark.parametrize("c", [2, 3])
    @pytest.mark.parametrize("S", [[], [5], [5, 17, 30]], ids=len)
    def test_the_batched_search_chooses_as_the_loop_does(self, monkeypatch, name, steps, c, S):
        monkeypatch.setattr(search_module, "FINALISTS", 1000)
        X, y, weight = problem(n=36, c=c, weights=True)
        task = task_of(X, y, weight)
        model = model_with(task, 0.5, S) if S else ImportModel(task, 0.5).converge()
        values = oracles.ivm_candidates(gram(X), S, y, weight, 0.5, steps)
        found = SEARCHES[name](model, Pool(task))
        assert found.row == min(values, key=values.get)
        columns = np.column_stack([model.psi, found.column])
        value = task.evaluate(columns @ found.start)[0] + 0.25 * np.sum(found.start[1:] ** 2)
        assert value == pytest.approx(values[found.row], rel=1e-8)

    @pytest.mark.parametrize("c", [2, 3, "tags"])
    def test_few_finalists_are_enough(self, c):
        """The prediction leaves the winner among the first; more than two classes are ranked by a mean curvature."""
        X, y, weight = problem(n=150, c=2 if c == "tags" else c, seed=3)
        y = np.column_stack([y, X[:, 1] > 0.5]).astype(int) if c == "tags" else y
        task = task_of(X, y, weight)
        for rho in (10.0, 0.1):
            few, _ = follow(task, Pool(task), [rho / 150], Settings(SEARCHES["one-step"]))
            all_, _ = follow(task, Pool(task), [rho / 150], Settings(SEARCHES["exact"]))
            assert few.value == pytest.approx(all_.value, rel=0.01)

    @pytest.mark.parametrize("name", SEARCHES)
    def test_blocks_of_candidates_change_nothing(self, monkeypatch, name):
        X, y, weight = problem(n=60, c=3)
        task = task_of(X, y, weight)
        whole, _ = follow(task, Pool(task), [0.01], Settings(SEARCHES[name], max_points=5))
        monkeypatch.setattr(search_module, "BATCH_BYTES", 30_000)
        parts, _ = follow(task, Pool(task), [0.01], Settings(SEARCHES[name], max_points=5))
        assert whole.chosen == parts.chosen

    @pytest.mark.parametrize("candidates", ["all", 20])
    def test_columns_kept_or_computed_afresh(self, monkeypatch, candidates):
        X, y, weight = problem(n=60, c=3)
        task = task_of(X, y, weight)
        monkeypatch.setattr(search_module, "FRESH", 1.0)
        kept, _ = follow(task, Pool(task, candidates), [0.01, 0.001], Settings(SEARCHES["one-step"]))
        monkeypatch.setattr(search_module, "KEPT_BYTES", 0)
        fresh, _ = follow(task, Pool(task, candidates), [0.01, 0.001], Settings(SEARCHES["one-step"]))
        assert kept.chosen == fresh.chosen
        assert kept.value == pytest.approx(fresh.value, rel=1e-11)

    @pytest.mark.parametrize("name", SEARCHES)
    def test_subsets_of_candidates(self, name):
        X, y, weight = problem(n=60)
        task = task_of(X, y, weight)
        settings = Settings(SEARCHES[name], max_points=6)
        runs = [follow(task, Pool(task, 12, seed), [0.01], settings)[0].chosen for seed in (0, 0, 1)]
        assert runs[0] == runs[1] != runs[2]
        pool, model, seen = Pool(task, 12, 0), ImportModel(task, 0.6).converge(), set()
        for _ in range(20):
            before = set(pool.rows)
            model.add(SEARCHES[name](model, pool))
            assert len(set(pool.rows) - before) == (3 if seen else 0)  # a quarter is fresh
            seen |= set(pool.rows)
        assert len(seen) == 60  # every row has had its turn

    def test_the_size_of_the_subset(self, monkeypatch):
        X, y, weight = problem(n=60)
        task = task_of(X, y, weight)
        assert Pool(task).size == Pool(task, "all").size == Pool(task, 70).size == 60
        monkeypatch.setattr(search_module, "ALL_ROWS", 50)
        monkeypatch.setattr(search_module, "CANDIDATES", 20)
        assert Pool(task).size == 20 and Pool(task, "all").size == 60

    def test_equal_rows_and_spanned_columns_are_no_candidates(self):
        X, y, _ = problem(n=60)
        X = np.vstack([X, X[:20]])
        task = task_of(X, np.append(y, 1 - y[:20]), np.ones(80), Linear())
        model, _ = follow(task, Pool(task), [1e-6], Settings(SEARCHES["one-step"], tol=1e-12))
        assert len(model.chosen) == 2  # two columns span all linear functions
        assert SEARCHES["one-step"](model, Pool(task)) is None
        assert SEARCHES["exact"](model, Pool(task)) is None


class TestPath:
    def test_stopping_rule(self):
        X, y, weight = problem(n=80)
        task, growth = task_of(X, y, weight), Growth()
        for lookback in (1, 3):
            growth.entries.clear()
            follow(task, Pool(task), [0.001], Settings(SEARCHES["one-step"], 0.01, lookback), growth=growth)
            H = growth.columns()["objective"]
            change = np.abs(H[lookback:] - H[:-lookback]) / np.abs(H[lookback:])
            assert change[-1] < 0.01 and (change[:-1] >= 0.01).all()
            assert (np.diff(H) < 0).all()

    def test_the_first_points_are_judged_in_proportion(self):
        X, y, weight = problem(n=80)
        task = task_of(X, y, weight)
        for lookback in (1, 3):  # at so large a ridge one point changes next to nothing
            model, _ = follow(task, Pool(task), [1e3], Settings(SEARCHES["one-step"], 0.01, lookback))
            assert len(model.chosen) == 1

    def test_the_path_is_warm(self):
        X, y, weight = problem(n=80)
        task, growth = task_of(X, y, weight), Growth()
        _, points = follow(task, Pool(task), [1.0, 0.01, 0.001], Settings(SEARCHES["one-step"]), growth=growth)
        steps = growth.columns()
        for before, after in pairwise(points):
            assert steps["n_points"][steps["ridge"] == after.ridge].min() == before.n_points
            assert after.n_points >= before.n_points
        # every model of the path is the minimum for its ridge and its points
        model, _ = follow(task, Pool(task), [1.0, 0.01, 0.001], Settings(SEARCHES["one-step"]))
        for point in points:
            S = model.chosen[: point.n_points]
            expected = oracles.ivm_by_scipy(gram(X), S, y, weight, 80 * point.ridge)
            assert point.objective == pytest.approx(expected, rel=1e-7)

    def test_one_step_is_as_good_as_exact(self):
        for seed in range(4):
            X, y, weight = problem(n=70, c=2 + seed % 2, seed=seed)
            task = task_of(X, y, weight)
            values = [follow(task, Pool(task), [0.002], Settings(s))[0].value for s in SEARCHES.values()]
            assert values[0] == pytest.approx(values[1], rel=0.01)

    def test_tuning_rows_are_spread_over_the_classes(self):
        X, y, _ = problem(n=100)
        y[:3] = 2
        rows = Rows.of(X, y, np.ones(100), 3)
        train, tune = tuning_split(rows, 0.25, seed=0)
        np.testing.assert_array_equal(np.sort(np.append(train.number, tune.number)), np.arange(100))
        shares = np.bincount(tune.labels, minlength=3)
        assert shares[2] == 1 and all(11 <= share <= 13 for share in shares[:2])
        assert set(tuning_split(rows, 0.99, seed=0)[0].labels) == {0, 1, 2}

    def test_copies_of_a_row_are_split_as_rows_are(self):
        """Of rows with few values, new ones are known ones: if all copies tuned, no row could be told apart."""
        X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
        for copies in (np.array([10.0, 10.0, 10.0, 10.0]), np.array([1.0, 7.0, 40.0, 3.0])):
            rows = Rows.of(X, y, copies, 2)
            train, tune = tuning_split(rows, 0.25, seed=0)
            together = np.bincount(train.number, train.weight, 4) + np.bincount(tune.number, tune.weight, 4)
            np.testing.assert_allclose(together, copies)
            shares = np.bincount(tune.labels, tune.weight) / np.bincount(y, copies)
            np.testing.assert_allclose(shares, 0.25, atol=0.13)
            assert (tune.weight == np.round(tune.weight)).all() and set(train.labels) == {0, 1}

    def test_no_row_to_spare(self):
        rows = Rows.of(np.eye(3), np.arange(3), np.ones(3), 3)
        for part in tuning_split(rows, 0.25, seed=0):
            np.testing.assert_array_equal(part.number, np.arange(3))


def quick(**options):
    """No search for the width."""
    return ImportVectorMachine(**{"kernel": "gaussian", "width": 1.0, "ridge": 0.01, "random_state": 0, **options})


class TestEstimator:
    def test_scores_and_points(self):
        X, y, _ = problem(n=80, c=3)
        model = quick(scaling=None).fit(X, y)
        K = rbf_kernel(X, X[model.import_indices_], gamma=0.5)
        np.testing.assert_array_equal(model.centers_, X[model.import_indices_])
        assert len(set(model.import_indices_)) == len(model.import_indices_) == len(model.coef_)
        scores = K @ model.coef_ + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
        np.testing.assert_allclose(scores.sum(axis=1), 0.0, atol=1e-9)
        np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))

    def test_import_indices_are_rows_of_the_given_table(self):
        X, y, _ = problem(n=60)
        weight = np.where(np.arange(60) < 10, 0.0, 1.0)
        model = quick(scaling="robust").fit(X, y, weight)
        assert model.import_indices_.min() >= 10
        np.testing.assert_array_equal(model.centers_, X[model.import_indices_])
        assert model.loo_proba_.shape == (60, 2)

    def test_fixed_ridge_minimises_its_objective(self):
        X, y, _ = problem(n=60)
        model = quick(scaling=None).fit(X, y)
        S = list(model.import_indices_)
        expected = oracles.ivm_by_scipy(gram(X), S, y, np.ones(60), 0.01 * 60)
        assert model.path_["objective"] == pytest.approx([expected], rel=1e-8)
        assert np.isnan(model.path_["tuning_error"]).all()

    def test_path_and_tuning_choice(self):
        X, y, _ = problem(n=150)
        for loss, column in [("log-loss", "tuning_log_loss"), ("error", "tuning_error")]:
            model = quick(ridge=[1e-3, 1.0, 0.1, 1e-2], tuning_loss=loss).fit(X, y)
            np.testing.assert_array_equal(model.path_["ridge"], [1.0, 0.1, 1e-2, 1e-3])
            assert model.ridge_ == pytest.approx(model.path_["ridge"][int(np.argmin(model.path_[column]))])
            assert {len(column) for column in model.path_.values()} == {4}
            assert (np.diff(model.path_["n_points"]) >= 0).all()

    def test_the_final_search_is_on_all_rows(self):
        X, y, _ = problem(n=150)
        model = quick(ridge=[0.1, 1e-2]).fit(X, y)
        alone = quick(ridge=model.ridge_).fit(X, y)
        np.testing.assert_array_equal(model.import_indices_, alone.import_indices_)
        np.testing.assert_array_equal(model.growth_["objective"], alone.growth_["objective"])
        assert model.n_iter_ == len(model.import_indices_) == model.growth_["n_points"][-1]

    @pytest.mark.parametrize("c", [2, 3])
    def test_the_paths_own_model(self, c):
        """2001 C1–C5: the import points of the path down to the chosen λ, and their coefficients there."""
        X, y, _ = problem(n=16, c=c)
        other, ridges = problem(n=60, c=c, seed=1)[:2], [1.0, 0.1, 0.01]
        given = {"ridge": ridges, "tol": 0.02, "lookback": 1, "search": "exact", "scaling": None, "max_points": None}
        model = quick(**given, refit=False).fit(X, y, tuning=other)
        paths = oracles.ivm_path(gram(X), y, np.ones(16), [16 * ridge for ridge in ridges], 0.02)
        np.testing.assert_array_equal(model.path_["n_points"], [len(S) for S in paths])
        best = int(np.argmin(model.path_["tuning_log_loss"]))
        assert model.ridge_ == pytest.approx(ridges[best]) and best > 0
        np.testing.assert_array_equal(model.import_indices_, paths[best])
        phi, penalty = oracles.ivm_features(gram(X), paths[best])
        start = np.zeros((len(paths[best]) + 1, c))
        theta, _ = oracles.ivm_newton(phi, penalty, y, np.ones(16), 16 * ridges[best], start, 20)
        expected = phi @ theta
        np.testing.assert_allclose(
            model.predict_log_proba(X), expected - logsumexp(expected, axis=1)[:, None], atol=1e-8
        )
        assert log_loss(other[1], model.predict_proba(other[0])) == pytest.approx(model.path_["tuning_log_loss"][best])
        assert model.growth_["n_points"][-1] == model.n_iter_ == len(paths[best])
        assert model.growth_["ridge"][-1] == pytest.approx(model.ridge_)

    def test_tuning_rows_take_no_part_in_the_paths_own_model(self):
        X, y, _ = problem(n=150)
        model = quick(ridge=[0.1, 1e-2], refit=False).fit(X, y)
        np.testing.assert_array_equal(model.centers_, X[model.import_indices_])
        same = np.isclose(model.loo_proba_, model.predict_proba(X), rtol=0, atol=1e-12).all(axis=1)
        assert same.sum() == 38  # a quarter of each class
        best = int(np.argmin(model.path_["tuning_log_loss"]))
        assert log_loss(y[same], model.loo_proba_[same]) == pytest.approx(model.path_["tuning_log_loss"][best])

    def test_the_paths_own_model_of_more_rows_than_choose_the_kernel(self, monkeypatch):
        X, y, _ = problem(n=150)
        given = {"ridge": [0.1, 1e-2], "refit": False, "width": [0.7, 1.0]}
        monkeypatch.setattr(ivm, "PATH_ROWS", 40)
        few = quick(**given).fit(X, y)
        alone = quick(**{**given, "width": few.width_}).fit(X, y)
        monkeypatch.undo()
        whole = quick(**{**given, "width": few.width_}).fit(X, y)
        for model in (few, alone):
            np.testing.assert_array_equal(model.import_indices_, whole.import_indices_)
            np.testing.assert_array_equal(model.path_["objective"], whole.path_["objective"])

    def test_the_paths_own_model_needs_memory(self):
        X, y, _ = problem(n=60)
        with pytest.raises(ValueError, match="refit=False follows the path on all rows"):
            quick(ridge=[0.1, 0.01], refit=False).fit(ArraySource(X, y))
        with pytest.raises(ValueError, match="refit must be True or False, got 'path'"):
            quick(refit="path").fit(X, y)

    def test_a_single_ridge_has_no_path(self):
        X, y, _ = problem(n=60)
        one, other = (quick(refit=refit).fit(X, y) for refit in (True, False))
        np.testing.assert_array_equal(one.coef_, other.coef_)

    def test_coefficients_are_fitted_to_all_rows(self):
        X, y, _ = problem(n=80)
        model = quick(ridge=[0.1, 0.01], scaling=None).fit(X, y)
        S = list(model.import_indices_)
        phi, penalty = oracles.ivm_features(gram(X), S)
        theta, _ = oracles.ivm_newton(phi, penalty, y, np.ones(80), 80 * model.ridge_, np.zeros((len(S) + 1, 2)), 20)
        np.testing.assert_allclose(model.decision_function(X), phi @ (theta[:, 1] - theta[:, 0]), atol=1e-6)

    def test_given_tuning_rows(self):
        X, y, _ = problem(n=80)
        other = problem(n=50, seed=1)[:2]
        model = quick(ridge=[0.1, 0.01], scaling=None).fit(X, y, tuning=other)
        alone = quick(scaling=None).fit(X, y, tuning=other)
        loss, error = log_loss(other[1], alone.predict_proba(other[0])), 1 - alone.score(*other)
        assert alone.path_["tuning_log_loss"] == pytest.approx([loss], rel=1e-9)
        assert alone.path_["tuning_error"] == pytest.approx([error])
        best = int(np.argmin(model.path_["tuning_log_loss"]))
        assert model.ridge_ == model.path_["ridge"][best]
        words = np.array(["no", "yes"])
        named = quick(ridge=[0.1, 0.01], scaling=None).fit(X, words[y], tuning=(other[0], words[other[1]]))
        np.testing.assert_array_equal(named.path_["tuning_error"], model.path_["tuning_error"])

    def test_default_path(self):
        X, y, _ = problem(n=100)
        model = ImportVectorMachine("gaussian", width=1.0, random_state=0).fit(X, y)
        ridges = 2 * np.exp(np.arange(10.0, -11, -1)) / 100  # of the penalty that it had on fewer rows
        np.testing.assert_allclose(model.path_["ridge"], ridges[: len(model.path_["ridge"])])
        assert model.ridge_ == pytest.approx(model.path_["ridge"][int(np.argmin(model.path_["tuning_log_loss"]))])
        loss = model.path_["tuning_log_loss"]
        assert 10 < len(loss) < 21
        assert not (loss[-2:] < 0.99 * loss[:-2].min()).any()  # the last two ridges brought no gain

    def test_widths(self):
        X, y, _ = problem(n=100)
        median = ImportVectorMachine("gaussian", "median", random_state=0).fit(X, y).width_
        auto = ImportVectorMachine("gaussian", random_state=0).fit(X, y)
        assert min(abs(auto.width_ / median - m) for m in (0.6, 1.2, 2.5, 5.0)) < 1e-9
        losses = {}
        for width in (0.2, 1.0, 5.0):
            losses[width] = (
                ImportVectorMachine("gaussian", width, random_state=0).fit(X, y).path_["tuning_log_loss"].min()
            )
        chosen = ImportVectorMachine("gaussian", [0.2, 1.0, 5.0], random_state=0).fit(X, y)
        assert chosen.width_ == min(losses, key=losses.get)
        assert ImportVectorMachine("gaussian", TimesMedian((2.0,)), random_state=0).fit(X, y).width_ == pytest.approx(
            2 * median
        )

    def test_samples_of_many_rows(self, monkeypatch):
        """The width by 60 rows, kernel and ridge by 120, the model by all."""
        X, y, _ = problem(n=300)
        monkeypatch.setattr(ivm, "SCREEN_ROWS", 60)
        monkeypatch.setattr(ivm, "PATH_ROWS", 120)
        sizes, run = [], ImportVectorMachine._run

        def recorded(self, split, *args):
            sizes.append(len(split.rows))
            assert split.tuning is None or not set(split.tuning.rows.keys) & set(split.rows.keys)
            return run(self, split, *args)

        monkeypatch.setattr(ImportVectorMachine, "_run", recorded)
        model = ImportVectorMachine(width=[0.03, 1.0], random_state=0, n_jobs=1).fit(X, y)
        assert sizes == [60] * 4 + [120] * 2 + [300] and model.width_ == 1.0
        sizes.clear()
        given = ImportVectorMachine(width=[0.03, 1.0], random_state=0, n_jobs=1)
        assert given.fit(X, y, tuning=problem(n=50, seed=1)[:2]).width_ == 1.0
        assert sizes == [60] * 4 + [120] * 2 + [300]

    def test_a_sample_prefers_what_more_rows_resolve(self):
        def found(name, width, loss):
            point = PathPoint(0.1, 1.0, 1, loss, loss, 0.0, np.zeros(1), 0.0, False)
            return Gaussian(width) if name == "g" else Laplacian(width), ivm._Run(None, [point], Growth())

        tried = [found("g", 1.0, 0.300), found("g", 2.0, 0.295), found("l", 1.0, 0.320), found("l", 3.0, 0.305)]
        pick = ImportVectorMachine()._pick
        assert pick(tried, 0.0)[0] == Gaussian(2.0)
        assert pick(tried, 0.05)[0] == Laplacian(3.0)
        assert pick(tried[:2], 0.05)[0] == Gaussian(1.0)

    def test_kernel_is_chosen(self):
        X, y, _ = problem(n=90)  # too few rows to learn a kernel
        auto = ImportVectorMachine(random_state=0).fit(X, y)
        losses = {}
        for name in ("gaussian", "laplacian"):
            losses[name] = ImportVectorMachine(name, random_state=0).fit(X, y).path_["tuning_log_loss"].min()
        assert auto.kernel_.name == min(losses, key=losses.get)

    def test_one_ridge_and_several_widths(self):
        X, y, _ = problem(n=100)
        model = ImportVectorMachine("gaussian", [0.02, 1.0], ridge=0.01, random_state=0).fit(X, y)
        assert model.width_ == 1.0 and len(model.path_["ridge"]) == 1
        np.testing.assert_allclose(model.predict_proba(X), quick().fit(X, y).predict_proba(X), atol=1e-9)

    def test_number_of_points(self):
        X, y, _ = problem(n=150)
        options = {"width": 0.2, "tol": 1e-6, "ridge": 1e-4}
        assert len(quick(**options).fit(X, y).import_indices_) == 50
        assert len(quick(**options, max_points=None).fit(X, y).import_indices_) > 60
        assert ImportVectorMachine()._most_points(10_000) == 120

    def test_threads_change_nothing(self, monkeypatch):
        X, y, _ = problem(n=400, c=3)
        monkeypatch.setattr(model_module, "TILE_BYTES", 10_000)
        one, two = (quick(candidates=50, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
        np.testing.assert_array_equal(one.import_indices_, two.import_indices_)
        np.testing.assert_array_equal(one.coef_, two.coef_)

    @pytest.mark.parametrize("search", SEARCHES)
    def test_weights_are_copies(self, search):
        X, y, _ = problem(n=50, c=3)
        counts = 1 + np.arange(50) % 3
        many = np.repeat(np.arange(50), counts)
        shuffled = np.random.default_rng(0).permutation(many)
        options = {"width": [0.5, 1.5], "ridge": [0.1, 0.01, 0.001], "search": search, "random_state": 0}
        weighted = ImportVectorMachine(**options).fit(X, y, counts)
        copied = ImportVectorMachine(**options).fit(X[shuffled], y[shuffled])
        np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-8)
        np.testing.assert_allclose(weighted.loo_proba_[shuffled], copied.loo_proba_, atol=1e-8)
        np.testing.assert_array_equal(weighted.centers_, copied.centers_)

    @pytest.mark.parametrize("d", [2, 3, 4])
    @pytest.mark.parametrize("search", SEARCHES)
    def test_parity(self, search, d):
        """No single row tells anything about it, so that a greedy search would end with its first point."""
        corners = np.array(list(product([0.0, 1.0], repeat=d)))
        X, y = np.repeat(corners, 10, axis=0), np.repeat(corners.sum(axis=1) % 2, 10).astype(int)
        model = ImportVectorMachine(random_state=0, search=search, kernel="gaussian").fit(X, y)
        assert model.score(X, y) == 1.0
        assert log_loss(y, model.loo_proba_) < 0.1

    def test_parity_of_rows_at_random(self):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (150, 4)).astype(float)
        y = (X.sum(axis=1) % 2).astype(int) ^ (rng.random(150) < 0.05)
        model = ImportVectorMachine(random_state=0, kernel="gaussian").fit(X, y)
        assert model.score(X, y) > 0.9

    @pytest.mark.parametrize("seed", [0, 1, 5])
    def test_smooth_kernel_on_one_column(self, seed):
        """The kernel matrix of a few points is singular in float64, and rounding used to pass for indefiniteness."""
        X = np.random.default_rng(seed).uniform(-1.0, 1.0, (300, 1))
        y = (np.floor(6.0 * X[:, 0]) % 2 == 0).astype(int)
        model = ImportVectorMachine(kernel="gaussian", random_state=0).fit(X, y)
        assert log_loss(y, model.predict_proba(X)) < 0.6

    def test_noise_does_not_grow_the_model(self):
        """Hope for many points together is for what tuning rows confirm."""
        rng = np.random.default_rng(0)
        model = ImportVectorMachine(random_state=0, kernel="gaussian").fit(
            rng.normal(size=(200, 4)), np.arange(200) % 2
        )
        assert len(model.import_indices_) < 10

    @pytest.mark.parametrize("scale", [0.01, 0.2, 100.0])
    @pytest.mark.parametrize("by", ["class_weight", "one heavy row"])
    def test_small_weights_are_as_many_rows(self, by, scale):
        """What tuning rows gain was multiplied by their weight, so that light rows never gained enough."""
        rng = np.random.default_rng(1)
        X = rng.normal(size=(300, 6))
        y = (rng.random(300) < 1 / (1 + np.exp(-1.5 * (X[:, 0] + X[:, 1])))).astype(int)
        options, weight = {"kernel": "gaussian", "random_state": 0}, np.full(300, scale)
        weight[0] = max(scale, 1.0)
        plain = ImportVectorMachine(**options).fit(X, y)
        if by == "class_weight":
            model = ImportVectorMachine(**options, class_weight={0: scale, 1: scale}).fit(X, y)
        else:
            model = ImportVectorMachine(**options).fit(X, y, weight)
        assert 0.5 * len(plain.import_indices_) < len(model.import_indices_) < 3 * len(plain.import_indices_)
        assert model.score(X, y) > plain.score(X, y) - 0.03

    @pytest.mark.parametrize("search", SEARCHES)
    def test_a_class_that_shares_all_its_rows(self, search):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20, 2))
        X, y = np.vstack([X, X[:5]]), np.append(np.arange(20) % 2, np.full(5, 2))
        proba = ImportVectorMachine(random_state=0, search=search).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(proba[:5], proba[20:])
        assert np.isfinite(proba).all() and proba[:5, 2].mean() > proba[5:20, 2].mean()

    def test_weights_of_many_sizes(self):
        X, y, _ = problem(n=30, c=3)
        weight = 10.0 ** np.random.default_rng(0).uniform(-14, 14, 30)
        proba = ImportVectorMachine(random_state=0).fit(X, y, weight).predict_proba(X)
        assert np.isfinite(proba).all()

    def test_a_kernel_of_many_sizes_is_symmetric_all_the_same(self):
        X, y, _ = problem(n=30)
        X[0] *= 1e8
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ImportVectorMachine(kernel="polynomial", scaling=None, random_state=0).fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all()

    def test_class_weight(self):
        X, y, _ = problem(n=80)
        y = np.where(np.arange(80) % 5 == 0, 1, 0)
        by_class = quick(class_weight={1: 3.0}).fit(X, y)
        by_row = quick().fit(X, y, np.where(y == 1, 3.0, 1.0))
        np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-9)
        assert quick(class_weight="balanced").fit(X, y).predict_proba(X)[:, 1].mean() == pytest.approx(0.5, abs=0.1)

    def test_tags(self):
        X, y, _ = problem(n=80)
        tags = np.column_stack([y, X[:, 1] > 0.5, np.zeros(80)]).astype(int)
        model = quick().fit(X, tags)
        proba = model.predict_proba(X)
        assert proba.shape == model.loo_proba_.shape == (80, 3)
        np.testing.assert_array_equal(model.predict(X), proba > 0.5)
        assert (model.predict(X)[:, :2] == tags[:, :2]).mean() > 0.85 and proba[:, 2].max() < 1e-3
        path = ImportVectorMachine(width=1.0, ridge=[0.1, 0.01], random_state=0).fit(X, tags)
        assert (path.path_["tuning_error"] < 0.25).all()
        given = quick(ridge=[0.1, 0.01]).fit(X, tags, tuning=(X[:20], tags[:20]))
        assert given.path_["tuning_error"].shape == (2,)

    def test_sparse_is_dense(self):
        X, y, _ = problem(n=80, c=3, d=4)
        X[np.abs(X) < 0.5] = 0.0
        dense = quick(scaling=None, ridge=[0.1, 0.01]).fit(X, y)
        thin = quick(scaling=None, ridge=[0.1, 0.01]).fit(sparse.csr_array(X), y)
        np.testing.assert_array_equal(dense.import_indices_, thin.import_indices_)
        np.testing.assert_allclose(dense.predict_proba(X), thin.predict_proba(sparse.csr_array(X)), atol=1e-8)

    def test_precomputed_is_gaussian(self):
        X, y, _ = problem(n=80, c=3)
        K = rbf_kernel(X, gamma=0.5)
        for ridge in (0.01, [0.1, 0.01]):
            gauss = quick(scaling=None, ridge=ridge).fit(X, y)
            given = quick(kernel="precomputed", ridge=ridge).fit(K, y)
            if ridge == 0.01:  # the rows of a kernel matrix fall into other tuning sets
                np.testing.assert_array_equal(gauss.import_indices_, given.import_indices_)
        own = quick(kernel="precomputed", ridge=0.01).fit(K, y)
        np.testing.assert_array_equal(own.centers_, own.import_indices_)
        np.testing.assert_allclose(own.predict_proba(K), quick(scaling=None).fit(X, y).predict_proba(X), atol=1e-7)

    @pytest.mark.parametrize("kernel", ["laplacian", "matern32", "linear", "polynomial", laplacian_kernel])
    def test_other_kernels(self, kernel):
        X, y, _ = problem(n=80)
        model = quick(kernel=kernel, ridge=[0.1, 0.01]).fit(X, y)
        assert model.score(X, y) > 0.7

    def test_kernel_units_do_not_matter(self):
        """The default path is in units of k(x, x)."""
        X, y, _ = problem(n=60)
        models = [
            ImportVectorMachine(kernel=lambda A, B, s=s: s * rbf_kernel(A, B), random_state=0).fit(X, y)
            for s in (1, 50)
        ]
        np.testing.assert_allclose(*(model.predict_proba(X) for model in models), atol=1e-6)

    def test_single_precision(self):
        X, y, _ = problem(n=80)
        model = quick().fit(X.astype(np.float32), y)
        proba = model.predict_proba(X.astype(np.float32))
        assert proba.dtype == np.float64
        np.testing.assert_allclose(proba, quick().fit(X, y).predict_proba(X), atol=1e-4)

    def test_max_points_warns(self):
        X, y, _ = problem(n=80)
        with pytest.warns(
            ConvergenceWarning, match="max_points=2 stopped the search.*Increase max_points, tol or ridge"
        ):
            model = quick(max_points=2).fit(X, y)
        assert len(model.import_indices_) == 2
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            quick(max_points=70).fit(X, y)

    def test_tol_and_lookback(self):
        X, y, _ = problem(n=100)
        options = ({}, {"tol": 1e-5}, {"tol": 0.1}, {"lookback": 1})
        points = [len(quick(**o).fit(X, y).import_indices_) for o in options]
        assert points[2] < points[0] < points[1] and points[3] < points[0]

    def test_candidates(self):
        X, y, _ = problem(n=100)
        default, all_, some = (quick(candidates=c).fit(X, y) for c in ("auto", "all", 10))
        np.testing.assert_array_equal(default.import_indices_, all_.import_indices_)
        assert list(some.import_indices_) != list(all_.import_indices_)
        assert some.path_["objective"][-1] < 1.1 * all_.path_["objective"][-1]

    def test_same_seed_same_model(self):
        X, y, _ = problem(n=100)
        model = quick(ridge=[0.1, 0.01], candidates=10)
        first, second, other = (
            model.fit(X, y).coef_,
            clone(model).fit(X, y).coef_,
            clone(model).set_params(random_state=1),
        )
        np.testing.assert_array_equal(first, second)
        assert not np.array_equal(first, other.fit(X, y).coef_)

    def test_leave_one_out_probabilities(self):
        X, y, _ = problem(n=60)
        model = quick(scaling=None).fit(X, y)
        scores = np.empty(60)
        for i in range(60):
            S = [point for point in model.import_indices_ if point != i]  # a row leaves with its point
            phi, penalty = oracles.ivm_features(gram(X), S)
            weight = (np.arange(60) != i).astype(float)
            theta, _ = oracles.ivm_newton(phi, penalty, y, weight, 0.6, np.zeros((len(S) + 1, 2)), 12)
            scores[i] = phi[i] @ (theta[:, 1] - theta[:, 0])
        exact = log_loss(y, 1 / (1 + np.exp(-scores)))
        np.testing.assert_allclose(model.loo_proba_[:, 1], 1 / (1 + np.exp(-scores)), atol=1e-3)
        assert log_loss(y, model.loo_proba_) == pytest.approx(exact, rel=0.01)

    def test_verbose(self, capsys):
        quick(verbose=1).fit(*problem()[:2])
        assert "ImportVectorMachine" in capsys.readouterr().err


class TestDisplays:
    @pytest.fixture(autouse=True)
    def no_windows(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        yield
        matplotlib.pyplot.close("all")

    def test_path(self):
        model = quick(ridge=[0.1, 0.01, 0.001]).fit(*problem(n=80)[:2])
        display = displays.ImportPathDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        losses, points, objective = (ax.lines[0].get_ydata() for ax in display.axes_)
        np.testing.assert_array_equal(losses, model.path_["tuning_log_loss"])
        np.testing.assert_array_equal(points, model.path_["n_points"])
        np.testing.assert_array_equal(objective, model.growth_["objective"])
        with pytest.raises(ValueError, match="axes has length 2, but 3 plots need 3 axes"):
            display.plot(display.axes_[:2])

    def test_refused(self):
        with pytest.raises(NotFittedError):
            displays.ImportPathDisplay.from_estimator(quick())

    def test_without_matplotlib(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        model = quick().fit(*problem(n=40)[:2])
        with pytest.raises(ImportError, match=r"pip install 'kproba\[plot\]'"):
            displays.ImportPathDisplay.from_estimator(model)


X, Y, _ = problem(n=40)
TAGS = np.column_stack([Y, X[:, 1] > 0]).astype(int)


class TestRefused:
    @pytest.mark.parametrize(
        "name, bad, message",
        [
            *[
                ("tol", bad, rf"tol must be a float in the range \(0, 1\), got {bad!r}")
                for bad in (0.0, 1, np.nan, "small", True)
            ],
            *[
                ("tuning_fraction", bad, rf"tuning_fraction must be a float in the range \(0, 1\), got {bad!r}")
                for bad in (1.0, None)
            ],
            *[
                ("lookback", bad, rf"lookback must be an int in the range \[1, inf\), got {bad!r}")
                for bad in (0, 1.5, True)
            ],
            *[
                ("max_points", bad, rf"max_points must be an int in the range \[1, inf\), got {bad!r}")
                for bad in (0, 2.0, "x")
            ],
            *[
                ("candidates", bad, rf"candidates must be an int in the range \[1, inf\), got {bad!r}")
                for bad in (0, 2.5, None)
            ],
            ("candidates", "some", "candidates must be one of 'auto', 'all'.*, got 'some'"),
            ("search", "fast", "search must be one of 'one-step', 'exact'.*, got 'fast'"),
            ("tuning_loss", "auc", "tuning_loss must be one of 'log-loss', 'error'.*, got 'auc'"),
            ("scaling", "log", "scaling must be .*, got 'log'"),
            ("kernel", "bogus", "kernel must be .*, got 'bogus'"),
            ("kernel", Gaussian, "kernel is the class Gaussian"),
            ("width", 0.0, "width must be a positive number, .*, got 0.0"),
            ("width", "wide", "width must be .*, got 'wide'"),
            ("ridge", -1.0, "ridge must be a positive number, .*, got -1.0"),
            ("ridge", [], r"ridge must be a positive number, .*, got \[\]"),
            ("ridge", "auto", "ridge must be .*'path'.*, got 'auto'"),
            ("class_weight", "bogus", "class_weight must be .*, got 'bogus'"),
            ("n_jobs", 0, "n_jobs"),
        ],
    )
    def test_parameters(self, name, bad, message):
        with pytest.raises((ValueError, TypeError), match=message):
            quick(**{name: bad}).fit(X, Y)

    @pytest.mark.parametrize(
        "tuning, message",
        [
            ((X[:, :1], Y), "tuning: X has 1 features.*2"),
            ((X, Y[:-1]), "tuning: X has 40 rows but y has 39"),
            ((X, np.zeros(40, int)), "tuning: y has only one class"),
            ((X, np.where(X[:, 0] > 0, 0, 7)), "tuning: y has the class .*7.*which the training y does not have"),
            ((np.full_like(X, np.inf), Y), "tuning: .*infinity"),
            ((X, TAGS), "tuning: y has shape"),
            ((X, X[:, 0]), "tuning: .*continuous"),
            (X, "tuning must be a pair"),
            ((X,), "tuning must be a pair"),
            ("rows", "tuning must be a pair"),
        ],
        ids=range(10),
    )
    def test_tuning_rows(self, tuning, message):
        with pytest.raises((ValueError, TypeError), match=message):
            quick(ridge="path").fit(X, Y, tuning=tuning)

    def test_a_class_without_a_tuning_row(self):
        with pytest.raises(
            ValueError, match=r"tuning: y has no row of class .*2.*every class needs at least one tuning row"
        ):
            quick().fit(X, np.arange(40) % 3, tuning=(X, Y))

    def test_tags_of_another_number(self):
        with pytest.raises(ValueError, match="tuning: y has shape"):
            quick().fit(X, TAGS, tuning=(X, np.column_stack([TAGS, Y])))

    def test_data(self):
        for args, message in [
            ((X, Y[:-1]), "X has 40 rows but y has 39"),
            ((X, np.zeros(40)), "y has only one class"),
            ((X, X[:, 0]), "continuous"),
            ((np.full_like(X, np.inf), Y), "X contains infinity"),
            ((X, Y, -np.ones(40)), "sample_weight has negative"),
            ((1e200 * X, Y), "X has values above"),
        ]:
            with pytest.raises(ValueError, match=message):
                quick(scaling=None).fit(*args)

    def test_indefinite_kernels(self):
        K = rbf_kernel(X, gamma=0.5)
        values, vectors = np.linalg.eigh(K)
        values[:10] = -5.0
        message = "kernel: the matrix of . import points is not positive definite: its smallest eigenvalue is -.*zero"
        with pytest.raises(ValueError, match=message):
            quick(kernel="precomputed").fit(vectors @ np.diag(values) @ vectors.T, Y)
        with pytest.raises(ValueError, match=message):
            quick(kernel=lambda A, B: -(A @ B.T)).fit(X, Y)
        with pytest.raises(ValueError, match=message):
            quick(kernel=lambda A, B: 1 - np.square(A @ B.T)).fit(X, Y)

    def test_a_slightly_indefinite_kernel(self):
        """Also if many points are chosen before its negative eigenvalue shows."""
        line = np.random.default_rng(0).normal(size=(120, 2))
        with pytest.raises(ValueError, match="is not positive definite: its smallest eigenvalue is -"):
            quick(kernel=lambda A, B: np.exp(-0.5 * cdist(A, B) ** 2.2)).fit(line, (line.prod(axis=1) > 0).astype(int))

    def test_asymmetric_kernels(self):
        K = rbf_kernel(X, gamma=0.5) + 0.1 * np.triu(np.ones((40, 40)))
        with pytest.raises(ValueError, match=r"kernel.*symmetric"):
            quick(kernel="precomputed").fit(K, Y)

    def test_precomputed_not_square(self):
        with pytest.raises(ValueError, match=r"precomputed.*square"):
            quick(kernel="precomputed").fit(X, Y)
