"""
Costs and rare classes
======================

Probabilities can be trained once and used under circumstances that change: other costs of an error, or classes that are
rarer than in the training set. Neither needs another fit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from kproba import LSPC
from kproba.data.toys import clouds_2013

toy = clouds_2013(n_clouds=6, spread=1.0, random_state=0)


def draw_rows(n, share, random):
    """Rows of which the given share is ill (class 1), the others well (class 0)."""
    ill = random.random(n) < share
    X = np.where(ill[:, None], toy.conditionals[0].sample(n, random), toy.conditionals[1].sample(n, random))
    return X, ill.astype(int)


random = np.random.default_rng(0)
X, y = draw_rows(1000, 0.5, random)
X_new, y_new = draw_rows(20_000, 0.5, random)
models = {
    "LSPC()": LSPC(random_state=0).fit(X, y),
    "CalibratedClassifierCV(SVC())": CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y),
}
proba = {name: model.predict_proba(X_new)[:, 1] for name, model in models.items()}
style = {"LSPC()": ("#0072B2", "-"), "CalibratedClassifierCV(SVC())": ("#D55E00", "--")}

# %%
# Costs
# -----
# To overlook an ill person costs 9, a false alarm 1. Whoever believes the probabilities raises the alarm where it is
# expected to be cheaper: above 1/(1 + 9). If they can be believed, that threshold is close to the cheapest there is,
# which is known only afterwards.

MISSED, ALARM = 9.0, 1.0
thresholds = np.linspace(0.005, 0.6, 200)
by_theory = ALARM / (ALARM + MISSED)


def cost(p, truth, threshold):
    return np.mean(np.where(truth == 1, MISSED * (p < threshold), ALARM * (p >= threshold)))


figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, p in proba.items():
    costs = np.array([cost(p, y_new, threshold) for threshold in thresholds])
    colour, line = style[name]
    ax.plot(thresholds, costs, color=colour, linestyle=line, label=name)
    ax.plot(thresholds[costs.argmin()], costs.min(), "o", color=colour, markersize=7)
    ax.plot(by_theory, cost(p, y_new, by_theory), "D", color=colour, markersize=7, markerfacecolor="white")
    print(f"{name:32s} by the threshold {by_theory:.2f}: {cost(p, y_new, by_theory):.3f}", end=", ")
    print(f"by the best one, {thresholds[costs.argmin()]:.2f}: {costs.min():.3f}, by 0.50: {cost(p, y_new, 0.5):.3f}")
ax.axvline(by_theory, color="0.5", linestyle=":")
ax.annotate("1/(1 + 9)", (by_theory, ax.get_ylim()[1]), xytext=(4, -12), textcoords="offset points", color="0.3")
ax.set(xlabel="alarm where the probability is at least", ylabel="cost a person, new rows")
ax.set_title("Diamond: threshold from the costs; dot: cheapest afterwards")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# A class that is rarer than it was
# ---------------------------------
# Half of the training rows are ill. In a screening it is one in fifty. The densities within the classes stay what they
# were, so by Bayes' rule each column is multiplied by how much its class's share has changed, and the row is divided
# by its sum.

SCREENED = 0.02
X_screened, y_screened = draw_rows(40_000, SCREENED, random)


def with_shares(p, before, after):
    moved = p * np.asarray(after) / np.asarray(before)
    return moved / moved.sum(axis=1, keepdims=True)


shares = np.bincount(y) / len(y)
as_trained = models["LSPC()"].predict_proba(X_screened)
moved = with_shares(as_trained, shares, [1 - SCREENED, SCREENED])
for name, p in (("as trained", as_trained), ("moved to the new shares", moved)):
    print(f"{name:26s} mean probability of ill {p[:, 1].mean():.3f}, log-loss {log_loss(y_screened, p):.4f}")
print(f"{'in truth':26s} share of ill            {y_screened.mean():.3f}")

# %%
# ``class_weight`` does the same while fitting. A weight is the factor by which the share of a class changes, up to a
# common one:

weights = {0: (1 - SCREENED) / shares[0], 1: SCREENED / shares[1]}
weighted = LSPC(class_weight=weights, random_state=0).fit(X, y).predict_proba(X_screened)
print(f"{'by class_weight':26s} mean probability of ill {weighted[:, 1].mean():.3f}", end=", ")
print(f"log-loss {log_loss(y_screened, weighted):.4f}")

# %%
# How often those who were told some probability of being ill are ill, among the screened. As trained, it is far too
# high.

figure, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
ax.axline((0.1, 0.1), (1, 1), color="0.6", linestyle=":")
ways = (
    ("as trained", as_trained, "#D55E00", "s"),
    ("moved to the new shares", moved, "#0072B2", "o"),
    ("by class_weight", weighted, "#009E73", "^"),
)
for name, p, colour, marker in ways:
    frequency, told = calibration_curve(y_screened, p[:, 1], n_bins=20, strategy="quantile")
    some = frequency * len(y_screened) / 20 >= 5  # a share of fewer cases says little
    ax.plot(told[some], frequency[some], color=colour, marker=marker, label=name)
ax.set(xscale="log", yscale="log", xlim=(1e-3, 1), ylim=(1e-3, 1), aspect="equal")
ax.set(xlabel="probability of being ill", ylabel="share that is ill", title="Where one in fifty is ill")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
plt.show()
