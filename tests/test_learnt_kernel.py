"""The learnt kernel: its values, the gradient of leave-one-out, the outer folds, and what a fit makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from kproba import LSPC
from kproba.data.rows import Rows
from kproba.kernels import Additive, Learnt, Pairs
from kproba.search.learnt.objective import LeaveOneOut, Objective
from kproba.search.learnt.outer_folds import LEAST_ROWS, learn, n_folds
from kproba.search.learnt.parameters import Layout


def table(n, d, c=2, seed=0, tags=False):
    """Continuous, two-valued and constant columns; rows with equal inputs and other labels; weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, d // 2] = rng.integers(0, 2, n)
    if d > 2:
        X[:, -1] = 1.0
    X[1] = X[0]
    labels = rng.integers(0, 2, (n, c)).astype(float) if tags else np.arange(n) % c
    return Rows.of(X, labels, rng.integers(1, 4, n).astype(float), c)


def waves(n, d, seed=0):
    """Two classes that depend on the first of d columns alone, and a tenth of the labels is wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (np.sin(4.0 * X[:, 0]) > 0) ^ (rng.random(n) < 0.1)
    return X, y.astype(int)


class TestKernel:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 5), st.integers(0, 10_000), st.booleans())
    def test_equals_the_sums_written_out(self, d, seed, two_valued):
        rng = np.random.default_rng(seed)
        X, Z = (rng.integers(0, 2, (n, d)).astype(float) if two_valued else rng.normal(size=(n, d)) for n in (7, 5))
        kernel = Learnt(*(tuple(rng.uniform(0.1, 3.0, size).tolist()) for size in (d, 3, 4)))
        expected = oracles.learnt_kernel(X, Z, kernel.weights, kernel.widths, kernel.mixture)
        assert kernel(X, Z) == pytest.approx(expected, abs=1e-12)
        assert kernel(X.astype(np.float32), Z.astype(np.float32)) == pytest.approx(expected, abs=1e-5)
        gram = kernel.gram(Z)
        assert gram == pytest.approx(oracles.learnt_kernel(Z, Z, kernel.weights, kernel.widths, kernel.mixture))
        assert np.linalg.eigvalsh(gram)[0] > -1e-10

    def test_named_kernels_are_terms_with_equal_weights(self):
        rng = np.random.default_rng(0)
        X, Z = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
        for place, kernel in ((2, Additive(width=1.7)), (3, Pairs(width=1.7))):
            mixture = tuple(float(i == place) for i in range(4))
            assert kernel(X, Z) == pytest.approx(Learnt((1.0,) * 3, (1.0, 1.0, 1.7), mixture)(X, Z))

    @pytest.mark.parametrize("name", ["additive", "pairs"])
    def test_names_select_a_width(self, name):
        X, y = waves(60, 2)
        clf = LSPC(kernel=name, random_state=0).fit(X, y)
        assert clf.kernel_.name == name and clf.width_ > 0
        assert np.mean(clf.loo_proba_.argmax(axis=1) == y) > 0.7

    def test_pairs_need_two_columns(self):
        with pytest.raises(ValueError, match="kernel='pairs' needs at least two columns"):
            LSPC(kernel="pairs").fit(np.arange(20.0)[:, None], np.arange(20) % 2)

    @pytest.mark.parametrize(
        "bad", [{"weights": ()}, {"weights": (1.0, -1.0)}, {"widths": (1.0, 1.0, np.inf)}, {"mixture": (1.0,)}]
    )
    def test_refuses_parameters_that_are_not_positive(self, bad):
        with pytest.raises(ValueError, match=f"Learnt: {next(iter(bad))} must be"):
            Learnt(**{"weights": (1.0,), "widths": (1.0,) * 3, "mixture": (1.0,) * 4, **bad})


class TestGradient:
    @settings(max_examples=20, deadline=None)
    @given(st.integers(2, 30), st.integers(1, 12), st.integers(0, 10_000))
    def test_leave_one_out_equals_refits_without_the_group(self, n, k, seed):
        rng = np.random.default_rng(seed)
        A, Y, noise = rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), rng.uniform(0.1, 2.0, n)
        K, groups = A @ A.T, np.arange(n) % max(2, k)
        blocks = [np.flatnonzero(groups == g) for g in np.unique(groups)]
        found = LeaveOneOut.of(K + np.diag(noise), Y, blocks).scores
        assert found == pytest.approx(oracles.loo_without_groups(K, Y, noise, groups), abs=1e-8)
        single = LeaveOneOut.of(K + np.diag(noise), Y).scores
        assert single == pytest.approx(oracles.loo_without_groups(K, Y, noise, np.arange(n)), abs=1e-8)

    @pytest.mark.parametrize(
        ("d", "c", "tags", "grouped"),
        [(4, 3, False, False), (1, 2, False, False), (3, 4, True, False), (3, 3, False, True), (130, 2, False, False)],
        ids=["classes", "one column", "tags", "groups", "many columns"],
    )
    def test_equals_differences(self, d, c, tags, grouped):
        rows = table(24, d, c, tags=tags)
        layout = Layout(d, 0 if tags else c)
        x = 0.3 * np.random.default_rng(1).normal(size=sum(layout.sizes.values()))
        objective = Objective(rows, np.zeros_like(x), layout, len(rows))
        objective.load(np.arange(len(rows)), np.arange(len(rows)) // 3 if grouped else None)
        slopes = oracles.slopes_by_differences(lambda at: objective(at)[0], x, 1e-2)
        assert objective(x)[1] == pytest.approx(slopes, abs=3e-5)  # values are float32


class TestLearning:
    def test_finds_the_column_that_matters(self):
        X, y = waves(400, 6)
        clf = LSPC(random_state=0).fit(X, y)
        assert clf.kernel_.name == "learnt"
        assert clf.feature_importances_.argmax() == 0 and clf.feature_importances_[0] > 0.5
        assert clf.feature_importances_.sum() == pytest.approx(1.0)
        plain = LSPC(kernel="laplacian", random_state=0).fit(X, y)
        X_new, y_new = waves(1000, 6, seed=1)
        losses = [-np.log(each.predict_proba(X_new)[np.arange(1000), y_new]).mean() for each in (clf, plain)]
        assert losses[0] < 0.8 * losses[1]

    def test_noise_looks_no_better_than_chance(self):
        rng = np.random.default_rng(0)
        losses = []
        for seed in range(4):
            X, y = rng.normal(size=(150, 8)), rng.integers(0, 2, 150)
            clf = LSPC(random_state=seed).fit(X, y)
            losses.append(-np.log(clf.oof_proba_[np.arange(150), y]).mean())
        assert np.mean(losses) > np.log(2) - 0.01

    def test_out_of_fold_models_never_saw_their_rows(self):
        """Other labels in a fold change the probabilities of that fold by nothing but the link's temperature."""
        X, y = waves(160, 2)
        rows = Rows.of(X, y, np.ones(160), 2)
        before = learn(rows, 0)
        fold = before.fold == 0
        after = learn(Rows.of(X, np.where(fold, y[::-1], y), np.ones(160), 2), 0)
        same = [i for i in range(n_folds(160)) if before.of_folds[i] == after.of_folds[i]]
        assert (after.fold == before.fold).all() is not None and len(same) <= 1

    @pytest.mark.parametrize("change", ["order", "copies"])
    def test_depends_neither_on_the_order_of_rows_nor_on_copies(self, change):
        X, y = waves(130, 3)
        clf = LSPC(random_state=0).fit(X, y)
        if change == "order":
            order = np.random.default_rng(0).permutation(130)
            other = LSPC(random_state=0).fit(X[order], y[order])
        else:
            twice = np.r_[np.arange(130), np.arange(40)]
            other = LSPC(random_state=0).fit(X[twice], y[twice])
            clf = LSPC(random_state=0).fit(X, y, np.bincount(twice))
        assert other.predict_proba(X) == pytest.approx(clf.predict_proba(X), abs=1e-9)
        assert other.kernel_ == clf.kernel_

    def test_few_rows_keep_the_plain_search(self):
        X, y = waves(LEAST_ROWS - 1, 2)
        clf = LSPC(random_state=0).fit(X, y)
        assert clf.kernel_.name in ("gaussian", "laplacian") and not hasattr(clf, "oof_proba_")

    def test_awkward_columns(self):
        X, y = waves(120, 3)
        X[:, 1], X[:, 2] = 7.0, np.arange(120) == 5
        X[3:6] = X[2]
        clf = LSPC(random_state=0).fit(X, np.where(np.arange(120) == 5, 2, y))  # a class of one row
        assert clf.oof_proba_.shape == (120, 3) and np.isfinite(clf.oof_proba_).all()
        assert clf.feature_importances_[1] == 0.0
