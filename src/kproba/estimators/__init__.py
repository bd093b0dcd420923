"""The published classifiers, one a file."""

from .lspc import LSPC

__all__ = ["LSPC"]
