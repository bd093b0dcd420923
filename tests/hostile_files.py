"""Loads hostile and fuzzed model files under an audit hook, and prints what happened as one line of JSON.

Run by test_persist.py in a process of its own, because an audit hook cannot be taken away again.
"""

import collections
import contextlib
import hashlib
import io
import json
import os
import pickle
import random
import resource
import struct
import sys
import time
import tracemalloc
import warnings
import zlib

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "scripts"))
from fuzz_model_files import FAST, corpus, mutated, npy, packed, predicts, raw_zip, unpacked

import kproba
from kproba import LSPC, BagOfFeatures, ModelFileError

FUZZED = 1_001
FOLDER = sys.argv[1]
FILE = os.path.join(FOLDER, "hostile.kproba")
MARKER = os.path.join(FOLDER, "executed")
GIVEN = {"kernel": "gaussian", "width": 1.0, "ridge": 1e-2}

# ---------------------------------------------------------------- the watch

watching = False
events: list[str] = []
#: Reading the file itself is all that loading has to do with the world; frames are looked at by warnings.
HARMLESS = {"builtins.id", "object.__getattr__", "object.__setattr__", "sys._getframe", "os.putenv", "array.__new__"}


def hook(event, arguments):
    if not watching or event in HARMLESS:
        return
    if event == "open" and str(arguments[1]).startswith("r") and str(arguments[0]) == FILE:
        return
    events.append(f"{event} {str(arguments)[:100]}")


class Evil:
    def __reduce__(self):
        return open, (MARKER, "w")


def with_model(members, change):
    """The file with its model.json changed."""
    model = json.loads(members["model.json"])
    found = change(model)
    return packed({**members, "model.json": json.dumps(model if found is None else found).encode()})


def stored(members):
    return [(name, data, 0, len(data), 0, 0) for name, data in members.items()]


def overlapping(members):
    """Two members of the directory that are the same bytes of the file."""
    data, number = members["arrays/0.npy"], sum(name.startswith("arrays/") for name in members)
    manifest = json.loads(members["manifest.json"])
    for i in range(number, number + 50):
        manifest["members"][f"arrays/{i}.npy"] = manifest["members"]["arrays/0.npy"]
    text = json.dumps(manifest).encode()
    members = {**members, "manifest.json": text, "manifest.sha256": hashlib.sha256(text).hexdigest().encode()}
    plain = raw_zip(stored(members))
    start = plain.index(b"PK\x01\x02")
    place = plain.index(data) - 30 - len("arrays/0.npy")
    entry = b"PK\x01\x02" + struct.pack("<H", 0x32D)
    entry += struct.pack("<HHHHHIII", 45, 0, 0, 0, 33, zlib.crc32(data), len(data), len(data))
    names = [f"arrays/{i}.npy".encode() for i in range(number, number + 50)]
    more = b"".join(entry + struct.pack("<HHHHHII", len(n), 0, 0, 0, 0, 0, place) + n for n in names)
    count, size = len(members) + 50, len(plain) - 22 - start + len(more)
    return plain[:-22] + more + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, size, start, 0)


def zeros_deflated(gigabytes):
    """So many GB of zeros, deflated: a block that ends on a byte can be repeated."""
    press = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = press.compress(bytes(100_000_000)) + press.flush(zlib.Z_FULL_FLUSH)
    return block * (10 * gigabytes) + b"\x03\x00"


# ---------------------------------------------------------------- hand-made files


def node_of(model, kind):
    return next(node for node in model["nodes"] if node.get("class", "").endswith(kind))


