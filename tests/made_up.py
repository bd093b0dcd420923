"""A classifier that says what it is told, and labels that mean harm."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

#: Labels that would break a page that did not take them as text.
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>document.title='x'</script>",
    "\"><img src=x onerror=alert(1)> & 'quoted'",
    "שלום עולם \u202e reversed",
    "naïve 猫 🐈 \x00 \x1b[31m \ud800",
    "very long " * 40,
]


class Oracle(ClassifierMixin, BaseEstimator):
    """Says of every row what the row itself holds."""

    def __init__(self, classes):
        self.classes = classes

    def fit(self, X=None, y=None):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        X = np.asarray(X, dtype=float)
        return X / X.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def made_up(n, classes, seed=0, sharpness=2.0):
    """Rows that are probabilities, and labels that are mostly what they say."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, len(classes))) * sharpness
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return Oracle(list(classes)).fit(), proba, np.array(list(classes))[codes]


def rare(n, seed=0):
    """Rows of which about one in a thousand is of the class "fraud", and probabilities that know this."""
    rng = np.random.default_rng(seed)
    p = 1.0 / (1.0 + np.exp(8.0 - 1.6 * rng.normal(size=n)))
    y = np.where(rng.random(n) < p, "fraud", "ok")
    return Oracle(["fraud", "ok"]).fit(), np.column_stack([p, 1.0 - p]), y
