"""Keys of rows against the same hash in Python's integers."""

from types import SimpleNamespace

import array_api_strict
import numpy as np
import pytest
from scipy import sparse

from kproba.data import hashing
from kproba.data.hashing import (
    are_distinct,
    by_place,
    column_sums,
    column_term,
    distinct,
    equal_rows,
    exact_keys,
    first_in_order,
    keys_of_ranking,
    mix,
    ranking,
    row_keys,
    row_sums,
    stacked,
)
from kproba.data.items import Items

X = np.array([[0.0, -0.0, 0.0], [1.0, -2.5, 0.0], [1e-300, 7.0, -1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def mixed(key):
    """MurmurHash3's finaliser."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        key = ((key ^ (key >> 33)) * factor) % 2**64
    return key ^ (key >> 33)


def multiplier(column):
    return mixed((column + 1) * 0x9E3779B97F4A7C15 % 2**64) | 1


def key_of(row):
    bits = (np.asarray(row, dtype=float) + 0.0).view(np.uint64).tolist()
    return mixed(sum(mixed(b) * multiplier(j) for j, b in enumerate(bits)) % 2**64)


def test_mix_is_murmurs():
    bits = np.array([0, 1, 2**63, 0xDEADBEEF], dtype=np.uint64)
    assert mix(bits).tolist() == [mixed(b) for b in bits.tolist()]
    assert bits.tolist() == [0, 1, 2**63, 0xDEADBEEF]
    assert mix(np.zeros(1, np.uint64)) == 0


@pytest.mark.parametrize("tile", [1, 7, 1 << 15])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_keys_of_rows(tile, dtype, monkeypatch):
    monkeypatch.setattr(hashing, "_TILE", tile)
    values = X.astype(dtype)
    expected = [key_of(row) for row in values]
    assert row_keys(values).tolist() == expected
    assert row_keys(sparse.csr_array(values)).tolist() == expected
    assert row_keys(sparse.csr_array(values).tocsc()).tolist() == expected


def test_keys_of_integers_booleans_and_nothing():
    assert row_keys(np.array([[1, 0], [3, 2]])).tolist() == [key_of([1, 0]), key_of([3, 2])]
    assert row_keys(np.array([[True, False]])).tolist() == [key_of([1, 0])]
    assert row_keys(np.empty((2, 0))).tolist() == [0, 0]
    assert row_keys(np.empty((0, 2))).tolist() == []
    assert row_keys(sparse.csr_array((2, 3))).tolist() == [0, 0]


def test_keys_of_stored_negative_zeros():
    stored = sparse.csr_array((np.array([-0.0, 2.0]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    assert row_keys(stored).tolist() == [0, key_of([0.0, 2.0])]


def test_keys_of_tensors_that_are_not_torchs():
    assert row_keys(array_api_strict.asarray(X)).tolist() == [key_of(row) for row in X]


class Tensor(np.ndarray):
    """An array that is asked what a tensor of PyTorch is asked."""

    def detach(self):
        return self

    def to(self, dtype):
        assert dtype is not None
        return self.astype(dtype)

    def sum(self, dim):
        return np.ndarray.sum(self, axis=dim)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_keys_in_the_signed_integers_of_torch(dtype):

    def get(keys):
        assert keys.shape == (len(X),), "rows stay on the device"
        return np.asarray(keys)

    device = SimpleNamespace(library="torch", put=lambda x: x, get=get, xp=np)
    values = X.astype(dtype)
    found = hashing._tensor_row_keys(device, values.view(Tensor))
    assert found.dtype == np.uint64
    assert found.tolist() == [key_of(row) for row in values]


@pytest.mark.parametrize("keep", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_that_share_a_hash_get_keys_of_their_own(keep, kind, monkeypatch):
    rows = np.array([[1.0, 0.0], [2.0, 3.0], [1.0, -0.0], [4.0, 5.0], [2.0, 3.0], [6.0, 0.0]])
    hashes = np.array([key_of(row) & keep for row in rows], dtype=np.uint64)
    monkeypatch.setattr(hashing, "row_keys", lambda X: hashes)
    before = hashes.copy()
    keys = exact_keys(kind(rows))
    assert keys.dtype == np.uint64
    assert keys[0] == keys[2] and keys[1] == keys[4] and len(set(keys.tolist())) == 4
    assert keys[0] == hashes[0]  # the first of them keeps its hash
    np.testing.assert_array_equal(hashes, before)


def test_a_fresh_key_is_the_hash_and_a_step_that_nobody_has(monkeypatch):
    step = 0x9E3779B97F4A7C15
    hashes = np.array([5, 5, (5 + step) % 2**64, 5, 9], dtype=np.uint64)
    monkeypatch.setattr(hashing, "row_keys", lambda X: hashes)
    keys = exact_keys(np.arange(5.0)[:, None])
    assert keys.tolist() == [5, (5 + 2 * step) % 2**64, (5 + step) % 2**64, (5 + 3 * step) % 2**64, 9]


def test_rows_of_unequal_hash_are_not_compared(monkeypatch):
    monkeypatch.setattr(hashing, "equal_rows", lambda *args: pytest.fail("nothing to compare"))
    assert exact_keys(X[1:]).tolist() == [key_of(row) for row in X[1:]]
    assert exact_keys(X[:1]).tolist() == [0]


def test_no_rows_have_no_keys():
    assert exact_keys(np.empty((0, 2))).tolist() == []


@pytest.mark.parametrize("tile", [1, 5, 1 << 15])
def test_equality_of_rows(tile, monkeypatch):
    monkeypatch.setattr(hashing, "_TILE", tile)
    Z = np.array([[0.0, 0.0, 0.0], [1.0, -2.5, 0.0], [1.0, 2.5, 0.0]])
    i, j = np.array([0, 1, 1, 2, 3]), np.array([0, 1, 2, 1, 0])
    expected = [True, True, False, False, False]
    assert equal_rows(X, i, Z, j).tolist() == expected
    assert equal_rows(sparse.csr_array(X), i, sparse.csr_array(Z), j).tolist() == expected
    none = np.empty(0, dtype=int)
    found = equal_rows(X, none, Z, none)
    assert found.dtype == bool and found.shape == (0,)
    wide = np.zeros((2, 0))
    assert equal_rows(wide, np.array([0]), wide, np.array([1])).tolist() == [True]


def test_differences_do_not_cancel():
    rows = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert equal_rows(rows, np.array([0]), rows, np.array([1])).tolist() == [False]


def test_items_compare_themselves():
    items = Items(["a", "b", "a"])
    assert equal_rows(items, np.array([0, 0]), items, np.array([2, 1])).tolist() == [True, False]
    both = stacked(items, Items(["c"]))
    assert isinstance(both, Items) and len(both) == 4
    np.testing.assert_array_equal(row_keys(items), items.row_keys())


def test_stacking():
    a, b = np.array([[1.0, 0.0]]), np.array([[2.0, 3.0], [0.0, 4.0]])
    np.testing.assert_array_equal(stacked(a, b), [[1, 0], [2, 3], [0, 4]])
    for pair in ((sparse.csr_array(a), b), (a, sparse.csr_array(b)), (sparse.csc_array(a), sparse.csr_array(b))):
        both = stacked(*pair)
        assert both.format == "csr"
        np.testing.assert_array_equal(both.toarray(), [[1, 0], [2, 3], [0, 4]])


def test_keys_by_place():
    keys = np.array([3, 2**60 + 1], dtype=np.uint64)
    expected = [mixed(3) * multiplier(4) % 2**64, mixed(2**60 + 1) * multiplier(0) % 2**64]
    assert by_place(keys, np.array([4, 0])).tolist() == expected


@pytest.mark.parametrize(
    ("keys", "first", "number"),
    [
        ([3, 5, 5, 9], [0, 1, 3], [0, 1, 1, 2]),
        ([3, 3], [0], [0, 0]),
        ([9, 3, 9, 5], [1, 3, 0], [2, 0, 2, 1]),
        ([3, 5, 4], [0, 2, 1], [0, 2, 1]),
        ([7], [0], [0]),
        ([], [], []),
    ],
)
def test_distinct(keys, first, number):
    found = distinct(np.array(keys, dtype=np.uint64))
    assert found[0].tolist() == first and found[1].tolist() == number


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_ranking(seed):
    keys = np.array([1, 2, 2**63 + 5], dtype=np.uint64)
    seeded = mixed((seed * 0x9E3779B97F4A7C15 + 0xFF51AFD7ED558CCD) % 2**64)
    assert ranking(keys, seed).tolist() == [mixed(k ^ seeded) for k in keys.tolist()]


@pytest.mark.parametrize("n_values", [10, 10**9])
def test_orders_of_keys(n_values):
    """The fast ways are the plain ones, with and without equal keys."""
    keys = np.random.default_rng(0).integers(0, n_values, 500).astype(np.uint64)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    for found, expected in zip(distinct(keys), (first, inverse)):
        np.testing.assert_array_equal(found, expected)
    for size in (0, 1, 200, 499, 500, 600):
        np.testing.assert_array_equal(first_in_order(keys, size), np.argsort(keys, kind="stable")[:size])
    assert are_distinct(keys) == (n_values > 10)
    np.testing.assert_array_equal(keys_of_ranking(ranking(keys, 3), 3), keys)


def test_exact_keys_from_hashes():
    X = np.random.default_rng(0).integers(0, 3, (200, 2)).astype(float)
    np.testing.assert_array_equal(exact_keys(X, row_keys(X)), exact_keys(X))
    assert len(np.unique(exact_keys(X, np.zeros(200, np.uint64)))) == len(np.unique(X, axis=0))  # all hashes collide


def test_sums_of_columns_and_rows_match():
    """The sum of a row is that of its terms; the hash of a column does not depend on rows, formats or its place."""
    rng = np.random.default_rng(0)
    X, counts = rng.integers(-1, 2, (30, 5)).astype(float), rng.integers(1, 9, 30)
    terms = [column_term(X[:, j], j, 5) for j in range(5)]
    order = rng.permutation(30)
    for form in (np.asarray, sparse.csr_array):
        np.testing.assert_array_equal(row_sums(form(X)), np.sum(terms, axis=0, dtype=np.uint64))
        np.testing.assert_array_equal(mix(row_sums(form(X))), row_keys(X))
        sums = column_sums(form(X), counts)
        np.testing.assert_array_equal(column_sums(form(X[order][:, ::-1]), counts[order]), sums[::-1])
    assert len(np.unique(sums)) == 5
