"""Error and training time against the number of rows and of classes (2010 Figs 7 and 8).

As in the paper, width and ridge are chosen beforehand and the time is the CPU time of training with them.
Here they are chosen on the first of the repeats and kept for the others (``--choose every`` chooses each
time). Times are of one thread, so that a busy machine moves them little.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
from benchmarks.rivals.plain_klr import PlainKLR
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from experiments import results
from kproba import LSPC, recipes
from kproba.data.real import load

#: A method is one entry: a name, and how to make an unfitted classifier for n rows from a seed.
METHODS = {
    "LSPC": lambda n, seed: recipes.lspc_2010(random_state=seed, n_jobs=1),
    "LSPC(full)": lambda n, seed: recipes.lspc_full_2010(random_state=seed, n_jobs=1),
    "LSPC() default": lambda n, seed: LSPC(random_state=seed, n_jobs=1),
    "KLR": lambda n, seed: recipes.klr_2010(n, random_state=seed, n_jobs=1),
}
#: The same model trained as in the paper, with what was chosen for KLR.
PLAIN = "KLR, plain L-BFGS"
DATASETS = ("mnist", "usps", "satimage", "letter")
ROWS = (100, 200, 500, 1000, 2000)
CLASSES = {
    "mnist": (2, 4, 6, 8, 10),
    "usps": (2, 4, 6, 8, 10),
    "satimage": (2, 3, 4, 5, 6),
    "letter": (2, 6, 13, 26),
}
ROWS_OF_FIG8 = 1000
TEST_PER_CLASS = 100
#: The order of the original numbers, for "the first c classes"; elsewhere it is that of the labels.
CLASS_ORDER = {
    "satimage": (
        "red soil",
        "cotton crop",
        "grey soil",
        "damp grey soil",
        "vegetation stubble",
        "very damp grey soil",
    )
}
#: Where rows times classes are more, plain L-BFGS runs on the first draw alone: a fit takes a minute.
MOST_FOR_PLAIN = 10_000
#: A training that is shorter than this is timed several times, and the shortest counts.
WORTH_REPEATING = 0.2


@dataclass(frozen=True)
class Frozen:
    """A method with everything chosen: train it by one ``fit``. A scaling that was searched for is kept."""

    model: object
    scaling: object = None

    @classmethod
    def of(cls, fitted) -> Frozen:
        width = "auto" if fitted.width_ is None else fitted.width_
        model = clone(fitted).set_params(kernel=fitted.kernel_, width=width, ridge=fitted.ridge_)
        if fitted.scaling != "auto":
            return cls(model)
        return cls(model.set_params(scaling=None), fitted.scaling_)

    def inputs(self, X) -> np.ndarray:
        return X if self.scaling is None else self.scaling(X)


class Pool:
    """The rows of a set by class, from which disjoint training and test rows are drawn."""

    def __init__(self, name: str, data_dir=None):
        data = load(name, data_dir)
        order = CLASS_ORDER.get(name, ())
        labels = np.unique(data.y)
        classes = order if set(order) == set(labels) else labels
        self.X, self.rows = data.X, [np.flatnonzero(data.y == label) for label in classes]

    def draw(self, n: int, c: int, seed: int):
        """⌊n/c⌋ training and 100 test rows of each of the first c classes: (X, y, X_test, y_test)."""
        random, per_class = np.random.RandomState(seed), n // c
        drawn = [random.permutation(rows)[: per_class + TEST_PER_CLASS] for rows in self.rows[:c]]
        train, test = (
            np.concatenate([d[:per_class] for d in drawn]),
            np.concatenate([d[per_class:] for d in drawn]),
        )
        y = np.repeat(np.arange(c), per_class)
        y_test = np.repeat(np.arange(c), [len(d) - per_class for d in drawn])
        return self.X[train].astype(np.float64), y, self.X[test].astype(np.float64), y_test


def cpu_seconds(work) -> float:
    """CPU time of one call; of the fastest of three where it is short."""
    seconds = []
    while not seconds or (len(seconds) < 3 and seconds[0] < WORTH_REPEATING):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def run_point(pool: Pool, n: int, c: int, options) -> dict:
    """Errors, training times and the time of the choice, of every method at one n and c."""
    point: dict = {"n": n, "c": c, "rows": n // c * c, "methods": {}}
    draws = [pool.draw(n, c, options.seed + number) for number in range(options.repeats)]
    for name, make in METHODS.items():
        searches: list[float] = []
        trained = []
        for number, (X, y, X_test, y_test) in enumerate(draws):
            if not number or options.choose == "every":
                start = time.process_time()
                frozen = Frozen.of(make(len(y), options.seed + number).fit(X, y))
                searches.append(time.process_time() - start)
            trained.append(train(frozen.model, frozen.inputs(X), y, frozen.inputs(X_test), y_test))
        point["methods"][name] = summary(trained) | {
            "choosing_seconds": results.mean_and_error(searches),
            "kernel": frozen.model.kernel_.name,
            "width": frozen.model.width_,
            "ridge": frozen.model.ridge_,
        }
    klr = point["methods"]["KLR"]
    plain = PlainKLR(width=klr["width"], ridge=klr["ridge"])
    some = draws[:1] if n * c > MOST_FOR_PLAIN else draws
    point["methods"][PLAIN] = summary([train(plain, *draw) for draw in some])
    return point


def train(model, X, y, X_test, y_test) -> tuple[float, float]:
    """Error in percent on the test rows, and the CPU time of training."""
    seconds = cpu_seconds(lambda: model.fit(X, y))
    return 100.0 * np.mean(model.predict(X_test) != y_test), seconds


def summary(trained) -> dict:
    errors, seconds = zip(*trained)
    return {"error_percent": results.mean_and_error(errors), "training_seconds": results.mean_and_error(seconds)}


def run_dataset(name: str, options) -> dict:
    """Both sets of experiments on one dataset."""
    pool, start = Pool(name, options.data_dir), time.perf_counter()
    c = len(pool.rows)
    rows = (100, 200) if options.quick else ROWS
    classes = (2, c) if options.quick else CLASSES.get(name, (2, c))
    n_fig8 = 100 if options.quick else ROWS_OF_FIG8
    done: dict = {}

    def point(n, c):
        if (n, c) not in done:
            results.say(f"size_2010: {name}, n={n}, c={c} ({time.perf_counter() - start:.0f} s)")
            done[n, c] = run_point(pool, n, c, options)
        return done[n, c]

    return {"fig7": [point(n, c) for n in rows], "fig8": [point(n_fig8, each) for each in classes]}


def ratios(found: dict) -> dict:
    """Training times of both KLRs over those of LSPC and LSPC(full): the headline of the paper, by dataset and n."""
    table: dict = {}
    for name, each in found.items():
        for point in each["fig7"]:
            seconds = {method: row["training_seconds"]["mean"] for method, row in point["methods"].items()}
            table[f"{name}/{point['n']}"] = {
                f"{klr} over {lspc}": seconds[klr] / max(seconds[lspc], 1e-6)
                for klr in ("KLR", PLAIN)
                for lspc in ("LSPC", "LSPC(full)")
            }
    return table


def draw(found: dict, fig: str, by: str, label: str) -> Figure:
    """One row of panels a dataset: error on the left, training time on the right."""
    figure = Figure(figsize=(9.5, 2.7 * len(found) + 0.6), layout="constrained")
    panels = figure.subplots(len(found), 2, squeeze=False)
    for (name, points), (left, right) in zip(((name, each[fig]) for name, each in found.items()), panels):
        for method in (*METHODS, PLAIN):
            draw_line(left, points, by, method, "error_percent")
            draw_line(right, points, by, method, "training_seconds")
        left.set(title=name, ylabel="error (%)", ylim=(0, None))
        right.set(title=name, ylabel="training time (CPU s)", yscale="log")
        for panel in (left, right):
            panel.grid(alpha=0.25)
            panel.set_xscale("log" if by == "n" else "linear")
            panel.set_xticks([p[by] for p in points], [str(p[by]) for p in points])
            panel.xaxis.set_minor_locator(NullLocator())
    for panel in panels[-1]:
        panel.set_xlabel(label)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(METHODS) + 1)
    return figure


def draw_line(panel, points, by: str, method: str, key: str) -> None:
    values = [point["methods"][method][key] for point in points]
    panel.errorbar(
        [point[by] for point in points],
        [value["mean"] for value in values],
        [value["standard_error"] or 0.0 for value in values],
        label=method,
        capsize=2.5,
        markersize=4.5,
        **results.STYLES[method],
    )


def more_options(parser) -> None:
    parser.add_argument("--repeats", type=int, help="random draws a point (default: 5; 1 with --quick)")
    parser.add_argument("--choose", choices=("once", "every"), default="once", help="width and ridge, how often")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), help="default: %(default)s")


def main(argv=None) -> None:
    """Run every dataset, then write numbers and pictures."""
    options = results.parse(argv, __doc__, more_options)
    options.repeats = options.repeats or (1 if options.quick else 5)
    with threadpool_limits(1):
        found = {name: run_dataset(name, options) for name in options.datasets}
    content = {
        "what": "training_seconds: CPU time of one fit with width and ridge given, one thread; "
        "choosing_seconds: of the fit that chose them",
        "klr_over_lspc": ratios(found),
        "repeats": options.repeats,
        "choose": options.choose,
        "test_rows_per_class": TEST_PER_CLASS,
        "datasets": found,
    }
    results.write("size_2010", content, options)
    results.picture(draw(found, "fig7", "n", "training rows n"), "fig7", options.out)
    results.picture(draw(found, "fig8", "c", "classes c"), "fig8", options.out)


if __name__ == "__main__":
    main(sys.argv[1:])
