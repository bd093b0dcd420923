"""
What leave-one-out chose
========================

With widths to choose from, :class:`kproba.LSPC` tries kernels, widths and ridges and keeps the candidate with the
smallest leave-one-out loss. Leave-one-out is exact and comes with the solution: no candidate is fitted n times.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from kproba import LSPC, TimesMedian
from kproba.displays import SearchMapDisplay

X, y = load_breast_cancer(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, train_size=300, stratify=y, random_state=0)
clf = LSPC(scaling="robust", width=TimesMedian(), random_state=0).fit(X, y)

# %%
# The map
# -------
# The maps show every candidate of the search, one map per kernel. The ring marks the choice.

SearchMapDisplay.from_estimator(clf)
plt.show()

print(f"chosen: {clf.kernel_.name}, width {clf.width_:.2f}, ridge {clf.ridge_:.1e}")
print(f"of {len(clf.search_results_['loss'])} candidates")

# %%
# Comparison with n refits
# ------------------------
# Fit the same model n times, each time without one row, and predict that row. The ridge refers to the mean
# over the rows; multiplied by n/(n − 1) it has the same weight in a sum with one row fewer. ``link="none"`` gives the
# raw scores, and ``loo_scores_`` are the scores from the formula.

few, labels = X[:150], y[:150]
n = len(few)
given = {"kernel": "gaussian", "width": 3.0, "scaling": None, "link": "none", "centers": "all", "loo": True}
few = (few - few.mean(axis=0)) / few.std(axis=0)

start = perf_counter()
once = LSPC(ridge=1e-3, **given).fit(few, labels)
seconds_once = perf_counter() - start
by_formula = once.loo_scores_[:, 1] / once.loo_scores_.sum(axis=1)

start = perf_counter()
by_refits = np.empty(n)
for i in range(n):
    without = LSPC(ridge=1e-3 * n / (n - 1), **given).fit(np.delete(few, i, axis=0), np.delete(labels, i))
    by_refits[i] = (without.decision_function(few[[i]])[0] + 1) / 2
seconds_refits = perf_counter() - start

print(f"largest difference between formula and refits: {abs(by_formula - by_refits).max():.1e}")
print(f"one fit {1000 * seconds_once:.0f} ms, {n} refits {1000 * seconds_refits:.0f} ms")

# %%
# Does it choose a good model for new rows?
# -----------------------------------------
# Fit a grid of widths and ridges on the training rows. ``loo_proba_`` predicts the order of their log-losses. Only test
# rows tell how good the best one is, because the smallest of many numbers is optimistic.

widths, ridges = np.geomspace(0.7, 20, 9), np.geomspace(1e-6, 1, 9)
by_loo, on_new = np.empty((2, len(widths), len(ridges)))
for i, width in enumerate(widths):
    for j, ridge in enumerate(ridges):
        model = LSPC(kernel="gaussian", width=width, ridge=ridge, scaling="standard").fit(X, y)
        by_loo[i, j] = log_loss(y, model.loo_proba_)
        on_new[i, j] = log_loss(y_new, model.predict_proba(X_new))

best = np.unravel_index(by_loo.argmin(), by_loo.shape)
print(f"rank correlation of leave-one-out and new rows over {by_loo.size} candidates:", end=" ")
print(f"{spearmanr(by_loo.ravel(), on_new.ravel()).statistic:.2f}")
print(f"log-loss on new rows: chosen {on_new[best]:.3f}; best {on_new.min():.3f}", end="; ")
print(f"median {np.median(on_new):.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.3), layout="constrained", width_ratios=[1, 1.1])
left.axline((0.1, 0.1), slope=1, color="0.6", linestyle=":")
shown = left.scatter(by_loo, on_new, c=np.repeat(np.log10(widths), len(ridges)), cmap="viridis", s=28)
left.plot(by_loo[best], on_new[best], "o", markersize=13, markerfacecolor="none", color="#D55E00", markeredgewidth=2)
left.set(xlabel="leave-one-out log-loss, training rows", ylabel="log-loss, new rows", xscale="log", yscale="log")
right.set(xscale="log", yscale="log")
for axis in (left.xaxis, left.yaxis, right.yaxis):
    axis.set_major_locator(FixedLocator([0.06, 0.1, 0.2, 0.4]))
    axis.set_major_formatter("{x:.2g}")
    axis.set_minor_locator(NullLocator())
left.spines[["top", "right"]].set_visible(False)
figure.colorbar(shown, ax=left, label="log₁₀ of the width")
for ridge in range(0, len(ridges), 2):
    colour = plt.get_cmap("cividis")(ridge / len(ridges))
    right.plot(widths, by_loo[:, ridge], color=colour, marker="o", markersize=4, label=f"{ridges[ridge]:.0e}")
    right.plot(widths, on_new[:, ridge], color=colour, linestyle="--")
right.set(xlabel="width", ylabel="log-loss")
right.set_title("Dots: leave-one-out; dashed: new rows", fontsize=11)
right.spines[["top", "right"]].set_visible(False)
right.legend(title="ridge", frameon=False)
plt.show()

# sphinx_gallery_thumbnail_number = 2
