"""Every fast path against a textbook version without shortcuts, on tables that break shortcuts."""

from __future__ import annotations

import warnings
from functools import partial
from unittest import mock

import array_api_strict
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.basis.basis import Basis
from kproba.basis.centers import all_centers, class_centers, subset_centers
from kproba.data.folds import stratified_folds
from kproba.data.hashing import row_keys
from kproba.data.rows import Rows
from kproba.data.sampling import sample_rows
from kproba.data.scaling import fit_scaling
from kproba.estimators import _reading
from kproba.exceptions import ConvergenceWarning
from kproba.kernels import Gaussian
from kproba.problems import least_squares
from kproba.problems.import_vectors import by_class
from kproba.problems.least_squares import LeastSquares
from oracles import (
    calibrated_softmax,
    class_wise,
    class_wise_loo,
    clip_link,
    fitted_klr,
    gaussian,
    ivm_candidates,
    kernel_ridge,
    kernel_ridge_loo,
    klr_fit,
    klr_loo,
    klr_objective,
    laplacian,
    left_out,
    loo_by_refitting,
    merged_rows,
    one_hot,
    quantile_scaling,
    ridge_solution,
    robust_scaling,
    same_row,
    standard_scaling,
    surface_by_scipy,
    surface_loss,
    tags_by_rows,
    weighted_klr_objective,
)
from strategies import Table, cuts, tables, tag_tables

EPS = np.finfo(float).eps
KERNELS = {"gaussian": gaussian, "laplacian": laplacian}
RIDGES = (1e-6, 1e-3, 1e-1, 10.0)
pytestmark = pytest.mark.filterwarnings("ignore::kproba.FewRowsWarning", "ignore::kproba.UnitsWarning")


def slack(*systems) -> float:
    """What rounding may do to scores of order one: the worst condition number, and a few digits to spare."""
    return 1e3 * EPS * max(float(np.linalg.cond(system)) for system in systems)


def assert_close(found, expected, *systems, at_least: float = 1e-11) -> None:
    tolerance = max(at_least, slack(*systems)) * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def systems_without(phi, weight, removed, penalty) -> list:
    """What a refit without each row solves: leave-one-out can be no better conditioned."""
    return [(phi.T * less) @ phi + penalty for less in weight - removed]


def cg_error(targets, weight, ridge) -> float:
    """Relative residuals of 1e-4 leave an error of the scores of 1e-4·‖Ω^½T‖/(2ρ^½) at most, at any point."""
    return 1e-4 * np.linalg.norm(np.sqrt(weight)[:, None] * targets) * max(1.0, 0.5 / np.sqrt(weight.sum() * ridge))


def scores_of(model, X):
    """Raw scores: what the link sees."""
    return model.basis_.scores(X if model.scaling_ is None else model.scaling_(X), model.coef_) + model.intercept_


def klr_probabilities(kernel, width, table, Z, ridge):
    """The textbook's probabilities of the rows."""
    phi, K = kernel(table.X, Z, width), kernel(Z, Z, width)
    scores = klr_fit(phi, K, one_hot(table.y, table.n_classes), table.weight, ridge)[0]
    return np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])


def new_points(X):
    """The rows, points between them, and one that is far from all of them."""
    return np.vstack([X, (X + np.roll(X, 1, axis=0)) / 2, np.full((1, X.shape[1]), 3.5)])


def lspc(**changes):
    given = {"kernel": "gaussian", "width": 1.5, "scaling": None, "link": "clip", "loo": True, "random_state": 0}
    return LSPC(**{**given, **changes})


