"""LSPC by averaged stochastic gradients: near the exact solution, and nearer with every pass."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

import oracles
from kproba import LSPC, Gaussian
from kproba.data.rows import Rows
from kproba.data.sources import ArraySource
from kproba.papers.stochastic import averaged_sgd

GIVEN = {"kernel": "gaussian", "width": 1.5, "ridge": 1e-2, "centers": 60, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((2000, 3))
    y = np.argmax(np.sin(2 * X) + 0.5 * random.standard_normal((2000, 3)), axis=1)
    return X, y, random.uniform(0.2, 2.0, 2000)


@pytest.mark.parametrize("penalty", ["rkhs", "parameters"])
def test_objective_falls_to_the_exact_one(data, penalty):
    X, y, weight = data
    Z, ridge = X[:40], 1e-2
    K = oracles.gaussian(Z, Z, 1.5) if penalty == "rkhs" else np.eye(40)
    phi, Y = oracles.gaussian(X, Z, 1.5), oracles.one_hot(y, 3)

    def objective(theta):
        fit = weight @ np.square(phi @ theta - Y).sum(axis=1) / (2 * weight.sum())
        return fit + 0.5 * ridge * np.sum(theta * (K @ theta))

    best = objective(oracles.ridge_solution(phi, Y, weight, K, ridge))
    seen = []
    rows = Rows.of(X, y, weight, 3)
    averaged_sgd(
        rows,
        lambda part: Gaussian(width=1.5)(part, Z),  # tested elsewhere, and much faster than the textbook's loops
        K if penalty == "rkhs" else None,
        ridge,
        passes=30,
        seed=0,
        watch=lambda theta: seen.append(objective(theta)),
    )
    assert len(seen) == 30
    assert best < seen[-1] < best * 1.005
    assert seen[-1] < seen[0]


def test_probabilities_are_near_the_exact_ones(data):
    X, y, weight = data
    exact = LSPC(**GIVEN).fit(X, y, weight)
    found = LSPC(solver="sgd", **GIVEN).fit(X, y, weight)
    assert np.abs(found.predict_proba(X) - exact.predict_proba(X)).mean() < 0.02
    assert found.n_iter_ == 20 and found.loo_proba_.shape == (2000, 3)
    assert log_loss(y, found.loo_proba_) < 1.02 * log_loss(y, exact.loo_proba_)
    again = LSPC(solver="sgd", **GIVEN).fit(X, y, weight)
    np.testing.assert_array_equal(again.coef_, found.coef_)


def test_everything_chosen(data):
    X, y, _ = data
    found = LSPC(solver="sgd", passes=5, random_state=0).fit(X[:500], y[:500])
    assert log_loss(y[500:], found.predict_proba(X[500:])) < 0.9


@pytest.mark.parametrize("penalty", ["rkhs", "parameters"])
@pytest.mark.parametrize("centers", ["class", ("class", 20)])
def test_centres_of_classes(data, penalty, centers):
    """The centres of a class serve its own score alone, and the solution is near the exact one."""
    X, y, weight = (part[:150] for part in data)
    given = {**GIVEN, "centers": centers, "penalty": penalty, "ridge": 0.1, "link": "clip"}
    exact = LSPC(**given).fit(X, y, weight)
    found = LSPC(solver="sgd", passes=100, **given).fit(X, y, weight)
    np.testing.assert_array_equal(found.centers_, exact.centers_)
    owner = found.basis_.owner
    assert (found.coef_[owner[:, None] != np.arange(3)] == 0).all()
    assert np.abs(found.predict_proba(X) - exact.predict_proba(X)).mean() < 0.01


def test_held_out_rows_take_their_centres_with_them():
    """Labels of pure noise cannot be predicted, which centres that know them would seem to do."""
    random = np.random.default_rng(1)
    X, y = random.standard_normal((150, 2)), random.integers(0, 2, 150)
    given = {"kernel": "gaussian", "width": 0.1, "ridge": 1e-2, "centers": "class", "link": "clip"}
    model = LSPC(solver="sgd", passes=10, loo=True, random_state=0, **given).fit(X, y)
    assert abs((model.loo_proba_.argmax(axis=1) == y).mean() - 0.5) < 0.12


def test_refused(data):
    X, y, _ = data
    for options in ({"link": "clip-parameters"}, {"class_similarity": np.eye(3)}):
        with pytest.raises(ValueError, match="solver='sgd' needs class_similarity=None and a link other than"):
            LSPC(solver="sgd", **options).fit(X, y)
    tags = np.column_stack([y == 0, y <= 1]).astype(int)
    with pytest.raises(ValueError, match=r"solver='sgd' with centers='class' needs one class per row.*multi-label"):
        LSPC(solver="sgd", centers="class", kernel="gaussian").fit(X, tags)
    with pytest.raises(ValueError, match=r"passes must be an int in the range \[1, inf\), got 0"):
        LSPC(solver="sgd", passes=0).fit(X, y)
    with pytest.raises(ValueError, match="solver='sgd' draws random rows from memory"):
        LSPC(solver="sgd").fit(ArraySource(X, y))
    assert not hasattr(LSPC(solver="sgd"), "partial_fit") and hasattr(LSPC(), "partial_fit")
