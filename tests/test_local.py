"""Local models: regions that overlap, one exact model in each, and scores without seams."""

import pickle
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import log_loss

import kproba
import oracles
from kproba import LSPC, Gaussian, KernelLogisticRegression, Laplacian
from kproba.basis.basis import Basis
from kproba.basis.centers import Centers
from kproba.basis.local_basis import LocalBasis
from kproba.basis.local_moments import LocalMoments, LocalMomentsOf
from kproba.basis.regions import Regions
from kproba.data import collected
from kproba.data.encoding import Encoding
from kproba.data.rows import Rows
from kproba.data.sources import Chunk
from kproba.estimators import _learning, _reading
from kproba.persist.audit import check
from kproba.problems import local
from kproba.problems.least_squares import LeastSquares
from kproba.problems.local import JudgedBySample, LocalProblem
from kproba.problems.local_sums import SummedLocalProblem
from kproba.search.learnt import many_rows, outer_folds
from strategies import tables


@pytest.fixture(autouse=True, scope="module")
def small_regions():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "REGION_ROWS", 60)
        patch.setattr(local, "SHARED_CENTERS", 20)
        yield


def waves(n: int, seed: int = 0, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Stripes that a kernel has to resolve finely along the first column."""
    random = np.random.default_rng(seed)
    X = random.uniform(0, 1, (n, 3)) * [1.0, 0.3, 0.3]
    return X, ((np.sin(20 * X[:, 0]) > 0) ^ (random.random(n) < noise)).astype(int)


def fitted(n: int = 400, **params) -> tuple[LSPC, np.ndarray, np.ndarray]:
    X, y = waves(n)
    fixed = {"kernel": "laplacian", "width": 0.3, "ridge": 1e-3, "scaling": None}
    params = {**fixed, "centers": "local", "random_state": 0, **params}
    return LSPC(**params).fit(X, y), X, y


class TestRegions:
    @given(tables(rows=(4, 40), columns=(1, 3)), st.integers(2, 10))
    def test_weights_sum_to_one_and_no_region_is_too_large_unless_its_rows_are_equal(self, table, most):
        X = np.unique(table.X, axis=0)
        regions = Regions.of(X, np.ones(X.shape[1]), most)
        total, sizes = np.zeros(len(X)), []
        for where, gate in regions.inside(X):
            assert (gate > 0).all()
            total[where] += gate
            sizes.append(len(where))
        np.testing.assert_allclose(total, 1.0, rtol=0, atol=1e-12)
        assert len(sizes) == regions.n_regions == len(regions.paths())
        assert min(sizes) > 0

    def test_rows_are_split_evenly_and_overlap(self):
        X = np.random.default_rng(1).uniform(size=(1000, 3))
        sizes = [len(where) for where, _ in Regions.of(X, np.ones(3), 100).inside(X)]
        assert max(sizes) <= 100 < 2.2 * min(sizes)
        assert 1.2 * len(X) < sum(sizes) < 2 * len(X)

    @given(st.integers(0, 100))
    def test_the_order_of_the_rows_does_not_matter(self, seed):
        X = np.random.default_rng(1).uniform(size=(80, 3)).round(2)
        one, two = (Regions.of(Z, np.ones(3), 10) for Z in (X, np.random.default_rng(seed).permutation(X)))
        for name in ("column", "low", "high", "children"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))

    def test_columns_of_large_weight_are_split_and_those_of_weight_zero_or_codes_never(self):
        X = np.random.default_rng(1).uniform(size=(500, 3))
        assert set(Regions.of(X, np.array([9.0, 1.0, 0.0]), 100).column) == {0}
        assert set(Regions.of(X, np.array([9.0, 1.0, 1.0]), 50, categorical=(0,)).column) == {1, 2}

    def test_equal_rows_and_two_valued_columns(self):
        assert Regions.of(np.ones((50, 2)), np.ones(2), 10).n_regions == 1
        X = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 5, axis=0)
        regions = Regions.of(X, np.ones(2), 5)
        assert regions.n_regions == 4
        assert [len(where) for where, _ in regions.inside(X)] == [5] * 4

    def test_weights_change_smoothly(self):
        regions = Regions.of(waves(300)[0], np.ones(3), 60)
        line = np.linspace([0, 0.3, 0.5], [1, 0.3, 0.5], 20_001)
        gates = np.zeros((regions.n_regions, len(line)))
        for own, (where, gate) in zip(gates, regions.inside(line)):
            own[where] = gate
        assert np.abs(np.diff(gates)).max() < 0.01

    def test_paths_lead_to_the_regions(self):
        X = waves(200)[0]
        regions = Regions.of(X, np.ones(3), 30)
        for path, (where, gate) in zip(regions.paths(), regions.inside(X)):
            shares = [regions._share_of_second_child(split, X[where, regions.column[split]]) for split, _ in path]
            own = np.prod([share if side else 1 - share for share, (_, side) in zip(shares, path)], axis=0)
            np.testing.assert_allclose(gate, own, rtol=1e-12)


def posed(X, y, weight=None, kernel=None) -> LocalProblem:
    weight = np.ones(len(y)) if weight is None else weight
    rows = Rows.of(X, y, weight, int(y.max()) + 1).merged()[0]
    make = lambda rows, basis, seed: LeastSquares(rows, basis, rkhs=True)  # noqa: E731
    return LocalProblem.of(rows, kernel or Laplacian(width=1.0), make, 0, 1)


class TestProblem:
    @given(tables(rows=(8, 30), weights=("none", "counts")), st.sampled_from([0.05, 1.0]), st.sampled_from([1, 4, 99]))
    def test_scores_and_leave_one_out_are_those_of_refits(self, table, noise, shared):
        table = table.counted
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(local, "REGION_ROWS", 6)
            patch.setattr(local, "SHARED_CENTERS", shared)
            problem, kernel = posed(*table), Laplacian(width=1.0)
        (solution,) = problem.path([noise / table.weight.sum()])
        X, y, _ = table.repeated
        Y, where = np.eye(table.n_classes)[y], (kernel, problem.regions, problem.shared)
        expected = oracles.local_scores(*where, X, Y, noise, table.X)
        np.testing.assert_allclose(problem.basis.scores(table.X, solution.coef()), expected, rtol=0, atol=1e-9)
        loo = oracles.local_leave_one_out(*where, X, Y, noise)
        place = Rows.of(*table, table.n_classes).merged()[1]
        first = np.concatenate([[0], np.cumsum(table.weight.astype(int))[:-1]])
        np.testing.assert_allclose(solution.held_out[place], loo[first], rtol=0, atol=1e-8)
        alone = oracles.local_leave_one_out(*where, X, Y, noise, with_copies=True)
        np.testing.assert_allclose(solution.without_copies()[place], alone[first], rtol=0, atol=1e-8)

    def test_features_give_the_scores(self):
        X, y = waves(200)
        problem = posed(X, y)
        (solution,) = problem.path([1e-3])
        coef = solution.coef()
        assert problem.basis.n_centers == len(coef) > len(X)
        np.testing.assert_allclose(problem.basis(X[:20]) @ coef, problem.basis.scores(X[:20], coef), atol=1e-12)

    def test_ridges_and_rows_of_leave_one_out(self):
        X, y = waves(150)
        problem = posed(X, y)
        many = list(problem.path([1e-2, 1e-3, 1e-4, 1e-5]))
        (one,) = problem.path([1e-4], loo_rows=np.array([3, 7]))
        np.testing.assert_allclose(many[2].held_out[[3, 7]], one.held_out, rtol=0, atol=1e-9)
        assert next(problem.path([1e-4], loo=False)).held_out is None

    @pytest.mark.parametrize("ridge", [1e-2, 1e-4])
    def test_rows_that_are_held_out_have_no_part(self, ridge):
        X, y = waves(150)
        inside = np.arange(0, 150, 5)
        problem, rest = posed(X, y), np.setdiff1d(np.arange(150), inside)
        (found,) = problem.hold_out(inside, [ridge])
        where = Laplacian(width=1.0), problem.regions, problem.shared
        expected = oracles.local_scores(*where, X[rest], np.eye(2)[y[rest]], ridge * len(rest), X[inside])
        np.testing.assert_allclose(found.held_out, expected, rtol=0, atol=1e-7)
        other = np.where(np.isin(np.arange(150), inside), 1 - y, y)
        (blind,) = replace(posed(X, other), shared=problem.shared).hold_out(inside, [ridge])
        np.testing.assert_allclose(found.held_out, blind.held_out, rtol=0, atol=1e-9)

    def test_a_region_whose_rows_are_all_held_out(self):
        X, y = waves(100)
        problem = posed(X, y)
        inside = next(problem.regions.inside(X)).where
        (found,) = problem.hold_out(inside, [1e-3])
        assert np.isfinite(found.held_out).all()


class TestSums:
    def test_moments_of_parts_add_up(self):
        X, y = waves(300)
        problem = posed(X, y)
        basis = SummedLocalProblem.of(problem.rows, problem.kernel, problem.regions, problem.make, 0, 1).basis
        rows = Rows.of(X, y, np.ones(300), 2)
        statistic = LocalMomentsOf(basis, Encoding(np.array([0, 1]), np.ones(2)))
        chunks = [Chunk(X[part], y[part], None, part.start) for part in (slice(0, 120), slice(120, 300))]
        whole = statistic.zero()
        for chunk in chunks:
            whole = statistic.add(whole, chunk)
        one, two = (statistic.add(statistic.zero(), chunk) for chunk in chunks)
        for name in LocalMoments.__annotations__:
            np.testing.assert_allclose(getattr(one + two, name), getattr(whole, name), rtol=1e-10, atol=1e-10)
        for own, (where, _), moments in zip(basis.slices(), basis.regions.inside(X), whole.of_regions(basis.ends)):
            phi = basis.kernel(X[where], basis.centers[own])
            np.testing.assert_allclose(moments.symmetric(), phi.T @ phi, rtol=1e-10)
            np.testing.assert_allclose(moments.h, phi.T @ rows.targets(where), rtol=1e-10)
            assert moments.n == len(where)

    def test_sums_over_all_rows_give_the_model_of_all_rows(self, monkeypatch):
        """With every row in the sample, the sums of a source solve the systems of an array without shared centres."""
        monkeypatch.setattr(local, "subset_centers", lambda rows, *_: Centers(rows.X[:0]))
        monkeypatch.setattr(collected, "MOST_ROWS", 0)
        clf, X, y = fitted(300)
        monkeypatch.setattr(_reading, "sample_size", lambda d: 300)
        source = LSPC(**clf.get_params()).fit(X, y, classes=[0, 1])  # classes make it a source
        np.testing.assert_allclose(source.predict_proba(X), clf.predict_proba(X), rtol=0, atol=1e-6)

    def test_more_rows_than_a_sample_improve_the_model(self, monkeypatch, tmp_path):
        X, y = waves(1500)
        monkeypatch.setattr(_reading, "sample_size", lambda d: 300)
        params = {"kernel": "laplacian", "width": 0.3, "scaling": None, "centers": "local", "random_state": 0}
        clf = LSPC(**params).fit(X, y)
        assert len(clf.centers_) < 800
        X_new, y_new = waves(1000, seed=1)
        few = LSPC(**params).fit(X[:300], y[:300])
        assert log_loss(y_new, clf.predict_proba(X_new)) < 0.9 * log_loss(y_new, few.predict_proba(X_new))
        again = LSPC(**params).fit(X, y, checkpoint=tmp_path / "sums")
        np.testing.assert_allclose(again.predict_proba(X_new), clf.predict_proba(X_new), rtol=0, atol=1e-10)

    def test_dask(self, monkeypatch):
        da = pytest.importorskip("dask.array")
        X, y = waves(900)
        monkeypatch.setattr(_reading, "sample_size", lambda d: 300)
        params = {"kernel": "laplacian", "width": 0.3, "ridge": 1e-3, "centers": "local", "random_state": 0}
        parts = LSPC(**params).fit(da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100))
        np.testing.assert_allclose(parts.predict_proba(X), LSPC(**params).fit(X, y).predict_proba(X), atol=1e-7)


def disturbed(n: int = 900) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with copies, contradicting labels, weights and rows of weight zero."""
    X, y = waves(n)
    X[100:200], y[100:150] = X[:100], y[:50]
    return X, y, np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], n)


