"""The report: its numbers against scikit-learn and NumPy, what it does with hostile text, and what it refuses."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    auc,
    average_precision_score,
    confusion_matrix,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from kproba import (
    LSPC,
    FewRowsWarning,
    ImportVectorMachine,
    Spectrum,
    SurfaceKernelClassifier,
    TargetWarning,
    displays,
    explain,
    write_report,
)
from kproba.decisions.risk_coverage import risk_coverage
from kproba.metrics import brier_score, calibration_error, reliability_bins
from kproba.report import reasons
from kproba.report.baselines import ModelProba
from kproba.report.facts import collect, scores_of
from kproba.report.fitted import learning_curve_of, search_panels
from kproba.report.measures import (
    intervals,
    reliability,
    resampled_means,
    resampling_units,
    summarize,
    thinned,
    unit_losses,
)
from kproba.report.page import page
from kproba.report.sections.classes import shown_classes
from made_up import HOSTILE, Oracle, made_up


@pytest.fixture(scope="module")
def cancer():
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, np.array(data.target_names)[data.target]
    return LSPC(random_state=0).fit(X[::2], y[::2]), X[1::2], y[1::2], X[::2], y[::2]


@pytest.fixture(scope="module")
def searched(cancer):
    """A model that compared kernels, widths and ridges instead of learning a kernel."""
    return LSPC(penalty="parameters", random_state=0).fit(*cancer[3:])


@pytest.fixture(scope="module")
def three():
    return made_up(700, ["a", "b", "c"])


class Reader(HTMLParser):
    """What a browser would make of a page: elements with attributes, and text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_data(self, data):
        self.texts.append(data)

    def ids(self):
        return [attrs["id"] for _, attrs in self.elements if "id" in attrs]

    def named(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


class TestFacts:
    def test_scores_are_those_of_scikit_learn(self, three):
        model, X, y = three
        score = collect(model, X, y).scores[0]
        proba, said = model.predict_proba(X), model.predict(X)
        assert score.error.value == pytest.approx((said != y).mean())
        assert score.log_loss.value == pytest.approx(log_loss(y, proba))
        assert score.brier.value == pytest.approx(brier_score(y, proba))
        assert score.calibration.value == pytest.approx(calibration_error(y, proba))
        for name in ("error", "log_loss", "brier", "calibration"):
            found = getattr(score, name)
            assert found.low <= found.value <= found.high
            assert found.low < found.high

    def test_intervals_are_those_of_rows_drawn_one_by_one(self):
        rng = np.random.default_rng(0)
        losses = rng.exponential(size=(400, 2))
        (found, _) = intervals(losses.mean(axis=0), resampled_means(losses, np.ones(400), seed=0, resamples=4000))
        draws = [losses[rng.integers(400, size=400), 0].mean() for _ in range(4000)]
        assert [found.low, found.high] == pytest.approx(np.quantile(draws, [0.05, 0.95]), abs=0.01)

    def test_groups_of_many_rows_have_the_same_spread(self):
        losses = np.random.default_rng(0).exponential(size=(25_001, 1))
        unit = resampling_units(len(losses), seed=0)
        found = resampled_means(np.bincount(unit, losses[:, 0])[:, None], np.bincount(unit), seed=0)
        assert found.mean() == pytest.approx(losses.mean(), rel=2e-3)
        assert found.std() == pytest.approx(losses.std() / np.sqrt(len(losses)), rel=0.1)

    def test_resampled_calibration_error_is_that_of_the_rows_drawn(self, three):
        model, X, y = three
        codes, proba = np.searchsorted(model.classes_, y), model.predict_proba(X)
        columns = unit_losses(codes, proba, np.arange(len(y)))
        assert summarize(columns.mean(axis=0))[3] == pytest.approx(calibration_error(y, proba))
        counts = np.random.default_rng(1).multinomial(len(y), np.full(len(y), 1 / len(y)))
        gaps = np.abs(counts @ columns[:, 3:]).sum() / len(y)
        assert summarize(counts @ columns / len(y))[3] == pytest.approx(gaps)

    def test_sums_of_units_are_those_of_their_rows(self, three):
        model, X, y = three
        codes, proba, unit = np.searchsorted(model.classes_, y), model.predict_proba(X), np.arange(len(y)) % 7
        rows = unit_losses(codes, proba, np.arange(len(y)))
        expected = [rows[unit == k].sum(axis=0) for k in range(7)]
        np.testing.assert_allclose(unit_losses(codes, proba, unit), expected)

    def test_calibrated_probabilities_have_the_error_of_chance(self):
        found = [collect(*made_up(400, "abc", seed=seed)).scores[0] for seed in range(20)]
        mean = np.mean([score.calibration.value for score in found])
        assert mean == pytest.approx(np.mean([score.calibration_by_chance for score in found]), rel=0.15)

    def test_same_seed_same_facts(self, three):
        assert collect(*three, random_state=3).scores == collect(*three, random_state=3).scores
        assert collect(*three, random_state=3).scores != collect(*three, random_state=4).scores

    def test_classes(self, three):
        model, X, y = three
        facts, proba, said = collect(model, X, y), model.predict_proba(X), model.predict(X)
        assert (facts.confusion == confusion_matrix(y, said, labels=model.classes_)).all()
        for k, one in enumerate(facts.by_class):
            own = y == model.classes_[k]
            assert one.auc == pytest.approx(roc_auc_score(own, proba[:, k]))
            assert one.average_precision == pytest.approx(average_precision_score(own, proba[:, k]))
            assert one.recall == pytest.approx(recall_score(own, said == one.name))
            assert one.precision == pytest.approx(precision_score(own, said == one.name))
            assert one.rows == own.sum()

    def test_thinned_curves_keep_their_area(self, three):
        for one in collect(*three).by_class:
            x, height = one.roc
            assert len(x) <= 150 and (x[0], height[0], x[-1], height[-1]) == (0, 0, 1, 1)
            assert auc(x, height) == pytest.approx(one.auc, abs=0.005)
        assert thinned(np.arange(5.0), np.zeros(5), 150)[0].tolist() == [0, 1, 2, 3, 4]

    def test_reliability_bins_and_bands(self, three):
        model, X, y = three
        found = collect(model, X, y).reliability
        bins = reliability_bins(y, model.predict_proba(X), n_bins=10, strategy="uniform")
        assert found.confidence == pytest.approx(bins.confidence)
        assert found.frequency == pytest.approx(bins.frequency)
        assert (found.rows == bins.weight).all()
        assert ((found.low <= found.frequency) & (found.frequency <= found.high)).all()

    def test_bands_hold_what_they_promise(self):
        rng = np.random.default_rng(0)
        inside = []
        for _ in range(300):
            confidence = rng.uniform(0.3, 1.0, size=200)
            found = reliability(confidence, rng.random(200) < confidence)
            inside += ((found.low <= found.confidence) & (found.confidence <= found.high)).tolist()
        assert np.mean(inside) == pytest.approx(0.9, abs=0.04)

    @pytest.mark.parametrize("unit", [1e-6, 1e-4])
    def test_risk_and_coverage_at_every_threshold_of_the_grid(self, three, unit):
        model, X, y = three
        proba = model.predict_proba(X)
        confidence, correct = proba.max(axis=1), model.predict(X) == y
        curve = risk_coverage(confidence, ~correct, unit)
        for threshold in [0.0, 0.3333, 0.5, 0.7, 0.9, 0.9999, 1.0]:
            kept = confidence >= threshold
            assert curve.at(threshold) == (kept.sum(), (~correct[kept]).sum())
        assert curve.n == len(y)

    def test_tied_probabilities_are_kept_together(self):
        curve = risk_coverage(np.array([0.9, 0.9, 0.9, 0.5]), [False, True, False, False], 1e-6)
        assert curve.kept.tolist() == [3, 4]
        assert curve.wrong.tolist() == [1, 1]
        assert curve.area == pytest.approx((3 * 1 / 3 + 1 / 4) / 4)

    def test_reasons_of_rows(self):
        X, y = load_iris(return_X_y=True)
        model = LSPC(kernel="gaussian", random_state=0).fit(X[::2], y[::2])
        facts = collect(model, X[1::2], y[1::2], names=[f"column {j}" for j in range(4)])
        for row in (*facts.doubtful[:3], *facts.mistakes[:3]):
            x = X[1::2][[row.number]]
            found = explain(model, x).for_class(int(row.predicted))
            j = np.abs(found.values[0, :, 0]).argmax()
            assert row.reasons[0] == f"column {j} = {x[0, j]:.6g}: {found.values[0, j, 0]:+.2g}"
            assert len(row.reasons) == 3
        shown = "<br>".join(f"<bdi>{reason}</bdi>" for reason in facts.doubtful[0].reasons)
        assert shown in page(facts) and "<bdi>reasons</bdi>" in page(facts)

    def test_mean_contributions(self):
        X, y = load_iris(return_X_y=True)
        model = LSPC(kernel="gaussian", random_state=0).fit(X[::2], y[::2])
        facts = collect(model, X[1::2], y[1::2], names=list("abcd"))
        found, importances = facts.contributions, explain(model, X[1::2]).importances
        order = np.argsort(-importances)
        assert found.names == tuple("abcd"[j] for j in order)
        assert found.share == pytest.approx(importances[order] / importances.sum())
        assert (found.low <= found.share).all() and (found.share <= found.high).all() and (found.low < found.high).any()
        assert facts.importances is None and 'id="contributions"' in page(facts)

    def test_a_curve_needs_two_points(self):
        curve = {"steps": [20, 30], "leave_one_out": [0.5, 0.4], "out_of_fold": [0.5, np.nan]}
        assert learning_curve_of(SimpleNamespace(learning_curve_=curve)) is None
        assert learning_curve_of(SimpleNamespace(learning_curve_=curve | {"out_of_fold": [0.5, 0.4]})).chosen == 30

    def test_models_without_reasons(self, monkeypatch):
        X, y = load_iris(return_X_y=True)
        for model in (LSPC(kernel="matern32", random_state=0), LogisticRegression(max_iter=1000)):
            facts = collect(model.fit(X, y), X, y, on="training")
            assert not any(row.reasons for row in facts.doubtful) and "<bdi>reasons</bdi>" not in page(facts)
        monkeypatch.setattr(reasons, "MOST_PRODUCTS", 10)
        model = LSPC(kernel="gaussian", random_state=0).fit(X, y)
        assert collect(model, X, y, on="training").doubtful[0].reasons == ()

    def test_rows_to_look_at(self, three):
        model, X, y = three
        facts, proba, said = collect(model, X, y), model.predict_proba(X), model.predict(X)
        order = np.argsort(proba.max(axis=1), kind="stable")
        assert [row.number for row in facts.doubtful] == order[:50].tolist()
        assert all(row.true != row.predicted for row in facts.mistakes)
        surest = max(np.flatnonzero(said != y), key=lambda i: proba[i].max())
        first = facts.mistakes[0]
        assert (first.number, first.true, first.predicted) == (surest, y[surest], said[surest])
        assert first.second_probability == pytest.approx(np.sort(proba[surest])[-2])
        assert first.values == tuple(f"{value:.4g}" for value in X[surest])
        assert facts.n_mistakes == (said != y).sum()


class TestBaselines:
    def test_base_rates_of_the_training_rows(self, three):
        model, X, y = three
        base = collect(model, X, y, y_train=["a", "a", "a", "b", "b", "c"]).scores[1]
        assert base.name == "base rates"
        assert base.log_loss.value == pytest.approx(log_loss(y, np.tile([1 / 2, 1 / 3, 1 / 6], (len(y), 1))))

    def test_logistic_regression_of_the_training_rows(self, cancer):
        model, X, y, X_train, y_train = cancer
        score = collect(model, X, y, X_train=X_train, y_train=y_train).scores[2]
        alone = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(X_train, y_train)
        assert score.log_loss.value == pytest.approx(log_loss(y, alone.predict_proba(X)), rel=1e-6)
        assert score.excess.low <= score.excess.value <= score.excess.high

    def test_excess_is_of_the_same_resamples(self, three):
        """Whoever says the same of every row differs by nothing, whatever rows are drawn."""
        model, X, y = three
        codes, proba = np.searchsorted(model.classes_, y), model.predict_proba(X)
        own, twin, other = scores_of(
            [ModelProba("a", proba), ModelProba("b", proba), ModelProba("c", 0.9 * proba + 0.1 / 3)], codes, 0
        )
        assert own.excess is None and (twin.excess.low, twin.excess.high) == (0.0, 0.0)
        assert other.excess.value == pytest.approx(other.log_loss.value - own.log_loss.value)
        assert other.excess.high - other.excess.low < 0.5 * (other.log_loss.high - other.log_loss.low)

    def test_notes_say_what_is_missing(self, three):
        assert any("needs X_train and y_train" in note for note in collect(*three).notes)
        assert any("y_train was not given" in note for note in collect(*three).notes)

    def test_words_have_the_logistic_regression_of_the_pipeline(self):
        frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0] * 5, "word": list("abcd") * 5})
        y = np.array([0, 0, 1, 1] * 5)
        model = make_pipeline(_Numbers(), LSPC(random_state=0)).fit(frame, y)
        facts = collect(model, frame, y, X_train=frame, y_train=y)
        alone = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(frame[["size"]], y)
        assert [score.name for score in facts.scores] == ["LSPC", "base rates", "logistic regression"]
        assert facts.scores[2].log_loss.value == pytest.approx(log_loss(y, alone.predict_proba(frame[["size"]])))
        assert any("columns that the pipeline computes" in note for note in facts.notes)
        assert facts.columns == ("size", "word")
        assert facts.doubtful[0].values[1] in "abcd"
        held_out = collect(model, frame, y, on="leave-one-out")
        assert held_out.scores[2].name == "logistic regression"

    def test_words_alone_have_no_logistic_regression(self):
        words, y = ["aab", "aba", "bba", "bbb"] * 5, np.array([0, 0, 1, 1] * 5)
        model = LSPC(kernel=Spectrum(length=1), random_state=0).fit(words, y)
        facts = collect(model, words, y, X_train=words, y_train=y)
        assert [score.name for score in facts.scores] == ["LSPC", "base rates"]
        assert any("not a table of finite numbers" in note for note in facts.notes)

    def test_classes_of_one_row_have_no_folds(self):
        X, y = load_iris(return_X_y=True)
        X, y = np.vstack([X, [[9.0, 9.0, 9.0, 9.0]]]), np.append(y, 3)
        with pytest.warns(FewRowsWarning, match="class 3"):
            model = LSPC(random_state=0).fit(X, y)
        facts = collect(model, X, y, on="leave-one-out")
        assert any("fewer than two rows" in note for note in facts.notes)


