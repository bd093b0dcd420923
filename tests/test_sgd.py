"""LSPC by averaged stochastic gradients: near the exact solution, and nearer with every pass."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

import oracles
from kproba import LSPC, Gaussian
from kproba.data.rows import Rows
from kproba.data.sources import ArraySource
from kproba.papers.averaged_sgd import averaged_sgd

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


def test_refused(data):
    X, y, _ = data
    for options in ({"centers": "class"}, {"link": "clip-parameters"}, {"class_similarity": np.eye(3)}):
        with pytest.raises(ValueError, match="solver='sgd' needs centres shared by all classes"):
            LSPC(solver="sgd", **options).fit(X, y)
    with pytest.raises(ValueError, match=r"passes must be an int in the range \[1, inf\), got 0"):
        LSPC(solver="sgd", passes=0).fit(X, y)
    with pytest.raises(ValueError, match="solver='sgd' draws random rows from memory"):
        LSPC(solver="sgd").fit(ArraySource(X, y))
    assert not hasattr(LSPC(solver="sgd"), "partial_fit") and hasattr(LSPC(), "partial_fit")
