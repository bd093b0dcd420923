"""The number of centres for many rows, against refits and on kernels whose need is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from kproba import LSPC
from kproba.data import summary
from kproba.data.rows import Rows
from kproba.data.sources import ArraySource
from kproba.kernels import Gaussian
from kproba.search import center_count
from kproba.search.center_count import NestedFit, doublings
from kproba.search.losses import CalibratedLogLoss


def table(n: int, seed: int, wave: float = 0.5):
    """Rows of two columns of which the first matters, some of them repeated with other labels."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(-1, 1, size=(n, 2)), 3)
    X[-3:] = X[:3]
    y = (np.sin(wave * 2 * np.pi * X[:, 0]) > rng.uniform(-1, 1, n)).astype(int)
    y[:2] = 0, 1
    return Rows.of(X, y, rng.integers(1, 4, n).astype(float), 2)


class TestNestedFit:
    @given(seed=st.integers(0, 1000), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3))
    def test_equals_refits_without_each_row(self, seed, sizes):
        rows, kernel, noise = table(20, seed), Gaussian(width=0.5), 0.3
        fit, Z = NestedFit(kernel, noise, rows), rows.X[:0]
        for size in sizes:
            more = rows.X[3 + len(Z) : 3 + len(Z) + size]
            Z, scores = np.concatenate([Z, more]), fit.add(more)
            phi, targets = oracles.gaussian(rows.X, Z, 0.5), rows.targets()
            for i in range(len(rows)):
                weight = rows.weight.copy()
                weight[i] -= rows.unit[i]
                ridge = noise / weight.sum()
                coef = oracles.ridge_solution(phi, targets, weight, oracles.gaussian(Z, Z, 0.5), ridge)
                assert scores[i] == pytest.approx(phi[i] @ coef, abs=1e-6)

    def test_centres_that_add_nothing_are_refused(self):
        rows = table(50, 0)
        fit = NestedFit(Gaussian(width=1e3), 0.0, rows)
        fit.add(rows.X[:1])
        with pytest.raises(np.linalg.LinAlgError):
            fit.add(np.repeat(rows.X[:1], 2, axis=0))


def count(rows, width: float, most: int = 400) -> int:
    return center_count.center_count(Gaussian(width=width), 0.1, rows, most, CalibratedLogLoss(), seed=0)


class TestCount:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(center_count, "FEWEST_CENTERS", 10)

    def test_smooth_kernels_need_few(self):
        assert count(table(3000, 0), 1.0) <= 25

    def test_sharp_kernels_take_all_they_may(self):
        assert count(table(3000, 0, wave=20), 0.005) == 400

    def test_kernels_in_between(self):
        assert 25 < count(table(3000, 0, wave=1.5), 0.5) < 400

    def test_ties_and_constant_columns(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.integers(0, 2, 300), np.zeros(300)]).astype(float)
        rows = Rows.of(X, rng.integers(0, 2, 300), np.ones(300), 2)
        assert 1 <= count(rows, 1.0) <= 400  # there are two distinct rows

    def test_depends_neither_on_order_nor_on_copies(self):
        rows = table(1000, 0, wave=4)
        turned = Rows.of(rows.X[::-1], rows.labels[::-1], rows.weight[::-1], 2)
        assert count(rows, 0.15) == count(turned, 0.15)


@pytest.mark.parametrize(
    ("most", "sizes"), [(3357, [209, 419, 839, 1678, 3357]), (399, [399]), (5, [5]), (400, [200, 400])]
)
def test_doublings(most, sizes):
    assert doublings(most) == sizes


class TestInFits:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(summary, "SAMPLE_ROWS", 400)
        monkeypatch.setattr(summary, "sample_size", lambda n_features: 400)
        monkeypatch.setattr("kproba.estimators._reading.sample_size", lambda n_features: 400)
        monkeypatch.setattr(center_count, "FEWEST_CENTERS", 50)

    def test_many_rows_of_a_smooth_problem_use_few_centres(self):
        rows = table(3000, 0)
        clf = LSPC(random_state=0).fit(rows.X, rows.labels)
        assert clf._is_summed_up
        assert len(clf.coef_) < 200
        again = LSPC(random_state=0).fit(ArraySource(rows.X, rows.labels))
        assert np.allclose(clf.predict_proba(rows.X[:50]), again.predict_proba(rows.X[:50]), atol=1e-8)

    def test_given_numbers_are_kept(self):
        rows = table(3000, 0)
        assert len(LSPC(centers=300, random_state=0).fit(rows.X, rows.labels).coef_) == 300
