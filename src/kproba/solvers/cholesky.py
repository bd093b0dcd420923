"""(H + ρP)θ = h by Cholesky factorisation: 2010 Eq. 2, with ρ = nλ and P the identity or the kernel matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from ..exceptions import ConditionWarning
from ..messages import warn
from .path import Path

_EPS, _TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny


@dataclass(frozen=True)
class CholeskyFactor:
    """The lower factor L of the system."""

    lower: np.ndarray

    def solve(self, h: np.ndarray) -> np.ndarray:
        """θ for one or several right-hand sides."""
        return linalg.cho_solve((self.lower, True), h, check_finite=False)

    def inverse(self) -> np.ndarray:
        """(H + ρP)⁻¹."""
        return self.solve(np.eye(len(self.lower)))

    def leverage(self, phi: np.ndarray) -> np.ndarray:
        """φᵀ(H + ρP)⁻¹φ = ‖L⁻¹φ‖² of every row of features."""
        half = linalg.blas.dtrsm(1.0, self.lower, phi.T.astype(np.float64, copy=True), lower=1, overwrite_b=1)
        return np.einsum("ij,ij->j", half, half)


@dataclass(frozen=True)
class CholeskyPath(Path):
    """One Cholesky factorisation per ridge (2010 Eq. 2)."""

    H: np.ndarray
    penalty: np.ndarray | None

    @classmethod
    def of(cls, moments, centers, penalty):
        """Only the lower triangle of H is read, so it need not be made symmetric."""
        return cls(moments.H if centers is None else moments.symmetric(centers), penalty)

    def at(self, ridge: float) -> CholeskyFactor:
        return factor(self.H, self.penalty, ridge)


def factor(H: np.ndarray, penalty: np.ndarray | None, ridge: float) -> CholeskyFactor:
    """Factor H + ρP; ``penalty=None`` is the identity. Only lower triangles are read."""

    def decompose(jitter: float) -> np.ndarray | None:
        lower, info = linalg.lapack.dpotrf(_system(H, penalty, ridge, jitter), lower=1, overwrite_a=1, clean=0)
        return None if info else lower

    if ridge == 0.0:  # meant to be zero, so it takes more than a small ridge to call the system singular
        lower = decompose(0.0)
        if lower is not None and np.diagonal(lower).min() ** 2 > rounding_level(np.diagonal(H)):
            return CholeskyFactor(lower)
    size = None if penalty is None else float(np.diagonal(penalty).mean())
    return CholeskyFactor(with_jitter(decompose, np.diagonal(H), size, ridge))


def with_jitter(decompose: Callable[[float], Any], diagonal: np.ndarray, size: float | None, ridge: float) -> Any:
    """The factor ``decompose(jitter)`` of H + ρP + jitter·I for the smallest jitter for which it exists.

    ``diagonal`` is the diagonal of H; ``size`` is the mean diagonal of P, None for the identity. If the system is
    singular to working precision, a small multiple of the identity is added, with a warning: the solution stays finite
    and is that of a slightly larger ridge.
    """
    penalty = ridge * (1.0 if size is None else size)
    level = rounding_level(diagonal + (0.0 if size is None else penalty))
    jitter = level if penalty < level else 0.0
    # Directions that the kernel matrix of the centres does not resolve carry neither signal nor penalty. A diagonal at
    # rounding level keeps them at zero without changing any probability, so there is no warning.
    silent = 0.0 if size is None else level
    lower, jitter = smallest_jitter(lambda jitter: decompose(jitter + silent), level, jitter)
    if jitter:
        warn_singular(len(diagonal), jitter)
    return lower


def smallest_jitter(decompose: Callable[[float], Any], level: float, jitter: float = 0.0) -> tuple[Any, float]:
    """The factor ``decompose(jitter)`` for the first jitter for which it is not None, and that jitter.

    After ``jitter`` itself it tries ``level``, and then ten times as much each time.
    """
    while np.isfinite(jitter):
        lower = decompose(jitter)
        if lower is not None:
            return lower, jitter
        jitter = float(np.max([10.0 * jitter, level, _TINY]))  # NaN if one of them is
    raise linalg.LinAlgError("The sums over rows contain NaN or infinity.")


def jittered_factor(system: np.ndarray, level: float, jitter: float = 0.0) -> np.ndarray:
    """The lower factor of a system with the smallest jitter for which it exists, without a warning."""

    def decompose(jitter: float) -> np.ndarray | None:
        shifted = system + jitter * np.eye(len(system)) if jitter else system
        lower, info = linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=int(jitter > 0))
        return None if info else lower

    start = jitter if np.isfinite(level) else level  # LAPACK does not notice every NaN
    return smallest_jitter(decompose, level, start)[0]


def kernel_factor(K: np.ndarray) -> np.ndarray:
    """The lower factor of a kernel matrix with jitter at rounding level, below which its eigenvalues are noise."""
    level = rounding_level(np.diagonal(K))
    return jittered_factor(K, level, level)


def rounding_level(diagonal: np.ndarray) -> float:
    """The size of rounding errors in a sum of squares with this diagonal."""
    if not len(diagonal):  # a class without centres
        return _TINY
    return float(max(max(len(diagonal), 100) * _EPS * np.mean(diagonal), _TINY))


def warn_singular(b: int, jitter: float) -> None:
    warn(
        f"The system of {b} equations is singular to working precision (repeated centres, constant columns or too "
        f"small a ridge); {jitter:.3g} was added to its diagonal. A larger ridge avoids this.",
        ConditionWarning,
    )


def _system(H, penalty, ridge, jitter) -> np.ndarray:
    system = np.array(H, order="F", dtype=np.float64)
    if penalty is not None:
        for column in range(len(system)):  # column by column, to avoid a second b × b temporary
            system[:, column] += ridge * penalty[:, column]
    np.einsum("ii->i", system)[:] += jitter + (ridge if penalty is None else 0.0)
    return system
