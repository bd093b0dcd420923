"""Conversion of objects to a list of plain nodes, and back.

Every value is a JSON scalar or refers to a node by its number. A node has a type, ``is``, and may only refer to earlier
nodes: so nothing is nested deeply, nothing can refer to itself, and shared objects stay shared.
"""

import math
import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ..data.items import as_objects
from ..data.sources import CheckedInputs
from ..exceptions import ModelFileError
from ..kernels.hidden_markov import Spec
from .archive import Archive
from .extent import Extent
from .types import PLAIN_TYPES, class_of, class_tags, function_of, function_tags, rebuilt, shortened, state_of

REFUSAL = "the model cannot be saved"
#: Arrays of these types are stored directly; object arrays are stored value by value.
_ARRAY_KINDS = "biufSUmM"
_PANDAS_DTYPE = re.compile(
    r"U?Int(8|16|32|64)|Float(32|64)|boolean|str|string(\[(python|pyarrow)\])?|category"
    r"|datetime64\[(s|ms|us|ns), (?!dateutil)[A-Za-z_]+(/[A-Za-z0-9_+-]+)*\]"
)
_POLARS_DTYPE = re.compile(r"U?Int(8|16|32|64)|Float(32|64)|Boolean|String|Date|Categorical|Null")
_POLARS_DATES = re.compile(r"Datetime\((ms|us|ns)\)(?:@([A-Za-z_]+(?:/[A-Za-z0-9_+-]+)*))?")
_SCALAR_DTYPE = re.compile(r"[<>|](b1|i[1248]|u[1248]|f[248]|U\d{1,9}|[mM]8\[[A-Za-z0-9]{1,6}\])|O")
#: Maximum entries of a set or keys of a dict that are not text. Their hashes are predictable and can be made to
#: collide, which takes quadratic time. Hashes of text differ from process to process.
MOST_KEYS = 1 << 14
#: Maximum keys with the same hash: hash(-1) is hash(-2), so tuples of these collide by accident.
MOST_COLLISIONS = 64
#: Maximum columns of a sparse matrix in a small file: hashed words have 2**20 by default. A product with the matrix
#: takes memory for every column, empty or not.
MOST_COLUMNS = 1 << 24
#: Maximum bytes of a text type: an array takes that many for every value, however short.
MOST_TEXT_BYTES = 1 << 16
#: Number of words of the Mersenne twister's state; its C code does not check its position.
_TWISTER_WORDS = 624


# ---------------------------------------------------------------- from objects to nodes


