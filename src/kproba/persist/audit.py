"""What each type in a model file may hold, so that a bad file fails when it is loaded and not when it predicts.

Some of these rules are for safety: compiled code in SciPy and scikit-learn does not check indices, so the data that
indices are derived from (categories, vocabularies, points to look up) must be as ``fit`` would have created it. A new
fitted attribute is one more line in a declaration below.
"""

import math
import re
from functools import cache
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from ..basis.basis import Basis
from ..basis.local_basis import LocalBasis
from ..basis.moments import Moments
from ..basis.regions import Regions
from ..data.curves import Curves
from ..data.items import Items, Memory, Sequences, Table
from ..data.mixed import Category, MixedColumns, Number
from ..data.scaling import Scaling
from ..data.sources import Chunk
from ..data.summary import Summary, _Sample
from ..estimators import ImportVectorMachine, KernelLogisticRegression
from ..estimators._base import KernelClassifier
from ..estimators._partial import Partial
from ..exceptions import ModelFileError
from ..features.bags import BagOfFeatures
from ..features.pictures import PictureDescriptors
from ..kernels import FromCallable, HiddenMarkovKernel, Kernel, Learnt, Precomputed, as_kernels
from ..kernels.base import NARROWEST
from ..kernels.hidden_markov import Models, Spec
from ..kernels.projected import ProjectedKernel
from ..kernels.sequence import Comparisons
from ..kernels.text import Bags
from ..links import CalibratedSoftmax, CalibratedTags, Link, PerTag, link_flag
from .rules import ABSENT, LARGEST, Declaration, accepts, are_distinct, check_declared, holds, tuple_of
from .trial import OF_TEXT, check_frame, check_pipeline, check_scores

#: With more coefficients per frame than this, only the diagonals of covariances are checked.
LARGE_COVARIANCE = 64
#: Maximum of n_features_in_: more than any model has, few enough to create a row.
MOST_COLUMNS = 1 << 31
#: Maximum number of threads or processes that a file may request.
MOST_WORKERS = 1024
#: Maximum number of characters of a date format.
LONGEST_FORMAT = 64
_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?")
_STEP = (BaseEstimator, None, {"passthrough", "drop"})
_COUNT, _POSITIVE = range(1 << 63), range(1, 1 << 63)
_WORKERS = range(1, MOST_WORKERS + 1), range(-MOST_WORKERS, 0)


def check_model(model: Any, objects: list[Any]) -> None:
    """Raise an error for anything that ``fit`` and ``save`` would not create. Parts are checked before the whole."""
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"it contains a {type(model).__name__}, not a model.")
    for obj in objects:
        check(obj)
    check_frame(model, objects)


def check(obj: Any) -> None:
    """Check an object against all declarations for its type."""
    cls: Any = type(obj)
    check_declared(obj, _declarations_for(cls))


@cache
def _declarations_for(cls: type) -> tuple[Declaration, ...]:
    kinds = {cls.__name__, *cls.__mro__}
    return tuple(declared for declared in _DECLARATIONS if kinds.intersection(declared.kinds))


# ---------------------------------------------------------------- values


def _distinct_classes(value: Any) -> bool:
    """Whether these are numbers, text, or both."""
    if not accepts("label[c]", value) or not len(value):
        return False
    texts = [label for label in value.tolist() if isinstance(label, str | bytes)]
    numbers = [label for label in value.tolist() if not isinstance(label, str | bytes)]
    are_numbers = all(isinstance(label, Real | np.bool_) and math.isfinite(label) for label in numbers)
    return are_numbers and len(set(texts)) == len(texts) and are_distinct(numbers)


def _a_kernel_with_a_valid_width(value: Any) -> bool:
    if not isinstance(value, Kernel) or isinstance(value, FromCallable):
        return False
    return not value.has_width or (value.width is not None and value.width >= NARROWEST)


def _a_link_of_classes(value: Any) -> bool:
    return isinstance(value, Link) and not isinstance(value, PerTag | CalibratedTags)


