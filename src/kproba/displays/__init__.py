"""Plots of fitted models, with the interface of scikit-learn's displays. They need ``kproba[plot]``."""

from .comparison import ScoresDisplay
from .explanations import ExplanationDisplay
from .import_vectors import ImportPathDisplay
from .learnt import ImportanceDisplay, KernelLearningDisplay
from .predictions import ConfidenceHistogramDisplay, ReliabilityDisplay
from .risk import RiskCoverageDisplay
from .search import SearchMapDisplay

__all__ = [
    "ConfidenceHistogramDisplay",
    "ExplanationDisplay",
    "ImportPathDisplay",
    "ImportanceDisplay",
    "KernelLearningDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "ScoresDisplay",
    "SearchMapDisplay",
]
