"""The surface kernel classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..basis.basis import Basis
from ..basis.centers import Centers, kmeans_centers, subset_centers
from ..data.items import Items
from ..data.rows import Rows
from ..data.scaling import scaled_rows
from ..kernels import Kernel, Learnt, Precomputed, as_kernels
from ..links import LINKS, as_link, fit_link
from ..papers.surface_solvers import SOLVERS
from ..problems.surface import Maximum, Settings, Surface
from ..progress import Progress
from ..search.candidates import SearchRecord
from ..search.choose import Prepared
from ..search.losses import loss_for_link
from ..search.staged import NEIGHBOURS, Search, most_informative_tags, supports_relevance
from ..search.widths import TimesMedian, width_candidates
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
    ScalingName,
    Targets,
    WidthLike,
)
from ..validation import check_choice, check_count, check_given_centers, look_up
from ._base import KernelClassifier
from ._learning import store_learnt
from ._parameters import check_search_parameters, documented_fit, scores_of_all
from ._partial import Partial, TakesMoreRows
from ._prepared import prepare
from ._reading import Training, read

#: Candidate widths as multiples of the median distance.
WIDTHS = (0.15, 0.3, 0.6, 1.2, 2.5, 5.0)
#: A kernel is learnt with a centre in every row, which is often too sharp for a few centres: held-out outputs choose by
#: which of these factors its widths grow. The first wins a tie.
FACTORS = (4.0, 2.0, 1.0)
#: Most distinct rows on which widths are compared, with the full number of centres.
SEARCH_ROWS = 5000
#: Most tags on which they are compared; every tag is a programme of its own.
SEARCH_TAGS = 16
#: With at least this many distinct rows per centre, each class gets its own clusters: a single row then hardly moves
#: the centres of its class, so held-out outputs are not biased towards narrow kernels.
CLASS_ROWS = 40
#: Coefficients are not rounded.
OWN_LINKS = {name: link for name, link in LINKS.items() if not link.rounds_coefficients}
MEANS = ("k-means", "class-k-means")
CENTERS = ("auto", *MEANS, "random")


class SurfaceKernelClassifier(TakesMoreRows, KernelClassifier):
    r"""Surface kernel classifier.

    Maximises the mean of :math:`p_y(x) - \tfrac12\sum_j p_j(x)^2` over the training rows (Loss_surf, 2013 Eq. 1) for

    .. math:: p_j(x) = \sum_{l=1}^{r} \alpha_l^j\,k(x, s_l) + \alpha_{r+1}^j, \qquad
        \sum_j \alpha_l^j = 0, \quad \sum_j \alpha_{r+1}^j = 1, \quad -1 \le \alpha_l^j \le 1,

    with a few centres s_l. The maximum only depends on sums that take one pass over the rows, so solving costs the same
    for a thousand rows as for a billion. It is a convex quadratic programme; ``solver="exact"`` finds its global
    maximum with a certificate. The paper's two heuristics are available as well.

    Parameters
    ----------
    n_centers : "auto" or int, default="auto"
        The r above. ``"auto"`` is the paper's :math:`1 + 10\ln(n/3)`, rounded, with n the number of distinct rows.
    width : "auto", "median", float, sequence of floats or TimesMedian, default="auto"
        Kernel width in units of the scaled columns: searched, set by the median heuristic, fixed, or selected from
        a list.
    solver : {"exact", "nelder-mead", "swarm"} or function, default="exact"
        An interior-point method, Algorithm 1 or Algorithm 2 of the paper. The width is always selected with the exact
        solver.
    centers : {"auto", "k-means", "class-k-means", "random"} or array of shape (r, d), default="auto"
        Cluster centres of all rows (2013) or of each class; a subset of the rows spread over the classes; or your own
        points. Above 10,000 rows, k-means uses mini-batches of a sample. ``"auto"`` is ``"class-k-means"`` with at
        least 40 rows per centre, ``"k-means"`` with fewer, and ``"random"`` for a precomputed kernel.
    kernel : str, callable or Kernel, default="auto"
        ``"auto"`` learns a weight for each column, the widths and a mixture of Laplacian, Gaussian, additive and pairs
        kernels by the gradient of leave-one-out, if there are at least 100 distinct dense rows and ``width="auto"``.
        Every row is a centre there, so held-out outputs of the few centres then choose whether all widths grow.
        Otherwise it selects the Gaussian of the paper or the Laplacian together with the width.
        The names are ``"auto"``, ``"gaussian"``, ``"laplacian"``, ``"matern12"``, ``"matern32"``, ``"matern52"``,
        ``"additive"``, ``"pairs"``, ``"linear"``, ``"polynomial"``; for kernel matrices ``"precomputed"``; for
        histograms ``"chi2"`` and ``"intersection"``; for sequences of frames ``"hidden-markov"``; for time series
        ``"alignment"``; for strings, lists of words and sets ``"spectrum"``.
    link : {"auto", "softmax", "clip", "none"} or a subclass of Link, default="auto"
        How outputs, which can lie outside [0, 1], become probabilities. ``"auto"`` is the softmax calibrated on
        held-out outputs; ``"clip"`` sets negative outputs to zero. ``"none"`` keeps the outputs unchanged; there is no
        ``predict_proba``.
    selection : {"loo", "cv"}, default="loo"
        ``"loo"`` computes held-out outputs by exact leave-one-out if no coefficient is at its bound and from folds
        otherwise; ``"cv"`` always from folds. The sums of a fold are subtracted from those of all rows.
    folds : int, default=5
        Number of folds.
    scaling : {"auto", "robust", "quantile", "standard", None}, default="auto"
        How the classifier scales the columns of X. ``"quantile"`` replaces values by the normal scores of their ranks.
        With a learnt kernel, ``"auto"`` lies between ``"robust"`` and ``"quantile"``, where held-out rows suggest. With
        other kernels it is ``"robust"`` and, if the held-out outputs improve, also weights each column by how much the
        model varies along it.
    max_iter : int, default=100000
        Maximum number of steps of the swarm, or of each simplex.
    n_restarts : int, default=5
        Number of starts if ``solver="nelder-mead"``.
    class_weight : dict, "balanced" or None, default=None
        Factors that multiply the row weights of each class. They shift the prior of the probabilities.
    loo : {"auto", True}, default="auto"
        True computes ``loo_scores_`` even if the link does not need it. Above 50,000 rows ``"auto"`` computes held-out
        outputs of a sample for the link and does not store them.
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
        Seed for centres, samples and the paper's solvers.
    categorical_features : "from_dtype", None, mask, or sequence of column numbers or names, default="from_dtype"
        Which columns hold categories, of which only equality counts. ``"from_dtype"`` takes categorical, string and
        boolean columns of a data frame, except strings that are numbers; None takes none. Numbers and categories may
        be missing.

    Attributes
    ----------
    classes_ : array of class labels, or of tag names or numbers.
    kernel_, width_ : the selected values.
    centers_ : array (r, d), or column numbers for a precomputed kernel.
    coef_, intercept_ : arrays (r, n_classes) and (n_classes,): the α above. Multi-label models have an extra last
        column for the constant 1.
    certificate_ : objective, duality_gap, kkt_residual, n_active: how close the coefficients are to the optimum.
    shortfall_ : float
        How far the mean surface loss of the training rows is below its maximum: the duality gap for the exact solver,
        the distance from the exact maximum for the others.
    history_ : array, the best objective at every hundredth of ``max_iter``, for the paper's solvers.
    n_iter_ : int, number of solver steps.
    loo_scores_, loo_proba_ : arrays (n, n_classes): predictions for each training row by a model fitted without it.
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
    M. Serrurier and H. Prade (2013), A scalable learning algorithm for kernel probabilistic classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kproba import SurfaceKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SurfaceKernelClassifier(random_state=0).fit(X, y)
    >>> clf.predict_proba(X[:1]).round(2)
    array([[0.99, 0.  , 0.  ]])
    >>> len(clf.centers_), round(clf.certificate_.objective, 2)
    (40, 0.47)
    """

    _iterates = True

    def __init__(
        self,
        n_centers: Literal["auto"] | str | int = "auto",
        width: WidthLike = "auto",
        solver: Literal["exact", "nelder-mead", "swarm"] | str | Callable[..., Any] = "exact",
        centers: Literal["auto", "k-means", "class-k-means", "random"] | CentersLike = "auto",
        kernel: KernelLike = "auto",
        link: LinkName = "auto",
        selection: Literal["loo", "cv"] | str = "loo",
        folds: int = 5,
        scaling: ScalingName = "auto",
        max_iter: int = 100_000,
        n_restarts: int = 5,
        class_weight: ClassWeight = None,
        loo: Literal["auto", True] | str | bool = "auto",
        device: DeviceLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
        categorical_features: CategoricalFeatures = "from_dtype",
    ) -> None:
        self.n_centers = n_centers
        self.width = width
        self.solver = solver
        self.centers = centers
        self.kernel = kernel
        self.link = link
        self.selection = selection
        self.folds = folds
        self.scaling = scaling
        self.max_iter = max_iter
        self.n_restarts = n_restarts
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

    def _fit_training(self, data: Training) -> None:
        """Select kernel and width on held-out rows, maximise the surface loss on all rows, calibrate the link."""
        table, record = prepare(self, data, SEARCH_ROWS), SearchRecord()
        with Progress(self.verbose, title=type(self).__name__) as progress:
            kernel, self.scaling_ = self._choose(table, data, record, progress)
            scaled = table.scaled_by(self.scaling_, data.rows)
            settings = self._settings(data.seed, progress)
            problem = self._problem(
                scaled, kernel, self._centers(scaled, self.scaling_, data.size, data.seed), settings
            )
            if data.everything is not None:
                problem = problem.with_sums(data.everything, self.scaling_, self.device_)
            held_out = self._solve(problem.on(self.device_), data.rows)
        self.search_results_ = record.columns()
        store_learnt(self, table, data)
        self._store_leave_one_out(held_out, data)

    def _solve(self, problem: Surface, rows: Rows) -> np.ndarray | None:
        """Maximise, calibrate and set the fitted attributes; returns the held-out outputs if they are needed."""
        wanted = self.loo != "auto" or as_link(self.link).is_calibrated
        self._store_maximum(problem, problem.maximum, rows)
        held_out = problem.held_out if wanted else None
        self.link_ = fit_link(self.link, held_out, rows, self.device_)
        return held_out

    def _fit_sums(self, rows: Rows, partial: Partial) -> None:
        """Solve again with the current sums, in the existing basis."""
        scaled = scaled_rows(rows, self.scaling_)
        with Progress(self.verbose, title=type(self).__name__) as progress:
            settings = self._settings(partial.look.seed, progress)
            problem = self._problem(scaled, self.kernel_, Centers(self.basis_.centers), settings)
            self._solve(replace(problem, given=partial.moments), rows)

    def _settings(self, seed: int, progress: Progress) -> Settings:
        return Settings(self._approach, int(self.max_iter), int(self.n_restarts), seed, progress)

    @property
    def _approach(self):
        return look_up("solver", self.solver, SOLVERS, callable, "a function")

    def _centers(self, rows: Rows, scaling, n_rows: int, seed: int) -> Centers:
        """Centres for scaled rows, as many as ``n_rows`` calls for; they do not depend on the kernel."""
        has_means = not self._is_precomputed and not isinstance(rows.X, Items) and not rows.categorical
        if not isinstance(self.centers, str):
            if not isinstance(rows.X, Items):
                check_given_centers(self._given_points(), rows.X.shape[1], self._is_precomputed)
            return Centers(self._given_centers(scaling))
        if self.centers in MEANS and not has_means:
            raise ValueError(
                f"centers={self.centers!r} averages rows, which "
                f"{'categories do' if rows.categorical else f'kernel={self.kernel!r} does'} not allow; use "
                "centers='random'."
            )
        if self.centers == "class-k-means" and rows.is_multilabel:
            raise ValueError("centers='class-k-means' needs one class per row, but y is multi-label; use 'k-means'.")
        n, r = rows.n_distinct, min(rows.n_distinct, self._n_centers(n_rows))
        if self.centers == "random" or not has_means:
            kernel = Precomputed() if self._is_precomputed else as_kernels("gaussian")[0]
            return Centers(subset_centers(rows, kernel, r, seed).points)
        many = n >= CLASS_ROWS * r and not rows.is_multilabel
        return kmeans_centers(rows, r, seed, self.centers == "class-k-means" or (self.centers == "auto" and many))

    def _n_centers(self, n: int) -> int:
        """The number of centres for n distinct rows, unless the user gives the centres."""
        return min(n, surface_centers(n) if isinstance(self.n_centers, str) else int(self.n_centers))

    def _choose(self, table: Prepared, data: Training, record: SearchRecord, progress: Progress):
        """The kernel and width with the best held-out outputs of the exact solver, and the scaling of the columns."""
        few, scaling = most_informative_tags(table.few, SEARCH_TAGS), table.scaling
        any_width = isinstance(self.width, str) and self.width == "auto"
        widths = TimesMedian(WIDTHS if any_width else (1.0,)) if isinstance(self.width, str) else self.width
        candidates = width_candidates(table.kernels, widths, few, data.seed)
        if len(candidates) == 1:
            return candidates[0], scaling
        search = self._search(few, scaling, data.size, record, progress, data.seed)
        best = search.grid(few, candidates)[0]
        if not any_width or not best.kernel.has_width:
            return best.kernel, scaling
        best = min([best, *search.around(few, best, NEIGHBOURS, "refine")], key=lambda candidate: candidate.rank)
        if self.scaling != "auto" or not isinstance(self.centers, str) or not supports_relevance(best.kernel, few):
            return best.kernel, scaling
        best, scaling = search.weigh_columns(few, best, scaling)
        return best.kernel, scaling

    def _variants(self, kernel: Learnt) -> list[Kernel]:
        """The learnt kernel and wider ones; the widest also with k(x, x) = 1.

        The box bounds the coefficients, not the outputs, so that the scale of the kernel is what regularises: a learnt
        one with k(x, x) far above 1 hardly feels the box.
        """
        wider = [kernel.wider(factor) for factor in FACTORS]
        return [wider[0].normalised(), *wider]

    def _search(self, rows: Rows, scaling, n_rows: int, record: SearchRecord, progress: Progress, seed: int) -> Search:
        """A search whose problems take their centres from their own rows, computed once for all widths."""
        chosen: dict[int, tuple[Rows, Centers]] = {}

        def pose(some: Rows, kernel: Kernel) -> Surface:
            if id(some) not in chosen:
                chosen[id(some)] = some, self._centers(some, scaling, n_rows, seed)
            return self._problem(some, kernel, chosen[id(some)][1], Settings(seed=seed))

        return Search(
            pose=pose,
            judge=loss_for_link(self.link, rows),
            ridges=[0.0],
            any_ridge=False,
            density=min(1.0, self._n_centers(n_rows) / rows.n_distinct),
            centers_grow=False,
            workers=n_workers(self.n_jobs),
            seed=seed,
            record=record,
            progress=progress,
        )

    def _problem(self, rows: Rows, kernel: Kernel, centers: Centers, settings: Settings) -> Surface:
        basis = Basis(kernel, *centers, workers=n_workers(self.n_jobs))
        return Surface(rows, basis, settings, int(self.folds), only_folds=self.selection == "cv")

    def _store_maximum(self, problem: Surface, found: Maximum, rows: Rows) -> None:
        """Set the fitted attributes as NumPy arrays."""
        self._store_basis(problem.basis, rows)
        self.coef_, self.intercept_ = found.coef[:-1], found.coef[-1]
        self.certificate_, self.n_iter_ = found.certificate, found.n_iter
        exact = self.solver == "exact"
        self.shortfall_ = found.certificate.duality_gap if exact else found.optimum - found.certificate.objective
        self.history_ = found.history

    def _reasons_for_memory(self) -> Iterator[str]:
        yield from super()._reasons_for_memory()
        yield from scores_of_all(self.loo)

    def _check_parameters(self) -> None:
        _ = self._approach
        as_link(self.link, OWN_LINKS)
        for name in ("max_iter", "n_restarts"):
            check_count(name, getattr(self, name))
        self._check_centers()
        check_search_parameters(self)

    def _check_centers(self) -> None:
        if isinstance(self.n_centers, str):
            check_choice("n_centers", self.n_centers, ("auto",))
        else:
            check_count("n_centers", self.n_centers)
        if isinstance(self.centers, str):
            check_choice("centers", self.centers, CENTERS)
            if self._is_precomputed and self.centers in MEANS:
                raise ValueError(
                    f"centers={self.centers!r} needs the rows themselves, but kernel='precomputed' has none; "
                    "use centers='random' or an array of column numbers."
                )
        elif not hasattr(self.centers, "__len__") and not sparse.issparse(self.centers):
            known = f"{', '.join(map(repr, CENTERS))} or an array of points"
            raise TypeError(f"centers must be {known}; got {self.centers!r}. Use n_centers to set their number.")


def surface_centers(n: int) -> int:
    """r = 1 + 10·ln(n/3) of 2013 Sec. 5, rounded. The paper does not specify the logarithm; we use the natural one.

    >>> [surface_centers(n) for n in (10, 768, 19_020, 10**6)]
    [13, 56, 89, 128]
    """
    return max(1, round(1 + 10 * np.log(n / 3)))
