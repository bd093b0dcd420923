"""What LSPC refuses, with a message that helps, and the odd inputs that it must take."""

import re
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from kproba import (
    LSPC,
    FewRowsWarning,
    Gaussian,
    ImportVectorMachine,
    KernelLogisticRegression,
    Laplacian,
    Polynomial,
    TimesMedian,
)
from kproba.estimators import _base

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
K = rbf_kernel(X, gamma=0.5)
TAGS = np.column_stack([Y, X[:, 1] > 0]).astype(int)


def quick(**options):
    """No search: the fastest fit there is."""
    return LSPC(**{"kernel": "gaussian", "width": 1.0, "ridge": 0.01, **options})


def spoiled(array, value, where=2):
    array = np.array(array, dtype=np.float64)
    array.ravel()[where] = value
    return array


def refuses(error, message, call, *args, **kwargs):
    with pytest.raises(error, match=message):
        call(*args, **kwargs)


class TestRefused:
    """Each message names the argument, says what was found and what to do."""

    @pytest.mark.parametrize(
        "form, bad, found",
        [(form, bad, "infinity") for form in (np.asarray, np.float32, sparse.csr_array) for bad in (np.inf, -np.inf)]
        + [(sparse.csr_array, np.nan, "NaN")],
    )
    def test_not_finite_X(self, bad, found, form):
        refuses(ValueError, f"X contains.*{found}", quick().fit, form(spoiled(X, bad)), Y)
        model = quick().fit(X, Y)
        for method in (model.predict, model.predict_proba, model.decision_function):
            refuses(ValueError, f"X contains.*{found}", method, form(spoiled(X, bad)))

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_not_finite_y(self, bad):
        refuses(ValueError, "y contains NaN or infinity; drop or fill", quick().fit, X, spoiled(Y, bad))

    def test_infinite_tags(self):
        refuses(ValueError, "y contains NaN or infinity; drop or fill", quick().fit, X, spoiled(TAGS, np.inf))

    @pytest.mark.parametrize("bad", [None, np.nan, pd.NA], ids=str)
    def test_missing_labels(self, bad):
        y = np.array(list("ab"))[Y].astype(object)
        y[3] = bad
        refuses(ValueError, "y contains missing labels.*drop or fill", quick().fit, X, y)
        refuses(ValueError, "y contains.*drop or fill", quick().fit, X, pd.Series(y))
        refuses(ValueError, "y contains.*drop or fill", quick().fit, X, pd.Series(y, dtype="string"))

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_not_finite_weights(self, bad):
        weight = spoiled(np.ones(40), bad)
        refuses(ValueError, "sample_weight contains NaN or infinity.*finite", quick().fit, X, Y, weight)

    def test_no_y(self):
        refuses(ValueError, "y", quick().fit, X, None)

    @pytest.mark.parametrize(
        "y, found", [(np.zeros(40), "0"), (["a"] * 40, "a"), (np.zeros(40, bool), "False")], ids=str
    )
    def test_one_class(self, y, found):
        refuses(ValueError, rf"y has only one class \(.*{found}.*at least 2 classes", quick().fit, X, y)

    def test_one_class_left_by_weights(self):
        message = "y has only one class among the rows of positive weight; at least 2"
        refuses(ValueError, message, quick().fit, X, Y, sample_weight=Y)
        refuses(ValueError, message, quick(class_weight={0: 0}).fit, X, Y)

    def test_continuous_y(self):
        refuses(ValueError, "continuous.*classifier.*discrete classes", quick().fit, X, X[:, 0])
        refuses(ValueError, "continuous-multioutput", quick().fit, X, X[:, :2])

    @pytest.mark.parametrize("y", [TAGS + 1, 2 * TAGS, 2 * TAGS - 1], ids=["1/2", "0/2", "-1/1"])
    def test_tags_other_than_0_and_1(self, y):
        """scikit-learn calls any two-valued matrix multi-label."""
        refuses(ValueError, r"y.*(0/1|0 and 1)", quick().fit, X, y)

    def test_several_class_columns(self):
        three = np.column_stack([Y, Y + 1])
        refuses(ValueError, r"y should be a 1d array.*\(40, 2\)", quick().fit, X, three)

    def test_lengths_differ(self):
        refuses(ValueError, "X has 40 rows but y has 39", quick().fit, X, Y[:-1])

    def test_empty_training_set(self):
        refuses(ValueError, "0 sample", quick().fit, X[:0], Y[:0])
        refuses(ValueError, "0 feature", quick().fit, X[:, :0], Y)

    @pytest.mark.parametrize(
        "weight, message",
        [
            (np.where(np.arange(40) == 3, -2.0, 1.0), r"negative values \(smallest: -2\).*at least 0"),
            (np.zeros(40), "zero for every row; at least one weight must be positive"),
            (np.ones(39), r"\(39,\), expected \(40,\)"),
            (np.ones((40, 1)), r"\(40, 1\), expected \(40,\)"),
            (["heavy"] * 40, "number"),
        ],
        ids=["negative", "zero", "short", "2-d", "text"],
    )
    def test_weights(self, weight, message):
        refuses((ValueError, TypeError), f"sample_weight.*{message}", quick().fit, X, Y, weight)

    @pytest.mark.parametrize("name", ["width", "ridge"])
    @pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, [], [1.0, 0.0], [1.0, np.nan], None], ids=str)
    def test_width_and_ridge_not_positive(self, name, bad):
        message = f"{name} must be a positive number, a list of these, or 'auto'.*, got {re.escape(repr(bad))}"
        refuses((ValueError, TypeError), message, quick(**{name: bad}).fit, X, Y)

    @pytest.mark.parametrize("name", ["width", "ridge"])
    @pytest.mark.parametrize(
        "bad", [{}, object(), 1j, [1.0, "a"], [[1.0, 2.0]]], ids=["dict", "object", "complex", "mixed", "nested"]
    )
    def test_width_and_ridge_of_a_wrong_type(self, name, bad):
        message = f"{name} must be a positive number, a list of these, or 'auto'.*, got {re.escape(repr(bad))}"
        refuses((ValueError, TypeError), message, quick(**{name: bad}).fit, X, Y)

    @pytest.mark.parametrize("name, words", [("width", "'auto' or 'median'"), ("ridge", "'auto'")])
    def test_width_and_ridge_unknown_word(self, name, words):
        message = f"{name} must be a positive number, a list of these, or {words}, got 'big'"
        refuses(ValueError, message, quick(**{name: "big"}).fit, X, Y)

    @pytest.mark.parametrize("multiples", [(), (-1.0,), (1.0, np.nan), (0.0,)], ids=str)
    def test_multiples_of_the_median(self, multiples):
        def build_and_fit():
            quick(width=TimesMedian(multiples)).fit(X, Y)

        refuses(ValueError, "TimesMedian|width", build_and_fit)

    @pytest.mark.parametrize("kernel_class", [Gaussian, Laplacian, Polynomial])
    @pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, "wide"], ids=str)
    def test_width_of_a_kernel_object(self, kernel_class, bad):
        def build_and_fit():
            LSPC(kernel=kernel_class(width=bad), ridge=0.1).fit(X, Y)

        refuses((ValueError, TypeError), "width", build_and_fit)

    @pytest.mark.parametrize(
        "name, known",
        [
            ("kernel", ["auto", "gaussian", "laplacian", "matern12", "linear", "polynomial", "precomputed"]),
            ("link", ["auto", "softmax", "clip", "clip-parameters", "none"]),
            ("solver", ["auto", "cholesky", "eigen"]),
            ("penalty", ["auto", "rkhs", "parameters"]),
            ("scaling", ["auto", "robust", "quantile", "standard", None]),
            ("selection", ["loo", "cv"]),
            ("centers", ["auto", "all", "class"]),
            ("class_weight", ["balanced", None]),
            ("loo", ["auto", True]),
        ],
    )
    def test_unknown_names_list_the_known_ones(self, name, known):
        with pytest.raises(ValueError, match=f"{name} must be .*, got 'bogus'") as caught:
            quick(**{name: "bogus"}).fit(X, Y)
        for word in known:
            assert repr(word) in str(caught.value)

    @pytest.mark.parametrize("name", ["kernel", "link", "solver", "penalty", "scaling", "selection"])
    @pytest.mark.parametrize("bad", [7, 3.5, [1]], ids=str)
    def test_names_of_a_wrong_type(self, name, bad):
        refuses((ValueError, TypeError), name, quick(**{name: bad}).fit, X, Y)

    def test_a_kernel_class_instead_of_an_object(self):
        refuses(TypeError, "kernel", quick(kernel=Gaussian).fit, X, Y)

    @pytest.mark.parametrize(
        "centers, message",
        [
            (41, "centers=41 is more than the 40 rows.*'all' or a smaller number"),
            (0, "centers=0.*at least one"),
            (-3, "centers=-3.*at least one"),
            (("class", 0), r"centers must be 'auto'.*, got \('class', 0\)"),
            (("klass", 3), r"centers must be 'auto'.*, got \('klass', 3\)"),
            (("class", 2.5), r"centers must be 'auto'.*, got \('class', 2\.5\)"),
            (2.5, "centers must be 'auto'.*got 2.5"),
            (True, "centers must be 'auto'.*got True"),
            (None, "centers.*'auto'.*None"),
            (np.ones((4, 2)), r"centers has shape \(4, 2\).*\(b, 3\)"),
            (np.ones(3), r"centers has shape \(3,\).*\(b, 3\)"),
            (np.empty((0, 3)), r"centers has shape \(0, 3\).*\(b, 3\)"),
            (np.full((2, 3), np.nan), "centers contains NaN or infinity"),
            (np.full((2, 3), "a"), "centers"),
        ],
        ids=str,
    )
    def test_centers(self, centers, message):
        refuses((ValueError, TypeError), message, quick(centers=centers).fit, X, Y)

    def test_more_centres_than_rows_of_positive_weight(self):
        weight = np.ones(40)
        weight[5:15] = 0
        quick(centers=30).fit(X, Y, weight)
        refuses(ValueError, "centers=31 is more than the 30 rows", quick(centers=31).fit, X, Y, weight)

    @pytest.mark.parametrize(
        "function, message",
        [
            (
                lambda A, B: np.ones((len(A), 2)),
                r"returned shape \(40, 2\) for 40 rows and 40 centres.*\(40, 40\)",
            ),
            (lambda A, B: np.ones(len(A)), r"returned shape \(40,\).*must return shape \(40, 40\)"),
            (lambda A, B: None, "returned"),
            (lambda A, B: spoiled(np.ones((len(A), len(B))), np.nan), "NaN or infinity.*finite"),
            (lambda A, B: spoiled(np.ones((len(A), len(B))), np.inf), "NaN or infinity.*finite"),
            (lambda A, B: np.full((len(A), len(B)), 1j), "complex|real"),
        ],
        ids=["columns", "1-d", "None", "nan", "inf", "complex"],
    )
    @pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
    def test_callable_kernel(self, function, message):
        refuses((ValueError, TypeError), f"kernel.*{message}", quick(kernel=function).fit, X, Y)

    def test_callable_kernel_that_is_wrong_in_predict_only(self):
        model = quick(kernel=lambda A, B: A @ A.T).fit(X, Y)  # right by chance where the rows are the centres
        refuses(ValueError, r"kernel.*shape \(5, 5\) for 5 rows", model.predict, X[:5])

    def test_precomputed_not_square(self):
        refuses(ValueError, r"precomputed.*square.*\(40, 3\)", quick(kernel="precomputed").fit, X, Y)

    def test_precomputed_of_a_wrong_width_in_predict(self):
        model = quick(kernel="precomputed").fit(K, Y)
        refuses(ValueError, "X has 39 features.*40", model.predict, K[:, :-1])
        refuses(ValueError, "X has 39 features.*40", model.predict_proba, K[:, :-1])

    def test_precomputed_sparse(self):
        message = r"precomputed.*dense.*sparse.*toarray"
        refuses(TypeError, message, quick(kernel="precomputed").fit, sparse.csr_array(K), Y)
        model = quick(kernel="precomputed").fit(K, Y)
        refuses(TypeError, message, model.predict, sparse.csr_array(K))

    @pytest.mark.parametrize("centers", [[0, 40], [-1], [0.5], [[0]], []], ids=str)
    def test_precomputed_centres_are_column_numbers(self, centers):
        model = quick(kernel="precomputed", centers=centers)
        refuses(ValueError, "centers.*column indices below 40", model.fit, K, Y)

    @pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
    def test_other_columns_in_predict(self, method):
        model = quick().fit(X, Y)
        refuses(ValueError, "X has 2 features, but LSPC is expecting 3", getattr(model, method), X[:, :2])
        refuses(ValueError, "Expected 2D array, got 1D array", getattr(model, method), X[0])

    @pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
    @pytest.mark.parametrize("link", ["auto", "none"])
    def test_not_fitted(self, method, link):
        if link == "none" and method == "predict_proba":
            pytest.skip("link='none' has no predict_proba")
        refuses(NotFittedError, "not fitted", getattr(LSPC(link=link), method), X)

    @pytest.mark.parametrize(
        "matrix, message",
        [
            (np.eye(3), r"shape \(3, 3\); 2 classes need shape \(2, 2\)"),
            (np.ones(2), r"shape \(2,\); 2 classes need shape \(2, 2\)"),
            ([[1.0, 2.0], [2.0, 1.0]], "positive semi-definite; its smallest eigenvalue is -1"),
            ([[1.0, 0.0], [0.5, 1.0]], "symmetric"),
            ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
            (np.zeros((2, 2)), "zero"),
            ("near", "class_similarity"),
        ],
        ids=["3x3", "1-d", "indefinite", "asymmetric", "nan", "zero", "text"],
    )
    def test_class_similarity(self, matrix, message):
        model = quick(class_similarity=matrix)
        refuses((ValueError, TypeError), f"class_similarity.*{message}|{message}", model.fit, X, Y)

    @pytest.mark.parametrize("centers", ["class", ("class", 3)], ids=str)
    def test_class_similarity_needs_shared_centres(self, centers):
        model = quick(class_similarity=np.eye(2), centers=centers)
        refuses(ValueError, "class_similarity needs centres shared by all classes.*centers", model.fit, X, Y)

    def test_class_similarity_of_tags(self):
        refuses(ValueError, "class_similarity.*multi-label", quick(class_similarity=np.eye(2)).fit, X, TAGS)

    def test_class_similarity_with_rounded_parameters(self):
        model = quick(class_similarity=np.eye(2), link="clip-parameters")
        refuses(ValueError, "clip-parameters.*class_similarity; use link='clip'", model.fit, X, Y)

    @pytest.mark.parametrize(
        "weights, message",
        [
            ({0: 1.0, 5: 2.0}, "has the class 5, which does not occur in y"),
            ({"0": 1.0}, "has the class '0', which does not occur in y"),
            ({0: -1.0}, r"class_weight\[0\] = -1\.0.*at least 0"),
            ({0: np.nan}, r"class_weight\[0\] = nan.*finite"),
            ({0: "heavy"}, r"class_weight\[0\] = 'heavy'"),
            ("even", "class_weight must be None, 'balanced' or a dict, got 'even'"),
            (3.0, "'balanced'.*3.0"),
            ([1.0, 2.0], "'balanced' or a dict"),
        ],
        ids=str,
    )
    def test_class_weight(self, weights, message):
        model = quick(class_weight=weights)
        refuses((ValueError, TypeError), f"class_weight.*{message}|{message}", model.fit, X, Y)

    @pytest.mark.parametrize("weights", ["balanced", {0: 2.0}], ids=str)
    def test_class_weight_of_tags(self, weights):
        model = quick(class_weight=weights)
        refuses(ValueError, "class_weight.*multi-label.*sample_weight", model.fit, X, TAGS)

    @pytest.mark.parametrize("folds", [1, 0, -2, 2.5, "2", None, True], ids=str)
    def test_folds(self, folds):
        message = re.escape(f"folds must be an int in the range [2, inf), got {folds!r}")
        refuses((ValueError, TypeError), message, LSPC(selection="cv", folds=folds).fit, X, Y)

    @pytest.mark.parametrize("n_jobs", [0, "many", 1.5], ids=str)
    def test_n_jobs(self, n_jobs):
        refuses((ValueError, TypeError), "n_jobs", quick(n_jobs=n_jobs).fit, X, Y)

    def test_values_whose_squares_overflow(self):
        message = r"X has values above 1e\+150.*scaling='robust'"
        refuses(ValueError, message, quick(scaling=None).fit, X * 1e200, Y)
        refuses(ValueError, message, quick(scaling=None).fit(X, Y).predict, X * 1e200)

    def test_a_refused_fit_leaves_no_half_fitted_model(self):
        model = quick(centers=41)
        with pytest.raises(ValueError, match="centers"):
            model.fit(X, Y)
        refuses(NotFittedError, "not fitted", model.predict, X)


