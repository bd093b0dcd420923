"""The character encoding of text files: Unicode by its marks or its bytes, otherwise Western European."""

import codecs
from collections.abc import Iterable
from itertools import chain

from ..messages import did_you_mean

#: Byte order marks, the longest first: that of UTF-32 starts with that of UTF-16.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: Encodings that programs write on Western European systems. The first leaves five bytes undefined, the second none.
WESTERN = ("cp1252", "latin-1")
#: Number of bytes in a block, and of blocks to look at.
BLOCK_BYTES, MOST_BLOCKS = 1 << 20, 64


def check_encoding(name: str, what: str) -> str:
    """Raise an error unless Python knows the encoding; return its name."""
    try:
        return codecs.lookup(name).name
    except LookupError:
        hint = did_you_mean(name, ["utf-8", "utf-16", "cp1252", "latin-1"])
        raise ValueError(f"{what} {name}: no such encoding{hint}; use utf-8, utf-16 or cp1252, for example.") from None


def detect(blocks: Iterable[bytes]) -> str:
    """The encoding of text that comes in blocks.

    >>> [detect([text.encode(name)]) for text, name in [("ü", "utf-8"), ("ü", "utf-16"), ("ab", "utf-16-be")]]
    ['utf-8', 'utf-16', 'utf-16-be']
    >>> detect(["Köln".encode("latin-1")])
    'cp1252'
    """
    blocks = iter(blocks)
    first = next(blocks, b"")
    if found := _by_first_bytes(first):
        return found
    possible = {name: codecs.getincrementaldecoder(name)().decode for name in ("utf-8", *WESTERN)}
    for block in chain([first], blocks):
        possible = {name: decode for name, decode in possible.items() if _accepts(decode, block)}
    return next(iter(possible), "utf-8")  # a file with zero bytes is not text; reading it says so


def _by_first_bytes(block: bytes) -> str | None:
    """The encoding that a mark names, or UTF-16 without a mark: every other byte of Western text is zero."""
    for mark, name in MARKS.items():
        if block.startswith(mark):
            return name
    zeros = [block[start::2].count(0) for start in (0, 1)]
    if max(zeros) > len(block) / 4 and min(zeros) * 10 < max(zeros):
        return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    return None


def _accepts(decode, block: bytes) -> bool:
    try:
        decode(block)
    except UnicodeDecodeError:
        return False
    return b"\0" not in block
