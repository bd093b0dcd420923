"""Model files that were made to exhaust or crash whoever loads them, and how much a file may cost at most."""

import importlib.util
import itertools
import json
import time
import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, PowerTransformer, StandardScaler

import kproba
from kproba import LSPC, BagOfFeatures, KernelLogisticRegression, ModelFileError, Spectrum
from kproba.features.column_kinds import ColumnKinds
from kproba.persist import extent, graph

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("fuzz_model_files", ROOT / "scripts" / "fuzz_model_files.py")
fuzz = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fuzz)

X, Y = load_iris(return_X_y=True)
X, Y = X[::10], Y[::10]
GIVEN = {"kernel": "gaussian", "width": 1.0, "ridge": 1e-2}
#: What a load may take: seconds of the processor and bytes of memory, for every byte of the file and to begin with. A
#: quadratic attack on files of some hundred kB takes hundreds of times as much.
SECONDS, SECONDS_A_BYTE, BYTES, BYTES_A_BYTE = 1.0, 20e-6, 20e6, 300


class File:
    """A saved model whose parts can be changed."""

    def __init__(self, model, path):
        kproba.save(model, path)
        self.path = path
        self.members = fuzz.unpacked(path.read_bytes())
        self.model = json.loads(self.members["model.json"])

    @property
    def nodes(self):
        return self.model["nodes"]

    def state(self, name):
        """The attributes of the first object of a class."""
        return next(node["state"] for node in self.nodes if node.get("class", "").endswith(f".{name}"))

    def prepend(self, *ours):
        """Put nodes before all others, which are numbered anew; the number of the last one."""

        def shifted(found):
            return {"ref": found["ref"] + len(ours)} if "ref" in found else found

        text = json.dumps([*self.nodes, self.model["model"]])
        *self.model["nodes"], self.model["model"] = json.loads(text, object_hook=shifted)
        self.model["nodes"][:0] = ours
        return {"ref": len(ours) - 1}

    def array(self, ref, change):
        """Replace the array that a reference points to."""
        name = f"arrays/{self.nodes[ref['ref']]['number']}.npy"
        found = np.lib.format.read_array(BytesIO(self.members[name]))
        out = BytesIO()
        np.lib.format.write_array(out, np.asarray(change(found) if callable(change) else change), version=(1, 0))
        self.members[name] = out.getvalue()

    def write(self, deflated=False):
        data = fuzz.packed({**self.members, "model.json": json.dumps(self.model, separators=(",", ":")).encode()})
        if deflated:
            with zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
                for name, member in fuzz.unpacked(data).items():
                    out.writestr(name, member)
        else:
            self.path.write_bytes(data)
        return self.path


@pytest.fixture
def file(tmp_path):
    return lambda model: File(model, tmp_path / "model.kproba")


def costs(path, memory=True):
    """Refuse or load a file within linear time and memory; the error, if any. To trace memory takes time."""
    size, found = path.stat().st_size, None
    if memory:
        tracemalloc.start()
    start = time.process_time()
    try:
        kproba.load(path)
    except ModelFileError as error:
        found = error
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1] if memory else 0
    tracemalloc.stop()
    assert seconds < SECONDS + SECONDS_A_BYTE * size, f"{seconds:.1f} s for {size:,} bytes"
    assert peak < BYTES + BYTES_A_BYTE * size, f"{peak:,} bytes for a file of {size:,}"
    return "" if found is None else str(found)


# ---------------------------------------------------------------- depth


def test_deep_nesting(file):
    """The hash of a tuple nested 150,000 levels deep overflows the stack of the interpreter: a crash, no exception."""
    made = file(ColumnKinds())
    deep = [{"is": "tuple", "values": []}, *({"is": "tuple", "values": [{"ref": i}]} for i in range(150_000))]
    top = made.prepend(*deep, {"is": "dict", "keys": ["a"], "values": [{"ref": len(deep) - 1}]})
    made.state("ColumnKinds")["styles_"] = top
    assert "nested more than" in costs(made.write(deflated=True), memory=False)


