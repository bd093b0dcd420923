"""Conjugate gradients for all rows as centres, against dense float64 solutions."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import log_loss

from kproba import LSPC
from kproba.exceptions import ConvergenceWarning
from kproba.kernels import Gaussian, Laplacian
from kproba.problems import least_squares
from kproba.solvers import iterative_dual
from kproba.solvers.cg import LocalInverse, Nystrom, Probes, neighbours_of, solve
from kproba.solvers.dual import Dual

CG = {"kernel": "laplacian", "width": 3.0, "ridge": 1e-4, "centers": "all", "random_state": 0}


def leverages(product, preconditioner, ridge, n_probes, seed=0, tol=1e-3, local=None):
    """Leverages by right-hand sides of their own."""
    probes = Probes.draw(len(preconditioner.root), n_probes, seed)
    found = solve(product, preconditioner, probes.rhs(preconditioner), ridge, tol)
    return probes.leverages(found.coef, preconditioner, ridge, local)


class Problem:
    """Rows in three dimensions, a kernel matrix, weights that are not one, and two targets."""

    def __init__(self, n=300, kernel="laplacian", width=2.0, seed=0):
        rng = np.random.default_rng(seed)
        self.X = rng.standard_normal((n, 3))
        self.kernel = {"laplacian": Laplacian, "gaussian": Gaussian}[kernel](width=width)
        self.K = self.kernel.gram(self.X)
        self.weight, self.T = rng.integers(1, 4, n) + 0.5 * rng.random(n), rng.random((n, 2))

    def product(self, V):
        return self.K @ V

    def nystrom(self, m=60):
        sample = np.random.default_rng(1).choice(len(self.K), m, replace=False)
        return Nystrom.of(self.K[:, sample].copy(), sample, self.weight)

    def exact(self, ridge):
        return np.linalg.solve(self.K + ridge * np.diag(1.0 / self.weight), self.T)

    def exact_leverages(self, ridge):
        """The dense path's own, which are those of one unit of weight."""
        return next(Dual(self.K, self.weight, self.T * self.weight[:, None]).path([ridge])).leverage

    def local(self, ridge, p=20):
        near = neighbours_of(self.X, p)
        return LocalInverse.of(lambda rows: self.kernel.gram(self.X[rows]), near, ridge, self.weight)


def preconditioner_matrix(nystrom, ridge):
    return nystrom.precondition(np.eye(len(nystrom.root)), ridge)


@pytest.mark.parametrize("kernel", ["laplacian", "gaussian"])
@pytest.mark.parametrize("ridge", [1e-2, 1.0])
def test_solution_of_weighted_rows(kernel, ridge):
    problem = Problem(kernel=kernel)
    found = solve(problem.product, problem.nystrom(), problem.T, ridge, tol=1e-12)
    exact = problem.exact(ridge)
    assert found.converged and (found.residual <= 1e-12).all()
    assert np.abs(found.coef - exact).max() <= 1e-8 * np.abs(exact).max()


def test_solution_is_that_of_the_dual_path():
    problem = Problem()
    dense = next(Dual(problem.K, problem.weight, problem.T * problem.weight[:, None]).path([0.3]))
    found = solve(problem.product, problem.nystrom(), problem.T, 0.3, tol=1e-12)
    assert np.allclose(found.coef, dense.coef(), rtol=0, atol=1e-9)
    assert np.allclose(problem.T - 0.3 * found.coef / problem.weight[:, None], dense.fitted, rtol=0, atol=1e-9)


def test_residual_is_the_true_one():
    problem = Problem()
    found = solve(problem.product, problem.nystrom(), problem.T, 0.1, tol=1e-5)
    root = np.sqrt(problem.weight)[:, None]
    left = root * (problem.T - problem.K @ found.coef - 0.1 * found.coef / root**2)
    expected = np.linalg.norm(left, axis=0) / np.linalg.norm(root * problem.T, axis=0)
    assert np.allclose(found.residual, expected, rtol=1e-6)


