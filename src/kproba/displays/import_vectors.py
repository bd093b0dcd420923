"""How an import vector machine was found, and where its points are."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..typing import Targets
from ._drawing import axes_for, axes_in_a_row

#: Lines of equal probability beside the boundary of two classes (2001 Fig. 3).
BESIDE = (0.25, 0.75)


class ImportPathDisplay:
    """How an import vector machine was found: 2001 Fig. 2.

    Losses of the tuning rows and numbers of import points over λ, and the objective as points were added.

    Parameters
    ----------
    path, growth : dicts of columns, as ``path_`` and ``growth_`` of an :class:`~kproba.ImportVectorMachine`
    chosen : float, the λ that was chosen

    Attributes
    ----------
    figure_, axes_ : the figure and its three axes, after ``plot``.
    """

    def __init__(self, *, path: dict[str, np.ndarray], growth: dict[str, np.ndarray], chosen: float) -> None:
        self.path = path
        self.growth = growth
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> Self:
        """Draw the path of a fitted machine, into three ``axes`` if they are given."""
        check_is_fitted(estimator)
        return cls(path=estimator.path_, growth=estimator.growth_, chosen=estimator.ridge_).plot(axes)

    def plot(self, axes: Any = None) -> Self:
        self.axes_, self.figure_ = axes, _ = axes_in_a_row(axes, 3)
        for name, label in [("tuning_log_loss", "log-loss"), ("tuning_error", "error")]:
            axes[0].plot(self.path["ridge"], self.path[name], marker="o", markersize=3, label=label)
        axes[0].set(ylabel="tuning rows")
        axes[0].legend()
        axes[1].plot(self.path["ridge"], self.path["n_points"], marker="o", markersize=3)
        axes[1].set(ylabel="import points")
        for ax in axes[:2]:
            ax.set(xscale="log", xlabel="ridge λ")
            ax.invert_xaxis()  # the path goes from large to small
            ax.axvline(self.chosen, color="grey", linestyle=":")
        axes[2].plot(self.growth["n_points"], self.growth["objective"], marker="o", markersize=3)
        axes[2].set(xlabel="import points", ylabel="objective")
        return self


class ImportPointsDisplay:
    """Rows of two columns, the boundaries between their classes, and the import points in rings: 2001 Figs 3 and 4.

    Two classes have dashed lines where the probability is 0.25 and 0.75.

    Parameters
    ----------
    X, labels : arrays (n, 2) and (n,): rows, and the number of the class of each
    points : array (q, 2) of import points
    columns, rows : arrays of the grid's coordinates
    proba : array (len(rows), len(columns), n_classes) of probabilities on the grid
    classes : names of the classes

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.
    """

    def __init__(
        self,
        *,
        X: np.ndarray,
        labels: np.ndarray,
        points: np.ndarray,
        columns: np.ndarray,
        rows: np.ndarray,
        proba: np.ndarray,
        classes: np.ndarray,
    ) -> None:
        self.X = X
        self.labels = labels
        self.points = points
        self.columns = columns
        self.rows = rows
        self.proba = proba
        self.classes = classes

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: Targets, *, grid_resolution: int = 150, ax: Any = None
    ) -> Self:
        """Draw a fitted machine of two columns with the rows X and their classes y."""
        check_is_fitted(estimator)
        X, centers = np.asarray(X), estimator.centers_
        if X.ndim != 2 or X.shape[1] != 2 or centers.ndim != 2:
            raise ValueError(f"X has shape {X.shape}; the picture is for models of two columns.")
        if np.ndim(y) != 1:
            raise ValueError("y: the picture is for exclusive classes, not for tags.")
        low, high = X.min(axis=0), X.max(axis=0)
        edge = 0.05 * (high - low)
        columns, rows = (np.linspace(low[j] - edge[j], high[j] + edge[j], grid_resolution) for j in (0, 1))
        grid = np.column_stack([part.ravel() for part in np.meshgrid(columns, rows)])
        proba = estimator.predict_proba(grid).reshape(len(rows), len(columns), -1)
        labels = np.searchsorted(estimator.classes_, np.asarray(y))
        points = centers.toarray() if hasattr(centers, "toarray") else np.asarray(centers)
        found = {"X": X, "labels": labels, "points": points, "columns": columns, "rows": rows, "proba": proba}
        return cls(**found, classes=estimator.classes_).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        self.ax_, self.figure_ = ax, _ = axes_for(ax)
        for number, name in enumerate(self.classes):
            own = self.X[self.labels == number]
            ax.plot(*own.T, ".", markersize=4, label=str(name))
        ax.plot(*self.points.T, "o", markersize=8, markerfacecolor="none", color="black", label="import points")
        self._draw_lines(ax)
        ax.legend()
        return self

    def _draw_lines(self, ax: Any) -> None:
        options = {"colors": "black", "linewidths": 1}
        if len(self.classes) == 2:
            second = self.proba[:, :, 1]
            ax.contour(self.columns, self.rows, second, levels=[0.5], **options)
            ax.contour(self.columns, self.rows, second, levels=BESIDE, linestyles="dashed", **options)
            return
        for number in range(len(self.classes)):
            others = np.delete(self.proba, number, axis=2).max(axis=2)
            ax.contour(self.columns, self.rows, self.proba[:, :, number] - others, levels=[0.0], **options)
