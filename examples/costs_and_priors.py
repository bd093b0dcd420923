"""
Costs and rare classes
======================

You can fit probabilities once and use them when circumstances change: if errors have other costs, or if classes are
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
    """Rows of which the given share is ill (class 1); the others are healthy (class 0)."""
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
# Missing an ill person costs 9, a false alarm 1. If you trust the probabilities, you raise an alarm where it is
# expected to be cheaper: above 1/(1 + 9). If they are calibrated, this threshold is close to the cheapest one,
# which you would know only afterwards.

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
    print(f"{name:32s} cost at the threshold {by_theory:.2f}: {cost(p, y_new, by_theory):.3f}", end=", ")
    print(f"at the best, {thresholds[costs.argmin()]:.2f}: {costs.min():.3f}, at 0.50: {cost(p, y_new, 0.5):.3f}")
ax.axvline(by_theory, color="0.5", linestyle=":")
ax.annotate("1/(1 + 9)", (by_theory, ax.get_ylim()[1]), xytext=(4, -12), textcoords="offset points", color="0.3")
ax.set(xlabel="threshold for an alarm", ylabel="mean cost, new rows")
ax.set_title("Diamond: threshold from the costs; dot: cheapest threshold")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# A class that becomes rarer
# --------------------------
# Half of the training rows are ill, but only one in fifty people in a screening. The densities within the classes do
# not change, so by Bayes' rule you multiply each column by the new share of its class over the old one and normalise
# the rows.

SCREENED = 0.02
X_screened, y_screened = draw_rows(40_000, SCREENED, random)


def with_shares(p, before, after):
    moved = p * np.asarray(after) / np.asarray(before)
    return moved / moved.sum(axis=1, keepdims=True)


shares = np.bincount(y) / len(y)
as_trained = models["LSPC()"].predict_proba(X_screened)
moved = with_shares(as_trained, shares, [1 - SCREENED, SCREENED])
for name, p in (("as trained", as_trained), ("adjusted to the new shares", moved)):
    print(f"{name:26s} mean probability of ill {p[:, 1].mean():.3f}, log-loss {log_loss(y_screened, p):.4f}")
print(f"{'true':26s} share of ill            {y_screened.mean():.3f}")

# %%
# ``class_weight`` does the same within the fit. A weight is the factor by which the share of a class changes, up to a
# common factor:

weights = {0: (1 - SCREENED) / shares[0], 1: SCREENED / shares[1]}
weighted = LSPC(class_weight=weights, random_state=0).fit(X, y).predict_proba(X_screened)
print(f"{'with class_weight':26s} mean probability of ill {weighted[:, 1].mean():.3f}", end=", ")
print(f"log-loss {log_loss(y_screened, weighted):.4f}")

# %%
# The figure shows how often people in the screening with a given predicted probability are ill. Without an
# adjustment, the predicted probability is far too high.

figure, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
ax.axline((0.1, 0.1), (1, 1), color="0.6", linestyle=":")
ways = (
    ("as trained", as_trained, "#D55E00", "s"),
    ("adjusted to the new shares", moved, "#0072B2", "o"),
    ("with class_weight", weighted, "#009E73", "^"),
)
for name, p, colour, marker in ways:
    frequency, predicted = calibration_curve(y_screened, p[:, 1], n_bins=20, strategy="quantile")
    some = frequency * len(y_screened) / 20 >= 5  # too few cases for a meaningful share
    ax.plot(predicted[some], frequency[some], color=colour, marker=marker, label=name)
ax.set(xscale="log", yscale="log", xlim=(1e-3, 1), ylim=(1e-3, 1), aspect="equal")
ax.set(xlabel="predicted probability of being ill", ylabel="share that is ill", title="One in fifty is ill")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
plt.show()
