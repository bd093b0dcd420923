"""Bags of local descriptors: an image or a sound as a histogram of visual or acoustic words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from ..threads import one_blas_thread
from ..typing import RandomState
from ..validation import check_choice, check_count

ASSIGNMENTS = ("soft", "hard")
NORMALIZATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hellinger": lambda counts: np.sqrt(_divided(counts, counts.sum(axis=1))),
    "l1": lambda counts: _divided(counts, counts.sum(axis=1)),
    "l2": lambda counts: _divided(counts, np.sqrt(np.square(counts).sum(axis=1))),
    "none": lambda counts: counts,
}
#: Up to this many (descriptor, word) pairs, full k-means is used; beyond, mini-batches.
FULL_PAIRS = 5_000_000
#: Larger batches than scikit-learn's default and no reassignment of rare words: faster, and closer to full k-means.
BATCHES = {"batch_size": 4096, "reassignment_ratio": 0.0, "compute_labels": False}
#: Descriptors may reach this share of the largest number that can be squared, because squares are summed over columns.
ROOM = 1e-4
#: Bytes of descriptors that are looked up together.
BLOCK_BYTES = 1 << 25


class BagOfFeatures(TransformerMixin, BaseEstimator):
    r"""Turn lists of local descriptors into histograms of words.

    The words are the k-means centres of the descriptors of all training items (2011 Sec. 4.1). A descriptor adds to
    its ``n_neighbors`` nearest words the weights

    .. math:: w_j = \frac{\exp(-d_j^2/2s^2)}{\sum_k \exp(-d_k^2/2s^2)},

    where :math:`d_j` is the distance to word j and :math:`s` the median distance of the descriptors in the k-means
    sample to their nearest word. With ``assignment="hard"``, a descriptor counts only for its nearest word, as in the
    paper. The histogram of an item without descriptors is zero.

    Parameters
    ----------
    n_words : int, default=500
        Number of words, which is the number of columns returned.
    assignment : {"soft", "hard"}, default="soft"
        Whether a descriptor is shared among several words or counts for one only.
    n_neighbors : int, default=5
        Number of words that share a descriptor with ``assignment="soft"``.
    normalize : {"hellinger", "l1", "l2", "none"}, default="hellinger"
        Return square roots of shares, shares, counts with unit Euclidean norm, or counts. The Euclidean distance
        between square roots of shares is the Hellinger distance, in which rare words matter too.
    scaling : {None, "standard"}, default=None
        Whether to divide the columns of the descriptors by their standard deviation before computing distances. Use
        it for descriptors with mixed units, such as cepstra of sounds.
    max_descriptors : int, default=100_000
        Size of the random sample of descriptors that k-means is fitted on.
    random_state : int, RandomState instance or None, default=None
        Seed for the sample and for the initialization of k-means.

    Attributes
    ----------
    words_ : ndarray of shape (n_words, d), in the units of the descriptors
    spread_ : float, the s above, in scaled columns
    n_features_in_ : int, the columns d of a descriptor

    Examples
    --------
    >>> import numpy as np
    >>> items = [np.array([[0.0], [0.1], [9.0]]), np.array([[9.1], [9.2]]), np.empty((0, 1))]
    >>> bag = BagOfFeatures(n_words=2, assignment="hard", normalize="l1", random_state=0).fit(items)
    >>> order = np.argsort(bag.words_[:, 0])
    >>> bag.transform(items)[:, order].round(2)
    array([[0.67, 0.33],
           [0.  , 1.  ],
           [0.  , 0.  ]])
    """

    words_: np.ndarray
    spread_: float

    def __init__(
        self,
        n_words: int = 500,
        *,
        assignment: Literal["soft", "hard"] | str = "soft",
        n_neighbors: int = 5,
        normalize: Literal["hellinger", "l1", "l2", "none"] | str = "hellinger",
        scaling: Literal["standard"] | str | None = None,
        max_descriptors: int = 100_000,
        random_state: RandomState = None,
    ) -> None:
        self.n_words = n_words
        self.assignment = assignment
        self.n_neighbors = n_neighbors
        self.normalize = normalize
        self.scaling = scaling
        self.max_descriptors = max_descriptors
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the words.

        Parameters
        ----------
        X : list of arrays of shape (m, d), array of shape (n, m, d), or any sequence of such items
            Local descriptors of each item; their number m may differ between items.
        y : ignored
        """
        from sklearn.neighbors import NearestNeighbors  # slow to import and rarely needed

        self._check_options()
        items = _Items(X)
        random = check_random_state(self.random_state)
        sample = items.sample(self.max_descriptors, random)
        self.n_features_in_ = items.columns
        found = len(np.unique(sample, axis=0))
        if found < self.n_words:
            raise ValueError(
                f"X has {found} distinct descriptors ({items.total} in all, {len(sample)} sampled), below "
                f"n_words={self.n_words}; use fewer words or more descriptors."
            )
        # distances are computed from products, which lose precision far from the origin
        self._origin = sample.mean(axis=0, dtype=np.float64).astype(sample.dtype)
        self._scale = _standard_deviation(sample) if self.scaling == "standard" else np.ones_like(self._origin)
        sample = self._standardized(sample)
        words = _cluster(sample, self.n_words, random.randint(2**31 - 1))
        self._lookup = NearestNeighbors(algorithm="brute").fit(words)
        self.words_ = words * self._scale + self._origin
        self.spread_ = float(np.median(self._nearest(sample, 1)[0]))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Compute the histograms of words.

        Returns
        -------
        ndarray of shape (n, n_words)
        """
        check_is_fitted(self)
        self._check_options()
        items = _Items(X, columns=self.n_features_in_)
        counts = np.zeros((len(items), len(self.words_)))
        for owner, descriptors in items.blocks(BLOCK_BYTES, self.words_.dtype):
            self._count(owner, self._standardized(descriptors), counts)
        return NORMALIZATIONS[self.normalize](counts)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns: ``word0``, ``word1``, …"""
        check_is_fitted(self)
        return np.array([f"word{number}" for number in range(len(self.words_))], dtype=object)

    def _check_options(self) -> None:
        for name in ("n_words", "n_neighbors", "max_descriptors"):
            check_count(name, getattr(self, name))
        check_choice("assignment", self.assignment, ASSIGNMENTS)
        check_choice("normalize", self.normalize, NORMALIZATIONS)
        check_choice("scaling", self.scaling, (None, "standard"))
        if self.max_descriptors < self.n_words:
            raise ValueError(f"max_descriptors={self.max_descriptors} must be at least n_words={self.n_words}.")

    def _standardized(self, descriptors: np.ndarray) -> np.ndarray:
        """Descriptors centred and scaled like the words in the lookup."""
        moved = descriptors - self._origin
        moved /= self._scale
        return moved

    def _nearest(self, descriptors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances to the k nearest words and their indices, nearest first."""
        with one_blas_thread():  # otherwise scikit-learn sets and restores a limit of its own
            return self._lookup.kneighbors(descriptors, n_neighbors=k)

    def _count(self, owner: np.ndarray, descriptors: np.ndarray, counts: np.ndarray) -> None:
        """Add the weights of the descriptors to the histograms of their items."""
        k = 1 if self.assignment == "hard" else min(self.n_neighbors, len(self.words_))
        distance, word = self._nearest(descriptors, k)
        weight = _soft_weights(distance, self.spread_)
        first, n_words = owner[0], counts.shape[1]
        cell = (owner - first)[:, None] * n_words + word
        own = counts[first : owner[-1] + 1]
        own += np.bincount(cell.ravel(), weight.ravel(), own.size).reshape(own.shape)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


class _Items:
    """Validated lists of descriptors; items that are not arrays are converted when they are read."""

    def __init__(self, X, columns: int | None = None):
        self._items = _indexable(X)
        shapes = [self._shape(number) for number in range(len(self))]
        self.lengths = np.array([shape[0] for shape in shapes], dtype=np.int64)
        self.total = int(self.lengths.sum())
        self._filled = np.flatnonzero(self.lengths)
        self.columns = self._common_columns(shapes, columns)

    def __len__(self) -> int:
        return len(self._items)

    def _shape(self, number: int) -> tuple[int, ...]:
        try:
            shape = np.shape(self._items[number])
        except ValueError:
            raise ValueError(f"X[{number}] has rows of different lengths; each item must be a matrix.") from None
        if len(shape) == 2 or shape == (0,):
            return shape
        raise ValueError(
            f"X[{number}] has {len(shape)} dimension(s); each item must be a matrix with one row per descriptor."
        )

    def _common_columns(self, shapes: list[tuple[int, ...]], fitted: int | None) -> int:
        """The number of columns, which all items with descriptors must share."""
        first = int(self._filled[0]) if len(self._filled) else 0
        wanted = fitted if fitted is not None else shapes[first][-1]
        if self.total and not wanted:
            raise ValueError(f"X[{first}] has descriptors with no columns.")
        for number in self._filled:
            if shapes[number][1] != wanted:
                other = f"X[{first}] has" if fitted is None else "BagOfFeatures was fitted on"
                raise ValueError(
                    f"X[{number}] has descriptors with {shapes[number][1]} columns, but {other} {wanted}; "
                    "all descriptors must have the same number of columns."
                )
        return wanted

    def read(self, number, dtype=None) -> np.ndarray:
        """The descriptors of one item as finite floats."""
        item = np.asarray(self._items[int(number)])  # containers may not accept NumPy integers
        if item.dtype.kind not in "fiub":
            raise TypeError(f"X[{number}] has dtype {item.dtype}; descriptors must be real numbers.")
        with np.errstate(over="ignore"):  # float32 overflows are refused below
            exact = np.float32 if np.can_cast(item.dtype, np.float32) else np.float64
            item = item.astype(dtype or exact, copy=False)
        if not np.abs(item).max(initial=0.0) < np.sqrt(np.finfo(item.dtype).max) * ROOM:
            raise ValueError(
                f"X[{number}] contains NaN, infinity or a value whose square is too large for {item.dtype}; "
                "drop or fill such descriptors, or rescale all of them."
            )
        return item

    def sample(self, size: int, random: np.random.RandomState) -> np.ndarray:
        """A uniform sample of ``size`` descriptors in their original order, or all of them if there are fewer."""
        if not self.total:
            raise ValueError(f"X has {len(self)} item(s) but no descriptors; at least one is needed to compute words.")
        chosen = np.arange(self.total)
        if size < self.total:
            chosen = np.sort(random.choice(self.total, size, replace=False))
        ends = np.cumsum(self.lengths)
        cuts = np.searchsorted(chosen, np.concatenate([[0], ends]))
        parts = []
        for number in self._filled:
            item = self.read(number)  # even if nothing is drawn: errors about bad values must not depend on the sample
            rows = chosen[cuts[number] : cuts[number + 1]] - (ends[number] - self.lengths[number])
            parts.append(item[rows])
        return np.concatenate(parts)

    def blocks(self, size: int, dtype) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks of descriptors of up to ``size`` bytes, with the item that each descriptor belongs to."""
        rows = max(1, size // (np.dtype(dtype).itemsize * self.columns))
        number_of_block = (np.cumsum(self.lengths[self._filled]) - 1) // rows
        for block in np.split(self._filled, np.flatnonzero(np.diff(number_of_block)) + 1):
            if len(block):
                descriptors = np.concatenate([self.read(number, dtype) for number in block])
                yield np.repeat(block, self.lengths[block]), descriptors


def _indexable(X) -> Any:
    """Check that X is a non-empty sequence."""
    if isinstance(X, str | bytes | dict) or not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise TypeError(
            f"X is a {type(X).__name__}; pass a list of matrices, one per item. Convert an iterator with list(X)."
        )
    X = X.to_numpy() if hasattr(X, "to_numpy") else X  # a series is indexed by its labels
    if not len(X):
        raise ValueError("X is empty; pass at least one item.")
    return X


def _standard_deviation(sample: np.ndarray) -> np.ndarray:
    """Standard deviation of each column, or 1 for constant columns."""
    spread = sample.std(axis=0, dtype=np.float64).astype(sample.dtype)
    spread[sample.max(axis=0) == sample.min(axis=0)] = 1.0  # rounding may have made it positive
    return spread


def _cluster(sample: np.ndarray, n_words: int, seed: int) -> np.ndarray:
    """K-means centres."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # slow to import and rarely needed

    with one_blas_thread():  # otherwise k-means sets and restores a limit of its own
        if len(sample) * n_words > FULL_PAIRS:
            return MiniBatchKMeans(n_words, n_init=1, random_state=seed, **BATCHES).fit(sample).cluster_centers_
        # the order of sums varies between threads, and full k-means amplifies it; this limit is local to the thread
        with threadpool_limits(1, user_api="openmp"):
            return KMeans(n_words, n_init=1, random_state=seed).fit(sample).cluster_centers_


def _soft_weights(distance: np.ndarray, spread: float) -> np.ndarray:
    """The weights of a descriptor for its words, nearest first; they sum to one."""
    beyond = np.square(distance) - np.square(distance[:, :1])
    with np.errstate(over="ignore"):  # the spread is nearly zero if descriptors are words themselves
        weight = np.exp(-beyond / max(2 * spread**2, np.finfo(np.float64).tiny))
    return weight / weight.sum(axis=1, keepdims=True)


def _divided(counts: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Counts divided by a total; items without descriptors stay zero."""
    return counts / np.where(total > 0, total, 1.0)[:, None]
