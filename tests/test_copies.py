"""Rows that occur several times: when they are draws, when they are duplicates, and what each means for a fit."""

from __future__ import annotations

from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import log_loss

import oracles
from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.data import copies
from kproba.data.copies import Parts, with_units
from kproba.data.rows import Rows
from kproba.estimators import _learning
from kproba.search.learnt import outer_folds
from kproba.search.losses import LogLoss
from strategies import tables

EVERYONE = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)


def cells(n, seed=0, side=12):
    """Labels that are drawn by the probability of a cell, so that no cell says anything about another one."""
    rng = np.random.default_rng(seed)
    of_cell = np.where(np.random.default_rng(99).random((side, side)) < 0.5, 0.1, 0.9)
    X = rng.integers(0, side, (n, 2))
    p = of_cell[X[:, 0], X[:, 1]]
    return X.astype(float), (rng.random(n) < p).astype(int), p


def merged(X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return with_units(Rows.of(X, y, weight, 2).merged()[0])[0]


class TestUnits:
    """What leave-one-out removes of a merged row."""

    def test_draws_contradict_each_other(self):
        rows = merged(*cells(600)[:2])
        assert rows.copies_are_draws and (rows.unit == 1.0).all() and rows.weight.max() > 2.0

    def test_draws_of_few_values_need_not(self):
        X = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 25, axis=0).astype(float)
        rows = merged(X, (X[:, 0] != X[:, 1]).astype(int))
        assert rows.copies_are_draws and (rows.unit == 1.0).all()

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
    def test_duplicates(self, form):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
        rows = merged(form(np.repeat(X, 3, axis=0)), np.repeat(y, 3))
        assert not rows.copies_are_draws and (rows.unit == rows.weight).all() and (rows.weight == 3.0).all()

    def test_a_few_contradicting_duplicates_lose_a_copy_each(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
        rows = merged(np.vstack([X, X, X[:1]]), np.concatenate([y, y, 1 - y[:1]]))
        contradicts = (X[0] == rows.X).all(axis=1)
        assert contradicts.sum() == 2 and (rows.unit[contradicts] == 1.0).all()
        assert (rows.unit[~contradicts] == 2.0).all()

    @pytest.mark.parametrize("n, d, values", [(300, 12, 5), (240, 8, 5), (300, 12, 2), (40, 1, 10**6), (40, 3, 10**6)])
    def test_weights_of_different_rows_are_no_draws(self, n, d, values):
        """Few values do not make new rows equal known ones, if the rows are a small part of all combinations."""
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, values, (n, d)).astype(float), rng.integers(0, 2, n)
        for weight in (np.full(n, 3.0), rng.uniform(100, 5000, n)):
            rows = merged(X, y, weight)
            assert not rows.copies_are_draws and (rows.unit == rows.weight).mean() > 0.9  # some contradict each other

    @pytest.mark.parametrize("n_columns", [1, 3])
    def test_a_number_for_each_row_is_no_full_table(self, n_columns):
        """Such as the day: 60 of 60 values are not 60 cells."""
        X, y = np.tile(np.arange(60.0)[:, None], n_columns), np.random.default_rng(0).integers(0, 2, 60)
        assert not merged(X, y, np.full(60, 3.0)).copies_are_draws

    @pytest.mark.parametrize("n_levels", [(3,), (5, 4), (3, 3, 3), (40,), (2, 2, 2, 2)])
    @pytest.mark.parametrize("form", ["codes", "indicators", "indicators without the first"])
    def test_full_tables_of_categories_are_draws(self, form, n_levels):
        X = np.stack(np.meshgrid(*map(np.arange, n_levels)), axis=-1).reshape(-1, len(n_levels)).astype(float)
        if form != "codes":
            start = 0 if form == "indicators" else 1
            X = np.column_stack([x == level for x, k in zip(X.T, n_levels) for level in range(start, k)]).astype(float)
        X = np.repeat(X, 5, axis=0)
        assert merged(X, (X @ np.arange(X.shape[1]) % 2 > 0.5).astype(int)).copies_are_draws

    @pytest.mark.parametrize("annotators", [2, 5])
    def test_two_opinions_about_each_row_are_no_draws(self, annotators):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(150, 3)), rng.integers(0, 2, 150 * annotators)
        assert not merged(np.tile(X, (annotators, 1)), y).copies_are_draws

    @pytest.mark.parametrize("n_blank", [2, 70, 1000])
    def test_a_cell_with_all_labels_says_nothing_about_the_others(self, n_blank):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
        rows = merged(np.vstack([X, X, np.zeros((n_blank, 3))]), np.concatenate([y, y, np.arange(n_blank) % 2]))
        is_blank = (rows.X == 0).all(axis=1)
        assert not rows.copies_are_draws and (rows.unit[is_blank] == 1.0).all() and (rows.unit[~is_blank] == 2.0).all()

    @settings(max_examples=40, deadline=None)
    @given(st.integers(1, 40), st.integers(1, 3), st.sampled_from([2, 5, 1000]), st.integers(0, 10_000))
    def test_a_weight_counts_copies(self, n, d, values, seed):
        rng = np.random.default_rng(seed)
        X, y, weight = rng.integers(0, values, (n, d)).astype(float), rng.integers(0, 2, n), rng.integers(1, 4, n)
        again = np.repeat(np.arange(n), weight)
        one, other = merged(X, y, weight.astype(float)), merged(X[again], y[again])
        assert one.copies_are_draws == other.copies_are_draws
        found = [np.column_stack([rows.X, rows.labels, rows.weight, rows.unit]).tolist() for rows in (one, other)]
        assert sorted(found[0]) == sorted(found[1])

    def test_duplicates_of_different_weights_are_one_row(self):
        X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
        rows, place = Rows.of(np.vstack([X, X]), np.tile(y, 2), np.repeat([0.3, 2.0], 60), 2).merged()
        assert len(rows) == 120
        rows, again = with_units(rows)
        assert len(rows) == 60 and (rows.unit == rows.weight).all() and (rows.weight == 2.3).all()
        assert (rows.X[again[place]] == np.vstack([X, X])).all()

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
    @settings(max_examples=100, deadline=None)
    @given(
        table=tables(rows=(1, 12)) | tables(rows=(8, 30)).map(lambda table: table._replace(weight=3.0 * table.weight))
    )
    def test_equals_the_rule_written_out(self, table, form):
        table = table.counted
        rows, place = Rows.of(form(table.X), table.y, table.weight, table.n_classes).merged()
        rows, again = with_units(rows)
        left_out = oracles.left_out(*table)
        for i, e in enumerate(again[place]):
            assert rows.unit[e] == pytest.approx(left_out[i].sum())

    def test_weights_that_are_not_whole_count_no_copies(self):
        """Such as survey weights: an answer is left out with all of its weight, and only repeated answers are draws."""
        X, y, _ = cells(600)
        weight = np.exp(np.random.default_rng(1).normal(size=600)) * 4
        rows = merged(X, y, weight)
        assert rows.copies_are_draws and (rows.unit == rows.weight).all() and len(rows) == 600
        X = np.random.default_rng(0).integers(0, 12, (60, 4)).astype(float)
        assert not merged(X, y[:60], weight[:60]).copies_are_draws

    @pytest.mark.parametrize("raters", [3, 5])
    @pytest.mark.parametrize("d", [3, 5])
    def test_opinions_about_rounded_rows_are_no_draws(self, d, raters):
        rng = np.random.default_rng(0)
        X, y = np.round(rng.normal(size=(150, d)), 1), rng.integers(0, 2, 150 * raters)
        rows = merged(np.tile(X, (raters, 1)), y)
        assert not rows.copies_are_draws

    @pytest.mark.parametrize("strength", [0.0, 1.0, 2.0])
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
    def test_answers_that_depend_on_each_other_are_draws(self, form, strength):
        rng = np.random.default_rng(0)
        common = rng.normal(size=(2000, 1))
        X = (strength * common + rng.normal(size=(2000, 8)) > 0).astype(float)
        assert merged(form(X), rng.integers(0, 2, 2000)).copies_are_draws
        levels = np.round(strength * common + rng.normal(size=(2000, 3))).clip(-2, 2)
        marks = np.column_stack([column == level for column in levels.T for level in range(-2, 3)]).astype(float)
        for X in (levels, marks):
            assert merged(form(X), rng.integers(0, 2, 2000)).copies_are_draws

    @pytest.mark.parametrize("n_both, together", [(4, False), (40, True)])
    def test_many_contradicting_duplicates_are_left_out_together(self, n_both, together):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
        X, y = np.vstack([X, X[:n_both]]), np.concatenate([y, 1 - y[:n_both]])
        rows = with_units(Rows.of(X, y, np.ones(len(y)), 2).merged()[0], with_groups=True)[0]
        assert (rows.together is not None) == together
        levels = np.clip(np.round(2 * X[:, :2]), -6, 6)  # they repeat by chance
        rounded = with_units(Rows.of(levels, y, np.ones(len(y)), 2).merged()[0], with_groups=True)[0]
        assert rounded.together is None
        if together:
            assert (rows.together == rows.distinct[1]).all() and len(rows) == len(y)
            assert with_units(Rows.of(X, y, np.ones(len(y)), 2).merged()[0])[0].together is None
            few = with_units(Rows.of(X[:99], np.zeros(99, int), np.ones(99), 2).merged()[0], with_groups=True)[0]
            assert few.together is None

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
    @pytest.mark.parametrize("most", [3, 50])
    def test_the_order_of_columns_and_rows_decides_nothing(self, form, most, monkeypatch):
        """Although only some of the columns are looked at: one of these varies from row to row, the others do not."""
        monkeypatch.setattr(copies, "COLUMNS", most)
        rng = np.random.default_rng(0)
        X = np.repeat(rng.integers(0, 3, (60, 12)), 8, axis=0).astype(float)
        X, y = np.column_stack([rng.integers(0, 2, len(X)), X]), rng.integers(0, 2, len(X))
        found = set()
        for seed in range(6):
            rng = np.random.default_rng(seed)
            rows, columns = rng.permutation(len(X)), rng.permutation(13)
            found.add(merged(form(X[np.ix_(rows, columns)]), y[rows]).copies_are_draws)
        assert len(found) == 1 and (most == 3 or found == {True})

    @settings(max_examples=150, deadline=None)
    @given(
        st.sampled_from(["two values", "rare marks", "levels", "rounded"]),
        st.integers(2, 40),
        st.integers(1, 7),
        st.integers(0, 10_000),
    )
    def test_what_repeats_by_chance_is_what_the_oracle_counts(self, kind, n, d, seed):
        rng = np.random.default_rng(seed)
        X = {
            "two values": lambda: rng.integers(0, 2, (n, d)),
            "rare marks": lambda: rng.random((n, d)) < 0.15,
            "levels": lambda: np.eye(4)[rng.integers(0, 4, (n, 2))].reshape(n, -1),
            "rounded": lambda: np.round(rng.normal(size=(n, d)), seed % 2),
        }[kind]()
        X = X[rng.integers(0, n, 2 * n)].astype(float)
        for form in (np.asarray, sparse.csr_array):
            rows = Rows.of(form(X), np.zeros(2 * n, int), np.ones(2 * n), 1)
            first, number = rows.distinct
            counts = np.bincount(number).astype(float)
            assert copies._by_chance(rows, counts) == oracles.repeat_by_chance(X[first], counts)

    def test_groups_decide_for_themselves(self):
        X, y, _ = cells(200)
        rows = Rows.of(X, y, np.ones(200), 2, together=np.arange(200) // 2).merged()[0]
        assert with_units(rows)[0] is rows


class TestParts:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(2, 60), st.integers(0, 10_000))
    def test_single_rows_again(self, n, seed):
        X, y, _ = cells(n, seed, side=3)
        rows, place = Rows.of(X, y, np.ones(n), 2).merged()
        rows = replace(rows, copies_are_draws=True)
        parts = Parts.of(rows)
        each = parts.split(rows)
        assert (each.weight == 1.0).all() and len(np.unique(each.keys)) == n
        table = np.column_stack([X, y])
        assert np.sort(np.column_stack([each.X, each.labels]), axis=0).tolist() == np.sort(table, axis=0).tolist()
        shuffled = np.random.default_rng(seed).permutation(len(rows))
        again = Parts.of(rows.take(shuffled)).split(rows.take(shuffled))
        assert sorted(zip(again.keys, again.labels)) == sorted(zip(each.keys, each.labels))
        # each given row has the mean of its parts, and as many are unknown as parts are
        values = np.random.default_rng(seed).normal(size=(n, 2))
        unknown = np.random.default_rng(seed).random(n) < 0.3
        values[unknown] = np.nan
        found = parts.to_rows(values, place)
        assert np.isnan(found[:, 0]).sum() == unknown.sum()
        for i in np.flatnonzero(~np.isnan(found[:, 0])):
            assert found[i] == pytest.approx(np.nanmean(values[parts.row == place[i]], axis=0))

    def test_very_many_copies_share_parts(self, monkeypatch):
        monkeypatch.setattr("kproba.data.copies.MOST_PARTS", 50)
        rows = Rows.of(np.arange(4.0)[:, None], np.arange(4) % 2, np.array([1.0, 10.0, 90.0, 899.0]), 2)
        rows = replace(rows, copies_are_draws=True)
        parts = Parts.of(rows)
        each = parts.split(rows)
        assert parts.n_parts.tolist() == [1, 1, 4, 44]
        assert np.bincount(parts.row, each.weight) == pytest.approx(rows.weight)


