"""float32 rows give the answer of float64: rows may be stored in float32, and everything is computed in float64."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from kproba import LSPC, Gaussian, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.arrays import Device
from kproba.basis.device_basis import DeviceBasis
from kproba.data.sources import ArraySource
from kproba.estimators import _reading

ALL = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)


def smooth_problem(n, d=4, seed=0):
    """Rows so near each other that float32 kernel values make a singular system."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n) > 0.3).astype(int)
    return X.astype(np.float32), y


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("classifier", ALL)
def test_low_precision_is_exact_and_silent(classifier, dtype):
    X, y = smooth_problem(150)
    X = X.astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proba = classifier(random_state=0).fit(X, y).predict_proba(X)
    in_double = X.astype(np.float64)
    np.testing.assert_allclose(
        proba, classifier(random_state=0).fit(in_double, y).predict_proba(in_double), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("classifier", [LSPC, KernelLogisticRegression, SurfaceKernelClassifier])
def test_float32_sources_are_summed_in_float64(classifier, monkeypatch):
    """A sample decides, all rows are summed: by the same numbers whichever precision they are stored in."""
    monkeypatch.setattr(_reading, "sample_size", lambda d: 200)
    X, y = smooth_problem(900)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low = classifier(random_state=0).fit(ArraySource(X, y)).predict_proba(X)
    high = classifier(random_state=0).fit(ArraySource(X.astype(np.float64), y)).predict_proba(X.astype(np.float64))
    # chunks of float32 rows are cut elsewhere, so that sums differ by rounding
    np.testing.assert_allclose(low, high, rtol=0, atol=1e-5)


def test_wide_kernel_and_tiny_ridge():
    """Where float32 sums made the system indefinite and something was added to its diagonal."""
    X, y = smooth_problem(1200, d=2)
    options = {"kernel": "gaussian", "width": 8.0, "ridge": 1e-9, "centers": 60, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low = LSPC(**options).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(low, LSPC(**options).fit(X.astype(float), y).predict_proba(X.astype(float)), atol=1e-12)


class TestDevices:
    """On a device large sources of float32 rows are summed in float32, but not where that loses the answer."""

    @pytest.fixture
    def tensor(self):
        xp = pytest.importorskip("array_api_strict")
        return lambda X: xp.asarray(X)

    @pytest.mark.parametrize("options", [{"kernel": "gaussian", "width": 4.0, "ridge": 1e-6}, {"kernel": "laplacian"}])
    @pytest.mark.parametrize("penalty", ["rkhs", "parameters"])
    def test_sums_that_float32_does_not_resolve(self, tensor, monkeypatch, options, penalty):
        monkeypatch.setattr(_reading, "sample_size", lambda d: 200)
        X, y = smooth_problem(900, d=2)
        model = LSPC(centers=40, penalty=penalty, random_state=0, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            proba = model.fit(tensor(X), y).predict_proba(tensor(X))
        in_double = model.fit(X.astype(np.float64), y).predict_proba(X.astype(np.float64))
        np.testing.assert_allclose(proba, in_double, rtol=0, atol=1e-3)

    def test_precision_follows_the_penalty(self, tensor):
        X = smooth_problem(60, d=2)[0]
        device = Device.of(tensor(X))
        wide, narrow = (DeviceBasis(Gaussian(width=width), X.astype(float), device=device) for width in (8.0, 0.01))
        assert wide.for_sums(1e-3, rkhs=True).use_float64 and not narrow.for_sums(1e-3, rkhs=True).use_float64
        assert narrow.for_sums(1e-9, rkhs=True).use_float64
        assert wide.for_sums(1e-7, rkhs=False).use_float64 and not wide.for_sums(1e-3, rkhs=False).use_float64
