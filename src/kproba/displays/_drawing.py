"""What all displays do."""

from __future__ import annotations

from typing import Any

import numpy as np


def pyplot():
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("displays need matplotlib: pip install 'kproba[plot]'") from error
    return pyplot


def axes_for(ax) -> tuple[Any, Any]:
    """The axes to draw into, new ones if there are none, and their figure."""
    if ax is None:
        _, ax = pyplot().subplots(layout="constrained")
    return ax, ax.figure


def axes_in_a_row(axes, size: int, width: float = 4.0):
    """So many axes as an array, new ones if there are none, and their figure."""
    if axes is None:
        _, axes = pyplot().subplots(1, size, figsize=(width * size, 3.5), layout="constrained", squeeze=False)
    axes = np.asarray(axes, dtype=object).ravel()
    if len(axes) != size:
        raise ValueError(f"axes: {size} are needed for the {size} pictures, got {len(axes)}.")
    return axes, axes[0].figure


def legend(ax, name: str | None) -> None:
    if name is not None:
        ax.legend()
