"""Tags of images (2011 Table 1): AUC and training time of LSPC-new, LSPC and KLR, on sets that can be had.

As in the paper, 1,000 images drawn at random train and the others test, again and again; every tag has a model of its
own, and in every draw width and ridge are chosen for every tag by 2-fold cross-validation. Training is timed with what
was chosen: CPU times of one thread. The paper's images are not to be had, nor are SURF's visual words of these: the
columns of each set, named in the results, stand in for them. On the first draw, a plain KLR by L-BFGS is timed as well,
which is how the paper trains its own, and kproba's default, which learns its kernel, is judged. Draws are kept in
``images_2011_draws.jsonl`` beside the results, each with its commit, so the same call goes on where the last one
stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from benchmarks.rivals.plain_klr import PlainKLR
from sklearn.model_selection import KFold

from experiments import results
from experiments.size_2010 import cpu_seconds
from experiments.trials import Trials, comparable_to_best, completed
from kproba import LSPC, recipes
from kproba.data.real import load
from kproba.kernels import Gaussian
from kproba.metrics import tag_report
from kproba.search.widths import RIDGES_2010, WIDTHS_2010

#: A method is one entry: a name, and how to make a classifier for n rows with a given width σ and ridge λ.
METHODS: dict[str, Callable] = {
    "LSPC-new": lambda n, **given: recipes.lspc_new_2011(n_jobs=1, **given),
    "LSPC": lambda n, **given: recipes.lspc_2011(n_jobs=1, **given),
    "KLR": lambda n, width, ridge: recipes.klr_2010(n, n_jobs=1, width=width, ridge=2 * ridge / n),
}
#: The same model trained as in the paper, with what was chosen for KLR.
PLAIN = "KLR, plain L-BFGS"
#: The paper has 20 tasks: no more tags than that, the most frequent ones. Columns in the place of 500 visual words.
DATASETS = ("ml_corel5k", "ml_mirflickr5k", "ml_scene")
COLUMNS = {
    "ml_corel5k": "499 words for regions of the image, clusters of colour, texture and shape, present or not",
    "ml_mirflickr5k": "100 precomputed columns that the source does not describe",
    "ml_scene": "294 means and variances of colour in a grid of blocks",
}
MOST_TAGS = 20
TRAINING, QUICK_TRAINING = 1000, 100
REPEATS, QUICK_REPEATS = 50, 2


class Images(NamedTuple):
    """Rows, the most frequent tags, and their names."""

    X: np.ndarray
    Y: np.ndarray
    tags: list[str]

    @classmethod
    def load(cls, name: str, data_dir=None) -> Images:
        data = load(name, data_dir)
        Y = np.asarray(data.y)
        frequent = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:MOST_TAGS])
        names = data.extra.get("label_names", np.array([f"tag {number + 1}" for number in range(Y.shape[1])]))
        return cls(np.asarray(data.X, dtype=np.float64), Y[:, frequent], [str(names[tag]) for tag in frequent])

    def draw(self, n: int, seed: int):
        """n training images and all others: (X, Y, X_test, Y_test)."""
        order = np.random.RandomState(seed).permutation(len(self.X))
        train, test = order[:n], order[n:]
        return self.X[train], self.Y[train], self.X[test], self.Y[test]


def grid(X) -> list[dict]:
    """The paper's widths and ridges, for standardised columns."""
    scaled = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    median = Gaussian().median_width(scaled[:500])
    return [{"width": m * median, "ridge": ridge} for m in WIDTHS_2010 for ridge in RIDGES_2010]


def choose(make: Callable, candidates: list[dict], X, Y, seed: int) -> list[dict]:
    """The width and ridge of every tag, of the smallest squared error of 2-fold cross-validation."""
    losses = np.zeros((len(candidates), Y.shape[1]))
    for train, test in KFold(2, shuffle=True, random_state=seed).split(X):
        for row, given in zip(losses, candidates):
            proba = make(len(train), **given).fit(X[train], Y[train]).predict_proba(X[test])
            row += np.square(proba - Y[test]).sum(axis=0)
    return [candidates[k] for k in losses.argmin(axis=0)]


def run_method(make: Callable, candidates: list[dict], X, Y, X_test, Y_test, seed: int) -> dict:
    """AUC of every tag, what was chosen for it, and the CPU time of training one model a tag."""
    chosen, proba, seconds = choose(make, candidates, X, Y, seed), np.empty(Y_test.shape), 0.0
    for tag, given in enumerate(chosen):
        model = make(len(Y), **given)
        seconds += cpu_seconds(lambda model=model, y=Y[:, tag]: model.fit(X, y), repeats=1)
        proba[:, tag] = model.predict_proba(X_test)[:, 1]
    return {"auc": tag_report(Y_test, proba).auc.tolist(), "training_seconds": seconds, "chosen": chosen}


def plain_seconds(chosen: list[dict], X, Y) -> float:
    """CPU time of a plain KLR a tag, with what was chosen for KLR."""
    models = [PlainKLR(width=given["width"], ridge=2 * given["ridge"] / len(Y)) for given in chosen]
    return sum(cpu_seconds(lambda m=model, y=y: m.fit(X, y), repeats=1) for model, y in zip(models, Y.T))


