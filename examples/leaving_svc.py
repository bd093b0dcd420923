"""
Migrating from SVC(probability=True)
====================================

A support vector machine predicts without probabilities. ``SVC(probability=True)`` fits them afterwards by internal
cross-validation, so they may contradict its predictions; scikit-learn has deprecated the option and recommends
``CalibratedClassifierCV``. In :class:`kproba.LSPC`, predictions and probabilities always agree.

The data consists of three overlapping classes in the plane with a known posterior.
"""

import warnings
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from kproba import LSPC
from kproba.data.toys import three_classes_2010
from kproba.displays import ReliabilityDisplay
from kproba.metrics import calibration_error

warnings.filterwarnings("ignore", message="The `probability` parameter was deprecated", category=FutureWarning)

known, new = three_classes_2010(300, random_state=0), three_classes_2010(5000, random_state=1)
models = {
    "SVC(probability=True)": SVC(probability=True, random_state=0),
    "CalibratedClassifierCV(SVC())": CalibratedClassifierCV(SVC(), ensemble=False),
    "LSPC()": LSPC(random_state=0),
}

# %%
# Predictions that are not the most probable class
# ------------------------------------------------
# The table compares ``predict`` of each model with the largest column of its ``predict_proba``. The last row is the
# true posterior, which has the smallest expected log-loss.

print(
    f"{'on 5,000 new rows':32s}{'contradictions':>16s}{'error':>9s}{'log-loss':>10s}{'calibration':>13s}{'fit, s':>8s}"
)
for name, model in models.items():
    start = perf_counter()
    model.fit(known.X, known.y)
    seconds = perf_counter() - start
    proba, predicted = model.predict_proba(new.X), model.predict(new.X)
    contradictions = (predicted != model.classes_[proba.argmax(axis=1)]).sum()
    print(
        f"{name:32s}{contradictions:16d}{(predicted != new.y).mean():9.3f}{log_loss(new.y, proba):10.3f}"
        f"{calibration_error(new.y, proba):13.3f}{seconds:8.2f}"
    )
truth = new.posterior(new.X)
error = (truth.argmax(axis=1) + 1 != new.y).mean()
print(f"{'the true posterior':48s}{error:9.3f}{log_loss(new.y, truth):10.3f}{calibration_error(new.y, truth):13.3f}")

# %%
# ``CalibratedClassifierCV`` avoids the contradiction by predicting from the probabilities: its ``predict`` is no longer
# that of the SVC inside. The maps show the prediction of each model, in black where the model assigns a higher
# probability to another class, and in white where there are almost no rows.

x, y = np.meshgrid(np.linspace(-5.5, 5.5, 300), np.linspace(-6.5, 6.5, 300))
grid = np.column_stack([x.ravel(), y.ravel()])
is_empty = known.density(grid) < 5e-4
classes = ListedColormap(["#56B4E9", "#F0E442", "#CC79A7"])

figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained", sharex=True, sharey=True)
for ax, (name, model) in zip(axes, models.items()):
    predicted, probable = model.predict(grid), model.classes_[model.predict_proba(grid).argmax(axis=1)]
    map_of = {"cmap": classes, "alpha": 0.55, "vmin": 1, "vmax": 3, "rasterized": True}
    ax.pcolormesh(x, y, np.ma.array(predicted, mask=is_empty).reshape(x.shape), **map_of)
    contradicted = np.ma.array(predicted, mask=is_empty | (predicted == probable)).reshape(x.shape)
    ax.pcolormesh(x, y, contradicted, cmap=ListedColormap(["black"]), rasterized=True)
    ax.scatter(*known.X.T, c=known.y, cmap=classes, s=12, edgecolors="black", linewidths=0.4)
    ax.set(title=name, xlabel="first column")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("second column")
figure.suptitle("Black: the predicted class is not the most probable one")
plt.show()

# %%
# Are the probabilities calibrated?
# ---------------------------------
# Of the predictions with a probability of about p, how many are right? On the diagonal you can take p at face value.
# Points above it are underconfident, points below it overconfident.

figure, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for (name, model), colour, marker in zip(models.items(), ("#D55E00", "#009E73", "#0072B2"), "s^o"):
    ReliabilityDisplay.from_estimator(model, new.X, new.y, ax=ax, name=name, color=colour, marker=marker)
ax.set(xlim=(0.3, 1.02), ylim=(0.3, 1.02), title="Reliability on 5,000 new rows", aspect="equal")
ax.legend(frameon=False, loc="upper left")
plt.show()

# %%
# The price is time: the SVC uses a fixed width and penalty, while the seconds of ``LSPC()`` include the search for a
# kernel, width and ridge.
