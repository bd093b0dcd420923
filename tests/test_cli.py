"""The command, as a user types it: on real files, in this process or in one of its own."""

import io
import json
import os
import platform
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from kproba import cli
from kproba.basis.moments import Moments
from kproba.cli import _frames
from kproba.data.checkpoint import Checkpoint
from kproba.estimators import _reading

RNG = np.random.default_rng(0)


def people(n=160, seed=0):
    """Numbers, categories, dates and text with gaps; the class follows some of them."""
    rng = np.random.default_rng(seed)
    age, job = rng.normal(40, 12, n).round(1), rng.choice(["cook", "nurse", "clerk"], n)
    rich = age + 15 * (job == "nurse") + rng.normal(0, 6, n) > 45
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "job": np.where(rng.random(n) < 0.1, None, job),
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "remark": [f"works as {j} in town {i % 50}" for i, j in enumerate(job)],
            "income": np.where(rich, "high", "low"),
        }
    )
    frame["since"] = frame["since"].astype(str)
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training and test files, and a model that was fitted from the first."""
    path = tmp_path_factory.mktemp("cli")
    people().to_csv(path / "train.csv", index=False)
    people(seed=1).to_csv(path / "test.csv", index=False)
    assert run("fit", path / "train.csv", "--target", "income", "--model", path / "m.kproba", "--quiet") == 0
    return path


def run(*words) -> int:
    return cli.main([str(word) for word in words])


def answer(capsys, *words) -> dict:
    """The JSON that a command prints."""
    capsys.readouterr()
    assert run(*words, "--json") == 0
    return json.loads(capsys.readouterr().out)


class TestFit:
    def test_says_what_it_did(self, folder, capsys):
        assert run("fit", folder / "train.csv", "--target", "income", "--model", folder / "again.kproba") == 0
        out = capsys.readouterr().out
        assert "160 rows, 4 columns (1 numbers, 1 dates, 1 categories, 1 text)" in out
        assert "out of fold: error" in out
        assert "wrote" in out

    def test_json(self, folder, capsys):
        facts = answer(capsys, "fit", folder / "train.csv", "--target", "income", "--model", folder / "j.kproba")
        assert facts["rows"] == 160
        assert facts["classes"] == ["high", "low"]
        assert facts["leave_one_out"]["error"] < 0.25

    def test_same_file_same_model(self, folder):
        for name in ("a", "b"):
            assert (
                run("fit", folder / "train.csv", "--target", "income", "--model", folder / f"{name}.kproba", "--quiet")
                == 0
            )
        assert (folder / "a.kproba").read_bytes() == (folder / "b.kproba").read_bytes()

    @pytest.mark.parametrize("suffix", [".parquet", ".feather", ".xlsx", ".tsv", ".csv.gz"])
    def test_other_formats(self, folder, suffix, capsys):
        path, frame = folder / f"train{suffix}", people()
        writers = {".parquet": "to_parquet", ".feather": "to_feather", ".xlsx": "to_excel"}
        options = {".tsv": {"sep": "\t"}}.get(suffix, {})
        if suffix in (".tsv", ".csv.gz", ".xlsx"):
            options["index"] = False
        getattr(frame, writers.get(suffix, "to_csv"))(path, **options)
        facts = answer(capsys, "fit", path, "--target", "income", "--model", folder / "f.kproba")
        assert facts["rows"] == 160
        assert facts["columns"] == 4

    def test_standard_input(self, folder, capsys, monkeypatch):
        text = (folder / "train.csv").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert answer(capsys, "fit", "-", "--target", "income", "--model", folder / "s.kproba")["rows"] == 160

    def test_stream(self, folder, capsys):
        X, y = RNG.normal(size=(300, 3)), np.arange(300) % 2
        frame = pd.DataFrame(X + y[:, None], columns=["a", "b", "c"]).assign(y=y)
        frame.to_parquet(folder / "numbers.parquet")
        model = folder / "numbers.kproba"
        facts = answer(capsys, "fit", folder / "numbers.parquet", "--target", "y", "--model", model, "--stream")
        assert facts["rows"] == 300
        out = folder / "numbers-out.parquet"
        assert run("predict", folder / "numbers.parquet", "--model", model, "--out", out) == 0
        assert len(pd.read_parquet(out)) == 300

    def test_rows_without_a_class_are_left_out(self, folder, capsys):
        frame = people()
        frame.loc[:9, "income"] = None
        frame.to_csv(folder / "gaps.csv", index=False)
        assert run("fit", folder / "gaps.csv", "--target", "income", "--model", folder / "g.kproba") == 0
        shown = capsys.readouterr()
        assert "10 row(s) without 'income' skipped" in shown.err
        assert "150 rows" in shown.out

    @pytest.mark.parametrize("estimator", ["klr", "ivm", "surface"])
    def test_other_estimators(self, folder, estimator, capsys):
        model = folder / f"{estimator}.kproba"
        words = ("fit", folder / "train.csv", "--target", "income", "--model", model, "--estimator", estimator)
        if estimator == "surface":  # it has no ridge against the 30 columns of the text, which are noise here
            words = (*words, "--ignore", "remark")
        assert answer(capsys, *words)["leave_one_out"]["error"] < 0.4
        assert answer(capsys, "evaluate", folder / "test.csv", "--model", model)["error"]["value"] < 0.4

    @pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="these BLAS kernels are of x86")
    def test_same_model_on_every_processor(self, folder, tmp_path):
        """Rows are sampled by the bits of their values, so that text must be encoded to the same bits everywhere."""
        found = []
        for processor in ("Haswell", "Nehalem"):
            model, out = tmp_path / f"{processor}.kproba", tmp_path / f"{processor}.csv"
            fit = ("fit", folder / "train.csv", "--target", "income", "--model", model, "--estimator", "surface")
            predict = ("predict", folder / "test.csv", "--model", model, "--out", out)
            lines = [[*map(str, words), "--quiet"] for words in (fit, predict)]
            both = f"from kproba import cli; raise SystemExit(any([cli.main(words) for words in {lines}]))"
            command = [sys.executable, "-c", both]
            subprocess.run(command, check=True, env={**os.environ, "OPENBLAS_CORETYPE": processor})
            found.append(pd.read_csv(out)["proba_high"].to_numpy())
        np.testing.assert_allclose(found[0], found[1], atol=1e-6)


class TestPredict:
    def test_answers(self, folder):
        out = folder / "answers.csv"
        assert (
            run(
                "predict", folder / "test.csv", "--model", folder / "m.kproba", "--out", out, "--keep", "age", "--quiet"
            )
            == 0
        )
        found = pd.read_csv(out)
        assert list(found.columns) == ["age", "prediction", "proba_high", "proba_low"]
        np.testing.assert_allclose(found["proba_high"] + found["proba_low"], 1.0)
        assert (found["prediction"] == people(seed=1)["income"]).mean() > 0.75

    def test_columns_in_any_order_and_others_beside(self, folder, capsys):
        frame = people(seed=1)
        frame[["remark", "since", "job", "age"]].assign(more=1).to_csv(folder / "mixed.csv", index=False)
        for name in ("test", "mixed"):
            assert (
                run(
                    "predict",
                    folder / f"{name}.csv",
                    "--model",
                    folder / "m.kproba",
                    "--out",
                    folder / f"{name}-out.csv",
                )
                == 0
            )
        assert (folder / "test-out.csv").read_text() == (folder / "mixed-out.csv").read_text()

    def test_standard_output(self, folder, capsys):
        assert run("predict", folder / "test.csv", "--model", folder / "m.kproba") == 0
        assert capsys.readouterr().out.startswith("prediction,proba_high,proba_low\n")

    def test_rows_at_a_time_do_not_matter(self, folder):
        for rows in (7, 1000):
            words = ("predict", folder / "test.csv", "--model", folder / "m.kproba", "--chunk-rows", rows)
            assert run(*words, "--keep", "job", "--out", folder / f"by{rows}.csv", "--quiet") == 0
        few, all_at_once = (pd.read_csv(folder / f"by{rows}.csv") for rows in (7, 1000))
        pd.testing.assert_frame_equal(few, all_at_once, rtol=0, atol=1e-4)  # skrub's columns are float32

    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".xlsx"])
    def test_kept_columns_are_as_in_the_data(self, folder, suffix):
        """Numbers at first, words and gaps later on; the gaps come after the first chunk."""
        frame = people(seed=1).assign(id=[f"{i:03d}" for i in range(150)] + ["x"] * 10, count=np.arange(160.0))
        frame.loc[100, "count"] = np.nan
        frame.to_csv(folder / "kept.csv", index=False)
        out = folder / f"kept-out{suffix}"
        words = ("predict", folder / "kept.csv", "--model", folder / "m.kproba", "--chunk-rows", 40, "--out", out)
        assert run(*words, "--keep", "id", "count", "job", "--quiet") == 0
        readers = {".parquet": pd.read_parquet, ".arrow": pd.read_feather, ".xlsx": pd.read_excel}
        options = {"dtype": {"id": str}} if suffix not in (".parquet", ".arrow") else {}
        found = readers.get(suffix, lambda path, **o: pd.read_csv(path, sep=None, engine="python", **o))(out, **options)
        assert found["id"].tolist() == frame["id"].tolist()
        np.testing.assert_array_equal(found["count"], frame["count"])
        assert found["job"].dropna().tolist() == frame["job"].dropna().tolist()
        assert len(found) == 160

    @pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.xlsx"])
    def test_reasons(self, folder, name):
        out = folder / name
        words = ("predict", folder / "test.csv", "--model", folder / "m.kproba", "--out", out, "--quiet")
        assert run(*words, "--reasons", 2, "--chunk-rows", 40) == 0
        found = {".csv": pd.read_csv, ".xlsx": pd.read_excel, ".parquet": pd.read_parquet}[out.suffix](out)
        assert list(found.columns) == ["prediction", "proba_high", "proba_low", "reason_1", "reason_2"]
        columns = found["reason_1"].str.partition(" = ")[0]
        assert set(columns) <= {"age", "job", "since", "remark"} and (columns == "age").mean() > 0.5
        test = people(seed=1)
        for i in np.flatnonzero(columns == "age"):
            value = "missing" if np.isnan(test["age"][i]) else f"{test['age'][i]:g}"
            assert found["reason_1"][i].startswith(f"age = {value}: ")

    def test_nothing_is_left_of_a_prediction_that_fails(self, folder, capsys):
        """The last chunk is no CSV any more; what stood in the place of the answers stays."""
        (folder / "cut.csv").write_text((folder / "test.csv").read_text() + "1,2,3,4,5,6,7,8\n")
        for name in ("old.csv", "old.parquet"):
            (folder / name).write_text("as before")
            before = sorted(path.name for path in folder.iterdir())
            words = ("predict", folder / "cut.csv", "--model", folder / "m.kproba", "--chunk-rows", 50)
            assert run(*words, "--out", folder / name) == cli.BAD_INPUT
            assert "cut.csv cannot be read as CSV" in capsys.readouterr().err
            assert (folder / name).read_text() == "as before"
            assert sorted(path.name for path in folder.iterdir()) == before

    def test_its_own_input_is_not_written_over(self, folder, capsys):
        words = ("predict", folder / "test.csv", "--model", folder / "m.kproba", "--out", folder / "test.csv")
        assert run(*words) == cli.BAD_INPUT
        assert "is also an input file" in capsys.readouterr().err


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Rows without a class, a column that begins with numbers, a category that comes late, weights."""
    path, frame = tmp_path_factory.mktemp("streams"), people(400)
    frame["code"] = [f"{i % 9:02d}" if i < 300 else f"x{i % 3}" for i in range(400)]
    frame.loc[350:, "job"] = frame.loc[350:, "job"].replace("cook", "baker")
    frame["weight"] = np.arange(400) % 3
    frame["id"] = np.arange(400)
    frame.loc[::40, "income"] = None
    frame.to_csv(path / "t.csv", index=False)
    frame.to_csv(path / "t.tsv", index=False, sep="\t")
    frame.to_parquet(path / "t.parquet")
    frame.assign(job=frame["job"].astype("category")).to_feather(path / "t.feather")
    (path / "parts").mkdir()
    for number in range(4):
        frame.iloc[100 * number : 100 * (number + 1)].to_csv(path / "parts" / f"{number}.csv", index=False)
    return path