class Encoder:
    """Collects nodes and arrays."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.arrays: list[np.ndarray] = []
        self._numbers: dict[int, int] = {}
        self._open: set[int] = set()
        self._extent, self._n_counted = Extent(), 0
        self.kept: list[Any] = []  # keeps objects alive, since they are identified by id()
        self._path: list[str] = []
        self._classes, self._functions = class_tags(), function_tags()
        self._types = {found: name for name, found in PLAIN_TYPES.items()}

    def value(self, obj: Any) -> Any:
        """The JSON value that represents an object inside a node."""
        if obj is None or type(obj) in (bool, str):
            return obj
        if type(obj) is int:
            if abs(obj) >= 1 << 1024:
                raise self._refusal("is a number of more than a thousand bits")
            return obj
        if type(obj) is float:
            return obj if math.isfinite(obj) else {"float": repr(obj)}
        return {"ref": self._number(obj)}

    def _number(self, obj: Any) -> int:
        if id(obj) in self._numbers:
            return self._numbers[id(obj)]
        if id(obj) in self._open:
            raise self._refusal("contains itself: the objects form a cycle")
        self._open.add(id(obj))
        self.kept.append(obj)
        node = self._node(obj)
        self._open.discard(id(obj))
        self._extend(node)
        self.nodes.append(node)
        self._numbers[id(obj)] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _extend(self, node: dict[str, Any]) -> None:
        """Do not save what could not be loaded."""
        try:
            self._extent.add(node)
            self._extent.grow(sum(array.nbytes for array in self.arrays[self._n_counted :]))
        except ModelFileError as error:
            raise ModelFileError(f"{REFUSAL}: {error}") from None
        self._n_counted = len(self.arrays)

    def _node(self, obj: Any) -> dict[str, Any]:
        cls = type(obj)
        if cls in self._classes:
            return self._object(obj, self._classes[cls])
        plain = _PLAIN.get(cls)
        if plain is not None:
            return plain(self, obj)
        if isinstance(obj, np.generic):
            return self._scalar(obj)
        if isinstance(obj, np.dtype) and obj.itemsize <= MOST_TEXT_BYTES:
            return {"is": "dtype", "name": self._dtype_name(obj)}
        if isinstance(obj, type) and obj in self._types:
            return {"is": "type", "name": self._types[obj]}
        if callable(obj) and not isinstance(obj, type):
            return self._function(obj)
        return self._table_type(obj)

    def _object(self, obj: Any, tag: str) -> dict[str, Any]:
        if isinstance(obj, tuple):  # a NamedTuple
            return {"is": "named_tuple", "class": tag, "values": self._values(obj)}
        state = state_of(obj)
        self.kept.append(state)
        return {"is": "object", "class": tag, "state": {name: self._at(f".{name}", state[name]) for name in state}}

    def _at(self, step: str, obj: Any) -> Any:
        """The value of an object one step down; errors show the path of steps."""
        self._path.append(step)
        value = self.value(obj)
        self._path.pop()
        return value

    def _values(self, objects) -> list[Any]:
        return [self._at(f"[{number}]", obj) for number, obj in enumerate(objects)]

    def _list(self, obj) -> dict[str, Any]:
        return {"is": type(obj).__name__, "values": self._values(obj)}

    def _set(self, obj) -> dict[str, Any]:
        """Encode a set in an order that does not depend on hashes, which change from run to run."""
        self._check_keys(obj)
        members = sorted(obj, key=lambda member: (type(member).__name__, repr(member)))
        return {"is": type(obj).__name__, "values": self._values(members)}

    def _dict(self, obj: dict) -> dict[str, Any]:
        self._check_keys(obj)
        keys = [self._at("'s keys", key) for key in obj]
        values = [self._at(f"[{shortened(key, 40)}]", value) for key, value in obj.items()]
        return {"is": "dict", "keys": keys, "values": values}

    def _check_keys(self, keys: Collection[Any]) -> None:
        try:
            check_collisions(keys)
        except ModelFileError as error:
            raise self._refusal(f"cannot be loaded again: {str(error).rstrip('.')}") from None

    def _array(self, obj: np.ndarray) -> dict[str, Any]:
        obj = obj.view(np.ndarray)
        if obj.dtype == object:
            return self._object_array(obj)
        if obj.dtype.kind not in _ARRAY_KINDS or (obj.dtype.kind == "f" and obj.dtype.itemsize > 8):
            raise self._refusal(f"is an array of {obj.dtype}, which a model file cannot hold")
        return {"is": "array", "number": self._stored(obj)}

    def _stored(self, array: np.ndarray) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def _object_array(self, obj: np.ndarray) -> dict[str, Any]:
        values = obj.ravel().tolist()
        if not values or not all(type(value) is str for value in values):
            return {"is": "objects", "values": self._values(values), "shape": list(obj.shape)}
        # concatenated text of any length is smaller than JSON and needs no parsing
        texts = [value.encode("utf-8", "surrogatepass") for value in values]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        numbers = [self._stored(np.frombuffer(b"".join(texts), np.uint8)), self._stored(ends)]
        return {"is": "strings", "numbers": numbers, "shape": list(obj.shape)}

    def _csr(self, obj) -> dict[str, Any]:
        parts = {name: self._at(f".{name}", getattr(obj, name)) for name in ("data", "indices", "indptr")}
        return {"is": type(obj).__name__, "shape": [int(n) for n in obj.shape], **parts}

    def _random_state(self, obj: np.random.RandomState) -> dict[str, Any]:
        state: Any = obj.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            raise self._refusal(f"is a random state of {state['bit_generator']}; use MT19937 or an integer")
        gauss = [int(state["has_gauss"]), float(state["gauss"])]
        words, place = state["state"]["key"], int(state["state"]["pos"])
        return {"is": "random_state", "words": self._stored(words), "place": place, "gauss": gauss}

    def _scalar(self, obj: np.generic) -> dict[str, Any]:
        if obj.dtype.kind in "mM":
            return {"is": "scalar", "dtype": self._dtype_name(obj.dtype), "value": int(obj.view(np.int64))}
        if obj.dtype.kind not in "biufU" or (obj.dtype.kind != "U" and obj.dtype.itemsize > 8):
            raise self._refusal(f"is a {obj.dtype}, which a model file cannot hold")
        return {"is": "scalar", "dtype": self._dtype_name(obj.dtype), "value": self.value(obj.item())}

    def _dtype_name(self, dtype: np.dtype) -> str:
        name = "O" if dtype.kind == "O" else dtype.str
        if not _SCALAR_DTYPE.fullmatch(name):
            raise self._refusal(f"is the type {dtype}, which a model file cannot hold")
        return name

    def _function(self, obj: Callable) -> dict[str, Any]:
        try:
            return {"is": "function", "name": self._functions[obj]}
        except (KeyError, TypeError):
            name = getattr(obj, "__qualname__", type(obj).__qualname__)
            raise self._refusal(
                f"is code ({name}), which a model file cannot hold. Use kernels, links and solvers of kproba and "
                "transformers without functions; or pickle the model, which should only be loaded from trusted sources"
            ) from None

    def _table_type(self, obj: Any) -> dict[str, Any]:
        """Types and missing values of pandas and polars, stored by name."""
        library, name = type(obj).__module__.partition(".")[0], str(obj)
        if library == "pandas" and name in ("<NA>", "NaT"):
            return {"is": "pandas_missing", "name": name}
        if library == "pandas" and _PANDAS_DTYPE.fullmatch(name) and _pandas_dtype(name) == obj:
            return {"is": "pandas_dtype", "name": name}
        polars_name = _polars_name(obj)
        if polars_name is not None:
            return {"is": "polars_dtype", "name": polars_name}
        found = obj if isinstance(obj, type) else type(obj)
        raise self._refusal(
            f"is a {found.__module__}.{found.__qualname__}, which a model file cannot hold; "
            "pickle the model instead, and only load it from trusted sources"
        )

    def _refusal(self, what: str) -> ModelFileError:
        return ModelFileError(f"{REFUSAL}: model{''.join(self._path)} {what}.")


_PLAIN: dict[type, Callable[[Encoder, Any], dict[str, Any]]] = {
    list: Encoder._list,
    tuple: Encoder._list,
    set: Encoder._set,
    frozenset: Encoder._set,
    dict: Encoder._dict,
    slice: lambda encoder, obj: {"is": "slice", "values": encoder._values((obj.start, obj.stop, obj.step))},
    np.ndarray: Encoder._array,
    np.memmap: Encoder._array,
    CheckedInputs: Encoder._array,
    sparse.csr_array: Encoder._csr,
    sparse.csr_matrix: Encoder._csr,
    np.random.RandomState: Encoder._random_state,
}


def _polars_name(obj: Any) -> str | None:
    found = obj if isinstance(obj, type) else type(obj)
    if found.__module__.partition(".")[0] != "polars":
        return None
    if found.__name__ == "Datetime" and not isinstance(obj, type):
        zone = "" if obj.time_zone is None else f"@{obj.time_zone}"
        name = f"Datetime({obj.time_unit}){zone}"
        return name if _POLARS_DATES.fullmatch(name) else None
    return found.__name__ if _POLARS_DTYPE.fullmatch(found.__name__) else None


# ---------------------------------------------------------------- from nodes to objects


class Decoder:
    """Creates objects from nodes: _MAKERS names the method that reads each field, and the function that gets them."""

    def __init__(self, archive: Archive):
        self._archive, self._n_read = archive, 0
        self.objects: list[Any] = []
        self._extent = Extent()

    def run(self, nodes: Any) -> None:
        if not isinstance(nodes, list):
            raise ModelFileError("its nodes are not a list.")
        for number, node in enumerate(nodes):
            kind = node.get("is") if isinstance(node, dict) else None
            if not isinstance(kind, str) or kind not in _MAKERS:
                raise ModelFileError(f"node {number} has an unknown type.")
            fields, make = _MAKERS[kind]
            if set(node) != {"is", *fields}:
                raise ModelFileError(f"node {number}, a {kind}, needs {', '.join(fields)} and nothing else.")
            before = self._archive.n_bytes_read
            self._extent.add(node)
            self.objects.append(make(*(read(self, node[name]) for name, read in fields.items())))
            self._extent.grow(self._archive.n_bytes_read - before)
        if self._n_read != self._archive.n_arrays:
            raise ModelFileError(f"it has {self._archive.n_arrays} arrays, of which only {self._n_read} are used.")

    def value(self, found: Any) -> Any:
        if found is None or isinstance(found, bool | int | float | str):
            return found
        if isinstance(found, dict) and len(found) == 1:
            number = found.get("ref")
            if type(number) is int and 0 <= number < len(self.objects):
                return self.objects[number]
            if found.get("float") in ("nan", "inf", "-inf"):
                return float(found["float"])
        raise ModelFileError("a value is neither plain nor a reference to an earlier node.")

    def values(self, found: Any) -> list[Any]:
        if not isinstance(found, list):
            raise ModelFileError("the values of a node are not a list.")
        return [self.value(each) for each in found]

    def keys(self, found: Any) -> list[Any]:
        """Values that can be keys: plain ones, short tuples of them, and model specifications."""
        keys = self.values(found)
        for key in keys:
            if not _is_key(key):
                raise ModelFileError(f"a {type(key).__name__} cannot be a key, or is too large for one.")
        check_collisions(keys)
        return keys

    def state(self, found: Any) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise ModelFileError("the attributes of an object are not a JSON object.")
        return {name: self.value(each) for name, each in found.items()}

    def array(self, number: Any) -> np.ndarray:
        """Read an array. Each is read once and in order, so that no file can have one read repeatedly."""
        if type(number) is not int or number != self._n_read or number >= self._archive.n_arrays:
            raise ModelFileError(f"array {shortened(number)} is not the next one.")
        self._n_read += 1
        return self._archive.array(number)

    def arrays(self, numbers: Any) -> list[np.ndarray]:
        if not isinstance(numbers, list) or len(numbers) != 2:
            raise ModelFileError("an array of strings must have two arrays.")
        return [self.array(number) for number in numbers]

    def plain(self, found: Any) -> Any:
        return found

    def matrix_shape(self, shape: Any) -> list[int]:
        is_pair = isinstance(shape, list) and len(shape) == 2
        if not is_pair or not all(type(n) is int and 0 <= n < 1 << 62 for n in shape):
            raise ModelFileError(f"a sparse matrix has the invalid shape {str(shape)[:80]}.")
        if shape[1] > max(MOST_COLUMNS, self._archive.n_bytes):
            raise ModelFileError(
                f"a sparse matrix has {shape[1]:,} columns, which is too many for a file of this size."
            )
        return shape


def _dict(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    if len(keys) != len(values):
        raise ModelFileError("a dict does not have as many keys as values.")
    return dict(zip(keys, values))


def _slice(parts: list[Any]) -> slice:
    if len(parts) != 3 or not all(part is None or type(part) is int for part in parts):
        raise ModelFileError("a slice must have three integers or None.")
    return slice(*parts)


def _objects(values: list[Any], shape: Any) -> np.ndarray:
    return as_objects(values).reshape(_checked_shape(shape, len(values)))


def _strings(parts: list[np.ndarray], shape: Any) -> np.ndarray:
    data, ends = parts
    if data.dtype != np.uint8 or ends.dtype != np.int64 or data.ndim != 1 or ends.ndim != 1 or not len(ends):
        raise ModelFileError("an array of strings must have bytes and the end of each string.")
    starts = np.concatenate([[0], ends[:-1]])
    if (starts > ends).any() or starts[0] != 0 or ends[-1] != len(data):
        raise ModelFileError("the ends of an array of strings do not match its bytes.")
    text = data.tobytes()
    places = zip(starts.tolist(), ends.tolist())
    return _objects([text[start:end].decode("utf-8", "surrogatepass") for start, end in places], shape)


def _csr(kind: Any, data: Any, indices: Any, indptr: Any, shape: list[int]) -> Any:
    """A sparse matrix. Products do not check indices; SciPy's own check only looks if the last row ends above 0."""
    are_vectors = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indices, indptr))
    if not are_vectors or data.dtype.kind not in "biuf" or not data.dtype.isnative:
        raise ModelFileError("a sparse matrix must have three arrays of numbers in native byte order.")
    if any(part.dtype not in (np.int32, np.int64) for part in (indices, indptr)):
        raise ModelFileError("the indices of a sparse matrix must be 32- or 64-bit integers.")
    if len(indptr) != shape[0] + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ModelFileError("the row pointers of a sparse matrix are not in order.")
    if len(indices) != len(data) or indptr[-1] > len(data) or ((indices < 0) | (indices >= shape[1])).any():
        raise ModelFileError("a sparse matrix has values outside its rows and columns.")
    return kind((data, indices, indptr), shape=tuple(shape))


