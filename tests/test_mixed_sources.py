"""Tables with categories and missing values in files and on Dask: the model is that of the same rows as a frame."""

import io
import pickle
import warnings
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kproba.cli
from kproba import (
    LSPC,
    ImportVectorMachine,
    KernelLogisticRegression,
    SurfaceKernelClassifier,
    UnseenWarning,
    open_rows,
    to_onnx,
    write_probabilities,
)
from kproba.data.formats import MISSING
from kproba.data.look import Look
from kproba.data.mixed import Category, Number
from kproba.data.sources import ArraySource
from test_mixed import frame_of, quick

CLASSIFIERS = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)
#: fitted in milliseconds by all four
GIVEN = {"kernel": "laplacian", "width": 2.0, "random_state": 0}
KINDS = ("parquet", "arrow", "csv", "dask")


def split(frame, at=(70, 70, 150)):
    """Parts of a frame, one of them without rows."""
    edges = [0, *at, len(frame)]
    return [frame.iloc[start:end].reset_index(drop=True) for start, end in pairwise(edges)]


def written(parts, folder, suffix):
    for number, part in enumerate(parts):
        path = folder / f"p{number}.{suffix}"
        if suffix == "csv":
            part.to_csv(path, index=False)
        else:
            part.to_parquet(path) if suffix == "parquet" else part.to_feather(path)
    return f"{folder}/p*.{suffix}"


def partitions(parts):
    """A Dask frame with these partitions, whose types may differ."""
    return dd.from_map(lambda k: parts[k], range(len(parts)), meta=parts[0][:0])


@pytest.fixture(params=KINDS)
def opened(request, tmp_path):
    """A function of a frame and labels that returns what to pass to fit."""

    def make(frame, y, chunk_bytes=1 << 24, **options):
        if request.param == "dask":
            return dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
        where = written(split(frame.assign(label=y)), tmp_path, request.param)
        return (open_rows(where, target="label", chunk_bytes=chunk_bytes, **options),)

    return make


def of(found):
    return np.asarray(found.compute() if hasattr(found, "compute") else found)


class TestSameAsAFrame:
    @pytest.mark.parametrize("make", CLASSIFIERS)
    @pytest.mark.filterwarnings("ignore::kproba.ConvergenceWarning")
    def test_everything_in_the_sample(self, make, opened):
        frame, y = frame_of(200)
        rows = opened(frame, y, chunk_bytes=40 * 60)
        model, expected = make(**GIVEN).fit(*rows), make(**GIVEN).fit(frame, y)
        assert model.columns_ == expected.columns_
        assert list(model.feature_names_in_) == list(frame.columns) and model.n_features_in_ == 5
        for method in ("predict_proba", "predict_log_proba", "decision_function"):
            whole = getattr(expected, method)(frame)
            np.testing.assert_allclose(getattr(model, method)(frame), whole, atol=1e-8)
            np.testing.assert_allclose(of(getattr(model, method)(rows[0])), whole, atol=1e-8)
        assert of(model.predict(rows[0])).tolist() == expected.predict(frame).tolist()

    @pytest.mark.parametrize("make", CLASSIFIERS)
    @pytest.mark.filterwarnings("ignore::kproba.ConvergenceWarning")
    def test_numbers_with_gaps(self, make, opened):
        """Nothing but numbers by their types; the gaps come in the last part."""
        frame, y = frame_of(200, gaps=0.0)
        frame = frame[["age", "visits"]].copy()
        frame.loc[180:190, "age"] = np.nan
        rows = opened(frame, y)
        model, expected = make(**GIVEN).fit(*rows), make(**GIVEN).fit(frame, y)
        assert model.columns_ == expected.columns_ and model.columns_.columns[0].has_gaps
        np.testing.assert_allclose(of(model.predict_proba(rows[0])), expected.predict_proba(frame), atol=1e-8)

    def test_the_learnt_kernel(self, tmp_path):
        frame, y = frame_of(120)
        frame.assign(label=y).to_csv(tmp_path / "x.csv", index=False)
        rows = open_rows(tmp_path / "x.csv", target="label")
        model, expected = LSPC(random_state=0).fit(rows), LSPC(random_state=0).fit(frame, y)
        assert model.kernel_ == expected.kernel_
        np.testing.assert_allclose(model.predict_proba(rows), expected.predict_proba(frame), atol=1e-8)
        np.testing.assert_allclose(model.feature_importances_, expected.feature_importances_)

    @pytest.mark.parametrize("make", CLASSIFIERS)
    @pytest.mark.filterwarnings("ignore::kproba.ConvergenceWarning")
    def test_more_rows_than_the_sample(self, make, opened, monkeypatch):
        """Sums over all rows, with the levels of the sample and the gaps of all rows."""
        monkeypatch.setattr("kproba.estimators._reading.sample_size", lambda d: 90)
        frame, y = frame_of(200)
        frame["visits"] = frame["visits"].astype(float)
        frame.loc[199, "visits"] = np.nan
        frame.loc[198, "city"] = "Paris"
        rows = opened(frame, y, chunk_bytes=40 * 60)
        model = make(**GIVEN).fit(*rows)
        assert model._is_summed_up and model.columns_.columns[4].has_gaps
        found = of(model.predict_proba(rows[0]))
        np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-12)
        assert (model.classes_[found.argmax(axis=1)] == y).mean() > 0.6

    def test_named_columns(self, opened):
        """Codes that are stored as numbers."""
        frame, y = frame_of(200, gaps=0.0)
        frame = frame[["age", "visits"]]
        for named in (["visits"], [1], [False, True]):
            model, expected = (quick(categorical_features=named).fit(*each) for each in (opened(frame, y), (frame, y)))
            assert model.columns_ == expected.columns_ and model.columns_.categorical == (1,)

    def test_no_categories_allowed(self, opened):
        frame, y = frame_of(200)
        with pytest.raises(ValueError, match="column 'city' of X holds values that are not numbers"):
            quick(categorical_features=None).fit(*opened(frame, y))

    def test_weights(self, tmp_path):
        frame, y = frame_of(120)
        weight = np.arange(120.0) % 3
        frame.assign(label=y, w=weight).to_parquet(tmp_path / "x.parquet")
        model = quick().fit(open_rows(tmp_path / "x.parquet", target="label", weight="w"))
        expected = quick().fit(frame, y, weight).predict_proba(frame)
        np.testing.assert_allclose(model.predict_proba(frame), expected, atol=1e-8)


