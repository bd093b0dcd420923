"""Sources: every format gives the rows of the array, in the same chunks; what is refused names its place."""

import gzip
import os
import pickle
import re
import sys
import threading
import time
from decimal import Decimal

import numpy as np
import pytest

from kproba.data.files import open_rows
from kproba.data.sources import ArraySource, Chunk, ahead, as_source, check_chunk
from kproba.data.writers import ProbabilityWriter

RNG = np.random.default_rng(0)
N, D = 1000, 3
X = RNG.normal(size=(N, D))
Y = RNG.integers(0, 3, N)
WEIGHT = RNG.random(N)
NAMES = ["a", "b", "c"]
ROWS_IN_CHUNK = 128
CHUNK = ROWS_IN_CHUNK * D * 8
SUFFIXES = ["parquet", "csv", "csv.gz", "arrow", "feather"]


def refuses(error, message, call, *args, **kwargs):
    with pytest.raises(error, match=message):
        call(*args, **kwargs)


def table_of(X=X, names=NAMES, **others):
    pa = pytest.importorskip("pyarrow")
    return pa.table({**{name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(names)}, **others})


def write(path, table, block=300):
    """A file of the format of its suffix, in several row groups or record batches."""
    from pyarrow import csv, feather, ipc, output_stream, parquet

    name = str(path)
    if name.endswith(("parquet", "pq")):
        parquet.write_table(table, name, row_group_size=block)
    elif name.endswith((".csv", ".csv.gz")):
        with output_stream(name, compression="gzip" if name.endswith("gz") else None) as sink:
            csv.write_csv(table, sink)
    elif name.endswith("feather"):
        feather.write_feather(table, name, compression="lz4", chunksize=block)
    else:
        with ipc.new_file(name, table.schema) as writer:
            writer.write_table(table, max_chunksize=block)
    return name


def labelled(**others):
    return table_of(y=Y, w=WEIGHT, **others)


def opened(path, **options):
    return open_rows(path, **{"target": "y", "weight": "w", "chunk_bytes": CHUNK, **options})


def joined(chunks):
    chunks = list(chunks)
    parts = [None if part[0] is None else np.concatenate(part) for part in list(zip(*chunks))[:3]]
    return Chunk(*parts, chunks[0].start)


def same_chunks(left, right):
    left, right = list(left), list(right)
    assert [chunk.start for chunk in left] == [chunk.start for chunk in right]
    for one, other in zip(left, right):
        assert one.X.flags.c_contiguous and one.X.dtype == other.X.dtype
        for mine, yours in zip(one[:3], other[:3]):
            np.testing.assert_array_equal(mine, yours)


class TestArrays:
    @pytest.mark.parametrize("start", [0, 1, 127, 128, 129, 999, 1000])
    def test_rows_from_anywhere(self, start):
        source = ArraySource(X, Y, WEIGHT, chunk_bytes=CHUNK)
        chunks = list(source.chunks(start))
        assert [chunk.start for chunk in chunks] == list(range(start, N, ROWS_IN_CHUNK))
        if chunks:
            for found, given in zip(joined(chunks), (X, Y, WEIGHT)):
                np.testing.assert_array_equal(found, given[start:])

    def test_facts(self):
        source = ArraySource(X)
        assert (source.n_rows, source.n_features, source.feature_names, source.dtype) == (N, D, None, np.float64)
        (chunk,) = source.chunks()
        assert chunk.y is None and chunk.weight is None

    @pytest.mark.parametrize("given, kept", [("f4", "f4"), (">f4", "f4"), ("f8", "f8"), ("f2", "f8"), ("i2", "f8")])
    def test_types(self, given, kept):
        array = (10 * X).astype(given)
        chunk = joined(ArraySource(array, chunk_bytes=CHUNK).chunks())
        assert chunk.X.dtype == np.dtype(kept)
        np.testing.assert_array_equal(chunk.X, array)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_memory_map(self, tmp_path, order):
        array = np.memmap(tmp_path / "x.bin", dtype=np.float32, mode="w+", shape=(N, D), order=order)
        array[:] = X
        source = ArraySource(array, Y, chunk_bytes=CHUNK)
        same_chunks(source.chunks(), ArraySource(X.astype(np.float32), Y, chunk_bytes=CHUNK).chunks())
        assert "x.bin" in source.where(3)

    def test_columns_only(self):
        (chunk,) = ArraySource(X, Y, WEIGHT).chunks(columns_only=True)
        assert chunk.y is None and chunk.weight is None

    @pytest.mark.parametrize(
        "args, message",
        [
            ((X[:, 0],), r"numeric matrix, got 1 dimension"),
            ((X.astype(str),), "numeric matrix.*U"),
            ((X, Y[:-1]), r"X has 1000 rows but y has shape \(999,\)"),
            ((X, Y, 1.0), r"weight has shape \(\)"),
            ((X, Y, Y.astype(str)), "weight must contain one number"),
        ],
    )
    def test_refused(self, args, message):
        refuses(ValueError, message, ArraySource, *args)

    @pytest.mark.parametrize("start", [-1, 1001])
    def test_start_outside(self, start):
        refuses(ValueError, f"start_row={start} is outside the 1000 rows", list, ArraySource(X).chunks(start))

    def test_as_source(self, tmp_path):
        source = ArraySource(X, Y)
        assert as_source(source) is source
        assert as_source(X, Y) is None and as_source([[1.0]]) is None
        array = np.memmap(tmp_path / "x.bin", dtype=np.float32, mode="w+", shape=(N, D))
        mapped = as_source(array, Y, WEIGHT)
        np.testing.assert_array_equal(joined(mapped.chunks()).weight, WEIGHT)
        refuses(ValueError, "y cannot be passed together with a source.*target=", as_source, source, Y)
        refuses(ValueError, "sample_weight cannot be passed together with a source", as_source, source, None, WEIGHT)


