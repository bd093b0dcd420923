"""Leave-one-out of likelihoods against dense Newton steps and refits of a dozen rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
from kproba.basis.basis import Basis
from kproba.data.rows import Rows
from kproba.kernels import Gaussian
from kproba.problems import leave_one_out as module
from kproba.problems.leave_one_out import FullSolution, _accelerated, _weights, leave_one_out
from kproba.problems.likelihood import Likelihood
from kproba.problems.losses import Tags

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
        weight[i] -= oracles.one_unit(WEIGHT)[i]
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
    monkeypatch.setattr(module, "MAX_STEPS", 40)
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
    monkeypatch.setattr(
        FullSolution, "refitted", lambda self, M, refit=None: taken.append(M.shape) or np.zeros((N, self.R.shape[1]))
    )
    leave_one_out(problem.objective, problem.point, np.arange(2), 2.0 * (N * k) ** 2 * N - 1)
    assert not taken
    leave_one_out(problem.objective, problem.point, np.arange(2), 2.0 * (N * k) ** 2 * N)
    assert taken == [(N, k, N, k)] * (2 if labels == "tags" else 1)


def test_weights_of_the_systems():
    two, three = Problem(LABELS["two classes"], 1.0), Problem(LABELS["three classes"], 1.0)
    p = two.point.P
    assert_allclose(_weights(two.objective.loss, two.point), (2 * p[:, 0] * p[:, 1])[:, None], rtol=1e-12)
    assert _weights(three.objective.loss, three.point) is three.point.P


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
    half = module._half_features(two.objective, _weights(two.objective.loss, two.point)[:, 0])
    expected = dense_influence(two)
    assert_allclose(module._influence_of_one(half), expected, rtol=1e-7, atol=1e-9)
    assert_allclose(module._spread_of_one(half, rows), expected[rows, :, rows], rtol=1e-7, atol=1e-9)


def test_no_move_leaves_the_pull_of_the_row_alone():
    """At Δ = 0 only the unit that is left out is missing from the gradient."""
    problem = Problem(LABELS["three classes"])
    rows, loss = problem.rows, problem.loss
    solved = FullSolution(loss, problem.point.U, problem.point.P, rows)
    s = solved._remainder(np.zeros((N, 2, N)))
    R = loss.residual(problem.point.P, rows.labels)
    expected = np.zeros((N, 2, N))
    expected[np.arange(N), :, np.arange(N)] = -oracles.one_unit(WEIGHT)[:, None] * R
    assert_allclose(s, expected, atol=1e-12)


def test_remainder_of_moves():
    problem = Problem(LABELS["three classes"])
    rows, loss, U, P = problem.rows, problem.loss, problem.point.U, problem.point.P
    moves = 0.3 * np.random.default_rng(0).normal(size=(N, 2, N))
    given = moves.copy()
    s = FullSolution(loss, U, P, rows)._remainder(moves)
    R, W = loss.residual(P, rows.labels), loss.curvature(P)
    for i in range(N):
        weight = WEIGHT.copy()
        weight[i] -= oracles.one_unit(WEIGHT)[i]
        _, there = loss.evaluate(U + moves[:, :, i], rows.labels, WEIGHT)
        linear = R + np.einsum("mjl,ml->mj", W, moves[:, :, i])
        expected = weight[:, None] * loss.residual(there, rows.labels) - WEIGHT[:, None] * linear
        assert_allclose(s[:, :, i], expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(moves, given)


def test_labels_may_be_those_of_one_tag():
    problem = Problem(TAGS)
    solved = FullSolution(problem.loss, problem.point.U, problem.point.P, problem.rows)
    assert solved.labels is problem.rows.labels
    other = FullSolution(problem.loss, problem.point.U, problem.point.P, problem.rows, TAGS[::-1])
    assert other.labels[0, 0] == TAGS[-1, 0]


START = -np.diag([1.0, 2.0])[:, None, :]
OWN = np.eye(2)[:, None, :]


class TestSteps:
    """The fixed point Δ = f(Δ), which stops when the row itself has arrived."""

    influence = -OWN[:, :, :, None]

    def solved(self, *images):
        """A solution of one column whose remainder asks for the images in turn; M is −1 on the diagonal."""
        solved = object.__new__(FullSolution)
        solved.R, solved.seen = np.zeros((2, 1)), []
        images = iter(images)
        solved._pull = lambda spread, rows: np.array([[1.0], [2.0]])
        solved._remainder = lambda moves: solved.seen.append(moves) or next(images)
        return solved

    def test_stops_where_it_has_arrived(self):
        off = np.array([[0.0, 0.9], [0.9, 0.0]])[:, None, :]  # moves of other rows are not waited for
        for image in (START + off, START - 0.0009 * OWN):
            solved = self.solved(image)
            assert_allclose(solved.refitted(self.influence), [[-1.0], [-2.0]])
            assert len(solved.seen) == 1

    def test_goes_on_from_the_image(self):
        image = START - 0.0011 * OWN
        solved = self.solved(image, image)
        assert_allclose(solved.refitted(self.influence), [[-1.0011], [-2.0011]])
        assert_allclose(solved.seen[1], image)

    def test_a_move_of_just_the_limit_has_not_arrived(self, monkeypatch):
        monkeypatch.setattr(module, "ARRIVED", 0.5)
        image = START - 0.5 * OWN
        assert_allclose(self.solved(image, image).refitted(self.influence), [[-1.5], [-2.5]])
        monkeypatch.setattr(module, "MAX_STEPS", 1)
        assert_allclose(self.solved(image).refitted(self.influence, lambda row: [7.0 + row]), [[7.0], [8.0]])

    def test_takes_so_many_steps_and_combines_so_many(self, monkeypatch):
        counts = []
        monkeypatch.setattr(module, "_accelerated", lambda seen: counts.append(len(seen)) or seen[-1][0])
        images = [np.diag([float(t), 1.0])[:, None, :] for t in range(1, 20)]
        solved = self.solved(*images)
        found = solved.refitted(self.influence, lambda row: [100.0 + row])
        assert counts == [1, 2, 3, 4, 4, 4, 4, 4]
        assert_allclose(solved.seen[-1], images[6])
        assert_allclose(found, [[100.0], [1.0]])  # the second row has arrived

    def test_images_and_changes_are_remembered(self, monkeypatch):
        seen_by = []
        monkeypatch.setattr(module, "_accelerated", lambda seen: seen_by.append(seen) or seen[-1][0])
        monkeypatch.setattr(module, "MAX_STEPS", 2)
        images = [np.diag([3.0, 1.0])[:, None, :], np.diag([7.0, 1.5])[:, None, :]]
        self.solved(*images).refitted(self.influence, lambda row: [0.0])
        for (image, change), expected, before in zip(seen_by[1], images, [START, images[0]], strict=True):
            assert_allclose(image, expected)
            assert_allclose(change, expected - before)

    @pytest.mark.parametrize(("flops", "expected"), [(160.0, [-1.0, 51.0]), (161.0, [50.0, 51.0]), (0.0, [-1.0, -2.0])])
    def test_rows_that_do_not_arrive(self, flops, expected, monkeypatch):
        """Newton's method for those that are farthest off, as long as its 20(nk)³ operations are affordable."""
        monkeypatch.setattr(module, "MAX_STEPS", 1)
        monkeypatch.setattr(module, "NEWTON_FLOPS", flops)
        solved = self.solved(START + np.diag([0.3, 0.6])[:, None, :])
        solved._newton = lambda M, row: [50.0 + row] if M.shape == (2, 2) else pytest.fail("M as a matrix")
        assert_allclose(solved.refitted(self.influence)[:, 0], expected)

    def test_what_is_no_number_has_not_arrived(self, monkeypatch):
        monkeypatch.setattr(module, "MAX_STEPS", 1)
        solved = self.solved(START + np.diag([0.0, np.nan])[:, None, :])
        assert_allclose(solved.refitted(self.influence, lambda row: [9.0])[1], [9.0])