class TestRows:
    """What decides that two rows are the same row."""

    @given(table=tables(), by_key=st.booleans())
    def test_merged_rows_are_the_equal_ones(self, table, by_key):
        rows, place = Rows.of(*table[:1], table.y, table.weight, table.n_classes).merged(by_key=by_key)
        expected = merged_rows(*table)
        assert len(rows) == len(expected)
        for i, (x, label, weight) in enumerate(zip(*table)):
            assert (place[i] < 0) == (weight == 0)
            if weight > 0:
                assert same_row(rows.X[place[i]], x) and rows.labels[place[i]] == label
                assert rows.weight[place[i]] == expected[tuple(x + 0.0), (label,), min(weight, 1.0)]

    @given(table=tag_tables())
    def test_merged_rows_of_tags(self, table):
        X, Y, weight = table
        known = np.where(np.isnan(Y), -1.0, Y)
        rows, place = Rows.of(X, Y, weight, Y.shape[1]).merged()
        assert len(rows) == len(merged_rows(X, known, weight))
        for i in np.flatnonzero(weight > 0):
            assert same_row(rows.X[place[i]], X[i])
            np.testing.assert_array_equal(rows.labels[place[i]], Y[i])

    @given(table=tables(columns=(1, 5)))
    def test_distinct_rows(self, table):
        X, y, weight = table
        rows, distinct = Rows.of(X, y, weight, table.n_classes), np.unique(X + 0.0, axis=0)
        assert rows.n_distinct == len(distinct)
        centers = all_centers(rows, Gaussian())
        np.testing.assert_array_equal(np.unique(centers.points + 0.0, axis=0), distinct)
        np.testing.assert_array_equal(centers.points[centers.row_center], X)
        picked = X[sample_rows(rows, 3, 0)] + 0.0
        assert len(np.unique(picked, axis=0)) == len(picked) == min(3, len(distinct))

    @given(table=tables())
    def test_centres_of_classes(self, table):
        X, y, weight = table
        centers = class_centers(Rows.of(X, y, weight, table.n_classes), Gaussian())
        for label in range(table.n_classes):
            own = centers.points[centers.owner == label] + 0.0
            np.testing.assert_array_equal(np.unique(own, axis=0), np.unique(X[y == label] + 0.0, axis=0))
            assert len(np.unique(own, axis=0)) == len(own)

    @given(table=tables(), k=st.integers(2, 4))
    def test_copies_share_a_fold_whatever_their_labels(self, table, k):
        X, y, weight = table
        fold = stratified_folds(Rows.of(X, y, weight, table.n_classes), k, 0)
        for i in range(len(X)):
            for j in range(i):
                assert not same_row(X[i], X[j]) or fold[i] == fold[j]

    @given(table=tables(columns=(1, 5)), dtype=st.sampled_from([np.float32, np.float16, np.int8, bool]))
    def test_keys_are_those_of_the_values(self, table, dtype):
        X = table.X.astype(dtype)
        keys = row_keys(X.astype(float))
        np.testing.assert_array_equal(row_keys(X), keys)
        np.testing.assert_array_equal(row_keys(sparse.csr_array(X.astype(float))), keys)
        np.testing.assert_array_equal(row_keys(array_api_strict.asarray(X.astype(float))), keys)


class TestScaling:
    @given(table=tables(), scale=st.sampled_from([1.0, 1e-300, 1e-160, 1e-12, 1e12, 1e160, 1e300]))
    @pytest.mark.parametrize("mode", ["robust", "quantile", "standard"])
    def test_equals_the_textbook(self, mode, table, scale):
        """To the digits that the rows have: a mean or a median takes away what they have in common."""
        X, y, weight = table.counted
        X = X * scale
        oracle = {"robust": robust_scaling, "quantile": quantile_scaling, "standard": standard_scaling}[mode]
        found = fit_scaling(mode, Rows.of(X, y, weight, table.n_classes))(X)
        np.testing.assert_allclose(found, oracle(X, weight, X), rtol=0, atol=1e-8 if mode == "quantile" else 1e-12)


