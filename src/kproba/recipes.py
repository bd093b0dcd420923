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

    The paper does not say what λ multiplies for KLR. Here it refers to the sum over the rows, as in 2001, so ``ridge``
    is λ/n. If it referred to the mean, KLR would be far too smooth even at the end of the grid.

    >>> klr_2010(100).centers
    'all'
    """
    ridges = tuple(ridge / n for ridge in RIDGES_2010)
    return KernelLogisticRegression(**{**_PAPERS, "ridge": ridges, "centers": "all", **changes})


def ivm_2001(n: int, **changes: Any) -> ImportVectorMachine:
    """The import vector machine of 2001 Fig. 2 on n rows: the whole path, with λ chosen by the tuning error.

    The paper's λ refers to the sum over the rows and to the log-odds, so ``ridge`` is 2λ/n.

    >>> print(f"{ivm_2001(200).ridge[0]:.1f}")  # 2 exp(10)/200
    220.3
    """
    ridges = tuple(2.0 * np.exp(exponent) / n for exponent in EXPONENTS_2001)
    given = {"kernel": "gaussian", "ridge": ridges, "tuning_loss": "error", "tol": 1e-3, "lookback": 1}
    more = {"max_points": None, "candidates": "all", "scaling": None}
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
