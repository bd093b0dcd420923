"""How far a graph of nodes extends: how deep it is, and how much it is once shared nodes are written out every time.

Fifty lists that each hold the one before twice are a few bytes, but no hash, comparison or message of them ends; a
thousand objects that share one array are checked a thousand times. Both are bounded before anything looks inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..exceptions import ModelFileError

#: Levels of nodes inside nodes. A pipeline of skrub's has about thirty; hash() of 100,000 overflows the stack.
MOST_DEPTH = 100
#: How many times larger all nodes may be with everything they share written out than with it written once; skrub's
#: reach twenty.
MOST_REPEATED = 200
#: What is always allowed, so that small models may share as they like.
FREE = 1 << 20


class Extent:
    """Grows node by node; raises as soon as the nodes so far are too much."""

    def __init__(self) -> None:
        self._depths: list[int] = []
        self._sizes: list[int] = []
        self._once = self._written_out = 0

    def add(self, node: dict[str, Any]) -> None:
        """Count the next node, which may point to those before it."""
        own = depth = shared = 0
        for value in _values(node):
            own += 8 + (len(value) if isinstance(value, str) else 0)
            ref = value.get("ref") if isinstance(value, dict) else None
            if type(ref) is int and 0 <= ref < len(self._sizes):
                depth, shared = max(depth, self._depths[ref]), shared + self._sizes[ref]
        if depth >= MOST_DEPTH:
            raise ModelFileError(f"its objects are nested more than {MOST_DEPTH} levels deep.")
        self._depths.append(depth + 1)
        self._sizes.append(shared)
        self._written_out += shared
        self.grow(own)

    def grow(self, n_bytes: int) -> None:
        """Count so many bytes more for the last node: those of its arrays."""
        self._sizes[-1] += n_bytes
        self._once += n_bytes
        self._written_out += n_bytes
        if self._written_out > FREE + MOST_REPEATED * self._once:
            raise ModelFileError("it holds the same nodes over and over.")


def _values(node: dict[str, Any]) -> Iterator[Any]:
    """Everything in a node that may point to another one."""
    for part in node.values():
        yield part
        yield from part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
