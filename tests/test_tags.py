"""Tags end to end: missing ones, those that never occur, reports and thresholds."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn import metrics

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier, links
from kproba.data.rows import Rows
from kproba.links import calibrated_tags
from kproba.links.calibrated import SoftmaxFit
from kproba.metrics import tag_report, tag_thresholds
from kproba.problems import missing_tags
from kproba.search import staged as search
from oracles import gaussian, tags_by_rows

WIDTH = 1.5


def tagged(n=60, L=4, missing=0.25, seed=0, d=3):
    """Rows and tags; the first tag is never missing, the second and the third are missing in the same rows."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    Y = (X @ random.standard_normal((d, L)) + 0.5 * random.standard_normal((n, L)) > 0.3).astype(float)
    gone = random.random((n, L)) < missing
    gone[:, 0] = False
    gone[:, 2:3] = gone[:, 1:2]
    Y[gone] = np.nan
    return X, Y


def lspc(**changes):
    given = {"kernel": "gaussian", "width": WIDTH, "ridge": 1e-2, "scaling": None, "loo": True, "random_state": 0}
    return LSPC(**{**given, **changes})


QUICK = {
    "lspc": lspc(),
    "klr": KernelLogisticRegression(kernel="gaussian", width=WIDTH, ridge=1e-2, scaling=None, loo=True),
    "ivm": ImportVectorMachine(kernel="gaussian", width=WIDTH, ridge=1e-2, scaling=None, random_state=0),
    "surface": SurfaceKernelClassifier(kernel="gaussian", width=WIDTH, n_centers=8, scaling=None, random_state=0),
}


@pytest.fixture(params=list(QUICK))
def model(request):
    from sklearn.base import clone

    return clone(QUICK[request.param])


