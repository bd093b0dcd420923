"""Numbers as people write them: 1,234.50 or 1.234,50, € 12, 7 %, a dash for a missing value, a stray word."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_SPACE = "\\s\u00a0\u202f"
#: A number format: {t} separates thousands, {d} the decimals. A number with thousands separators does not start with 0.
_NUMBER = (
    "[-+\u2212]?[{s}]*[$€£¥]?[{s}]*(?:[1-9][0-9]{{0,2}}(?:[{t}{s}'’][0-9]{{3}})+(?:[{d}][0-9]+)?|(?:[0-9]+(?:[{d}][0-9]*)?|[{d}][0-9]+)(?:[eE][-+]?[0-9]+)?)"
    r"[{s}]*[$€£¥%]?"
)
#: Decimal mark -> pattern of a number. We use the first that matches all values of a column.
STYLES = {
    ".": re.compile(_NUMBER.format(s=_SPACE, t=",", d=".")),
    ",": re.compile(_NUMBER.format(s=_SPACE, t=".", d=",")),
}
#: Strings for a missing number, in lower case.
MISSING = ("", "?", "-", "–", "—", "...", "na", "n/a", "nan", "none", "null")
#: A column of numbers may hold a few words, such as "unknown": so many different ones, in this share of the values.
MOST_WORDS, STRAY_SHARE = 3, 0.05


class Style(NamedTuple):
    """The decimal mark of a column of numbers, and the words in it that are not numbers."""

    mark: str
    words: tuple[str, ...] = ()


def style_of(counts: Mapping[str, float], first: str = ".", words_allowed: bool = True) -> Style | None:
    """How the values of a column are written as numbers, from the number of rows of each; None if they are not.

    ``first`` is the decimal mark to prefer if both are possible.

    >>> style_of({"1.5": 20, "2": 8, "unknown": 1})
    Style(mark='.', words=('unknown',))
    >>> style_of({"€ 1.200,50": 1, "3,5": 1}), style_of({"a": 1, "2": 1})
    (Style(mark=',', words=()), None)
    """
    counts = {text: n for text, n in counts.items() if not is_missing_text(text)}
    found = [_with_mark(mark, counts) for mark in sorted(STYLES, key=lambda mark: mark != first)]
    possible = [style for style in found if style is not None and (words_allowed or not style.words)]
    return min(possible, key=lambda style: len(style.words), default=None)


def marks_of(texts: Iterable[str], marks: Iterable[str] = tuple(STYLES)) -> tuple[str, ...]:
    """Those of the decimal marks with which all texts are numbers or stand for a missing one.

    >>> marks_of(["8.500", "-"]), marks_of(["8.500", "1.234,5"]), marks_of(["8.500", "two"])
    (('.', ','), (',',), ())
    """
    texts = [text.strip() for text in texts if not is_missing_text(text)]
    return tuple(mark for mark in marks if all(map(STYLES[mark].fullmatch, texts)))


def is_missing_text(text: str) -> bool:
    """Whether a text in a column of numbers stands for a missing one."""
    return text.strip().lower() in MISSING


def _with_mark(mark: str, counts: Mapping[str, float]) -> Style | None:
    words: list[str] = []
    for text in counts:
        if not STYLES[mark].fullmatch(text.strip()):
            words.append(text)
            if len(words) > MOST_WORDS:
                return None
    n_stray, total = sum(counts[word] for word in words), sum(counts.values())
    return Style(mark, tuple(words)) if counts and n_stray <= STRAY_SHARE * total else None


def to_numbers(texts: Iterable[str], mark: str) -> list[float]:
    """The texts as numbers; NaN for those that are not, and for numbers too large for a float.

    >>> to_numbers(["€ 1.200,50", "-,5", "1e3", ","], ",")
    [1200.5, -0.5, 1000.0, nan]
    """
    return [_to_number(text.strip(), mark) for text in texts]


def _to_number(text: str, mark: str) -> float:
    if not STYLES[mark].fullmatch(text):
        return math.nan
    plain = re.sub(rf"[^0-9{mark}eE+-]", "", text.replace("\u2212", "-")).replace(mark, ".")
    value = float(plain)
    return value if math.isfinite(value) else math.nan
