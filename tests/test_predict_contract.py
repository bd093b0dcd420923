"""`predict` is the argmax of `predict_proba`, whose rows are probabilities, on whatever problem."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone

from kproba import LSPC, links

LINKS = tuple(name for name, link in links.LINKS.items() if link.gives_probabilities)
CENTERS = ("auto", "all", "class", 7, ("class", 3))
CHOICES = tuple(itertools.product(LINKS, CENTERS))
KERNELS = ("gaussian", "laplacian", "matern32", "linear", "polynomial")
PROBLEMS = range(50)


def random_problem(number):
    """2 to 50 classes, coordinates on a coarse grid (ties), and rows repeated, some under other labels."""
    rng = np.random.default_rng(number)
    c = (2, 3, 5, 10, 20, 50)[number % 6]
    n, d = int(rng.integers(max(2 * c, 20), 2 * c + 40)), int(rng.integers(1, 6))
    y = np.concatenate([np.arange(c), rng.integers(c, size=n - c)])
    X = rng.normal(size=(c, d))[y] + rng.normal(size=(n, d))
    X = X.round(int(rng.integers(0, 3)))
    copies = rng.integers(n, size=n // 3)
    y = np.concatenate([y, np.where(rng.uniform(size=len(copies)) < 0.5, y[copies], rng.integers(c, size=len(copies)))])
    X = np.vstack([X, X[copies]])
    labels = np.array([f"class {k:02d}" for k in range(c)]) if number % 2 else np.arange(c) * 3 - 5
    return X, labels[y], rng


def points_to_meet(X, rng):
    """The rows, new ones, ones in the middle between two rows, and ones far away in all directions."""
    half = (X[rng.integers(len(X), size=20)] + X[rng.integers(len(X), size=20)]) / 2
    far = 1e6 * rng.choice([-1.0, 1.0], size=(20, X.shape[1]))
    one_far = np.zeros((5, X.shape[1]))
    one_far[:, 0] = 10.0 ** np.arange(1, 6)
    return np.vstack([X, half, far, one_far])


def sampled_model(number):
    link, centers = CHOICES[number % len(CHOICES)]
    searched = number % 11 == 0
    return LSPC(
        kernel="auto" if searched else KERNELS[number % len(KERNELS)],
        width="auto" if searched else "median",
        ridge="auto" if searched else 10.0 ** -(number % 5),
        link=link,
        centers=centers,
        scaling=("auto", "standard", None)[number % 3],
        penalty=("rkhs", "parameters")[number % 2],
        random_state=number,
    )


def check_probabilities(proba, n, c):
    assert proba.shape == (n, c)
    assert not np.isnan(proba).any()
    assert proba.min() >= 0
    assert proba.max() <= 1
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_the_sample_meets_every_link_with_every_centre_mode():
    """Of the parameters drawn by the number of the problem, none is left out."""
    models = [sampled_model(number) for number in PROBLEMS]
    assert {(m.link, str(m.centers)) for m in models} == {(link, str(centers)) for link, centers in CHOICES}
    assert {m.kernel for m in models} == {"auto", *KERNELS}


@pytest.mark.filterwarnings("ignore::kproba.ConditionWarning", "ignore::kproba.FewRowsWarning")
@pytest.mark.parametrize("number", PROBLEMS)
def test_predict_is_the_argmax_of_probabilities(number):
    X, y, rng = random_problem(number)
    model = sampled_model(number).fit(X, y)
    points = points_to_meet(X, rng)
    proba = model.predict_proba(points)
    check_probabilities(proba, len(points), len(model.classes_))
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    np.testing.assert_array_equal(model.predict(points), model.classes_[proba.argmax(axis=1)])

    decision = model.decision_function(points)
    assert np.isfinite(decision).all()
    if len(model.classes_) == 2:
        decided = decision > 0
        clear = np.abs(proba[:, 1] - 0.5) > 1e-12
        np.testing.assert_array_equal(decided[clear], proba[clear, 1] > 0.5)
    else:
        best = proba[np.arange(len(points)), decision.argmax(axis=1)]
        np.testing.assert_allclose(best, proba.max(axis=1), rtol=0, atol=1e-12)

    loo = getattr(model, "loo_proba_", None)
    if loo is not None:
        check_probabilities(loo, len(X), len(model.classes_))


@pytest.mark.filterwarnings("ignore::kproba.ConditionWarning", "ignore::kproba.FewRowsWarning")
@pytest.mark.parametrize("number", range(8))
def test_float32(number):
    X, y, rng = random_problem(number)
    model = sampled_model(number).fit(X.astype(np.float32), y)
    points = points_to_meet(X, rng).astype(np.float32)
    proba = model.predict_proba(points)
    assert proba.dtype == np.float64
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(points), model.classes_[proba.argmax(axis=1)])
    in_double = sampled_model(number).fit(X.astype(np.float32).astype(np.float64), y)
    np.testing.assert_allclose(proba, in_double.predict_proba(points.astype(np.float64)), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::kproba.ConditionWarning", "ignore::kproba.FewRowsWarning")
@pytest.mark.parametrize("number", range(6))
def test_rows_do_not_depend_on_their_company(number):
    X, y, rng = random_problem(number)
    model = sampled_model(number).fit(X, y)
    points = points_to_meet(X, rng)
    alone = np.vstack([model.predict_proba(point[None]) for point in points[::7]])
    np.testing.assert_allclose(alone, model.predict_proba(points)[::7], rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
@pytest.mark.parametrize("link", ["auto", "softmax"])
@pytest.mark.parametrize("centers", CENTERS, ids=str)
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "matern52"])
def test_far_points_have_the_probabilities_of_the_prior(link, centers, kernel):
    """With no scaling nothing squashes the distance, every kernel value is zero, and so is every score."""
    X, y, _ = random_problem(7)
    model = LSPC(kernel=kernel, link=link, centers=centers, scaling=None, random_state=0).fit(X, y)
    prior = np.unique(y, return_counts=True)[1] / len(y)
    far = np.vstack([np.full((1, X.shape[1]), 1e6), np.full((1, X.shape[1]), -1e6)])
    np.testing.assert_allclose(model.predict_proba(far), [prior, prior], rtol=0, atol=1e-6)


def test_far_points_have_the_prior_that_weights_make():
    X, y, rng = random_problem(1)
    weight = rng.uniform(0.1, 3.0, size=len(y))
    model = LSPC(kernel="gaussian", scaling="standard", width=1.0, ridge=0.1).fit(X, y, weight)
    prior = [weight[y == k].sum() / weight.sum() for k in model.classes_]
    np.testing.assert_allclose(model.predict_proba(X[:1] + 1e6), [prior], rtol=0, atol=1e-6)
    balanced = clone(model).set_params(class_weight="balanced").fit(X, y)
    expected = np.full((1, len(model.classes_)), 1 / len(model.classes_))
    np.testing.assert_allclose(balanced.predict_proba(X[:1] + 1e6), expected, rtol=0, atol=1e-6)


def test_far_points_of_the_default_model_stay_probabilities():
    """Robust scaling squashes distances: far points lie at the edge of the data, not beyond it."""
    X, y, _ = random_problem(2)
    model = LSPC(random_state=0).fit(X, y)
    for distance in (1e3, 1e6, 1e12, 1e100):
        far = np.vstack([np.full((1, X.shape[1]), distance), np.full((1, X.shape[1]), -distance)])
        check_probabilities(model.predict_proba(far), 2, len(model.classes_))


@pytest.mark.parametrize("link", ["clip", "clip-parameters"])
def test_far_points_of_the_papers_links_are_uniform(link):
    """All scores zero: 1/c (2010 Eq. 3)."""
    X, y, _ = random_problem(8)
    model = LSPC(kernel="gaussian", width=1.0, ridge=0.1, link=link, scaling=None).fit(X, y)
    c = len(model.classes_)
    np.testing.assert_array_equal(model.predict_proba(np.full((1, X.shape[1]), 1e6)), np.full((1, c), 1 / c))
    assert model.predict(np.full((1, X.shape[1]), 1e6)) == model.classes_[0]


class TestLinkNone:
    X, y, _ = random_problem(1)

    def test_there_is_no_predict_proba_and_the_error_says_why(self):
        for model in (LSPC(link="none"), LSPC(link="none", width=1.0, ridge=0.1).fit(self.X, self.y)):
            assert not hasattr(model, "predict_proba")
            assert hasattr(model, "decision_function")
            with pytest.raises(AttributeError, match="predict_proba") as caught:
                _ = model.predict_proba
            reasons = str(caught.value) + str(caught.value.__cause__)
            assert "link='none'" in reasons
            assert "decision_function" in reasons
        assert hasattr(LSPC(link="clip"), "predict_proba")

    def test_there_is_no_loo_proba_either(self):
        model = LSPC(link="none", width=1.0, loo=True).fit(self.X, self.y)
        assert not hasattr(model, "loo_proba_")
        assert model.loo_scores_.shape == (len(self.y), 3)

    @pytest.mark.parametrize("centers", CENTERS, ids=str)
    def test_predict_is_the_argmax_of_the_decision(self, centers):
        """Scores over their sum (2011 Eq. 5): they sum to one but may leave [0, 1]."""
        model = LSPC(kernel="gaussian", link="none", centers=centers, width="median", ridge=1e-3, random_state=0).fit(
            self.X, self.y
        )
        decision = model.decision_function(self.X)
        np.testing.assert_allclose(decision.sum(axis=1), 1.0, atol=1e-8)
        np.testing.assert_array_equal(model.predict(self.X), model.classes_[decision.argmax(axis=1)])

    def test_outputs_leave_the_unit_interval(self):
        model = LSPC(kernel="gaussian", link="none", width=2.0, ridge=1e-6).fit(self.X, self.y)
        decision = model.decision_function(self.X)
        assert decision.min() < 0 or decision.max() > 1

    def test_two_classes(self):
        y = self.y == self.y[0]
        model = LSPC(kernel="gaussian", link="none", width=1.0, ridge=1e-3).fit(self.X, y)
        decision = model.decision_function(self.X)
        assert decision.shape == (len(y),)
        np.testing.assert_array_equal(model.predict(self.X), decision > 0)

    def test_far_points(self):
        model = LSPC(kernel="gaussian", link="none", width=1.0, ridge=0.1, scaling=None).fit(self.X, self.y)
        far = np.full((1, self.X.shape[1]), 1e6)
        assert np.isfinite(model.decision_function(far)).all()
        assert model.predict(far)[0] in model.classes_


@pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("centers", CENTERS, ids=str)
def test_tags(link, centers):
    """A tag is predicted where it is more likely than not."""
    X, y, rng = random_problem(3)
    tags = np.column_stack([y == label for label in np.unique(y)[:3]]).astype(int)
    model = LSPC(kernel="gaussian", link=link, centers=centers, width="median", ridge=0.01, random_state=0).fit(X, tags)
    points = points_to_meet(X, rng)
    proba = model.predict_proba(points)
    assert proba.shape == (len(points), 3)
    assert np.isfinite(proba).all() and proba.min() >= 0 and proba.max() <= 1
    np.testing.assert_array_equal(model.predict(points), (proba > 0.5).astype(int))
    clear = np.abs(proba - 0.5) > 1e-9
    np.testing.assert_array_equal((model.decision_function(points) > 0)[clear], (proba > 0.5)[clear])
