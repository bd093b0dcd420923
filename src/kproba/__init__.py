"""Kernel classifiers whose probabilities you can trust."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .version import __version__ as __version__

if TYPE_CHECKING:
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
        EncodingGuessWarning,
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

__all__ = [
    "LSPC",
    "BagOfFeatures",
    "CheckpointError",
    "ChiSquared",
    "ConditionWarning",
    "ConvergenceWarning",
    "DegenerateModelWarning",
    "EncodingGuessWarning",
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

#: Module -> its public names. They are imported on first use, so that a command or program that needs few of them
#: starts quickly; type checkers read the imports above.
_NAMES = {
    "data.files": "open_rows",
    "data.items": "Sequences",
    "data.writers": "write_probabilities",
    "decisions.conformal": "conformal_sets",
    "decisions.reject": "RejectOption",
    "estimators": "LSPC ImportVectorMachine KernelLogisticRegression SurfaceKernelClassifier",
    "exceptions": """
        CheckpointError ConditionWarning ConvergenceWarning DegenerateModelWarning EncodingGuessWarning
        FewRowsWarning IndefiniteKernelWarning KprobaWarning ModelFileError ModelFileWarning NothingKeptWarning
        TargetWarning UnitsWarning UnreadableWarning UnseenWarning
    """,
    "explanations": "Explanation explain partial_dependence",
    "features.bags": "BagOfFeatures",
    "features.pictures": "PictureDescriptors",
    "features.sequences": "SequenceFeatures",
    "kernels": """
        ChiSquared Gaussian GlobalAlignment HiddenMarkovKernel Intersection JointKernel Kernel Laplacian Linear
        Matern Polynomial Spectrum
    """,
    "onnx_export": "to_onnx",
    "persist": "load save",
    "pipelines": "tabular",
    "report": "write_report",
    "search.widths": "TimesMedian",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        found = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    elif not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        found = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
