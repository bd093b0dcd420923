"""Keys of rows, the equality of rows, and samples drawn by keys.

A hash finds rows that may be equal; :func:`exact_keys` compares them value by value before they are treated as equal.

A sample of the rows with the smallest keyed hash depends neither on the order of the rows nor on how often a row is
repeated, and the samples of two parts merge into the sample of the whole. So integer weights are equivalent to repeated
rows, and a file, a cluster and an array select the same centres.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..arrays import Device, is_tensor

_C1, _C2, _GOLDEN = (np.uint64(c) for c in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 0x9E3779B97F4A7C15))
_SHIFT = np.uint64(33)
#: Number of values hashed at a time: they and their copy stay in a core's cache.
_TILE = 1 << 15


def mix(bits: np.ndarray) -> np.ndarray:
    """The 64-bit finaliser of MurmurHash3: a bijection that keeps 0 at 0."""
    bits = bits.copy()
    _mix_in_place(bits, np.empty_like(bits))
    return bits


def _mix_in_place(bits: np.ndarray, spare: np.ndarray) -> None:
    for factor in (_C1, _C2, None):
        np.right_shift(bits, _SHIFT, out=spare)
        bits ^= spare
        if factor is not None:
            bits *= factor


def row_keys(X) -> np.ndarray:
    """One 64-bit key per row, equal for equal rows, dense or sparse.

    >>> import numpy as np
    >>> keys = row_keys(np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    if hasattr(X, "row_keys"):
        return X.row_keys()
    if is_tensor(X):
        return _tensor_row_keys(Device.of(X), X)
    return mix(row_sums(X))


def row_sums(X) -> np.ndarray:
    """The keys before the last step: sums of a term for each column (:func:`column_term`)."""
    if sparse.issparse(X):
        return _sparse_row_sums(X)
    n, d = X.shape
    odd, step = _column_multipliers(d), max(1, _TILE // max(1, d))
    keys = np.empty(n, dtype=np.uint64)
    # one pair of buffers for all tiles: allocating memory every time costs more than hashing
    values, spare = np.empty((min(step, n), d)), np.empty((min(step, n), d), dtype=np.uint64)
    for start in range(0, n, step):
        size = min(step, n - start)
        np.copyto(values[:size], X[start : start + size], casting="unsafe")
        values[:size] += 0.0  # turns −0 into +0
        bits = values[:size].view(np.uint64)
        _mix_in_place(bits, spare[:size])
        bits *= odd
        bits.sum(axis=1, dtype=np.uint64, out=keys[start : start + size])
    return keys


def column_term(column: np.ndarray, j: int, d: int) -> np.ndarray:
    """What column j of d adds to the sums of the rows."""
    return mix(_bits(column)) * _column_multipliers(d)[j]


def column_sums(X, copies: np.ndarray) -> np.ndarray:
    """A hash (d,) of the contents of each column, in which ``copies`` of each row count; their order does not."""
    if sparse.issparse(X):
        X = sparse.csc_array(X)
        terms = mix(_bits(X.data)) * copies.astype(np.uint64)[X.indices]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    parts = np.array_split(np.arange(X.shape[0]), 1 + X.size // (64 * _TILE))
    counts = copies.astype(np.uint64)[:, None]
    return np.sum([(mix(_bits(X[rows])) * counts[rows]).sum(axis=0, dtype=np.uint64) for rows in parts], axis=0)


def _bits(values: np.ndarray) -> np.ndarray:
    return (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)  # turns −0 into +0


def exact_keys(X, hashes: np.ndarray | None = None) -> np.ndarray:
    """One 64-bit key per row, equal for equal rows and for no others; ``hashes`` are their row keys, if known.

    These are the hashes of :func:`row_keys`, unless different rows share a hash: then all but the first of them get
    another key.

    >>> import numpy as np
    >>> keys = exact_keys(np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]]))
    >>> len(np.unique(keys))
    2
    """
    keys = row_keys(X) if hashes is None else hashes
    if are_distinct(keys):
        return keys
    order = np.argsort(keys, kind="stable")
    before, after = order[:-1], order[1:]
    tied = np.flatnonzero(keys[before] == keys[after])
    if not len(tied):
        return keys
    differ = ~equal_rows(X, before[tied], X, after[tied])
    return _resolve_collisions(X, keys, np.unique(keys[after[tied[differ]]])) if differ.any() else keys


def _resolve_collisions(X, keys: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Keys in which every distinct row with one of the ``shared`` hashes gets its own key."""
    keys = keys.copy()
    taken = set(keys.tolist())
    for key in shared:
        rest, fresh = np.flatnonzero(keys == key), int(key)
        while len(rest):
            same = equal_rows(X, np.full(len(rest), rest[0]), X, rest)
            keys[rest[same]] = fresh
            rest = rest[~same]
            while fresh in taken:
                fresh = (fresh + int(_GOLDEN)) % 2**64
            taken.add(fresh)
    return keys


def equal_rows(X, i: np.ndarray, Z, j: np.ndarray) -> np.ndarray:
    """Whether row i[k] of X equals row j[k] of Z, for each k; −0 equals 0."""
    if hasattr(X, "equal_items"):
        return X.equal_items(i, Z, j)
    if sparse.issparse(X):
        difference = sparse.csr_array(X)[i] - sparse.csr_array(Z)[j]
        return np.asarray(abs(difference).sum(axis=1)).ravel() == 0.0
    step = max(1, _TILE // max(1, X.shape[1]))
    parts = [slice(start, start + step) for start in range(0, len(i), step)]
    return np.concatenate([(X[i[part]] == Z[j[part]]).all(axis=1) for part in parts] or [np.empty(0, bool)])


def stacked(X, Z):
    """The rows of X followed by those of Z: dense, sparse or items."""
    if hasattr(X, "joined"):
        return X.joined(Z)
    if sparse.issparse(X) or sparse.issparse(Z):
        return sparse.vstack([sparse.csr_array(X), sparse.csr_array(Z)], format="csr")
    return np.concatenate([X, Z])


def _sparse_row_sums(X) -> np.ndarray:
    X = sparse.csr_array(X)
    terms = mix(_bits(X.data)) * _multipliers(X.indices)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


def _tensor_row_keys(device: Device, X) -> np.ndarray:
    """The same on the device of the rows: PyTorch's signed integers wrap around like unsigned ones."""
    if device.library != "torch":
        return row_keys(device.get(X))
    return device.get(_tensor_hashes(device, X)).view(np.uint64)


def _tensor_hashes(device: Device, X):
    """The same as signed integers, which stay on the device."""
    odd = device.put(_column_multipliers(X.shape[1]).view(np.int64))
    values = X.detach().to(device.xp.float64) + 0.0
    return _signed_mix((_signed_mix(values.view(device.xp.int64)) * odd).sum(dim=1))


def _signed_mix(bits):
    """:func:`mix` for signed integers, whose right shift would copy the sign bit."""
    for factor in (_C1, _C2):
        bits = (bits ^ ((bits >> 33) & 0x7FFFFFFF)) * int(factor.view(np.int64))
    return bits ^ ((bits >> 33) & 0x7FFFFFFF)


def _column_multipliers(d: int) -> np.ndarray:
    return _multipliers(np.arange(d))


def _multipliers(columns: np.ndarray) -> np.ndarray:
    """An odd multiplier for each column number."""
    return mix((columns.astype(np.uint64) + np.uint64(1)) * _GOLDEN) | np.uint64(1)


def by_place(keys: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Keys whose sum depends on the position of each of them."""
    return mix(keys) * _multipliers(place)


def distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each distinct key, sorted by key, and the index of each row's key among them."""
    if (keys[1:] >= keys[:-1]).all():  # already sorted
        is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        return np.flatnonzero(is_first), np.cumsum(is_first) - 1
    order = np.argsort(keys)  # several times as fast as a stable sort, which matters for equal keys only
    if (keys[order[1:]] != keys[order[:-1]]).all():
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        return order, inverse
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first, inverse.ravel()


def first_in_order(keys: np.ndarray, size: int) -> np.ndarray:
    """The places of the smallest keys in order, those of equal keys in theirs."""
    if size >= len(keys):
        return np.argsort(keys, kind="stable")
    near = np.flatnonzero(keys <= np.partition(keys, size)[size])  # more than ``size`` if some are equal
    return near[np.argsort(keys[near], kind="stable")[:size]]


def are_distinct(keys: np.ndarray) -> bool:
    """Whether no two keys are equal."""
    ordered = np.sort(keys)
    return bool((ordered[1:] != ordered[:-1]).all())


def ranking(keys: np.ndarray, seed: int) -> np.ndarray:
    """A pseudo-random order of keys that depends only on the seed and the keys."""
    return mix(keys ^ _mask(seed))


def keys_of_ranking(ranks: np.ndarray, seed: int) -> np.ndarray:
    """The keys from their ranking.

    >>> import numpy as np
    >>> keys = np.array([1, 2**63], dtype=np.uint64)
    >>> bool((keys_of_ranking(ranking(keys, 7), 7) == keys).all())
    True
    """
    keys = ranks.copy()
    for factor in (None, _C2, _C1):  # each step of ``mix`` in reverse; a shift by more than half undoes itself
        if factor is not None:
            keys *= np.uint64(pow(int(factor), -1, 2**64))
        keys ^= keys >> _SHIFT
    return keys ^ _mask(seed)


def ranking_on_device(device: Device, X, seed: int):
    """The ranking of the rows of a PyTorch tensor, in signed integers of the same order; it stays on the device."""
    mask = int(_mask(seed).view(np.int64)[0])
    return _signed_mix(_tensor_hashes(device, X) ^ mask) ^ -(2**63)


def _mask(seed: int) -> np.ndarray:
    return mix(np.array([seed], dtype=np.uint64) * _GOLDEN + _C1)
