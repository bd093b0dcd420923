"""The learnt kernel: its values, the gradient of leave-one-out, the outer folds, and what a fit makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import clone, config_context
from sklearn.model_selection import GroupKFold, cross_val_score

import oracles
from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier, threads
from kproba.data.folds import stratified_folds
from kproba.data.rows import Rows
from kproba.exceptions import FewRowsWarning
from kproba.kernels import Additive, Learnt, Pairs
from kproba.kernels.additive import additive_sums
from kproba.problems import local
from kproba.search import pose
from kproba.search.learnt import many_rows, outer_folds, pairs, steps
from kproba.search.learnt.matches import Matches
from kproba.search.learnt.objective import Objective
from kproba.search.learnt.outer_folds import LEAST_ROWS
from kproba.search.learnt.parameters import Layout, rounded
from kproba.search.learnt.sample import LeaveOneOut, Sample
from kproba.search.losses import CalibratedLogLoss
from kproba.solvers import unlocked


@pytest.fixture(scope="module", autouse=True)
def more_steps(few_steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outer_folds, "MARKS", (20, 30, 40, 60))
        patch.setattr(outer_folds, "FOLDS", ((1000, 4),))
        patch.setattr(outer_folds, "FIT_ROWS", 200)
        patch.setattr(steps, "SAMPLE_ROWS", 250)
        patch.setattr(steps, "WARM_UP", 20)
        patch.setattr(steps, "STEP", 0.12)
        patch.setattr(steps, "REFINE_ROWS", 200)
        patch.setattr(steps, "REFINE_STEPS", 12)
        patch.setattr(steps, "CHAIN_ROWS", 200)
        patch.setattr(steps, "CHAIN_STEPS", 10)
        patch.setattr(many_rows, "LARGE_SAMPLE", 400)
        yield


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


def held_out_probabilities(clf):
    return [getattr(clf, name) for name in ("oof_proba_", "loo_proba_") if hasattr(clf, name)]


class TestKernel:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 10_000), st.sampled_from([np.float64, np.float32]), st.sampled_from([1e-6, 1e-2, 1, 30, 1e4]))
    def test_sums_of_columns_at_all_rates(self, seed, dtype, rate):
        """Very sharp kernels, rows far outside the centres, ties, and columns with a single other value."""
        rng = np.random.default_rng(seed)
        Z, X = rng.normal(size=(9, 4)).astype(dtype), rng.normal(size=(40, 4)).astype(dtype)
        Z[:, 1], Z[4, 1], Z[:, 3] = 2.0, 1e6, np.round(Z[:, 3])
        X[:9], X[10], X[11], X[12, 0], X[13] = Z, 1e6, -1e6, 1e30, Z[0] + 1e-3
        rates, share = (rate * rng.uniform(0.5, 2.0, 4)).astype(dtype), rng.dirichlet(np.ones(4))
        total, squares = np.empty((2, 40, 9), dtype)
        additive_sums(Z, rates, share)(X, total, squares)
        distances = np.abs(X[:, None].astype(np.float64) - Z) * rates.astype(np.float64)
        expected = share * np.exp(-distances)
        # a rounding error of a distance is a relative error of its exponential
        error = np.finfo(dtype).eps * (8 + 4 * np.minimum(distances, 30).max() + 4 * np.abs(Z * rates).max())
        np.testing.assert_allclose(total, expected.sum(axis=2), rtol=error, atol=error)
        np.testing.assert_allclose(squares, (expected**2).sum(axis=2), rtol=2 * error, atol=error)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("n_two_valued", [0, 3, 20])
    def test_tiles_and_threads_share_no_buffer(self, dtype, n_two_valued, monkeypatch):
        """Tiles of a few rows, the last of which is smaller, on several threads."""
        monkeypatch.setattr(threads, "TILE_BYTES", 1 << 10)
        rng = np.random.default_rng(n_two_valued)
        X, Z = (
            np.hstack([rng.normal(size=(n, 4)), rng.integers(0, 2, (n, n_two_valued))]).astype(dtype) for n in (331, 17)
        )
        Z[3], X[5] = Z[2], Z[2]
        kernel = Learnt(tuple(rng.uniform(0.1, 1.0, X.shape[1]).tolist()), (1.0, 2.0, 3.0), (0.4, 0.3, 0.2, 0.1))
        expected = oracles.learnt_kernel(X, Z, kernel.weights, kernel.widths, kernel.mixture)
        for workers in (1, 4):
            found = kernel(X, Z, workers)
            assert found.dtype == dtype
            assert found == pytest.approx(expected, abs=1e-12 if dtype is np.float64 else 3e-6)
        np.testing.assert_array_equal(kernel(X, Z, 1), kernel(X, Z, 4))

    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 5), st.integers(0, 10_000), st.booleans(), st.booleans())
    def test_equals_the_sums_written_out(self, d, seed, two_valued, of_their_own):
        rng = np.random.default_rng(seed)
        X, Z = (rng.integers(0, 2, (n, d)).astype(float) if two_valued else rng.normal(size=(n, d)) for n in (7, 5))
        factors = tuple(map(tuple, rng.uniform(0.1, 3.0, (3, d)).tolist())) if of_their_own else ()
        parts = *(tuple(rng.uniform(0.1, 3.0, size).tolist()) for size in (d, 3, 4)), factors
        kernel, expected = Learnt(*parts), oracles.learnt_kernel(X, Z, *parts)
        assert kernel(X, Z) == pytest.approx(expected, abs=1e-12)
        assert kernel(X.astype(np.float32), Z.astype(np.float32)) == pytest.approx(expected, abs=1e-5)
        gram = kernel.gram(Z)
        assert gram == pytest.approx(oracles.learnt_kernel(Z, Z, *parts))
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

    @pytest.mark.parametrize(
        "factors",
        [
            ((1.0,),),
            ((1.0,),) * 2 + ((1.0, 1.0),),
            ((1.0,), (0.0,), (1.0,)),
            [[1.0]] * 3,
            np.ones((3, 1)),
            (1.0,) * 3,
            (("1",),) * 3,
            5,
        ],
    )
    def test_refuses_factors_that_are_not_those_of_the_columns(self, factors):
        with pytest.raises(ValueError, match="Learnt: factors must be three tuples of 1 positive numbers each"):
            Learnt((1.0,), (1.0,) * 3, (1.0,) * 4, factors)

    @pytest.mark.parametrize("extreme", [1e-200, 1e200])
    @pytest.mark.filterwarnings("error")
    def test_refuses_factors_whose_products_with_the_weights_are_zero_or_infinite(self, extreme):
        with pytest.raises(ValueError, match="Learnt: weights times factors are too large or too small"):
            Learnt((extreme,), (1.0,) * 3, (1.0,) * 4, ((extreme,),) * 3)

    def test_parameters_may_be_whole_numbers(self):
        X = np.random.default_rng(0).normal(size=(4, 2))
        found = Learnt((1, 2), (1, 1, 1), (1, 0, 0, 0), ((1, 3),) * 3)(X, X)
        assert found == pytest.approx(oracles.learnt_kernel(X, X, (1, 6), (1, 1, 1), (1, 0, 0, 0)))

    def test_resolution_of_columns_follows_the_mixture(self):
        """Local models split the column that the heaviest terms resolve most finely."""
        factors = ((1.0, 1.0), (4.0, 1.0), (1.0, 2.0))
        for mixture, expected in (((1.0, 0.0, 0.0, 0.0), (1.0, 2.0)), ((1.0, 1.0, 1.0, 1.0), (1.75, 3.0))):
            found = Learnt((1.0, 2.0), (1.0,) * 3, mixture, factors).column_weights(2)
            assert found == pytest.approx(expected)
        assert Learnt((1.0, 2.0), (1.0,) * 3, (0.0,) * 4).column_weights(2).tolist() == [1.0, 2.0]

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
    @pytest.mark.parametrize("block", [1 << 18, 100], ids=["one block", "small blocks"])
    def test_equals_differences(self, d, c, tags, grouped, block, monkeypatch):
        monkeypatch.setattr(pairs, "BLOCK", block)
        rows = table(24, d, c, tags=tags)
        layout = Layout(d, 0 if tags else c)
        x = 0.3 * np.random.default_rng(1).normal(size=sum(layout.sizes.values()))
        layout.split(x)["weights"][:] -= np.log(max(d / 4, 1.0))  # or rows of many columns have nothing in common
        rows = replace(rows, together=np.arange(len(rows)) // 3) if grouped else rows
        objective = Objective(rows, np.zeros_like(x), layout, len(rows))
        objective.load(np.arange(len(rows)))
        slopes = oracles.slopes_by_differences(lambda at: objective(at)[0], x, 1e-2)
        assert all(np.abs(slope).max() > 1e-5 for slope in layout.split(slopes).values() if len(slope))
        assert objective(x)[1] == pytest.approx(slopes, abs=3e-5)  # values are float32

    @pytest.mark.parametrize("m", [2, 23, 24])
    def test_scores_of_codes_and_two_values_equal_refits(self, m):
        rows = replace(table(24, 5, 3), categorical=(0, 3))
        rows.X[:, [0, 3]] = np.random.default_rng(0).integers(0, [2, 6], (24, 2))
        layout = Layout(5, 3, rows.categorical)
        part = layout.split(0.3 * np.random.default_rng(1).normal(size=sum(layout.sizes.values())))
        sample, kernel = Sample(m, layout), layout.kernel(layout.join(part))
        part = layout.split(rounded(layout.join(part)))  # as the kernel has them
        X, Y, noise = rows.X[:m], rows.targets()[:m], np.exp(part["noise"]) / rows.weight[:m]
        sample.load(X, Y, rows.weight[:m], None)
        expected = oracles.loo_without_groups(kernel.gram(X), Y, noise, np.arange(m))
        assert sample.scores(part) == pytest.approx(expected, abs=1e-5)

    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 5), st.integers(0, 10_000))
    def test_columns_of_few_values_are_products(self, m, d, k, seed):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, k, (m, d)).astype(np.float32)
        matches, c, V = Matches(X, tuple(range(0, d, 2))), rng.normal(size=d), np.triu(rng.normal(size=(m, m)), 1)
        differ = X[:, None] != X
        assert set(matches.places) >= set(range(0, d, 2))
        assert all(len(np.unique(X[:, j])) > 2 for j in set(range(d)) - set(matches.places))
        found, at = matches.sums(c[matches.places], np.empty((m, m))), matches.places
        assert found[np.triu_indices(m, 1)] == pytest.approx((differ[..., at] @ c[at])[np.triu_indices(m, 1)])
        assert matches.totals(V) == pytest.approx(np.einsum("il,ilj->j", V, differ[..., at]))
        apart = np.abs(X[:, None] - X)[..., at]
        apart[..., np.isin(at, range(0, d, 2))] = differ[..., at[at % 2 == 0]]
        assert (apart == differ[..., at] * matches.gap).all()

    @settings(max_examples=50, deadline=None)
    @given(
        st.lists(st.sampled_from(["normal", "two", "many"]), min_size=1, max_size=4),
        st.sampled_from([0.0, 1.0, 1e4, 1e8]),
        st.sampled_from([0.0, 1.0, 1e8]),
        st.integers(0, 10_000),
    )
    def test_values_of_columns_far_from_zero(self, kinds, far, gap, seed):
        """Constants and two values that are far from zero or far apart do not disturb other columns."""
        rng, m = np.random.default_rng(seed), 20
        columns = {
            "normal": lambda: rng.normal(size=m),
            "two": lambda: far + gap * rng.integers(0, 2, m),
            "many": lambda: rng.integers(0, 5, m) + min(far, 1e4),
        }
        X = np.column_stack([columns[kind]() for kind in kinds]).astype(np.float32)
        sample, zeros, widths = pairs.SamplePairs(m, len(kinds), True), np.zeros((3, len(kinds))), np.log([0.5] * 3)
        sample.load(X)
        found = [np.triu(sample.put(each, np.zeros((m, m))), 1) for each in sample.values(zeros, widths).each]
        for which in range(4 if len(kinds) > 1 else 3):
            mixture = tuple(float(which == k) for k in range(4))
            expected = oracles.learnt_kernel(*[X.astype(float)] * 2, (1.0,) * len(kinds), (2.0,) * 3, mixture)
            assert found[which] == pytest.approx(np.triu(expected, 1), abs=1e-5)

    @settings(max_examples=25, deadline=None)
    @given(
        st.one_of(st.integers(1, 30), st.integers(60, 70), st.integers(120, 300)),
        st.integers(1, 4),
        st.integers(0, 10_000),
    )
    def test_lapack_without_the_lock(self, m, c, seed):
        rng = np.random.default_rng(seed)
        A, Y = rng.normal(size=(m, m)), rng.normal(size=(m, c))
        G = A @ A.T + np.eye(m)
        assert unlocked.solve(np.triu(G), Y) == pytest.approx(np.linalg.solve(G, Y))
        inverse = unlocked.inverse(np.triu(G))
        assert inverse == pytest.approx(np.linalg.inv(G)) and (inverse == inverse.T).all()
        unlocked.add_gram(np.ascontiguousarray(Y.T), -2.0, C := np.triu(G))
        assert pytest.approx(np.triu(G - 2.0 * Y @ Y.T)) == C
        lower = unlocked.factor(np.triu(G))
        assert np.tril(lower) == pytest.approx(np.linalg.cholesky(G))
        assert unlocked.solve_factored(lower, Y) == pytest.approx(np.linalg.solve(G, Y))
        assert unlocked.solve_lower(lower, Y.T.copy()) == pytest.approx(np.linalg.solve(np.tril(lower), Y).T)
        assert unlocked.diagonal_of_inverse(lower) == pytest.approx(np.diagonal(np.linalg.inv(G)))
        assert unlocked.factor(-np.eye(m)) is None
        for function in (unlocked.inverse, lambda G: unlocked.solve(G, Y)):
            with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
                function(-np.eye(m))
            with pytest.raises(ValueError, match="rows of float64"):
                function(np.eye(m, dtype=np.float32))


class TestLearning:
    def test_finds_the_column_that_matters(self):
        X, y = waves(300, 6)
        clf = LSPC(random_state=0).fit(X, y)
        assert clf.kernel_.name == "learnt"
        assert clf.feature_importances_.argmax() == 0 and clf.feature_importances_[0] > 0.5
        assert clf.feature_importances_.sum() == pytest.approx(1.0)
        plain = LSPC(kernel="laplacian", random_state=0).fit(X, y)
        X_new, y_new = waves(1000, 6, seed=1)
        losses = [-np.log(each.predict_proba(X_new)[np.arange(1000), y_new]).mean() for each in (clf, plain)]
        assert losses[0] < 0.9 * losses[1]

    def test_noise_looks_no_better_than_chance(self):
        rng = np.random.default_rng(0)
        losses = []
        for seed in range(4):
            X, y = rng.normal(size=(150, 8)), rng.integers(0, 2, 150)
            clf = LSPC(random_state=seed).fit(X, y)
            losses.append(-np.log(clf.oof_proba_[np.arange(150), y]).mean())
        assert np.mean(losses) > np.log(2) - 0.01

    def test_the_labels_of_a_fold_do_not_change_its_kernel(self):
        X, y = waves(130, 2)
        held_out = np.arange(20)
        other = np.where(np.arange(130) < 20, 1 - y, y)
        runs = [outer_folds.Run(Rows.of(X, labels, np.ones(130), 2), held_out, 0) for labels in (y, other)]
        threads.run_in_turns([run.advance(30) for run in runs], workers=2)
        (before, _, loss), (after, _, other_loss) = (run.found for run in runs)
        assert (before == after).all() and (loss != other_loss).all()

    def test_equally_good_numbers_of_steps_share_the_say(self):
        seen = np.array([[[0.0]], [[1.0]], [[4.0]]])
        assert outer_folds.mean_over_marks(seen, np.array([0.5, 0.5, 0.9]), 1000) == pytest.approx(0.5)
        assert outer_folds.mean_over_marks(seen, np.array([0.5, 0.4, np.inf]), 1000) == pytest.approx(1.0)

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
        with pytest.warns(FewRowsWarning):
            clf = LSPC(random_state=0).fit(X, np.where(np.arange(120) == 5, 2, y))  # a class of one row
        assert clf.oof_proba_.shape == (120, 3) and np.isfinite(clf.oof_proba_).all()
        assert clf.feature_importances_[1] == 0.0


class TestGroups:
    """Copies of a patient with noise: leave-one-out sees the copies of a row, leave-group-out does not."""

    @pytest.fixture
    def patients(self):
        rng = np.random.default_rng(0)
        patient = np.repeat(np.arange(40), 4)
        X = rng.normal(size=(40, 4))[patient] + 0.02 * rng.normal(size=(160, 4))
        return X, rng.permutation(np.arange(40) % 2)[patient], patient

    @pytest.mark.parametrize(
        "estimator",
        [LSPC(loo=True), KernelLogisticRegression(loo=True), ImportVectorMachine(), SurfaceKernelClassifier(loo=True)],
        ids=lambda estimator: type(estimator).__name__,
    )
    @pytest.mark.parametrize("kernel", ["auto", "gaussian"])
    def test_noise_that_repeats_looks_no_better_than_chance(self, patients, estimator, kernel):
        X, y, patient = patients
        fitted = clone(estimator).set_params(kernel=kernel, random_state=0).fit(X, y, groups=patient)
        losses = [-np.log(proba[np.arange(160), y]).mean() for proba in held_out_probabilities(fitted)]
        # the searched width and column weights of a surface were chosen by loo_proba_
        chosen_too = isinstance(estimator, SurfaceKernelClassifier) and kernel == "gaussian"
        assert min(losses) > (0.6 if chosen_too else 0.65)

    def test_without_groups_it_looks_certain(self, patients):
        X, y, _ = patients
        alone = LSPC(random_state=0).fit(X, y)
        assert max(-np.log(proba[np.arange(160), y]).mean() for proba in held_out_probabilities(alone)) < 0.1

    def test_groups_stay_in_one_fold(self, patients):
        X, y, patient = patients
        fold = stratified_folds(Rows.of(X, y, np.ones(160), 2, together=patient), 5, 0)
        assert all(len(np.unique(fold[patient == g])) == 1 for g in range(40)) and len(np.unique(fold)) == 5
        shares = [y[fold == f].mean() for f in range(5)]
        assert np.ptp(shares) < 0.4

    def test_metadata_routing(self, patients):
        X, y, patient = patients
        with config_context(enable_metadata_routing=True):
            model = LSPC(kernel="gaussian", random_state=0).set_fit_request(groups=True)
            scores = cross_val_score(model, X, y, cv=GroupKFold(3), params={"groups": patient}, scoring="neg_log_loss")
        assert np.isfinite(scores).all()

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            (np.zeros(149), r"groups must have shape \(160,\)"),
            (np.zeros(160), "all rows into one group"),
            ([None, *range(159)], "missing values"),
        ],
    )
    def test_bad_groups_are_refused(self, patients, groups, message):
        with pytest.raises(ValueError, match=message):
            LSPC().fit(*patients[:2], groups=groups)

    def test_sources_are_refused(self, patients):
        X, y, patient = patients
        with pytest.raises(ValueError, match="groups needs all rows in memory"):
            LSPC().fit(X, y, groups=patient, classes=[0, 1, 2])


class TestManyRows:
    @pytest.mark.parametrize("step", [1, 3])
    def test_leave_one_out_equals_refits(self, step):
        rows, kernel = table(30, 3), Learnt((1.0, 0.5, 0.2), (1.0, 1.0, 1.0), (0.5, 0.5, 0.2, 0.2))
        X, Y, centers = rows.X, rows.targets(), np.setdiff1d(np.arange(0, 30, step), [1])  # equal to the first row
        phi, penalty = kernel(X, X[centers]), kernel.gram(X[centers])
        scores = np.empty_like(Y)
        for i in range(30):
            kept = np.arange(30) != i
            coef = oracles.ridge_solution(phi[kept], Y[kept], rows.weight[kept], penalty, 0.3 / rows.weight[kept].sum())
            scores[i] = phi[i] @ coef
        found = many_rows.leave_one_out_loss(kernel, 0.3, rows, centers)
        assert found == pytest.approx(CalibratedLogLoss()(scores, rows), rel=1e-4)
        if step == 1:
            assert many_rows.leave_one_out_loss(kernel, 0.3, rows) == pytest.approx(found, rel=1e-4)

    @pytest.mark.parametrize(("n_waves", "height", "is_sharp"), [(40, 100.0, True), (1, 0.4, False)])
    def test_sharp_kernels_want_all_rows_as_centres(self, n_waves, height, is_sharp, monkeypatch):
        monkeypatch.setattr(outer_folds, "MANY_ROWS", 300)
        monkeypatch.setattr(pose, "ALL_ROWS", 200)
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(600, 1))
        y = (height * np.sin(n_waves * 2 * np.pi * X[:, 0]) > rng.uniform(-0.5, 0.5, 600)).astype(int)
        assert outer_folds.learn(Rows.of(X, y, np.ones(600), 2), 0).is_sharp == is_sharp
        clf = LSPC(random_state=0).fit(X, y)
        assert len(clf.coef_) == 600
        assert np.mean(clf.oof_proba_.argmax(axis=1) == y) > 0.65

    @pytest.mark.parametrize("ratio", [0.01, 1.0, 100.0])
    @pytest.mark.parametrize(("noise", "is_cheap"), [(1e-3, True), (1e-5, False)])
    def test_the_unit_of_weights_does_not_decide_about_float32(self, ratio, noise, is_cheap):
        X, layout = np.random.default_rng(0).normal(size=(300, 2)), Layout(2, 2)
        rows = Rows.of(X, np.arange(300) % 2, np.full(300, ratio), 2)
        x = layout.start(X, 1.0) + layout.join({"widths": -3.0})
        layout.split(x)["noise"][:] = np.log(noise * ratio * 300)
        assert many_rows.ManyRows(rows, layout, 0).is_cheap(x) == is_cheap

    @pytest.mark.parametrize("is_dense", [True, False])
    def test_one_system_of_all_rows_may_be_better_than_local_models(self, is_dense, monkeypatch):
        """Where rows are alike in many columns, regions of one of them know too little."""
        monkeypatch.setattr(many_rows, "COMPARED_ROWS", 400)
        monkeypatch.setattr(local, "REGION_ROWS", 30 if is_dense else 100)
        monkeypatch.setattr(local, "SHARED_CENTERS", 2 if is_dense else 20)
        rng = np.random.default_rng(0)
        d = 12 if is_dense else 1
        y = rng.integers(6, size=400)
        apart = rng.normal(size=(6, d))[y] if is_dense else y[:, None]
        X = apart + (1.0 if is_dense else 0.1) * rng.normal(size=(400, d))
        rows, layout = Rows.of(X, y, np.ones(400), 6), Layout(d, 6)
        assert many_rows.ManyRows(rows, layout, 0).beats_regions(layout.start(X, 1.0)) == is_dense


@pytest.mark.parametrize("seed", range(3))
def test_float32_rows_learn_the_kernel_of_float64_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=150) > 0).astype(int)
    double, single = (LSPC(random_state=0).fit(X.astype(dtype), y) for dtype in (np.float64, np.float32))
    assert np.abs(double.predict_proba(X) - single.predict_proba(X.astype(np.float32))).max() < 1e-5
    assert np.abs(double.oof_proba_ - single.oof_proba_).max() < 1e-5
