"""Plots of fitted models, with the interface of scikit-learn's displays. They need ``kproba[plot]``."""

from .explanations import ExplanationDisplay
from .fitted import ImportanceDisplay, ImportPathDisplay, KernelLearningDisplay, SearchMapDisplay
from .predictions import ConfidenceHistogramDisplay, ReliabilityDisplay, RiskCoverageDisplay, ScoresDisplay

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
