"""Words that errors and warnings share: what was probably meant, and the line of the user that it is about."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches

#: A list of names in a message ends after so many.
MOST_NAMES = 5


def did_you_mean(value, known: Iterable) -> str:
    """A known value that is spelt nearly the same, in brackets; nothing where there is none.

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
    """The first names of a list, and how many more there are.

    >>> listing(["a", 3]), listing("abcdefg")
    ("'a', 3", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called into this package, however deep inside it the reason was found."""
    level, frame = 2, sys._getframe().f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "kproba":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
