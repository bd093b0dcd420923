"""Model files: a fitted model as plain arrays and JSON in one zip, which can be loaded without trusting it."""

from __future__ import annotations

import os
import platform
import stat
import sys
import warnings
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

from ..exceptions import ModelFileError, ModelFileWarning
from ..io import check_output
from ..version import __version__
from . import archive
from .audit import check, check_model
from .graph import REFUSAL, Decoder, Encoder
from .types import shortened

__all__ = ["load", "save"]

#: Bytes that a file may take unpacked, unless the user says otherwise.
MAX_BYTES = 4 << 30
_HEADINGS = {"format", "kproba", "python", "libraries", "nodes", "model"}


def save(model: BaseEstimator, path: str | os.PathLike) -> None:
    """Write a model to a file that anybody can load without running code from it.

    The file is a zip of plain arrays and JSON with checksums. Equal models give equal files. It is written beside
    ``path`` and put in its place once it is complete.

    Parameters
    ----------
    model : a classifier or transformer of kproba, or a pipeline of such and of scikit-learn's and skrub's preprocessing
        Functions of the user, such as a callable kernel, are refused.
    path : path of the file; ``.kproba`` is the usual suffix.

    Raises
    ------
    ModelFileError
        If the model holds what a model file cannot; the message says where.

    Examples
    --------
    >>> import os, tempfile
    >>> import kproba
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kproba.LSPC(kernel="gaussian", width=1.0, ridge=0.1).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kproba.save(clf, os.path.join(folder, "iris.kproba"))
    ...     again = kproba.load(os.path.join(folder, "iris.kproba"))
    >>> bool((again.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"{REFUSAL}: it is a {type(model).__name__}, no estimator.")
    check_output(path)
    encoder = Encoder()
    try:
        root = encoder.value(model)
        for part in encoder.kept:
            if isinstance(part, BaseEstimator):
                check(part)  # what cannot be loaded is not saved
    except RecursionError:
        raise ModelFileError(f"{REFUSAL}: its objects are nested too deeply.") from None
    except (ValueError, TypeError) as error:
        if str(error).startswith(REFUSAL):
            raise
        raise ModelFileError(f"{REFUSAL}: {error}") from error
    contents = {
        "format": archive.FORMAT,
        "kproba": __version__,
        "python": platform.python_version(),
        "libraries": _libraries(encoder),
        "nodes": encoder.nodes,
        "model": root,
    }
    archive.write(path, contents, encoder.arrays)


def load(path: str | os.PathLike, *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a model that :func:`save` wrote.

    No code comes from the file: it names classes of an explicit list, which are filled with numbers and text and then
    checked; where a row can be made up, one is predicted. Time and memory are at most proportional to the size of the
    file. What the model says is still what its author wanted it to say.

    Parameters
    ----------
    path : path of the file
    max_bytes : int, default=4 GiB
        The most that the file may take unpacked. It is compared before any of that memory is taken.

    Returns
    -------
    The model; it predicts what the saved one did, to the last bit on the same machine and libraries.

    Raises
    ------
    ModelFileError
        If the file is damaged, no model file, of another format version, hostile, or too large.
    """
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise ValueError(f"max_bytes={max_bytes!r} must be a positive whole number.")
    name = os.path.expanduser(os.fspath(path))
    if not stat.S_ISREG(os.stat(name).st_mode):
        raise ModelFileError(f"{name} cannot be loaded: it is no regular file.")
    with open(name, "rb") as file:
        try:
            with np.errstate(all="ignore"):
                return _loaded(file, name, max_bytes)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except ModelFileError as error:
            raise ModelFileError(f"{name} cannot be loaded: {error}") from error.__cause__
        except ModelFileWarning:  # a filter made it an error
            raise
        except Exception as error:
            raise ModelFileError(f"{name} cannot be loaded: {type(error).__name__}: {str(error)[:300]}") from error


def _loaded(file, name: str, max_bytes: int) -> Any:
    members = archive.Archive(file, max_bytes)
    contents = members.model()
    if not isinstance(contents, dict) or not set(contents) >= _HEADINGS or contents["format"] != archive.FORMAT:
        raise ModelFileError(f"{archive.MODEL} has not the headings of a model.")
    decoder = Decoder(members)
    decoder.run(contents["nodes"])
    model = decoder.value(contents["model"])
    check_model(model, decoder.objects)
    _warn_of_versions(name, members.version, contents)
    return model


def _libraries(encoder: Encoder) -> dict[str, str]:
    """Versions of the libraries whose objects are inside, and of those that always are."""
    used = {str(node.get("class", node["is"])).partition(".")[0].partition("_")[0] for node in encoder.nodes}
    others = [library for library in ("skrub", "pandas", "polars") if library in used and library in sys.modules]
    found: dict[str, Any] = {"numpy": np, "scipy": scipy, "sklearn": sklearn}
    found |= {library: sys.modules[library] for library in others}
    return {library: str(module.__version__) for library, module in found.items()}


def _warn_of_versions(name: str, version: tuple[int, int], contents: dict[str, Any]) -> None:
    if version > archive.VERSION:
        made = shortened(contents["kproba"])
        warnings.warn(
            f"{name} has the newer format {version[0]}.{version[1]}, written by kproba {made}; this one knows "
            f"{archive.VERSION[0]}.{archive.VERSION[1]} and may not understand all of it.",
            ModelFileWarning,
            stacklevel=4,
        )
    libraries = contents["libraries"] if isinstance(contents["libraries"], dict) else {}
    tags = {node["class"].partition(".")[0] for node in contents["nodes"] if "class" in node}
    for library in ("sklearn", "skrub"):
        then, now = libraries.get(library), getattr(sys.modules.get(library), "__version__", None)
        if library in tags and now is not None and str(then).split(".")[:2] != now.split(".")[:2]:
            warnings.warn(
                f"{name} holds preprocessing of {library} {shortened(then)}, and here is {now}: its attributes may "
                "have another meaning. Compare some predictions.",
                ModelFileWarning,
                stacklevel=4,
            )
