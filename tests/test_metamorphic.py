"""What must not change a model: the order of rows, columns and chunks, names of classes, units, copies for weights."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.estimators import _reading
from strategies import Table, cuts, orders, tables

pytestmark = pytest.mark.filterwarnings(
    "ignore::kproba.FewRowsWarning", "ignore::kproba.UnitsWarning", "ignore::kproba.ConvergenceWarning"
)
GIVEN = {"kernel": "laplacian", "width": 1.5, "random_state": 0}
LSPCS = {
    "lspc": LSPC(**GIVEN, ridge=1e-2, loo=True),
    "lspc clip": LSPC(**GIVEN, ridge=1e-2, link="clip", loo=True),
    "lspc class": LSPC(**GIVEN, ridge=1e-2, centers="class", link="clip", loo=True),
    "lspc parameters": LSPC(**GIVEN, ridge=1e-1, penalty="parameters", solver="eigen", link="clip", loo=True),
    "lspc grid": LSPC(kernel="laplacian", width=(0.7, 3.0), ridge=(1e-3, 1e-1), random_state=0),
}
MODELS = {
    **LSPCS,
    "klr": KernelLogisticRegression(**GIVEN, ridge=1e-2, tol=1e-8, loo=True),
    "klr class": KernelLogisticRegression(**GIVEN, ridge=1e-2, tol=1e-8, centers="class"),
    "ivm": ImportVectorMachine(**GIVEN, ridge=1e-2, candidates="all", tol=1e-6),
    "surface": SurfaceKernelClassifier(**GIVEN, n_centers=2, centers="random", link="clip"),
}
SCALINGS = st.sampled_from(["robust", "quantile", "standard", None])
#: Newton's method and the interior-point method stop with errors of this order. The calibrated link is fitted until its
#: gradient is below 1e-5, which leaves the second number.
SAME, SAME_LINK = 1e-5, 1e-4


def fitted(model, table: Table, **changes):
    return clone(model).set_params(**changes).fit(*table)


def seen(model, table: Table) -> np.ndarray:
    """The rows of the table; of a surface those that count, for elsewhere its maximum need not be unique."""
    return (table.counted if isinstance(model, SurfaceKernelClassifier) else table).X


def assert_same(one, other, X_one, X_other=None, columns=slice(None)) -> None:
    """Both models say the same of the same rows; those of the other may look different."""
    there = other.predict_proba(X_one if X_other is None else X_other)[:, columns]
    np.testing.assert_allclose(there, one.predict_proba(X_one), rtol=0, atol=tolerance(one))


def tolerance(model) -> float:
    return SAME_LINK if isinstance(model, LSPC) and model.link == "auto" else SAME


@pytest.mark.parametrize("name", MODELS)
@given(table=tables(), scaling=SCALINGS, data=st.data())
def test_order_of_rows(name, table, scaling, data):
    order = data.draw(orders(len(table.y)))
    one = fitted(MODELS[name], table, scaling=scaling)
    other = fitted(MODELS[name], Table(*(part[order] for part in table)), scaling=scaling)
    assert_same(one, other, seen(one, table))
    if hasattr(one, "loo_proba_"):
        np.testing.assert_allclose(other.loo_proba_, one.loo_proba_[order], rtol=0, atol=tolerance(one))


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("ivm", "surface")])
@given(table=tables(columns=(2, 4)), scaling=SCALINGS, data=st.data())
def test_order_of_columns(name, table, scaling, data):
    """Subsets of rows are drawn by their values in order, so that models of a few centres have others."""
    order = data.draw(orders(table.X.shape[1]))
    one = fitted(MODELS[name], table, scaling=scaling)
    other = fitted(MODELS[name], table._replace(X=table.X[:, order]), scaling=scaling)
    assert_same(one, other, table.X, table.X[:, order])


@pytest.mark.parametrize("name", [name for name in MODELS if name != "ivm"])
@given(table=tables(), data=st.data())
def test_names_of_classes(name, table, data):
    """Other names in another order: the columns follow the names. Centres are given: rows of several classes count for
    the first of these when a subset is spread over the classes."""
    names = np.array(data.draw(st.permutations(["a", "b", "c", "d"][: table.n_classes])))
    changes = {"centers": table.X[:2]} if name == "surface" else {}
    one = fitted(MODELS[name], table, **changes)
    other = fitted(MODELS[name], table._replace(y=names[table.y]), **changes)
    np.testing.assert_array_equal(other.classes_, np.sort(names))
    assert_same(one, other, seen(one, table), columns=np.argsort(np.argsort(names)))


@pytest.mark.parametrize("name", MODELS)
@given(table=tables(weights=("counts",)), scaling=SCALINGS)
def test_weights_are_copies(name, table, scaling):
    one = fitted(MODELS[name], table, scaling=scaling)
    assert_same(one, fitted(MODELS[name], table.repeated, scaling=scaling), seen(one, table))


@pytest.mark.parametrize("name", MODELS)
@given(table=tables(weights=("counts", "fractions")), scaling=SCALINGS)
def test_rows_of_weight_zero_are_not_there(name, table, scaling):
    one = fitted(MODELS[name], table, scaling=scaling)
    other = fitted(MODELS[name], table.counted, scaling=scaling)
    assert_same(one, other, seen(one, table))


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("ivm", "surface")])
@given(table=tables(), scaling=SCALINGS, move=st.sampled_from([-3.0, 1.0, 64.0]))
def test_shift(name, table, scaling, move):
    """The values are multiples of 1/32: nothing is rounded."""
    one = fitted(MODELS[name], table, scaling=scaling)
    other = fitted(MODELS[name], table._replace(X=table.X + move), scaling=scaling)
    assert_same(one, other, table.X, table.X + move)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("ivm", "surface")])
@given(
    table=tables(),
    scaling=st.sampled_from(["robust", "quantile", "standard"]),
    power=st.sampled_from([-1000, -500, -30, 30, 500, 1000]),
)
def test_units(name, table, scaling, power):
    """Powers of two: nothing is rounded. The smallest columns are of 1e-301, the largest of 1e301.

    Rows of weight zero are left out: where a column is constant but for them, nothing says what its unit is.
    """
    unit, table = 2.0**power, table.counted
    one = fitted(MODELS[name], table, scaling=scaling)
    other = fitted(MODELS[name], table._replace(X=table.X * unit), scaling=scaling)
    assert_same(one, other, table.X, table.X * unit)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("ivm", "surface")])
@given(table=tables(), scaling=SCALINGS, value=st.sampled_from([0.0, 1.0, -0.1, 1e9, 1e-300]))
def test_constant_column(name, table, scaling, value):
    more = np.column_stack([table.X, np.full(len(table.y), value)])
    one = fitted(MODELS[name], table, scaling=scaling)
    assert_same(one, fitted(MODELS[name], table._replace(X=more), scaling=scaling), table.X, more)


@pytest.mark.parametrize("name", ["lspc clip", "lspc class", "lspc parameters", "klr", "ivm", "surface"])
@given(table=tables(), factor=st.sampled_from([1e-14, 1e-10, 3.0, 1e14]))
def test_all_weights_times_a_number(name, table, factor):
    """The ridge goes with the total weight; leave-one-out does not, since a weight of two is two rows."""
    one = fitted(MODELS[name], table)
    assert_same(one, fitted(MODELS[name], table._replace(weight=table.weight * factor)), seen(one, table))


@pytest.mark.parametrize("name", ["lspc clip", "lspc class", "klr", "ivm", "surface"])
@given(table=tables(), factors=st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=4, max_size=4))
def test_class_weights_are_weights(name, table, factors):
    weight = table.weight * np.array(factors)[table.y]
    one = fitted(MODELS[name], table._replace(weight=weight))
    other = fitted(MODELS[name], table, class_weight=dict(enumerate(factors[: table.n_classes])))
    assert_same(one, other, seen(one, table))


@pytest.mark.parametrize("name", MODELS)
@given(table=tables(classes=(2, 3), weights=("none",)))
def test_rows_that_are_in_every_class_say_nothing(name, table):
    c = table.n_classes
    X, y = np.repeat(table.X, c, axis=0), np.tile(np.arange(c), len(table.y))
    proba = clone(MODELS[name]).fit(X, y).predict_proba(table.X)
    np.testing.assert_allclose(proba, 1.0 / c, rtol=0, atol=tolerance(MODELS[name]))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["sparse", "sparse with zeros", "frame", "list", "object", "columns first"])
@given(table=tables())
def test_form_of_the_table(form, name, table):
    forms = {
        "sparse": sparse.csr_array,
        "sparse with zeros": stored_zeros,
        "frame": pd.DataFrame,
        "list": np.ndarray.tolist,
        "object": lambda X: X.astype(object),
        "columns first": np.asfortranarray,
    }
    table = table.counted if name == "surface" else table
    X = forms[form](table.X)
    one = fitted(MODELS[name], table, scaling=None)
    assert_same(one, fitted(MODELS[name], table._replace(X=X), scaling=None), table.X, X)


def stored_zeros(X) -> sparse.csr_array:
    """A sparse matrix in which every value is stored, zeros too."""
    n, d = X.shape
    return sparse.csr_array((X.ravel().copy(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=X.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, bool])
@pytest.mark.parametrize("name", MODELS)
@given(table=tables(), scaling=SCALINGS)
def test_type_of_the_numbers(name, dtype, table, scaling):
    """Types that hold the values exactly change a thousandth at most, and no row's sum."""
    table = table.counted if name == "surface" else table
    X = table.X.astype(dtype)
    one = fitted(MODELS[name], table._replace(X=X.astype(float)), scaling=scaling)
    proba = fitted(MODELS[name], table._replace(X=X), scaling=scaling).predict_proba(X)
    np.testing.assert_allclose(proba, one.predict_proba(X.astype(float)), rtol=0, atol=1e-3)
    np.testing.assert_allclose(proba.sum(axis=1, dtype=float), 1.0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["lspc clip", "lspc parameters", "klr", "ivm", "surface"])
