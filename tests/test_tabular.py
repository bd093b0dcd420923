"""The pipeline of the command in Python: kproba.tabular, and model files of the command as models."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import kproba
from kproba import LSPC, ModelFileError, UnreadableWarning, cli, explain, load, save, tabular, to_onnx
from kproba.cli import main
from kproba.data.mixed import columns_like_codes
from kproba.features import plain_table
from kproba.features.column_kinds import ColumnKinds
from kproba.features.plain_table import PlainTable, fitted, without_skrub
from kproba.pipelines import behind, vectorizer
from messy import sales, visits

QUICK = LSPC(kernel="laplacian", width=2.0, ridge=1e-3)


def table(make, n=150, seed=0):
    frame = make(n, seed)
    return frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()


@pytest.mark.parametrize("make, least", [(sales, 0.7), (visits, 0.4)])
def test_reads_money_and_dates(make, least):
    frame, y = table(make)
    assert tabular(QUICK).fit(frame[:100], y[:100]).score(frame[100:], y[100:]) > least


def test_clones_pickles_and_saves(tmp_path):
    frame, y = table(visits)
    model = clone(tabular(QUICK)).fit(frame, y)
    kproba.save(model, tmp_path / "m.kproba")
    for again in (pickle.loads(pickle.dumps(model)), kproba.load(tmp_path / "m.kproba")):
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert cross_val_score(tabular(QUICK), frame, y, cv=3).mean() > 0.4


class TestOtherTables:
    def test_polars(self):
        polars = pytest.importorskip("polars")
        frame, y = table(sales, 80)
        model, other = tabular(QUICK).fit(frame, y), polars.from_pandas(frame)
        np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(frame))
        np.testing.assert_array_equal(tabular(QUICK).fit(other, y).predict_proba(other), model.predict_proba(frame))

    def test_matrices(self):
        X = np.random.default_rng(0).normal(size=(60, 3))
        X[::9, 2], y = np.nan, X[:, 0] > 0
        expected = tabular(QUICK).fit(pd.DataFrame(X, columns=list("012")), y).predict_proba(X)
        for matrix in (X, X.astype(object), X.tolist()):
            np.testing.assert_array_equal(tabular(QUICK).fit(matrix, y).predict_proba(matrix), expected)
        with pytest.raises(TypeError, match=r"must be a data frame or a matrix, got ndarray of 1 dimension"):
            tabular(QUICK).fit(X[:, 0], y)

    def test_columns_in_another_order(self):
        frame, y = table(sales, 80)
        model = tabular(QUICK).fit(frame, y)
        expected = model.predict_proba(frame)
        np.testing.assert_array_equal(
            model.predict_proba(frame.assign(more=1)[["more", *frame.columns[::-1]]]), expected
        )
        with pytest.raises(ValueError, match=f"X lacks the columns {frame.columns[0]!r}, which the pipeline"):
            model.predict(frame.drop(columns=frame.columns[0]))


def test_other_estimators():
    assert isinstance(tabular()[-1], LSPC)
    assert isinstance(tabular(LogisticRegression())[-1], LogisticRegression)
    with pytest.raises(TypeError, match="estimator must be a classifier, got 'lspc'"):
        tabular("lspc")


def test_onnx_says_which_part_it_has_none_of():
    frame, y = table(sales, 60)
    with pytest.raises(
        ValueError, match=r"skl2onnx cannot convert the steps before the classifier \(ColumnKinds, Table"
    ):
        to_onnx(tabular(QUICK).fit(frame, y), frame)


def test_a_model_file_of_the_command(tmp_path):
    """It predicts in Python as the command does."""
    frame, y = table(sales, 120)
    path = tmp_path / "sales.csv"
    frame.assign(good=y).to_csv(path, index=False)
    main(
        ["fit", str(path), "--target", "good", "--model", str(tmp_path / "m.kproba"), "--estimator", "lspc", "--quiet"]
    )
    model = kproba.load(tmp_path / "m.kproba")
    assert model.classes_.tolist() == ["no", "yes"]
    new = frame.assign(more=1.0)[["more", *frame.columns[::-1]]]  # other columns, in another order
    proba = model.predict_proba(new)
    assert model.predict(new).tolist() == model.classes_[proba.argmax(axis=1)].tolist()
    assert model.score(new, y) > 0.8
    np.testing.assert_allclose(model.pipeline.predict_proba(frame), proba)
    assert explain(model.pipeline, frame[:2]).feature_names == tuple(frame.columns)


@pytest.mark.parametrize("kind", ["int64", "float64", "Int64", "words"])
def test_numbers_far_from_zero(kind, tmp_path):
    """skrub's float32 cannot tell seconds since 1970 apart: the same column without the pipeline had no errors."""
    seconds = np.random.default_rng(0).integers(0, 60, 200)
    times, y = pd.Series(1_700_000_000 + seconds), np.where(seconds < 30, "p", "q")
    frame = pd.DataFrame({"t": times.map("{:,}".format) if kind == "words" else times.astype(kind), "a": seconds % 7})
    model = tabular(LSPC(random_state=0)).fit(frame, y)
    assert model.score(frame, y) == 1.0 and list(model["columnkinds"].centers_) == ["t"]
    save(model, tmp_path / "m.kproba")
    np.testing.assert_array_equal(load(tmp_path / "m.kproba").predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize(
    ("draw", "is_centred"),
    [
        (lambda rng: rng.normal(size=3000), False),
        (lambda rng: rng.integers(0, 10**9, 3000), False),
        (lambda rng: rng.lognormal(3, 5, 3000), False),
        (lambda rng: 2020 + rng.random(3000), True),
        (lambda rng: np.r_[0.0, np.inf, np.nan, 1.7e9 + np.arange(3000)], True),
        (lambda rng: np.repeat(1.7e9 + np.arange(2), 20_000), True),
        (lambda rng: np.full(9, np.nan), False),
        (lambda rng: np.full(9, 1.7e9 + 1), False),
    ],
)
def test_only_numbers_that_gain_are_centred(draw, is_centred):
    step = ColumnKinds().fit(pd.DataFrame({"x": draw(np.random.default_rng(0))}))
    assert bool(step.centers_) == is_centred


def test_a_stray_word_among_numbers():
    """As in the classifiers themselves: the cell is missing, with a warning."""
    frame = pd.DataFrame({"pulse": ["71.5", "80"] * 15 + ["unknown"], "code": ["100", "200", "20X"] * 10 + ["100"]})
    with pytest.warns(UnreadableWarning, match=r"column 'pulse'.*\('unknown'\)"):
        kinds = ColumnKinds().fit(frame)
    found = kinds.transform(frame)
    assert kinds.words_ == ["code"]
    assert found["pulse"].tolist()[:2] == [71.5, 80.0] and np.isnan(found["pulse"].iloc[-1])


@pytest.mark.parametrize(
    "name, is_code",
    [("id", True), ("postcode", True), ("JobType", True), ("area code", True), ("visits", False), ("paid", False)],
)
def test_integers_that_look_like_codes(name, is_code):
    numbers = np.arange(60) % 5
    assert columns_like_codes(pd.DataFrame({name: numbers})) == [name] * is_code
    assert columns_like_codes(pd.DataFrame({name: np.arange(60)})) == []  # different in every row
    assert columns_like_codes(pd.DataFrame({name: numbers + 0.5})) == []


def test_the_command_remarks_on_codes(tmp_path, capsys):
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    pd.DataFrame({"postcode": rng.integers(1, 5, 60), "x": rng.normal(size=60), "y": ["a", "b"] * 30}).to_csv(
        path, index=False
    )
    main(["fit", str(path), "--target", "y", "--model", str(tmp_path / "m.kproba")])
    assert "'postcode': read as numbers; if these are codes" in capsys.readouterr().err


class TestWithoutSkrub:
    """Numbers and categories of few values: the same columns to the last bit, and no import of skrub."""

    def frame(self, n=60):
        rng = np.random.default_rng(0)
        numbers = rng.normal(size=n)
        return pd.DataFrame(
            {
                "number": np.where(rng.random(n) < 0.2, np.nan, numbers),
                "euros": [f"€ {abs(value):.2f}" for value in numbers],
                "same": 1.0,
                "yes": rng.random(n) < 0.5,
                "two": rng.choice(["m", "f"], n),
                "gaps": np.where(rng.random(n) < 0.3, None, rng.choice(["x", " y", "N/A"], n)),
            }
        )

    def test_same_columns(self):
        frame = self.frame()
        skrubs = vectorizer().fit(frame)
        plain = without_skrub(skrubs, frame)
        assert type(plain["tablevectorizer"]) is PlainTable
        assert plain.get_feature_names_out().tolist() == skrubs.get_feature_names_out().tolist()
        assert plain["tablevectorizer"].kind_to_columns_ == {
            kind: skrubs["tablevectorizer"].kind_to_columns_[kind] for kind in plain["tablevectorizer"].kind_to_columns_
        }
        odd = frame.assign(two="never seen", gaps=3, number="1,5", yes=None)
        typed = frame.astype({"two": "category", "number": "float32"})
        for rows in (frame, frame[:1], odd, typed, frame.assign(two=None, euros=np.nan)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # scikit-learn about values that it does not know
                np.testing.assert_array_equal(plain.transform(rows), skrubs.transform(rows))

    @pytest.mark.parametrize(
        "column", [[f"2024-01-{k % 28 + 1:02d}" for k in range(60)], [f"remark {k}" for k in range(60)]]
    )
    def test_dates_and_text_need_it(self, column):
        frame = self.frame().assign(more=column)
        skrubs = vectorizer().fit(frame)
        assert without_skrub(skrubs, frame) is skrubs

    def awkward(self, seed):
        """Columns of all kinds, some of which make no difference and some of which need all rows."""
        rng, n = np.random.default_rng(seed), 400
        spaces = [" ", "", "a", " a", "a ", "N/A", "none", None, "A\nb", '"q"', "ä"]
        columns = {
            "ints": rng.integers(0, 3, n),
            "large": 2**60 + rng.integers(0, 2, n),
            "floats": rng.normal(size=n).astype(rng.choice([np.float32, np.float64])),
            "gaps": np.where(rng.random(n) < rng.choice([0.01, 0.6]), np.nan, rng.integers(0, 9, n) / 3),
            "one gap": np.where(np.arange(n) == 17, np.nan, 2.0),
            "same": 1.0,
            "none": np.full(n, np.nan),
            "truth": rng.random(n) < 0.5,
            "maybe": np.where(rng.random(n) < 0.3, None, rng.random(n) < 0.5),
            "words": rng.choice(np.array(spaces, dtype=object), n),
            "rare": np.where(np.arange(n) == n - 1, "once", "often"),
            "only": "x",
            "mixed": rng.choice(np.array([True, 1, "1", 1.0, "b"], dtype=object), n),
            "typed": pd.Series(rng.choice(["u", "v"], n)).astype("category"),
            "prices": [f"€ {x:.2f}" for x in rng.exponential(9, n)],
            "many": [f"w{k % rng.integers(38, 43)}" for k in range(n)],
            "text": [f"remark {k}" for k in range(n)],
            "days": [f"2024-01-{k % 28 + 1:02d}" for k in range(n)],
            "stamps": pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(n) % 9, unit="D"),
            "nullable": pd.Series(rng.integers(0, 2, n)).astype("Int64"),
        }
        most = ["mixed", "typed", "many", "text", "days", "stamps", "nullable"]
        chosen = [name for name in columns if rng.random() < (0.15 if name in most else 0.6)]
        return pd.DataFrame({name: columns[name] for name in chosen or ["ints"]})

    @pytest.mark.parametrize("seed", range(25))
    def test_rows_with_all_values_stand_for_all(self, seed, monkeypatch):
        """Fitted to some of the rows, a vectoriser is the same to the last bit as fitted to all."""
        frame = self.awkward(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, numbers = fitted(vectorizer(), frame)
            monkeypatch.setattr(plain_table, "_showing_all_values", lambda read, words: None)
            expected, same = fitted(vectorizer(), frame)
            tried = [frame, frame[::-1], plain_table._tried(frame, expected["columnkinds"].words_)]
            for rows in tried:
                np.testing.assert_array_equal(found.transform(rows), expected.transform(rows))
        np.testing.assert_array_equal(numbers, same)
        assert numbers.dtype == same.dtype
        assert [type(step) for step in found] == [type(step) for step in expected]
        assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
        for name in ("medians_", "gaps_", "levels_", "input_to_outputs_", "kind_to_columns_"):
            if isinstance(expected["tablevectorizer"], PlainTable):
                ours, theirs = (getattr(each["tablevectorizer"], name) for each in (found, expected))
                np.testing.assert_equal(ours, theirs)

    def test_few_rows_are_looked_at(self):
        frame = self.frame(4000).drop(columns="euros")
        rows = plain_table._showing_all_values(ColumnKinds().fit_transform(frame), ["two", "gaps"])
        assert len(rows) <= 12
        assert plain_table._showing_all_values(frame[:20], ["two", "gaps"]) is None

    def test_a_prediction_does_not_import_it(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        self.frame().assign(label=["a", "b"] * 30).to_csv("t.csv", index=False)
        assert cli.main(["fit", "t.csv", "--target", "label", "--quiet"]) == 0
        code = "import sys; from kproba import cli; assert cli.main(['predict', 't.csv', '--out', 'o.csv']) == 0"
        slow = ("skrub", "sklearn.impute", "sklearn.linear_model", "matplotlib")
        ended = subprocess.run([sys.executable, "-c", f"{code}; print([m for m in {slow} if m in sys.modules])"],
                               capture_output=True, text=True, check=True)  # fmt: skip
        assert ended.stdout.splitlines()[-1] == "[]"
        assert len(pd.read_csv("o.csv")) == 60

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("medians_", np.zeros(2, np.float32)),
            ("gaps_", np.array([99])),
            ("gaps_", np.array([0, 0])),
            ("levels_", {"nowhere": None}),
            ("levels_", {}),
            ("levels_", {"two": [1]}),
            ("input_to_outputs_", {"two": ["a"]}),
        ],
    )
    def test_damaged_ones_are_refused(self, name, value, tmp_path):
        frame = self.frame()
        model = behind(without_skrub(vectorizer().fit(frame), frame), LSPC(kernel="gaussian", width=1.0, ridge=0.1))
        model[-1].fit(model[:-1].transform(frame), ["a", "b"] * 30)
        save(model, tmp_path / "m.kproba")
        np.testing.assert_array_equal(load(tmp_path / "m.kproba").predict(frame), model.predict(frame))
        setattr(model["tablevectorizer"], name, value)
        with pytest.raises(ModelFileError, match="PlainTable"):
            save(model, tmp_path / "m.kproba")


@pytest.mark.parametrize("n_columns", [1, 2])
def test_medians_leave_the_rows_in_place(n_columns):
    """A single column is contiguous: a median that sorts in place would move its values to other rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{j}": rng.normal(size=300) for j in range(n_columns)})
    prepared, made = fitted(vectorizer(), frame)
    np.testing.assert_allclose(made, frame.to_numpy(), rtol=1e-6)
    np.testing.assert_allclose(prepared.transform(frame), frame.to_numpy(), rtol=1e-6)


def waits(n=150):
    """The class follows a duration, of which one is missing."""
    hours = np.random.default_rng(0).integers(1, 5, n)
    waited = pd.to_timedelta(hours, unit="h").to_series(index=range(n))
    waited[7] = pd.NaT
    return pd.DataFrame({"a": np.arange(n) % 7 + 0.5, "waited": waited, "y": np.where(hours > 2, "p", "q")})


class TestCells:
    def test_durations_are_seconds(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        frame = waits()
        X, y = frame[["a", "waited"]], frame["y"].to_numpy()
        model = tabular(QUICK).fit(X, y)
        save(model, "m.kproba")
        np.testing.assert_array_equal(load("m.kproba").predict_proba(X), model.predict_proba(X))
        assert model.score(X, y) > 0.95
        assert model[0].transform(X)["waited"].dropna().isin([3600.0, 7200.0, 10800.0, 14400.0]).all()
        frame.to_parquet("t.parquet")
        words = ["t.parquet", "--model", "c.kproba", "--quiet"]
        for more in ([], ["--stream", "--chunk-rows", "40"]):
            assert main(["fit", *words, "--target", "y", "--estimator", "surface", *more]) == 0
            assert main(["predict", *words, "--out", "out.csv", "--chunk-rows", "40"]) == 0
            assert (pd.read_csv("out.csv")["prediction"] == y).mean() > 0.95

    def test_lists_are_refused_by_name(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        frame = waits().drop(columns="waited")
        assert main(["fit", *_written(frame.assign(tags="x")), "--estimator", "surface"]) == 0
        listed = frame.assign(tags=[[1, 2]] * len(frame))
        for words in (["fit", *_written(listed)], ["predict", "t.parquet"]):
            assert main(words) == 2
            assert "t.parquet: the column 'tags' holds list<element: int64>, not one value" in capsys.readouterr().err
        assert main(["fit", *_written(listed), "--ignore", "tags", "--estimator", "surface"]) == 0
        with pytest.raises(TypeError, match="the column 'tags' holds 'list' objects; a cell is a number"):
            tabular(QUICK).fit(listed[["a", "tags"]], listed["y"])


def _written(frame):
    frame.to_parquet("t.parquet")
    return ["t.parquet", "--target", "y"]
