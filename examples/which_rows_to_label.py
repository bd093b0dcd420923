"""
Which rows to label next
========================

Labels cost money and rows do not. A model with probabilities can point at the rows that it knows least about, and it
can say, without a single further label, about how many errors are left.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from kproba import LSPC

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, train_size=900, stratify=y, random_state=0)
BATCH, STEPS = 20, 9


def least_sure(model, waiting):
    """The rows whose two most probable classes are closest to each other."""
    two = np.sort(model.predict_proba(X[waiting]), axis=1)[:, -2:]
    return waiting[np.argsort(two[:, 1] - two[:, 0])[:BATCH]]


def at_random(model, waiting):
    return np.random.default_rng(len(waiting)).choice(waiting, BATCH, replace=False)


# %%
# Label, fit, ask
# ---------------
# Both begin with the same 40 digits, four of a kind. In every round 20 more get their label.

first = np.concatenate([np.flatnonzero(y == digit)[:4] for digit in range(10)])


def learn(choose):
    labelled, rounds = first, []
    for _ in range(STEPS):
        model = LSPC(random_state=0).fit(X[labelled], y[labelled])
        waiting = np.setdiff1d(np.arange(len(y)), labelled)
        sureness = model.predict_proba(X[waiting]).max(axis=1)
        error = (model.predict(X_new) != y_new).mean()
        wrong = (model.predict(X[waiting]) != y[waiting]).mean()
        rounds.append((len(labelled), error, (1 - sureness).mean(), wrong))
        labelled = np.concatenate([labelled, choose(model, waiting)])
    return np.array(rounds).T, labelled


by_model, asked = learn(least_sure)
by_chance, _ = learn(at_random)

print("labels   error on new digits: asked for   at random")
for labels, of_model, of_chance in zip(by_model[0], by_model[1], by_chance[1]):
    print(f"{labels:6.0f}{of_model:34.3f}{of_chance:12.3f}")

# %%
# The second picture has what the model expects of the rows that nobody has labelled, the mean of 1 − max p, beside
# the share of them that it does get wrong. With labels at random the two go together. Who asks for the hardest rows
# learns from rows that are harder than the rest, and expects more errors than there are.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
left.plot(by_chance[0], by_chance[1], color="#D55E00", marker="s", linestyle="--", label="rows at random")
left.plot(by_model[0], by_model[1], color="#0072B2", marker="o", label="rows that it is least sure of")
left.set(xlabel="labels", ylabel="error, new digits", ylim=(0, None), title="The same labels, better spent")
for rounds, colour, name in ((by_chance, "#D55E00", "at random"), (by_model, "#0072B2", "asked for")):
    right.plot(rounds[0], rounds[3], color=colour, marker="o", label=f"wrong, {name}")
    hollow = {"linestyle": ":", "marker": "o", "markerfacecolor": "white"}
    right.plot(rounds[0], rounds[2], color=colour, label=f"expected, {name}", **hollow)
right.set(xlabel="labels", ylabel="share of the rows without a label", ylim=(0, None), title="Errors expected and made")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
plt.show()

# %%
# What it asked about first
# -------------------------
# The 20 digits of the first round, each under its label.

figure, axes = plt.subplots(2, 10, figsize=(10, 2.5), layout="constrained")
for ax, row in zip(axes.ravel(), asked[40:60]):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r", interpolation="nearest")
    ax.set_title(str(y[row]), fontsize=9)
    ax.set_axis_off()
plt.show()
