"""Explanations beside shap's KernelExplainer, and partial dependence beside scikit-learn's -> results/explain.json."""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.inspection import partial_dependence as by_prediction
from sklearn.model_selection import train_test_split

from kproba import LSPC, explain, partial_dependence
from kproba.kernels import Additive, Gaussian, Laplacian, Learnt, Pairs

from . import results

COLUMNS, CENTERS, ROWS, BACKGROUND = 30, 2000, 100, 100
KERNELS = {
    "laplacian": Laplacian(8.0),
    "gaussian": Gaussian(5.0),
    "additive": Additive(2.0),
    "pairs": Pairs(2.0),
    "learnt": Learnt(tuple(np.linspace(0.1, 1.0, COLUMNS).tolist()), (5.0, 5.0, 1.0), (0.4, 0.2, 0.3, 0.1)),
}
NOTE = (
    "few_rows: three rows of breast_cancer (30 columns) and the default LSPC fitted on the other 566; the background "
    "is 100 of its rows, and shap explains the same outputs with its default settings, which keep ten columns. error "
    "is the largest difference from the exact values for the same background rows, as a share of the largest value. "
    "many_rows: 100 rows, 30 columns, 2,000 centres. dependence: one column at 100 values, averaged over 500 rows of "
    "the same models. Medians of repeats."
)


def few_rows(repeats: int) -> dict:
    """Three rows of a real table: seconds, and how far sampled values are from exact ones."""
    import shap  # here, so that the module can be imported without it

    X, y = load_breast_cancer(return_X_y=True)
    clf, background = LSPC(random_state=0).fit(X[3:], y[3:]), X[3 : 3 + BACKGROUND]

    def outputs(rows):
        return clf.link_.explained(clf._scores(rows))[:, 1]

    def sampled():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a regression that shap selects columns with
            return shap.KernelExplainer(outputs, background).shap_values(X[:3], silent=True)

    exact = explain(clf, X[:3], background=background, absent="joint").values[:, :, 1]
    seconds = {
        "explain": results.median_time(lambda: explain(clf, X[:3]), repeats),
        "explain, joint": results.median_time(
            lambda: explain(clf, X[:3], background=background, absent="joint"), repeats
        ),
    }
    found, seconds["shap"] = results.timed(sampled)
    return {"seconds": seconds, "centers": len(clf.coef_), "error": np.abs(found - exact).max() / np.abs(exact).max()}


def draw(folder) -> None:
    """One doubtful row and all new rows, as on the page about explanations -> explain.png."""
    from matplotlib.figure import Figure

    from kproba.displays import ExplanationDisplay

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, X_new, y, _ = train_test_split(X, np.where(y == 0, "malignant", "benign"), random_state=0)
    clf = LSPC(kernel="laplacian", random_state=0).fit(X, y)
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    ExplanationDisplay.from_estimator(clf, X_new[91:92], name="malignant", most=10, ax=left)
    ExplanationDisplay.from_estimator(clf, X_new, name="malignant", most=10, ax=right)
    right.set_title("143 rows; blue: low values, red: high")
    figure.savefig(folder / "explain.png", dpi=110)


def model_of(kernel) -> tuple[LSPC, np.ndarray]:
    """A model with as many centres as rows, and its rows."""
    X = np.random.default_rng(0).normal(size=(CENTERS, COLUMNS))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + X[:, 2] * X[:, 3] > 0
    return LSPC(kernel=kernel, ridge=1e-3, centers="all", random_state=0).fit(X, y), X


def many_rows(kernel, repeats: int) -> dict:
    """Seconds for many rows, and the largest difference between scores and sums of values."""
    clf, X = model_of(kernel)
    found = explain(clf, X[:ROWS], output="scores")
    return {
        "seconds": results.median_time(lambda: explain(clf, X[:ROWS]), repeats),
        "sums_differ_by": float(np.abs(found.outputs - clf._scores(X[:ROWS])).max()),
    }


def dependence(kernel) -> dict:
    """Seconds of both, and the largest difference of an average."""
    clf, X = model_of(kernel)
    partial_dependence(clf, X[:10], [1])
    ours, seconds = results.timed(lambda: partial_dependence(clf, X[:500], [1]))
    theirs, plain = results.timed(lambda: by_prediction(clf, X[:500], [1]))
    return {
        "seconds": {"partial_dependence": seconds, "scikit-learn": plain},
        "differ_by": float(np.abs(ours.average - theirs.average).max()),
    }


def main(argv=None) -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args(argv)
    payload: dict = {"note": NOTE, "few_rows": few_rows(args.repeats)}
    print(payload["few_rows"], file=sys.stderr, flush=True)
    payload["many_rows"] = {name: many_rows(kernel, args.repeats) for name, kernel in KERNELS.items()}
    print(payload["many_rows"], file=sys.stderr, flush=True)
    payload["dependence"] = {name: dependence(KERNELS[name]) for name in ("laplacian", "learnt")}
    print(payload["dependence"], file=sys.stderr, flush=True)
    results.write("explain", payload, args.out)
    draw(args.out)


if __name__ == "__main__":
    main()
