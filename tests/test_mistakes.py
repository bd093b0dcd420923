"""The mistakes of the first minutes: what is refused, what is warned of, and in which words."""

import sys
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import kproba
from kproba import (
    LSPC,
    FewRowsWarning,
    Gaussian,
    ImportVectorMachine,
    KernelLogisticRegression,
    RejectOption,
    SurfaceKernelClassifier,
    TargetWarning,
    UnitsWarning,
    conformal_sets,
)
from kproba.estimators._sanity import memory_bytes, refuse_more_than_memory, widest_column

CLASSIFIERS = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)
X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=list("abc"))
DAYS = pd.date_range("2026-01-01", periods=60)
#: the third column is in another unit
UNSCALED = X * [1.0, 1.0, 1e4]
#: class 9 has one row
ONE_ROW = np.where(np.arange(60) == 7, 9, Y)

TABLES = {
    "dates beside numbers": (FRAME.assign(day=DAYS), "dates.*the column 'day'; encode.*TableVectorizer"),
    "dates alone": (pd.DataFrame({"day": DAYS, "time": DAYS}), "dates.*the columns 'day', 'time'"),
    "durations": (FRAME.assign(took=pd.to_timedelta(np.arange(60), unit="s")), "durations.*'took'"),
    "dates of Polars": (pl.DataFrame({"day": DAYS.to_list()}), "dates.*'day'"),
    "dates as an array": (DAYS.to_numpy()[:, None], "dates.*the column 0"),
    "dates as objects": (FRAME.assign(day=DAYS.to_pydatetime().astype(object)), "dates.*the column 'day'"),
    "lists in cells": (FRAME.assign(tags=[["a"]] * 60), "the column 'tags' of X holds 'list' objects"),
    "objects": (FRAME.assign(what=[object() for _ in Y]), "the column 'what' of X holds 'object' objects"),
    "NaN in a sparse matrix": (sparse.csr_array(np.where(X > 2, np.nan, X)), "contains NaN"),
    "infinity beside text": (FRAME.replace(FRAME.iloc[3, 1], np.inf).assign(city="x"), r"infinity.*\(the column 'b'\)"),
    "infinity": (FRAME.replace(FRAME.iloc[3, 1], np.inf), r"infinity.*\(the column 'b'\)"),
    "one dimension": (X[:, 0], "Expected 2D array.*reshape"),
    "a path": ("rows.csv", "open_rows"),
}


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize("found", TABLES)
def test_tables(make, found):
    table, words = TABLES[found]
    with pytest.raises((ValueError, TypeError), match=f"(?s){words.format(name=make.__name__)}"):
        make().fit(table, Y)


TARGETS = {
    "fractions": (X[:, 0], "continuous"),
    "one class": (np.zeros(60), r"only one class \(0\.0\)"),
    "words and numbers": (np.array(["a", 1] * 30, dtype=object), r"y mixes labels.*\(int, str\).*strings"),
    "lists of tags": ([["a", "b"] if k else ["a"] for k in Y], "MultiLabelBinarizer"),
    "another length": (Y[:-1], "X has 60 rows but y has 59"),
    "nothing": (None, "y is None"),
}


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize("found", TARGETS)
def test_targets(make, found):
    y, words = TARGETS[found]
    with pytest.raises((ValueError, TypeError), match=words):
        make().fit(X, y)


NAMES = [
    (LSPC, "kernel", "gausian", "gaussian"),
    (LSPC, "kernel", "RBF", "rbf"),
    (LSPC, "link", "sofmax", "softmax"),
    (LSPC, "penalty", "rkhz", "rkhs"),
    (LSPC, "selection", "loocv", "loo"),
    (LSPC, "scaling", "standart", "standard"),
    (LSPC, "scaling", "none", None),
    (LSPC, "solver", "choleski", "cholesky"),
    (LSPC, "centers", "al", "all"),
    (LSPC, "width", "medain", "median"),
    (LSPC, "class_weight", "balance", "balanced"),
    (KernelLogisticRegression, "solver", "newtn", "newton"),
    (ImportVectorMachine, "search", "one_step", "one-step"),
    (SurfaceKernelClassifier, "centers", "kmeans", "k-means"),
]


