"""fit, predict and report of messy tables, with no option but the target."""

import json
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from kproba import ModelFileError, UnreadableWarning, cli, load, save
from kproba.features.column_kinds import ColumnKinds
from messy import TABLES


@pytest.mark.parametrize("name", TABLES)
def test_fit_predict_report(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train, new = TABLES[name](300, seed=0), TABLES[name](200, seed=1, late=True)
    target = train.columns[-1]
    train.to_csv("train.csv", index=False)
    new.to_csv("labelled.csv", index=False)
    new.drop(columns=target).to_csv("new.csv", index=False)
    assert cli.main(["fit", "train.csv", "--target", target]) == 0
    assert cli.main(["predict", "new.csv", "--out", "answers.csv"]) == 0
    assert cli.main(["report", "labelled.csv"]) == 0
    answers, labels = pd.read_csv("answers.csv"), sorted(train[target].unique())
    proba = answers[[f"proba_{label}" for label in labels]].to_numpy()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    shares = np.tile(train[target].value_counts(normalize=True)[labels].to_numpy(), (len(new), 1))
    truth = new[target].to_numpy()
    assert log_loss(truth, proba, labels=labels) < 0.75 * log_loss(truth, shares, labels=labels)
    assert "Traceback" not in capsys.readouterr().err
    assert "</html>" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["1,234.50", "12", "1,000,000"], [1234.5, 12, 1e6]),
        ([".5", "-.25", "€ .75", "3"], [0.5, -0.25, 0.75, 3]),
        (["1.234,50", "0,5", "-3"], [1234.5, 0.5, -3]),
        (["0,125", "1,250"], [0.125, 1.25]),  # no thousands start with a nought
        (["$1,200", "$ 3", "-$5.25"], [1200, 3, -5.25]),
        (["12.5 %", "7%", "−3 %"], [12.5, 7, -3]),
        (["1 234,5", "1\u202f000", "2\u00a0000,25"], [1234.5, 1000, 2000.25]),
        (["1'234.5", "2’000"], [1234.5, 2000]),
        (["3.5", "-", "?", " ", None, "1e3"], [3.5, np.nan, np.nan, np.nan, np.nan, 1000]),
    ],
)
def test_numbers_as_people_write_them(written, expected):
    found = ColumnKinds().fit_transform(pd.DataFrame({"a": written}))["a"]
    np.testing.assert_array_equal(found.to_numpy(float), expected)


@pytest.mark.parametrize(
    "written",
    [["10-20", "20-30"], ["1.2.3", "1.2.4"], ["T1", "2"], ["1,5", "2.5"], ["?"]],
)
def test_other_text_stays_text(written):
    assert list(ColumnKinds().fit_transform(pd.DataFrame({"a": written}))["a"]) == written


def test_new_rows_that_are_no_numbers_are_missing():
    step = ColumnKinds().fit(pd.DataFrame({"a": ["1,5", "2,5"], "b": ["x", "y"]}))
    given = pd.DataFrame({"a": ["3,5", "none", "2.5.1"], "b": ["1", "2", "3"]})
    found = step.transform(given)
    np.testing.assert_array_equal(found["a"], [3.5, np.nan, np.nan])
    assert list(found["b"]) == ["1", "2", "3"]
    assert list(given["a"]) == ["3,5", "none", "2.5.1"]  # the user's frame stays as it is
    assert list(step.transform(pd.DataFrame({"a": [7, 8], "b": ["1", "2"]}))["a"]) == [7, 8]


def test_odd_decimal_marks_are_in_no_model_file(tmp_path):
    step = ColumnKinds().fit(pd.DataFrame({"a": ["1,5", "2,5"]}))
    save(step, tmp_path / "step.kproba")
    assert load(tmp_path / "step.kproba").styles_ == {"a": ","}
    step.styles_ = {"a": "]|."}
    with pytest.raises(ModelFileError, match=r"styles_ is not a dict from a str to a decimal mark\.$"):
        save(step, tmp_path / "odd.kproba")


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Thirty rows, in five of which nobody knows the class."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"a": np.arange(30) % 7, "y": ["low", "high"] * 15})
    frame.loc[[0, 1, 2], "y"] = "?"
    frame.loc[[3, 4], "y"] = " ?"
    frame.to_csv("train.csv", index=False)


