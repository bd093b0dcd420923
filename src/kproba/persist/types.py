"""The explicit list of classes and functions allowed in a model file. Nothing else is ever looked up by name."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..data.items import ORIGIN, Items, Memory, Table
from ..estimators._base import KernelClassifier
from ..estimators._partial import Partial
from ..exceptions import ModelFileError
from ..kernels import KERNELS
from ..links import LINKS, CalibratedSoftmax, CalibratedTags, PerTag, Sigmoid, Softmax

#: Private classes of this package: the key used in model files, which never changes, and the current module and name of
#: the class. Each has been reviewed: none of them calls its attributes or opens files. A user's function as a kernel
#: (FromCallable) is deliberately not among them. ``_registered`` adds kernels and links from their registries.
_OWN = {
    "kproba.basis.Basis": ("kproba.basis.basis", "Basis"),
    "kproba.basis.LocalBasis": ("kproba.basis.local_basis", "LocalBasis"),
    "kproba.basis.Regions": ("kproba.basis.regions", "Regions"),
    "kproba.basis.MomentsOf": ("kproba.basis.basis", "MomentsOf"),
    "kproba.cli._kinds.ColumnKinds": ("kproba.features.column_kinds", "ColumnKinds"),
    "kproba.cli._models.TableModel": ("kproba.cli._models", "TableModel"),
    "kproba.cli._training.SeenRows": ("kproba.cli._training", "SeenRows"),
    "kproba.cli._words.TextColumn": ("kproba.features.text_column", "TextColumn"),
    "kproba.data.encoding.Encoding": ("kproba.data.encoding", "Encoding"),
    "kproba.data.items.Items": ("kproba.data.items", "Items"),
    "kproba.data.items.Memory": ("kproba.data.items", "Memory"),
    "kproba.data.items.Table": ("kproba.data.items", "Table"),
    "kproba.data.mixed.Category": ("kproba.data.mixed", "Category"),
    "kproba.data.mixed.MixedColumns": ("kproba.data.mixed", "MixedColumns"),
    "kproba.data.mixed.Number": ("kproba.data.mixed", "Number"),
    "kproba.data.look.Look": ("kproba.data.summary", "Summary"),
    "kproba.data.look._Sample": ("kproba.data.summary", "_Sample"),
    "kproba.data.sources.Chunk": ("kproba.data.sources", "Chunk"),
    "kproba.estimators._streamed.Partial": ("kproba.estimators._partial", "Partial"),
    "kproba.features.plain_table.PlainTable": ("kproba.features.plain_table", "PlainTable"),
    "kproba.kernels.given.Precomputed": ("kproba.kernels.given", "Precomputed"),
    "kproba.kernels.hidden_markov.Models": ("kproba.kernels.hidden_markov", "Models"),
    "kproba.kernels.hidden_markov.Spec": ("kproba.kernels.hidden_markov", "Spec"),
    "kproba.kernels.learnt.Learnt": ("kproba.kernels.learnt", "Learnt"),
    "kproba.kernels.mended.Mended": ("kproba.kernels.projected", "ProjectedKernel"),
    "kproba.kernels.sequence.Comparisons": ("kproba.kernels.sequence", "Comparisons"),
    "kproba.kernels.text.Bags": ("kproba.kernels.text", "Bags"),
    "kproba.moments.Moments": ("kproba.basis.moments", "Moments"),
    "kproba.scaling.Curves": ("kproba.data.curves", "Curves"),
    "kproba.scaling.Scaling": ("kproba.data.scaling", "Scaling"),
    "kproba.surface_loss.Certificate": ("kproba.solvers.surface_loss", "Certificate"),
}
#: Preprocessing that was reviewed for what a malicious state could do; audit.py has the checks that some of it needs.
_PREPROCESSING = {
    "sklearn.compose": "ColumnTransformer make_column_selector",
    "sklearn.decomposition": "PCA TruncatedSVD",
    "sklearn.feature_extraction.text": "CountVectorizer HashingVectorizer TfidfTransformer TfidfVectorizer",
    "sklearn.feature_selection": "VarianceThreshold",
    "sklearn.frozen": "FrozenEstimator",
    "sklearn.impute": "MissingIndicator SimpleImputer",
    "sklearn.neighbors": "NearestNeighbors",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing": """
        Binarizer FunctionTransformer LabelEncoder MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder OrdinalEncoder
        PowerTransformer QuantileTransformer RobustScaler StandardScaler
    """,
    "skrub": """
        ApplyToCols Cleaner DatetimeEncoder Drop DropCols DropUninformative DurationToFloat GapEncoder
        MinHashEncoder SelectCols SquashingScaler StringEncoder TableVectorizer ToCategorical ToDatetime ToFloat
    """,
    "skrub._apply_to_each_col": "ApplyToEachCol",
    "skrub._apply_to_sub_frame": "ApplyToSubFrame",
    "skrub._check_input": "CheckInputDataFrame",
    "skrub._clean_categories": "CleanCategories",
    "skrub._clean_null_strings": "CleanNullStrings",
    "skrub._datetime_encoder": "_CircularEncoder",
    "skrub._table_vectorizer": "PassThrough ShortReprDict",
    "skrub._to_str": "ToStr",
    "skrub._utils": "LRUDict",
    "skrub.selectors._base": "All And Cols Filter Inv NameFilter Or Sub XOr",
}
#: The functions with which skrub's selectors select columns: they take a column and return a boolean.
_FUNCTIONS = {
    "skrub._dataframe": """
        is_any_date is_bool is_categorical is_duration is_float is_integer is_numeric is_object is_string
    """,
    "skrub._table_vectorizer": "_created_by_predicate",
    "skrub.selectors._selectors": "_cardinality_below _has_dtype _null_count_check _regex",
    "fnmatch": "fnmatchcase",
}
#: Types that parameters such as ``dtype=`` may have as their value.
PLAIN_TYPES: dict[str, type] = {
    **{f"numpy.{t.__name__}": t for t in (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64)},
    **{f"numpy.{t.__name__}": t for t in (np.uint8, np.uint16, np.uint32, np.uint64, np.bool_, np.number, np.str_)},
    **{t.__name__: t for t in (bool, int, float, str, object)},
}
#: The modules whose public names are all classes that a model file may hold.
_PUBLIC = ("data.items", "decisions.reject", "estimators", "features.bags", "features.pictures", "features.sequences",
           "kernels", "search.widths")  # fmt: skip
_NOTHING = object()


@cache
def _listed_classes() -> dict[str, tuple[str, str]]:
    """Tag → module and name. Every public estimator, kernel and collection of this package is on the list."""
    own = import_module("kproba")
    tags = {f"kproba.{name}": ("kproba", name) for module in _PUBLIC for name in own._NAMES[module].split()}
    return {
        **tags,
        **_OWN,
        **_registered({name for _, name in (*tags.values(), *_OWN.values())}),
        **_flat(_PREPROCESSING),
    }


def _registered(listed: set[str]) -> dict[str, tuple[str, str]]:
    """Registered kernels without a public name, and the links that fitted models hold: their keys have no file name."""
    links = {PerTag, CalibratedSoftmax, CalibratedTags, Softmax, Sigmoid, *filter(is_dataclass, LINKS.values())}
    kernels = {type(kernel) for kernel in KERNELS.values()}
    found = {f"kproba.links.{cls.__name__}": cls for cls in links} | {
        f"kproba.kernels.{cls.__name__}": cls for cls in kernels
    }
    return {key: (cls.__module__, cls.__name__) for key, cls in found.items() if cls.__name__ not in listed}


def _flat(listed: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {f"{module}.{name}": (module, name) for module, names in listed.items() for name in names.split()}


def class_tags() -> dict[type, str]:
    """Class → tag, for listed classes whose modules are imported, as the class of any object is."""
    return {found: tag for tag, found in _imported(_listed_classes()) if isinstance(found, type)}


def function_tags() -> dict[Callable, str]:
    return {found: tag for tag, found in _imported(_flat(_FUNCTIONS))}


def _imported(listed: Mapping[str, tuple[str, str]]):
    for tag, (module, name) in listed.items():
        found = getattr(sys.modules.get(module), name, None)
        if found is not None:
            yield tag, found


def class_of(tag: str) -> type:
    return _looked_up(_listed_classes(), tag, "class")


def function_of(tag: str) -> Callable:
    return _looked_up(_flat(_FUNCTIONS), tag, "function")


def _looked_up(listed: Mapping[str, tuple[str, str]], tag: str, kind: str) -> Any:
    if not isinstance(tag, str) or tag not in listed:
        raise ModelFileError(f"the {kind} {shortened(tag)} is not allowed in a model file.")
    module, name = listed[tag]
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        library = module.partition(".")[0]
        extra = ": pip install 'kproba[tables]'" if library == "skrub" else ""
        raise ModelFileError(f"{tag} is needed, but {library} does not provide it{extra} ({error}).") from error


def state_of(obj: Any) -> dict[str, Any]:
    """The attributes that describe an object, without locks, caches and devices."""
    if isinstance(obj, Items):
        return {name: part for name, part in vars(obj.detached()).items() if name not in ORIGIN}
    if isinstance(obj, Memory):
        return {"entries": obj.__getstate__()}
    if isinstance(obj, Partial | Table):
        return obj.__getstate__()  # without rows already in the sums, and values that can be recomputed
    state = vars(obj)
    if isinstance(obj, KernelClassifier) and state.get("device_") is not None:
        return {**state, "device_": None}  # the device of the fit; predictions choose their own
    if type(obj).__name__ == "LRUDict":
        return {"capacity": state["capacity"], "cache": {}}
    return state


_FEATURES: dict[str, Any] = {"categorical_features": "from_dtype"}
#: Parameters that files of earlier versions lack, and the values to use for them.
_ADDED_LATER: dict[str, dict[str, Any]] = {
    "Scaling": {"curves": None},
    "CalibratedSoftmax": {"doubt": 0.0},
    "CalibratedTags": {"doubt": None},
    "TableModel": {"seen": None, "about": None},
    "_Sample": {"settled": ()},
    "LSPC": _FEATURES,
    "KernelLogisticRegression": {"penalty": "rkhs", "fit_intercept": True, "coding": "symmetric", **_FEATURES},
    "ImportVectorMachine": {"refit": True, **_FEATURES},
    "SurfaceKernelClassifier": _FEATURES,
    **{name: {"categorical": ()} for name in ("Gaussian", "Laplacian", "Matern", "Additive", "Pairs")},
    "Learnt": {"factors": (), "categorical": ()},
    "SeenRows": {"by_blake2b": True},
}


def rebuilt(cls: Any, state: dict[str, Any]) -> Any:
    """An object of a listed class with these attributes. No constructor and no method chosen by a file runs."""
    added = _ADDED_LATER.get(cls.__name__, {})
    # in this order, an object that lacks nothing is saved again to the same bytes
    state = state | {name: value for name, value in added.items() if name not in state}
    check_names(cls, state)
    obj = cls.__new__(cls)
    if not hasattr(obj, "__dict__"):
        raise ModelFileError(f"{cls.__name__} cannot be created from attributes.")
    if isinstance(obj, Memory):
        Memory.__setstate__(obj, state["entries"])  # also creates a new lock
        return obj
    if cls.__name__ == "LRUDict":
        state = {**state, "cache": OrderedDict()}
    obj.__dict__.update(state)
    if is_dataclass(cls) and hasattr(cls, "__post_init__"):
        cls.__post_init__(obj)  # checks the parameters of kernels and TimesMedian
    return obj


def check_names(cls: Any, state: dict[str, Any]) -> None:
    """Raise an error for attributes that would hide methods or properties, or that Python itself uses."""
    for name in state:
        if not name.isidentifier() or name.startswith("__"):
            raise ModelFileError(f"{cls.__name__} has the invalid attribute {shortened(name)}.")
        own = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), _NOTHING)
        if hasattr(type(own), "__get__"):
            raise ModelFileError(f"{cls.__name__} has an attribute {name!r}, which is a method or property of it.")
        if own is not _NOTHING and name not in _names_of(cls):
            raise ModelFileError(f"{cls.__name__} has an attribute {name!r}, which belongs to the class.")
    wanted = [field.name for field in fields(cls)] if is_dataclass(cls) else list(state)
    if set(state) != set(wanted):
        raise ModelFileError(f"{cls.__name__} needs the attributes {', '.join(wanted)} and no others.")
    if issubclass(cls, BaseEstimator):
        missing = [name for name in _parameters(cls) if name not in state]
        if missing:
            raise ModelFileError(f"{cls.__name__} lacks its parameter {missing[0]!r}.")


def _names_of(cls: Any) -> set[str]:
    """Attributes of objects for which the class has a default; a file must not set any other class attribute."""
    if is_dataclass(cls):
        return {field.name for field in fields(cls)}
    return {"_on_items", "columns_", *(_parameters(cls) if issubclass(cls, BaseEstimator) else ())}


@cache
def _parameters(cls: Any) -> tuple[str, ...]:
    """The parameters of an estimator, cached since finding them takes longer than reading a small model."""
    return tuple(cls._get_param_names())


def shortened(value: Any, most: int = 80) -> str:
    """A value from a file, shortened for a message."""
    text = repr(value) if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"
    return text if len(text) <= most else text[:most] + "…"