class TestCheck:
    def spoil(self, bad, X=X, y=Y, weight=WEIGHT):
        array = ArraySource(X.copy(), y.copy(), weight.copy(), chunk_bytes=CHUNK)
        array._X[200, 1] = bad
        return array

    @pytest.mark.parametrize("bad, found", [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
    def test_inputs(self, bad, found):
        source = self.spoil(bad)
        first, second, *_ = source.chunks()
        assert check_chunk(first, source) is first
        message = f"X contains {found} in column 1, row 200 of X .*drop or fill"
        refuses(ValueError, message, check_chunk, second, source)
        refuses(ValueError, f"contains {found}.*row 200 of the cloud", check_chunk, second, "the cloud")

    @pytest.mark.parametrize("bad, kind", [(np.nan, float), (np.inf, float), (np.nan, object), (None, object)])
    def test_labels(self, bad, kind):
        y = Y.astype(float).astype(kind)
        y[70] = bad
        (chunk,) = ArraySource(X, y).chunks()
        refuses(ValueError, "y contains a missing label.*row 70 of here", check_chunk, chunk, "here")

    def test_labels_of_tags(self):
        tags = np.eye(3)[Y]
        tags[70, 2] = np.nan
        (chunk,) = ArraySource(X, tags).chunks()
        refuses(ValueError, "missing label.*row 70 ", check_chunk, chunk, "here")

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -2.0])
    def test_weights(self, bad):
        weight = WEIGHT.copy()
        weight[70] = bad
        (chunk,) = ArraySource(X, Y, weight).chunks()
        refuses(
            ValueError, f"weight {bad:g} in row 70 of here.*must be 0 or a finite number", check_chunk, chunk, "here"
        )

    @pytest.mark.parametrize("y", [Y, Y.astype(str), Y.astype(str).astype(object), Y > 0, Y.astype(float)])
    def test_sound(self, y):
        for chunk in ArraySource(X, y, WEIGHT).chunks():
            assert check_chunk(chunk, "here") is chunk


