"""Local descriptors of images, computed by scikit-image. Needs ``kproba[pictures]``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.parallel import Parallel, delayed

from ..messages import needed
from ..progress import Progress
from ..validation import check_choice, check_count

#: Rings, histograms per ring and orientations of DAISY: 8 + 2·6·8 = 104 columns.
_DAISY = {"rings": 2, "histograms": 6, "orientations": 8}
_SIFT_COLUMNS = 128
#: Tolerance for floats outside [0, 1], because interpolation overshoots a little.
_OVERSHOOT = 0.05


class PictureDescriptors(TransformerMixin, BaseEstimator):
    """Local descriptors of images, for :class:`~kproba.BagOfFeatures`.

    An image is a gray array (h, w), a colour array (h, w, 3) or (h, w, 4), or the path of a file. Arrays have ``uint8``
    or ``uint16`` values, booleans, or floats between 0 and 1. Sizes may differ. Colours are converted to gray.

    This transformer is stateless. It needs scikit-image (``kproba[pictures]``).

    Parameters
    ----------
    method : {"daisy", "sift"}, default="daisy"
        ``"daisy"`` describes patches of one size and orientation on a regular grid, which is fast. ``"sift"`` first
        detects corners and blobs of any size and orientation; an image without any has no descriptors.
    step : int, default=6
        Grid spacing of ``"daisy"`` in pixels.
    radius : int, default=8
        Radius of the patches of ``"daisy"`` in pixels. Images that are too small for a patch are padded at the edges.
    max_side : int or None, default=320
        Images are shrunk so that their longer side has at most this many pixels; None keeps their size.
    n_jobs : int, optional
        Number of processes; None means 1 and -1 all cores.
    verbose : int, default=0
        Show a progress bar (needs ``kproba[progress]``).

    Examples
    --------
    >>> import numpy as np
    >>> pictures = [np.random.default_rng(0).random((64, 80)), np.zeros((40, 40, 3), dtype=np.uint8)]
    >>> [found.shape for found in PictureDescriptors().transform(pictures)]
    [(88, 104), (16, 104)]
    """

    def __init__(
        self,
        method: Literal["daisy", "sift"] | str = "daisy",
        *,
        step: int = 6,
        radius: int = 8,
        max_side: int | None = 320,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.step = step
        self.radius = radius
        self.max_side = max_side
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters; there is nothing to fit."""
        self._check_options()
        return self

    def transform(self, X: Any) -> list[np.ndarray]:
        """Compute the descriptors of each image.

        Parameters
        ----------
        X : list of images or paths, or an array of gray images (n, h, w) or colour images (n, h, w, 3)

        Returns
        -------
        list of float32 arrays of shape (m, 104) for ``"daisy"``, (m, 128) for ``"sift"``
        """
        self._check_options()
        _skimage()
        X = _check_images(X)
        options = (METHODS[self.method], self.step, self.radius, self.max_side)
        with Progress(self.verbose, len(X), "PictureDescriptors") as progress:
            tasks = (delayed(_descriptors)(number, X[number], *options) for number in _stepping(len(X), progress))
            return list(Parallel(n_jobs=self.n_jobs)(tasks))

    def set_output(self, *, transform: Any = None) -> Self:
        """Do nothing, so that pipelines can set the output of their other steps; the output is always a list."""
        return self

    def _check_options(self) -> None:
        check_choice("method", self.method, METHODS)
        check_count("step", self.step)
        check_count("radius", self.radius)
        if self.max_side is not None:
            check_count("max_side", self.max_side)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.requires_fit = False
        return tags


def _check_images(X):
    """Check that X is a sequence of images, not a single one."""
    if not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise TypeError(f"X is a {type(X).__name__}; pass a list of images or paths, for example list(X).")
    X = X.to_numpy() if hasattr(X, "to_numpy") else X  # a series is indexed by its labels
    is_array = isinstance(X, np.ndarray) and X.dtype.kind in "fiub"
    if isinstance(X, str | os.PathLike) or (is_array and (X.ndim == 2 or (X.ndim == 3 and X.shape[2] in (3, 4)))):
        raise ValueError("X is a single image or path; pass a list, for example [X].")
    return X