def parts_of(problem):
    """The solution of all rows and M; of tags those of the first."""
    rows, loss, U, P, labels = problem.rows, problem.loss, problem.point.U, problem.point.P, None
    influence = dense_influence(problem)
    if rows.is_multilabel:
        loss, U, P, labels, influence = Tags(1), U[:, :1], P[:, :1], rows.labels[:, :1], influence[:, :1, :, :1]
    size = influence.shape[0] * influence.shape[1]
    return FullSolution(loss, U, P, rows, labels), influence.reshape(size, size)


def test_newton_steps_of_one_row_reach_the_refit(problem, monkeypatch):
    solved, M = parts_of(problem)
    k = solved.R.shape[1]
    for row in (0, 4, 8):
        expected = problem.without(row, 25)[: solved.loss.scores(np.zeros((1, k))).shape[1]]
        near = solved.loss.scores((solved.U[row] + solved._newton(M, row))[None])[0]
        assert_allclose(near, expected, atol=2e-3)
    monkeypatch.setattr(module, "ARRIVED", 1e-9)
    exact = solved.loss.scores((solved.U[8] + solved._newton(M, 8))[None])[0]
    assert_allclose(exact, expected, rtol=1e-6, atol=1e-6)


def test_newton_steps_are_so_many(monkeypatch):
    solved, M = parts_of(Problem(LABELS["three classes"]))
    steps, shortened = [], FullSolution._shortened
    monkeypatch.setattr(FullSolution, "_shortened", lambda self, *args: steps.append(1) or shortened(self, *args))
    solved._newton(M, 3)
    assert 1 < len(steps) < 8
    monkeypatch.setattr(module, "NEWTON_STEPS", 1)
    steps.clear()
    once = solved._newton(M, 3)
    assert len(steps) == 1
    # from no move at all a step is the closed form
    own = np.arange(N)
    closed = solved.first_step(M.reshape(N, 2, N, 2)[own, :, own], own)[3]
    assert_allclose(once, closed, rtol=1e-6)


