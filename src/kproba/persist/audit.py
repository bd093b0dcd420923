"""Checks of a loaded model, so that a bad file fails when it is loaded and not when it predicts.

Some of these checks are for safety: compiled code in SciPy and scikit-learn does not check indices, so the data that
indices are derived from (categories, vocabularies, points to look up) must be as ``fit`` would have created it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from ..basis.basis import Basis
from ..basis.moments import Moments
from ..data.items import Items, Memory, Sequences, Table
from ..data.scaling import Scaling
from ..data.sources import Chunk
from ..data.summary import Summary, _Sample
from ..estimators import ImportVectorMachine, KernelLogisticRegression
from ..estimators._base import KernelClassifier
from ..estimators._partial import Partial
from ..exceptions import ModelFileError
from ..features.bags import BagOfFeatures
from ..features.pictures import PictureDescriptors
from ..kernels import FromCallable, HiddenMarkovKernel, Kernel, Precomputed, as_kernels
from ..kernels.base import NARROWEST
from ..kernels.hidden_markov import Models, Spec
from ..kernels.projected import ProjectedKernel
from ..kernels.sequence import Comparisons
from ..kernels.text import Bags
from ..links import CalibratedSoftmax, CalibratedTags, Link, PerTag, link_flag
from .frame_trial import check_frame
from .trial import check_pipeline, check_scores

#: Maximum of coefficients and of the factors in links: products of three of them do not overflow.
LARGEST = 1e75
#: Range of the factors of transformers: outside of it, every row becomes too large for a kernel.
SCALES = 1e-140, 1e140
#: Maximum of column weights: the largest is one, or a few if columns are weighted twice.
RELEVANT = 1e8
#: With more coefficients per frame than this, only the diagonals of covariances are checked.
LARGE_COVARIANCE = 64
#: Maximum of n_features_in_: more than any model has, few enough to create a row.
MOST_COLUMNS = 1 << 31
_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?")
#: Maximum number of threads or processes that a file may request.
MOST_WORKERS = 1024
#: Shapes of the attributes of fitted transformers: "d" is n_features_in_, other letters must agree within an object.
_SHAPES = {
    "StandardScaler": {"mean_": "d", "var_": "d", "scale_": "d"},
    "RobustScaler": {"center_": "d", "scale_": "d"},
    "MinMaxScaler": {"min_": "d", "scale_": "d", "data_min_": "d", "data_max_": "d", "data_range_": "d"},
    "MaxAbsScaler": {"scale_": "d", "max_abs_": "d"},
    "SimpleImputer": {"statistics_": "d"},
    "PCA": {"components_": "kd", "mean_": "d", "explained_variance_": "k"},
    "TruncatedSVD": {"components_": "kd"},
    "VarianceThreshold": {"variances_": "d"},
    "PowerTransformer": {"lambdas_": "d"},
    "QuantileTransformer": {"quantiles_": "qd", "references_": "q"},
}


def check_model(model: Any, objects: list[Any]) -> None:
    """Raise an error for anything that ``fit`` and ``save`` would not create. Parts are checked before the whole."""
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"it contains a {type(model).__name__}, not a model.")
    for obj in objects:
        check(obj)
    check_frame(model, objects)


def check(obj: Any) -> None:
    """Run all checks that apply to the type of the object."""
    for kind, of_kind in _CHECKS.items():
        if isinstance(obj, kind):
            of_kind(obj)
    of_others = _PREPROCESSING_CHECKS.get(type(obj).__name__)
    if of_others is not None:
        of_others(obj)


def _need(condition: Any, obj: Any, what: str) -> None:
    if not condition:
        raise ModelFileError(f"{type(obj).__name__}: {what}.")


def _is_count(value: Any, least: int = 0) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_numbers(value: Any, ndim: int, kinds: str = "fiub") -> bool:
    """Whether a value is a finite array with ``ndim`` dimensions."""
    fits = isinstance(value, np.ndarray) and value.ndim == ndim and value.dtype.kind in kinds
    return fits and (value.dtype.kind != "f" or bool(np.isfinite(value).all()))


def _is_moderate(value: Any, ndim: int) -> bool:
    """Whether a value is an array of floats whose products do not overflow."""
    return _is_numbers(value, ndim, "f") and bool((np.abs(value) < LARGEST).all())


def _are_distinct(numbers: Iterable[Any]) -> bool:
    """Whether all numbers differ, by sorting: a set could take forever if they are chosen to have the same hash."""
    ordered = sorted(numbers)
    return all(one != two for one, two in pairwise(ordered))


def _is_below(value: Any, most: Any) -> bool:
    """Whether a value is a vector of integers from 0 to below ``most``."""
    return _is_numbers(value, 1, "iu") and bool(((value >= 0) & (value < most)).all())


# ---------------------------------------------------------------- estimators


def _check_estimator(obj: BaseEstimator) -> None:
    jobs = getattr(obj, "n_jobs", None)
    is_count = isinstance(jobs, Integral) and not isinstance(jobs, bool) and 0 < abs(int(jobs)) <= MOST_WORKERS
    _need(jobs is None or is_count, obj, "n_jobs is zero, too large, or not an integer")
    for name, value in vars(obj).items():  # a type is callable, but no function that steps could call
        _need(name == "dtype" or not isinstance(value, type), obj, f"{name} is a type")
    if hasattr(obj, "_parameter_constraints"):
        obj._validate_params()
    d = vars(obj).get("n_features_in_", 0)
    _need(_is_count(d) and d <= MOST_COLUMNS, obj, "n_features_in_ is not a valid number of columns")
    names = getattr(obj, "feature_names_in_", None)
    if isinstance(names, np.ndarray):
        _need(names.ndim == 1 and all(isinstance(name, str) for name in names), obj, "feature_names_in_ is not text")
        _need(len(names) == getattr(obj, "n_features_in_", len(names)), obj, "feature_names_in_ has the wrong length")


def _check_classifier(clf: KernelClassifier) -> None:
    clf._check_parameters()
    device = clf.device
    _need(device is None or (isinstance(device, str) and _DEVICE.fullmatch(device)), clf, "device is not valid")
    _need(isinstance(vars(clf).get("_partial"), Partial | None), clf, "the state of partial_fit is not valid")
    if not {"coef_", "basis_", "link_"} & set(vars(clf)):
        return
    for name in ("coef_", "basis_", "link_", "scaling_", "intercept_", "classes_", "_multilabel", "kernel_"):
        _need(name in vars(clf), clf, f"it is fitted, but has no {name}")
    _need(isinstance(clf._multilabel, bool) and isinstance(clf._on_items, bool), clf, "its type of rows is missing")
    c = _check_classes(clf)
    _need(isinstance(clf.basis_, Basis) and isinstance(clf.kernel_, Kernel), clf, "basis_ or kernel_ is not valid")
    b, k = clf.basis_.n_centers, _n_scores(clf, c)
    _need(_is_moderate(clf.coef_, 2) and clf.coef_.shape == (b, k), clf, f"coef_ must have the shape ({b}, {k})")
    _check_intercept(clf, k)
    _check_link(clf, c)
    _check_columns(clf)
    _check_reading(clf)
    owner = clf.basis_.owner
    _need(owner is None or (_is_below(owner, c) and len(owner) == b), clf, "the owners of centres are not classes")
    check_scores(clf, k)


def _check_reading(clf) -> None:
    """Check that the kernel parameter, which reads rows, and the fitted kernel are for the same type of rows."""
    asked, fitted = as_kernels(clf.kernel)[0], clf.basis_.kernel
    fitted = fitted.kernel if isinstance(fitted, ProjectedKernel) else fitted
    same = type(asked) is type(fitted) if clf._on_items else type(asked).read is Kernel.read
    _need(same, clf, "its kernel does not match the type of its centres")
    _need(clf._is_precomputed == isinstance(fitted, Precomputed), clf, "its kernel does not match its rows")
    if isinstance(fitted, HiddenMarkovKernel):
        _check_fitted_models(clf.basis_.centers, fitted)
        if isinstance(clf.basis_.kernel, ProjectedKernel):
            _check_fitted_models(clf.basis_.kernel.landmarks, fitted)


def _check_fitted_models(items: Sequences, kernel: HiddenMarkovKernel) -> None:
    """Check that sequences have models, so that these are not fitted again for a prediction."""
    known = items.memory.entries.get(kernel._spec)
    there = isinstance(known, Comparisons) and known.spec == kernel._spec and np.isfinite(known.own).all()
    _need(there, items, "its models belong to another kernel")
    _need(items.lengths.min() >= max(2, kernel.n_states), items, "its sequences are shorter than their models")


def _n_scores(clf, c: int) -> int:
    """Number of columns of coef_: one per class, and for least squares on tags also their constants."""
    if not clf._multilabel or isinstance(clf, KernelLogisticRegression | ImportVectorMachine):
        return c
    _need(isinstance(clf.link_, PerTag | CalibratedTags), clf, f"link_ is a {type(clf.link_).__name__}")
    return int(clf.link_.constant.max()) + 1


def _check_classes(clf) -> int:
    classes = clf.classes_
    fits = isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "biufUSO"
    _need(fits and len(classes) >= (1 if clf._multilabel else 2), clf, "classes_ is not a list of classes")
    texts = [label for label in classes.tolist() if isinstance(label, str | bytes)]
    numbers = [label for label in classes.tolist() if not isinstance(label, str | bytes)]
    _need(
        all(isinstance(label, Real | np.bool_) and math.isfinite(label) for label in numbers),
        clf,
        "classes_ is not valid",
    )
    _need(len(set(texts)) == len(texts) and _are_distinct(numbers), clf, "classes_ has duplicates")
    return len(classes)


def _check_intercept(clf, k: int) -> None:
    intercept = np.asarray(clf.intercept_)
    fits = intercept.dtype.kind in "fiu" and intercept.shape in ((), (k,)) and (np.abs(intercept) < LARGEST).all()
    _need(fits, clf, f"intercept_ must be one number or {k} numbers")


def _check_link(clf, c: int) -> None:
    link = clf.link_
    if isinstance(link, PerTag | CalibratedTags):
        _need(clf._multilabel and len(link.constant) == c, clf, f"link_ must have {c} tags")
        return
    _need(isinstance(link, Link), clf, f"link_ is a {type(link).__name__}")
    expected = link_flag(clf.link, "gives_probabilities")
    _need(link.gives_probabilities or not expected, clf, "link_ gives no probabilities")
    _need(not isinstance(link, CalibratedSoftmax) or len(link.prior) == c, clf, f"link_ does not have {c} classes")


def _check_columns(clf) -> None:
    """Check that centres, scaling and the number of columns match."""
    d, centers, scaling = getattr(clf, "n_features_in_", None), clf.basis_.centers, clf.scaling_
    _need(scaling is None or isinstance(scaling, Scaling), clf, "scaling_ is not valid")
    if isinstance(centers, Items):
        _need(clf._on_items, clf, "its centres are not rows of a table")
        if not isinstance(centers, Sequences):
            _need(scaling is None and d is None, clf, "items have no columns and are not scaled")
            return
        _need(centers.n_coefficients == d, clf, f"its centres do not have {d} coefficients per frame")
        _need(scaling is None or len(scaling.center) == d, clf, f"scaling_ does not have {d} coefficients")
        _need(scaling is None or _is_moderate(scaling.center / scaling.scale, 1), clf, "its frames are scaled too much")
        _need(scaling is None or _is_moderate(1.0 / scaling.scale, 1), clf, "its frames are scaled too much")
        return
    _need(_is_count(d, 1) and not clf._on_items, clf, "n_features_in_ is not a valid number of columns")
    if isinstance(clf.basis_.kernel, Precomputed):
        _need(scaling is None and _is_below(centers, d), clf, f"its centres must be columns below {d}")
        return
    _need(centers.ndim == 2 and centers.shape[1] == d, clf, f"its centres do not have {d} columns")
    _need(scaling is None or len(scaling.center) == d, clf, f"scaling_ does not have {d} columns")


def _check_basis(basis: Basis) -> None:
    kernel, centers = basis.kernel, basis.centers
    _need(isinstance(kernel, Kernel) and not isinstance(kernel, FromCallable), basis, "its kernel is not valid")
    _check_width(kernel)
    _need(_is_count(basis.workers, 1) and basis.workers <= MOST_WORKERS, basis, "its number of workers is not valid")
    _need(
        basis.row_center is None or _is_numbers(basis.row_center, 1, "iu"),
        basis,
        "row_center is not a list of integers",
    )
    if isinstance(centers, Items):
        return
    ndim = 1 if isinstance(kernel, Precomputed) else 2
    values = centers.data if sparse.issparse(centers) else centers
    _need(_is_numbers(values, 1 if sparse.issparse(centers) else ndim), basis, "its centres are not finite numbers")
    _need(centers.shape[0] > 0, basis, "it has no centres")


def _check_width(kernel: Kernel) -> None:
    chosen = not kernel.has_width or (kernel.width is not None and kernel.width >= NARROWEST)
    _need(chosen, kernel, "its width is missing or not valid")


def _check_projected(kernel: ProjectedKernel) -> None:
    """Only sequences have such kernels; for tables, the matrix would take the square of the number of centres."""
    _need(isinstance(kernel.kernel, Kernel) and kernel.kernel.is_projected, kernel, "its kernel needs no projection")
    _check_width(kernel.kernel)
    _need(isinstance(kernel.landmarks, Sequences), kernel, "it has no landmarks")
    m = len(kernel.landmarks)
    fits = _is_numbers(kernel.values, 1, "f") and _is_numbers(kernel.vectors, 2, "f")
    _need(fits and kernel.values.shape == (m,) and kernel.vectors.shape == (m, m), kernel, f"it does not have {m} rows")
    _need(np.abs(kernel.vectors).max() < 1.0 + 1e-6, kernel, "its vectors are longer than one")
    _need(np.abs(kernel.values).max() < LARGEST, kernel, "its eigenvalues are too large")


def _check_scaling(scaling: Scaling) -> None:
    parts = (scaling.center, scaling.scale, scaling.relevance)
    _need(all(_is_numbers(part, 1, "f") for part in parts), scaling, "its parts are not finite numbers")
    _need(_is_numbers(scaling.squashed, 1, "b"), scaling, "squashed is not a list of booleans")
    _need(len({len(part) for part in (*parts, scaling.squashed)}) == 1, scaling, "its parts have different lengths")
    _need((scaling.scale > 0).all() and (scaling.relevance > 0).all(), scaling, "scale and relevance must be positive")
    _need((scaling.relevance < RELEVANT).all(), scaling, "relevance is too large")


def _check_calibrated(link: CalibratedSoftmax) -> None:
    parts = (link.prior, link.slope, link.offset)
    _need(all(_is_moderate(part, 1) for part in parts), link, "its parts are not finite numbers")
    _need(len({len(part) for part in parts}) == 1, link, "its parts have different lengths")
    _need((link.prior > 0).all(), link, "prior must be positive")
    _need(
        isinstance(link.sharpness, float) and 0 < link.sharpness < LARGEST, link, "sharpness must be a positive number"
    )
    span = link.span
    _need(
        isinstance(span, tuple) and len(span) == 2 and all(isinstance(x, float) for x in span),
        link,
        "span must be a pair",
    )
    _need(span[0] <= span[1], link, "span must be in order")


def _check_per_tag(link: PerTag) -> None:
    is_plain = isinstance(link.link, Link) and not isinstance(link.link, PerTag | CalibratedTags)
    _need(is_plain, link, "its link is not valid")
    _check_constants(link)


def _check_constants(link: Any) -> None:
    """Check that the columns of constants come after those of the tags."""
    n_tags = len(link.constant) if isinstance(link.constant, np.ndarray) else 0
    _need(n_tags > 0 and _is_below(link.constant, 2 * n_tags), link, "its constants are not columns")
    _need((link.constant >= n_tags).all(), link, "its constants are tags")


def _check_calibrated_tags(link: CalibratedTags) -> None:
    _check_constants(link)
    n_tags = len(link.constant)
    for name, ndim in (("prior", 1), ("sharpness", 1), ("offset", 1), ("slope", 2), ("span", 2)):
        part = getattr(link, name)
        fits = _is_moderate(part, ndim) and part.shape == (2, n_tags)[2 - ndim :]
        _need(fits, link, f"{name} is not a list of finite numbers, one for each tag")
    _need(
        ((link.prior > 0) & (link.prior < 1)).all() and (link.sharpness > 0).all(),
        link,
        "prior or sharpness is not valid",
    )
    _need((link.span[0] <= link.span[1]).all(), link, "its spans are not in order")


# ---------------------------------------------------------------- items


def _check_items(items: Items) -> None:
    _need(isinstance(items.memory, Memory), items, "it has no memory")
    if isinstance(items, Sequences):
        _need(_is_moderate(items._frames, 2) and _is_numbers(items._ends, 1, "iu"), items, "it has no frames")
        _need(items._frames.dtype == np.float64 and len(items._ends) > 0, items, "it has no frames")
        grows = (np.diff(items._ends, prepend=0) > 0).all()
        _need(grows and items._ends[-1] == len(items._frames), items, "the lengths do not match the frames")
    else:
        values = items._values
        _need(isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == object, items, "it has no values")
    whole = _is_numbers(items._index, 1, "iu") and np.array_equal(items._index, np.arange(items._n_all))
    _need(whole, items, "its indices are not those of its items, each once and in order")
    for entry in items.memory.entries.values():
        n = len(entry.counts.indptr) - 1 if isinstance(entry, Bags) else getattr(entry, "n", None)
        n = len(entry.own) if isinstance(entry, Comparisons) else n
        _need(
            isinstance(entry, Bags | Comparisons | Table) and n == items._n_all, items, "its memory has invalid entries"
        )


def _check_memory(memory: Memory) -> None:
    _need(isinstance(memory.entries, dict), memory, "it has no entries")


def _check_table(table: Table) -> None:
    _need(_is_count(table.n) and table._values is None, table, "it must not have cached values")


def _check_bags(bags: Bags) -> None:
    _need(sparse.issparse(bags.counts) and _is_numbers(bags.square, 1, "f"), bags, "it has no counts")
    _need(_is_numbers(bags.counts.data, 1) and (bags.square > 0).all(), bags, "its counts are not numbers")
    fits = isinstance(bags.codes, np.ndarray) and bags.codes.dtype == np.uint64 and _are_distinct(bags.codes.tolist())
    _need(fits and bags.counts.shape == (len(bags.square), len(bags.codes)), bags, "its parts do not match")


def _check_models(models: Models) -> None:
    _need(
        all(isinstance(part, np.ndarray) and part.dtype == np.float64 for part in models.parts),
        models,
        "its parts are not arrays",
    )
    _need(models.mean.ndim == 3, models, "its means do not have three dimensions")
    m, s, d = models.mean.shape
    shapes = [part.shape for part in (models.start, models.transition)]
    _need(shapes == [(m, s), (m, s, s)] and s > 0, models, "its states do not match")
    _need(models.covariance.shape in ((m, s, d), (m, s, d, d)), models, "its covariances have the wrong shape")
    _need(
        all((np.abs(part) < LARGEST).all() for part in models.parts), models, "it has NaN, infinite or too large values"
    )
    probabilities = (models.start, models.transition)
    _need(
        all((part >= 0).all() and (part.sum(axis=-1) > 0).all() for part in probabilities),
        models,
        "its probabilities are not valid",
    )
    _need(_are_covariances(models.covariance), models, "its covariances are not positive definite")


def _are_covariances(found: np.ndarray) -> bool:
    """Whether covariances are positive; only their diagonals if they are large, since eigenvalues take too long."""
    if found.ndim == 4 and found.shape[-1] > LARGE_COVARIANCE:
        found = np.diagonal(found, axis1=2, axis2=3)
    return bool(((found if found.ndim == 3 else np.linalg.eigvalsh(found)) > 1.0 / LARGEST).all())


def _check_comparisons(known: Comparisons) -> None:
    _need(isinstance(known.spec, Spec) and isinstance(known.table, Table), known, "it has no spec or table")
    fits = isinstance(known.own, np.ndarray) and known.own.ndim == 1 and known.own.dtype == np.float64
    _need(fits and known.table.n == len(known.own), known, "its parts have different lengths")
    _need(not np.isinf(known.own).any(), known, "it has infinite likelihoods")
    if known._models is None:
        _need(np.isnan(known.own).all(), known, "its models are missing")
        return
    _need(isinstance(known._models, Models) and len(known._models) == len(known.own), known, "its models do not match")
    _need(known._models.start.shape[1] == known.spec.n_states, known, "its models have the wrong number of states")


# ---------------------------------------------------------------- partial fits, bags of features, pictures


def _check_moments(moments: Moments) -> None:
    _need(_is_numbers(moments.H, 2, "f") and _is_numbers(moments.h, 2, "f"), moments, "it has no sums")
    b, k = moments.h.shape
    fits = moments.H.shape == (b, b) and _is_numbers(moments.totals, 1, "f") and moments.totals.shape == (k,)
    _need(fits and moments.H.dtype == moments.h.dtype == np.float64, moments, "its sums do not match")
    _need(moments.H.flags.f_contiguous, moments, "its sums are not in Fortran order")


def _check_look(look: Summary) -> None:
    _need(isinstance(look.sample, _Sample | None) and isinstance(look.chunks, list), look, "its sample is not valid")
    _need(_is_count(look.size, 1) and _is_count(look.n_rows), look, "its numbers of rows are not valid")
    _need(all(isinstance(chunk, Chunk) for chunk in look.chunks), look, "its rows are not valid")


def _check_sample(sample: _Sample) -> None:
    _need(
        _is_numbers(sample.X, 2, "f") and _is_numbers(sample.weight, 1, "f"), sample, "its rows are not finite numbers"
    )
    parts = (sample.X, sample.y, sample.weight, sample.rank)
    _need(all(isinstance(part, np.ndarray) and part.ndim for part in parts), sample, "its parts are not arrays")
    _need(len({len(part) for part in parts}) == 1, sample, "its parts have different lengths")


def _check_partial(partial: Partial) -> None:
    _need(
        isinstance(partial.look, Summary) and isinstance(partial.classes, np.ndarray),
        partial,
        "it has no summary or classes",
    )
    _need(partial.last is None and isinstance(partial.moments, Moments | None), partial, "its sums are not valid")
    if partial.statistic is not None and partial.moments is not None:
        basis = partial.statistic.basis
        _need(
            isinstance(basis, Basis) and basis.n_centers == len(partial.moments.h),
            partial,
            "its sums do not match its basis",
        )
    _need(
        _is_numbers(partial.factors, 1) and len(partial.factors) == len(partial.classes),
        partial,
        "its factors do not match its classes",
    )


def _check_bag(bag: BagOfFeatures) -> None:
    bag._check_options()
    if "words_" not in vars(bag):
        return
    d, words, lookup = bag.n_features_in_, bag.words_, bag._lookup
    _need(_is_numbers(words, 2, "f") and words.shape[1] == d and len(words) > 0, bag, "words_ is not a numeric matrix")
    for part in (bag._origin, bag._scale):
        _need(_is_numbers(part, 1, "f") and len(part) == d, bag, f"its origin or scale does not have {d} columns")
    _need((bag._scale > 0).all(), bag, "its scale must be positive")
    _need(type(lookup).__name__ == "NearestNeighbors", bag, "its word lookup is missing")
    _need(
        lookup._fit_X.shape == words.shape and lookup._fit_X.dtype == words.dtype,
        bag,
        "its word lookup does not match words_",
    )
    _need(isinstance(bag.spread_, float) and 0 <= bag.spread_ < np.inf, bag, "spread_ is not a number")


def _check_lookup(lookup: Any) -> None:
    """Only brute force is allowed: a tree is not plain data, and compiled code would not check it."""
    if "_fit_X" not in vars(lookup):
        return
    fits = lookup._fit_method == "brute" and lookup._tree is None and lookup.effective_metric_ == "euclidean"
    _need(fits and lookup.effective_metric_params_ in ({}, None), lookup, "only brute force can be loaded")
    points = lookup._fit_X
    _need(_is_numbers(points, 2, "f") and points.flags.c_contiguous, lookup, "its points are not finite numbers")
    fits = lookup.n_samples_fit_ == len(points) and lookup.n_features_in_ == points.shape[1]
    _need(fits and points.dtype in (np.float32, np.float64), lookup, "its points have the wrong shape")


_CHECKS: dict[type, Callable[[Any], None]] = {
    BaseEstimator: _check_estimator,
    Table: _check_table,
    Memory: _check_memory,
    Bags: _check_bags,
    Models: _check_models,
    Comparisons: _check_comparisons,
    Items: _check_items,
    ProjectedKernel: _check_projected,
    Scaling: _check_scaling,
    CalibratedSoftmax: _check_calibrated,
    PerTag: _check_per_tag,
    CalibratedTags: _check_calibrated_tags,
    Basis: _check_basis,
    Moments: _check_moments,
    _Sample: _check_sample,
    Summary: _check_look,
    Partial: _check_partial,
    BagOfFeatures: _check_bag,
    PictureDescriptors: PictureDescriptors._check_options,
    KernelClassifier: _check_classifier,
}


# ---------------------------------------------------------------- preprocessing of other libraries


def _check_shapes(obj: Any) -> None:
    """Check that the arrays of a transformer have the shapes that ``fit`` gives them."""
    sizes = {"d": vars(obj)["n_features_in_"]} if "n_features_in_" in vars(obj) else {}
    for name, letters in _SHAPES[type(obj).__name__].items():
        array = vars(obj).get(name)
        if array is None and (name != "statistics_" or "d" not in sizes):
            continue
        _need(
            isinstance(array, np.ndarray) and array.ndim == len(letters),
            obj,
            f"{name} is not an array with {len(letters)} dimension(s)",
        )
        for letter, size in zip(letters, array.shape):
            _need(sizes.setdefault(letter, size) == size, obj, f"{name} has the wrong shape {array.shape}")
        if array.dtype.kind == "f" and type(obj).__name__ != "SimpleImputer":
            _need((np.abs(array.astype(float)) < SCALES[1]).all(), obj, f"{name} has NaN, infinite or too large values")
        _need(
            name != "scale_" or (np.abs(array.astype(float)) > SCALES[0]).all(),
            obj,
            "scale_ has zeros or too small values",
        )


#: These turn text into numbers, so that no other step can come before them.
_OF_TEXT = ("CountVectorizer", "HashingVectorizer", "TfidfVectorizer")


def _check_pipeline(pipeline: Any) -> None:
    _need(
        pipeline.memory is None,
        pipeline,
        "memory names a folder, whose contents a fit would trust; it must be None",
    )
    _check_steps(pipeline, pipeline.steps)
    kept = not any(isinstance(step, str) and step == "drop" for _, step in pipeline.steps)
    _need(kept, pipeline, "a step of a pipeline cannot be dropped")
    for (_, before), (_, step) in pairwise(pipeline.steps):
        fits = not isinstance(step, BagOfFeatures) or isinstance(before, PictureDescriptors)
        _need(fits, pipeline, f"{type(before).__name__} does not return items for BagOfFeatures")
        _need(type(step).__name__ not in _OF_TEXT, pipeline, f"{type(before).__name__} makes no text")
    check_pipeline(pipeline)


def _check_steps(owner: Any, steps: Any, length: int = 2) -> None:
    _need(isinstance(steps, list) and steps, owner, "it has no steps")
    for step in steps:
        fits = isinstance(step, tuple) and len(step) == length and isinstance(step[0], str)
        _need(fits and _is_step(step[1]), owner, "a step is not a name with a transformer")
    _need(_are_distinct(step[0] for step in steps), owner, "two steps have the same name")


def _is_step(step: Any) -> bool:
    return (
        isinstance(step, BaseEstimator) or step is None or (isinstance(step, str) and step in ("passthrough", "drop"))
    )


def _check_union(union: Any) -> None:
    _check_steps(union, union.transformer_list)


def _check_columns_of(transformer: Any) -> None:
    _check_steps(transformer, transformer.transformers, 3)
    if "transformers_" in vars(transformer):
        _check_steps(transformer, transformer.transformers_, 3)
        valid = all(_are_columns(columns, transformer) for _, _, columns in transformer.transformers_)
        _need(valid, transformer, "it has transformers for columns that do not exist")
    passed = getattr(transformer, "_name_to_fitted_passthrough", {})
    _need(isinstance(passed, dict), transformer, "its passthrough columns are not valid")
    _need(
        all(isinstance(step, BaseEstimator) for step in passed.values()),
        transformer,
        "its passthrough columns are not valid",
    )


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


def _check_function_transformer(transformer: Any) -> None:
    functions = (transformer.func, transformer.inverse_func)
    _need(functions == (None, None), transformer, "it has a function, which cannot be loaded")
    names = transformer.feature_names_out
    _need(names in (None, "one-to-one"), transformer, "feature_names_out is a function")


def _check_categories(encoder: Any) -> None:
    """Check categories: the output columns are derived from them and put into a sparse matrix without checks."""
    _check_output_type(encoder)
    if "categories_" not in vars(encoder):
        return
    categories = encoder.categories_
    _need(
        isinstance(categories, list) and len(categories) == encoder.n_features_in_, encoder, "categories_ is not valid"
    )
    for known in categories:
        _need(isinstance(known, np.ndarray) and known.ndim == 1 and len(known) > 0, encoder, "categories_ is not valid")
        _need(known.dtype.kind in "OUSfiub", encoder, "categories_ are neither text nor numbers")
        _need(known.dtype.kind != "f" or not np.isinf(known).any(), encoder, "categories_ has infinity")
        if known.dtype.kind not in "OUS":  # numbers are looked up by bisection
            sure = known[:-1] if known.dtype.kind == "f" and known[-1] != known[-1] else known
            _need((sure[:-1] < sure[1:]).all(), encoder, "categories_ are not sorted")
    if "_n_features_outs" in vars(encoder):
        sizes = _check_infrequent(encoder, categories)
        _check_dropped(encoder, sizes)
        _need(
            encoder._n_features_outs == encoder._compute_n_features_outs(),
            encoder,
            "its number of output columns is wrong",
        )


def _check_output_type(transformer: Any) -> None:
    """Check the output type: a long text type would take its length for every value."""
    _need(np.dtype(transformer.dtype).kind in "fiubO", transformer, "dtype is not a numeric type")


def _check_infrequent(encoder: Any, categories: list[np.ndarray]) -> list[int]:
    """Check infrequent categories, which share a number; returns how many categories each column has left."""
    sizes = [len(known) for known in categories]
    _need(isinstance(encoder._infrequent_enabled, bool), encoder, "_infrequent_enabled is not a boolean")
    if not encoder._infrequent_enabled:
        return sizes
    rare, mappings = encoder._infrequent_indices, encoder._default_to_infrequent_mappings
    _need(len(rare) == len(mappings) == len(sizes), encoder, "its infrequent categories do not match its columns")
    for number, (own, mapping) in enumerate(zip(rare, mappings)):
        _need((own is None) == (mapping is None), encoder, "its infrequent categories are not valid")
        if own is not None:
            distinct = _is_below(own, sizes[number]) and len(own) > 0 and _are_distinct(own.tolist())
            _need(distinct, encoder, "its infrequent categories are not valid")
            n_left = sizes[number] - len(own) + 1
            _need(
                _is_below(mapping, n_left) and len(mapping) == sizes[number],
                encoder,
                "its infrequent mapping is not valid",
            )
            sizes[number] = n_left
    return sizes


def _check_dropped(encoder: Any, sizes: list[int]) -> None:
    for dropped in (encoder._drop_idx_after_grouping, encoder.drop_idx_):
        if dropped is not None:
            fits = isinstance(dropped, np.ndarray) and dropped.shape == (len(sizes),)
            _need(fits, encoder, "its dropped categories do not match its columns")
    dropped = encoder._drop_idx_after_grouping
    for place, size in zip([] if dropped is None else dropped.tolist(), sizes):
        _need(place is None or (_is_count(place) and place < size), encoder, "it drops a category that does not exist")


def _check_vocabulary(vectorizer: Any) -> None:
    """Check that words are numbered without gaps: the numbers are put into a sparse matrix without checks."""
    _need(getattr(vectorizer, "input", "content") == "content", vectorizer, "it would open files named in the rows")
    _check_output_type(vectorizer)
    has_pattern = vectorizer.analyzer != "word" or isinstance(vectorizer.token_pattern, str)
    _need(has_pattern or vectorizer.tokenizer is not None, vectorizer, "token_pattern is not a pattern")
    weighing = vars(vectorizer).get("_tfidf")
    _need(weighing is None or isinstance(weighing, BaseEstimator), vectorizer, "its TF-IDF transformer is not valid")
    words = vars(vectorizer).get("vocabulary_")
    if words is None:
        return
    _need(isinstance(words, dict) and all(map(_is_count, words.values())), vectorizer, "vocabulary_ is not valid")
    without_gaps = all(number < len(words) for number in words.values()) and _are_distinct(words.values())
    _need(without_gaps, vectorizer, "vocabulary_ is not numbered without gaps")
    weights = getattr(weighing, "idf_", None)
    _need(weights is None or len(weights) == len(words), vectorizer, "its weights do not match its words")


def _check_tfidf(transformer: Any) -> None:
    weights = vars(transformer).get("idf_")
    _need(weights is None or _is_numbers(weights, 1, "f"), transformer, "idf_ is not a list of numbers")


def _check_each_column(transformer: Any) -> None:
    fitted = vars(transformer).get("transformers_", {})
    fits = isinstance(fitted, dict) and all(isinstance(step, BaseEstimator) for step in fitted.values())
    _need(fits, transformer, "transformers_ lacks a transformer for a column")


def _check_column_kinds(reader: Any) -> None:
    styles = vars(reader).get("styles_", {})
    fits = isinstance(styles, dict) and all(isinstance(name, str) for name in styles)
    marks = fits and all(isinstance(mark, str) and mark in (".", ",") for mark in styles.values())
    _need(marks, reader, "styles_ lacks a decimal mark for a column")
    for attribute in ("truths_", "numbers_", "words_"):
        _need(_are_names(vars(reader).get(attribute, [])), reader, f"{attribute} is not a list of names")


def _check_table_model(model: Any) -> None:
    _need(hasattr(model.pipeline, "predict_proba"), model, "its pipeline has no predict_proba")
    _need(
        _are_names(model.columns) and isinstance(model.target, str), model, "its columns or target are not valid names"
    )
    if model.seen is not None:
        steps = getattr(model.pipeline, "named_steps", {})
        _need("columnkinds" in steps and "tablevectorizer" in steps, model, "its pipeline cannot read training rows")
        _check_seen_rows(model.seen)


def _check_seen_rows(seen: Any) -> None:
    digests = seen.digests
    is_list = isinstance(digests, np.ndarray) and digests.ndim == 1 and digests.dtype == np.uint64
    _need(is_list and len(digests) <= seen.n_rows, seen, "digests are not 64 bits per row")
    _need(_is_count(seen.n_rows, 1) and _is_count(seen.total), seen, "its numbers of rows are not valid")
    _need(isinstance(seen.repeated, float) and 0 <= seen.repeated <= 1, seen, "repeated is not between 0 and 1")


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _check_filter(selector: Any) -> None:
    _need(callable(selector.predicate) and isinstance(selector.args, tuple), selector, "it has no predicate")
    _need(isinstance(selector.kwargs, dict), selector, "it has no arguments")


_PREPROCESSING_CHECKS: dict[str, Callable[[Any], None]] = {
    **dict.fromkeys(_SHAPES, _check_shapes),
    "Pipeline": _check_pipeline,
    "FeatureUnion": _check_union,
    "ColumnTransformer": _check_columns_of,
    "FunctionTransformer": _check_function_transformer,
    "OneHotEncoder": _check_categories,
    "OrdinalEncoder": _check_categories,
    "CountVectorizer": _check_vocabulary,
    "TfidfVectorizer": _check_vocabulary,
    "HashingVectorizer": _check_vocabulary,
    "TfidfTransformer": _check_tfidf,
    "NearestNeighbors": _check_lookup,
    "ApplyToEachCol": _check_each_column,
    "ColumnKinds": _check_column_kinds,
    "TableModel": _check_table_model,
    "Filter": _check_filter,
    "NameFilter": _check_filter,
}
