"""What a fitted classifier is worth, on one page: facts → figures → one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
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
    on: Literal["held-out", "leave-one-out", "training"] | str = "held-out",
    X_train: Inputs = None,
    y_train: Targets = None,
    names: Sequence[str] | None = None,
    title: str | None = None,
    random_state: int = 0,
) -> Path:
    """Write what a fitted classifier is worth to one HTML file that works offline.

    Parameters
    ----------
    model : a fitted classifier of kproba, a pipeline that ends in one, or any other with ``predict_proba``
    X, y : rows the model was not fitted on, and their classes
        With ``on="leave-one-out"`` the training rows, of which y is needed, and X only for what is shown of them.
    path : str or Path, default="report.html"
        The file is there when it is complete, and not before.
    on : {"held-out", "leave-one-out", "training"}, default="held-out"
        ``"leave-one-out"`` judges by ``loo_proba_``, what the model says of each training row without that row; it
        chose the parameters, so it is optimistic.
        ``"training"`` is for rows that the model was fitted on where there is no such thing; the page then says that
        its figures are not about new rows.
    X_train, y_train : the training rows, optional
        With them a logistic regression and the class shares of the training rows stand beside the model.
    names : sequence of str, optional
        Names of the columns; by default those of the model or of the frame.
    title : str, optional
        Heading of the page.
    random_state : int, default=0
        Seed of the bootstrap and of the folds of the logistic regression.

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
    ...     report.stat().st_size < 200_000
    True
    """
    from .facts import collect  # drawn in here, so that importing kproba stays fast

    check_output(path)  # before the work, not after it
    options = {"X_train": X_train, "y_train": y_train, "names": names, "random_state": random_state}
    return write_facts(collect(model, X, y, on=on, title=title, **options), path)


def write_facts(facts, path) -> Path:
    """Write the page about facts that were collected."""
    from .page import page

    with AtomicFile(path) as file:
        file.write(page(facts).encode())
    return Path(path).expanduser().absolute()
