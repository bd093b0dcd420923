"""Comparison of new rows with the training table: what would otherwise silently count as unknown or as missing."""

from __future__ import annotations

from typing import Any

from ..messages import listing
from . import _text
from ._columns import _words
from ._dates import DAY_FIRST, MONTH_FIRST, example_of


class NewRows:
    """Looks at new rows part by part, and at the end says which columns do not look like those of the training table.

    ``profile`` is that of the training table, see :func:`~kproba.cli._columns.profile`.
    """

    def __init__(self, profile: dict[str, dict[str, Any]] | None):
        self._profile = profile or {}
        self._unseen: dict[str, set[str]] = {name: set() for name, about in self._profile.items() if "values" in about}
        self._swapped: dict[str, str] = {}

    def add(self, frame) -> None:
        """Look at some more rows."""
        for name in list(self._unseen):
            found = _words(frame[name])
            if found & set(self._profile[name]["values"]):
                del self._unseen[name]
            else:
                self._unseen[name] |= found
        for name, about in self._profile.items():
            other = MONTH_FIRST if about.get("order") == DAY_FIRST else DAY_FIRST
            if "order" in about and name not in self._swapped and (example := example_of(frame[name], other)):
                self._swapped[name] = example

    def remarks(self) -> list[str]:
        """One sentence or two for each column that looks different."""
        unseen = [
            f"column {name!r}: the model knows none of the values {listing(sorted(found), 3)}; it was fitted on "
            f"{listing(self._profile[name]['values'], 3)}. Check that both files spell them in the same way."
            for name, found in self._unseen.items()
            if found
        ]
        swapped = [
            f"column {name!r}: the training table writes dates as {self._profile[name]['order']}, but {example!r} can "
            "only be read the other way round. Such dates count as missing, and the others may have day and month "
            "exchanged; write dates as 2024-12-31 in both files."
            for name, example in self._swapped.items()
        ]
        return unseen + swapped

    def show(self, args) -> None:
        for text in self.remarks():
            _text.remark(args, f"note: {text}")