class TestFits:
    @pytest.mark.parametrize("Estimator", [LSPC, KernelLogisticRegression])
    def test_few_distinct_rows_with_contradicting_labels(self, Estimator):
        """Each cell must be learnt from its own draws; without parts, the log-loss was that of the class shares."""
        X, y, p = cells(2000)
        X_new, y_new, p_new = cells(5000, seed=1)
        clf = Estimator(random_state=0).fit(X, y)
        truth = log_loss(y_new, np.column_stack([1 - p_new, p_new]))
        assert truth - 0.01 < log_loss(y_new, clf.predict_proba(X_new)) < truth + 0.06
        known = ~np.isnan(clf.oof_proba_).any(axis=1)
        stated = log_loss(y[known], clf.oof_proba_[known])
        assert abs(stated - log_loss(y[known], np.column_stack([1 - p, p])[known])) < 0.08

    @pytest.mark.parametrize("n", [300, 1500], ids=["folds", "one held-out part"])
    def test_noise_in_few_cells_is_not_predictable(self, n):
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, 11, (n, 2)).astype(float), rng.integers(0, 2, n)
        clf = LSPC(random_state=0).fit(X, y)
        known = ~np.isnan(clf.oof_proba_).any(axis=1)
        assert log_loss(y[known], clf.oof_proba_[known]) > np.log(2) - 0.02
        assert known.all() if n == 300 else 0.15 < known.mean() < 0.25

    @pytest.mark.parametrize("params", [{}, {"kernel": "gaussian"}], ids=["learnt", "gaussian"])
    @pytest.mark.parametrize("Estimator", [LSPC, KernelLogisticRegression])
    def test_noise_that_comes_twice_is_not_predictable(self, Estimator, params):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(150, 3)), rng.integers(0, 2, 150)
        clf = Estimator(**params, random_state=0).fit(np.vstack([X, X]), np.concatenate([y, y]))
        assert log_loss(np.concatenate([y, y]), clf.loo_proba_) > np.log(2) - 0.03
        proba = clf.predict_proba(rng.normal(size=(2000, 3)))
        assert log_loss(rng.integers(0, 2, 2000), proba) < np.log(2) + 0.05

    @pytest.mark.parametrize("weight", [3.0, 2000.0])
    @pytest.mark.parametrize("Estimator", EVERYONE)
    def test_noise_with_weights_and_few_values_is_not_predictable(self, Estimator, weight):
        """Survey weights on answers from 1 to 5."""
        rng = np.random.default_rng(0)
        X, y = rng.integers(1, 6, (240, 8)).astype(float), rng.integers(0, 2, 240)
        clf = Estimator(random_state=0).fit(X, y, np.full(240, weight))
        assert log_loss(y, clf.oof_proba_) > np.log(2) - 0.03
        assert log_loss(y, clf.loo_proba_) > np.log(2) - 0.05
        X_new, y_new = rng.integers(1, 6, (4000, 8)).astype(float), rng.integers(0, 2, 4000)
        assert log_loss(y_new, clf.predict_proba(X_new)) < np.log(2) + 0.06

    @pytest.mark.parametrize("factor", [0.2, 3.0])
    @pytest.mark.parametrize("Estimator", EVERYONE)
    def test_folds_take_copies_for_what_they_are_in_all_rows(self, Estimator, factor):
        """A factor of all classes is no number of copies."""
        rng = np.random.default_rng(1)
        X = rng.integers(0, 10, (300, 6)).astype(float)
        y = (rng.random(300) < 1 / (1 + np.exp(-(X[:, 0] + X[:, 1] - 9) / 2))).astype(int)
        found = [Estimator(class_weight={0: f, 1: f}, random_state=0).fit(X, y) for f in (1.0, factor)]
        losses = [[log_loss(y, proba) for proba in (clf.oof_proba_, clf.loo_proba_)] for clf in found]
        assert losses[1] == pytest.approx(losses[0], abs=0.02)

    @pytest.mark.parametrize("Estimator", EVERYONE)
    def test_weights_are_no_reason_to_trust_a_row(self, Estimator):
        """A common weight of two used to leave half of each row in its own judgement."""
        rng = np.random.default_rng(2)
        X, X_new = rng.normal(size=(200, 3)), rng.normal(size=(3000, 3))
        y, y_new = (rng.random(len(each)) < 1 / (1 + np.exp(-3 * each[:, 0])) for each in (X, X_new))
        losses = [
            log_loss(y_new, Estimator(kernel="gaussian", random_state=0).fit(X, y, weight).predict_proba(X_new))
            for weight in (None, np.full(200, 2.0), rng.uniform(0.0, 4.0, 200))
        ]
        assert losses[1] < losses[0] + 0.03 and losses[2] < losses[0] + 0.06

    @pytest.mark.parametrize("Estimator", EVERYONE)
    def test_weights_below_one_are_relative(self, Estimator):
        rng = np.random.default_rng(0)
        X, weight = rng.normal(size=(60, 2)), rng.uniform(0.1, 1.0, 60)
        weight[0], y = 1.0, X[:, 0] + 0.5 * rng.normal(size=60) > 0
        params = {"kernel": "gaussian", "width": 1.0, "random_state": 0}
        found = [Estimator(**params).fit(X, y, w).predict_proba(X) for w in (weight, weight / 2.0**6)]
        assert (found[0] == found[1]).all()