@pytest.mark.parametrize("make, name, typed, meant", NAMES)
def test_a_name_that_is_nearly_known(make, name, typed, meant):
    with pytest.raises(ValueError, match=rf"{name} must be .*, got '{typed}' \(did you mean {meant!r}\?\)\."):
        make(**{name: typed}).fit(X, Y)


def test_a_name_that_is_like_none():
    with pytest.raises(
        ValueError, match=r"kernel must be one of 'auto', .* callable or Kernel object, got 'sigmoid'\."
    ):
        LSPC(kernel="sigmoid").fit(X, Y)


OTHERS = {
    "values of a pair": (lambda: LSPC(kernel=lambda x, z: 1.0).fit(X, Y), "all rows and all centres at once"),
    "rows of a precomputed kernel": (
        lambda: LSPC(kernel="precomputed", ridge=0.1).fit(X @ X.T + np.eye(60), Y).predict(X),
        "X has 3 features.*60.*one column per training row",
    ),
    "the parameters of an SVC": (
        lambda: LSPC(C=1, gamma="scale"),
        "unexpected keyword argument 'C'.*ridge.*docs/leaving_svc.md",
    ),
    "a grid of such": (lambda: GridSearchCV(LSPC(), {"C": [1]}).fit(X, Y), "Invalid parameter 'C'.*'width'"),
    "a GPU by its number": (lambda: LSPC(device="cuda:first").fit(X, Y), "device must be .*'cpu'.*, got 'cuda:first'"),
    "weights past a pipeline": (
        lambda: make_pipeline(MinMaxScaler(), LSPC()).fit(X, Y, sample_weight=np.ones(60)),
        "stepname__parameter",
    ),
    "dates on a cluster": (
        lambda: LSPC().fit(dd.from_pandas(FRAME.assign(day=DAYS), npartitions=2), da.from_array(Y, chunks=30)),
        "dates or durations in the column 'day'",
    ),
    "an unknown class to tune by": (
        lambda: ImportVectorMachine().fit(X, Y, tuning=(X, ONE_ROW)),
        "tuning: y has the class 9, which",
    ),
}


@pytest.mark.parametrize("found", OTHERS)
def test_other_mistakes(found):
    call, words = OTHERS[found]
    with pytest.raises((ValueError, TypeError), match=f"(?s){words}"):
        call()


def test_a_function_may_return_a_sparse_matrix():
    rows = sparse.csr_array(np.where(X > 0, X, 0.0))
    model = LSPC(kernel=lambda A, B: A @ B.T, ridge=0.1, scaling=None).fit(rows, Y)
    dense = LSPC(kernel="linear", ridge=0.1, scaling=None).fit(rows, Y)
    np.testing.assert_allclose(model.predict_proba(rows), dense.predict_proba(rows), atol=1e-8)


def test_a_loader_of_batches():
    data = pytest.importorskip("torch.utils.data")
    loader = data.DataLoader(list(X), batch_size=10)
    with pytest.raises(TypeError, match=r"PyTorch DataLoader.*partial_fit"):
        LSPC().fit(loader, Y)


# --- what memory cannot hold


@pytest.mark.parametrize("make", [KernelLogisticRegression, LSPC])
def test_more_centres_than_memory_holds(make):
    """Before any work: the matrix of two million centres would take terabytes."""
    rows, y = np.arange(2e6)[:, None], np.arange(2_000_000) % 2
    options = {"penalty": "parameters"} if make is LSPC else {}
    with pytest.raises(MemoryError, match=r"2,000,000 by 2,000,000 numbers needs .* GiB.*centers='auto'"):
        make(kernel="gaussian", width=1e5, ridge=0.1, centers="all", **options).fit(rows, y)


def test_memory_is_known_and_few_centres_fit():
    assert memory_bytes() > 2**28
    refuse_more_than_memory(5000)


# --- extras that are not installed


