"""The papers' generated problems: exact posteriors, and samples that follow them."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from kproba.data.toys import one_dimension_2011, three_classes_2010, three_classes_textbook

#: Each problem with the argument that makes it large.
LARGE = [
    (three_classes_2010, {"n": 60_000}),
    (one_dimension_2011, {"n_per_class": 30_000}),
    (three_classes_textbook, {"n": 60_000}),
]
EVERY = [make for make, _ in LARGE]


@pytest.mark.parametrize("make", EVERY)
def test_posterior_rows_are_probabilities(make):
    toy = make(random_state=0)
    points = np.random.RandomState(0).uniform(-50, 50, size=(500, toy.X.shape[1]))
    p = toy.posterior(points)
    assert p.shape == (500, len(np.unique(toy.y)))
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("make", EVERY)
def test_posterior_is_finite_where_all_densities_underflow(make):
    toy = make(random_state=0)
    far = np.full((1, toy.X.shape[1]), 1e4)
    assert toy.density(far) == 0.0
    np.testing.assert_allclose(toy.posterior(far).sum(axis=1), 1.0)


@pytest.mark.parametrize(("make", "size"), LARGE)
def test_posterior_agrees_with_frequencies(make, size):
    """Among rows whose p(y|x) lies in a bin, the share of y is the mean of p(y|x), within sampling error."""
    toy = make(**size, random_state=0)
    p = toy.posterior(toy.X)
    for y in range(p.shape[1]):
        number = np.minimum((10 * p[:, y]).astype(int), 9)
        for each in np.unique(number):
            inside = number == each
            if inside.sum() < 100:
                continue
            sampling = np.sqrt((p[inside, y] * (1 - p[inside, y])).sum()) / inside.sum()
            assert abs(p[inside, y].mean() - (toy.y[inside] == y + 1).mean()) < 4.5 * sampling + 1e-3


@pytest.mark.parametrize("make", EVERY)
def test_random_state_decides_and_nothing_global_moves(make):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, other = make(random_state=3), make(random_state=4)
    again = make(random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_2010_densities_are_those_printed():
    toy = three_classes_2010(random_state=0)
    x = np.array([[0.3, -1.2], [-2.0, 0.5], [4.0, 3.0]])
    third = 0.5 * multivariate_normal([0, -3], np.diag([4, 1])).pdf(x)
    third += 0.5 * multivariate_normal([0, 2], np.diag([1, 4])).pdf(x)
    first, second = (multivariate_normal([mean, 0], np.eye(2)).pdf(x) for mean in (-2, 2))
    np.testing.assert_allclose(toy.conditional_densities(x), np.column_stack([first, second, third]), rtol=1e-12)
    np.testing.assert_allclose(toy.density(x), 0.25 * first + 0.25 * second + 0.5 * third, rtol=1e-12)
    assert toy.X.shape == (200, 2)
    shares = np.bincount(three_classes_2010(40_000, random_state=0).y)[1:] / 40_000
    np.testing.assert_allclose(shares, [0.25, 0.25, 0.5], atol=0.01)


def test_2011_posterior_by_hand():
    toy = one_dimension_2011(random_state=0)
    x = np.linspace(-5, 5, 11)
    first, second = norm.pdf(x), 0.5 * norm.pdf(x, -2) + 0.5 * norm.pdf(x, 2)
    np.testing.assert_allclose(toy.posterior(x[:, None])[:, 0], first / (first + second), rtol=1e-12)
    assert np.bincount(toy.y).tolist() == [0, 250, 250]


def test_textbook_classes():
    toy = three_classes_textbook(random_state=0)
    assert np.bincount(toy.y).tolist() == [0, 30, 30, 30]
    np.testing.assert_allclose([toy.X[toy.y == y].mean() for y in (1, 2, 3)], [-3, 0, 3], atol=0.6)
    with pytest.raises(ValueError, match="multiple of 3"):
        three_classes_textbook(n=100)
