"""
From a table to a decision
==========================

This tutorial goes all the way once: fit a table, check whether the probabilities can be trusted, turn them into a
decision with your costs, hand the doubtful rows to a person, ask for reasons, and keep the model. The table ships with
scikit-learn: ten measurements of 442 people with diabetes, and how far the disease went within a year.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import kproba
from kproba import LSPC, RejectOption, explain, write_report
from kproba.displays import ReliabilityDisplay

# %%
# The table
# ---------
# The question is who gets worse. Set rows aside before anything else: they show at each step whether it kept its
# promise.

X, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
y = np.where(progression > 150, "worse", "stable")
X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, stratify=y, random_state=3)
print(f"{len(y)} training rows, {np.mean(y == 'worse'):.0%} of them worse; {len(y_new)} rows set aside")

# %%
# Fit
# ---
# There is nothing to tune: columns are scaled, and a weight for every column, the widths and the ridge are learnt.

clf = LSPC(random_state=0).fit(X, y)

# %%
# Is it any good?
# ---------------
# ``oof_proba_`` has the probabilities of each training row by a model that never saw its fold, so it is an honest
# estimate that costs no rows. Compare it with what you would say without a model: the share of each class. Lower is
# better.

shares = np.tile([np.mean(y == label) for label in clf.classes_], (len(y), 1))
proba = clf.predict_proba(X_new)
print(f"log-loss without a model {log_loss(y, shares):.2f}")
print(f"log-loss out of fold     {log_loss(y, clf.oof_proba_):.2f}")
print(f"log-loss, rows set aside {log_loss(y_new, proba):.2f}")

# %%
# Can you take the probabilities at face value?
# ---------------------------------------------
# Of the predictions with a probability of about p, a share of p should be right. Points near the diagonal say so; the
# band is a 90 % interval for each of them, and with few rows it is wide.

display = ReliabilityDisplay.from_predictions(y_new, proba, name="rows set aside")
display.figure_.set_size_inches(5, 4.6)

# %%
# Decide
# ------
# Suppose that missing somebody who gets worse is four times as bad as an unnecessary appointment. Then an appointment
# is cheaper wherever the probability exceeds 1/(1 + 4). No new fit is needed: costs belong in the decision, not in the
# model.

MISSED, UNNECESSARY = 4.0, 1.0
p = proba[:, list(clf.classes_).index("worse")]
worse = y_new == "worse"


def mean_cost(threshold):
    return np.mean(np.where(worse, MISSED * (p < threshold), UNNECESSARY * (p >= threshold)))


threshold = UNNECESSARY / (UNNECESSARY + MISSED)
for at in (0.5, threshold):
    missed, unnecessary = np.sum(worse & (p < at)), np.sum(~worse & (p >= at))
    print(f"threshold {at:.1f}: {missed} missed, {unnecessary} unnecessary, mean cost {mean_cost(at):.2f}")

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
thresholds = np.linspace(0.01, 0.9, 180)
ax.plot(thresholds, [mean_cost(at) for at in thresholds], color="#0072B2")
ax.axvline(threshold, color="0.5", linestyle=":")
ax.annotate(" 1/(1 + 4)", (threshold, ax.get_ylim()[1]), va="top", color="0.3")
ax.set(xlabel="threshold for an appointment", ylabel="mean cost, rows set aside")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Hand the doubtful rows to a person
# ----------------------------------
# ``RejectOption`` keeps as many rows as it can while the error among them stays below a bound, here one in four, with a
# confidence of 95 %.

careful = RejectOption(clf, max_error=0.25).fit(X, y)
kept = ~careful.rejects(X_new)
print(f"error of all rows set aside: {np.mean(clf.predict(X_new) != y_new):.2f}")
print(f"error of the {kept.mean():.0%} that are kept: {np.mean(careful.predict(X_new)[kept] != y_new[kept]):.2f}")

# %%
# Ask for reasons
# ---------------
# Which columns moved the score of the person at the highest risk? The contributions of all columns sum to the score.

highest = int(p.argmax())
print(f"probability of getting worse: {p[highest]:.2f}")
for reason in explain(clf, X_new.iloc[[highest]]).reasons(3)[0]:
    print(f"{reason.column} = {reason.value:g}: {reason.contribution:+.2f}")

# %%
# Keep it
# -------
# A model file holds arrays and JSON, and loading it runs no code. The report is one page to open or send, with all of
# the above: measures with intervals, reliability, thresholds, and the rows to look at.

folder = Path(tempfile.mkdtemp())
kproba.save(clf, folder / "diabetes.kproba")
write_report(clf, X_new, y_new, folder / "diabetes.html", X_train=X, y_train=y, title="Diabetes")
again = kproba.load(folder / "diabetes.kproba")
print(f"largest difference after loading: {np.abs(again.predict_proba(X_new) - proba).max():g}")
