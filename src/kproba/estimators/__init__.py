"""The published classifiers, one per file."""

from .ivm import ImportVectorMachine
from .klr import KernelLogisticRegression
from .lspc import LSPC
from .surface import SurfaceKernelClassifier

__all__ = ["LSPC", "ImportVectorMachine", "KernelLogisticRegression", "SurfaceKernelClassifier"]
