"""Kernel logistic regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..basis.basis import Basis
from ..data.rows import Rows
from ..data.sampling import subsample
from ..kernels import Kernel
from ..links import Sigmoid, Softmax
from ..papers.plain_sgd import PlainSGD
from ..problems.device_likelihood import design_on
from ..problems.likelihood import KEEP_BYTES, ROWS_PER_CENTER, Likelihood
from ..problems.missing_tags import least_squares
from ..problems.streamed_likelihood import StreamedLikelihood
from ..progress import Progress
from ..search.candidates import Candidate, SearchRecord
from ..search.choose import GRID_ROWS, Prepared, choose, ridge_candidates
from ..search.final_solve import FinalSolve, keep_total_penalty
from ..search.folds import leave_groups_out
from ..search.losses import CalibratedLogLoss, LogLoss
from ..search.pose import CenterChoice, Pose, is_given
from ..search.staged import Search
from ..search.widths import RIDGES as RIDGES_OF_SQUARES
from ..solvers.registry import LIKELIHOOD
from ..threads import n_workers
from ..typing import (
    CategoricalFeatures,
    CentersLike,
    ClassWeight,
    DeviceLike,
    Inputs,
    KernelLike,
    PathLike,
    RandomState,
    RidgeLike,
    ScalingName,
    Targets,
    WidthLike,
)
from ..validation import SMALLEST, check_choice, check_count, check_flag, check_fraction, look_up
from ._learning import store_learnt
from ._parameters import CenterClassifier, check_search_parameters, documented_fit
from ._prepared import prepare
from ._reading import Training, read

#: Solvers that only the papers need, and all names that the parameter ``solver`` takes.
PAPERS = {"plain-sgd": PlainSGD()}
SOLVERS = {**LIKELIHOOD, **PAPERS}
#: Candidate ridges.
RIDGES = tuple(10.0**e for e in range(-1, -9, -1))
#: Limits the number of rows on which widths are compared: about a fifth of the operations of one leave-one-out.
SEARCH_FLOPS = 1e9
#: For a source of rows, the sample that chooses the ridge and gives the Hessian has so many rows, so many per centre,
#: or this share of all rows, whichever is most. A smaller sample would need more passes, and a larger one costs more.
SAMPLE_ROWS, SAMPLE_PER_CENTER, SAMPLE_SHARE = 2000, 4, 0.15
#: Multiples of the best width for least squares; the likelihood often prefers a wider kernel.
WIDTH_FACTORS = (1.0, 2.0)


class KernelLogisticRegression(CenterClassifier):
    r"""Kernel logistic regression.

    Fits the class posteriors as the softmax of kernel expansions by maximum penalised likelihood,

    .. math:: \min_{\theta, o} \frac{1}{n}\sum_i \Bigl(\log\sum_y e^{f_y(x_i)} - f_{y_i}(x_i)\Bigr)
        + \frac{\lambda}{2} \sum_y \theta_y^\top K \theta_y, \qquad f_y(x) = o_y + \sum_l \theta_{ly} k(x, z_l)

    (2001 Eq. 9, textbook Eq. 28.1). Approximate leave-one-out scores, one Newton step away from the solution, select
    the kernel, width and ridge. The papers have variants of this model: ``penalty``, ``fit_intercept`` and ``coding``
    choose between them.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="auto"
        ``"auto"`` learns a weight for each column, the widths and a mixture of Laplacian, Gaussian, additive and pairs
        kernels by the gradient of leave-one-out, if there are at least 100 distinct dense rows and ``width="auto"``;
        otherwise it selects the Gaussian or the Laplacian kernel. A callable takes ``(X, Z)`` and returns the (n, b)
        kernel matrix.
        The names are ``"auto"``, ``"gaussian"``, ``"laplacian"``, ``"matern12"``, ``"matern32"``, ``"matern52"``,
        ``"additive"``, ``"pairs"``, ``"linear"``, ``"polynomial"``; for kernel matrices ``"precomputed"``; for
        histograms ``"chi2"`` and ``"intersection"``; for sequences of frames ``"hidden-markov"``; for time series
        ``"alignment"``; for strings, lists of words and sets ``"spectrum"``.
    width : "auto", "median", float, sequence of floats or TimesMedian, default="auto"
        Kernel width in units of the scaled columns: searched, set by the median heuristic, fixed, or selected from
        a list.
    ridge : "auto", float or sequence of floats, default="auto"
        The regularisation strength λ above. The λ of 2001, which multiplies a sum over the rows, is nλ, and nλ/2 for
        two classes unless ``coding="base-class"``. For a multi-label y, n is the number of all rows, even for tags that
        are missing in some. Zero is maximum likelihood (textbook Sec. 28.1). It has no solution if the classes are
        separable in the basis, as they are with all rows as centres of a narrow kernel: the fit then stops once the
        mean log-loss is below ``tol``, with a ``ConvergenceWarning``.
    centers : "auto", "all", "class", ("class", int), int or array of shape (b, d), default="auto"
        Basis points: all distinct rows (the full model); for each class its own rows (``"class"``) or a given number
        of them (``("class", int)``); a subset of the given size spread over the classes, or your own points (the
        reduced model). ``"auto"`` uses all rows up to 2,000, and beyond that a subset that grows slowly with n.
    penalty : {"rkhs", "parameters"}, default="rkhs"
        What λ/2 multiplies: the squared norms of the functions, :math:`\sum_y \theta_y^\top K \theta_y` (2001), or
        those of the coefficients, :math:`\sum_y \theta_y^\top \theta_y` (2010).
    fit_intercept : bool, default=True
        Whether the model has the unpenalised constants o. Without them (2010, textbook), the scores of a kernel that
        vanishes far from all centres vanish there too, and each of c classes gets the probability 1/c.
    coding : {"symmetric", "base-class"}, default="symmetric"
        ``"symmetric"`` treats all classes alike: the scores of a row sum to zero over the classes. ``"base-class"``
        sets those of the last class to zero (2001 Eqs 7 to 9), so that the others are log-odds against it. The models
        are the same, but the penalty leaves the last class out. For tags and two classes, it is that of the log-odds.
    solver : {"auto", "newton", "lbfgs", "sgd", "plain-sgd"} or function, default="auto"
        Newton's method (2001 Eq. 5; large systems by conjugate gradients), limited-memory BFGS (2010 Sec. 3) or
        stochastic gradients with reduced variance, all started from the least-squares solution. ``"plain-sgd"`` is
        textbook Fig. 28.1 to the letter, for study: from a random start it takes ``max_iter`` · n steps of one row
        each. ``"auto"`` is ``"newton"``, the only solver for sources of rows: there each step is a pass over all rows,
        with the Hessian of a sample.
    tol : float, default=1e-4
        The solver stops once less than this fraction of the objective is left to gain.
    max_iter : int, default=100
        Maximum number of Newton or quasi-Newton steps, or of passes over all rows. If it is reached, a warning says
        what to do.
    selection : {"loo", "cv"}, default="loo"
        How candidates are compared: approximate leave-one-out, or cross-validation.
    folds : int, default=5
        Number of folds if ``selection="cv"``.
    scaling : {"auto", "robust", "quantile", "standard", None}, default="auto"
        How the classifier scales the columns of X. ``"quantile"`` replaces values by the normal scores of their ranks.
        With a learnt kernel, ``"auto"`` lies between ``"robust"`` and ``"quantile"``, where held-out rows suggest. With
        other kernels it is ``"robust"`` and, if leave-one-out improves, also weights each column by how much the model
        varies along it.
    class_weight : dict, "balanced" or None, default=None
        Factors that multiply the row weights of each class. They shift the prior of the probabilities.
    loo : {"auto", True}, default="auto"
        True computes ``loo_scores_`` even if the search does not need it.
    device : None, "cpu", "cuda", "cuda:<number>", default=None
        Where passes over more than 50,000 rows and predictions are computed; needs ``kproba[torch]``. None uses NumPy
        on the CPU, or for PyTorch or CuPy tensors the device they are on. The fitted attributes are always NumPy
        arrays.
    n_jobs : int, optional
        Number of threads. None uses all cores, but no more than BLAS may use, and one thread inside a joblib worker
        thread; -1 always uses all cores.
    verbose : int, default=0
        Show a progress bar (needs ``kproba[progress]``).
    random_state : int, RandomState or None, default=None
        Seed for the random subsets of rows and centres, and for the row order of stochastic gradients.
    categorical_features : "from_dtype", None, mask, or sequence of column numbers or names, default="from_dtype"
        Which columns hold categories, of which only equality counts. ``"from_dtype"`` takes categorical, string and
        boolean columns of a data frame, except strings that are numbers; None takes none. Numbers and categories may
        be missing.

    Attributes
    ----------
    classes_ : array of class labels, or of tag names or numbers.
    kernel_, width_, ridge_ : the selected values.
    centers_ : array (b, d), or column numbers for a precomputed kernel.
    coef_, intercept_ : arrays (b, n_classes) and (n_classes,). The scores of a row sum to zero over the classes, or are
        zero for the last class if ``coding="base-class"``.
    loo_scores_, loo_proba_ : arrays (n, n_classes): predictions for each training row by a model fitted without it,
        to first order. Above 50,000 rows only with ``loo=True``.
    oof_proba_ : array (n, n_classes), if the kernel was learnt: the probabilities of each training row by a model that
        never saw its outer fold. Unlike ``loo_proba_``, they chose no more than the number of steps: use them to
        judge the model. Above 4,000 rows, one row in five has them, and the others, which learn the kernel, are NaN.
    feature_importances_, fold_importances_ : arrays (n_features,) and (n_folds, n_features), if the kernel was learnt:
        the share of each column in the distances of the kernel, and of those learnt without each outer fold (above
        4,000 rows, in two runs).
    learning_curve_ : dict of columns steps, leave_one_out and out_of_fold, if the kernel was learnt.
    n_iter_ : int, number of solver steps; for a source of rows, of passes over it.
    search_results_ : dict of columns stage, kernel, width, ridge, rows and loss, with one entry per candidate tried.
    scaling_, basis_, link_ : the fitted parts.
    columns_ : for a table with categories or missing values, what the model remembers of each column; else None.
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

    Without constants, a row far from all others has the same probability for every class:

    >>> clf.set_params(fit_intercept=False, scaling="standard").fit(X, y).predict_proba([[50.0] * 4]).round(4)
    array([[0.3333, 0.3333, 0.3333]])
    """

    _iterates = True

    def __init__(
        self,
        kernel: KernelLike = "auto",
        width: WidthLike = "auto",
        ridge: RidgeLike = "auto",
        centers: CentersLike = "auto",
        penalty: Literal["rkhs", "parameters"] | str = "rkhs",
        fit_intercept: bool = True,
        coding: Literal["symmetric", "base-class"] | str = "symmetric",
        solver: Literal["auto", "newton", "lbfgs", "sgd", "plain-sgd"] | str | Callable[..., Any] = "auto",
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
        categorical_features: CategoricalFeatures = "from_dtype",
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.ridge = ridge
        self.centers = centers
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.coding = coding
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
        self.categorical_features = categorical_features

    @documented_fit
    def fit(
        self,
        X: Inputs,
        y: Targets = None,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        checkpoint: PathLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        self._check_parameters()
        data = read(self, X, y, sample_weight, classes, checkpoint, groups)
        self._check_centers_against(data.rows, data.n_given, makes_squares=self._knows_number_of_centers)
        table = prepare(self, data)
        with Progress(self.verbose, title=type(self).__name__) as progress:
            search = self._search(table, data, progress)
            staged, folds = partial(self._staged, search, table.scaling), self._n_folds(data)
            grid_rows = self._grid_rows(table.rows)
            best, self.scaling_ = choose(search, table, self.width, staged, folds=folds, grid_rows=grid_rows)
            rows = table.scaled_by(self.scaling_, data.rows)
            solved = self._solve_on_all_rows(search, best, rows, data)
        link = Sigmoid() if data.rows.is_multilabel else Softmax()
        self._store(solved, link, search.record, data.rows)
        store_learnt(self, table, data)
        self._store_leave_one_out(solved.solution.held_out, data)
        data.finish()
        return self

    def _search(self, table: Prepared, data: Training, progress: Progress) -> Search:
        """The search space, and the loss that ranks the candidates."""
        density, loss = CenterChoice(self.centers).density(data.size), LogLoss()
        return Search(
            pose=self._pose(self._problem, table.scaling, density, data.seed),
            judge=loss,
            ridges=ridge_candidates(self.ridge, RIDGES, table.kernels[0], table.rows, data.seed, self._ridge_unit),
            any_ridge=isinstance(self.ridge, str),
            density=density,
            every_ridge_costs=True,
            loss_of_shares=loss.of_shares,
            workers=n_workers(self.n_jobs),
            seed=data.seed,
            record=SearchRecord(),
            progress=progress,
        )

    def _pose(self, make, scaling, density: float, seed: int) -> Pose:
        """Makes problems from rows and a kernel, with ``density`` centres per row."""
        return Pose(make, self._choice_of_centers(scaling), density, seed, n_workers(self.n_jobs), self._is_rkhs)

    def _problem(self, rows: Rows, basis: Basis, seed: int) -> Likelihood:
        """Everything but the ridge (2001 Eq. 9)."""
        solver = PAPERS.get(self.solver, self.solver) if isinstance(self.solver, str) else self.solver
        form = {"intercept": bool(self.fit_intercept), "rkhs": self._is_rkhs, "base": self.coding == "base-class"}
        elsewhere = None if self.device_ is None else partial(design_on, self.device_)
        return Likelihood(rows, basis, solver, float(self.tol), int(self.max_iter), seed, **form, elsewhere=elsewhere)

    def _least_squares(self, rows: Rows, basis: Basis, seed: int):
        """The least-squares problem with the same basis and penalty."""
        return least_squares(rows, basis, self._is_rkhs)

    @property
    def _is_rkhs(self) -> bool:
        return self.penalty == "rkhs"

    @property
    def _learns(self) -> bool:
        """Leave-one-out of a sample has the RKHS penalty."""
        return self._is_rkhs and super()._learns

    def _grid_rows(self, rows: Rows) -> int:
        """Leave-one-out with c classes takes about cn³ operations, so more classes mean fewer rows."""
        return int(min(GRID_ROWS, (SEARCH_FLOPS / rows.n_classes) ** (1 / 3)))

    def _staged(self, search: Search, scaling, rows: Rows, kernels: list[Kernel]):
        """Select kernel, width and column relevance by least squares, then refine width and ridge by the likelihood.

        The least-squares problem has the same basis, and its leave-one-out is exact and far cheaper.
        """
        pose = self._pose(self._least_squares, scaling, search.density, search.seed)
        record, progress = search.record, search.progress
        screening = Search(
            pose, CalibratedLogLoss(), RIDGES_OF_SQUARES, search.seed, record, progress, search.workers, search.density
        )
        weighs_columns = self.scaling == "auto" and not is_given(self.centers)
        found, weighted = screening.staged(rows, kernels, scaling, weighs_columns)
        if weighted is not scaling:
            ratio = weighted.relevance / scaling.relevance
            rows = rows.replace_inputs(rows.X * ratio.astype(rows.X.dtype))
        few = subsample(rows, self._grid_rows(rows), search.seed)
        widths = [found.kernel.with_width(found.kernel.width * factor) for factor in WIDTH_FACTORS]
        return search.grid(few, widths, "likelihood")[0], weighted

    def _solve_on_all_rows(self, search: Search, best: Candidate | Kernel, rows: Rows, data: Training) -> Candidate:
        """Fit the best candidate on all rows.

        For a source the sample selects the ridge, since each ridge would cost several passes.
        """
        pose: Any = self._streamed(rows, data) if data.is_sample else lambda kernel, _: search.pose(rows, kernel)
        needs_scores, by_folds = self.loo != "auto", self._n_folds(data) is not None
        final = FinalSolve(search, rows, pose, data.is_sample, keep_total_penalty, needs_scores, by_folds)
        if not data.is_sample or isinstance(best, Kernel) or by_folds:
            return leave_groups_out(final.solve(best), rows, int(self.folds), data.seed)
        problem = pose(best.kernel, best.solution.ridge)
        return final.solve_at(problem, self._ridge_by_sample(search, best, problem))

    def _streamed(self, rows: Rows, data: Training):
        """A function that makes the problem on all rows from a kernel.

        Gradients come from all rows, and a sample keeps its features in memory.
        """
        density = CenterChoice(self.centers).density_in_sample(data.size, rows.n_distinct)
        pose = self._pose(self._problem, self.scaling_, density, data.seed)

        def streamed(kernel: Kernel, ridge: float) -> StreamedLikelihood:
            problem: Any = pose(rows, kernel)
            n_columns = problem.basis.n_centers + 1
            enough = max(SAMPLE_ROWS, SAMPLE_PER_CENTER * n_columns, round(SAMPLE_SHARE * data.source.n_rows))
            kept = max(min(KEEP_BYTES // (8 * n_columns), enough), ROWS_PER_CENTER * n_columns)
            sample = replace(problem, rows=subsample(problem.rows, kept, problem.seed), is_warm=True)
            return StreamedLikelihood(sample, data.source, data.source.encoding(self.scaling_), self.device_)

        return streamed

    def _ridge_by_sample(self, search: Search, best: Candidate, problem: StreamedLikelihood) -> float:
        """The ridge for all rows, derived from the best ridge on the sample."""
        few, some, many = (each.total_weight for each in (best.problem.rows, problem.rows, problem))
        if search.any_ridge:
            start = keep_total_penalty(best.solution.ridge, few, some)
            return keep_total_penalty(search.climb(problem.sample, start).solution.ridge, some, many)
        wanted = keep_total_penalty(search.best_ridge(problem.sample).solution.ridge, some, many)
        return min(search.ridges, key=lambda given: abs(np.log((given + SMALLEST) / (wanted + SMALLEST))))

    def _reasons_for_memory(self) -> Iterator[str]:
        yield from super()._reasons_for_memory()
        if self.solver not in ("auto", "newton"):
            yield f"solver={self.solver!r} needs all rows in memory; for a source of rows use solver='auto'."

    def _check_parameters(self) -> None:
        check_fraction("tol", self.tol)
        check_count("max_iter", self.max_iter)
        check_search_parameters(self)
        look_up("solver", self.solver, SOLVERS, callable, "a function")
        self._check_ridge_and_centers(or_zero=True)
        check_choice("penalty", self.penalty, ("rkhs", "parameters"))
        check_choice("coding", self.coding, ("symmetric", "base-class"))
        check_flag("fit_intercept", self.fit_intercept)
        if self._has_own_centers and self.coding == "base-class":
            raise ValueError(
                f"coding='base-class' needs centres shared by all classes, because the last class has no function of "
                f"its own, but centers={self.centers!r}; use coding='symmetric' or other centers."
            )
