"""Graphs in onnxruntime beside the models they were made of."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC

from kproba import (
    LSPC,
    BagOfFeatures,
    FewRowsWarning,
    Gaussian,
    ImportVectorMachine,
    Intersection,
    KernelLogisticRegression,
    Matern,
    Polynomial,
    Spectrum,
    SurfaceKernelClassifier,
    to_onnx,
)
from kproba.search import staged as search

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
DTYPES = tuple(TOLERANCE)
KERNELS = {
    "gaussian": Gaussian(width=1.5),
    "laplacian": "laplacian",
    "matern12": Matern(width=1.5, nu=0.5),
    "matern32": Matern(width=1.5, nu=1.5),
    "matern52": Matern(width=1.5, nu=2.5),
    "linear": "linear",
    "polynomial": Polynomial(width=1.5),
    "chi2": "chi2",
    "intersection": Intersection(),
}


@pytest.fixture(scope="module")
def iris():
    """Half of the rows to fit, half of them to look at."""
    X, y = load_iris(return_X_y=True)
    return X[::2], y[::2], X[1::2]


def session_of(model):
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def fed(X, dtype):
    """Feeds of a session for an array or a frame, and the same numbers in float64."""
    if not hasattr(X, "columns"):
        narrow = np.asarray(X).astype(dtype)
        return {"X": narrow}, narrow.astype(np.float64)
    feeds, rows = {}, X.copy()
    for name in X.columns:
        column = X[[name]].to_numpy()
        kind = X[name].dtype.kind
        if kind == "f":
            feeds[name] = column.astype(dtype)
            rows[name] = feeds[name][:, 0].astype(np.float64)
        else:
            feeds[name] = column.astype(np.int64 if kind == "i" else bool if kind == "b" else object)
    return feeds, rows


def assert_agrees(clf, X, dtype="float64", example=None, **options):
    """The graph says of X what the model says of the same numbers in float64."""
    session = session_of(to_onnx(clf, example, dtype=dtype, **options))
    feeds, rows = fed(X, dtype)
    label, proba = session.run(["label", "probabilities"], feeds)
    expected = clf.predict_proba(rows)
    assert proba.dtype == dtype and proba.shape == expected.shape
    np.testing.assert_allclose(proba, expected, rtol=0, atol=TOLERANCE[dtype])
    np.testing.assert_array_equal(label, clf.predict(rows))
    return label


def scaling_for(kernel):
    return None if kernel in ("chi2", "intersection") else "auto"


@pytest.mark.parametrize("dtype", DTYPES)
class TestParts:
    @pytest.mark.parametrize("link", ["auto", "clip", "clip-parameters"])
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_lspc(self, iris, kernel, link, dtype):
        X, y, X_new = iris
        clf = LSPC(kernel=KERNELS[kernel], width=1.5, ridge=1e-2, link=link, scaling=scaling_for(kernel))
        assert_agrees(clf.fit(X, y), X_new, dtype)

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_klr(self, iris, kernel, dtype):
        X, y, X_new = iris
        clf = KernelLogisticRegression(kernel=KERNELS[kernel], width=1.5, ridge=1e-2, scaling=scaling_for(kernel))
        assert_agrees(clf.fit(X, y), X_new, dtype)

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_ivm(self, iris, kernel, dtype):
        X, y, X_new = iris
        clf = ImportVectorMachine(KERNELS[kernel], 1.5, ridge=1e-2, scaling=scaling_for(kernel), random_state=0)
        assert_agrees(clf.fit(X, y), X_new, dtype)

    @pytest.mark.parametrize("link", ["auto", "clip"])
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_surface(self, iris, kernel, link, dtype):
        X, y, X_new = iris
        clf = SurfaceKernelClassifier(
            kernel=KERNELS[kernel], width=1.5, link=link, scaling=scaling_for(kernel), n_centers=12, random_state=0
        )
        assert_agrees(clf.fit(X, y), X_new, dtype)

    @pytest.mark.parametrize("scaling", ["auto", "robust", "quantile", "standard", None])
    @pytest.mark.parametrize("kernel", ["gaussian", "linear", "polynomial"])
    @pytest.mark.parametrize("columns", [1, 4])
    def test_scaling(self, iris, scaling, kernel, columns, dtype):
        # one column: its scaling is a single factor, which onnxruntime would fuse with a product in float32
        X, y, X_new = iris
        clf = LSPC(kernel=kernel, width=2.0, ridge=1e-2, scaling=scaling).fit(X[:, :columns], y)
        assert_agrees(clf, X_new[:, :columns], dtype)

    @pytest.mark.parametrize(
        "Estimator", [LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier]
    )
    def test_defaults(self, iris, Estimator, dtype):
        X, y, X_new = iris
        clf = Estimator(random_state=0).fit(X, y)
        assert_agrees(clf, X, dtype)
        assert_agrees(clf, X_new, dtype)
        assert_agrees(clf, 100 * X_new, dtype)  # far from all data

    def test_relevance_and_squash(self, dtype, monkeypatch):
        monkeypatch.setattr(search, "RELEVANCE_GAIN", 0.0)
        X, y = load_breast_cancer(return_X_y=True)
        clf = LSPC(kernel="laplacian", random_state=0).fit(X[::2], y[::2])
        assert clf.scaling_.squashed.any() and len(np.unique(clf.scaling_.relevance)) > 1
        assert_agrees(clf, X[1::2], dtype)

    def test_outliers_and_columns_of_two_values(self, iris, dtype):
        X, y, _ = iris
        X = np.column_stack([X, y == 1, X[:, 0] > 5.5])
        X[3, 1] = 1e6
        assert_agrees(LSPC(random_state=0, ridge=1e-2).fit(X, y), X, dtype)

    @pytest.mark.parametrize("centers", ["class", ("class", 5), 20, "all"])
    def test_centers(self, iris, centers, dtype):
        X, y, X_new = iris
        assert_agrees(LSPC(centers=centers, ridge=1e-2, random_state=0).fit(X, y), X_new, dtype)

    def test_far_from_the_origin(self, iris, dtype):
        X, y, X_new = iris
        clf = LSPC(kernel="gaussian", scaling=None, width=1.0, ridge=1e-2).fit(X + 1e4, y)
        assert_agrees(clf, X_new + 1e4, dtype)

    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "linear"])
    def test_fitted_in_float32(self, iris, kernel, dtype):
        X, y, X_new = iris
        assert_agrees(LSPC(kernel=kernel, random_state=0).fit(X.astype(np.float32), y), X_new, dtype)

    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "linear", "chi2", "intersection"])
    def test_fitted_on_sparse_rows(self, iris, kernel, dtype):
        X, y, X_new = iris
        scaling = scaling_for(kernel)
        clf = LSPC(kernel=kernel, width=1.5, ridge=1e-2, scaling=scaling).fit(sparse.csr_array(X), y)
        assert sparse.issparse(clf.basis_.centers)
        assert_agrees(clf, X_new, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "clf",
    [
        LSPC(width=1.5, ridge=1e-2),
        LSPC(width=1.5, ridge=1e-2, link="clip"),
        KernelLogisticRegression(width=1.5, ridge=1e-2),
        ImportVectorMachine(width=1.5, ridge=1e-2, random_state=0),
        SurfaceKernelClassifier(n_centers=10, random_state=0),
    ],
    ids=lambda clf: f"{type(clf).__name__}-{clf.link}",
)
def test_tags(iris, clf, dtype):
    X, y, X_new = iris
    tags = np.column_stack([y == 0, y != 1, X[:, 1] > 3.0, X[:, 0] > 6.0]).astype(int)
    label = assert_agrees(clone(clf).fit(X, tags), X_new, dtype)
    assert label.dtype == np.int64 and label.shape == (len(X_new), 4)
    some = np.where(np.arange(len(X))[:, None] % 7 == [0, 1, 1, 2], np.nan, tags)  # three groups of missing tags
    assert_agrees(clone(clf).fit(X, some), X_new, dtype)


class TestClasses:
    @pytest.mark.parametrize(
        ("names", "dtype"),
        [
            ([3, -1, 70], np.int64),
            (np.array([3, 1, 70], dtype=np.uint8), np.int64),
            ([1.0, 2.0, -2.0], np.float64),
            (["setosa", "größer", ""], object),
            (np.array(["a", "b", "c"], dtype=object), object),
        ],
    )
    def test_many(self, iris, names, dtype):
        X, y, X_new = iris
        assert assert_agrees(LSPC(random_state=0).fit(X, np.asarray(names)[y]), X_new).dtype == dtype

    def test_two(self, iris):
        X, y, X_new = iris
        for labels in (y > 0, np.where(y > 0, "yes", "no"), (y > 0).astype(int)):
            label = assert_agrees(LSPC(random_state=0).fit(X, labels), X_new)
            assert label.dtype == (object if labels.dtype.kind == "U" else labels.dtype)

    def test_ties_go_to_the_first(self):
        X = np.array([[0.0], [1.0], [2.0]])
        clf = LSPC(kernel="gaussian", width=1.0, ridge=1e-3, link="clip", scaling=None)
        with pytest.warns(FewRowsWarning, match="3 classes"):
            clf.fit(X, ["c", "a", "b"])
        (label,) = assert_agrees(clf, np.array([[1e9]]))  # all scores are zero there
        assert label == "a"


class TestBatches:
    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
    @pytest.mark.parametrize("n", [0, 1, 1000])
    def test_size(self, iris, kernel, n):
        X, y, X_new = iris
        clf = LSPC(kernel=kernel, random_state=0).fit(X, y)
        assert_agrees(clf, np.resize(X_new, (max(n, 1), 4))) if n else None
        label, proba = session_of(to_onnx(clf)).run(None, {"X": np.resize(X_new, (n, 4)).astype(np.float32)})
        assert label.shape == (n,) and proba.shape == (n, 3)

    def test_memory_of_distances_does_not_grow_with_columns(self):
        # all differences of 1,000 rows and 500 centres at once would take 1,000·500·256·8 bytes = 1 GB
        code = (
            "import resource, numpy as np, onnxruntime; from kproba import LSPC, to_onnx\n"
            "rng = np.random.default_rng(0); X = rng.random((500, 256)); y = rng.integers(0, 2, 500)\n"
            "clf = LSPC(kernel='laplacian', width=20.0, ridge=1e-2, link='clip').fit(X, y)\n"
            "graph = to_onnx(clf).SerializeToString()\n"
            "session = onnxruntime.InferenceSession(graph, providers=['CPUExecutionProvider'])\n"
            "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
            "before = peak(); session.run(None, {'X': rng.random((1000, 256), dtype=np.float32)})\n"
            "print(peak() - before)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert float(done.stdout) < 100  # megabytes


def people(n=160):
    """Rows with numbers, missing ones, whole ones, words and booleans."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "income": rng.gamma(2, 20_000, n) + 1e6,
            "city": rng.choice(["Rome", "Oslo", "Bonn"], n),
            "rooms": rng.integers(1, 6, n),
            "owner": rng.random(n) < 0.5,
        }
    )
    score = X.age + 10 * (X.city == "Rome") + X.income / 1e5 + rng.normal(0, 5, n)
    X.loc[::7, "age"] = np.nan
    return X, np.where(score > score.median(), "yes", "no")


