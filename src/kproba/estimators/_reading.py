"""Reading the training data: rows in memory, or a sample of a source and a way to sum over all its rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import column_or_1d

from ..arrays import choose as choose_device
from ..arrays import is_tensor, to_numpy
from ..data.all_rows import AllRows, SumsOverRows
from ..data.checkpoint import Checkpoint
from ..data.columns import refuse_times
from ..data.dask import DaskSource, is_dask
from ..data.items import Items
from ..data.kinds import NotPlainNumbers
from ..data.labels import are_strings, check_weights, encode_labels, row_weights
from ..data.passes import PassRecord
from ..data.rows import Rows
from ..data.sources import ArraySource, Source, TensorSource, as_source, in_double
from ..data.summary import Summary, SummaryOf, sample_size
from ..data.sweep import sweep_source
from ..progress import RowProgress
from ..validation import check_lengths
from ._sanity import warn_of_light_rows

if TYPE_CHECKING:
    from ._base import KernelClassifier


@dataclass(frozen=True)
class Training:
    """The rows of a fit: all distinct rows of positive weight, or a sample of them.

    ``n_given`` is the number of rows passed to ``fit``. If the rows are a sample, ``everything`` computes sums over all
    rows (an ``AllRows``, or the state of ``partial_fit``). Otherwise ``inputs`` are the checked inputs and ``place``
    is the index of each of them among the distinct rows, −1 for rows of weight zero.
    """

    rows: Rows
    seed: int
    n_given: int
    everything: SumsOverRows | None = None
    inputs: Any = None
    place: np.ndarray | None = None
    saved: Checkpoint | None = None

    @property
    def is_sample(self) -> bool:
        return self.everything is not None

    @property
    def has_groups(self) -> bool:
        """Whether rows belong to groups that are left out together."""
        return self.rows.together is not None

    @property
    def size(self) -> int:
        """Number of distinct rows; for a source, whose duplicates are not counted, of all rows."""
        return self.n_given if self.is_sample else self.rows.n_distinct

    @property
    def source(self) -> AllRows:
        """``everything``, if it is a source that can be read repeatedly."""
        assert isinstance(self.everything, AllRows)
        return self.everything

    def finish(self) -> None:
        """Delete the checkpoint once the fit is complete."""
        if self.saved is not None:
            self.saved.finish()


def read(model: KernelClassifier, X, y, sample_weight, classes=None, checkpoint=None, groups=None) -> Training:
    """Check and read the training data; also sets the model's classes and the columns of X."""
    model._forget("_partial", "_is_summed_up", "loo_scores_", "loo_proba_", "oof_proba_", "columns_")
    model.device_ = choose_device(model.device, X)
    y, sample_weight = to_numpy(y), to_numpy(sample_weight)
    source = _source_of(model, X, y, sample_weight)
    if source is not None:
        _refuse_groups(groups, source.name)
        model._forget("_on_items")
        return _read_source(model, source, classes, checkpoint)
    X = model._check_inputs(to_numpy(X), reset=True)
    if isinstance(X, Items):
        model.device_ = None  # kernels of objects run on the CPU
    wants_source = classes is not None or checkpoint is not None
    if wants_source:
        _refuse_groups(groups, "X with classes= or checkpoint=")
    if (_is_large(model, X) and groups is None) or wants_source:
        weight = None if sample_weight is None else row_weights(sample_weight, X.shape[0])
        source = in_memory_source(X, y, weight, wants_source)
    if source is not None:
        return _read_source(model, source, classes, checkpoint)
    return _read_arrays(model, in_double(X), y, sample_weight, groups=groups)


def _refuse_groups(groups, what: str) -> None:
    if groups is not None:
        raise ValueError(f"groups needs all rows in memory, but {what} is read in passes; pass an array or a frame.")


def _read_arrays(model, X, y, sample_weight, saved: Checkpoint | None = None, groups=None) -> Training:
    rows, place = model._read_rows(X, y, sample_weight, groups)
    return Training(rows, model._seed(), int(np.count_nonzero(place >= 0)), inputs=X, place=place, saved=saved)


def _read_source(model, source: Source, classes, checkpoint) -> Training:
    """Summarise all rows in one pass; keep them all if they are few, otherwise a sample."""
    if (reason := model._why_in_memory()) is not None:
        raise ValueError(reason)
    if checkpoint is not None and isinstance(source, DaskSource):
        raise ValueError("checkpoint does not apply to a Dask collection: Dask recomputes lost results itself.")
    saved = None if checkpoint is None else Checkpoint(checkpoint)
    seed = model._seed() if saved is None else saved.seed(model._seed())
    source, record, summary = _summarise_table(model, source, seed, saved)
    summary.classes(classes)  # raises an error if there are no classes
    if summary.has_all and classes is None:
        return _read_few(model, summary, saved)
    model.classes_ = summary.classes(classes)
    warn_of_light_rows(summary.n_rows, summary.total_weight)
    rows, factors = summary.rows(model.classes_, model.class_weight, model._categorical)
    options = {"saved": saved, "record": record, "title": type(model).__name__, "verbose": model.verbose}
    model._is_summed_up = True
    everything = AllRows(
        source,
        summary.n_rows,
        float(factors @ summary.class_weights(model.classes_)),
        model.classes_,
        factors,
        **options,
    )
    return Training(rows, seed, summary.n_rows, everything, saved=saved)


