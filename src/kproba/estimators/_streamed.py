"""Taking in more rows: what classifiers share whose fit needs the rows only for their moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..arrays import choose as choose_device
from ..arrays import to_numpy
from ..basis.basis import MomentsOf
from ..basis.moments import Moments
from ..data.encoding import Encoding
from ..data.items import Items
from ..data.labels import class_factors, encode
from ..data.rows import Rows
from ..data.scaling import MODES as SCALINGS
from ..data.sources import ArraySource, check_chunk
from ..data.summary import Look
from ..data.sweep import sweep_source
from ..kernels import Kernel, as_kernels
from ..search.widths import TimesMedian
from ..typing import Inputs, Targets, available_if
from ..validation import check_choice, check_folds, check_positive
from ._base import scaled_rows
from ._sources import SourceClassifier


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

    def encoding(self, scaling) -> Encoding:
        return Encoding(self.classes, self.factors, scaling)

    def sum(self, statistic: MomentsOf) -> Moments:
        """The sums of the first rows, in the basis that they chose."""
        self.statistic = statistic
        self.moments = sweep_source(self.last, self.statistic)
        self.n_chosen = self.look.n_rows
        return self.moments

    def __getstate__(self):
        return {**self.__dict__, "last": None}  # rows that have been summed up need not be kept


class StreamedClassifier(SourceClassifier):
    """Base of classifiers that choose a kernel and a width, and take in more rows where sums are all they need."""

    #: whether the moments of all rows are all that a fit needs of them
    _adds_up = True
    _partial: Partial

    @available_if(lambda estimator: estimator._adds_up and estimator._source_suits())
    def partial_fit(
        self, X: Inputs, y: Targets, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
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
        device = choose_device(self.device, X)
        X, y, sample_weight = self._check_inputs(to_numpy(X), reset=first), to_numpy(y), to_numpy(sample_weight)
        if isinstance(X, Items):
            raise TypeError(f"partial_fit takes rows of numbers, and kernel={self.kernel!r} compares other things.")
        if sparse.issparse(X):
            raise TypeError("partial_fit takes dense rows; use X.toarray() for batches that fit in memory.")
        source = self._in_memory_source(X, y, sample_weight, wanted=True)
        assert source is not None
        if not first and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} differ from those of the first call, {self.classes_.tolist()}.")
        partial = self._begin(source, classes) if first else self._partial
        self.device_ = device
        partial.take(source)
        rows = partial.look.rows(self.classes_, self.class_weight)[0]
        if not len(rows):
            raise ValueError(f"class_weight={self.class_weight!r} leaves no row of a positive weight to begin with.")
        if first:
            self._fit_rows(rows, partial.look.seed, partial.look.n_rows, partial)
        else:
            self._refit(scaled_rows(rows, self.scaling_), rows, partial)
        self._partial = partial  # not before all went well
        return self

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
        return Partial(Look(self._sample_size(source.n_features), self._seed()), self.classes_, factors)

    def _refit(self, scaled: Rows, rows: Rows, partial: Partial) -> None:
        """Solve anew for the sums so far, in the basis that there is."""
        raise NotImplementedError

    def _refuse_for_source(self) -> None:
        super()._refuse_for_source()
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
