"""Classifiers with the settings of the papers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .estimators import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from .search.widths import RIDGES_2010, WIDTHS_2010, TimesMedian

#: 2001 Fig. 2: λ from e^10 down to e^-10, in the paper's units.
EXPONENTS_2001 = tuple(range(10, -11, -1))

_PAPERS = {
    "kernel": "gaussian",
    "width": TimesMedian(WIDTHS_2010),
    "ridge": RIDGES_2010,
    "scaling": "standard",
    "selection": "cv",
    "folds": 2,
}


def lspc_2010(**changes: Any) -> LSPC:
    """LSPC of 2010: own centres for each class, negative outputs set to zero, 9 widths and 5 ridges by 2-fold CV.

    >>> lspc_2010(random_state=0).centers
    'class'
    """
    return LSPC(**{**_PAPERS, "penalty": "parameters", "centers": "class", "link": "clip", **changes})


def lspc_full_2010(**changes: Any) -> LSPC:
    """LSPC(full) of 2010: all samples are centres for every class.

    >>> lspc_full_2010().centers
    'all'
    """
    return LSPC(**{**_PAPERS, "penalty": "parameters", "centers": "all", "link": "clip", **changes})


def lspc_new_2011(**changes: Any) -> LSPC:
    """LSPC-new of 2011: all samples are centres, and negative outputs are set to zero (Eq. 6).

    >>> lspc_new_2011().link
    'clip'
    """
    return lspc_full_2010(**changes)


def lspc_2011(**changes: Any) -> LSPC:
    """The baseline that the 2011 paper calls LSPC: negative parameters are set to zero (Eq. 4).

    >>> lspc_2011().link
    'clip-parameters'
    """
    return lspc_full_2010(**{"link": "clip-parameters", **changes})


def klr_2010(n: int, **changes: Any) -> KernelLogisticRegression:
    """Kernel logistic regression, the baseline of 2010, on n rows: all samples are centres, same grid and folds.

    The paper trains "ℓ2-penalized" KLR with the package minFunc and (c − 1)n parameters. As in that package, the last
    class has the score zero, there are no constants, and the objective is

        Σ_i −log p(y_i | x_i) + λ Σ_y θ_yᵀθ_y,

    so λ multiplies the squares of the coefficients and is added to the sum over the rows: ``ridge`` is 2λ/n. The paper
    itself does not write the objective down. If λ referred to the mean over the rows, KLR would be far too smooth even
    at the end of the grid.

    >>> klr_2010(100).ridge[0]  # 2 · 10⁻² / 100
    0.0002
    """
    ridges = tuple(2.0 * ridge / n for ridge in RIDGES_2010)
    form = {"centers": "all", "penalty": "parameters", "fit_intercept": False, "coding": "base-class"}
    return KernelLogisticRegression(**{**_PAPERS, "ridge": ridges, **form, **changes})


def klr_textbook(**changes: Any) -> KernelLogisticRegression:
    """Kernel logistic regression of the textbook (Fig. 28.2): plain stochastic gradient ascent, without a penalty.

    All samples are centres of Gaussian kernels of width 1, without constants. From a random start, each of 1,000 · n
    steps draws one row and moves along its gradient, with step size 0.1.

    >>> klr_textbook().solver, klr_textbook().ridge
    ('plain-sgd', 0.0)
    """
    given = {"kernel": "gaussian", "width": 1.0, "ridge": 0.0, "centers": "all", "scaling": None}
    return KernelLogisticRegression(
        **{**given, "fit_intercept": False, "solver": "plain-sgd", "max_iter": 1000, **changes}
    )


def lspc_textbook(n: int, **changes: Any) -> LSPC:
    """LSPC of the textbook (Fig. 28.5) on n rows: own centres for each class, Gaussian kernels of width 1, λ = 0.1.

    The textbook's λ multiplies a sum over the rows, so ``ridge`` is λ/n.

    >>> lspc_textbook(100).ridge
    0.001
    """
    given = {"width": 1.0, "ridge": 0.1 / n, "scaling": None, "selection": "loo"}
    return lspc_2010(**{**given, **changes})


def ivm_2001(n: int, **changes: Any) -> ImportVectorMachine:
    """The import vector machine of 2001 Fig. 2 on n rows: the whole path, with λ chosen by the tuning error.

    The model is the path's own (C1 to C5); ``refit=True`` searches anew at the chosen λ. The paper's λ refers to the
    sum over the rows and to the log-odds, so ``ridge`` is 2λ/n.

    >>> print(f"{ivm_2001(200).ridge[0]:.1f}")  # 2 exp(10)/200
    220.3
    """
    ridges = tuple(2.0 * np.exp(exponent) / n for exponent in EXPONENTS_2001)
    given = {"kernel": "gaussian", "ridge": ridges, "tuning_loss": "error", "tol": 1e-3, "lookback": 1}
    more = {"max_points": None, "candidates": "all", "scaling": None, "refit": False}
    return ImportVectorMachine(**{**given, **more, **changes})


def skc_2013(**changes: Any) -> SurfaceKernelClassifier:
    """The surface kernel classifier of 2013: k-means centres of all rows, trained by particle swarm.

    The paper does not say how columns were scaled and widths chosen; here columns are standardized and the width is
    chosen by 5-fold cross-validation. The paper uses outputs as probabilities; here negative outputs are set to zero.

    >>> skc_2013().solver
    'swarm'
    """
    given = {"solver": "swarm", "kernel": "gaussian", "centers": "k-means", "link": "clip", "scaling": "standard"}
    return SurfaceKernelClassifier(**{**given, "selection": "cv", **changes})
