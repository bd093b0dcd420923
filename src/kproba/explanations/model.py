"""A fitted classifier as a sum over centres of functions of single columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..arrays import choose as choose_device
from ..arrays import to_numpy
from ..basis.local_basis import LocalBasis
from ..data.sources import in_double
from ..estimators._base import KernelClassifier
from ..kernels import KERNELS
from ..kernels.base import dense
from ..kernels.by_column import ByColumn, split_by_column
from ..threads import n_workers
from .columns import final_step
from .shapley import Arrays


@dataclass(frozen=True)
class ColumnModel:
    """Scores Σ_b coef_b·k(x, z_b) + intercept, with the kernel split into ``terms`` by column.

    ``centers`` (b, d) are dense and scaled; rows are scaled by :meth:`scaled`.
    """

    classifier: KernelClassifier
    terms: tuple[ByColumn, ...]
    centers: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray

    @classmethod
    def of(cls, model: Any, caller: str) -> ColumnModel:
        """The classifier at the end of ``model``, or an error that says why it does not split by column."""
        classifier = check_classifier(model, caller)
        kernel, centers = classifier.basis_.kernel, classifier.basis_.centers
        terms = split_by_column(kernel, n_columns(classifier))
        if terms is None:
            known = ", ".join(repr(name) for name, each in KERNELS.items() if "by_column" in vars(type(each)))
            raise ValueError(
                f"{caller}: the {kernel.name} kernel is not a product or sum over the columns of X; fit the model with "
                f"kernel='auto', {known}, or give your kernel a method by_column."
            )
        intercept = np.broadcast_to(classifier.intercept_, classifier.coef_.shape[1:]).astype(np.float64)
        return cls(classifier, terms, dense(centers), classifier.coef_, intercept)

    def arrays(self, X) -> Arrays:
        """Where to compute: the device of X or of the classifier, if its kernel runs there."""
        device = choose_device(self.classifier.device, X)
        runs = self.classifier.basis_.kernel.runs_on_devices
        return Arrays(device if runs else None, n_workers(self.classifier.n_jobs))

    def scaled(self, X) -> np.ndarray:
        """Checked and scaled rows, dense and in float64."""
        X = self.classifier._check_inputs(to_numpy(X), reset=False)
        if sparse.issparse(X) and not sparse.issparse(self.classifier.basis_.centers):
            X = X.toarray()  # the model was fitted on dense rows, whose scaling shifts zeros
        X, scaling = in_double(X), self.classifier.scaling_
        return dense(X if scaling is None else scaling(X))

    def models_of(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """The centres of each model that applies to some of the scaled rows X: their index, and the model's weight.

        There is one model, unless the classifier blends local ones.
        """
        basis = self.classifier.basis_
        if not isinstance(basis, LocalBasis):
            yield slice(None), np.arange(len(X)), np.ones(len(X))
            return
        for own, (where, gate) in zip(basis.slices(), basis.regions.inside(X)):
            if len(where):
                yield own, where, gate

    def explained(self, output: str) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (b, c) and intercept (c,) of the explained outputs, an affine function of the scores."""
        c = len(self.classifier.classes_)
        function = self.classifier.link_.explained if output == "estimates" else lambda scores: scores[:, :c]
        at_zero = function(np.zeros((1, len(self.intercept))))
        return function(self.coef) - at_zero, function(self.intercept[None, :])[0]


def n_columns(classifier: KernelClassifier) -> int:
    """Number of columns that the kernel compares: those of X, and those that mark missing numbers."""
    columns = classifier.columns_
    return getattr(classifier, "n_features_in_", 0) if columns is None else len(columns.origins)


def check_classifier(model: Any, caller: str) -> KernelClassifier:
    """The fitted classifier of kproba that ``model`` is or ends in."""
    classifier = final_step(model)
    if not isinstance(classifier, KernelClassifier):
        inner = getattr(classifier, "estimator_", None)
        hint = f" Pass its fitted classifier, {caller}(model.estimator_, X)." if inner is not None else ""
        raise TypeError(
            f"{caller}: model must be a classifier of kproba or a pipeline that ends in one, got "
            f"{type(classifier).__name__}.{hint}"
        )
    check_is_fitted(classifier)
    return classifier
