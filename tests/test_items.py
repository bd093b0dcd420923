"""Rows that are no vectors: sequences, strings, sets, histograms and anything a callable compares. One contract."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hmmlearn.hmm import GaussianHMM
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import kproba
from kproba import (
    LSPC,
    ChiSquared,
    DegenerateModelWarning,
    GlobalAlignment,
    HiddenMarkovKernel,
    ImportVectorMachine,
    IndefiniteKernelWarning,
    Intersection,
    KernelLogisticRegression,
    SequenceFeatures,
    Sequences,
    Spectrum,
    SurfaceKernelClassifier,
)
from kproba.data.hashing import row_keys
from kproba.data.items import Items
from kproba.kernels import hidden_markov, sequence
from kproba.kernels.hidden_markov import COVARIANCES, Forward, Models, log_likelihoods
from kproba.kernels.projected import ProjectedKernel, project_indefinite
from oracles import clipped, hmm_log_likelihood, ridge_solution, spectrum

# that a matrix was projected is what these kernels say of themselves; tests of the message look for it
pytestmark = pytest.mark.filterwarnings("ignore::kproba.IndefiniteKernelWarning")


def sequences(n=30, seed=0, d=2):
    """Three classes of random walks between two levels, of 6 to 14 frames."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = []
    for label in y:
        T = rng.integers(6, 15)
        level = np.where(np.arange(T) < T // 2, label, 2 - label)[:, None]
        X.append(level + 0.5 * rng.normal(size=(T, d)))
    return X, y


def strings(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    motifs = ("GATTACA", "CCGCGG", "TATATA")
    random = ["".join(rng.choice(list("ACGT"), 12)) for _ in y]
    return [s[: (i := rng.integers(12))] + motifs[label] + s[i:] for s, label in zip(random, y)], y


def sets(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return [set(rng.choice(10, 4, replace=False) + 5 * label) for label in y], y


def histograms(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.dirichlet(np.ones(8), n) + np.eye(8)[y], y


def shared_letters(X, Z):
    """A user's kernel of strings: how many letters they share."""
    return np.array([[sum(min(x.count(a), z.count(a)) for a in "ACGT") for z in Z] for x in X], dtype=float)


CASES = {
    "hidden Markov": (HiddenMarkovKernel(n_states=2), sequences),
    "alignment": (GlobalAlignment(), sequences),
    "spectrum": (Spectrum(length=(2, 4)), strings),
    "plain spectrum": (Spectrum(length=2, width=float("inf")), strings),
    "sets": (Spectrum(similarity="tanimoto"), sets),
    "callable": (shared_letters, strings),
    "chi2": (ChiSquared(), histograms),
    "intersection": (Intersection(), histograms),
}
ESTIMATORS = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)
every_case = pytest.mark.parametrize("name", CASES)
every_item_case = pytest.mark.parametrize("name", [n for n in CASES if n not in ("chi2", "intersection")])


class TestContract:
    """What holds for every kernel beyond a table, in every classifier."""

    @every_case
    @pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)
    def test_fit_and_predict(self, name, estimator):
        kernel, make = CASES[name]
        X, y = make()
        model = estimator(kernel=kernel, random_state=0, n_jobs=1).fit(X, y)
        new, labels = make(seed=1)
        proba = model.predict_proba(new)
        assert proba.shape == (30, 3)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_array_equal(model.predict(new), model.classes_[proba.argmax(axis=1)])
        assert (model.predict(new) == labels).mean() > 0.6
        assert model.loo_proba_.shape == (30, 3)
        again = pickle.loads(pickle.dumps(model)).predict_proba(new)
        np.testing.assert_allclose(again, proba, atol=1e-9)
        np.testing.assert_allclose(clone(model).fit(X, y).predict_proba(new), proba, atol=1e-9)

    @every_case
    def test_a_copy_of_a_row_is_a_weight(self, name):
        kernel, make = CASES[name]
        X, y = make()
        settings = {"kernel": kernel, "width": 1.5, "ridge": 0.01, "scaling": None, "random_state": 0, "n_jobs": 1}
        twice = LSPC(**settings).fit([*X, X[4], X[7]], np.append(y, y[[4, 7]]))
        weight = np.ones(30)
        weight[[4, 7]] = 2
        weighted = LSPC(**settings).fit(X, y, weight)
        np.testing.assert_allclose(twice.predict_proba(X), weighted.predict_proba(X), atol=1e-8)

    @every_case
    def test_matrix_of_itself(self, name):
        kernel, make = CASES[name]
        kernel = kproba.kernels.as_kernels(kernel)[0].with_width(1.2)
        X, _ = make()
        rows = kernel.read(X)
        rows = X if rows is None else rows
        kernel = kernel.prepared(rows)
        K = kernel(rows, rows)
        np.testing.assert_allclose(K, K.T, atol=1e-10)
        np.testing.assert_allclose(kernel(rows[3:7], rows[[1, 5]]), K[3:7][:, [1, 5]], atol=1e-10)
        np.testing.assert_allclose(kernel.gram(rows), K, atol=1e-10)
        np.testing.assert_allclose(kernel.evaluator(rows[:4])(rows[2:9]), K[2:9, :4], atol=1e-10)

    @every_item_case
    def test_cross_validation_of_lists(self, name):
        kernel, make = CASES[name]
        X, y = make()
        model = LSPC(kernel=kernel, ridge=0.01, width=2.0, n_jobs=1, random_state=0)
        scores = cross_val_score(model, X, y, cv=3, scoring="neg_log_loss")
        assert scores.shape == (3,)
        assert np.isfinite(scores).all()
        assert cross_val_predict(model, X, y, cv=3, method="predict_proba").shape == (30, 3)
        search = GridSearchCV(make_pipeline(FunctionTransformer(), model), {"lspc__ridge": [0.1, 0.01]}, cv=2)
        assert search.fit(X, y).score(X, y) > 0.8

    @every_item_case
    @pytest.mark.parametrize("centers", [8, "class", ("class", 4), "all"])
    def test_centers(self, name, centers):
        kernel, make = CASES[name]
        X, y = make()
        model = LSPC(kernel=kernel, centers=centers, n_jobs=1, random_state=0).fit(X, y)
        assert (model.predict(X) == y).mean() > 0.6

    @every_item_case
    def test_given_centers(self, name):
        kernel, make = CASES[name]
        X, y = make()
        for estimator in (LSPC(kernel=kernel, ridge=0.01), SurfaceKernelClassifier(kernel=kernel)):
            model = estimator.set_params(centers=X[:9], width=2.0, n_jobs=1, random_state=0).fit(X, y)
            assert len(model.basis_.centers) == 9
            assert (model.predict(X) == y).mean() > 0.6

    @every_item_case
    def test_refusals(self, name):
        kernel, make = CASES[name]
        X, y = make()
        model = LSPC(kernel=kernel, ridge=0.01, width=2.0)
        with pytest.raises(ValueError, match=r"0 sample|no sequences|array=\[\]"):
            model.fit([], [])
        with pytest.raises(ValueError, match="30 rows but y has 29"):
            model.fit(X, y[:-1])
        with pytest.raises(TypeError, match="partial_fit"):
            model.partial_fit(X, y, classes=[0, 1, 2])
        with pytest.raises(ValueError, match="averages rows"):
            SurfaceKernelClassifier(kernel=kernel, centers="k-means", width=2.0).fit(X, y)
        if make is not sequences:
            with pytest.raises(ValueError, match="scaling='standard'"):
                LSPC(kernel=kernel, scaling="standard").fit(X, y)


class TestHiddenMarkov:
    @pytest.mark.parametrize("covariance_type", COVARIANCES)
    def test_likelihoods_equal_the_library(self, covariance_type):
        X = Sequences.of(sequences(12, d=3)[0])
        spec = hidden_markov.Spec(3, covariance_type, 0.2, 2.0)
        models, own = hidden_markov.fit_models(X, spec)
        found = log_likelihoods(X, models)
        for j in range(len(X)):
            model = GaussianHMM(3, covariance_type=covariance_type)
            model.startprob_, model.transmat_, model.means_ = models.start[j], models.transition[j], models.mean[j]
            model.n_features = 3
            model.covars_ = hidden_markov._as_hmmlearn(models.covariance[j], covariance_type)
            np.testing.assert_allclose(found[:, j], [model.score(x) for x in X], rtol=0, atol=1e-8)
        np.testing.assert_allclose(np.diagonal(found) / X.lengths, own, atol=1e-8)

    def test_likelihoods_equal_the_textbook(self):
        rng = np.random.default_rng(0)
        start, transition = rng.dirichlet(np.ones(3), 4), rng.dirichlet(np.ones(3), (4, 3))
        mean, variance = rng.normal(size=(4, 3, 2)), rng.uniform(0.1, 2.0, (4, 3, 2))
        X = Sequences.of([rng.normal(size=(T, 2)) for T in (1, 7, 3, 12)])
        expected = [[hmm_log_likelihood(x, *parts) for parts in zip(start, transition, mean, variance)] for x in X]
        models = Models(start, transition, mean, variance)
        for workers in (1, 2):
            np.testing.assert_allclose(log_likelihoods(X, models, workers), expected, atol=1e-10)

    def test_far_from_the_origin(self):
        X, _ = sequences(6)
        kernel = HiddenMarkovKernel(2, width=1.0)
        near, far = kernel.pairs(X, X), kernel.pairs([x + 1e6 for x in X], [x + 1e6 for x in X])
        np.testing.assert_allclose(far, near, rtol=1e-6, atol=1e-6)

    def test_underflow_falls_back_on_logarithms(self):
        """A left-right model whose only reachable state is much the worst at a frame."""
        mean, variance = np.array([[[0.0], [100.0]]]), np.full((1, 2, 1), 1e-2)
        models = Models(np.array([[1.0, 0.0]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]), mean, variance)
        x = np.array([[0.0], [100.0], [0.0]])
        expected = -0.5 * (100.0**2 / 1e-2) - 1.5 * np.log(2 * np.pi * 1e-2)
        np.testing.assert_allclose(Forward(models)(Sequences(x, [3])), [[expected]], rtol=1e-12)

    def test_distance_is_the_formula(self):
        X, _ = sequences(8)
        rows = Sequences.of(X)
        kernel = HiddenMarkovKernel(n_states=2, width=3.0)
        D = kernel.pairs(rows, rows)
        models = kernel._comparisons(rows).models(rows)
        L = log_likelihoods(rows, models) / rows.lengths[:, None]
        own = np.diagonal(L)
        expected = 0.5 * ((own[:, None] - L) + (own[:, None] - L).T)
        np.testing.assert_allclose(D, np.maximum(expected, 0.0), atol=1e-9)
        np.testing.assert_allclose(kernel(rows, rows), np.exp(-D / 18.0), atol=1e-12)
        apart = kernel.pairs(X, [x.copy() for x in X[:3]])  # of two collections
        np.testing.assert_allclose(apart, D[:, :3], atol=1e-9)

    def test_models_are_fitted_once(self, monkeypatch):
        X, y = sequences(20)
        fitted = []
        fit = hidden_markov._fitted
        monkeypatch.setattr(hidden_markov, "_fitted", lambda frames, spec: fitted.append(1) or fit(frames, spec))
        rows = Sequences.of(X)
        LSPC(kernel=HiddenMarkovKernel(2), n_jobs=1, random_state=0, scaling=None).fit(rows, y)
        assert len(fitted) == 20
        met = []
        meet = sequence.log_likelihoods
        monkeypatch.setattr(sequence, "log_likelihoods", lambda X, Z, w: met.append(len(X) * len(Z)) or meet(X, Z, w))
        cross_val_score(LSPC(kernel=HiddenMarkovKernel(2), n_jobs=1, scaling=None), rows, y, cv=2)
        assert len(fitted) == 20
        assert not met  # the first fit met all with all; models find their centres in the same table
        copy = pickle.loads(pickle.dumps(LSPC(kernel=HiddenMarkovKernel(2), n_jobs=1, scaling=None).fit(rows, y)))
        np.testing.assert_allclose(copy.predict_proba(rows), copy.predict_proba(X), atol=1e-9)

    def test_stacked_frames_equal_a_list(self):
        X, y = sequences()
        stacked = Sequences(np.concatenate(X), [len(x) for x in X])
        settings = {"kernel": HiddenMarkovKernel(2), "width": 2.0, "ridge": 0.01, "n_jobs": 1}
        a, b = (LSPC(**settings).fit(rows, y).predict_proba(rows) for rows in (X, stacked))
        np.testing.assert_array_equal(a, b)

    def test_three_dimensional_array(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(20, 8, 2)) + 2 * (np.arange(20) % 2)[:, None, None], np.arange(20) % 2
        assert LSPC(kernel="hidden-markov", n_jobs=1).fit(X, y).score(X, y) == 1.0

    def test_units_of_coefficients_do_not_matter(self):
        X, y = sequences()
        model = LSPC(kernel=HiddenMarkovKernel(2), width=2.0, ridge=0.01, n_jobs=1)
        moved = [x * [1e3, 1e-3] + 5.0 for x in X]
        np.testing.assert_allclose(
            model.fit(moved, y).predict_proba(moved), model.fit(X, y).predict_proba(X), atol=1e-5
        )

    def test_degenerate_fits_fall_back_and_say_so(self, monkeypatch):
        X, y = sequences(12)
        fit = hidden_markov._fitted
        monkeypatch.setattr(hidden_markov, "_fitted", lambda x, spec: None if len(x) < 10 else fit(x, spec))
        short = sum(len(x) < 10 for x in X)
        with pytest.warns(DegenerateModelWarning, match=f"of {short} of 12 sequences.*single Gaussian"):
            model = LSPC(kernel=HiddenMarkovKernel(2), width=2.0, ridge=0.01, n_jobs=1).fit(X, y)
        assert np.isfinite(model.loo_proba_).all()

    def test_a_constant_sequence(self):
        X, y = sequences()
        X[0] = np.ones((9, 2))
        assert np.isfinite(LSPC(kernel=HiddenMarkovKernel(2), n_jobs=1).fit(X, y).loo_proba_).all()

    def test_without_the_library(self, monkeypatch):
        X, y = sequences()
        monkeypatch.setitem(__import__("sys").modules, "hmmlearn.hmm", None)
        with pytest.raises(ImportError, match=r"kproba\[sequences\]"):
            LSPC(kernel=HiddenMarkovKernel(2), n_jobs=1).fit(X, y)

    def test_progress(self, capsys):
        X, y = sequences()
        LSPC(kernel=HiddenMarkovKernel(2), n_jobs=1, verbose=1).fit(X, y)
        assert "hidden Markov models" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X: [*X[:3], np.empty((0, 2))], "sequence 3 is empty"),
            (lambda X: [*X[:3], X[3][:1]], r"sequence 3 has 1 frame.*n_states=2 needs at least 2"),
            (lambda X: [*X[:3], np.ones((5, 3))], "sequence 3 has 3 coefficients per frame and sequence 0 has 2"),
            (lambda X: [*X[:3], np.array([[1.0, 2.0], [np.nan, 1.0]])], "NaN: sequence 3, frame 1"),
            (lambda X: [*X[:3], np.array([[1.0, np.inf], [0.0, 1.0]])], "infinity: sequence 3, frame 0"),
            (lambda X: [*X[:3], np.ones(5)], "sequence 3 is 1-D.*reshape"),
            (lambda X: X[0], "single array of shape.*list of 2-D arrays"),
        ],
    )
    def test_bad_sequences(self, change, message):
        X, _ = sequences()
        X = change(X[:4])
        with pytest.raises(ValueError, match=message):
            LSPC(kernel=HiddenMarkovKernel(2)).fit(X, [0, 1, 0, 1][: len(X)])

    def test_more_states_than_frames(self):
        X, y = sequences()
        with pytest.raises(ValueError, match=r"has 6 frame.*n_states=9 needs at least 9; use fewer states"):
            LSPC(kernel=HiddenMarkovKernel(9)).fit(X, y)

    def test_other_coefficients_in_predict(self):
        X, y = sequences()
        model = LSPC(kernel=HiddenMarkovKernel(2), width=2.0, ridge=0.1, n_jobs=1).fit(X, y)
        assert model.n_features_in_ == 2
        with pytest.raises(ValueError, match=r"3 coefficients per frame.*expecting 2"):
            model.predict(sequences(d=3)[0])

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"n_states": 0}, r"n_states must be an int in the range \[1, inf\), got 0"),
            ({"n_states": 2.5}, r"n_states must be an int in the range \[1, inf\), got 2.5"),
            ({"covariance_type": "round"}, "covariance_type must be one of 'diag', .*, got 'round'"),
            ({"width": -1.0}, "width=-1"),
            ({"prior_variance": 0.0}, "prior_variance=0"),
            ({"prior_frames": "many"}, "prior_frames='many'"),
        ],
    )
    def test_bad_parameters(self, settings, message):
        with pytest.raises(ValueError, match=message):
            HiddenMarkovKernel(**settings)

    @pytest.mark.parametrize(
        ("frames", "lengths", "message"),
        [
            (np.ones(4), [4], "frames has shape"),
            (np.ones((4, 2)), [1.5, 2.5], "lengths"),
            (np.ones((4, 2)), [2, 3], "add up to 5, but frames has 4"),
            (np.ones((4, 2)), [4, 0], "sequence 1 is empty"),
            (np.array([["a"]]), [1], "frames has shape"),
        ],
    )
    def test_bad_stacked_frames(self, frames, lengths, message):
        with pytest.raises(ValueError, match=message):
            Sequences(frames, lengths)