def clips(n=8):
    return [X[i : i + 20] for i in range(n)], [0, 1] * (n // 2)


EXTRAS = {
    "matplotlib": ("plot", lambda: kproba.displays.ReliabilityDisplay.from_predictions(Y, np.full((60, 2), 0.5))),
    "tqdm.auto": ("progress", lambda: LSPC(verbose=1).fit(X, Y)),
    "pyarrow": ("files", lambda: kproba.open_rows(__file__, target="y", format="csv")),
    "torch": ("torch", lambda: LSPC(device="cuda").fit(X, Y)),
    "hmmlearn.hmm": ("sequences", lambda: LSPC(kernel="hidden-markov").fit(*clips())),
    "tslearn.metrics": ("alignment", lambda: LSPC(kernel="alignment").fit(*clips())),
    "skimage": ("pictures", lambda: kproba.PictureDescriptors().fit_transform([np.zeros((50, 50))])),
    "onnx": ("onnx", lambda: kproba.to_onnx(LSPC(width=1.0, ridge=0.1).fit(X, Y))),
    "skl2onnx": ("onnx", lambda: kproba.to_onnx(make_pipeline(MinMaxScaler(), LSPC(width=1.0)).fit(X, Y))),
}


@pytest.mark.parametrize("library", EXTRAS)
def test_a_forgotten_extra(library, monkeypatch):
    extra, call = EXTRAS[library]
    for name in [name for name in sys.modules if name.startswith(f"{library}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install 'kproba\[{extra}\]'"):
        call()


# --- too few rows of a class


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize("labels", [np.arange(10), np.array(list("abcdefghij"))], ids=["numbers", "words"])
def test_a_class_with_one_row(make, labels):
    y = labels[ONE_ROW]
    with pytest.warns(
        FewRowsWarning, match=rf"only one row of the class {labels[9].item()!r}.*merge it.*leave it out"
    ) as caught:
        model = make(kernel="gaussian", width=1.0).fit(X, y)
    assert [each.filename for each in caught if each.category is FewRowsWarning] == [__file__]
    assert model.predict_proba(X).shape == (60, 3)


def test_many_classes_with_one_row():
    """Whole numbers that are no classes, most likely."""
    with pytest.warns(FewRowsWarning, match=r"60 classes \(0, 1, 2, 3, 4 and 55 more\)"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The number of unique classes")
        LSPC(width=1.0, ridge=0.1).fit(X, np.arange(60))


def test_copies_of_a_row_are_left_out_together():
    weight = np.ones(60)
    weight[7] = 2.0
    LSPC(width=1.0, ridge=0.1).fit(np.vstack([X, X[7:8] + 0.1]), np.append(ONE_ROW, 9))
    one_row = [(X, ONE_ROW, weight), (np.vstack([X, X[7:8]]), np.append(ONE_ROW, 9))]
    for given in one_row:
        with pytest.warns(FewRowsWarning, match="class 9"):
            LSPC(width=1.0, ridge=0.1).fit(*given)
    with pytest.warns(FewRowsWarning, match="class 9"):
        LSPC(width=1.0, ridge=0.1, class_weight="balanced").fit(X, ONE_ROW)


def test_a_rejection_of_a_class_with_one_row():
    with pytest.warns(FewRowsWarning, match="class 9"):
        RejectOption(LSPC(width=1.0, ridge=0.1), threshold=0.5).fit(X, ONE_ROW)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"coverage": 0.9}, "coverage=0.9 needs 9 calibration rows, but there are 3: every label"),
        (
            {"coverage": 0.6, "by_class": True},
            "2 calibration rows of each class, but there are 1: the label of one class",
        ),
    ],
    ids=["all", "by class"],
)
def test_too_few_rows_for_sets(options, words):
    known = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]
    with pytest.warns(FewRowsWarning, match=words):
        found = conformal_sets(known, [0, 0, 1], [[0.95, 0.05]], **options)
    assert found[0, 1]


