"""The shared parts: moments, hashing, sampling, sweeps, scaling."""

import numpy as np
import pytest
from scipy import sparse

from kproba.basis.moments import Moments
from kproba.data.hashing import distinct, ranking, row_keys
from kproba.data.rows import Rows
from kproba.data.sampling import sample_rows
from kproba.data.scaling import fit_scaling
from kproba.data.sweep import sweep
from kproba.threads import row_slices


def rows_of(X, y=None, w=None):
    n = X.shape[0]
    y = np.arange(n) % 2 if y is None else y
    return Rows.of(X, y, np.ones(n) if w is None else w, int(y.max()) + 1)


def test_moments_of_batches_add_up():
    rng = np.random.default_rng(0)
    phi, T, w = rng.random((500, 20)), rng.random((500, 3)), rng.random(500)
    whole = Moments.of(phi, T, w)
    parts = [Moments.of(phi[s], T[s], w[s]) for s in row_slices(500, 1, 77)]
    total = sweep(parts, Moments.zeros(20, 3), lambda total, part: total + part)
    for name in ("H", "h", "n"):
        a, b = np.asarray(getattr(whole, name)), np.asarray(getattr(total, name))
        assert np.abs(a - b).max() <= 1e-12 * np.abs(a).max()
    assert total.H.dtype == np.float64
    assert np.allclose(whole.symmetric(), (phi.T * w) @ phi, rtol=1e-12)


def test_moments_subtract_and_give_class_blocks():
    rng = np.random.default_rng(0)
    phi, T = rng.random((60, 6)), rng.random((60, 2))
    rest = Moments.of(phi, T) - Moments.of(phi[:20], T[:20])
    assert np.allclose(rest.symmetric(), phi[20:].T @ phi[20:])
    own = np.array([1, 4, 5])
    assert np.allclose(rest.symmetric(own), phi[20:, own].T @ phi[20:, own])


def test_keys_are_those_of_the_values():
    X = np.random.default_rng(0).integers(0, 4, (3000, 3)).astype(float)
    keys = row_keys(X)
    assert len(np.unique(keys)) == len(np.unique(X, axis=0)) == 64
    assert np.array_equal(keys, row_keys(sparse.csr_array(X)))
    assert np.array_equal(keys, row_keys(X.astype(np.float32)))
    first, number = distinct(keys)
    assert np.array_equal(X[first][number], X)


def test_many_distinct_integers_do_not_collide():
    X = np.stack(np.meshgrid(np.arange(300.0), np.arange(300.0)), axis=-1).reshape(-1, 2)
    assert len(np.unique(row_keys(X))) == 90_000


def test_samples_depend_on_rows_and_seed_alone():
    X = np.random.default_rng(0).random((200, 3))
    y = np.arange(200) % 3
    again = np.random.default_rng(1).permutation(np.repeat(np.arange(200), 2))
    one = {tuple(x) for x in X[sample_rows(rows_of(X, y), 31, seed=4)]}
    other = {tuple(x) for x in X[again][sample_rows(rows_of(X[again], y[again]), 31, seed=4)]}
    assert one == other and len(one) == 31
    assert one != {tuple(x) for x in X[sample_rows(rows_of(X, y), 31, seed=5)]}
    assert len(np.unique(ranking(row_keys(X), 0))) == 200


def test_samples_reach_every_class():
    y = np.r_[np.zeros(990, int), np.ones(8, int), [2, 2]]
    rows = rows_of(np.random.default_rng(0).random((1000, 2)), y)
    assert np.bincount(y[sample_rows(rows, 20, 0)]).tolist() == [18, 1, 1]
    assert len(sample_rows(rows, 2, 0)) == 2


def test_robust_scaling_keeps_two_valued_columns_and_squashes_outliers():
    rng = np.random.default_rng(0)
    X = np.c_[rng.standard_normal(100), np.r_[np.full(97, 5.0), np.full(3, 9.0)], np.full(100, 3.0)]
    X[0, 0] = 1e6
    Z = fit_scaling("robust", rows_of(X))(X)
    assert set(Z[:, 1]) == {0.0, 1.0}
    assert (Z[:, 2] == 0).all()
    assert abs(Z[0, 0]) <= 3.0
    assert abs(np.median(Z[:, 0])) < 0.1


@pytest.mark.parametrize("mode", ["standard", "robust", "quantile"])
def test_scaling_takes_weights_as_repetitions(mode):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((50, 4)), rng.integers(1, 4, 50)
    again = np.repeat(np.arange(50), w)
    weighted = fit_scaling(mode, rows_of(X, w=w.astype(float)))
    repeated = fit_scaling(mode, rows_of(X[again]))
    assert np.allclose(weighted(X), repeated(X), atol=1e-12)
    assert np.allclose(weighted.inverse(weighted(X)), X)


def test_standard_scaling():
    X = np.random.default_rng(0).random((100, 3)) * [1.0, 1e150, 1e-150]
    Z = fit_scaling("standard", rows_of(X))(X)
    assert np.allclose(Z.mean(axis=0), 0, atol=1e-12) and np.allclose(Z.std(axis=0), 1)
