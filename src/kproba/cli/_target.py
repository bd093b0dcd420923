"""The target column: what a classifier cannot predict is refused before anything slow is done."""

from collections.abc import Mapping
from typing import Any

from . import _frames


def check_classes(args, counts: Mapping[Any, int]) -> None:
    """Raise an error for a target with one class, for quantities and for identifiers, from the rows of each class."""
    n_rows, target = sum(counts.values()), f"--target {args.target}"
    fractions = [label for label in counts if isinstance(label, float) and not label.is_integer()]
    if len(counts) == 1:
        label = next(iter(counts))
        raise ValueError(
            f"{target}: {args.data} has only the class {label!r} ({n_rows:,} row(s)); a classifier needs at least two."
        )
    if fractions:
        raise ValueError(
            f"{target}: it has fractions ({_frames.listing(sorted(fractions)[:3])}), so it is a quantity, not a class. "
            "To predict its values or ranges as classes, write them as words, for example 'high' or '2.5 stars'."
        )
    if len(counts) > n_rows / 2:
        raise ValueError(
            f"{target}: it has {len(counts):,} classes in {n_rows:,} rows, fewer than two rows per class; "
            "it looks like a numeric quantity or an identifier, not a class."
        )


def label_named(option: str, text: str, classes) -> Any:
    """The class that an option names; numbers and booleans are classes too."""
    found = {str(label): label for label in classes}
    if text not in found:
        hint = _frames.messages.did_you_mean(text, found)
        raise ValueError(f"{option} {text}: there is no such class{hint}; the classes are {_frames.listing(found)}.")
    return found[text]


def class_weights(words: list[str] | None, classes) -> Any:
    """The value of ``class_weight`` for the words ``balanced`` or ``LABEL=FACTOR``."""
    if not words or words == ["balanced"]:
        return words[0] if words else None
    found = {}
    for word in words:
        label, _, factor = word.rpartition("=")
        if not label or not _is_number(factor):
            raise ValueError(f"--class-weight {word}: use balanced, or LABEL=FACTOR such as yes=5.")
        found[label_named("--class-weight", label, classes)] = float(factor)
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
