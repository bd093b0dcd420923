"""Fitting from sources of rows: one look at them, a sample in memory that decides, and one pass that sums up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from ..basis import Basis, MomentsOf
from ..checkpoint import Checkpoint
from ..data.dask import DaskSource, is_dask
from ..data.labels import check_weights, class_factors, encode, encode_labels
from ..data.look import Look, Looking, sample_size
from ..data.rows import Rows
from ..data.sources import ArraySource, Source, as_source, check_chunk
from ..kernels import Kernel, as_kernels
from ..moments import Moments
from ..progress import RowProgress
from ..scaling import MODES as SCALINGS
from ..selection import TimesMedian
from ..sweep import sweep_source
from ._base import (
    WHO_STREAMS,
    KernelClassifier,
    check_choice,
    check_folds,
    check_lengths,
    check_positive,
    scaled_rows,
)

#: Sums over all rows for a basis and the scaling that goes before it.
SumUp = Callable[[Basis, Any], Moments]


@dataclass
class Partial:
    """What ``partial_fit`` keeps between calls: a look at all rows so far, and their sums once there is a basis."""

    look: Look
    classes: np.ndarray
    factors: np.ndarray
    statistic: MomentsOf | None = None
    moments: Moments | None = None
    last: ArraySource | None = None
    #: rows for which the ridge was chosen
    n_chosen: int = 0

    def take(self, source: ArraySource) -> None:
        """Look at more rows, and add them to the sums."""
        encode(np.asarray(source.labels), self.classes)  # before anything is changed
        for chunk in source.chunks():
            self.look = self.look.add(check_chunk(chunk, source))
        self.last = source
        if self.statistic is not None:
            self.moments = sweep_source(source, self.statistic, total=self.moments)

    def sum_up(self, basis: Basis, scaling) -> Moments:
        """The sums of the first rows, in the basis that they chose."""
        self.statistic = MomentsOf(basis, scaling, self.classes, self.factors)
        self.moments = sweep_source(self.last, self.statistic)
        self.n_chosen = self.look.n_rows
        return self.moments

    def __getstate__(self):
        return {**self.__dict__, "last": None}  # rows that have been summed up need not be kept


class StreamedClassifier(KernelClassifier):
    """Base of classifiers whose fit needs the rows only for their moments.

    A subclass says how a fit goes on from rows in memory (``_fit_rows``), given the sums of all rows where these are
    more than that.
    """

    #: whether the moments of all rows are all that a fit needs of them
    _streams = True
    _partial: Partial

    def fit(self, X, y=None, sample_weight=None, *, classes=None, checkpoint=None):
        """Fit the classifier.

        Parameters
        ----------
        X : array, frame or CSR matrix of shape (n, d), or a source of rows
            A source is a memory map, a Dask array or frame, or what :func:`kproba.open_rows` returns. Rows in memory
            are one too if they are more than 50,000: then a sample of them decides, and all are summed up.
        y : array of shape (n,), or a 0/1 matrix (n, n_tags) for a multi-label problem
            Files bring their own labels.
        sample_weight : array of shape (n,), optional
            Weight of each row. An integer weight equals so many copies of the row.
        classes : sequence, optional
            Classes that the model shall know beside those in y.
        checkpoint : path of a folder, optional
            Where the sums so far are kept while a source is read; the same call goes on from there.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._forget("_partial", "loo_scores_", "loo_proba_")
        source = self._source_of(X, y, sample_weight)
        if source is not None:
            self._forget("feature_names_in_")
        else:
            X = self._check_inputs(X, reset=True)
            wants_source = classes is not None or checkpoint is not None
            if self._is_large(X) or wants_source:
                source = self._in_memory_source(X, y, sample_weight, wants_source)
        if source is not None:
            return self._fit_source(source, classes, checkpoint)
        self._fit_arrays(X, y, sample_weight)
        return self

    @available_if(lambda estimator: estimator._source_suits())
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Take in more rows.

        The first call chooses kernel, width, scaling and centres by its own rows, as ``fit`` does, unless they are
        given; every call adds to the sums and solves anew. With centres, kernel, width and scaling given, the outputs
        after the last call are those of ``fit`` on all rows. The link is calibrated on a sample of all rows so far.
        After ``fit`` it begins anew, with the classes that there are.

        Parameters
        ----------
        X : array or frame of shape (n, d)
        y : array of shape (n,)
        classes : sequence, needed in the first call of a model that was not fitted
            All classes that will ever come.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "_partial")
        X = self._check_inputs(X, reset=first)
        if sparse.issparse(X):
            raise TypeError("partial_fit takes dense rows; use X.toarray() for batches that fit in memory.")
        source = self._in_memory_source(X, y, sample_weight, wanted=True)
        assert source is not None
        if not first and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} differ from those of the first call, {self.classes_.tolist()}.")
        partial = self._begin(source, classes) if first else self._partial
        partial.take(source)
        rows = partial.look.rows(self.classes_, self.class_weight)[0]
        if first:
            self._fit_rows(rows, partial.look.seed, partial.look.n_rows, partial.sum_up)
        else:
            self._refit(scaled_rows(rows, self.scaling_), rows, partial)
        self._partial = partial  # not before all went well
        return self

    def _forget(self, *names: str) -> None:
        """Leave no trace of an earlier fit that this one would not overwrite."""
        for name in names:
            self.__dict__.pop(name, None)

    def _begin(self, source: ArraySource, classes) -> Partial:
        """Before the first rows: the classes, and sums of nothing."""
        self._forget("loo_scores_", "loo_proba_")
        classes = getattr(self, "classes_", None) if classes is None else classes
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all that will ever come.")
        if isinstance(self.class_weight, str):
            raise ValueError(f"class_weight={self.class_weight!r} needs all rows before the first sum; give a dict.")
        self.classes_ = np.unique(np.asarray(classes))
        if len(self.classes_) < 2:
            raise ValueError(f"classes={classes!r}: a classifier needs at least 2 classes.")
        c = len(self.classes_)
        factors = class_factors(self.class_weight, self.classes_, np.arange(c), np.ones(c)) * np.ones(c)
        return Partial(Look(sample_size(source.n_features), self._seed()), self.classes_, factors)

    def _refit(self, scaled: Rows, rows: Rows, partial: Partial) -> None:
        """Solve anew for the sums so far, in the basis that there is."""
        raise NotImplementedError

    def _fit_arrays(self, X, y, sample_weight) -> None:
        """Fit on checked inputs, all of them in memory."""
        raise NotImplementedError

    def _fit_rows(self, rows: Rows, seed: int, n_rows: int, sum_up: SumUp | None = None, training=None) -> Any:
        """Fit on rows, or on a sample of ``n_rows`` rows whose moments ``sum_up`` knows."""
        raise NotImplementedError

    def _source_of(self, X, y, sample_weight) -> Source | None:
        """X as a source of rows where it is one; None if it is in memory."""
        if is_dask(X):
            return DaskSource(X, y, sample_weight)
        if isinstance(X, np.memmap) and not self._is_large(X):
            return None  # joblib makes such of any array
        return as_source(X, y, sample_weight)

    def _is_large(self, X) -> bool:
        """Whether rows in memory are better summed up, as those of a source are."""
        if not self._streams or self._is_precomputed or sparse.issparse(X) or X.ndim != 2:
            return False
        return X.shape[0] > sample_size(X.shape[1]) and self._source_suits()

    def _source_suits(self) -> bool:
        try:
            self._refuse_for_source()
        except (TypeError, ValueError):
            return False
        return True

    def _in_memory_source(self, X, y, sample_weight, wanted: bool) -> ArraySource | None:
        """Checked rows as a source; None for several tags a row, which have to be in memory."""
        is_single = np.ndim(y) == 1 or np.shape(y)[1:] == (1,)
        labels = column_or_1d(y, warn=True) if wanted and is_single else encode_labels(y)[1]
        if labels.ndim == 2 or sparse.issparse(X):
            if wanted:
                raise ValueError("partial_fit, classes and checkpoint are for dense rows with one label each.")
            return None
        check_lengths(X, labels)
        return ArraySource(X, column_or_1d(y), check_weights(sample_weight, X.shape[0]))

    def _fit_source(self, source: Source, classes, checkpoint):
        """Look at all rows once, decide by a sample, sum up all rows, solve."""
        self._refuse_for_source()
        self.n_features_in_ = source.n_features
        if source.feature_names is not None:
            self.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
        if checkpoint is not None and isinstance(source, DaskSource):
            raise ValueError("checkpoint is for rows that are read here; on a cluster, Dask computes what it lost.")
        saved = None if checkpoint is None else Checkpoint(checkpoint)
        seed = self._seed() if saved is None else saved.seed(self._seed())
        look = self._look(source, seed)
        if look.has_all and classes is None:
            X, y, weight = look.everything()
            names = getattr(self, "feature_names_in_", None)
            self._fit_arrays(self._check_inputs(X, reset=True), y, weight)
            if names is not None:
                self.feature_names_in_ = names
        else:
            self.classes_ = look.classes(classes)
            rows, factors = look.rows(self.classes_, self.class_weight)
            sum_up = partial(self._sum_up, source, look.n_rows, factors, saved)
            self._fit_rows(rows, seed, look.n_rows, sum_up)
        if saved is not None:
            saved.finish()
        return self

    def _look(self, source: Source, seed: int) -> Look:
        with RowProgress(self.verbose, source.n_rows, f"{type(self).__name__}: look") as progress:
            look = sweep_source(source, Looking(sample_size(source.n_features), seed), progress=progress)
        if not look.n_rows:
            raise ValueError(f"{source.name} has no rows.")
        return look

    def _sum_up(self, source: Source, n_rows: int, factors, saved: Checkpoint | None, basis: Basis, scaling) -> Moments:
        """The moments of all rows in one pass, which begins where a checkpoint ends."""
        statistic = MomentsOf(basis, scaling, self.classes_, factors)
        fingerprint = self._fingerprint(statistic, n_rows)
        held = None if saved is None else saved.load(fingerprint)
        total, start = (None, 0) if held is None else held
        after = None if saved is None else lambda total, row: saved.save(total, row, fingerprint)
        with RowProgress(self.verbose, n_rows, f"{type(self).__name__}: sums", start) as progress:
            return sweep_source(source, statistic, progress=progress, start_row=start, total=total, after_chunk=after)

    def _fingerprint(self, statistic: MomentsOf, n_rows: int) -> str:
        """What the sums depend on."""
        scaling = statistic.scaling
        words = repr((type(self).__name__, n_rows, statistic.basis.kernel, statistic.classes.tolist()))
        arrays = [statistic.basis.centers, statistic.factors]
        if scaling is not None:
            arrays += [scaling.center, scaling.scale, scaling.squashed, scaling.relevance]
        digest = hashlib.sha256(words.encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _refuse_for_source(self) -> None:
        """Refuse what needs all rows in memory."""
        if not self._streams:
            raise TypeError(f"{type(self).__name__} is fitted on rows in memory; {WHO_STREAMS} take sources of rows.")
        if self._is_precomputed:
            raise ValueError("kernel='precomputed' needs an array; a source of rows has no kernel matrix.")
        if self.loo != "auto":
            raise ValueError("loo=True keeps the scores of all rows in memory; a source of rows has no room for them.")

    def _check_parameters(self) -> list[Kernel]:
        """Refuse what has no meaning before any work is done; the kernel candidates otherwise."""
        kernels = as_kernels(self.kernel)
        check_choice("selection", self.selection, ("loo", "cv"))
        check_choice("scaling", self.scaling, SCALINGS)
        if not (isinstance(self.loo, bool | np.bool_) and self.loo) and self.loo != "auto":
            raise ValueError(f"loo={self.loo!r} is not known; use 'auto' or True.")
        if not isinstance(self.width, TimesMedian):
            check_positive("width", self.width, words=("auto", "median"))
        check_folds(self.folds)
        return kernels