class _Numbers(BaseEstimator):
    """Keeps the column of numbers of a frame."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return np.asarray(X[["size"]])


class TestModels:
    def test_leave_one_out(self, cancer):
        model, _, _, X, y = cancer
        facts = collect(model, X, y, on="leave-one-out")
        assert facts.on == "leave-one-out" and facts.n_rows == len(y)
        assert facts.scores[0].log_loss.value == pytest.approx(log_loss(y, model.loo_proba_))
        assert "leave-one-out" in facts.notes[0] and "5-fold" in facts.notes[-1]
        assert collect(model, on="leave-one-out", X_train=X, y_train=y).scores == facts.scores

    def test_leave_one_out_without_rows(self, cancer):
        model, _, _, _, y = cancer
        facts = collect(model, y=y, on="leave-one-out")
        assert facts.columns == () and facts.doubtful[0].values == ()
        assert any("it needs X." in note for note in facts.notes)

    def test_pipeline(self):
        X, y = load_iris(return_X_y=True)
        model = make_pipeline(StandardScaler(), LSPC(penalty="parameters", random_state=0)).fit(X, y)
        facts = collect(model, X, y, on="leave-one-out")
        assert facts.model == "LSPC" and ("earlier steps", "StandardScaler") in facts.fitted
        assert len(facts.panels) >= 2
        assert any("steps before" in note for note in facts.notes)

    def test_any_classifier(self):
        X, y = load_iris(return_X_y=True)
        facts = collect(RandomForestClassifier(10, random_state=0).fit(X[::2], y[::2]), X[1::2], y[1::2])
        assert [name for name, _ in facts.fitted] == ["model"]
        assert facts.panels == () and facts.path is None
        assert "search-0" not in Reader(page(facts)).ids()

    def test_import_vector_machine_shows_its_path(self):
        X, y = load_iris(return_X_y=True)
        model = ImportVectorMachine(random_state=0).fit(X, y)
        facts = collect(model, X, y, on="leave-one-out")
        assert facts.path.chosen == model.ridge_
        assert "Leave-one-out of ImportVectorMachine is approximate." in facts.notes
        assert {"path-loss", "path-points"} <= set(Reader(page(facts)).ids())

    def test_class_weights_are_said_to_move_the_probabilities(self):
        X, y = load_iris(return_X_y=True)
        model = LogisticRegression(max_iter=500, class_weight="balanced").fit(X, y)
        assert any("class_weight changes the prior" in note for note in collect(model, X, y).notes)

    @pytest.mark.parametrize(
        "options",
        [
            {"kernel": "linear"},
            {"kernel": "gaussian", "width": [0.5, 1.0, 2.0], "ridge": 0.01},
            {"kernel": "gaussian", "width": 1.0, "ridge": [0.01, 0.1]},
            {"width": [0.5, 1.0], "ridge": [0.01, 0.1], "selection": "cv"},
            {"link": "clip", "scaling": None},
            {"kernel": "gaussian", "width": 1.0, "ridge": 0.1},
        ],
        ids=["no width", "widths", "ridges", "folds", "rounded", "nothing to choose"],
    )
    def test_every_kind_of_search(self, options):
        X, y = load_iris(return_X_y=True)
        model = LSPC(random_state=0, loo=True, **options).fit(X, y)
        text = page(collect(model, X, y, on="leave-one-out"))
        assert ('id="search-0"' in text) == (len(model.search_results_["loss"]) > 1)
        assert not re.search(r'[ "]nan', text.replace('data-v="nan"', ""))

    def test_rows_that_are_no_vectors(self):
        words = ["abab", "aabb", "abba", "xyxy", "xxyy", "yxxy"] * 3
        y = np.array([0, 0, 0, 1, 1, 1] * 3)
        facts = collect(LSPC(kernel=Spectrum(length=2)).fit(words, y), words, y, X_train=words, y_train=y)
        assert facts.columns == () and len(facts.scores) == 2

    def test_dask_rows(self):
        array = pytest.importorskip("dask.array")
        X, y = load_iris(return_X_y=True)
        model = LSPC(kernel="gaussian", width=1.0, ridge=0.1).fit(X, y)
        facts = collect(model, array.from_array(X, chunks=(50, 4)), array.from_array(y, chunks=50), y_train=y)
        assert facts.scores[0].log_loss.value == pytest.approx(log_loss(y, model.predict_proba(X)))
        assert facts.columns == ()

    def test_tensors(self):
        xp = pytest.importorskip("array_api_strict")
        X, y = load_iris(return_X_y=True)
        model = LSPC(kernel="gaussian", width=1.0, ridge=0.1).fit(X, y)
        facts = collect(model, xp.asarray(X), xp.asarray(y), X_train=X, y_train=y)
        assert facts.columns == ("x0", "x1", "x2", "x3") and len(facts.scores) == 3

    def test_surface_shows_losses_over_the_width(self):
        X, y = load_iris(return_X_y=True)
        model = SurfaceKernelClassifier(random_state=0, n_centers=10, kernel="gaussian").fit(X, y)
        assert not search_panels(model)[0].is_map
        assert "search-0" in Reader(page(collect(model, X, y, on="leave-one-out"))).ids()

    def test_sparse_rows(self):
        X, y = load_iris(return_X_y=True)
        X = sparse.csr_array(X)
        facts = collect(LSPC(random_state=0).fit(X, y), X, y, on="leave-one-out")
        assert facts.columns == ("x0", "x1", "x2", "x3") and len(facts.scores) == 3
        assert facts.doubtful[0].values == tuple(f"{v:.4g}" for v in X.toarray()[facts.doubtful[0].number])

    def test_polars_frame(self):
        polars = pytest.importorskip("polars")
        X, y = load_iris(return_X_y=True)
        frame = polars.DataFrame(X, schema=["p", "q", "r", "s"])
        facts = collect(LSPC(random_state=0).fit(frame, y), frame, y, on="leave-one-out")
        assert set(facts.columns) == {"p", "q", "r", "s"}

    def test_most_relevant_columns_are_shown(self, cancer):
        model, X, y, _, _ = cancer
        weight = model.feature_importances_
        best = [model.feature_names_in_[j] for j in np.argsort(-weight, kind="stable")[:6]]
        assert collect(model, X, y).columns == tuple(best)

    def test_search_map_marks_the_choice(self, searched):
        model = searched
        panels = search_panels(model)
        (winner,) = [panel for panel in panels if panel.chosen is not None]
        assert winner.chosen == (model.width_, model.ridge_)
        # columns are weighed only where that gains noticeably (search.RELEVANCE_GAIN)
        assert winner.loss.min() <= min(panel.loss.min() for panel in panels) + 2.0 / len(model.loo_proba_)
        n = len(
            {
                (k, s == "relevance", w, r)
                for k, s, w, r in zip(*(model.search_results_[c] for c in ("kernel", "stage", "width", "ridge")))
            }
        )
        assert sum(len(panel.loss) for panel in panels) == n

    @pytest.mark.parametrize("relevance, place", [([1.0, 2.0], 1), ([1.0, 1.0], 0)], ids=["kept", "refused"])
    def test_what_follows_the_weights_counts_in_their_units(self, relevance, place):
        """The ridge is looked for last, in columns that are weighed if the weights were kept."""
        stages = ["screen", "screen", "relevance", "relevance", "ridge"]
        tried = {"stage": stages, "kernel": ["gaussian"] * 5, "width": [1.0, 2.0, 0.5, 0.6, 0.7], "ridge": [0.1] * 5}
        tried |= {"rows": [9] * 5, "loss": [0.5, 0.4, 0.3, 0.2, 0.1]}
        model = SimpleNamespace(search_results_={name: np.array(column) for name, column in tried.items()})
        model.scaling_ = SimpleNamespace(relevance=np.array(relevance))
        model.kernel_, model.width_, model.ridge_ = SimpleNamespace(name="gaussian"), 0.7, 0.1
        panels = search_panels(model)
        assert [panel.chosen is not None for panel in panels] == [place == 0, place == 1]
        assert 0.7 in panels[place].width and 0.7 not in panels[1 - place].width


class TestPage:
    def test_text_of_the_data_stays_text(self):
        model, X, y = made_up(300, HOSTILE)
        text = page(collect(model, X, y, names=HOSTILE, title=HOSTILE[0]))
        text.encode("utf-8")
        read = Reader(text)
        assert len(read.named("script")) == 2 and not read.named("img")
        assert not any(name.startswith("on") for _, attrs in read.elements for name in attrs)
        assert "<script>alert" not in text and "onerror=alert(1)>" not in text.replace("&gt;", "")
        assert not any(ord(c) < 32 and c != "\n" for c in text) and "\u202e" not in text
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text)[1])
        assert len(data["classes"]) == len(HOSTILE)

    def test_names_of_two_classes_rows_and_columns_stay_text(self):
        for pair in (HOSTILE[:2], HOSTILE[2:4], HOSTILE[4:]):
            model, X, y = made_up(300, pair)
            names = [HOSTILE[i % 6] for i in range(300)]
            facts = collect(model, X, y, names=HOSTILE[:2], row_names=names, beside={HOSTILE[0]: names}, y_train=y)
            text = page(facts)
            text.encode("utf-8")
            read = Reader(text)
            assert len(read.named("script")) == 2 and not read.named("img")
            assert not any(name.startswith("on") for _, attrs in read.elements for name in attrs)
            assert not any(ord(c) < 32 and c != "\n" for c in text) and "\u202e" not in text

    def test_json_cannot_end_its_script(self):
        from kproba.report.markup import as_json

        hostile = {"a": "</script><!--", "b": "\u2028&"}
        assert "<" not in as_json(hostile) and json.loads(as_json(hostile)) == hostile

    def test_nothing_is_loaded(self, cancer):
        model, X, y, _, _ = cancer
        text = page(collect(model, X, y))
        assert "default-src 'none'" in text and "://" not in text and "url(" not in text and "@import" not in text
        links = [attrs.get("href", attrs.get("src", "")) for _, attrs in Reader(text).elements]
        assert all(link.startswith(("#", "data:")) for link in links if link)

    def test_every_figure_says_what_it_shows(self, cancer):
        model, X, y, X_train, y_train = cancer
        read = Reader(page(collect(model, X, y, X_train=X_train, y_train=y_train)))
        drawings = read.named("svg")
        assert len(drawings) >= 10
        ids = read.ids()
        assert len(ids) == len(set(ids))
        for drawing in drawings:
            assert drawing["role"] == "img" and set(drawing["aria-labelledby"].split()) <= set(ids)
        wanted = {
            "reliability",
            "confidence",
            "risk",
            "roc",
            "precision-recall",
            "confusion",
            "doubtful",
            "score-error",
        }
        assert wanted <= set(ids)

    def test_page_says_which_rows(self, cancer):
        model, X, y, X_train, y_train = cancer
        assert "284 held-out rows" in page(collect(model, X, y))
        assert "285 training rows (leave-one-out)" in page(collect(model, X_train, y_train, on="leave-one-out"))

    def test_embedded_numbers(self, three):
        model, X, y = three
        text = page(collect(model, X, y))
        data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])["reject"]
        assert sum(data["rows"]) == data["n"] == len(y)
        assert sum(data["marked"]) == (model.predict(X) != y).sum()
        levels = np.append(data["start"], data["start"] - np.cumsum(data["down"]))
        assert levels[-1] == np.floor(model.predict_proba(X).max(axis=1).min() * 1e6)

    def test_numbers_are_there_without_a_script(self, three):
        model, X, y = three
        confidence = model.predict_proba(X).max(axis=1)
        text, kept = page(collect(model, X, y)), confidence >= 0.9
        wrong = (model.predict(X) != y)[kept].sum()
        assert f'<dd id="coverage">{100 * kept.mean():.1f} %</dd>' in text
        assert f'<dd id="mistakes">{wrong}</dd>' in text
        assert f'<dd id="cost">{(10 * wrong + (~kept).sum()) / len(y):.3f}</dd>' in text

    @pytest.mark.parametrize(
        "classes, y, n",
        [("ab", "a", 1), ("ab", "aab", 3), ("abc", "aaaa", 4), ("abc", "abab", 4)],
        ids=["one row", "few rows", "one class there", "a class is missing"],
    )
    def test_few_rows(self, classes, y, n):
        model, X, _ = made_up(n, classes)
        text = page(collect(model, X, np.array(list(y))))
        assert "nan" not in re.sub(r'data-v="nan"', "", text[text.index("<main") :])

    def test_all_right_and_all_wrong(self):
        model, X, _ = made_up(50, "ab")
        right = model.predict(X)
        assert "There are none." in page(collect(model, X, right))
        assert collect(model, X, np.where(right == "a", "b", "a")).scores[0].error.value == 1.0

    def test_certain_and_wrong(self):
        model = Oracle(["a", "b"]).fit()
        facts = collect(model, np.eye(2)[[0, 1, 0]], np.array(["a", "b", "b"]))
        assert np.isfinite(facts.scores[0].log_loss.value)
        page(facts)

    def test_many_classes(self):
        model, X, y = made_up(2000, [f"class {k}" for k in range(60)], sharpness=3.0)
        facts = collect(model, X, y)
        assert len(shown_classes(facts.confusion)) == 40
        assert "40 of 60 classes" in page(facts)

    def test_size(self):
        model, X, y = made_up(10_000, [chr(65 + k) for k in range(26)], sharpness=3.0)
        assert len(page(collect(model, X, y, X_train=X[:500], y_train=y[:500])).encode()) < 1_000_000

    def test_many_rows_have_a_coarser_grid(self):
        model, X, y = made_up(30_000, "ab")
        facts = collect(model, X, y)
        assert facts.risk.unit == 1e-4 and len(page(facts).encode()) < 1_000_000


class TestFile:
    def test_written_whole(self, cancer, tmp_path):
        model, X, y, _, _ = cancer
        found = write_report(model, X, y, tmp_path / "report.html", title="Breast cancer")
        assert found.read_text(encoding="utf-8").endswith("</html>\n")
        assert "<title>Breast cancer</title>" in found.read_text(encoding="utf-8")
        assert [path.name for path in tmp_path.iterdir()] == ["report.html"]

    def test_a_failure_leaves_the_old_file(self, cancer, tmp_path, monkeypatch):
        model, X, y, _, _ = cancer
        target = tmp_path / "report.html"
        target.write_text("old")

        def fail(*_):
            raise OSError("no space left")

        monkeypatch.setattr("os.replace", fail)
        with pytest.raises(OSError, match="no space left"):
            write_report(model, X, y, target)
        assert target.read_text() == "old"
        assert [path.name for path in tmp_path.iterdir()] == ["report.html"]

    def test_places_that_cannot_be_written(self, cancer, tmp_path):
        model, X, y, _, _ = cancer
        with pytest.raises(IsADirectoryError, match="is a directory"):
            write_report(model, X, y, tmp_path)
        with pytest.raises(FileNotFoundError, match="create it first"):
            write_report(model, X, y, tmp_path / "nowhere" / "report.html")

    def test_needs_no_extra_and_is_imported_where_used(self, tmp_path):
        code = (
            "import sys; sys.modules['matplotlib'] = sys.modules['selenium'] = None\n"
            "from kproba import LSPC, write_report\n"
            "assert 'kproba.report.page' not in sys.modules\n"
            "X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, [0, 0, 1, 1] * 5\n"
            "model = LSPC(kernel='gaussian', width=1.0, ridge=0.1).fit(X, y)\n"
            f"write_report(model, X, y, {str(tmp_path / 'r.html')!r}, on='leave-one-out')"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        assert (tmp_path / "r.html").exists()


class TestErrors:
    def test_arguments(self, three):
        model, X, y = three
        with pytest.raises(ValueError, match=r"on must be .*, got 'test'"):
            collect(model, X, y, on="test")
        with pytest.raises(ValueError, match="X and y are needed"):
            collect(model, X)
        with pytest.raises(ValueError, match=r"y has 699 rows"):
            collect(model, X, y[:-1])
        with pytest.raises(ValueError, match="labels that are not classes of the model: None; drop"):
            collect(model, X[:2], np.array([None, model.classes_[0]], dtype=object))
        with pytest.raises(ValueError, match="labels that are not classes of the model: 'z'"):
            collect(model, X, np.where(y == "a", "z", y))
        with pytest.raises(ValueError, match="names has 2 entries, but X has 3 columns"):
            collect(model, X, y, names=["p", "q"])
        with pytest.raises(ValueError, match="no rows"):
            collect(model, X[:0], y[:0])

    def test_models(self, three):
        X, y = load_iris(return_X_y=True)
        with pytest.raises(TypeError, match="LinearSVC has no predict_proba"):
            collect(LinearSVC().fit(X, y), X, y)
        with pytest.raises(ValueError, match="needs loo_proba_, which Oracle does not have"):
            collect(*three, on="leave-one-out")
        with pytest.raises(ValueError, match="which a model does not store"):
            collect(LSPC(kernel="gaussian", width=1.0, ridge=0.1).fit(X, y), on="leave-one-out")
        from sklearn.exceptions import NotFittedError

        with pytest.raises(NotFittedError):
            collect(LSPC(), X, y)

    def test_tags(self):
        X, y = load_iris(return_X_y=True)
        tags = (y[:, None] == np.arange(3)).astype(int)
        with pytest.warns(TargetWarning, match="3 columns"):
            model = LSPC(kernel="gaussian", width=1.0, ridge=0.1).fit(X, tags)
        with pytest.raises(ValueError, match="tag_report"):
            collect(model, X, tags)

    def test_what_are_no_probabilities(self):
        class Wrong(Oracle):
            def predict_proba(self, X):
                return np.asarray(X) * 3.0

        with pytest.raises(ValueError, match="not probabilities"):
            collect(Wrong(["a", "b"]).fit(), [[0.2, 0.8]], ["a"])


class TestDisplays:
    @pytest.fixture(autouse=True)
    def backend(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        yield
        matplotlib.pyplot.close("all")

    def test_reliability(self, three):
        model, X, y = three
        found = displays.ReliabilityDisplay.from_estimator(model, X, y)
        bins = reliability_bins(y, model.predict_proba(X), n_bins=10, strategy="uniform")
        assert found.ax_.lines[0].get_xydata() == pytest.approx(np.column_stack(bins[:2]))
        assert found.ax_.get_legend() is not None and found.figure_ is found.ax_.figure
        again = displays.ReliabilityDisplay.from_predictions(y, model.predict_proba(X), ax=found.ax_, color="red")
        assert again.ax_ is found.ax_ and again.ax_.lines[-2].get_color() == "red"

    def test_confidence(self, three):
        model, X, y = three
        found = displays.ConfidenceHistogramDisplay.from_estimator(model, X, y)
        assert sum(bar.get_height() for bar in found.ax_.patches) == len(y)
        assert found.counts.wrong.sum() == (model.predict(X) != y).sum()

    def test_risk_coverage(self, three):
        model, X, y = three
        found = displays.RiskCoverageDisplay.from_predictions(y, model.predict_proba(X), name="made up")
        assert found.ax_.lines[0].get_xydata()[-1] == pytest.approx([1.0, (model.predict(X) != y).mean()])

    def test_scores(self, three):
        model, X, y = three
        proba = model.predict_proba(X)
        found = displays.ScoresDisplay.from_predictions(y, {"made up": proba, "timid": 0.5 * proba + 0.5 / 3})
        assert [tick.get_text() for tick in found.axes_[0].get_yticklabels()] == ["made up", "timid"]
        assert [ax.get_xlabel() for ax in found.axes_] == ["error", "log-loss", "Brier score", "calibration error"]
        middle = found.axes_[1].containers[0].lines[0].get_xdata()
        assert middle == pytest.approx([log_loss(y, proba), log_loss(y, 0.5 * proba + 0.5 / 3)])
        beside = displays.ScoresDisplay.from_estimator(model, X, y, X_train=X, y_train=y)
        assert [score.name for score in beside.scores] == ["Oracle", "base rates", "logistic regression"]
        with pytest.raises(TypeError, match="proba must be a non-empty dict of names and probabilities, got ndarray"):
            displays.ScoresDisplay.from_predictions(y, proba)

    def test_search_map(self, searched):
        model = searched
        found = displays.SearchMapDisplay.from_estimator(model)
        assert [ax.get_title() for ax in found.axes_] == [panel.title for panel in search_panels(model)]
        with pytest.raises(ValueError, match="axes has length 1, but 3 plots need 3 axes"):
            found.plot(found.axes_[:1])

    def test_search_line(self):
        X, y = load_iris(return_X_y=True)
        found = displays.SearchMapDisplay.from_estimator(
            SurfaceKernelClassifier(n_centers=10, kernel="gaussian").fit(X, y)
        )
        assert found.axes_[0].get_xlabel() == "width"

    def test_nothing_to_map(self):
        X, y = load_iris(return_X_y=True)
        with pytest.raises(ValueError, match="compared no candidates"):
            displays.SearchMapDisplay.from_estimator(LSPC(kernel="gaussian", width=1.0, ridge=0.1).fit(X, y))

    def test_widths_are_written_out(self):
        X, y = load_iris(return_X_y=True)
        model = LSPC(kernel="gaussian", width=[1.5, 107.0], ridge=[0.01, 0.1]).fit(X, y)
        (ax,) = displays.SearchMapDisplay.from_estimator(model).axes_
        assert [label.get_text() for label in ax.get_xticklabels()] == ["1.5", "110"]

    def test_without_matplotlib(self, three, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(ImportError, match=r"kproba\[plot\]"):
            displays.ReliabilityDisplay.from_estimator(*three)
