"""Lazy imports of the extra ``kproba[onnx]``."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(name: str) -> Any:
    """Import a module, or raise an error that names the extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"to_onnx needs {name.split('.')[0]}: pip install 'kproba[onnx]'") from error
