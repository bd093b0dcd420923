"""Kernels against naive double loops, scikit-learn, and finite differences."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process.kernels import Matern as GPMatern
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

import oracles
from kproba import LSPC, Gaussian, Kernel, Laplacian, Linear, Matern, Polynomial
from kproba.kernels import Additive, FromCallable, Learnt, Precomputed, as_kernels, base
from kproba.problems import local

SIGMA = 1.3
RADIAL = [Gaussian(SIGMA), Laplacian(SIGMA), *(Matern(SIGMA, nu=nu) for nu in (0.5, 1.5, 2.5))]
DOT = [Linear(), Polynomial(SIGMA), Polynomial(SIGMA, degree=2, coef0=0.5)]
KERNELS = RADIAL + DOT


def label(kernel):
    return "-".join(str(getattr(kernel, part)) for part in ("name", "nu", "degree") if hasattr(kernel, part))


every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=label)
every_radial = pytest.mark.parametrize("kernel", RADIAL, ids=label)


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(17, 4)), rng.normal(size=(9, 4))


def naive_value(kernel, x, z):
    """k(x, z) as the formulas of the docstrings say it, one coordinate at a time."""
    l1 = math.fsum(abs(a - b) for a, b in zip(x, z))
    l2 = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(x, z)))
    product = math.fsum(a * b for a, b in zip(x, z))
    if isinstance(kernel, Gaussian):
        return math.exp(-(l2**2) / (2 * kernel.width**2))
    if isinstance(kernel, Laplacian):
        return math.exp(-l1 / kernel.width)
    if isinstance(kernel, Linear):
        return product
    if isinstance(kernel, Polynomial):
        return (product / kernel.width**2 + kernel.coef0) ** kernel.degree
    r = math.sqrt(2 * kernel.nu) * l2 / kernel.width
    return {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r * r / 3}[kernel.nu] * math.exp(-r)


def naive(kernel, X, Z):
    return np.array([[naive_value(kernel, x, z) for z in Z.tolist()] for x in X.tolist()])


def sklearn_value(kernel, X, Z):
    if isinstance(kernel, Gaussian):
        return rbf_kernel(X, Z, gamma=0.5 / kernel.width**2)
    if isinstance(kernel, Laplacian):
        return laplacian_kernel(X, Z, gamma=1 / kernel.width)
    if isinstance(kernel, Matern):
        return GPMatern(length_scale=kernel.width, nu=kernel.nu)(X, Z)
    if isinstance(kernel, Polynomial):
        return polynomial_kernel(X, Z, degree=kernel.degree, gamma=1 / kernel.width**2, coef0=kernel.coef0)
    return linear_kernel(X, Z)


@every_kernel
def test_equals_a_double_loop(kernel, points):
    X, Z = points
    np.testing.assert_allclose(kernel(X, Z), naive(kernel, X, Z), rtol=1e-12, atol=1e-14)


@every_kernel
def test_equals_scikit_learn(kernel, points):
    X, Z = points
    np.testing.assert_allclose(kernel(X, Z), sklearn_value(kernel, X, Z), rtol=1e-12, atol=1e-14)


@every_kernel
def test_evaluator_equals_call(kernel, points):
    X, Z = points
    np.testing.assert_array_equal(kernel.evaluator(Z)(X), kernel(X, Z))


@every_kernel
def test_inputs_are_left_alone(kernel, points):
    X, Z = (part.copy() for part in points)
    X.flags.writeable = Z.flags.writeable = False
    kernel(X, Z)
    kernel.gram(Z)
    np.testing.assert_array_equal(X, points[0])
    np.testing.assert_array_equal(Z, points[1])


@every_kernel
def test_float32_in_float32_out(kernel, points):
    X, Z = (part.astype(np.float32) for part in points)
    features = kernel(X, Z)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, naive(kernel, X, Z), rtol=2e-5, atol=2e-5)


@every_kernel
def test_fortran_order(kernel, points):
    X, Z = points
    np.testing.assert_allclose(kernel(np.asfortranarray(X), np.asfortranarray(Z)), kernel(X, Z), rtol=1e-12, atol=1e-14)


@every_kernel
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("which", ["both", "rows", "centers"])
def test_sparse_equals_dense(kernel, container, which, points):
    X, Z = (np.where(np.abs(part) > 0.7, part, 0.0) for part in points)
    given_X = X if which == "centers" else container(X)
    given_Z = Z if which == "rows" else container(Z)
    features = kernel(given_X, given_Z)
    assert isinstance(features, np.ndarray)
    np.testing.assert_allclose(features, naive(kernel, X, Z), rtol=1e-12, atol=1e-13)


@every_kernel
def test_sparse_float32(kernel, points):
    X, Z = (np.where(np.abs(part) > 0.7, part, 0.0).astype(np.float32) for part in points)
    features = kernel(sparse.csr_array(X), sparse.csr_array(Z))
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, naive(kernel, X, Z), rtol=2e-5, atol=2e-5)


class TestGramInBlocks:
    """Half of a kernel matrix is computed, in blocks of rows, and the other half is its mirror image."""

    @settings(max_examples=30, deadline=None)
    @given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 3), st.integers(0, 10_000))
    def test_equals_the_naive_kernel_of_ties_codes_and_constants(self, n, block, workers, seed):
        rng = np.random.default_rng(seed)
        Z = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n), rng.integers(0, 2, n), np.ones(n)]).astype(
            float
        )
        Z[rng.integers(0, n, n // 2)] = Z[0]
        weights, widths, mixture = (1.0, 0.5, 2.0, 1.0), (1.0, 2.0, 0.7), (0.4, 0.3, 0.2, 0.1)
        learnt = Learnt(weights, widths, mixture, categorical=(1,))
        for kernel in (Gaussian(width=0.8), Laplacian(width=0.8, categorical=(1,)), Additive(width=1.3), learnt):
            with mock.patch.object(base, "GRAM_ROWS", block):
                gram = kernel.gram(Z, workers)
            assert (gram == gram.T).all()
            for i, j in rng.integers(0, n, (5, 2)):
                # the terms of squared distances cancel down to 1e-8
                assert gram[i, j] == pytest.approx(kernel(Z[[i]], Z[[j]])[0, 0], abs=1e-7)

    def test_sparse_rows_and_no_rows(self, monkeypatch):
        monkeypatch.setattr(base, "GRAM_ROWS", 7)
        Z = np.random.default_rng(0).integers(0, 2, (30, 5)).astype(float)
        for kernel in (Gaussian(width=1.0), Laplacian(width=1.0)):
            assert kernel.gram(sparse.csr_array(Z)) == pytest.approx(kernel(Z, Z))
        assert Gaussian(width=1.0).gram(Z[:0]).shape == (0, 0)


@every_radial
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gram_of_radial_kernels_is_symmetric_with_unit_diagonal(kernel, form, dtype):
    Z = np.random.default_rng(1).normal(size=(40, 5)).astype(dtype)
    Z[7] = Z[3]  # a copy
    gram = kernel.gram(form(Z))
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(np.diagonal(gram), 1.0)
    np.testing.assert_allclose(gram, naive(kernel, Z, Z), rtol=1e-5, atol=1e-3 if dtype == np.float32 else 1e-7)


@every_kernel
def test_gram_is_exactly_symmetric(kernel, points):
    gram = kernel.gram(points[0])
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(gram, naive(kernel, points[0], points[0]), rtol=1e-12, atol=1e-7)


@every_kernel
@pytest.mark.parametrize("workers", [2, 3])
def test_workers_do_not_change_the_result(kernel, workers, monkeypatch):
    monkeypatch.setattr("kproba.threads.TILE_BYTES", 1 << 12)  # many tiles from little data
    rng = np.random.default_rng(2)
    X, Z = rng.normal(size=(203, 3)), rng.normal(size=(31, 3))
    np.testing.assert_array_equal(kernel(X, Z, workers=workers), kernel(X, Z))
    np.testing.assert_array_equal(kernel.gram(X, workers=workers), kernel.gram(X))


@every_kernel
def test_tiles_do_not_change_the_result(kernel, monkeypatch):
    rng = np.random.default_rng(2)
    X, Z = rng.normal(size=(203, 3)), rng.normal(size=(31, 3))
    whole = kernel(X, Z)
    monkeypatch.setattr("kproba.threads.TILE_BYTES", 1 << 10)
    np.testing.assert_allclose(kernel(X, Z), whole, rtol=1e-12, atol=1e-14)


@every_radial
@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_data_far_from_the_origin_keep_precision(kernel, offset, points):
    """The rounding of the coordinates themselves (1e-10) is all that may be lost."""
    X, Z = (part + offset for part in points)
    np.testing.assert_allclose(kernel(X, Z), naive(kernel, X, Z), rtol=0, atol=1e-12)


@every_radial
def test_float32_data_far_from_the_origin(kernel, points):
    X, Z = ((part + 1000).astype(np.float32) for part in points)
    np.testing.assert_allclose(kernel(X, Z), naive(kernel, X, Z), rtol=0, atol=1e-4)


@every_radial
def test_far_points_vanish(kernel, points):
    features = kernel(points[0] + 1e6, points[1])
    np.testing.assert_array_equal(features, 0.0)


@every_kernel
@pytest.mark.parametrize("n, b", [(0, 3), (1, 1), (3, 1)])
def test_small_shapes(kernel, n, b, points):
    assert kernel(points[0][:n], points[1][:b]).shape == (n, b)


@every_radial
def test_sensitivity_equals_finite_differences(kernel, points):
    """Mean over rows of the sum over outputs of squared derivatives, one column at a time."""
    X, Z = points
    coef, h = np.random.default_rng(3).normal(size=(len(Z), 3)), 1e-6
    expected = np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        step = np.zeros(X.shape[1])
        step[j] = h
        slope = (kernel(X + step, Z) @ coef - kernel(X - step, Z) @ coef) / (2 * h)
        expected[j] = np.sum(slope**2) / len(X)
    np.testing.assert_allclose(kernel.sensitivity(X, Z, coef), expected, rtol=1e-6)


@every_radial
def test_sensitivity_at_the_centres_is_finite(kernel, points):
    """Where a kernel has a kink, the pull of the centre itself is left out."""
    Z = points[1]
    coef = np.ones((len(Z), 2))
    sensitivity = kernel.sensitivity(Z, Z, coef)
    assert np.isfinite(sensitivity).all()
    others = np.zeros(Z.shape[1])
    for i in range(len(Z)):
        rest = np.delete(np.arange(len(Z)), i)
        others += kernel.sensitivity(Z[[i]], Z[rest], coef[rest]) / len(Z)
    np.testing.assert_allclose(sensitivity, others, rtol=1e-6)


def test_sensitivity_ignores_a_column_that_does_not_matter():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=30), np.full(30, 2.0)])
    for kernel in RADIAL:
        found = kernel.sensitivity(X, X[:8] + np.array([0.1, 0.0]), rng.normal(size=(8, 1)))
        assert found[0] > 0
        assert found[1] < 1e-20 * found[0]


def test_width_unit_is_the_median_distance_between_distinct_points():
    Z = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    for kernel, unit in [(Gaussian(), 5.0), (Matern(nu=0.5), 5.0), (Matern(nu=2.5), 5.0), (Laplacian(), 7.0)]:
        assert kernel.width_unit(kernel.pairs(Z, Z)) == pytest.approx(unit)


def test_width_unit_of_the_polynomial_makes_products_of_order_one():
    Z = np.array([[2.0, 0.0], [0.0, 2.0]])
    kernel = Polynomial()
    assert kernel.width_unit(kernel.pairs(Z, Z)) == pytest.approx(2.0)


@pytest.mark.parametrize("kernel", [*RADIAL, Polynomial()], ids=label)
def test_width_unit_of_identical_points_is_one(kernel):
    assert kernel.width_unit(kernel.pairs(np.zeros((3, 2)), np.zeros((3, 2)))) == 1.0


@pytest.mark.parametrize("kernel", RADIAL, ids=label)
def test_width_unit_follows_the_scale(kernel, points):
    X = points[0]
    unit = kernel.width_unit(kernel.pairs(X, X))
    assert kernel.width_unit(kernel.pairs(10 * X, 10 * X)) == pytest.approx(10 * unit)


def test_with_width():
    assert Matern(nu=2.5).with_width(3) == Matern(width=3.0, nu=2.5)
    assert Polynomial(degree=4, coef0=2.0).with_width(3) == Polynomial(width=3.0, degree=4, coef0=2.0)
    assert Linear().with_width(3) == Linear()


@every_kernel
def test_pairs_then_of_pairs_is_the_kernel(kernel, points):
    """A search over widths computes the pairs once."""
    X, Z = points
    np.testing.assert_array_equal(kernel.of_pairs(kernel.pairs(X, Z)), kernel(X, Z))


@pytest.mark.parametrize(
    "name, kernels",
    [
        ("auto", [Gaussian(), Laplacian()]),
        ("gaussian", [Gaussian()]),
        ("rbf", [Gaussian()]),
        ("laplacian", [Laplacian()]),
        ("matern12", [Matern(nu=0.5)]),
        ("matern32", [Matern(nu=1.5)]),
        ("matern52", [Matern(nu=2.5)]),
        ("linear", [Linear()]),
        ("polynomial", [Polynomial()]),
        ("poly", [Polynomial()]),
    ],
)
def test_names(name, kernels):
    assert as_kernels(name) == kernels


def test_kernel_objects_and_callables_pass_through():
    kernel = Matern(width=2.0, nu=2.5)
    assert as_kernels(kernel) == [kernel]
    (wrapped,) = as_kernels(linear_kernel)
    assert isinstance(wrapped, FromCallable)
    assert isinstance(as_kernels("precomputed")[0], Precomputed)


@pytest.mark.parametrize("bad, error", [("bogus", ValueError), (7, TypeError), (None, TypeError)])
def test_unknown_kernels_are_refused(bad, error):
    with pytest.raises(error, match="kernel"):
        as_kernels(bad)


def test_matern_of_other_smoothness_is_refused():
    with pytest.raises(ValueError, match=r"nu must be 0\.5, 1\.5 or 2\.5, got 1"):
        Matern(nu=1.0)


class TestPrecomputed:
    K = np.arange(12.0).reshape(3, 4)

    def test_centres_are_columns(self):
        kernel, columns = Precomputed(), np.array([3, 1])
        np.testing.assert_array_equal(kernel(self.K, columns), self.K[:, [3, 1]])
        np.testing.assert_array_equal(kernel.evaluator(columns)(self.K), self.K[:, [3, 1]])

    def test_gram_is_a_symmetric_block_of_the_training_matrix(self):
        square = self.K[:, :3]
        gram = Precomputed(training=square).gram(np.array([0, 2]))
        np.testing.assert_array_equal(gram, [[0.0, 5.0], [5.0, 10.0]])
        with pytest.raises(ValueError, match="during fit"):
            Precomputed().gram(np.array([0]))


class TestFromCallable:
    X, Z = np.ones((3, 2)), np.ones((2, 2))

    def test_values_and_types(self):
        np.testing.assert_array_equal(FromCallable(linear_kernel)(self.X, self.Z), np.full((3, 2), 2.0))
        whole = FromCallable(lambda X, Z: np.ones((len(X), len(Z)), dtype=int))
        assert whole(self.X, self.Z).dtype == np.float64

    @pytest.mark.parametrize(
        "function, message",
        [
            (lambda X, Z: X @ X.T, r"shape \(3, 3\) for 3 rows and 2 centres; it must return shape \(3, 2\)"),
            (lambda X, Z: np.ones(3), r"shape \(3,\) .* must return shape \(3, 2\)"),
            (lambda X, Z: np.full((len(X), len(Z)), np.nan), "NaN or infinity"),
            (lambda X, Z: np.full((len(X), len(Z)), np.inf), "NaN or infinity"),
        ],
        ids=["shape", "1-d", "nan", "inf"],
    )
    def test_what_it_must_not_return(self, function, message):
        with pytest.raises(ValueError, match=f"kernel: the callable returned .*{message}"):
            FromCallable(function)(self.X, self.Z)


def test_a_kernel_of_ones_own_needs_two_methods(points):
    class Cauchy(Kernel):
        name = "cauchy"

        def against(self, Z):
            return Gaussian().against(Z)

        def of_pairs(self, pairs):
            pairs += 1.0
            return np.reciprocal(pairs, out=pairs)

    X, Z = points
    distances = np.square(X[:, None] - Z).sum(axis=2)
    np.testing.assert_allclose(Cauchy()(X, Z), 1 / (1 + distances), rtol=1e-12)
    with pytest.raises(NotImplementedError, match="cauchy kernel has no width"):
        Cauchy().width_unit(distances)


class Fourfold(Gaussian):
    """A radial kernel of one's own, with k(x, x) = 4."""

    def of_pairs(self, pairs):
        pairs = super().of_pairs(pairs)
        pairs *= 4.0
        return pairs


