"""
Predictions far from the training data
======================================

What should a classifier predict for a row that resembles nothing it has seen? A kernel model can say that it does not
know: far from all data, the probabilities of :class:`kproba.LSPC` return towards the class shares of the training set,
and reach them with ``scaling="standard"``. Some other models are most confident there.
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
# The colour is the probability of the second class; the training data is in the middle.

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
# Moving away from the data
# -------------------------
# The figure shows the probability of the predicted class on circles of increasing radius around the data: the mean over
# each circle, and a band from its minimum to its maximum.

radius = np.geomspace(1, 100, 60)
angle = np.linspace(0, 2 * np.pi, 72, endpoint=False)
circles = X.mean(axis=0) + radius[:, None, None] * np.column_stack([np.cos(angle), np.sin(angle)])

figure, axes = plt.subplots(1, 5, figsize=(13, 3.2), layout="constrained", sharey=True)
for ax, (name, model), colour in zip(axes, models.items(), ("#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7")):
    confidence = model.predict_proba(circles.reshape(-1, 2)).max(axis=1).reshape(len(radius), -1)
    ax.fill_between(radius, confidence.min(axis=1), confidence.max(axis=1), color=colour, alpha=0.25, linewidth=0)
    ax.plot(radius, confidence.mean(axis=1), color=colour)
    ax.axhline(0.5, color="0.6", linestyle=":")
    ax.set(xscale="log", xlabel="distance from the centre", ylim=(0.48, 1.01))
    ax.set_title(name, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("probability of the predicted class")
plt.show()

for name, model in models.items():
    confidence = model.predict_proba(circles[-1]).max(axis=1)
    print(f"{name:34s} at distance 100: {confidence.min():.2f} to {confidence.max():.2f}")

# %%
# The linear model becomes more confident with distance, and the trees repeat their predictions at the edge of the data.
# The SVC has kernels too: its decision function becomes constant, and the sigmoid turns it into one probability for
# everything unknown, which need not equal the class shares. LSPC returns to the shares, here one half each: exactly
# with ``scaling="standard"``, and approximately with the default scaling, which limits how far away a row can be.
#
# This does not detect novelties: a row may be unusual and still be close to others. But the model does not invent
# evidence.