def is_sound(proba, n, c):
    assert proba.shape == (n, c)
    assert np.isfinite(proba).all()
    assert (proba >= 0).all() and (proba <= 1).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12 if proba.dtype == np.float64 else 1e-6)


class TestAccepted:
    @pytest.mark.parametrize("scale", [1e150, 1e-150, 1e300])
    @pytest.mark.parametrize("scaling", ["auto", "robust", "quantile", "standard"])
    def test_columns_of_extreme_scale(self, scale, scaling):
        """Scaling makes the units of a column irrelevant."""
        factors = np.array([scale, 1.0, 1.0 / scale])
        options = {"kernel": "gaussian", "ridge": 0.01, "scaling": scaling, "random_state": 0}
        plain = LSPC(**options).fit(X, Y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = LSPC(**options).fit(X * factors, Y)
            proba = model.predict_proba(X * factors)
        is_sound(proba, 40, 2)
        np.testing.assert_allclose(proba, plain.predict_proba(X), atol=1e-6)
        assert np.isfinite(model.centers_).all()

    @pytest.mark.parametrize("scale", [1e140, 1e-150])
    def test_extreme_scale_without_scaling(self, scale):
        model = LSPC(kernel="gaussian", ridge=0.01, scaling=None, random_state=0).fit(X * scale, Y)
        is_sound(model.predict_proba(X * scale), 40, 2)
        assert model.score(X * scale, Y) > 0.9

    @pytest.mark.parametrize("centers", ["auto", "class", 3], ids=str)
    @pytest.mark.parametrize("selection", ["loo", "cv"])
    def test_a_class_with_a_single_row(self, centers, selection):
        y = Y.copy()
        y[7] = 9
        model = LSPC(centers=centers, selection=selection, folds=2, random_state=0)
        with pytest.warns(FewRowsWarning, match="only one row of the class 9"):
            model.fit(X, y)
        np.testing.assert_array_equal(model.classes_, [0, 1, 9])
        is_sound(model.predict_proba(X), 40, 3)

    @pytest.mark.parametrize("link, n", [("clip", 2000), ("auto", 1001)])
    def test_a_thousand_classes(self, link, n):
        rng = np.random.default_rng(1)
        y = np.arange(n) % 1000
        inputs = np.column_stack([np.cos(y), np.sin(y), y / 500]) + 0.001 * rng.normal(size=(n, 3))
        options = {"kernel": "gaussian", "width": 0.1, "ridge": 1e-4, "link": link, "random_state": 0}
        model = LSPC(centers=200, **options)
        with pytest.warns(FewRowsWarning, match="999 classes") if n == 1001 else nullcontext():
            model.fit(inputs, y)
        proba = model.predict_proba(inputs[:50])
        is_sound(proba, 50, 1000)
        np.testing.assert_array_equal(model.predict(inputs[:50]), model.classes_[proba.argmax(axis=1)])

    @pytest.mark.parametrize("link", ["auto", "clip", "clip-parameters", "none"])
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
    def test_an_empty_test_set(self, link, form):
        three = np.where(X[:, 2] > 1, 2, Y)
        for y, c, decision in [(Y, 2, (0,)), (three, 3, (0, 3)), (TAGS, 2, (0, 2))]:
            model = quick(link=link, scaling=None).fit(form(X), y)
            assert model.decision_function(form(X)[:0]).shape == decision
            assert model.predict(form(X)[:0]).shape == ((0, 2) if y is TAGS else (0,))
            if link != "none":
                assert model.predict_proba(form(X)[:0]).shape == (0, c)

    def test_an_empty_test_set_of_a_precomputed_kernel(self):
        assert quick(kernel="precomputed").fit(K, Y).predict_proba(K[:0]).shape == (0, 2)

    @pytest.mark.parametrize("scaling", ["auto", "standard", None], ids=str)
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_read_only_and_fortran_ordered(self, scaling, order):
        inputs, y, weight = np.array(X, order=order), Y.copy(), np.ones(40)
        copies = [inputs.copy(), y.copy(), weight.copy()]
        for array in (inputs, y, weight):
            array.flags.writeable = False
        options = {"scaling": scaling, "random_state": 0}
        model = LSPC(**options).fit(inputs, y, weight)
        expected = LSPC(**options).fit(X, Y).predict_proba(X)
        np.testing.assert_allclose(model.predict_proba(inputs), expected, atol=1e-10)
        for array, copy in zip((inputs, y, weight), copies):
            np.testing.assert_array_equal(array, copy)

    def test_inputs_are_not_changed(self):
        inputs, gram = X.copy(), K.copy()
        LSPC(scaling=None).fit(inputs, Y).predict(inputs)
        quick(kernel="precomputed").fit(gram, Y).predict(gram)
        np.testing.assert_array_equal(inputs, X)
        np.testing.assert_array_equal(gram, K)

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
    def test_frames(self, frame):
        table = frame({name: X[:, j] for j, name in enumerate(["a", "b", "c"])})
        model = quick().fit(table, Y)
        np.testing.assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
        np.testing.assert_allclose(model.predict_proba(table), quick().fit(X, Y).predict_proba(X), atol=1e-10)
        refuses(ValueError, "feature names", model.predict, table[["b", "a", "c"]])
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            model.predict(X)

    @pytest.mark.parametrize("series", [pd.Series, pl.Series], ids=["pandas", "polars"])
    def test_series_of_labels(self, series):
        words = np.array(["no", "yes"])[Y]
        model = quick().fit(X, series(list(words)))
        np.testing.assert_array_equal(model.classes_, ["no", "yes"])
        np.testing.assert_array_equal(model.predict(X) == "yes", quick().fit(X, Y).predict(X) == 1)

    def test_weights_as_a_series_with_an_index_of_its_own(self):
        weight = pd.Series(np.linspace(0.1, 2.0, 40), index=range(100, 140))
        expected = quick().fit(X, Y, weight.to_numpy()).predict_proba(X)
        np.testing.assert_array_equal(quick().fit(X, Y, weight).predict_proba(X), expected)

    @pytest.mark.parametrize(
        "labels",
        [
            np.array(["no", "yes"]),
            np.array(["no", "yes"], dtype=object),
            np.array([False, True]),
            np.array([-7, 3]),
            np.array([1.0, 2.0]),
            np.array([3, 200], dtype=np.uint8),
        ],
        ids=lambda labels: str(labels.dtype),
    )
    def test_labels_of_any_type(self, labels):
        model = quick().fit(X, labels[Y])
        np.testing.assert_array_equal(model.classes_, labels)
        predicted = model.predict(X)
        assert predicted.dtype == labels.dtype
        np.testing.assert_array_equal(predicted, labels[quick().fit(X, Y).predict(X)])

    def test_lists(self):
        model = quick().fit(X.tolist(), Y.tolist(), [1] * 40)
        np.testing.assert_array_equal(model.predict(X.tolist()), quick().fit(X, Y).predict(X))

    @pytest.mark.parametrize("link", ["auto", "clip"])
    @pytest.mark.parametrize("scaling", ["auto", "standard", None], ids=str)
    def test_float32_gives_float64(self, link, scaling):
        options = {"link": link, "scaling": scaling, "random_state": 0, "width": 1.0, "ridge": 0.01}
        model = LSPC(**options).fit(X.astype(np.float32), Y)
        proba = model.predict_proba(X.astype(np.float32))
        assert proba.dtype == np.float64
        is_sound(proba, 40, 2)
        np.testing.assert_allclose(proba, LSPC(**options).fit(X, Y).predict_proba(X), atol=1e-3)

    @pytest.mark.parametrize("link", ["auto", "clip", "none"])
    def test_float32_decision(self, link):
        model = quick(link=link).fit(X.astype(np.float32), Y)
        assert model.decision_function(X.astype(np.float32)).dtype == np.float64

    def test_whole_numbers(self):
        inputs = (10 * X).astype(int)
        expected = quick().fit(inputs.astype(float), Y).predict_proba(inputs.astype(float))
        np.testing.assert_array_equal(quick().fit(inputs, Y).predict_proba(inputs), expected)

    @pytest.mark.parametrize("scaling", ["auto", "robust", "quantile", "standard", None], ids=str)
    @pytest.mark.parametrize("constant", [0.0, 5.0, 1e10, 0.1])
    def test_constant_columns_change_nothing(self, scaling, constant):
        options = {"kernel": "gaussian", "scaling": scaling, "width": 1.0, "ridge": 0.01, "random_state": 0}
        wider = np.column_stack([X, np.full(40, constant)])
        proba = LSPC(**options).fit(wider, Y).predict_proba(wider)
        np.testing.assert_allclose(proba, LSPC(**options).fit(X, Y).predict_proba(X), atol=1e-8)

    @pytest.mark.parametrize("centers", ["auto", "class", 2], ids=str)
    @pytest.mark.parametrize("link", ["auto", "clip", "clip-parameters"])
    @pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
    def test_all_rows_of_a_class_identical(self, centers, link):
        inputs, y = np.repeat([[0.0, 0.0], [1.0, 2.0]], 10, axis=0), np.repeat([0, 1], 10)
        model = LSPC(centers=centers, link=link, random_state=0).fit(inputs, y)
        is_sound(model.predict_proba(inputs), 20, 2)
        np.testing.assert_array_equal(model.predict(inputs), y)

    @pytest.mark.parametrize("link", ["auto", "clip", "clip-parameters"])
    @pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
    def test_all_rows_identical(self, link):
        """Nothing but the prior can be learnt."""
        y = np.repeat([0, 1], [10, 30])
        model = LSPC(link=link, random_state=0).fit(np.ones((40, 2)), y)
        proba = model.predict_proba(np.ones((1, 2)))
        is_sound(proba, 1, 2)
        np.testing.assert_allclose(proba, [[0.25, 0.75]], atol=0.05)

    @pytest.mark.parametrize("centers", ["auto", "class", 10], ids=str)
    @pytest.mark.parametrize("seed", range(3))
    def test_duplicated_rows_equal_weights(self, centers, seed):
        count = np.random.default_rng(seed).integers(1, 4, size=40)
        options = {"centers": centers, "random_state": 0}
        weighted = LSPC(**options).fit(X, Y, count)
        repeated = LSPC(**options).fit(np.repeat(X, count, axis=0), np.repeat(Y, count))
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-10)
        np.testing.assert_allclose(np.repeat(weighted.loo_proba_, count, axis=0), repeated.loo_proba_, atol=1e-10)

    def test_duplicated_rows_with_other_labels(self):
        model = quick().fit(np.vstack([X, X]), np.concatenate([Y, 1 - Y]))
        np.testing.assert_allclose(model.predict_proba(X), 0.5, atol=1e-6)

    @pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "linear", "polynomial"])
    def test_sparse_agrees_with_dense(self, container, kernel):
        inputs = np.where(np.abs(X) > 0.5, X, 0.0)
        options = {"kernel": kernel, "scaling": None, "random_state": 0}
        dense = LSPC(**options).fit(inputs, Y)
        model = LSPC(**options).fit(container(inputs), Y)
        assert model.width_ == dense.width_ or model.width_ == pytest.approx(dense.width_)
        assert model.ridge_ == pytest.approx(dense.ridge_)
        expected = dense.predict_proba(inputs)
        np.testing.assert_allclose(model.predict_proba(container(inputs)), expected, atol=1e-7)
        np.testing.assert_allclose(model.predict_proba(inputs), expected, atol=1e-7)
        np.testing.assert_allclose(dense.predict_proba(container(inputs)), expected, atol=1e-7)

    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
    def test_sparse_with_64_bit_indices(self, kernel):
        wide = sparse.csr_array(X)
        wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
        expected = quick(kernel=kernel, scaling=None).fit(X, Y).predict_proba(X)
        model = quick(kernel=kernel, scaling=None).fit(wide, Y)
        np.testing.assert_allclose(model.predict_proba(wide), expected, atol=1e-9)

    @pytest.mark.parametrize("scaling", ["auto", "robust", "quantile", "standard"])
    def test_sparse_rows_for_a_model_of_dense_rows(self, scaling):
        """The same rows have the same probabilities, or the mixture is refused."""
        shifted = X + 3.0
        model = quick(scaling=scaling).fit(shifted, Y)
        try:
            proba = model.predict_proba(sparse.csr_array(shifted))
        except (TypeError, ValueError) as refusal:
            assert re.search("X.*sparse", str(refusal))
        else:
            np.testing.assert_allclose(proba, model.predict_proba(shifted), atol=1e-9)

    @pytest.mark.parametrize("scaling", ["auto", "robust", "quantile", "standard"])
    def test_dense_rows_for_a_model_of_sparse_rows(self, scaling):
        model = quick(scaling=scaling).fit(sparse.csr_array(X), Y)
        expected = model.predict_proba(sparse.csr_array(X))
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)

    @pytest.mark.parametrize("container", [sparse.csc_array, sparse.coo_matrix])
    def test_other_sparse_formats(self, container):
        expected = quick(scaling=None).fit(X, Y).predict_proba(X)
        model = quick(scaling=None).fit(container(X), Y)
        np.testing.assert_allclose(model.predict_proba(container(X)), expected, atol=1e-9)


