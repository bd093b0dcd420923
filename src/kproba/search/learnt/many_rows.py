"""What changes with many rows: a sharper kernel, and perhaps a centre for every row.

A kernel that is learnt on samples of some hundred rows suits that many. More rows resolve more detail: all widths
shrink together, and so does the noise. Both are chosen by exact leave-one-out on a larger sample.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from scipy import linalg

from ...arrays import Device
from ...data.hashing import distinct
from ...data.rows import Rows
from ...data.sampling import subsample
from ...kernels.learnt import Learnt
from ...problems.least_squares import LeastSquares
from ...problems.local import LocalProblem
from ...solvers.cholesky import kernel_factor
from ...solvers.packed_dual import largest_eigenvalue, resolves
from ..losses import CalibratedLogLoss
from .device_sample import DeviceLeaveOneOut, scores_with_centers
from .parameters import Layout
from .sample import blocks_of, leave_one_out_scores

#: Rows of that sample, and the steps of log-widths and log-noise that are tried while they help.
LARGE_SAMPLE = 2000
SHARPER, LESS_NOISE, MOST_TRIALS = 0.4, -0.6, 4
#: If all rows are centres, each multiple of the sample by this factor adds a step of both, up to a number.
ROWS_OF_A_STEP, MOST_STEPS = 5.0, 2.0
#: Twice as many centres must lower the leave-one-out loss by this share for all rows to become centres.
GAIN_OF_DOUBLING = 0.015
#: Local models may have a leave-one-out loss that is larger by this share than that of one system of all rows, in a
#: sample of this many.
LOSS_OF_REGIONS, COMPARED_ROWS = 0.1, 1500
#: The largest eigenvalue of all rows may exceed the estimate from the sample by this factor.
FLOAT32_MARGIN = 1.5
#: Regions of the sample have at least this part of the rows of a region: smaller ones would be little more than border.
LEAST_SCALE = 0.2


class ManyRows:
    """What a large sample of the rows says about parameters."""

    def __init__(self, rows: Rows, layout: Layout, seed: int, workers: int = 1, device: Device | None = None):
        self.n, self.layout, self.workers, self.device = rows.n_distinct, layout, workers, device
        self.sample = subsample(rows, LARGE_SAMPLE, seed)
        self._gram = lru_cache(maxsize=2)(partial(_gram, rows=self.sample, workers=workers))  # trials of noise share it

    def loss(self, x: np.ndarray, centers: np.ndarray | None = None) -> float:
        kernel, noise = self.layout.kernel(x), self.layout.noise(x)
        return leave_one_out_loss(kernel, noise, self.sample, centers, self.device, self._gram)

    def adapted(self, x: np.ndarray, all_are_centers: bool) -> tuple[np.ndarray, bool, bool]:
        """The parameters for many rows, whether the kernel is sharp, and whether one system of all rows is worth it."""
        x, loss = self.sharpened(x)
        is_sharp = self.wants_all_rows(x, loss) and not self.beats_regions(x, share_centers=False)
        needs_one_system = not is_sharp and self.beats_regions(x)
        if is_sharp or (all_are_centers and not needs_one_system):
            x = self.for_all_rows(x)
        return x, is_sharp, needs_one_system or (not is_sharp and self.is_cheap(x))

    def is_cheap(self, x: np.ndarray) -> bool:
        """Whether float32 will resolve the system of all rows, which takes less than half the time of float64."""
        if self.device is not None:
            return True
        K, root = self._gram(self.layout.kernel(x)), np.sqrt(self.sample.weight)[:, None]
        largest = largest_eigenvalue(lambda v: root * (K @ (root * v)), len(K))
        return resolves(FLOAT32_MARGIN * self.n / self.sample.n_distinct * largest, self.layout.noise(x))

    def sharpened(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The parameters with narrower widths and less noise, as far as the loss improves, and the loss."""
        best = self.loss(x)
        for name, step in (("widths", SHARPER), ("noise", LESS_NOISE)):
            x, best = _while_it_helps(x, best, self.loss, self.layout.join({name: step}))
        return x, best

    def for_all_rows(self, x: np.ndarray) -> np.ndarray:
        """The parameters if all rows are centres: more rows than the sample has resolve more detail."""
        n_steps = np.log(max(self.n / self.sample.n_distinct, 1.0)) / np.log(ROWS_OF_A_STEP)
        return x + min(n_steps, MOST_STEPS) * self.layout.join({"widths": SHARPER, "noise": LESS_NOISE})

    def wants_all_rows(self, x: np.ndarray, loss: float) -> bool:
        """Whether twice as many centres would gain much, given the loss of ``x`` with all rows of the sample."""
        return loss < (1.0 - GAIN_OF_DOUBLING) * self.loss(x, distinct(self.sample.keys)[0][::2])

    def beats_regions(self, x: np.ndarray, share_centers: bool = True) -> bool:
        """Whether one system of all rows is better than local models, in a sample of the rows.

        Rows that are left out together are left out of one system only, and a device solves one system.
        """
        if self.sample.together is not None or self.device is not None:
            return True
        few, kernel, noise = subsample(self.sample, COMPARED_ROWS, 0), self.layout.kernel(x), self.layout.noise(x)
        pose = partial(LeastSquares, rkhs=True)
        scale = max(few.n_distinct / self.n, LEAST_SCALE)
        problem = LocalProblem.of(few, kernel, pose, 0, self.workers, scale, share_centers)
        if problem is None:
            return True
        (solution,) = problem.path([noise / few.total_weight])
        loss = CalibratedLogLoss()(solution.held_out, few)
        gram = partial(_gram, rows=few, workers=self.workers)
        return leave_one_out_loss(kernel, noise, few, gram=gram) < (1.0 - LOSS_OF_REGIONS) * loss


