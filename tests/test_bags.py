"""Bags of descriptors and descriptors of pictures."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_parameters_default_constructible

from kproba import LSPC, BagOfFeatures, PictureDescriptors, Sequences, messages
from kproba.features import bags
from oracles import bag_of_features


def some_items(n=30, d=3, seed=0, dtype=np.float64):
    """Items of 0 to 11 descriptors around three places; where they lie depends on the class."""
    random = np.random.default_rng(seed)
    places, labels = random.normal(scale=4.0, size=(3, d)), np.arange(n) % 2
    shares = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    sizes = 3 + np.arange(n) % 9
    sizes[n // 2] = 0
    items = [places[random.choice(3, m, p=shares[y])] + random.normal(size=(m, d)) for m, y in zip(sizes, labels)]
    return [item.astype(dtype) for item in items], labels


ITEMS, LABELS = some_items()


def bag(n_words=6, **options):
    return BagOfFeatures(n_words, **{"random_state": 0, **options})


def quick_lspc():
    return LSPC(kernel="gaussian", width="median", ridge=0.01, scaling=None)


class TestCounts:
    @pytest.mark.parametrize("assignment, k", [("hard", 1), ("soft", 5), ("soft", 2), ("soft", 50)])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_equal_to_the_oracle(self, assignment, k, dtype):
        items, _ = some_items(dtype=dtype)
        model = bag(assignment=assignment, n_neighbors=k, normalize="none").fit(items)
        assert model.words_.dtype == dtype
        expected = bag_of_features(items, model.words_, k, model.spread_)
        np.testing.assert_allclose(model.transform(items), expected, atol=1e-9 if dtype == np.float64 else 1e-4)

    def test_scaled_columns(self):
        units = np.array([1.0, 100.0, 1e-3])
        model = bag(scaling="standard", normalize="none").fit([item * units for item in ITEMS])
        scale = np.concatenate([item * units for item in ITEMS]).std(axis=0)
        expected = bag_of_features([item * units / scale for item in ITEMS], model.words_ / scale, 5, model.spread_)
        np.testing.assert_allclose(model.transform([item * units for item in ITEMS]), expected, atol=1e-9)
        np.testing.assert_allclose(  # units do not matter then; without scaling they do
            bag(scaling="standard").fit_transform([item * units for item in ITEMS]),
            bag(scaling="standard").fit_transform(ITEMS),
            atol=1e-6,
        )

    @pytest.mark.parametrize("constant", [7.0, 0.1, 1e5 / 3])
    def test_a_constant_column_does_no_harm(self, constant):
        items = [np.column_stack([item, np.full(len(item), constant)]) for item in ITEMS]
        np.testing.assert_allclose(
            bag(scaling="standard").fit_transform(items), bag(scaling="standard").fit_transform(ITEMS), atol=1e-9
        )

    @pytest.mark.parametrize("assignment, k", [("hard", 1), ("soft", 5)])
    def test_far_from_the_origin(self, assignment, k):
        far = [item + 1e7 for item in ITEMS]
        model = bag(assignment=assignment, normalize="none").fit(far)
        np.testing.assert_allclose(
            model.transform(far), bag_of_features(far, model.words_, k, model.spread_), atol=1e-6
        )

    def test_spread_is_the_median_distance_to_the_nearest_word(self):
        model, stacked = bag().fit(ITEMS), np.concatenate(ITEMS)
        nearest = np.sqrt(np.square(stacked[:, None] - model.words_).sum(axis=2)).min(axis=1)
        assert np.isclose(model.spread_, np.median(nearest))

    def test_normalizations(self):
        counts = bag(normalize="none").fit_transform(ITEMS)
        filled = np.array([len(item) > 0 for item in ITEMS])
        np.testing.assert_allclose(counts.sum(axis=1), [len(item) for item in ITEMS])
        shares = bag(normalize="l1").fit_transform(ITEMS)
        np.testing.assert_allclose(shares.sum(axis=1), filled)
        np.testing.assert_allclose(bag(normalize="hellinger").fit_transform(ITEMS), np.sqrt(shares))
        lengths = np.linalg.norm(bag(normalize="l2").fit_transform(ITEMS), axis=1)
        np.testing.assert_allclose(lengths, filled)

    def test_items_without_descriptors_are_zero(self):
        model = bag().fit(ITEMS)
        for empty in ([], np.empty((0, 3)), np.empty((0, 0))):
            histogram = model.transform([empty, ITEMS[0]])
            assert not histogram[0].any() and histogram[1].any()
        assert not model.transform([np.empty((0, 3))]).any()

    def test_blocks_do_not_matter(self, monkeypatch):
        model = bag().fit(ITEMS)
        whole = model.transform(ITEMS)
        for size in (1, 100, 1000):
            monkeypatch.setattr(bags, "BLOCK_BYTES", size)
            np.testing.assert_allclose(model.transform(ITEMS), whole, atol=1e-12)

    @pytest.mark.parametrize("assignment", ["hard", "soft"])
    @pytest.mark.parametrize("unit", [1.0, 0.1, 1e100])
    def test_as_many_words_as_descriptors(self, assignment, unit):
        """Every descriptor is a word, the spread is zero but for rounding, and each counts for itself."""
        items = [np.array([[0.0], [unit]]), np.array([[2 * unit], [5 * unit]])]
        model = bag(4, assignment=assignment, normalize="none").fit(items)
        assert model.spread_ < 1e-15 * unit
        histograms = model.transform(items)
        assert (np.sort(histograms, axis=1) == [[0, 0, 1, 1], [0, 0, 1, 1]]).all()

    def test_one_word(self):
        np.testing.assert_allclose(bag(1, normalize="l1").fit_transform([[[1.0]], [[2.0], [3.0]]]), [[1.0], [1.0]])


class TestWords:
    @pytest.mark.parametrize("pairs", [0, 10**9], ids=["batches", "full"])
    def test_same_seed_same_words(self, monkeypatch, pairs):
        monkeypatch.setattr(bags, "FULL_PAIRS", pairs)
        first, second = (bag().fit(ITEMS) for _ in range(2))
        assert np.array_equal(first.words_, second.words_)
        found = np.sort(bag(3).fit(ITEMS).words_, axis=0)
        places = np.sort(np.random.default_rng(0).normal(scale=4.0, size=(3, 3)), axis=0)
        np.testing.assert_allclose(found, places, atol=1.0)

    def test_a_sample_makes_the_words(self):
        random = np.random.default_rng(0)
        items = [random.normal(size=(50, 2)) for _ in range(20)]
        model = bag(4, max_descriptors=4).fit(items)
        stacked = np.concatenate(items)
        assert all(np.isclose(word, stacked).all(axis=1).any() for word in model.words_)
        other = bag(4, max_descriptors=4, random_state=1).fit(items)
        assert not np.array_equal(model.words_, other.words_)

    def test_small_integers_and_booleans_stay_small(self):
        items = [np.random.default_rng(0).integers(0, 2, size=(9, 8)).astype(dtype) for dtype in (bool, np.uint8)]
        assert bag(2).fit(items).words_.dtype == np.float32


class TestForms:
    @pytest.mark.parametrize(
        "form",
        [
            tuple,
            lambda items: [item.tolist() for item in items],
            lambda items: pd.Series(items, index=np.arange(len(items))[::-1]),
        ],
        ids=["tuple", "lists", "series"],
    )
    def test_same_from_every_form(self, form):
        np.testing.assert_allclose(bag().fit(form(ITEMS)).transform(form(ITEMS)), bag().fit(ITEMS).transform(ITEMS))

    def test_array_of_three_dimensions(self):
        X = np.random.default_rng(0).normal(size=(8, 5, 3))
        np.testing.assert_array_equal(bag().fit_transform(X), bag().fit_transform(list(X)))

    def test_frames(self):
        model = bag().set_output(transform="pandas").fit(ITEMS)
        frame = model.transform(ITEMS)
        assert isinstance(frame, pd.DataFrame)
        assert frame.columns.tolist() == [f"word{j}" for j in range(6)] == model.get_feature_names_out().tolist()

    def test_same_from_sequences(self):
        items = [item for item in ITEMS if len(item)]
        stacked = Sequences(np.concatenate(items), [len(item) for item in items])
        np.testing.assert_array_equal(bag().fit_transform(stacked), bag().fit_transform(items))


class TestConventions:
    @pytest.mark.parametrize("model", [BagOfFeatures(7, assignment="hard"), PictureDescriptors("sift", step=3)])
    def test_parameters(self, model):
        check_parameters_default_constructible(type(model).__name__, model)
        assert clone(model).get_params() == model.get_params()
        assert type(model)().set_params(**model.get_params()).get_params() == model.get_params()

    def test_fit_changes_no_parameter_and_no_input(self):
        model, before = bag(), [item.copy() for item in ITEMS]
        params = model.get_params()
        assert model.fit(ITEMS, LABELS) is model and model.get_params() == params
        model.transform(ITEMS)
        assert all(np.array_equal(a, b) for a, b in zip(ITEMS, before))

    def test_pickle(self):
        model = bag().fit(ITEMS)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(ITEMS), model.transform(ITEMS))

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            bag().transform(ITEMS)
        with pytest.raises(NotFittedError):
            bag().get_feature_names_out()

    def test_folds_and_grids_over_lists(self):
        items, labels = some_items(60)
        model = make_pipeline(bag(), quick_lspc())
        assert cross_val_score(model, items, labels, cv=3).mean() > 0.7
        search = GridSearchCV(model, {"bagoffeatures__n_words": [1, 6]}, cv=3).fit(items, labels)
        assert search.best_params_ == {"bagoffeatures__n_words": 6}


class TestRefused:
    @pytest.mark.parametrize(
        "options, message",
        [
            ({"n_words": 0}, r"n_words must be an int in the range \[1, inf\), got 0"),
            ({"n_words": 2.5}, r"n_words must be an int in the range \[1, inf\), got 2.5"),
            ({"n_neighbors": 0}, r"n_neighbors must be an int in the range \[1, inf\), got 0"),
            ({"max_descriptors": 5}, "max_descriptors=5 must be at least n_words=6"),
            ({"assignment": "none"}, "assignment must be one of 'soft', 'hard'.*, got 'none'"),
            ({"normalize": None}, "normalize must be .*, got None"),
            ({"scaling": "robust"}, "scaling must be .*, got 'robust'"),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            bag(**options).fit(ITEMS)

    @pytest.mark.parametrize(
        "change, message",
        [
            (lambda items: [], "X is empty"),
            (lambda items: [*items, np.zeros(3)], r"X\[30\] has 1 dimension"),
            (lambda items: [*items, np.zeros((2, 2, 2))], r"X\[30\] has 3 dimension"),
            (lambda items: np.concatenate(items), r"X\[0\] has 1 dimension"),
            (lambda items: [*items, [[1.0, 2.0, 3.0], [1.0]]], r"X\[30\] has rows of different lengths"),
            (lambda items: [*items, np.zeros((2, 4))], r"X\[30\] has descriptors with 4 columns, but .* 3"),
            (lambda items: [*items, [[1.0, np.nan, 0.0]]], r"X\[30\] contains NaN"),
            (lambda items: [*items, [[1.0, np.inf, 0.0]]], r"X\[30\] contains NaN, inf"),
        ],
    )
    def test_items(self, change, message):
        with pytest.raises(ValueError, match=message):
            bag().fit(change(ITEMS))
        with pytest.raises(ValueError, match=message):
            bag().fit(ITEMS).transform(change(ITEMS))

    @pytest.mark.parametrize("X, message", [(iter(ITEMS), "with list"), ("abc", "X is a str"), (3, "X is a int")])
    def test_what_is_no_list(self, X, message):
        with pytest.raises(TypeError, match=message):
            bag().fit(X)

    def test_text_in_items(self):
        with pytest.raises(TypeError, match=r"X\[1\] has dtype <U1"):
            bag().fit([ITEMS[0], [["a", "b", "c"]]])

    def test_bad_values_are_found_whatever_is_drawn(self):
        items = [*[np.random.default_rng(0).normal(size=(20, 2)) for _ in range(20)], np.array([[np.nan, 0.0]])]
        with pytest.raises(ValueError, match=r"X\[20\] contains NaN"):
            bag(2, max_descriptors=2).fit(items)

    def test_too_large_for_the_words(self):
        model = bag().fit(some_items(dtype=np.float32)[0])
        with pytest.raises(ValueError, match=r"X\[0\] contains .* too large for float32"):
            model.transform([np.full((1, 3), 1e300)])
        with pytest.raises(ValueError, match=r"X\[0\] contains .* too large for float64"):
            bag().fit([np.full((1, 3), 1e160), *ITEMS])

    def test_too_few_distinct_descriptors(self):
        items = [np.repeat(np.eye(3), 5, axis=0)] * 4
        with pytest.raises(ValueError, match=r"X has 3 distinct descriptors \(60 in all.* n_words=6"):
            bag().fit(items)
        with pytest.raises(ValueError, match="but no descriptors"):
            bag().fit([np.empty((0, 3))] * 4)
        with pytest.raises(ValueError, match=r"X\[0\] has descriptors with no columns"):
            bag().fit([np.empty((4, 0))] * 4)


def striped(side=(48, 64), angle=0.0, period=6.0):
    y, x = np.mgrid[: side[0], : side[1]]
    return 0.5 + 0.4 * np.sin(2 * np.pi * (x * np.cos(angle) + y * np.sin(angle)) / period)


class TestPictures:
    def test_kinds_of_pictures_agree(self):
        gray = (255 * striped()).astype(np.uint8)
        colour = np.stack([gray] * 3, axis=2)
        opaque = np.concatenate([colour, np.full((*gray.shape, 1), 255, dtype=np.uint8)], axis=2)
        forms = [
            gray,
            gray / 255.0,
            np.float32(gray / 255.0),
            gray[..., None],
            colour,
            opaque,
            gray.astype(np.uint16) * 257,
        ]
        first, *others = PictureDescriptors().fit_transform(forms)
        assert first.shape == (48, 104) and first.dtype == np.float32
        for other in others:
            np.testing.assert_allclose(other, first, atol=2e-3)

    def test_files(self, tmp_path):
        from skimage import io

        gray = (255 * striped()).astype(np.uint8)
        io.imsave(tmp_path / "a.png", gray, check_contrast=False)
        paths = [tmp_path / "a.png", str(tmp_path / "a.png")]
        for found in PictureDescriptors().transform(paths):
            np.testing.assert_array_equal(found, PictureDescriptors().transform([gray])[0])

    def test_daisy_is_scikit_image_s(self):
        from skimage.feature import daisy

        grid = daisy(np.float32(striped()), step=5, radius=9, rings=2, histograms=6, orientations=8)
        found = PictureDescriptors(step=5, radius=9).transform([striped()])[0]
        np.testing.assert_allclose(found, np.sqrt(grid.reshape(-1, 104)), atol=1e-5)
        np.testing.assert_allclose(np.square(found).sum(axis=1), 1.0, atol=1e-5)

    def test_sift(self):
        random = np.random.default_rng(0)
        busy, flat = random.random((64, 64)), np.full((64, 64), 0.5)
        some, none = PictureDescriptors("sift").transform([busy, flat])
        assert some.shape[1] == 128 and len(some) > 5 and none.shape == (0, 128)
        np.testing.assert_allclose(np.square(some).sum(axis=1), 1.0, atol=1e-5)

    def test_small_and_large_pictures(self):
        small, large = PictureDescriptors(max_side=100).transform([np.zeros((3, 200)), striped((300, 400))])
        assert len(small) > 0 and len(large) == 14 * 10
        assert len(PictureDescriptors(max_side=None).transform([striped((100, 400))])[0]) > len(large)

    def test_processes(self):
        X = [striped(angle=a) for a in (0.0, 0.5, 1.0)]
        for one, two in zip(PictureDescriptors().transform(X), PictureDescriptors(n_jobs=2).transform(X)):
            np.testing.assert_array_equal(one, two)
        with pytest.raises(ValueError, match=r"X\[1\] has shape"):
            PictureDescriptors(n_jobs=2).transform([X[0], np.zeros(3)])

    def test_progress(self, capsys):
        PictureDescriptors(verbose=1).transform([striped()] * 3)
        assert "PictureDescriptors: 100%" in capsys.readouterr().err

    def test_from_pictures_to_probabilities(self):
        random = np.random.default_rng(0)
        y = np.arange(40) % 2
        X = [striped((40 + i % 3, 48), angle=label + 0.1 * random.normal()) for i, label in enumerate(y)]
        X = [np.clip(x + 0.05 * random.normal(size=x.shape), 0, 1) for x in X]
        model = make_pipeline(PictureDescriptors(), BagOfFeatures(10, random_state=0), quick_lspc())
        assert cross_val_score(model, X, y, cv=2).mean() > 0.9
        model.set_output(transform="pandas").fit(X, y)
        assert model.predict_proba(X).shape == (40, 2)
        pickle.loads(pickle.dumps(model)).predict(X[:1])

    @pytest.mark.parametrize(
        "picture, message",
        [
            (np.zeros(5), r"X\[1\] has shape \(5,\)"),
            (np.zeros((5, 5, 2)), r"X\[1\] has shape \(5, 5, 2\)"),
            (np.zeros((0, 5)), r"X\[1\] has shape \(0, 5\)"),
            (np.full((30, 30), 200.0), r"X\[1\] has floats from 200 to 200; they must be between 0 and 1"),
            (np.full((30, 30), np.nan), r"X\[1\] has floats from nan"),
            ("there/is/none.png", r"X\[1\]: the file 'there/is/none.png' could not be read"),
        ],
    )
    def test_refused_pictures(self, picture, message):
        with pytest.raises(ValueError, match=message):
            PictureDescriptors().transform([striped(), picture])

    def test_wide_integers_are_refused(self):
        with pytest.raises(TypeError, match=r"X\[0\] has dtype int64; use uint8"):
            PictureDescriptors().transform([np.zeros((30, 30), dtype=np.int64)])

    @pytest.mark.parametrize("X", [np.zeros((30, 30)), np.zeros((30, 30, 3)), "a.png"], ids=["gray", "colour", "path"])
    def test_one_picture_is_not_many(self, X):
        with pytest.raises(ValueError, match="X is a single image"):
            PictureDescriptors().transform(X)
        with pytest.raises(TypeError, match=r"list\(X\)"):
            PictureDescriptors().transform(iter([X]))

    @pytest.mark.parametrize("options", [{"method": "surf"}, {"step": 0}, {"radius": -1}, {"max_side": 0.5}])
    def test_options(self, options):
        with pytest.raises(ValueError, match=next(iter(options))):
            PictureDescriptors(**options).fit([])

    def test_none_at_all(self):
        assert PictureDescriptors().transform([]) == []

    def test_without_scikit_image(self, monkeypatch):
        def refuse(name, *rest):
            raise ImportError(name)

        monkeypatch.setattr(messages, "import_module", refuse)
        with pytest.raises(ImportError, match=r"pip install 'kproba\[pictures\]'"):
            PictureDescriptors().transform([striped()])

    def test_kproba_does_not_import_scikit_image(self):
        code = "import sys, kproba; sys.exit('skimage' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