@pytest.fixture(scope="module")
def wholes():
    """Probabilities by models of a whole table, of each estimator once."""
    return {}


class TestStreams:
    """The same model whether a table is read as a whole or chunk by chunk."""

    def fitted(self, tables, name, model, *more):
        words = ("fit", tables / name, "--target", "income", "--ignore", "id", "--weight", "weight")
        assert run(*words, "--model", tables / model, "--quiet", *more) == 0
        return self.probabilities(tables, model)

    def probabilities(self, tables, model, data="t.csv", *more):
        out = tables / "out.parquet"
        assert run("predict", tables / data, "--model", tables / model, "--out", out, "--quiet", *more) == 0
        return pd.read_parquet(out)[["proba_high", "proba_low"]].to_numpy()

    @pytest.mark.parametrize(
        ("estimator", "name"),
        [("lspc", name) for name in ("t.csv", "t.tsv", "t.parquet", "t.feather", "parts", "parts/*.csv")]
        + [("klr", "t.csv"), ("klr", "t.parquet")],
    )
    def test_same_model(self, tables, wholes, name, estimator):
        if estimator not in wholes:
            wholes[estimator] = self.fitted(tables, "t.csv", "whole.kproba", "--estimator", estimator)
        whole = wholes[estimator]
        options = ("--stream", "--chunk-rows", 37, "--estimator", estimator)
        streamed = self.fitted(tables, name, "streamed.kproba", *options)
        np.testing.assert_allclose(streamed, whole, atol=1e-8)

    @pytest.mark.parametrize("estimator", ["lspc", "klr", "ivm", "surface"])
    def test_same_model_where_a_sample_decides(self, tables, estimator, monkeypatch):
        """Fewer rows are kept in memory than there are, and all are summed up: in float32, hence in the same chunks."""
        monkeypatch.setattr(_reading, "sample_size", lambda d: 150)
        whole = self.fitted(tables, "t.parquet", "whole.kproba", "--estimator", estimator)
        streamed = self.fitted(tables, "t.parquet", "streamed.kproba", "--stream", "--estimator", estimator)
        np.testing.assert_allclose(streamed, whole, atol=1e-8)

    def test_says_what_it_did(self, tables, capsys):
        words = ("fit", tables / "t.csv", "--target", "income", "--ignore", "id", "--model", tables / "s.kproba")
        options = ("--stream", "--chunk-rows", 50, "--sample-rows", 100)
        assert run(*words, *options) == 0
        said = capsys.readouterr()
        assert "encoding of the columns on 100 of 390 rows" in said.err
        assert "10 row(s) without 'income' skipped" in said.err
        assert "390 rows, 6 columns (2 numbers, 1 dates, 2 categories, 1 text)" in said.out
        facts = answer(capsys, *words, *options)
        assert facts["sample_rows"] == 100 and facts["rows"] == 390 and facts["rows_left_out"] == 10
        assert sum(facts["class_rows"].values()) == 390

    def test_a_sample_is_enough(self, tables, capsys):
        """Categories that the sample lacks, here or in new rows, are no error; and a seed settles the sample."""
        found = [self.fitted(tables, "t.csv", f"{k}.kproba", "--stream", "--sample-rows", 60) for k in range(2)]
        np.testing.assert_array_equal(*found)
        other = self.fitted(tables, "t.csv", "seed.kproba", "--stream", "--sample-rows", 60, "--seed", 1)
        assert np.abs(found[0] - other).max() > 1e-6
        facts = answer(capsys, "evaluate", tables / "t.csv", "--model", tables / "0.kproba")
        assert facts["log_loss"]["value"] < facts["base_rates"]["log_loss"]["value"]
        pd.read_csv(tables / "t.csv").assign(job="astronaut", since="never").to_csv(tables / "new.csv", index=False)
        assert np.isfinite(self.probabilities(tables, "0.kproba", "new.csv")).all()

    def test_a_code_is_read_as_it_stands(self, tables):
        """Rows whose codes are all digits get the same answer alone as among others."""
        together = self.fitted(tables, "t.csv", "codes.kproba", "--stream", "--chunk-rows", 37)
        lines = (tables / "t.csv").read_text().splitlines(keepends=True)
        (tables / "digits.csv").write_text("".join(lines[:201]))
        np.testing.assert_allclose(self.probabilities(tables, "codes.kproba", "digits.csv"), together[:200], atol=1e-6)

    def test_goes_on_after_an_interruption(self, tables, monkeypatch, capsys):
        """Interrupted in one chunk after the other; the model is the one that was left alone, to the last bit."""
        monkeypatch.setattr(_reading, "sample_size", lambda d: 150)
        monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))
        options = ("--chunk-rows", 60, "--sample-rows", 100)
        alone = self.fitted(tables, "t.csv", "alone.kproba", "--stream", *options)
        added, seen, sums = Moments.add, {"n": 0, "stop": 0}, tables / "sums"

        def interrupted(self, *args, **kwargs):
            seen["n"] += 1
            if seen["n"] == seen["stop"]:
                raise KeyboardInterrupt
            return added(self, *args, **kwargs)

        words = ("fit", tables / "t.csv", "--target", "income", "--ignore", "id", "--weight", "weight", *options)
        for stop in (2, 3):
            seen.update(n=0, stop=stop)
            with monkeypatch.context() as patch:
                patch.setattr(Moments, "add", interrupted)
                model = ("--model", tables / "resumed.kproba", "--checkpoint", sums)
                assert run(*words, *model) == cli.INTERRUPTED
            assert list(sums.glob("sums-*.npz")) and not (tables / "resumed.kproba").exists()
        resumed = self.fitted(tables, "t.csv", "resumed.kproba", "--checkpoint", sums, *options)
        np.testing.assert_array_equal(resumed, alone)
        assert not list(sums.iterdir())

    def test_what_is_large(self, tables, capsys, monkeypatch):
        """So many bytes, or an eighth of them in a compressed file."""
        for name, factor in (("t.csv", 1), ("t.parquet", 8), ("parts", 1)):
            files = list((tables / name).iterdir()) if name == "parts" else [tables / name]
            n_bytes = factor * sum(path.stat().st_size for path in files)
            for limit in (n_bytes, n_bytes - 1):
                monkeypatch.setattr(_frames, "LARGE_BYTES", limit)
                words = ("fit", tables / name, "--target", "income", "--model", tables / "l.kproba", "--ridge", "0.1")
                assert ("sample_rows" in answer(capsys, *words)) == (limit < n_bytes)

    @pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
    def test_evaluate_and_report(self, tables, name, capsys, monkeypatch):
        """The same figures from a table that is taken for a large one, and the same rows on the page."""
        self.fitted(tables, "t.tsv", "e.kproba")  # another file: rows of its own would be left out one by one
        words = ("--model", tables / "e.kproba", "--chunk-rows", 37)
        small = answer(capsys, "evaluate", tables / name, *words)
        assert run("report", tables / name, *words, "--out", tables / "small.html", "--quiet") == 0
        monkeypatch.setattr(_frames, "LARGE_BYTES", 1)
        large = answer(capsys, "evaluate", tables / name, *words)
        train = ("--train", tables / name)
        assert run("report", tables / name, *words, *train, "--out", tables / "large.html", "--quiet") == 0
        for measure in ("error", "log_loss", "brier", "calibration"):
            assert large[measure]["value"] == pytest.approx(small[measure]["value"], rel=1e-6)
        assert large["rows"] == small["rows"] == 390
        pages = [(tables / f"{size}.html").read_text() for size in ("small", "large")]
        assert pages[0].count("works as") == pages[1].count("works as") > 50

    def test_standard_input(self, tables, capsys, monkeypatch):
        text = (tables / "t.csv").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        words = ("fit", "-", "--target", "income", "--model", tables / "i.kproba", "--stream")
        assert answer(capsys, *words)["rows"] == 390


