"""The command, as a user types it: on real files, in this process or in one of its own."""

import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from kproba import cli

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
        assert "leave-one-out: error" in out
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
        assert "10 row(s) without 'income' left out" in shown.err
        assert "150 rows" in shown.out

    @pytest.mark.parametrize("estimator", ["klr", "ivm", "surface"])
    def test_other_estimators(self, folder, estimator, capsys):
        model = folder / f"{estimator}.kproba"
        words = ("fit", folder / "train.csv", "--target", "income", "--model", model, "--estimator", estimator)
        assert answer(capsys, *words)["leave_one_out"]["error"] < 0.4
        assert answer(capsys, "evaluate", folder / "test.csv", "--model", model)["error"]["value"] < 0.5


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
            (("fit", "none.csv", "--target", "y"), "none.csv: there is no such file"),
            (("fit", "{train}", "--target", "wages"), r"no column 'wages' for --target; it has 'age'"),
            (("fit", "{train}", "--target", "income", "--weight", "w"), "no column 'w' for --weight"),
            (("fit", "{train}", "--target", "income", "--model", "nowhere/m.kproba"), "there is no folder"),
            (("fit", "{junk}", "--target", "y"), "could not be read as parquet"),
            (("fit", "{odd}", "--target", "y"), "--format"),
            (("predict", "{train}", "--model", "{train}"), "train.csv"),
            (("predict", "{few}", "--model", "{model}"), "it lacks 'job', 'since', 'remark'"),
            (("predict", "{train}", "--model", "{model}", "--keep", "id"), "no column 'id' for --keep"),
            (
                ("evaluate", "{other}", "--model", "{model}"),
                "'income' has the class 'middle', which the model does not know",
            ),
            (("compare", "{train}", "--target", "income", "--folds", "90"), "row(s), and every fold needs one"),
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
        names = {
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
