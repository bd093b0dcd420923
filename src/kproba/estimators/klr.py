"""Kernel logistic regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from ..basis.basis import Basis
from ..data.rows import Rows
from ..data.sampling import subsample
from ..kernels import Kernel
from ..links import Sigmoid, Softmax
from ..problems.likelihood import KEEP_BYTES, ROWS_TO_THE_CENTER, SOLVERS, Likelihood
from ..problems.missing_tags import least_squares
from ..problems.streamed_likelihood import StreamedLikelihood
from ..search.candidates import Candidate
from ..search.losses import CalibratedLogLoss, LogLoss
from ..search.staged import Search
from ..search.widths import RIDGES
from ..typing import CentersLike, ClassWeight, DeviceLike, KernelLike, RandomState, RidgeLike, ScalingName, WidthLike
from ..validation import check_count, check_fraction
from ._searched import GRID_ROWS, SearchedClassifier

#: Decides on how many rows widths are compared: about a fifth of the operations of one leave-one-out there.
SEARCH_FLOPS = 1e9
#: Multiples of the width that is best for least squares; the likelihood often wants a wider kernel.
WIDTH_FACTORS = (1.0, 2.0)


class KernelLogisticRegression(SearchedClassifier):
    r"""Kernel logistic regression.

    Fits the class posteriors as the softmax of kernel expansions by maximum penalised likelihood,

    .. math:: \min_{\theta, o} \frac{1}{n}\sum_i \Bigl(\log\sum_y e^{f_y(x_i)} - f_{y_i}(x_i)\Bigr)
        + \frac{\lambda}{2} \sum_y \theta_y^\top K \theta_y, \qquad f_y(x) = o_y + \sum_l \theta_{ly} k(x, z_l)

    (2001 Eq. 9, textbook Eq. 28.1). Approximate leave-one-out scores, one Newton step away from the solution, choose
    kernel, width and ridge.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="auto"
        ``"auto"`` lets leave-one-out choose between the Gaussian and the Laplacian. A callable takes ``(X, Z)``
        and returns the (n, b) kernel values.
        Names are ``"auto"``, ``"gaussian"``, ``"laplacian"``, ``"matern12"``, ``"matern32"``, ``"matern52"``,
        ``"linear"``, ``"polynomial"``, ``"precomputed"``; for histograms ``"chi2"`` and ``"intersection"``; for lists
        of sequences, time series and strings ``"hidden-markov"``, ``"alignment"`` and ``"spectrum"``.
    width : "auto", "median", float, sequence of floats or TimesMedian, default="auto"
        Kernel width in scaled columns: searched, set by the median heuristic, given, or chosen among those given.
    ridge : "auto", float or sequence of floats, default="auto"
        The λ above. The λ of 2001, which belongs to the sum over the rows, is nλ, and for two classes nλ/2. The n of
        all tags is that of all rows, also of tags that are missing in some.
    centers : "auto", "all", "class", ("class", int), int or array of shape (b, d), default="auto"
        Basis points: all distinct rows (the full model), every class's own or so many of them, a subset spread over
        the classes, or given points (the reduced model). ``"auto"`` takes all up to 2,000 rows, then a slowly
        growing subset.
    solver : {"auto", "newton", "lbfgs", "sgd"}, default="auto"
        Newton's method (2001 Eq. 5; its systems by conjugate gradients where they are large), limited-memory BFGS
        (2010 Sec. 3) or stochastic gradients (textbook Fig. 28.1), all from the least-squares solution. ``"auto"``
        is ``"newton"``, the one for sources of rows: there a step is a pass over all rows, and its Hessian a sample's.
    tol : float, default=1e-4
        A fit has converged when less than this share of the objective is left to gain.
    max_iter : int, default=100
        Newton or quasi-Newton steps, or passes over all rows, at most; then a warning says what to do.
    selection : {"loo", "cv"}, default="loo"
        How candidates are compared: approximate leave-one-out, or cross-validation.
    folds : int, default=5
        Folds of ``selection="cv"``.
    scaling : {"auto", "robust", "standard", None}, default="auto"
        How columns are scaled inside. ``"auto"`` is ``"robust"`` and, where leave-one-out says that it helps,
        weights columns by how much the model changes along them.
    class_weight : dict, "balanced" or None, default=None
        Factors for the weights of rows by class. They move the prior that the probabilities refer to.
    loo : {"auto", True}, default="auto"
        Whether ``loo_scores_`` is computed also where the search does not need it.
    device : None, "cpu", "cuda", "cuda:<number>", default=None
        Where passes over more than 50,000 rows and predictions are computed; needs ``kproba[torch]``. None is NumPy on
        the CPU, and for tensors of PyTorch or CuPy wherever they lie. The model itself is always NumPy.
    n_jobs : int, optional
        Threads. None uses all cores, but no more than BLAS may use, and one in a worker thread of joblib; -1 uses all
        cores in any case.
    verbose : int, default=0
        Show a progress bar (needs ``kproba[progress]``).
    random_state : int, RandomState or None, default=None
        Seed of subsets of rows and centres, and of the order of rows in stochastic gradients.

    Attributes
    ----------
    classes_ : array of classes, or of tag names or numbers.
    kernel_, width_, ridge_ : what was chosen.
    centers_ : array (b, d), or column numbers for a precomputed kernel.
    coef_, intercept_ : arrays (b, n_classes) and (n_classes,); scores of a row sum to zero over the classes.
    loo_scores_, loo_proba_ : arrays (n, n_classes): what the model says of each training row without that row, to
        first order. Above 50,000 rows only with ``loo=True``.
    n_iter_ : int: the steps of the solver; from a source of rows, its passes.
    search_results_ : dict of columns stage, kernel, width, ridge, rows and loss: every candidate tried.
    scaling_, basis_, link_ : the fitted parts.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    References
    ----------
    J. Zhu, T. Hastie (2001), Kernel logistic regression and the import vector machine; G. C. Cawley, N. L. C. Talbot
    (2008), Efficient approximate leave-one-out cross-validation for kernel logistic regression.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kproba import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = KernelLogisticRegression(kernel="gaussian", width=2.0, ridge=1e-3).fit(X, y)
    >>> clf.predict_proba(X[:1]).round(2)
    array([[0.98, 0.02, 0.  ]])
    """

    _iterates = True
    _ridge_grid = tuple(10.0**e for e in range(-1, -9, -1))
    _adds_up = False
    _solvers = ("auto", *SOLVERS)

    def __init__(
        self,
        kernel: KernelLike = "auto",
        width: WidthLike = "auto",
        ridge: RidgeLike = "auto",
        centers: CentersLike = "auto",
        solver: Literal["auto", "newton", "lbfgs", "sgd"] | str = "auto",
        tol: float = 1e-4,
        max_iter: int = 100,
        selection: Literal["loo", "cv"] | str = "loo",
        folds: int = 5,
        scaling: ScalingName = "auto",
        class_weight: ClassWeight = None,
        loo: Literal["auto", True] | str | bool = "auto",
        device: DeviceLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.ridge = ridge
        self.centers = centers
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.selection = selection
        self.folds = folds
        self.scaling = scaling
        self.class_weight = class_weight
        self.loo = loo
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _problem(self, rows: Rows, basis: Basis, seed: int) -> Likelihood:
        solver = "newton" if self.solver == "auto" else self.solver
        return Likelihood(rows, basis, solver, float(self.tol), int(self.max_iter), seed)

    def _search_options(self, rows: Rows) -> dict:
        return {"every_ridge_costs": True, "patience": 1}

    def _grid_rows(self, rows: Rows) -> int:
        """Leave-one-out among c classes takes some cn³ operations: fewer rows for more classes."""
        return int(min(GRID_ROWS, (SEARCH_FLOPS / rows.n_classes) ** (1 / 3)))

    def _staged(self, search: Search, rows: Rows, kernels: list[Kernel], scaling, relevance: bool):
        """Kernel, width and relevance by least squares; then the likelihood has its say on width and ridge.

        The least-squares problem has the same basis, and its leave-one-out is exact and far cheaper.
        """
        pose = self._pose(
            scaling, search.density, search.seed, lambda rows, basis, seed: least_squares(rows, basis, True)
        )
        screening = Search(
            pose,
            CalibratedLogLoss(),
            RIDGES,
            search.seed,
            search.record,
            search.progress,
            search.workers,
            search.density,
        )
        found, weighted = screening.staged(rows, kernels, scaling, relevance)
        if weighted is not scaling:
            ratio = weighted.relevance / scaling.relevance
            rows = rows.replace_inputs(rows.X * ratio.astype(rows.X.dtype))
        few = subsample(rows, self._grid_rows(rows), search.seed)
        widths = [found.kernel.with_width(found.kernel.width * factor) for factor in WIDTH_FACTORS]
        return search.grid(few, widths, "likelihood")[0], weighted

    def _ridge_for_more_rows(self, ridge: float, few: float, many: float) -> float:
        """The penalty of the sum, nλ, is a prior for the scores: it stays what it is."""
        return ridge * few / many

    def _judge(self, rows: Rows):
        return LogLoss()

    def _fit_link(self, held_out, rows: Rows):
        return Sigmoid() if rows.is_multilabel else Softmax()

    def _of_all_rows(self, problem, everything, ridge: float) -> StreamedLikelihood:
        """The gradients of all rows beside as much of the sample as has its features kept in memory."""
        n_columns = problem.basis.n_centers + 1
        kept = max(KEEP_BYTES // (8 * n_columns), ROWS_TO_THE_CENTER * n_columns)
        sample = replace(problem, rows=subsample(problem.rows, kept, problem.seed))
        return StreamedLikelihood(sample, everything, everything.encoding(self.scaling_), self.device_)

    def _settle(self, search: Search, best: Candidate | Kernel, rows: Rows, whole=None) -> Candidate:
        if whole is None or isinstance(best, Kernel) or self.selection == "cv":
            return super()._settle(search, best, rows, whole)
        problem = whole(best.kernel, best.solution.ridge)
        return self._only(search, problem, self._ridge_by_sample(search, best, problem))

    def _ridge_by_sample(self, search: Search, best: Candidate, problem: StreamedLikelihood) -> float:
        """The ridge of all rows, from the best on the sample: on all of them, each would cost several passes."""
        few, some, many = (each.total_weight for each in (best.problem.rows, problem.rows, problem))
        if search.any_ridge:
            start = self._ridge_for_more_rows(best.solution.ridge, few, some)
            return self._ridge_for_more_rows(search.climb(problem.sample, start).solution.ridge, some, many)
        wanted = self._ridge_for_more_rows(search.best_ridge(problem.sample).solution.ridge, some, many)
        return min(search.ridges, key=lambda given: abs(np.log(given / wanted)))

    def _refuse_for_source(self) -> None:
        super()._refuse_for_source()
        if self.solver not in ("auto", "newton"):
            raise ValueError(
                f"solver={self.solver!r} needs all rows in memory; a source of rows is fitted by solver='auto'."
            )

    def _check_parameters(self):
        check_fraction("tol", self.tol)
        check_count("max_iter", self.max_iter)
        return super()._check_parameters()