class TestFiles:
    @pytest.fixture
    def model(self):
        frame, y = frame_of(200)
        return quick().fit(frame, y)

    @pytest.mark.parametrize("suffix", ["parquet", "csv"])
    def test_write_probabilities(self, model, suffix, tmp_path):
        """Columns are found by their names, in chunks of any size."""
        frame, _ = frame_of(200)
        where = written(split(frame[frame.columns[::-1]]), tmp_path, suffix)
        write_probabilities(model, open_rows(where, chunk_bytes=40 * 7), tmp_path / "out.parquet")
        found = pd.read_parquet(tmp_path / "out.parquet")
        np.testing.assert_allclose(found.iloc[:, :2], model.predict_proba(frame), atol=1e-12)
        assert found["prediction"].tolist() == model.predict(frame).tolist()

    def test_model_files_and_onnx(self, opened, tmp_path):
        frame, y = frame_of(200)
        model = quick().fit(*opened(frame, y))
        kproba.save(model, tmp_path / "m.kproba")
        again = kproba.load(tmp_path / "m.kproba")
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(model)).predict_proba(frame), again.predict_proba(frame)
        )
        session = onnxruntime.InferenceSession(to_onnx(model, dtype="float64").SerializeToString())
        feed = {name: frame[[name]].to_numpy(np.float64) for name in ("age", "visits")}
        texts = frame[["city", "member", "size"]].astype(object)
        feed |= {name: texts[[name]].where(texts[[name]].notna(), "").astype(str).to_numpy(object) for name in texts}
        np.testing.assert_allclose(session.run(None, feed)[1], model.predict_proba(frame), atol=1e-8)

    def test_partial_fit_of_the_parts(self, tmp_path):
        frame, y = frame_of(200)
        where = written(split(frame.assign(label=y)), tmp_path, "csv")
        model, expected = quick(centers=frame[:30]), quick(centers=frame[:30])
        for chunk in open_rows(where, target="label", chunk_bytes=40 * 60).tables():
            model.partial_fit(chunk.X, chunk.y, classes=["no", "yes"])
            rows = slice(chunk.start, chunk.start + chunk.n_rows)
            expected.partial_fit(frame[rows], y[rows], classes=["no", "yes"])
        np.testing.assert_allclose(model.predict_proba(frame), expected.predict_proba(frame), atol=1e-8)

    def test_checkpoint(self, tmp_path, monkeypatch):
        monkeypatch.setattr("kproba.estimators._reading.sample_size", lambda d: 90)
        frame, y = frame_of(200)
        where = written(split(frame.assign(label=y)), tmp_path, "parquet")
        rows = open_rows(where, target="label", chunk_bytes=40 * 60)
        first, second = (quick(random_state=0).fit(rows, checkpoint=tmp_path / name) for name in "ab")
        np.testing.assert_array_equal(first.predict_proba(frame), second.predict_proba(frame))

    def test_a_word_late_in_a_file_of_numbers(self, tmp_path):
        """pyarrow takes the column for numbers until it meets the word."""
        path, n = tmp_path / "x.csv", 150_000
        lines = [f"{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(n)]
        lines[-1] = "unknown,0,b"
        path.write_text("u,v,label\n" + "\n".join(lines) + "\n")
        with warnings.catch_warnings(record=True):
            model = quick(centers=50, random_state=0).fit(open_rows(path, target="label"))
        assert model.columns_.columns == (Number(3.0, False), Number(2.0, False))
        with pytest.warns(UnseenWarning, match="missing values in the column 'u'"):
            found = model.predict_proba(open_rows(path, columns=["u", "v"]))
        np.testing.assert_allclose(found[-1], model.predict_proba(pd.DataFrame({"u": [3], "v": [0]}))[0])

    def test_spaces_before_cells(self, tmp_path):
        """As in the files of the UCI repository, where a missing value may follow the space."""
        (tmp_path / "x.csv").write_text("a,b,y\n" + "Rome, Oslo, 0\nRome, ?, 1\n" * 20)
        model = quick().fit(open_rows(tmp_path / "x.csv", target="y"))
        assert [column.levels for column in model.columns_.columns] == [("Rome",), ("Oslo",)]
        assert model.predict(pd.DataFrame({"a": ["Rome"] * 2, "b": ["Oslo", None]})).tolist() == [0, 1]

    def test_truth_values(self, tmp_path):
        """However they are written, they are those of a frame."""
        (tmp_path / "x.csv").write_text("a,b,y\n" + "Rome,true,0\nOslo,FALSE,1\n" * 20)
        model = quick().fit(open_rows(tmp_path / "x.csv", target="y", chunk_bytes=16 * 5))
        assert model.columns_.columns[1].levels == ("False", "True")
        assert model.predict(pd.DataFrame({"a": ["Rome", "Oslo"], "b": [True, False]})).tolist() == [0, 1]

    def test_gaps_in_new_rows_of_numbers(self, tmp_path):
        """As in memory: the median takes their place, with a warning."""
        X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
        model = quick().fit(pd.DataFrame(X, columns=list("abc")), y)
        X[2, 1] = np.nan
        frame = pd.DataFrame(X, columns=list("abc"))
        frame.to_parquet(tmp_path / "x.parquet")
        rows = [open_rows(tmp_path / "x.parquet"), dd.from_pandas(frame, npartitions=2), frame]
        found = []
        for each in rows:
            with pytest.warns(UnseenWarning, match="missing values in the column 'b'"):
                found.append(of(model.predict_proba(each)))
        np.testing.assert_array_equal(found[0], found[2])
        # a partition at a time: products of fewer rows may round differently
        with pytest.warns(UnseenWarning):
            first = model.predict_proba(frame[:30])
        np.testing.assert_array_equal(found[1], np.concatenate([first, model.predict_proba(frame[30:])]))

    def test_strings_for_a_model_of_numbers(self, tmp_path):
        model = quick().fit(
            pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"]), [0, 1] * 30
        )
        (tmp_path / "x.csv").write_text("a,b\n1,Rome\n2,Oslo\n")
        with pytest.raises(ValueError, match=r"column 'b' of .* holds strings or categories, not numbers"):
            model.predict(open_rows(tmp_path / "x.csv"))

    def test_codes_with_gaps(self, tmp_path):
        """pandas writes them with decimals, so that the file has 3.0 where the frame has the level 3."""
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"a": rng.normal(size=80), "zip": rng.integers(1, 5, 80).astype(float)})
        frame.loc[:5, "zip"], frame.loc[6, "zip"] = np.nan, 0.5
        y = np.where(frame.zip.isin([2, 3]), "p", "q")
        frame.assign(y=y).to_csv(tmp_path / "x.csv", index=False)
        rows = open_rows(tmp_path / "x.csv", columns=["a", "zip"])
        of_frame = quick(categorical_features=["zip"]).fit(frame, y)
        of_file = quick(categorical_features=["zip"]).fit(open_rows(tmp_path / "x.csv", target="y"))
        assert of_file.columns_.columns[1] == of_frame.columns_.columns[1]
        np.testing.assert_array_equal(of_frame.predict_proba(rows), of_frame.predict_proba(frame))
        np.testing.assert_array_equal(of_file.predict_proba(rows), of_file.predict_proba(frame))

    def test_unseen_levels_everywhere(self, model, tmp_path):
        frame, _ = frame_of(200)
        frame.assign(city="Rio").to_csv(tmp_path / "x.csv", index=False)
        with pytest.warns(UnseenWarning, match="column 'city': 200 of the 200 values, such as 'Rio'"):
            model.predict(open_rows(tmp_path / "x.csv"))