def hand_made(first, members):
    """Name → bytes of a file."""
    array = members["arrays/0.npy"]
    yield "empty", b""
    yield "a pickle", pickle.dumps(Evil())
    yield "a pickle in a zip's clothes", b"PK\x03\x04" + pickle.dumps(Evil())
    yield "another zip", raw_zip([("hello.txt", b"hello", 0, 5, 0, 0)])
    evil = io.BytesIO()
    np.save(evil, np.array([Evil()], dtype=object), allow_pickle=True)
    yield "a pickle in an array", packed({**members, "arrays/0.npy": evil.getvalue()})
    yield "a pickle instead of JSON", packed({**members, "model.json": pickle.dumps(Evil())})
    yield "a pickle instead of an array", packed({**members, "arrays/0.npy": pickle.dumps(Evil())})
    yield "an extra member", packed({**members, "code.py": b"import os"})
    yield "path traversal", packed({**members, "../../executed": b"x"})
    yield "an absolute path", packed({**members, MARKER: b"x"})
    yield "nested path traversal", packed({**members, "arrays/../../executed.npy": array})
    yield "a member beside the manifest", raw_zip([*stored(members), ("arrays/x/../../y", b"", 0, 0, 0, 0)])
    yield "duplicate names", raw_zip([*stored(members), ("model.json", b"{}", 0, 2, 0, 0)])
    yield "a symlink", raw_zip([*stored(members)[1:], ("model.json", b"/etc/passwd", 0, 11, 0, 0o120777 << 16)])
    linked = [(n, d, m, s, f, 0o120777 << 16) for n, d, m, s, f, _ in stored(members)]
    yield "a symlink of the right contents", raw_zip(linked)
    yield "an encrypted member", raw_zip([(n, d, m, s, 1, a) for n, d, m, s, _, a in stored(members)])
    yield "a missing array", raw_zip([entry for entry in stored(members) if entry[0] != "arrays/1.npy"])
    bomb = zeros_deflated(10)
    yield "10 GB of zeros", raw_zip([*stored(members)[:-1], ("arrays/9.npy", bomb, 8, 10 * 10**9, 0, 0)])
    yield "3 GB of zeros", raw_zip([*stored(members)[:-1], ("arrays/9.npy", bomb, 8, 3 * 10**9, 0, 0)])
    yield "zeros that deny their size", raw_zip([*stored(members)[:-1], ("manifest.sha256", bomb, 8, 64, 0, 0)])
    many = [(f"arrays/{i}.npy", b"", 0, 0, 0, 0) for i in range(65_500)]
    yield "65,500 members", raw_zip(many)
    yield "members that overlap", overlapping(members)
    yield "a directory that is cut", first[:-10]
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
    for name, descr, shape in [
        ("a huge array", "<f8", "(1000000000000,)"),
        ("an array of too many numbers", "<f8", "(99999, 99999, 99999, 99999)"),
        ("a negative shape", "<f8", "(-1, 4)"),
        ("an endless shape", "<f8", "(" + "9" * 4000 + ",)"),
        ("sixty dimensions", "<f8", "(" + "1, " * 60 + ")"),
        ("no bytes a number", "<U0", "(1000000000000,)"),
        ("nothing of a lot", "<f8", "(0, 999999999999999)"),
        ("objects", "|O", "(1,)"),
        ("a structure", "[('a', '<f8')]", "(1,)"),
        ("raw bytes", "|V8", "(1,)"),
        ("code in the header", "<f8", "__import__('os').system('true')"),
    ]:
        yield name, packed({**members, "arrays/0.npy": npy(header % (descr, shape), bytes(8))})
    yield "version 3 of npy", packed({**members, "arrays/0.npy": npy(header % ("<f8", "(1,)"), bytes(8), b"\x03\x00")})
    yield "10^6-deep JSON", packed({**members, "model.json": b"[" * 10**6})
    yield "10^6-deep objects", packed({**members, "model.json": b'{"a":' * 10**6 + b"1" + b"}" * 10**6})
    yield "20 million lists", packed({**members, "model.json": b"[" + b"[]," * 20_000_000 + b"[]]"})
    yield "a long number", packed({**members, "model.json": b'{"format":' + b"9" * 10**6 + b"}"})
    yield (
        "NaN in JSON",
        packed({**members, "model.json": members["model.json"].replace(b'"verbose":0', b'"verbose":NaN')}),
    )
    yield "a name twice", packed({**members, "model.json": b'{"format":1,' + members["model.json"][1:]})
    for tag in (
        *("os.system", "builtins.eval", "builtins.exec", "subprocess.Popen", "posix.system", "kproba.persist.load"),
        *("kproba.persist.save", "kproba.open_rows", "kproba.kernels.given.FromCallable", "sklearn.base.BaseEstimator"),
        *("kproba.data.checkpoint.Checkpoint", "kproba.LSPC.__init__", "joblib.Memory", "", "kproba", "__main__.Evil"),
        *("kproba.data.writers.ProbabilityWriter", "sklearn.pipeline.Pipeline.__reduce__", "skrub.TextEncoder"),
    ):
        yield f"class {tag}", with_model(members, lambda m, tag=tag: node_of(m, ".LSPC").update({"class": tag}))
        call = {"is": "function", "name": tag}
        yield f"function {tag}", with_model(members, lambda m, call=call: m["nodes"].insert(0, call))
    for name in (
        *(
            "__class__",
            "__dict__",
            "__reduce__",
            "__setstate__",
            "__init__",
            "_LSPC__x y",
            "predict",
            "fit",
            "get_params",
        ),
        *("_is_precomputed", "predict_proba", "set_fit_request", "__sklearn_tags__", "a.b", "", "_check_parameters"),
        *("_makes_squares", "_iterates", "_reasons_for_memory", "_get_param_names"),
    ):
        change = {name: "kproba.LSPC"}
        yield f"attribute {name}", with_model(members, lambda m, c=change: node_of(m, ".LSPC")["state"].update(c))
    for kind, value in [("basis_", {"ref": 0}), ("link_", None), ("coef_", 3), ("classes_", "ab"), ("kernel", "exec")]:
        yield (
            f"wrong {kind}",
            with_model(members, lambda m, k=kind, v=value: node_of(m, ".LSPC")["state"].update({k: v})),
        )
    yield (
        "a memory for the pipeline",
        with_model(members, lambda m: node_of(m, ".Pipeline")["state"].update(memory=FOLDER)),
    )
    yield "a million processes", with_model(members, lambda m: node_of(m, ".LSPC")["state"].update(n_jobs=10**6))
    yield "a million threads", with_model(members, lambda m: node_of(m, ".Basis")["state"].update(workers=10**6))
    yield "a node of the future", with_model(members, lambda m: node_of(m, ".LSPC")["state"].update(x_={"ref": 10**9}))
    yield (
        "a node that holds itself",
        with_model(members, lambda m: node_of(m, ".LSPC")["state"].update(x_={"ref": len(m["nodes"]) - 1})),
    )
    yield "laughs", with_model(members, lambda m: laughing(m, "list"))
    yield "laughs that are hashed", with_model(members, lambda m: laughing(m, "tuple", key=True))
    yield "laughs in a message", with_model(members, lambda m: laughing(m, "tuple", width=True))
    yield "an array twice", with_model(members, lambda m: m["nodes"].insert(1, {"is": "array", "number": 0}))
    yield "no nodes", with_model(members, lambda m: m.update(nodes=None))
    yield "no model", with_model(members, lambda m: m.update(model={"ref": 0}))
    yield "an empty model", with_model(members, lambda m: {})
    yield "a list for a model", with_model(members, lambda m: [])
    for name, data in outside_their_types():
        yield name, data


