"""Kernel matrix and factor in one square, against the dense float64 dual form."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import log_loss

from kproba import LSPC
from kproba.exceptions import ConditionWarning
from kproba.kernels import Gaussian, Laplacian
from kproba.problems import least_squares
from kproba.solvers import packed_dual
from kproba.solvers.dual import Dual
from kproba.solvers.packed_dual import PackedDual, Square
from oracles import laplacian, loo_by_refitting


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Several tiles, the last one not whole, and several blocks of kernel values."""
    monkeypatch.setattr(packed_dual, "TILE", 64)
    monkeypatch.setattr(packed_dual, "BLOCK_BYTES", 70_000)


class Problem:
    """Rows in three dimensions, weights that are not one, and two targets."""

    def __init__(self, kernel, n=330, seed=0):
        rng = np.random.default_rng(seed)
        self.kernel, self.X = kernel, rng.standard_normal((n, 3))
        self.weight = rng.integers(1, 4, n) + 0.5 * rng.random(n)
        self.sums = self.weight[:, None] * rng.random((n, 2))

    def packed(self):
        return PackedDual(self.X, self.kernel, self.kernel.gram, self.weight, self.sums)

    def dense(self, ridge):
        return next(Dual(self.kernel.gram(self.X), self.weight, self.sums).path([ridge]))

    def square(self, dtype):
        return Square.of(self.X, self.kernel, self.kernel.gram, np.sqrt(self.weight), dtype)

    def M(self):
        root = np.sqrt(self.weight)
        return root[:, None] * self.kernel.gram(self.X) * root


KERNELS = (Laplacian(width=2.0), Gaussian(width=1.0), Gaussian(width=5.0))


def away(found, exact, weight):
    """Largest errors: of 1 − leverage in shares, of fitted values, of coefficients in shares of the largest."""
    inverse = (1.0 - found.leverage * weight) / (1.0 - exact.leverage * weight) - 1.0
    coef = (found.coef() - exact.coef()) / np.abs(exact.coef()).max()
    return [float(np.abs(error).max()) for error in (inverse, found.fitted - exact.fitted, coef)]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("ridge", [10.0, 1.0, 0.1, 1e-2, 1e-3])
def test_solution_is_that_of_the_dense_dual(kernel, ridge):
    problem = Problem(kernel)
    packed = problem.packed()
    (found,) = packed.path([ridge])
    single = packed._square.dtype == np.float32
    assert max(away(found, problem.dense(ridge), problem.weight)) < (1e-3 if single else 1e-7)


def test_one_square_serves_several_ridges():
    problem = Problem(KERNELS[0])
    for ridge, found in zip([1.0, 0.1, 3.0], problem.packed().path([1.0, 0.1, 3.0])):
        assert max(away(found, problem.dense(ridge), problem.weight)) < 1e-4


def test_precision_follows_the_ridge():
    problem = Problem(Gaussian(width=2.0))
    packed, largest = problem.packed(), np.linalg.eigvalsh(problem.M())[-1]
    limit = np.finfo(np.float32).eps * largest / packed_dual.SINGLE_SHARE
    next(packed.path([1.2 * limit]))
    assert packed._square.dtype == np.float32
    next(packed.path([0.8 * limit]))
    assert packed._square.dtype == np.float64


def test_a_factor_that_fails_in_single_precision_is_taken_in_double(monkeypatch):
    monkeypatch.setattr(packed_dual, "SINGLE_SHARE", np.inf)
    problem = Problem(KERNELS[2])
    packed = problem.packed()
    (found,) = packed.path([1e-6])
    assert packed._square.dtype == np.float64
    assert max(away(found, problem.dense(1e-6), problem.weight)) < 1e-4


def test_a_ridge_below_rounding_is_raised_with_a_warning():
    problem = Problem(KERNELS[2])
    with pytest.warns(ConditionWarning, match="singular to working precision"):
        (found,) = problem.packed().path([1e-16])
    assert np.isfinite(found.fitted).all() and (found.leverage * problem.weight <= 1.0).all()


def test_the_square_holds_the_matrix_below_and_keeps_it():
    problem = Problem(KERNELS[0])
    square, M = problem.square(np.float64), problem.M()
    assert np.allclose(np.tril(square.packed, -1), np.tril(M, -1), rtol=1e-12)
    assert square.factor(0.5)
    R = np.triu(square.packed)
    assert np.allclose(R.T @ R, M + 0.5 * np.eye(len(M)))
    assert np.allclose(square.inverse_diagonal(), np.diag(np.linalg.inv(M + 0.5 * np.eye(len(M)))))
    assert np.allclose(np.tril(square.packed, -1), np.tril(M, -1), rtol=1e-12)
    V = np.random.default_rng(0).standard_normal((len(M), 3))
    assert np.allclose(square.times(V), M @ V)


def shifted(X, far):
    """The same points, or some of them, far from the origin."""
    X = X.copy()
    X[slice(None) if far == "all" else slice(-3, None)] += {"none": 0.0, "all": 3e4, "three": 3e4}[far]
    return X


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("far", ["none", "all", "three"])
def test_kernel_values_are_single_only_where_no_digits_are_lost(far, form):
    problem = Problem(Gaussian(width=2.0), n=900)
    problem.X = form(shifted(problem.X, far))
    assert packed_dual.loses_no_digits(problem.kernel, problem.X, np.float32) == (far == "none")
    assert packed_dual.loses_no_digits(problem.kernel, problem.X, np.float64)
    packed = problem.packed()
    (found,) = packed.path([1.0])
    assert packed._square.dtype == np.float32
    assert max(away(found, problem.dense(1.0), problem.weight)) < 1e-4