# --- one-hot targets


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_array], ids=["array", "frame", "sparse"])
def test_exclusive_classes_as_columns(make, form):
    with pytest.warns(TargetWarning, match=r"its 2 columns are treated as tags.*argmax\(axis=1\)"):
        model = make(kernel="gaussian", width=1.0).fit(X, form(np.eye(2, dtype=int)[Y]))
    assert model.predict(X).shape == (60, 2)


def test_tags_are_tags():
    """Some row has none or two, says not all, or there are so few rows that chance may have done it."""
    tags = np.eye(2)[Y]
    for k, value in ((0, [0, 0]), (1, [1, 1]), (2, [np.nan, 1])):
        LSPC(width=1.0, ridge=0.1).fit(X, np.vstack([tags[:k], [value], tags[k + 1 :]]))
    LSPC(width=1.0, ridge=0.1).fit(X[:15], tags[:15])


# --- units


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_array], ids=["64", "32", "sparse"])
def test_one_column_outweighs_the_others(make, form):
    words = "scaling=None: the column 2 accounts for more than 99% .* the other 2 columns that vary. Use scaling='auto'"
    with pytest.warns(UnitsWarning, match=words):
        make(scaling=None, kernel="gaussian", width="median").fit(form(UNSCALED), Y)


def test_it_is_called_by_its_name():
    with pytest.warns(UnitsWarning, match="the column 'c' accounts for"):
        LSPC(scaling=None).fit(pd.DataFrame(UNSCALED, columns=list("abc")), Y)
    with pytest.warns(UnitsWarning, match="the column 12 accounts for"):
        LSPC(scaling=None).fit(*load_wine(return_X_y=True))


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize(
    "width, words",
    [(1e-3, "no two rows look similar"), (1e5, "all rows look alike"), ([1e-4, 1e-3], "width=0.0001, 0.001")],
)
@pytest.mark.parametrize("scaling, where", [(None, "in the units of X"), ("standard", "after scaling")])
def test_a_width_in_other_units(make, width, words, scaling, where):
    with pytest.warns(UnitsWarning, match=rf"width=.*the median distance between rows is 2\.\d+ {where}") as caught:
        make(kernel="gaussian", width=width, scaling=scaling).fit(X, Y)
    assert any(words in str(each.message) for each in caught)


def test_a_width_of_a_kernel_in_other_units():
    with pytest.warns(UnitsWarning, match=r"width=0.001.*Use width='auto', or a width of about 2\.\d"):
        LSPC(kernel=Gaussian(width=1e-3), scaling=None).fit(X, Y)


OUTLIER = np.where(np.arange(60)[:, None] == 3, 1e5, X)
RARE = np.column_stack([X[:, 0], np.arange(60) == 5, np.zeros(60)])
LEGITIMATE = {
    "defaults": ({}, UNSCALED),
    "scaled columns": ({"scaling": "standard"}, UNSCALED),
    "columns alike": ({"scaling": None}, X),
    "one column": ({"scaling": None, "width": "median"}, UNSCALED[:, 2:]),
    "constant columns": ({"scaling": None, "width": "median"}, np.column_stack([UNSCALED[:, 2], np.ones((60, 3))])),
    "an outlier": ({"scaling": None}, OUTLIER),
    "a rare category": ({"scaling": None}, RARE),
    "a linear kernel": ({"scaling": None, "kernel": "linear", "width": "auto"}, UNSCALED),
    "a grid that reaches too far": ({"scaling": None, "width": [1e-4, 1.0, 1e5]}, X),
    "a narrow width": ({"scaling": None, "width": 0.1}, X),
    "a wide width": ({"scaling": None, "width": 100.0}, X),
    "equal rows": ({"scaling": None, "width": 1.0}, np.repeat(X[:2], 30, axis=0)),
}


@pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
@pytest.mark.parametrize("found", LEGITIMATE)
def test_no_alarm(found):
    options, rows = LEGITIMATE[found]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnitsWarning)
        LSPC(**{"kernel": "gaussian", "width": 1.0, "ridge": 0.1, **options}).fit(rows, Y)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_no_alarm_for_real_columns(load):
    """Columns of different size are common; one that hides all others is not."""
    assert widest_column(load().data)[1] < 0.7
