"""Indefinite kernels, projected to positive semi-definite: negative eigenvalues are set to zero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from ..exceptions import IndefiniteKernelWarning
from ..messages import warn
from .base import Kernel

#: Negative eigenvalues smaller than this share of the largest are treated as rounding errors.
INDEFINITE = 1e-6
#: Only eigenvalues above this share of the largest count as positive, because they are divided by.
POSITIVE = 1e-9
#: Warn if negative eigenvalues make up more than this share of the spectrum.
NOTICEABLE = 0.01


@dataclass(frozen=True, eq=False)
class ProjectedKernel(Kernel):
    """k(x, Z)·V₊Λ₊⁻¹V₊ᵀ·k(Z, z), where VΛVᵀ is the matrix of ``landmarks`` Z and + selects positive eigenvalues.

    On the landmarks this is VΛ₊Vᵀ, the nearest positive semi-definite matrix. It is an inner product everywhere, and
    the same function for training rows and new rows. ``values`` are in increasing order.
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
        """The share of the spectrum that was negative."""
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
        """A function from k(x, Z) to the features of x; for landmarks it removes the negative eigenvectors."""
        if Z is self.landmarks:
            negative = self.vectors[:, self.values < 0]
            return lambda features: features - (features @ negative) @ negative.T
        positive = self.values > POSITIVE * self.values[-1]
        vectors = self.vectors[:, positive]
        projector = vectors @ (vectors.T @ self.kernel(self.landmarks, Z) / self.values[positive, None])
        return lambda features: features @ projector

    def detached(self, centers, own) -> ProjectedKernel:
        """A copy without the rows that the landmarks were taken from; ``own`` are the detached centres."""
        return replace(self, landmarks=own if centers is self.landmarks else self.landmarks.detached())

    def warn(self) -> None:
        """Warn if a noticeable share of the spectrum was negative."""
        if self.negative_share < NOTICEABLE:
            return
        warn(
            f"kernel: the {self.name} kernel matrix of {len(self.vectors)} rows is not positive semi-definite. Its "
            f"negative eigenvalues, {100 * self.negative_share:.2g} % of the spectrum, were set to zero.",
            IndefiniteKernelWarning,
        )


def project_indefinite(kernel: Kernel, landmarks, workers: int = 1) -> Kernel:
    """The kernel projected to PSD on the landmarks; unchanged if it is already PSD there, or not to be projected."""
    if not kernel.is_projected:
        return kernel
    values, vectors = linalg.eigh(kernel.gram(landmarks, workers), check_finite=False)
    if values[0] >= -INDEFINITE * values[-1]:
        return kernel
    return ProjectedKernel(kernel, landmarks, values, vectors)
