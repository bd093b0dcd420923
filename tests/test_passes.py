"""A source that gives other rows or labels in a later pass is refused: a fit would mix the two."""

import numpy as np
import pandas as pd
import pytest

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier, open_rows
from kproba.data.passes import Checksum, PassRecord
from kproba.data.sources import ArraySource, Chunk, Source
from kproba.estimators import _reading

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] > 0).astype(int)
SHUFFLED = RNG.permutation(Y)
MODELS = {
    "lspc": LSPC(kernel="gaussian", width=2.0, ridge=1e-2, centers=10, link="clip"),
    "klr": KernelLogisticRegression(kernel="gaussian", width=2.0, ridge=1e-2, centers=10),
    "ivm": ImportVectorMachine(kernel="gaussian", width=2.0, ridge=1e-2),
    "surface": SurfaceKernelClassifier(kernel="gaussian", width=2.0, n_centers=10),
}


class Changing(Source):
    """Gives other rows from its second pass on."""

    feature_names, n_features, n_rows, dtype, name = None, 2, N, np.dtype(float), "the rows"

    def __init__(self, first, later):
        self.passes, self.chunk_bytes, self.n_passes = (first, later), 100 * 16, 0

    def chunks(self, start_row=0, columns_only=False):
        inputs, y, weight = self.passes[min(self.n_passes, 1)]
        self.n_passes += 1
        for start in range(start_row, len(inputs), self.chunk_rows):
            part = slice(start, start + self.chunk_rows)
            yield Chunk(inputs[part], y[part], None if weight is None else weight[part], start)


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    monkeypatch.setattr(_reading, "sample_size", lambda d: 100)


@pytest.mark.parametrize("name", MODELS)
def test_labels_shuffled_between_passes(name):
    """All four classifiers; before, the result was a model of noise."""
    with pytest.raises(ValueError, match=r"the rows: rows 0 to 99 .*have other labels than in the first pass"):
        MODELS[name].fit(Changing((X, Y, None), (X, SHUFFLED, None)))
    MODELS[name].fit(Changing((X, Y, None), (X, Y, None)))


@pytest.mark.parametrize(
    ("later", "what"),
    [
        ((X[::-1].copy(), Y, None), "other inputs than"),
        ((X + np.eye(N, 2)[::-1] * 1e-12, Y, None), "rows 300 to 399 .*other inputs than"),
        ((X[::-1].copy(), Y[::-1].copy(), None), "other inputs and labels than"),
        ((X, Y, np.full(N, 2.0)), "other weights than"),
        ((X[:300], Y[:300], None), "had 400 rows and now has 300"),
        ((np.vstack([X, X[:100]]), np.append(Y, Y[:100]), None), "had 400 rows and now has 500"),
    ],
    ids=["order", "one value", "both", "weights", "fewer", "more"],
)
def test_what_has_changed(later, what):
    with pytest.raises(ValueError, match=what):
        MODELS["lspc"].fit(Changing((X, Y, None), later))


def test_words_as_labels():
    words, other = np.array(["no", "yes"], dtype=object)[Y], np.array(["no", "yes"], dtype=object)[SHUFFLED]
    with pytest.raises(ValueError, match="other labels"):
        MODELS["lspc"].fit(Changing((X, words, None), (X, other, None)))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_a_file_that_is_written_anew(tmp_path, suffix, monkeypatch):
    """The same number of rows, other labels."""
    pytest.importorskip("pyarrow")
    path, frame = tmp_path / f"t.{suffix}", pd.DataFrame(X, columns=["a", "b"])
    writers = {
        "csv": lambda table: table.to_csv(path, index=False),
        "parquet": lambda table: table.to_parquet(path, index=False),
        "arrow": lambda table: table.to_feather(path),
    }
    writers[suffix](frame.assign(y=Y))
    look = _reading.summarise

    def then_changed(self, *args):
        found = look(self, *args)
        path.unlink()  # an open memory map keeps the old file
        writers[suffix](frame.assign(y=SHUFFLED))
        return found

    monkeypatch.setattr(_reading, "summarise", then_changed)
    with pytest.raises(ValueError, match="other labels than in the first pass"):
        MODELS["lspc"].fit(open_rows(path, target="y"))


def test_memory_maps_and_arrays(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    look = _reading.summarise
    for inputs in (np.load(tmp_path / "X.npy", mmap_mode="r+"), X.copy()):
        labels = Y.copy()

        def then_changed(self, *args, labels=labels, look=look):
            found = look(self, *args)
            labels[:] = SHUFFLED
            return found

        monkeypatch.setattr(_reading, "summarise", then_changed)
        with pytest.raises(ValueError, match="other labels"):
            MODELS["lspc"].fit(ArraySource(inputs, labels))


def test_inputs_in_memory_cost_nothing(monkeypatch):
    """They are what they were, and reading them once more takes as long as few centres do; a file may have changed."""
    seen, of = [], Checksum.of
    monkeypatch.setattr(Checksum, "of", lambda X, y, weight: seen.append(X is None) or of(X, y, weight))
    MODELS["lspc"].fit(ArraySource(X, Y))
    MODELS["lspc"].fit(Changing((X, Y, None), (X, Y, None)))
    assert seen == [True] * 2 + [False] * 8


def test_dask_partitions_that_are_computed_anew():
    da = pytest.importorskip("dask.array")
    calls = []

    def shuffled(block):
        calls.append(1)
        return np.random.default_rng(len(calls)).permutation(block)

    rows, y = da.from_array(X, chunks=(100, 2)), da.from_array(Y, chunks=100)
    with pytest.raises(ValueError, match=r"partition \d.* have other labels .*persist"):
        MODELS["lspc"].fit(rows, y.map_blocks(shuffled, meta=Y[:0]))
    MODELS["lspc"].fit(rows, y)


class TestChecksum:
    def test_order_counts(self):
        same, other = Checksum.of(X, Y, None), Checksum.of(X[::-1], Y[::-1], None)
        assert same == Checksum.of(np.asfortranarray(X), Y.copy(), None)
        assert same.inputs != other.inputs and same.labels != other.labels

    def test_labels_of_any_kind(self):
        kinds = [["a", "b"], ["ab", ""], [1, 2], [1, "2"], [True, False], [None, "b"], ["\ud800", "b"]]
        found = {Checksum.of(None, np.array(labels, dtype=object), None) for labels in kinds}
        assert len(found) == len(kinds)
        assert Checksum.of(None, np.array([]), None) == Checksum.of(None, None, None)

    def test_a_record_is_of_one_source(self):
        one, other = PassRecord(), PassRecord()
        for record, labels in ((one, Y), (other, 1 - Y)):
            assert sum(chunk.n_rows for chunk in record.chunks(ArraySource(X, labels, chunk_bytes=1600))) == N
        assert one.identity != other.identity and len(one.identity) == 4
        assert sum(chunk.n_rows for chunk in one.chunks(ArraySource(X, Y, chunk_bytes=1600), 200)) == 200
