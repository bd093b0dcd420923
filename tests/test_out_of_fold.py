"""Probabilities by models that never saw a row, and what is shown of a learnt kernel."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kproba
from kproba import (
    LSPC,
    FewRowsWarning,
    ImportVectorMachine,
    KernelLogisticRegression,
    RejectOption,
    SurfaceKernelClassifier,
    cli,
    displays,
)
from kproba.data.rows import Rows
from kproba.estimators import _learning, _prepared
from kproba.estimators._honest import honest_probabilities, rows_with_probabilities
from kproba.kernels import Learnt
from kproba.links import fit_link
from kproba.problems import local
from kproba.report.facts import collect
from kproba.report.fitted import importances_of, learning_curve_of
from kproba.report.page import page
from kproba.search.learnt import outer_folds
from kproba.threads import run_in_turns

ALL = [LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier]
NAMES = ["age", "income", "<b>"]


def waves(n=110, seed=0):
    """Two classes that depend on the second of three columns, with a tenth of the labels wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, ((np.sin(3 * X[:, 1]) > 0) ^ (rng.random(n) < 0.1)).astype(int)


X, Y = waves()


@pytest.fixture(scope="module", params=ALL, ids=lambda estimator: estimator.__name__)
def fitted(request):
    return request.param(random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def clf():
    return LSPC(random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def few():
    """A model without a learnt kernel."""
    return LSPC(random_state=0).fit(X[:40], Y[:40])


def too_sharp(monkeypatch, factor=8.0):
    """Kernels are learnt as usual, but come out much too narrow."""

    def narrowed(kernel):
        return replace(kernel, widths=tuple(width / factor for width in kernel.widths))

    def learn(*arguments):
        learnt, scaling = _learning.learn_kernel(*arguments)
        of_folds = [(narrowed(kernel), noise) for kernel, noise in learnt.of_folds]
        return replace(learnt, kernel=narrowed(learnt.kernel), of_folds=of_folds), scaling

    monkeypatch.setattr(_prepared, "learn_kernel", learn)


class TestFewCenters:
    """The surface classifier chooses how wide the learnt kernel is, since it is learnt with a centre in every row."""

    def test_a_kernel_that_is_too_sharp_gets_wider(self, monkeypatch):
        too_sharp(monkeypatch)
        wide = SurfaceKernelClassifier(random_state=0).fit(X, Y)
        monkeypatch.setattr(SurfaceKernelClassifier, "_variants", lambda self, kernel: [kernel])
        sharp = SurfaceKernelClassifier(random_state=0).fit(X, Y)
        assert wide.kernel_.widths == tuple(4.0 * width for width in sharp.kernel_.widths)
        assert wide.kernel_.weights == sharp.kernel_.weights
        new_X, new_Y = waves(1000, seed=1)
        for clf, loss in ((wide, log_loss(Y, wide.oof_proba_)), (sharp, log_loss(Y, sharp.oof_proba_))):
            assert log_loss(new_Y, clf.predict_proba(new_X)) == pytest.approx(loss, abs=0.1)
        assert log_loss(Y, wide.oof_proba_) < log_loss(Y, sharp.oof_proba_) - 0.05

    def test_height(self):
        """The box bounds coefficients, so that a kernel with large values may be too flexible."""
        kernel = Learnt(weights=(1.0, 2.0), widths=(1.0, 2.0, 3.0), mixture=(3.0, 1.0, 0.5, 0.5))
        unit, *wider = SurfaceKernelClassifier()._variants(kernel)
        assert unit.largest == pytest.approx(1.0) and unit.widths == wider[0].widths
        assert kernel in wider and {each.mixture for each in wider} == {kernel.mixture}

    def test_a_given_kernel_is_kept(self):
        kernel = Learnt(weights=(1.0, 1.0, 1.0), widths=(0.1, 0.1, 0.1), mixture=(1.0, 1.0, 0.0, 0.0))
        assert SurfaceKernelClassifier(kernel=kernel, random_state=0).fit(X, Y).kernel_ == kernel

    def test_a_fold_does_not_choose_its_kernel(self, monkeypatch):
        """Whatever the labels inside a fold are, its rows get the same probabilities by the same kernel."""
        too_sharp(monkeypatch)
        seen = []
        without = _learning._without_fold
        monkeypatch.setattr(
            _learning, "out_of_fold", lambda *arguments: seen.append(arguments) or np.full((110, 2), 0.5)
        )
        SurfaceKernelClassifier(n_jobs=1, random_state=0).fit(X, Y)
        monkeypatch.undo()
        kernels = []
        monkeypatch.setattr(_learning, "_without_fold", lambda *a: kernels.append((clf := without(*a)).kernel_) or clf)
        model, learnt, rows, chosen = seen[0]
        assert chosen is None
        part = learnt.fold == 0
        swapped = replace(rows, labels=np.where(part, 1 - rows.labels, rows.labels))
        proba, other = (_learning.out_of_fold(model, learnt, each) for each in (rows, swapped))
        k = len(learnt.of_folds)
        assert kernels[0] == kernels[k] and (proba[part] == other[part]).all()
        assert (proba[~part] != other[~part]).any()
        assert (
            min(np.array(kernel.widths[0]) / own.widths[0] for kernel, (own, _) in zip(kernels, learnt.of_folds)) > 1.5
        )

    def test_rows_of_a_single_held_out_part_choose_no_kernel(self, monkeypatch):
        """So what the others choose holds for the model without that part, which need not choose again."""
        monkeypatch.setattr(outer_folds, "FOLDS", ((50, 8),))
        monkeypatch.setattr(outer_folds, "MANY", 50)
        too_sharp(monkeypatch)
        calls, choose, without = [], SurfaceKernelClassifier._choose, _learning._without_fold
        monkeypatch.setattr(
            SurfaceKernelClassifier,
            "_choose",
            lambda self, table, *rest: calls.append((self, table)) or choose(self, table, *rest),
        )
        models = []
        monkeypatch.setattr(_learning, "_without_fold", lambda *a: models.append(model := without(*a)) or model)
        clf = SurfaceKernelClassifier(random_state=0).fit(X, Y)
        (of_fold,), ((_, table), (_, again)) = models, calls
        unseen = table.learnt.fold >= 0
        assert 0 < unseen.sum() == len(clf.oof_proba_) - np.isnan(clf.oof_proba_[:, 0]).sum()
        assert not np.isin(table.few.keys, table.rows.keys[unseen]).any() and len(table.few) == (~unseen).sum()
        assert clf.kernel_ == of_fold.kernel_ == again.kernels[0] and len(again.kernels) == 1 < len(table.kernels)

    def test_pure_noise_is_not_better_than_chance(self):
        rng, losses = np.random.default_rng(0), []
        for seed in range(4):
            X, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
            losses.append(log_loss(y, SurfaceKernelClassifier(random_state=seed).fit(X, y).oof_proba_))
        assert np.log(2) - 0.01 < np.mean(losses) < np.log(2) + 0.05


class TestClassifiers:
    def test_attributes(self, fitted):
        assert fitted.oof_proba_.shape == (110, 2) and (fitted.oof_proba_ >= 0).all()
        assert fitted.oof_proba_.sum(axis=1) == pytest.approx(np.ones(110))
        assert fitted.fold_importances_.shape[1:] == fitted.feature_importances_.shape == (3,)
        for shares in (fitted.feature_importances_, *fitted.fold_importances_):
            assert shares.sum() == pytest.approx(1.0) and (shares >= 0).all()
        assert list(fitted.learning_curve_) == ["steps", "leave_one_out", "out_of_fold"]
        assert len(set(fitted.learning_curve_["leave_one_out"])) == len(fitted.learning_curve_["steps"])
        assert "loo_proba_" not in vars(fitted) or not np.array_equal(fitted.oof_proba_, fitted.loo_proba_)

    @pytest.mark.parametrize("Estimator", ALL)
    def test_tags(self, Estimator):
        tags = np.c_[X[:, 0] > 0, X[:, 1] > 0.5].astype(int)
        model = Estimator(random_state=0).fit(X, tags)
        right = (model.oof_proba_ > 0.5) == tags
        assert right.mean() > 0.8 and model.oof_proba_.sum(axis=1).std() > 0.1

    @pytest.mark.parametrize("Estimator", ALL)
    def test_a_class_that_a_fold_alone_has(self, Estimator):
        """Its probability is small, but not zero: a single row would make the log-loss infinite."""
        y = np.where(np.arange(110) == 7, 2, Y)
        with pytest.warns(FewRowsWarning, match="class 2"):
            model = Estimator(random_state=0).fit(X, y)
        assert 1 / 200 < model.oof_proba_[7, 2] < 1 / 50
        assert model.oof_proba_.sum(axis=1) == pytest.approx(np.ones(110))
        assert log_loss(y, model.oof_proba_) < 2.0

    def test_other_rows_of_a_single_class(self):
        with pytest.warns(FewRowsWarning):
            model = LSPC(random_state=0).fit(X, np.arange(110) == 7)
        assert model.oof_proba_[7, 1] == pytest.approx(1 / 100, rel=0.8)

    def test_rows_of_weight_zero_are_predicted(self):
        weight = np.ones(110)
        weight[[3, 50]] = 0.0
        model = LSPC(random_state=0).fit(X, Y, weight)
        assert model.oof_proba_[[3, 50]] == pytest.approx(model.predict_proba(X[[3, 50]]))
        rest = np.flatnonzero(weight)
        alone = LSPC(random_state=0).fit(X[rest], Y[rest])
        assert model.oof_proba_[rest] == pytest.approx(alone.oof_proba_, abs=1e-9)

    def test_as_many_centers_as_rows(self):
        assert LSPC(centers=110, random_state=0).fit(X, Y).oof_proba_.shape == (110, 2)

    def test_without_probabilities(self):
        model = LSPC(link="none", random_state=0).fit(X, Y)
        assert model.feature_importances_.shape == (3,)
        with pytest.raises(AttributeError, match="LSPC has no oof_proba_: link='none' gives no probabilities"):
            _ = model.oof_proba_

    def test_a_later_fit_forgets(self, clf):
        model = LSPC(random_state=0).fit(X, Y).fit(X[:40], Y[:40])
        for name in ("oof_proba_", "feature_importances_", "fold_importances_", "learning_curve_"):
            with pytest.raises(AttributeError, match=f"has no {name}: the kernel was not learnt, which needs"):
                getattr(model, name)
        with pytest.raises(AttributeError, match="not fitted yet; fit sets oof_proba_"):
            _ = LSPC().oof_proba_

    def test_partial_fit_keeps_no_rows(self):
        model = LSPC(random_state=0).fit(X, Y).partial_fit(X, Y, classes=[0, 1])
        assert not hasattr(model, "oof_proba_")

    def test_model_files(self, fitted, tmp_path):
        kproba.save(fitted, tmp_path / "m.kproba")
        again = kproba.load(tmp_path / "m.kproba")
        for name in ("oof_proba_", "feature_importances_", "fold_importances_"):
            assert np.array_equal(getattr(again, name), getattr(fitted, name))
        assert all(
            np.array_equal(again.learning_curve_[key], fitted.learning_curve_[key]) for key in again.learning_curve_
        )

    def test_shares_of_the_only_column_that_varies(self, tmp_path):
        """They are sums of four products, which are 1 up to rounding."""
        rng = np.random.default_rng(0)
        varying = rng.normal(size=150)
        y = varying + 0.3 * rng.normal(size=150) > 0
        model = LSPC(random_state=0).fit(np.c_[varying, np.zeros(150)], y)
        assert model.feature_importances_.max() <= 1 and model.fold_importances_.max() <= 1
        kproba.save(model, tmp_path / "m.kproba")
        model.feature_importances_ = np.array([1 + 4e-16, 0.0])  # as in models of earlier versions
        kproba.save(model, tmp_path / "m.kproba")
        assert kproba.load(tmp_path / "m.kproba").feature_importances_.tolist() == [1 + 4e-16, 0.0]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("oof_proba_", np.ones((5, 3))),
            ("oof_proba_", np.full((5, 2), 2.0)),
            ("feature_importances_", np.ones(4)),
            ("fold_importances_", np.ones((2, 4))),
            ("feature_importances_", np.full(3, 1.00001)),
            ("learning_curve_", {"steps": np.ones(2)}),
            ("learning_curve_", {"steps": np.ones(2), "leave_one_out": np.ones(2), "out_of_fold": np.ones(3)}),
        ],
    )
    def test_files_that_no_fit_would_write(self, name, value, clf, tmp_path):
        bad = LSPC(random_state=0)
        bad.__dict__.update({**vars(clf), name: value})
        with pytest.raises(kproba.ModelFileError):
            kproba.save(bad, tmp_path / "m.kproba")


