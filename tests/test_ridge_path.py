"""LSPC.path: the solutions of separate fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kproba import LSPC, recipes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.argmax(X + 0.5 * RNG.normal(size=(60, 3)), axis=1)
X[7], Y[7] = X[8], Y[8]
WEIGHT = np.where(np.arange(60) % 9 == 0, 0.0, RNG.uniform(0.5, 2.0, 60))
TAGS = (X[:, :2] > 0.3).astype(int)
RIDGES = [1e-4, 1e-3, 1e-2, 0.1, 1.0]
GIVEN = {"kernel": "gaussian", "width": 1.5, "loo": True, "random_state": 0}
MODELS = {
    "rkhs, all rows": LSPC(**GIVEN),
    "rkhs, some rows": LSPC(**GIVEN, centers=20),
    "papers": LSPC(**GIVEN, penalty="parameters", link="clip"),
    "centres of classes": LSPC(**GIVEN, penalty="parameters", centers="class", link="clip"),
    "class similarity": LSPC(**GIVEN, class_similarity=np.eye(3) + 0.2),
    "class similarity, papers": LSPC(**GIVEN, class_similarity=np.eye(3) + 0.2, penalty="parameters"),
    "rounded parameters": LSPC(**GIVEN, link="clip-parameters"),
}


@pytest.mark.parametrize("name", MODELS)
def test_is_that_of_separate_fits(name):
    path = MODELS[name].path(X, Y, RIDGES, WEIGHT)
    assert_array_equal(path.ridges, RIDGES)
    for k, ridge in enumerate(RIDGES):
        alone = clone(MODELS[name]).set_params(ridge=ridge).fit(X, Y, WEIGHT)
        assert_allclose(path.coef[k], alone.coef_, rtol=1e-8, atol=1e-8)
        assert_allclose(path.scores[k], alone._scores(X), rtol=1e-8, atol=1e-8)
        assert_allclose(path.loo_scores[k], alone.loo_scores_, rtol=1e-8, atol=1e-8)
    chosen = clone(MODELS[name]).set_params(ridge=RIDGES).fit(X, Y, WEIGHT)
    assert path.ridges[path.best] == chosen.ridge_
    assert not hasattr(MODELS[name], "coef_")


def test_tags():
    path = LSPC(**GIVEN).path(X, TAGS, RIDGES)
    alone = LSPC(**GIVEN, ridge=RIDGES[2]).fit(X, TAGS)
    assert_allclose(path.coef[2], alone.coef_, atol=1e-8)
    assert path.loo_scores.shape == (5, 60, 2)
    assert_allclose(path.loo_scores[2], alone.loo_scores_, atol=1e-8)


def test_ridges():
    assert len(LSPC(**GIVEN).path(X, Y).ridges) == 15
    assert_array_equal(LSPC(**GIVEN, ridge=[0.1, 0.2]).path(X, Y).ridges, [0.1, 0.2])
    assert_allclose(recipes.lspc_full_2010(width=1.0).path(X, Y).ridges, 10.0 ** np.arange(-2, 0.5, 0.5))


def test_with_a_learnt_kernel():
    """The kernel is learnt once, and the path is in its basis."""
    A = RNG.normal(size=(120, 2))
    b = (A[:, 0] > 0).astype(int)
    path = LSPC(random_state=0).path(A, b, [1e-3, 1e-2])
    alone = LSPC(random_state=0).fit(A, b)
    assert path.coef.shape == (2, 120, 2) and path.loo_loss.shape == (2,)
    (same,) = LSPC(random_state=0).path(A, b, [alone.ridge_]).coef
    assert_allclose(same, alone.coef_, atol=1e-8)


def test_refused():
    with pytest.raises(ValueError, match="ridges must be a positive number"):
        LSPC(**GIVEN).path(X, Y, [0.1, -1.0])
    with pytest.raises(ValueError, match=r"path needs .* an exact solver, not solver='sgd'"):
        LSPC(**GIVEN, solver="sgd").path(X, Y)
    with pytest.raises(ValueError, match=r"path needs rows that are all in memory.*, not 60,000 rows"):
        LSPC(kernel="gaussian", width=1.0).path(np.tile(X, (1000, 1)) + RNG.normal(size=(60_000, 3)), np.tile(Y, 1000))
