"""The most honest probabilities of its training rows that a fitted classifier has."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

#: From the most to the least honest: models that never saw the outer fold of a row chose next to nothing, while
#: leave-one-out chose the model.
ATTRIBUTES = {"oof": "oof_proba_", "loo": "loo_proba_"}


class Honest(NamedTuple):
    """Probabilities (n, n_classes) of the training rows, and where they come from: "oof" or "loo"."""

    name: str
    proba: np.ndarray


def rows_with_probabilities(proba: np.ndarray) -> np.ndarray:
    """Indices of the rows that are not NaN: of many rows, only those that took no part in learning the kernel."""
    return np.flatnonzero(~np.isnan(proba).any(axis=1))


def honest_probabilities(estimator: Any) -> Honest | None:
    """``oof_proba_`` of a fitted classifier, else its ``loo_proba_``, else None.

    >>> import numpy as np
    >>> from kproba import LSPC
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> honest_probabilities(LSPC().fit(X, X[:, 0] > 0)).name
    'loo'
    """
    for name, attribute in ATTRIBUTES.items():
        proba = getattr(estimator, attribute, None)
        if proba is not None:
            return Honest(name, proba)
    return None