def test_out_of_fold_of_few_folds_leaves_out_one_row(monkeypatch):
    """The scores behind ``oof_proba_`` are those of the model of all other rows, under the kernel of the row's fold."""
    monkeypatch.setattr(outer_folds, "FOLDS", ((1000, 3),))
    monkeypatch.setattr(_learning, "MANY_FOLDS", 5)
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = (X[:, 0] * X[:, 1] + 0.5 * np.random.default_rng(1).normal(size=120) > 0).astype(int)
    seen = {}
    by_leave_one_out = _learning._by_leave_one_out

    def spy(model, learnt, solved):
        seen["learnt"], seen["rows"] = learnt, solved.problem.rows
        seen["scores"] = [solution.held_out for solution in _learning._under_each_kernel(learnt, solved)]
        return by_leave_one_out(model, learnt, solved)

    monkeypatch.setattr(_learning, "_by_leave_one_out", spy)
    clf = LSPC(random_state=0).fit(X, y)
    rows, learnt = seen["rows"], seen["learnt"]
    for (kernel, noise), scores in zip(learnt.of_folds, seen["scores"], strict=True):
        expected = oracles.loo_without_groups(kernel.gram(rows.X), rows.targets(), np.full(120, noise), np.arange(120))
        assert scores == pytest.approx(expected, abs=1e-6)
    assert 0.3 < log_loss(y, clf.oof_proba_) < np.log(2)
    there = LSPC(random_state=0).fit(array_api_strict.asarray(X), y)
    assert there.oof_proba_ == pytest.approx(clf.oof_proba_, abs=1e-4)