class TestFormats:
    @pytest.fixture(params=SUFFIXES)
    def path(self, request, tmp_path):
        return write(tmp_path / f"rows.{request.param}", labelled())

    def test_same_chunks_as_the_array(self, path):
        """Also twice in a row, though batches of the formats have other edges."""
        source = opened(path)
        assert (source.n_features, source.feature_names, source.dtype) == (D, NAMES, np.float64)
        assert source.n_rows == (None if ".csv" in path else N)
        for _ in range(2):
            same_chunks(source.chunks(), ArraySource(X, Y, WEIGHT, chunk_bytes=CHUNK).chunks())

    @pytest.mark.parametrize("start", [1, 127, 128, 129, 299, 300, 301, 512, 640, 999])
    def test_start_row(self, path, start):
        source, array = opened(path), ArraySource(X, Y, WEIGHT, chunk_bytes=CHUNK)
        same_chunks(source.chunks(start), array.chunks(start))
        same_chunks(source.chunks(start), array.chunks(start))

    def test_start_at_the_end_and_beyond(self, path):
        source = opened(path)
        assert not list(source.chunks(N))
        refuses(ValueError, "start_row.*(outside|beyond)", list, source.chunks(N + 1))
        refuses(ValueError, "start_row=-1", list, source.chunks(-1))

    def test_columns_only(self, path):
        for chunk in opened(path).chunks(columns_only=True):
            assert chunk.y is None and chunk.weight is None

    def test_chosen_columns(self, path):
        source = opened(path, target=None, weight=None, columns=["c", "a"])
        assert source.feature_names == ["c", "a"]
        np.testing.assert_array_equal(joined(source.chunks()).X, X[:, [2, 0]])

    def test_dtype(self, path):
        chunk = joined(opened(path, dtype="float32").chunks())
        assert chunk.X.dtype == np.float32 and chunk.weight.dtype == np.float64
        np.testing.assert_allclose(chunk.X, X, rtol=1e-6)

    def test_pickle(self, path):
        source = opened(path)
        same_chunks(pickle.loads(pickle.dumps(source)).chunks(), source.chunks())

    @pytest.mark.parametrize("chunk_bytes", [24 * 7, 24 * 1000, 1 << 20])
    def test_chunks_of_any_size(self, path, chunk_bytes):
        array = ArraySource(X, Y, WEIGHT, chunk_bytes=chunk_bytes)
        same_chunks(opened(path, chunk_bytes=chunk_bytes).chunks(), array.chunks())

    def test_a_bad_value_is_found_in_its_file(self, path, tmp_path):
        bad = X.copy()
        bad[17, 1] = np.nan
        suffix = path.split("rows.")[1]
        other = write(tmp_path / f"bad.{suffix}", table_of(bad, y=Y, w=WEIGHT))
        source = opened([path, other])
        with pytest.raises(ValueError, match=rf"NaN in column 'b', row 17 of .*bad\.{re.escape(suffix)}"):
            for chunk in ahead(source.chunks()):
                check_chunk(chunk, source)

    def test_several_files(self, path, tmp_path):
        """One with its columns in another order, one without rows; edges of files are not edges of chunks."""
        suffix = path.split("rows.")[1]
        table = labelled()
        for name, rows in (("p0", slice(0, 450)), ("p1", slice(450, 450)), ("p2", slice(450, 1000))):
            part = table.slice(rows.start, rows.stop - rows.start)
            write(tmp_path / f"{name}.{suffix}", part.select(["w", "c", "y", "a", "b"]) if name == "p2" else part)
        source = opened(str(tmp_path / f"p*.{suffix}"))
        array = ArraySource(X, Y, WEIGHT, chunk_bytes=CHUNK)
        for start in (0, 449, 450, 451, 700, 0):
            same_chunks(source.chunks(start), array.chunks(start))
        assert re.search(rf"row 449 of .*p0\.{re.escape(suffix)}", source.where(449))
        assert re.search(rf"row 3 of .*p2\.{re.escape(suffix)}", source.where(453))

    @pytest.mark.parametrize(
        "labels",
        [
            Y.astype(np.int8),
            Y > 0,
            Y + 0.0,
            np.array(["no", "yes", "NO"])[Y],
            np.array(["é", "", "x"])[Y % 2 * 2],
        ],
        ids=["int8", "bool", "float", "text", "unicode"],
    )
    def test_labels(self, tmp_path, path, labels):
        path = write(tmp_path / f"y.{path.split('rows.')[1]}", table_of(y=labels))
        found = joined(opened(path, weight=None).chunks()).y
        np.testing.assert_array_equal(found, labels)
        assert found.dtype.kind == ("O" if labels.dtype.kind == "U" else labels.dtype.kind) or ".csv" in path

    def test_missing_labels(self, tmp_path, path):
        for labels in ([0, None, 1] * 5, [True, None, False] * 5, ["u", None, "v"] * 5):
            import pyarrow as pa

            other = write(tmp_path / f"y.{path.split('rows.')[1]}", table_of(X[:15], y=pa.array(labels)))
            source = opened(other, weight=None)
            refuses(ValueError, "missing label.*row 1 of", check_chunk, joined(source.chunks()), source)


