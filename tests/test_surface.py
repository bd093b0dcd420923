"""The surface kernel classifier: the loss by its sums, the exact maximum, the paper's solvers, and held-out outputs."""

import clarabel
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, make_classification, make_multilabel_classification
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel

import oracles
from kproba import ConvergenceWarning, SurfaceKernelClassifier
from kproba.basis.basis import Basis
from kproba.basis.centers import kmeans_centers
from kproba.basis.moments import Moments
from kproba.data.rows import Rows
from kproba.estimators import _reading
from kproba.kernels import Gaussian
from kproba.metrics import surface_loss
from kproba.papers.surface_solvers import SOLVERS, Simplex, Swarm
from kproba.problems import surface
from kproba.problems.surface import Settings, Surface, maximise
from kproba.solvers import box_qp
from kproba.solvers.surface_loss import SurfaceLoss, nearest_with_sum

X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def random_loss(seed: int, q: int | None = None, r: int | None = None) -> SurfaceLoss:
    """A surface loss of random rows; every third has a kernel so wide that H is singular to working precision."""
    random = np.random.default_rng(seed)
    q, r = q or int(random.integers(2, 11)), r or int(random.integers(3, 101))
    n, d = int(random.integers(2 * r, 20 * r)), int(random.integers(1, 8))
    X = random.standard_normal((n, d))
    width = np.sqrt(d) * (10 ** random.uniform(0.5, 1.2) if seed % 3 == 0 else 10 ** random.uniform(-0.7, 0.5))
    classes = np.sin(2 * X @ random.standard_normal((d, q))) + 0.5 * random.standard_normal((n, q))
    phi = oracles.gaussian(X, X[random.choice(n, r, replace=False)], width)
    return SurfaceLoss.of(Moments.of(phi, oracles.one_hot(classes.argmax(axis=1), q)))


def by_clarabel(loss: SurfaceLoss, tol: float = 1e-11):
    """The same programme by an independent library."""
    m, q = loss.shape
    quadratic = sparse.csc_matrix(sparse.block_diag([np.triu(loss.H)] * q))
    sums, one = sparse.hstack([sparse.eye(m)] * q), sparse.eye(m * q)
    right = np.concatenate([loss.total, np.ones(2 * m * q)])
    cones = [clarabel.ZeroConeT(m), clarabel.NonnegativeConeT(2 * m * q)]
    options = clarabel.DefaultSettings()
    options.verbose, options.tol_gap_abs, options.tol_gap_rel, options.tol_feas = False, tol, tol, tol
    constraints = sparse.vstack([sums, one, -one]).tocsc()
    found = clarabel.DefaultSolver(quadratic, -loss.h.T.ravel(), constraints, right, cones, options).solve()
    return -found.obj_val, str(found.status) == "Solved"


def violation(A: np.ndarray, total: np.ndarray) -> float:
    return max(float(np.abs(A.sum(axis=-1) - total).max()), float(np.abs(A).max()) - 1.0)


class TestLoss:
    def test_the_sums_give_the_loss_of_the_rows(self):
        """2013 Eq. 4 row by row, with weights, equals its form by NB, K_j^l, K_l and K_{s,l} (Sec. 3.2)."""
        random = np.random.default_rng(0)
        X, y, weight = random.standard_normal((50, 3)), random.integers(0, 4, 50), random.uniform(0.1, 2.0, 50)
        phi, Y = oracles.gaussian(X, X[:7], 1.0), oracles.one_hot(y, 4)
        loss = SurfaceLoss.of(Moments.of(phi, Y, weight))
        A = random.uniform(-1, 1, (8, 4))
        assert loss.value(A) == pytest.approx(oracles.surface_loss(phi, Y, weight, A), abs=1e-13)
        assert loss.value(A) == pytest.approx(surface_loss(y, phi @ A[:-1] + A[-1], sample_weight=weight), abs=1e-13)
        stack = random.uniform(-1, 1, (3, 8, 4))
        np.testing.assert_allclose(loss.value(stack), [loss.value(one) for one in stack], atol=1e-13)

    def test_gradient(self):
        loss, A, step = random_loss(1, q=3, r=5), np.zeros((6, 3)), 1e-6
        for place in np.ndindex(A.shape):
            up = A.copy()
            up[place] = step
            assert (loss.value(up) - loss.value(A)) / step == pytest.approx(loss.gradient(A)[place], abs=1e-5)

    @given(st.integers(0, 10_000), st.integers(2, 7))
    @settings(max_examples=60, deadline=None)
    def test_nearest_point(self, seed, q):
        """Feasible, and no feasible point is nearer: the projection's variational inequality."""
        random = np.random.default_rng(seed)
        total = random.choice([0.0, 1.0], 5)
        A = random.standard_normal((5, q)) * 10 ** random.uniform(-1, 2)
        near = nearest_with_sum(A, total)
        assert violation(near, total) < 1e-12
        others = nearest_with_sum(random.uniform(-1, 1, (20, 5, q)), total)
        assert (np.einsum("mq,smq->sm", A - near, others - near) < 1e-9 * (1 + np.abs(A).max())).all()
        np.testing.assert_allclose(nearest_with_sum(near, total), near, atol=1e-12)


