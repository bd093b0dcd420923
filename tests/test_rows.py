"""Rows in memory by themselves: labels, weights, groups of tags and the merging of equal rows, worked out by hand."""

import numpy as np
import pytest
from scipy import sparse

from kproba.data.hashing import exact_keys
from kproba.data.rows import Rows

X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [3.0, 1.0], [1.0, 0.0]])
NAN = np.nan
TAGS = np.array([[1.0, NAN, 0.0, 1.0], [0.0, NAN, 1.0, NAN], [1.0, 1.0, NAN, 0.0], [1.0, 0.0, NAN, 1.0]])


def test_rows_as_they_are_given():
    weight = np.array([0.5, 1.0, 2.0, 3.0, 1.0])
    rows = Rows.of(X, np.array([0, 1, 0, 2, 1]), weight, 3)
    np.testing.assert_array_equal(rows.weight, weight)
    np.testing.assert_array_equal(rows.unit, weight)  # not all are whole, so they count no copies
    np.testing.assert_array_equal(Rows.of(X, rows.labels, np.array([0.0, 1.0, 2.0, 3.0, 1.0]), 3).unit, [0, 1, 1, 1, 1])
    np.testing.assert_array_equal(rows.number, np.arange(5))
    np.testing.assert_array_equal(rows.keys, exact_keys(X))
    assert rows.X is X and rows.n_classes == 3 and rows.group is None and rows.mass is None
    assert len(rows) == 5 and not rows.is_multilabel and not rows.is_sparse and rows.n_targets == 3
    assert rows.total_weight == 7.5 and rows.n_distinct == 3
    np.testing.assert_allclose(rows.prior, [2.5 / 7.5, 2 / 7.5, 3 / 7.5])


def test_a_factor_goes_with_the_copies():
    rows = Rows.of(X, np.zeros(5, int), np.array([1.0, 1.0, 2.0, 3.0, 1.0]), 1, np.array([2.0, 3.0, 0.5, 1.0, 4.0]))
    np.testing.assert_array_equal(rows.weight, [2.0, 3.0, 1.0, 3.0, 4.0])
    np.testing.assert_array_equal(rows.unit, [2.0, 3.0, 0.5, 1.0, 4.0])


def test_classes_as_targets():
    rows = Rows.of(X, np.array([0, 1, 0, 2, 1]), np.ones(5), 3)
    np.testing.assert_array_equal(rows.targets(), np.eye(3)[[0, 1, 0, 2, 1]])
    np.testing.assert_array_equal(rows.targets(np.array([3, 1])), [[0, 0, 1], [0, 1, 0]])
    assert rows.targets().dtype == np.float64


def test_all_tags_as_targets():
    tags = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    rows = Rows.of(X[:3], tags, np.array([1.0, 2.0, 1.0]), 2)
    assert rows.group is None and rows.known is None and rows.is_multilabel
    assert rows.n_groups == 1 and rows.n_targets == 3 and rows.constant.tolist() == [2, 2]
    np.testing.assert_array_equal(rows.targets(slice(1, 3)), [[0, 1, 1], [1, 1, 1]])
    np.testing.assert_array_equal(rows.prior, [0.5, 0.75])
    np.testing.assert_array_equal(rows.tag_weight, [4.0, 4.0])
    assert rows.mean_over_tags(np.array([[1.0, 3.0], [0.0, 1.0], [5.0, 0.0]])) == pytest.approx((2 + 2 * 0.5 + 2.5) / 4)


def test_groups_of_missing_tags():
    rows = Rows.of(X[:4], TAGS, np.array([1.0, 2.0, 3.0, 4.0]), 4)
    assert rows.group.tolist() == [0, 1, 2, 3] and rows.n_groups == 4 and rows.n_targets == 8
    assert rows.constant.tolist() == [4, 5, 6, 7]
    np.testing.assert_array_equal(rows.filled_labels[0], [1, 0, 0, 1])
    expected = np.hstack([np.nan_to_num(TAGS), ~np.isnan(TAGS)])
    np.testing.assert_array_equal(rows.targets(), expected)
    np.testing.assert_array_equal(rows.targets(np.array([2, 0])), expected[[2, 0]])
    np.testing.assert_array_equal(rows.tag_weight, [10, 7, 3, 8])
    np.testing.assert_allclose(rows.prior, [8 / 10, 3 / 7, 2 / 3, 5 / 8])
    values = np.arange(16.0).reshape(4, 4)
    weight = np.array([1.0, 2.0, 3.0, 4.0])[:, None] * ~np.isnan(TAGS)
    assert rows.mean_over_tags(values) == pytest.approx((weight * values).sum() / weight.sum())


@pytest.mark.parametrize("missing", [False, True])
def test_means_of_float32_are_taken_in_float64(missing):
    tags = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, NAN if missing else 1.0]])
    rows = Rows.of(X[:2], tags, np.ones(2), 3)
    values = np.array([[1.0, 2.0**-30, 0.0], [0.0, 0.0, 0.0]], dtype=np.float32)
    assert rows.mean_over_tags(values) == pytest.approx((1 + 2.0**-30) / (5 if missing else 6), rel=1e-15)