class TestColumns:
    def test_float32_throughout(self, tmp_path):
        path = write(tmp_path / "x.parquet", table_of(X.astype(np.float32), y=Y))
        source = opened(path, weight=None)
        assert source.dtype == np.float32
        same_chunks(source.chunks(), ArraySource(X.astype(np.float32), Y, chunk_bytes=CHUNK).chunks())
        other = write(tmp_path / "x2.parquet", table_of(y=Y))
        assert opened([path, other], weight=None).dtype == np.float64

    @pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
    def test_types_of_numbers(self, tmp_path, suffix):
        pa = pytest.importorskip("pyarrow")
        columns = {
            "whole": pa.array([1, 2, 3], pa.uint8()),
            "truth": pa.array([True, False, True]),
            "money": pa.array([Decimal("1.25"), Decimal("-2.50"), Decimal("0.75")]),
            "half": pa.array([1.5, 2.5, 3.5], pa.float64() if suffix == "csv" else pa.float16()),
        }
        path = write(tmp_path / f"x.{suffix}", pa.table(columns))
        (chunk,) = open_rows(path).chunks()
        np.testing.assert_array_equal(chunk.X, [[1, 1, 1.25, 1.5], [2, 0, -2.5, 2.5], [3, 1, 0.75, 3.5]])

    @pytest.mark.parametrize("kind", ["int", "bool", "decimal", "null", "float"])
    def test_nulls_are_refused_as_nan(self, tmp_path, kind):
        pa = pytest.importorskip("pyarrow")
        values = {
            "int": [1, None],
            "bool": [True, None],
            "decimal": [Decimal("1.5"), None],
            "null": pa.nulls(2),
            "float": [0.5, None],
        }
        source = open_rows(write(tmp_path / "x.parquet", pa.table({"u": [1.0, 2.0], "v": values[kind]})))
        row = 0 if kind == "null" else 1
        refuses(ValueError, f"NaN in column 'v', row {row} of", check_chunk, next(source.chunks()), source)

    @pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
    def test_categories_of_labels(self, tmp_path, suffix):
        pa = pytest.importorskip("pyarrow")
        for values in (["no", "yes"] * 5, [3, 8] * 5):
            table = table_of(X[:10], y=pa.array(values).dictionary_encode())
            (chunk,) = opened(write(tmp_path / f"x.{suffix}", table), weight=None).chunks()
            np.testing.assert_array_equal(chunk.y, values)

    def test_whole_and_broken_numbers_as_labels(self, tmp_path):
        """Chunks of one source have labels of one type."""
        write(tmp_path / "a.parquet", table_of(y=Y))
        write(tmp_path / "b.parquet", table_of(y=Y.astype(np.float32)))
        chunks = list(opened(tmp_path, weight=None).chunks())
        assert {chunk.y.dtype for chunk in chunks} == {np.dtype(np.float64)}

    def test_csv_of_whole_numbers_first(self, tmp_path):
        """The first block of a CSV file does not tell whether a column is of whole numbers."""
        pytest.importorskip("pyarrow")
        path = tmp_path / "x.csv"
        path.write_text("a,y\n" + "1,0\n" * 200_000 + "2.5,1\n")
        source = open_rows(path, target="y")
        chunk = joined(source.chunks())
        assert (chunk.X[-1, 0], chunk.y[-1]) == (2.5, 1)

    def test_csv_with_long_lines(self, tmp_path):
        """Lines of 800 kB, longer than the usual block."""
        pytest.importorskip("pyarrow")
        path, wide = tmp_path / "x.csv", 4000
        line = ",".join(["0.25" + 196 * "0"] * wide) + "\n"
        path.write_text(",".join(f"a column of a long name {j}" for j in range(wide)) + "\n" + line * 3)
        np.testing.assert_array_equal(joined(open_rows(path).chunks()).X, np.full((3, wide), 0.25))


