"""The least-squares probabilistic classifier."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from scipy import sparse

from ..basis import Basis, Centers, all_centers, class_centers, sample_rows, subset_centers
from ..data.rows import Rows
from ..kernels import Kernel, Precomputed, as_kernels
from ..least_squares import ClassSimilarity, LeastSquares
from ..links import fit_link, in_blocks
from ..progress import Progress
from ..scaling import fit_scaling
from ..search import FEWEST_CENTERS, Candidate, Search, subsample, width_candidates
from ..selection import RIDGES, CalibratedLogLoss, SearchRecord, SquaredLoss, TimesMedian
from ..sweep import n_workers
from ._base import KernelClassifier, check_choice, check_link

#: With at most this many distinct rows, centers="auto" takes them all; then it grows by the twelfth root, up to
#: the last number (measured in benchmarks/centers.py).
ALL_ROWS, MOST_CENTERS, GROWTH = 2000, 4000, 1 / 12
#: A grid of widths that the user gives is searched on at most this many distinct rows.
GRID_ROWS = 2000
#: Rows whose k(x, x) tell the size of a kernel without a width.
UNIT_ROWS = 100


class LSPC(KernelClassifier):
    r"""Least-squares probabilistic classifier.

    Fits the class posteriors by regularised least squares in a kernel basis,

    .. math:: \min_\theta \tfrac{1}{2n}\|\Phi\theta - Y\|^2 + \tfrac{\lambda}{2}\,\theta^\top P\,\theta,
        \qquad (H + \lambda P)\,\theta = h,

    with :math:`H = \Phi^\top\Phi/n`, :math:`h = \Phi^\top Y/n` (2010 Eq. 2): one linear solve. Exact leave-one-out
    scores, which come with the solution, choose kernel, width and ridge and calibrate the probabilities.

    Parameters
    ----------
    kernel : {"auto", "gaussian", "laplacian", "matern12", "matern32", "matern52", "linear", "polynomial", \
"precomputed"}, callable or Kernel, default="auto"
        ``"auto"`` lets leave-one-out choose between the Gaussian and the Laplacian. A callable takes ``(X, Z)``
        and returns the (n, b) kernel values.
    width : "auto", "median", float, sequence of floats or TimesMedian, default="auto"
        Kernel width in scaled columns: searched, set by the median heuristic, given, or chosen among those given.
    ridge : "auto", float or sequence of floats, default="auto"
        The λ above.
    centers : "auto", "all", "class", ("class", int), int or array of shape (b, d), default="auto"
        Basis points: all distinct rows (2010 Eq. 5), every class's own (Eq. 7) or so many of them (Sec. 4), a
        subset spread over the classes, or given points. ``"auto"`` takes all up to 2,000 rows, then a slowly
        growing subset.
    link : {"auto", "softmax", "clip", "clip-parameters", "none"}, default="auto"
        From scores to probabilities. ``"auto"`` is the softmax calibrated on leave-one-out scores; ``"clip"`` is
        LSPC-new (2011 Eq. 6), ``"clip-parameters"`` rounds coefficients instead (2011 Eq. 4). ``"none"`` leaves
        scores that may lie outside [0, 1]: then there is a ``decision_function`` but no ``predict_proba``.
    penalty : {"auto", "rkhs", "parameters"}, default="auto"
        P is the kernel matrix of the centres, or the identity as in the papers. ``"auto"`` is ``"rkhs"``, and
        ``"parameters"`` where the link rounds parameters.
    selection : {"loo", "cv"}, default="loo"
        How candidates are compared: exact leave-one-out, or cross-validation by subtracting a fold's moments.
    folds : int, default=5
        Folds of ``selection="cv"``.
    scaling : {"auto", "robust", "standard", None}, default="auto"
        How columns are scaled inside. ``"auto"`` is ``"robust"`` and, where leave-one-out says that it helps,
        weights columns by how much the model changes along them.
    solver : {"auto", "cholesky", "eigen"}, default="auto"
        How the system is solved. ``"auto"`` uses the dual form where all rows are centres under the RKHS penalty,
        one eigendecomposition for many ridges of the papers' penalty, and Cholesky factors otherwise.
    class_similarity : array of shape (n_classes, n_classes), optional
        Positive semi-definite kernel L(y, y') over the classes (2010 Eq. 4); None is the identity.
    class_weight : dict, "balanced" or None, default=None
        Factors for the weights of rows by class. They move the prior that the probabilities refer to.
    loo : {"auto", True}, default="auto"
        Whether ``loo_scores_`` is computed also where neither the search nor the link needs it.
    n_jobs : int, optional
        Threads for distances and exponentials; None for all cores.
    verbose : int, default=0
        Show a progress bar (needs ``kproba[progress]``).
    random_state : int, RandomState or None, default=None
        Seed of subsets of rows and centres.

    Attributes
    ----------
    classes_ : array of classes, or of tag names or numbers.
    kernel_, width_, ridge_, penalty_ : what was chosen.
    centers_ : array (b, d), or column numbers for a precomputed kernel.
    coef_ : array (b, n_classes); multi-label models have a last column for the constant one.
    loo_scores_, loo_proba_ : arrays (n, n_classes): what the model says of each training row without that row.
    search_results_ : dict of columns stage, kernel, width, ridge, rows and loss: every candidate tried.
    scaling_, basis_, link_ : the fitted parts.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    References
    ----------
    M. Sugiyama (2010), Superfast-trainable multi-class probabilistic classifier by least-squares posterior
    fitting; M. Yamada et al. (2011), Improving the accuracy of least-squares probabilistic classifiers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kproba import LSPC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LSPC(random_state=0).fit(X, y)
    >>> clf.predict_proba(X[:1]).round(2)
    array([[1., 0., 0.]])
    >>> bool((clf.loo_proba_.argmax(axis=1) == y).mean() > 0.93)
    True
    """

    def __init__(
        self,
        kernel="auto",
        width="auto",
        ridge="auto",
        centers="auto",
        link="auto",
        penalty="auto",
        selection="loo",
        folds=5,
        scaling="auto",
        solver="auto",
        class_similarity=None,
        class_weight=None,
        loo="auto",
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.kernel = kernel
        self.width = width
        self.ridge = ridge
        self.centers = centers
        self.link = link
        self.penalty = penalty
        self.selection = selection
        self.folds = folds
        self.scaling = scaling
        self.solver = solver
        self.class_similarity = class_similarity
        self.class_weight = class_weight
        self.loo = loo
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Fit the classifier.

        Parameters
        ----------
        X : array, frame or CSR matrix of shape (n, d)
        y : array of shape (n,), or a 0/1 matrix (n, n_tags) for a multi-label problem
        sample_weight : array of shape (n,), optional
            Weight of each row. An integer weight equals so many copies of the row.

        Returns
        -------
        self
        """
        kernels = self._check_parameters()
        X = self._check_inputs(X, reset=True)
        rows, place = self._read_rows(X, y, sample_weight)
        self._check_against(rows, n_given=np.count_nonzero(place >= 0))
        seed, record = self._seed(), SearchRecord()
        if self._is_precomputed:
            kernels = [Precomputed(training=X)]
        scaling = None if self._is_precomputed else fit_scaling(self.scaling, rows)
        scaled = _scaled(rows, scaling)
        with Progress(self.verbose, title="LSPC") as progress:
            density = self._density(rows)
            search = Search(
                pose=self._pose(scaling, density, seed),
                judge=self._judge(rows),
                ridges=self._ridges(kernels, scaled, seed),
                any_ridge=isinstance(self.ridge, str),
                density=density,
                workers=n_workers(self.n_jobs),
                seed=seed,
                record=record,
                progress=progress,
            )
            best, self.scaling_ = self._choose(search, kernels, scaled, scaling)
            if self.scaling_ is not scaling:
                scaled = _scaled(rows, self.scaling_)
            best = self._settle(search, best, scaled)
        self._store(best, rows, record)
        self._store_leave_one_out(best.solution.held_out, X, place)
        return self

    def _pose(self, scaling, density: float, seed: int):
        """How rows and a kernel become a least-squares problem, under this estimator's parameters."""
        workers, similarity = n_workers(self.n_jobs), self._similarity()
        given = None if isinstance(self.centers, str | Integral | tuple) else self._given_centers(scaling)

        def pose(rows: Rows, kernel: Kernel) -> LeastSquares:
            centers = Centers(given) if given is not None else self._choose_centers(rows, kernel, density, seed)
            basis = Basis(kernel, *centers, workers=workers)
            return LeastSquares(rows, basis, self._is_rkhs(), similarity, self.solver, self.link == "clip-parameters")

        return pose

    def _is_rkhs(self) -> bool:
        """Rounding coefficients makes sense where the coefficients themselves are penalised, as in the papers."""
        return self.penalty == "rkhs" or (self.penalty == "auto" and self.link != "clip-parameters")

    def _choose_centers(self, rows: Rows, kernel: Kernel, density: float, seed: int) -> Centers:
        """Centres of all rows, or of a sample of them: as many to the row there as in the whole problem."""
        if isinstance(self.centers, tuple):
            return class_centers(rows, kernel, self.centers[1], seed)
        if self.centers == "class":
            return class_centers(rows, kernel)
        if self.centers == "all":
            return all_centers(rows, kernel)
        b = max(round(density * rows.n_distinct), FEWEST_CENTERS)
        most = self.centers if isinstance(self.centers, Integral) else b
        return subset_centers(rows, kernel, min(b, int(most)), seed)

    def _density(self, rows: Rows) -> float:
        """Centres to the distinct row."""
        n = rows.n_distinct
        if isinstance(self.centers, Integral):
            return min(1.0, int(self.centers) / n)
        if isinstance(self.centers, str):
            return auto_centers(n) / n if self.centers == "auto" else 1.0
        return 0.2  # given points, or some of each class: not all rows are centres

    def _choose(self, search: Search, kernels: list[Kernel], rows: Rows, scaling):
        """The best kernel, width and ridge, perhaps on some of the scaled rows, and the scaling that goes with them."""
        widths = TimesMedian() if isinstance(self.width, str) and self.width == "auto" else self.width
        widths = TimesMedian((1.0,)) if isinstance(widths, str) else widths
        candidates = width_candidates(kernels, widths, rows, search.seed)
        if len(candidates) == 1 and len(search.ridges) == 1:
            return candidates[0], scaling
        if self.selection == "cv":
            return search.by_folds(subsample(rows, GRID_ROWS, search.seed), candidates, int(self.folds)), scaling
        if self.width is widths or len(candidates) == 1:
            return search.grid(subsample(rows, GRID_ROWS, search.seed), candidates)[0], scaling
        given = not isinstance(self.centers, str | Integral | tuple)
        relevance = self.scaling == "auto" and not given and not rows.is_sparse
        return search.staged(rows, candidates, scaling, relevance)

    def _settle(self, search: Search, best: Candidate | Kernel, rows: Rows) -> Candidate:
        """The chosen kernel and width on all rows, with its ridge."""
        if isinstance(best, Kernel):
            return self._only(search, search.pose(rows, best), search.ridges[0])
        if len(best.problem.rows) == len(rows) and best.solution.held_out is not None:
            return best
        problem = search.pose(rows, best.kernel)
        if self.selection == "cv":
            return self._only(search, problem, best.solution.ridge)
        if not search.any_ridge:
            return search.grid(rows, [best.kernel], "ridge")[0]
        start = best.solution.ridge * np.sqrt(best.problem.rows.total_weight / rows.total_weight)
        climbed = search.climb(problem, start)
        if len(climbed.solution.held_out) == len(rows):
            return climbed
        return self._only(search, problem, climbed.solution.ridge)

    def _only(self, search: Search, problem: LeastSquares, ridge: float) -> Candidate:
        """One ridge and no comparison; leave-one-out only if somebody needs it."""
        wanted = self.loo != "auto" or self.link in ("auto", "softmax") or len(search.record.entries) > 0
        (solution,) = problem.path([ridge], loo=wanted)
        return Candidate(np.nan, problem.basis.kernel, solution, problem)

    def _store(self, best: Candidate, rows: Rows, record: SearchRecord) -> None:
        """Keep what prediction needs and what was learnt on the way, as NumPy arrays."""
        basis, solution = best.problem.basis, best.solution
        self._multilabel = rows.is_multilabel
        self.kernel_ = Precomputed() if self._is_precomputed else best.kernel
        self.width_, self.ridge_ = best.kernel.width, float(solution.ridge)
        self.penalty_ = "rkhs" if best.problem.rkhs else "parameters"
        self.basis_ = Basis(self.kernel_, basis.centers, basis.owner, workers=basis.workers)
        self.coef_ = solution.coef()
        self.centers_ = basis.centers if self.scaling_ is None else self.scaling_.inverse(basis.centers)
        self.link_ = fit_link(self.link, solution.held_out, rows)
        self.search_results_ = record.columns()

    def _store_leave_one_out(self, held_out, X, place: np.ndarray) -> None:
        """Held-out scores of the rows as they were given; those of weight zero took no part and get the model's."""
        if held_out is None:
            return
        scores, absent = held_out[place], np.flatnonzero(place < 0)
        if len(absent):
            scores[absent] = self._scores(X[absent])
        self.loo_scores_ = scores[:, : len(self.classes_)]
        if self.link != "none":
            self.loo_proba_ = in_blocks(self.link_.probabilities, scores)

    def _judge(self, rows: Rows):
        """The loss that compares candidates: log-loss for the calibrated link, squared error for the papers'."""
        if self.link in ("auto", "softmax"):
            return CalibratedLogLoss()
        if self.link == "none":
            return SquaredLoss(lambda scores: scores[:, : rows.n_classes])
        return SquaredLoss(fit_link(self.link, None, rows).probabilities)

    def _ridges(self, kernels: list[Kernel], rows: Rows, seed: int) -> list[float]:
        """The user's ridges, or the default ones in units of the kernel, which is one where k(x, x) = 1."""
        if not isinstance(self.ridge, str):
            return [float(ridge) for ridge in np.atleast_1d(self.ridge)]
        if kernels[0].has_width:
            return list(RIDGES)
        sample = rows.take(sample_rows(rows, UNIT_ROWS, seed))
        points = sample.number if self._is_precomputed else sample.X
        size = float(np.abs(np.diagonal(kernels[0](sample.X, points))).mean())
        unit = size if self._is_rkhs() else size**2
        return [ridge * (unit if unit > 0 else 1.0) for ridge in RIDGES]

    def _similarity(self) -> ClassSimilarity | None:
        return None if self.class_similarity is None else ClassSimilarity.of(np.asarray(self.class_similarity, float))

    def _given_centers(self, scaling):
        points = self.centers
        if self._is_precomputed:
            return np.asarray(points)
        points = sparse.csr_array(points) if sparse.issparse(points) else np.asarray(points, dtype=np.float64)
        return points if scaling is None else scaling(points)

    def _check_parameters(self) -> list[Kernel]:
        """Refuse what has no meaning before any work is done; the kernel candidates otherwise."""
        kernels = as_kernels(self.kernel)
        check_link(self.link)
        check_choice("penalty", self.penalty, ("auto", "rkhs", "parameters"))
        check_choice("selection", self.selection, ("loo", "cv"))
        check_choice("solver", self.solver, ("auto", "cholesky", "eigen"))
        check_choice("scaling", self.scaling, ("auto", "standard", "robust", None))
        if not (isinstance(self.loo, bool | np.bool_) and self.loo) and self.loo != "auto":
            raise ValueError(f"loo={self.loo!r} is not known; use 'auto' or True.")
        if not isinstance(self.width, TimesMedian):
            _check_positive("width", self.width, words=("auto", "median"))
        _check_positive("ridge", self.ridge, words=("auto",))
        if not isinstance(self.folds, int | np.integer) or isinstance(self.folds, bool) or self.folds < 2:
            raise ValueError(f"folds={self.folds!r}: cross-validation needs a whole number of at least 2 folds.")
        if self.link == "clip-parameters" and self.class_similarity is not None:
            raise ValueError("link='clip-parameters' cannot be combined with class_similarity; use link='clip'.")
        _check_center_mode(self.centers)
        return kernels

    def _check_against(self, rows: Rows, n_given: int) -> None:
        """Refuse parameters that do not fit the data."""
        if isinstance(self.centers, int | np.integer) and self.centers > n_given:
            raise ValueError(
                f"centers={self.centers} is more than the {n_given} rows of X that have a positive weight; "
                f"use centers='all' or a smaller number."
            )
        if not isinstance(self.centers, str | Integral | tuple):
            self._check_given_centers(rows)
        if self.class_similarity is not None:
            _check_similarity(np.asarray(self.class_similarity), rows, self.centers)

    def _check_given_centers(self, rows: Rows) -> None:
        shape, d = np.shape(self.centers), rows.X.shape[1]
        if not sparse.issparse(self.centers) and np.asarray(self.centers).dtype.kind not in "fiub":
            raise TypeError("centers: given points must be numbers, one row for every centre.")
        if self._is_precomputed:
            index = np.asarray(self.centers)
            if index.ndim != 1 or index.dtype.kind not in "iu" or not len(index) or index.min() < 0 or index.max() >= d:
                raise ValueError(
                    f"centers: with kernel='precomputed' give column numbers below {d}, got {self.centers!r}."
                )
            return
        if len(shape) != 2 or shape[1] != d or not shape[0]:
            raise ValueError(f"centers has shape {shape}; given points must have shape (b, {d}), the columns of X.")
        values = self.centers.data if sparse.issparse(self.centers) else np.asarray(self.centers, dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError("centers contains NaN or infinity; every coordinate must be a finite number.")


def auto_centers(n: int) -> int:
    """Centres of ``centers="auto"`` for n rows.

    >>> [auto_centers(n) for n in (500, 2_000, 16_000, 10**6)]
    [500, 2000, 2378, 3357]
    """
    return n if n <= ALL_ROWS else min(MOST_CENTERS, round(ALL_ROWS * (n / ALL_ROWS) ** GROWTH))


def _scaled(rows: Rows, scaling) -> Rows:
    return rows if scaling is None else rows.replace_inputs(scaling(rows.X))


def _check_positive(name: str, value, words) -> None:
    """A positive number, a non-empty sequence of them, or one of the words."""
    allowed = f"use a positive number, several of them, or {' or '.join(map(repr, words))}."
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f"{name}={value!r} is not known; {allowed}")
        return
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}; {allowed}") from None
    if (
        numbers.ndim > 1
        or not numbers.size
        or isinstance(value, bool)
        or not (np.isfinite(numbers) & (numbers > 0)).all()
    ):
        raise ValueError(f"{name}={value!r} must be positive and finite; {allowed}")


