"""What classifiers share that choose kernel, width and ridge by a search: everything but the problem they solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..basis.basis import Basis, MomentsOf
from ..basis.centers import Centers, all_centers, class_centers, subset_centers
from ..basis.device_basis import DeviceBasis
from ..data.items import Items
from ..data.rows import Rows
from ..data.sampling import sample_rows, subsample
from ..kernels import Kernel, Precomputed, as_kernels
from ..messages import did_you_mean
from ..problems.base import Problem
from ..progress import Progress
from ..search.candidates import Candidate
from ..search.record import SearchRecord
from ..search.staged import FEWEST_CENTERS, Search, telling_tags
from ..search.widths import TimesMedian, width_candidates
from ..threads import n_workers
from ..validation import LARGEST_RIDGE, check_choice, check_given_centers, check_positive
from ._base import scaled_rows
from ._sanity import refuse_more_than_memory
from ._streamed import StreamedClassifier

#: With at most this many distinct rows, centers="auto" takes them all; then it grows by the twelfth root, up to
#: the last number (measured in benchmarks/centers.py).
ALL_ROWS, MOST_CENTERS, GROWTH = 2000, 4000, 1 / 12
#: A grid of widths that the user gives is searched on at most this many distinct rows.
GRID_ROWS = 2000
#: partial_fit looks for a better ridge whenever there are so many times the rows.
MORE_ROWS = 2
#: Rows whose k(x, x) tell the size of a kernel without a width.
UNIT_ROWS = 100


class SearchedClassifier(StreamedClassifier):
    """Base of classifiers with ``kernel``, ``width``, ``ridge``, ``centers``, ``selection`` and ``scaling``.

    A subclass says what problem rows and a basis pose (``_problem``), by what loss candidates are compared
    (``_judge``), which ridges are tried (``_ridge_grid``), and which link goes with the winner (``_fit_link``).
    """

    _ridge_grid: Sequence[float]
    _solvers: Sequence[str]

    @property
    def _penalises_by_kernel(self) -> bool:
        """Whether the kernel matrix of the centres has to be positive semi-definite."""
        return True

    @property
    def _link_needs_scores(self) -> bool:
        """Whether the link is fitted on leave-one-out scores."""
        return False

    @property
    def _makes_squares(self) -> bool:
        """Whether a solution takes a matrix of all centres by all centres, whose number is known beforehand."""
        return isinstance(self.centers, str | Integral) and self.centers != "class"

    def _problem(self, rows: Rows, basis: Basis, seed: int) -> Problem:
        raise NotImplementedError

    def _judge(self, rows: Rows):
        raise NotImplementedError

    def _search_options(self, rows: Rows) -> dict:
        """How :class:`~kproba.search.staged.Search` is to go about it, where that differs from its defaults."""
        return {}

    def _ridge_for_more_rows(self, ridge: float, few: float, many: float) -> float:
        """Where to start on ``many`` rows from the ridge that was best for ``few``."""
        return ridge * np.sqrt(few / many)

    def _fit_link(self, held_out, rows: Rows):
        raise NotImplementedError

    def _fit_arrays(self, X, y, sample_weight) -> None:
        rows, place = self._read_rows(X, y, sample_weight)
        n_given = int(np.count_nonzero(place >= 0))
        best = self._fit_rows(rows, self._seed(), n_given, training=X)
        self._store_leave_one_out(best.solution.held_out, X, place)

    def _fit_rows(self, rows: Rows, seed: int, n_rows: int, everything=None, training=None) -> Candidate:
        self._check_against(rows, n_rows)
        kernels, record = as_kernels(self.kernel), SearchRecord()
        if self._is_precomputed:
            kernels = [Precomputed(training=training)]
        scaling = self._fit_scaling(rows, kernels)
        scaled = scaled_rows(rows, scaling)
        kernels = [kernel.prepared(scaled.X, n_workers(self.n_jobs), self.verbose) for kernel in kernels]
        self._check_units(scaled, kernels, scaling, seed)
        with Progress(self.verbose, title=type(self).__name__) as progress:
            density = self._density(rows.n_distinct if everything is None else n_rows)
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
                **self._search_options(rows),
            )
            best, self.scaling_ = self._choose(search, kernels, scaled, scaling)
            if self.scaling_ is not scaling:
                scaled = scaled_rows(rows, self.scaling_)
            best = self._settle(search, best, scaled, self._whole(scaled, n_rows, everything, seed))
        self._store(best, rows, record)
        return best

    def _refit(self, scaled: Rows, rows: Rows, partial) -> None:
        seed, ridge, tried = partial.look.seed, self.ridge_, self.search_results_
        posed: Any = self._problem(scaled, self._basis_here, seed).on(self.device_)
        problem, record = replace(posed, given=partial.moments), SearchRecord()
        with Progress(self.verbose, title=type(self).__name__) as progress:
            search = Search(lambda *_: problem, self._judge(rows), [ridge], seed, record, progress)
            if isinstance(self.ridge, str) and partial.look.n_rows >= MORE_ROWS * partial.n_chosen:
                ridge = search.climb(problem, ridge).solution.ridge
                partial.n_chosen = partial.look.n_rows
            best = self._only(search, problem, ridge)
        self._store(best, rows, record)
        self.search_results_ = tried  # what the first rows decided is still what was decided

    def _whole(self, sample: Rows, n_rows: int, everything, seed: int):
        """How a kernel becomes the problem of all rows: the centres of the sample, and everybody's sums."""
        if everything is None:
            return None
        # as many centres as all rows call for, out of those that the sample has
        pose = self._pose(self.scaling_, min(1.0, self._density(n_rows) * n_rows / sample.n_distinct), seed)

        def whole(kernel: Kernel, ridge: float):
            return self._of_all_rows(pose(sample, kernel).on(self.device_), everything, ridge)

        return whole

    def _of_all_rows(self, problem, everything, ridge: float) -> Problem:
        """The problem of a sample, with the sums of all rows, for ridges about the given one."""
        if isinstance(problem.basis, DeviceBasis):
            problem = replace(problem, basis=problem.basis.for_sums(ridge, problem.rkhs))
        statistic = MomentsOf(problem.basis, everything.encoding(self.scaling_))
        return replace(problem, given=everything.sum(statistic))

    def _pose(self, scaling, density: float, seed: int, problem=None):
        """How rows and a kernel become a ``problem(rows, basis, seed)``, under this estimator's parameters."""
        workers, problem = n_workers(self.n_jobs), problem or self._problem
        given = None
        if not isinstance(self.centers, str | Integral | tuple):
            given = self._given_centers(scaling)
        make = Basis.definite if self._penalises_by_kernel else _plain_basis

        def pose(rows: Rows, kernel: Kernel) -> Problem:
            centers = Centers(given) if given is not None else self._choose_centers(rows, kernel, density, seed)
            return problem(rows, make(kernel, centers, workers), seed)

        return pose

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

    def _density(self, n: int) -> float:
        """Centres to the distinct row, of which there are n."""
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
            return search.grid(subsample(rows, self._grid_rows(rows), search.seed), candidates)[0], scaling
        given = not isinstance(self.centers, str | Integral | tuple)
        relevance = self.scaling == "auto" and not given
        return self._staged(search, telling_tags(rows), candidates, scaling, relevance)

    def _staged(self, search: Search, rows: Rows, kernels: list[Kernel], scaling, relevance: bool):
        """Where everything is to be chosen: the winner and its scaling."""
        return search.staged(rows, kernels, scaling, relevance)

    def _grid_rows(self, rows: Rows) -> int:
        """Distinct rows on which a grid of widths is searched."""
        return GRID_ROWS

    def _settle(self, search: Search, best: Candidate | Kernel, rows: Rows, whole=None) -> Candidate:
        """The chosen kernel and width on all rows, with its ridge; ``whole(kernel, ridge)`` where rows are a sample."""
        if isinstance(best, Kernel):
            ridge = search.ridges[0]
            problem = search.pose(rows, best).on(self.device_) if whole is None else whole(best, ridge)
            return self._only(search, problem, ridge)
        is_whole = len(best.problem.rows) == len(rows) and best.problem.rows.n_classes == rows.n_classes
        if whole is None and is_whole and best.solution.held_out is not None:
            return best
        if whole is None:
            problem = search.pose(rows, best.kernel).on(self.device_)
        else:
            problem = whole(best.kernel, best.solution.ridge)
        if self.selection == "cv":
            return self._only(search, problem, best.solution.ridge)
        if not search.any_ridge:
            return replace(search, pose=lambda *_: problem).grid(rows, [best.kernel], "ridge")[0]
        few, many = best.problem.rows.total_weight, problem.total_weight
        size = self._rows_for_ridge(problem)
        if size is not None and rows.n_distinct > size:
            some = search.pose(subsample(rows, size, search.seed), best.kernel)
            ridge = self._climbed(search, some, best.solution.ridge, few).solution.ridge
            some.forget()
            return self._only(search, problem, self._ridge_for_more_rows(ridge, some.total_weight, many))
        climbed = self._climbed(search, problem, best.solution.ridge, few)
        if len(climbed.solution.held_out) == len(rows):
            return climbed
        return self._only(search, problem, climbed.solution.ridge)

    def _climbed(self, search: Search, problem: Problem, ridge: float, few: float) -> Candidate:
        """The best ridge of a problem, from the one that was best for ``few`` rows."""
        return search.climb(problem, self._ridge_for_more_rows(ridge, few, problem.total_weight))

    def _rows_for_ridge(self, problem: Problem) -> int | None:
        """Distinct rows on which the ridge is chosen; None for all of them."""
        return None

    def _only(self, search: Search, problem: Problem, ridge: float) -> Candidate:
        """One ridge and no comparison; leave-one-out only if somebody needs it."""
        free = len(search.record.entries) > 0 and problem.has_cheap_loo
        wanted = self.loo != "auto" or self._link_needs_scores or free
        (solution,) = problem.path([ridge], loo=wanted)
        return Candidate(np.nan, problem.basis.kernel, solution, problem)

    def _store(self, best: Candidate, rows: Rows, record: SearchRecord) -> None:
        """Keep what prediction needs and what was learnt on the way, as NumPy arrays."""
        solution = best.solution
        self._store_basis(best.problem.basis, rows)
        self.ridge_, self.coef_, self.intercept_ = float(solution.ridge), solution.coef(), solution.intercept
        self.link_ = self._fit_link(solution.held_out, rows)
        self.search_results_ = record.columns()
        if solution.n_iter is not None:
            self.n_iter_ = solution.n_iter

    def _ridge_unit(self, size: float) -> float:
        """The unit of the ridge where k(x, x) is about ``size``."""
        return size

    def _ridges(self, kernels: list[Kernel], rows: Rows, seed: int) -> list[float]:
        """The user's ridges, or the default ones in units of the kernel, which is one where k(x, x) = 1."""
        if not isinstance(self.ridge, str):
            return [float(ridge) for ridge in np.atleast_1d(self.ridge)]
        if kernels[0].has_width:
            return list(self._ridge_grid)
        sample = rows.take(sample_rows(rows, UNIT_ROWS, seed))
        points = sample.number if self._is_precomputed else sample.X
        size = float(np.abs(np.diagonal(kernels[0](sample.X, points))).mean())
        return [ridge * (self._ridge_unit(size) if size > 0 else 1.0) for ridge in self._ridge_grid]

    def _check_parameters(self) -> list[Kernel]:
        kernels = super()._check_parameters()
        check_choice("solver", self.solver, self._solvers)
        check_positive("ridge", self.ridge, words=("auto",), largest=LARGEST_RIDGE)
        _check_center_mode(self.centers)
        return kernels

    def _refuse_for_source(self) -> None:
        super()._refuse_for_source()
        if isinstance(self.centers, str) and self.centers != "auto":
            raise ValueError(
                f"centers={self.centers!r} has a centre for every row, which a source of rows has no room for; use "
                "'auto', a number, or an array of points."
            )

    def _check_against(self, rows: Rows, n_given: int) -> None:
        """Refuse parameters that do not fit the data."""
        if isinstance(self.centers, int | np.integer) and self.centers > n_given:
            raise ValueError(
                f"centers={self.centers} is more than the {n_given} rows of X that have a positive weight; "
                f"use centers='all' or a smaller number."
            )
        if not isinstance(self.centers, str | Integral | tuple) and not isinstance(rows.X, Items):
            check_given_centers(self.centers, rows.X.shape[1], self._is_precomputed)
        if self._makes_squares and self.device_ is None:
            refuse_more_than_memory(round(self._density(rows.n_distinct) * rows.n_distinct))


def _plain_basis(kernel: Kernel, centers: Centers, workers: int) -> Basis:
    return Basis(kernel, *centers, workers=workers)


def auto_centers(n: int) -> int:
    """Centres of ``centers="auto"`` for n rows.

    >>> [auto_centers(n) for n in (500, 2_000, 16_000, 10**6)]
    [500, 2000, 2378, 3357]
    """
    return n if n <= ALL_ROWS else min(MOST_CENTERS, round(ALL_ROWS * (n / ALL_ROWS) ** GROWTH))


def _check_center_mode(centers) -> None:
    known = "'auto', 'all', 'class', ('class', number), a whole number, or an array of points"
    if isinstance(centers, str):
        if centers not in ("auto", "all", "class"):
            hint = did_you_mean(centers, ("auto", "all", "class"))
            raise ValueError(f"centers={centers!r} is not known{hint}; use {known}.")
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
