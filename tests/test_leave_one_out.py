"""Leave-one-out of likelihoods against dense Newton steps and refits of a dozen rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kproba import leave_one_out as module
from kproba.basis import Basis
from kproba.data.rows import Rows
from kproba.kernels import Gaussian
from kproba.leave_one_out import Solved, _accelerated, _weights, leave_one_out
from kproba.likelihood import Likelihood

N = 12
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2))
WEIGHT = np.array([1.0, 0.5, 2.0, 1.0, 3.0, 1.0] * 2)
TAGS = (RNG.random((N, 2)) < 0.5).astype(float)
TAGS[3, 1] = np.nan
LABELS = {"two classes": np.arange(N) % 2, "three classes": np.arange(N) % 3, "tags": TAGS}


class Problem:
    """A solved likelihood, and the same in dense matrices."""

    def __init__(self, labels, ridge=0.05):
        n_classes = labels.shape[1] if labels.ndim == 2 else labels.max() + 1
        self.rows = Rows.of(X, labels, WEIGHT, n_classes)
        problem = Likelihood(self.rows, Basis(Gaussian(1.0), X[:5]), tol=1e-12, max_iter=200)
        self.objective = problem.objective(ridge)
        self.point = problem.solve(self.objective).point
        self.loss, self.phi = self.objective.loss, self.objective.design.some(slice(None))

    def derivatives(self, coef, weight):
        """Gradient and Hessian over all coefficients at once."""
        _, P = self.loss.evaluate(self.phi @ coef, self.rows.labels, weight)
        gradient = self.phi.T @ (self.loss.residual(P, self.rows.labels) * weight[:, None])
        gradient += self.objective.rho * self.objective.gram @ coef
        W = self.loss.curvature(P)
        if self.rows.is_multilabel:
            W = W * ~np.isnan(self.rows.labels)[:, :, None]
        H = np.einsum("i,ijk,ia,ib->ajbk", weight, W, self.phi, self.phi)
        for j in range(coef.shape[1]):
            H[:, j, :, j] += self.objective.rho * self.objective.gram
        return gradient, H.reshape(coef.size, coef.size)

    def step(self, coef, weight):
        gradient, H = self.derivatives(coef, weight)
        return coef - np.linalg.solve(H, gradient.ravel()).reshape(coef.shape)

    def without(self, i, steps):
        """Scores of row i by so many Newton steps of the problem without one unit of it."""
        weight, coef = WEIGHT.copy(), self.point.X
        weight[i] -= min(1.0, WEIGHT[i])
        for _ in range(steps):
            coef = self.step(coef, weight)
        return self.loss.scores(self.phi[[i]] @ coef)[0]

    def all_without(self, steps):
        return np.array([self.without(i, steps) for i in range(N)])


@pytest.fixture(scope="module", params=LABELS)
def problem(request):
    found = Problem(LABELS[request.param])
    gradient, _ = found.derivatives(found.point.X, WEIGHT)
    assert np.abs(gradient).max() < 1e-6
    return found


def known(problem):
    """Where a row has a label: a missing tag has nothing to leave out."""
    if problem.rows.is_multilabel:
        return ~np.isnan(problem.rows.labels)
    return np.full((N, problem.rows.n_classes), True)


def test_closed_form_is_one_newton_step(problem):
    rows = np.array([4, 0, 3, 7])
    found, expected = leave_one_out(problem.objective, problem.point, rows, 0), problem.all_without(1)[rows]
    there = known(problem)[rows]
    assert_allclose(found[there], expected[there], rtol=1e-5, atol=1e-6)


def test_steps_reach_the_refits(problem, monkeypatch):
    monkeypatch.setattr(module, "ARRIVED", 1e-9)
    monkeypatch.setattr(module, "MOST_STEPS", 40)
    rows = np.array([4, 0, 3, 7, 11, 1])
    found, expected = leave_one_out(problem.objective, problem.point, rows, np.inf), problem.all_without(25)[rows]
    there = known(problem)[rows]
    assert_allclose(found[there], expected[there], rtol=1e-5, atol=2e-5)


def test_few_steps_come_near(problem):
    found, expected = leave_one_out(problem.objective, problem.point, np.arange(N)), problem.all_without(25)
    closed = leave_one_out(problem.objective, problem.point, np.arange(N), 0)
    there = known(problem)
    error, of_closed = np.abs(found - expected)[there], np.abs(closed - expected)[there]
    assert error.max() < 0.01 and error.max() < of_closed.max()


@pytest.mark.parametrize("labels", LABELS)
def test_the_budget_decides(labels, monkeypatch):
    """A step takes 2(nk)²n operations; tags take theirs one by one."""
    problem = Problem(LABELS[labels], 1.0)
    k = 2 if labels == "three classes" else 1
    taken = []
    monkeypatch.setattr(Solved, "refitted", lambda self, M: taken.append(M.shape) or np.zeros((N, self.R.shape[1])))
    leave_one_out(problem.objective, problem.point, np.arange(2), 2.0 * (N * k) ** 2 * N - 1)
    assert not taken
    leave_one_out(problem.objective, problem.point, np.arange(2), 2.0 * (N * k) ** 2 * N)
    assert taken == [(N, k, N, k)] * (2 if labels == "tags" else 1)


def test_weights_of_the_systems():
    two, three = Problem(LABELS["two classes"], 1.0), Problem(LABELS["three classes"], 1.0)
    p = two.point.P
    assert_allclose(_weights(two.objective, two.point), (2 * p[:, 0] * p[:, 1])[:, None], rtol=1e-12)
    assert _weights(three.objective, three.point) is three.point.P


def test_sure_rows_still_count():
    """Probabilities of zero would leave a class's system without rows."""
    problem = Problem(LABELS["three classes"], 0.05)
    half = module._half_features(problem.objective, np.zeros(N))
    H = 1e-12 * (problem.phi.T * WEIGHT) @ problem.phi + problem.objective.rho * problem.objective.gram
    assert np.isfinite(half).all() and half.shape == (6, N)
    half = module._half_features(problem.objective, np.full(N, 0.3))
    H = 0.3 * (problem.phi.T * WEIGHT) @ problem.phi + problem.objective.rho * problem.objective.gram
    assert_allclose(half.T @ half, problem.phi @ np.linalg.solve(H, problem.phi.T), rtol=1e-6)


