"""
Far from all data
=================

What should a classifier say of a row that resembles nothing it has seen? A model with kernels can say that it does not
know: far from all data the probabilities of :class:`kproba.LSPC` go back towards the class shares of the training set,
and all the way with ``scaling="standard"``. Some other models are surest there.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from kproba import LSPC

X, y = make_moons(300, noise=0.25, random_state=0)
models = {
    "LSPC()": LSPC(random_state=0),
    'LSPC(scaling="standard")': LSPC(scaling="standard", random_state=0),
    "LogisticRegression()": LogisticRegression(),
    "CalibratedClassifierCV(SVC())": CalibratedClassifierCV(SVC(), ensemble=False),
    "HistGradientBoostingClassifier()": HistGradientBoostingClassifier(random_state=0),
}
for model in models.values():
    model.fit(X, y)

# %%
# Maps much wider than the data
# -----------------------------
# Colour is the probability of the second class; the half moons lie in the middle.

reach = 8
x1, x2 = np.meshgrid(np.linspace(-reach, reach, 200), np.linspace(-reach, reach, 200))
grid = np.column_stack([x1.ravel(), x2.ravel()])
blue_to_red = LinearSegmentedColormap.from_list("blue to red", ["#0072B2", "#F7F7F7", "#D55E00"])

figure, axes = plt.subplots(2, 3, figsize=(10.5, 6.8), layout="constrained", sharex=True, sharey=True)
for ax, (name, model) in zip(axes.ravel(), models.items()):
    second = model.predict_proba(grid)[:, 1].reshape(x1.shape)
    shown = ax.pcolormesh(x1, x2, second, cmap=blue_to_red, vmin=0, vmax=1, rasterized=True)
    for label, colour in enumerate(("#0072B2", "#D55E00")):
        ax.scatter(*X[y == label].T, s=6, color=colour, edgecolors="white", linewidths=0.2)
    ax.set(xlabel="first column", ylabel="second column", aspect="equal")
    ax.set_title(name, fontsize=10)
    ax.label_outer()
spare = axes[1, 2]
spare.set_axis_off()
bar = spare.inset_axes([0.08, 0.5, 0.84, 0.07])
figure.colorbar(shown, cax=bar, orientation="horizontal", label="probability of the second class")
axes[0, 2].xaxis.set_tick_params(labelbottom=True)
plt.show()

# %%
# A walk away from the data
# -------------------------
# The probability of the more probable class on circles around the data, of ever larger radius: the mean over the
# circle, and a band from its smallest to its largest.

radius = np.geomspace(1, 100, 60)
angle = np.linspace(0, 2 * np.pi, 72, endpoint=False)
circles = X.mean(axis=0) + radius[:, None, None] * np.column_stack([np.cos(angle), np.sin(angle)])

figure, axes = plt.subplots(1, 5, figsize=(13, 3.2), layout="constrained", sharey=True)
for ax, (name, model), colour in zip(axes, models.items(), ("#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7")):
    sureness = model.predict_proba(circles.reshape(-1, 2)).max(axis=1).reshape(len(radius), -1)
    ax.fill_between(radius, sureness.min(axis=1), sureness.max(axis=1), color=colour, alpha=0.25, linewidth=0)
    ax.plot(radius, sureness.mean(axis=1), color=colour)
    ax.axhline(0.5, color="0.6", linestyle=":")
    ax.set(xscale="log", xlabel="distance from the middle", ylim=(0.48, 1.01))
    ax.set_title(name, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("probability of the decision")
plt.show()

for name, model in models.items():
    sureness = model.predict_proba(circles[-1]).max(axis=1)
    print(f"{name:34s} at distance 100: {sureness.min():.2f} to {sureness.max():.2f}")

# %%
# The linear model grows surer the further it goes, and the trees repeat what they said at the edge of the data. The SVC
# has kernels too: its decision function becomes a constant, and the sigmoid makes of it one probability for all that is
# unknown, which need not be theirs. LSPC goes back to the shares, here one half each: exactly so with
# ``scaling="standard"``, and nearly with the default, which pulls outliers in, so that they remain at some distance.
#
# This is no detector of novelties: a row may be odd and yet lie close to others. It is a model that does not invent
# evidence.