class TestExact:
    @pytest.mark.parametrize("seed", range(50))
    def test_against_an_independent_library(self, seed):
        loss = random_loss(seed)
        A, is_free, _ = box_qp.maximise(loss)
        certificate = loss.certificate(A)
        value, solved = by_clarabel(loss)
        assert violation(A, loss.total) < 1e-10
        assert certificate.duality_gap < 1e-9 and certificate.kkt_residual < 1e-5
        # where the library gives up short of its tolerance, ours must be at least as good; the gap shows that it is
        assert certificate.objective > value - 1e-8
        assert abs(certificate.objective - value) < 1e-8 or not solved
        assert is_free == (certificate.n_active == 0)

    def test_most_of_the_independent_solutions_are_solved(self):
        assert sum(by_clarabel(random_loss(seed, q=3, r=20))[1] for seed in range(12)) >= 8

    def test_inside_the_box_it_is_least_squares(self):
        random = np.random.default_rng(0)
        X = random.uniform(-3, 3, (4000, 1))
        y = (random.uniform(size=4000) < 0.5 + 0.3 * np.sin(X[:, 0])).astype(int)
        phi = oracles.gaussian(X, np.linspace(-2, 2, 4)[:, None], 0.5)
        loss = SurfaceLoss.of(Moments.of(phi, oracles.one_hot(y, 2)))
        A, is_free, _ = box_qp.maximise(loss)
        assert is_free
        expected = np.linalg.lstsq(np.column_stack([phi, np.ones(4000)]), oracles.one_hot(y, 2), rcond=None)[0]
        np.testing.assert_allclose(A, expected, atol=1e-9)
        np.testing.assert_allclose(A.sum(axis=1), loss.total, atol=1e-12)

    def test_certificate_bounds_the_distance_to_the_maximum(self):
        loss = random_loss(5, q=4, r=15)
        best = loss.certificate(box_qp.maximise(loss)[0]).objective
        random = np.random.default_rng(0)
        for A in loss.nearest(random.uniform(-1, 1, (20, *loss.shape))):
            certificate = loss.certificate(A)
            assert best <= certificate.objective + certificate.duality_gap + 1e-12
            assert certificate.kkt_residual > 1e-3


