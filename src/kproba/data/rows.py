"""Rows in memory, with their labels and weights.

Rows are processed in batches with inputs, dense targets and weights. For exclusive classes the targets are one-hot
columns. For tags (multi-label) they are the 0/1 columns and a constant 1, because the alternative to a tag is "not this
tag" and the two sum to one. Tags may be missing (NaN) in some rows: tags missing in the same rows form a group, and
each group has its own constant, which is 1 in the rows where the group is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..threads import BATCH_BYTES, row_slices
from .hashing import distinct, exact_keys

_TINY, _ROUNDING = np.finfo(np.float64).tiny, 1e-9


class Batch(NamedTuple):
    """A block of rows: ``X`` (m, d), ``targets`` (m, k), ``weight`` (m,), and its position in the source."""

    X: np.ndarray
    targets: np.ndarray
    weight: np.ndarray
    where: slice


@dataclass(frozen=True)
class Rows:
    """Inputs ``X`` (n, d), labels and positive weights (n,).

    ``labels`` is an (n,) array of class codes below ``n_classes``, or an (n, n_classes) matrix of tags: 0, 1, or NaN if
    missing. If tags are missing, ``group`` (n_classes,) numbers the groups of tags that are missing in the same rows.
    ``number`` (n,) is the index of each row in the user's input; ``keys`` (n,) are equal if and only if the input rows
    are equal, even after scaling. ``unit`` (n,) is the part of a row's weight that leave-one-out removes. For a sample
    with corrected weights, ``mass`` (n,) is the weight of each row among all rows. ``together`` (n,) numbers the user's
    groups: rows of one group are always left out together. ``categorical`` are the numbers of the columns of ``X`` that
    hold codes of categories. ``copies_are_draws`` says that new rows may equal known ones (:mod:`.copies`).
    """

    X: np.ndarray
    labels: np.ndarray
    weight: np.ndarray
    n_classes: int
    number: np.ndarray
    keys: np.ndarray
    unit: np.ndarray
    mass: np.ndarray | None = None
    group: np.ndarray | None = None
    together: np.ndarray | None = None
    categorical: tuple[int, ...] = ()
    copies_are_draws: bool = False

    @classmethod
    def of(
        cls,
        X,
        labels,
        weight,
        n_classes: int,
        factor: np.ndarray | float = 1.0,
        together=None,
        categorical: tuple[int, ...] = (),
        hashes: np.ndarray | None = None,
    ) -> Rows:
        """The user's rows, with their weights multiplied by ``factor``.

        Whole numbers as weights count copies of a row. Leave-one-out removes one of them, unless
        :func:`.copies.with_units` finds that copies are duplicates. Other weights say how much a row matters, and are
        removed as a whole. A factor is the importance of each copy, so a copy is removed together with its factor.
        ``hashes`` are the keys of :func:`.hashing.row_keys`, if they are known.
        """
        number, unit = np.arange(X.shape[0]), (np.minimum(weight, 1.0) if count_copies(weight) else weight) * factor
        keys, group = exact_keys(X, hashes), _tag_groups(labels)
        parts = X, labels, weight * factor, n_classes, number, keys, unit
        return cls(*parts, group=group, together=together, categorical=categorical)

    def __len__(self) -> int:
        return self.X.shape[0]

    @property
    def is_multilabel(self) -> bool:
        return self.labels.ndim == 2

    @property
    def n_targets(self) -> int:
        return self.n_classes + self.n_groups if self.is_multilabel else self.n_classes

    @property
    def n_groups(self) -> int:
        """Number of groups of tags known in the same rows: 1 unless tags are missing."""
        return 1 if self.group is None else int(self.group.max()) + 1

    @cached_property
    def constant(self) -> np.ndarray:
        """For each tag, the column of the targets with its constant."""
        return self.n_classes + (np.zeros(self.n_classes, dtype=int) if self.group is None else self.group)

    @cached_property
    def known(self) -> np.ndarray | None:
        """Which tags are known in which rows (n, n_classes); None if all are."""
        return None if self.group is None else ~np.isnan(self.labels)

    @property
    def filled_labels(self) -> np.ndarray:
        """The matrix of tags, with 0 for missing ones."""
        return self.labels if self.known is None else np.where(self.known, self.labels, 0.0)

    @cached_property
    def tag_weight(self) -> np.ndarray:
        """Total weight of the rows in which each tag is known."""
        return np.full(self.n_classes, self.total_weight) if self.known is None else self.weight @ self.known

    def mean_over_tags(self, values: np.ndarray) -> float:
        """The weighted mean of values (n, n_classes) over all known tags."""
        if self.known is None:
            return float(self.weight @ values.mean(axis=1, dtype=np.float64) / self.total_weight)
        sums = np.where(self.known, values, 0.0).sum(axis=1, dtype=np.float64)
        return float(self.weight @ sums / max(self.tag_weight.sum(), _TINY))

    def with_tags(self, tags: np.ndarray) -> Rows:
        """The same rows with some of the tags."""
        labels = self.labels[:, tags]
        return replace(self, labels=labels, n_classes=len(tags), group=_tag_groups(labels))

    def of_group(self, number: int) -> tuple[np.ndarray, np.ndarray, Rows]:
        """The tags of a group, the rows in which they are known, and these rows with only these tags."""
        tags = np.arange(self.n_classes) if self.group is None else np.flatnonzero(self.group == number)
        where = np.flatnonzero(~np.isnan(self.labels[:, tags[0]]))
        return tags, where, self.take(where).with_tags(tags)

    @cached_property
    def total_weight(self) -> float:
        return float(self.weight.sum())

    @property
    def n_copies(self) -> np.ndarray:
        """How many rows each one stands for: its weight, as a multiple of what leave-one-out removes."""
        return (self.weight if self.mass is None else self.mass) / self.unit

    @cached_property
    def prior(self) -> np.ndarray:
        """Weighted frequency of each class, or of each tag among the rows in which it is known."""
        if self.is_multilabel:
            share = self.weight @ self.filled_labels
            return np.divide(share, self.tag_weight, out=np.full_like(share, 0.5), where=self.tag_weight > 0)
        return np.bincount(self.labels, self.weight, self.n_classes) / self.total_weight

    @cached_property
    def n_distinct(self) -> int:
        """Number of distinct rows: a size that does not depend on weights or repetitions."""
        return len(self.distinct[0])

    @cached_property
    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The first of each distinct row, sorted by key, and the index of each row among them."""
        return distinct(self.keys)

    def targets(self, rows=slice(None)) -> np.ndarray:
        """Dense targets of some rows: one-hot classes, or the tags and a constant 1 for each group of them."""
        labels = self.labels[rows]
        if self.is_multilabel:
            if self.group is None:
                return np.hstack([labels, np.ones((len(labels), 1))])
            known = ~np.isnan(labels)
            first = np.unique(self.group, return_index=True)[1]
            return np.hstack([np.where(known, labels, 0.0), known[:, first]])
        return (labels[:, None] == np.arange(self.n_classes)).astype(np.float64)

    def take(self, index: np.ndarray) -> Rows:
        """The rows of ``index``."""
        parts = self.X[index], self.labels[index], self.weight[index]
        mass = None if self.mass is None else self.mass[index]
        which = self.number[index], self.keys[index], self.unit[index]
        together = None if self.together is None else self.together[index]
        same = self.categorical, self.copies_are_draws
        return Rows(*parts, self.n_classes, *which, mass, self.group, together, *same)

    def without(self, index: np.ndarray) -> Rows:
        """All rows except those of ``index``; all of them if none would be left.

        That happens if all rows are copies of one, for which every model predicts the class frequencies.
        """
        rest = np.setdiff1d(np.arange(len(self)), index)
        return self.take(rest) if len(rest) else self

    def merged(self, by_key: bool = False) -> tuple[Rows, np.ndarray]:
        """Merge equal rows with equal labels, adding their weights; also returns each row's index in the result.

        Rows of weight zero are dropped; their index is −1. A sum over merged rows is the same to the last bit whether a
        row occurs three times or has weight three. The rows keep their order, or are sorted by key: then their original
        order does not change a bit either.
        """
        positive = np.flatnonzero(self.weight > 0)
        by_keys = np.argsort(self.keys)
        if len(positive) == len(self) and (np.diff(self.keys[by_keys]) > 0).all():  # no two rows are equal
            return (self.take(by_keys), _inverse(by_keys)) if by_key else (self, np.arange(len(self)))
        first, group = distinct(self._entry_numbers()[positive])
        order = np.argsort(self.keys[positive[first]] if by_key else first, kind="stable")
        place = np.full(len(self), -1)
        place[positive] = _inverse(order)[group]
        if len(first) == len(self) and not by_key:
            return self, place
        weight = np.bincount(place[positive], self.weight[positive])
        return replace(self.take(positive[first[order]]), weight=weight), place

    def _entry_numbers(self) -> np.ndarray:
        """A number for each row, equal if and only if inputs, label, unit and the user's group are equal."""
        numbers = self.distinct[1]
        for part in (self.label_numbers, self.unit, *([] if self.together is None else [self.together])):
            codes = np.unique(part, return_inverse=True)[1].ravel()
            numbers = distinct(numbers * (int(codes.max()) + 1) + codes)[1]
        return numbers

    @property
    def label_numbers(self) -> np.ndarray:
        """A number for each row, equal if and only if the labels are equal."""
        if not self.is_multilabel:
            return self.labels
        return distinct(exact_keys(np.nan_to_num(self.labels, nan=2.0)))[1]

    def replace_inputs(self, X) -> Rows:
        """The same labels and weights with other inputs."""
        return replace(self, X=X)

    def batches(self, row_bytes: int, block_bytes: int = BATCH_BYTES) -> Iterator[Batch]:
        """Blocks of rows such that ``row_bytes`` of features per row stay within ``block_bytes``."""
        for rows in row_slices(len(self), row_bytes, block_bytes):
            yield Batch(self.X[rows], self.targets(rows), self.weight[rows], rows)

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.X)


def count_copies(weight: np.ndarray) -> bool:
    """Whether weights count copies, as whole numbers do."""
    return bool((np.abs(weight - np.rint(weight)) <= _ROUNDING * weight).all())


def _tag_groups(labels: np.ndarray) -> np.ndarray | None:
    """A group number for each tag, equal for tags missing in the same rows; None if no tag is missing."""
    if labels.ndim != 2 or labels.dtype.kind != "f" or not (missing := np.isnan(labels)).any():
        return None
    _, first, group = np.unique(np.packbits(missing, axis=0), axis=1, return_index=True, return_inverse=True)
    return _inverse(np.argsort(first))[group.ravel()]  # in the order of the tags, independent of that of the rows


def _inverse(order: np.ndarray) -> np.ndarray:
    """The inverse of a permutation."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place
