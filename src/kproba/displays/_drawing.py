"""Helpers shared by all displays."""

from importlib import import_module
from typing import Any

import numpy as np

from ..messages import needed


def pyplot():
    needed("matplotlib", "displays need matplotlib", "plot")
    return import_module("matplotlib.pyplot")


def axes_for(ax) -> tuple[Any, Any]:
    """``ax``, or new axes if it is None, and their figure."""
    if ax is None:
        _, ax = pyplot().subplots(layout="constrained")
    return ax, ax.figure


def axes_in_a_row(axes, size: int, width: float = 4.0):
    """``axes`` as an array of length ``size``, or new axes if it is None, and their figure."""
    if axes is None:
        _, axes = pyplot().subplots(1, size, figsize=(width * size, 3.5), layout="constrained", squeeze=False)
    axes = np.asarray(axes, dtype=object).ravel()
    if len(axes) != size:
        raise ValueError(f"axes has length {len(axes)}, but {size} plots need {size} axes.")
    return axes, axes[0].figure
