"""``partial_fit`` for classifiers that only need the moments of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

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
from ..data.sources import ArraySource, check_chunk
from ..data.summary import Summary
from ..data.sweep import sweep_source
from ..typing import Inputs, Targets, available_if
from . import _reading
from ._reading import Training, in_memory_source
from ._sanity import warn_of_light_rows


@dataclass
class Partial:
    """The state of ``partial_fit`` between calls: a summary of all rows so far, and their sums in the basis."""

    look: Summary
    classes: np.ndarray
    factors: np.ndarray
    statistic: MomentsOf | None = None
    moments: Moments | None = None
    last: ArraySource | None = None
    #: number of rows when the ridge was last selected
    n_chosen: int = 0

    def take(self, source: ArraySource) -> None:
        """Add more rows to the summary and to the sums."""
        encode(np.asarray(source.labels), self.classes)  # raises an error before anything is changed
        for chunk in source.chunks():
            self.look = self.look.add(check_chunk(chunk, source))
        self.last = source
        if self.statistic is not None:
            self.moments = sweep_source(source, self.statistic, total=self.moments)

    @property
    def total_weight(self) -> float:
        return float(self.factors @ self.look.class_weights(self.classes))

    def encoding(self, scaling) -> Encoding:
        return Encoding(self.classes, self.factors, scaling)

    def sum(self, statistic: MomentsOf) -> Moments:
        """The sums over the first rows, in the basis selected on them."""
        self.statistic = statistic
        self.moments = sweep_source(self.last, self.statistic)
        self.n_chosen = self.look.n_rows
        return self.moments

    def __getstate__(self):
        return {**self.__dict__, "last": None}  # rows already in the sums are not needed again


class TakesMoreRows:
    """Mixin that adds ``partial_fit`` to a classifier.

    The classifier implements the fit on the first rows (``_fit_training``) and the solve with updated sums
    (``_fit_sums``).
    """

    _partial: Partial

    def _fit_training(self, data: Training) -> Any:
        raise NotImplementedError

    def _fit_sums(self, rows: Rows, partial: Partial) -> None:
        raise NotImplementedError

    @available_if(lambda model: model._why_in_memory() is None)
    def partial_fit(
        self, X: Inputs, y: Targets, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Update the model with more rows.

        The first call selects kernel, width, scaling and centres on its own rows, as ``fit`` does, unless you fix them;
        every call adds to the sums and solves again. With fixed centres, kernel, width and scaling, the outputs after
        the last call are those of ``fit`` on all rows. The link is calibrated on a sample of all rows so far. After
        ``fit``, the first call to ``partial_fit`` starts over with the classes of the fitted model.

        Parameters
        ----------
        X : array or frame of shape (n, d)
        y : array of shape (n,)
        classes : sequence, required in the first call unless the model is fitted
            All classes that can occur in any call.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        _add_rows(self, X, y, classes, sample_weight)
        return self


def _add_rows(model, X, y, classes, sample_weight) -> None:
    model._check_parameters()
    if isinstance(getattr(model, "centers", None), str) and model.centers == "local":
        raise ValueError("partial_fit needs one basis for all rows; use centers='auto' or a number, or fit.")
    first = not hasattr(model, "_partial")
    device = choose_device(model.device, X)
    source = _batch(model, X, y, sample_weight, first)
    if not first and classes is not None and not np.array_equal(np.unique(classes), model.classes_):
        raise ValueError(f"classes={classes!r} differ from those of the first call, {model.classes_.tolist()}.")
    partial = _begin(model, source, classes) if first else model._partial
    model.device_ = device
    partial.take(source)
    rows = partial.look.rows(model.classes_, model.class_weight, model._categorical)[0]
    if not len(rows):
        raise ValueError(f"class_weight={model.class_weight!r} leaves no row with a positive weight.")
    if first:
        warn_of_light_rows(partial.look.n_rows, partial.look.total_weight)
        model._fit_training(Training(rows, partial.look.seed, partial.look.n_rows, partial))
    else:
        model._fit_sums(rows, partial)
    model._partial = partial  # only if all steps succeeded


def _batch(model, X, y, sample_weight, first: bool) -> ArraySource:
    """The rows of one call, checked."""
    X = model._check_inputs(to_numpy(X), reset=first)
    if isinstance(X, Items):
        raise TypeError(f"partial_fit needs numeric rows, but kernel={model.kernel!r} compares other objects; use fit.")
    if sparse.issparse(X):
        raise TypeError("partial_fit needs dense rows; use X.toarray() for batches that fit in memory.")
    source = in_memory_source(X, to_numpy(y), to_numpy(sample_weight), wanted=True)
    assert source is not None
    return source


def _begin(model, source: ArraySource, classes) -> Partial:
    """The initial state: the classes, and an empty summary."""
    model._forget("loo_scores_", "loo_proba_", "oof_proba_")
    classes = getattr(model, "classes_", None) if classes is None else classes
    if classes is None:
        raise ValueError("classes must be passed on the first call to partial_fit: all that can occur in any call.")
    if isinstance(model.class_weight, str):
        raise ValueError(f"class_weight={model.class_weight!r} needs all rows at once; pass a dict to partial_fit.")
    model.classes_ = np.unique(np.asarray(classes))
    if len(model.classes_) < 2:
        raise ValueError(f"classes={classes!r}: a classifier needs at least 2 classes.")
    c = len(model.classes_)
    factors = class_factors(model.class_weight, model.classes_, np.arange(c), np.ones(c)) * np.ones(c)
    return Partial(Summary(_reading.sample_size(source.n_features), model._seed()), model.classes_, factors)
