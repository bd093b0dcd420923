"""The search for kernel, width, ridge and column weights.

With leave-one-out, every candidate (kernel, width) yields the losses of all its ridges at once. In the automatic
search, candidates are screened on few rows, the best are compared on more, and only the winner is solved on all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.folds import stratified_folds
from ..data.rows import Rows
from ..data.sampling import sample_rows, subsample, with_copies
from ..data.scaling import Scaling, relevance_weights
from ..kernels import Kernel, Radial
from ..problems.base import Problem, Solution
from ..progress import Progress
from ..threads import map_independent
from .candidates import Candidate, SearchRecord
from .folds import RefitWithoutFold, cross_validate
from .widths import median_width

#: Number of centres for screening candidates, and for comparing the best of them. The number of rows per centre is that
#: of the whole problem: a kernel that is best with all rows as centres may be poor with few.
SCREEN_CENTERS, REFINE_CENTERS = 400, 800
#: Maximum number of rows for screening; there may then be more centres per row than in the whole problem.
SCREEN_ROWS = 4000
#: With fewer centres than rows, every ridge costs a factorisation. Then screening uses fewer centres, refining no more
#: than screening, and only five ridges around the best one are tried.
FEWER_CENTERS = 300
NEAR = tuple(10.0**e for e in (-1.0, -0.5, 0.0, 0.5, 1.0))
#: Problems with at most this many entries in Φ are solved in parallel, larger ones one at a time on all cores.
SMALL = 1_500_000
#: Number of candidates kept after screening.
SURVIVORS = 3
#: Multiples of the winner's width that are tried next.
NEIGHBOURS = (0.7, 1.4)
#: Losses that differ by less than this share count as equal.
LEVEL = 0.01
#: Kernels and widths are compared on at most this many tags, those with frequencies nearest to one half.
SEARCH_TAGS = 128
#: Steps of column weighting, each kept only if it decreases the leave-one-out loss noticeably.
RELEVANCE_STEPS = 2
#: Minimum gain of a step in held-out loss, summed over all rows; a search finds less than that in pure noise.
RELEVANCE_GAIN = 2.0
#: Number of rows at which derivatives for the column weights are computed.
GRADIENT_ROWS = 300
#: Number of rows whose exact leave-one-out scores choose the ridge.
RIDGE_ROWS = 2048
#: If leave-one-out is too expensive, one in this many rows is held out to choose the ridge.
HELD_OUT_PART = 5
#: First step of the ridge (half a decade), and the relative decrease in loss that counts as an improvement.
RIDGE_STEP, NOTICEABLE = 10**0.5, 0.003
#: A path of ridges has learnt something once its loss is below that of the class shares by the first share; it is
#: hopeless once its loss is above that by the second.
LEARNT, HOPELESS = 0.05, 0.1


@dataclass
class Search:
    """The settings of a search: how to build a problem, how to judge it, and where to record the results.

    ``pose(rows, kernel)`` builds the problem and ``judge(scores, rows)`` is the loss of held-out scores. ``ridges`` are
    the candidates; ``any_ridge`` says that they are not the user's own, so some may be skipped and others tried.
    ``density`` is the number of centres per row. With ``centers_grow`` the whole problem has as many centres per row as
    a sample, otherwise as many in total. If ``every_ridge_costs`` a fit, fewer ridges are tried. With
    ``loss_of_shares(rows)``, the loss of the class shares, a path ends once smaller ridges will not help.
    """

    pose: Callable[[Rows, Kernel], Problem]
    judge: Callable[[np.ndarray, Rows], float]
    ridges: Sequence[float]
    seed: int
    record: SearchRecord
    progress: Progress
    workers: int = 1
    density: float = 1.0
    centers_grow: bool = True
    any_ridge: bool = True
    every_ridge_costs: bool = False
    loss_of_shares: Callable[[Rows], float] | None = None

    @property
    def _is_costly(self) -> bool:
        """Whether every ridge costs a factorisation or a fit, and some may be skipped."""
        return (self.density < 1.0 or self.every_ridge_costs) and self.any_ridge

    def evaluate(self, rows: Rows, kernel: Kernel, stage: str, ridges: Sequence[float] | None = None) -> Candidate:
        """The best ridge for one kernel and width on these rows, by exact leave-one-out."""
        problem, ridges = self.pose(rows, kernel), self.ridges if ridges is None else ridges
        losses: list[float] = []
        best: Candidate | None = None
        for solution in problem.path(ridges):
            losses.append(self.judge(solution.held_out, rows))
            tried = Candidate(losses[-1], kernel, solution, problem)
            best = tried if best is None or tried.rank < best.rank else best
            if self._is_past_best(losses[-1], best.loss, rows):
                break
        self.record.add(stage, kernel, ridges[: len(losses)], losses, len(rows))
        self.progress.step(f"{stage}: {kernel.name}")
        assert best is not None  # ridges is never empty
        return best.with_computed_coef()

    def _is_past_best(self, last: float, best: float, rows: Rows) -> bool:
        """Whether a path of ridges may end, since its last loss is worse than its best.

        Losses near that of the class shares do not tell: on a checkerboard they rise before they fall.
        """
        if not self.any_ridge or self.loss_of_shares is None or last <= best:
            return False
        shares = self.loss_of_shares(rows)
        return best < (1.0 - LEARNT) * shares or last > (1.0 + HOPELESS) * shares

    def grid(self, rows: Rows, kernels: Sequence[Kernel], stage: str = "grid", ridges=None) -> list[Candidate]:
        """Evaluate all kernels and widths on the same rows; best first."""
        found = map_independent(lambda k: self.evaluate(rows, k, stage, ridges), kernels, self._workers(rows))
        return sorted(found, key=lambda c: c.rank)

    def by_folds(self, rows: Rows, kernels: Sequence[Kernel], k: int) -> Candidate:
        """The best kernel, width and ridge by k-fold cross-validation; the winner is not yet solved."""
        fold = stratified_folds(rows, k, self.seed)

        def evaluate(kernel):
            problem = self.pose(rows, kernel)
            # centres that belong to classes reveal the labels of their rows, so they are chosen again without the fold
            parts = problem if problem.basis.owner is None else RefitWithoutFold(self.pose, rows, kernel)
            losses = [self.judge(held_out, rows) for held_out in cross_validate(parts, fold, self.ridges)]
            self.record.add("folds", kernel, self.ridges, losses, len(rows))
            self.progress.step(f"folds: {kernel.name}")
            found = (
                Candidate(loss, kernel, Solution(ridge, None, lambda: None), problem)
                for ridge, loss in zip(self.ridges, losses)
            )
            return min(found, key=lambda c: c.rank)

        return min(map_independent(evaluate, kernels, self._workers(rows)), key=lambda c: c.rank)

    def _workers(self, rows: Rows) -> int:
        """Small candidates run in parallel, large ones one at a time on all cores."""
        return self.workers if self.density * rows.n_distinct**2 <= SMALL else 1

    def staged(self, rows: Rows, kernels: Sequence[Kernel], scaling: Scaling | None, relevance: bool):
        """Screen, compare and refine candidates, then weight the columns. Returns the winner and its scaling."""
        size = SCREEN_CENTERS if self.density == 1.0 else FEWER_CENTERS
        few = subsample(rows, min(SCREEN_ROWS, round(size / self.density)), self.seed)
        found = self.grid(few, kernels, "screen", self.ridges[::3] if self._is_costly else None)
        more = few if self.density < 1.0 else subsample(rows, REFINE_CENTERS, self.seed)
        if len(more) > len(few):
            found = self.grid(more, [c.kernel for c in found[:SURVIVORS]], "refine")
        best = found[0]
        if best.kernel.has_width:
            best = self._pick([best, *self.around(more, best, NEIGHBOURS, "refine")])
        if relevance and scaling is not None and supports_relevance(best.kernel, more):
            return self.weigh_columns(more, best, scaling)
        return best, scaling

    def around(self, rows: Rows, best: Candidate, factors, stage: str) -> list[Candidate]:
        """Try a candidate's width multiplied by some factors."""
        ridges = [best.solution.ridge * near for near in NEAR] if self._is_costly else None
        return self.grid(rows, [best.kernel.with_width(best.kernel.width * f) for f in factors], stage, ridges)

    def _pick(self, candidates: list[Candidate]) -> Candidate:
        """The best candidate; with fewer centres than rows, the narrowest among those about as good.

        The whole problem has several times as many centres as the sample, so it resolves more detail.
        """
        best = min(candidates, key=lambda c: c.rank)
        if self.density == 1.0 or not self.centers_grow:
            return best
        level = [c for c in candidates if c.loss <= best.loss * (1.0 + LEVEL)]
        return min(level, key=lambda c: c.kernel.width)

    def weigh_columns(self, rows: Rows, best: Candidate, scaling: Any) -> tuple[Candidate, Scaling]:
        """Weight columns by the model's sensitivity to them, as long as the leave-one-out loss improves."""
        for _ in range(RELEVANCE_STEPS):
            at = rows.X[sample_rows(rows, GRADIENT_ROWS, self.seed)]
            kernel: Any = best.kernel
            sensitivity = kernel.sensitivity(at, best.problem.basis.centers, best.solution.coef())
            weights = relevance_weights(sensitivity, rows.n_distinct)
            weighted = rows.replace_inputs(rows.X * weights.astype(rows.X.dtype))
            unit = median_width(best.kernel, weighted, self.seed) / median_width(best.kernel, rows, self.seed)
            tried = self.around(weighted, best, [unit * factor for factor in (*NEIGHBOURS, 1.0)], "relevance")
            if (best.loss - tried[0].loss) * rows.n_distinct <= RELEVANCE_GAIN:
                break
            best, scaling, rows = self._pick(tried), scaling.weighted(weights), weighted
        return best, scaling

    def climb(
        self, problem: Problem, start: float, max_steps: int = 4, directions: Sequence[int] = (-1, 1)
    ) -> Candidate:
        """The best ridge on all rows, searched from ``start`` in growing steps while the loss decreases noticeably."""
        at = self._at_ridge(problem)
        first = best = at(start)
        for direction in directions:
            for step in range(1, max_steps + 1):
                tried = at(best.solution.ridge * RIDGE_STEP ** (direction * step))
                falls = tried.loss < best.loss * (1.0 - NOTICEABLE)
                best = min(best, tried, key=lambda c: c.loss)
                if not falls:
                    break
            if best is not first:
                break
        return best

    def best_ridge(self, problem: Problem) -> Candidate:
        """The best of ``self.ridges``."""
        return min(map(self._at_ridge(problem), self.ridges), key=lambda c: c.rank)

    def _at_ridge(self, problem: Problem) -> Callable[[float], Candidate]:
        """A function that evaluates a ridge on a problem.

        Every ridge is a fit on all rows. With many rows it is judged by the leave-one-out scores of some of them, or,
        if these are too expensive, by holding out a part of the rows.
        """
        judged = None if problem.has_all_loo else judged_rows(problem.rows, self.seed)
        apart = np.flatnonzero(stratified_folds(problem.rows, HELD_OUT_PART, self.seed) == 0)
        judged = judged if problem.has_cheap_loo else apart
        rows = problem.rows if judged is None else problem.rows.take(judged)

        def at(ridge):
            cheap = problem.has_cheap_loo
            (solution,) = problem.path([ridge], loo_rows=judged) if cheap else problem.hold_out(apart, [ridge])
            loss = self.judge(solution.held_out, rows)
            self.record.add("ridge", problem.basis.kernel, [ridge], [loss], len(problem.rows))
            self.progress.step("ridge")
            return Candidate(loss, problem.basis.kernel, solution, problem)

        return at


def supports_relevance(kernel: Kernel, rows: Rows) -> bool:
    """Whether a model has derivatives with respect to the columns, as column weights need; codes have none."""
    return isinstance(kernel, Radial) and not rows.is_sparse and not kernel.categorical


def most_informative_tags(rows: Rows, most: int = SEARCH_TAGS) -> Rows:
    """The rows with only the tags whose frequency is nearest to one half; rare tags hardly affect the mean loss."""
    if not rows.is_multilabel or rows.n_classes <= most:
        return rows
    return rows.with_tags(np.sort(np.argsort(np.abs(rows.prior - 0.5), kind="stable")[:most]))


def judged_rows(rows: Rows, seed: int) -> np.ndarray | None:
    """The rows that judge the ridge, None for all; fewer rows are enough if each has very many tags."""
    most = RIDGE_ROWS // 2 if rows.is_multilabel and rows.n_classes > SEARCH_TAGS else RIDGE_ROWS
    if rows.n_distinct <= 2 * most:
        return None
    return with_copies(rows, sample_rows(rows, most, seed))