def _random_state(words: np.ndarray, place: Any, gauss: Any) -> np.random.RandomState:
    fits = words.shape == (_TWISTER_WORDS,) and words.dtype == np.uint32
    fits = fits and type(place) is int and 0 <= place <= _TWISTER_WORDS and isinstance(gauss, list) and len(gauss) == 2
    if not fits or gauss[0] not in (0, 1) or not isinstance(gauss[1], float):
        raise ModelFileError("a random state is damaged.")
    state = np.random.RandomState(0)
    state.set_state(("MT19937", words, place, int(gauss[0]), gauss[1]))
    return state


def _scalar(name: Any, value: Any) -> Any:
    dtype = np.dtype(_allowed(name, _SCALAR_DTYPE.fullmatch))
    wanted: type = {"b": bool, "f": float, "U": str}.get(dtype.kind, int)
    if dtype.kind == "O" or type(value) is not wanted:
        raise ModelFileError(f"{shortened(value)} is not a {dtype}.")
    if dtype.kind in "mM":
        return np.array(value, dtype=np.int64).view(dtype)[()]
    return dtype.type(value)


def _dtype(name: Any) -> np.dtype:
    dtype = np.dtype(_allowed(name, _SCALAR_DTYPE.fullmatch))
    if dtype.itemsize > MOST_TEXT_BYTES:
        raise ModelFileError(f"the type {shortened(name)} takes too much memory per value.")
    return dtype


