"""Three classes on the line: logistic regression and LSPC of the textbook (Figs 28.3, 28.4 and 28.6).

Fig. 28.3: stochastic gradient ascent (Fig. 28.1) with the data and settings of its MATLAB code (Fig. 28.2). The code
divides by 1 + Σ exp where the formula divides by Σ exp: the formula is used here. Fig. 28.4: the logistic loss.
Fig. 28.6: LSPC with the data and settings of Fig. 28.5, on the same rows.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from matplotlib.figure import Figure

from experiments import results
from kproba import recipes
from kproba.data.toys import Toy, three_classes_textbook

REACH = 5.0
LINES = ("-", "--", ":")
#: What the chapter says of these figures; it has no tables.
CLAIMS = {
    "Fig. 28.3": "the class-posterior probability is well-approximated",
    "Fig. 28.6": "almost the same solution as logistic regression",
}


def methods(n: int, seed: int, quick: bool) -> dict:
    """The classifiers of Figs 28.2 and 28.5, unfitted."""
    passes = {"max_iter": 50} if quick else {}
    return {
        "logistic regression": recipes.klr_textbook(random_state=seed, **passes),
        "LSPC": recipes.lspc_textbook(n, random_state=seed),
    }


def fit_all(toy: Toy, seed: int, quick: bool) -> tuple[dict, dict]:
    """Fitted models by name, and the seconds they took."""
    models, seconds = methods(len(toy.y), seed, quick), {}
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(toy.X, toy.y)
        seconds[name] = time.perf_counter() - start
    return models, seconds


def draw_posteriors(toy: Toy, model, symbol: str) -> Figure:
    """Figs 28.3 and 28.6: the estimated posteriors, the true ones in grey, and the rows below them."""
    x = np.linspace(-REACH, REACH, 401)
    estimate, truth = model.predict_proba(x[:, None]), toy.posterior(x[:, None])
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    panel = figure.subplots()
    panel.plot(x, truth, color="#B0B0B0", linewidth=3, zorder=0)
    for y, (colour, marker, line) in enumerate(zip(results.CLASS_COLOURS, results.CLASS_MARKERS, LINES)):
        panel.plot(x, estimate[:, y], color=colour, linestyle=line, linewidth=1.8, label=f"{symbol}(y={y + 1}|x)")
        own = toy.X[toy.y == y + 1, 0]
        level = np.full(len(own), -0.2 if y == 1 else -0.1)
        panel.plot(own, level, color=colour, marker=marker, linestyle="", fillstyle="none", markersize=6)
    panel.plot([], [], color="#B0B0B0", linewidth=3, label="truth")
    panel.set(xlabel="x", xlim=(-REACH, REACH), ylim=(-0.3, 1.8))
    panel.legend(loc="upper center", ncols=2)
    return figure


def draw_loss() -> Figure:
    """Fig. 28.4: the logistic loss as a function of the margin, beside the 0/1 loss."""
    margin = np.linspace(-4, 4, 401)
    figure = Figure(figsize=(5.2, 3.8), layout="constrained")
    panel = figure.subplots()
    panel.plot(margin, np.logaddexp(0.0, -margin), color="#0072B2", label="log(1 + exp(−m))")
    panel.plot(margin, (margin < 0).astype(float), color="#7F7F7F", linestyle="--", label="0/1 loss")
    panel.set(xlabel="margin m = f(x)y", ylabel="loss", xlim=(-4, 4), ylim=(0, 4.2))
    panel.legend()
    return figure


def measure(toy: Toy, models: dict) -> dict:
    """Mean absolute difference of the estimates to the truth and to each other, over new rows."""
    test = three_classes_textbook(3_000, random_state=12_345)
    truth = toy.posterior(test.X)
    proba = {name: model.predict_proba(test.X) for name, model in models.items()}
    own = np.arange(len(test.y)), test.y - 1
    found = {
        name: {
            "absolute_error_to_truth": np.abs(p - truth).mean(),
            "error_percent": 100.0 * np.mean(p.argmax(axis=1) + 1 != test.y),
            "log_loss": -np.mean(np.log(np.maximum(p[own], 1e-15))),
        }
        for name, p in {"truth": truth, **proba}.items()
    }
    one, other = proba.values()
    return {**found, "both": {"absolute_difference": np.abs(one - other).mean()}}


def repeat(n_repeats: int, seed: int, quick: bool) -> dict:
    """Means over independent samples of 90 rows."""
    found: dict[str, dict[str, list[float]]] = {}
    for number in range(n_repeats):
        results.say(f"textbook_28: sample {number + 1} of {n_repeats}")
        toy = three_classes_textbook(random_state=seed + number)
        models, seconds = fit_all(toy, seed + number, quick)
        measured = measure(toy, models)
        for name, taken in seconds.items():
            measured[name]["training_seconds"] = taken
        for name, values in measured.items():
            for key, value in values.items():
                found.setdefault(name, {}).setdefault(key, []).append(value)
    return {name: {key: results.mean_and_error(v) for key, v in values.items()} for name, values in found.items()}


def main(argv=None) -> None:
    """Three figures from one sample, then means over several."""
    options = results.parse(argv, __doc__)
    toy = three_classes_textbook(random_state=options.seed)
    models, _ = fit_all(toy, options.seed, options.quick)
    logistic, lspc = models.values()
    results.picture(draw_posteriors(toy, logistic, "q"), "textbook_fig28_3", options.out)
    results.picture(draw_loss(), "textbook_fig28_4", options.out)
    results.picture(draw_posteriors(toy, lspc, "p"), "textbook_fig28_6", options.out)
    n_repeats = 1 if options.quick else 20
    content = {
        "rows": len(toy.y),
        "repeats": n_repeats,
        "claims_of_the_textbook": CLAIMS,
        "methods": repeat(n_repeats, options.seed, options.quick),
    }
    results.write("textbook_28", content, options)


if __name__ == "__main__":
    main(sys.argv[1:])
