"""Kernels, one family per file. ``as_kernels`` turns the ``kernel`` parameter into a list of Kernel objects."""

from __future__ import annotations

from dataclasses import dataclass

from ..validation import check_choice, is_subclass
from .additive import Additive, Pairs
from .alignment import GlobalAlignment
from .base import Kernel
from .dot import Linear, Polynomial
from .given import FromCallable, JointKernel, Precomputed
from .histogram import ChiSquared, Intersection
from .learnt import Learnt
from .radial import Gaussian, Laplacian, Matern, Radial
from .sequence import HiddenMarkovKernel
from .text import Spectrum

__all__ = [
    "KERNELS",
    "Additive",
    "ChiSquared",
    "FromCallable",
    "Gaussian",
    "GlobalAlignment",
    "HiddenMarkovKernel",
    "Intersection",
    "JointKernel",
    "Kernel",
    "Laplacian",
    "Learnt",
    "Linear",
    "Matern",
    "OneOf",
    "Pairs",
    "Polynomial",
    "Precomputed",
    "Radial",
    "Spectrum",
    "as_kernels",
]

#: The names that the parameter ``kernel`` takes.
KERNELS: dict[str, Kernel] = {
    "gaussian": Gaussian(),
    "rbf": Gaussian(),
    "laplacian": Laplacian(),
    "matern12": Matern(nu=0.5),
    "matern32": Matern(nu=1.5),
    "matern52": Matern(nu=2.5),
    "additive": Additive(),
    "pairs": Pairs(),
    "linear": Linear(),
    "polynomial": Polynomial(),
    "poly": Polynomial(),
    "precomputed": Precomputed(),
    "chi2": ChiSquared(),
    "intersection": Intersection(),
    "hidden-markov": HiddenMarkovKernel(),
    "alignment": GlobalAlignment(),
    "spectrum": Spectrum(),
}


@dataclass(frozen=True)
class OneOf:
    """Kernels among which a model has to choose, as the parameter ``kernel`` of the models of outer folds."""

    kernels: tuple[Kernel, ...]


def as_kernels(kernel) -> list[Kernel]:
    """The candidate kernels for the parameter ``kernel``: two for ``"auto"``, otherwise one unless it is a OneOf.

    >>> [k.name for k in as_kernels("auto")]
    ['gaussian', 'laplacian']
    """
    if isinstance(kernel, str):
        if kernel == "auto":
            return [Gaussian(), Laplacian()]
        check_choice("kernel", kernel, ("auto", *KERNELS), "a callable or Kernel object")
        return [KERNELS[kernel]]
    if isinstance(kernel, Kernel):
        return [kernel]
    if isinstance(kernel, OneOf):
        return list(kernel.kernels)
    if is_subclass(kernel, Kernel):
        raise TypeError(f"kernel is the class {kernel.__name__}; pass an instance: kernel={kernel.__name__}().")
    if callable(kernel):
        return [FromCallable(kernel)]
    raise TypeError(f"kernel must be a name, a callable or a Kernel object, got {type(kernel).__name__}.")
