"""Tables of a few rows that break shortcuts, each estimator beside brute force: a refit, an optimiser, or a table."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from kproba import LSPC, Gaussian, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from oracles import fitted_klr, gaussian, ivm_by_scipy, klr_objective

ALL = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)


def booleans(rng):
    X = rng.integers(0, 2, (30, 3)).astype(float)
    return X, (X[:, 0] > X[:, 1]).astype(int)


def ties(rng):
    X = rng.integers(0, 3, (36, 2)).astype(float)
    return X, rng.integers(0, 3, 36)


def contradicting_duplicates(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 3, axis=0)
    return X, np.tile([0, 1, 1], 10)


def one_row_class(rng):
    X = rng.normal(size=(25, 2))
    return X, np.where(np.arange(25) == 7, 2, X[:, 0] > 0).astype(int)


def constant_columns(rng):
    X = np.column_stack([np.full(24, 3.0), rng.normal(size=24), np.zeros(24)])
    return X, (X[:, 1] + 0.3 * rng.normal(size=24) > 0).astype(int)


def shared_by_two_classes(rng):
    X = rng.normal(size=(12, 2))
    return np.vstack([X, X]), np.repeat([0, 1], 12)


def nothing_but_constants(rng):
    return np.ones((30, 2)), np.repeat([0, 1, 2], [15, 10, 5])


TABLES = (
    booleans,
    ties,
    contradicting_duplicates,
    one_row_class,
    constant_columns,
    shared_by_two_classes,
    nothing_but_constants,
)


@pytest.fixture(params=TABLES, ids=lambda table: table.__name__)
def table(request):
    return request.param(np.random.default_rng(0))


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def distinct(X):
    return np.unique(X, axis=0)


@pytest.mark.parametrize("estimator", ALL)
def test_weights_are_copies_in_any_order(table, estimator):
    X, y = table
    count = 1 + np.arange(len(y)) % 3
    many = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), count))
    weighted = estimator(kernel="gaussian", random_state=0).fit(X, y, count)
    copied = estimator(kernel="gaussian", random_state=0).fit(X[many], y[many])
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-4)
    for proba in (weighted.predict_proba(X), weighted.loo_proba_):
        assert np.isfinite(proba).all() and (proba >= 0).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(weighted.predict(X), weighted.classes_[weighted.predict_proba(X).argmax(axis=1)])


@pytest.mark.parametrize("estimator", ALL)
def test_nothing_but_constants_gives_the_shares(estimator):
    X, y = nothing_but_constants(None)
    proba = estimator(random_state=0).fit(X, y).predict_proba(X[:1])[0]
    np.testing.assert_allclose(proba, [1 / 2, 1 / 3, 1 / 6], atol=2e-3)


@pytest.mark.parametrize(
    "clf",
    [
        LSPC(solver="sgd"),
        LSPC(solver="cg", centers="all", penalty="rkhs"),
        KernelLogisticRegression(solver="sgd", tol=1e-6),
        KernelLogisticRegression(solver="lbfgs"),
        KernelLogisticRegression(selection="cv"),
        SurfaceKernelClassifier(solver="swarm", max_iter=200),
    ],
    ids=str,
)
def test_every_solver_takes_constants(clf):
    X, y = nothing_but_constants(None)
    np.testing.assert_allclose(clf.fit(X, y).predict_proba(X[:1])[0], [1 / 2, 1 / 3, 1 / 6], atol=2e-3)


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("d", [2, 4])
def test_parity(estimator, d):
    corners = np.array(list(product([0.0, 1.0], repeat=d)))
    X, y = np.repeat(corners, 10, axis=0), np.repeat(corners.sum(axis=1) % 2, 10)
    assert estimator(random_state=0).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("y", [[], (), np.array([]), np.empty((0, 2))], ids=["list", "tuple", "array", "matrix"])
def test_empty_labels(estimator, y):
    with pytest.raises(ValueError, match="y is empty; pass one label for each row of X"):
        estimator().fit(np.ones((3, 2)), y)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        estimator().fit(np.empty((0, 2)), y)


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_kernel_values_that_overflow_are_refused(estimator, kernel):
    X, y = constant_columns(np.random.default_rng(0))
    X[0] = 1e60
    with pytest.raises(ValueError, match=f"values of the {kernel} kernel reach .* products overflow"):
        estimator(kernel=kernel, scaling=None).fit(X, y)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "sgd"])
@pytest.mark.parametrize("ridge", [1e-2, 1e-4])
def test_likelihood_at_its_minimum(table, solver, ridge):
    X, y = table
    given = {"kernel": Gaussian(1.5), "scaling": None, "tol": 1e-8, "max_iter": 500}
    clf = KernelLogisticRegression(ridge=ridge, solver=solver, **given).fit(X, y)
    Phi, K = gaussian(X, clf.centers_, 1.5), gaussian(clf.centers_, clf.centers_, 1.5)
    found = klr_objective(Phi @ clf.coef_ + clf.intercept_, y, clf.coef_, K, ridge)
    assert found == pytest.approx(fitted_klr(Phi, K, y, ridge), rel=1e-6)


@pytest.mark.parametrize("ridge", [1e-2, 1e-4])
def test_leave_one_out_of_the_likelihood(table, ridge):
    """Beside a fit without each row, all distinct rows as centres and λ before the same sum."""
    X, y = table
    if (np.bincount(y) == 1).any():
        y = np.minimum(y, 1)  # without its only row there would be no class
    given = {"kernel": Gaussian(1.5), "scaling": None, "tol": 1e-10, "max_iter": 500, "centers": distinct(X)}
    clf = KernelLogisticRegression(ridge=ridge, loo=True, **given).fit(X, y)
    for i in range(0, len(y), 3):
        rest = np.arange(len(y)) != i
        without = KernelLogisticRegression(ridge=ridge * len(y) / (len(y) - 1), **given).fit(X[rest], y[rest])
        np.testing.assert_allclose(clf.loo_proba_[i], without.predict_proba(X[[i]])[0], atol=5e-3)


@pytest.mark.parametrize("search", ["one-step", "exact"])
def test_import_points_at_their_minimum(table, search):
    X, y = table
    clf = ImportVectorMachine(kernel=Gaussian(1.5), ridge=1e-2, scaling=None, search=search, random_state=0).fit(X, y)
    K, S = gaussian(X, X, 1.5), list(clf.import_indices_)
    expected = ivm_by_scipy(K, S, y, np.ones(len(y)), 1e-2 * len(y))
    assert clf.growth_["objective"][-1] == pytest.approx(expected, rel=1e-5)


def test_surface_loss_at_its_maximum(table):
    """Beside a general optimiser on the free coefficients; the last class has what the others leave."""
    X, y = table
    clf = SurfaceKernelClassifier(
        kernel=Gaussian(1.5), centers=distinct(X)[:3], scaling=None, link="none", random_state=0
    ).fit(X, y)
    phi, c = np.column_stack([gaussian(X, clf.centers_, 1.5), np.ones(len(X))]), y.max() + 1
    total = np.append(np.zeros(len(clf.centers_)), 1.0)

    def whole(flat):
        A = flat.reshape(len(total), c - 1)
        return np.column_stack([A, total - A.sum(axis=1)])

    def loss(flat):
        F = phi @ whole(flat)
        return -np.mean(F[np.arange(len(y)), y] - 0.5 * np.square(F).sum(axis=1))

    start = np.repeat(total / c, c - 1)
    inside = {"type": "ineq", "fun": lambda flat: 1.0 - np.abs(whole(flat)[:, -1])}
    best = minimize(loss, start, method="SLSQP", bounds=[(-1, 1)] * len(start), constraints=inside, tol=1e-12)
    assert clf.certificate_.objective == pytest.approx(-best.fun, abs=1e-6)
    assert clf.certificate_.duality_gap < 1e-8
