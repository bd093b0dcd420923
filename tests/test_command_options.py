"""What the commands say about columns, scores and new rows, and the options that say how a model is judged."""

import json
import signal
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, f1_score, log_loss, roc_auc_score

import kproba
from kproba import cli
from kproba.cli import _columns, _frames, _splits
from kproba.cli._budget import OutOfTime, time_limit
from kproba.cli._dates import DAY_FIRST, MONTH_FIRST, example_of, moments, order_of
from kproba.cli._scores import positive_class, scores
from kproba.cli._target import class_weights

N = 80


def visits(n=N, seed=0):
    """Fewer rows than a kernel is learnt on; the class follows the age, and every patient has some rows."""
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 12, n).round(1)
    return pd.DataFrame(
        {
            "age": age,
            "job": rng.choice(["cook", "nurse", "clerk"], n),
            "patient": [f"p{k:02d}" for k in rng.integers(0, 12, n)],
            "day": [f"{day:%d/%m/%Y}" for day in pd.date_range("2024-01-01", periods=n, freq="3D")],
            "ill": np.where(age + rng.normal(0, 6, n) > 42, "yes", "no"),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    visits().to_csv("visits.csv", index=False)
    return tmp_path


def run(capsys, *words, status=0):
    """What a command prints: standard output and standard error."""
    capsys.readouterr()
    assert cli.main([str(word) for word in words]) == status
    return capsys.readouterr()


def fit(capsys, *words, data="visits.csv"):
    """The JSON of a fit."""
    common = ("fit", data, "--target", "ill", "--estimator", "lspc", "--json")
    return json.loads(run(capsys, *common, *words).out)


#: A table, options, and the message.
CASES = {
    "one row": ("a,y\n1,p\n", (), "--target y: t.csv has only the class 'p' (1 row(s)); a classifier needs"),
    "constant": ("a,b,y\n" + "1,2,p\n1,2,q\n" * 5, (), "nothing to predict 'y' from: 'a', 'b' have the same value"),
    "ratings": ("a,y\n" + "1,0.5\n2,1.0\n3,2.5\n" * 5, (), "it has fractions ('0.5', '2.5'), so it is a quantity"),
    "words": ("a,w,y\n" + "1,x,p\n2,x,q\n" * 5, ("--weight", "w"), "the weight column 'w' has 'x'"),
    "no weight": ("a,w,y\n" + "1,,p\n2,1,q\n" * 5, ("--weight", "w"), "--weight w: it has missing values"),
    "negative": ("a,w,y\n" + "1,-2,p\n2,1,q\n" * 5, ("--weight", "w"), "--weight w: it has -2"),
    "spelling": ("a,class,y\n" + "1,x,p\n2,x,q\n" * 5, ("--ignore", "klass"), "(did you mean 'class'?)"),
    "groups": ("a,g,y\n" + "1,,p\n2,1,q\n" * 5, ("--groups", "g"), "--groups g: 5 row(s) have no group"),
    "order": ("a,t,y\n" + "1,soon,p\n2,late,q\n" * 5, ("--order", "t"), "--order t: 'soon' is neither a number"),
    "share": ("a,y\n" + "1,p\n2,q\n" * 5, ("--holdout", "1.5"), "--holdout 1.5: it must be a share"),
    "factor": ("a,y\n" + "1,p\n2,q\n" * 5, ("--class-weight", "p"), "--class-weight p: use balanced, or LABEL"),
    "class": ("a,y\n" + "1,yes\n2,no\n" * 5, ("--positive", "yess"), "no such class (did you mean 'yes'?)"),
    "time": ("a,y\n" + "1,p\n2,q\n" * 5, ("--seconds", "0"), "--seconds 0: it must be more than 0"),
    "ridge": (
        "a,y\n" + "1,p\n2,q\n" * 5,
        ("--ridge", "1", "--estimator", "surface"),
        "the surface estimator has none",
    ),
}


class TestMessages:
    @pytest.mark.parametrize("name", CASES)
    @pytest.mark.parametrize("stream", [False, True])
    def test_fit(self, name, stream, folder, capsys):
        text, options, message = CASES[name]
        if stream and name in ("groups", "no weight", "negative"):
            pytest.skip("found by the estimator, which names the row")
        (folder / "t.csv").write_text(text)
        words = ("fit", "t.csv", "--target", "y", *options, *(["--stream"] if stream else []))
        shown = run(capsys, *words, status=cli.BAD_INPUT)
        assert message in shown.err and "Traceback" not in shown.err

    def test_files_with_similar_names(self, folder, capsys):
        shown = run(capsys, "fit", "visit.csv", "--target", "ill", status=cli.BAD_INPUT)
        assert "visit.csv: no such file (did you mean 'visits.csv'?)" in shown.err

    def test_columns_that_a_model_misses(self, folder, capsys):
        fit(capsys)
        visits().rename(columns={"age": "Age"}).to_csv("new.csv", index=False)
        shown = run(capsys, "predict", "new.csv", status=cli.BAD_INPUT)
        assert "'age', which the model was fitted on, are missing (did you mean 'Age'?)" in shown.err

    def test_a_hint_to_install_something_comes_once(self, folder, capsys, monkeypatch):
        def absent():
            raise ImportError("reading tables needs pandas: pip install 'kproba[tables]'")

        monkeypatch.setattr("kproba.data.formats.pandas", absent)
        shown = run(capsys, "fit", "visits.csv", "--target", "ill", status=cli.BAD_INPUT)
        assert shown.err.count("pip install") == 1


class TestColumns:
    def table(self):
        rng = np.random.default_rng(0)
        y = np.array(["a", "b"] * 50)
        X = pd.DataFrame(
            {
                "number": rng.normal(size=100),
                "id": np.arange(7, 107),
                "code": [f"x{k}" for k in rng.permutation(100)],
                "price": [f"{x:.2f}" for x in rng.normal(50, 9, 98)] + ["unknown", "n.a."],
                "copy": np.where(y == "a", "A", "B"),
                "later": np.where(y == "a", 1.0, 5.0) + rng.normal(0, 0.1, 100),
                "same": 1,
                "none": None,
                "gaps": np.where(np.arange(100) < 25, np.nan, rng.normal(size=100)),
            }
        )
        kinds = dict.fromkeys(["number", "id", "later", "gaps"], "numbers")
        kinds |= {"code": "text", "price": "text", "copy": "categories"}
        return {each.name: each for each in _columns.overview(X, y, kinds)}

    def test_kinds(self):
        found = self.table()
        assert (found["same"].kind, found["same"].use) == ("constant", "dropped")
        assert (found["none"].kind, found["none"].missing) == ("empty", 1.0)
        assert found["gaps"].missing == 0.25
        assert found["copy"].use == "one 0/1 column for each of 2 values"

    def test_remarks(self):
        found = {name: " ".join(each.remarks) for name, each in self.table().items()}
        assert "identifier" in found["id"] and "identifier" in found["code"]
        assert "stray words ('n.a.', 'unknown')" in found["price"]
        assert "predicts the target alone" in found["copy"] and "predicts the target alone" in found["later"]
        assert not any(found[name] for name in ("number", "same", "none", "gaps"))

    @pytest.mark.parametrize("seed", range(5))
    def test_nothing_leaks_from_noise(self, seed):
        """Also if the rows are sorted by class, values repeat, or a class is rare."""
        rng = np.random.default_rng(seed)
        for y in (np.sort(rng.integers(0, 2, 200)), (np.arange(300) < 8).astype(int)):
            for values in (rng.integers(0, 2, len(y)), rng.normal(size=len(y)), rng.choice(["p", "q"], len(y))):
                assert not _columns.is_leak(pd.Series(values), y)
                assert not _columns.is_leak(pd.Series(np.ones(len(y))), y)

    def test_a_rare_class_that_leaks(self):
        y = (np.arange(1000) % 43 == 0).astype(int)
        assert _columns.is_leak(pd.Series(y * 2.0), y)

    def test_fit_shows_them(self, folder, capsys):
        visits().assign(constant=1).to_csv("visits.csv", index=False)
        words = ("fit", "visits.csv", "--target", "ill", "--estimator", "lspc")
        shown = run(capsys, *words).out
        assert shown.splitlines()[0].split() == ["column", "kind", "missing", "example", "use"]
        assert "constant  constant" in shown and "one 0/1 column for each of 3 values" in shown
        assert "column " not in run(capsys, *words, "--quiet").out
        assert {each["name"] for each in fit(capsys)["column_table"]} == {"age", "job", "patient", "day", "constant"}

    def test_many_columns(self):
        few = [_columns.Column(f"c{k}", "numbers", 0.0, "1", "used", ["odd"] if k == 99 else []) for k in range(100)]
        text = _columns.table(few)
        assert text.splitlines()[2] == "  ! odd" and text.endswith("and 40 more columns")


class TestScores:
    def test_against_scikit_learn(self):
        rng = np.random.default_rng(0)
        y, classes = rng.choice(["a", "b", "c"], 60), np.array(["a", "b", "c"])
        proba, weight = rng.dirichlet(np.ones(3), 60), rng.integers(1, 4, 60)
        found = scores(y, proba, classes, weight=weight)
        predicted = classes[proba.argmax(axis=1)]
        assert found["log_loss"] == pytest.approx(log_loss(y, proba, sample_weight=weight))
        expected = roc_auc_score(y, proba, multi_class="ovr", sample_weight=weight)
        assert found["auc"] == pytest.approx(expected)
        assert found["f1"] == pytest.approx(f1_score(y, predicted, average="macro", sample_weight=weight))
        one = scores(y, proba, classes, "b")
        assert one["average_precision"] == pytest.approx(average_precision_score(y == "b", proba[:, 1]))
        assert np.sum(one["confusion"]) == 60 and np.sum(one["confusion"], axis=1)[0] == (y == "a").sum()

    def test_class_shares(self):
        y = np.array(["no"] * 7 + ["yes"] * 3)
        found = scores(y, np.full((10, 2), 0.5), np.array(["no", "yes"]))["class_shares"]
        assert found["answer"] == "no" and found["error"] == pytest.approx(0.3)
        assert found["log_loss"] == pytest.approx(log_loss(y, np.tile([0.7, 0.3], (10, 1))))

    def test_a_class_without_rows(self):
        found = scores(np.array(["a", "a"]), np.array([[0.9, 0.1]] * 2), np.array(["a", "b"]), "b")
        assert np.isnan(found["auc"]) and found["f1"] == 0

    def test_positive_class(self):
        assert positive_class(None, {"no": 9, "yes": 3}) == "yes"
        assert positive_class(None, {0: 5, 1: 5}) == 1
        assert positive_class(None, {"a": 1, "b": 2, "c": 3}) is None
        assert positive_class("1", {0: 5, 1: 5}) == 1

    def test_fit_shows_them(self, folder, capsys):
        shown = run(capsys, "fit", "visits.csv", "--target", "ill", "--estimator", "lspc", "--positive", "no").out
        assert "always answering" in shown and "class shares" in shown and "(of no)" in shown

    def test_noise(self, folder, capsys):
        rng = np.random.default_rng(1)
        frame = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N), "ill": rng.choice(["yes", "no"], N)})
        frame.to_csv("noise.csv", index=False)
        shown = run(capsys, "fit", "noise.csv", "--target", "ill", "--holdout", 0.5).out
        assert "no better than the class shares" in shown

    def test_evaluate(self, folder, capsys):
        fit(capsys, "--positive", "no")
        visits(seed=1).to_csv("new.csv", index=False)
        found = json.loads(run(capsys, "evaluate", "new.csv", "--json").out)
        assert found["positive"] == "no" and 0.5 < found["auc"] <= 1 and np.sum(found["confusion"]) == N
        assert json.loads(run(capsys, "evaluate", "new.csv", "--json", "--positive", "yes").out)["positive"] == "yes"
        assert "true class \\ predicted" in run(capsys, "evaluate", "new.csv").out
        for options, name in (((), "no"), (("--positive", "yes"), "yes")):
            run(capsys, "report", "new.csv", *options)
            assert f"Probability of <bdi>{name}</bdi>" in (folder / "report.html").read_text()

    def test_more_classes_have_none_in_a_report(self, folder, capsys):
        frame = visits().assign(ill=np.arange(N) % 3)
        frame.to_csv("visits.csv", index=False)
        fit(capsys, "--positive", "2")
        run(capsys, "report", "visits.csv")
        assert "3 classes, not two" in run(capsys, "report", "visits.csv", "--positive", "2", status=cli.BAD_INPUT).err


