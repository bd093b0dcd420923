"""Tables of numbers, categories and missing values as one matrix of floats.

A category becomes an integer code, which kernels only compare for equality, or if it has few levels and the kernel is
learnt a 0/1 column for each. A missing number lies at the centre of its column and is marked in a further 0/1 column,
which has a weight of its own: a missing number is then at a learnt distance from all others. That keeps every kernel
positive definite; a constant distance between "missing" and every number would not.
"""

from __future__ import annotations

import datetime
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from ..exceptions import UnreadableWarning, UnseenWarning
from ..messages import did_you_mean, listing, warn
from ..threads import row_slices
from .labels import is_missing
from .text_numbers import STYLES, is_missing_text, marks_of, style_of, to_numbers

#: Levels with fewer rows share one code.
FEWEST_ROWS = 3
#: Largest number of levels, with those of rare and missing values, that have a column each.
MOST_MARKED = 12
#: Codes of a value that the training rows do not have. Rare levels and missing values have the codes after the others.
UNSEEN = -1
#: Codes are written in blocks of about this size.
BLOCK_BYTES = 1 << 15
#: Number of values of which more than half must be unseen for a warning.
SEVERAL = 5
#: A whole number with decimals, as files have it where a column of integers has gaps; 007.0 is not one.
WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]{0,18}))\.0+")
#: Names of columns that often hold codes, and the largest share of distinct values among the rows of such a column.
CODE_NAME = re.compile(
    r"(?:^|[\W_])(?i:id|code|type|kind|zip|category|group)s?$|[a-z](?:Id|Code|Type|Group)s?$|(?i:post|zip)codes?$"
)
CODE_SHARE = 0.2
#: Types of cells that are neither numbers nor categories.
TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


