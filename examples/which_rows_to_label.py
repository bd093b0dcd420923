"""
Which rows to label next
========================

Labels are expensive, rows are not. A model with probabilities can select the rows that it is least confident about, and
it can estimate without any further label how many errors are left.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from kproba import LSPC

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, train_size=900, stratify=y, random_state=0)
BATCH, STEPS = 20, 9


def least_confident(model, waiting):
    """The rows whose two most probable classes are closest to each other."""
    two = np.sort(model.predict_proba(X[waiting]), axis=1)[:, -2:]
    return waiting[np.argsort(two[:, 1] - two[:, 0])[:BATCH]]


def at_random(model, waiting):
    return np.random.default_rng(len(waiting)).choice(waiting, BATCH, replace=False)


# %%
# Label, fit, select
# ------------------
# Both strategies start with the same 40 digits, four of each kind. In every round, 20 more digits get a label.

first = np.concatenate([np.flatnonzero(y == digit)[:4] for digit in range(10)])


def learn(choose):
    labelled, rounds = first, []
    for _ in range(STEPS):
        model = LSPC(random_state=0).fit(X[labelled], y[labelled])
        waiting = np.setdiff1d(np.arange(len(y)), labelled)
        confidence = model.predict_proba(X[waiting]).max(axis=1)
        error = (model.predict(X_new) != y_new).mean()
        wrong = (model.predict(X[waiting]) != y[waiting]).mean()
        rounds.append((len(labelled), error, (1 - confidence).mean(), wrong))
        labelled = np.concatenate([labelled, choose(model, waiting)])
    return np.array(rounds).T, labelled


by_model, selected = learn(least_confident)
by_chance, _ = learn(at_random)

print("labels   error on new digits:  selected   at random")
for labels, of_model, of_chance in zip(by_model[0], by_model[1], by_chance[1]):
    print(f"{labels:6.0f}{of_model:34.3f}{of_chance:12.3f}")

# %%
# The right-hand panel compares the error that the model expects on the unlabelled rows, the mean of 1 − max p, with the
# actual error. With random rows the two agree. A model that selects the hardest rows learns from rows that are
# harder than the rest, so it expects more errors than it makes.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
left.plot(by_chance[0], by_chance[1], color="#D55E00", marker="s", linestyle="--", label="random rows")
left.plot(by_model[0], by_model[1], color="#0072B2", marker="o", label="least confident rows")
left.set(xlabel="labels", ylabel="error, new digits", ylim=(0, None), title="Error for the same number of labels")
for rounds, colour, name in ((by_chance, "#D55E00", "at random"), (by_model, "#0072B2", "selected")):
    right.plot(rounds[0], rounds[3], color=colour, marker="o", label=f"actual, {name}")
    hollow = {"linestyle": ":", "marker": "o", "markerfacecolor": "white"}
    right.plot(rounds[0], rounds[2], color=colour, label=f"expected, {name}", **hollow)
right.set(xlabel="labels", ylabel="error, unlabelled rows", ylim=(0, None), title="Expected and actual error")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
plt.show()

# %%
# The first rows selected
# -----------------------
# The 20 digits of the first round, with their labels.

figure, axes = plt.subplots(2, 10, figsize=(10, 2.5), layout="constrained")
for ax, row in zip(axes.ravel(), selected[40:60]):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r", interpolation="nearest")
    ax.set_title(str(y[row]), fontsize=9)
    ax.set_axis_off()
plt.show()