class TestArrays:
    @pytest.mark.parametrize("as_rows", [ArraySource, lambda X, y: (da.from_array(X, 50), da.from_array(y, 50))])
    def test_matrices_with_gaps(self, as_rows):
        X, y = np.random.default_rng(0).normal(size=(120, 3)), np.arange(120) % 2
        X[100, 1] = np.nan
        rows = as_rows(X, y)
        model = quick().fit(*rows) if isinstance(rows, tuple) else quick().fit(rows)
        expected = quick().fit(X, y)
        assert model.columns_ == expected.columns_
        new = rows[0] if isinstance(rows, tuple) else rows
        np.testing.assert_allclose(of(model.predict_proba(new)), expected.predict_proba(X), atol=1e-8)

    def test_infinity_is_refused(self):
        X, y = np.ones((120, 2)), np.arange(120) % 2
        X[100, 1] = np.inf
        with pytest.raises(ValueError, match="Input X contains infinity in column 1, row 100"):
            quick().fit(ArraySource(X, y))


#: Columns that break shortcuts: a function of the part number and its rows, and the part that shows what is special.
AWKWARD = {
    "gaps in one part": lambda k, n, rng: rng.normal(size=n).round(1) if k else np.full(n, np.nan),
    "no value at all": lambda k, n, rng: np.full(n, np.nan),
    "one level": lambda k, n, rng: ["same"] * n,
    "one level or none": lambda k, n, rng: [None if k == 1 else "same"] * n,
    "integers with gaps": lambda k, n, rng: pd.array(
        [None if k and u < 0.3 else int(9 * u) for u in rng.random(n)], dtype="Int64"
    ),
    "booleans with gaps": lambda k, n, rng: [None if k == 1 and u < 0.3 else bool(u < 0.6) for u in rng.random(n)],
    "a level of the last part": lambda k, n, rng: rng.choice(["a", "b"] if k < 2 else ["a", "z"], n),
    "numbers in one part": lambda k, n, rng: rng.choice(["1", "2"] if k == 0 else ["x", "y", "2"], n),
    "numbers, then words": lambda k, n, rng: rng.integers(0, 3, n) if k == 0 else rng.choice(["0", "u", "v"], n),
    "whole, then broken": lambda k, n, rng: rng.integers(0, 5, n) if k == 0 else rng.normal(size=n).round(1),
    "leading zeros": lambda k, n, rng: rng.choice(["01", "02"] if k else ["01", "x1"], n),
    "order of categories": lambda k, n, rng: pd.Categorical(
        rng.choice(["S", "M", "L"], n), categories=[["S", "M", "L"], ["L", "M", "S"], ["M", "S", "L", "XL"]][k]
    ),
    "codes as categories": lambda k, n, rng: pd.Categorical(rng.choice(["1", "2", "3"], n)),
    "empty strings": lambda k, n, rng: rng.choice(["", "a", "b"], n),
    "decimal commas": lambda k, n, rng: rng.choice(["1.234,5", "2,5"] if k == 0 else ["1.234", "17"], n),
}