class TestLeastSquares:
    """A tag's fit and its leave-one-out scores are those of the rows that have it."""

    @pytest.mark.parametrize("penalty", ["rkhs", "parameters"])
    @pytest.mark.parametrize("centers", ["all", "some"])
    @pytest.mark.parametrize("solver", ["auto", "eigen", "cholesky"])
    def test_equals_the_oracle(self, penalty, centers, solver):
        X, Y = tagged(n=40)
        weight = np.random.default_rng(1).integers(1, 3, 40).astype(float)
        points = X if centers == "all" else X[:15]
        given = {"width": 0.6, "link": "clip", "solver": solver, "penalty": penalty}
        clf = lspc(centers="all" if centers == "all" else points, **given).fit(X, Y, weight)
        Phi, K = gaussian(X, clf.centers_, 0.6), gaussian(clf.centers_, clf.centers_, 0.6)
        coef, loo = tags_by_rows(Phi, Y, weight, K if penalty == "rkhs" else np.eye(len(K)), 1e-2)
        # the whitened form holds directions that the kernel matrix does not resolve
        near = {"rtol": 0, "atol": 1e-7 if solver == "eigen" and penalty == "rkhs" else 1e-9}
        np.testing.assert_allclose(Phi @ clf.coef_[:, :4], Phi @ coef[0], **near)
        np.testing.assert_allclose(Phi @ clf.coef_[:, clf.link_.constant], Phi @ coef[1], **near)
        np.testing.assert_allclose(clf.loo_scores_, loo[0], **near)

    def test_tags_of_the_same_rows_share_a_constant(self):
        X, Y = tagged()
        clf = lspc(link="clip").fit(X, Y)
        assert clf.coef_.shape[1] == 4 + 3
        assert clf.link_.constant.tolist() == [4, 5, 5, 6]
        assert lspc(link="clip").fit(X, np.nan_to_num(Y)).coef_.shape[1] == 5

    @pytest.mark.parametrize("link", ["auto", "clip", "clip-parameters"])
    def test_equals_a_model_of_one_tag(self, link):
        """The link too: given the centres, a tag knows nothing of the others."""
        X, Y = tagged()
        clf = lspc(link=link, centers=X).fit(X, Y)
        for tag in range(4):
            has = ~np.isnan(Y[:, tag])
            alone = lspc(link=link, centers=X).fit(X[has], Y[has, tag])
            np.testing.assert_allclose(clf.predict_proba(X)[:, tag], alone.predict_proba(X)[:, 1], atol=2e-4)
            np.testing.assert_allclose(clf.loo_proba_[has, tag], alone.loo_proba_[:, 1], atol=2e-4)

    def test_far_from_its_own_rows_a_tag_goes_back_to_its_share(self):
        X, Y = tagged(n=80, missing=0.0)
        far = X[:, 0] > 0.3
        Y[far, 3] = np.nan
        X[far] += 30.0
        proba = lspc().fit(X, Y).predict_proba(X[far])
        np.testing.assert_allclose(proba[:, 3], np.nanmean(Y[:, 3]), atol=1e-6)
        assert np.ptp(proba[:, 0]) > 0.1

    @pytest.mark.parametrize("centers", ["class", ("class", 5)], ids=str)
    @pytest.mark.parametrize("link", ["clip", "clip-parameters"])
    def test_centres_of_each_tag(self, centers, link):
        X, Y = tagged()
        clf = lspc(centers=centers, link=link, penalty="parameters").fit(X, Y)
        assert set(clf.basis_.owner) == {0, 1, 2, 3}
        own = {tuple(x) for x in X[Y[:, 1] == 1]}
        assert all(tuple(x) in own for x in clf.centers_[clf.basis_.owner == 1])
        assert np.isfinite(clf.predict_proba(X)).all()

    def test_rounded_parameters_of_complete_tags(self):
        """A tag and its counterpart are rounded, as two classes are."""
        X, Y = tagged(missing=0.0)
        clf = lspc(link="clip-parameters").fit(X, Y)
        assert (clf.coef_ >= 0).all() and clf.coef_.shape[1] == 8
        for tag in range(4):
            alone = lspc(link="clip-parameters").fit(X, Y[:, tag])
            np.testing.assert_allclose(clf.loo_proba_[:, tag], alone.loo_proba_[:, 1], atol=1e-9)

    def test_many_groups(self, monkeypatch):
        """Whether the matrices of the groups are kept or not."""
        X, Y = tagged(n=50)
        kept = lspc(ridge=[1e-3, 1e-2]).fit(X, Y)
        monkeypatch.setattr(missing_tags, "KEPT_GROUPS", 0)
        np.testing.assert_array_equal(lspc(ridge=[1e-3, 1e-2]).fit(X, Y).loo_proba_, kept.loo_proba_)

    def test_conjugate_gradients(self):
        X, Y = tagged(n=40)
        exact, cg = (lspc(centers="all", link="clip", solver=solver).fit(X, Y) for solver in ("auto", "cg"))
        np.testing.assert_allclose(cg.predict_proba(X), exact.predict_proba(X), atol=1e-4)

    def test_precomputed(self):
        X, Y = tagged(n=40)
        K = gaussian(X, X, WIDTH)
        given, direct = LSPC(kernel="precomputed", ridge=1e-2, loo=True).fit(K, Y), lspc().fit(X, Y)
        np.testing.assert_allclose(given.loo_proba_, direct.loo_proba_, atol=1e-6)
        np.testing.assert_allclose(given.predict_proba(K), direct.predict_proba(X), atol=1e-6)

    def test_tensors(self):
        xp = pytest.importorskip("array_api_strict")
        X, Y = tagged(n=40)
        for centers in ("all", 12):
            there, here = (lspc(centers=centers).fit(rows, Y) for rows in (xp.asarray(X), X))
            np.testing.assert_allclose(there.loo_proba_, here.loo_proba_, atol=1e-6)

    def test_folds(self):
        """Cross-validation scores all tags of the rows that are held out by the rows that are not."""
        X, Y = tagged(n=50)
        clf = lspc(ridge=[1e-3, 1e-1], selection="cv", folds=2).fit(X, Y)
        assert len(clf.search_results_["loss"]) == 2 and np.isfinite(clf.search_results_["loss"]).all()


