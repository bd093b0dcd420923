"""Tables with categories and missing values: kernels, encoding, and whole fits against the brute-force kernel."""

import pickle
import tracemalloc
import warnings

import array_api_strict
import dask.dataframe as dd
import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.inspection import PartialDependenceDisplay
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

import kproba
from kproba import (
    LSPC,
    ImportVectorMachine,
    KernelLogisticRegression,
    SurfaceKernelClassifier,
    UnitsWarning,
    UnreadableWarning,
    UnseenWarning,
    explain,
    partial_dependence,
    to_onnx,
)
from kproba.arrays import Device
from kproba.data.mixed import UNSEEN, Category, MixedColumns, Number, as_text, cells_of
from kproba.data.text_numbers import style_of
from kproba.kernels import Additive, Gaussian, Laplacian, Learnt, Matern, Pairs
from kproba.search.learnt.device_sample import DeviceSample
from kproba.search.learnt.parameters import Layout
from kproba.search.learnt.sample import Sample
from oracles import kernel_ridge, learnt_kernel, mixed_kernel, one_hot, shapley_by_subsets

CLASSIFIERS = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)
LEARNT = Learnt((1.0, 0.5, 0.3, 0.7), (1.0, 2.0, 0.5), (0.4, 0.3, 0.2, 0.1))
KERNELS = (
    *(kind(width=1.3) for kind in (Laplacian, Gaussian, Additive, Pairs)),
    *(Matern(width=1.3, nu=nu) for nu in (0.5, 1.5, 2.5)),
    LEARNT,
)
DEVICE = Device.of(array_api_strict.asarray([0.0]))
#: fitted in milliseconds, with nothing to choose
QUICK = {"kernel": "laplacian", "width": 2.0, "ridge": 1e-3, "scaling": None}


def quick(**changes):
    return LSPC(**{**QUICK, **changes})


