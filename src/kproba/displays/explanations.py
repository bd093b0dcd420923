"""Which column moved a score, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..explanations import Explanation, explain
from ..explanations.explanation import shown
from ..report.fitted import MOST_COLUMNS
from ..typing import Inputs
from ..validation import check_count
from ._drawing import axes_for

#: Colours of contributions against and for the class.
AGAINST, FOR = "tab:blue", "tab:red"
#: Height of the swarm of a column, as a share of the distance between columns, and the number of bins it is made of.
SWARM, BINS = 0.8, 60


@dataclass(kw_only=True, eq=False, repr=False)
class ExplanationDisplay:
    """Contributions of the columns to the score of one class: bars for one row, one point per row for several.

    Bars start at zero; their values and the base value sum to the score. In the swarm the colour shows whether the
    value of the column is low (blue) or high (red); text has no order and is grey.

    Parameters
    ----------
    explanation : :class:`~kproba.Explanation` of one class, as from ``explanation.for_class(name)``
    most : int, default=20
        Number of columns to show, those with the largest mean absolute contribution.

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from kproba import LSPC
    >>> from kproba.displays import ExplanationDisplay
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> clf = LSPC(kernel="gaussian", random_state=0).fit(X, X[:, 1] > 0)
    >>> display = ExplanationDisplay.from_estimator(clf, X[:1])
    >>> display.ax_.get_yticklabels()[0].get_text().split(" = ")[0]
    'x1'
    """

    explanation: Explanation
    most: int = MOST_COLUMNS

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Inputs,
        *,
        name: Any = None,
        most: int = MOST_COLUMNS,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Explain the rows ``X`` and plot the class or tag ``name``, by default the last: the positive one of two.

        ``options`` are those of :func:`kproba.explain`.
        """
        found = explain(estimator, X, **options)
        return cls(explanation=found.for_class(found.class_names[-1] if name is None else name), most=most).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        check_count("most", self.most)
        found = self.explanation
        if len(found.class_names) != 1:
            raise ValueError(
                f"explanation has {len(found.class_names)} classes, but only one is plotted; pass "
                "explanation.for_class(name)."
            )
        if not len(found.values):
            raise ValueError("explanation has no rows, so there is nothing to plot.")
        self.ax_, self.figure_ = ax, _ = axes_for(ax)
        order = np.argsort(-found.importances, kind="stable")[: self.most]
        (self._draw_bars if len(found.values) == 1 else self._draw_swarm)(ax, order)
        ax.axvline(0.0, color="grey", linewidth=0.8)
        ax.invert_yaxis()
        ax.set(xlabel=f"contribution to the score of {found.class_names[0]}")
        return self

    def _draw_bars(self, ax, order: np.ndarray) -> None:
        found = self.explanation
        values = found.values[0, order, 0]
        places = np.arange(len(order))
        ax.barh(places, values, color=np.where(values > 0, FOR, AGAINST))
        ax.set_yticks(places, [f"{found.feature_names[j]} = {shown(found.data[0, j], 20)}" for j in order])
        title = f"{found.base_values[0]:.3g} → {found.outputs[0, 0]:.3g}"
        if found.probabilities is not None:
            title += f", probability {found.probabilities[0, 0]:.3g}"
        ax.set_title(title)

    def _draw_swarm(self, ax, order: np.ndarray) -> None:
        found = self.explanation
        for place, j in enumerate(order):
            values = found.values[:, j, 0]
            rank = _ranks(found.data[:, j])
            colors = {"color": "0.5"} if rank is None else {"c": rank, "cmap": "coolwarm", "vmin": 0.0, "vmax": 1.0}
            ax.scatter(values, place + swarm(values), s=10, linewidths=0, **colors)
        ax.set_yticks(np.arange(len(order)), [found.feature_names[j] for j in order])


def swarm(values: np.ndarray) -> np.ndarray:
    """Offsets that keep points with similar values apart: those of a bin are spread around zero, crowds most."""
    low, span = values.min(), np.ptp(values)
    bins = np.minimum(BINS * (values - low) / span, BINS - 1).astype(int) if span > 0 else np.zeros(len(values), int)
    counts, offsets = np.bincount(bins), np.zeros(len(values))
    for found in np.flatnonzero(counts > 1):
        rows = np.flatnonzero(bins == found)
        height = SWARM * len(rows) / counts.max()
        offsets[rows] = np.linspace(-height / 2, height / 2, len(rows))
    return offsets


def _ranks(column: np.ndarray) -> np.ndarray | None:
    """Ranks between 0 and 1, equal for equal values; None if the values have no order."""
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        return None
    _, ranks = np.unique(numbers, return_inverse=True)
    return ranks / max(1, ranks.max())
