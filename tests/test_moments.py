"""Moments by themselves: sums of a few rows against the numbers worked out."""

import numpy as np
import pytest

from kproba.basis import basis
from kproba.basis.basis import MomentsOf
from kproba.basis.moments import Moments
from kproba.data.encoding import Encoding
from kproba.data.sources import Chunk
from kproba.kernels import Gaussian, Laplacian
from kproba.kernels.given import FromCallable

PHI = np.array([[1.0, 2.0, 0.5], [3.0, -1.0, 4.0], [0.0, 2.0, 1.0], [2.0, 5.0, -3.0]])
WEIGHT = np.array([1.0, 0.5, 3.0, 0.25])
TARGETS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.25], [2.0, 1.0]])


def assert_are_sums(moments, phi, targets, weight, lower=None):
    H = (phi.T * weight) @ phi
    np.testing.assert_allclose(np.tril(moments.H), np.tril(H) if lower is None else lower, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(moments.h, (phi.T * weight) @ targets, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(moments.totals, weight @ targets, rtol=1e-14)
    assert moments.n == pytest.approx(weight.sum(), rel=1e-14)


@pytest.mark.parametrize("weight", [None, np.ones(4), np.full(4, 2.0), WEIGHT], ids=["none", "ones", "twos", "weights"])
def test_sums_are_weighted(weight):
    given = PHI.copy()
    expected = np.ones(4) if weight is None else weight
    moments = Moments.of(PHI, TARGETS, weight)
    assert_are_sums(moments, PHI, TARGETS, expected)
    np.testing.assert_array_equal(PHI, given)
    np.testing.assert_allclose(moments.symmetric(), (PHI.T * expected) @ PHI, rtol=1e-14)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["none", "weights"])
def test_a_second_batch_is_added(weight):
    first, rest = slice(0, 1), slice(1, 4)
    moments = Moments.zeros(3, 2)
    for some in (first, rest):
        assert moments.add(PHI[some], TARGETS[some], None if weight is None else weight[some]) is moments
    assert_are_sums(moments, PHI, TARGETS, np.ones(4) if weight is None else weight)


def test_blocks_leave_the_rest_at_zero():
    weight, moments = WEIGHT, Moments.zeros(3, 2)
    for some in (slice(0, 2), slice(2, 4)):
        moments.add(PHI[some], TARGETS[some], weight[some], [slice(0, 1), slice(1, 3)])
    full = (PHI.T * weight) @ PHI
    lower = np.array([[full[0, 0], 0, 0], [0, full[1, 1], 0], [0, full[2, 1], full[2, 2]]])
    assert_are_sums(moments, PHI, TARGETS, weight, lower)


def test_zeros_are_neutral_and_grow_in_place():
    zeros = Moments.zeros(3, 2)
    assert zeros.H.shape == (3, 3) and zeros.h.shape == (3, 2) and zeros.totals.shape == (2,)
    assert not zeros.H.any() and not zeros.h.any() and not zeros.totals.any() and zeros.n == 0.0
    H = zeros.H
    assert zeros.add(PHI, TARGETS).H is H and H.any()
    assert zeros.to_numpy() is zeros


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["none", "weights"])
def test_no_centres_have_totals_all_the_same(weight):
    moments = Moments.zeros(0, 2).add(np.empty((4, 0)), TARGETS, weight)
    assert_are_sums(moments, np.empty((4, 0)), TARGETS, np.ones(4) if weight is None else weight)
    assert moments.H.shape == (0, 0) and moments.h.shape == (0, 2)


def test_sums_and_differences():
    a, b = Moments.of(PHI[:1], TARGETS[:1]), Moments.of(PHI[1:], TARGETS[1:])
    assert_are_sums(a + b, PHI, TARGETS, np.ones(4))
    assert_are_sums((a + b) - a, PHI[1:], TARGETS[1:], np.ones(3))
    H = a.H
    a += b
    assert_are_sums(a, PHI, TARGETS, np.ones(4))
    assert a.H is H


@pytest.mark.parametrize("scale", [1.0, -1.0, 8.0, 0.25])
def test_what_is_left_of_equal_sums_is_zero(scale):
    """Up to 16 units in the last place of the whole are noise."""
    eps = 2.0**-52
    whole = scale * np.ones((1, 3))
    part = scale * np.array([[1.0, 1.0 - 16 * eps, 1.0 - 16.5 * eps]])
    H, n = np.zeros((1, 1)), 5.0
    rest = Moments(H, whole, whole[0], n) - Moments(H, part, part[0], 3.0)
    np.testing.assert_array_equal(rest.h, scale * np.array([[0.0, 0.0, 16.5 * eps]]))
    np.testing.assert_array_equal(rest.totals, rest.h[0])
    assert rest.n == 2.0
    rest = Moments(whole.T, whole, whole[0], n) - Moments(part.T, part, part[0], 3.0)
    np.testing.assert_array_equal(rest.H[:, 0], rest.h[0])


def test_of_a_tag():
    moments = Moments(np.eye(2), np.array([[1.0, 2.0, 5.0], [0.5, 1.0, 4.0]]), np.array([3.0, 4.0, 9.0]), 9.0)
    of_tag = moments.of_tag(1)
    np.testing.assert_array_equal(of_tag.h, [[3.0, 2.0], [3.0, 1.0]])
    np.testing.assert_array_equal(of_tag.totals, [5.0, 4.0])
    assert of_tag.H is moments.H and of_tag.n == 9.0


def test_symmetric_mirrors_the_lower_triangle():
    moments = Moments(
        np.array([[1.0, 99.0, 99.0], [2.0, 3.0, 99.0], [4.0, 5.0, 6.0]]), np.empty((3, 0)), np.empty(0), 1.0
    )
    np.testing.assert_array_equal(moments.symmetric(), [[1, 2, 4], [2, 3, 5], [4, 5, 6]])
    np.testing.assert_array_equal(moments.symmetric(np.array([0, 2])), [[1, 4], [4, 6]])


@pytest.mark.parametrize("kernel", [Gaussian(width=1.0), Laplacian(width=1.0), FromCallable(lambda X, Z: X @ Z.T)])
@pytest.mark.parametrize("n", [1, 2, 5, 1000])
def test_threads_have_sums_of_their_own(kernel, n, monkeypatch):
    """The same sums on one thread, on more threads than rows, with too many centres for it, and resumed."""
    rng = np.random.default_rng(n)
    X, codes = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    chunks = [Chunk(X[: n // 3], codes[: n // 3], None, 0), Chunk(X[n // 3 :], codes[n // 3 :], None, n // 3)]
    encoding = Encoding(np.arange(3), np.array([1.0, 2.0, 0.5]))
    phi, targets = kernel(X, X[:4]), np.eye(3)[codes]
    for workers, most in ((1, 256), (2, 256), (7, 256), (7, 0)):
        monkeypatch.setattr(basis, "MOST_IN_THREADS", most)
        statistic = MomentsOf(basis.Basis(kernel, X[:4], workers=workers), encoding)
        total = statistic.zero()
        for chunk in chunks:
            total = statistic.resume(statistic.finish(statistic.add(total, chunk)))
        expected = (phi.T * encoding.factors[codes]) @ phi
        np.testing.assert_allclose(np.tril(total.H), np.tril(expected), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(total.h, (phi.T * encoding.factors[codes]) @ targets, rtol=1e-12, atol=1e-12)
        assert total.n == pytest.approx(encoding.factors[codes].sum())