def test_models_may_be_nested(file):
    model = LSPC()
    for _ in range((extent.MOST_DEPTH - 2) // 3):
        model = make_pipeline(model)
    kproba.load(file(model).path)
    for _ in range(3):
        model = make_pipeline(model)
    with pytest.raises(ModelFileError, match=r"cannot be saved: its objects are nested more than \d+ levels deep"):
        file(model)


# ---------------------------------------------------------------- keys and classes with the same hash


def colliding_tuples(n):
    return [{"is": "tuple", "values": list(signs)} for signs in itertools.islice(_signs(), n)]


def _signs():
    return itertools.product([-1, -2], repeat=15)


@pytest.mark.parametrize("kind", ["set", "frozenset", "dict"])
def test_keys_with_the_same_hash(kind, file):
    """hash(-1) is hash(-2), and so all tuples of these have the same hash: time grew with their number squared."""
    made, n = file(LSPC()), 4_000
    refs = [{"ref": i} for i in range(n)]
    node = {"is": "dict", "keys": refs, "values": refs} if kind == "dict" else {"is": kind, "values": refs}
    made.state("LSPC")["class_weight"] = made.prepend(*colliding_tuples(n), node)
    assert "keys with the same hash" in costs(made.write())


def test_floats_and_numbers_with_the_same_hash(file):
    made, modulus = file(LSPC()), 2**61 - 1
    keys = [*(float(2**e) for e in range(0, 1000, 61)), *(-float(2**e) for e in range(0, 1000, 61)), 1, modulus + 1]
    made.state("LSPC")["class_weight"] = made.prepend({"is": "dict", "keys": keys, "values": keys})
    assert costs(made.write()) == ""  # as many as there are: few
    made.state("LSPC")["class_weight"]["ref"] = 0
    made.nodes[0].update(keys=[i * modulus for i in range(2000)], values=[0] * 2000)
    assert "cannot be a key" in costs(made.write())


def test_many_keys_that_are_not_text(file):
    """Without equal hashes too, numbers can be chosen that take each other's places in a hash table."""
    made, n = file(LSPC()), graph.MOST_KEYS + 1
    made.state("LSPC")["class_weight"] = made.prepend({"is": "set", "values": list(range(n))})
    assert "keys that are not text" in costs(made.write())
    made.nodes[0]["values"] = [str(i) for i in range(n)]
    assert costs(made.write()) == ""
    with pytest.raises(ModelFileError, match=r"model\.class_weight cannot be loaded again: .* not text"):
        file(LSPC(class_weight=dict.fromkeys(range(n), 1.0)))


@pytest.mark.parametrize("as_floats", [False, True])
def test_classes_with_the_same_hash(as_floats, file):
    """Multiples of 2**61 - 1 as classes: 20,000 of them took six seconds, and so on with the square."""
    made, n, modulus = file(LSPC(**GIVEN).fit(X, Y)), 30_000, 2**61 - 1
    labels = [float(i % 1000) if as_floats else i * modulus for i in range(n)]
    made.state("LSPC")["classes_"] = made.prepend({"is": "objects", "values": labels, "shape": [n]})
    assert ("classes_ is not distinct classes" if as_floats else "its link matches its classes") in costs(made.write())


def test_sets_and_classes_of_numbers_still_load(file):
    items = [set(range(i, 3000 + 7 * i, 1 + i)) | {-1, -2, (-1, -2), (-2, -1), 2**62} for i in range(6)]
    model = LSPC(kernel=Spectrum(), width=1.0, ridge=0.1).fit(items, [2**62, -1, 2**62, -2, -1, -2])
    again = kproba.load(file(model).path)
    assert (again.predict(items) == model.predict(items)).all()


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize("columns", [2**20, 2**24, 2**30, 2**40])
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "linear"])
def test_wide_sparse_centers(columns, kernel, file):
    """4 GB for an 11.7 kB file, because the row that was tried had all columns."""
    options = {} if kernel == "linear" else {"width": 1.0}
    made = file(LSPC(kernel=kernel, ridge=0.1, scaling=None, **options).fit(sparse.csr_array(X), Y))
    next(node for node in made.nodes if node["is"] == "csr_array")["shape"][1] = columns
    made.state("LSPC")["n_features_in_"] = columns
    error = costs(made.write())
    assert ("too many for a file of this size" in error) == (columns > graph.MOST_COLUMNS)