def _pandas_dtype(name: Any) -> Any:
    from pandas.api.types import pandas_dtype

    return pandas_dtype(_allowed(name, _PANDAS_DTYPE.fullmatch))


def _pandas_missing(name: Any) -> Any:
    import pandas as pd

    return pd.NA if _allowed(name, ("<NA>", "NaT").__contains__) == "<NA>" else pd.NaT


def _polars_dtype(name: Any) -> Any:
    import polars as pl

    dates = _POLARS_DATES.fullmatch(name) if isinstance(name, str) else None
    if dates is not None:
        unit: Any = dates[1]
        return pl.Datetime(unit, dates[2])
    return getattr(pl, _allowed(name, _POLARS_DTYPE.fullmatch))()


def _allowed(name: Any, is_allowed: Callable[[str], Any]) -> str:
    if not isinstance(name, str) or not is_allowed(name):
        raise ModelFileError(f"the type {shortened(name)} is not allowed in a model file.")
    return name


def _object(tag: Any, state: dict[str, Any]) -> Any:
    cls = class_of(tag)
    if issubclass(cls, tuple):
        raise ModelFileError(f"{cls.__name__} is a tuple and cannot have attributes.")
    return rebuilt(cls, state)


def _named_tuple(tag: Any, values: list[Any]) -> Any:
    cls: Any = class_of(tag)
    if not issubclass(cls, tuple) or len(values) != len(cls._fields):
        raise ModelFileError(f"{cls.__name__} does not have {len(values)} values.")
    return tuple.__new__(cls, values)


