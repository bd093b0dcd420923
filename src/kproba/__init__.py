"""Kernel classifiers whose probabilities you can trust."""

from . import displays, metrics, recipes
from .data.files import open_rows
from .data.items import Sequences
from .data.writers import write_probabilities
from .decisions.conformal import conformal_sets
from .decisions.reject import RejectOption
from .estimators import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from .exceptions import (
    CheckpointError,
    ConditionWarning,
    ConvergenceWarning,
    DegenerateModelWarning,
    FewRowsWarning,
    IndefiniteKernelWarning,
    KprobaWarning,
    ModelFileError,
    ModelFileWarning,
    NothingKeptWarning,
    TargetWarning,
    UnitsWarning,
    UnreadableWarning,
    UnseenWarning,
)
from .explanations import Explanation, explain, partial_dependence
from .features.bags import BagOfFeatures
from .features.pictures import PictureDescriptors
from .features.sequences import SequenceFeatures
from .kernels import (
    ChiSquared,
    Gaussian,
    GlobalAlignment,
    HiddenMarkovKernel,
    Intersection,
    JointKernel,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Spectrum,
)
from .onnx_export import to_onnx
from .persist import load, save
from .pipelines import tabular
from .report import write_report
from .search.widths import TimesMedian
from .version import __version__ as __version__

__all__ = [
    "LSPC",
    "BagOfFeatures",
    "CheckpointError",
    "ChiSquared",
    "ConditionWarning",
    "ConvergenceWarning",
    "DegenerateModelWarning",
    "Explanation",
    "FewRowsWarning",
    "Gaussian",
    "GlobalAlignment",
    "HiddenMarkovKernel",
    "ImportVectorMachine",
    "IndefiniteKernelWarning",
    "Intersection",
    "JointKernel",
    "Kernel",
    "KernelLogisticRegression",
    "KprobaWarning",
    "Laplacian",
    "Linear",
    "Matern",
    "ModelFileError",
    "ModelFileWarning",
    "NothingKeptWarning",
    "PictureDescriptors",
    "Polynomial",
    "RejectOption",
    "SequenceFeatures",
    "Sequences",
    "Spectrum",
    "SurfaceKernelClassifier",
    "TargetWarning",
    "TimesMedian",
    "UnitsWarning",
    "UnreadableWarning",
    "UnseenWarning",
    "conformal_sets",
    "displays",
    "explain",
    "load",
    "metrics",
    "open_rows",
    "partial_dependence",
    "recipes",
    "save",
    "tabular",
    "to_onnx",
    "write_probabilities",
    "write_report",
]
