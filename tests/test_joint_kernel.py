"""A kernel over rows and classes (2010 Eq. 4), against the equation written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
from kproba import (
    LSPC,
    ImportVectorMachine,
    JointKernel,
    KernelLogisticRegression,
    SurfaceKernelClassifier,
    save,
    to_onnx,
)
from kproba.data.sources import ArraySource

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
X[5] = X[4]
Y = np.array(["a", "b", "c"])[np.arange(24) % 3]
WEIGHT = RNG.uniform(0.5, 3.0, 24)
CLASSES = ["a", "b", "c"]
WIDTH = {"a": 0.7, "b": 1.0, "c": 1.9}


def one_pair(x, z, y, y2):
    """Classes have widths of their own, which no product K(x, x')·L(y, y') has."""
    s, t = WIDTH[str(y)], WIDTH[str(y2)]
    like = 1.0 if y == y2 else 0.3
    return like * 2 * s * t / (s**2 + t**2) * np.exp(-np.sum((x - z) ** 2) / (s**2 + t**2))


def kernel(X, y, Z, z):
    return np.array([[one_pair(p, q, a, b) for q, b in zip(Z, z)] for p, a in zip(X, y)])


def model(**more):
    given = {"kernel": JointKernel(kernel), "ridge": 0.03, "scaling": None, "link": "clip", "random_state": 0}
    return LSPC(**{**given, **more})


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_is_the_equation(weight):
    clf = model(loo=True).fit(X, Y, weight)
    plain = np.ones(24) if weight is None else weight
    alpha = oracles.joint_solution(one_pair, X, Y, plain, clf.centers_, CLASSES, 0.03)
    assert clf.coef_.shape == (23, 3)
    assert_allclose(clf.coef_, alpha, atol=1e-10)
    new = RNG.normal(size=(5, 2))
    scores = oracles.joint_scores(one_pair, new, clf.centers_, CLASSES, alpha)
    assert_allclose(clf.predict_proba(new), oracles.clip_link(scores), atol=1e-10)
    for i in (0, 4, 11):
        less = plain.copy()
        less[i] -= oracles.one_unit(plain)[i]
        without = oracles.joint_solution(one_pair, X, Y, less, clf.centers_, CLASSES, 0.03, total=plain.sum())
        expected = oracles.joint_scores(one_pair, X[[i]], clf.centers_, CLASSES, without)[0]
        assert_allclose(clf.loo_scores_[i], expected, atol=1e-10)


def test_a_product_is_class_similarity():
    L = np.array([[1.0, 0.4, 0.0], [0.4, 1.0, 0.2], [0.0, 0.2, 1.0]])

    def product(X, y, Z, z):
        numbers = dict(zip(CLASSES, range(3)))
        own, other = ([numbers[label] for label in labels] for labels in (y, z))
        return np.exp(-np.square(X[:, None] - Z).sum(axis=2) / 2) * L[np.ix_(own, other)]

    given = {"penalty": "parameters", "ridge": [1e-3, 1e-2, 0.1]}
    similar = model(kernel="gaussian", width=1.0, class_similarity=L, **given).fit(X, Y)
    joint = model(kernel=JointKernel(product), **given).fit(X, Y)
    assert joint.ridge_ == similar.ridge_
    assert_allclose(joint.predict_proba(X), similar.predict_proba(X), atol=1e-9)
    assert_allclose(joint.loo_scores_, similar.loo_scores_, atol=1e-9)


def test_everything_chosen_and_calibrated():
    clf = LSPC(kernel=JointKernel(kernel), selection="cv", folds=3, random_state=0).fit(X, Y)
    assert clf.penalty_ == "parameters" and len(set(clf.search_results_["ridge"])) > 5
    assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)
    assert model(centers=X[:4]).fit(X, Y).coef_.shape == (4, 3)
    assert model(centers=7).fit(X, Y).coef_.shape == (7, 3)
    path = model().path(X, Y, [1e-3, 0.03])
    assert_allclose(path.coef[1], model().fit(X, Y).coef_, atol=1e-10)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"penalty": "rkhs"}, "penalty='rkhs'"),
        ({"class_similarity": np.eye(3)}, "class_similarity="),
        ({"link": "clip-parameters"}, "link='clip-parameters'"),
        ({"centers": "class"}, "centers='class'"),
        ({"solver": "sgd"}, "solver='sgd'"),
        ({"device": "cuda"}, "device='cuda'"),
    ],
)
def test_what_it_cannot_be_combined_with(options, name):
    with pytest.raises(ValueError, match=rf"kernel=JointKernel\(...\) cannot be combined with {name}"):
        model(**options).fit(X, Y)


def test_where_it_does_not_apply(tmp_path):
    with pytest.raises(ValueError, match=r"JointKernel.*multi-label"):
        model().fit(X, np.eye(3)[np.arange(24) % 3][:, :2].astype(int))
    with pytest.raises(ValueError, match=r"JointKernel\(...\) needs all rows in memory"):
        model().fit(ArraySource(X, Y))
    for other in (KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier):
        with pytest.raises(TypeError, match=f"JointKernel.*{other.__name__} does not support; use LSPC"):
            other(kernel=JointKernel(kernel)).fit(X, Y)
    with pytest.raises(ValueError, match=r"the callable returned shape \(24,\)"):
        model(kernel=JointKernel(lambda X, y, Z, z: np.ones(len(X)))).fit(X, Y)
    fitted = model().fit(X, Y)
    with pytest.raises((TypeError, ValueError), match=r"(?i)kernel|function"):
        save(fitted, tmp_path / "m.kproba")
    assert not list(tmp_path.iterdir())
    with pytest.raises((TypeError, ValueError, NotImplementedError), match="kernel"):
        to_onnx(fitted)
    assert not hasattr(model(), "partial_fit")
