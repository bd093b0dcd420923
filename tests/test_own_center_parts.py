"""Which centres go with a row, and what is left of the coefficients without them."""

import numpy as np
import pytest

import oracles
from kproba.basis.basis import Basis
from kproba.data.rows import Rows
from kproba.kernels import Gaussian, Precomputed
from kproba.problems import own_centers as module
from kproba.problems.own_centers import _compressed, coefficients_without, drop_held_out_centers, own_centers

X = np.array([[0.0], [1.0], [2.0], [0.0], [1.0], [5.0]])
LABELS = np.array([0, 0, 1, 1, 0, 1])
KERNEL = Gaussian(1.0)


def basis_of(points, owner, kernel=KERNEL):
    return Basis(kernel, np.asarray(points), np.asarray(owner), row_center=np.zeros(3, int))


class TestOwnCenters:
    def test_a_centre_goes_with_the_last_row_that_equals_it(self):
        rows = Rows.of(X, LABELS, np.ones(6), 2)
        # centres 0, 1, 2 of class 0; 5, 0, 2 of class 1. Two rows of class 0 are at 1: one of them keeps the centre
        found = own_centers(rows, basis_of([[0.0], [1.0], [2.0], [5.0], [0.0], [2.0]], [0, 0, 0, 1, 1, 1]))
        assert found.tolist() == [[0], [-1], [5], [4], [-1], [3]]

    @pytest.mark.parametrize(("weight", "goes"), [(0.5, True), (1.0, True), (1.5, True), (3.0, False)])
    def test_one_unit_of_weight_goes(self, weight, goes):
        rows = Rows.of(X[:3], LABELS[:3], np.array([weight, 1.0, 1.0]), 2)
        assert own_centers(rows, basis_of(X[:3], LABELS[:3]))[0, 0] == (0 if goes else -1)

    def test_mass_counts_where_weights_are_corrected(self):
        rows = Rows.of(X[:3], LABELS[:3], np.ones(3), 2)
        parts = (rows.X, rows.labels, rows.weight, 2, rows.number, rows.keys, rows.unit)
        rows = Rows(*parts, mass=np.array([2.0, 1.0, 1.0]))
        assert own_centers(rows, basis_of(X[:3], LABELS[:3])).tolist() == [[-1], [1], [2]]

    @pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
    def test_rounding_of_weights_is_forgiven(self, scale):
        weight = scale * np.array([0.1, 0.2, 0.3])
        rows = Rows.of(np.zeros((3, 1)), np.zeros(3, int), weight, 1)
        rows = Rows(rows.X, rows.labels, weight, 1, rows.number, rows.keys, np.full(3, scale * 0.6 * (1 - 1e-13)))
        assert own_centers(rows, basis_of([[0.0]], [0])).tolist() == [[0]] * 3
        rows = Rows(rows.X, rows.labels, weight, 1, rows.number, rows.keys, np.full(3, scale * 0.6 * (1 - 1e-11)))
        assert own_centers(rows, basis_of([[0.0]], [0])).shape == (3, 0)

    def test_tags_of_a_row_have_a_centre_each(self):
        tags = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, np.nan], [0.0, 0.0]])
        rows = Rows.of(X[[0, 1, 2, 5]], tags, np.ones(4), 2)
        found = own_centers(rows, basis_of([[0.0], [2.0], [5.0], [0.0], [1.0]], [0, 0, -1, 1, 1]))
        assert found.tolist() == [[3, 0], [4, -1], [1, -1], [-1, -1]]

    def test_precomputed_kernels_number_their_rows(self):
        rows = Rows.of(np.zeros((3, 3)), LABELS[[0, 1, 2]], np.ones(3), 2)
        assert own_centers(rows, basis_of([1, 0, 2], [0, 0, 1], Precomputed())).tolist() == [[1], [0], [2]]

    def test_classes_without_centres_or_rows(self):
        rows = Rows.of(X, LABELS, np.ones(6), 2)
        assert own_centers(rows, basis_of([[7.0]], [0])).shape == (6, 0)
        nothing = own_centers(rows, basis_of([[0.0]], [-1]))
        assert nothing.shape == (6, 0) and nothing.dtype.kind == "i"
        assert own_centers(rows, basis_of(np.empty((0, 1)), np.empty(0, int))).shape == (6, 0)
        assert own_centers(rows.take(np.array([0])), basis_of([[0.0], [0.0]], [0, 1])).tolist() == [[0]]

    def test_one_or_two_centres_anywhere_among_the_rows(self):
        rows = Rows.of(X[[0, 1, 2, 5]], np.zeros(4, int), np.ones(4), 1)
        for i in range(4):
            found = own_centers(rows, basis_of(rows.X[[i]], [0]))
            assert found[:, 0].tolist() == [0 if row == i else -1 for row in range(4)]
            j = (i + 1) % 4
            found = own_centers(rows, basis_of(rows.X[[i, j]], [0, 0]))
            assert found[:, 0].tolist() == [{i: 0, j: 1}.get(row, -1) for row in range(4)]

    def test_compressed(self):
        found = _compressed(np.array([[-1, 3, -1], [-1, -1, -1], [0, -1, 7]]))
        assert found.tolist() == [[3, -1], [-1, -1], [7, 0]]
        assert _compressed(np.full((2, 3), -1)).shape == (2, 0)
        assert _compressed(np.array([[0], [-1]])).tolist() == [[0], [-1]]
        assert _compressed(np.empty((0, 2), int)).shape == (0, 0)