def test_question_mark_is_no_class(tiny, capsys):
    assert cli.main(["fit", "train.csv", "--target", "y"]) == 0
    shown = capsys.readouterr()
    assert "5 row(s) without 'y' skipped" in shown.err
    assert "high 13, low 12" in shown.out


def test_column_may_be_called_self(tmp_path):
    """As keyword arguments some names of columns would be taken for others."""
    frame = pd.DataFrame({"self": ["1,5", "2,5", "3,5", "4,5"] * 6, "cls": ["no", "yes"] * 12, "y": [0, 0, 1, 1] * 6})
    frame.to_csv(tmp_path / "train.csv", index=False)
    only = ["--only", "kproba LSPC", *(["CatBoost"] if find_spec("catboost") else [])]
    assert cli.main(["compare", str(tmp_path / "train.csv"), "--target", "y", "--folds", "2", *only]) == 0


def test_semicolons(tmp_path, monkeypatch):
    """Where commas are decimal marks, semicolons set fields off: the same model as from a file with commas."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"a": np.arange(40) / 4, "b": ["x", "y"] * 20, "y": ["p"] * 20 + ["q"] * 20})
    frame.to_csv("comma.csv", index=False)
    frame.to_csv("euro.csv", index=False, sep=";", decimal=",")
    for name in ("comma", "euro"):
        assert cli.main(["fit", f"{name}.csv", "--target", "y", "--quiet"]) == 0
        assert cli.main(["predict", f"{name}.csv", "--out", f"{name}.out.csv", "--quiet"]) == 0
    pd.testing.assert_frame_equal(pd.read_csv("comma.out.csv"), pd.read_csv("euro.out.csv"))


def test_model_that_was_not_fitted(tiny, capsys):
    assert cli.main(["predict", "train.csv"]) == cli.BAD_INPUT
    assert "model.kproba: no such file; create it with kproba fit" in capsys.readouterr().err


class TestKindsAreKept:
    """What a column was when the model was fitted it is ever after, whatever file new rows come from."""

    @pytest.fixture
    def truths(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": rng.normal(size=120).round(3), "flag": rng.random(120) < 0.5})
        frame["y"] = np.where(frame["x"] + 2 * frame["flag"] > 1, "yes", "no")
        frame.to_csv("train.csv", index=False)
        assert cli.main(["fit", "train.csv", "--target", "y", "--quiet"]) == 0
        return frame

    def answers(self, *words):
        assert cli.main(["predict", *words, "--out", "answers.csv", "--quiet"]) == 0
        return pd.read_csv("answers.csv").filter(like="proba_").to_numpy()

    def test_columns_that_are_kept_in_front(self, truths):
        alone, beside = self.answers("train.csv"), self.answers("train.csv", "--keep", "flag", "x")
        np.testing.assert_array_equal(alone, beside)

    def test_a_stray_cell_spoils_itself_alone(self, truths):
        alone = self.answers("train.csv")
        truths.assign(flag=truths["flag"].astype(str).str.upper()).to_csv("stray.csv", index=False)
        with open("stray.csv", "a") as file:
            file.write("0.1,maybe,no\n")
        np.testing.assert_allclose(self.answers("stray.csv")[:-1], alone, atol=1e-6)

    def test_words_that_look_like_numbers(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        frame = pd.DataFrame({"c": ["1", "2", "a", None] * 20, "y": ["p", "q", "p", "q"] * 20})
        frame.to_csv("train.csv", index=False)
        assert cli.main(["fit", "train.csv", "--target", "y", "--quiet"]) == 0
        new = pd.DataFrame({"c": [1.0, 2.0, None]})
        new.to_parquet("new.parquet")
        pd.DataFrame({"c": ["1", "2", None]}).to_csv("new.csv", index=False)
        np.testing.assert_allclose(self.answers("new.parquet"), self.answers("new.csv"), atol=1e-6)

    def test_numbers_in_another_way_of_writing(self, truths):
        truths.to_csv("euro.csv", index=False, sep=";", decimal=",")
        np.testing.assert_allclose(self.answers("euro.csv"), self.answers("train.csv"), atol=1e-6)

    def test_columns_that_nobody_can_read_are_told_of(self, truths, capsys):
        truths.assign(x="unknown").to_csv("odd.csv", index=False)
        assert cli.main(["predict", "odd.csv", "--out", "answers.csv"]) == 0
        assert (
            "column 'x': the model was fitted on numbers, but none of the values, such as 'unknown', can"
            in capsys.readouterr().err
        )

    def test_they_are_told_of_once(self, truths, capsys):
        """`evaluate` repeated the note for every pass over the rows, and --json did not have it."""
        truths.assign(x=[f"word {k}" for k in range(len(truths))]).to_csv("odd.csv", index=False)
        for words in (["predict", "odd.csv", "--out", "answers.csv"], ["evaluate", "odd.csv"], ["report", "odd.csv"]):
            assert cli.main([*words, "--chunk-rows", "50", "--json"]) == 0
            shown = capsys.readouterr()
            (note,) = json.loads(shown.out)["notes"]
            assert "column 'x': the model was fitted on numbers" in note and shown.err == f"note: {note}\n"
            assert cli.main([*words, "--chunk-rows", "50", "--json", "--quiet"]) == 0
            shown = capsys.readouterr()
            assert json.loads(shown.out)["notes"] == [note] and not shown.err

    @pytest.mark.parametrize("value", [np.inf, -1e39])
    def test_numbers_that_are_too_large(self, value, truths, capsys):
        truths.assign(x=truths["x"].where(truths.index != 7, value)).to_csv("large.csv", index=False)
        for words in (["predict", "large.csv", "--out", "answers.csv"], ["fit", "large.csv", "--target", "y"]):
            assert cli.main([*words, "--quiet"]) == cli.BAD_INPUT
            assert f"{value:g} in the column 'x', in the row with the index 7" in capsys.readouterr().err

    def test_classes_are_named_as_in_the_table(self, truths, capsys):
        assert cli.main(["compare", "train.csv", "--target", "flag", "--folds", "1000"]) == cli.BAD_INPUT
        assert "--folds 1000: the class True has" in capsys.readouterr().err

    def test_classes_of_another_type(self, truths, capsys):
        truths.assign(y=truths["y"].map({"no": 0, "yes": 1})).to_csv("numbers.csv", index=False)
        assert cli.main(["fit", "numbers.csv", "--target", "y", "--quiet"]) == 0
        words = truths.assign(y=truths["y"].map({"no": "0", "yes": "1"}))
        words.to_parquet("words.parquet")
        assert cli.main(["evaluate", "words.parquet"]) == cli.BAD_INPUT
        assert "'y' holds text such as '0', but the classes of the model are numbers" in capsys.readouterr().err
        words.assign(y=words["y"].where(words.index != 3, "oops")).to_csv("stray.csv", index=False)
        assert cli.main(["evaluate", "stray.csv"]) == cli.BAD_INPUT
        assert "has the class 'oops', which the model does not know; it knows 0, 1." in capsys.readouterr().err

    def test_rows_of_any_index(self):
        reader = ColumnKinds().fit(pd.DataFrame({"p": ["1,5", "2,5"]}))
        found = reader.transform(pd.DataFrame({"p": ["1,5", "?"]}, index=[0, 0]))["p"]
        np.testing.assert_array_equal(found, [1.5, np.nan])


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_separators(mark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": range(20), "y": ["p", "q"] * 10}).to_csv("t.csv", index=False, sep=mark)
    assert cli.main(["fit", "t.csv", "--target", "y", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,y\n1,p,7\n2,q,8\n", "some lines have more fields than the first line has names"),
        ("a,a,y\n1,2,p\n3,4,q\n", "t.csv has more than one column 'a'"),
        ("a,y\n1,p\n2,q\n3,r\n", "it has 3 classes in 3 rows"),
        ("a,y\n1,gr\xf6n\0\n", "it is not utf-8 text"),
    ],
)
def test_files_that_are_refused(text, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    assert cli.main(["fit", "t.csv", "--target", "y"]) == cli.BAD_INPUT
    assert words in capsys.readouterr().err


def test_empty_fields_at_the_end_of_lines(tmp_path, monkeypatch):
    """Every line ends with a comma, as some programs write them: no column is taken for its neighbour."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,y\n" + "0,p,\n1,p,\n7,q,\n8,q,\n" * 6)
    assert cli.main(["fit", "t.csv", "--target", "y", "--quiet"]) == 0
    assert load("model.kproba").classes.tolist() == ["p", "q"]