def dense_influence(problem):
    _, H = problem.derivatives(problem.point.X, WEIGHT)
    k = problem.point.X.shape[1]
    inverse = np.linalg.inv(H).reshape(6, k, 6, k)
    return np.einsum("ma,ajbl,ib->mjil", problem.phi, inverse, problem.phi)


def test_influence_of_all_rows():
    problem = Problem(LABELS["three classes"], 0.05)
    expected = dense_influence(problem)
    halves = [module._half_features(problem.objective, p) for p in problem.point.P.T]
    found = module._influence_of_classes(halves, problem.point.P, WEIGHT)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    rows = np.array([5, 2])
    spread = module._spread_of_classes(halves, problem.point.P, WEIGHT, rows)
    assert_allclose(spread, expected[rows, :, rows], rtol=1e-6, atol=1e-8)
    two = Problem(LABELS["two classes"], 0.05)
    half = module._half_features(two.objective, _weights(two.objective, two.point)[:, 0])
    expected = dense_influence(two)
    assert_allclose(module._influence_of_one(half), expected, rtol=1e-7, atol=1e-9)
    assert_allclose(module._spread_of_one(half, rows), expected[rows, :, rows], rtol=1e-7, atol=1e-9)


def test_no_move_leaves_the_pull_of_the_row_alone():
    """At Δ = 0 only the unit that is left out is missing from the gradient."""
    problem = Problem(LABELS["three classes"])
    rows, loss = problem.rows, problem.loss
    solved = Solved(loss, problem.point.U, problem.point.P, rows)
    s = solved._remainder(np.zeros((N, 2, N)))
    R = loss.residual(problem.point.P, rows.labels)
    expected = np.zeros((N, 2, N))
    expected[np.arange(N), :, np.arange(N)] = -np.minimum(WEIGHT, 1.0)[:, None] * R
    assert_allclose(s, expected, atol=1e-12)