def run_trial(task: tuple[str, int], data_dir, n: int, seed: int, every: int) -> dict:
    """Every method on one draw with ``every`` so many candidates, and on the first one plain KLR and the default."""
    name, number = task
    seed = seed + number
    X, Y, X_test, Y_test = Images.load(name, data_dir).draw(n, seed)
    given = grid(X)[::every], X, Y, X_test, Y_test, seed
    methods = {name: run_method(make, *given) for name, make in METHODS.items()}
    if number:
        return {"methods": methods}
    default = LSPC(random_state=seed, n_jobs=1).fit(X, Y)
    auc = tag_report(Y_test, default.predict_proba(X_test)).auc
    first = {"plain_seconds": plain_seconds(methods["KLR"]["chosen"], X, Y), "default_auc": 100.0 * float(auc.mean())}
    return {"methods": methods, "first": first}


def run_sets(sets: dict[str, Images], options, trials: Trials) -> None:
    """All draws that are not there yet, those of all sets in turn, until the time is up."""
    n = QUICK_TRAINING if options.quick else TRAINING
    todo = [(name, k) for k in range(options.repeats) for name in sets if (name, k) not in trials.done]
    watch = results.Stopwatch("images_2011", len(todo), options.minutes)

    def in_time() -> Iterator[tuple[str, int]]:
        yield from (task for task in todo if task[1] < 2 or not watch.is_up)  # a standard deviation needs two draws

    every = 9 if options.quick else 1
    run = partial(run_trial, data_dir=options.data_dir, n=n, seed=options.seed, every=every)
    for (name, number), found in completed(run, in_time(), options.workers):
        trials.add({"set": name, "number": number, **found})
        watch.tick(1, f"{name}, draw {number + 1} of {options.repeats}")


def summary(trials: list[dict], tags: list[str]) -> dict:
    """Mean and standard deviation of every tag's AUC in percent, which methods are best, and times."""
    methods = [trial["methods"] for trial in trials]
    auc = {name: 100.0 * np.array([each[name]["auc"] for each in methods]) for name in METHODS}
    table = {}
    for column, tag in enumerate(tags):
        values = {name: each[:, column] for name, each in auc.items()}
        best = comparable_to_best(values)
        table[tag] = {
            name: {"mean": v.mean(), "std": v.std(ddof=1) if len(v) > 1 else 0.0, "best": name in best}
            for name, v in values.items()
        }
    cells = {
        name: {
            "training_seconds": results.mean_and_error([each[name]["training_seconds"] for each in methods]),
            "average_auc": each.mean(),
            "tags_best": sum(cell[name]["best"] for cell in table.values()),
        }
        for name, each in auc.items()
    }
    first = trials[0]["first"]
    return {"trials": len(trials), "auc_percent": table, "methods": cells, "not_better": not_better(table), **first}


def not_better(table: dict) -> dict:
    """Tags of which the paper's LSPC-new is not ahead of another method on average."""
    return {
        other: [tag for tag, cells in table.items() if cells["LSPC-new"]["mean"] <= cells[other]["mean"]]
        for other in METHODS
        if other != "LSPC-new"
    }


def more_options(parser) -> None:
    parser.add_argument(
        "--repeats", type=int, help=f"random draws a set (default: {REPEATS}; {QUICK_REPEATS} if quick)"
    )
    parser.add_argument("--minutes", type=float, help="begin no draw after this time, except the first two of a set")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), help="default: %(default)s")
    results.add_workers(parser)


def main(argv=None) -> None:
    """Run every set, then write the numbers."""
    options = results.parse(argv, __doc__, more_options)
    options.repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    shared = {"seed": options.seed, "quick": options.quick}
    trials = Trials("images_2011", options.out, shared, options.stamp["commit"] or "unknown")
    sets = {name: Images.load(name, options.data_dir) for name in options.datasets}
    run_sets(sets, options, trials)
    found = {}
    for name, images in sets.items():
        n = QUICK_TRAINING if options.quick else TRAINING
        about = {"training": n, "test": len(images.X) - n, "columns": images.X.shape[1], "tags": images.tags}
        about["in_place_of_surf"] = COLUMNS.get(name, "columns of the set")
        found[name] = about | summary(trials.of(name), images.tags)
    content = {
        "what": "auc_percent: of every tag on the test images, mean and standard deviation over the draws; best: the "
        "largest mean and those that a two-sample t-test at 5 % does not tell from it. training_seconds: CPU time of "
        "one model a tag with its width and ridge given, all tags together, one thread; plain_seconds: of a plain KLR "
        "by L-BFGS, on the first draw; default_auc: of LSPC(), on the first draw",
        "repeats": options.repeats,
        "commits": trials.commits,
        "paper": {"average_auc": {"LSPC-new": 73.2, "LSPC": 64.5, "KLR": 71.9}},
        "datasets": found,
    }
    results.write("images_2011", content, options)


if __name__ == "__main__":
    main(sys.argv[1:])