def test_labels_lose_the_blanks_around_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,y\n" + "1,no\n2,no \n5, yes\n6,yes \n" * 6)
    assert cli.main(["fit", "t.csv", "--target", "y", "--quiet"]) == 0
    assert load("model.kproba").classes.tolist() == ["no", "yes"]


def test_blanks_around_categories_do_not_count(tmp_path, monkeypatch, capsys):
    """Half of the rows were predicted wrongly, without a note, and `evaluate` took them for training rows."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"a": np.tile(["u", "v"], 30), "n": range(60)})
    frame.assign(y=np.tile(["p", "q"], 30)).to_csv("t.csv", index=False)
    assert cli.main(["fit", "t.csv", "--target", "y", "--quiet"]) == 0
    proba = []
    for before, after in (("", ""), ("", " "), ("", "\t"), (" ", "\u00a0")):
        frame.assign(a=before + frame["a"] + after).to_csv("new.csv", index=False)
        assert cli.main(["predict", "new.csv", "--out", "answers.csv", "--quiet"]) == 0
        proba.append(pd.read_csv("answers.csv")["proba_p"])
    for each in proba[1:]:
        np.testing.assert_array_equal(each, proba[0])
    mixed = pd.DataFrame({"a": [" u", True, None, 1, "u"]})
    assert ColumnKinds().fit_transform(mixed)["a"].tolist() == ["u", True, None, 1, "u"]


def test_dates_in_another_format(tmp_path, monkeypatch, capsys):
    """All of them counted as missing, without a note, in the format that the notes recommend."""
    monkeypatch.chdir(tmp_path)
    days = pd.Series(pd.date_range("2024-01-01", "2024-12-31", periods=120))
    late = np.where(days.dt.month > 6, "late", "early")
    answers, notes = {}, {}
    formats = {
        "train": "%d/%m/%Y",
        "iso": "%Y-%m-%d",
        "padded": " %d/%m/%Y ",
        "times": "%Y-%m-%d 00:00:00",
        "odd": "%d %b %Y",
    }
    for name, written in formats.items():
        pd.DataFrame({"day": days.dt.strftime(written), "y": late}).to_csv(f"{name}.csv", index=False)
    assert cli.main(["fit", "train.csv", "--target", "y", "--quiet"]) == 0
    for name in formats:
        assert cli.main(["predict", f"{name}.csv", "--out", "answers.csv"]) == 0
        answers[name], notes[name] = pd.read_csv("answers.csv")["prediction"], capsys.readouterr().err
        assert cli.main(["evaluate", f"{name}.csv", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["training_rows"] == (120 if name != "odd" else 0)
    assert all((answers[name] == late).mean() > 0.95 and not notes[name] for name in formats if name != "odd")
    assert "column 'day': the model was fitted on dates, but none of the values, such as '01 Jan 2024'" in notes["odd"]


def test_only_dates_become_dates():
    frame = pd.DataFrame({"day": ["31/12/2024", "-"], "at": ["2024-12-31T10:00:00+02:00"] * 2, "no": ["20240101", "5"]})
    step = ColumnKinds().fit(frame.assign(word=["x", "2024-12-31"], when=pd.Timestamp("2024-12-31")))
    assert step.dates_ == {"day": "%d/%m/%Y", "at": "%Y-%m-%dT%H:%M:%S%z", "when": ""}
    cells = ["2024-12-31", "2024-12-31T10:00:00.25", "30/11/2024", "2024-13-01", None]
    with pytest.warns(UnreadableWarning, match="column 'no'"):
        found = step.transform(pd.DataFrame(dict.fromkeys([*frame, "word", "when"], cells)))
    days = ["2024-12-31", "2024-12-31 10:00:00.25", "2024-11-30", None, None]
    pd.testing.assert_series_equal(
        found["day"], pd.Series(pd.to_datetime(days, format="ISO8601"), name="day"), check_dtype=False
    )
    assert str(found["at"].dt.tz) == "UTC" and found["when"].notna().sum() == 2 and found["word"][0] == "2024-12-31"


def test_hardly_any_date_can_be_read():
    step = ColumnKinds().fit(pd.DataFrame({"day": ["31/12/2024", "01/01/2024"]}))
    with pytest.warns(
        UnreadableWarning, match="but hardly any of the values, such as '3 May', .* write dates as 2024-12-31"
    ):
        step.transform(pd.DataFrame({"day": ["3 May"] * 19 + ["31/12/2024"]}))


@pytest.mark.parametrize("written", ["%Y%Y", "%Q", "%", "%Y" + " " * 99, 1])
def test_odd_date_formats_are_in_no_model_file(written, tmp_path):
    step = ColumnKinds().fit(pd.DataFrame({"a": ["31/12/2024"]}))
    step.dates_ = {"a": written}
    with pytest.raises(ModelFileError):
        save(step, tmp_path / "m.kproba")


def test_earlier_models_keep_their_blanks():
    """They may have been fitted on categories with blanks."""
    step = ColumnKinds().fit(pd.DataFrame({"a": ["u ", "v"]}))
    del step.strips_
    assert step.transform(pd.DataFrame({"a": ["u ", "v"]}))["a"].tolist() == ["u ", "v"]


def test_whole_numbers_stay_whole_beside_gaps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,y\n" + "1,0\n2,0\n5,1\n6,1\n3,\n" * 6)
    assert cli.main(["fit", "t.csv", "--target", "y", "--quiet"]) == 0
    assert load("model.kproba").classes.dtype.kind == "i"


def test_nothing_that_is_read_is_overwritten(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,y\n" + "1,p\n2,q\n" * 9)
    before = (tmp_path / "t.csv").read_bytes()
    assert cli.main(["fit", "t.csv", "--target", "y", "--model", "./t.csv"]) == cli.BAD_INPUT
    assert cli.main(["fit", "t.csv", "--target", "y", "--quiet"]) == 0
    for out in ("./t.csv", "model.kproba"):
        assert cli.main(["report", "t.csv", "--out", out]) == cli.BAD_INPUT
        assert cli.main(["predict", "t.csv", "--out", out]) == cli.BAD_INPUT
    assert (tmp_path / "t.csv").read_bytes() == before
    assert cli.main(["fit", "t.csv", "--target", "y", "--weight", "y"]) == cli.BAD_INPUT
    assert "--weight y: this is the --target column" in capsys.readouterr().err
    assert cli.main(["predict", "t.csv", "--keep", "y", "y", "--out", "out.csv"]) == 0
    assert pd.read_csv("out.csv").columns.tolist() == ["y", "prediction", "proba_p", "proba_q"]