class TestOthers:
    def test_evaluate(self, folder, capsys):
        facts = answer(capsys, "evaluate", folder / "test.csv", "--model", folder / "m.kproba")
        low, high = facts["log_loss"]["interval"]
        assert low < facts["log_loss"]["value"] < high
        assert facts["log_loss"]["value"] < facts["base_rates"]["log_loss"]["value"]

    def test_report(self, folder):
        page = folder / "page.html"
        words = ("report", folder / "test.csv", "--model", folder / "m.kproba", "--train", folder / "train.csv")
        assert run(*words, "--out", page, "--quiet") == 0
        assert page.read_text().lstrip().lower().startswith("<!doctype html>")

    def test_compare(self, folder, capsys):
        only = ("--only", "kproba LSPC", "logistic regression", "--folds", "3")
        facts = answer(capsys, "compare", folder / "train.csv", "--target", "income", *only)
        assert set(facts["methods"]) == {"kproba LSPC", "logistic regression"}

    def test_demo(self, tmp_path, capsys):
        assert run("demo", "--out", tmp_path / "demo.html") == 0
        assert "kproba LSPC" in capsys.readouterr().out
        assert (tmp_path / "demo.html").stat().st_size > 10_000


class TestBadInput:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("fit", "none.csv", "--target", "y"), "none.csv: no such file"),
            (
                ("fit", "{train}", "--target", "wages"),
                r"no column 'wages' for --target (did you mean 'age'?); it has 'age'",
            ),
            (("fit", "{train}", "--target", "income", "--weight", "w"), "no column 'w' for --weight"),
            (("fit", "{train}", "--target", "income", "--weight", "w", "--stream"), "no column 'w' for --weight"),
            (
                ("fit", "{train}", "--target", "income", "--ignore", "agee"),
                "no column 'agee' for --ignore (did you mean 'age'?); it has 'age'",
            ),
            (
                ("fit", "{train}", "--target", "wages", "--stream"),
                r"no column 'wages' for --target (did you mean 'age'?); it has 'age'",
            ),
            (("fit", "{train}", "--target", "income", "--stream", "--chunk-rows", "0"), "--chunk-rows 0"),
            (("fit", "{train}", "--target", "income", "--stream", "--sample-rows", "0"), "--sample-rows 0"),
            (("fit", "{few}", "--target", "income", "--ignore", "age"), "no column besides 'age', 'income'"),
            (("fit", "{blank}", "--target", "income", "--stream"), "'income' is empty in every row"),
            (("evaluate", "{blank}", "--model", "{model}"), "'income' is empty in every row"),
            (("fit", "{sheet}", "--target", "income", "--stream"), "Excel files cannot be read in chunks"),
            (
                ("fit", "{train}", "--target", "income", "--model", "nowhere/m.kproba"),
                "nowhere does not exist; create it first",
            ),
            (("fit", "{junk}", "--target", "y"), "junk.parquet cannot be read as Parquet"),
            (("fit", "{odd}", "--target", "y"), "--format"),
            (("predict", "{train}", "--model", "{train}"), "train.csv"),
            (
                ("predict", "{few}", "--model", "{model}"),
                "the columns 'job', 'since', 'remark', which the model was fitted on, are missing",
            ),
            (("predict", "{train}", "--model", "{model}", "--keep", "id"), "no column 'id' for --keep"),
            (("predict", "{train}", "--model", "{model}", "--reasons", "-1"), "--reasons -1: the number of reasons"),
            (
                ("evaluate", "{other}", "--model", "{model}"),
                "'income' has the class 'middle', which the model does not know",
            ),
            (("compare", "{train}", "--target", "income", "--folds", "90"), "row(s), but every fold needs one"),
            (("compare", "{train}", "--target", "income", "--seed", "-1"), "--seed -1: it must be at least 0"),
            (("fit", "{train}", "--target", "income", "--seed", "-1"), "--seed -1: it must be at least 0"),
            (("predict", "{train}", "--model", "{model}", "--out", "x.json"), "suffix; use .csv, .tsv, .parquet, .ar"),
            (
                ("compare", "{train}", "--target", "income", "--only", "magic"),
                "--only magic: not installed or not known",
            ),
        ],
    )
    def test_clear_errors(self, folder, words, message, capsys, monkeypatch):
        monkeypatch.chdir(folder)
        (folder / "junk.parquet").write_bytes(b"no such thing")
        (folder / "odd.data").write_text("a,y\n1,2\n")
        people()[["age", "income"]].to_csv(folder / "few.csv", index=False)
        people().assign(income="middle").to_csv(folder / "other.csv", index=False)
        people().assign(income=None).to_csv(folder / "blank.csv", index=False)
        people().to_excel(folder / "sheet.xlsx", index=False)
        names = {
            "blank": "blank.csv",
            "sheet": "sheet.xlsx",
            "train": "train.csv",
            "junk": "junk.parquet",
            "odd": "odd.data",
            "few": "few.csv",
            "other": "other.csv",
        }
        places = {key: folder / name for key, name in names.items()} | {"model": folder / "m.kproba"}
        before = sorted(path.name for path in folder.iterdir())
        assert run(*(word.format(**places) for word in words)) == cli.BAD_INPUT
        shown = capsys.readouterr()
        assert message in shown.err
        assert not shown.out
        assert "Traceback" not in shown.err
        assert sorted(path.name for path in folder.iterdir()) == before

    def test_usage(self, capsys):
        with pytest.raises(SystemExit) as stop:
            cli.main(["fit"])
        assert stop.value.code == 2
        with pytest.raises(SystemExit):
            cli.main(["--help"])
        assert "examples:" in capsys.readouterr().out

    def test_in_a_process_of_its_own(self, folder):
        command = [
            sys.executable,
            "-m",
            "kproba.cli",
            "predict",
            str(folder / "test.csv"),
            "--model",
            str(folder / "m.kproba"),
        ]
        with open(folder / "test.csv") as text:
            found = subprocess.run(command, stdin=text, capture_output=True, text=True, check=True)
        assert len(found.stdout.splitlines()) == 161