@pytest.mark.parametrize("centers", ["all", "local", 30])
def test_a_radial_kernel_of_ones_own_may_have_any_value_at_zero(centers, monkeypatch):
    monkeypatch.setattr(local, "REGION_ROWS", 40)
    monkeypatch.setattr(local, "SHARED_CENTERS", 20)
    X, X_new = np.random.default_rng(0).normal(size=(2, 150, 2))
    assert Fourfold(width=1.0).gram(X) == pytest.approx(4.0 * oracles.gaussian(X, X, 1.0))
    proba = [
        LSPC(kernel=kernel, ridge=ridge, centers=centers, penalty="rkhs", random_state=0)
        .fit(X, X[:, 0] * X[:, 1] > 0)
        .predict_proba(X_new)
        for kernel, ridge in ((Gaussian(width=1.0), 0.01), (Fourfold(width=1.0), 0.04))
    ]
    assert proba[1] == pytest.approx(proba[0], abs=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d_other", [0, 3])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_manhattan_distances_of_two_valued_columns(dtype, d_other, share):
    """One product instead of a walk through the columns, also for rows with other values and for constant columns."""
    random = np.random.default_rng(0)
    two = random.choice([-0.3, 0.8], size=(30, 20), p=[1 - share, share])
    Z = np.hstack([two, random.standard_normal((30, d_other))]).astype(dtype)
    Z[:, 4] = -0.3
    X = np.vstack([Z[:10], random.standard_normal((15, 20 + d_other))]).astype(dtype)
    expected = np.abs(X[:, None].astype(np.float64) - Z).sum(axis=2)
    found = Laplacian(width=2.0).pairs(X, Z)
    np.testing.assert_allclose(found, expected, atol=1e-12 if dtype == np.float64 else 1e-5)
    assert (np.diag(Laplacian(width=2.0).gram(Z)) == 1.0).all()


def test_sensitivity_to_two_valued_columns():
    random = np.random.default_rng(0)
    X, Z = (random.choice([0.0, 0.7], size=(n, 6), p=[0.8, 0.2]) for n in (12, 9))
    X[:, 1], Z[:, 1] = 0.0, 0.0  # a constant
    X[:, 2], Z[:, 2] = 0.7, 0.0  # points of one value, rows of the other
    Z[:, 3] = np.where(random.random(9) < 0.8, 0.7, 0.0)
    X[:, 4] = random.standard_normal(12)
    coef = random.standard_normal((9, 2))
    kernel = Laplacian(width=1.5)
    features = kernel(X, Z) / 1.5
    expected = [np.sum(((features * np.sign(X[:, [j]] - Z[:, j])) @ coef) ** 2) / 12 for j in range(6)]
    np.testing.assert_allclose(kernel.sensitivity(X, Z, coef), expected, atol=1e-12)