NUMBERS = make_pipeline(SimpleImputer(), StandardScaler())


@pytest.mark.parametrize("dtype", DTYPES)
class TestPipelines:
    @pytest.mark.parametrize(
        "columns",
        [
            [(NUMBERS, ["age", "income"]), (OneHotEncoder(handle_unknown="ignore"), ["city"])],
            [(OneHotEncoder(sparse_output=False), ["city", "rooms"]), (NUMBERS, ["rooms", "age"])],
            [(OrdinalEncoder(), ["city"]), (NUMBERS, ["age"]), ("passthrough", ["owner", "income"])],
        ],
    )
    def test_columns_by_name(self, columns, dtype):
        X, y = people()
        model = make_pipeline(make_column_transformer(*columns), LSPC(ridge=1e-2, random_state=0)).fit(X, y)
        assert_agrees(model, X, dtype, example=X[:5])

    def test_unknown_words(self, dtype):
        X, y = people()
        words = OneHotEncoder(handle_unknown="ignore")
        columns = make_column_transformer((words, ["city"]), (NUMBERS, ["age"]))
        model = make_pipeline(columns, LSPC(ridge=1e-2, random_state=0)).fit(X, y)
        assert_agrees(model, X.assign(city="Paris"), dtype, example=X)

    @pytest.mark.parametrize(
        "Estimator", [LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier]
    )
    def test_arrays(self, iris, Estimator, dtype):
        X, y, X_new = iris
        assert_agrees(make_pipeline(StandardScaler(), Estimator(width=1.5, random_state=0)).fit(X, y), X_new, dtype)

    @pytest.mark.parametrize(
        "steps",
        [
            [StandardScaler(), PCA(2)],
            [SelectKBest(k=2), "passthrough"],
            ["passthrough", None],
            [],
            [make_pipeline(StandardScaler(), PCA(3))],
        ],
        ids=str,
    )
    def test_steps(self, iris, steps, dtype):
        X, y, X_new = iris
        assert_agrees(make_pipeline(*steps, LSPC(ridge=1e-2, random_state=0)).fit(X, y), X_new, dtype)

    def test_missing_numbers(self, iris, dtype):
        X, y, X_new = (part.copy() for part in iris)
        X[::5, 1], X_new[::3, 2] = np.nan, np.nan
        model = make_pipeline(SimpleImputer(strategy="median"), LSPC(ridge=1e-2, random_state=0)).fit(X, y)
        assert_agrees(model, X_new, dtype)
        X, X_new = np.nan_to_num(X, nan=-1.0), np.nan_to_num(X_new, nan=-1.0)
        model = make_pipeline(SimpleImputer(missing_values=-1.0), LSPC(ridge=1e-2, random_state=0)).fit(X, y)
        assert_agrees(model, X_new, dtype)

    def test_gaps_that_are_marked(self, iris, dtype):
        """Flags of the columns that had gaps; a column without any value is left out."""
        X, y, X_new = (np.column_stack([part, np.full(len(part), np.nan)]) for part in iris)
        y = iris[1]
        X[::5, 1], X[::7, 2], X_new[::3, 2], X_new[::4, 0] = np.nan, np.nan, np.nan, np.nan
        imputer = SimpleImputer(strategy="median", add_indicator=True)
        assert_agrees(make_pipeline(imputer, LSPC(ridge=1e-2, random_state=0)).fit(X, y), X_new, dtype)
        model = make_pipeline(imputer, StandardScaler(), LSPC(ridge=1e-2, random_state=0)).fit(X, y)
        assert_agrees(model, X_new, dtype)

    def test_missing_words(self, dtype):
        X, y = people()
        X.loc[::5, "city"] = ""
        words = make_pipeline(SimpleImputer(missing_values="", strategy="most_frequent"), OneHotEncoder())
        model = make_pipeline(
            make_column_transformer((words, ["city"]), (NUMBERS, ["age", "income"])), LSPC(ridge=1e-2)
        )
        assert_agrees(model.fit(X, y), X, dtype, example=X)

    def test_frame_of_numbers(self, dtype):
        X, y = people()
        X = X[["income", "rooms", "owner"]]
        for model in (LSPC(ridge=1e-2), make_pipeline(StandardScaler(), LSPC(ridge=1e-2))):
            model.fit(X, y)
            assert_agrees(model, X, dtype, example=X)  # one input a column
            session = session_of(to_onnx(model, X.to_numpy(float), dtype=dtype))
            feeds, rows = fed(X.to_numpy(float), dtype)
            rows = pd.DataFrame(rows, columns=X.columns)
            np.testing.assert_allclose(session.run(None, feeds)[1], model.predict_proba(rows), atol=TOLERANCE[dtype])

    def test_union_of_a_frame(self, dtype):
        X, y = people()
        X = X[["income", "rooms"]]
        model = make_pipeline(make_union(StandardScaler(), PCA(1)), LSPC(ridge=1e-2)).fit(X, y)
        assert_agrees(model, X, dtype, example=X)

    def test_odd_names(self, dtype):
        X, y = load_iris(return_X_y=True, as_frame=True)  # their names have spaces and brackets
        X = X.rename(columns={"petal length (cm)": "Länge/cm"}).assign(sepal_length__cm_=1.0, unused=2.0)
        columns = make_column_transformer((StandardScaler(), ["Länge/cm", "sepal length (cm)", "sepal_length__cm_"]))
        assert_agrees(make_pipeline(columns, LSPC(ridge=1e-2)).fit(X, y), X, dtype, example=X)

    def test_words_alone(self, dtype):
        X, y = people()
        X = X.assign(street=[f"street {i % 40}" for i in range(len(X))])[["city", "street"]]
        model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LSPC(ridge=1e-2, random_state=0)).fit(X, y)
        assert sparse.issparse(model[-1].basis_.centers)
        assert_agrees(model, X, dtype, example=X)

    def test_best_of_a_search(self, iris, dtype):
        X, y, X_new = iris
        model = make_pipeline(StandardScaler(), LSPC(kernel="gaussian", width=2.0))
        assert_agrees(GridSearchCV(model, {"lspc__ridge": [1e-1, 1e-2]}, cv=2).fit(X, y), X_new, dtype)