def frame_of(n=120, seed=0, gaps=0.15):
    """Numbers, strings, booleans and a categorical column, with gaps in the first two, and a class."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=n).round(2),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n).astype(object),
            "member": rng.random(n) < 0.5,
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n)),
            "visits": rng.integers(0, 6, n),
        }
    )
    y = np.where((frame.city == "Rome") ^ (frame.age > 0.3), "yes", "no")
    frame.loc[rng.random(n) < gaps, "age"] = np.nan
    frame.loc[rng.random(n) < gaps, "city"] = None
    return frame, y


class TestKernels:
    """Codes are equal or different; nothing else counts."""

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    @pytest.mark.parametrize("codes", [(1, 3), (0,), (0, 1, 2, 3)], ids=str)
    def test_equal_to_indicators(self, kernel, codes):
        """A code column with Δ ∈ {0, 1} is |Δ| = Δ² of a number column with values 0 and 1."""
        rng = np.random.default_rng(0)
        X, Z = rng.integers(0, 2, (9, 4)).astype(float), rng.integers(0, 2, (7, 4)).astype(float)
        relabelled = [part.copy() for part in (X, Z)]
        for part in relabelled:
            part[:, list(codes)] = np.where(part[:, list(codes)] > 0, 17.0, -1.0)
        of_codes = kernel.for_codes(codes)
        np.testing.assert_allclose(of_codes(*relabelled), kernel(X, Z), atol=1e-12)
        np.testing.assert_allclose(of_codes.gram(relabelled[0]), kernel.gram(X), atol=1e-12)
        there = of_codes.on_device(DEVICE, *map(DEVICE.put, relabelled))
        np.testing.assert_allclose(DEVICE.get(there), kernel(X, Z), atol=1e-12)

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_by_column(self, kernel):
        rng = np.random.default_rng(1)
        X, Z = rng.normal(size=(5, 4)), rng.normal(size=(6, 4))
        X[:, 2], Z[:, 2] = rng.integers(0, 4, 5), rng.integers(0, 4, 6)
        kernel = kernel.for_codes((2,))
        if isinstance(kernel, Matern):
            return
        total = 0.0
        for term in kernel.by_column(4):
            e = np.array([term.of_column(j, X[:, j, None], Z[None, :, j]) for j in range(4)])
            sums = {"product": e.prod(axis=0), "sum": e.sum(axis=0), "pairs": e.sum(axis=0) ** 2 - (e**2).sum(axis=0)}
            total = total + term.amplitude * sums[term.combine]
        np.testing.assert_allclose(total, kernel(X, Z), atol=1e-12)

    def test_learnt_against_the_oracle(self):
        rng = np.random.default_rng(2)
        X = np.column_stack([rng.normal(size=(8, 3)), rng.integers(0, 3, 8)])
        parts = LEARNT.weights, LEARNT.widths, LEARNT.mixture
        same = X[:, None, 3] == X[None, :, 3]
        apart = [np.column_stack([X[:, :3], np.full(8, value)]) for value in (0.0, 1.0)]
        expected = np.where(same, learnt_kernel(apart[0], apart[0], *parts), learnt_kernel(apart[0], apart[1], *parts))
        np.testing.assert_allclose(LEARNT.for_codes((3,))(X, X), expected, atol=1e-12)

    def test_positive_definite(self):
        frame, _ = frame_of(60)
        X = MixedColumns.of(frame, "from_dtype")
        Z = X(frame)
        for kernel in KERNELS[:-1]:
            assert np.linalg.eigvalsh(kernel.for_codes(X.categorical).gram(Z)).min() > -1e-10

    def test_median_width(self):
        X = np.array([[0.0, 5.0], [2.0, 9.0], [4.0, 5.0]])
        assert Additive(categorical=(1,)).median_width(X) == 1.5  # medians 2 and 1

    @pytest.mark.parametrize("kernel", ["linear", "polynomial", "chi2", "intersection"])
    def test_kernels_that_cannot(self, kernel):
        frame, y = frame_of(40)
        with pytest.raises(ValueError, match="cannot compare categories; use kernel='auto'"):
            LSPC(kernel=kernel, width=1.0, ridge=1e-2).fit(frame.assign(age=1.0), y)

    def test_a_sample_has_the_same_values_and_slopes(self):
        """The learning of the kernel sees codes as the kernel does."""
        rng = np.random.default_rng(3)
        X = np.column_stack([rng.normal(size=(12, 2)), rng.integers(0, 3, 12)]).astype(np.float32)
        Y, weight, layout = one_hot(np.arange(12) % 2, 2), np.ones(12), Layout(3, 2, (2,))
        x = layout.start(X, 1.0)
        part, R = layout.split(x), rng.normal(size=(12, 2))
        sample = Sample(12, layout)
        sample.load(X, Y, weight, None)
        scores = sample.scores(part)
        G = layout.kernel(np.round(32 * x) / 32).gram(X.astype(float)) + np.eye(12) * layout.noise(x)
        inverse = np.linalg.inv(G)
        np.testing.assert_allclose(scores, Y - inverse @ Y / np.diag(inverse)[:, None], atol=0.02)
        there = DEVICE.put(R)
        device = DeviceSample(DEVICE, layout, lambda part, s, Y, share: (DEVICE.xp.sum(s * there), there, {}))
        device.load(X, Y, weight)
        loss, slopes_there = device(x)
        assert loss == pytest.approx((R * scores).sum(), abs=1e-3)
        slopes = sample.gradient(part, R)
        np.testing.assert_allclose(slopes["weights"], slopes_there[:3], atol=1e-3)
        step = np.zeros(len(x))
        step[2] = 1e-3
        up, down = (sample.scores(layout.split(x + sign * step)) for sign in (1, -1))
        assert np.sum(R * (up - down)) / 2e-3 == pytest.approx(slopes["weights"][2], abs=0.02)


cells = st.one_of(st.none(), st.floats(-3, 3).map(lambda x: round(x, 1)))
levels = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "d"]))


@st.composite
def tables(draw, least=8):
    """Two columns of numbers and two of categories, with gaps in all of them, and two classes."""
    n = draw(st.integers(least, 14))
    columns = [draw(st.lists(kind, min_size=n, max_size=n)) for kind in (cells, cells, levels, levels)]
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return list(zip(*columns)), np.array([0, 1, 0, 1, *y[4:]])


def as_frame(rows):
    frame = pd.DataFrame(rows, columns=["x", "y", "u", "v"])
    return frame.astype({"x": float, "y": float, "u": object, "v": object})


def centers_of(rows):
    numbers = [[value for value in column if value is not None] for column in list(zip(*rows))[:2]]
    return [sorted(there)[(len(there) - 1) // 2] if there else 0.0 for there in numbers] + [None, None]


class TestOracle:
    """A whole fit with a given kernel, width and ridge is kernel ridge regression with the brute-force kernel."""

    @given(tables(), tables(least=8))
    def test_scores(self, table, others):
        (rows, y), (new, _) = table, others
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setattr("kproba.data.mixed.FEWEST_ROWS", 1)
            model = quick(centers="all", link="none", loo=True).fit(as_frame(rows), y)
            found = model._scores(as_frame(new))
        seen = [{row[j] for row in rows} for j in range(4)]
        new = [[*r[:2], *(r[j] if r[j] in seen[j] else f"unseen {i} {j}" for j in (2, 3))] for i, r in enumerate(new)]
        centers, marked = centers_of(rows), [None in seen[j] for j in range(2)]
        fill = lambda r: [c if not m and v is None else v for v, c, m in zip(r, centers, (*marked, True, True))]  # noqa: E731
        K, K_new = mixed_kernel(rows, rows, 2.0, centers), mixed_kernel(list(map(fill, new)), rows, 2.0, centers)
        expected, _ = kernel_ridge(K, K_new, one_hot(y, 2), np.ones(len(y)), 1e-3)
        np.testing.assert_allclose(found, expected, atol=1e-6)

    @given(tables(), st.permutations("abcd"), st.randoms())
    def test_names_and_order_do_not_matter(self, table, names, random):
        """Other names, categories in another order, an unused category, rows in another order: the same model."""
        rows, y = table
        frame = as_frame(rows)
        renamed = frame.assign(u=frame.u.map(dict(zip("abcd", names))))
        order = [*names, "never"]
        categories = frame.astype({name: pd.CategoricalDtype(order) for name in "uv"})
        rest = list(range(len(y)))
        random.shuffle(rest)
        expected = quick().fit(frame, y).predict_proba(frame)
        for other in (renamed, categories):
            np.testing.assert_allclose(quick().fit(other, y).predict_proba(other), expected, atol=1e-7)
        shuffled = quick().fit(frame.iloc[rest], y[rest])
        np.testing.assert_allclose(shuffled.predict_proba(frame), expected, atol=1e-6)

    def test_a_column_without_values_changes_nothing(self):
        frame, y = frame_of(60)
        expected = quick().fit(frame, y).predict_proba(frame)
        for empty in (np.nan, None, pd.array([pd.NA] * 60, dtype="Int64")):
            wider = frame.assign(empty=empty, one="same")
            np.testing.assert_allclose(quick().fit(wider, y).predict_proba(wider), expected, atol=1e-9)

    def test_explanations_against_all_subsets(self):
        frame, y = frame_of(40)
        frame = frame[["age", "city", "visits"]]
        model = quick(width=1.0).fit(frame, y)
        background, row = frame[:6], frame[30:31]
        found = explain(model, row, background=background, absent="joint", output="scores")
        of = lambda rows: model._scores(pd.DataFrame(rows, columns=frame.columns).infer_objects())  # noqa: E731
        expected, _ = shapley_by_subsets(of, row.to_numpy(object)[0], background.to_numpy(object))
        np.testing.assert_allclose(found.values[0], expected, atol=1e-8)
        assert found.feature_names == ("age", "city", "visits")


class TestEncoding:
    """What a model remembers of each column."""

    def test_layout(self):
        frame, _ = frame_of()
        columns = MixedColumns.of(frame, "from_dtype")
        assert columns.categorical == (2, 3, 4)
        assert columns.origins == (0, 0, 1, 2, 3, 4)
        X = columns(frame)
        np.testing.assert_array_equal(X[:, 1], frame.age.isna())
        np.testing.assert_array_equal(X[frame.age.isna(), 0], columns.columns[0].center)
        again = columns.decoded(X)
        assert again[:, 1].tolist() == [None if pd.isna(city) else city for city in frame.city]
        np.testing.assert_array_equal(again[:, 0].astype(float), frame.age)
        marked = MixedColumns.of(frame, "from_dtype", marks_levels=True)
        assert marked.origins == (0, 0, 1, 1, 1, 1, 2, 3, 3, 3, 4)  # a column per level, but not for two
        assert marked.categorical == (6,)
        assert marked.decoded(marked(frame)).astype(str).tolist() == again.astype(str).tolist()
        new = marked(frame[:1].assign(city="Paris"))
        assert not new[0, 2:6].any() and marked.decoded(new)[0, 1] == "(unseen)"

    def test_rare_levels_share_a_code(self):
        column = pd.DataFrame({"a": ["x"] * 5 + ["y"] * 3 + ["p", "q", "q", None]})
        found = MixedColumns.of(column, "from_dtype")
        assert found.columns[0] == Category(("x", "y"), ("p", "q"))
        np.testing.assert_array_equal(found(column)[:, 0], [0] * 5 + [1] * 3 + [2, 2, 2, 3])
        np.testing.assert_array_equal(found(pd.DataFrame({"a": ["new", np.nan, "q"]}))[:, 0], [-1, 3, 2])
        assert found.decoded(np.array([[2.0], [3.0], [-1.0], [0.0]])).ravel().tolist() == [
            "(rare)",
            None,
            "(unseen)",
            "x",
        ]

    @pytest.mark.parametrize(
        "form",
        [
            lambda f: f.assign(city=f.city.astype("category"), member=f.member.astype(object)),
            lambda f: f.assign(
                city=f.city.astype("string"), member=f.member.astype("boolean"), age=f.age.astype("Float64")
            ),
            lambda f: f.assign(city=f.city.map(lambda c: c, na_action="ignore").where(f.city.notna(), pd.NA)),
            lambda f: f.assign(size=pd.Categorical(f["size"], ["M", "L", "S", "XL"])),
            lambda f: f.assign(size=f["size"].astype(str), visits=f.visits.astype("Int64")),
            lambda f: f.assign(visits=f.visits.astype(str)),
            lambda f: pl.from_pandas(f),
            lambda f: pl.from_pandas(f).with_columns(
                pl.col("city").cast(pl.Categorical), pl.col("size").cast(pl.Enum(["L", "M", "S"]))
            ),
            lambda f: f.astype(object),
            lambda f: f.astype(object).to_numpy(),
        ],
    )
    def test_the_same_table_in_other_types(self, form):
        """At predict time, and in the fit itself."""
        frame, y = frame_of(60)
        model = quick().fit(frame, y)
        other, expected = form(frame), model.predict_proba(frame)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an array has no column names
            np.testing.assert_allclose(model.predict_proba(other), expected, atol=1e-12)
            np.testing.assert_allclose(quick().fit(other, y).predict_proba(other), expected, atol=1e-9)

    @pytest.mark.parametrize("strays", [["unknown"], ["unknown", "no idea", 7.5], ["?", "", "N/A"]], ids=str)
    def test_a_number_column_with_a_stray_word(self, strays):
        frame, y = frame_of(120)
        frame["pulse"] = np.random.default_rng(0).normal(70, 9, 120).round(1).astype(object)
        frame.loc[: len(strays) - 1, "pulse"] = strays
        words = [word for word in strays if word in ("unknown", "no idea")]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = quick().fit(frame, y)
        assert [each.category for each in told] == [UnreadableWarning] * bool(words)
        assert all("column 'pulse': " in str(each.message) and words[0] in str(each.message) for each in told)
        assert isinstance(model.columns_.columns[5], Number)
        plain = frame.assign(pulse=pd.to_numeric(frame.pulse, errors="coerce"))
        np.testing.assert_allclose(model.predict_proba(plain), quick().fit(plain, y).predict_proba(plain), atol=1e-12)

    def test_many_words_are_categories(self):
        codes = np.random.default_rng(0).choice(["100", "200", "20X"], 60)
        found = MixedColumns.of(pd.DataFrame({"code": codes}), "from_dtype")
        assert found.columns == (Category(("100", "200", "20X")),)
        assert style_of({"1": 18, "x": 1}) is None and style_of({"1": 19, "x": 1}).words == ("x",)

    def test_numbers_as_people_write_them(self):
        frame = pd.DataFrame(
            {"price": ["€ 1.200,50", "3,5", "-", None] * 3, "share": ["7 %", "1,234.5", "−2", "?"] * 3}
        )
        found = MixedColumns.of(frame, "from_dtype")
        np.testing.assert_array_equal(found(frame)[:4, ::2], [[1200.5, 7], [3.5, 1234.5], [3.5, -2], [3.5, 7]])

    def test_new_rows_that_cannot_be_read(self):
        frame, y = frame_of(60)
        model = quick().fit(frame, y)
        with pytest.warns(UnreadableWarning, match="column 'age'.*such as 'young'"):
            model.predict(frame.assign(age="young"))

    def test_choice_of_columns(self):
        frame, y = frame_of(60)
        for choice in (["visits", "city", "size", "member"], [1, 2, 3, 4], np.array([False, True, True, True, True])):
            assert quick(categorical_features=choice).fit(frame, y).columns_.categorical == (2, 3, 4, 5)
        X = frame[["age", "visits"]].to_numpy()
        model = quick(categorical_features=[1]).fit(X, y)
        assert model.columns_.categorical == (2,)
        assert quick(categorical_features=None).fit(X, y).columns_.categorical == ()

    @pytest.mark.parametrize(
        "choice, message",
        [
            ("from_type", "did you mean 'from_dtype'"),
            (["town"], "X has no column 'town'"),
            ([7], "has the entry 7, but X has the columns 0 to 4"),
            ([True, False], "a mask of 2 columns, but X has 5"),
            ([[1]], r"array of shape \(1, 1\)"),
            (None, "the column 'city' of X holds values that are not numbers, such as .*categorical_features"),
            ([2], "the column 'city' of X holds values that are not numbers"),
        ],
    )
    def test_bad_choices(self, choice, message):
        frame, y = frame_of(40)
        with pytest.raises(ValueError, match=message):
            quick(categorical_features=choice).fit(frame, y)

    def test_names_need_a_frame(self):
        with pytest.raises(ValueError, match="names the column 'a', but X has no column names"):
            quick(categorical_features=["a"]).fit(np.eye(4), [0, 1, 0, 1])

    def test_large_whole_numbers_are_different_categories(self):
        """float64 cannot tell these apart."""
        one, two = 2**53, 2**53 + 1
        assert [as_text(v) for v in (one, two, np.int64(two), np.uint64(2**64 - 1))] == [
            *map(str, (one, two, two, 2**64 - 1))
        ]

    def test_whole_numbers_with_decimals_are_the_same_level(self):
        """Files have 3.0 where a column of integers has gaps; 007.0 and 3.10 are no such numbers."""
        numbers = Category.of(cells_of("a", pd.Series([1.0, 2.0, -3.0, 0.0, 10.0] * 3)))
        texts = pd.Series(["1.0", "2.00", "-3.0", "-0.0", "10.0"] * 3, dtype=object)
        assert Category.of(cells_of("a", texts)) == numbers
        assert list(map(numbers.code, texts[:5])) == list(map(numbers.code, ["1", "2", "-3", "0", "10"]))
        odd = ("007.0", "1.10", "a.0", ".0", "1.", f"{10**20}.0")
        assert Category.of(cells_of("a", pd.Series(odd * 3, dtype=object))).levels == tuple(sorted(odd))
        assert set(map(numbers.code, odd)) == {UNSEEN}

    def test_levels_of_older_models_have_decimals(self):
        old = Category(("1.0", "2", "2.0", "007.0", "a.0"))
        assert [old.code(text) for text in ("1", "1.0", "2", "2.0", "007", "a")] == [0, 0, 1, 2, UNSEEN, UNSEEN]

    def test_texts(self):
        assert [as_text(v) for v in (np.float32(2), np.int8(3), 2.5, np.True_, pd.Interval(0, 1))] == [
            *("2", "3", "2.5", "True", "(0, 1]")
        ]

    def test_memory(self):
        """Many levels: no more than the frame takes, twice."""
        words = np.resize([f"level number {i}" for i in range(10_000)], 50_000).astype(object)
        for kind in ("str", object):
            frame = pd.DataFrame({"a": pd.Series(words, dtype=kind), "x": 1.5})
            MixedColumns.of(frame[:50], "from_dtype")(frame[:50])  # imports
            tracemalloc.start()
            MixedColumns.of(frame, "from_dtype")(frame)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 2.1 * frame.memory_usage(deep=True).sum()


@pytest.mark.parametrize("as_column", [np.array, pd.Series], ids=["array", "series"])
@settings(max_examples=20, deadline=None)
@given(st.permutations([1, True, 0, False, "1", "True", 0.0, 2.5, None, "x"]))
def test_mixed_types_in_any_order(as_column, values):
    """Equal objects of several types are the level that their text says, whichever comes first."""
    column = as_column([value for value in values for _ in range(3)], dtype=object)
    frame = pd.DataFrame({"a": column})
    columns = MixedColumns.of(frame, "from_dtype")
    assert columns.columns[0].levels == ("0", "1", "2.5", "False", "True", "x")
    for rows in (frame, frame.to_numpy()):
        texts = [None if value is None else as_text(value) for value in frame["a"].tolist()]
        assert columns.decoded(columns(rows))[:, 0].tolist() == texts
    np.testing.assert_array_equal(np.concatenate([columns(frame[:13]), columns(frame[13:])]), columns(frame))


class TestEstimators:
    @pytest.mark.parametrize("make", CLASSIFIERS)
    @pytest.mark.filterwarnings("ignore::kproba.ConvergenceWarning")
    def test_learns_from_everything(self, make):
        """The class follows from a category and a number; the kernel is learnt."""
        frame, y = frame_of(240, gaps=0.05)
        options = {"max_points": 15} if make is ImportVectorMachine else {}
        model = make(**options, random_state=0).fit(frame[:160], y[:160])
        assert model.score(frame[160:], y[160:]) > 0.8
        assert model.feature_importances_.shape == (5,)
        assert model.fold_importances_.shape[1] == 5
        np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)
        assert set(model.feature_importances_.argsort()[-2:]) == {0, 1}
        assert model.oof_proba_.shape == (160, 2)
        assert model.n_features_in_ == 5 and list(model.feature_names_in_) == list(frame.columns)
        assert model.centers_.shape[1] == 5 and set(model.centers_[:, 1]) <= {"Bern", "Oslo", "Rome", None}
        explained = explain(model, frame[:4])
        assert explained.values.shape == (4, 5, 2)
        assert explained.data[:, 2].tolist() == frame.member[:4].tolist()

    @pytest.mark.parametrize("make", CLASSIFIERS)
    def test_new_rows(self, make):
        """Unseen levels and gaps anywhere are predicted; a whole column of unseen levels is worth a warning."""
        frame, y = frame_of(80)
        options = {"kernel": "gaussian", "width": 1.0}
        model = make(**options, random_state=0).fit(frame, y)
        model.predict_proba(frame[:4].assign(city="Paris"))  # too few for a warning
        with pytest.warns(UnseenWarning, match="column 'city': 80 of the 80 values, such as 'Paris'"):
            paris = model.predict_proba(frame.assign(city="Paris"))
        with pytest.warns(UnseenWarning):
            np.testing.assert_array_equal(model.predict_proba(frame.assign(city="Rio")), paris)
        with pytest.warns(
            UnseenWarning, match="missing values in the column 'visits', where the training rows had none"
        ):
            found = model.predict_proba(frame.assign(visits=np.nan))
        np.testing.assert_allclose(found, model.predict_proba(frame.assign(visits=model.columns_.columns[4].center)))

    def test_more_than_half_of_the_rows_have_unseen_levels(self):
        frame, y = frame_of(80)
        model = quick().fit(frame, y)
        city = frame.city.fillna("Rome").to_numpy(object)
        model.predict(frame.assign(city=np.where(np.arange(80) < 40, "Paris", city)))
        with pytest.warns(UnseenWarning, match="column 'city': 41 of the 80 values, such as 'Paris', did not occur"):
            model.predict(frame.assign(city=np.where(np.arange(80) < 41, "Paris", city)))

    def test_gaps_only_in_new_rows(self):
        X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
        model = quick().fit(X, y)
        new = X[:5].copy()
        new[2, 1] = np.nan
        with pytest.warns(UnseenWarning, match="missing values in the column 1, where"):
            found = model.predict_proba(new)
        new[2, 1] = np.quantile(X[:, 1], 0.5, method="lower")
        np.testing.assert_allclose(found, model.predict_proba(new))

    def test_plain_tables_are_untouched(self):
        """No codes, no further columns; a fit of numbers after one of a mixed table forgets it."""
        frame, y = frame_of(60)
        model = quick().fit(frame, y)
        X = np.random.default_rng(0).normal(size=(60, 3))
        fitted = model.fit(X, y)
        assert fitted.columns_ is None and fitted.centers_.shape == (60, 3) and fitted.kernel_.categorical == ()
        np.testing.assert_array_equal(fitted.predict_proba(X), quick().fit(X, y).predict_proba(X))
        assert quick().fit(pd.DataFrame({"a": X[:, 0], "b": X[:, 0] > 0}), y).columns_ is None
        assert quick().fit(X.astype(object), y).columns_ is None

    def test_scaling_leaves_codes_alone(self):
        frame, y = frame_of(80)
        for scaling in ("robust", "quantile", "standard"):
            model = quick(scaling=scaling).fit(frame, y)
            codes = list(model.columns_.categorical)
            assert (model.scaling_.center[codes] == 0).all() and (model.scaling_.scale[codes] == 1).all()
            assert not model.scaling_.squashed[codes].any()

    def test_given_centres(self):
        frame, y = frame_of(60)
        some = frame[:7]
        model = quick(centers=some).fit(frame, y)
        assert len(model.centers_) == 7
        np.testing.assert_array_equal(model.centers_[:, 3], some["size"].astype(object))
        with pytest.raises(ValueError, match="it must have the 5 columns of X"):
            quick(centers=some[["age"]]).fit(frame, y)
        SurfaceKernelClassifier(kernel="laplacian", width=1.0, centers=some).fit(frame, y)
        with pytest.raises(ValueError, match="averages rows, which categories do not allow"):
            SurfaceKernelClassifier(kernel="laplacian", width=1.0, centers="k-means").fit(frame, y)

    def test_a_kernel_of_codes(self):
        """A user's kernel may name the code columns of a matrix."""
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.normal(size=80), rng.integers(0, 9, 80)])
        y = np.arange(80) % 2
        given = LSPC(kernel=Laplacian(width=1.0, categorical=(1,)), ridge=1e-3).fit(X, y)
        named = LSPC(kernel=Laplacian(width=1.0), ridge=1e-3, categorical_features=[1]).fit(X, y)
        seen = np.isin(X[:, 1], [float(level) for level in named.columns_.columns[1].levels])
        np.testing.assert_allclose(given.predict_proba(X[seen]), named.predict_proba(X[seen]), atol=0.2)
        assert given.scaling_.scale[1] == 1.0

    def test_partial_fit(self):
        frame, y = frame_of(120)
        model = quick(centers=frame[:30])
        for part in (slice(0, 60), slice(60, 120)):
            model.partial_fit(frame[part], y[part], classes=["no", "yes"])
        whole = quick(centers=frame[:30]).fit(frame, y)
        np.testing.assert_allclose(model._scores(frame), whole._scores(frame), atol=0.05)

    def test_dask(self, monkeypatch):
        """Partitions are encoded where they are; a sample shows the columns."""
        frame, y = frame_of(200)
        X, labels = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
        few = quick().fit(X, labels)
        assert list(few.feature_names_in_) == list(frame.columns) and few.columns_.categorical == (2, 3, 4)
        expected = quick().fit(frame, y)
        np.testing.assert_allclose(few.predict_proba(X).compute(), expected.predict_proba(frame), atol=1e-6)
        assert few.predict(X).compute().tolist() == few.predict(frame).tolist()
        monkeypatch.setattr("kproba.estimators._reading.sample_size", lambda d: 60)
        many = quick(centers=40, random_state=0).fit(X, labels)
        assert many._is_summed_up and many.score(X, labels) > 0.6

    def test_many_rows_in_memory(self, monkeypatch):
        """Beyond the size of a sample, rows are summed up."""
        monkeypatch.setattr("kproba.estimators._reading.sample_size", lambda d: 100)
        frame, y = frame_of(400)
        model = quick(centers=40, random_state=0).fit(frame, y)
        assert model._is_summed_up and model.n_features_in_ == 5
        in_memory = quick(centers=frame[:40]).fit(frame[:99], y[:99])
        assert abs(model.score(frame, y) - in_memory.score(frame, y)) < 0.15

    def test_weights_of_zero(self):
        frame, y = frame_of(60)
        weight = np.where(np.arange(60) < 5, 0.0, 1.0)
        model = quick(loo=True).fit(frame, y, weight)
        np.testing.assert_allclose(model.loo_proba_[:5], model.predict_proba(frame[:5]))

    def test_units(self):
        frame, y = frame_of(80)
        with pytest.warns(UnitsWarning, match="the column 'visits'"):
            quick().fit(frame.assign(visits=frame.visits * 1e4), y)

    def test_tags(self):
        tags = get_tags(LSPC()).input_tags
        assert tags.allow_nan and tags.categorical and tags.string
        assert not get_tags(LSPC(kernel="precomputed")).input_tags.allow_nan

    def test_clone_and_pickle(self):
        frame, y = frame_of(60)
        model = clone(quick(categorical_features=["city", "size"], kernel="gaussian")).set_params(
            categorical_features="from_dtype"
        )
        again = pickle.loads(pickle.dumps(model.fit(frame, y)))
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))

    def test_partial_dependence(self):
        frame, y = frame_of(60)
        model = quick().fit(frame, y)
        found = partial_dependence(model, frame, ["city"], categorical_features=["city", "size"])
        assert found.grid_values[0].tolist() == ["Bern", "Oslo", "Rome"]
        expected = [model.predict_proba(frame.assign(city=city))[:, 1].mean() for city in ("Bern", "Oslo", "Rome")]
        np.testing.assert_allclose(found.average[0], expected)
        found = partial_dependence(model, frame, ["age"], grid_resolution=4)
        assert np.isfinite(found.grid_values[0]).all() and found.average.shape == (1, 4)

    def test_display(self):
        import matplotlib

        matplotlib.use("Agg")
        frame, y = frame_of(60, gaps=0.0)
        PartialDependenceDisplay.from_estimator(
            quick().fit(frame, y), frame, ["age", "city"], categorical_features=["city", "member", "size"]
        )


