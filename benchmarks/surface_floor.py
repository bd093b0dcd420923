"""The surface classifier on a million rows beside one bare pass of features and products -> results/surface_floor.json.

And its exact solver by itself, at ten classes and a hundred centres.
"""

from __future__ import annotations

import sys

import numpy as np
from threadpoolctl import threadpool_limits

from kproba import SurfaceKernelClassifier
from kproba.basis.moments import Moments
from kproba.data.toys import clouds_2013
from kproba.solvers import box_qp
from kproba.solvers.surface_loss import SurfaceLoss

from . import results
from .fit_floor import features

CENTERS, CLASSES = 100, 10
NOTE = (
    "Floor: squared distances by one product, exp, ΦᵀΦ and ΦᵀY over blocks of rows that are scaled already, centres "
    "given. 'width given' is the paper's model: k-means, the pass over the rows and the exact solver. 'default' also "
    "chooses kernel, width and column weights on 5,000 rows and calibrates on a sample. Medians of interleaved repeats."
)


def floor(X, Z, Y, width, block=40_000):
    """H and h, block by block."""
    H, h = np.zeros((len(Z), len(Z))), np.zeros((len(Z), Y.shape[1]))
    for start in range(0, len(X), block):
        phi = features(X[start : start + block], Z, width)
        H += phi.T @ phi
        h += phi.T @ Y[start : start + block]
    return H, h


def random_loss(seed: int, q: int = CLASSES, r: int = CENTERS) -> SurfaceLoss:
    """The sums of 5,000 random rows."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((5000, 5))
    classes = np.sin(2.0 * X @ random.standard_normal((5, q))) + 0.5 * random.standard_normal((5000, q))
    phi = features(X, X[:r], 1.5)
    return SurfaceLoss.of(Moments.of(phi, np.eye(q)[classes.argmax(axis=1)]))


def solver(repeats: int) -> dict:
    """Seconds of the exact solver on one core, and what it certifies."""
    losses = [random_loss(seed) for seed in range(5)]
    with threadpool_limits(1):
        seconds = [results.median_time(lambda loss=loss: box_qp.maximise(loss), repeats) for loss in losses]
    gaps = [loss.certificate(box_qp.maximise(loss)[0]).duality_gap for loss in losses]
    return {"seconds": seconds, "largest_duality_gap": max(gaps)}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args(argv)
    toy = clouds_2013(args.rows, random_state=0)
    given = {"n_centers": CENTERS, "random_state": 0}
    paper = {"kernel": "gaussian", "width": "median", "link": "clip", **given}
    fitted = SurfaceKernelClassifier(**paper).fit(toy.X, toy.y)
    rows, Y = fitted.scaling_(toy.X), np.eye(2)[toy.y - 1]
    seconds = results.interleaved(
        {
            "floor": lambda: floor(rows, fitted.basis_.centers, Y, fitted.width_),
            "width given": lambda: SurfaceKernelClassifier(**paper).fit(toy.X, toy.y),
            "default": lambda: SurfaceKernelClassifier(**given).fit(toy.X, toy.y),
        },
        args.repeats,
    )
    ratios = {name: value / seconds["floor"] for name, value in seconds.items() if name != "floor"}
    payload = {"note": NOTE, "rows": args.rows, "centers": CENTERS, "classes": CLASSES, "paper_seconds": [97, 119]}
    payload |= {"seconds": seconds, "ratios": ratios, "solver": solver(args.repeats)}
    print(payload, file=sys.stderr, flush=True)
    results.write("surface_floor", payload, args.out)


if __name__ == "__main__":
    main()