_Fields = dict[str, Callable[[Decoder, Any], Any]]
_VALUES: _Fields = {"values": Decoder.values}
_KEYS: _Fields = {"values": Decoder.keys}
_NAME: _Fields = {"name": Decoder.plain}
_CSR: _Fields = {**dict.fromkeys(("data", "indices", "indptr"), Decoder.value), "shape": Decoder.matrix_shape}
#: For each node type, how its other fields are read and the function that creates an object from them.
_MAKERS: dict[str, tuple[_Fields, Callable[..., Any]]] = {
    "list": (_VALUES, list),
    "tuple": (_VALUES, tuple),
    "set": (_KEYS, set),
    "frozenset": (_KEYS, frozenset),
    "dict": ({"keys": Decoder.keys, "values": Decoder.values}, _dict),
    "slice": (_VALUES, _slice),
    "array": ({"number": Decoder.array}, np.asarray),
    "objects": ({"values": Decoder.values, "shape": Decoder.plain}, _objects),
    "strings": ({"numbers": Decoder.arrays, "shape": Decoder.plain}, _strings),
    "csr_array": (_CSR, partial(_csr, sparse.csr_array)),
    "csr_matrix": (_CSR, partial(_csr, sparse.csr_matrix)),
    "random_state": ({"words": Decoder.array, "place": Decoder.plain, "gauss": Decoder.plain}, _random_state),
    "scalar": ({"dtype": Decoder.plain, "value": Decoder.value}, _scalar),
    "dtype": (_NAME, _dtype),
    "type": (_NAME, lambda name: PLAIN_TYPES[_allowed(name, PLAIN_TYPES.__contains__)]),
    "function": (_NAME, function_of),
    "pandas_dtype": (_NAME, _pandas_dtype),
    "pandas_missing": (_NAME, _pandas_missing),
    "polars_dtype": (_NAME, _polars_dtype),
    "object": ({"class": Decoder.plain, "state": Decoder.state}, _object),
    "named_tuple": ({"class": Decoder.plain, "values": Decoder.values}, _named_tuple),
}