def _stepping(count: int, progress: Progress) -> Iterator[int]:
    for number in range(count):
        yield number
        progress.step()


def _descriptors(number: int, picture, method: Callable, step: int, radius: int, max_side: int | None) -> np.ndarray:
    gray = _shrink(_gray(_checked(number, _read(number, picture))), max_side)
    return method(gray, step, radius).astype(np.float32, copy=False)


def _read(number: int, picture) -> np.ndarray:
    if not isinstance(picture, str | os.PathLike):
        return np.asarray(picture)
    try:
        return np.asarray(_skimage("io").imread(os.fspath(picture)))
    except Exception as error:  # each file reader raises its own kind of error
        raise ValueError(f"X[{number}]: the file {os.fspath(picture)!r} could not be read ({error}).") from error


def _checked(number: int, picture: np.ndarray) -> np.ndarray:
    shape = picture.shape
    if not (len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3, 4))) or 0 in shape:
        raise ValueError(
            f"X[{number}] has shape {shape}; an image must have shape (h, w), (h, w, 3) or (h, w, 4), without zeros."
        )
    if picture.dtype.kind == "f":
        low, high = picture.min(), picture.max()
        if not (low >= -_OVERSHOOT and high <= 1 + _OVERSHOOT):
            raise ValueError(
                f"X[{number}] has floats from {low:g} to {high:g}; they must be between 0 and 1, without NaN."
            )
    elif picture.dtype not in (np.uint8, np.uint16, np.bool_):
        raise TypeError(f"X[{number}] has dtype {picture.dtype}; use uint8, uint16, bool, or floats between 0 and 1.")
    return picture


def _gray(picture: np.ndarray) -> np.ndarray:
    """The image as float32 gray values between 0 and 1."""
    picture = _skimage("util").img_as_float32(picture)
    if picture.ndim == 2:
        return picture
    if picture.shape[2] == 1:
        return picture[:, :, 0]
    color = _skimage("color")
    return color.rgb2gray(color.rgba2rgb(picture) if picture.shape[2] == 4 else picture)


def _shrink(gray: np.ndarray, max_side: int | None) -> np.ndarray:
    if max_side is None or max(gray.shape) <= max_side:
        return gray
    shape = tuple(max(1, round(side * max_side / max(gray.shape))) for side in gray.shape)
    return _skimage("transform").resize(gray, shape, anti_aliasing=True)


def _daisy(gray: np.ndarray, step: int, radius: int) -> np.ndarray:
    """Square roots of DAISY's normalized histograms, so that distances are Hellinger distances."""
    lacking = [max(0, 2 * radius + 1 - side) for side in gray.shape]
    gray = np.pad(gray, [(lack // 2, lack - lack // 2) for lack in lacking], mode="edge")
    grid = _skimage("feature").daisy(gray, step=step, radius=radius, normalization="l1", **_DAISY)
    return np.sqrt(grid.reshape(-1, grid.shape[2]))


def _sift(gray: np.ndarray, step: int, radius: int) -> np.ndarray:
    finder = _skimage("feature").SIFT()
    try:
        finder.detect_and_extract(gray)
    except RuntimeError:  # raised by SIFT if it finds no keypoints
        return np.empty((0, _SIFT_COLUMNS), dtype=np.float32)
    shares = finder.descriptors / np.maximum(finder.descriptors.sum(axis=1, keepdims=True), 1)
    return np.sqrt(shares)


METHODS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {"daisy": _daisy, "sift": _sift}


def _skimage(part: str | None = None) -> Any:
    module = "skimage" if part is None else f"skimage.{part}"
    return needed(module, "PictureDescriptors needs scikit-image", "pictures")