class TestTrainingTable:
    """The file that a model was fitted on is judged out of fold."""

    def test_evaluate(self, folder, capsys):
        fitted = answer(capsys, "fit", folder / "train.csv", "--target", "income", "--model", folder / "t.kproba")
        found = answer(capsys, "evaluate", folder / "train.csv", "--model", folder / "t.kproba")
        assert found["on"] == "out-of-fold"
        assert found["log_loss"]["value"] == pytest.approx(fitted["out_of_fold"]["log_loss"], rel=1e-6)
        assert answer(capsys, "evaluate", folder / "test.csv", "--model", folder / "t.kproba")["on"] == "held-out"

    def test_report(self, folder, capsys):
        about = answer(
            capsys, "report", folder / "train.csv", "--model", folder / "m.kproba", "--out", folder / "t.html"
        )
        assert about["on"] == "out-of-fold"
        page = (folder / "t.html").read_text()
        assert "logistic regression" in page and "evaluated by 5-fold" in page

    def test_rows_without_a_class_and_weights(self, folder, capsys):
        frame = people().assign(w=1.0)
        frame.loc[::9, "income"] = None
        frame.to_csv(folder / "gaps.csv", index=False)
        options = ("--model", folder / "g.kproba")
        fitted = answer(capsys, "fit", folder / "gaps.csv", "--target", "income", "--weight", "w", *options)
        found = answer(capsys, "evaluate", folder / "gaps.csv", *options)
        assert found["log_loss"]["value"] == pytest.approx(fitted["out_of_fold"]["log_loss"], rel=1e-6)


