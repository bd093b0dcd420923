"""What a probabilistic classifier must never get wrong, for all four of them."""

from __future__ import annotations

import numpy as np
import pytest

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier

ALL = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)
CORNERS = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 25, axis=0).astype(float)
RULES = {
    "xor": (CORNERS[:, 0] != CORNERS[:, 1]).astype(int),
    "and": (CORNERS[:, 0] * CORNERS[:, 1]).astype(int),
    "or": (CORNERS.sum(axis=1) > 0).astype(int),
    "first": CORNERS[:, 0].astype(int),
}


def log_loss(proba, y):
    return -np.log(np.clip(proba[np.arange(len(y)), y], 1e-6, 1.0)).mean()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("classifier", ALL)
def test_rules_on_two_truth_values(classifier, rule):
    clf = classifier(random_state=0).fit(CORNERS, RULES[rule])
    assert (clf.predict(CORNERS) == RULES[rule]).all()
    assert log_loss(clf.predict_proba(CORNERS), RULES[rule]) < 0.3


@pytest.mark.parametrize("classifier", ALL)
def test_contradicting_labels_give_their_shares(classifier):
    """Three of four copies of every row say one thing, the fourth another."""
    y = np.where(np.arange(100) % 4 == 0, 1 - RULES["xor"], RULES["xor"])
    clf = classifier(random_state=0).fit(CORNERS, y)
    shares = np.array([y[k : k + 25].mean() for k in range(0, 100, 25)])
    np.testing.assert_allclose(clf.predict_proba(CORNERS[::25])[:, 1], shares, atol=0.06)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("classifier", ALL)
def test_noise_looks_no_better_than_chance(classifier, seed):
    random = np.random.RandomState(seed)
    X, y = random.randn(160, 6), random.randint(2, size=160)
    X_new, y_new = random.randn(2000, 6), random.randint(2, size=2000)
    clf = classifier(random_state=0).fit(X, y)
    assert log_loss(clf.oof_proba_, y) > np.log(2) - 0.04
    assert log_loss(clf.loo_proba_, y) > np.log(2) - 0.06  # it chose the kernel
    assert log_loss(clf.predict_proba(X_new), y_new) < np.log(2) + 0.06