class TestLeastSquares:
    """LSPC: the dual form, packed or not, the primal ones, and leave-one-out of all of them."""

    # float32 products end at their rounding errors for the smallest ridge, and say so
    @pytest.mark.filterwarnings("ignore:Conjugate gradients stopped")
    @given(table=tables(), kernel=st.sampled_from(list(KERNELS)), ridge=st.sampled_from(RIDGES))
    @pytest.mark.parametrize("form", ["dense", "packed", "cg"])
    def test_all_rows_as_centres(self, form, table, kernel, ridge):
        X, y, weight = table
        model = lspc(kernel=kernel, ridge=ridge, centers="all", solver="cg" if form == "cg" else "auto")
        with mock.patch.object(least_squares, "DENSE_CENTERS", 0 if form == "packed" else 4096):
            model.fit(X, y, weight)
        own, k = table.counted, partial(KERNELS[kernel], width=1.5)
        targets, K = one_hot(own.y, table.n_classes), k(own.X, own.X)
        new = new_points(X)
        expected, system = kernel_ridge(K, k(new, own.X), targets, own.weight, ridge)
        at_least = {"dense": 1e-11, "packed": 1e-3, "cg": cg_error(targets, own.weight, ridge)}[form]
        assert_close(scores_of(model, new), expected, system, at_least=at_least)
        np.testing.assert_allclose(model.predict_proba(new), clip_link(scores_of(model, new)), rtol=0, atol=1e-12)
        if form == "dense":  # leverages of the others are rounded or estimated
            loo, systems = kernel_ridge_loo(K, targets, own.weight, ridge, left_out(*own))
            assert_close(model.loo_scores_[weight > 0], loo, system, *systems)

    @given(table=tables(), ridge=st.sampled_from([1e-3, 1.0]))
    @pytest.mark.parametrize("most_dense", [4096, 0])
    def test_rows_are_left_out_with_all_their_copies(self, most_dense, table, ridge):
        """Copies may have other labels and weights: the scores are those of a refit without any of them."""
        rows = Rows.of(*table.counted, table.n_classes)
        with mock.patch.object(least_squares, "DENSE_CENTERS", most_dense):
            problem = LeastSquares(rows, Basis(Gaussian(1.5), *all_centers(rows, Gaussian(1.5))), rkhs=True)
            found = next(iter(problem.path([ridge]))).without_copies()
        Y, noise = one_hot(rows.labels, table.n_classes), rows.total_weight * ridge
        for i, x in enumerate(rows.X):
            left = np.array([not same_row(x, z) for z in rows.X])
            A = gaussian(rows.X[left], rows.X[left], 1.5) + noise * np.diag(1.0 / rows.weight[left])
            expected = gaussian(x[None], rows.X[left], 1.5) @ np.linalg.solve(A, Y[left])
            np.testing.assert_allclose(found[i], expected[0], rtol=0, atol=1e-7 if most_dense else 1e-3)

    @given(table=tables(), ridge=st.sampled_from(RIDGES), centers=st.data())
    @pytest.mark.parametrize("penalty", ["rkhs", "parameters"])
    @pytest.mark.parametrize("solver", ["auto", "cholesky", "eigen"])
    def test_given_centres(self, solver, penalty, table, ridge, centers):
        """With the kernel's penalty, "eigen" adds 1e-9 of its size to the matrix that penalises (see docs)."""
        X, y, weight = table
        Z = np.unique(X[centers.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=6))] + 0.0, axis=0)
        model = lspc(kernel="laplacian", ridge=ridge, centers=Z, solver=solver, penalty=penalty).fit(X, y, weight)
        phi, targets = laplacian(X, Z, 1.5), one_hot(y, table.n_classes)
        P = laplacian(Z, Z, 1.5) if penalty == "rkhs" else np.eye(len(Z))
        system = (phi.T * weight) @ phi + weight.sum() * ridge * P
        at_least = 1e-5 if (solver, penalty) == ("eigen", "rkhs") else 1e-11
        new, theta = new_points(X), ridge_solution(phi, targets, weight, P, ridge)
        assert_close(scores_of(model, new), laplacian(new, Z, 1.5) @ theta, system, at_least=at_least)
        removed = left_out(X, y, weight)
        loo = loo_by_refitting(phi, targets, weight, P, ridge, removed)
        systems = systems_without(phi, weight, removed, weight.sum() * ridge * P)
        assert_close(model.loo_scores_[weight > 0], loo[weight > 0], *systems, at_least=at_least)

    @given(table=tables(), ridge=st.sampled_from(RIDGES[1:]), most=st.sampled_from([None, 1, 2]))
    @pytest.mark.parametrize("penalty", ["rkhs", "parameters"])
    def test_centres_of_classes(self, penalty, table, ridge, most):
        """A row that is left out takes its centre along: otherwise its label is still there."""
        X, y, weight = table
        model = lspc(kernel="laplacian", ridge=ridge, centers="class" if most is None else ("class", most))
        model.set_params(penalty=penalty).fit(X, y, weight)
        own, k, rkhs = table.counted, partial(laplacian, width=1.5), penalty == "rkhs"
        Z, owner, new = model.centers_, model.basis_.owner, new_points(X)
        expected, systems = class_wise(k, *own, new, Z, owner, ridge, rkhs)
        assert_close(scores_of(model, new), expected, *systems)
        loo, systems = class_wise_loo(k, *own, Z, owner, ridge, rkhs)
        assert_close(model.loo_scores_[weight > 0], loo, *systems)

    @given(table=tables(), ridge=st.sampled_from(RIDGES), data=st.data())
    @pytest.mark.parametrize("centers", ["all", "some", "class"])
    @pytest.mark.parametrize("rkhs", [True, False])
    def test_folds(self, rkhs, centers, table, ridge, data):
        """A fold's scores are those of a model that never saw it."""
        X, y, weight = table.counted
        rows = Rows.of(X, y, weight, table.n_classes)
        made = {"all": all_centers, "class": class_centers, "some": partial(subset_centers, b=2, seed=0)}[centers]
        basis = least_squares.Basis(Gaussian(1.5), *made(rows, Gaussian(1.5)))
        inside = np.flatnonzero(stratified_folds(rows, data.draw(st.integers(2, 3)), 0) == 0)
        rest = np.setdiff1d(np.arange(len(X)), inside)
        assume(len(rest))
        (found,) = least_squares.LeastSquares(rows, basis, rkhs).hold_out(inside, [ridge])
        k, own = partial(gaussian, width=1.5), (X[rest], y[rest], weight[rest])
        if centers == "class":
            assume(len(np.unique(y[rest])) == table.n_classes)
            points = class_centers(rows.take(rest), Gaussian(1.5))
            expected, systems = class_wise(k, *own, X[inside], *points[:2], ridge, rkhs)
        else:
            phi, P = k(own[0], basis.centers), k(basis.centers, basis.centers) if rkhs else np.eye(basis.n_centers)
            systems = [(phi.T * own[2]) @ phi + own[2].sum() * ridge * P]
            theta = np.linalg.solve(systems[0], (phi.T * own[2]) @ one_hot(own[1], table.n_classes))
            expected = k(X[inside], basis.centers) @ theta
        assert_close(found.held_out, expected, *systems)

    @given(table=tag_tables(), ridge=st.sampled_from(RIDGES[1:]))
    @pytest.mark.parametrize("penalty", ["rkhs", "parameters"])
    def test_tags(self, penalty, table, ridge):
        X, Y, weight = table
        Z = np.unique(X + 0.0, axis=0)[:4]
        model = lspc(kernel="laplacian", ridge=ridge, centers=Z, penalty=penalty).fit(X, Y, weight)
        phi, P = laplacian(X, Z, 1.5), laplacian(Z, Z, 1.5) if penalty == "rkhs" else np.eye(len(Z))
        coef, loo = tags_by_rows(phi, Y, weight, P, ridge, X)
        tags, scores = Y.shape[1], scores_of(model, X)
        counted = (weight > 0) & ~np.isnan(Y).all(axis=1)
        removed = left_out(X, Y, counted * weight)
        systems = [
            system
            for has in ~np.isnan(Y.T)
            for system in systems_without(phi, weight * has, removed * has, (weight @ has) * ridge * P)
        ]
        assert_close(scores[:, :tags], phi @ coef[0], *systems)
        assert_close(scores[:, model.link_.constant], phi @ coef[1], *systems)
        assert_close(model.loo_scores_[counted], loo[0, counted], *systems)

    @given(table=tables(weights=("none",)), ridge=st.sampled_from(RIDGES[1:]))
    def test_all_centres_of_tags_are_two_class_problems(self, table, ridge):
        X, y, _ = table
        model = lspc(ridge=ridge, centers="all").fit(X, one_hot(y, table.n_classes).astype(int))
        for tag in range(table.n_classes):
            own = y == tag
            assume(0 < own.sum() < len(y))
            alone = lspc(ridge=ridge, centers="all").fit(X, own)
            system = gaussian(X, X, 1.5) + len(X) * ridge * np.eye(len(X))
            assert_close(model.loo_proba_[:, tag], alone.loo_proba_[:, 1], system)