class TestContract:
    """What all four classifiers keep."""

    def test_complete_tags_are_as_before(self, model):
        X, Y = tagged(missing=0.0)
        whole = model.fit(X, Y).predict_proba(X)
        np.testing.assert_array_equal(model.fit(X, Y.astype(int)).predict_proba(X), whole)

    def test_missing_tags(self, model):
        X, Y = tagged()
        proba = model.fit(X, Y).predict_proba(X)
        assert proba.shape == Y.shape and (proba > 0).all() and (proba < 1).all()
        assert model.loo_proba_.shape == Y.shape and np.isfinite(model.loo_proba_).all()
        has = ~np.isnan(Y)
        assert ((proba > 0.5) == Y)[has].mean() > 0.75

    def test_rows_without_the_tag_have_no_say_in_it(self, model):
        X, Y = tagged(n=80, L=2, missing=0.3)
        changed = Y.copy()
        changed[:, 1] = np.where(np.isnan(Y[:, 1]), np.nan, 1.0 - Y[:, 1])
        a, b = model.fit(X, Y), None
        first = a.predict_proba(X)
        if isinstance(model, ImportVectorMachine):  # tags share import points, which the second one moves
            return
        b = model.fit(X, changed).predict_proba(X)
        np.testing.assert_allclose(first[:, 0], b[:, 0], atol=1e-6)

    def test_a_row_without_tags_does_not_count(self, model):
        X, Y = tagged()
        more = np.vstack([X, X[:5] + 0.1]), np.vstack([Y, np.full((5, 4), np.nan)])
        proba = model.fit(X, Y).predict_proba(X)
        again = model.fit(*more)
        np.testing.assert_allclose(again.predict_proba(X), proba, atol=1e-12)
        np.testing.assert_allclose(again.loo_proba_[-5:], again.predict_proba(X[:5] + 0.1), atol=1e-12)

    @pytest.mark.parametrize("missing", [0.0, 0.25])
    def test_a_tag_that_never_or_always_occurs(self, model, missing):
        X, Y = tagged(n=70, missing=missing)
        Y[:, 0] = np.where(np.isnan(Y[:, 0]), np.nan, 0.0)
        Y[:, 3] = np.where(np.isnan(Y[:, 3]), np.nan, 1.0)
        model.fit(X, Y)
        for proba in (model.predict_proba(X), model.predict_proba(100.0 * X), model.loo_proba_):
            assert np.isfinite(proba).all()
            assert proba[:, 0].max() < 0.05 and proba[:, 3].min() > 0.95

    def test_a_tag_that_one_row_has(self, model):
        X, Y = tagged(n=50)
        Y[1:, 3], Y[0, 3] = np.nan, 1.0
        model.fit(X, Y)
        assert np.isfinite(model.predict_proba(X)).all() and np.isfinite(model.loo_proba_).all()
        assert (model.predict_proba(X)[:, 3] > 0.5).all()

    def test_weights_are_copies(self, model):
        X, Y = tagged(n=40)
        weight = np.random.default_rng(0).integers(0, 3, 40)
        Y[0] = 1.0
        copies = np.repeat(np.arange(40), weight)
        a = model.fit(X, Y, weight).predict_proba(X)
        b = model.fit(X[copies], Y[copies]).predict_proba(X)
        np.testing.assert_allclose(a, b, atol=1e-8)

    def test_equal_rows_with_different_tags_missing(self, model):
        X, Y = tagged(n=40)
        twice, both = np.vstack([X, X]), np.vstack([Y, tagged(n=40, seed=3)[1]])
        assert np.isfinite(model.fit(twice, both).predict_proba(X)).all()

    def test_forms(self, model):
        X, Y = tagged()
        wanted = model.fit(X, Y).predict_proba(X)
        names = ["sky", "sea", "sun", "sand"]
        frame = pd.DataFrame(Y, columns=names)
        objects = np.where(np.isnan(Y), None, Y)
        lists = [[None if np.isnan(v) else int(v) for v in row] for row in Y]
        for form in (frame, frame.astype("Int64"), frame.astype("boolean"), objects, lists, Y.astype(np.float32)):
            np.testing.assert_array_equal(model.fit(X, form).predict_proba(X), wanted)
        assert model.fit(X, frame).classes_.tolist() == names

    def test_partial_fit_takes_one_label_a_row(self, model):
        X, Y = tagged()
        if hasattr(model, "partial_fit"):
            with pytest.raises(ValueError, match="one label each"):
                model.partial_fit(X, Y, classes=[0, 1])
        with pytest.raises(ValueError, match="one label each"):
            model.fit(X, Y, classes=[0, 1])


@pytest.mark.parametrize("make", [LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier])
def test_the_search_copes_with_missing_tags(make):
    X, Y = tagged(n=90, missing=0.4)
    Y[2:, 3] = np.nan  # so few that samples of the rows have none
    Y[:2, 3] = [0, 1]
    model = make(random_state=0).fit(X, Y)
    has = ~np.isnan(Y)
    assert ((model.predict(X) == Y)[:, :3][has[:, :3]]).mean() > 0.8
    assert np.isfinite(model.predict_proba(X)).all() and np.isfinite(model.loo_proba_).all()


