"""The import vector machine on mixtures of Gaussians: 2001 Figs 1 to 4.

Fig. 1: the losses that it compares. Figs 2 and 3: the 200 rows of the mixture that comes with the textbook of Hastie,
Tibshirani and Friedman, with its Bayes probabilities; 1,000 further rows of the same mixture choose λ, 10,000 more tell
the error. Fig. 4: three classes of the same kind, 100 rows each. The models are those of the paper's path (C1 to C5);
the results also have those of a new search at the chosen λ, which is kproba's default.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from experiments import results
from kproba import recipes
from kproba.data.real import load
from kproba.data.toys import Toy, mixtures_2001

WIDTH = 0.7
TUNING_ROWS, TEST_ROWS = 500, 5000


#: What the paper prints.
PAPER = {
    "two_classes": {"lambda_2001": 0.135, "import_points": 21, "tuning_error": 0.219},
    "three_classes": {"lambda_2001": 0.368, "import_points": 32},
}
#: Fig. 1 as functions of the margin yf, with y = ±1.
LOSSES = {
    "misclassification": lambda m: (m < 0).astype(float),
    "squared loss (1 − yf)²": lambda m: np.square(1 - m),
    "exponential e⁻ʸᶠ": lambda m: np.exp(-m),
    "SVM (1 − yf)₊": lambda m: np.maximum(1 - m, 0),
    "binomial NLL log(1 + e⁻ʸᶠ)": lambda m: np.logaddexp(0, -m),
}


def draw_losses() -> Figure:
    """Fig. 1: the hinge loss of the SVM beside the negative log-likelihood and other losses."""
    margin = np.linspace(-3, 3, 601)
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    panel = figure.subplots()
    colours = ("#7F7F7F", "#009E73", "#CC79A7", "#0072B2", "#D55E00")
    for (name, loss), colour, line in zip(LOSSES.items(), colours, (":", (0, (5, 1)), "-.", "--", "-")):
        panel.plot(margin, loss(margin), color=colour, linestyle=line, linewidth=1.6, label=name)
    panel.set(xlabel="yf(x)", ylabel="loss", xlim=(-3, 3), ylim=(0, 4))
    panel.legend(fontsize=9)
    return figure


def run(toy: Toy, options) -> dict:
    """The paper's path on the toy's rows, and a new search at the λ that it chose, measured on fresh rows."""
    means = [each.means for each in toy.conditionals]
    tuning, test = (
        mixtures_2001(n_per_class=size, means=means, random_state=options.seed + number)
        for number, size in ((1, TUNING_ROWS), (2, 200 if options.quick else TEST_ROWS))
    )
    changes = {"width": WIDTH, "random_state": options.seed}
    if options.quick:
        changes["ridge"] = [2.0 * np.exp(e) / len(toy.y) for e in (2, 0, -2)]
    path, fresh = (
        recipes.ivm_2001(len(toy.y), refit=refit, **changes).fit(toy.X, toy.y, tuning=(tuning.X, tuning.y))
        for refit in (False, True)
    )
    bayes = toy.posterior(test.X)
    return {
        "model": path,
        "fresh": fresh,
        "rows": len(toy.y),
        "bayes_error": float(np.mean(bayes.argmax(axis=1) + 1 != test.y)),
        **measure(path, tuning, test, bayes),
        "new_search": measure(fresh, tuning, test, bayes),
        "test": test,
    }


def measure(model, tuning: Toy, test: Toy, bayes: np.ndarray) -> dict:
    """A model in the numbers of the paper, and how close it comes to the truth."""
    return {
        "lambda_2001": model.ridge_ * model.loo_proba_.shape[0] / 2,
        "import_points": len(model.import_indices_),
        "tuning_error": float(np.mean(model.predict(tuning.X) != tuning.y)),
        "test_error": float(np.mean(model.predict(test.X) != test.y)),
        "squared_error_to_truth": float(np.square(model.predict_proba(test.X) - bayes).sum(axis=1).mean()),
    }


def support_vectors(toy: Toy, test: Toy) -> dict:
    """An SVM with the same kernel, its C by 5 folds."""
    search = GridSearchCV(SVC(gamma=0.5 / WIDTH**2), {"C": list(10.0 ** np.arange(-2, 4))}, cv=5).fit(toy.X, toy.y)
    model = search.best_estimator_
    error = float(np.mean(model.predict(test.X) != test.y))
    return {"model": model, "C": search.best_params_["C"], "support_vectors": len(model.support_), "test_error": error}


def draw_path(found: dict) -> Figure:
    """Fig. 2: tuning error and import points over λ, and the objective as points are added at the chosen λ alone."""
    model, fresh, n = found["model"], found["fresh"], found["rows"]
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    exponents = np.log(model.path_["ridge"] * n / 2)
    for panel, key, label in ((left, "tuning_error", "tuning error"), (middle, "n_points", "import points")):
        panel.plot(exponents, model.path_[key], "o-", color="#0072B2", markersize=4)
        panel.axvline(np.log(found["lambda_2001"]), color="#D55E00", linestyle="--")
        panel.set(xlabel="log λ (as in 2001)", ylabel=label)
        panel.invert_xaxis()
    right.plot(fresh.growth_["n_points"], fresh.growth_["objective"], "o-", color="#0072B2", markersize=4)
    right.set(xlabel="import points", ylabel="objective H", title=f"λ = {found['lambda_2001']:.3g}")
    return figure


def plane(toy: Toy) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates around the toy's rows, and the points (160², 2) at them."""
    low, high = toy.X.min(axis=0) - 0.5, toy.X.max(axis=0) + 0.5
    x, y = np.meshgrid(*(np.linspace(a, b, 160) for a, b in zip(low, high)))
    return x, y, np.column_stack([x.ravel(), y.ravel()])