def test_hashed_words_still_load(file):
    texts = ["red green", "green blue", "blue red", "yellow"]
    model = make_pipeline(HashingVectorizer(), LSPC(**GIVEN, scaling=None)).fit(texts, [0, 0, 1, 1])
    made = file(model)
    assert costs(made.path) == "" and made.path.stat().st_size < 50_000
    assert (kproba.load(made.path).predict_proba(texts) == model.predict_proba(texts)).all()


def test_brackets_that_are_deflated(file):
    """Each takes 64 bytes, and a byte of the file stands for hundreds."""
    made, rng = file(LSPC()), np.random.default_rng(0)
    made.state("LSPC")["class_weight"] = made.prepend({"is": "list", "values": [[]] * 300_000})
    assert "a zip bomb" in costs(made.write(deflated=True))
    made.nodes[0]["values"] = [0 if i % 97 else int(i) for i in rng.permutation(300_000)]
    assert "values" in costs(made.write(deflated=True))


@pytest.mark.parametrize("text", ["9" * 400, "9" * 200_000, "-" + "9" * 400])
def test_long_numbers(text, file):
    made = file(LSPC(verbose=7))
    made.members["model.json"] = json.dumps(made.model).replace('"verbose": 7', f'"verbose": {text}').encode()
    made.path.write_bytes(fuzz.packed(made.members))
    assert "digits" in costs(made.path)


def test_types_of_long_text(file):
    made = file(make_pipeline(OneHotEncoder(), LSPC(**GIVEN)).fit(X.round(), Y))
    made.state("OneHotEncoder")["dtype"] = made.prepend({"is": "dtype", "name": "<U90000000"})
    assert "takes too much memory" in costs(made.write())
    made.nodes[0]["name"] = "<U9000"
    assert "not a numeric type" in costs(made.write())


# ---------------------------------------------------------------- sharing


@pytest.mark.parametrize("levels", [20, 25, 60])
def test_lists_that_hold_the_one_before_twice(levels, file):
    made = file(LSPC())
    doubled = [{"is": "list", "values": [1.0]}, *({"is": "list", "values": [{"ref": i}] * 2} for i in range(levels))]
    made.state("LSPC")["ridge"] = made.prepend(*doubled)
    assert "too often" in costs(made.write())


def test_one_array_of_many_objects(file):
    """An array of 4 MB that is checked for each of 5,000 objects."""
    made = file(LSPC(class_weight={"a": np.ones(500_000)}, ridge=0.1))
    number = next(i for i, node in enumerate(made.nodes) if node["is"] == "array")
    state = {name: {"ref": number} for name in ("center", "scale", "relevance", "squashed")}
    shared = {"is": "object", "class": "kproba.scaling.Scaling", "state": state}
    made.nodes.extend([shared] * 5000)
    assert "too often" in costs(made.write())


def test_many_classifiers_of_one_basis(file):
    """Each would be tried with a row."""
    made = file(LSPC(**GIVEN, scaling=None).fit(X, Y))
    made.array(made.state("Basis")["centers"], lambda a: a.repeat(1000, axis=0))
    made.array(made.state("LSPC")["coef_"], lambda a: a.repeat(1000, axis=0))
    assert costs(made.write()) == ""
    made.nodes.extend([next(node for node in made.nodes if node.get("class") == "kproba.LSPC")] * 400)
    assert "too often" in costs(made.write())


def test_unions_that_double_their_columns(file):
    """Forty of them one after the other would make 2**40 columns of one."""
    union = FeatureUnion([("a", "passthrough"), ("b", "passthrough")])
    model = make_pipeline(*[union] * 40, LSPC(**GIVEN))
    model.steps[-1] = ("lspc", LSPC(**GIVEN).fit(X, Y))
    assert costs(file(model).path) == ""


# ---------------------------------------------------------------- what belongs together