def concatenated(parts):
    """The rows as one frame; pandas makes objects of categories in another order, which stay categories here."""
    whole = {}
    for name in parts[0].columns:
        pieces = [part[name] for part in parts]
        is_category = any(str(piece.dtype) == "category" for piece in pieces)
        column = pd.concat([piece.astype(object) for piece in pieces], ignore_index=True).infer_objects()
        whole[name] = column.astype("category") if is_category else column
    return pd.DataFrame(whole)


@st.composite
def awkward_parts(draw):
    """Three parts of some awkward columns and a number, and labels; a part may have no rows."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    names = draw(st.lists(st.sampled_from(sorted(AWKWARD)), min_size=1, max_size=4, unique=True))
    sizes = draw(st.permutations([draw(st.sampled_from([0, 1, 40])), 30, 25]))
    parts = []
    for k, n in enumerate(sizes):
        part = {name: pd.Series(AWKWARD[name](k, n, rng)) for name in names}
        parts.append(pd.DataFrame({"x": rng.normal(size=n).round(2), **part}))
    n = sum(sizes)
    return parts, np.where(rng.permutation(n) < n / 2, "no", "yes")


def agree(model, expected, frame, rows):
    assert model.columns_ == expected.columns_
    np.testing.assert_allclose(model.predict_proba(frame), expected.predict_proba(frame), atol=1e-8)
    np.testing.assert_allclose(of(model.predict_proba(rows)), expected.predict_proba(frame), atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(awkward_parts(), st.sampled_from(["parquet", "arrow", "csv"]), st.sampled_from([1 << 20, 8 * 17]))
@pytest.mark.filterwarnings("ignore::kproba.KprobaWarning")
def test_awkward_files(tmp_path_factory, given, suffix, chunk_bytes):
    parts, y = given
    folder, frame = tmp_path_factory.mktemp("awkward"), concatenated(parts)
    ends = np.cumsum([len(part) for part in parts])
    where = written([part.assign(label=y[end - len(part) : end]) for part, end in zip(parts, ends)], folder, suffix)
    if suffix == "csv":
        text = frame.to_csv(index=False)
        frame = pd.read_csv(io.StringIO(text), na_values=MISSING, keep_default_na=False, low_memory=False)
    rows = open_rows(where, target="label", chunk_bytes=chunk_bytes)
    agree(quick().fit(rows), quick().fit(frame, y), frame, rows)


@settings(max_examples=15, deadline=None)
@given(awkward_parts())
@pytest.mark.filterwarnings("ignore::kproba.KprobaWarning", "ignore::UserWarning")
def test_awkward_partitions(given):
    parts, y = given
    ends = np.cumsum([len(part) for part in parts])
    labels = [pd.Series(y[end - len(part) : end], dtype=object) for part, end in zip(parts, ends)]
    frame = concatenated(parts)
    with dask.config.set({"dataframe.convert-string": False}):
        rows = partitions(parts)
        model = quick().fit(rows, dd.from_map(lambda k: labels[k], range(3), meta=labels[0][:0]))
        agree(model, quick().fit(frame, y), frame, rows)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(1, 60), st.integers(0, 99))
def test_looks_add_up(sizes, size, seed):
    """The sample does not depend on how the rows are divided, nor on the order of the sum."""
    frame = pd.DataFrame({"a": np.arange(sum(sizes)), "b": [None, "x"] * (sum(sizes) // 2) + ["y"] * (sum(sizes) % 2)})
    whole = Look.at(frame, 0, size, seed)
    edges = np.cumsum([0, *sizes])
    looks = [Look.at(frame.iloc[start:end], int(start), size, seed) for start, end in pairwise(edges)]
    for order in (looks, looks[::-1]):
        total = sum(order[1:], order[0])
        assert set(total.table["a"]) == set(whole.table["a"]) and len(total.table) == min(size, len(frame))
        np.testing.assert_array_equal(total.gaps, whole.gaps)


def test_a_look_finds_categories_of_any_part():
    parts = [pd.DataFrame({"a": ["1", "2"]}), pd.DataFrame({"a": pd.Categorical(["3", "4"])})]
    look = Look.at(parts[0], 0, 10, 0) + Look.at(parts[1], 2, 10, 0)
    assert look.table["a"].dtype == "category" and look.table["a"].tolist() == ["1", "2", "3", "4"]
    assert isinstance(quick().fit(look.table, [0, 1, 0, 1]).columns_.columns[0], Category)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_number_means_the_same_in_every_chunk(tmp_path, suffix):
    """Whether 8.500 is more than eight thousand may depend on a row of another chunk."""
    people = np.random.default_rng(0).integers(1000, 9000, 120)
    frame = pd.DataFrame({"people": people, "kind": pd.Categorical(["a", "b"] * 60)})
    model = LSPC(**GIVEN, ridge=0.01).fit(frame, np.where(people > 3000, "big", "small"))
    new = frame.assign(people=["1.234,5", *(f"{each:,}".replace(",", ".") for each in people[1:])])
    path = tmp_path / f"new.{suffix}"
    new.to_csv(path, sep=";", index=False) if suffix == "csv" else new.to_parquet(path)
    expected = model.predict_proba(new)
    for chunk_bytes in (1 << 24, 160):
        source = open_rows(path, chunk_bytes=chunk_bytes)
        np.testing.assert_allclose(model.predict_proba(source), expected)
        write_probabilities(model, source, tmp_path / "out.csv")
        np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["proba_big"], expected[:, 0])
    kproba.save(model, tmp_path / "m.kproba")
    words = ("predict", path, "--model", tmp_path / "m.kproba", "--out", tmp_path / "out.csv", "--chunk-rows", 20)
    assert kproba.cli.main([str(word) for word in words]) == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["proba_big"], expected[:, 0])