class TestJudging:
    """Rows that are set aside: the same whether a table is read as a whole or chunk by chunk."""

    @pytest.mark.parametrize(
        "options", [("--holdout", 0.3), ("--order", "day"), ("--groups", "patient", "--holdout", 0.3)]
    )
    def test_streams(self, folder, capsys, options):
        whole = fit(capsys, *options)
        streamed = fit(capsys, *options, "--stream", "--chunk-rows", 17)
        assert whole["held_out"]["rows"] == streamed["held_out"]["rows"] > 0
        assert whole["rows"] == streamed["rows"] == N
        if "--groups" not in options:  # which the folds of a streamed fit do not know
            assert whole["held_out"]["log_loss"] == pytest.approx(streamed["held_out"]["log_loss"], rel=1e-6)

    @pytest.mark.parametrize(
        ("days", "last"),
        [
            ([f"{1 + k % 12:02d}/{1 + k % 11:02d}/2024" for k in range(N - 1)], "31/12/2024"),
            ([str(1980 + k % 30) for k in range(N - 1)], "2024-06-01"),
        ],
    )
    def test_streams_read_all_dates_in_one_order(self, folder, capsys, days, last):
        """Days up to the twelfth, or plain years, in a chunk do not show how the column is read."""
        visits().assign(day=[*days, last]).to_csv("ends.csv", index=False)
        found = {}
        for more in ((), ("--stream", "--chunk-rows", 17)):
            found[more] = fit(capsys, "--order", "day", *more, data="ends.csv")["held_out"]
        whole, streamed = found.values()
        assert whole["rows"] == streamed["rows"]
        assert whole["log_loss"] == pytest.approx(streamed["log_loss"], rel=1e-6)

    def test_streams_weigh_the_rows(self, folder, capsys):
        frame = visits()
        frame.assign(count=np.where(frame["ill"] == "yes", 9, 1)).to_csv("counts.csv", index=False)
        words = ("--weight", "count", "--holdout", 0.4)
        whole, streamed = (fit(capsys, *words, *more, data="counts.csv") for more in ((), ("--stream",)))
        assert whole["held_out"]["class_shares"] == pytest.approx(streamed["held_out"]["class_shares"])
        assert whole["held_out"]["log_loss"] == pytest.approx(streamed["held_out"]["log_loss"], rel=0.01)

    @pytest.mark.parametrize(
        ("options", "instead"), [((), "add --holdout 0.2"), (("--order", "day"), "leave out --order")]
    )
    def test_streams_judge_by_whole_groups_or_not_at_all(self, folder, capsys, options, instead):
        words = ("fit", "visits.csv", "--target", "ill", "--groups", "patient", "--stream", *options)
        assert "--groups patient: a table that is read in chunks" in (err := run(capsys, *words, status=2).err)
        assert instead in err
        assert "out_of_fold" not in fit(capsys, "--groups", "patient", "--stream", "--holdout", 0.3)

    def test_the_model_does_not_see_them(self, folder, capsys):
        found = fit(capsys, "--holdout", 0.3)
        about = json.loads(run(capsys, "evaluate", "visits.csv", "--json").out)
        assert about["training_rows"] == N - found["held_out"]["rows"]

    def test_the_latest(self):
        frame = visits()
        rule = _splits.latest("day", moments(frame["day"]), 0.2)
        assert rule.holds(frame, 0).tolist() == [k >= 64 for k in range(N)]
        assert not rule.inverse().holds(frame, 0)[-1]

    def test_groups_stay_together(self, folder, capsys):
        frame = visits()
        args = type("Args", (), {"holdout": 0.4, "order": None, "groups": "patient", "seed": 0})
        held = _splits.rule_of(args, None, N).holds(frame, 0)
        assert not set(frame["patient"][held]) & set(frame["patient"][~held]) and held.any()

    def test_groups_are_left_out_together(self, folder, capsys):
        """The class is that of the patient, whom a column identifies: only groups show that."""
        rng = np.random.default_rng(0)
        number = rng.integers(0, 20, N)
        frame = pd.DataFrame({"code": number * 10.0 + rng.normal(0, 0.1, N), "patient": number})
        frame["ill"] = np.where(rng.permutation(20)[number] % 2, "yes", "no")
        frame.to_csv("visits.csv", index=False)
        alone, together = fit(capsys, "--ignore", "patient"), fit(capsys, "--groups", "patient")
        assert alone["leave_one_out"]["error"] < 0.2 < together["leave_one_out"]["error"]
        assert "patient" not in {each["name"] for each in together["column_table"]}

    def test_large_tables_have_a_score(self, folder, capsys, monkeypatch):
        monkeypatch.setattr(_splits, "MANY_ROWS", 50)
        monkeypatch.setattr(_splits, "SHARE", 0.3)
        monkeypatch.setattr(_frames, "LARGE_BYTES", 1)
        shown = run(capsys, "fit", "visits.csv", "--target", "ill", "--estimator", "lspc").out
        assert "rows set aside: error" in shown
        assert "held_out" not in fit(capsys, "--holdout", 0)

    def test_no_class_is_set_aside_entirely(self, folder, capsys):
        visits().assign(ill=lambda frame: np.where(frame.index > 70, "yes", "no")).to_csv("visits.csv", index=False)
        shown = run(capsys, "fit", "visits.csv", "--target", "ill", "--order", "day", status=cli.BAD_INPUT)
        assert "all rows of the class 'yes' would be set aside" in shown.err


