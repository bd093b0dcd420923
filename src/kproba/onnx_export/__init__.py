"""Export models to ONNX, which predicts without Python. Needs ``kproba[onnx]``."""

from .export import to_onnx

__all__ = ["to_onnx"]