FITTED = {
    "lspc": lambda: LSPC(**GIVEN).fit(X, Y),
    "curved": lambda: LSPC(**{**GIVEN, "scaling": "quantile"}).fit(X, Y),
    "sparse": lambda: LSPC(**GIVEN).fit(sparse.csr_array(X), Y),
    "klr": lambda: KernelLogisticRegression(**GIVEN).fit(X, Y),
    "tags": lambda: LSPC(**GIVEN).fit(*make_multilabel_classification(20, 4, n_classes=2, random_state=0)),
}


def _broken():
    """Model, class, attribute, and what becomes of its array: none of these may load."""
    for name, part, attributes in [
        ("lspc", "LSPC", ("coef_", "classes_")),
        ("lspc", "Basis", ("centers",)),
        ("lspc", "Scaling", ("center", "scale", "relevance", "squashed")),
        ("curved", "Curves", ("columns", "knots", "values")),
        ("lspc", "CalibratedSoftmax", ("prior", "slope", "offset")),
        ("klr", "KernelLogisticRegression", ("coef_", "intercept_")),
        ("tags", "CalibratedTags", ("prior", "slope", "sharpness", "offset", "span", "constant", "doubt")),
    ]:
        for attribute in attributes:
            yield name, part, attribute, "shorter", lambda a: a[:-1]
            yield name, part, attribute, "nested", lambda a: a[None]
            if attribute not in ("squashed", "constant", "classes_", "columns"):
                yield name, part, attribute, "NaN", lambda a: np.full_like(a, np.nan)
                yield name, part, attribute, "infinity", lambda a: np.full_like(a, np.inf)
            if attribute not in ("squashed", "constant", "classes_", "columns", "scale", "center"):
                yield name, part, attribute, "huge", lambda a: np.full_like(a, 1e300)
            if attribute in ("columns", "knots", "values"):
                yield name, part, attribute, "in another order", lambda a: a[::-1] - (a.ndim == 1)
            if attribute in ("scale", "relevance", "prior", "sharpness"):
                yield name, part, attribute, "zero", np.zeros_like
                yield name, part, attribute, "negative", np.negative
            yield name, part, attribute, "text", lambda a: a.astype("U5")


@pytest.mark.parametrize("broken", list(_broken()), ids=lambda b: "-".join(b[:4]))
def test_parts_that_do_not_go_together(broken, file):
    name, part, attribute, _, change = broken
    made = file(FITTED[name]())
    made.array(made.state(part)[attribute], change)
    if attribute == "classes_" and broken[3] == "text":
        assert costs(made.write()) == ""  # labels may be text
    else:
        assert costs(made.write()) != ""


@pytest.mark.parametrize("width", [0, 0.0, -1.0, 1e-200, 1e200, None, True, "x", {"float": "nan"}, {"float": "inf"}])
def test_widths(width, file):
    made = file(FITTED["lspc"]())
    made.state("Gaussian")["width"] = width
    assert costs(made.write()) != "" or width is True


@pytest.mark.parametrize(
    ("attribute", "change"),
    [
        ("indptr", lambda a: a[::-1]),
        ("indptr", lambda a: np.where(np.arange(len(a)) == 3, a[-1], a)),
        ("indptr", lambda a: np.where(np.arange(len(a)) == len(a) - 1, 0, a)),  # crashed: SciPy takes it for empty
        ("indptr", lambda a: np.where(np.arange(len(a)) == 3, np.iinfo(a.dtype).min, a)),
        ("indptr", lambda a: a - 1),
        ("indptr", lambda a: a[:-1]),
        ("indices", lambda a: np.where(np.arange(len(a)) == 3, 4, a)),
        ("indices", lambda a: -a),
        ("indices", lambda a: a.astype(float)),
        ("indices", lambda a: a[:-1]),
        ("data", lambda a: a[:-1]),
        ("data", lambda a: a.astype("U3")),
    ],
)
def test_sparse_matrices(attribute, change, file):
    made = file(FITTED["sparse"]())
    node = next(node for node in made.nodes if node["is"] == "csr_array")
    made.array(node[attribute], change)
    assert costs(made.write()) != ""


