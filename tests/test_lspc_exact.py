"""LSPC against the textbook oracles: coefficients, links, leave-one-out, folds, weights."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_multilabel_classification

from kproba import LSPC, ConditionWarning
from kproba.links import CalibratedSoftmax, calibrated
from kproba.links.calibrated import SoftmaxFit
from oracles import (
    class_wise_loo_by_refitting,
    clip_link,
    gaussian,
    laplacian,
    loo_by_refitting,
    lspc_2010_fig3,
    lspc_textbook,
    one_hot,
    ridge_solution,
    similarity_solution,
)


@pytest.fixture(scope="module")
def textbook():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 30)
    return (rng.standard_normal(90) + np.repeat([-3.0, 0.0, 3.0], 30))[:, None], y


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(60, 4, n_informative=3, n_redundant=0, n_classes=3, random_state=1)
    return X, y


def paper(**changes):
    settings = {
        "kernel": "gaussian",
        "scaling": None,
        "penalty": "parameters",
        "link": "clip",
        "random_state": 0,
    }
    return LSPC(**{**settings, **changes})


def test_textbook_figure_28_5(textbook):
    X, y = textbook
    X_new = np.linspace(-5, 5, 100)[:, None]
    coef, proba = lspc_textbook(X, y, X_new, width=1.0, ridge=0.1)
    clf = paper(width=1.0, ridge=0.1 / len(X), centers="class").fit(X, y)
    for label in range(3):
        own = clf.basis_.owner == label
        mine = dict(zip(clf.centers_[own, 0], clf.coef_[own, label]))
        assert np.allclose([mine[x] for x in X[y == label, 0]], coef[label], rtol=1e-10, atol=1e-10)
        assert (clf.coef_[~own, label] == 0).all()
    assert np.allclose(clf.predict_proba(X_new), proba, rtol=1e-10, atol=1e-10)


def test_2010_figure_3(problem):
    X, y = problem
    clf = paper(width=1.5, ridge=0.01, centers="class").fit(X, y)
    for label, expected in enumerate(lspc_2010_fig3(X, y, 1.5, 0.01)):
        own = np.flatnonzero(clf.basis_.owner == label)
        order = [own[np.all(clf.centers_[own] == x, axis=1)][0] for x in X[y == label]]
        assert np.allclose(clf.coef_[order, label], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("solver", ["cholesky", "eigen"])
@pytest.mark.parametrize("penalty", ["parameters", "rkhs"])
def test_shared_centers(problem, solver, penalty):
    X, y = problem
    clf = paper(width=1.0, ridge=0.003, centers="all", penalty=penalty, solver=solver).fit(X, y)
    phi = gaussian(X, clf.centers_, 1.0)
    P = np.eye(len(X)) if penalty == "parameters" else gaussian(clf.centers_, clf.centers_, 1.0)
    coef = ridge_solution(phi, one_hot(y, 3), np.ones(len(X)), P, 0.003)
    scores = phi @ coef
    tolerance = 1e-10 if penalty == "parameters" else 1e-6  # eigen whitens by a kernel matrix with a floor
    assert np.allclose(clf.basis_.scores(X, clf.coef_), scores, atol=tolerance)
    if penalty == "parameters":
        assert np.allclose(clf.coef_, coef, atol=1e-10)
    assert np.allclose(clf.predict_proba(X), clip_link(scores), atol=10 * tolerance)


def test_dual_form_equals_the_primal_one(problem):
    X, y = problem
    w = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    args = {"width": 1.0, "ridge": 0.001, "centers": "all", "penalty": "rkhs", "loo": True}
    dual, primal = (paper(**args, solver=s).fit(X, y, w) for s in ("auto", "cholesky"))
    assert np.allclose(dual.loo_scores_, primal.loo_scores_, atol=1e-8)
    assert np.allclose(dual.predict_proba(X), primal.predict_proba(X), atol=1e-8)


def test_clip_parameters_link(problem):
    X, y = problem
    clf = paper(width=1.0, ridge=0.01, centers="all", link="clip-parameters").fit(X, y)
    phi = gaussian(X, clf.centers_, 1.0)
    coef = np.maximum(0, ridge_solution(phi, one_hot(y, 3), np.ones(len(X)), np.eye(len(X)), 0.01))
    assert np.allclose(clf.coef_, coef, atol=1e-10)
    scores = phi @ coef
    assert np.allclose(clf.predict_proba(X), scores / scores.sum(axis=1, keepdims=True), atol=1e-10)


def test_no_link(problem):
    X, y = problem
    clf = paper(width=0.5, ridge=1e-4, centers="all", link="none").fit(X, y)
    scores = gaussian(X, clf.centers_, 0.5) @ clf.coef_
    decision = clf.decision_function(X)
    assert np.allclose(decision, scores / scores.sum(axis=1, keepdims=True), atol=1e-8)
    assert decision.min() < 0
    assert not hasattr(clf, "predict_proba")


def penalty_of(clf, kernel, width):
    Z = clf.centers_
    return kernel(Z, Z, width) if clf.penalty_ == "rkhs" else np.eye(len(Z))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", ["parameters", "rkhs"])
@pytest.mark.parametrize("centers", ["all", 20])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "eigen"])
def test_leave_one_out_equals_refitting(problem, weighted, penalty, centers, solver):
    X, y = problem
    w = np.random.default_rng(3).choice([0.4, 1.0, 2.0, 3.5], len(X)) if weighted else np.ones(len(X))
    for ridge in (1e-4, 1e-2, 1.0):
        clf = paper(kernel="laplacian", width=2.0, ridge=ridge, centers=centers, penalty=penalty, solver=solver)
        clf.set_params(loo=True).fit(X, y, w)
        phi = laplacian(X, clf.centers_, 2.0)
        expected = loo_by_refitting(phi, one_hot(y, 3), w, penalty_of(clf, laplacian, 2.0), ridge)
        # the whitening floor of the eigen solver is felt under the RKHS penalty
        tolerance = 1e-5 if (solver, penalty) == ("eigen", "rkhs") else 1e-8
        assert np.abs(clf.loo_scores_ - expected).max() < tolerance


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", ["parameters", "rkhs"])
def test_class_wise_leave_one_out_equals_refitting(problem, weighted, penalty):
    X, y = problem
    w = np.random.default_rng(3).choice([1.0, 2.0], len(X)) if weighted else np.ones(len(X))
    clf = paper(width=1.0, ridge=1e-3, centers="class", penalty=penalty, loo=True).fit(X, y, w)
    expected = class_wise_loo_by_refitting(X, y, w, 1.0, 1e-3, penalty == "rkhs", clip_parameters=False)
    assert np.abs(clf.loo_scores_ - expected).max() < 1e-8


def test_leave_one_out_of_a_whole_grid(problem):
    """Every (width, ridge) of a grid: the recorded losses are those of refitted scores."""
    X, y = problem
    widths, ridges = (0.7, 1.5, 4.0), (1e-5, 1e-3, 1e-1, 1.0)
    clf = paper(width=widths, ridge=ridges, centers="all").fit(X, y)
    record = clf.search_results_
    assert len(record["loss"]) == len(widths) * len(ridges)
    for width, ridge, loss in zip(record["width"], record["ridge"], record["loss"]):
        phi = gaussian(X, X, width)
        loo = clip_link(loo_by_refitting(phi, one_hot(y, 3), np.ones(len(X)), np.eye(len(X)), ridge))
        assert np.isclose(loss, np.square(loo - one_hot(y, 3)).sum(axis=1).mean(), atol=1e-8)
    best = np.argmin(record["loss"])
    assert (clf.width_, clf.ridge_) == (record["width"][best], record["ridge"][best])


def test_clip_parameters_leave_one_out(problem):
    X, y = problem
    clf = paper(width=1.0, ridge=1e-2, centers="all", link="clip-parameters", loo=True).fit(X, y)
    phi, Y = gaussian(X, clf.centers_, 1.0), one_hot(y, 3)
    expected = np.empty_like(Y)
    for i in range(len(X)):
        w = np.ones(len(X))
        w[i] = 0
        A = (phi.T * w) @ phi + len(X) * 1e-2 * np.eye(len(X))
        expected[i] = phi[i] @ np.maximum(0, np.linalg.solve(A, (phi.T * w) @ Y))
    assert np.allclose(clf.loo_scores_, expected, atol=1e-8)


@pytest.mark.parametrize("link", ["clip", "clip-parameters"])
def test_folds_by_subtracted_moments(problem, link):
    """Cross-validation losses equal those of models refitted on the other folds."""
    from kproba.data.folds import stratified_folds
    from kproba.data.rows import Rows

    X, y = problem
    clf = paper(width=(0.8, 2.0), ridge=(1e-3, 1e-1), centers="all", selection="cv", folds=3, link=link).fit(X, y)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    fold = stratified_folds(Rows.of(X, y, np.ones(len(X)), 3), 3, seed)
    record = clf.search_results_
    for width, ridge, loss in zip(record["width"], record["ridge"], record["loss"]):
        scores = np.empty((len(X), 3))
        for f in range(3):
            rest = fold != f
            phi = gaussian(X[rest], X, width)
            coef = ridge_solution(phi, one_hot(y[rest], 3), np.ones(rest.sum()), np.eye(len(X)), ridge)
            coef = np.maximum(coef, 0) if link == "clip-parameters" else coef
            scores[~rest] = gaussian(X[~rest], X, width) @ coef
        expected = np.square(clip_link(scores) - one_hot(y, 3)).sum(axis=1).mean()
        assert np.isclose(loss, expected, atol=1e-10)


@pytest.mark.parametrize("penalty", ["parameters", "rkhs"])
@pytest.mark.parametrize("solver", ["cholesky", "eigen"])
@pytest.mark.parametrize("rank", ["full", "singular"])
def test_class_similarity_by_kronecker_structure(problem, penalty, solver, rank):
    X, y = problem
    L = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.0]])
    if rank == "singular":
        L = np.outer([1.0, 1.0, 0.5], [1.0, 1.0, 0.5]) + np.diag([0.0, 0.0, 1.0])
    clf = paper(kernel="laplacian", width=2.0, ridge=0.01, centers=15, penalty=penalty, solver=solver)
    clf.set_params(class_similarity=L, loo=True).fit(X, y)
    phi, P = laplacian(X, clf.centers_, 2.0), laplacian(clf.centers_, clf.centers_, 2.0)
    expected = phi @ similarity_solution(phi, one_hot(y, 3), L, P, 0.01, penalty == "rkhs")
    assert np.allclose(clf.basis_.scores(X, clf.coef_), expected, atol=1e-6)
    # leave-one-out of the joint system, by refitting
    less = np.delete(np.arange(len(X)), 7)
    part = similarity_solution(phi[less], one_hot(y, 3)[less], L, P, 0.01 * len(X) / len(less), penalty == "rkhs")
    assert np.allclose(clf.loo_scores_[7], phi[7] @ part, atol=1e-6)


def test_identity_similarity_changes_nothing(problem):
    X, y = problem
    args = {"width": 1.0, "ridge": 0.01, "centers": 20}
    plain, similar = paper(**args).fit(X, y), paper(**args, class_similarity=np.eye(3)).fit(X, y)
    assert np.allclose(plain.predict_proba(X), similar.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("centers", ["auto", "class", 12, ("class", 4)])
@pytest.mark.parametrize("link", ["auto", "clip"])
def test_integer_weights_equal_repeated_rows(problem, centers, link):
    X, y = problem
    rng = np.random.default_rng(5)
    w = rng.integers(0, 4, len(X))
    again = rng.permutation(np.repeat(np.arange(len(X)), w))
    weighted = LSPC(centers=centers, link=link, random_state=0).fit(X, y, w)
    repeated = LSPC(centers=centers, link=link, random_state=0).fit(X[again], y[again])
    assert (weighted.kernel_.name, weighted.ridge_) == (repeated.kernel_.name, repeated.ridge_)
    assert np.isclose(weighted.width_, repeated.width_)
    assert np.allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    assert np.allclose(weighted.loo_proba_[again], repeated.loo_proba_, atol=1e-6)


def test_row_order_does_not_matter(problem):
    X, y = problem
    order = np.random.default_rng(0).permutation(len(X))
    one, other = LSPC(random_state=0).fit(X, y), LSPC(random_state=0).fit(X[order], y[order])
    assert np.allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


def test_rows_of_weight_zero_get_the_models_own_scores(problem):
    X, y = problem
    w = np.ones(len(X))
    w[:5] = 0
    clf = paper(width=1.0, ridge=0.01, centers="all", loo=True).fit(X, y, w)
    assert np.allclose(clf.loo_scores_[:5], clf.basis_.scores(X[:5], clf.coef_))
    assert len(clf.centers_) == len(X) - 5


def test_multilabel_is_one_factorisation_and_equals_two_class_fits(monkeypatch):
    further = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}  # the link of two classes stops before its minimum
    minimize = calibrated.minimize
    monkeypatch.setattr(calibrated, "minimize", lambda *a, **k: minimize(*a, **{**k, "options": further}))
    X, Y = make_multilabel_classification(80, 5, n_classes=4, random_state=0)
    args = {"kernel": "gaussian", "width": 2.0, "ridge": 1e-3, "centers": "all", "random_state": 0}
    for link in ("clip", "clip-parameters", "softmax"):
        tags = LSPC(**args, link=link).fit(X, Y)
        proba = tags.predict_proba(X)
        assert proba.shape == Y.shape
        assert np.array_equal(tags.predict(X), (proba > 0.5).astype(int))
        for j in range(Y.shape[1]):
            one = LSPC(**args, link=link).fit(X, Y[:, j])
            assert np.allclose(proba[:, j], one.predict_proba(X)[:, 1], atol=1e-5 if link == "softmax" else 1e-9)


def test_singular_systems_stay_finite_and_say_so(problem):
    X, y = problem
    twice = np.vstack([X[:20], X[:20]])
    with pytest.warns(ConditionWarning, match="added to its diagonal"):
        clf = paper(width=1.0, ridge=1e-300, centers=twice).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()
    for solver in ("auto", "eigen", "cholesky"):
        with pytest.warns(ConditionWarning):
            clf = paper(width=50.0, ridge=1e-30, centers="all", penalty="rkhs", solver=solver).fit(X, y)
        assert np.isfinite(clf.predict_proba(X)).all()


def test_link_stays_finite_on_separable_scores():
    scores = np.repeat(np.eye(3), 20, axis=0) * 1.2 - 0.1
    link = SoftmaxFit(scores, np.repeat(np.eye(3), 20, axis=0), np.ones(60), np.full(3, 1 / 3)).run()
    p = link.probabilities(scores)
    assert np.isfinite(link.slope).all() and np.isfinite(link.offset).all()
    assert 0.9 < p.max() < 1.0 - 1e-4


def test_link_gradient():
    rng = np.random.default_rng(0)
    Y = np.eye(3)[rng.integers(0, 3, 40)]
    fit = SoftmaxFit(Y + 0.4 * rng.standard_normal((40, 3)), Y, rng.random(40) + 0.5, np.array([0.2, 0.3, 0.5]))
    x = 0.3 * rng.standard_normal(8)
    steps = 1e-6 * np.eye(8)
    numeric = [(fit.loss(x + s)[0] - fit.loss(x - s)[0]) / 2e-6 for s in steps]
    assert np.allclose(fit.loss(x)[1], numeric, atol=1e-7)


def test_zero_score_decodes_to_the_prior():
    prior = np.array([0.1, 0.2, 0.7])
    link = CalibratedSoftmax(prior, np.array([2.0, 3.0, 1.0]), 5.0, np.array([1.0, -2.0, 0.5]))
    assert np.allclose(link.probabilities(np.zeros((1, 3))), prior, rtol=1e-12)


def test_a_given_ridge_is_kept_while_the_width_is_searched(problem):
    X, y = problem
    for centers in ("all", 10):
        clf = LSPC(ridge=0.0123, centers=centers, random_state=0).fit(X, y)
        assert clf.ridge_ == 0.0123
        assert set(clf.search_results_["ridge"]) == {0.0123}


def test_median_width(problem):
    from scipy.spatial.distance import pdist

    X, y = problem
    clf = paper(width="median", ridge=0.01).fit(X, y)
    assert np.isclose(clf.width_, np.median(pdist(X)))
