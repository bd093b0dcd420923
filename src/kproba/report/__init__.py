"""Evaluation reports: collect facts, draw figures, write one HTML file that works offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ..io import AtomicFile, check_output
from ..typing import Inputs, PathLike, Targets


def write_report(
    model: Any,
    X: Inputs = None,
    y: Targets = None,
    path: PathLike = "report.html",
    *,
    on: Literal["held-out", "out-of-fold", "leave-one-out", "training"] | str = "held-out",
    X_train: Inputs = None,
    y_train: Targets = None,
    names: Sequence[str] | None = None,
    title: str | None = None,
    positive: Any = None,
    row_names: Sequence[Any] | None = None,
    beside: Mapping[str, Any] | None = None,
    random_state: int = 0,
) -> Path:
    """Write an evaluation report of a fitted classifier to one HTML file that works offline.

    Parameters
    ----------
    model : fitted classifier of kproba, pipeline that ends in one, or any classifier with ``predict_proba``
    X, y : rows that the model was not fitted on, and their labels
        With ``on="out-of-fold"`` or ``"leave-one-out"``, the training rows; then y is required, and X is only used to
        show values of rows and for the logistic regression.
    path : str or Path, default="report.html"
        The file is written atomically.
    on : {"held-out", "out-of-fold", "leave-one-out", "training"}, default="held-out"
        ``"out-of-fold"`` evaluates ``oof_proba_``, the prediction for each training row by a model that never saw its
        fold. ``"leave-one-out"`` evaluates ``loo_proba_``, the prediction for each training row without that row. It
        was used to choose the parameters, so the results are optimistic.
        ``"training"`` is for training rows of models that have neither; the report then says that its results do not
        apply to new rows.
    X_train, y_train : training rows, optional
        If given, the model is compared with a logistic regression and with the class shares of these rows.
    names : sequence of str, optional
        Names of the columns; by default those of the model or of the data frame.
    title : str, optional
        Title of the page.
    positive : label, optional
        With two classes, the one to find, which the threshold, the curves and the calibration are about. By default the
        second of ``classes_``, or the first if it has less than a fifth of the rows.
    row_names : sequence, optional
        What to call the rows; by default the index of a data frame, or numbers from 0.
    beside : data frame or dict of columns, optional
        Columns that the model does not use, such as identifiers: they are shown beside the rows to review, and errors
        are compared by their values.
    random_state : int, default=0
        Seed for the bootstrap and for the folds of the logistic regression.

    Returns
    -------
    Path of the file.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from kproba import LSPC, write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LSPC(random_state=0).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = write_report(clf, X[1::2], y[1::2], f"{folder}/iris.html", X_train=X[::2], y_train=y[::2])
    ...     report.name
    'iris.html'
    """
    from .facts import collect  # imported here to keep importing kproba fast

    check_output(path)  # fail before the work, not after it
    options = {"X_train": X_train, "y_train": y_train, "names": names, "random_state": random_state}
    options |= {"positive": positive, "row_names": row_names, "beside": beside}
    return write_facts(collect(model, X, y, on=on, title=title, **options), path)


def write_facts(facts, path) -> Path:
    """Write the page for collected facts."""
    from .page import page

    with AtomicFile(path) as file:
        file.write(page(facts).encode())
    return Path(path).expanduser().absolute()
