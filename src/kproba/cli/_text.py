"""Output of the commands: messages on standard error, results on standard output."""

from __future__ import annotations

import json
import math
import re
import sys

#: Characters that control a terminal or change how text is displayed: control characters (including ESC),
#: bidirectional marks, line separators, surrogates and invisible tags.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(value, keep: str = "") -> str:
    """Text from data or file names, safe to show in a terminal: other characters are escaped.

    >>> printable("a\\x1b[31mb\\n")
    'a\\\\x1b[31mb\\\\n'
    """
    return _UNSEEN.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), str(value))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def say(text: str, file=None) -> None:
    """Print a message; control characters from the data are escaped."""
    print(printable(text, keep="\n"), file=file, flush=True)


def to_stderr(text: str) -> None:
    """Print an error or a note; later lines are indented, so that no name in it can look like another message."""
    say(text.replace("\n", "\n  "), sys.stderr)


def remark(args, text: str) -> None:
    """Print a note, unless --json or --quiet is set."""
    if not args.quiet and not args.json:
        to_stderr(text)


def answer(args, facts: dict, text: str) -> None:
    """Print the result of a command, as JSON or as text."""
    if not args.json:
        say(text)
        return
    written = json.dumps(_plain(facts), ensure_ascii=False, allow_nan=False)
    say(_UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], written))


class Screen:
    """A terminal to write tables to: tabs and newlines are kept, other control characters are escaped."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(printable(text, keep="\n\t"))


def wants_progress(args) -> int:
    """Whether to show progress bars: in a terminal, if tqdm is installed."""
    if args.quiet or args.json or not sys.stderr.isatty():
        return 0
    try:
        import tqdm  # noqa: F401
    except ImportError:
        return 0
    return 1


def columns(header: list[str], rows: list[list[str]]) -> str:
    """Text in columns, the first left-aligned and the others right-aligned."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    lines = ["  ".join([str(row[0]).ljust(widths[0]), *(str(c).rjust(w) for c, w in zip(row[1:], widths[1:]))]).rstrip()
             for row in [header, *rows]]  # fmt: skip
    return "\n".join(lines)


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _plain(value):
    """Convert to JSON types, also NumPy's scalars and arrays; NaN and infinity become null."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
