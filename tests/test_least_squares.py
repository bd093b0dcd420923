"""The least-squares problem by itself, against dense solutions and refits without each row."""

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose

from kproba.arrays import Device
from kproba.basis.basis import Basis
from kproba.basis.device_basis import DeviceBasis
from kproba.basis.moments import Moments
from kproba.data.rows import Rows
from kproba.kernels import Gaussian
from kproba.problems import least_squares as module
from kproba.problems.least_squares import ClassSimilarity, Group, LeastSquares, System, leave_one_out
from kproba.solvers.cholesky import CholeskyPath
from kproba.solvers.dual import Dual
from kproba.solvers.eigen import EigenPath
from kproba.solvers.iterative_dual import IterativeDual
from kproba.solvers.packed_dual import PackedDual
from oracles import (
    class_wise_loo_by_refitting,
    gaussian,
    loo_by_refitting,
    one_copy,
    one_unit,
    ridge_solution,
    similarity_solution,
)

RNG = np.random.default_rng(0)
N, C = 14, 3
X = RNG.normal(size=(N, 2))
Y = np.arange(N) % C
WEIGHT = np.array([1.0, 0.5, 2.0, 1.0, 3.0, 1.0, 0.25] * 2)
TAGS = (RNG.random((N, 2)) < 0.5).astype(float)
TAGS[:2] = [[1, 0], [0, 1]]
RIDGE, WIDTH = 0.05, 1.3
KERNEL = Gaussian(WIDTH)
CENTERS = X[:5]
REMOVED = one_copy(WEIGHT)


def rows_of(labels=Y, weight=WEIGHT):
    return Rows.of(X, labels, weight, C if labels.ndim == 1 else labels.shape[1])


def problem(labels=Y, rkhs=False, owner=None, row_center=None, centers=CENTERS, weight=WEIGHT, **options):
    return LeastSquares(rows_of(labels, weight), Basis(KERNEL, centers, owner, row_center), rkhs, **options)


def penalty_of(centers, rkhs):
    return gaussian(centers, centers, WIDTH) if rkhs else np.eye(len(centers))


