"""Pictures of fitted models, in the manner of scikit-learn's displays. They need ``kproba[plot]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .metrics import _checked
from .reject import RejectOption, risk_coverage
from .report.measures import (
    Histogram,
    Reliability,
    confidence_histogram,
    reliability,
    top_class,
)
from .report.search_map import SearchPanel, search_panels

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


class _OfPredictions:
    """A display of the predicted classes of rows: their probabilities, and whether they are right."""

    @classmethod
    def _found(cls, confidence: np.ndarray, correct: np.ndarray) -> dict:
        """What the display is made of."""
        raise NotImplementedError

    def plot(self, ax=None, *, name: str | None = None, **options) -> Any:
        raise NotImplementedError

    @classmethod
    def from_estimator(cls, estimator, X, y, *, ax=None, name: str | None = None, **options):
        """Draw what a fitted classifier says of the rows X, whose classes are y."""
        check_is_fitted(estimator)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(
            y, estimator.predict_proba(X), labels=estimator.classes_, ax=ax, name=name, **options
        )

    @classmethod
    def from_predictions(cls, y_true, proba, *, labels=None, ax=None, name: str | None = None, **options):
        """Draw probabilities (n, n_classes), such as ``loo_proba_``; ``labels`` are the classes of the columns."""
        codes, proba = _checked(y_true, proba, labels)
        top = top_class(codes, proba)
        made: Any = cls
        return made(**cls._found(top.confidence, top.correct)).plot(ax, name=name, **options)


class ReliabilityDisplay(_OfPredictions):
    """How often predictions of a given probability are right, with a band of 90 %.

    Parameters
    ----------
    bins : :class:`~kproba.report.measures.Reliability`

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.

    Examples
    --------
    ``ReliabilityDisplay.from_estimator(clf, X_new, y_new)``, or without held-out rows
    ``ReliabilityDisplay.from_predictions(y, clf.loo_proba_)``; several models share an ``ax``.
    """

    def __init__(self, *, bins: Reliability):
        self.bins = bins

    @classmethod
    def _found(cls, confidence, correct) -> dict:
        return {"bins": reliability(confidence, correct)}

    def plot(self, ax=None, *, name: str | None = None, **options) -> ReliabilityDisplay:
        """Draw into ``ax``; ``options`` go to the line."""
        self.ax_, self.figure_ = _axes(ax)
        bins = self.bins
        (line,) = self.ax_.plot(bins.confidence, bins.frequency, **{"marker": "o", "label": name, **options})
        self.ax_.fill_between(bins.confidence, bins.low, bins.high, color=line.get_color(), alpha=0.15, linewidth=0)
        self.ax_.axline((0, 0), slope=1, color="grey", linestyle=":", zorder=0)
        self.ax_.set(xlabel="probability of the predicted class", ylabel="share that is right", ylim=(-0.02, 1.02))
        _legend(self.ax_, name)
        return self


class ConfidenceHistogramDisplay(_OfPredictions):
    """How sure a model is of its predictions, right ones and wrong ones.

    Parameters
    ----------
    counts : :class:`~kproba.report.measures.Histogram`

    Attributes
    ----------
    figure_, ax_ : the figure and its axes, after ``plot``.
    """

    def __init__(self, *, counts: Histogram):
        self.counts = counts

    @classmethod
    def _found(cls, confidence, correct) -> dict:
        return {"counts": confidence_histogram(confidence, correct)}

    def plot(self, ax=None, *, name: str | None = None, **options) -> ConfidenceHistogramDisplay:
        """Draw into ``ax``; ``options`` go to the bars."""
        self.ax_, self.figure_ = _axes(ax)
        edges, right, wrong = self.counts.edges, self.counts.right, self.counts.wrong
        shape = {"width": np.diff(edges), "align": "edge", **options}
        self.ax_.bar(edges[:-1], wrong, label="wrong", color="#D55E00", **shape)
        self.ax_.bar(edges[:-1], right, bottom=wrong, label="right", color="#0072B2", **shape)
        self.ax_.set(xlabel="probability of the predicted class", ylabel="rows", title=name)
        self.ax_.legend()
        return self


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


class SearchMapDisplay:
    """Why kernel, width and ridge were chosen: the loss of every candidate, one picture a kernel.

    Parameters
    ----------
    panels : sequence of :class:`~kproba.report.search_map.SearchPanel`

    Attributes
    ----------
    figure_, axes_ : the figure and its axes, after ``plot``.
    """

    def __init__(self, *, panels: tuple[SearchPanel, ...]):
        self.panels = panels

    @classmethod
    def from_estimator(cls, estimator, *, axes=None) -> SearchMapDisplay:
        """Draw ``search_results_`` of a fitted classifier, into as many ``axes`` as there are panels."""
        check_is_fitted(estimator)
        panels = search_panels(estimator)
        if not panels:
            name = type(estimator).__name__
            raise ValueError(
                f"estimator: {name} compared no candidates by width and ridge, so there is nothing to draw."
            )
        return cls(panels=panels).plot(axes)

    def plot(self, axes=None) -> SearchMapDisplay:
        if axes is None:
            size = len(self.panels)
            _, axes = _pyplot().subplots(1, size, figsize=(4 * size, 3.5), layout="constrained", squeeze=False)
        axes = np.asarray(axes, dtype=object).ravel()
        if len(axes) != len(self.panels):
            raise ValueError(f"axes: {len(self.panels)} are needed for the panels, got {len(axes)}.")
        self.axes_, self.figure_ = axes, axes[0].figure
        losses = np.concatenate([panel.loss for panel in self.panels])
        for ax, panel in zip(axes, self.panels):
            (self._draw_map if panel.is_map else self._draw_line)(ax, panel, losses.min(), losses.max())
            ax.set_title(panel.title)
        return self

    def _draw_map(self, ax, panel: SearchPanel, low: float, high: float) -> None:
        ends = {"vmin": low, "vmax": high, "norm": "log"} if low > 0 else {}
        shown = ax.scatter(panel.width, panel.ridge, c=panel.loss, marker="s", s=60, cmap="viridis_r", **ends)
        if panel.chosen is not None:
            ax.plot(*panel.chosen, "o", markersize=12, markerfacecolor="none", color="red", markeredgewidth=2)
        ax.set(xscale="log", yscale="log", xlabel="width", ylabel="ridge")
        widths = np.unique(panel.width)
        some = widths[:: -(-len(widths) // 4)]
        ax.set_xticks(some, [np.format_float_positional(width, 2, fractional=False, trim="-") for width in some])
        ax.set_xticks([], minor=True)
        self.figure_.colorbar(shown, ax=ax, label="leave-one-out loss")

    def _draw_line(self, ax, panel: SearchPanel, low: float, high: float) -> None:
        """Where only one of the two varies."""
        by_width = len(np.unique(panel.width[~np.isnan(panel.width)])) > 1
        x = panel.width if by_width else panel.ridge
        order = np.argsort(x, kind="stable")
        ax.plot(x[order], panel.loss[order], marker="o", markersize=3)
        if panel.chosen is not None:
            ax.axvline(panel.chosen[0 if by_width else 1], color="grey", linestyle=":")
        ax.set(xlabel="width" if by_width else "ridge", ylabel="leave-one-out loss", ylim=(0.0, 1.05 * high))
        if x.min() > 0:
            ax.set_xscale("log")


def _axes(ax) -> tuple[Any, Any]:
    if ax is None:
        _, ax = _pyplot().subplots(layout="constrained")
    return ax, ax.figure


def _legend(ax, name: str | None) -> None:
    if name is not None:
        ax.legend()


def _pyplot():
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("displays need matplotlib: pip install 'kproba[plot]'") from error
    return pyplot
