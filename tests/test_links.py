"""Links by themselves: their formulas, and fits against a general optimiser."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from kproba.data.rows import Rows
from kproba.links import (
    CalibratedSoftmax,
    CalibratedTags,
    Clip,
    PerTag,
    Ratio,
    Sigmoid,
    Softmax,
    base,
    calibrated,
    calibrated_tags,
    complete_by_prior,
    complete_tags,
    fit_link,
    in_blocks,
    log_softplus,
    positive_prior,
    softmax,
)
from kproba.links.base import by_row
from kproba.links.calibrated import SoftmaxFit
from kproba.links.calibrated_tags import TagsFit

RNG = np.random.default_rng(5)


def rise_by_hand(kappa, q, prior):
    def psi(x):
        return np.log(np.logaddexp(0.0, kappa * x))

    return psi(q) - psi(prior)


class TestPlainLinks:
    def test_clip(self):
        scores = np.array([[0.6, 0.2, -0.1], [-1.0, -2.0, 0.0], [3e-308, 1e-308, 0.0], [4.0, 4.0, 8.0]])
        expected = [[0.75, 0.25, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.75, 0.25, 0.0], [0.25, 0.25, 0.5]]
        np.testing.assert_allclose(Clip().probabilities(scores), expected, rtol=1e-14)
        np.testing.assert_allclose(Clip().decision(scores), expected, rtol=1e-14)

    def test_ratio(self):
        scores = np.array([[0.8, -0.3], [-1.0, -3.0], [1.0, -1.0], [0.0, 0.0], [2.3e-308, 0.0]])
        expected = [[1.6, -0.6], [0.25, 0.75], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]
        np.testing.assert_allclose(Ratio().decision(scores), expected, rtol=1e-14)
        smallest = np.array([[np.finfo(float).tiny, 0.0]])
        np.testing.assert_array_equal(Ratio().decision(smallest), [[0.5, 0.5]])
        single = np.array([[1.2e-38, 0.0], [2e-38, 0.0]], dtype=np.float32)
        tiny = np.finfo(np.float32).tiny
        single[0, 0] = tiny
        np.testing.assert_array_equal(Ratio().decision(single), [[0.5, 0.5], [1.0, 0.0]])

    def test_softmax_and_sigmoid(self):
        scores = np.array([[0.0, np.log(3.0)], [1000.0, 0.0]])
        np.testing.assert_allclose(Softmax().probabilities(scores), [[0.25, 0.75], [1.0, 0.0]], atol=1e-15)
        np.testing.assert_allclose(Sigmoid().probabilities(scores), [[0.5, 0.75], [1.0, 0.5]], atol=1e-15)
        for link in (Softmax(), Sigmoid()):
            np.testing.assert_array_equal(link.decision(scores), scores)
        given = scores.copy()
        softmax(scores)
        np.testing.assert_array_equal(scores, given)

    def test_a_pair_for_every_tag(self):
        constant = np.array([2, 3])
        scores = np.array([[0.2, 0.9, 1.0, 0.9], [0.6, -0.1, 0.8, 0.4], [0.5, 0.2, 0.5, 0.1]])
        p = PerTag(Clip(), constant).probabilities(scores)
        np.testing.assert_allclose(p, [[0.2, 1.0], [0.75, 0.0], [1.0, 1.0]], rtol=1e-14)
        decision = PerTag(Clip(), constant).decision(scores)
        np.testing.assert_allclose(decision, 2 * p - 1, rtol=1e-14)
        ratio = PerTag(Ratio(), constant).decision(scores)
        np.testing.assert_allclose(ratio, 2 * scores[:, :2] / scores[:, 2:] - 1, rtol=1e-12)


def test_logarithms_without_underflow():
    scores = np.array([[800.0, 0.0, -800.0], [0.6, 0.2, -0.1]])
    found = Softmax().log_probabilities(scores)
    np.testing.assert_allclose(found[0], [0.0, -800.0, -1600.0], atol=1e-12)
    np.testing.assert_allclose(found[1], np.log(softmax(scores[1:]))[0], rtol=1e-12)
    np.testing.assert_allclose(Sigmoid().log_probabilities(scores)[0], [0.0, np.log(0.5), -800.0])
    with np.errstate(all="raise"):
        np.testing.assert_allclose(Clip().log_probabilities(scores[1:]), [[np.log(0.75), np.log(0.25), -np.inf]])
        of_tags = PerTag(Clip(), np.array([1, 2])).log_probabilities(np.array([[0.0, 0.25, 1.0]]))
    np.testing.assert_allclose(of_tags, [[-np.inf, np.log(0.25)]])
    prior, one = np.array([0.3, 0.7]), np.ones(2)
    link = CalibratedSoftmax(prior, 5 * one, 400.0, 0 * one)
    sure = np.array([[1.0, -9.0], [0.4, 0.5]])
    log_p = link.log_probabilities(sure)
    assert log_p[0, 1] < -1000  # the probability itself is zero
    np.testing.assert_allclose(log_p[1], np.log(link.probabilities(sure[1:]))[0], rtol=1e-12)
    span = np.array([[-np.inf], [np.inf]])
    tags = CalibratedTags(prior[:1], np.full((2, 1), 5.0), np.array([400.0]), np.zeros(1), span, np.array([1]))
    log_p = tags.log_probabilities(np.array([[-9.0, 1.0], [0.4, 0.9]]))
    assert log_p[0, 0] < -1000
    np.testing.assert_allclose(log_p[1], np.log(tags.probabilities(np.array([[0.4, 0.9]])))[0], rtol=1e-12)


class TestCalibratedFormulas:
    prior, slope, offset = np.array([0.2, 0.3, 0.5]), np.array([2.0, 1.5, 0.7]), np.array([0.4, -0.3, 0.1])

    def by_hand(self, scores, span):
        g = np.clip(scores.sum(axis=1, keepdims=True), 0, 1)
        q = np.clip(scores + (1 - scores.sum(axis=1, keepdims=True)) * self.prior, *span)
        return np.log(self.prior) + self.slope * rise_by_hand(3.0, q, self.prior) + g * self.offset

    @pytest.mark.parametrize("span", [(-np.inf, np.inf), (0.1, 0.8)])
    def test_classes(self, span):
        scores = np.array([[0.2, 0.5, 0.3], [1.4, -0.2, 0.3], [-0.3, -0.4, 0.1], [0.0, 0.0, 0.0], [0.1, 0.2, 0.2]])
        link = CalibratedSoftmax(self.prior, self.slope, 3.0, self.offset, span)
        expected = self.by_hand(scores, span)
        np.testing.assert_allclose(link.decision(scores), expected, rtol=1e-12)
        e = np.exp(expected)
        np.testing.assert_allclose(link.probabilities(scores), e / e.sum(axis=1, keepdims=True), rtol=1e-12)

    def test_tags_are_two_classes_each(self):
        scores = np.array([[0.2, 0.9, 0.4, 1.2], [1.3, -0.3, -0.1, 0.7], [0.0, 0.0, 0.0, 0.0], [0.4, 0.3, 0.9, 0.5]])
        prior, kappa, offset = np.array([0.3, 0.6]), np.array([2.0, 5.0]), np.array([0.3, -0.4])
        slope, span = np.array([[1.2, 0.8], [0.9, 1.7]]), np.array([[0.05, -0.2], [0.95, 1.2]])
        constant = np.array([3, 2])
        link = CalibratedTags(prior, slope, kappa, offset, span, constant)
        for tag in range(2):
            g = scores[:, constant[tag]]
            pair = np.column_stack([g - scores[:, tag], scores[:, tag]])
            two = CalibratedSoftmax(
                np.array([1 - prior[tag], prior[tag]]), slope[:, tag], kappa[tag],
                np.array([0.0, offset[tag]]), tuple(span[:, tag]),
            )  # fmt: skip
            np.testing.assert_allclose(link.probabilities(scores)[:, tag], two.probabilities(pair)[:, 1], rtol=1e-11)
            odds = np.diff(two.decision(pair), axis=1)[:, 0]
            np.testing.assert_allclose(link.decision(scores)[:, tag], odds, rtol=1e-10, atol=1e-12)

    def test_completed_scores(self):
        scores = np.array([[0.2, 0.1], [1.0, 0.5]])
        np.testing.assert_allclose(complete_by_prior(scores, np.array([0.25, 0.75])), [[0.375, 0.625], [0.875, 0.125]])
        tags = np.array([[0.2, 0.1, 0.6, 1.5]])
        found = complete_tags(tags, np.array([0.5, 0.2]), np.array([2, 3]))
        np.testing.assert_allclose(found, [[0.4, 0.0]], atol=1e-15)


def test_log_softplus():
    z = np.array([-800.0, -40.0, -30.5, -30.0, -29.0, -1.0, 0.0, 3.0, 800.0])
    expected = [-800.0, -40.0, -30.5, *np.log(np.log1p(np.exp(z[3:7]))), np.log(np.log1p(np.exp(3.0))), np.log(800.0)]
    np.testing.assert_allclose(log_softplus(z), expected, rtol=1e-13)
    # −30.5 comes out as itself to the last bit: the line begins at −30
    assert log_softplus(np.array([-30.5]))[0] == -30.5


def test_log_softplus_slope():
    z = np.array([-800.0, -40.0, -30.5, -29.9, -2.0, -0.1, 0.3, 5.0, 300.0])
    inside = z > -30
    step = 1e-6
    numeric = z * (log_softplus(z + step) - log_softplus(z - step)) / (2 * step)
    value, slope = base.log_softplus_and_slope(z)
    np.testing.assert_allclose(slope[inside], numeric[inside], rtol=1e-6)
    np.testing.assert_array_equal(slope[~inside], z[~inside])
    assert base.log_softplus_and_slope(np.zeros(1))[1] == 0.0
    np.testing.assert_allclose(value, log_softplus(z), rtol=1e-13)
    assert base.log_softplus_and_slope(np.array([-30.5]))[0] == -30.5


def test_links_are_applied_in_blocks(monkeypatch):
    seen = []

    def double(scores):
        seen.append(len(scores))
        return 2 * scores

    scores = np.arange(100.0).reshape(50, 2)
    np.testing.assert_array_equal(in_blocks(double, scores, 20), 2 * scores)
    assert seen == [20, 20, 10]
    seen.clear()
    np.testing.assert_array_equal(in_blocks(double, scores, 50), 2 * scores)
    assert seen == [50]
    seen.clear()
    monkeypatch.setattr(base, "TAG_CELLS", 60)  # 30 rows of two columns
    np.testing.assert_array_equal(in_blocks(double, scores), 2 * scores)
    assert seen == [30, 20]
    seen.clear()
    monkeypatch.setattr(base, "TAG_CELLS", 4)  # no fewer than 16 rows at a time
    np.testing.assert_array_equal(in_blocks(double, scores), 2 * scores)
    assert seen == [16, 16, 16, 2]
    seen.clear()
    assert in_blocks(double, np.empty((3, 0))).shape == (3, 0)
    monkeypatch.undo()
    in_blocks(double, np.zeros((9000, 1)))
    assert seen[1:] == [4096, 4096, 808]


def rows_of(labels, weight=None, c=3, X=None):
    X = np.arange(float(len(labels)))[:, None] if X is None else X
    return Rows.of(X, labels, np.ones(len(labels)) if weight is None else weight, c)


def test_prior_is_half_a_row_away_from_the_ends():
    np.testing.assert_allclose(positive_prior(rows_of(np.array([0, 0, 1]))), [2 / 3, 1 / 3, 0.125])
    tags = np.array([[1.0, 0.0, np.nan], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    found = positive_prior(rows_of(tags, np.array([1.0, 2.0, 1.0])))
    np.testing.assert_allclose(found, [0.9, 0.25, 0.875])


def softmax_problem(n=30, c=3, seed=0):
    random = np.random.default_rng(seed)
    labels = random.integers(0, c, n)
    labels[:c] = np.arange(c)
    targets = np.eye(c)[labels]
    scores = 0.5 * targets + 0.2 + 0.3 * random.standard_normal((n, c))
    return scores, targets, random.random(n) + 0.5, np.array([0.2, 0.3, 0.5])[:c] / np.array([0.2, 0.3, 0.5])[:c].sum()


def softmax_loss_by_hand(x, scores, targets, weight, prior):
    """The penalised mean log-loss, as the docstring of the link has it."""
    c, total = len(prior), weight.sum()
    a, kappa, delta, offset = x[0], np.exp(x[1]), x[2 : 2 + c], x[2 + c :]
    scores = np.clip(scores, -1e3, 1e3)
    g = np.clip(scores.sum(axis=1, keepdims=True), 0, 1)
    q = scores + (1 - scores.sum(axis=1, keepdims=True)) * prior
    logits = np.log(prior) + np.exp(a + delta) * rise_by_hand(kappa, q, prior) + g * offset
    log_p = logits - np.logaddexp.reduce(logits, axis=1)[:, None]
    drawn = 1 / (total + 1)
    drawn_targets = (1 - drawn) * targets + drawn * prior
    fit = -(weight @ (drawn_targets * log_p).sum(axis=1)) / total
    return fit + (0.1 * (x[1] - 2.0) ** 2 + delta @ delta + 0.2 * offset @ offset) / total


class TestSoftmaxFit:
    def test_loss_and_gradient(self):
        problem = softmax_problem()
        problem[0][0] *= 2000.0  # scores of no use are held within ±1000
        fit = SoftmaxFit(*problem)
        for x in np.random.default_rng(1).normal(scale=0.4, size=(3, 8)):
            value, gradient = fit.loss(x)
            assert value == pytest.approx(softmax_loss_by_hand(x, *problem), rel=1e-12)
            numeric = [(fit.loss(x + s)[0] - fit.loss(x - s)[0]) / 2e-6 for s in 1e-6 * np.eye(8)]
            np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7)

    def test_bounds_of_scores_that_are_clipped(self):
        scores = np.array([[1e3, -5e3], [1e9, 0.5], [-0.5, 0.25], [0.25, 0.5]])
        fit = SoftmaxFit(scores, np.eye(2)[[0, 1, 0, 1]], np.ones(4), np.array([0.5, 0.5]))
        np.testing.assert_allclose(fit.q[:2], [[1000.5, -999.5], [500.25, -499.25]])
        np.testing.assert_array_equal(fit.g, [[0.0], [1.0], [0.0], [0.75]])

    def test_steep_links_do_not_overflow(self):
        problem = softmax_problem()
        problem[0][:2] *= [[40.0], [-30.0]]
        x = np.concatenate([[6.0, 6.0], np.zeros(6)])
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            value, gradient = SoftmaxFit(*problem).loss(x)
        assert np.isfinite(value) and np.isfinite(gradient).all()

    def test_run_finds_the_minimum(self):
        scores, targets, weight, prior = softmax_problem()
        link = SoftmaxFit(scores, targets, weight, prior).run()
        start = np.concatenate([[0.5, 2.0], np.zeros(6)])
        bounds = [(-5, 6), (-1, 6), *[(-4, 4)] * 3, *[(-8, 8)] * 3]
        problem = scores, targets, weight, prior
        best = minimize(softmax_loss_by_hand, start, problem, bounds=bounds, options={"maxiter": 1000})
        delta = np.log(link.slope)
        a = delta.mean()  # the penalty of δ leaves out what all slopes have in common
        x = np.concatenate([[a, np.log(link.sharpness)], delta - a, link.offset])
        assert softmax_loss_by_hand(x, scores, targets, weight, prior) == pytest.approx(best.fun, abs=1e-7)
        q = complete_by_prior(scores, prior)
        assert link.span == (min(q.min(), 0.2), max(q.max(), 0.5))
        assert all(type(end) is float for end in link.span) and type(link.sharpness) is float
        np.testing.assert_array_equal(link.prior, prior)

    def test_span_holds_the_prior(self):
        scores = np.array([[0.4, 0.6], [0.45, 0.55]])
        link = SoftmaxFit(scores, np.eye(2), np.ones(2), np.array([0.1, 0.9])).run()
        assert link.span == (0.1, 0.9)

    @pytest.mark.parametrize(("c", "most"), [(2, 200), (100, 200), (101, 50)])
    def test_many_classes_take_fewer_steps(self, c, most, monkeypatch):
        seen = {}

        def stop(function, start, **options):
            seen.update(options, start=start)
            raise StopIteration

        monkeypatch.setattr(calibrated, "minimize", stop)
        with pytest.raises(StopIteration):
            SoftmaxFit(np.eye(c), np.eye(c), np.ones(c), np.full(c, 1 / c)).run()
        assert seen["options"] == {"maxiter": most} and seen["method"] == "L-BFGS-B" and seen["jac"] is True
        assert seen["bounds"] == [(-5.0, 6.0), (-1.0, 6.0), *[(-4.0, 4.0)] * c, *[(-8.0, 8.0)] * c]
        np.testing.assert_array_equal(seen["start"], [0.5, 2.0, *np.zeros(2 * c)])


def tags_problem(n=40, seed=0):
    random = np.random.default_rng(seed)
    labels = (random.random((n, 3)) < [0.3, 0.5, 0.8]).astype(float)
    tag = 0.5 * labels + 0.2 + 0.3 * random.standard_normal((n, 3))
    constant = 0.9 + 0.2 * random.standard_normal((n, 3))
    weight = random.random((n, 3)) + 0.5
    weight[:5, 1] = 0.0
    return tag, constant, labels, weight, np.array([0.3, 0.5, 0.75])


def tag_loss_by_hand(x, tag, constant, labels, weight, prior):
    """The loss of one tag: that of two classes, whose best parameters follow from four."""
    two = np.array([x[0], x[1], -x[2], x[2], -x[3] / 2, x[3] / 2])
    scores = np.column_stack([constant - tag, tag])
    return softmax_loss_by_hand(
        two, scores, np.column_stack([1 - labels, labels]), weight, np.array([1 - prior, prior])
    )


class TestTagsFit:
    def test_loss_is_that_of_two_classes(self):
        problem = tags_problem()
        fit = TagsFit(*problem)
        x = np.random.default_rng(2).normal(scale=0.4, size=(4, 3))
        value, gradient, curvature = fit.loss(x, np.arange(3))
        for t in range(3):
            by_hand = tag_loss_by_hand(x[:, t], *(part[..., t] for part in problem))
            assert value[t] == pytest.approx(by_hand, rel=1e-12)
        for i, step in enumerate(1e-6 * np.eye(4)):
            numeric = fit.loss(x + step[:, None], np.arange(3))[0] - fit.loss(x - step[:, None], np.arange(3))[0]
            np.testing.assert_allclose(gradient[i], numeric / 2e-6, rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(curvature, curvature.transpose(1, 0, 2))
        some = fit.loss(x[:, [2, 0]], np.array([2, 0]))
        for all_tags, two_tags in zip((value, gradient, curvature), some):
            np.testing.assert_allclose(two_tags, all_tags[..., [2, 0]], rtol=1e-13)

    def test_expected_curvature(self):
        """Where targets equal the probabilities, the expected curvature is the curvature of the loss itself."""
        tag, constant, _, weight, prior = tags_problem()
        x, step = np.random.default_rng(3).normal(scale=0.3, size=(4, 3)), 1e-5
        fit = TagsFit(tag, constant, np.zeros_like(tag), weight, prior)
        link = CalibratedTags(prior, np.exp([x[0] - x[2], x[0] + x[2]]), np.exp(x[1]), x[3],
                              np.array([[-np.inf] * 3, [np.inf] * 3]), np.arange(3, 6))  # fmt: skip
        fit.targets = link.probabilities(np.hstack([tag, constant])).T
        curvature = fit.loss(x, np.arange(3))[2]
        for i, e in enumerate(step * np.eye(4)):
            numeric = (fit.loss(x + e[:, None], np.arange(3))[1] - fit.loss(x - e[:, None], np.arange(3))[1]) / (
                2 * step
            )
            np.testing.assert_allclose(curvature[i], numeric, rtol=1e-4, atol=1e-6)

    def test_sums_of_no_rows_are_no_division_by_zero(self):
        tag, constant, labels, weight, prior = tags_problem()
        weight[:, 1] = 0.0
        with np.errstate(all="raise", under="ignore"):
            slope, sharpness, offset, span = TagsFit(tag, constant, labels, weight, prior).run()
        assert slope.shape == span.shape == (2, 3)
        assert all(np.isfinite(part).all() for part in (slope, sharpness, offset, span))
        np.testing.assert_allclose(slope[:, 1], np.exp(0.5))
        assert sharpness[1] == pytest.approx(np.exp(2.0)) and offset[1] == 0.0
        np.testing.assert_array_equal(span[:, 1], 0.5)

    def test_scores_and_weights_at_the_ends(self):
        tag, constant = np.array([[5e3], [-5e3], [0.5]]), np.array([[5e3], [-5e3], [0.5]])
        fit = TagsFit(tag, constant, np.zeros((3, 1)), np.full((3, 1), 0.125), np.array([0.5]))
        np.testing.assert_array_equal(fit.q, [[1000 - 499.5, -1000 + 500.5, 0.75]])
        np.testing.assert_array_equal(fit.g, [[1.0, 0.0, 0.5]])
        assert fit.total == [0.375]
        assert TagsFit(tag, constant, tag, 0 * tag, np.array([0.5])).total == [1.0]

    @pytest.mark.parametrize("prior", [0.1, 0.9])
    def test_span_holds_the_prior(self, prior):
        tag = np.array([[0.45], [0.5], [0.55]])
        span = TagsFit(tag, np.ones((3, 1)), np.array([[0.0], [1.0], [1.0]]), np.ones((3, 1)), np.array([prior])).run()[
            3
        ]
        np.testing.assert_allclose(span, [[0.1], [0.9]])

    def test_takes_few_steps(self, monkeypatch):
        fit, seen = TagsFit(*tags_problem()), []
        loss = fit.loss
        monkeypatch.setattr(fit, "loss", lambda x, tags: seen.append(len(tags)) or loss(x, tags))
        best = fit._minimum()
        assert len(seen) <= 20 and seen[-1] < 3  # tags that have arrived are left alone
        monkeypatch.setattr(fit, "most_steps", 2)
        values = loss(fit._minimum(), np.arange(3))[0]
        start = loss(np.tile(np.array(TagsFit.start)[:, None], 3), np.arange(3))[0]
        assert (values < start).all() and (values >= loss(best, np.arange(3))[0]).all()

    def test_run_finds_the_minimum(self):
        problem = tags_problem()
        slope, sharpness, offset, span = TagsFit(*problem).run()
        x = np.stack([np.log(slope).mean(axis=0), np.log(sharpness), np.log(slope[1] / slope[0]) / 2, offset])
        for t in range(3):
            of_tag = tuple(part[..., t] for part in problem)
            best = minimize(tag_loss_by_hand, [0.5, 2.0, 0.0, 0.0], of_tag, method="L-BFGS-B",
                            bounds=[(-5, 6), (-1, 6), (-4, 4), (-16, 16)], options={"maxiter": 1000})  # fmt: skip
            assert tag_loss_by_hand(x[:, t], *of_tag) == pytest.approx(best.fun, abs=1e-8)
            tag, constant, _, weight, prior = of_tag
            q = (tag + (1 - constant) * prior)[weight > 0]
            q = np.append(q, [prior])
            ends = min(q.min(), 1 - q.max()), max(q.max(), 1 - q.min())
            np.testing.assert_allclose(span[:, t], ends, rtol=1e-13)

    def test_a_bound_holds(self):
        """Tags that nothing predicts: the sharpness or the slope goes where it is held."""
        random = np.random.default_rng(0)
        n = 300
        labels = (random.random((n, 1)) < 0.5).astype(float)
        tag = 0.5 + 0.4 * (0.5 - labels) + 0.05 * random.standard_normal((n, 1))  # the wrong way round
        problem = tag, np.ones((n, 1)), labels, 1e4 * np.ones((n, 1)), np.array([0.5])
        slope, sharpness, offset, _ = TagsFit(*problem).run()
        x = np.array([np.log(slope).mean(), np.log(sharpness[0]), np.log(slope[1, 0] / slope[0, 0]) / 2, offset[0]])
        lower, upper = TagsFit.bounds[..., 0]
        assert (x >= lower - 1e-9).all() and (x <= upper + 1e-9).all()
        of_tag = tuple(part[..., 0] for part in problem)
        best = minimize(tag_loss_by_hand, [0.5, 2.0, 0.0, 0.0], of_tag, method="L-BFGS-B",
                        bounds=list(zip(lower, upper)), options={"maxiter": 1000})  # fmt: skip
        assert tag_loss_by_hand(x, *of_tag) <= best.fun + 1e-6

    def test_stays_finite_on_separable_scores(self):
        labels = np.repeat([[0.0], [1.0]], 10, axis=0)
        slope, sharpness, offset, _ = TagsFit(
            labels * 1e5, np.ones((20, 1)), labels, np.ones((20, 1)), np.array([0.5])
        ).run()
        assert np.isfinite([*slope[:, 0], *sharpness, *offset]).all()


class TestBoundedStep:
    H = np.array([[4.0, 1.0, 0.5, 0.2], [1.0, 3.0, 0.1, 0.4], [0.5, 0.1, 2.0, 0.3], [0.2, 0.4, 0.3, 5.0]])
    bounds = TagsFit.bounds

    def test_is_the_damped_newton_step(self):
        gradient, x = np.array([[1.0], [-2.0], [0.5], [3.0]]), np.zeros((4, 1))
        given = self.H.copy()
        step = calibrated_tags._bounded_step(gradient, self.H[:, :, None], np.array([0.1]), x, self.bounds)
        damped = self.H + np.diag(0.1 * (np.diag(self.H) + 1e-3 * 5.0))
        np.testing.assert_allclose(step[:, 0], -np.linalg.solve(damped, gradient[:, 0]), rtol=1e-12)
        np.testing.assert_array_equal(self.H, given)

    @pytest.mark.parametrize("side", [0, 1])
    def test_parameters_at_a_bound_stay(self, side):
        gradient, x = np.array([[1.0], [-2.0], [0.5], [3.0]]), np.zeros((4, 1))
        x[1] = self.bounds[side, 1, 0]
        gradient[1] = 0.5 if side == 0 else -0.5
        step = calibrated_tags._bounded_step(gradient, self.H[:, :, None], np.array([0.0]), x, self.bounds)[:, 0]
        free = [0, 2, 3]
        assert step[1] == 0.0
        np.testing.assert_allclose(
            step[free], -np.linalg.solve(self.H[np.ix_(free, free)], gradient[free, 0]), rtol=1e-9
        )
        for factor in (-1.0, 0.0):  # away from the bound, or nowhere
            gradient[1] *= factor
            step = calibrated_tags._bounded_step(gradient, self.H[:, :, None], np.array([0.0]), x, self.bounds)[:, 0]
            np.testing.assert_allclose(step, -np.linalg.solve(self.H, gradient[:, 0]), rtol=1e-9)

    def test_no_curvature_at_all(self):
        step = calibrated_tags._bounded_step(
            np.zeros((4, 2)), np.zeros((4, 4, 2)), np.full(2, 0.1), np.zeros((4, 2)), self.bounds
        )
        np.testing.assert_array_equal(step, np.zeros((4, 2)))


class TestFitLink:
    @pytest.mark.parametrize(("name", "kind"), [("clip", Clip), ("clip-parameters", Clip), ("none", Ratio)])
    def test_plain_links(self, name, kind):
        assert type(fit_link(name, None, rows_of(np.array([0, 1, 2])))) is kind
        tags = np.array([[1.0, 0.0], [0.0, np.nan], [1.0, 1.0]])
        rows = rows_of(tags, c=2)
        link = fit_link(name, None, rows)
        assert type(link) is PerTag and type(link.link) is kind
        assert link.constant.tolist() == ([2, 3] if name == "clip-parameters" else rows.constant.tolist())
        shared = fit_link(name, None, rows_of(np.nan_to_num(tags), c=2))
        assert shared.constant.tolist() == ([2, 3] if name == "clip-parameters" else [2, 2])

    @pytest.mark.parametrize("name", ["auto", "softmax"])
    def test_classes(self, name):
        scores, targets, weight, _ = softmax_problem()
        rows = rows_of(targets.argmax(axis=1), weight)
        found = fit_link(name, scores, rows)
        expected = SoftmaxFit(scores, targets, weight, positive_prior(rows)).run()
        for part in ("prior", "slope", "sharpness", "offset", "span"):
            np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))

    def test_one_more_row_is_never_excluded(self):
        """However well the scores separate the classes: (1 − ε)p + επ, where ε is the share of one more row."""
        y = np.arange(60) % 3
        link = fit_link("auto", np.eye(3)[y], rows_of(y))
        proba = link.probabilities(50.0 * np.eye(3))
        assert link.doubt == pytest.approx(1 / 61) and proba.min() >= 1 / 61 / 3 * (1 - 1e-9)
        assert proba.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-15)
        sure = replace(link, doubt=0.0).probabilities(50.0 * np.eye(3))
        assert proba == pytest.approx(60 / 61 * sure + 1 / 61 / 3)
        tags = Rows.of(np.arange(60.0)[:, None], np.eye(3)[y], np.ones(60), 3)
        found = fit_link("auto", np.c_[np.eye(3)[y], np.ones(60)], tags)
        assert found.doubt == pytest.approx(np.full(3, 1 / 61))
        assert found.probabilities(np.array([[1.0, 0.0, 0.0, 1.0]])).min() >= 1 / 61 / 3 * (1 - 1e-9)

    @pytest.mark.parametrize(("most_rows", "most_cells", "used"), [(1200, 10**6, 1200), (5000, 3600, 1200), (1, 1, 1)])
    def test_some_rows_are_enough(self, most_rows, most_cells, used, monkeypatch):
        """Those with the smallest keys, and no fewer than a thousand for want of cells."""
        monkeypatch.setattr(calibrated, "LINK_ROWS", most_rows)
        monkeypatch.setattr(calibrated, "LINK_CELLS", most_cells)
        seen = []
        monkeypatch.setattr(
            calibrated, "SoftmaxFit", lambda *parts: seen.append(parts) or type("Fit", (), {"run": int})
        )
        n = 1500
        rows, scores = rows_of(np.arange(n) % 3, np.arange(1.0, n + 1)), RNG.random((n, 3))
        fit_link("auto", scores, rows)
        some = np.argsort(rows.keys, kind="stable")[:used]
        same = rows_of(np.arange(n) % 3, X=np.ones((n, 1)))
        fit_link("auto", scores, same)  # rows of one key come in their order
        np.testing.assert_array_equal(seen[1][0], scores[:used])
        for part, expected in zip(seen[0], (scores[some], rows.targets(some), rows.weight[some], positive_prior(rows))):
            np.testing.assert_array_equal(part, expected)

    def test_no_fewer_than_a_thousand_rows(self, monkeypatch):
        monkeypatch.setattr(calibrated, "LINK_CELLS", 30)
        seen = []
        monkeypatch.setattr(
            calibrated, "SoftmaxFit", lambda *parts: seen.append(len(parts[0])) or type("Fit", (), {"run": int})
        )
        for n in (999, 1000, 1001):
            fit_link("auto", np.ones((n, 3)), rows_of(np.arange(n) % 3))
        assert seen == [999, 1000, 1000]

    @pytest.mark.parametrize("cells", [1 << 16, 40, 80, 1])
    @pytest.mark.parametrize("missing", [False, True])
    def test_tags_are_fitted_some_at_a_time(self, cells, missing, monkeypatch):
        monkeypatch.setattr(calibrated_tags, "TAG_CELLS", cells)
        tag, _, labels, weight, _ = tags_problem()
        weight = weight[:, 0]
        if missing:
            labels[:7, 1] = np.nan
        rows = rows_of(labels, weight)
        scores = np.hstack([tag, 1.0 + 0.1 * RNG.standard_normal((40, rows.n_groups))])
        link = fit_link("auto", scores, rows)
        known = ~np.isnan(labels)
        expected = TagsFit(tag, scores[:, rows.constant], np.nan_to_num(labels), weight[:, None] * known,
                           positive_prior(rows)).run()  # fmt: skip
        for name, part in zip(("slope", "sharpness", "offset", "span"), expected):
            np.testing.assert_allclose(getattr(link, name), part, rtol=1e-9)
        np.testing.assert_array_equal(link.constant, rows.constant)
        np.testing.assert_array_equal(link.prior, positive_prior(rows))


@pytest.mark.parametrize("c", [0, 1, 2, 3, 7, 8, 26])
def test_reductions_of_rows_are_those_of_numpy(c):
    values = np.random.default_rng(c).standard_normal((1000, c))
    assert np.array_equal(by_row(np.add, values), values.sum(axis=1, keepdims=True))
    if c:
        assert np.array_equal(by_row(np.maximum, values), values.max(axis=1, keepdims=True))
