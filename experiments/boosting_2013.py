"""Gradient boosting of surface kernel classifiers, which 2013 Sec. 6 leaves to future work: does it help?

The surface loss is a quadratic, so the negative gradient at a row is its residual, one-hot label minus output. A stage
is the paper's model, fitted to the residuals of the stages before it by the same box-constrained programme, on k-means
centres of its own:

    f_m = f_{m-1} + η Σ_l α_l k(x, s_l) + η α_0,    Σ_j α^j = 0,    -1 ≤ α ≤ 1.

The number of stages is chosen on a fifth of the training rows. Beside it: one stage, and one stage with as many centres
as all stages have together.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from experiments import results
from kproba import Gaussian, recipes
from kproba.data.real import load
from kproba.estimators.surface import surface_centers
from kproba.links.plain import Clip
from kproba.metrics import surface_loss
from kproba.solvers import box_qp
from kproba.solvers.surface_loss import SurfaceLoss

#: The paper hopes for gains "when the number of attributes and classes is large".
SETS = ("magic", "satimage", "letter", "usps", "covertype_93k")
MOST_ROWS, STAGES, RATES = 5_000, 10, (1.0, 0.3)
LEAST = 1e-3
REPEATS = 3


@dataclass
class Stage:
    """Centres, kernel and coefficients, the constants in the last row."""

    kernel: Gaussian
    centers: np.ndarray
    coef: np.ndarray

    def __call__(self, X) -> np.ndarray:
        return self.kernel(X, self.centers) @ self.coef[:-1] + self.coef[-1]


def fit_stage(X, target, kernel: Gaussian, r: int, seed: int, total: float) -> Stage:
    """The maximum of the surface loss for targets whose rows sum to ``total``: 1 for labels, 0 for residuals."""
    centers = MiniBatchKMeans(r, random_state=seed, n_init=1, batch_size=2048).fit(X).cluster_centers_
    phi = np.hstack([kernel(X, centers), np.ones((len(X), 1))])
    sums = np.zeros(r + 1)
    sums[-1] = total
    coef, _, _ = box_qp.maximise(SurfaceLoss(phi.T @ phi / len(X), phi.T @ target / len(X), sums))
    return Stage(kernel, centers, coef)


def boost(X, Y, kernel: Gaussian, r: int, rate: float, n_stages: int, seed: int):
    """The stages; the first one is the paper's model, unshrunken."""
    stages, output = [fit_stage(X, Y, kernel, r, seed, 1.0)], 0.0
    output = stages[0](X)
    for number in range(1, n_stages):
        stage = fit_stage(X, Y - output, kernel, r, seed + number, 0.0)
        stage.coef *= rate
        stages.append(stage)
        output = output + stage(X)
    return stages


def staged(stages, X):
    """The outputs after every stage."""
    return np.cumsum([stage(X) for stage in stages], axis=0)


def judged(output, y) -> dict:
    """The paper's measures, negative outputs set to zero."""
    proba = Clip().probabilities(output)
    kept = np.maximum(proba, LEAST)
    classes = np.arange(output.shape[1])
    return {
        "accuracy": 100.0 * np.mean(proba.argmax(axis=1) == y),
        "loss_log": log_loss(y, kept / kept.sum(axis=1, keepdims=True), labels=classes),
        "loss_surf": surface_loss(y, proba, labels=classes),
    }


def run_split(X, y, X_test, y_test, n_stages: int, seed: int) -> dict:
    """One stage, as many centres at once, and boosting with every rate; CPU seconds of each."""
    chooser = recipes.skc_2013(solver="exact", random_state=seed, n_jobs=1).fit(X, y)
    X, X_test = chooser.scaling_(X), chooser.scaling_(X_test)
    c, r, kernel = len(chooser.classes_), surface_centers(len(X)), Gaussian(width=chooser.width_)
    Y, found = np.eye(c)[y], {}
    few, held, y_few, y_held = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    for name, size in (("one stage", r), ("one stage, all centres", min(n_stages * r, len(X) // 2))):
        start = time.process_time()
        output = fit_stage(X, Y, kernel, size, seed, 1.0)(X_test)
        found[name] = judged(output, y_test) | {"seconds": time.process_time() - start, "centers": size}
    for rate in RATES:
        start = time.process_time()
        on_held = staged(boost(few, np.eye(c)[y_few], kernel, r, rate, n_stages, seed), held)
        losses = [judged(output, y_held)["loss_surf"] for output in on_held]
        best = int(np.argmax(losses)) + 1
        output = staged(boost(X, Y, kernel, r, rate, best, seed), X_test)[-1]
        took = {"seconds": time.process_time() - start, "centers": best * r, "stages": best}
        found[f"boosted, rate {rate:g}"] = judged(output, y_test) | took
    return found


def run_set(name: str, options) -> dict:
    table = load(name, options.data_dir)
    X, y = np.asarray(table.X, dtype=np.float64), np.unique(np.asarray(table.y), return_inverse=True)[1]
    splits = []
    for number in range(1 if options.quick else REPEATS):
        seed, rows = options.seed + number, 200 if options.quick else min(MOST_ROWS, len(y) * 2 // 3)
        X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=rows, stratify=y, random_state=seed)
        n_stages = 3 if options.quick else STAGES
        splits.append(run_split(X_train, y_train, X_test[:10_000], y_test[:10_000], n_stages, seed))
    cells = {
        method: {key: results.mean_and_error([each[method][key] for each in splits]) for key in splits[0][method]}
        for method in splits[0]
    }
    results.say(f"{name}: " + ", ".join(f"{m} {cells[m]['loss_log']['mean']:.3f}" for m in cells))
    return {"rows": rows, "classes": int(y.max()) + 1, "columns": X.shape[1], "methods": cells}


def more_options(parser) -> None:
    parser.add_argument("--sets", nargs="+", default=list(SETS), help="default: %(default)s")


def main(argv=None) -> None:
    options = results.parse(argv, __doc__, more_options)
    with threadpool_limits(1):
        sets = {name: run_set(name, options) for name in options.sets}
    content = {
        "what": "test measures of the paper's model with one stage, with one stage of as many centres as all stages "
        "have together, and boosted, the number of stages chosen on held-out rows; the width is that chosen for one "
        "stage; seconds: CPU time of one thread, the choice of the number of stages included",
        "repeats": 1 if options.quick else REPEATS,
        "stages": STAGES,
        "sets": sets,
    }
    results.write("boosting_2013", content, options)


if __name__ == "__main__":
    main(sys.argv[1:])