class TestPaperSolvers:
    @pytest.mark.parametrize("q", [2, 5])
    def test_swarm_keeps_every_constraint_at_every_step(self, q):
        swarm = Swarm(random_loss(7, q=q, r=10), np.random.RandomState(0))
        values = []
        for _ in range(200):
            swarm.step()
            assert violation(swarm.position, swarm.loss.total) < 1e-12
            assert violation(swarm.velocity, np.zeros(11)) < 1e-12
            values.append(swarm.leader_value)
        assert (np.diff(values) >= 0).all() and values[-1] > values[0]
        assert swarm.leader_value == pytest.approx(float(swarm.loss.value(swarm.leader)), abs=1e-12)

    @pytest.mark.parametrize("q", [2, 5])
    def test_simplex_keeps_every_constraint_at_every_step(self, q):
        simplex = Simplex(random_loss(7, q=q, r=6), np.random.RandomState(0))
        best = simplex.best_value
        for _ in range(300):
            simplex.step()
            assert violation(simplex.points, simplex.loss.total) < 1e-12
            assert (np.diff(simplex.values) <= 0).all() and simplex.best_value >= best
            np.testing.assert_allclose(simplex.values, simplex.loss.value(simplex.points), atol=1e-12)
            np.testing.assert_allclose(simplex._sum, simplex.points.sum(axis=0), atol=1e-10)
            best = simplex.best_value

    def test_simplex_step_is_the_printed_one(self):
        """Algorithm 1 written out, until it reaches the box."""
        loss = random_loss(3, q=2, r=3)
        simplex = Simplex(loss, np.random.RandomState(1))
        simplex.points *= 0.05
        simplex.points[..., -1, :] += 0.475
        simplex._order(simplex.points, loss.value(simplex.points))
        steps = 0
        while steps < 30:
            expected = oracles.nelder_mead_step(simplex.points.copy(), loss.value)
            if np.abs(expected).max() > 1.0:
                break
            simplex.step()
            steps += 1
            np.testing.assert_allclose(simplex.points, expected, atol=1e-12)
        assert steps >= 8

    @pytest.mark.parametrize("solver", ["nelder-mead", "swarm"])
    def test_seed_and_shortfall(self, solver):
        options = {"solver": solver, "max_iter": 300, "n_restarts": 2, "width": 1.0, "n_centers": 8, "link": "clip"}
        one, same, other = (
            SurfaceKernelClassifier(**options, random_state=seed).fit(X_IRIS, Y_IRIS) for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(one.coef_, same.coef_)
        assert not np.array_equal(one.coef_, other.coef_)
        exact = SurfaceKernelClassifier(**{**options, "solver": "exact"}, random_state=0).fit(X_IRIS, Y_IRIS)
        below = exact.certificate_.objective - one.certificate_.objective
        assert one.shortfall_ == pytest.approx(below, abs=1e-10) and one.shortfall_ > 1e-4
        assert one.shortfall_ <= one.certificate_.duality_gap + 1e-10
        assert (np.diff(one.history_) >= 0).all() and one.history_[-1] <= one.certificate_.objective + 1e-12

    def test_enough_steps_come_near_the_maximum(self):
        loss = random_loss(11, q=2, r=4)
        for solver in ("nelder-mead", "swarm"):
            found = maximise([loss], Settings(SOLVERS[solver], max_iter=3000, restarts=3, seed=0))
            assert found.optimum - found.certificate.objective < 5e-3

    def test_interruption_keeps_the_best_so_far(self, monkeypatch):
        step, calls = Swarm.step, []

        def interrupted(self):
            calls.append(1)
            if len(calls) == 50:
                raise KeyboardInterrupt
            step(self)

        monkeypatch.setattr(Swarm, "step", interrupted)
        clf = SurfaceKernelClassifier(solver="swarm", width=1.0, link="clip", random_state=0)
        with pytest.warns(ConvergenceWarning, match="interrupted after 49 steps"):
            clf.fit(X_IRIS, Y_IRIS)
        assert clf.n_iter_ == 49 and clf.score(X_IRIS, Y_IRIS) > 0.5

    def test_interruption_ends_all_restarts(self, monkeypatch):
        def interrupted(self):
            raise KeyboardInterrupt

        monkeypatch.setattr(Simplex, "step", interrupted)
        with pytest.warns(ConvergenceWarning, match="interrupted after 0 steps") as told:
            found = maximise([random_loss(1, q=2, r=4)], Settings(SOLVERS["nelder-mead"]))
        assert len(told) == 1 and found.n_iter == 0 and found.certificate.duality_gap > 0

    def test_progress_is_shown(self, capsys):
        options = {"width": 1.0, "link": "clip", "n_centers": 5, "max_iter": 200, "random_state": 0}
        SurfaceKernelClassifier(solver="swarm", verbose=1, **options).fit(X_IRIS, Y_IRIS)
        assert "swarm: 0." in capsys.readouterr().err


class TestHeldOut:
    def problem(self, width=0.5, **options):
        random = np.random.default_rng(0)
        X = random.uniform(-3, 3, (300, 1))
        y = (random.uniform(size=300) < 0.5 + 0.3 * np.sin(X[:, 0])).astype(int)
        rows = Rows.of(X, y, random.integers(1, 3, 300).astype(float), 2)
        return Surface(rows, Basis(Gaussian(width), np.linspace(-2, 2, 4)[:, None]), **options)

    def test_leave_one_out_is_exact_where_no_box_is_active(self):
        problem = self.problem()
        assert problem.maximum.is_free
        scores = problem.held_out
        for i in (0, 17, 222):
            weight = problem.rows.weight.copy()
            weight[i] -= 1.0
            phi = np.column_stack([problem.basis(problem.rows.X), np.ones(300)]) * np.sqrt(weight)[:, None]
            coef = np.linalg.lstsq(phi, problem.rows.targets() * np.sqrt(weight)[:, None], rcond=None)[0]
            expected = np.append(problem.basis(problem.rows.X[[i]]), 1.0) @ coef
            np.testing.assert_allclose(scores[i], expected, atol=1e-9)

    def test_folds_equal_refitting(self):
        problem = self.problem(width=20.0)
        assert not problem.maximum.is_free
        some = np.arange(40, 80)
        (found,) = problem.hold_out(some)
        rest = problem.rows.take(np.setdiff1d(np.arange(300), some))
        refitted = Surface(rest, problem.basis).maximum.coef
        expected = problem.basis(problem.rows.X[some]) @ refitted[:-1] + refitted[-1]
        np.testing.assert_allclose(found.held_out, expected, atol=1e-5)

    @pytest.mark.parametrize("kind", ["weights", "sparse", "tags", "groups"])
    def test_stored_features_change_nothing(self, kind, monkeypatch):
        X, tags = make_multilabel_classification(150, 6, n_classes=3, random_state=0)
        y = tags if kind == "tags" else tags[:, 0]
        extra = (
            {"sample_weight": np.random.default_rng(0).choice([0.0, 0.4, 1.0, 7.0], 150)} if kind == "weights" else {}
        )
        extra |= {"groups": np.arange(150) // 3} if kind == "groups" else {}
        X = sparse.csr_array(X) if kind == "sparse" else X
        outputs = []
        for most in (surface.FEATURE_BYTES, 0):
            monkeypatch.setattr(surface, "FEATURE_BYTES", most)
            clf = SurfaceKernelClassifier(kernel="gaussian", random_state=0).fit(X, y, **extra)
            outputs.append(np.hstack([clf.loo_scores_, clf._scores(X)]))
        np.testing.assert_allclose(*outputs, atol=1e-6)

    def test_folds_on_demand(self):
        np.testing.assert_raises(
            AssertionError,
            np.testing.assert_allclose,
            self.problem().held_out,
            self.problem(only_folds=True).held_out,
        )

    def test_many_rows_calibrate_on_a_sample(self, monkeypatch):
        monkeypatch.setattr(_reading, "sample_size", lambda d: 300)
        X, y = make_classification(1500, 5, random_state=0)
        clf = SurfaceKernelClassifier(random_state=0).fit(X[:1000], y[:1000])
        assert not hasattr(clf, "loo_proba_")
        assert log_loss(y[1000:], clf.predict_proba(X[1000:])) < 0.45
        every = SurfaceKernelClassifier(random_state=0, loo=True).fit(X[:1000], y[:1000])
        assert every.loo_proba_.shape == (1000, 2)
        assert log_loss(y[:1000], every.loo_proba_) < 0.45


class TestEstimator:
    def test_probabilities_are_better_than_the_outputs(self):
        """Outputs leave [0, 1] on real data, against the paper's remark; the link repairs it."""
        X, y = load_digits(return_X_y=True)
        raw = SurfaceKernelClassifier(link="none", random_state=0).fit(X[:800], y[:800])
        assert (raw.decision_function(X[800:]) < 0).mean() > 0.03
        clf = SurfaceKernelClassifier(random_state=0).fit(X[:800], y[:800])
        proba = clf.predict_proba(X[800:])
        assert (proba > 0).all() and np.allclose(proba.sum(axis=1), 1.0)
        assert log_loss(y[800:], proba) < 0.3
        assert clf.shortfall_ == clf.certificate_.duality_gap < 1e-9

    def test_weights_equal_copies(self):
        random = np.random.default_rng(0)
        X, y, copies = X_IRIS + random.normal(0, 0.1, X_IRIS.shape), Y_IRIS, random.integers(0, 4, 150)
        weighted = SurfaceKernelClassifier(random_state=0).fit(X, y, sample_weight=copies)
        copied = SurfaceKernelClassifier(random_state=0).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
        np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-10)

    @pytest.mark.parametrize("centers", ["k-means", "class-k-means", "random"])
    def test_sparse_equals_dense(self, centers):
        X = np.where(np.random.default_rng(0).uniform(size=(120, 6)) < 0.5, 0.0, X_IRIS[:120, :1])
        y = (X[:, 0] + X[:, 1] > X[:, 2]).astype(int)
        options = {"centers": centers, "scaling": None, "n_centers": 10, "width": 4.0, "random_state": 0}
        dense, thin = (SurfaceKernelClassifier(**options).fit(form(X), y) for form in (np.asarray, sparse.csr_array))
        np.testing.assert_allclose(dense.predict_proba(X), thin.predict_proba(sparse.csr_array(X)), atol=1e-6)
        assert sparse.issparse(thin.centers_)

    def test_frames_and_string_labels(self):
        frame = pd.DataFrame(X_IRIS, columns=list("abcd"))
        labels = np.array(["setosa", "versicolor", "virginica"])[Y_IRIS]
        clf = SurfaceKernelClassifier(width="median", random_state=0).fit(frame, labels)
        assert set(clf.predict(frame)) <= set(labels) and list(clf.feature_names_in_) == list("abcd")

    def test_tags(self):
        X, Y = make_multilabel_classification(300, n_features=6, n_classes=3, random_state=0)
        clf = SurfaceKernelClassifier(kernel="gaussian", width="median", random_state=0).fit(X[:200], Y[:200])
        proba = clf.predict_proba(X[200:])
        assert proba.shape == (100, 3) and ((proba > 0) & (proba < 1)).all()
        assert (clf.predict(X[200:]) == Y[200:]).mean() > 0.75
        single = SurfaceKernelClassifier(kernel=clf.kernel_, centers=clf.centers_, random_state=0)
        single.fit(X[:200], Y[:200, 1])
        np.testing.assert_allclose(clf.coef_[:, 1], single.coef_[:, 1], atol=1e-5)

    def test_precomputed_kernel(self):
        K = rbf_kernel(X_IRIS, gamma=0.5)
        options = {"n_centers": 20, "random_state": 0}
        clf = SurfaceKernelClassifier(kernel="precomputed", **options).fit(K, Y_IRIS)
        assert clf.score(K, Y_IRIS) > 0.9 and clf.centers_.shape == (20,)
        same = SurfaceKernelClassifier(kernel="precomputed", centers=clf.centers_, **options).fit(K, Y_IRIS)
        np.testing.assert_allclose(same.predict_proba(K), clf.predict_proba(K), atol=1e-8)

    def test_given_centers_and_other_kernels(self):
        clf = SurfaceKernelClassifier(centers=X_IRIS[::10], kernel="auto", random_state=0).fit(X_IRIS, Y_IRIS)
        np.testing.assert_allclose(clf.centers_, X_IRIS[::10], atol=1e-8)
        assert set(clf.search_results_["kernel"]) == {"gaussian", "laplacian"}
        linear = SurfaceKernelClassifier(kernel="linear", random_state=0).fit(X_IRIS, Y_IRIS)
        assert linear.score(X_IRIS, Y_IRIS) > 0.7

    def test_auto_takes_clusters_of_each_class_where_rows_are_many(self):
        X, y = make_classification(3000, 4, random_state=0)
        rows = Rows.of(X, y, np.ones(3000), 2)
        found = SurfaceKernelClassifier(scaling=None)._centers(rows, None, 3000, 0).points
        np.testing.assert_array_equal(found, kmeans_centers(rows, 70, 0, by_class=True).points)
        few = rows.take(np.arange(300))
        found = SurfaceKernelClassifier(scaling=None)._centers(few, None, 300, 0).points
        np.testing.assert_array_equal(found, kmeans_centers(few, 47, 0).points)

    def test_mini_batches_of_many_rows(self):
        random = np.random.default_rng(0)
        X = random.standard_normal((12_000, 2)) + 6.0 * random.integers(0, 2, (12_000, 2))
        centers = kmeans_centers(Rows.of(X, np.zeros(12_000, int), np.ones(12_000), 2), 4, 0).points
        corners = {(round(a / 6), round(b / 6)) for a, b in centers}
        assert corners == {(0, 0), (0, 1), (1, 0), (1, 1)}

    def test_error_of_the_posterior_falls_with_the_rows(self):
        random = np.random.default_rng(0)

        def draw(n):
            X = random.standard_normal((n, 2))
            p = 1 / (1 + np.exp(-2 * np.sin(2 * X[:, 0]) - X[:, 1]))
            return X, (random.uniform(size=n) < p).astype(int), p

        X_new, _, p_new = draw(2000)
        errors = []
        for n in (200, 5000):
            X, y, _ = draw(n)
            clf = SurfaceKernelClassifier(random_state=0).fit(X, y)
            errors.append(np.abs(clf.predict_proba(X_new)[:, 1] - p_new).mean())
        assert errors[1] < 0.6 * errors[0]


class TestRefused:
    @pytest.mark.parametrize(
        "options, error, message",
        [
            ({"solver": "newton"}, ValueError, "solver must be one of 'exact'.*, got 'newton'"),
            ({"n_centers": 0}, ValueError, r"n_centers must be an int in the range \[1, inf\), got 0"),
            ({"n_centers": "many"}, ValueError, "n_centers must be .*, got 'many'"),
            ({"centers": "medoids"}, ValueError, "centers must be one of 'auto', 'k-means'.*, got 'medoids'"),
            ({"centers": 5}, TypeError, "centers must be .* got 5. Use n_centers to set their number"),
            ({"centers": np.ones((3, 2))}, ValueError, r"centers has shape \(3, 2\)"),
            ({"centers": np.full((3, 4), np.nan)}, ValueError, "centers contains NaN"),
            ({"link": "clip-parameters"}, ValueError, "link must be .*, got 'clip-parameters'"),
            ({"width": -1.0}, ValueError, "width must be a positive number, .*, got -1.0"),
            ({"folds": 1}, ValueError, r"folds must be an int in the range \[2, inf\), got 1"),
            ({"max_iter": 0}, ValueError, r"max_iter must be an int in the range \[1, inf\), got 0"),
            ({"n_restarts": 2.5}, ValueError, r"n_restarts must be an int in the range \[1, inf\), got 2.5"),
            ({"loo": "yes"}, ValueError, "loo must be .*, got 'yes'"),
            ({"scaling": "minmax"}, ValueError, "scaling must be .*, got 'minmax'"),
        ],
    )
    def test_parameters(self, options, error, message):
        with pytest.raises(error, match=message):
            SurfaceKernelClassifier(**options).fit(X_IRIS, Y_IRIS)

    def test_kmeans_without_rows(self):
        with pytest.raises(ValueError, match=r"centers='k-means' needs the rows themselves.*centers='random'"):
            SurfaceKernelClassifier(kernel="precomputed", centers="k-means").fit(np.eye(4), [0, 1, 0, 1])


def test_a_singular_system_of_few_distinct_rows():
    """Two distinct rows, equally far from the only centre: its features are constant, as the constant itself."""
    X = np.repeat([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], 15, axis=0)
    model = SurfaceKernelClassifier(random_state=0).fit(X, np.repeat([0, 1], 15))
    np.testing.assert_allclose(model.predict_proba(X), 0.5)
