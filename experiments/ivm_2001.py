"""The import vector machine on mixtures of Gaussians: 2001 Figs 2, 3 and 4.

Fig. 2 and 3: the 200 rows of the mixture that comes with the textbook of Hastie, Tibshirani and Friedman, with its
Bayes probabilities; 1,000 further rows of the same mixture choose λ, 10,000 more tell the error. Fig. 4: three classes
of the same kind, 100 rows each.
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


def run(toy: Toy, options) -> dict:
    """Fit the whole path on the toy's rows, and measure what λ chose on fresh rows."""
    means = [each.means for each in toy.conditionals]
    tuning, test = (
        mixtures_2001(n_per_class=size, means=means, random_state=options.seed + number)
        for number, size in ((1, TUNING_ROWS), (2, 200 if options.quick else TEST_ROWS))
    )
    changes = {"width": WIDTH, "random_state": options.seed}
    if options.quick:
        changes["ridge"] = [2.0 * np.exp(e) / len(toy.y) for e in (2, 0, -2)]
    model = recipes.ivm_2001(len(toy.y), **changes).fit(toy.X, toy.y, tuning=(tuning.X, tuning.y))
    bayes = toy.posterior(test.X)
    proba = model.predict_proba(test.X)
    return {
        "model": model,
        "rows": len(toy.y),
        "lambda_2001": model.ridge_ * len(toy.y) / 2,
        "import_points": len(model.import_indices_),
        "tuning_error": float(np.mean(model.predict(tuning.X) != tuning.y)),
        "test_error": float(np.mean(model.predict(test.X) != test.y)),
        "bayes_error": float(np.mean(bayes.argmax(axis=1) + 1 != test.y)),
        "squared_error_to_truth": float(np.square(proba - bayes).sum(axis=1).mean()),
        "test": test,
    }


def support_vectors(toy: Toy, test: Toy) -> dict:
    """An SVM with the same kernel, its C by 5 folds."""
    search = GridSearchCV(SVC(gamma=0.5 / WIDTH**2), {"C": list(10.0 ** np.arange(-2, 4))}, cv=5).fit(toy.X, toy.y)
    model = search.best_estimator_
    error = float(np.mean(model.predict(test.X) != test.y))
    return {"model": model, "C": search.best_params_["C"], "support_vectors": len(model.support_), "test_error": error}


def draw_path(found: dict) -> Figure:
    """Fig. 2: tuning error and import points over λ, and the objective as points are added at the chosen λ."""
    model, n = found["model"], found["rows"]
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    exponents = np.log(model.path_["ridge"] * n / 2)
    for panel, key, label in ((left, "tuning_error", "tuning error"), (middle, "n_points", "import points")):
        panel.plot(exponents, model.path_[key], "o-", color="#0072B2", markersize=4)
        panel.axvline(np.log(found["lambda_2001"]), color="#D55E00", linestyle="--")
        panel.set(xlabel="log λ (as in 2001)", ylabel=label)
        panel.invert_xaxis()
    chosen = model.growth_["ridge"] >= model.ridge_ * (1 - 1e-9)
    right.plot(
        model.growth_["n_points"][chosen], model.growth_["objective"][chosen], "o-", color="#0072B2", markersize=4
    )
    right.set(xlabel="import points", ylabel="objective H", title=f"down to λ = {found['lambda_2001']:.3g}")
    return figure


def draw_boundary(panel, toy: Toy, classify, points, title: str) -> None:
    """Rows, the boundary of ``classify`` (solid), that of Bayes (dotted), and ringed points."""
    low, high = toy.X.min(axis=0) - 0.5, toy.X.max(axis=0) + 0.5
    x, y = np.meshgrid(*(np.linspace(a, b, 160) for a, b in zip(low, high)))
    grid = np.column_stack([x.ravel(), y.ravel()])
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


def draw_probabilities(panel, toy: Toy, model) -> None:
    """Where two classes have the probabilities 1/4 and 3/4, dashed."""
    low, high = toy.X.min(axis=0) - 0.5, toy.X.max(axis=0) + 0.5
    x, y = np.meshgrid(*(np.linspace(a, b, 160) for a, b in zip(low, high)))
    proba = model.predict_proba(np.column_stack([x.ravel(), y.ravel()]))[:, 1].reshape(x.shape)
    panel.contour(x, y, proba, [0.25, 0.75], colors="#7F7F7F", linestyles="dashed", linewidths=1)


def mixture_of_the_textbook(data_dir) -> Toy:
    """Its rows and, from its means, the distribution they come from."""
    data = load("esl_mixture", data_dir)
    means = np.asarray(data.extra["means"]).reshape(2, 10, 2)
    toy = mixtures_2001(n_per_class=1, means=means, random_state=0)
    labels = np.unique(data.y, return_inverse=True)[1] + 1
    return Toy(np.asarray(data.X, dtype=float), labels, toy.conditionals, toy.prior)


def main(argv=None) -> None:
    """Three figures and their numbers."""
    options = results.parse(argv, __doc__)
    two, three = mixture_of_the_textbook(options.data_dir), mixtures_2001(100, 3, random_state=options.seed + 4)
    found, found_three = run(two, options), run(three, options)
    svm = support_vectors(two, found["test"])
    results.picture(draw_path(found), "ivm_fig2", options.out)

    figure = Figure(figsize=(9.5, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    model = svm["model"]
    draw_boundary(left, two, model.predict, model.support_vectors_, f"SVM: {svm['support_vectors']} support vectors")
    model = found["model"]
    draw_boundary(right, two, model.predict, model.centers_, f"IVM: {found['import_points']} import points")
    draw_probabilities(right, two, model)
    results.picture(figure, "ivm_fig3", options.out)

    figure = Figure(figsize=(5.5, 5), layout="constrained")
    model = found_three["model"]
    draw_boundary(
        figure.subplots(), three, model.predict, model.centers_, f"{found_three['import_points']} import points"
    )
    results.picture(figure, "ivm_fig4", options.out)

    hidden = ("model", "test")
    parts = {"two_classes": found, "three_classes": found_three, "svm": svm}
    content = {name: {k: v for k, v in part.items() if k not in hidden} for name, part in parts.items()}
    paper = {"two_classes": {"lambda_2001": 0.135, "import_points": 21, "tuning_error": 0.219}}
    paper["three_classes"] = {"lambda_2001": 0.368, "import_points": 32}
    content |= {
        "width": WIDTH,
        "paper": paper,
        "path": {k: v for k, v in found["model"].path_.items() if k != "seconds"},
    }
    results.write("ivm_2001", content, options)


if __name__ == "__main__":
    main(sys.argv[1:])
