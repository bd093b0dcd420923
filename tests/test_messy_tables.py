"""fit, predict and report of messy tables, with no option but the target."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from kproba import ModelFileError, cli, load, save
from kproba.cli._numbers import WrittenNumbers
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
    found = WrittenNumbers().fit_transform(pd.DataFrame({"a": written}))["a"]
    np.testing.assert_array_equal(found.to_numpy(float), expected)


@pytest.mark.parametrize(
    "written",
    [["10-20", "20-30"], ["1.2.3", "1.2.4"], ["03/11/2024", "04/11/2024"], ["T1", "2"], ["1,5", "2.5"], ["?"]],
)
def test_other_text_stays_text(written):
    assert list(WrittenNumbers().fit_transform(pd.DataFrame({"a": written}))["a"]) == written


def test_new_rows_that_are_no_numbers_are_missing():
    step = WrittenNumbers().fit(pd.DataFrame({"a": ["1,5", "2,5"], "b": ["x", "y"]}))
    given = pd.DataFrame({"a": ["3,5", "none", "2.5.1"], "b": ["1", "2", "3"]})
    found = step.transform(given)
    np.testing.assert_array_equal(found["a"], [3.5, np.nan, np.nan])
    assert list(found["b"]) == ["1", "2", "3"]
    assert list(given["a"]) == ["3,5", "none", "2.5.1"]  # the user's frame stays as it is
    assert list(step.transform(pd.DataFrame({"a": [7, 8], "b": ["1", "2"]}))["a"]) == [7, 8]


def test_odd_decimal_marks_are_in_no_model_file(tmp_path):
    step = WrittenNumbers().fit(pd.DataFrame({"a": ["1,5", "2,5"]}))
    save(step, tmp_path / "step.kproba")
    assert load(tmp_path / "step.kproba").styles_ == {"a": ","}
    step.styles_ = {"a": "]|."}
    with pytest.raises(ModelFileError, match="styles_ names no decimal mark"):
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
    assert "5 row(s) without 'y' left out" in shown.err
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
    assert "model.kproba: there is no such file; kproba fit writes it" in capsys.readouterr().err