@pytest.mark.parametrize("n", [60, 450])
def test_a_search_by_some_of_the_tags_fits_all(n, monkeypatch):
    monkeypatch.setattr(search.most_informative_tags, "__defaults__", (3,))
    X, Y = tagged(n=n, L=5, missing=0.2)
    model = LSPC(kernel="gaussian", random_state=0).fit(X, Y)
    assert model.predict_proba(X).shape == Y.shape == model.loo_proba_.shape


def test_telling_tags():
    X, Y = tagged(n=50, L=5)
    Y[:, 4], Y[:, 2] = 0.0, np.arange(50) % 2
    rows = Rows.of(X, Y, np.ones(50), 5)
    few = search.most_informative_tags(rows, 3)
    assert few.n_classes == 3 and (few.labels[:, [1]] == Y[:, [2]]).all()
    assert search.most_informative_tags(rows, 5) is rows


def test_likelihood_of_a_tag_is_that_of_its_rows():
    """The total ridge nλ is shared by all tags, so alone a tag has λ times all rows over its own."""
    X, Y = tagged(n=50)
    given = {"kernel": "gaussian", "width": WIDTH, "centers": X, "scaling": None, "tol": 1e-9, "loo": True}
    clf = KernelLogisticRegression(**given, ridge=1e-2).fit(X, Y)
    for tag in range(4):
        has = ~np.isnan(Y[:, tag])
        alone = KernelLogisticRegression(**given, ridge=1e-2 * 50 / has.sum()).fit(X[has], Y[has, tag])
        np.testing.assert_allclose(clf.predict_proba(X)[:, tag], alone.predict_proba(X)[:, 1], atol=5e-5)
        np.testing.assert_allclose(clf.loo_proba_[has, tag], alone.loo_proba_[:, 1], atol=1e-3)
        np.testing.assert_allclose(clf.loo_proba_[~has, tag], clf.predict_proba(X)[~has, tag], atol=1e-12)


def test_import_points_of_given_rows_equal_the_likelihood():
    X, Y = tagged(n=50)
    ivm = ImportVectorMachine(kernel="gaussian", width=WIDTH, ridge=1e-2, scaling=None, search="exact").fit(X, Y)
    given = {"kernel": "gaussian", "width": WIDTH, "centers": ivm.centers_, "scaling": None, "tol": 1e-9}
    klr = KernelLogisticRegression(**given, ridge=1e-2).fit(X, Y)
    np.testing.assert_allclose(ivm.predict_proba(X), klr.predict_proba(X), atol=5e-5)


def test_the_surface_of_a_tag_is_that_of_its_rows():
    X, Y = tagged(n=60)
    given = {"kernel": "gaussian", "width": WIDTH, "centers": X[:8], "scaling": None, "link": "clip"}
    clf = SurfaceKernelClassifier(**given).fit(X, Y)
    for tag in range(4):
        has = ~np.isnan(Y[:, tag])
        alone = SurfaceKernelClassifier(**given).fit(X[has], Y[has, tag])
        np.testing.assert_allclose(clf.coef_[:, tag], alone.coef_[:, 1], atol=1e-7)
        np.testing.assert_allclose(clf.predict_proba(X)[:, tag], alone.predict_proba(X)[:, 1], atol=1e-7)


class TestRefusals:
    def refuses(self, message, Y, **weights):
        with pytest.raises(ValueError, match=message):
            lspc().fit(tagged()[0], Y, **weights)

    def test_other_values(self):
        Y = tagged()[1]
        Y[7, 2] = 0.5
        self.refuses(r"value 0\.5 for the tag 2; a tag must be 0, 1 or missing", Y)
        frame = pd.DataFrame(np.where(np.isnan(Y), None, Y), columns=list("abcd"))
        self.refuses(r"value 0\.5 for the tag 'c'", frame)
        frame.loc[7, "c"] = "yes"
        self.refuses(r"value 'yes' for the tag 'c'", frame)
        Y[7, 2] = np.inf
        self.refuses("value inf for the tag 2", Y)

    def test_a_tag_without_values(self):
        Y = tagged()[1]
        Y[:, 3] = np.nan
        self.refuses("no value for the tag 3: it is missing in every row", Y)
        Y[5, 3] = 1.0
        self.refuses("no value for the tag 3", Y, sample_weight=(np.arange(60) != 5).astype(float))

    def test_one_column_with_missing_values_is_no_matrix_of_tags(self):
        self.refuses("drop or fill", tagged()[1][:, 1])
        self.refuses("drop or fill", tagged()[1][:, [1]])

    def test_clusters_of_each_class(self):
        with pytest.raises(ValueError, match="one class per row, but y is multi-label; use 'k-means'"):
            SurfaceKernelClassifier(centers="class-k-means").fit(*tagged())

    def test_stochastic_gradients(self):
        with pytest.raises(ValueError, match="does not support missing tags in y; use solver='auto'"):
            lspc(solver="sgd").fit(*tagged())


