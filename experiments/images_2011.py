"""Tags of images (2011 Table 1): AUC and training time of LSPC-new, LSPC, KLR and the default, on sets that can be had.

As in the paper, 1,000 images drawn at random train and the others test, again and again; width and ridge are chosen by
2-fold cross-validation and training is timed with what was chosen. The paper trains a model a tag; here every method
has all tags of a set at once, with one width and one ridge, and its time is that of all of them. On the first draw a
model a tag is timed as well, and beside ours a plain KLR by L-BFGS, which is how the paper trains its own. Width and
ridge are chosen on every tenth draw and kept between (``--choose-every 1`` is the paper's way). Times are CPU times of
one thread. What is done is kept in a file beside the results until all is, so the same call goes on after an
interruption.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np
from benchmarks.rivals.plain_klr import PlainKLR
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from experiments import results
from experiments.size_2010 import Frozen, cpu_seconds
from experiments.trials import Trials, comparable_to_best
from kproba import LSPC, recipes
from kproba.data.real import load
from kproba.metrics import tag_report

#: A method is one entry: a name, and how to make an unfitted classifier for n rows from a seed.
METHODS = {
    "LSPC-new": lambda n, seed: recipes.lspc_new_2011(random_state=seed, n_jobs=1),
    "LSPC": lambda n, seed: recipes.lspc_2011(random_state=seed, n_jobs=1),
    "KLR": lambda n, seed: recipes.klr_2010(n, random_state=seed, n_jobs=1),
    "LSPC() default": lambda n, seed: LSPC(random_state=seed, n_jobs=1),
}
#: The same model trained as in the paper, with what was chosen for KLR.
PLAIN = "KLR, plain L-BFGS"
#: The paper has 20 tasks: no more tags than that, the most frequent ones.
DATASETS = ("ml_corel5k", "ml_mirflickr5k", "ml_scene")
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


def choose(X, Y, seed: int) -> dict[str, tuple[Frozen, float]]:
    """Every method with width and ridge chosen, and the CPU time that it took."""
    found = {}
    for name, make in METHODS.items():
        start = time.process_time()
        frozen = Frozen.of(make(len(Y), seed).fit(X, Y))
        found[name] = frozen, time.process_time() - start
    return found


def run_trial(chosen: dict[str, tuple[Frozen, float]], X, Y, X_test, Y_test) -> dict:
    """AUC of every tag, the CPU time of training, and that of choosing, for every method."""
    out = {}
    for name, (frozen, choosing) in chosen.items():
        rows = frozen.inputs(X)
        seconds = cpu_seconds(lambda model=frozen.model, rows=rows: model.fit(rows, Y))
        report = tag_report(Y_test, frozen.model.predict_proba(frozen.inputs(X_test)))
        out[name] = {"auc": report.auc.tolist(), "training_seconds": seconds, "choosing_seconds": choosing}
    return out


def tag_by_tag(chosen: dict[str, tuple[Frozen, float]], X, Y) -> dict[str, float]:
    """CPU time of a two-class model a tag, with what was chosen for all tags."""
    klr = chosen["KLR"][0].model
    models = {name: (frozen.model, frozen.inputs(X)) for name, (frozen, _) in chosen.items()}
    models[PLAIN] = PlainKLR(width=klr.width, ridge=klr.ridge), X
    return {
        name: sum(cpu_seconds(lambda m=model, r=rows, y=y: clone(m).fit(r, y)) for y in Y.T)
        for name, (model, rows) in models.items()
    }


def run_dataset(name: str, options, trials: Trials) -> dict:
    """All trials of a set that are not there yet, and the summary."""
    images = Images.load(name, options.data_dir)
    n, chosen, chosen_on = (QUICK_TRAINING if options.quick else TRAINING), {}, None
    for number in range(options.repeats):
        if (name, number) in trials.done:
            continue
        first = number - number % options.choose_every
        if chosen_on != first:
            chosen, chosen_on = choose(*images.draw(n, options.seed + first)[:2], options.seed + first), first
        X, Y, X_test, Y_test = images.draw(n, options.seed + number)
        trial = {"set": name, "number": number, "methods": run_trial(chosen, X, Y, X_test, Y_test)}
        if number == 0:
            trial["tag_by_tag_seconds"] = tag_by_tag(chosen, X, Y)
        trials.add(trial)
        results.say(f"images_2011: {name}, {number + 1} of {options.repeats}")
    about = {"training": n, "test": len(images.X) - n, "columns": images.X.shape[1], "tags": images.tags}
    done = trials.of(name)
    about["tag_by_tag_seconds"] = done[0]["tag_by_tag_seconds"]
    return about | summary([trial["methods"] for trial in done], images.tags)


def summary(trials: list[dict], tags: list[str]) -> dict:
    """Mean and standard deviation of every tag's AUC in percent, which methods are best, and times."""
    auc = {method: 100.0 * np.array([trial[method]["auc"] for trial in trials]) for method in METHODS}
    table = {}
    for column, tag in enumerate(tags):
        values = {method: each[:, column] for method, each in auc.items()}
        best = comparable_to_best(values)
        table[tag] = {
            method: {"mean": v.mean(), "std": v.std(ddof=1) if len(v) > 1 else 0.0, "best": method in best}
            for method, v in values.items()
        }
    times = ("training_seconds", "choosing_seconds")
    methods = {
        method: {key: results.mean_and_error([trial[method][key] for trial in trials]) for key in times}
        | {"average_auc": each.mean(), "tags_best": sum(cell[method]["best"] for cell in table.values())}
        for method, each in auc.items()
    }
    over = {
        method: methods["KLR"]["training_seconds"]["mean"] / max(each["training_seconds"]["mean"], 1e-6)
        for method, each in methods.items()
    }
    return {"trials": len(trials), "auc_percent": table, "methods": methods, "klr_time_over": over}


def more_options(parser) -> None:
    parser.add_argument(
        "--repeats", type=int, help=f"random draws a set (default: {REPEATS}; {QUICK_REPEATS} if quick)"
    )
    parser.add_argument("--choose-every", type=int, default=10, help="draws that share a width and a ridge")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), help="default: %(default)s")


def main(argv=None) -> None:
    """Run every set, then write the numbers."""
    options = results.parse(argv, __doc__, more_options)
    options.repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    shared = {key: getattr(options, key) for key in ("choose_every", "seed", "quick")}
    shared["commit"] = options.stamp["commit"]
    trials = Trials("images_2011", options.out, shared)
    with threadpool_limits(1):
        found = {name: run_dataset(name, options, trials) for name in options.datasets}
    content = {
        "what": "auc_percent: of every tag on the test images, mean and standard deviation over the draws; best: the "
        "largest mean and those that a two-sample t-test at 5 % does not tell from it. training_seconds: CPU time of "
        "one fit of all tags with width and ridge given, one thread; tag_by_tag_seconds: of a two-class fit a tag, on "
        "the first draw; choosing_seconds: of the fit that chose them",
        "repeats": options.repeats,
        "choose_every": options.choose_every,
        "datasets": found,
    }
    results.write("images_2011", content, options)
    trials.path.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
