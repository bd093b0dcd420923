"""Kernel logistic regression on 4,000 rows of letter beside others that fit the same model -> results/klr_letter.json.

All have the same 1,000 centres, width and penalty, so that their training objectives can be compared.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression

from kproba import KernelLogisticRegression

from . import results
from .letter import load_letter
from .rivals.plain_klr import MOST_STEPS, gaussian, log_loss_and_slope, minimised

ROWS, CENTERS, WIDTH, RIDGE = 4000, 1000, 3.0, 3e-5
NOTE = (
    "Fits with given width and ridge on standardised rows, kernel matrices included. Objective: mean log-loss plus "
    "λ/2 Σ θᵀKθ on the training rows, constants free. nystroem: Nystroem + LogisticRegression(lbfgs) on the same "
    "centres, with default tolerance and iterations enough for it. plain: L-BFGS on the coefficients themselves from "
    f"zero, as the 2010 paper trains it, {MOST_STEPS} steps at most. Medians of interleaved repeats."
)


def objective(F, labels, norm: float) -> float:
    """Mean log-loss of the scores plus the penalty of functions with this squared norm."""
    return log_loss_and_slope(F, labels)[0] + 0.5 * RIDGE * float(norm)


def kproba(X, labels, Z, solver="auto", **more):
    model = KernelLogisticRegression(
        kernel="gaussian", width=WIDTH, ridge=RIDGE, centers=Z, scaling=None, solver=solver, **more
    ).fit(X, labels)
    return lambda: objective(
        model.decision_function(X), labels, np.vdot(model.coef_, gaussian(Z, Z, WIDTH) @ model.coef_)
    )


def nystroem(X, labels, Z):
    """The same functions: coefficients of whitened features have the penalty of the kernel's norm."""
    features = Nystroem(gamma=0.5 / WIDTH**2, n_components=len(Z), random_state=0).fit(Z)
    Phi = features.transform(X)
    model = LogisticRegression(C=1.0 / (len(X) * RIDGE), max_iter=5000).fit(Phi, labels)
    return lambda: objective(model.decision_function(Phi), labels, np.vdot(model.coef_, model.coef_))


def plain(X, labels, Z):
    found = minimised(gaussian(X, Z, WIDTH), gaussian(Z, Z, WIDTH), labels, RIDGE)
    return lambda: float(found.fun)


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--centers", type=int, default=CENTERS)
    args = parser.parse_args(argv)
    X, y, _, _ = load_letter(args.data_dir)
    chosen = np.random.default_rng(0).permutation(len(X))[: args.rows]
    X, labels = X[chosen], np.unique(y[chosen], return_inverse=True)[1]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    Z = X[: args.centers]
    fits = {
        "kproba": lambda: kproba(X, labels, Z),
        "kproba lbfgs": lambda: kproba(X, labels, Z, "lbfgs"),
        "nystroem": lambda: nystroem(X, labels, Z),
        "plain": lambda: plain(X, labels, Z),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        objectives = {name: fit()() for name, fit in fits.items()}
        seconds = results.interleaved(fits, args.repeats)
    ratios = {name: seconds["kproba"] / value for name, value in seconds.items()}
    payload = {"note": NOTE, "rows": len(X), "centers": len(Z), "classes": int(labels.max()) + 1}
    payload |= {"width": WIDTH, "ridge": RIDGE, "seconds": seconds, "objectives": objectives, "time_ratios": ratios}
    print(payload, file=sys.stderr)
    results.write("klr_letter", payload, args.out)


if __name__ == "__main__":
    main()
