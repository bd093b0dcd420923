"""Three classes in the plane: densities, classification and posteriors (2010 Figs 4, 5 and 6), and the path over all
ridges (Sec. 4).

The pictures of the posteriors reach far beyond the data, because that is where the methods differ.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments import results
from kproba import LSPC, recipes
from kproba.data.toys import Toy, three_classes_2010

#: A method is one entry: a name, and how to make an unfitted classifier from a seed.
METHODS = {
    "LSPC": lambda seed: recipes.lspc_2010(random_state=seed),
    "LSPC(full)": lambda seed: recipes.lspc_full_2010(random_state=seed),
    "LSPC() default": lambda seed: LSPC(random_state=seed),
    "KLR": lambda seed: recipes.klr_2010(200, random_state=seed),
}
NEAR, FAR = 5.0, 10.0
FAR_POINTS = ((10.0, 10.0), (-10.0, 10.0), (100.0, 100.0))
#: Rounding gives probabilities of exactly zero; their logarithm is taken here.
LOG_FLOOR = 1e-15


def grid(reach: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """An axis and all points (steps², 2) of the square [−reach, reach]²."""
    axis = np.linspace(-reach, reach, steps)
    return axis, np.column_stack([side.ravel() for side in np.meshgrid(axis, axis)])


def fit_all(toy: Toy, seed: int) -> dict:
    """Posterior functions by name, the truth first."""
    fitted = {name: make(seed).fit(toy.X, toy.y) for name, make in METHODS.items()}
    return {"truth": toy.posterior, **{name: model.predict_proba for name, model in fitted.items()}}


def measure(posterior, test: Toy, steps: int = 101) -> dict:
    """How close one method comes to the truth near the data, and how it does on a test sample."""
    _, points = grid(NEAR, steps)
    distance = np.square(posterior(points) - test.posterior(points)).sum(axis=1)
    proba = posterior(test.X)
    own = proba[np.arange(len(test.y)), test.y - 1]
    return {
        "squared_error_to_truth": np.average(distance, weights=test.density(points)),
        "error_percent": 100.0 * np.mean(proba.argmax(axis=1) + 1 != test.y),
        "log_loss": -np.mean(np.log(np.maximum(own, LOG_FLOOR))),
        "percent_of_own_class_at_zero": 100.0 * np.mean(own <= LOG_FLOOR),
    }


def repeat(n_repeats: int, n_test: int, seed: int) -> dict:
    """Means over independent training samples, on one large test sample."""
    test = three_classes_2010(n_test, random_state=seed + 10_000)
    found: dict[str, list[dict]] = {}
    for number in range(n_repeats):
        results.say(f"toy_2010: sample {number + 1} of {n_repeats}")
        posteriors = fit_all(three_classes_2010(random_state=seed + number), seed + number)
        for name, posterior in posteriors.items():
            found.setdefault(name, []).append(measure(posterior, test))
    return {
        name: {key: results.mean_and_error([row[key] for row in rows]) for key in rows[0]}
        for name, rows in found.items()
    }


def draw_densities(toy: Toy) -> Figure:
    """2010 Fig. 4."""
    axis, points = grid(6.0, 161)
    values = toy.conditional_densities(points)
    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    for y, panel in enumerate(figure.subplots(1, 3, sharey=True)):
        filled = panel.contourf(axis, axis, values[:, y].reshape(len(axis), -1), 12, cmap="cividis")
        panel.set(title=f"p(x | y={y + 1})", xlabel="x₁", aspect="equal", xticks=range(-6, 7, 2))
        figure.colorbar(filled, ax=panel, shrink=0.85, ticks=MaxNLocator(5))
    figure.axes[0].set_ylabel("x₂")
    return figure


def draw_classification(toy: Toy, posteriors: dict, seed: int) -> Figure:
    """2010 Fig. 5: training rows filled, test rows unfilled in the class they were given."""
    test = three_classes_2010(300, random_state=seed + 20_000)
    figure = Figure(figsize=(11.0, 9.0), layout="constrained")
    *panels, spare = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    for panel, (name, posterior) in zip(panels, posteriors.items(), strict=True):
        given = posterior(test.X).argmax(axis=1) + 1
        for y, (colour, marker) in enumerate(zip(results.CLASS_COLOURS, results.CLASS_MARKERS), start=1):
            look = {"color": colour, "marker": marker, "linestyle": ""}
            panel.plot(*toy.X[toy.y == y].T, markersize=4, label=f"y={y}, training", **look)
            panel.plot(*test.X[given == y].T, markersize=6.5, fillstyle="none", label=f"said y={y}", **look)
        panel.set(title=name, aspect="equal", xlim=(-7, 7), ylim=(-7, 9), xlabel="x₁")
    for panel in (panels[0], panels[3]):
        panel.set_ylabel("x₂")
    panels[2].tick_params(labelbottom=True)
    spare.axis("off")
    spare.legend(*panels[0].get_legend_handles_labels(), loc="center", frameon=False, fontsize=11)
    return figure


def draw_posteriors(posteriors: dict) -> Figure:
    """2010 Fig. 6: one row a method, one column a class; the white square is the region of the data."""
    axis, points = grid(FAR, 161)
    figure = Figure(figsize=(8.6, 2.25 * len(posteriors) + 0.3), layout="constrained")
    panels = figure.subplots(len(posteriors), 3, sharex=True, sharey=True)
    for row, (name, posterior) in zip(panels, posteriors.items()):
        values = posterior(points)
        row[0].set_ylabel(name, fontsize=11)
        for y, panel in enumerate(row):
            shown = panel.imshow(
                values[:, y].reshape(len(axis), -1),
                extent=(-FAR, FAR, -FAR, FAR),
                origin="lower",
                vmin=0.0,
                vmax=1.0,
                cmap="cividis",
            )
            panel.plot(*(NEAR * np.array([[-1, 1, 1, -1, -1], [-1, -1, 1, 1, -1]])), color="white", linewidth=0.8)
    for y, panel in enumerate(panels[0], start=1):
        panel.set_title(f"p(y={y} | x)")
    figure.colorbar(shown, ax=panels, shrink=0.5, label="probability")
    return figure


def draw_path(toy: Toy, seed: int) -> Figure:
    """2010 Sec. 4: the coefficients of the first class over the ridge, and the leave-one-out loss that chooses one."""
    chosen = recipes.lspc_full_2010(random_state=seed).fit(toy.X, toy.y)
    path = recipes.lspc_full_2010(width=chosen.width_, random_state=seed).path(toy.X, toy.y, np.logspace(-4, 2, 60))
    classes = [toy.y[np.abs(toy.X - center).sum(axis=1).argmin()] for center in chosen.centers_]
    figure = Figure(figsize=(10.0, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, y in enumerate(classes):
        left.semilogx(path.ridges, path.coef[:, number, 0], color=results.CLASS_COLOURS[y - 1], linewidth=0.6)
    for y in (1, 2, 3):
        left.plot([], [], color=results.CLASS_COLOURS[y - 1], label=f"centre of y={y}")
    left.set(title=f"coefficients of y=1, {len(classes)} centres", xlabel="ridge λ", ylabel="coefficient")
    left.legend(frameon=False)
    right.semilogx(path.ridges, path.loo_loss, color="#0072B2")
    best = path.ridges[path.best]
    right.axvline(best, color="0.4", linestyle="--", label=f"smallest, λ = {best:.2g}")
    right.axvspan(1e-2, 1.0, color="0.88", label="the paper's grid")
    right.set(title="leave-one-out squared error", xlabel="ridge λ")
    right.legend(loc="upper right", framealpha=1.0)
    return figure


def main(argv=None) -> None:
    """Draw the three pictures from one sample, then measure over many."""
    options = results.parse(argv, __doc__)
    toy = three_classes_2010(random_state=options.seed)
    posteriors = fit_all(toy, options.seed)
    results.picture(draw_densities(toy), "toy_2010_fig4", options.out)
    results.picture(draw_classification(toy, posteriors, options.seed), "toy_2010_fig5", options.out)
    results.picture(draw_posteriors(posteriors), "toy_2010_fig6", options.out)
    results.picture(draw_path(toy, options.seed), "toy_2010_path", options.out)
    n_repeats, n_test = (1, 2_000) if options.quick else (20, 20_000)
    content = {
        "what": "squared error: sum over classes, weighted by p(x) in [-5, 5]^2; log-loss floored at 1e-15",
        "training_rows": len(toy.y),
        "test_rows": n_test,
        "repeats": n_repeats,
        "methods": repeat(n_repeats, n_test, options.seed),
        "far_points": [
            {"x": point, **{name: posterior(np.array([point]))[0] for name, posterior in posteriors.items()}}
            for point in FAR_POINTS
        ],
    }
    results.write("toy_2010", content, options)


if __name__ == "__main__":
    main(sys.argv[1:])