class TestPaths:
    @pytest.fixture
    def folder(self, tmp_path):
        for name in ("b", "a", "c"):
            write(tmp_path / f"{name}.parquet", table_of(np.full((4, D), float(ord(name)))))
        (tmp_path / "_SUCCESS").write_text("")
        return tmp_path

    def letters(self, paths, **options):
        chunk = joined(open_rows(paths, **options).chunks())
        return "".join(map(chr, chunk.X[::4, 0].astype(int)))

    def test_glob_directory_list(self, folder):
        assert self.letters(folder) == self.letters(str(folder)) == self.letters(f"{folder}/*.parquet") == "abc"
        assert self.letters([folder / "c.parquet", f"{folder}/[ab].parquet"]) == "cab"
        assert self.letters(f"{folder}/**/[ab].parquet") == "ab"

    def test_format_without_suffix(self, folder):
        os.rename(folder / "a.parquet", folder / "a.dat")
        refuses(ValueError, r"a\.dat: no format is known.*\.parquet.*format=", open_rows, folder / "a.dat")
        assert self.letters(folder / "a.dat", format="parquet") == "a"
        assert self.letters(folder) == "bc"
        (folder / "sub").mkdir()
        os.rename(folder / "a.dat", folder / "sub" / "part-0")
        assert self.letters(folder / "sub", format="parquet") == "a"

    def test_refused(self, folder, tmp_path):
        refuses(FileNotFoundError, r"no file matches '.*x\.parquet'", open_rows, folder / "x.parquet")
        refuses(FileNotFoundError, r"no file matches '.*\*\.csv'", open_rows, f"{folder}/*.csv")
        (folder / "empty").mkdir()
        refuses(FileNotFoundError, r"no file matches '.*empty'.*\.parquet, \.pq", open_rows, folder / "empty")
        refuses(ValueError, "paths is empty", open_rows, [])
        refuses(ValueError, "format='xls' is not known.*'parquet'", open_rows, folder, format="xls")
        refuses(ValueError, r"a\.parquet more than once", open_rows, [folder, folder / "a.parquet"])
        write(folder / "d.csv", table_of())
        refuses(ValueError, r"mixes formats.*parquet.*d\.csv is csv", open_rows, folder)
        assert self.letters(folder, format="parquet") == "abc"

    def test_without_pyarrow(self, monkeypatch, tmp_path):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        refuses(ImportError, r"pip install 'kproba\[files\]'", open_rows, tmp_path)
        refuses(ImportError, r"pip install 'kproba\[files\]'", ProbabilityWriter, tmp_path / "x.csv", [0, 1])