class TestSequenceFeatures:
    def test_equals_a_double_loop(self):
        X, _ = sequences(5)
        found = SequenceFeatures(reach=2).transform(X)
        for x, got in zip(X, found):
            centred = x - x.mean(axis=0)
            at = [centred[np.clip(np.arange(len(x)) + j, 0, len(x) - 1)] for j in (-2, -1, 1, 2)]
            np.testing.assert_allclose(
                got, np.hstack([centred, (2 * at[3] + at[2] - at[1] - 2 * at[0]) / 10]), atol=1e-12
            )
        plain = SequenceFeatures(center=False, slopes=False).transform(X)
        np.testing.assert_array_equal(plain.frames, np.concatenate(X))

    def test_in_a_pipeline_a_constant_does_not_matter(self):
        X, y = sequences()
        model = make_pipeline(SequenceFeatures(), LSPC(kernel=HiddenMarkovKernel(2), width=2.0, ridge=0.01, n_jobs=1))
        model.fit(X, y)
        moved = [x + shift for x, shift in zip(X, np.random.default_rng(0).normal(scale=5.0, size=(30, 1, 2)))]
        np.testing.assert_allclose(model.predict_proba(moved), model.predict_proba(X), atol=1e-7)
        np.testing.assert_allclose(clone(model).fit(X, y).predict_proba(X), model.predict_proba(X))

    def test_bad_reach(self):
        with pytest.raises(ValueError, match=r"reach must be an int in the range \[1, inf\), got 0"):
            SequenceFeatures(reach=0).fit([])


