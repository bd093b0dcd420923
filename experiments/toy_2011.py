"""What rounding does: posteriors on the line and the parameters behind them (2011 Fig. 1).

LSPC-new, LSPC and LSPC' are one least-squares solution, read in three ways, so they share the width and
the ridge that LSPC-new's cross-validation chooses; "LSPC, own choice" lets parameter rounding choose its own.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

from experiments import results
from kproba import LSPC, recipes
from kproba.data.toys import Toy, one_dimension_2011

#: A method is one entry: a name, and how to make a classifier from a seed and the shared width and ridge.
METHODS = {
    "LSPC-new": lambda seed, shared: recipes.lspc_new_2011(random_state=seed, **shared),
    "LSPC": lambda seed, shared: recipes.lspc_2011(random_state=seed, **shared),
    "LSPC'": lambda seed, shared: recipes.lspc_new_2011(link="none", random_state=seed, **shared),
    "LSPC, own choice": lambda seed, shared: recipes.lspc_2011(random_state=seed),
    "LSPC() default": lambda seed, shared: LSPC(random_state=seed),
}
DRAWN = ("truth", "LSPC-new", "LSPC", "LSPC'", "LSPC() default")


def fit_all(toy: Toy, seed: int) -> dict:
    """Fitted models by name."""
    chosen = recipes.lspc_new_2011(random_state=seed).fit(toy.X, toy.y)
    shared = {"width": chosen.width_, "ridge": chosen.ridge_}
    return {name: make(seed, shared).fit(toy.X, toy.y) for name, make in METHODS.items()}


def first_class(model, X) -> np.ndarray:
    """The estimate of p(y=1|x). Without a link: from the difference of two outputs that sum to one."""
    if model.link == "none":
        return (1.0 - model.decision_function(X)) / 2.0
    return model.predict_proba(X)[:, 0]


def measure(model, test: Toy) -> dict:
    """Distance from the true posterior on a test sample, and what lies below zero."""
    p = first_class(model, test.X)
    return {
        "squared_error_to_truth": np.mean(np.square(p - test.posterior(test.X)[:, 0])),
        "error_percent": 100.0 * np.mean(np.where(p >= 0.5, 1, 2) != test.y),
        "percent_of_outputs_negative": 100.0 * np.mean((p < 0) | (p > 1)),
        "percent_of_parameters_negative": 100.0 * np.mean(model.coef_ < 0),
        "width": model.width_,
        "ridge": model.ridge_,
    }


def repeat(n_repeats: int, n_test: int, seed: int) -> dict:
    """Means over independent training samples, on one large test sample."""
    test = one_dimension_2011(n_test // 2, random_state=seed + 10_000)
    found: dict[str, list[dict]] = {}
    for number in range(n_repeats):
        results.say(f"toy_2011: sample {number + 1} of {n_repeats}")
        for name, model in fit_all(one_dimension_2011(random_state=seed + number), seed + number).items():
            found.setdefault(name, []).append(measure(model, test))
    return {
        name: {key: results.mean_and_error([row[key] for row in rows]) for key in rows[0]}
        for name, rows in found.items()
    }


def draw(toy: Toy, models: dict) -> Figure:
    """2011 Fig. 1."""
    figure = Figure(figsize=(11.0, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1.0))
    _draw_curves(left, toy, models)
    _draw_parameters(right, models["LSPC'"])
    return figure


def _draw_curves(panel, toy: Toy, models: dict) -> None:
    x = np.linspace(-6.0, 6.0, 401)[:, None]
    for name in DRAWN:
        values = toy.posterior(x)[:, 0] if name == "truth" else first_class(models[name], x)
        look = {**results.STYLES[name], "marker": "", "linewidth": 2.4 if name == "truth" else 1.8}
        panel.plot(x[:, 0], values, label=name, **look)
    for y, at in ((1, -0.32), (2, -0.39)):
        rows = toy.X[toy.y == y, 0]
        panel.plot(rows, np.full(len(rows), at), "|", color=results.CLASS_COLOURS[y - 1], markersize=6)
        panel.text(-5.9, at, f"y={y}", va="center", fontsize=8, color=results.CLASS_COLOURS[y - 1])
    panel.axhline(0.0, color="0.6", linewidth=0.8)
    panel.set(title="(a) posterior", xlabel="x", ylabel="p(y=1 | x)", xlim=(-6, 6), ylim=(-0.44, 1.12))
    panel.legend(loc="upper right", fontsize=8.5)


def _draw_parameters(panel, model) -> None:
    values = model.coef_[np.argsort(model.centers_[:, 0]), 0]
    colours = np.where(values < 0, "#D55E00", "#0072B2")
    panel.vlines(np.arange(1, len(values) + 1), 0.0, values, colors=colours, linewidth=0.8)
    panel.axhline(0.0, color="0.3", linewidth=0.8)
    share = 100.0 * np.mean(values < 0)
    panel.set(
        title=f"(b) parameters of y=1, {share:.0f} % negative",
        xlabel="training rows in order of x",
        ylabel="value",
    )


def main(argv=None) -> None:
    """Draw the picture from one sample, then measure over many."""
    options = results.parse(argv, __doc__)
    toy = one_dimension_2011(random_state=options.seed)
    results.picture(draw(toy, fit_all(toy, options.seed)), "toy_2011_fig1", options.out)
    n_repeats, n_test = (1, 2_000) if options.quick else (10, 20_000)
    content = {
        "what": "p(y=1|x) against the truth on test rows; an output is negative for one class or the other",
        "training_rows": len(toy.y),
        "test_rows": n_test,
        "repeats": n_repeats,
        "methods": repeat(n_repeats, n_test, options.seed),
    }
    results.write("toy_2011", content, options)


if __name__ == "__main__":
    main(sys.argv[1:])
