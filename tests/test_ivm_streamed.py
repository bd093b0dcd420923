"""Import points by passes over all rows: the sums, the choice of points and the solution against what memory gives."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import log_loss

from kproba import ConvergenceWarning, Gaussian, ImportVectorMachine
from kproba.basis.basis import Basis
from kproba.data.all_rows import AllRows
from kproba.data.checkpoint import Checkpoint
from kproba.data.rows import Rows
from kproba.data.sources import ArraySource, Chunk
from kproba.data.toys import clouds_2013
from kproba.estimators import _reading
from kproba.problems.import_vectors.model import ImportModel, Task
from kproba.problems.import_vectors.path import Growth, Settings
from kproba.problems.import_vectors.search import SEARCHES, Pool, _mean_curvature, _predicted_decrease
from kproba.problems.import_vectors.streamed import (
    Expansion,
    FirstRowsOf,
    LossSumsOf,
    OrthonormalBasis,
    StreamedSearch,
    best_first,
    propose,
)
from kproba.problems.losses import Multinomial

KERNEL = Gaussian(width=1.0)


def problem(n=300, c=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    X = rng.normal(size=(n, 2)) + 1.2 * np.column_stack([np.cos(y), np.sin(2 * y)])
    return X, y, rng.uniform(0.3, 2.0, n)


def task_of(X, y, weight):
    return Task(Rows.of(X, y, weight, int(y.max()) + 1), KERNEL, Multinomial(int(y.max()) + 1))


def everything_of(X, y, weight, chunk_bytes=1000):
    c = int(y.max()) + 1
    source = ArraySource(X, y, weight, chunk_bytes=chunk_bytes)
    return AllRows(source, len(X), float(weight.sum()), np.arange(c), np.ones(c))


def model_of(task, rho, points, beta=None):
    """A model of these import points, not settled."""
    lower = np.linalg.cholesky(task.columns(points)[points])
    start = np.zeros((len(points) + 1, task.loss.n_columns)) if beta is None else beta
    return ImportModel(task, rho, points, lower, start)


def search_of(X, y, weight, ridge=1e-3, rows=None, **settings):
    """A search over all rows whose sample are some of them."""
    few = np.arange(len(X)) if rows is None else rows
    given = Settings(SEARCHES["one-step"], **{"tol": 1e-3, "lookback": 3, "max_points": 60, **settings})
    everything = everything_of(X, y, weight)
    return StreamedSearch(task_of(X[few], y[few], weight[few]), ridge, given, everything, everything.encoding(None))


class TestSums:
    @pytest.mark.parametrize("c", [2, 3, 4])
    def test_are_those_of_the_model_in_memory(self, c):
        X, y, weight = problem(c=c)
        task, points = task_of(X, y, weight), [3, 50, 120, 7]
        beta = np.random.default_rng(1).normal(size=(5, c - 1))
        model = model_of(task, 0.3, points, beta)
        features = OrthonormalBasis(Basis(KERNEL, X[points]), model.lower)
        everything = everything_of(X, y, weight)
        sums = everything.sum(LossSumsOf(features, beta, task.loss, everything.encoding(None)))
        here = Expansion.of(sums, beta, 0.3)
        np.testing.assert_allclose(here.value, model.value, rtol=1e-12)
        np.testing.assert_allclose(here.gradient, model.gradient(), atol=1e-10)
        (lower,) = model.factors().lowers
        np.testing.assert_allclose(here.hessian, lower @ lower.T, atol=1e-10)

    def test_add_up(self):
        X, y, weight = problem()
        everything = everything_of(X, y, weight)
        lower = np.linalg.cholesky(KERNEL(X[:3], X[:3]))
        beta = np.ones((4, 2))
        statistic = LossSumsOf(
            OrthonormalBasis(Basis(KERNEL, X[:3]), lower), beta, Multinomial(3), everything.encoding(None)
        )
        parts = [Chunk(X[k], y[k], weight[k], 0) for k in (slice(0, 100), slice(100, 300))]
        first, second = (statistic.add(statistic.zero(), part) for part in parts)
        whole = everything.sum(statistic)
        for name in ("loss", "gradient", "curvature"):
            total = getattr(first + second, name)
            np.testing.assert_allclose(total, getattr(whole, name), rtol=1e-12, atol=1e-12)

    def test_single_precision_rows_are_summed_in_double_precision(self):
        X = problem()[0].astype(np.float32)
        lower = np.linalg.cholesky(KERNEL(X[:3].astype(float), X[:3].astype(float)))
        psi = OrthonormalBasis(Basis(KERNEL, X[:3].astype(float)), lower)(X)
        assert psi.dtype == np.float64
        np.testing.assert_allclose(psi[:3, 1:], lower, atol=1e-12)

    def test_first_rows(self):
        X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [5.0, 6.0], [3.0, 4.0]])
        source = ArraySource(X, np.zeros(5), chunk_bytes=32)
        everything = AllRows(source, 5, 5.0, np.arange(2), np.ones(2))
        np.testing.assert_array_equal(everything.sum(FirstRowsOf(X[[4, 3, 0]])).first, [1, 3, 0])


class TestChoice:
    @pytest.mark.parametrize("c", [2, 3])
    def test_greedy_choice_is_that_of_a_loop(self, c):
        """Every candidate tried by solving the whole quadratic."""
        X, y, weight = problem(c=c)
        search = search_of(X, y, weight)
        chosen, pool = [5, 17, 80], [1, 2, 3, 40, 90, 91, 92]
        model = model_of(search.task, search.ridge, [*chosen, *pool])
        beta = np.vstack([np.random.default_rng(0).normal(size=(4, c - 1)), np.zeros((len(pool), c - 1))])
        features = OrthonormalBasis(Basis(KERNEL, X[[*chosen, *pool]]), model.lower)
        sums = search.all_rows.sum(LossSumsOf(features, beta, search.task.loss, search.encoding))
        here = Expansion.of(sums, beta, search.ridge)
        corner = model.lower[3:, 3:]
        rest = here.eliminate_first(4).transformed(corner / np.linalg.norm(corner, axis=1, keepdims=True))
        found = list(best_first(rest, 1e-10))[:4]
        picked, last = [], here.value - rest.value
        for best, decrease in found:
            falls = []
            for new in range(len(pool)):
                some = corner[[*picked, new]] if new not in picked else corner[picked]
                turn = np.zeros((4 + len(some), len(beta)))
                turn[:4, :4], turn[4:, 4:] = np.eye(4), some
                falls.append(here.transformed(turn).step()[1])
            assert best == int(np.argmax(falls))
            assert decrease == pytest.approx(max(falls) - last, rel=1e-8)
            last = max(falls)
            picked.append(best)

    def test_proposals_extend_the_factor(self):
        X, y, weight = problem()
        model = model_of(task_of(X, y, weight), 0.5, [5, 17, 80])
        rows, lower = propose(model, Pool(model.task, 100, 0), 20)
        assert rows[:3] == [5, 17, 80] and len(set(rows)) == 23
        np.testing.assert_allclose(lower @ lower.T, KERNEL(X[rows], X[rows]), atol=1e-10)

    @pytest.mark.parametrize("c", [2, 3])
    def test_the_first_proposal_is_first_in_the_search_of_2001_too(self, c):
        X, y, weight = problem(c=c)
        model = model_of(task_of(X, y, weight), 0.5, [5, 17, 80]).converge()
        pool = Pool(model.task, "all", 0)
        decrease = _predicted_decrease(
            model, pool.residuals(model, slice(None)), *_mean_curvature(model, model.factors())
        )
        rows, _ = propose(model, pool, 1)
        assert rows[3] == pool.rows[np.argmax(decrease)]

    def test_equal_rows_are_proposed_once(self):
        X, y, weight = problem(n=40)
        X = np.repeat(X[:8], 5, axis=0)
        model = ImportModel(task_of(X, y, weight), 0.5)
        rows, _ = propose(model, Pool(model.task, 40, 0), 30)
        assert len(rows) == 8


def settled(search, X, y, weight):
    """The points of a search whose sample are the first rows, fitted to all rows in memory."""
    start = np.zeros((len(search.chosen) + 1, search.task.loss.n_columns))
    model = ImportModel(task_of(X, y, weight), search.ridge, search.chosen, search.lower, start).converge()
    # one step more with a fresh factor: it stops where J does not change any more, which leaves 1e-6 in flat directions
    model._descend(model._newton_step(model.gradient(), model.renew_factors()))
    return model


class TestSolution:
    @pytest.mark.parametrize("c", [2, 4])
    @pytest.mark.parametrize("ridge", [1e-2, 1e-6])
    def test_is_that_of_newtons_method_in_memory(self, c, ridge):
        """The points that the sample and the sums chose, fitted to all rows in memory."""
        X, y, weight = problem(n=800, c=c)
        search = search_of(X, y, weight, ridge, rows=np.arange(300))
        model, point = search.run("auto", 0, growth := Growth())
        whole = settled(search, X, y, weight)
        np.testing.assert_allclose(model.beta, whole.beta, atol=1e-8)
        np.testing.assert_allclose(
            search.lower @ search.lower.T, KERNEL(X[search.chosen], X[search.chosen]), atol=1e-10
        )
        assert point.objective == pytest.approx(whole.value, rel=1e-12)
        assert growth.entries[-1] == (ridge, len(model.chosen), point.objective)

    def test_values_fall_and_the_last_round_is_short(self):
        X, y, weight = problem(n=1500, c=2)
        search = search_of(X, y, weight, 1e-4, rows=np.arange(500))
        _, point = search.run("auto", 0, Growth())
        assert (np.diff(search.values) < 0).all()
        assert point.gain < 1e-3 and not point.is_cut and len(search.chosen) < 60

    def test_a_step_too_far_is_halved(self, monkeypatch):
        X, y, weight = problem(n=600, c=2)
        search = search_of(X, y, weight, 1e-5, rows=np.arange(200))
        step = Expansion.step
        far = iter([30.0])
        monkeypatch.setattr(Expansion, "step", lambda self: (step(self)[0] * next(far, 1.0), step(self)[1]))
        model, _ = search.run("auto", 0, Growth())
        whole = settled(search, X, y, weight)
        np.testing.assert_allclose(model.beta, whole.beta, atol=1e-8)

    def test_a_class_without_rows_does_not_diverge(self):
        X, y, weight = problem(n=400, c=2)
        task = Task(Rows.of(X, y, weight, 3), KERNEL, Multinomial(3))
        everything = AllRows(ArraySource(X, y, weight), 400, float(weight.sum()), np.arange(3), np.ones(3))
        settings = Settings(SEARCHES["one-step"], max_points=20)
        search = StreamedSearch(task, 1e-3, settings, everything, everything.encoding(None))
        model, _ = search.run("auto", 0, Growth())
        assert np.isfinite(model.beta).all() and search.n_passes < 15
        assert model.P[:, 2].max() < 1e-6


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(_reading, "sample_size", lambda d: 1000)


class TestEstimator:
    def test_as_good_as_in_memory(self, small_sample):
        toy = clouds_2013(8000, random_state=0)
        order = np.random.default_rng(0).permutation(8000)
        train, test = order[:4000], order[4000:]
        few = ImportVectorMachine(random_state=0).fit(toy.X[train], toy.y[train])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_reading, "sample_size", lambda d: 10**6)
            all_ = ImportVectorMachine(random_state=0).fit(toy.X[train], toy.y[train])
        assert few.n_passes_ < 25 and not hasattr(all_, "n_passes_")
        losses = [log_loss(toy.y[test], model.predict_proba(toy.X[test])) for model in (few, all_)]
        assert losses[0] < 1.03 * losses[1]

    def test_attributes(self, small_sample):
        X, y, weight = problem(n=2500)
        model = ImportVectorMachine(kernel="gaussian", width=1.0, ridge=1e-4, random_state=0).fit(X, y, weight)
        q = len(model.centers_)
        np.testing.assert_array_equal(X[model.import_indices_], model.centers_)
        assert model.coef_.shape == (q, 3) and model.n_iter_ == q == model.growth_["n_points"][-1]
        assert model.ridge_ == pytest.approx(1e-4) and model.path_["ridge"].tolist() == [1e-4]
        assert not hasattr(model, "loo_proba_")
        P = model.predict_proba(X)
        K = KERNEL(model.basis_.centers, model.basis_.centers)
        penalty = 0.5 * 1e-4 * weight.sum() * np.einsum("jc,jl,lc->", model.coef_, K, model.coef_)
        value = -weight @ np.log(P[np.arange(len(y)), y]) + penalty
        assert model.path_["objective"][-1] == pytest.approx(value, rel=1e-9)

    def test_single_precision(self, small_sample):
        X, y, _ = problem(n=2500)
        model = ImportVectorMachine(width=1.0, kernel="gaussian", ridge=1e-3, random_state=0).fit(
            X.astype(np.float32), y
        )
        np.testing.assert_array_equal(X.astype(np.float32)[model.import_indices_], model.centers_)

    def test_weights_are_copies(self, small_sample):
        X, y, _ = problem(n=2500)
        counts = np.random.default_rng(0).integers(1, 3, len(X))
        given = {"kernel": "gaussian", "width": 1.0, "ridge": 1e-4, "random_state": 0, "max_points": 40}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            one = ImportVectorMachine(**given).fit(X, y, counts)
            other = ImportVectorMachine(**given).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-8)

    @pytest.mark.parametrize("kernel", ["linear", "polynomial", "matern32"])
    def test_other_kernels(self, kernel, small_sample):
        """Of a linear kernel the columns are all that there are points for."""
        X, y, _ = problem(n=1500)
        model = ImportVectorMachine(kernel=kernel, random_state=0).fit(X, y)
        assert model.score(X, y) > 0.6
        assert kernel != "linear" or len(model.centers_) <= 2

    def test_few_rows_of_a_source_are_fitted_as_an_array_is(self, small_sample):
        X, y, weight = problem(n=400)
        one, other = (ImportVectorMachine(width="median", random_state=0) for _ in range(2))
        one.fit(X, y, weight)
        other.fit(ArraySource(X, y, weight, chunk_bytes=2000))
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.import_indices_, other.import_indices_)

    def test_tuning_rows(self, small_sample):
        X, y, _ = problem(n=2500)
        tuning = problem(n=300, seed=5)[:2]
        model = ImportVectorMachine(kernel="gaussian", width=1.0, ridge=[1e-2, 1e-4], random_state=0)
        model.fit(X, y, tuning=tuning)
        assert model.ridge_ in (1e-2, 1e-4) and np.isfinite(model.path_["tuning_log_loss"]).all()
        assert not hasattr(model, "_tuning")

    def test_max_points(self, small_sample):
        X, y, _ = problem(n=2500)
        with pytest.warns(ConvergenceWarning, match="max_points=5 stopped the search") as caught:
            model = ImportVectorMachine(width=1.0, ridge=1e-5, max_points=5, random_state=0).fit(X, y)
        assert len(model.centers_) == 5 and caught[0].filename == __file__

    def test_a_later_fit_in_memory_forgets_the_passes(self, small_sample):
        X, y, _ = problem(n=2500)
        model = ImportVectorMachine(width=1.0, kernel="gaussian", ridge=1e-3, random_state=0).fit(X, y)
        assert hasattr(model, "n_passes_")
        model.fit(X[:200], y[:200])
        assert not hasattr(model, "n_passes_") and model.loo_proba_.shape == (200, 3)

    def test_classes_that_no_row_has(self, small_sample):
        X, y, _ = problem(n=2500)
        model = ImportVectorMachine(width=1.0, kernel="gaussian", ridge=1e-3, random_state=0).fit(X, y, classes=[7])
        assert list(model.classes_) == [0, 1, 2, 7]
        assert model.predict_proba(X)[:, 3].max() < 1e-4

    def test_options_that_need_memory(self, small_sample):
        X, y, _ = problem(n=1200)
        source = ArraySource(X, y)
        for options, message in [
            ({"kernel": "precomputed"}, "kernel='precomputed' needs the kernel matrix"),
            ({"search": "exact"}, "search='exact' fits every candidate to all rows"),
            ({"candidates": "all"}, "candidates='all' considers all rows"),
        ]:
            with pytest.raises(ValueError, match=message):
                ImportVectorMachine(**options).fit(source)
        given = {"width": 1.0, "kernel": "gaussian", "ridge": 1e-2, "random_state": 0}
        assert hasattr(ImportVectorMachine(**given, candidates="all").fit(X, y), "loo_proba_")

    def test_no_partial_fit(self):
        assert not hasattr(ImportVectorMachine(), "partial_fit")


class TestCheckpoint:
    def test_goes_on_where_it_was(self, small_sample, tmp_path, monkeypatch):
        """Interrupted in several passes in turn; the seed is the first one's."""
        monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))
        X, y, weight = problem(n=2500)
        source = ArraySource(X, y, weight, chunk_bytes=8_000)
        given = {"kernel": "gaussian", "width": 1.0, "ridge": 1e-5, "n_jobs": 1}
        whole = ImportVectorMachine(**given, random_state=7).fit(source)
        added, seen = LossSumsOf.add, {"n": 0, "stop": 0}

        def interrupted(self, total, chunk):
            seen["n"] += 1
            if seen["n"] == seen["stop"]:
                raise KeyboardInterrupt
            return added(self, total, chunk)

        for stop in (3, 7, 11):
            seen.update(n=0, stop=stop)
            with monkeypatch.context() as patch:
                patch.setattr(LossSumsOf, "add", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    ImportVectorMachine(**given, random_state=7).fit(source, checkpoint=tmp_path)
            assert (tmp_path / "sums-0.npz").exists()
        resumed = ImportVectorMachine(**given, random_state=99).fit(source, checkpoint=tmp_path)
        np.testing.assert_array_equal(resumed.coef_, whole.coef_)
        np.testing.assert_array_equal(resumed.import_indices_, whole.import_indices_)
        assert not list(tmp_path.iterdir())