class TestItems:
    def test_views_share_what_is_known(self):
        rows = Sequences.of(sequences()[0])
        part = rows[[3, 1]]
        assert part.memory is rows.memory
        assert part[1:].places.tolist() == [1]
        np.testing.assert_array_equal(part[0], rows[3])
        np.testing.assert_array_equal(part.frames, np.concatenate([rows[3], rows[1]]))
        np.testing.assert_array_equal(rows[np.arange(30) < 2, ...].lengths, rows.lengths[:2])

    def test_a_pickled_view_leaves_the_others_behind(self):
        rows = Sequences.of(sequences(300)[0])
        kernel = HiddenMarkovKernel(2, width=1.0)
        D = kernel.pairs(rows[:5], rows[:5])
        data = pickle.dumps(rows[:5])
        assert len(data) < len(pickle.dumps(rows)) / 10
        np.testing.assert_allclose(kernel.pairs(pickle.loads(data), rows[:5]), D, atol=1e-9)

    def test_keys(self):
        X, _ = sequences(6)
        keys = row_keys(Sequences.of([*X, X[2], X[2][::-1], np.vstack([X[2], X[2][-1:]])]))
        assert keys[6] == keys[2]
        assert len(np.unique(keys)) == 8
        texts = row_keys(Items(["a", "b", "a", {"a"}, {"a"}, 3.0]))
        assert texts[0] == texts[2]
        assert texts[3] == texts[4]
        assert len(np.unique(texts)) == 4

    def test_lists_need_a_kernel(self):
        for X in (["a", "b"], sequences(2)[0], [{1}, {2}]):
            with pytest.raises((ValueError, TypeError), match=r"needs a kernel.*'hidden-markov'.*'spectrum'"):
                LSPC().fit(X, [0, 1])

    def test_a_frame_is_no_list(self):
        with pytest.raises(TypeError, match=r"X is a frame.*X\['text'\]"):
            LSPC(kernel="spectrum").fit(pd.DataFrame({"text": ["a", "b"]}), [0, 1])
        series = pd.Series(["ab", "bc"] * 6, index=np.arange(12)[::-1])
        assert LSPC(kernel="spectrum").fit(series, [0, 1] * 6).predict(series[:2]).tolist() == [0, 1]

    def test_solvers_that_need_numbers(self):
        X, y = strings()
        with pytest.raises(ValueError, match="solver='cg' needs numeric rows"):
            LSPC(kernel="spectrum", solver="cg", centers="all").fit(X, y)

    @pytest.mark.parametrize("weights", [None, np.linspace(0.5, 3.0, 60)], ids=["equal", "weighted"])
    @pytest.mark.parametrize("ridge", [0.01, 1e-9], ids=["float32", "float64"])
    def test_packed_square(self, weights, ridge, monkeypatch):
        """Many rows as centres share one square of memory with their factor."""
        X, y = strings(60)
        settings = {"kernel": Spectrum(), "width": 1.0, "ridge": ridge, "centers": "all", "link": "none", "n_jobs": 2}
        dense = LSPC(**settings).fit(X, y, weights)
        monkeypatch.setattr(kproba.problems.least_squares, "DENSE_CENTERS", 10)
        monkeypatch.setattr(kproba.solvers.packed_dual, "BLOCK_BYTES", 8 * 60 * 7)  # several blocks on threads
        found = LSPC(**settings).fit(X, y, weights)
        np.testing.assert_allclose(found._scores(X), dense._scores(X), atol=1e-4)

    def test_says_what_it_is(self):
        X, _ = sequences()
        assert repr(Sequences.of(X)) == "<30 sequences of 6 to 14 frames, 2 coefficients each>"
        assert repr(Items("abc")) == "<3 items>"

    def test_a_model_of_a_table_refuses_items(self):
        X, y = histograms()
        with pytest.raises((TypeError, ValueError)):
            LSPC(ridge=0.1, width=1.0).fit(X, y).predict(["a", "b"])

    def test_callables_still_take_tables(self):
        X, y = histograms()
        seen = []
        LSPC(kernel=lambda A, B: seen.append(type(A)) or A @ B.T, ridge=0.1).fit(X, y)
        assert set(seen) == {np.ndarray}
        with pytest.raises(ValueError, match="2D array"):
            LSPC(kernel=lambda A, B: A @ B.T).fit(np.ones(30), y)

    def test_callables_take_lists_of_anything(self):
        X = [{"size": i % 5, "kind": "ab"[i % 2]} for i in range(20)]

        def alike(A, B):
            return np.array([[(a["kind"] == b["kind"]) + 0.1 * (a == b) for b in B] for a in A])

        model = LSPC(kernel=alike, n_jobs=1).fit(X, [x["kind"] for x in X])
        assert model.score(X, [x["kind"] for x in X]) == 1.0
        assert not hasattr(model, "n_features_in_")


