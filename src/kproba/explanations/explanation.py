"""Which column moved a score, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from ..messages import did_you_mean, needed
from ..typing import Inputs
from ..validation import check_choice, check_count
from .columns import columns_of, transformed
from .model import ColumnModel
from .shapley import KernelSum


class Reason(NamedTuple):
    """What the value of one column adds to the output of a class."""

    column: str
    value: Any
    contribution: float

    def __str__(self) -> str:
        return f"{self.column} = {shown(self.value)}: {self.contribution:+.2g}"


def shown(value: Any, most: int = 40) -> str:
    """A value of a table as a short label."""
    if value is None or (not isinstance(value, str) and str(value) in ("nan", "NaT", "<NA>")):
        return "missing"
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Shapley values of every row, column and class, as returned by :func:`kproba.explain`.

    ``outputs``, the explained scores, are ``base_values`` plus the sum of ``values`` over the columns.

    Attributes
    ----------
    values : ndarray of shape (n, n_columns, n_classes)
        What the value of a column adds to the output of a class, compared with not knowing the value.
    base_values : ndarray of shape (n_classes,)
        The outputs if no column is known.
    data : ndarray of shape (n, n_columns)
        The values of the columns that are explained.
    feature_names, class_names : tuples
    probabilities : ndarray of shape (n, n_classes), or None
        ``predict_proba`` of the rows; None if the link gives no probabilities.
    """

    values: np.ndarray
    base_values: np.ndarray
    data: np.ndarray
    feature_names: tuple[str, ...]
    class_names: tuple[Any, ...]
    probabilities: np.ndarray | None = None

    @property
    def outputs(self) -> np.ndarray:
        """The explained outputs (n, n_classes): base values plus the sum over the columns."""
        return self.base_values + self.values.sum(axis=1)

    @property
    def importances(self) -> np.ndarray:
        """Mean absolute value of every column over rows and classes (n_columns,)."""
        return np.abs(self.values).mean(axis=(0, 2)) if len(self.values) else np.zeros(len(self.feature_names))

    def for_class(self, name: Any) -> Explanation:
        """The explanation of one class or tag; its arrays keep their last axis, with length one."""
        if name not in self.class_names:
            known = ", ".join(map(repr, self.class_names))
            raise ValueError(f"name must be one of {known}, got {name!r}{did_you_mean(name, self.class_names)}.")
        k = self.class_names.index(name)
        return replace(
            self,
            values=self.values[:, :, k : k + 1],
            base_values=self.base_values[k : k + 1],
            class_names=self.class_names[k : k + 1],
            probabilities=None if self.probabilities is None else self.probabilities[:, k : k + 1],
        )

    def reasons(self, n_reasons: int = 3) -> list[list[Reason]]:
        """The columns with the largest contributions to the most probable class of every row, largest first.

        Negative contributions speak against the class. Columns that contribute nothing are left out.
        """
        check_count("n_reasons", n_reasons)
        best = (self.outputs if self.probabilities is None else self.probabilities).argmax(axis=1)
        return [self.row_reasons(i, k, n_reasons) for i, k in enumerate(best)]

    def row_reasons(self, i: int, k: int, n_reasons: int = 3) -> list[Reason]:
        """The same for row number i and class number k."""
        values = self.values[i, :, k]
        order = np.argsort(-np.abs(values), kind="stable")[:n_reasons]
        return [Reason(self.feature_names[j], self.data[i, j], float(values[j])) for j in order if values[j] != 0]

    def to_shap(self) -> Any:
        """A ``shap.Explanation`` for the plots of the shap package; needs ``kproba[shap]``.

        With one class, as after :meth:`for_class`, values are (n, n_columns), which all of shap's plots accept.
        """
        shap = needed("shap", "to_shap needs the shap package", "shap")
        is_single = len(self.class_names) == 1
        base = np.broadcast_to(self.base_values, (len(self.values), len(self.class_names)))
        return shap.Explanation(
            values=self.values[:, :, 0] if is_single else self.values,
            base_values=base[:, 0].copy() if is_single else base.copy(),
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=None if is_single else [str(name) for name in self.class_names],
        )

    def __repr__(self) -> str:
        n, d, c = self.values.shape
        return f"<Explanation of {n} rows, {d} columns and {c} classes>"