def test_bend_is_the_derivative_of_the_remainder(problem):
    solved, _ = parts_of(problem)
    k, row, step = solved.R.shape[1], 4, 1e-6
    moves = 0.3 * np.random.default_rng(0).normal(size=(N, k, 1))
    jacobian = solved._remainder_jacobian(moves, row)
    assert jacobian.shape == (N, k, k)
    for j in range(k):
        e = np.zeros((1, k, 1))
        e[0, j] = step
        numeric = (solved._remainder(moves + e, [row]) - solved._remainder(moves - e, [row])) / (2 * step)
        assert_allclose(jacobian[:, :, j], numeric[:, :, 0], rtol=1e-5, atol=1e-7)
    every = solved._remainder(np.repeat(moves, N, axis=2))
    assert_allclose(solved._remainder(moves, [row])[:, :, 0], every[:, :, row], rtol=1e-12, atol=1e-14)


class TestHalving:
    """A step is halved until a share of what was left is gone."""

    def shortened(self, left, moves=1.0, step=4.0, rest=1.0):
        """With M = 1 and a remainder such that ``left(Δ)`` is left at Δ."""
        solved, seen = object.__new__(FullSolution), []
        solved._remainder = lambda tried, rows: seen.append(tried.item()) or left(tried) - tried
        parts = (np.full((1, 1, 1), value) for value in (moves, rest, step))
        tried, rest = solved._shortened(np.eye(1), 0, *parts)
        return tried.item(), rest.item(), seen

    def test_halves_until_less_is_left(self):
        tried, rest, seen = self.shortened(np.abs)
        assert (tried, rest, seen) == (0.0, 0.0, [-3.0, -1.0, 0.0])

    def test_a_quarter_of_a_full_step_is_enough(self):
        assert self.shortened(lambda tried: 0.0 * tried + 0.75)[2] == [-3.0]
        assert self.shortened(lambda tried: 0.0 * tried + 0.76)[2] == [-3.0, -1.0]

    def test_gives_up_after_so_many(self):
        tried, rest, seen = self.shortened(lambda tried: 0.0 * tried + 5.0)
        assert len(seen) == module.MAX_HALVINGS and tried == 1.0 - 4.0 * 0.5**9 and rest == 5.0


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
