"""
The four classifiers and a true posterior
=========================================

Four classifiers learn from 200 rows of the mixture of Zhu and Hastie (2001). Each class consists of ten small
Gaussians, so the true posterior is known, and you can compare it with what each classifier has learnt.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from kproba import LSPC, ImportVectorMachine, KernelLogisticRegression, SurfaceKernelClassifier
from kproba.data.toys import mixtures_2001

MODELS = (LSPC, KernelLogisticRegression, ImportVectorMachine, SurfaceKernelClassifier)

# %%
# Four draws
# ----------
# Each draw has its own means, 200 training rows and 10,000 new rows. All models run with their defaults. The
# Kullback–Leibler divergence from the true posterior is the expected difference between a model's log-loss and the best
# possible one.


def draw_problem(seed):
    known = mixtures_2001(n_per_class=100, random_state=seed)
    means = np.array([each.means for each in known.conditionals])
    return known, mixtures_2001(n_per_class=5000, means=means, random_state=100 + seed)


def divergence(model, new):
    truth = new.posterior(new.X)
    return (truth * np.log(truth / model.predict_proba(new.X))).sum(axis=1).mean()


fitted = []
for seed in range(4):
    known, new = draw_problem(seed)
    start = perf_counter()
    models = {of_kind.__name__: of_kind(random_state=0).fit(known.X, known.y) for of_kind in MODELS}
    fitted.append((known, models, {name: divergence(model, new) for name, model in models.items()}))
    print(f"draw {seed}: all four fitted in {perf_counter() - start:.1f} s")

print(f"\n{'divergence in nats':28s}" + "".join(f"{f'draw {seed}':>9s}" for seed in range(4)) + f"{'mean':>9s}")
for of_kind in MODELS:
    found = [divergences[of_kind.__name__] for _, _, divergences in fitted]
    print(f"{of_kind.__name__:28s}" + "".join(f"{value:9.3f}" for value in (*found, np.mean(found))))

# %%
# The maps
# --------
# The colour is the probability of the second class, with contour lines at ¼, ½ and ¾. Rings mark the centres of a
# model's kernels: LSPC and kernel logistic regression have one at every row, the import vector machine has selected
# some of the rows, and the surface classifier uses cluster means. The maps show the first draw.

known, models, _ = fitted[0]
for name, model in models.items():
    print(f"{name:28s}{model.kernel_.name} kernel, {len(model.centers_)} points")

low, high = known.X.min(axis=0) - 0.5, known.X.max(axis=0) + 0.5
x, y = np.meshgrid(*(np.linspace(*ends, 150) for ends in zip(low, high)))
grid = np.column_stack([x.ravel(), y.ravel()])
blue_to_red = LinearSegmentedColormap.from_list("blue to red", ["#0072B2", "#F7F7F7", "#D55E00"])


def draw(ax, title, second):
    shown = ax.pcolormesh(x, y, second.reshape(x.shape), cmap=blue_to_red, vmin=0, vmax=1, rasterized=True)
    levels = ax.contour(x, y, second.reshape(x.shape), levels=[0.25, 0.5, 0.75], colors="black", linewidths=0.8)
    levels.set_linestyle(["--", "-", "--"])
    for label, name, colour, marker in ((1, "first class", "#0072B2", "o"), (2, "second class", "#D55E00", "^")):
        own = known.X[known.y == label]
        ax.scatter(*own.T, s=16, color=colour, marker=marker, edgecolors="black", linewidths=0.4, label=name)
    ax.set(title=title, xlabel="first column", ylabel="second column")
    ax.label_outer()
    return shown


figure, axes = plt.subplots(2, 3, figsize=(11, 6.6), layout="constrained", sharex=True, sharey=True)
shown = draw(axes[0, 0], "the true posterior", known.posterior(grid)[:, 1])
for ax, (name, model) in zip(axes.ravel()[1:], models.items()):
    draw(ax, name, model.predict_proba(grid)[:, 1])
for ax, name in ((axes[1, 0], "ImportVectorMachine"), (axes[1, 1], "SurfaceKernelClassifier")):
    points = models[name].centers_
    ax.scatter(*points.T, s=70, facecolors="none", edgecolors="black", linewidths=1.2, label="kernel")
    ax.set_title(f"{name}: {len(points)} kernels")
spare = axes[1, 2]
spare.set_axis_off()
bar = spare.inset_axes([0.08, 0.7, 0.84, 0.07])
figure.colorbar(shown, cax=bar, orientation="horizontal", label="probability of the second class")
spare.legend(*axes[1, 1].get_legend_handles_labels(), frameon=False, loc="lower left")
axes[0, 2].xaxis.set_tick_params(labelbottom=True)
plt.show()

# %%
# Which one to use
# ----------------
# - Start with ``LSPC``: one linear solve, with exact leave-one-out.
# - ``KernelLogisticRegression`` maximises the likelihood directly.
# - ``ImportVectorMachine`` gives small models that predict fast; the table shows what that may cost.
# - ``SurfaceKernelClassifier`` is for very many rows and few kernels: it needs one pass over the rows.