@pytest.mark.parametrize("shape", [[-1, 4], [15, -4], [15], [15, 4, 1], [15.0, 4], ["15", 4], [2**62, 4], None])
def test_sparse_shapes(shape, file):
    made = file(FITTED["sparse"]())
    next(node for node in made.nodes if node["is"] == "csr_array")["shape"] = shape
    assert costs(made.write()) != ""


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        *(("kernel", "spectrum"), ("kernel", "precomputed"), ("kernel", "hidden-markov"), ("link", "none")),
        *(("n_features_in_", 5), ("n_features_in_", -1), ("n_features_in_", 10**18), ("n_features_in_", "4")),
        *(("_on_items", True), ("_multilabel", True), ("scaling_", 3), ("intercept_", {"float": "nan"})),
        *(("intercept_", 1e300), ("classes_", None), ("device", "cuda:x"), ("n_jobs", 10**6)),
    ],
)
def test_attributes(attribute, value, file):
    made = file(FITTED["lspc"]())
    made.state("LSPC")[attribute] = value
    error = costs(made.write())
    if (attribute, value) == ("link", "none"):
        assert error == "" and kproba.load(made.path).predict(X).shape == (15,)
    else:
        assert error != ""


def test_memory_order_is_no_matter(file):
    model = FITTED["lspc"]()
    made = file(model)
    made.array(made.state("LSPC")["coef_"], np.asfortranarray)
    assert costs(made.write()) == ""
    np.testing.assert_allclose(kproba.load(made.path).predict_proba(X), model.predict_proba(X), rtol=1e-12)


# ---------------------------------------------------------------- pipelines


