"""The papers' settings under one name each."""

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
    """LSPC of 2010: each class's own samples, outputs rounded, nine widths and five ridges by 2 folds.

    >>> lspc_2010(random_state=0).centers
    'class'
    """
    return LSPC(**{**_PAPERS, "penalty": "parameters", "centers": "class", "link": "clip", **changes})


def lspc_full_2010(**changes: Any) -> LSPC:
    """LSPC(full) of 2010: all samples as centres of every class.

    >>> lspc_full_2010().centers
    'all'
    """
    return LSPC(**{**_PAPERS, "penalty": "parameters", "centers": "all", "link": "clip", **changes})


def lspc_new_2011(**changes: Any) -> LSPC:
    """LSPC-new of 2011: all samples as centres, negative outputs rounded up to zero (Eq. 6).

    >>> lspc_new_2011().link
    'clip'
    """
    return lspc_full_2010(**changes)


def lspc_2011(**changes: Any) -> LSPC:
    """What the 2011 paper compares with under the name LSPC: negative parameters rounded up to zero (Eq. 4).

    >>> lspc_2011().link
    'clip-parameters'
    """
    return lspc_full_2010(**{"link": "clip-parameters", **changes})


def klr_2010(n: int, **changes: Any) -> KernelLogisticRegression:
    """Kernel logistic regression as 2010 compares with it, on n rows: all samples as centres, the same grid and folds.

    The paper does not say what its λ multiplies for KLR; here it belongs to the sum over the rows, as in 2001: ours is
    λ/n. With the mean's, the grid ends where KLR is still far too smooth.

    >>> klr_2010(100).centers
    'all'
    """
    ridges = tuple(ridge / n for ridge in RIDGES_2010)
    return KernelLogisticRegression(**{**_PAPERS, "ridge": ridges, "centers": "all", **changes})


def ivm_2001(n: int, **changes: Any) -> ImportVectorMachine:
    """The import vector machine as 2001 Fig. 2 runs it on n rows: the whole path, λ chosen by the tuning error.

    The paper's λ belongs to the sum over the rows and to the log-odds: ours is 2λ/n.

    >>> bool(np.isclose(ivm_2001(200).ridge[0] * 200 / 2, np.exp(10)))
    True
    """
    ridges = tuple(2.0 * np.exp(exponent) / n for exponent in EXPONENTS_2001)
    given = {"kernel": "gaussian", "ridge": ridges, "tuning_loss": "error", "tol": 1e-3, "lookback": 1}
    more = {"max_points": None, "candidates": "all", "scaling": None}
    return ImportVectorMachine(**{**given, **more, **changes})


def skc_2013(**changes: Any) -> SurfaceKernelClassifier:
    """The surface kernel classifier as 2013 describes it: centres by k-means of all rows, trained by the swarm.

    The paper does not say how it scaled its columns and chose its widths; here columns are standardised and the width
    is chosen by 5 folds. It takes outputs for probabilities; here negative ones are set to zero.

    >>> skc_2013().solver
    'swarm'
    """
    given = {"solver": "swarm", "kernel": "gaussian", "centers": "k-means", "link": "clip", "scaling": "standard"}
    return SurfaceKernelClassifier(**{**given, "selection": "cv", **changes})
