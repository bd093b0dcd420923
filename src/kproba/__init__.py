"""Kernel classifiers whose probabilities you can trust."""

from . import displays, metrics, recipes
from .bags import BagOfFeatures
from .data.files import open_rows
from .estimators import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from .exceptions import ConditionWarning, ConvergenceWarning, KprobaWarning
from .kernels import Gaussian, Kernel, Laplacian, Linear, Matern, Polynomial
from .pictures import PictureDescriptors
from .selection import TimesMedian
from .writing import write_probabilities

__version__ = "0.1.0"

__all__ = [
    "LSPC",
    "BagOfFeatures",
    "ConditionWarning",
    "ConvergenceWarning",
    "Gaussian",
    "ImportVectorMachine",
    "Kernel",
    "KernelLogisticRegression",
    "KprobaWarning",
    "Laplacian",
    "Linear",
    "Matern",
    "PictureDescriptors",
    "Polynomial",
    "SurfaceKernelClassifier",
    "TimesMedian",
    "displays",
    "metrics",
    "open_rows",
    "recipes",
    "write_probabilities",
]
