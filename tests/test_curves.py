"""Normal scores of columns: knots, devices, model files, ONNX and the share that held-out rows choose."""

from __future__ import annotations

from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.data.curves import FARTHEST_SCORE, N_KNOTS, QUARTILES_APART, normal_scores
from kproba.data.rows import Rows
from kproba.data.scaling import bent_scaling, fit_scaling, with_normal_scores
from kproba.persist import load, save
from oracles import quantile_scaling

VALUES = [0.0, -0.0, 1.0, 1.0 + 1e-15, 2.0, 0.1, -3.0, 1e-12, 1e9, -1e9, 7.0]


def rows_of(X, weight=None) -> Rows:
    n = len(X)
    return Rows.of(X, np.arange(n) % 2, np.ones(n) if weight is None else weight, 2)


def skewed(n=400, seed=0):
    """Rows whose classes are separated by ranks rather than by distances."""
    rng = np.random.default_rng(seed)
    ranks = rng.normal(size=(n, 3))
    y = (ranks.sum(axis=1) + 0.5 * rng.normal(size=n) > 0).astype(int)
    return np.exp(3.0 * ranks), y


class TestScores:
    def test_many_values_are_near_the_scores_of_their_ranks(self):
        X = np.random.default_rng(0).lognormal(sigma=2.0, size=(500, 2))
        found = fit_scaling("quantile", rows_of(X))
        spacing = 2 * FARTHEST_SCORE / (N_KNOTS - 1) / QUARTILES_APART
        assert len(found.curves.knots) <= N_KNOTS + 2
        assert np.abs(found(X) - quantile_scaling(X, np.ones(500), X)).max() < spacing

    def test_values_outside_the_training_rows_go_on_as_robust_scaling_does(self):
        X = np.linspace(0.0, 1.0, 50)[:, None] ** 2
        outside = np.array([[-5.0], [1.1], [2.0], [1e300]])
        scores, robust = (fit_scaling(mode, rows_of(X)) for mode in ("quantile", "robust"))
        nearest = X[[0, -1, -1, -1]]
        np.testing.assert_allclose(scores(outside) - scores(nearest), robust(outside) - robust(nearest), atol=1e-12)

    @given(X=arrays(float, (12, 2), elements=st.sampled_from(VALUES)))
    def test_keeps_the_order_and_goes_back(self, X):
        scale = fit_scaling("quantile", rows_of(X))
        Z = scale(X)
        for z, x in zip(Z.T, X.T):
            assert (np.diff(z[np.argsort(x)]) >= -1e-12).all()  # up to the rounding of an interpolation
        np.testing.assert_allclose(scale(scale.inverse(Z)), Z, atol=1e-6)

    @given(
        X=arrays(float, (12, 3), elements=st.sampled_from(VALUES)),
        new=arrays(float, (5, 3), elements=st.sampled_from([*VALUES, 0.5, 1e300, -1e300])),
        share=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    )
    def test_a_device_interpolates_alike(self, X, new, share):
        """Devices add pieces; knots that are one rounding error apart must not lose digits."""
        scale = bent_scaling(fit_scaling("quantile", rows_of(X)), share)
        there = scale(array_api_strict.asarray(new))
        np.testing.assert_allclose(np.asarray(there), scale(new), atol=1e-12)

    @given(
        X=arrays(float, (12, 2), elements=st.sampled_from(VALUES)), weight=arrays(float, 12, elements=st.floats(1, 3))
    )
    def test_shares_lie_between_both_ends(self, X, weight):
        robust = fit_scaling("robust", rows_of(X, weight))
        scale = with_normal_scores(robust, rows_of(X, weight))
        plain, half, scores = (bent_scaling(scale, share)(X) for share in (0.0, 0.5, 1.0))
        np.testing.assert_array_equal(plain, robust(X))
        np.testing.assert_allclose(half, (plain + scores) / 2, atol=1e-12)

    def test_rounding_errors_have_no_rank(self):
        """0.1 + 0.2 and 0.3 are the same number to a user."""
        rng = np.random.default_rng(0)
        x = rng.integers(1, 9, 300) / 10
        noisy = np.where(rng.random(300) < 0.5, x, (x + 0.2) - 0.2)
        assert len(np.unique(noisy)) > len(np.unique(x))
        scale = fit_scaling("quantile", rows_of(noisy[:, None]))
        np.testing.assert_allclose(scale(noisy[:, None]), scale(x[:, None]), atol=1e-5)

    def test_two_valued_columns_and_codes_have_no_curve(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.integers(0, 2, 60) * 4.0, rng.normal(size=60), rng.integers(0, 9, 60)])
        scale = fit_scaling("quantile", replace(rows_of(X), categorical=(2,)))
        assert scale.curves.columns.tolist() == [1]
        np.testing.assert_array_equal(scale(X)[:, [0, 2]], X[:, [0, 2]] / [4.0, 1.0])
        assert fit_scaling("quantile", rows_of(X[:, :1])).curves is None

    def test_no_columns(self):
        assert normal_scores(np.ones((3, 2)), np.ones(3), np.array([], int), 3.0).knots.shape == (1, 0)


class TestModels:
    @pytest.mark.parametrize("kind", [LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier])
    def test_monotone_changes_of_columns_hardly_matter(self, kind):
        """The scores interpolate between knots, so they are not ranks to the last digit."""
        X, y = skewed(200)
        options = {"kernel": "gaussian", "scaling": "quantile", "random_state": 0}
        one = kind(**options).fit(X, y).predict_proba(X)
        other = kind(**options).fit(np.log(X), y).predict_proba(np.log(X))
        assert np.abs(one - other).mean() < 0.05

    def test_held_out_rows_choose_scores_where_ranks_matter(self):
        X, y = skewed()
        model = LSPC(random_state=0).fit(X, y)
        scores = LSPC(random_state=0, scaling="quantile").fit(X, y)
        np.testing.assert_array_equal(model.scaling_.curves.values, scores.scaling_.curves.values)
        plain = LSPC(random_state=0, scaling="robust").fit(X, y)
        X_new, y_new = skewed(4000, seed=1)
        of = [-np.log(each.predict_proba(X_new)[np.arange(4000), y_new]).mean() for each in (model, plain)]
        assert of[0] < of[1]

    def test_held_out_rows_keep_distances_where_these_matter(self):
        """Ranks would spread each of two distant groups over half of the column."""
        rng = np.random.default_rng(0)
        groups = np.where(rng.random(500) < 0.5, rng.uniform(0, 1, 500), rng.uniform(100, 101, 500))
        X = np.column_stack([groups, rng.normal(size=500)])
        y = (X[:, 0] > 50) ^ (X[:, 1] > 0)
        assert LSPC(random_state=0).fit(X, y).scaling_.curves is None

    def test_files_and_pickles_keep_curves(self, tmp_path):
        X, y = skewed()
        model = LSPC(random_state=0, scaling="quantile").fit(X, y)
        save(model, tmp_path / "model.kproba")
        np.testing.assert_array_equal(load(tmp_path / "model.kproba").predict_proba(X), model.predict_proba(X))
