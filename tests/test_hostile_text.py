"""Labels, columns and files whose names are formulas or escape sequences; and files that others write to meanwhile."""

import io
import json
import os
import re
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

from kproba import cli
from kproba.cli._text import printable

openpyxl = pytest.importorskip("openpyxl")

FORMULA, LINK, ERROR = "=cmd|'/c calc'!A1", '=HYPERLINK("http://x","y")', "#N/A!"
ESCAPE, TURNED = "\x1b]0;owned\x07\x1b[31mred", "safe\u202etxt.exe"


def run(*words) -> int:
    return cli.main([str(word) for word in words])


def table(labels, n=60, column="a"):
    rng = np.random.default_rng(0)
    y = np.arange(n) % len(labels)
    return pd.DataFrame({column: rng.normal(size=n) + 3 * y, "b": rng.normal(size=n), "y": np.array(labels)[y]})


def fitted(folder, labels, name="t", column="a"):
    path, model = folder / f"{name}.csv", folder / f"{name}.kproba"
    table(labels, column=column).to_csv(path, index=False)
    assert run("fit", path, "--target", "y", "--model", model, "--estimator", "lspc") == 0
    return path, model


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    """Labels that are formulas, and a column with a name that is one."""
    return fitted(tmp_path_factory.mktemp("formulas"), [FORMULA, "+1+1", "-2", "@SUM(A1)"], column="=1+1")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A table and a model without anything odd."""
    return fitted(tmp_path_factory.mktemp("plain"), ["yes", "no"])


@pytest.fixture
def copied(plain, tmp_path):
    """The same in a folder that a test has for itself."""
    return tuple(shutil.copy(path, tmp_path) for path in plain)


class TestSpreadsheets:
    def test_text_is_text(self, formulas):
        path, model = formulas
        kept = pd.read_csv(path).assign(link=LINK, error=ERROR, count=np.arange(60.0))
        kept.to_csv(path.with_name("kept.csv"), index=False)
        out = path.with_name("out.xlsx")
        words = ("predict", path.with_name("kept.csv"), "--model", model, "--out", out, "--quiet")
        assert run(*words, "--keep", "=1+1", "link", "error", "count") == 0
        sheet = openpyxl.load_workbook(out).active
        cells = [cell for row in sheet.iter_rows() for cell in row if cell.value is not None]
        assert {cell.data_type for cell in cells} == {"s", "n"}
        texts = {cell.value: cell.quotePrefix for cell in cells if cell.data_type == "s"}
        assert texts["=1+1"] and texts[FORMULA] and texts["+1+1"] and texts[LINK] and not texts[ERROR]
        assert [cell.value for cell in sheet["D"]][1:4] == [0, 1, 2]  # numbers stay numbers
        found = pd.read_excel(out, keep_default_na=False)
        assert set(found["prediction"]) <= {FORMULA, "+1+1", "-2", "@SUM(A1)"}
        assert not re.search(rb"<f>", _sheet_xml(out))

    def test_text_files_are_as_the_data(self, formulas):
        """What reads a CSV file again must find the same labels: they are not changed there."""
        path, model = formulas
        assert run("predict", path, "--model", model, "--out", path.with_name("out.csv"), "--quiet") == 0
        assert (pd.read_csv(path.with_name("out.csv"))["prediction"] == pd.read_csv(path)["y"]).mean() > 0.5

    @pytest.mark.parametrize("text", ["bell \x07", "x" * 40_000], ids=["control", "long"])
    def test_what_no_cell_can_hold(self, formulas, text, capsys):
        path, model = formulas
        odd, out = path.with_name("odd.csv"), path.with_name("odd.xlsx")
        pd.read_csv(path).assign(remark=text).to_csv(odd, index=False)
        assert run("predict", odd, "--model", model, "--out", out, "--keep", "remark") == cli.BAD_INPUT
        assert "cannot be written to an Excel file" in capsys.readouterr().err
        assert not out.exists()

    def test_too_many_rows(self, formulas, capsys, monkeypatch):
        path, model = formulas
        monkeypatch.setattr(cli._frames, "SHEET_ROWS", 60)
        assert run("predict", path, "--model", model, "--out", path.with_name("many.xlsx")) == cli.BAD_INPUT
        assert "a sheet has at most 60 rows" in capsys.readouterr().err

    def test_the_old_format(self, formulas, capsys):
        path, model = formulas
        assert run("predict", path, "--model", model, "--out", path.with_name("old.xls")) == cli.BAD_INPUT
        assert "use a .xlsx file" in capsys.readouterr().err


def _sheet_xml(path) -> bytes:
    import zipfile

    with zipfile.ZipFile(path) as file:
        return file.read("xl/worksheets/sheet1.xml")


def is_safe(text: str) -> bool:
    """Whether a terminal shows it as it stands."""
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", text)


class TestTerminal:
    def test_labels(self, tmp_path, capsys):
        path, model = fitted(tmp_path, [ESCAPE, TURNED, "a\nwrote x.kproba (1 kB)", "\x9b2J"])
        shown = capsys.readouterr()
        assert is_safe(shown.out) and is_safe(shown.err)
        assert "\\x1b]0;owned" in shown.out and "safe\\u202etxt" in shown.out
        assert sum(line.startswith("wrote") for line in shown.out.splitlines()) == 1
        for words in (("evaluate", path), ("report", path, "--out", tmp_path / "r.html"), ("compare", path)):
            more = ("--target", "y", "--only", "logistic regression") if words[0] == "compare" else ("--model", model)
            assert run(*words, *more) == 0
            shown = capsys.readouterr()
            assert is_safe(shown.out) and is_safe(shown.err)

    def test_json_is_the_data(self, tmp_path, capsys):
        labels = [ESCAPE, TURNED, "\x9b2J", "ü"]
        path, model = fitted(tmp_path, labels)
        capsys.readouterr()
        assert run("evaluate", path, "--model", model, "--json") == 0
        text = capsys.readouterr().out
        assert is_safe(text) and "ü" in text
        assert sorted(json.loads(text)["classes"]) == sorted(labels)

    def test_errors_and_notes(self, copied, tmp_path, capsys):
        model = copied[1]
        odd = tmp_path / f"{ESCAPE}\nkproba fit: all is well.csv"
        frame = table(["yes", "no"])
        for words, data in (
            (("evaluate", odd, "--model", model), frame.assign(y=ESCAPE)),
            (("fit", odd, "--target", "none", "--model", model), frame.rename(columns={"a": ESCAPE})),
            (("predict", odd, "--model", model), frame.rename(columns={"a": TURNED})),
            (("predict", odd, "--model", model, "--trace"), frame.rename(columns={"a": TURNED})),
            (("fit", odd, "--target", "y", "--model", tmp_path / ESCAPE / "m"), frame),
        ):
            data.to_csv(odd, index=False)
            assert run(*words) == cli.BAD_INPUT
            shown = capsys.readouterr()
            assert is_safe(shown.err) and not shown.out
            assert not any(line.startswith("kproba fit: all") for line in shown.err.splitlines())
        frame.assign(a=ESCAPE).to_csv(odd, index=False)
        assert run("evaluate", odd, "--model", model) == 0
        shown = capsys.readouterr()
        assert (
            "note: column 'a': the model was fitted on numbers, but none of the values" in shown.err
            and is_safe(shown.err)
            and is_safe(shown.out)
        )

    def test_usage(self, capsys):
        with pytest.raises(SystemExit):
            run("fit", "t.csv", "--target", "y", ESCAPE)
        assert is_safe(capsys.readouterr().err)

    def test_something_unforeseen(self, capsys, monkeypatch):
        def fail(*_, **__):
            raise RuntimeError(ESCAPE)

        monkeypatch.setattr(cli._models, "load", fail)
        assert run("evaluate", "t.csv") == cli.UNEXPECTED
        shown = capsys.readouterr().err
        assert is_safe(shown) and "RuntimeError" in shown and "Traceback" in shown

    def test_predictions_on_a_terminal(self, tmp_path, capsys, monkeypatch):
        """Looked at, labels are made printable; in a pipe they are as in the data."""
        path, model = fitted(tmp_path, [ESCAPE, "no"])

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        for stream in (io.StringIO(), Terminal()):
            monkeypatch.setattr(sys, "stdout", stream)
            assert run("predict", path, "--model", model) == 0
            assert (ESCAPE in stream.getvalue()) != stream.isatty()
            assert len(stream.getvalue().splitlines()) == 61

    def test_printable(self):
        assert printable("Zoë 山 🇨🇭 naïve — ½") == "Zoë 山 🇨🇭 naïve — ½"
        assert printable("a\tb\nc", keep="\n") == "a\\tb\nc"
        assert printable("\udcff") == "\\udcff"


class TestPredictOut:
    """`--out` while others write there."""

    def test_two_at_once(self, copied, tmp_path, monkeypatch):
        """One run writes all of its rows between two chunks of another one: the file has those of the last."""
        (path, model), out = copied, tmp_path / "out.csv"
        table(["yes", "no"], n=100).to_csv(tmp_path / "other.csv", index=False)
        words = ("--model", model, "--chunk-rows", 20, "--out", out, "--quiet")
        predict, calls = cli._models.TableModel.predict_proba, []

        def with_another(self, frame):
            calls.append(1)
            if len(calls) == 2:
                assert run("predict", tmp_path / "other.csv", *words) == 0
                assert len(pd.read_csv(out)) == 100
            return predict(self, frame)

        monkeypatch.setattr(cli._models.TableModel, "predict_proba", with_another)
        assert run("predict", path, *words) == 0
        assert len(pd.read_csv(out)) == 60 and len(calls) == 8
        assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]

    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".xlsx", ".parquet", ".arrow"])
    def test_what_stands_under_the_old_temporary_name(self, copied, tmp_path, suffix):
        """It is neither followed nor deleted, and may be what is read."""
        path, model = copied
        (tmp_path / "precious").write_text("precious")
        (tmp_path / f".part-a{suffix}").symlink_to("precious")
        assert run("predict", path, "--model", model, "--out", tmp_path / f"a{suffix}", "--quiet") == 0
        assert (tmp_path / "precious").read_text() == "precious" and (tmp_path / f".part-a{suffix}").is_symlink()
        os.rename(path, tmp_path / ".part-b.csv")
        words = ("predict", tmp_path / ".part-b.csv", "--model", model, "--out", tmp_path / "b.csv")
        assert run(*words, "--quiet") == 0
        assert (tmp_path / ".part-b.csv").exists() and len(pd.read_csv(tmp_path / "b.csv")) == 60

    @pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".xlsx", ".parquet"])
    def test_an_interruption_leaves_nothing(self, copied, tmp_path, suffix, monkeypatch):
        path, model = copied
        out, before = tmp_path / f"a{suffix}", sorted([*os.listdir(tmp_path), f"a{suffix}"])
        out.write_text("before")
        predict, calls = cli._models.TableModel.predict_proba, []

        def interrupted(self, frame):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return predict(self, frame)

        monkeypatch.setattr(cli._models.TableModel, "predict_proba", interrupted)
        words = ("predict", path, "--model", model, "--out", out, "--chunk-rows", 20)
        assert run(*words) == cli.INTERRUPTED
        assert out.read_text() == "before" and sorted(os.listdir(tmp_path)) == before

    def test_folders_before_the_work(self, tmp_path, capsys):
        """Of a model and a table that are not there nothing is said: the folder comes first."""
        (tmp_path / "folder.html").mkdir()
        for words, message in (
            (("predict", "t.csv", "--out", tmp_path / "no" / "a.csv"), "does not exist; create it first"),
            (("report", "t.csv", "--out", tmp_path / "folder.html"), "is a directory"),
            (("demo", "--out", tmp_path / "folder.html"), "is a directory"),
            (("fit", "t.csv", "--target", "y", "--model", tmp_path / "folder.html"), "is a directory"),
            (("fit", "t.csv", "--target", "y", "--model", "/dev/null"), "is a device"),
            (("predict", "t.csv", "--out", tmp_path / "a.odd"), "no table is written with this suffix"),
        ):
            assert run(*words) == cli.BAD_INPUT
            assert message in capsys.readouterr().err
