"""What changes with many rows: a sharper kernel, and perhaps a centre for every row.

A kernel that is learnt on samples of some hundred rows suits that many. More rows resolve more detail: all widths
shrink together, and so does the noise. Both are chosen by exact leave-one-out on a larger sample.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from ...arrays import Device
from ...data.hashing import distinct
from ...data.rows import Rows
from ...data.sampling import subsample
from ...kernels.learnt import Learnt
from ...problems.least_squares import LeastSquares
from ...problems.local import LocalProblem
from ...solvers.cholesky import rounding_level
from ..losses import CalibratedLogLoss
from .device_sample import DeviceLeaveOneOut
from .parameters import Layout
from .sample import LeaveOneOut, blocks_of

#: Rows of that sample, and the steps of log-widths and log-noise that are tried while they help.
LARGE_SAMPLE = 3000
SHARPER, LESS_NOISE, MOST_TRIALS = 0.4, -0.6, 4
#: Twice as many centres must lower the leave-one-out loss by this share for all rows to become centres.
GAIN_OF_DOUBLING = 0.015
#: Local models may have a leave-one-out loss that is larger by this share than that of one system of all rows, in a
#: sample of this many.
LOSS_OF_REGIONS, COMPARED_ROWS = 0.1, 1500


def sharpened(x: np.ndarray, rows: Rows, layout: Layout, seed: int, device: Device | None = None) -> np.ndarray:
    """The parameters with narrower widths and less noise, as far as leave-one-out of a large sample improves."""
    sample = subsample(rows, LARGE_SAMPLE, seed)
    loss = lambda at: leave_one_out_loss(layout.kernel(at), layout.noise(at), sample, device=device)  # noqa: E731
    best = loss(x)
    for name, step in (("widths", SHARPER), ("noise", LESS_NOISE)):
        x, best = _while_it_helps(x, best, loss, layout.join({name: step}))
    return x


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


def wants_all_rows(x: np.ndarray, rows: Rows, layout: Layout, seed: int) -> bool:
    """Whether twice as many centres would still gain much."""
    sample, kernel, noise = subsample(rows, LARGE_SAMPLE, seed), layout.kernel(x), layout.noise(x)
    half = leave_one_out_loss(kernel, noise, sample, distinct(sample.keys)[0][::2])
    return leave_one_out_loss(kernel, noise, sample) < (1.0 - GAIN_OF_DOUBLING) * half


def beats_regions(x: np.ndarray, rows: Rows, layout: Layout, seed: int) -> bool:
    """Whether one system of all rows is better than local models, in a sample with as many regions as all rows have.

    Rows that are left out together are left out of one system only.
    """
    if rows.together is not None:
        return True
    sample, kernel, noise = subsample(rows, COMPARED_ROWS, seed), layout.kernel(x), layout.noise(x)
    scale = sample.n_distinct / rows.n_distinct
    local = LocalProblem.of(sample, kernel, LeastSquares, seed, workers=1, scale=scale)  # type: ignore[arg-type]
    (solution,) = local.path([noise / sample.total_weight])
    loss = CalibratedLogLoss()(solution.held_out, sample)
    return leave_one_out_loss(kernel, noise, sample) < (1.0 - LOSS_OF_REGIONS) * loss


def leave_one_out_loss(
    kernel: Learnt, noise: float, rows: Rows, centers: np.ndarray | None = None, device: Device | None = None
) -> float:
    """Log-loss of exact leave-one-out scores, with a centre for every row or for some of them."""
    Y, X = rows.targets(), rows.X.astype(np.float32)
    try:
        if device is not None and centers is None and rows.together is None:
            scores = _scores_on_device(device, kernel, noise / rows.weight, X, Y)
        elif centers is None:
            G = kernel.gram(X).astype(np.float64)
            G[np.diag_indices_from(G)] += noise / rows.weight
            scores = LeaveOneOut.of(G, Y, blocks_of(rows.together)).scores
        else:
            scores = _scores_of_some(kernel, noise, rows, X, centers, Y)
    except np.linalg.LinAlgError:
        return np.inf
    return CalibratedLogLoss()(scores, rows) if np.isfinite(scores).all() else np.inf


def _scores_on_device(device: Device, kernel: Learnt, noise: np.ndarray, X, Y) -> np.ndarray:
    G = kernel.gram_on_device(device, device.put(X, np.float64))
    return device.get(DeviceLeaveOneOut.of(device, G + device.eye(len(Y)) * device.put(noise), device.put(Y)).scores)


def _scores_of_some(kernel, noise: float, rows: Rows, X, centers, Y) -> np.ndarray:
    """Leave-one-out by leverages: y − (y − f)/(1 − h)."""
    root, X = np.sqrt(rows.weight)[:, None], X.astype(np.float64)  # float32 would make the system indefinite
    Phi = kernel(X, X[centers]) * root
    H = Phi.T @ Phi + noise * kernel.gram(X[centers])
    H[np.diag_indices_from(H)] += rounding_level(np.diagonal(H))
    B = linalg.solve_triangular(linalg.cholesky(H, lower=True), Phi.T, lower=True)
    fitted, leverage = B.T @ (B @ (root * Y)) / root, np.einsum("bi,bi->i", B, B)[:, None]
    return Y - (Y - fitted) / (1.0 - leverage)
