"""Where the surface classifier's centres come from: log-loss by their number -> results/surface_centers.json."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.model_selection import train_test_split

from kproba import SurfaceKernelClassifier, TimesMedian
from kproba.data.real import load

from . import results
from .tables_quality import measure

SETS = ("magic", "electricity", "skin", "satimage")
CENTERS = (10, 30, 100, 300, 1000)
MODES = ("k-means", "class-k-means", "random")
MOST_ROWS, MOST_TEST = 15_000, 10_000
WIDTHS = (0.3, 0.6, 1.2, 2.5)


def load_split(name: str, data_dir, seed: int):
    """X_train, y_train, X_test, y_test, spread over the classes."""
    table = load(name, data_dir)
    X, y = np.asarray(table.X, dtype=np.float64), np.asarray(table.y)
    train = min(MOST_ROWS, int(0.7 * len(y)))
    sizes = {"train_size": train, "test_size": min(MOST_TEST, len(y) - train)}
    X, X_test, y, y_test = train_test_split(X, y, **sizes, random_state=seed, stratify=y)
    return X, y, X_test, y_test


def run(r: int, mode: str, data, seed: int) -> dict:
    X, y, X_test, y_test = data
    options = {"kernel": "gaussian", "width": TimesMedian(WIDTHS), "scaling": "robust", "random_state": seed}
    model, seconds = results.timed(lambda: SurfaceKernelClassifier(r, centers=mode, **options).fit(X, y))
    return measure(y_test, model.predict_proba(X_test), model.classes_) | {"fit_seconds": seconds}


def draw(payload: dict, folder) -> None:
    """The curves of every set beside each other -> surface_centers.png."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(payload["sets"]), 3.2), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(payload["sets"])))
    for axes, name in zip(panels, payload["sets"]):
        for mode, colour, marker in zip(payload["modes"], ("#0072B2", "#009E73", "#D55E00"), "so^"):
            found = {r: payload["cells"].get(f"{name}/{mode}/{r}") for r in payload["centers"]}
            means = [(r, np.mean([cell["log_loss"] for cell in cells])) for r, cells in found.items() if cells]
            axes.semilogx(*zip(*means), color=colour, marker=marker, markersize=4, label=mode)
        axes.set(title=name, xlabel="centres")
    panels[0].set_ylabel("test log-loss")
    panels[-1].legend(frameon=False)
    figure.savefig(folder / "surface_centers.png", dpi=110)


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--draw-only", action="store_true", help="draw the result that is there")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--centers", nargs="+", type=int, default=CENTERS)
    parser.add_argument("--seeds", type=int, default=3, help="splits and seeds; the largest number of centres gets one")
    args = parser.parse_args(argv)
    if args.draw_only:
        held = results.read("surface_centers", args.out)
        if held is None:
            parser.error(f"there is no surface_centers.json in {args.out}")
        return draw(held, args.out)
    payload: dict = {"sets": {}, "centers": list(args.centers), "modes": list(MODES), "seeds": args.seeds, "cells": {}}
    for name in args.sets:
        for seed in range(args.seeds):
            data = load_split(name, args.data_dir, seed)
            payload["sets"][name] = {"train": len(data[1]), "test": len(data[3]), "classes": len(np.unique(data[1]))}
            for r in args.centers:
                if seed and r >= 1000:
                    continue
                for mode in MODES:
                    cell = run(r, mode, data, seed)
                    payload["cells"].setdefault(f"{name}/{mode}/{r}", []).append(cell)
                    print(f"{name} {mode} {r}: {cell['log_loss']:.4f}", file=sys.stderr, flush=True)
            results.write("surface_centers", payload, args.out)
    draw(payload, args.out)


if __name__ == "__main__":
    main()
