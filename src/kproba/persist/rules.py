"""A notation for what an object may hold, and the function that checks an object against it.

Each attribute has a specification:

- text: an array or a float, as in ``"moderate[bk]"`` or ``"float > 0"``; see :func:`_numbers`
- a type; None; :data:`ABSENT` if the attribute may be missing; a range of integers
- a set of allowed strings, or a pattern of these
- ``[spec]`` for a list and ``{spec: spec}`` for a dict, whose parts are all alike
- a tuple of alternatives
- a function that says whether it accepts a value; its name says what it accepts. :func:`tuple_of` makes such functions
"""

import math
import operator
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import ModelFileError
from .types import shortened

#: Maximum of coefficients and of the factors in links: products of three of them do not overflow.
LARGEST = 1e75
#: Range of the factors of transformers: outside of it, every row becomes too large for a kernel.
SCALES = 1e-140, 1e140
#: The value of attributes that an object lacks.
ABSENT = object()
#: The values that arrays hold: their type or kinds of types, and the limits of their magnitude, None if it is free.
_VALUES: dict[str, tuple[str | type, tuple[float, float] | None]] = {
    "any": ("biufcmMOSUV", None),
    "label": ("biufUSO", None),
    "bool": ("b", None),
    "object": (object, None),
    "uint64": (np.uint64, None),
    "int": ("iu", None),
    "number": ("fiub", (-1.0, math.inf)),
    "factor": ("fiub", (-1.0, SCALES[1])),
    "scale": ("fiub", SCALES),
    "float": ("f", (-1.0, math.inf)),
    "float32": (np.float32, (-1.0, math.inf)),
    "float64": (np.float64, (-1.0, math.inf)),
    "nan64": (np.float64, None),
    "moderate": ("f", (-1.0, LARGEST)),
    "moderate64": (np.float64, (-1.0, LARGEST)),
}
_COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_NUMBERS = re.compile(r"(\w+)(?:\[(\w*)\])?((?: [<>]=? \S+)*)")

Sizes = dict[str, int]
Rule = Callable[[Any, Sizes], Any]
#: A test of an object, alone or with what is wrong if it fails. It may also return what is wrong, or raise an error.
Relation = Callable[[Any], Any] | tuple[str, Callable[[Any], Any]]


class Declaration(NamedTuple):
    """Rules of attributes and relations between them, for objects that have one of the attributes ``when``."""

    kinds: tuple[type | str, ...]
    rules: dict[str, tuple[Any, Rule]]
    relations: tuple[Relation, ...]
    when: tuple[str, ...]


def holds(
    *kinds: type | str, relations: Iterable[Relation] = (), when: tuple[str, ...] = (), **attributes: Any
) -> Declaration:
    """Declare what objects of some classes hold; classes of other libraries are given by name."""
    rules = {name: (spec, _rule(spec)) for name, spec in attributes.items()}
    return Declaration(kinds, rules, tuple(relations), when)


def check_declared(obj: Any, declarations: Iterable[Declaration]) -> None:
    """Raise an error for the first attribute or relation that is not as declared."""
    for declared in declarations:
        if declared.when and not any(name in vars(obj) for name in declared.when):
            continue
        d = getattr(obj, "n_features_in_", None)
        sizes = {} if d is None else {"d": d}
        for name, (spec, rule) in declared.rules.items():
            value = getattr(obj, name, ABSENT)
            if not rule(value, sizes):
                fault = "missing" if value is ABSENT else f"not {_contrasted(_described(spec), _found(value))}"
                raise ModelFileError(f"{type(obj).__name__}: {name} is {fault}.")
        for relation in declared.relations:
            fault, test = relation if isinstance(relation, tuple) else ("", relation)
            found = test(obj)
            if found is not None and (isinstance(found, str) or not found):
                fault = found or fault or f"it does not hold that {_described(test)}"
                raise ModelFileError(f"{type(obj).__name__}: {fault}.")


def accepts(spec: Any, value: Any, **sizes: Any) -> bool:
    """Whether a value meets a specification, with the sizes of some dimensions."""
    return bool(_rule(spec)(value, sizes))


def tuple_of(spec: Any, sizes: range = range(1 << 63), increasing: bool = False) -> Callable[[Any], bool]:
    """The specification of a tuple with one of the sizes, whose values all meet another; increasing ones differ too."""
    of_each = _rule(spec)

    def is_tuple(value: Any) -> bool:
        if not isinstance(value, tuple) or len(value) not in sizes or not all(of_each(each, {}) for each in value):
            return False
        return not increasing or all(one < two for one, two in pairwise(value))

    is_tuple.__name__ = f"a tuple in which each value is {_described(spec)}{', in order' if increasing else ''}"
    return is_tuple


