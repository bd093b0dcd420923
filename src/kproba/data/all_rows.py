"""All rows of a source, for fits that need sums over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..progress import RowProgress
from .checkpoint import Checkpoint
from .encoding import Encoding
from .passes import PassRecord
from .sources import Source
from .sweep import Statistic, sweep_source


class SumsOverRows(Protocol):
    """Rows that need not be in memory, over which sums can be computed."""

    @property
    def total_weight(self) -> float: ...

    def encoding(self, scaling) -> Encoding: ...

    def sum(self, statistic: Any) -> Any: ...


@dataclass(frozen=True)
class AllRows:
    """A source of ``n_rows`` rows with its classes and their weight factors.

    ``total_weight`` is the sum of the row weights, including the factors.
    """

    source: Source
    n_rows: int
    total_weight: float
    classes: np.ndarray
    factors: np.ndarray
    saved: Checkpoint | None = None
    #: checksums of the previous passes, which must all read the same rows
    record: PassRecord = field(default_factory=PassRecord)
    title: str = "kproba"
    verbose: int = 0

    def encoding(self, scaling) -> Encoding:
        """The encoding of the rows for a model with this scaling."""
        return Encoding(self.classes, self.factors, scaling)

    def sum(self, statistic: Statistic, what: str = "sums") -> Any:
        """The statistic over all rows in one pass, resumed from a checkpoint if there is one."""
        if self.saved is None:
            return self._sweep(statistic, what)
        one = self.saved.next_pass((self.n_rows, statistic.identity, self.record.identity))
        total, start = one.load(type(statistic.finish(statistic.zero()))) or (None, 0)
        if start < self.n_rows:

            def save(total, row):
                one.save(lambda: statistic.finish(total), row)

            total = self._sweep(statistic, what, start_row=start, total=total, after_chunk=save)
            one.save(lambda: total, self.n_rows, always=True)
        return total

    def _sweep(self, statistic: Statistic, what: str, start_row: int = 0, **options):
        with RowProgress(self.verbose, self.n_rows, f"{self.title}: {what}", start_row) as progress:
            # the summary has already checked the rows
            options |= {"progress": progress, "start_row": start_row, "checked": True, "record": self.record}
            return sweep_source(self.source, statistic, **options)