@pytest.mark.parametrize("size", [1e-60, 1e-30, 1e30, 1e60])
@pytest.mark.parametrize("kernel", [Gaussian, Laplacian])
def test_points_beyond_float32_raise_no_warnings(kernel, size):
    problem, other = Problem(kernel(width=2.0)), Problem(kernel(width=2.0 * size))
    other.X = size * problem.X
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, expected = (next(each.packed().path([1.0])).fitted for each in (other, problem))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_callable_without_float32_is_taken_as_it_is():
    problem = Problem(Gaussian(width=2.0))
    as_float64 = lambda X, Z: problem.kernel(X.astype(np.float64), Z.astype(np.float64))  # noqa: E731
    square = Square.of(problem.X, as_float64, problem.kernel.gram, np.ones(330), np.float32)
    assert square.packed.dtype == np.float32
    assert np.tril(square.packed, -1) == pytest.approx(np.tril(problem.kernel.gram(problem.X), -1), abs=1e-6)


@pytest.mark.parametrize("weight", ["ones", "copies"])
def test_threads_fill_the_same_square(weight):
    problem = Problem(KERNELS[0])
    root = np.ones(len(problem.X)) if weight == "ones" else np.sqrt(problem.weight)
    one, two = (
        Square.of(problem.X, problem.kernel, problem.kernel.gram, root, np.float32, workers) for workers in (1, 3)
    )
    assert (np.tril(one.packed) == np.tril(two.packed)).all() and (one.diagonal == two.diagonal).all()


def test_no_second_square_is_made(monkeypatch):
    monkeypatch.setattr(packed_dual, "TILE", 128)
    problem = Problem(KERNELS[0], n=1500)
    tracemalloc.start()
    next(problem.packed().path([1.0]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 4 * 1500**2


GIVEN = {"kernel": "laplacian", "width": 3.0, "ridge": 1e-4, "centers": "all", "random_state": 0}


class TestInLSPC:
    """The same model as by the dense dual form."""

    def rows(self, n=700):
        random = np.random.default_rng(0)
        X = random.standard_normal((n, 4))
        X = np.vstack([X, X[:100]])  # copies: weights that differ
        return X, (np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * random.standard_normal(len(X)) > 0).astype(int)

    def both(self, monkeypatch, X, y, **more):
        dense = LSPC(**{**GIVEN, **more}).fit(X, y)
        monkeypatch.setattr(least_squares, "DENSE_CENTERS", 300)
        return dense, LSPC(**{**GIVEN, **more}).fit(X, y)

    def test_probabilities_and_leave_one_out(self, monkeypatch):
        X, y = self.rows()
        dense, packed = self.both(monkeypatch, X, y)
        np.testing.assert_allclose(packed.predict_proba(X), dense.predict_proba(X), atol=1e-4)
        np.testing.assert_allclose(packed.loo_scores_, dense.loo_scores_, atol=1e-4)

    def test_leave_one_out_is_that_of_refitting(self, monkeypatch):
        X, y = self.rows(60)
        monkeypatch.setattr(least_squares, "DENSE_CENTERS", 30)
        model = LSPC(**{**GIVEN, "ridge": 1e-2, "scaling": None}).fit(X[:60], y[:60])
        K = laplacian(X[:60], X[:60], 3.0)
        expected = loo_by_refitting(K, np.eye(2)[y[:60]], np.ones(60), K, 1e-2)
        np.testing.assert_allclose(model.loo_scores_, expected, atol=1e-4)

    def test_sparse_rows(self, monkeypatch):
        X, y = self.rows()
        X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
        dense, packed = self.both(monkeypatch, X, y, scaling=None)
        np.testing.assert_allclose(packed.predict_proba(X), dense.predict_proba(X), atol=1e-4)

    def test_ridge_from_a_sample_of_the_rows(self, monkeypatch):
        X, y = self.rows(1200)
        monkeypatch.setattr(least_squares, "RIDGE_CENTERS", 300)
        dense, packed = self.both(monkeypatch, X[:1000], y[:1000], ridge="auto", width="auto", kernel="laplacian")
        tried = packed.search_results_
        assert set(tried["rows"][tried["stage"] == "ridge"]) == {300}
        losses = [log_loss(y[1000:], model.predict_proba(X[1000:])) for model in (dense, packed)]
        assert losses[1] < 1.03 * losses[0]

    def test_given_ridges_are_compared_on_all_rows(self, monkeypatch):
        X, y = self.rows()
        dense, packed = self.both(monkeypatch, X, y, ridge=[1e-5, 1e-3, 1e-1])
        assert packed.ridge_ == dense.ridge_
        np.testing.assert_allclose(packed.predict_proba(X), dense.predict_proba(X), atol=1e-3)

    def test_a_kernel_that_may_be_indefinite_is_checked(self, monkeypatch):
        X, y = self.rows(400)
        monkeypatch.setattr(least_squares, "DENSE_CENTERS", 100)
        with warnings.catch_warnings(), pytest.raises(ValueError, match="not positive definite"):
            warnings.simplefilter("ignore")
            LSPC(kernel=lambda A, B: -(A @ B.T), centers="all", ridge=1e-2, random_state=0).fit(X, y)
