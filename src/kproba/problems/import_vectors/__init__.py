"""Kernel logistic regression on a few greedily chosen rows: the algorithm of the 2001 paper.

``model.py`` fits the coefficients for given import points, ``search.py`` finds the next point, and ``path.py`` repeats
both until the stopping rule holds, from large ridges to small ones. ``held_out.py`` scores each row by the model
without it. ``streamed.py`` finds points by passes over rows that do not fit into memory.
"""

from .held_out import leave_one_out
from .model import ImportModel, Task
from .path import LOSS_FLOOR, Growth, PathPoint, Settings, Tuning, best_of, follow, noticeable_best_of, tuning_split
from .search import SEARCHES, Pool
from .streamed import FirstRowsOf, StreamedSearch

__all__ = [
    "LOSS_FLOOR",
    "SEARCHES",
    "FirstRowsOf",
    "Growth",
    "ImportModel",
    "PathPoint",
    "Pool",
    "Settings",
    "StreamedSearch",
    "Task",
    "Tuning",
    "best_of",
    "follow",
    "leave_one_out",
    "noticeable_best_of",
    "tuning_split",
]
