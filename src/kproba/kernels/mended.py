"""Kernels whose matrices are not positive semi-definite, made so: negative eigenvalues become zero."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from ..exceptions import IndefiniteKernelWarning
from .base import Kernel, symmetrised

#: Eigenvalues below zero by less than this share of the largest are taken for rounding errors.
INDEFINITE = 1e-6
#: Eigenvalues above this share of the largest are positive; smaller ones would be divided by.
POSITIVE = 1e-9


@dataclass(frozen=True, eq=False)
class Mended(Kernel):
    """k(x, Z)·V₊Λ₊⁻¹V₊ᵀ·k(Z, z), where VΛVᵀ is the matrix of ``landmarks`` Z and + its positive eigenvalues.

    Among the landmarks it is the matrix VΛ₊Vᵀ, the nearest to theirs that is positive semi-definite, and everywhere
    an inner product: the same function for training rows and for new ones.
    """

    kernel: Kernel
    landmarks: Any
    values: np.ndarray
    vectors: np.ndarray
    negative_share: float
    runs_on_devices: ClassVar[bool] = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.kernel.name

    @property
    def width(self):
        return self.kernel.width

    def evaluator(self, Z):
        turn = self._turn(Z)
        return lambda X: self.kernel(X, self.landmarks) @ turn

    def __call__(self, X, Z, workers: int = 1):
        return self.kernel(X, self.landmarks, workers) @ self._turn(Z)

    def gram(self, Z, workers: int = 1):
        if Z is self.landmarks:
            return symmetrised((self.vectors * self.values) @ self.vectors.T)
        half = self._projected(Z) / np.sqrt(self.values)[:, None]
        return half.T @ half

    def _projected(self, Z) -> np.ndarray:
        """V₊ᵀk(Z, z) (r, b)."""
        return self.vectors.T @ self.kernel(self.landmarks, Z)

    def _turn(self, Z) -> np.ndarray:
        """V₊Λ₊⁻¹V₊ᵀk(Z, z) (n_landmarks, b)."""
        if Z is self.landmarks:
            return self.vectors @ self.vectors.T
        return self.vectors @ (self._projected(Z) / self.values[:, None])

    def detached(self, centers, own) -> Mended:
        """The same without the rows that the landmarks were taken from; ``own`` are the centres on their own."""
        return replace(self, landmarks=own if centers is self.landmarks else self.landmarks.detached())

    def warn(self) -> None:
        warnings.warn(
            f"kernel: the {self.name} kernel matrix of {len(self.vectors)} rows is not positive semi-definite: its "
            f"negative eigenvalues make up {100 * self.negative_share:.2g} % of its spectrum. They were set to zero.",
            IndefiniteKernelWarning,
            stacklevel=2,
        )


def definite(kernel: Kernel, landmarks, workers: int = 1) -> Kernel:
    """The kernel itself where its matrix of the landmarks is positive semi-definite or it is none to be mended."""
    if not kernel.is_mended:
        return kernel
    values, vectors = linalg.eigh(kernel.gram(landmarks, workers), check_finite=False)
    if values[0] >= -INDEFINITE * values[-1]:
        return kernel
    positive = values > POSITIVE * values[-1]
    share = float(-values[values < 0].sum() / np.abs(values).sum())
    return Mended(kernel, landmarks, values[positive], vectors[:, positive], share)
