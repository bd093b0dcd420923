"""Partial dependence: scikit-learn's own results, computed from columns that stay the same."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import inspection
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier, partial_dependence
from kproba.explanations import dependence, fix_rows
from kproba.kernels import Learnt

matplotlib.use("Agg")
LEARNT = Learnt((1.0, 0.5, 0.2, 0.8), (1.5, 2.0, 1.0), (0.5, 0.3, 0.7, 0.2))


def table(n=40, classes=2, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [0.0, 0.7][: classes - 1])


def plain_scores(clf):
    """The number of times a classifier computes scores the usual way."""
    calls, original = [], clf._scores
    vars(clf)["_scores"] = lambda X: calls.append(1) or original(X)
    return calls


class TestAgainstScikitLearn:
    @pytest.mark.parametrize(
        "kernel", ["gaussian", "laplacian", "additive", "pairs", "linear", LEARNT, "matern32"], ids=str
    )
    @pytest.mark.parametrize("features", [[1], [0, 2]], ids=str)
    def test_kernels(self, kernel, features):
        X, y = table()
        clf = LSPC(kernel=kernel, random_state=0).fit(X, y)
        options = {"grid_resolution": 4, "kind": "both"}
        ours = partial_dependence(clf, X, features, **options)
        theirs = inspection.partial_dependence(clf, X, features, **options)
        assert_allclose(ours.average, theirs.average, atol=1e-10)
        assert_allclose(ours.individual, theirs.individual, atol=1e-10)
        for one, other in zip(ours.grid_values, theirs.grid_values):
            assert_allclose(one, other)

    @pytest.mark.parametrize(
        "estimator", [LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier]
    )
    @pytest.mark.parametrize("response_method", ["predict_proba", "decision_function"])
    def test_estimators(self, estimator, response_method):
        X, y = table(classes=3)
        clf = estimator(kernel="gaussian", width=1.5, random_state=0).fit(X, y)
        options = {"grid_resolution": 3, "response_method": response_method, "sample_weight": np.arange(40)}
        ours = partial_dependence(clf, X, [3], **options)
        assert_allclose(ours.average, inspection.partial_dependence(clf, X, [3], **options).average, atol=1e-10)

    def test_one_hot_columns_vary_together(self):
        X, y = table()
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 3], "level": np.where(X[:, 2] > 0, "high", "low")})
        steps = make_column_transformer((StandardScaler(), ["a", "b", "c"]), (OneHotEncoder(), ["level"]))
        model = make_pipeline(steps, LSPC(kernel="gaussian", random_state=0)).fit(frame, y)
        calls = plain_scores(model[-1])
        ours = partial_dependence(model, frame, ["level"], categorical_features=["level"])
        assert not calls
        theirs = inspection.partial_dependence(model, frame, ["level"], categorical_features=["level"])
        assert_allclose(ours.average, theirs.average, atol=1e-10)
        assert ours.grid_values[0].tolist() == ["high", "low"]

    @pytest.fixture
    def behind(self):
        """A pipeline that fills in gaps, and its rows: numbers with gaps, codes with gaps, truth values, text, days."""
        X, y = table(60)
        frame = pd.DataFrame({"a": X[:, 0], "gaps": X[:, 1], "code": np.round(X[:, 2]), "true": X[:, 3] > 0})
        frame.loc[::7, ["gaps", "code"]] = np.nan
        frame["object"] = frame["gaps"].astype(object).where(frame["gaps"].notna(), None)
        frame["word"] = np.where(X[:, 2] > 0, "high", None)
        frame["text"], frame["day"] = [f"text {i}" for i in range(60)], pd.date_range("2026-01-01", periods=60)
        numbers = make_pipeline(SimpleImputer(), StandardScaler())
        steps = make_column_transformer((numbers, ["a", "gaps", "code", "true"]), (OneHotEncoder(), ["word"]))
        return make_pipeline(steps, LSPC(kernel="gaussian", random_state=0)).fit(frame, y), frame

    def test_gaps_behind_pipelines(self, behind):
        """scikit-learn's grid would be NaN throughout."""
        model, frame = behind
        filled = frame.assign(gaps=frame["gaps"].fillna(0.0))
        found = partial_dependence(model, frame, ["gaps"], grid_resolution=5)
        low, high = np.nanquantile(frame["gaps"], [0.05, 0.95])
        assert_allclose(found.grid_values[0], np.linspace(low, high, 5))
        expected = inspection.partial_dependence(model, filled, ["gaps"], custom_values={"gaps": found.grid_values[0]})
        assert_allclose(found.average, expected.average, atol=1e-10)
        assert np.ptp(found.average) > 0.01
        also = partial_dependence(model, frame, ["object"], grid_resolution=5)
        assert_allclose(also.grid_values[0].astype(float), found.grid_values[0])
        options = {"grid_resolution": 2, "categorical_features": ["code"]}
        codes = partial_dependence(model, frame, np.array(["code"]), **options).grid_values[0]
        assert codes.tolist() == sorted(frame["code"].dropna().unique())

    def test_truth_values_and_words_behind_pipelines(self, behind):
        model, frame = behind
        found = partial_dependence(model, frame, ["gaps", "true"], grid_resolution=3)
        assert found.average.shape == (1, 3, 2) and found.grid_values[1].tolist() == [False, True]
        for j, truth in enumerate((False, True)):
            alone = partial_dependence(model, frame.assign(true=truth), ["gaps"], grid_resolution=3)
            assert_allclose(found.average[0, :, j], alone.average[0], atol=1e-10)
        assert partial_dependence(model, frame, ["word"]).grid_values[0].tolist() == ["high"]

    @pytest.mark.parametrize("name", ["text", "day"])
    def test_too_many_values_that_are_not_numbers(self, behind, name):
        model, frame = behind
        with pytest.raises(ValueError, match=f"column '{name}' has 60 different values that are not numbers; say with"):
            partial_dependence(model, frame, [name], grid_resolution=10)
        chosen = {name: frame[name].to_numpy()[:2]}
        found = partial_dependence(model, frame, [name], grid_resolution=10, custom_values=chosen)
        assert found.average.shape == (1, 2)
        assert len(partial_dependence(model, frame, [name], categorical_features=[name]).grid_values[0]) == 60

    def test_columns_that_mix(self):
        X, y = table()
        model = make_pipeline(PCA(3), LSPC(kernel="gaussian", random_state=0)).fit(X, y)
        theirs = inspection.partial_dependence(model, X, [0], grid_resolution=3)
        assert_allclose(partial_dependence(model, X, [0], grid_resolution=3).average, theirs.average, atol=1e-10)

    def test_a_constant_column(self):
        X, y = table()
        X[:, 2] = 1.0
        clf = LSPC(kernel="gaussian", random_state=0).fit(X, y)
        found = partial_dependence(clf, X, [2], custom_values={2: [1.0, 2.0]})
        assert found.average[0, 0] == pytest.approx(clf.predict_proba(X)[:, 1].mean())

    def test_display(self):
        X, y = table()
        clf = LSPC(kernel="gaussian", random_state=0).fit(X, y)
        theirs = inspection.PartialDependenceDisplay.from_estimator(clf, X, [0, (1, 2)], grid_resolution=4)
        ours = inspection.PartialDependenceDisplay.from_estimator(fix_rows(clf, X), X, [0, (1, 2)], grid_resolution=4)
        for one, other in zip(ours.pd_results, theirs.pd_results):
            assert_allclose(one.average, other.average, atol=1e-10)

    def test_display_from_results(self):
        X, y = table()
        clf = LSPC(kernel="gaussian", random_state=0).fit(X, y)
        found = partial_dependence(clf, X, [0], grid_resolution=4)
        display = inspection.PartialDependenceDisplay(
            pd_results=[found], features=[(0,)], feature_names=["a", "b", "c", "d"], target_idx=0, deciles={0: [0.0]}
        ).plot()
        assert_allclose(display.lines_[0, 0].get_ydata(), found.average[0])

    def test_permutation_importance(self):
        X, y = table()
        clf = LSPC(kernel="gaussian", random_state=0).fit(X, y)
        options = {"scoring": "neg_log_loss", "n_repeats": 2, "random_state": 0}
        theirs = inspection.permutation_importance(clf, X, y, **options)
        fixed = fix_rows(clf, X)
        calls = plain_scores(clf)
        ours = inspection.permutation_importance(fixed, X, y, **options)
        assert_allclose(ours.importances, theirs.importances, atol=1e-10)
        assert not calls


