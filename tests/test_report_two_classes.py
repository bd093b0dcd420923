"""Two classes in the report: ranking, thresholds, calibration of the positive class, rare classes, and the verdict."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score

import oracles
from kproba.report import two_classes
from kproba.report.facts import collect
from kproba.report.markup import number, share, signed
from kproba.report.measures import binned, face_value, off_by_chance, tails
from kproba.report.page import page
from kproba.report.two_classes import ranking_intervals, thresholds_of
from kproba.report.verdict import verdict
from made_up import Oracle, made_up, rare


@pytest.fixture(scope="module")
def few():
    """Rows of which about one in a thousand is positive, and the facts."""
    model, X, y = rare(20_000)
    return X[:, 0], y == "fraud", collect(model, X, y)


scored = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.5000001, 0.9, 1.0]), st.booleans()), min_size=2, max_size=40
)


class TestRanking:
    @given(scored)
    def test_areas_are_those_of_scikit_learn(self, rows):
        p, own = np.array([p for p, _ in rows]), np.array([hit for _, hit in rows])
        area, average = ranking_intervals(p, own, 0)
        if own.all() or not own.any():
            assert np.isnan([area.value, average.value]).all()
            return
        assert area.value == pytest.approx(roc_auc_score(own, p))
        assert average.value == pytest.approx(average_precision_score(own, p))
        assert area.low <= area.value <= area.high and average.low <= average.value <= average.high

    def test_intervals_are_those_of_drawn_rows(self):
        rng = np.random.default_rng(0)
        p = rng.random(200)
        own = rng.random(200) < p
        found = ranking_intervals(p, own, 0)
        draws = [rng.integers(200, size=200) for _ in range(300)]
        for interval, score in zip(found, (roc_auc_score, average_precision_score)):
            drawn = np.quantile([score(own[rows], p[rows]) for rows in draws], [0.05, 0.95])
            assert [interval.low, interval.high] == pytest.approx(drawn, abs=0.025)

    def test_decisions_and_lift(self, few):
        p, own, facts = few
        found, chosen = facts.positive, p > 0.5
        assert (found.name, found.other, found.rows, found.is_rare) == ("fraud", "ok", own.sum(), True)
        assert found.own.hits == (own & chosen).sum() and found.own.flagged == chosen.sum()
        assert found.own.recall.value == pytest.approx((own & chosen).sum() / own.sum())
        assert found.lift == pytest.approx(average_precision_score(own, p) / own.mean())
        assert found.expected == pytest.approx(p.sum())
        base = found.rankings[1]
        assert (base.auc.value, base.recall.value) == (0.5, 0.0) and np.isnan(base.precision.value)


class TestThresholds:
    @given(scored)
    def test_counts_at_every_threshold(self, rows):
        p, own = np.array([p for p, _ in rows]), np.array([hit for _, hit in rows])
        found = thresholds_of(p, own)
        for cut in (0.0, 0.1, 0.5, 0.500001, 0.7, 1.0):
            flagged = np.floor(p * 1e6 + 1e-6) / 1e6 >= cut - 1e-9
            assert found.at(cut) == (flagged.sum(), (flagged & own).sum())
        assert (found.n_rows, found.n_positive) == (len(p), own.sum())

    def test_many_rows_keep_the_thresholds_of_positive_rows(self):
        rng = np.random.default_rng(0)
        p, own = rng.random(50_000), np.arange(50_000) % 5_000 == 0
        found = thresholds_of(p, own, most=1_000)
        assert len(found.thresholds) <= 1_001 and found.flagged[-1] == 50_000
        for cut in np.floor(p[own] * 1e6) / 1e6:
            assert found.at(cut)[1] == (p[own] >= cut).sum()


class TestPositive:
    def test_second_class_unless_the_first_is_rarer_by_far(self):
        model, X, y = made_up(300, "ab")
        assert collect(model, X, y).positive.name == "b"
        few_a = np.where(np.arange(300) < 40, "a", "b")
        assert collect(model, X, few_a).positive.name == "a"

    def test_given(self):
        model, X, y = made_up(300, "ab")
        found = collect(model, X, y, positive="a")
        assert found.positive.place == 0 and found.positive.rows == (y == "a").sum()
        assert "P(a)" in page(found)

    def test_more_classes_have_none(self):
        assert collect(*made_up(300, "abc")).positive is None

    def test_errors(self):
        with pytest.raises(ValueError, match=r"positive must be 'no' or 'yes', got 'yess' .did you mean 'yes'"):
            collect(*made_up(30, ["no", "yes"]), positive="yess")
        with pytest.raises(ValueError, match="positive='a' needs two classes, but the model has 3"):
            collect(*made_up(30, "abc"), positive="a")


class TestCalibration:
    def test_reliability_of_the_positive_class_over_the_whole_range(self):
        model, X, y = made_up(2_000, "ab")
        found = collect(model, X, y).positive
        p, own = X[:, 1], y == "b"
        for place, low in enumerate(np.arange(10) / 10):
            inside = (p >= low) & (p < low + 0.1)
            assert found.reliability.confidence[place] == pytest.approx(p[inside].mean())
            assert found.reliability.frequency[place] == pytest.approx(own[inside].mean())
            assert (found.histogram.right[place], found.histogram.wrong[place]) == (
                (inside & own).sum(),
                (inside & ~own).sum(),
            )

    def test_bins_of_a_rare_class_are_logarithmic(self, few):
        p, _own, facts = few
        edges, found = facts.positive.histogram.edges, facts.positive.reliability
        assert edges[0] < np.quantile(p, 0.01) and edges[-1] == 1.0
        assert np.diff(np.log10(edges)) == pytest.approx(0.5)
        assert len(found.rows) >= 5 and found.rows.sum() == len(p)

    @given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), st.integers(1, 5))
    def test_binned_counts_every_row_once(self, p, n_bins):
        p = np.array(p)
        found = binned(p, p > 0.5, np.linspace(0.0, 1.0, n_bins + 1))
        assert found.rows.sum() == len(p)
        assert (found.confidence * found.rows).sum() == pytest.approx(p.sum())

    @pytest.mark.parametrize("low, high", [(0.0, 1.0), (0.0, 0.05), (0.9, 1.0), (0.5, 0.5)])
    def test_chance_of_hits(self, low, high):
        """Tails are within a factor of two of those of the exact distribution, or small in both."""
        rng = np.random.default_rng(0)
        p = rng.uniform(low, high, size=150)
        for hits in range(int(max(p.sum() - 20, 0)), int(min(p.sum() + 20, 150))):
            exact, found = oracles.chance_of_hits(p, hits), off_by_chance(p, hits)
            assert 0.5 * exact <= found <= 2.0 * exact or max(exact, found) < 2e-3

    def test_certain_rows(self):
        assert off_by_chance(np.array([1.0, 0.0]), 1) == 1.0
        assert off_by_chance(np.array([1.0, 0.0]), 2) == 0.0
        assert tails(np.array([1.0, 0.0]), 2) == (1.0, 0.0) and tails(np.array([1.0, 0.0]), 0) == (0.0, 1.0)

    def test_calibrated_probabilities_seldom_look_off(self):
        rng = np.random.default_rng(0)
        found = []
        for seed in range(60):
            p = rng.beta(0.3, 3.0, size=300)
            found.append(face_value(p, rng.random(300) < p, seed).p_value)
        assert np.mean(np.array(found) < 0.05) <= 0.1 and np.median(found) > 0.2

    def test_all_probabilities_a_little_too_high(self):
        """Each bin is within chance, but the sum is not."""
        rng = np.random.default_rng(0)
        p = rng.uniform(0.0, 0.01, size=20_000)
        assert face_value(2.0 * p, rng.random(20_000) < p, 0).p_value < 0.01


class TestVerdict:
    def test_good_model(self):
        model, X, y = made_up(3_000, "ab", sharpness=3.0)
        said, error = verdict(collect(model, X, y)), (model.predict(X) != y).mean()
        assert said.useful.startswith(
            f"Oracle is wrong for {share(error)} of these 3,000 rows, where always answering “"
        )
        assert said.face_value.startswith("You can take its probabilities at face value")
        assert "predictions with a probability below 0.7 are wrong" in said.caution

    def test_useless_model(self):
        model, X, _ = made_up(500, "ab")
        y = np.random.default_rng(1).choice(list("ab"), 500)
        said = verdict(collect(model, X, y))
        assert said.useful.startswith("Oracle is not clearly better than the class shares")
        assert said.face_value.startswith("Do not take its probabilities at face value: where it says ")

    def test_better_probabilities_but_not_answers(self):
        rng = np.random.default_rng(0)
        p = rng.uniform(0.2, 0.48, size=4_000)
        y = np.where(rng.random(4_000) < p, "b", "a")
        said = verdict(collect(Oracle(["a", "b"]).fit(), np.column_stack([1 - p, p]), y))
        assert "is right no more often than always answering “a”" in said.useful

    def test_overconfident_model_of_several_classes(self):
        model, X, y = made_up(2_000, "abc")
        said = verdict(collect(model, X**3, y))
        assert re.search(
            r"predictions with a probability of about [\d.]+ % are right [\d.]+ % of the time", said.face_value
        )

    def test_few_rows_hide_gaps(self):
        assert "would go unnoticed" in verdict(collect(*made_up(60, "ab"))).face_value

    def test_rare_class_leads_with_what_is_found(self, few):
        facts = few[2]
        said = verdict(facts).useful
        assert f"Of the {facts.positive.rows} “fraud” rows among 20,000, Oracle finds " in said
        assert f"{facts.positive.lift:.0f} times as good as chance" in said and "error" not in said

    def test_rare_class_that_is_not_found(self):
        _, X, y = rare(5_000)
        shuffled = np.random.default_rng(0).permutation(X)
        said = verdict(collect(Oracle(["fraud", "ok"]).fit(), np.minimum(shuffled, [0.4, 1.0]), y)).useful
        assert "finds none" in said and "not clearly better than chance" in said

    def test_rare_class_that_is_expected_too_often(self, few):
        p, own, _ = few
        X = np.column_stack([4 * p, 1 - 4 * p]).clip(1e-9, 1)
        facts = collect(Oracle(["fraud", "ok"]).fit(), X, np.where(own, "fraud", "ok"))
        assert f"add up to {number(facts.positive.expected, 1)} “fraud” rows" in verdict(facts).face_value

    def test_rival(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(2_000, 1))
        y = np.where(rng.random(2_000) < 1 / (1 + np.exp(-3 * x[:, 0])), "b", "a")

        class Timid(Oracle):
            def predict_proba(self, X):
                return np.column_stack([0.5 - 0.01 * np.sign(X[:, 0]), 0.5 + 0.01 * np.sign(X[:, 0])])

        facts = collect(Timid(["a", "b"]).fit(), x[::2], y[::2], X_train=x[1::2], y_train=y[1::2])
        assert verdict(facts).rival.startswith("A logistic regression does better (log-loss ")

    def test_training_rows_say_nothing(self):
        said = verdict(collect(*made_up(60, "ab"), on="training"))
        assert said.useful.startswith("These are training rows") and said.face_value == said.caution == ""

    def test_class_that_is_hardly_found(self):
        model, X, y = made_up(600, "abc")
        assert "It finds 0 % of the “c” rows." in verdict(collect(model, X * [1, 1, 1e-6], y)).caution


class TestPage:
    def test_order_of_the_sections(self):
        text = page(collect(*made_up(300, "abc"), y_train=list("abc")))
        places = [
            text.index(f'id="{name}"')
            for name in ["verdict", "beside", "calibration", "reject", "classes", "groups", "rows", "fitted"]
        ]
        assert places == sorted(places)

    def test_two_classes_have_one_of_everything(self):
        text = page(collect(*made_up(300, "ab")))
        assert 'id="class-table"' not in text and 'id="class"' not in text and "its probability" not in text
        assert text.count('class="curve chosen"') == 2

    def test_rare_class_has_no_error_as_headline(self, few):
        text = page(few[2])
        cards = re.findall(r'<div class="card"><h2>(.*?)</h2>', text)
        assert cards == ["recall", "precision", "average precision", "log-loss"]
        assert 'id="score-error"' not in text and 'id="reject"' not in text
        assert f"lift {number(few[2].positive.lift, 1)}" in text

    def test_embedded_counts(self, few):
        _, own, facts = few
        data = json.loads(re.search(r'id="data">(.*?)</script>', page(facts))[1])["cut"]
        assert (sum(data["rows"]), sum(data["marked"]), data["n"], data["positive"]) == (
            20_000,
            own.sum(),
            20_000,
            own.sum(),
        )

    def test_matrix_without_a_script(self):
        model, X, y = made_up(300, "ab")
        cells = re.findall(r'id="cut-n-\w+">(\d+)<', page(collect(model, X, y)))
        (right, alarms), (missed, hits) = confusion_matrix(y, model.predict(X))
        assert list(map(int, cells)) == [hits, missed, alarms, right]

    @pytest.mark.parametrize("y", ["a" * 30, "b" * 30])
    def test_one_class_among_the_rows(self, y):
        model, X, _ = made_up(30, "ab")
        text = page(collect(model, X, np.array(list(y))))
        assert 'id="cut"' in text and 'id="roc"' not in text

    def test_a_model_of_one_class_without_the_positive_one(self):
        model, X, _ = made_up(30, "ab")
        assert not collect(model, X, np.full(30, "a"), positive="b").positive.is_rare

    def test_no_minus_zero(self):
        """Two models that agree differ by nothing, which has no sign."""
        assert signed(-0.0) == signed(0.0) == "0" and "−0.000" not in page(collect(*made_up(300, "ab")))
        assert re.search(r"[+−-]0\.0+[^\d]", page(collect(*made_up(300, "ab"))).partition("<script")[0]) is None

    def test_large_reports_stay_small(self):
        assert two_classes.MOST_THRESHOLDS == 10_000
        assert len(page(collect(*rare(60_000))).encode()) < 500_000
