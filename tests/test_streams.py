"""The same model from an array, a memory map, files and a Dask collection; checkpoints; the look at the rows."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from kproba import (
    LSPC,
    ImportVectorMachine,
    KernelLogisticRegression,
    SurfaceKernelClassifier,
    open_rows,
    write_probabilities,
)
from kproba.basis.moments import Moments
from kproba.data.checkpoint import Checkpoint
from kproba.data.hashing import ranking, row_keys
from kproba.data.sources import ArraySource, Chunk
from kproba.data.summary import Summary
from kproba.estimators import _reading, lspc
from kproba.exceptions import FewRowsWarning

pa = pytest.importorskip("pyarrow")
N, SAMPLE = 3000, 600
MODELS = {
    "lspc": LSPC(random_state=0),
    "lspc given": LSPC(kernel="gaussian", width=0.7, ridge=1e-2, centers=100, link="clip", random_state=0),
    "lspc balanced": LSPC(width="median", class_weight="balanced", centers=80, random_state=0),
    "surface": SurfaceKernelClassifier(random_state=0),
    "klr": KernelLogisticRegression(kernel="gaussian", ridge=(1e-1, 1e-2, 1e-3, 1e-4), centers=60, random_state=0),
    "klr given": KernelLogisticRegression(kernel="laplacian", width=4.0, ridge=1e-3, centers=100, random_state=0),
    "surface given": SurfaceKernelClassifier(n_centers=20, width=2.0, centers="random", random_state=0),
    "ivm": ImportVectorMachine(random_state=0),
    "ivm given": ImportVectorMachine(kernel="gaussian", width=1.0, ridge=1e-4, class_weight="balanced", random_state=0),
}


@pytest.fixture
def small_sample(monkeypatch):
    """Rows count as many from here on, so that tests need not bring a million."""
    monkeypatch.setattr(_reading, "sample_size", lambda d: SAMPLE)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((N, 4))
    p = 1 / (1 + np.exp(-2 * np.sin(2 * X[:, 0]) - X[:, 1]))
    y = np.where(random.uniform(size=N) < p, "yes", "no").astype(object)
    y[random.uniform(size=N) < 0.02] = "rare"
    return X, y, random.integers(1, 4, N).astype(float)


@pytest.fixture(scope="module")
def sources(data, tmp_path_factory):
    """A function of a kind of source that opens the same rows, and what goes beside X."""
    X, y, weight = data
    folder = tmp_path_factory.mktemp("rows")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y, w=weight)
    for k in range(3):
        part = frame.iloc[k * 1000 : (k + 1) * 1000]
        part.to_parquet(folder / f"part{k}.parquet")
        part.to_csv(folder / f"part{k}.csv", index=False)
        part.reset_index(drop=True).to_feather(folder / f"part{k}.feather")
    stored = np.memmap(folder / "X.dat", dtype=np.float64, mode="w+", shape=X.shape)
    stored[:] = X
    stored.flush()

    def of(kind):
        if kind == "array":
            return X, y, weight
        if kind == "memmap":
            return np.memmap(folder / "X.dat", dtype=np.float64, mode="r", shape=X.shape), y, weight
        if kind.startswith("dask"):
            return dask_rows(kind, frame)
        return open_rows(f"{folder}/*.{kind}", target="label", weight="w"), None, None

    return of


def dask_rows(kind, frame):
    dask = pytest.importorskip("dask")
    dask.config.set(scheduler="threads")
    if kind == "dask frame":
        import dask.dataframe as dd

        rows = dd.from_pandas(frame, npartitions=5)
        return rows[list("abcd")], rows["label"], rows["w"]
    import dask.array as da

    X = da.from_array(frame[list("abcd")].to_numpy(), chunks=(700, 2))
    return (
        X,
        da.from_array(frame["label"].to_numpy(dtype=object), chunks=900),
        da.from_array(frame["w"].to_numpy(), chunks=700),
    )


KINDS = ("memmap", "parquet", "csv", "feather", "dask array", "dask frame")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_same_model_from_every_source(model, kind, data, sources, small_sample):
    from sklearn.base import clone

    one = clone(MODELS[model]).fit(*data)
    X, y, weight = sources(kind)
    other = clone(MODELS[model]).fit(X, y, weight)
    np.testing.assert_allclose(other.predict_proba(data[0]), one.predict_proba(data[0]), atol=1e-8)
    assert list(other.classes_) == ["no", "rare", "yes"] and other.n_features_in_ == 4
    assert not hasattr(one, "loo_proba_")
    if "ivm" in model:
        np.testing.assert_array_equal(other.centers_, one.centers_)
        assert hasattr(other, "import_indices_") != kind.startswith("dask")


@pytest.mark.parametrize("kind", KINDS)
def test_few_rows_are_fitted_as_an_array_is(kind, data, sources):
    X, y, weight = data
    one = LSPC(width="median", kernel="gaussian", centers=100, random_state=0).fit(X, y.astype(str), weight)
    other = LSPC(width="median", kernel="gaussian", centers=100, random_state=0).fit(*sources(kind))
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-8)


def test_the_type_of_labels_does_not_matter(data, small_sample):
    """Strings are counted, other labels sorted: the model is the same."""
    X, y, weight = data
    model = MODELS["lspc given"]
    expected = model.fit(X, y, weight).predict_proba(X)
    numbers = np.unique(y, return_inverse=True)[1]
    for labels in (y.astype(str), list(y), pd.Series(y), numbers, numbers + 0.0):
        found = model.fit(X, labels, weight)
        np.testing.assert_array_equal(found.predict_proba(X), expected)
        assert model.classes_.dtype.kind == np.unique(np.asarray(labels).tolist()).dtype.kind


@pytest.mark.parametrize("odd, error", [(None, ValueError), (np.nan, ValueError), (7, TypeError), (b"no", TypeError)])
def test_strings_with_something_else_are_refused(data, odd, error, small_sample):
    X, y, _ = data
    with pytest.raises(error, match=r"y (contains|mixes)"):
        MODELS["lspc given"].fit(X, np.where(np.arange(len(y)) == 1234, odd, y))
    with pytest.raises(ValueError, match=r"y has only one class \('no'\)"):
        MODELS["lspc given"].fit(X, np.full(len(y), "no", dtype=object))


def test_sums_over_all_rows_not_over_the_sample(data, small_sample):
    """With everything given, the streamed fit is the fit in memory."""
    X, y, weight = data
    given = {"kernel": "gaussian", "width": 2.0, "ridge": 1e-4, "link": "clip", "centers": X[:50], "scaling": None}
    streamed = LSPC(**given).fit(X, y, weight)
    in_memory = LSPC(**given, loo=True).fit(X, y, weight)
    np.testing.assert_allclose(streamed.coef_, in_memory.coef_, atol=1e-9)
    assert not hasattr(streamed, "loo_scores_") and in_memory.loo_scores_.shape == (N, 3)


def test_leave_one_out_of_the_sample_is_exact(data, small_sample):
    """The link is calibrated on the same scores that a fit in memory has for these rows."""
    X, y, _ = data
    y = np.where(y == "rare", "no", y)
    given = {"kernel": "gaussian", "width": 2.0, "ridge": 1e-4, "centers": X[:50], "scaling": None}
    found = []
    fit_link = lspc.fit_link

    def spy(link, held_out, rows, device):
        found.append((held_out, rows))
        return fit_link(link, held_out, rows, device)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lspc, "fit_link", spy)
        LSPC(**given).fit(X, y)
    scores, rows = found[0]
    in_memory = LSPC(**given, loo=True).fit(X, y)
    place = {tuple(x): i for i, x in enumerate(X)}
    index = [place[tuple(x)] for x in rows.X]
    np.testing.assert_allclose(scores, in_memory.loo_scores_[index], atol=1e-9)


class TestLook:
    def chunks(self, data, size=250):
        X, y, weight = data
        return [Chunk(X[k : k + size], y[k : k + size], weight[k : k + size], k) for k in range(0, N, size)]

    def total(self, chunks, size=SAMPLE):
        look = Summary(size, 0)
        for chunk in chunks:
            look = look.add(chunk)
        return look

    def test_parts_may_be_joined_at_the_end(self, data):
        at_once, later = self.total(self.chunks(data)), Summary(SAMPLE, 0)
        for chunk in self.chunks(data):
            later.collect(chunk)
        assert later.settled().settled() is later and set(vars(later)) == set(vars(at_once))
        a, b = (look.rows(look.classes(), None)[0] for look in (at_once, later))
        np.testing.assert_array_equal(a.keys, b.keys)
        np.testing.assert_array_equal(a.weight, b.weight)

    def test_does_not_depend_on_how_rows_are_cut(self, data):
        one, other = self.total(self.chunks(data)), self.total(self.chunks(data, 700)[::-1])
        halves = self.total(self.chunks(data)[:5]) + self.total(self.chunks(data)[5:])
        rows = [look.rows(look.classes(), None)[0] for look in (one, other, halves)]
        keys = [np.sort(each.keys) for each in rows]
        assert len(keys[0]) >= SAMPLE
        for key, each in zip(keys, rows):
            np.testing.assert_array_equal(key, keys[0])
            np.testing.assert_allclose(each.prior, rows[0].prior, atol=1e-12)

    @pytest.mark.parametrize("kind", [np.int64, np.uint8, str])
    def test_keeps_the_first_rows_of_every_label(self, kind, monkeypatch):
        """By rank, with copies of rows, labels that are rare, and labels that come late."""
        monkeypatch.setattr("kproba.data.summary.CLASS_ROWS", 7)
        random = np.random.default_rng(0)
        X = random.integers(0, 900, (3000, 1)).astype(float)
        y = np.where(X[:, 0] < 30, 2, X[:, 0] % 2).astype(kind)
        y[2500:][X[2500:, 0] > 890] = kind(9)
        rank = ranking(row_keys(X), 0)
        threshold = np.unique(rank)[49]
        expected = {(r, label) for r, label in zip(rank.tolist(), y.tolist()) if r <= threshold}
        for label in np.unique(y):
            expected |= {(r, label) for r in np.unique(rank[y == label])[:7].tolist()}
        for size in (40, 333, 3000):
            chunks = [Chunk(X[k : k + size], y[k : k + size], None, k) for k in range(0, 3000, size)]
            found = self.total(chunks, 50).sample.reduced(50)
            assert set(zip(found.rank.tolist(), found.y.tolist())) == expected

    def test_shares_are_those_of_all_rows(self, data):
        _, y, weight = data
        rows, _ = self.total(self.chunks(data)).rows(np.array(["no", "rare", "yes"]), None)
        shares = [weight[y == label].sum() / weight.sum() for label in ("no", "rare", "yes")]
        np.testing.assert_allclose(rows.prior, shares, atol=1e-12)
        assert (rows.labels == 1).sum() == (y == "rare").sum()  # few: all of them are kept

    def test_copies_count_as_weight(self, data):
        X, y, _ = data
        copies = np.repeat(np.arange(N), 3)
        look = self.total([Chunk(X[copies], y[copies], None, 0)])
        once = self.total([Chunk(X, y, np.full(N, 3.0), 0)])
        rows, same = look.rows(look.classes(), None)[0], once.rows(once.classes(), None)[0]
        np.testing.assert_array_equal(np.sort(rows.keys), np.sort(same.keys))
        assert rows.total_weight == pytest.approx(same.total_weight)

    def test_all_rows_while_they_are_few(self, data):
        look = self.total(self.chunks(data), size=N)
        X, y, weight = look.everything()
        for found, given in zip((X, y, weight), data):
            np.testing.assert_array_equal(found, given)
        assert not self.total(self.chunks(data), size=N - 1).has_all

    def test_zero_weights_leave_no_trace(self, data):
        X, y, weight = data
        weight = np.where(y == "rare", 0.0, weight)
        look = self.total([Chunk(X, y, weight, 0)])
        assert list(look.classes()) == ["no", "yes"]


class TestCheckpoint:
    given = LSPC(kernel="gaussian", width=2.0, ridge=1e-4, centers=60, link="clip", random_state=None)

    def test_goes_on_where_it_was(self, data, sources, small_sample, tmp_path, monkeypatch):
        """Interrupted at every chunk in turn, with a seed that only the checkpoint knows."""
        monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))
        source = open_rows(sources("parquet")[0].paths, target="label", weight="w", chunk_bytes=8_000)
        whole = LSPC(**self.given.get_params()).set_params(random_state=7).fit(source)
        added, seen = Moments.add, {"n": 0, "stop": 0}

        def interrupted(self, *args, **kwargs):
            seen["n"] += 1
            if seen["n"] == seen["stop"]:
                raise KeyboardInterrupt
            return added(self, *args, **kwargs)

        for stop in (2, 3, 4):
            seen.update(n=0, stop=stop)
            with monkeypatch.context() as patch:
                patch.setattr(Moments, "add", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    self.given.set_params(random_state=7).fit(source, checkpoint=tmp_path)
            assert (tmp_path / "sums-0.npz").exists()
        resumed = self.given.set_params(random_state=99).fit(source, checkpoint=tmp_path)  # the seed is the first one's
        np.testing.assert_array_equal(resumed.coef_, whole.coef_)
        assert not list(tmp_path.iterdir())

    def test_another_fit_is_refused(self, data, sources, small_sample, tmp_path, monkeypatch):
        monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))
        saved = Checkpoint(tmp_path)
        saved.seed(0)
        saved.next_pass("other").save(lambda: Moments.zeros(60, 3), 10)
        with pytest.raises(ValueError, match="holds the sums of another fit"):
            self.given.fit(sources("parquet")[0], checkpoint=tmp_path)
        assert (tmp_path / "sums-0.npz").exists()

    def test_survives_kill_9(self, sources, data, tmp_path):
        """A real process, killed at random moments."""
        paths = [str(path) for path in sources("parquet")[0].paths]
        script = textwrap.dedent(f"""
            import sys, time
            from kproba import LSPC, open_rows
            from kproba.data.checkpoint import Checkpoint
            from kproba.estimators import _reading, lspc
            from kproba.basis.moments import Moments
            _reading.sample_size = lambda d: {SAMPLE}
            Checkpoint.__init__.__defaults__ = (0.0,)
            add = Moments.add
            def slow(self, *args, **kwargs):
                time.sleep(0.03)
                return add(self, *args, **kwargs)
            Moments.add = slow
            source = open_rows({paths!r}, target="label", weight="w", chunk_bytes=3200)
            clf = LSPC(kernel="gaussian", width=2.0, ridge=1e-4, centers=60, link="clip", random_state=5)
            clf.fit(source, checkpoint={str(tmp_path / "c")!r})
            import numpy as np
            np.save({str(tmp_path / "coef.npy")!r}, clf.coef_)
        """)
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        killed = 0
        for _ in range(3):
            process = subprocess.Popen([sys.executable, "-c", script], env=environment)
            before = _row_of(tmp_path / "c")
            for _ in range(600):  # until it has got further than the last one
                time.sleep(0.05)
                if _row_of(tmp_path / "c") > before or process.poll() is not None:
                    break
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
        assert killed == 3 and _row_of(tmp_path / "c") > 0
        subprocess.run([sys.executable, "-c", script], env=environment, check=True)
        source = open_rows(paths, target="label", weight="w", chunk_bytes=3200)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_reading, "sample_size", lambda d: SAMPLE)
            clf = LSPC(kernel="gaussian", width=2.0, ridge=1e-4, centers=60, link="clip", random_state=5).fit(source)
        np.testing.assert_array_equal(np.load(tmp_path / "coef.npy"), clf.coef_)


def _row_of(folder) -> int:
    try:
        with np.load(folder / "sums-0.npz") as held:
            return int(held["row"])
    except (OSError, ValueError):
        return 0


GIVEN = {
    "lspc": LSPC(kernel="gaussian", width=0.7, ridge=1e-2, scaling=None),
    "surface": SurfaceKernelClassifier(kernel="gaussian", width=0.7, scaling=None),
}


class TestPartialFit:
    @pytest.mark.parametrize("name", GIVEN)
    @pytest.mark.parametrize("link", ["clip", "auto"])
    def test_equals_fit_on_all_rows(self, name, link, data):
        from sklearn.base import clone

        X, y, weight = data
        model = clone(GIVEN[name]).set_params(centers=X[:40], link=link, random_state=0)
        whole = clone(model).fit(X, y, weight)
        for k in range(0, N, 700):
            part = slice(k, k + 700)
            model.partial_fit(X[part], y[part], ["yes", "no", "rare"], weight[part])
        np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-6 if name == "surface" else 1e-9)
        np.testing.assert_allclose(
            model.predict_proba(X), whole.predict_proba(X), atol=1e-5 if name == "surface" else 1e-8
        )

    @pytest.mark.parametrize("make", [LSPC, SurfaceKernelClassifier])
    def test_everything_chosen_by_the_first_rows(self, make, data):
        import pickle

        X, y, _ = data
        model = make(random_state=0)
        losses = []
        for k in range(0, 2400, 600):
            model.partial_fit(X[k : k + 600], y[k : k + 600], classes=["no", "rare", "yes"])
            model = pickle.loads(pickle.dumps(model))
            proba = model.predict_proba(X[2400:])
            losses.append(-np.log(proba[np.arange(600), np.searchsorted(model.classes_, y[2400:])]).mean())
        assert losses[-1] < losses[0] and losses[-1] < 0.6
        assert model.fit(X, y).loo_proba_.shape == (N, 3)  # a new fit forgets the parts
        assert not hasattr(model, "_partial")

    def test_refused(self, data):
        X, y, _ = data
        with pytest.raises(ValueError, match="classes must be passed on the first call"):
            LSPC().partial_fit(X, y)
        model = LSPC(width=1.0, ridge=0.1, centers=20).partial_fit(X[:200], y[:200], ["no", "rare", "yes"])
        before = model.coef_
        with pytest.raises(ValueError, match="has the label 'new', which is not among the classes"):
            model.partial_fit(X[:2], ["no", "new"])
        with pytest.raises(ValueError, match="differ from those of the first call"):
            model.partial_fit(X[:2], y[:2], ["no", "yes"])
        with pytest.raises(ValueError, match="X has 3 features"):
            model.partial_fit(X[:2, :3], y[:2])
        with pytest.raises(ValueError, match="class_weight='balanced' needs all rows"):
            LSPC(class_weight="balanced").partial_fit(X, y, ["no", "rare", "yes"])
        np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("weight, seen", [(1.0, 0), (0.2, 0), (1 / N, 1)])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_tiny_weights_count_as_few_rows(call, weight, seen, data, small_sample):
    X, y, _ = data
    model, weights = LSPC(width=1.0, ridge=0.1, centers=20, random_state=0), np.full(N, weight)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        if call == "fit":
            model.fit(ArraySource(X, y, weights))
        else:
            model.partial_fit(X, y, ["no", "rare", "yes"], weights)
    words = [str(each.message) for each in found if each.category is FewRowsWarning]
    assert len(words) == seen and all("sum to 1. A weight counts copies" in word for word in words)


def test_classes_that_no_row_has(data):
    X, y, _ = data
    clf = LSPC(width=1.0, kernel="gaussian", ridge=1e-2, centers=50, random_state=0).fit(X, y, classes=["never"])
    assert list(clf.classes_) == ["never", "no", "rare", "yes"]
    assert clf.predict_proba(X)[:, 0].max() < 0.01


def test_a_new_fit_leaves_nothing_of_the_old_one(data, monkeypatch):
    X, y, _ = data
    frame = pd.DataFrame(X[:500], columns=list("abcd"))
    clf = LSPC(width=1.0, kernel="gaussian", ridge=1e-2, centers=50, random_state=0).fit(frame, y[:500])
    assert hasattr(clf, "loo_proba_") and hasattr(clf, "feature_names_in_")
    monkeypatch.setattr(_reading, "sample_size", lambda d: SAMPLE)
    clf.fit(ArraySource(X, y))
    assert not hasattr(clf, "loo_proba_") and not hasattr(clf, "feature_names_in_")


class TestPredict:
    def test_sources_and_files(self, data, sources, tmp_path):
        X, y, weight = data
        clf = LSPC(kernel="gaussian", width=2.0, ridge=1e-3, centers=50, random_state=0).fit(X, y, weight)
        source = open_rows(sources("parquet")[0].paths, columns=list("abcd"))
        np.testing.assert_allclose(clf.predict_proba(source), clf.predict_proba(X), atol=1e-12)
        assert (clf.predict(source) == clf.predict(X)).all()
        write_probabilities(clf, source, tmp_path / "out.parquet")
        written = pd.read_parquet(tmp_path / "out.parquet")
        np.testing.assert_allclose(written[["proba_no", "proba_rare", "proba_yes"]], clf.predict_proba(X), atol=1e-12)
        assert (written["prediction"] == clf.predict(X)).all()

    def test_dask_rows_stay_dask_rows(self, data, sources):
        X, y, weight = data
        clf = LSPC(kernel="gaussian", width=2.0, ridge=1e-3, centers=50, random_state=0).fit(X, y, weight)
        for kind in ("dask array", "dask frame"):
            rows = sources(kind)[0]
            proba = clf.predict_proba(rows)
            assert hasattr(proba, "compute")
            np.testing.assert_allclose(np.asarray(proba.compute()), clf.predict_proba(X), atol=1e-12)


class TestRefused:
    def test_options_that_need_all_rows(self, sources, small_sample):
        source = sources("parquet")[0]
        for options, message in [
            ({"centers": "all"}, "centers='all' makes every row a centre"),
            ({"loo": True}, "loo=True keeps the scores of all rows"),
            ({"kernel": "precomputed"}, "kernel='precomputed' needs the kernel matrix"),
        ]:
            with pytest.raises(ValueError, match=message):
                LSPC(**options).fit(source)

    def test_labels_beside_files(self, sources, data):
        with pytest.raises(ValueError, match="y cannot be passed together with a source"):
            LSPC().fit(sources("parquet")[0], data[1])

    def test_files_without_target(self, sources):
        with pytest.raises(ValueError, match=r"no labels; use open_rows\(..., target=...\) to name their column"):
            LSPC().fit(open_rows(sources("parquet")[0].paths, columns=list("abcd")))

    def test_unknown_chunk_sizes(self):
        da = pytest.importorskip("dask.array")
        X = da.ones((100, 2), chunks=50)
        X = X[X[:, 0] > 0]
        with pytest.raises(
            ValueError, match=r"X is a Dask array with unknown chunk sizes; call X.compute_chunk_sizes\(\)"
        ):
            LSPC().fit(X, da.ones(100, chunks=50))

    def test_checkpoint_of_a_cluster(self, sources, tmp_path):
        X, y, weight = sources("dask array")
        with pytest.raises(ValueError, match="checkpoint does not apply to a Dask collection"):
            LSPC().fit(X, y, weight, checkpoint=tmp_path / "c")
        assert not (tmp_path / "c").exists()

    def test_dask_rows_with_plain_labels(self):
        da = pytest.importorskip("dask.array")
        with pytest.raises(TypeError, match="y must be a Dask collection partitioned like X, got ndarray"):
            LSPC().fit(da.ones((100, 2), chunks=50), np.ones(100))

    def test_infinity_in_the_middle(self, data, small_sample):
        X, y, _ = data
        X = X.copy()
        X[2500, 1] = np.inf
        with pytest.raises(ValueError, match="Input X contains infinity in column 1, row 2500"):
            LSPC().fit(ArraySource(X, y))


class TestWhatUsersTry:
    """Errors that name what was found and what to do, and leave nothing behind."""

    @pytest.fixture
    def file(self, data, tmp_path):
        frame = pd.DataFrame(np.arange(40.0).reshape(20, 2) % 7, columns=["a", "b"])
        frame.assign(label=["no", "yes"] * 10, part=frame.a / 3, none=0.0).to_parquet(tmp_path / "rows.parquet")
        return tmp_path / "rows.parquet"

    def test_probabilities_over_their_own_rows(self, file):
        clf, before = LSPC().fit(open_rows(file, target="label", columns=["a", "b"])), file.read_bytes()
        with pytest.raises(ValueError, match="is one of the files that rows are read from"):
            write_probabilities(clf, open_rows(file, columns=["a", "b"]), file)
        assert file.read_bytes() == before

    def test_model_that_was_not_fitted(self, file):
        with pytest.raises(NotFittedError):
            write_probabilities(LSPC(), open_rows(file, columns=["a", "b"]), file.with_name("out.parquet"))

    def test_target_that_is_no_class(self, file):
        with pytest.raises(ValueError, match="Unknown label type"):
            LSPC().fit(open_rows(file, target="part", columns=["a", "b"]))

    @pytest.mark.parametrize("make", [LSPC, SurfaceKernelClassifier, KernelLogisticRegression, ImportVectorMachine])
    def test_no_row_has_a_weight(self, file, make):
        with pytest.raises(ValueError, match="weight of every row is zero"):
            make().fit(open_rows(file, target="label", weight="none", columns=["a", "b"]))

    def test_path_and_generator(self, file):
        with pytest.raises(TypeError, match="is a path; pass kproba"):
            LSPC().fit(str(file))
        with pytest.raises(TypeError, match="use partial_fit"):
            LSPC().fit((row for row in np.eye(3)), [0, 1, 0])

    def test_partitions_that_differ(self):
        da = pytest.importorskip("dask.dataframe")
        frame = da.from_pandas(pd.DataFrame({"a": np.arange(60.0), "label": [0, 1] * 30}), npartitions=3)
        with pytest.raises(ValueError, match="a partition of X has"):
            LSPC().fit(frame[frame.a > 30][["a"]], frame.label)

    def test_what_a_source_says_of_itself(self, file):
        assert repr(open_rows(file, target="label", columns=["a", "b"])).endswith("20 rows of 2 columns>")
