"""The import vector machine."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ..basis.basis import Basis
from ..data.all_rows import AllRows
from ..data.items import Items
from ..data.labels import class_factors, encode_labels
from ..data.rows import Rows
from ..data.sampling import sample_rows, subsample
from ..exceptions import ConvergenceWarning
from ..kernels import Kernel, as_kernels
from ..kernels.projected import project_indefinite
from ..links import Sigmoid, Softmax
from ..problems.import_vectors import (
    LOSS_FLOOR,
    SEARCHES,
    FirstRowsOf,
    Growth,
    ImportModel,
    PathPoint,
    Pool,
    Settings,
    StreamedSearch,
    Task,
    Tuning,
    best_of,
    follow,
    leave_one_out,
    tuning_split,
)
from ..problems.losses import Multinomial, Tags
from ..progress import Progress
from ..search.choose import UNIT_ROWS
from ..search.widths import TimesMedian, width_candidates
from ..threads import map_independent, n_workers, one_blas_thread
from ..typing import (
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
from ..validation import LARGEST_RIDGE, check_choice, check_count, check_fraction, check_positive
from ._base import KernelClassifier
from ._prepared import prepare, scaled_rows
from ._reading import Training, read

#: 2001 Fig. 2: λ from e^10 down to e^-10.
EXPONENTS_2001 = range(10, -11, -1)
#: Multiples of the median distance that are tried. Narrow kernels need more points than there will be.
WIDTHS = (0.6, 1.2, 2.5, 5.0)
#: Widths are compared by models of at most so many distinct rows, kernels and ridges by models of the second number,
#: on at most the third number of others.
SCREEN_ROWS, PATH_ROWS, JUDGING_ROWS = 750, 2000, 4000
#: Losses on a sample that differ by less than this share are level.
LEVEL = 0.05
#: max_points="auto": so many times the root of the number of distinct rows, but no fewer than the second number.
POINTS_BY_ROOT, FEW_POINTS = 1.2, 50
#: Where passes over a source find the points, "auto" allows at most so many, and so many coefficients: the time of a
#: pass grows with their square.
MOST_POINTS, MOST_COEFFICIENTS = 500, 1500
#: Distinct rows of the sample that propose points for all rows.
PROPOSING_ROWS = 10_000
#: Rows by which a kernel that is not positive semi-definite is made so.
LANDMARKS = 2000


class _Split(NamedTuple):
    """Rows to train on, and the rows that tune, if there are any."""

    rows: Rows
    tuning: Tuning | None


class _Run(NamedTuple):
    """A path: its last model, its points, and every step."""

    model: ImportModel
    points: list[PathPoint]
    growth: Growth


class ImportVectorMachine(KernelClassifier):
    r"""Import vector machine: kernel logistic regression on a few import points.

    Minimises, over the coefficients of the import points S and over S itself, which grows one row at a time,

    .. math:: \frac1n\sum_i -\log p_{y_i}(x_i) + \frac{\lambda}{2}\sum_j \theta_j^\top K_{SS}\,\theta_j,
        \qquad p(x) = \mathrm{softmax}\bigl(o + {\textstyle\sum_{l \in S}} \theta_l k(x, x_l)\bigr)

    (2001 Eq. 6 and 9, with a constant o that is not penalised). The next point is the row that lowers the objective
    most; no more are added once a point changes it by less than ``tol``. The probabilities are those of the model.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="auto"
        ``"auto"`` lets the tuning rows choose between the Gaussian of 2001 and the Laplacian. A callable takes
        ``(X, Z)`` and returns the (n, b) kernel values; it must be symmetric and positive definite.
        Names are ``"auto"``, ``"gaussian"``, ``"laplacian"``, ``"matern12"``, ``"matern32"``, ``"matern52"``,
        ``"linear"``, ``"polynomial"``, ``"precomputed"``; for histograms ``"chi2"`` and ``"intersection"``; for lists
        of sequences, time series and strings ``"hidden-markov"``, ``"alignment"`` and ``"spectrum"``.
    width : "auto", "median", float, sequence of floats or TimesMedian, default="auto"
        Kernel width in scaled columns: chosen by the tuning rows among multiples of the median distance, set to that
        distance, given, or chosen among those given.
    ridge : "path", float or sequence of floats, default="path"
        The λ above. ``"path"`` goes from e^10 to e^-10 in the units of 2001, which are n·λ/2, and ends early once
        the tuning rows gain no more; several values are all run, from large to small. One value needs no tuning.
    search : {"one-step", "exact"}, default="one-step"
        How a candidate is judged: by its objective after one Newton step (2001 B2*), or fitted to convergence (B2),
        which takes rows in memory.
    tol, lookback : float and int, default=1e-3 and 3
        The search ends once :math:`|H_k - H_{k-r}|/|H_k|` < tol, where r is ``lookback`` (2001 Sec. 3.3, where r is 1
        for an example; more is steadier where candidates are drawn). The first r points are judged in proportion.
    max_points : "auto", int or None, default="auto"
        Most import points. ``"auto"`` is 50, or 1.2 times the root of the number of distinct rows if that is more;
        None sets no limit. A warning says if a number that was given ended the search. From a source of rows
        ``"auto"`` is at most 500, and at most 1,500/(n_classes − 1).
    candidates : "auto", "all" or int, default="auto"
        Rows that are looked at in every step: all distinct ones, or a subset of which a quarter changes from step to
        step. ``"auto"`` takes all up to 1,000 and then 100. A round over a source looks at 1,000 rows of its sample,
        or at more if a larger number is given, up to 4,000; ``"all"`` takes rows in memory.
    tuning_fraction : float, default=0.25
        Share of the rows held back to choose λ and the width. The final search is on all rows.
    tuning_loss : {"log-loss", "error"}, default="log-loss"
        What the tuning rows choose by; ``"error"`` is that of the paper.
    scaling : {"auto", "robust", "standard", None}, default="auto"
        How columns are scaled inside; ``"auto"`` is ``"robust"``.
    class_weight : dict, "balanced" or None, default=None
        Factors for the weights of rows by class. They move the prior that the probabilities refer to.
    device : None, "cpu", "cuda", "cuda:<number>", default=None
        Where passes over more than 50,000 rows and predictions are computed; needs ``kproba[torch]``. None is NumPy on
        the CPU, and for tensors of PyTorch or CuPy wherever they lie. The model itself is always NumPy.
    n_jobs : int, optional
        Threads. None uses all cores, but no more than BLAS may use, and one in a worker thread of joblib; -1 uses all
        cores in any case.
    verbose : int, default=0
        Show a progress bar (needs ``kproba[progress]``).
    random_state : int, RandomState or None, default=None
        Seed of the tuning rows and of the candidates.

    Attributes
    ----------
    classes_ : array of classes, or of tag names or numbers.
    import_indices_ : array (q,): the rows of X that are import points, in the order in which they were added; of a
        source, the first rows that equal them. Rows of a Dask collection have no numbers: then it is not set.
    centers_ : array (q, d): the import points, or their column numbers for a precomputed kernel.
    coef_, intercept_ : arrays (q, n_classes) and (n_classes,).
    kernel_, width_, ridge_ : what was chosen.
    path_ : dict of columns ridge, objective (the sum that 2001 calls H), n_points, tuning_error, tuning_log_loss and
        seconds, one entry for every λ of the path that chose ``ridge_``.
    growth_ : dict of columns ridge, n_points and objective: every step of the search that found the import points; from
        a source, as the rounds predict it.
    loo_scores_, loo_proba_ : arrays (n, n_classes): what the model says of each training row without that row,
        approximately, the import points kept. Not from a source of rows.
    n_iter_ : number of steps of that search.
    n_passes_ : passes over a source that the search took; one more looked at the rows, and one found their numbers.
    scaling_, basis_, link_ : the fitted parts.
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
    >>> clf.score(X, y) > 0.95, len(clf.import_indices_) < 30
    (True, True)
    """

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
        tuning_loss: Literal["log-loss", "error"] | str = "log-loss",
        scaling: ScalingName = "auto",
        class_weight: ClassWeight = None,
        device: DeviceLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
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
        self.tuning_loss = tuning_loss
        self.scaling = scaling
        self.class_weight = class_weight
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self,
        X: Inputs,
        y: Targets = None,
        sample_weight: ArrayLike | None = None,
        tuning: tuple[Inputs, Targets] | None = None,
        *,
        classes: ArrayLike | None = None,
        checkpoint: PathLike | None = None,
    ) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array, frame or CSR matrix of shape (n, d), a list of what the kernel compares, or a source of rows
            A source is a memory map, a Dask array or frame, or what :func:`kproba.open_rows` returns. Rows in memory
            are one too if they are more than 50,000: then a sample of them proposes points, and sums over all decide.
        y : array of shape (n,), or a matrix (n, n_tags) of 0 and 1 for a multi-label problem
            A missing tag is NaN, None or pandas' NA: then the row does not count for it. Files bring their own labels.
        sample_weight : array of shape (n,), optional
            Weight of each row. An integer weight equals so many copies of the row.
        tuning : pair (X, y) of arrays, optional
            Rows that choose λ and the width instead of a part of X; the model is then fitted to X alone.
        classes : sequence, optional
            Classes that the model shall know beside those in y.
        checkpoint : path of a folder, optional
            Where the sums so far are kept while a source is read; the same call goes on from there.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._forget("import_indices_", "n_passes_")
        data = read(self, X, y, sample_weight, classes, checkpoint)
        table = prepare(self, data)
        self.scaling_ = table.scaling
        given = None if tuning is None else Tuning(self._exact_rows(self._read_tuning(tuning, data.rows)))
        with Progress(self.verbose, title=type(self).__name__) as progress:
            kernel, path = self._choose(table.kernels, data, given, progress)
            ridges = None if path is None else [best_of(path, self.tuning_loss).ridge]
            search = self._search_source if data.is_sample else self._search_memory
            final, rows = search(data, kernel, ridges, given, progress)
        self._store_points(final, path or final.points, rows)
        if not data.is_sample:
            self._store_leave_one_out(final.model.task.loss.scores(leave_one_out(final.model)), data)
        self._warn_if_cut(final.points[-1])
        data.finish()
        return self

    def _search_memory(self, data: Training, kernel: Kernel, ridges, given: Tuning | None, progress: Progress):
        """The search for import points among all rows, which are in memory."""
        # products of one step are too small for the threads of BLAS, which wait for each other; rows are shared instead
        with one_blas_thread():
            split = _Split(self._exact_rows(data.rows), given)
            final = self._run(split, kernel, data.seed, progress, n_workers(self.n_jobs), ridges)
        self.import_indices_ = data.rows.number[final.model.chosen]
        return final, data.rows

    def _search_source(self, data: Training, kernel: Kernel, ridges, given: Tuning | None, progress: Progress):
        """The search by passes over all rows of a source, of which a sample proposes points."""
        rows = subsample(data.rows, PROPOSING_ROWS, data.seed)
        final = self._run_all(_Split(self._exact_rows(rows), given), kernel, data.seed, ridges, data.source)
        self._find_import_points(rows.X[final.model.chosen], data.source)
        return final, rows

    def _reasons_for_memory(self) -> Iterator[str]:
        yield from super()._reasons_for_memory()
        if self.search == "exact":
            yield "search='exact' fits every candidate to all rows, which takes rows in memory."
        if isinstance(self.candidates, str) and self.candidates == "all":
            yield "candidates='all' looks at all rows in every step, which takes rows in memory."

    def _exact_rows(self, rows: Rows) -> Rows:
        """Scaled rows in double precision: in single precision a kernel matrix may be indefinite."""
        scaled = scaled_rows(rows, self.scaling_)
        return scaled if self._is_precomputed else scaled.replace_inputs(scaled.X.astype(np.float64))

    def _choose(self, kernels: list[Kernel], data: Training, given: Tuning | None, progress: Progress):
        """The kernel, and the points of the path that chooses its ridge for all rows, if one does."""
        with one_blas_thread():
            kernel, path = self._choose_kernel(kernels, self._exact_rows(data.rows), given, data.seed, progress)
        if path is None:
            return kernel, None
        total_weight = (data.source if data.is_sample else data.rows).total_weight
        # 2001's λ stands before a sum over rows and stays what it is when there are more of them; a user's does not
        unit = path.model.task.rows.total_weight / total_weight if isinstance(self.ridge, str) else 1.0
        return kernel, [point._replace(ridge=unit * point.ridge) for point in path.points]

    @property
    def _has_one_ridge(self) -> bool:
        return np.ndim(self.ridge) == 0 and not isinstance(self.ridge, str)

    def _choose_kernel(self, kernels, rows: Rows, given: Tuning | None, seed: int, progress: Progress):
        """The kernel and width that do best on the tuning rows, and their path; None where there is nothing to choose.

        With many rows a small sample finds the best width of every kernel, and a larger one the kernel and the ridge.
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
        """The paths of several kernels; several run on a thread each."""
        workers = n_workers(self.n_jobs)
        each = workers if len(candidates) == 1 else 1
        runs = map_independent(lambda k: self._run(split, k, seed, progress, each), candidates, workers)
        return list(zip(candidates, runs))

    def _pick(self, found: list[tuple[Kernel, _Run]], level: float) -> tuple[Kernel, _Run]:
        """The smallest loss; of those that a sample finds level, the last kernel and the narrowest width.

        All rows and their points resolve more than the sample does, so what is rougher gains more from them. Where
        several leave nothing to be told apart, the fewest points win.
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
        """The path of one kernel, over all ridges or over these."""
        task = self._task(split.rows, kernel, workers)
        pool, growth = Pool(task, self.candidates, seed), Growth()
        settings = Settings(SEARCHES[self.search], self.tol, self.lookback, self._most_points(split.rows))
        is_default = isinstance(self.ridge, str)
        ridges = ridges or self._ridges(task, seed)
        model, points = follow(task, pool, ridges, settings, split.tuning, is_default, growth, progress)
        return _Run(model, points, growth)

    def _run_all(self, split: _Split, kernel: Kernel, seed: int, ridges, everything: AllRows) -> _Run:
        """The search by passes over all rows, for which those of the split propose points."""
        task, growth = self._task(split.rows, kernel, n_workers(self.n_jobs)), Growth()
        (ridge,) = ridges or self._ridges(task, seed)
        settings = Settings(SEARCHES[self.search], self.tol, self.lookback, self._most_points_of_all(everything))
        search = StreamedSearch(task, ridge, settings, everything, everything.encoding(self.scaling_), self.device_)
        model, point = search.run(self.candidates, seed, growth)
        if split.tuning is not None:
            error, loss = split.tuning(model)
            point = point._replace(tuning_error=error, tuning_log_loss=loss)
        self.n_passes_ = search.n_passes
        return _Run(model, [point], growth)

    def _find_import_points(self, points: np.ndarray, everything: AllRows) -> None:
        """The numbers of the first rows that equal the import points; partitions of a cluster have no numbers."""
        if not hasattr(everything.source, "reduce"):
            self.import_indices_ = everything.sum(FirstRowsOf(points), "import points").first

    def _task(self, rows: Rows, kernel: Kernel, workers: int) -> Task:
        loss = Tags(rows.n_classes) if rows.is_multilabel else Multinomial(rows.n_classes)
        if kernel.is_projected:
            kernel = project_indefinite(kernel, rows.take(sample_rows(rows, LANDMARKS, 0)).X, workers)
        return Task(rows, kernel, loss, workers)

    def _most_points(self, rows: Rows) -> int | None:
        if not isinstance(self.max_points, str):
            return self.max_points
        return max(FEW_POINTS, round(POINTS_BY_ROOT * np.sqrt(rows.n_distinct)))

    def _most_points_of_all(self, everything: AllRows) -> int | None:
        """The same by the number of all rows, as far as passes over them can afford it."""
        if not isinstance(self.max_points, str):
            return self.max_points
        affordable = min(MOST_POINTS, MOST_COEFFICIENTS // (len(everything.classes) - 1))
        return max(FEW_POINTS, min(affordable, round(POINTS_BY_ROOT * np.sqrt(everything.n_rows))))

    def _ridges(self, task: Task, seed: int) -> list[float]:
        """The user's ridges from large to small, or those of 2001 in units of the kernel.

        2001 has λ before the sum over rows, and f = √2·U for two classes: its λ is nλ/2 here.
        """
        if not isinstance(self.ridge, str):
            return sorted((float(ridge) for ridge in np.atleast_1d(self.ridge)), reverse=True)
        sample = sample_rows(task.rows, UNIT_ROWS, seed)
        size = float(np.abs(np.diagonal(task.columns(sample)[sample])).mean())
        return [2.0 * np.exp(float(e)) * (size or 1.0) / task.rows.total_weight for e in EXPONENTS_2001]

    def _store_points(self, final: _Run, path: Sequence[PathPoint], rows: Rows) -> None:
        """Keep what prediction needs and what was learnt on the way, as NumPy arrays."""
        model, task, loss = final.model, final.model.task, final.model.task.loss
        self.ridge_ = model.ridge / rows.total_weight
        own, centers = rows.X[model.chosen], task.points(model.chosen)
        is_table = not self._is_precomputed and not isinstance(own, Items)
        if is_table:  # in the user's precision
            centers = own if self.scaling_ is None else self.scaling_(own)
        self._store_basis(Basis(task.kernel, centers, workers=task.workers), rows)
        self.centers_ = own if is_table else self.centers_
        self.coef_, self.intercept_ = loss.scores(model.coef), loss.scores(model.beta[:1])[0]
        self.link_ = Sigmoid() if rows.is_multilabel else Softmax()
        names = ("ridge", "objective", "n_points", "tuning_error", "tuning_log_loss", "seconds")
        self.path_ = {name: np.array([getattr(point, name) for point in path]) for name in names}
        self.growth_ = final.growth.columns()
        self.n_iter_ = len(model.chosen)

    def _warn_if_cut(self, point: PathPoint) -> None:
        if point.is_cut and not _is_auto(self.max_points):
            warnings.warn(
                f"max_points={self.max_points} ended the search before the stopping rule did: the last change of the "
                f"objective was {point.gain:.2g} of it, tol={self.tol:g}. Allow more points, or a larger tol or ridge.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _read_tuning(self, tuning, rows: Rows) -> Rows:
        """The user's tuning rows, with the class numbers of the training rows."""
        if not isinstance(tuning, tuple | list) or len(tuning) != 2:
            raise TypeError("tuning must be a pair (X, y) of rows and their classes.")
        try:
            X, (classes, labels) = self._check_inputs(tuning[0], reset=False), encode_labels(tuning[1])
        except ValueError as error:
            raise ValueError(f"tuning: {error}") from error
        if X.shape[0] != len(labels):
            raise ValueError(f"tuning: X has {X.shape[0]} rows but y has {len(labels)}.")
        if labels.ndim != rows.labels.ndim or (rows.is_multilabel and labels.shape[1] != rows.n_classes):
            raise ValueError(f"tuning: its y has shape {labels.shape}, which does not go with the training y.")
        if not rows.is_multilabel:
            labels = self._known_classes(classes)[labels]
        factor = class_factors(self.class_weight, self.classes_, labels, np.ones(len(labels)))
        return Rows.of(X, labels, np.ones(len(labels)), rows.n_classes, factor)

    def _known_classes(self, classes: np.ndarray) -> np.ndarray:
        """The numbers of the tuning set's classes: all that there are, and no others."""
        unknown, absent = np.setdiff1d(classes, self.classes_), np.setdiff1d(self.classes_, classes)
        if len(unknown):
            raise ValueError(f"tuning: y has the class {unknown.tolist()[0]!r}, which the training y does not have.")
        if len(absent):
            raise ValueError(
                f"tuning: y has no row of class {absent.tolist()[0]!r}; every class needs a row to tune by."
            )
        return np.searchsorted(self.classes_, classes)

    def _check_parameters(self) -> None:
        """Refuse what has no meaning before any work is done."""
        as_kernels(self.kernel)
        check_choice("search", self.search, tuple(SEARCHES))
        check_choice("tuning_loss", self.tuning_loss, ("log-loss", "error"))
        check_choice("scaling", self.scaling, ("auto", "standard", "robust", None))
        if not isinstance(self.width, TimesMedian):
            check_positive("width", self.width, words=("auto", "median"))
        check_positive("ridge", self.ridge, words=("path",), largest=LARGEST_RIDGE)
        check_fraction("tol", self.tol)
        check_fraction("tuning_fraction", self.tuning_fraction)
        check_count("lookback", self.lookback)
        if self.max_points is not None and not _is_auto(self.max_points):
            check_count("max_points", self.max_points)
        if isinstance(self.candidates, str):
            check_choice("candidates", self.candidates, ("auto", "all"))
        else:
            check_count("candidates", self.candidates)


def _sampled(rows: Rows, split: _Split, size: int, seed: int) -> _Split:
    """Some of the training rows, and rows that did not train to tune by; the split itself where it is small."""
    few = subsample(split.rows, size, seed)
    if few is split.rows:
        return split
    given = split.tuning.rows if split.tuning else rows
    others = given if len(split.rows) == len(rows) else rows.take(np.flatnonzero(~np.isin(rows.keys, few.keys)))
    return _Split(few, Tuning(subsample(others, JUDGING_ROWS, seed)))


def _is_auto(value) -> bool:
    return isinstance(value, str) and value == "auto"
