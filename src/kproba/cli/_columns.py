"""The columns of a training table as a person would check them: kind, gaps, an example, their use, what looks odd.
And the columns of new rows that do not look like them: what would otherwise silently count as unknown or as missing."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..data.kinds import pandas
from ..data.mixed import as_text
from ..data.text_numbers import MISSING, STYLES
from ..messages import listing
from ..threads import map_independent, n_workers
from . import _text
from ._dates import DAY_FIRST, MONTH_FIRST, example_of, order_of

#: The use of each kind of column. Columns without a kind are dropped.
USES = {
    "numbers": "used as a number",
    "dates": "year, month, day and so on",
    "categories": "one 0/1 column for each of {n} values",
    "text": "encoded by groups of letters",
}
CONSTANT, EMPTY = "constant", "empty"
#: Characters of an example, columns listed, values of a category remembered, and rows needed to suspect a column.
WIDEST, MOST_LISTED, MOST_VALUES, LEAST_ROWS = 24, 60, 200, 20
#: A column predicts the target alone if neighbours in its order have another class this many times less than at random.
LEAK = 0.05
#: With at least this share of numbers, the other values of a text column are stray words.
MOSTLY_NUMBERS = 0.8
#: Names that identifiers have.
_ID = re.compile(r"(?i)(^|[\W_])(id|ids|uuid|guid|key|index|nr|no|number|row)$|[a-z](Id|ID)$|^Unnamed: 0$")


class Column(NamedTuple):
    """A column of the training table; ``remarks`` say what looks odd."""

    name: str
    kind: str
    missing: float
    example: str
    use: str
    remarks: list[str]


def overview(X, y: np.ndarray, kinds: Mapping[str, str], seed: int = 0) -> list[Column]:
    """All columns of a frame; ``kinds`` has the kind of those that are used."""
    codes = pandas().factorize(y)[0]  # once, as strings are compared one by one
    columns = [(X[name], kinds.get(name)) for name in X.columns]
    return map_independent(lambda each: _column(each[0], codes, each[1], seed), columns, n_workers(None))


def _column(values, y: np.ndarray, kind: str | None, seed: int) -> Column:
    present = _present(values)
    missing = 1.0 - len(present) / max(1, len(values))
    distinct = present.nunique()
    if kind is None:
        kind, use = (CONSTANT, "dropped") if distinct else (EMPTY, "dropped")
    else:
        use = USES.get(kind, "used").format(n=distinct)
    example = _shortened(present.iloc[0]) if len(present) else ""
    remarks = [] if use == "dropped" else _remarks(values, present, distinct, y, kind, seed)
    return Column(str(values.name), kind, missing, example, use, remarks)


def _remarks(values, present, distinct: int, y: np.ndarray, kind: str, seed: int) -> list[str]:
    found = []
    if len(values) >= LEAST_ROWS and distinct == len(present) and is_identifier(present, kind):
        found.append("looks like an identifier: leave it out with --ignore")
    if kind in ("categories", "text") and (words := stray_words(present)):
        listed = ", ".join(map(repr, words[:3])) + (" …" if len(words) > 3 else "")
        found.append(
            f"numbers with stray words ({listed}), so it is read as words: empty these cells to use the numbers"
        )
    if len(values) >= LEAST_ROWS and is_leak(values, y, seed):
        found.append("predicts the target alone: will it be known when you predict?")
    return found


def is_identifier(present, kind: str) -> bool:
    """Whether the values are all distinct and consecutive, or named as identifiers are, or codes in one word."""
    if len(present) < LEAST_ROWS or present.nunique() < len(present):
        return False
    is_named = bool(_ID.search(str(present.name)))
    if kind == "numbers":
        numbers = pandas().to_numeric(present, errors="coerce").dropna()
        is_whole = len(numbers) == len(present) and bool((numbers % 1 == 0).all())
        return is_whole and (is_named or set(np.abs(np.diff(np.sort(numbers)))) == {1})
    return kind == "text" and (is_named or not present.astype(str).str.strip().str.contains(r"\s").any())


def stray_words(present) -> list[str]:
    """The values of a text column that are not numbers, if most are."""
    if present.dtype.kind != "O":
        return []
    codes, distinct = pandas().factorize(present)
    text, counts = [str(value).strip() for value in distinct], np.bincount(codes, minlength=len(distinct))
    for pattern in STYLES.values():
        is_number = np.array([pattern.fullmatch(each) is not None for each in text], dtype=bool)
        if MOSTLY_NUMBERS * len(codes) <= counts[is_number].sum() < len(codes):
            return sorted({each for each, is_one in zip(text, is_number) if not is_one})
    return []


def is_leak(values, y: np.ndarray, seed: int = 0) -> bool:
    """Whether neighbours in the order of a column nearly always have the same class; words are in random order."""
    rng = np.random.default_rng(seed)
    codes, classes = pandas().factorize(y)
    shares = np.bincount(codes)
    by_chance = len(y) * (1.0 - ((shares / len(y)) ** 2).sum())
    mixed = rng.permutation(len(y))  # equal values stay in random order, as the sort is stable
    found = codes[mixed[np.argsort(_places(values, rng)[mixed], kind="stable")]]
    changes = int(np.count_nonzero(found[1:] != found[:-1]))
    return len(classes) > 1 and changes <= max(len(classes) - 1, LEAK * by_chance) and by_chance >= 2 * len(classes)


def _places(values, rng) -> np.ndarray:
    """Numbers that sort the values of a column: numbers as they are, words in random order."""
    is_number = values.dtype.kind in "iufb"
    if is_number and isinstance(values.dtype, np.dtype):
        return values.to_numpy()
    codes, distinct = pandas().factorize(values, sort=is_number)
    order = np.arange(len(distinct)) if is_number else rng.permutation(len(distinct))
    # missing values have code −1, and numbers of 16 bits are sorted in linear time
    return np.append(order, len(distinct)).astype(np.min_scalar_type(len(distinct)))[codes]


def table(found: list[Column]) -> str:
    """The columns as text; those with remarks first if there are too many to list."""
    listed = sorted(found, key=lambda each: not each.remarks)[:MOST_LISTED] if len(found) > MOST_LISTED else found
    rows = [
        [_shortened(c.name), c.kind, _text.percent(c.missing) if c.missing else "", c.example, c.use] for c in listed
    ]
    lines = _text.columns(["column", "kind", "missing", "example", "use"], rows, left=(0, 1, 3, 4)).split("\n")
    noted = [line for row, each in zip(lines[1:], listed) for line in (row, *(f"  ! {text}" for text in each.remarks))]
    more = [f"and {len(found) - len(listed):,} more columns"] if len(found) > len(listed) else []
    return "\n".join([lines[0], *noted, *more])


def profile(X, kinds: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What new rows are compared with: the values of categories, and the order of day and month in dates."""
    found: dict[str, dict[str, Any]] = {}
    for name, kind in kinds.items():
        if kind == "categories" and (values := _words(X[name])) and len(values) <= MOST_VALUES:
            found[name] = {"values": sorted(values)}
        elif kind == "dates" and (order := order_of(X[name])):
            found[name] = {"order": order}
    return found


