"""Real datasets by name, from a folder of ``NAME.npz`` files or from OpenML.

A file holds ``X`` and ``y`` and, if known, ``feature_names``, ``is_train`` (the official split) and
``is_categorical`` (one flag per column; categories are stored as numbers). It is read without pickle.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

#: The environment variable with the default folder.
DATA_VARIABLE = "KPROBA_DATA"
#: OpenML's number for each dataset that it has in the same form; a number permanently identifies one version.
OPENML = {
    "breast_cancer_original": 15,
    "glass": 41,
    "ionosphere": 59,
    "letter": 6,
    "magic": 1120,
    "mnist": 554,
    "pima": 37,
    "satimage": 182,
    "shuttle": 40685,
    "skin": 1502,
    "sonar": 40,
    "spambase": 44,
    "usps": 41082,
    "vehicle": 54,
}
_ADVICE = f"Set data_dir, --data-dir or the environment variable {DATA_VARIABLE} to a folder that has the file."
_FIELDS = ("X", "y", "feature_names", "is_train", "is_categorical")


@dataclass(frozen=True)
class RealSet:
    """Inputs ``X`` (n, d) and labels ``y``; what is not in the file is None. ``extra`` has all other arrays."""

    name: str
    X: np.ndarray
    y: np.ndarray
    feature_names: np.ndarray | None = None
    is_train: np.ndarray | None = None
    is_categorical: np.ndarray | None = None
    extra: dict[str, np.ndarray] = field(default_factory=dict)


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> RealSet:
    """Load the dataset called ``name``.

    It is read from ``data_dir``, by default the folder in the environment variable ``KPROBA_DATA``; if neither is set,
    it is downloaded from OpenML.

    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/tiny.npz", X=np.eye(2), y=np.array([0, 1]))
    ...     load("tiny", folder).X.shape
    (2, 2)
    """
    folder = data_dir if data_dir is not None else os.environ.get(DATA_VARIABLE)
    return _from_openml(name) if not folder else _from_folder(name, Path(folder))


def _from_folder(name: str, folder: Path) -> RealSet:
    path = folder / f"{name}.npz"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.npz"))) if folder.is_dir() else ""
        raise FileNotFoundError(f"There is no {name}.npz in {folder} (datasets there: {there or 'none'}). {_ADVICE}")
    with np.load(path, allow_pickle=False) as arrays:
        found = {key: arrays[key] for key in arrays.files}
    missing = [key for key in ("X", "y") if key not in found]
    if missing:
        raise ValueError(f"{path} has no array {' and no array '.join(missing)}; a dataset needs X and y.")
    known = {key: found.pop(key) for key in _FIELDS if key in found}
    return RealSet(name, **known, extra=found)


def _from_openml(name: str) -> RealSet:
    if name not in OPENML:
        raise ValueError(
            f"The dataset {name!r} is not known on OpenML; known are {', '.join(sorted(OPENML))}. {_ADVICE}"
        )
    from sklearn.datasets import fetch_openml  # slow to import, and only needed here

    try:
        bunch = fetch_openml(data_id=OPENML[name], as_frame=False, parser="auto")
    except OSError as error:
        raise OSError(f"The dataset {name!r} could not be fetched from OpenML ({error}). {_ADVICE}") from error
    return RealSet(name, bunch.data, bunch.target, np.asarray(bunch.feature_names))
