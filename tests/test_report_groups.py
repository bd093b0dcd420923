"""Groups of rows, drift since training, and rows to review: against plain loops, and what chance alone does."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import chi2_contingency, ks_2samp

import oracles
from kproba import cli
from kproba.report import groups, write_report
from kproba.report.columns import column_of
from kproba.report.facts import collect
from kproba.report.groups import Outcomes, drift_facts, group_facts, members_of, numbers_distance, shares_distance
from kproba.report.measures import off_by_chance, tails
from kproba.report.page import page
from kproba.report.verdict import verdict
from made_up import Oracle, made_up


class Twice(Oracle):
    """Says what the first two columns hold, whatever else there is."""

    def predict_proba(self, X):
        return super().predict_proba(np.asarray(X, dtype=object)[:, :2].astype(float))


def table(n=600, seed=0):
    """A frame whose first columns are the probabilities, with a category, a number and missing values."""
    _, proba, y = made_up(n, "ab", seed=seed)
    rng = np.random.default_rng(seed + 100)
    X = pd.DataFrame(proba, columns=["p", "q"])
    X["job"] = rng.choice(["clerk", "nurse", "driver", None], n, p=[0.5, 0.3, 0.15, 0.05])
    X["age"] = np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 90, n))
    return Twice(["a", "b"]).fit(), X, y


class TestColumns:
    @pytest.mark.parametrize(
        "values",
        [
            np.array([1.0, np.nan, 3.0]),
            pd.Series([1, None, 3], dtype="Int64"),
            pd.Series([1.0, None, 3.0], dtype="float32"),
            sparse.csr_array([[1.0], [np.nan], [3.0]]).toarray().ravel(),
        ],
        ids=["float", "nullable", "float32", "sparse"],
    )
    def test_numbers(self, values):
        np.testing.assert_array_equal(column_of("x", values).values, [1.0, np.nan, 3.0])

    @pytest.mark.parametrize(
        "values",
        [
            np.array(["b", None, "a"], dtype=object),
            pd.Series(["b", None, "a"], dtype="string"),
            pd.Series(["b", None, "a"], dtype="category"),
            pd.Series(["b", np.nan, "a"]),
        ],
        ids=["object", "string", "category", "str"],
    )
    def test_categories(self, values):
        found = column_of("x", values)
        assert found.names == ("a", "b", "missing") and found.values.tolist() == [1, 2, 0]

    def test_booleans_are_categories(self):
        assert column_of("x", np.array([True, False])).names == ("False", "True")

    def test_dates_are_numbers(self):
        days = pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01"]))
        found = column_of("day", days)
        assert found.is_date and found.values[2] - found.values[0] == 366 * 86_400 and np.isnan(found.values[1])

    def test_polars(self):
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame({"n": [1, None, 3], "c": ["x", None, "y"], "d": [datetime.date(2020, 1, 1)] * 3})
        assert np.isnan(column_of("n", frame["n"]).values[1])
        assert column_of("c", frame["c"]).names == ("x", "y", "missing")
        assert column_of("d", frame["d"]).is_date


class TestGroups:
    def test_of_a_table_against_loops(self):
        model, X, y = table()
        found = collect(model, X, y).groups.groups
        p, wrong, own = X["q"].to_numpy(), model.predict(X) != y, y == "b"
        low, high = np.quantile(X["age"].dropna(), [1 / 3, 2 / 3], method="inverted_cdf")
        inside = {("job", name): (X["job"] == name).to_numpy() for name in ("clerk", "nurse", "driver")}
        inside |= {("job", "missing"): X["job"].isna().to_numpy(), ("age", "missing"): X["age"].isna().to_numpy()}
        inside |= {
            ("age", f"≤ {low:g}"): (X["age"] <= low).to_numpy(),
            ("age", f"> {high:g}"): (X["age"] > high).to_numpy(),
        }
        inside[("age", f"{low:g} to {high:g}")] = ((X["age"] > low) & (X["age"] <= high)).to_numpy()
        named = {(group.column, group.value): group for group in found if group.column in ("job", "age")}
        assert set(named) == {key for key, rows in inside.items() if rows.sum() >= 20}
        for key, group in named.items():
            rows = inside[key]
            assert group.rows == rows.sum() and group.error.value == pytest.approx(wrong[rows].mean())
            assert group.expected_error == pytest.approx(1.0 - X.loc[rows, ["p", "q"]].max(axis=1).mean())
            assert group.predicted == pytest.approx(p[rows].mean())
            assert group.observed.value == pytest.approx(own[rows].mean())
            doubt = 1.0 - np.maximum(p, 1.0 - p)[rows]
            smallest = min(tails(doubt, wrong[rows].sum())[1], off_by_chance(p[rows], own[rows].sum()))
            assert group.by_chance == pytest.approx(len(found) * min(1.0, 2.0 * smallest))
        assert [group.by_chance for group in found] == sorted(group.by_chance for group in found)

    def test_errors_that_are_announced_do_not_stand_out(self):
        """A hard group is not badly judged, however many errors it has."""
        rng = np.random.default_rng(0)
        p = np.where(np.arange(2_000) < 1_000, 0.55, 0.99)
        hit = rng.random(2_000) < p
        (hard, easy) = sorted(
            group_facts([column_of("x", p)], Outcomes(~hit, 1 - p, p, hit)), key=lambda g: -g.error.value
        )
        assert hard.error.value > 0.3 > 0.1 > easy.error.value
        assert not hard.stands_out and not easy.stands_out and hard.expected_error == pytest.approx(0.45)

    def test_on_noise_as_many_look_bad_as_the_page_says(self):
        """Of all groups, those that look as bad as one group would by chance are about one per table, or fewer."""
        counts = []
        for seed in range(30):
            rng = np.random.default_rng(seed)
            p = rng.beta(1.0, 1.0, size=500)
            hit = rng.random(500) < p
            columns = [column_of(str(j), rng.normal(size=500)) for j in range(20)]
            found = group_facts(columns, Outcomes((p > 0.5) != hit, np.minimum(p, 1 - p), p, hit))
            assert len(found) == 60
            counts.append([sum(group.by_chance < e for group in found) for e in (0.05, 1.0, 5.0)])
        few, one, five = np.mean(counts, axis=0)
        assert few <= 0.2 and one <= 1.3 and 1.0 <= five <= 6.0

    def test_a_bad_group_stands_out_and_is_named_first(self):
        """Rows of one job are wrong half of the time, which their probabilities do not say."""
        model, _, y = made_up(2_000, "ab", sharpness=9.0)
        job = np.random.default_rng(0).choice(["clerk", "nurse", "driver"], 2_000)
        y = np.where((job == "driver") & (np.arange(2_000) % 2 == 0), np.where(y == "a", "b", "a"), y)
        facts = collect(model, made_up(2_000, "ab", sharpness=9.0)[1].tolist(), y, beside={"job": job})
        worst = facts.groups.groups[0]
        assert (worst.column, worst.value, worst.stands_out) == ("job", "driver", True)
        assert "1 group stands out" in page(facts) and "where job is driver: an error of" in verdict(facts).caution

    def test_several_classes_compare_what_is_right(self):
        model, X, y = made_up(400, "abc")
        found = collect(model, X, y).groups.groups[0]
        top = X.max(axis=1)
        j = int(found.column[1:])
        low, high = np.quantile(X[:, j], [1 / 3, 2 / 3], method="inverted_cdf")
        rows = {"≤": X[:, j] <= low, ">": X[:, j] > high}.get(found.value[0], (X[:, j] > low) & (X[:, j] <= high))
        assert found.predicted == pytest.approx(top[rows].mean())

    def test_small_and_single_groups_are_left_out(self):
        assert members_of(column_of("x", np.zeros(100))) == []
        assert members_of(column_of("x", np.arange(100).astype(str))) == []
        few = column_of("x", np.array(["a"] * 50 + ["b"] * 30 + ["c"] * 19))
        assert [each.value for each in members_of(few)] == ["a", "b"]

    def test_many_values_show_the_largest(self):
        values = np.repeat([f"v{k:02d}" for k in range(30)], np.arange(20, 50))
        assert [each.value for each in members_of(column_of("x", values))] == [f"v{k:02d}" for k in range(18, 30)]

    def test_large_tables_are_sampled(self, monkeypatch):
        monkeypatch.setattr(groups, "MOST_ROWS", 100)
        facts = collect(*made_up(400, "ab"))
        assert facts.groups.n_rows == 100 and "a sample of 100 rows" in page(facts)

    def test_unused_columns_make_groups(self):
        model, X, y = made_up(200, "ab")
        facts = collect(model, X, y, beside={"site": np.where(np.arange(200) < 90, "north", "south")})
        assert {("site", "north"), ("site", "south")} <= {(group.column, group.value) for group in facts.groups.groups}

    def test_rows_without_a_table_have_none(self):
        model, X, y = made_up(100, "ab")
        facts = collect(model, X.tolist(), y)
        assert facts.groups.groups == () and 'id="groups"' not in page(facts)


class TestDrift:
    @given(st.lists(st.integers(0, 8), min_size=5, max_size=30), st.lists(st.integers(0, 8), min_size=5, max_size=30))
    def test_numbers_against_loops(self, old, new):
        old, new = np.array(old, dtype=float), np.array(new, dtype=float)
        distance, chance = numbers_distance(old, new)
        assert distance == pytest.approx(oracles.distance_of_numbers(old, new))
        assert chance == pytest.approx(min(1.0, 2.0 * ks_2samp(old, new, method="asymp").pvalue))

    def test_shares(self):
        counts = np.array([[50, 30, 20], [20, 30, 50]])
        distance, chance = shares_distance(counts)
        assert distance == pytest.approx(0.3) and chance == pytest.approx(chi2_contingency(counts).pvalue)

    def test_rare_values_are_pooled(self):
        """Names that hardly repeat differ in every sample, which is no drift."""
        rng = np.random.default_rng(0)
        old, new = (column_of("name", rng.integers(0, 5_000, 300).astype(str)) for _ in range(2))
        (found,) = drift_facts([(old, new)])
        assert found.distance < 0.1 and not found.stands_out

    def test_missing_values_count(self):
        old, new = np.arange(200.0), np.arange(200.0)
        new[::2] = np.nan
        distance, chance = numbers_distance(old, new)
        assert distance == 0.5 and chance < 1e-6
        assert numbers_distance(old, np.full(200, np.nan))[0] == 1.0

    def test_of_a_table(self):
        model, X, y = table()
        _, old, _ = table(seed=1)
        X = X.assign(age=X["age"] + 30)
        facts = collect(model, X, y, X_train=old, y_train=y)
        assert facts.drift[0].column == "age" and facts.drift[0].stands_out
        assert [each.column for each in facts.drift if each.stands_out] == ["age"]
        assert {each.column for each in facts.drift} == {"(classes)", "p", "q", "job", "age"}
        assert "% missing" in facts.drift[0].train and "differ from the training rows in age" in verdict(facts).caution
        assert 'id="drift"' in page(facts)

    def test_no_drift_without_training_rows(self):
        model, X, y = table()
        assert collect(model, X, y).drift == ()

    def test_classes_drift(self):
        model, X, y = made_up(300, "ab")
        facts = collect(model, X, np.full(300, "a"), y_train=y)
        assert [each.column for each in facts.drift] == ["(classes)"] and facts.drift[0].stands_out

    def test_categories_become_numbers(self):
        old, new = column_of("x", np.array(["1", "2", "3"] * 30)), column_of("x", np.array([1.0, 2.0, 3.0] * 30))
        assert drift_facts([(old, new)])[0].distance == 0.0

    def test_on_noise_nothing_stands_out(self):
        rng = np.random.default_rng(0)
        pairs = [tuple(column_of(str(j), rng.normal(size=300)) for _ in range(2)) for j in range(200)]
        found = drift_facts(pairs)
        assert not any(each.stands_out for each in found)
        assert sum(each.by_chance < 10 for each in found) <= 20


class TestRows:
    def test_index_of_a_frame(self):
        model, X, y = table(100)
        X.index = [f"row {i}" for i in range(100)]
        facts = collect(model, X, y)
        assert facts.doubtful[0].name == f"row {facts.doubtful[0].number}"
        assert facts.about_names == "Rows are named by the index of X." and facts.about_names in page(facts)

    def test_given_names_and_columns(self):
        model, X, y = made_up(100, "ab")
        facts = collect(model, X, y, row_names=np.arange(100) + 2, beside={"id": [f"C{i}" for i in range(100)]})
        first = facts.doubtful[0]
        assert (first.name, first.values[0]) == (str(first.number + 2), f"C{first.number}")
        assert facts.columns == ("id", "x0", "x1")

    def test_plain_numbers(self):
        assert collect(*made_up(50, "ab")).about_names == "Row numbers start at 0."

    def test_missing_is_shown_as_missing(self):
        model, X, y = table(100)
        X["job"], X["age"] = None, np.nan
        facts = collect(model, X, y, beside={"day": pd.Series([pd.NaT] * 100), "word": ["missing"] * 100})
        assert facts.doubtful[0].values[:2] == (None, "missing") and facts.doubtful[0].values[-2:] == (None, None)
        assert page(facts).count('<td class="missing" data-v="nan">missing</td>') >= 150

    def test_large_values_are_written_out(self):
        model, X, y = made_up(50, "ab")
        facts = collect(model, X, y, beside={"income": np.full(50, 15255.8)})
        assert facts.doubtful[0].values[0] == "15255.8"

    def test_options_of_the_file(self, tmp_path):
        model, X, y = made_up(60, "ab")
        options = {
            "positive": "a",
            "row_names": [f"r{i}" for i in range(60)],
            "beside": pd.DataFrame({"key": range(60)}),
        }
        text = write_report(model, X, y, tmp_path / "r.html", **options).read_text(encoding="utf-8")
        assert "P(a)" in text and "<bdi>r1</bdi>" in text and "<bdi>key</bdi>" in text

    def test_errors(self):
        model, X, y = made_up(50, "ab")
        with pytest.raises(ValueError, match="row_names has 3 entries, but there are 50 rows; pass one per row"):
            collect(model, X, y, row_names=[1, 2, 3])
        with pytest.raises(ValueError, match=r"beside\['id'\] has shape \(3,\), but there are 50 rows"):
            collect(model, X, y, beside={"id": [1, 2, 3]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of one number, fitted without the keys of the rows; some labels are missing."""
    path = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"key": [f"K{i:03d}" for i in range(60)], "x": rng.normal(size=60).round(3)})
    frame["y"] = np.where(frame["x"] + rng.normal(0, 0.7, 60) > 0, "up", "down")
    frame.to_csv(path / "train.csv", index=False)
    frame["x"] = rng.normal(size=60).round(3)
    frame.loc[::3, "y"] = None
    frame.to_csv(path / "test.csv", index=False)
    frame.to_parquet(path / "test.parquet")
    frame[:30].to_csv(path / "part-0.csv", index=False)
    frame[30:].to_csv(path / "part-1.csv", index=False)
    words = ("--target", "y", "--ignore", "key", "--model", str(path / "m.kproba"), "--quiet")
    assert cli.main(["fit", str(path / "train.csv"), *words]) == 0
    return path


class TestCommand:
    @pytest.mark.parametrize(
        "name, first, about",
        [
            ("test.csv", 2, "Rows are numbered as in a spreadsheet: the header is row 1."),
            ("test.parquet", 0, "Row numbers start at 0."),
            ("part-*.csv", 0, "Row numbers start at 0 and go on through all files."),
        ],
    )
    def test_rows_are_numbered_as_in_the_file(self, folder, name, first, about):
        words = ("--model", str(folder / "m.kproba"), "--out", str(folder / "r.html"), "--quiet")
        assert cli.main(["report", str(folder / name), *words]) == 0
        text = (folder / "r.html").read_text(encoding="utf-8")
        rows = re.findall(r'<tr><td class="n" data-v="(\d+)">\1</td>.*?<bdi>K(\d+)</bdi>', text)
        assert len(rows) >= 40 and about in text
        assert all(int(number) - first == int(key) for number, key in rows)