@pytest.mark.parametrize("make", [LSPC, KernelLogisticRegression, ImportVectorMachine])
@pytest.mark.parametrize("centers", ["all", 20], ids=str)
def test_indefinite_kernel_matrix(make, centers):
    """The smallest eigenvalue is named, and what to do; LSPC's other penalty needs no definite matrix."""
    K = np.random.default_rng(0).normal(size=(40, 40))
    K = K + K.T
    options = {"kernel": "precomputed", "ridge": 1e-2}
    options |= {} if make is ImportVectorMachine else {"centers": centers}
    with pytest.raises(ValueError, match=r"smallest eigenvalue is -.*Use a positive definite kernel"):
        make(**options).fit(K, Y)
    with pytest.raises(ValueError, match="smallest eigenvalue is -"):
        make(**{**options, "kernel": lambda X, Z: -(X @ Z.T)}).fit(X, Y)
    if make is LSPC:
        is_sound(LSPC(**options, penalty="parameters").fit(K, Y).predict_proba(K), 40, 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_large_arrays_are_checked_in_parts(bad, monkeypatch):
    """With the same answers as small ones: infinities are refused, and gaps are missing values."""
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    given = {"kernel": "gaussian", "width": 1.0, "ridge": 1e-2}
    expected = LSPC(**given).fit(X, y).predict_proba(X)
    monkeypatch.setattr(_base, "MANY_BYTES", 64)
    np.testing.assert_array_equal(LSPC(**given).fit(X, y).predict_proba(X), expected)
    X[17, 1] = bad
    if np.isnan(bad):
        assert LSPC(**given).fit(X, y).columns_ is not None
    else:
        with pytest.raises(ValueError, match="infinity"):
            LSPC(**given).fit(X, y)