def _pipelines():
    words = ["red green", "green blue", "blue red", "yellow"] * 3
    names = np.array(["a", "b", "c"], dtype=object)[Y][:, None]
    mixed = np.concatenate([X.round().astype(object), names], axis=1)
    yield "encoded", make_pipeline(OrdinalEncoder(), StandardScaler(), LSPC(**GIVEN)), mixed
    yield "one-hot", make_pipeline(OneHotEncoder(), LSPC(**GIVEN)), mixed
    yield "histograms", make_pipeline(MinMaxScaler(), LSPC(kernel="chi2", ridge=0.1)), X
    yield "positive", make_pipeline(PowerTransformer("box-cox"), LSPC(**GIVEN)), X
    yield "filled", make_pipeline(SimpleImputer(add_indicator=True), PCA(2), LSPC(**GIVEN)), X
    yield "united", make_pipeline(FeatureUnion([("p", PCA(2)), ("s", StandardScaler())]), LSPC(**GIVEN)), X
    yield "words", make_pipeline(CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+"), LSPC(**GIVEN)), words
    yield "nested", make_pipeline(make_pipeline(StandardScaler(), PCA(3)), LSPC(**GIVEN)), X


@pytest.mark.parametrize("case", list(_pipelines()), ids=lambda case: case[0])
def test_sound_pipelines_load(case, file):
    """The row that is tried is one that the pipeline takes."""
    _, model, rows = case
    labels = Y[: len(rows)] if len(rows) == len(Y) else np.arange(len(rows)) % 2
    model.fit(rows, labels)
    assert (kproba.load(file(model).path).predict_proba(rows) == model.predict_proba(rows)).all()


@pytest.mark.parametrize(
    ("part", "attribute", "value"),
    [
        *(("StandardScaler", "mean_", None), ("StandardScaler", "with_mean", "x"), ("PCA", "components_", None)),
        *(("StandardScaler", "n_features_in_", 3), ("PCA", "mean_", "x"), ("LSPC", "n_features_in_", 3)),
    ],
)
def test_steps_that_do_not_go_together(part, attribute, value, file):
    made = file(make_pipeline(StandardScaler(), PCA(2), LSPC(**GIVEN)).fit(X, Y))
    made.state(part)[attribute] = value
    assert costs(made.write()) != ""


@pytest.mark.parametrize("column", [4, -5, 0.5, "a", None])
def test_columns_that_there_are_not(column, file):
    columns = ColumnTransformer([("c", StandardScaler(), [0, 1])], remainder="passthrough")
    made = file(make_pipeline(columns, LSPC(**GIVEN)).fit(X, Y))
    made.nodes[made.nodes[_fitted_columns(made)]["values"][2]["ref"]]["values"][0] = column
    assert costs(made.write()) != ""


def _fitted_columns(made):
    """The number of the node with the first fitted transformer and its columns."""
    return made.nodes[made.state("ColumnTransformer")["transformers_"]["ref"]]["values"][0]["ref"]


@pytest.mark.filterwarnings("error")
def test_names_of_columns_are_not_asked_for(file):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    columns = ColumnTransformer([("c", StandardScaler(), ["a", "b"])], remainder="passthrough")
    for steps in ([StandardScaler(), PCA(2)], [columns], [StandardScaler().set_output(transform="pandas"), PCA(2)]):
        model = make_pipeline(*steps, LSPC(**GIVEN)).fit(frame, Y)
        assert (kproba.load(file(model).path).predict_proba(frame) == model.predict_proba(frame)).all()


@pytest.mark.filterwarnings("ignore")
def test_tables_that_do_not_go_together(file):
    """An empty row goes through the models that the command fits."""
    pytest.importorskip("skrub")
    model = fuzz.table_model()
    made, rows = file(model), fuzz.table(2)
    assert (kproba.load(made.path).predict_proba(rows) == model.predict_proba(rows)).all()
    names = made.state("SimpleImputer")["feature_names_in_"]["ref"]
    made.nodes[names]["numbers"].reverse()
    assert costs(made.write()) != ""
    for part, attribute in [("ToFloat", "_needs_str_replace"), ("TableVectorizer", "_pipeline")]:
        made = file(model)
        for node in made.nodes:
            if node.get("class", "").endswith(part) and attribute in node["state"]:
                node["state"][attribute] = 7
        assert costs(made.write()) != ""


def test_text_that_is_filled(file):
    rows = np.array([["a", "b"], [None, "c"], ["a", None]] * 4, dtype=object)
    steps = SimpleImputer(missing_values=None, strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(*steps, LSPC(**GIVEN)).fit(rows, np.arange(12) % 2)
    assert (kproba.load(file(model).path).predict_proba(rows) == model.predict_proba(rows)).all()


@pytest.mark.filterwarnings("ignore::kproba.exceptions.KprobaWarning")
@pytest.mark.parametrize(
    ("part", "attribute", "value"),
    [
        *(("Spec", "n_states", 1), ("Spec", "prior_variance", 2.0), ("Comparisons", "own", None)),
        *(("Sequences", "_frames", 1e200), ("Scaling", "scale", 1e-300), ("Models", "covariance", 1e-300)),
        *(("Models", "covariance", -1.0), ("Models", "start", -1.0), ("Models", "transition", 0.0)),
    ],
)
def test_models_of_sequences(part, attribute, value, file):
    pytest.importorskip("hmmlearn")
    rng = np.random.default_rng(0)
    items = [rng.normal(0.4 * (i % 2), 1.0, (6, 2)) for i in range(8)]
    made = file(LSPC(kernel=kproba.HiddenMarkovKernel(n_states=2), width=10.0, ridge=1e-3).fit(items, [0, 1] * 4))
    found = made.state(part)[attribute]
    if isinstance(found, dict) and value is not None:
        made.array(found, lambda a: np.full_like(a, value))
    else:
        made.state(part)[attribute] = value
    assert costs(made.write()) != ""


def test_a_step_less(file):
    made = file(make_pipeline(StandardScaler(), PCA(2), LSPC(**GIVEN)).fit(X, Y))
    steps = made.nodes[made.state("Pipeline")["steps"]["ref"]]["values"]
    del steps[1]
    assert "needs 2 columns" in costs(made.write())


# ---------------------------------------------------------------- fuzzed files, and files of old


def test_fuzzed_files():
    """A few seconds of what ``scripts/fuzz_model_files.py`` does for hours."""
    found = fuzz.plain_run(1_000)
    assert found["examples"] == []
    assert sum(found.get(kind, 0) for kind in ("refused", "predicts", "unfitted", "too wide")) == 1_000
    assert found["predicts"] > 80


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "tests" / "model_files").glob("*.kproba")))
def test_files_of_version_1_0(name):
    """What was written once can be read for as long as the format has this version."""
    path = ROOT / "tests" / "model_files" / name
    expected = np.array(json.loads(path.with_suffix(".json").read_text()))
    model = kproba.load(path.with_suffix(".kproba"))
    np.testing.assert_allclose(model.predict_proba(fuzz.rows_for(model)), expected, atol=1e-4)