class TestSources:
    """Rows that come in chunks give the sums of all rows, however they are cut."""

    def expected(self, table, Z, ridge, new):
        phi, P = laplacian(table.X, Z, 1.5), laplacian(Z, Z, 1.5)
        theta = ridge_solution(phi, one_hot(table.y, table.n_classes), table.weight, P, ridge)
        system = (phi.T * table.weight) @ phi + table.weight.sum() * ridge * P
        return laplacian(new, Z, 1.5) @ theta, system

    def model(self, Z, ridge):
        return lspc(kernel="laplacian", ridge=ridge, centers=Z, loo="auto")

    @given(table=tables(rows=(6, 14)), ridge=st.sampled_from(RIDGES), data=st.data())
    def test_partial_fit(self, table, ridge, data):
        Z, new, classes = np.unique(table.X + 0.0, axis=0)[:4], new_points(table.X), np.arange(table.n_classes)
        model = self.model(Z, ridge)
        for part in data.draw(cuts(len(table.y))):
            assume(table.weight[part].any())
            model.partial_fit(table.X[part], table.y[part], classes, table.weight[part])
        expected, system = self.expected(table, Z, ridge, new)
        assert_close(scores_of(model, new), expected, system)

    @given(table=tables(rows=(6, 14)), ridge=st.sampled_from(RIDGES), size=st.integers(2, 4))
    def test_a_sample_decides_and_all_rows_are_summed_up(self, table, ridge, size):
        Z, new = np.unique(table.X + 0.0, axis=0)[:4], new_points(table.X)
        with mock.patch.object(_reading, "sample_size", lambda d: size):
            model = self.model(Z, ridge).fit(*table)
        expected, system = self.expected(table, Z, ridge, new)
        assert_close(scores_of(model, new), expected, system)

    @given(table=tables(rows=(6, 14)), ridge=st.sampled_from(RIDGES), size=st.integers(2, 4), data=st.data())
    def test_dask(self, table, ridge, size, data):
        dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
        n, Z, new = len(table.y), np.unique(table.X + 0.0, axis=0)[:4], new_points(table.X)
        chunks = (tuple(part.stop - part.start for part in data.draw(cuts(n))),)
        X = da.from_array(table.X, chunks=(*chunks, -1))
        y, weight = (da.from_array(part, chunks=chunks) for part in table[1:])
        with dask.config.set(scheduler="synchronous"), mock.patch.object(_reading, "sample_size", lambda d: size):
            model = self.model(Z, ridge).fit(X, y, weight)
            proba = model.predict_proba(X).compute()
        expected, system = self.expected(table, Z, ridge, new)
        assert_close(scores_of(model, new), expected, system)
        np.testing.assert_allclose(proba, model.predict_proba(table.X), rtol=0, atol=1e-12)

    @given(table=tables(rows=(6, 14)), ridge=st.sampled_from(RIDGES), size=st.sampled_from([3, 10**6]))
    def test_device(self, table, ridge, size):
        Z, new = np.unique(table.X + 0.0, axis=0)[:4], new_points(table.X)
        with mock.patch.object(_reading, "sample_size", lambda d: size):
            model = self.model(Z, ridge).fit(array_api_strict.asarray(table.X), table.y, table.weight)
        expected, system = self.expected(table, Z, ridge, new)
        assert_close(scores_of(model, new), expected, system)
        there = model.predict_proba(array_api_strict.asarray(new))
        np.testing.assert_allclose(there, model.predict_proba(new), rtol=0, atol=1e-12)

    @given(table=tables(), ridge=st.sampled_from(RIDGES))
    def test_device_with_all_rows_as_centres(self, table, ridge):
        own, new = table.counted, new_points(table.X)
        model = lspc(ridge=ridge, centers="all").fit(array_api_strict.asarray(table.X), table.y, table.weight)
        K, targets = gaussian(own.X, own.X, 1.5), one_hot(own.y, table.n_classes)
        expected, system = kernel_ridge(K, gaussian(new, own.X, 1.5), targets, own.weight, ridge)
        assert_close(scores_of(model, new), expected, system)
        loo, systems = kernel_ridge_loo(K, targets, own.weight, ridge, left_out(*own))
        assert_close(model.loo_scores_[table.weight > 0], loo, system, *systems)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, bool])
