"""Limits on a graph of nodes: its depth, and its size if shared nodes are written out every time.

Fifty lists that each contain the previous one twice take a few bytes, but hashing, comparing or printing them never
ends; a thousand objects that share one array are checked a thousand times. Both are limited before anything is used.
"""

from collections.abc import Iterator
from typing import Any

from ..exceptions import ModelFileError

#: Maximum nesting of nodes. A skrub pipeline has about thirty levels; hash() of 100,000 levels overflows the stack.
MOST_DEPTH = 100
#: Maximum ratio of the size with shared nodes written out every time to that with shared nodes written once; skrub
#: pipelines reach twenty.
MOST_REPEATED = 200
#: Bytes that are always allowed, so that small models may share nodes freely.
FREE = 1 << 20


class Extent:
    """Tracks depth and size node by node; raises an error as soon as a limit is exceeded."""

    def __init__(self) -> None:
        self._depths: list[int] = []
        self._sizes: list[int] = []
        self._once = self._written_out = 0

    def add(self, node: dict[str, Any]) -> None:
        """Count the next node, which may refer to earlier ones."""
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
        """Add the bytes of its arrays to the last node."""
        self._sizes[-1] += n_bytes
        self._once += n_bytes
        self._written_out += n_bytes
        if self._written_out > FREE + MOST_REPEATED * self._once:
            raise ModelFileError("it repeats the same nodes too often.")


def _values(node: dict[str, Any]) -> Iterator[Any]:
    """Everything in a node that may refer to another one."""
    for part in node.values():
        yield part
        yield from part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
