"""Explanations of each probability: exact Shapley values and partial dependence."""

from .dependence import fix_rows, partial_dependence
from .explanation import Explanation, Reason, explain

__all__ = ["Explanation", "Reason", "explain", "fix_rows", "partial_dependence"]
