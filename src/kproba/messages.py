"""Helpers for errors and warnings: spelling suggestions, short lists of names, missing libraries, the caller's line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

#: Maximum number of names listed in a message.
MOST_NAMES = 5


def did_you_mean(value, known: Iterable) -> str:
    """A suggestion in parentheses if a known value has a similar spelling, otherwise an empty string.

    >>> did_you_mean("gausian", ["gaussian", "laplacian"]), did_you_mean("One_Step", ["one-step"])
    (" (did you mean 'gaussian'?)", " (did you mean 'one-step'?)")
    >>> did_you_mean("sigmoid", ["gaussian", "laplacian"])
    ''
    """
    if not isinstance(value, str):
        return ""
    spelt = {_normalised(each): each for each in known}
    close = get_close_matches(_normalised(value), spelt, n=1)
    return f" (did you mean {spelt[close[0]]!r}?)" if close else ""


def _normalised(value) -> str:
    return str(value).lower().replace("_", "-")


def listing(names: Iterable, most: int = MOST_NAMES) -> str:
    """The first few names of a list, and the number of the others.

    >>> listing(["a", 3]), listing("abcdefg")
    ("'a', 3", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def needed(module: str, who: str, extra: str) -> Any:
    """An optional library or one of its modules; the error says who needs it and which extra has it.

    >>> needed("no_such_library", "Teleport needs no_such_library", "teleport")
    Traceback (most recent call last):
    ...
    ImportError: Teleport needs no_such_library: pip install 'kproba[teleport]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{who}: pip install 'kproba[{extra}]'") from error


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the line calling this package, however deep the call stack."""
    level, frame = 2, sys._getframe().f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "kproba":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
