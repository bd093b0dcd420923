"""Shapley values against sums over all subsets of columns."""

import re
from itertools import product

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from skrub import TableVectorizer

from kproba import (
    LSPC,
    Explanation,
    ImportVectorMachine,
    KernelLogisticRegression,
    RejectOption,
    SurfaceKernelClassifier,
    explain,
)
from kproba.displays import ExplanationDisplay
from kproba.displays.explanations import swarm
from kproba.explanations import Reason, shapley
from kproba.explanations.columns import origins
from kproba.explanations.shapley import Arrays, KernelSum, distribution, quadrature
from kproba.kernels import (
    KERNELS,
    Additive,
    ChiSquared,
    Gaussian,
    Intersection,
    Laplacian,
    Learnt,
    Linear,
    Pairs,
)
from kproba.kernels.by_column import split_by_column
from oracles import shapley_by_subsets
from strategies import PALETTES

matplotlib.use("Agg")
ESTIMATORS = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)


def kernels_of(d):
    """One kernel of every kind that splits by column, for d columns."""
    learnt = Learnt(tuple(np.linspace(0.2, 1.0, d)), (1.5, 2.0, 1.0), (0.5, 0.3, 0.7, 0.2))
    histograms = [ChiSquared(0.8), Intersection()]
    return [
        Gaussian(1.3),
        Laplacian(2.0),
        Additive(1.5),
        Linear(),
        learnt,
        *histograms,
        *([Pairs(1.5)] if d > 1 else []),
    ]


def every_combination(background):
    """Rows in which the columns of the background are independent."""
    return np.array(list(product(*background.T)))


@st.composite
def kernel_sums(draw, columns=(1, 5)):
    """A kernel, a row, centres, coefficients and background rows."""
    d = draw(st.integers(*columns))
    kernel = draw(st.sampled_from(kernels_of(d)))
    palettes = [draw(st.sampled_from(PALETTES)) for _ in range(d)]
    X = np.array([[draw(st.sampled_from(palette)) for palette in palettes] for _ in range(1 + 3 + 2)])
    X = np.abs(X) if kernel.compares == "histograms" else X
    coef = np.array([[draw(st.sampled_from((-2.0, 0.5, 1.0, 30.0))) for _ in range(2)] for _ in range(3)])
    return kernel, X[0], X[1:4], coef, X[4:]


