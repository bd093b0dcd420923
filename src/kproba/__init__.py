"""Kernel classifiers whose probabilities you can trust."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .version import __version__ as __version__

if TYPE_CHECKING:  # each name as itself, which makes it public to type checkers
    from . import displays as displays
    from . import metrics as metrics
    from . import recipes as recipes
    from .data.files import open_rows as open_rows
    from .data.items import Sequences as Sequences
    from .data.writers import write_probabilities as write_probabilities
    from .decisions.conformal import conformal_sets as conformal_sets
    from .decisions.reject import RejectOption as RejectOption
    from .estimators import LSPC as LSPC
    from .estimators import ImportVectorMachine as ImportVectorMachine
    from .estimators import KernelLogisticRegression as KernelLogisticRegression
    from .estimators import SurfaceKernelClassifier as SurfaceKernelClassifier
    from .exceptions import CheckpointError as CheckpointError
    from .exceptions import ConditionWarning as ConditionWarning
    from .exceptions import ConvergenceWarning as ConvergenceWarning
    from .exceptions import DegenerateModelWarning as DegenerateModelWarning
    from .exceptions import EncodingGuessWarning as EncodingGuessWarning
    from .exceptions import FewRowsWarning as FewRowsWarning
    from .exceptions import IndefiniteKernelWarning as IndefiniteKernelWarning
    from .exceptions import KprobaWarning as KprobaWarning
    from .exceptions import ModelFileError as ModelFileError
    from .exceptions import ModelFileWarning as ModelFileWarning
    from .exceptions import NothingKeptWarning as NothingKeptWarning
    from .exceptions import TargetWarning as TargetWarning
    from .exceptions import UnitsWarning as UnitsWarning
    from .exceptions import UnreadableWarning as UnreadableWarning
    from .exceptions import UnseenWarning as UnseenWarning
    from .explanations import Explanation as Explanation
    from .explanations import explain as explain
    from .explanations import partial_dependence as partial_dependence
    from .features.bags import BagOfFeatures as BagOfFeatures
    from .features.pictures import PictureDescriptors as PictureDescriptors
    from .features.sequences import SequenceFeatures as SequenceFeatures
    from .kernels import ChiSquared as ChiSquared
    from .kernels import Gaussian as Gaussian
    from .kernels import GlobalAlignment as GlobalAlignment
    from .kernels import HiddenMarkovKernel as HiddenMarkovKernel
    from .kernels import Intersection as Intersection
    from .kernels import JointKernel as JointKernel
    from .kernels import Kernel as Kernel
    from .kernels import Laplacian as Laplacian
    from .kernels import Linear as Linear
    from .kernels import Matern as Matern
    from .kernels import Polynomial as Polynomial
    from .kernels import Spectrum as Spectrum
    from .onnx_export import to_onnx as to_onnx
    from .persist import load as load
    from .persist import save as save
    from .pipelines import tabular as tabular
    from .report import write_report as write_report
    from .search.widths import TimesMedian as TimesMedian

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
__all__ = sorted([*_MODULE_OF, "displays", "metrics", "recipes"])


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