class TestAuto:
    """Tables mostly of categories: the better of least squares and likelihood, out of fold."""

    @pytest.fixture
    def rules(self, tmp_path):
        """A class that follows a rule on words, without noise."""
        rng, path = np.random.default_rng(0), tmp_path / "rules.csv"
        words = pd.DataFrame(rng.choice(["low", "mid", "high"], (400, 5)), columns=list("abcde"))
        bad = (words["a"] == "low") | ((words["b"] == "low") & (words["c"] != "high"))
        words.assign(label=np.where(bad, "no", "yes")).to_csv(path, index=False)
        return path

    def test_the_smaller_loss_is_taken(self, rules, capsys):
        found = answer(capsys, "fit", rules, "--target", "label", "--model", rules.with_suffix(".kproba"))
        assert set(found["compared"]) == {"LSPC", "KernelLogisticRegression"}
        assert found["estimator"] == min(found["compared"], key=found["compared"].get)
        assert found["out_of_fold"]["log_loss"] == min(found["compared"].values())

    def test_a_named_estimator_is_alone(self, rules, capsys):
        for name, estimator in (("lspc", "LSPC"), ("klr", "KernelLogisticRegression")):
            options = ("--target", "label", "--estimator", name, "--model", rules.with_suffix(".kproba"))
            found = answer(capsys, "fit", rules, *options)
            assert found["estimator"] == estimator and "compared" not in found

    def test_other_tables_have_least_squares(self, folder, capsys):
        numbers = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)), columns=list("abc"))
        numbers.assign(y=(numbers["a"] > 0).astype(int)).to_csv(folder / "numbers.csv", index=False)
        found = answer(capsys, "fit", folder / "numbers.csv", "--target", "y", "--model", folder / "n.kproba")
        assert found["estimator"] == "LSPC" and "compared" not in found


def test_a_thousand_is_a_thousand_in_every_file(tmp_path, capsys):
    """4.180 is more than four thousand where the training table writes 1.234,50, and if all numbers look like that."""
    rng = np.random.default_rng(0)
    amount = rng.integers(1000, 9000, 200)
    train = pd.DataFrame({"amount": [f"{a // 1000}.{a % 1000:03d},50" for a in amount], "y": amount > 5000})
    train.to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "plain.csv").write_text("amount\n4.180\n7.250\n")
    (tmp_path / "exact.csv").write_text('amount\n"4.180,00"\n"7.250,00"\n')
    assert run("fit", tmp_path / "train.csv", "--target", "y", "--model", tmp_path / "m.kproba", "--quiet") == 0
    for name in ("plain", "exact"):
        options = ("--model", tmp_path / "m.kproba", "--out", tmp_path / f"{name}.out.csv")
        assert run("predict", tmp_path / f"{name}.csv", *options) == 0
    found = [pd.read_csv(tmp_path / f"{name}.out.csv") for name in ("plain", "exact")]
    pd.testing.assert_frame_equal(*found)
    assert found[0]["prediction"].tolist() == [False, True]
