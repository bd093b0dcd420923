"""The interface of solvers for (H + ρP)θ = h, the least-squares system."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np


class Path:
    """H and P of a system without its ridge ρ, constructed as ``Path(H, penalty)``; a penalty of None is the identity.

    A factor, ``path.at(ridge)``, has ``solve(h)``, ``leverage(projected)`` and, for centres that belong to classes,
    ``inverse()``.
    """

    #: whether one decomposition serves all ridges; otherwise factors are made one at a time
    serves_all_ridges: ClassVar[bool] = False

    @classmethod
    def of(cls, moments: Any, centers: np.ndarray | None, penalty: np.ndarray | None) -> Self:
        """The path for moments, restricted to some centres."""
        return cls(moments.symmetric(centers), penalty)  # type: ignore[call-arg]

    def at(self, ridge: float) -> Any:
        """The factor at one ridge ρ."""
        raise NotImplementedError

    def project(self, phi: np.ndarray) -> np.ndarray:
        """Features in the form that the factors' ``leverage`` expects, shared by all ridges."""
        return phi