class TestReport:
    def scored(self, n=80, L=5, seed=0):
        """Labels with missing ones and probabilities with ties; the last tag never occurs."""
        random = np.random.default_rng(seed)
        Y = (random.random((n, L)) < np.linspace(0.2, 0.7, L)).astype(float)
        P = np.clip(0.3 * Y + 0.6 * random.random((n, L)), 0, 1).round(2)
        Y[random.random((n, L)) < 0.2] = np.nan
        Y[:, -1] = np.where(np.isnan(Y[:, -1]), np.nan, 0.0)
        return Y, P, random.random(n)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_figures_are_those_of_scikit_learn(self, weighted):
        Y, P, w = self.scored()
        w = w if weighted else np.ones(len(w))
        report = tag_report(Y, P, sample_weight=w if weighted else None)
        for tag in range(5):
            has = ~np.isnan(Y[:, tag])
            one = Y[has, tag], P[has, tag]
            assert report.n[tag] == has.sum()
            assert np.isclose(report.prevalence[tag], np.average(one[0], weights=w[has]))
            assert np.isclose(report.log_loss[tag], metrics.log_loss(*one, labels=[0, 1], sample_weight=w[has]))
            if tag < 4:
                assert np.isclose(report.auc[tag], metrics.roc_auc_score(*one, sample_weight=w[has]))
                assert np.isclose(
                    report.average_precision[tag], metrics.average_precision_score(*one, sample_weight=w[has])
                )
        assert np.isnan(report.auc[4]) and np.isnan(report.average_precision[4]) and report.n_defined == 4
        assert np.isclose(report.macro.auc, report.auc[:4].mean())
        assert np.isclose(report.macro.log_loss, report.log_loss.mean())

    def test_averages_are_those_of_scikit_learn(self):
        Y, P, _ = self.scored()
        Y = np.nan_to_num(Y)[:, :4]
        report = tag_report(Y, P[:, :4])
        for kind in ("macro", "micro", "weighted"):
            found = getattr(report, kind)
            assert np.isclose(found.auc, metrics.roc_auc_score(Y, P[:, :4], average=kind))
            assert np.isclose(found.average_precision, metrics.average_precision_score(Y, P[:, :4], average=kind))

    def test_a_tag_without_values(self):
        report = tag_report([[1, None], [0, None]], [[0.6, 0.5], [0.4, 0.5]])
        assert report.n.tolist() == [2, 0] and np.isnan(report.prevalence[1]) and np.isnan(report.log_loss[1])
        assert report.macro.log_loss == report.log_loss[0]

    def test_names_and_text(self):
        frame = pd.DataFrame({"sun": [0, 1], "sea": [1, None]})
        report = tag_report(frame, np.full((2, 2), 0.5))
        assert report.name.tolist() == ["sun", "sea"] and "auc" in report.columns()
        many = tag_report(np.eye(30), np.full((30, 30), 0.1))
        assert "and 10 more" in str(many) and len(str(many).splitlines()) == 25

    @pytest.mark.parametrize("maximize", ["f1", "accuracy", "youden"])
    def test_thresholds_are_the_best(self, maximize):
        Y, P, w = self.scored()
        found = tag_thresholds(Y, P, maximize=maximize, sample_weight=w)
        assert found[4] == 0.5
        score = {
            "f1": metrics.f1_score,
            "accuracy": metrics.accuracy_score,
            "youden": lambda y, p, sample_weight: (
                2 * metrics.balanced_accuracy_score(y, p, sample_weight=sample_weight)
            ),
        }[maximize]
        for tag in range(4):
            has = ~np.isnan(Y[:, tag])
            tried = (found[tag], *np.arange(-0.005, 1.02, 0.02))
            at = [score(Y[has, tag], P[has, tag] >= t, sample_weight=w[has]) for t in tried]
            assert at[0] >= max(at) - 1e-12

    def test_thresholds_at_the_ends(self):
        """Probabilities of exactly zero and one leave room for a cut on their other side."""
        assert (np.array([0.0, 0.0]) >= tag_thresholds([[0], [1]], [[0.0], [0.0]])).all()
        t = tag_thresholds([[1], [0], [0], [0]], np.ones((4, 1)), maximize="accuracy")
        assert not (t <= 1.0).any()
        neighbours = [[0.3], [np.nextafter(0.3, 1)]]
        assert (np.array(neighbours) >= tag_thresholds([[0], [1]], neighbours)).ravel().tolist() == [False, True]

    def test_equally_good_cuts(self):
        assert tag_thresholds([[0], [1]], [[0.2], [0.9]])[0] == pytest.approx(0.55)
        assert tag_thresholds([[1], [0], [0]], [[0.9], [0.6], [0.1]], maximize="youden")[0] == pytest.approx(0.75)

    def test_refusals(self):
        Y, P, _ = self.scored()
        for given, message in [
            ((Y[:, :2], P), "shape"),
            ((Y[:, 0], P), "one column per tag"),
            ((Y, P + 1), r"outside \[0, 1\]"),
            ((Y + 1, P), "y_true has the value 2.0 for the tag"),
        ]:
            for function in (tag_report, tag_thresholds):
                with pytest.raises(ValueError, match=message):
                    function(*given)
        with pytest.raises(ValueError, match="names has 1 entries, but there are 5 tags"):
            tag_report(Y, P, names=["a"])
        with pytest.raises(ValueError, match=r"maximize must be one of 'f1', 'accuracy', 'youden'.*, got 'auc'"):
            tag_thresholds(Y, P, maximize="auc")