def explain(
    model: Any,
    X: Inputs,
    *,
    background: Inputs | None = None,
    absent: Literal["independent", "joint"] | str = "independent",
    output: Literal["estimates", "scores"] | str = "estimates",
    feature_names: Sequence[str] | None = None,
) -> Explanation:
    """Exact Shapley values of the scores of a fitted classifier: how much each column adds to the score of each class.

    The values of a row sum to its outputs minus the base values, up to rounding. They are computed in closed form, not
    sampled: kernels that are products, sums or sums over pairs of columns allow it (Gaussian, Laplacian, additive,
    pairs, chi2, linear, intersection, and the mixture that ``kernel="auto"`` learns).

    Parameters
    ----------
    model : fitted classifier of kproba, or pipeline that ends in one
        If all steps before the classifier are scalers, imputers or ordinal encoders of scikit-learn, which keep the
        columns in place, the explained columns are those of your table. Otherwise they are the columns that the
        classifier sees.
    X : array or data frame of shape (n, n_features)
        The rows to explain.
    background : array or data frame like ``X``, optional
        Rows that say what is usual: columns that are absent take their values from here. The default is the centres of
        the model, which are training rows. Pass a sample of the training rows to explain an ImportVectorMachine, whose
        few centres lie near the boundary.
    absent : {"independent", "joint"}, default="independent"
        How absent columns are averaged: each over its own distribution in the background, or all together, as whole
        rows (shap's "interventional" values). The time for ``"joint"`` grows with the number of rows in ``background``,
        which is required; the time for ``"independent"`` does not.
    output : {"estimates", "scores"}, default="estimates"
        What is explained. ``"estimates"`` is what the link turns into probabilities, an affine function of the scores:
        for LSPC and SurfaceKernelClassifier with a calibrated link the estimates of the probabilities before
        calibration, which sum to one; for KernelLogisticRegression and ImportVectorMachine the log-odds of a class
        against the average of the others, or of a tag. ``"scores"`` are the raw scores, as in ``loo_scores_``.
    feature_names : sequence of str, optional
        Names of the columns; by default those that the model was fitted with.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import numpy as np
    >>> from kproba import KernelLogisticRegression, explain
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> clf = KernelLogisticRegression(kernel="gaussian", random_state=0).fit(X, X[:, 0] > 0)
    >>> found = explain(clf, X[:5], feature_names=["age", "income", "noise"])
    >>> found.values.shape
    (5, 3, 2)
    >>> bool(np.allclose(found.outputs[:, 1], clf.decision_function(X[:5])))
    True
    >>> found.reasons(1)[0][0].column
    'age'
    """
    part = ColumnModel.of(model, "explain")
    check_choice("absent", absent, ("independent", "joint"))
    check_choice("output", output, ("estimates", "scores"))
    if absent == "joint" and background is None:
        raise ValueError(
            "absent='joint' needs background rows, because its time grows with their number; pass a sample of the "
            "training rows, for example background=X_train[:50]."
        )
    columns = columns_of(model, X, feature_names)
    usual = part.centers if background is None else part.scaled(transformed(model, background))
    if not len(usual) and len(part.centers):
        raise ValueError("background has no rows; pass at least one, or None for the centres of the model.")
    coef, intercept = part.explained(output)
    score = KernelSum.of(part.terms, part.centers, coef, part.arrays(columns.inputs))
    values, base = score.explain(part.scaled(columns.inputs), usual, absent == "independent", columns.groups)
    classifier = part.classifier
    proba = classifier.predict_proba(columns.inputs) if hasattr(classifier, "predict_proba") else None
    names = tuple(classifier.classes_.tolist())
    return Explanation(values, base + intercept, columns.data, columns.names, names, proba)
