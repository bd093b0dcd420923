"""What a fitted classifier is worth, on one page: facts → figures → one HTML file that needs no network."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_report(
    model,
    X=None,
    y=None,
    path="report.html",
    *,
    on="held-out",
    X_train=None,
    y_train=None,
    names=None,
    title=None,
    random_state=0,
) -> Path:
    """Write what a fitted classifier is worth to one HTML file that works offline.

    Parameters
    ----------
    model : a fitted classifier of kproba, a pipeline that ends in one, or any other with ``predict_proba``
    X, y : rows the model was not fitted on, and their classes
        With ``on="leave-one-out"`` the training rows, of which y is needed, and X only for what is shown of them.
    path : str or Path, default="report.html"
        The file is there when it is complete, and not before.
    on : {"held-out", "leave-one-out"}, default="held-out"
        ``"leave-one-out"`` judges by ``loo_proba_``, what the model says of each training row without that row; it
        chose the parameters, so it is optimistic.
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
    from .page import page

    target = _writable(path)
    options = {"X_train": X_train, "y_train": y_train, "names": names, "random_state": random_state}
    facts = collect(model, X, y, on=on, title=title, **options)
    _write_whole(target, page(facts))
    return target


def _writable(path) -> Path:
    target = Path(os.path.expanduser(os.fspath(path))).absolute()
    if target.is_dir():
        raise IsADirectoryError(f"path={str(path)!r} is a directory; give the name of a file.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path={str(path)!r}: there is no directory {target.parent}; make it first.")
    return target


def _write_whole(target: Path, text: str) -> None:
    """All of the file or nothing: whatever stood there stays until the new one is complete."""
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
