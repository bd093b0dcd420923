"""Output of the commands: messages on standard error, results on standard output."""

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
    """Print an error or a note; later lines are indented, so that no name in it can look like another message.

    A progress bar in the last line of the terminal moves down.
    """
    shown, tqdm = printable(text.replace("\n", "\n  "), keep="\n"), sys.modules.get("tqdm")
    if tqdm is None or not getattr(tqdm.tqdm, "_instances", None):
        print(shown, file=sys.stderr, flush=True)
    else:
        tqdm.tqdm.write(shown, file=sys.stderr)


def remark(args, text: str) -> None:
    """Print a note, unless --json or --quiet is set."""
    if not args.quiet and not args.json:
        to_stderr(text)


def show(args, text: str) -> None:
    """Print part of the result before the rest is known, unless --json or --quiet is set."""
    if not args.quiet and not args.json:
        say(text)


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


def columns(header: list[str], rows: list[list[str]], left: tuple[int, ...] = (0,)) -> str:
    """Text in columns, the first or the given ones left-aligned and the others right-aligned."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    cells = [[str(cell).ljust(w) if i in left else str(cell).rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
             for row in [header, *rows]]  # fmt: skip
    return "\n".join("  ".join(row).rstrip() for row in cells)


def percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def percents(*values: float) -> list[str]:
    """Shares with the same decimals, at least one and two significant digits of the smallest.

    >>> percents(0.37, 0.368), percents(0.0012, 0.0004)
    (['37.0 %', '36.8 %'], ['0.120 %', '0.040 %'])
    """
    return [percent(value, _digits([100 * each for each in values], least=1)) for value in values]


def figures(*values: float) -> list[str]:
    """The same for other numbers.

    >>> figures(0.65123, 0.658), figures(0.0081, 0.0079)
    (['0.651', '0.658'], ['0.0081', '0.0079'])
    """
    return [f"{value:.{_digits(values, least=3)}f}" for value in values]


def figure(value: float) -> str:
    return figures(value)[0] if math.isfinite(value) else "undefined"


def _digits(values, least: int) -> int:
    """Number of decimals with which the smallest value other than zero has two significant digits, up to six."""
    smallest = min((abs(value) for value in values if value), default=1.0)
    return min(6, max(least, 1 - math.floor(math.log10(smallest))))


def _plain(value):
    """Convert to JSON types, also NumPy's scalars and arrays; NaN and infinity become null."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