class TestFiles:
    @pytest.mark.parametrize("kernel", [*KERNELS[:4], "learnt"], ids=repr)
    def test_save_and_load(self, kernel, tmp_path):
        frame, y = frame_of(120)
        options = {"kernel": "auto"} if kernel == "learnt" else {"kernel": kernel, "ridge": 1e-3}
        model = LSPC(**options, random_state=0).fit(frame, y)
        kproba.save(model, tmp_path / "m.kproba")
        again = kproba.load(tmp_path / "m.kproba")
        assert again.columns_ == model.columns_ and again.kernel_ == model.kernel_
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda m: object.__setattr__(m.basis_.kernel, "categorical", (1, 9)),
            lambda m: object.__setattr__(m.basis_.kernel, "categorical", (2,)),
            lambda m: object.__setattr__(m.columns_.columns[1], "marked", (0, 1, 9)),
            lambda m: object.__setattr__(m.columns_.columns[1], "levels", ("b", "a")),
            lambda m: object.__setattr__(m.columns_.columns[1], "rare", ("Bern",)),
            lambda m: object.__setattr__(m.columns_.columns[0], "center", np.inf),
            lambda m: object.__setattr__(m.columns_.columns[0], "mark", ";"),
            lambda m: object.__setattr__(m.columns_, "columns", m.columns_.columns[:4]),
            lambda m: setattr(m, "columns_", "no"),
        ],
    )
    def test_spoiled_models_are_refused(self, spoil, tmp_path):
        frame, y = frame_of(60)
        model = quick().fit(frame, y)
        spoil(model)
        with pytest.raises(kproba.ModelFileError):
            kproba.save(model, tmp_path / "m.kproba")
            kproba.load(tmp_path / "m.kproba")

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_onnx(self, kernel):
        frame, y = frame_of(80)
        if isinstance(kernel, Learnt):
            kernel = Learnt((1.0, 0.5, 0.3, 0.7, 0.2, 0.9), kernel.widths, kernel.mixture)
        model = LSPC(kernel=kernel, ridge=1e-3).fit(frame, y)
        new = frame.assign(city=frame.city.where(frame.index % 9 > 0, "Paris"))
        graph = to_onnx(model, dtype="float64").SerializeToString()
        session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        feed = {name: new[[name]].astype(float).to_numpy() for name in ("age", "visits")}
        feed |= {name: new[[name]].astype(object).where(new[[name]].notna(), "") for name in ("city", "member", "size")}
        feed = {
            name: part if name in ("age", "visits") else part.astype(str).to_numpy(object)
            for name, part in feed.items()
        }
        label, proba = session.run(None, feed)
        np.testing.assert_allclose(proba, model.predict_proba(new), atol=1e-8)
        assert label.tolist() == model.predict(new).tolist()

    @pytest.mark.parametrize("form", ["frame", "array"])
    @pytest.mark.parametrize("n_levels", [[3], [3, 40]], ids=["few levels", "few and many levels"])
    def test_onnx_of_a_learnt_kernel(self, form, n_levels):
        """Levels that are few have columns of their own, but the graph still has one input for each given column."""
        rng = np.random.default_rng(0)
        words = {f"k{k}": [f"level {i}" for i in rng.integers(0, k, 300)] for k in n_levels}
        frame = pd.DataFrame({"u": rng.normal(size=300)} | words)
        y = ((frame.u > 0) ^ (frame["k3"] == "level 1")).astype(int)
        X = frame if form == "frame" else frame.to_numpy()
        named = "from_dtype" if form == "frame" else list(range(1, frame.shape[1]))
        model = LSPC(random_state=0, categorical_features=named)
        graph = to_onnx(model.fit(X, y), dtype="float64").SerializeToString()
        session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        names = [each.name for each in session.get_inputs()]
        assert len(names) == frame.shape[1]
        feed = {name: frame[[column]].to_numpy() for name, column in zip(names, frame)}
        np.testing.assert_allclose(session.run(None, feed)[1], model.predict_proba(X), atol=1e-8)

    def test_onnx_of_numbers_with_gaps(self):
        frame, y = frame_of(80)
        X = frame[["age", "visits"]].to_numpy()
        for model in (quick().fit(X, y), make_pipeline(FunctionTransformer(), quick()).fit(X, y)):
            session = onnxruntime.InferenceSession(
                to_onnx(model, dtype="float64").SerializeToString(), providers=["CPUExecutionProvider"]
            )
            np.testing.assert_allclose(session.run(None, {"X": X})[1], model.predict_proba(X), atol=1e-8)

    def test_onnx_of_a_pipeline_with_categories(self):
        frame, y = frame_of(60)
        codes = np.column_stack([frame.age.fillna(0), frame["size"].cat.codes])
        model = make_pipeline(FunctionTransformer(), quick(categorical_features=[1])).fit(codes, y)
        with pytest.raises(TypeError, match="classifier compares categories cannot be converted"):
            to_onnx(model)


@settings(max_examples=5)
@given(st.integers(0, 10**6))
def test_many_levels_do_not_break_anything(seed):
    """A column in which every row has a level of its own says nothing."""
    frame, y = frame_of(60, seed % 1000)
    model = quick().fit(frame.assign(id=[f"row {i}" for i in range(60)]), y)
    assert np.isfinite(model.predict_proba(frame.assign(id="row 7"))).all()
