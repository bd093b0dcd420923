"""What the commands say: text for people on standard error, JSON or tables on standard output."""

from __future__ import annotations

import json
import sys

import numpy as np


def remark(args, text: str) -> None:
    """A line for people; with --json or --quiet none."""
    if not args.quiet and not args.json:
        print(text, file=sys.stderr, flush=True)


def answer(args, facts: dict, text: str) -> None:
    """The outcome of a command: as JSON, or as text."""
    print(json.dumps(_plain(facts), ensure_ascii=False, allow_nan=False) if args.json else text, flush=True)


def wants_progress(args) -> int:
    """Whether to show bars: to people who look, and have tqdm."""
    if args.quiet or args.json or not sys.stderr.isatty():
        return 0
    try:
        import tqdm  # noqa: F401
    except ImportError:
        return 0
    return 1


def columns(header: list[str], rows: list[list[str]]) -> str:
    """Text in columns, the first to the left and the others to the right."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    lines = ["  ".join([str(row[0]).ljust(widths[0]), *(str(c).rjust(w) for c, w in zip(row[1:], widths[1:]))]).rstrip()
             for row in [header, *rows]]  # fmt: skip
    return "\n".join(lines)


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _plain(value):
    """JSON's own types; what is no number becomes null."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