def test_tags_that_are_missing_together_share_a_group():
    tags = TAGS[:, [2, 0, 0, 1, 2]].copy()
    assert Rows.of(X[:4], tags, np.ones(4), 5).group.tolist() == [0, 1, 1, 2, 0]
    rows = Rows.of(X[:4], tags, np.ones(4), 5)
    assert rows.n_targets == 8
    np.testing.assert_array_equal(rows.targets()[:, 5:], ~np.isnan(TAGS[:, [2, 0, 1]]))
    many = np.ones((20, 2))
    many[17, 0] = NAN
    assert Rows.of(np.ones((20, 1)), many, np.ones(20), 2).group.tolist() == [0, 1]


def test_integer_tags_have_no_groups():
    assert Rows.of(X[:2], np.array([[1, 0], [0, 1]]), np.ones(2), 2).group is None


def test_the_rows_and_tags_of_a_group():
    rows = Rows.of(X[:4], TAGS[:, [2, 0, 0, 1, 2]], np.array([1.0, 2.0, 3.0, 4.0]), 5)
    tags, where, part = rows.of_group(0)
    assert tags.tolist() == [0, 4] and where.tolist() == [0, 1]
    assert part.group is None and part.n_classes == 2
    np.testing.assert_array_equal(part.labels, [[0, 0], [1, 1]])
    np.testing.assert_array_equal(part.weight, [1.0, 2.0])
    tags, where, part = rows.of_group(2)
    assert tags.tolist() == [3] and where.tolist() == [2, 3] and part.number.tolist() == [2, 3]
    full = Rows.of(X[:2], np.eye(2), np.ones(2), 2)
    tags, where, part = full.of_group(0)
    assert tags.tolist() == [0, 1] and where.tolist() == [0, 1]
    np.testing.assert_array_equal(part.labels, np.eye(2))


def test_some_tags_are_grouped_anew():
    rows = Rows.of(X[:4], TAGS, np.ones(4), 4).with_tags(np.array([3, 0]))
    assert rows.n_classes == 2 and rows.group.tolist() == [0, 1]
    np.testing.assert_array_equal(rows.labels, TAGS[:, [3, 0]])


def test_taking_rows_takes_all_that_belongs_to_them():
    rows = Rows.of(X[:4], TAGS, np.array([0.5, 2.0, 3.0, 4.0]), 4)
    assert rows.take(np.array([1])).mass is None
    rows = Rows(*(getattr(rows, name) for name in ("X", "labels", "weight")), 4, rows.number, rows.keys, rows.unit,
                np.array([7.0, 8.0, 9.0, 6.0]), rows.group)  # fmt: skip
    some = rows.take(np.array([3, 0]))
    np.testing.assert_array_equal(some.X, X[[3, 0]])
    np.testing.assert_array_equal(some.labels, TAGS[[3, 0]])
    np.testing.assert_array_equal(some.weight, [4.0, 0.5])
    np.testing.assert_array_equal(some.number, [3, 0])
    np.testing.assert_array_equal(some.keys, rows.keys[[3, 0]])
    np.testing.assert_array_equal(some.unit, [4.0, 0.5])
    np.testing.assert_array_equal(some.mass, [6.0, 7.0])
    np.testing.assert_array_equal(some.group, rows.group)
    assert some.n_classes == 4


def test_rows_without_some():
    rows = Rows.of(X, np.zeros(5, int), np.ones(5), 1)
    assert rows.without(np.array([3, 0])).number.tolist() == [1, 2, 4]
    assert rows.without(np.array([1, 2, 3, 4])).number.tolist() == [0]
    assert rows.without(np.arange(5)) is rows


def test_inputs_are_replaced_and_nothing_else():
    rows = Rows.of(X, np.zeros(5, int), np.ones(5), 1)
    other = rows.replace_inputs(2 * X)
    np.testing.assert_array_equal(other.X, 2 * X)
    assert other.keys is rows.keys and other.labels is rows.labels


def test_batches():
    rows = Rows.of(X, np.array([0, 1, 0, 1, 1]), np.arange(1.0, 6.0), 2)
    batches = list(rows.batches(8, 16))
    assert [batch.where for batch in batches] == [slice(0, 2), slice(2, 4), slice(4, 5)]
    for batch in batches:
        np.testing.assert_array_equal(batch.X, X[batch.where])
        np.testing.assert_array_equal(batch.targets, rows.targets()[batch.where])
        np.testing.assert_array_equal(batch.weight, rows.weight[batch.where])
    assert len(list(rows.batches(8))) == 1
    assert Rows.of(sparse.csr_array(X), np.zeros(5, int), np.ones(5), 1).is_sparse


