"""
From a table to a decision
==========================

This tutorial goes all the way once: fit a table, check whether the probabilities can be trusted, turn them into a
decision with your costs, hand the doubtful rows to a person, ask for reasons, and keep the model. The table ships with
scikit-learn: 30 measurements of 569 biopsies, of which 212 are malignant.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kproba
from kproba import LSPC, RejectOption, explain, write_report
from kproba.displays import ReliabilityDisplay

# %%
# The table
# ---------
# Set rows aside before anything else. They are used once, at the end of each step, to see whether it kept its promise.

X, target = load_breast_cancer(return_X_y=True, as_frame=True)
y = np.where(target == 0, "malignant", "benign")
X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
print(f"{len(y)} training rows, {np.mean(y == 'malignant'):.0%} of them malignant; {len(y_new)} rows set aside")

# %%
# Fit
# ---
# There is nothing to tune: the kernel, its width for every column and the ridge are learnt, and columns are scaled.

clf = LSPC(random_state=0).fit(X, y)

# %%
# Is it any good?
# ---------------
# ``oof_proba_`` has the probabilities of each training row by a model that never saw its fold, so it is an honest
# estimate without spending rows. Compare it with what you would have without a model, and with a simple model. Lower is
# better.

simple = make_pipeline(StandardScaler(), LogisticRegression())
shares = np.tile([np.mean(y == label) for label in clf.classes_], (len(y), 1))
candidates = {
    "class shares": shares,
    "logistic regression": cross_val_predict(simple, X, y, cv=8, method="predict_proba"),
    "LSPC()": clf.oof_proba_,
}
for name, proba in candidates.items():
    print(f"{name:20s} log-loss {log_loss(y, proba):.2f}")

# %%
# Can you take the probabilities at face value?
# ---------------------------------------------
# Of the rows with a probability of about p, a share of p should be malignant. Points on the diagonal say so; the bars
# are 90 % intervals, and with few rows they are wide.

new = clf.predict_proba(X_new)
display = ReliabilityDisplay.from_predictions(y_new, new, name="rows set aside")
display.figure_.set_size_inches(5, 4.6)
print(f"log-loss of the rows set aside: {log_loss(y_new, new):.2f}, of the training rows out of fold: "
      f"{log_loss(y, clf.oof_proba_):.2f}")  # fmt: skip

# %%
# Decide
# ------
# Suppose that a missed tumour is twenty times as bad as a false alarm. Then an alarm is cheaper than silence wherever
# the probability exceeds 1/(1 + 20). No new fit is needed: the costs belong in the decision, not in the model.

MISSED, ALARM = 20.0, 1.0
p = new[:, list(clf.classes_).index("malignant")]
ill = y_new == "malignant"


def mean_cost(threshold):
    return np.mean(np.where(ill, MISSED * (p < threshold), ALARM * (p >= threshold)))


threshold = ALARM / (ALARM + MISSED)
for name, at in (("half", 0.5), ("from the costs", threshold)):
    missed, alarms = np.sum(ill & (p < at)), np.sum(~ill & (p >= at))
    print(f"threshold {at:.2f} ({name:14s}): {missed} missed, {alarms} false alarms, mean cost {mean_cost(at):.2f}")

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
thresholds = np.linspace(0.005, 0.8, 160)
ax.plot(thresholds, [mean_cost(at) for at in thresholds], color="#0072B2")
ax.axvline(threshold, color="0.5", linestyle=":")
ax.annotate(" 1/(1 + 20)", (threshold, ax.get_ylim()[1]), va="top", color="0.3")
ax.set(xlabel="threshold for an alarm", ylabel="mean cost, rows set aside")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Hand the doubtful rows to a person
# ----------------------------------
# ``RejectOption`` keeps as many rows as it can while the error among them stays below a bound, with 95 % confidence.

careful = RejectOption(clf, max_error=0.03).fit(X, y)
kept = ~careful.rejects(X_new)
wrong = careful.predict(X_new)[kept] != y_new[kept]
print(f"{np.sum(~kept)} of {len(y_new)} rows go to a person; {wrong.sum()} of the others are wrong")

# %%
# Ask for reasons
# ---------------
# Which columns moved the score of the most doubtful row? The contributions of all columns sum to its score.

doubtful = int(new.max(axis=1).argmin())
print(f"probability of malignant: {p[doubtful]:.2f}")
for reason in explain(clf, X_new.iloc[[doubtful]]).reasons(3)[0]:
    print(f"{reason.column} = {reason.value:g}: {reason.contribution:+.2f}")

# %%
# Keep it
# -------
# A model file holds arrays and JSON, and loading it runs no code. The report is one page to open or send, with all of
# the above: measures with intervals, reliability, the cost of each threshold, and the rows to look at.

folder = Path(tempfile.mkdtemp())
kproba.save(clf, folder / "biopsies.kproba")
write_report(clf, X_new, y_new, folder / "biopsies.html", X_train=X, y_train=y, title="Biopsies")
again = kproba.load(folder / "biopsies.kproba")
print(f"largest difference after loading: {np.abs(again.predict_proba(X_new) - new).max():g}")