class TestEstimatorOptions:
    def test_ridge(self, folder, capsys):
        assert fit(capsys, "--ridge", 0.25)["ridge"] == 0.25

    def test_class_weight(self, folder, capsys):
        probabilities = []
        for words in ((), ("--class-weight", "yes=20"), ("--class-weight", "balanced")):
            fit(capsys, *words)
            run(capsys, "predict", "visits.csv", "--out", "out.csv")
            probabilities.append(pd.read_csv("out.csv")["proba_yes"].mean())
        assert probabilities[1] > probabilities[0] + 0.1
        assert probabilities[2] != probabilities[0]

    def test_factors(self):
        assert class_weights(["a=b=2", "1=0.5"], ["a=b", 1]) == {"a=b": 2.0, 1: 0.5}
        with pytest.raises(ValueError, match=r"--class-weight b: there is no such class; the classes are 'a'"):
            class_weights(["b=1"], ["a"])

    def test_seconds(self, folder, capsys):
        """Enough rows to learn a kernel, and no time for it."""
        visits(150).to_csv("visits.csv", index=False)
        words = ("fit", "visits.csv", "--target", "ill", "--estimator", "lspc", "--ignore", "day", "patient")
        shown = run(capsys, *words, "--seconds", 0.01)
        assert "0.01 s are over: keeping the Gaussian kernel" in shown.err and "gaussian kernel" in shown.out

    def test_time_limit(self):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a background process of a shell
        try:
            with pytest.raises(OutOfTime), time_limit(0.05):
                for _ in range(100):
                    time.sleep(0.05)
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        finally:
            signal.signal(signal.SIGINT, before)
        with time_limit(5.0):
            pass
        with pytest.raises(KeyboardInterrupt), time_limit(5.0):
            raise KeyboardInterrupt