class TestRefused:
    @pytest.fixture(params=["parquet", "csv", "arrow"])
    def suffix(self, request):
        return request.param

    def test_empty_file(self, tmp_path, suffix):
        pytest.importorskip("pyarrow")
        (tmp_path / f"x.{suffix}").write_bytes(b"")
        refuses(ValueError, rf"x\.{suffix} is empty \(0 bytes\)", open_rows, tmp_path)

    def test_no_rows_at_all(self, tmp_path, suffix):
        for name in "ab":
            write(tmp_path / f"{name}.{suffix}", labelled().slice(0, 0))
        refuses(ValueError, rf"a\.{suffix}', '.*b\.{suffix}': no file has any rows", opened, tmp_path)

    @pytest.mark.parametrize("kept", [0.5, 0.99])
    def test_cut_off(self, tmp_path, kept):
        for suffix in ("parquet", "arrow", "feather", "csv.gz"):
            path = tmp_path / f"cut.{suffix}"
            write(path, labelled())
            content = path.read_bytes()
            path.write_bytes(content[: int(kept * len(content))])
            message = rf"cut\.{re.escape(suffix)} cannot be read as .*(leave it out)"
            refuses(ValueError, message, lambda path=path: list(opened(path).chunks()))

    def test_damaged_inside(self, tmp_path):
        """Rows of a later row group can still be had: what lies before the first row asked for is not read."""
        path = tmp_path / "x.parquet"
        write(path, labelled())
        content = bytearray(path.read_bytes())
        content[4:3000] = bytes(2996)
        path.write_bytes(content)
        refuses(ValueError, r"x\.parquet cannot be read as Parquet", lambda: list(opened(path).chunks()))
        np.testing.assert_array_equal(joined(opened(path).chunks(910)).X, X[910:])

    def test_changed_between_passes(self, tmp_path):
        path = write(tmp_path / "x.csv", labelled())
        source = opened(path)
        list(source.chunks())
        write(path, labelled().slice(0, 10))
        refuses(ValueError, r"x\.csv had 1000 rows and now has 10", lambda: list(source.chunks()))

    def test_file_gone(self, tmp_path, suffix):
        source = opened(write(tmp_path / f"x.{suffix}", labelled()))
        os.remove(tmp_path / f"x.{suffix}")
        refuses(FileNotFoundError, rf"x\.{suffix}", lambda: list(source.chunks()))

    def test_missing_columns(self, tmp_path, suffix):
        path = write(tmp_path / f"x.{suffix}", labelled())
        refuses(
            ValueError,
            r"target refers to the column 'Y', which .*x\..* it has the columns 'a', 'b', 'c', 'y', 'w'",
            opened,
            path,
            target="Y",
        )
        refuses(ValueError, r"weight refers to the column 'v', which .*x\.", opened, path, weight="v")
        refuses(
            ValueError,
            r"columns refers to the column 'q', which .*has the columns 'a'",
            opened,
            path,
            columns=["a", "q"],
        )

    def test_roles(self, tmp_path):
        path = write(tmp_path / "x.parquet", labelled())
        refuses(ValueError, "columns contains 'y', which is the target", opened, path, columns=["a", "y"])
        refuses(ValueError, "target and weight are both 'y'", opened, path, weight="y")
        refuses(ValueError, "columns contains 'a' more than once", opened, path, columns=["a", "a"])
        refuses(TypeError, r"columns='a' must be a list.*\['a'\]", opened, path, columns="a")
        refuses(ValueError, "no feature column", opened, path, columns=[])
        refuses(ValueError, "dtype='int32'.*'float32' or 'float64'", opened, path, dtype="int32")
        refuses(ValueError, "dtype='what'", opened, path, dtype="what")

    def test_text_features(self, tmp_path, suffix):
        """A matrix of numbers has no place for them; a frame does."""
        path = write(tmp_path / f"x.{suffix}", labelled(town=["Kyoto"] * N))
        message = rf"column 'town' of .*x\.{suffix} holds strings or categories.*pass the source to the fit.*columns="
        refuses(ValueError, message, lambda: list(opened(path).chunks()))
        assert all(set(chunk.X["town"]) == {"Kyoto"} for chunk in opened(path).tables())
        assert opened(path, columns=NAMES).n_features == D

    def test_category_features(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        path = write(tmp_path / "x.parquet", labelled(town=pa.array(["Kyoto"] * N).dictionary_encode()))
        refuses(ValueError, "column 'town'.*holds strings or categories", lambda: list(opened(path).chunks()))
        assert {str(chunk.X["town"].dtype) for chunk in opened(path).tables()} == {"category"}

    @pytest.mark.parametrize("values", [np.array(["2026-01-01"], "M8[D]"), [[1.0, 2.0]]], ids=["dates", "lists"])
    def test_neither_numbers_nor_categories(self, tmp_path, values):
        path = write(tmp_path / "x.parquet", labelled().slice(0, 1).append_column("when", [values]))
        refuses(ValueError, "column 'when'.*neither numbers nor categories; convert it first", opened, path)

    def test_text_weight(self, tmp_path):
        path = write(tmp_path / "x.parquet", table_of(y=Y, w=["heavy"] * N))
        refuses(ValueError, r"weight column 'w' of .*x\.parquet holds string", opened, path)

    def test_columns_that_differ(self, tmp_path, suffix):
        write(tmp_path / f"a.{suffix}", labelled())
        write(tmp_path / f"b.{suffix}", labelled(extra=Y))
        refuses(ValueError, rf"b\.{suffix} has the column 'extra', but .*a\.{suffix} does not", opened, tmp_path)
        assert opened(tmp_path, columns=NAMES).n_features == D
        write(tmp_path / f"b.{suffix}", labelled().drop_columns(["c"]))
        refuses(ValueError, rf"a\.{suffix} has the column 'c', but .*b\.{suffix} does not", opened, tmp_path)
        refuses(ValueError, rf"columns refers to the column 'c', which .*b\.{suffix}", opened, tmp_path, columns=NAMES)
        write(tmp_path / f"b.{suffix}", labelled().drop_columns(["y"]))
        refuses(ValueError, rf"target refers to the column 'y', which .*b\.{suffix}", opened, tmp_path)
        write(
            tmp_path / f"b.{suffix}",
            table_of(X.astype(str) if suffix != "csv" else np.full((N, D), "u"), y=Y, w=WEIGHT),
        )
        refuses(ValueError, rf"column 'a' of .*b\.{suffix} holds string", lambda: list(opened(tmp_path).chunks()))

    def test_labels_that_differ(self, tmp_path, suffix):
        write(tmp_path / f"a.{suffix}", labelled())
        write(tmp_path / f"b.{suffix}", table_of(y=np.array(["u", "v", "w"])[Y], w=WEIGHT))
        message = rf"target has different types in different files.*number in .*a\.{suffix}, text in .*b\.{suffix}"
        refuses(ValueError, message, opened, tmp_path)

    def test_labels_of_no_use(self, tmp_path):
        path = write(tmp_path / "x.parquet", table_of(y=Y.astype("datetime64[s]")))
        refuses(ValueError, r"target of .*x\.parquet holds timestamp", opened, path, weight=None)

    def test_two_columns_of_one_name(self, tmp_path):
        pytest.importorskip("pyarrow")
        (tmp_path / "x.csv").write_text("a,b,a\n1,2,3\n")
        refuses(ValueError, r"x\.csv has more than one column 'a'", open_rows, tmp_path)

    @pytest.mark.parametrize("at", [2, 200_000], ids=["early", "late"])
    @pytest.mark.parametrize("line", ["1", "1,2,3,4"])
    def test_ragged_csv(self, tmp_path, at, line):
        pytest.importorskip("pyarrow")
        (tmp_path / "x.csv").write_text("a,b,c\n" + "1,2,3\n" * at + line + "\n")
        message = r"x\.csv cannot be read as CSV.*Expected 3 columns.*same number of cells"
        refuses(ValueError, message, lambda: list(open_rows(tmp_path).chunks()))

    def test_text_late_in_a_csv(self, tmp_path):
        pytest.importorskip("pyarrow")
        (tmp_path / "x.csv").write_text("a,b,c\n" + "1,2,3\n" * 200_000 + "1,hello,3\n")
        refuses(ValueError, r"x\.csv cannot be read as CSV.*hello", lambda: list(open_rows(tmp_path).chunks()))


class TestMemory:
    def test_one_large_row_group(self, tmp_path):
        """60 MB in one row group: what pyarrow holds stays below four chunks, with two chunks read ahead."""
        pa = pytest.importorskip("pyarrow")
        n, d, chunk_bytes = 2_500_000, 6, 8 << 20
        columns = RNG.random((d, n), dtype=np.float32)
        path = write(tmp_path / "x.parquet", pa.table({f"f{j}": column for j, column in enumerate(columns)}), block=n)
        source = open_rows(path, chunk_bytes=chunk_bytes)
        before, held, total = pa.total_allocated_bytes(), [], 0.0
        for chunk in ahead(source.chunks()):
            held.append(pa.total_allocated_bytes() - before)
            total += chunk.X.sum(dtype=np.float64)
        assert total == pytest.approx(columns.sum(dtype=np.float64))
        assert max(held) < 4 * chunk_bytes
        assert pa.total_allocated_bytes() <= before


def ahead_threads():
    return [thread for thread in threading.enumerate() if thread.name == "kproba-ahead"]


class TestAhead:
    @pytest.fixture(autouse=True)
    def no_thread_stays(self):
        yield
        assert not ahead_threads()

    @pytest.mark.parametrize("depth", [1, 2, 100])
    @pytest.mark.parametrize("n", [0, 1, 50])
    def test_order(self, n, depth):
        assert list(ahead(iter(range(n)), depth)) == list(range(n))
        assert list(ahead(range(n), depth)) == list(range(n))

    @pytest.mark.parametrize("error", [KeyError("lost"), SystemExit(3), MemoryError()], ids=repr)
    def test_exception(self, error):
        def failing():
            yield 1
            yield 2
            raise error

        items = ahead(failing())
        assert [next(items), next(items)] == [1, 2]
        with pytest.raises(type(error)) as caught:
            next(items)
        assert caught.value is error
        assert next(items, "ended") == "ended"

    def test_not_an_iterator(self):
        refuses(TypeError, "not iterable", list, ahead(5))
        refuses(ValueError, "depth=0", ahead, [], 0)

    @pytest.mark.parametrize("taken", [1, 5])
    def test_early_stop(self, taken):
        """An endless iterator is closed, in its own thread, and the thread is gone."""
        closed = []

        def endless():
            try:
                while True:
                    yield np.zeros(10)
            finally:
                closed.append(threading.current_thread().name)

        items = ahead(endless())
        for _ in range(taken):
            next(items)
        items.close()
        assert closed == ["kproba-ahead"] and not ahead_threads()

    def test_abandoned(self):
        for _ in ahead(iter(range(10**9))):
            break
        assert not ahead_threads()

    def test_error_of_the_consumer(self):
        with pytest.raises(ZeroDivisionError):
            for item in ahead(range(10)):
                item / 0

    def test_never_begun(self):
        ahead(iter([1]))

    def test_no_further_ahead_than_depth(self):
        made = []
        items = ahead((made.append(i) or i for i in range(100)), depth=3)
        next(items)
        deadline = time.monotonic() + 5
        while len(made) < 4 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.02)
        assert len(made) == 4
        items.close()

    def test_many_times(self):
        for stop in range(200):
            for item in ahead(range(20), 1 + stop % 3):
                if item == stop % 20:
                    break

    def test_files(self, tmp_path):
        source = opened(write(tmp_path / "x.parquet", labelled()))
        same_chunks(ahead(source.chunks()), source.chunks())


