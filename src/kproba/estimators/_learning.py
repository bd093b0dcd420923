"""Learning the kernel inside a fit: when it applies, out-of-fold probabilities, and what is stored of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from ..arrays import Device
from ..arrays import choose as choose_device
from ..data.copies import Parts
from ..data.hashing import distinct, exact_keys
from ..data.items import Items
from ..data.rows import Rows
from ..data.sampling import sample_rows
from ..data.scaling import Scaling, bent_scaling, fit_scaling, scaled_rows, with_normal_scores
from ..kernels import Kernel, OneOf
from ..kernels.learnt import Learnt
from ..links import fit_link, in_blocks
from ..problems.base import Solution
from ..problems.least_squares import LeastSquares
from ..progress import Progress
from ..search.candidates import Candidate
from ..search.choose import Prepared
from ..search.learnt.outer_folds import HALFWAY, LEAST_ROWS, LearntKernel, learn, numbers_of_steps
from ..search.pose import is_given
from ..search.staged import most_informative_tags
from ..solvers.device_dual import fits
from ..threads import map_independent, n_workers
from ._reading import Training

#: With a learnt kernel all rows are centres: of one system up to the first number of rows, and up to the second if that
#: is worth its time; otherwise of local models.
FEW_ROWS, DENSE_ROWS = 4000, 10_000
#: Rows whose differences give the spread of the columns.
SPREAD_ROWS = 300
#: With fewer folds than this, a model without a fold has far fewer rows than the model of all, and seems worse than it.
MANY_FOLDS = 5
#: Folds of more rows are fitted one after the other, because LAPACK's own threads then share the work better.
SIDE_BY_SIDE = 2000
#: Rows are rounded to float32 for learning if this moves no scaled value by more, and this share of them stay distinct.
FLOAT32_ERROR, STILL_DISTINCT = 1e-3, 0.9


def learns_kernel(model, rows: Rows) -> bool:
    """Whether ``kernel="auto"`` is learnt: dense columns, enough distinct rows, and nothing that fixes the basis."""
    is_open = _is_auto(model.kernel) and _is_auto(model.width)
    has_columns = not isinstance(rows.X, Items) and not rows.is_sparse
    centers: Any = getattr(model, "centers", "auto")
    owned = isinstance(centers, tuple) or (isinstance(centers, str) and centers == "class")
    plain = model._learns and not is_given(centers) and not owned and rows.group is None
    return is_open and plain and has_columns and rows.n_distinct >= LEAST_ROWS and bool(rows.X.shape[1])


def learn_kernel(model, scaling: Scaling | None, data: Training) -> tuple[LearntKernel, Scaling | None]:
    """Learn the kernel of scaled rows, and with ``scaling="auto"`` the share of normal scores in the scaling."""
    mode = "quantile" if _is_auto(model.scaling) else model.scaling
    if scaling is not None and _is_auto(model.scaling):
        scaling = with_normal_scores(scaling, data.rows, n_workers(model.n_jobs))
    bends = scaling is not None and scaling.curves is not None and _is_auto(model.scaling)
    bent = _scaled_in_float32(data.rows, scaling, mode, n_workers(model.n_jobs), model.device_)
    parts = Parts.of(data.rows)
    most_steps = numbers_of_steps(parts.split(data.rows).n_distinct)[-1]
    with Progress(model.verbose, most_steps, f"{type(model).__name__}: kernel") as progress:
        rows = parts.split(bent(HALFWAY if bends else 1.0))
        all_are_centers = model._ridge_is_noise and model._may_be_local and not data.is_sample
        options = (model.device_, (lambda share: parts.split(bent(share))) if bends else None, all_are_centers)
        learnt = learn(rows, data.seed, n_workers(model.n_jobs), progress.step, *options)
        progress.finish()
    return learnt, bent_scaling(scaling, learnt.bend)


def _scaled_in_float32(
    rows: Rows, scaling: Scaling | None, mode: str | None, workers: int, device: Device | None
) -> Callable[[float], Rows]:
    """A function that scales the rows with a share of the curves of ``scaling``, as they would be scaled in float32.

    Folds and samples are drawn by keys of the unscaled rows in float32: float32 rows then take the same steps as
    float64 ones, and rows that differ by less share a fold. Rows whose values float32 cannot tell apart keep all their
    digits.
    """
    with np.errstate(over="ignore", under="ignore"):
        single = rows.X.astype(np.float32)
    has_digits = np.isfinite(single) & ((np.abs(single) >= np.finfo(np.float32).tiny) | (rows.X == 0))
    is_rounded, keyed = has_digits.all() and (single != rows.X).any(), rows
    if is_rounded:
        keyed = replace(rows, keys=exact_keys(single))
        is_rounded = keyed.n_distinct >= STILL_DISTINCT * rows.n_distinct
        keyed = keyed if is_rounded else rows
    rounded = rows.replace_inputs(single.astype(np.float64)) if is_rounded else rows
    like = scaling if rounded is rows else fit_scaling(mode, rounded, workers)

    def bent(share: float) -> Rows:
        scaled = scaled_rows(keyed, bent_scaling(scaling, share), device)
        if rounded is not rows:
            X = scaled_rows(rounded, bent_scaling(like, share), device).X
            scaled = scaled.replace_inputs(X) if np.abs(X - scaled.X).max(initial=0.0) < FLOAT32_ERROR else scaled
        return most_informative_tags(scaled)

    return bent


def rows_that_may_choose(rows: Rows, learnt: LearntKernel | None) -> Rows:
    """The rows that choose among variants of a learnt kernel: all, or those outside a single held-out part.

    What they choose then holds for the model without that part as well. Draws are held out copy by copy, so that none
    of them is quite outside.
    """
    if learnt is None or not learnt.has_unseen_rows or rows.copies_are_draws:
        return rows
    return rows.take(np.flatnonzero(learnt.fold < 0))


def out_of_fold(model, learnt: LearntKernel, scaled: Rows, chosen: Sequence[Kernel] | None = None) -> np.ndarray:
    """Probabilities (n, c) of every row by a model fitted without its fold, under the kernel learnt without it.

    NaN for rows that are in no fold. ``chosen`` is the variant of the kernel, if no row of a fold had a say in it.
    """

    def of_fold(number: int) -> tuple[np.ndarray, np.ndarray]:
        inside, outside = (np.flatnonzero((learnt.fold == number) == side) for side in (False, True))
        return outside, _proba_without_fold(model, learnt, number, scaled.take(inside), scaled.X[outside], chosen)

    proba = np.full((len(scaled), scaled.n_classes), np.nan)
    workers = n_workers(model.n_jobs) if len(scaled) <= SIDE_BY_SIDE else 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit of all rows has warned already
        for rows, found in map_independent(of_fold, range(len(learnt.of_folds)), workers):
            proba[rows] = found
    return proba


def _by_leave_one_out(model, learnt: LearntKernel, solved: Candidate) -> np.ndarray:
    """The same for the parts of the rows from exact leave-one-out scores under kernels that never saw them.

    Each row is left out of a fit of all other rows, together with its copies, so nothing is fitted again if there is a
    single held-out part, and the model that is judged has all rows but these.
    """
    rows = solved.problem.rows
    parts = Parts.of(rows)
    each, proba = parts.split(rows), np.full((len(parts.row), rows.n_classes), np.nan)
    for number, solution in enumerate(_under_each_kernel(learnt, solved)):
        unseen, others = np.flatnonzero(learnt.fold == number), np.flatnonzero(learnt.fold != number)
        # a row that is left out has no more influence on the link than a single row of the fit has on all scores
        link = fit_link(model.link, solution.held_out[parts.row[others]], each.take(others), model.device_)
        scores = solution.held_out
        if solution.without_copies is not None and not rows.copies_are_draws:
            scores = solution.without_copies()
        proba[unseen] = in_blocks(link.probabilities, scores[parts.row[unseen]])
    return proba


def _under_each_kernel(learnt: LearntKernel, solved: Candidate) -> Iterator[Solution]:
    """The solution on all rows under the kernel of each fold; that of a single held-out part is the model itself."""
    if learnt.has_unseen_rows:
        yield solved.solution
        return
    for kernel, noise in learnt.of_folds:
        problem: Any = solved.problem
        problem = replace(problem, basis=replace(problem.basis, kernel=kernel))
        yield from problem.path([noise / problem.total_weight])


def _suffices(model, learnt: LearntKernel, solved: Candidate) -> bool:
    """Whether leave-one-out scores are honest for held-out rows: exact, of models without any copy of the row, and not
    used to choose a ridge. With many folds, models without a fold have nearly all rows and take less time."""
    solution, rows = solved.solution, solved.problem.rows
    if not (model._ridge_is_noise and _is_auto(model.ridge)) or rows.together is not None:
        return False
    if solution.held_out is None or len(solution.held_out) != len(rows):
        return False
    if not learnt.has_unseen_rows and (len(learnt.of_folds) >= MANY_FOLDS or not _is_dual(solved.problem)):
        return False
    each = Parts.of(rows).split(rows)
    if solution.without_copies is None and not rows.copies_are_draws and _has_copies(rows)[learnt.fold >= 0].any():
        return False
    if rows.is_multilabel:
        return True
    kept = [each.labels[learnt.fold != number] for number in range(learnt.fold.max() + 1)]
    return all(len(np.unique(labels)) == rows.n_classes for labels in kept)


def _is_dual(problem: Any) -> bool:
    """Whether the problem has a centre in every row and one system, so that another kernel can take its place."""
    return isinstance(problem, LeastSquares) and problem.is_dual and not problem.is_iterative


def _has_copies(rows: Rows) -> np.ndarray:
    """Whether other rows have the same inputs. Folds keep them together."""
    number = distinct(rows.keys)[1]
    return (np.bincount(number)[number] > 1) | (rows.weight > rows.unit)  # a weight counts copies


def _proba_without_fold(
    model, learnt: LearntKernel, number: int, rows: Rows, X_new: np.ndarray, chosen: Sequence[Kernel] | None
) -> np.ndarray:
    """Probabilities of the rows of a fold, by a model of all other rows with the kernel learnt on these."""
    if rows.is_multilabel:
        return _without_fold(model, learnt, number, rows, chosen).predict_proba(X_new)
    known = np.unique(rows.labels)
    if len(known) == 1:
        return _with_unseen_classes(np.ones((len(X_new), 1)), known, rows)
    return _with_unseen_classes(_without_fold(model, learnt, number, rows, chosen).predict_proba(X_new), known, rows)


def _without_fold(model, learnt: LearntKernel, number: int, rows: Rows, chosen: Sequence[Kernel] | None = None):
    """A model of the rows outside a fold with the kernel of the fold, and otherwise with the user's parameters.

    If there are variants of the kernel and none is ``chosen``, the model chooses one as the fit of all rows does, but
    from its own rows.
    """
    kernel, noise = learnt.of_folds[number]
    fold_model = clone(model).set_params(
        kernel=OneOf(tuple(chosen or model._variants(kernel))),
        scaling=None,
        class_weight=None,
        categorical_features=None,
        verbose=0,
        random_state=0,
    )
    fold_model._leaves_one_out = False  # the fold is held out already
    fold_model._read_as = rows  # all rows have decided what counts as a copy
    params = fold_model.get_params(deep=False)
    if "loo" in params:  # only what calibrates the link or selects the ridge
        fold_model.set_params(loo="auto")
    if isinstance(params.get("centers"), Integral):
        fold_model.set_params(centers=min(params["centers"], len(rows)))
    if model._ridge_is_noise and _is_auto(model.ridge):
        fold_model.set_params(ridge=noise / rows.total_weight)
    if model._ridge_is_noise and model._may_be_local:
        device = choose_device(fold_model.device, rows.X)
        fold_model.set_params(centers=centers_in_memory(learnt, rows.n_distinct, device))
    groups = {} if rows.together is None else {"groups": rows.together}
    return fold_model.fit(rows.X, rows.labels, rows.weight, **groups)


def centers_in_memory(learnt: LearntKernel, n: int, device: Device | None) -> str:
    """What ``centers="auto"`` means for a learnt kernel and n distinct rows in memory.

    A device solves one large system faster than many small ones.
    """
    if device is not None:
        return "all" if fits(device, n) else "auto"
    return "all" if n <= (DENSE_ROWS if learnt.is_dense else FEW_ROWS) else "local"


def _with_unseen_classes(proba: np.ndarray, known: np.ndarray, rows: Rows) -> np.ndarray:
    """Probabilities in the order of all classes. A class that the model has not seen gets 1/(n + c) by Laplace's rule:
    with zero, a single row of a rare class would make the log-loss infinite.
    """
    unseen = 1.0 / (len(rows) + rows.n_classes)
    whole = np.full((len(proba), rows.n_classes), unseen)
    whole[:, known] = proba * (1.0 - unseen * (rows.n_classes - len(known)))
    return whole


def importances(kernels: Sequence[Learnt], rows: Rows, seed: int) -> np.ndarray:
    """The share (k, d) of each column in the distances of each learnt kernel, weighted by its mixture."""
    some = rows.X[sample_rows(rows, SPREAD_ROWS, seed)]
    largest = np.where(np.isin(np.arange(some.shape[1]), rows.categorical), 1.0, np.inf)
    differences = np.array(
        [np.minimum(np.abs(column[:, None] - column), most).mean() for column, most in zip(some.T, largest)]
    )
    return np.array([_shares(kernel, differences) for kernel in kernels])


def _shares(kernel: Learnt, differences: np.ndarray) -> np.ndarray:
    first, second, third = kernel.rates * differences
    parts = np.array([first, second**2, third**2, third**2])
    totals = parts.sum(axis=1, keepdims=True)
    shares = np.divide(parts, totals, out=np.full_like(parts, 1.0 / len(first)), where=totals > 0)
    mixture = np.asarray(kernel.mixture)
    return mixture @ shares / mixture.sum()


def store_learnt(model, table: Prepared, data: Training, solved: Candidate | None = None) -> None:
    """Set what the learnt kernel adds to the fitted attributes; call it when the model can predict.

    ``solved`` has exact leave-one-out scores, if there are any.
    """
    model._forget("feature_importances_", "fold_importances_", "learning_curve_", "oof_proba_")
    learnt = table.learnt
    if learnt is None:
        return
    found = importances([learnt.kernel, *learnt.of_runs], table.rows, data.seed)
    found = found if model.columns_ is None else model.columns_.per_column(found)
    found = np.clip(found, 0.0, 1.0)  # the only share of a kernel may be larger than 1 by rounding
    model.feature_importances_, model.fold_importances_ = found[0], found[1:]
    model.learning_curve_ = learnt.curve
    if data.place is None or not hasattr(model, "predict_proba"):
        return
    parts, present = Parts.of(table.rows), np.flatnonzero(data.place >= 0)
    if solved is not None and _suffices(model, learnt, solved):
        known = _by_leave_one_out(model, learnt, solved)
    else:
        is_chosen = len(rows_that_may_choose(table.rows, learnt)) < len(table.rows)
        known = out_of_fold(model, learnt, parts.split(table.rows), [model.kernel_] if is_chosen else None)
    proba, absent = np.empty((len(data.place), known.shape[1])), np.flatnonzero(data.place < 0)
    proba[present] = parts.to_rows(known, data.place[present])
    if len(absent):  # rows of weight zero are in no fold, and no model saw them
        proba[absent] = in_blocks(model.link_.probabilities, model._scores_of_checked(data.inputs[absent]))
    model.oof_proba_ = proba


def _is_auto(value) -> bool:
    return isinstance(value, str) and value == "auto"
