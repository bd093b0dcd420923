"""Fuzz ``kproba.load``: a mutated model file is refused by a ``ModelFileError``, or its model predicts.

    pip install 'kproba[fuzz]'
    python scripts/fuzz_model_files.py --runs 1000000 --result result.json   # guided by coverage
    python scripts/fuzz_model_files.py --runs 2000 --plain                   # random mutations, without atheris

The corpus is made anew at every start: one small model of each kind. Mutations know the format: they change nodes
and arrays and compute the checksums again, so that files get past the zip. A file that breaks the promise is kept in
the folder ``--keep``, named by its seed.
"""

from __future__ import annotations

import argparse
import collections
import copy
import hashlib
import io
import json
import os
import random
import shutil
import struct
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")  # threads that wait for each other take longer than these small models

import numpy as np  # noqa: E402

#: Processor seconds that one small file may take: a load is a few milliseconds.
SLOW = 2.0
#: Files that load, from which mutations start beside those that reached new code, and how large these are: tables take
#: twenty times as long as others.
MOST_SOUND, FAST = 2000, 20_000
#: What may become of a file.
SOUND = ("refused", "predicts", "unfitted", "too wide")
#: Columns of the rows that models are tried on, at most.
WIDEST = 1_000_000
GIVEN: dict[str, Any] = {"kernel": "gaussian", "width": 1.0, "ridge": 1e-2}
#: Leave-one-out scores and the like, which say nothing about predictions: most seeds go without, to be fast.
EXTRAS = ("loo_scores_", "loo_proba_", "search_results_", "oof_proba_", "oof_scores_")


# ---------------------------------------------------------------- the corpus


def seeds():
    """Name, model: one of every estimator, link, kind of rows and kind of preprocessing."""
    from scipy import sparse
    from sklearn.compose import ColumnTransformer
    from sklearn.datasets import load_iris, make_multilabel_classification
    from sklearn.decomposition import PCA
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    import kproba
    from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier

    X, y = load_iris(return_X_y=True)
    X, y = X[::10], y[::10]
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    yield "lspc", LSPC(**GIVEN).fit(X, names)
    yield "standardised", make_pipeline(StandardScaler(), LSPC(**GIVEN, scaling=None)).fit(X, names)
    learnt = kproba.kernels.Learnt(
        tuple(np.linspace(0.5, 1.0, X.shape[1]).tolist()), (2.0, 3.0, 1.0), (0.5, 0.3, 0.7, 0.2)
    )
    yield "learnt", LSPC(kernel=learnt, ridge=0.1, random_state=0).fit(X, names)
    yield "pairs", LSPC(kernel="pairs", width=1.0, ridge=0.1, random_state=0).fit(X, y)
    yield "class-wise", LSPC(**GIVEN, centers="class", link="clip").fit(X, y)
    yield "no probabilities", LSPC(kernel="polynomial", width=3.0, ridge=0.1, link="none").fit(X, y)
    yield "histograms", LSPC(kernel="chi2", width=1.0, ridge=0.1, link="clip-parameters").fit(X, y)
    yield "precomputed", LSPC(kernel="precomputed", ridge=0.1, centers=5, random_state=0).fit(X @ X.T, y)
    yield "sparse", LSPC(**GIVEN).fit(sparse.csr_array(np.where(X > 2, X, 0.0)), y)
    yield "unscaled sparse", LSPC(kernel="laplacian", width=1.0, ridge=0.1, scaling=None).fit(sparse.csr_array(X), y)
    yield "likelihood", KernelLogisticRegression(kernel="matern32", width=1.0, ridge=1e-2).fit(X, y)
    yield "import vectors", ImportVectorMachine(kernel="gaussian", width=1.0, ridge=1e-2).fit(X, y)
    yield "surface", SurfaceKernelClassifier(kernel="gaussian", width=1.0, random_state=0).fit(X, y)
    tagged, tags = make_multilabel_classification(20, 4, n_classes=2, random_state=0)
    yield "tags", LSPC(**GIVEN).fit(tagged, tags)
    yield "clipped tags", LSPC(**GIVEN, link="clip").fit(tagged, tags)
    yield "tags by likelihood", KernelLogisticRegression(**GIVEN).fit(tagged, tags)
    yield "in parts", LSPC(**GIVEN, centers=X[::3]).partial_fit(X, y, classes=[0, 1, 2]).partial_fit(X, y)
    texts = ["GATTACA", "GATTTCA", "CCCGGG", "CCCGTG", "GATT", "CCCC"]
    yield "strings", LSPC(kernel=kproba.Spectrum(length=2), width=1.0, ridge=0.1).fit(texts, [0, 0, 1, 1, 0, 1])
    words = ["red green", "green blue", "blue blue red", "yellow", "green yellow red", "blue"]
    yield "texts", make_pipeline(TfidfVectorizer(), LSPC(**GIVEN)).fit(words, [0, 0, 1, 1, 0, 1])
    columns = ColumnTransformer(
        [("c", OneHotEncoder(min_frequency=2, handle_unknown="ignore"), [0, 1])], remainder=SimpleImputer()
    )
    yield "columns", make_pipeline(columns, LSPC(**GIVEN)).fit(X.round(), y)
    yield "components", make_pipeline(SimpleImputer(), PCA(2), LSPC(**GIVEN)).fit(X, y)
    yield (
        "bags",
        make_pipeline(kproba.BagOfFeatures(n_words=3, random_state=0), LSPC(**GIVEN)).fit(
            [X[i : i + 5] for i in range(8)], np.arange(8) % 2
        ),
    )
    if find_spec("hmmlearn"):
        rng = np.random.default_rng(0)
        items = [rng.normal(0.4 * (i % 2), 1.0, (6, 2)) for i in range(8)]
        kernel = kproba.HiddenMarkovKernel(n_states=2)
        yield "sequences", LSPC(kernel=kernel, width=10.0, ridge=1e-3).fit(items, [0, 1] * 4)
    if find_spec("skrub"):
        yield "table", table_model()


