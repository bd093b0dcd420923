"""Overlapping regions of rows, with weights that change smoothly from one region to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

#: A split shares this part of the rows on each side of the median, and leaves no child more than the second.
OVERLAP, LARGEST_CHILD = 0.05, 0.75


class Inside(NamedTuple):
    """The rows of a region: their index, and the weight (m,) of the region in each of them."""

    where: np.ndarray
    gate: np.ndarray


@dataclass(frozen=True)
class Regions:
    """The leaves of a binary tree whose splits are soft.

    Split s looks at column ``column[s]``: rows up to ``low[s]`` belong to its first child, rows from ``high[s]`` on to
    the second, and rows in between to both. Their weights are smooth functions of the row and sum to one.
    ``children[s]`` are the numbers of two other splits, or −1 − r for region r; split 0 is the root.
    """

    column: np.ndarray
    low: np.ndarray
    high: np.ndarray
    children: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, weights: np.ndarray, most_rows: int, categorical: Sequence[int] = ()) -> Regions:
        """Split rows at medians until no region has more than ``most_rows``, or no column can split it.

        Each split takes the column along which its rows are farthest apart in units of the kernel, in which
        ``weights`` (d,) are the rates of the columns. Codes of categories have no order and are never split.
        """
        allowed = np.setdiff1d(np.flatnonzero(np.asarray(weights) > 0), categorical)
        splits: list[tuple[int, float, float]] = []
        children: list[list[int]] = []
        n_regions = 0
        # depth first, the first child first: regions are numbered as ``inside`` visits them
        pending: list[tuple[np.ndarray, int, int]] = [(np.arange(len(X)), -1, 0)]
        while pending:
            rows, parent, side = pending.pop()
            split = best_split(X[rows], weights, allowed) if len(rows) > most_rows else None
            if parent >= 0:
                children[parent][side] = len(splits) if split is not None else -1 - n_regions
            if split is None:
                n_regions += 1
                continue
            column, low, high = split
            values, number = X[rows, column], len(splits)
            splits.append(split)
            children.append([0, 0])
            pending += [(rows[values > low], number, 1), (rows[values < high], number, 0)]
        columns, lows, highs = zip(*splits) if splits else ((), (), ())
        return cls(np.array(columns, int), np.array(lows, float), np.array(highs, float), _pairs(children))

    @property
    def n_regions(self) -> int:
        return len(self.column) + 1

    def inside(self, X: np.ndarray) -> Iterator[Inside]:
        """For every region in turn, its rows and their weights; the weights of a row sum to one over the regions."""
        pending = [(0 if len(self.column) else -1, np.arange(len(X)), np.ones(len(X)))]
        while pending:
            node, where, gate = pending.pop()
            if node < 0:
                yield Inside(where, gate)
                continue
            second = self._share_of_second_child(node, X[where, self.column[node]])
            for child, share in zip(self.children[node][::-1], (second, 1.0 - second)):
                there = share > 0
                pending.append((int(child), where[there], gate[there] * share[there]))

    def paths(self) -> list[list[tuple[int, int]]]:
        """For every region, the splits from the root to it and the child that was taken at each."""
        found: list[list[tuple[int, int]]] = []
        pending: list[tuple[int, list[tuple[int, int]]]] = [(0 if len(self.column) else -1, [])]
        while pending:
            node, path = pending.pop()
            if node < 0:
                found.append(path)
            else:
                pending += [(int(self.children[node, side]), [*path, (node, side)]) for side in (1, 0)]
        return found

    def _share_of_second_child(self, split: int, values: np.ndarray) -> np.ndarray:
        low, high = self.low[split], self.high[split]
        return smooth_step((np.clip(values, low, high) - low) / (high - low))


def smooth_step(t):
    """3t² − 2t³: from 0 to 1 with zero slope at both ends."""
    return t * t * (3.0 - 2.0 * t)


def best_split(X: np.ndarray, weights: np.ndarray, allowed: np.ndarray) -> tuple[int, float, float] | None:
    """The column of the widest spread that divides the rows, and the borders of the overlap; None if none does."""
    ordered = np.sort(X, axis=0)  # so that the order of the rows does not change a bit
    spread = np.abs(ordered - ordered[len(X) // 2]).mean(axis=0) * weights
    for column in allowed[np.argsort(-spread[allowed], kind="stable")]:
        borders = _borders(ordered[:, column])
        if borders is not None:
            return int(column), *borders
    return None


def _borders(values: np.ndarray) -> tuple[float, float] | None:
    """Sorted values on both sides of the median, between which rows are shared; None if too few would be left out."""
    n = len(values)
    low, high = values[int((0.5 - OVERLAP) * n)], values[int((0.5 + OVERLAP) * n)]
    if low == high:  # many equal values: split next to them, and share no row
        below, above = values[values < low], values[values > high]
        if not len(below) and not len(above):
            return None
        low, high = (low, above[0]) if len(above) >= len(below) else (below[-1], high)
    largest = max(np.count_nonzero(values < high), np.count_nonzero(values > low))
    return (float(low), float(high)) if largest <= LARGEST_CHILD * n and high > low else None


def _pairs(children: list[list[int]]) -> np.ndarray:
    return np.array(children, dtype=np.int64).reshape(-1, 2)
