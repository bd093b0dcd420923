"""Where centres belong to classes, a row that is left out takes its centre with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproba import LSPC, Gaussian, KernelLogisticRegression, RejectOption, recipes
from kproba.basis.basis import Basis
from kproba.basis.centers import class_centers
from kproba.data.rows import Rows
from kproba.problems.missing_tags import least_squares
from oracles import class_wise_loo_by_refitting, gaussian

NOISE = {"random_state": 0}


@st.composite
def small_problems(draw):
    """Few distinct rows, copies with equal and with contradicting labels, weights of all kinds."""
    n, c = draw(st.integers(4, 14)), draw(st.integers(2, 3))
    values = st.lists(st.sampled_from([0.0, 1.0, -1.0, 0.3]), min_size=2, max_size=2)
    X = np.array(draw(st.lists(values, min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.integers(0, c - 1), min_size=n, max_size=n)))
    y[:c] = np.arange(c)
    weight = np.array(draw(st.lists(st.sampled_from([1.0, 1.0, 2.0, 0.5, 3.0]), min_size=n, max_size=n)))
    return X, y, weight


@pytest.mark.filterwarnings("ignore::kproba.exceptions.FewRowsWarning")
@settings(max_examples=60, deadline=None)
@given(
    small_problems(),
    st.sampled_from(["parameters", "rkhs"]),
    st.sampled_from(["clip", "clip-parameters"]),
    st.sampled_from(["cholesky", "eigen"]),
)
def test_class_wise_leave_one_out_is_that_of_refits(problem, penalty, link, solver):
    X, y, weight = problem
    options = {"kernel": "gaussian", "width": 1.0, "ridge": 0.05, "scaling": None, "centers": "class", "loo": True}
    clf = LSPC(penalty=penalty, link=link, solver=solver, **options).fit(X, y, weight)
    expected = class_wise_loo_by_refitting(X, y, weight, 1.0, 0.05, penalty == "rkhs", link == "clip-parameters")
    # with the kernel matrix as the penalty the eigenvectors are those of K + 1e-9·b·I (solvers/eigen.py)
    whitened = solver == "eigen" and penalty == "rkhs"
    np.testing.assert_allclose(clf.loo_scores_, expected, rtol=1e-5 if whitened else 1e-7, atol=2e-6)


@pytest.mark.parametrize("n_missing", [0, 6])
def test_class_wise_tags_leave_their_centres(n_missing):
    """A row takes along a centre of each of its tags; the constant, which has all centres, loses them all."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(15, 2)), rng.integers(0, 2, (15, 2)).astype(float)
    Y[0], Y[1] = [1, 1], [0, 0]
    Y[2 : 2 + n_missing, 1] = np.nan
    rows, kernel, ridge = Rows.of(X, Y, np.ones(15), 2), Gaussian(width=1.0), 0.05
    (solution,) = least_squares(rows, Basis(kernel, *class_centers(rows, kernel)), rkhs=False).path([ridge])

    def score(i, targets, points):
        rest = (np.arange(15) != i) & ~np.isnan(targets)
        phi, total = gaussian(X[rest], points, 1.0), np.count_nonzero(~np.isnan(targets))
        theta = np.linalg.solve(phi.T @ phi + total * ridge * np.eye(len(points)), phi.T @ targets[rest])
        return (gaussian(X[[i]], points, 1.0) @ theta).item()

    for i in range(15):
        own = [X[(np.arange(15) != i) & (Y[:, tag] == 1)] for tag in range(2)]
        for tag in range(2):
            if not np.isnan(Y[i, tag]):
                assert solution.held_out[i, tag] == pytest.approx(score(i, Y[:, tag], own[tag]), abs=1e-9)
        constant = score(i, np.ones(15), np.vstack(own))
        assert solution.held_out[i, 2] == pytest.approx(constant, abs=1e-9)


@pytest.mark.parametrize("centers", ["class", ("class", 20)])
@pytest.mark.parametrize("classifier", [LSPC, KernelLogisticRegression])
def test_class_wise_centres_find_nothing_in_noise(classifier, centers):
    """The labels of held-out rows do not leak through their centres."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(120, 10)), rng.integers(0, 2, 120)
    clf = classifier(centers=centers, width="median", ridge=(1e-3, 1e-2, 0.1, 1.0), loo=True, **NOISE).fit(X, y)
    loss = -np.log(clf.loo_proba_[np.arange(120), y]).mean()
    assert loss > np.log(2) - 0.02


def test_reject_option_promises_nothing_in_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 10)), rng.integers(0, 2, 300)
    with pytest.warns(UserWarning, match="max_error"):
        clf = RejectOption(LSPC(centers=("class", 30), **NOISE), max_error=0.3).fit(X, y)
    assert clf.rejects(rng.normal(size=(200, 10))).mean() > 0.95


def test_folds_of_the_2010_recipe_hold_out_centres():
    """By 2 folds on noise of three classes nothing beats a Brier score of 2/3."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(150, 6)), rng.integers(0, 3, 150)
    clf = recipes.lspc_2010(**NOISE).fit(X, y)
    assert clf.search_results_["loss"].min() > 2 / 3 - 0.01


@pytest.mark.parametrize("options", [{}, {"selection": "cv", "folds": 2}], ids=["loo", "cv"])
@pytest.mark.parametrize("centers", ["class", ("class", 1)])
@pytest.mark.parametrize("classifier", [LSPC, KernelLogisticRegression])
def test_folds_that_leave_nothing(classifier, centers, options):
    """Copies of one row share a fold, and a fold may have all the centres."""
    for X in (np.zeros((6, 1)), np.array([[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]])):
        y = np.array([0, 1] * 3)
        clf = classifier(centers=centers, kernel="gaussian", width=1.0, ridge=(0.1, 1.0), loo=True, **options)
        np.testing.assert_allclose(clf.fit(X, y).predict_proba(X), 0.5, atol=1e-6)
        assert np.isfinite(clf.loo_proba_).all()