class TestAllRowsOfASource:
    """Sharp kernels of more rows than a sample have a centre in each, as long as that takes little memory."""

    @pytest.fixture(autouse=True)
    def sharp(self, monkeypatch):
        monkeypatch.setattr(outer_folds, "MANY_ROWS", 200)
        monkeypatch.setattr(many_rows.ManyRows, "wants_all_rows", lambda *_: True)
        monkeypatch.setattr(many_rows.ManyRows, "beats_regions", lambda *_, **__: False)
        monkeypatch.setattr(_reading, "sample_size", lambda d: 400)

    @pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 3.0}])
    @pytest.mark.parametrize("kind", ["plain", "disturbed"])
    def test_scores_are_those_of_the_rows_in_memory(self, kind, class_weight, monkeypatch):
        """The oracle is the local problem of all rows with the same kernel, scaling and noise."""
        X, y, weight = disturbed() if kind == "disturbed" else (*waves(900), np.ones(900))
        clf = LSPC(random_state=0, class_weight=class_weight).fit(X, y, weight)
        used = weight > 0
        factor = np.array([1.0, 3.0])[y[used]] if class_weight else np.ones(used.sum())
        rows = Rows.of(clf.scaling_(X[used]), y[used], weight[used], 2, factor)
        noise = clf.ridge_ * rows.total_weight
        whole = LocalProblem.of(rows, clf.kernel_, partial(LeastSquares, rkhs=True), 0, 1, share_centers=False)
        (solution,) = whole.path([noise / rows.total_weight])
        assert clf.basis_.regions.n_regions > 5
        expected = whole.basis.scores(rows.X, solution.coef())
        np.testing.assert_allclose(clf._scores(X[used]), expected, atol=1e-6)

    def test_the_sample_is_judged_by_leaving_out_its_rows(self):
        X, y, weight = disturbed()
        whole = posed(X, y, np.maximum(weight, 0.5))
        rows = whole.rows
        some = np.random.default_rng(1).permutation(len(rows))[:100]
        problem = JudgedBySample(rows.take(some), whole, local.places_among(rows.take(some), rows))
        np.testing.assert_array_equal(rows.keys[problem.place], rows.keys[some])
        np.testing.assert_array_equal(rows.labels[problem.place], rows.labels[some])
        (found,), (oracle,) = problem.path([1e-3]), whole.path([1e-3])
        np.testing.assert_array_equal(found.held_out, oracle.held_out[problem.place])
        np.testing.assert_array_equal(next(problem.path([1e-3], loo_rows=[3, 5])).held_out, found.held_out[[3, 5]])
        (without,) = problem.hold_out(np.arange(7), [1e-3])
        (refitted,) = whole.hold_out(problem.place[:7], [1e-3])
        np.testing.assert_array_equal(without.held_out, refitted.held_out)

    @given(tables(rows=(2, 30), weights=("none", "counts")), st.integers(0, 100))
    def test_places_are_those_of_equal_rows_with_equal_labels(self, table, seed):
        table = table.counted
        rows = Rows.of(table.X, table.y, table.weight, table.n_classes).merged()[0]
        some = rows.take(np.random.default_rng(seed).permutation(len(rows))[: 1 + seed % len(rows)])
        place = local.places_among(some, rows)
        assert (rows.X[place] == some.X).all() and (rows.labels[place] == some.labels).all()

    def test_every_source_gives_the_same_model(self, tmp_path):
        X, y = waves(900)
        clf = LSPC(random_state=0).fit(X, y)
        assert len(clf.centers_) >= 900
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
        frame.to_csv(tmp_path / "rows.csv", index=False)
        frame[::-1].to_parquet(tmp_path / "rows.parquet", index=False)
        dask = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=7)
        fits = [
            LSPC(random_state=0).fit(kproba.open_rows(tmp_path / "rows.csv", target="y")),
            LSPC(random_state=0).fit(kproba.open_rows(tmp_path / "rows.parquet", target="y")),
            LSPC(random_state=0).fit(dask[["a", "b", "c"]], dask["y"]),
            LSPC(random_state=0).fit(X, y, checkpoint=tmp_path / "sums"),
        ]
        for other in fits:
            np.testing.assert_allclose(other.predict_proba(X), clf.predict_proba(X), atol=1e-8)

    def test_more_rows_or_bytes_than_allowed_are_summed_up(self, monkeypatch):
        X, y = waves(900)
        for name, most in (("MOST_ROWS", 899), ("MOST_BYTES", 8 * 900 * 3 - 1)):
            with monkeypatch.context() as patch:
                patch.setattr(collected, name, most)
                assert len(LSPC(random_state=0).fit(X, y).centers_) < 800
        assert len(LSPC(random_state=0).fit(X, y).centers_) >= 900

    def test_pure_noise_is_not_better_than_chance(self):
        random = np.random.default_rng(0)
        X, y = random.normal(size=(1200, 3)), random.integers(0, 2, 1200)
        clf = LSPC(random_state=0).fit(X, y)
        X_new, y_new = random.normal(size=(1000, 3)), random.integers(0, 2, 1000)
        assert 0.68 < log_loss(y_new, clf.predict_proba(X_new)) < 0.73


