"""Where rows come from: arrays, the papers' toy problems, and real sets from a folder or OpenML."""

from .rows import Batch, Rows

__all__ = ["Batch", "Rows"]
