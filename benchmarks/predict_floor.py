"""predict_proba, rows a second, beside the bare products in NumPy -> results/predict_floor.json."""

from __future__ import annotations

import sys

import numpy as np
from scipy.spatial.distance import cdist

from kproba import LSPC

from . import fit_floor, results
from .letter import load_letter

#: Kernel -> width in standardised columns.
WIDTHS = {"gaussian": fit_floor.WIDTH, "laplacian": 10.0}
#: Rows in a block of the floor; None is the whole array at once.
BLOCKS = (None, 128, 1024)
NOTE = (
    "Floor: distances, exp, Φθ and the model's softmax on rows that are scaled already, in plain NumPy and "
    "SciPy over the whole array or in blocks of rows, whichever is fastest. Medians of interleaved repeats."
)


def laplacian_features(X, Z, width):
    phi = cdist(X, Z, "cityblock")
    phi *= -1.0 / width
    return np.exp(phi, out=phi)


def floor(model, X, features, width, block):
    """Probabilities by the bare products."""
    Z, coef = model.basis_.centers, model.coef_.astype(X.dtype)
    starts = range(0, len(X), block or len(X))
    parts = [features(X[s : s + (block or len(X))], Z, width) @ coef for s in starts]
    return model.link_.probabilities(np.concatenate(parts))


def measure(kernel: str, train, X, repeats: int) -> dict:
    """Rows a second of the model and of the floors, and the ratio of the times."""
    width = WIDTHS[kernel]
    model = LSPC(
        kernel=kernel, width=width, ridge=1e-4, centers=fit_floor.CENTERS, scaling="standard", random_state=0
    ).fit(*train)
    features = fit_floor.features if kernel == "gaussian" else laplacian_features
    rows = model.scaling_(X)
    difference = np.abs(floor(model, rows, features, width, None) - model.predict_proba(X)).max()

    def floor_of(block):
        return lambda: floor(model, rows, features, width, block)

    functions = {"model": lambda: model.predict_proba(X)}
    functions |= {f"floor, {block or 'all'} rows": floor_of(block) for block in BLOCKS}
    seconds = results.interleaved(functions, repeats)
    best = min(value for name, value in seconds.items() if name != "model")
    return {
        "rows_per_second": {name: len(X) / value for name, value in seconds.items()},
        "ratio": seconds["model"] / best,
        "probabilities_differ_by": float(difference),
    }


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args(argv)
    X, y, X_test, _ = load_letter(args.data_dir)
    everything = np.vstack([X, X_test])
    payload = {"note": NOTE, "rows": len(everything), "centers": fit_floor.CENTERS, "cells": {}}
    for kernel in WIDTHS:
        for dtype in ("float64", "float32"):
            cell = measure(kernel, (X.astype(dtype), y), everything.astype(dtype), args.repeats)
            payload["cells"][f"{kernel} {dtype}"] = cell
            print(f"{kernel} {dtype}: {cell}", file=sys.stderr, flush=True)
    results.write("predict_floor", payload, args.out)


if __name__ == "__main__":
    main()
