"""Modules of the extra ``kproba[onnx]``, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(name: str) -> Any:
    """The module of that name, or an error that names the extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"to_onnx needs {name.split('.')[0]}: pip install 'kproba[onnx]'") from error