@pytest.fixture
def one_part(monkeypatch):
    """As if there were many rows."""
    monkeypatch.setattr(outer_folds, "FOLDS", ())


@pytest.mark.usefixtures("one_part")
class TestOnePart:
    """Of many rows, only those that took no part in learning the kernel have probabilities."""

    @pytest.mark.parametrize("Estimator", ALL)
    def test_one_row_in_five_is_held_out(self, Estimator):
        model = Estimator(random_state=0).fit(X, Y)
        known = rows_with_probabilities(model.oof_proba_)
        assert len(known) == 22 and np.isnan(np.delete(model.oof_proba_, known, axis=0)).all()
        assert model.oof_proba_[known].sum(axis=1) == pytest.approx(np.ones(22))
        assert model.fold_importances_.shape == (2, 3)

    @pytest.mark.parametrize("seed", range(3))
    def test_a_refit_without_the_row_gives_the_same(self, seed):
        """Under the kernel, the noise and the scaling of the fit, with the link of the rows that are not held out."""
        X, y = waves(120, seed)
        clf = LSPC(random_state=seed).fit(X, y)
        known = rows_with_probabilities(clf.oof_proba_)
        rest = np.setdiff1d(np.arange(120), known)
        rows = Rows.of(X, y, np.ones(120), 2)
        link = fit_link("auto", clf.loo_scores_[rest], rows.take(rest))
        noise = clf.ridge_ * 120
        for i in known[:8]:
            others = np.delete(np.arange(120), i)
            one = LSPC(kernel=clf.kernel_, ridge=noise / 119, centers="all", scaling=None, random_state=0)
            one.fit(clf.scaling_(X[others]), y[others])
            expected = link.probabilities(one._scores(clf.scaling_(X[[i]])))
            assert clf.oof_proba_[[i]] == pytest.approx(expected, abs=1e-6)

    def test_learning_never_sees_the_part(self):
        """Whatever its labels are, the parameters after a number of steps are the same."""
        rows = Rows.of(X, Y, np.ones(110), 2)
        part = outer_folds.outer_folds(rows, 0) == 0
        swapped = Rows.of(X, np.where(part, 1 - Y, Y), np.ones(110), 2)
        runs = [outer_folds.Run(each, np.flatnonzero(part), 0) for each in (rows, swapped)]
        run_in_turns([run.advance(10) for run in runs])
        assert (runs[0].found[0] == runs[1].found[0]).all()
        assert not set(runs[0].inside.number) & set(np.flatnonzero(part))

    def test_pure_noise_is_not_better_than_chance(self):
        rng, losses = np.random.default_rng(0), []
        for seed in range(4):
            X, y = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
            clf = LSPC(random_state=seed).fit(X, y)
            known = rows_with_probabilities(clf.oof_proba_)
            losses.append(log_loss(y[known], clf.oof_proba_[known]))
        assert np.mean(losses) > np.log(2) - 0.01

    @pytest.mark.parametrize("as_weight", [False, True])
    def test_copies_of_a_row_do_not_tell_its_label(self, as_weight):
        """Leave-one-out would leave the copy in the fit."""
        rng, losses = np.random.default_rng(1), []
        for seed in range(3):
            X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
            weight = np.full(200, 2.0) if as_weight else None
            if not as_weight:
                X, y = np.tile(X, (2, 1)), np.tile(y, 2)
            clf = LSPC(random_state=seed).fit(X, y, weight)
            known = rows_with_probabilities(clf.oof_proba_)
            losses.append(log_loss(y[known], clf.oof_proba_[known]))
            assert len(known) == len(X) // 5
        assert np.mean(losses) > np.log(2) - 0.01

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.integers(0, 10_000), st.sampled_from([2, 8, 40, 1000]), st.sampled_from([np.float64, np.float32]))
    def test_equal_rows_are_judged_together_or_not_at_all(self, seed, n_values, dtype):
        """On booleans and ties with contradicting labels, too: a row must not be judged by a fit that has its copy."""
        rng = np.random.default_rng(seed)
        X = rng.integers(0, n_values, size=(160, 3)).astype(dtype)
        y = (X[:, 0] + rng.integers(0, n_values, size=160) >= n_values).astype(int)
        if len(np.unique(X, axis=0)) < 100 or len(set(y)) < 2:
            return  # the kernel is not learnt
        proba = LSPC(random_state=0).fit(X, y).oof_proba_
        number = np.unique(X, axis=0, return_inverse=True)[1].ravel()
        is_known = np.isin(np.arange(160), rows_with_probabilities(proba))
        assert all(len(set(is_known[number == k])) == 1 for k in range(number.max() + 1))
        assert 0 < is_known.sum() < 80 and proba[is_known].sum(axis=1) == pytest.approx(np.ones(is_known.sum()))

    @pytest.mark.parametrize("centers", ["all", "local", 60])
    @pytest.mark.parametrize("flipped", [0, 1])
    def test_copies_are_left_out_together(self, centers, flipped, monkeypatch):
        """Rows that only differ in their label have the same probabilities: neither judges the other."""
        monkeypatch.setattr(local, "REGION_ROWS", 60)
        rows = np.r_[np.arange(110), np.arange(30)]
        y = Y[rows]
        y[110:] ^= flipped
        model = LSPC(centers=centers, random_state=0).fit(X[rows], y)
        known = rows_with_probabilities(model.oof_proba_)
        unseen = known[known < 30]
        assert len(unseen) and np.array_equal(known[known >= 110] - 110, unseen)
        assert model.oof_proba_[110 + unseen] == pytest.approx(model.oof_proba_[unseen], abs=1e-9)
        assert np.abs(model.loo_proba_ - model.oof_proba_)[unseen].max() > 1e-3

    def test_a_ridge_that_all_rows_choose_needs_a_refit(self):
        """Leave-one-out of the held-out part has helped to choose the ridge, so it cannot judge it."""
        searched = LSPC(ridge=(1e-4, 1e-1), random_state=0).fit(X, Y)
        known = rows_with_probabilities(searched.oof_proba_)
        assert len(known) == 22
        assert not np.allclose(searched.oof_proba_[known], searched.loo_proba_[known], atol=1e-3)

    def test_tags_groups_and_weights(self):
        tags = np.c_[X[:, 0] > 0, X[:, 1] > 0.5].astype(int)
        assert len(rows_with_probabilities(LSPC(random_state=0).fit(X, tags).oof_proba_)) == 22
        groups = np.arange(110) // 5
        found = LSPC(random_state=0).fit(X, Y, groups=groups).oof_proba_
        held_out = np.isin(np.arange(110), rows_with_probabilities(found))
        assert all(len(set(held_out[groups == g])) == 1 for g in range(22)) and 10 <= held_out.sum() <= 35
        weight = np.where(np.arange(110) < 2, 0.0, 1.0)
        weighted = LSPC(random_state=0).fit(X, Y, weight)
        assert weighted.oof_proba_[:2] == pytest.approx(weighted.predict_proba(X[:2]))

    def test_a_class_that_the_part_alone_has(self):
        fold = outer_folds.outer_folds(Rows.of(X, np.where(np.arange(110) == 7, 2, Y), np.ones(110), 3), 0)
        for row in (7, int(np.flatnonzero(fold == 0)[0])):
            y = np.where(np.arange(110) == row, 2, Y)
            with pytest.warns(FewRowsWarning, match="class 2"):
                found = LSPC(random_state=0).fit(X, y).oof_proba_
            known = rows_with_probabilities(found)
            assert (found[known] > 0).all() and found[known].sum(axis=1) == pytest.approx(np.ones(len(known)))

    def test_decisions_and_reports_use_the_part(self):
        model = RejectOption(LSPC(random_state=0), threshold=0.7).fit(X, Y)
        assert model.calibrated_by_ == "oof" and len(model.calibration_proba_) == 22
        assert model.predict_set(X[:3]).shape == (3, 2)
        clf = LSPC(random_state=0).fit(X, Y)
        known = rows_with_probabilities(clf.oof_proba_)
        facts = collect(clf, X, Y, on="out-of-fold", row_names=[f"r{k}" for k in range(110)], beside={"n": range(110)})
        assert facts.n_rows == 22 and facts.notes[0].startswith("All results are for 22 training rows, each evaluated")
        assert "Another 88 training rows took part in learning" in facts.notes[0]
        assert facts.scores[0].log_loss.value == pytest.approx(log_loss(Y[known], clf.oof_proba_[known]))
        assert {row.name for row in facts.doubtful} <= {f"r{k}" for k in known}
        plain = collect(clf, X, Y, on="out-of-fold")
        assert {row.name for row in plain.doubtful} <= set(map(str, known))

    def test_model_files(self, tmp_path):
        clf = LSPC(random_state=0).fit(X, Y)
        kproba.save(clf, tmp_path / "m.kproba")
        assert np.array_equal(kproba.load(tmp_path / "m.kproba").oof_proba_, clf.oof_proba_, equal_nan=True)
        clf.oof_proba_[rows_with_probabilities(clf.oof_proba_)[0], 0] = np.nan
        with pytest.raises(kproba.ModelFileError):
            kproba.save(clf, tmp_path / "m.kproba")

    def test_commands(self, tmp_path, capsys):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("skrub")
        path, model = tmp_path / "train.csv", tmp_path / "m.kproba"
        frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.where(Y, "yes", "no"))
        frame.to_csv(path, index=False)
        assert cli.main(["fit", str(path), "--target", "y", "--model", str(model)]) == 0
        assert "\n22 rows out of fold: error " in capsys.readouterr().out
        assert cli.main(["evaluate", str(path), "--model", str(model), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["on"] == "out-of-fold" and found["rows"] == found["training_rows"] == 22
        assert found["training_rows_skipped"] == 88
        assert cli.main(["evaluate", str(path), "--model", str(model)]) == 0
        assert "Another 88 training rows took part in learning the kernel" in "".join(capsys.readouterr())
        skipped = np.setdiff1d(np.arange(110), rows_with_probabilities(kproba.load(model).classifier.oof_proba_))
        frame.iloc[skipped].to_csv(tmp_path / "skipped.csv", index=False)
        assert cli.main(["evaluate", str(tmp_path / "skipped.csv"), "--model", str(model)]) == 2
        assert "88 of these rows took part in learning the kernel of the model" in capsys.readouterr().err
        pandas.concat([frame, frame.assign(a=lambda rows: rows["a"] + 1)]).to_csv(path, index=False)
        report = tmp_path / "r.html"
        assert cli.main(["report", str(path), "--model", str(model), "--json", "--out", str(report)]) == 0
        mixed = json.loads(capsys.readouterr().out)
        assert mixed["on"] == "out-of-fold and held-out" and mixed["rows"] == 132 and mixed["training_rows"] == 22


class TestHonest:
    def test_order(self, clf, few):
        assert honest_probabilities(clf).name == "oof" and honest_probabilities(clf).proba is clf.oof_proba_
        assert honest_probabilities(few).name == "loo" and honest_probabilities(few).proba is few.loo_proba_
        assert honest_probabilities(LogisticRegression().fit(X, Y)) is None

    def test_reject(self):
        auto = RejectOption(LSPC(random_state=0), threshold=0.7).fit(X, Y)
        assert auto.calibrated_by_ == "oof"
        assert np.array_equal(auto.calibration_proba_, auto.estimator_.oof_proba_)
        loo = RejectOption(LSPC(random_state=0), threshold=0.7, calibration="loo").fit(X, Y)
        assert loo.calibrated_by_ == "loo" and np.array_equal(loo.calibration_proba_, loo.estimator_.loo_proba_)
        few = RejectOption(LSPC(random_state=0), threshold=0.7).fit(X[:40], Y[:40])
        assert few.calibrated_by_ == "loo"
        with pytest.raises(ValueError, match="calibration='oof': LSPC has no oof_proba_; use calibration='cv'"):
            RejectOption(LSPC(random_state=0), threshold=0.7, calibration="oof").fit(X[:40], Y[:40])


class TestReport:
    def test_out_of_fold(self, clf):
        facts = collect(clf, X, Y, on="out-of-fold", names=NAMES)
        assert facts.on == "out-of-fold" and facts.n_train == 110
        assert facts.scores[0].log_loss.value == pytest.approx(log_loss(Y, clf.oof_proba_))
        assert "never saw its fold" in facts.notes[0] and not any("better than on new" in note for note in facts.notes)
        assert facts.scores[2].name == "logistic regression" and "5-fold" in facts.notes[-1]
        text = page(facts)
        assert "110 training rows (out of fold)" in text
        assert 'id="importances"' in text and 'id="learning"' in text and 'href="#reasons"' in text
        assert "<b>" not in text.partition('id="importances"')[2].partition("</svg>")[0] and "&lt;b&gt;" in text
        assert " nan" not in text.partition('id="fitted"')[2].partition("</section>")[0]

    def test_without_a_learnt_kernel(self, few):
        facts = collect(few, X[:40], Y[:40], on="leave-one-out")
        assert facts.importances is None and facts.curve is None and 'id="importances"' not in page(facts)
        with pytest.raises(
            ValueError, match=r"on='out-of-fold' needs oof_proba_, which LSPC does not have; .* 100 dist"
        ):
            collect(few, X[:40], Y[:40], on="out-of-fold")
        with pytest.raises(ValueError, match="on='out-of-fold' needs y"):
            collect(LSPC(random_state=0).fit(X, Y), on="out-of-fold")

    def test_most_important_columns_come_first(self, clf):
        order = np.argsort(-clf.feature_importances_, kind="stable")
        assert collect(clf, X, Y, names=NAMES).columns == tuple(NAMES[j] for j in order)
        found = importances_of(clf, NAMES, most=2)
        assert found.names == tuple(NAMES[j] for j in order[:2]) and found.n_columns == 3
        assert (found.low <= found.share).all() and (found.share <= found.high).all()

    def test_names_of_pipelines(self, clf):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, columns=NAMES)
        named = make_pipeline(StandardScaler(), LSPC(random_state=0)).fit(frame, Y)
        assert set(importances_of(named).names) == set(NAMES)
        assert set(importances_of(clf).names) == {"x0", "x1", "x2"}
        assert "including those left out" in " ".join(collect(named, frame, Y, on="out-of-fold").notes)

    def test_infinite_losses_are_left_out(self, clf):
        model = LSPC()
        model.__dict__.update(vars(clf))
        model.learning_curve_ = {
            "steps": np.array([20.0, 30.0, 40.0]),
            "leave_one_out": np.array([np.inf, 0.5, 0.4]),
            "out_of_fold": np.array([0.7, 0.6, np.inf]),
        }
        assert learning_curve_of(model).chosen == 30
        drawing = page(collect(model, X, Y)).partition('id="learning"')[2].partition("</svg>")[0]
        assert "inf" not in drawing and "nan" not in drawing


class TestDisplays:
    def test_importances(self, clf):
        pytest.importorskip("matplotlib").use("Agg")
        found = displays.ImportanceDisplay.from_estimator(clf, names=NAMES)
        assert [bar.get_width() for bar in found.ax_.patches] == pytest.approx(sorted(clf.feature_importances_)[::-1])
        assert {tick.get_text() for tick in found.ax_.get_yticklabels()} == set(NAMES)
        assert len(displays.ImportanceDisplay.from_estimator(clf, most=1).importances.names) == 1
        with pytest.raises(ValueError, match="names has 2 entries, but the classifier was fitted on 3 columns"):
            displays.ImportanceDisplay.from_estimator(clf, names=["a", "b"])

    def test_learning(self, clf):
        pytest.importorskip("matplotlib").use("Agg")
        found = displays.KernelLearningDisplay.from_estimator(clf)
        assert found.ax_.lines[1].get_ydata() == pytest.approx(clf.learning_curve_["out_of_fold"])
        assert found.ax_.get_xlabel() == "steps"

    @pytest.mark.parametrize("display", [displays.ImportanceDisplay, displays.KernelLearningDisplay])
    def test_nothing_to_plot(self, display, few):
        with pytest.raises(ValueError, match="this LSPC has not learnt its kernel"):
            display.from_estimator(few)


class TestCommand:
    @pytest.fixture(scope="class")
    def table(self, tmp_path_factory):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("skrub")
        path = tmp_path_factory.mktemp("oof") / "train.csv"
        pandas.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.where(Y, "yes", "no")).to_csv(path, index=False)
        return path

    def answer(self, capsys, *words):
        assert cli.main([*map(str, words), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    def test_all_commands(self, table, capsys):
        import pandas

        model = table.with_suffix(".kproba")
        assert cli.main(["fit", str(table), "--target", "y", "--model", str(model)]) == 0
        assert "\nout of fold: error " in (out := capsys.readouterr().out) and "optimistic" not in out
        fitted = self.answer(capsys, "fit", table, "--target", "y", "--model", model)
        assert fitted["out_of_fold"]["log_loss"] != fitted["leave_one_out"]["log_loss"]
        found = self.answer(capsys, "evaluate", table, "--model", model)
        assert found["on"] == "out-of-fold" and found["training_rows"] == 110
        assert found["log_loss"]["value"] == pytest.approx(fitted["out_of_fold"]["log_loss"], rel=1e-6)
        about = self.answer(capsys, "report", table, "--model", model, "--out", table.with_suffix(".html"))
        assert about["on"] == "out-of-fold" and "(out of fold)" in table.with_suffix(".html").read_text()
        both = pandas.concat([pandas.read_csv(table), pandas.read_csv(table).assign(a=lambda rows: rows["a"] + 1)])
        both.to_csv(table.with_name("both.csv"), index=False)
        mixed = self.answer(capsys, "evaluate", table.with_name("both.csv"), "--model", model)
        assert mixed["on"] == "out-of-fold and held-out" and mixed["training_rows"] == 110