class TestNewRows:
    def test_unknown_values_and_other_dates(self, folder, capsys):
        fit(capsys, "--ignore", "patient")
        frame = visits(seed=1)
        assert not run(capsys, "predict", "visits.csv", "--out", "out.csv").err
        frame["job"] = frame["job"].str.upper()
        frame["day"] = [f"{day:%m/%d/%Y}" for day in pd.date_range("2024-01-01", periods=N)]
        frame.to_csv("new.csv", index=False)
        for words in (("predict", "new.csv", "--out", "out.csv", "--chunk-rows", 20), ("evaluate", "new.csv")):
            shown = run(capsys, *words).err
            assert "column 'job': the model knows none of the values 'CLERK', 'COOK', 'NURSE'" in shown
            assert "column 'day': the training table writes dates as day/month, but '01/13/2024'" in shown
        frame.assign(job=["cook"] * N).to_csv("new.csv", index=False)
        assert "'job'" not in run(capsys, "predict", "new.csv", "--out", "out.csv").err

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_a_number_means_the_same_in_every_chunk(self, tmp_path, capsys, monkeypatch, suffix):
        monkeypatch.chdir(tmp_path)
        people = np.random.default_rng(0).integers(100, 9000, N)
        frame = pd.DataFrame({"people": people, "size": np.where(people > 3000, "big", "small")})
        frame.to_csv("t.csv", index=False)
        fitted = ("fit", "t.csv", "--target", "size", "--estimator", "surface")
        run(capsys, *fitted)
        # only the first row shows that 8.500 is more than eight thousand
        frame["people"] = ["1.234,5", *(f"{each:,}".replace(",", ".") for each in people[1:])]
        frame.to_csv("new.csv", sep=";", index=False) if suffix == "csv" else frame.to_parquet("new.parquet")
        words, found = ("predict", f"new.{suffix}", "--out", "out.csv"), {}
        for rows in (N, 1, 20):
            run(capsys, *words, "--chunk-rows", rows)
            found[rows] = pd.read_csv("out.csv")["proba_big"]
            np.testing.assert_allclose(found[rows], found[N], rtol=1e-6)
        run(capsys, *words, "--chunk-rows", 20, "--keep", "people")
        assert pd.read_csv("out.csv", dtype=str)["people"].tolist() == frame["people"].tolist()
        score = [run(capsys, "evaluate", f"new.{suffix}", "--chunk-rows", rows, "--json").out for rows in (N, 20)]
        one, other = (json.loads(each)["log_loss"]["value"] for each in score)
        assert one == pytest.approx(other, rel=1e-6)

    def test_a_chunk_of_a_fit_is_read_as_the_sample(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        people = np.random.default_rng(0).integers(1000, 9000, N)
        written = [f"{each:,}" for each in people]
        written[0], written[-1] = "1,234.5", "12,5"  # of which the last one is no such number
        pd.DataFrame({"people": written, "size": np.where(people > 3000, "big", "small")}).to_csv("t.csv", index=False)
        words = ("fit", "t.csv", "--target", "size", "--estimator", "surface", "--stream", "--json", "--holdout", 0.3)
        found = [json.loads(run(capsys, *words, "--chunk-rows", rows).out)["held_out"] for rows in (N, 20)]
        assert found[0]["log_loss"] == pytest.approx(found[1]["log_loss"], rel=1e-6)

    def test_notes_in_json(self, folder, capsys):
        fit(capsys, "--ignore", "patient", "day")
        visits().assign(job="chef").to_csv("new.csv", index=False)
        found = json.loads(run(capsys, "predict", "new.csv", "--out", "out.csv", "--json").out)
        assert len(found["notes"]) == 1 and "'chef'" in found["notes"][0]

    @pytest.mark.parametrize(
        "about",
        [
            [],
            {"other": 1},
            {"profile": []},
            {"profile": {"job": {"values": [1]}}},
            {"profile": {"job": {"order": "x"}}},
        ],
    )
    def test_damaged_descriptions_are_refused(self, about, folder, capsys):
        fit(capsys, "--ignore", "patient", "day")
        model = kproba.load("model.kproba")
        model.about = about
        with pytest.raises(kproba.ModelFileError, match="about is not None or a description of columns"):
            kproba.save(model, "damaged.kproba")

    def test_orders(self):
        assert order_of(["01/02/2024", "13.02.2024"]) == DAY_FIRST
        assert order_of(["01/02/2024", "02/13/24"]) == MONTH_FIRST
        assert order_of(["01/02/2024", "2024-13-02", None, 3.0]) is None
        assert order_of(["13/02/2024", "02/13/2024"]) is None
        assert example_of(["40/50/2024"], DAY_FIRST) is None

    def test_moments(self):
        assert moments(pd.Series(["10", "9", None])).tolist()[:2] == [10, 9]
        days = moments(pd.Series(["13/02/2024", "01/03/2024", None]))
        assert days[0] < days[1] and np.isnan(days[2])


class TestCompare:
    ONLY = ("--only", "logistic regression", "random forest", "--folds", 2, "--ignore", "day")

    def test_page(self, folder, capsys):
        words = ("compare", "visits.csv", "--target", "ill", *self.ONLY)
        found = json.loads(run(capsys, *words, "--groups", "patient", "--out", "page.html", "--json").out)
        page = (folder / "page.html").read_text()
        assert page.startswith("<!doctype html>") and "<svg" in page and "Confusion matrices" in page
        gap = found["differences"]["random forest"]
        losses = {name: each["log_loss"] for name, each in found["methods"].items()}
        assert gap["value"] == pytest.approx(losses["random forest"] - losses["logistic regression"])
        assert gap["low"] <= gap["value"] <= gap["high"]
        assert {"auc", "average_precision", "f1", "confusion"} <= set(found["methods"]["random forest"])

    def test_names_are_escaped(self, folder, capsys):
        frame = visits().replace({"yes": "<b>yes</b>"})
        frame.to_csv("<i>.csv", index=False)
        run(capsys, "compare", "<i>.csv", "--target", "ill", *self.ONLY, "--out", "page.html")
        page = (folder / "page.html").read_text()
        assert "<b>" not in page and "<i>" not in page and "&lt;b&gt;yes" in page

    def test_judged_by_the_future(self, folder, capsys):
        words = ("compare", "visits.csv", "--target", "ill", *self.ONLY[:-2], "--order", "day", "--json")
        found = json.loads(run(capsys, *words).out)
        assert found["rows"] == len(np.concatenate(np.array_split(np.arange(N), 3)[1:]))

    def test_too_few_groups(self, folder, capsys):
        words = ("compare", "visits.csv", "--target", "ill", "--groups", "job", "--folds", 5)
        assert "--groups job has 3 group(s)" in run(capsys, *words, status=cli.BAD_INPUT).err