def _name_columns(model, source: Source) -> None:
    model._forget("feature_names_in_")
    model.n_features_in_ = source.n_features
    if source.feature_names is not None:
        model.feature_names_in_ = np.asarray(source.feature_names, dtype=object)


def _summarise_table(model, source: Source, seed: int, saved: Checkpoint | None) -> tuple[Source, PassRecord, Summary]:
    """The source as a matrix, the record of its first pass, and the summary of its rows.

    If there are categories or missing values, a sample shows what the columns hold; every part is encoded with that.
    Whether numbers are missing is only known once they are read.
    """
    is_encoded = model.columns_ is not None  # a table in memory is a matrix already
    if not is_encoded and has_categories(source, model.categorical_features):
        source, is_encoded = _encoded(model, source, seed), True
    elif not is_encoded:
        _name_columns(model, source)
    record = PassRecord(inputs=saved is not None or not source.is_in_memory)
    try:
        return source, record, summarise(model, source, seed, record)
    except NotPlainNumbers:
        if is_encoded or not source.takes_gaps:
            raise
    model._forget("feature_names_in_")
    return _summarise_table(model, _encoded(model, source, seed), seed, saved)


def has_categories(source: Source, categorical_features: Any) -> bool:
    """Whether a source holds more than numbers, by the types of its columns or because the user says so."""
    is_named = not (categorical_features is None or isinstance(categorical_features, str))
    return source.has_categories or is_named


def _encoded(model, source: Source, seed: int) -> Source:
    """The source as a matrix; sets the columns of the model."""
    look = source.look(sample_size(source.n_features), seed)
    model._remember_columns(look.table)
    model.columns_ = model.columns_.with_gaps(look.gaps)
    return source.encoded(model.columns_)


def _read_few(model, summary: Summary, saved: Checkpoint | None) -> Training:
    """All rows of a small source, kept in the summary, as rows in memory."""
    X, y, weight = summary.everything()
    names = getattr(model, "feature_names_in_", None)
    X = in_double(X if model.columns_ is not None else model._check_inputs(X, reset=True))
    if names is not None:
        model.feature_names_in_ = names
    return _read_arrays(model, X, y, weight, saved)


def summarise(model, source: Source, seed: int, record: PassRecord) -> Summary:
    """One pass over all rows: how many there are, their classes, and a sample of them."""
    statistic = SummaryOf(sample_size(source.n_features), seed, model.device_)
    with RowProgress(model.verbose, source.n_rows, f"{type(model).__name__}: summary") as progress:
        summary = sweep_source(source, statistic, progress=progress, record=record)
    if not summary.n_rows:
        raise ValueError(f"{source.name} has no rows.")
    return summary


def _source_of(model, X, y, sample_weight) -> Source | None:
    """X as a source of rows; None if it is an array or list in memory."""
    if isinstance(X, str | os.PathLike):
        raise TypeError(f"X={str(X)!r} is a path; pass kproba.open_rows({str(X)!r}, target=...) to read its rows.")
    if isinstance(X, Iterator):
        raise TypeError(f"X is a {type(X).__name__}, which can be read only once; use partial_fit for batches.")
    if type(X).__module__.startswith("torch.utils.data"):
        raise TypeError(f"X is a PyTorch {type(X).__name__}; pass a tensor of all rows, or each batch to partial_fit.")
    if is_dask(X):
        refuse_times(X, type(model).__name__)
        return DaskSource(X, y, sample_weight)
    if is_tensor(X):
        if not _is_large(model, X):
            return None
        return in_memory_source(X, y, None if sample_weight is None else row_weights(sample_weight, X.shape[0]))
    if isinstance(X, np.memmap) and not _is_large(model, X):
        return None  # joblib turns arrays into memory maps
    return as_source(X, y, sample_weight)


def _is_large(model, X) -> bool:
    """Whether there are so many rows in memory that they are treated like a source."""
    if sparse.issparse(X) or X.ndim != 2:
        return False
    return X.shape[0] > sample_size(X.shape[1]) and model._why_in_memory() is None


def in_memory_source(X, y, sample_weight, wanted: bool = False) -> ArraySource | None:
    """Checked rows as a source; None for a multi-label y, which needs rows in memory. Tensors stay on their device."""
    is_single = np.ndim(y) == 1 or np.shape(y)[1:] == (1,)
    labels = column_or_1d(y, warn=True) if (wanted and is_single) or _are_plain(y) else encode_labels(y)[1]
    if labels.ndim == 2 or sparse.issparse(X) or isinstance(X, Items):
        if wanted:
            raise ValueError("partial_fit, classes and checkpoint need dense rows with one label each.")
        return None
    check_lengths(X, labels)
    weight = None if sample_weight is None else check_weights(sample_weight, X.shape[0])
    return (TensorSource if is_tensor(X) else ArraySource)(X, column_or_1d(y), weight)


def _are_plain(y) -> bool:
    """Whether y holds one integer, boolean or string per row: labels that a pass can check chunk by chunk."""
    return isinstance(y, np.ndarray) and y.ndim == 1 and (y.dtype.kind in "iubU" or are_strings(y))