def _a_choice_of_columns(value: Any) -> bool:
    """Whether this can be the parameter ``categorical_features``; a fit checks it against the columns."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuUO"
    return value is None or isinstance(value, str | list | tuple)


def _its_codes_are_of_its_columns(clf) -> bool:
    """Whether the kernel compares codes where the table has categories."""
    known = () if clf.columns_ is None else clf.columns_.categorical
    own = () if not isinstance(clf.kernel, Kernel) else clf.kernel.categorical
    return set(clf.basis_.kernel.categorical) == {*known, *own}


def _a_learning_curve(value: Any) -> bool:
    """Columns of equal length; a loss may be infinite where a kernel matrix is singular."""
    columns = accepts({str: "nan64[n]"}, value) and tuple(value) == ("steps", "leave_one_out", "out_of_fold")
    return columns and len(value["steps"]) > 0


def _probabilities_of_some_rows(value: Any) -> bool:
    """Probabilities of training rows; a row that took part in learning the kernel is NaN as a whole."""
    if not accepts("nan64[nc]", value):
        return False
    missing = np.isnan(value)
    whole = np.array_equal(missing.any(axis=1), missing.all(axis=1))
    return whole and accepts("float[nc] >= 0 <= 1", value[~missing.any(axis=1)])


def _it_has_learnt_about_its_own_columns(clf) -> bool:
    """Probabilities of the classes, and importances of the columns."""
    shares, proba = getattr(clf, "feature_importances_", None), getattr(clf, "oof_proba_", None)
    if shares is not None and len(shares) != getattr(clf, "n_features_in_", None):
        return False
    return proba is None or proba.shape[1] == len(clf.classes_)


def _it_has_a_weight_for_every_column(basis: Basis) -> bool:
    if not isinstance(basis.kernel, Learnt):
        return True
    return isinstance(basis.centers, np.ndarray) and basis.centers.shape[1:] == (len(basis.kernel.weights),)


def _its_factors_are_those_of_its_columns(kernel: Learnt) -> bool:
    return all(len(row) == len(kernel.weights) for row in kernel.factors)


def _its_codes_are_columns_of_its_centres(basis: Basis) -> bool:
    codes = basis.kernel.categorical
    return not codes or (isinstance(basis.centers, np.ndarray) and codes[-1] < basis.centers.shape[1])


def _its_splits_are_a_tree(regions: Regions) -> bool:
    """Every split but the first is the child of an earlier one, and so is every region, in order."""
    n, children = len(regions.column), regions.children
    if children.shape != (n, 2) or not (regions.low < regions.high).all():
        return False
    parents, is_split = np.broadcast_to(np.arange(n)[:, None], children.shape), children >= 0
    found = np.sort(children[is_split]), np.sort(-1 - children[~is_split])
    expected = np.arange(1, n), np.arange(n + 1 if n else 0)
    return all(map(np.array_equal, found, expected)) and bool((children > parents)[is_split].all())


def _its_regions_have_their_own_centres(basis: LocalBasis) -> bool:
    ends, centers = basis.ends, basis.centers
    if not isinstance(centers, np.ndarray) or len(ends) != basis.regions.n_regions:
        return False
    there = (np.diff(ends, prepend=0) > 0).all() and ends[-1] == len(centers)
    return bool(there and (basis.regions.column < centers.shape[1]).all())


def _a_decimal_mark(value: Any) -> bool:
    return accepts({".", ","}, value)


def _a_date_format(value: Any) -> bool:
    """Whether a text is short and has each directive that pandas finds in dates at most once."""
    directives = re.findall("%(.?)", value) if accepts(str, value) and len(value) <= LONGEST_FORMAT else ["%"]
    return set(directives) <= set("YymBbdjHIMSfpzAa") and len(set(directives)) == len(directives)


def _a_numeric_type(value: Any) -> bool:
    """Whether values take little memory: a long text type would take its length for every value."""
    return np.dtype(value).kind in "fiubO"


def _text_or_sorted_numbers(known: Any) -> bool:
    """Whether categories can be looked up: numbers are by bisection, and NaN comes last."""
    if not accepts("label[n]", known) or not len(known):
        return False
    if known.dtype.kind in "OUS":
        return True
    sure = known[:-1] if known[-1] != known[-1] else known
    return not np.isinf(known).any() and bool((sure[:-1] < sure[1:]).all())


def _words_numbered_without_gaps(words: Any) -> bool:
    """Whether the numbers, which are put into a sparse matrix without checks, are its columns."""
    numbers = list(words.values()) if isinstance(words, dict) else None
    return numbers is not None and accepts([range(len(numbers))], numbers) and are_distinct(numbers)


def _names_with_transformers(steps: Any, length: int = 2) -> bool:
    named = accepts([tuple], steps) and all(len(step) == length and isinstance(step[0], str) for step in steps)
    return named and len(steps) > 0 and all(accepts(_STEP, step[1]) for step in steps)


def _names_with_transformers_and_columns(steps: Any) -> bool:
    return _names_with_transformers(steps, 3)


# ---------------------------------------------------------------- classifiers


def _no_attribute_is_a_type(obj: BaseEstimator) -> str | None:
    """A type is callable, but not a function that steps could call."""
    found = [name for name, value in vars(obj).items() if name != "dtype" and isinstance(value, type)]
    return f"{found[0]} is a type" if found else None


def _its_parameters_are_valid(obj: BaseEstimator) -> None:
    if hasattr(obj, "_parameter_constraints"):
        obj._validate_params()
    if isinstance(obj, KernelClassifier):
        obj._check_parameters()
    if isinstance(obj, BagOfFeatures | PictureDescriptors):
        obj._check_options()


def _its_column_names_are_text(obj: BaseEstimator) -> bool:
    names = getattr(obj, "feature_names_in_", None)
    if not isinstance(names, np.ndarray):
        return True
    return names.shape == (getattr(obj, "n_features_in_", len(names)),) and accepts([str], names.tolist())


def _its_link_matches_its_classes(clf) -> bool:
    link, n_classes = clf.link_, len(clf.classes_)
    gives_probabilities = link.gives_probabilities or not link_flag(clf.link, "gives_probabilities")
    if isinstance(link, PerTag | CalibratedTags):
        return gives_probabilities and clf._multilabel and len(link.constant) == n_classes
    if n_classes < (1 if clf._multilabel else 2) or _has_constants(clf):
        return False
    return gives_probabilities and (not isinstance(link, CalibratedSoftmax) or len(link.prior) == n_classes)


def _has_constants(clf) -> bool:
    """Whether the scores include constants after those of the tags, as for least squares."""
    return clf._multilabel and not isinstance(clf, KernelLogisticRegression | ImportVectorMachine)


def _its_coefficients_match_its_centres_and_classes(clf) -> bool:
    k = int(clf.link_.constant.max()) + 1 if _has_constants(clf) else len(clf.classes_)
    intercept, owner, n_centers = np.asarray(clf.intercept_), clf.basis_.owner, clf.basis_.n_centers
    if clf.coef_.shape != (n_centers, k) or intercept.shape not in ((), (k,)):
        return False
    are_numbers = intercept.dtype.kind in "fiu" and (np.abs(intercept) < LARGEST).all()
    return are_numbers and accepts((None, "int[b] >= 0 < c"), owner, b=n_centers, c=len(clf.classes_))


def _its_columns_match_its_centres_and_scaling(clf) -> bool:
    d, centers, scaling = getattr(clf, "n_features_in_", None), clf.basis_.centers, clf.scaling_
    if clf.columns_ is not None:
        if len(clf.columns_.columns) != d:
            return False
        d = len(clf.columns_.origins)
    if clf._on_items != isinstance(centers, Items) or (scaling is not None and len(scaling.center) != d):
        return False
    if isinstance(centers, Sequences):
        return centers.n_coefficients == d and (scaling is None or _scales_frames_moderately(scaling))
    if isinstance(centers, Items):
        return scaling is None and d is None
    if isinstance(clf.basis_.kernel, Precomputed):
        return scaling is None and accepts("int[b] >= 0 < d", centers, d=d)
    return accepts(_POSITIVE, d) and centers.ndim == 2 and centers.shape[1] == d


def _curves_are_of_its_columns(scaling: Scaling) -> bool:
    columns = np.array([]) if scaling.curves is None else scaling.curves.columns
    return are_distinct(columns.tolist()) and bool((columns < len(scaling.center)).all())


def _ascend(values: np.ndarray) -> bool:
    return len(values) > 0 and bool((np.diff(values, axis=0) >= 0).all())


def _scales_frames_moderately(scaling: Scaling) -> bool:
    return all(accepts("moderate[d]", part) for part in (scaling.center / scaling.scale, 1.0 / scaling.scale))


def _its_kernel_matches_its_rows(clf) -> bool:
    """The kernel parameter reads rows; where these are sequences, they have models that need not be fitted again."""
    asked, fitted, items = as_kernels(clf.kernel)[0], clf.basis_.kernel, [clf.basis_.centers]
    if isinstance(fitted, ProjectedKernel):
        items.append(fitted.landmarks)
        fitted = fitted.kernel
    same = type(asked) is type(fitted) if clf._on_items else type(asked).read is Kernel.read
    if not same or clf._is_precomputed != isinstance(fitted, Precomputed):
        return False
    return not isinstance(fitted, HiddenMarkovKernel) or all(_are_modelled(each, fitted) for each in items)


def _are_modelled(items: Any, kernel: HiddenMarkovKernel) -> bool:
    known = items.memory.entries.get(kernel._spec)
    there = isinstance(known, Comparisons) and known.spec == kernel._spec and np.isfinite(known.own).all()
    return there and items.lengths.min() >= max(2, kernel.n_states)


# ---------------------------------------------------------------- parts of classifiers


def _its_centres_are_finite_numbers(basis: Basis) -> bool:
    centers: Any = basis.centers
    if isinstance(centers, Items):
        return True
    if sparse.issparse(centers):
        return centers.shape[0] > 0 and accepts("number[n]", centers.data)
    return accepts("number[b]" if isinstance(basis.kernel, Precomputed) else "number[bd]", centers) and len(centers) > 0


def _its_memory_is_about_all_items_in_order(items: Any) -> bool:
    n, sizes = items._n_all, map(_n_remembered, items.memory.entries.values())
    return np.array_equal(items._index, np.arange(n)) and all(size == n for size in sizes)


def _n_remembered(entry: Any) -> int | None:
    """Number of items that an entry of a memory is about."""
    if isinstance(entry, Bags):
        return entry.counts.shape[0]
    if isinstance(entry, Comparisons):
        return len(entry.own)
    return entry.n if isinstance(entry, Table) else None


def _its_counts_match_its_codes(bags: Bags) -> bool:
    fits = sparse.issparse(bags.counts) and bags.counts.shape == (len(bags.square), len(bags.codes))
    return fits and accepts("number[n]", bags.counts.data) and are_distinct(bags.codes.tolist())


def _its_probabilities_are_valid(models: Models) -> bool:
    return models.start.shape[1] > 0 and all((part.sum(-1) > 0).all() for part in (models.start, models.transition))


def _its_covariances_are_positive_definite(models: Models) -> bool:
    """Only the diagonals are checked if they are large, since eigenvalues take too long."""
    found = models.covariance
    if found.ndim == 4 and found.shape[-1] > LARGE_COVARIANCE:
        found = np.diagonal(found, axis1=2, axis2=3)
    return bool(((found if found.ndim == 3 else np.linalg.eigvalsh(found)) > 1.0 / LARGEST).all())


def _its_models_match(known: Comparisons) -> bool:
    if known.table.n != len(known.own) or np.isinf(known.own).any():
        return False
    if known._models is None:
        return bool(np.isnan(known.own).all())
    return len(known._models) == len(known.own) and known._models.start.shape[1] == known.spec.n_states


def _its_sums_match_its_basis(partial: Partial) -> bool:
    if partial.statistic is None or partial.moments is None:
        return True
    return isinstance(partial.statistic.basis, Basis) and partial.statistic.basis.n_centers == len(partial.moments.h)


# ---------------------------------------------------------------- features and preprocessing


def _its_lookup_has_its_words(bag: Any) -> bool:
    points = bag._lookup._fit_X if type(bag._lookup).__name__ == "NearestNeighbors" else np.empty(0)
    return len(bag.words_) > 0 and points.shape == bag.words_.shape and points.dtype == bag.words_.dtype


def _its_steps_have_different_names(obj: Any) -> str | None:
    attributes = ("steps", "transformer_list", "transformers", "transformers_")
    distinct = [are_distinct(step[0] for step in getattr(obj, name, ())) for name in attributes]
    return None if all(distinct) else "two steps have the same name"


def _its_steps_can_follow_each_other(pipeline: Any) -> str | None:
    if any(isinstance(step, str) and step == "drop" for _, step in pipeline.steps):
        return "a step of a pipeline cannot be dropped"
    for (_, before), (_, step) in pairwise(pipeline.steps):
        if isinstance(step, BagOfFeatures) and not isinstance(before, PictureDescriptors):
            return f"{type(before).__name__} does not return items for BagOfFeatures"
        if type(step).__name__ in OF_TEXT:
            return f"{type(before).__name__} makes no text"
    return None


def _its_columns_exist(transformer: Any) -> bool:
    return all(_are_columns(columns, transformer) for *_, columns in getattr(transformer, "transformers_", ()))


def _are_columns(columns: Any, transformer: Any) -> bool:
    """Whether these are columns that the transformer was fitted on, by number or by name."""
    if isinstance(columns, slice) or callable(columns):
        return True
    found, d = np.atleast_1d(np.asarray(columns)), transformer.n_features_in_
    if found.dtype.kind in "iu":
        return bool(((found >= -d) & (found < d)).all())
    if found.dtype.kind == "b":
        return found.shape == (d,)
    named = hasattr(transformer, "feature_names_in_") and all(isinstance(name, str) for name in found.ravel())
    return found.ndim == 1 and (named or not found.size)


def _its_output_columns_match_its_categories(encoder: Any) -> bool:
    """The output columns are derived from the categories, and put into a sparse matrix without checks."""
    n_columns, sizes = len(encoder.categories_), [len(known) for known in encoder.categories_]
    if encoder._infrequent_enabled:
        rare, mappings = encoder._infrequent_indices, encoder._default_to_infrequent_mappings
        if not len(rare) == len(mappings) == n_columns or not all(map(_are_grouped, rare, mappings, sizes)):
            return False
        sizes = [size if own is None else size - len(own) + 1 for own, size in zip(rare, sizes)]
    for dropped in (encoder.drop_idx_, encoder._drop_idx_after_grouping):
        if not accepts((None, "any[d]"), dropped, d=n_columns):
            return False
    dropped = encoder._drop_idx_after_grouping
    exist = dropped is None or all(accepts((None, range(n)), place) for place, n in zip(dropped.tolist(), sizes))
    return exist and encoder._n_features_outs == encoder._compute_n_features_outs()


def _are_grouped(rare: Any, mapping: Any, size: int) -> bool:
    """Whether the mapping numbers the frequent categories, and then gives one number to all infrequent ones."""
    if rare is None or mapping is None:
        return rare is mapping
    if not accepts("int[r] >= 0 < n", rare, n=size) or not len(rare) or not are_distinct(rare.tolist()):
        return False
    return accepts("int[n] >= 0 < m", mapping, n=size, m=size - len(rare) + 1)


def _its_words_can_be_found_and_weighted(vectorizer: Any) -> str | bool:
    if vectorizer.analyzer == "word" and vectorizer.tokenizer is None and not isinstance(vectorizer.token_pattern, str):
        return "token_pattern is not a pattern"
    words = getattr(vectorizer, "vocabulary_", None)
    weights = getattr(getattr(vectorizer, "_tfidf", None), "idf_", None)
    return words is None or weights is None or len(weights) == len(words)


def _a_description_of_columns(about: Any) -> bool:
    """The positive class, and for some columns their values or the order of day and month."""
    if not isinstance(about, dict) or not set(about) <= {"positive", "profile"}:
        return False
    profile = about.get("profile", {})
    column = {re.compile("order"): {"day/month", "month/day"}, re.compile("values"): [str]}
    return accepts({str: column}, profile) and all(len(each) == 1 for each in profile.values())


def _its_pipeline_can_read_frames_and_training_rows(model: Any) -> bool:
    if not hasattr(model.pipeline, "predict_proba") or type(model.seen).__name__ not in ("NoneType", "SeenRows"):
        return False
    kinds = [type(step).__name__ for _, step in getattr(model.pipeline, "steps", ())]
    if {"TableVectorizer", "PlainTable"} & set(kinds) and kinds[0] != "ColumnKinds":
        return False
    return model.seen is None or {"columnkinds", "tablevectorizer"} <= set(getattr(model.pipeline, "named_steps", ()))


def _its_columns_are_those_of_its_levels(table: Any) -> bool:
    names, outputs = list(getattr(table, "feature_names_in_", ())), table.input_to_outputs_
    if not table.levels_ or list(outputs) != names or not all(name in outputs for name in table.levels_):
        return False
    n, gaps = sum(1 if each is None else len(each) for each in table.levels_.values()), table.gaps_.tolist()
    named = sum(len(outputs[name]) for name in table.levels_)
    return len(table.medians_) == n and are_distinct(gaps) and named == n + len(gaps)


# ---------------------------------------------------------------- what each type may hold

_FACTORS, _SCALE = (ABSENT, None, "factor[d]"), (ABSENT, None, "scale[d]")
_NAMES, _TRANSFORMERS = (ABSENT, [str]), (ABSENT, {object: BaseEstimator})
_PLACES, _LEVELS = tuple_of(range(MOST_COLUMNS), increasing=True), tuple_of(str, increasing=True)

#: In this order, so that relations can rely on the attributes and parts that were checked before them. Arrays and
#: numbers are written as in rules.py.
_DECLARATIONS = (
    holds(
        BaseEstimator,
        n_jobs=(ABSENT, None, *_WORKERS),
        n_features_in_=(ABSENT, range(MOST_COLUMNS + 1)),
        relations=[_no_attribute_is_a_type, _its_parameters_are_valid, _its_column_names_are_text],
    ),
    # items and what is cached for them
    holds(Table, n=_COUNT, _values=None),
    holds(Memory, entries=dict),
    holds(Bags, square="float[n] > 0", codes="uint64[t]", relations=[_its_counts_match_its_codes]),
    holds(
        Models,
        start="moderate64[ms] >= 0",
        transition="moderate64[mss] >= 0",
        mean="moderate64[msd]",
        covariance=("moderate64[msd]", "moderate64[msdd]"),
        relations=[_its_probabilities_are_valid, _its_covariances_are_positive_definite],
    ),
    holds(Comparisons, spec=Spec, table=Table, _models=(Models, None), own="nan64[n]", relations=[_its_models_match]),
    holds("Items", _values="object[n]"),
    holds(
        Sequences,
        _frames="moderate64[fd]",
        _ends="int[n]",
        relations=[
            ("it has no sequences", lambda items: len(items._ends) > 0),
            ("its sequences are not in order", lambda items: (np.diff(items._ends, prepend=0) > 0).all()),
            ("its last sequence does not end with its frames", lambda items: items._ends[-1] == len(items._frames)),
        ],
    ),
    holds(Items, memory=Memory, _index="int[n]", relations=[_its_memory_is_about_all_items_in_order]),
    # parts of a classifier
    holds(
        ProjectedKernel,
        kernel=_a_kernel_with_a_valid_width,
        landmarks=Sequences,
        values="moderate[m]",
        vectors="float[mm] > -1.000001 < 1.000001",
        relations=[
            ("its kernel needs no projection", lambda mended: mended.kernel.is_projected),
            ("its values are not those of its landmarks", lambda mended: len(mended.values) == len(mended.landmarks)),
        ],
    ),
    holds(
        Scaling,
        center="float[d]",
        scale="float[d] > 0",
        relevance="float[d] > 0 < 1e8",
        squashed="bool[d]",
        curves=(Curves, None),
        relations=[("its curves are not of its columns", _curves_are_of_its_columns)],
    ),
    holds(
        Curves,
        columns="int[k] >= 0",
        knots="moderate64[mk]",
        values="moderate64[mk]",
        relations=[
            ("its knots are not in order", lambda curves: _ascend(curves.knots)),
            ("its values are not in order", lambda curves: _ascend(curves.values)),
        ],
    ),
    holds(
        CalibratedSoftmax,
        prior="moderate[c] > 0",
        slope="moderate[c]",
        offset="moderate[c]",
        sharpness="float > 0 < 1e75",
        span=tuple_of("float", range(2, 3)),
        doubt="float >= 0 < 1",
        relations=[("its span is not in order", lambda link: link.span[0] <= link.span[1])],
    ),
    holds(
        PerTag,
        CalibratedTags,
        constant="int[t] >= t",
        relations=[("its constants are not columns", lambda link: link.constant.max() < 2 * len(link.constant))],
    ),
    holds(PerTag, link=_a_link_of_classes),
    holds(
        CalibratedTags,
        prior="float[t] > 0 < 1",
        sharpness="moderate[t] > 0",
        offset="moderate[t]",
        slope="moderate[2t]",
        span="moderate[2t]",
        doubt=("float[t] > 0 < 1", None),
        relations=[("its spans are not in order", lambda link: (link.span[0] <= link.span[1]).all())],
    ),
    holds(
        Learnt,
        weights=tuple_of("float > 0 < 1e75", _POSITIVE),
        widths=tuple_of("float > 0 < 1e75", range(3, 4)),
        mixture=tuple_of("float >= 0 < 1e75", range(4, 5)),
        factors=tuple_of(tuple_of("float > 0 < 1e75", _POSITIVE), range(0, 4, 3)),
        relations=[
            ("all its amplitudes are zero", lambda kernel: sum(kernel.mixture) > 0),
            ("its factors are not those of its columns", _its_factors_are_those_of_its_columns),
        ],
    ),
    holds("Gaussian", "Laplacian", "Matern", "Additive", "Pairs", "Learnt", categorical=_PLACES),
    holds(Number, center="float", has_gaps=bool, mark={".", ","}, relations=[lambda it: math.isfinite(it.center)]),
    holds(
        Category,
        levels=_LEVELS,
        rare=_LEVELS,
        marked=_PLACES,
        relations=[
            ("a level is both rare and not", lambda it: are_distinct((*it.levels, *it.rare))),
            ("it marks codes that it does not have", lambda it: max(it.marked, default=0) <= it.missing),
        ],
    ),
    holds(MixedColumns, columns=tuple_of((Number, Category), _POSITIVE)),
    holds(
        Basis,
        kernel=_a_kernel_with_a_valid_width,
        workers=_WORKERS[0],
        row_center=(None, "int[n]"),
        relations=[
            _its_centres_are_finite_numbers,
            _it_has_a_weight_for_every_column,
            _its_codes_are_columns_of_its_centres,
        ],
    ),
    holds(
        Regions,
        column="int[s] >= 0",
        low="moderate64[s]",
        high="moderate64[s]",
        children="int[st]",
        relations=[_its_splits_are_a_tree],
    ),
    holds(
        LocalBasis,
        regions=Regions,
        ends="int[r] > 0",
        owner=None,
        device=None,
        relations=[_its_regions_have_their_own_centres],
    ),
    # the state of partial_fit
    holds(
        Moments,
        H="float64[bb]",
        h="float64[bk]",
        totals="float[k]",
        relations=[("its sums are not in Fortran order", lambda sums: sums.H.flags.f_contiguous)],
    ),
    holds(_Sample, X="float[nd]", y=("any[n]", "any[nt]"), weight="float[n]", rank="any[n]", settled=tuple),
    holds(Summary, sample=(_Sample, None), chunks=[Chunk], size=_POSITIVE, n_rows=_COUNT),
    holds(
        Partial,
        look=Summary,
        classes="any[c]",
        factors="number[c]",
        moments=(Moments, None),
        last=None,
        relations=[_its_sums_match_its_basis],
    ),
    # features
    holds(
        BagOfFeatures,
        n_features_in_=_COUNT,
        words_="float[wd]",
        _origin="float[d]",
        _scale="float[d] > 0",
        spread_="float >= 0 < inf",
        relations=[_its_lookup_has_its_words],
        when=("words_",),
    ),
    # classifiers
    holds(
        KernelClassifier,
        device=(None, _DEVICE),
        categorical_features=_a_choice_of_columns,
        columns_=(None, MixedColumns),
        _partial=(ABSENT, None, Partial),
    ),
    holds(
        KernelClassifier,
        classes_=_distinct_classes,
        coef_="moderate[bk]",
        intercept_=object,
        basis_=Basis,
        kernel_=Kernel,
        link_=Link,
        scaling_=(Scaling, None),
        _multilabel=bool,
        _on_items=bool,
        oof_proba_=(ABSENT, _probabilities_of_some_rows),
        feature_importances_=(ABSENT, "float[d] >= 0 <= 1.000001"),  # sums, so larger than 1 by rounding in old models
        fold_importances_=(ABSENT, "float[fd] >= 0 <= 1.000001"),
        learning_curve_=(ABSENT, _a_learning_curve),
        relations=[
            _it_has_learnt_about_its_own_columns,
            _its_link_matches_its_classes,
            _its_coefficients_match_its_centres_and_classes,
            _its_columns_match_its_centres_and_scaling,
            _its_codes_are_of_its_columns,
            _its_kernel_matches_its_rows,
            lambda clf: check_scores(clf, clf.coef_.shape[1]),
        ],
        when=("coef_", "basis_", "link_"),
    ),
    # preprocessing of scikit-learn
    holds("StandardScaler", mean_=_FACTORS, var_=_FACTORS, scale_=_SCALE),
    holds("RobustScaler", center_=_FACTORS, scale_=_SCALE),
    holds("MinMaxScaler", min_=_FACTORS, scale_=_SCALE),
    holds("MinMaxScaler", data_min_=_FACTORS, data_max_=_FACTORS, data_range_=_FACTORS),
    holds("MaxAbsScaler", scale_=_SCALE, max_abs_=_FACTORS),
    holds("SimpleImputer", statistics_="any[d]", when=("n_features_in_", "statistics_")),
    holds(
        "PCA", "TruncatedSVD", components_=(ABSENT, None, "factor[kd]"), explained_variance_=(ABSENT, None, "factor[k]")
    ),
    holds("PCA", mean_=_FACTORS),
    holds("VarianceThreshold", variances_=_FACTORS),
    holds("PowerTransformer", lambdas_=_FACTORS),
    holds("QuantileTransformer", quantiles_=(ABSENT, None, "factor[qd]"), references_=(ABSENT, None, "factor[q]")),
    holds(
        "Pipeline",
        steps=_names_with_transformers,
        relations=[
            ("memory names a folder, whose contents a fit would trust; it must be None", lambda it: it.memory is None),
            _its_steps_have_different_names,
            _its_steps_can_follow_each_other,
            check_pipeline,
        ],
    ),
    holds("FeatureUnion", transformer_list=_names_with_transformers, relations=[_its_steps_have_different_names]),
    holds(
        "ColumnTransformer",
        transformers=_names_with_transformers_and_columns,
        transformers_=(ABSENT, _names_with_transformers_and_columns),
        _name_to_fitted_passthrough=_TRANSFORMERS,
        relations=[_its_steps_have_different_names, _its_columns_exist],
    ),
    holds("FunctionTransformer", func=None, inverse_func=None, feature_names_out=(None, {"one-to-one"})),
    holds("OneHotEncoder", "OrdinalEncoder", *OF_TEXT, dtype=_a_numeric_type),
    holds(
        "OneHotEncoder",
        "OrdinalEncoder",
        categories_=[_text_or_sorted_numbers],
        relations=[("categories_ are of other columns", lambda it: len(it.categories_) == it.n_features_in_)],
        when=("categories_",),
    ),
    holds(
        "OneHotEncoder",
        "OrdinalEncoder",
        _infrequent_enabled=bool,
        relations=[_its_output_columns_match_its_categories],
        when=("_n_features_outs",),
    ),
    holds(
        *OF_TEXT,
        vocabulary_=(ABSENT, None, _words_numbered_without_gaps),
        _tfidf=(ABSENT, None, BaseEstimator),
        relations=[
            ("it would open files named in the rows", lambda it: getattr(it, "input", "content") == "content"),
            _its_words_can_be_found_and_weighted,
        ],
    ),
    holds("TfidfTransformer", idf_=(ABSENT, None, "float[w]")),
    holds(
        "NearestNeighbors",  # by brute force only: a tree is not plain data, and compiled code would not check it
        n_features_in_=_COUNT,
        _fit_X=("float32[nd]", "float64[nd]"),
        _fit_method={"brute"},
        _tree=None,
        effective_metric_={"euclidean"},
        effective_metric_params_=(None, {}),
        relations=[
            ("its points are not in C order", lambda lookup: lookup._fit_X.flags.c_contiguous),
            ("it has more or fewer points", lambda lookup: lookup.n_samples_fit_ == len(lookup._fit_X)),
        ],
        when=("_fit_X",),
    ),
    # tables
    holds("ApplyToEachCol", transformers_=_TRANSFORMERS),
    holds("CleanNullStrings", null_strings_=_NAMES),
    holds("Filter", "NameFilter", predicate=callable, args=tuple, kwargs=dict),
    holds(
        "ColumnKinds",
        styles_=(ABSENT, {str: _a_decimal_mark}),
        truths_=_NAMES,
        numbers_=_NAMES,
        words_=_NAMES,
        strips_=(ABSENT, bool),
        dates_=(ABSENT, {str: _a_date_format}),
        centers_=(ABSENT, {str: "float"}),
    ),
    holds(
        "PlainTable",
        levels_={str: (None, [str])},
        medians_="float32[o]",
        gaps_="int[g] >= 0 < o",
        input_to_outputs_={str: [str]},
        relations=[_its_columns_are_those_of_its_levels],
    ),
    holds(
        "TableModel",
        columns=[str],
        target=str,
        about=(ABSENT, None, _a_description_of_columns),
        relations=[_its_pipeline_can_read_frames_and_training_rows, lambda model: check(model.seen)],
    ),
    holds(
        "SeenRows",
        digests="uint64[m]",
        n_rows=_POSITIVE,
        total=_COUNT,
        repeated="float >= 0 <= 1",
        by_blake2b=bool,
        relations=[("it has more digests than rows", lambda seen: len(seen.digests) <= seen.n_rows)],
    ),
)
