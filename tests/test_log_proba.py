"""``predict_log_proba``: the logarithm of ``predict_proba``, finite where a probability underflows."""

import dask.array as da
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Perceptron

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, RejectOption, SurfaceKernelClassifier, open_rows

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 2))
CLASSES = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
TAGS = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X.sum(axis=1) > 0.3]).astype(int)
GIVEN = {"kernel": "gaussian", "width": 1.0, "random_state": 0}
ESTIMATORS = {
    "LSPC": LSPC(ridge=1e-3, **GIVEN),
    "LSPC, clip": LSPC(ridge=1e-3, link="clip", **GIVEN),
    "LSPC, clip-parameters": LSPC(ridge=1e-3, link="clip-parameters", **GIVEN),
    "KLR": KernelLogisticRegression(ridge=1e-3, **GIVEN),
    "IVM": ImportVectorMachine(ridge=1e-3, max_points=5, **GIVEN),
    "surface": SurfaceKernelClassifier(n_centers=8, **GIVEN),
    "surface, clip": SurfaceKernelClassifier(n_centers=8, link="clip", **GIVEN),
    "reject": RejectOption(LSPC(ridge=1e-3, **GIVEN), threshold=0.5),
    "reject, of a classifier without logarithms": RejectOption(
        CalibratedClassifierCV(Perceptron(), ensemble=False), threshold=0.5
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore::kproba.ConvergenceWarning", "ignore::kproba.ConditionWarning")


def check(model, new):
    proba, found = model.predict_proba(new), model.predict_log_proba(new)
    with np.errstate(divide="ignore"):
        expected = np.log(proba)
    assert found.shape == expected.shape and found.dtype == np.float64
    seen = proba > 1e-300  # below, a probability has few digits left
    np.testing.assert_allclose(found[seen], expected[seen], rtol=0, atol=1e-12)
    assert (found <= 0).all() and (found[~seen] < -600).all()
    return found


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("y", [CLASSES, (CLASSES == "a").astype(int)], ids=["three classes", "two"])
def test_is_the_logarithm(name, y):
    new = np.vstack([X, 3 * X, 1e5 * X])
    found = check(ESTIMATORS[name].fit(X, y), new)
    assert np.isfinite(found).all() or "clip" in name or "without" in name


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if "reject" not in name])
def test_of_tags(name):
    check(ESTIMATORS[name].fit(X, TAGS), np.vstack([X, 1e5 * X]))


def test_stays_finite_where_probabilities_underflow():
    """A linear model far away from the data is so sure that the other class has no float left."""
    far, given = np.array([[1e6, 0.0], [-1e6, 0.0]]), {"kernel": "linear", "ridge": 1e-3, "scaling": None}
    for model in (KernelLogisticRegression(**given), ImportVectorMachine(**given)):
        model.fit(X, X[:, 0] > 0)
        assert (model.predict_proba(far).min(axis=1) == 0).all()
        found = model.predict_log_proba(far)
        assert np.isfinite(found).all() and (found.min(axis=1) < -1000).all()
    model = KernelLogisticRegression(**given).fit(X, TAGS)
    assert np.isfinite(model.predict_log_proba(far)).all() and model.predict_proba(far).min() == 0


def test_underflow_of_the_calibrated_softmax():
    model = ESTIMATORS["LSPC"].fit(X, CLASSES)
    object.__setattr__(model.link_, "slope", model.link_.slope * 1e4)
    assert model.predict_proba(X).min() == pytest.approx(model.link_.doubt * model.link_.prior.min(), rel=1e-3)
    object.__setattr__(model.link_, "doubt", 0.0)  # as in files of earlier versions
    assert model.predict_proba(X).min() == 0.0
    assert np.isfinite(check(model, X)).all()


def test_rounding_link_has_minus_infinity_without_a_warning(recwarn):
    found = ESTIMATORS["LSPC, clip"].fit(X, CLASSES).predict_log_proba(X)
    assert np.isneginf(found).any() and not recwarn.list


@pytest.mark.parametrize("estimator", [LSPC(link="none"), SurfaceKernelClassifier(link="none")], ids=str)
def test_is_there_where_probabilities_are(estimator):
    assert not hasattr(estimator, "predict_log_proba") and not hasattr(RejectOption(estimator), "predict_log_proba")
    with pytest.raises(AttributeError) as raised:
        _ = estimator.predict_log_proba
    assert "link='none'" in str(raised.value.__cause__)


@pytest.mark.parametrize("name", ["LSPC", "KLR", "IVM", "surface"])
def test_of_sources(name, tmp_path):
    model = ESTIMATORS[name].fit(X, CLASSES)
    expected = model.predict_log_proba(X)
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b", comments="")
    np.testing.assert_allclose(model.predict_log_proba(open_rows(tmp_path / "rows.csv")), expected, atol=1e-9)
    rows = da.from_array(X, chunks=(25, 2))
    for fitted in (model, RejectOption(FrozenEstimator(model), threshold=0).fit(X, CLASSES)):
        found = fitted.predict_log_proba(rows)
        assert isinstance(found, da.Array) and found.chunks[0] == rows.chunks[0]
        np.testing.assert_allclose(found.compute(), expected, atol=1e-12)
