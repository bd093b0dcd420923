"""Tables of mixed columns, chunk by chunk: types that all rows settle, rows by their numbers, sources of numbers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer

from kproba import LSPC, open_rows, write_probabilities
from kproba.data.formats import MISSING
from kproba.data.tables import LabelledTable, TableSource, open_table
from kproba.estimators import _reading

pa = pytest.importorskip("pyarrow")
N = 100


def mixed(n=N):
    """Columns that a part of the rows would take for something else."""
    numbers = np.arange(n)
    return pd.DataFrame(
        {
            "whole": numbers,
            "gap": np.where(numbers == 70, np.nan, numbers),
            "late": [f"{i:02d}" if i < 80 else f"x{i}" for i in numbers],
            "truth": numbers % 3 == 0,
            "maybe": pd.Series([None if i > 90 else i % 2 == 0 for i in numbers], dtype=object),
            "empty_at_first": [None if i < 60 else "word" for i in numbers],
            "none": np.full(n, np.nan),
            "label": [None if i % 10 == 9 else ("a", "b")[i % 2] for i in numbers],
        }
    )


TYPES = {
    "whole": "int64",
    "gap": "float64",
    "late": "str",
    "truth": "bool",
    "maybe": "boolean",
    "empty_at_first": "str",
    "none": "float64",
    "label": "str",
}


@pytest.fixture(params=["csv", "tsv", "csv.gz", "parquet", "feather", "xlsx", "folder", "glob"])
def path(request, tmp_path):
    """The same rows in every kind of file, and in several."""
    frame, kind = mixed(), request.param
    if kind in ("folder", "glob"):
        for number, start in enumerate((0, 30, 65)):
            part = frame.iloc[start : (30, 65, N)[number]]
            part[frame.columns[:: (-1) ** number]].to_csv(tmp_path / f"part{number}.csv", index=False)
        return tmp_path if kind == "folder" else f"{tmp_path}/*.csv"
    path = tmp_path / f"t.{kind}"
    if kind in ("parquet", "feather"):
        getattr(frame, f"to_{kind}")(path)
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return path


def opened(path, rows=15):
    return open_table(path, "excel" if str(path).endswith("xlsx") else None, rows)


class TestTable:
    def test_types_are_those_of_all_rows(self, path):
        table = opened(path).settled()
        # Excel keeps truth values beside gaps as 1 and 0
        expected = TYPES | ({"maybe": "float64"} if str(path).endswith("xlsx") else {})
        assert table.types == expected
        frames = list(table.frames())
        assert len(frames) > 5 and sum(map(len, frames)) == N
        for frame in frames:
            assert {name: "str" if name in ("late", "empty_at_first", "label") else str(frame[name].dtype)
                    for name in frame.columns} == expected  # fmt: skip

    def test_values(self, path):
        found = pd.concat(opened(path).settled().frames(), ignore_index=True)
        expected = mixed()
        assert list(found.columns) == list(expected.columns)
        for name in found.columns:
            assert (found[name].isna() == expected[name].isna()).all()
            known = expected[name].notna()
            assert found[name][known].tolist() == expected[name][known].tolist()

    def test_whole(self, path):
        found, expected = opened(path).whole(), mixed()
        for name in found.columns:
            known = expected[name].notna()
            assert found[name][known].tolist() == expected[name][known].tolist()

    @pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
    def test_integers_with_gaps(self, tmp_path, suffix):
        """Where that is asked for they keep all digits; what a file has as floats stays one of floats."""
        ids, path = [None if i == 17 else 2**53 + i for i in range(40)], tmp_path / f"t.{suffix}"
        frame = pd.DataFrame({"id": pd.array(ids, dtype="Int64"), "float": np.where(np.arange(40) == 5, np.nan, 2.0)})
        frame["late"] = pd.array([None] * 30 + [2**53 + 1] * 10, dtype="Int64")
        frame["none"] = np.full(40, np.nan)
        getattr(frame, f"to_{suffix}")(path, **({"index": False} if suffix == "csv" else {}))
        table = open_table(path, frame_rows=10).settled(exact=["id", "float", "late", "none"])
        found = pd.concat(table.frames(), ignore_index=True)
        assert found["id"].astype(object).where(found["id"].notna(), None).tolist() == ids
        assert str(found["late"].dtype) == "Int64" and found["late"].dropna().tolist() == [2**53 + 1] * 10
        assert str(found["float"].dtype) == str(found["none"].dtype) == "float64"
        whole = open_table(path).whole(["id"])["id"]
        assert whole.astype(object).where(whole.notna(), None).tolist() == ids

    def test_some_columns_in_an_order(self, path):
        frame = next(opened(path).frames(["late", "whole"]))
        assert list(frame.columns) == ["late", "whole"]

    def test_arrow_types_of_their_own(self, tmp_path):
        """Dictionaries, days and decimals, and an index that is no column."""
        from decimal import Decimal

        frame = pd.DataFrame({"c": pd.Categorical(list("abca")), "d": [Decimal("1.5")] * 4}, index=[4, 5, 6, 7])
        frame["day"] = pd.date_range("2020-01-01", periods=4).date
        frame.to_parquet(tmp_path / "t.parquet")
        table = open_table(tmp_path / "t.parquet", frame_rows=2)
        assert table.columns == ["c", "d", "day"]
        first = next(table.frames())
        assert first["c"].tolist() == ["a", "b"] and first["d"].tolist() == [1.5, 1.5]
        assert first["day"].dtype.kind == "M"

    def test_a_file_of_other_columns(self, tmp_path):
        mixed().to_csv(tmp_path / "a.csv", index=False)
        mixed().drop(columns="gap").to_csv(tmp_path / "b.csv", index=False)
        with pytest.raises(ValueError, match=r"b\.csv lacks the column 'gap' of .*a\.csv"):
            open_table(tmp_path)

    def test_a_line_of_too_many_cells(self, tmp_path):
        """A pass that reads some of the columns alone would not see it."""
        (tmp_path / "t.csv").write_text("a,b,c\n" + "1,2,3\n" * 20 + "1,2,3,4\n")
        table = open_table(tmp_path / "t.csv", frame_rows=6)
        for read in (table.settled, lambda: list(table.frames(["a", "b"]))):
            with pytest.raises(ValueError, match=r"t\.csv cannot be read as CSV"):
                read()

    def test_open_rows_of_tabs(self, tmp_path):
        mixed()[["whole", "gap", "truth"]].dropna().to_csv(tmp_path / "x.tsv", index=False, sep="\t")
        source = open_rows(tmp_path / "x.tsv", target="truth")
        assert sum(chunk.n_rows for chunk in source.chunks()) == N - 1
        write_probabilities(LSPC().fit(source), source, tmp_path / "out.tsv")
        assert pd.read_csv(tmp_path / "out.tsv", sep="\t").columns.tolist() == [
            "proba_False",
            "proba_True",
            "prediction",
        ]


#: Cells that a few rows alone would take for something else than all rows of the column.
CELLS = ["", "?", "NA", "None", "0", "1", "01", "-2", "2.5", "1e3", "inf", "True", "false", "x", " y", "a b", "é",
         "2020-01-01", "9007199254740993", '"q,r"', '"two\nlines"']  # fmt: skip
columns_of_cells = st.lists(st.sampled_from(CELLS), min_size=1, max_size=3, unique=True)


def plain_values(column) -> list:
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna())]


class TestEveryWayOfReading:
    @given(columns=st.lists(columns_of_cells, min_size=1, max_size=3), rows=st.integers(1, 9), size=st.integers(1, 5),
           data=st.data())  # fmt: skip
    def test_at_once_and_in_chunks(self, tmp_path_factory, columns, rows, size, data):
        path = tmp_path_factory.mktemp("t") / "t.csv"
        lines = [[data.draw(st.sampled_from(cells)) for cells in columns] for _ in range(rows)]
        names = [f"c{j}" for j in range(len(columns))]
        text = "\n".join(",".join([*line, str(i)]) for i, line in enumerate([names, *lines]))
        path.write_text(text.replace(",0\n", ",row\n", 1))
        whole, chunked = open_table(path).whole(), pd.concat(open_table(path, frame_rows=size).settled().frames())
        assert whole.columns.tolist() == chunked.columns.tolist() == [*names, "row"]
        for name in whole.columns:
            assert plain_values(whole[name]) == plain_values(chunked[name])

    @given(numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12),
           size=st.integers(1, 5), mark=st.sampled_from(",;|\t"))  # fmt: skip
    def test_numbers_in_a_matrix_and_in_a_table(self, tmp_path_factory, numbers, size, mark):
        """The same numbers to the last bit, as in the file."""
        folder = tmp_path_factory.mktemp("t")
        frame = pd.DataFrame({"a": numbers, "b": numbers[::-1]})
        frame.to_csv(folder / "t.csv", index=False, sep=mark)
        frame.to_parquet(folder / "t.parquet")
        for name in ("t.csv", "t.parquet"):
            rows = np.concatenate([chunk.X for chunk in open_rows(folder / name, chunk_bytes=16 * size).chunks()])
            np.testing.assert_array_equal(rows, frame.to_numpy())
            table = pd.concat(open_table(folder / name, frame_rows=size).settled().frames())
            np.testing.assert_array_equal(table.to_numpy(), frame.to_numpy())

    @pytest.mark.parametrize("missing", MISSING)
    def test_missing_values(self, tmp_path, missing):
        (tmp_path / "t.csv").write_text(f"a,b\n1,2\n{missing},4\n")
        (chunk,) = open_rows(tmp_path / "t.csv").chunks()
        expected = [[1, 2], [np.nan, 4]]
        np.testing.assert_array_equal(chunk.X, expected)
        np.testing.assert_array_equal(open_table(tmp_path / "t.csv").whole().to_numpy(), expected)

    @pytest.mark.parametrize("suffix", ["csv.gz", "csv.bz2", "csv.xz", "txt", "TSV"])
    def test_suffixes(self, tmp_path, suffix):
        path, frame = tmp_path / f"t.{suffix}", pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
        frame.to_csv(path, index=False, sep="\t" if suffix == "TSV" else ",")
        np.testing.assert_array_equal(open_table(path).whole().to_numpy(), frame.to_numpy())
        (chunk,) = open_rows(path, format="csv" if suffix == "txt" else None).chunks()
        np.testing.assert_array_equal(chunk.X, frame.to_numpy())


class TestLabelledTable:
    @pytest.fixture
    def rows(self, path):
        return LabelledTable.of(opened(path).settled(), ["whole", "gap", "late"], "label")

    def test_rows_without_a_label(self, rows):
        assert rows.shape == (90, 3) and rows.n_missing == 10
        assert rows.counts == {"a": 50, "b": 40}
        assert rows.labels().tolist() == mixed()["label"].dropna().tolist()

    def test_take(self, rows):
        known = mixed().dropna(subset="label").reset_index(drop=True)
        numbers = np.array([80, 3, 41, 3, 0])
        assert rows.take(numbers)["whole"].tolist() == known["whole"].iloc[numbers].tolist()
        assert list(rows.take(numbers).columns) == ["whole", "gap", "late"]

    def test_sample(self, rows):
        first, again, other = (rows.labelled_sample(seed, 30).frame for seed in (0, 0, 1))
        pd.testing.assert_frame_equal(first, again)
        assert first["whole"].tolist() != other["whole"].tolist()
        assert len(first) == 30 and first["whole"].is_monotonic_increasing
        assert first["whole"].min() < 20 and first["whole"].max() > 80
        assert rows.labelled_sample(0).frame["whole"].tolist() == rows.whole()["whole"].tolist()

    @pytest.mark.parametrize("labels", [[True, False], [3, 4], [0.0, 1.0]])
    def test_labels_stay_what_they_are(self, tmp_path, labels):
        frame = pd.DataFrame({"x": range(40), "y": pd.Series(labels * 20, dtype=object)})
        frame.loc[35, "y"] = None
        frame.to_csv(tmp_path / "t.csv", index=False)
        found = LabelledTable.of(open_table(tmp_path / "t.csv", frame_rows=7).settled(), ["x"], "y")
        assert set(found.counts) == set(labels)
        assert found.labels().dtype.kind == ("b" if labels[0] is True else "i")  # whole numbers are no fractions


class TestTableSource:
    @pytest.fixture
    def rows(self, path):
        return LabelledTable.of(opened(path).settled(), ["whole", "gap"], "label")

    @pytest.fixture
    def source(self, rows):
        return TableSource(rows, SimpleImputer().fit(rows.whole()), weight="whole")

    @pytest.mark.parametrize("start", [0, 1, 13, 14, 60, 89, 90])
    def test_begins_anywhere(self, source, start):
        chunks = list(source.chunks(start))
        assert sum(chunk.n_rows for chunk in chunks) == source.n_rows - start
        whole = np.concatenate([chunk.X for chunk in source.chunks()])
        for chunk in chunks:
            np.testing.assert_array_equal(chunk.X, whole[chunk.start : chunk.start + chunk.n_rows])
            np.testing.assert_array_equal(chunk.weight, chunk.X[:, 0])
        assert not chunks or chunks[0].start == start

    def test_same_model_as_an_array(self, rows, monkeypatch):
        """Fewer rows are kept in memory than there are: all of them are summed up chunk by chunk."""
        monkeypatch.setattr(_reading, "sample_size", lambda d: 40)
        imputer, X, w = SimpleImputer().fit(rows.whole()), rows.whole(), rows.whole()["whole"].to_numpy(float)
        given = {"width": "median", "centers": 20, "random_state": 0}
        streamed = LSPC(**given).fit(TableSource(rows, imputer, "whole"))
        expected = LSPC(**given).fit(imputer.transform(X), rows.labels(), w)
        found, wanted = (model.predict_proba(imputer.transform(X)) for model in (streamed, expected))
        np.testing.assert_allclose(found, wanted, atol=1e-8)

    def test_columns_only(self, source):
        assert next(source.chunks(columns_only=True)).y is None

    def test_a_file_that_grows(self, tmp_path):
        mixed().to_csv(tmp_path / "t.csv", index=False)
        rows = LabelledTable.of(open_table(tmp_path / "t.csv").settled(), ["whole", "gap"], "label")
        source = TableSource(rows, SimpleImputer().fit(rows.whole()))
        mixed().to_csv(tmp_path / "t.csv", index=False, header=False, mode="a")
        with pytest.raises(ValueError, match=r"t\.csv had 90 rows and now has 180"):
            LSPC().fit(source)

    def test_a_bad_weight_is_found(self, rows):
        source = TableSource(rows, SimpleImputer().fit(rows.whole()), weight="none")
        with pytest.raises(ValueError, match=r"the weight nan in row 0 among the rows of .* with a value in 'label'"):
            LSPC().fit(source)
