"""Rows that a model was fitted on are never reported as held out: in any order, file, part or company."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproba import LSPC, ModelFileError, cli, load, save
from kproba.cli import _frames, _models, _training
from kproba.cli._training import Recognition, RowSketch, SeenRows, _mixed, row_digests
from kproba.estimators import _reading
from kproba.pipelines import vectorizer
from kproba.report import write_report

N = 240


def table(seed=0, n=N):
    """Numbers, whole numbers with gaps, truth values, dates, categories and text, and a class that is half noise."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return pd.DataFrame(
        {
            "a": a.astype(np.float32),
            "b": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 1000, n)),
            "is_new": rng.random(n) < 0.5,
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "job": np.where(rng.random(n) < 0.1, None, rng.choice(["cook", "nurse"], n)),
            "remark": [f"town {k} of {rng.integers(10_000)}" for k in range(n)],
            "y": np.where(a + rng.normal(size=n) > 0, "yes", "no"),
        }
    )


def written(frame, path):
    writers = {
        ".csv": "to_csv",
        ".tsv": "to_csv",
        ".parquet": "to_parquet",
        ".feather": "to_feather",
        ".xlsx": "to_excel",
    }
    options = {".feather": {}, ".tsv": {"index": False, "sep": "\t"}}.get(path.suffix, {"index": False})
    getattr(frame.reset_index(drop=True), writers[path.suffix])(path, **options)
    return path


def run(*words) -> int:
    return cli.main([str(word) for word in words])