class TestWriter:
    PROBA = RNG.dirichlet(np.ones(3), size=50)
    WORDS = np.array(["no", "yes", "so so"])

    @pytest.mark.parametrize("suffix", SUFFIXES)
    @pytest.mark.parametrize("with_prediction", [False, True])
    def test_round_trip(self, tmp_path, suffix, with_prediction):
        pytest.importorskip("pyarrow")
        path = tmp_path / f"out.{suffix}"
        words = self.WORDS[self.PROBA.argmax(axis=1)]
        with ProbabilityWriter(path, self.WORDS) as out:
            for rows in (slice(0, 20), slice(20, 20), slice(20, 50)):
                out.write(self.PROBA[rows], words[rows] if with_prediction else None)
                assert not path.exists()
        source = open_rows(path, target="prediction" if with_prediction else None)
        assert source.feature_names == ["proba_no", "proba_yes", "proba_so so"]
        chunk = joined(source.chunks())
        np.testing.assert_array_equal(chunk.X, self.PROBA)
        if with_prediction:
            np.testing.assert_array_equal(chunk.y, words)
        assert os.listdir(tmp_path) == [path.name]
        if suffix == "csv.gz":
            assert gzip.decompress(path.read_bytes())[:1] == b'"'

    @pytest.mark.parametrize("classes", [np.array([0, 1, 7]), np.array([False, True]), np.array([1.0, 2.0])], ids=str)
    def test_classes(self, tmp_path, classes):
        pytest.importorskip("pyarrow")
        proba = self.PROBA[:, : len(classes)].astype(np.float32)
        with ProbabilityWriter(tmp_path / "out.parquet", classes) as out:
            out.write(proba, classes[proba.argmax(axis=1)])
        source = open_rows(tmp_path, target="prediction")
        assert source.feature_names == [f"proba_{label}" for label in classes] and source.dtype == np.float32
        chunk = joined(source.chunks())
        assert chunk.y.dtype == classes.dtype
        np.testing.assert_array_equal(chunk.y, classes[proba.argmax(axis=1)])

    @pytest.mark.parametrize("suffix", SUFFIXES)
    @pytest.mark.parametrize("writes", [0, 1])
    def test_failure_leaves_what_was_there(self, tmp_path, suffix, writes):
        pytest.importorskip("pyarrow")
        path = tmp_path / f"out.{suffix}"
        path.write_text("before")
        with pytest.raises(KeyboardInterrupt), ProbabilityWriter(path, self.WORDS) as out:
            for _ in range(writes):
                out.write(self.PROBA)
            raise KeyboardInterrupt
        assert path.read_text() == "before" and os.listdir(tmp_path) == [path.name]

    def test_failure_of_the_last_step(self, tmp_path, monkeypatch):
        pytest.importorskip("pyarrow")
        out = ProbabilityWriter(tmp_path / "out.csv", self.WORDS)
        out.write(self.PROBA)

        def full(*_):
            raise OSError("no space left")

        monkeypatch.setattr(os, "replace", full)
        refuses(OSError, "no space left", out.close)
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
    def test_nothing_written(self, tmp_path, suffix):
        pytest.importorskip("pyarrow")
        with ProbabilityWriter(tmp_path / f"out.{suffix}", self.WORDS):
            pass
        refuses(ValueError, "no file has any rows", open_rows, tmp_path)

    def test_refused(self, tmp_path):
        pytest.importorskip("pyarrow")
        refuses(ValueError, r"out\.xls: no format is known.*\.parquet", ProbabilityWriter, tmp_path / "out.xls", "ab")
        refuses(
            FileNotFoundError,
            "nowhere does not exist; create it first",
            ProbabilityWriter,
            tmp_path / "nowhere" / "o.csv",
            "ab",
        )
        refuses(ValueError, "same column name: 'proba_1', 'proba_1'", ProbabilityWriter, tmp_path / "o.csv", [1, "1"])
        (tmp_path / "d.csv").mkdir()
        refuses(IsADirectoryError, r"d\.csv.*is a directory", ProbabilityWriter, tmp_path / "d.csv", "ab")
        with ProbabilityWriter(tmp_path / "out.csv", self.WORDS) as out:
            refuses(ValueError, r"proba has shape \(50, 2\), expected \(rows, 3\)", out.write, self.PROBA[:, :2])
            refuses(ValueError, r"prediction has shape \(2,\), expected \(50,\)", out.write, self.PROBA, [1, 2])
            out.write(self.PROBA)
            refuses(ValueError, "in every write or in none", out.write, self.PROBA, np.ones(50))
        refuses(ValueError, r"out\.csv is closed", out.write, self.PROBA)