class TestSpectrum:
    def test_equals_the_oracle(self):
        X, _ = strings()
        plain = Spectrum(length=3, width=float("inf"))(X[:9], X[9:])
        np.testing.assert_allclose(plain, [[spectrum(x, z, 3) for z in X[9:]] for x in X[:9]], atol=1e-12)
        np.testing.assert_allclose(Spectrum(3, width=0.7)(X[:9], X[9:]), np.exp(-(1 - plain) / 0.49), atol=1e-12)

    def test_positions(self):
        kernel = Spectrum(length=1, width=float("inf"), positions=True)
        np.testing.assert_allclose(kernel(["ACGT", "CATG"], ["ACGA"]), [[0.75], [0.0]], atol=1e-12)

    def test_sets_words_and_short_strings(self):
        plain = {"width": float("inf")}
        np.testing.assert_allclose(Spectrum(**plain)([{1, 2}, set()], [{2, 3}, set()]), [[0.5, 0], [0, 1]], atol=1e-12)
        words = Spectrum(length=1, **plain)([["to", "be"]], [["to", "go"], ("to", "be")])
        np.testing.assert_allclose(words, [[0.5, 1.0]], atol=1e-12)
        np.testing.assert_allclose(
            Spectrum(3, **plain)(["ab", ""], ["ab", "abc", ""]), [[1, 0, 0], [0, 0, 1]], atol=1e-12
        )

    @pytest.mark.parametrize("similarity", ["cosine", "tanimoto"])
    def test_is_positive_semi_definite(self, similarity):
        X, _ = strings(60)
        for width in (0.3, 2.0, float("inf")):
            assert np.linalg.eigvalsh(Spectrum(2, width, similarity).gram(Items(X)))[0] > -1e-10

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"length": 0}, "length must be .*, got 0"),
            ({"length": (4, 2)}, "length"),
            ({"similarity": "edit"}, "similarity must be .*, got 'edit'"),
        ],
    )
    def test_bad_parameters(self, settings, message):
        with pytest.raises(ValueError, match=message):
            Spectrum(**settings)

    def test_bad_items(self):
        with pytest.raises(TypeError, match="entry 1 is a float"):
            LSPC(kernel=Spectrum()).fit(["a", 1.5], [0, 1])
        with pytest.warns(kproba.FewRowsWarning, match="2 classes"):
            model = LSPC(kernel=Spectrum(), width=1.0, ridge=0.1).fit(["a", "b"], [0, 1])
        with pytest.raises(TypeError, match="X is a str"):
            model.predict("a")