def test_float32_steps_where_float64_cannot_be_had(iris):
    X, y, X_new = iris
    model = make_pipeline(StandardScaler(), PolynomialFeatures(2), LSPC(ridge=1e-2, random_state=0)).fit(X, y)
    assert_agrees(model, X_new, "float32")
    with pytest.raises(ValueError, match=r"StandardScaler, PolynomialFeatures\) to float64"):
        to_onnx(model, dtype="float64")


@pytest.mark.skipif(
    tuple(map(int, skl2onnx.__version__.split(".")[:2])) > (1, 20),
    reason="sklearn-onnx 1246 is mended on its main branch",
)
def test_what_the_guide_says_of_a_calibrated_svc():
    """sklearn-onnx 1246: a calibrated pipeline is converted without an error, and to wrong probabilities."""
    X, y = load_breast_cancer(return_X_y=True)
    model = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC())).fit(X, y)
    session = session_of(skl2onnx.to_onnx(model, X[:1], options={"zipmap": False}))
    assert np.abs(session.run(["probabilities"], {"X": X})[0] - model.predict_proba(X)).max() > 0.99


class TestOptions:
    @pytest.mark.parametrize("opset", [13, 15, 18, 21])
    @pytest.mark.parametrize("link", ["auto", "clip"])
    def test_opset(self, iris, opset, link):
        X, y, X_new = iris
        clf = LSPC(kernel="laplacian", ridge=1e-2, link=link).fit(X, y)
        for model in (clf, make_pipeline(StandardScaler(), PCA(3), clone(clf)).fit(X, y)):
            assert_agrees(model, X_new, target_opset=opset)
            (default,) = (each for each in to_onnx(model, target_opset=opset).opset_import if not each.domain)
            assert default.version == opset

    def test_input(self, iris):
        X, y, X_new = iris
        clf = LSPC(ridge=1e-2).fit(X, y)
        session = session_of(to_onnx(clf, input_name="flowers", dtype=np.float64))
        (given,) = session.get_inputs()
        assert (given.name, given.type, given.shape) == ("flowers", "tensor(double)", ["n", 4])
        assert [each.name for each in session.get_outputs()] == ["label", "probabilities"]
        assert [each.shape for each in session.get_outputs()] == [["n"], ["n", 3]]
        np.testing.assert_allclose(session.run(None, {"flowers": X_new})[1], clf.predict_proba(X_new), atol=1e-10)

    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "chi2"])
    def test_another_runtime(self, iris, kernel):
        """The reference implementation of the standard: no operator is onnxruntime's own."""
        X, y, X_new = iris
        clf = LSPC(kernel=kernel, width=1.5, ridge=1e-2, scaling=scaling_for(kernel)).fit(X, y)
        evaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator(to_onnx(clf, dtype="float64"))
        label, proba = evaluator.run(None, {"X": X_new})
        np.testing.assert_allclose(proba, clf.predict_proba(X_new), rtol=0, atol=1e-10)
        np.testing.assert_array_equal(label, clf.predict(X_new))

    def test_kproba_does_not_import_onnx(self):
        code = "import sys, kproba; print({'onnx', 'skl2onnx', 'onnxruntime'} & set(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "set()"

    def test_nothing_is_registered_with_skl2onnx(self, iris):
        from skl2onnx.common._registration import get_converter

        before = get_converter("SklearnSimpleImputer")
        X, y, _ = iris
        to_onnx(make_pipeline(SimpleImputer(), LSPC(ridge=1e-2)).fit(X, y))
        assert get_converter("SklearnSimpleImputer") is before