def table_model():
    """What ``kproba fit`` makes of a small table."""
    from kproba import LSPC, tabular
    from kproba.cli._models import TableModel

    frame = table(20)
    model = tabular(LSPC(**GIVEN)).fit(frame, np.arange(20) % 2)
    return TableModel(model, "target", list(frame.columns))


def table(n: int):
    """Columns of numbers, categories, dates, truth values and prices."""
    import pandas as pd

    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "category": rng.choice(["a", "b", "c"], n),
            "day": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "whether": rng.random(n) < 0.5,
            "price": [f"{i},5" for i in range(n)],
        }
    )


def corpus() -> dict[str, bytes]:
    """Name → bytes of a model file."""
    import kproba

    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in seeds():
            if name != "lspc":
                _strip(model)
            path = Path(folder, "model.kproba")
            kproba.save(model, path)
            found[name] = path.read_bytes()
    return found


def _strip(model) -> None:
    model = getattr(model, "pipeline", model)
    for step in [step for _, step in getattr(model, "steps", [("", model)])]:
        for extra in EXTRAS:
            vars(step).pop(extra, None)


# ---------------------------------------------------------------- files and their members


def unpacked(data: bytes) -> dict[str, bytes]:
    return dict(_members(data))


@lru_cache(maxsize=1024)
def _members(data: bytes) -> tuple[tuple[str, bytes], ...]:
    with zipfile.ZipFile(io.BytesIO(data)) as members:
        return tuple((name, members.read(name)) for name in members.namelist())


def packed(members: dict[str, bytes]) -> bytes:
    """The bytes of a file whose checksums are right: what is wrong must be found further in."""
    own = {name: data for name, data in members.items() if not name.startswith("manifest")}
    entries = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in own.items()}
    manifest = json.dumps({"format": "kproba-model", "version": [1, 0], "members": entries}).encode()
    own |= {"manifest.json": manifest, "manifest.sha256": hashlib.sha256(manifest).hexdigest().encode()}
    return raw_zip([(name, data, 0, len(data), 0, 0) for name, data in own.items()])


def raw_zip(entries) -> bytes:
    """A zip by hand: (name, stored bytes, method, size unpacked, flags, attributes) for every member."""
    body, directory = bytearray(), bytearray()  # grown in place: some files have very many members
    for name, data, method, size, flags, attributes in entries:
        name, extra, offset, crc = name.encode(), b"", len(body), zlib.crc32(data)
        small = min(size, 0xFFFFFFFF)
        if size > small:
            extra = struct.pack("<HHQ", 1, 8, size)
        fields = struct.pack("<HHHHHIII", 45, flags, method, 0, 33, crc, len(data), small)
        body += b"PK\x03\x04" + fields + struct.pack("<HH", len(name), 0) + name + data
        directory += b"PK\x01\x02" + struct.pack("<H", 0x32D) + fields
        directory += struct.pack("<HHHHHII", len(name), len(extra), 0, 0, 0, attributes, offset) + name + extra
    count = len(entries)
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory) + b"PK\x05\x06" + end


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode() + b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data


