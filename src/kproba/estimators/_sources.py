"""Fitting from sources of rows: one look at them, a sample in memory that decides, and passes that sum up all rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import column_or_1d

from ..arrays import choose as choose_device
from ..arrays import is_tensor, to_numpy
from ..data.all_rows import AllRows
from ..data.checkpoint import Checkpoint
from ..data.columns import refuse_text, refuse_times
from ..data.dask import DaskSource, is_dask
from ..data.items import Items
from ..data.labels import check_weights, encode_labels
from ..data.passes import PassRecord
from ..data.rows import Rows
from ..data.sources import ArraySource, Source, TensorSource, as_source, in_double
from ..data.summary import Look, Looking, sample_size
from ..data.sweep import sweep_source
from ..progress import RowProgress
from ..typing import Inputs, PathLike, Targets
from ..validation import check_lengths
from ._base import KernelClassifier


class SourceClassifier(KernelClassifier):
    """Base of classifiers that are fitted on rows in memory, or on a sample of rows and sums over all of them.

    A subclass says how a fit goes on from checked inputs (``_fit_arrays``), and from a sample (``_fit_rows``).
    """

    def fit(
        self,
        X: Inputs,
        y: Targets = None,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        checkpoint: PathLike | None = None,
    ) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array, frame or CSR matrix of shape (n, d), a list of what the kernel compares, or a source of rows
            A source is a memory map, a Dask array or frame, or what :func:`kproba.open_rows` returns. Rows in memory
            are one too if they are more than 50,000: then a sample of them decides, and all are summed up.
        y : array of shape (n,), or a matrix (n, n_tags) of 0 and 1 for a multi-label problem
            A missing tag is NaN, None or pandas' NA: then the row does not count for it. Files bring their own labels.
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
        self._forget("_partial", "_is_summed_up", "loo_scores_", "loo_proba_")
        self.device_ = choose_device(self.device, X)
        y, sample_weight = to_numpy(y), to_numpy(sample_weight)
        source = self._source_of(X, y, sample_weight)
        if source is not None:
            self._forget("feature_names_in_", "_on_items")
        else:
            X = self._check_inputs(to_numpy(X), reset=True)
            if isinstance(X, Items):
                self.device_ = None  # their kernels run here
            wants_source = classes is not None or checkpoint is not None
            if self._is_large(X) or wants_source:
                source = self._in_memory_source(X, y, sample_weight, wants_source)
        if source is not None:
            return self._fit_source(source, classes, checkpoint)
        self._fit_arrays(in_double(X), y, sample_weight)
        return self

    def _fit_arrays(self, X, y, sample_weight) -> None:
        """Fit on checked inputs, all of them in memory."""
        raise NotImplementedError

    def _fit_rows(self, rows: Rows, seed: int, n_rows: int, everything: Any = None, training=None) -> Any:
        """Fit on rows, or on a sample of ``n_rows`` rows of which ``everything`` gives sums."""
        raise NotImplementedError

    def _source_of(self, X, y, sample_weight) -> Source | None:
        """X as a source of rows where it is one; None if it is in memory."""
        if isinstance(X, str | os.PathLike):
            raise TypeError(
                f"X={str(X)!r} is a path; give kproba.open_rows({str(X)!r}, target=...) for the rows in it."
            )
        if isinstance(X, Iterator):
            raise TypeError(f"X is a {type(X).__name__}, which gives its rows only once; use partial_fit for batches.")
        if type(X).__module__.startswith("torch.utils.data"):
            raise TypeError(
                f"X is a {type(X).__name__} of PyTorch; give the tensor of all rows, or every batch to partial_fit."
            )
        if is_dask(X):
            for refuse in (refuse_times, refuse_text):
                refuse(X, type(self).__name__)
            return DaskSource(X, y, sample_weight)
        if is_tensor(X):
            return self._tensor_source(X, y, sample_weight) if self._is_large(X) else None
        if isinstance(X, np.memmap) and not self._is_large(X):
            return None  # joblib makes such of any array
        return as_source(X, y, sample_weight)

    def _tensor_source(self, X, y, sample_weight) -> TensorSource | None:
        """Rows of a tensor stay where they are; None for several tags a row."""
        labels = np.asarray(y) if _are_plain(y) else encode_labels(y)[1]
        check_lengths(X, labels)
        weight = None if sample_weight is None else check_weights(sample_weight, X.shape[0])
        return None if labels.ndim == 2 else TensorSource(X, column_or_1d(y), weight)

    def _is_large(self, X) -> bool:
        """Whether rows in memory are better summed up, as those of a source are."""
        if self._is_precomputed or sparse.issparse(X) or X.ndim != 2:
            return False
        return X.shape[0] > self._sample_size(X.shape[1]) and self._source_suits()

    def _sample_size(self, d: int) -> int:
        """Distinct rows of d columns that are kept in memory to decide by."""
        return sample_size(d)

    def _source_suits(self) -> bool:
        try:
            self._refuse_for_source()
        except (TypeError, ValueError):
            return False
        return True

    def _in_memory_source(self, X, y, sample_weight, wanted: bool) -> ArraySource | None:
        """Checked rows as a source; None for several tags a row, which have to be in memory."""
        is_single = np.ndim(y) == 1 or np.shape(y)[1:] == (1,)
        labels = column_or_1d(y, warn=True) if (wanted and is_single) or _are_plain(y) else encode_labels(y)[1]
        if labels.ndim == 2 or sparse.issparse(X) or isinstance(X, Items):
            if wanted:
                raise ValueError("partial_fit, classes and checkpoint are for dense rows with one label each.")
            return None
        check_lengths(X, labels)
        return ArraySource(X, column_or_1d(y), check_weights(sample_weight, X.shape[0]))

    def _fit_source(self, source: Source, classes, checkpoint) -> Self:
        """Look at all rows once, decide by a sample, sum up all rows, solve."""
        self._refuse_for_source()
        self.n_features_in_ = source.n_features
        if source.feature_names is not None:
            self.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
        if checkpoint is not None and isinstance(source, DaskSource):
            raise ValueError("checkpoint is for rows that are read here; on a cluster, Dask computes what it lost.")
        saved = None if checkpoint is None else Checkpoint(checkpoint)
        seed = self._seed() if saved is None else saved.seed(self._seed())
        record = PassRecord(inputs=saved is not None or not source.is_in_memory)
        look = self._look(source, seed, record)
        look.classes(classes)  # refuses what has none
        if look.has_all and classes is None:
            X, y, weight = look.everything()
            names = getattr(self, "feature_names_in_", None)
            self._fit_arrays(in_double(self._check_inputs(X, reset=True)), y, weight)
            if names is not None:
                self.feature_names_in_ = names
        else:
            self.classes_ = look.classes(classes)
            rows, factors = look.rows(self.classes_, self.class_weight)
            weights = np.array([look.label_weight.get(label, 0.0) for label in self.classes_.tolist()])
            options = {"saved": saved, "record": record, "title": type(self).__name__, "verbose": self.verbose}
            everything = AllRows(source, look.n_rows, float(factors @ weights), self.classes_, factors, **options)
            self._fit_rows(rows, seed, look.n_rows, everything)
            self._is_summed_up = True
        if saved is not None:
            saved.finish()
        return self

    def _look(self, source: Source, seed: int, record: PassRecord) -> Look:
        looking = Looking(self._sample_size(source.n_features), seed, self.device_)
        with RowProgress(self.verbose, source.n_rows, f"{type(self).__name__}: look") as progress:
            look = sweep_source(source, looking, progress=progress, record=record)
        if not look.n_rows:
            raise ValueError(f"{source.name} has no rows.")
        return look

    def _refuse_for_source(self) -> None:
        """Refuse what needs all rows in memory."""
        if self._is_precomputed:
            raise ValueError("kernel='precomputed' needs an array; a source of rows has no kernel matrix.")


def _are_plain(y) -> bool:
    """Whether y holds one whole number, truth value or word a row: labels that a pass can check as it goes."""
    return isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iubU"