class NewRows:
    """Looks at new rows part by part, and at the end says which columns do not look like those of the training table.

    ``profile`` is that of the training table, see :func:`profile`.
    """

    def __init__(self, profile: dict[str, dict[str, Any]] | None):
        self._profile = profile or {}
        self._unseen: dict[str, set[str]] = {name: set() for name, about in self._profile.items() if "values" in about}
        self._swapped: dict[str, str] = {}

    def add(self, frame) -> None:
        """Look at some more rows."""
        for name in list(self._unseen):
            found = _words(frame[name])
            if found & set(self._profile[name]["values"]):
                del self._unseen[name]
            else:
                self._unseen[name] |= found
        for name, about in self._profile.items():
            other = MONTH_FIRST if about.get("order") == DAY_FIRST else DAY_FIRST
            if "order" in about and name not in self._swapped and (example := example_of(frame[name], other)):
                self._swapped[name] = example

    def remarks(self) -> list[str]:
        """One sentence or two for each column that looks different."""
        unseen = [
            f"column {name!r}: the model knows none of the values {listing(sorted(found), 3)}; it was fitted on "
            f"{listing(self._profile[name]['values'], 3)}. Check that both files spell them in the same way."
            for name, found in self._unseen.items()
            if found
        ]
        swapped = [
            f"column {name!r}: the training table writes dates as {self._profile[name]['order']}, but {example!r} can "
            "only be read the other way round. Such dates count as missing, and the others may have day and month "
            "exchanged; write dates as 2024-12-31 in both files."
            for name, example in self._swapped.items()
        ]
        return unseen + swapped

    def show(self, args) -> None:
        for text in self.remarks():
            args.notes.append(text)
            _text.remark(args, f"note: {text}")


def _words(column) -> set[str]:
    """The distinct values as text; whole numbers without decimals."""
    return {as_text(v) if isinstance(v, float) else str(v).strip() for v in _present(column).unique()}


def _present(values):
    found = values.dropna()
    return found[~found.isin(MISSING)] if found.dtype.kind == "O" else found


def _shortened(value) -> str:
    text = f"{value:g}" if isinstance(value, float) else _text.printable(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
