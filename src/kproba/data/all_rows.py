"""Every row of a source, for a fit that asks for sums over them."""

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
    """Rows that nobody holds in memory, of which sums can be had."""

    def encoding(self, scaling) -> Encoding: ...

    def sum(self, statistic: Any) -> Any: ...


@dataclass(frozen=True)
class AllRows:
    """A source of ``n_rows`` rows with the classes of its labels and the factors of their weights.

    ``total_weight`` is the sum of the rows' weights, factors included.
    """

    source: Source
    n_rows: int
    total_weight: float
    classes: np.ndarray
    factors: np.ndarray
    saved: Checkpoint | None = None
    #: of the passes so far, all of which have to read the same
    record: PassRecord = field(default_factory=PassRecord)
    title: str = "kproba"
    verbose: int = 0

    def encoding(self, scaling) -> Encoding:
        """How the rows become those of a model with this scaling."""
        return Encoding(self.classes, self.factors, scaling)

    def sum(self, statistic: Statistic, what: str = "sums") -> Any:
        """The statistic of all rows in one pass, which begins where a checkpoint ends."""
        if self.saved is None:
            return self._sweep(statistic, what)
        one = self.saved.next_pass((self.n_rows, statistic.identity, self.record.identity))
        total, start = one.load(type(statistic.finish(statistic.zero()))) or (None, 0)
        if start < self.n_rows:

            def note(total, row):
                one.save(lambda: statistic.finish(total), row)

            total = self._sweep(statistic, what, start_row=start, total=total, after_chunk=note)
            one.save(lambda: total, self.n_rows, always=True)
        return total

    def _sweep(self, statistic: Statistic, what: str, start_row: int = 0, **options):
        with RowProgress(self.verbose, self.n_rows, f"{self.title}: {what}", start_row) as progress:
            # the summary has checked them all
            options |= {"progress": progress, "start_row": start_row, "checked": True, "record": self.record}
            return sweep_source(self.source, statistic, **options)