def laughing(model, kind, key=False, width=False):
    """Sixty containers of which each holds the one before twice; nobody must write them out, compare or hash them."""
    ours = [{"is": kind, "values": []}]
    ours += [{"is": kind, "values": [{"ref": i}, {"ref": i}]} for i in range(60)]
    n_more = len(ours)
    shifted = json.loads(
        json.dumps([*model["nodes"], model["model"]]),
        object_hook=lambda o: {"ref": o["ref"] + n_more} if "ref" in o else o,
    )
    model["nodes"], model["model"] = [*ours, *shifted[:-1]], shifted[-1]
    if key:
        model["nodes"].insert(n_more, {"is": "dict", "keys": [{"ref": n_more - 1}], "values": [1]})
    if width:
        node_of(model, ".Gaussian")["state"]["width"] = {"ref": n_more - 1}


def outside_their_types():
    """States that are well formed, but would send compiled code out of bounds."""

    def saved(model):
        kproba.save(model, FILE)
        with open(FILE, "rb") as file:
            return unpacked(file.read())

    def array_changed(members, name, change):
        found = np.load(io.BytesIO(members[name]))
        out = io.BytesIO()
        np.save(out, change(found))
        return {**members, name: out.getvalue()}

    X, y = load_iris(return_X_y=True)
    members = saved(LSPC(**GIVEN).fit(sparse.csr_array(X), y))
    model = json.loads(members["model.json"])
    csr = next(node for node in model["nodes"] if node["is"] == "csr_array")
    for part in ("indices", "indptr"):
        number = model["nodes"][csr[part]["ref"]]["number"]
        yield f"CSR {part}", packed(array_changed(members, f"arrays/{number}.npy", lambda a: a + 10**6))
    yield (
        "CSR shape",
        with_model(members, lambda m: next(n for n in m["nodes"] if n["is"] == "csr_array").update(shape=[9, 9])),
    )

    members = saved(LSPC(**GIVEN).fit(X, y))
    for name, data in members.items():
        if b"'|b1'" in data[:80]:
            yield "truth values of 7", packed({**members, name: data[:-1] + b"\x07"})

    members = saved(LSPC(**GIVEN, random_state=np.random.RandomState(0)))
    change = {"place": 10**9}
    for change in ({"place": 10**9}, {"place": -1}, {"gauss": [7, 0.0]}):
        yield (
            f"random state {change}",
            with_model(members, lambda m, c=change: next(n for n in m["nodes"] if n["is"] == "random_state").update(c)),
        )

    members = saved(make_pipeline(OneHotEncoder(), LSPC(**GIVEN)).fit(X.round(), y))
    outs = next(
        n["state"]["_n_features_outs"]
        for n in json.loads(members["model.json"])["nodes"]
        if "OneHot" in str(n.get("class"))
    )
    yield "columns of one-hot", with_model(members, lambda m: m["nodes"][outs["ref"]]["values"].__setitem__(0, -90))
    categories = next(
        name for name, data in members.items() if (b"<f8" in data[:80] and b"(5,)" in data[:80]) or b"(6,)" in data[:80]
    )
    yield "categories out of order", packed(array_changed(members, categories, lambda a: a[::-1]))

    texts = ["red green", "green blue", "blue red", "yellow"]
    members = saved(make_pipeline(TfidfVectorizer(), LSPC(**GIVEN)).fit(texts, [0, 0, 1, 1]))
    words = next(
        n["state"]["vocabulary_"]["ref"]
        for n in json.loads(members["model.json"])["nodes"]
        if "Tfidf" in str(n.get("class")) and "vocabulary_" in n["state"]
    )
    yield "a vocabulary", with_model(members, lambda m: m["nodes"][words].update(values=[0, 1, 2, 10**8]))
    yield (
        "files for texts",
        with_model(members, lambda m: node_of(m, "TfidfVectorizer")["state"].update(input="filename")),
    )

    bag = BagOfFeatures(n_words=3, random_state=0).fit([X])
    members = saved(bag)
    model = json.loads(members["model.json"])
    number = model["nodes"][node_of(model, "NearestNeighbors")["state"]["_fit_X"]["ref"]]["number"]
    yield "points to look up", packed(array_changed(members, f"arrays/{number}.npy", lambda a: a[:, :2]))


