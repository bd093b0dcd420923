"""Kernels whose matrices are not positive semi-definite, made so: negative eigenvalues become zero."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from ..exceptions import IndefiniteKernelWarning
from .base import Kernel

#: Eigenvalues below zero by less than this share of the largest are taken for rounding errors.
INDEFINITE = 1e-6
#: Eigenvalues above this share of the largest are positive; smaller ones would be divided by.
POSITIVE = 1e-9
#: A warning tells of negative eigenvalues that make up more than this share of the spectrum.
NOTICEABLE = 0.01


@dataclass(frozen=True, eq=False)
class ProjectedKernel(Kernel):
    """k(x, Z)·V₊Λ₊⁻¹V₊ᵀ·k(Z, z), where VΛVᵀ is the matrix of ``landmarks`` Z and + its positive eigenvalues.

    Among the landmarks it is the matrix VΛ₊Vᵀ, the nearest to theirs that is positive semi-definite, and everywhere
    an inner product: the same function for training rows and for new ones. ``values`` are in increasing order.
    """

    kernel: Kernel
    landmarks: Any
    values: np.ndarray
    vectors: np.ndarray
    runs_on_devices: ClassVar[bool] = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.kernel.name

    @property
    def width(self):
        return self.kernel.width

    @property
    def negative_share(self) -> float:
        """How much of the spectrum was negative."""
        return float(-self.values[self.values < 0].sum() / np.abs(self.values).sum())

    def evaluator(self, Z):
        project = self._projection(Z)
        return lambda X: project(self.kernel(X, self.landmarks))

    def __call__(self, X, Z, workers: int = 1):
        return self._projection(Z)(self.kernel(X, self.landmarks, workers))

    def gram(self, Z, workers: int = 1):
        positive = self.values > POSITIVE * self.values[-1]
        values, vectors = self.values[positive], self.vectors[:, positive]
        if Z is self.landmarks:
            half = np.sqrt(values)[:, None] * vectors.T
        else:
            half = vectors.T @ self.kernel(self.landmarks, Z) / np.sqrt(values)[:, None]
        return half.T @ half

    def _projection(self, Z):
        """From k(x, Z) to the features of x: for landmarks, what lies along negative eigenvectors is taken away."""
        if Z is self.landmarks:
            negative = self.vectors[:, self.values < 0]
            return lambda features: features - (features @ negative) @ negative.T
        positive = self.values > POSITIVE * self.values[-1]
        vectors = self.vectors[:, positive]
        project = vectors @ (vectors.T @ self.kernel(self.landmarks, Z) / self.values[positive, None])
        return lambda features: features @ project

    def detached(self, centers, own) -> ProjectedKernel:
        """The same without the rows that the landmarks were taken from; ``own`` are the centres on their own."""
        return replace(self, landmarks=own if centers is self.landmarks else self.landmarks.detached())

    def warn(self) -> None:
        """Say so where it was more than a trifle."""
        if self.negative_share < NOTICEABLE:
            return
        warnings.warn(
            f"kernel: the {self.name} kernel matrix of {len(self.vectors)} rows is not positive semi-definite: its "
            f"negative eigenvalues make up {100 * self.negative_share:.2g} % of its spectrum. They were set to zero.",
            IndefiniteKernelWarning,
            stacklevel=2,
        )


def project_indefinite(kernel: Kernel, landmarks, workers: int = 1) -> Kernel:
    """The kernel itself where its matrix of the landmarks is positive semi-definite or it is none to be mended."""
    if not kernel.is_projected:
        return kernel
    values, vectors = linalg.eigh(kernel.gram(landmarks, workers), check_finite=False)
    if values[0] >= -INDEFINITE * values[-1]:
        return kernel
    return ProjectedKernel(kernel, landmarks, values, vectors)
