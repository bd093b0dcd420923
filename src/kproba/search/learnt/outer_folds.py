"""Outer folds: everything is repeated without each fold, and the rows of that fold decide how many steps to take.

Many rows have a single fold: what is learnt without it is the kernel of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import ndtr

from ...arrays import Device
from ...data.folds import stratified_folds
from ...data.rows import Rows
from ...data.sampling import canonical_order, sample_rows
from ...kernels.learnt import Learnt
from ...solvers import unlocked
from ...threads import map_independent, one_blas_thread, run_in_turns
from .device_sample import scores_of_others
from .many_rows import ManyRows
from .objective import loss_of
from .parameters import Layout
from .steps import WARM_UP, Steps, refine

#: Numbers of steps to choose from. The first one has equal weights; learning ends after PATIENCE numbers without gain.
MARKS, PATIENCE = (WARM_UP, 30, 40, 60, 80, 120, 160), 2
#: The first of them are halfway between scaled values and normal scores.
EARLY_MARKS, HALFWAY = 3, 0.5
#: Number of folds for up to so many rows. Of more, one row in ONE_IN is held out from everything, and RUNS runs with
#: samples of their own learn from the others.
FOLDS = ((1000, 8), (4000, 3))
ONE_IN, RUNS = 5, 2
#: Above MANY rows, runs take at most this many steps: their refinement gains no less after fewer steps.
MANY, LAST_OF_MANY = FOLDS[-1][0], 60
#: Runs hold the interpreter's lock for a third of the time, so that more threads than this would wait for each other.
MOST_THREADS = 4
#: Distinct rows of which there must be as many to learn anything, and rows that fit and judge a kernel between steps.
LEAST_ROWS, FIT_ROWS, JUDGED_ROWS = 100, 800, 1500
#: With more rows than this, a sample of a thousand says too little about widths, noise and the number of centres.
MANY_ROWS = 2000


@dataclass(frozen=True)
class LearntKernel:
    """The kernel and noise of all rows, and of the rows without each fold.

    ``fold`` is the fold of each row, or −1 for rows that are in none because there are many: the kernel is then learnt
    from these alone. ``of_runs`` are the kernels of all runs, and ``curve`` has the columns steps, leave_one_out and
    out_of_fold. ``bend`` is the share of the curves in the scaling. ``is_sharp`` says that each row should be a centre,
    and that local models suffice even if they share none; ``is_dense`` that one system of all rows is worth its time.
    """

    kernel: Learnt
    noise: float
    fold: np.ndarray
    of_folds: list[tuple[Learnt, float]]
    of_runs: list[Learnt]
    curve: dict[str, np.ndarray]
    n_steps: int
    is_sharp: bool
    is_dense: bool
    bend: float = 1.0

    @property
    def has_unseen_rows(self) -> bool:
        """Whether some rows took no part in learning this very kernel."""
        return holds_out_one_part(self.fold)


def outer_folds(rows: Rows, seed: int) -> np.ndarray:
    """The fold of each row; of many rows, 0 for the part that is held out and −1 for the others."""
    k = next((k for most, k in FOLDS if rows.n_distinct <= most), None)
    fold = stratified_folds(rows, k or ONE_IN, seed)
    return fold if k else np.where(fold == 0, 0, -1)


def holds_out_one_part(fold: np.ndarray) -> bool:
    """Whether these are the folds of many rows."""
    return bool(fold.min() < 0)


def learn(
    rows: Rows,
    seed: int,
    workers: int = 1,
    tell: Callable[[str, int], None] = lambda text, n: None,
    device: Device | None = None,
    bent: Callable[[float], Rows] | None = None,
    all_are_centers: bool = False,
) -> LearntKernel:
    """Learn the kernel of scaled rows, on the CPU or on a device.

    ``bent`` gives the rows with a share of normal scores in their values, of which ``rows`` have half; held-out rows
    then choose the share. ``all_are_centers`` says that each of the rows will be a centre.
    """
    many_workers, workers = workers if device is None else 1, min(workers, MOST_THREADS)
    order = canonical_order(rows)
    rows = rows.take(order)
    fold = outer_folds(rows, seed)
    runs = start_runs(rows, fold, seed, device)
    if device is not None:  # a thread for each run, however many cores there are: they wait for the device
        workers = len(runs) if device.has_streams else 1
    with one_blas_thread():  # a sample is too small for BLAS threads, which would wait for each other
        bend = 1.0
        if bent is not None:
            bend, rows = choose_bend(runs, lambda share: bent(share).take(order), workers)
        curve, seen = _advance_while_it_helps(runs, numbers_of_steps(rows.n_distinct), workers, tell)
        losses = np.array([loss for _, loss in curve.values()])
        found = mean_over_marks(np.array(seen), losses, sum(len(run.judged) for run in runs))
        rows = runs[0].inside if holds_out_one_part(fold) else rows
        x = refine(np.mean(found, axis=0), rows, runs[0].steps.layout, seed, workers, device)
    is_sharp, is_dense = False, True  # centers="auto" takes all rows anyway if they are few
    if rows.n_distinct > MANY_ROWS:
        tell("learn the kernel: many rows", 0)
        many = ManyRows(rows, runs[0].steps.layout, seed, many_workers, device)
        x, is_sharp, is_dense = many.adapted(x, all_are_centers)
    return replace(_finish(x, fold[np.argsort(order)], runs, found, curve, is_sharp, is_dense), bend=bend)


def start_runs(rows: Rows, fold: np.ndarray, seed: int, device: Device | None) -> list[Run]:
    """A run without each fold, or several without the only one."""
    held_out = [np.flatnonzero(fold == f) for f in range(fold.max() + 1)]
    held_out *= RUNS if holds_out_one_part(fold) else 1
    return [Run(rows, part, seed + number, device) for number, part in enumerate(held_out)]


def choose_bend(runs: list[Run], bent: Callable[[float], Rows], workers: int) -> tuple[float, Rows]:
    """The share of normal scores in the values of the columns, and the rows with it, with which the runs go on.

    The first steps are taken halfway. Their kernels then judge held-out rows at both ends. The share is the probability
    that normal scores are better, in quarters: held-out rows seldom tell, and halfway is seldom much worse than the
    better end.
    """
    run_in_turns([run.take_steps(MARKS[:EARLY_MARKS]) for run in runs], workers)
    plain, scores = (_losses_on(bent(share), runs, workers) for share in (0.0, 1.0))
    weight, gap = np.concatenate([run.judged.weight for run in runs]), scores - plain
    mean = np.average(gap, weights=weight)
    error = np.linalg.norm(weight * (gap - mean)) / weight.sum()
    share = round(4 * ndtr(-mean / error)) / 4 if 0 < error < np.inf else HALFWAY
    rows = bent(share)
    for run in runs:
        run.set_rows(rows)
    return share, rows


def _losses_on(rows: Rows, runs: list[Run], workers: int) -> np.ndarray:
    """The losses of all held-out rows with other inputs, after the steps that were taken."""
    return np.concatenate(map_independent(partial(Run.losses_on, rows=rows), runs, workers))


def numbers_of_steps(n: int) -> tuple[int, ...]:
    """The numbers of steps to choose from for n distinct rows."""
    return tuple(mark for mark in MARKS if mark <= LAST_OF_MANY or n <= MANY)


def _advance_while_it_helps(runs: list[Run], marks, workers: int, tell) -> tuple[dict[int, tuple[float, float]], list]:
    """The leave-one-out and held-out losses for each number of steps, and the parameters of all runs."""
    curve: dict[int, tuple[float, float]] = {}
    seen: list[list[np.ndarray]] = []
    for before, mark in zip((0, *marks), marks):
        run_in_turns([run.advance(mark) for run in runs], workers)
        parameters, left_out, held_out = zip(*[run.found for run in runs])
        seen.append(list(parameters))
        means = [np.average(losses, weights=run.judged.weight) for run, losses in zip(runs, held_out)]
        curve[mark] = float(np.mean(left_out)), float(np.mean(means))
        tell(f"learn the kernel: {mark} steps", mark - before)
        losses = [loss for _, loss in curve.values()]
        if len(losses) - 1 - int(np.argmin(losses)) >= PATIENCE:
            break
    return curve, seen


def mean_over_marks(seen: np.ndarray, losses: np.ndarray, n_judged: int) -> np.ndarray:
    """The parameters of each run, averaged over the numbers of steps by the likelihood of the held-out rows.

    The best number alone would depend on chance where several are about equally good.
    """
    least = losses.min()
    gaps = np.subtract(losses, least, where=losses != least, out=np.zeros(len(losses)))  # all may be infinite
    return np.average(seen, axis=0, weights=np.exp(-n_judged * gaps))


def _finish(x, fold, runs: list[Run], found: np.ndarray, curve, is_sharp: bool, is_dense: bool) -> LearntKernel:
    """The kernel of all rows, and of the folds, which are not refined: their judgement is as good without."""
    n_steps = min(curve, key=lambda steps: curve[steps][1])
    layout: Layout = runs[0].steps.layout
    whole, *of_runs = [(layout.kernel(each), layout.noise(each)) for each in (x, *found)]
    of_folds = [whole] if holds_out_one_part(fold) else of_runs
    columns = np.array([(steps, *losses) for steps, losses in curve.items()])
    names = ("steps", "leave_one_out", "out_of_fold")
    curves, kernels = dict(zip(names, columns.T)), [kernel for kernel, _ in of_runs]
    return LearntKernel(*whole, fold, of_folds, kernels, curves, n_steps, is_sharp, is_dense)


class Run:
    """The steps taken without one fold, and the judgement of its rows."""

    def __init__(self, rows: Rows, held_out: np.ndarray, seed: int, device: Device | None = None):
        is_inside = np.ones(len(rows), dtype=bool)
        is_inside[held_out] = False
        self._numbers = np.flatnonzero(is_inside)
        inside, outside = rows.take(self._numbers), rows.take(held_out)
        self._judged = held_out[np.sort(sample_rows(outside, JUDGED_ROWS, seed))]
        self._fitted = self._numbers[np.sort(sample_rows(inside, FIT_ROWS, seed))]
        self.steps = Steps(inside, seed, device)
        self.set_rows(rows)
        self._after: dict[int, tuple[np.ndarray, float]] = {}

    def set_rows(self, rows: Rows) -> None:
        """Go on with the same rows, which may have other inputs."""
        self.judged, self.fitted, self.inside = map(rows.take, (self._judged, self._fitted, self._numbers))
        self.steps.rows = self.inside

    def take_steps(self, numbers: Iterable[int]) -> Iterator[None]:
        """Keep the parameters and the leave-one-out loss after each of these numbers of steps."""
        for n_steps in numbers:
            if n_steps not in self._after:
                yield from self.steps.take(n_steps)
                self._after[n_steps] = self.steps.mean, self.steps.loss

    def advance(self, n_steps: int) -> Iterator[None]:
        """Find the parameters after so many steps, their leave-one-out loss, and the losses of the held-out rows."""
        yield from self.take_steps([n_steps])
        x, loss = self._after[n_steps]
        self.found = x, loss, self.held_out_losses(x)

    def losses_on(self, rows: Rows) -> np.ndarray:
        """The losses of the held-out rows after the last steps, if the same rows have other inputs."""
        self.set_rows(rows)
        return self.held_out_losses(self._after[max(self._after)][0])

    def held_out_losses(self, x: np.ndarray) -> np.ndarray:
        """Log-losses of the held-out rows by a fit to some of the others."""
        layout, judged = self.steps.layout, self.judged
        try:
            scores = self._held_out_scores(layout.kernel(x), layout.noise(x) / self.fitted.weight)
        except np.linalg.LinAlgError:
            return np.full(len(judged), np.inf)
        return loss_of(self.inside, np.inf)(layout.split(x), scores, judged.targets(), judged.weight)[0]

    def _held_out_scores(self, kernel: Learnt, noise: np.ndarray) -> np.ndarray:
        X, Y, device = self.fitted.X, self.fitted.targets(), self.steps.device
        if device is not None:
            return scores_of_others(device, kernel, noise, X, Y, self.judged.X)
        X = X.astype(np.float32)
        G = kernel.gram(X).astype(np.float64)
        G[np.diag_indices_from(G)] += noise
        return kernel(self.judged.X.astype(np.float32), X) @ unlocked.solve(G, Y)