# ---------------------------------------------------------------- the run


def main():
    global watching
    originals = corpus()
    for data in originals.values():  # imports what there is to import
        with open(FILE, "wb") as file:
            file.write(data)
        predicts(kproba.load(FILE))
    repr(LSPC())  # scikit-learn imports what shows parameters in messages when it is first needed
    first = originals["standardised"]
    made = list(hand_made(first, unpacked(first)))
    rng, fuzzed, small = random.Random(0), [], [data for data in originals.values() if len(data) < FAST]
    for number in range(FUZZED):
        some = list(originals.values()) if number % 10 == 0 else small
        mutation, data = mutated(rng, some[number % len(some)])
        fuzzed.append((f"{mutation} {number}", data, True))
    for module in ("pandas", "polars", "skrub", "skrub.selectors._selectors", "fnmatch", "sklearn.impute"):
        with contextlib.suppress(ImportError):
            __import__(module)  # so that an import under watch would be one that a file has caused

    before, report = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, collections.Counter()
    accepted, others, failing, hits = [], [], [], collections.Counter()
    slowest = peak = 0.0
    sys.addaudithook(hook)
    for name, data, is_fuzzed in [*((name, data, False) for name, data in made), *fuzzed]:
        with open(FILE, "wb") as file:
            file.write(data)
        tracemalloc.start()
        start, watching, model = time.perf_counter(), True, None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = kproba.load(FILE)
            outcome = "loaded"
        except ModelFileError as error:
            outcome = "refused"
            hits[reason(error)] += 1
        except Exception as error:
            outcome = "other"
            others.append(f"{name}: {error!r}"[:300])
        finally:
            watching = False
        slowest = max(slowest, time.perf_counter() - start)
        peak = max(peak, (tracemalloc.get_traced_memory()[1] - 2 * len(data)) / 2**20)
        tracemalloc.stop()
        report[f"{name.split()[0] if is_fuzzed else 'hand-made'} {outcome}"] += 1
        if not is_fuzzed and model is not None:
            accepted.append(name)
        elif model is not None:
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    outcome = predicts(model)
                    if outcome not in ("predicts", "unfitted"):
                        failing.append(f"{type(model).__name__} {name}: {outcome}"[:300])
            except Exception as error:
                failing.append(f"{type(model).__name__} {name}: {error!r}"[:300])
    os.remove(FILE)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "hand-made": len(made),
                "fuzzed": len(fuzzed),
                "accepted hand-made": accepted,
                "other errors": others,
                "predict fails": failing,
                "audit": events[:20],
                "files left": os.listdir(FOLDER),
                "slowest": slowest,
                "peak MiB": peak,
                "resident MiB": (after - before) / 1024,
                "outcomes": report,
                "reasons": hits.most_common(60),
            }
        )
    )


def reason(error):
    """What was wrong, without names and numbers."""
    words = str(error).partition("cannot be loaded: ")[2]
    return "".join("#" if c.isdigit() else c for c in words)[:60]


if __name__ == "__main__":
    main()
