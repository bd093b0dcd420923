"""Model files: a fitted model as plain arrays and JSON in a zip file, which is safe to load from untrusted sources."""

from __future__ import annotations

import os
import platform
import stat
import sys
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

from ..exceptions import ModelFileError, ModelFileWarning
from ..io import check_output
from ..messages import warn
from ..version import __version__
from . import archive
from .audit import check, check_model
from .graph import REFUSAL, Decoder, Encoder
from .types import shortened

__all__ = ["load", "save"]

#: Default limit on the unpacked size of a file in bytes.
MAX_BYTES = 4 << 30
_HEADINGS = {"format", "kproba", "python", "libraries", "nodes", "model"}


def save(model: BaseEstimator, path: str | os.PathLike) -> None:
    """Write a model to a file that can be loaded without running any code from it.

    The file is a zip of plain arrays and JSON with checksums. Equal models give equal files. It is first written to a
    temporary file, which is moved to ``path`` once it is complete.

    Parameters
    ----------
    model : a kproba classifier or transformer, or a pipeline of these and of scikit-learn or skrub preprocessing
        Models with your own functions, such as a callable kernel, cannot be saved.
    path : path of the file; the usual suffix is ``.kproba``.

    Raises
    ------
    ModelFileError
        If the model contains something that a model file cannot hold; the message says where.

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
        raise ModelFileError(f"{REFUSAL}: it is a {type(model).__name__}, not an estimator.")
    check_output(path)
    encoder = Encoder()
    try:
        root = encoder.value(model)
        for part in encoder.kept:
            if isinstance(part, BaseEstimator):
                check(part)  # do not save what cannot be loaded
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
    """Load a model written by :func:`save`.

    No code from the file is run: it refers to classes on an explicit list, whose attributes are set to numbers and text
    and then checked; if a suitable row can be generated, the model predicts it. Time and memory are at most
    proportional to the size of the file. The predictions are still those that the author of the file intended.

    Parameters
    ----------
    path : path of the file
    max_bytes : int, default=4 GiB
        Maximum unpacked size of the file. It is checked before any of that memory is allocated.

    Returns
    -------
    The model; its predictions equal those of the saved model, to the last bit on the same machine and libraries.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, of another format version, malicious, or too large.
    """
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise ValueError(f"max_bytes={max_bytes!r} must be a positive integer.")
    name = os.path.expanduser(os.fspath(path))
    if not stat.S_ISREG(os.stat(name).st_mode):
        raise ModelFileError(f"{name} cannot be loaded: it is not a regular file.")
    with open(name, "rb") as file:
        try:
            with np.errstate(all="ignore"):
                return _loaded(file, name, max_bytes)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except ModelFileError as error:
            raise ModelFileError(f"{name} cannot be loaded: {error}") from error.__cause__
        except ModelFileWarning:  # turned into an error by a warning filter
            raise
        except Exception as error:
            raise ModelFileError(f"{name} cannot be loaded: {type(error).__name__}: {str(error)[:300]}") from error


def _loaded(file, name: str, max_bytes: int) -> Any:
    members = archive.Archive(file, max_bytes)
    contents = members.model()
    if not isinstance(contents, dict) or not set(contents) >= _HEADINGS or contents["format"] != archive.FORMAT:
        raise ModelFileError(f"{archive.MODEL} does not have the fields of a model.")
    decoder = Decoder(members)
    decoder.run(contents["nodes"])
    model = decoder.value(contents["model"])
    check_model(model, decoder.objects)
    _warn_of_versions(name, members.version, contents)
    return model


def _libraries(encoder: Encoder) -> dict[str, str]:
    """Versions of the libraries whose objects are in the model, and of those that are always used."""
    used = {str(node.get("class", node["is"])).partition(".")[0].partition("_")[0] for node in encoder.nodes}
    others = [library for library in ("skrub", "pandas", "polars") if library in used and library in sys.modules]
    found: dict[str, Any] = {"numpy": np, "scipy": scipy, "sklearn": sklearn}
    found |= {library: sys.modules[library] for library in others}
    return {library: str(module.__version__) for library, module in found.items()}


def _warn_of_versions(name: str, version: tuple[int, int], contents: dict[str, Any]) -> None:
    if version > archive.VERSION:
        writer = shortened(contents["kproba"])
        warn(
            f"{name} has the newer format {version[0]}.{version[1]}, written by kproba {writer}; this version supports "
            f"{archive.VERSION[0]}.{archive.VERSION[1]} and may not understand all of it.",
            ModelFileWarning,
        )
    libraries = contents["libraries"] if isinstance(contents["libraries"], dict) else {}
    tags = {node["class"].partition(".")[0] for node in contents["nodes"] if "class" in node}
    for library in ("sklearn", "skrub"):
        then, now = libraries.get(library), getattr(sys.modules.get(library), "__version__", None)
        if library in tags and now is not None and str(then).split(".")[:2] != now.split(".")[:2]:
            warn(
                f"{name} contains preprocessing of {library} {shortened(then)}, but {now} is installed: its attributes "
                "may have a different meaning. Compare some predictions.",
                ModelFileWarning,
            )
