"""Threads of ours beside those of BLAS, of joblib and of the caller: nothing global is left changed."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kproba import LSPC, BagOfFeatures, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.threads import fill_tiles, map_independent, n_workers, one_blas_thread, run_in_turns

N_BLAS = 3
FORK = """
import os
from test_threads import N_BLAS, blas_threads, one_blas_thread, set_blas_threads

set_blas_threads(N_BLAS)
with one_blas_thread():
    child = os.fork()
    if child == 0:
        with one_blas_thread():  # the lock is free
            pass
        print(blas_threads(), "inside:", one_blas_thread()._n_inside, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    assert blas_threads() == {1}
"""
RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
Y = (X[:, 0] + 0.3 * RNG.standard_normal(80) > 0).astype(int)


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def set_blas_threads(number: int) -> None:
    """For good, and by a thread that ends: while one lives that has set a limit, threadpoolctl ignores the others."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(threadpool_limits, number, "blas").result()


@pytest.fixture(autouse=True)
def several_blas_threads():
    """Outside these tests BLAS has one thread."""
    set_blas_threads(N_BLAS)
    yield
    found = blas_threads()
    set_blas_threads(1)
    assert found == {N_BLAS}


def together(*functions):
    """Run functions at the same time, each in a thread that outlives the others' work."""
    ready, done = threading.Barrier(len(functions)), threading.Barrier(len(functions))

    def run(function):
        ready.wait(30)
        try:
            return function()
        finally:
            done.wait(30)

    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result() for future in [pool.submit(run, function) for function in functions]]


class TestOneBlasThread:
    def test_last_to_leave_restores(self):
        entered, left = threading.Event(), threading.Event()

        def first():
            with one_blas_thread():
                assert entered.wait(30)
            left.set()

        def second():
            with one_blas_thread():
                entered.set()
                assert left.wait(30)
                assert blas_threads() == {1}  # the first one has left, this one has not

        together(first, second)
        assert blas_threads() == {N_BLAS}

    def test_nested_and_by_exceptions(self):
        with pytest.raises(KeyError), one_blas_thread():
            with pytest.raises(ZeroDivisionError), one_blas_thread():
                raise ZeroDivisionError
            assert blas_threads() == {1}
            raise KeyError
        assert blas_threads() == {N_BLAS}

    def test_limits_of_the_caller(self):
        with threadpool_limits(2, user_api="blas"):
            with one_blas_thread():
                assert blas_threads() == {1}
                with threadpool_limits(2, user_api="blas"):
                    assert blas_threads() == {2}
                assert blas_threads() == {1}
            assert blas_threads() == {2}

    def test_limit_of_the_caller_set_meanwhile_stays(self):
        with one_blas_thread():
            set_blas_threads(2)
        assert blas_threads() == {2}
        set_blas_threads(N_BLAS)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_forked_process_is_not_limited(self):
        """In a process of its own, because a fork copies whatever state the threads of other tests are in."""
        env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        found = subprocess.run([sys.executable, "-c", FORK], env=env, capture_output=True, text=True, check=False)
        assert (found.stdout, found.stderr) == (f"{{{N_BLAS}}} inside: 0\n", "")

    def test_many_threads_at_random(self):
        def enter_and_leave(seed):
            random = np.random.default_rng(seed)
            for _ in range(20):
                with one_blas_thread():
                    threading.Event().wait(random.uniform(0, 1e-3))
                    assert blas_threads() == {1}

        together(*[lambda seed=seed: enter_and_leave(seed) for seed in range(8)])
        assert blas_threads() == {N_BLAS}


class TestEstimators:
    def test_predictions_in_eight_threads(self):
        model = LSPC(kernel="gaussian", width=1.0, ridge=0.01, n_jobs=2, random_state=0).fit(X, Y)
        rows = RNG.standard_normal((4000, 3))
        expected = model.predict_proba(rows)
        for proba in together(*[lambda: model.predict_proba(rows)] * 8):
            np.testing.assert_array_equal(proba, expected)
        assert blas_threads() == {N_BLAS}

    @pytest.mark.parametrize(
        "estimator",
        [
            LSPC(width=[0.5, 1.0], ridge=0.01, n_jobs=2, random_state=0),
            LSPC(kernel="gaussian", width=1.0, ridge=0.1, centers="all", solver="cg", random_state=0),
            KernelLogisticRegression(kernel="gaussian", width=[0.5, 1.0], ridge=0.01, n_jobs=2, random_state=0),
            ImportVectorMachine(kernel="gaussian", width=[0.5, 1.0], ridge=0.1, max_points=3, n_jobs=2, random_state=0),
            SurfaceKernelClassifier(kernel="gaussian", width=[0.5, 1.0], n_centers=5, n_jobs=2, random_state=0),
        ],
        ids=lambda estimator: type(estimator).__name__ + getattr(estimator, "solver", ""),
    )
    @pytest.mark.filterwarnings("ignore::kproba.ConvergenceWarning")
    def test_four_fits_at_the_same_time(self, estimator):
        expected = estimator.fit(X, Y).predict_proba(X)
        models = [type(estimator)(**estimator.get_params()) for _ in range(4)]
        together(*[lambda model=model: model.fit(X, Y) for model in models])
        assert blas_threads() == {N_BLAS}
        for model in models:
            np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-7)

    def test_bags(self):
        items = list(RNG.standard_normal((20, 30, 4)))
        together(*[lambda: BagOfFeatures(n_words=5, random_state=0).fit_transform(items)] * 4)
        assert blas_threads() == {N_BLAS}


