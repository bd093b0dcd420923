"""Kernel logistic regression on 4,000 rows of letter beside others that fit the same model -> results/klr_letter.json.

All have the same 1,000 centres, width and penalty, so that their training objectives can be compared.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression

from kproba import KernelLogisticRegression

from . import results
from .letter import load_letter

ROWS, CENTERS, WIDTH, RIDGE = 4000, 1000, 3.0, 3e-5
NOTE = (
    "Fits with given width and ridge on standardised rows, kernel matrices included. Objective: mean log-loss plus "
    "λ/2 Σ θᵀKθ on the training rows, constants free. nystroem: Nystroem + LogisticRegression(lbfgs) on the same "
    "centres, with default tolerance and iterations enough for it. plain: L-BFGS on the coefficients themselves from "
    "zero, as the 2010 paper trains it, with SciPy's default tolerances. Medians of interleaved repeats."
)


def gaussian(X, Z, width=WIDTH) -> np.ndarray:
    squares = np.square(X).sum(axis=1)[:, None] - 2.0 * X @ Z.T + np.square(Z).sum(axis=1)
    return np.exp(np.minimum(-squares / (2.0 * width**2), 0.0))


def log_loss_terms(F, labels):
    """Mean log-loss of scores, and its derivative by the scores."""
    F = F - F.max(axis=1, keepdims=True)
    P = np.exp(F)
    total = P.sum(axis=1, keepdims=True)
    loss = np.mean(np.log(total[:, 0]) - F[np.arange(len(F)), labels])
    P /= total
    P[np.arange(len(F)), labels] -= 1.0
    return loss, P / len(F)


def objective(F, labels, norm: float) -> float:
    """Mean log-loss of the scores plus the penalty of functions with this squared norm."""
    return float(log_loss_terms(F, labels)[0] + 0.5 * RIDGE * norm)


def kproba(X, labels, Z, solver="auto", **more):
    model = KernelLogisticRegression(
        kernel="gaussian", width=WIDTH, ridge=RIDGE, centers=Z, scaling=None, solver=solver, **more
    ).fit(X, labels)
    return lambda: objective(model.decision_function(X), labels, np.vdot(model.coef_, gaussian(Z, Z) @ model.coef_))


def nystroem(X, labels, Z):
    """The same functions: coefficients of whitened features have the penalty of the kernel's norm."""
    features = Nystroem(gamma=0.5 / WIDTH**2, n_components=len(Z), random_state=0).fit(Z)
    Phi = features.transform(X)
    model = LogisticRegression(C=1.0 / (len(X) * RIDGE), max_iter=5000).fit(Phi, labels)
    return lambda: objective(model.decision_function(Phi), labels, np.vdot(model.coef_, model.coef_))


def plain(X, labels, Z, max_iter=20_000):
    """L-BFGS on the coefficients, preconditioned by nothing."""
    Phi, K, c = gaussian(X, Z), gaussian(Z, Z), labels.max() + 1

    def value_and_gradient(x):
        theta, constant = x[:-c].reshape(len(Z), c), x[-c:]
        loss, R = log_loss_terms(Phi @ theta + constant, labels)
        pull = RIDGE * (K @ theta)
        return loss + 0.5 * np.vdot(theta, pull), np.concatenate([(Phi.T @ R + pull).ravel(), R.sum(axis=0)])

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter}
    found = minimize(value_and_gradient, np.zeros((len(Z) + 1) * c), jac=True, method="L-BFGS-B", options=options)
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
