"""Rows that are set aside to judge a model: at random, whole groups, or the latest."""

from typing import Any

import numpy as np

from ..data.hashing import mix, ranking
from ..data.kinds import pandas
from ..data.tables import LabelledTable, Rule
from . import _text
from ._dates import moments

#: Above so many rows there are no out-of-fold probabilities, so this share of the rows is set aside, up to a number.
MANY_ROWS, SHARE, MOST_ROWS = 50_000, 0.05, 20_000
#: The share that is set aside by default if rows have an order.
LATEST = 0.2
LARGEST_SEED = 1 << 32


def add_options(command, judged: str) -> None:
    """Add the options that say how a model is judged."""
    command.add_argument(
        "--groups", metavar="COLUMN", help=f"column such as patient or customer: {judged} never divides a group"
    )
    command.add_argument(
        "--order", metavar="COLUMN", help="column with times or numbers: the model is judged by the latest rows"
    )


def add_holdout(command) -> None:
    command.add_argument(
        "--holdout",
        type=float,
        metavar="SHARE",
        help="share of the rows to set aside and judge the model by, 0 for none (default: 0.2 with --order, a "
        f"sample above {MANY_ROWS:,} rows, otherwise none)",
    )


def check_seed(args) -> None:
    """Raise an error for a seed that NumPy and scikit-learn would refuse."""
    if not 0 <= args.seed < LARGEST_SEED:
        raise ValueError(f"--seed {args.seed}: it must be at least 0 and below {LARGEST_SEED:,}.")


def share_of(args, n_rows: int) -> float:
    """The share of the rows to set aside."""
    if args.holdout is not None:
        if not 0 <= args.holdout < 1:
            raise ValueError(f"--holdout {args.holdout:g}: it must be a share of the rows, at least 0 and below 1.")
        return args.holdout
    if args.order is not None:
        return LATEST
    return min(SHARE, MOST_ROWS / n_rows) if n_rows > MANY_ROWS else 0.0


def rule_of(args, order_values, n_rows: int) -> Rule | None:
    """The rule that selects the rows to set aside; ``order_values()`` are the values of --order in all rows."""
    share = share_of(args, n_rows)
    if not share:
        return None
    if args.order is not None:
        return latest(args.order, order_values(), share)
    if args.groups is not None:
        return Rule((args.groups,), lambda frame, start: _drawn(_group_keys(frame[args.groups]), share, args.seed))
    return Rule((), lambda frame, start: _drawn(_row_numbers(frame, start), share, args.seed))


def latest(column: str, values: np.ndarray, share: float) -> Rule:
    """The rows with the largest values; rows with the same value stay together."""
    values = np.sort(values[~np.isnan(values)])
    limit = values[max(0, int(np.ceil(len(values) * (1.0 - share))) - 1)] if len(values) else np.inf
    return Rule((column,), lambda frame, start: moments(frame[column]) > limit)


def check_parts(args, train: dict[Any, int], held: dict[Any, int]) -> None:
    """Raise an error if no rows are set aside, or if a class or all rows are."""
    if not held:
        raise ValueError(f"{args.data}: no rows are set aside to judge the model by; use a larger --holdout.")
    absent = [label for label in held if label not in train]
    if absent or len(train) < 2:
        what = f"all rows of the class {absent[0]!r}" if absent else "all rows but one class"
        raise ValueError(f"{args.data}: {what} would be set aside to judge the model by; use a smaller --holdout.")


def check_streamed_groups(args, n_rows: int) -> None:
    """Raise an error if rows of one group would judge a model that was fitted on others of the group."""
    if args.groups is None:
        return
    if args.order is not None or not share_of(args, n_rows):
        instead = "leave out --order" if args.order is not None else "add --holdout 0.2"
        raise ValueError(
            f"--groups {args.groups}: a table that is read in chunks keeps groups together only in rows that are set "
            f"aside; {instead}, or fit a table that is small enough to be read as a whole."
        )
    _text.remark(
        args, "--groups: whole groups are set aside to judge the model; its kernel is chosen by leaving out single rows"
    )


def divided(args, rows: LabelledTable) -> tuple[LabelledTable, LabelledTable | None]:
    """The rows to fit a model on, and those to judge it by, of a table that need not fit in memory."""
    rule = rule_of(
        args, lambda: np.concatenate([moments(f[args.order]) for f, _ in rows._read([args.order])]), rows.n_rows
    )
    if rule is None:
        return rows, None
    train, held = rows.where(rule.inverse()), rows.where(rule)
    check_parts(args, train.counts, held.counts)
    return train, held


def _row_numbers(frame, start: int) -> np.ndarray:
    return mix(np.arange(start, start + len(frame), dtype=np.uint64) + np.uint64(1))


def _group_keys(column) -> np.ndarray:
    return pandas().util.hash_array(column.astype(str).to_numpy(dtype=object))


def _drawn(keys: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Whether each row is among the share of rows with the smallest hash."""
    return ranking(keys, seed) < np.uint64(share * 2.0**64)
