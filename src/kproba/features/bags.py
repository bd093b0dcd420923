"""Bags of local descriptors: a picture or a sound as the histogram of the words that its parts resemble."""

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
    "hellinger": lambda counts: np.sqrt(_over(counts, counts.sum(axis=1))),
    "l1": lambda counts: _over(counts, counts.sum(axis=1)),
    "l2": lambda counts: _over(counts, np.sqrt(np.square(counts).sum(axis=1))),
    "none": lambda counts: counts,
}
#: Up to so many pairs of a descriptor and a word, k-means goes over all descriptors again and again; then over batches.
FULL_PAIRS = 5_000_000
#: Batches larger than scikit-learn's, and no word thrown away for being rare: faster, and nearer to the full passes.
BATCHES = {"batch_size": 4096, "reassignment_ratio": 0.0, "compute_labels": False}
#: Share of the largest number with a square that descriptors may reach: squares are summed over columns.
ROOM = 1e-4
#: Descriptors of so many bytes are looked up together.
BLOCK_BYTES = 1 << 25


class BagOfFeatures(TransformerMixin, BaseEstimator):
    r"""Lists of local descriptors as histograms of words.

    The words are the centres of k-means among the descriptors of all training items (2011 Sec. 4.1). A descriptor
    counts for its ``n_neighbors`` nearest words by

    .. math:: w_j = \frac{\exp(-d_j^2/2s^2)}{\sum_k \exp(-d_k^2/2s^2)},

    where :math:`d_j` is the distance to the word and :math:`s` the median distance of the descriptors that made the
    words to their nearest word. With ``assignment="hard"`` it counts for its nearest word alone, as in the paper. An
    item without descriptors has a histogram of zeros.

    Parameters
    ----------
    n_words : int, default=500
        Number of words, and so of columns.
    assignment : {"soft", "hard"}, default="soft"
        Whether a descriptor is shared among several words or counts for one.
    n_neighbors : int, default=5
        Words that share a descriptor when ``assignment="soft"``.
    normalize : {"hellinger", "l1", "l2", "none"}, default="hellinger"
        Square roots of shares, shares, counts scaled to Euclidean length one, or counts. The Euclidean distance between
        square roots of shares is Hellinger's distance, for which rare words matter too.
    scaling : {None, "standard"}, default=None
        Whether columns of descriptors are divided by their standard deviation before distances are taken: for
        descriptors of mixed units, such as cepstra of sound.
    max_descriptors : int, default=100_000
        k-means looks at a random sample of so many descriptors.
    random_state : int, RandomState instance or None, default=None
        For the sample and for the start of k-means.

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
        """Find the words.

        Parameters
        ----------
        X : list of arrays of shape (m, d), an array of shape (n, m, d), or whatever has a length and gives such items
            Local descriptors of each item; their number m may differ from item to item.
        y : ignored
        """
        from sklearn.neighbors import NearestNeighbors  # slow to import, seldom needed

        self._check_options()
        items = _Items(X)
        random = check_random_state(self.random_state)
        sample = items.sample(self.max_descriptors, random)
        self.n_features_in_ = items.columns
        _check_distinct(sample, self.n_words, items.total)
        # distances come from products, which lose digits where descriptors lie far from the origin
        self._origin = sample.mean(axis=0, dtype=np.float64).astype(sample.dtype)
        self._scale = _standard_deviation(sample) if self.scaling == "standard" else np.ones_like(self._origin)
        sample = self._moved(sample)
        words = _cluster(sample, self.n_words, random.randint(2**31 - 1))
        self._lookup = NearestNeighbors(algorithm="brute").fit(words)
        self.words_ = words * self._scale + self._origin
        self.spread_ = float(np.median(self._nearest(sample, 1)[0]))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Histograms of words.

        Returns
        -------
        ndarray of shape (n, n_words)
        """
        check_is_fitted(self)
        self._check_options()
        items = _Items(X, columns=self.n_features_in_)
        counts = np.zeros((len(items), len(self.words_)))
        for owner, descriptors in items.blocks(BLOCK_BYTES, self.words_.dtype):
            self._count(owner, self._moved(descriptors), counts)
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
            raise ValueError(
                f"max_descriptors={self.max_descriptors} is below n_words={self.n_words}; words need at least as many "
                "descriptors."
            )

    def _moved(self, descriptors: np.ndarray) -> np.ndarray:
        """Centred and scaled, as the words are looked up."""
        moved = descriptors - self._origin
        moved /= self._scale
        return moved

    def _nearest(self, descriptors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances to the k nearest words and their numbers, nearest first."""
        with one_blas_thread():  # scikit-learn would set and restore a limit of its own
            return self._lookup.kneighbors(descriptors, n_neighbors=k)

    def _count(self, owner: np.ndarray, descriptors: np.ndarray, counts: np.ndarray) -> None:
        """Add what descriptors count to the histograms of the items that own them."""
        k = 1 if self.assignment == "hard" else min(self.n_neighbors, len(self.words_))
        distance, word = self._nearest(descriptors, k)
        weight = _shares(distance, self.spread_)
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
    """Checked items of descriptors; what is not an array yet becomes one when it is read."""

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
            raise ValueError(f"X[{number}] has rows of different lengths; every item must be a matrix.") from None
        if len(shape) == 2 or shape == (0,):
            return shape
        raise ValueError(
            f"X[{number}] has {len(shape)} dimension(s); every item must be a matrix with one row for each descriptor."
        )

    def _common_columns(self, shapes: list[tuple[int, ...]], fitted: int | None) -> int:
        """The columns that all descriptors have; items without descriptors may have any."""
        first = int(self._filled[0]) if len(self._filled) else 0
        wanted = fitted if fitted is not None else shapes[first][-1]
        if self.total and not wanted:
            raise ValueError(f"X[{first}] has descriptors of no columns at all.")
        for number in self._filled:
            if shapes[number][1] != wanted:
                other = f"X[{first}] has" if fitted is None else "BagOfFeatures was fitted on"
                raise ValueError(
                    f"X[{number}] has descriptors of {shapes[number][1]} columns, but {other} {wanted}; "
                    "all descriptors must be of one kind."
                )
        return wanted

    def read(self, number, dtype=None) -> np.ndarray:
        """Descriptors of one item as finite floats."""
        item = np.asarray(self._items[int(number)])  # containers need not know NumPy's integers
        if item.dtype.kind not in "fiub":
            raise TypeError(f"X[{number}] holds {item.dtype} values; descriptors must be real numbers.")
        with np.errstate(over="ignore"):  # what float32 does not hold is refused in the next lines
            item = item.astype(dtype or _float_type(item.dtype), copy=False)
        if not np.abs(item).max(initial=0.0) < np.sqrt(np.finfo(item.dtype).max) * ROOM:
            raise ValueError(
                f"X[{number}] contains NaN, infinity or a value whose square is too large for {item.dtype}; "
                "drop or fill such descriptors, or rescale all."
            )
        return item

    def sample(self, size: int, random: np.random.RandomState) -> np.ndarray:
        """So many descriptors, each equally likely, in the order in which they lie; all of them if there are fewer."""
        if not self.total:
            raise ValueError(f"X has {len(self)} item(s) and no descriptor at all; words are made of descriptors.")
        chosen = np.arange(self.total)
        if size < self.total:
            chosen = np.sort(random.choice(self.total, size, replace=False))
        ends = np.cumsum(self.lengths)
        cuts = np.searchsorted(chosen, np.concatenate([[0], ends]))
        parts = []
        for number in self._filled:
            item = self.read(number)  # also where nothing is drawn: bad values must not depend on the draw
            rows = chosen[cuts[number] : cuts[number + 1]] - (ends[number] - self.lengths[number])
            parts.append(item[rows])
        return np.concatenate(parts)

    def blocks(self, size: int, dtype) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Items stacked up to a size in bytes, each descriptor with the number of its item."""
        rows = max(1, size // (np.dtype(dtype).itemsize * self.columns))
        number_of_block = (np.cumsum(self.lengths[self._filled]) - 1) // rows
        for block in np.split(self._filled, np.flatnonzero(np.diff(number_of_block)) + 1):
            if len(block):
                descriptors = np.concatenate([self.read(number, dtype) for number in block])
                yield np.repeat(block, self.lengths[block]), descriptors


def _indexable(X) -> Any:
    """X if it has a length and gives items by number, and at least one of them."""
    if isinstance(X, str | bytes | dict) or not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise TypeError(
            f"X is a {type(X).__name__}; give a list of matrices, one item each. An iterator can be read only once: "
            "use list(X)."
        )
    X = X.to_numpy() if hasattr(X, "to_numpy") else X  # a series counts by its own index
    if not len(X):
        raise ValueError("X is empty; at least one item is needed.")
    return X


def _float_type(dtype: np.dtype) -> np.dtype:
    """float32 if it holds the values exactly, else float64."""
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)


def _standard_deviation(sample: np.ndarray) -> np.ndarray:
    """Of every column; 1 where it is constant."""
    spread = sample.std(axis=0, dtype=np.float64).astype(sample.dtype)
    spread[sample.max(axis=0) == sample.min(axis=0)] = 1.0  # where rounding alone may have made it positive
    return spread


def _check_distinct(sample: np.ndarray, n_words: int, total: int) -> None:
    found = len(np.unique(sample, axis=0))
    if found < n_words:
        raise ValueError(
            f"X has {found} distinct descriptors ({total} in all, {len(sample)} of them drawn) for n_words={n_words}; "
            "ask for fewer words or give more descriptors."
        )


def _cluster(sample: np.ndarray, n_words: int, seed: int) -> np.ndarray:
    """Centres by k-means."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # slow to import, seldom needed

    with one_blas_thread():  # k-means would set and restore a limit of its own
        if len(sample) * n_words > FULL_PAIRS:
            return MiniBatchKMeans(n_words, n_init=1, random_state=seed, **BATCHES).fit(sample).cluster_centers_
        # threads add in any order, and full passes magnify the last digit; this limit is the calling thread's own
        with threadpool_limits(1, user_api="openmp"):
            return KMeans(n_words, n_init=1, random_state=seed).fit(sample).cluster_centers_


def _shares(distance: np.ndarray, spread: float) -> np.ndarray:
    """What a descriptor counts for each of its words, nearest first; the sum is one."""
    beyond = np.square(distance) - np.square(distance[:, :1])
    with np.errstate(over="ignore"):  # where descriptors are words themselves the spread is zero, or nearly
        weight = np.exp(-beyond / max(2 * spread**2, np.finfo(np.float64).tiny))
    return weight / weight.sum(axis=1, keepdims=True)


def _over(counts: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Counts over a total; items without descriptors stay zero."""
    return counts / np.where(total > 0, total, 1.0)[:, None]