def test_preconditioner_is_symmetric_positive_definite_and_helps():
    problem, ridge = Problem(kernel="gaussian", width=1.0), 1e-3
    nystrom = problem.nystrom()
    P = preconditioner_matrix(nystrom, ridge)
    assert np.abs(P - P.T).max() < 1e-12
    assert np.linalg.eigvalsh(P)[0] > 0
    assert np.allclose(np.diag(P), nystrom.precondition_diagonal(ridge), atol=1e-12)
    M = np.sqrt(problem.weight)[:, None] * problem.K * np.sqrt(problem.weight) + ridge * np.eye(len(P))
    plain, turned = np.linalg.eigvalsh(M), np.linalg.eigvals(P @ M).real
    assert turned.max() / turned.min() < 0.05 * plain[-1] / plain[0]


def test_preconditioner_spans_the_nystrom_approximation():
    problem = Problem()
    nystrom = problem.nystrom(50)
    sample, root = np.random.default_rng(1).choice(300, 50, replace=False), np.sqrt(problem.weight)
    cross = root[:, None] * problem.K[:, sample]
    approximation = cross @ np.linalg.solve(problem.K[np.ix_(sample, sample)], cross.T)
    assert np.allclose((nystrom.vectors * nystrom.values) @ nystrom.vectors.T, approximation, atol=1e-9)
    assert np.allclose(nystrom.vectors.T @ nystrom.vectors, np.eye(50), atol=1e-9)
    assert (np.diff(nystrom.values) <= 0).all()


def test_one_factorisation_serves_all_ridges_and_a_near_start_saves_products():
    problem = Problem()
    nystrom = problem.nystrom()
    kept = nystrom.vectors.copy()
    first = solve(problem.product, nystrom, problem.T, 0.10, tol=1e-8)
    cold = solve(problem.product, nystrom, problem.T, 0.09, tol=1e-8)
    warm = solve(problem.product, nystrom, problem.T, 0.09, tol=1e-8, start=first.coef)
    assert warm.n_iter < cold.n_iter
    assert np.allclose(warm.coef, problem.exact(0.09), atol=1e-6) and np.allclose(cold.coef, warm.coef, atol=1e-6)
    assert solve(problem.product, nystrom, problem.T, 0.09, tol=1e-7, start=warm.coef).n_iter == 0
    assert np.array_equal(kept, nystrom.vectors)


def test_columns_do_not_meet_each_other():
    problem = Problem()
    nystrom = problem.nystrom()
    both = solve(problem.product, nystrom, problem.T[:, [0, 0, 1]], 0.1, tol=1e-9).coef
    alone = solve(problem.product, nystrom, problem.T[:, :1], 0.1, tol=1e-9).coef
    assert np.allclose(both[:, 0], both[:, 1], rtol=1e-12, atol=1e-13)
    assert np.allclose(both[:, :1], alone, rtol=0, atol=1e-7)


def test_columns_leave_when_they_have_met_their_own_tolerance():
    problem, widths = Problem(), []

    def product(V):
        widths.append(V.shape[1])
        return problem.K @ V

    found = solve(product, problem.nystrom(), problem.T, 0.01, tol=np.array([1e-2, 1e-10]))
    assert found.converged and found.residual[1] <= 1e-10 < found.residual[0] <= 1e-2
    assert widths[0] == 2 and 1 in widths[:-1]


def test_zero_columns_need_nothing():
    problem = Problem()
    found = solve(problem.product, problem.nystrom(), np.zeros((300, 2)), 0.1)
    assert found.n_iter == 0 and found.converged and not found.coef.any()


def test_not_converged_says_so():
    problem = Problem()
    with pytest.warns(ConvergenceWarning, match="after 3 products with 2 of 2 columns"):
        found = solve(problem.product, problem.nystrom(20), problem.T, 1e-4, tol=1e-10, max_iter=3)
    assert not found.converged and found.n_iter == 3 and (found.residual > 1e-10).all()