def test_leave_one_out_formula():
    scores, targets = np.array([[0.5, 0.2], [0.4, 0.6]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    leverage, unit = np.array([[0.5, 0.5], [1.0, 0.4]]), np.array([0.5, 1.0])
    found = leave_one_out(scores, leverage, targets, unit)
    assert_allclose(found[0], [(0.5 - 0.25) / 0.75, 0.2 / 0.75])
    assert_allclose(found[1], [0.4e12, 0.2 / 0.6])  # a leverage of one is kept 1e-12 away


class TestShared:
    @pytest.mark.parametrize("rkhs", [False, True])
    @pytest.mark.parametrize("solver", ["auto", "cholesky", "eigen"])
    @pytest.mark.parametrize("labels", [Y, TAGS], ids=["classes", "tags"])
    def test_solutions_and_leave_one_out(self, rkhs, solver, labels):
        ls, ridges = problem(labels, rkhs, solver=solver), [RIDGE, 0.3]
        phi, targets, P = gaussian(X, CENTERS, WIDTH), ls.rows.targets(), penalty_of(CENTERS, rkhs)
        rtol, atol = (1e-5, 1e-6) if rkhs else (1e-9, 1e-12)  # the whitened form adds 1e-9 to the kernel matrix
        for ridge, found in zip(ridges, ls.path(ridges), strict=True):
            assert found.ridge == ridge
            assert_allclose(found.coef(), ridge_solution(phi, targets, WEIGHT, P, ridge), rtol=rtol, atol=atol)
            assert_allclose(
                found.held_out, loo_by_refitting(phi, targets, WEIGHT, P, ridge, REMOVED), rtol=rtol, atol=atol
            )

    def test_some_rows_or_none(self):
        ls, some = problem(), np.array([3, 0, 7])
        (whole,), (part,), (nothing,) = ls.path([RIDGE]), ls.path([RIDGE], loo_rows=some), ls.path([RIDGE], loo=False)
        assert_allclose(part.held_out, whole.held_out[some])
        assert nothing.held_out is None
        assert_allclose(nothing.coef(), whole.coef())

    def test_a_whole_grid_by_one_decomposition(self):
        ridges = [1e-3, 1e-2, 0.1, 1.0]
        for a, b in zip(problem().path(ridges), problem(solver="cholesky").path(ridges), strict=True):
            assert a.ridge == b.ridge
            assert_allclose(a.held_out, b.held_out, rtol=1e-8)
            assert_allclose(a.coef(), b.coef(), rtol=1e-7)

    def test_features_are_kept_or_computed_again(self, monkeypatch):
        (expected,) = problem().path([RIDGE])
        ls = problem()
        list(ls.path([RIDGE]))
        assert "_kept_features" in ls.__dict__
        monkeypatch.setattr(module, "KEEP_BYTES", N * 5 * 8)
        ls = problem()
        list(ls.path([RIDGE]))
        assert "_kept_features" in ls.__dict__
        monkeypatch.setattr(module, "KEEP_BYTES", N * 5 * 8 - 1)
        monkeypatch.setattr(Basis, "block_bytes", 4 * 40 * 3)
        sizes = []
        monkeypatch.setattr(Basis, "__call__", lambda self, X: sizes.append(len(X)) or self.kernel(X, self.centers, 1))
        ls = problem(given=problem().moments)
        sizes.clear()
        (found,) = ls.path([RIDGE])
        assert "_kept_features" not in ls.__dict__
        assert sizes == [3, 3, 3, 3, 2]  # four copies of the features of three rows
        assert_allclose(found.held_out, expected.held_out, rtol=1e-9)

    def test_moments_of_more_rows(self):
        phi, targets = gaussian(X, CENTERS, WIDTH), np.eye(C)[Y]
        some = rows_of().take(np.arange(6))
        ls = LeastSquares(some, Basis(KERNEL, CENTERS), False, given=Moments.of(phi, targets, WEIGHT))
        (found,) = ls.path([RIDGE])
        assert ls.total_weight == WEIGHT.sum()
        assert_allclose(found.coef(), ridge_solution(phi, targets, WEIGHT, np.eye(5), RIDGE), rtol=1e-9)
        expected = loo_by_refitting(phi, targets, WEIGHT, np.eye(5), RIDGE, REMOVED)
        assert_allclose(found.held_out, expected[:6], rtol=1e-9)

    def test_float32_rows(self):
        rows = Rows.of(X.astype(np.float32), Y, WEIGHT, C)
        (found,) = LeastSquares(rows, Basis(KERNEL, CENTERS.astype(np.float32)), False).path([RIDGE])
        phi = gaussian(X, CENTERS, WIDTH)
        assert_allclose(
            found.held_out, loo_by_refitting(phi, np.eye(C)[Y], WEIGHT, np.eye(5), RIDGE, REMOVED), atol=1e-5
        )

    @pytest.mark.parametrize("rkhs", [False, True])
    @pytest.mark.parametrize("n_ridges", [1, 4])
    def test_holding_out_rows(self, rkhs, n_ridges):
        inside, ridges = np.array([1, 4, 9]), [RIDGE, 0.3, 0.5, 1.0][:n_ridges]
        rest = np.setdiff1d(np.arange(N), inside)
        phi, P = gaussian(X, CENTERS, WIDTH), penalty_of(CENTERS, rkhs)
        for ridge, found in zip(ridges, problem(rkhs=rkhs).hold_out(inside, ridges), strict=True):
            coef = ridge_solution(phi[rest], np.eye(C)[Y[rest]], WEIGHT[rest], P, ridge)
            assert found.ridge == ridge
            assert_allclose(found.coef(), coef, rtol=1e-6, atol=1e-7)
            assert_allclose(found.held_out, phi[inside] @ coef, rtol=1e-6, atol=1e-7)
            found.coef()[:] = 0.0
            assert_allclose(found.coef(), coef, rtol=1e-6, atol=1e-7)


class TestSimilarity:
    L = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
    equal = np.full((3, 3), 0.5) + 0.5 * np.eye(3)  # one eigenvalue is twofold

    def test_directions(self):
        found = ClassSimilarity.of(self.equal)
        assert_allclose(found.vectors * found.values @ found.vectors.T, self.equal, atol=1e-12)
        for power in (1, 2):
            groups = found.groups(power)
            assert [group.columns.tolist() for group in groups] == [[0, 1], [2]]
            assert_allclose([group.ridge_factor for group in groups], [0.5**-power, 2.0**-power])
            assert all(type(group.ridge_factor) is float for group in groups)

    @pytest.mark.parametrize("scale", [1.0, 100.0])
    def test_eigenvalues_of_rounding_size_are_zero(self, scale):
        values = scale * np.array([1e-12 * 0.99, 1e-12 * 1.01, 1.0])
        found = ClassSimilarity.of(np.diag(values))
        assert_allclose(np.sort(found.values), scale * np.array([0.0, 1.01e-12, 1.0]))

    def test_small_eigenvalues_stay_apart(self):
        groups = ClassSimilarity.of(np.diag([1e-9, 2e-9, 1.0])).groups(1)
        assert [group.columns.tolist() for group in groups] == [[0], [1], [2]]
        assert_allclose([group.ridge_factor for group in groups], [1e9, 5e8, 1.0])

    def test_a_singular_similarity(self):
        ones = ClassSimilarity.of(np.ones((3, 3)))
        assert (ones.values[:2] == 0).all() and [group.columns.tolist() for group in ones.groups(1)] == [[2]]

    @pytest.mark.parametrize("rkhs", [False, True])
    @pytest.mark.parametrize("solver", ["auto", "cholesky", "eigen"])
    def test_kronecker_system(self, rkhs, solver):
        ls = problem(rkhs=rkhs, weight=np.ones(N), similarity=ClassSimilarity.of(self.L), solver=solver)
        phi, P = gaussian(X, CENTERS, WIDTH), penalty_of(CENTERS, rkhs)
        (found,) = ls.path([RIDGE])
        expected = similarity_solution(phi, np.eye(C)[Y], self.L, P, RIDGE, rkhs)
        assert_allclose(found.coef(), expected, rtol=1e-5, atol=1e-6)
        for i in range(N):  # the ridge stays that of all rows
            rest = np.arange(N) != i
            without = similarity_solution(phi[rest], np.eye(C)[Y[rest]], self.L, P, RIDGE * N / (N - 1), rkhs)
            assert_allclose(found.held_out[i], phi[i] @ without, rtol=1e-5, atol=1e-6)
        (held,) = ls.hold_out(np.array([2, 5]), [RIDGE])
        rest = np.setdiff1d(np.arange(N), [2, 5])
        without = similarity_solution(phi[rest], np.eye(C)[Y[rest]], self.L, P, RIDGE, rkhs)
        assert_allclose(held.held_out, phi[[2, 5]] @ without, rtol=1e-5, atol=1e-6)


def class_wise(labels=Y, **options):
    if labels.ndim == 2:
        of = [np.flatnonzero(column == 1) for column in labels.T]
    else:
        of = [np.flatnonzero(labels == y) for y in range(C)]
    owner = np.repeat(np.arange(len(of)), [len(part) for part in of])
    return problem(labels, owner=owner, centers=X[np.concatenate(of)], **options)


class TestClassWise:
    @pytest.mark.parametrize("rkhs", [False, True])
    @pytest.mark.parametrize("clip", [False, True])
    @pytest.mark.parametrize("solver", ["cholesky", "eigen"])
    def test_leave_one_out_is_that_of_refits(self, rkhs, clip, solver):
        ls = class_wise(rkhs=rkhs, clip_parameters=clip, solver=solver)
        (found,) = ls.path([RIDGE])
        expected = class_wise_loo_by_refitting(X, Y, WEIGHT, WIDTH, RIDGE, rkhs, clip, REMOVED)
        assert_allclose(found.held_out, expected, rtol=2e-5, atol=2e-5 if rkhs else 1e-8)
        (part,) = ls.path([RIDGE], loo_rows=np.array([5, 1]))
        assert_allclose(part.held_out, found.held_out[[5, 1]], rtol=1e-9, atol=1e-12)

    def test_coefficients_are_of_a_class_alone(self):
        ls = class_wise()
        (found,) = ls.path([RIDGE])
        for y in range(C):
            own = ls.basis.centers[ls.basis.owner == y]
            phi = gaussian(X, own, WIDTH)
            theta = ridge_solution(phi, (y == Y).astype(float), WEIGHT, np.eye(len(own)), RIDGE)
            assert_allclose(found.coef()[ls.basis.owner == y, y], theta, rtol=1e-9)
            assert (found.coef()[ls.basis.owner != y, y] == 0).all()

    def test_holding_out_rows_and_their_centres(self):
        ls, inside = class_wise(), np.array([0, 4, 8])
        rest = np.setdiff1d(np.arange(N), inside)
        for ridge, found in zip([RIDGE, 0.4], ls.hold_out(inside, [RIDGE, 0.4]), strict=True):
            assert found.ridge == ridge
            for y in range(C):
                own = X[rest][Y[rest] == y]
                phi = gaussian(X[rest], own, WIDTH)
                theta = ridge_solution(phi, (Y[rest] == y).astype(float), WEIGHT[rest], np.eye(len(own)), ridge)
                assert_allclose(found.held_out[:, y], gaussian(X[inside], own, WIDTH) @ theta, rtol=1e-8)

    def test_given_centres_that_go_with_rows(self):
        ls = class_wise(own=np.full((N, 1), -1))
        (found,) = ls.path([RIDGE])
        for y in range(C):
            phi = gaussian(X, X[y == Y], WIDTH)
            expected = loo_by_refitting(
                phi, (y == Y).astype(float)[:, None], WEIGHT, np.eye(phi.shape[1]), RIDGE, REMOVED
            )
            assert_allclose(found.held_out[:, [y]], expected, rtol=1e-8, atol=1e-10)

    def test_a_class_without_centres_scores_zero(self):
        own = np.flatnonzero(Y != 1)
        ls = problem(owner=np.sort(Y[own]), centers=X[own[np.argsort(Y[own], kind="stable")]])
        (found,) = ls.path([RIDGE])
        assert (found.held_out[:, 1] == 0).all() and found.held_out[:, 0].any()

    @pytest.mark.parametrize("clip", [False, True])
    def test_tags(self, clip):
        """The constant has all centres, and loses those of every tag of the row."""
        ls = class_wise(TAGS, weight=np.ones(N), clip_parameters=clip)
        (found,) = ls.path([RIDGE])

        def coefs(i, targets, points):
            rest = np.arange(N) != i
            phi = gaussian(X[rest], points, WIDTH)
            return np.linalg.solve(phi.T @ phi + N * RIDGE * np.eye(len(points)), phi.T @ targets[rest])

        for i in range(N):
            own = [X[(np.arange(N) != i) & (TAGS[:, tag] == 1)] for tag in range(2)]
            points, ends = np.vstack(own), [0, len(own[0]), len(own[0]) + len(own[1])]
            constant, features = coefs(i, np.ones(N), points), gaussian(X[[i]], points, WIDTH)[0]
            for tag in range(2):
                theta = np.zeros(len(points))
                theta[ends[tag] : ends[tag + 1]] = coefs(i, TAGS[:, tag], own[tag])
                if not clip:
                    assert found.held_out[i, tag] == pytest.approx(features @ theta, abs=1e-9)
                    assert found.held_out[i, 2] == pytest.approx(features @ constant, abs=1e-9)
                else:
                    yes, no = features @ np.maximum(theta, 0), features @ np.maximum(constant - theta, 0)
                    assert found.held_out[i, tag] == pytest.approx(yes, abs=1e-9)
                    assert found.held_out[i, 2 + tag] == pytest.approx(yes + no, abs=1e-9)


class TestRounding:
    @pytest.mark.parametrize("rkhs", [False, True])
    @pytest.mark.parametrize("labels", [Y, TAGS], ids=["classes", "tags"])
    def test_coefficients_are_rounded_before_rows_are_scored(self, rkhs, labels):
        ls = problem(labels, rkhs, clip_parameters=True, solver="cholesky")
        phi, targets, P = gaussian(X, CENTERS, WIDTH), ls.rows.targets(), penalty_of(CENTERS, rkhs)

        def rounded(theta):
            if labels.ndim == 1:
                return np.maximum(theta, 0)
            tags = np.maximum(theta[:, :-1], 0)
            return np.hstack([tags, tags + np.maximum(theta[:, -1:] - theta[:, :-1], 0)])

        (found,) = ls.path([RIDGE])
        assert found.held_out.shape == (N, ls.n_scores)
        assert_allclose(found.coef(), rounded(ridge_solution(phi, targets, WEIGHT, P, RIDGE)), rtol=1e-7, atol=1e-9)
        for i in range(N):
            rest = WEIGHT.copy()
            rest[i] -= one_unit(WEIGHT)[i]
            A = (phi.T * rest) @ phi + WEIGHT.sum() * RIDGE * P
            theta = np.linalg.solve(A, (phi.T * rest) @ targets)
            assert_allclose(found.held_out[i], phi[i] @ rounded(theta), rtol=1e-7, atol=1e-9)


DENSE = {"centers": X, "row_center": np.arange(N), "rkhs": True}


class TestDual:
    @pytest.mark.parametrize("labels", [Y, TAGS], ids=["classes", "tags"])
    @pytest.mark.parametrize("n_ridges", [2, 5])
    def test_is_the_primal_solution(self, labels, n_ridges):
        ls, ridges = problem(labels, **DENSE), [RIDGE, 0.1, 0.3, 0.5, 1.0][:n_ridges]
        assert ls.is_dual and ls.has_all_loo
        phi, targets = gaussian(X, X, WIDTH), ls.rows.targets()
        for ridge, found in zip(ridges, ls.path(ridges), strict=True):
            assert found.ridge == ridge
            assert_allclose(phi @ found.coef(), phi @ ridge_solution(phi, targets, WEIGHT, phi, ridge), atol=1e-7)
            assert_allclose(found.held_out, loo_by_refitting(phi, targets, WEIGHT, phi, ridge, REMOVED), atol=1e-6)
        (part,) = ls.path([RIDGE], loo_rows=np.array([6, 2]))
        (whole,) = ls.path([RIDGE])
        assert_allclose(part.held_out, whole.held_out[[6, 2]])

    def test_several_rows_of_one_centre(self):
        twice = Rows.of(X[[0, 1, 2, 0]], np.array([0, 1, 2, 1]), np.array([1.0, 2.0, 1.0, 0.5]), C)
        ls = LeastSquares(twice, Basis(KERNEL, X[:3], row_center=np.array([0, 1, 2, 0])), True)
        (found,) = ls.path([RIDGE])
        phi, P = gaussian(twice.X, X[:3], WIDTH), gaussian(X[:3], X[:3], WIDTH)
        assert_allclose(
            found.held_out,
            loo_by_refitting(phi, twice.targets(), twice.weight, P, RIDGE, one_copy(twice.weight)),
            atol=1e-8,
        )

    def test_forms(self, monkeypatch):
        assert isinstance(problem(**DENSE)._dual, Dual)
        assert isinstance(problem(**DENSE, solver="cg")._dual, IterativeDual)
        monkeypatch.setattr(module, "DENSE_CENTERS", N)
        assert isinstance(problem(**DENSE)._dual, Dual)
        monkeypatch.setattr(module, "DENSE_CENTERS", N - 1)
        assert isinstance(problem(**DENSE)._dual, PackedDual)
        monkeypatch.setattr(module, "PACKED_CENTERS", N - 1)
        assert isinstance(problem(**DENSE)._dual, IterativeDual)

    def test_kernels_that_may_be_indefinite_are_formed(self, monkeypatch):
        from kproba.kernels import as_kernels

        monkeypatch.setattr(module, "DENSE_CENTERS", 1)
        monkeypatch.setattr(module, "PACKED_CENTERS", 1)
        (kernel,) = as_kernels(lambda A, B: gaussian(np.asarray(A), np.asarray(B), 1.0))
        assert not kernel.is_definite
        ls = LeastSquares(rows_of(), Basis(kernel, X, row_center=np.arange(N)), True)
        assert isinstance(ls._dual, Dual)


@pytest.mark.parametrize(
    ("options", "n_ridges", "expected"),
    [
        ({}, 3, False), ({}, 4, True), ({"solver": "eigen"}, 1, True), ({"solver": "cholesky"}, 9, False),
        ({"rkhs": True}, 4, False), ({"rkhs": True, "row_center": np.arange(5)}, 4, True),
        ({"rkhs": True, "similarity": ClassSimilarity.of(np.eye(3))}, 4, True), ({"solver": "eigen"}, 4, True),
    ],
)  # fmt: skip
def test_when_one_decomposition_pays(options, n_ridges, expected):
    ls = problem(**options)
    paths = ls._paths(ls.moments, ls._path_type(n_ridges))
    assert [type(path) for path in paths] == [EigenPath if expected else CholeskyPath]


class TestCost:
    def test_one_decomposition_serves_all_ridges_in_one_sweep(self, monkeypatch):
        made, swept, decomposed, featured = [], [], EigenPath.decomposed, LeastSquares._batches_with_features
        monkeypatch.setattr(EigenPath, "decomposed", lambda H, P: made.append(len(H)) or decomposed(H, P))
        monkeypatch.setattr(
            LeastSquares, "_batches_with_features", lambda self, rows: swept.append(1) or featured(self, rows)
        )
        list(problem(solver="eigen").path([0.1, 0.2]))
        assert made == [5] and swept == [1]
        list(problem(solver="eigen").hold_out(np.array([1]), [0.1, 0.2]))
        assert made == [5, 5]

    def test_factors_are_held_one_at_a_time(self, monkeypatch):
        made, at = [], CholeskyPath.at
        monkeypatch.setattr(CholeskyPath, "at", lambda self, ridge: made.append(ridge) or at(self, ridge))
        path = problem().path([0.1, 0.2])
        next(path)
        assert made == [0.1 * WEIGHT.sum()]

    def test_rows_that_stay_are_not_scored_where_others_are_held_out(self, monkeypatch):
        monkeypatch.setattr(LeastSquares, "_loo_with_own_centers", lambda *args: pytest.fail("nobody asked for these"))
        list(class_wise().hold_out(np.array([0, 4]), [RIDGE]))


def test_systems():
    assert System(None, []).of_centers(X) is X
    np.testing.assert_array_equal(System(np.array([1]), []).of_centers(X), X[:, [1]])
    assert Group(np.arange(2)).ridge_factor == 1.0
    own = class_wise(rkhs=True)
    paths = own._paths(own.moments, CholeskyPath)
    for y, path in enumerate(paths):
        points = X[y == Y]
        assert_allclose(path.penalty, gaussian(points, points, WIDTH), rtol=1e-12)


def test_forgetting():
    ls = problem(rkhs=True)
    list(ls.path([RIDGE]))
    assert {"moments", "_gram", "_kept_features"} <= set(ls.__dict__)
    dual = problem(**DENSE)
    list(dual.path([RIDGE]))
    assert "_dual" in dual.__dict__
    there = problem().on(DEVICE)
    list(there.path([RIDGE]))
    assert "_device_path" in there.__dict__
    for each in (ls, dual, there):
        each.clear_cache()
        assert not {"moments", "_gram", "_dual", "_kept_features", "_device_path"} & set(each.__dict__)
        each.clear_cache()


DEVICE = Device.of(array_api_strict.asarray(X))


class TestDevice:
    def test_where_it_goes_and_where_not(self):
        there = problem().on(DEVICE)
        assert isinstance(there.basis, DeviceBasis) and there.basis.device is DEVICE
        plain, clipped = problem(), problem(clip_parameters=True)
        similar, owned = problem(similarity=ClassSimilarity.of(np.eye(3))), class_wise()
        assert plain.on(None) is plain
        for ls in (clipped, similar, owned):
            assert ls.on(DEVICE) is ls

    @pytest.mark.parametrize("rkhs", [False, True])
    @pytest.mark.parametrize("labels", [Y, TAGS], ids=["classes", "tags"])
    def test_is_the_solution_here(self, rkhs, labels, monkeypatch):
        monkeypatch.setattr(DeviceBasis, "block_bytes", 4 * 40 * 6)
        here, ridges = problem(labels, rkhs), [RIDGE, 0.2, 0.5, 1.0]
        there = here.on(DEVICE)
        for a, b in zip(here.path(ridges), there.path(ridges), strict=True):
            assert a.ridge == b.ridge
            assert_allclose(b.coef(), a.coef(), rtol=1e-6, atol=1e-7)
            assert_allclose(b.held_out, a.held_out, rtol=1e-6, atol=1e-7)
        inside = np.array([0, 3])
        for a, b in zip(here.hold_out(inside, ridges[:1]), there.hold_out(inside, ridges[:1]), strict=True):
            assert_allclose(b.held_out, a.held_out, rtol=1e-6, atol=1e-7)
        (some,) = there.path([RIDGE], loo_rows=np.array([4, 1]))
        (whole,) = there.path([RIDGE])
        assert_allclose(some.held_out, whole.held_out[[4, 1]])
        assert there._paths(there.moments, CholeskyPath)[0] is there._device_path
        assert there._path_type(9) is CholeskyPath

    def test_features_are_taken_four_copies_at_a_time(self, monkeypatch):
        monkeypatch.setattr(DeviceBasis, "block_bytes", 4 * 40 * 6)
        there = problem().on(DEVICE)
        there = problem(given=there.moments).on(DEVICE)
        sizes, call = [], DeviceBasis.__call__
        monkeypatch.setattr(DeviceBasis, "__call__", lambda self, X: sizes.append(len(X)) or call(self, X))
        list(there.path([RIDGE]))
        assert sizes == [6, 6, 2]