class Cells(NamedTuple):
    """The distinct values of a column, and the number of each row's value among them; −1 if it is missing."""

    values: Any  # a list or an index of pandas, which takes less memory than its values as objects
    place: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Number of rows of each value."""
        total = np.zeros(len(self.values) + 1, dtype=np.intp)
        for rows in row_slices(len(self.place), 8, BLOCK_BYTES):
            total += np.bincount(self.place[rows].astype(np.intp) + 1, minlength=len(total))
        return total[1:]

    def texts(self, name: Any = None) -> Iterator[str]:
        """The values as text; in blocks, since an index of pandas makes an object of each of its values at once."""
        for block in row_slices(len(self.values), 64, BLOCK_BYTES):
            for value in self.values[block]:
                yield as_text(value, name)


@dataclass(frozen=True)
class Number:
    """A column of numbers: its centre, whether some were missing in the training rows, and how text is read."""

    center: float
    has_gaps: bool
    mark: str = "."
    #: whether new rows are written with this mark, too
    is_settled: ClassVar[bool] = False

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return 1 + self.has_gaps

    def floats(self, name: Any, column: Any, is_new: bool = True) -> np.ndarray:
        """The numbers of rows; NaN if missing."""
        found = _as_floats(name, column)
        if found is not None:
            return found
        return _floats_of_cells(name, cells_of(name, column), self.mark, is_new, is_new and not self.is_settled)

    def write(self, name: Any, column: Any, out: np.ndarray, is_new: bool) -> None:
        """Write the columns of the matrix: the numbers, and which of them are missing."""
        found = self.floats(name, column, is_new)
        missing = np.isnan(found)
        if self.has_gaps:
            out[:, 1] = missing
        elif is_new and missing.any():
            warn_of_gaps([name])
        out[:, 0] = found
        out[missing, 0] = self.center

    def decoded(self, block: np.ndarray) -> np.ndarray:
        """The numbers, NaN where one is missing."""
        return np.where(block[:, 1] > 0.5, np.nan, block[:, 0]) if self.has_gaps else block[:, 0]


class SettledNumber(Number):
    """A column of a table that is read in parts: its mark is that of all new rows, whatever a part looks like."""

    is_settled = True


@dataclass(frozen=True)
class Category:
    """A column of categories: the levels that have a code each, and the rare ones that share one.

    ``marked`` are the codes that have a 0/1 column each instead of one column of codes.
    """

    levels: tuple[str, ...]
    rare: tuple[str, ...] = ()
    marked: tuple[int, ...] = ()

    @classmethod
    def of(cls, cells: Cells, marks_levels: bool = False) -> Category:
        counts: Counter[str] = Counter()
        for text, n in zip(cells.texts(), cells.counts.tolist()):
            counts[_without_decimals(text)] += n
        several = tuple(sorted(text for text, n in counts.items() if n >= FEWEST_ROWS))
        rare = tuple(sorted(text for text, n in counts.items() if 0 < n < FEWEST_ROWS))
        seen = (*range(len(several)), *[len(several)] * bool(rare), *[len(several) + 1] * bool((cells.place < 0).any()))
        return cls(several, rare, seen if marks_levels and 2 < len(seen) <= MOST_MARKED else ())

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return len(self.marked) or 1

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return len(self.levels) + 1

    @property
    def codes(self) -> dict[str, int]:
        """The code of each known level."""
        found = {text: code for code, text in enumerate(self.levels)}
        found.update(dict.fromkeys(self.rare, len(self.levels)))
        return found

    def code(self, text: str) -> int:
        """The code of a value, by bisection of the sorted levels: a dictionary of very many takes more memory."""
        for spelling in _spellings(text):
            for texts, codes in ((self.levels, None), (self.rare, len(self.levels))):
                place = bisect_left(texts, spelling)
                if place < len(texts) and texts[place] == spelling:
                    return place if codes is None else codes
        return UNSEEN

    def write(self, name: Any, column: Any, out: np.ndarray, is_new: bool) -> None:
        """Write the columns of the matrix: the codes, or which of them it is."""
        cells = cells_of(name, column)
        codes = chain(map(self.code, cells.texts(name)), [self.missing])  # the last one, which is that of −1
        known = np.fromiter(codes, float, len(cells.values) + 1)
        if is_new:
            self._warn_if_unseen(name, cells, known[:-1])
        for rows in row_slices(len(out), 8 * self.width, BLOCK_BYTES):
            found = known[cells.place[rows], None]
            out[rows] = found == self.marked if self.marked else found

    def _warn_if_unseen(self, name: Any, cells: Cells, known: np.ndarray) -> None:
        counts = cells.counts
        is_new, n_present = (known == UNSEEN) & (counts > 0), int(counts.sum())
        n_new = int(counts[is_new].sum())
        if n_present >= SEVERAL and n_new > n_present / 2:
            shown = as_text(cells.values[int(is_new.argmax())])
            warn(
                f"column {name!r}: {n_new} of the {n_present} values, such as {shown!r}, did not occur in the training "
                f"rows, which have {listing(self.levels)}; check that the columns are in order and written as before.",
                UnseenWarning,
            )

    def decoded(self, block: np.ndarray) -> np.ndarray:
        """The level of each row; "(rare)" for levels that share a code, and None for missing ones."""
        names = np.array([*self.levels, "(rare)", None, "(unseen)"], dtype=object)
        if not self.marked:
            return names[block[:, 0].astype(np.intp)]
        codes = np.append(self.marked, UNSEEN)
        return names[codes[np.where(block.max(axis=1) > 0.5, block.argmax(axis=1), len(self.marked))]]


@dataclass(frozen=True)
class MixedColumns:
    """What a model remembers of the columns of a mixed table; call it to turn a table into a matrix."""

    columns: tuple[Number | Category, ...]

    @classmethod
    def of(cls, X: Any, categorical_features: Any, marks_levels: bool = False) -> MixedColumns:
        """Look at the training rows.

        ``categorical_features`` says which columns hold categories. With ``marks_levels``, those with few levels get a
        0/1 column for each of them, so that a kernel can learn a weight for each.
        """
        found = zip(columns_of(X), chosen_columns(X, categorical_features))
        return cls(tuple(_column_of(name, column, is_code, marks_levels) for (name, column), is_code in found))

    @property
    def origins(self) -> tuple[int, ...]:
        """For each column of the matrix, the column of the table that it comes from."""
        return tuple(j for j, column in enumerate(self.columns) for _ in range(column.width))

    @property
    def categorical(self) -> tuple[int, ...]:
        """The columns of the matrix that hold codes."""
        kinds = [isinstance(column, Category) and not column.marked for column in self.columns]
        return tuple(place for place, j in enumerate(self.origins) if kinds[j])

    @property
    def _blocks(self) -> list[slice]:
        """The columns of the matrix that belong to each column of the table."""
        ends = np.cumsum([column.width for column in self.columns]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends)]

    def __call__(self, X: Any, is_new: bool = True) -> np.ndarray:
        """The matrix of rows with these columns.

        New rows may write numbers in another way, and cause warnings. A part of the training rows
        (``is_new=False``) is read in the same way as all of them.
        """
        matrix = np.empty((X.shape[0], len(self.origins)))
        for (name, values), column, block in zip(columns_of(X), self.columns, self._blocks):
            column.write(name, values, matrix[:, block], is_new)
        return matrix

    def with_gaps(self, gaps: Sequence[bool]) -> MixedColumns:
        """The same, with gaps in further columns of numbers than the rows have that were looked at."""
        found = zip(self.columns, gaps)
        return MixedColumns(
            tuple(replace(each, has_gaps=True) if more and isinstance(each, Number) else each for each, more in found)
        )

    def numbers(self, names: Sequence[str] | None) -> frozenset[str]:
        """The names of the columns of numbers that have decimal points, as in files."""
        found = zip(names if names is not None else (), self.columns)
        return frozenset(name for name, each in found if isinstance(each, Number) and each.mark == ".")

    def marks(self, names: Sequence[str] | None) -> dict[str, str]:
        """The decimal mark of each column of numbers in the training rows."""
        found = zip(names if names is not None else (), self.columns)
        return {name: each.mark for name, each in found if isinstance(each, Number)}

    def settled(self, names: Sequence[str], marks: Mapping[str, str]) -> MixedColumns:
        """The same for new rows in which columns have these marks, as :func:`marks_of_table` finds them."""
        found = zip(names, self.columns)
        return MixedColumns(
            tuple(
                SettledNumber(each.center, each.has_gaps, marks[name])
                if name in marks and isinstance(each, Number)
                else each
                for name, each in found
            )
        )

    def decoded(self, matrix: np.ndarray) -> np.ndarray:
        """The table that a matrix stands for: numbers with NaN, and if there are categories objects."""
        has_categories = any(isinstance(column, Category) for column in self.columns)
        table = np.empty((len(matrix), len(self.columns)), dtype=object if has_categories else np.float64)
        for j, (column, block) in enumerate(zip(self.columns, self._blocks)):
            table[:, j] = column.decoded(matrix[:, block])
        return table

    def per_column(self, shares: np.ndarray) -> np.ndarray:
        """Sums over the columns of the matrix (k, m) that belong to the same column of the table (k, d)."""
        return np.stack([shares[..., block].sum(axis=-1) for block in self._blocks], axis=-1)


def marks_of_table(frames: Iterable[Any], first: Mapping[str, str]) -> dict[str, str]:
    """The decimal marks of columns of text in a table that is read in parts: 8.500 may be 8500 because of another part.

    ``first`` are the marks of the training rows. They stay where they are possible, and where no mark is.
    """
    possible = dict.fromkeys(first, tuple(STYLES))
    for frame in frames:
        for name, marks in possible.items():
            if marks and as_floats(frame[name]) is None:
                possible[name] = marks_of(cells_of(name, frame[name]).texts(name), marks)
    return {name: mark if mark in possible[name] else (*possible[name], mark)[0] for name, mark in first.items()}


def warn_of_gaps(names: Sequence[Any]) -> None:
    """Warn that numbers are missing where the training rows had none."""
    warn(
        f"X has missing values in the column{'s' * (len(names) > 1)} {listing(names)}, where the training rows had "
        "none: the median takes their place, and nothing is known about rows without a value.",
        UnseenWarning,
    )


def is_mixed(X: Any, categorical_features: Any) -> bool:
    """Whether a table may hold more than numbers: by the types of its columns, without a look at the rows."""
    if sparse.issparse(X) or not is_rectangular(X):
        return False
    if not (categorical_features is None or isinstance(categorical_features, str)):
        return True
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "UST" or (X.dtype.kind == "O" and not _holds_numbers(X))
    return any(not _is_plain(column) for _, column in columns_of(X))


def _holds_numbers(X: np.ndarray) -> bool:
    """Whether objects are finite numbers, such as numbers and booleans that a ColumnTransformer returns together."""
    try:
        return bool(np.isfinite(X.astype(np.float64)).all())
    except (TypeError, ValueError):
        return False


def columns_like_codes(X: Any) -> list[Any]:
    """Names of integer columns with few distinct values whose name suggests codes: remarked upon, never guessed.

    >>> import pandas
    >>> columns_like_codes(pandas.DataFrame({"postcode": [8001, 3011, 4051] * 9, "visits": [1, 2, 3] * 9}))
    ['postcode']
    """
    found = []
    for name, column in columns_of(X):
        if getattr(column.dtype, "kind", "") in ("i", "u") and CODE_NAME.search(str(name)):
            n_distinct = len(np.unique(np.asarray(column)))
            if 2 < n_distinct <= CODE_SHARE * len(column):
                found.append(name)
    return found


def is_rectangular(X: Any) -> bool:
    """Whether X is a frame or a matrix of one value per cell."""
    return _names(X) is not None or (isinstance(X, np.ndarray) and X.ndim == 2)


def columns_of(X: Any) -> Iterator[tuple[Any, Any]]:
    """The name or number of each column, and its values."""
    names = _names(X)
    if names is None:
        yield from enumerate(X.T)
    elif hasattr(X, "iloc"):
        yield from ((name, X.iloc[:, j]) for j, name in enumerate(names))
    else:
        yield from ((name, X[name]) for name in names)


def chosen_columns(X: Any, categorical_features: Any) -> list[bool | None]:
    """For each column whether it is named as a category; None if its type decides."""
    d, names = X.shape[1], _names(X)
    if categorical_features is None:
        return [False] * d
    if isinstance(categorical_features, str):
        if categorical_features == "from_dtype":
            return [None] * d
        raise ValueError(
            "categorical_features must be 'from_dtype', None, a boolean mask, or a list of column numbers or names, "
            f"got {categorical_features!r}{did_you_mean(categorical_features, ['from_dtype'])}."
        )
    wanted = np.asarray(categorical_features)
    if wanted.ndim != 1:
        raise ValueError(f"categorical_features must be a list, got an array of shape {wanted.shape}.")
    if wanted.dtype.kind == "b":
        if len(wanted) != d:
            raise ValueError(f"categorical_features is a mask of {len(wanted)} columns, but X has {d}.")
        return wanted.tolist()
    return _by_number_or_name(wanted.tolist(), d, names)


def _by_number_or_name(wanted: list[Any], d: int, names: list | None) -> list[bool | None]:
    chosen: list[bool | None] = [False] * d
    for each in wanted:
        if isinstance(each, str):
            if names is None:
                raise ValueError(f"categorical_features names the column {each!r}, but X has no column names.")
            if each not in names:
                raise ValueError(f"categorical_features: X has no column {each!r}{did_you_mean(each, names)}.")
            chosen[names.index(each)] = True
        elif isinstance(each, int) and 0 <= each < d:
            chosen[each] = True
        else:
            raise ValueError(f"categorical_features has the entry {each!r}, but X has the columns 0 to {d - 1}.")
    return chosen


def _names(X: Any) -> list | None:
    """Column names of a frame or an Arrow table."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return None if names is None or isinstance(X, np.ndarray) else list(names)


