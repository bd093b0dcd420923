"""Equality of rows is decided by their values: a hash only finds candidates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import oracles
from kproba import LSPC, KernelLogisticRegression, Sequences
from kproba.data import hashing, rows
from kproba.data import summary as look
from kproba.data.hashing import equal_rows, exact_keys
from kproba.data.items import Items
from kproba.data.rows import Rows
from kproba.data.sources import Chunk
from kproba.data.summary import Summary
from kproba.problems.import_vectors import streamed
from kproba.problems.import_vectors.streamed import FirstRowsOf

FEW_VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 5e-324])


def tables(dtype=np.float64, most_rows=12, most_columns=3):
    shape = st.tuples(st.integers(1, most_rows), st.integers(1, most_columns))
    values = FEW_VALUES if dtype == np.float64 else st.sampled_from([0.0, -0.0, 1.0, 0.5])
    return shape.flatmap(lambda s: arrays(dtype, s, elements=values))


@pytest.fixture(params=["good hash", "one bit", "constant"])
def weak_hash(request, monkeypatch):
    """The library with a hash that collides as often as it can."""
    keep = {"good hash": 2**64 - 1, "one bit": 1, "constant": 0}[request.param]
    strong = hashing.row_keys

    def weak(X):
        return strong(X) & np.uint64(keep)

    for module in (hashing, look, streamed):
        monkeypatch.setattr(module, "row_keys", weak)


def numbers_by_values(X, *beside):
    """The textbook: a number for every distinct row, by comparing tuples."""
    seen: dict = {}
    entries = zip(map(tuple, (np.asarray(X) + 0.0).tolist()), *(np.asarray(part).tolist() for part in beside))
    return [seen.setdefault(entry, len(seen)) for entry in entries]


def are_same_partition(a, b):
    return len(set(zip(a, b))) == len(set(a)) == len(set(b))


def test_exact_keys_are_equal_for_equal_rows_alone(weak_hash):
    @settings(max_examples=60, deadline=None)
    @given(tables())
    def check(X):
        for rows_in in (X, sparse.csr_array(X), X.astype(np.float32) if (X != 5e-324).all() else X):
            assert are_same_partition(exact_keys(rows_in).tolist(), numbers_by_values(X))

    check()


def test_merging_is_by_value(weak_hash):
    @settings(max_examples=80, deadline=None)
    @given(tables(most_rows=16, most_columns=2), st.integers(1, 4), st.randoms(use_true_random=False), st.booleans())
    def check(X, c, random, by_key):
        labels = np.array([random.randrange(c) for _ in X])
        weight = np.array([random.choice([0.0, 0.5, 1.0, 2.0]) for _ in X])
        merged, place = Rows.of(X, labels, weight, c).merged(by_key)
        kept = np.flatnonzero(weight > 0)
        assert (place[weight == 0] == -1).all()
        expected = numbers_by_values(X[kept], labels[kept], oracles.one_unit(weight[kept]))
        assert are_same_partition(place[kept].tolist(), expected)
        assert len(merged) == len(set(expected))
        np.testing.assert_array_equal(merged.X[place[kept]], X[kept])
        np.testing.assert_array_equal(merged.labels[place[kept]], labels[kept])
        np.testing.assert_allclose(merged.weight, np.bincount(place[kept], weight[kept], len(merged)))

    check()


def test_merging_of_tags_is_by_value(weak_hash):
    rng = np.random.default_rng(0)
    X, labels = rng.integers(0, 2, (40, 2)).astype(float), rng.choice([0.0, 1.0, np.nan], (40, 3), p=[0.4, 0.4, 0.2])
    merged, place = Rows.of(X, labels, np.ones(40), 3).merged()
    expected = numbers_by_values(X, *np.nan_to_num(labels, nan=7.0).T)
    assert are_same_partition(place.tolist(), expected)
    np.testing.assert_array_equal(merged.labels[place], labels)


def test_items_that_share_a_hash_stay_apart(weak_hash):
    texts = Items(["a", "b", "a", {"a"}, {"a"}, 3.0, 3])
    assert are_same_partition(exact_keys(texts).tolist(), [0, 1, 0, 2, 2, 3, 4])
    frames = np.arange(6.0).reshape(3, 2)
    sequences = Sequences.of([frames, frames[::-1], frames.copy(), frames[:2]])
    assert are_same_partition(exact_keys(sequences).tolist(), [0, 1, 0, 2])
    assert equal_rows(texts, np.array([0, 0]), texts, np.array([2, 1])).tolist() == [True, False]


def test_a_sample_of_a_source_keeps_all_weight(weak_hash):
    """Rows of equal hash are neither joined nor lost on the way through the parts of a source."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 2, (60, 3)).astype(float), rng.integers(0, 2, 60)
    whole = Summary(1000, 0)
    for start in range(0, 60, 20):
        whole = whole + Summary(1000, 0).add(Chunk(X[start : start + 20], y[start : start + 20], None, start))
    found = whole.rows(np.arange(2), None)[0]
    assert len(found) == len(set(numbers_by_values(X, y)))
    for x, label, weight in zip(found.X, found.labels, found.weight):
        assert weight == pytest.approx(((x == X).all(axis=1) & (y == label)).sum())


def test_import_points_of_a_source_are_found_by_value(weak_hash):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    statistic = FirstRowsOf(X[[4, 3, 0]])
    total = statistic.zero()
    for start in (0, 2, 4):
        total = statistic.add(total, Chunk(X[start : start + 2], None, None, start))
    assert total.first.tolist() == [1, 3, 0]


@pytest.mark.parametrize("classifier", [LSPC, KernelLogisticRegression])
def test_predictions_do_not_depend_on_the_hash(classifier, monkeypatch):
    """With all rows as centres the hash decides an order of rows and nothing else."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (60, 4)).astype(float)
    y = (X[:, 0] != X[:, 1]).astype(int) ^ (rng.random(60) < 0.1)
    p = classifier(width=1.0, ridge=0.01, random_state=0).fit(X, y).predict_proba(X)
    strong = hashing.row_keys
    monkeypatch.setattr(hashing, "row_keys", lambda X: strong(X) & np.uint64(1))
    q = classifier(width=1.0, ridge=0.01, random_state=0).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p, q, atol=1e-8)


def test_labels_never_cancel_against_inputs():
    """Rows of 0 and 1 whose hashes meet those of their labels."""
    X = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 25, axis=0).astype(float)
    for y in ((X[:, 0] != X[:, 1]).astype(int), (X[:, 0] * X[:, 1]).astype(int), (X[:, 0] + X[:, 1] > 0).astype(int)):
        merged = Rows.of(X, y, np.ones(100), 2).merged()[0]
        assert len(merged) == 4 and merged.weight.tolist() == [25.0] * 4
        for classifier in (LSPC, KernelLogisticRegression):
            assert (classifier(random_state=0).fit(X, y).predict(X) == y).all()


def test_rows_module_takes_exact_keys_only():
    assert not hasattr(rows, "row_keys")