def check_collisions(keys: Collection[Any]) -> None:
    """Raise an error for keys for which a dict or set would take more than linear time."""
    predictable = [hash(key) for key in keys if not isinstance(key, str)]
    if len(predictable) > MOST_KEYS:
        raise ModelFileError(
            f"a dict or set has {len(predictable):,} keys that are not text; the maximum is {MOST_KEYS:,}."
        )
    ordered = np.sort(np.array(predictable, dtype=np.int64))
    if (ordered[MOST_COLLISIONS:] == ordered[:-MOST_COLLISIONS]).any():
        raise ModelFileError(f"a dict or set has more than {MOST_COLLISIONS} keys with the same hash.")


def _is_key(key: Any, depth: int = 3) -> bool:
    if type(key) is int:
        return abs(key) < 1 << 63
    if type(key) is tuple:
        return depth > 0 and len(key) <= 64 and all(_is_key(part, depth - 1) for part in key)
    if type(key) is Spec:
        return all(_is_key(part, 0) for part in vars(key).values())
    return key is None or isinstance(key, bool | float | str | np.generic)


def _checked_shape(shape: Any, size: int) -> tuple[int, ...]:
    whole = isinstance(shape, list) and all(type(n) is int and 0 <= n <= max(size, 1 << 31) for n in shape)
    if not whole or len(shape) > 8 or math.prod(shape) != size:
        raise ModelFileError(f"{size} values do not have the shape {str(shape)[:80]}.")
    return tuple(shape)
