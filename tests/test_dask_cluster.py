"""A real cluster of worker processes: the same model, also when a worker dies in the middle."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.data.dask import GROUPS, DaskSource, _groups
from kproba.estimators import _reading

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
N = 1500


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    folder = tmp_path_factory.mktemp("dask")
    with distributed.LocalCluster(**options, local_directory=str(folder)) as cluster, cluster.get_client() as client:
        yield client


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(_reading, "sample_size", lambda d: 800)
    random = np.random.default_rng(0)
    X = random.standard_normal((N, 5))
    return X, (random.uniform(size=N) < 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1]))).astype(int)


def slowly(block):
    time.sleep(0.15)
    return block


@pytest.mark.parametrize("make", [LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier])
def test_same_model_on_a_cluster(cluster, rows, make):
    """Up to what another order of the rows changes: sums of the same numbers in another order, which a model magnifies
    by its condition number."""
    X, y = rows
    expected = make(random_state=0).fit(X, y).predict_proba(X)
    orders = [np.random.default_rng(seed).permutation(N) for seed in range(1)]
    spread = max(np.abs(make(random_state=0).fit(X[i], y[i]).predict_proba(X) - expected).max() for i in orders)
    assert spread < 1e-5
    other = make(random_state=0).fit(da.from_array(X, chunks=150), da.from_array(y, chunks=150))
    np.testing.assert_allclose(other.predict_proba(X), expected, rtol=0, atol=10 * spread + 1e-10)


def test_partitions_in_memory_of_a_worker_share_totals_and_give_the_same_model(cluster, rows):
    X, y = rows
    held = cluster.persist([da.from_array(X, chunks=25), da.from_array(y, chunks=25)])
    distributed.wait(held)
    source = DaskSource(*held)
    groups = _groups([part.key for part in source._parts], held[0])
    assert sorted(number for group in groups for number in group) == list(range(60))
    assert len(groups) <= 2 * GROUPS
    holder = cluster.who_has(distributed.futures_of(held[0]))
    for group in groups:
        assert len({holder[source._parts[number].key] for number in group}) == 1
    model = LSPC(kernel="gaussian", width=1.0, ridge=1e-3, centers=100, random_state=0)
    expected = model.fit(X, y).coef_.copy()
    np.testing.assert_allclose(model.fit(*held).coef_, expected, atol=1e-8)


def test_a_worker_killed_in_the_middle_changes_nothing(cluster, rows):
    X, y = rows
    model = LSPC(kernel="gaussian", width=1.0, ridge=1e-3, centers=100, random_state=0)
    expected = model.fit(X, y).coef_.copy()
    slow = da.from_array(X, chunks=100).map_blocks(slowly, dtype=float)
    found = {}
    fitting = threading.Thread(target=lambda: found.update(coef=model.fit(slow, da.from_array(y, chunks=100)).coef_))
    workers = cluster.run(os.getpid)
    fitting.start()
    time.sleep(1.5)
    assert fitting.is_alive()
    os.kill(next(iter(workers.values())), signal.SIGKILL)
    fitting.join(timeout=120)
    assert not fitting.is_alive()
    assert set(cluster.run(os.getpid).values()) != set(workers.values())
    np.testing.assert_allclose(found["coef"], expected, atol=1e-8)