@pytest.mark.parametrize("n", [300, 1500], ids=["folds", "one held-out part"])
@pytest.mark.parametrize("Estimator", [LSPC, KernelLogisticRegression])
def test_draws_may_have_weights(Estimator, n):
    """Counts of cells are the same table as single rows; equal rows have the mean of what their copies have."""
    X, y, _ = cells(n, side=11)
    rows, place = Rows.of(X, y, np.ones(n), 2).merged()
    one = Estimator(random_state=0).fit(X, y)
    other = Estimator(random_state=0).fit(rows.X, rows.labels, rows.weight)
    assert other.predict_proba(X) == pytest.approx(one.predict_proba(X), abs=1e-6)
    both = ~np.isnan(one.oof_proba_ + other.oof_proba_[place]).any(axis=1)
    assert both.mean() > (0.99 if n == 300 else 0.01)
    assert other.oof_proba_[place][both] == pytest.approx(one.oof_proba_[both], abs=1e-6)


class TestNoise:
    """Nothing may look better than chance: new rows, ``oof_proba_`` and ``loo_proba_`` say the same."""

    @staticmethod
    def losses(model, y, weight, X_new, y_new):
        of_new = log_loss(y_new, model.predict_proba(X_new))
        return (
            of_new,
            log_loss(y, model.oof_proba_, sample_weight=weight),
            log_loss(y, model.loo_proba_, sample_weight=weight),
        )

    @pytest.mark.parametrize("Estimator", [LSPC, KernelLogisticRegression, SurfaceKernelClassifier])
    def test_survey_weights(self, Estimator):
        rng = np.random.default_rng(1)
        draw = lambda n: (rng.integers(0, [6, 2, 10], (n, 3)).astype(float), rng.integers(0, 2, n))  # noqa: E731
        (X, y), new = draw(600), draw(3000)
        weight = np.exp(0.8 * rng.normal(size=600))
        for mean in (1.0, 4.0):
            own = weight * mean / weight.mean()
            found = self.losses(Estimator(random_state=0).fit(X, y, own), y, own, *new)
            assert max(found) < 0.74 and min(found) > 0.675

    @pytest.mark.parametrize("Estimator", EVERYONE)
    def test_opinions_about_rounded_rows(self, Estimator):
        rng = np.random.default_rng(1)
        X, truth = np.repeat(np.round(rng.normal(size=(120, 5)), 1), 4, axis=0), np.repeat(rng.integers(0, 2, 120), 4)
        y = np.where(rng.random(480) < 0.9, truth, 1 - truth)
        new = np.round(rng.normal(size=(2000, 5)), 1), rng.integers(0, 2, 2000)
        found = self.losses(Estimator(random_state=0).fit(X, y), y, None, *new)
        assert max(found) < 0.74 and min(found) > 0.665

    @pytest.mark.parametrize("Estimator", [LSPC, KernelLogisticRegression])
    def test_a_second_copy_that_lacks_a_tag(self, Estimator):
        rng = np.random.default_rng(1)
        X, first = np.repeat(rng.normal(size=(150, 3)), 2, axis=0), np.repeat(rng.integers(0, 2, 150), 2)
        second = rng.integers(0, 2, 300).astype(float)
        second[1::2] = np.nan
        model = Estimator(random_state=0).fit(X, np.column_stack([first, second]))
        new_X, new = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000)
        of_new, of_left_out = log_loss(new, model.predict_proba(new_X)[:, 0]), log_loss(first, model.loo_proba_[:, 0])
        assert of_new < 0.74 and of_left_out > 0.665