class TestHistograms:
    def test_equal_the_formulas(self):
        X, _ = histograms()
        Z = X[:7]
        np.testing.assert_allclose(ChiSquared(0.8)(X, Z), np.exp(additive_chi2_kernel(X, Z) / (2 * 0.64)), atol=1e-12)
        np.testing.assert_allclose(Intersection()(X, Z), np.minimum(X[:, None], Z[None]).sum(axis=2), atol=1e-12)

    @pytest.mark.parametrize("kernel", [ChiSquared(0.8), Intersection()], ids=lambda k: k.name)
    def test_sparse_and_definite(self, kernel):
        X, _ = histograms(40)
        X[X < 0.1] = 0.0
        np.testing.assert_allclose(kernel(sparse.csr_array(X), sparse.csr_array(X[:5])), kernel(X, X[:5]), atol=1e-12)
        assert np.linalg.eigvalsh(kernel.gram(X))[0] > -1e-10

    @pytest.mark.parametrize("name", ["chi2", "intersection"])
    def test_negative_bins_and_scaling(self, name):
        X, y = histograms()
        with pytest.raises(ValueError, match=r"negative values \(smallest: -0.5\).*at least 0"):
            LSPC(kernel=name).fit(np.where(X > 1.0, -0.5, X), y)
        with pytest.raises(ValueError, match="scaling='robust'"):
            LSPC(kernel=name, scaling="robust").fit(X, y)
        assert LSPC(kernel=name).fit(X, y).scaling_ is None


