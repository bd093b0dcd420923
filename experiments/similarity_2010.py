"""A kernel over the classes (2010 Eq. 4, end of Sec. 4): does it help to know which letters look alike?

Few rows of each letter train. The similarity of two letters comes from the distance of their means among 5,000 other
rows, L(y, y') = exp(-d²/2(τm)²) with m the median distance: knowledge about the classes that the few rows do not
have. The same matrix with its classes shuffled shows whether it is this knowledge that helps.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from experiments import results
from kproba import LSPC
from kproba.data.real import load

DATASETS = ("letter", "usps")
KNOWN_ROWS, TEST_ROWS, TAU = 5_000, 3_000, 0.8
PER_CLASS, REPEATS = (2, 5, 10, 20), 20


def similarity(X, y, classes) -> np.ndarray:
    """L (c, c) from the mean rows of the classes."""
    scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    means = np.array([scaled[y == label].mean(axis=0) for label in classes])
    distance = cdist(means, means)
    return np.exp(-((distance / (TAU * np.median(distance[distance > 0]))) ** 2) / 2)


def matrices(L: np.ndarray, random: np.random.RandomState) -> dict:
    """What is compared: no knowledge, L, and L with its classes shuffled."""
    order = random.permutation(len(L))
    return {"identity": None, "similar": L, "shuffled": L[np.ix_(order, order)]}


def measure(model, X, y) -> dict:
    proba = model.predict_proba(X)
    return {
        "log_loss": log_loss(y, proba, labels=model.classes_),
        "error_percent": 100.0 * np.mean(model.classes_[proba.argmax(axis=1)] != y),
    }


def run_draw(X, y, known, others, per_class: int, seed: int) -> dict:
    """Every matrix on one draw of the training rows."""
    random, classes = np.random.RandomState(seed), np.unique(y)
    order = random.permutation(others)
    train = np.concatenate([order[y[order] == label][:per_class] for label in classes])
    test = np.setdiff1d(others, train)
    test = random.permutation(test)[:TEST_ROWS]
    found = {}
    for name, L in matrices(similarity(X[known], y[known], classes), random).items():
        model = LSPC(kernel="gaussian", scaling="standard", class_similarity=L, random_state=seed, n_jobs=1)
        found[name] = measure(model.fit(X[train], y[train]), X[test], y[test])
    return found


def summary(draws: list[dict]) -> dict:
    """Means, and the p-value of a paired t-test against the identity."""
    out: dict = {}
    for name in draws[0]:
        out[name] = {}
        for key in draws[0][name]:
            own, plain = (np.array([each[of][key] for each in draws]) for of in (name, "identity"))
            out[name][key] = results.mean_and_error(own)
            if name != "identity" and len(draws) > 1:
                out[name][key]["paired_p_against_identity"] = float(stats.ttest_rel(own, plain).pvalue)
    return out


def run_dataset(name: str, options) -> dict:
    table = load(name, options.data_dir)
    X, y = np.asarray(table.X, dtype=np.float64), np.asarray(table.y)
    order = np.random.RandomState(options.seed).permutation(len(y))
    n_known = min(KNOWN_ROWS, len(y) // 2)
    repeats, found = 2 if options.quick else REPEATS, {}
    for per_class in PER_CLASS[:1] if options.quick else PER_CLASS:
        given = X, y, order[:n_known], order[n_known:], per_class
        found[f"{per_class}"] = summary([run_draw(*given, options.seed + number) for number in range(repeats)])
        losses = {key: cell["log_loss"]["mean"] for key, cell in found[f"{per_class}"].items()}
        results.say(f"similarity_2010: {name}, {per_class} rows a class: {losses}")
    return found


def more_options(parser) -> None:
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), help="default: %(default)s")


def main(argv=None) -> None:
    options = results.parse(argv, __doc__, more_options)
    with threadpool_limits(1):
        found = {name: run_dataset(name, options) for name in options.datasets}
    content = {
        "what": "test log-loss and error of LSPC with a Gaussian kernel, by the rows of a class that train: without a "
        "kernel over the classes, with that of classes whose means are near each other in other rows, and with the "
        "same shuffled; paired t-tests over the draws",
        "known_rows": KNOWN_ROWS,
        "tau": TAU,
        "repeats": 2 if options.quick else REPEATS,
        "datasets": found,
    }
    results.write("similarity_2010", content, options)


if __name__ == "__main__":
    main(sys.argv[1:])