# ---------------------------------------------------------------- mutations

JUNK: list[Any] = [
    *(None, True, -1, 0, 1, 2, 3, 7, 10**9, 10**18, 2**61 - 1, 10**30, 0.5, 1e-300, 1e308, -1e308, "", "x", "nan"),
    *("auto", "os.system", "drop", "passthrough", "é", "\ud800", [], {}, [[]], [1, 2], {"float": "nan"}),
    *({"float": "inf"}, {"float": "x"}, {"ref": 0}, {"ref": -1}, {"ref": 10**9}, {"ref": "0"}, 10**400),
]


def flipped(rng, data):
    """Some bytes are others."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def truncated(rng, data):
    """A part of the file is missing, or comes twice."""
    start, end = sorted(rng.sample(range(len(data)), 2))
    return rng.choice([data[:end], data[start:], data[:start] + data[end:], data + data[start:end]])


def swapped(rng, data):
    """Two arrays take each other's place."""
    members = unpacked(data)
    one, two = rng.sample(_arrays(members), 2)
    return packed({**members, one: members[two], two: members[one]})


def scrambled(rng, data):
    """Some values of model.json are replaced, removed, or take each other's place."""
    members = unpacked(data)
    model = json.loads(members["model.json"])
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        _scramble_one(rng, model["nodes"])
    return packed({**members, "model.json": json.dumps(model).encode()})


def _scramble_one(rng, nodes):
    *way, last = rng.choice(list(_places(nodes)) or [()])
    owner = nodes
    for key in way:
        owner = owner[key]
    act = rng.randrange(6)
    if act == 0:
        del owner[last]
    elif act == 1 and isinstance(owner, dict):
        owner[rng.choice(["x", "state", "values", "is", "coef_", "__class__", "width"])] = rng.choice(JUNK)
    elif act == 2:
        owner[last] = {"ref": rng.randrange(len(nodes))}
    elif act == 3 and isinstance(owner[last], int | float):
        owner[last] = rng.choice([owner[last] + 1, owner[last] - 1, -owner[last], 2 * owner[last]])
    elif act == 4 and isinstance(owner, list):
        owner.insert(last, copy.deepcopy(owner[last]))
    else:
        owner[last] = copy.deepcopy(rng.choice(JUNK))


def _places(value, here=()):
    """Where every value of some JSON stands."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        yield (*here, key)
        yield from _places(part, (*here, key))


def exchanged(rng, data):
    """Attributes of one object, or of two objects of the same class, take each other's place."""
    members = unpacked(data)
    model = json.loads(members["model.json"])
    states = [node["state"] for node in model["nodes"] if node.get("is") == "object" and len(node["state"]) > 1]
    state = rng.choice(states)
    one, two = rng.sample(list(state), 2)
    state[one], state[two] = state[two], state[one]
    return packed({**members, "model.json": json.dumps(model).encode()})


def reshaped(rng, data):
    """An array of another shape, type or with other values, or a header that says so."""
    members = unpacked(data)
    name = rng.choice(_arrays(members))
    array, act = np.load(io.BytesIO(members[name])), rng.randrange(7)
    if act == 0:
        return packed({**members, name: _other_header(rng, members[name], array)})
    out = io.BytesIO()
    np.save(out, _other_array(rng, array, act))
    return packed({**members, name: out.getvalue()})


def _other_header(rng, member, array):
    end = member.index(b"\n") + 1
    descr = rng.choice(["<f8", ">f8", "<i8", "|b1", "<U3", "|O", "|V8", "<c16", "<f2", "<M8[s]"])
    shape = (rng.choice([rng.randrange(10**12), array.size]), *array.shape[1:])
    return npy(
        f"{{'descr': '{descr}', 'fortran_order': {rng.random() < 0.5}, 'shape': {shape}, }}",
        member[end:],
    )