def test_centres_whose_rows_are_there():
    rows = Rows.of(X, LABELS, np.ones(6), 2).take(np.array([0, 1, 2]))
    points, owner = [[0.0], [1.0], [2.0], [5.0], [0.0], [2.0], [0.0]], [0, 0, 0, 1, 1, 1, -1]
    kept = drop_held_out_centers(rows, basis_of(points, owner))
    np.testing.assert_array_equal(kept.centers, [[0.0], [1.0], [2.0]])
    assert kept.owner.tolist() == [0, 0, 1] and kept.row_center is None and kept.kernel is KERNEL
    first = Rows.of(X[:3], LABELS[:3], np.ones(3), 2)
    assert drop_held_out_centers(first, basis_of([[9.0]], [0])).n_centers == 0


def by_refitting(phi, targets, weight, unit, penalty, i, gone):
    rest = weight.copy()
    rest[i] -= unit[i]
    kept = np.setdiff1d(np.arange(phi.shape[1]), gone)
    A = ((phi.T * rest) @ phi + penalty)[np.ix_(kept, kept)]
    theta = np.zeros(phi.shape[1])
    theta[kept] = np.linalg.solve(A, ((phi.T * rest) @ targets)[kept])
    return theta


@pytest.mark.parametrize("block_bytes", [1, 400, 32 << 20])
@pytest.mark.parametrize("own", [
    np.full((6, 1), -1), np.array([[0], [1], [-1], [2], [-1], [4]]),
    np.array([[3, 0], [1, -1], [-1, -1], [4, 2], [0, -1], [-1, -1]]), np.empty((6, 0), int),
], ids=["none", "one", "two", "no columns"])  # fmt: skip
def test_coefficients_without_rows_and_centres(own, block_bytes, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    random = np.random.default_rng(0)
    phi, targets = random.random((6, 5)), random.integers(0, 2, 6).astype(float)
    weight, penalty = np.array([1.0, 0.5, 2.0, 1.0, 3.0, 1.0]), 0.3 * np.eye(5) + 0.01
    unit = oracles.one_unit(weight)
    inverse = np.linalg.inv((phi.T * weight) @ phi + penalty)
    theta = inverse @ ((phi.T * weight) @ targets)
    given = [part.copy() for part in (inverse, phi, theta, targets, unit, own)]
    found = coefficients_without(inverse, phi, theta, targets, unit, own)
    for i in range(6):
        gone = own[i][own[i] >= 0]
        expected = by_refitting(phi, targets, weight, unit, penalty, i, gone)
        np.testing.assert_allclose(found[i], expected, rtol=1e-9, atol=1e-11)
        assert (found[i, gone] == 0.0).all()
    for part, before in zip((inverse, phi, theta, targets, unit, own), given):
        np.testing.assert_array_equal(part, before)


def test_a_system_of_one_centre_that_goes():
    found = coefficients_without(
        np.eye(1), np.ones((2, 1)) / 2, np.ones(1), np.ones(2), np.ones(2), np.array([[0, -1]] * 2)
    )
    np.testing.assert_array_equal(found, np.zeros((2, 1)))


def test_a_leverage_of_one_stays_finite():
    phi = np.array([[1.0, 0.0], [0.0, 2.0]])
    inverse = np.linalg.inv(phi.T @ phi)  # no ridge: each row alone holds a coefficient
    found = coefficients_without(inverse, phi, np.ones(2), np.array([1.0, 2.0]), np.ones(2), np.array([[-1], [-1]]))
    np.testing.assert_allclose(found, [[0.0, 1.0], [1.0, 0.0]])
    found = coefficients_without(inverse, phi, np.ones(2), np.array([1.0, 3.0]), np.ones(2), np.array([[-1], [-1]]))
    assert found[1, 1] == pytest.approx(1.0 - 0.5 * (3.0 + 1e12), rel=1e-9)