class TestProjected:
    """exp(−D/2σ²) of what is no distance has negative eigenvalues."""

    def indefinite(self, n=20, seed=0):
        rng = np.random.default_rng(seed)
        D = rng.uniform(0.5, 2.0, (n, n))
        D = (D + D.T) / 2
        np.fill_diagonal(D, 0.0)
        rows = Items(range(n))

        class Rough(kproba.Kernel):
            name, is_definite, is_projected = "rough", False, True

            def read(self, X):
                return X

            def __call__(self, X, Z, workers=1):
                return np.exp(-D[np.ix_(list(X), list(Z))] / 2)

        return Rough(), rows

    def test_equals_the_oracle(self):
        kernel, rows = self.indefinite()
        known, new = rows[:15], rows[15:]
        K, k_new = kernel(known, known), kernel(new, known)
        assert np.linalg.eigvalsh(K)[0] < -0.01
        projected = project_indefinite(kernel, known)
        assert isinstance(projected, ProjectedKernel)
        expected, features = clipped(K, k_new)
        np.testing.assert_allclose(projected.gram(known), expected, atol=1e-10)
        np.testing.assert_allclose(projected(known, known), expected, atol=1e-10)
        np.testing.assert_allclose(projected(new, known), features, atol=1e-10)
        np.testing.assert_allclose(projected.evaluator(known)(new), features, atol=1e-10)
        some = rows[3:8]
        np.testing.assert_allclose(projected(known, some), expected[:, 3:8], atol=1e-10)
        np.testing.assert_allclose(projected.gram(some), expected[3:8, 3:8], atol=1e-10)
        values = np.linalg.eigvalsh(K)
        assert projected.negative_share == pytest.approx(-values[values < 0].sum() / np.abs(values).sum())

    def test_a_definite_matrix_is_left_alone(self):
        X, _ = sequences(10)
        kernel = HiddenMarkovKernel(2, width=0.5)
        assert project_indefinite(kernel, Sequences.of(X)) is kernel
        assert project_indefinite(Intersection(), histograms()[0]) == Intersection()

    @pytest.mark.filterwarnings("default::kproba.IndefiniteKernelWarning")
    def test_lspc_equals_ridge_regression_on_the_projected_matrix(self):
        X, y = sequences(40)
        kernel = HiddenMarkovKernel(2, width=2.0, prior_variance=0.1, prior_frames=1.0)
        settings = {"kernel": kernel, "ridge": 0.01, "scaling": None, "link": "none"}
        with pytest.warns(
            IndefiniteKernelWarning, match=r"hidden Markov.*40 rows.*negative eigenvalues.*% of the spectrum"
        ):
            model = LSPC(**settings, loo=True, n_jobs=1).fit(X, y)
        assert model.negative_share_ > 0.01
        new = sequences(9, seed=1)[0]
        K, k_new = clipped(kernel(X, X), kernel(new, X))
        theta = ridge_solution(K, np.eye(3)[y], np.ones(40), K, 0.01)
        scores = k_new @ theta
        np.testing.assert_allclose(model._scores(new), scores, atol=1e-6)
        assert model.kernel_ == kernel

    @pytest.mark.filterwarnings("error::kproba.IndefiniteKernelWarning")
    def test_nothing_is_said_where_nothing_was_done(self):
        X, y = sequences(20)
        LSPC(kernel=HiddenMarkovKernel(2), width=0.5, ridge=0.01, n_jobs=1).fit(X, y)
        model = LSPC(kernel=HiddenMarkovKernel(2), width=6.0, ridge=0.01, penalty="parameters", n_jobs=1).fit(X, y)
        assert not hasattr(model, "negative_share_")


