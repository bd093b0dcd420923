"""Explanations of each probability: exact Shapley values and partial dependence."""

from .dependence import fix_rows, partial_dependence
from .explain import explain
from .explanation import Explanation, Reason

__all__ = ["Explanation", "Reason", "explain", "fix_rows", "partial_dependence"]
