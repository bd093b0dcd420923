"""What a model has learnt about its kernel, ready to plot: column importances, and losses by number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..explanations.columns import column_names, final_step

#: Number of columns that are shown.
MOST_COLUMNS = 20


class Importances(NamedTuple):
    """Columns from the most important down, their share, and its range over the kernels learnt without each fold."""

    names: tuple[str, ...]
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_columns: int


class LearningCurve(NamedTuple):
    """Losses after so many steps; ``chosen`` is the number of steps with the smallest out-of-fold loss."""

    steps: np.ndarray
    leave_one_out: np.ndarray
    out_of_fold: np.ndarray
    chosen: int


def importances_of(model, names: Sequence[str] | None = None, most: int = MOST_COLUMNS) -> Importances | None:
    """The columns with the largest ``feature_importances_`` of a fitted model; None if its kernel was not learnt."""
    final = final_step(model)
    folds = getattr(final, "fold_importances_", None)
    if folds is None:
        return None
    share = final.feature_importances_
    order = np.argsort(-share, kind="stable")[:most]
    known = column_names(model, len(share), names)
    low, high = np.minimum(folds.min(axis=0), share), np.maximum(folds.max(axis=0), share)
    return Importances(tuple(known[j] for j in order), share[order], low[order], high[order], len(share))


def learning_curve_of(model) -> LearningCurve | None:
    """``learning_curve_`` of a fitted model; None if its kernel was not learnt or has fewer than two finite losses."""
    found = getattr(final_step(model), "learning_curve_", None)
    if found is None or np.isfinite(found["out_of_fold"]).sum() < 2:
        return None
    steps, loo, oof = (np.asarray(found[name], dtype=float) for name in ("steps", "leave_one_out", "out_of_fold"))
    return LearningCurve(steps.astype(int), loo, oof, int(steps[np.nanargmin(oof)]))
