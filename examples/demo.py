"""Kernel classifiers and a calibrated SVC
=======================================

This example fits them on scikit-learn's digits, prints time, error, log-loss, Brier score and calibration error, and
plots a reliability diagram with 90 % intervals.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
from scipy.stats import beta
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kproba import LSPC, SurfaceKernelClassifier
from kproba.metrics import brier_score, calibration_error, reliability_bins

# %%
# Models and metrics
# ------------------

MODELS = {
    "LSPC()": LSPC(random_state=0),
    "SurfaceKernelClassifier()": SurfaceKernelClassifier(random_state=0),
    "CalibratedClassifierCV(SVC())": CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False),
}


def measure(model, X, y, X_new, y_new) -> dict:
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    proba = model.predict_proba(X_new)
    return {
        "seconds": seconds,
        "error": float((model.predict(X_new) != y_new).mean()),
        "log-loss": log_loss(y_new, proba),
        "Brier": brier_score(y_new, proba),
        "calibration error": calibration_error(y_new, proba),
        "bins": reliability_bins(y_new, proba, n_bins=6, of="all", strategy="uniform"),
    }


# %%
# Reliability diagram
# -------------------
# Every class of every row counts: a probability of 0.2 should be right in a fifth of the cases.


def draw(results: dict):
    figure, axes = plt.subplots(figsize=(6, 5.6), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="perfect")
    for (name, result), colour, marker in zip(results.items(), ("#0072B2", "#009E73", "#D55E00"), "o^s"):
        bins = result["bins"]
        hits = bins.frequency * bins.weight
        # a 90 % interval of a Jeffreys posterior, because some bins have few predictions
        span = beta.ppf([[0.05], [0.95]], hits + 0.5, bins.weight - hits + 0.5)
        error = abs(span - bins.frequency)
        axes.errorbar(bins.confidence, bins.frequency, error, color=colour, marker=marker, capsize=3, label=name)
    axes.set(xlabel="predicted probability of a class", ylabel="observed frequency of the class", aspect="equal")
    axes.set_title("Reliability on held-out digits")
    axes.legend(frameon=False, loc="lower right")
    return figure


# %%
# Running the example
# -------------------
# ``--out`` sets the folder for the figure; ``--show`` opens it in a window instead.


def main(out: str | None = "out") -> None:
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, train_size=900, stratify=y, random_state=0)
    print(f"scikit-learn's digits: {len(X)} training rows, {len(X_new)} test rows, 10 classes\n")
    columns = ("seconds", "error", "log-loss", "Brier", "calibration error")
    print(f"{'':30s}" + "".join(f"{name:>12s}" for name in columns[:-1]) + f"{columns[-1]:>20s}")
    results = {}
    for name, model in MODELS.items():
        results[name] = result = measure(model, X, y, X_new, y_new)
        print(f"{name:30s}" + "".join(f"{result[c]:12.4f}" for c in columns[:-1]) + f"{result[columns[-1]]:20.4f}")
    figure = draw(results)
    if out is None:
        plt.show()
    else:
        path = Path(out) / "reliability.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        print(f"\nReliability diagram: {path.resolve()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", default="out", help="folder for the figure")
    parser.add_argument(
        "--show", dest="out", action="store_const", const=None, help="show the figure in a window instead"
    )
    main(parser.parse_args().out)