def test_remainder_of_moves():
    problem = Problem(LABELS["three classes"])
    rows, loss, U, P = problem.rows, problem.loss, problem.point.U, problem.point.P
    moves = 0.3 * np.random.default_rng(0).normal(size=(N, 2, N))
    given = moves.copy()
    s = Solved(loss, U, P, rows)._remainder(moves)
    R, W = loss.residual(P, rows.labels), loss.curvature(P)
    for i in range(N):
        weight = WEIGHT.copy()
        weight[i] -= min(1.0, WEIGHT[i])
        _, there = loss.evaluate(U + moves[:, :, i], rows.labels, WEIGHT)
        linear = R + np.einsum("mjl,ml->mj", W, moves[:, :, i])
        expected = weight[:, None] * loss.residual(there, rows.labels) - WEIGHT[:, None] * linear
        assert_allclose(s[:, :, i], expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(moves, given)


def test_labels_may_be_those_of_one_tag():
    problem = Problem(TAGS)
    solved = Solved(problem.loss, problem.point.U, problem.point.P, problem.rows)
    assert solved.labels is problem.rows.labels
    assert Solved(problem.loss, problem.point.U, problem.point.P, problem.rows, TAGS[::-1]).labels[0, 0] == TAGS[-1, 0]


class TestSteps:
    """The fixed point Δ = f(Δ), which stops when the row itself has arrived."""

    @pytest.fixture(autouse=True)
    def no_refits(self, monkeypatch):
        """Rows that have not arrived keep their first step."""
        monkeypatch.setattr(module, "NEWTON_FLOPS", 0.0)

    def solved(self, images):
        """A solution of one column whose remainder asks for the images in turn; M is −1 on the diagonal."""
        solved = object.__new__(Solved)
        solved.R, solved.seen = np.zeros((2, 1)), []
        images = iter(images)
        solved._pull = lambda spread, rows: np.array([[1.0], [2.0]])
        solved._remainder = lambda moves: solved.seen.append(moves) or next(images)
        return solved

    def influence(self):
        return -np.eye(2)[:, None, :, None]

    def test_stops_where_it_has_arrived(self):
        start = -np.diag([1.0, 2.0])[:, None, :]
        off = np.array([[0.0, 0.9], [0.9, 0.0]])[:, None, :]  # moves of other rows are not waited for
        solved = self.solved([start + off])
        assert_allclose(solved.refitted(self.influence()), [[-1.0], [-2.0]])
        solved = self.solved([start - 0.0009 * np.eye(2)[:, None, :]])
        assert_allclose(solved.refitted(self.influence()), [[-1.0], [-2.0]])
        assert len(solved.seen) == 1

    def test_goes_on_from_the_image(self, monkeypatch):
        monkeypatch.setattr(module, "MOST_STEPS", 1)
        start = -np.diag([1.0, 2.0])[:, None, :]
        solved = self.solved([start - 0.0011 * np.eye(2)[:, None, :]] * 9)
        assert_allclose(solved.refitted(self.influence()), [[-1.0], [-2.0]])
        assert len(solved.seen) == 1

    def test_a_move_of_just_the_limit_has_not_arrived(self, monkeypatch):
        monkeypatch.setattr(module, "MOST_STEPS", 1)
        monkeypatch.setattr(module, "ARRIVED", 0.5)
        start = -np.diag([1.0, 2.0])[:, None, :]
        solved = self.solved([start - 0.5 * np.eye(2)[:, None, :]])
        assert_allclose(solved.refitted(self.influence()), [[-1.0], [-2.0]])

    def test_takes_so_many_steps_and_combines_so_many(self, monkeypatch):
        counts = []
        monkeypatch.setattr(module, "_accelerated", lambda seen: counts.append(len(seen)) or seen[-1][0])
        images = [np.diag([float(t), 1.0])[:, None, :] for t in range(1, 20)]
        solved = self.solved(images)
        solved.refitted(self.influence())
        assert counts == [1, 2, 3, 4, 4, 4, 4, 4]
        assert_allclose(solved.seen[-1], images[6])

    def test_images_and_changes_are_remembered(self, monkeypatch):
        seen_by = []
        monkeypatch.setattr(module, "_accelerated", lambda seen: seen_by.append(seen) or seen[-1][0])
        monkeypatch.setattr(module, "MOST_STEPS", 2)
        images = [np.diag([3.0, 1.0])[:, None, :], np.diag([7.0, 1.5])[:, None, :]]
        self.solved(images).refitted(self.influence())
        start = -np.diag([1.0, 2.0])[:, None, :]
        for (image, change), expected, before in zip(seen_by[1], images, [start, images[0]], strict=True):
            assert_allclose(image, expected)
            assert_allclose(change, expected - before)


def test_anderson_acceleration():
    random = np.random.default_rng(0)
    seen = [(random.normal(size=(5, 2, 3)), random.normal(size=(5, 2, 3))) for _ in range(4)]
    assert _accelerated(seen[:1]) is seen[0][0]
    for count in (2, 4):
        found = _accelerated(seen[:count])
        for i in range(3):
            images = [image[:, :, i].ravel() for image, _ in seen[:count]]
            changes = [change[:, :, i].ravel() for _, change in seen[:count]]
            share = np.linalg.lstsq(np.diff(changes, axis=0).T, changes[-1], rcond=None)[0]
            expected = images[-1] - np.diff(images, axis=0).T @ share
            assert_allclose(found[:, :, i].ravel(), expected, rtol=1e-6)
    still = [(seen[0][0], np.zeros((5, 2, 3)))] * 3
    assert_allclose(_accelerated(still), seen[0][0])  # no change at all is no division by zero
