"""A record of all candidates that a search has tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..kernels import Kernel


@dataclass
class SearchRecord:
    """All candidates that were tried, available as columns of equal length."""

    entries: list[tuple] = field(default_factory=list)
    names = ("stage", "kernel", "width", "ridge", "rows", "loss")

    def add(self, stage: str, kernel: Kernel, ridges: Sequence[float], losses: Sequence[float], n_rows: int) -> None:
        width = np.nan if kernel.width is None else kernel.width
        self.entries += [(stage, kernel.name, width, ridge, n_rows, loss) for ridge, loss in zip(ridges, losses)]

    def columns(self) -> dict[str, np.ndarray]:
        """A dict of arrays, in an order that does not depend on the timing of threads."""
        order = {stage: i for i, stage in enumerate(dict.fromkeys(entry[0] for entry in self.entries))}
        entries = sorted(self.entries, key=lambda entry: (order[entry[0]], *entry[1:]))
        columns = zip(*entries) if entries else ([] for _ in self.names)
        return {name: np.array(column) for name, column in zip(self.names, columns)}