class TestClassifier:
    def test_close_to_one_model_of_all_rows(self):
        clf, *_ = fitted(600)
        one = LSPC(**{**clf.get_params(), "centers": "all"}).fit(*waves(600))
        X_new, y_new = waves(2000, seed=1)
        losses = [log_loss(y_new, each.predict_proba(X_new)) for each in (clf, one)]
        assert losses[0] < 1.15 * losses[1]  # regions of 60 rows are small
        assert isinstance(clf.basis_, LocalBasis)
        assert clf.basis_.regions.n_regions >= 10

    def test_a_sharp_learnt_kernel_chooses_local_models(self, monkeypatch):
        monkeypatch.setattr(_learning, "FEW_ROWS", 200)
        monkeypatch.setattr(outer_folds, "MANY_ROWS", 200)
        monkeypatch.setattr(many_rows.ManyRows, "wants_all_rows", lambda *_: True)
        monkeypatch.setattr(many_rows.ManyRows, "beats_regions", lambda *_, **__: False)
        X, y = waves(400)
        clf = LSPC(random_state=0).fit(X, y)
        assert isinstance(clf.basis_, LocalBasis)
        assert clf.oof_proba_.shape == clf.loo_proba_.shape == (400, 2)
        X_new, y_new = waves(2000, seed=1)
        assert log_loss(y, clf.oof_proba_) > 0.95 * log_loss(y_new, clf.predict_proba(X_new))

    def test_a_smooth_learnt_kernel_is_solved_as_one_system(self, monkeypatch):
        """Up to so many rows, and by local models beyond."""
        monkeypatch.setattr(_learning, "FEW_ROWS", 100)
        monkeypatch.setattr(outer_folds, "MANY_ROWS", 100)
        monkeypatch.setattr(many_rows.ManyRows, "wants_all_rows", lambda *_: False)
        X, y = waves(300)
        for most, basis in ((300, Basis), (299, LocalBasis)):
            monkeypatch.setattr(_learning, "DENSE_ROWS", most)
            assert type(LSPC(random_state=0).fit(X, y).basis_) is basis

    @pytest.mark.parametrize("is_sharp", [True, False])
    def test_a_sharp_learnt_kernel_shares_no_centres(self, is_sharp, monkeypatch):
        """Each region has its own rows as centres, and those that all share only if the kernel is smooth."""
        monkeypatch.setattr(_learning, "FEW_ROWS", 200)
        monkeypatch.setattr(_learning, "DENSE_ROWS", 200)
        monkeypatch.setattr(outer_folds, "MANY_ROWS", 200)
        monkeypatch.setattr(many_rows.ManyRows, "beats_regions", lambda *_, **__: False)
        monkeypatch.setattr(many_rows.ManyRows, "wants_all_rows", lambda *_: is_sharp)
        X, y = waves(400)
        clf = LSPC(random_state=0).fit(X, y)
        own = [len(where) for where, _ in clf.basis_.regions.inside(clf.scaling_(X))]
        n_shared = 0 if is_sharp else local.SHARED_CENTERS
        assert len(own) > 1 and len(clf.centers_) == sum(own) + n_shared * len(own)

    def test_pure_noise_is_not_better_than_chance(self):
        random = np.random.default_rng(0)
        X, y = random.standard_normal((400, 4)), random.integers(2, size=400)
        clf = LSPC(kernel="laplacian", centers="local", random_state=0).fit(X, y)
        assert log_loss(y, clf.loo_proba_) > np.log(2) - 0.03
        X, y = random.standard_normal((3000, 4)), random.integers(2, size=3000)
        assert log_loss(y, clf.predict_proba(X)) < np.log(2) + 0.05

    def test_probabilities_have_no_seams(self):
        clf, *_ = fitted(600, kernel="gaussian")
        line = np.linspace([0, 0.4, 0.6], [1, 0.4, 0.6], 50_001)
        assert np.abs(np.diff(clf.predict_proba(line)[:, 1])).max() < 0.005

    def test_weights_are_copies(self):
        X, y = waves(200)
        weight = np.random.default_rng(0).integers(1, 4, 200)
        params = fitted(100)[0].get_params()
        one = LSPC(**params).fit(X, y, sample_weight=weight)
        two = LSPC(**params).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=0, atol=1e-9)

    def test_tags_groups_folds_and_paths(self):
        X, y = waves(240)
        params = {"kernel": "gaussian", "width": 0.1, "scaling": None, "centers": "local", "random_state": 0}
        tags = LSPC(**params).fit(X, np.column_stack([y, X[:, 1] > 0.5]))
        assert tags.predict_proba(X).shape == (240, 2)
        groups = LSPC(**params).fit(X, y, groups=np.arange(240) // 4)
        folds = LSPC(**params, selection="cv").fit(X, y)
        for clf in (groups, folds):
            assert log_loss(y, clf.predict_proba(X)) < 0.6
        path = LSPC(**params).path(X, y, ridges=[1e-4, 1e-2])
        assert path.coef.shape == (2, len(folds.coef_), 2)

    @pytest.mark.parametrize("params", [{}, {"link": "clip"}, {"kernel": "matern32"}])
    def test_save_and_pickle(self, tmp_path, params):
        clf, X, _ = fitted(300, **params)
        kproba.save(clf, tmp_path / "model.kproba")
        for again in (kproba.load(tmp_path / "model.kproba"), pickle.loads(pickle.dumps(clf))):
            np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))

    def test_damaged_regions_are_refused(self):
        clf, *_ = fitted(300)
        basis, regions = clf.basis_, clf.basis_.regions
        loop = regions.children.copy()
        loop[-1, 0] = 0
        damaged = [
            replace(basis, regions=replace(regions, children=loop)),
            replace(basis, regions=replace(regions, column=regions.column + 3)),
            replace(basis, regions=replace(regions, low=regions.high, high=regions.low)),
            replace(basis, regions=replace(regions, low=regions.low * np.nan)),
            replace(basis, ends=basis.ends[:-1]),
            replace(basis, ends=basis.ends + 1),
        ]
        for each in damaged:
            with pytest.raises(kproba.ModelFileError):
                check(each.regions)
                check(each)

    @pytest.mark.parametrize("opset", [13, 18])
    def test_onnx(self, opset):
        runtime = pytest.importorskip("onnxruntime")
        clf, X, _ = fitted(300)
        graph = kproba.to_onnx(clf, dtype="float64", target_opset=opset).SerializeToString()
        session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        for rows in (X[:50], X[:1], X[:0], X[:20] + 5.0):
            label, proba = session.run(None, {"X": rows})
            np.testing.assert_allclose(proba, clf.predict_proba(rows), rtol=0, atol=1e-10)
            np.testing.assert_array_equal(label, clf.predict(rows))

    def test_devices(self):
        xp = pytest.importorskip("array_api_strict")
        clf, X, y = fitted(200)
        there = LSPC(**clf.get_params()).fit(xp.asarray(X), xp.asarray(y))
        for model in (clf, there):
            np.testing.assert_allclose(model.predict_proba(xp.asarray(X)), clf.predict_proba(X), rtol=0, atol=1e-8)

    def test_partial_fit_keeps_one_basis(self):
        X, y = waves(400)
        clf = LSPC(kernel="laplacian", width=0.3, centers="auto", random_state=0)
        clf.partial_fit(X[:200], y[:200], classes=[0, 1]).partial_fit(X[200:], y[200:])
        assert not isinstance(clf.basis_, LocalBasis)
        with pytest.raises(ValueError, match="partial_fit"):
            LSPC(centers="local").partial_fit(X, y, classes=[0, 1])

    def test_what_cannot_be_local_is_refused(self):
        X, y = waves(200)
        cases = [
            (LSPC(centers="local"), sparse.csr_array(X), "sparse"),
            (LSPC(centers="local", kernel="precomputed"), X @ X.T, "precomputed"),
            (LSPC(centers="local", solver="sgd"), X, "solver='auto'"),
            (LSPC(centers="local", penalty="parameters"), X, "penalty"),
            (LSPC(centers="local", link="clip-parameters"), X, "penalty"),
            (LSPC(centers="local", class_similarity=np.eye(2)), X, "class_similarity"),
            (LSPC(centers="local", kernel="spectrum"), ["ab", "cd"] * 100, "spectrum"),
            (LSPC(centers="local", kernel=kproba.JointKernel(lambda X, y, Z, z: 1.0)), X, "JointKernel"),
            (KernelLogisticRegression(centers="local"), X, "centers must be"),
        ]
        for clf, rows, words in cases:
            with pytest.raises((ValueError, TypeError), match=words):
                clf.fit(rows, y)

    @pytest.mark.parametrize("absent", ["independent", "joint"])
    def test_explanations_are_those_of_the_models_of_a_row(self, absent):
        clf, X, _ = fitted(300)
        found = kproba.explain(clf, X[:40], output="scores", absent=absent, background=X[:30])
        assert found.base_values.shape == (40, 2)
        np.testing.assert_allclose(found.outputs, clf._scores(X[:40]), rtol=0, atol=1e-8)
        basis = clf.basis_
        inside = list(basis.regions.inside(X[:40]))
        row = next(i for i in range(40) if sum(i in where for where, _ in inside) == 2)
        expected = np.zeros((3, 2))
        for own, (where, gate) in zip(basis.slices(), inside):
            if row in where:
                single = deepcopy(clf)
                single.basis_, single.coef_ = Basis(basis.kernel, basis.centers[own]), clf.coef_[own]
                values = kproba.explain(single, X[[row]], output="scores", absent=absent, background=X[:30]).values[0]
                expected += gate[where == row] * values
        np.testing.assert_allclose(found.values[row], expected, rtol=0, atol=1e-10)
        assert found.for_class(1).base_values.shape == (40, 1)
        assert len(found.reasons(2)) == 40

    def test_partial_dependence(self):
        clf, X, _ = fitted(300)
        found = kproba.partial_dependence(clf, X[:50], [0], grid_resolution=5)
        assert found.average.shape == (1, 5)

    def test_rows_that_no_column_divides_have_one_set_of_centres(self):
        rng = np.random.default_rng(0)
        X = (rng.random((400, 20)) < 0.1).astype(float)
        y = (X[:, 0] + X[:, 1] + rng.random(400) > 0.9).astype(int)
        clf = LSPC(kernel="laplacian", centers="local", random_state=0).fit(X, y)
        assert not isinstance(clf.basis_, LocalBasis)
        assert log_loss(y, clf.loo_proba_) < 0.6

    def test_kernels_without_column_weights_split_all_columns(self):
        clf, *_ = fitted(600, kernel=Gaussian(width=0.5))
        assert set(clf.basis_.regions.column) == {0, 1, 2}
