"""Which column moved a score, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ..typing import Inputs
from ..validation import check_choice
from .columns import columns_of, transformed
from .explanation import Explanation
from .model import ColumnModel
from .shapley import KernelSum


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