def _while_it_helps(x: np.ndarray, best: float, loss: Callable[[np.ndarray], float], step: np.ndarray):
    """Steps in one direction, or else in the other."""
    for direction in (step, -step):
        moved = False
        for _ in range(MOST_TRIALS):
            tried = loss(x + direction)
            if not tried < best:
                break
            x, best, moved = x + direction, tried, True
        if moved:
            break
    return x, best


def leave_one_out_loss(
    kernel: Learnt,
    noise: float,
    rows: Rows,
    centers: np.ndarray | None = None,
    device: Device | None = None,
    gram: Callable[[Learnt], np.ndarray] | None = None,
) -> float:
    """Log-loss of exact leave-one-out scores, with a centre for every row or for some of them.

    ``gram`` gives the kernel matrix of the rows on the CPU.
    """
    Y, X = rows.targets(), rows.X.astype(np.float32)
    try:
        if device is not None and centers is None and rows.together is None:
            scores = _scores_on_device(device, kernel, noise / rows.weight, X, Y)
        elif centers is None:
            G = (gram or partial(_gram, rows=rows))(kernel).astype(np.float64)
            G[np.diag_indices_from(G)] += noise / rows.weight
            scores = leave_one_out_scores(G, Y, blocks_of(rows.together))
        elif device is not None:
            scores = scores_with_centers(device, kernel, noise, rows.weight, X, centers, Y)
        else:
            scores = _scores_of_some(kernel, noise, rows, X, centers, Y)
    except np.linalg.LinAlgError:
        return np.inf
    return CalibratedLogLoss()(scores, rows) if np.isfinite(scores).all() else np.inf


def _gram(kernel: Learnt, rows: Rows, workers: int = 1) -> np.ndarray:
    return kernel.gram(rows.X.astype(np.float32), workers)


def _scores_on_device(device: Device, kernel: Learnt, noise: np.ndarray, X, Y) -> np.ndarray:
    G = kernel.gram_on_device(device, device.put(X, np.float64))
    return device.get(DeviceLeaveOneOut.of(device, G + device.eye(len(Y)) * device.put(noise), device.put(Y)).scores)


def _scores_of_some(kernel, noise: float, rows: Rows, X, centers, Y) -> np.ndarray:
    """Leave-one-out by leverages: y − (y − f)/(1 − h)."""
    root, X = np.sqrt(rows.weight)[:, None], X.astype(np.float64)  # float32 would make the system indefinite
    Phi = kernel(X, X[centers]) * root
    H = Phi.T @ Phi + noise * kernel.gram(X[centers])
    B = linalg.solve_triangular(kernel_factor(H), Phi.T, lower=True)
    fitted, leverage = B.T @ (B @ (root * Y)) / root, np.einsum("bi,bi->i", B, B)[:, None]
    return Y - (Y - fitted) / (1.0 - leverage)
