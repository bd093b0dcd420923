"""A fit with given width and ridge beside the bare products in NumPy and SciPy -> results/fit_floor.json."""

from __future__ import annotations

import sys

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kproba import LSPC

from . import results
from .letter import load_letter

WIDTH, RIDGE, CENTERS = 2.0, 1e-4, 2000
NOTE = (
    "Floor: squared distances by one product, exp, ΦᵀΦ and ΦᵀY in the precision of X over whole arrays, "
    "Cholesky solve in float64 (as the library does), on rows and centres that are scaled already. "
    "Medians of interleaved repeats."
)


def features(X, Z, width, out=None):
    """exp(−‖x − z‖²/2σ²) with as few passes over the memory as NumPy allows."""
    scale = X.dtype.type(1.0 / width**2)
    phi = np.matmul(X * scale, Z.T, out=out)
    phi -= (np.einsum("ij,ij->i", X, X) * (scale / 2))[:, None]
    phi -= np.einsum("ij,ij->i", Z, Z) * (scale / 2)
    return np.exp(phi, out=phi)


def floor(X, Z, Y, width=WIDTH, ridge=RIDGE):
    """Coefficients of (H + λI)θ = h."""
    phi = features(X, Z, width)
    H, h = phi.T @ phi, phi.T @ Y
    H = H.astype(np.float64, copy=False)
    H.flat[:: len(H) + 1] += len(X) * ridge
    return cho_solve(cho_factor(H, overwrite_a=True, check_finite=False), h, check_finite=False)


def model(**changes) -> LSPC:
    given = {"kernel": "gaussian", "width": WIDTH, "ridge": RIDGE, "centers": CENTERS, "scaling": "standard"}
    return LSPC(**{**given, "link": "clip", "random_state": 0, **changes})


def measure(X, y, repeats: int) -> dict:
    """Seconds of the floor and of the fits, and their ratios."""
    fitted = model(penalty="parameters").fit(X, y)
    rows, centers = fitted.scaling_(X), fitted.basis_.centers
    Y = (y[:, None] == fitted.classes_).astype(X.dtype)
    difference = np.abs(floor(rows, centers, Y) - fitted.coef_).max() / np.abs(fitted.coef_).max()
    seconds = results.interleaved(
        {
            "floor": lambda: floor(rows, centers, Y),
            "parameters": lambda: model(penalty="parameters").fit(X, y),
            "rkhs": lambda: model(penalty="rkhs").fit(X, y),
            "calibrated": lambda: model(penalty="rkhs", link="auto").fit(X, y),
        },
        repeats,
    )
    ratios = {name: value / seconds["floor"] for name, value in seconds.items() if name != "floor"}
    return {"seconds": seconds, "ratios": ratios, "coefficients_differ_by": float(difference)}


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args(argv)
    X, y, _, _ = load_letter(args.data_dir)
    payload = {"note": NOTE, "rows": len(X), "centers": CENTERS, "width": WIDTH, "ridge": RIDGE, "cells": {}}
    for dtype in ("float64", "float32"):
        payload["cells"][dtype] = measure(X.astype(dtype), y, args.repeats)
        print(f"{dtype}: {payload['cells'][dtype]}", file=sys.stderr, flush=True)
    results.write("fit_floor", payload, args.out)


if __name__ == "__main__":
    main()