class TestAlignment:
    def test_equals_the_library(self):
        from tslearn.metrics import cdist_gak

        X, _ = sequences(6)
        np.testing.assert_allclose(
            GlobalAlignment(1.0, sigma=3.0)(X, X[:2]), cdist_gak(X, X[:2], sigma=3.0), atol=1e-12
        )
        squared = GlobalAlignment(np.sqrt(0.5), sigma=3.0)(X, X[:2])
        np.testing.assert_allclose(squared, cdist_gak(X, X[:2], sigma=3.0) ** 2, atol=1e-12)

    def test_too_long(self):
        x = np.zeros((800, 1))
        with pytest.raises(ValueError, match=r"800 and 800 frames.*subsample the frames"):
            GlobalAlignment(1.0, sigma=1.0)([x], [x + 1.0])

    def test_without_the_library(self, monkeypatch):
        X, y = sequences()
        monkeypatch.setitem(__import__("sys").modules, "tslearn.metrics", None)
        with pytest.raises(ImportError, match=r"kproba\[alignment\]"):
            LSPC(kernel="alignment").fit(X, y)


class TestPrecomputed:
    def test_not_symmetric(self):
        X, y = histograms()
        K = Intersection()(X, X)
        K[3, 5] += 0.1
        with pytest.raises(ValueError, match=r"not symmetric: X\[3, 5\] = .*X\[5, 3\] = .*\(X \+ X.T\)/2"):
            LSPC(kernel="precomputed").fit(K, y)
