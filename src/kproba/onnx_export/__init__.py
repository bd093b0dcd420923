"""Models as ONNX graphs, which predict without Python. Needs ``kproba[onnx]``."""

from .export import to_onnx

__all__ = ["to_onnx"]