def are_distinct(values: Iterable[Any]) -> bool:
    """Whether all values differ, by sorting: a set could take forever if they are chosen to have the same hash."""
    return all(one != two for one, two in pairwise(sorted(values)))


def _rule(spec: Any) -> Rule:
    """The test of a specification. It may add sizes of dimensions that are not known yet."""
    if isinstance(spec, str):
        return _numbers(spec)
    if isinstance(spec, tuple | list | dict):
        return _rule_of_parts(spec)
    if isinstance(spec, set):
        return lambda value, sizes: isinstance(value, str) and value in spec
    if isinstance(spec, re.Pattern):
        return lambda value, sizes: isinstance(value, str) and spec.fullmatch(value)
    if isinstance(spec, range):
        return lambda value, sizes: isinstance(value, Integral) and not isinstance(value, bool) and int(value) in spec
    if isinstance(spec, type):
        return lambda value, sizes: isinstance(value, spec) and value is not ABSENT
    if spec is None or spec is ABSENT:
        return lambda value, sizes: value is spec
    return lambda value, sizes: spec(value)


def _rule_of_parts(spec: tuple | list | dict) -> Rule:
    if isinstance(spec, tuple):
        rules = [_rule(each) for each in spec]
        return lambda value, sizes: any(rule(value, sizes) for rule in rules)
    if isinstance(spec, list):
        of_each = _rule(spec[0])
        return lambda value, sizes: isinstance(value, list) and all(of_each(each, sizes) for each in value)
    pairs = [(_rule(key), _rule(each)) for key, each in spec.items()]

    def is_pair(pair: tuple[Any, Any], sizes: Sizes) -> bool:
        return any(of_key(pair[0], sizes) and of_value(pair[1], sizes) for of_key, of_value in pairs)

    return lambda value, sizes: isinstance(value, dict) and all(is_pair(pair, sizes) for pair in value.items())


@cache
def _numbers(notation: str) -> Rule:
    """The test of ``"float > 0 <= 1"``, a float, or ``"int[bk] >= 0 < c"``, an array.

    The word is one of _VALUES. Arrays have a dimension per letter; equal letters within an object are equal sizes, d is
    ``n_features_in_``, and digits are sizes. All values satisfy the comparisons, with numbers or sizes of dimensions.
    """
    word, dims, limits = _NUMBERS.fullmatch(notation).groups()  # type: ignore[union-attr]
    parts = limits.split()
    comparisons = [(_COMPARISONS[sign], bound) for sign, bound in zip(parts[::2], parts[1::2])]
    dtypes, magnitude = _VALUES[word]

    def is_within(value: Any, sizes: Sizes) -> bool:
        bounds = [(compare, sizes[bound] if bound in sizes else float(bound)) for compare, bound in comparisons]
        return all(np.all(compare(value, bound)) for compare, bound in bounds)

    def is_array(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, np.ndarray) or value.ndim != len(dims):
            return False
        if not (value.dtype.kind in dtypes if isinstance(dtypes, str) else value.dtype == dtypes):
            return False
        for letter, n in zip(dims, value.shape):
            if n != (int(letter) if letter.isdigit() else sizes.setdefault(letter, n)):
                return False
        return (magnitude is None or _has_magnitude(value, *magnitude)) and is_within(value, sizes)

    return is_array if dims is not None else lambda value, sizes: isinstance(value, float) and is_within(value, sizes)


def _has_magnitude(value: np.ndarray, low: float, high: float) -> bool:
    if high == math.inf:
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    size = np.abs(value)
    return bool((size < high).all()) and (low < 0 or bool((size > low).all()))


def _described(spec: Any) -> str:
    """A specification in words."""
    if isinstance(spec, tuple):
        return " or ".join(_described(each) for each in spec if each is not ABSENT)
    if isinstance(spec, list):
        return f"a list in which each value is {_described(spec[0])}"
    if isinstance(spec, dict):
        pairs = [f"from {_described(key)} to {_described(each)}" for key, each in spec.items()]
        return f"a dict {' or '.join(pairs)}" if pairs else "an empty dict"
    if isinstance(spec, set):
        return " or ".join(map(repr, sorted(spec)))
    if isinstance(spec, range):
        return f"an integer from {spec.start} to {spec.stop - 1}"
    if isinstance(spec, type):
        return f"a {spec.__name__}"
    return spec.__name__.strip("_").replace("_", " ") if callable(spec) else str(spec)


def _contrasted(described: str, found: str) -> str:
    """What a value should be and what it is, unless that is no news: a list or dict of something else."""
    return described if described.startswith(found) else f"{described}, but {found}"


def _found(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return shortened(value)