def test_float32_products():
    problem = Problem()
    K = problem.K.astype(np.float32)
    found = solve(lambda V: K @ V.astype(np.float32), problem.nystrom(), problem.T, 0.1, tol=1e-5)
    assert found.converged and found.coef.dtype == np.float64
    assert np.abs(found.coef - problem.exact(0.1)).max() < 1e-3 * np.abs(found.coef).max()
    with pytest.warns(ConvergenceWarning, match="float32"):
        found = solve(lambda V: K @ V.astype(np.float32), problem.nystrom(), problem.T, 0.1, tol=1e-14)
    assert not found.converged and found.n_iter < 500  # it stops where the precision ends, not at max_iter
    assert (found.residual < 1e-5).all()


def test_all_rows_sampled_is_exact_at_once():
    problem = Problem(n=120)
    nystrom = Nystrom.of(problem.K.copy(), np.arange(120), problem.weight)
    found = solve(problem.product, nystrom, problem.T, 1e-2, tol=1e-8)
    assert found.converged and found.n_iter <= 2
    assert np.allclose(found.coef, problem.exact(1e-2), rtol=1e-6, atol=1e-6)


def test_rows_that_nearly_repeat():
    problem = Problem(kernel="gaussian", n=200)
    problem.X[100:] = problem.X[:100] + 1e-9 * np.random.default_rng(2).standard_normal((100, 3))
    problem.K = problem.kernel.gram(problem.X)
    sample = np.r_[np.arange(30), np.arange(100, 130)]
    nystrom = Nystrom.of(problem.K[:, sample].copy(), sample, problem.weight)
    assert np.isfinite(nystrom.vectors).all() and nystrom.values[-1] > 0
    assert np.linalg.eigvalsh(preconditioner_matrix(nystrom, 1e-3))[0] > 0
    found = solve(problem.product, nystrom, problem.T, 1e-3, tol=1e-10)
    fitted = problem.K @ found.coef
    assert found.converged and np.allclose(fitted, problem.K @ problem.exact(1e-3), atol=1e-7)


def test_neighbours_leave_the_row_out():
    X = np.random.default_rng(0).standard_normal((50, 2))
    near = neighbours_of(X, 5)
    assert near.shape == (50, 5) and not (near == np.arange(50)[:, None]).any()
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    assert np.array_equal(near[7], np.argsort(distance[7])[1:6])
    assert neighbours_of(X, 100).shape == (50, 49)


def test_local_inverse_of_all_rows_is_the_inverse():
    problem, ridge = Problem(n=40), 0.1
    root = np.sqrt(problem.weight)
    B = np.linalg.inv(root[:, None] * problem.K * root + ridge * np.eye(40))
    local = problem.local(ridge, p=39)
    assert np.allclose(local.diagonal, np.diag(B)) and np.allclose(local.times(np.eye(40)), B)
    assert (problem.local(ridge, p=5).diagonal <= np.diag(B)).all()


@pytest.mark.parametrize("kernel, width", [("laplacian", 1.0), ("gaussian", 0.5)])
@pytest.mark.parametrize("ridge", [1e-2, 1.0])
def test_leverages_within_their_standard_errors(kernel, width, ridge):
    problem = Problem(n=600, kernel=kernel, width=width)
    exact, nystrom = problem.exact_leverages(ridge), problem.nystrom(100)
    plain = leverages(problem.product, nystrom, ridge, n_probes=64)
    helped = leverages(problem.product, nystrom, ridge, n_probes=64, local=problem.local(ridge))
    for found in (plain, helped):
        off = np.abs(found.estimate - exact) / found.standard_error
        assert np.sqrt(np.mean(np.minimum(off, 5.0) ** 2)) < 1.3
        assert (found.estimate >= 0).all() and (found.estimate * problem.weight < 1).all()
    assert np.square(helped.standard_error).mean() < 0.5 * np.square(plain.standard_error).mean()


def test_leverages_beside_the_targets_are_those_alone():
    problem, ridge = Problem(), 0.1
    nystrom, probes = problem.nystrom(), Probes.draw(300, 16, seed=3)
    both = solve(problem.product, nystrom, np.column_stack([problem.T, probes.rhs(nystrom)]), ridge, tol=1e-9)
    beside = probes.leverages(both.coef[:, 2:], nystrom, ridge)
    alone = leverages(problem.product, nystrom, ridge, n_probes=16, seed=3, tol=1e-9)
    assert np.allclose(beside.estimate, alone.estimate, atol=1e-7)
    assert np.allclose(both.coef[:, :2], problem.exact(ridge), atol=1e-6)