def _column_of(name: Any, column: Any, is_code: bool | None, marks_levels: bool) -> Number | Category:
    """What there is to remember of a column of the training rows."""
    floats = None if is_code else _as_floats(name, column)
    if floats is None:
        cells = cells_of(name, column)
        if is_code or (is_code is None and _is_category(column, cells)):
            return Category.of(cells, marks_levels)
        floats, mark = _read_numbers(name, cells, or_category=is_code is None)
        if floats is None:
            return Category.of(cells, marks_levels)
        return _number(floats, mark)
    return _number(floats)


def _number(floats: np.ndarray, mark: str = ".") -> Number:
    missing = np.isnan(floats)
    there = floats[~missing]
    center = float(np.quantile(there, 0.5, method="lower")) if len(there) else 0.0
    return Number(center, bool(missing.any()), mark)


def _is_category(column: Any, cells: Cells) -> bool:
    """Whether a column holds categories by its type: a categorical dtype, or booleans with or without gaps."""
    dtype = getattr(column, "dtype", None)
    if str(dtype).partition("(")[0] in ("category", "Categorical", "Enum"):
        return True
    return len(cells.values) > 0 and all(isinstance(value, bool | np.bool_) for value in cells.values)


def _read_numbers(name: Any, cells: Cells, or_category: bool) -> tuple[np.ndarray | None, str]:
    """The numbers of a column of text or objects, and its decimal mark; None if these are categories."""
    counts: Counter[str] = Counter()
    for text, n in zip(cells.texts(name), cells.counts.tolist()):
        counts[text] += n
    style = style_of(counts)
    if style is None and any(not is_missing_text(text) for text in counts):
        if or_category:
            return None, "."
        raise ValueError(
            f"the column {name!r} of X holds values that are not numbers, such as {next(iter(counts))!r}; add it to "
            "categorical_features, or use categorical_features='from_dtype'."
        )
    mark = "." if style is None else style.mark
    if style is not None and style.words:
        n_words = sum(counts[word] for word in style.words)
        warn(
            f"column {name!r}: {n_words} of {sum(counts.values())} values are not numbers ({listing(style.words)}) and "
            "count as missing. If the column holds categories, name it in categorical_features.",
            UnreadableWarning,
        )
    return _floats_of_cells(name, cells, mark), mark