class TestErrors:
    def test_extra(self, iris, monkeypatch):
        X, y, _ = iris
        clf = LSPC(ridge=1e-2).fit(X, y)
        monkeypatch.setitem(sys.modules, "onnx", None)
        with pytest.raises(ImportError, match=r"to_onnx needs onnx: .*kproba\[onnx\]"):
            to_onnx(clf)

    def test_extra_for_pipelines(self, iris, monkeypatch):
        X, y, _ = iris
        model = make_pipeline(StandardScaler(), LSPC(ridge=1e-2)).fit(X, y)
        monkeypatch.setitem(sys.modules, "skl2onnx", None)
        monkeypatch.setitem(sys.modules, "skl2onnx.common.data_types", None)
        to_onnx(model[-1])
        with pytest.raises(ImportError, match=r"to_onnx needs skl2onnx: .*kproba\[onnx\]"):
            to_onnx(model)

    def test_no_probabilities(self, iris):
        X, y, _ = iris
        with pytest.raises(ValueError, match="link='none'"):
            to_onnx(LSPC(ridge=1e-2, link="none").fit(X, y))

    @pytest.mark.parametrize(
        ("kernel", "name"),
        [("precomputed", "precomputed"), (lambda X, Z: X @ Z.T, "callable")],
        ids=["matrix", "callable"],
    )
    def test_kernels_of_matrices(self, iris, kernel, name):
        X, y, _ = iris
        clf = LSPC(kernel=kernel, ridge=1e-2).fit(X @ X.T if kernel == "precomputed" else X, y)
        with pytest.raises(TypeError, match=rf"the {name} kernel .*cannot be converted to ONNX.*'gaussian'"):
            to_onnx(clf)

    def test_kernels_of_items(self):
        clf = LSPC(kernel=Spectrum(length=2), ridge=1e-2).fit(["abab", "abba", "cdcd", "ccdd"], [0, 0, 1, 1])
        with pytest.raises(TypeError, match="the spectrum kernel"):
            to_onnx(clf)

    def test_subclass_of_a_kernel(self, iris):
        class Squared(Gaussian):
            def of_pairs(self, pairs):
                return super().of_pairs(pairs) ** 2

        X, y, _ = iris
        with pytest.raises(TypeError, match="Squared"):
            to_onnx(LSPC(kernel=Squared(width=1.0), ridge=1e-2).fit(X, y))

    def test_models(self, iris):
        X, y, _ = iris
        with pytest.raises(TypeError, match=r"LogisticRegression, which skl2onnx\.to_onnx may convert"):
            to_onnx(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y))
        with pytest.raises(TypeError, match="got str"):
            to_onnx("model")
        for model in (LSPC(), make_pipeline(StandardScaler(), LSPC())):
            with pytest.raises(NotFittedError):
                to_onnx(model)

    def test_steps(self, iris):
        X, y, _ = iris
        model = make_pipeline(FunctionTransformer(np.log1p), LSPC(ridge=1e-2)).fit(X, y)
        with pytest.raises(ValueError, match=r"before the classifier \(FunctionTransformer\)"):
            to_onnx(model)
        bags = [np.random.default_rng(i).random((5, 3)) for i in range(20)]
        model = make_pipeline(BagOfFeatures(4, random_state=0), LSPC(ridge=1e-2)).fit(bags, np.arange(20) % 2)
        with pytest.raises(ValueError, match=r"X is needed|before the classifier \(BagOfFeatures\)"):
            to_onnx(model)
        words = np.where(X[:, :1] > 6, "", "word").astype(object)
        imputer = SimpleImputer(missing_values="", strategy="most_frequent", add_indicator=True)
        model = make_pipeline(imputer, OneHotEncoder(), LSPC(ridge=1e-2)).fit(words, y)
        with pytest.raises(ValueError, match="add_indicator"):
            to_onnx(model, words)

    def test_arguments(self, iris):
        X, y, _ = iris
        clf = LSPC(ridge=1e-2).fit(X, y)
        with pytest.raises(ValueError, match=r"dtype must be .*, got 'float16'"):
            to_onnx(clf, dtype="float16")
        with pytest.raises(ValueError, match=r"target_opset must be .*, got 12"):
            to_onnx(clf, target_opset=12)
        with pytest.raises(TypeError, match="input_name=''"):
            to_onnx(clf, input_name="")
        with pytest.raises(ValueError, match=r"X has shape \(75, 2\); the model was fitted on 4 columns"):
            to_onnx(clf, X[:, :2])

    def test_frames(self):
        X, y = people()
        model = make_pipeline(make_column_transformer((NUMBERS, ["age"])), LSPC(ridge=1e-2)).fit(X, y)
        with pytest.raises(ValueError, match="X is needed"):
            to_onnx(model)
        with pytest.raises(ValueError, match="no column 'age'"):
            to_onnx(model, X.drop(columns="age"))
        numbers = X[["income", "rooms"]]
        clf = LSPC(ridge=1e-2).fit(numbers, y)
        with pytest.raises(TypeError, match="column 'rooms' contains strings"):
            to_onnx(clf, numbers.astype({"rooms": str}))
        with pytest.raises(TypeError, match="column 'rooms' has dtype datetime"):
            to_onnx(clf, numbers.assign(rooms=np.datetime64("2020-01-01")))
        clf = LSPC(ridge=1e-2).fit(numbers.rename(columns={"rooms": "label"}), y)
        with pytest.raises(ValueError, match="'label', which is the name of an output"):
            to_onnx(clf, numbers.rename(columns={"rooms": "label"}))
        with pytest.raises(TypeError, match="column 'income' contains strings, and no step"):
            to_onnx(LSPC(ridge=1e-2).fit(numbers, y), numbers.astype(str))