def test_leverages_near_one_stay_below_it():
    problem = Problem(n=200, width=0.1)
    found = leverages(problem.product, problem.nystrom(), 1e-8, n_probes=8, local=problem.local(1e-8))
    assert (found.estimate * problem.weight < 1.0).all() and (found.estimate * problem.weight > 0.99).all()


class TestInLSPC:
    """The same model as by the dense dual form, up to its tolerance."""

    def rows(self):
        random = np.random.default_rng(0)
        X = random.standard_normal((1500, 4))
        X = np.vstack([X, X[:200]])  # copies: weights that differ
        return X, (np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * random.standard_normal(1700) > 0).astype(int)

    def test_probabilities(self):
        X, y = self.rows()
        dense, found = (LSPC(solver=solver, **CG).fit(X, y) for solver in ("auto", "cg"))
        np.testing.assert_allclose(found.predict_proba(X), dense.predict_proba(X), atol=0.01)
        np.testing.assert_allclose(found.coef_, dense.coef_, atol=2e-3 * np.abs(dense.coef_).max())
        loss = [log_loss(y, model.loo_proba_) for model in (dense, found)]
        assert abs(loss[0] - loss[1]) < 0.01

    def test_recomputed_products_are_the_kept_ones(self, monkeypatch):
        X, y = self.rows()
        kept = LSPC(solver="cg", **CG).fit(X, y)
        monkeypatch.setattr(iterative_dual, "KEEP_BYTES", 0)
        again = LSPC(solver="cg", **CG).fit(X, y)
        np.testing.assert_allclose(again.coef_, kept.coef_, atol=1e-4 * np.abs(kept.coef_).max())

    def test_auto_takes_it_for_many_centers(self, monkeypatch):
        X, y = self.rows()
        monkeypatch.setattr(least_squares, "PACKED_CENTERS", 500)
        found = LSPC(**CG).fit(X, y)
        given = LSPC(solver="cg", **CG).fit(X, y)
        np.testing.assert_array_equal(found.coef_, given.coef_)

    def test_sparse_rows_and_seed(self):
        X, y = self.rows()
        X = np.where(np.abs(X) < 0.5, 0.0, X)
        options = {**CG, "scaling": None}
        dense, thin = (LSPC(solver="cg", **options).fit(form(X), y) for form in (np.asarray, sparse.csr_array))
        proba = thin.predict_proba(sparse.csr_array(X))
        np.testing.assert_allclose(proba, dense.predict_proba(X), atol=1e-3)
        other = LSPC(solver="cg", **{**options, "random_state": 1}).fit(X, y)
        assert not np.array_equal(other.coef_, dense.coef_)

    def test_searched(self, monkeypatch):
        X, y = self.rows()
        monkeypatch.setattr(least_squares, "DENSE_CENTERS", 600)  # the ridge is chosen on so many
        monkeypatch.setattr(least_squares, "PACKED_CENTERS", 1000)
        model = LSPC(centers="all", random_state=0).fit(X[:1400], y[:1400])
        assert log_loss(y[1400:], model.predict_proba(X[1400:])) < 0.45

    def test_progress_of_the_iterations(self, capsys):
        pytest.importorskip("tqdm")
        X, y = self.rows()
        LSPC(solver="cg", verbose=1, **CG).fit(X[:300], y[:300])
        assert "times the tolerance" in capsys.readouterr().err

    def test_refused_elsewhere(self):
        X, y = self.rows()
        for options in ({"centers": 50}, {"penalty": "parameters"}, {"kernel": "precomputed"}):
            with pytest.raises(ValueError, match="solver='cg' needs centers='all', penalty='rkhs'"):
                LSPC(**{"solver": "cg", "centers": "all", **options}).fit(X, y)