class TestLink:
    """The links of all tags are fitted together; each has the minimum that a fit of its own finds."""

    def scored(self, n=300, L=12, seed=0):
        random = np.random.default_rng(seed)
        prior, signal = np.linspace(0.02, 0.9, L), random.standard_normal((n, L))
        Y = (random.random((n, L)) < expit(2 * signal + np.log(prior / (1 - prior)))).astype(float)
        Y[:, 0], Y[:, 1] = 0.0, 1.0
        scores = prior * (1 + 0.4 * signal) + 0.05 * random.standard_normal((n, L))
        scores[:, 2] = 0.9 * Y[:, 2] + 0.05  # separable
        scores[:, 3] = random.random(n)  # noise
        Y[random.random(n) < 0.3, 5:] = np.nan
        rows = Rows.of(random.standard_normal((n, 2)), Y, random.uniform(0.5, 2.0, n), L)
        constants = 1.0 - 0.2 * random.random((n, 2))
        return np.column_stack([scores, constants]), rows

    @pytest.mark.parametrize("cells", [1 << 16, 1000])
    def test_equals_the_fit_of_each_tag(self, cells, monkeypatch):
        monkeypatch.setattr(calibrated_tags, "TAG_CELLS", cells)
        scores, rows = self.scored()
        link = links.fit_link("auto", scores, rows)
        found, prior = link.probabilities(scores), links.positive_prior(rows)
        for tag in range(rows.n_classes):
            has, constant = ~np.isnan(rows.labels[:, tag]), scores[:, rows.constant[tag]]
            pair = np.column_stack([constant - scores[:, tag], scores[:, tag]])[has]
            labels = rows.labels[has, tag]
            targets, both = np.column_stack([1.0 - labels, labels]), np.array([1.0 - prior[tag], prior[tag]])
            alone = SoftmaxFit(pair, targets, rows.weight[has], both).run()
            np.testing.assert_allclose(found[has, tag], alone.probabilities(pair)[:, 1], atol=5e-4)

    def test_derivatives(self):
        scores, rows = self.scored()
        few = slice(4, 7)
        weight = rows.weight[:, None] * rows.known[:, few]
        columns = scores[:, few], scores[:, rows.constant[few]]
        fit = calibrated_tags.TagsFit(*columns, rows.filled_labels[:, few], weight, rows.prior[few])
        x = np.array([0.4, 1.5, 0.2, -0.3])[:, None] + np.zeros(3)
        steps = 1e-6 * np.eye(4)[:, :, None]
        numeric = [(fit.loss(x + s, slice(None))[0] - fit.loss(x - s, slice(None))[0]) / 2e-6 for s in steps]
        np.testing.assert_allclose(fit.loss(x, slice(None))[1], numeric, atol=1e-7)

    def test_a_score_of_zero_is_the_prior(self):
        scores, rows = self.scored()
        link = links.fit_link("auto", scores, rows)
        np.testing.assert_allclose(link.probabilities(np.zeros((1, scores.shape[1])))[0], link.prior, rtol=1e-12)
