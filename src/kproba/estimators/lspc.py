"""The least-squares probabilistic classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..basis.basis import Basis
from ..data.all_rows import AllRows
from ..data.items import Items
from ..data.rows import Rows
from ..data.scaling import scaled_rows
from ..kernels import JointKernel, Kernel, as_kernels
from ..links import as_link, fit_link
from ..papers.stochastic import StochasticLeastSquares
from ..problems.base import Problem
from ..problems.joint import JointLeastSquares
from ..problems.least_squares import ClassSimilarity, LeastSquares
from ..problems.missing_tags import least_squares
from ..progress import Progress
from ..search.candidates import Candidate, SearchRecord
from ..search.center_count import center_count
from ..search.choose import Prepared, choose, ridge_candidates
from ..search.final_solve import FinalSolve, shrink_by_root_of_rows
from ..search.folds import leave_groups_out
from ..search.losses import loss_for_link
from ..search.pose import CenterChoice, Pose, auto_centers, is_given
from ..search.staged import Search
from ..search.widths import RIDGES
from ..solvers.iterative_dual import IterativeDual
from ..solvers.path import Path
from ..solvers.registry import PATHS
from ..threads import n_workers
from ..typing import (
    CategoricalFeatures,
    CentersLike,
    ClassWeight,
    DeviceLike,
    Inputs,
    KernelLike,
    LinkName,
    PathLike,
    RandomState,
    RidgeLike,
    ScalingName,
    Targets,
    WidthLike,
)
from ..validation import LARGEST_RIDGE, check_choice, check_count, check_positive, is_subclass, look_up
from ._learning import centers_in_memory, store_learnt
from ._parameters import CenterClassifier, check_search_parameters, documented_fit
from ._partial import Partial, TakesMoreRows
from ._prepared import prepare
from ._reading import Training, read
from ._ridge_path import RidgePath, ridge_path
from ._sanity import refuse_more_than_memory

#: "cg" and "sgd" solve other forms of the problem; "auto" chooses by its size.
SOLVERS = {"auto": None, **PATHS, "cg": IterativeDual, "sgd": StochasticLeastSquares}
#: partial_fit searches for a better ridge each time the number of rows has grown by this factor.
MORE_ROWS = 2


class LSPC(TakesMoreRows, CenterClassifier):
    r"""Least-squares probabilistic classifier.

    Fits the class posteriors by regularised least squares in a kernel basis,

    .. math:: \min_\theta \tfrac{1}{2n}\|\Phi\theta - Y\|^2 + \tfrac{\lambda}{2}\,\theta^\top P\,\theta,
        \qquad (H + \lambda P)\,\theta = h,

    with :math:`H = \Phi^\top\Phi/n`, :math:`h = \Phi^\top Y/n` (2010 Eq. 2): one linear solve. The solution yields
    exact leave-one-out scores, which select the kernel, width and ridge and calibrate the probabilities.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="auto"
        ``"auto"`` learns a weight for each column, the widths and a mixture of Laplacian, Gaussian, additive and pairs
        kernels by the gradient of leave-one-out, if there are at least 100 distinct dense rows and ``width="auto"``;
        otherwise it selects the Gaussian or the Laplacian kernel. A callable takes ``(X, Z)`` and returns the (n, b)
        kernel matrix; a :class:`~kproba.JointKernel` compares rows together with their classes (2010 Eq. 4).
        The names are ``"auto"``, ``"gaussian"``, ``"laplacian"``, ``"matern12"``, ``"matern32"``, ``"matern52"``,
        ``"additive"``, ``"pairs"``, ``"linear"``, ``"polynomial"``; for kernel matrices ``"precomputed"``; for
        histograms ``"chi2"`` and ``"intersection"``; for sequences of frames ``"hidden-markov"``; for time series
        ``"alignment"``; for strings, lists of words and sets ``"spectrum"``.
    width : "auto", "median", float, sequence of floats or TimesMedian, default="auto"
        Kernel width in units of the scaled columns: searched, set by the median heuristic, fixed, or selected from
        a list.
    ridge : "auto", float or sequence of floats, default="auto"
        The regularisation strength λ above.
    centers : "auto", "all", "local", "class", ("class", int), int or array of shape (b, d), default="auto"
        Basis points: all distinct rows (``"all"``, 2010 Eq. 5); all rows again, but of overlapping regions with a
        model each, whose scores are blended smoothly (``"local"``); for each class its own rows (``"class"``, Eq. 7)
        or a given number of them (``("class", int)``, Sec. 4); a subset of the given size spread over the classes; or
        your own points. ``"auto"`` uses all rows up to 2,000 and beyond that a subset that grows slowly with n. With a
        learnt kernel, it uses all rows up to 4,000, or up to 10,000 if the kernel is not sharp and one system of that
        size is worth its time, and local models otherwise. With more rows than a sample holds, it uses local models if
        the kernel is sharp, of all rows up to 250,000; otherwise leave-one-out of the sample chooses the size of the
        subset.
    link : {"auto", "softmax", "clip", "clip-parameters", "none"} or a subclass of Link, default="auto"
        How scores become probabilities. ``"auto"`` is the softmax calibrated on leave-one-out scores; ``"clip"`` is
        LSPC-new (2011 Eq. 6); ``"clip-parameters"`` rounds coefficients instead (2011 Eq. 4). ``"none"`` keeps the
        raw scores, which may lie outside [0, 1]: use ``decision_function``, as there is no ``predict_proba``.
    penalty : {"auto", "rkhs", "parameters"}, default="auto"
        The matrix P above: the kernel matrix of the centres (``"rkhs"``), or the identity as in the papers
        (``"parameters"``). ``"auto"`` is ``"parameters"`` if ``link="clip-parameters"`` and ``"rkhs"`` otherwise.
    selection : {"loo", "cv"}, default="loo"
        How candidates are compared: exact leave-one-out, or cross-validation by subtracting a fold's moments.
    folds : int, default=5
        Number of folds if ``selection="cv"``.
    scaling : {"auto", "robust", "quantile", "standard", None}, default="auto"
        How the classifier scales the columns of X. ``"quantile"`` replaces values by the normal scores of their ranks.
        With a learnt kernel, ``"auto"`` lies between ``"robust"`` and ``"quantile"``, where held-out rows suggest. With
        other kernels it is ``"robust"`` and, if leave-one-out improves, also weights each column by how much the model
        varies along it.
    solver : {"auto", "cholesky", "eigen", "cg", "sgd"} or a subclass of Path, default="auto"
        How the linear system is solved. ``"auto"`` uses the dual form if all rows are centres under the RKHS penalty,
        by preconditioned conjugate gradients (``"cg"``) above 20,000 rows; one eigendecomposition for many ridges of
        the papers' penalty; and Cholesky factors otherwise. With ``"cg"`` the leave-one-out scores are estimates.
        ``"sgd"`` makes ``passes`` over the rows with averaged stochastic gradients (2010 Sec. 4), after another solver
        has selected kernel, width and ridge; its held-out scores come from folds.
    passes : int, default=20
        Passes over the rows if ``solver="sgd"``.
    class_similarity : array of shape (n_classes, n_classes), optional
        Positive semi-definite kernel L(y, y') over the classes (2010 Eq. 4); None is the identity.
    class_weight : dict, "balanced" or None, default=None
        Factors that multiply the row weights of each class. They shift the prior of the probabilities.
    loo : {"auto", True}, default="auto"
        True computes ``loo_scores_`` even if neither the search nor the link needs it, and for more than 50,000 dense
        rows, where ``"auto"`` calibrates on a sample.
    device : None, "cpu", "cuda", "cuda:<number>", default=None
        Where features, sums, factors and leave-one-out are computed; needs ``kproba[torch]``. None uses NumPy on the
        CPU, or for PyTorch or CuPy tensors the device they are on. The fitted attributes are always NumPy arrays.
    n_jobs : int, optional
        Number of threads. None uses all cores, but no more than BLAS may use, and one thread inside a joblib worker
        thread; -1 always uses all cores.
    verbose : int, default=0
        Show a progress bar (needs ``kproba[progress]``).
    random_state : int, RandomState or None, default=None
        Seed for the random subsets of rows and centres.
    categorical_features : "from_dtype", None, mask, or sequence of column numbers or names, default="from_dtype"
        Which columns hold categories, of which only equality counts. ``"from_dtype"`` takes categorical, string and
        boolean columns of a data frame, except strings that are numbers; None takes none. Numbers and categories may
        be missing.

    Attributes
    ----------
    classes_ : array of class labels, or of tag names or numbers.
    kernel_, width_, ridge_, penalty_ : the selected values.
    centers_ : array (b, d), or column numbers for a precomputed kernel.
    coef_ : array (b, n_classes). Multi-label models have an extra last column for the constant 1, or with missing tags
        one for each group of tags observed in the same rows; with ``link="clip-parameters"``, one for each tag.
    loo_scores_, loo_proba_ : arrays (n, n_classes): predictions for each training row by a model fitted without it.
        They selected the parameters, so they are optimistic, particularly below about a thousand rows; to evaluate the
        model, hold rows out or use ``cross_val_predict``.
    oof_proba_ : array (n, n_classes), if the kernel was learnt: the probabilities of each training row by a model that
        never saw its outer fold. Unlike ``loo_proba_``, they chose no more than the number of steps: use them to
        judge the model. Above 4,000 rows, one row in five has them, and the others, which learn the kernel, are NaN.
    feature_importances_, fold_importances_ : arrays (n_features,) and (n_folds, n_features), if the kernel was learnt:
        the share of each column in the distances of the kernel, and of those learnt without each outer fold (above
        4,000 rows, in two runs).
    learning_curve_ : dict of columns steps, leave_one_out and out_of_fold, if the kernel was learnt.
    search_results_ : dict of columns stage, kernel, width, ridge, rows and loss, with one entry per candidate tried.
    scaling_, basis_, link_ : the fitted parts.
    columns_ : for a table with categories or missing values, what the model remembers of each column; else None.
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
    array([[0.99, 0.  , 0.  ]])
    >>> float((clf.loo_proba_.argmax(axis=1) == y).mean().round(2))
    0.97
    """

    def __init__(
        self,
        kernel: KernelLike = "auto",
        width: WidthLike = "auto",
        ridge: RidgeLike = "auto",
        centers: CentersLike = "auto",
        link: LinkName = "auto",
        penalty: Literal["auto", "rkhs", "parameters"] | str = "auto",
        selection: Literal["loo", "cv"] | str = "loo",
        folds: int = 5,
        scaling: ScalingName = "auto",
        solver: Literal["auto", "cholesky", "eigen", "cg", "sgd"] | str | type[Path] = "auto",
        passes: int = 20,
        class_similarity: ArrayLike | None = None,
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
        self.link = link
        self.penalty = penalty
        self.selection = selection
        self.folds = folds
        self.scaling = scaling
        self.solver = solver
        self.passes = passes
        self.class_similarity = class_similarity
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
        self._fit_training(data)
        data.finish()
        return self

    def path(
        self,
        X: Inputs,
        y: Targets,
        ridges: Literal["auto"] | str | Sequence[float] = "auto",
        sample_weight: ArrayLike | None = None,
    ) -> RidgePath:
        """Solutions for many ridges, with the kernel, width and centres that ``fit`` selects (2010 Sec. 4).

        The classifier itself is not changed.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``; the rows must be in memory.
        ridges : "auto" or sequence of floats, default="auto"
            ``"auto"`` takes those of the parameter ``ridge`` if it is a sequence, otherwise half decades from 1e-7
            to 1.

        Returns
        -------
        RidgePath
            A named tuple of ``ridges``, ``coef``, ``scores``, ``loo_scores`` and ``loo_loss``, one entry per ridge.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kproba import LSPC
        >>> path = LSPC(kernel="gaussian", width=2.0).path(*load_iris(return_X_y=True), ridges=[1e-4, 1e-2, 1.0])
        >>> path.coef.shape, path.best  # 149 of the 150 rows are distinct
        ((3, 149, 3), 0)
        """
        model = clone(self)
        model._check_parameters()
        check_positive("ridges", ridges, words=("auto",), largest=LARGEST_RIDGE)
        data = read(model, X, y, sample_weight)
        if data.is_sample or self.solver == "sgd":
            what = "solver='sgd'" if self.solver == "sgd" else f"{data.n_given:,} rows"
            raise ValueError(f"path needs rows that are all in memory and an exact solver, not {what}.")
        problem = model._fit_training(data)
        given = self.ridge if isinstance(ridges, str) and np.ndim(self.ridge) else ridges
        kernel, rows = problem.basis.kernel, problem.rows
        wanted = ridge_candidates(given, RIDGES, kernel, rows, data.seed, model._ridge_unit)
        return ridge_path(model, problem, wanted, data)

    def _fit_training(self, data: Training) -> Problem:
        """Choose kernel, width and ridge by leave-one-out, solve on all rows, calibrate the link."""
        self._check_against(data.rows, data.n_given)
        table = prepare(self, data)
        with Progress(self.verbose, title=type(self).__name__) as progress:
            search = self._search(table, data, progress)
            weighs_columns = self.scaling == "auto" and not is_given(self.centers)
            staged = partial(search.staged, scaling=table.scaling, relevance=weighs_columns)
            best, self.scaling_ = choose(search, table, self.width, staged, folds=self._n_folds(data))
            rows = table.scaled_by(self.scaling_, data.rows)
            final = self._final_solve(search, rows, self._problem_of_all(search, rows, data), data.is_sample)
            solved = self._by_gradients(final, best) if self.solver == "sgd" else final.solve(best)
            solved = leave_groups_out(solved, rows, int(self.folds), data.seed)
        self._store_solution(solved, search.record, data.rows)
        store_learnt(self, table, data, solved)
        self._store_leave_one_out(solved.solution.held_out, data)
        return solved.problem

    def _search(self, table: Prepared, data: Training, progress: Progress) -> Search:
        """The search space, and the loss that ranks the candidates."""
        judge = loss_for_link(self.link, data.rows)
        choice = self._center_choice(table, data, judge)
        density = choice.density(data.size)
        return Search(
            pose=self._pose(choice, density, data.seed),
            judge=judge,
            ridges=self._ridges(table, data),
            any_ridge=isinstance(self.ridge, str),
            density=density,
            workers=n_workers(self.n_jobs),
            seed=data.seed,
            record=SearchRecord(),
            progress=progress,
        )

    def _ridges(self, table: Prepared, data: Training) -> list[float]:
        """The ridges to compare; a learnt kernel comes with its noise nλ, which does not depend on the rows."""
        if table.learnt is not None and isinstance(self.ridge, str):
            weight = data.rows.total_weight if data.everything is None else data.everything.total_weight
            return [table.learnt.noise / weight]
        return ridge_candidates(self.ridge, RIDGES, table.kernels[0], table.rows, data.seed, self._ridge_unit)

    def _center_choice(self, table: Prepared, data: Training, judge: Callable) -> CenterChoice:
        """How centres are chosen. With a learnt kernel every row is one, or of very many rows if it is sharp."""
        learnt, is_auto = table.learnt, isinstance(self.centers, str) and self.centers == "auto"
        if learnt is not None and self._may_be_local:
            if not data.is_sample:
                centers = centers_in_memory(learnt, data.size, self.device_)
                return CenterChoice(centers, are_shared=not learnt.is_sharp)
            # partial_fit keeps one basis, and devices sum over all rows in one
            if learnt.is_sharp and isinstance(data.everything, AllRows) and self.device_ is None:
                return CenterChoice("local", are_shared=False)
        if learnt is not None and is_auto and isinstance(data.everything, AllRows):
            noise, most = self._ridges(table, data)[0] * data.everything.total_weight, auto_centers(data.size)
            workers = n_workers(self.n_jobs)
            return CenterChoice(center_count(learnt.kernel, noise, table.rows, most, judge, data.seed, workers))
        return self._choice_of_centers(table.scaling)

    @property
    def _may_be_local(self) -> bool:
        """Whether ``centers="auto"`` may stand for all rows or for local models."""
        return isinstance(self.centers, str) and self.centers == "auto" and self._solves_dual

    def _pose(self, choice: CenterChoice, density: float, seed: int) -> Pose:
        """Makes problems from rows and a kernel, with ``density`` centres per row."""
        return Pose(self._problem, choice, density, seed, n_workers(self.n_jobs), self._is_rkhs)

    def _problem(self, rows: Rows, basis: Basis, seed: int) -> Problem:
        """Everything but the ridge (2010 Eq. 2, 2011 Eq. 4)."""
        if isinstance(basis.kernel, JointKernel):
            return JointLeastSquares(rows, basis)
        L, solver = self.class_similarity, "auto" if self.solver == "sgd" else self.solver
        similarity = None if L is None else ClassSimilarity.of(np.asarray(L, float))
        return least_squares(rows, basis, self._is_rkhs, similarity, solver, self._rounds, seed=seed)

    def _problem_of_all(self, search: Search, rows: Rows, data: Training):
        """A function that makes the problem on all rows from a kernel and an approximate ridge."""
        everything, pose = data.everything, cast(Pose, search.pose)

        def in_memory(kernel: Kernel, ridge: float) -> Problem:
            problem: Any = search.pose(rows, kernel).on(self.device_)
            is_iterative = isinstance(problem, LeastSquares) and problem.is_iterative
            return replace(problem, progress=search.progress) if is_iterative else problem

        def summed_up(kernel: Kernel, ridge: float) -> Problem:
            assert everything is not None
            choice = pose.centers  # chosen by leave-one-out or by the user, whose points are scaled
            choice = self._choice_of_centers(self.scaling_) if choice.points is not None else choice
            density = choice.density_in_sample(data.size, rows.n_distinct)
            problem: Any = self._pose(choice, density, data.seed)(rows, kernel).on(self.device_)
            return problem.with_sums(everything, self.scaling_, ridge)

        return in_memory if everything is None else summed_up

    def _final_solve(self, search: Search, rows: Rows, pose, is_sample: bool) -> FinalSolve:
        needs_scores = self.loo != "auto" or as_link(self.link).is_calibrated
        by_folds = self.selection == "cv" or rows.together is not None
        return FinalSolve(search, rows, pose, is_sample, shrink_by_root_of_rows, needs_scores, by_folds)

    def _by_gradients(self, final: FinalSolve, best: Candidate | Kernel) -> Candidate:
        """Fit the selected kernel on all rows with stochastic gradients."""
        search, rows = final.search, final.rows
        kernel, ridge = (best, search.ridges[0]) if isinstance(best, Kernel) else (best.kernel, best.solution.ridge)
        if isinstance(best, Candidate):
            ridge = shrink_by_root_of_rows(ridge, best.problem.rows.total_weight, rows.total_weight)
        basis = search.pose(rows, kernel).basis
        problem = StochasticLeastSquares(rows, basis, self._is_rkhs, int(self.passes), search.seed, int(self.folds))
        return final.solve_at(problem, ridge)

    def _fit_sums(self, rows: Rows, partial: Partial) -> None:
        """Solve again with the current sums, in the existing basis."""
        seed, ridge, tried = partial.look.seed, self.ridge_, self.search_results_
        scaled = scaled_rows(rows, self.scaling_)
        posed: Any = self._problem(scaled, self._basis_here, seed).on(self.device_)
        problem = replace(posed, given=partial.moments)
        with Progress(self.verbose, title=type(self).__name__) as progress:
            search = Search(lambda *_: problem, loss_for_link(self.link, rows), [ridge], seed, SearchRecord(), progress)
            if isinstance(self.ridge, str) and partial.look.n_rows >= MORE_ROWS * partial.n_chosen:
                ridge = search.climb(problem, ridge).solution.ridge
                partial.n_chosen = partial.look.n_rows
            solved = self._final_solve(search, scaled, lambda *_: problem, True).solve_at(problem, ridge)
        self._store_solution(solved, search.record, rows)
        self.search_results_ = tried  # the first rows selected the parameters, so their search is the one to report

    def _store_solution(self, solved: Candidate, record: SearchRecord, rows: Rows) -> None:
        self._store(solved, fit_link(self.link, solved.solution.held_out, rows, self.device_), record, rows)
        self.penalty_ = "rkhs" if self._is_rkhs else "parameters"

    _ridge_is_noise = True

    @property
    def _learns(self) -> bool:
        """Leave-one-out of a sample has the RKHS penalty and separate classes."""
        return self._is_rkhs and self.class_similarity is None and self.selection == "loo"

    @property
    def _is_rkhs(self) -> bool:
        """Rounding coefficients only makes sense if the coefficients themselves are penalised, as in the papers."""
        return self.penalty == "rkhs" or (self.penalty == "auto" and not self._rounds and not self._is_joint)

    _takes_joint_kernels = True

    @property
    def _is_joint(self) -> bool:
        """Whether the kernel compares rows together with their classes (2010 Eq. 4)."""
        return isinstance(self.kernel, JointKernel)

    @property
    def _rounds(self) -> bool:
        return as_link(self.link).rounds_coefficients

    @property
    def _makes_squares(self) -> bool:
        """Whether the solver stores a square matrix over the centres, whose number is known beforehand.

        Stochastic and conjugate gradients do not; the latter take over when all of very many rows are centres.
        """
        all_rows = isinstance(self.centers, str) and self.centers == "all"
        is_dual = all_rows and self._is_rkhs and self.class_similarity is None
        takes_over = self.solver == "auto" and is_dual and as_kernels(self.kernel)[0].is_definite
        return self._knows_number_of_centers and self.solver not in ("cg", "sgd") and not takes_over

    def _check_parameters(self) -> None:
        as_link(self.link)
        check_choice("penalty", self.penalty, ("auto", "rkhs", "parameters"))
        check_count("passes", self.passes)
        if self.solver == "cg":
            self._check_cg()
        if self.solver == "sgd":
            self._check_sgd()
        if self._is_joint:
            self._check_joint()
        if self._is_local:
            self._check_local()
        if self._rounds and self.class_similarity is not None:
            raise ValueError("link='clip-parameters' cannot be combined with class_similarity; use link='clip'.")
        check_search_parameters(self)
        self._check_ridge_and_centers(names=("auto", "all", "local", "class"))
        look_up("solver", self.solver, SOLVERS, lambda own: is_subclass(own, Path), "a subclass of Path")

    def _check_cg(self) -> None:
        """Conjugate gradients only solve the dual form."""
        all_rows = isinstance(self.centers, str) and self.centers == "all"
        if not all_rows or not self._is_rkhs or self.class_similarity is not None or self._is_precomputed:
            raise ValueError(
                "solver='cg' needs centers='all', penalty='rkhs', a kernel other than 'precomputed' and no "
                "class_similarity; use solver='auto' otherwise."
            )

    def _check_sgd(self) -> None:
        """Stochastic gradients minimise the plain objective alone."""
        if self.class_similarity is not None or self._rounds:
            raise ValueError(
                "solver='sgd' needs class_similarity=None and a link other than 'clip-parameters'; use solver='auto' "
                "otherwise."
            )

    def _check_joint(self) -> None:
        """A kernel over rows and classes has a system of its own, with the penalty of 2010 Eq. 2."""
        found = {
            "penalty": self.penalty if self.penalty == "rkhs" else None,
            "class_similarity": self.class_similarity,
            "link": self.link if self._rounds else None,
            "centers": self.centers if self._has_own_centers else None,
            "solver": None if self.solver in ("auto", "eigen") else self.solver,
            "device": self.device if self.device != "cpu" else None,
        }
        for name, value in found.items():
            if value is not None:
                raise ValueError(f"kernel=JointKernel(...) cannot be combined with {name}={value!r}; leave {name} out.")

    @property
    def _is_local(self) -> bool:
        return isinstance(self.centers, str) and self.centers == "local"

    def _check_local(self) -> None:
        """Regions split the columns of rows, and each has a dual system of its own."""
        kernel = as_kernels(self.kernel)[0]
        if self._is_precomputed or self._is_joint or kernel.compares != "vectors":
            raise ValueError(f"centers='local' splits rows by their columns, but kernel={self.kernel!r} has none.")
        if not self._solves_dual:
            raise ValueError("centers='local' needs solver='auto', penalty='rkhs' and no class_similarity.")

    @property
    def _solves_dual(self) -> bool:
        return self.solver == "auto" and self._is_rkhs and self.class_similarity is None

    def _reasons_for_memory(self) -> Iterator[str]:
        yield from super()._reasons_for_memory()
        if self.solver == "sgd":
            yield "solver='sgd' draws random rows from memory; for a source of rows use solver='auto'."
        if self._is_joint:
            yield "kernel=JointKernel(...) needs all rows in memory, not a source of rows."

    def _check_against(self, rows: Rows, n_given: int) -> None:
        """Raise an error for parameters that do not match the data."""
        self._check_centers_against(rows, n_given, self._makes_squares)
        if self._is_local and (isinstance(rows.X, Items) or rows.is_sparse):
            raise ValueError("centers='local' splits rows by their columns and needs a dense X, not a sparse one.")
        if self.solver == "cg" and isinstance(rows.X, Items):
            raise ValueError("solver='cg' needs numeric rows; use solver='auto' for a list.")
        if self.solver == "sgd" and rows.group is not None:
            raise ValueError("solver='sgd' does not support missing tags in y; use solver='auto'.")
        if self.solver == "sgd" and rows.is_multilabel and self._has_own_centers:
            raise ValueError(
                f"solver='sgd' with centers={self.centers!r} needs one class per row, but y is multi-label; use other "
                "centres or solver='auto'."
            )
        if self._is_joint:
            _check_joint_rows(rows, self.centers)
        if self.class_similarity is not None:
            _check_similarity(np.asarray(self.class_similarity), rows, self._has_own_centers)


def _check_joint_rows(rows: Rows, centers) -> None:
    if rows.is_multilabel:
        raise ValueError("kernel=JointKernel(...) compares classes, but y is multi-label; use a kernel of the rows.")
    b = len(centers) if is_given(centers) else CenterChoice(centers).density(rows.n_distinct) * rows.n_distinct
    refuse_more_than_memory(round(b * rows.n_classes))


def _check_similarity(L: np.ndarray, rows: Rows, has_own_centers: bool) -> None:
    c = rows.n_classes
    if rows.is_multilabel:
        raise ValueError("class_similarity does not apply to a multi-label y, where each tag is fitted separately.")
    if has_own_centers:
        raise ValueError("class_similarity needs centres shared by all classes; use another value of centers.")
    if L.shape != (c, c):
        raise ValueError(f"class_similarity has shape {L.shape}; {c} classes need shape ({c}, {c}).")
    if not np.isfinite(L).all() or not np.allclose(L, L.T, atol=1e-10):
        raise ValueError("class_similarity must be a finite symmetric matrix.")
    smallest = float(np.linalg.eigvalsh(L)[0])
    if not np.any(L):
        raise ValueError("class_similarity is all zeros, so every score would be zero.")
    if smallest < -1e-10 * np.abs(L).max():
        raise ValueError(f"class_similarity must be positive semi-definite; its smallest eigenvalue is {smallest:.3g}.")