@given(table=tables(), ridge=st.sampled_from(RIDGES[1:]), centers=st.sampled_from(["all", "class", 2]))
def test_low_precision(dtype, table, ridge, centers):
    """Rows that a type holds exactly give what they give in float64."""
    X = table.X.astype(dtype)
    assume(centers != 2 or np.count_nonzero(table.weight) >= 2)
    model = lspc(kernel="laplacian", ridge=ridge, centers=centers, link="auto")
    expected = model.fit(X.astype(float), *table[1:]).predict_proba(X.astype(float))
    found = model.fit(X, *table[1:]).predict_proba(X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)


class TestLikelihood:
    """Kernel logistic regression: the smallest value of a convex objective, and refits without each row."""

    def model(self, **changes):
        given = {"kernel": "laplacian", "width": 1.5, "scaling": None, "tol": 1e-8, "random_state": 0}
        return KernelLogisticRegression(**{**given, **changes})

    def left_to_gain(self, model, table, ridge) -> float:
        """The share of the objective by which the textbook's solution is better."""
        X, y, weight = table
        Z, targets = model.centers_, one_hot(y, table.n_classes)
        phi, K = laplacian(X, Z, 1.5), laplacian(Z, Z, 1.5)
        scores, theta = klr_fit(phi, K, targets, weight, ridge)
        best = weighted_klr_objective(scores, targets, weight, theta[:-1], K, ridge)
        found = weighted_klr_objective(scores_of(model, X), targets, weight, model.coef_, K, ridge)
        return (found - best) / found

    @given(table=tables(rows=(4, 10), classes=(2, 3)), ridge=st.sampled_from((1e-3, 1e-1, 1.0)))
    @pytest.mark.parametrize("solver", ["newton", "lbfgs"])
    def test_all_rows_as_centres(self, solver, table, ridge):
        model = self.model(ridge=ridge, centers="all", solver=solver, max_iter=1000).fit(*table)
        assert self.left_to_gain(model, table, ridge) < 2 * model.tol
        P = klr_probabilities(laplacian, 1.5, table, model.centers_, ridge)
        np.testing.assert_allclose(model.predict_proba(table.X), P, rtol=0, atol=1e-3)

    @given(table=tables(rows=(4, 10), classes=(2, 3)), ridge=st.sampled_from((1e-3, 1e-1)))
    def test_stochastic_gradients_converge_or_say_that_they_did_not(self, table, ridge):
        model = self.model(ridge=ridge, centers="all", solver="sgd", tol=1e-3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(*table)
        if not any(issubclass(w.category, ConvergenceWarning) for w in caught):
            assert self.left_to_gain(model, table, ridge) < 2 * model.tol

    @given(table=tables(rows=(6, 12), classes=(2, 3)), ridge=st.sampled_from((1e-2, 1e-1)), size=st.integers(2, 4))
    def test_a_sample_decides_and_passes_go_over_all_rows(self, table, ridge, size):
        model = self.model(ridge=ridge, centers=np.unique(table.X + 0.0, axis=0)[:4], tol=1e-6)
        with mock.patch.object(_reading, "sample_size", lambda d: size):
            model.fit(*table)
        assert self.left_to_gain(model, table, ridge) < 2 * model.tol

    @given(table=tables(rows=(4, 8), classes=(2, 3)), ridge=st.sampled_from((1e-1, 1.0)))
    def test_leave_one_out(self, table, ridge):
        """Refits to within what the fixed point stops at, a thousandth of a score; without its last row a class's
        constant has no minimum."""
        X, y, weight = table
        model = self.model(ridge=ridge, centers="all", loo=True).fit(X, y, weight)
        Z, targets = model.centers_, one_hot(y, table.n_classes)
        removed = left_out(X, y, weight)
        expected = klr_loo(laplacian(X, Z, 1.5), laplacian(Z, Z, 1.5), targets, weight, ridge, removed)
        P = np.exp(expected - np.logaddexp.reduce(expected, axis=1)[:, None])
        counted = (weight > 0) & (np.bincount(y, weight)[y] > removed.sum(axis=1) + 1e-9)
        np.testing.assert_allclose(model.loo_proba_[counted], P[counted], rtol=0, atol=5e-3)

    @given(table=tables(rows=(4, 10), weights=("none",)), ridge=st.sampled_from((1e-2, 1.0)))
    def test_centres_of_classes(self, table, ridge):
        X, y, _ = table
        model = self.model(ridge=ridge, centers="class", max_iter=1000).fit(X, y)
        Z, owner = model.centers_, model.basis_.owner
        phi, K = laplacian(X, Z, 1.5), laplacian(Z, Z, 1.5)
        best = fitted_klr(phi, K, y, ridge, own=owner[:, None] == np.arange(table.n_classes))
        found = klr_objective(scores_of(model, X), y, model.coef_, K, ridge)
        assert found - best < 1e-7 * max(1.0, found)

    @given(table=tag_tables(), ridge=st.sampled_from((1e-2, 1.0)))
    def test_tags_are_two_class_problems_on_the_rows_that_have_them(self, table, ridge):
        """The penalty of a tag is that of all rows: n stays the number of those."""
        X, Y, weight = table
        counted = np.where(np.isnan(Y).all(axis=1), 0.0, weight)
        model = self.model(ridge=ridge, centers="all").fit(X, Y, weight)
        Z = model.centers_
        for tag, label in enumerate(Y.T):
            has = ~np.isnan(label) & (weight > 0)
            alone, share = Table(X[has], label[has].astype(int), weight[has]), counted.sum() / weight[has].sum()
            P = klr_probabilities(laplacian, 1.5, alone, Z, ridge * share)
            np.testing.assert_allclose(model.predict_proba(X[has])[:, tag], P[:, 1], rtol=0, atol=1e-3)


class TestImportVectors:
    """The import points that were found carry the solution that is best for them."""

    def model(self, **changes):
        given = {"kernel": "laplacian", "width": 1.5, "scaling": None, "random_state": 0, "candidates": "all"}
        return ImportVectorMachine(**{**given, **changes})

    @pytest.mark.parametrize("many", [1, 10])
    @given(table=tables(rows=(4, 12), classes=(2, 3)), ridge=st.sampled_from((1e-4, 1e-2, 1.0)))
    def test_coefficients(self, table, ridge, many):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(by_class, "MANY_COLUMNS", many)
            model = self.model(ridge=ridge, tol=1e-6).fit(*table)
        np.testing.assert_array_equal(model.centers_, table.X[model.import_indices_])
        P = klr_probabilities(laplacian, 1.5, table, model.centers_, ridge)
        np.testing.assert_allclose(model.predict_proba(table.X), P, rtol=0, atol=1e-5)

    @pytest.mark.filterwarnings("ignore::kproba.ConvergenceWarning")
    @given(table=tables(rows=(4, 8), classes=(2, 3)), ridge=st.sampled_from((1e-2, 1.0)))
    def test_the_exact_search_takes_the_best_point(self, table, ridge):
        X, y, weight = table.counted
        model = self.model(ridge=ridge, search="exact", max_points=1).fit(X, y, weight)
        K, rho = laplacian(X, X, 1.5), weight.sum() * ridge
        values = ivm_candidates(K, [], y, weight, rho, steps=10)
        if len(model.import_indices_):
            assert values[int(model.import_indices_[0])] <= min(values.values()) * (1 + 1e-7) + 1e-9

    @given(table=tables(rows=(4, 8), classes=(2, 3)), ridge=st.sampled_from((1e-1, 1.0)))
    def test_leave_one_out(self, table, ridge):
        """Refits on the same import points; one that is a row without a copy goes with that row."""
        X, y, weight = table.counted
        model = self.model(ridge=ridge, tol=1e-6).fit(X, y, weight)
        Z, targets = model.centers_, one_hot(y, table.n_classes)
        removed = left_out(X, y, weight)
        for i in np.flatnonzero(np.bincount(y, weight)[y] > removed.sum(axis=1) + 1e-9):
            less = weight - removed[i]
            is_single = less[i] == 0 and sum(same_row(x, X[i]) for x in X) == 1
            points = np.array([z for z in Z if not (is_single and same_row(z, X[i]))]).reshape(-1, X.shape[1])
            phi, K = (np.reshape(laplacian(A, points, 1.5), (len(A), len(points))) for A in (X, points))
            theta = klr_fit(phi, K, targets, less, ridge * weight.sum() / less.sum())[1]
            scores = np.append(phi[i], 1.0) @ theta
            expected = np.exp(scores - np.logaddexp.reduce(scores))
            np.testing.assert_allclose(model.loo_proba_[i], expected, rtol=0, atol=5e-3)


class TestSurface:
    """A concave quadratic in a box: its largest value is unique, its maximum need not be."""

    def model(self, Z, **changes):
        given = {"kernel": "laplacian", "width": 1.5, "scaling": None, "random_state": 0, "link": "clip"}
        return SurfaceKernelClassifier(centers=Z, **{**given, **changes})

    def check(self, model, table):
        phi, targets = laplacian(table.X, model.centers_, 1.5), one_hot(table.y, table.n_classes)
        A = np.vstack([model.coef_, model.intercept_])
        assert np.abs(A).max() <= 1 + 1e-9
        np.testing.assert_allclose(A.sum(axis=1), [*[0.0] * len(model.coef_), 1.0], rtol=0, atol=1e-9)
        value = surface_loss(phi, targets, table.weight, A)
        assert model.certificate_.objective == pytest.approx(value, abs=1e-9)
        assert value >= surface_by_scipy(phi, targets, table.weight) - 1e-7

    @given(table=tables())
    def test_maximum(self, table):
        self.check(self.model(np.unique(table.X + 0.0, axis=0)[:3]).fit(*table), table)

    @given(table=tables(rows=(6, 14)), size=st.integers(2, 4))
    def test_a_sample_decides_and_all_rows_are_summed_up(self, table, size):
        with mock.patch.object(_reading, "sample_size", lambda d: size):
            model = self.model(np.unique(table.X + 0.0, axis=0)[:3]).fit(*table)
        self.check(model, table)

    @given(table=tables(rows=(6, 14)), data=st.data())
    def test_partial_fit(self, table, data):
        model = self.model(np.unique(table.X + 0.0, axis=0)[:3])
        for part in data.draw(cuts(len(table.y))):
            assume(table.weight[part].any())
            model.partial_fit(table.X[part], table.y[part], np.arange(table.n_classes), table.weight[part])
        self.check(model, table)

    @given(table=tables(rows=(6, 14)))
    def test_leave_one_out_inside_the_box(self, table):
        """Least squares with a constant and no ridge, where the rows that are left still have a solution."""
        X, y, weight = table.counted
        model = self.model(X[:1], loo=True).fit(X, y, weight)
        phi = np.column_stack([laplacian(X, model.centers_, 1.5), np.ones(len(X))])
        removed = left_out(X, y, weight)
        systems, none = systems_without(phi, weight, removed, 0.0), np.zeros((2, 2))
        left = np.array([np.linalg.cond(system) < 1e8 for system in systems])
        if model.certificate_.n_active or not left.all():
            return
        expected = loo_by_refitting(phi, one_hot(y, table.n_classes), weight, none, 0.0, removed)
        assert_close(model.loo_scores_, expected, *systems)


@given(table=tables(), ridge=st.sampled_from(RIDGES[1:]))
def test_calibrated_link_row_by_row(table, ridge):
    model = lspc(ridge=ridge, link="auto", centers="all").fit(*table)
    new = new_points(table.X)
    expected = [calibrated_softmax(row, model.link_) for row in scores_of(model, new)]
    np.testing.assert_allclose(model.predict_proba(new), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.link_.prior, np.bincount(table.y, table.weight) / table.weight.sum(), atol=1e-12)