@given(table=tables(rows=(6, 14)), data=st.data())
def test_order_of_chunks(name, table, data):
    """From a source that is larger than its sample, in two orders and two cuts."""
    da = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    order, size = data.draw(orders(len(table.y))), data.draw(st.integers(3, 5))
    model = clone(MODELS[name]).set_params(scaling=None, **({"loo": "auto"} if name != "ivm" else {}))
    model.set_params(**({"candidates": "auto"} if name == "ivm" else {}))
    if name.startswith(("lspc", "klr")):
        model.set_params(centers=np.unique(table.X + 0.0, axis=0)[:3])
    found = []
    with dask.config.set(scheduler="synchronous"), mock.patch.object(_reading, "sample_size", lambda d: size):
        for each in (table, Table(*(part[order] for part in table))):
            chunks = (tuple(part.stop - part.start for part in data.draw(cuts(len(table.y)))),)
            X = da.from_array(each.X, chunks=(*chunks, -1))
            y, weight = (da.from_array(part, chunks=chunks) for part in each[1:])
            found.append(clone(model).fit(X, y, weight).predict_proba(seen(model, table)))
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=SAME)


@pytest.mark.parametrize("name", ["lspc clip", "surface"])
@given(table=tables(rows=(6, 14)), data=st.data())
def test_order_of_batches(name, table, data):
    model = clone(MODELS[name]).set_params(scaling=None, loo="auto", centers=np.unique(table.X + 0.0, axis=0)[:3])
    parts, found = [p for p in data.draw(cuts(len(table.y))) if table.weight[p].any()], []
    for each in (parts, parts[::-1]):
        one = clone(model)
        for part in each:
            one.partial_fit(table.X[part], table.y[part], np.arange(table.n_classes), table.weight[part])
        found.append(one.predict_proba(seen(model, table)))
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=SAME)


@pytest.mark.filterwarnings("ignore::kproba.ConditionWarning")
@given(table=tables(rows=(8, 14), weights=("counts",)), data=st.data())
def test_a_search_does_not_see_the_order_nor_copies(table, data):
    """Kernel, width, ridge and relevance are chosen alike, and so is what they give."""
    again = table.repeated
    order = data.draw(orders(len(again.y)))
    one = LSPC(random_state=0).fit(*table)
    other = LSPC(random_state=0).fit(*(part[order] for part in again))
    assert (one.kernel_, one.ridge_) == (other.kernel_, other.ridge_)
    assert_same(one, other, table.X)
