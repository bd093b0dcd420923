"""Tags of sounds by a hidden Markov kernel (2011 Table 2): AUC and training time, on the clips of ESC-50.

As in the paper, 180 clips drawn at random train and the others test, 50 times, and the AUC of 50 tags is averaged. The
paper's Freesound tags are not to be had; a clip of ESC-50, which comes from Freesound too, has one of 50 tags. Width
and ridge are chosen by 2-fold cross-validation in every trial, and training is timed with what was chosen. Coefficients
are standardised once over all clips, without their labels, so that models and likelihoods, which are the kernel's and
the same for every method, are computed once; no time includes them. Tags without a clip among the 180 have no AUC.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from scipy import stats
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from experiments import results
from experiments.size_2010 import cpu_seconds
from experiments.trials import LEVEL, Trials, comparable_to_best
from kproba import LSPC, HiddenMarkovKernel, IndefiniteKernelWarning, Sequences, TargetWarning, recipes
from kproba.data.real import load
from kproba.metrics import tag_report

KERNEL = {"kernel": HiddenMarkovKernel(), "scaling": None, "n_jobs": 1}
#: A method is one entry: a name, and how to make an unfitted classifier for n rows from a seed.
METHODS = {
    "LSPC-new": lambda n, seed: recipes.lspc_new_2011(**KERNEL, random_state=seed),
    "LSPC": lambda n, seed: recipes.lspc_2011(**KERNEL, random_state=seed),
    "KLR": lambda n, seed: recipes.klr_2010(n, **KERNEL, random_state=seed),
    "LSPC() default": lambda n, seed: LSPC(**KERNEL, random_state=seed),
}
TRAINING, REPEATS = 180, 50
QUICK_REPEATS = 2


def read(data_dir) -> tuple[Sequences, np.ndarray]:
    """All clips, their coefficients standardised, and their tags (n, 50)."""
    data = load("esc50_mfcc", data_dir)
    frames = np.asarray(data.X, dtype=np.float64)
    frames = (frames - frames.mean(axis=0)) / frames.std(axis=0)
    return Sequences(frames, data.extra["lengths"]), (data.y[:, None] == np.unique(data.y)).astype(int)


def compare_all(clips: Sequences) -> float:
    """Fit all models and compute all likelihoods; the seconds that it took."""
    start = time.perf_counter()
    KERNEL["kernel"].pairs(clips, clips, workers=2)
    return time.perf_counter() - start


def run_trial(clips: Sequences, Y: np.ndarray, n: int, seed: int) -> dict:
    """Mean AUC over the tags, the AUC of each, and CPU times, for every method."""
    order = np.random.RandomState(seed).permutation(len(clips))
    train, test = order[:n], order[n:]
    seen = Y[train].any(axis=0)
    out = {}
    for name, make in METHODS.items():
        start = time.process_time()
        fitted = make(n, seed).fit(clips[train], Y[train])
        choosing = time.process_time() - start
        # the kernel with its width, because its name would stand for the default kernel
        model = clone(fitted).set_params(kernel=fitted.kernel_, ridge=fitted.ridge_)
        seconds = cpu_seconds(lambda model=model: model.fit(clips[train], Y[train]))
        auc = tag_report(Y[test], model.predict_proba(clips[test])).auc
        out[name] = {
            "auc": np.where(seen, auc, np.nan)[seen].tolist(),
            "training_seconds": seconds,
            "choosing_seconds": choosing,
        }
    return out


def summary(trials: list[dict]) -> dict:
    """As the paper's table: mean and standard deviation over all trials and tags, in percent, and tests of trials."""
    auc = {name: [100.0 * np.array(trial[name]["auc"]) for trial in trials] for name in METHODS}
    means = {name: np.array([values.mean() for values in each]) for name, each in auc.items()}
    best = comparable_to_best(means)
    leader = max(means, key=lambda name: means[name].mean())
    return {
        name: {
            "mean": np.concatenate(each).mean(),
            "std": np.concatenate(each).std(),
            "std_of_trials": means[name].std(ddof=1) if len(trials) > 1 else 0.0,
            "best": name in best,
            "paired_p_against_best": _paired(means[leader], means[name]) if name != leader else None,
            "training_seconds": results.mean_and_error([trial[name]["training_seconds"] for trial in trials]),
            "choosing_seconds": results.mean_and_error([trial[name]["choosing_seconds"] for trial in trials]),
        }
        for name, each in auc.items()
    }


def _paired(a, b) -> float | None:
    return float(stats.ttest_rel(a, b).pvalue) if len(a) > 1 else None


def more_options(parser) -> None:
    parser.add_argument("--repeats", type=int, help=f"random draws (default: {REPEATS}; {QUICK_REPEATS} if quick)")


def main(argv=None) -> None:
    """Run all trials that are not done yet, then write the numbers."""
    options = results.parse(argv, __doc__, more_options)
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    clips, Y = read(options.data_dir)
    n = min(TRAINING, len(clips) // 2)
    trials = Trials("sound_2011", options.out, {"seed": options.seed, "n": n, "commit": options.stamp["commit"]})
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)
        warnings.simplefilter("ignore", TargetWarning)  # the paper's tags exclude each other here
        seconds = compare_all(clips)
        results.say(f"sound_2011: models and likelihoods of {len(clips)} clips in {seconds:.0f} s")
        for number in range(repeats):
            if ("esc50", number) not in trials.done:
                found = run_trial(clips, Y, n, options.seed + number)
                trials.add({"set": "esc50", "number": number, "methods": found})
                results.say(f"sound_2011: {number + 1} of {repeats}")
    content = {
        "what": "mean, std: AUC in percent over all tags and trials; best: the largest mean of trials and those that a "
        f"two-sample t-test at {LEVEL} does not tell from it; training_seconds: CPU time of one fit of all tags with "
        "width and ridge given, one thread, the kernel's models and likelihoods known; choosing_seconds: of the fit "
        "that chose them",
        "repeats": repeats,
        "training": n,
        "test": len(clips) - n,
        "tags": Y.shape[1],
        "kernel_seconds": seconds,
        "methods": summary([trial["methods"] for trial in trials.of("esc50")]),
    }
    results.write("sound_2011", content, options)
    trials.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