def _check_center_mode(centers) -> None:
    known = "'auto', 'all', 'class', ('class', number), a whole number, or an array of points"
    if isinstance(centers, str):
        if centers not in ("auto", "all", "class"):
            raise ValueError(f"centers={centers!r} is not known; use {known}.")
    elif (
        centers is None
        or isinstance(centers, bool)
        or (isinstance(centers, Real) and not isinstance(centers, Integral))
    ):
        raise TypeError(f"centers must be {known}; got {centers!r}.")
    elif isinstance(centers, Integral):
        if int(centers) < 1:
            raise ValueError(f"centers={centers}: at least one centre is needed.")
    elif isinstance(centers, tuple) and (
        len(centers) != 2 or centers[0] != "class" or not isinstance(centers[1], Integral) or centers[1] < 1
    ):
        raise ValueError(f"centers={centers!r} is not known; use {known}.")


def _check_similarity(L: np.ndarray, rows: Rows, centers) -> None:
    c = rows.n_classes
    if rows.is_multilabel:
        raise ValueError("class_similarity has no meaning for a multi-label y: tags are solved one by one.")
    if (isinstance(centers, str) and centers == "class") or isinstance(centers, tuple):
        raise ValueError("class_similarity needs centres that all classes share; use another value of centers.")
    if L.shape != (c, c):
        raise ValueError(f"class_similarity has shape {L.shape}; {c} classes need shape ({c}, {c}).")
    if not np.isfinite(L).all() or not np.allclose(L, L.T, atol=1e-10):
        raise ValueError("class_similarity must be a finite symmetric matrix.")
    smallest = float(np.linalg.eigvalsh(L)[0])
    if not np.any(L):
        raise ValueError("class_similarity is zero everywhere; no class could ever get a score.")
    if smallest < -1e-10 * np.abs(L).max():
        raise ValueError(f"class_similarity must be positive semi-definite; its smallest eigenvalue is {smallest:.3g}.")