class TestFixedRows:
    def test_other_rows_are_predicted_as_usual(self):
        X, y = table()
        clf = LSPC(kernel="laplacian", random_state=0).fit(X, y)
        fixed = fix_rows(clf, X[:30])
        for rows in (X, X[:0], X[:30] + 1.0):
            assert_allclose(fixed.predict_proba(rows), clf.predict_proba(rows))
        assert (fixed.predict(X) == clf.predict(X)).all()
        assert "_scores" not in vars(clf)

    def test_one_column(self):
        X, y = table()
        clf = LSPC(kernel="gaussian", random_state=0).fit(X[:, :1], y)
        fixed = fix_rows(clf, X[:, :1])
        assert_allclose(fixed.predict_proba(X[:, 1:2]), clf.predict_proba(X[:, 1:2]))

    def test_large_models_are_left_alone(self, monkeypatch):
        X, y = table()
        clf = LSPC(kernel="gaussian", random_state=0).fit(X, y)
        monkeypatch.setattr(dependence, "MOST_BYTES", 8 * 40 * len(clf.centers_) - 1)
        assert fix_rows(clf, X) is clf

    def test_tags(self):
        X, _ = table()
        clf = LSPC(kernel="gaussian", random_state=0).fit(X, (X[:, :2] > 0).astype(int))
        changed = X.copy()
        changed[:, 3] = 0.5
        assert_allclose(fix_rows(clf, X).predict_proba(changed), clf.predict_proba(changed), atol=1e-10)

    def test_other_models(self):
        X, _ = table()
        with pytest.raises(TypeError, match="fix_rows: model must be a classifier of kproba"):
            partial_dependence(PCA().fit(X), X, [0])
