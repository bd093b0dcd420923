"""Error and training time against the number of rows and of classes (2010 Figs 7 and 8).

As in the paper, width and ridge are chosen in every draw, and the time is the CPU time of training with them. Times are
of one thread, so that a busy machine moves them little. The paper does not say how often it repeats; here every point
is drawn up to ``--repeats`` times, as far as ``--minutes`` allow, one draw of each point after the other, and the
results state how often that was. Draws are kept in ``size_2010_draws.jsonl`` beside the results, each with its commit,
so the same call goes on where the last one stopped.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from benchmarks.rivals.plain_klr import PlainKLR
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from sklearn.base import clone

from experiments import results
from experiments.trials import Trials, completed
from kproba import recipes
from kproba.data.real import load

#: A method is one entry: a name, and how to make an unfitted classifier for n rows from a seed. Five Cholesky factors
#: take less time than an eigendecomposition, and give the same.
METHODS = {
    "LSPC": lambda n, seed: recipes.lspc_2010(random_state=seed, n_jobs=1, solver="cholesky"),
    "LSPC(full)": lambda n, seed: recipes.lspc_full_2010(random_state=seed, n_jobs=1, solver="cholesky"),
    "KLR": lambda n, seed: recipes.klr_2010(n, random_state=seed, n_jobs=1),
}
#: The same model by L-BFGS on its coefficients, as in the paper, with what was chosen for KLR.
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
#: The paper does not say how many; its follow-up of 2011 has 50.
REPEATS = 50
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
#: A training that is shorter than this is timed several times, and the shortest counts.
WORTH_REPEATING = 0.2


def frozen(fitted):
    """An unfitted copy with everything chosen: train it by one ``fit``."""
    return clone(fitted).set_params(width=fitted.width_, ridge=fitted.ridge_)


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


@lru_cache(maxsize=1)
def pool_of(name: str, data_dir) -> Pool:
    """The rows of a set, read once in each process."""
    return Pool(name, data_dir)


def cpu_seconds(work, repeats: int = 3) -> float:
    """CPU time of one call; of the fastest of several where it is short."""
    seconds = []
    while not seconds or (len(seconds) < repeats and seconds[0] < WORTH_REPEATING):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


class Draw(NamedTuple):
    """One draw of one point of the figures."""

    name: str
    n: int
    c: int
    number: int

    @property
    def key(self) -> tuple[str, int]:
        return f"{self.name}/{self.n}/{self.c}", self.number

    @property
    def place(self) -> tuple[int, int]:
        """The order in which draws are made: one of each point, then the next one of each."""
        return self.number, self.n

    @property
    def work(self) -> float:
        """What it costs, roughly."""
        return float(self.n**2)


def run_draw(draw: Draw, seed: int, data_dir=None) -> dict:
    """Error, training time, and the time and outcome of the choice, for every method."""
    seed = seed + draw.number
    X, y, X_test, y_test = pool_of(draw.name, data_dir).draw(draw.n, draw.c, seed)
    found = {}
    for name, make in METHODS.items():
        start = time.process_time()
        model = frozen(make(len(y), seed).fit(X, y))
        choosing = time.process_time() - start
        found[name] = train(model, X, y, X_test, y_test)
        found[name] |= {"choosing_seconds": choosing, "width": model.width, "ridge": model.ridge}
    klr = found["KLR"]
    found[PLAIN] = train(PlainKLR(width=klr["width"], ridge=klr["ridge"]), X, y, X_test, y_test)
    return found


def train(model, X, y, X_test, y_test) -> dict:
    """Error in percent on the test rows, and the CPU time of training."""
    seconds = cpu_seconds(lambda: model.fit(X, y))
    return {"error_percent": 100.0 * np.mean(model.predict(X_test) != y_test), "training_seconds": seconds}


def points_of(name: str, n_classes: int, quick: bool) -> dict[str, list[tuple[int, int]]]:
    """(n, c) of every point of both figures."""
    rows = (100, 200) if quick else ROWS
    classes = (2, n_classes) if quick else CLASSES.get(name, (2, n_classes))
    return {
        "fig7": [(n, n_classes) for n in rows],
        "fig8": [(100 if quick else ROWS_OF_FIG8, c) for c in classes],
    }


def run_draws(pools: dict[str, Pool], options, trials: Trials) -> None:
    """All draws that are not there yet, until the time is up."""
    points = {
        (name, *point)
        for name, pool in pools.items()
        for figure in points_of(name, len(pool.rows), options.quick).values()
        for point in figure
    }
    draws = [Draw(*point, number) for point in sorted(points) for number in range(options.repeats)]
    draws = [draw for draw in sorted(draws, key=lambda each: each.place) if draw.key not in trials.done]
    watch = results.Stopwatch("size_2010", sum(draw.work for draw in draws), options.minutes)

    def in_time() -> Iterator[Draw]:
        yield from (draw for draw in draws if draw.number == 0 or not watch.is_up)  # a point needs one draw

    run = partial(run_draw, seed=options.seed, data_dir=options.data_dir)
    for draw, found in completed(run, in_time(), options.workers):
        trials.add({"set": draw.key[0], "number": draw.number, "methods": found})
        watch.tick(draw.work, f"{draw.name}, n={draw.n}, c={draw.c}, draw {draw.number + 1}")


def summary(name: str, n: int, c: int, trials: Trials) -> dict:
    """Means and standard errors of one point over its draws."""
    done = [each["methods"] for each in trials.of(f"{name}/{n}/{c}")]
    point: dict = {"n": n, "c": c, "rows": n // c * c, "draws": len(done), "methods": {}}
    for method in (*METHODS, PLAIN):
        rows = [each[method] for each in done]
        point["methods"][method] = {
            key: results.mean_and_error([row[key] for row in rows])
            for key in ("error_percent", "training_seconds", "choosing_seconds")
            if key in rows[0]
        }
        if "ridge" in rows[0]:
            point["methods"][method] |= {key: [row[key] for row in rows] for key in ("width", "ridge")}
    return point


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
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=len(METHODS) + 1,
        title=f"Means of {draws_of(found)} draws a point, with standard errors",
    )
    return figure


def draws_of(found: dict) -> str:
    """How many draws the points have: "7", or "7 to 8"."""
    counts = sorted({point["draws"] for each in found.values() for points in each.values() for point in points})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


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
    parser.add_argument("--repeats", type=int, help="random draws a point (default: 50; 1 with --quick)")
    parser.add_argument("--minutes", type=float, help="begin no draw after this time, except a point's first")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), help="default: %(default)s")
    results.add_workers(parser)


def main(argv=None) -> None:
    """Run every dataset, then write numbers and pictures."""
    options = results.parse(argv, __doc__, more_options)
    options.repeats = options.repeats or (1 if options.quick else REPEATS)
    pools = {name: Pool(name, options.data_dir) for name in options.datasets}
    shared = {"seed": options.seed, "quick": options.quick}
    trials = Trials("size_2010", options.out, shared, options.stamp["commit"] or "unknown")
    run_draws(pools, options, trials)
    found = {
        name: {
            figure: [summary(name, *point, trials) for point in points]
            for figure, points in points_of(name, len(pool.rows), options.quick).items()
        }
        for name, pool in pools.items()
    }
    content = {
        "what": "training_seconds: CPU time of one fit with width and ridge given, one thread; choosing_seconds: of "
        "the fit that chose them, in every draw; draws: how many there were of a point",
        "klr_over_lspc": ratios(found),
        "repeats": options.repeats,
        "commits": trials.commits,
        "test_rows_per_class": TEST_PER_CLASS,
        "datasets": found,
    }
    results.write("size_2010", content, options)
    results.picture(draw(found, "fig7", "n", "training rows n"), "fig7", options.out)
    results.picture(draw(found, "fig8", "c", "classes c"), "fig8", options.out)


if __name__ == "__main__":
    main(sys.argv[1:])
