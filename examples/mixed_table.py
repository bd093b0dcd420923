"""
A table with mixed columns
==========================

skrub converts numbers, words, dates and missing values to numeric columns, LSPC learns from these, and both are saved
in one file that you can load without trusting it. The example needs ``pip install 'kproba[tables]'``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from skrub import TableVectorizer

import kproba
from kproba.displays import ReliabilityDisplay

# %%
# Orders of a shop, some of which are returned
# --------------------------------------------
# The data is synthetic: shoes are returned most, more often in winter and by customers who return often.

random = np.random.default_rng(0)
n = 1500
orders = pd.DataFrame(
    {
        "day": pd.Timestamp("2025-01-01") + pd.to_timedelta(random.integers(0, 365, n), unit="D"),
        "what": random.choice(["shoes", "coat", "book", "lamp", "shirt"], n, p=[0.25, 0.15, 0.25, 0.1, 0.25]),
        "price": random.lognormal(3.5, 0.6, n).round(2),
        "returned before": random.poisson(0.8, n).astype(float),
        "paid by": random.choice(["card", "invoice", "voucher"], n),
    }
)
winter = np.cos(2 * np.pi * orders["day"].dt.day_of_year / 365)
odds = (
    orders["what"].map({"shoes": 0.8, "coat": 0.4, "shirt": 0.0, "lamp": -1.5, "book": -2.5})
    + 1.2 * winter
    + 0.7 * orders["returned before"]
    + 0.6 * (orders["paid by"] == "invoice")
    + 0.01 * (orders["price"] - 35)
    - 0.8
)
truth = 1 / (1 + np.exp(-odds))
returned = np.where(random.random(n) < truth, "sent back", "kept")
orders.loc[random.random(n) < 0.1, "price"] = np.nan
orders.loc[random.random(n) < 0.05, "paid by"] = None
print(orders.head())

# %%
# One pipeline
# ------------
# Words become 0/1 columns and dates are split into their parts. Missing values are imputed and flagged in a column.

train, new, y, y_new = train_test_split(orders, returned, test_size=500, stratify=returned, random_state=0)
model = make_pipeline(
    TableVectorizer(), SimpleImputer(strategy="median", add_indicator=True), kproba.LSPC(random_state=0)
).fit(train, y)
proba = model.predict_proba(new)
shares = np.tile(pd.Series(y).value_counts(normalize=True)[model.classes_], (len(new), 1))
print(f"log-loss on new orders {log_loss(y_new, proba):.3f}, of the class shares {log_loss(y_new, shares):.3f}")
print(f"input columns: {model[:-1].get_feature_names_out().tolist()}")

# %%
# What the model has learnt
# -------------------------
# The figure shows the mean probability of a return among the new orders, by product and by month, and the true
# probability with which the orders were generated.

back = list(model.classes_).index("sent back")
seen = new.assign(p=proba[:, back], truth=truth[new.index], month=new["day"].dt.month)

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, column in zip(axes, ("what", "month")):
    groups = seen.groupby(column)[["p", "truth"]].mean()
    groups = groups.sort_values("truth") if column == "what" else groups
    places = np.arange(len(groups))
    ax.bar(places, groups["p"], color="#56B4E9", width=0.7, label="model")
    ax.plot(places, groups["truth"], "D", color="#D55E00", label="true")
    ax.set_xticks(places, groups.index)
    ax.set(ylim=(0, 1), xlabel=column, ylabel="mean probability", title="orders sent back")
    ax.legend(frameon=False, loc="upper left" if column == "what" else "upper center")
ReliabilityDisplay.from_estimator(model, new, y_new, ax=axes[2], name="new orders", color="#0072B2")
axes[2].set(xlim=(0.48, 1.02), ylim=(0.3, 1.02), title="reliability")
axes[2].legend(frameon=False, loc="upper left")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Model file and report
# ---------------------
# The model file contains arrays and JSON. Loading it runs no code from the file.

folder = Path(tempfile.mkdtemp())
kproba.save(model, folder / "returns.kproba")
again = kproba.load(folder / "returns.kproba")
print(f"{(folder / 'returns.kproba').stat().st_size / 1024:.0f} KiB", end=", ")
print(f"the same probabilities: {bool((again.predict_proba(new) == proba).all())}")

# %%
# The report is one HTML file that works offline: reliability, the cost of each threshold, rows to look at.

page = kproba.write_report(again, new, y_new, folder / "report.html", X_train=train, y_train=y, title="Returns")
print(f"{page.name}, {page.stat().st_size / 1024:.0f} KiB, in {folder.name}")