def _floats_of_cells(name: Any, cells: Cells, mark: str, is_new: bool = False, other_mark: bool = False) -> np.ndarray:
    """The numbers of cells, with this decimal mark or maybe another one throughout; NaN if missing or a word."""
    texts = list(cells.texts(name))
    style = style_of(dict.fromkeys(texts, 1.0), mark, words_allowed=False) if other_mark else None
    numbers = to_numbers(texts, mark if style is None else style.mark)
    exact = [float(v) if isinstance(v, Real) else number for v, number in zip(cells.values, numbers)]
    words = [text for text in texts if not is_missing_text(text)]
    if is_new and words and np.isnan(exact).all():
        warn(
            f"column {name!r}: the model was fitted on numbers, but none of the values, such as {words[0]!r}, can be "
            "read as such; they are treated as missing.",
            UnreadableWarning,
        )
    return _finite(name, np.array([*exact, np.nan])[cells.place])


def _is_plain(column: Any) -> bool:
    """Whether a column of a frame holds numbers or booleans and, as far as its type says, no missing values."""
    dtype = getattr(column, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind in "iufbcmM"


def as_floats(column: Any) -> np.ndarray | None:
    """A numeric column as floats, NaN where a value is missing; None for other types."""
    dtype: Any = getattr(column, "dtype", None)
    is_polars = hasattr(dtype, "is_numeric")
    if not (dtype.is_numeric() if is_polars else getattr(dtype, "kind", "") in ("i", "u", "f")):
        return None
    if hasattr(column, "iloc") and not isinstance(dtype, np.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(column.to_numpy() if is_polars else column, dtype=np.float64)


def _as_floats(name: Any, column: Any) -> np.ndarray | None:
    """The same for a column of a table to fit or predict: infinite values are an error."""
    found = as_floats(column)
    return None if found is None else _finite(name, found)


def _finite(name: Any, values: np.ndarray) -> np.ndarray:
    if np.isinf(values).any():
        raise ValueError(
            f"Input X contains infinity (the column {name!r}); replace infinite values by NaN, which counts as missing."
        )
    return values


def cells_of(name: Any, column: Any) -> Cells:
    """The distinct values of a column of any type."""
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # a categorical column of pandas
        return Cells(column.cat.categories, np.asarray(column.cat.codes))
    if hasattr(column, "iloc"):
        return _factorized(name, column)
    return _numbered(name, column.to_list() if hasattr(column, "to_list") else np.asarray(column).tolist())


def _numbered(name: Any, values: list[Any]) -> Cells:
    """The distinct objects of a list; True and 1 are equal to Python, but not the same value of a category."""
    number: dict[tuple[bool, Any], int] = {}
    try:
        index = [
            -1 if is_missing(value) else number.setdefault((isinstance(value, bool | np.bool_), value), len(number))
            for value in values
        ]
    except TypeError as error:
        raise _not_a_cell(name, _unhashable(values)) from error
    return Cells([value for _, value in number], np.array(index, dtype=np.intp))


def _factorized(name: Any, column: Any) -> Cells:
    from pandas import factorize
    from pandas.api.types import infer_dtype

    if column.dtype == object and infer_dtype(column, skipna=True).startswith("mixed"):
        return _numbered(name, column.tolist())
    try:
        place, values = factorize(column, use_na_sentinel=True)
    except TypeError as error:
        raise _not_a_cell(name, _unhashable(column)) from error
    return Cells(values, place)


def _unhashable(column: Any) -> list[str]:
    return sorted({type(value).__name__ for value in column if getattr(value, "__hash__", None) is None})


def _not_a_cell(name: Any, kinds: list[str]) -> TypeError:
    return TypeError(
        f"the column {name!r} of X holds {listing(kinds)} objects; a cell is a number, a string, a boolean or missing."
    )


def _without_decimals(text: str) -> str:
    """The level that a text belongs to: "3.0" is "3", which numbers are as text too."""
    found = WHOLE.fullmatch(text)
    return text if found is None else str(int(found[1]))


def _spellings(text: str) -> Iterator[str]:
    """The levels that a text may belong to: those of older models may have decimals."""
    yield text
    yield _without_decimals(text)
    if _without_decimals(longer := f"{text}.0") == text:
        yield longer


def as_text(value: Any, name: Any = None) -> str:
    """A value of a category as text; a whole number is written without decimals, whatever its type.

    >>> as_text("red"), as_text(3.0), as_text(True)
    ('red', '3', 'True')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, TIMES):
        raise TypeError(
            f"X holds dates or durations in the column {name!r}; convert them to numbers first, for example with "
            "skrub's TableVectorizer (pip install 'kproba[tables]')."
        )
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))  # not through float, which cannot tell integers above 2**53 apart
    if isinstance(value, Real) and not isinstance(value, bool) and float(value).is_integer():
        return str(int(float(value)))
    if type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__:
        raise _not_a_cell(name, [type(value).__name__])
    return str(value)
