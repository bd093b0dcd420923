"""Newton's method with one factor for each class ends where the one with the whole Hessian does."""

from itertools import pairwise

import numpy as np
import pytest

import oracles
from kproba import Gaussian, ImportVectorMachine
from kproba.data.rows import Rows
from kproba.problems.import_vectors import by_class
from kproba.problems.import_vectors import search as search_module
from kproba.problems.import_vectors.by_class import ClassFactors, Curvature
from kproba.problems.import_vectors.model import ImportModel, Task
from kproba.problems.import_vectors.path import Settings, follow
from kproba.problems.import_vectors.search import SEARCHES, Pool
from kproba.problems.losses import Multinomial


@pytest.fixture
def few_are_many(monkeypatch):
    """Even two classes are treated as many."""
    monkeypatch.setattr(by_class, "MANY_COLUMNS", 1)


def task_of(n=60, c=4, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % c
    X = random.normal(size=(n, 2)) + 1.2 * np.column_stack([np.cos(y), np.sin(2 * y)])
    return Task(Rows.of(X, y, random.uniform(0.3, 2.0, n), c), Gaussian(width=1.0), Multinomial(c))


def model_of(task, rho, points, beta=None):
    beta = np.zeros((len(points) + 1, task.loss.n_columns)) if beta is None else beta
    return ImportModel(task, rho, points, np.linalg.cholesky(task.columns(points)[points]), beta)


@pytest.mark.parametrize("c", [2, 3, 12])
@pytest.mark.parametrize("rho", [3.0, 0.01])
def test_finds_the_minimum(few_are_many, c, rho):
    task, points = task_of(c=c), [3, 11, 20, 31]
    model = model_of(task, rho, points).converge()
    rows = task.rows
    expected = oracles.ivm_by_scipy(task.columns(np.arange(len(task))), points, rows.labels, rows.weight, rho)
    assert model.value == pytest.approx(expected, rel=1e-8)
    assert np.abs(model.gradient()).max() < 1e-4 * rows.total_weight**0.5


def test_products_are_those_of_the_hessian():
    task, random = task_of(), np.random.default_rng(1)
    model = model_of(task, 0.3, [3, 50, 7], random.normal(size=(4, 3)))
    V = random.normal(size=(4, 3))
    (lower,) = model.full_factors().lowers
    np.testing.assert_allclose(Curvature(model).product(V).ravel(), lower @ lower.T @ V.ravel(), rtol=1e-9)


def test_a_border_extends_the_factors_of_every_class(few_are_many):
    task, points = task_of(), [3, 50, 7, 21]
    beta = np.random.default_rng(1).normal(size=(5, 3))
    beta[-1] = 0.0  # so that both models have the same probabilities
    small, large = model_of(task, 0.3, points[:-1], beta[:-1]), model_of(task, 0.3, points, beta)
    factors = ClassFactors.of(small)
    border = factors.border(small, large.psi[:, -1:])
    np.testing.assert_allclose(factors.extended(border, 0).inverse, ClassFactors.of(large).inverse, atol=1e-9)


@pytest.mark.parametrize("c", [3, 12])
def test_the_first_step_is_a_step_down(monkeypatch, few_are_many, c):
    """It lowers the objective, and the candidate it finds is about as good as the best one."""
    monkeypatch.setattr(search_module, "FINALISTS_BY_CLASS", 1000)
    task = task_of(c=c)
    model = model_of(task, 0.5, [3, 50]).converge()
    found = SEARCHES["one-step"](model, Pool(task))
    value = task.evaluate(np.column_stack([model.psi, found.column]) @ found.start)[0]
    assert value + 0.25 * np.sum(found.start[1:] ** 2) < model.value
    gains = []
    for name in ("one-step", "exact"):
        grown = model_of(task, 0.5, [3, 50]).converge()
        grown.add(SEARCHES[name](grown, Pool(task)))
        gains.append(model.value - grown.value)
    assert gains[0] > 0.8 * gains[1] > 0.0


def test_points_added_one_by_one_or_given_at_once(few_are_many):
    task = task_of(n=90, c=5)
    grown, points = follow(task, Pool(task), [0.01], Settings(SEARCHES["one-step"]))
    given_points = model_of(task, 0.01 * task.rows.total_weight, grown.chosen).converge()
    assert given_points.value == pytest.approx(grown.value, rel=1e-10) and points[0].n_points > 3
    np.testing.assert_allclose(given_points.U, grown.U, atol=1e-4)


def test_a_path_of_twelve_classes():
    """The whole estimator: objectives fall along the path, and the final model is converged."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 20)
    X = random.normal(size=(240, 2)) + 4.0 * np.column_stack([y % 4, y // 4])
    model = ImportVectorMachine(kernel="gaussian", width=1.0, scaling=None, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert all(more >= fewer for fewer, more in pairwise(model.path_["n_points"]))
    kept = ImportVectorMachine(kernel="gaussian", width=1.0, scaling=None, refit=False, random_state=0).fit(X, y)
    assert kept.score(X, y) > 0.9