def judged(capsys, path, model, command="evaluate", *more) -> dict:
    capsys.readouterr()
    assert run(command, path, "--model", model, "--json", *more) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models with out-of-fold probabilities, from a file and from a stream, and one without, as of large tables."""
    path = tmp_path_factory.mktemp("training")
    train = written(table(), path / "train.csv")
    fit = ("fit", train, "--target", "y", "--quiet", "--estimator", "lspc", "--model")
    assert run(*fit, path / "whole.kproba") == 0
    assert run(*fit, path / "stream.kproba", "--stream", "--chunk-rows", 70) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_reading, "sample_size", lambda d: 100)
        assert run(*fit, path / "large.kproba", "--stream", "--chunk-rows", 70) == 0
        assert run(*fit, path / "array.kproba") == 0
    return path


class TestOutOfFold:
    @pytest.mark.parametrize("model", ["whole.kproba", "stream.kproba"])
    def test_the_file_itself(self, folder, model, capsys):
        """`fit --stream` and then `evaluate` of the same file reported training errors as those of new rows."""
        found = judged(capsys, folder / "train.csv", folder / model)
        assert found["on"] == "out-of-fold" and found["training_rows"] == N
        clf = load(folder / model).classifier
        wrong = clf.classes_[clf.oof_proba_.argmax(axis=1)] != table()["y"]
        assert found["error"]["value"] == pytest.approx(wrong.mean())

    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".xlsx"])
    def test_another_order_and_file(self, folder, suffix, capsys):
        own = judged(capsys, folder / "train.csv", folder / "whole.kproba")
        other = written(table().sample(frac=1, random_state=0), folder / f"other{suffix}")
        found = judged(capsys, other, folder / "whole.kproba")
        assert found["on"] == "out-of-fold" and found["training_rows"] == N
        for measure in ("error", "log_loss", "brier"):
            assert found[measure]["value"] == pytest.approx(own[measure]["value"], rel=1e-9)

    def test_in_chunks(self, folder, capsys, monkeypatch):
        other = written(table().sample(frac=1, random_state=0), folder / "chunks.csv")
        small = judged(capsys, other, folder / "whole.kproba")
        monkeypatch.setattr(_frames, "LARGE_BYTES", 1)
        large = judged(capsys, other, folder / "whole.kproba", "evaluate", "--chunk-rows", 50)
        assert small["on"] == large["on"] == "out-of-fold"
        assert small["log_loss"] == large["log_loss"]

    def test_a_part(self, folder, capsys):
        found = judged(capsys, written(table().iloc[50:90], folder / "part.csv"), folder / "whole.kproba")
        assert found["on"] == "out-of-fold" and found["training_rows"] == 40

    def test_among_others(self, folder, capsys):
        both = pd.concat([table(1), table().iloc[:60]]).sample(frac=1, random_state=0)
        path = written(both, folder / "both.csv")
        found = judged(capsys, path, folder / "whole.kproba")
        assert found["on"] == "out-of-fold and held-out" and found["training_rows"] == 60
        assert run("evaluate", path, "--model", folder / "whole.kproba") == 0
        assert "60 of these 300 rows equal training rows of the model" in capsys.readouterr().err

    def test_repeated_rows(self, folder, capsys):
        """In the training table, and in the file that is judged."""
        twice = pd.concat([table(), table().iloc[:100]])
        path, model = written(twice, folder / "twice.csv"), folder / "twice.kproba"
        assert run("fit", path, "--target", "y", "--model", model, "--quiet", "--estimator", "lspc") == 0
        assert judged(capsys, path, model)["on"] == "out-of-fold"
        assert judged(capsys, written(table().iloc[:80], folder / "p.csv"), model)["training_rows"] == 80
        often = written(pd.concat([table().iloc[:20]] * 3), folder / "often.csv")
        assert judged(capsys, often, folder / "whole.kproba")["training_rows"] == 60

    def test_new_rows(self, folder, capsys):
        for model in ("whole", "stream", "large", "array"):
            found = judged(capsys, written(table(1), folder / "new.csv"), folder / f"{model}.kproba")
            assert found["on"] == "held-out" and found["training_rows"] == 0 and "warning" not in found

    def test_another_class_is_another_row(self, folder, capsys):
        frame = table().assign(y=table()["y"].map({"yes": "no", "no": "yes"}))
        assert judged(capsys, written(frame, folder / "turned.csv"), folder / "whole.kproba")["on"] == "held-out"

    def test_report(self, folder, capsys):
        path = written(pd.concat([table(1), table().iloc[:60]]), folder / "both.csv")
        found = judged(capsys, path, folder / "whole.kproba", "report", "--out", folder / "both.html")
        assert found["on"] == "out-of-fold and held-out"
        assert "60 of these 300 rows equal training rows" in (folder / "both.html").read_text()


@pytest.mark.parametrize("kind", [bool, int, float])
def test_classes_written_differently(kind, tmp_path, capsys):
    """The same rows with 0 and 1 in place of False and True were held out, with training errors."""
    frame = table().assign(y=table()["y"] == "yes")
    assert run("fit", written(frame, tmp_path / "t.csv"), "--target", "y", "--quiet", "--model", tmp_path / "m") == 0
    found = judged(capsys, written(frame.assign(y=frame["y"].astype(kind)), tmp_path / "u.csv"), tmp_path / "m")
    assert found["training_rows"] == N and found["classes"] == ["False", "True"]
    assert found == judged(capsys, tmp_path / "t.csv", tmp_path / "m")


class TestWithout:
    """Tables of 50,000 rows and more, however they are read, have no leave-one-out."""

    @pytest.mark.parametrize("model", ["large.kproba", "array.kproba"])
    def test_the_answer_says_so(self, folder, model, capsys):
        other = written(table().sample(frac=1, random_state=0), folder / "shuffled.parquet")
        for path in (folder / "train.csv", other):
            found = judged(capsys, path, folder / model)
            assert found["on"] == "training" and found["training_rows"] == N
            assert "say nothing about new rows" in found["warning"]
            assert run("evaluate", path, "--model", folder / model, "--quiet") == 0
            assert "say nothing about new rows" in capsys.readouterr().out

    def test_the_report_says_so(self, folder, capsys):
        page = folder / "page.html"
        found = judged(capsys, folder / "train.csv", folder / "large.kproba", "report", "--out", page)
        assert found["on"] == "training" and "warning" in found
        text = page.read_text()
        assert "training rows: results do not apply to new rows" in text and "held-out rows" not in text
        assert "the results say nothing about new rows" in text
        assert run("report", folder / "train.csv", "--model", folder / "large.kproba", "--out", page, "--quiet") == 0
        assert "say nothing about new rows" in capsys.readouterr().out

    def test_among_others(self, folder, capsys):
        path = written(pd.concat([table(1), table().iloc[:60]]), folder / "both.csv")
        found = judged(capsys, path, folder / "large.kproba")
        assert found["on"] == "training" and found["training_rows"] == 60
        assert "About 60 of these 300 rows" in found["warning"]

    def test_in_python(self, tmp_path):
        X, y = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80) % 2
        clf = LSPC(kernel="gaussian", width=1.0, ridge=1e-3).fit(X, y)
        page = write_report(clf, X, y, tmp_path / "r.html", on="training").read_text()
        assert "the results say nothing about new rows" in page
        with pytest.raises(ValueError, match=r"on must be .*, got 'trained'"):
            write_report(clf, X, y, tmp_path / "r.html", on="trained")


class TestSketch:
    """More rows than digests are kept: a sample of them stands for all."""

    @pytest.fixture
    def prepared(self):
        return vectorizer().fit(table().drop(columns="y"))

    def seen(self, prepared, frame, step=50) -> SeenRows:
        sketch = RowSketch(prepared)
        for _ in range(2):  # a second pass adds nothing
            for start in range(0, len(frame), step):
                part = frame.iloc[start : start + step]
                sketch.add(part.drop(columns="y"), part["y"].to_numpy(), start)
        return sketch.finish()

    def compared(self, prepared, seen, frame) -> Recognition:
        found = Recognition(seen)
        for start in range(0, len(frame), 70):
            part = frame.iloc[start : start + 70]
            found.numbers(row_digests(prepared, part.drop(columns="y"), part["y"].to_numpy()))
        return found

    def test_a_sample(self, prepared, monkeypatch):
        monkeypatch.setattr(_training, "MOST_KEPT", 64)
        old, new = table(n=900), table(1, 900)
        seen = self.seen(prepared, old)
        assert len(seen.digests) == 64 and seen.n_rows == 900 and not seen.has_all and seen.repeated == 0.0
        assert self.compared(prepared, seen, old.sample(frac=1, random_state=0)).n_training == 900
        assert self.compared(prepared, seen, new).n_training == 0
        half = self.compared(prepared, seen, pd.concat([old.iloc[:450], new.iloc[:450]])).n_training
        assert 250 < half < 650

    def test_the_sample_does_not_depend_on_the_chunks(self, prepared, monkeypatch):
        monkeypatch.setattr(_training, "MOST_KEPT", 64)
        frame = pd.concat([table(n=400), table(n=400).iloc[:100]])  # 100 rows come twice
        found = [self.seen(prepared, frame, step) for step in (7, 64, 500)]
        for each in found:
            np.testing.assert_array_equal(each.digests, found[0].digests)
            assert (each.total, each.repeated) == (found[0].total, found[0].repeated)
        assert 0.2 < found[0].repeated < 0.6  # 200 of 500 rows

    def test_rows_that_repeat_by_nature(self, prepared):
        """New rows equal old ones where there are few distinct ones: that is no sign of training rows."""

        def few(seed, n=400):
            rng = np.random.default_rng(seed)
            return table(n=12).iloc[rng.integers(0, 12, n)]

        seen = self.seen(prepared, few(0))
        assert seen.repeated == 1.0
        assert self.compared(prepared, seen, few(1)).n_training == 0
        assert (
            self.compared(prepared, seen, few(0).sample(frac=1, random_state=1)).n_training == 400
        )  # the table itself

    def test_equal_rows_are_equal_numbers(self, prepared):
        frame = table()
        y = frame.pop("y").to_numpy()
        plain = row_digests(prepared, frame, y)
        assert len(np.unique(plain)) == N
        as_text = frame.assign(since=frame["since"].astype(str), is_new=frame["is_new"].astype(str), job=frame["job"])
        np.testing.assert_array_equal(row_digests(prepared, as_text.assign(a=frame["a"].astype(float)), y), plain)
        for name, value in (("a", 0.5), ("b", 1e6), ("is_new", ~frame["is_new"]), ("job", "clerk"), ("remark", "x")):
            assert not (row_digests(prepared, frame.assign(**{name: value}), y) == plain).any()

    def test_digests_of_earlier_versions(self, prepared):
        """A BLAKE2b digest of the columns' 64-bit words, by which older model files know their rows."""
        frame = table()
        y = frame.pop("y").to_numpy()
        found = row_digests(prepared, frame, y, by_blake2b=True)
        assert len(np.unique(found)) == N and not (found == row_digests(prepared, frame, y)).any()
        seen = SeenRows(found, N, int(found.sum(dtype=np.uint64)) & (1 << 63) - 1, 0.0, by_blake2b=True)
        assert (
            Recognition(seen).numbers(row_digests(prepared, frame[::-1], y[::-1], True)).tolist() == [*range(N)][::-1]
        )

    @settings(max_examples=50, deadline=None)
    @given(st.integers(2, 60), st.integers(1, 5), st.sampled_from([2, 3, 1 << 32]), st.integers(0, 10_000))
    def test_only_equal_rows_have_equal_digests(self, n, d, most, seed):
        """On zeros and ones, and on columns that swap their values, where sums or XORs of columns would cancel."""
        rows = np.random.default_rng(seed).integers(0, most, (n, d)).astype(np.uint64)
        rows = np.vstack([rows, rows[:, ::-1], rows + np.uint64(1)])
        assert len(np.unique(_mixed(list(rows.T)))) == len(np.unique(rows, axis=0))

    def test_zeros_and_ones_do_not_cancel(self, tmp_path, capsys):
        """Rows of 0 and 1, each twice: what combines digests by XOR takes any such table for the same."""
        one = pd.DataFrame([[0, 0], [0, 1], [1, 0], [1, 1]], columns=["a", "b"]).assign(y=["n", "y", "y", "n"])
        other = one.assign(y=["n", "n", "y", "y"])
        prepared = vectorizer().fit(one[["a", "b"]])
        seen = [self.seen(prepared, pd.concat([frame] * 2)) for frame in (one, other)]
        assert seen[0].total != seen[1].total


def test_model_files(folder, tmp_path):
    model = load(folder / "whole.kproba")
    assert model.seen.has_all and model.seen.digests.dtype == np.uint64
    for seen in (
        SeenRows(np.zeros(3), 3, 0, 0.0),
        SeenRows(np.zeros(3, np.uint64), 2, 0, 0.0),
        SeenRows(np.zeros(3, np.uint64), 3, -1, 0.0),
        SeenRows(np.zeros(3, np.uint64), 3, 0, 2.0),
    ):
        with pytest.raises(ModelFileError):
            save(_models.TableModel(model.pipeline, "y", model.columns, seen), tmp_path / "m.kproba")
    save(_models.TableModel(model.pipeline, "y", model.columns), tmp_path / "m.kproba")
    assert load(tmp_path / "m.kproba").seen is None


def test_a_file_that_does_not_know_its_rows(folder, tmp_path, capsys):
    """As those of earlier versions, or saved from Python: no number goes without a remark."""
    model = load(folder / "whole.kproba")
    save(_models.TableModel(model.pipeline, "y", model.columns), tmp_path / "old.kproba")
    found = judged(capsys, folder / "train.csv", tmp_path / "old.kproba")
    assert "does not record which rows" in found["warning"]