def test_steps_that_failed_at_the_first_prediction(tmp_path):
    """Found by fuzzing: each of these files used to load."""
    X, y = load_iris(return_X_y=True)
    bags = [np.outer([1.0, 2.0, 3.0], x) for x in X[::10]]
    pipeline = make_pipeline(BagOfFeatures(n_words=3, random_state=0), LSPC(**GIVEN)).fit(bags, y[::10])
    pipeline.steps.insert(0, pipeline.steps[0])
    with pytest.raises(ModelFileError, match="two steps have the same name"):
        kproba.save(pipeline, tmp_path / "m.kproba")
    pipeline.steps[0] = ("again", pipeline.steps[0][1])
    with pytest.raises(ModelFileError, match="does not return items for BagOfFeatures"):
        kproba.save(pipeline, tmp_path / "m.kproba")
    pipeline.steps[0] = ("again", "drop")
    with pytest.raises(ModelFileError, match="cannot be dropped"):
        kproba.save(pipeline, tmp_path / "m.kproba")
    words = make_pipeline(TfidfVectorizer(), LSPC(**GIVEN)).fit(
        ["some words", "and others", "some more"] * 3, [0, 1, 0] * 3
    )
    words.steps.insert(1, ("again", words[0]))
    with pytest.raises(ModelFileError, match="TfidfVectorizer makes no text"):
        kproba.save(words, tmp_path / "m.kproba")
    del words.steps[1]
    words[0].vocabulary = str
    with pytest.raises(ModelFileError, match="vocabulary is a type"):
        kproba.save(words, tmp_path / "m.kproba")
    words[0].token_pattern, words[0].vocabulary = None, None
    with pytest.raises(ModelFileError, match="token_pattern is not a pattern"):
        kproba.save(words, tmp_path / "m.kproba")
    model = LSPC(**GIVEN).fit(X, y)
    model.n_jobs = 0
    with pytest.raises(ModelFileError, match="n_jobs is not None or an integer from 1 to 1024"):
        kproba.save(model, tmp_path / "m.kproba")


def test_tables_that_failed_at_the_first_prediction(file):
    """Each of these files used to load."""
    pytest.importorskip("skrub")
    made = file(fuzz.table_model())
    state = next(node["state"] for node in made.nodes if "null_strings_" in node.get("state", ()))
    nulls = made.nodes[state["null_strings_"]["ref"]]["values"]
    nulls[0], kept = 1.5, nulls[0]
    assert "CleanNullStrings: null_strings_ is not a list in which each value is a str" in costs(
        made.write(), memory=False
    )
    nulls[0] = kept
    step = next(node["values"] for node in made.nodes if node.get("values", [])[:1] == ["columnkinds"])
    step[1] = "passthrough"
    assert "TableModel: it does not hold that its pipeline can read frames" in costs(made.write(), memory=False)


def test_steps_that_work_on_several_cores_are_tried_too(tmp_path):
    columns = ColumnTransformer([("words", OneHotEncoder(), [0, 1])], remainder=SimpleImputer(), n_jobs=-1)
    rows = np.array([["a", "b", 1.0, 2.0], ["c", "d", 3.0, 4.0]] * 4, dtype=object)
    model = make_pipeline(columns, LSPC(**GIVEN)).fit(rows, [0, 1] * 4)
    kproba.save(model, tmp_path / "m.kproba")
    model[0].transformers_[1] = ("remainder", model[0].transformers_[1][1], [2])
    with pytest.raises(ModelFileError):
        kproba.save(model, tmp_path / "m.kproba")
