"""The names that the parameter ``solver`` takes. The solvers of the papers have theirs in :mod:`kproba.papers`."""

from __future__ import annotations

from collections.abc import Callable

from .cholesky import CholeskyPath
from .eigen import EigenPath
from .lbfgs import lbfgs
from .newton import Optimum, newton
from .path import Path
from .sgd import sgd

#: Least squares with any centres.
PATHS: dict[str, type[Path]] = {
    "cholesky": CholeskyPath,
    "eigen": EigenPath,
}
#: The penalised likelihood, minimised by functions of (objective, start, tol, max_iter).
LIKELIHOOD: dict[str, Callable[..., Optimum]] = {
    "auto": newton,
    "newton": newton,
    "lbfgs": lbfgs,
    "sgd": sgd,
}
