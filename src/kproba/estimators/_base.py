"""The base class of all classifiers: checking inputs, storing fitted attributes, and prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..arrays import Device, is_tensor, to_numpy
from ..arrays import choose as choose_device
from ..basis.basis import Basis
from ..basis.local_basis import on_device
from ..data.columns import explained, refuse_times
from ..data.copies import with_units
from ..data.dask import computed, floats_of, is_dask
from ..data.items import Items, Sequences, as_items, is_table
from ..data.labels import check_groups, class_factors, encode_labels, refuse_unknown_tags, row_weights
from ..data.mixed import MixedColumns, is_mixed, is_rectangular, warn_of_gaps
from ..data.rows import Rows
from ..data.scaling import Scaling, fit_scaling
from ..data.sources import CheckedInputs, Chunk, Source, check_chunk, in_double, inputs, settled
from ..kernels import Kernel, Learnt, Precomputed, as_kernels
from ..kernels.projected import ProjectedKernel
from ..links import Link, in_blocks, link_flag
from ..search.candidates import Candidate, SearchRecord
from ..threads import map_independent, n_workers, row_slices
from ..typing import Inputs, LinkName, Targets, available_if
from ..validation import SMALLEST, check_columns, check_lengths, check_magnitude, check_square, check_tensor
from ._hints import LEARNT, LEFT_OUT, advice_on, explain_unknown_parameters, why_missing
from ._reading import Training
from ._sanity import refuse_overflow, warn_of_few_rows, warn_of_one_hot, warn_of_units

#: Rows are scaled and scored in blocks of about this size.
PREDICT_BYTES = 64 << 20
#: Larger arrays are checked for missing and infinite values by several threads.
MANY_BYTES = 256 << 20


def _gives_probabilities(estimator) -> bool:
    if not link_flag(estimator.link, "gives_probabilities"):
        raise AttributeError(
            f"link={estimator.link!r} returns raw outputs, which may lie outside [0, 1]; use decision_function or "
            "another link."
        )
    return True


class KernelClassifier(ClassifierMixin, BaseEstimator):
    """Base class of the classifiers. ``predict`` is always the argmax of ``predict_proba``.

    A subclass sets ``basis_``, ``coef_``, ``intercept_``, ``link_`` and ``scaling_`` in ``fit``.
    """

    #: defaults for estimators without these parameters
    link: LinkName = "softmax"
    device: Any = None
    #: whether the fit iterates until it meets a tolerance, which magnifies rounding errors: the rows are then sorted
    #: so that the result does not depend on their order in X
    _iterates = False
    #: for a fold, its rows as the model of all rows has read them: weights and what counts as a copy stay as they are
    _read_as: Rows | None = None
    #: whether the ridge is the noise that is learnt with the kernel
    _ridge_is_noise = False
    #: whether the model was fitted on objects that are not vectors
    _on_items = False
    #: the columns of a table with categories or missing values
    columns_: MixedColumns | None = None

    classes_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray
    basis_: Basis
    scaling_: Scaling | None
    link_: Link
    kernel_: Kernel
    width_: Any
    centers_: Any
    coef_: np.ndarray
    intercept_: np.ndarray | float
    loo_scores_: np.ndarray
    loo_proba_: np.ndarray
    oof_proba_: np.ndarray
    feature_importances_: np.ndarray
    fold_importances_: np.ndarray
    learning_curve_: dict[str, np.ndarray]
    search_results_: dict[str, np.ndarray]
    ridge_: float
    n_iter_: int
    device_: Device | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = explain_unknown_parameters(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as in scikit-learn."""
        try:
            return super().set_params(**params)
        except ValueError as error:
            known = self.get_params()
            advice = next((advice_on(name, known) for name in params if name not in known), "")
            raise (ValueError(f"{error} {advice}") if advice else error) from None

    if not TYPE_CHECKING:  # type checkers would accept any attribute name

        def __getattr__(self, name: str):
            if name in (*LEFT_OUT, *LEARNT):
                raise why_missing(self, name)
            return object.__getattribute__(self, name)  # raises the original error again

    def _read_rows(self, X, y, sample_weight, groups=None) -> tuple[Rows, np.ndarray]:
        """The distinct rows of positive weight, with encoded labels, and each input row's index among them."""
        self.classes_, labels = encode_labels(y)
        check_lengths(X, labels)
        weight = row_weights(sample_weight, X.shape[0]) if self._read_as is None else self._read_as.weight
        factor = class_factors(self.class_weight, self.classes_, labels, weight)
        if labels.ndim == 2:
            weight = np.where(np.isnan(labels).all(axis=1), 0.0, weight)  # a row without any tag has no information
        together = None if groups is None else check_groups(groups, X.shape[0])
        given = Rows.of(X, labels, weight, len(self.classes_), factor, together, self._categorical)
        if self._read_as is not None:
            given = replace(given, unit=self._read_as.unit, copies_are_draws=self._read_as.copies_are_draws)
        rows, place = given.merged(by_key=self._iterates)
        if self._read_as is None:
            rows, again = with_units(rows, with_groups=True)
            place = np.where(place < 0, -1, again[place])
        if rows.is_multilabel:
            refuse_unknown_tags(rows.labels, self.classes_)
            warn_of_one_hot(rows)
        elif len(np.unique(rows.labels)) < 2:
            raise ValueError("y has only one class among the rows of positive weight; at least 2 are needed.")
        else:
            warn_of_few_rows(rows, self.classes_)
        return rows, place

    def _check_inputs(self, X, reset: bool):
        if is_source(X):
            raise TypeError("X is a source of rows, which only fit and the predict methods accept; pass an array.")
        if isinstance(X, CheckedInputs) and not reset:
            check_columns(X.shape[1], self)
            return self._filled(np.asarray(X)) if self.columns_ is None else self.columns_(np.asarray(X))
        items = self._read_items(X, reset)
        if items is not None:
            return items
        X = self._read_table(X, reset)
        if sparse.issparse(X):
            X = _with_small_indices(X)
        precomputed = self._is_precomputed
        if precomputed and sparse.issparse(X):
            raise TypeError("kernel='precomputed' needs a dense matrix X, but X is sparse; use X.toarray().")
        if precomputed and reset:
            check_square(X)
        values = X.data if sparse.issparse(X) else X
        if self.scaling is None:
            check_magnitude("X", values, smallest=SMALLEST if reset else 0.0)
        return X

    def _read_table(self, X, reset: bool):
        """X as a matrix of floats, dense or CSR. Categories become codes, and missing numbers are marked."""
        refuse_times(X, type(self).__name__)
        if reset:
            self._forget("columns_")
        is_first = reset and not self._is_precomputed
        if self.columns_ is not None or (is_first and is_mixed(X, self.categorical_features)):
            return self._read_mixed(X, reset)
        try:
            return self._read_numbers(X, reset)
        except ValueError as error:
            if not str(error).startswith("Input X contains NaN") or sparse.issparse(X) or self._is_precomputed:
                raise
            X = X if is_rectangular(X) else np.asarray(X, dtype=np.float64)
            if reset:
                return self._read_mixed(X, reset)
            return self._filled(validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan"))

    def _read_mixed(self, X, reset: bool) -> np.ndarray:
        """A table with categories or missing values as a matrix; the first one is remembered."""
        if not is_rectangular(X):
            return self._read_mixed(np.array(X, dtype=object, ndmin=2), reset)
        if reset:
            self._remember_columns(X)
        else:
            validate_data(self, X, reset=False, skip_check_array=True)
        matrix = self.columns_(X, is_new=not reset)  # type: ignore[misc]
        return check_array(matrix, ensure_min_samples=1 if reset else 0)

    def _remember_columns(self, X) -> None:
        """Look at the columns of a mixed table, or of a sample of it."""
        validate_data(self, X, reset=True, skip_check_array=True)
        self.columns_ = MixedColumns.of(X, self.categorical_features, self._may_learn_kernel)

    def _filled(self, X: np.ndarray) -> np.ndarray:
        """Numbers that may have gaps, for a model of rows that had none: medians of the centres take their place."""
        missing = np.isnan(X)
        if not missing.any():
            return X
        names = getattr(self, "feature_names_in_", range(X.shape[1]))
        warn_of_gaps([names[j] for j in np.flatnonzero(missing.any(axis=0))])
        centers = self.centers_.toarray() if sparse.issparse(self.centers_) else self.centers_
        return np.where(missing, np.quantile(centers, 0.5, axis=0, method="lower"), X)

    @property
    def _categorical(self) -> tuple[int, ...]:
        """The columns that hold codes: those of a mixed table, and those that the user's kernel names."""
        own = as_kernels(self.kernel)[0].categorical
        return tuple(sorted({*own, *(() if self.columns_ is None else self.columns_.categorical)}))

    def _read_numbers(self, X, reset: bool):
        """X as a matrix of finite floats, dense or CSR."""
        types, least = [np.float64, np.float32], 1 if reset else 0
        try:
            finite = not self._is_large_and_finite(X)  # whether scikit-learn has to look
            with np.errstate(invalid="ignore"):  # scikit-learn sums all values, which may compute inf - inf
                return validate_data(
                    self,
                    X,
                    reset=reset,
                    accept_sparse="csr",
                    dtype=types,
                    ensure_min_samples=least,
                    ensure_all_finite=finite,
                )
        except (ValueError, TypeError) as error:
            if (better := self._explained(error, X)) is error:
                raise
            raise better from error

    def _is_large_and_finite(self, X) -> bool:
        """Whether X is a large array of finite numbers: threads read it faster than scikit-learn's single one."""
        is_plain = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype in (np.float32, np.float64)
        if not is_plain or X.nbytes < MANY_BYTES:
            return False
        parts = row_slices(len(X), X.shape[1] * X.itemsize, MANY_BYTES // 8)

        def is_finite(rows: slice) -> bool:
            with np.errstate(invalid="ignore", over="ignore"):
                return bool(np.isfinite(np.sum(X[rows])))

        return all(map_independent(is_finite, parts, n_workers(self.n_jobs)))

    def _explained(self, error: Exception, X) -> Exception:
        """scikit-learn's error for X, with a hint on how to fix it if we have one."""
        if isinstance(X, list | tuple) and not is_table(X):
            return type(error)(
                f"{error} X is a list of objects that are not numeric rows, which needs a kernel that compares them: "
                "kernel='hidden-markov' for sequences, 'spectrum' for strings and sets, or a function of two lists."
            )
        if self._is_precomputed and " features as input" in str(error):
            return ValueError(
                f"{error} With kernel='precomputed', X needs one column per training row: the kernel values."
            )
        return explained(error, X, type(self).__name__)

    def _read_items(self, X, reset: bool) -> Items | None:
        """X as a list of objects, if the kernel compares such; None for a table."""
        items = as_kernels(self.kernel)[0].read(X)
        if reset:
            self._on_items = items is not None
        elif items is None and self._on_items:
            items = as_items(X)
        if items is None:
            return None
        if reset:
            self._forget("n_features_in_", "feature_names_in_")
        if isinstance(items, Sequences):
            if reset:
                self.n_features_in_ = items.n_coefficients
            check_columns(items.n_coefficients, self, "coefficients per frame")
        return items

    def _forget(self, *names: str) -> None:
        """Delete attributes of an earlier fit that this one would not overwrite."""
        for name in names:
            self.__dict__.pop(name, None)

    def _fit_scaling(self, rows: Rows, kernels: Sequence[Kernel]):
        """The scaling of the columns, or of the frame coefficients of sequences; None if there is nothing to scale."""
        if self._is_precomputed:
            return None
        has_columns = not isinstance(rows.X, Items) or isinstance(rows.X, Sequences)
        if has_columns and kernels[0].takes_scaling:
            return fit_scaling(self.scaling, rows, n_workers(self.n_jobs))
        if self.scaling not in ("auto", None):
            raise ValueError(
                f"scaling={self.scaling!r} does not apply to the {kernels[0].name} kernel, which needs the data "
                "unscaled; use scaling=None."
            )
        return None

    def _check_units(self, scaled: Rows, kernels: Sequence[Kernel], scaling, seed: int) -> None:
        """Raise an error or warn if the units of the columns or of a fixed width make the kernel nearly constant."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None and self.columns_ is not None:
            names = names[list(self.columns_.origins)]
        refuse_overflow(scaled, kernels, self.width, seed)
        warn_of_units(scaled, kernels, self.width, scaling is not None, names, seed)

    def _given_points(self):
        """The points that the user passed as ``centers``, as a matrix if X is a mixed table."""
        if self.columns_ is None:
            return self.centers
        points = self.centers if is_rectangular(self.centers) else np.array(self.centers, dtype=object, ndmin=2)
        if points.shape[1] != self.n_features_in_:
            raise ValueError(f"centers has shape {points.shape}; it must have the {self.n_features_in_} columns of X.")
        return self.columns_(points)

    def _given_centers(self, scaling):
        """The points that the user passed as ``centers``, scaled like the rows."""
        items = as_kernels(self.kernel)[0].read(self.centers)
        if items is not None:
            return items if scaling is None else scaling(items)
        points = self._given_points()
        if self._is_precomputed:
            return np.asarray(points)
        points = sparse.csr_array(points) if sparse.issparse(points) else np.asarray(points, dtype=np.float64)
        if scaling is not None:
            return scaling(points)
        check_magnitude("centers", points.data if sparse.issparse(points) else points)
        return points

    def _reasons_for_memory(self) -> Iterator[str]:
        """Reasons why the parameters require all rows in memory; none if the model can be fitted from a source."""
        if self._is_precomputed:
            yield "kernel='precomputed' needs the kernel matrix as an array, not a source of rows."

    def _why_in_memory(self) -> str | None:
        return next(self._reasons_for_memory(), None)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _may_learn_kernel(self) -> bool:
        """Whether kernel and width are open, so that every column may get a weight of its own."""
        return all(isinstance(value, str) and value == "auto" for value in (self.kernel, self.width))

    #: whether ``kernel`` may be a JointKernel
    _takes_joint_kernels = False

    @property
    def _learns(self) -> bool:
        """Whether the other parameters allow kernel="auto" to be learnt."""
        return getattr(self, "selection", "loo") == "loo"

    def _variants(self, kernel: Learnt) -> list[Kernel]:
        """What the model chooses from once a kernel is learnt."""
        return [kernel]

    def _seed(self) -> int:
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except (TypeError, ValueError):
            raise ValueError(
                f"random_state={self.random_state!r} is not a seed; use None, an integer from 0 to 2**32 - 1, or a "
                "RandomState."
            ) from None

    def _scores(self, X) -> np.ndarray:
        """Raw scores Φθ plus the constant, (n, k)."""
        check_is_fitted(self)
        X = X if self.columns_ is None else to_numpy(X)
        device = choose_device(self.device, X)
        if device is not None and not sparse.issparse(X) and not self._is_precomputed and not self._on_items:
            return self._scores_on_device(device, X)
        return self._scores_of_checked(self._check_inputs(to_numpy(X), reset=False))

    def _scores_of_checked(self, X) -> np.ndarray:
        """Raw scores of checked rows, in blocks."""
        if sparse.issparse(X) and not sparse.issparse(self.basis_.centers):
            X = X.toarray()  # the model was fitted on dense rows, whose scaling shifts zeros
        if isinstance(X, Items):
            return self._scores_of(X)
        blocks = row_slices(X.shape[0], 8 * X.shape[1], PREDICT_BYTES)
        return np.concatenate([self._scores_of(in_double(X[rows])) for rows in blocks or [slice(0, 0)]])

    def _scores_of(self, X) -> np.ndarray:
        """Raw scores of a block of checked rows."""
        scaled = X if self.scaling_ is None else self.scaling_(X)
        return self._basis_here.scores(scaled, self.coef_) + self.intercept_

    def _scores_on_device(self, device: Device, X) -> np.ndarray:
        """The same, computed on the device of the rows or the one that the user chose."""
        X = check_tensor(device.floats(X), self) if is_tensor(X) else device.put(self._check_inputs(X, reset=False))
        basis = on_device(self._basis_here, device).for_scores(self.coef_)
        X = basis.to_device(X)
        scaled = X if self.scaling_ is None else self.scaling_(X)
        return basis.scores(scaled, self.coef_).astype(np.float64, copy=False) + self.intercept_

    def _store_basis(self, basis: Basis, rows: Rows) -> None:
        """Store kernel and centres, without what only training needs."""
        self._multilabel = rows.is_multilabel
        if self._is_precomputed:
            basis = replace(basis, kernel=Precomputed())
        self.basis_ = replace(basis.detached(), workers=1)
        self.kernel_ = self._plain_kernel(self.basis_.kernel)
        self.width_ = self.kernel_.width
        centers = self.basis_.centers
        self.centers_ = self._decoded(centers if self.scaling_ is None else self.scaling_.inverse(centers))

    @property
    def _basis_here(self) -> Basis:
        """The basis with the number of threads of this process, which may differ from the one that fitted it."""
        return replace(self.basis_, workers=n_workers(self.n_jobs))

    def _decoded(self, rows):
        """Unscaled rows with the user's columns: categories instead of codes, and missing values."""
        return rows if self.columns_ is None else self.columns_.decoded(rows)

    def _plain_kernel(self, kernel: Kernel) -> Kernel:
        """The user's kernel; warns if it was indefinite and had to be projected."""
        self._forget("negative_share_")
        if not isinstance(kernel, ProjectedKernel):
            return kernel
        self.negative_share_ = kernel.negative_share
        kernel.warn()
        return kernel.kernel

    def _store(self, solved: Candidate, link, record: SearchRecord, rows: Rows) -> None:
        """Set the fitted attributes as NumPy arrays."""
        solution = solved.solution
        self._store_basis(solved.problem.basis, rows)
        self.ridge_, self.coef_, self.intercept_ = float(solution.ridge), solution.coef(), solution.intercept
        self.link_ = link
        self.search_results_ = record.columns()
        if solution.n_iter is not None:
            self.n_iter_ = solution.n_iter

    def _store_leave_one_out(self, held_out, data: Training) -> None:
        """Store the held-out scores of all rows of X; rows of weight zero were not fitted and get plain predictions."""
        if held_out is None or data.place is None:
            return
        scores, absent = held_out[data.place], np.flatnonzero(data.place < 0)
        if len(absent):
            scores[absent] = self._scores_of_checked(data.inputs[absent])
        self.loo_scores_ = scores[:, : len(self.classes_)]
        if self.link_.gives_probabilities:
            self.loo_proba_ = in_blocks(self.link_.probabilities, scores)

    def decision_function(self, X: Inputs) -> np.ndarray:
        """Score of each class; the largest is the predicted class.

        Log-odds for the calibrated link, clipped scores for ``"clip"``, and for ``"none"`` the scores divided by
        their sum, which may lie outside [0, 1].

        Returns
        -------
        ndarray of shape (n, n_classes), or (n,) for two classes: positive for the second one.
        """
        if is_source(X):
            return over_source(self, "decision_function", X)
        scores = self._scores(X)
        decision = in_blocks(self.link_.decision, scores)
        is_binary = len(self.classes_) == 2 and not self._multilabel
        return decision[:, 1] - decision[:, 0] if is_binary else decision

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Inputs) -> np.ndarray:
        """Probability of each class (rows sum to one), or of each tag of a multi-label problem.

        Returns
        -------
        float64 array of shape (n, n_classes), in the order of ``classes_``.
        """
        if is_source(X):
            return over_source(self, "predict_proba", X)
        scores = self._scores(X)
        return in_blocks(self.link_.probabilities, scores)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Inputs) -> np.ndarray:
        """Natural logarithms of the probabilities, for sums over rows and for log-losses.

        The calibrated softmax and the log-odds models (KLR, IVM) compute them directly, not from the probabilities, so
        they stay finite when a probability underflows to zero. ``link="clip"`` and ``"clip-parameters"`` can give
        probabilities of exactly zero, whose logarithm is −inf.

        Returns
        -------
        float64 array of shape (n, n_classes), in the order of ``classes_``.
        """
        if is_source(X):
            return over_source(self, "predict_log_proba", X)
        scores = self._scores(X)
        return in_blocks(self.link_.log_probabilities, scores)

    def predict(self, X: Inputs) -> np.ndarray:
        """The most probable class; for a multi-label problem, a 0/1 matrix of the tags with probability above 0.5."""
        check_is_fitted(self)
        if is_source(X):
            return over_source(self, "predict", X)
        has_proba = link_flag(self.link, "gives_probabilities")
        if self._multilabel:
            positive = self.predict_proba(X) > 0.5 if has_proba else self.decision_function(X) > 0
            return positive.astype(int)
        if not has_proba:
            scores = self._scores(X)
            return self.classes_[self.link_.decision(scores).argmax(axis=1)]
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def score(self, X: Inputs, y: Targets, sample_weight: ArrayLike | None = None) -> float:
        """The accuracy: the fraction of rows with the right class, or for multi-label problems with all tags right.

        Returns
        -------
        float; Dask collections are computed.
        """
        from sklearn.metrics import accuracy_score  # slow to import, rarely needed

        predicted, y, weight = computed(self.predict(X), y, sample_weight)
        return float(accuracy_score(y, predicted, sample_weight=weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = not self._is_precomputed
        # scikit-learn's checks expect multi-label probabilities strictly inside (0, 1); clipping links reach the ends
        tags.classifier_tags.multi_label = link_flag(self.link, "is_calibrated")
        return tags


def _with_small_indices(X):
    """CSR with 32-bit indices if they suffice: scikit-learn's sparse distances do not accept others."""
    X = sparse.csr_array(X)
    if X.indices.dtype == np.int64 and max(X.nnz, *X.shape) < np.iinfo(np.int32).max:
        X = sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    return X


def is_source(X) -> bool:
    """Whether X yields its rows chunk by chunk, or is a Dask collection."""
    return isinstance(X, Source) or is_dask(X)


def over_source(estimator, name: str, X):
    """Apply a method to all rows of a source: returns an array, or a Dask array for a Dask collection.

    Columns of a file are matched by name; those of a Dask frame must be in order, as with pandas.
    """
    check_is_fitted(estimator)
    if isinstance(X, Source):
        estimator = settled(estimator, X)
        parts = inputs(X, getattr(estimator, "feature_names_in_", None), estimator.columns_)
        return np.concatenate([getattr(estimator, name)(part) for part in parts])
    method = getattr(estimator, name)
    # a Dask frame has an empty pandas frame as metadata, on which scikit-learn can check the column names
    described = X._meta if hasattr(X, "columns") else X
    validate_data(estimator, described, reset=False, skip_check_array=True)
    if estimator.columns_ is not None and hasattr(X, "columns"):
        return X.map_partitions(method, meta=method(X._meta))
    rows = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    if len(rows.chunks[1]) > 1:
        rows = rows.rechunk({1: -1})
    few = method(np.zeros((1, rows.shape[1])).view(CheckedInputs))

    def of_block(block):
        chunk = Chunk(floats_of(block), None, None, 0)
        return method(check_chunk(chunk, "a partition of X", allow_nan=True).X.view(CheckedInputs))

    if few.ndim == 1:
        return rows.map_blocks(of_block, dtype=few.dtype, drop_axis=1)
    return rows.map_blocks(of_block, dtype=few.dtype, chunks=(rows.chunks[0], (few.shape[1],)))