class TestMerging:
    def test_equal_rows_of_equal_label_and_unit(self):
        rows = Rows.of(X, np.array([0, 1, 0, 1, 1]), np.array([1.0, 1.0, 2.0, 5.0, 1.0]), 2)
        merged, place = rows.merged()
        assert place.tolist() == [0, 1, 0, 2, 3]
        np.testing.assert_array_equal(merged.weight, [3.0, 1.0, 5.0, 1.0])
        np.testing.assert_array_equal(merged.number, [0, 1, 3, 4])
        np.testing.assert_array_equal(merged.labels, [0, 1, 1, 1])
        np.testing.assert_array_equal(merged.X, X[[0, 1, 3, 4]])

    def test_rows_of_another_unit_stay_apart(self):
        merged, place = Rows.of(X, np.zeros(5, int), np.array([1.0, 1.0, 0.5, 1.0, 0.5]), 1).merged()
        assert place.tolist() == [0, 1, 2, 3, 2]
        np.testing.assert_array_equal(merged.weight, [1.0, 1.0, 1.0, 1.0])

    def test_rows_of_weight_zero_are_left_out(self):
        merged, place = Rows.of(X, np.zeros(5, int), np.array([0.0, 1.0, 2.0, 0.0, 1.0]), 1).merged()
        assert place.tolist() == [-1, 0, 1, -1, 1]
        np.testing.assert_array_equal(merged.weight, [1.0, 3.0])
        np.testing.assert_array_equal(merged.number, [1, 2])
        different = Rows.of(X[1:4], np.zeros(3, int), np.array([1.0, 0.0, 2.0]), 1)
        merged, place = different.merged()
        assert place.tolist() == [0, -1, 1] and merged.number.tolist() == [0, 2]
        merged, place = different.merged(by_key=True)
        assert place[1] == -1 and sorted(place[[0, 2]]) == [0, 1] and len(merged) == 2

    def test_in_order_of_the_keys(self):
        rows = Rows.of(X, np.array([0, 1, 0, 1, 1]), np.array([1.0, 1.0, 2.0, 5.0, 1.0]), 2)
        merged, place = rows.merged(by_key=True)
        assert (np.diff(merged.keys.astype(float)) >= 0).all()
        np.testing.assert_array_equal(merged.X[place], X)
        np.testing.assert_array_equal(merged.labels[place], rows.labels)
        np.testing.assert_array_equal(np.bincount(place, rows.weight), merged.weight)

    @pytest.mark.parametrize(
        "labels", [np.array([0, 1, 0]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, NAN]])], ids=["classes", "tags"]
    )
    @pytest.mark.parametrize("step", [1, -1])
    def test_rows_that_are_all_different_are_kept_as_they_are(self, labels, step):
        rows = Rows.of(X[1:4][::step], labels, np.ones(3), 2)
        merged, place = rows.merged()
        assert merged is rows and place.tolist() == [0, 1, 2]
        merged, place = rows.merged(by_key=True)
        assert (merged.keys[1:] > merged.keys[:-1]).all()
        np.testing.assert_array_equal(merged.X[place], rows.X)
        np.testing.assert_array_equal(merged.weight, np.ones(3))

    def test_equal_rows_of_different_labels_alone(self):
        rows = Rows.of(X[[0, 2]], np.array([1, 0]), np.array([2.0, 3.0]), 2)
        merged, place = rows.merged()
        assert merged is rows and place.tolist() == [0, 1]
        merged, place = rows.merged(by_key=True)
        assert merged is not rows
        np.testing.assert_array_equal(merged.labels[place], rows.labels)
        np.testing.assert_array_equal(merged.weight[place], rows.weight)

    def test_every_pair_of_inputs_and_label_is_told_apart(self):
        inputs, labels = np.repeat(np.arange(6.0), 4)[:, None], np.tile([0, 1, 0, 1], 6)
        merged, place = Rows.of(inputs, labels, np.ones(24), 2).merged()
        assert len(merged) == 12 and (merged.weight == 2.0).all()
        np.testing.assert_array_equal(merged.X[place], inputs)
        np.testing.assert_array_equal(merged.labels[place], labels)

    def test_equal_inputs_come_in_the_order_of_their_labels(self):
        """Whatever the order in which they were given."""
        labels = np.random.default_rng(0).permutation(50)
        inputs = (labels % 2).astype(float)[:, None]
        merged, _ = Rows.of(inputs, labels, np.ones(50), 50).merged(by_key=True)
        for value in (0, 1):
            np.testing.assert_array_equal(merged.labels[merged.X[:, 0] == value], np.arange(value, 50, 2))

    def test_tags_are_compared_too(self):
        tags = np.array([[1.0, NAN], [0.0, 1.0], [1.0, NAN], [1.0, 1.0], [1.0, 0.0]])
        merged, place = Rows.of(X, tags, np.ones(5), 2).merged()
        assert place.tolist() == [0, 1, 0, 2, 3]
        np.testing.assert_array_equal(merged.weight, [2.0, 1.0, 1.0, 1.0])
        np.testing.assert_array_equal(merged.labels, tags[[0, 1, 3, 4]])

    def test_no_rows(self):
        merged, place = Rows.of(X[:0], np.empty(0, int), np.empty(0), 2).merged()
        assert len(merged) == 0 and len(place) == 0
        nothing = Rows.of(X, np.zeros(5, int), np.zeros(5), 1)
        merged, place = nothing.merged()
        assert len(merged) == 0 and (place == -1).all()
