"""
Leaving doubtful rows undecided
===============================

A classifier of digits need not decide about all of them. :class:`kproba.RejectOption` keeps as many as it can classify
with a guaranteed error rate and leaves the others undecided. Its threshold comes from out-of-fold probabilities, which
the classifier has anyway, so nothing is fitted twice.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from kproba import LSPC, RejectOption
from kproba.displays import RiskCoverageDisplay

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, train_size=500, stratify=y, random_state=0)

clf = RejectOption(LSPC(random_state=0), max_error=0.02, confidence=0.95).fit(X, y)

# %%
# ``coverage_`` predicts the share of rows that will be kept.

found, rejected = clf.predict(X_new), clf.rejects(X_new)
wrong = found != y_new
print(f"threshold {clf.threshold_:.3f}, share kept: expected {clf.coverage_:.3f}, observed {(~rejected).mean():.3f}")
error = (clf.estimator_.predict(X_new) != y_new).mean()
print(f"error on all rows {error:.4f}, on the rows kept {wrong[~rejected].mean():.4f}")

# %%
# Error against the share kept
# ----------------------------
# The curve goes from the most confident digit on the left to all digits on the right. The dashed line is the guaranteed
# error, the dotted line the share that is kept. The bands show the 95 % bound for each threshold separately.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
RiskCoverageDisplay.from_estimator(clf, ax=axes[0], name="training rows, out of fold")
RiskCoverageDisplay.from_estimator(clf, X_new, y_new, ax=axes[1], name="new rows")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper left")
axes[1].set_ylabel("")
plt.show()

# %%
# Undecided rows
# --------------
# These are the 18 least confident new digits with their plausible labels: ``predict_set`` returns sets that contain the
# true label of 99 % of new rows. The true label is in brackets.

sets = clf.predict_set(X_new, coverage=0.99)
doubted = np.argsort(clf.predict_proba(X_new).max(axis=1))[:18]

figure, axes = plt.subplots(3, 6, figsize=(9, 5.6), layout="constrained")
for ax, row in zip(axes.ravel(), doubted):
    ax.imshow(X_new[row].reshape(8, 8), cmap="gray_r", interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    plausible = " ".join(str(label) for label in clf.classes_[sets[row]])
    ax.set_xlabel(f"{plausible}  ({y_new[row]})")
    ax.spines[:].set_color("#0072B2" if sets[row, y_new[row]] else "#D55E00")
    ax.spines[:].set_linewidth(2)
figure.suptitle("Blue: the set contains the true label; red: it does not")
plt.show()

# %%
# Label sets of kept and rejected rows
# ------------------------------------
# A row that is kept has few plausible labels. A rejected row may have a single one too, because the threshold gives a
# stricter guarantee than the sets.

sizes, kept_sizes = sets.sum(axis=1), sets[~rejected].sum(axis=1)
inside = sets[np.arange(len(y_new)), y_new].mean()
print(f"the sets contain the true label of {inside:.3f} of the new digits; mean size {sizes.mean():.2f}")
for size in range(1, sizes.max() + 1):
    kept, left = (kept_sizes == size).sum(), (sizes[rejected] == size).sum()
    print(f"{size} plausible label{'s' if size > 1 else ' '}: {kept:5d} kept, {left:4d} rejected")

# sphinx_gallery_thumbnail_number = 2