class TestImportance:
    @pytest.mark.parametrize("Estimator", EVERYONE)
    def test_only_ratios_of_small_class_weights_matter(self, Estimator):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(150, 3))
        y = (X[:, 0] + 0.3 * rng.logistic(size=150) > 0).astype(int)
        small, large = (
            Estimator(random_state=0, class_weight={0: scale, 1: 0.5 * scale}).fit(X, y) for scale in (2.0**-9, 1.0)
        )
        np.testing.assert_allclose(small.predict_proba(X), large.predict_proba(X), atol=1e-12)

    def test_a_wrong_draw_costs_as_much_as_among_single_rows(self):
        """The cap of the log-loss counts draws, not merged rows, or overconfident models of counts would win."""
        rng = np.random.default_rng(1)
        X = rng.integers(0, 4, (150, 2)).astype(float)
        y = (X.sum(axis=1) % 2 == (rng.random(150) < 0.95)).astype(int)
        rows = merged(X, y)
        sure = np.where(rows.labels[:, None] == [0, 1], -99.0, 0.0)
        assert len(rows) < 40 and LogLoss()(sure, rows) == pytest.approx(np.log(2 * 151))
        new = rng.integers(0, 4, (4000, 2)).astype(float)
        labels = (new.sum(axis=1) % 2 == (rng.random(4000) < 0.95)).astype(int)
        assert log_loss(labels, KernelLogisticRegression(random_state=0).fit(X, y).predict_proba(new)) < 0.28
