"""Reasons: the columns that the predictions depend on."""

from __future__ import annotations

from ..facts import Facts
from ..figures.learnt import importance_figure
from ..learnt import Importances
from ..markup import count
from .html import Section, figure, pair


def reasons(facts: Facts) -> Section:
    parts = [_contributions(facts.contributions), _importances(facts.importances)]
    return Section("reasons", "Reasons", pair(*parts) if any(parts) else "")


def _contributions(found: Importances | None) -> str:
    if found is None:
        return ""
    caption = (
        f"{_which(found)}The share of each column in what moves the scores of these rows: the mean of its absolute "
        "Shapley values. Whiskers are 90 % intervals from resampled rows."
    )
    return figure(importance_figure(found, "contributions"), caption, "What moves the predictions")


def _importances(found: Importances | None) -> str:
    if found is None:
        return ""
    caption = (
        f"{_which(found)}The share of each column in the distances of the kernel. Whiskers are the range over kernels "
        "learnt without one of the folds each."
    )
    return figure(importance_figure(found, "importances"), caption, "Importances of the columns")


def _which(found: Importances) -> str:
    n_shown = len(found.names)
    return f"The {n_shown} most important of {count(found.n_columns)} columns. " if n_shown < found.n_columns else ""
