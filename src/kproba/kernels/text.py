"""The spectrum kernel: compares strings and sets by what they have in common."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from ..data.items import Items, as_items
from ..validation import check_choice
from .base import Untiled, dot
from .radial import DivergenceKernel


class Bags(NamedTuple):
    """Token counts: a matrix (n, tokens), the squared norms of its rows, and the hashes of its columns."""

    counts: sparse.csr_array
    square: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, bags: Iterable[Counter]) -> Bags:
        numbers: dict[Any, int] = {}
        columns: list[int] = []
        counts: list[int] = []
        ends = [0]
        for bag in bags:
            columns += [numbers.setdefault(token, len(numbers)) for token in bag]
            counts += bag.values()
            ends.append(len(columns))
        codes = np.array([_code(token) for token in numbers], dtype=np.uint64)
        shape = len(ends) - 1, len(codes)
        matrix = sparse.csr_array((np.array(counts, dtype=np.float64), np.array(columns), np.array(ends)), shape=shape)
        return cls(matrix, np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel(), codes)

    def taken(self, places) -> Bags:
        return Bags(self.counts[places], self.square[places], self.codes)

    def products(self, other: Bags) -> np.ndarray:
        """x·z (n, b), summed over the tokens that both collections have."""
        if self.codes is other.codes:
            return dot(self.counts, other.counts)
        _, mine, theirs = np.intersect1d(self.codes, other.codes, assume_unique=True, return_indices=True)
        return dot(self.counts[:, mine], other.counts[:, theirs])


@dataclass(frozen=True)
class Spectrum(Untiled, DivergenceKernel):
    """exp(−(1 − s(x, z))/σ²), where s is the similarity of two strings or two sets.

    A string is treated as the bag of its substrings of the given ``length``, a set as the bag of its members. s is the
    cosine similarity of two bags (the spectrum kernel) or their Tanimoto coefficient x·z/(x·x + z·z − x·z), which for
    sets is the Jaccard index. Lists and tuples of words are treated as strings of words.

    Parameters
    ----------
    length : int or pair of ints, default=3
        Number of characters, or words, in a substring; a pair gives the smallest and the largest length.
    width : float, optional
        The σ above; chosen from the data if None. With ``float("inf")`` the kernel is s itself.
    similarity : {"cosine", "tanimoto"}, default="cosine"
    positions : bool, default=False
        Whether substrings only match at the same position, for aligned strings such as DNA around a splice junction.

    Examples
    --------
    >>> Spectrum(length=2, width=float("inf"))(["GATTACA", "ATTAC"], ["GATTACA"]).round(3)
    array([[1.   ],
           [0.816]])
    >>> Spectrum(width=float("inf"), similarity="tanimoto")([{"a", "b"}], [{"b", "c"}]).round(3)
    array([[0.333]])
    """

    length: Any = 3
    width: Any = None
    similarity: str = "cosine"
    positions: bool = False
    name: ClassVar[str] = "spectrum"
    compares: ClassVar[str] = "strings, lists of words and sets"

    def __post_init__(self):
        if self.width is not None and not (isinstance(self.width, float | int | np.number) and self.width > 0):
            raise ValueError(f"width={self.width!r} of a kernel must be a positive number, or None to choose it.")
        low, high = self._lengths
        if not all(isinstance(each, Integral) for each in (low, high)) or not 1 <= low <= high:
            raise ValueError(f"length must be a positive int or an increasing pair of them, got {self.length!r}.")
        check_choice("similarity", self.similarity, ("cosine", "tanimoto"))

    @property
    def _lengths(self) -> tuple[int, int]:
        return tuple(self.length) if isinstance(self.length, tuple | list) else (self.length, self.length)

    def read(self, X) -> Items:
        items = as_items(X)
        for number, item in enumerate(items):
            if not isinstance(item, str | Set | list | tuple):
                raise TypeError(
                    f"X: entry {number} is a {type(item).__name__}; the spectrum kernel compares strings, sets, or "
                    "lists of words."
                )
        return items

    def pairs(self, X, Z, workers: int = 1):
        """2 − 2s (n, b), the squared distance between two normalised bags."""
        x, z = (self._bags(self.read(part)) for part in (X, Z))
        product = x.products(z)
        xx, zz = x.square[:, None], z.square[None, :]
        shared = product / (np.sqrt(xx * zz) if self.similarity == "cosine" else xx + zz - product)
        return np.maximum(2.0 - 2.0 * shared, 0.0)

    def of_pairs(self, pairs):
        if not np.isinf(self.width):
            return super().of_pairs(pairs)
        pairs *= -0.5
        pairs += 1.0
        return pairs

    def _bags(self, X: Items) -> Bags:
        key = "bags", self._lengths, bool(self.positions)
        return X.memory.entry(key, lambda: Bags.of(map(self._bag, X.collection))).taken(X.places)

    def _bag(self, item) -> Counter:
        if isinstance(item, Set):
            return Counter(item) or Counter([None])
        low, high = (min(length, len(item)) for length in self._lengths)  # a short string is a single substring
        starts = [(i, i + n) for n in range(low, high + 1) for i in range(len(item) - n + 1)]
        parts = (item[i:j] if isinstance(item, str) else tuple(item[i:j]) for i, j in starts)
        return Counter(zip(starts, parts)) if self.positions else Counter(parts)


def _code(token) -> int:
    """A 64-bit hash of a token, the same in every collection."""
    return int.from_bytes(hashlib.blake2b(repr(token).encode(), digest_size=8).digest(), "little")
