"""Pictures of fitted models, in the manner of scikit-learn's displays. They need ``kproba[plot]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .reject import RejectOption, risk_coverage

#: Lines of equal probability beside the boundary of two classes (2001 Fig. 3).
BESIDE = (0.25, 0.75)
#: Errors of fewer rows than this share do not decide how high the picture of risk and coverage is.
LEAST_COVERAGE = 0.1


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

    def __init__(self, *, path: dict[str, np.ndarray], growth: dict[str, np.ndarray], chosen: float):
        self.path = path
        self.growth = growth
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator, *, axes=None) -> ImportPathDisplay:
        """Draw the path of a fitted machine, into three ``axes`` if they are given."""
        check_is_fitted(estimator)
        return cls(path=estimator.path_, growth=estimator.growth_, chosen=estimator.ridge_).plot(axes)

    def plot(self, axes=None) -> ImportPathDisplay:
        if axes is None:
            _, axes = _pyplot().subplots(1, 3, figsize=(12, 3.5), layout="constrained")
        axes = np.asarray(axes, dtype=object).ravel()
        if len(axes) != 3:
            raise ValueError(f"axes: three are needed for the three pictures, got {len(axes)}.")
        self.axes_, self.figure_ = axes, axes[0].figure
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

    def __init__(self, *, X, labels, points, columns, rows, proba, classes):
        self.X = X
        self.labels = labels
        self.points = points
        self.columns = columns
        self.rows = rows
        self.proba = proba
        self.classes = classes

    @classmethod
    def from_estimator(cls, estimator, X, y, *, grid_resolution: int = 150, ax=None) -> ImportPointsDisplay:
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

    def plot(self, ax=None) -> ImportPointsDisplay:
        if ax is None:
            _, ax = _pyplot().subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
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


class RiskCoverageDisplay:
    """Error among the rows kept over the share of them, from the surest row to all.

    A band reaches up to the bound of each threshold on its own; the threshold of a
    :class:`~kproba.RejectOption` is a dotted line.

    Parameters
    ----------
    curve : dict of arrays thresholds, coverage, error and upper_bound, as ``risk_coverage_curve_``
    threshold : float, optional: a chosen one
    max_error : float, optional: the error that was promised
    name : str, optional: what the legend says

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.
    """

    def __init__(self, *, curve: dict[str, np.ndarray], threshold=None, max_error=None, name=None):
        self.curve = curve
        self.threshold = threshold
        self.max_error = max_error
        self.name = name

    @classmethod
    def from_estimator(cls, estimator, X=None, y=None, *, confidence=None, name=None, ax=None) -> RiskCoverageDisplay:
        """Draw a fitted classifier on the rows X with labels y.

        A :class:`~kproba.RejectOption` needs neither: without them its calibration rows are drawn.
        """
        check_is_fitted(estimator)
        name = type(estimator).__name__ if name is None else name
        if not isinstance(estimator, RejectOption):
            if X is None or y is None:
                raise ValueError("give X and y: only a fitted RejectOption has a curve of its own.")
            proba = estimator.predict_proba(X)
            options = {"labels": estimator.classes_, "confidence": 0.95 if confidence is None else confidence}
            return cls.from_predictions(y, proba, **options, name=name, ax=ax)
        confidence = estimator.confidence if confidence is None else confidence
        curve = estimator.curve_of(X, y, confidence)
        options = {"threshold": estimator.threshold_, "max_error": estimator.max_error, "name": name}
        return cls(curve=curve, **options).plot(ax)

    @classmethod
    def from_predictions(cls, y_true, proba, *, labels=None, confidence=0.95, name=None, ax=None):
        """Draw probabilities whose columns are the ``labels``, in their order; None for the sorted ones of y_true."""
        labels = np.unique(y_true) if labels is None else np.asarray(labels)
        proba = np.asarray(proba)
        wrong = labels[proba.argmax(axis=1)] != np.asarray(y_true)
        return cls(curve=risk_coverage(proba.max(axis=1), wrong, confidence), name=name).plot(ax)

    def plot(self, ax=None) -> RiskCoverageDisplay:
        if ax is None:
            _, ax = _pyplot().subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        used = ax.get_ylim()[1] if ax.lines else 0.0
        coverage, error, bound = (self.curve[key] for key in ("coverage", "error", "upper_bound"))
        (line,) = ax.plot(coverage, error, drawstyle="steps-post", label=self.name)
        ax.fill_between(coverage, error, bound, step="post", color=line.get_color(), alpha=0.2, linewidth=0)
        if self.threshold is not None:
            kept = coverage[self.curve["thresholds"] >= self.threshold].max(initial=0.0)
            ax.axvline(kept, color="grey", linestyle=":")
        if self.max_error is not None:
            ax.axhline(self.max_error, color="grey", linestyle="--")
        ax.set(xlabel="share of rows kept", ylabel="error among them")
        # the bounds of the first few rows are close to one and would flatten the rest
        top = 1.5 * max(error[coverage >= LEAST_COVERAGE].max(), bound[-1])
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, min(1.0, max(top, used))))
        if self.name is not None:
            ax.legend()
        return self


def _pyplot():
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("displays need matplotlib: pip install 'kproba[plot]'") from error
    return pyplot
