"""Model files: what is saved comes back to the last bit, and no file runs code, writes, or fills the memory."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_classification, make_multilabel_classification
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import kproba
from kproba import (
    LSPC,
    BagOfFeatures,
    HiddenMarkovKernel,
    ImportVectorMachine,
    KernelLogisticRegression,
    ModelFileError,
    ModelFileWarning,
    Spectrum,
    SurfaceKernelClassifier,
)
from kproba.persist import archive
from kproba.persist.types import _listed_classes, class_tags

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"], dtype=object)
TAGGED, TAGS = make_multilabel_classification(80, 5, n_classes=3, random_state=0)
GIVEN = {"kernel": "gaussian", "width": 1.0, "ridge": 1e-2}


def there_and_back(model, folder):
    path = os.path.join(folder, "model.kproba")
    kproba.save(model, path)
    again = kproba.load(path)
    assert os.listdir(folder) == ["model.kproba"]
    kproba.save(again, path + "2")
    with open(path, "rb") as first, open(path + "2", "rb") as second:
        assert first.read() == second.read()  # nothing was lost, and equal models are equal files
    return again


def assert_same(a, b, rows):
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(a, name):
            one, two = getattr(a, name)(rows), getattr(b, name)(rows)
            one, two = (np.asarray(found.toarray() if sparse.issparse(found) else found) for found in (one, two))
            assert one.dtype == two.dtype and one.shape == two.shape
            assert one.tolist() == two.tolist() if one.dtype == object else one.tobytes() == two.tobytes()


# ---------------------------------------------------------------- round trips

ON_TABLES = {
    "lspc": LSPC(random_state=0),
    "lspc class-wise": LSPC(**GIVEN, centers="class"),
    "lspc some of each class": LSPC(**GIVEN, centers=("class", 5)),
    "lspc given centres": LSPC(**GIVEN, centers=X[::7]),
    "lspc clip": LSPC(**GIVEN, link="clip", scaling="standard"),
    "lspc clip-parameters": LSPC(**GIVEN, link="clip-parameters"),
    "lspc without probabilities": LSPC(**GIVEN, link="none"),
    "lspc by folds": LSPC(kernel="laplacian", width=[1.0, 2.0], ridge=[0.1, 0.01], selection="cv", scaling=None),
    "lspc times median": LSPC(kernel="matern32", width=kproba.TimesMedian((0.5, 1.0)), ridge=0.1),
    "lspc polynomial": LSPC(kernel=kproba.Polynomial(degree=2), ridge=0.1),
    "lspc chi2": LSPC(kernel="chi2", ridge=0.1),
    "lspc class similarity": LSPC(**GIVEN, class_similarity=np.eye(3) + 0.1, class_weight={0: 1.0, 1: 2.0, 2: 1.0}),
    "lspc random state": LSPC(**GIVEN, centers=20, random_state=np.random.RandomState(1)),
    "klr": KernelLogisticRegression(**GIVEN),
    "ivm": ImportVectorMachine(kernel="gaussian", width=1.0, ridge=1e-3, random_state=0),
    "ivm path": ImportVectorMachine(kernel="gaussian", width=1.0, random_state=0),
    "surface": SurfaceKernelClassifier(width=1.0, kernel="gaussian", random_state=0),
}


@pytest.mark.parametrize("name", ON_TABLES)
def test_classifiers_come_back(name, tmp_path):
    model = clone(ON_TABLES[name]).fit(X, Y)
    again = there_and_back(model, tmp_path)
    assert type(again) is type(model) and set(vars(again)) == set(vars(model))
    assert_same(model, again, X)
    assert_same(model, again, X.astype(np.float32))


@pytest.mark.parametrize("labels", [NAMES[Y], NAMES[Y].astype(str), Y == 1, Y.astype(float)], ids=["O", "U", "b", "f"])
def test_classes_of_any_type(labels, tmp_path):
    model = LSPC(**GIVEN).fit(X, labels)
    again = there_and_back(model, tmp_path)
    assert again.classes_.dtype == model.classes_.dtype and again.classes_.tolist() == model.classes_.tolist()
    assert_same(model, again, X)


@pytest.mark.parametrize(
    "model",
    [
        LSPC(**GIVEN),
        LSPC(**GIVEN, link="clip"),
        KernelLogisticRegression(**GIVEN),
        ImportVectorMachine(kernel="gaussian", width=1.0, ridge=1e-2),
        SurfaceKernelClassifier(width=1.0, kernel="gaussian", random_state=0),
    ],
    ids=["lspc", "clip", "klr", "ivm", "surface"],
)
def test_tags(model, tmp_path):
    model = clone(model).fit(TAGGED, TAGS)
    assert_same(model, there_and_back(model, tmp_path), TAGGED)


def test_missing_tags(tmp_path):
    some = np.where(np.random.default_rng(0).random(TAGS.shape) < 0.2, np.nan, TAGS)
    for model in (LSPC(**GIVEN), LSPC(**GIVEN, link="clip-parameters"), LSPC(**GIVEN, link="none")):
        model.fit(TAGGED, some)
        assert_same(model, there_and_back(model, tmp_path), TAGGED)
        for file in tmp_path.iterdir():
            file.unlink()


def test_sparse_rows(tmp_path):
    rows = sparse.csr_array(np.where(np.abs(X) > 2, X, 0.0))
    model = LSPC(**GIVEN).fit(rows, Y)
    again = there_and_back(model, tmp_path)
    assert sparse.issparse(again.basis_.centers)
    assert_same(model, again, rows)


def test_precomputed(tmp_path):
    K = X @ X.T
    model = LSPC(kernel="precomputed", ridge=0.1, centers=30, random_state=0).fit(K, Y)
    assert_same(model, there_and_back(model, tmp_path), K)


def test_frames(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = LSPC(**GIVEN).fit(frame, Y)
    again = there_and_back(model, tmp_path)
    assert again.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert_same(model, again, frame)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a", "c", "d"]])


def sequences(rng, n=14):
    items = [rng.normal(0.4 * (i % 2), 1.0, (rng.integers(8, 14), 2)) for i in range(n)]
    return items, np.arange(n) % 2


@pytest.mark.filterwarnings("ignore::kproba.exceptions.KprobaWarning")
def test_sequences_with_a_projected_basis(tmp_path):
    pytest.importorskip("hmmlearn")
    items, y = sequences(np.random.default_rng(0))
    model = LSPC(kernel=HiddenMarkovKernel(n_states=2), width=10.0, ridge=1e-3).fit(items, y)
    assert type(model.basis_.kernel).__name__ == "ProjectedKernel"
    again = there_and_back(model, tmp_path)
    assert again.basis_.kernel.landmarks is again.basis_.centers  # the same object, on which the features depend
    assert again.negative_share_ == model.negative_share_
    assert_same(model, again, sequences(np.random.default_rng(1))[0])


def test_sequences_need_no_models_anew(tmp_path):
    pytest.importorskip("hmmlearn")
    items, y = sequences(np.random.default_rng(0))
    model = LSPC(kernel=HiddenMarkovKernel(n_states=1), width=2.0, ridge=0.1).fit(items, y)
    (known,) = there_and_back(model, tmp_path).basis_.centers.memory.entries.values()
    assert np.isfinite(known.own).all()


@pytest.mark.parametrize(
    "items",
    [["GATTACA", "GATTTCA", "CCCGGG", "CCCGTG", "", "é€😀"], [{"a", 1}, {"a"}, {2}, {2, "b"}, set(), {None}]],
    ids=["strings", "sets"],
)
@pytest.mark.parametrize("positions", [False, True])
def test_spectrum(items, positions, tmp_path):
    model = LSPC(kernel=Spectrum(length=(2, 3), positions=positions), ridge=0.1).fit(items, [0, 0, 1, 1, 0, 1])
    assert_same(model, there_and_back(model, tmp_path), [*items, *items[:2]])


def test_bags_of_features(tmp_path):
    rng = np.random.default_rng(0)
    items = [rng.normal(i % 2, 1.0, (20, 3)).astype(np.float32) for i in range(20)]
    model = make_pipeline(BagOfFeatures(n_words=8, random_state=0), LSPC(**GIVEN)).fit(items, np.arange(20) % 2)
    assert_same(model, there_and_back(model, tmp_path), items)


@pytest.mark.parametrize("kind", [LSPC, SurfaceKernelClassifier])
def test_partial_fit_goes_on(kind, tmp_path):
    rows, y = make_classification(300, 4, random_state=0)
    model = kind(kernel="gaussian", width=1.0, random_state=0)
    model.partial_fit(rows[:100], y[:100], classes=[0, 1]).partial_fit(rows[100:200], y[100:200])
    again = there_and_back(model, tmp_path)
    assert_same(model, again, rows)
    assert_same(model.partial_fit(rows[200:], y[200:]), again.partial_fit(rows[200:], y[200:]), rows)


def test_unfitted_models(tmp_path):
    model = there_and_back(LSPC(width=[1.0, 2.0], ridge=0.5, class_weight={"a": np.inf}), tmp_path)
    assert model.get_params()["class_weight"] == {"a": np.inf} and model.width == [1.0, 2.0]


# ---------------------------------------------------------------- preprocessing


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [RobustScaler(), PCA(3)],
        [FrozenEstimator(StandardScaler().fit(X))],
        [MinMaxScaler(), SimpleImputer(strategy="median", add_indicator=True)],
        [QuantileTransformer(n_quantiles=20), FunctionTransformer()],
        [ColumnTransformer([("s", StandardScaler(), [0, 1]), ("o", OrdinalEncoder(), [2])], remainder="passthrough")],
        [OneHotEncoder(handle_unknown="ignore", min_frequency=4), TruncatedSVD(3)],
        [OneHotEncoder(drop="first", sparse_output=False)],
        ["passthrough", StandardScaler().set_output(transform="default")],
    ],
    ids=lambda steps: type(steps[0]).__name__,
)
def test_pipelines(steps, tmp_path):
    rows = X.round()
    model = make_pipeline(*steps, LSPC(**GIVEN)).fit(rows, NAMES[Y])
    assert_same(model, there_and_back(model, tmp_path), rows)


@pytest.mark.parametrize("words", [TfidfVectorizer(), CountVectorizer(analyzer="char", ngram_range=(1, 2))], ids=type)
def test_text(words, tmp_path):
    texts = ["red green", "green blue", "blue blue red", "yellow", "green yellow red", "blue"]
    model = make_pipeline(clone(words), LSPC(**GIVEN)).fit(texts, [0, 0, 1, 1, 0, 1])
    assert_same(model, there_and_back(model, tmp_path), texts)


def table(pd, n=90):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 5)) for _ in range(60)]
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "count": rng.integers(0, 9, n),
            "category": pd.Categorical(rng.choice(["x", "y", "z"], n)),
            "word": rng.choice(["u", "v", None], n),
            "date": pd.date_range("2020-01-01", periods=n, freq="37h"),
            "day": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "text": [" ".join(rng.choice(words, 4)) for _ in range(n)],
            "whether": rng.random(n) < 0.5,
            "there": pd.date_range("2020-01-01", periods=n, tz="Europe/Paris"),
        }
    )
    frame.loc[6, "text"] = None
    return frame, np.where(rng.random(n) < 0.5, "no", "yes")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("encoder", ["StringEncoder", "MinHashEncoder", "GapEncoder"])
def test_tables(encoder, tmp_path):
    pd, skrub = pytest.importorskip("pandas"), pytest.importorskip("skrub")
    frame, y = table(pd)
    high = getattr(skrub, encoder)(n_components=4)
    vectorizer = skrub.TableVectorizer(cardinality_threshold=10, high_cardinality=high)
    model = make_pipeline(vectorizer, LSPC(**GIVEN)).fit(frame, y)
    again = there_and_back(model, tmp_path)
    assert_same(model, again, frame)
    holes = frame.assign(number=frame["number"].where(frame.index % 5 > 0), date=frame["date"].where(frame.index != 3))
    model = make_pipeline(clone(vectorizer), SimpleImputer(), LSPC(**GIVEN)).fit(holes, y)
    kproba.save(model, tmp_path / "holes.kproba")
    assert_same(model, kproba.load(tmp_path / "holes.kproba"), holes)


@pytest.mark.filterwarnings("ignore")
def test_tables_of_polars(tmp_path):
    pl, skrub, pd = (pytest.importorskip(name) for name in ("polars", "skrub", "pandas"))
    frame, y = table(pd)
    frame = pl.from_pandas(frame[["number", "count", "date", "day", "whether"]])
    model = make_pipeline(skrub.TableVectorizer(), LSPC(**GIVEN)).fit(frame, y)
    assert_same(model, there_and_back(model, tmp_path), frame)


# ---------------------------------------------------------------- what cannot be saved, and how files are written


class Foreign(BaseEstimator):
    pass


def test_refuses_to_save(tmp_path):
    path = tmp_path / "m.kproba"
    for model, words in [
        (LSPC(kernel=lambda A, B: A @ B.T, ridge=0.1).fit(X, Y), r"model\.kernel is code .*pickle"),
        (make_pipeline(FunctionTransformer(np.log1p), LSPC()), r"model\.steps\[0\]\[1\]\.func is code"),
        (make_pipeline(Foreign(), LSPC()), r"Foreign, which a model file cannot hold"),
        (LSPC(class_weight={0: 1 + 2j}), r"model\.class_weight\[0\] is a builtins\.complex"),
        (LSPC(ridge=-1), "cannot be saved: ridge must be a positive number, .*, got -1"),
        (make_pipeline(StandardScaler(), LSPC(), memory="folder"), "memory names a folder"),
        (make_pipeline(CountVectorizer(input="filename"), LSPC()), "would open files"),
        ("a text", "it is a str, not an estimator"),
        (Foreign, "not an estimator"),
    ]:
        with pytest.raises(ModelFileError, match=words):
            kproba.save(model, path)
    loop = LSPC()
    loop.width = [loop]
    with pytest.raises(ModelFileError, match="cycle"):
        kproba.save(loop, path)
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        kproba.save(LSPC(), tmp_path / "no" / "m.kproba")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        kproba.save(LSPC(), tmp_path)
    with pytest.raises(FileNotFoundError):
        kproba.load(path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full")])
def test_nothing_half_written_stays(error, tmp_path, monkeypatch):
    path = tmp_path / "m.kproba"
    kproba.save(LSPC(verbose=1), path)
    before = path.read_bytes()
    real, calls = archive._npy_parts, []

    def failing(array):
        calls.append(1)
        if len(calls) == 3:
            raise error
        return real(array)

    monkeypatch.setattr(archive, "_npy_parts", failing)
    with pytest.raises(error if isinstance(error, type) else OSError):
        kproba.save(LSPC(**GIVEN).fit(X, Y), path)
    assert os.listdir(tmp_path) == ["m.kproba"] and path.read_bytes() == before


def test_equal_models_are_equal_files(tmp_path):
    for name in ("a", "b"):
        kproba.save(LSPC(random_state=0).fit(X, Y), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_shared_arrays_are_stored_once(tmp_path):
    model = LSPC(**GIVEN, scaling=None).fit(X, Y)
    assert model.centers_ is model.basis_.centers
    again = there_and_back(model, tmp_path)
    assert again.centers_ is again.basis_.centers


@pytest.mark.parametrize(
    "array",
    [
        np.broadcast_to(3, 4),
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(5)[::-1],
        np.array(2.5),
        np.empty((0, 3), np.float32),
        np.array([["é", "€😀"]]),
        np.array(["2020-01-01", "NaT"], dtype="M8[s]"),
        np.array([1.5, np.nan], dtype=">f8"),
        np.array([[1, None], ["a", np.float32(2)]], dtype=object),
        np.array([b"ab", b"c"]),
    ],
    ids=range(11),
)
def test_arrays_of_all_kinds(array, tmp_path):
    """Wherever they lie in memory; whole numbers, text and dates too."""
    again = there_and_back(LSPC(class_weight={"a": array}), tmp_path).class_weight["a"]
    assert (
        again.dtype == array.dtype and again.shape == array.shape and again.tolist().__repr__() == repr(array.tolist())
    )
    assert again.flags.f_contiguous or not array.flags.f_contiguous  # sums of partial_fit grow in place in this order


def test_everything_public_is_on_the_list():
    """A new estimator or kernel that is exported can be saved; what is inside it may need a line in types.py."""
    for name in kproba.__all__:
        found = getattr(kproba, name)
        if isinstance(found, type) and issubclass(found, BaseEstimator | kproba.Kernel):
            assert found in class_tags()
    assert len(class_tags()) <= len(_listed_classes())


def test_pickle_and_skops_keep_working(tmp_path):
    model = make_pipeline(StandardScaler(), LSPC(**GIVEN)).fit(X, NAMES[Y])
    assert_same(model, pickle.loads(pickle.dumps(model)), X)
    io = pytest.importorskip("skops.io")
    io.dump(model, tmp_path / "m.skops")
    types = io.get_untrusted_types(file=tmp_path / "m.skops")
    assert all(name.startswith("kproba.") for name in types)
    assert_same(model, io.load(tmp_path / "m.skops", trusted=types), X)


# ---------------------------------------------------------------- versions and damage


def unpacked(path):
    with zipfile.ZipFile(path) as members:
        return {name: members.read(name) for name in members.namelist()}


def packed(path, members, *, version=(1, 0), compression=zipfile.ZIP_STORED):
    """A file of these members whose checksums are right: what is wrong must be found further in."""
    own = {name: data for name, data in members.items() if not name.startswith("manifest")}
    entries = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in own.items()}
    manifest = json.dumps({"format": "kproba-model", "version": list(version), "members": entries}).encode()
    own |= {"manifest.json": manifest, "manifest.sha256": hashlib.sha256(manifest).hexdigest().encode()}
    with zipfile.ZipFile(path, "w", compression) as out:
        for name, data in own.items():
            out.writestr(name, data)
    return path


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.kproba"
    kproba.save(make_pipeline(StandardScaler(), LSPC(**GIVEN, centers=20, random_state=0)).fit(X, NAMES[Y]), path)
    return path


def refused(path, words, **options):
    with pytest.raises(ModelFileError, match=words):
        kproba.load(path, **options)


def test_versions(saved):
    members = unpacked(saved)
    refused(
        packed(saved, members, version=(2, 0)), r"format version is 2\.0, but this kproba reads 1; use a newer kproba"
    )
    with pytest.warns(ModelFileWarning, match=r"newer format 1\.7"):
        kproba.load(packed(saved, members, version=(1, 7)))
    old = members["model.json"].replace(b'"sklearn":"1', b'"sklearn":"0')
    with pytest.warns(ModelFileWarning, match="preprocessing of sklearn '0"):
        kproba.load(packed(saved, {**members, "model.json": old}))


def test_a_file_may_be_compressed_anew(saved):
    model = kproba.load(saved)
    assert_same(model, kproba.load(packed(saved, unpacked(saved), compression=zipfile.ZIP_DEFLATED)), X)


def test_zip_beyond_4_gib(saved, monkeypatch):
    """The format has other records there; a smaller limit brings them about in a small file."""
    model = kproba.load(saved)
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    kproba.save(model, saved)
    assert saved.read_bytes()[-98:-94] == b"PK\x06\x06"
    assert_same(model, kproba.load(saved), X)


def test_limits(saved):
    refused(saved, r"takes [\d,]+ bytes unpacked, but max_bytes=1,000", max_bytes=1000)
    with pytest.raises(ValueError, match="max_bytes=0 must be"):
        kproba.load(saved, max_bytes=0)
    refused(packed(saved, unpacked(saved), compression=zipfile.ZIP_LZMA), "method other than deflate")


def test_errors_of_the_machine_are_not_hidden(saved, monkeypatch):
    for error in (KeyboardInterrupt, MemoryError):

        def failing(*_, error=error):
            raise error

        monkeypatch.setattr(archive.Archive, "array", failing)
        with pytest.raises(error):
            kproba.load(saved)


def test_hostile_and_fuzzed_files(tmp_path):
    """In a process of its own with an audit hook: see hostile_files.py beside this file."""
    script = os.path.join(os.path.dirname(__file__), "hostile_files.py")
    run = subprocess.run([sys.executable, script, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    report = json.loads(run.stdout.splitlines()[-1])
    assert report["hand-made"] >= 40 and report["fuzzed"] >= 1000
    assert report["accepted hand-made"] == [] and report["other errors"] == [] and report["audit"] == []
    assert report["files left"] == []
    assert report["predict fails"] == []
    assert report["slowest"] < 5.0 and report["peak MiB"] < 60