def _other_array(rng, array, act):
    if act == 1:
        return array[: max(0, len(array) - 1)] if array.ndim else array.reshape(1)
    if act == 2:
        return array.T if array.ndim > 1 else array[:, None] if array.ndim else array
    if act == 3 and array.dtype.kind in "fiub":
        return array.astype(rng.choice(["f4", "f2", ">f8", "i8", "i4", "U4", "?", "u1"]))
    if act in (4, 5) and array.dtype.kind in "fiu" and array.size:
        array = array.copy()
        values = [np.nan, np.inf, -1e300, 1e300, 1e-300, 0.0, -1.0] if array.dtype.kind == "f" else [0, 1, -1, 10**9]
        array.flat[rng.randrange(array.size)] = np.array(rng.choice(values)).astype(array.dtype)
        return array
    return np.concatenate([array, array]) if array.ndim else array


def _arrays(members):
    return [name for name in members if name.startswith("arrays/")]


MUTATIONS = [flipped, truncated, swapped, *[scrambled] * 5, *[exchanged] * 2, *[reshaped] * 4]


def mutated(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """The name of a mutation and its file; one that does not apply leaves bytes flipped."""
    mutation = rng.choice(MUTATIONS)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mutation.__name__, mutation(rng, data)
    except Exception:  # the file to start from was no sound one
        return flipped.__name__, flipped(rng, data)


# ---------------------------------------------------------------- one input


def rows_for(model) -> Any:
    """Two rows as the model wants them."""
    if hasattr(model, "columns"):
        return table(2).reindex(columns=model.columns)
    first = model
    while hasattr(first, "steps"):
        first = next((step for _, step in first.steps if step not in (None, "passthrough")), None)
    kind = type(first).__name__
    if kind in ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer"):
        return ["red green", "unknown"]
    if getattr(first, "_on_items", False) and not hasattr(first, "n_features_in_"):
        return ["GATTACA", "C"]
    d = getattr(first, "n_features_in_", 4)
    rows = np.random.default_rng(0).uniform(0.5, 3.0, (8, d))
    if kind == "BagOfFeatures" or getattr(first, "_on_items", False):
        return [rows[:4], rows[4:]]
    return _known_categories(first, rows[:2].round()) if kind == "ColumnTransformer" else rows[:2]


def _known_categories(transformer, rows) -> np.ndarray:
    """The rows with the first and the last category in the columns that are encoded, and text where that is filled."""
    rows = rows.astype(object)
    for _, step, columns in transformer.transformers_:
        for column, known in zip(columns, getattr(step, "categories_", ())):
            rows[0, column], rows[1, column] = known[0], known[-1]
        for column, known in zip(columns, getattr(step, "statistics_", ())):
            rows[:, column] = known if isinstance(known, str) else rows[:, column]
    return rows if any(isinstance(value, str) for value in rows.flat) else rows.astype(float)


class Fuzzer:
    """Loads inputs and counts what becomes of them."""

    def __init__(self, folder: str, keep: str | None = None):
        self.path, self.keep = os.path.join(folder, "fuzzed.kproba"), keep
        self.counts: collections.Counter[str] = collections.Counter()
        self.violations: list[str] = []
        self.slowest = 0.0

    def __call__(self, data: bytes) -> str:
        """What became of one input: one of :data:`SOUND`, or a sentence about how it broke the promise."""
        with open(self.path, "wb") as file:
            file.write(data)
        start = time.process_time()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            outcome = self._outcome()
        seconds = time.process_time() - start
        self.slowest = max(self.slowest, seconds)
        if seconds > SLOW:
            outcome = f"took {seconds:.1f} s: {outcome}"
        self.counts[outcome if outcome in SOUND else "violations"] += 1
        if outcome not in SOUND:
            self._keep(data, outcome)
        return outcome

    def _outcome(self) -> str:
        import kproba

        try:
            model = kproba.load(self.path)
        except kproba.ModelFileError:
            return "refused"
        except Exception as error:
            return f"load raises {error!r}"
        try:
            return predicts(model)
        except Exception as error:
            return f"{type(model).__name__}: predictions raise {error!r}"

    def _keep(self, data: bytes, outcome: str) -> None:
        self.violations.append(outcome[:500])
        if self.keep is not None:
            os.makedirs(self.keep, exist_ok=True)
            name = hashlib.sha256(data).hexdigest()[:16]
            Path(self.keep, f"{name}.kproba").write_bytes(data)
            Path(self.keep, f"{name}.txt").write_text(outcome)

    def result(self) -> dict[str, Any]:
        return {
            "inputs": sum(self.counts.values()),
            **self.counts,
            "slowest_s": round(self.slowest, 3),
            "examples": collections.Counter(self.violations).most_common(50),
        }


def predicts(model) -> str:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(getattr(model, "pipeline", model))
    except NotFittedError:
        return "unfitted"
    if getattr(model, "n_features_in_", 0) > WIDEST:
        return "too wide"  # kernel values of so many training rows, which only their owner has
    rows = rows_for(model)
    if hasattr(model, "columns"):
        model.predict_proba(rows)
    elif hasattr(model, "predict"):
        found = model.predict(rows)
        proba = model.predict_proba(rows) if hasattr(model, "predict_proba") else None
        decision = model.decision_function(rows)
        if len(found) != 2 or len(decision) != 2:
            return f"{len(found)} predictions of 2 rows"
        if proba is not None and not (np.isfinite(proba).all() and proba.min() >= 0 and proba.max() <= 1 + 1e-6):
            return f"probabilities {proba.tolist()}"
    else:
        model.transform(rows)
    return "predicts"


# ---------------------------------------------------------------- runs


def plain_run(n: int, seed: int = 0, keep: str | None = None, files: dict[str, bytes] | None = None) -> dict[str, Any]:
    """Random mutations of the corpus, one after the other, the same for the same seed."""
    files = corpus() if files is None else files
    rng, names = random.Random(seed), list(files)
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
        fuzzer = Fuzzer(folder, keep)
        for number in range(n):
            data = files[names[number % len(names)]]
            for _ in range(rng.choice([1, 1, 1, 2])):
                _, data = mutated(rng, data)
            fuzzer(data)
    return fuzzer.result()


def guided_run(n: int, seed: int, keep: str | None, result: str | None) -> None:
    """Mutations of whatever reached new code, until there have been n inputs. Does not return."""
    import atheris

    with atheris.instrument_imports(include=["kproba.persist"]):
        import kproba  # noqa: F401
    files, folder = corpus(), tempfile.mkdtemp(dir=_fast_folder())
    for number, data in enumerate(files.values()):
        Path(folder, f"{number}.seed").write_bytes(data)
    fuzzer, start, sound = Fuzzer(folder, keep), time.time(), list(files.values())

    def one_input(data: bytes) -> None:
        if fuzzer(data) == "predicts" and len(sound) < MOST_SOUND and len(data) < FAST:
            sound.append(data)
        done = sum(fuzzer.counts.values())
        if done % 1000 == 0 or done == n:
            report = {**fuzzer.result(), "seconds": round(time.time() - start), "seed": seed}
            _write(result, report)
        if done == n:
            shutil.rmtree(folder)
            os._exit(1 if fuzzer.violations else 0)

    def mutator(data: bytes, max_size: int, number: int) -> bytes:
        rng = random.Random(number)  # what was refused once mostly is again: start from a sound file as often
        return mutated(rng, data if data and rng.random() < 0.3 else rng.choice(sound))[1][:max_size]

    # libFuzzer's clock counts while the machine is busy with others; ours counts the time of the processor
    flags = ["-max_len=65536", "-mutate_depth=1", f"-seed={seed + 1}", "-timeout=3600", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *flags, folder], one_input, custom_mutator=mutator, internal_libfuzzer=True)
    atheris.Fuzz()


def _write(path: str | None, report: dict[str, Any]) -> None:
    text = json.dumps(report, indent=1)
    if path is None:
        print(text)
    else:
        Path(path).write_text(text + "\n")


def _fast_folder() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="random mutations, without atheris")
    parser.add_argument("--result", default=None, help="JSON file for the counts; they are printed without it")
    parser.add_argument("--keep", default=None, help="folder for files that break the promise")
    options = parser.parse_args()
    if not options.plain:
        guided_run(options.runs, options.seed, options.keep, options.result)
    report = plain_run(options.runs, options.seed, options.keep)
    _write(options.result, report)
    sys.exit(1 if report.get("violations") else 0)


if __name__ == "__main__":
    main()
