"""The import vector machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ..basis.basis import Basis
from ..data.all_rows import AllRows
from ..data.folds import stratified_folds
from ..data.items import Items
from ..data.labels import class_factors, encode, encode_labels
from ..data.rows import Rows
from ..data.sampling import sample_rows, subsample
from ..data.scaling import MODES as SCALINGS
from ..data.scaling import scaled_rows
from ..exceptions import ConvergenceWarning
from ..kernels import Kernel, as_kernels
from ..kernels.projected import project_indefinite
from ..links import Sigmoid, Softmax
from ..messages import warn
from ..problems.import_vectors.held_out import leave_one_out
from ..problems.import_vectors.model import ImportModel, Task
from ..problems.import_vectors.path import (
    LOSS_FLOOR,
    Growth,
    PathPoint,
    Settings,
    Tuning,
    best_of,
    follow,
    noticeable_best_of,
    tuning_split,
)
from ..problems.import_vectors.search import SEARCHES, Pool
from ..problems.import_vectors.streamed import FirstRowsOf, StreamedSearch
from ..problems.losses import Multinomial, Tags
from ..progress import Progress
from ..search.choose import UNIT_ROWS
from ..search.widths import TimesMedian, width_candidates
from ..threads import map_independent, n_workers, one_blas_thread
from ..typing import (
    CategoricalFeatures,
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
from ..validation import LARGEST_RIDGE, check_choice, check_count, check_flag, check_fraction, check_positive
from ._base import KernelClassifier
from ._learning import store_learnt
from ._parameters import documented_fit
from ._prepared import prepare
from ._reading import Training, read

#: 2001 Fig. 2: λ from e^10 down to e^-10.
EXPONENTS_2001 = range(10, -11, -1)
#: Candidate widths as multiples of the median distance. Narrower kernels would need more points than the model has.
WIDTHS = (0.6, 1.2, 2.5, 5.0)
#: Most distinct rows to train on when comparing widths, when comparing kernels and ridges, and most rows to tune on.
SCREEN_ROWS, PATH_ROWS, JUDGING_ROWS = 750, 2000, 4000
#: Losses on a sample that differ by less than this fraction count as equal.
LEVEL = 0.05
#: max_points="auto" is the first number times the root of the number of distinct rows, but at least the second.
POINTS_BY_ROOT, FEW_POINTS = 1.2, 50
#: For a source, "auto" allows at most this many points and coefficients: the time of a pass grows with their square.
MOST_POINTS, MOST_COEFFICIENTS = 500, 1500
#: Number of distinct sample rows that are candidates when the rows come from a source.
PROPOSING_ROWS = 10_000
#: Number of rows used to project an indefinite kernel to a positive semi-definite one.
LANDMARKS = 2000
#: Number of folds that leave out groups.
FOLDS = 5


class _Split(NamedTuple):
    """Training rows, and tuning rows if there are any."""

    rows: Rows
    tuning: Tuning | None


class _Run(NamedTuple):
    """A regularisation path: its last model, its points, every step, and the rows that judge the points."""

    model: ImportModel
    points: list[PathPoint]
    growth: Growth
    tuning: Tuning | None = None

    def down_to(self, best: PathPoint) -> _Run:
        """The path as far as one of its points, with the model it had there: its first import points."""
        q, last = best.n_points, self.model
        ridge = last.task.rows.total_weight * best.ridge
        model = ImportModel(last.task, ridge, last.chosen[:q], last.lower[:q, :q], best.beta, last.psi[:, 1 : q + 1])
        model.converge()
        steps = Growth([entry for entry in self.growth.entries if entry[0] >= best.ridge])
        return _Run(model, [point for point in self.points if point.ridge >= best.ridge], steps, self.tuning)


class ImportVectorMachine(KernelClassifier):
    r"""Import vector machine: kernel logistic regression on a few import points.

    Minimises the following objective over the coefficients and over the set S of import points, which grows one row
    at a time:

    .. math:: \frac1n\sum_i -\log p_{y_i}(x_i) + \frac{\lambda}{2}\sum_j \theta_j^\top K_{SS}\,\theta_j,
        \qquad p(x) = \mathrm{softmax}\bigl(o + {\textstyle\sum_{l \in S}} \theta_l k(x, x_l)\bigr)

    (2001 Eq. 6 and 9, with an unpenalised constant o). Each step adds the row that lowers the objective most, and the
    search stops when a point changes it by less than ``tol``. The probabilities need no calibration.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="auto"
        ``"auto"`` learns a weight for each column, the widths and a mixture of Laplacian, Gaussian, additive and pairs
        kernels by the gradient of leave-one-out, if there are at least 100 distinct dense rows and ``width="auto"``;
        otherwise it selects the Gaussian of 2001 or the Laplacian on the tuning rows. A callable takes ``(X, Z)``
        and returns the (n, b) kernel matrix; it must be symmetric and positive definite.
        The names are ``"auto"``, ``"gaussian"``, ``"laplacian"``, ``"matern12"``, ``"matern32"``, ``"matern52"``,
        ``"additive"``, ``"pairs"``, ``"linear"``, ``"polynomial"``; for kernel matrices ``"precomputed"``; for
        histograms ``"chi2"`` and ``"intersection"``; for sequences of frames ``"hidden-markov"``; for time series
        ``"alignment"``; for strings, lists of words and sets ``"spectrum"``.
    width : "auto", "median", float, sequence of floats or TimesMedian, default="auto"
        Kernel width in units of the scaled columns: selected on the tuning rows from multiples of the median
        distance, set to that distance, fixed, or selected from a list.
    ridge : "path", float or sequence of floats, default="path"
        The regularisation strength λ above. ``"path"`` goes from e^10 to e^-10 in the units of 2001, which are n·λ/2,
        and stops early when the tuning loss no longer improves. All values of a list are tried, from large to small. A
        single value needs no tuning.
    search : {"one-step", "exact"}, default="one-step"
        How candidates are ranked: by the objective after one Newton step (2001 B2*), or after fitting each one to
        convergence (B2), which needs all rows in memory.
    tol, lookback : float and int, default=1e-3 and 3
        The search stops when :math:`|H_k - H_{k-r}|/|H_k|` < tol, where r is ``lookback`` (2001 Sec. 3.3, which uses
        r = 1 as an example; a larger r is steadier if candidates are sampled). For the first r points, tol is scaled in
        proportion.
    max_points : "auto", int or None, default="auto"
        Maximum number of import points. ``"auto"`` is 50, or 1.2 times the root of the number of distinct rows if that
        is more; None sets no limit. If a number that you set stops the search, you get a warning. For a source of rows
        ``"auto"`` is at most 500, and at most 1,500/(n_classes − 1).
    candidates : "auto", "all" or int, default="auto"
        Number of rows considered in each step: all distinct ones, or a subset of which a quarter changes from step to
        step. ``"auto"`` is all up to 1,000 rows, and 100 beyond that. For a source, the candidates are a sample of the
        rows, ranked by sums over all rows. Each round considers 1,000 of them, or up to 4,000 if you set a larger
        number; ``"all"`` needs all rows in memory.
    tuning_fraction : float, default=0.25
        Fraction of the rows held out to select λ and the width. The final search is on all rows.
    refit : bool, default=True
        Whether to search for import points anew at the selected λ, on all rows, which usually finds better and fewer
        points. False returns the path's own model, as 2001 does (C1 to C5): it keeps the points that larger λ have
        chosen, and does not see the tuning rows. For a single λ without anything to tune, both are the same.
    tuning_loss : {"log-loss", "error"}, default="log-loss"
        The loss on the tuning rows; the paper uses ``"error"``.
    scaling : {"auto", "robust", "quantile", "standard", None}, default="auto"
        How the classifier scales the columns of X. ``"quantile"`` replaces values by the normal scores of their ranks.
        With a learnt kernel, ``"auto"`` lies between ``"robust"`` and ``"quantile"``, where held-out rows suggest. With
        other kernels it is ``"robust"``.
    class_weight : dict, "balanced" or None, default=None
        Factors that multiply the row weights of each class. They shift the prior of the probabilities.
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
        Seed for the choice of tuning rows and candidates.
    categorical_features : "from_dtype", None, mask, or sequence of column numbers or names, default="from_dtype"
        Which columns hold categories, of which only equality counts. ``"from_dtype"`` takes categorical, string and
        boolean columns of a data frame, except strings that are numbers; None takes none. Numbers and categories may
        be missing.

    Attributes
    ----------
    classes_ : array of class labels, or of tag names or numbers.
    import_indices_ : array (q,): indices of the import points in X, in the order in which they were added; for a
        source, of the first rows equal to them. Not set for a Dask collection, whose rows have no indices.
    centers_ : array (q, d): the import points, or their column numbers for a precomputed kernel.
    coef_, intercept_ : arrays (q, n_classes) and (n_classes,).
    kernel_, width_, ridge_ : the selected values.
    path_ : dict of columns ridge, objective (the sum that 2001 calls H), n_points, tuning_error, tuning_log_loss and
        seconds, with one entry for each λ of the path that selected ``ridge_``.
    growth_ : dict of columns ridge, n_points and objective, with one entry for each step of the search that found the
        import points; for a source, the objective is the one predicted in each round.
    loo_scores_, loo_proba_ : arrays (n, n_classes): approximate predictions for each training row by a model fitted
        without it, with the same import points. Not available for a source of rows.
    oof_proba_ : array (n, n_classes), if the kernel was learnt: the probabilities of each training row by a model that
        never saw its outer fold. Unlike ``loo_proba_``, they chose no more than the number of steps: use them to
        judge the model. Above 4,000 rows, one row in five has them, and the others, which learn the kernel, are NaN.
    feature_importances_, fold_importances_ : arrays (n_features,) and (n_folds, n_features), if the kernel was learnt:
        the share of each column in the distances of the kernel, and of those learnt without each outer fold (above
        4,000 rows, in two runs).
    learning_curve_ : dict of columns steps, leave_one_out and out_of_fold, if the kernel was learnt.
    n_iter_ : number of steps of that search.
    n_passes_ : number of passes over a source in the search, not counting one for the summary of the rows and one that
        finds the indices of the import points.
    scaling_, basis_, link_ : the fitted parts.
    columns_ : for a table with categories or missing values, what the model remembers of each column; else None.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    References
    ----------
    J. Zhu and T. Hastie (2001), Kernel logistic regression and the import vector machine.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kproba import ImportVectorMachine
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = ImportVectorMachine(random_state=0).fit(X, y)
    >>> round(clf.score(X, y), 2), len(clf.import_indices_)
    (0.98, 23)
    """

    #: whether a fit computes leave-one-out scores, which models of outer folds do without
    _leaves_one_out = True

    def __init__(
        self,
        kernel: KernelLike = "auto",
        width: WidthLike = "auto",
        ridge: Literal["path"] | RidgeLike = "path",
        search: Literal["one-step", "exact"] | str = "one-step",
        tol: float = 1e-3,
        lookback: int = 3,
        max_points: Literal["auto"] | str | int | None = "auto",
        candidates: Literal["auto", "all"] | str | int = "auto",
        tuning_fraction: float = 0.25,
        refit: bool = True,
        tuning_loss: Literal["log-loss", "error"] | str = "log-loss",
        scaling: ScalingName = "auto",
        class_weight: ClassWeight = None,
        device: DeviceLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
        categorical_features: CategoricalFeatures = "from_dtype",
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.ridge = ridge
        self.search = search
        self.tol = tol
        self.lookback = lookback
        self.max_points = max_points
        self.candidates = candidates
        self.tuning_fraction = tuning_fraction
        self.refit = refit
        self.tuning_loss = tuning_loss
        self.scaling = scaling
        self.class_weight = class_weight
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
        tuning: tuple[Inputs, Targets] | None = None,
        *,
        classes: ArrayLike | None = None,
        checkpoint: PathLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """
        tuning : pair (X, y) of arrays, optional
            Rows to select λ and the width on, instead of a part of X; the model is then fitted to X alone.
        """
        self._check_parameters()
        self._forget("import_indices_", "n_passes_")
        data = read(self, X, y, sample_weight, classes, checkpoint, groups)
        table = prepare(self, data)
        self.scaling_ = table.scaling
        given = None if tuning is None else Tuning(self._exact_rows(self._read_tuning(tuning, data.rows)))
        with Progress(self.verbose, title=type(self).__name__) as progress:
            with one_blas_thread():
                rows = self._exact_rows(data.rows)
                kernel, path = self._choose_kernel(table.kernels, rows, given, data.seed, progress)
            search = self._search_source if data.is_sample else self._search_memory
            if path is not None and not self.refit:
                search = self._keep_path
            final, points, rows = search(data, kernel, path, given, progress)
        self._store_points(final, points, rows)
        store_learnt(self, table, data)
        if data.has_groups:
            self._store_leave_one_out(self._without_groups(final, kernel, data), data)
        elif not data.is_sample and self._leaves_one_out:
            self._store_leave_one_out(self._held_out(final.model, rows, data.rows), data)
        self._warn_if_cut(final.points[-1])
        data.finish()
        return self

    def _search_memory(self, data: Training, kernel: Kernel, path, given: Tuning | None, progress: Progress):
        """Search for import points among all rows, which are in memory."""
        points, ridges = self._for_all_rows(path, data.rows.total_weight)
        # the products of one step are too small for BLAS threads, which would wait for each other: split the rows
        with one_blas_thread():
            split = _Split(self._exact_rows(data.rows), given)
            final = self._run(split, kernel, data.seed, progress, n_workers(self.n_jobs), ridges)
        self.import_indices_ = data.rows.number[final.model.chosen]
        return final, points or final.points, data.rows

    def _keep_path(self, data: Training, kernel: Kernel, path: _Run, given: Tuning | None, progress: Progress):
        """The path's own model at the best λ (2001 C1–C5), fitted to the training rows."""
        with one_blas_thread():
            split = self._split(self._exact_rows(data.rows), given, data.seed)
            if len(split.rows) > len(path.model.task):  # a sample has chosen the kernel
                path = self._run(split, kernel, data.seed, progress, n_workers(self.n_jobs))
        final = path.down_to(self._best_of(path.points, path.tuning))
        rows = final.model.task.rows
        self.import_indices_ = rows.number[final.model.chosen]
        return final, path.points, rows.replace_inputs(data.rows.X[_positions(rows, data.rows)])

    def _held_out(self, model: ImportModel, trained: Rows, rows: Rows) -> np.ndarray:
        """Scores of each row by the model without it, which is the model itself for rows it was not trained on."""
        scores = model.task.loss.scores(leave_one_out(model))
        if len(trained) == len(rows):
            return scores
        out = _scores(model, self._exact_rows(rows))
        out[_positions(trained, rows)] = scores
        return out

    def _without_groups(self, final: _Run, kernel: Kernel, data: Training) -> np.ndarray:
        """Scores of each row by a search at the same λ without the fold of its group."""
        rows, ridge = self._exact_rows(data.rows), final.points[-1].ridge
        fold = stratified_folds(rows, FOLDS, data.seed)
        out, progress = np.empty((len(rows), rows.n_classes)), Progress(0)
        with one_blas_thread():
            for inside in (np.flatnonzero(fold == number) for number in range(fold.max() + 1)):
                rest = rows.without(inside)
                unit = rows.total_weight / rest.total_weight if isinstance(self.ridge, str) else 1.0
                run = self._run(_Split(rest, None), kernel, data.seed, progress, n_workers(self.n_jobs), [unit * ridge])
                out[inside] = _scores(run.model, rows.take(inside))
        return out

    def _search_source(self, data: Training, kernel: Kernel, path, given: Tuning | None, progress: Progress):
        """Search by passes over all rows of a source; the candidates are a sample of the rows."""
        points, ridges = self._for_all_rows(path, data.source.total_weight)
        rows = subsample(data.rows, PROPOSING_ROWS, data.seed)
        final = self._run_all(_Split(self._exact_rows(rows), given), kernel, data.seed, ridges, data.source)
        if not hasattr(data.source.source, "reduce"):  # the rows of a Dask collection have no indices
            found = data.source.sum(FirstRowsOf(rows.X[final.model.chosen]), "import points")
            self.import_indices_ = found.first
        return final, points or final.points, rows

    def _reasons_for_memory(self) -> Iterator[str]:
        yield from super()._reasons_for_memory()
        if self.search == "exact":
            yield "search='exact' fits every candidate to all rows, which must be in memory; use search='one-step'."
        if isinstance(self.candidates, str) and self.candidates == "all":
            yield "candidates='all' considers all rows in every step, which must be in memory; use candidates='auto'."

        if not self.refit:
            yield "refit=False follows the path on all rows, which must be in memory; use refit=True."

    def _exact_rows(self, rows: Rows) -> Rows:
        """Scaled rows in double precision, since a kernel matrix may be indefinite in single precision."""
        scaled = scaled_rows(rows, self.scaling_)
        return scaled if self._is_precomputed else scaled.replace_inputs(scaled.X.astype(np.float64))

    def _for_all_rows(self, path: _Run | None, total_weight: float):
        """The points of the path and its best ridge, in units of all rows; None for a fixed ridge."""
        if path is None:
            return None, None
        # 2001's λ multiplies a sum over the rows and does not change with their number; a ridge set by the user does
        unit = path.model.task.rows.total_weight / total_weight if isinstance(self.ridge, str) else 1.0
        points = [point._replace(ridge=unit * point.ridge) for point in path.points]
        return points, [self._best_of(points, path.tuning).ridge]

    def _best_of(self, points: Sequence[PathPoint], tuning: Tuning | None) -> PathPoint:
        if isinstance(self.ridge, str) and tuning is not None:
            return noticeable_best_of(points, self.tuning_loss, float(tuning.rows.n_copies.sum()))
        return best_of(points, self.tuning_loss)

    @property
    def _has_one_ridge(self) -> bool:
        return np.ndim(self.ridge) == 0 and not isinstance(self.ridge, str)

    def _choose_kernel(self, kernels, rows: Rows, given: Tuning | None, seed: int, progress: Progress):
        """The best kernel and width on the tuning rows, and their path; None if there is nothing to select.

        With many rows, a small sample selects the width of each kernel, and a larger one the kernel and the ridge.
        """
        widths = TimesMedian(WIDTHS) if _is_auto(self.width) else self.width
        widths = TimesMedian((1.0,)) if isinstance(widths, str) else widths
        candidates = width_candidates(kernels, widths, rows, seed)
        split = self._split(rows, given, seed)
        if len(candidates) > len(kernels) and split.rows.n_distinct > SCREEN_ROWS:
            found = self._side_by_side(_sampled(rows, split, SCREEN_ROWS, seed), candidates, seed, progress)
            names = dict.fromkeys(kernel.name for kernel in candidates)
            candidates = [self._pick([f for f in found if f[0].name == name], LEVEL)[0] for name in names]
        if len(candidates) == 1 and self._has_one_ridge:
            return candidates[0], None
        sample = _sampled(rows, split, PATH_ROWS, seed)
        found = self._side_by_side(sample, candidates, seed, progress)
        kernel, path = self._pick(found, 0.0 if sample is split else LEVEL)
        return kernel, None if self._has_one_ridge else path

    def _side_by_side(self, split: _Split, candidates, seed: int, progress: Progress) -> list[tuple[Kernel, _Run]]:
        """The paths of several kernels, each on its own thread."""
        workers = n_workers(self.n_jobs)
        each = workers if len(candidates) == 1 else 1
        runs = map_independent(lambda k: self._run(split, k, seed, progress, each), candidates, workers)
        return list(zip(candidates, runs))

    def _pick(self, found: list[tuple[Kernel, _Run]], level: float) -> tuple[Kernel, _Run]:
        """The candidate with the smallest loss; among those equal on a sample, the last kernel and narrowest width.

        All rows with their points resolve more than the sample, so rougher kernels gain more from them. If several
        candidates classify the tuning rows with certainty, the one with the fewest points wins.
        """

        def loss(item) -> float:
            best = best_of(item[1].points, self.tuning_loss)
            return best.tuning_error if self.tuning_loss == "error" else max(best.tuning_log_loss, LOSS_FLOOR)

        def rank(item) -> tuple[float, float, float]:
            is_sure = self.tuning_loss != "error" and loss(item) <= LOSS_FLOOR
            n_points = best_of(item[1].points, self.tuning_loss).n_points if is_sure else 0
            return float(f"{loss(item):.6g}"), n_points, -(item[0].width or 0.0)

        best = min(found, key=rank)
        if not level:
            return best
        near = [item for item in found if loss(item) <= (1.0 + level) * loss(best)]
        last = [item for item in near if item[0].name == near[-1][0].name]
        return min(last, key=lambda item: item[0].width or 0.0)

    def _split(self, rows: Rows, given: Tuning | None, seed: int) -> _Split:
        if given is not None:
            return _Split(rows, given)
        train, tune = tuning_split(rows, self.tuning_fraction, seed)
        return _Split(train, Tuning(tune))

    def _run(self, split: _Split, kernel: Kernel, seed: int, progress: Progress, workers: int, ridges=None) -> _Run:
        """The path of one kernel over the given ridges, by default all of them."""
        task = self._task(split.rows, kernel, workers)
        pool, growth = Pool(task, self.candidates, seed), Growth()
        settings = Settings(SEARCHES[self.search], self.tol, self.lookback, self._most_points(split.rows.n_distinct))
        is_default = isinstance(self.ridge, str)
        ridges = ridges or self._ridges(task, seed)
        model, points = follow(task, pool, ridges, settings, split.tuning, is_default, growth, progress)
        return _Run(model, points, growth, split.tuning)

    def _run_all(self, split: _Split, kernel: Kernel, seed: int, ridges, everything: AllRows) -> _Run:
        """Search by passes over all rows, with the rows of the split as candidates."""
        task, growth = self._task(split.rows, kernel, n_workers(self.n_jobs)), Growth()
        (ridge,) = ridges or self._ridges(task, seed)
        affordable = min(MOST_POINTS, MOST_COEFFICIENTS // (len(everything.classes) - 1))  # in passes over all rows
        most = self._most_points(everything.n_rows, affordable)
        settings = Settings(SEARCHES[self.search], self.tol, self.lookback, most)
        search = StreamedSearch(task, ridge, settings, everything, everything.encoding(self.scaling_), self.device_)
        model, point = search.run(self.candidates, seed, growth)
        if split.tuning is not None:
            error, loss = split.tuning(model)
            point = point._replace(tuning_error=error, tuning_log_loss=loss)
        self.n_passes_ = search.n_passes
        return _Run(model, [point], growth)

    def _task(self, rows: Rows, kernel: Kernel, workers: int) -> Task:
        loss = Tags(rows.n_classes) if rows.is_multilabel else Multinomial(rows.n_classes)
        if kernel.is_projected:
            kernel = project_indefinite(kernel, rows.take(sample_rows(rows, LANDMARKS, 0)).X, workers)
        return Task(rows, kernel, loss, workers)

    def _most_points(self, n_rows: int, affordable: float = np.inf) -> int | None:
        if not isinstance(self.max_points, str):
            return self.max_points
        return max(FEW_POINTS, round(min(affordable, POINTS_BY_ROOT * np.sqrt(n_rows))))

    def _ridges(self, task: Task, seed: int) -> list[float]:
        """The user's ridges from large to small, or those of 2001 in units of the kernel.

        In 2001, λ multiplies a sum over the rows, and f = √2·U for two classes, so its λ is nλ/2 here.
        """
        if not isinstance(self.ridge, str):
            return sorted((float(ridge) for ridge in np.atleast_1d(self.ridge)), reverse=True)
        sample = sample_rows(task.rows, UNIT_ROWS, seed)
        size = float(np.abs(np.diagonal(task.columns(sample)[sample])).mean())
        return [2.0 * np.exp(float(e)) * (size or 1.0) / task.rows.total_weight for e in EXPONENTS_2001]

    def _store_points(self, final: _Run, path: Sequence[PathPoint], rows: Rows) -> None:
        """Set the fitted attributes as NumPy arrays."""
        model, task, loss = final.model, final.model.task, final.model.task.loss
        self.ridge_ = model.ridge / rows.total_weight
        own, centers = rows.X[model.chosen], task.points(model.chosen)
        is_table = not self._is_precomputed and not isinstance(own, Items)
        if is_table:  # keep the user's precision
            centers = own if self.scaling_ is None else self.scaling_(own)
        self._store_basis(Basis(task.kernel, centers, workers=task.workers), rows)
        self.centers_ = self._decoded(own) if is_table else self.centers_
        self.coef_, self.intercept_ = loss.scores(model.coef), loss.scores(model.beta[:1])[0]
        self.link_ = Sigmoid() if rows.is_multilabel else Softmax()
        names = ("ridge", "objective", "n_points", "tuning_error", "tuning_log_loss", "seconds")
        self.path_ = {name: np.array([getattr(point, name) for point in path]) for name in names}
        self.growth_ = final.growth.columns()
        self.n_iter_ = len(model.chosen)

    def _warn_if_cut(self, point: PathPoint) -> None:
        if point.is_cut and not _is_auto(self.max_points):
            warn(
                f"max_points={self.max_points} stopped the search before it converged: the last relative change of the "
                f"objective was {point.gain:.2g} and tol={self.tol:g}. Increase max_points, tol or ridge.",
                ConvergenceWarning,
            )

    def _read_tuning(self, tuning, rows: Rows) -> Rows:
        """The user's tuning rows, with labels encoded as for the training rows."""
        if not isinstance(tuning, tuple | list) or len(tuning) != 2:
            raise TypeError("tuning must be a pair (X, y) of rows and their labels.")
        try:
            X, (classes, labels) = self._check_inputs(tuning[0], reset=False), encode_labels(tuning[1])
        except ValueError as error:
            raise ValueError(f"tuning: {error}") from error
        if X.shape[0] != len(labels):
            raise ValueError(f"tuning: X has {X.shape[0]} rows but y has {len(labels)}.")
        if labels.ndim != rows.labels.ndim or (rows.is_multilabel and labels.shape[1] != rows.n_classes):
            raise ValueError(f"tuning: y has shape {labels.shape}, which does not match the training y.")
        if not rows.is_multilabel:
            labels = self._known_classes(classes)[labels]
        factor = class_factors(self.class_weight, self.classes_, labels, np.ones(len(labels)))
        return Rows.of(X, labels, np.ones(len(labels)), rows.n_classes, factor)

    def _known_classes(self, classes: np.ndarray) -> np.ndarray:
        """Class codes of the tuning set's classes, which must be the same as those of the training rows."""
        codes = encode(classes, self.classes_, "tuning: y has the class {!r}, which the training y does not have.")
        absent = np.setdiff1d(self.classes_, classes)
        if len(absent):
            raise ValueError(
                f"tuning: y has no row of class {absent.tolist()[0]!r}; every class needs at least one tuning row."
            )
        return codes

    def _check_parameters(self) -> None:
        """Raise an error for invalid parameters before any work is done."""
        as_kernels(self.kernel)
        check_choice("search", self.search, tuple(SEARCHES))
        check_choice("tuning_loss", self.tuning_loss, ("log-loss", "error"))
        check_choice("scaling", self.scaling, SCALINGS)
        if not isinstance(self.width, TimesMedian):
            check_positive("width", self.width, words=("auto", "median"))
        check_positive("ridge", self.ridge, words=("path",), largest=LARGEST_RIDGE)
        check_fraction("tol", self.tol)
        check_fraction("tuning_fraction", self.tuning_fraction)
        check_flag("refit", self.refit)
        check_count("lookback", self.lookback)
        if self.max_points is not None and not _is_auto(self.max_points):
            check_count("max_points", self.max_points)
        if isinstance(self.candidates, str):
            check_choice("candidates", self.candidates, ("auto", "all"))
        else:
            check_count("candidates", self.candidates)


def _sampled(rows: Rows, split: _Split, size: int, seed: int) -> _Split:
    """A sample of the training rows, and other rows to tune on; the split itself if it is small enough."""
    few = subsample(split.rows, size, seed)
    if few is split.rows:
        return split
    given = split.tuning.rows if split.tuning else rows
    others = given if len(split.rows) == len(rows) else rows.take(np.flatnonzero(~np.isin(rows.keys, few.keys)))
    return _Split(few, Tuning(subsample(others, JUDGING_ROWS, seed)))


def _scores(model: ImportModel, rows: Rows) -> np.ndarray:
    """The scores of scaled rows."""
    columns = Tuning(rows).columns(model.task, model.chosen)
    return model.task.loss.scores(columns @ model.coef + model.beta[0])


def _positions(part: Rows, rows: Rows) -> np.ndarray:
    """The positions of some of the rows among all of them."""
    order = np.argsort(rows.number)
    return order[np.searchsorted(rows.number, part.number, sorter=order)]


def _is_auto(value) -> bool:
    return isinstance(value, str) and value == "auto"
