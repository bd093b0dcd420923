"""Columns in another order than at the fit: refused for frames, put in order for files, never taken by position."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.frozen import FrozenEstimator

from kproba import (
    LSPC,
    ImportVectorMachine,
    KernelLogisticRegression,
    RejectOption,
    SurfaceKernelClassifier,
    open_rows,
    write_probabilities,
)

RNG = np.random.default_rng(0)
NAMES, OTHER_ORDER = ["age", "height", "weight"], ["weight", "age", "height"]
FRAME = pd.DataFrame(RNG.standard_normal((80, 3)), columns=NAMES)
Y = (FRAME["age"] > 0).astype(int)
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")
GIVEN = {"kernel": "gaussian", "width": 1.0, "random_state": 0}
MODELS = {
    "LSPC": LSPC(ridge=0.01, **GIVEN),
    "KLR": KernelLogisticRegression(ridge=0.01, **GIVEN),
    "IVM": ImportVectorMachine(ridge=0.1, **GIVEN),
    "surface": SurfaceKernelClassifier(n_centers=8, **GIVEN),
}
FRAMES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "dask": lambda frame: dd.from_pandas(frame, npartitions=3),
}


def call(model, method, X):
    found = model.score(X, Y) if method == "score" else getattr(model, method)(X)
    return found.compute() if hasattr(found, "compute") else found


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param].fit(FRAME, Y)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", FRAMES)
class TestFrames:
    def test_same_order(self, model, kind, method):
        found = call(model, method, FRAMES[kind](FRAME))
        np.testing.assert_allclose(found, call(model, method, FRAME), rtol=0, atol=1e-12)

    def test_other_order(self, model, kind, method):
        with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
            call(model, method, FRAMES[kind](FRAME[OTHER_ORDER]))

    def test_other_name(self, model, kind, method):
        with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- size"):
            call(model, method, FRAMES[kind](FRAME.rename(columns={"height": "size"})))

    def test_column_too_many(self, model, kind, method):
        with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- zip"):
            call(model, method, FRAMES[kind](FRAME.assign(zip=0.0)))

    def test_reject_option(self, model, kind, method):
        reject = RejectOption(FrozenEstimator(model), threshold=0.6).fit(FRAME, Y)
        call(reject, method, FRAMES[kind](FRAME))
        with pytest.raises(ValueError, match="The feature names should match"):
            call(reject, method, FRAMES[kind](FRAME[OTHER_ORDER]))


@pytest.mark.parametrize("kind", FRAMES)
def test_fitted_on_dask(kind):
    model = LSPC(ridge=0.01, **GIVEN).fit(FRAMES["dask"](FRAME), dd.from_pandas(Y, npartitions=3))
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="The feature names should match"):
        model.predict(FRAMES[kind](FRAME[OTHER_ORDER]))


def test_names_on_one_side_only():
    """A warning, as for arrays and frames in memory."""
    rows = da.from_array(FRAME.to_numpy(), chunks=(40, 3))
    with pytest.warns(UserWarning, match="does not have valid feature names, but LSPC was fitted with"):
        MODELS["LSPC"].fit(FRAME, Y).predict(rows)
    with pytest.warns(UserWarning, match="has feature names, but LSPC was fitted without"):
        MODELS["LSPC"].fit(FRAME.to_numpy(), Y).predict(FRAMES["dask"](FRAME))


def test_columns_that_have_numbers_have_no_names():
    frame = FRAME.set_axis([0, 1, 2], axis=1)
    model = LSPC(ridge=0.01, **GIVEN).fit(FRAMES["dask"](frame), dd.from_pandas(Y, npartitions=3))
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_allclose(model.predict_proba(FRAMES["dask"](frame)).compute(), model.predict_proba(frame))


def test_wrong_number_of_columns():
    model = MODELS["LSPC"].fit(FRAME.to_numpy(), Y)
    with pytest.raises(ValueError, match="X has 2 features, but LSPC is expecting 3 features"):
        model.predict(da.zeros((10, 2), chunks=(5, 2)))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
class TestFiles:
    """Columns of a file are found by their names: their order, and further columns, do not matter."""

    def write(self, frame, path):
        getattr(frame, "to_" + path.suffix[1:])(path, index=False)
        return path

    @pytest.mark.parametrize("method", METHODS[:-1])
    def test_other_order(self, model, ending, method, tmp_path):
        path = self.write(FRAME[OTHER_ORDER].assign(zip=0.0), tmp_path / f"rows.{ending}")
        found = call(model, method, open_rows(path))
        np.testing.assert_allclose(found, call(model, method, FRAME), rtol=0, atol=1e-9)

    def test_written_probabilities(self, model, ending, tmp_path):
        path = self.write(FRAME[OTHER_ORDER], tmp_path / f"rows.{ending}")
        write_probabilities(model, open_rows(path), tmp_path / "out.csv")
        found = pd.read_csv(tmp_path / "out.csv").iloc[:, :2]
        np.testing.assert_allclose(found, model.predict_proba(FRAME), rtol=0, atol=1e-6)

    def test_missing_column(self, model, ending, tmp_path):
        path = self.write(FRAME.drop(columns="height"), tmp_path / f"rows.{ending}")
        with pytest.raises(ValueError, match="'height', which the model was fitted on"):
            model.predict(open_rows(path))