class TestWorkers:
    """``n_jobs=None`` is all cores that nobody else uses."""

    @pytest.fixture(autouse=True)
    def sixteen_cores(self, monkeypatch):
        monkeypatch.setattr("kproba.threads._n_cores", lambda: 16)

    def test_given(self):
        assert [n_workers(n) for n in (1, 3, -1, -2, -99)] == [1, 3, 16, 15, 1]
        with pytest.raises(ValueError, match="n_jobs == 0"):
            n_workers(0)

    def test_as_many_as_blas_may_use(self):
        assert n_workers(None) == N_BLAS
        with threadpool_limits(1, user_api="blas"):
            assert n_workers(None) == 1

    def test_not_more_than_cores(self, monkeypatch):
        monkeypatch.setattr("kproba.threads._n_cores", lambda: 2)
        assert n_workers(None) == 2

    def test_our_own_limit_does_not_count(self):
        with one_blas_thread():
            assert n_workers(None) == N_BLAS

    def test_one_in_threads_of_joblib(self):
        found = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(n_workers)(None) for _ in range(4))
        assert found == [1] * 4

    def test_share_in_processes_of_joblib(self):
        found = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(n_workers)(None) for _ in range(2))
        share = int(os.environ.get("OPENBLAS_NUM_THREADS") or max(joblib.cpu_count() // 2, 1))
        assert found == [share] * 2

    def test_number_of_parallel_config(self):
        with joblib.parallel_config(n_jobs=5):
            assert n_workers(None) == 5 and n_workers(2) == 2
            found = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(n_workers)(None) for _ in range(2))
        assert found == [1, 1]

    def test_sequential_joblib_changes_nothing(self):
        assert joblib.Parallel(n_jobs=1)([joblib.delayed(n_workers)(None)]) == [N_BLAS]

    def test_workers_start_no_workers(self):
        threads = set()

        def note(_):
            threads.add(threading.get_ident())

        def inner(_):
            fill_tiles(note, 8, 1 << 20, workers=4)
            map_independent(note, range(8), workers=4)
            return threading.get_ident()

        outer = set(map_independent(inner, range(8), workers=2))
        assert threads == outer and len(outer) <= 2

    @pytest.mark.parametrize("workers", [1, 2, 3, 5])
    def test_tasks_take_turns(self, workers):
        steps, inside = [[] for _ in range(3)], [threading.Lock() for _ in range(3)]

        def task(number):
            for step in range(20):
                assert inside[number].acquire(blocking=False)  # never on two threads at once
                time.sleep(1e-4)
                steps[number].append(step)
                inside[number].release()
                yield

        run_in_turns([task(number) for number in range(3)], workers)
        assert steps == [list(range(20))] * 3
        run_in_turns([], workers)

    def test_an_error_in_a_turn_is_raised(self):
        def task(number):
            yield
            raise ArithmeticError(number)

        for workers in (1, 2, 4):
            with pytest.raises(ArithmeticError):
                run_in_turns([task(number) for number in range(4)], workers)

    @pytest.mark.parametrize("workers", [2, 8])
    def test_nothing_goes_on_after_an_error_or_an_interrupt(self, workers):
        begun = []

        def task(number):
            for _ in range(50):
                begun.append(number)
                if number == 0:
                    raise KeyboardInterrupt
                time.sleep(0.01)
                yield

        with pytest.raises(KeyboardInterrupt):
            run_in_turns([task(number) for number in range(8)], workers)
        assert len(begun) < 50

    def test_fitted_model_does_not_keep_the_number_of_threads(self):
        model = LSPC(kernel="gaussian", width=1.0, ridge=0.01, n_jobs=7).fit(X, Y)
        assert model.basis_.workers == 1 and model._basis_here.workers == 7
        assert model.set_params(n_jobs=1)._basis_here.workers == 1