def draw_boundary(panel, toy: Toy, classify, points, title: str) -> None:
    """Rows, the boundary of ``classify`` (solid), that of Bayes (dotted), and ringed points."""
    x, y, grid = plane(toy)
    for label in range(1, len(toy.prior) + 1):
        own = toy.X[toy.y == label]
        style = {"color": results.CLASS_COLOURS[label - 1], "marker": results.CLASS_MARKERS[label - 1]}
        panel.scatter(*own.T, s=9, alpha=0.6, linewidths=0, **style)
    panel.scatter(*points.T, s=55, facecolors="none", edgecolors="#000000", linewidths=0.9)
    for label in range(1, len(toy.prior)):  # one boundary fewer than classes shows them all
        for regions, line in (
            (classify(grid) == label, "solid"),
            (toy.posterior(grid).argmax(axis=1) + 1 == label, "dotted"),
        ):
            panel.contour(
                x, y, regions.reshape(x.shape).astype(float), [0.5], colors="#000000", linestyles=line, linewidths=1
            )
    panel.set(title=title, xticks=[], yticks=[])


def draw_levels(panel, toy: Toy, values, levels: tuple[float, float]) -> None:
    """Where ``values(grid)`` takes two levels, dashed."""
    x, y, grid = plane(toy)
    panel.contour(x, y, values(grid).reshape(x.shape), levels, colors="#7F7F7F", linestyles="dashed", linewidths=1)


def draw_comparison(two: Toy, svm: dict, found: dict) -> Figure:
    """Fig. 3: the SVM with the edges of its margin, the IVM with its lines of probability 1/4 and 3/4."""
    figure = Figure(figsize=(9.5, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    model = svm["model"]
    draw_boundary(left, two, model.predict, model.support_vectors_, f"SVM: {svm['support_vectors']} support vectors")
    draw_levels(left, two, model.decision_function, (-1.0, 1.0))
    model = found["model"]
    draw_boundary(right, two, model.predict, model.centers_, f"IVM: {found['import_points']} import points")
    draw_levels(right, two, lambda grid: model.predict_proba(grid)[:, 1], (0.25, 0.75))
    return figure


def mixture_of_the_textbook(data_dir) -> Toy:
    """Its rows and, from its means, the distribution they come from."""
    data = load("esl_mixture", data_dir)
    means = np.asarray(data.extra["means"]).reshape(2, 10, 2)
    toy = mixtures_2001(n_per_class=1, means=means, random_state=0)
    labels = np.unique(data.y, return_inverse=True)[1] + 1
    return Toy(np.asarray(data.X, dtype=float), labels, toy.conditionals, toy.prior)


def main(argv=None) -> None:
    """Four figures and their numbers."""
    options = results.parse(argv, __doc__)
    two, three = mixture_of_the_textbook(options.data_dir), mixtures_2001(100, 3, random_state=options.seed + 4)
    found, found_three = run(two, options), run(three, options)
    svm = support_vectors(two, found["test"])
    results.picture(draw_losses(), "ivm_fig1", options.out)
    results.picture(draw_path(found), "ivm_fig2", options.out)
    results.picture(draw_comparison(two, svm, found), "ivm_fig3", options.out)

    figure = Figure(figsize=(5.5, 5), layout="constrained")
    model = found_three["model"]
    draw_boundary(
        figure.subplots(), three, model.predict, model.centers_, f"{found_three['import_points']} import points"
    )
    results.picture(figure, "ivm_fig4", options.out)

    hidden = ("model", "fresh", "test")
    parts = {"two_classes": found, "three_classes": found_three, "svm": svm}
    content = {name: {k: v for k, v in part.items() if k not in hidden} for name, part in parts.items()}
    content |= {
        "width": WIDTH,
        "paper": PAPER,
        "path": {k: v for k, v in found["model"].path_.items() if k != "seconds"},
    }
    results.write("ivm_2001", content, options)


if __name__ == "__main__":
    main(sys.argv[1:])
