"""Features of the frames of sequences."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from ..data.items import Sequences


class SequenceFeatures(TransformerMixin, BaseEstimator):
    r"""Subtract the mean of each sequence from its frames, and append slopes.

    A microphone or a room adds about the same offset to every cepstrum of a recording; subtracting the mean removes it.
    Slopes are fitted by least squares to ``reach`` frames on either side:

    .. math:: \Delta_t = \frac{\sum_{j=1}^{r} j\,(x_{t+j} - x_{t-j})}{2\sum_{j=1}^{r} j^2},

    where a sequence is continued beyond its ends by its first and last frames. This transformer is stateless.

    Parameters
    ----------
    center : bool, default=True
        Whether to subtract the mean of each sequence.
    slopes : bool, default=True
        Whether to append slopes, which doubles the number of columns.
    reach : int, default=2
        Number of frames on either side that a slope is fitted to (r above).

    Examples
    --------
    >>> import numpy as np
    >>> SequenceFeatures(center=False, reach=1).transform([np.array([[0.0], [1.0], [4.0]])])[0]
    array([[0. , 0.5],
           [1. , 2. ],
           [4. , 1.5]])
    """

    def __init__(self, center: bool = True, slopes: bool = True, reach: int = 2) -> None:
        self.center = center
        self.slopes = slopes
        self.reach = reach

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters; there is nothing to fit."""
        if isinstance(self.reach, bool) or int(self.reach) != self.reach or self.reach < 1:
            raise ValueError(f"reach must be an int in the range [1, inf), got {self.reach!r}.")
        return self

    def transform(self, X: Any) -> Sequences:
        """Compute the features; the lengths of the sequences stay the same.

        Parameters
        ----------
        X : list of arrays of shape (frames, d), an array of shape (n, frames, d), or :class:`kproba.Sequences`
        """
        self.fit(X)
        X = Sequences.of(X)
        frames, lengths = X.frames, X.lengths
        starts = np.cumsum(lengths) - lengths
        if self.center:
            means = np.add.reduceat(frames, starts) / lengths[:, None]
            frames = frames - np.repeat(means, lengths, axis=0)
        if self.slopes:
            frames = np.hstack([frames, self._slopes(frames, starts, lengths)])
        return X.with_frames(frames)

    def _slopes(self, frames, starts, lengths) -> np.ndarray:
        first, last = (np.repeat(ends, lengths) for ends in (starts, starts + lengths - 1))
        here, reach = np.arange(len(frames)), np.arange(1, int(self.reach) + 1)
        rise = sum(j * (frames[np.minimum(here + j, last)] - frames[np.maximum(here - j, first)]) for j in reach)
        return rise / (2.0 * np.square(reach).sum())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.requires_fit = False
        return tags