class TestValues:
    @given(kernel_sums(), st.booleans())
    def test_every_subset(self, drawn, independent):
        kernel, x, Z, coef, background = drawn
        self.check(kernel, x, Z, coef, background, independent)

    @pytest.mark.parametrize("kernel", kernels_of(8), ids=lambda kernel: kernel.name)
    @pytest.mark.parametrize("independent", [True, False])
    def test_eight_columns(self, kernel, independent):
        X = np.random.default_rng(0).gamma(1.0, size=(8, 8))
        self.check(kernel, X[0], X[1:6], np.linspace(-3.0, 4.0, 10).reshape(5, 2), X[6:], independent)

    def check(self, kernel, x, Z, coef, background, independent):
        score = KernelSum.of(kernel.by_column(len(x)), Z, coef, Arrays())
        values, base = score.explain(x[None, :], background, independent)
        rows = every_combination(background) if independent else background
        expected = shapley_by_subsets(lambda X: kernel(X, Z) @ coef, x, rows)
        assert_allclose(values[0], expected[0], atol=1e-8)
        assert_allclose(base, expected[1], atol=1e-8)

    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_every_kernel_splits_correctly_or_not_at_all(self, kernel):
        X = np.abs(np.random.default_rng(1).normal(size=(6, 3)))
        kernel = kernel.with_width(0.7)
        terms = split_by_column(kernel, 3)
        if terms is None:
            with pytest.raises(NotImplementedError):
                kernel.by_column(3)
            return
        score = KernelSum.of(terms, X, np.eye(6), Arrays())
        values, base = score.explain(X, X, True)
        assert_allclose(base + values.sum(axis=1), kernel(X, X), atol=1e-12)

    @pytest.mark.parametrize("d", [1, 2, 3, 30, 36, 37, 40, 100, 800])
    def test_quadrature_of_many_columns(self, d):
        """Products that are concentrated at the ends are the hardest to integrate."""
        t, weight = np.array(quadrature(d)).T
        assert len(t) <= max(1, min((d + 1) // 2, 3 * np.sqrt(d - 1) + 1))
        for m in {d - 1, (d - 1) // 2}:
            assert_allclose(weight @ (t**m), 1 / (m + 1), atol=2e-14)
            assert_allclose(weight @ ((1 - t) ** m), 1 / (m + 1), atol=2e-14)

    def test_tiles_and_threads_make_no_difference(self, monkeypatch):
        rng = np.random.default_rng(2)
        X, Z, coef = rng.normal(size=(7, 4)), rng.normal(size=(50, 4)), rng.normal(size=(50, 3))
        terms = kernels_of(4)[4].by_column(4)
        whole = KernelSum.of(terms, Z, coef, Arrays()).explain(X, Z, True)
        monkeypatch.setattr(shapley, "TILE_BYTES", 700)
        parts = KernelSum.of(terms, Z, coef, Arrays(workers=2)).explain(X, Z, True)
        for one, other in zip(whole, parts):
            assert_allclose(one, other, atol=1e-12)

    def test_many_values_are_represented_by_quantiles(self):
        column = np.random.default_rng(3).permutation(5000)[:, None] / 5000
        rows, share = distribution(column)
        assert len(rows) == shapley.MOST_VALUES and share.sum() == pytest.approx(1.0)
        assert_allclose([share @ column[rows, 0], share @ column[rows, 0] ** 2], [0.5, 1 / 3], atol=2e-4)
        rows, share = distribution(np.array([[3.0], [1.0], [3.0], [3.0]]))
        assert rows.tolist() == [1, 0] and share.tolist() == [0.25, 0.75]

    @pytest.mark.parametrize("kernel", kernels_of(5), ids=lambda kernel: kernel.name)
    @pytest.mark.parametrize("independent", [True, False])
    def test_groups_of_columns(self, kernel, independent):
        X = np.random.default_rng(4).gamma(1.0, size=(9, 5))
        Z, coef, background, groups = X[1:6], np.linspace(-1.0, 2.0, 5)[:, None], X[6:], [(0, 3), (), (1,), (2, 4)]
        score = KernelSum.of(kernel.by_column(5), Z, coef, Arrays())
        values, base = score.explain(X[:1], background, independent, groups)
        assert_allclose(values[:, 1], 0.0)

        def outputs(codes):
            """Players are numbers of rows here: the row to explain is the last."""
            rows = np.vstack([background, X[:1]])
            mixed = np.empty((len(codes), 5))
            for player, group in enumerate(filter(len, groups)):
                mixed[:, group] = rows[codes[:, player].astype(int)][:, group]
            return kernel(mixed, Z) @ coef

        codes = np.arange(3)[:, None] * np.ones(3)
        codes = every_combination(codes) if independent else codes
        expected = shapley_by_subsets(outputs, np.full(3, 3), codes)
        assert_allclose(values[0, [0, 2, 3]], expected[0], atol=1e-8)
        assert_allclose(base, expected[1], atol=1e-8)

    def test_zero_factors(self):
        """Rows and background may both be so far from a centre that their factors underflow."""
        Z, coef = np.array([[0.0, 0.0, 0.0], [1e6, 1e6, 1e6]]), np.array([[2.0], [-1.0]])
        for x in ([0.0, 1e6, 5.0], [1e6, 1e6, 1e6], [-1e9, 0.0, 0.0]):
            self.check(Gaussian(1.0), np.array(x), Z, coef, Z, True)
            self.check(Laplacian(1.0), np.array(x), Z, coef, Z + 3.0, False)


def table(n=60, d=4, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.array(["no", "yes"])[(X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)]


def fitted(estimator, X, y, **parameters):
    return estimator(**{"kernel": "gaussian", "width": 1.5, "random_state": 0, **parameters}).fit(X, y)


def estimates(clf, X):
    return clf.link_.explained(clf._scores(X))


class TestEstimators:
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_values_of_a_model(self, estimator, n_classes):
        """The whole way, by brute force through the model's own predictions."""
        X, _ = table(d=3)
        clf = fitted(estimator, X, np.digitize(X[:, 0], [-0.5, 0.5][: n_classes - 1]))
        found = explain(clf, X[:2], background=X[:4], absent="joint")
        for x, values in zip(X[:2], found.values):
            expected, base = shapley_by_subsets(lambda rows: estimates(clf, rows), x, X[:4])
            assert_allclose(values, expected, atol=1e-8)
            assert_allclose(found.base_values, base, atol=1e-8)
        assert_allclose(found.probabilities, clf.predict_proba(X[:2]))

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_background_of_independent_columns(self, estimator):
        X, y = table(d=3)
        clf = fitted(estimator, X, y)
        found = explain(clf, X[:1], background=X[:4])
        expected, base = shapley_by_subsets(lambda rows: estimates(clf, rows), X[0], every_combination(X[:4]))
        assert_allclose(found.values[0], expected, atol=1e-8)
        assert_allclose(found.base_values, base, atol=1e-8)

    def test_default_background_is_the_centers(self):
        X, y = table()
        clf = fitted(LSPC, X, y, centers=20)
        default, given = explain(clf, X[:3]), explain(clf, X[:3], background=clf.centers_)
        assert_allclose(default.values, given.values, atol=1e-9)

    def test_two_classes_are_mirror_images(self):
        X, y = table()
        for estimator in (LSPC, KernelLogisticRegression, ImportVectorMachine):
            found = explain(fitted(estimator, X, y), X[:5])
            assert_allclose(found.values[:, :, 0], -found.values[:, :, 1], atol=1e-8)

    def test_log_odds_of_two_classes(self):
        X, y = table()
        for estimator in (KernelLogisticRegression, ImportVectorMachine):
            clf = fitted(estimator, X, y)
            assert_allclose(explain(clf, X).outputs[:, 1], clf.decision_function(X), atol=1e-8)

    def test_estimates_sum_to_one(self):
        X, _ = table()
        found = explain(fitted(LSPC, X, np.digitize(X[:, 0], [-0.5, 0.5])), X)
        assert_allclose(found.outputs.sum(axis=1), 1.0)
        assert_allclose(found.values.sum(axis=2), 0.0, atol=1e-8)

    @pytest.mark.parametrize("link", ["softmax", "clip", "clip-parameters", "none"])
    def test_raw_scores(self, link):
        X, y = table()
        clf = fitted(LSPC, X, y, link=link)
        found = explain(clf, X, output="scores")
        assert_allclose(found.outputs, clf._scores(X), atol=1e-8)
        assert (found.probabilities is None) == (link == "none")

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    @pytest.mark.parametrize("output", ["estimates", "scores"])
    def test_tags(self, estimator, output):
        X, _ = table()
        Y = (X[:, :3] > 0.3).astype(int)
        clf = fitted(estimator, X, Y)
        found = explain(clf, X[:4], output=output)
        scores = clf._scores(X[:4])
        expected = scores[:, :3] if output == "scores" else clf.link_.explained(scores)
        assert found.values.shape == (4, 4, 3)
        assert_allclose(found.outputs, expected, atol=1e-8)

    def test_tags_by_clipping(self):
        X, _ = table()
        clf = fitted(LSPC, X, (X[:, :2] > 0).astype(int), link="clip")
        assert_allclose(explain(clf, X).outputs, clf._scores(X)[:, :2], atol=1e-8)

    def test_learnt_kernel(self):
        X, y = table(n=120)
        clf = LSPC(random_state=0).fit(X, y)
        assert isinstance(clf.kernel_, Learnt)
        assert_allclose(explain(clf, X).outputs, estimates(clf, X), atol=1e-8)

    def test_irrelevant_columns_get_nothing(self):
        X, y = table()
        X[:, 3] = 7.0
        assert_allclose(explain(fitted(LSPC, X, y), X).values[:, 3], 0.0, atol=1e-12)

    def test_equal_columns_share_equally(self):
        X, y = table()
        X[:, 1] = X[:, 0]
        values = explain(fitted(LSPC, X, y), X).values
        assert_allclose(values[:, 0], values[:, 1], atol=1e-10)

    def test_sample_weights(self):
        X, y = table()
        clf = LSPC(kernel="gaussian", random_state=0).fit(X, y, sample_weight=np.arange(60) % 3)
        assert_allclose(explain(clf, X).outputs, estimates(clf, X), atol=1e-8)


class TestInputs:
    @pytest.mark.parametrize("kind", [np.float32, np.float64, bool, np.int8, sparse.csr_array, list])
    def test_types(self, kind):
        X, y = table()
        X = (2 * X).round().clip(0, 1) if kind is bool else (4 * X).round()
        given_rows = X.tolist() if kind is list else kind(X) if kind is sparse.csr_array else X.astype(kind)
        clf = fitted(LSPC, given_rows, y)
        found = explain(clf, given_rows)
        assert_allclose(found.outputs, estimates(clf, given_rows), atol=1e-8)
        assert_allclose(found.data.astype(float), X)

    @pytest.mark.parametrize("d", [1, 4])
    def test_far_away_single_rows(self, d):
        X, y = table(d=4)
        clf = fitted(LSPC, X[:, :d], y)
        for far in (np.full((1, d), 1e30), np.full((1, d), -1e3), X[:1, :d]):
            found = explain(clf, far)
            assert_allclose(found.outputs, estimates(clf, far), atol=1e-8)

    def test_no_rows(self):
        X, y = table()
        found = explain(fitted(LSPC, X, y), X[:0])
        assert found.values.shape == (0, 4, 2) and found.importances.tolist() == [0.0] * 4

    def test_frames(self):
        X, y = table()
        frame = pd.DataFrame(X, columns=["age", "income", "height", "noise"])
        found = explain(fitted(LSPC, frame, y), frame[:3], background=frame)
        assert found.feature_names == ("age", "income", "height", "noise") and found.class_names == ("no", "yes")

    def test_scaling_in_front(self):
        X, y = table()
        frame = pd.DataFrame(100 + 50 * X, columns=["age", "income", "height", "noise"])
        model = make_pipeline(StandardScaler(), LSPC(kernel="gaussian", scaling=None, random_state=0)).fit(frame, y)
        found = explain(model, frame[:3])
        assert found.feature_names == ("age", "income", "height", "noise")
        assert_allclose(found.data, frame[:3])
        inside = explain(model[-1], model[:-1].transform(frame[:3]))
        assert_allclose(found.values, inside.values)

    def test_steps_that_do_nothing(self):
        X, y = table()
        frame = pd.DataFrame(X, columns=list("abcd"))
        for steps in (["passthrough"], ["passthrough", StandardScaler()], [None]):
            model = make_pipeline(*steps, LSPC(kernel="gaussian", random_state=0)).fit(frame, y)
            assert explain(model, frame[:2]).data.shape == (2, 4)

    def test_words_through_an_ordinal_encoder(self):
        X, y = table()
        frame = pd.DataFrame({"level": np.where(X[:, 0] > 0, "high", "low"), "size": X[:, 1].round()})
        model = make_pipeline(OrdinalEncoder(), LSPC(kernel="gaussian", random_state=0)).fit(frame, y)
        found = explain(model, frame)
        assert found.data[0, 0] == frame["level"][0]
        assert_allclose(found.outputs, estimates(model[-1], model[:-1].transform(frame)), atol=1e-8)

    @pytest.mark.parametrize("encoder", ["column transformer", "table vectorizer"])
    def test_original_columns_of_encoded_tables(self, encoder):
        X, y = table()
        words, constant = np.where(X[:, 0] > 0.3, "high", np.where(X[:, 0] < -0.3, "low", "middle")), np.ones(60)
        size = np.where(X[:, 2] > 1, np.nan, X[:, 1])
        frame = pd.DataFrame({"level": words, "constant": constant, "size": size, "weight": X[:, 2]})
        one_hot, filled = (OneHotEncoder(), ["level"]), (SimpleImputer(add_indicator=True), ["size", "constant"])
        if encoder == "column transformer":
            steps = [make_column_transformer(filled, one_hot, remainder="passthrough"), StandardScaler()]
        else:
            steps = [TableVectorizer(drop_if_constant=True), SimpleImputer(add_indicator=True)]
        model = make_pipeline(*steps, LSPC(kernel="gaussian", random_state=0)).fit(frame, y)
        found = explain(model, frame)
        assert found.feature_names == ("level", "constant", "size", "weight")
        assert found.data[0, 0] == words[0]
        assert_allclose(found.outputs, estimates(model[-1], model[:-1].transform(frame)), atol=1e-8)
        assert_allclose(found.values[:, 1], 0.0, atol=1e-12)
        assert (np.abs(found.values[:, [0, 2, 3]]).max(axis=(0, 2)) > 1e-3).all()

    def test_origins_of_columns(self):
        X, _ = table()
        missing = X.copy()
        missing[0, 1], missing[:, 2] = np.nan, np.nan
        assert origins(SimpleImputer(add_indicator=True, keep_empty_features=True).fit(missing)) == [0, 1, 2, 3, 1, 2]
        with pytest.warns(UserWarning, match="Skipping features without any observed values"):
            assert origins(make_pipeline(SimpleImputer(), StandardScaler()).fit(missing)) == [0, 1, 3]
        assert origins(make_pipeline(SimpleImputer(), "passthrough", PCA(2)).fit(X)) is None
        assert origins(make_pipeline("passthrough", StandardScaler()).fit(X)) == [0, 1, 2, 3]
        assert origins(make_column_transformer((PCA(1), [0, 3]), remainder="drop").fit(X)) is None
        assert origins(make_column_transformer(("passthrough", [3]), ("passthrough", [0])).fit(X)) == [3, 0]
        assert origins(FunctionTransformer().fit(X)) == [0, 1, 2, 3]
        assert origins(FunctionTransformer(np.abs).fit(X)) is None

    def test_mixed_columns_are_explained_as_the_classifier_sees_them(self):
        X, y = table()
        model = make_pipeline(PCA(2), LSPC(kernel="gaussian", random_state=0)).fit(X, y)
        found = explain(model, X, background=X[:30])
        assert found.feature_names == ("pca0", "pca1")
        assert_allclose(found.data, model[:-1].transform(X))

    def test_a_step_that_says_nothing_of_its_columns(self):
        class Doubled(BaseEstimator, TransformerMixin):
            def fit(self, X, y=None):
                return self

            def transform(self, X):
                return np.hstack([X, 2 * X])

        X, y = table()
        model = make_pipeline(Doubled(), LSPC(kernel="gaussian", random_state=0)).fit(X, y)
        found = explain(model, X)
        assert found.values.shape == (60, 8, 2) and found.feature_names[-1] == "x7"

    @pytest.mark.parametrize("kernel", ["matern32", "polynomial", lambda X, Z: X @ Z.T])
    def test_other_kernels_are_named(self, kernel):
        X, y = table()
        clf = LSPC(kernel=kernel, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match=f"the {clf.kernel_.name} kernel is not a product or sum over the columns"):
            explain(clf, X)

    def test_a_kernel_of_the_user_does_not_inherit_its_columns(self):
        class Halved(Gaussian):
            name = "halved"

            def of_pairs(self, pairs):
                return 0.5 * super().of_pairs(pairs)

        X, y = table()
        with pytest.raises(ValueError, match=r"the halved kernel .* or give your kernel a method by_column"):
            explain(LSPC(kernel=Halved(1.0), random_state=0).fit(X, y), X)

    def test_items_are_not_columns(self):
        clf = LSPC(kernel="spectrum", random_state=0).fit(["abab", "abba", "cdcd", "cddc"] * 3, [0, 0, 1, 1] * 3)
        with pytest.raises(ValueError, match="the spectrum kernel"):
            explain(clf, ["abab"])

    def test_other_models(self):
        X, y = table()
        with pytest.raises(TypeError, match="got PCA"):
            explain(PCA().fit(X), X)
        reject = RejectOption(LSPC(kernel="gaussian", random_state=0), threshold=0).fit(X, y)
        with pytest.raises(TypeError, match=re.escape("explain(model.estimator_, X)")):
            explain(reject, X)
        assert explain(reject.estimator_, X[:1]).values.shape == (1, 4, 2)

    @pytest.mark.parametrize(
        "parameters, message",
        [
            ({"absent": "none"}, "absent must be one of 'independent', 'joint', got 'none'"),
            ({"absent": "joint"}, "absent='joint' needs background rows"),
            ({"output": "proba"}, "output must be one of 'estimates', 'scores'"),
            ({"background": np.empty((0, 4))}, "background has no rows"),
            ({"background": np.ones((3, 2))}, "X has 2 features"),
            ({"feature_names": ["a"]}, "feature_names has 1 entries, but there are 4 columns to explain"),
        ],
    )
    def test_mistakes(self, parameters, message):
        X, y = table()
        with pytest.raises(ValueError, match=message):
            explain(fitted(LSPC, X, y), X, **parameters)


class TestExplanation:
    @pytest.fixture
    def found(self):
        X, y = table()
        return explain(fitted(LSPC, X, y), X[:6], feature_names=["age", "income", "height", "noise"])

    def test_one_class(self, found):
        positive = found.for_class("yes")
        assert isinstance(positive, Explanation) and positive.class_names == ("yes",)
        assert_allclose(positive.values[:, :, 0], found.values[:, :, 1])
        assert_allclose(positive.outputs[:, 0], found.outputs[:, 1])
        with pytest.raises(ValueError, match=r"name must be one of 'no', 'yes', got 'yess'.*yes"):
            found.for_class("yess")

    def test_reasons(self, found):
        reasons = found.reasons(2)
        best = found.probabilities.argmax(axis=1)
        for i, row in enumerate(reasons):
            sizes = np.abs(found.values[i, :, best[i]])
            assert [abs(reason.contribution) for reason in row] == sorted(sizes, reverse=True)[:2]
            assert (
                row[0].column == found.feature_names[sizes.argmax()] and row[0].value == found.data[i, sizes.argmax()]
            )
        with pytest.raises(ValueError, match="n_reasons"):
            found.reasons(0)

    def test_reasons_as_text(self):
        assert str(Reason("age", 41.5, 0.1234)) == "age = 41.5: +0.12"
        assert str(Reason("job", None, -2.0)) == "job = missing: -2"
        for missing in (np.nan, pd.NA, pd.NaT):
            assert str(Reason("age", missing, 0.5)) == "age = missing: +0.5"
        assert str(Reason("remark", "x" * 50, 0.1)) == f"remark = {'x' * 39}…: +0.1"

    def test_shap(self, found):
        both, one = found.to_shap(), found.for_class("yes").to_shap()
        assert both.values.shape == (6, 4, 2) and one.values.shape == (6, 4)
        assert_allclose(one[0].base_values + one[0].values.sum(), found.outputs[0, 1])
        assert one.feature_names == ["age", "income", "height", "noise"]

    def test_shap_is_missing(self, found, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "shap", None)
        with pytest.raises(ImportError, match=r"kproba\[shap\]"):
            found.to_shap()

    def test_repr(self, found):
        assert repr(found) == "<Explanation of 6 rows, 4 columns and 2 classes>"


class TestDisplay:
    def test_one_row(self):
        X, y = table()
        found = ExplanationDisplay.from_estimator(fitted(LSPC, X, y), X[:1], most=3)
        widths = [bar.get_width() for bar in found.ax_.patches]
        values = found.explanation.values[0, :, 0]
        assert widths == sorted(values, key=abs, reverse=True)[:3]
        first = np.abs(values).argmax()
        assert found.ax_.get_yticklabels()[0].get_text() == f"x{first} = {X[0, first]:.6g}"
        assert found.ax_.get_xlabel() == "contribution to the score of yes"
        assert "probability" in found.ax_.get_title()

    def test_many_rows(self):
        X, y = table()
        frame = pd.DataFrame({"a": X[:, 0], "word": np.where(X[:, 1] > 0, "up", "down")})
        model = make_pipeline(OrdinalEncoder(), LSPC(kernel="gaussian", random_state=0)).fit(frame, y)
        found = ExplanationDisplay.from_estimator(model, frame, name="no", output="scores")
        assert found.explanation.class_names == ("no",)
        for place, tick in enumerate(found.ax_.get_yticklabels()):
            j = ["a", "word"].index(tick.get_text())
            x, height = found.ax_.collections[place].get_offsets().T
            assert_allclose(x, found.explanation.values[:, j, 0])
            assert np.abs(height - place).max() <= 0.5

    def test_swarm(self):
        assert swarm(np.zeros(3)) == pytest.approx([-0.4, 0.0, 0.4])
        assert swarm(np.array([0.0, 1.0, 1.0])) == pytest.approx([0.0, -0.4, 0.4])

    def test_nothing_to_plot(self):
        X, y = table()
        found = explain(fitted(LSPC, X, y), X[:2])
        with pytest.raises(ValueError, match=r"explanation has 2 classes, but only one is plotted"):
            ExplanationDisplay(explanation=found).plot()
        with pytest.raises(ValueError, match="no rows"):
            ExplanationDisplay.from_estimator(fitted(LSPC, X, y), X[:0])
        with pytest.raises(ValueError, match="most"):
            ExplanationDisplay.from_estimator(fitted(LSPC, X, y), X, most=0)
