"""Links from scores to probabilities, one family per file. ``LINKS`` has the names for the parameter ``link``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import Device
from ..data.rows import Rows
from ..validation import is_subclass, look_up
from .base import (
    Link,
    PerTag,
    by_row,
    complete_by_prior,
    complete_tags,
    in_blocks,
    log_softplus,
    positive_prior,
    softmax,
)
from .calibrated import CalibratedSoftmax
from .calibrated_tags import Calibrated, CalibratedTags
from .plain import Clip, ClipParameters, Ratio, Sigmoid, Softmax

__all__ = [
    "LINKS",
    "CalibratedSoftmax",
    "CalibratedTags",
    "Clip",
    "Link",
    "PerTag",
    "Ratio",
    "Sigmoid",
    "Softmax",
    "as_link",
    "by_row",
    "complete_by_prior",
    "complete_tags",
    "fit_link",
    "in_blocks",
    "log_softplus",
    "positive_prior",
    "softmax",
]

LINKS: dict[str, type[Link]] = {
    "auto": Calibrated,
    "softmax": Calibrated,
    "clip": Clip,
    "clip-parameters": ClipParameters,
    "none": Ratio,
}


def as_link(link: Any, known: Mapping[str, type[Link]] = LINKS) -> type[Link]:
    """The link that the parameter ``link`` stands for: one of the names, or a subclass of Link itself.

    >>> as_link("clip")
    <class 'kproba.links.plain.Clip'>
    """
    return look_up("link", link, known, lambda own: is_subclass(own, Link), "a subclass of Link")


def fit_link(link, held_out: np.ndarray | None, rows: Rows, device: Device | None = None) -> Link:
    """The link for predictions; a calibrated one is fitted on held-out scores (n, k) of the rows."""
    kind = as_link(link)
    return kind.fit(held_out, rows, device) if kind is Calibrated else kind.fit(held_out, rows)


def link_flag(link, flag: str) -> bool:
    """A flag of the link that a parameter stands for, which may not have been checked yet."""
    return getattr(LINKS.get(link) if isinstance(link, str) else link, flag, getattr(Link, flag))
