"""Pictures of fitted models, in the manner of scikit-learn's displays. They need ``kproba[plot]``."""

from .comparison import ClassCurvesDisplay, ScoresDisplay
from .import_vectors import ImportPathDisplay, ImportPointsDisplay
from .predictions import ConfidenceHistogramDisplay, ReliabilityDisplay
from .risk import RiskCoverageDisplay
from .search import SearchMapDisplay

__all__ = [
    "ClassCurvesDisplay",
    "ConfidenceHistogramDisplay",
    "ImportPathDisplay",
    "ImportPointsDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "ScoresDisplay",
    "SearchMapDisplay",
]
