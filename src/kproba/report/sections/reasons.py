"""Reasons: the columns that the predictions depend on."""

from __future__ import annotations

from ..facts import Facts
from ..figures.learnt import importance_figure
from ..markup import count
from .html import Section, figure


def reasons(facts: Facts) -> Section:
    found = facts.importances
    if found is None:
        return Section("reasons", "Reasons", "")
    n_shown = len(found.names)
    which = f"The {n_shown} most important of {count(found.n_columns)} columns. " if n_shown < found.n_columns else ""
    caption = (
        f"{which}The share of each column in the distances of the kernel, which says how much the predictions depend "
        "on it. Whiskers are the range over kernels learnt without one of the folds each."
    )
    return Section("reasons", "Reasons", figure(importance_figure(found), caption, "Importances of the columns"))
